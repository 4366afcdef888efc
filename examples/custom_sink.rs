//! A sink of one's own, outside the adapters: a directory a table, with rows as JSON lines.
//!
//! It uses nothing but the public interface of `cdc-core` and keeps the whole contract of the
//! sink port, which `cargo test --example custom_sink -p cdc-tests` shows: the tests at the end
//! run the suite of `cdc-conformance` on it. `cargo run --example custom_sink -p cdc-tests` feeds
//! it by hand.
//!
//! How it keeps the contract:
//!
//! * Rows are staged into a file that nothing points at, a batch at a time: memory stays small,
//!   and no reader sees them.
//! * A *manifest* says what is visible: mark, verdict, columns, owner, and the files that count.
//!   The newest manifest wins. The next one is written aside and linked under the next number,
//!   which fails when that number is taken: rows and mark become visible in that one step.
//! * `attach` writes a manifest with a new owner. Every later step of an older runner finds an
//!   owner that it is not, and is fenced.
//!
//! The manifest lists every file. That is fine for an example; a sink for long histories would
//! keep a log of them.

#![allow(clippy::print_stdout, reason = "the example tells what it does")]

#[path = "custom_sink/manifest.rs"]
mod manifest;
#[path = "custom_sink/rows.rs"]
mod rows;

use std::{
    fs::{self, File},
    io::{self, BufWriter, ErrorKind as IoKind, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use async_trait::async_trait;
use cdc_core::{
    BatchFacts, Column, Commit, Committed, Epoch, Error, ErrorKind, InstanceName, Length, Mark,
    Origin, Position, Result, SqlType, Stamp, TableBatch, TableName, TableSpec, Timestamp, Verdict,
    change::row_schema,
    mark::next_sequence,
    port::{Attached, Sink, SinkCapabilities, TableSink, TargetState},
};
use manifest::Manifest;
use rows::{Form, find, write_rows};

/// A directory that holds a directory for each table.
#[derive(Clone, Debug)]
pub struct JsonLinesSink {
    root: PathBuf,
}

impl JsonLinesSink {
    /// A sink on this directory, which is created when a table is attached.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn directory(&self, spec: &TableSpec) -> Result<PathBuf> {
        let plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
        if spec.name.starts_with('.') || !spec.name.chars().all(plain) {
            return Err(Error::new(ErrorKind::Config, "table's name is no name for a directory")
                .with("table", &spec.name)
                .remedy("name the target with letters, digits, dots, dashes, underscores"));
        }
        Ok(self.root.join(&spec.name))
    }
}

#[async_trait]
impl Sink for JsonLinesSink {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities::least().with_add_columns().with_verdict()
    }

    async fn attach(&self, spec: &TableSpec) -> Result<Attached> {
        let directory = self.directory(spec)?;
        let mut columns = Vec::new();
        for column in &spec.columns {
            columns.push((column.name.clone(), Form::of(column)?));
        }
        fs::create_dir_all(&directory).map_err(|error| failed(&directory, error))?;
        let mut manifest = match Manifest::newest(&directory)? {
            Some(manifest) => manifest,
            None => Manifest::first(spec.source.to_string(), columns.clone()),
        };
        manifest.belongs_to(spec)?;
        manifest.takes(&spec.name, &columns)?;
        manifest.owner += 1;
        manifest.publish(&directory)?;
        let state = manifest.state();
        let table = JsonLinesTable {
            name: spec.name.clone(),
            directory,
            owner: manifest.owner,
            columns: manifest.columns,
            staged: None,
            files: 0,
        };
        Ok(Attached { table: Box::new(table), state })
    }

    async fn inspect(&self, spec: &TableSpec) -> Result<Option<TargetState>> {
        let Some(manifest) = Manifest::newest(&self.directory(spec)?)? else {
            return Ok(None);
        };
        manifest.belongs_to(spec)?;
        Ok(Some(manifest.state()))
    }
}

/// A file of rows that no manifest names yet.
struct Staged {
    name: String,
    file: BufWriter<File>,
}

/// One runner's hold on a table.
struct JsonLinesTable {
    name: String,
    directory: PathBuf,
    owner: u64,
    columns: Vec<(String, Form)>,
    staged: Option<Staged>,
    files: u64,
}

impl JsonLinesTable {
    /// The newest manifest, which must still be this runner's.
    fn own(&self) -> Result<Manifest> {
        let manifest = Manifest::newest(&self.directory)?.ok_or_else(|| {
            Error::new(ErrorKind::InvalidData, "manifest is gone")
                .with("path", self.directory.display())
        })?;
        if manifest.owner == self.owner {
            return Ok(manifest);
        }
        Err(Error::new(ErrorKind::Fenced, "a newer runner attached the table")
            .with("table", &self.name))
    }

    /// Makes a manifest the newest one. A lost race is `Fenced` when its winner is a new owner.
    fn record(&self, manifest: &mut Manifest) -> Result<()> {
        match manifest.publish(&self.directory) {
            Err(error) if error.kind() == ErrorKind::Conflict => self.own().and(Err(error)),
            result => result,
        }
    }

    fn staging(&mut self) -> Result<&mut Staged> {
        if self.staged.is_none() {
            self.files += 1;
            let name = format!("rows-{:010}-{:06}.jsonl", self.owner, self.files);
            let path = self.directory.join(&name);
            let file = File::create_new(&path).map_err(|error| failed(&path, error))?;
            self.staged = Some(Staged { name, file: BufWriter::new(file) });
        }
        self.staged.as_mut().ok_or_else(|| Error::bug("nothing is staged"))
    }

    /// Makes the staged file durable and gives its name back.
    fn finish(&mut self) -> Result<Option<String>> {
        let Some(mut staged) = self.staged.take() else {
            return Ok(None);
        };
        let path = self.directory.join(&staged.name);
        staged
            .file
            .flush()
            .and_then(|()| staged.file.get_ref().sync_all())
            .map_err(|error| failed(&path, error))?;
        Ok(Some(staged.name))
    }

    fn forget(&mut self) -> Result<()> {
        let Some(staged) = self.staged.take() else {
            return Ok(());
        };
        let path = self.directory.join(staged.name);
        fs::remove_file(&path).map_err(|error| failed(&path, error))
    }
}

#[async_trait]
impl TableSink for JsonLinesTable {
    async fn evolve(&mut self, columns: &[Column]) -> Result<()> {
        let mut manifest = self.own()?;
        let mut wanted = Vec::new();
        for column in columns {
            wanted.push((column.name.clone(), Form::of(column)?));
        }
        manifest.takes(&self.name, &wanted)?;
        let before = manifest.columns.len();
        for (name, form) in wanted {
            if find(&manifest.columns, &name).is_none() {
                manifest.columns.push((name, form));
            }
        }
        if manifest.columns.len() > before {
            self.record(&mut manifest)?;
        }
        self.columns = manifest.columns;
        Ok(())
    }

    async fn stage(&mut self, batch: TableBatch) -> Result<()> {
        let mut lines = Vec::new();
        let columns = self.columns.clone();
        write_rows(&mut lines, &self.name, &columns, &batch)?;
        let directory = self.directory.clone();
        let staged = self.staging()?;
        staged.file.write_all(&lines).map_err(|error| failed(&directory.join(&staged.name), error))
    }

    async fn commit(&mut self, commit: Commit) -> Result<Committed> {
        let mut manifest = self.own()?;
        if follows(&self.name, manifest.mark.as_ref(), &commit.mark)? == Committed::Before {
            self.forget()?;
            return Ok(Committed::Before);
        }
        manifest.mark = Some(commit.mark);
        manifest.files.extend(self.finish()?);
        self.record(&mut manifest)?;
        Ok(Committed::Now)
    }

    async fn discard(&mut self) -> Result<()> {
        self.forget()
    }

    async fn publish(&mut self, verdict: Verdict) -> Result<Verdict> {
        let mut manifest = self.own()?;
        let before = manifest.verdict.and_then(|old| old.finalized_until);
        let reached = manifest.mark.and_then(|mark| mark.commit_time);
        let past = manifest.mark.is_none_or(|mark| verdict.end.position > mark.end);
        if past || verdict.finalized_until > before.max(reached) {
            return Err(Error::bug("verdict is beyond the durable mark")
                .with("table", &self.name)
                .with("position", verdict.end.position));
        }
        let kept =
            Verdict { finalized_until: before.max(verdict.finalized_until), end: verdict.end };
        manifest.verdict = Some(kept);
        self.record(&mut manifest)?;
        Ok(kept)
    }

    async fn close(mut self: Box<Self>) -> Result<()> {
        self.forget()
    }
}

/// What a commit of `mark` does behind the durable one, or why it may not follow.
fn follows(table: &str, durable: Option<&Mark>, mark: &Mark) -> Result<Committed> {
    let bug = |message: &str| {
        Err(Error::bug(message)
            .with("table", table)
            .with("sequence", mark.sequence)
            .with("position", mark.end))
    };
    match durable {
        Some(old) if old.sequence == mark.sequence && old.end == mark.end => Ok(Committed::Before),
        _ if mark.sequence != next_sequence(durable) => bug("mark does not follow the durable one"),
        Some(old) if mark.generation < old.generation => bug("generation of the mark goes back"),
        Some(old) if mark.generation == old.generation && mark.end < old.end => {
            bug("end of the mark goes back")
        }
        _ => Ok(Committed::Now),
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    let kind = match error.kind() {
        IoKind::PermissionDenied | IoKind::NotADirectory | IoKind::ReadOnlyFilesystem => {
            ErrorKind::Config
        }
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, "file operation failed").with("path", path.display()).caused_by(error)
}

fn main() -> Result<()> {
    let root = std::env::temp_dir().join(format!("custom-sink-{}", std::process::id()));
    futures_util::FutureExt::now_or_never(feed(&root))
        .unwrap_or_else(|| Err(Error::bug("nothing here waits")))
}

/// What an engine does with a sink, once, by hand.
async fn feed(root: &Path) -> Result<()> {
    let columns = vec![
        Column::new("id", 1, SqlType::Int, false),
        Column::new("name", 2, SqlType::NVarChar(Length::Limited(40)), true),
    ];
    let key = vec!["id".to_owned()];
    let source = TableName::new("dbo", "orders");
    let spec = TableSpec::new("orders", source, columns, key)?;

    let sink = JsonLinesSink::new(root);
    let Attached { mut table, state } = sink.attach(&spec).await?;
    println!("attached {}, durable mark {:?}", spec.name, state.mark);

    let stamp = Stamp {
        position: Position::new(Epoch::default(), &[0, 0, 0, 0, 0, 0, 0, 0, 0, 42])?,
        commit_time: Some(Timestamp::from_micros(1_767_225_600_000_000)),
    };
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![1, 2])),
        Arc::new(StringArray::from(vec![Some("ink"), None])),
    ];
    let records = RecordBatch::try_new(row_schema(&spec.columns)?, arrays)
        .map_err(|error| Error::bug("rows do not fit their columns").caused_by(error))?;
    let batch = TableBatch {
        instance: InstanceName::new("dbo_orders"),
        origin: Origin::Snapshot(stamp),
        records,
    };
    table.stage(batch).await?;
    println!("staged two rows, visible files: {:?}", visible_files(root, &spec)?);

    let mark = Mark {
        sequence: next_sequence(state.mark.as_ref()),
        end: stamp.position,
        commit_time: stamp.commit_time,
        entry_time: stamp.commit_time,
        generation: 0,
    };
    let commit = Commit {
        mark,
        facts: BatchFacts::begun(Timestamp::from_micros(1_767_225_601_000_000)),
        events: Vec::new(),
    };
    let committed = table.commit(commit.clone()).await?;
    println!("committed: {committed:?}, visible files: {:?}", visible_files(root, &spec)?);

    // The reply was lost, say: attach again, and the sink tells that the mark is durable.
    let mut again = sink.attach(&spec).await?;
    println!("committed again: {:?}", again.table.commit(commit.clone()).await?);
    match table.commit(commit).await {
        Err(error) => println!("the first runner is told: {} ({error})", error.kind()),
        Ok(_) => return Err(Error::bug("an older runner was not fenced")),
    }
    for file in visible_files(root, &spec)? {
        print!("{}", fs::read_to_string(&file).map_err(|error| failed(&file, error))?);
    }
    again.table.close().await?;
    fs::remove_dir_all(root).map_err(|error| failed(root, error))
}

/// The files whose rows a reader sees.
fn visible_files(root: &Path, spec: &TableSpec) -> Result<Vec<PathBuf>> {
    let directory = JsonLinesSink::new(root).directory(spec)?;
    let files = Manifest::newest(&directory)?.map(|manifest| manifest.files).unwrap_or_default();
    Ok(files.iter().map(|name| directory.join(name)).collect())
}

#[cfg(test)]
#[path = "custom_sink/tests.rs"]
mod tests;
