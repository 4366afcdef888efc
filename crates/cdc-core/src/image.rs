//! The current state that a change log stands for: the newest image of every key.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
};

use crate::change::Operation;

/// The newest image of every key, from rows offered in any order.
///
/// `O` is the place of a row in change order. For each key the row with the greatest place counts:
/// a read, an insert or an after image is the key's image; a delete or a before image says that
/// the key is gone. An update's after image outranks its before image, so a before image counts
/// only where the update moved the row to another key.
#[derive(Clone, Debug)]
pub struct Images<K, O, R> {
    newest: HashMap<K, (O, Option<R>)>,
}

impl<K: Eq + Hash, O: Ord, R> Default for Images<K, O, R> {
    fn default() -> Self {
        Self { newest: HashMap::new() }
    }
}

impl<K: Eq + Hash, O: Ord, R> Images<K, O, R> {
    /// Offers one row. Offering a row again changes nothing.
    pub fn offer(&mut self, key: K, place: O, operation: Operation, row: impl FnOnce() -> R) {
        let image = || match operation {
            Operation::Read | Operation::Insert | Operation::UpdateAfter => Some(row()),
            Operation::Delete | Operation::UpdateBefore => None,
        };
        match self.newest.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert((place, image()));
            }
            Entry::Occupied(mut newest) => {
                if newest.get().0 < place {
                    newest.insert((place, image()));
                }
            }
        }
    }

    /// The keys that exist, with their images, in no order.
    pub fn into_present(self) -> impl Iterator<Item = (K, R)> {
        self.newest.into_iter().filter_map(|(key, (_, image))| Some((key, image?)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Commit, command, sequence value, operation; key; value.
    type Change = ((u8, u8, u8, i32), u8, u16);

    fn present(changes: &[Change]) -> Vec<(u8, u16)> {
        let mut images = Images::default();
        for (place, key, value) in changes {
            let operation = Operation::from_code(place.3).expect("known");
            images.offer(*key, *place, operation, || *value);
        }
        let mut present: Vec<_> = images.into_present().collect();
        present.sort_unstable();
        present
    }

    #[test]
    fn a_chain_of_key_updates_in_one_commit_leaves_the_last_key() {
        // 10 becomes 20 becomes 30, as deletes with inserts, then as update pairs.
        let split = [
            ((1, 1, 1, 1), 10, 5),
            ((1, 1, 2, 2), 20, 5),
            ((1, 2, 3, 1), 20, 5),
            ((1, 2, 4, 2), 30, 5),
        ];
        assert_eq!(present(&split), [(30, 5)]);
        let pairs = [
            ((1, 1, 1, 3), 10, 5),
            ((1, 1, 1, 4), 20, 5),
            ((1, 2, 2, 3), 20, 5),
            ((1, 2, 2, 4), 30, 5),
        ];
        assert_eq!(present(&pairs), [(30, 5)]);
    }

    #[test]
    fn a_key_deleted_and_inserted_in_one_command_lives() {
        assert_eq!(present(&[((1, 1, 7, 1), 5, 1), ((1, 1, 9, 2), 5, 2)]), [(5, 2)]);
        // In the log the insert stands before the delete; the commands tell.
        assert_eq!(present(&[((1, 2, 7, 2), 5, 2), ((1, 1, 9, 1), 5, 1)]), [(5, 2)]);
    }

    proptest! {
        #[test]
        fn no_order_of_rows_and_no_repetition_changes_the_image(
            steps in proptest::collection::vec((0u8..6, 0u8..4, any::<u16>()), 1..40),
            seed in any::<u64>(),
        ) {
            let mut table = HashMap::new();
            let mut changes: Vec<Change> = Vec::new();
            for ((commit, key, value), command) in steps.into_iter().zip(0u8..) {
                match table.get(&key).copied() {
                    None => changes.push(((0, command, command, 2), key, value)),
                    Some(old) if commit == 0 => {
                        changes.push(((0, command, command, 1), key, old));
                        table.remove(&key);
                        continue;
                    }
                    Some(old) => {
                        changes.push(((0, command, command, 3), key, old));
                        changes.push(((0, command, command, 4), key, value));
                    }
                }
                table.insert(key, value);
            }
            let mut expected: Vec<_> = table.into_iter().collect();
            expected.sort_unstable();
            prop_assert_eq!(present(&changes), expected.clone());
            let mut shuffled = [changes.clone(), changes].concat();
            let count = shuffled.len() as u64;
            for index in 0..shuffled.len() {
                let other = seed.wrapping_mul(index as u64 + 1) % count;
                shuffled.swap(index, usize::try_from(other).expect("small"));
            }
            prop_assert_eq!(present(&shuffled), expected);
        }
    }
}
