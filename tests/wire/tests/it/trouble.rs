//! Trouble on the way: what is tried again, what is not, and what nobody is ever shown.

use std::time::Duration;

use cdc_conformance::{
    Cell,
    source::{SourceHarness, Statement},
};
use cdc_core::{
    ClosedRange, Column, ErrorKind, InstanceName, Length, SqlType, TableName, TableRef,
    port::{
        Bound, Catalog, ChangeReader, ChangeRequest, FindingLevel, PositionLog, RowRequest,
        TableReader,
    },
};
use cdc_fake::{SqlError, Zone};
use cdc_mssql::{BulkReader, Login, MssqlSource, Secret};
use futures_util::StreamExt;
use tokio::net::TcpListener;

use crate::{
    relay::Relay,
    rig::{OverTds, READERS, block_on},
};

fn orders() -> TableName {
    TableName::new("dbo", "orders")
}

fn instance() -> InstanceName {
    InstanceName::new("dbo_orders")
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("id", 1, SqlType::Int, false),
        Column::new("name", 2, SqlType::NVarChar(Length::Limited(100)), true),
    ]
}

/// A server with a captured table of `rows` rows, all of one commit.
async fn filled(rows: i64) -> OverTds {
    filled_for(rows, BulkReader::Tiberius).await
}

async fn filled_for(rows: i64, reader: BulkReader) -> OverTds {
    let rig = OverTds::plain(Zone::UTC).await.read_by(reader);
    rig.create_table(&orders(), &columns(), &["id"]).await.unwrap();
    rig.enable(&orders(), &instance(), None).await.unwrap();
    let insert =
        |id| Statement::Insert(orders(), vec![Cell::Int(id), Cell::text(format!("planted {id}"))]);
    rig.transact(&(0..rows).map(insert).collect::<Vec<_>>()).await.unwrap();
    rig.capture().await.unwrap();
    rig
}

async fn all(source: &MssqlSource) -> ChangeRequest {
    let (Bound::At(low), Bound::At(high)) =
        (source.low(&[instance()]).await.unwrap()[0], source.high().await.unwrap())
    else {
        panic!("captured")
    };
    ChangeRequest {
        instance: instance(),
        columns: columns(),
        range: ClosedRange::new(low, high).unwrap(),
        time_before: None,
        batch_rows: 100,
    }
}

fn plant(rig: &OverTds, number: i32, times: u64) {
    let error = SqlError::new(number, "planted text of the server");
    rig.fake.server().faults().inject("SELECT", error, times);
}

#[test]
fn errors_that_pass_are_tried_again_until_they_have() {
    block_on(async {
        let rig = filled(3).await;
        for number in [1205, 1222, 3960, 4060, 10_928, 10_929, 40_197, 40_501, 40_613, 49_918] {
            let source = rig.source_of("sa");
            plant(&rig, number, 3);
            assert!(matches!(source.high().await.unwrap(), Bound::At(_)), "{number}");
            // The budget has four tries.
            plant(&rig, number, 4);
            let error = source.high().await.unwrap_err();
            assert_eq!(error.context("error"), Some(number.to_string().as_str()));
            assert!(source.high().await.is_ok(), "{number}: all four were used");
        }
    });
}

#[test]
fn errors_that_stay_are_not_tried_again() {
    block_on(async {
        let rig = filled(3).await;
        for (number, kind) in [
            (207, ErrorKind::Config),
            (208, ErrorKind::Config),
            (229, ErrorKind::Unauthorized),
            (245, ErrorKind::InvalidData),
            (313, ErrorKind::DataLoss),
        ] {
            let source = rig.source_of("sa");
            plant(&rig, number, 1);
            let error = source.high().await.unwrap_err();
            assert_eq!(error.kind(), kind, "{number}");
            assert!(!error.report().contains("planted"), "{}", error.report());
            assert!(source.high().await.is_ok());
        }
    });
}

#[test]
fn a_read_that_fails_before_its_first_row_is_whole_afterwards() {
    for reader in READERS {
        block_on(async {
            let rig = filled_for(1_000, *reader).await;
            let source = rig.source_of("sa");
            let request = all(&source).await;
            source.commit_time(request.range.to()).await.unwrap();
            for _ in 0..3 {
                plant(&rig, 1205, 2);
                let mut stream = source.changes(request.clone()).await.unwrap();
                let mut ids = Vec::new();
                while let Some(batch) = stream.next().await {
                    let batch = batch.unwrap();
                    let column = batch.column(5);
                    let column = column.as_any().downcast_ref::<arrow_array::Int32Array>().unwrap();
                    ids.extend(column.values().iter().copied());
                }
                assert_eq!(ids, (0..1_000).collect::<Vec<_>>());
            }
        });
    }
}

#[test]
fn a_read_that_breaks_after_rows_is_not_begun_again() {
    for reader in READERS {
        block_on(async {
            let rig = filled_for(1_000, *reader).await;
            let source = rig.source_of("sa");
            for rows in [150_u64, 500, 999] {
                rig.fake.server().faults().kill_after_rows(u64::MAX);
                rig.fake.server().faults().kill_after_rows(rows);
                let request = RowRequest {
                    table: orders(),
                    columns: columns(),
                    key: Vec::new(),
                    range: cdc_core::port::KeyRange::default(),
                    batch_rows: 100,
                };
                let mut stream = source.rows(request).await.unwrap();
                let (mut read, mut failed) = (0, None);
                while let Some(item) = stream.next().await {
                    assert!(failed.is_none(), "an item came after the error");
                    match item {
                        Ok(batch) => read += u64::try_from(batch.num_rows()).unwrap(),
                        Err(error) => failed = Some(error),
                    }
                }
                assert!(read <= rows, "{read} of {rows}");
                assert_eq!(failed.expect("an error, not an end").kind(), ErrorKind::Unavailable);
            }
        });
    }
}

#[test]
fn each_missing_right_has_its_own_grant() {
    block_on(async {
        let rig = filled(3).await;
        let server = rig.fake.server();
        server.create_login("reader", crate::rig::PASSWORD).unwrap();
        rig.fake.database().create_user("reader", Some("reader"), None).unwrap();
        let source = rig.source_of("reader");
        let table = TableRef::Table(orders());
        // Without any right.
        let error = source.instances(&table).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthorized, "{}", error.report());
        let grant = "GRANT SELECT ON [dbo].[orders] TO [reader]";
        assert!(error.advice().contains(grant), "{}", error.advice());
        let error = source.count(&orders(), &[], &Default::default()).await.unwrap_err();
        assert!(error.advice().contains(grant), "{}", error.advice());
        // With the table, without its changes.
        rig.fake.database().grant_select("reader", &orders());
        let request = all(&rig.source_of("sa")).await;
        let grant = "GRANT SELECT ON [cdc].[dbo_orders_CT] TO [reader]";
        let failed = match source.changes(request.clone()).await {
            Err(error) => error,
            Ok(mut stream) => stream.next().await.unwrap().unwrap_err(),
        };
        assert_eq!(failed.kind(), ErrorKind::Unauthorized);
        assert!(failed.advice().contains(grant), "{}", failed.advice());
        let error = source.has_changes(&[(instance(), request.range)]).await.unwrap_err();
        assert!(error.advice().contains(grant), "{}", error.advice());
        let findings = source.preflight(&[table]).await.unwrap();
        let found = findings.iter().any(|finding| {
            finding.level == FindingLevel::Failure && finding.remedy.contains(grant)
        });
        assert!(found, "{findings:?}");
    });
}

#[test]
fn a_wrong_password_is_refused_once_and_never_shown() {
    block_on(async {
        let rig = filled(1).await;
        let secret = "hunter2 planted";
        let mut config = rig.config("sa");
        config.login = Login::Password { user: "sa".into(), password: Secret::new(secret) };
        let shown = format!("{config:?}");
        let source = MssqlSource::new(config);
        let error = source.high().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthorized);
        assert_eq!(error.context("error"), Some("18456"));
        let told = format!("{shown} {source:?} {error:?} {} {}", error.report(), error.advice());
        assert!(!told.contains(secret), "{told}");
    });
}

#[test]
fn a_token_comes_from_a_command_whose_output_is_never_shown() {
    block_on(async {
        let rig = filled(1).await;
        for (words, reason) in [
            (vec!["false"], "it failed"),
            (vec!["true"], "it prints no token"),
            (vec!["/no/such/program"], "entity not found"),
            (vec!["sh", "-c", "echo planted; exit 1"], "it failed"),
        ] {
            let mut config = rig.config("sa");
            config.login = Login::TokenCommand(words.into_iter().map(str::to_owned).collect());
            let error = MssqlSource::new(config).high().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unauthorized);
            assert_eq!(error.context("reason"), Some(reason));
            assert!(!error.report().contains("planted"));
        }
    });
}

#[test]
fn a_server_that_is_not_there_or_says_nothing_is_unavailable() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = listener.local_addr().unwrap();
        let mut config = crate::rig::config(silent, "suite", "sa");
        config.connect_timeout = Duration::from_millis(100);
        config.retry.attempts_max = 2;
        let error = MssqlSource::new(config.clone()).high().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.report());
        drop(listener);
        let error = MssqlSource::new(config).high().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.report());
        assert!(error.report().contains(&silent.to_string()), "{}", error.report());
    });
}

#[test]
fn a_connection_that_fell_silent_is_never_used_again() {
    block_on(async {
        let rig = filled(3).await;
        let relay = Relay::before(rig.address).await;
        let mut config = rig.config("sa");
        config.port = relay.address.port();
        config.silence_max = Duration::from_millis(100);
        config.retry.attempts_max = 1;
        let source = MssqlSource::new(config);
        let high = source.high().await.unwrap();
        let time = async |source: &MssqlSource| {
            let Bound::At(at) = high else { panic!("a position") };
            source.commit_time(at).await
        };
        assert_eq!(relay.connections(), 1);
        relay.open.send(false).unwrap();
        let error = time(&source).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(error.context("setting"), Some("source.silence_max"));
        relay.open.send(true).unwrap();
        // The late answer belongs to the old connection.
        assert_eq!(source.high().await.unwrap(), high);
        assert_eq!(relay.connections(), 2);
    });
}

#[test]
fn a_dropped_question_and_a_dropped_stream_take_their_connections_with_them() {
    block_on(async {
        let rig = filled(1_000).await;
        let relay = Relay::before(rig.address).await;
        let mut config = rig.config("sa");
        config.port = relay.address.port();
        let source = MssqlSource::new(config);
        let high = source.high().await.unwrap();
        relay.open.send(false).unwrap();
        let instances = [instance()];
        let asked = tokio::time::timeout(Duration::from_millis(50), source.low(&instances));
        assert!(asked.await.is_err(), "dropped while it waits");
        relay.open.send(true).unwrap();
        assert_eq!(source.high().await.unwrap(), high);
        assert_eq!(relay.connections(), 2);
        let mut request = all(&source).await;
        request.batch_rows = 10;
        let mut stream = source.changes(request).await.unwrap();
        stream.next().await.unwrap().unwrap();
        drop(stream);
        assert_eq!(source.high().await.unwrap(), high);
        assert_eq!(relay.connections(), 3, "the stream's connection is gone");
        assert_eq!(source.high().await.unwrap(), high);
        assert_eq!(relay.connections(), 3, "one that was read to its end is used again");
    });
}

#[cfg(feature = "mssql-tds")]
#[test]
fn a_bulk_connection_is_used_again_only_when_its_answer_was_read_to_its_end() {
    block_on(async {
        let rig = filled_for(1_000, BulkReader::MssqlTds).await;
        let relay = Relay::before(rig.address).await;
        let mut config = rig.config("sa");
        config.port = relay.address.port();
        let source = MssqlSource::new(config);
        let mut request = all(&source).await;
        request.batch_rows = 10;
        assert_eq!(relay.connections(), 1, "questions have a connection");
        for read_whole in [true, true, false, true] {
            let mut stream = source.changes(request.clone()).await.unwrap();
            while let Some(batch) = stream.next().await {
                batch.unwrap();
                if !read_whole {
                    break;
                }
            }
        }
        assert_eq!(relay.connections(), 3, "the one that was dropped in the middle is gone");
    });
}

#[test]
fn a_silence_within_the_rows_ends_the_read() {
    for reader in READERS {
        block_on(async {
            let rig = filled_for(20_000, *reader).await;
            let relay = Relay::before(rig.address).await;
            let mut config = rig.config("sa");
            config.port = relay.address.port();
            config.silence_max = Duration::from_millis(200);
            config.retry.attempts_max = 1;
            let source = MssqlSource::new(config);
            let request = all(&source).await;
            let mut stream = source.changes(request).await.unwrap();
            stream.next().await.unwrap().unwrap();
            relay.open.send(false).unwrap();
            let mut last = None;
            while let Some(item) = stream.next().await {
                assert!(last.is_none(), "an item came after the error");
                last = item.err();
            }
            let error = last.expect("an error, not an end");
            assert_eq!(error.context("setting"), Some("source.silence_max"));
        });
    }
}

#[test]
fn a_failure_between_statements_is_not_seen() {
    block_on(async {
        let rig = filled(3).await;
        let source = rig.source_of("sa");
        let high = source.high().await.unwrap();
        // Every session ends, as in a failover: the idle connection is found dead.
        for session in rig.fake.server().session_list() {
            rig.fake.server().kill(session.id).unwrap();
        }
        assert_eq!(source.high().await.unwrap(), high);
    });
}
