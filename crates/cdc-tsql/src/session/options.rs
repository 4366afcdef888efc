//! The options of a session, and SET.

use std::time::Duration;

use cdc_fake::{Isolation, SqlError, SqlResult, Value};

use super::{failure::Run, frame::Frame, runner::Runner};
use crate::{
    relation::{DateFormat, ObjectName, Settings},
    syntax::SetOption,
};

/// What SET has set.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) expressions: Settings,
    pub(super) no_count: bool,
    pub(super) xact_abort: bool,
    pub(super) implicit_transactions: bool,
    pub(super) ansi_warnings: bool,
    pub(super) arith_abort: bool,
    pub(super) ansi_null_default: bool,
    pub(super) cursor_close_on_commit: bool,
    pub(super) fmt_only: bool,
    pub(super) no_exec: bool,
    pub(super) parse_only: bool,
    pub(super) text_size: i64,
    /// Rows after which statements stop; 0 for none.
    pub(super) row_count: u64,
    /// None waits for ever.
    pub(super) lock_timeout: Option<Duration>,
    pub(super) isolation: Isolation,
    pub(super) context_info: Vec<u8>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            expressions: Settings::default(),
            no_count: false,
            xact_abort: false,
            implicit_transactions: false,
            ansi_warnings: true,
            arith_abort: true,
            ansi_null_default: true,
            cursor_close_on_commit: false,
            fmt_only: false,
            no_exec: false,
            parse_only: false,
            text_size: 2_147_483_647,
            row_count: 0,
            lock_timeout: None,
            isolation: Isolation::ReadCommitted,
            context_info: Vec::new(),
        }
    }
}

/// A bit of `@@OPTIONS`.
const fn bit(value: i64, on: bool) -> i64 {
    if on { value } else { 0 }
}

/// The isolation level of a number of the protocol.
pub(super) const fn isolation(level: u8) -> Isolation {
    match level {
        1 => Isolation::ReadUncommitted,
        3 => Isolation::RepeatableRead,
        4 => Isolation::Serializable,
        5 => Isolation::Snapshot,
        _ => Isolation::ReadCommitted,
    }
}

impl Options {
    /// `@@OPTIONS`.
    pub(super) const fn bits(&self) -> i64 {
        let mut bits = 16 | bit(4096, self.expressions.concat_null_yields_null);
        bits |= bit(2, self.implicit_transactions);
        bits |= bit(4, self.cursor_close_on_commit);
        bits |= bit(8, self.ansi_warnings);
        bits |= bit(32, self.expressions.ansi_nulls);
        bits |= bit(64, self.arith_abort);
        bits |= bit(256, self.expressions.quoted_identifier);
        bits |= bit(512, self.no_count);
        bits |= bit(1024, self.ansi_null_default);
        bits | bit(16_384, self.xact_abort)
    }

    /// `@@LOCK_TIMEOUT`, in milliseconds; -1 for none.
    pub(super) fn lock_timeout_ms(&self) -> i32 {
        self.lock_timeout.map_or(-1, |limit| i32::try_from(limit.as_millis()).unwrap_or(i32::MAX))
    }

    pub(super) fn set_lock_timeout(&mut self, millis: i64) {
        self.lock_timeout = u64::try_from(millis).ok().map(Duration::from_millis);
    }

    /// Both of the options that make an overflow an error.
    pub(super) const fn settle_arithmetic(&mut self) {
        self.expressions.arithmetic_errors = self.ansi_warnings || self.arith_abort;
    }

    /// What `SET LANGUAGE` brings with it.
    pub(super) fn set_language(&mut self, language: &str) -> SqlResult<()> {
        match language.to_lowercase().as_str() {
            "us_english" | "english" => {
                self.expressions.date_first = 7;
                self.expressions.date_format = DateFormat::MonthDayYear;
                Ok(())
            }
            _ => Err(crate::syntax::unsupported("SET LANGUAGE other than us_english")),
        }
    }
}

impl Runner<'_> {
    pub(super) fn set_option(&mut self, option: &SetOption, frame: &Frame) -> Run<()> {
        match option {
            SetOption::RowCount(rows) => {
                let rows = self.whole_number(rows, frame)?;
                self.core.options.row_count = u64::try_from(rows).unwrap_or(0);
            }
            SetOption::ContextInfo(info) => {
                let typed = self.value(info, frame)?;
                let bytes = match typed.value {
                    Value::Bytes(bytes) => bytes.to_vec(),
                    _ => Vec::new(),
                };
                self.core.options.context_info = bytes;
                self.core.options.context_info.truncate(128);
            }
            SetOption::Isolation(level) => {
                self.core.options.isolation = isolation(*level);
                self.core.transactions.set_isolation(isolation(*level));
            }
            SetOption::IdentityInsert(table, on) => self.set_identity_insert(table, *on, frame)?,
            SetOption::Language(language) => self.core.options.set_language(language)?,
            other => self.core.options.apply(other),
        }
        Ok(())
    }

    /// One table at a time takes values for its identity column.
    fn set_identity_insert(&mut self, table: &ObjectName, on: bool, frame: &Frame) -> Run<()> {
        let place = self.place(table, frame)?;
        if !place.columns.iter().any(|column| column.identity) {
            return Err(SqlError::new(
                8106,
                format!(
                    "Table '{}' does not have the identity property. Cannot perform SET operation.",
                    place.table.name
                ),
            )
            .into());
        }
        let this = (place.database.name().to_owned(), place.table.to_string().to_lowercase());
        match &self.core.identity_insert {
            Some(other) if on && *other != this => {
                return Err(SqlError::new(
                    8107,
                    format!(
                        "IDENTITY_INSERT is already ON for table '{}'. Cannot perform SET \
                         operation for table '{}'.",
                        other.1, place.table
                    ),
                )
                .into());
            }
            _ => {}
        }
        if on {
            self.core.identity_insert = Some(this);
        } else if self.core.identity_insert.as_ref() == Some(&this) {
            self.core.identity_insert = None;
        }
        Ok(())
    }
}

impl Options {
    /// Sets an option that needs nothing but itself.
    fn apply(&mut self, option: &SetOption) {
        match *option {
            SetOption::NoCount(on) => self.no_count = on,
            SetOption::XactAbort(on) => self.xact_abort = on,
            SetOption::ImplicitTransactions(on) => self.implicit_transactions = on,
            SetOption::AnsiNulls(on) => self.expressions.ansi_nulls = on,
            SetOption::AnsiWarnings(on) => {
                self.ansi_warnings = on;
                self.settle_arithmetic();
            }
            SetOption::AnsiNullDefault(on) => self.ansi_null_default = on,
            SetOption::AnsiDefaults(on) => {
                self.expressions.ansi_nulls = on;
                self.expressions.quoted_identifier = on;
                self.ansi_warnings = on;
                self.ansi_null_default = on;
                self.cursor_close_on_commit = on;
                self.implicit_transactions = on;
                self.settle_arithmetic();
            }
            SetOption::ArithAbort(on) => {
                self.arith_abort = on;
                self.settle_arithmetic();
            }
            SetOption::QuotedIdentifier(on) => self.expressions.quoted_identifier = on,
            SetOption::ConcatNullYieldsNull(on) => self.expressions.concat_null_yields_null = on,
            SetOption::CursorCloseOnCommit(on) => self.cursor_close_on_commit = on,
            SetOption::FmtOnly(on) => self.fmt_only = on,
            SetOption::NoExec(on) => self.no_exec = on,
            SetOption::ParseOnly(on) => self.parse_only = on,
            SetOption::TextSize(size) => {
                // 0 and -1 stand for the default and for no limit.
                self.text_size = if size <= 0 { 2_147_483_647 } else { size };
            }
            SetOption::LockTimeout(millis) => self.set_lock_timeout(millis),
            SetOption::DateFirst(day) => self.expressions.date_first = day,
            SetOption::DateFormat(format) => self.expressions.date_format = format,
            _ => {}
        }
    }
}
