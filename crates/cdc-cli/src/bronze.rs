//! Reads bronze tables back without the library that wrote them: the Delta log's own JSON names
//! the files, and a Parquet reader reads them. For the demonstration and for tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::{Path, PathBuf},
};

use arrow_array::{
    Array, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, cast::AsArray,
    types::Date32Type,
};
use arrow_schema::{DataType, TimeUnit};
use cdc_core::{Error, ErrorKind, Images, Result, change::Operation};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// A cell as text, or NULL. Numbers are decimal, moments microseconds since 1970-01-01.
pub type Cell = Option<String>;

/// The rows of a table by key.
pub type Image = BTreeMap<Vec<Cell>, Vec<Cell>>;

/// The place of a change row: commit, command, sequence, operation.
type Order = (Cell, Option<i32>, Cell, i32);

/// A bronze table in a local directory.
#[derive(Clone, Debug)]
pub struct Bronze {
    directory: PathBuf,
}

fn damaged(path: &Path, message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, message).with("path", path.display())
}

impl Bronze {
    /// The table in a directory.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The data files of the table's newest version, by the JSON files of its log.
    ///
    /// # Errors
    /// `InvalidData` for a log that does not begin with version 0, has a gap or is no JSON.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let log = self.directory.join("_delta_log");
        let mut files = BTreeSet::new();
        for version in 0_u64.. {
            let path = log.join(format!("{version:020}.json"));
            let text = match fs::read_to_string(&path) {
                Ok(text) => text,
                Err(_) if version > 0 => break,
                Err(error) => {
                    return Err(damaged(&path, "delta log has no version 0").caused_by(error));
                }
            };
            for line in text.lines() {
                let action: serde_json::Value = serde_json::from_str(line)
                    .map_err(|_| damaged(&path, "delta log holds a line that is no JSON"))?;
                if let Some(name) = action.pointer("/remove/path").and_then(|path| path.as_str()) {
                    files.remove(name);
                }
                if let Some(name) = action.pointer("/add/path").and_then(|path| path.as_str()) {
                    files.insert(name.to_owned());
                }
            }
        }
        Ok(files.into_iter().map(|name| self.directory.join(name)).collect())
    }

    /// Every record batch of the table, file by file.
    ///
    /// # Errors
    /// `InvalidData` for a log or a file that cannot be read; whatever `each` returns.
    pub fn for_each(&self, mut each: impl FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
        for path in self.files()? {
            let failed = |error: parquet::errors::ParquetError| {
                damaged(&path, "data file cannot be read").caused_by(error)
            };
            let file = File::open(&path)
                .map_err(|error| damaged(&path, "data file is missing").caused_by(error))?;
            let reader =
                ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
            for batch in reader.map_err(failed)? {
                let batch = batch
                    .map_err(|error| damaged(&path, "data file is broken").caused_by(error))?;
                each(&batch)?;
            }
        }
        Ok(())
    }

    /// Change rows in the table.
    ///
    /// # Errors
    /// As for [`Bronze::for_each`].
    pub fn count(&self) -> Result<u64> {
        let mut rows = 0;
        self.for_each(|batch| {
            rows += batch.num_rows() as u64;
            Ok(())
        })?;
        Ok(rows)
    }

    /// The latest image of every key: by change order, the last row of a key, unless that is a
    /// delete or a before image.
    ///
    /// # Errors
    /// `InvalidData` for a table without the columns, and as for [`Bronze::for_each`].
    pub fn latest(&self, key: &[&str], columns: &[&str]) -> Result<Image> {
        let mut images = Images::default();
        self.for_each(|batch| {
            let orders = orders(batch)?;
            let keys = cells(batch, key)?;
            let rows = cells(batch, columns)?;
            for ((order, key), row) in orders.into_iter().zip(keys).zip(rows) {
                let operation = Operation::from_code(order.3)?;
                images.offer(key, order, operation, || row);
            }
            Ok(())
        })?;
        Ok(images.into_present().collect())
    }
}

fn orders(batch: &RecordBatch) -> Result<Vec<Order>> {
    let commits = column(batch, "_start_lsn")?;
    let sequences = column(batch, "_seqval")?;
    let number = |name: &str| -> Result<Vec<Option<i32>>> {
        let parsed = column(batch, name)?.into_iter();
        parsed
            .map(|cell| cell.map(|text| text.parse().map_err(|_| no_column(name))).transpose())
            .collect()
    };
    let (commands, operations) = (number("_command_id")?, number("_operation")?);
    let places = commits.into_iter().zip(sequences).zip(commands).zip(operations);
    places
        .map(|(((commit, sequence), command), operation)| {
            let operation = operation.ok_or_else(|| no_column("_operation"))?;
            Ok((commit, command, sequence, operation))
        })
        .collect()
}

/// Rows of the named columns.
fn cells(batch: &RecordBatch, names: &[&str]) -> Result<Vec<Vec<Cell>>> {
    let mut rows = vec![Vec::with_capacity(names.len()); batch.num_rows()];
    for name in names {
        for (row, cell) in rows.iter_mut().zip(column(batch, name)?) {
            row.push(cell);
        }
    }
    Ok(rows)
}

fn no_column(name: &str) -> Error {
    Error::new(ErrorKind::InvalidData, "bronze lacks a column or holds another type in it")
        .with("column", name)
}

fn column(batch: &RecordBatch, name: &str) -> Result<Vec<Cell>> {
    let array = batch.column_by_name(name).ok_or_else(|| no_column(name))?;
    texts(array.as_ref()).ok_or_else(|| no_column(name))
}

/// The cells of an array as text.
fn texts(array: &dyn Array) -> Option<Vec<Cell>> {
    macro_rules! shown {
        ($type:ty) => {
            array
                .as_any()
                .downcast_ref::<$type>()?
                .iter()
                .map(|v| v.map(|v| v.to_string()))
                .collect()
        };
    }
    Some(match array.data_type() {
        DataType::Boolean => shown!(BooleanArray),
        DataType::Int16 => shown!(Int16Array),
        DataType::Int32 => shown!(Int32Array),
        DataType::Int64 => shown!(Int64Array),
        DataType::Float32 => shown!(Float32Array),
        DataType::Float64 => shown!(Float64Array),
        DataType::Utf8 => shown!(StringArray),
        DataType::Decimal128(..) => shown!(Decimal128Array),
        DataType::Timestamp(TimeUnit::Microsecond, _) => shown!(TimestampMicrosecondArray),
        DataType::Date32 => array
            .as_primitive_opt::<Date32Type>()?
            .iter()
            .map(|v| v.map(|v| v.to_string()))
            .collect(),
        DataType::Binary => array
            .as_binary_opt::<i32>()?
            .iter()
            .map(|v| v.map(|bytes| bytes.iter().map(|byte| format!("{byte:02X}")).collect()))
            .collect(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{Field, Schema};
    use parquet::arrow::ArrowWriter;

    use super::*;

    type Row<'a> = (&'a str, i32, &'a str, i32, i32, Option<&'a str>);

    fn batch(rows: &[Row<'_>]) -> RecordBatch {
        let schema = Schema::new(vec![
            Field::new("_start_lsn", DataType::Utf8, true),
            Field::new("_command_id", DataType::Int32, true),
            Field::new("_seqval", DataType::Utf8, true),
            Field::new("_operation", DataType::Int32, true),
            Field::new("id", DataType::Int32, true),
            Field::new("name", DataType::Utf8, true),
        ]);
        RecordBatch::try_new(
            Arc::new(schema),
            vec![
                Arc::new(rows.iter().map(|r| Some(r.0)).collect::<StringArray>()),
                Arc::new(rows.iter().map(|r| Some(r.1)).collect::<Int32Array>()),
                Arc::new(rows.iter().map(|r| Some(r.2)).collect::<StringArray>()),
                Arc::new(rows.iter().map(|r| Some(r.3)).collect::<Int32Array>()),
                Arc::new(rows.iter().map(|r| Some(r.4)).collect::<Int32Array>()),
                Arc::new(rows.iter().map(|r| r.5).collect::<StringArray>()),
            ],
        )
        .expect("fits")
    }

    fn write(directory: &Path, file: &str, rows: &[Row<'_>]) {
        let batch = batch(rows);
        let out = File::create(directory.join(file)).expect("creates");
        let mut writer = ArrowWriter::try_new(out, batch.schema(), None).expect("starts");
        writer.write(&batch).expect("writes");
        writer.close().expect("closes");
    }

    #[test]
    fn the_last_row_of_a_key_in_change_order_is_its_image() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        write(
            path,
            "later.parquet",
            &[
                ("0x02", 2, "0x09", 1, 1, Some("b")),
                // The log held the insert before the delete of a key update; commands say otherwise.
                ("0x02", 4, "0x08", 2, 1, Some("c")),
                ("0x02", 5, "0x0A", 1, 2, Some("x")),
                ("0x03", 1, "0x0B", 3, 3, Some("old")),
                ("0x03", 1, "0x0B", 4, 3, None),
            ],
        );
        write(
            path,
            "first.parquet",
            &[
                ("0x01", 1, "0x01", 2, 1, Some("a")),
                ("0x01", 1, "0x02", 2, 2, Some("x")),
                ("0x01", 1, "0x03", 2, 3, Some("old")),
            ],
        );
        write(path, "gone.parquet", &[("0x01", 1, "0x04", 2, 4, Some("removed file"))]);
        let log = path.join("_delta_log");
        fs::create_dir(&log).expect("creates");
        let add = |file: &str| format!("{{\"add\":{{\"path\":\"{file}\"}}}}\n");
        let first = add("gone.parquet") + &add("later.parquet");
        fs::write(log.join(format!("{:020}.json", 0)), first).expect("writes");
        let second = add("first.parquet") + "{\"remove\":{\"path\":\"gone.parquet\"}}\n";
        fs::write(log.join(format!("{:020}.json", 1)), second).expect("writes");

        let bronze = Bronze::new(path);
        assert_eq!(bronze.count().expect("reads"), 8);
        let latest = bronze.latest(&["id"], &["id", "name"]).expect("reads");
        let cell = |text: &str| Some(text.to_owned());
        let expected: Image = [
            (vec![cell("1")], vec![cell("1"), cell("c")]),
            (vec![cell("3")], vec![cell("3"), None]),
        ]
        .into();
        assert_eq!(latest, expected);
        assert!(bronze.latest(&["id"], &["other"]).is_err());
    }

    #[test]
    fn a_table_that_is_not_there_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = Bronze::new(directory.path()).files().expect_err("empty");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}
