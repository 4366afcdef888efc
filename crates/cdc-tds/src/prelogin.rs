//! What is settled before the login: above all whether and how far TLS is used.

use crate::{
    fault::{Fault, Read},
    input::Input,
    settings::Encryption,
};

const VERSION: u8 = 0;
const ENCRYPTION: u8 = 1;
const INSTANCE: u8 = 2;
const THREAD: u8 = 3;
const MARS: u8 = 4;
const FEDERATED: u8 = 6;
const TERMINATOR: u8 = 0xFF;

/// How a side stands to encryption, as its byte.
mod encryption {
    pub(super) const LOGIN_ONLY: u8 = 0;
    pub(super) const ON: u8 = 1;
    pub(super) const NOT_SUPPORTED: u8 = 2;
    pub(super) const REQUIRED: u8 = 3;
}

/// What of a client's options matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreLogin {
    /// Its byte of the encryption option; [`encryption::NOT_SUPPORTED`] when it sends none.
    pub(crate) encryption: u8,
    /// Whether it asked for the server's stand on federated authentication.
    pub(crate) federated: bool,
}

/// How far TLS goes in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// None at all.
    Nothing,
    /// The login alone; what follows is plain.
    Login,
    /// All that follows.
    Everything,
}

impl PreLogin {
    /// Reads a client's options.
    pub(crate) fn read(bytes: &[u8]) -> Read<Self> {
        let mut options = Input::new(bytes);
        let mut found = Self { encryption: encryption::NOT_SUPPORTED, federated: false };
        loop {
            let option = options.u8()?;
            if option == TERMINATOR {
                return Ok(found);
            }
            let (at, length) = (options.u16_big()?, options.u16_big()?);
            let (at, length) = (usize::from(at), usize::from(length));
            let data = bytes
                .get(at..at.saturating_add(length))
                .ok_or(Fault::Malformed("an option of the pre-login lies outside of it"))?;
            match (option, data.first()) {
                // The high bits tell of client certificates, which this server does not ask for.
                (ENCRYPTION, Some(byte)) => found.encryption = byte & 0x7F,
                (ENCRYPTION, None) => {
                    return Err(Fault::Malformed("an encryption option is empty"));
                }
                (FEDERATED, _) => found.federated = true,
                _ => {}
            }
        }
    }

    /// How far TLS goes, and the byte that tells the client; none when the two cannot agree, and
    /// then the byte says why.
    pub(crate) const fn agree(self, offered: Encryption) -> (Option<Extent>, u8) {
        match (offered, self.encryption) {
            (Encryption::Off, encryption::LOGIN_ONLY | encryption::NOT_SUPPORTED) => {
                (Some(Extent::Nothing), encryption::NOT_SUPPORTED)
            }
            (Encryption::Off, _) => (None, encryption::NOT_SUPPORTED),
            (Encryption::Offered, encryption::LOGIN_ONLY) => {
                (Some(Extent::Login), encryption::LOGIN_ONLY)
            }
            (Encryption::Offered, encryption::NOT_SUPPORTED) => {
                (Some(Extent::Nothing), encryption::NOT_SUPPORTED)
            }
            (Encryption::Required, encryption::LOGIN_ONLY) => {
                (Some(Extent::Everything), encryption::REQUIRED)
            }
            (Encryption::Required, encryption::NOT_SUPPORTED) => (None, encryption::REQUIRED),
            (_, encryption::REQUIRED) => (Some(Extent::Everything), encryption::REQUIRED),
            (_, _) => (Some(Extent::Everything), encryption::ON),
        }
    }

    /// The server's options.
    pub(crate) fn answer(self, version: [u8; 4], encryption: u8) -> Vec<u8> {
        let [major, minor, high, low] = version;
        let version = [major, minor, high, low, 0, 0];
        let (encryption, none) = ([encryption], [0]);
        let mut options: Vec<(u8, &[u8])> = vec![
            (VERSION, &version),
            (ENCRYPTION, &encryption),
            (INSTANCE, &none),
            (THREAD, &[]),
            (MARS, &none),
        ];
        if self.federated {
            options.push((FEDERATED, &none));
        }
        let mut head = Vec::new();
        let mut data = Vec::new();
        let start = options.len().saturating_mul(5).saturating_add(1);
        for (option, bytes) in options {
            let at = u16::try_from(start.saturating_add(data.len())).unwrap_or(u16::MAX);
            let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
            head.push(option);
            head.extend_from_slice(&at.to_be_bytes());
            head.extend_from_slice(&length.to_be_bytes());
            data.extend_from_slice(bytes);
        }
        head.push(TERMINATOR);
        head.append(&mut data);
        head
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A client's options as bytes.
    pub(crate) fn options(list: &[(u8, &[u8])]) -> Vec<u8> {
        let (mut head, mut data) = (Vec::new(), Vec::new());
        for (option, bytes) in list {
            let at = u16::try_from(list.len() * 5 + 1 + data.len()).unwrap();
            head.push(*option);
            head.extend(at.to_be_bytes());
            head.extend(u16::try_from(bytes.len()).unwrap().to_be_bytes());
            data.extend_from_slice(bytes);
        }
        head.push(0xFF);
        head.extend(data);
        head
    }

    #[test]
    fn the_options_of_every_recorded_kind_of_client_are_read() {
        let version = [9, 0, 0, 0, 0, 0];
        let trace = [0; 36];
        let full: &[(u8, &[u8])] = &[
            (0, &version),
            (1, &[1]),
            (2, b"MSSQLServer\0"),
            (3, &[0; 4]),
            (4, &[0]),
            (5, &trace),
        ];
        for (list, encryption, federated) in [
            (full, 1, false),
            (&[(0, &version), (1, &[0]), (5, &trace)], 0, false),
            (&[(0, &version), (1, &[2]), (2, &[0]), (6, &[1])], 2, true),
            (&[(0, &version), (1, &[3]), (3, &[0; 4]), (4, &[0])], 3, false),
            (&[(0, &version)], 2, false),
        ] {
            let read = PreLogin::read(&options(list)).expect("read");
            assert_eq!(read, PreLogin { encryption, federated });
        }
    }

    #[test]
    fn both_sides_agree_on_how_far_tls_goes_or_do_not_meet() {
        use Encryption::{Off, Offered, Required};
        use Extent::{Everything, Login, Nothing};
        for (offered, client, extent, byte) in [
            (Off, 0, Some(Nothing), 2),
            (Off, 1, None, 2),
            (Off, 2, Some(Nothing), 2),
            (Off, 3, None, 2),
            (Offered, 0, Some(Login), 0),
            (Offered, 1, Some(Everything), 1),
            (Offered, 2, Some(Nothing), 2),
            (Offered, 3, Some(Everything), 3),
            (Required, 0, Some(Everything), 3),
            (Required, 1, Some(Everything), 1),
            (Required, 2, None, 3),
            (Required, 3, Some(Everything), 3),
        ] {
            let client = PreLogin { encryption: client, federated: false };
            assert_eq!(client.agree(offered), (extent, byte), "{offered:?} {client:?}");
        }
    }

    #[test]
    fn the_answer_reads_back_and_names_federation_only_when_asked() {
        for federated in [false, true] {
            let client = PreLogin { encryption: 1, federated };
            let answer = client.answer([16, 0, 16, 0], 3);
            assert_eq!(PreLogin::read(&answer), Ok(PreLogin { encryption: 3, federated }));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = PreLogin::read(&bytes);
        }
    }
}
