//! Each rule against a tree with a planted breach, and all of them against a tree without one.

#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

use super::*;

const CORE_MANIFEST: &str = "[package]\nname = \"cdc-core\"\n[lints]\nworkspace = true\n\
    [dependencies]\narrow-array.workspace = true\n";
const CORE_BANS: &str = include_str!("../../../crates/cdc-core/clippy.toml");
const PORT: &str = "//! The clock.\n\n/// Time.\n///\n/// # Contract\n/// Never goes back.\n\
    pub trait Clock {\n    /// Now.\n    fn now(&self) -> u64;\n}\n";

/// A tree that breaks no rule.
const CLEAN: [(&str, &str); 8] = [
    ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n"),
    ("ARCHITECTURE.md", "Invariant: `cdc-core` never does I/O.\n"),
    ("crates/cdc-core/Cargo.toml", CORE_MANIFEST),
    ("crates/cdc-core/clippy.toml", CORE_BANS),
    ("crates/cdc-core/src/lib.rs", "//! Core.\n\npub mod port;\n"),
    ("crates/cdc-core/src/port/clock.rs", PORT),
    ("fixtures/README.md", "| `a.csv` | rows |\n"),
    ("fixtures/a.csv", "1\n"),
];

/// What all rules say of the clean tree with these files put in or replaced.
fn found(planted: &[(&str, &str)]) -> Vec<String> {
    found_without("", planted)
}

/// The same, with one file of the clean tree taken out.
fn found_without(absent: &str, planted: &[(&str, &str)]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let clean = CLEAN.iter().filter(|(path, _)| *path != absent);
    for (path, text) in clean.chain(planted) {
        let full = directory.path().join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, text).unwrap();
    }
    let tree = Tree::walked(directory.path()).unwrap();
    check(&tree).iter().map(ToString::to_string).collect()
}

/// Asserts exactly one finding: this rule, at this place.
#[track_caller]
fn assert_found(planted: &[(&str, &str)], expected: &str) {
    assert_one(&found(planted), expected);
}

#[track_caller]
fn assert_one(found: &[String], expected: &str) {
    match found {
        [one] => assert!(one.starts_with(expected), "{one}\nis not\n{expected}"),
        other => panic!("expected {expected}, found {other:#?}"),
    }
}

fn package(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n{rest}")
}

/// An adapter with its manifest, and the map that knows it.
fn adapter<'t>(manifest: &'t str, source: &'t str) -> [(&'t str, &'t str); 3] {
    [
        ("crates/cdc-delta/Cargo.toml", manifest),
        ("crates/cdc-delta/src/lib.rs", source),
        ("ARCHITECTURE.md", "Invariant: `cdc-core` is pure.\nInvariant: `cdc-delta` is alone.\n"),
    ]
}

#[test]
fn a_clean_tree_has_no_findings() {
    assert_eq!(found(&[]), Vec::<String>::new());
}

#[test]
fn this_tree_has_no_findings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let tree = Tree::tracked(root).unwrap();
    let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(tree.has("xtask/src/tidy/tests.rs"), "the tree was not read");
}

#[test]
fn core_takes_no_dependency_beyond_its_list() {
    let manifest = format!("{CORE_MANIFEST}tokio.workspace = true\n");
    assert_found(
        &[("crates/cdc-core/Cargo.toml", &manifest)],
        "crates/cdc-core/Cargo.toml:7: core-stays-small: remove tokio;",
    );
}

#[test]
fn core_cannot_rename_a_dependency_into_its_list() {
    let manifest = format!("{CORE_MANIFEST}serde = {{ package = \"reqwest\", version = \"1\" }}\n");
    assert_found(
        &[("crates/cdc-core/Cargo.toml", &manifest)],
        "crates/cdc-core/Cargo.toml:7: core-stays-small: remove reqwest;",
    );
}

#[test]
fn core_cannot_take_a_dependency_through_the_workspace_under_another_name() {
    let manifest = format!("{CORE_MANIFEST}serde.workspace = true\n");
    assert_found(
        &[
            ("crates/cdc-core/Cargo.toml", &manifest),
            (
                "Cargo.toml",
                "[workspace.dependencies]\nserde = { package = \"reqwest\", version = \"1\" }\n",
            ),
            ("adr/0004-dependencies-and-build-cost.md", "| `serde` | wire forms |\n"),
        ],
        "crates/cdc-core/Cargo.toml:7: core-stays-small: remove reqwest;",
    );
}

#[test]
fn core_takes_no_dependency_for_one_platform_either() {
    let manifest = format!("{CORE_MANIFEST}[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n");
    assert_found(
        &[("crates/cdc-core/Cargo.toml", &manifest)],
        "crates/cdc-core/Cargo.toml:8: core-stays-small: remove libc;",
    );
}

#[test]
fn core_may_test_with_what_it_may_not_use() {
    let manifest = format!("{CORE_MANIFEST}[dev-dependencies]\nproptest.workspace = true\n");
    assert!(found(&[("crates/cdc-core/Cargo.toml", &manifest)]).is_empty());
}

#[test]
fn adapters_never_see_each_other() {
    let fake = package("cdc-fake", "");
    let delta = package(
        "cdc-delta",
        "[dependencies]\ncdc-core.workspace = true\n[dev-dependencies]\ncdc-fake.workspace = true\n",
    );
    assert_found(
        &[
            ("crates/cdc-fake/Cargo.toml", &fake),
            ("crates/cdc-fake/clippy.toml", CORE_BANS),
            ("crates/cdc-delta/Cargo.toml", &delta),
            (
                "ARCHITECTURE.md",
                "Invariant: `cdc-core`\nInvariant: `cdc-delta`\nInvariant: `cdc-fake`\n",
            ),
        ],
        "crates/cdc-delta/Cargo.toml:8: dependencies-point-inwards: cdc-delta may not use cdc-fake",
    );
}

#[test]
fn the_suites_are_a_dev_dependency_of_adapters_and_know_core_alone() {
    let suites = package("cdc-conformance", "[dependencies]\ncdc-core.workspace = true\n");
    let map = "Invariant: `cdc-core`\nInvariant: `cdc-delta`\nInvariant: `cdc-conformance`\n";
    let with = |manifest: &str, suites: &str| {
        found(&[
            ("crates/cdc-conformance/Cargo.toml", suites),
            ("crates/cdc-conformance/clippy.toml", CORE_BANS),
            ("crates/cdc-delta/Cargo.toml", manifest),
            ("ARCHITECTURE.md", map),
        ])
    };
    let dev = package("cdc-delta", "[dev-dependencies]\ncdc-conformance.workspace = true\n");
    assert_eq!(with(&dev, &suites), Vec::<String>::new());

    let normal = package("cdc-delta", "[dependencies]\ncdc-conformance.workspace = true\n");
    assert_one(
        &with(&normal, &suites),
        "crates/cdc-delta/Cargo.toml:6: dependencies-point-inwards: cdc-delta may not use \
         cdc-conformance: make it a dev-dependency",
    );

    let wide = package("cdc-conformance", "[dependencies]\ncdc-delta.workspace = true\n");
    assert_one(
        &with(&dev, &wide),
        "crates/cdc-conformance/Cargo.toml:6: dependencies-point-inwards: cdc-conformance may not \
         use cdc-delta",
    );
}

#[test]
fn core_and_tasks_use_nothing_of_the_workspace() {
    let task = package("xtask", "[dependencies]\ncdc-core.workspace = true\n");
    assert_found(
        &[("xtask/Cargo.toml", &task)],
        "xtask/Cargo.toml:6: dependencies-point-inwards: xtask may not use cdc-core",
    );
}

#[test]
fn the_test_package_sees_everything() {
    let tests = package("cdc-tests", "[dependencies]\ncdc-core.workspace = true\n");
    assert!(found(&[("tests/Cargo.toml", &tests)]).is_empty());
}

#[test]
fn a_package_without_the_shared_lints_is_found() {
    assert_found(
        &[("tests/Cargo.toml", "[package]\nname = \"cdc-tests\"\n")],
        "tests/Cargo.toml:1: lints-are-shared:",
    );
}

#[test]
fn a_package_outside_of_the_workspace_has_its_own_lints() {
    let manifest = "[package]\nname = \"cdc-fuzz\"\n";
    assert_found(&[("fuzz/Cargo.toml", manifest)], "fuzz/Cargo.toml:1: lints-are-shared:");
    let root = "[workspace]\nmembers = [\"crates/*\"]\nexclude = [\"fuzz\"]\n";
    assert_eq!(found(&[("Cargo.toml", root), ("fuzz/Cargo.toml", manifest)]), Vec::<String>::new());
}

#[test]
fn a_missing_ban_is_found() {
    let lines = CORE_BANS.lines();
    let without: Vec<&str> = lines.filter(|line| !line.contains("Instant::now")).collect();
    let found = found(&[("crates/cdc-core/clippy.toml", &without.join("\n"))]);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(
        found.iter().any(|finding| finding.starts_with(
            "crates/cdc-core/clippy.toml:1: bans-are-listed: list std::time::Instant::now"
        )),
        "{found:#?}"
    );
}

#[test]
fn a_ban_needs_a_reason() {
    let bare = CORE_BANS.replace(
        "{ path = \"chrono::Utc::now\", reason = \"time comes in through the Clock port\"",
        "{ path = \"chrono::Utc::now\"",
    );
    assert_found(
        &[("crates/cdc-core/clippy.toml", &bare)],
        "crates/cdc-core/clippy.toml:1: bans-are-listed: list chrono::Utc::now",
    );
}

#[test]
fn a_crate_that_must_replay_has_its_bans() {
    assert_one(
        &found_without("crates/cdc-core/clippy.toml", &[]),
        "crates/cdc-core/clippy.toml:1: bans-are-listed: add the file",
    );
    let without_setting = CORE_BANS.replace("allow-unwrap-in-tests = true", "");
    assert_found(
        &[("crates/cdc-core/clippy.toml", &without_setting)],
        "crates/cdc-core/clippy.toml:1: bans-are-listed: set allow-unwrap-in-tests = true",
    );
}

#[test]
fn a_ban_cannot_be_waived_in_the_source() {
    let source = "//! Core.\n\n#[allow(clippy::disallowed_methods)]\nfn f() {}\n";
    assert_found(
        &[("crates/cdc-core/src/lib.rs", source)],
        "crates/cdc-core/src/lib.rs:3: bans-are-not-waived:",
    );
}

#[test]
fn core_names_no_driver_even_in_private() {
    let source = "//! Core.\n\nfn f() {\n    tiberius::Client::new();\n}\n";
    assert_found(
        &[("crates/cdc-core/src/lib.rs", source)],
        "crates/cdc-core/src/lib.rs:4: drivers-stay-inside: move what needs tiberius",
    );
    let import = "//! Core.\n\nuse deltalake::DeltaTable;\n";
    assert_found(
        &[("crates/cdc-core/src/lib.rs", import)],
        "crates/cdc-core/src/lib.rs:3: drivers-stay-inside: move what needs deltalake",
    );
}

#[test]
fn no_public_signature_names_another_adapters_driver() {
    for (source, line) in [
        ("pub fn f(table: deltalake::DeltaTable) {}", 3),
        ("pub fn f() -> Vec<deltalake::DeltaTable> { Vec::new() }", 3),
        ("use deltalake::DeltaTable;\npub fn f(table: &DeltaTable) {}", 4),
        ("use deltalake as d;\npub fn f(table: &d::DeltaTable) {}", 4),
        ("pub fn f<T: datafusion::Provider>() {}", 3),
        ("pub fn f<T>() where T: datafusion::Provider {}", 3),
        ("pub struct A {\n    pub b: tiberius::Row,\n}", 4),
        ("pub struct A(pub tiberius::Row);", 3),
        ("pub enum A {\n    B(tiberius::Row),\n}", 4),
        ("pub trait A {\n    fn b(&self) -> delta_kernel::Snapshot;\n}", 4),
        ("pub trait A: tiberius::Query {}", 3),
        ("pub trait A {\n    type B: tiberius::Query;\n}", 4),
        ("struct A;\nimpl tiberius::Query for A {}", 4),
        ("struct A;\nimpl From<tiberius::Row> for A {}", 4),
        ("pub struct A;\nimpl A {\n    pub fn b(&self, row: tiberius::Row) {}\n}", 5),
        ("pub type A = tiberius::Row;", 3),
        ("pub const A: Option<tiberius::Row> = None;", 3),
        ("pub use deltalake::DeltaTable;", 3),
        ("use deltalake::*;", 3),
        ("pub mod a {\n    pub fn b(row: tiberius::Row) {}\n}", 4),
    ] {
        let manifest = package("cdc-other", "");
        let text = format!("//! Another.\n\n{source}\n");
        let found = found(&[
            ("crates/cdc-other/Cargo.toml", &manifest),
            ("crates/cdc-other/src/lib.rs", &text),
            ("ARCHITECTURE.md", "Invariant: `cdc-core`\nInvariant: `cdc-other`\n"),
        ]);
        let expected = format!("crates/cdc-other/src/lib.rs:{line}: drivers-stay-inside: use a");
        match found.as_slice() {
            [one] => assert!(one.starts_with(&expected), "{source}\n{one}"),
            other => panic!("{source}\n{other:#?}"),
        }
    }
}

#[test]
fn a_driver_may_be_used_inside_and_by_its_adapter() {
    let manifest = package("cdc-delta", "");
    let inside = "//! Delta.\n\npub fn f(table: deltalake::DeltaTable) {}\n";
    assert!(found(&adapter(&manifest, inside)).is_empty());

    let private = "//! Delta.\n\npub struct A {\n    row: tiberius::Row,\n}\n\nfn f(_: tiberius::Row) \
                   {}\n\npub fn g() {\n    tiberius::go();\n}\n";
    assert_eq!(found(&adapter(&manifest, private)), Vec::<String>::new());
}

#[test]
fn a_module_has_a_name_of_the_field() {
    for path in ["utils.rs", "helpers/a.rs", "common/mod.rs", "types.rs"] {
        let path = format!("crates/cdc-core/src/{path}");
        let expected = format!("{path}:1: modules-are-nouns:");
        assert_found(&[(&path, "//! Odds and ends.\n")], &expected);
    }
    assert_found(
        &[("crates/cdc-core/src/lib.rs", "//! Core.\n\nmod util {}\n")],
        "crates/cdc-core/src/lib.rs:3: modules-are-nouns:",
    );
}

#[test]
fn a_file_opens_with_what_it_is_for() {
    for text in ["pub mod port;\n", "//!\npub mod port;\n", "", "\n//! Late.\n"] {
        assert_found(
            &[("crates/cdc-core/src/lib.rs", text)],
            "crates/cdc-core/src/lib.rs:1: files-say-what-they-are-for:",
        );
    }
}

#[test]
fn a_file_is_short_without_its_tests() {
    let path = "crates/cdc-core/src/long.rs";
    let lines = "const _: () = ();\n".repeat(499);
    let longest = format!("//! Long.\n{lines}");
    assert!(found(&[(path, &longest)]).is_empty());

    let tested = format!("{longest}#[cfg(test)]\nmod tests {{\n{}}}\n", "//\n".repeat(100));
    assert!(found(&[(path, &tested)]).is_empty());

    let too_long = format!("{longest}const _: () = ();\n");
    assert_found(
        &[(path, &too_long)],
        &format!("{path}:501: files-are-short: split the file: 501"),
    );
    assert!(found(&[("crates/cdc-core/tests/long.rs", &too_long)]).is_empty());
    assert!(found(&[("crates/cdc-core/src/long/tests.rs", &too_long)]).is_empty());
}

#[test]
fn a_file_that_a_test_attribute_declares_is_a_test_file() {
    let long = format!("//! Long.\n{}", "const _: () = ();\n".repeat(500));
    let root = "//! Core.\n\n#[cfg(test)]\nmod cases;\n";
    assert!(
        found(&[("crates/cdc-core/src/lib.rs", root), ("crates/cdc-core/src/cases.rs", &long),])
            .is_empty()
    );
}

#[test]
fn long_tests_leave_the_file() {
    let tests = format!("//! A.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "//\n".repeat(198));
    assert_found(
        &[("crates/cdc-core/src/a.rs", &tests)],
        "crates/cdc-core/src/a.rs:2: long-tests-have-their-own-file: move the 201 lines",
    );
}

#[test]
fn a_function_is_short() {
    let path = "crates/cdc-core/src/a.rs";
    let function = |lines: usize| {
        let body = "    let _ = ();\n".repeat(lines - 2);
        format!("//! A.\n\nimpl A {{\n    /// Not counted.\n    fn f() {{\n{body}    }}\n}}\n")
    };
    assert!(found(&[(path, &function(70))]).is_empty());
    assert_found(
        &[(path, &function(71))],
        &format!("{path}:5: functions-are-short: split f: 71 lines"),
    );
}

#[test]
fn a_line_is_short() {
    let path = "crates/cdc-core/src/a.rs";
    let line = |columns: usize| format!("//! A.\n// {}\n", "ö".repeat(columns - 3));
    assert!(found(&[(path, &line(100))]).is_empty());
    assert_found(&[(path, &line(101))], &format!("{path}:2: lines-are-short: break the line: 101"));
}

#[test]
fn nothing_outside_tests_panics() {
    for call in [
        "a.unwrap()",
        "a\n.unwrap()",
        "a.expect(\"b\")",
        "a.map(Option::unwrap)",
        "panic!(\"b\")",
        "todo!()",
        "unimplemented!()",
        "unreachable!()",
        "vec![a.unwrap()]",
    ] {
        let source = format!("//! A.\n\nfn f() {{ {call}; }}\n");
        let found = found(&[("crates/cdc-core/src/a.rs", &source)]);
        assert_eq!(found.len(), 1, "{call}: {found:#?}");
        assert!(found[0].contains(": nothing-panics: return an error"), "{found:#?}");
    }
}

#[test]
fn tests_texts_and_fallbacks_may_say_unwrap() {
    let source = "//! Call unwrap() never.\n\n/// No `.unwrap()` here.\nfn f() {\n    g(\".unwrap()\");\n\
                  a.unwrap_or(b);\n}\n\n#[cfg(test)]\nmod tests {\n    fn f() { a.unwrap(); }\n}\n";
    assert!(found(&[("crates/cdc-core/src/a.rs", source)]).is_empty());
    let test = "//! A.\nfn f() { a.unwrap(); }\n";
    assert!(found(&[("tests/tests/it/main.rs", test)]).is_empty());
}

#[test]
fn no_test_is_ignored() {
    for source in ["#[ignore]\nfn f() {}\n", "#[ignore = \"slow\"]\nfn f() {}\n"] {
        assert_found(
            &[("crates/cdc-core/tests/a.rs", &format!("//! A.\n{source}"))],
            "crates/cdc-core/tests/a.rs:2: tests-are-not-ignored:",
        );
    }
}

#[test]
fn each_crate_has_one_invariant() {
    assert_one(
        &found_without("ARCHITECTURE.md", &[]),
        "ARCHITECTURE.md:1: each-crate-has-an-invariant: add a line",
    );
    assert_found(
        &[("ARCHITECTURE.md", "Invariant: `cdc-core` a\n\nInvariant: `cdc-core` b\n")],
        "ARCHITECTURE.md:3: each-crate-has-an-invariant: keep one",
    );
    assert_found(
        &[("ARCHITECTURE.md", "Invariant: `cdc-core` a\nInvariant: `cdc-gone` b\n")],
        "ARCHITECTURE.md:2: each-crate-has-an-invariant: name the crate",
    );
}

#[test]
fn each_fixture_is_catalogued_and_exists() {
    assert_found(
        &[("fixtures/types/b.csv", "")],
        "fixtures/types/b.csv:1: fixtures-are-catalogued: add it",
    );
    assert_one(
        &found_without("fixtures/a.csv", &[]),
        "fixtures/README.md:1: fixtures-are-catalogued: remove the row",
    );
    assert_found(
        &[("fixtures/README.md", "| `a.csv` | rows |\n| `a.csv` | again |\n")],
        "fixtures/README.md:2: fixtures-are-catalogued: keep one row",
    );
    assert_one(
        &found_without("fixtures/README.md", &[]),
        "fixtures/a.csv:1: fixtures-are-catalogued: add it",
    );
}

#[test]
fn each_dependency_has_a_reason_and_each_reason_its_dependency() {
    let manifest = "[workspace]\nmembers = [\"crates/*\"]\n[workspace.dependencies]\n\
        cdc-core = { path = \"crates/cdc-core\" }\nserde = \"1\"\n\
        serde_json = { package = \"x\", version = \"1\" }\n";
    let reasons = "adr/0004-dependencies-and-build-cost.md";
    let both = "| `serde`, `serde_json` (`x`) | wire forms |\n";
    assert_eq!(found(&[("Cargo.toml", manifest), (reasons, both)]), Vec::<String>::new());
    assert_found(
        &[("Cargo.toml", manifest), (reasons, "| `serde` | wire forms |\n")],
        "Cargo.toml:6: dependencies-have-a-reason: say in",
    );
    assert_found(
        &[("Cargo.toml", manifest), (reasons, &format!("{both}| `gone` | no more |\n"))],
        "adr/0004-dependencies-and-build-cost.md:2: dependencies-have-a-reason: remove gone",
    );
}

#[test]
fn each_page_is_linked_by_the_list_beside_it() {
    let page = ("docs/guide/first.md", "# First\n");
    assert_found(&[page], "docs/guide/first.md:1: pages-are-linked: link it in docs/guide/README");
    assert_eq!(
        found(&[page, ("docs/guide/README.md", "[first](first.md)\n")]),
        Vec::<String>::new()
    );
}

#[test]
fn a_port_states_its_contract_and_errors() {
    let path = "crates/cdc-core/src/port/clock.rs";
    let silent = PORT.replace("/// # Contract\n", "");
    assert_found(
        &[(path, &silent)],
        &format!("{path}:6: ports-state-their-contract: write a \"# Contract\" on Clock"),
    );
    let undocumented = PORT.replace("    /// Now.\n", "");
    assert_found(
        &[(path, &undocumented)],
        &format!("{path}:8: ports-state-their-contract: Clock::now: document"),
    );
    for returned in ["Result<u64>", "BoxStream<'_, Result<u64>>", "io::Result<u64>"] {
        let failing = PORT.replace("fn now(&self) -> u64", &format!("fn now() -> {returned}"));
        assert_found(
            &[(path, &failing)],
            &format!("{path}:9: ports-state-their-contract: Clock::now: write \"# Errors\""),
        );
        let stated = failing.replace("/// Now.\n", "/// Now.\n    /// # Errors\n    /// Never.\n");
        assert_eq!(found(&[(path, &stated)]), Vec::<String>::new());
    }
}

#[test]
fn no_file_names_a_path_of_a_machine() {
    for path in [concat!("/wo", "rk/a"), concat!("file:///ro", "ot/a")] {
        assert_found(
            &[("docs/a.md", &format!("See\n`{path}`\n"))],
            "docs/a.md:2: no-machine-paths:",
        );
    }
    let relative = concat!("a/ro", "ot/b and ../wo", "rk/c");
    assert_eq!(found(&[("docs/a.md", relative)]), Vec::<String>::new());
}

#[test]
fn a_file_that_does_not_parse_is_found() {
    assert_found(
        &[("crates/cdc-core/src/a.rs", "//! A.\nfn f( {}\n")],
        "crates/cdc-core/src/a.rs:2: parse: correct the syntax",
    );
}
