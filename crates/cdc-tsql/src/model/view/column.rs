//! Columns: `sys.columns`, `sys.types` and what else tells types.

use cdc_core::{Length, SqlType};
use cdc_fake::{ColumnInfo, SqlResult, Value};

use crate::{
    kind::Kind,
    model::{
        Names,
        base_table::relation_column,
        change_table::change_columns,
        object::Object,
        shape::{columns, row},
        view::View,
    },
    relation::{RelationColumn, Row},
    scalar::{TypeFacts, type_facts},
};

const COLUMN: &str = "object_id int; name sysname?; column_id int; system_type_id tinyint; \
    user_type_id int; max_length smallint; precision tinyint; scale tinyint; \
    collation_name sysname?; is_nullable bit?; is_ansi_padded bit; is_rowguidcol bit; \
    is_identity bit; is_computed bit; is_filestream bit; is_replicated bit?; \
    is_non_sql_subscribed bit?; is_merge_published bit?; is_dts_replicated bit?; \
    is_xml_document bit; xml_collection_id int; default_object_id int; rule_object_id int; \
    is_sparse bit?; is_column_set bit?; generated_always_type tinyint?; \
    generated_always_type_desc nvarchar(60)?; encryption_type int?; \
    encryption_type_desc nvarchar(64)?; encryption_algorithm_name sysname?; \
    column_encryption_key_id int?; column_encryption_key_database_name sysname?; is_hidden bit?; \
    is_masked bit; graph_type int?; graph_type_desc nvarchar(60)?; is_data_deletion_filter_column \
    bit?; ledger_view_column_type int?; ledger_view_column_type_desc nvarchar(60)?; \
    is_dropped_ledger_column bit?";

pub(super) const VIEWS: &[View] = &[
    View::public("sys", "columns", COLUMN, own_columns),
    View::public("sys", "all_columns", COLUMN, all_columns),
    View::public(
        "sys",
        "identity_columns",
        "object_id int; name sysname?; column_id int; system_type_id tinyint; user_type_id int; \
         max_length smallint; precision tinyint; scale tinyint; is_nullable bit?; \
         is_identity bit; seed_value bigint?; increment_value bigint?; last_value bigint?; \
         is_not_for_replication bit?",
        identity_columns,
    ),
    View::public(
        "sys",
        "computed_columns",
        "object_id int; name sysname?; column_id int; system_type_id tinyint; user_type_id int; \
         max_length smallint; precision tinyint; scale tinyint; is_nullable bit?; \
         is_computed bit; definition nvarchar(max)?; uses_database_collation bit; \
         is_persisted bit",
        computed_columns,
    ),
    View::public(
        "sys",
        "types",
        "name sysname; system_type_id tinyint; user_type_id int; schema_id int; \
         principal_id int?; max_length smallint; precision tinyint; scale tinyint; \
         collation_name sysname?; is_nullable bit?; is_user_defined bit; is_assembly_type bit; \
         default_object_id int; rule_object_id int; is_table_type bit",
        types,
    ),
];

/// A column of any object.
#[derive(Clone, Debug)]
pub(in crate::model) struct Described {
    pub(in crate::model) id: i32,
    pub(in crate::model) column: RelationColumn,
    /// What a table knows more of it.
    pub(in crate::model) info: Option<ColumnInfo>,
}

/// The columns of an object.
pub(in crate::model) fn described(names: &Names<'_>, object: &Object) -> Vec<Described> {
    let plain = |columns: Vec<RelationColumn>| {
        let numbered = columns.into_iter().zip(1..);
        numbered.map(|(column, id)| Described { id, column, info: None }).collect()
    };
    if let Some(table) = names.database.table_info(&object.name)
        && table.object_id == object.id
    {
        let described = |info: ColumnInfo| Described {
            id: info.column.id,
            column: relation_column(&info),
            info: Some(info),
        };
        return table.columns.into_iter().map(described).collect();
    }
    let instances = names.database.instances();
    if let Some(instance) = instances.iter().find(|other| other.object_id == object.id) {
        return plain(change_columns(instance));
    }
    let view = super::find(names.database, &object.name.schema, &object.name.name);
    view.map_or(Vec::new(), |view| plain(columns(view.columns)))
}

/// What the catalogue says of a type; `sysname`'s of types without a column form.
pub(in crate::model) fn facts(sql_type: &SqlType) -> TypeFacts {
    let wide = || {
        type_facts(&SqlType::NVarChar(Length::Limited(4000))).unwrap_or(TypeFacts {
            name: "nvarchar",
            system_type_id: 231,
            user_type_id: 231,
            max_length: 8000,
            precision: 0,
            scale: 0,
        })
    };
    type_facts(sql_type).unwrap_or_else(wide)
}

/// The name of a type without its length.
pub(in crate::model) fn type_name(sql_type: &SqlType) -> &str {
    match sql_type {
        SqlType::Other(name) => name,
        other => facts(other).name,
    }
}

/// True for a type with a collation.
pub(in crate::model) const fn is_text(sql_type: &SqlType) -> bool {
    use SqlType as T;
    matches!(
        sql_type,
        T::Char(_) | T::VarChar(_) | T::NChar(_) | T::NVarChar(_) | T::Text | T::NText
    )
}

/// The name of a column's collation; none for a type without one.
pub(in crate::model) fn collation_name(names: &Names<'_>, kind: &Kind) -> Option<String> {
    is_text(&kind.sql_type).then(|| match kind.collation {
        Some(collation) => collation.name.to_owned(),
        None => names.database.options().collation,
    })
}

fn head(object: i32, column: &Described) -> Vec<Value> {
    let facts = facts(&column.column.kind.sql_type);
    row![
        object,
        &column.column.name,
        column.id,
        i32::from(facts.system_type_id),
        facts.user_type_id,
        i32::from(facts.max_length),
        i32::from(facts.precision),
        i32::from(facts.scale)
    ]
    .to_vec()
}

fn column_rows(names: &Names<'_>, system: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for object in names.objects(system) {
        for column in described(names, &object) {
            let mut cells = head(object.id, &column);
            let info = column.info.as_ref();
            let default = info.and_then(|info| info.default.as_ref());
            cells.extend_from_slice(&row![
                collation_name(names, &column.column.kind),
                column.column.kind.nullable,
                true,
                false,
                column.column.identity,
                column.column.computed,
                false,
                false,
                false,
                false,
                false,
                false,
                0,
                default.map_or(0, |default| default.object_id),
                0,
                false,
                false,
                0,
                "NOT_APPLICABLE",
                (),
                (),
                (),
                (),
                (),
                false,
                false,
                (),
                (),
                false,
                (),
                (),
                false
            ]);
            rows.push(cells.into());
        }
    }
    rows
}

fn own_columns(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    Ok(column_rows(names, false))
}

fn all_columns(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    Ok(column_rows(names, true))
}

/// Columns of tables with what is known of them.
fn each_column(names: &Names<'_>, mut look: impl FnMut(i32, &Described, &ColumnInfo)) {
    for table in super::table::seen_tables(names) {
        for info in &table.columns {
            let column = relation_column(info);
            let described = Described { id: info.column.id, column, info: None };
            look(table.object_id, &described, info);
        }
    }
}

fn identity_columns(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    each_column(names, |object, column, info| {
        if let Some(identity) = info.identity {
            let mut cells = head(object, column);
            cells.extend_from_slice(&row![
                info.column.nullable,
                true,
                identity.seed,
                identity.increment,
                identity.last,
                false
            ]);
            rows.push(cells.into());
        }
    });
    Ok(rows)
}

fn computed_columns(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    each_column(names, |object, column, info| {
        if info.column.computed {
            let mut cells = head(object, column);
            let text = info.expression.as_deref();
            cells.extend_from_slice(&row![info.column.nullable, true, text, true, info.persisted]);
            rows.push(cells.into());
        }
    });
    Ok(rows)
}

/// The types of every database at their greatest length, with `sysname`.
pub(in crate::model) fn all_types() -> Vec<(&'static str, TypeFacts, SqlType)> {
    use SqlType as T;
    let wide = Length::Limited(8000);
    let types = [
        T::Image,
        T::Text,
        T::UniqueIdentifier,
        T::Date,
        T::Time { scale: 7 },
        T::DateTime2 { scale: 7 },
        T::DateTimeOffset { scale: 7 },
        T::TinyInt,
        T::SmallInt,
        T::Int,
        T::SmallDateTime,
        T::Real,
        T::Money,
        T::DateTime,
        T::Float,
        T::NText,
        T::Bit,
        T::Decimal { precision: 38, scale: 38 },
        T::SmallMoney,
        T::BigInt,
        T::VarBinary(wide),
        T::VarChar(wide),
        T::Binary(8000),
        T::Char(8000),
        T::RowVersion,
        T::NVarChar(Length::Limited(4000)),
        T::NChar(4000),
        T::Xml,
    ];
    let mut all: Vec<_> = types
        .into_iter()
        .map(|sql_type| {
            let facts = facts(&sql_type);
            (facts.name, facts, sql_type)
        })
        .collect();
    let numeric = T::Decimal { precision: 38, scale: 38 };
    let decimal = facts(&numeric);
    all.push(("numeric", TypeFacts { system_type_id: 108, user_type_id: 108, ..decimal }, numeric));
    let name = T::NVarChar(Length::Limited(128));
    let sysname = facts(&name);
    all.push(("sysname", TypeFacts { user_type_id: 256, max_length: 256, ..sysname }, name));
    all
}

fn types(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let all = all_types();
    Ok(all
        .iter()
        .map(|(name, facts, sql_type)| {
            row![
                *name,
                i32::from(facts.system_type_id),
                facts.user_type_id,
                4,
                (),
                i32::from(facts.max_length),
                i32::from(facts.precision),
                i32::from(facts.scale),
                collation_name(names, &Kind::new(sql_type.clone(), true)),
                *name != "sysname" && *name != "timestamp",
                false,
                false,
                0,
                0,
                false
            ]
        })
        .collect())
}
