//! Collations by name: a table of locales, and the words that follow a locale's name.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use crate::code_page::UTF_8;

/// A collation by what it decides: how texts compare and in which bytes they travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collation {
    /// The server's name of it, `Latin1_General_CI_AS` for instance.
    pub name: &'static str,
    /// The Windows locale, 20 bits.
    pub lcid: u32,
    /// The protocol's eight comparison flags: 1 ignores case, 2 accents, 4 kana type, 8 width;
    /// 16 is `_BIN`, 32 `_BIN2`, 64 UTF-8.
    pub flags: u8,
    /// The sort id in the wire's five bytes; 0 for a Windows collation.
    pub sort_id: u8,
    /// The code page of `char` and `varchar`: 1252, 1253, ..., or 65001 for UTF-8.
    pub code_page: u16,
    /// True when upper and lower case are alike.
    pub ignores_case: bool,
    /// True when accents make no difference.
    pub ignores_accents: bool,
    /// True when texts compare by code point (`_BIN`, `_BIN2`).
    pub binary: bool,
}

impl Default for Collation {
    fn default() -> Self {
        DEFAULT_COLLATION
    }
}

impl Collation {
    /// By code point.
    pub const BINARY: Self = Self {
        name: "Latin1_General_BIN2",
        flags: BINARY_2,
        sort_id: 0,
        ignores_case: false,
        binary: true,
        ..DEFAULT_COLLATION
    };

    /// The five bytes that stand for the collation on the wire: 20 bits of locale, 8 of flags, 4
    /// of version, the sort id.
    #[must_use]
    pub fn wire(&self) -> [u8; 5] {
        let [low, middle, high, _] = self.lcid.to_le_bytes();
        let third = (high & 0x0F) | (self.flags << 4);
        let fourth = (self.flags >> 4) | (self.version() << 4);
        [low, middle, third, fourth, self.sort_id]
    }

    /// The generation of the sort tables, as the name tells it: `_90`, `_100`, `_140`.
    fn version(&self) -> u8 {
        let has = |part: &str| self.name.split('_').any(|word| word == part);
        match () {
            () if self.sort_id != 0 => 0,
            () if has("140") => 3,
            () if has("100") => 2,
            () if has("90") => 1,
            () => 0,
        }
    }
}

/// The collation of a database that names none.
pub const DEFAULT_COLLATION: Collation = Collation {
    name: "SQL_Latin1_General_CP1_CI_AS",
    lcid: 0x0409,
    flags: IGNORE_CASE | IGNORE_KANA | IGNORE_WIDTH,
    sort_id: 52,
    code_page: 1252,
    ignores_case: true,
    ignores_accents: false,
    binary: false,
};

/// Flags of [`Collation::flags`].
const IGNORE_CASE: u8 = 1;
const IGNORE_ACCENT: u8 = 2;
pub(crate) const IGNORE_KANA: u8 = 4;
pub(crate) const IGNORE_WIDTH: u8 = 8;
const BINARY: u8 = 16;
const BINARY_2: u8 = 32;
const UTF_8_FLAG: u8 = 64;

/// Names of Windows collations without their suffix, with locale and code page.
const LOCALES: &[(&str, u32, u16)] = &[
    ("Albanian", 0x0_041C, 1250),
    ("Arabic", 0x0_0401, 1256),
    ("Assamese", 0x0_044D, 1252),
    ("Azeri_Cyrillic", 0x0_082C, 1251),
    ("Azeri_Latin", 0x0_042C, 1254),
    ("Bashkir", 0x0_046D, 1251),
    ("Bosnian_Cyrillic", 0x0_201A, 1251),
    ("Bosnian_Latin", 0x0_141A, 1250),
    ("Breton", 0x0_047E, 1252),
    ("Chinese_Hong_Kong_Stroke", 0x0_0C04, 950),
    ("Chinese_PRC", 0x0_0804, 936),
    ("Chinese_PRC_Stroke", 0x2_0804, 936),
    ("Chinese_Simplified_Pinyin", 0x0_0804, 936),
    ("Chinese_Simplified_Stroke_Order", 0x2_0804, 936),
    ("Chinese_Taiwan_Bopomofo", 0x3_0404, 950),
    ("Chinese_Taiwan_Stroke", 0x0_0404, 950),
    ("Chinese_Traditional_Bopomofo", 0x3_0404, 950),
    ("Chinese_Traditional_Pinyin", 0x2_1404, 950),
    ("Chinese_Traditional_Stroke_Count", 0x0_0404, 950),
    ("Corsican", 0x0_0483, 1252),
    ("Croatian", 0x0_041A, 1250),
    ("Cyrillic_General", 0x0_0419, 1251),
    ("Czech", 0x0_0405, 1250),
    ("Danish_Greenlandic", 0x0_0406, 1252),
    ("Danish_Norwegian", 0x0_0406, 1252),
    ("Estonian", 0x0_0425, 1257),
    ("Finnish_Swedish", 0x0_040B, 1252),
    ("French", 0x0_040C, 1252),
    ("Frisian", 0x0_0462, 1252),
    ("Georgian_Modern_Sort", 0x1_0437, 1252),
    ("German_PhoneBook", 0x1_0407, 1252),
    ("Greek", 0x0_0408, 1253),
    ("Hebrew", 0x0_040D, 1255),
    ("Hungarian", 0x0_040E, 1250),
    ("Hungarian_Technical", 0x1_040E, 1250),
    ("Icelandic", 0x0_040F, 1252),
    ("Indic_General", 0x0_0439, 1252),
    ("Japanese", 0x0_0411, 932),
    ("Japanese_Bushu_Kakusu", 0x4_0411, 932),
    ("Japanese_Unicode", 0x1_0411, 932),
    ("Japanese_XJIS", 0x0_0411, 932),
    ("Kazakh", 0x0_043F, 1251),
    ("Korean", 0x0_0412, 949),
    ("Korean_Wansung", 0x0_0412, 949),
    ("Latin1_General", 0x0_0409, 1252),
    ("Latvian", 0x0_0426, 1257),
    ("Lithuanian", 0x0_0427, 1257),
    ("Macedonian_FYROM", 0x0_042F, 1251),
    ("Maltese", 0x0_043A, 1252),
    ("Maori", 0x0_0481, 1252),
    ("Mapudungan", 0x0_047A, 1252),
    ("Modern_Spanish", 0x0_0C0A, 1252),
    ("Mohawk", 0x0_047C, 1252),
    ("Norwegian", 0x0_0414, 1252),
    ("Persian", 0x0_0429, 1256),
    ("Polish", 0x0_0415, 1250),
    ("Romanian", 0x0_0418, 1250),
    ("Romansh", 0x0_0417, 1252),
    ("Sami_Norway", 0x0_043B, 1252),
    ("Sami_Sweden_Finland", 0x0_083B, 1252),
    ("Serbian_Cyrillic", 0x0_0C1A, 1251),
    ("Serbian_Latin", 0x0_081A, 1250),
    ("Slovak", 0x0_041B, 1250),
    ("Slovenian", 0x0_0424, 1250),
    ("Tamazight", 0x0_085F, 1252),
    ("Tatar", 0x0_0444, 1251),
    ("Thai", 0x0_041E, 874),
    ("Traditional_Spanish", 0x0_040A, 1252),
    ("Turkish", 0x0_041F, 1254),
    ("Turkmen", 0x0_0442, 1250),
    ("Uighur", 0x0_0480, 1256),
    ("Ukrainian", 0x0_0422, 1251),
    ("Upper_Sorbian", 0x0_042E, 1252),
    ("Urdu", 0x0_0420, 1256),
    ("Uzbek_Latin", 0x0_0443, 1254),
    ("Vietnamese", 0x0_042A, 1258),
    ("Welsh", 0x0_0452, 1252),
    ("Yakut", 0x0_0485, 1251),
];

/// The collations that are older than Windows' names: name, sort id, code page, locale.
const SORT_ORDERS: &[(&str, u8, u16, u32)] = &[
    ("SQL_Latin1_General_CP437_BIN", 30, 437, 0x0409),
    ("SQL_Latin1_General_CP437_CS_AS", 31, 437, 0x0409),
    ("SQL_Latin1_General_CP437_CI_AS", 32, 437, 0x0409),
    ("SQL_Latin1_General_Pref_CP437_CI_AS", 33, 437, 0x0409),
    ("SQL_Latin1_General_CP437_CI_AI", 34, 437, 0x0409),
    ("SQL_Latin1_General_CP850_BIN", 40, 850, 0x0409),
    ("SQL_Latin1_General_CP850_CS_AS", 41, 850, 0x0409),
    ("SQL_Latin1_General_CP850_CI_AS", 42, 850, 0x0409),
    ("SQL_Latin1_General_Pref_CP850_CI_AS", 43, 850, 0x0409),
    ("SQL_Latin1_General_CP850_CI_AI", 44, 850, 0x0409),
    ("SQL_1xCompat_CP850_CI_AS", 49, 850, 0x0409),
    ("SQL_Latin1_General_CP1_CS_AS", 51, 1252, 0x0409),
    ("SQL_Latin1_General_CP1_CI_AS", 52, 1252, 0x0409),
    ("SQL_Latin1_General_Pref_CP1_CI_AS", 53, 1252, 0x0409),
    ("SQL_Latin1_General_CP1_CI_AI", 54, 1252, 0x0409),
    ("SQL_AltDiction_CP850_CS_AS", 55, 850, 0x0409),
    ("SQL_AltDiction_Pref_CP850_CI_AS", 56, 850, 0x0409),
    ("SQL_AltDiction_CP850_CI_AI", 57, 850, 0x0409),
    ("SQL_Scandinavian_Pref_CP850_CI_AS", 58, 850, 0x0409),
    ("SQL_Scandinavian_CP850_CS_AS", 59, 850, 0x0409),
    ("SQL_Scandinavian_CP850_CI_AS", 60, 850, 0x0409),
    ("SQL_AltDiction_CP850_CI_AS", 61, 850, 0x0409),
    ("SQL_Latin1_General_CP1250_CS_AS", 81, 1250, 0x0409),
    ("SQL_Latin1_General_CP1250_CI_AS", 82, 1250, 0x0409),
    ("SQL_Czech_CP1250_CS_AS", 83, 1250, 0x0405),
    ("SQL_Czech_CP1250_CI_AS", 84, 1250, 0x0405),
    ("SQL_Hungarian_CP1250_CS_AS", 85, 1250, 0x040E),
    ("SQL_Hungarian_CP1250_CI_AS", 86, 1250, 0x040E),
    ("SQL_Polish_CP1250_CS_AS", 87, 1250, 0x0415),
    ("SQL_Polish_CP1250_CI_AS", 88, 1250, 0x0415),
    ("SQL_Romanian_CP1250_CS_AS", 89, 1250, 0x0418),
    ("SQL_Romanian_CP1250_CI_AS", 90, 1250, 0x0418),
    ("SQL_Croatian_CP1250_CS_AS", 91, 1250, 0x041A),
    ("SQL_Croatian_CP1250_CI_AS", 92, 1250, 0x041A),
    ("SQL_Slovak_CP1250_CS_AS", 93, 1250, 0x041B),
    ("SQL_Slovak_CP1250_CI_AS", 94, 1250, 0x041B),
    ("SQL_Slovenian_CP1250_CS_AS", 95, 1250, 0x0424),
    ("SQL_Slovenian_CP1250_CI_AS", 96, 1250, 0x0424),
    ("SQL_Latin1_General_CP1251_CS_AS", 105, 1251, 0x0419),
    ("SQL_Latin1_General_CP1251_CI_AS", 106, 1251, 0x0419),
    ("SQL_Ukrainian_CP1251_CS_AS", 107, 1251, 0x0422),
    ("SQL_Ukrainian_CP1251_CI_AS", 108, 1251, 0x0422),
    ("SQL_Latin1_General_CP1253_CS_AS", 113, 1253, 0x0408),
    ("SQL_Latin1_General_CP1253_CI_AS", 114, 1253, 0x0408),
    ("SQL_MixDiction_CP1253_CS_AS", 120, 1253, 0x0408),
    ("SQL_AltDiction_CP1253_CS_AS", 121, 1253, 0x0408),
    ("SQL_Latin1_General_CP1253_CI_AI", 124, 1253, 0x0408),
    ("SQL_Latin1_General_CP1254_CS_AS", 129, 1254, 0x041F),
    ("SQL_Latin1_General_CP1254_CI_AS", 130, 1254, 0x041F),
    ("SQL_Latin1_General_CP1255_CS_AS", 137, 1255, 0x040D),
    ("SQL_Latin1_General_CP1255_CI_AS", 138, 1255, 0x040D),
    ("SQL_Latin1_General_CP1256_CS_AS", 145, 1256, 0x0401),
    ("SQL_Latin1_General_CP1256_CI_AS", 146, 1256, 0x0401),
    ("SQL_Latin1_General_CP1257_CS_AS", 153, 1257, 0x0425),
    ("SQL_Latin1_General_CP1257_CI_AS", 154, 1257, 0x0425),
    ("SQL_Estonian_CP1257_CS_AS", 155, 1257, 0x0425),
    ("SQL_Estonian_CP1257_CI_AS", 156, 1257, 0x0425),
    ("SQL_Latvian_CP1257_CS_AS", 157, 1257, 0x0426),
    ("SQL_Latvian_CP1257_CI_AS", 158, 1257, 0x0426),
    ("SQL_Lithuanian_CP1257_CS_AS", 159, 1257, 0x0427),
    ("SQL_Lithuanian_CP1257_CI_AS", 160, 1257, 0x0427),
    ("SQL_Danish_Pref_CP1_CI_AS", 183, 1252, 0x0406),
    ("SQL_SwedishPhone_Pref_CP1_CI_AS", 184, 1252, 0x041D),
    ("SQL_SwedishStd_Pref_CP1_CI_AS", 185, 1252, 0x041D),
    ("SQL_Icelandic_Pref_CP1_CI_AS", 186, 1252, 0x040F),
];

/// Names that were asked for and exist. A name has to outlive everything, because [`Collation`] is
/// copied into every kind; there are a few thousand valid ones, so the map has an end.
static KNOWN: Mutex<BTreeMap<String, Collation>> = Mutex::new(BTreeMap::new());

/// A collation by its name, case-insensitive; `database_default` is the caller's.
#[must_use]
pub fn named(name: &str) -> Option<Collation> {
    if name.eq_ignore_ascii_case(DEFAULT_COLLATION.name) {
        return Some(DEFAULT_COLLATION);
    }
    let lower = name.to_ascii_lowercase();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(collation) = known.get(&lower) {
        return Some(*collation);
    }
    let collation = sort_order(&lower).or_else(|| windows(&lower))?;
    known.insert(lower, collation);
    Some(collation)
}

/// The collation of the five bytes that stand for it on the wire, as far as they decide: the
/// first known name with these bytes.
#[must_use]
pub fn of_wire(bytes: [u8; 5]) -> Option<Collation> {
    if bytes == DEFAULT_COLLATION.wire() {
        return Some(DEFAULT_COLLATION);
    }
    let [low, middle, third, fourth, sort_id] = bytes;
    if sort_id != 0 {
        let (name, ..) = SORT_ORDERS.iter().find(|(_, id, ..)| *id == sort_id)?;
        return named(name);
    }
    let lcid = u32::from_le_bytes([low, middle, third & 0x0F, 0]);
    let flags = (third >> 4) | (fourth << 4);
    let version = match fourth >> 4 {
        0 => "",
        1 => "_90",
        2 => "_100",
        3 => "_140",
        _ => return None,
    };
    let (locale, ..) = LOCALES.iter().find(|(_, known, _)| *known == lcid)?;
    named(&format!("{locale}{version}{}", suffix(flags)))
}

/// The words behind a locale's name that these flags stand for.
fn suffix(flags: u8) -> String {
    let mut words = String::new();
    if flags & (BINARY | BINARY_2) != 0 {
        words.push_str(if flags & BINARY_2 != 0 { "_BIN2" } else { "_BIN" });
    } else {
        words.push_str(if flags & IGNORE_CASE != 0 { "_CI" } else { "_CS" });
        words.push_str(if flags & IGNORE_ACCENT != 0 { "_AI" } else { "_AS" });
        if flags & IGNORE_KANA == 0 {
            words.push_str("_KS");
        }
        if flags & IGNORE_WIDTH == 0 {
            words.push_str("_WS");
        }
        if flags & UTF_8_FLAG != 0 {
            words.push_str("_SC");
        }
    }
    if flags & UTF_8_FLAG != 0 {
        words.push_str("_UTF8");
    }
    words
}

fn sort_order(lower: &str) -> Option<Collation> {
    let (name, sort_id, code_page, lcid) =
        SORT_ORDERS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(lower))?;
    let binary = lower.ends_with("_bin");
    let ignores_case = lower.contains("_ci");
    let ignores_accents = lower.ends_with("_ai");
    let flags = match () {
        () if binary => BINARY,
        () => {
            IGNORE_KANA
                | IGNORE_WIDTH
                | if ignores_case { IGNORE_CASE } else { 0 }
                | if ignores_accents { IGNORE_ACCENT } else { 0 }
        }
    };
    Some(Collation {
        name,
        lcid: *lcid,
        flags,
        sort_id: *sort_id,
        code_page: *code_page,
        ignores_case,
        ignores_accents,
        binary,
    })
}

fn windows(lower: &str) -> Option<Collation> {
    // The longest locale that the name begins with: Chinese_PRC_Stroke before Chinese_PRC.
    let (locale, lcid, mut code_page) = LOCALES
        .iter()
        .filter(|(locale, ..)| {
            lower.get(..locale.len()).is_some_and(|head| head.eq_ignore_ascii_case(locale))
                && lower.as_bytes().get(locale.len()) == Some(&b'_')
        })
        .max_by_key(|(locale, ..)| locale.len())
        .copied()?;
    let mut words = lower.get(locale.len() + 1..)?.split('_').peekable();
    let version = words.next_if(|word| matches!(*word, "90" | "100" | "140"));
    let mut flags = match words.next()? {
        "bin" => BINARY,
        "bin2" => BINARY_2,
        "ci" => IGNORE_CASE,
        "cs" => 0,
        _ => return None,
    };
    let binary = flags & (BINARY | BINARY_2) != 0;
    if !binary {
        flags |= IGNORE_KANA | IGNORE_WIDTH;
        flags |= match words.next()? {
            "ai" => IGNORE_ACCENT,
            "as" => 0,
            _ => return None,
        };
    }
    let mut rank = 0;
    for word in words {
        // Each word once, in the server's order.
        let (next, clears, sets) = match word {
            "ks" if !binary => (1, IGNORE_KANA, 0),
            "ws" if !binary => (2, IGNORE_WIDTH, 0),
            "vss" if !binary => (3, 0, 0),
            "sc" if !binary && version.is_some() => (4, 0, 0),
            "utf8" if version.is_some() => (5, 0, UTF_8_FLAG),
            _ => return None,
        };
        if next <= rank {
            return None;
        }
        rank = next;
        flags = (flags & !clears) | sets;
    }
    if flags & UTF_8_FLAG != 0 {
        code_page = UTF_8;
    }
    let name =
        format!("{locale}{}", lower.get(locale.len()..).unwrap_or_default().to_ascii_uppercase());
    Some(Collation {
        name: Box::leak(name.into_boxed_str()),
        lcid,
        flags,
        sort_id: 0,
        code_page,
        ignores_case: flags & IGNORE_CASE != 0,
        ignores_accents: flags & IGNORE_ACCENT != 0,
        binary,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_how_texts_compare_and_in_which_bytes_they_travel() {
        for (name, lcid, code_page, flags, sort_id) in [
            ("SQL_Latin1_General_CP1_CI_AS", 0x0409, 1252, 0x0D, 52),
            ("sql_latin1_general_cp1_cs_as", 0x0409, 1252, 0x0C, 51),
            ("Latin1_General_CI_AS", 0x0409, 1252, 0x0D, 0),
            ("Latin1_General_BIN", 0x0409, 1252, 0x10, 0),
            ("Latin1_General_100_BIN2", 0x0409, 1252, 0x20, 0),
            ("Latin1_General_100_BIN2_UTF8", 0x0409, UTF_8, 0x60, 0),
            ("Latin1_General_100_CI_AS_SC_UTF8", 0x0409, UTF_8, 0x4D, 0),
            ("Latin1_General_100_CS_AI_KS_WS", 0x0409, 1252, 0x02, 0),
            ("Greek_CI_AS", 0x0408, 1253, 0x0D, 0),
            ("Chinese_PRC_Stroke_CI_AS", 0x2_0804, 936, 0x0D, 0),
            ("Japanese_XJIS_140_CI_AS_VSS_UTF8", 0x0411, UTF_8, 0x4D, 0),
            ("SQL_Latin1_General_CP850_BIN", 0x0409, 850, 0x10, 40),
        ] {
            let found = named(name).expect(name);
            assert!(found.name.eq_ignore_ascii_case(name));
            assert_eq!(
                (found.lcid, found.code_page, found.flags, found.sort_id),
                (lcid, code_page, flags, sort_id),
                "{name}"
            );
            assert_eq!(named(name), Some(found), "twice");
        }
    }

    #[test]
    fn a_name_that_no_server_knows_is_none() {
        for name in [
            "",
            "Latin1_General",
            "Latin1_General_CI",
            "Latin1_General_CI_AS_UTF8",
            "Latin1_General_100_CI_AS_UTF8_SC",
            "Latin1_General_100_CI_AS_KS_KS",
            "Latin1_General_BIN2_KS",
            "SQL_Latin1_General_CP2_CI_AS",
            "Klingon_CI_AS",
        ] {
            assert_eq!(named(name), None, "{name}");
        }
    }

    #[test]
    fn the_bytes_on_the_wire_find_the_collation_again() {
        for name in [
            "SQL_Latin1_General_CP1_CI_AS",
            "SQL_Latin1_General_CP1253_CI_AS",
            "Latin1_General_100_CI_AS_SC_UTF8",
            "Greek_CS_AS",
            "Polish_100_BIN2",
            "Japanese_CI_AS_KS_WS",
        ] {
            let collation = named(name).expect(name);
            assert_eq!(of_wire(collation.wire()), Some(collation), "{name}");
        }
        assert_eq!(of_wire([0xFF; 5]), None);
    }

    #[test]
    fn the_default_collation_travels_as_every_server_sends_it() {
        let collation = Collation {
            name: "SQL_Latin1_General_CP1_CI_AS",
            lcid: 0x0409,
            flags: 0x0D,
            sort_id: 52,
            code_page: 1252,
            ignores_case: true,
            ignores_accents: false,
            binary: false,
        };
        assert_eq!(collation.wire(), [0x09, 0x04, 0xD0, 0x00, 0x34]);
        let newer = Collation {
            name: "Latin1_General_100_BIN2_UTF8",
            sort_id: 0,
            flags: 0x60,
            ..collation
        };
        assert_eq!(newer.wire(), [0x09, 0x04, 0x00, 0x26, 0x00]);
    }
}
