//! Whether the machine has a PostgreSQL that the tests can start one of their own from.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The name in `CDC_REQUIRE` and in reports.
pub const NAME: &str = "postgres";

/// Where Debian's package puts the programs: a directory for each version.
const PLACE: &str = "/usr/lib/postgresql";

/// What the tests start.
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_isready"];

/// Whether the programs are there, as Debian's package has them or on the path.
#[must_use]
pub fn is_installed() -> bool {
    let versions = fs::read_dir(PLACE).into_iter().flatten().flatten();
    let versions = versions.map(|entry| entry.path().join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = env::split_paths(&path).collect();
    versions.chain(on_path).any(|directory| is_complete(&directory))
}

fn is_complete(directory: &Path) -> bool {
    PROGRAMS.iter().all(|program| directory.join(program).is_file())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_part_of_the_programs_is_none() {
        let directory = tempfile::tempdir().unwrap();
        for program in PROGRAMS {
            assert!(!is_complete(directory.path()));
            fs::write(directory.path().join(program), "").unwrap();
        }
        assert!(is_complete(directory.path()));
    }
}
