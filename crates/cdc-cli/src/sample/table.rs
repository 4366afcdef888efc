//! The four tables, with SQL Server's types.

use cdc_core::{Length, SqlType, TableName};
use cdc_fake::{ColumnDefinition, TableDefinition};

/// A column: its name, its type, and whether it may be NULL.
type SampleColumn = (&'static str, SqlType, bool);

/// One of the tables.
#[derive(Debug)]
pub(crate) struct SampleTable {
    /// The name, also of the file that holds its rows.
    pub(crate) name: &'static str,
    /// The primary key.
    pub(crate) key: &'static [&'static str],
    /// The columns, in order, named as in the file.
    pub(crate) columns: &'static [SampleColumn],
}

const fn text(length: u16) -> SqlType {
    SqlType::VarChar(Length::Limited(length))
}

/// Flights that departed New York. A flight number departs at most once a day from an airport.
pub(crate) static FLIGHTS: SampleTable = SampleTable {
    name: "flights",
    key: &["year", "month", "day", "carrier", "flight", "origin"],
    columns: &[
        ("year", SqlType::SmallInt, false),
        ("month", SqlType::TinyInt, false),
        ("day", SqlType::TinyInt, false),
        ("dep_time", SqlType::SmallInt, true),
        ("sched_dep_time", SqlType::SmallInt, false),
        ("dep_delay", SqlType::SmallInt, true),
        ("arr_time", SqlType::SmallInt, true),
        ("sched_arr_time", SqlType::SmallInt, false),
        ("arr_delay", SqlType::SmallInt, true),
        ("carrier", SqlType::Char(2), false),
        ("flight", SqlType::SmallInt, false),
        ("tailnum", text(6), true),
        ("origin", SqlType::Char(3), false),
        ("dest", SqlType::Char(3), false),
        ("air_time", SqlType::SmallInt, true),
        ("distance", SqlType::Int, false),
        ("hour", SqlType::TinyInt, false),
        ("minute", SqlType::TinyInt, false),
        ("time_hour", SqlType::DateTimeOffset { scale: 0 }, false),
    ],
};

/// The tables, those that others refer to first.
pub(crate) static TABLES: [&SampleTable; 4] = [
    &SampleTable {
        name: "airlines",
        key: &["carrier"],
        columns: &[
            ("carrier", SqlType::Char(2), false),
            ("name", SqlType::NVarChar(Length::Limited(64)), false),
        ],
    },
    &SampleTable {
        name: "airports",
        key: &["faa"],
        columns: &[
            ("faa", SqlType::Char(3), false),
            ("name", SqlType::NVarChar(Length::Limited(64)), false),
            ("lat", SqlType::Float, false),
            ("lon", SqlType::Float, false),
            ("alt", SqlType::Int, false),
            ("tz", SqlType::SmallInt, false),
            ("dst", SqlType::Char(1), false),
            ("tzone", text(64), true),
        ],
    },
    &SampleTable {
        name: "planes",
        key: &["tailnum"],
        columns: &[
            ("tailnum", text(6), false),
            ("year", SqlType::SmallInt, true),
            ("type", text(32), false),
            ("manufacturer", text(64), false),
            ("model", text(32), false),
            ("engines", SqlType::TinyInt, false),
            ("seats", SqlType::SmallInt, false),
            ("speed", SqlType::SmallInt, true),
            ("engine", text(16), false),
        ],
    },
    &FLIGHTS,
];

impl SampleTable {
    /// The table's name at the server.
    pub(crate) fn table_name(&self) -> TableName {
        TableName::new("dbo", self.name)
    }

    /// What creates the table.
    pub(super) fn definition(&self) -> TableDefinition {
        let mut definition = TableDefinition::new(self.name);
        for (name, sql_type, nullable) in self.columns {
            definition = definition.with(match nullable {
                true => ColumnDefinition::nullable(name, sql_type.clone()),
                false => ColumnDefinition::new(name, sql_type.clone()),
            });
        }
        definition.primary_key(self.key)
    }

    /// The place of a column.
    pub(super) fn at(&self, column: &str) -> usize {
        self.columns.iter().position(|(name, ..)| *name == column).unwrap_or(usize::MAX)
    }
}
