//! One table: its instances and their windows, gating role, rights, columns.

use super::{
    Access, Check, Diagnosis, InstanceState, Observations, Observed, Outcome, TableState, Unlisted,
    capture::{RETENTION_GOOD_MINUTES, RETENTION_LEAST_MINUTES},
    statement,
};
use crate::{
    port::{Bound, Finding, FindingLevel},
    table::{NullMeaning, TableName},
};

/// The most instances that a table can have.
const INSTANCES_MAX: usize = 2;

pub(super) fn look(seen: &Observations, state: &TableState, found: &mut Vec<Diagnosis>) {
    let about = |diagnosis: Diagnosis| match state.name() {
        Some(name) => diagnosis.on(&name),
        None => diagnosis.with("asked_for", &state.reference),
    };
    match &state.instances {
        Err(unlisted) => found.push(about(not_listed(seen, state, unlisted))),
        Ok(instances) => {
            found.push(about(listed(instances)));
            for instance in instances {
                look_at(seen, instance, found);
            }
            found.push(about(drift(state, instances)));
        }
    }
}

/// Why nothing is listed, from what the login may do with table and change table.
fn not_listed(seen: &Observations, state: &TableState, unlisted: &Unlisted) -> Diagnosis {
    let user = seen.reader.user.as_ref();
    let plain = || {
        Diagnosis::failure(Check::Instance, &unlisted.message)
            .with("kind", unlisted.kind)
            .advise(&unlisted.advice)
    };
    let Some(name) = state.name() else { return plain() };
    let shown = |diagnosis: Diagnosis| {
        let word = |access| match access {
            Access::Allowed => "allowed",
            Access::Denied => "denied",
            Access::Missing => "not found",
        };
        diagnosis
            .with("select_on_table", word(unlisted.table))
            .with("select_on_change_table", word(unlisted.changes))
    };
    match (unlisted.table, unlisted.changes) {
        (Access::Denied, _) => shown(Diagnosis::failure(
            Check::TableRight,
            "the login may not read the table, so it is shown none of its capture instances",
        ))
        .run(statement::grant_table(&name, user)),
        // It is captured and may be read, but the server does not list it.
        (Access::Allowed, Access::Allowed | Access::Denied) => {
            let found = shown(Diagnosis::failure(
                Check::GatingRole,
                "the table is captured, but the server does not show it to the login: the user is \
                 no member of the instance's gating role",
            ));
            match &unlisted.role {
                Some(role) => found.with("role", role).run(statement::join_role(role, user)),
                None => found
                    .run(statement::show_role(&name))
                    .advise(format!("then run: {}", statement::join_role("that role", user))),
            }
        }
        (Access::Allowed, Access::Missing) => shown(Diagnosis::failure(
            Check::Instance,
            "nothing captures the table, or the login is no member of the instance's gating role",
        ))
        .run(statement::enable(&name, None))
        .advise(&unlisted.advice),
        (Access::Missing, _) => shown(plain()),
    }
}

fn listed(instances: &[InstanceState]) -> Diagnosis {
    let check = Check::Instance;
    let names: Vec<_> = instances.iter().map(|state| state.instance.name.as_str()).collect();
    let shown = |diagnosis: Diagnosis| diagnosis.with("instances", names.join(", "));
    match instances {
        [] => Diagnosis::failure(check, "nothing captures the table").with("instances", "none"),
        [oldest, ..] if instances.len() >= INSTANCES_MAX => shown(Diagnosis::note(
            check,
            "the table has as many instances as it can have: before its columns change again, the \
             older one has to go. Disable it only once the copy has passed the start of the newer",
        ))
        .run(statement::disable(&oldest.instance.table, &oldest.instance.name)),
        _ => shown(Diagnosis::fine(check, "the table is captured")),
    }
}

fn look_at(seen: &Observations, state: &InstanceState, found: &mut Vec<Diagnosis>) {
    let about = |diagnosis: Diagnosis| {
        let mut diagnosis = diagnosis.on(&state.instance.table);
        diagnosis.evidence.insert(0, ("instance", state.instance.name.to_string()));
        diagnosis
    };
    let rights = [role(state), table_right(seen, state), changes_right(seen, state)];
    found.extend(rights.into_iter().map(about));
    found.push(about(window(seen, state)));
    found.extend(columns(state).into_iter().map(about));
}

/// An instance that is listed is one whose gate the login has passed.
fn role(state: &InstanceState) -> Diagnosis {
    let check = Check::GatingRole;
    match &state.role {
        Some(role) => Diagnosis::fine(
            check,
            "the user is a member of the gating role, or owns the \
                                             database",
        )
        .with("role", role),
        None => Diagnosis::fine(check, "no role gates the instance").with("role", "none"),
    }
}

fn right(check: Check, what: &str, access: Access, grant: String) -> Diagnosis {
    match access {
        Access::Allowed => {
            Diagnosis::fine(check, format!("the login may read {what}")).with("select", "allowed")
        }
        Access::Denied => Diagnosis::failure(check, format!("the login may not read {what}"))
            .with("select", "denied")
            .run(grant),
        Access::Missing => Diagnosis::failure(
            check,
            format!("{what} does not exist, or the login may not know of it"),
        )
        .with("select", "not found")
        .run(grant),
    }
}

fn table_right(seen: &Observations, state: &InstanceState) -> Diagnosis {
    let grant = statement::grant_table(&state.instance.table, seen.reader.user.as_ref());
    right(Check::TableRight, "the table", state.table, grant)
}

fn changes_right(seen: &Observations, state: &InstanceState) -> Diagnosis {
    let grant = statement::grant_changes(&state.instance.name, seen.reader.user.as_ref());
    right(Check::ChangeTableRight, "the change table", state.changes, grant)
}

/// What the instance can still serve, and how many hours that are.
fn window(seen: &Observations, state: &InstanceState) -> Diagnosis {
    let check = Check::Window;
    let start = state.instance.start;
    let low = match state.low {
        Bound::At(low) => low,
        Bound::Null | Bound::Zero => {
            return Diagnosis::warning(
                check,
                "the instance has no low position: capture has not come to the commit that enabled \
                 it. If this lasts longer than a few minutes, capture stands still",
            )
            .with("low", "none")
            .with("start", start)
            .run("EXEC sys.sp_cdc_start_job @job_type = N'capture'");
        }
    };
    let newest = seen.commits.seen().and_then(Option::as_ref).map(|commits| commits.newest);
    let minutes =
        newest.zip(state.low_reading).map(|(newest, oldest)| newest.seconds_since(oldest) / 60);
    let shown = |diagnosis: Diagnosis| {
        let diagnosis = diagnosis.with("low", low).with("start", start);
        let diagnosis = match newest {
            Some(newest) => diagnosis.with("high_time", newest),
            None => diagnosis,
        };
        match minutes {
            Some(minutes) => {
                diagnosis.with("hours", format_args!("{}.{}", minutes / 60, minutes % 60 / 6))
            }
            None => diagnosis,
        }
    };
    let Some(minutes) = minutes else {
        return shown(Diagnosis::unknown(
            check,
            "an entry of the mapping at the low position",
            None,
        ));
    };
    if low <= start {
        return shown(Diagnosis::fine(check, "nothing was removed since the instance was enabled"));
    }
    let raise = statement::retain(RETENTION_GOOD_MINUTES);
    if minutes < RETENTION_LEAST_MINUTES {
        return shown(Diagnosis::failure(
            check,
            "cleanup leaves less than a day of changes: a copy that is stopped longer loses them",
        ))
        .run(raise);
    }
    if minutes < RETENTION_GOOD_MINUTES {
        return shown(Diagnosis::warning(check, "cleanup leaves less than three days of changes"))
            .run(raise);
    }
    shown(Diagnosis::fine(check, "cleanup leaves three days of changes or more"))
}

/// Columns that the copy cannot have, or has only in part.
fn columns(state: &InstanceState) -> Vec<Diagnosis> {
    let check = Check::Columns;
    let instance = &state.instance;
    let mut found: Vec<_> = Finding::of_instance(instance)
        .into_iter()
        .map(|finding| {
            let outcome = match finding.level {
                FindingLevel::Note => Outcome::Note,
                FindingLevel::Warning => Outcome::Warning,
                FindingLevel::Failure => Outcome::Failure,
            };
            Diagnosis::new(check, outcome, finding.message)
                .with("captured_columns", instance.columns.len())
                .advise(finding.remedy)
        })
        .collect();
    let partial: Vec<_> = instance
        .columns
        .iter()
        .filter(|column| {
            matches!(
                column.null_meaning(),
                NullMeaning::UnknownBefore | NullMeaning::UnknownUnchanged
            )
        })
        .map(|column| column.name.as_str())
        .collect();
    if !partial.is_empty() {
        found.push(
            Diagnosis::note(
                check,
                "before images and deletes do not hold the old value of large objects: NULL there \
                 means unknown",
            )
            .with("columns", partial.join(", ")),
        );
    }
    if found.is_empty() {
        let count = instance.columns.len();
        found.push(
            Diagnosis::fine(check, "every captured column is filled by every change")
                .with("captured_columns", count),
        );
    }
    found
}

/// Columns of the table that no instance captures.
fn drift(state: &TableState, instances: &[InstanceState]) -> Diagnosis {
    let check = Check::Drift;
    let columns = match &state.columns {
        Observed::Seen(columns) => columns,
        Observed::Hidden { needs, statement } => {
            return Diagnosis::unknown(check, needs, statement.as_ref());
        }
    };
    let Some(newest) = instances.last().map(|state| &state.instance) else {
        return Diagnosis::note(check, "nothing is captured").with("instances", "none");
    };
    let captured = |id| newest.columns.iter().any(|column| column.id == id);
    let missing: Vec<_> = columns
        .iter()
        .filter(|column| !captured(column.id) && !column.computed)
        .map(|column| column.name.as_str())
        .collect();
    let gone: Vec<_> = newest
        .columns
        .iter()
        .filter(|column| columns.iter().all(|own| own.id != column.id))
        .map(|column| column.name.as_str())
        .collect();
    let shown = |diagnosis: Diagnosis| {
        let list = |names: &[&str]| match names {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        diagnosis.with("not_captured", list(&missing)).with("dropped", list(&gone))
    };
    if missing.is_empty() && gone.is_empty() {
        return shown(Diagnosis::fine(check, "the newest instance captures every stored column"));
    }
    if missing.is_empty() {
        return shown(Diagnosis::note(
            check,
            "captured columns were dropped from the table: they are NULL in every later change",
        ));
    }
    let found = shown(Diagnosis::warning(
        check,
        "columns of the table are not captured: the copy never has them. A second instance would \
         capture them, and the copy would go over to it by itself",
    ));
    if instances.len() >= INSTANCES_MAX {
        return found.advise(
            "disable the older instance first, once the copy has passed the newer's start",
        );
    }
    found.run(statement::enable(
        &newest.table,
        Some(&next_name(&newest.table, newest.name.as_str())),
    ))
}

/// A name for a second instance.
fn next_name(table: &TableName, taken: &str) -> String {
    let name = |number| format!("{}_{}_v{number}", table.schema, table.name);
    let first = name(2);
    if first == taken { name(3) } else { first }
}
