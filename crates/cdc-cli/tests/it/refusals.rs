//! Bad input: a clear error that says what to do, the right exit code, and nothing written.

use std::fs;

use serde_json::Value;

use crate::support::{Place, cdc, files, table};

const DAY: &str = "until = \"2013-10-26T04:00:00Z\"";

/// The error of a run's only table.
fn stopped(report: &Value) -> (&str, &str, &str) {
    let error = &report["tables"][0]["error"];
    let text = |key: &str| error[key].as_str().unwrap_or_else(|| panic!("{key} in {report}"));
    (text("kind"), text("message"), text("advice"))
}

/// Runs a configuration that has to be refused, with nothing left behind.
fn refused(place: &Place, fake: &str, more: &str, code: i32) -> Value {
    let config = place.write(fake, more);
    let report = cdc(&["run", &config, "--once", "--json"]).expect(code);
    assert_eq!(files(&place.lake()), [], "nothing is written");
    report
}

#[test]
fn an_unknown_instance_is_bad_configuration() {
    let place = Place::new();
    let table = "[[tables]]\ninstance = \"dbo_flihgts\"\ntarget = \"flights\"\n";
    let report = refused(&place, DAY, table, 2);
    let (kind, message, advice) = stopped(&report);
    assert_eq!(kind, "config");
    assert!(message.contains("dbo_flihgts"), "{message}");
    assert!(advice.contains("capture"), "{advice}");
}

#[test]
fn a_table_without_capture_is_bad_configuration() {
    let place = Place::new();
    let fake = format!("{DAY}\ncapture = [\"flights\"]");
    let report = refused(&place, &fake, &table("dbo.planes", "planes", "earliest"), 2);
    let (kind, message, advice) = stopped(&report);
    assert_eq!(kind, "config");
    assert!(message.contains("dbo.planes"), "{message}");
    assert!(advice.contains("enable the table for capture"), "{advice}");
}

#[test]
fn a_start_that_cleanup_has_passed_is_data_loss() {
    let fake = "until = \"2013-10-28T04:00:00Z\"\nretention = \"12h\"";
    for start in ["0x00000000000000000001", "2013-10-25T12:00:00Z"] {
        let place = Place::new();
        let report = refused(&place, fake, &table("dbo.flights", "flights", start), 3);
        let (kind, _, advice) = stopped(&report);
        assert_eq!(kind, "data_loss", "{start}");
        assert!(advice.contains("earliest"), "{advice}");
    }
    // What is left can be copied.
    let place = Place::new();
    let config = place.write(fake, &table("dbo.flights", "flights", "earliest"));
    cdc(&["run", &config, "--once", "--json"]).expect(0);
}

#[test]
fn a_start_in_the_future_is_bad_configuration() {
    let place = Place::new();
    let future = table("dbo.flights", "flights", "0x7FFFFFFFFFFFFFFFFFFF");
    let report = refused(&place, DAY, &future, 2);
    let (kind, message, advice) = stopped(&report);
    assert_eq!(kind, "config");
    assert!(message.contains("future") && message.contains("setting=start"), "{message}");
    assert!(advice.contains("latest"), "{advice}");
    // The server's present is in 2013.
    let tomorrow = table("dbo.flights", "flights", "2013-10-27T04:00:00Z");
    let report = refused(&Place::new(), DAY, &tomorrow, 2);
    let (kind, message, advice) = stopped(&report);
    assert_eq!(kind, "config");
    assert!(message.contains("future") && message.contains("setting=start"), "{message}");
    assert!(advice.contains("latest"), "{advice}");
}

#[test]
fn every_mistake_of_a_file_is_told_at_once_to_people_and_programs() {
    let place = Place::new();
    let config = place.write("sede = 1", "[[tables]]\nsource = \"flights\"\nstart = \"lastest\"\n");
    let ended = cdc(&["run", &config, "--json"]);
    let report = ended.expect(2);
    let problems = report["error"]["problems"].as_array().expect("a list");
    let paths: Vec<_> = problems.iter().map(|problem| problem["path"].as_str()).collect();
    let expected = ["source.fake.sede", "tables[0].source", "tables[0].start"].map(Some);
    assert_eq!(paths, expected);
    assert_eq!(problems[0]["suggestion"], "seed");
    let text = cdc(&["status", &config]);
    assert_eq!(text.code, 2);
    assert!(text.stdout.contains("tables[0].start: \"lastest\""), "{}", text.stdout);
    assert!(text.stdout.contains("did you mean \"latest\"?"), "{}", text.stdout);
    assert!(!place.lake().exists());
}

#[test]
fn a_configuration_that_is_not_there_is_told_by_its_whole_path() {
    let place = Place::new();
    for arguments in [["run", "nowhere.toml", "--json"], ["status", "nowhere.toml", "--json"]] {
        let mut command = crate::support::command(&arguments);
        let output = command.current_dir(place.directory.path()).output().expect("starts");
        let report = crate::support::Ended::of(&output).expect(2);
        let message = report["error"]["message"].as_str().expect("a message");
        assert!(message.contains("no such file file=/"), "{message}");
        assert!(message.ends_with("/nowhere.toml"), "{message}");
        assert_eq!(report["error"]["advice"], "give the path of a configuration file");
    }
}

#[test]
fn a_target_that_cannot_be_written_is_bad_configuration() {
    let place = Place::new();
    // A regular file in the way: refused to everybody, whatever their rights.
    fs::write(place.lake(), "in the way").expect("is written");
    let config = place.write(DAY, &table("dbo.flights", "flights", "earliest"));
    let report = cdc(&["run", &config, "--once", "--json"]).expect(2);
    let (kind, message, _) = stopped(&report);
    assert_eq!(kind, "config", "{message}");
    assert_eq!(fs::read_to_string(place.lake()).expect("is left"), "in the way");
}

/// A place with a copy of one table.
fn copied() -> (Place, Value) {
    let place = Place::new();
    let config = place.write(DAY, &table("dbo.airlines", "t", "earliest"));
    let report = cdc(&["run", &config, "--once", "--json"]).expect(0);
    (place, report)
}

#[test]
fn a_target_that_holds_another_table_is_bad_configuration() {
    let (place, _) = copied();
    let before = files(&place.lake());
    let config = place.write(DAY, &table("dbo.planes", "t", "earliest"));
    let report = cdc(&["run", &config, "--once", "--json"]).expect(2);
    let (kind, message, _) = stopped(&report);
    assert_eq!(kind, "config", "{message}");
    assert_eq!(files(&place.lake()), before, "nothing is written");
}

#[test]
fn a_target_directory_with_other_files_is_bad_configuration() {
    let place = Place::new();
    let directory = place.lake().join("bronze/t");
    fs::create_dir_all(&directory).expect("is made");
    fs::write(directory.join("other.txt"), "x").expect("is written");
    let config = place.write(DAY, &table("dbo.airlines", "t", "earliest"));
    let report = cdc(&["run", &config, "--once", "--json"]).expect(2);
    assert_eq!(stopped(&report).0, "config");
    assert_eq!(files(&place.lake()).len(), 1, "nothing is written");
}

#[test]
fn a_deleted_target_is_not_filled_again_in_silence() {
    let (place, _) = copied();
    fs::remove_dir_all(place.lake().join("bronze/t")).expect("is removed");
    let before = files(&place.lake());
    let config = place.write(DAY, &table("dbo.airlines", "t", "earliest"));
    let report = cdc(&["run", &config, "--once", "--json"]).expect(1);
    let (kind, message, advice) = stopped(&report);
    assert_eq!(kind, "invalid_data");
    assert!(message.contains("deleted"), "{message}");
    assert!(advice.contains("RESTORE"), "{advice}");
    assert_eq!(files(&place.lake()), before, "nothing is written");
}

#[test]
fn a_rewound_target_is_not_written_over() {
    let place = Place::new();
    let tables = table("dbo.flights", "t", "earliest");
    let limited = "[run]\nrows_max = 200\n".to_owned() + &tables;
    let config = place.write(DAY, &limited);
    cdc(&["run", &config, "--once", "--json"]).expect(0);
    let log = place.lake().join("bronze/t/_delta_log");
    let mut versions: Vec<_> = fs::read_dir(&log)
        .expect("is listed")
        .map(|entry| entry.expect("is listed").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    versions.sort();
    // The newest commits of the table are gone, as after a restore of an older backup.
    for version in versions.iter().rev().take(2) {
        fs::remove_file(version).expect("is removed");
    }
    let before = files(&place.lake());
    let report = cdc(&["run", &config, "--once", "--json"]).expect(1);
    let (kind, message, advice) = stopped(&report);
    assert_eq!(kind, "invalid_data");
    assert!(message.contains("rewound"), "{message}");
    assert!(advice.contains("RESTORE"), "{advice}");
    assert_eq!(files(&place.lake()), before, "nothing is written");
}
