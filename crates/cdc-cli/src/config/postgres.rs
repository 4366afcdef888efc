//! The keys of a target with `kind = "postgres"`.

use std::{path::Path, time::Duration};

use cdc_postgres::{NulInText, PostgresConfig, Tls, Trust};

use super::{
    resolve,
    secret::Environment,
    section::Section,
    sqlserver::{authorities, given, within},
};

/// The longest that a server may be waited for.
const WAIT_MAX: Duration = Duration::from_secs(86_400);
/// Most bytes of rows in memory, a table.
const STAGE_BYTES_MAX: u64 = 1 << 30;

pub(super) fn read(
    mut section: Section<'_>,
    base: &Path,
    environment: Environment<'_>,
) -> Option<PostgresConfig> {
    let host = section.required("host", "the server's name, or the directory of its socket");
    let database = section.required("database", "the database of the tables");
    let user = section.required("user", "who logs in");
    let password = given(&mut section, "password_env", "password_file", base, environment);
    let complete =
        host.is_some() && database.is_some() && user.is_some() && !matches!(password, Some(None));
    // What else is wrong is said too.
    let mut config = PostgresConfig::new(
        host.unwrap_or_default(),
        database.unwrap_or_default(),
        user.unwrap_or_default(),
    );
    config.password = password.flatten();
    config.port = within(&mut section, "port", 1, 65_535, config.port);
    if let Some(schema) = section.text("schema") {
        config.schema = schema.to_owned();
    }
    if let Some(name) = section.text("application") {
        config.application = name.to_owned();
    }
    config.tls = tls(&mut section, base);
    let words = [("refuse", NulInText::Refuse), ("replace", NulInText::Replace)];
    if let Some(nul) = section.word("nul_in_text", &words) {
        config.nul_in_text = nul;
    }
    limits(&mut section, &mut config);
    section.finish();
    complete.then_some(config)
}

fn limits(section: &mut Section<'_>, config: &mut PostgresConfig) {
    let millisecond = Duration::from_millis(1);
    for (key, place) in [
        ("connect_timeout", &mut config.connect_timeout),
        ("lock_timeout", &mut config.lock_timeout),
        ("idle_transaction_max", &mut config.idle_transaction_max),
    ] {
        if let Some(duration) = section.duration(key, millisecond, WAIT_MAX) {
            *place = duration;
        }
    }
    let connections = config.connections_max;
    config.connections_max = within(section, "connections_max", 1, 1_000, connections);
    if let Some(bytes) = section.size("stage_bytes_max") {
        match usize::try_from(bytes.get()) {
            Ok(size) if bytes.get() <= STAGE_BYTES_MAX => config.stage_bytes_max = size,
            _ => section.wrong("stage_bytes_max", "is more than 1GiB"),
        }
    }
}

fn tls(section: &mut Section<'_>, base: &Path) -> Tls {
    let file = section.text("tls_ca_file");
    let off = section.word("tls", &[("required", false), ("off", true)]).unwrap_or(false);
    match (file, off) {
        (None, true) => Tls::Off,
        (None, false) => Tls::Required(Trust::System),
        (Some(_), true) => {
            section.wrong("tls_ca_file", "stands beside tls = \"off\"; give one of the two");
            Tls::Off
        }
        (Some(file), false) => match authorities(&resolve(base, file)) {
            Ok(pem) => Tls::Required(Trust::Authority(pem)),
            Err(message) => {
                section.wrong("tls_ca_file", message);
                Tls::default()
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, TargetKind};
    use super::*;

    const SERVER: &str = "host = \"db\"\ndatabase = \"copies\"\nuser = \"cdc\"\n";

    fn text(targets: &str) -> String {
        let source = "[source]\nkind = \"fake\"\n";
        format!("{source}{targets}[[tables]]\nsource = \"dbo.planes\"\n")
    }

    fn parse(targets: &str) -> Result<Config, Vec<String>> {
        let known = |name: &str| (name == "PW").then(|| "planted-password".to_owned());
        Config::parse(&text(targets), Path::new("/etc/cdc"), &known)
            .map_err(|list| list.iter().map(ToString::to_string).collect())
    }

    fn only(keys: &str) -> Result<PostgresConfig, Vec<String>> {
        let mut config = parse(&format!("[target]\nkind = \"postgres\"\n{keys}"))?;
        match config.targets.remove(0).kind {
            TargetKind::Postgres(server) => Ok(*server),
            TargetKind::Delta(_) => panic!("a PostgreSQL"),
        }
    }

    #[test]
    fn a_server_is_read_with_its_secret_and_its_limits() {
        let keys = format!(
            "{SERVER}port = 5433\npassword_env = \"PW\"\nschema = \"lake\"\ntls = \"off\"\n\
             nul_in_text = \"replace\"\nconnections_max = 3\nlock_timeout = \"5s\"\n\
             stage_bytes_max = \"8MiB\"\n"
        );
        let config = only(&keys).expect("is right");
        assert_eq!((config.host.as_str(), config.port), ("db", 5433));
        assert_eq!((config.schema.as_str(), config.connections_max), ("lake", 3));
        assert_eq!(config.nul_in_text, NulInText::Replace);
        assert_eq!(config.tls, Tls::Off);
        assert_eq!((config.lock_timeout.as_secs(), config.stage_bytes_max), (5, 8 << 20));
        assert!(!format!("{config:?}").contains("planted"));
        assert_eq!(only(SERVER).expect("is right").tls, Tls::Required(Trust::System));
    }

    #[test]
    fn every_problem_is_said_at_once() {
        let keys = "host = \"db\"\nport = 0\nschem = \"x\"\ntls = \"maybe\"\n\
                    password = \"planted-password\"\nstage_bytes_max = \"2GiB\"\n";
        let problems = only(keys).expect_err("is wrong");
        assert!(!problems.join("\n").contains("planted"));
        for path in [
            "target.password:",
            "target.database: is missing",
            "target.user: is missing",
            "target.port: 0 is outside",
            "target.schem: is no setting; did you mean \"schema\"?",
            "target.tls: \"maybe\" is not",
            "target.stage_bytes_max: is more than 1GiB",
        ] {
            assert!(problems.iter().any(|line| line.starts_with(path)), "{path} {problems:?}");
        }
    }

    #[test]
    fn several_targets_have_names_and_stand_alone() {
        let two =
            format!("[targets.lake]\nroot = \"lake\"\n[targets.db]\nkind = \"postgres\"\n{SERVER}");
        let config = parse(&two).expect("is right");
        let names: Vec<_> = config.targets.iter().map(|target| target.name.as_deref()).collect();
        assert_eq!(names, [Some("db"), Some("lake")]);
        assert_eq!(config.targets[0].place(), "postgres://db:5432/copies, schema public");
        let beside = format!("[target]\nroot = \"x\"\n{two}");
        for (targets, problem) in [
            (beside.as_str(), "target: stands beside targets"),
            ("[targets]\n", "targets: has no entry"),
            ("[targets.\"a/b\"]\nroot = \"x\"\n", "targets.\"a/b\": a target's name has"),
            ("[targets.lake]\nrot = \"x\"\n", "targets.lake.root: is missing"),
        ] {
            let problems = parse(targets).expect_err("is wrong");
            assert!(problems.iter().any(|line| line.starts_with(problem)), "{problems:?}");
        }
    }
}
