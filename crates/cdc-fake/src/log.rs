//! The transaction log: how LSNs are handed out, and the committed records that capture has not
//! processed yet.

use std::collections::VecDeque;

use cdc_core::{Lsn, ServerTime, SqlType, Timestamp};

use crate::value::Row;

/// Identifies a table for its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableId(pub(crate) u32);

/// Identifies a capture instance for its lifetime; a name may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InstanceId(pub(crate) u32);

/// One operation on a row, with the images it needs.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange {
    /// The row that was removed.
    Delete(Row),
    /// The row that was added.
    Insert(Row),
    /// The row before and after.
    Update(Row, Row),
}

impl RowChange {
    /// The row before; none of an insert.
    pub(crate) const fn before(&self) -> Option<&Row> {
        match self {
            Self::Delete(row) | Self::Update(row, _) => Some(row),
            Self::Insert(_) => None,
        }
    }

    /// The row after; none of a delete.
    pub(crate) const fn after(&self) -> Option<&Row> {
        match self {
            Self::Insert(row) | Self::Update(_, row) => Some(row),
            Self::Delete(_) => None,
        }
    }
}

/// A row operation in the log.
#[derive(Clone, Debug)]
pub(crate) struct LogChange {
    pub(crate) table: TableId,
    /// Where the record stands in the log: what `__$seqval` shows.
    pub(crate) seqval: Lsn,
    pub(crate) change: RowChange,
}

/// What a schema statement does to change tables.
#[derive(Clone, Debug)]
pub(crate) enum DdlEffect {
    /// Nothing.
    None,
    /// A column's type became another.
    Alter { column_id: i32, from: SqlType, to: SqlType },
}

/// What a record of the log says.
#[derive(Clone, Debug)]
pub(crate) enum LogEvent {
    /// A commit with its changes in the order of their commands.
    Commit {
        changes: Vec<LogChange>,
        /// When the transaction began, on the server's clock.
        began: ServerTime,
        /// The transaction's number.
        transaction: u32,
    },
    /// A capture instance was enabled.
    Enable(InstanceId),
    /// A table's columns changed.
    Ddl { table: TableId, statement: String, effect: DdlEffect },
}

/// A record that capture reads.
#[derive(Clone, Debug)]
pub(crate) struct LogRecord {
    pub(crate) lsn: Lsn,
    /// When it was written, in UTC.
    pub(crate) time: Timestamp,
    /// When it was written, on the server's clock.
    pub(crate) local: ServerTime,
    pub(crate) event: LogEvent,
}

/// Hands out LSNs: virtual log file, block, slot, as `0x0000002A:00000010:0001`.
#[derive(Clone, Debug)]
pub(crate) struct LsnSequence {
    file: u32,
    block: u32,
    slot: u16,
}

/// Blocks of 512 bytes between two flushes of the log.
const BLOCK_STEP: u32 = 0x10;
/// Blocks in a virtual log file.
const FILE_BLOCKS: u32 = 0x0002_0000;

impl LsnSequence {
    pub(crate) const fn new() -> Self {
        Self { file: 0x2a, block: BLOCK_STEP, slot: 0 }
    }

    /// The LSN of the next record.
    pub(crate) fn next(&mut self) -> Lsn {
        match self.slot.checked_add(1) {
            Some(slot) => self.slot = slot,
            None => {
                self.flush();
                self.slot = 1;
            }
        }
        let number =
            (u128::from(self.file) << 48) | (u128::from(self.block) << 16) | u128::from(self.slot);
        Lsn::from_u128(number).unwrap_or(Lsn::MAX)
    }

    /// Ends the block: the next record stands in a later one.
    pub(crate) fn flush(&mut self) {
        self.slot = 0;
        self.block = self.block.saturating_add(BLOCK_STEP);
        if self.block > FILE_BLOCKS {
            self.file = self.file.saturating_add(1);
            self.block = BLOCK_STEP;
        }
    }
}

/// The log of one database, as far as capture reads it. Processed records are gone: the log was
/// truncated.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) sequence: LsnSequence,
    pub(crate) pending: VecDeque<LogRecord>,
}

impl Log {
    pub(crate) const fn new() -> Self {
        Self { sequence: LsnSequence::new(), pending: VecDeque::new() }
    }

    /// The LSN of a commit: the last record of its block.
    pub(crate) fn commit_lsn(&mut self) -> Lsn {
        let lsn = self.sequence.next();
        self.sequence.flush();
        lsn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lsns_grow_over_slots_blocks_and_files() {
        let mut sequence = LsnSequence::new();
        assert_eq!(sequence.next().to_string(), "0x0000002A000000100001");
        let mut before = sequence.next();
        for step in 0..200_000 {
            if step % 3 == 0 {
                sequence.flush();
            }
            let lsn = sequence.next();
            assert!(lsn > before);
            before = lsn;
        }
        assert!(sequence.file > 0x2a);
    }
}
