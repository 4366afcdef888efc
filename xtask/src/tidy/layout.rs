//! The form of a file: its name, its first line, and its size.

use syn::visit::{self, Visit};

use crate::{Finding, Tree, source::RustSource};

/// Lines of a file without its tests.
const FILE_LINES_MAX: usize = 500;
/// Lines of a function, from its signature to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;
/// Characters of a line, as in `rustfmt.toml`.
const LINE_COLUMNS_MAX: usize = 100;
/// Lines of tests that may stay in the file they test.
const INLINE_TEST_LINES_MAX: usize = 200;

/// Names that say nothing of the field.
const NOT_NOUNS: [&str; 8] =
    ["utils", "util", "common", "helpers", "helper", "types", "manager", "misc"];

/// No module, file or directory of sources has a name that says nothing.
#[must_use]
pub fn modules_are_nouns(tree: &Tree) -> Vec<Finding> {
    const RULE: &str = "modules-are-nouns";
    let remedy = |name: &str| format!("name the module by what it holds, not {name:?}");
    let by_path = tree.sources().iter().flat_map(|source| {
        let stem = source.path.strip_suffix(".rs").unwrap_or(&source.path);
        stem.split('/')
            .filter(|part| NOT_NOUNS.contains(part))
            .map(|part| Finding::new(&source.path, 1, RULE, remedy(part)))
    });
    let inline = tree.sources().iter().flat_map(|source| {
        struct Modules(Vec<(usize, String)>);
        impl<'ast> Visit<'ast> for Modules {
            fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
                let name = item.ident.to_string();
                if item.content.is_some() && NOT_NOUNS.contains(&name.as_str()) {
                    self.0.push((item.ident.span().start().line, name));
                }
                visit::visit_item_mod(self, item);
            }
        }
        let mut modules = Modules(Vec::new());
        modules.visit_file(&source.items);
        modules
            .0
            .into_iter()
            .map(|(line, name)| Finding::new(&source.path, line, RULE, remedy(&name)))
    });
    by_path.chain(inline).collect()
}

/// Each file opens with `//!`.
#[must_use]
pub fn files_say_what_they_are_for(tree: &Tree) -> Vec<Finding> {
    tree.sources()
        .iter()
        .filter(|source| {
            source
                .text
                .lines()
                .next()
                .and_then(|line| line.strip_prefix("//!"))
                .is_none_or(|purpose| purpose.trim().is_empty())
        })
        .map(|source| {
            Finding::new(
                &source.path,
                1,
                "files-say-what-they-are-for",
                "open the file with `//!` and what it is for",
            )
        })
        .collect()
}

/// Each file is short without its tests.
#[must_use]
pub fn files_are_short(tree: &Tree) -> Vec<Finding> {
    outside_tests(tree)
        .filter_map(|source| {
            let lines = (1..=source.text.lines().count())
                .filter(|line| !source.is_test_line(*line))
                .count();
            (lines > FILE_LINES_MAX).then(|| {
                let remedy = format!(
                    "split the file: {lines} lines without tests, {FILE_LINES_MAX} at most"
                );
                Finding::new(&source.path, FILE_LINES_MAX + 1, "files-are-short", remedy)
            })
        })
        .collect()
}

/// Tests that outgrow their file have one of their own.
#[must_use]
pub fn long_tests_have_their_own_file(tree: &Tree) -> Vec<Finding> {
    outside_tests(tree)
        .flat_map(|source| {
            source.test_ranges().iter().filter_map(|range| {
                let lines = range.clone().count();
                (lines > INLINE_TEST_LINES_MAX).then(|| {
                    let remedy = format!(
                        "move the {lines} lines of tests to tests.rs in the module's directory; \
                         {INLINE_TEST_LINES_MAX} at most may stay"
                    );
                    let rule = "long-tests-have-their-own-file";
                    Finding::new(&source.path, *range.start(), rule, remedy)
                })
            })
        })
        .collect()
}

/// Each function outside tests is short.
#[must_use]
pub fn functions_are_short(tree: &Tree) -> Vec<Finding> {
    outside_tests(tree)
        .flat_map(|source| {
            let mut functions = Functions(Vec::new());
            functions.visit_file(&source.items);
            functions
                .0
                .into_iter()
                .filter(|function| {
                    function.lines > FUNCTION_LINES_MAX && !source.is_test_line(function.start)
                })
                .map(|function| {
                    let Function { name, start, lines } = function;
                    let remedy =
                        format!("split {name}: {lines} lines, {FUNCTION_LINES_MAX} at most");
                    Finding::new(&source.path, start, "functions-are-short", remedy)
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Each line outside tests is short.
#[must_use]
pub fn lines_are_short(tree: &Tree) -> Vec<Finding> {
    outside_tests(tree)
        .flat_map(|source| {
            source
                .text
                .lines()
                .enumerate()
                .map(|(index, line)| (index + 1, line.chars().count()))
                .filter(|(line, columns)| {
                    *columns > LINE_COLUMNS_MAX && !source.is_test_line(*line)
                })
                .map(|(line, columns)| {
                    let remedy =
                        format!("break the line: {columns} columns, {LINE_COLUMNS_MAX} at most");
                    Finding::new(&source.path, line, "lines-are-short", remedy)
                })
        })
        .collect()
}

fn outside_tests(tree: &Tree) -> impl Iterator<Item = &RustSource> {
    tree.sources().iter().filter(|source| !source.is_test())
}

struct Function {
    name: String,
    start: usize,
    lines: usize,
}

struct Functions(Vec<Function>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let start = signature.fn_token.span.start().line;
        let end = block.brace_token.span.close().end().line;
        self.0.push(Function {
            name: signature.ident.to_string(),
            start,
            lines: end.saturating_sub(start) + 1,
        });
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}
