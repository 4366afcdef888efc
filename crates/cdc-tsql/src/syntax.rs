//! From text to statements: what sqlparser reads, and what it does not.
