//! The sample server: deterministic, with a history that a longer one begins with.

use cdc_fake::mapping::MappingEntry;
use chrono::DateTime;

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::from(DateTime::parse_from_rfc3339(text).expect(text).to_utc())
}

fn mapping(config: &FakeConfig) -> Vec<MappingEntry> {
    Sample::at_present(config).expect("plays").database.mapping()
}

#[test]
fn the_same_settings_give_the_same_log_and_another_seed_another() {
    let config = FakeConfig { rows: Some(900), ..FakeConfig::default() };
    let log = mapping(&config);
    assert_eq!(log, mapping(&config));
    assert_ne!(log, mapping(&FakeConfig { seed: 1, ..config }));
}

#[test]
fn a_shorter_history_is_the_begin_of_a_longer_one() {
    let until = |text| FakeConfig { until: Some(at(text)), ..FakeConfig::default() };
    let short = mapping(&until("2013-10-25T20:30:00Z"));
    let long = mapping(&until("2013-10-26T20:30:00Z"));
    assert!(short.len() > 100 && long.len() > short.len());
    assert_eq!(short, long[..short.len()]);

    let rows = |rows| FakeConfig { rows: Some(rows), ..FakeConfig::default() };
    let (short, long) = (mapping(&rows(300)), mapping(&rows(600)));
    assert_eq!(short, long[..short.len()]);
}

#[test]
fn commits_fall_into_both_passes_of_the_repeated_hour() {
    let config = FakeConfig { until: Some(at("2013-11-03T07:30:00Z")), ..FakeConfig::default() };
    let sample = Sample::at_present(&config).expect("plays");
    let readings: Vec<_> =
        sample.database.mapping().iter().map(|entry| entry.time.to_string()).collect();
    let back = readings.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert_eq!(back, 1, "the server's clock goes back once");
    let repeated = readings.iter().filter(|text| text.starts_with("2013-11-03T01:")).count();
    assert!(repeated > 60, "{repeated}");
}

#[test]
fn a_server_without_a_workload_only_loads() {
    let config = FakeConfig { workload: false, rows: Some(500), ..FakeConfig::default() };
    let sample = Sample::at_present(&config).expect("plays");
    let rows = sample.rows(&FLIGHTS.table_name()).expect("is there").len();
    assert!((500..700).contains(&rows), "{rows}");
}
