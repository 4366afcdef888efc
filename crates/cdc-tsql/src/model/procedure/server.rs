//! Procedures of the server itself: its settings, and the jobs of SQL Server Agent.

use cdc_core::{Length, SqlType};
use cdc_fake::{FakeDatabase, Login, SqlError, SqlResult};

use super::{Arguments, NAME, ProcedureInfo, ProcedureOutput, Typed, give, may, must, tell};
use crate::model::{Names, shape::row};

pub(super) const PROCEDURES: &[ProcedureInfo] = &[
    ProcedureInfo {
        schema: "sys",
        name: "sp_configure",
        parameters: &[
            may("@configname", SqlType::VarChar(Length::Limited(35))),
            may("@configvalue", SqlType::Int),
        ],
        run: configure,
    },
    // What the statement RECONFIGURE does.
    ProcedureInfo { schema: "sys", name: "reconfigure", parameters: &[], run: reconfigure },
    ProcedureInfo {
        schema: "sys",
        name: "sp_update_job",
        parameters: &[
            may("@job_id", SqlType::UniqueIdentifier),
            must("@job_name", NAME),
            may("@new_name", NAME),
            may("@enabled", SqlType::TinyInt),
        ],
        run: update_job,
    },
];

const TEXT_LIMIT: &str = "max text repl size (B)";

fn require_sysadmin(names: &Names<'_>) -> SqlResult<()> {
    if names.access.rights == Login::Owner {
        return Ok(());
    }
    Err(SqlError::new(15_247, "User does not have permission to perform this action."))
}

/// `sp_configure`: the settings that this server has are told, and one may be set. A name may be
/// cut short, as long as one setting begins with it.
fn configure(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    let wanted = arguments.text(0).map(|name| name.to_lowercase());
    let known = [TEXT_LIMIT, "show advanced options"];
    let found = |name: &&str| wanted.as_ref().is_none_or(|wanted| name.starts_with(wanted));
    let found: Vec<&str> = known.into_iter().filter(found).collect();
    if found.is_empty() {
        return Err(SqlError::new(
            15_123,
            "The configuration option does not exist, or it may be an advanced option.",
        ));
    }
    let Some(value) = arguments.integer(1) else {
        let (configured, used) = names.server.text_limit();
        let rows = found.into_iter().map(|name| match name {
            TEXT_LIMIT => row![name, -1, i32::MAX, configured, used],
            _ => row![name, 0, 1, 0, 0],
        });
        let columns = "name nvarchar(35); minimum int?; maximum int?; config_value int?; \
                       run_value int?";
        return give(output, columns, rows.collect::<Vec<_>>());
    };
    require_sysadmin(names)?;
    let least = if found.first() == Some(&TEXT_LIMIT) { -1 } else { 0 };
    if found.len() > 1 || value < least {
        return Err(SqlError::new(
            15_129,
            format!(
                "'{value}' is not a valid value for configuration option '{}'.",
                found.join(", ")
            ),
        ));
    }
    if least < 0 {
        names.server.set_text_limit(value);
    }
    let text = format!(
        "Configuration option '{}' changed. Run the RECONFIGURE statement to install.",
        found.join(", ")
    );
    tell(output, 15_457, "sp_configure", text);
    Ok(0)
}

fn reconfigure(
    names: &Names<'_>,
    _: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    if names.access.rights != Login::Owner {
        let text = "You do not have permission to run the RECONFIGURE statement.";
        return Err(SqlError::new(5812, text));
    }
    names.server.reconfigure();
    Ok(0)
}

/// `msdb.dbo.sp_update_job`, for the jobs of capture: all that this server's Agent has.
fn update_job(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    require_sysadmin(names)?;
    let arguments = Arguments(arguments);
    let wanted = arguments.text(1).unwrap_or_default();
    let named = |database: &FakeDatabase| format!("cdc.{}_capture", database.name());
    let mut databases = names.server.databases().into_iter();
    let found = databases
        .find(|database| database.jobs().capture && named(database).eq_ignore_ascii_case(&wanted));
    let Some(database) = found else {
        return Err(SqlError::new(
            14_262,
            format!("The specified @job_name ('{wanted}') does not exist."),
        ));
    };
    if let Some(enabled) = arguments.flag(3) {
        database.edit_jobs(|jobs| jobs.capture_enabled = enabled);
    }
    Ok(0)
}
