//! The guard in the target: keys of every kind, markers, epochs, and what a change does not say.

use cdc_conformance::{Cell, Feed, feed};
use cdc_core::{Column, Epoch, Length, SqlType, TableSpec, port::Sink};

use crate::{
    history::{WIDTH, commit, order, orders, step, table},
    private_server::Server,
    support::{block_on, config, connect, new_schema, shared, sink},
};

fn int(name: &str, id: i32, nullable: bool) -> Column {
    Column::new(name, id, SqlType::Int, nullable)
}

/// The rows of a query, each as one text.
async fn texts(server: &Server, query: &str) -> Vec<String> {
    let rows = connect(server).await.query(query, &[]).await.expect("the query runs");
    rows.iter().map(|row| row.get(0)).collect()
}

/// Feeds one table of the shared server, a commit a batch.
async fn fed(schema: &str, spec: &TableSpec, batches: Vec<Feed>, pieces: bool) {
    let mut config = config(shared().unwrap(), schema);
    config.stage_bytes_max = if pieces { 1 } else { config.stage_bytes_max };
    let mut attached = sink(&config).attach(spec).await.unwrap();
    for (batch, number) in batches.iter().zip(1..) {
        let changes = batch.changes().unwrap();
        step(attached.table.as_mut(), changes, commit(number, 100)).await.unwrap();
    }
}

#[test]
fn a_table_of_nothing_but_its_key_takes_the_same_key_three_times() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let spec = table("pairs", vec![int("a", 1, false), int("b", 2, false)], &["a", "b"]);
    let pair = |a, b| [Cell::Int(a), Cell::Int(b)];
    let batch = Feed::new(&spec.columns)
        .insert(1, pair(1, 1))
        .delete(1, pair(1, 1))
        .insert(1, pair(1, 1))
        .insert(1, pair(1, 2));
    block_on(async {
        fed(&schema, &spec, vec![batch.clone(), batch], false).await;
        let query = format!("SELECT a || '.' || b FROM \"{schema}\".pairs_live ORDER BY 1");
        assert_eq!(texts(server, &query).await, ["1.1", "1.2"]);
    });
}

#[test]
fn null_is_a_key_like_others_where_the_source_allows_it() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let computed = Column { computed: true, ..int("total", 4, true) };
    let columns = vec![int("a", 1, false), int("b", 2, true), int("v", 3, true), computed];
    let spec = table("sparse", columns, &["a", "b"]);
    let row = |b: Option<i64>, v| {
        let b = b.map_or(Cell::Null, Cell::Int);
        [Cell::Int(1), b, Cell::Int(v), Cell::Null]
    };
    let first = Feed::new(&spec.columns).insert(1, row(None, 1)).insert(1, row(Some(0), 2));
    let second = Feed::new(&spec.columns)
        .starting_at(10)
        .update(2, row(None, 1), row(None, 3))
        .delete(2, row(Some(0), 2));
    block_on(async {
        fed(&schema, &spec, vec![first, second], false).await;
        let query = format!("SELECT concat(a, '.', b, '=', v) FROM \"{schema}\".sparse_live");
        assert_eq!(texts(server, &query).await, ["1.=3"]);
    });
}

#[test]
fn a_deleted_row_stays_as_a_marker_that_no_older_row_revives() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let late = Feed::new(&orders().columns).insert(3, order(1, "late", 1));
    let batches = vec![
        Feed::new(&orders().columns).insert(1, order(1, "ink", 1)),
        Feed::new(&orders().columns).delete(5, order(1, "ink", 1)),
        late,
    ];
    block_on(async {
        fed(&schema, &orders(), batches, false).await;
        let live = format!("SELECT \"Name\" FROM \"{schema}\".orders_live");
        assert!(texts(server, &live).await.is_empty());
        let soft = format!("SELECT concat(src_deleted, \"Name\") FROM \"{schema}\".orders_soft");
        assert_eq!(texts(server, &soft).await, ["tink"]);
        let marker = format!("SELECT concat(source_epoch, ' ', src_pos) FROM \"{schema}\".orders");
        let position = format!("0 {:020X}{:010}{:020X}1", 5, 2, 1);
        assert_eq!(texts(server, &marker).await, [position]);
    });
}

#[test]
fn a_later_epoch_wins_whatever_its_positions_are() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    block_on(async {
        let sink = sink(&config(server, &schema));
        let mut attached = sink.attach(&orders()).await.unwrap();
        let batch = |number, name| {
            Feed::new(&orders().columns).insert(number, order(1, name, 1)).changes().unwrap()
        };
        let table = attached.table.as_mut();
        step(table, batch(900, "old log"), commit(1, 900)).await.unwrap();
        let mut next = commit(2, 5);
        next.mark.end = next.mark.end.in_epoch(Epoch(1));
        step(table, batch(5, "new log"), next).await.unwrap();
        let query = format!("SELECT concat(source_epoch, \"Name\") FROM \"{schema}\".orders");
        assert_eq!(texts(server, &query).await, ["1new log"]);
    });
}

#[test]
fn what_a_change_does_not_say_stays_through_pieces_and_commits() {
    let Some(server) = shared() else { return };
    let body = Column::new("body", 3, SqlType::NVarChar(Length::Max), true);
    let computed = Column { computed: true, ..int("total", 2, true) };
    let spec = table("notes", vec![int("id", 1, false), computed, body], &["id"]);
    for pieces in [false, true] {
        let schema = new_schema();
        block_on(async {
            let mut config = config(server, &schema);
            config.stage_bytes_max = if pieces { 1 } else { config.stage_bytes_max };
            let mut attached = sink(&config).attach(&spec).await.unwrap();
            let table = attached.table.as_mut();
            let row = |id, total: Option<i64>, body: Option<&str>| {
                let total = total.map_or(Cell::Null, Cell::Int);
                [Cell::Int(id), total, body.map_or(Cell::Null, Cell::text)]
            };
            let seen = Feed::new(&spec.columns)
                .insert(1, row(1, Some(40), Some("one")))
                .insert(1, row(2, Some(50), Some("two")))
                .insert(1, row(3, None, Some("three")));
            table.stage(seen.snapshot(feed::stamp(WIDTH, 1).unwrap()).unwrap()).await.unwrap();
            table.commit(commit(1, 1)).await.unwrap();
            let changes = Feed::new(&spec.columns)
                .update(2, row(1, None, None), row(1, None, Some("first")))
                .delete(2, row(2, None, Some("two")));
            table.stage(changes.changes().unwrap()).await.unwrap();
            // A newer row of a deleted key has nothing of the old one.
            let again = Feed::new(&spec.columns)
                .starting_at(9)
                .insert(3, row(2, None, Some("second")))
                .update(3, row(1, None, None), row(1, None, None));
            table.stage(again.changes().unwrap()).await.unwrap();
            table.commit(commit(2, 3)).await.unwrap();
            let query = format!(
                "SELECT concat(id, ' ', total, ' ', body) FROM \"{schema}\".notes_live ORDER BY id"
            );
            assert_eq!(texts(server, &query).await, ["1 40 ", "2  second", "3  three"]);
        });
    }
}

#[test]
fn a_column_that_somebody_widened_goes_on_and_one_that_somebody_added_is_left_alone() {
    let Some(server) = shared() else { return };
    let schema = new_schema();
    let client_text = format!(
        "DROP VIEW \"{schema}\".orders_live, \"{schema}\".orders_soft; \
         ALTER TABLE \"{schema}\".orders ALTER COLUMN id TYPE bigint, \
         ALTER COLUMN amount TYPE numeric(20,6), ADD COLUMN extra text NOT NULL DEFAULT 'kept'"
    );
    block_on(async {
        let first = Feed::new(&orders().columns).insert(1, order(1, "ink", 250));
        fed(&schema, &orders(), vec![first], false).await;
        connect(server).await.batch_execute(&client_text).await.unwrap();
        let sink = sink(&config(server, &schema));
        let mut attached = sink.attach(&orders()).await.unwrap();
        let table = attached.table.as_mut();
        // The views come back with the next column.
        let note = Column::new("note", 4, SqlType::Date, true);
        table.evolve(std::slice::from_ref(&note)).await.unwrap();
        let second = Feed::new(&orders().columns)
            .update(2, order(1, "ink", 250), order(1, "ink", 275))
            .insert(2, order(2, "pen", 90));
        step(table, second.changes().unwrap(), commit(2, 100)).await.unwrap();
        let query = format!(
            "SELECT concat(l.id, ' ', l.amount, ' ', t.extra) FROM \"{schema}\".orders_live l \
             JOIN \"{schema}\".orders t USING (id) ORDER BY 1"
        );
        assert_eq!(texts(server, &query).await, ["1 2.750000 kept", "2 0.900000 kept"]);
    });
}
