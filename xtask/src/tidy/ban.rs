//! The crates that must replay from a seed list what they may not call.

use toml::Table;

use crate::{Finding, Tree};

/// The crates without a clock, randomness, threads, tasks of their own, or unbounded queues.
pub const DETERMINISTIC: [&str; 3] = ["cdc-core", "cdc-fake", "cdc-conformance"];

const RULE: &str = "bans-are-listed";

/// What clippy must refuse in those crates.
const BANNED: [&str; 36] = [
    // The wall clock: time comes in through the Clock port.
    "std::time::SystemTime::now",
    "std::time::SystemTime::elapsed",
    "std::time::Instant::now",
    "std::time::Instant::elapsed",
    "chrono::Utc::now",
    "chrono::Local::now",
    "tokio::time::Instant::now",
    // Waiting: through the Clock port too.
    "std::thread::sleep",
    "tokio::time::sleep",
    "tokio::time::sleep_until",
    "tokio::time::interval",
    "tokio::time::interval_at",
    "tokio::time::timeout",
    "tokio::time::timeout_at",
    // Randomness: through the Entropy port, or a generator made from a seed.
    "rand::rng",
    "rand::random",
    "rand::random_bool",
    "rand::random_iter",
    "rand::random_range",
    "rand::random_ratio",
    "std::collections::hash_map::RandomState::new",
    "std::hash::RandomState::new",
    // Threads and tasks: the caller owns the runtime.
    "std::thread::spawn",
    "std::thread::scope",
    "std::thread::Builder::spawn",
    "std::thread::Builder::spawn_scoped",
    "tokio::spawn",
    "tokio::task::spawn",
    "tokio::task::spawn_blocking",
    "tokio::task::spawn_local",
    "tokio::runtime::Handle::spawn",
    "tokio::runtime::Handle::spawn_blocking",
    "tokio::runtime::Runtime::spawn",
    // Queues without a limit.
    "futures_channel::mpsc::unbounded",
    "std::sync::mpsc::channel",
    "tokio::sync::mpsc::unbounded_channel",
];

/// Settings that a crate's own file must repeat, since it replaces the workspace's.
const REPEATED: [&str; 4] = [
    "allow-unwrap-in-tests",
    "allow-expect-in-tests",
    "allow-panic-in-tests",
    "allow-indexing-slicing-in-tests",
];

/// Each deterministic crate has a `clippy.toml` that holds every ban with its reason.
#[must_use]
pub fn bans_are_listed(tree: &Tree) -> Vec<Finding> {
    DETERMINISTIC
        .iter()
        .filter(|name| tree.has(&format!("crates/{name}/Cargo.toml")))
        .flat_map(|name| {
            let path = format!("crates/{name}/clippy.toml");
            match tree.text(&path).map(str::parse::<Table>) {
                Some(Ok(table)) => missing(&path, &table),
                Some(Err(e)) => vec![Finding::new(&path, 1, RULE, format!("correct it: {e}"))],
                None => vec![Finding::new(
                    &path,
                    1,
                    RULE,
                    "add the file with the bans of a crate that replays from a seed",
                )],
            }
        })
        .collect()
}

fn missing(path: &str, table: &Table) -> Vec<Finding> {
    let entries: Vec<&Table> = table
        .get("disallowed-methods")
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(toml::Value::as_table)
        .collect();
    let text_of = |entry: &Table, key: &str| {
        let value = entry.get(key).and_then(toml::Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let bans = BANNED
        .iter()
        .filter(|banned| {
            !entries.iter().any(|entry| {
                text_of(entry, "path") == **banned && !text_of(entry, "reason").is_empty()
            })
        })
        .map(|banned| format!("list {banned} under disallowed-methods with its reason"));
    let settings = REPEATED
        .iter()
        .filter(|setting| table.get(**setting).and_then(toml::Value::as_bool) != Some(true))
        .map(|setting| format!("set {setting} = true; this file replaces the workspace's"));
    bans.chain(settings).map(|remedy| Finding::new(path, 1, RULE, remedy)).collect()
}
