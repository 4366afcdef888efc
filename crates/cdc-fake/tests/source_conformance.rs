//! The fake source passes the source suite.

#![allow(clippy::expect_used, clippy::panic)]

mod fake_harness;

use cdc_fake::Zone;
use fake_harness::{Fake, block_on};

mod in_utc {
    use super::*;

    cdc_conformance::source_suite! {
        harness: async || Fake::new(Zone::UTC),
        block_on: block_on,
    }
}

mod in_new_york {
    use super::*;

    cdc_conformance::source_suite! {
        harness: async || Fake::new(Zone::Named(chrono_tz::America::New_York)),
        block_on: block_on,
    }
}

mod behind_a_plan_without_faults {
    use super::*;

    cdc_conformance::source_suite! {
        harness: async || Fake::new(Zone::UTC).wrapped(),
        block_on: block_on,
    }
}
