//! Versions of rows: what snapshot readers still see of rows that were changed since.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::Bound,
};

use cdc_core::Lsn;

use crate::{
    database::{DatabaseState, FakeDatabase},
    key::SortKey,
    locks::Tried,
    log::TableId,
    sql_error::{SqlError, SqlResult, number},
    table::Table,
    transaction::{TransactionHandle, TransactionId},
    value::Row,
};

/// The versions of a table's rows that commits replaced: for each place the commits that changed
/// it, oldest first, with the row before each. Empty while nobody reads at a snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowHistory(BTreeMap<SortKey, Vec<(u64, Option<Row>)>>);

impl RowHistory {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push(&mut self, key: SortKey, commit: u64, before: Option<Row>) {
        match self.0.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(vec![(commit, before)]);
            }
            Entry::Occupied(mut entry) => entry.get_mut().push((commit, before)),
        }
    }

    /// The row under a key as of a commit; none when it has not changed since.
    pub(crate) fn at(&self, key: &SortKey, commit: u64) -> Option<Option<&Row>> {
        let versions = self.0.get(key)?;
        let changed = versions.iter().find(|(changed, _)| *changed > commit)?;
        Some(changed.1.as_ref())
    }

    /// Keys with versions, from a place on.
    pub(crate) fn keys_from(
        &self,
        range: (Bound<SortKey>, Bound<SortKey>),
    ) -> impl Iterator<Item = &SortKey> {
        self.0.range(range).map(|(key, _)| key)
    }

    /// Forgets versions that only readers before or at `oldest` could want.
    fn forget(&mut self, oldest: Option<u64>) {
        let Some(oldest) = oldest else {
            self.0.clear();
            return;
        };
        self.0.retain(|_, versions| {
            versions.retain(|(commit, _)| *commit > oldest);
            !versions.is_empty()
        });
    }
}

impl Table {
    /// Takes over what a transaction did to the rows; `commit` numbers it while versions are
    /// kept.
    pub(crate) fn publish(&mut self, rows: BTreeMap<SortKey, Option<Row>>, commit: Option<u64>) {
        for (key, row) in rows {
            let place = commit.is_some().then(|| key.clone());
            let before = match row {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
            if let (Some(key), Some(commit)) = (place, commit) {
                self.history.push(key, commit, before);
            }
        }
    }
}

impl FakeDatabase {
    /// The newest LSN of change tables and mapping that a snapshot transaction sees; none for a
    /// statement of its own, which sees all.
    ///
    /// # Errors
    /// 3952 where snapshot isolation is not allowed.
    pub fn captured_at(&self, transaction: Option<&TransactionHandle>) -> SqlResult<Option<Lsn>> {
        self.look().quiet().captured_at(transaction.map(|handle| handle.id))
    }
}

impl DatabaseState {
    /// True while somebody reads at a snapshot.
    pub(crate) fn keeps_versions(&self) -> bool {
        !self.snapshots.is_empty()
    }

    /// Begins to read at the newest commit.
    pub(crate) fn take_snapshot(&mut self) -> u64 {
        *self.snapshots.entry(self.commits).or_default() += 1;
        self.commits
    }

    /// Ends reading at a commit.
    pub(crate) fn release_snapshot(&mut self, snapshot: Option<u64>) {
        let Some(snapshot) = snapshot else { return };
        let Entry::Occupied(mut entry) = self.snapshots.entry(snapshot) else { return };
        *entry.get_mut() -= 1;
        if *entry.get() > 0 {
            return;
        }
        entry.remove();
        let oldest = self.snapshots.keys().next().copied();
        for table in self.tables.values_mut().filter(|table| !table.history.is_empty()) {
            table.history.forget(oldest);
        }
    }

    /// The commit that a snapshot transaction reads at: the newest at its first read.
    pub(crate) fn snapshot_of(&mut self, id: TransactionId) -> SqlResult<u64> {
        if !self.options.allow_snapshot_isolation {
            return Err(self.snapshot_refused());
        }
        if let Some(snapshot) = self.open.get(&id).and_then(|open| open.snapshot) {
            return Ok(snapshot);
        }
        let snapshot = self.take_snapshot();
        let captured = self.high().unwrap_or(Lsn::ZERO);
        match self.open.get_mut(&id) {
            Some(open) => {
                open.snapshot = Some(snapshot);
                open.captured = Some(captured);
            }
            None => self.release_snapshot(Some(snapshot)),
        }
        Ok(snapshot)
    }

    /// The newest LSN that a snapshot transaction sees of what capture wrote; none for one that
    /// reads as things are.
    fn captured_at(&mut self, who: Option<TransactionId>) -> SqlResult<Option<Lsn>> {
        let Some(who) = who.filter(|who| self.open.contains_key(who)) else {
            return match self.options.allow_snapshot_isolation {
                true => Ok(None),
                false => Err(self.snapshot_refused()),
            };
        };
        self.snapshot_of(who)?;
        Ok(self.open.get(&who).and_then(|open| open.captured))
    }

    pub(crate) fn snapshot_refused(&self) -> SqlError {
        let name = &self.name;
        SqlError::new(
            number::SNAPSHOT_NOT_ALLOWED,
            format!(
                "Snapshot isolation transaction failed accessing database '{name}' because \
                 snapshot isolation is not allowed in this database. Use ALTER DATABASE to allow \
                 snapshot isolation."
            ),
        )
    }

    /// Refuses to change a row that was changed behind a snapshot, and ends the transaction.
    pub(crate) fn check_conflict(
        &mut self,
        id: TransactionId,
        table: TableId,
        key: &SortKey,
    ) -> Tried<()> {
        let Some(snapshot) = self.open.get(&id).and_then(|open| open.snapshot) else {
            return Ok(());
        };
        let table = self.table(table)?;
        if table.history.at(key, snapshot).is_none() {
            return Ok(());
        }
        let error = SqlError::new(
            number::SNAPSHOT_CONFLICT,
            format!(
                "Snapshot isolation transaction aborted due to update conflict. You cannot use \
                 snapshot isolation to access table '{}' directly or indirectly in database '{}' \
                 to update, delete, or insert the row that has been modified or deleted by \
                 another transaction. Retry the transaction or change the isolation level for \
                 the update/delete statement.",
                table.name, self.name
            ),
        );
        self.close(id);
        Err(error.into())
    }
}
