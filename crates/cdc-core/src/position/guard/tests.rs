//! What the guard promises, for both engines' keys, in their typed form and as texts.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{
    Images, Lsn,
    change::Operation,
    position::{binlog::BinlogKey, sqlserver::ChangeKey},
};

/// An event on its way to a target: where it stands, what it does to which key.
#[derive(Clone, Debug)]
struct Event<K> {
    at: Guarded<K>,
    operation: Operation,
    key: u8,
    value: u32,
}

/// A history of one table: per epoch a log of its own, whose coordinates begin anew.
fn history(steps: &[(u8, u8, bool)], epochs: u32) -> Vec<(u32, u32, Operation, u8, u32)> {
    let mut live: BTreeMap<u8, u32> = BTreeMap::new();
    let mut events = Vec::new();
    let per_epoch = steps.len().div_ceil(epochs as usize).max(1);
    for (index, (key, _, delete)) in steps.iter().enumerate() {
        let (epoch, place) = (index / per_epoch, index % per_epoch);
        let value = u32::try_from(index).expect("few");
        let operation = match (delete, live.contains_key(key)) {
            (true, true) => Operation::Delete,
            (_, true) => Operation::UpdateAfter,
            (_, false) => Operation::Insert,
        };
        match operation {
            Operation::Delete => live.remove(key),
            _ => live.insert(*key, value),
        };
        let number = |n: usize| u32::try_from(n).expect("few");
        events.push((number(epoch), number(place) + 1, operation, *key, value));
    }
    events
}

/// What the source holds after the first `count` events.
fn state(events: &[(u32, u32, Operation, u8, u32)], count: usize) -> BTreeMap<u8, u32> {
    let mut rows = BTreeMap::new();
    for (_, _, operation, key, value) in events.iter().take(count) {
        match operation {
            Operation::Delete => rows.remove(key),
            _ => rows.insert(*key, *value),
        };
    }
    rows
}

fn applied<P: Ord + Clone>(
    events: impl IntoIterator<Item = (P, Operation, u8, u32)>,
) -> BTreeMap<u8, u32> {
    let mut images = Images::default();
    for (place, operation, key, value) in events {
        images.offer(key, place, operation, || value);
    }
    images.into_present().collect()
}

/// Delivers the whole history in any order, with repetitions and with snapshot rows taken at any
/// moment of the last epoch, and compares what a target holds with the source.
fn converges<K: GuardKey + Copy + std::fmt::Debug>(
    steps: &[(u8, u8, bool)],
    epochs: u32,
    snapshots: &[usize],
    shuffle: &[u16],
    key_of: impl Fn(u32, Operation) -> K,
    stamp_of: impl Fn(u32) -> K,
) -> Result<(), TestCaseError> {
    let source = history(steps, epochs);
    let mut events: Vec<Event<K>> = source
        .iter()
        .map(|(epoch, place, operation, key, value)| Event {
            at: Guarded { epoch: Epoch(*epoch), key: key_of(*place, *operation) },
            operation: *operation,
            key: *key,
            value: *value,
        })
        .collect();
    for moment in snapshots {
        let moment = moment % source.len() + 1;
        let (epoch, place, ..) = source[moment - 1];
        for (key, value) in state(&source, moment) {
            let at = Guarded { epoch: Epoch(epoch), key: stamp_of(place) };
            events.push(Event { at, operation: Operation::Read, key, value });
        }
    }
    // Every event at least once, some again, in an order that the draw decides.
    let again: Vec<_> =
        events.iter().zip(shuffle).filter(|(_, n)| **n % 3 == 0).map(|(e, _)| e.clone()).collect();
    events.extend(again);
    let mut order: Vec<_> = (0..events.len()).collect();
    order.sort_by_key(|i| (shuffle.get(i % shuffle.len().max(1)).copied(), i * 7919 % 101));
    let shuffled: Vec<_> = order.iter().map(|i| events[*i].clone()).collect();

    let expected = state(&source, source.len());
    let typed = |e: &Event<K>| (e.at, e.operation, e.key, e.value);
    prop_assert_eq!(applied(shuffled.iter().map(typed)), expected.clone());
    // As a target compares: the epoch as a number and the key as a text, or both as one text.
    let text = |e: &Event<K>| ((e.at.epoch.0, e.at.key.text()), e.operation, e.key, e.value);
    prop_assert_eq!(applied(shuffled.iter().map(text)), expected.clone());
    let whole = |e: &Event<K>| (e.at.text(), e.operation, e.key, e.value);
    prop_assert_eq!(applied(shuffled.iter().map(whole)), expected.clone());
    // A replay of everything behind everything does nothing.
    let twice = shuffled.iter().chain(&shuffled).map(typed);
    prop_assert_eq!(applied(twice), expected);
    Ok(())
}

fn lsn(number: u32) -> Lsn {
    Lsn::from_u128(number.into()).expect("small")
}

proptest! {
    #[test]
    fn any_interleaving_converges_for_sql_server(
        steps in proptest::collection::vec((0u8..5, any::<u8>(), any::<bool>()), 1..40),
        epochs in 1u32..4,
        snapshots in proptest::collection::vec(any::<usize>(), 0..3),
        shuffle in proptest::collection::vec(any::<u16>(), 1..60),
        commit_size in 1u32..4,
    ) {
        // Several changes share a commit; the log record, and inside a commit the command, tell.
        let key = |place: u32, operation| {
            let (commit, command) = (place / commit_size + 1, i32::try_from(place).ok());
            ChangeKey::new(lsn(commit), command, Some(lsn(1000 - place)), operation).expect("in range")
        };
        // A snapshot is stamped with a whole commit, so every step is one here.
        if commit_size == 1 {
            let stamp = |place: u32| ChangeKey::snapshot(lsn(place + 1));
            converges(&steps, epochs, &snapshots, &shuffle, key, stamp)?;
        } else {
            let stamp = |_| unreachable!("no snapshot is drawn");
            converges(&steps, epochs, &[], &shuffle, key, stamp)?;
        }
    }

    #[test]
    fn any_interleaving_converges_for_mysql(
        steps in proptest::collection::vec((0u8..5, any::<u8>(), any::<bool>()), 1..40),
        epochs in 1u32..4,
        snapshots in proptest::collection::vec(any::<usize>(), 0..3),
        shuffle in proptest::collection::vec(any::<u16>(), 1..60),
        first_file in prop_oneof![Just(8u32), Just(999_998)],
    ) {
        // Three rows an event, two events a file, so that files roll over.
        let key = |place: u32, _| {
            let event = place / 3;
            let pos = 4 + 0x1_0000_0000 * u64::from(event % 2);
            BinlogKey::new(first_file + event / 2, pos, place % 3 + 1).expect("in range")
        };
        // Snapshots in the middle of an event are not taken: a row of it has the stamp or more.
        let stamp = |place: u32| key(place, Operation::Read);
        converges(&steps, epochs, &snapshots, &shuffle, key, stamp)?;
    }

    #[test]
    fn epochs_never_mix(a in (0u32..3, 0u32..4), b in (0u32..3, 0u32..4)) {
        let key = |(epoch, place): (u32, u32)| Guarded {
            epoch: Epoch(epoch),
            key: ChangeKey::snapshot(lsn(place)),
        };
        let (a, b) = (key(a), key(b));
        prop_assert_eq!(a.text().cmp(&b.text()), a.cmp(&b));
        if a.epoch != b.epoch {
            prop_assert_eq!(a.cmp(&b), a.epoch.cmp(&b.epoch));
        }
    }

    #[test]
    fn a_guarded_key_round_trips(epoch: u32, place: u32, pos in 0..BinlogKey::POS_MAX) {
        let lsn = Guarded { epoch: Epoch(epoch), key: ChangeKey::snapshot(lsn(place)) };
        prop_assert_eq!(Guarded::read(&lsn.text()), Ok(lsn));
        prop_assert_eq!(lsn.text().len(), Guarded::<ChangeKey>::WIDTH);
        let row = Guarded { epoch: Epoch(epoch), key: BinlogKey::new(place, pos, 1).expect("fits") };
        prop_assert_eq!(Guarded::read(&row.text()), Ok(row));
    }
}

#[test]
fn an_epoch_that_no_counter_reaches_is_refused() {
    let text = format!("{}{}", u64::from(u32::MAX) + 1, ChangeKey::snapshot(lsn(1)).text());
    let error = Guarded::<ChangeKey>::read(&text);
    assert_eq!(error, Err(KeyError::TooLarge { part: "epoch", most: u32::MAX.into() }));
}
