//! One breach of a rule: where it is, which rule it breaks, and what to do.

use std::fmt;

/// A breach of a rule of the tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root of the tree.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The rule's name.
    pub rule: &'static str,
    /// What to do about it.
    pub remedy: String,
}

impl Finding {
    /// A finding at `path:line`.
    #[must_use]
    pub fn new(path: &str, line: usize, rule: &'static str, remedy: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, remedy } = self;
        write!(f, "{path}:{line}: {rule}: {remedy}")
    }
}
