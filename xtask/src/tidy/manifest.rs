//! The packages of the tree, read from their manifests.

use toml::Table;

use crate::Tree;

/// What a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// In the package as others build it.
    Normal,
    /// In its tests and examples.
    Dev,
    /// In its build script.
    Build,
}

/// A dependency as a manifest names it.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The package's name on its registry or in the workspace.
    pub(crate) name: String,
    /// The line of the manifest, from 1.
    pub(crate) line: usize,
    pub(crate) purpose: Purpose,
}

/// A package of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The manifest's path.
    pub(crate) manifest: String,
    /// The manifest's directory.
    pub(crate) directory: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// Whether the package takes the workspace's lints.
    pub(crate) shares_lints: bool,
}

/// Every package below the root manifest.
pub(crate) fn packages(tree: &Tree) -> Vec<Package> {
    let shared =
        tree.text("Cargo.toml").and_then(|text| text.parse::<Table>().ok()).unwrap_or_default();
    tree.texts()
        .filter_map(|(path, text)| {
            let directory = path.strip_suffix("/Cargo.toml")?;
            let table = text.parse::<Table>().ok()?;
            let name = table.get("package")?.get("name")?.as_str()?.to_owned();
            let shares_lints = table
                .get("lints")
                .and_then(|lints| lints.get("workspace"))
                .and_then(toml::Value::as_bool)
                .unwrap_or(false);
            Some(Package {
                name,
                manifest: path.to_owned(),
                directory: directory.to_owned(),
                dependencies: dependencies(&table, text, &shared),
                shares_lints,
            })
        })
        .collect()
}

fn dependencies(table: &Table, text: &str, shared: &Table) -> Vec<Dependency> {
    let platforms = table
        .get("target")
        .and_then(toml::Value::as_table)
        .into_iter()
        .flat_map(|targets| targets.values().filter_map(toml::Value::as_table));
    std::iter::once(table)
        .chain(platforms)
        .flat_map(|part| {
            [
                ("dependencies", Purpose::Normal),
                ("dev-dependencies", Purpose::Dev),
                ("build-dependencies", Purpose::Build),
            ]
            .into_iter()
            .filter_map(|(section, purpose)| Some((part.get(section)?.as_table()?, purpose)))
        })
        .flat_map(|(section, purpose)| {
            section.iter().map(move |(key, value)| Dependency {
                name: package_name(key, value, shared),
                line: line_of(text, key),
                purpose,
            })
        })
        .collect()
}

/// The package behind a key, which may be another name for it.
fn package_name(key: &str, value: &toml::Value, shared: &Table) -> String {
    let inherited = shared
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies")?.get(key)?.get("package"));
    value.get("package").or(inherited).and_then(toml::Value::as_str).unwrap_or(key).to_owned()
}

/// The first line that starts with `key` as a whole word; 1 when there is none.
fn line_of(text: &str, key: &str) -> usize {
    text.lines()
        .position(|line| {
            line.trim_start_matches('"')
                .strip_prefix(key)
                .is_some_and(|rest| rest.starts_with(['.', ' ', '=', '"']))
        })
        .map_or(1, |index| index + 1)
}
