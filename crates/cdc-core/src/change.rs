//! Change rows: their operations, their order, and the record batches that carry them.

use std::sync::Arc;

use arrow_array::{
    Array, FixedSizeBinaryArray, Int32Array, RecordBatch, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::{
    error::{Error, ErrorKind, Result},
    table::{Column, InstanceName},
    time::Timestamp,
};

/// What a row of a change table or a snapshot says, by SQL Server's `__$operation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum Operation {
    /// A row of a snapshot.
    Read = 0,
    /// The row that a delete removed.
    Delete = 1,
    /// The row that an insert added.
    Insert = 2,
    /// The row before an update.
    UpdateBefore = 3,
    /// The row after an update.
    UpdateAfter = 4,
}

impl Operation {
    /// The number that tables hold.
    #[must_use]
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// The operation of a number.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] for a number that is none.
    pub fn from_code(code: i32) -> Result<Self> {
        match code {
            0 => Ok(Self::Read),
            1 => Ok(Self::Delete),
            2 => Ok(Self::Insert),
            3 => Ok(Self::UpdateBefore),
            4 => Ok(Self::UpdateAfter),
            _ => Err(Error::new(ErrorKind::InvalidData, "operation is not 0 to 4")
                .with("operation", code)),
        }
    }
}

/// The place of a change row in the order of one capture instance.
///
/// The fields compare in this order. A missing command id or sequence value sorts lowest.
/// `__$seqval` alone is no order: the log may hold a deferred update's insert before its delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeOrder<L> {
    /// `__$start_lsn`: the commit.
    pub commit: L,
    /// `__$command_id`: the statement inside the commit, counted by each instance on its own.
    pub command: Option<i32>,
    /// `__$seqval`: the row's place in the log.
    pub sequence: Option<L>,
    /// `__$operation`.
    pub operation: i32,
}

impl<L: Copy + Ord> ChangeOrder<L> {
    /// The change's identity across the two instances of a table. Command ids are counted by each
    /// instance on its own, so they are no part of it.
    #[must_use]
    pub const fn identity(&self) -> ChangeIdentity<L> {
        ChangeIdentity { commit: self.commit, sequence: self.sequence, operation: self.operation }
    }

    /// The order of two changes that may come from different instances of a table: by commit,
    /// and inside a commit by everything only when both come from the same instance.
    ///
    /// Within one batch a commit is read from one instance only, so two changes of one commit
    /// never need a comparison across instances; asking for one yields nothing.
    #[must_use]
    pub fn compare_across(
        &self,
        instance: &InstanceName,
        other: &Self,
        other_instance: &InstanceName,
    ) -> Option<std::cmp::Ordering> {
        match self.commit.cmp(&other.commit) {
            std::cmp::Ordering::Equal if instance == other_instance => Some(self.cmp(other)),
            std::cmp::Ordering::Equal if self.identity() == other.identity() => {
                Some(std::cmp::Ordering::Equal)
            }
            std::cmp::Ordering::Equal => None,
            order => Some(order),
        }
    }
}

/// What tells one change from another whichever instance recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeIdentity<L> {
    /// `__$start_lsn`.
    pub commit: L,
    /// `__$seqval`.
    pub sequence: Option<L>,
    /// `__$operation`.
    pub operation: i32,
}

/// The leading fields of a change batch, in this order, before the captured columns.
pub mod field {
    /// `__$start_lsn`: fixed-size binary, never NULL.
    pub const START_LSN: &str = "_start_lsn";
    /// `__$seqval`: fixed-size binary.
    pub const SEQVAL: &str = "_seqval";
    /// `__$operation`: `Int32`, never NULL.
    pub const OPERATION: &str = "_operation";
    /// `__$command_id`: `Int32`; NULL where the server has none.
    pub const COMMAND_ID: &str = "_command_id";
    /// The commit's time in UTC: microseconds, zoneless.
    pub const COMMIT_TS: &str = "_commit_ts";
    /// How many leading fields there are.
    pub const COUNT: usize = 5;
}

/// The schema of a change batch: the five leading fields and the captured columns.
///
/// `width` is the width of the source's positions in bytes.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a column whose type has no column form.
pub fn change_schema(width: i32, columns: &[Column]) -> Result<SchemaRef> {
    let mut fields = vec![
        Field::new(field::START_LSN, DataType::FixedSizeBinary(width), false),
        Field::new(field::SEQVAL, DataType::FixedSizeBinary(width), true),
        Field::new(field::OPERATION, DataType::Int32, false),
        Field::new(field::COMMAND_ID, DataType::Int32, true),
        Field::new(field::COMMIT_TS, DataType::Timestamp(TimeUnit::Microsecond, None), true),
    ];
    for column in columns {
        fields.push(column.field()?);
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// The schema of a batch of table rows: the columns alone.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a column whose type has no column form.
pub fn row_schema(columns: &[Column]) -> Result<SchemaRef> {
    let fields = columns.iter().map(Column::field).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Schema::new(fields)))
}

/// The leading fields of a change batch, typed.
#[derive(Clone, Copy, Debug)]
pub struct ChangeColumns<'a> {
    /// `__$start_lsn`.
    pub commits: &'a FixedSizeBinaryArray,
    /// `__$seqval`.
    pub sequences: &'a FixedSizeBinaryArray,
    /// `__$operation`.
    pub operations: &'a Int32Array,
    /// `__$command_id`.
    pub commands: &'a Int32Array,
    /// The commit times.
    pub times: &'a TimestampMicrosecondArray,
}

impl<'a> ChangeColumns<'a> {
    /// The leading fields of `batch`.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`] when the batch does not begin with the fields of [`change_schema`], or a
    /// row has no commit or no operation.
    pub fn of(batch: &'a RecordBatch) -> Result<Self> {
        fn column<'a, A: Array + 'static>(
            batch: &'a RecordBatch,
            at: usize,
            name: &str,
        ) -> Result<&'a A> {
            let wrong = || Error::bug("batch is no change batch").with("column", name);
            if batch.schema_ref().fields().get(at).is_none_or(|field| field.name() != name) {
                return Err(wrong());
            }
            batch
                .columns()
                .get(at)
                .and_then(|array| array.as_any().downcast_ref())
                .ok_or_else(wrong)
        }
        let columns = Self {
            commits: column(batch, 0, field::START_LSN)?,
            sequences: column(batch, 1, field::SEQVAL)?,
            operations: column(batch, 2, field::OPERATION)?,
            commands: column(batch, 3, field::COMMAND_ID)?,
            times: column(batch, 4, field::COMMIT_TS)?,
        };
        // What lies below a NULL is no value, and would be taken for one.
        for (name, nulls) in [
            (field::START_LSN, columns.commits.null_count()),
            (field::OPERATION, columns.operations.null_count()),
        ] {
            if nulls != 0 {
                return Err(Error::bug("change row lacks a leading field")
                    .with("column", name)
                    .with("rows", nulls));
            }
        }
        Ok(columns)
    }

    /// Rows in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.commits.len()
    }

    /// True when the batch has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The place of row `row` in change order. `row` must be below [`ChangeColumns::len`].
    #[must_use]
    pub fn order(&self, row: usize) -> ChangeOrder<&'a [u8]> {
        ChangeOrder {
            commit: self.commits.value(row),
            command: self.commands.is_valid(row).then(|| self.commands.value(row)),
            sequence: self.sequences.is_valid(row).then(|| self.sequences.value(row)),
            operation: self.operations.value(row),
        }
    }

    /// The commit time of row `row`. `row` must be below [`ChangeColumns::len`].
    #[must_use]
    pub fn time(&self, row: usize) -> Option<Timestamp> {
        self.times.is_valid(row).then(|| Timestamp::from_micros(self.times.value(row)))
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    fn change(
        commit: u8,
        command: Option<i32>,
        sequence: Option<u8>,
        operation: i32,
    ) -> ChangeOrder<u8> {
        ChangeOrder { commit, command, sequence, operation }
    }

    #[test]
    fn the_command_outranks_the_sequence_value() {
        // A deferred update whose insert stands before its delete in the log.
        let delete = change(1, Some(1), Some(9), 1);
        let insert = change(1, Some(2), Some(7), 2);
        assert!(delete < insert);
        assert!(change(1, None, Some(9), 1) > change(1, None, Some(7), 2));
        assert!(change(1, Some(1), Some(5), 3) < change(1, Some(1), Some(5), 4));
    }

    #[test]
    fn a_missing_part_sorts_lowest() {
        assert!(change(1, None, Some(9), 4) < change(1, Some(0), None, 0));
        assert!(change(1, Some(1), None, 4) < change(1, Some(1), Some(0), 0));
    }

    proptest! {
        #[test]
        fn across_instances_only_commits_are_ordered(
            a in (0u8..3, proptest::option::of(0i32..3), proptest::option::of(0u8..3), 1i32..5),
            b in (0u8..3, proptest::option::of(0i32..3), proptest::option::of(0u8..3), 1i32..5),
        ) {
            let (old, new) = (InstanceName::new("dbo_t"), InstanceName::new("dbo_t_2"));
            let (a, b) = (change(a.0, a.1, a.2, a.3), change(b.0, b.1, b.2, b.3));
            prop_assert_eq!(a.compare_across(&old, &b, &old), Some(a.cmp(&b)));
            match a.compare_across(&old, &b, &new) {
                Some(Ordering::Equal) => prop_assert_eq!(a.identity(), b.identity()),
                Some(order) => prop_assert_eq!(order, a.commit.cmp(&b.commit)),
                None => prop_assert_eq!(a.commit, b.commit),
            }
        }
    }

    #[test]
    fn a_row_without_a_commit_or_an_operation_is_no_change_row() {
        let schema = change_schema(1, &[]).expect("five fields");
        let fields: Vec<_> = schema.fields().iter().map(|field| (**field).clone()).collect();
        let loose: Vec<_> = fields.into_iter().map(|field| field.with_nullable(true)).collect();
        let batch = |commit: Option<[u8; 1]>, operation: Option<i32>| {
            let binary = |value: Option<[u8; 1]>| {
                let values = std::iter::once(value);
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 1).expect("one byte")
            };
            let columns: Vec<arrow_array::ArrayRef> = vec![
                Arc::new(binary(commit)),
                Arc::new(binary(None)),
                Arc::new(Int32Array::from(vec![operation])),
                Arc::new(Int32Array::from(vec![None])),
                Arc::new(TimestampMicrosecondArray::from(vec![None])),
            ];
            RecordBatch::try_new(Arc::new(Schema::new(loose.clone())), columns).expect("a batch")
        };
        assert!(ChangeColumns::of(&batch(Some([1]), Some(2))).is_ok());
        for (lacking, name) in
            [(batch(None, Some(2)), field::START_LSN), (batch(Some([1]), None), field::OPERATION)]
        {
            let error = ChangeColumns::of(&lacking).expect_err("lacks a field");
            assert_eq!((error.kind(), error.context("column")), (ErrorKind::Bug, Some(name)));
        }
    }

    #[test]
    fn operations_round_trip_and_others_are_refused() {
        for code in 0..5 {
            assert_eq!(Operation::from_code(code).expect("known").code(), code);
        }
        assert!(Operation::from_code(5).is_err() && Operation::from_code(-1).is_err());
    }
}
