//! The result of `sp_describe_first_result_set`.

use cdc_core::{Length, SqlType};
use cdc_fake::Value;

use crate::{
    kind::Kind,
    scalar::{result_name_of_type, type_facts},
    talk::ResultColumn,
};

/// The columns that clients read, in the server's order.
pub(super) fn columns() -> Vec<ResultColumn> {
    let name = || SqlType::NVarChar(Length::Limited(128));
    let all: [(&str, SqlType); 38] = [
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
        ("order_by_is_descending", SqlType::Bit),
        ("order_by_list_length", SqlType::SmallInt),
        ("tds_type_id", SqlType::Int),
        ("tds_length", SqlType::Int),
        ("tds_collation_id", SqlType::Int),
    ];
    all.into_iter()
        .map(|(name, sql_type)| ResultColumn {
            name: name.into(),
            kind: Kind::new(sql_type, true),
            identity: false,
            computed: false,
        })
        .collect()
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
    let case_sensitive = collation.is_some_and(|collation| !collation.ignores_case);
    let mut row: Vec<Value> = known.into();
    row.resize(38, Value::Null);
    for (place, value) in [
        (19, Value::Bit(false)),
        (20, Value::Bit(case_sensitive)),
        (21, Value::Bit(false)),
        (27, Value::Bit(column.identity)),
        (29, Value::Bit(!column.computed)),
        (30, Value::Bit(column.computed)),
        (31, Value::Bit(false)),
    ] {
        if let Some(cell) = row.get_mut(place) {
            *cell = value;
        }
    }
    row
}
