//! Positions: what can be read, when it happened, and what is counted.

use std::time::Duration;

use cdc_core::{Epoch, ErrorKind, InstanceName, Position, TableName, Timestamp, port::Bound};

use super::{
    SourceHarness, Statement,
    changes::commits,
    needs,
    scene::{Scene, columns, insert, instance, orders, range, rename, request},
};
use crate::{
    cell::Cell,
    outcome::{CaseResult, Failure, Outcome, check, refused, same},
};

/// Time between two commits where a case tells them apart by time.
const GAP: Duration = Duration::from_secs(10);

/// More entries of the mapping than any case makes.
const MANY: u64 = 10_000;

pub(super) async fn high_is_null_before_capture_wrote(harness: &dyn SourceHarness) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().holds_capture, "hold capture") {
        return skipped;
    }
    let source = harness.source().await;
    same("high of a new database", source.high().await?, Bound::Null)?;
    harness.create_table(&orders(), &columns(), &["id"]).await?;
    harness.enable(&orders(), &instance(), None).await?;
    same("high before capture ran", source.high().await?, Bound::Null)?;
    harness.capture().await?;
    harness.transact(&[insert(1, "n")]).await?;
    harness.capture().await?;
    let high = source.high().await?;
    check(matches!(high, Bound::At(_)), format!("high behind capture is {high:?}"))?;
    Ok(Outcome::Passed)
}

pub(super) async fn high_covers_what_was_captured(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let mut before = scene.high().await?;
    for id in 1..=3 {
        let high = scene.commit(&[insert(id, "n")]).await?;
        check(high > before, format!("high went from {before} to {high}"))?;
        let news = scene.read(&instance(), range(before.increment(), high)?).await?;
        same("changes up to high", news.len(), 1)?;
        before = high;
    }
    let width = usize::from(scene.source.capabilities().position_width);
    same("the width of a position", before.as_bytes().len(), width)?;
    Ok(Outcome::Passed)
}

pub(super) async fn high_stands_still_while_capture_is_stopped(
    harness: &dyn SourceHarness,
) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().holds_capture, "hold capture") {
        return skipped;
    }
    let scene = Scene::open(harness).await?;
    let (high, whole) = (scene.high().await?, scene.all().await?);
    harness.transact(&[insert(1, "n")]).await?;
    same("high before capture", scene.high().await?, high)?;
    same("changes before capture", &scene.all().await?, &whole)?;
    harness.capture().await?;
    let all = scene.all().await?;
    same("changes after capture", all.len(), whole.len() + 1)?;
    let late = all.last().map(|change| change.commit);
    check(late > Some(high), "a change appeared at or before a high that was read")?;
    Ok(Outcome::Passed)
}

pub(super) async fn low_of_an_unknown_instance_is_no_position(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let bounds = scene.source.low(&[InstanceName::new("no_such_thing")]).await?;
    match bounds.as_slice() {
        [Bound::Null | Bound::Zero] => Ok(Outcome::Passed),
        other => Err(Failure::new(format!("low of an unknown instance is {other:?}"))),
    }
}

pub(super) async fn low_is_no_position_before_capture_reached_the_instance(
    harness: &dyn SourceHarness,
) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().holds_capture, "hold capture") {
        return skipped;
    }
    let scene = Scene::open(harness).await?;
    let second = InstanceName::new("dbo_orders_2");
    harness.enable(&orders(), &second, None).await?;
    let bounds = scene.source.low(std::slice::from_ref(&second)).await?;
    check(
        matches!(bounds.as_slice(), [Bound::Null | Bound::Zero]),
        format!("low before capture reached the instance is {bounds:?}"),
    )?;
    let start = scene.find(&second).await?.start;
    check(start > scene.high().await?, "its start is not ahead of high")?;
    scene.commit(&[insert(1, "n")]).await?;
    let low = scene.low(&second).await?;
    check(low >= start, format!("low {low} is before the start {start}"))?;
    Ok(Outcome::Passed)
}

pub(super) async fn low_answers_in_the_order_asked(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let second = InstanceName::new("dbo_orders_2");
    harness.enable(&orders(), &second, None).await?;
    scene.commit(&[insert(1, "n")]).await?;
    let unknown = InstanceName::new("no_such_thing");
    let asked = [second.clone(), unknown, instance(), second.clone()];
    let bounds = scene.source.low(&asked).await?;
    let (old, new) = (scene.low(&instance()).await?, scene.low(&second).await?);
    check(old < new, "the older instance starts first")?;
    let [first, none, third, fourth] = bounds[..] else {
        return Err(Failure::new(format!("four low positions asked, found {bounds:?}")));
    };
    same("known ones", [first, third, fourth], [new, old, new].map(Bound::At))?;
    check(!matches!(none, Bound::At(_)), "an unknown one has a position")?;
    same("an empty question", scene.source.low(&[]).await?, Vec::new())?;
    Ok(Outcome::Passed)
}

pub(super) async fn a_purged_range_reads_empty_and_low_says_so(
    harness: &dyn SourceHarness,
) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().cleans_up, "clean up") {
        return skipped;
    }
    let (scene, at) = four(harness).await?;
    let [first, second, third, last] = at;
    let kept = scene.read(&instance(), range(third, last)?).await?;
    harness.move_low(&instance(), third).await?;
    harness.delete_purged().await?;
    same("low", scene.low(&instance()).await?, third)?;
    let gone = scene.read(&instance(), range(first, second)?).await?;
    same("a purged range", gone, Vec::new())?;
    let asked = [(instance(), range(first, second)?), (instance(), range(third, third)?)];
    let news = scene.source.has_changes(&asked).await?;
    same("which ranges have changes", news, vec![false, true])?;
    let after = scene.read(&instance(), range(third, last)?).await?;
    same("what was not purged", &after, &kept)?;
    let start = scene.find(&instance()).await?.start;
    check(start <= first, "the start of an instance moves with cleanup")?;
    Ok(Outcome::Passed)
}

pub(super) async fn low_moves_before_rows_go(harness: &dyn SourceHarness) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().cleans_up, "clean up") {
        return skipped;
    }
    let (scene, [_, second, third, last]) = four(harness).await?;
    let kept = scene.read(&instance(), range(third, last)?).await?;
    harness.move_low(&instance(), third).await?;
    same("low before the rows are gone", scene.low(&instance()).await?, third)?;
    let between = scene.read(&instance(), range(second, last)?).await?;
    check(between.ends_with(&kept), "rows at or after low are missing")?;
    harness.delete_purged().await?;
    let after = scene.read(&instance(), range(second, last)?).await?;
    same("rows after the cleanup", &after, &kept)?;
    Ok(Outcome::Passed)
}

pub(super) async fn a_commit_has_a_time_and_its_neighbours_have_none(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    scene.commit(&[insert(1, "n")]).await?;
    let all = scene.all().await?;
    for change in &all {
        let time = scene.source.commit_time(change.commit).await?;
        check(time.is_some(), format!("commit {} has no time", change.commit))?;
        same("the time of a commit and of its rows", change.time, time)?;
        let next = scene.source.commit_time(change.commit.increment()).await?;
        same("the time of what is no commit", next, None)?;
    }
    Ok(Outcome::Passed)
}

pub(super) async fn a_position_of_another_width_is_refused(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let width = usize::from(scene.source.capabilities().position_width);
    let other = if width == Position::WIDTH_MAX { width - 1 } else { width + 1 };
    let foreign = Position::new(Epoch::default(), &vec![1; other])?;
    let result = scene.source.commit_time(foreign).await;
    refused("a position of another kind of source", result, ErrorKind::InvalidData)?;
    Ok(Outcome::Passed)
}

pub(super) async fn the_nth_commit_is_counted_over_the_database(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let (fees, other) = (TableName::new("dbo", "fees"), InstanceName::new("dbo_fees"));
    harness.create_table(&fees, &columns(), &["id"]).await?;
    harness.enable(&fees, &other, None).await?;
    harness.capture().await?;
    let before = scene.high().await?;
    for id in 1..=3 {
        scene.commit(&[insert(id, "n")]).await?;
        let fee = vec![Cell::Int(id), Cell::text("fee"), Cell::Null];
        scene.commit(&[Statement::Insert(fees.clone(), fee)]).await?;
    }
    let entries = entries(&scene, before).await?;
    let high = scene.high().await?;
    let news = range(before.increment(), high)?;
    let mut made = commits(&scene.read(&instance(), news).await?);
    let fees = scene.request(request(&other, columns(), news)).await?;
    made.extend(commits(&fees));
    for commit in &made {
        check(entries.contains(commit), format!("commit {commit} was not counted"))?;
    }
    check(entries.len() >= 6, "six commits were made")?;
    for (count, entry) in (1..).zip(&entries) {
        let found = scene.source.nth_commit_after(before, count).await?;
        same("the n-th commit", found, Some(*entry))?;
    }
    let last = entries.last().copied();
    same("the last one for too large a count", nth(&scene, before, MANY).await?, last)?;
    same("the last one and high", last, Some(high))?;
    same("none behind the last", nth(&scene, high, 1).await?, None)?;
    Ok(Outcome::Passed)
}

pub(super) async fn the_nth_commit_counts_idle_entries(harness: &dyn SourceHarness) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().idles, "write idle entries") {
        return skipped;
    }
    let scene = Scene::open(harness).await?;
    let before = scene.high().await?;
    harness.idle().await?;
    let idle = scene.high().await?;
    check(idle > before, "high stayed behind an idle entry")?;
    same("the entry after the last commit", nth(&scene, before, 1).await?, Some(idle))?;
    let time = scene.source.commit_time(idle).await?;
    check(time.is_some(), "an idle entry has no time")?;
    let rows = scene.read(&instance(), range(idle, idle)?).await?;
    same("changes of an idle entry", rows, Vec::new())?;
    let end = scene.commit(&[insert(1, "n")]).await?;
    same("the second entry", nth(&scene, before, 2).await?, Some(end))?;
    Ok(Outcome::Passed)
}

pub(super) async fn the_position_at_a_moment_is_the_latest_and_never_after(
    harness: &dyn SourceHarness,
) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().passes_time, "let time pass") {
        return skipped;
    }
    let (scene, at) = four(harness).await?;
    let micros = i64::try_from(GAP.as_micros()).unwrap_or(i64::MAX);
    let mut first = None;
    for commit in at {
        let time = time(&scene, commit).await?;
        first = first.or(Some(time));
        let middle = time.plus_micros(micros / 2);
        let found = scene.source.position_at(middle).await?;
        same("the position between two commits", found, Some(commit))?;
        let found = scene.source.position_at(time).await?;
        check(found <= Some(commit), "a position after the moment")?;
        let early = scene.source.position_at(time.plus_micros(-1_000_000)).await?;
        check(early < Some(commit), "a commit that came after the moment")?;
    }
    let far = first.unwrap_or(Timestamp::from_micros(0));
    let day = far.plus_micros(-86_400_000_000);
    same("the position a day before", scene.source.position_at(day).await?, None)?;
    Ok(Outcome::Passed)
}

pub(super) async fn times_never_go_back_in_log_order(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    for id in 1..=5 {
        scene.commit(&[insert(id, "n"), rename(id, "m")]).await?;
        if harness.abilities().passes_time {
            harness.pass(GAP).await?;
        }
    }
    let all = scene.all().await?;
    let mut last = None;
    for change in &all {
        check(change.time.is_some(), "a change has no time")?;
        check(change.time >= last, format!("time went back at {}", change.commit))?;
        last = change.time;
    }
    Ok(Outcome::Passed)
}

pub(super) async fn times_are_never_before_the_time_known_before(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    scene.commit(&[insert(1, "n")]).await?;
    let all = scene.all().await?;
    let known = all.last().and_then(|change| change.time);
    let known = known.map(|time| time.plus_micros(1_800_000_000));
    let mut asked =
        request(&instance(), columns(), range(scene.low(&instance()).await?, scene.high().await?)?);
    asked.time_before = known;
    let read = scene.request(asked).await?;
    same("changes", read.len(), all.len())?;
    for change in &read {
        check(change.time >= known, "a time is before the one known before")?;
    }
    Ok(Outcome::Passed)
}

/// A scene with four more commits, each in its own second where the harness can tell time.
async fn four(harness: &dyn SourceHarness) -> Result<(Scene<'_>, [Position; 4]), Failure> {
    let scene = Scene::open(harness).await?;
    let before = scene.high().await?;
    for id in 1..=4 {
        if harness.abilities().passes_time {
            harness.pass(GAP).await?;
        }
        scene.commit(&[insert(id, "n")]).await?;
    }
    if harness.abilities().passes_time {
        harness.pass(GAP).await?;
    }
    let news = range(before.increment(), scene.high().await?)?;
    let at = commits(&scene.read(&instance(), news).await?);
    let at =
        at.try_into().map_err(|at| Failure::new(format!("four commits expected, found {at:?}")))?;
    Ok((scene, at))
}

/// Every entry of the mapping behind `after`, one by one.
async fn entries(scene: &Scene<'_>, after: Position) -> Result<Vec<Position>, Failure> {
    let mut entries = Vec::new();
    let mut at = after;
    for _ in 0..MANY {
        match nth(scene, at, 1).await? {
            None => return Ok(entries),
            Some(next) if next > at => {
                entries.push(next);
                at = next;
            }
            Some(next) => return Err(Failure::new(format!("{next} is not behind {at}"))),
        }
    }
    Err(Failure::new("the mapping has no end"))
}

async fn nth(scene: &Scene<'_>, after: Position, n: u64) -> Result<Option<Position>, Failure> {
    Ok(scene.source.nth_commit_after(after, n).await?)
}

async fn time(scene: &Scene<'_>, commit: Position) -> Result<Timestamp, Failure> {
    let time = scene.source.commit_time(commit).await?;
    time.ok_or_else(|| Failure::new(format!("commit {commit} has no time")))
}
