//! The operations in a change table: a queue in pieces of one size, so that a table of millions
//! grows without being copied and shrinks as cleanup goes.

use std::collections::VecDeque;

use crate::instance::ChangeEntry;

/// Operations in a piece.
const PIECE: usize = 4096;

/// Operations in the order of commit and command. All pieces but the first and the last are full.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeEntries {
    pieces: VecDeque<VecDeque<ChangeEntry>>,
    count: usize,
    rows: usize,
}

impl ChangeEntries {
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Rows of the change table: an update has two.
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn push_back(&mut self, entry: ChangeEntry) {
        self.rows += entry.rows();
        // The first piece is shorter than others once cleanup has been at it, and never grows
        // again when there is another behind it.
        match self.pieces.back_mut() {
            Some(last) if last.len() < PIECE => last.push_back(entry),
            _ => self.pieces.push_back(VecDeque::from([entry])),
        }
        self.count += 1;
    }

    pub(crate) fn front(&self) -> Option<&ChangeEntry> {
        self.pieces.front().and_then(VecDeque::front)
    }

    pub(crate) fn pop_front(&mut self) -> Option<ChangeEntry> {
        let first = self.pieces.front_mut()?;
        let entry = first.pop_front();
        if first.is_empty() {
            self.pieces.pop_front();
        }
        self.count -= usize::from(entry.is_some());
        self.rows -= entry.as_ref().map_or(0, ChangeEntry::rows);
        entry
    }

    /// The index of the first operation for which `before` is false; it is true for all in front.
    pub(crate) fn partition_point(&self, mut before: impl FnMut(&ChangeEntry) -> bool) -> usize {
        let piece = self.pieces.partition_point(|piece| piece.back().is_some_and(&mut before));
        let within = self.pieces.get(piece).map_or(0, |piece| piece.partition_point(&mut before));
        self.start_of(piece) + within
    }

    /// The index of the first operation of a piece.
    fn start_of(&self, piece: usize) -> usize {
        let first = self.pieces.front().map_or(0, VecDeque::len);
        match piece.checked_sub(1) {
            Some(full) => (first + full * PIECE).min(self.count),
            None => 0,
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<&ChangeEntry> {
        self.range(index).next()
    }

    /// The operations from an index on.
    pub(crate) fn range(&self, from: usize) -> impl Iterator<Item = &ChangeEntry> {
        let first = self.pieces.front().map_or(0, VecDeque::len);
        let (piece, within) = match from.checked_sub(first) {
            None => (0, from),
            Some(behind) => (1 + behind / PIECE, behind % PIECE),
        };
        let rest = self.pieces.iter().skip(piece + 1).flatten();
        let begun = self.pieces.get(piece);
        begun.into_iter().flat_map(move |begun| begun.iter().skip(within)).chain(rest)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ChangeEntry> {
        self.pieces.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ChangeEntry> {
        self.pieces.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::Lsn;
    use proptest::prelude::*;

    use super::*;
    use crate::log::RowChange;

    fn entry(number: u128) -> ChangeEntry {
        let lsn = Lsn::from_u128(number).expect("small");
        let change = RowChange::Insert(Vec::new().into());
        ChangeEntry { commit: lsn, seqval: lsn, command: 1, change }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn it_is_the_queue_that_it_stands_for(
            steps in prop::collection::vec((1usize..6000, 0usize..6000), 1..5),
            looks in prop::collection::vec(0usize..20_000, 8),
        ) {
            let mut entries = ChangeEntries::default();
            let (mut low, mut high) = (0_u128, 0_u128);
            for (pushed, popped) in steps {
                for _ in 0..pushed {
                    entries.push_back(entry(high));
                    high += 1;
                }
                for _ in 0..popped {
                    let gone = entries.pop_front().map(|entry| entry.commit.to_u128());
                    prop_assert_eq!(gone, (low < high).then_some(low));
                    low += u128::from(low < high);
                }
            }
            let left = usize::try_from(high - low).expect("small");
            prop_assert_eq!(entries.len(), left);
            prop_assert_eq!(entries.iter().count(), left);
            prop_assert_eq!(entries.rows(), left);
            for look in looks {
                let wanted = low + look as u128;
                let at = entries.partition_point(|entry| entry.commit.to_u128() < wanted);
                prop_assert_eq!(at, look.min(left));
                let found = entries.get(look).map(|entry| entry.commit.to_u128());
                prop_assert_eq!(found, (wanted < high).then_some(wanted));
                prop_assert_eq!(entries.range(look).count(), left.saturating_sub(look));
            }
        }
    }
}
