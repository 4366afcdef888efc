//! The mark as `txn` entries of the bronze log.
//!
//! An entry is a name and a 64-bit number. A mark is the entries below, all written by the same
//! commit as the rows, so that they are of one commit whenever they are read.

use std::collections::BTreeMap;

use arrow_array::{Array, Int64Array, RecordBatch, StringArray, StructArray, cast::AsArray};
use cdc_core::{Epoch, Error, ErrorKind, Mark, Position, Result, Timestamp};

/// Bytes of a position in one entry: as many as stay positive in a 64-bit number.
const PART: usize = 7;

/// The names of a table's entries.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    table: String,
}

impl Names {
    pub(crate) fn new(table: &str) -> Self {
        Self { table: table.to_owned() }
    }

    fn name(&self, what: &str) -> String {
        format!("cdc/{}/{what}", self.table)
    }

    /// The number of the runner that owns the table.
    pub(crate) fn fence(&self) -> String {
        self.name("fence")
    }

    /// The sink that attached last, by a number it drew.
    pub(crate) fn runner(&self) -> String {
        self.name("runner")
    }

    /// What every commit says about its owner.
    pub(crate) fn owner(&self, fence: i64, runner: i64) -> [(String, i64); 2] {
        [(self.fence(), fence), (self.runner(), runner)]
    }

    /// The mark's sequence number.
    pub(crate) fn sequence(&self) -> String {
        self.name("sequence")
    }

    /// The epoch that the mark's or verdict's position belongs to.
    pub(crate) fn epoch(&self) -> String {
        self.name("epoch")
    }

    /// In the facts log: the last batch whose facts are written.
    pub(crate) fn facts(&self) -> String {
        format!("cdc/{}#facts", self.table)
    }

    fn part(&self, index: usize) -> String {
        self.name(&format!("pos{index}"))
    }

    /// Every entry that a mark may need, and the fence.
    pub(crate) fn all(&self) -> Vec<String> {
        let mut names = vec![self.fence(), self.runner(), self.sequence(), self.epoch()];
        names.extend(
            ["generation", "commit_time", "commit_time.known", "pos.width"].map(|w| self.name(w)),
        );
        names.extend(["entry_time", "entry_time.of"].map(|w| self.name(w)));
        names.extend((0..parts(Position::WIDTH_MAX)).map(|index| self.part(index)));
        names
    }

    /// True when entries that were found from the end of the log on are the whole mark and the
    /// fence. The entries of one commit are found together.
    pub(crate) fn enough(&self, entries: &BTreeMap<String, i64>) -> bool {
        [self.fence(), self.sequence()].iter().all(|name| entries.contains_key(name))
    }

    /// A mark as entries.
    pub(crate) fn entries(&self, mark: &Mark) -> Result<Vec<(String, i64)>> {
        let sequence = i64::try_from(mark.sequence)
            .map_err(|_| Error::bug("sequence does not fit the log"))?;
        let bytes = mark.end.as_bytes();
        let mut entries = vec![
            (self.sequence(), sequence),
            (self.epoch(), i64::from(mark.epoch().0)),
            (self.name("generation"), i64::from(mark.generation)),
            (self.name("commit_time"), mark.commit_time.map_or(0, Timestamp::as_micros)),
            (self.name("commit_time.known"), i64::from(mark.commit_time.is_some())),
            (
                self.name("pos.width"),
                i64::try_from(bytes.len()).map_err(|_| Error::bug("position is too wide"))?,
            ),
        ];
        if let Some(time) = mark.entry_time {
            entries.push((self.name("entry_time"), time.as_micros()));
            // Later marks may not have one and leave this one's behind.
            entries.push((self.name("entry_time.of"), sequence));
        }
        for (index, part) in bytes.chunks(PART).enumerate() {
            let number = part.iter().fold(0i64, |number, byte| (number << 8) | i64::from(*byte));
            entries.push((self.part(index), number));
        }
        Ok(entries)
    }

    /// The mark in a table's entries; none before the first.
    pub(crate) fn mark(&self, entries: &BTreeMap<String, i64>) -> Result<Option<Mark>> {
        let Some(sequence) = entries.get(&self.sequence()) else {
            return Ok(None);
        };
        let entry = |what: &str| -> Result<i64> {
            entries.get(&self.name(what)).copied().ok_or_else(|| self.damaged(what))
        };
        let small = |what: &str| -> Result<u32> {
            u32::try_from(entry(what)?).map_err(|_| self.damaged(what))
        };
        let width = usize::try_from(entry("pos.width")?)
            .ok()
            .filter(|width| (1..=Position::WIDTH_MAX).contains(width))
            .ok_or_else(|| self.damaged("pos.width"))?;
        let mut bytes = Vec::with_capacity(width);
        for index in 0..parts(width) {
            let what = format!("pos{index}");
            let number = entry(&what)?;
            let take = PART.min(width.saturating_sub(bytes.len()));
            let all = number.to_be_bytes();
            let (zeros, part) = all.split_at(all.len().saturating_sub(take));
            if zeros.iter().any(|byte| *byte != 0) {
                return Err(self.damaged(&what));
            }
            bytes.extend_from_slice(part);
        }
        let commit_time = match entry("commit_time.known")? {
            0 => None,
            1 => Some(Timestamp::from_micros(entry("commit_time")?)),
            _ => return Err(self.damaged("commit_time.known")),
        };
        let entry_time = match entries.get(&self.name("entry_time.of")) {
            Some(of) if of == sequence => Some(Timestamp::from_micros(entry("entry_time")?)),
            _ => None,
        };
        Ok(Some(Mark {
            sequence: u64::try_from(*sequence)
                .ok()
                .filter(|sequence| *sequence > 0)
                .ok_or_else(|| self.damaged("sequence"))?,
            end: Position::new(Epoch(small("epoch")?), &bytes)?,
            commit_time,
            entry_time,
            generation: small("generation")?,
        }))
    }

    fn damaged(&self, what: &str) -> Error {
        Error::new(ErrorKind::InvalidData, "the mark in the table's log is incomplete or damaged")
            .with("table", &self.table)
            .with("entry", self.name(what))
            .remedy(
                "restore the table's log to a version whose txn entries are whole, or move the \
             table's directory away and copy the table again",
            )
    }
}

/// Calls `take` for the `txn` entries of one part of a log.
pub(crate) fn for_each_entry(batch: &RecordBatch, mut take: impl FnMut(&str, i64)) {
    let Some(entries) = batch.column_by_name("txn").and_then(|column| column.as_struct_opt())
    else {
        return;
    };
    let ids: Option<&StringArray> = child(entries, "appId");
    let numbers: Option<&Int64Array> = child(entries, "version");
    let (Some(ids), Some(numbers)) = (ids, numbers) else {
        return;
    };
    for row in 0..entries.len() {
        if entries.is_valid(row) && ids.is_valid(row) && numbers.is_valid(row) {
            take(ids.value(row), numbers.value(row));
        }
    }
}

fn child<'a, A: Array + 'static>(parent: &'a StructArray, name: &str) -> Option<&'a A> {
    parent.column_by_name(name)?.as_any().downcast_ref()
}

fn parts(width: usize) -> usize {
    width.div_ceil(PART)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_mark() -> impl Strategy<Value = Mark> {
        (
            1u64..=i64::MAX as u64,
            proptest::collection::vec(any::<u8>(), 1..=Position::WIDTH_MAX),
            any::<u32>(),
            proptest::option::of(any::<i64>()),
            proptest::option::of(any::<i64>()),
            any::<u32>(),
        )
            .prop_map(|(sequence, bytes, epoch, time, entry_time, generation)| Mark {
                sequence,
                end: Position::new(Epoch(epoch), &bytes).expect("fits"),
                commit_time: time.map(Timestamp::from_micros),
                entry_time: entry_time.map(Timestamp::from_micros),
                generation,
            })
    }

    fn laid(names: &Names, marks: &[Mark]) -> BTreeMap<String, i64> {
        marks.iter().flat_map(|mark| names.entries(mark).expect("fits")).collect()
    }

    proptest! {
        #[test]
        fn a_mark_comes_back_whatever_was_there_before(before in any_mark(), mark in any_mark()) {
            prop_assume!(before.sequence != mark.sequence);
            let names = Names::new("dbo.t");
            let entries = laid(&names, &[before, mark]);
            prop_assert_eq!(names.mark(&entries).expect("whole"), Some(mark));
            for name in entries.keys() {
                prop_assert!(names.all().contains(name));
            }
        }

        #[test]
        fn a_mark_without_one_of_its_parts_is_refused(mark in any_mark(), part in any::<prop::sample::Index>()) {
            let names = Names::new("t");
            let mut entries = laid(&names, &[mark]);
            let name = entries.keys().nth(part.index(entries.len())).expect("in range").clone();
            entries.remove(&name);
            if name == names.sequence() {
                prop_assert_eq!(names.mark(&entries).expect("none"), None);
            } else if name.ends_with("/entry_time.of") {
                // As a target that was written before marks had it.
                let without = Mark { entry_time: None, ..mark };
                prop_assert_eq!(names.mark(&entries).expect("whole"), Some(without));
            } else if !(name.ends_with("/commit_time") && mark.commit_time.is_none()) {
                let error = names.mark(&entries).expect_err("incomplete");
                prop_assert_eq!(error.kind(), ErrorKind::InvalidData);
            }
        }
    }

    #[test]
    fn a_part_that_is_too_great_is_refused() {
        let names = Names::new("t");
        let mark = Mark {
            sequence: 1,
            end: Position::new(Epoch(0), &[1; 10]).expect("fits"),
            commit_time: None,
            entry_time: None,
            generation: 0,
        };
        for (entry, value) in
            [("pos1", 1 << 24), ("pos0", -1), ("epoch", 1 << 32), ("pos.width", 25)]
        {
            let mut entries = laid(&names, &[mark]);
            entries.insert(format!("cdc/t/{entry}"), value);
            assert!(names.mark(&entries).is_err(), "{entry}");
        }
    }
}
