//! Origins: changes in change order, snapshot rows and chunk rows with their stamps.

use cdc_core::{Column, Length, SqlType, Stamp, change::Operation};

use super::{
    Session, SinkHarness,
    session::{WIDTH, order, orders, table},
};
use crate::{
    cell::Cell,
    feed::{self, Feed},
    outcome::Failure,
};

type Checked = Result<(), Failure>;

pub(super) async fn both_images_of_an_update_are_kept(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let rows = session.feed().update(11, order(1, "ink", 250), order(1, "ink", 275)).update(
        12,
        order(1, "ink", 275),
        order(1, "blue ink", 275),
    );
    session.stage(rows.changes()?).await?;
    session.commit(12).await?;
    session.check("after the commit").await
}

pub(super) async fn a_deferred_update_ends_with_its_insert(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    // The log holds the insert (sequence value 7) before the delete (9); the command decides.
    let rows = session
        .feed()
        .change(11, Some(1), Some(9), Operation::Delete, order(1, "ink", 250))
        .change(11, Some(2), Some(7), Operation::Insert, order(1, "ink", 300));
    session.stage(rows.changes()?).await?;
    session.commit(11).await?;
    session.check("after the commit").await
}

pub(super) async fn a_key_update_moves_the_row(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let rows = session
        .feed()
        .change(11, Some(1), Some(1), Operation::Delete, order(1, "ink", 250))
        .change(11, Some(1), Some(1), Operation::Insert, order(2, "ink", 250))
        .update(12, order(2, "ink", 250), order(3, "ink", 250));
    session.stage(rows.changes()?).await?;
    session.commit(12).await?;
    session.check("after the commit").await
}

pub(super) async fn a_row_that_changes_often_ends_with_its_last_image(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::filled(harness).await?;
    let mut feed = session.feed();
    for amount in 251..=300 {
        feed = feed.update(11, order(1, "ink", amount - 1), order(1, "ink", amount));
    }
    let feed = feed
        .delete(11, order(1, "ink", 300))
        .insert(11, order(1, "new ink", 1))
        .insert(11, order(2, "pen", 1))
        .delete(11, order(2, "pen", 1));
    session.stage(feed.changes()?).await?;
    session.commit(11).await?;
    session.check("after the commit").await
}

pub(super) async fn snapshot_rows_bear_their_stamp(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::open(harness, orders()).await?;
    let stamp = feed::stamp(WIDTH, 10)?;
    let rows = session.feed().insert(10, order(1, "ink", 250));
    session.stage(rows.snapshot(stamp)?).await?;
    let rows = session.feed().insert(10, order(2, "pen", 90));
    session.stage(rows.snapshot(stamp)?).await?;
    session.commit(10).await?;
    session.check("after a snapshot").await?;

    // The begin of an instance, less one, is no commit and has no time.
    let mut spec = orders();
    spec.name = "orders_b".to_owned();
    let mut session = Session::open(harness, spec).await?;
    let timeless = Stamp { commit_time: None, ..stamp };
    let rows = session.feed().insert(10, order(1, "ink", 250));
    session.stage(rows.snapshot(timeless)?).await?;
    session.commit(10).await?;
    session.check("after a snapshot without a time").await
}

pub(super) async fn chunk_rows_bear_snapshot_stamp_and_index(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::open(harness, orders()).await?;
    let snapshot = feed::position(WIDTH, 10)?;
    session.commit(10).await?;
    for (index, number) in [(0, 10), (1, 12), (i32::MAX, 15)] {
        let id = i64::from(index);
        let rows = session.feed().insert(number, order(id, "chunk", 1));
        let stamp = feed::stamp(WIDTH, number)?;
        session.stage(rows.chunk(snapshot, stamp, index)?).await?;
        session.commit(number).await?;
        session.check("after a chunk").await?;
    }
    Ok(())
}

pub(super) async fn an_older_chunk_never_overwrites_a_newer_change(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::open(harness, orders()).await?;
    let changes = session
        .feed()
        .update(20, order(1, "ink", 1), order(1, "ink", 2))
        .delete(21, order(2, "pen", 1));
    session.stage(changes.changes()?).await?;
    session.commit(21).await?;
    let rows = session
        .feed()
        .insert(15, order(1, "ink", 1))
        .insert(15, order(2, "pen", 1))
        .insert(15, order(3, "pad", 1));
    let stamp = feed::stamp(WIDTH, 15)?;
    session.stage(rows.chunk(feed::position(WIDTH, 10)?, stamp, 0)?).await?;
    session.commit(21).await?;
    session.check("after a chunk of an older stamp").await
}

pub(super) async fn an_unknown_value_never_overwrites_a_known_one(
    harness: &dyn SinkHarness,
) -> Checked {
    let computed = Column { computed: true, ..Column::new("total", 2, SqlType::Int, true) };
    let body = Column::new("body", 3, SqlType::NVarChar(Length::Max), true);
    let id = Column::new("id", 1, SqlType::Int, false);
    let spec = table("notes", vec![id.clone(), computed, body.clone()]);
    let mut session = Session::open(harness, spec).await?;
    let known = [Cell::Int(1), Cell::Int(40), Cell::text("first")];
    let rows = session.feed().insert(10, known);
    session.stage(rows.snapshot(feed::stamp(WIDTH, 10)?)?).await?;
    session.commit(10).await?;

    // The before image leaves a large object out that did not change; the after image has it.
    let rows = session.feed().update(
        11,
        [Cell::Int(1), Cell::Null, Cell::Null],
        [Cell::Int(1), Cell::Null, Cell::text("first")],
    );
    session.stage(rows.changes()?).await?;
    session.commit(11).await?;
    session.check("after an update with a computed column").await?;

    // A newer instance that does not capture the computed column at all.
    let rows = Feed::new(&[id, body]).instance("dbo_notes_2").update(
        12,
        [Cell::Int(1)],
        [Cell::Int(1), Cell::Null],
    );
    session.stage(rows.changes()?).await?;
    session.commit(12).await?;
    session.check("after an update without the computed column").await
}

pub(super) async fn two_instances_feed_one_table(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let old = session.feed().insert(11, order(2, "pen", 90));
    session.stage(old.changes()?).await?;
    let new = session.feed().instance("dbo_orders_2").update(
        12,
        order(2, "pen", 90),
        order(2, "pen", 95),
    );
    session.stage(new.changes()?).await?;
    session.commit(12).await?;
    session.check("after a batch of two instances").await
}
