//! A test a rule, and one that holds for every observation: what was hidden is never fine.

use proptest::prelude::*;

use super::*;
use crate::{
    error::ErrorKind,
    lsn::Lsn,
    port::Bound,
    position::Position,
    sql_type::{Length, SqlType},
    table::{CaptureInstance, Column, InstanceName, TableRef},
    time::{ServerTime, ServerZone, Timestamp},
};

const HOUR: i64 = 3_600;

fn orders() -> TableName {
    TableName::new("dbo", "orders")
}

fn at(lsn: u128) -> Position {
    Lsn::from_u128(lsn).expect("fits").into()
}

/// Noon of a day on a server in UTC.
fn noon() -> Timestamp {
    Timestamp::from_micros(1_750_334_400_000_000)
}

fn reading(seconds_ago: i64) -> ServerTime {
    let moment = noon().plus_micros(-seconds_ago * 1_000_000);
    ServerZone::UTC.reading(moment).expect("in range")
}

fn instance(columns: Vec<Column>) -> InstanceState {
    InstanceState {
        instance: CaptureInstance {
            name: InstanceName::new("dbo_orders"),
            table: orders(),
            start: at(16),
            columns,
            key: vec!["id".into()],
        },
        role: None,
        table: Access::Allowed,
        changes: Access::Allowed,
        low: Bound::At(at(16)),
        low_reading: Some(reading(HOUR)),
    }
}

fn id() -> Column {
    Column::new("id", 1, SqlType::Int, false)
}

/// A source with nothing wrong.
fn healthy() -> Observations {
    let job = |name: &str, running| JobActivity {
        name: format!("cdc.shop_{name}"),
        enabled: true,
        running,
        last_outcome: Some(1),
    };
    Observations {
        now: noon(),
        reader: Reader {
            user: Some("reader".into()),
            isolation: RowIsolation::ReadCommitted,
            encrypted: true,
            any_certificate: false,
            zone: Some(ServerZone::UTC),
            read_only_intent: false,
        },
        server: ServerState {
            version: Some(16),
            edition: Edition::Server,
            utc: noon(),
            reading: reading(0),
        },
        database: Observed::Seen(DatabaseState {
            name: "shop".into(),
            captured: true,
            snapshot_isolation: 0,
            read_committed_snapshot: true,
            log_reuse_wait: "NOTHING".into(),
            published: false,
            in_group: false,
            writable: true,
        }),
        primary: Observed::Seen(true),
        agent: Observed::Seen(Some(4)),
        jobs: Observed::Seen(Jobs {
            capture: Some(CaptureJob {
                continuous: true,
                polling_seconds: 5,
                max_transactions: 500,
                max_scans: 10,
            }),
            cleanup: Some(CleanupJob { retention_minutes: 4_320, threshold: 5_000 }),
        }),
        capture_activity: Observed::Seen(Some(job("capture", true))),
        cleanup_activity: Observed::Seen(Some(job("cleanup", false))),
        scans: Observed::Seen(Some(CaptureScan { latency_seconds: 2, failed: 0, empty: 3 })),
        errors: Observed::Seen(CaptureErrors::default()),
        log_used: Observed::Seen(Some(3)),
        text_limit: Observed::Seen(65_536),
        commits: Observed::Seen(Some(Commits {
            newest: reading(20),
            longest_pause_seconds: Some(20),
        })),
        tables: vec![TableState {
            reference: TableRef::Table(orders()),
            instances: Ok(vec![instance(vec![id()])]),
            columns: Observed::Seen(vec![id()]),
        }],
    }
}

/// What a check finds after a change of a healthy source. Checks of several findings give the
/// worst.
fn check(check: Check, change: impl FnOnce(&mut Observations)) -> Diagnosis {
    let mut seen = healthy();
    change(&mut seen);
    let mut found: Vec<_> = diagnose(&seen).into_iter().filter(|one| one.check == check).collect();
    found.sort_by_key(|one| one.outcome);
    found.pop().unwrap_or_else(|| panic!("nothing was said about {check}"))
}

fn database(seen: &mut Observations) -> &mut DatabaseState {
    let Observed::Seen(database) = &mut seen.database else { panic!("was seen") };
    database
}

fn jobs(seen: &mut Observations) -> &mut Jobs {
    let Observed::Seen(jobs) = &mut seen.jobs else { panic!("was seen") };
    jobs
}

fn first(seen: &mut Observations) -> &mut InstanceState {
    let Ok([state, ..]) = seen.tables[0].instances.as_deref_mut() else { panic!("is listed") };
    state
}

fn value<'a>(found: &'a Diagnosis, name: &str) -> &'a str {
    let value = found.evidence.iter().find(|(own, _)| *own == name);
    value.map_or_else(|| panic!("{name} in {found:?}"), |(_, value)| value.as_str())
}

fn run(found: &Diagnosis) -> &str {
    found.statement.as_deref().unwrap_or_else(|| panic!("a statement in {found:?}"))
}

#[test]
fn a_healthy_source_is_fine_in_every_respect() {
    let found = diagnose(&healthy());
    for one in &found {
        assert_eq!(one.outcome, Outcome::Fine, "{one:?}");
        assert!(!one.evidence.is_empty(), "no evidence in {one:?}");
    }
    let mut checks: Vec<_> = found.iter().map(|one| one.check).collect();
    checks.sort_unstable();
    checks.dedup();
    assert_eq!(checks.len(), Check::ALL.len(), "every check says something");
}

#[test]
fn a_database_without_capture_is_a_failure() {
    let found = check(Check::CaptureEnabled, |seen| database(seen).captured = false);
    assert_eq!(found.outcome, Outcome::Failure);
    assert_eq!(run(&found), "EXEC sys.sp_cdc_enable_db");
    assert_eq!(value(&found, "is_cdc_enabled"), "false");
}

#[test]
fn a_connection_that_can_be_read_or_changed_on_the_way_is_warned_about() {
    let found = check(Check::Encryption, |seen| seen.reader.encrypted = false);
    assert_eq!(found.outcome, Outcome::Warning);
    let found = check(Check::Encryption, |seen| seen.reader.any_certificate = true);
    assert_eq!(found.outcome, Outcome::Warning);
}

#[test]
fn an_agent_that_does_not_run_is_a_failure_and_azure_needs_none() {
    let found = check(Check::Agent, |seen| seen.agent = Observed::Seen(Some(1)));
    assert_eq!((found.outcome, value(&found, "status")), (Outcome::Failure, "1"));
    let found = check(Check::Agent, |seen| seen.agent = Observed::Seen(None));
    assert_eq!(found.outcome, Outcome::Unknown);
    let azure = |seen: &mut Observations| {
        seen.server.edition = Edition::AzureDatabase;
        seen.agent = Observed::hidden("x");
        jobs(seen).capture.as_mut().expect("one").polling_seconds = 0;
    };
    for name in [Check::Agent, Check::CaptureJob, Check::CaptureActivity] {
        assert_eq!(check(name, azure).outcome, Outcome::Fine, "{name}");
    }
}

#[test]
fn a_missing_capture_job_is_a_failure_unless_somebody_else_captures() {
    let missing = |seen: &mut Observations| jobs(seen).capture = None;
    let found = check(Check::CaptureJob, missing);
    assert_eq!(found.outcome, Outcome::Failure);
    assert_eq!(run(&found), "EXEC sys.sp_cdc_add_job @job_type = N'capture'");
    let found = check(Check::CaptureJob, |seen| {
        missing(seen);
        database(seen).published = true;
    });
    assert_eq!(found.outcome, Outcome::Note, "the log reader of replication captures");
    let found = check(Check::CaptureJob, |seen| {
        missing(seen);
        database(seen).in_group = true;
        seen.primary = Observed::Seen(false);
    });
    assert_eq!(found.outcome, Outcome::Note, "the primary captures");
}

#[test]
fn a_capture_job_that_scans_seldom_or_once_is_warned_about() {
    let capture = |seen: &mut Observations| jobs(seen).capture.expect("one");
    let found = check(Check::CaptureJob, |seen| {
        jobs(seen).capture = Some(CaptureJob { continuous: false, ..capture(seen) });
    });
    assert_eq!(found.outcome, Outcome::Warning);
    assert!(run(&found).contains("@continuous = 1"));
    let found = check(Check::CaptureJob, |seen| {
        jobs(seen).capture = Some(CaptureJob { polling_seconds: 61, ..capture(seen) });
    });
    assert_eq!((found.outcome, value(&found, "pollinginterval_seconds")), (Outcome::Warning, "61"));
}

#[test]
fn a_capture_job_that_is_stopped_disabled_or_unknown_is_a_failure() {
    let job = |change: fn(&mut JobActivity)| {
        check(Check::CaptureActivity, move |seen| {
            let Observed::Seen(Some(job)) = &mut seen.capture_activity else { panic!("seen") };
            change(job);
        })
    };
    let found = job(|job| job.running = false);
    assert_eq!(found.outcome, Outcome::Failure);
    assert_eq!(run(&found), "EXEC sys.sp_cdc_start_job @job_type = N'capture'");
    let found = job(|job| job.enabled = false);
    assert_eq!(found.outcome, Outcome::Failure);
    assert!(run(&found).contains("sp_update_job @job_name = N'cdc.shop_capture', @enabled = 1"));
    let none = |seen: &mut Observations| seen.capture_activity = Observed::Seen(None);
    assert_eq!(check(Check::CaptureActivity, none).outcome, Outcome::Failure);
}

#[test]
fn capture_stands_still_when_its_newest_entry_is_older_than_three_idle_intervals() {
    let aged = |seconds: i64| {
        check(Check::CaptureProgress, |seen| {
            let commits = Commits { newest: reading(seconds), longest_pause_seconds: None };
            seen.commits = Observed::Seen(Some(commits));
        })
    };
    assert_eq!(aged(305).outcome, Outcome::Fine, "an idle database");
    assert_eq!(aged(915).outcome, Outcome::Fine);
    let found = aged(917);
    assert_eq!((found.outcome, value(&found, "age_seconds")), (Outcome::Failure, "917"));
    assert_eq!(aged(-2_000).outcome, Outcome::Note, "the clock was put back");
    let none = |seen: &mut Observations| seen.commits = Observed::Seen(None);
    assert_eq!(check(Check::CaptureProgress, none).outcome, Outcome::Warning);
}

#[test]
fn capture_that_is_behind_its_log_is_warned_about() {
    let late = CaptureScan { latency_seconds: 301, failed: 0, empty: 0 };
    let found = check(Check::CaptureLatency, |seen| seen.scans = Observed::Seen(Some(late)));
    assert_eq!((found.outcome, value(&found, "latency_seconds")), (Outcome::Warning, "301"));
    let none = |seen: &mut Observations| seen.scans = Observed::Seen(None);
    assert_eq!(check(Check::CaptureLatency, none).outcome, Outcome::Note);
}

#[test]
fn errors_of_capture_are_shown_by_number() {
    let errors = CaptureErrors { count: 2, number: Some(2_628), at: Some(reading(60)) };
    let found = check(Check::CaptureErrors, |seen| seen.errors = Observed::Seen(errors));
    assert_eq!((found.outcome, value(&found, "error_number")), (Outcome::Warning, "2628"));
    assert_eq!(value(&found, "errors"), "2");
}

#[test]
fn retention_of_less_than_a_day_loses_data_and_of_less_than_three_is_warned_about() {
    let kept = |minutes| {
        check(Check::Retention, |seen| {
            let job = CleanupJob { retention_minutes: minutes, threshold: 5_000 };
            jobs(seen).cleanup = Some(job);
        })
    };
    let found = kept(1_439);
    assert_eq!((found.outcome, value(&found, "retention_minutes")), (Outcome::Failure, "1439"));
    assert!(run(&found).ends_with("@retention = 4320"), "{found:?}");
    assert_eq!(kept(1_440).outcome, Outcome::Warning);
    assert_eq!(kept(4_319).outcome, Outcome::Warning);
    assert_eq!(kept(4_320).outcome, Outcome::Fine);
}

#[test]
fn without_a_cleanup_job_change_tables_grow() {
    let none = |seen: &mut Observations| jobs(seen).cleanup = None;
    let found = check(Check::CleanupJob, none);
    assert_eq!(found.outcome, Outcome::Warning);
    assert_eq!(run(&found), "EXEC sys.sp_cdc_add_job @job_type = N'cleanup'");
    assert_eq!(check(Check::Retention, none).outcome, Outcome::Note);
}

#[test]
fn a_cleanup_that_failed_or_is_days_behind_is_warned_about() {
    let found = check(Check::CleanupProgress, |seen| {
        let Observed::Seen(Some(job)) = &mut seen.cleanup_activity else { panic!("seen") };
        job.last_outcome = Some(0);
    });
    assert_eq!((found.outcome, value(&found, "last_run_outcome")), (Outcome::Warning, "0"));
    let oldest = |hours: i64| {
        check(Check::CleanupProgress, |seen| {
            first(seen).low_reading = Some(reading(hours * HOUR + 20));
        })
    };
    assert_eq!(oldest(72 + 48).outcome, Outcome::Fine, "it runs once a day");
    let found = oldest(72 + 49);
    assert_eq!((found.outcome, value(&found, "retention_minutes")), (Outcome::Warning, "4320"));
}

#[test]
fn a_quiet_database_has_a_note_about_heartbeats() {
    let found = check(Check::Heartbeat, |seen| {
        let commits = Commits { newest: reading(20), longest_pause_seconds: Some(305) };
        seen.commits = Observed::Seen(Some(commits));
    });
    assert_eq!((found.outcome, value(&found, "longest_pause_seconds")), (Outcome::Note, "305"));
    assert!(run(&found).contains("cdc_heartbeat"));
}

#[test]
fn a_log_that_waits_for_capture_fails_only_when_capture_stands_still() {
    let waits = |seen: &mut Observations| database(seen).log_reuse_wait = "REPLICATION".into();
    assert_eq!(check(Check::LogReuse, waits).outcome, Outcome::Note);
    let found = check(Check::LogReuse, |seen| {
        waits(seen);
        let commits = Commits { newest: reading(20 * HOUR), longest_pause_seconds: None };
        seen.commits = Observed::Seen(Some(commits));
    });
    assert_eq!(found.outcome, Outcome::Failure);
    assert_eq!(value(&found, "log_reuse_wait_desc"), "REPLICATION");
    let found = check(Check::LogReuse, |seen| {
        waits(seen);
        seen.commits = Observed::hidden("x");
    });
    assert_eq!(found.outcome, Outcome::Warning, "nobody knows whether capture moves");
    let found = check(Check::LogReuse, |seen| {
        database(seen).log_reuse_wait = "AVAILABILITY_REPLICA".into();
    });
    assert_eq!(found.outcome, Outcome::Warning);
    let found = check(Check::LogReuse, |seen| {
        database(seen).log_reuse_wait = "LOG_BACKUP".into();
        seen.log_used = Observed::Seen(Some(80));
    });
    assert_eq!((found.outcome, value(&found, "log_used_percent")), (Outcome::Warning, "80"));
}

#[test]
fn snapshot_isolation_fails_only_when_it_is_wanted_and_not_allowed() {
    let found = |wanted: bool, on: i64, versions: bool| {
        check(Check::SnapshotIsolation, |seen| {
            if wanted {
                seen.reader.isolation = RowIsolation::Snapshot;
            }
            database(seen).snapshot_isolation = on;
            database(seen).read_committed_snapshot = versions;
        })
    };
    let refused = found(true, 0, true);
    assert_eq!(refused.outcome, Outcome::Failure);
    assert_eq!(run(&refused), "ALTER DATABASE [shop] SET ALLOW_SNAPSHOT_ISOLATION ON");
    assert_eq!(found(true, 2, true).outcome, Outcome::Failure, "on its way off");
    assert_eq!(found(true, 1, false).outcome, Outcome::Fine);
    assert_eq!(found(false, 1, false).outcome, Outcome::Note);
    assert_eq!(found(false, 0, false).outcome, Outcome::Note);
    assert_eq!(found(false, 0, true).outcome, Outcome::Fine);
}

#[test]
fn a_secondary_is_warned_about_and_a_primary_has_a_note_on_failover() {
    let found = |primary: Observed<bool>, writable: bool| {
        check(Check::AvailabilityGroup, |seen| {
            database(seen).in_group = true;
            database(seen).writable = writable;
            seen.primary = primary;
        })
    };
    let primary = found(Observed::Seen(true), true);
    assert_eq!(primary.outcome, Outcome::Note);
    assert!(run(&primary).contains("sp_cdc_add_job"));
    assert_eq!(found(Observed::Seen(false), true).outcome, Outcome::Warning);
    assert_eq!(found(Observed::hidden("x"), true).outcome, Outcome::Unknown);
    let readable = found(Observed::hidden("x"), false);
    assert_eq!(readable.outcome, Outcome::Warning, "what takes no writes is no primary");
}

#[test]
fn a_limit_of_large_objects_matters_where_one_is_captured() {
    let large = Column::new("doc", 2, SqlType::NVarChar(Length::Max), true);
    let found = |limit: i64, columns: Vec<Column>| {
        check(Check::TextLimit, |seen| {
            seen.text_limit = Observed::Seen(limit);
            *first(seen) = instance(columns);
        })
    };
    let limited = found(65_536, vec![id(), large.clone()]);
    assert_eq!(
        (limited.outcome, value(&limited, "max_text_repl_size")),
        (Outcome::Warning, "65536")
    );
    assert!(run(&limited).contains("N'max text repl size', -1"));
    assert_eq!(found(-1, vec![id(), large]).outcome, Outcome::Fine);
    assert_eq!(found(65_536, vec![id()]).outcome, Outcome::Fine);
}

#[test]
fn a_zone_that_the_servers_clock_does_not_show_is_a_failure() {
    let zone = |zone: Option<ServerZone>| check(Check::ClockZone, |seen| seen.reader.zone = zone);
    let berlin = ServerZone::parse("zone", "Europe/Berlin").expect("is one");
    let found = zone(Some(berlin));
    assert_eq!((found.outcome, value(&found, "difference_seconds")), (Outcome::Failure, "-7200"));
    assert_eq!(zone(None).outcome, Outcome::Failure);
    assert_eq!(zone(Some(ServerZone::fixed(0).expect("is one"))).outcome, Outcome::Note);
}

#[test]
fn clocks_that_differ_are_warned_about() {
    let found = check(Check::ClockSkew, |seen| seen.now = noon().plus_micros(-90_000_000));
    assert_eq!((found.outcome, value(&found, "difference_seconds")), (Outcome::Warning, "90"));
}

fn unlisted(table: Access, changes: Access, role: Option<&str>) -> Unlisted {
    Unlisted {
        kind: ErrorKind::Config,
        message: "nothing is captured under this name".into(),
        advice: "did you mean".into(),
        table,
        changes,
        role: role.map(str::to_owned),
    }
}

#[test]
fn what_keeps_a_table_from_being_listed_is_told_apart() {
    use Access::{Allowed, Denied, Missing};
    let found = |table, changes, role| {
        let mut seen = healthy();
        seen.tables[0].instances = Err(unlisted(table, changes, role));
        let found = diagnose(&seen);
        let mut own: Vec<_> = found.into_iter().filter(|one| one.table.is_some()).collect();
        assert_eq!(own.len(), 1, "{own:?}");
        let one = own.remove(0);
        assert_eq!(one.outcome, Outcome::Failure);
        one
    };
    let right = found(Denied, Missing, None);
    assert_eq!(right.check, Check::TableRight);
    assert_eq!(run(&right), "GRANT SELECT ON [dbo].[orders] TO [reader]");
    let role = found(Allowed, Allowed, Some("cdc_readers"));
    assert_eq!(role.check, Check::GatingRole);
    assert_eq!(run(&role), "ALTER ROLE [cdc_readers] ADD MEMBER [reader]");
    let role = found(Allowed, Denied, None);
    assert_eq!(role.check, Check::GatingRole);
    assert!(run(&role).contains("SELECT capture_instance, role_name"), "{role:?}");
    let uncaptured = found(Allowed, Missing, None);
    assert_eq!(uncaptured.check, Check::Instance);
    assert!(run(&uncaptured).contains("sp_cdc_enable_table"), "{uncaptured:?}");
    assert_eq!(found(Missing, Missing, None).check, Check::Instance);
}

#[test]
fn each_right_that_is_missing_has_its_grant() {
    let found = check(Check::TableRight, |seen| first(seen).table = Access::Denied);
    assert_eq!(found.outcome, Outcome::Failure);
    assert_eq!(run(&found), "GRANT SELECT ON [dbo].[orders] TO [reader]");
    let found = check(Check::ChangeTableRight, |seen| first(seen).changes = Access::Denied);
    assert_eq!(found.outcome, Outcome::Failure);
    assert_eq!(run(&found), "GRANT SELECT ON [cdc].[dbo_orders_CT] TO [reader]");
    let found = check(Check::ChangeTableRight, |seen| first(seen).changes = Access::Missing);
    assert_eq!(found.outcome, Outcome::Failure);
}

#[test]
fn a_window_is_judged_by_its_hours_once_cleanup_has_moved_it() {
    let cleaned = |seconds: i64| {
        check(Check::Window, |seen| {
            let state = first(seen);
            state.low = Bound::At(at(32));
            state.low_reading = Some(reading(seconds + 20));
        })
    };
    let found = cleaned(23 * HOUR + 1_800);
    assert_eq!((found.outcome, value(&found, "hours")), (Outcome::Failure, "23.5"));
    assert_eq!(cleaned(24 * HOUR).outcome, Outcome::Warning);
    assert_eq!(cleaned(72 * HOUR).outcome, Outcome::Fine);
    let fresh = check(Check::Window, |seen| first(seen).low_reading = Some(reading(60)));
    assert_eq!(fresh.outcome, Outcome::Fine, "nothing was removed from a new instance");
    for low in [Bound::Null, Bound::Zero] {
        let found = check(Check::Window, |seen| first(seen).low = low);
        assert_eq!(found.outcome, Outcome::Warning, "never 'nothing was removed'");
    }
    let found = check(Check::Window, |seen| first(seen).low_reading = None);
    assert_eq!(found.outcome, Outcome::Unknown);
}

#[test]
fn columns_that_changes_do_not_fill_are_named() {
    let mut computed = Column::new("total", 2, SqlType::Int, true);
    computed.computed = true;
    let variant = Column::new("any", 3, SqlType::Other("sql_variant".into()), true);
    let large = Column::new("doc", 4, SqlType::Text, true);
    let found =
        |column: Column| check(Check::Columns, |seen| *first(seen) = instance(vec![id(), column]));
    let one = found(computed);
    assert_eq!(one.outcome, Outcome::Note);
    assert!(one.meaning.contains("total"), "{one:?}");
    let one = found(variant);
    assert_eq!(one.outcome, Outcome::Failure);
    assert!(one.meaning.contains("any"), "{one:?}");
    let one = found(large);
    assert_eq!((one.outcome, value(&one, "columns")), (Outcome::Note, "doc"));
    let keyless = check(Check::Columns, |seen| first(seen).instance.key.clear());
    assert_eq!(keyless.outcome, Outcome::Warning);
    // A row version has the form of eight bytes, as in the change table.
    let version = Column::new("version", 5, SqlType::RowVersion, false);
    assert_eq!(found(version).outcome, Outcome::Fine);
}

#[test]
fn columns_that_nothing_captures_are_warned_about() {
    let added = Column::new("added", 9, SqlType::Int, true);
    let found = check(Check::Drift, |seen| {
        seen.tables[0].columns = Observed::Seen(vec![id(), added.clone()]);
    });
    assert_eq!((found.outcome, value(&found, "not_captured")), (Outcome::Warning, "added"));
    assert!(run(&found).contains("@capture_instance = N'dbo_orders_v2'"), "{found:?}");
    let found = check(Check::Drift, |seen| {
        *first(seen) = instance(vec![id(), added.clone()]);
    });
    assert_eq!((found.outcome, value(&found, "dropped")), (Outcome::Note, "added"));
    let mut computed = added;
    computed.computed = true;
    let found = check(Check::Drift, |seen| {
        seen.tables[0].columns = Observed::Seen(vec![id(), computed]);
    });
    assert_eq!(found.outcome, Outcome::Fine, "a computed column cannot be captured");
}

#[test]
fn a_table_with_two_instances_is_told_which_one_to_disable() {
    let found = check(Check::Instance, |seen| {
        let mut second = instance(vec![id()]);
        second.instance.name = InstanceName::new("dbo_orders_v2");
        let Ok(instances) = &mut seen.tables[0].instances else { panic!("is listed") };
        instances.push(second);
    });
    assert_eq!(found.outcome, Outcome::Note);
    assert!(run(&found).ends_with("@capture_instance = N'dbo_orders'"), "{found:?}");
}

#[test]
fn names_in_statements_are_quoted() {
    let name = TableName::new("a]b", "it's");
    assert_eq!(
        statement::grant_table(&name, None),
        "GRANT SELECT ON [a]]b].[it's] TO [the login's user]"
    );
    assert!(statement::enable(&name, None).contains("@source_name = N'it''s'"));
}

/// Hides what a bit of `hidden` says, in the order of [`Observations`].
fn hide(seen: &mut Observations, hidden: u16) -> Vec<Check> {
    fn hide<T>(seen: &mut Observed<T>) {
        *seen = Observed::Hidden { needs: "a right".into(), statement: Some("GRANT it".into()) };
    }
    let mut checks = Vec::new();
    let bit = |at: u32| hidden >> at & 1 == 1;
    if bit(0) {
        hide(&mut seen.database);
        checks.extend([
            Check::CaptureEnabled,
            Check::LogReuse,
            Check::SnapshotIsolation,
            Check::AvailabilityGroup,
        ]);
    }
    if bit(1) {
        hide(&mut seen.agent);
        checks.push(Check::Agent);
    }
    if bit(2) {
        hide(&mut seen.jobs);
        checks.extend([Check::CaptureJob, Check::CleanupJob, Check::Retention]);
    }
    if bit(3) {
        hide(&mut seen.capture_activity);
        checks.push(Check::CaptureActivity);
    }
    if bit(4) {
        hide(&mut seen.scans);
        checks.push(Check::CaptureLatency);
    }
    if bit(5) {
        hide(&mut seen.errors);
        checks.push(Check::CaptureErrors);
    }
    if bit(6) {
        hide(&mut seen.text_limit);
        checks.push(Check::TextLimit);
    }
    if bit(7) {
        hide(&mut seen.commits);
        checks.extend([Check::CaptureProgress, Check::Heartbeat, Check::Window]);
    }
    if bit(8) {
        hide(&mut seen.tables[0].columns);
        checks.push(Check::Drift);
    }
    if bit(9) {
        // The window and the retention tell as much.
        hide(&mut seen.cleanup_activity);
    }
    if bit(2) || bit(7) {
        checks.push(Check::CleanupProgress);
    }
    checks
}

proptest! {
    #[test]
    fn what_was_hidden_is_unknown_and_says_what_is_needed(hidden in 0_u16..1_024) {
        let mut seen = healthy();
        let checks = hide(&mut seen, hidden);
        for one in diagnose(&seen) {
            if checks.contains(&one.check) {
                prop_assert_eq!(one.outcome, Outcome::Unknown, "{:?}", one);
                prop_assert!(one.meaning.starts_with("unknown, needs "), "{:?}", one);
            } else {
                prop_assert_ne!(one.outcome, Outcome::Unknown, "{:?}", one);
            }
        }
    }
}

#[test]
fn names_of_checks_and_outcomes_are_told_apart() {
    let mut names: Vec<_> = Check::ALL.iter().map(|check| check.name()).collect();
    names.extend(Outcome::ALL.iter().map(|outcome| outcome.name()));
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
