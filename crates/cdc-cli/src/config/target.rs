//! The section `[target]`, or several below `[targets]`: where the tables go. This build writes
//! Delta tables to the local file system, and tables of PostgreSQL.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use url::Url;

use super::{
    postgres, resolve,
    secret::{self, Environment, Secret},
    section::Section,
};

/// One of the places where the tables go.
#[derive(Clone, Debug)]
pub(crate) struct TargetConfig {
    /// Its name below `[targets]`; none for the only one.
    pub(crate) name: Option<String>,
    /// What it is.
    pub(crate) kind: TargetKind,
}

/// What a target is.
#[derive(Clone, Debug)]
pub(crate) enum TargetKind {
    /// Delta tables below a root.
    Delta(DeltaTarget),
    /// Tables of a PostgreSQL.
    Postgres(Box<cdc_postgres::PostgresConfig>),
}

/// Where Delta tables go.
#[derive(Clone, Debug)]
pub(crate) struct DeltaTarget {
    /// An absolute local path, or a URL.
    pub(crate) root: String,
    /// Options of the object store, by its own names.
    pub(crate) storage: BTreeMap<String, Secret>,
}

impl TargetConfig {
    /// Where it is, for people: never a secret.
    pub(crate) fn place(&self) -> String {
        match &self.kind {
            TargetKind::Delta(delta) => delta.root.clone(),
            TargetKind::Postgres(server) => {
                let (host, port) = (&server.host, server.port);
                format!("postgres://{host}:{port}/{}, schema {}", server.database, server.schema)
            }
        }
    }
}

/// What a root's text means.
enum Root {
    /// A local path or a URL of one.
    Local(String),
    /// A URL of a store that this build does not have, or none that can be used.
    Refused(String),
}

/// The targets: the section `[target]` alone, or each table below `[targets]` with its name.
pub(super) fn read(
    root: &mut Section<'_>,
    base: &Path,
    environment: Environment<'_>,
) -> Option<Vec<TargetConfig>> {
    let alone = root.section("target");
    if root.get("targets").is_none() {
        let kind = one(alone, base, environment)?;
        return Some(vec![TargetConfig { name: None, kind }]);
    }
    if alone.is_present() {
        root.wrong("target", "stands beside targets; give the one target, or several with names");
        return None;
    }
    let several = root.section("targets");
    let sections = several.named();
    if sections.is_empty() {
        root.wrong("targets", "has no entry; give [targets.NAME] for each target");
        return None;
    }
    let mut targets = Vec::new();
    let count = sections.len();
    for (name, section) in sections {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            several.wrong(name, "a target's name has letters, digits, dashes and underscores");
            continue;
        }
        if let Some(kind) = one(section, base, environment) {
            targets.push(TargetConfig { name: Some(name.to_owned()), kind });
        }
    }
    (targets.len() == count).then_some(targets)
}

#[derive(Clone, Copy)]
enum Kind {
    Delta,
    Postgres,
}

fn one(mut section: Section<'_>, base: &Path, environment: Environment<'_>) -> Option<TargetKind> {
    let words = [("delta", Kind::Delta), ("postgres", Kind::Postgres)];
    // Which keys are right depends on the kind.
    let kind = match section.get("kind") {
        None => Kind::Delta,
        Some(_) => section.word("kind", &words)?,
    };
    match kind {
        Kind::Delta => delta(section, base, environment).map(TargetKind::Delta),
        Kind::Postgres => {
            let config = postgres::read(section, base, environment)?;
            Some(TargetKind::Postgres(Box::new(config)))
        }
    }
}

fn delta(
    mut section: Section<'_>,
    base: &Path,
    environment: Environment<'_>,
) -> Option<DeltaTarget> {
    let text = section.required("root", "the path or URL that holds the tables");
    let root = text.map(|text| root(text, base));
    if let Some(Root::Refused(message)) = &root {
        section.wrong("root", message);
    }
    let options = section.section("storage");
    let storage = match &root {
        Some(Root::Local(_)) => {
            for (key, _) in options.entries() {
                options.wrong(key, "a local path takes no storage options");
            }
            BTreeMap::new()
        }
        _ => storage(&options, base, environment),
    };
    section.finish();
    match root? {
        Root::Local(root) => Some(DeltaTarget { root, storage }),
        Root::Refused(_) => None,
    }
}

fn root(text: &str, base: &Path) -> Root {
    if text.is_empty() {
        return Root::Refused("is empty; give the path or URL that holds the tables".into());
    }
    if !text.contains("://") {
        return Root::Local(normal(&resolve(base, text)).to_string_lossy().into_owned());
    }
    match Url::parse(text) {
        Ok(url) if url.scheme() == "file" => Root::Local(url.into()),
        Ok(url) => Root::Refused(format!(
            "\"{}://\" is no scheme of this build; this build writes local paths and file:// URLs \
             only",
            url.scheme()
        )),
        Err(error) => Root::Refused(format!("is no URL: {error}")),
    }
}

/// An absolute path without `.` and `..`, by its text alone: nothing of it need exist yet.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            // The root's own parent is the root.
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

fn storage(
    section: &Section<'_>,
    base: &Path,
    environment: Environment<'_>,
) -> BTreeMap<String, Secret> {
    let mut options = BTreeMap::new();
    for (key, value) in section.entries() {
        let Some(text) = value.as_str() else {
            section.wrong(key, "is not a text; options of the object store are texts");
            continue;
        };
        let (name, value) = if let Some(name) = key.strip_suffix("_env") {
            (name, secret::from_environment(text, environment))
        } else if let Some(name) = key.strip_suffix("_file").filter(|name| secret::is_secret(name))
        {
            (name, secret::from_file(&resolve(base, text)))
        } else {
            (key, Ok(Secret::new(text)))
        };
        match value {
            Ok(value) => {
                if options.insert(name.to_owned(), value).is_some() {
                    section.wrong(key, format!("{name} is given twice"));
                }
            }
            Err(message) => section.wrong(key, message),
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::{super::problem::Collector, *};

    #[test]
    fn a_path_with_steps_up_is_normal_and_never_leaves_the_root() {
        for (text, expected) in [
            ("../lake", "/etc/lake"),
            ("./a/../../b/./c", "/etc/b/c"),
            ("../../../../lake", "/lake"),
            ("/srv/lake/", "/srv/lake"),
            ("file:///srv/x/../lake", "file:///srv/lake"),
        ] {
            match root(text, Path::new("/etc/cdc")) {
                Root::Local(found) => assert_eq!(found, expected, "{text}"),
                Root::Refused(message) => panic!("{text}: {message}"),
            }
        }
    }

    #[test]
    fn options_are_read_from_the_file_the_environment_and_files_of_their_own() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("token"), "planted-token\n").expect("is written");
        let text = "region = \"eu-west-1\"\nsecret_access_key_env = \"THE_KEY\"\n\
                    session_token_file = \"token\"\n";
        let table: toml::Table = text.parse().expect("is TOML");
        let problems = Collector::default();
        let known = |name: &str| (name == "THE_KEY").then(|| "planted-secret".to_owned());
        let options = storage(&Section::root(&table, &problems), directory.path(), &known);
        assert_eq!(problems.into_list(), []);
        let shown: Vec<_> =
            options.iter().map(|(key, value)| (key.as_str(), value.reveal())).collect();
        let expected = [
            ("region", "eu-west-1"),
            ("secret_access_key", "planted-secret"),
            ("session_token", "planted-token"),
        ];
        assert_eq!(shown, expected);
        assert!(!format!("{options:?}").contains("planted"));
    }
}
