//! What is wrong with a configuration: every problem with its path, what is allowed, and what was
//! probably meant.

use std::{cell::RefCell, fmt, path::PathBuf};

use serde::Serialize;

/// One problem of a configuration. It never holds a secret's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    /// Where: `tables[2].start`.
    pub(crate) path: String,
    /// What is wrong and what is allowed.
    pub(crate) message: String,
    /// What was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suggestion: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; did you mean \"{suggestion}\"?"),
            None => Ok(()),
        }
    }
}

/// Every problem of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problems {
    /// The file.
    pub(crate) file: PathBuf,
    /// The problems, in the order of the sections.
    pub(crate) list: Vec<Problem>,
}

/// Why a file is no configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It cannot be read at all, for this reason.
    Unreadable {
        /// The file, absolute where that can be told.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
    /// What stands in it is wrong.
    Wrong(Problems),
}

/// Takes problems while a configuration is read, so that reading goes on after the first.
#[derive(Debug, Default)]
pub(super) struct Collector(RefCell<Vec<Problem>>);

impl Collector {
    pub(super) fn add(&self, path: impl Into<String>, message: impl Into<String>) {
        self.suggest(path, message, None);
    }

    pub(super) fn suggest(
        &self,
        path: impl Into<String>,
        message: impl Into<String>,
        suggestion: Option<String>,
    ) {
        let problem = Problem { path: path.into(), message: message.into(), suggestion };
        self.0.borrow_mut().push(problem);
    }

    pub(super) fn into_list(self) -> Vec<Problem> {
        self.0.into_inner()
    }
}

/// The path of a key in the section at `section`: as the file spells it, so that a key which is not
/// plain stands in quotes.
pub(super) fn path(section: &str, key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let bare = !key.is_empty() && key.chars().all(plain);
    let key = if bare { key.to_owned() } else { format!("{key:?}") };
    if section.is_empty() { key } else { format!("{section}.{key}") }
}

/// The one of `words` that `word` was probably meant to be: at most a third of its letters away.
pub(super) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let folded = word.to_lowercase();
    words
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(&folded, known), known))
        .filter(|(distance, known)| *distance <= (known.len() / 3).max(1))
        .min()
        .map(|(_, known)| known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_path_that_shows_it() {
        for (section, key, shown) in [
            ("", "source", "source"),
            ("run", "rows_max", "run.rows_max"),
            ("", "", "\"\""),
            ("run", "a.b", "run.\"a.b\""),
            ("run", "a\nb", "run.\"a\\nb\""),
        ] {
            assert_eq!(path(section, key), shown);
        }
    }

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let words = ["earliest", "latest"];
        assert_eq!(nearest("earlist", words).as_deref(), Some("earliest"));
        assert_eq!(nearest("LATEST", words).as_deref(), Some("latest"));
        assert_eq!(nearest("tomorrow", words), None);
        assert_eq!(nearest("", words), None);
    }
}
