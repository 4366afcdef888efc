//! Writes Delta tables through the whole path, and beside them the rows that a reader must find:
//! taken from a target in memory, which shares nothing with the Delta sink.
//!
//! Usage: `reader_fixture DIR`. The form of the directory is described in `xtask/readers`.

use std::{collections::BTreeMap, error::Error, fs, io::Write, path::Path, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, TimeUnit};
use cdc_conformance::cell::Cell;
use cdc_core::port::Shutdown;
use cdc_delta::{DeltaConfig, DeltaSink};
use cdc_tests::{
    sample,
    world::{Counter, World, table},
};
use serde_json::{Map, Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).ok_or("usage: reader_fixture DIR")?;
    let dir = Path::new(&dir);
    // Small batches, so that tables have several files, a checkpoint, and commits behind it.
    let world = World::new().rows_max(40);
    sample::fill(&world.database, 120)?;
    world.clock.advance(std::time::Duration::from_secs(600));
    let configs: Vec<_> = sample::TABLES.iter().map(|name| table(name)).collect();
    let config = DeltaConfig {
        bronze_dir: "tables".to_owned(),
        checkpoint_interval: 4,
        ..DeltaConfig::new(dir.to_string_lossy())
    };
    let clock = Arc::new(world.clock.clone());
    let sink = DeltaSink::new(config, clock, Arc::new(Counter::default()))?;
    let engine = world.engine_on(Arc::new(world.source()), Arc::new(sink));
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let written = runtime.block_on(engine.run_once(configs.clone(), &Shutdown::never()));
    let expected = world.copy(&configs);
    if let Some(error) = written.errors().chain(expected.errors()).next() {
        return Err(error.report().into());
    }
    fs::create_dir_all(dir.join("expected"))?;
    for name in sample::TABLES {
        expect(&world, name, dir)?;
    }
    Ok(())
}

/// Writes what a reader must find in one table.
fn expect(world: &World, name: &str, dir: &Path) -> Result<(), Box<dyn Error>> {
    let mut rows = fs::File::create(dir.join("expected").join(format!("{name}.jsonl")))?;
    let mut seen = 0;
    let mut schema = schema(world, name)?;
    for (version, commit) in world.target.commits(name).iter().enumerate() {
        let batches = world.target.rows_at(name, version + 1)?;
        for batch in batches.iter().skip(seen) {
            write_rows(&mut rows, batch, commit.mark.sequence, &mut schema)?;
        }
        seen = batches.len();
    }
    let schema = serde_json::to_string(&schema)?;
    fs::write(dir.join("expected").join(format!("{name}.schema.json")), schema)?;
    Ok(())
}

/// Bronze's columns and their Delta types.
fn schema(world: &World, name: &str) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let own = [
        ("_capture_instance", "string"),
        ("_start_lsn", "string"),
        ("_seqval", "string"),
        ("_operation", "integer"),
        ("_command_id", "integer"),
        ("_commit_ts", "timestamp_ntz"),
        ("_batch_id", "integer"),
        ("_snapshot", "string"),
        ("_chunk", "integer"),
    ];
    let mut schema: BTreeMap<String, String> =
        own.into_iter().map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect();
    for column in world.target.columns(name) {
        schema.insert(column.name.clone(), delta_type(column.field()?.data_type())?);
    }
    Ok(schema)
}

fn delta_type(kind: &DataType) -> Result<String, Box<dyn Error>> {
    Ok(match kind {
        DataType::Boolean => "boolean".into(),
        DataType::Int16 => "short".into(),
        DataType::Int32 => "integer".into(),
        DataType::Int64 => "long".into(),
        DataType::Float32 => "float".into(),
        DataType::Float64 => "double".into(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Date32 => "date".into(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz".into(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp".into(),
        DataType::Utf8 => "string".into(),
        DataType::Binary => "binary".into(),
        other => return Err(format!("no Delta type for {other}").into()),
    })
}

fn write_rows(
    out: &mut fs::File,
    batch: &RecordBatch,
    sequence: u64,
    schema: &mut BTreeMap<String, String>,
) -> Result<(), Box<dyn Error>> {
    for row in 0..batch.num_rows() {
        let mut line = Map::new();
        for name in schema.keys() {
            let cell = match batch.column_by_name(name) {
                Some(array) => Cell::of(array.as_ref(), row)?,
                None if name == "_batch_id" => Cell::Int(i64::try_from(sequence)?),
                None => Cell::Null,
            };
            line.insert(name.clone(), text(&cell)?);
        }
        writeln!(out, "{}", Value::Object(line))?;
    }
    Ok(())
}

fn text(cell: &Cell) -> Result<Value, Box<dyn Error>> {
    let moment = |micros: i64| {
        let moment = chrono::DateTime::from_timestamp_micros(micros).ok_or("out of range")?;
        Ok::<_, Box<dyn Error>>(json!(moment.format("%Y-%m-%dT%H:%M:%S%.6f").to_string()))
    };
    Ok(match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => json!(value.to_string()),
        Cell::Int(value) => json!(value.to_string()),
        Cell::Real(bits) => json!(format!("{:e}", f32::from_bits(*bits))),
        Cell::Float(bits) => json!(format!("{:e}", f64::from_bits(*bits))),
        Cell::Decimal(digits, scale) => json!(decimal(*digits, usize::try_from(*scale)?)),
        Cell::Date(days) => {
            let moment = chrono::DateTime::from_timestamp(i64::from(*days) * 86_400, 0);
            json!(moment.ok_or("out of range")?.format("%Y-%m-%d").to_string())
        }
        Cell::Wall(micros) | Cell::Instant(micros) => moment(*micros)?,
        Cell::Text(text) => json!(text),
        Cell::Bytes(bytes) => {
            json!(bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>())
        }
    })
}

/// Digits with exactly `scale` of them behind the point.
fn decimal(digits: i128, scale: usize) -> String {
    let all = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, part) = all.split_at(all.len() - scale);
    let sign = if digits < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}
