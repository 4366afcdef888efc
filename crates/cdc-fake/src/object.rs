//! Object ids: the numbers that the catalogue knows tables, constraints and functions by.

/// The step between the ids of two objects that are created one after the other.
const STEP: u64 = 16_000_057;
/// The first object's id.
const FIRST: u64 = 901_578_250;
/// Ids wrap below the greatest `int`, a prime: no two of the first two thousand million meet.
const MODULUS: u64 = 2_147_483_647;
/// System objects have small ids; none of ours is one.
const RESERVED: u64 = 1_000_000;

/// The object id of the thing with this number.
#[must_use]
pub(crate) fn object_id(number: u32) -> i32 {
    let spread = FIRST.wrapping_add(u64::from(number).wrapping_mul(STEP)) % (MODULUS - RESERVED);
    i32::try_from(spread + RESERVED).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn objects_have_ids_of_their_own_above_the_systems() {
        let ids: BTreeSet<_> = (1..100_000).map(object_id).collect();
        assert_eq!(ids.len(), 99_999);
        assert!(ids.first().is_some_and(|least| *least >= 1_000_000));
    }
}
