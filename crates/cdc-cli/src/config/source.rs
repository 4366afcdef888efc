//! The section `[source]`: a SQL Server, or a simulated one.

use std::path::{Path, PathBuf};

use cdc_core::Timestamp;
use chrono::DateTime;
use chrono_tz::Tz;

use super::{problem::nearest, resolve, secret::Environment, section::Section, sqlserver};
use std::time::Duration;

/// Where changes are read from.
#[derive(Clone, Debug)]
pub(crate) enum SourceConfig {
    /// The simulated server.
    Fake(FakeConfig),
    /// A SQL Server.
    SqlServer(Box<cdc_mssql::MssqlConfig>),
}

/// Where the simulated server's rows come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// The rows in the binary.
    Builtin,
    /// A directory with one file a table.
    Directory(PathBuf),
}

/// A simulated SQL Server: deterministic, so that the same settings give the same log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FakeConfig {
    /// The server's zone.
    pub(crate) zone: Tz,
    /// Where its rows come from.
    pub(crate) data: Data,
    /// Most flights to load.
    pub(crate) rows: Option<u64>,
    /// Seed of the live workload.
    pub(crate) seed: u64,
    /// The server's present: what happens later has not happened yet.
    pub(crate) until: Option<Timestamp>,
    /// Whether rows change after they were loaded.
    pub(crate) workload: bool,
    /// The tables with change data capture.
    pub(crate) capture: Vec<String>,
    /// How long the cleanup job leaves changes, counted from the newest; none without a job.
    pub(crate) retention: Option<Duration>,
}

/// The tables that the simulated server has.
pub(crate) const TABLES: [&str; 4] = ["airlines", "airports", "planes", "flights"];

impl Default for FakeConfig {
    fn default() -> Self {
        Self {
            zone: chrono_tz::America::New_York,
            data: Data::Builtin,
            rows: None,
            seed: 20_131_103,
            until: None,
            workload: true,
            capture: TABLES.map(String::from).to_vec(),
            retention: None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fake,
    SqlServer,
}

pub(super) fn read(
    mut section: Section<'_>,
    base: &Path,
    environment: Environment<'_>,
) -> Option<SourceConfig> {
    if section.get("kind").is_none() {
        section.wrong("kind", "is missing; give \"sqlserver\", or \"fake\" for a simulated one");
    }
    // Which keys are right depends on the kind.
    match section.word("kind", &[("fake", Kind::Fake), ("sqlserver", Kind::SqlServer)])? {
        Kind::Fake => Some(SourceConfig::Fake(simulated(section, base))),
        Kind::SqlServer => {
            let config = sqlserver::read(section, base, environment)?;
            Some(SourceConfig::SqlServer(Box::new(config)))
        }
    }
}

fn simulated(mut section: Section<'_>, base: &Path) -> FakeConfig {
    let mut config = FakeConfig::default();
    if let Some(name) = section.text("zone") {
        match name.parse::<Tz>() {
            Ok(zone) => config.zone = zone,
            Err(_) => {
                let zones = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
                let message = format!("\"{name}\" is no IANA time zone");
                section.problems.suggest(section.path("zone"), message, near_zone(name, zones));
            }
        }
    }
    fake(section.section("fake"), base, &mut config);
    section.finish();
    config
}

fn near_zone(name: &str, zones: impl Iterator<Item = &'static str>) -> Option<String> {
    let zones: Vec<(String, &str)> = zones.map(|zone| (zone.to_lowercase(), zone)).collect();
    let near = nearest(name, zones.iter().map(|(folded, _)| folded.as_str()))?;
    zones.into_iter().find(|(folded, _)| *folded == near).map(|(_, zone)| zone.to_owned())
}

fn fake(mut section: Section<'_>, base: &Path, config: &mut FakeConfig) {
    match section.text("data") {
        None | Some("builtin") => {}
        Some(path) => config.data = Data::Directory(resolve(base, path)),
    }
    config.rows = section.positive("rows").map(u64::from);
    if let Some(seed) = section.natural("seed") {
        config.seed = seed;
    }
    if let Some(text) = section.text("until") {
        match DateTime::parse_from_rfc3339(text) {
            Ok(moment) => config.until = Some(Timestamp::from(moment.to_utc())),
            Err(_) => section.wrong(
                "until",
                format!("\"{text}\" is no moment with its offset like \"2013-11-03T06:00:00Z\""),
            ),
        }
    }
    if let Some(workload) = section.flag("workload") {
        config.workload = workload;
    }
    if let Some(tables) = section.texts("capture") {
        for (index, table) in tables.iter().enumerate().filter(|(_, name)| !TABLES.contains(name)) {
            let message =
                format!("\"{table}\" is no table of the server; it has {}", TABLES.join(", "));
            let path = format!("{}[{index}]", section.path("capture"));
            section.problems.suggest(path, message, nearest(table, TABLES));
        }
        config.capture = tables.into_iter().map(str::to_owned).collect();
    }
    let hour = Duration::from_secs(3_600);
    config.retention = section.duration("retention", hour, Duration::from_secs(366 * 86_400));
    section.finish();
}
