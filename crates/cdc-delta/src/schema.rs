//! The columns of the tables, with their comments, and the names that Delta takes.

use arrow_schema::{DataType as ArrowType, TimeUnit};
use cdc_core::{Column, Error, ErrorKind, Result, TableSpec};
use delta_kernel::{
    engine::arrow_conversion::TryIntoKernel,
    schema::{DataType, SchemaRef, StructField, StructType},
};

/// A column that the library fills, its type and its comment.
pub(crate) type Own = (&'static str, DataType, &'static str);

const STRING: DataType = DataType::STRING;
const INT: DataType = DataType::INTEGER;
const LONG: DataType = DataType::LONG;
const DOUBLE: DataType = DataType::DOUBLE;
const TIME: DataType = DataType::TIMESTAMP_NTZ;

/// What every bronze table is.
pub(crate) const BRONZE_COMMENT: &str = "Change log of one source table, in append order. \
     Change order is _start_lsn, _command_id, _seqval, _operation";

/// The columns of bronze before the captured ones.
pub(crate) const BRONZE_HEAD: [Own; 6] = [
    ("_capture_instance", STRING, "Capture instance the row was read from"),
    ("_start_lsn", STRING, "LSN of the row's commit; of a snapshot row, its stamp"),
    ("_seqval", STRING, "The row's place in the log; NULL in snapshot rows"),
    (
        "_operation",
        INT,
        "0 snapshot row, 1 delete, 2 insert, 3 row before an update, 4 row after it",
    ),
    (
        "_command_id",
        INT,
        "The statement inside the commit, counted by each capture instance on its own",
    ),
    ("_commit_ts", TIME, "Commit time in UTC; NULL when the stamp is no commit"),
];

/// The columns of bronze after the captured ones.
pub(crate) const BRONZE_TAIL: [Own; 3] = [
    ("_batch_id", INT, "Number of the batch that wrote the row; NULL in snapshot rows"),
    ("_snapshot", STRING, "LSN of the snapshot the row belongs to; NULL in change rows"),
    ("_chunk", INT, "Index of the snapshot's chunk; NULL outside chunked snapshots"),
];

/// What the facts table is.
pub(crate) const FACTS_COMMENT: &str =
    "One row a batch (event is NULL) and one row a batch event, of all tables. All times are UTC";

/// The columns of facts.
pub(crate) const FACTS: [Own; 29] = [
    ("app_id", STRING, "Writer of the batch: one for each table"),
    ("batch_id", LONG, "Number of the batch in its table"),
    ("rows", LONG, "Change rows of the batch; 0 in event rows"),
    ("min_lsn", STRING, "LSN of the first change row, or of the event"),
    ("max_lsn", STRING, "LSN of the last change row, or of the event"),
    ("min_commit_ts", TIME, "Commit time of min_lsn"),
    ("max_commit_ts", TIME, "Commit time of max_lsn"),
    ("deletes", LONG, "Rows with operation 1"),
    ("inserts", LONG, "Rows with operation 2"),
    ("updates", LONG, "Rows with operation 4"),
    ("started_at", TIME, "When the batch began"),
    ("duration_ms", LONG, "Milliseconds from the begin to the commit"),
    ("source_rtt_ms", DOUBLE, "Round trip to the source in milliseconds; NULL when not measured"),
    ("read_seconds", DOUBLE, "Seconds spent waiting for rows of the source"),
    ("read_mb", DOUBLE, "Megabytes (1e6 bytes) of the rows in memory"),
    ("network_wait_ms", LONG, "Network wait at the source in milliseconds; NULL when not measured"),
    ("retention_watermark_ts", TIME, "Oldest commit time the source still holds"),
    ("retention_headroom_hours", DOUBLE, "Hours from the watermark to the batch's end"),
    ("event", STRING, "NULL for a batch, or the name of the event"),
    ("lost_from_ts", TIME, "Begin of a gap"),
    ("lost_to_ts", TIME, "End of a gap"),
    ("source_max_commit_ts", TIME, "Newest commit time at the source when the batch was planned"),
    ("capture_lag_seconds", DOUBLE, "Age of the source's newest commit time"),
    ("ingestion_lag_seconds", DOUBLE, "Seconds from the batch's end to the source's newest commit"),
    ("end_lsn", STRING, "Everything at or before this LSN is in the target"),
    ("end_commit_ts", TIME, "Commit time of end_lsn"),
    ("detail", STRING, "Warnings of the batch as JSON, or more about the event"),
    ("target", STRING, "The table the batch was written to"),
    ("written_at", TIME, "When this row was written"),
];

/// What the control table is.
pub(crate) const CONTROL_COMMENT: &str =
    "One row a table: up to when it is complete. All times are UTC";

/// The columns of control.
pub(crate) const CONTROL: [Own; 9] = [
    ("table_name", STRING, "The table"),
    ("finalized_until", TIME, "Every period that ends at or before this moment is complete"),
    ("end_lsn", STRING, "The LSN that the verdict rests on"),
    ("end_commit_ts", TIME, "Commit time of end_lsn"),
    ("updated_at", TIME, "When the row was last written"),
    ("applied_lsn", STRING, "Silver only: changes up to this LSN are applied"),
    ("snapshot_lsn", STRING, "Silver only: the snapshot it was built from"),
    ("open_snapshot_lsn", STRING, "Silver only: the snapshot being applied"),
    ("snapshot_wave", INT, "Silver only: the last applied wave of that snapshot"),
];

/// A library column as the log holds it.
pub(crate) fn own_field(own: &Own) -> StructField {
    let (name, data_type, comment) = own;
    StructField::nullable(*name, data_type.clone()).with_metadata([("comment", *comment)])
}

/// The schema of a table that has library columns only.
pub(crate) fn own_schema(columns: &[Own]) -> Result<SchemaRef> {
    schema(columns.iter().map(own_field))
}

/// The schema of a new bronze table.
pub(crate) fn bronze_schema(spec: &TableSpec) -> Result<SchemaRef> {
    let mut fields: Vec<_> = BRONZE_HEAD.iter().map(own_field).collect();
    for column in &spec.columns {
        fields.push(captured_field(column)?);
    }
    fields.extend(BRONZE_TAIL.iter().map(own_field));
    schema(fields)
}

fn schema(fields: impl IntoIterator<Item = StructField>) -> Result<SchemaRef> {
    StructType::try_new(fields)
        .map(Into::into)
        .map_err(|error| Error::bug("the columns make no schema").caused_by(error))
}

/// A captured column as the log holds it: always nullable, since change rows may lack a value.
pub(crate) fn captured_field(column: &Column) -> Result<StructField> {
    let arrow = column.sql_type.arrow()?;
    let data_type: DataType = (&arrow).try_into_kernel().map_err(|error| {
        Error::new(ErrorKind::Unsupported, "type has no Delta form")
            .with("column", &column.name)
            .with("type", &column.sql_type)
            .caused_by(error)
    })?;
    Ok(StructField::nullable(&column.name, data_type))
}

/// True for a name that Delta takes only with column mapping.
pub(crate) fn needs_mapping(name: &str) -> bool {
    name.contains([' ', ',', ';', '{', '}', '(', ')', '=', '\t', '\n', '\r'])
}

/// A type as error messages name it.
pub(crate) fn spelled(data_type: &ArrowType) -> String {
    match data_type {
        ArrowType::Utf8 => "string".into(),
        ArrowType::Binary => "binary".into(),
        ArrowType::Boolean => "boolean".into(),
        ArrowType::Int16 => "smallint".into(),
        ArrowType::Int32 => "int".into(),
        ArrowType::Int64 => "bigint".into(),
        ArrowType::Float32 => "float".into(),
        ArrowType::Float64 => "double".into(),
        ArrowType::Date32 => "date".into(),
        ArrowType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        ArrowType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz".into(),
        ArrowType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp".into(),
        other => other.to_string(),
    }
}

/// True when every value of `from` is a value of `to`, a type that Delta files hold.
pub(crate) fn fits(from: &ArrowType, to: &ArrowType) -> bool {
    use ArrowType as T;
    match (from, to) {
        (a, b) if a == b => true,
        (T::Null, _)
        | (T::LargeUtf8 | T::Utf8View, T::Utf8)
        | (T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_), T::Binary)
        | (T::Int8 | T::UInt8, T::Int16)
        | (T::Int8 | T::UInt8 | T::Int16 | T::UInt16, T::Int32)
        | (T::Int8 | T::UInt8 | T::Int16 | T::UInt16 | T::Int32 | T::UInt32, T::Int64)
        | (
            T::Int8 | T::UInt8 | T::Int16 | T::UInt16 | T::Int32 | T::UInt32 | T::Float32,
            T::Float64,
        )
        | (T::Date32, T::Timestamp(TimeUnit::Microsecond, None))
        | (T::Timestamp(_, None), T::Timestamp(TimeUnit::Microsecond, None))
        | (T::Timestamp(_, Some(_)), T::Timestamp(TimeUnit::Microsecond, Some(_))) => true,
        (T::Dictionary(_, values), to) => fits(values, to),
        (from, T::Decimal128(precision, scale)) => digits(from).is_some_and(|(whole, part)| {
            whole <= i16::from(*precision) - i16::from(*scale) && part <= i16::from(*scale)
        }),
        _ => false,
    }
}

/// Digits before and after the point that hold every value of an exact number type.
fn digits(data_type: &ArrowType) -> Option<(i16, i16)> {
    use ArrowType as T;
    match data_type {
        T::Int8 | T::UInt8 => Some((3, 0)),
        T::Int16 | T::UInt16 => Some((5, 0)),
        T::Int32 | T::UInt32 => Some((10, 0)),
        T::Int64 => Some((19, 0)),
        T::Decimal128(precision, scale) => {
            Some((i16::from(*precision) - i16::from(*scale), i16::from(*scale)))
        }
        _ => None,
    }
}

/// Finds the columns that a schema lacks; a column that is there must take the new one's values.
///
/// # Errors
/// `SchemaChanged` naming the column and both types.
pub(crate) fn missing<'a>(
    table: &str,
    present: &arrow_schema::Schema,
    wanted: &'a [Column],
) -> Result<Vec<&'a Column>> {
    let mut missing = Vec::new();
    for column in wanted {
        let folded = column.name.to_lowercase();
        let found = present.fields().iter().find(|field| field.name().to_lowercase() == folded);
        let Some(field) = found else {
            missing.push(column);
            continue;
        };
        let arrow = column.sql_type.arrow()?;
        if !fits(&arrow, field.data_type()) {
            return Err(Error::new(
                ErrorKind::SchemaChanged,
                "the target's column cannot take the source's type",
            )
            .with("table", table)
            .with("column", &column.name)
            .with("target_type", spelled(field.data_type()))
            .with("source_type", &column.sql_type)
            .remedy(
                "widen the target's column by rewriting the table, or load the source's table \
                 into a new target",
            ));
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use cdc_core::SqlType;

    use super::*;

    #[test]
    fn the_tables_have_the_columns_that_their_readers_know() {
        assert_eq!(FACTS.len(), 29);
        let mut names: Vec<_> = FACTS.iter().map(|own| own.0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 29);
        let reserved: Vec<_> = BRONZE_HEAD.iter().chain(&BRONZE_TAIL).map(|own| own.0).collect();
        assert_eq!(reserved, cdc_core::table::RESERVED_COLUMNS);
    }

    #[test]
    fn the_reference_lists_every_library_column_in_order_with_its_type() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/tables.md");
        let reference = std::fs::read_to_string(path).expect("the reference is in the repository");
        let rows = reference.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split("` | `");
            Some((cells.next()?.to_owned(), cells.next()?.split('`').next()?.to_owned()))
        });
        let own = BRONZE_HEAD.iter().chain(&BRONZE_TAIL).chain(&FACTS).chain(&CONTROL);
        let expected = own.map(|(name, data_type, _)| ((*name).to_owned(), data_type.to_string()));
        assert_eq!(rows.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn the_arrow_rule_agrees_with_the_rule_of_the_sql_types() {
        let types = [
            SqlType::Bit,
            SqlType::TinyInt,
            SqlType::SmallInt,
            SqlType::Int,
            SqlType::BigInt,
            SqlType::Real,
            SqlType::Float,
            SqlType::Money,
            SqlType::Decimal { precision: 38, scale: 38 },
            SqlType::Decimal { precision: 20, scale: 0 },
            SqlType::Decimal { precision: 12, scale: 2 },
            SqlType::Date,
            SqlType::DateTime,
            SqlType::DateTimeOffset { scale: 7 },
            SqlType::Text,
            SqlType::Image,
        ];
        for narrow in &types {
            for wide in &types {
                let arrow = fits(&narrow.arrow().expect("known"), &wide.arrow().expect("known"));
                if narrow.fits(wide) {
                    assert!(arrow, "{narrow} -> {wide}");
                }
            }
        }
    }
}
