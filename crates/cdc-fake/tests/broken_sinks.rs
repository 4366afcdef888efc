//! The sink suite bites: sinks that are broken in one way each fail a case that names the rule.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    future::Future,
    sync::{Arc, Mutex},
};

use arrow_array::RecordBatch;
use async_trait::async_trait;
use cdc_conformance::{
    Cell, Outcome,
    cell::array,
    sink::{SinkHarness, cases, run},
};
use cdc_core::{
    Column, Commit, Committed, Epoch, Error, ErrorKind, Origin, Position, Result, TableBatch,
    TableSpec, Timestamp, Verdict,
    port::{Attached, Sink, SinkCapabilities, TableSink, TargetState},
};
use cdc_fake::memory_sink::{MemorySink, MemoryTarget};

/// What a sink gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    ShowsStagedRows,
    ForgetsTheMark,
    IgnoresTheFence,
    TakesAnySequence,
    TakesAnEndThatGoesBack,
    WritesTheSameMarkAgain,
    KeepsDiscardedRows,
    KeepsRowsOfADroppedTable,
    DropsAnIdleMark,
    DropsTheCommitTime,
    DropsTheEntryTime,
    CutsThePosition,
    ForgetsTheGeneration,
    NeverAddsColumns,
    DropsUnknownColumns,
    NeedsTheExactCase,
    ReadsColumnsByPlace,
    MakesEmptyTextNull,
    MakesNullEmptyText,
    TrimsText,
    RoundsDecimals,
    CutsMicroseconds,
    LosesBeforeImages,
    LosesTheChunkIndex,
    StampsAChunkWithItsSnapshot,
    LosesTheSecondPiece,
    MixesTables,
    CreatesOnInspect,
    TellsTheValue,
    LetsTheVerdictGoBack,
    LetsTheVerdictRunAhead,
    DoesMoreThanItDeclares,
}

#[derive(Clone)]
struct Broken {
    fault: Fault,
    inner: MemorySink,
    shared: Arc<Mutex<Shared>>,
}

/// What broken sinks remember beside their target.
#[derive(Default)]
struct Shared {
    staged: Vec<TableBatch>,
    verdict: Option<Verdict>,
}

struct BrokenTable {
    sink: Broken,
    spec: TableSpec,
    inner: Box<dyn TableSink>,
    staged: Vec<TableBatch>,
}

struct BrokenHarness {
    target: MemoryTarget,
    broken: Broken,
}

impl BrokenHarness {
    fn new(fault: Fault) -> Self {
        let target = MemoryTarget::new();
        let inner = target.open();
        Self { target, broken: Broken { fault, inner, shared: Arc::default() } }
    }
}

#[async_trait]
impl SinkHarness for BrokenHarness {
    async fn sink(&self) -> Arc<dyn Sink> {
        Arc::new(self.broken.clone())
    }

    async fn rows(&self, spec: &TableSpec) -> Result<Vec<RecordBatch>> {
        let spec = self.broken.rename(spec);
        let mut rows = self.target.rows(&spec.name)?;
        if self.broken.fault == Fault::ShowsStagedRows {
            let scratch = MemoryTarget::new();
            let mut table = scratch.open().attach(&spec).await?.table;
            let staged = self.broken.shared.lock().unwrap().staged.clone();
            for batch in staged {
                table.stage(batch).await?;
            }
            table.commit(first_mark()).await?;
            rows.extend(scratch.rows(&spec.name)?);
        }
        Ok(rows)
    }
}

impl Broken {
    fn rename(&self, spec: &TableSpec) -> TableSpec {
        let mut spec = spec.clone();
        if self.fault == Fault::MixesTables {
            spec.name = "orders".to_owned();
            spec.source = cdc_core::TableName::new("dbo", "orders");
        }
        spec
    }

    fn told(&self, mut state: TargetState) -> TargetState {
        match self.fault {
            Fault::ForgetsTheMark => state.mark = None,
            Fault::LetsTheVerdictGoBack | Fault::LetsTheVerdictRunAhead => {
                state.verdict = self.shared.lock().unwrap().verdict;
            }
            _ => {}
        }
        state
    }
}

#[async_trait]
impl Sink for Broken {
    fn capabilities(&self) -> SinkCapabilities {
        match self.fault {
            Fault::DoesMoreThanItDeclares => SinkCapabilities::least(),
            _ => self.inner.capabilities(),
        }
    }

    async fn attach(&self, spec: &TableSpec) -> Result<Attached> {
        let spec = self.rename(spec);
        let attached = self.inner.attach(&spec).await?;
        let mut table =
            BrokenTable { sink: self.clone(), spec, inner: attached.table, staged: Vec::new() };
        if self.fault == Fault::KeepsRowsOfADroppedTable {
            let left = std::mem::take(&mut self.shared.lock().unwrap().staged);
            for batch in left {
                table.stage(batch).await?;
            }
        }
        Ok(Attached { table: Box::new(table), state: self.told(attached.state) })
    }

    async fn inspect(&self, spec: &TableSpec) -> Result<Option<TargetState>> {
        let spec = self.rename(spec);
        if self.fault == Fault::CreatesOnInspect {
            self.inner.attach(&spec).await?;
        }
        let state = self.inner.inspect(&spec).await?;
        Ok(state.map(|state| self.told(state)))
    }
}

#[async_trait]
impl TableSink for BrokenTable {
    async fn evolve(&mut self, columns: &[Column]) -> Result<()> {
        match self.sink.fault {
            Fault::NeverAddsColumns => Ok(()),
            _ => self.inner.evolve(columns).await,
        }
    }

    async fn stage(&mut self, batch: TableBatch) -> Result<()> {
        let batch = self.bent(batch)?;
        self.staged.push(batch.clone());
        self.sink.shared.lock().unwrap().staged.push(batch.clone());
        if self.sink.fault == Fault::LosesTheSecondPiece && self.staged.len() == 2 {
            return Ok(());
        }
        match self.inner.stage(batch).await {
            Err(error)
                if self.sink.fault == Fault::IgnoresTheFence
                    && error.kind() == ErrorKind::Fenced =>
            {
                Ok(())
            }
            result => result,
        }
    }

    async fn commit(&mut self, mut commit: Commit) -> Result<Committed> {
        let staged = std::mem::take(&mut self.staged);
        self.sink.shared.lock().unwrap().staged.clear();
        let durable = self.sink.inner.inspect(&self.spec).await?.and_then(|state| state.mark);
        match self.sink.fault {
            Fault::DropsAnIdleMark if staged.is_empty() => return Ok(Committed::Now),
            Fault::DropsTheCommitTime => commit.mark.commit_time = None,
            Fault::DropsTheEntryTime => commit.mark.entry_time = None,
            Fault::ForgetsTheGeneration => commit.mark.generation = 0,
            Fault::CutsThePosition => {
                let bytes: Vec<_> = commit.mark.end.as_bytes().iter().copied().take(10).collect();
                commit.mark.end = Position::new(commit.mark.epoch(), &bytes)?;
            }
            Fault::TakesAnySequence => {
                commit.mark.sequence = cdc_core::mark::next_sequence(durable.as_ref());
            }
            Fault::TakesAnEndThatGoesBack => {
                if let Some(durable) = durable.filter(|mark| mark.sequence < commit.mark.sequence) {
                    commit.mark.end = commit.mark.end.max(durable.end);
                }
            }
            Fault::WritesTheSameMarkAgain if durable == Some(commit.mark) => {
                commit.mark.sequence += 1;
                self.inner.commit(commit).await?;
                return Ok(Committed::Before);
            }
            _ => {}
        }
        match self.inner.commit(commit.clone()).await {
            Err(error)
                if self.sink.fault == Fault::IgnoresTheFence
                    && error.kind() == ErrorKind::Fenced =>
            {
                let mut again = self.sink.inner.attach(&self.spec).await?.table;
                for batch in staged {
                    again.stage(batch).await?;
                }
                again.commit(commit).await
            }
            result => result,
        }
    }

    async fn discard(&mut self) -> Result<()> {
        if self.sink.fault == Fault::KeepsDiscardedRows {
            return Ok(());
        }
        self.staged.clear();
        self.sink.shared.lock().unwrap().staged.clear();
        self.inner.discard().await
    }

    async fn publish(&mut self, verdict: Verdict) -> Result<Verdict> {
        match self.sink.fault {
            Fault::LetsTheVerdictGoBack => {
                self.inner.publish(verdict).await?;
                self.sink.shared.lock().unwrap().verdict = Some(verdict);
                Ok(verdict)
            }
            Fault::LetsTheVerdictRunAhead => {
                self.sink.shared.lock().unwrap().verdict = Some(verdict);
                Ok(verdict)
            }
            _ => self.inner.publish(verdict).await,
        }
    }

    async fn close(self: Box<Self>) -> Result<()> {
        self.inner.close().await
    }
}

impl BrokenTable {
    /// The batch as the broken sink takes it.
    fn bent(&self, mut batch: TableBatch) -> Result<TableBatch> {
        let text = |text: String| Cell::Text(text);
        match self.sink.fault {
            Fault::MakesEmptyTextNull => cells(&mut batch, |cell| match cell {
                Cell::Text(value) if value.is_empty() => Cell::Null,
                other => other,
            }),
            Fault::MakesNullEmptyText => captured_text(&mut batch),
            Fault::TrimsText => cells(&mut batch, |cell| match cell {
                Cell::Text(value) => text(value.trim_end().to_owned()),
                other => other,
            }),
            Fault::RoundsDecimals => cells(&mut batch, |cell| match cell {
                Cell::Decimal(digits, scale) => {
                    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
                    let rounded = digits as f64 as i128;
                    Cell::Decimal(rounded, scale)
                }
                other => other,
            }),
            Fault::CutsMicroseconds => cells(&mut batch, |cell| match cell {
                Cell::Wall(micros) => Cell::Wall(micros.div_euclid(1000) * 1000),
                other => other,
            }),
            Fault::LosesBeforeImages => drop_before_images(&mut batch),
            Fault::LosesTheChunkIndex => {
                if let Origin::Chunk { stamp, .. } = batch.origin {
                    batch.origin = Origin::Snapshot(stamp);
                }
            }
            Fault::StampsAChunkWithItsSnapshot => {
                if let Origin::Chunk { snapshot, stamp, .. } = &mut batch.origin {
                    stamp.position = *snapshot;
                }
            }
            Fault::DropsUnknownColumns => self.keep_known(&mut batch),
            Fault::NeedsTheExactCase => self.exact(&batch)?,
            Fault::ReadsColumnsByPlace => self.by_place(&mut batch),
            Fault::TellsTheValue if self.exact(&batch).is_err() => {
                let row = format!("{:?}", batch.records);
                return Err(Error::new(ErrorKind::SchemaChanged, "row has no place")
                    .with("table", &self.spec.name)
                    .with("row", row));
            }
            _ => {}
        }
        Ok(batch)
    }

    fn known(&self, name: &str) -> bool {
        name.starts_with('_') || self.spec.columns.iter().any(|column| column.name == name)
    }

    fn exact(&self, batch: &TableBatch) -> Result<()> {
        let schema = batch.records.schema();
        match schema.fields().iter().find(|field| !self.known(field.name())) {
            None => Ok(()),
            Some(field) => Err(Error::new(ErrorKind::SchemaChanged, "the target lacks a column")
                .with("table", &self.spec.name)
                .with("column", field.name())),
        }
    }

    fn keep_known(&self, batch: &mut TableBatch) {
        let schema = batch.records.schema();
        let kept: Vec<_> = schema
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, field)| {
                let name = field.name().to_lowercase();
                name.starts_with('_')
                    || self.spec.columns.iter().any(|own| own.name.to_lowercase() == name)
            })
            .map(|(at, _)| at)
            .collect();
        batch.records = batch.records.project(&kept).unwrap();
    }

    /// Gives the captured columns of the same types the table's names in the table's order.
    fn by_place(&self, batch: &mut TableBatch) {
        let schema = batch.records.schema();
        let skip = usize::from(batch.origin == Origin::Changes) * 5;
        let mut fields: Vec<_> = schema.fields().iter().map(|f| f.as_ref().clone()).collect();
        for (field, own) in fields.iter_mut().skip(skip).zip(&self.spec.columns) {
            *field = field.clone().with_name(&own.name);
        }
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        batch.records = RecordBatch::try_new(schema, batch.records.columns().to_vec()).unwrap();
    }
}

/// Puts every captured cell through `bend`.
fn cells(batch: &mut TableBatch, bend: impl Fn(Cell) -> Cell) {
    let skip = usize::from(batch.origin == Origin::Changes) * 5;
    let schema = batch.records.schema();
    let columns = batch.records.columns().iter().enumerate().map(|(at, column)| {
        if at < skip {
            return Arc::clone(column);
        }
        let cells: Vec<_> =
            (0..column.len()).map(|row| bend(Cell::of(column.as_ref(), row).unwrap())).collect();
        array(column.data_type(), &cells).unwrap()
    });
    let columns = columns.collect();
    batch.records = RecordBatch::try_new(schema, columns).unwrap();
}

fn captured_text(batch: &mut TableBatch) {
    let schema = batch.records.schema();
    let skip = usize::from(batch.origin == Origin::Changes) * 5;
    let columns = batch.records.columns().iter().enumerate().map(|(at, column)| {
        if at < skip || column.data_type() != &arrow_schema::DataType::Utf8 {
            return Arc::clone(column);
        }
        let cells: Vec<_> = (0..column.len())
            .map(|row| match Cell::of(column.as_ref(), row).unwrap() {
                Cell::Null => Cell::text(""),
                other => other,
            })
            .collect();
        array(column.data_type(), &cells).unwrap()
    });
    let columns = columns.collect();
    batch.records = RecordBatch::try_new(schema, columns).unwrap();
}

fn drop_before_images(batch: &mut TableBatch) {
    if batch.origin != Origin::Changes {
        return;
    }
    let operations = batch.records.column(2);
    let kept: Vec<_> = (0..batch.records.num_rows())
        .filter(|row| Cell::of(operations.as_ref(), *row).unwrap() != Cell::Int(3))
        .collect();
    let schema = batch.records.schema();
    let columns = batch.records.columns().iter().map(|column| {
        let cells: Vec<_> =
            kept.iter().map(|row| Cell::of(column.as_ref(), *row).unwrap()).collect();
        array(column.data_type(), &cells).unwrap()
    });
    let columns = columns.collect();
    batch.records = RecordBatch::try_new(schema, columns).unwrap();
}

fn first_mark() -> Commit {
    Commit {
        mark: cdc_core::Mark {
            sequence: 1,
            end: Position::new(Epoch(0), &[1]).unwrap(),
            commit_time: None,
            entry_time: None,
            generation: 0,
        },
        facts: cdc_core::BatchFacts::begun(Timestamp::from_micros(0)),
        events: Vec::new(),
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    futures_util::future::FutureExt::now_or_never(future).expect("nothing in memory waits")
}

#[test]
fn a_sink_without_a_fault_passes_every_case() {
    for case in cases() {
        let result = block_on(case.run(&BrokenHarness::new(Fault::Nothing)));
        assert_eq!(result, Ok(Outcome::Passed), "{case:?}");
    }
}

macro_rules! broken {
    ($($name:ident: $fault:ident => $case:literal;)*) => {$(
        #[test]
        fn $name() {
            let result = block_on(run($case, &BrokenHarness::new(Fault::$fault)));
            assert!(result.is_err(), "{} takes a sink that {:?}", $case, Fault::$fault);
        }
    )*};
}

broken! {
    visible_staged_rows_are_found: ShowsStagedRows
        => "staged_rows_are_invisible_before_the_commit";
    a_forgotten_mark_is_found: ForgetsTheMark => "rows_and_mark_become_visible_together";
    an_ignored_fence_is_found: IgnoresTheFence => "a_newer_attach_fences_a_commit_of_rows";
    any_sequence_is_found: TakesAnySequence => "a_lower_sequence_is_a_bug";
    an_end_that_goes_back_is_found: TakesAnEndThatGoesBack => "an_end_that_goes_back_is_a_bug";
    a_second_write_of_a_mark_is_found: WritesTheSameMarkAgain
        => "the_same_mark_again_is_before_and_writes_nothing";
    kept_discarded_rows_are_found: KeepsDiscardedRows => "discarded_rows_never_appear";
    kept_dropped_rows_are_found: KeepsRowsOfADroppedTable
        => "rows_of_a_dropped_table_never_appear";
    a_dropped_idle_mark_is_found: DropsAnIdleMark => "an_idle_commit_moves_the_mark";
    a_dropped_commit_time_is_found: DropsTheCommitTime => "a_mark_round_trips_every_field";
    a_dropped_entry_time_is_found: DropsTheEntryTime => "a_mark_round_trips_every_field";
    a_cut_position_is_found: CutsThePosition => "a_mark_keeps_a_position_of_every_width";
    a_forgotten_generation_is_found: ForgetsTheGeneration => "a_mark_round_trips_every_field";
    an_evolve_without_effect_is_found: NeverAddsColumns
        => "evolve_adds_columns_and_older_rows_read_null";
    a_dropped_column_is_found: DropsUnknownColumns => "an_unknown_column_is_refused_by_name";
    case_sensitive_columns_are_found: NeedsTheExactCase
        => "columns_are_matched_ignoring_case_and_order";
    columns_by_place_are_found: ReadsColumnsByPlace
        => "columns_are_matched_ignoring_case_and_order";
    empty_text_as_null_is_found: MakesEmptyTextNull => "text_is_kept_as_it_is";
    null_as_empty_text_is_found: MakesNullEmptyText => "text_is_kept_as_it_is";
    trimmed_text_is_found: TrimsText => "text_is_kept_as_it_is";
    rounded_decimals_are_found: RoundsDecimals => "decimals_keep_every_digit";
    cut_microseconds_are_found: CutsMicroseconds => "dates_and_times_keep_their_extremes";
    lost_before_images_are_found: LosesBeforeImages => "both_images_of_an_update_are_kept";
    a_lost_chunk_index_is_found: LosesTheChunkIndex => "chunk_rows_bear_snapshot_stamp_and_index";
    a_wrong_chunk_stamp_is_found: StampsAChunkWithItsSnapshot
        => "chunk_rows_bear_snapshot_stamp_and_index";
    a_lost_piece_is_found: LosesTheSecondPiece => "a_huge_commit_streams_in_pieces";
    mixed_tables_are_found: MixesTables => "two_tables_do_not_mix";
    an_inspect_that_creates_is_found: CreatesOnInspect
        => "inspect_of_nothing_is_none_and_creates_nothing";
    an_inspect_that_fences_is_found: CreatesOnInspect => "inspect_fences_nobody";
    a_value_in_an_error_is_found: TellsTheValue => "an_error_never_carries_a_value";
    a_verdict_that_goes_back_is_found: LetsTheVerdictGoBack => "a_verdict_never_goes_back";
    a_verdict_that_runs_ahead_is_found: LetsTheVerdictRunAhead
        => "a_verdict_beyond_the_mark_is_a_bug";
    undeclared_deeds_are_found: DoesMoreThanItDeclares => "evolve_is_idempotent_in_any_case";
}
