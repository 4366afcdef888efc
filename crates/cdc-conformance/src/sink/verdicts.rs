//! Verdicts: completeness beside the data, and never ahead of it.

use cdc_core::{ErrorKind, Verdict, port::TargetState};

use super::{
    Session, SinkHarness,
    session::{WIDTH, orders},
};
use crate::{
    feed,
    outcome::{Failure, refused, same},
};

type Checked = Result<(), Failure>;

pub(super) async fn a_verdict_is_stored_beside_the_data(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    for (until, end) in [(None, 10), (Some(8), 10), (Some(10), 10)] {
        let verdict = verdict(until, end)?;
        let Some(stored) = published(&mut session, verdict).await? else {
            return Ok(());
        };
        same("what publish returns", stored, verdict)?;
        same("what inspect tells", state(&mut session).await?.verdict, Some(verdict))?;
    }
    harness.crash().await;
    let attached = harness.sink().await.attach(&session.spec).await?;
    same("what attach tells", attached.state.verdict, Some(verdict(Some(10), 10)?))
}

pub(super) async fn a_verdict_never_goes_back(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    session.commit(20).await?;
    let Some(_) = published(&mut session, verdict(Some(15), 20)?).await? else {
        return Ok(());
    };
    for earlier in [Some(14), None] {
        let stored = session.table.publish(verdict(earlier, 20)?).await?;
        let moment = Some(feed::time(15));
        same("the moment that publish returns", stored.finalized_until, moment)?;
        let told = state(&mut session).await?.verdict;
        same("what inspect tells", told, Some(stored))?;
        session.reattach().await?;
        same("what the next runner sees", state(&mut session).await?.verdict, Some(stored))?;
    }
    Ok(())
}

pub(super) async fn a_verdict_without_a_mark_is_a_bug(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::open(harness, orders()).await?;
    not_published(&mut session, verdict(Some(1), 1)?).await
}

pub(super) async fn a_verdict_beyond_the_mark_is_a_bug(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    not_published(&mut session, verdict(Some(10), 11)?).await?;
    session.reattach().await?;
    not_published(&mut session, verdict(Some(11), 10)?).await
}

pub(super) async fn a_verdict_moves_no_mark(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let Some(_) = published(&mut session, verdict(Some(10), 10)?).await? else {
        return Ok(());
    };
    session.check("after the verdict").await?;
    session.commit(11).await?;
    session.check("after the next commit").await?;
    session.reattach().await?;
    let expected = TargetState { mark: session.mark, verdict: Some(verdict(Some(10), 10)?) };
    same("what inspect tells", state(&mut session).await?, expected)
}

/// Publishes, or checks that a sink without the capability refuses to.
async fn published(
    session: &mut Session<'_>,
    verdict: Verdict,
) -> Result<Option<Verdict>, Failure> {
    let result = session.table.publish(verdict).await;
    if session.sink.capabilities().stores_verdict {
        return Ok(Some(result?));
    }
    refused("publish without the capability", result, ErrorKind::Unsupported)?;
    session.reattach().await?;
    same("the stored verdict", state(session).await?.verdict, None)?;
    Ok(None)
}

/// A verdict that the mark does not allow: refused, and nothing stored.
async fn not_published(session: &mut Session<'_>, verdict: Verdict) -> Checked {
    let result = session.table.publish(verdict).await;
    let kind = if session.sink.capabilities().stores_verdict {
        ErrorKind::Bug
    } else {
        ErrorKind::Unsupported
    };
    refused("a verdict beyond the mark", result, kind)?;
    same("the stored verdict", state(session).await?.verdict, None)
}

async fn state(session: &mut Session<'_>) -> Result<TargetState, Failure> {
    let state = session.harness.sink().await.inspect(&session.spec).await?;
    Ok(state.unwrap_or_default())
}

fn verdict(until: Option<u64>, end: u64) -> Result<Verdict, Failure> {
    Ok(Verdict { finalized_until: until.map(feed::time), end: feed::stamp(WIDTH, end)? })
}
