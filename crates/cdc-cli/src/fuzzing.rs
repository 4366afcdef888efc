//! The parsers of foreign text, for the fuzz targets alone: no API.

use std::{path::Path, time::Duration};

use cdc_core::{Result, Settings, TableConfig, TableName};

use crate::{
    config::{Config, quantity, table_ref},
    sample::{TABLES, csv_file},
};

/// What a configuration says.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Where the targets are.
    pub root: String,
    /// Limits and pace.
    pub settings: Settings,
    /// The tables.
    pub tables: Vec<TableConfig>,
    /// The whole as logs would show it.
    pub debug: String,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Where.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// Reads a configuration file's text.
///
/// # Errors
/// Every problem.
pub fn configuration(
    text: &str,
    base: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Configuration, Vec<Problem>> {
    match Config::parse(text, base, environment) {
        Ok(config) => Ok(Configuration {
            debug: format!("{config:?}"),
            root: config.targets.iter().map(|target| target.place()).collect::<Vec<_>>().join(", "),
            settings: config.settings,
            tables: config.tables,
        }),
        Err(list) => Err(list
            .into_iter()
            .map(|problem| Problem { text: problem.to_string(), path: problem.path })
            .collect()),
    }
}

/// Reads a table's name.
///
/// # Errors
/// What is wrong, in words.
pub fn table_name(text: &str) -> Result<TableName, String> {
    table_ref::table_name(text)
}

/// Reads a duration.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    quantity::duration(text)
}

/// Reads a size in bytes.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    quantity::size(text)
}

/// The names of the tables that rows are read for, and of their columns.
#[must_use]
pub fn sample_tables() -> Vec<(&'static str, Vec<&'static str>)> {
    let columns = |table: &crate::sample::SampleTable| {
        table.columns.iter().map(|(name, ..)| *name).collect::<Vec<_>>()
    };
    TABLES.iter().map(|table| (table.name, columns(table))).collect()
}

/// Reads the rows of a table's file: their counts of cells. None for a table that is none.
///
/// # Errors
/// As for a run.
pub fn sample_rows(table: usize, bytes: &[u8]) -> Option<Result<Vec<usize>>> {
    let rows = csv_file::parse(bytes, TABLES.get(table)?);
    Some(rows.map(|rows| rows.iter().map(Vec::len).collect()))
}
