//! A toy catalogue, and the rules of SELECT as statements over it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap
)]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};
use sqlparser::{
    ast::{self, Statement},
    dialect::MsSqlDialect,
    parser::Parser,
};

use super::*;
use crate::{
    kind::{Collation, Kind},
    relation::{
        Bound, Comparison, Moment, ObjectName, Relation, RelationColumn, Row, Rows, Scan, Settings,
    },
    scalar::DEFAULT_COLLATION,
};

mod changes;
mod clauses;
mod clients;
mod expressions;
mod names;
mod properties;
mod sources;
mod speed;

/// Rows in memory that tell what was asked of them.
pub(super) struct Table {
    columns: Vec<RelationColumn>,
    rows: Vec<Row>,
    order: Vec<usize>,
    /// True when no row outside the bounds is given.
    seeks: bool,
    asked: Mutex<Vec<Scan>>,
}

impl Table {
    pub(super) fn new(columns: &[(&str, SqlType, bool)], rows: Vec<Vec<Value>>) -> Self {
        let columns = columns
            .iter()
            .map(|(name, sql_type, nullable)| {
                RelationColumn::new(*name, Kind::new(sql_type.clone(), *nullable))
            })
            .collect();
        let rows = rows.into_iter().map(Into::into).collect();
        Self { columns, rows, order: Vec::new(), seeks: false, asked: Mutex::default() }
    }

    pub(super) fn ordered(mut self, order: &[usize]) -> Self {
        self.order = order.to_vec();
        self
    }

    pub(super) fn seeking(mut self) -> Self {
        self.seeks = true;
        self
    }

    pub(super) fn asked(&self) -> Vec<Scan> {
        self.asked.lock().unwrap().clone()
    }
}

impl Relation for Table {
    fn columns(&self) -> &[RelationColumn] {
        &self.columns
    }

    fn scan<'a>(&'a self, scan: &Scan) -> SqlResult<Rows<'a>> {
        self.asked.lock().unwrap().push(scan.clone());
        let bounds = if self.seeks { scan.bounds.clone() } else { Vec::new() };
        let within = move |row: &&Row| bounds.iter().all(|bound| holds(bound, row));
        Ok(Box::new(self.rows.iter().filter(within).cloned().map(Ok)))
    }

    fn order(&self) -> &[usize] {
        &self.order
    }
}

fn holds(bound: &Bound, row: &Row) -> bool {
    let (Value::Int(own), Value::Int(value)) = (&row[bound.column], &bound.value) else {
        return false;
    };
    match bound.comparison {
        Comparison::Equal => own == value,
        Comparison::Less => own < value,
        Comparison::LessOrEqual => own <= value,
        Comparison::Greater => own > value,
        Comparison::GreaterOrEqual => own >= value,
    }
}

/// A catalogue of a few tables.
pub(super) struct Toy {
    tables: HashMap<(String, String), Arc<Table>>,
    variables: Mutex<HashMap<String, Typed>>,
    pub(super) settings: Settings,
    pub(super) collation: Collation,
}

pub(super) fn text(length: u16) -> SqlType {
    SqlType::NVarChar(Length::Limited(length))
}

impl Toy {
    pub(super) fn new() -> Self {
        let mut toy = Self {
            tables: HashMap::new(),
            variables: Mutex::default(),
            settings: Settings::default(),
            collation: DEFAULT_COLLATION,
        };
        let n = || Value::Null;
        toy.add(
            "dbo",
            "orders",
            Table::new(
                &[
                    ("id", SqlType::Int, false),
                    ("customer", SqlType::Int, true),
                    ("name", text(20), true),
                    ("amount", SqlType::Decimal { precision: 10, scale: 2 }, true),
                ],
                vec![
                    vec![1.into(), 10.into(), "apple".into(), Value::decimal(150)],
                    vec![2.into(), 20.into(), "Pear".into(), Value::decimal(250)],
                    vec![3.into(), 10.into(), "fig".into(), n()],
                    vec![4.into(), n(), n(), Value::decimal(-50)],
                ],
            )
            .ordered(&[0]),
        );
        toy.add(
            "dbo",
            "customers",
            Table::new(
                &[("id", SqlType::Int, false), ("city", text(20), false)],
                vec![
                    vec![10.into(), "Oslo".into()],
                    vec![20.into(), "Rome".into()],
                    vec![30.into(), "Bern".into()],
                ],
            )
            .ordered(&[0]),
        );
        toy
    }

    pub(super) fn add(&mut self, schema: &str, name: &str, table: Table) -> Arc<Table> {
        let table = Arc::new(table);
        self.tables.insert((schema.into(), name.to_lowercase()), table.clone());
        table
    }

    pub(super) fn set(&self, name: &str, sql_type: SqlType, value: impl Into<Value>) {
        self.variables.lock().unwrap().insert(name.into(), Typed::new(sql_type, value.into()));
    }

    pub(super) fn prepared(&self, sql: &str) -> SqlResult<Prepared> {
        prepare(&query_of(sql), &Context { catalogue: self, cancel: &Cancel::default() })
    }

    pub(super) fn values(&self, sql: &str) -> SqlResult<Vec<Vec<Value>>> {
        let cancel = Cancel::default();
        let context = Context { catalogue: self, cancel: &cancel };
        let prepared = prepare(&query_of(sql), &context)?;
        let mut rows = Vec::new();
        let given = prepared.run(&context, &mut |row| {
            assert_eq!(row.len(), prepared.columns().len(), "{sql}");
            rows.push(row.to_vec());
            Ok(ControlFlow::Continue(()))
        })?;
        assert_eq!(given, rows.len() as u64, "{sql}");
        Ok(rows)
    }

    /// The rows as text, a row each, columns parted by a space.
    pub(super) fn rows(&self, sql: &str) -> Vec<String> {
        let rows = self.values(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        rows.iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join(" ")).collect()
    }

    /// The number of the error that a statement ends with.
    pub(super) fn error(&self, sql: &str) -> i32 {
        match self.values(sql) {
            Ok(rows) => panic!("{sql}: {} rows instead of an error", rows.len()),
            Err(error) => error.number,
        }
    }
}

pub(super) fn query_of(sql: &str) -> ast::Query {
    match statement(sql) {
        Statement::Query(query) => *query,
        other => panic!("no query: {other}"),
    }
}

pub(super) fn statement(sql: &str) -> Statement {
    let mut statements =
        Parser::parse_sql(&MsSqlDialect {}, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(statements.len(), 1, "{sql}");
    statements.remove(0)
}

pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Bit(bit) => u8::from(*bit).to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Decimal(digits) => i128::from(*digits).to_string(),
        Value::Text(text) => text.to_string(),
        Value::Bytes(bytes) => {
            bytes.iter().fold("0x".to_owned(), |sum, byte| sum + &format!("{byte:02X}"))
        }
        other => format!("{other:?}"),
    }
}

impl Catalogue for Toy {
    fn relation(&self, name: &ObjectName) -> SqlResult<Arc<dyn Relation>> {
        let schema = name.schema.clone().unwrap_or_else(|| "dbo".into());
        let key = (schema.to_lowercase(), name.name.to_lowercase());
        let found = self.tables.get(&key).cloned();
        found
            .map(|table| -> Arc<dyn Relation> { table })
            .ok_or_else(|| SqlError::invalid_object(&name.name))
    }

    fn table_function(
        &self,
        name: &ObjectName,
        arguments: &[Typed],
    ) -> SqlResult<Arc<dyn Relation>> {
        self.table_function_columns(name)?;
        let most = arguments.first().and_then(|argument| argument.value.as_int()).unwrap_or(0);
        let rows = (1..=most).map(|number| vec![number.into()]).collect();
        Ok(Arc::new(Table::new(&[("n", SqlType::Int, false)], rows)))
    }

    fn table_function_columns(&self, name: &ObjectName) -> SqlResult<Vec<RelationColumn>> {
        if name.name.eq_ignore_ascii_case("numbers") {
            Ok(vec![RelationColumn::new("n", Kind::new(SqlType::Int, false))])
        } else {
            Err(SqlError::invalid_object(&name.name))
        }
    }

    fn function_kind(&self, name: &ObjectName, _: &[Kind]) -> Option<SqlResult<Kind>> {
        match name.name.to_uppercase().as_str() {
            "OBJECT_NAME" | "DB_NAME" => Some(Ok(Kind::new(text(128), true))),
            "DB_ID" => Some(Ok(Kind::new(SqlType::Int, true))),
            "FN_CDC_GET_MAX_LSN" => Some(Ok(Kind::new(SqlType::Binary(10), true))),
            _ => None,
        }
    }

    fn function(&self, name: &ObjectName, arguments: &[Typed]) -> SqlResult<Value> {
        Ok(match name.name.to_uppercase().as_str() {
            "OBJECT_NAME" => match arguments.first().map(|argument| &argument.value) {
                Some(Value::Int(id)) => Value::text(&format!("object{id}")),
                _ => Value::Null,
            },
            "DB_ID" => 5.into(),
            "DB_NAME" => "toy".into(),
            _ => Value::bytes(&[0, 0, 0, 0x2A, 0, 0, 0, 7, 0, 1]),
        })
    }

    fn variable(&self, name: &str) -> Option<Typed> {
        self.variables.lock().unwrap().get(name).cloned()
    }

    fn now(&self) -> Moment {
        // 2026-11-30 12:00:00 at the server, two hours ahead of UTC.
        Moment { utc_ticks: 17_960_040_000_000_000, offset_minutes: 120 }
    }

    fn collation(&self) -> Collation {
        self.collation
    }

    fn settings(&self) -> Settings {
        self.settings
    }
}
