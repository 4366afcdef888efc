//! Procedures that tell sizes, databases and who is connected.

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult};

use super::{Arguments, NAME, ProcedureInfo, ProcedureOutput, Typed, give, may};
use crate::model::{
    Names,
    base_table::goes_on,
    function::object_named,
    object::ObjectKind,
    shape::{result_columns, row},
    view::pages_of,
};

pub(super) const PROCEDURES: &[ProcedureInfo] = &[
    ProcedureInfo {
        schema: "sys",
        name: "sp_spaceused",
        parameters: &[
            may("@objname", SqlType::NVarChar(Length::Limited(776))),
            may("@updateusage", SqlType::VarChar(Length::Limited(5))),
            may("@mode", SqlType::VarChar(Length::Limited(11))),
            may("@oneresultset", SqlType::Bit),
        ],
        run: space,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_helpdb",
        parameters: &[may("@dbname", NAME)],
        run: help_database,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_who",
        parameters: &[may("@loginame", NAME)],
        run: who,
    },
];

/// Kilobytes of a page.
const PAGE_KB: i64 = 8;

fn kilobytes(pages: i64) -> String {
    format!("{} KB", pages * PAGE_KB)
}

fn space(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let Some(text) = Arguments(arguments).text(0) else { return whole(names, output) };
    let missing = || {
        SqlError::new(
            15_009,
            format!(
                "The object '{text}' does not exist in database '{}' or is invalid for this \
                 operation.",
                names.database.name()
            ),
        )
    };
    let object = object_named(names, &text).ok_or_else(missing)?;
    if !matches!(object.kind, ObjectKind::Table | ObjectKind::CaptureTable) {
        return Err(missing());
    }
    let table = names.database.table_info(&object.name).map(|table| table.rows);
    let instances = names.database.instances();
    let change = instances.iter().find(|info| info.object_id == object.id).map(|info| info.rows);
    let rows = i64::try_from(table.or(change).unwrap_or(0)).unwrap_or(i64::MAX);
    let pages = pages_of(rows);
    let columns = "name nvarchar(128); rows char(20)?; reserved varchar(18)?; \
        data varchar(18)?; index_size varchar(18)?; unused varchar(18)?";
    let index = i64::from(pages > 0);
    give(
        output,
        columns,
        [row![
            &object.name.name,
            format!("{rows:<20}"),
            kilobytes(pages + index),
            kilobytes(pages),
            kilobytes(index),
            kilobytes(0)
        ]],
    )
}

/// The size of the database: of its files, and of what is in them.
fn whole(names: &Names<'_>, output: &mut dyn ProcedureOutput) -> SqlResult<i32> {
    let rows: u64 = names.database.tables().iter().map(|table| table.rows).sum();
    let pages = pages_of(i64::try_from(rows).unwrap_or(i64::MAX));
    let mut first = result_columns(
        "database_name nvarchar(128)?; database_size varchar(18)?; unallocated varchar(18)?",
    );
    if let Some(last) = first.last_mut() {
        last.name = "unallocated space".into();
    }
    if goes_on(output.columns(&first)) {
        let row = row![names.database.name(), "16.00 MB", "8.00 MB"];
        if !goes_on(output.row(&row)) {
            return Ok(0);
        }
    }
    let columns = "reserved varchar(18)?; data varchar(18)?; index_size varchar(18)?; \
        unused varchar(18)?";
    give(output, columns, [row![kilobytes(pages), kilobytes(pages), kilobytes(0), kilobytes(0)]])
}

fn help_database(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let columns = "name nvarchar(128); db_size nvarchar(13)?; owner nvarchar(128)?; dbid smallint; \
        created nvarchar(11)?; status nvarchar(600)?; compatibility_level tinyint?";
    let wanted = Arguments(arguments).text(0);
    let seen = crate::model::view::seen_databases(names);
    let found: Vec<_> = seen
        .iter()
        .filter(|database| {
            wanted.as_ref().is_none_or(|name| name.eq_ignore_ascii_case(database.name()))
        })
        .map(|database| {
            let created = database.created().wall();
            let created = created.map(|wall| wall.format("%b %e %Y").to_string());
            row![
                database.name(),
                "16.00 MB",
                "sa",
                database.id(),
                created,
                "Status=ONLINE, Updateability=READ_WRITE, UserAccess=MULTI_USER",
                i32::from(database.options().compatibility_level)
            ]
        })
        .collect();
    if let (true, Some(name)) = (found.is_empty(), wanted) {
        return Err(SqlError::new(
            15_010,
            format!(
                "The database '{name}' does not exist. Supply a valid database name. To see \
                 available databases, use sys.databases."
            ),
        ));
    }
    give(output, columns, found)
}

fn who(names: &Names<'_>, _: &[Option<Typed>], output: &mut dyn ProcedureOutput) -> SqlResult<i32> {
    let columns = "spid smallint; ecid smallint; status nchar(30); loginame nvarchar(128)?; \
        hostname nchar(128); blk char(5)?; dbname nvarchar(128)?; cmd nchar(26); request_id int";
    let all = names.access.rights == cdc_fake::Login::Owner;
    let sessions = names.server.session_list().into_iter();
    let rows =
        sessions.filter(|session| all || session.id == names.access.session).map(|session| {
            let status = if session.running { "runnable" } else { "sleeping" };
            row![
                session.id,
                0,
                format!("{status:<30}"),
                &session.login,
                format!("{:<128}", session.host),
                "0    ",
                &session.database,
                format!("{:<26}", "AWAITING COMMAND"),
                0
            ]
        });
    give(output, columns, rows.collect::<Vec<_>>())
}
