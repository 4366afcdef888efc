//! Fencing: one runner owns a table.

use std::sync::Arc;

use cdc_core::{Column, ErrorKind, SqlType, Verdict, port::TableSink};

use super::{
    Session, SinkHarness,
    session::{WIDTH, order, orders, table},
};
use crate::{
    feed::{self, Feed, commit},
    outcome::{Failure, refused, same},
};

type Checked = Result<(), Failure>;

pub(super) async fn an_attach_is_repeatable(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    for number in 11..=14 {
        session.reattach().await?;
        session.reattach().await?;
        let rows = session.feed().insert(number, order(2, "pen", 90)).changes()?;
        session.stage(rows).await?;
        session.commit(number).await?;
    }
    session.check("after many attaches").await
}

pub(super) async fn a_newer_attach_fences_a_commit_of_rows(harness: &dyn SinkHarness) -> Checked {
    let (mut old, mut session) = fenced(harness).await?;
    write_refused(&mut old).await?;
    session.check("after the refusal").await
}

pub(super) async fn a_newer_attach_fences_an_idle_commit(harness: &dyn SinkHarness) -> Checked {
    let (mut old, mut session) = fenced(harness).await?;
    let result = old.commit(commit(feed::mark(WIDTH, 2, 11)?)).await;
    refused("an idle commit of a fenced runner", result, ErrorKind::Fenced)?;
    session.check("after the refusal").await?;
    session.commit(12).await?;
    session.check("after the owner's commit").await
}

pub(super) async fn a_newer_attach_fences_evolve(harness: &dyn SinkHarness) -> Checked {
    let (mut old, mut session) = fenced(harness).await?;
    let result = old.evolve(&[note(SqlType::Int)]).await;
    if !session.sink.capabilities().add_columns {
        refused("evolve without the capability", result, ErrorKind::Unsupported)?;
        return Ok(());
    }
    refused("evolve of a fenced runner", result, ErrorKind::Fenced)?;
    // The column is not there: its owner adds it with another type.
    let text = note(SqlType::NText);
    session.table.evolve(std::slice::from_ref(&text)).await?;
    session.model.evolve(&[text]);
    session.check("after the owner's evolve").await
}

pub(super) async fn a_newer_attach_fences_publish(harness: &dyn SinkHarness) -> Checked {
    let (mut old, session) = fenced(harness).await?;
    let verdict = Verdict { finalized_until: Some(feed::time(10)), end: feed::stamp(WIDTH, 10)? };
    let result = old.publish(verdict).await;
    if !session.sink.capabilities().stores_verdict {
        refused("publish without the capability", result, ErrorKind::Unsupported)?;
        return Ok(());
    }
    refused("publish of a fenced runner", result, ErrorKind::Fenced)?;
    let state = session.sink.inspect(&session.spec).await?;
    let stored = state.and_then(|state| state.verdict);
    crate::outcome::same("the stored verdict", stored, None)
}

pub(super) async fn a_newer_attach_through_the_same_handle_fences_too(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::filled(harness).await?;
    let newer = session.sink.attach(&session.spec).await?;
    let mut old = std::mem::replace(&mut session.table, newer.table);
    write_refused(&mut old).await?;
    session.check("after the refusal").await?;
    session.commit(12).await?;
    session.check("after the owner's commit").await
}

pub(super) async fn a_fence_holds_after_the_newer_runner_left(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::filled(harness).await?;
    let newer = harness.sink().await.attach(&session.spec).await?;
    newer.table.close().await?;
    write_refused(&mut session.table).await?;
    session.check("after the refusal").await
}

pub(super) async fn a_fence_guards_its_own_table_only(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let _other = Session::open(harness, table("fees", orders().columns)).await?;
    let rows = session.feed().insert(12, order(2, "pen", 90)).changes()?;
    session.stage(rows).await?;
    session.commit(12).await?;
    session.check("after another table was attached").await
}

pub(super) async fn inspect_fences_nobody(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let rows = session.feed().insert(12, order(2, "pen", 90)).changes()?;
    session.stage(rows).await?;
    session.sink.inspect(&session.spec).await?;
    harness.sink().await.inspect(&session.spec).await?;
    session.commit(12).await?;
    session.check("after an inspect in the middle").await
}

pub(super) async fn an_owner_is_never_told_that_it_was_superseded(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::filled(harness).await?;
    same("the owner", session.sink.is_superseded(&session.spec).await?, false)?;
    let older = Arc::clone(&session.sink);
    session.sink = harness.sink().await;
    session.table = session.sink.attach(&session.spec).await?.table;
    same("the newer owner", session.sink.is_superseded(&session.spec).await?, false)?;
    // Whether the older one is told is the sink's choice; taking the table back settles it.
    older.is_superseded(&session.spec).await?;
    session.table = older.attach(&session.spec).await?.table;
    same("the owner again", older.is_superseded(&session.spec).await?, false)?;
    session.commit(12).await?;
    session.check("after the table went to and fro").await
}

/// A runner that a newer one fenced, and the newer one.
async fn fenced(harness: &dyn SinkHarness) -> Result<(Box<dyn TableSink>, Session<'_>), Failure> {
    let mut session = Session::filled(harness).await?;
    session.sink = harness.sink().await;
    let newer = session.sink.attach(&session.spec).await?;
    let old = std::mem::replace(&mut session.table, newer.table);
    Ok((old, session))
}

/// Staging and committing is `Fenced`, at the latest when it is committed.
async fn write_refused(old: &mut Box<dyn TableSink>) -> Checked {
    let rows = Feed::new(&orders().columns).insert(11, order(2, "never", 1));
    let result = match old.stage(rows.changes()?).await {
        Ok(()) => old.commit(commit(feed::mark(WIDTH, 2, 11)?)).await.map(|_| ()),
        refusal => refusal,
    };
    refused("a write of a fenced runner", result, ErrorKind::Fenced)?;
    Ok(())
}

fn note(sql_type: SqlType) -> Column {
    Column::new("note", 9, sql_type, true)
}
