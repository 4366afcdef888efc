//! The table of error numbers, row by row.

use super::*;

#[test]
fn every_number_stands_in_the_table_once_and_transient_ones_are_retried() {
    let mut numbers: Vec<_> = KNOWN.iter().map(|known| known.0).collect();
    numbers.sort_unstable();
    let count = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
    for (number, kind, transient, words) in KNOWN {
        let fault = Fault::server(*number, 1, 16);
        assert_eq!((fault.error.kind(), fault.transient), (*kind, *transient), "{number}");
        assert_eq!(fault.error.context("error"), Some(number.to_string().as_str()));
        assert!(!words.ends_with('.') && !words.starts_with(char::is_uppercase), "{words}");
        // What the adapter tries again, the engine may try again too; 4060 is a setting in the end.
        assert!(!transient || *kind == ErrorKind::Unavailable || *number == 4060, "{number}");
    }
}

/// One row a test, so that a row that is lost or changed is named; and the list of what is tested.
macro_rules! rows {
    ($tested:ident, $transient:literal: $($name:ident: $number:literal is $kind:ident)*) => {
        const $tested: &[u32] = &[$($number),*];
        $(
            #[test]
            fn $name() {
                let fault = Fault::server($number, 1, 16);
                assert_eq!((fault.transient, fault.error.kind()), ($transient, ErrorKind::$kind));
            }
        )*
    };
}

rows! { TRANSIENT, true:
    error_20_is_tried_again: 20 is Unavailable
    error_64_is_tried_again: 64 is Unavailable
    error_121_is_tried_again: 121 is Unavailable
    error_233_is_tried_again: 233 is Unavailable
    error_596_is_tried_again: 596 is Unavailable
    error_601_is_tried_again: 601 is Unavailable
    error_605_is_tried_again: 605 is Unavailable
    error_615_is_tried_again: 615 is Unavailable
    error_617_is_tried_again: 617 is Unavailable
    error_669_is_tried_again: 669 is Unavailable
    error_701_is_tried_again: 701 is Unavailable
    error_802_is_tried_again: 802 is Unavailable
    error_847_is_tried_again: 847 is Unavailable
    error_921_is_tried_again: 921 is Unavailable
    error_922_is_tried_again: 922 is Unavailable
    error_924_is_tried_again: 924 is Unavailable
    error_926_is_tried_again: 926 is Unavailable
    error_927_is_tried_again: 927 is Unavailable
    error_942_is_tried_again: 942 is Unavailable
    error_945_is_tried_again: 945 is Unavailable
    error_952_is_tried_again: 952 is Unavailable
    error_976_is_tried_again: 976 is Unavailable
    error_978_is_tried_again: 978 is Unavailable
    error_979_is_tried_again: 979 is Unavailable
    error_982_is_tried_again: 982 is Unavailable
    error_983_is_tried_again: 983 is Unavailable
    error_1203_is_tried_again: 1203 is Unavailable
    error_1204_is_tried_again: 1204 is Unavailable
    error_1205_is_tried_again: 1205 is Unavailable
    error_1221_is_tried_again: 1221 is Unavailable
    error_1222_is_tried_again: 1222 is Unavailable
    error_1807_is_tried_again: 1807 is Unavailable
    error_3928_is_tried_again: 3928 is Unavailable
    error_3935_is_tried_again: 3935 is Unavailable
    error_3957_is_tried_again: 3957 is Unavailable
    error_3960_is_tried_again: 3960 is Unavailable
    error_3961_is_tried_again: 3961 is Unavailable
    error_3966_is_tried_again: 3966 is Unavailable
    error_4060_is_tried_again: 4060 is Config
    error_4221_is_tried_again: 4221 is Unavailable
    error_5120_is_tried_again: 5120 is Unavailable
    error_6005_is_tried_again: 6005 is Unavailable
    error_8628_is_tried_again: 8628 is Unavailable
    error_8645_is_tried_again: 8645 is Unavailable
    error_8651_is_tried_again: 8651 is Unavailable
    error_9002_is_tried_again: 9002 is Unavailable
    error_9515_is_tried_again: 9515 is Unavailable
    error_10053_is_tried_again: 10_053 is Unavailable
    error_10054_is_tried_again: 10_054 is Unavailable
    error_10060_is_tried_again: 10_060 is Unavailable
    error_10922_is_tried_again: 10_922 is Unavailable
    error_10928_is_tried_again: 10_928 is Unavailable
    error_10929_is_tried_again: 10_929 is Unavailable
    error_10936_is_tried_again: 10_936 is Unavailable
    error_11001_is_tried_again: 11_001 is Unavailable
    error_17142_is_tried_again: 17_142 is Unavailable
    error_17197_is_tried_again: 17_197 is Unavailable
    error_18401_is_tried_again: 18_401 is Unavailable
    error_40143_is_tried_again: 40_143 is Unavailable
    error_40197_is_tried_again: 40_197 is Unavailable
    error_40501_is_tried_again: 40_501 is Unavailable
    error_40540_is_tried_again: 40_540 is Unavailable
    error_40613_is_tried_again: 40_613 is Unavailable
    error_41301_is_tried_again: 41_301 is Unavailable
    error_41302_is_tried_again: 41_302 is Unavailable
    error_41305_is_tried_again: 41_305 is Unavailable
    error_41325_is_tried_again: 41_325 is Unavailable
    error_41839_is_tried_again: 41_839 is Unavailable
    error_42108_is_tried_again: 42_108 is Unavailable
    error_42109_is_tried_again: 42_109 is Unavailable
    error_49918_is_tried_again: 49_918 is Unavailable
    error_49919_is_tried_again: 49_919 is Unavailable
    error_49920_is_tried_again: 49_920 is Unavailable
    error_49983_is_tried_again: 49_983 is Unavailable
}

rows! { PERMANENT, false:
    error_102_is_not_tried_again: 102 is Bug
    error_156_is_not_tried_again: 156 is Bug
    error_207_is_not_tried_again: 207 is Config
    error_208_is_not_tried_again: 208 is Config
    error_229_is_not_tried_again: 229 is Unauthorized
    error_230_is_not_tried_again: 230 is Unauthorized
    error_241_is_not_tried_again: 241 is InvalidData
    error_244_is_not_tried_again: 244 is InvalidData
    error_245_is_not_tried_again: 245 is InvalidData
    error_262_is_not_tried_again: 262 is Unauthorized
    error_297_is_not_tried_again: 297 is Unauthorized
    error_300_is_not_tried_again: 300 is Unauthorized
    error_313_is_not_tried_again: 313 is DataLoss
    error_911_is_not_tried_again: 911 is Config
    error_916_is_not_tried_again: 916 is Unauthorized
    error_2714_is_not_tried_again: 2714 is Bug
    error_3952_is_not_tried_again: 3952 is Config
    error_8114_is_not_tried_again: 8114 is InvalidData
    error_8115_is_not_tried_again: 8115 is InvalidData
    error_8134_is_not_tried_again: 8134 is InvalidData
    error_18452_is_not_tried_again: 18_452 is Unauthorized
    error_18456_is_not_tried_again: 18_456 is Unauthorized
    error_18470_is_not_tried_again: 18_470 is Unauthorized
    error_18486_is_not_tried_again: 18_486 is Unauthorized
    error_18487_is_not_tried_again: 18_487 is Unauthorized
    error_18488_is_not_tried_again: 18_488 is Unauthorized
    error_22901_is_not_tried_again: 22_901 is Config
    error_22904_is_not_tried_again: 22_904 is Unauthorized
    error_22981_is_not_tried_again: 22_981 is Config
    error_22985_is_not_tried_again: 22_985 is Config
    error_40615_is_not_tried_again: 40_615 is Unauthorized
    error_40914_is_not_tried_again: 40_914 is Unauthorized
}

#[test]
fn every_row_of_the_table_has_its_test() {
    let mut tested: Vec<_> = TRANSIENT.iter().chain(PERMANENT).copied().collect();
    let mut known: Vec<_> = KNOWN.iter().map(|known| known.0).collect();
    tested.sort_unstable();
    known.sort_unstable();
    assert_eq!(tested, known);
}

#[test]
fn an_unknown_number_is_transient_only_when_the_server_itself_is_in_trouble() {
    assert!(!Fault::server(60_000, 1, 16).transient);
    assert!(Fault::server(60_000, 1, 20).transient);
}

#[test]
fn an_authority_that_cannot_be_read_is_a_setting_and_no_lost_connection() {
    let io = |message: &str| {
        let kind = std::io::ErrorKind::NotFound;
        Fault::from(tiberius::error::Error::Io { kind, message: message.into() })
    };
    let fault = io("no usable CA certificates found in the platform trust store");
    assert_eq!((fault.transient, fault.error.kind()), (false, ErrorKind::Config));
    let fault = io("connection reset by peer");
    assert_eq!((fault.transient, fault.error.kind()), (true, ErrorKind::Unavailable));
}

#[test]
fn no_text_of_the_driver_that_may_quote_a_value_is_kept() {
    let planted = "planted value";
    for error in [
        tiberius::error::Error::Conversion(planted.into()),
        tiberius::error::Error::BulkInput(planted.into()),
        tiberius::error::Error::Encoding(planted.into()),
    ] {
        let fault = Fault::from(error);
        assert!(!fault.transient);
        assert!(!format!("{fault:?} {}", fault.error.report()).contains(planted));
    }
}
