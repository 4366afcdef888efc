//! The one library of the system that a part of the project needs: OpenSSL, for the second driver
//! of SQL Server.

use std::{env, process::Command};

use crate::workspace;

/// The feature that needs it, as it is named everywhere.
pub const MSSQL_TDS: &str = "mssql-tds";

/// Why the driver cannot be built on this machine, if it cannot.
#[must_use]
pub fn missing() -> Option<String> {
    let mut asked = Command::new("pkg-config");
    asked.args(["--exists", "openssl"]);
    let present = env::var_os("OPENSSL_DIR").is_some() || workspace::succeeds(&mut asked);
    (!present).then(|| {
        "OpenSSL and its headers are not installed; Debian has them as libssl-dev and pkg-config"
            .to_owned()
    })
}
