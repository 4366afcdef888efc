//! What the tests of this part share: the facts of a statement.

use super::{DEFAULT_COLLATION, Facts};
use crate::relation::{Moment, Settings};

/// 2026-11-01 05:30:00.1234567 UTC on a server an hour ahead.
pub(super) fn facts() -> Facts {
    Facts {
        now: Moment { utc_ticks: 17_935_110_001_234_567, offset_minutes: 60 },
        settings: Settings::default(),
        collation: DEFAULT_COLLATION,
    }
}
