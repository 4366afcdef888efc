//! The configuration file: TOML, every problem reported at once with its path and a suggestion.

mod postgres;
mod problem;
pub(crate) mod quantity;
mod secret;
mod section;
mod source;
mod sqlserver;
pub(crate) mod table_ref;
mod target;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::{NonZeroU64, NonZeroUsize},
    path::{Path, PathBuf},
    time::Duration,
};

use cdc_core::{Granularity, Settings, StartAt, TableConfig, TableRef, Timestamp};
use chrono::DateTime;

use self::{problem::Collector, section::Section};
pub(crate) use self::{
    problem::{Problem, Problems, Refusal},
    secret::{Environment, Secret},
    source::{Data, FakeConfig, SourceConfig},
    target::{DeltaTarget, TargetConfig, TargetKind},
};

/// What the binary is told by its file.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Where changes are read from.
    pub(crate) source: SourceConfig,
    /// Where the tables go; each target gets all of them.
    pub(crate) targets: Vec<TargetConfig>,
    /// Limits and pace.
    pub(crate) settings: Settings,
    /// Where metrics are served, when they are.
    pub(crate) metrics: Option<SocketAddr>,
    /// The tables to copy.
    pub(crate) tables: Vec<TableConfig>,
}

/// The longest duration that a setting takes.
const DURATION_MAX: Duration = Duration::from_secs(7 * 86_400);
/// Most bytes of a configuration file.
const FILE_BYTES_MAX: u64 = 1 << 20;

impl Config {
    /// Reads and checks a file. Relative paths in it start at its own directory.
    ///
    /// # Errors
    /// Every problem of the file at once.
    pub(crate) fn load(file: &Path, environment: Environment<'_>) -> Result<Self, Refusal> {
        let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let refused = |reason| Refusal::Unreadable { file: whole.clone(), reason };
        let cannot = |error: std::io::Error| {
            refused(match error.kind() {
                std::io::ErrorKind::NotFound => "no such file".to_owned(),
                kind => kind.to_string(),
            })
        };
        let length = std::fs::metadata(file).map_err(cannot)?.len();
        if length > FILE_BYTES_MAX {
            let reason = format!("it has {length} bytes; at most {FILE_BYTES_MAX} are read");
            return Err(refused(reason));
        }
        let text = std::fs::read_to_string(file).map_err(cannot)?;
        let base = whole.parent().unwrap_or(Path::new("/")).to_owned();
        Self::parse(&text, &base, environment)
            .map_err(|list| Refusal::Wrong(Problems { file: file.to_owned(), list }))
    }

    pub(crate) fn parse(
        text: &str,
        base: &Path,
        environment: Environment<'_>,
    ) -> Result<Self, Vec<Problem>> {
        let problems = Collector::default();
        let mut table = match text.parse::<toml::Table>() {
            Ok(table) => table,
            Err(error) => {
                // The error's own text shows the line, which may hold a secret.
                problems.add(place(text, error.span()), format!("is no TOML: {}", error.message()));
                return Err(problems.into_list());
            }
        };
        secret::refuse_literals(&mut table, "", &problems);
        let config = read(&table, base, environment, &problems);
        match (config, problems.into_list()) {
            (Some(config), list) if list.is_empty() => Ok(config),
            (_, list) => Err(list),
        }
    }
}

fn place(text: &str, span: Option<std::ops::Range<usize>>) -> String {
    let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("line {line} column {column}")
}

fn read(
    table: &toml::Table,
    base: &Path,
    environment: Environment<'_>,
    problems: &Collector,
) -> Option<Config> {
    let mut root = Section::root(table, problems);
    let source = source::read(root.section("source"), base, environment);
    let targets = target::read(&mut root, base, environment);
    let settings = settings(root.section("run"));
    let metrics = metrics(root.section("metrics"));
    let tables = tables(&mut root);
    root.finish();
    Some(Config { source: source?, targets: targets?, settings: settings?, metrics, tables })
}

/// A path as the file means it: from its own directory.
fn resolve(base: &Path, path: &str) -> PathBuf {
    base.join(path)
}

fn settings(mut section: Section<'_>) -> Option<Settings> {
    let mut settings = Settings::default();
    let millisecond = Duration::from_millis(1);
    if let Some(count) = section.positive("commits_max") {
        settings.limits.commits_max = Some(count);
    }
    assign(&mut settings.limits.rows_max, section.positive("rows_max"));
    assign(&mut settings.limits.bytes_max, section.size("bytes_max"));
    assign(&mut settings.batch_rows, narrow(&mut section, "batch_rows", 1 << 20));
    assign(&mut settings.tables_at_once, narrow(&mut section, "tables_at_once", 256));
    for (key, place) in [
        ("poll_interval", &mut settings.poll_interval),
        ("progress_interval", &mut settings.progress_interval),
        ("silence_max", &mut settings.silence_max),
        ("retry_pause_first", &mut settings.retry.pause_first),
        ("retry_pause_max", &mut settings.retry.pause_max),
    ] {
        assign(place, section.duration(key, millisecond, DURATION_MAX));
    }
    if settings.retry.pause_first > settings.retry.pause_max {
        section.wrong("retry_pause_first", "is longer than retry_pause_max");
    }
    if let Some(attempts) = narrow(&mut section, "attempts_max", 1_000) {
        settings.retry.attempts_max = u32::try_from(attempts.get()).unwrap_or(u32::MAX);
    }
    let words =
        [("minute", Granularity::Minute), ("hour", Granularity::Hour), ("day", Granularity::Day)];
    assign(&mut settings.granularity, section.word("granularity", &words));
    // Accepting a gap and taking a new snapshot come with the initial load.
    section.word("on_data_loss", &[("fail", ())]);
    section.finish();
    Some(settings)
}

fn assign<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// A count with a most, since memory or connections grow with it.
fn narrow(section: &mut Section<'_>, key: &'static str, most: usize) -> Option<NonZeroUsize> {
    let count = section.positive(key).map(NonZeroU64::get)?;
    match usize::try_from(count) {
        Ok(count) if count <= most => NonZeroUsize::new(count),
        _ => {
            section.wrong(key, format!("{count} is more than {most}"));
            None
        }
    }
}

fn metrics(mut section: Section<'_>) -> Option<SocketAddr> {
    let present = section.is_present();
    let port = section.natural("port").and_then(|port| match u16::try_from(port) {
        Ok(port) => Some(port),
        Err(_) => {
            section.wrong("port", format!("{port} is no port; allowed are 0 to 65535"));
            None
        }
    });
    let address = match section.text("address").map(str::parse::<IpAddr>) {
        Some(Ok(address)) => address,
        Some(Err(_)) => {
            section.wrong("address", "is no IP address; leave it out for 127.0.0.1");
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        }
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    if present && section.get("port").is_none() {
        section.wrong("port", "is missing; give the port that serves /metrics");
    }
    section.finish();
    Some(SocketAddr::new(address, port?))
}

fn tables(root: &mut Section<'_>) -> Vec<TableConfig> {
    let sections = root.sections("tables");
    if sections.is_empty() {
        root.wrong("tables", "has no entry; give [[tables]] with source = \"schema.table\"");
    }
    let mut tables: Vec<(String, TableConfig)> = Vec::new();
    for section in sections {
        let (path, problems) = (section.path("target"), section.problems);
        let Some(table) = table(section) else {
            continue;
        };
        let same = |(_, other): &&(String, TableConfig)| {
            other.target.to_lowercase() == table.target.to_lowercase()
        };
        if let Some((first, _)) = tables.iter().find(same) {
            let message = format!("\"{}\" is the target of two tables; see {first}", table.target);
            problems.add(path.clone(), message);
        }
        tables.push((path, table));
    }
    tables.into_iter().map(|(_, table)| table).collect()
}

fn table(mut section: Section<'_>) -> Option<TableConfig> {
    let name = section.text("source");
    let instance = section.text("instance");
    let source = match (name, instance) {
        (Some(name), None) => match table_ref::table_name(name) {
            Ok(name) => Some(TableRef::Table(name)),
            Err(message) => {
                section.wrong("source", message);
                None
            }
        },
        (None, Some("")) => {
            section.wrong("instance", "is empty");
            None
        }
        (None, Some(name)) => Some(TableRef::Instance(cdc_core::InstanceName::new(name))),
        (None, None) => {
            let missing = !["source", "instance"].iter().any(|key| section.get(key).is_some());
            if missing {
                section
                    .wrong("source", "is missing; give \"schema.table\", or instance = \"NAME\"");
            }
            None
        }
        (Some(_), Some(_)) => {
            section.wrong("instance", "stands beside source; give one of the two");
            None
        }
    };
    let target = match (section.text("target"), &source) {
        (Some(""), _) => {
            section.wrong("target", "is empty");
            None
        }
        (Some(target), _) => Some(target.to_owned()),
        (None, Some(TableRef::Table(name))) => Some(format!("{}_{}", name.schema, name.name)),
        (None, Some(TableRef::Instance(name))) => Some(name.as_str().to_owned()),
        (None, None) => None,
    };
    let start = start(&mut section);
    section.finish();
    Some(TableConfig { source: source?, target: target?, start: start? })
}

fn start(section: &mut Section<'_>) -> Option<StartAt> {
    let Some(text) = section.text("start") else {
        return match section.get("start") {
            None => Some(StartAt::default()),
            Some(_) => None,
        };
    };
    if text.starts_with("0x") || text.starts_with("0X") {
        return match text.parse::<cdc_core::Lsn>() {
            Ok(lsn) if !lsn.is_zero() => Some(StartAt::After(lsn.into())),
            Ok(_) => {
                section.wrong("start", "zero is no position; write \"earliest\"");
                None
            }
            Err(error) => {
                section.wrong("start", error.to_string());
                None
            }
        };
    }
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return Some(StartAt::Since(Timestamp::from(moment.to_utc())));
    }
    match text {
        "earliest" => Some(StartAt::Earliest),
        "latest" => Some(StartAt::Latest),
        _ => {
            let message = format!(
                "\"{text}\" is no start; allowed are \"earliest\", \"latest\", a position \
                 \"0x…\", or a moment with its offset like \"2013-11-03T06:00:00Z\""
            );
            let near = problem::nearest(text, ["earliest", "latest"]);
            section.problems.suggest(section.path("start"), message, near);
            None
        }
    }
}

#[cfg(test)]
mod tests;
