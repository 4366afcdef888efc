//! Several targets for one table, one of them a PostgreSQL: each with its own mark.

use std::{fs, process::Command};

use cdc_cli::bronze::Bronze;

use crate::{
    private_server::{self, Server},
    support::{Place, cdc, table},
};

const KEY: [&str; 6] = ["year", "month", "day", "carrier", "flight", "origin"];

/// A server of the test's own; none, said by name, where the machine has no binaries.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn server() -> Option<Server> {
    match private_server::binaries() {
        Ok(binaries) => Some(Server::start(&binaries, &["fsync=off"]).expect("the server starts")),
        Err(reason) => {
            let required = std::env::var("CDC_REQUIRE").unwrap_or_default();
            let required = required.split(',').any(|name| name.trim() == "postgres");
            assert!(!required, "CDC_REQUIRE names postgres: {reason}");
            eprintln!("SKIPPED postgres: {reason}");
            None
        }
    }
}

/// What a query prints, a line a row.
fn query(server: &Server, text: &str) -> Vec<String> {
    let program = private_server::binaries().expect("they are there").join("psql");
    let output = Command::new(program)
        .args(["--no-psqlrc", "--tuples-only", "--no-align", "--username=cdc", "--host"])
        .arg(server.host())
        .args(["--port", &server.port().to_string(), "--command", text, "postgres"])
        .env("PGTZ", "UTC")
        .output()
        .expect("psql runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// A configuration with a lake and a PostgreSQL.
fn write(place: &Place, until: &str, host: &str, port: u16, tables: &str) -> String {
    let text = format!(
        "[source]\nkind = \"fake\"\n[source.fake]\nuntil = \"{until}\"\n\
         [targets.lake]\nroot = \"lake\"\n\
         [targets.db]\nkind = \"postgres\"\nhost = \"{host}\"\nport = {port}\n\
         database = \"postgres\"\nuser = \"cdc\"\nschema = \"copies\"\ntls = \"off\"\n\
         [run]\nretry_pause_first = \"1ms\"\nattempts_max = 2\n{tables}"
    );
    let path = place.path("cdc.toml");
    fs::write(&path, text).expect("is written");
    path.to_string_lossy().into_owned()
}

#[test]
fn every_target_gets_every_table_and_one_that_is_down_keeps_no_other() {
    let Some(mut server) = server() else { return };
    let place = Place::new();
    let (host, port) = (server.host(), server.port());
    let tables =
        table("dbo.flights", "flights", "earliest") + &table("dbo.planes", "planes", "earliest");
    let config = write(&place, "2013-10-26T04:00:00Z", &host, port, &tables);
    let first = cdc(&["run", &config, "--once", "--json"]).expect(0);
    let names: Vec<_> = (0..4).map(|n| first["tables"][n]["table"].clone()).collect();
    assert_eq!(names, ["db/flights", "db/planes", "lake/flights", "lake/planes"]);
    let line = |report: &serde_json::Value, n: usize| report["tables"][n].clone();
    assert_eq!(line(&first, 0)["mark"]["end"], line(&first, 2)["mark"]["end"]);
    equal(&server, &place);

    // The lake goes on without the server, and the run says what is wrong.
    server.kill().expect("is killed");
    let config = write(&place, "2013-10-27T04:00:00Z", &host, port, &tables);
    let alone = cdc(&["run", &config, "--once", "--json"]);
    assert_ne!(alone.code, 0, "{}", alone.stdout);
    let alone = alone.json();
    assert_eq!(line(&alone, 0)["error"]["kind"], "unavailable");
    assert!(line(&alone, 2)["rows"].as_u64().expect("a count") > 100, "{alone}");

    // Each goes on from its own mark.
    server.restart(&[]).expect("starts again");
    let config = write(&place, "2013-10-28T04:00:00Z", &host, port, &tables);
    let later = cdc(&["run", &config, "--once", "--json"]).expect(0);
    let rows = |n: usize| line(&later, n)["rows"].as_u64().expect("a count");
    assert!(rows(0) > rows(2), "the server had more to catch up: {later}");
    assert_eq!(line(&later, 0)["mark"]["end"], line(&later, 2)["mark"]["end"]);
    equal(&server, &place);

    let status = cdc(&["status", &config, "--json"]).expect(0);
    assert_eq!(status["status"][0]["table"], "db/flights");
    assert_eq!(status["status"][0]["mark"], line(&later, 0)["mark"]);
    assert_eq!(status["status"][3]["table"], "lake/planes");
}

/// Both targets hold the same flights.
fn equal(server: &Server, place: &Place) {
    let bronze = Bronze::new(place.lake().join("bronze/flights"));
    let columns = [&KEY[..], &["dep_delay", "tailnum"]].concat();
    let latest = bronze.latest(&KEY, &columns).expect("is read");
    let list: Vec<_> =
        columns.iter().map(|name| format!("coalesce({name}::text, 'NULL')")).collect();
    let text = format!("SELECT concat_ws('|', {}) FROM copies.flights_live", list.join(", "));
    let mut found = query(server, &text);
    found.sort();
    let shown = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "NULL".into());
    let mut expected: Vec<String> =
        latest.values().map(|row| row.iter().map(shown).collect::<Vec<_>>().join("|")).collect();
    expected.sort();
    assert!(found.len() > 400, "{} flights", found.len());
    assert!(found == expected, "the targets differ");
}
