//! Reads tables that this project wrote with Delta readers that share no code with the writer, and
//! compares them with the expected rows: every row, every column, every bound in the file
//! statistics.
//!
//! The comparison is a Python script, because the readers are Python packages. `readers/README.md`
//! describes the directory it reads.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
};

use crate::{
    Failure, Result,
    require::Required,
    steps,
    workspace::{self, Workspace, last_line, quietly},
};

/// The script and where it lies.
const SCRIPT: &str = "xtask/readers/compare.py";

/// Keeps Python from writing compiled files into the source tree.
const NO_COMPILED_FILES: &str = "-B";

/// A reader of Delta tables that is not the library we write with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// DuckDB with its delta extension: C++ on the kernel's C interface.
    DuckDb,
    /// Polars' plugin on the Rust kernel.
    PolarsDeltalake,
    /// ClickHouse's own reader in C++, embedded. Large, so only used when asked for or present.
    Chdb,
}

impl Reader {
    /// Every reader.
    pub const ALL: [Self; 3] = [Self::DuckDb, Self::PolarsDeltalake, Self::Chdb];

    /// The name in `CDC_REQUIRE`, in the script and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DuckDb => "duckdb",
            Self::PolarsDeltalake => "polars-deltalake",
            Self::Chdb => "chdb",
        }
    }

    /// What on the command line installs it.
    const fn install_option(self) -> &'static str {
        match self {
            Self::DuckDb | Self::PolarsDeltalake => "--install",
            Self::Chdb => "--with chdb",
        }
    }

    /// The packages, at the versions whose answers were checked. DuckDB's extension carries a
    /// signed binary for exactly one version of DuckDB.
    const fn packages(self) -> &'static [&'static str] {
        match self {
            Self::DuckDb => &["duckdb==1.5.5", "duckdb-extension-delta==1.5.5"],
            Self::PolarsDeltalake => &["polars==2.1.0", "polars-deltalake==1.3.2"],
            Self::Chdb => &["chdb==4.4.0"],
        }
    }
}

impl FromStr for Reader {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|reader| reader.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Failure::new(format!("no reader {text:?}; there are {names}"))
        })
    }
}

/// What the command line asks for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Whether missing readers may be installed; a required reader always may.
    pub install: bool,
    /// Optional readers to use.
    pub with: Vec<Reader>,
    /// A directory to compare instead of one that is written anew.
    pub directory: Option<PathBuf>,
}

/// Which readers had their say. A reader that did not is never passed over in silence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// The readers whose answers equal the expected rows.
    pub by: Vec<&'static str>,
    /// The readers that cannot be used here.
    pub skipped: Vec<&'static str>,
}

/// Writes the fixture, unless a directory is given, and compares it in every reader at hand.
///
/// # Errors
/// When a reader disagrees with the expected rows, a required reader cannot be used, or the
/// fixture cannot be written.
pub fn run(workspace: &Workspace, required: &Required, request: &Request) -> Result<Compared> {
    let environment = Environment {
        directory: workspace.target.join("readers-venv"),
        script: workspace.root.join(SCRIPT),
    };
    let mut compared = Compared::default();
    let mut usable = Vec::new();
    for reader in Reader::ALL {
        let name = reader.name();
        let must = required.has(name) || request.with.contains(&reader);
        let optional = reader == Reader::Chdb && !must;
        let install = must || request.install && !optional;
        match environment.prepare(reader, install) {
            Ok(python) => usable.push((reader, python)),
            Err(reason) if must => return Err(Failure::caused(name, reason)),
            Err(reason) => {
                println!("SKIPPED readers: {name} ({reason})");
                compared.skipped.push(name);
            }
        }
    }
    if usable.is_empty() {
        return Ok(compared);
    }
    let directory = match &request.directory {
        Some(directory) => directory.clone(),
        None => write_fixture(workspace)?,
    };
    // Each reader has its say: what one of them finds tells more beside what the others find.
    let mut result = Ok(());
    for (reader, python) in usable {
        let mut command = Command::new(python);
        command
            .arg(NO_COMPILED_FILES)
            .arg(&environment.script)
            .args(["compare", "--reader", reader.name()])
            .arg(&directory);
        result = result.and(steps::run_to_end(&mut command));
        compared.by.push(reader.name());
    }
    result.map(|()| compared)
}

/// Has the test package write tables and their expected rows into an empty directory.
fn write_fixture(workspace: &Workspace) -> Result<PathBuf> {
    let directory = workspace.target.join("readers-data");
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(|e| Failure::caused(directory.display(), e))?;
    }
    fs::create_dir_all(&directory).map_err(|e| Failure::caused(directory.display(), e))?;
    let path = workspace::text(&directory);
    let arguments =
        ["run", "--quiet", "--package", "cdc-tests", "--bin", "reader_fixture", "--", &path];
    steps::run_to_end(&mut workspace.cargo(&arguments))?;
    Ok(directory)
}

/// A private Python environment below the build directory, and the script that runs in it.
struct Environment {
    directory: PathBuf,
    script: PathBuf,
}

impl Environment {
    /// The Python that can use the reader.
    fn prepare(&self, reader: Reader, install: bool) -> Result<PathBuf> {
        let python = self.directory.join("bin/python");
        let candidates = [python.clone(), PathBuf::from("python3")];
        let mut reason = Failure::new("python3 not found");
        for candidate in candidates {
            match self.probe(&candidate, reader) {
                Ok(()) => return Ok(candidate),
                Err(why) => reason = why,
            }
        }
        if !install {
            let option = reader.install_option();
            return Err(Failure::new(format!("{reason}; cargo xtask readers {option} brings it")));
        }
        self.install(&python, reader)?;
        self.probe(&python, reader)?;
        Ok(python)
    }

    /// Asks the script whether the reader can be loaded; the answer is its last line.
    fn probe(&self, python: &Path, reader: Reader) -> Result<()> {
        let output = Command::new(python)
            .arg(NO_COMPILED_FILES)
            .arg(&self.script)
            .args(["probe", "--reader", reader.name()])
            .output()
            .map_err(|_| Failure::new("python3 not found"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(Failure::new(last_line(&output.stderr)))
    }

    fn install(&self, python: &Path, reader: Reader) -> Result<()> {
        if !python.exists() {
            let mut create = Command::new("python3");
            create.args(["-m", "venv"]).arg(&self.directory);
            quietly(&mut create, "python3 -m venv")?;
        }
        let packages = reader.packages();
        println!("installing {}", packages.join(" "));
        let mut install = Command::new(python);
        install
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(packages);
        quietly(&mut install, "pip install")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::require;

    #[test]
    fn each_reader_can_be_required_by_its_name() {
        for reader in Reader::ALL {
            assert!(require::NAMES.contains(&reader.name()), "{reader:?}");
            assert_eq!(reader.name().parse::<Reader>().unwrap(), reader);
        }
    }

    #[test]
    fn each_package_has_an_exact_version() {
        for package in Reader::ALL.iter().flat_map(|reader| reader.packages()) {
            assert!(package.contains("=="), "{package}");
        }
    }

    #[test]
    fn the_comparison_finds_every_kind_of_difference() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("readers/check.py");
        let run = Command::new("python3").arg(NO_COMPILED_FILES).arg(script).output();
        match run {
            Ok(output) => assert!(output.status.success(), "{output:?}"),
            Err(e) => {
                let required = Required::from_env("").unwrap();
                let must = Reader::ALL.iter().any(|reader| required.has(reader.name()));
                assert!(!must, "python3: {e}");
                eprintln!("SKIPPED readers: the comparison's own tests (python3: {e})");
            }
        }
    }

    #[test]
    fn an_unknown_reader_lists_the_known_ones() {
        let refused = "spark".parse::<Reader>().unwrap_err().to_string();
        assert!(refused.contains("polars-deltalake"), "{refused}");
    }
}
