//! The database as a whole: whether it captures, how it is reached, its log, its replicas.

use super::{
    Check, Diagnosis, Observations, Observed, RowIsolation, capture, statement::bracketed,
};
use crate::table::Column;

/// From here on a log that is not reused is about to be full.
const LOG_USED_PERCENT: i64 = 80;
/// `max text repl size` without a limit.
const NO_LIMIT: i64 = -1;

fn hidden<T>(check: Check, observed: &Observed<T>) -> Diagnosis {
    match observed {
        Observed::Seen(_) => Diagnosis::note(check, "nothing to see"),
        Observed::Hidden { needs, statement } => {
            Diagnosis::unknown(check, needs, statement.as_ref())
        }
    }
}

pub(super) fn enabled(seen: &Observations) -> Diagnosis {
    let check = Check::CaptureEnabled;
    let Some(database) = seen.database.seen() else { return hidden(check, &seen.database) };
    let found = if database.captured {
        Diagnosis::fine(check, "the database captures changes")
    } else {
        Diagnosis::failure(
            check,
            "the database does not capture changes. A restore without KEEP_CDC and a point-in-time \
             restore of Azure turn capture off",
        )
        .run("EXEC sys.sp_cdc_enable_db")
    };
    found.with("database", &database.name).with("is_cdc_enabled", database.captured)
}

pub(super) fn encryption(seen: &Observations) -> Diagnosis {
    let check = Check::Encryption;
    let reader = &seen.reader;
    let found = if !reader.encrypted {
        Diagnosis::warning(
            check,
            "nothing is encrypted on the way: rows and, without TLS, the login can be read there",
        )
        .advise("set source.encryption to \"required\" or \"strict\"")
    } else if reader.any_certificate {
        Diagnosis::warning(
            check,
            "any certificate is believed: whoever is on the way can read and change everything",
        )
        .advise("give the server's authority in source.tls_ca_file and leave tls_trust_any out")
    } else {
        Diagnosis::fine(check, "everything is encrypted, and the server's certificate is checked")
    };
    found.with("encrypted", reader.encrypted).with("any_certificate", reader.any_certificate)
}

pub(super) fn log_reuse(seen: &Observations) -> Diagnosis {
    let check = Check::LogReuse;
    let Some(database) = seen.database.seen() else { return hidden(check, &seen.database) };
    let wait = database.log_reuse_wait.as_str();
    let used = seen.log_used.seen().copied().flatten();
    let start = "EXEC sys.sp_cdc_start_job @job_type = N'capture'";
    let found = match (wait, capture::stalled(seen)) {
        ("REPLICATION", Some(true)) => Diagnosis::failure(
            check,
            "the log cannot be reused because capture stands still: it grows until the database \
             stops taking writes",
        )
        .run(start),
        ("REPLICATION", None) => Diagnosis::warning(
            check,
            "the log waits for capture, and whether capture moves is not known",
        )
        .run(start),
        ("REPLICATION", Some(false)) => Diagnosis::note(
            check,
            "the log waited for capture at the last checkpoint; capture moves, so that will pass",
        ),
        ("AVAILABILITY_REPLICA", _) => Diagnosis::warning(
            check,
            "the log waits for a secondary replica, and so does capture: it reads only what every \
             replica has written",
        )
        .run(
            "SELECT replica_id, synchronization_state_desc, log_send_queue_size, redo_queue_size \
             FROM sys.dm_hadr_database_replica_states WHERE database_id = DB_ID()",
        ),
        ("NOTHING", _) => Diagnosis::fine(check, "nothing keeps the log from being reused"),
        _ => Diagnosis::note(check, "the log waits for something that is not capture"),
    };
    let found = found.with("log_reuse_wait_desc", wait);
    let Some(used) = used else { return found };
    let mut found = found.with("log_used_percent", used);
    if used >= LOG_USED_PERCENT && found.outcome < super::Outcome::Warning && wait != "NOTHING" {
        found.outcome = super::Outcome::Warning;
        found.meaning = format!("{}; it is nearly full", found.meaning);
    }
    found
}

pub(super) fn snapshot_isolation(seen: &Observations) -> Diagnosis {
    let check = Check::SnapshotIsolation;
    let Some(database) = seen.database.seen() else { return hidden(check, &seen.database) };
    let wanted = seen.reader.isolation == RowIsolation::Snapshot;
    let on = database.snapshot_isolation == 1;
    let allow =
        format!("ALTER DATABASE {} SET ALLOW_SNAPSHOT_ISOLATION ON", bracketed(&database.name));
    let found = match (wanted, on) {
        (true, true) => Diagnosis::fine(check, "rows are read under snapshot isolation"),
        (true, false) => Diagnosis::failure(
            check,
            "source.isolation is \"snapshot\", which the database does not allow: every read of a \
             table fails with error 3952",
        )
        .run(allow),
        (false, true) => Diagnosis::note(
            check,
            "rows are read committed and may wait for open transactions; the database would allow \
             source.isolation = \"snapshot\"",
        ),
        (false, false) if database.read_committed_snapshot => {
            Diagnosis::fine(check, "rows are read committed, from versions: reads wait for nobody")
        }
        (false, false) => Diagnosis::note(
            check,
            "rows are read committed: the first copy of a table waits for open transactions that \
             wrote to it. Snapshot isolation would not wait, and costs versions in tempdb",
        )
        .run(allow),
    };
    found
        .with("snapshot_isolation_state", database.snapshot_isolation)
        .with("is_read_committed_snapshot_on", database.read_committed_snapshot)
}

pub(super) fn availability_group(seen: &Observations) -> Diagnosis {
    let check = Check::AvailabilityGroup;
    let Some(database) = seen.database.seen() else { return hidden(check, &seen.database) };
    let shown = |diagnosis: Diagnosis| {
        diagnosis.with("in_group", database.in_group).with("writable", database.writable)
    };
    if !database.in_group {
        return shown(Diagnosis::fine(check, "the database belongs to no availability group"));
    }
    let primary = match &seen.primary {
        // A secondary that takes reads takes no writes.
        _ if !database.writable => false,
        Observed::Seen(primary) => *primary,
        Observed::Hidden { .. } => return shown(hidden(check, &seen.primary)),
    };
    let shown = |diagnosis: Diagnosis| {
        shown(diagnosis)
            .with("primary", primary)
            .with("read_only_intent", seen.reader.read_only_intent)
    };
    if primary {
        return shown(Diagnosis::note(
            check,
            "the primary replica. After a failover the capture and cleanup jobs do not follow: \
             make them on the new primary",
        ))
        .run(
            "EXEC sys.sp_cdc_add_job @job_type = N'capture'; \
             EXEC sys.sp_cdc_add_job @job_type = N'cleanup'",
        );
    }
    shown(Diagnosis::warning(
        check,
        "a secondary replica: it is behind the primary, its rows are read under snapshot \
         isolation, and the jobs and scans of capture can be looked at on the primary alone",
    ))
    .advise("run this against the primary too; leave source.read_only_intent out to be sent there")
}

pub(super) fn text_limit(seen: &Observations) -> Diagnosis {
    let check = Check::TextLimit;
    let listed = seen.tables.iter().filter_map(|state| state.instances.as_ref().ok()).flatten();
    let large = |column: &&Column| column.sql_type.is_large_object() && !column.computed;
    let columns = listed.map(|state| state.instance.columns.iter().filter(large).count());
    let columns: usize = columns.sum();
    let Some(limit) = seen.text_limit.seen().copied() else {
        return hidden(check, &seen.text_limit);
    };
    let shown = |diagnosis: Diagnosis| {
        diagnosis.with("max_text_repl_size", limit).with("captured_large_columns", columns)
    };
    if limit == NO_LIMIT {
        return shown(Diagnosis::fine(check, "large objects of any size may be written"));
    }
    if columns == 0 {
        return shown(Diagnosis::fine(check, "no captured column is a large object"));
    }
    shown(Diagnosis::warning(
        check,
        "a statement that writes a larger value to a captured large object fails with error 7139, \
         at the application that writes it",
    ))
    .run(
        "EXEC sys.sp_configure N'show advanced options', 1; RECONFIGURE; \
         EXEC sys.sp_configure N'max text repl size', -1; RECONFIGURE",
    )
}
