//! The guide to the configuration, followed to the letter.

use std::fs;

use crate::support::{Ended, Place, command};

#[test]
fn the_guides_first_file_runs_with_the_guides_commands() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/configuration.md");
    let guide = fs::read_to_string(path).expect("is in the repository");
    let block = |kind: &str| {
        let after = guide.split_once(&format!("```{kind}\n")).expect("has a block").1;
        after.split("```").next().expect("is closed").to_owned()
    };
    let place = Place::new();
    fs::write(place.path("cdc.toml"), block("toml")).expect("is written");
    let lines = block("sh");
    let commands: Vec<_> =
        lines.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).collect();
    let [copy, status, doctor, follow] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!([*copy, *status], ["cdc run cdc.toml --once", "cdc status cdc.toml"]);
    // The last one has no end; the tests of `cdc run` stop it by a signal.
    assert_eq!([*doctor, *follow], ["cdc doctor cdc.toml", "cdc run cdc.toml"]);
    for line in [copy, status, doctor] {
        let words: Vec<_> = line.split(' ').skip(1).collect();
        let output = command(&words).current_dir(place.directory.path()).output();
        let ended = Ended::of(&output.expect("the binary starts"));
        assert_eq!(ended.code, 0, "{line}\n{}\n{}", ended.stdout, ended.stderr);
        let seen = if line == doctor { "failure 0, " } else { "2013-11-03T23:00:00Z" };
        assert!(ended.stdout.contains(seen), "{}", ended.stdout);
    }
    assert!(place.lake().join("bronze/planes/_delta_log").is_dir());
}
