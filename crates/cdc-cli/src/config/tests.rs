//! The configuration as people write it: what is read, and what is refused in which words.

use super::*;

const GOOD: &str = r#"
[source]
kind = "fake"
zone = "America/New_York"

[source.fake]
data = "builtin"
rows = 100
until = "2013-11-03T12:00:00Z"

[target]
root = "lake"

[run]
rows_max = 1000
bytes_max = "64MiB"
poll_interval = "2s"
granularity = "day"
on_data_loss = "fail"

[metrics]
port = 9184

[[tables]]
source = "dbo.flights"
target = "flights"
start = "2013-11-03T06:00:00Z"

[[tables]]
instance = "dbo_planes"
start = "0x2A"
"#;

fn environment(name: &str) -> Option<String> {
    (name == "THE_KEY").then(|| "planted-secret".into())
}

fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    Config::parse(text, Path::new("/etc/cdc"), &environment)
}

fn fake(config: &Config) -> &FakeConfig {
    match &config.source {
        SourceConfig::Fake(config) => config,
        SourceConfig::SqlServer(_) => panic!("the simulated one"),
    }
}

fn problems(text: &str) -> Vec<String> {
    parse(text).expect_err("is wrong").iter().map(ToString::to_string).collect()
}

#[test]
fn a_whole_file_is_read_and_relative_paths_start_at_it() {
    let config = parse(GOOD).expect("is right");
    assert_eq!(delta(&config).root, "/etc/cdc/lake");
    assert!(delta(&config).storage.is_empty());
    assert_eq!(config.settings.limits.rows_max.get(), 1000);
    assert_eq!(config.settings.limits.bytes_max.get(), 64 << 20);
    assert_eq!(config.settings.poll_interval, Duration::from_secs(2));
    assert_eq!(config.settings.granularity, Granularity::Day);
    assert_eq!(config.metrics.map(|at| at.to_string()).as_deref(), Some("127.0.0.1:9184"));
    assert_eq!(fake(&config).rows, Some(100));
    let [flights, planes] = config.tables.as_slice() else { panic!("two tables") };
    assert_eq!(flights.start, StartAt::Since(Timestamp::from_micros(1_383_458_400_000_000)));
    assert_eq!(planes.target, "dbo_planes");
    assert!(matches!(planes.start, StartAt::After(at) if at.to_string().ends_with("2A")));
}

#[test]
fn what_is_left_out_takes_the_engines_defaults() {
    let text = "[source]\nkind = \"fake\"\n[target]\nroot = \"file:///srv/lake\"\n[[tables]]\nsource = \"dbo.flights\"\n";
    let config = parse(text).expect("is right");
    assert_eq!(config.settings, Settings::default());
    assert_eq!(*fake(&config), FakeConfig::default());
    assert_eq!(delta(&config).root, "file:///srv/lake");
    assert_eq!(config.metrics, None);
    assert_eq!(config.tables[0].start, StartAt::Earliest);
    assert_eq!(config.tables[0].target, "dbo_flights");
}

#[test]
fn a_file_with_ten_mistakes_shows_all_ten() {
    let text = r#"
[source]
kind = "fake"
zone = "America/New_Yrok"
password = "hunter2"

[source.fake]
capture = ["flights", "plains"]

[target]
rot = "lake"

[run]
poll_interval = "5"
bytes_max = 0
granularity = "hours"
on_data_loss = "skip"

[metrics]
port = 70000

[[tables]]
source = "flights"
start = "earlist"
"#;
    let expected = [
        "source.password: a secret must not stand in the file; give password_env = \"NAME\" of an \
         environment variable, or password_file = \"PATH\" of a file that holds it",
        "source.zone: \"America/New_Yrok\" is no IANA time zone; did you mean \"America/New_York\"?",
        "source.fake.capture[1]: \"plains\" is no table of the server; it has airlines, airports, \
         planes, flights; did you mean \"planes\"?",
        "target.root: is missing; give the path or URL that holds the tables",
        "target.rot: is no setting; did you mean \"root\"?",
        "run.bytes_max: 0 is not a size like \"256MiB\"",
        "run.poll_interval: \"5\" is not a duration like \"5s\" or \"2m\"",
        "run.granularity: \"hours\" is not \"minute\" or \"hour\" or \"day\"; did you mean \"hour\"?",
        "run.on_data_loss: \"skip\" is not \"fail\"",
        "metrics.port: 70000 is no port; allowed are 0 to 65535",
        "tables[0].source: \"flights\" is no table; write schema.table, with a part that holds a \
         dot or a blank in brackets: [my schema].[my.table]",
        "tables[0].start: \"earlist\" is no start; allowed are \"earliest\", \"latest\", a position \
         \"0x…\", or a moment with its offset like \"2013-11-03T06:00:00Z\"; did you mean \
         \"earliest\"?",
    ];
    assert_eq!(problems(text), expected);
    assert!(!problems(text).concat().contains("hunter2"));
}

#[test]
fn unknown_keys_are_errors_in_every_section() {
    let text = format!("{}\nbogus = 1\n[extra]\nx = 1\n", GOOD.replace("rows = 100", "rwos = 100"));
    let found = problems(&text);
    assert_eq!(
        found,
        [
            "source.fake.rwos: is no setting; did you mean \"rows\"?",
            "tables[1].bogus: is no setting; allowed are source, instance, target, start",
            "extra: is no setting; allowed are source, target, targets, run, metrics, tables",
        ]
    );
}

#[test]
fn two_tables_never_share_a_target_in_any_case() {
    let text = GOOD.replace("instance = \"dbo_planes\"", "instance = \"p\"\ntarget = \"FLIGHTS\"");
    assert_eq!(
        problems(&text),
        ["tables[1].target: \"FLIGHTS\" is the target of two tables; see tables[0].target"]
    );
}

#[test]
fn a_root_of_another_store_is_refused_with_what_this_build_writes() {
    for scheme in ["s3", "az", "abfss", "gs", "ftp", "https"] {
        let text = GOOD.replace("root = \"lake\"", &format!("root = \"{scheme}://lake/x\""));
        let expected = format!(
            "target.root: \"{scheme}://\" is no scheme of this build; this build writes local paths \
             and file:// URLs only"
        );
        assert_eq!(problems(&text), [expected]);
    }
    let up = parse(&GOOD.replace("root = \"lake\"", "root = \"../lake\"")).expect("is right");
    assert_eq!(delta(&up).root, "/etc/lake");
}

#[test]
fn a_local_root_takes_no_storage_options() {
    for root in ["lake", "file:///srv/lake"] {
        let storage = "[target.storage]\nregion = \"x\"\nkey_env = \"NOT_SET\"";
        let text = GOOD.replace("root = \"lake\"", &format!("root = \"{root}\"\n{storage}"));
        let expected = ["key_env", "region"]
            .map(|key| format!("target.storage.{key}: a local path takes no storage options"));
        let mut found = problems(&text);
        found.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_number_in_quotes_is_recognised() {
    let quoted = |from: &str, to: &str| problems(&GOOD.replace(from, to)).concat();
    let said = |path: &str, value: &str| format!("{path}: is a text; write {value} without quotes");
    assert_eq!(quoted("port = 9184", "port = \"9184\""), said("metrics.port", "9184"));
    assert_eq!(quoted("rows = 100", "rows = \"100\""), said("source.fake.rows", "100"));
    let flag = quoted("rows = 100", "workload = \"true\"");
    assert_eq!(flag, said("source.fake.workload", "true"));
    let none = quoted("port = 9184", "port = \"-1\"");
    assert_eq!(none, "metrics.port: \"-1\" is not a whole number of at least 0");
}

#[test]
fn a_secret_that_is_not_there_is_named_by_its_variable_or_file() {
    let text = GOOD.replace(
        "root = \"lake\"",
        "root = \"s3://lake/x\"\n[target.storage]\naws_secret_access_key_env = \"NOT_SET\"\n\
         aws_session_token_file = \"no/such/file\"\nazure_storage_account_key = \"planted\"",
    );
    assert_eq!(
        problems(&text),
        [
            "target.storage.azure_storage_account_key: a secret must not stand in the file; give \
         azure_storage_account_key_env = \"NAME\" of an environment variable, or \
         azure_storage_account_key_file = \"PATH\" of a file that holds it",
            "target.root: \"s3://\" is no scheme of this build; this build writes local paths and \
         file:// URLs only",
            "target.storage.aws_secret_access_key_env: the environment variable NOT_SET is not set",
            "target.storage.aws_session_token_file: the file /etc/cdc/no/such/file cannot be read: \
         entity not found",
        ]
    );
}

#[test]
fn a_syntax_error_shows_its_place_and_not_the_line() {
    let found = problems("[source]\npassword = \"hunter2\nkind = \"fake\"\n").concat();
    assert!(found.starts_with("line 2 column "), "{found}");
    assert!(!found.contains("hunter2"), "{found}");
}

#[test]
fn a_file_that_cannot_be_read_is_one_problem() {
    let load = |file: &Path| {
        let refusal = Config::load(file, &environment).expect_err("cannot be read");
        crate::report::Failure::from(refusal)
    };
    let missing = load(Path::new("no-such-file.toml"));
    let whole = std::path::absolute("no-such-file.toml").expect("is known");
    let expected = format!("configuration cannot be read: no such file file={}", whole.display());
    assert_eq!(missing.message, expected);
    assert_eq!(missing.advice, "give the path of a configuration file");
    let directory = tempfile::tempdir().expect("a directory");
    let message = load(directory.path()).message;
    assert!(message.contains("cannot be read: is a directory"), "{message}");
}

fn document(path: &str) -> String {
    let path = format!("{}/../../docs/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("is in the repository")
}

#[test]
fn every_snippet_of_the_guide_is_a_right_configuration() {
    let guide = document("guide/configuration.md");
    let snippets: Vec<_> = guide
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().expect("is closed"))
        .collect();
    let [whole, server, postgres, several, metrics] = snippets.as_slice() else {
        panic!("five snippets")
    };
    assert!(whole.contains("a path, from this file's directory, or a file:// URL\n"), "{whole}");
    let (_, rest) = whole.split_once("[target]").expect("has a target");
    let other = format!("{server}[target]{rest}");
    let known = ["CDC_PASSWORD", "CDC_PG_PASSWORD"];
    let login = |name: &str| known.contains(&name).then(|| "planted".to_owned());
    let (before, after) = whole.split_once("[target]\n").expect("has a target");
    let (_, after) = after.split_once("[[tables]]").expect("has tables");
    let into = |targets: &str| format!("{before}{targets}\n[[tables]]{after}");
    let many = [into(postgres), into(several)];
    for text in [whole.to_string(), format!("{whole}{metrics}"), other].iter().chain(&many) {
        let config = Config::parse(text, Path::new("/"), &login).expect("is right");
        assert_eq!(config.tables.len(), 2);
    }
}

#[test]
fn every_setting_is_in_the_reference() {
    let reference = document("reference/settings.md");
    let text = GOOD
        .replace("[run]", "[run]\nunlike = 1")
        .replace("zone =", "unlike = 1\nzone =")
        .replace("rows = 100", "rows = 100\nunlike = 1")
        .replace("root =", "unlike = 1\nroot =")
        .replace("port =", "unlike = 1\nport =")
        .replace("instance =", "unlike = 1\ninstance =");
    let mut problems = problems(&text);
    assert_eq!(problems.len(), 6, "{problems:?}");
    let server = "[source]\nkind = \"sqlserver\"\nunlike = 1\n[target]\nroot = \"lake\"\n\
                  [[tables]]\nsource = \"dbo.t\"\n";
    let other = parse(server).expect_err("is wrong").into_iter().map(|found| found.to_string());
    problems.extend(other.filter(|found| found.contains("unlike")));
    let target = "[source]\nkind = \"fake\"\n[target]\nkind = \"postgres\"\nunlike = 1\n\
                  [[tables]]\nsource = \"dbo.t\"\n";
    let other = parse(target).expect_err("is wrong").into_iter().map(|found| found.to_string());
    problems.extend(other.filter(|found| found.contains("unlike")));
    assert_eq!(problems.len(), 8, "{problems:?}");
    for problem in problems {
        let (_, keys) = problem.split_once("allowed are ").expect("lists what is allowed");
        for key in keys.split(", ") {
            let row = format!("| `{key}` |");
            let section = format!("`[{key}]`");
            let nested = format!(".{key}]`");
            let described = [row, section, nested].iter().any(|text| reference.contains(text));
            assert!(described, "{key} is not in settings.md");
        }
    }
}

#[test]
fn the_defaults_in_the_reference_are_the_engines() {
    let reference = document("reference/settings.md");
    let settings = Settings::default();
    let seconds = |pause: Duration| format!("\"{}s\"", pause.as_secs());
    for (key, default) in [
        ("rows_max", settings.limits.rows_max.to_string()),
        ("bytes_max", format!("\"{}GiB\"", settings.limits.bytes_max.get() >> 30)),
        ("batch_rows", settings.batch_rows.to_string()),
        ("tables_at_once", settings.tables_at_once.to_string()),
        ("poll_interval", seconds(settings.poll_interval)),
        ("progress_interval", seconds(settings.progress_interval)),
        ("silence_max", seconds(settings.silence_max)),
        ("attempts_max", settings.retry.attempts_max.to_string()),
        ("retry_pause_first", format!("\"{}ms\"", settings.retry.pause_first.as_millis())),
        ("retry_pause_max", seconds(settings.retry.pause_max)),
        ("granularity", format!("\"{}\"", settings.granularity)),
        ("seed", FakeConfig::default().seed.to_string()),
    ] {
        let row = format!("| `{key}` | `{default}` |");
        assert!(reference.contains(&row), "{row}");
    }
}

/// The only target, which is of Delta tables.
fn delta(config: &Config) -> &DeltaTarget {
    match &config.targets[0].kind {
        TargetKind::Delta(delta) => delta,
        TargetKind::Postgres(_) => panic!("Delta tables"),
    }
}
