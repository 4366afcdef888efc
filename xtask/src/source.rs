//! One Rust file, parsed, with the lines that are only compiled for tests.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A parsed Rust file.
pub struct RustSource {
    /// The path relative to the root of the tree.
    pub path: String,
    /// The file's text.
    pub text: String,
    /// The items.
    pub items: syn::File,
    /// The tokens, with what macros hold.
    pub tokens: TokenStream,
    tests: Vec<RangeInclusive<usize>>,
    test_modules: Vec<String>,
    only_tests: bool,
}

impl RustSource {
    /// Parses a file's text.
    ///
    /// # Errors
    /// When it is not Rust.
    pub fn parse(path: &str, text: &str) -> syn::Result<Self> {
        let items = syn::parse_file(text)?;
        let tokens: TokenStream = text.parse()?;
        let mut found = TestLines::default();
        found.look_at(&tokens);
        let in_test_directory = path.split('/').any(|part| part == "tests" || part == "tests.rs");
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            items,
            tokens,
            tests: found.ranges,
            test_modules: found.modules,
            only_tests: in_test_directory || found.whole_file,
        })
    }

    /// Whether the whole file is only compiled for tests.
    #[must_use]
    pub fn is_test(&self) -> bool {
        self.only_tests
    }

    /// Whether a line, from 1, is only compiled for tests.
    #[must_use]
    pub fn is_test_line(&self, line: usize) -> bool {
        self.only_tests || self.tests.iter().any(|range| range.contains(&line))
    }

    /// The lines of each item that is only compiled for tests.
    #[must_use]
    pub fn test_ranges(&self) -> &[RangeInclusive<usize>] {
        &self.tests
    }

    /// The directory of the package's crate, as `crates/cdc-core` for `crates/cdc-core/src/lsn.rs`.
    #[must_use]
    pub fn package(&self) -> &str {
        ["/src/", "/tests/", "/examples/", "/benches/"]
            .iter()
            .filter_map(|inner| self.path.split_once(inner))
            .map(|(package, _)| package)
            .min_by_key(|package| package.len())
            .unwrap_or("")
    }

    /// Paths, without `.rs`, of the modules this file declares for tests only.
    pub(crate) fn test_module_bases(&self) -> impl Iterator<Item = String> {
        let stem = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        let (directory, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        let owns_directory = matches!(name, "lib" | "main" | "mod");
        let base = if owns_directory { directory } else { stem };
        self.test_modules.iter().map(move |module| format!("{base}/{module}"))
    }

    pub(crate) fn mark_as_test(&mut self) {
        self.only_tests = true;
    }
}

/// Collects what stands behind `#[cfg(test)]`, also inside macros.
#[derive(Default)]
struct TestLines {
    ranges: Vec<RangeInclusive<usize>>,
    modules: Vec<String>,
    whole_file: bool,
}

impl TestLines {
    fn look_at(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        let mut rest = tokens.as_slice();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            match (first, after) {
                (TokenTree::Punct(hash), [TokenTree::Group(attribute), item @ ..])
                    if hash.as_char() == '#' && is_test_attribute(attribute) =>
                {
                    rest = self.take_item(hash.span().start().line, item);
                }
                (
                    TokenTree::Punct(hash),
                    [TokenTree::Punct(bang), TokenTree::Group(attribute), ..],
                ) if hash.as_char() == '#'
                    && bang.as_char() == '!'
                    && is_test_attribute(attribute) =>
                {
                    self.whole_file = true;
                }
                (TokenTree::Group(group), _) => self.look_at(&group.stream()),
                _ => {}
            }
        }
    }

    /// Takes the item behind the attribute: up to its body or its semicolon.
    fn take_item<'t>(&mut self, start: usize, item: &'t [TokenTree]) -> &'t [TokenTree] {
        let mut end = start;
        for (index, token) in item.iter().enumerate() {
            end = token.span().end().line;
            let ends = match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(mark) => mark.as_char() == ';',
                _ => false,
            };
            if ends {
                let is_file = matches!(token, TokenTree::Punct(_));
                if is_file && let Some(name) = item.get(..index).and_then(module_name) {
                    self.modules.push(name);
                }
                self.ranges.push(start..=end);
                return item.get(index + 1..).unwrap_or_default();
            }
        }
        self.ranges.push(start..=end);
        &[]
    }
}

/// The name in `mod name`, after attributes and visibility.
fn module_name(item: &[TokenTree]) -> Option<String> {
    item.windows(2).find_map(|pair| match pair {
        [TokenTree::Ident(keyword), TokenTree::Ident(name)] if keyword == "mod" => {
            Some(name.to_string())
        }
        _ => None,
    })
}

/// `cfg(test)` and `cfg(all(test, …))`.
fn is_test_attribute(attribute: &Group) -> bool {
    let text: String = attribute.stream().to_string().split_whitespace().collect();
    attribute.delimiter() == Delimiter::Bracket
        && (text == "cfg(test)" || text.starts_with("cfg(all(test,"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(path: &str, text: &str) -> RustSource {
        RustSource::parse(path, text).unwrap()
    }

    #[test]
    fn the_lines_of_a_test_module_are_test_lines() {
        let source = parse(
            "a/src/b.rs",
            "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\nfn h() {}\n",
        );
        let lines: Vec<usize> = (1..=7).filter(|line| source.is_test_line(*line)).collect();
        assert_eq!(lines, [3, 4, 5, 6]);
    }

    #[test]
    fn a_negated_test_attribute_marks_nothing() {
        let source = parse("a/src/b.rs", "#[cfg(not(test))]\nfn f() {}\n");
        assert!(!source.is_test_line(2));
    }

    #[test]
    fn a_declared_test_module_names_its_file() {
        let child = parse("a/src/b.rs", "#[cfg(test)]\nmod cases;\n");
        assert_eq!(child.test_module_bases().collect::<Vec<_>>(), ["a/src/b/cases"]);
        let root = parse("a/src/lib.rs", "#[cfg(test)]\npub(crate) mod cases;\n");
        assert_eq!(root.test_module_bases().collect::<Vec<_>>(), ["a/src/cases"]);
    }

    #[test]
    fn a_package_is_the_directory_above_src() {
        assert_eq!(parse("crates/x/src/a/b.rs", "").package(), "crates/x");
        assert_eq!(parse("tests/tests/it/main.rs", "").package(), "tests");
        assert_eq!(parse("crates/x/examples/a.rs", "").package(), "crates/x");
    }
}
