//! SET: options of the session, and variables.

use cdc_fake::SqlError;
use sqlparser::tokenizer::Token;

use super::{
    Body, SetOption,
    reader::{Read, Reader},
    rows::compound,
    unsupported,
};
use crate::relation::DateFormat;

impl Reader {
    pub(super) fn set_statement(&mut self) -> Read<Body> {
        self.at += 1;
        if self.peeks_variable() {
            return self.set_variable();
        }
        if self.take_all(&["TRANSACTION", "ISOLATION", "LEVEL"]) {
            return self.isolation().map(|level| Body::Set(vec![SetOption::Isolation(level)]));
        }
        let word = self.peek_word().unwrap_or_default();
        if word == "STATISTICS" {
            self.at += 1;
            let what = self.list(|reader| reader.name())?;
            self.on_off()?;
            return match what.iter().any(|what| what.eq_ignore_ascii_case("XML")) {
                true => Err(self.error(unsupported("SET STATISTICS XML"))),
                false => Ok(Body::Set(vec![SetOption::Harmless])),
            };
        }
        if word == "IDENTITY_INSERT" {
            self.at += 1;
            let table = self.object()?;
            let on = self.on_off()?;
            return Ok(Body::Set(vec![SetOption::IdentityInsert(table, on)]));
        }
        if let Some(option) = self.valued_option(&word)? {
            return Ok(Body::Set(vec![option]));
        }
        // `SET ANSI_NULLS, QUOTED_IDENTIFIER ON`.
        let names = self.list(|reader| {
            let word = reader.peek_word();
            reader.at += usize::from(word.is_some());
            word.ok_or_else(|| reader.unexpected())
        })?;
        let on = self.on_off()?;
        let options = names
            .iter()
            .map(|name| switch(name, on).ok_or_else(|| self.error(no_option(name))))
            .collect::<Read<Vec<_>>>()?;
        Ok(Body::Set(options))
    }

    fn set_variable(&mut self) -> Read<Body> {
        let name = self.variable()?;
        if self.peek() == Some(&Token::Period) {
            return Err(self.error(unsupported("a method of a variable")));
        }
        let operator = self.compound_operator();
        self.expect_token(&Token::Eq)?;
        let value = self.expression()?;
        let value = match operator {
            None => value,
            Some(operator) => compound(&name, operator, value),
        };
        Ok(Body::SetVariable { name, value })
    }

    fn isolation(&mut self) -> Read<u8> {
        let levels: [(&[&str], u8); 5] = [
            (&["READ", "UNCOMMITTED"], 1),
            (&["READ", "COMMITTED"], 2),
            (&["REPEATABLE", "READ"], 3),
            (&["SERIALIZABLE"], 4),
            (&["SNAPSHOT"], 5),
        ];
        for (words, level) in levels {
            if self.take_all(words) {
                return Ok(level);
            }
        }
        Err(self.unexpected())
    }

    fn valued_option(&mut self, word: &str) -> Read<Option<SetOption>> {
        let begin = self.at;
        self.at += 1;
        let option = match word {
            "TEXTSIZE" => SetOption::TextSize(self.integer()?),
            "ROWCOUNT" => SetOption::RowCount(self.expression()?),
            "LOCK_TIMEOUT" => SetOption::LockTimeout(self.integer()?),
            "DATEFIRST" => match u8::try_from(self.integer()?) {
                Ok(day @ 1..=7) => SetOption::DateFirst(day),
                _ => return Err(self.error(invalid("DATEFIRST", "a day from 1 to 7"))),
            },
            "DATEFORMAT" => SetOption::DateFormat(self.date_format()?),
            "LANGUAGE" => SetOption::Language(self.name_or_string()?),
            "CONTEXT_INFO" => SetOption::ContextInfo(self.expression()?),
            "DEADLOCK_PRIORITY" => {
                if self.integer().is_err() {
                    self.name()?;
                }
                SetOption::DeadlockPriority
            }
            "QUERY_GOVERNOR_COST_LIMIT" => {
                self.integer()?;
                SetOption::Harmless
            }
            _ => {
                self.at = begin;
                return Ok(None);
            }
        };
        Ok(Some(option))
    }

    fn date_format(&mut self) -> Read<DateFormat> {
        let format = self.name_or_string()?;
        match format.to_ascii_lowercase().as_str() {
            "mdy" => Ok(DateFormat::MonthDayYear),
            "dmy" => Ok(DateFormat::DayMonthYear),
            "ymd" => Ok(DateFormat::YearMonthDay),
            _ => Err(self.error(unsupported("SET DATEFORMAT with this order"))),
        }
    }
}

/// An option that is on or off.
fn switch(name: &str, on: bool) -> Option<SetOption> {
    Some(match name {
        "NOCOUNT" => SetOption::NoCount(on),
        "XACT_ABORT" => SetOption::XactAbort(on),
        "IMPLICIT_TRANSACTIONS" => SetOption::ImplicitTransactions(on),
        "ANSI_NULLS" => SetOption::AnsiNulls(on),
        "ANSI_WARNINGS" => SetOption::AnsiWarnings(on),
        "ANSI_NULL_DFLT_ON" => SetOption::AnsiNullDefault(on),
        "ANSI_NULL_DFLT_OFF" => SetOption::AnsiNullDefault(!on),
        "ANSI_DEFAULTS" => SetOption::AnsiDefaults(on),
        "ARITHABORT" => SetOption::ArithAbort(on),
        "QUOTED_IDENTIFIER" => SetOption::QuotedIdentifier(on),
        "CONCAT_NULL_YIELDS_NULL" => SetOption::ConcatNullYieldsNull(on),
        "CURSOR_CLOSE_ON_COMMIT" => SetOption::CursorCloseOnCommit(on),
        "FMTONLY" => SetOption::FmtOnly(on),
        "NOEXEC" => SetOption::NoExec(on),
        "PARSEONLY" => SetOption::ParseOnly(on),
        // Texts are padded as ANSI_PADDING says when it is on, which it always is here; the
        // others tell plans and warnings.
        "ANSI_PADDING"
        | "ARITHIGNORE"
        | "NUMERIC_ROUNDABORT"
        | "FORCEPLAN"
        | "NO_BROWSETABLE"
        | "REMOTE_PROC_TRANSACTIONS"
            if name != "ANSI_PADDING" || on =>
        {
            SetOption::Harmless
        }
        _ => return None,
    })
}

fn no_option(name: &str) -> SqlError {
    match name {
        "ANSI_PADDING" | "SHOWPLAN_ALL" | "SHOWPLAN_TEXT" | "SHOWPLAN_XML" | "OFFSETS" => {
            unsupported(&format!("SET {name}"))
        }
        _ => SqlError::new(195, format!("'{name}' is not a recognized SET option.")),
    }
}

fn invalid(option: &str, wants: &str) -> SqlError {
    SqlError::new(2744, format!("SET {option} takes {wants}."))
}
