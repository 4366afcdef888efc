//! What the target cannot hold or may not do: each said by name, and nothing of it is written.

use cdc_conformance::{Cell, Feed, feed};
use cdc_core::{Column, Error, ErrorKind, Length, SqlType, TableSpec, port::Sink};
use cdc_postgres::{NulInText, PostgresConfig};

use crate::{
    history::{WIDTH, commit, order, orders, step, table},
    support::{block_on, config, connect, new_schema, shared, sink},
};

/// The error of an attach.
async fn refused(config: &PostgresConfig, spec: &TableSpec) -> Error {
    sink(config).attach(spec).await.err().expect("refused")
}

async fn execute(text: &str) {
    connect(shared().unwrap()).await.batch_execute(text).await.expect("executes");
}

fn text_column(name: &str, id: i32) -> Column {
    Column::new(name, id, SqlType::NVarChar(Length::Max), true)
}

fn id() -> Column {
    Column::new("id", 1, SqlType::Int, false)
}

#[test]
fn a_name_that_is_taken_is_not_touched() {
    let Some(server) = shared() else { return };
    block_on(async {
        for kind in ["TABLE orders (x int)", "VIEW orders_live AS SELECT 1", "TABLE orders_soft ()"]
        {
            let schema = new_schema();
            execute(&format!("CREATE SCHEMA \"{schema}\"")).await;
            execute(&format!("SET search_path = \"{schema}\"; CREATE {kind}")).await;
            let error = refused(&config(server, &schema), &orders()).await;
            assert_eq!(error.kind(), ErrorKind::Config, "{kind}");
            let state = sink(&config(server, &schema)).inspect(&orders()).await.unwrap();
            assert_eq!(state, None);
        }
    });
}

#[test]
fn a_target_with_another_key_or_without_a_column_is_refused() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let config = config(server, &schema);
    block_on(async {
        sink(&config).attach(&orders()).await.unwrap();
        let mut other = orders();
        other.key = vec!["Name".into()];
        let error = refused(&config, &other).await;
        assert_eq!(error.kind(), ErrorKind::SchemaChanged);
        assert_eq!(error.context("captured_key"), Some("Name"));

        let cut = format!("ALTER TABLE \"{schema}\".orders DROP COLUMN amount CASCADE");
        execute(&cut).await;
        let error = refused(&config, &orders()).await;
        assert_eq!(
            (error.kind(), error.context("columns")),
            (ErrorKind::InvalidData, Some("amount"))
        );

        execute(&format!("DROP TABLE \"{schema}\".orders CASCADE")).await;
        assert_eq!(refused(&config, &orders()).await.kind(), ErrorKind::InvalidData);
    });
}

#[test]
fn a_record_that_is_gone_or_damaged_is_said() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let config = config(server, &schema);
    block_on(async {
        let sink = sink(&config);
        let mut attached = sink.attach(&orders()).await.unwrap();
        execute(&format!("UPDATE \"{schema}\".cdc_control SET mark_end = '0xZZ'")).await;
        let error = sink.inspect(&orders()).await.expect_err("damaged");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        execute(&format!("DELETE FROM \"{schema}\".cdc_control")).await;
        let error = attached.table.commit(commit(1, 1)).await.expect_err("gone");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    });
}

#[test]
fn a_nul_becomes_another_character_where_that_is_wanted() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let mut config = config(server, &schema);
    config.nul_in_text = NulInText::Replace;
    let spec = table("notes", vec![text_column("id", 1), text_column("note", 2)], &["id"]);
    block_on(async {
        let mut attached = sink(&config).attach(&spec).await.unwrap();
        let rows = Feed::new(&spec.columns)
            .insert(1, [Cell::text("a"), Cell::text("one")])
            .insert(1, [Cell::text("b"), Cell::text("t\0wo")])
            .insert(1, [Cell::text("c"), Cell::text("three")]);
        step(attached.table.as_mut(), rows.changes().unwrap(), commit(1, 1)).await.unwrap();
        let client = connect(server).await;
        let text = format!("SELECT string_agg(note, ',' ORDER BY id) FROM \"{schema}\".notes_live");
        let found: String = client.query_one(&text, &[]).await.unwrap().get(0);
        assert_eq!(found, "one,t\u{fffd}wo,three");
        // In a key two rows could become one.
        let rows = Feed::new(&spec.columns).insert(2, [Cell::text("k\0"), Cell::Null]);
        let error = attached.table.stage(rows.changes().unwrap()).await.expect_err("refused");
        assert_eq!((error.kind(), error.context("column")), (ErrorKind::InvalidData, Some("id")));
    });
}

#[test]
fn dates_outside_of_years_1_to_9999_are_refused_and_floats_keep_their_infinities() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let columns = vec![
        id(),
        Column::new("day", 2, SqlType::Date, true),
        Column::new("moment", 3, SqlType::DateTime2 { scale: 7 }, true),
        Column::new("instant", 4, SqlType::DateTimeOffset { scale: 7 }, true),
        Column::new("ratio", 5, SqlType::Float, true),
    ];
    let spec = table("ranges", columns, &["id"]);
    let row = |cells: [Cell; 4]| {
        let mut all = vec![Cell::Int(1)];
        all.extend(cells);
        Feed::new(&spec.columns).insert(1, all).changes().unwrap()
    };
    block_on(async {
        let (day, moment) = (Cell::Date(i32::MAX), i64::MAX);
        for (cells, column) in [
            ([day, Cell::Null, Cell::Null, Cell::Null], "day"),
            ([Cell::Null, Cell::Wall(moment), Cell::Null, Cell::Null], "moment"),
            ([Cell::Null, Cell::Null, Cell::Instant(i64::MIN), Cell::Null], "instant"),
        ] {
            let mut attached = sink(&config(server, &schema)).attach(&spec).await.unwrap();
            let error = attached.table.stage(row(cells)).await.expect_err(column);
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            assert_eq!(error.context("column"), Some(column));
            assert!(error.context("position").is_some());
        }
        let mut attached = sink(&config(server, &schema)).attach(&spec).await.unwrap();
        let rows = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN].iter().zip(1..).fold(
            Feed::new(&spec.columns),
            |feed, (ratio, id)| {
                let empty = [Cell::Null, Cell::Null, Cell::Null];
                let mut cells = vec![Cell::Int(id)];
                cells.extend(empty);
                cells.push(Cell::float(*ratio));
                feed.insert(1, cells)
            },
        );
        step(attached.table.as_mut(), rows.changes().unwrap(), commit(1, 1)).await.unwrap();
        let text = format!(
            "SELECT string_agg(ratio::text, ',' ORDER BY id) FROM \"{schema}\".ranges_live"
        );
        let found: String = connect(server).await.query_one(&text, &[]).await.unwrap().get(0);
        assert_eq!(found, "Infinity,-Infinity,NaN");
    });
}

#[test]
fn no_error_of_the_server_carries_a_value() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let config = config(server, &schema);
    block_on(async {
        let mut attached = sink(&config).attach(&orders()).await.unwrap();
        execute(&format!(
            "ALTER TABLE \"{schema}\".orders ADD CONSTRAINT dear CHECK (\"Name\" <> 'planted-4c1d')"
        ))
        .await;
        let rows = Feed::new(&orders().columns).insert(1, order(1, "planted-4c1d", 2));
        let result = step(attached.table.as_mut(), rows.changes().unwrap(), commit(1, 1)).await;
        let error = result.expect_err("the constraint holds");
        let said = (error.kind(), error.context("constraint"), error.context("sqlstate"));
        assert_eq!(said, (ErrorKind::InvalidData, Some("dear"), Some("23514")));
        assert!(!format!("{} {error:?}", error.report()).contains("planted"));

        // An index holds only so much of a key.
        let spec = table("wide", vec![text_column("id", 1)], &["id"]);
        let mut attached = sink(&config).attach(&spec).await.unwrap();
        let mut seed = 1u64;
        let mut drawn = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + u8::try_from((seed >> 33) % 89).unwrap())
        };
        // Nothing repeats, so the server cannot compress it.
        let long: String = (0..9_000).map(&mut drawn).collect();
        let rows = Feed::new(&spec.columns).insert(1, [Cell::text(&long)]);
        let result = step(attached.table.as_mut(), rows.changes().unwrap(), commit(1, 1)).await;
        let error = result.expect_err("too wide");
        assert_eq!(
            (error.kind(), error.context("sqlstate")),
            (ErrorKind::InvalidData, Some("54000"))
        );
        assert!(!error.report().contains(&long[..40]));
    });
}

#[test]
fn a_missing_right_names_its_grant() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let mut config = config(server, &schema);
    config.user = format!("clerk {schema}");
    block_on(async {
        let user = format!("\"{}\"", config.user);
        execute(&format!("CREATE ROLE {user} LOGIN")).await;
        let error = refused(&config, &orders()).await;
        assert_eq!(error.kind(), ErrorKind::Unauthorized);
        assert!(error.advice().contains(&format!("TO {user}")), "{}", error.advice());

        execute(&format!("CREATE SCHEMA \"{schema}\"")).await;
        let error = refused(&config, &orders()).await;
        let grant = format!("GRANT USAGE, CREATE ON SCHEMA \"{schema}\" TO {user}");
        assert_eq!((error.kind(), error.advice()), (ErrorKind::Unauthorized, grant.as_str()));

        execute(&grant).await;
        sink(&config).attach(&orders()).await.expect("the grant is enough");
    });
}

#[test]
fn a_login_or_database_that_is_not_there_is_said() {
    let Some(server) = shared() else { return };
    block_on(async {
        let mut nobody = config(server, "x");
        nobody.user = "nobody knows".into();
        assert_eq!(refused(&nobody, &orders()).await.kind(), ErrorKind::Unauthorized);
        let mut nowhere = config(server, "x");
        nowhere.database = "nowhere".into();
        assert_eq!(refused(&nowhere, &orders()).await.kind(), ErrorKind::Config);
        let mut unreachable = config(server, "x");
        unreachable.host = "/nonexistent".into();
        assert_eq!(refused(&unreachable, &orders()).await.kind(), ErrorKind::Unavailable);
    });
}

#[test]
fn rows_of_another_epoch_than_their_mark_are_refused() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    block_on(async {
        let mut attached = sink(&config(server, &schema)).attach(&orders()).await.unwrap();
        let mut stamp = feed::stamp(WIDTH, 1).unwrap();
        let rows = Feed::new(&orders().columns).insert(1, order(1, "ink", 1));
        attached.table.stage(rows.snapshot(stamp).unwrap()).await.unwrap();
        stamp.position = stamp.position.in_epoch(cdc_core::Epoch(1));
        let mixed = attached.table.stage(rows.snapshot(stamp).unwrap()).await;
        assert_eq!(mixed.expect_err("two epochs").kind(), ErrorKind::Bug);
    });
}
