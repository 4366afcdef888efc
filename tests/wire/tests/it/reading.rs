//! How rows of tables are read beside writers: isolation, locks, and an error between two rows.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cdc_conformance::{
    Cell,
    source::{SourceHarness, Statement},
};
use cdc_core::{
    Column, Error, ErrorKind, Length, SqlType, TableName,
    diagnosis::RowIsolation,
    port::{KeyRange, PositionLog, RowRequest, TableReader},
};
use cdc_fake::{VirtualClock, Zone};
use cdc_mssql::MssqlSource;
use futures_util::StreamExt;

use crate::rig::{OverTds, block_on};

fn table() -> TableName {
    TableName::new("dbo", "rows")
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("id", 1, SqlType::Int, false),
        Column::new("name", 2, SqlType::NVarChar(Length::Limited(20)), true),
    ]
}

async fn filled(rows: i64) -> OverTds {
    let rig = OverTds::plain(Zone::UTC).await;
    rig.create_table(&table(), &columns(), &["id"]).await.unwrap();
    let insert = |id| Statement::Insert(table(), vec![Cell::Int(id), Cell::text("committed")]);
    rig.transact(&(0..rows).map(insert).collect::<Vec<_>>()).await.unwrap();
    rig
}

/// Time that passes at the server until it is dropped.
struct Passing(Arc<AtomicBool>);

impl Passing {
    fn of(clock: &VirtualClock) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (clock, stop) = (clock.clone(), Arc::clone(&over));
        std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                clock.advance(Duration::from_millis(5));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self(over)
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The names that a read gives, and the error that it ends with.
async fn read(source: &MssqlSource) -> (Vec<String>, Option<Error>) {
    let request = RowRequest {
        table: table(),
        columns: columns(),
        key: Vec::new(),
        range: KeyRange::default(),
        batch_rows: 100,
    };
    let mut names = Vec::new();
    let mut stream = match source.rows(request).await {
        Ok(stream) => stream,
        Err(error) => return (names, Some(error)),
    };
    let mut failed = None;
    while let Some(item) = stream.next().await {
        assert!(failed.is_none(), "an item came after the error");
        match item {
            Ok(batch) => {
                let column = batch.column(1).as_any().downcast_ref::<arrow_array::StringArray>();
                names.extend(column.unwrap().iter().map(|name| name.unwrap().to_owned()));
            }
            Err(error) => failed = Some(error),
        }
    }
    (names, failed)
}

/// A transaction that has changed a row and not ended.
fn write(rig: &OverTds, id: i64) -> cdc_fake::Transaction {
    let mut open = rig.fake.database().begin();
    open.update(&table(), &[id.into()], &[("name", "open".into())]).unwrap();
    open
}

fn impatient(rig: &OverTds, attempts: u32) -> MssqlSource {
    let mut config = rig.config("sa");
    config.lock_timeout = Some(Duration::from_millis(20));
    config.retry.attempts_max = attempts;
    MssqlSource::new(config)
}

#[test]
fn a_read_that_waits_for_a_lock_too_long_is_tried_again_and_then_unavailable() {
    block_on(async {
        let rig = filled(5).await;
        let _passing = Passing::of(rig.fake.server().clock());
        let open = write(&rig, 0);
        let (names, error) = read(&impatient(&rig, 3)).await;
        let error = error.expect("the row is locked");
        assert_eq!((names.len(), error.kind()), (0, ErrorKind::Unavailable));
        assert_eq!(error.context("error"), Some("1222"), "{}", error.report());
        assert_eq!(error.context("table"), Some("dbo.rows"), "{}", error.report());
        let error = impatient(&rig, 1).count(&table(), &[], &KeyRange::default()).await;
        assert_eq!(error.unwrap_err().context("error"), Some("1222"));
        drop(open);
        let (names, error) = read(&impatient(&rig, 1)).await;
        assert!(error.is_none() && names.len() == 5, "{error:?}");
    });
}

#[test]
fn a_read_whose_writer_ends_within_the_budget_is_whole() {
    block_on(async {
        let rig = filled(5).await;
        let _passing = Passing::of(rig.fake.server().clock());
        let open = write(&rig, 0);
        let mut config = rig.config("sa");
        config.lock_timeout = Some(Duration::from_millis(20));
        config.retry.attempts_max = 1_000;
        let source = MssqlSource::new(config);
        let reading = tokio::spawn(async move { read(&source).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!reading.is_finished(), "it waits for the writer");
        open.commit().unwrap();
        let (names, error) = reading.await.unwrap();
        assert!(error.is_none(), "{error:?}");
        assert_eq!(names, ["open", "committed", "committed", "committed", "committed"]);
    });
}

#[test]
fn under_snapshot_isolation_a_read_waits_for_nobody_and_sees_what_was_committed() {
    block_on(async {
        let rig = filled(5).await;
        let mut config = rig.config("sa");
        config.isolation = RowIsolation::Snapshot;
        let source = MssqlSource::new(config);
        // The database has to allow it.
        let (_, error) = read(&source).await;
        let error = error.expect("refused");
        assert_eq!(error.kind(), ErrorKind::Config, "{}", error.report());
        assert_eq!(error.context("error"), Some("3952"));
        rig.fake.database().set_options(|options| options.allow_snapshot_isolation = true);
        let open = write(&rig, 0);
        let (names, error) = read(&source).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(names, ["committed"; 5]);
        drop(open);
        // Neither setting outlives its statement.
        source.high().await.unwrap();
        for session in rig.fake.server().session_list() {
            assert_eq!(session.isolation.number(), 2, "{session:?}");
            assert_eq!(session.lock_timeout, -1, "{session:?}");
        }
    });
}

/// The server sends rows, and then an error in place of the next one.
#[test]
fn an_error_between_two_rows_is_an_error_and_never_an_end() {
    block_on(async {
        let rig = filled(20_000).await;
        let _passing = Passing::of(rig.fake.server().clock());
        for place in [15_000, 19_999] {
            let open = write(&rig, place);
            let source = impatient(&rig, 4);
            let (names, error) = read(&source).await;
            assert!(!names.is_empty(), "rows came before the error");
            assert!(i64::try_from(names.len()).unwrap() <= place, "{} rows", names.len());
            let error = error.expect("an error, not an end");
            assert_eq!(error.context("error"), Some("1222"), "{}", error.report());
            drop(open);
            // The connection is not used again with the rest of that answer in it.
            let (names, error) = read(&source).await;
            assert!(error.is_none() && names.len() == 20_000, "{error:?}");
        }
    });
}
