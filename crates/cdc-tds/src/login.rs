//! The login record: who wants a session, with what packet size.

use cdc_tsql::talk::LoginRequest;

use crate::{
    fault::{Fault, Read},
    input::{Input, utf16},
    packet,
};

/// Bytes of the record before its texts.
const FIXED_BYTES: usize = 94;
/// Bytes of a whole record: all texts at their longest, and extensions of clients to come.
pub(crate) const LOGIN_BYTES_MAX: usize = 128 << 10;
/// Characters of a name in a login record.
const TEXT_UNITS_MAX: u16 = 128;
/// The bit of the third option byte that says there are extensions.
const HAS_EXTENSIONS: u8 = 0x10;
/// The extension by which a client says that it reads UTF-8.
const UTF8: u8 = 0x0A;
/// The extension by which a client brings an access token in place of a password.
const FEDERATED: u8 = 0x02;
/// The library of that extension which has the token ready, in the upper seven bits.
const SECURITY_TOKEN: u8 = 1;
/// Bytes of an access token. Those of Entra ID have a few thousand characters.
const TOKEN_BYTES_MAX: usize = 64 << 10;
/// What stands behind the last extension.
const LAST_EXTENSION: u8 = 0xFF;

/// The versions of the protocol whose tokens this server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// 7.3, with null bitmaps.
    V73,
    /// 7.4.
    V74,
    /// 8.0: the tokens of 7.4.
    V80,
}

impl Version {
    const fn from_number(number: u32) -> Option<Self> {
        match number {
            0x730B_0003 => Some(Self::V73),
            0x7400_0004 => Some(Self::V74),
            0x0800_0000 => Some(Self::V80),
            _ => None,
        }
    }

    /// The number by which the server acknowledges it.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::V73 => 0x730B_0003,
            Self::V74 => 0x7400_0004,
            Self::V80 => 0x0800_0000,
        }
    }
}

/// A login record.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    /// Who, and what.
    pub(crate) request: LoginRequest,
    /// The version of the protocol.
    pub(crate) version: Version,
    /// The packet size that the client asks for, in the protocol's bounds.
    pub(crate) packet_size: u16,
    /// True when the client reads UTF-8.
    pub(crate) utf8: bool,
    /// True when the client wants Windows to vouch for it.
    pub(crate) integrated: bool,
    /// True when the client brought an access token.
    pub(crate) federated: bool,
}

impl Login {
    /// Reads a login record.
    pub(crate) fn read(record: &[u8]) -> Read<Self> {
        let mut input = Input::new(record);
        let length = input.length()?;
        if length > record.len() || length < FIXED_BYTES {
            return Err(Fault::Malformed("a login record's length is not its length"));
        }
        let number = input.u32()?;
        let version = Version::from_number(number).ok_or_else(|| {
            Fault::Unsupported(format!("version {number:#010x} of the protocol; 7.4 is"))
        })?;
        let wanted_size = input.u32()?;
        input.u32()?;
        let process = input.u32()?;
        input.u32()?;
        let (_first, second, kind, third) = (input.u8()?, input.u8()?, input.u8()?, input.u8()?);
        input.bytes(8)?;
        let mut text = || Text::take(&mut input, record);
        let (host, user, password) = (text()?, text()?, text()?);
        let (application, _server, extensions) = (text()?, text()?, text()?);
        let (_library, _language, database) = (text()?, text()?, text()?);
        let features = match third & HAS_EXTENSIONS {
            0 => None,
            _ => Some(extensions.place(record)?),
        };
        let features = features.map_or_else(|| Ok(Features::default()), Features::read)?;
        let federated = features.token.is_some();
        let (user, password) = match features.token {
            Some(token) => (String::new(), token),
            None => (user.read()?, unscrambled(password.units)?),
        };
        Ok(Self {
            request: LoginRequest {
                user,
                password,
                database: database.read()?,
                host: host.read()?,
                application: application.read()?,
                read_only: kind & 0x20 != 0,
                process,
            },
            version,
            packet_size: packet_size(wanted_size),
            utf8: features.utf8,
            integrated: second & 0x80 != 0,
            federated,
        })
    }
}

/// A client that asks for nothing gets the default; one that asks for the impossible, the nearest.
fn packet_size(wanted: u32) -> u16 {
    match wanted {
        0 => packet::DEFAULT_SIZE,
        wanted => u16::try_from(wanted)
            .unwrap_or(packet::SIZE_MAX)
            .clamp(packet::SIZE_MIN, packet::SIZE_MAX),
    }
}

/// A text of the record, by offset and length.
struct Text<'a> {
    at: u16,
    length: u16,
    units: &'a [u8],
}

impl<'a> Text<'a> {
    fn take(input: &mut Input<'_>, record: &'a [u8]) -> Read<Self> {
        let (at, length) = (input.u16()?, input.u16()?);
        let start = usize::from(at);
        let units = match length {
            0 => Some(&[][..]),
            _ => record.get(start..start.saturating_add(usize::from(length).saturating_mul(2))),
        };
        // The extensions count bytes, not characters, and may end the record.
        Ok(Self { at, length, units: units.unwrap_or_default() })
    }

    fn read(&self) -> Read<String> {
        if self.length > TEXT_UNITS_MAX {
            return Err(Fault::Malformed("a text of a login is longer than 128 characters"));
        }
        if self.units.len() != usize::from(self.length).saturating_mul(2) {
            return Err(Fault::Malformed("a text of a login lies outside of it"));
        }
        utf16(self.units)
    }

    /// Where the extensions begin: the text of that name holds but their place.
    fn place<'r>(&self, record: &'r [u8]) -> Read<&'r [u8]> {
        let outside = Fault::Malformed("the extensions of a login lie outside of it");
        let place = record.get(usize::from(self.at)..).ok_or(outside.clone())?;
        let at = Input::new(place).length()?;
        record.get(at..).ok_or(outside)
    }
}

/// A password as it was before each byte had its halves swapped and every other bit turned.
fn unscrambled(scrambled: &[u8]) -> Read<String> {
    let plain = scrambled.iter().map(|byte| (byte ^ 0xA5).rotate_left(4)).collect::<Vec<_>>();
    if plain.len() > usize::from(TEXT_UNITS_MAX).saturating_mul(2) {
        return Err(Fault::Malformed("a password is longer than 128 characters"));
    }
    utf16(&plain)
}

/// What a client asks for in extensions of its login.
#[derive(Default)]
struct Features {
    utf8: bool,
    token: Option<String>,
}

impl Features {
    fn read(extensions: &[u8]) -> Read<Self> {
        let mut input = Input::new(extensions);
        let mut found = Self::default();
        loop {
            let id = input.u8()?;
            if id == LAST_EXTENSION {
                return Ok(found);
            }
            let length = input.length()?;
            let content = input.bytes(length)?;
            match id {
                UTF8 => found.utf8 = true,
                FEDERATED => found.token = Some(token(content)?),
                _ => {}
            }
        }
    }
}

/// The access token of the extension that holds it.
fn token(content: &[u8]) -> Read<String> {
    let mut input = Input::new(content);
    if input.u8()? >> 1 != SECURITY_TOKEN {
        return Err(Fault::Unsupported("a federated login without its token".into()));
    }
    let length = input.length()?;
    if length > TOKEN_BYTES_MAX {
        return Err(Fault::Malformed("an access token is longer than 64 KiB"));
    }
    utf16(input.bytes(length)?)
}

#[cfg(test)]
#[path = "login/tests.rs"]
pub(crate) mod tests;
