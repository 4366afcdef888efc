//! The proof: bronze's latest image per key, read back on its own, against the server's rows.

use std::fmt;

use cdc_core::{Error, ErrorKind, Result, TableConfig, TableSpec, port::Catalog, schema};
use cdc_delta::DeltaSink;
use cdc_fake::{FakeSource, Value};
use serde::Serialize;

use crate::{
    bronze::{Bronze, Cell, Image},
    exit::Exit,
    report::Failure,
    sample::{Sample, SampleTable, TABLES},
};

/// What was compared.
#[derive(Debug)]
pub(super) struct Proof {
    pub(super) tables: Vec<TableProof>,
}

/// What was compared of one table.
#[derive(Debug, Serialize)]
pub(super) struct TableProof {
    pub(super) table: String,
    /// Change rows in bronze.
    pub(super) bronze_rows: u64,
    /// Rows of the latest image.
    pub(super) image_rows: usize,
    /// Rows at the server.
    pub(super) source_rows: usize,
    /// Keys that the server has and the image has not.
    pub(super) missing: usize,
    /// Keys that the image has and the server has not.
    pub(super) invented: usize,
    /// Keys whose rows differ.
    pub(super) different: usize,
}

impl TableProof {
    const fn is_equal(&self) -> bool {
        self.missing + self.invented + self.different == 0
    }
}

impl fmt::Display for TableProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, source_rows, missing, invented, different, .. } = self;
        if self.is_equal() {
            return write!(f, "{table}: latest image equals the source, {source_rows} rows");
        }
        write!(
            f,
            "{table}: latest image differs from the source: {missing} missing, {invented} \
             invented, {different} different of {source_rows}"
        )
    }
}

impl Proof {
    pub(super) fn is_equal(&self) -> bool {
        self.tables.iter().all(TableProof::is_equal)
    }

    /// What is wrong, when something is.
    pub(super) fn failure(&self) -> Option<Failure> {
        let wrong: Vec<String> =
            self.tables.iter().filter(|table| !table.is_equal()).map(ToString::to_string).collect();
        (!wrong.is_empty()).then(|| Failure {
            exit: Exit::Failed,
            kind: ErrorKind::Bug.name(),
            message: wrong.join("; "),
            advice: ErrorKind::Bug.advice().into(),
            problems: Vec::new(),
        })
    }
}

/// The spec under which a table is kept.
pub(super) async fn spec(source: FakeSource, table: &TableConfig) -> Result<TableSpec> {
    let instances = source.instances(&table.source).await?;
    let oldest = instances.first().ok_or_else(|| Error::bug("table has no capture instance"))?;
    let columns = schema::union(&instances)?;
    TableSpec::new(&table.target, oldest.table.clone(), columns, oldest.key.clone())
}

/// Compares every table.
pub(super) fn prove(sample: &Sample, sink: &DeltaSink) -> Result<Proof> {
    let mut tables = Vec::new();
    for table in TABLES {
        let source = image(table, &sample.rows(&table.table_name())?)?;
        let bronze = Bronze::new(sink.bronze_location(table.name));
        let columns: Vec<&str> = table.columns.iter().map(|(name, ..)| *name).collect();
        let copy = bronze.latest(table.key, &columns)?;
        tables.push(compare(table.name, bronze.count()?, &source, &copy));
    }
    Ok(Proof { tables })
}

fn compare(table: &str, bronze_rows: u64, source: &Image, copy: &Image) -> TableProof {
    let count = |a: &Image, b: &Image| a.keys().filter(|key| !b.contains_key(*key)).count();
    let differs =
        |(key, row): &(&Vec<Cell>, &Vec<Cell>)| copy.get(*key).is_some_and(|copied| copied != *row);
    TableProof {
        table: table.to_owned(),
        bronze_rows,
        image_rows: copy.len(),
        source_rows: source.len(),
        missing: count(source, copy),
        invented: count(copy, source),
        different: source.iter().filter(differs).count(),
    }
}

/// The server's rows by key.
fn image(table: &SampleTable, rows: &[Vec<Value>]) -> Result<Image> {
    let mut image = Image::new();
    for row in rows {
        let cells = row.iter().map(cell).collect::<Result<Vec<Cell>>>()?;
        let key = table.key.iter().filter_map(|name| {
            let place = table.columns.iter().position(|(column, ..)| column == name)?;
            cells.get(place).cloned()
        });
        image.insert(key.collect(), cells);
    }
    Ok(image)
}

/// A value of the demonstration's types as [`Cell`] writes it.
fn cell(value: &Value) -> Result<Cell> {
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(text) => text.to_string(),
        Value::DateTimeOffset { .. } => match value.micros() {
            Some(micros) => micros.to_string(),
            None => return Err(Error::bug("a moment has no microseconds")),
        },
        _ => return Err(Error::bug("the demonstration has no such type")),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image_of(rows: &[(&str, Option<&str>)]) -> Image {
        let own = |text: &str| Some(text.to_owned());
        rows.iter()
            .map(|(key, cell)| (vec![own(key)], vec![own(key), cell.map(str::to_owned)]))
            .collect()
    }

    #[test]
    fn a_lost_an_invented_and_a_changed_row_are_each_found() {
        let source = image_of(&[("1", Some("a")), ("2", None), ("3", Some("c"))]);
        let copy = image_of(&[("2", Some("")), ("3", Some("c")), ("4", None)]);
        let proof = compare("t", 9, &source, &copy);
        assert_eq!((proof.missing, proof.invented, proof.different), (1, 1, 1));
        let proof = Proof { tables: vec![proof] };
        assert!(!proof.is_equal());
        let failure = proof.failure().expect("differs");
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.message.starts_with("t: latest image differs"), "{}", failure.message);
        assert!(Proof { tables: vec![compare("t", 9, &source, &source)] }.is_equal());
    }
}
