//! Procedures of schema `fake`: the clock, the jobs, planted trouble. No server has them; they are
//! for whoever tests against this one, and need `sysadmin`.

use std::time::Duration;

use cdc_core::{Length, SqlType, Timestamp};
use cdc_fake::{Login, ReplicaRole, SqlError, SqlResult, Value};

use super::{Arguments, NAME, ProcedureInfo, ProcedureOutput, Typed, give, may, must};
use crate::model::{Names, change_table::lsn_value, shape::row};

const UTC: SqlType = SqlType::DateTime2 { scale: 7 };
const KIND: SqlType = SqlType::NVarChar(Length::Limited(60));
const TEXT: SqlType = SqlType::NVarChar(Length::Limited(2048));

/// Who may run it, and what it does.
macro_rules! control {
    // For everybody.
    (anybody $name:literal, $run:expr) => {
        ProcedureInfo { schema: "fake", name: $name, parameters: &[], run: $run }
    };
    ($name:literal, $parameters:expr, $run:expr $(,)?) => {
        ProcedureInfo {
            schema: "fake",
            name: $name,
            parameters: $parameters,
            run: |names, arguments, output| {
                require_sysadmin(names)?;
                $run(names, Arguments(arguments), output)
            },
        }
    };
    // Without parameters and without an answer.
    ($name:literal, $act:expr) => {
        control!($name, &[], |names: &Names<'_>, _, _: &mut _| {
            let act: fn(&Names<'_>) = $act;
            act(names);
            Ok(0)
        })
    };
}

pub(super) const PROCEDURES: &[ProcedureInfo] = &[
    control!(
        "advance_clock",
        &[may("@seconds", SqlType::BigInt), may("@milliseconds", SqlType::BigInt)],
        advance_clock,
    ),
    control!("set_clock", &[must("@utc", UTC)], set_clock),
    control!(anybody "now", now),
    control!("run_capture", &[may("@records", SqlType::BigInt)], run_capture),
    control!("stop_capture", |names| names.database.stop_capture()),
    control!("start_capture", |names| names.database.start_capture()),
    control!("stop_agent", |names| names.server.stop_agent()),
    control!("start_agent", |names| names.server.start_agent()),
    control!("fail_scan", &[must("@number", SqlType::Int), may("@message", TEXT)], fail_scan,),
    // As after a restart: the scans of before are forgotten.
    control!("clear_scans", |names| names.database.edit_jobs(|jobs| jobs.scan_errors.clear())),
    control!("fail_cleanup", |names| names.database.edit_jobs(|jobs| jobs.cleanup_outcome = 0)),
    control!("set_replica", &[may("@role", KIND)], set_replica),
    control!("accept_token", &[must("@token", TEXT), must("@login", NAME)], accept_token),
    control!("expire_tokens", |names| names.server.expire_tokens()),
    control!("write_idle_entry", &[], write_idle_entry),
    control!("run_cleanup", &[may("@threshold", SqlType::Int)], run_cleanup),
    control!(
        "inject_error",
        &[
            must("@number", SqlType::Int),
            may("@times", SqlType::BigInt),
            may("@statement", KIND),
            may("@message", TEXT),
        ],
        inject_error,
    ),
    control!("kill_after_rows", &[must("@rows", SqlType::BigInt)], kill_after_rows),
    control!("slow", &[must("@milliseconds", SqlType::BigInt)], slow),
    control!("clear_faults", |names| names.server.faults().clear()),
    control!("kill", &[must("@session_id", SqlType::Int)], kill),
    control!("backup", &[must("@name", NAME)], backup),
    control!("restore", &[must("@name", NAME)], restore),
];

fn require_sysadmin(names: &Names<'_>) -> SqlResult<()> {
    if names.access.rights == Login::Owner {
        return Ok(());
    }
    Err(SqlError::new(
        229,
        format!(
            "The EXECUTE permission was denied on the schema 'fake', database '{}'.",
            names.database.name()
        ),
    ))
}

fn advance_clock(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let seconds = arguments.integer(0).unwrap_or(0);
    let milliseconds =
        seconds.saturating_mul(1000).saturating_add(arguments.integer(1).unwrap_or(0));
    let milliseconds = u64::try_from(milliseconds)
        .map_err(|_| SqlError::new(50_000, "the clock moves forward only: use fake.set_clock"))?;
    names.server.clock().advance(Duration::from_millis(milliseconds));
    Ok(0)
}

fn set_clock(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let Some(Value::DateTime2(ticks)) = arguments.value(0) else {
        return Err(SqlError::new(50_000, "@utc must be a moment in UTC"));
    };
    let clock = names.server.clock();
    let (now, wanted) = (clock.time(), Timestamp::from_micros(ticks.div_euclid(10)));
    if wanted >= now {
        clock.advance_to(wanted);
    } else {
        let back = u64::try_from(now.micros_since(wanted)).unwrap_or(0);
        clock.set_back(Duration::from_micros(back));
    }
    Ok(0)
}

fn now(names: &Names<'_>, _: &[Option<Typed>], output: &mut dyn ProcedureOutput) -> SqlResult<i32> {
    let now = names.server.clock().time();
    let local = names.server.zone().reading(now);
    let utc = Value::DateTime2(now.as_micros().saturating_mul(10));
    let mut columns = super::result_columns("utc datetime?; local datetime?");
    if let Some(first) = columns.first_mut() {
        first.kind.sql_type = UTC;
    }
    if super::goes_on(output.columns(&columns)) {
        let _ = output.row(&row![utc, local]);
    }
    Ok(0)
}

fn run_capture(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let records = arguments.integer(0);
    let records = records.map_or(usize::MAX, |records| usize::try_from(records).unwrap_or(0));
    let read = names.database.capture_next(records);
    let read = i64::try_from(read).unwrap_or(i64::MAX);
    let high = names.database.max_lsn().map(lsn_value);
    give(output, "records bigint; max_lsn binary(10)?", [row![read, high]])
}

fn fail_scan(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let number = i32::try_from(arguments.integer(0).unwrap_or(0)).unwrap_or(i32::MAX);
    names.database.fail_scan(number, &arguments.text(1).unwrap_or_else(|| known_text(number)));
    Ok(0)
}

fn accept_token(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let (token, login) = (arguments.text(0), arguments.text(1));
    names.server.accept_token(&token.unwrap_or_default(), &login.unwrap_or_default());
    Ok(0)
}

/// Puts the database into an availability group, or takes it out of one.
fn set_replica(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let role = match arguments.text(0).map(|role| role.to_ascii_uppercase()).as_deref() {
        None => None,
        Some("PRIMARY") => Some(ReplicaRole::Primary),
        Some("SECONDARY") => Some(ReplicaRole::Secondary),
        Some(_) => return Err(SqlError::new(50_000, "@role is PRIMARY, SECONDARY or NULL")),
    };
    names.database.set_options(|options| options.replica = role);
    Ok(0)
}

fn write_idle_entry(
    names: &Names<'_>,
    _: Arguments<'_>,
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let lsn = names.database.write_idle_entry().map(lsn_value);
    give(output, "lsn binary(10)?", [row![lsn]])
}

fn run_cleanup(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let threshold = arguments.integer(0).unwrap_or(5000);
    let threshold = usize::try_from(threshold).unwrap_or(1);
    let removed = names.database.begin_cleanup(threshold).finish();
    give(output, "rows bigint", [row![i64::try_from(removed).unwrap_or(i64::MAX)]])
}

/// The server's text of an error that is often planted.
fn known_text(number: i32) -> String {
    match number {
        1205 => SqlError::deadlock().message,
        1222 => SqlError::lock_timeout().message,
        3960 => "Snapshot isolation transaction aborted due to update conflict.".into(),
        -2 => "Execution Timeout Expired.".into(),
        596 => "Cannot continue the execution because the session is in the kill state.".into(),
        9002 => "The transaction log for the database is full.".into(),
        10054 => "An existing connection was forcibly closed by the remote host.".into(),
        40613 => "Database is not currently available. Please retry the connection later.".into(),
        _ => format!("planted error {number}"),
    }
}

fn inject_error(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let number = i32::try_from(arguments.integer(0).unwrap_or(0)).unwrap_or(i32::MAX);
    let times = u64::try_from(arguments.integer(1).unwrap_or(1)).unwrap_or(0);
    let statement = arguments.text(2).unwrap_or_default();
    let text = arguments.text(3).unwrap_or_else(|| known_text(number));
    names.server.faults().inject(&statement, SqlError::new(number, text), times);
    Ok(0)
}

fn kill_after_rows(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let rows = arguments.integer(0).unwrap_or(0);
    names.server.faults().kill_after_rows(u64::try_from(rows).unwrap_or(0));
    Ok(0)
}

fn slow(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let pause = arguments.integer(0).and_then(|pause| u64::try_from(pause).ok());
    names.server.faults().slow(pause.map(Duration::from_millis));
    Ok(0)
}

fn kill(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let id = i32::try_from(arguments.integer(0).unwrap_or(0)).unwrap_or(-1);
    if id == names.access.session {
        return Err(SqlError::new(6104, "Cannot use KILL to kill your own process."));
    }
    names.server.kill(id)?;
    Ok(0)
}

fn backup(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let name = arguments.text(0).unwrap_or_default();
    names.server.keep_backup(&name, names.database.backup());
    Ok(0)
}

fn restore(
    names: &Names<'_>,
    arguments: Arguments<'_>,
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let name = arguments.text(0).unwrap_or_default();
    let backup = names.server.kept_backup(&name).ok_or_else(|| {
        SqlError::new(3201, format!("Cannot open backup '{name}': fake.backup makes one."))
    })?;
    names.database.restore(&backup);
    Ok(0)
}
