//! LIKE's patterns, and texts found within texts, as a collation compares their characters.

use std::{cell::RefCell, rc::Rc};

use cdc_fake::{
    SqlResult,
    text_order::{folded, unaccented},
};

use super::{DEFAULT_COLLATION, precedence::is_national};
use crate::kind::{Collation, Kind};

/// A piece of a pattern.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// `%`
    Any,
    /// `_`
    One,
    /// `[a-c]`, `[^a-c]`: ranges of characters, and whether they are the ones that do not match.
    Set(Vec<(Weight, Weight)>, bool),
    Exactly(Weight),
}

/// What a character is in a comparison. Of two that differ in case alone, the lower sorts first.
pub(super) type Weight = (char, bool);

/// A character as it compares.
pub(super) fn weight(c: char, collation: Collation) -> Weight {
    if collation.binary {
        return (c, false);
    }
    if c.is_ascii() {
        return (c.to_ascii_lowercase(), !collation.ignores_case && c.is_ascii_uppercase());
    }
    let text = c.encode_utf8(&mut [0; 4]).to_owned();
    let first = |text: &str| text.chars().next().unwrap_or(c);
    let upper = !collation.ignores_case && {
        let plain = first(&unaccented(&text, collation));
        plain.is_uppercase()
    };
    (first(&folded(&text, collation)), upper)
}

/// Characters as they compare, one for each of the text.
pub(super) fn weights(text: &str, collation: Collation) -> Vec<Weight> {
    text.chars().map(|c| weight(c, collation)).collect()
}

/// True when `text` matches a LIKE pattern, with every blank of it counting.
///
/// # Errors
/// None today; a pattern that makes no sense matches nothing, as on the server.
pub(crate) fn like(
    text: &str,
    pattern: &str,
    escape: Option<char>,
    collation: Collation,
) -> SqlResult<bool> {
    Ok(matches(&cached_pieces(pattern, escape, collation), &weights(text, collation)))
}

/// A pattern that was read, with all that reading it depends on.
struct Cached {
    pattern: String,
    escape: Option<char>,
    collation: Collation,
    pieces: Rc<[Piece]>,
}

thread_local! {
    /// The pattern of the last row: a condition asks for the same one again and again.
    static LAST: RefCell<Option<Cached>> = const { RefCell::new(None) };
}

fn cached_pieces(pattern: &str, escape: Option<char>, collation: Collation) -> Rc<[Piece]> {
    LAST.with_borrow_mut(|last| {
        if let Some(cached) = last
            && cached.pattern == pattern
            && cached.escape == escape
            && cached.collation == collation
        {
            return Rc::clone(&cached.pieces);
        }
        let pieces: Rc<[Piece]> = pieces(pattern, escape, collation).into();
        *last = Some(Cached {
            pattern: pattern.to_owned(),
            escape,
            collation,
            pieces: Rc::clone(&pieces),
        });
        pieces
    })
}

/// True when a value matches a LIKE pattern: blanks at the end of a `char` or `varchar` do not have
/// to be in the pattern.
///
/// # Errors
/// As [`like`].
pub(crate) fn like_of_kinds(
    (text, kind): (&str, &Kind),
    (pattern, pattern_kind): (&str, &Kind),
    escape: Option<char>,
) -> SqlResult<bool> {
    let collation = kind.collation.or(pattern_kind.collation).unwrap_or(DEFAULT_COLLATION);
    if like(text, pattern, escape, collation)? {
        return Ok(true);
    }
    let blanks_count = is_national(&kind.sql_type) || is_national(&pattern_kind.sql_type);
    let trimmed = text.trim_end_matches(' ');
    Ok(!blanks_count && trimmed.len() < text.len() && {
        // Any number of the blanks may be left over.
        let pieces = cached_pieces(pattern, escape, collation);
        let all = weights(text, collation);
        let least = all.len() - (text.len() - trimmed.len());
        (least..all.len()).any(|end| matches(&pieces, all.get(..end).unwrap_or_default()))
    })
}

/// The place of the first match of PATINDEX in characters, from 0.
pub(super) fn first_match(pattern: &str, text: &str, collation: Collation) -> Option<usize> {
    let pieces = pieces(pattern, None, collation);
    let text = weights(text, collation);
    match pieces.split_first() {
        Some((Piece::Any, rest)) => {
            (0..=text.len()).find(|start| matches(rest, text.get(*start..).unwrap_or_default()))
        }
        _ => matches(&pieces, &text).then_some(0),
    }
}

/// The place of a text within another in characters, from 0, at `start` or later.
pub(super) fn position(
    needle: &str,
    text: &str,
    start: usize,
    collation: Collation,
) -> Option<usize> {
    let needle = weights(needle, collation);
    let text = weights(text, collation);
    let last = text.len().checked_sub(needle.len())?;
    (start..=last).find(|at| text.get(*at..*at + needle.len()) == Some(needle.as_slice()))
}

fn pieces(pattern: &str, escape: Option<char>, collation: Collation) -> Vec<Piece> {
    let characters: Vec<char> = pattern.chars().collect();
    let mut pieces = Vec::with_capacity(characters.len());
    let mut at = 0;
    while let Some(c) = characters.get(at).copied() {
        at += 1;
        let piece = match c {
            _ if Some(c) == escape => match characters.get(at) {
                Some(next) => {
                    at += 1;
                    Piece::Exactly(weight(*next, collation))
                }
                // Nothing is escaped: such a pattern matches nothing.
                None => Piece::Set(Vec::new(), false),
            },
            '%' if pieces.last() == Some(&Piece::Any) => continue,
            '%' => Piece::Any,
            '_' => Piece::One,
            '[' => match set(&characters, at, escape, collation) {
                Some((piece, end)) => {
                    at = end;
                    piece
                }
                None => Piece::Set(Vec::new(), false),
            },
            _ => Piece::Exactly(weight(c, collation)),
        };
        pieces.push(piece);
    }
    pieces
}

/// The set that begins behind a `[`, and where the pattern goes on; none without a `]`.
fn set(
    characters: &[char],
    mut at: usize,
    escape: Option<char>,
    collation: Collation,
) -> Option<(Piece, usize)> {
    let negated = characters.get(at) == Some(&'^');
    at += usize::from(negated);
    let mut ranges = Vec::new();
    let one = |at: &mut usize| -> Option<char> {
        let mut c = *characters.get(*at)?;
        *at += 1;
        if Some(c) == escape {
            c = *characters.get(*at)?;
            *at += 1;
        }
        Some(c)
    };
    let first = at;
    loop {
        match characters.get(at)? {
            // `[]]` is a set of `]`.
            ']' if at > first => return Some((Piece::Set(ranges, negated), at + 1)),
            _ => {}
        }
        let low = one(&mut at)?;
        let is_range = characters.get(at) == Some(&'-')
            && characters.get(at + 1).is_some_and(|next| *next != ']');
        let high = if is_range {
            at += 1;
            one(&mut at)?
        } else {
            low
        };
        ranges.push((weight(low, collation), weight(high, collation)));
    }
}

fn fits(piece: &Piece, c: Weight) -> bool {
    match piece {
        Piece::Any | Piece::One => true,
        Piece::Exactly(wanted) => *wanted == c,
        Piece::Set(ranges, negated) => {
            let within = ranges.iter().any(|(low, high)| *low <= c && c <= *high);
            // A set of nothing is a pattern that makes no sense.
            (within != *negated) && !ranges.is_empty()
        }
    }
}

/// Matches with one place to go back to: the last `%`.
fn matches(pieces: &[Piece], text: &[Weight]) -> bool {
    let (mut piece_at, mut text_at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match (pieces.get(piece_at), text.get(text_at)) {
            (None, None) => return true,
            (Some(Piece::Any), _) => {
                piece_at += 1;
                retry = Some((piece_at, text_at));
                continue;
            }
            (Some(piece), Some(c)) if fits(piece, *c) => {
                piece_at += 1;
                text_at += 1;
                continue;
            }
            _ => {}
        }
        match retry {
            Some((piece, begin)) if begin < text.len() => {
                retry = Some((piece, begin + 1));
                piece_at = piece;
                text_at = begin + 1;
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::{Length, SqlType};
    use proptest::prelude::*;

    use super::*;
    use cdc_fake::collation::named;

    const CI: &str = "SQL_Latin1_General_CP1_CI_AS";
    const CS: &str = "Latin1_General_CS_AS";
    const AI: &str = "Latin1_General_100_CI_AI";
    const BIN: &str = "Latin1_General_BIN2";

    #[test]
    fn a_pattern_matches_as_the_documentation_says() {
        for (text, pattern, escape, collation, matched) in [
            ("abc", "abc", None, CI, true),
            ("ABC", "a%", None, CI, true),
            ("ABC", "a%", None, CS, false),
            ("abc", "a_c", None, CI, true),
            ("abc", "a_", None, CI, false),
            ("", "%", None, CI, true),
            ("", "_", None, CI, false),
            ("5%", "5[%]", None, CI, true),
            ("50", "5[%]", None, CI, false),
            ("_n", "[_]n", None, CI, true),
            ("b", "[a-c]", None, CI, true),
            ("B", "[a-c]", None, CI, true),
            ("B", "[a-c]", None, BIN, false),
            // In dictionary order A lies between a and c.
            ("A", "[a-c]", None, CS, true),
            ("C", "[a-c]", None, CS, false),
            ("d", "[^a-c]", None, CI, true),
            ("-", "[-acdf]", None, CI, true),
            ("[", "[[]", None, CI, true),
            ("]", "]", None, CI, true),
            ("abc_d", "abc[_]d%", None, CI, true),
            ("10%off", "10!%%", Some('!'), CI, true),
            ("10-off", "10!%%", Some('!'), CI, false),
            ("a", "a!", Some('!'), CI, false),
            ("a", "[a", None, CI, false),
            ("É", "é", None, CI, true),
            ("É", "e", None, CI, false),
            ("É", "e", None, AI, true),
            ("abcabd", "%abd", None, CI, true),
            ("aaaa", "%a%a%a%a%", None, CI, true),
            ("mississippi", "%iss%ip%", None, CI, true),
            ("mississippi", "%iss%ix%", None, CI, false),
        ] {
            let collation = named(collation).expect(collation);
            assert_eq!(
                like(text, pattern, escape, collation),
                Ok(matched),
                "{text} LIKE {pattern}"
            );
        }
    }

    #[test]
    fn blanks_at_the_end_count_for_unicode_alone() {
        let kind = |sql_type| Kind::new(sql_type, false);
        let varchar = kind(SqlType::VarChar(Length::Max));
        let nvarchar = kind(SqlType::NVarChar(Length::Max));
        for (text, text_kind, pattern, pattern_kind, matched) in [
            ("abc  ", &varchar, "abc", &varchar, true),
            ("abc  ", &varchar, "abc ", &varchar, true),
            ("abc", &varchar, "abc ", &varchar, false),
            ("abc  ", &nvarchar, "abc", &nvarchar, false),
            ("abc  ", &varchar, "abc", &nvarchar, false),
            ("abc  ", &nvarchar, "abc%", &nvarchar, true),
        ] {
            let found = like_of_kinds((text, text_kind), (pattern, pattern_kind), None);
            assert_eq!(found, Ok(matched), "{text:?} LIKE {pattern:?}");
        }
    }

    #[test]
    fn a_text_is_found_where_it_first_is() {
        let ci = named(CI).expect(CI);
        assert_eq!(position("B", "abcb", 0, ci), Some(1));
        assert_eq!(position("B", "abcb", 2, ci), Some(3));
        assert_eq!(position("x", "abc", 0, ci), None);
        assert_eq!(position("abcd", "abc", 0, ci), None);
        assert_eq!(first_match("%[0-9]%", "ab3c", ci), Some(2));
        assert_eq!(first_match("[0-9]%", "ab3c", ci), None);
        assert_eq!(first_match("a%", "ab3c", ci), Some(0));
    }

    proptest! {
        #[test]
        fn a_text_without_wildcards_matches_itself_alone(a in "[a-c ]{0,6}", b in "[a-c ]{0,6}") {
            let binary = named(BIN).expect(BIN);
            prop_assert_eq!(like(&a, &b, None, binary), Ok(a == b));
        }

        #[test]
        fn what_stands_between_two_percents_is_found(a: String, b in "[a-z]{0,5}", c: String) {
            let binary = named(BIN).expect(BIN);
            let (text, pattern) = (format!("{a}{b}{c}"), format!("%{b}%"));
            prop_assert_eq!(like(&text, &pattern, None, binary), Ok(true));
        }

        #[test]
        fn no_pattern_makes_matching_panic(text: String, pattern: String, escape: Option<char>) {
            let _ = like(&text, &pattern, escape, named(CI).expect(CI));
        }
    }
}
