//! What a table under the root is, whose it is, and how its columns move forward.
//!
//! Each table carries `cdc.kind` and `cdc.schema_version` in its properties. A table that an older
//! release made gets the library columns it lacks and the new version in one commit. A newer
//! version is written all the same, with a warning, unless `cdc.min_version` forbids it.

use std::collections::{BTreeMap, HashMap};

use cdc_core::{Error, ErrorKind, Result};
use delta_kernel::{schema::StructField, snapshot::SnapshotRef};

use crate::{
    log::{Change, Log, Outcome},
    schema::{BRONZE_HEAD, BRONZE_TAIL, CONTROL, FACTS, Own, own_field},
};

const KIND: &str = "cdc.kind";
const SCHEMA_VERSION: &str = "cdc.schema_version";
const MIN_VERSION: &str = "cdc.min_version";
/// The property that would make the log forget marks.
const TXN_RETENTION: &str = "delta.setTransactionRetentionDuration";

/// The kinds of tables under a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bronze,
    Facts,
    Control,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bronze => "bronze",
            Self::Facts => "facts",
            Self::Control => "control",
        }
    }

    /// The newest version of the kind's columns that this release knows.
    const fn version(self) -> u32 {
        match self {
            Self::Bronze | Self::Facts | Self::Control => 1,
        }
    }

    fn own(self) -> Vec<&'static Own> {
        match self {
            Self::Bronze => BRONZE_HEAD.iter().chain(&BRONZE_TAIL).collect(),
            Self::Facts => FACTS.iter().collect(),
            Self::Control => CONTROL.iter().collect(),
        }
    }

    /// The properties of a new table.
    pub(crate) fn properties(self) -> BTreeMap<String, String> {
        [
            (KIND.to_owned(), self.name().to_owned()),
            (SCHEMA_VERSION.to_owned(), self.version().to_string()),
        ]
        .into()
    }
}

/// The properties of a table.
pub(crate) fn properties(snapshot: &SnapshotRef) -> &HashMap<String, String> {
    snapshot.table_configuration().metadata().configuration()
}

/// A refusal of a directory that holds something else.
pub(crate) fn occupied(log: &Log, why: &str) -> Error {
    Error::new(ErrorKind::Config, format!("the target's directory {why}"))
        .with("path", &log.place)
        .remedy("name another root or table, or move what is in the directory away")
}

/// Checks that a table is one of ours, of this kind, and one that this release may write.
pub(crate) fn check(log: &Log, snapshot: &SnapshotRef, kind: Kind) -> Result<()> {
    let properties = properties(snapshot);
    if properties.get(KIND).map(String::as_str) != Some(kind.name()) {
        return Err(occupied(log, "holds another Delta table"));
    }
    if properties.contains_key(TXN_RETENTION) {
        return Err(Error::new(ErrorKind::Config, "the table's log is set to forget its marks")
            .with("path", &log.place)
            .with("setting", TXN_RETENTION)
            .remedy(format!(
                "ALTER TABLE delta.`{}` UNSET TBLPROPERTIES ('{TXN_RETENTION}')",
                log.place
            )));
    }
    let needs = number(log, properties, MIN_VERSION)?.unwrap_or(0);
    if needs > kind.version() {
        return Err(Error::new(
            ErrorKind::Config,
            "the table may be written by a newer release only",
        )
        .with("path", &log.place)
        .with("needs_version", needs)
        .with("known_version", kind.version())
        .remedy("run the newer release"));
    }
    Ok(())
}

fn number(log: &Log, properties: &HashMap<String, String>, key: &str) -> Result<Option<u32>> {
    let Some(text) = properties.get(key) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        Error::new(ErrorKind::InvalidData, "a property of the table is no number")
            .with("path", &log.place)
            .with("property", key)
    })
}

/// Brings a table's library columns up to this release. Idempotent: what is there stays.
pub(crate) async fn migrate(
    log: &Log,
    mut snapshot: SnapshotRef,
    kind: Kind,
) -> Result<SnapshotRef> {
    for attempt in 1..=log.shared.config.commit_attempts_max {
        let stored = number(log, properties(&snapshot), SCHEMA_VERSION)?.unwrap_or(0);
        if stored > kind.version() {
            tracing::warn!(
                path = %log.place,
                stored_version = stored,
                known_version = kind.version(),
                "the table was made by a newer release; it is written with the columns known here"
            );
        }
        if stored >= kind.version() {
            return Ok(snapshot);
        }
        let schema = snapshot.schema();
        let lacks =
            |own: &&Own| !schema.fields().any(|field| field.name().eq_ignore_ascii_case(own.0));
        let columns: Vec<StructField> =
            kind.own().into_iter().filter(lacks).map(own_field).collect();
        let change = Change {
            operation: "SET TBLPROPERTIES",
            columns,
            properties: [(SCHEMA_VERSION.to_owned(), kind.version().to_string())].into(),
            ..Change::default()
        };
        match log.commit(&snapshot, change).await? {
            Outcome::Landed(newer) => snapshot = newer,
            Outcome::Taken | Outcome::Unknown(_) => {
                log.shared.pause(attempt).await;
                snapshot = log.open().await?;
            }
        }
    }
    Err(crowded(log))
}

/// The error after every attempt of a commit met another writer's.
pub(crate) fn crowded(log: &Log) -> Error {
    Error::new(ErrorKind::Conflict, "other writers committed first at every attempt")
        .with("path", &log.place)
        .with("attempts", log.shared.config.commit_attempts_max)
        .with("setting", "commit_attempts_max")
}
