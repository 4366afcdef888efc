//! What the mistakes of [`cdc_core::planted`] need that the right sink has no use for. For tests
//! only.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use arrow_array::BooleanArray;
use arrow_select::filter::filter_record_batch;
use cdc_core::{
    Error, Origin, Result, TableBatch,
    change::{ChangeColumns, Operation},
    planted::{self, Planted},
};
use object_store::ObjectStoreExt;

use crate::{commit::DataFile, fault, log::Log};

/// Files of batches that were given up, by table, for [`Planted::AbortedStagingVisible`].
#[derive(Default)]
pub(crate) struct GivenUp(Mutex<BTreeMap<String, Vec<DataFile>>>);

impl GivenUp {
    /// Keeps the files of a batch.
    pub(crate) fn keep(&self, table: &str, files: Vec<DataFile>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry(table.to_owned()).or_default().extend(files);
    }

    /// The files of a commit, and what was kept before.
    pub(crate) fn and(&self, table: &str, mut files: Vec<DataFile>) -> Vec<DataFile> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.extend(kept.remove(table).unwrap_or_default());
        files
    }
}

/// The same rows in new files, for [`Planted::LostReplyTakenAsFailure`].
pub(crate) async fn written_anew(log: &Log, files: Vec<DataFile>) -> Result<Vec<DataFile>> {
    let mut anew = Vec::with_capacity(files.len());
    for mut file in files {
        let (old, number) = (log.place.file(&file.name), log.shared.entropy.next_u64());
        file.name = format!("part-{number:016x}-{}", file.name);
        let copied = log.place.store.copy(&old, &log.place.file(&file.name)).await;
        copied.map_err(|error| fault::store(error, &old))?;
        anew.push(file);
    }
    Ok(anew)
}

/// The rows to stage: all but the deletes that [`Planted::KeyDeleteLost`] drops.
pub(crate) fn staged(mut batch: TableBatch) -> Result<TableBatch> {
    if batch.origin != Origin::Changes || !planted::is(Planted::KeyDeleteLost) {
        return Ok(batch);
    }
    let changes = ChangeColumns::of(&batch.records)?;
    let is = |row: usize, operation: Operation| {
        row < changes.len() && changes.operations.value(row) == operation.code()
    };
    let kept: BooleanArray = (0..changes.len())
        .map(|row| {
            let next = row + 1;
            let replaced = is(row, Operation::Delete)
                && is(next, Operation::Insert)
                && changes.commits.value(row) == changes.commits.value(next);
            Some(!replaced)
        })
        .collect();
    batch.records = filter_record_batch(&batch.records, &kept)
        .map_err(|error| Error::bug("rows cannot be picked").caused_by(error))?;
    Ok(batch)
}
