use crate::{kind::*, model::Names, relation::*};
use cdc_fake::{SqlError, SqlResult, Value};
use std::sync::Arc;
impl Catalogue for Names<'_> {
    fn relation(&self, name: &ObjectName) -> SqlResult<Arc<dyn Relation>> {
        Err(SqlError::new(208, name.name.clone()))
    }
    fn table_function(&self, name: &ObjectName, _: &[Typed]) -> SqlResult<Arc<dyn Relation>> {
        Err(SqlError::new(208, name.name.clone()))
    }
    fn table_function_columns(&self, name: &ObjectName) -> SqlResult<Vec<RelationColumn>> {
        Err(SqlError::new(208, name.name.clone()))
    }
    fn function_kind(&self, _: &ObjectName, _: &[Kind]) -> Option<SqlResult<Kind>> {
        None
    }
    fn function(&self, name: &ObjectName, _: &[Typed]) -> SqlResult<Value> {
        Err(SqlError::new(195, name.name.clone()))
    }
    fn variable(&self, _: &str) -> Option<Typed> {
        None
    }
    fn now(&self) -> Moment {
        self.access.now
    }
    fn collation(&self) -> Collation {
        crate::scalar::DEFAULT_COLLATION
    }
    fn settings(&self) -> Settings {
        self.access.settings
    }
}
