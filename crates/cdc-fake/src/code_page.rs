//! Code pages: the bytes of `char` and `varchar` texts.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding};

/// What stands for a character that a code page lacks.
const LACKING: u8 = b'?';

/// The number of UTF-8 among code pages.
pub const UTF_8: u16 = 65001;

/// The upper halves of the two code pages of IBM PCs that collations still name.
const CODE_PAGE_437: &str = concat!(
    "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒ",
    "áíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐",
    "└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀",
    "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
);
const CODE_PAGE_850: &str = concat!(
    "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒ",
    "áíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐",
    "└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀",
    "ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
);

/// A code page as this module knows it.
enum Page {
    Utf8,
    Encoding(&'static Encoding),
    /// A single-byte page by its upper half.
    Table(&'static str),
}

fn page(number: u16) -> Page {
    use encoding_rs as e;
    Page::Encoding(match number {
        UTF_8 => return Page::Utf8,
        437 => return Page::Table(CODE_PAGE_437),
        850 => return Page::Table(CODE_PAGE_850),
        874 => e::WINDOWS_874,
        932 => e::SHIFT_JIS,
        936 => e::GBK,
        949 => e::EUC_KR,
        950 => e::BIG5,
        1250 => e::WINDOWS_1250,
        1251 => e::WINDOWS_1251,
        1253 => e::WINDOWS_1253,
        1254 => e::WINDOWS_1254,
        1255 => e::WINDOWS_1255,
        1256 => e::WINDOWS_1256,
        1257 => e::WINDOWS_1257,
        1258 => e::WINDOWS_1258,
        _ => e::WINDOWS_1252,
    })
}

/// The bytes of a text in a code page; `?` for each character that the page lacks. A page that
/// collations do not have is read as 1252.
#[must_use]
pub fn encode(text: &str, code_page: u16) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text.as_bytes());
    }
    match page(code_page) {
        Page::Utf8 => Cow::Borrowed(text.as_bytes()),
        Page::Table(upper) => Cow::Owned(text.chars().map(|c| table_byte(upper, c)).collect()),
        Page::Encoding(encoding) => Cow::Owned(encode_with(encoding, text)),
    }
}

/// The text of bytes in a code page. Bytes that mean nothing there become U+FFFD.
#[must_use]
pub fn decode(bytes: &[u8], code_page: u16) -> Cow<'_, str> {
    match page(code_page) {
        Page::Utf8 => String::from_utf8_lossy(bytes),
        Page::Encoding(encoding) => encoding.decode_without_bom_handling(bytes).0,
        Page::Table(upper) => {
            let character = |byte: u8| match byte.checked_sub(128) {
                None => char::from(byte),
                Some(place) => {
                    upper.chars().nth(usize::from(place)).unwrap_or(char::REPLACEMENT_CHARACTER)
                }
            };
            Cow::Owned(bytes.iter().map(|byte| character(*byte)).collect())
        }
    }
}

/// The text that is left after it went through a code page: what the page lacks is `?`.
#[must_use]
pub fn narrowed(text: &str, code_page: u16) -> Cow<'_, str> {
    if code_page == UTF_8 || text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(decode(&encode(text, code_page), code_page).into_owned())
}

fn table_byte(upper: &str, character: char) -> u8 {
    if character.is_ascii() {
        return u8::try_from(character).unwrap_or(LACKING);
    }
    let place = upper.chars().position(|known| known == character);
    place.and_then(|place| u8::try_from(place + 128).ok()).unwrap_or(LACKING)
}

fn encode_with(encoding: &'static Encoding, text: &str) -> Vec<u8> {
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::with_capacity(text.len() + 8);
    let mut rest = text;
    loop {
        // Room for what is left, however the page writes it; at least two bytes a character.
        bytes.reserve(rest.len().saturating_mul(2) + 16);
        let (result, read) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => return bytes,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => {
                // A character of two UTF-16 units leaves two marks, as the server leaves them.
                bytes.extend(std::iter::repeat_n(LACKING, character.len_utf16()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_has_the_bytes_of_its_code_page() {
        for (text, code_page, bytes) in [
            ("plain", 1252, b"plain".as_slice()),
            ("é€", 1252, &[0xE9, 0x80]),
            ("Ω", 1253, &[0xD9]),
            ("Ω", 1252, b"?"),
            ("aΩb", 1252, b"a?b"),
            ("😀", 1252, b"??"),
            ("Ж", 1251, &[0xC6]),
            ("č", 1250, &[0xE8]),
            ("ş", 1254, &[0xFE]),
            ("あ", 932, &[0x82, 0xA0]),
            ("中", 936, &[0xD6, 0xD0]),
            ("한", 949, &[0xC7, 0xD1]),
            ("中", 950, &[0xA4, 0xA4]),
            ("é", 437, &[0x82]),
            ("ø", 850, &[0x9B]),
            ("ø", 437, b"?"),
            ("ก", 874, &[0xA1]),
            ("é", UTF_8, &[0xC3, 0xA9]),
        ] {
            assert_eq!(&*encode(text, code_page), bytes, "{text} in {code_page}");
        }
    }

    #[test]
    fn a_text_that_went_through_a_code_page_has_question_marks_for_the_rest() {
        assert_eq!(narrowed("Ωmega é", 1252), "?mega é");
        assert_eq!(narrowed("Ωmega é", 1253), "Ωmega ?");
        assert_eq!(narrowed("Ωmega é", UTF_8), "Ωmega é");
    }

    #[test]
    fn every_byte_of_a_table_page_comes_back() {
        for page in [437, 850] {
            let all: Vec<u8> = (0..=255).collect();
            let text = decode(&all, page).into_owned();
            assert!(!text.contains(char::REPLACEMENT_CHARACTER), "{page}");
            assert_eq!(&*encode(&text, page), all, "{page}");
        }
    }

    proptest! {
        #[test]
        fn what_a_page_can_write_comes_back(
            bytes: Vec<u8>,
            page in prop::sample::select(vec![437_u16, 850, 1250, 1251, 1252, 1253, 1254, 1257]),
        ) {
            let text = decode(&bytes, page).into_owned();
            prop_assume!(!text.contains(char::REPLACEMENT_CHARACTER));
            prop_assert_eq!(&*encode(&text, page), bytes);
            prop_assert_eq!(&*narrowed(&text, page), text.as_str());
        }
    }
}
