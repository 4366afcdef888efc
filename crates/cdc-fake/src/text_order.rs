//! How texts and binaries compare: the one rule behind keys, comparisons, groups and sorting.
//!
//! Texts compare without their trailing blanks, binaries without their trailing zeros. Within a
//! collation that is not binary, letters sort by the code point of their lower case; of two that
//! differ in case alone, the lower comes first.

use std::{borrow::Cow, cmp::Ordering};

use cdc_core::SqlType;
use icu_normalizer::DecomposingNormalizerBorrowed;

use crate::{
    code_page,
    collation::{Collation, IGNORE_KANA, IGNORE_WIDTH},
    key::append_ended,
};

/// How the texts of a column compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOrder {
    /// What is alike, and what the bytes of a code page are.
    pub collation: Collation,
    /// True for `char`, `varchar` and `text`, which are bytes of a code page.
    pub narrow: bool,
}

impl TextOrder {
    /// The order of a type's texts.
    #[must_use]
    pub const fn of(collation: Collation, sql_type: &SqlType) -> Self {
        let narrow = matches!(sql_type, SqlType::Char(_) | SqlType::VarChar(_) | SqlType::Text);
        Self { collation, narrow }
    }

    /// Adds bytes whose order is that of the texts; equal bytes are equal texts. No text's bytes
    /// begin another's.
    pub fn append_key(self, key: &mut Vec<u8>, text: &str) {
        let collation = self.collation;
        let text = text.trim_end_matches(' ');
        if collation.binary {
            append_ended(key, &self.binary_form(text));
            return;
        }
        append_ended(key, folded(text, collation).as_bytes());
        if !collation.ignores_case {
            let start = key.len();
            append_ended(key, unaccented(text, collation).as_bytes());
            // Inverted, for the lower case to come first.
            key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
        }
    }

    /// How two texts compare.
    #[must_use]
    pub fn compare(self, left: &str, right: &str) -> Ordering {
        let collation = self.collation;
        let (left, right) = (left.trim_end_matches(' '), right.trim_end_matches(' '));
        if left == right {
            return Ordering::Equal;
        }
        if collation.binary {
            return self.binary_form(left).cmp(&self.binary_form(right));
        }
        let ascii = left.is_ascii() && right.is_ascii();
        let folded_order = if ascii {
            let lower =
                |text: &'_ str| text.bytes().map(|b| b.to_ascii_lowercase()).collect::<Vec<_>>();
            match left.len().max(right.len()) {
                // Short texts are compared in place.
                0..=64 => {
                    let mut bytes = left.bytes().map(|b| b.to_ascii_lowercase());
                    let mut others = right.bytes().map(|b| b.to_ascii_lowercase());
                    loop {
                        match (bytes.next(), others.next()) {
                            (None, None) => break Ordering::Equal,
                            (None, Some(_)) => break Ordering::Less,
                            (Some(_), None) => break Ordering::Greater,
                            (Some(a), Some(b)) if a != b => break a.cmp(&b),
                            _ => {}
                        }
                    }
                }
                _ => lower(left).cmp(&lower(right)),
            }
        } else {
            folded(left, collation).as_bytes().cmp(folded(right, collation).as_bytes())
        };
        if collation.ignores_case || folded_order != Ordering::Equal {
            return folded_order;
        }
        unaccented(right, collation).as_bytes().cmp(unaccented(left, collation).as_bytes())
    }

    /// A text as a binary collation compares it: code points, or the bytes of a code page's types.
    fn binary_form(self, text: &str) -> Cow<'_, [u8]> {
        if self.narrow {
            code_page::encode(text, self.collation.code_page)
        } else {
            Cow::Borrowed(text.as_bytes())
        }
    }
}

/// A binary without its trailing zeros, which never count.
#[must_use]
pub fn significant(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.get(..end).unwrap_or_default()
}

/// A text with everything alike that the collation holds for equal, case included.
#[must_use]
pub fn folded(text: &str, collation: Collation) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    let plain = unaccented(text, collation);
    // The small sigma at a word's end is the same letter as elsewhere.
    let lower = plain.chars().flat_map(char::to_lowercase);
    Cow::Owned(lower.map(|c| if c == 'ς' { 'σ' } else { c }).collect())
}

/// A text with what the collation ignores besides case made alike: accents, width, kana type.
#[must_use]
pub fn unaccented(text: &str, collation: Collation) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let ignores = |flag| collation.flags & flag != 0;
    let alike = |c: char| match c {
        '\u{ff01}'..='\u{ff5e}' if ignores(IGNORE_WIDTH) => {
            char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
        }
        '\u{3000}' if ignores(IGNORE_WIDTH) => ' ',
        '\u{30a1}'..='\u{30f6}' if ignores(IGNORE_KANA) => {
            char::from_u32(u32::from(c) - 0x60).unwrap_or(c)
        }
        c => c,
    };
    if !collation.ignores_accents {
        return Cow::Owned(text.chars().map(alike).collect());
    }
    let apart = DecomposingNormalizerBorrowed::new_nfd().normalize(text);
    Cow::Owned(apart.chars().filter(|c| !is_mark(*c)).map(alike).collect())
}

/// True for a combining mark of the scripts that accents are written in.
fn is_mark(c: char) -> bool {
    [
        '\u{300}'..='\u{36f}',
        '\u{591}'..='\u{5bd}',
        '\u{64b}'..='\u{652}',
        '\u{1ab0}'..='\u{1aff}',
        '\u{1dc0}'..='\u{1dff}',
        '\u{3099}'..='\u{309a}',
    ]
    .iter()
    .any(|marks| marks.contains(&c))
}
