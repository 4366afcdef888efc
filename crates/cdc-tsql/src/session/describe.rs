//! What a text would give or take, without running it: `sp_describe_first_result_set` and
//! `sp_describe_undeclared_parameters`.

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, Value};
use sqlparser::ast;

use super::{
    call::Given,
    failure::Run,
    frame::Frame,
    runner::{Runner, go_on},
};
use crate::{
    kind::{Kind, Typed},
    query,
    scalar::{result_name_of_type, type_facts},
    syntax::{Body, InsertSource, Statement},
    talk::{ResultColumn, StatementKind},
};

/// The columns of a described result, in the server's order.
pub(super) fn columns() -> Vec<ResultColumn> {
    let name = || SqlType::NVarChar(Length::Limited(128));
    let all: [(&str, SqlType); 39] = [
        ("is_hidden", SqlType::Bit),
        ("column_ordinal", SqlType::Int),
        ("name", name()),
        ("is_nullable", SqlType::Bit),
        ("system_type_id", SqlType::Int),
        ("system_type_name", SqlType::NVarChar(Length::Limited(256))),
        ("max_length", SqlType::SmallInt),
        ("precision", SqlType::TinyInt),
        ("scale", SqlType::TinyInt),
        ("collation_name", name()),
        ("user_type_id", SqlType::Int),
        ("user_type_database", name()),
        ("user_type_schema", name()),
        ("user_type_name", name()),
        ("assembly_qualified_type_name", SqlType::NVarChar(Length::Limited(4000))),
        ("xml_collection_id", SqlType::Int),
        ("xml_collection_database", name()),
        ("xml_collection_schema", name()),
        ("xml_collection_name", name()),
        ("is_xml_document", SqlType::Bit),
        ("is_case_sensitive", SqlType::Bit),
        ("is_fixed_length_clr_type", SqlType::Bit),
        ("source_server", name()),
        ("source_database", name()),
        ("source_schema", name()),
        ("source_table", name()),
        ("source_column", name()),
        ("is_identity_column", SqlType::Bit),
        ("is_part_of_unique_key", SqlType::Bit),
        ("is_updateable", SqlType::Bit),
        ("is_computed_column", SqlType::Bit),
        ("is_sparse_column_set", SqlType::Bit),
        ("ordinal_in_order_by_list", SqlType::SmallInt),
        ("order_by_list_length", SqlType::SmallInt),
        ("order_by_is_descending", SqlType::SmallInt),
        ("tds_type_id", SqlType::Int),
        ("tds_length", SqlType::Int),
        ("tds_collation_id", SqlType::Int),
        ("tds_collation_sort_id", SqlType::TinyInt),
    ];
    let mut all: Vec<ResultColumn> = all.into_iter().map(plain).collect();
    for column in &mut all {
        column.kind.nullable = !ALWAYS_KNOWN.contains(&&*column.name);
    }
    all
}

/// Columns that never are NULL.
const ALWAYS_KNOWN: [&str; 14] = [
    "is_hidden",
    "column_ordinal",
    "is_nullable",
    "system_type_id",
    "max_length",
    "precision",
    "scale",
    "is_xml_document",
    "is_case_sensitive",
    "is_fixed_length_clr_type",
    "is_identity_column",
    "is_updateable",
    "is_computed_column",
    "is_sparse_column_set",
];

fn plain((name, sql_type): (&str, SqlType)) -> ResultColumn {
    ResultColumn {
        name: name.into(),
        kind: Kind::new(sql_type, true),
        identity: false,
        computed: false,
    }
}

/// A row a column of the described result. What is not known of a column is NULL.
pub(super) fn rows(described: &[ResultColumn]) -> Vec<Vec<Value>> {
    described.iter().enumerate().map(|(at, column)| row(at, column)).collect()
}

fn row(at: usize, column: &ResultColumn) -> Vec<Value> {
    let facts = type_facts(&column.kind.sql_type);
    let number = |number: Option<i64>| number.map_or(Value::Null, Value::Int);
    let name = match column.name.is_empty() {
        true => Value::Null,
        false => Value::text(&column.name),
    };
    let collation = column.kind.collation;
    let known = [
        Value::Bit(false),
        Value::Int(i64::try_from(at + 1).unwrap_or(i64::MAX)),
        name,
        Value::Bit(column.kind.nullable),
        number(facts.map(|facts| facts.system_type_id.into())),
        Value::text(&result_name_of_type(&column.kind.sql_type)),
        number(facts.map(|facts| facts.max_length.into())),
        number(facts.map(|facts| facts.precision.into())),
        number(facts.map(|facts| facts.scale.into())),
        collation.map_or(Value::Null, |collation| Value::text(collation.name)),
    ];
    let tds = tds_facts(&column.kind.sql_type, column.kind.nullable);
    // Locale and flags in one number, and the number of an older sort order.
    let wire = collation.map(|collation| collation.wire());
    let locale = wire.map(|[a, b, c, d, _]| i64::from(u32::from_le_bytes([a, b, c, d])));
    let sort_order = wire.map(|[.., sort_order]| i64::from(sort_order));
    let case_sensitive = collation.is_some_and(|collation| !collation.ignores_case);
    let mut row: Vec<Value> = known.into();
    row.resize(39, Value::Null);
    for (place, value) in [
        (19, Value::Bit(false)),
        (20, Value::Bit(case_sensitive)),
        (21, Value::Bit(false)),
        (27, Value::Bit(column.identity)),
        (29, Value::Bit(!column.computed)),
        (30, Value::Bit(column.computed)),
        (31, Value::Bit(false)),
        (35, number(tds.map(|(id, _)| id))),
        (36, number(tds.map(|(_, length)| length))),
        (37, number(locale)),
        (38, number(sort_order)),
    ] {
        if let Some(cell) = row.get_mut(place) {
            *cell = value;
        }
    }
    row
}

impl Runner<'_> {
    /// The columns of the first result of a text, without running it.
    pub(super) fn describe_first(&mut self, given: &[Given], frame: &Frame) -> Run<()> {
        let text = self.text_argument(given.first(), frame)?;
        let declared = self.text_argument(given.get(1), frame)?;
        let prepared = self.prepare(&text, &declared, frame)?;
        let inner = frame.inner("sp_describe_first_result_set")?;
        for parameter in prepared.parameters.iter() {
            let kind = self.kind_of(&parameter.data_type, None)?;
            inner.declare(&parameter.name, Typed { kind, value: Value::Null });
        }
        let query = prepared.statements.iter().find_map(|statement| match &statement.body {
            Body::Query(query, _) => Some(query),
            _ => None,
        });
        let described = match query {
            None => Vec::new(),
            Some(query) => self.scoped(&inner, |_, context| {
                Ok(query::prepare(query, context)?.columns().to_vec())
            })?,
        };
        let rows = rows(&described);
        go_on(self.replies.columns(&columns()))?;
        for row in &rows {
            go_on(self.replies.row(row))?;
        }
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        let inner_done = Frame { in_procedure: true, ..Frame::default() };
        self.counted(count, StatementKind::Select, &inner_done)
    }

    /// The types of the variables that a text uses and does not declare: those of the columns that
    /// they are given to or compared with.
    pub(super) fn describe_undeclared(&mut self, given: &[Given], frame: &Frame) -> Run<()> {
        let text = self.text_argument(given.first(), frame)?;
        let declared = self.text_argument(given.get(1), frame)?;
        let prepared = self.prepare(&text, &declared, frame)?;
        let mut found: Vec<(String, Option<Kind>)> = Vec::new();
        for statement in prepared.statements.iter() {
            self.used(statement, &mut found, frame)?;
        }
        let declared = |name: &str| {
            prepared.parameters.iter().any(|other| other.name.eq_ignore_ascii_case(name))
        };
        found.retain(|(name, _)| !declared(name));
        let mut told = Vec::with_capacity(found.len());
        for (at, (name, kind)) in found.into_iter().enumerate() {
            let Some(kind) = kind else {
                return Err(SqlError::new(
                    11_508,
                    format!(
                        "The undeclared parameter '{name}' cannot be given a type: declare it."
                    ),
                )
                .into());
            };
            told.push(parameter_row(at, &name, &kind));
        }
        go_on(self.replies.columns(&parameter_columns()))?;
        for row in &told {
            go_on(self.replies.row(row))?;
        }
        let count = u64::try_from(told.len()).unwrap_or(u64::MAX);
        let inner = Frame { in_procedure: true, ..Frame::default() };
        self.counted(count, StatementKind::Select, &inner)
    }

    /// The variables of a statement in order, with the types that their places give them.
    fn used(
        &mut self,
        statement: &Statement,
        found: &mut Vec<(String, Option<Kind>)>,
        frame: &Frame,
    ) -> Run<()> {
        let (table, selection) = match &statement.body {
            Body::Insert(insert) => (Some(insert.target.name.clone()), None),
            Body::Update(update) => (Some(update.target.name.clone()), update.selection.as_ref()),
            Body::Delete(delete) => (Some(delete.target.name.clone()), delete.selection.as_ref()),
            Body::Query(query, _) => match &*query.body {
                ast::SetExpr::Select(select) => (only_table(select), select.selection.as_ref()),
                _ => (None, None),
            },
            _ => (None, None),
        };
        let columns = match &table {
            Some(name) => self.scoped(frame, |scope, _| {
                use crate::relation::Catalogue;
                Ok(scope.relation(name)?.columns().to_vec())
            })?,
            None => Vec::new(),
        };
        let kind_of = |name: &str| {
            let column = columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
            column.map(|column| column.kind.clone())
        };
        let mut note = |expression: &ast::Expr, kind: Option<Kind>| {
            if let Some(name) = variable(expression) {
                match found.iter_mut().find(|(other, _)| other.eq_ignore_ascii_case(name)) {
                    Some((_, known)) => *known = known.take().or(kind),
                    None => found.push((name.to_owned(), kind)),
                }
            }
        };
        if let Body::Insert(insert) = &statement.body
            && let InsertSource::Values(rows) = &insert.source
        {
            let names: Vec<String> = match insert.columns.is_empty() {
                true => columns
                    .iter()
                    .filter(|column| !column.hidden && !column.identity && !column.computed)
                    .map(|column| column.name.clone())
                    .collect(),
                false => insert.columns.clone(),
            };
            for (name, value) in rows.iter().flat_map(|row| names.iter().zip(row)) {
                if let Some(value) = value {
                    note(value, kind_of(name));
                }
            }
        }
        if let Body::Update(update) = &statement.body {
            for assignment in &update.assignments {
                if let (Some(name), Some(value)) = (&assignment.column, &assignment.value) {
                    note(value, kind_of(name));
                }
            }
        }
        if let Some(selection) = selection {
            compared(selection, &kind_of, &mut note);
        }
        Ok(())
    }
}

/// The one table of a FROM.
fn only_table(select: &ast::Select) -> Option<crate::relation::ObjectName> {
    match select.from.as_slice() {
        [one] if one.joins.is_empty() => match &one.relation {
            ast::TableFactor::Table { name, args: None, .. } => query::object_name(name).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// The name of an expression that is a variable.
fn variable(expression: &ast::Expr) -> Option<&str> {
    match expression {
        ast::Expr::Identifier(name)
            if name.quote_style.is_none()
                && name.value.starts_with('@')
                && !name.value.starts_with("@@") =>
        {
            Some(&name.value)
        }
        ast::Expr::Nested(inner) => variable(inner),
        _ => None,
    }
}

/// Notes variables that are compared with columns.
fn compared(
    expression: &ast::Expr,
    kind_of: &dyn Fn(&str) -> Option<Kind>,
    note: &mut dyn FnMut(&ast::Expr, Option<Kind>),
) {
    let column = |expression: &ast::Expr| match expression {
        ast::Expr::Identifier(name) => kind_of(&name.value),
        ast::Expr::CompoundIdentifier(parts) => parts.last().and_then(|name| kind_of(&name.value)),
        _ => None,
    };
    match expression {
        ast::Expr::BinaryOp { left, op, right } => match op {
            ast::BinaryOperator::And | ast::BinaryOperator::Or => {
                compared(left, kind_of, note);
                compared(right, kind_of, note);
            }
            _ => {
                note(left, column(right));
                note(right, column(left));
            }
        },
        ast::Expr::Between { expr, low, high, .. } => {
            note(low, column(expr));
            note(high, column(expr));
        }
        ast::Expr::Like { expr, pattern, .. } => note(pattern, column(expr)),
        ast::Expr::In { expr, target: ast::InTarget::List(list), .. } => {
            list.iter().for_each(|item| note(item, column(expr)));
        }
        ast::Expr::Nested(inner) | ast::Expr::UnaryOp { expr: inner, .. } => {
            compared(inner, kind_of, note);
        }
        _ => {}
    }
}

fn parameter_columns() -> Vec<ResultColumn> {
    let name = || SqlType::NVarChar(Length::Limited(128));
    let all: [(&str, SqlType); 24] = [
        ("parameter_ordinal", SqlType::Int),
        ("name", name()),
        ("suggested_system_type_id", SqlType::Int),
        ("suggested_system_type_name", SqlType::NVarChar(Length::Limited(256))),
        ("suggested_max_length", SqlType::SmallInt),
        ("suggested_precision", SqlType::TinyInt),
        ("suggested_scale", SqlType::TinyInt),
        ("suggested_user_type_id", SqlType::Int),
        ("suggested_user_type_database", name()),
        ("suggested_user_type_schema", name()),
        ("suggested_user_type_name", name()),
        ("suggested_assembly_qualified_type_name", SqlType::NVarChar(Length::Limited(4000))),
        ("suggested_xml_collection_id", SqlType::Int),
        ("suggested_xml_collection_database", name()),
        ("suggested_xml_collection_schema", name()),
        ("suggested_xml_collection_name", name()),
        ("suggested_is_xml_document", SqlType::Bit),
        ("suggested_is_case_sensitive", SqlType::Bit),
        ("suggested_is_fixed_length_clr_type", SqlType::Bit),
        ("suggested_is_input", SqlType::Bit),
        ("suggested_is_output", SqlType::Bit),
        ("formal_parameter_name", name()),
        ("suggested_tds_type_id", SqlType::Int),
        ("suggested_tds_length", SqlType::Int),
    ];
    all.into_iter().map(plain).collect()
}

fn parameter_row(at: usize, name: &str, kind: &Kind) -> Vec<Value> {
    let facts = type_facts(&kind.sql_type);
    let number = |number: Option<i64>| number.map_or(Value::Null, Value::Int);
    let known = [
        Value::Int(i64::try_from(at + 1).unwrap_or(i64::MAX)),
        Value::text(name),
        number(facts.map(|facts| facts.system_type_id.into())),
        Value::text(&result_name_of_type(&kind.sql_type)),
        number(facts.map(|facts| facts.max_length.into())),
        number(facts.map(|facts| facts.precision.into())),
        number(facts.map(|facts| facts.scale.into())),
    ];
    let mut row: Vec<Value> = known.into();
    row.resize(24, Value::Null);
    let tds = tds_facts(&kind.sql_type, true);
    for (place, value) in [
        (16, Value::Bit(false)),
        (17, Value::Bit(false)),
        (18, Value::Bit(false)),
        (19, Value::Bit(true)),
        (20, Value::Bit(false)),
        (22, number(tds.map(|(id, _)| id))),
        (23, number(tds.map(|(_, length)| length))),
    ] {
        if let Some(cell) = row.get_mut(place) {
            *cell = value;
        }
    }
    row
}

/// The protocol's number and length of a type; none when the protocol has none of our own.
fn tds_facts(sql_type: &SqlType, nullable: bool) -> Option<(i64, i64)> {
    use SqlType as T;
    let fixed = |id: i64, when_nullable: i64, length: i64| {
        Some((if nullable { when_nullable } else { id }, length))
    };
    let variable = |id: i64, length: &Length, width: i64| {
        let bytes = match length {
            Length::Limited(length) => i64::from(*length) * width,
            Length::Max => 0xFFFF,
        };
        Some((id, bytes))
    };
    // The bytes of a time of the day by its fractional digits.
    let time = |scale: u8| 3 + i64::from(scale > 2) + i64::from(scale > 4);
    match sql_type {
        T::Bit => fixed(50, 104, 1),
        T::TinyInt => fixed(48, 38, 1),
        T::SmallInt => fixed(52, 38, 2),
        T::Int => fixed(56, 38, 4),
        T::BigInt => fixed(127, 38, 8),
        T::Real => fixed(59, 109, 4),
        T::Float => fixed(62, 109, 8),
        T::SmallMoney => fixed(122, 110, 4),
        T::Money => fixed(60, 110, 8),
        T::SmallDateTime => fixed(58, 111, 4),
        T::DateTime => fixed(61, 111, 8),
        T::Decimal { precision, .. } => {
            let words = 1 + [9, 19, 28].iter().filter(|most| precision > *most).count();
            Some((106, 1 + 4 * i64::try_from(words).unwrap_or(4)))
        }
        T::Date => Some((40, 3)),
        T::Time { scale } => Some((41, time(*scale))),
        T::DateTime2 { scale } => Some((42, 3 + time(*scale))),
        T::DateTimeOffset { scale } => Some((43, 5 + time(*scale))),
        T::Char(length) => Some((175, i64::from(*length))),
        T::NChar(length) => Some((239, 2 * i64::from(*length))),
        T::Binary(length) => Some((173, i64::from(*length))),
        T::RowVersion => Some((173, 8)),
        T::VarChar(length) => variable(167, length, 1),
        T::NVarChar(length) => variable(231, length, 2),
        T::VarBinary(length) => variable(165, length, 1),
        T::Text => Some((35, i64::from(i32::MAX))),
        T::NText => Some((99, i64::from(i32::MAX) - 1)),
        T::Image => Some((34, i64::from(i32::MAX))),
        T::Xml => Some((241, 8192)),
        T::UniqueIdentifier => Some((36, 16)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_numbers_and_lengths_of_the_protocol() {
        use SqlType as T;
        let limited = Length::Limited(50);
        for (sql_type, nullable, expected) in [
            (T::Int, false, (56, 4)),
            (T::Int, true, (38, 4)),
            (T::Real, true, (109, 4)),
            (T::SmallDateTime, true, (111, 4)),
            (T::Decimal { precision: 9, scale: 2 }, true, (106, 5)),
            (T::Decimal { precision: 10, scale: 2 }, true, (106, 9)),
            (T::Decimal { precision: 28, scale: 2 }, true, (106, 13)),
            (T::Decimal { precision: 38, scale: 2 }, true, (106, 17)),
            (T::Time { scale: 2 }, true, (41, 3)),
            (T::Time { scale: 3 }, true, (41, 4)),
            (T::DateTime2 { scale: 7 }, true, (42, 8)),
            (T::DateTimeOffset { scale: 7 }, true, (43, 10)),
            (T::NChar(10), true, (239, 20)),
            (T::NVarChar(limited), true, (231, 100)),
            (T::VarChar(Length::Max), true, (167, 65_535)),
            (T::NText, true, (99, 2_147_483_646)),
            (T::UniqueIdentifier, true, (36, 16)),
        ] {
            assert_eq!(tds_facts(&sql_type, nullable), Some(expected), "{sql_type}");
        }
        assert_eq!(tds_facts(&T::Other("geometry".into()), true), None);
    }
}
