//! The source passes the source suite: without TLS, with TLS inside of the protocol, and with TLS
//! around it.

use cdc_fake::Zone;
use cdc_mssql::Encryption;

use crate::rig::{OverTds, block_on};

mod in_utc {
    use super::*;

    cdc_conformance::source_suite! {
        harness: async || OverTds::plain(Zone::UTC).await,
        block_on: block_on,
    }
}

mod in_new_york {
    use super::*;

    cdc_conformance::source_suite! {
        harness: async || OverTds::plain(Zone::Named(chrono_tz::America::New_York)).await,
        block_on: block_on,
    }
}

mod with_tls {
    use super::*;

    cdc_conformance::source_suite! {
        harness: async || OverTds::encrypted(Encryption::Required).await,
        block_on: block_on,
    }
}

mod strictly_encrypted {
    use super::*;

    cdc_conformance::source_suite! {
        harness: async || OverTds::encrypted(Encryption::Strict).await,
        block_on: block_on,
    }
}

/// The same by the second driver.
#[cfg(feature = "mssql-tds")]
mod by_mssql_tds {
    use cdc_mssql::BulkReader::MssqlTds;

    use super::*;

    mod in_utc {
        use super::*;

        cdc_conformance::source_suite! {
            harness: async || OverTds::plain(Zone::UTC).await.read_by(MssqlTds),
            block_on: block_on,
        }
    }

    mod in_new_york {
        use super::*;

        cdc_conformance::source_suite! {
            harness: async || {
                let zone = Zone::Named(chrono_tz::America::New_York);
                OverTds::plain(zone).await.read_by(MssqlTds)
            },
            block_on: block_on,
        }
    }

    mod with_tls {
        use super::*;

        cdc_conformance::source_suite! {
            harness: async || OverTds::encrypted(Encryption::Required).await.read_by(MssqlTds),
            block_on: block_on,
        }
    }
}
