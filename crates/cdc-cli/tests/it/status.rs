//! `cdc status`.

use crate::support::{Place, cdc, files, table};

#[test]
fn status_reads_only_before_the_first_run_and_after() {
    let place = Place::new();
    let tables = table("dbo.flights", "flights", "earliest");
    let config = place.write("until = \"2013-10-26T04:00:00Z\"", &tables);
    let before = cdc(&["status", &config, "--json"]).expect(0);
    assert_eq!(before["status"][0]["state"], "no target yet");
    assert!(before["source_high"].as_str().expect("answers").starts_with("0x"));
    assert!(!place.lake().exists(), "nothing is written");
    assert!(cdc(&["status", &config]).stdout.contains("no target yet"));

    let run = cdc(&["run", &config, "--once", "--json"]).expect(0);
    let lake = files(&place.lake());
    let config = place.write("until = \"2013-10-26T06:00:00Z\"", &tables);
    let after = cdc(&["status", &config, "--json"]).expect(0);
    let line = &after["status"][0];
    assert_eq!(line["state"], "copied");
    assert_eq!(line["mark"], run["tables"][0]["mark"]);
    assert!(after.get("tables").is_none(), "one list only: {after}");
    assert_eq!(line["finalized_until"], run["tables"][0]["finalized_until"]);
    let number = |key: &str| line[key].as_f64().unwrap_or_else(|| panic!("{key} in {line}"));
    // Idle entries come every 305 s, so two hours of lag are known to five minutes.
    assert!((6_800.0..7_600.0).contains(&number("lag_seconds")), "{line}");
    assert!(number("verdict_age_seconds") >= 7_200.0, "{line}");
    assert!(number("headroom_seconds") > 0.0, "{line}");
    assert_eq!(files(&place.lake()), lake, "nothing is written");
}

/// Copies up to one present, then shows how the copy stands at another.
fn copied_then_looked_at(first: &str, then: &str) -> (serde_json::Value, String) {
    let place = Place::new();
    let tables = table("dbo.flights", "flights", "earliest");
    let config = place.write(first, &tables);
    cdc(&["run", &config, "--once", "--json"]).expect(0);
    let config = place.write(then, &tables);
    let report = cdc(&["status", &config, "--json"]).expect(3);
    // What a run would say.
    let run = cdc(&["run", &config, "--once", "--json"]).expect(3);
    assert_eq!(run["tables"][0]["error"]["kind"], report["status"][0]["error"]["kind"]);
    let text = cdc(&["status", &config]);
    assert_eq!(text.code, 3);
    assert!(text.stdout.contains("what to do: "), "{}", text.stdout);
    (report, text.stdout)
}

#[test]
fn lost_data_is_shown_as_lost_with_what_to_do() {
    let (report, text) = copied_then_looked_at(
        "until = \"2013-10-26T04:00:00Z\"",
        "until = \"2013-10-30T04:00:00Z\"\nretention = \"24h\"",
    );
    let line = &report["status"][0];
    assert_eq!((&line["state"], &report["outcome"]), (&"data_loss".into(), &"data_loss".into()));
    assert_eq!(line["error"]["kind"], "data_loss");
    assert!(text.contains("flights: data_loss: changes were removed"), "{text}");
}

#[test]
fn a_source_that_lies_behind_the_mark_is_another_log() {
    let (report, text) = copied_then_looked_at(
        "until = \"2013-10-28T04:00:00Z\"",
        "until = \"2013-10-26T04:00:00Z\"",
    );
    let line = &report["status"][0];
    assert_eq!(line["state"], "lineage_broken");
    assert_eq!(line["error"]["kind"], "lineage_broken");
    assert!(line["verdict_age_seconds"].is_null() && line["headroom_seconds"].is_null(), "{line}");
    assert!(line["note"].is_null(), "the error says it: {line}");
    assert!(text.contains("flights: lineage_broken: "), "{text}");
}
