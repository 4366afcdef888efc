//! The queries that silver and people run on a bronze file, by hand on the Parquet reader, with the
//! pruning that engines do: row groups and pages by their statistics.

use std::{collections::HashMap, fs::File, path::Path};

use arrow_array::{
    Array, BooleanArray, RecordBatch,
    cast::AsArray,
    types::{Int32Type, Int64Type, TimestampMicrosecondType},
};
use arrow_ord::cmp::{eq, gt_eq, lt};
use arrow_schema::ArrowError;
use arrow_select::concat::concat;
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions,
            ParquetRecordBatchReaderBuilder, RowFilter, RowSelection, RowSelector,
            statistics::StatisticsConverter,
        },
    },
    file::metadata::PageIndexPolicy,
};

use crate::Outcome;

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// `count(*)`: the footer.
    Count,
    /// One hundredth of the time, all columns.
    Range,
    /// One key, all columns. Keys are spread, so nothing can be pruned.
    Key,
    /// The newest image of each key: the key and the order of changes, then all columns.
    Newest,
}

impl Scan {
    pub(super) const ALL: [Self; 4] = [Self::Count, Self::Range, Self::Key, Self::Newest];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Range => "range",
            Self::Key => "key",
            Self::Newest => "newest",
        }
    }
}

/// The queries' arguments and answers for given rows.
pub(super) struct Scans {
    range: (i64, i64),
    key: i64,
    expected: [usize; 4],
}

type Reader = ParquetRecordBatchReaderBuilder<File>;

impl Scans {
    /// Takes the middle hundredth of the time, and the first row's key.
    pub(super) fn of(rows: &[RecordBatch]) -> Outcome<Self> {
        let times = whole(rows, "_commit_ts")?;
        let times = times.as_primitive::<TimestampMicrosecondType>().values();
        let keys = whole(rows, "id")?;
        let keys = keys.as_primitive::<Int64Type>().values();
        let (Some(first), Some(last)) = (times.first(), times.last()) else {
            return Err("no rows".into());
        };
        let middle = i64::midpoint(*first, *last);
        let range = (middle, middle + (last - first) / 100);
        let key = keys.first().copied().unwrap_or_default();
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        let expected = [
            times.len(),
            times.iter().filter(|time| (range.0..range.1).contains(*time)).count(),
            keys.iter().filter(|other| **other == key).count(),
            distinct.len(),
        ];
        Ok(Self { range, key, expected })
    }

    /// How many rows a query must find.
    pub(super) fn expected(&self, scan: Scan) -> usize {
        let [count, range, key, newest] = self.expected;
        match scan {
            Scan::Count => count,
            Scan::Range => range,
            Scan::Key => key,
            Scan::Newest => newest,
        }
    }

    /// Runs a query. Returns how many rows it found.
    pub(super) fn run(&self, scan: Scan, path: &Path) -> Outcome<usize> {
        let file = File::open(path)?;
        let index =
            if scan == Scan::Range { PageIndexPolicy::Optional } else { PageIndexPolicy::Skip };
        let options = ArrowReaderOptions::new().with_page_index_policy(index);
        let metadata = ArrowReaderMetadata::load(&file, options)?;
        let open = || -> Outcome<Reader> {
            Ok(Reader::new_with_metadata(file.try_clone()?, metadata.clone()))
        };
        match scan {
            Scan::Count => {
                let rows = metadata.metadata().file_metadata().num_rows();
                Ok(usize::try_from(rows)?)
            }
            Scan::Range => self.range(open()?),
            Scan::Key => {
                let key = arrow_array::Int64Array::new_scalar(self.key);
                rows(filtered(open()?, "id", move |keys| eq(keys, &key)))
            }
            Scan::Newest => newest(&open()?, open()?, open()?),
        }
    }

    fn range(&self, reader: Reader) -> Outcome<usize> {
        let (from, to) = self.range;
        let meets = |least: i64, greatest: i64| least < to && greatest >= from;
        let schema = reader.schema().clone();
        let metadata = std::sync::Arc::clone(reader.metadata());
        let described = metadata.file_metadata().schema_descr();
        let about = StatisticsConverter::try_new("_commit_ts", &schema, described)?;
        let groups = metadata.row_groups();
        let bounds = |least: arrow_array::ArrayRef, greatest: arrow_array::ArrayRef| {
            let least = least.as_primitive::<TimestampMicrosecondType>().clone();
            let greatest = greatest.as_primitive::<TimestampMicrosecondType>().clone();
            let one = move |(least, greatest): (Option<i64>, Option<i64>)| match (least, greatest) {
                (Some(least), Some(greatest)) => meets(least, greatest),
                _ => true,
            };
            least.iter().zip(greatest.iter()).map(one).collect::<Vec<bool>>()
        };
        let kept: Vec<usize> =
            bounds(about.row_group_mins(groups)?, about.row_group_maxes(groups)?)
                .into_iter()
                .enumerate()
                .filter_map(|(group, meets)| meets.then_some(group))
                .collect();
        let mut reader = reader.with_row_groups(kept.clone());
        if let (Some(index), Some(offsets)) = (metadata.column_index(), metadata.offset_index()) {
            let least = about.data_page_mins(index, offsets, &kept)?;
            let greatest = about.data_page_maxes(index, offsets, &kept)?;
            if let Some(counts) = about.data_page_row_counts(offsets, groups, &kept)? {
                let pages = bounds(least, greatest).into_iter().zip(counts.values().iter());
                let selectors = pages.map(|(meets, rows)| {
                    let rows = usize::try_from(*rows).unwrap_or(usize::MAX);
                    if meets { RowSelector::select(rows) } else { RowSelector::skip(rows) }
                });
                reader =
                    reader.with_row_selection(RowSelection::from(selectors.collect::<Vec<_>>()));
            }
        }
        let scalar = |micros| arrow_array::TimestampMicrosecondArray::new_scalar(micros);
        let (from, to) = (scalar(from), scalar(to));
        rows(filtered(reader, "_commit_ts", move |times| {
            both(&gt_eq(times, &from)?, &lt(times, &to)?)
        }))
    }
}

/// Both conditions; the columns have no NULL.
fn both(a: &BooleanArray, b: &BooleanArray) -> Result<BooleanArray, ArrowError> {
    Ok(BooleanArray::new(a.values() & b.values(), None))
}

fn whole(rows: &[RecordBatch], name: &str) -> Outcome<arrow_array::ArrayRef> {
    let parts: Option<Vec<_>> = rows.iter().map(|batch| batch.column_by_name(name)).collect();
    let parts = parts.ok_or("a column is missing")?;
    Ok(concat(&parts.into_iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?)
}

/// Reads all columns of the rows whose column `name` meets a condition.
fn filtered(
    reader: Reader,
    name: &str,
    mut condition: impl FnMut(&dyn arrow_array::Datum) -> Result<BooleanArray, ArrowError>
    + Send
    + 'static,
) -> Reader {
    let mask = ProjectionMask::columns(reader.parquet_schema(), [name]);
    let predicate = ArrowPredicateFn::new(mask, move |batch: RecordBatch| {
        condition(batch.columns().first().ok_or_else(|| {
            ArrowError::InvalidArgumentError("the filter's column is missing".into())
        })?)
    });
    reader.with_row_filter(RowFilter::new(vec![Box::new(predicate)]))
}

fn rows(reader: Reader) -> Outcome<usize> {
    let mut rows = 0;
    for batch in reader.with_batch_size(8_192).build()? {
        rows += batch?.num_rows();
    }
    Ok(rows)
}

/// The newest change of a key so far, and its row in the file.
struct Newest {
    commit: Vec<u8>,
    command: i32,
    sequence: Vec<u8>,
    operation: i32,
    row: usize,
}

impl Newest {
    fn order(&self) -> (&[u8], i32, &[u8], i32) {
        (&self.commit, self.command, &self.sequence, self.operation)
    }
}

/// The newest change of each key, then the images themselves. Returns how many keys there are.
fn newest(about: &Reader, order: Reader, all: Reader) -> Outcome<usize> {
    let names = ["id", "_start_lsn", "_command_id", "_seqval", "_operation"];
    let mask = ProjectionMask::columns(about.parquet_schema(), names);
    let mut newest: HashMap<i64, Newest> = HashMap::new();
    let mut rows_before = 0;
    for batch in order.with_projection(mask).with_batch_size(8_192).build()? {
        let batch = batch?;
        let column = |name: &str| batch.column_by_name(name).ok_or("a column is missing");
        let keys = column("id")?.as_primitive::<Int64Type>();
        let commits = column("_start_lsn")?.as_string::<i32>();
        let commands = column("_command_id")?.as_primitive::<Int32Type>();
        let sequences = column("_seqval")?.as_string::<i32>();
        let operations = column("_operation")?.as_primitive::<Int32Type>();
        for at in 0..batch.num_rows() {
            let commit = commits.value(at).as_bytes();
            let sequence = sequences.value(at).as_bytes();
            let change = (commit, commands.value(at), sequence, operations.value(at));
            if newest.get(&keys.value(at)).is_none_or(|held| held.order() < change) {
                let held = Newest {
                    commit: commit.to_vec(),
                    command: change.1,
                    sequence: sequence.to_vec(),
                    operation: change.3,
                    row: rows_before + at,
                };
                newest.insert(keys.value(at), held);
            }
        }
        rows_before += batch.num_rows();
    }
    let mut wanted: Vec<usize> = newest.values().map(|held| held.row).collect();
    wanted.sort_unstable();
    let ranges = wanted.iter().map(|row| *row..*row + 1);
    rows(all.with_row_selection(RowSelection::from_consecutive_ranges(ranges, rows_before)))
}
