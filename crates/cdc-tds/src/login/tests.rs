//! Login records as clients write them.

use proptest::prelude::*;

use super::*;

/// What a client puts into a record.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) version: u32,
    pub(crate) packet: u32,
    pub(crate) flags: [u8; 4],
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) database: String,
    pub(crate) application: String,
    pub(crate) extensions: Vec<(u8, Vec<u8>)>,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            version: 0x7400_0004,
            packet: 4096,
            flags: [224, 3, 0, 0],
            user: "sa".into(),
            password: "p\u{e4}ss".into(),
            database: "shop".into(),
            application: "tests".into(),
            extensions: Vec::new(),
        }
    }
}

impl Record {
    /// The record's bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let units = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let scrambled = |bytes: Vec<u8>| {
            bytes.iter().map(|byte| byte.rotate_left(4) ^ 0xA5).collect::<Vec<_>>()
        };
        let mut fixed = Vec::new();
        for number in [self.version, self.packet, 7, 4711, 0] {
            fixed.extend(number.to_le_bytes());
        }
        let [first, second, kind, third] = self.flags;
        let third = third | if self.extensions.is_empty() { 0 } else { 0x10 };
        fixed.extend([first, second, kind, third]);
        fixed.extend([0; 8]);
        let texts = [
            units("host"),
            units(&self.user),
            scrambled(units(&self.password)),
            units(&self.application),
            units("server"),
            Vec::new(),
            units("library"),
            units("us_english"),
            units(&self.database),
        ];
        let mut data = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            let place = u16::try_from(94 + data.len()).unwrap();
            let mut length = u16::try_from(text.len() / 2).unwrap();
            if at == 5 && !self.extensions.is_empty() {
                // Four bytes that hold the place of the extensions, which is settled below.
                length = 4;
                data.extend([0; 4]);
            }
            fixed.extend(place.to_le_bytes());
            fixed.extend(length.to_le_bytes());
            data.extend(text);
        }
        fixed.resize(90, 0);
        let place = u32::try_from(94 + data.len()).unwrap();
        if !self.extensions.is_empty() {
            let at = usize::from(u16::from_le_bytes([fixed[52], fixed[53]])) - 94;
            data[at..at + 4].copy_from_slice(&place.to_le_bytes());
            for (id, bytes) in &self.extensions {
                data.push(*id);
                data.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
                data.extend(bytes);
            }
            data.push(0xFF);
        }
        let length = u32::try_from(94 + data.len()).unwrap();
        [length.to_le_bytes().to_vec(), fixed, data].concat()
    }
}

#[test]
fn a_record_is_read_with_its_password_in_the_clear() {
    let login = Login::read(&Record::default().bytes()).expect("read");
    assert_eq!(login.request.user, "sa");
    assert_eq!(login.request.password, "p\u{e4}ss");
    assert_eq!(login.request.database, "shop");
    assert_eq!(login.request.application, "tests");
    assert_eq!(login.request.host, "host");
    assert_eq!(login.request.process, 4711);
    assert_eq!((login.packet_size, login.version), (4096, Version::V74));
    assert!(!login.utf8 && !login.integrated && !login.request.read_only);
}

#[test]
fn what_recorded_clients_ask_for_is_understood() {
    let features: &[(u8, &[u8])] =
        &[(0x10, b"agent"), (1, &[]), (9, &[1]), (0x0A, &[1]), (0x0B, &[])];
    let extensions = features.iter().map(|(id, bytes)| (*id, bytes.to_vec())).collect();
    let login = Login::read(&Record { packet: 0, extensions, ..Record::default() }.bytes());
    let login = login.expect("read");
    assert!(login.utf8);
    assert_eq!(login.packet_size, 4096);

    let with = |packet| Login::read(&Record { packet, ..Record::default() }.bytes()).unwrap();
    assert_eq!(with(8000).packet_size, 8000);
    assert_eq!(with(1).packet_size, 512);
    assert_eq!(with(1 << 20).packet_size, 32_767);

    let flags = [224, 0x83, 0x20, 0];
    let login = Login::read(&Record { flags, ..Record::default() }.bytes()).expect("read");
    assert!(login.integrated && login.request.read_only);
}

#[test]
fn an_access_token_stands_in_for_user_and_password() {
    let with = |content: Vec<u8>| {
        let extensions = vec![(0x02, content), (0x0A, vec![1])];
        Login::read(&Record { extensions, ..Record::default() }.bytes())
    };
    let token: Vec<u8> = "a.b".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let login = with([&[0x02, 6, 0, 0, 0], &token[..]].concat()).expect("read");
    assert!(login.federated && login.utf8);
    assert_eq!((login.request.user.as_str(), login.request.password.as_str()), ("", "a.b"));
    // Another way to be vouched for, and a token that is cut.
    assert!(matches!(with(vec![0x04, 0, 0, 0, 0]), Err(Fault::Unsupported(_))));
    assert!(matches!(with(vec![0x02, 6, 0, 0, 0, 1]), Err(Fault::Malformed(_))));
}

#[test]
fn a_version_without_these_tokens_is_refused_by_number() {
    for version in [0x7100_0001, 0x7209_0002, 0x730A_0003, 0x7000_0000] {
        let error = Login::read(&Record { version, ..Record::default() }.bytes());
        assert!(matches!(error, Err(Fault::Unsupported(_))), "{version:x}");
    }
}

#[test]
fn a_text_that_is_too_long_or_outside_is_refused() {
    let user = "x".repeat(129);
    assert!(Login::read(&Record { user, ..Record::default() }.bytes()).is_err());
    let mut record = Record::default().bytes();
    record[40] = 0xFF;
    record[41] = 0xFF;
    assert!(Login::read(&record).is_err());
}

proptest! {
    #[test]
    fn any_cut_of_a_record_and_any_change_is_read_or_refused(
        cut in 0usize..400, at in 0usize..400, byte: u8, utf8: bool,
    ) {
        let extensions = if utf8 { vec![(0x0A, vec![1])] } else { Vec::new() };
        let mut record = Record { extensions, ..Record::default() }.bytes();
        if let Some(place) = record.get_mut(at) {
            *place = byte;
        }
        record.truncate(cut);
        let _ = Login::read(&record);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Login::read(&bytes);
    }
}
