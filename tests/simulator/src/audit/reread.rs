//! The lake at the end of a history, opened by another reader from its newest checkpoints, against
//! what its commits said one by one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use deltalake::{DeltaTable, DeltaTableBuilder};
use object_store::{ObjectStore, path::Path};
use url::Url;

use super::{Auditor, readable, shared::stored};
use crate::{
    book,
    invariant::Invariant,
    ledger::{Told, subject},
    target::Broken,
};

/// What the commits of a log add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Logged {
    pub(super) version: u64,
    pub(super) files: BTreeSet<String>,
}

impl Auditor {
    /// Opens every table anew and compares it with its commits.
    pub async fn reread(&self) {
        let logs = self.inner().logs.clone();
        for (place, logged) in &logs {
            let compared = self.compare_anew(place, logged).await;
            if let Err((invariant, detail)) = compared {
                self.record.broken(invariant, format!("read anew: {detail}"));
                return;
            }
        }
    }

    async fn compare_anew(&self, place: &str, logged: &Logged) -> Result<(), Broken> {
        let table = self.open(place).await.map_err(|why| readable(format!("{place}: {why}")))?;
        let state = table.snapshot().map_err(|error| readable(error.to_string()))?;
        let files = state.log_data().into_iter().map(|file| file.object_store_path().to_string());
        let found = Logged { version: state.version(), files: files.collect() };
        if found != *logged {
            return Err(readable(format!("{place} holds {found:?}, its log {logged:?}")));
        }
        self.record.count("reread:table");
        match place.rsplit_once('/') {
            Some((_, "facts")) => self.facts_anew(place, &found),
            Some((_, "control")) => self.control_anew(place, &found),
            Some((_, name)) => self.bronze_anew(name, &table).await,
            None => Ok(()),
        }
    }

    async fn open(&self, place: &str) -> Result<DeltaTable, String> {
        let url = Url::parse(&format!("memory:///{place}/")).map_err(|error| error.to_string())?;
        let store: Arc<dyn ObjectStore> = Arc::clone(&self.objects) as _;
        let builder =
            DeltaTableBuilder::from_url(url.clone()).map_err(|error| error.to_string())?;
        let opened = builder.with_storage_backend(store, url).load().await;
        opened.map_err(|error| error.to_string())
    }

    /// Checkpoints keep the entries of the mark and of the owner.
    async fn bronze_anew(&self, name: &str, table: &DeltaTable) -> Result<(), Broken> {
        let book = self.book(name);
        let state = table.snapshot().map_err(|error| readable(error.to_string()))?;
        let sequence = book.mark.map(|mark| i64::try_from(mark.sequence).unwrap_or_default());
        let wanted = [("sequence", sequence), ("fence", Some(book.fence))];
        for (what, wanted) in wanted {
            let log = table.log_store();
            let found = state.transaction_version(log.as_ref(), format!("cdc/{name}/{what}")).await;
            let found = found.map_err(|error| readable(error.to_string()))?;
            if found != wanted {
                let detail = format!("{name}: {what} is {found:?}, was {wanted:?}");
                return Err((Invariant::AcknowledgedStays, detail));
            }
        }
        Ok(())
    }

    fn facts_anew(&self, place: &str, found: &Logged) -> Result<(), Broken> {
        let mut rows: BTreeMap<String, BTreeMap<i64, Told>> = BTreeMap::new();
        for file in &found.files {
            let batches = book::rows(&self.objects, &Path::from(place), file);
            for batch in batches.map_err(readable)? {
                for row in 0..batch.num_rows() {
                    let Ok((table, id)) = subject(&batch, row).map_err(readable)? else { continue };
                    let told = Told::read(&batch, row);
                    let twice = rows.entry(table.clone()).or_default().insert(id, told).is_some();
                    if twice {
                        let detail = format!("{table}: batch {id} has two rows");
                        return Err((Invariant::FactsOnce, detail));
                    }
                }
            }
        }
        for (table, said) in rows {
            let mut landed = self.book(&table).landed;
            landed.retain(|id, _| said.contains_key(id));
            if landed != said {
                return Err((Invariant::FactsTrue, format!("{table}: {said:?}, not {landed:?}")));
            }
        }
        Ok(())
    }

    fn control_anew(&self, place: &str, found: &Logged) -> Result<(), Broken> {
        let mut rows = BTreeMap::new();
        for file in &found.files {
            let batches = book::rows(&self.objects, &Path::from(place), file);
            for batch in batches.map_err(readable)? {
                for row in 0..batch.num_rows() {
                    let (table, until, end) = stored(&batch, row)?;
                    if rows.insert(table.clone(), (until, Some(end))).is_some() {
                        return Err(readable(format!("{table} has two rows in control")));
                    }
                }
            }
        }
        for (table, book) in self.inner().books.clone() {
            let last = book.verdict_end.map(|end| (book.finalized, Some(end)));
            if rows.get(&table) != last.as_ref() {
                let detail = format!("{table}: {:?}, the last verdict {last:?}", rows.get(&table));
                return Err((Invariant::VerdictForward, detail));
            }
        }
        Ok(())
    }
}
