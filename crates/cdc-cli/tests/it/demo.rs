//! `cdc demo`.

use std::fs;

use crate::support::{Place, cdc, files};

#[test]
fn the_demonstration_crashes_resumes_and_proves_that_the_copy_equals_the_source() {
    let place = Place::new();
    let dir = place.path("demo");
    let dir = dir.to_str().expect("text");
    let arguments = ["demo", "--dir", dir, "--rows", "600", "--json"];
    let ended = cdc(&arguments);
    let report = ended.expect(0);
    assert!(ended.stderr.contains("killed in the middle of a staged batch"), "{}", ended.stderr);
    assert!(report["resumed_at"].as_str().expect("a mark").starts_with("0x"));
    assert!(report["rows"].as_u64().expect("a count") > 600 + 3_322 + 1_458 + 16);
    assert!(report["rows_per_second"].as_f64().expect("a pace") > 0.0);
    assert_eq!(report["target"], dir);
    // The workload of the repeated hour is in every history.
    assert!(report["finalized_until"].as_str() >= Some("2013-11-03T06:00:00Z"), "{report}");
    let proof = report["proof"].as_array().expect("every table");
    assert_eq!(proof.len(), 4);
    for table in proof {
        assert_eq!(table["image_rows"], table["source_rows"], "{table}");
        for fault in ["missing", "invented", "different"] {
            assert_eq!(table[fault], 0, "{table}");
        }
    }

    let before = files(&place.path("demo"));
    let again = cdc(&arguments).expect(2);
    assert!(again["error"]["advice"].as_str().expect("advice").contains("--overwrite"));
    assert_eq!(files(&place.path("demo")), before, "a refusal touches nothing");

    let afresh = [&arguments[..], &["--overwrite", "--seed", "7"]].concat();
    cdc(&afresh).expect(0);

    let people = cdc(&["demo", "--dir", dir, "--rows", "600", "--overwrite"]);
    assert_eq!(people.code, 0);
    assert!(!people.stderr.contains("INFO"), "{}", people.stderr);
    for words in ["killed half-way", "resumed at mark 0x", "an update counts as two"] {
        assert!(people.stdout.contains(words), "{words}: {}", people.stdout);
    }
}

#[test]
fn a_directory_that_is_not_its_own_is_never_written_to() {
    let place = Place::new();
    fs::write(place.path("precious.txt"), "x").expect("is written");
    let dir = place.directory.path().to_str().expect("text");
    let refused = cdc(&["demo", "--dir", dir, "--overwrite", "--json"]).expect(2);
    assert_eq!(refused["error"]["kind"], "config");
    assert_eq!(files(place.directory.path()).len(), 1);
    let file = place.path("precious.txt").join("below");
    let refused = cdc(&["demo", "--dir", file.to_str().expect("text"), "--json"]).expect(2);
    assert!(refused["error"]["advice"].as_str().expect("advice").contains("--dir"));
}

#[test]
fn rows_that_are_not_there_are_named_before_anything_is_written() {
    let place = Place::new();
    let dir = place.path("demo");
    let data = place.path("no-data");
    let arguments = [dir.to_str().expect("text"), data.to_str().expect("text")];
    let refused = cdc(&["demo", "--json", "--dir", arguments[0], "--data", arguments[1]]).expect(2);
    assert!(refused["error"]["advice"].as_str().expect("advice").contains("airlines.csv"));
    assert!(!dir.exists());
}
