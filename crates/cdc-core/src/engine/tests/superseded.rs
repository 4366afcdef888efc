//! What a runner says that is no longer a table's owner.

use super::*;

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

#[test]
fn a_mark_that_another_runner_moved_while_it_was_looked_up_tells_of_no_loss() {
    let known = |mark: Mark, number| {
        let time = Some(time(number));
        Some(Mark { commit_time: time, entry_time: time, ..mark })
    };
    let (older, newer) = (known(mark(1, 3), 3), known(mark(2, 9), 9));
    let mut source = MockSrc::new();
    source.expect_instances().returning(|_| Ok(vec![instance("dbo_t", 1)]));
    source.expect_high().returning(|| Ok(Bound::At(at(9))));
    // Cleanup has followed the newer mark, up to the position behind the older one.
    source.expect_low().returning(|_| Ok(vec![Bound::At(at(4))]));
    source.expect_commit_time().returning(move |position| Ok((position == at(9)).then(|| time(9))));
    let asked = AtomicUsize::new(0);
    let mut sink = MockTarget::new();
    sink.expect_capabilities().return_const(SinkCapabilities::least());
    sink.expect_inspect().returning(move |_| {
        let mark = if asked.fetch_add(1, Ordering::SeqCst) == 0 { older } else { newer };
        Ok(Some(TargetState { mark, verdict: None }))
    });
    sink.expect_attach().times(1).returning(move |_| {
        let state = TargetState { mark: newer, verdict: None };
        Ok(Attached { table: Box::new(closing()), state })
    });
    let bench = bench(source, sink, 9, Settings::default());
    let report = block_on(bench.engine.run_once(vec![table()], &bench.shutdown));
    assert_eq!(report.errors().count(), 0);
    assert_eq!(report.tables[0].mark, newer);
}
