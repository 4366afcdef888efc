//! The keys of `[source]` with `kind = "sqlserver"`.

use std::{path::Path, time::Duration};

use cdc_core::{diagnosis::RowIsolation, time::ServerZone};
use cdc_mssql::{BulkReader, Encryption, Login, MssqlConfig, Trust};

use super::{
    resolve,
    secret::{self, Environment, Secret},
    section::Section,
};

/// The longest that a server may be waited for.
const WAIT_MAX: Duration = Duration::from_secs(86_400);
/// Most bytes of a file with authorities.
const AUTHORITY_BYTES_MAX: u64 = 1 << 20;

pub(super) fn read(
    mut section: Section<'_>,
    base: &Path,
    environment: Environment<'_>,
) -> Option<MssqlConfig> {
    let host = section.required("host", "the server's name or address");
    let database = section.required("database", "the database with change data capture");
    let login = login(&mut section, base, environment);
    let trust = trust(&mut section, base);
    let zone = zone(&mut section);
    let complete = host.is_some() && database.is_some() && login.is_some();
    // What else is wrong is said too.
    let login = login.unwrap_or_else(|| Login::Token(Secret::new("")));
    let (host, database) = (host.unwrap_or_default(), database.unwrap_or_default());
    let mut config = MssqlConfig::new(host, database, login);
    config.trust = trust;
    config.zone = zone;
    config.port = within(&mut section, "port", 1, 65_535, config.port);
    let words = [
        ("required", Encryption::Required),
        ("strict", Encryption::Strict),
        ("off", Encryption::Off),
    ];
    if let Some(encryption) = section.word("encryption", &words) {
        config.encryption = encryption;
    }
    config.certificate_name = section.text("tls_name").map(str::to_owned);
    if let Some(name) = section.text("application") {
        config.application = name.to_owned();
    }
    let levels =
        [("read committed", RowIsolation::ReadCommitted), ("snapshot", RowIsolation::Snapshot)];
    if let Some(isolation) = section.word("isolation", &levels) {
        config.isolation = isolation;
    }
    if let Some(flag) = section.flag("read_only_intent") {
        config.read_only_intent = flag;
    }
    if let Some(flag) = section.flag("multi_subnet_failover") {
        config.multi_subnet_failover = flag;
    }
    limits(&mut section, &mut config);
    reader(&mut section, &mut config);
    section.finish();
    complete.then_some(config)
}

fn limits(section: &mut Section<'_>, config: &mut MssqlConfig) {
    let millisecond = Duration::from_millis(1);
    for (key, place) in [
        ("connect_timeout", &mut config.connect_timeout),
        ("silence_max", &mut config.silence_max),
        ("login_command_timeout", &mut config.token_timeout),
        ("retry_pause_first", &mut config.retry.pause_first),
        ("retry_pause_max", &mut config.retry.pause_max),
    ] {
        if let Some(duration) = section.duration(key, millisecond, WAIT_MAX) {
            *place = duration;
        }
    }
    if section.get("lock_timeout").and_then(toml::Value::as_str) == Some("none") {
        config.lock_timeout = None;
    } else if let Some(limit) = section.duration("lock_timeout", millisecond, WAIT_MAX) {
        config.lock_timeout = Some(limit);
    }
    if config.retry.pause_first > config.retry.pause_max {
        section.wrong("retry_pause_first", "is longer than retry_pause_max");
    }
    let attempts = config.retry.attempts_max;
    config.retry.attempts_max = within(section, "attempts_max", 1, 100, attempts);
    config.packet_bytes = within(section, "packet_bytes", 512, 32_767, config.packet_bytes);
    let idle = config.idle_connections_max;
    config.idle_connections_max = within(section, "idle_connections_max", 0, 256, idle);
}

fn reader(section: &mut Section<'_>, config: &mut MssqlConfig) {
    let words = [("mssql-tds", BulkReader::MssqlTds), ("tiberius", BulkReader::Tiberius)];
    config.bulk_reader = section.word("bulk_reader", &words);
    if let Err(error) = config.reader() {
        let reason = error.context("reason").unwrap_or_default();
        section.wrong("bulk_reader", format!("{reason}; {}", error.advice()));
    }
}

/// A whole number between two bounds.
pub(super) fn within<T: Copy + TryFrom<u64>>(
    section: &mut Section<'_>,
    key: &'static str,
    least: u64,
    most: u64,
    default: T,
) -> T {
    let Some(number) = section.natural(key) else { return default };
    match T::try_from(number) {
        Ok(fits) if (least..=most).contains(&number) => fits,
        _ => {
            section.wrong(key, format!("{number} is outside of {least} to {most}"));
            default
        }
    }
}

fn login(section: &mut Section<'_>, base: &Path, environment: Environment<'_>) -> Option<Login> {
    let user = section.text("user");
    let keys = [("password_env", "password_file"), ("token_env", "token_file")];
    let [password, token] =
        keys.map(|(variable, file)| given(section, variable, file, base, environment));
    let command = section.texts("login_command");
    match (user, password, token, command) {
        (Some(user), Some(password), None, None) => {
            Some(Login::Password { user: user.to_owned(), password: password? })
        }
        (Some(_), None, None, None) => {
            section.wrong(
                "password_env",
                "is missing; give the name of an environment variable with the password, or \
                 password_file",
            );
            None
        }
        (None, None, Some(token), None) => Some(Login::Token(token?)),
        (None, None, None, Some(words)) if !words.is_empty() => {
            Some(Login::TokenCommand(words.into_iter().map(str::to_owned).collect()))
        }
        (None, None, None, None) => {
            section.wrong(
                "user",
                "is missing; give user with password_env, or token_env, or login_command",
            );
            None
        }
        _ => {
            section.wrong(
                "user",
                "only one login is possible: user with password_env or password_file, or token_env \
                 or token_file, or login_command with a program and its arguments",
            );
            None
        }
    }
}

/// A secret by its variable or its file: none when neither is given, nothing inside when it cannot
/// be had.
pub(super) fn given(
    section: &mut Section<'_>,
    variable: &'static str,
    file: &'static str,
    base: &Path,
    environment: Environment<'_>,
) -> Option<Option<Secret>> {
    let (name, path) = (section.text(variable), section.text(file));
    let (key, secret) = match (name, path) {
        (None, None) => return None,
        (Some(_), Some(_)) => (file, Err(format!("stands beside {variable}; give one of the two"))),
        (Some(name), None) => (variable, secret::from_environment(name, environment)),
        (None, Some(path)) => (file, secret::from_file(&resolve(base, path))),
    };
    Some(secret.map_err(|message| section.wrong(key, message)).ok())
}

fn trust(section: &mut Section<'_>, base: &Path) -> Trust {
    let file = section.text("tls_ca_file");
    let any = section.flag("tls_trust_any").unwrap_or(false);
    match (file, any) {
        (None, false) => Trust::System,
        (None, true) => Trust::Any,
        (Some(_), true) => {
            section.wrong("tls_trust_any", "stands beside tls_ca_file; give one of the two");
            Trust::System
        }
        (Some(file), false) => match authorities(&resolve(base, file)) {
            Ok(pem) => Trust::Authority(pem),
            Err(message) => {
                section.wrong("tls_ca_file", message);
                Trust::System
            }
        },
    }
}

pub(super) fn authorities(path: &Path) -> Result<Vec<u8>, String> {
    let at = path.display();
    let cannot = |error: std::io::Error| format!("the file {at} cannot be read: {}", error.kind());
    let length = std::fs::metadata(path).map_err(cannot)?.len();
    if length > AUTHORITY_BYTES_MAX {
        return Err(format!(
            "the file {at} has {length} bytes; at most {AUTHORITY_BYTES_MAX} are read"
        ));
    }
    let pem = std::fs::read(path).map_err(cannot)?;
    let begin = b"-----BEGIN CERTIFICATE-----";
    if !pem.windows(begin.len()).any(|window| window == begin) {
        return Err(format!("the file {at} holds no certificate in PEM"));
    }
    Ok(pem)
}

fn zone(section: &mut Section<'_>) -> Option<ServerZone> {
    let name = section.text("time_zone")?;
    match ServerZone::parse("source.time_zone", name) {
        Ok(zone) => Some(zone),
        Err(error) => {
            section.wrong("time_zone", format!("{}; {}", error.message(), error.advice()));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, SourceConfig};
    use super::*;

    fn text(source: &str) -> String {
        format!(
            "[source]\nkind = \"sqlserver\"\n{source}\n[target]\nroot = \"lake\"\n[[tables]]\nsource = \
             \"dbo.t\"\n"
        )
    }

    fn environment(name: &str) -> Option<String> {
        (name == "PW").then(|| "planted".into())
    }

    fn parse(source: &str) -> Result<MssqlConfig, String> {
        match Config::parse(&text(source), Path::new("/etc/cdc"), &environment) {
            Ok(config) => match config.source {
                SourceConfig::SqlServer(config) => Ok(*config),
                SourceConfig::Fake(_) => panic!("a SQL Server"),
            },
            Err(problems) => {
                let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
                Err(lines.join("\n"))
            }
        }
    }

    const LEAST: &str = "host = \"h\"\ndatabase = \"d\"\nuser = \"u\"\npassword_env = \"PW\"\n";

    #[test]
    fn the_least_is_host_database_and_login_and_the_rest_is_safe() {
        let config = parse(LEAST).expect("is right");
        assert_eq!((config.host.as_str(), config.port, config.database.as_str()), ("h", 1433, "d"));
        assert_eq!((config.encryption, config.trust), (Encryption::Required, Trust::System));
        let shown = format!("{:?}", config.login);
        assert!(shown.contains("***") && !shown.contains("planted"), "{shown}");
    }

    #[test]
    fn every_setting_is_taken() {
        let more = "port = 14330\nencryption = \"strict\"\ntls_trust_any = true\ntls_name = \"n\"\n\
                    time_zone = \"E. South America Standard Time\"\napplication = \"a\"\n\
                    read_only_intent = true\nmulti_subnet_failover = true\nconnect_timeout = \"5s\"\n\
                    silence_max = \"1h\"\nattempts_max = 9\nretry_pause_first = \"1s\"\n\
                    retry_pause_max = \"2s\"\nisolation = \"snapshot\"\nlock_timeout = \"5s\"\npacket_bytes = 4096\nidle_connections_max = 0\n";
        let config = parse(&format!("{LEAST}{more}")).expect("is right");
        assert_eq!((config.port, config.trust), (14_330, Trust::Any));
        assert_eq!(config.zone.and_then(ServerZone::iana), Some(chrono_tz::America::Sao_Paulo));
        assert_eq!(config.retry.attempts_max, 9);
        assert_eq!((config.packet_bytes, config.idle_connections_max), (4096, 0));
        assert_eq!(config.silence_max, Duration::from_secs(3_600));
        assert_eq!(config.isolation, RowIsolation::Snapshot);
        assert_eq!(config.lock_timeout, Some(Duration::from_secs(5)));
        let config = parse(&format!("{LEAST}lock_timeout = \"none\"\n")).expect("is right");
        assert_eq!((config.lock_timeout, config.isolation), (None, RowIsolation::ReadCommitted));
    }

    #[test]
    fn a_bulk_reader_is_taken_where_the_other_settings_allow_it() {
        let with = |more: &str| parse(&format!("{LEAST}{more}"));
        let named = with("bulk_reader = \"tiberius\"").expect("is right").bulk_reader;
        assert_eq!(named, Some(BulkReader::Tiberius));
        assert_eq!(with("").expect("is right").bulk_reader, None);
        let strict = "bulk_reader = \"mssql-tds\"\nencryption = \"strict\"\ntls_trust_any = true";
        for wrong in [strict, "bulk_reader = \"odbc\""] {
            let problems = with(wrong).expect_err(wrong);
            assert!(problems.contains("source.bulk_reader: "), "{problems}");
        }
    }

    #[test]
    fn a_login_is_one_of_three_and_never_stands_in_the_file() {
        let with = |login: &str| parse(&format!("host = \"h\"\ndatabase = \"d\"\n{login}"));
        assert!(matches!(with("token_env = \"PW\"").expect("right").login, Login::Token(_)));
        let command = with("login_command = [\"az\", \"account\"]").expect("right").login;
        assert_eq!(command, Login::TokenCommand(vec!["az".into(), "account".into()]));
        for (login, place) in [
            ("", "source.user: is missing"),
            ("user = \"u\"", "source.password_env: is missing"),
            ("user = \"u\"\ntoken_env = \"PW\"", "source.user: only one login"),
            ("user = \"u\"\npassword_env = \"NO\"", "source.password_env: the environment"),
            ("user = \"u\"\npassword = \"planted\"", "source.password: a secret must not"),
            ("login_command = []", "source.user: only one login"),
        ] {
            let problems = with(login).expect_err(login);
            assert!(problems.contains(place) && !problems.contains("planted"), "{problems}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_all_at_once() {
        let problems = parse(
            "port = 70000\nuser = \"u\"\npassword_env = \"PW\"\nencryption = \"on\"\n\
             tls_ca_file = \"no/such\"\ntime_zone = \"Sao Paulo\"\nhots = \"h\"\n",
        )
        .expect_err("is wrong");
        for place in [
            "source.host: is missing",
            "source.database: is missing",
            "source.port: 70000 is outside of 1 to 65535",
            "source.encryption: \"on\" is not",
            "source.tls_ca_file: the file /etc/cdc/no/such cannot be read",
            "source.time_zone:",
            "source.hots: is no setting",
        ] {
            assert!(problems.contains(place), "{place} in {problems}");
        }
    }
}
