//! What a runner says that is no longer a table's owner.

use super::*;

/// A source that removes what follows the mark while it is read.
fn purged_meanwhile() -> MockSrc {
    let mut source = source(9);
    source.expect_has_changes().returning(|_| Ok(vec![true]));
    let asked = AtomicUsize::new(0);
    source.expect_low().returning(move |_| {
        let low = if asked.fetch_add(1, Ordering::SeqCst) < 3 { 1 } else { 6 };
        Ok(vec![Bound::At(at(low))])
    });
    source.expect_changes().returning(|_| Ok(Box::pin(stream::iter([Ok(inserts(&[7, 8]))]))));
    source
}

/// A sink that gives its table out once and answers as told whether a newer runner has it.
fn sink_that_says(mut answers: Vec<Result<bool>>) -> MockTarget {
    let state = || TargetState { mark: Some(mark(1, 3)), verdict: None };
    let mut sink = MockTarget::new();
    sink.expect_capabilities().return_const(SinkCapabilities::least());
    sink.expect_inspect().returning(move |_| Ok(Some(state())));
    answers.reverse();
    let times = answers.len();
    let answers = Mutex::new(answers);
    sink.expect_is_superseded()
        .times(times)
        .returning(move |_| answers.lock().expect("not poisoned").pop().expect("asked too often"));
    sink.expect_attach().times(1).returning(move |_| {
        let mut table = MockTab::new();
        table.expect_stage().returning(|_| Ok(()));
        table.expect_discard().returning(|| Ok(()));
        Ok(Attached { table: Box::new(table), state: state() })
    });
    sink
}

fn stop(answers: Vec<Result<bool>>) -> ErrorKind {
    let sink = sink_that_says(answers);
    let bench = bench(purged_meanwhile(), sink, 9, Settings::default());
    let report = block_on(bench.engine.run_once(vec![table()], &bench.shutdown));
    report.errors().next().expect("the table stopped").kind()
}

#[test]
fn a_loss_behind_the_mark_of_a_newer_runner_is_no_loss() {
    assert_eq!(stop(vec![Ok(true)]), ErrorKind::Fenced);
    assert_eq!(stop(vec![Ok(false)]), ErrorKind::DataLoss);
}

#[test]
fn whether_a_newer_runner_has_the_table_is_asked_again_when_nobody_answers() {
    let silent = || Err(Error::new(ErrorKind::Unavailable, "no reply"));
    assert_eq!(stop(vec![silent(), Ok(true)]), ErrorKind::Fenced);
    let damaged = Err(Error::new(ErrorKind::InvalidData, "not to be read"));
    assert_eq!(stop(vec![damaged]), ErrorKind::DataLoss);
}
