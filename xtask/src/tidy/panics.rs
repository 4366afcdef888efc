//! Nothing outside tests may panic, and no test is left out in silence.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::{Finding, Tree, source::RustSource};

const METHODS: [&str; 4] = ["unwrap", "expect", "unwrap_err", "expect_err"];
const MACROS: [&str; 4] = ["panic", "todo", "unimplemented", "unreachable"];

/// No call that panics on a value, and no macro that panics, outside tests.
#[must_use]
pub fn nothing_panics(tree: &Tree) -> Vec<Finding> {
    tree.sources()
        .iter()
        .flat_map(|source| {
            let mut found = Vec::new();
            panics(&source.tokens, &mut found);
            found
                .into_iter()
                .filter(|(line, _)| !source.is_test_line(*line))
                .map(|(line, what)| {
                    let remedy = format!("return an error instead of {what}");
                    Finding::new(&source.path, line, "nothing-panics", remedy)
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

/// No `#[ignore]`, in tests least of all.
#[must_use]
pub fn tests_are_not_ignored(tree: &Tree) -> Vec<Finding> {
    tree.sources().iter().flat_map(ignored).collect()
}

fn panics(tokens: &TokenStream, found: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| tokens.get(before));
        match token {
            TokenTree::Group(group) => panics(&group.stream(), found),
            TokenTree::Ident(name) => {
                let word = name.to_string();
                let line = name.span().start().line;
                if METHODS.contains(&word.as_str()) && (is(before, '.') || is(before, ':')) {
                    found.push((line, format!("`{word}`")));
                } else if MACROS.contains(&word.as_str()) && is(tokens.get(index + 1), '!') {
                    found.push((line, format!("`{word}!`")));
                }
            }
            _ => {}
        }
    }
}

fn is(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

fn ignored(source: &RustSource) -> Vec<Finding> {
    fn look_at(tokens: &TokenStream, lines: &mut Vec<usize>) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            let TokenTree::Group(group) = token else {
                continue;
            };
            let before = index.checked_sub(1).and_then(|before| tokens.get(before));
            let first = group.stream().into_iter().next();
            if group.delimiter() == Delimiter::Bracket
                && is(before, '#')
                && matches!(first, Some(TokenTree::Ident(name)) if name == "ignore")
            {
                lines.push(group.span().start().line);
            }
            look_at(&group.stream(), lines);
        }
    }
    let mut lines = Vec::new();
    look_at(&source.tokens, &mut lines);
    lines
        .into_iter()
        .map(|line| {
            Finding::new(
                &source.path,
                line,
                "tests-are-not-ignored",
                "let the test say by name what it lacks and obey CDC_REQUIRE",
            )
        })
        .collect()
}
