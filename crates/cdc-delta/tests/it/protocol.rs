//! The protocol of attach, fence and commit, checked in every order of its steps.
//!
//! The model is the sink with everything left out but its requests to the store: two runners at
//! a time, which crash and start again, replies that are lost, puts that arrive after their
//! sender gave up, a writer that is no runner, and cleanups of the log. `crate::interleave`
//! drives the real sink in the same way, in fewer orders.

mod explorer;
mod rules;
mod steps;
mod world;

use std::collections::BTreeMap;

use self::{
    explorer::{Explored, explore},
    rules::{ALARM, ALONE, BELIEVED, BELOW, DISCARDED, FENCE, ONCE, TOGETHER},
    steps::{Action, Bounds, Flaw, Found, Protocol, Reply},
    world::Done,
};

/// Asks for the wider bounds, with any value.
const WIDE: &str = "CDC_PROTOCOL_WIDE";

const DEFAULT: Bounds =
    Bounds { batches: 2, starts: 3, crashes: 1, lost: 1, foreign: 1, cleanups: 1, attempts: 2 };

/// The states within [`DEFAULT`]. A change of the model changes it, and has to be looked at.
const DEFAULT_STATES: usize = 2_464_517;

/// With another lost reply: two requests on their way at once, and every attempt in doubt.
const WIDER: Bounds = Bounds { lost: 2, ..DEFAULT };
const WIDER_STATES: usize = 10_492_000;

#[test]
fn every_rule_holds_in_every_order_of_the_protocols_steps() {
    let wide = std::env::var_os(WIDE).is_some();
    let (bounds, states) = if wide { (WIDER, WIDER_STATES) } else { (DEFAULT, DEFAULT_STATES) };
    let explored = explore(&mut Protocol::new(bounds, None));
    show(&explored);
    if let Some(fault) = &explored.fault {
        panic!("{}\n{:#?}", fault.rule, fault.way);
    }
    assert_eq!(explored.states, states, "the model has other states than before");
    for action in wanted() {
        assert!(explored.steps.keys().any(|step| step.action == action), "never: {action:?}");
    }
}

/// What must happen somewhere, or the model proves less than it says.
fn wanted() -> Vec<Action> {
    let mut wanted = vec![
        Action::Confirm { gap: true },
        Action::Repair,
        Action::Owner { fenced: true },
        Action::Crash,
        Action::LatePut,
        Action::ForeignCommit,
        Action::Cleanup,
    ];
    wanted.extend([Found::Landed, Found::Again, Found::Fenced, Found::Crowded].map(Action::Reload));
    for reply in [Reply::Plain, Reply::Lost, Reply::Late, Reply::Twin] {
        wanted.push(Action::PutFence(reply, Done::Made));
        wanted.push(Action::PutBatch(reply, Done::Made));
    }
    wanted
}

fn show(explored: &Explored<Protocol>) {
    let mut actions: BTreeMap<Action, u64> = BTreeMap::new();
    for (step, count) in &explored.steps {
        *actions.entry(step.action).or_default() += count;
    }
    eprintln!("{} states, {} steps deep", explored.states, explored.depth);
    for (action, count) in actions {
        eprintln!("{count:>9} {action:?}");
    }
}

#[test]
fn every_wrong_protocol_breaks_its_rule() {
    use Flaw as F;
    for (flaw, rule) in [
        (F::FenceNotLookedAt, FENCE),
        (F::FenceFromAnOldLook, FENCE),
        (F::TakeOverWithoutFence, FENCE),
        (F::FenceBelievedByNumber, FENCE),
        (F::BirthSeesTheNewest, FENCE),
        (F::RetryWithoutTheMark, ONCE),
        (F::MarkFromAnOldLook, ONCE),
        (F::MarkBeforeRows, TOGETHER),
        (F::RowsBeforeMark, TOGETHER),
        (F::DiscardInDoubt, DISCARDED),
        (F::TwinTakenForAnother, DISCARDED),
        (F::GapNotLookedAt, BELIEVED),
        (F::GapSeenByVersionAlone, BELIEVED),
        (F::PutReplaces, BELIEVED),
        (F::FactsBeforeMark, BELOW),
        (F::VerdictBeforeMark, BELOW),
        (F::LedgersReadAfterTheMark, ALARM),
        (F::RepairLeftOut, ALONE),
    ] {
        let mut model = Protocol::new(DEFAULT, Some(flaw));
        // What a runner will do alone may show the flaw earlier, and less plainly.
        model.looks_ahead = rule == ALONE;
        let explored = explore(&mut model);
        let fault = explored.fault.unwrap_or_else(|| panic!("{flaw:?} is not noticed"));
        assert_eq!(fault.rule, rule, "{flaw:?}: {:#?}", fault.way);
        eprintln!("{flaw:?}: {rule}, after {} steps", fault.way.len());
    }
}
