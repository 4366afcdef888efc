//! The file of `--faults`: the trouble that statements meet, in TOML.

use std::{fs, path::Path, time::Duration};

use cdc_core::{Error, ErrorKind, Result};
use cdc_fake::{FakeServer, SqlError};
use serde::Deserialize;

/// Bytes of a file of faults: a list written by hand.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What is planted at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Faults {
    /// Errors, each meeting its kind of statement so often.
    #[serde(default)]
    error: Vec<PlantedError>,
    /// Connections that end in the middle of a result.
    #[serde(default)]
    kill: Vec<PlantedKill>,
    /// A pause of every statement, in milliseconds of the server's clock.
    slow_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlantedError {
    /// The server's number.
    number: i32,
    /// The text; a plain one when missing.
    #[serde(default = "planted")]
    message: String,
    /// `SELECT`, `INSERT`, `UPDATE`, `DELETE`, `MERGE`, `EXECUTE`, `COMMIT`, ...; any when missing.
    #[serde(default)]
    statement: String,
    /// How often.
    #[serde(default = "once")]
    times: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlantedKill {
    /// Rows that the client still gets.
    after_rows: u64,
}

fn planted() -> String {
    "planted failure".into()
}

const fn once() -> u64 {
    1
}

impl Faults {
    /// Reads a file.
    ///
    /// # Errors
    /// `Config` for a file that cannot be read or says what is not known.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let wrong = |reason: String| {
            Error::new(ErrorKind::Config, format!("the file of faults cannot be read: {reason}"))
                .with("file", file.display())
                .remedy("give a TOML file with [[error]], [[kill]] and slow_ms")
        };
        let size = fs::metadata(file).map_err(|error| wrong(error.to_string()))?.len();
        if size > FILE_BYTES_MAX {
            return Err(wrong(format!("it has {size} bytes, more than {FILE_BYTES_MAX}")));
        }
        let text = fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))
    }

    /// Plants them.
    pub(crate) fn plant(&self, server: &FakeServer) {
        let faults = server.faults();
        for error in &self.error {
            let raised = SqlError::new(error.number, error.message.clone());
            faults.inject(&error.statement, raised, error.times);
        }
        for kill in &self.kill {
            faults.kill_after_rows(kill.after_rows);
        }
        faults.slow(self.slow_ms.map(Duration::from_millis));
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::Timestamp;
    use cdc_fake::{VirtualClock, Zone};

    use super::*;

    #[test]
    fn a_file_plants_what_it_lists() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("faults.toml");
        let text = "slow_ms = 5\n[[error]]\nnumber = 1205\nstatement = \"SELECT\"\ntimes = 2\n\
                    [[kill]]\nafter_rows = 3\n";
        fs::write(&file, text).expect("is written");
        let server = FakeServer::new(VirtualClock::manual(Timestamp::from_micros(0)), Zone::UTC);
        Faults::read(&file).expect("well formed").plant(&server);
        let met = server.faults().meet("SELECT", true);
        assert_eq!(met.error.expect("planted").number, 1205);
        assert_eq!(met.pause, Some(Duration::from_millis(5)));
        assert_eq!(server.faults().meet("INSERT", false).error, None);
        let _ = server.faults().meet("SELECT", true);
        assert_eq!(server.faults().meet("SELECT", true).kill_after_rows, Some(3));
    }

    #[test]
    fn a_file_that_says_what_is_not_known_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("faults.toml");
        fs::write(&file, "[[error]]\nnumber = 1\ntiems = 2\n").expect("is written");
        let error = Faults::read(&file).expect_err("refused");
        assert!(error.report().contains("tiems"), "{}", error.report());
        assert!(Faults::read(&directory.path().join("nothing")).is_err());
    }
}
