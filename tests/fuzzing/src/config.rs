//! The configuration file.

use std::{collections::HashSet, path::Path, time::Duration};

use cdc_cli::fuzzing::configuration;
use toml::Value;
use url::Url;

/// In an input, the place of the secret.
const PLACE: &str = "§";
/// What no text may show.
const SECRET: &str = "hunter2-planted";
/// What the environment holds.
const HELD: &str = "env-planted";
/// Names whose values are secrets, whatever the section.
const SECRET_NAMES: [&str; 6] = [
    "password",
    "aws_secret_access_key",
    "aws_session_token",
    "azure_storage_account_key",
    "sas_token",
    "client_secret",
];

/// Runs one input: the text of a file, in which each `§` stands for a secret.
///
/// A file is a configuration within every limit, or a list of problems that each name their
/// setting or their place. Nothing shows a secret: not one that stands where secrets are refused,
/// not one in the password of a URL, not one of the environment, and none at all of a file that is
/// no TOML.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let text = text.replace(PLACE, SECRET);
    let environment = |name: &str| (name == "THE_KEY").then(|| HELD.to_owned());
    let hidden = match text.parse::<toml::Table>() {
        Ok(table) => hides(&Value::Table(table), false),
        Err(_) => true,
    };
    match configuration(&text, Path::new("/etc/cdc"), &environment) {
        Ok(config) => {
            limits(&config);
            assert!(!config.debug.contains(HELD), "{}", config.debug);
            assert!(!hidden || !config.debug.contains(SECRET), "{}", config.debug);
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                assert!(!problem.path.is_empty(), "{}", problem.text);
                assert!(!problem.text.contains(HELD), "{}", problem.text);
                assert!(!hidden || !problem.text.contains(SECRET), "{}", problem.text);
            }
        }
    }
}

/// True when the secret stands only where no message may show it.
fn hides(value: &Value, secret: bool) -> bool {
    match value {
        Value::String(text) => secret || !text.contains(SECRET) || in_password(text),
        Value::Array(list) => list.iter().all(|value| hides(value, secret)),
        Value::Table(table) => table.iter().all(|(key, value)| {
            let named = SECRET_NAMES.contains(&key.to_lowercase().as_str());
            !key.contains(SECRET) && hides(value, secret || named)
        }),
        _ => true,
    }
}

/// True when a text is a URL that holds the secret in its password alone.
fn in_password(text: &str) -> bool {
    let Ok(mut url) = Url::parse(text) else {
        return false;
    };
    let held = url.password().is_some_and(|password| password.contains(SECRET));
    held && url.set_password(None).is_ok() && !url.as_str().contains(SECRET)
}

fn limits(config: &cdc_cli::fuzzing::Configuration) {
    let settings = &config.settings;
    let week = Duration::from_secs(7 * 86_400);
    let pauses = [
        settings.poll_interval,
        settings.progress_interval,
        settings.silence_max,
        settings.retry.pause_first,
        settings.retry.pause_max,
    ];
    assert!(pauses.iter().all(|pause| !pause.is_zero() && *pause <= week));
    assert!(settings.retry.pause_first <= settings.retry.pause_max);
    assert!((1..=1_000).contains(&settings.retry.attempts_max));
    assert!(settings.batch_rows.get() <= 1 << 20 && settings.tables_at_once.get() <= 256);
    assert!(!config.tables.is_empty());
    let mut targets = HashSet::new();
    for table in &config.tables {
        assert!(!table.target.is_empty());
        assert!(targets.insert(table.target.to_lowercase()), "{}", table.target);
    }
    assert!(Path::new(&config.root).is_absolute() || config.root.starts_with("file:"));
}
