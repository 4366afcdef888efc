//! `cdc doctor` against a server over TDS, with one trouble at a time planted at the server. Each
//! finding offers a statement; run by an administrator, it mends what was found.

use std::{fs, net::TcpStream};

use serde_json::Value;

use crate::{
    fake::{Serving, batch, log_in},
    support::{Ended, Place, command, table},
};

const PASSWORD: &str = "P\u{e4}ss1!";

const SCRIPT: &str = "
CREATE DATABASE shop;
CREATE DATABASE bare;
GO
USE shop;
EXEC sys.sp_cdc_enable_db;
CREATE TABLE dbo.orders (
    id int NOT NULL PRIMARY KEY, amount decimal(10, 2) NULL, twice AS (amount * 2),
    note nvarchar(max) NULL
);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', @role_name = NULL;
CREATE TABLE dbo.gated (id int NOT NULL PRIMARY KEY);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'gated',
    @role_name = N'cdc_readers';
CREATE LOGIN reader WITH PASSWORD = N'P\u{e4}ss1!';
CREATE USER reader FOR LOGIN reader;
GRANT SELECT ON dbo.orders TO reader;
GRANT SELECT ON cdc.dbo_orders_CT TO reader;
GRANT SELECT ON dbo.gated TO reader;
GRANT SELECT ON cdc.dbo_gated_CT TO reader;
GO
USE shop;
INSERT dbo.orders (id, amount) VALUES (1, 1.50), (2, 2.50);
EXEC fake.advance_clock 10;
INSERT dbo.orders (id, amount) VALUES (3, 3.50);
EXEC fake.advance_clock 10;
GO
";

/// A server with trouble to be planted, and a session of its administrator.
struct Clinic {
    place: Place,
    serving: Serving,
    administrator: TcpStream,
}

impl Clinic {
    fn open() -> Self {
        let place = Place::new();
        let (script, certificate) = (place.path("start.sql"), place.path("server.pem"));
        fs::write(&script, SCRIPT).expect("is written");
        let (script, certificate) =
            (script.to_string_lossy().into_owned(), certificate.to_string_lossy().into_owned());
        let arguments = ["--clock", "virtual", "--script", &script, "--user", "tester"];
        let more = ["--password-env", "FAKE_PASSWORD", "--write-certificate", &certificate];
        let serving = Serving::start(&place, &[&arguments[..], &more].concat());
        let (administrator, _) = log_in(&serving.address, PASSWORD);
        Self { place, serving, administrator }
    }

    /// Runs statements as the administrator, in the database.
    fn run(&mut self, statements: &str) {
        let reply = batch(&mut self.administrator, &format!("USE shop; {statements}"));
        // An error is token 0xAA, whose text would say what is wrong.
        let text: Vec<u16> =
            reply.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        let text = String::from_utf16_lossy(&text);
        for refused in ["does not exist", "permission", "not supported", "Incorrect syntax"] {
            assert!(!text.contains(refused), "{statements}: {text}");
        }
    }

    /// The configuration of a login, with more keys of the source, for tables.
    fn configure(&self, login: &str, more: &str, tables: &[&str]) -> String {
        let port = self.serving.address.rsplit(':').next().expect("has a port");
        let mut text = format!(
            "[source]\nkind = \"sqlserver\"\nhost = \"localhost\"\nport = {port}\n\
             user = \"{login}\"\npassword_env = \"FAKE_PASSWORD\"\ntls_ca_file = \"{}\"\n{more}\n\
             [target]\nroot = \"lake\"\n",
            self.place.path("server.pem").display(),
        );
        if !more.contains("database =") {
            text = text.replace("port =", "database = \"shop\"\nport =");
        }
        for name in tables {
            text.push_str(&table(name, &name.replace('.', "_"), "earliest"));
        }
        let path = self.place.path("cdc.toml");
        fs::write(&path, text).expect("is written");
        path.to_string_lossy().into_owned()
    }

    /// What `cdc doctor` finds as a login.
    fn look(&self, login: &str, more: &str, tables: &[&str]) -> Findings {
        let config = self.configure(login, more, tables);
        let ended = doctor(&["doctor", &config, "--json"]);
        let report = ended.json();
        let findings = report["findings"].as_array().unwrap_or_else(|| panic!("{report}")).clone();
        let failed = findings.iter().any(|one| one["outcome"] == "failure");
        assert_eq!(ended.code, i32::from(failed), "{report}");
        assert!(!ended.stdout.contains(PASSWORD) && !ended.stderr.contains(PASSWORD));
        for one in &findings {
            assert!(!one["meaning"].as_str().expect("a text").is_empty(), "{one}");
            let seen = !one["evidence"].as_object().expect("an object").is_empty();
            assert!(seen || one["outcome"] == "unknown", "no evidence: {one}");
        }
        Findings(findings)
    }
}

fn doctor(arguments: &[&str]) -> Ended {
    let mut command = command(arguments);
    Ended::of(&command.env("FAKE_PASSWORD", PASSWORD).output().expect("the binary starts"))
}

struct Findings(Vec<Value>);

impl Findings {
    /// The worst that a check found.
    fn of(&self, check: &str) -> &Value {
        let found = self.0.iter().find(|one| one["check"] == check);
        found.unwrap_or_else(|| panic!("nothing about {check}"))
    }

    fn expect(&self, check: &str, outcome: &str) -> &Value {
        let found = self.of(check);
        assert_eq!(found["outcome"], outcome, "{found}");
        found
    }
}

fn statement(found: &Value) -> String {
    found["statement"].as_str().unwrap_or_else(|| panic!("no statement in {found}")).to_owned()
}

const ORDERS: &[&str] = &["dbo.orders"];

/// A trouble: how it is planted, which check finds it, how bad it is, what is seen, and what is
/// done beside the statement that is offered.
struct Trouble {
    plant: &'static str,
    check: &'static str,
    outcome: &'static str,
    seen: (&'static str, &'static str),
    mend: Mend,
}

enum Mend {
    /// The statement that is offered, then these.
    Offered(&'static str),
    /// These alone.
    Alone(&'static str),
}

const TROUBLES: &[Trouble] = &[
    Trouble {
        plant: "EXEC sys.sp_cdc_stop_job @job_type = N'capture'",
        check: "capture_activity",
        outcome: "failure",
        seen: ("running", "false"),
        mend: Mend::Offered(""),
    },
    Trouble {
        plant: "EXEC sys.sp_cdc_stop_job @job_type = N'capture'; \
                EXEC msdb.dbo.sp_update_job @job_name = N'cdc.shop_capture', @enabled = 0",
        check: "capture_activity",
        outcome: "failure",
        seen: ("enabled", "false"),
        mend: Mend::Offered(""),
    },
    Trouble {
        plant: "EXEC sys.sp_cdc_drop_job @job_type = N'capture'",
        check: "capture_job",
        outcome: "failure",
        seen: ("job", "none"),
        mend: Mend::Offered(""),
    },
    Trouble {
        plant: "EXEC sys.sp_cdc_change_job @job_type = N'capture', @continuous = 0",
        check: "capture_job",
        outcome: "warning",
        seen: ("continuous", "false"),
        mend: Mend::Offered(""),
    },
    Trouble {
        plant: "EXEC sys.sp_cdc_change_job @job_type = N'capture', @pollinginterval = 120",
        check: "capture_job",
        outcome: "warning",
        seen: ("pollinginterval_seconds", "120"),
        mend: Mend::Offered(""),
    },
    Trouble {
        plant: "EXEC fake.stop_agent",
        check: "agent",
        outcome: "failure",
        seen: ("status", "1"),
        mend: Mend::Alone("EXEC fake.start_agent"),
    },
    Trouble {
        plant: "EXEC sys.sp_cdc_stop_job @job_type = N'capture'; EXEC fake.advance_clock 1200",
        check: "capture_progress",
        outcome: "failure",
        seen: ("age_seconds", "1210"),
        mend: Mend::Offered("EXEC fake.advance_clock 310"),
    },
    Trouble {
        plant: "EXEC sys.sp_cdc_stop_job @job_type = N'capture'; \
                INSERT dbo.orders (id) VALUES (10); EXEC fake.advance_clock 1200",
        check: "log_reuse",
        outcome: "failure",
        seen: ("log_reuse_wait_desc", "REPLICATION"),
        mend: Mend::Offered(
            "EXEC fake.advance_clock 10; INSERT dbo.orders (id) VALUES (20); \
             EXEC fake.advance_clock 10",
        ),
    },
    Trouble {
        plant: "EXEC sys.sp_cdc_stop_job @job_type = N'capture'; \
                INSERT dbo.orders (id) VALUES (11); EXEC fake.advance_clock 600; \
                EXEC sys.sp_cdc_start_job @job_type = N'capture'; EXEC fake.advance_clock 5",
        check: "capture_latency",
        outcome: "warning",
        seen: ("latency_seconds", "605"),
        mend: Mend::Offered("INSERT dbo.orders (id) VALUES (12); EXEC fake.advance_clock 10"),
    },
    Trouble {
        plant: "EXEC fake.fail_scan 2628",
        check: "capture_errors",
        outcome: "warning",
        seen: ("error_number", "2628"),
        mend: Mend::Alone("EXEC fake.clear_scans"),
    },
    Trouble {
        plant: "EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 600",
        check: "retention",
        outcome: "failure",
        seen: ("retention_minutes", "600"),
        mend: Mend::Offered(""),
    },
    Trouble {
        plant: "EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 2880",
        check: "retention",
        outcome: "warning",
        seen: ("retention_minutes", "2880"),
        mend: Mend::Offered(""),
    },
    Trouble {
        plant: "EXEC sys.sp_cdc_drop_job @job_type = N'cleanup'",
        check: "cleanup_job",
        outcome: "warning",
        seen: ("job", "none"),
        mend: Mend::Offered(""),
    },
    Trouble {
        plant: "EXEC fake.fail_cleanup",
        check: "cleanup_progress",
        outcome: "warning",
        seen: ("last_run_outcome", "0"),
        mend: Mend::Alone("EXEC sys.sp_cdc_start_job @job_type = N'cleanup'"),
    },
    Trouble {
        plant: "EXEC sys.sp_configure N'max text repl size', 65536; RECONFIGURE",
        check: "text_limit",
        outcome: "warning",
        seen: ("max_text_repl_size", "65536"),
        mend: Mend::Offered(""),
    },
    Trouble {
        plant: "EXEC fake.set_replica N'SECONDARY'",
        check: "availability_group",
        outcome: "warning",
        seen: ("primary", "false"),
        mend: Mend::Alone("EXEC fake.set_replica"),
    },
    Trouble {
        plant: "ALTER TABLE dbo.orders ADD added int NULL",
        check: "drift",
        outcome: "warning",
        seen: ("not_captured", "added"),
        mend: Mend::Offered("EXEC fake.advance_clock 5"),
    },
];

#[test]
fn every_trouble_is_found_with_its_evidence_and_the_statement_that_mends_it() {
    let mut clinic = Clinic::open();
    clinic.run("EXEC sys.sp_configure N'max text repl size', -1; RECONFIGURE");
    let more = "time_zone = \"UTC\"";
    let healthy = clinic.look("tester", more, ORDERS);
    for one in &healthy.0 {
        assert!(["fine", "note"].contains(&one["outcome"].as_str().expect("a text")), "{one}");
    }
    let mut before = healthy;
    for trouble in TROUBLES {
        before.expect(trouble.check, "fine");
        clinic.run(trouble.plant);
        let found = clinic.look("tester", more, ORDERS);
        let found = found.expect(trouble.check, trouble.outcome);
        let (name, value) = trouble.seen;
        assert_eq!(found["evidence"][name], value, "{found}");
        match trouble.mend {
            Mend::Offered(then) => {
                let offered = statement(found);
                clinic.run(&offered);
                clinic.run(then);
            }
            Mend::Alone(then) => clinic.run(then),
        }
        before = clinic.look("tester", more, ORDERS);
        before.expect(trouble.check, "fine");
    }
}

#[test]
fn settings_that_do_not_fit_the_server_are_found() {
    let mut clinic = Clinic::open();
    let found = clinic.look("tester", "isolation = \"snapshot\"", ORDERS);
    let found = found.expect("snapshot_isolation", "failure");
    clinic.run(&statement(found));
    let found = clinic.look("tester", "isolation = \"snapshot\"", ORDERS);
    found.expect("snapshot_isolation", "fine");
    let found = clinic.look("tester", "time_zone = \"America/Sao_Paulo\"", ORDERS);
    let found = found.expect("clock_zone", "failure");
    assert_eq!(found["evidence"]["difference_seconds"], "10800", "{found}");
    clinic.look("tester", "", ORDERS).expect("clock_zone", "fine");
    clinic.run("EXEC fake.advance_clock 3600");
    clinic.look("tester", "", ORDERS).expect("clock_skew", "warning");
    let found = clinic.look("tester", "database = \"bare\"", ORDERS);
    assert_eq!(statement(found.expect("capture_enabled", "failure")), "EXEC sys.sp_cdc_enable_db");
    let found = clinic.look("tester", "", &["dbo.none"]);
    found.expect("instance", "failure");
}

#[test]
fn what_cleanup_leaves_and_what_columns_lack_is_found() {
    let mut clinic = Clinic::open();
    let found = clinic.look("tester", "", ORDERS);
    found.expect("window", "fine");
    found.expect("instance", "fine");
    let columns: Vec<_> = found.0.iter().filter(|one| one["check"] == "columns").collect();
    let all = format!("{columns:?}");
    assert!(all.contains("twice") && all.contains("note"), "{all}");
    assert!(columns.iter().all(|one| one["outcome"] == "note"), "{all}");
    // Two days later, with a retention of ten hours, cleanup has run.
    clinic.run(
        "EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 600; \
         EXEC fake.advance_clock 172800; EXEC sys.sp_cdc_start_job @job_type = N'cleanup'",
    );
    let found = clinic.look("tester", "", ORDERS);
    found.expect("heartbeat", "note");
    let window = found.expect("window", "failure");
    let hours: f64 =
        window["evidence"]["hours"].as_str().expect("hours").parse().expect("a number");
    assert!((9.5..10.5).contains(&hours), "{window}");
    assert!(statement(window).contains("@retention = 4320"), "{window}");
}

#[test]
fn a_login_with_the_least_rights_learns_what_each_unknown_needs() {
    let mut clinic = Clinic::open();
    let unknown = [
        "agent",
        "capture_errors",
        "capture_job",
        "capture_activity",
        "capture_latency",
        "cleanup_job",
        "cleanup_progress",
        "retention",
    ];
    let mut grants = Vec::new();
    let found = clinic.look("reader", "", ORDERS);
    for check in unknown {
        let one = found.expect(check, "unknown");
        assert!(one["meaning"].as_str().expect("a text").starts_with("unknown, needs"), "{one}");
        grants.push(statement(one));
    }
    // What everybody sees is known all the same.
    for check in ["capture_progress", "table_right", "change_table_right", "window", "clock_zone"] {
        found.expect(check, "fine");
    }
    let strict = clinic.configure("reader", "", ORDERS);
    assert_eq!(doctor(&["doctor", &strict]).code, 0);
    assert_eq!(doctor(&["doctor", &strict, "--strict"]).code, 1, "unknown is not fine");
    grants.sort_unstable();
    grants.dedup();
    for grant in grants {
        clinic.run(&grant);
    }
    let found = clinic.look("reader", "", ORDERS);
    for check in unknown {
        assert_ne!(found.of(check)["outcome"], "unknown", "{}", found.of(check));
    }
}

#[test]
fn each_missing_right_is_found_with_its_grant() {
    let mut clinic = Clinic::open();
    clinic.look("reader", "", ORDERS).expect("change_table_right", "fine");
    for (taken, check, offered) in [
        (
            "REVOKE SELECT ON cdc.dbo_orders_CT FROM reader",
            "change_table_right",
            "GRANT SELECT ON [cdc].[dbo_orders_CT] TO [reader]",
        ),
        (
            "REVOKE SELECT ON dbo.orders FROM reader",
            "table_right",
            "GRANT SELECT ON [dbo].[orders] TO [reader]",
        ),
    ] {
        clinic.run(taken);
        let found = clinic.look("reader", "", ORDERS);
        let grant = statement(found.expect(check, "failure"));
        assert_eq!(grant, offered);
        clinic.run(&grant);
        clinic.look("reader", "", ORDERS).expect(check, "fine");
    }
    // Not in the gating role: nothing is listed, though everything may be read.
    let found = clinic.look("reader", "", &["dbo.gated"]);
    let gate = found.expect("gating_role", "failure");
    assert!(statement(gate).contains("role_name"), "{gate}");
    clinic.run("GRANT SELECT ON cdc.change_tables TO reader");
    let found = clinic.look("reader", "", &["dbo.gated"]);
    let join = statement(found.expect("gating_role", "failure"));
    assert_eq!(join, "ALTER ROLE [cdc_readers] ADD MEMBER [reader]");
    clinic.run(&join);
    let found = clinic.look("reader", "", &["dbo.gated"]);
    let gate = found.expect("gating_role", "fine");
    assert_eq!(gate["evidence"]["role"], "cdc_readers", "{gate}");
}

#[test]
fn a_simulated_source_is_looked_at_in_the_same_way() {
    let place = Place::new();
    let config = place.write("rows = 50\n", &table("dbo.flights", "flights", "earliest"));
    let report = doctor(&["doctor", &config, "--json"]).json();
    let findings = report["findings"].as_array().expect("a list");
    assert!(findings.iter().any(|one| one["check"] == "window"), "{report}");
    assert!(report["counts"]["fine"].as_u64().expect("a number") > 10, "{report}");
    let text = doctor(&["doctor", &config]);
    assert!(text.stdout.contains("fine     capture_enabled:"), "{}", text.stdout);
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_and_no_finding() {
    let place = Place::new();
    let path = place.path("cdc.toml");
    let text = "[source]\nkind = \"sqlserver\"\nhost = \"127.0.0.1\"\nport = 1\ndatabase = \"d\"\n\
                user = \"u\"\npassword_env = \"FAKE_PASSWORD\"\nattempts_max = 1\n\
                [target]\nroot = \"lake\"\n[[tables]]\nsource = \"dbo.t\"\n";
    fs::write(&path, text).expect("is written");
    let report = doctor(&["doctor", &path.to_string_lossy(), "--json"]).expect(1);
    assert_eq!(report["error"]["kind"], "unavailable", "{report}");
    assert!(report.get("findings").is_none(), "{report}");
}
