//! The texts of all statements, one documented function each. Names get in through
//! [`crate::name`], values as parameters; nothing else here depends on what a caller gives.
//!
//! Every text runs as `sp_executesql`, so that no `SET` outlives it and equal texts share a plan.

pub(crate) mod catalog;
pub(crate) mod changes;
pub(crate) mod column;
pub(crate) mod diagnosis;
pub(crate) mod key_range;
pub(crate) mod position;
pub(crate) mod right;
pub(crate) mod row;

use cdc_core::{Length, Lsn, ServerTime, SqlType};

use crate::driver::{Form, Matching, Parameter, ResultColumn, Statement};

/// Most parameters of a statement. SQL Server allows 2100, its own two of `sp_executesql` included.
pub(crate) const PARAMETERS_MAX: usize = 2_000;

/// Rows of a record batch of answers that are read whole.
const ANSWER_ROWS: usize = 4_096;

/// The parameters of a statement in the making. Equal values share one.
#[derive(Debug, Default)]
pub(crate) struct Parameters(Vec<Parameter>);

impl Parameters {
    /// The marker of a value.
    pub(crate) fn add(&mut self, value: Parameter) -> String {
        let at = self.0.iter().position(|own| *own == value).unwrap_or_else(|| {
            self.0.push(value);
            self.0.len() - 1
        });
        format!("@P{}", at + 1)
    }

    pub(crate) fn text(&mut self, text: &str) -> String {
        self.add(Parameter::Text(text.to_owned()))
    }

    /// A position, which goes as hexadecimal text: then it has the type of the columns it is
    /// compared with, and their index is used.
    pub(crate) fn lsn(&mut self, lsn: Lsn) -> String {
        format!("CONVERT(binary(10), {}, 1)", self.text(&lsn.to_string()))
    }

    /// A reading of the server's clock, as text that no language of the server reads differently.
    pub(crate) fn reading(&mut self, reading: ServerTime) -> String {
        format!("CONVERT(datetime, {}, 126)", self.text(&reading_text(reading)))
    }

    /// How many there are.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
}

/// A reading with three digits behind the second. They stand for one tick of 1/300 s.
pub(crate) fn reading_text(reading: ServerTime) -> String {
    // Half a millisecond more than the tick's own begin, so that the digits are the nearest ones.
    let shown = reading.wall().unwrap_or_default() + chrono::TimeDelta::microseconds(500);
    shown.format("%Y-%m-%dT%H:%M:%S%.3f").to_string()
}

/// A statement whose answer is read whole.
fn question(
    text: String,
    parameters: Parameters,
    columns: Vec<ResultColumn>,
    matching: Matching,
) -> Statement {
    Statement { text, parameters: parameters.0, columns, matching, batch_rows: ANSWER_ROWS }
}

fn lsn_column(name: &str) -> ResultColumn {
    ResultColumn::new(name, Form::Lsn)
}

fn reading_column(name: &str) -> ResultColumn {
    ResultColumn::new(name, Form::Sql(SqlType::DateTime))
}

fn number_column(name: &str) -> ResultColumn {
    ResultColumn::new(name, Form::Sql(SqlType::BigInt))
}

fn bit_column(name: &str) -> ResultColumn {
    ResultColumn::new(name, Form::Sql(SqlType::Bit))
}

fn text_column(name: &str) -> ResultColumn {
    ResultColumn::new(name, Form::Sql(SqlType::NVarChar(Length::Max)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_values_share_a_parameter() {
        let mut parameters = Parameters::default();
        assert_eq!(parameters.text("a"), "@P1");
        assert_eq!(parameters.text("b"), "@P2");
        assert_eq!(parameters.text("a"), "@P1");
        assert_eq!(parameters.len(), 2);
    }

    proptest! {
        #[test]
        fn a_readings_text_stands_for_its_tick(ticks in -20_000_000_000_i64..800_000_000_000) {
            let reading = ServerTime::from_ticks(ticks);
            let text = reading_text(reading);
            let shown: chrono::NaiveDateTime = text.parse().expect("a date and a time");
            prop_assert_eq!(ServerTime::nearest(shown), reading);
        }
    }
}
