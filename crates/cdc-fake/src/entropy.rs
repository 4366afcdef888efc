//! Random numbers that a seed repeats.

use std::sync::atomic::{AtomicU64, Ordering};

use cdc_core::port::Entropy;

/// Numbers that look random and are the same for the same seed: SplitMix64.
#[derive(Debug)]
pub struct SeededEntropy(AtomicU64);

impl SeededEntropy {
    /// The numbers of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Entropy for SeededEntropy {
    fn next_u64(&self) -> u64 {
        let mut x = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_numbers_and_another_has_others() {
        let numbers = |seed| {
            let entropy = SeededEntropy::new(seed);
            [entropy.next_u64(), entropy.next_u64()]
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        assert_ne!(numbers(1)[0], numbers(1)[1]);
    }
}
