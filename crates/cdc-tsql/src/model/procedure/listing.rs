//! Catalogue procedures as ODBC and JDBC call them: tables, columns, keys, indexes, databases.

use std::cmp::Ordering;

use cdc_core::{Length, SqlType};
use cdc_fake::{IndexKind, SqlError, SqlResult, Value};

use super::{
    Arguments, NAME, PATTERN, ProcedureInfo, ProcedureOutput, Typed, give, may, must,
    odbc_type::{OdbcType, odbc_type},
};
use crate::{
    model::{
        Names,
        object::{Object, ObjectKind},
        shape::row,
        view::{Described, described},
    },
    relation::{Catalogue as _, Row},
    scalar,
};

const TABLE_PARAMETERS: &[super::Parameter] = &[
    may("@table_name", PATTERN),
    may("@table_owner", PATTERN),
    may("@table_qualifier", NAME),
    may("@table_type", SqlType::VarChar(Length::Limited(100))),
    may("@fUsePattern", SqlType::Bit),
];

const KEY_PARAMETERS: &[super::Parameter] =
    &[must("@table_name", NAME), may("@table_owner", NAME), may("@table_qualifier", NAME)];

const STATISTICS_PARAMETERS: &[super::Parameter] = &[
    must("@table_name", NAME),
    may("@table_owner", NAME),
    may("@table_qualifier", NAME),
    may("@index_name", NAME),
    may("@is_unique", SqlType::Char(1)),
    may("@accuracy", SqlType::Char(1)),
];

const SPECIAL_PARAMETERS: &[super::Parameter] = &[
    must("@table_name", NAME),
    may("@table_owner", NAME),
    may("@table_qualifier", NAME),
    may("@col_type", SqlType::Char(1)),
    may("@scope", SqlType::Char(1)),
    may("@nullable", SqlType::Char(1)),
    may("@ODBCVer", SqlType::Int),
];

pub(super) const PROCEDURES: &[ProcedureInfo] = &[
    ProcedureInfo { schema: "sys", name: "sp_tables", parameters: TABLE_PARAMETERS, run: tables },
    ProcedureInfo {
        schema: "sys",
        name: "sp_columns",
        parameters: &[
            must("@table_name", PATTERN),
            may("@table_owner", PATTERN),
            may("@table_qualifier", NAME),
            may("@column_name", PATTERN),
            may("@ODBCVer", SqlType::Int),
        ],
        run: columns,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_columns_100",
        parameters: &[
            must("@table_name", PATTERN),
            may("@table_owner", PATTERN),
            may("@table_qualifier", NAME),
            may("@column_name", PATTERN),
            may("@NameScope", SqlType::Int),
            may("@ODBCVer", SqlType::Int),
            may("@fUsePattern", SqlType::Bit),
        ],
        run: columns_100,
    },
    ProcedureInfo { schema: "sys", name: "sp_pkeys", parameters: KEY_PARAMETERS, run: keys },
    ProcedureInfo {
        schema: "sys",
        name: "sp_statistics",
        parameters: STATISTICS_PARAMETERS,
        run: statistics,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_statistics_100",
        parameters: STATISTICS_PARAMETERS,
        run: statistics_100,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_special_columns",
        parameters: SPECIAL_PARAMETERS,
        run: special_columns,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_special_columns_100",
        parameters: SPECIAL_PARAMETERS,
        run: special_columns,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_fkeys",
        parameters: &[
            may("@pktable_name", NAME),
            may("@pktable_owner", NAME),
            may("@pktable_qualifier", NAME),
            may("@fktable_name", NAME),
            may("@fktable_owner", NAME),
            may("@fktable_qualifier", NAME),
        ],
        run: foreign_keys,
    },
    ProcedureInfo { schema: "sys", name: "sp_databases", parameters: &[], run: databases },
];

/// A name that a call asks for: a LIKE pattern, or one name.
struct Wanted<'n> {
    names: &'n Names<'n>,
    text: Option<String>,
    pattern: bool,
}

impl Wanted<'_> {
    fn fits(&self, name: &str) -> SqlResult<bool> {
        let Some(text) = &self.text else { return Ok(true) };
        if !self.pattern {
            return Ok(self.names.database.same_name(text, name));
        }
        scalar::like(name, text, None, self.names.collation())
    }
}

/// Refuses a call about another database than the one it is in.
fn check_qualifier(names: &Names<'_>, qualifier: Option<String>) -> SqlResult<()> {
    match qualifier {
        Some(other) if !names.database.same_name(&other, names.database.name()) => {
            Err(SqlError::new(
                15_250,
                "The database name component of the object qualifier must be the name of the \
                 current database.",
            ))
        }
        _ => Ok(()),
    }
}

/// The tables and views that a call asks for.
fn wanted(names: &Names<'_>, arguments: &Arguments<'_>, pattern: bool) -> SqlResult<Vec<Object>> {
    check_qualifier(names, arguments.text(2))?;
    let ask = |at| Wanted { names, text: arguments.text(at), pattern };
    let (name, owner) = (ask(0), ask(1));
    let mut found = Vec::new();
    for object in names.objects(true) {
        let shown =
            matches!(object.kind, ObjectKind::Table | ObjectKind::CaptureTable | ObjectKind::View);
        if shown && name.fits(&object.name.name)? && owner.fits(&object.name.schema)? {
            found.push(object);
        }
    }
    Ok(found)
}

const fn table_type(object: &Object) -> &'static str {
    match object.kind {
        ObjectKind::View => "VIEW",
        _ => "TABLE",
    }
}

fn tables(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    let columns = "TABLE_QUALIFIER sysname?; TABLE_OWNER sysname?; TABLE_NAME sysname?; \
        TABLE_TYPE varchar(32)?; REMARKS varchar(254)?";
    // Types come quoted, as 'TABLE','VIEW'; none is every type.
    let types = arguments.text(3).filter(|list| !list.trim().is_empty() && list != "%");
    let types: Option<Vec<String>> = types.map(|list| {
        list.split(',').map(|kind| kind.trim().trim_matches('\'').to_uppercase()).collect()
    });
    let mut found = wanted(names, &arguments, arguments.flag(4).unwrap_or(true))?;
    found.retain(|object| {
        types.as_ref().is_none_or(|types| types.iter().any(|kind| kind == table_type(object)))
    });
    found.sort_by(|a, b| {
        table_type(a)
            .cmp(table_type(b))
            .then_with(|| a.name.schema.cmp(&b.name.schema))
            .then_with(|| a.name.name.cmp(&b.name.name))
    });
    let database = names.database.name();
    let rows = found.iter().map(|object| {
        row![database, &object.name.schema, &object.name.name, table_type(object), ()]
    });
    give(output, columns, rows.collect::<Vec<_>>())
}

const COLUMNS: &str = "TABLE_QUALIFIER sysname?; TABLE_OWNER sysname?; TABLE_NAME sysname?; \
    COLUMN_NAME sysname?; DATA_TYPE smallint; TYPE_NAME sysname?; PRECISION int?; LENGTH int?; \
    SCALE smallint?; RADIX smallint?; NULLABLE smallint; REMARKS varchar(254)?; \
    COLUMN_DEF nvarchar(4000)?; SQL_DATA_TYPE smallint; SQL_DATETIME_SUB smallint?; \
    CHAR_OCTET_LENGTH int?; ORDINAL_POSITION int; IS_NULLABLE varchar(254)?";

const COLUMNS_100: &str = "; SS_IS_SPARSE smallint?; SS_IS_COLUMN_SET smallint?; \
    SS_IS_COMPUTED smallint?; SS_IS_IDENTITY smallint?; SS_UDT_CATALOG_NAME nvarchar(128)?; \
    SS_UDT_SCHEMA_NAME nvarchar(128)?; SS_UDT_ASSEMBLY_TYPE_NAME nvarchar(max)?; \
    SS_XML_SCHEMACOLLECTION_CATALOG_NAME nvarchar(128)?; \
    SS_XML_SCHEMACOLLECTION_SCHEMA_NAME nvarchar(128)?; \
    SS_XML_SCHEMACOLLECTION_NAME nvarchar(128)?";

const LAST_COLUMN: &str = "; SS_DATA_TYPE tinyint?";

fn columns(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    let version = arguments.integer(4).unwrap_or(2);
    let rows = column_rows(names, &arguments, version, true, false)?;
    give(output, &format!("{COLUMNS}{LAST_COLUMN}"), rows)
}

fn columns_100(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    let version = arguments.integer(5).unwrap_or(2);
    let pattern = arguments.flag(6).unwrap_or(true);
    let rows = column_rows(names, &arguments, version, pattern, true)?;
    give(output, &format!("{COLUMNS}{COLUMNS_100}{LAST_COLUMN}"), rows)
}

fn column_rows(
    names: &Names<'_>,
    arguments: &Arguments<'_>,
    version: i64,
    pattern: bool,
    more: bool,
) -> SqlResult<Vec<Row>> {
    let column_name = Wanted { names, text: arguments.text(3), pattern };
    let mut found = wanted(names, arguments, pattern)?;
    found.sort_by(by_name);
    let mut rows = Vec::new();
    for object in found {
        for (at, column) in (1_i32..).zip(described(names, &object)) {
            if column_name.fits(&column.column.name)? {
                rows.push(column_row(names, &object, &column, at, version, more));
            }
        }
    }
    Ok(rows)
}

fn by_name(a: &Object, b: &Object) -> Ordering {
    a.name.schema.cmp(&b.name.schema).then_with(|| a.name.name.cmp(&b.name.name))
}

fn column_row(
    names: &Names<'_>,
    object: &Object,
    column: &Described,
    at: i32,
    version: i64,
    more: bool,
) -> Row {
    let kind = &column.column.kind;
    let shown: OdbcType = odbc_type(&kind.sql_type, version);
    let default = column.info.as_ref().and_then(|info| info.default.as_ref()).map(|d| &d.text);
    let identity = if column.column.identity { " identity" } else { "" };
    let mut cells = row![
        names.database.name(),
        &object.name.schema,
        &object.name.name,
        &column.column.name,
        shown.data_type,
        format!("{}{identity}", shown.name),
        shown.precision,
        shown.length,
        shown.scale,
        shown.radix,
        i32::from(kind.nullable),
        (),
        default,
        shown.sql_data_type,
        shown.datetime_sub,
        shown.octets,
        at,
        if kind.nullable { "YES" } else { "NO" }
    ]
    .to_vec();
    if more {
        let (computed, identity) = (column.column.computed, column.column.identity);
        cells.extend_from_slice(&row![0, 0, i32::from(computed), i32::from(identity)]);
        cells.extend(std::iter::repeat_n(Value::Null, 6));
    }
    cells.push(Value::Int(shown.token(kind.nullable).into()));
    cells.into()
}

/// The one table that a call names.
fn table(names: &Names<'_>, arguments: &Arguments<'_>) -> SqlResult<Option<cdc_fake::TableInfo>> {
    check_qualifier(names, arguments.text(2))?;
    let name = arguments.text(0).unwrap_or_default();
    let object = names.object(arguments.text(1).as_deref(), &name);
    Ok(object.and_then(|object| names.database.table_info(&object.name)))
}

fn keys(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let columns = "TABLE_QUALIFIER sysname?; TABLE_OWNER sysname?; TABLE_NAME sysname?; \
        COLUMN_NAME sysname?; KEY_SEQ smallint; PK_NAME sysname?";
    let table = table(names, &Arguments(arguments))?;
    let mut rows = Vec::new();
    if let Some(table) = &table {
        let key = table.indexes.iter().find(|index| index.kind == IndexKind::PrimaryKey);
        if let Some(key) = key {
            for (at, (id, _)) in (1_i32..).zip(&key.columns) {
                let column = table.columns.iter().find(|column| column.column.id == *id);
                rows.push(row![
                    names.database.name(),
                    &table.name.schema,
                    &table.name.name,
                    column.map(|column| &column.column.name),
                    at,
                    &key.name
                ]);
            }
        }
    }
    give(output, columns, rows)
}

fn statistics(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    give_statistics(names, arguments, output, "int")
}

fn statistics_100(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    give_statistics(names, arguments, output, "bigint")
}

fn give_statistics(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
    number: &str,
) -> SqlResult<i32> {
    let columns = format!(
        "TABLE_QUALIFIER sysname?; TABLE_OWNER sysname?; TABLE_NAME sysname?; \
         NON_UNIQUE smallint?; INDEX_QUALIFIER sysname?; INDEX_NAME sysname?; TYPE smallint; \
         SEQ_IN_INDEX smallint?; COLUMN_NAME sysname?; COLLATION char(1)?; \
         CARDINALITY {number}?; PAGES {number}?; FILTER_CONDITION varchar(128)?"
    );
    let arguments = Arguments(arguments);
    let unique = arguments.text(4).is_some_and(|text| text.eq_ignore_ascii_case("Y"));
    let wanted = Wanted { names, text: arguments.text(3), pattern: true };
    let mut rows = Vec::new();
    if let Some(table) = table(names, &arguments)? {
        let count = i64::try_from(table.rows).unwrap_or(i64::MAX);
        let pages = crate::model::view::pages_of(count);
        let (database, schema, name) =
            (names.database.name(), &table.name.schema, &table.name.name);
        rows.push(row![database, schema, name, (), (), (), 0, (), (), (), count, pages, ()]);
        // Clustered indexes have type 1, others 3.
        for index in &table.indexes {
            if (unique && !index.kind.is_unique()) || !wanted.fits(&index.name)? {
                continue;
            }
            for (at, (id, descending)) in (1_i32..).zip(&index.columns) {
                let column = table.columns.iter().find(|column| column.column.id == *id);
                rows.push(row![
                    database,
                    schema,
                    name,
                    i32::from(!index.kind.is_unique()),
                    name,
                    &index.name,
                    if index.clustered { 1 } else { 3 },
                    at,
                    column.map(|column| &column.column.name),
                    if *descending { "D" } else { "A" },
                    count,
                    pages,
                    ()
                ]);
            }
        }
    }
    give(output, &columns, rows)
}

fn special_columns(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    let columns = "SCOPE smallint?; COLUMN_NAME sysname?; DATA_TYPE smallint; TYPE_NAME sysname?; \
        PRECISION int?; LENGTH int?; SCALE smallint?; PSEUDO_COLUMN smallint";
    let version = arguments.integer(6).unwrap_or(2);
    // 'V' asks for the columns that change with every update of the row.
    let versions = arguments.text(3).is_some_and(|kind| kind.eq_ignore_ascii_case("V"));
    let mut rows = Vec::new();
    if let Some(table) = table(names, &arguments)? {
        let key = table.indexes.iter().find(|index| index.kind.is_unique());
        for column in &table.columns {
            let is_version = column.column.sql_type == SqlType::RowVersion;
            let in_key =
                key.is_some_and(|key| key.columns.iter().any(|(id, _)| *id == column.column.id));
            if (versions && is_version) || (!versions && in_key) {
                let shown = odbc_type(&column.column.sql_type, version);
                rows.push(row![
                    (!versions).then_some(0),
                    &column.column.name,
                    shown.data_type,
                    shown.name,
                    shown.precision,
                    shown.length,
                    shown.scale,
                    1
                ]);
            }
        }
    }
    give(output, columns, rows)
}

fn foreign_keys(
    _: &Names<'_>,
    _: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let columns = "PKTABLE_QUALIFIER sysname?; PKTABLE_OWNER sysname?; PKTABLE_NAME sysname?; \
        PKCOLUMN_NAME sysname?; FKTABLE_QUALIFIER sysname?; FKTABLE_OWNER sysname?; \
        FKTABLE_NAME sysname?; FKCOLUMN_NAME sysname?; KEY_SEQ smallint; UPDATE_RULE smallint?; \
        DELETE_RULE smallint?; FK_NAME sysname?; PK_NAME sysname?; DEFERRABILITY smallint?";
    give(output, columns, Vec::new())
}

fn databases(
    names: &Names<'_>,
    _: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let columns = "DATABASE_NAME sysname?; DATABASE_SIZE int?; REMARKS varchar(254)?";
    let rows = crate::model::view::seen_databases(names);
    let rows = rows.iter().map(|database| row![database.name(), 16_384, ()]);
    give(output, columns, rows.collect::<Vec<_>>())
}
