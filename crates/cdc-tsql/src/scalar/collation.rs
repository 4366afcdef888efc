//! The collation of what is made of two texts.

use cdc_fake::{SqlError, SqlResult};

use crate::kind::Kind;

/// The operand whose collation a result of two texts has: one that was named with `COLLATE`, else
/// a column's, else the database's.
///
/// # Errors
/// 468 when two of the same rank differ.
pub(super) fn deciding<'k>(left: &'k Kind, right: &'k Kind) -> SqlResult<&'k Kind> {
    let rank = |kind: &Kind| match kind.collation {
        None => 0,
        Some(_) if kind.explicit_collation => 3,
        Some(_) if kind.fallback_collation => 1,
        Some(_) => 2,
    };
    match (left.collation, right.collation) {
        _ if rank(left) > rank(right) => Ok(left),
        _ if rank(left) < rank(right) => Ok(right),
        (Some(one), Some(other)) if one != other => Err(SqlError::new(
            468,
            format!(
                "cannot resolve the collation conflict between \"{}\" and \"{}\"",
                one.name, other.name
            ),
        )),
        _ => Ok(left),
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::{Length, SqlType};
    use cdc_fake::collation::named;

    use super::*;

    #[test]
    fn a_named_collation_beats_a_columns_and_two_equals_clash() {
        let kind = |name: Option<&str>, explicit| Kind {
            collation: name.map(|name| named(name).expect(name)),
            explicit_collation: explicit,
            ..Kind::new(SqlType::VarChar(Length::Limited(5)), true)
        };
        let fallback = |name| Kind { fallback_collation: true, ..kind(name, false) };
        let greek = Some("Greek_CI_AS");
        let latin = Some("Latin1_General_CI_AS");
        for (left, right, wins) in [
            (kind(None, false), kind(greek, false), Some("Greek_CI_AS")),
            (kind(latin, false), kind(None, false), Some("Latin1_General_CI_AS")),
            (kind(latin, false), kind(greek, true), Some("Greek_CI_AS")),
            (kind(latin, true), kind(greek, false), Some("Latin1_General_CI_AS")),
            (kind(None, false), kind(None, false), None),
            (fallback(latin), kind(greek, false), Some("Greek_CI_AS")),
            (kind(latin, false), fallback(greek), Some("Latin1_General_CI_AS")),
        ] {
            let found = deciding(&left, &right).expect("no conflict").collation;
            assert_eq!(found.map(|collation| collation.name), wins);
        }
        for explicit in [false, true] {
            let (latin, greek) = (kind(latin, explicit), kind(greek, explicit));
            let clash = deciding(&latin, &greek);
            assert_eq!(clash.expect_err("conflict").number, 468);
        }
    }
}
