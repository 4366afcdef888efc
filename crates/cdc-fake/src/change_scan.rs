//! Reading change tables and the mapping as tables: seeking by LSN, in chunks, each as the table
//! is at that moment.

use std::{collections::VecDeque, sync::Arc};

use cdc_core::{InstanceName, Lsn, ServerTime, change::Operation};

use crate::{
    database::{DatabaseState, FakeDatabase, unknown_instance},
    instance::{CapturedCell, ChangeEntry, Instance, slot_of},
    log::{InstanceId, RowChange},
    mapping::MappingEntry,
    sql_error::SqlResult,
    value::{Row, Value},
};

static NULL: Value = Value::Null;

/// Operations that one look under the lock takes.
const CHUNK_OPERATIONS: usize = 1024;

/// Rows of a change table on their way, in the order of commit, command and operation:
/// `__$start_lsn`, `__$end_lsn`, `__$seqval`, `__$operation`, `__$update_mask`, the captured
/// columns, `__$command_id`.
#[derive(Debug)]
pub struct ChangeTableRows {
    database: FakeDatabase,
    name: InstanceName,
    instance: InstanceId,
    /// Commit and command of the last operation that was read.
    cursor: (Lsn, i32),
    to: Lsn,
    found: VecDeque<Row>,
    done: bool,
    lsn: Option<(Lsn, Value)>,
    every: Value,
}

impl FakeDatabase {
    /// Begins to read the rows of a change table whose commits are in `[from, to]`.
    ///
    /// # Errors
    /// 22960 for an unknown instance.
    pub fn read_changes(
        &self,
        instance: &InstanceName,
        from: Lsn,
        to: Lsn,
    ) -> SqlResult<ChangeTableRows> {
        let state = self.look();
        let found = state.instance(instance).ok_or_else(|| unknown_instance(instance))?;
        Ok(ChangeTableRows {
            database: self.clone(),
            name: instance.clone(),
            instance: found.id,
            cursor: (from.decrement(), i32::MAX),
            to,
            found: VecDeque::new(),
            done: from > to,
            lsn: None,
            every: every_column(found.columns.len()),
        })
    }

    /// The rows of the mapping with LSNs in `[from, to]`, at most `limit`.
    #[must_use]
    pub fn mapping_between(&self, from: Lsn, to: Lsn, limit: usize) -> Vec<MappingEntry> {
        self.look().mapping.between(from, to).take(limit).copied().collect()
    }

    /// The row of the mapping with an LSN.
    #[must_use]
    pub fn mapping_at(&self, lsn: Lsn) -> Option<MappingEntry> {
        self.look().mapping.get(lsn).copied()
    }

    /// The greatest LSN at or before a time of the server's clock.
    #[must_use]
    pub fn lsn_until(&self, time: ServerTime) -> Option<Lsn> {
        self.look().mapping.at_time(time)
    }

    /// The least LSN at or after a time of the server's clock.
    #[must_use]
    pub fn lsn_since(&self, time: ServerTime) -> Option<Lsn> {
        self.look().mapping.first_since(time)
    }
}

impl Iterator for ChangeTableRows {
    type Item = SqlResult<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.found.is_empty() && !self.done {
            if let Err(error) = self.fill() {
                self.done = true;
                return Some(Err(error));
            }
        }
        self.found.pop_front().map(Ok)
    }
}

impl ChangeTableRows {
    fn fill(&mut self) -> SqlResult<()> {
        let database = self.database.clone();
        let state = database.look();
        let state: &DatabaseState = &state;
        let instance =
            state.instances.get(&self.instance).ok_or_else(|| unknown_instance(&self.name))?;
        let cells: Vec<CapturedCell> = instance.columns.iter().map(Into::into).collect();
        let first = instance.index_behind(self.cursor.0, self.cursor.1);
        for (taken, entry) in instance.entries.range(first).enumerate() {
            if entry.commit > self.to {
                break;
            }
            if taken == CHUNK_OPERATIONS {
                return Ok(());
            }
            self.cursor = (entry.commit, entry.command);
            self.push(instance, entry, &cells);
        }
        self.done = true;
        Ok(())
    }

    fn push(&mut self, instance: &Instance, entry: &ChangeEntry, cells: &[CapturedCell]) {
        let start = match &self.lsn {
            Some((lsn, value)) if *lsn == entry.commit => value.clone(),
            _ => {
                let value = Value::bytes(entry.commit.as_bytes());
                self.lsn = Some((entry.commit, value.clone()));
                value
            }
        };
        let seqval = Value::bytes(entry.seqval.as_bytes());
        let mask = match &entry.change {
            RowChange::Update(before, after) => changed_columns(instance, before, after),
            _ => self.every.clone(),
        };
        let command = Value::Int(entry.command.into());
        for operation in entry.operations() {
            let head = [
                start.clone(),
                Value::Null,
                seqval.clone(),
                Value::Int(number_of(*operation)),
                mask.clone(),
            ];
            let captured = cells.iter().map(|cell| entry.cell(*operation, cell).clone());
            // Of known length, so that a row is one allocation.
            let row = head.into_iter().chain(captured).chain(std::iter::once(command.clone()));
            self.found.push_back(row.collect());
        }
    }
}

const fn number_of(operation: Operation) -> i64 {
    match operation {
        Operation::Delete => 1,
        Operation::Insert => 2,
        Operation::UpdateBefore => 3,
        _ => 4,
    }
}

/// The mask that names every one of so many columns.
fn every_column(columns: usize) -> Value {
    mask((0..columns).map(|_| true))
}

fn changed_columns(instance: &Instance, before: &[Value], after: &[Value]) -> Value {
    mask(instance.columns.iter().map(|column| {
        let slot = slot_of(column);
        before.get(slot).unwrap_or(&NULL) != after.get(slot).unwrap_or(&NULL)
    }))
}

/// Bits by column ordinal: the first column is the lowest bit of the last byte.
fn mask(bits: impl ExactSizeIterator<Item = bool>) -> Value {
    let mut bytes = vec![0_u8; bits.len().div_ceil(8)];
    let last = bytes.len();
    for (at, set) in bits.enumerate() {
        if let (true, Some(byte)) = (set, bytes.get_mut(last - 1 - at / 8)) {
            *byte |= 1 << (at % 8);
        }
    }
    Value::Bytes(Arc::from(bytes))
}

#[cfg(test)]
mod tests {
    use cdc_core::{SqlType, TableName, Timestamp};

    use super::*;
    use crate::{EnableOptions, FakeServer, TableDefinition, VirtualClock, Zone};

    #[test]
    fn the_mask_counts_columns_from_the_lowest_bit_of_its_last_byte() {
        assert_eq!(mask([true, false, true].into_iter()), Value::bytes(&[5]));
        let ten = (0..10).map(|at| at == 8);
        assert_eq!(mask(ten.collect::<Vec<_>>().into_iter()), Value::bytes(&[1, 0]));
        assert_eq!(every_column(12), Value::bytes(&[0x0f, 0xff]));
    }

    #[test]
    fn a_change_table_reads_in_chunks_from_the_wanted_commit_to_the_last() {
        let clock = VirtualClock::manual(Timestamp::from_micros(0));
        let database = FakeServer::new(clock, Zone::UTC).database("shop");
        let table = TableName::new("dbo", "t");
        let definition = TableDefinition::new("t").column("id", SqlType::Int);
        let definition = definition.nullable("v", SqlType::Int).primary_key(&["id"]);
        database.create_table(definition).expect("new");
        let instance = database.enable_table(&table, EnableOptions::default()).expect("allowed");
        let insert = |from: i64, to: i64| {
            let rows = (from..to).map(|id| vec![id.into(), id.into()]).collect();
            database.transact(|tx| tx.insert_many(&table, rows).map(|_| ())).expect("free").lsn
        };
        insert(0, 10);
        let second = insert(10, 3010);
        let update = |tx: &mut crate::Transaction| {
            tx.update(&table, &[10.into()], &[("v", 7.into())]).map(|_| ())
        };
        let third = database.transact(update).expect("free").lsn;
        database.capture();
        let read = |from, to| {
            let rows = database.read_changes(&instance, from, to).expect("known");
            rows.collect::<SqlResult<Vec<_>>>().expect("readable")
        };
        assert_eq!(read(second, second).len(), 3000);
        let rows = read(third, Lsn::MAX);
        let shown: Vec<_> = rows.iter().map(|row| (row[3].clone(), row[6].clone())).collect();
        assert_eq!(shown, [(3.into(), 10.into()), (4.into(), 7.into())]);
        assert!(rows.iter().all(|row| row[4] == Value::bytes(&[2]) && row.len() == 8));
        assert_eq!(read(third, second), Vec::<Row>::new());
    }
}
