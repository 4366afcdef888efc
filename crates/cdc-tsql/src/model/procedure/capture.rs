//! Procedures that turn capture on and off and tell what is captured.

use cdc_core::{Length, Lsn, SqlType, TableName};
use cdc_fake::{
    EnableOptions, FakeDatabase, IndexKind, InstanceInfo, Login, SqlError, SqlResult, TableInfo,
    Value,
};

use super::{Arguments, NAME, ProcedureInfo, ProcedureOutput, Typed, give, may, must, tell};
use crate::model::{
    Names,
    change_table::{lsn_of, lsn_value, may_read_changes},
    shape::row,
    view,
};

pub(super) const PROCEDURES: &[ProcedureInfo] = &[
    ProcedureInfo { schema: "sys", name: "sp_cdc_enable_db", parameters: &[], run: enable_db },
    ProcedureInfo { schema: "sys", name: "sp_cdc_disable_db", parameters: &[], run: disable_db },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_enable_table",
        parameters: &[
            must("@source_schema", NAME),
            must("@source_name", NAME),
            must("@role_name", NAME),
            may("@capture_instance", NAME),
            may("@supports_net_changes", SqlType::Bit),
            may("@index_name", NAME),
            may("@captured_column_list", SqlType::NVarChar(Length::Max)),
            may("@filegroup_name", NAME),
            may("@allow_partition_switch", SqlType::Bit),
        ],
        run: enable_table,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_disable_table",
        parameters: &[
            must("@source_schema", NAME),
            must("@source_name", NAME),
            must("@capture_instance", NAME),
        ],
        run: disable_table,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_help_change_data_capture",
        parameters: &[may("@source_schema", NAME), may("@source_name", NAME)],
        run: help,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_get_captured_columns",
        parameters: &[must("@capture_instance", NAME)],
        run: captured_columns,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_get_ddl_history",
        parameters: &[must("@capture_instance", NAME)],
        run: ddl_history,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_cleanup_change_table",
        parameters: &[
            must("@capture_instance", NAME),
            must("@low_water_mark", SqlType::Binary(10)),
            may("@threshold", SqlType::BigInt),
            may("@fCleanupFailed", SqlType::Bit),
        ],
        run: cleanup,
    },
];

/// Refuses whoever does not own the database.
pub(super) fn require_owner(names: &Names<'_>) -> SqlResult<()> {
    if names.database.is_member(&names.access.rights, "db_owner") {
        return Ok(());
    }
    Err(SqlError::new(
        22_904,
        "Caller is not authorized to initiate the requested action. DBO privileges are required.",
    ))
}

/// Refuses a database without capture.
pub(super) fn require_capture(names: &Names<'_>) -> SqlResult<()> {
    if names.database.has_cdc() {
        return Ok(());
    }
    Err(SqlError::new(
        22_901,
        format!(
            "The database '{}' is not enabled for Change Data Capture. Ensure that the correct \
             database context is set and retry the operation. To report on the databases enabled \
             for Change Data Capture, query the is_cdc_enabled column in the sys.databases \
             catalog view.",
            names.database.name()
        ),
    ))
}

fn enable_db(
    names: &Names<'_>,
    _: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    if names.access.rights != Login::Owner {
        return Err(SqlError::new(
            22_902,
            "Caller is not authorized to initiate the requested action. Sysadmin privileges are \
             required.",
        ));
    }
    if names.database.id() < 5 {
        return Err(SqlError::new(
            22_844,
            "The database cannot be enabled for Change Data Capture because it is a system \
             database.",
        ));
    }
    if !names.database.has_cdc() {
        names.database.enable_cdc();
    }
    Ok(0)
}

fn disable_db(
    names: &Names<'_>,
    _: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    require_owner(names)?;
    require_capture(names)?;
    names.database.disable_cdc();
    Ok(0)
}

fn source(names: &Names<'_>, schema: &str, name: &str) -> SqlResult<TableInfo> {
    let found = names.database.table_info(&TableName::new(schema, name));
    found.ok_or_else(|| {
        SqlError::new(
            22_931,
            format!(
                "Source table '{schema}.{name}' does not exist in the current database. Ensure \
                 that the correct database context is set. Specify a valid schema and table name \
                 for the database."
            ),
        )
    })
}

fn enable_table(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    require_owner(names)?;
    require_capture(names)?;
    let (schema, name) = (arguments.text(0), arguments.text(1));
    let table = source(names, &schema.unwrap_or_default(), &name.unwrap_or_default())?;
    let index = key_index(&table, arguments.text(5).as_deref())?;
    let net = arguments.flag(4);
    if net == Some(true) && index.is_none() {
        return Err(SqlError::new(
            22_939,
            "The parameter @supports_net_changes is set to 1, but the source table does not have \
             a primary key defined and no alternate unique index has been specified.",
        ));
    }
    let column = |id: &i32| {
        let found = table.columns.iter().find(|column| column.column.id == *id);
        found.map(|column| column.column.name.clone())
    };
    let first = !names.database.jobs().capture;
    let options = EnableOptions {
        name: arguments.text(3).filter(|name| !name.is_empty()),
        columns: arguments.text(6).map(|list| column_list(&list)),
        index: Some(index.map_or_else(Vec::new, |index| {
            index.columns.iter().filter_map(|(id, _)| column(id)).collect()
        })),
        role: arguments.text(2).filter(|role| !role.is_empty()),
        index_name: index.map(|index| index.name.clone()),
        net_changes: net.unwrap_or(index.is_some()),
    };
    let role = options.role.clone();
    let waiting = names.access.waiting();
    names.database.enable_table_in(names.transaction(), &waiting, &table.name, &options)?;
    if let Some(role) = role {
        // A role that is there already stays as it is.
        let known = names.database.principals();
        if !known.iter().any(|other| other.name.eq_ignore_ascii_case(&role)) {
            names.database.create_role(&role)?;
        }
    }
    if first {
        for job in ["capture", "cleanup"] {
            let name = names.database.name();
            let text = format!("Job 'cdc.{name}_{job}' started successfully.");
            tell(output, 22_803, "sp_cdc_enable_table", text);
        }
    }
    Ok(0)
}

/// The index that identifies rows: the one that is named, or the primary key.
fn key_index<'t>(
    table: &'t TableInfo,
    name: Option<&str>,
) -> SqlResult<Option<&'t cdc_fake::IndexInfo>> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(table.indexes.iter().find(|index| index.kind == IndexKind::PrimaryKey));
    };
    let found = table
        .indexes
        .iter()
        .find(|index| index.name.eq_ignore_ascii_case(name) && index.kind.is_unique());
    found.map(Some).ok_or_else(|| {
        SqlError::new(
            22_940,
            format!(
                "Could not find the unique index '{name}' on the table '{}'. Specify the name of \
                 a unique index of the table, or leave it out to use the primary key.",
                table.name
            ),
        )
    })
}

/// The names of a list like `[a], b`.
fn column_list(list: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut bracket = false;
    let mut letters = list.chars().peekable();
    while let Some(letter) = letters.next() {
        let Some(name) = names.last_mut() else { break };
        match letter {
            '[' if !bracket && name.trim().is_empty() => {
                name.clear();
                bracket = true;
            }
            ']' if bracket && letters.peek() == Some(&']') => {
                name.push(']');
                letters.next();
            }
            ']' if bracket => bracket = false,
            ',' if !bracket => names.push(String::new()),
            letter => name.push(letter),
        }
    }
    names.into_iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

fn disable_table(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    require_owner(names)?;
    require_capture(names)?;
    let (schema, name) = (arguments.text(0), arguments.text(1));
    let table = source(names, &schema.unwrap_or_default(), &name.unwrap_or_default())?;
    let wanted = arguments.text(2).unwrap_or_default();
    let all = wanted.eq_ignore_ascii_case("all");
    let of_table = |info: &InstanceInfo| info.source_object_id == table.object_id;
    let instances = names.database.instances();
    let found: Vec<_> = instances
        .iter()
        .filter(|info| {
            of_table(info) && (all || names.database.same_name(info.name.as_str(), &wanted))
        })
        .collect();
    if found.is_empty() {
        return Err(SqlError::new(
            22_960,
            format!(
                "Change data capture instance '{wanted}' has not been enabled for the source \
                 table '{}'. Use sys.sp_cdc_help_change_data_capture to verify the capture \
                 instance name and retry the operation.",
                table.name
            ),
        ));
    }
    for info in found {
        let waiting = names.access.waiting();
        names.database.disable_instance_in(names.transaction(), &waiting, &info.name)?;
    }
    Ok(0)
}

fn bracketed<'n>(columns: impl Iterator<Item = &'n String>) -> String {
    let quoted: Vec<_> = columns.map(|name| format!("[{}]", name.replace(']', "]]"))).collect();
    quoted.join(", ")
}

const HELP: &str = "source_schema sysname; source_table sysname; capture_instance sysname; \
    object_id int; source_object_id int; start_lsn binary(10)?; end_lsn binary(10)?; \
    supports_net_changes bit?; has_drop_pending bit?; role_name sysname?; index_name sysname?; \
    filegroup_name sysname?; create_date datetime?; index_column_list nvarchar(max)?; \
    captured_column_list nvarchar(max)?";

fn help(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    require_capture(names)?;
    let wanted = match (arguments.text(0), arguments.text(1)) {
        (Some(schema), Some(name)) => {
            let table = source(names, &schema, &name).ok();
            let table = table.filter(|table| names.sees(&table.name));
            let table = table.filter(|table| table.captured).ok_or_else(|| {
                SqlError::new(22_981, "Object does not exist or access is denied.")
            })?;
            Some(table.object_id)
        }
        (None, None) => None,
        _ => {
            return Err(SqlError::new(
                22_982,
                "Both of the parameters @source_schema and @source_name must be given, or none.",
            ));
        }
    };
    let mut instances = names.database.instances();
    instances.retain(|info| {
        wanted.is_none_or(|id| info.source_object_id == id) && may_read_changes(names, info)
    });
    give(output, HELP, instances.iter().map(help_row))
}

fn help_row(info: &InstanceInfo) -> crate::relation::Row {
    let key = (!info.key.is_empty()).then(|| bracketed(info.key.iter()));
    row![
        &info.table.schema,
        &info.table.name,
        info.name.as_str(),
        info.object_id,
        info.source_object_id,
        lsn_value(info.start),
        (),
        info.net_changes,
        false,
        info.role.as_ref(),
        info.index_name.as_ref(),
        (),
        info.created,
        key,
        bracketed(info.columns.iter().map(|column| &column.name))
    ]
}

/// The instance of a name that the login may use.
fn instance(names: &Names<'_>, name: Option<String>) -> SqlResult<InstanceInfo> {
    require_capture(names)?;
    let found = names.database.instance_info(&name.unwrap_or_default());
    found
        .filter(|info| may_read_changes(names, info))
        .ok_or_else(|| SqlError::new(22_981, "Object does not exist or access is denied."))
}

fn captured_columns(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let info = instance(names, Arguments(arguments).text(0))?;
    let rows = (1_i32..).zip(&info.columns).map(|(at, column)| {
        let shown = view::information_of(&column.sql_type);
        row![
            &info.table.schema,
            &info.table.name,
            info.name.as_str(),
            &column.name,
            column.id,
            at,
            view::type_name(&column.sql_type),
            shown.length,
            shown.numeric[0].clone(),
            shown.numeric[1].clone(),
            shown.numeric[2].clone(),
            shown.moment
        ]
    });
    let columns = "source_schema sysname; source_table sysname; capture_instance sysname; \
        column_name sysname; column_id int; column_ordinal int; data_type sysname; \
        character_maximum_length int?; numeric_precision tinyint?; \
        numeric_precision_radix smallint?; numeric_scale int?; datetime_precision smallint?";
    give(output, columns, rows.collect::<Vec<_>>())
}

fn ddl_history(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let info = instance(names, Arguments(arguments).text(0))?;
    let columns = "source_schema sysname; source_table sysname; capture_instance sysname; \
        required_column_update bit?; ddl_command nvarchar(max)?; ddl_lsn binary(10); \
        ddl_time datetime?";
    let rows = info.ddl.iter().map(|entry| {
        row![
            &info.table.schema,
            &info.table.name,
            info.name.as_str(),
            entry.captured_column_changed,
            &entry.statement,
            lsn_value(entry.lsn),
            entry.time
        ]
    });
    give(output, columns, rows)
}

fn cleanup(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    require_owner(names)?;
    require_capture(names)?;
    let name = arguments.text(0).unwrap_or_default();
    let info = names.database.instance_info(&name).ok_or_else(|| {
        SqlError::new(
            22_960,
            format!(
                "Change data capture instance '{name}' has not been enabled. Use \
                 sys.sp_cdc_help_change_data_capture to verify the capture instance name and \
                 retry the operation."
            ),
        )
    })?;
    let threshold = arguments.integer(2).unwrap_or(5000);
    let threshold = usize::try_from(threshold).ok().filter(|rows| *rows > 0).ok_or_else(|| {
        SqlError::new(22_850, "The threshold value specified for the cleanup must be positive.")
    })?;
    let Some(mark) = mark(names.database, arguments.value(1)) else { return Ok(0) };
    names.database.begin_cleanup_of(&info.name, mark, threshold)?.finish();
    Ok(0)
}

/// The mark of a cleanup; NULL is the newest entry of the mapping.
fn mark(database: &FakeDatabase, value: Option<&Value>) -> Option<Lsn> {
    value.and_then(lsn_of).or_else(|| database.max_lsn())
}
