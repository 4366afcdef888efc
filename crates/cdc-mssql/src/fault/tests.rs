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

/// One row a test, so that a row that is lost is named.
macro_rules! transient {
    ($($name:ident: $number:literal)*) => {$(
        #[test]
        fn $name() {
            assert!(Fault::server($number, 1, 16).transient);
        }
    )*};
}

macro_rules! permanent {
    ($($name:ident: $number:literal is $kind:ident)*) => {$(
        #[test]
        fn $name() {
            let fault = Fault::server($number, 1, 16);
            assert_eq!((fault.transient, fault.error.kind()), (false, ErrorKind::$kind));
        }
    )*};
}

transient! {
    a_deadlock_is_transient: 1205
    a_lock_timeout_is_transient: 1222
    an_update_conflict_is_transient: 3960
    a_database_that_cannot_be_opened_is_tried_again: 4060
    a_resource_limit_is_transient: 10928
    a_busy_server_is_transient: 10929
    a_reset_connection_is_transient: 10054
    an_aborted_connection_is_transient: 10053
    a_service_error_is_transient: 40197
    a_busy_service_is_transient: 40501
    an_unavailable_database_is_transient: 40613
    a_missing_resource_is_transient: 49918
    too_many_operations_are_transient: 49919
    too_many_requests_are_transient: 49920
    a_killed_session_is_transient: 596
    a_database_in_transition_is_transient: 952
    a_replica_that_changes_its_role_is_transient: 983
}

permanent! {
    an_unknown_object_is_permanent: 208 is Config
    an_unknown_column_is_permanent: 207 is Config
    a_missing_right_is_permanent: 229 is Unauthorized
    a_missing_column_right_is_permanent: 230 is Unauthorized
    insufficient_arguments_are_a_lost_range: 313 is DataLoss
    a_wrong_password_is_permanent: 18456 is Unauthorized
    a_foreign_login_is_permanent: 916 is Unauthorized
    a_database_without_capture_is_permanent: 22901 is Config
    a_conversion_is_permanent: 245 is InvalidData
}

#[test]
fn an_unknown_number_is_transient_only_when_the_server_itself_is_in_trouble() {
    assert!(!Fault::server(60_000, 1, 16).transient);
    assert!(Fault::server(60_000, 1, 20).transient);
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
