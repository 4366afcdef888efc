//! Changes: their order, their ranges, and streams that break.

use cdc_core::{Column, ErrorKind, InstanceName, Length, SqlType, TableName, change::ChangeOrder};
use futures_util::{StreamExt, future::try_join_all};

use super::{
    SourceHarness, Statement, needs,
    scene::{
        Change, Scene, columns, delete, failed, insert, instance, orders, range, rename, request,
    },
};
use crate::{
    cell::Cell,
    outcome::{CaseResult, Failure, Outcome, check, names, refused, same},
};

pub(super) async fn changes_come_in_change_order(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    // What a transaction of several statements is known to give: 2, 3, 4, 3, 4, 1.
    let first = [insert(1, "a"), rename(1, "b"), rename(1, "c"), delete(1)];
    scene.commit(&first).await?;
    scene.commit(&[insert(3, "x"), insert(2, "y")]).await?;
    scene.commit(&[delete(2), rename(3, "z"), insert(2, "y")]).await?;
    let found = scene.all().await?;
    let told: Vec<_> = found
        .iter()
        .map(|change| (change.operation, change.cell("id"), change.cell("Name")))
        .collect();
    let expected = [
        (2, 1000, "first"),
        (2, 1, "a"),
        (3, 1, "a"),
        (4, 1, "b"),
        (3, 1, "b"),
        (4, 1, "c"),
        (1, 1, "c"),
        (2, 3, "x"),
        (2, 2, "y"),
        (1, 2, "y"),
        (3, 3, "x"),
        (4, 3, "z"),
        (2, 2, "y"),
    ];
    let expected = expected.map(|(code, id, name)| (code, Cell::Int(id), Cell::text(name)));
    same("the changes in their order", told, expected.to_vec())?;
    ordered(&found)?;
    let mut commits: Vec<_> = found.iter().map(|change| change.commit).collect();
    commits.dedup();
    same("commits", commits.len(), 4)?;
    Ok(Outcome::Passed)
}

pub(super) async fn both_images_of_an_update_share_a_record_batch(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let mut statements = vec![insert(1, "n0"), insert(2, "m0")];
    for n in 1..=6 {
        statements.push(rename(1, &format!("n{n}")));
        if n % 3 == 0 {
            statements.push(rename(2, &format!("m{n}")));
        }
    }
    scene.commit(&statements).await?;
    let whole = scene.all().await?;
    let all = range(scene.low(&instance()).await?, scene.high().await?)?;
    for batch_rows in 1..=whole.len() + 1 {
        let mut asked = request(&instance(), columns(), all);
        asked.batch_rows = batch_rows;
        // The scene fails for a pair that is split.
        let read = scene
            .request(asked)
            .await
            .map_err(|failure| failure.during(&format!("with batches of {batch_rows} rows")))?;
        same("the changes whatever the batch size", &read, &whole)?;
    }
    Ok(Outcome::Passed)
}

pub(super) async fn a_key_update_is_a_delete_and_an_insert(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let before = scene.high().await?;
    let moved = Statement::Update {
        table: orders(),
        key: vec![Cell::Int(1000)],
        set: vec![("id".to_owned(), Cell::Int(7))],
    };
    let end = scene.commit(&[moved]).await?;
    let found = scene.read(&instance(), range(before.increment(), end)?).await?;
    ordered(&found)?;
    let mut told: Vec<_> =
        found.iter().map(|change| (change.operation, change.cell("id"))).collect();
    told.sort();
    same("a key update", told, vec![(1, Cell::Int(1000)), (2, Cell::Int(7))])?;
    Ok(Outcome::Passed)
}

pub(super) async fn both_ends_of_a_range_belong_to_it(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    for id in 1..=3 {
        scene.commit(&[insert(id, "n")]).await?;
    }
    let all = scene.all().await?;
    let at = commits(&all);
    for (from, expected) in at.iter().enumerate() {
        let one = scene.read(&instance(), range(*expected, *expected)?).await?;
        same("commits of a range of one", commits(&one), vec![*expected])?;
        for (to, end) in at.iter().enumerate().skip(from) {
            let read = scene.read(&instance(), range(*expected, *end)?).await?;
            let count = to - from + 1;
            same("commits of a range", commits(&read).len(), count)?;
        }
    }
    Ok(Outcome::Passed)
}

pub(super) async fn neighbouring_ranges_tile(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    for id in 1..=4 {
        scene.commit(&[insert(id, "n"), rename(id, "m")]).await?;
    }
    let all = scene.all().await?;
    let (low, high) = (scene.low(&instance()).await?, scene.high().await?);
    for cut in commits(&all) {
        if cut >= high {
            continue;
        }
        let mut read = scene.read(&instance(), range(low, cut)?).await?;
        let behind = range(cut.increment(), high)?;
        read.extend(scene.read(&instance(), behind).await?);
        same("two ranges beside the whole", &read, &all)?;
    }
    Ok(Outcome::Passed)
}

pub(super) async fn a_range_without_changes_is_empty(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let all = scene.all().await?;
    for commit in commits(&all) {
        let behind = commit.increment();
        let read = scene.read(&instance(), range(behind, behind)?).await?;
        same("changes between two commits", read, Vec::new())?;
    }
    Ok(Outcome::Passed)
}

pub(super) async fn a_transaction_over_two_tables_has_one_position(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let (fees, other) = (TableName::new("dbo", "fees"), InstanceName::new("dbo_fees"));
    harness.create_table(&fees, &columns(), &["id"]).await?;
    harness.enable(&fees, &other, None).await?;
    harness.capture().await?;
    let before = scene.high().await?;
    let fee = vec![Cell::Int(5), Cell::text("fee"), Cell::Decimal(1, 2)];
    let both = [insert(5, "n"), Statement::Insert(fees, fee), insert(6, "n")];
    let end = scene.commit(&both).await?;
    let news = range(before.increment(), end)?;
    let here = scene.read(&instance(), news).await?;
    let there = scene.request(request(&other, columns(), news)).await?;
    same("changes of the first table", here.len(), 2)?;
    same("changes of the second table", there.len(), 1)?;
    same("the commit", commits(&here), commits(&there))?;
    same("its time", here.first().map(|c| c.time), there.first().map(|c| c.time))?;
    Ok(Outcome::Passed)
}

pub(super) async fn columns_come_in_the_order_asked(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let all = range(scene.low(&instance()).await?, scene.high().await?)?;
    let mut turned = columns();
    turned.reverse();
    let two = turned.iter().take(2).cloned().collect();
    // The scene fails for another schema than the one asked for.
    for asked in [turned.clone(), two, Vec::new()] {
        let read = scene.request(request(&instance(), asked.clone(), all)).await?;
        same("changes", read.len(), 1)?;
        let cells = read.first().map(|change| change.cells.len());
        same("columns", cells, Some(asked.len()))?;
    }
    Ok(Outcome::Passed)
}

pub(super) async fn an_unknown_instance_is_refused_by_name(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let high = scene.high().await?;
    let unknown = InstanceName::new("dbo_no_such_thing");
    let all = range(high, high)?;
    let result = failed(&scene.source, request(&unknown, columns(), all)).await;
    let error = refused("an unknown instance", result, ErrorKind::Config)?;
    names(&error, "dbo_no_such_thing")?;
    let result = scene.source.schema_changes(&unknown, all).await;
    let error = refused("schema changes of an unknown instance", result, ErrorKind::Config)?;
    names(&error, "dbo_no_such_thing")?;
    Ok(Outcome::Passed)
}

pub(super) async fn an_unknown_column_is_refused_by_name(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let high = scene.high().await?;
    let mut asked = columns();
    asked.push(Column::new("no_such_column", 99, SqlType::Int, true));
    let asked = request(&instance(), asked, range(high, high)?);
    let result = failed(&scene.source, asked).await;
    let error = refused("an unknown column", result, ErrorKind::Config)?;
    names(&error, "no_such_column")?;
    Ok(Outcome::Passed)
}

pub(super) async fn has_changes_answers_in_the_order_asked(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let high = scene.commit(&[insert(1, "n")]).await?;
    let at = commits(&scene.all().await?);
    let [first, last] = at[..] else {
        return Err(Failure::new(format!("two commits expected, found {}", at.len())));
    };
    let behind = first.increment();
    let asked = [
        (instance(), range(first, first)?),
        (instance(), range(behind, behind)?),
        (instance(), range(behind, high.max(last))?),
        (instance(), range(first, last)?),
    ];
    let news = scene.source.has_changes(&asked).await?;
    same("which ranges have changes", news, vec![true, false, true, true])?;
    same("an empty question", scene.source.has_changes(&[]).await?, Vec::new())?;
    Ok(Outcome::Passed)
}

pub(super) async fn an_error_in_the_middle_is_the_last_item(
    harness: &dyn SourceHarness,
) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().breaks_streams, "break a stream") {
        return skipped;
    }
    let scene = Scene::open(harness).await?;
    let many: Vec<_> = (1..=40).map(|id| insert(id, "n")).collect();
    scene.commit(&many).await?;
    let all = range(scene.low(&instance()).await?, scene.high().await?)?;
    harness.break_stream(10).await?;
    let mut asked = request(&instance(), columns(), all);
    asked.batch_rows = 5;
    let mut stream = scene.source.changes(asked.clone()).await?;
    let (mut rows, mut error) = (0, None);
    while let Some(item) = stream.next().await {
        check(error.is_none(), "an item came after the error")?;
        match item {
            Ok(batch) => rows += batch.num_rows(),
            Err(found) => error = Some(found),
        }
    }
    let error = error.ok_or_else(|| Failure::new("the broken stream ended without an error"))?;
    same("the error's kind", error.kind(), ErrorKind::Unavailable)?;
    check((10..41).contains(&rows), format!("{rows} rows came before the error"))?;
    let again = scene.request(asked).await?;
    same("changes of a second try", again.len(), 41)?;
    Ok(Outcome::Passed)
}

pub(super) async fn a_stream_dropped_early_harms_nothing(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let many: Vec<_> = (1..=20).map(|id| insert(id, "n")).collect();
    scene.commit(&many).await?;
    let whole = scene.all().await?;
    let all = range(scene.low(&instance()).await?, scene.high().await?)?;
    for taken in 0..3 {
        let mut asked = request(&instance(), columns(), all);
        asked.batch_rows = 2;
        let mut stream = scene.source.changes(asked).await?;
        for _ in 0..taken {
            stream.next().await.transpose()?;
        }
        drop(stream);
        same("the changes afterwards", &scene.all().await?, &whole)?;
    }
    Ok(Outcome::Passed)
}

pub(super) async fn calls_may_run_at_once(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let many: Vec<_> = (1..=20).map(|id| insert(id, "n")).collect();
    scene.commit(&many).await?;
    let whole = scene.all().await?;
    let reads = try_join_all((0..8).map(|_| scene.all())).await?;
    for read in &reads {
        same("the changes of one of many calls", read, &whole)?;
    }
    // Two streams that are pulled in turns do not disturb each other.
    let all = range(scene.low(&instance()).await?, scene.high().await?)?;
    let mut asked = request(&instance(), columns(), all);
    asked.batch_rows = 3;
    let mut left = scene.source.changes(asked.clone()).await?;
    let mut right = scene.source.changes(asked).await?;
    loop {
        let (one, two) = (left.next().await.transpose()?, right.next().await.transpose()?);
        same("two streams in turns", &one, &two)?;
        if one.is_none() {
            return Ok(Outcome::Passed);
        }
    }
}

pub(super) async fn computed_columns_and_large_objects_read_null_as_declared(
    harness: &dyn SourceHarness,
) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().computes, "create computed columns") {
        return skipped;
    }
    let (table, instance) = (TableName::new("dbo", "notes"), InstanceName::new("dbo_notes"));
    let columns = vec![
        Column::new("id", 1, SqlType::Int, false),
        Column { computed: true, ..Column::new("twice", 2, SqlType::Int, true) },
        Column::new("body", 3, SqlType::NVarChar(Length::Max), true),
        Column::new("old", 4, SqlType::NText, true),
        Column::new("n", 5, SqlType::Int, true),
    ];
    let scene = Scene::open(harness).await?;
    harness.create_table(&table, &columns, &["id"]).await?;
    harness.enable(&table, &instance, None).await?;
    harness.capture().await?;
    let before = scene.high().await?;
    let set = |column: &str, cell| Statement::Update {
        table: table.clone(),
        key: vec![Cell::Int(1)],
        set: vec![(column.to_owned(), cell)],
    };
    let values = [Cell::Int(1), Cell::text("body"), Cell::text("old"), Cell::Int(1)];
    let insert = Statement::Insert(table.clone(), values.to_vec());
    let delete = Statement::Delete(table.clone(), vec![Cell::Int(1)]);
    let all = [insert, set("n", Cell::Int(2)), set("body", Cell::text("new")), delete];
    let end = scene.commit(&all).await?;
    let asked = request(&instance, columns.clone(), range(before.increment(), end)?);
    let found = scene.request(asked).await?;
    let told: Vec<_> = found
        .iter()
        .map(|change| (change.operation, change.cell("body"), change.cell("old")))
        .collect();
    let text = Cell::text;
    let expected = vec![
        (2, text("body"), text("old")),
        (3, Cell::Null, Cell::Null),
        (4, text("body"), text("old")),
        (3, text("body"), Cell::Null),
        (4, text("new"), text("old")),
        (1, text("new"), Cell::Null),
    ];
    same("large objects", told, expected)?;
    for change in &found {
        same("a computed column", change.cell("twice"), Cell::Null)?;
    }
    Ok(Outcome::Passed)
}

/// Fails unless the changes are strictly in change order.
pub(super) fn ordered(changes: &[Change]) -> Result<(), Failure> {
    // In words: commit, command, sequence value, operation; a missing part sorts lowest.
    let key = |change: &Change| ChangeOrder {
        commit: change.commit.as_bytes().to_vec(),
        command: change.command,
        sequence: change.sequence.clone(),
        operation: change.operation,
    };
    for pair in changes.windows(2) {
        if let [before, after] = pair {
            check(key(before) < key(after), format!("{after:?} comes behind {before:?}"))?;
        }
    }
    Ok(())
}

/// The commits of changes, each once, in the order in which they came.
pub(super) fn commits(changes: &[Change]) -> Vec<cdc_core::Position> {
    let mut commits: Vec<_> = changes.iter().map(|change| change.commit).collect();
    commits.dedup();
    commits
}
