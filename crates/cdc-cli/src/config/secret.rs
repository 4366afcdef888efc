//! Secrets: never in the file, only in the environment or in a file of their own.

use std::path::Path;

pub(crate) use cdc_core::Secret;
use toml::{Table, Value};
use url::Url;

use super::problem::{self, Collector};

/// Where values of the environment come from.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Most bytes of a secret's file: a token or a key, not a data file given by mistake.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Parts of a key's name that make its value a secret.
const MARKS: [&str; 8] = [
    "password",
    "secret",
    "token",
    "account_key",
    "sas",
    "credential",
    "private_key",
    "passphrase",
];

/// True when the value of a key with this name is a secret.
pub(super) fn is_secret(key: &str) -> bool {
    let key = key.to_lowercase();
    !key.ends_with("_env")
        && !key.ends_with("_file")
        && MARKS.iter().any(|mark| {
            key.split('_').any(|part| part == *mark) || { mark.contains('_') && key.contains(mark) }
        })
}

/// Takes every literal secret out of a file, and says where it belongs: the values of keys that
/// name one, and the passwords of URLs. They are never looked at again, so no message can show
/// them.
pub(super) fn refuse_literals(table: &mut Table, path: &str, problems: &Collector) {
    let place = |key: &str| problem::path(path, key);
    let literal: Vec<_> = table
        .iter()
        .filter(|(key, value)| is_secret(key) && !value.is_table())
        .map(|(key, _)| key.clone())
        .collect();
    for key in literal {
        table.remove(&key);
        problems.add(
            place(&key),
            format!(
                "a secret must not stand in the file; give {key}_env = \"NAME\" of an environment \
                 variable, or {key}_file = \"PATH\" of a file that holds it"
            ),
        );
    }
    for (key, value) in table.iter_mut() {
        refuse_inside(value, &place(key), problems);
    }
}

fn refuse_inside(value: &mut Value, path: &str, problems: &Collector) {
    match value {
        Value::Table(inner) => refuse_literals(inner, path, problems),
        Value::Array(list) => {
            for (index, entry) in list.iter_mut().enumerate() {
                refuse_inside(entry, &format!("{path}[{index}]"), problems);
            }
        }
        Value::String(text) => {
            if let Some(bare) = without_password(text) {
                problems.add(path, "holds a password; a secret must not stand in the file");
                *text = bare;
            }
        }
        _ => {}
    }
}

/// A URL that holds a password, without it, whichever setting it is given to.
fn without_password(text: &str) -> Option<String> {
    let mut url = Url::parse(text).ok()?;
    url.password()?;
    // Only a URL without a host refuses, and that one has no password.
    url.set_password(None).ok();
    Some(if url.password().is_none() { url.into() } else { String::new() })
}

/// The value of an environment variable; what is wrong in words otherwise.
pub(super) fn from_environment(name: &str, environment: Environment<'_>) -> Result<Secret, String> {
    match environment(name) {
        Some(value) if !value.is_empty() => Ok(Secret::new(value)),
        Some(_) => Err(format!("the environment variable {name} is empty")),
        None => Err(format!("the environment variable {name} is not set")),
    }
}

/// The content of a file without the line end; what is wrong in words otherwise.
pub(super) fn from_file(path: &Path) -> Result<Secret, String> {
    let at = path.display();
    let cannot = |error: std::io::Error| format!("the file {at} cannot be read: {}", error.kind());
    let length = std::fs::metadata(path).map_err(cannot)?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!(
            "the file {at} has {length} bytes; a secret has at most {FILE_BYTES_MAX}"
        ));
    }
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    let value = text.trim_end_matches(['\r', '\n']);
    if value.is_empty() {
        return Err(format!("the file {at} is empty"));
    }
    Ok(Secret::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_recognised_and_their_references_are_not() {
        for key in [
            "password",
            "aws_secret_access_key",
            "azure_storage_account_key",
            "aws_session_token",
            "SAS",
        ] {
            assert!(is_secret(key), "{key}");
        }
        for key in ["password_env", "password_file", "aws_access_key_id", "aws_region", "sasquatch"]
        {
            assert!(!is_secret(key), "{key}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_taken_out_wherever_it_stands() {
        let text = "a = \"s3://k:planted@b/x\"\nb = [[\"https:k:planted@h\", \"s3://k@b\"]]\n\
                    [[c]]\nd = \"s3://b/k:planted@b\"\n";
        let mut table: Table = text.parse().expect("is TOML");
        let problems = Collector::default();
        refuse_literals(&mut table, "", &problems);
        let places: Vec<_> = problems.into_list().into_iter().map(|found| found.path).collect();
        assert_eq!(places, ["a", "b[0][0]"]);
        assert_eq!(table["a"].as_str(), Some("s3://k@b/x"));
        assert_eq!(table["b"][0][0].as_str(), Some("https://k@h/"));
        // Behind the host it is a path.
        assert_eq!(table["c"][0]["d"].as_str(), Some("s3://b/k:planted@b"));
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "***");
    }
}
