//! Rows from CSV: in the binary, or in a directory as `.csv`, `.csv.zst` or `.csv.zip`.

use std::{
    fs::File,
    io::{Cursor, Read},
    path::Path,
};

use cdc_core::{Error, ErrorKind, Result, SqlType};
use cdc_fake::Value;
use chrono::DateTime;

use super::table::SampleTable;
use crate::config::Data;

/// Most bytes of one file when unpacked: the whole year has 31 MB.
const BYTES_MAX: u64 = 1 << 30;
/// What the files write for NULL.
const NULL: &str = "NA";

macro_rules! builtin {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/nycflights13/",
            $name,
            ".csv.zst"
        ))
    };
}

/// The rows of a table, in the file's order.
///
/// # Errors
/// `Config` naming the file when it is missing, cannot be read or lacks a column; `InvalidData`
/// naming file, line and column for a cell that its type does not allow.
pub(super) fn rows(data: &Data, table: &SampleTable) -> Result<Vec<Vec<Value>>> {
    let (origin, bytes) = match data {
        Data::Builtin => {
            let packed: &[u8] = match table.name {
                "flights" => builtin!("flights"),
                "planes" => builtin!("planes"),
                "airports" => builtin!("airports"),
                _ => builtin!("airlines"),
            };
            ("builtin".to_owned(), unzstd(packed)?)
        }
        Data::Directory(directory) => from_directory(directory, table.name)?,
    };
    parse(&bytes, table).map_err(|error| error.with("file", origin))
}

fn unzstd(packed: impl Read) -> Result<Vec<u8>> {
    let reader = zstd::stream::read::Decoder::new(packed).map_err(unreadable)?;
    limited(reader)
}

fn limited(reader: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Error::new(ErrorKind::Config, "file is too large").with("bytes_max", BYTES_MAX));
    }
    Ok(bytes)
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Config, "file cannot be read").caused_by(error)
}

fn from_directory(directory: &Path, name: &str) -> Result<(String, Vec<u8>)> {
    for ending in ["csv", "csv.zst", "csv.zip"] {
        let path = directory.join(format!("{name}.{ending}"));
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(unreadable(error).with("file", path.display())),
        };
        let bytes = match ending {
            "csv" => limited(file),
            "csv.zst" => unzstd(file),
            _ => unzip(file, name),
        };
        let bytes = bytes.map_err(|error| error.with("file", path.display()))?;
        return Ok((path.display().to_string(), bytes));
    }
    Err(Error::new(ErrorKind::Config, "rows of a table are missing")
        .with("table", name)
        .with("directory", directory.display())
        .remedy(format!("put {name}.csv, {name}.csv.zst or {name}.csv.zip there")))
}

fn unzip(file: File, name: &str) -> Result<Vec<u8>> {
    let mut archive = zip::ZipArchive::new(file).map_err(unreadable)?;
    limited(archive.by_name(&format!("{name}.csv")).map_err(unreadable)?)
}

/// The rows in the bytes of a file.
pub(crate) fn parse(bytes: &[u8], table: &SampleTable) -> Result<Vec<Vec<Value>>> {
    let mut reader = csv::Reader::from_reader(Cursor::new(bytes));
    let head = reader.headers().map_err(|error| broken(&error))?.clone();
    let mut places = Vec::with_capacity(table.columns.len());
    for (name, ..) in table.columns {
        let place = head.iter().position(|found| found == *name).ok_or_else(|| {
            Error::new(ErrorKind::Config, "file lacks a column").with("column", name)
        })?;
        places.push(place);
    }
    let mut rows = Vec::new();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| broken(&error))? {
        let line = record.position().map_or(0, csv::Position::line);
        let mut row = Vec::with_capacity(places.len());
        for (place, (name, sql_type, nullable)) in places.iter().zip(table.columns) {
            let cell = record.get(*place).unwrap_or_default();
            let value = match cell {
                NULL | "" if *nullable => Some(Value::Null),
                _ => value(cell, sql_type),
            };
            row.push(value.ok_or_else(|| {
                Error::new(ErrorKind::InvalidData, "cell is not of its column's type")
                    .with("line", line)
                    .with("column", name)
                    .with("type", sql_type)
            })?);
        }
        rows.push(row);
    }
    Ok(rows)
}

/// What is broken in a file, without its content.
fn broken(error: &csv::Error) -> Error {
    let line = error.position().map_or(0, csv::Position::line);
    Error::new(ErrorKind::InvalidData, "file is no CSV with one header").with("line", line)
}

fn value(cell: &str, sql_type: &SqlType) -> Option<Value> {
    match sql_type {
        SqlType::TinyInt | SqlType::SmallInt | SqlType::Int => cell.parse().ok().map(Value::Int),
        SqlType::Float => cell.parse().ok().map(Value::Float),
        SqlType::DateTimeOffset { .. } => {
            let moment = DateTime::parse_from_rfc3339(cell).ok()?;
            let utc = moment.timestamp_micros().checked_mul(10)?;
            let offset_minutes = i16::try_from(moment.offset().local_minus_utc() / 60).ok()?;
            Some(Value::DateTimeOffset { utc, offset_minutes })
        }
        _ => Some(Value::text(cell)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::table::{FLIGHTS, TABLES};

    #[test]
    fn the_rows_in_the_binary_are_all_there() {
        let counts = TABLES.map(|table| {
            (table.name, rows(&Data::Builtin, table).expect("is in the binary").len())
        });
        assert_eq!(
            counts,
            [("airlines", 16), ("airports", 1_458), ("planes", 3_322), ("flights", 15_509)]
        );
    }

    #[test]
    fn what_is_wrong_is_named_without_the_cell() {
        let lacking = parse(b"carrier\nAA\n", TABLES[0]).expect_err("no name");
        assert_eq!(lacking.context("column"), Some("name"));
        let head: Vec<_> = FLIGHTS.columns.iter().map(|(name, ..)| *name).collect();
        let text = format!("{}\nplanted{}\n", head.join(","), ",1".repeat(18));
        let wrong = parse(text.as_bytes(), &FLIGHTS).expect_err("no number");
        assert_eq!(wrong.context("column"), Some("year"));
        assert_eq!(wrong.context("line"), Some("2"));
        assert!(!wrong.report().contains("planted"));
    }

    #[test]
    fn a_directory_is_read_packed_or_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let csv = "carrier,name\nAA,American\n";
        let missing = from_directory(directory.path(), "airlines").expect_err("empty");
        assert!(missing.advice().contains("airlines.csv.zst"));
        let packed = zstd::encode_all(csv.as_bytes(), 1).expect("packs");
        std::fs::write(directory.path().join("airlines.csv.zst"), packed).expect("writes");
        let data = Data::Directory(directory.path().to_owned());
        assert_eq!(rows(&data, TABLES[0]).expect("zst").len(), 1);
        std::fs::write(directory.path().join("airlines.csv"), csv).expect("writes");
        assert_eq!(rows(&data, TABLES[0]).expect("plain").len(), 1);
    }
}
