//! The contract of a port is written on the port.

use syn::{Attribute, Expr, Item, ItemTrait, Lit, Meta, TraitItem, TraitItemFn, visit::Visit};

use crate::{Finding, Tree};

const RULE: &str = "ports-state-their-contract";
const PORTS: &str = "crates/cdc-core/src/port/";

/// Each public trait of core's ports has a "# Contract" heading, each of its methods is documented,
/// and each method that can fail has an "# Errors" heading.
#[must_use]
pub fn ports_state_their_contract(tree: &Tree) -> Vec<Finding> {
    tree.sources()
        .iter()
        .filter(|source| source.path.starts_with(PORTS) && !source.is_test())
        .flat_map(|source| {
            source.items.items.iter().flat_map(|item| match item {
                Item::Trait(port) if matches!(port.vis, syn::Visibility::Public(_)) => {
                    look_at(&source.path, port)
                }
                _ => Vec::new(),
            })
        })
        .collect()
}

fn look_at(path: &str, port: &ItemTrait) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !has_heading(&documentation(&port.attrs), "# Contract") {
        findings.push(Finding::new(
            path,
            port.ident.span().start().line,
            RULE,
            format!(
                "write a \"# Contract\" on {}: order, concurrency, idempotence, what the caller \
                 must never do",
                port.ident
            ),
        ));
    }
    for item in &port.items {
        if let TraitItem::Fn(method) = item {
            let documentation = documentation(&method.attrs);
            let remedy = if documentation.trim().is_empty() {
                "document the method"
            } else if can_fail(method) && !has_heading(&documentation, "# Errors") {
                "write \"# Errors\": which kinds it returns, and when"
            } else {
                continue;
            };
            let name = &method.sig.ident;
            findings.push(Finding::new(
                path,
                name.span().start().line,
                RULE,
                format!("{}::{name}: {remedy}", port.ident),
            ));
        }
    }
    findings
}

fn documentation(attributes: &[Attribute]) -> String {
    attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(literal) => match &literal.lit {
                    Lit::Str(text) => Some(text.value() + "\n"),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        })
        .collect()
}

fn has_heading(documentation: &str, heading: &str) -> bool {
    documentation.lines().any(|line| line.trim() == heading)
}

/// Whether the return type holds a `Result` anywhere, as in a stream of results.
fn can_fail(method: &TraitItemFn) -> bool {
    struct Results(bool);
    impl<'ast> Visit<'ast> for Results {
        fn visit_ident(&mut self, name: &'ast proc_macro2::Ident) {
            self.0 |= name.to_string().ends_with("Result");
        }
    }
    let mut results = Results(false);
    results.visit_return_type(&method.sig.output);
    results.0
}
