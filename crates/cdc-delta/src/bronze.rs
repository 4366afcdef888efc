//! The bronze table of one source table: its birth, its owner, the fence, and what its newest
//! commits say of their batches.

use std::{collections::BTreeMap, sync::Arc};

use cdc_core::{
    Error, ErrorKind, Mark, Result, TableSpec,
    planted::{self, Planted},
};
use delta_kernel::snapshot::SnapshotRef;
use object_store::ObjectStoreExt;
use serde_json::Value;

use crate::{
    facts::Record,
    fault,
    log::{Birth, Change, Log, Outcome},
    mark::Names,
    migration::{Kind, check, crowded, migrate, occupied, properties},
    schema::{BRONZE_COMMENT, bronze_schema, missing, needs_mapping},
};

const TABLE: &str = "cdc.table";
const SOURCE: &str = "cdc.source";
/// How far back a batch's facts are looked for in the log: more commits than lie between a crash
/// and the next start, since each start is one.
const LOOK_BACK: u64 = 64;

/// A table that this runner owns: the snapshot of its fence, the fence, and the mark.
pub(crate) struct Owned {
    pub(crate) snapshot: SnapshotRef,
    pub(crate) fence: i64,
    pub(crate) mark: Option<Mark>,
}

/// The table's newest snapshot; none when there is no table yet. Writes nothing.
///
/// # Errors
/// `Config` when the directory holds something else.
pub(crate) async fn look(log: &Log, spec: &TableSpec) -> Result<Option<SnapshotRef>> {
    let Some(snapshot) = log.find().await? else {
        return Ok(None);
    };
    check(log, &snapshot, Kind::Bronze)?;
    let properties = properties(&snapshot);
    for (key, own) in [(TABLE, spec.name.clone()), (SOURCE, spec.source.to_string())] {
        let found = properties.get(key).map_or("", String::as_str);
        if found != own {
            return Err(occupied(log, "holds the copy of another table")
                .with("table", &spec.name)
                .with("property", key)
                .with("expected", own)
                .with("found", found));
        }
    }
    Ok(Some(snapshot))
}

/// A table as it was found.
pub(crate) struct Found {
    snapshot: SnapshotRef,
    pub(crate) entries: BTreeMap<String, i64>,
}

/// The table's newest state, when there is one that can take the spec's columns. Writes nothing.
pub(crate) async fn find(log: &Log, spec: &TableSpec, names: &Names) -> Result<Option<Found>> {
    let Some(snapshot) = look(log, spec).await? else {
        return Ok(None);
    };
    check_columns(log, &snapshot, spec).await?;
    let entries = entries(log, &snapshot, names).await?;
    Ok(Some(Found { snapshot, entries }))
}

/// Checks that an existing table can take the spec's columns.
async fn check_columns(log: &Log, snapshot: &SnapshotRef, spec: &TableSpec) -> Result<()> {
    let layout = log.layout(snapshot).await?;
    missing(&spec.name, &layout.logical, &spec.columns).map(drop)
}

/// The entries of the table as of a snapshot.
pub(crate) async fn entries(
    log: &Log,
    snapshot: &SnapshotRef,
    names: &Names,
) -> Result<BTreeMap<String, i64>> {
    let own = names.clone();
    log.entries_until(snapshot, names.all(), move |found| own.enough(found)).await
}

/// Takes the table as it was found: creates it or raises its fence.
pub(crate) async fn own(
    log: &Log,
    spec: &TableSpec,
    names: &Names,
    found: Option<Found>,
) -> Result<Owned> {
    let attempts = log.shared.config.commit_attempts_max;
    let mut doubt = None;
    // Whoever commits meanwhile takes the version that the first attempt wants.
    let mut first = Some(found);
    for attempt in 1..=attempts {
        let found = match first.take() {
            Some(found) => found,
            None => find(log, spec, names).await?,
        };
        let outcome = match found {
            None => {
                let outcome = log.create(birth(log, spec, names)?).await?;
                if let Outcome::Landed(snapshot) = outcome {
                    return Ok(Owned { snapshot, fence: 1, mark: None });
                }
                outcome
            }
            Some(Found { snapshot, entries: held }) => {
                let version = snapshot.version();
                let snapshot = migrate(log, snapshot, Kind::Bronze).await?;
                let entries = if snapshot.version() == version {
                    held
                } else {
                    check_columns(log, &snapshot, spec).await?;
                    entries(log, &snapshot, names).await?
                };
                let mark = names.mark(&entries)?;
                let fence = entries.get(&names.fence()).copied().unwrap_or(0);
                let step = i64::from(!planted::is(Planted::FenceNotRaised));
                let fence = fence.checked_add(step).ok_or_else(|| used_up(log, spec, names))?;
                let change = Change {
                    operation: "ATTACH",
                    entries: names.owner(fence, log.shared.runner).to_vec(),
                    ..Change::default()
                };
                let outcome = log.commit(&snapshot, change).await?;
                if let Outcome::Landed(snapshot) = outcome {
                    // The fence stands right after the snapshot that the mark was read from.
                    return Ok(Owned { snapshot, fence, mark });
                }
                outcome
            }
        };
        // A fence in doubt may be anybody's: the next attempt raises it once more.
        if let Outcome::Unknown(error) = outcome {
            doubt = Some(error);
        }
        log.shared.pause(attempt).await;
    }
    Err(doubt.unwrap_or_else(|| crowded(log)))
}

/// The error of a fence that no runner can have raised so far.
fn used_up(log: &Log, spec: &TableSpec, names: &Names) -> Error {
    Error::new(ErrorKind::InvalidData, "the fence in the table's log is used up")
        .with("table", &spec.name)
        .with("path", &log.place)
        .with("entry", names.fence())
        .remedy(
            "restore the table's log to a version before another writer set the entry, or move the \
             table's directory away and copy the table again",
        )
}

fn birth(log: &Log, spec: &TableSpec, names: &Names) -> Result<Birth> {
    let mut properties = Kind::Bronze.properties();
    properties.insert(TABLE.into(), spec.name.clone());
    properties.insert(SOURCE.into(), spec.source.to_string());
    if spec.columns.iter().any(|column| needs_mapping(&column.name)) {
        properties.insert("delta.columnMapping.mode".into(), "name".into());
    }
    Ok(Birth {
        schema: bronze_schema(spec)?,
        comment: format!("{BRONZE_COMMENT}. Source: {}", spec.source),
        properties,
        entries: names.owner(1, log.shared.runner).to_vec(),
    })
}

/// The error of a table that knows less than what rests on it.
pub(crate) fn rewound(
    log: &Log,
    spec: &TableSpec,
    exists: bool,
    mark: Option<&Mark>,
    known: i64,
) -> Error {
    let message = if exists {
        "the target is older than its facts: it was restored or rewound"
    } else {
        "the target is gone, but its facts are there: it was deleted"
    };
    Error::new(ErrorKind::InvalidData, message)
        .with("table", &spec.name)
        .with("path", &log.place)
        .with("target_sequence", mark.map_or(0, |mark| mark.sequence))
        .with("recorded_sequence", known)
        .remedy(
            "bring the target back to its newest state (restore the directory, or RESTORE to the \
             latest version), or start a new copy under another root or table name",
        )
}

/// What the commit of batch `sequence` said of itself, when the log still holds it.
pub(crate) async fn record(
    log: &Log,
    snapshot: &SnapshotRef,
    sequence: u64,
) -> Result<Option<Record>> {
    let newest = snapshot.version();
    for version in (newest.saturating_sub(LOOK_BACK)..=newest).rev() {
        let name = format!("{version:020}.json");
        let path = log.place.path.clone().join("_delta_log").join(name);
        let bytes = match log.place.store.get(&path).await {
            Ok(file) => file.bytes().await,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => Err(error),
        };
        let bytes = bytes.map_err(|error| fault::store(error, &path))?;
        let text = bytes.split(|byte| *byte == b'\n').find_map(|line| {
            let action: Value = serde_json::from_slice(line).ok()?;
            Some(action.get("commitInfo")?.get("userMetadata")?.as_str()?.to_owned())
        });
        if let Some(record) = text.and_then(|text| Record::of_text(&text, sequence)) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// The log of a spec's table.
pub(crate) fn log_of(
    shared: &crate::log::Shared,
    root: &crate::store::Place,
    spec: &TableSpec,
) -> Log {
    let place =
        root.below(&shared.config.bronze_dir).below(&crate::store::directory_name(&spec.name));
    Log::new(shared.clone(), place)
}

/// True when every column of `old` is in `new` as it was.
pub(crate) fn keeps(old: &crate::log::Layout, new: &crate::log::Layout) -> bool {
    let same = |field: &Arc<arrow_schema::Field>| {
        new.physical
            .fields()
            .iter()
            .any(|other| other.name() == field.name() && other.data_type() == field.data_type())
    };
    old.physical.fields().iter().all(same)
}
