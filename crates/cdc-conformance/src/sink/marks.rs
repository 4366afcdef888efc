//! Marks: what is durable, and which mark may follow.

use cdc_core::{Committed, Epoch, ErrorKind, Mark, Position, Timestamp};

use super::{
    Session, SinkHarness,
    session::{WIDTH, order, orders},
};
use crate::{
    feed::{self, commit},
    outcome::{Failure, refused, same},
};

type Checked = Result<(), Failure>;

pub(super) async fn the_first_attach_has_no_mark(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::open(harness, orders()).await?;
    session.check("after the first attach").await
}

pub(super) async fn a_mark_round_trips_every_field(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::open(harness, orders()).await?;
    let end = |bytes: [u8; WIDTH], epoch| Position::new(Epoch(epoch), &bytes);
    let late = Timestamp::from_micros(253_402_300_799_999_999);
    let early = Timestamp::from_micros(-1);
    let fields = [
        (end([0; WIDTH], 0)?, None, None, 0),
        (end([0, 0, 0, 0, 0, 0, 0, 0, 1, 0], 0)?, Some(early), Some(early), 0),
        (end([0x7f; WIDTH], 0)?, Some(Timestamp::from_micros(1_234_567)), None, 0),
        (end([0x80; WIDTH], 0)?, None, Some(early), 0),
        (end([0xff; WIDTH], 0)?, Some(late), Some(early), 0),
        (end([0; WIDTH], 1)?, Some(late), Some(late), 0),
        (end([0xfe; WIDTH], 7)?, None, None, 3),
        (end([0xff; WIDTH], u32::MAX)?, Some(late), Some(early), u32::MAX),
    ];
    for (sequence, (end, commit_time, entry_time, generation)) in (1..).zip(fields) {
        let mark = Mark { sequence, end, commit_time, entry_time, generation };
        session.commit_mark(mark).await?;
        session.check("after a mark").await?;
        session.reattach().await?;
    }
    Ok(())
}

pub(super) async fn a_mark_keeps_a_position_of_every_width(harness: &dyn SinkHarness) -> Checked {
    for (width, n) in harness.position_widths().into_iter().zip(0u32..) {
        let mut spec = orders();
        spec.name = format!("orders_{n}");
        let mut session = Session::open(harness, spec).await?;
        let rows = session.feed().width(width).insert(u64::MAX, order(1, "ink", 1));
        session.stage(rows.changes()?).await?;
        session.commit_mark(feed::mark(width, 1, u64::MAX)?).await?;
        session.reattach().await?;
        session.check("after the commit").await?;
    }
    Ok(())
}

pub(super) async fn the_same_mark_again_is_before_and_writes_nothing(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::filled(harness).await?;
    session.reattach().await?;
    let mark = session.next(10)?;
    let durable = Mark { sequence: 1, ..mark };
    let again = session.feed().insert(10, order(1, "ink", 250)).changes()?;
    session.table.stage(again).await?;
    let committed = session.table.commit(commit(durable)).await?;
    same("the answer to the durable mark", committed, Committed::Before)?;
    session.check("after the same mark again").await?;

    // What was staged for the mark that was durable already does not slip into the next one.
    let batch = session.feed().insert(11, order(2, "pen", 90)).changes()?;
    session.stage(batch).await?;
    session.commit(11).await?;
    session.check("after the mark behind it").await
}

pub(super) async fn the_same_sequence_with_another_end_is_a_bug(
    harness: &dyn SinkHarness,
) -> Checked {
    refused_mark(harness, 1, 11).await?;
    Ok(())
}

pub(super) async fn the_first_sequence_is_one(harness: &dyn SinkHarness) -> Checked {
    for sequence in [0, 2] {
        let mut spec = orders();
        spec.name = format!("orders_{sequence}");
        let mut session = Session::open(harness, spec).await?;
        let rows = session.feed().insert(10, order(1, "ink", 250)).changes()?;
        session.table.stage(rows).await?;
        let result = session.table.commit(commit(feed::mark(WIDTH, sequence, 10)?)).await;
        refused("a first mark that is not 1", result, ErrorKind::Bug)?;
        session.check("after the refusal").await?;
    }
    Ok(())
}

pub(super) async fn a_lower_sequence_is_a_bug(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    session.commit(20).await?;
    let rows = session.feed().insert(30, order(2, "pen", 90)).changes()?;
    session.table.stage(rows).await?;
    let result = session.table.commit(commit(feed::mark(WIDTH, 1, 30)?)).await;
    refused("a lower sequence", result, ErrorKind::Bug)?;
    session.check("after the refusal").await
}

pub(super) async fn a_skipped_sequence_is_a_bug(harness: &dyn SinkHarness) -> Checked {
    refused_mark(harness, 3, 11).await
}

pub(super) async fn an_end_that_goes_back_is_a_bug(harness: &dyn SinkHarness) -> Checked {
    refused_mark(harness, 2, 9).await
}

pub(super) async fn an_end_may_stay(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let stamp = feed::stamp(WIDTH, 10)?;
    let chunk = session.feed().insert(10, order(7, "pad", 120));
    session.stage(chunk.chunk(stamp.position, stamp, 0)?).await?;
    session.commit(10).await?;
    session.reattach().await?;
    session.check("after a mark with the same end").await
}

pub(super) async fn the_next_generation_may_go_back(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let mark = Mark { generation: 1, ..session.next(5)? };
    let rows = session.feed().insert(5, order(9, "pad", 120)).changes()?;
    session.stage(rows).await?;
    session.commit_mark(mark).await?;
    session.reattach().await?;
    session.check("after a mark of the next generation").await
}

pub(super) async fn a_later_epoch_is_no_step_back(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let mut mark = session.next(1)?;
    mark.end = mark.end.in_epoch(Epoch(1));
    session.commit_mark(mark).await?;
    session.reattach().await?;
    session.check("after a mark of the next epoch").await
}

pub(super) async fn an_idle_commit_moves_the_mark(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    for number in [20, 30] {
        session.commit(number).await?;
        session.check("after an idle commit").await?;
    }
    session.reattach().await
}

/// A mark that may not follow the mark 1 that ends at commit 10: refused, and nothing written.
async fn refused_mark(harness: &dyn SinkHarness, sequence: u64, number: u64) -> Checked {
    let mut session = Session::filled(harness).await?;
    let rows = session.feed().insert(10, order(2, "pen", 90)).changes()?;
    session.table.stage(rows).await?;
    let mark = feed::mark(WIDTH, sequence, number)?;
    let result = session.table.commit(commit(mark)).await;
    refused("a mark that may not follow", result, ErrorKind::Bug)?;
    session.check("after the refusal").await?;
    session.reattach().await?;
    session.check("after the next attach").await
}
