//! What is said of a copy while the source answers, does not, has lost changes, or is another.

use cdc_core::{Engine, Lsn, RunReport, port::Shutdown};
use cdc_fake::{Call, SqlError, sql_error::number};

use super::*;
use crate::config::Config;

/// A configuration in a directory of its own, and its parts.
fn parts(directory: &tempfile::TempDir) -> (Config, Parts) {
    let file = directory.path().join("cdc.toml");
    let text = "[source]\nkind = \"fake\"\n[source.fake]\nrows = 200\n[target]\nroot = \"lake\"\n\
                [[tables]]\nsource = \"dbo.flights\"\n[[tables]]\nsource = \"dbo.planes\"\n";
    std::fs::write(&file, text).expect("is written");
    let config = Config::load(&file, &|_| None).expect("is right");
    let parts = Parts::new(&config).expect("are built");
    (config, parts)
}

/// Copies the first table.
async fn copy(config: &Config, parts: &Parts) -> RunReport {
    let sink = parts.sinks[0].sink.clone();
    let (source, clock) = (parts.source.clone(), parts.clock.clone());
    let engine = Engine::new(source, sink, clock, parts.entropy.clone(), config.settings.clone());
    let run = engine.run_once(vec![config.tables[0].clone()], &Shutdown::never()).await;
    assert_eq!(run.errors().count(), 0);
    run
}

/// Lets the server write two idle entries, so that something lies between a mark and the newest.
fn pass(parts: &Parts) {
    for _ in 0..2 {
        parts
            .sample
            .as_ref()
            .expect("simulated")
            .database()
            .clock()
            .advance(std::time::Duration::from_secs(400));
        parts
            .sample
            .as_ref()
            .expect("simulated")
            .database()
            .write_idle_entry()
            .expect("is written");
    }
}

fn high_now(parts: &Parts) -> Lsn {
    parts.sample.as_ref().expect("simulated").database().max_lsn().expect("something is captured")
}

#[tokio::test]
async fn a_source_that_does_not_answer_hides_nothing_of_the_target() {
    let directory = tempfile::tempdir().expect("a directory");
    let (config, parts) = parts(&directory);
    let run = copy(&config, &parts).await;
    let gone = SqlError::new(number::TIMEOUT, "no answer");
    parts.sample.as_ref().expect("simulated").database().fail_next(Call::Instances, 2, &gone);
    let copied = look(&parts, &parts.sinks[0], &config.tables[0], None).await;
    assert_eq!(copied.state, "copied");
    let mark = run.tables[0].mark.as_ref().map(MarkLine::from).expect("a mark");
    assert_eq!(copied.mark.map(|mark| mark.end), Some(mark.end));
    assert_eq!(copied.error.map(|error| error.kind), Some("unavailable"));
    let other = look(&parts, &parts.sinks[0], &config.tables[1], None).await;
    assert_eq!(other.state, "unknown", "whether a target is due is the source's to say");
    let answered = look(&parts, &parts.sinks[0], &config.tables[1], None).await;
    assert_eq!(answered.state, "no target yet");
    assert!(answered.error.is_none());
}

#[tokio::test]
async fn a_mark_that_cleanup_has_passed_is_data_loss_from_the_first_lost_position_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let (config, parts) = parts(&directory);
    copy(&config, &parts).await;
    let mark = high_now(&parts);
    pass(&parts);
    let table = &config.tables[0];
    let listed = parts.source.instances(&table.source).await.expect("is captured");
    let name = &listed[0].name;

    // What the mark's own entry holds is copied: it may go.
    parts
        .sample
        .as_ref()
        .expect("simulated")
        .database()
        .cleanup_instance(name, mark)
        .expect("cleans up");
    let line = look(&parts, &parts.sinks[0], table, high(parts.source.as_ref()).await.ok()).await;
    assert_eq!(line.state, "copied", "{:?}", line.error);
    assert!(line.error.is_none());
    assert!(line.headroom_seconds.expect("is known") >= 0.0);

    parts
        .sample
        .as_ref()
        .expect("simulated")
        .database()
        .cleanup_instance(name, high_now(&parts))
        .expect("cleans up");
    let line = look(&parts, &parts.sinks[0], table, high(parts.source.as_ref()).await.ok()).await;
    assert_eq!(line.state, "data_loss");
    assert!(line.mark.is_some(), "what the target holds is shown");
    assert!(line.headroom_seconds.expect("is known") < 0.0);
    let error = line.error.expect("says why");
    assert_eq!((error.kind, error.exit), ("data_loss", Exit::DataLoss));
    assert!(error.message.contains("low=0x") && !error.advice.is_empty(), "{}", error.message);
}

#[tokio::test]
async fn a_source_that_was_restored_is_another_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let (config, parts) = parts(&directory);
    let before = parts.sample.as_ref().expect("simulated").database().backup();
    pass(&parts);
    copy(&config, &parts).await;
    let table = &config.tables[0];

    // The restored log ends below the mark.
    parts.sample.as_ref().expect("simulated").database().restore(&before);
    let line = look(&parts, &parts.sinks[0], table, high(parts.source.as_ref()).await.ok()).await;
    assert_eq!(line.state, "lineage_broken");
    assert_eq!((line.lag_seconds, line.headroom_seconds), (None, None));
    let error = line.error.expect("says why");
    assert_eq!((error.kind, error.exit), ("lineage_broken", Exit::DataLoss));
    assert!(error.message.contains("above"), "{}", error.message);

    // It has grown beyond the mark since, without the mark's entry.
    for _ in 0..4 {
        pass(&parts);
    }
    let line = look(&parts, &parts.sinks[0], table, high(parts.source.as_ref()).await.ok()).await;
    assert_eq!(line.state, "lineage_broken");
    let error = line.error.expect("says why");
    assert!(error.message.contains("no such commit"), "{}", error.message);
}

#[test]
fn an_age_below_zero_is_said_in_words() {
    let mut line = nothing_known("t", "dbo.t");
    tell_age(&mut line, Some(-1.0));
    assert_eq!(line.verdict_age_seconds, None);
    assert!(line.note.is_some());
    let mut line = nothing_known("t", "dbo.t");
    tell_age(&mut line, Some(3.0));
    assert_eq!((line.verdict_age_seconds, line.note), (Some(3.0), None));
}
