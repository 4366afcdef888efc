//! Dependencies point inwards: adapters see core and nothing of each other, and core sees little.

use super::manifest::{Package, Purpose, packages};
use crate::{Finding, Tree};

/// What core may use: values, text, time arithmetic and the traits of futures. No runtime, network,
/// file system, clock or randomness.
const CORE_ALLOWED: [&str; 13] = [
    "arrow-array",
    "arrow-schema",
    "async-trait",
    "backon",
    "chrono",
    "chrono-tz",
    "futures-channel",
    "futures-core",
    "futures-util",
    "serde",
    "serde_json",
    "thiserror",
    "tracing",
];

const CORE: &str = "cdc-core";
const CONFORMANCE: &str = "cdc-conformance";

/// The layers of the in-memory SQL Server: its model, its language, its wire.
const FAKE_LAYERS: [&str; 3] = ["cdc-fake", "cdc-tsql", "cdc-tds"];

/// A package's place among the layers.
fn layer(package: &str) -> Option<usize> {
    FAKE_LAYERS.iter().position(|name| *name == package)
}

/// What a package is in the workspace, by its place and name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Core,
    Conformance,
    Adapter,
    /// A layer of the in-memory server above its model: from the bottom up, see [`FAKE_LAYERS`].
    FakeLayer(usize),
    /// The binary, which assembles the parts.
    Binary,
    /// The test package, the examples and the measurements, which see everything.
    Edge,
    Tasks,
}

impl Role {
    fn of(package: &Package) -> Self {
        match package.name.as_str() {
            CORE => Self::Core,
            CONFORMANCE => Self::Conformance,
            "cdc-cli" => Self::Binary,
            // It measures the parts together and is no part itself.
            "cdc-bench" => Self::Edge,
            "xtask" => Self::Tasks,
            name if layer(name) > Some(0) => Self::FakeLayer(layer(name).unwrap_or_default()),
            _ if package.directory.starts_with("crates/") => Self::Adapter,
            _ => Self::Edge,
        }
    }

    /// Why a package of this role may not depend on `other`, or nothing when it may.
    fn refuses(self, other: &str, purpose: Purpose) -> Option<&'static str> {
        let conformance_in_tests = other == CONFORMANCE && purpose == Purpose::Dev;
        match self {
            Self::Core => Some("core depends on nothing of the workspace; move what it needs in"),
            Self::Conformance if other != CORE => {
                Some("the suites know the ports alone; use what core offers")
            }
            Self::Adapter if other == CONFORMANCE && !conformance_in_tests => {
                Some("make it a dev-dependency; the suites are for tests")
            }
            Self::FakeLayer(own) if other != CORE && layer(other).is_none_or(|it| it >= own) => {
                Some("a layer of the in-memory server sees those below it and core alone")
            }
            Self::Adapter if other != CORE && !conformance_in_tests => {
                Some("adapters never see each other; go through a port of core")
            }
            Self::Binary if other == CONFORMANCE && !conformance_in_tests => {
                Some("make it a dev-dependency; the suites are for tests")
            }
            Self::Tasks => Some("tasks use nothing of the workspace, so that they always build"),
            _ => None,
        }
    }
}

/// Core's normal dependencies are on the allow-list, and it has no build script's dependencies.
#[must_use]
pub fn core_stays_small(tree: &Tree) -> Vec<Finding> {
    packages(tree)
        .iter()
        .filter(|package| package.name == CORE)
        .flat_map(|package| {
            package
                .dependencies
                .iter()
                .filter(|dependency| {
                    dependency.purpose == Purpose::Build
                        || dependency.purpose == Purpose::Normal
                            && !CORE_ALLOWED.contains(&dependency.name.as_str())
                })
                .map(|dependency| {
                    Finding::new(
                        &package.manifest,
                        dependency.line,
                        "core-stays-small",
                        format!(
                            "remove {}; core has no runtime, network, file, clock or randomness, \
                             and a new dependency needs a decision record",
                            dependency.name
                        ),
                    )
                })
        })
        .collect()
}

/// Each package depends only on the packages of the workspace that its role allows.
#[must_use]
pub fn dependencies_point_inwards(tree: &Tree) -> Vec<Finding> {
    let packages = packages(tree);
    let is_ours = |name: &str| packages.iter().any(|package| package.name == name);
    packages
        .iter()
        .flat_map(|package| {
            let role = Role::of(package);
            package.dependencies.iter().filter(|dependency| is_ours(&dependency.name)).filter_map(
                move |dependency| {
                    let reason = role.refuses(&dependency.name, dependency.purpose)?;
                    Some(Finding::new(
                        &package.manifest,
                        dependency.line,
                        "dependencies-point-inwards",
                        format!("{} may not use {}: {reason}", package.name, dependency.name),
                    ))
                },
            )
        })
        .collect()
}

/// Each package of the workspace takes its lints. One that the workspace excludes cannot.
#[must_use]
pub fn lints_are_shared(tree: &Tree) -> Vec<Finding> {
    let excluded = excluded(tree);
    packages(tree)
        .iter()
        .filter(|package| !package.shares_lints && !excluded.contains(&package.directory))
        .map(|package| {
            Finding::new(&package.manifest, 1, "lints-are-shared", "add `[lints] workspace = true`")
        })
        .collect()
}

/// The directories that the root manifest keeps out of the workspace.
fn excluded(tree: &Tree) -> Vec<String> {
    let root = tree.text("Cargo.toml").and_then(|text| text.parse::<toml::Table>().ok());
    let list = root.as_ref().and_then(|root| root.get("workspace")?.get("exclude")?.as_array());
    list.into_iter().flatten().filter_map(|path| Some(path.as_str()?.to_owned())).collect()
}
