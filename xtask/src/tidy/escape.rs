//! A ban that a file may switch off is no ban: outside tests, deterministic crates never allow what
//! their `clippy.toml` refuses.

use proc_macro2::{TokenStream, TokenTree};

use super::ban::DETERMINISTIC;
use crate::{Finding, Tree};

/// No `allow` or `expect` of the lints that carry the bans.
#[must_use]
pub fn bans_are_not_waived(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.sources() {
        let name = source.package().strip_prefix("crates/").unwrap_or_default();
        if DETERMINISTIC.contains(&name) {
            look_at(&source.tokens, &mut |line, lint| {
                if !source.is_test_line(line) {
                    findings.push(Finding::new(
                        &source.path,
                        line,
                        "bans-are-not-waived",
                        format!("remove the exception for {lint}; go through a port of core"),
                    ));
                }
            });
        }
    }
    findings
}

fn look_at(tokens: &TokenStream, found: &mut impl FnMut(usize, &str)) {
    for token in tokens.clone() {
        match token {
            TokenTree::Ident(name)
                if name == "disallowed_methods" || name == "disallowed_types" =>
            {
                found(name.span().start().line, &name.to_string());
            }
            TokenTree::Group(group) => look_at(&group.stream(), found),
            _ => {}
        }
    }
}
