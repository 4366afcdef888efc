//! Tables and columns as statements declare them.

use std::{fmt, sync::Arc};

use cdc_core::{SqlType, TableName, Timestamp};

use crate::{index::IndexDefinition, sql_error::SqlResult, table::RowView, value::Value};

/// The expression of a computed column.
pub type Expression = Arc<dyn Fn(&RowView<'_>) -> Value + Send + Sync>;

/// A column as `CREATE TABLE` or `ALTER TABLE ADD` declares it.
#[derive(Clone)]
pub struct ColumnDefinition {
    /// The name.
    pub name: String,
    /// The type.
    pub sql_type: SqlType,
    /// True when it takes NULL.
    pub nullable: bool,
    /// The expression of a computed column.
    pub computed: Option<Expression>,
    /// The expression's text, for the catalogue.
    pub expression: Option<String>,
    /// True when a computed column is stored.
    pub persisted: bool,
    /// The columns that a computed column reads: they can neither be dropped nor renamed.
    pub reads: Vec<String>,
    /// Seed and increment of an identity column.
    pub identity: Option<(i64, i64)>,
    /// The default.
    pub default: Option<DefaultDefinition>,
    /// The name of the collation; none is the database's.
    pub collation: Option<String>,
}

/// The value of a default at a moment.
pub type DefaultRule = Arc<dyn Fn(Timestamp) -> SqlResult<Value> + Send + Sync>;

/// The default of a column.
#[derive(Clone)]
pub struct DefaultDefinition {
    /// The constraint's name; the server makes one up without one.
    pub name: Option<String>,
    /// Its text, for the catalogue: `((0))`.
    pub text: String,
    /// Its value.
    pub rule: DefaultRule,
}

impl DefaultDefinition {
    /// A constant default.
    #[must_use]
    pub fn constant(text: &str, value: Value) -> Self {
        Self { name: None, text: text.into(), rule: Arc::new(move |_| Ok(value.clone())) }
    }
}

impl fmt::Debug for DefaultDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultDefinition")
            .field("name", &self.name)
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

/// The condition of a check: none when it is unknown, which passes.
pub type CheckRule = Arc<dyn Fn(&RowView<'_>) -> SqlResult<Option<bool>> + Send + Sync>;

/// A `CHECK` constraint.
#[derive(Clone)]
pub struct CheckDefinition {
    /// The constraint's name; the server makes one up without one.
    pub name: Option<String>,
    /// Its text, for the catalogue: `([a]>(0))`. Empty for a rule of the server's own, which the
    /// catalogue does not list.
    pub text: String,
    /// The columns that it reads: they can neither be dropped nor renamed.
    pub reads: Vec<String>,
    /// The column that it goes with, of a rule of the server's own.
    pub of: Option<String>,
    /// The condition.
    pub rule: CheckRule,
}

impl fmt::Debug for CheckDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckDefinition")
            .field("name", &self.name)
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

impl ColumnDefinition {
    /// A stored column that takes no NULL.
    #[must_use]
    pub fn new(name: &str, sql_type: SqlType) -> Self {
        Self {
            name: name.into(),
            sql_type,
            nullable: false,
            computed: None,
            expression: None,
            persisted: false,
            reads: Vec::new(),
            identity: None,
            default: None,
            collation: None,
        }
    }

    /// A stored column that takes NULL.
    #[must_use]
    pub fn nullable(name: &str, sql_type: SqlType) -> Self {
        Self { nullable: true, ..Self::new(name, sql_type) }
    }

    /// A computed column.
    #[must_use]
    pub fn computed(
        name: &str,
        sql_type: SqlType,
        expression: impl Fn(&RowView<'_>) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self { computed: Some(Arc::new(expression)), ..Self::nullable(name, sql_type) }
    }

    /// Makes it an identity column.
    #[must_use]
    pub const fn identity(mut self, seed: i64, increment: i64) -> Self {
        self.identity = Some((seed, increment));
        self
    }

    /// Gives it a default.
    #[must_use]
    pub fn with_default(mut self, default: DefaultDefinition) -> Self {
        self.default = Some(default);
        self
    }

    /// Gives it a collation by name.
    #[must_use]
    pub fn collated(mut self, collation: &str) -> Self {
        self.collation = Some(collation.into());
        self
    }
}

impl fmt::Debug for ColumnDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnDefinition")
            .field("name", &self.name)
            .field("sql_type", &self.sql_type)
            .field("nullable", &self.nullable)
            .field("computed", &self.computed.is_some())
            .field("identity", &self.identity)
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}

/// A table as `CREATE TABLE` declares it.
#[derive(Clone, Debug)]
pub struct TableDefinition {
    /// The name.
    pub name: TableName,
    /// The columns; their `column_id`s count from 1.
    pub columns: Vec<ColumnDefinition>,
    /// The primary key's columns; empty for a heap.
    pub key: Vec<String>,
    /// The primary key's name; the server makes one up without one.
    pub key_name: Option<String>,
    /// True when the primary key is clustered.
    pub key_clustered: bool,
    /// Indexes and unique constraints beside the primary key.
    pub indexes: Vec<IndexDefinition>,
    /// Checks.
    pub checks: Vec<CheckDefinition>,
}

impl TableDefinition {
    /// A table without columns yet, in schema `dbo`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::named(TableName::new("dbo", name))
    }

    /// A table without columns yet.
    #[must_use]
    pub const fn named(name: TableName) -> Self {
        Self {
            name,
            columns: Vec::new(),
            key: Vec::new(),
            key_name: None,
            key_clustered: true,
            indexes: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// Adds a column.
    #[must_use]
    pub fn with(mut self, column: ColumnDefinition) -> Self {
        self.columns.push(column);
        self
    }

    /// Adds a stored column that takes no NULL.
    #[must_use]
    pub fn column(self, name: &str, sql_type: SqlType) -> Self {
        self.with(ColumnDefinition::new(name, sql_type))
    }

    /// Adds a stored column that takes NULL.
    #[must_use]
    pub fn nullable(self, name: &str, sql_type: SqlType) -> Self {
        self.with(ColumnDefinition::nullable(name, sql_type))
    }

    /// Sets the primary key.
    #[must_use]
    pub fn primary_key(mut self, columns: &[&str]) -> Self {
        self.key = columns.iter().map(|name| (*name).into()).collect();
        self
    }

    /// Adds an index or a unique constraint.
    #[must_use]
    pub fn index(mut self, index: IndexDefinition) -> Self {
        self.indexes.push(index);
        self
    }

    /// Adds a check.
    #[must_use]
    pub fn check(mut self, check: CheckDefinition) -> Self {
        self.checks.push(check);
        self
    }
}
