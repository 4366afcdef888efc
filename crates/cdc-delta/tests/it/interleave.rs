//! Two runners of the real sink over one store, in every order of their requests that a few
//! changes of turn make, and with trouble at every put to the log.
//!
//! Each runner has a thread of its own, and one of them runs at a time: the turn changes before
//! a request to the store, where the order says so, and nowhere else. So an order gives the same
//! run each time, and a failure prints the order that shows it.
//!
//! A change of turn is left out when it makes no difference: before a request that commutes with
//! all that the other runner may ask for, and after a block of requests which all commute with
//! the one that waits.

mod reader;
mod runner;
mod turns;

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use cdc_core::ErrorKind;
use object_store::memory::InMemory;

use self::{
    runner::{BRONZE, Raced, check, finish, race, shape, solo},
    turns::{Order, Request, Trouble, Verb},
};

/// Names the greatest number of changes of turn in an order.
const SWITCHES: &str = "CDC_SWITCHES_MAX";

fn switches_max(default: usize) -> usize {
    let wanted = std::env::var(SWITCHES).ok();
    wanted.map_or(default, |text| text.parse().expect("CDC_SWITCHES_MAX is a number"))
}

/// True when a request commutes with whatever the other runner may ask for: nobody writes a data
/// file of another, and no file of a log changes once it is there.
fn commutes(request: &Request, before: &[Request]) -> bool {
    let data = request.path.ends_with(".parquet");
    let there = || before.iter().any(|made| made.verb == Verb::Put && made.path == request.path);
    data || request.verb == Verb::Get && (request.path.ends_with("_last_checkpoint") || there())
}

/// True when the turn may pass before request `at` of a run, after its last change at `last`.
fn changes_turn(trace: &[Request], last: Option<usize>, at: usize) -> bool {
    let runner = trace[at].runner;
    let other_is_there = trace[at..].iter().any(|request| request.runner != runner);
    if !other_is_there || commutes(&trace[at], &trace[..at]) {
        return false;
    }
    let Some(last) = last else {
        return true;
    };
    let waits = trace[last..].iter().find(|request| request.runner != trace[last].runner);
    waits.is_none_or(|waits| trace[last..at].iter().any(|made| made.meets(waits)))
}

/// Runs every order with up to `switches_max` changes of turn, and gives their number.
fn explore(
    base: &InMemory,
    first: Order,
    (last_batch, switches_max): (u64, usize),
    each: &mut dyn FnMut(&Order, &Raced),
) -> usize {
    let mut orders = vec![first];
    let mut runs = 0;
    while let Some(order) = orders.pop() {
        let result = catch_unwind(AssertUnwindSafe(|| {
            let raced = race(base, &order, last_batch);
            each(&order, &raced);
            raced.trace
        }));
        let trace = result.unwrap_or_else(|fault| {
            eprintln!("the order that shows it: {order:?}");
            resume_unwind(fault);
        });
        runs += 1;
        if order.switches.len() == switches_max {
            continue;
        }
        let last = order.switches.last().copied();
        for at in last.map_or(1, |last| last + 1)..trace.len() {
            if changes_turn(&trace, last, at) {
                let mut next = order.clone();
                next.switches.push(at);
                orders.push(next);
            }
        }
    }
    runs
}

/// What a set of runs came to.
#[derive(Default)]
struct Judge {
    /// The last batch that the two runners load.
    last: u64,
    /// What was in the store after runs, each kind once.
    ends: BTreeSet<String>,
    /// Runs in which a runner was fenced at its commit.
    refused: usize,
    /// Runs in which both runners committed something.
    shared: usize,
}

impl Judge {
    fn of(last: u64) -> Self {
        Self { last, ..Self::default() }
    }

    /// Checks a run: what each runner was told, that another one gets everything done, the log.
    fn judge(&mut self, order: &Order, raced: &Raced) {
        let context = format!("{order:?}");
        let mut all = raced.told.to_vec();
        for (number, told) in all.iter_mut().enumerate() {
            let troubled = order.trouble.is_some_and(|(runner, ..)| runner == number);
            if troubled {
                // Its commit may be there below the newer fence: nobody told it.
                told.refused.clear();
            }
            match &told.error {
                None | Some((ErrorKind::Fenced, _)) => {}
                Some((ErrorKind::Unavailable, _)) if troubled => {}
                Some((_, report)) => panic!("{context}: a false alarm: {report}"),
            }
        }
        self.refused += usize::from(raced.told.iter().any(|told| !told.refused.is_empty()));
        self.shared += usize::from(raced.told.iter().all(|told| !told.committed.is_empty()));
        let done = all.iter().any(|told| told.error.is_none());
        assert!(done || order.trouble.is_some(), "{context}: somebody gets done");
        if done {
            check(&raced.store, &all, self.last, &context);
        }
        if self.ends.insert(shape(&raced.store)) || !done {
            let third = finish(&raced.store, self.last + 1);
            assert_eq!(third.error, None, "{context}: a runner that is left alone gets done");
            all.push(third);
            check(&raced.store, &all, self.last + 1, &context);
        }
    }
}

/// A table with one batch, whose runner died before it wrote the batch's facts.
fn left_by_a_dead_runner() -> InMemory {
    let trace = solo(&InMemory::new(), 1, None).trace;
    let first = put_of(&trace, 0, 1);
    solo(&InMemory::new(), 1, Some((0, first, Trouble::DeadAfter))).store
}

/// The request of `runner`, counted from its start, that puts version `version` of bronze's log.
fn put_of(trace: &[Request], runner: usize, version: u64) -> usize {
    let name = format!("lake/{BRONZE}/_delta_log/{version:020}.json");
    let mut own = trace.iter().filter(|request| request.runner == runner);
    own.position(|request| request.verb == Verb::Put && request.path == name).expect("a put")
}

/// The number of the first request of runner 0 that does something to a path with this end.
fn first(trace: &[Request], verb: Verb, end: &str) -> usize {
    let found = trace.iter().position(|made| made.verb == verb && made.path.ends_with(end));
    found.expect("such a request")
}

#[test]
fn a_creator_whose_table_was_taken_over_before_it_looked_again_is_fenced() {
    let base = InMemory::new();
    let trace = solo(&base, 1, None).trace;
    let put = first(&trace, Verb::Put, "bronze/orders/_delta_log/00000000000000000000.json");
    let order = Order { switches: vec![put + 1], trouble: None };
    let raced = race(&base, &order, 1);
    assert_eq!(raced.told[0].error.as_ref().map(|(kind, _)| *kind), Some(ErrorKind::Fenced));
    assert_eq!((raced.told[0].refused.as_slice(), &raced.told[1].error), ([101].as_slice(), &None));
    Judge::of(1).judge(&order, &raced);
}

#[test]
fn a_table_that_appears_between_two_looks_at_its_directory_is_a_table() {
    let base = InMemory::new();
    let trace = solo(&base, 1, None).trace;
    for dir in ["bronze/orders", "facts", "control"] {
        // The second look of an attach is at the directory, after there was no log.
        let order = Order { switches: vec![first(&trace, Verb::List, dir)], trouble: None };
        Judge::of(1).judge(&order, &race(&base, &order, 1));
    }
}

#[test]
fn files_of_a_put_that_met_its_twin_stay_when_a_newer_runner_comes() {
    let base = left_by_a_dead_runner();
    let put = put_of(&solo(&base, 2, None).trace, 0, 3);
    let order = Order { switches: vec![put + 1], trouble: Some((0, put, Trouble::Twin)) };
    let raced = race(&base, &order, 2);
    assert_eq!(raced.told[0].error.as_ref().map(|(kind, _)| *kind), Some(ErrorKind::Fenced));
    Judge::of(2).judge(&order, &raced);
}

#[test]
fn two_runners_that_create_a_table_at_once_agree_in_every_order() {
    let mut judge = Judge::of(1);
    let bounds = (1, switches_max(2));
    let runs = explore(&InMemory::new(), Order::default(), bounds, &mut |order, raced| {
        judge.judge(order, raced);
    });
    print_counts("birth", runs, &judge);
    assert!(runs >= 250 && judge.refused >= 100, "the orders became few");
}

#[test]
fn two_runners_that_take_a_table_over_agree_in_every_order() {
    let mut judge = Judge::of(3);
    let bounds = (3, switches_max(2));
    let base = left_by_a_dead_runner();
    let runs = explore(&base, Order::default(), bounds, &mut |order, raced| {
        judge.judge(order, raced);
    });
    print_counts("take-over", runs, &judge);
    assert!(runs >= 120 && judge.refused >= 50 && judge.shared >= 20, "the orders became few");
}

#[test]
fn two_runners_agree_whatever_becomes_of_a_put_to_the_log() {
    let base = left_by_a_dead_runner();
    let trace = solo(&base, 2, None).trace;
    let mut judge = Judge::of(2);
    let mut runs = 0;
    // The fence is version 2, the batch version 3.
    for (version, trouble) in [
        (2, Trouble::DeadBefore),
        (2, Trouble::DeadAfter),
        (2, Trouble::ReplyLost),
        (2, Trouble::Late(0)),
        (2, Trouble::Twin),
        (3, Trouble::DeadAfter),
        (3, Trouble::ReplyLost),
        (3, Trouble::Late(0)),
        (3, Trouble::Late(6)),
        (3, Trouble::Twin),
    ] {
        let trouble = Some((0, put_of(&trace, 0, version), trouble));
        let first = Order { switches: Vec::new(), trouble };
        let bounds = (2, switches_max(2).saturating_sub(1));
        runs += explore(&base, first, bounds, &mut |order, raced| judge.judge(order, raced));
    }
    print_counts("trouble", runs, &judge);
    assert!(runs >= 150 && judge.refused >= 20, "the orders became few");
}

fn print_counts(name: &str, runs: usize, judge: &Judge) {
    let Judge { ends, refused, shared, .. } = judge;
    let ends = ends.len();
    eprintln!("{name}: {runs} orders, {ends} ends, {refused} refused, {shared} shared");
}
