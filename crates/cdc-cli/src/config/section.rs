//! One table of a configuration file, read key by key. What is wrong is collected with its path;
//! what was never asked for is unknown.

use std::{num::NonZeroU64, time::Duration};

use toml::{Table, Value};

use super::{
    problem::{self, Collector, nearest},
    quantity,
};

/// A table of the file, or its absence: then every key is missing.
pub(super) struct Section<'a> {
    path: String,
    table: Option<&'a Table>,
    known: Vec<&'static str>,
    pub(super) problems: &'a Collector,
}

impl<'a> Section<'a> {
    pub(super) fn root(table: &'a Table, problems: &'a Collector) -> Self {
        Self { path: String::new(), table: Some(table), known: Vec::new(), problems }
    }

    /// The path of a key of this section.
    pub(super) fn path(&self, key: &str) -> String {
        problem::path(&self.path, key)
    }

    /// The keys that are in the file, by name, with their values.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        self.table.into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of a key, which from now on is known.
    pub(super) fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.table?.get(key)
    }

    /// Says that something is wrong with a key.
    pub(super) fn wrong(&self, key: &str, message: impl Into<String>) {
        self.problems.add(self.path(key), message);
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        allowed: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(key)?;
        let found = read(value);
        if found.is_none() {
            self.wrong(key, format!("{} is not {allowed}", shown(value)));
        }
        found
    }

    /// A number or a flag, which may have been put in quotes by mistake.
    fn plain<T>(
        &mut self,
        key: &'static str,
        allowed: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let quoted = self.table.and_then(|table| table.get(key)).and_then(unquoted);
        if let Some(plain) = quoted.filter(|plain| read(plain).is_some()) {
            self.known.push(key);
            self.wrong(key, format!("is a text; write {} without quotes", shown(&plain)));
            return None;
        }
        self.read(key, allowed, read)
    }

    /// A text.
    pub(super) fn text(&mut self, key: &'static str) -> Option<&'a str> {
        self.read(key, "a text", Value::as_str)
    }

    /// A text that has to be there.
    pub(super) fn required(&mut self, key: &'static str, what: &str) -> Option<&'a str> {
        if self.get(key).is_none() {
            self.wrong(key, format!("is missing; give {what}"));
            return None;
        }
        self.text(key)
    }

    /// True or false.
    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.plain(key, "true or false", Value::as_bool)
    }

    /// A whole number of at least 1.
    pub(super) fn positive(&mut self, key: &'static str) -> Option<NonZeroU64> {
        self.plain(key, "a whole number of at least 1", |value| {
            NonZeroU64::new(u64::try_from(value.as_integer()?).ok()?)
        })
    }

    /// A whole number of at least 0.
    pub(super) fn natural(&mut self, key: &'static str) -> Option<u64> {
        self.plain(key, "a whole number of at least 0", |value| {
            u64::try_from(value.as_integer()?).ok()
        })
    }

    /// A size of at least one byte.
    pub(super) fn size(&mut self, key: &'static str) -> Option<NonZeroU64> {
        self.read(key, "a size like \"256MiB\"", |value| {
            NonZeroU64::new(quantity::size(value.as_str()?)?)
        })
    }

    /// A duration between two bounds.
    pub(super) fn duration(
        &mut self,
        key: &'static str,
        least: Duration,
        most: Duration,
    ) -> Option<Duration> {
        let allowed = "a duration like \"5s\" or \"2m\"";
        let found = self.read(key, allowed, |value| quantity::duration(value.as_str()?))?;
        if found < least || found > most {
            self.wrong(key, format!("is outside of {least:?} to {most:?}"));
            return None;
        }
        Some(found)
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(key)?;
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*meaning);
        }
        let names = || words.iter().map(|(word, _)| *word);
        let list: Vec<_> = names().map(|word| format!("\"{word}\"")).collect();
        let message = format!("\"{text}\" is not {}", list.join(" or "));
        self.problems.suggest(self.path(key), message, nearest(text, names()));
        None
    }

    /// A table inside this one.
    pub(super) fn section(&mut self, key: &'static str) -> Section<'a> {
        let table = self.read(key, "a table of settings", Value::as_table);
        Section { path: self.path(key), table, known: Vec::new(), problems: self.problems }
    }

    /// True when the table is in the file.
    pub(super) fn is_present(&self) -> bool {
        self.table.is_some()
    }

    /// The tables of an array.
    pub(super) fn sections(&mut self, key: &'static str) -> Vec<Section<'a>> {
        let list = self.read(key, "a list of tables", Value::as_array);
        let mut sections = Vec::new();
        for (index, value) in list.into_iter().flatten().enumerate() {
            let path = format!("{}[{index}]", self.path(key));
            match value.as_table() {
                Some(table) => sections.push(Section {
                    path,
                    table: Some(table),
                    known: Vec::new(),
                    problems: self.problems,
                }),
                None => self.problems.add(path, "is not a table of settings"),
            }
        }
        sections
    }

    /// The tables inside this one, by their names.
    pub(super) fn named(&self) -> Vec<(&'a str, Section<'a>)> {
        let mut sections = Vec::new();
        for (name, value) in self.entries() {
            let path = self.path(name);
            let problems = self.problems;
            match value.as_table() {
                Some(table) => {
                    let table = Some(table);
                    sections.push((name, Section { path, table, known: Vec::new(), problems }));
                }
                None => self.problems.add(path, "is not a table of settings"),
            }
        }
        sections
    }

    /// The texts of an array.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<&'a str>> {
        self.read(key, "a list of texts", |value| {
            value.as_array()?.iter().map(Value::as_str).collect()
        })
    }

    /// Reports the keys that nobody asked for.
    pub(super) fn finish(self) {
        for (key, _) in self.entries().filter(|(key, _)| !self.known.contains(key)) {
            let near = nearest(key, self.known.iter().copied());
            let message = match &near {
                Some(_) => "is no setting".to_owned(),
                None => format!("is no setting; allowed are {}", self.known.join(", ")),
            };
            self.problems.suggest(self.path(key), message, near);
        }
    }
}

/// The number or flag inside the quotes of a text.
fn unquoted(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    let number = text.parse().map(Value::Integer);
    number.or_else(|_| text.parse().map(Value::Boolean)).ok()
}

/// A value for a message. Texts are shown, since secrets are refused before they are read.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{text}\""),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        other => format!("a value of type {}", other.type_str()),
    }
}
