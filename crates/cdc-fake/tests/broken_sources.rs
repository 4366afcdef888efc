//! The source suite bites: sources that are broken in one way each fail a case that names the
//! rule.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake_harness;

use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use cdc_conformance::{
    Failure, Outcome,
    source::{Abilities, SourceHarness, Statement, Step, cases, run},
};
use cdc_core::{
    CaptureInstance, ClosedRange, Column, Error, ErrorKind, InstanceName, Position, Result,
    SqlType, TableName, TableRef, Timestamp,
    change::ChangeColumns,
    port::{
        BatchStream, Bound, Catalog, ChangeReader, ChangeRequest, Finding, KeyRange, KeyTuple,
        PositionLog, RowRequest, SchemaChange, Source, SourceCapabilities, TableReader,
    },
};
use cdc_fake::Zone;
use fake_harness::{Fake, block_on};
use futures_util::{StreamExt, stream};

/// What a source gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    SwallowsErrors,
    SplitsPairs,
    LosesTheLastCommit,
    LosesTheFirstCommit,
    IgnoresTheUpperEnd,
    OrdersBackwards,
    IgnoresTheTimeBefore,
    KeepsLowWhenPurged,
    TellsALowOfTheUnknown,
    MixesUpTheAnswers,
    CountsFromOneLess,
    AnswersTheNextCommit,
    TimesEverything,
    SortsInstancesByName,
    NeedsTheExactCase,
    HidesSchemaChanges,
    ShowsEverySchemaChange,
    IncludesTheUpperKey,
    BoundsOneLate,
    CountsTheWholeTable,
    FindsNothing,
    ReadsAnUnknownInstanceAsEmpty,
}

struct Broken {
    fault: Fault,
    inner: Arc<dyn Source>,
}

impl Source for Broken {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> SourceCapabilities {
        self.inner.capabilities()
    }
}

#[async_trait]
impl Catalog for Broken {
    async fn instances(&self, table: &TableRef) -> Result<Vec<CaptureInstance>> {
        let mut found = self.inner.instances(table).await?;
        match (self.fault, table) {
            (Fault::SortsInstancesByName, _) => found.sort_by(|a, b| a.name.cmp(&b.name)),
            (Fault::NeedsTheExactCase, TableRef::Table(name))
                if found.iter().any(|instance| &instance.table != name) =>
            {
                return Err(Error::new(ErrorKind::Config, "nothing is captured"));
            }
            _ => {}
        }
        Ok(found)
    }

    async fn schema_changes(
        &self,
        instance: &InstanceName,
        range: ClosedRange,
    ) -> Result<Vec<SchemaChange>> {
        let range = match self.fault {
            Fault::HidesSchemaChanges => return Ok(Vec::new()),
            Fault::ShowsEverySchemaChange => {
                let low = Position::new(range.from().epoch(), &[0; 10])?;
                ClosedRange::new(low, range.to()).unwrap()
            }
            _ => range,
        };
        self.inner.schema_changes(instance, range).await
    }

    async fn preflight(&self, tables: &[TableRef]) -> Result<Vec<Finding>> {
        match self.fault {
            Fault::FindsNothing => Ok(Vec::new()),
            _ => self.inner.preflight(tables).await,
        }
    }
}

#[async_trait]
impl PositionLog for Broken {
    async fn high(&self) -> Result<Bound> {
        self.inner.high().await
    }

    async fn low(&self, instances: &[InstanceName]) -> Result<Vec<Bound>> {
        let mut bounds = self.inner.low(instances).await?;
        match self.fault {
            Fault::MixesUpTheAnswers => bounds.reverse(),
            Fault::KeepsLowWhenPurged => {
                for (bound, name) in bounds.iter_mut().zip(instances) {
                    let all = self.inner.instances(&TableRef::Instance(name.clone())).await;
                    let start = all.ok().and_then(|all| all.first().map(|one| one.start));
                    if let (Bound::At(_), Some(start)) = (*bound, start) {
                        *bound = Bound::At(start);
                    }
                }
            }
            Fault::TellsALowOfTheUnknown => {
                let first = Position::new(cdc_core::Epoch(0), &[0; 10])?;
                for bound in &mut bounds {
                    if !matches!(bound, Bound::At(_)) {
                        *bound = Bound::At(first);
                    }
                }
            }
            _ => {}
        }
        Ok(bounds)
    }

    async fn commit_time(&self, at: Position) -> Result<Option<Timestamp>> {
        let time = self.inner.commit_time(at).await?;
        match self.fault {
            Fault::TimesEverything => Ok(time.or(Some(Timestamp::from_micros(0)))),
            _ => Ok(time),
        }
    }

    async fn position_at(&self, moment: Timestamp) -> Result<Option<Position>> {
        let found = self.inner.position_at(moment).await?;
        match (self.fault, found) {
            (Fault::AnswersTheNextCommit, Some(at)) => {
                Ok(self.inner.nth_commit_after(at, 1).await?.or(found))
            }
            _ => Ok(found),
        }
    }

    async fn nth_commit_after(&self, after: Position, count: u64) -> Result<Option<Position>> {
        let after = match self.fault {
            Fault::CountsFromOneLess => after.decrement(),
            _ => after,
        };
        self.inner.nth_commit_after(after, count).await
    }
}

#[async_trait]
impl ChangeReader for Broken {
    async fn has_changes(&self, ranges: &[(InstanceName, ClosedRange)]) -> Result<Vec<bool>> {
        let mut news = self.inner.has_changes(ranges).await?;
        if self.fault == Fault::MixesUpTheAnswers {
            news.reverse();
        }
        Ok(news)
    }

    async fn changes(&self, mut request: ChangeRequest) -> Result<BatchStream> {
        let range = request.range;
        match self.fault {
            Fault::IgnoresTheTimeBefore => request.time_before = None,
            Fault::IgnoresTheUpperEnd => {
                let top = Position::new(range.to().epoch(), &[0xff; 10])?;
                request.range = ClosedRange::new(range.from(), top).unwrap();
            }
            Fault::ReadsAnUnknownInstanceAsEmpty => {
                return Ok(self
                    .inner
                    .changes(request)
                    .await
                    .unwrap_or_else(|_| Box::pin(stream::empty())));
            }
            _ => {}
        }
        let batches = self.inner.changes(request).await?;
        Ok(match self.fault {
            Fault::SwallowsErrors => {
                let good = batches.take_while(|item| std::future::ready(item.is_ok()));
                Box::pin(good)
            }
            Fault::SplitsPairs => Box::pin(batches.flat_map(|item| match item {
                Ok(batch) => {
                    let rows = (0..batch.num_rows()).map(|row| Ok(batch.slice(row, 1)));
                    stream::iter(rows.collect::<Vec<_>>())
                }
                Err(error) => stream::iter(vec![Err(error)]),
            })),
            Fault::LosesTheFirstCommit => without(batches, range.from()),
            Fault::LosesTheLastCommit => without(batches, range.to()),
            Fault::OrdersBackwards => Box::pin(batches.map(|item| {
                let batch = item?;
                let rows = (0..batch.num_rows()).rev().map(|row| batch.slice(row, 1));
                Ok(joined(&batch, rows))
            })),
            _ => batches,
        })
    }
}

/// The stream without the changes of one commit.
fn without(batches: BatchStream, commit: Position) -> BatchStream {
    Box::pin(batches.map(move |item| {
        let batch = item?;
        let columns = ChangeColumns::of(&batch)?;
        let kept = (0..batch.num_rows())
            .filter(|row| columns.commits.value(*row) != commit.as_bytes())
            .map(|row| batch.slice(row, 1));
        Ok(joined(&batch, kept))
    }))
}

fn joined(batch: &RecordBatch, rows: impl Iterator<Item = RecordBatch>) -> RecordBatch {
    let rows: Vec<_> = rows.collect();
    arrow_select::concat::concat_batches(&batch.schema(), &rows).unwrap()
}

#[async_trait]
impl TableReader for Broken {
    async fn key_extent(
        &self,
        table: &TableName,
        key: &[String],
    ) -> Result<Option<(KeyTuple, KeyTuple)>> {
        self.inner.key_extent(table, key).await
    }

    async fn key_bound(
        &self,
        table: &TableName,
        key: &[String],
        range: &KeyRange,
        rows: u64,
    ) -> Result<Option<KeyTuple>> {
        let rows = match self.fault {
            Fault::BoundsOneLate => rows.saturating_add(1),
            _ => rows,
        };
        self.inner.key_bound(table, key, range, rows).await
    }

    async fn count(&self, table: &TableName, key: &[String], range: &KeyRange) -> Result<u64> {
        let whole = KeyRange::default();
        let range = match self.fault {
            Fault::CountsTheWholeTable => &whole,
            _ => range,
        };
        self.inner.count(table, key, range).await
    }

    async fn rows(&self, mut request: RowRequest) -> Result<BatchStream> {
        let upper = request.range.to.clone();
        let inner = self.inner.rows(request.clone()).await?;
        match (self.fault, upper) {
            (Fault::IncludesTheUpperKey, Some(from)) => {
                // One row more: the one at the upper key.
                let rest = KeyRange { from: Some(from.clone()), to: None };
                let key = request.key.clone();
                let to = self.inner.key_bound(&request.table, &key, &rest, 1).await?;
                request.range = KeyRange { from: Some(from), to };
                Ok(Box::pin(inner.chain(self.inner.rows(request).await?)))
            }
            _ => Ok(inner),
        }
    }
}

struct BrokenHarness {
    fault: Fault,
    inner: Fake,
}

impl BrokenHarness {
    fn new(fault: Fault) -> Self {
        Self { fault, inner: Fake::new(Zone::UTC) }
    }
}

#[async_trait]
impl SourceHarness for BrokenHarness {
    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    async fn source(&self) -> Arc<dyn Source> {
        Arc::new(Broken { fault: self.fault, inner: SourceHarness::source(&self.inner).await })
    }

    async fn create_table(&self, table: &TableName, columns: &[Column], key: &[&str]) -> Step {
        self.inner.create_table(table, columns, key).await
    }

    async fn enable(
        &self,
        table: &TableName,
        instance: &InstanceName,
        columns: Option<&[&str]>,
    ) -> Step {
        self.inner.enable(table, instance, columns).await
    }

    async fn transact(&self, statements: &[Statement]) -> Step {
        self.inner.transact(statements).await
    }

    async fn capture(&self) -> Step {
        self.inner.capture().await
    }

    async fn idle(&self) -> Step {
        self.inner.idle().await
    }

    async fn pass(&self, time: std::time::Duration) -> Step {
        self.inner.pass(time).await
    }

    async fn move_low(&self, instance: &InstanceName, low: Position) -> Step {
        self.inner.move_low(instance, low).await
    }

    async fn delete_purged(&self) -> Step {
        self.inner.delete_purged().await
    }

    async fn add_column(&self, table: &TableName, column: &Column) -> Step {
        self.inner.add_column(table, column).await
    }

    async fn alter_column(&self, table: &TableName, column: &str, to: SqlType) -> Step {
        self.inner.alter_column(table, column, to).await
    }

    async fn drop_column(&self, table: &TableName, column: &str) -> Step {
        self.inner.drop_column(table, column).await
    }

    async fn revoke(
        &self,
        instance: &InstanceName,
    ) -> std::result::Result<Arc<dyn Source>, Failure> {
        Ok(Arc::new(Broken { fault: self.fault, inner: self.inner.revoke(instance).await? }))
    }

    async fn break_stream(&self, rows: u64) -> Step {
        self.inner.break_stream(rows).await
    }
}

#[test]
fn a_source_without_a_fault_passes_every_case() {
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
            assert!(result.is_err(), "{} takes a source that {:?}", $case, Fault::$fault);
        }
    )*};
}

broken! {
    a_swallowed_error_is_found: SwallowsErrors => "an_error_in_the_middle_is_the_last_item";
    a_split_pair_is_found: SplitsPairs => "both_images_of_an_update_share_a_record_batch";
    a_lost_first_commit_is_found: LosesTheFirstCommit => "both_ends_of_a_range_belong_to_it";
    a_lost_last_commit_is_found: LosesTheLastCommit => "both_ends_of_a_range_belong_to_it";
    an_ignored_upper_end_is_found: IgnoresTheUpperEnd => "neighbouring_ranges_tile";
    a_backward_order_is_found: OrdersBackwards => "changes_come_in_change_order";
    an_ignored_time_is_found: IgnoresTheTimeBefore
        => "times_are_never_before_the_time_known_before";
    a_low_that_stays_is_found: KeepsLowWhenPurged => "a_purged_range_reads_empty_and_low_says_so";
    a_low_of_the_unknown_is_found: TellsALowOfTheUnknown
        => "low_of_an_unknown_instance_is_no_position";
    a_low_before_capture_is_found: TellsALowOfTheUnknown
        => "low_is_no_position_before_capture_reached_the_instance";
    mixed_up_lows_are_found: MixesUpTheAnswers => "low_answers_in_the_order_asked";
    mixed_up_news_are_found: MixesUpTheAnswers => "has_changes_answers_in_the_order_asked";
    a_count_from_one_less_is_found: CountsFromOneLess
        => "the_nth_commit_is_counted_over_the_database";
    a_position_after_its_moment_is_found: AnswersTheNextCommit
        => "the_position_at_a_moment_is_the_latest_and_never_after";
    a_time_of_no_commit_is_found: TimesEverything
        => "a_commit_has_a_time_and_its_neighbours_have_none";
    instances_by_name_are_found: SortsInstancesByName => "instances_come_oldest_first";
    a_case_sensitive_lookup_is_found: NeedsTheExactCase
        => "names_match_exactly_or_else_ignoring_case";
    hidden_schema_changes_are_found: HidesSchemaChanges => "an_altered_column_says_so";
    schema_changes_outside_their_range_are_found: ShowsEverySchemaChange
        => "schema_changes_lie_in_their_range";
    an_included_upper_key_is_found: IncludesTheUpperKey => "a_range_is_half_open";
    overlapping_ranges_are_found: IncludesTheUpperKey => "ranges_between_bounds_tile_the_table";
    a_late_bound_is_found: BoundsOneLate => "a_bound_leaves_that_many_rows_below";
    a_wrong_count_is_found: CountsTheWholeTable => "a_range_is_half_open";
    a_blind_preflight_is_found: FindsNothing
        => "a_preflight_makes_a_finding_of_an_unknown_table";
    an_unknown_instance_read_as_empty_is_found: ReadsAnUnknownInstanceAsEmpty
        => "an_unknown_instance_is_refused_by_name";
    a_missing_right_read_as_empty_is_found: ReadsAnUnknownInstanceAsEmpty
        => "a_missing_right_names_its_grant";
}
