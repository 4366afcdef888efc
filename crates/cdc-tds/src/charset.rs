//! The bytes of `char` and `varchar`: code pages, and which of them a client means by the five
//! bytes that name a collation.

use cdc_tsql::code_page;
use encoding_rs::{
    BIG5, EUC_KR, Encoding, GBK, SHIFT_JIS, WINDOWS_874, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252,
    WINDOWS_1253, WINDOWS_1254, WINDOWS_1255, WINDOWS_1256, WINDOWS_1257, WINDOWS_1258,
};

use crate::fault::{Fault, Read};

/// UTF-8 as a code page.
const UTF8_PAGE: u16 = 65001;
/// Bits of the 32 in front of the sort id.
const IS_UTF8: u32 = 1 << 26;
const LOCALE: u32 = 0xF_FFFF;

/// How the texts of a collation are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    /// UTF-8.
    Utf8,
    /// A Windows code page.
    Page(&'static Encoding),
    /// A code page of DOS, 437 or 850.
    Dos(u16),
}

impl Charset {
    /// The charset of a code page.
    pub(crate) fn of_page(page: u16) -> Option<Self> {
        Some(Self::Page(match page {
            UTF8_PAGE => return Some(Self::Utf8),
            437 | 850 => return Some(Self::Dos(page)),
            874 => WINDOWS_874,
            932 => SHIFT_JIS,
            936 => GBK,
            949 => EUC_KR,
            950 => BIG5,
            1250 => WINDOWS_1250,
            1251 => WINDOWS_1251,
            1252 => WINDOWS_1252,
            1253 => WINDOWS_1253,
            1254 => WINDOWS_1254,
            1255 => WINDOWS_1255,
            1256 => WINDOWS_1256,
            1257 => WINDOWS_1257,
            1258 => WINDOWS_1258,
            _ => return None,
        }))
    }

    /// The charset that a client names by five bytes.
    pub(crate) fn of_wire(bytes: [u8; 5]) -> Read<Self> {
        let [a, b, c, d, sort_id] = bytes;
        let front = u32::from_le_bytes([a, b, c, d]);
        if front & IS_UTF8 != 0 {
            return Ok(Self::Utf8);
        }
        let page = match sort_id {
            0 => page_of_locale(front & LOCALE),
            sort_id => page_of_sort_id(sort_id),
        };
        page.and_then(Self::of_page).ok_or_else(|| {
            Fault::Unsupported(format!(
                "a collation with the locale {:#x} and the sort id {sort_id}",
                front & LOCALE
            ))
        })
    }

    /// Appends `text`; what the code page has no character for becomes `?`, as the server does.
    pub(crate) fn encode(self, text: &str, out: &mut Vec<u8>) {
        match self {
            Self::Page(page) if !text.is_ascii() => encode_page(page, text, out),
            Self::Dos(page) => out.extend_from_slice(&code_page::encode(text, page)),
            _ => out.extend_from_slice(text.as_bytes()),
        }
    }

    /// The text of bytes.
    ///
    /// # Errors
    /// Bytes that are no text in this charset.
    pub(crate) fn decode(self, bytes: &[u8]) -> Read<String> {
        let text = match self {
            Self::Utf8 => std::str::from_utf8(bytes).ok().map(str::to_owned),
            Self::Page(page) => page
                .decode_without_bom_handling_and_without_replacement(bytes)
                .map(std::borrow::Cow::into_owned),
            // Every byte has a character there.
            Self::Dos(page) => Some(code_page::decode(bytes, page).into_owned()),
        };
        text.ok_or(Fault::Malformed("a text holds bytes that its code page has no character for"))
    }
}

fn encode_page(page: &'static Encoding, text: &str, out: &mut Vec<u8>) {
    let mut encoder = page.new_encoder();
    let mut rest = text;
    loop {
        // Enough for the whole rest: two bytes a character, and more than any escape.
        out.reserve(rest.len().saturating_mul(2).saturating_add(16));
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, out, true);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            encoding_rs::EncoderResult::InputEmpty => return,
            encoding_rs::EncoderResult::OutputFull => {}
            encoding_rs::EncoderResult::Unmappable(_) => out.push(b'?'),
        }
    }
}

/// The code page of a Windows locale.
fn page_of_locale(locale: u32) -> Option<u16> {
    // The upper bits tell of another order of the same language.
    Some(match locale & 0xFFFF {
        0x041E => 874,
        0x0411 => 932,
        0x0804 | 0x1004 => 936,
        0x0412 => 949,
        0x0404 | 0x0C04 | 0x1404 => 950,
        0x0405
        | 0x040E
        | 0x0415
        | 0x0418
        | 0x041A..=0x041C
        | 0x0424
        | 0x0442
        | 0x081A
        | 0x101A
        | 0x141A => 1250,
        0x0402 | 0x0419 | 0x0422 | 0x0423 | 0x042F | 0x043F | 0x0440 | 0x0444 | 0x0450 | 0x046D
        | 0x0485 | 0x082C | 0x0843 | 0x0C1A | 0x201A => 1251,
        0x0408 => 1253,
        0x041F | 0x042C | 0x0443 => 1254,
        0x040D => 1255,
        0x0401 | 0x0420 | 0x0429 | 0x0480 | 0x048C | 0x045A => 1256,
        0x0425..=0x0427 => 1257,
        0x042A => 1258,
        // A client that names no locale means the server's default.
        0 => 1252,
        // Languages without a code page of their own cannot be the locale of such a text.
        0x0439
        | 0x0445..=0x044D
        | 0x0451
        | 0x0453
        | 0x0454
        | 0x0457
        | 0x0461
        | 0x0463
        | 0x0465
        | 0x0481 => return None,
        _ => 1252,
    })
}

/// The code page of a collation of the old kind.
const fn page_of_sort_id(sort_id: u8) -> Option<u16> {
    Some(match sort_id {
        30..=34 => 437,
        40..=44 | 49 | 55..=61 => 850,
        50..=54 | 71..=75 | 183..=186 => 1252,
        80..=96 => 1250,
        104..=108 => 1251,
        112..=124 => 1253,
        128..=130 => 1254,
        136..=138 => 1255,
        144..=146 => 1256,
        152..=160 => 1257,
        192 | 193 | 200 => 932,
        194 | 195 | 201 => 949,
        196 | 197 | 202 => 950,
        198 | 199 | 203 => 936,
        204..=206 => 874,
        _ => return None,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use cdc_tsql::kind::Collation;
    use proptest::prelude::*;

    use super::*;

    /// A collation of a name, an order and a code page.
    const fn collation(name: &'static str, lcid: u32, sort_id: u8, code_page: u16) -> Collation {
        Collation {
            name,
            lcid,
            flags: if code_page == 65001 { 0x4D } else { 0x0D },
            sort_id,
            code_page,
            ignores_case: true,
            ignores_accents: false,
            binary: false,
        }
    }

    /// The default of most servers.
    pub(crate) const LATIN: Collation = collation("SQL_Latin1_General_CP1_CI_AS", 0x409, 52, 1252);
    /// Greek, of the old Windows kind.
    pub(crate) const GREEK: Collation = collation("Greek_CI_AS", 0x408, 0, 1253);
    /// UTF-8.
    pub(crate) const UTF8: Collation =
        collation("Latin1_General_100_CI_AS_SC_UTF8", 0x409, 0, 65001);

    #[test]
    fn the_five_bytes_of_a_collation_name_its_code_page() {
        assert_eq!(LATIN.wire(), [0x09, 0x04, 0xD0, 0x00, 0x34]);
        assert_eq!(UTF8.wire(), [0x09, 0x04, 0xD0, 0x24, 0x00]);
        for collation in [LATIN, GREEK, UTF8] {
            let charset = Charset::of_wire(collation.wire()).expect("known");
            assert_eq!(Some(charset), Charset::of_page(collation.code_page));
        }
    }

    #[test]
    fn text_travels_in_its_code_page_and_what_has_no_place_there_is_a_question_mark() {
        let encoded = |page, text: &str| {
            let mut out = Vec::new();
            Charset::of_page(page).expect("a page").encode(text, &mut out);
            out
        };
        assert_eq!(encoded(1252, "\u{20ac}u\u{e4}"), [0x80, b'u', 0xE4]);
        assert_eq!(encoded(1253, "\u{3b1}\u{e4}\u{3b2}\u{1F600}."), [0xE1, b'?', 0xE2, b'?', b'.']);
        assert_eq!(encoded(932, "\u{3042}a"), [0x82, 0xA0, b'a']);
        assert_eq!(encoded(65001, "\u{e4}"), [0xC3, 0xA4]);
        assert_eq!(encoded(850, "\u{e4}\u{3b1}"), [0x84, b'?']);
    }

    #[test]
    fn bytes_without_a_character_are_refused() {
        assert!(Charset::Utf8.decode(&[0xC3]).is_err());
        assert!(Charset::of_page(1253).expect("a page").decode(&[0xAA]).is_err());
        assert!(Charset::of_wire([0x09, 0x04, 0xD0, 0, 1]).is_err());
        assert!(Charset::of_page(1).is_none());
    }

    proptest! {
        #[test]
        fn what_a_code_page_decodes_it_encodes_again(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            page in prop::sample::select(vec![437u16, 850, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258, 874]),
        ) {
            let charset = Charset::of_page(page).expect("a page");
            if let Ok(text) = charset.decode(&bytes) {
                let mut again = Vec::new();
                charset.encode(&text, &mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
