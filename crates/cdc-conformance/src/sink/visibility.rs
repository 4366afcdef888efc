//! Visibility: rows appear with their mark, or never.

use cdc_core::{ErrorKind, TableSpec, port::TargetState};

use super::{
    Session, SinkHarness,
    session::{WIDTH, order, orders},
};
use crate::{
    feed::{self, Feed, commit},
    outcome::{Failure, names, refused, same},
};

type Checked = Result<(), Failure>;

/// Pieces of a huge commit, and rows of a piece.
const PIECES: u32 = 40;
const PIECE_ROWS: u32 = 100;

pub(super) async fn rows_and_mark_become_visible_together(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    session.check("after the first commit").await?;
    let rows = session
        .feed()
        .insert(11, order(2, "pen", 90))
        .update(12, order(1, "ink", 250), order(1, "ink", 275))
        .delete(13, order(2, "pen", 90));
    session.stage(rows.changes()?).await?;
    session.check("before the second commit").await?;
    session.commit(13).await?;
    session.check("after the second commit").await
}

pub(super) async fn staged_rows_are_invisible_before_the_commit(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::open(harness, orders()).await?;
    for n in 1..=3_u8 {
        let feed = session.feed().starting_at(n.into());
        let rows = feed.insert(10, order(n.into(), "ink", 250));
        session.stage(rows.changes()?).await?;
        session.check("while rows are staged").await?;
    }
    session.commit(10).await?;
    session.check("after the commit").await
}

pub(super) async fn discarded_rows_never_appear(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    session.stage(unwanted()?).await?;
    session.table.discard().await?;
    session.model.discard();
    session.check("after the discard").await?;
    let rows = session.feed().insert(12, order(3, "pad", 120)).changes()?;
    session.stage(rows).await?;
    session.commit(12).await?;
    session.check("after the next commit").await
}

pub(super) async fn rows_of_a_dropped_table_never_appear(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    session.stage(unwanted()?).await?;
    // The attach of `reattach` fences it; here the table is gone before.
    let Session { sink, table, spec, mut model, mark, .. } = session;
    drop(table);
    let attached = sink.attach(&spec).await?;
    same("the durable mark", attached.state.mark, mark)?;
    model.discard();
    let mut session = Session { harness, sink, table: attached.table, spec, model, mark };
    session.check("after the drop").await?;
    session.commit(12).await?;
    session.check("after the next commit").await
}

pub(super) async fn rows_of_a_closed_table_never_appear(harness: &dyn SinkHarness) -> Checked {
    let session = Session::filled(harness).await?;
    let Session { sink, mut table, spec, model, mark, .. } = session;
    table.stage(unwanted()?).await?;
    table.close().await?;
    let attached = sink.attach(&spec).await?;
    same("the durable mark", attached.state.mark, mark)?;
    let mut session = Session { harness, sink, table: attached.table, spec, model, mark };
    session.check("after the close").await?;
    session.commit(12).await?;
    session.check("after the next commit").await
}

pub(super) async fn rows_staged_before_a_crash_never_appear(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    session.stage(unwanted()?).await?;
    harness.crash().await;
    session.reattach().await?;
    session.check("after the crash").await?;
    session.commit(12).await?;
    session.check("after the next commit").await
}

pub(super) async fn rows_staged_before_a_newer_attach_never_appear(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::filled(harness).await?;
    session.stage(unwanted()?).await?;
    session.reattach().await?;
    session.check("after the newer attach").await?;
    let rows = session.feed().insert(12, order(3, "pad", 120)).changes()?;
    session.stage(rows).await?;
    session.commit(12).await?;
    session.check("after its commit").await
}

pub(super) async fn rows_of_a_refused_commit_never_appear(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    session.table.stage(unwanted()?).await?;
    let result = session.table.commit(commit(feed::mark(WIDTH, 9, 12)?)).await;
    refused("a mark that skips", result, ErrorKind::Bug)?;
    session.reattach().await?;
    let rows = session.feed().insert(12, order(3, "pad", 120)).changes()?;
    session.stage(rows).await?;
    session.commit(12).await?;
    session.check("after the next commit").await
}

pub(super) async fn committed_rows_survive_a_crash(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    harness.crash().await;
    session.check("after the crash").await?;
    session.reattach().await?;
    let rows = session.feed().insert(12, order(3, "pad", 120)).changes()?;
    session.stage(rows).await?;
    session.commit(12).await?;
    harness.crash().await;
    session.check("after the second crash").await
}

pub(super) async fn many_stage_calls_become_one_commit(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    for number in 11..=20 {
        let rows =
            session.feed().update(number, order(1, "ink", 250), order(1, "ink", 251)).changes()?;
        session.stage(rows).await?;
    }
    session.check("before the commit").await?;
    session.commit(20).await?;
    session.check("after the commit").await
}

pub(super) async fn a_huge_commit_streams_in_pieces(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::open(harness, orders()).await?;
    for piece in 0..PIECES {
        let ids = piece * PIECE_ROWS..(piece + 1) * PIECE_ROWS;
        let feed = session.feed().starting_at(u64::from(ids.start) + 1);
        let rows =
            ids.fold(feed, |feed, id| feed.insert(10, order(id.into(), "one of many", id.into())));
        session.stage(rows.changes()?).await?;
    }
    session.check("before the commit").await?;
    session.commit(10).await?;
    session.check("after the commit").await
}

pub(super) async fn empty_batches_add_nothing(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::open(harness, orders()).await?;
    let empty = session.feed();
    session.stage(empty.changes()?).await?;
    session.commit(10).await?;
    session.check("after a commit of an empty batch").await?;
    session.stage(empty.changes()?).await?;
    session.stage(session.feed().insert(20, order(1, "ink", 250)).changes()?).await?;
    session.stage(empty.changes()?).await?;
    session.stage(empty.snapshot(feed::stamp(WIDTH, 20)?)?).await?;
    session.commit(20).await?;
    session.check("after a commit with empty batches").await
}

pub(super) async fn two_tables_do_not_mix(harness: &dyn SinkHarness) -> Checked {
    let mut first = Session::filled(harness).await?;
    let mut second = Session::open(harness, other()).await?;
    let rows = second.feed().insert(11, order(1, "fee", 1)).changes()?;
    second.stage(rows).await?;
    let rows = first.feed().insert(12, order(2, "pen", 90)).changes()?;
    first.stage(rows).await?;
    second.commit(11).await?;
    first.check("while only the other table committed").await?;
    second.check("after its own commit").await?;
    first.commit(12).await?;
    first.check("after both commits").await?;
    second.check("after both commits").await
}

pub(super) async fn inspect_of_nothing_is_none_and_creates_nothing(
    harness: &dyn SinkHarness,
) -> Checked {
    for _ in 0..2 {
        let state = harness.sink().await.inspect(&orders()).await?;
        same("the state of no target", state, None)?;
    }
    let seen = harness.rows(&orders()).await?;
    let rows: usize = seen.iter().map(arrow_array::RecordBatch::num_rows).sum();
    same("rows of no target", rows, 0)
}

pub(super) async fn inspect_tells_what_attach_tells(harness: &dyn SinkHarness) -> Checked {
    let session = Session::open(harness, orders()).await?;
    let fresh = session.sink.inspect(&session.spec).await?;
    same("an attached target", fresh, Some(TargetState::default()))?;
    drop(session);
    let mut spec = orders();
    spec.name = "orders_b".to_owned();
    let mut session = Session::open(harness, spec).await?;
    session.commit(10).await?;
    let expected = TargetState { mark: session.mark, verdict: None };
    let seen = harness.sink().await.inspect(&session.spec).await?;
    same("what inspect tells", seen, Some(expected))?;
    let attached = harness.sink().await.attach(&session.spec).await?;
    same("what attach tells", attached.state, expected)
}

pub(super) async fn a_target_of_another_source_table_is_refused(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::filled(harness).await?;
    let foreign =
        TableSpec { source: cdc_core::TableName::new("sales", "orders"), ..session.spec.clone() };
    let result = harness.sink().await.attach(&foreign).await;
    let error = refused("another source table", result, ErrorKind::Config)?;
    names(&error, "sales.orders")?;
    session.check("after the refusal").await?;
    session.reattach().await?;
    session.commit(12).await?;
    session.check("after the right attach").await
}

/// Rows that no case wants to see.
fn unwanted() -> Result<cdc_core::TableBatch, Failure> {
    Feed::new(&orders().columns)
        .insert(11, order(2, "never", 1))
        .insert(11, order(3, "never", 2))
        .changes()
}

fn other() -> TableSpec {
    TableSpec {
        name: "fees".to_owned(),
        source: cdc_core::TableName::new("dbo", "fees"),
        ..orders()
    }
}
