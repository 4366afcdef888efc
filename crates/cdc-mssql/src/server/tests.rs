//! A driver that fails anywhere, as a script says: no row is repeated or left out, nothing is tried
//! for ever, and nothing that stays is tried again.

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use arrow_array::{ArrayRef, Int64Array, cast::AsArray, types::Int64Type};
use async_trait::async_trait;
use cdc_core::ErrorKind;
use proptest::prelude::*;

use super::*;
use crate::{
    driver::{Form, Matching, ResultColumn},
    fault::Fault,
};

/// How one try of a statement ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole,
    Transient,
    Permanent,
}

/// A try: so many batches, then the end. None before the first batch is a refused connection.
#[derive(Clone, Copy, Debug)]
struct Try {
    batches: Option<usize>,
    end: End,
}

/// A driver whose result has `sizes` rows a batch, and whose tries go as they are told.
#[derive(Debug)]
struct Scripted {
    sizes: Vec<usize>,
    tries: Mutex<VecDeque<Try>>,
    begun: AtomicUsize,
    forgotten: AtomicUsize,
}

fn fault(end: End) -> Fault {
    match end {
        End::Permanent => Fault::server(208, 1, 16),
        End::Whole | End::Transient => Fault::server(1_205, 1, 13),
    }
}

#[async_trait]
impl Driver for Scripted {
    async fn run(&self, _: Arc<Statement>) -> std::result::Result<RecordStream, Fault> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        // What the script does not say goes well.
        let whole = Try { batches: Some(self.sizes.len()), end: End::Whole };
        let next = self.tries.lock().expect("whole").pop_front().unwrap_or(whole);
        let Some(batches) = next.batches else { return Err(fault(next.end)) };
        let batches = if next.end == End::Whole { self.sizes.len() } else { batches };
        let mut items = Vec::new();
        let mut first = 0_i64;
        for size in self.sizes.iter().take(batches) {
            let last = first + i64::try_from(*size).expect("small");
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(first..last));
            items.push(Ok(RecordBatch::try_from_iter([("n", column)]).expect("one column")));
            first = last;
        }
        if next.end != End::Whole {
            items.push(Err(fault(next.end)));
        }
        Ok(Box::pin(stream::iter(items)))
    }

    fn forget_idle(&self) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
    }
}

const ATTEMPTS_MAX: u32 = 4;

fn server(sizes: &[usize], tries: &[Try]) -> (Arc<Scripted>, Server) {
    let driver = Arc::new(Scripted {
        sizes: sizes.to_vec(),
        tries: Mutex::new(tries.iter().copied().collect()),
        begun: AtomicUsize::new(0),
        forgotten: AtomicUsize::new(0),
    });
    let nothing = Duration::from_nanos(1);
    let budget =
        RetryBudget { attempts_max: ATTEMPTS_MAX, pause_first: nothing, pause_max: nothing };
    (Arc::clone(&driver), Server::new(driver.clone(), driver, budget))
}

fn statement() -> Statement {
    Statement {
        text: "SELECT n".into(),
        parameters: Vec::new(),
        columns: vec![ResultColumn::new("n", Form::Sql(cdc_core::SqlType::BigInt))],
        matching: Matching::Place,
        batch_rows: 10,
    }
}

fn rows(batches: &[RecordBatch]) -> Vec<i64> {
    let rows = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    batches.iter().flat_map(rows).collect()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("starts").block_on(future)
}

/// What has to become of a script when a try counts as over at `over`.
struct Expected {
    tries: usize,
    /// The try that decides; none when the script's end does, which goes well.
    last: Option<Try>,
}

/// Tries are repeated while they end with a passing error, `over` does not hold of them, and the
/// budget lasts.
fn expected(tries: &[Try], over: impl Fn(&Try) -> bool) -> Expected {
    let most = usize::try_from(ATTEMPTS_MAX).expect("small");
    for (at, one) in tries.iter().enumerate() {
        if one.end != End::Transient || over(one) || at + 1 == most {
            return Expected { tries: at + 1, last: Some(*one) };
        }
    }
    Expected { tries: tries.len() + 1, last: None }
}

fn tries() -> impl Strategy<Value = Vec<Try>> {
    let end = prop_oneof![
        3 => Just(End::Transient),
        1 => Just(End::Permanent),
        1 => Just(End::Whole),
    ];
    let one = (proptest::option::weighted(0.7, 0_usize..5), end).prop_map(|(batches, end)| {
        // A connection that is refused gives no result.
        let batches = if end == End::Whole { Some(batches.unwrap_or(0)) } else { batches };
        Try { batches, end }
    });
    proptest::collection::vec(one, 0..6)
}

proptest! {
    #[test]
    fn an_answer_is_whole_or_an_error_however_its_tries_end(
        sizes in proptest::collection::vec(1_usize..4, 0..4),
        tries in tries(),
    ) {
        let (driver, server) = server(&sizes, &tries);
        let expected = expected(&tries, |_| false);
        let all: Vec<i64> = (0..).take(sizes.iter().sum()).collect();
        match block_on(server.ask(statement())) {
            Ok(batches) => {
                prop_assert!(expected.last.is_none_or(|last| last.end == End::Whole));
                prop_assert_eq!(rows(&batches), all);
            }
            Err(fault) => {
                let last = expected.last.expect("a try that failed");
                prop_assert_eq!(fault.transient, last.end == End::Transient);
                prop_assert_ne!(last.end, End::Whole);
            }
        }
        prop_assert_eq!(driver.begun.load(Ordering::SeqCst), expected.tries);
    }

    #[test]
    fn a_stream_gives_each_row_once_and_its_error_last(
        sizes in proptest::collection::vec(1_usize..4, 0..4),
        tries in tries(),
    ) {
        let (driver, server) = server(&sizes, &tries);
        // Once a batch was handed over, the try is the last one.
        let handed = |one: &Try| {
            one.batches.is_some_and(|batches| batches > 0) && !sizes.is_empty()
        };
        let expected = expected(&tries, handed);
        let all: Vec<i64> = (0..).take(sizes.iter().sum()).collect();
        let (mut seen, mut failed) = (Vec::new(), None);
        match block_on(server.stream(statement())) {
            Err(fault) => failed = Some(fault),
            Ok(mut stream) => {
                while let Some(item) = block_on(stream.next()) {
                    prop_assert!(failed.is_none(), "an item came after the error");
                    match item {
                        Ok(batch) => seen.push(batch),
                        Err(fault) => failed = Some(fault),
                    }
                }
            }
        }
        let seen = rows(&seen);
        prop_assert_eq!(&seen, &all[..seen.len()], "a prefix, each row once");
        match (expected.last, &failed) {
            (Some(last), Some(fault)) => {
                prop_assert_ne!(last.end, End::Whole);
                prop_assert_eq!(fault.transient, last.end == End::Transient);
            }
            (last, None) => {
                prop_assert!(last.is_none_or(|last| last.end == End::Whole));
                prop_assert_eq!(&seen, &all, "an end without an error is the whole result");
            }
            (None, Some(fault)) => prop_assert!(false, "{fault:?} came from nowhere"),
        }
        prop_assert_eq!(driver.begun.load(Ordering::SeqCst), expected.tries);
    }

    #[test]
    fn after_an_error_that_may_pass_idle_connections_are_dropped(tries in tries()) {
        let (driver, server) = server(&[1], &tries);
        let expected = expected(&tries, |_| false);
        let begun = tries.iter().take(expected.tries);
        let passing = begun.filter(|one| one.end == End::Transient).count();
        let _ = block_on(server.ask(statement()));
        // Those of both drivers, which are the same here.
        prop_assert_eq!(driver.forgotten.load(Ordering::SeqCst), 2 * passing);
    }
}

#[test]
fn an_answer_that_is_too_long_is_refused() {
    let (_, server) = server(&[WHOLE_ROWS_MAX, 1], &[]);
    let fault = block_on(server.ask(statement())).expect_err("too long");
    assert_eq!((fault.transient, fault.error.kind()), (false, ErrorKind::Bug));
}
