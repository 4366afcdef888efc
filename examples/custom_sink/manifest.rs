//! The manifest: what of a table is visible, and who owns it.

use std::{
    fs::{self, File},
    io::{ErrorKind as IoKind, Write},
    path::{Path, PathBuf},
};

use cdc_core::{
    Epoch, Error, ErrorKind, Mark, Position, Result, Stamp, TableSpec, Timestamp, Verdict,
    port::TargetState,
};
use serde_json::{Value, json};

use crate::{
    failed,
    rows::{Form, find, hex, unhex},
};

/// Older manifests that are kept for whoever is just reading one.
const KEPT: u64 = 8;

/// What is visible of a table.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    /// Counts the manifests; the greatest is the one that holds.
    version: u64,
    /// The source's table that the target belongs to.
    source: String,
    /// Counts the attaches; the runner of the last one owns the table.
    pub(crate) owner: u64,
    /// The columns' names and forms.
    pub(crate) columns: Vec<(String, Form)>,
    /// The durable mark.
    pub(crate) mark: Option<Mark>,
    /// The published verdict.
    pub(crate) verdict: Option<Verdict>,
    /// The files whose rows are visible, oldest first.
    pub(crate) files: Vec<String>,
}

impl Manifest {
    /// What an empty table's first manifest follows.
    pub(crate) fn first(source: String, columns: Vec<(String, Form)>) -> Self {
        Self { version: 0, source, owner: 0, columns, mark: None, verdict: None, files: Vec::new() }
    }

    /// The manifest that holds; none in a directory without one.
    pub(crate) fn newest(directory: &Path) -> Result<Option<Self>> {
        // One that is gone was the newest of a moment ago, and has a successor.
        loop {
            let Some(version) = versions(directory)?.into_iter().max() else {
                return Ok(None);
            };
            let path = path(directory, version);
            match fs::read(&path) {
                Ok(bytes) => {
                    let damaged = || {
                        Error::new(ErrorKind::InvalidData, "manifest is damaged")
                            .with("path", path.display())
                    };
                    let value = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
                    return Self::from_json(version, &value).ok_or_else(damaged).map(Some);
                }
                Err(error) if error.kind() == IoKind::NotFound => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
    }

    /// Makes this the manifest that holds, if the one that it was made from still does.
    ///
    /// # Errors
    /// `Conflict` when somebody else was first.
    pub(crate) fn publish(&mut self, directory: &Path) -> Result<()> {
        self.version += 1;
        let aside = directory.join(format!("aside-{:010}-{:020}.json", self.owner, self.version));
        let target = path(directory, self.version);
        write(&aside, self.to_json().to_string().as_bytes())
            .map_err(|error| failed(&aside, error))?;
        // A link is made or not, whoever else tries: it never replaces what is there.
        let linked = fs::hard_link(&aside, &target);
        fs::remove_file(&aside).map_err(|error| failed(&aside, error))?;
        let lost = || {
            Err(Error::new(ErrorKind::Conflict, "somebody else committed first")
                .with("path", directory.display()))
        };
        match linked {
            Err(error) if error.kind() == IoKind::AlreadyExists => return lost(),
            other => other.map_err(|error| failed(&target, error))?,
        }
        let versions = versions(directory)?;
        if versions.iter().any(|version| *version > self.version) {
            // The place was free because an old manifest was tidied away: this one never held.
            fs::remove_file(&target).map_err(|error| failed(&target, error))?;
            return lost();
        }
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| failed(directory, error))?;
        for version in versions.into_iter().filter(|version| version + KEPT < self.version) {
            // Another runner may have been faster.
            let _ = fs::remove_file(path(directory, version));
        }
        Ok(())
    }

    /// What the port tells of it.
    pub(crate) fn state(&self) -> TargetState {
        TargetState { mark: self.mark, verdict: self.verdict }
    }

    /// Fails when the target holds another table of the source.
    pub(crate) fn belongs_to(&self, spec: &TableSpec) -> Result<()> {
        if self.source == spec.source.to_string() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Config, "the target holds another source table")
            .with("table", &spec.name)
            .with("source", &spec.source)
            .with("found", &self.source)
            .remedy("give each source table a target of its own"))
    }

    /// Fails when a column that is there cannot take another's values.
    pub(crate) fn takes(&self, table: &str, columns: &[(String, Form)]) -> Result<()> {
        for (name, form) in columns {
            if find(&self.columns, name).is_some_and(|(_, own)| !own.takes(form)) {
                return Err(Error::new(
                    ErrorKind::SchemaChanged,
                    "the column's type in the target cannot take the source's values",
                )
                .with("table", table)
                .with("column", name));
            }
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        let columns: Vec<_> = self
            .columns
            .iter()
            .map(|(name, form)| json!({"name": name, "form": form.to_json()}))
            .collect();
        json!({
            "source": self.source,
            "owner": self.owner,
            "columns": columns,
            "mark": self.mark.map(|mark| json!({
                "sequence": mark.sequence,
                "end": position_json(mark.end),
                "commit_time": mark.commit_time.map(Timestamp::as_micros),
                "entry_time": mark.entry_time.map(Timestamp::as_micros),
                "generation": mark.generation,
            })),
            "verdict": self.verdict.map(|verdict| json!({
                "finalized_until": verdict.finalized_until.map(Timestamp::as_micros),
                "end": position_json(verdict.end.position),
                "commit_time": verdict.end.commit_time.map(Timestamp::as_micros),
            })),
            "files": self.files,
        })
    }

    fn from_json(version: u64, value: &Value) -> Option<Self> {
        let column = |value: &Value| {
            let name = value.get("name")?.as_str()?.to_owned();
            Some((name, Form::from_json(value.get("form")?)?))
        };
        let columns = value.get("columns")?.as_array()?.iter().map(column);
        let files = value.get("files")?.as_array()?.iter();
        Some(Self {
            version,
            source: value.get("source")?.as_str()?.to_owned(),
            owner: value.get("owner")?.as_u64()?,
            columns: columns.collect::<Option<_>>()?,
            mark: optional(value.get("mark")?, mark)?,
            verdict: optional(value.get("verdict")?, verdict)?,
            files: files.map(|name| Some(name.as_str()?.to_owned())).collect::<Option<_>>()?,
        })
    }
}

fn optional<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Option<T>> {
    match value {
        Value::Null => Some(None),
        value => read(value).map(Some),
    }
}

fn mark(value: &Value) -> Option<Mark> {
    Some(Mark {
        sequence: value.get("sequence")?.as_u64()?,
        end: position(value.get("end")?)?,
        commit_time: optional(value.get("commit_time")?, time)?,
        entry_time: optional(value.get("entry_time")?, time)?,
        generation: u32::try_from(value.get("generation")?.as_u64()?).ok()?,
    })
}

fn verdict(value: &Value) -> Option<Verdict> {
    Some(Verdict {
        finalized_until: optional(value.get("finalized_until")?, time)?,
        end: Stamp {
            position: position(value.get("end")?)?,
            commit_time: optional(value.get("commit_time")?, time)?,
        },
    })
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_i64().map(Timestamp::from_micros)
}

fn position_json(position: Position) -> Value {
    json!({"epoch": position.epoch().0, "bytes": hex(position.as_bytes())})
}

fn position(value: &Value) -> Option<Position> {
    let epoch = u32::try_from(value.get("epoch")?.as_u64()?).ok()?;
    let bytes = unhex(value.get("bytes")?.as_str()?)?;
    Position::new(Epoch(epoch), &bytes).ok()
}

fn path(directory: &Path, version: u64) -> PathBuf {
    directory.join(format!("manifest-{version:020}.json"))
}

/// The versions that are there; none when the directory is not.
fn versions(directory: &Path) -> Result<Vec<u64>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == IoKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| failed(directory, error))?,
    };
    let mut versions = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| failed(directory, error))?.file_name();
        let number: Option<u64> = name
            .to_str()
            .and_then(|name| name.strip_prefix("manifest-")?.strip_suffix(".json")?.parse().ok());
        versions.extend(number);
    }
    Ok(versions)
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
