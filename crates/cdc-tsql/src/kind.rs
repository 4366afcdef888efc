//! The static type of an expression, and a value with its type.

use cdc_core::SqlType;
use cdc_fake::Value;

/// What is known of an expression before it is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The type. A bare `NULL` is an `int`, as the server reports it.
    pub sql_type: SqlType,
    /// True when it may be NULL.
    pub nullable: bool,
    /// The collation of a character type; none means the database's.
    pub collation: Option<Collation>,
    /// True when the collation was named with `COLLATE`, which decides over a column's. A column's
    /// is a collation without this; a constant or a variable has no collation. Two of the same
    /// rank that differ are error 468.
    pub explicit_collation: bool,
    /// True when the collation is the database's for want of another, as of a constant: it gives
    /// way to a column's.
    pub fallback_collation: bool,
}

impl Kind {
    /// A type with the database's collation.
    #[must_use]
    pub const fn new(sql_type: SqlType, nullable: bool) -> Self {
        Self {
            sql_type,
            nullable,
            collation: None,
            explicit_collation: false,
            fallback_collation: false,
        }
    }

    /// The same with the collation of another, and with that one's right to it.
    #[must_use]
    pub(crate) fn collated_as(self, other: &Self) -> Self {
        let Self { collation, explicit_collation, fallback_collation, .. } = *other;
        Self { collation, explicit_collation, fallback_collation, ..self }
    }
}

/// A value and its type: a variable, an argument, a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// Its type.
    pub kind: Kind,
    /// The value, as a column of that type stores it.
    pub value: Value,
}

impl Typed {
    /// A value of a type, with the database's collation.
    #[must_use]
    pub const fn new(sql_type: SqlType, value: Value) -> Self {
        Self { kind: Kind::new(sql_type, true), value }
    }
}

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

impl Collation {
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

#[cfg(test)]
mod tests {
    use super::*;

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
