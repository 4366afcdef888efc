//! The catalog: instances, their columns, and how those change.

use std::collections::BTreeSet;

use cdc_core::{
    ErrorKind, InstanceName, Length, SqlType, TableName, TableRef,
    port::{FindingLevel, RowRequest},
};

use super::{
    SourceHarness, needs,
    scene::{Scene, columns, failed, insert, instance, orders, range, rename, request, whole},
};
use crate::{
    cell::Cell,
    outcome::{CaseResult, Failure, Outcome, check, names, refused, same},
};

/// The most characters of a statement in a schema change.
const STATEMENT_MAX: usize = 500;

pub(super) async fn an_instance_tells_its_columns_key_and_start(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let found = scene.find(&instance()).await?;
    same("its table", &found.table, &orders())?;
    same("its columns", found.columns.clone(), columns())?;
    same("its key", found.key.clone(), vec!["id".to_owned()])?;
    let low = scene.low(&instance()).await?;
    check(found.start <= low, "its start is behind its low position")?;
    Ok(Outcome::Passed)
}

pub(super) async fn an_instance_holds_the_columns_it_was_enabled_with(
    harness: &dyn SourceHarness,
) -> CaseResult {
    harness.create_table(&orders(), &columns(), &["id"]).await?;
    let some = Some(&["id", "amount"][..]);
    harness.enable(&orders(), &instance(), some).await?;
    harness.capture().await?;
    let source = harness.source().await;
    let scene = Scene { harness, source };
    scene.commit(&[insert(1, "not captured")]).await?;
    let found = scene.find(&instance()).await?.columns;
    let expected: Vec<_> = columns().into_iter().filter(|own| own.name != "Name").collect();
    same("its columns", found, expected)?;
    let changes = scene.all().await?;
    let seen = changes.first().map(|change| change.cells.len());
    same("columns of a change", seen, Some(2))?;
    Ok(Outcome::Passed)
}

pub(super) async fn names_match_exactly_or_else_ignoring_case(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let references = [
        TableRef::Table(orders()),
        TableRef::Table(TableName::new("DBO", "Orders")),
        TableRef::Instance(instance()),
        TableRef::Instance(InstanceName::new("DBO_ORDERS")),
    ];
    for reference in references {
        let found = scene.source.instances(&reference).await?;
        let found: Vec<_> = found.into_iter().map(|one| one.name).collect();
        same(&format!("instances of {reference}"), found, vec![instance()])?;
    }
    Ok(Outcome::Passed)
}

pub(super) async fn an_unknown_table_is_refused_with_what_looks_like_it(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let typos = [
        (TableRef::Table(TableName::new("dbo", "order")), "orders"),
        (TableRef::Instance(InstanceName::new("dbo_order")), "dbo_orders"),
    ];
    for (reference, alike) in typos {
        let result = scene.source.instances(&reference).await;
        let error = refused("an unknown table", result, ErrorKind::Config)?;
        names(&error, &reference.to_string())?;
        let text = format!("{} {}", error.report(), error.advice());
        check(text.contains(alike), format!("{text} does not name {alike}"))?;
    }
    // A table that is there but not captured.
    let plain = TableName::new("dbo", "plain");
    harness.create_table(&plain, &columns(), &["id"]).await?;
    let result = scene.source.instances(&TableRef::Table(plain)).await;
    let error = refused("a table that is not captured", result, ErrorKind::Config)?;
    names(&error, "plain")?;
    Ok(Outcome::Passed)
}

pub(super) async fn instances_come_oldest_first(harness: &dyn SourceHarness) -> CaseResult {
    let scene = Scene::open(harness).await?;
    // A name that sorts before the older instance's.
    let second = InstanceName::new("a_newer_one");
    harness.enable(&orders(), &second, Some(&["id"])).await?;
    harness.capture().await?;
    for reference in [TableRef::Table(orders()), TableRef::Instance(second.clone())] {
        let found = scene.source.instances(&reference).await?;
        let list: Vec<_> = found.iter().map(|one| one.name.clone()).collect();
        same("instances", list, vec![instance(), second.clone()])?;
        let starts: Vec<_> = found.iter().map(|one| one.start).collect();
        check(starts.is_sorted(), "the older instance starts first")?;
    }
    Ok(Outcome::Passed)
}

pub(super) async fn two_instances_agree_from_the_newer_start(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    scene.commit(&[insert(1, "n"), rename(1, "m")]).await?;
    let second = InstanceName::new("dbo_orders_2");
    harness.enable(&orders(), &second, None).await?;
    for id in 2..=4 {
        scene.commit(&[insert(id, "n"), rename(id, "m"), rename(1, "k")]).await?;
        scene.commit(&[rename(1, "m")]).await?;
    }
    let start = scene.find(&second).await?.start;
    let high = scene.high().await?;
    let identities = |changes: &[super::scene::Change]| -> BTreeSet<_> {
        changes
            .iter()
            .map(|one| (one.commit, one.sequence.clone(), one.operation, one.cell("id")))
            .collect()
    };
    let old = scene.read(&instance(), range(start, high)?).await?;
    let new = scene.read(&second, range(start, high)?).await?;
    check(!new.is_empty(), "the newer instance has no changes")?;
    same("changes from the newer start", identities(&new), identities(&old))?;
    let low = scene.low(&instance()).await?;
    let before = scene.read(&second, range(low, start.decrement())?).await?;
    same("changes of the newer instance before its start", before, Vec::new())?;
    let before = scene.read(&instance(), range(low, start.decrement())?).await?;
    same("changes of the older instance before it", before.len(), 4)?;
    Ok(Outcome::Passed)
}

pub(super) async fn schema_changes_lie_in_their_range(harness: &dyn SourceHarness) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().changes_columns, "change columns") {
        return skipped;
    }
    let scene = Scene::open(harness).await?;
    let before = scene.high().await?;
    let low = scene.low(&instance()).await?;
    let note = cdc_core::Column::new("note", 4, SqlType::Int, true);
    harness.add_column(&orders(), &note).await?;
    let high = scene.commit(&[insert(1, "n")]).await?;
    let news = range(before.increment(), high)?;
    let found = scene.source.schema_changes(&instance(), news).await?;
    let [change] = found.as_slice() else {
        return Err(Failure::new(format!("one schema change expected, found {found:?}")));
    };
    check(news.contains(change.at), "it lies outside the range asked")?;
    check(!change.statement.is_empty(), "it has no statement")?;
    check(change.statement.chars().count() <= STATEMENT_MAX, "its statement is too long")?;
    same("a captured column changed", change.captured_column_changed, false)?;
    same("its own commit time", scene.source.commit_time(change.at).await?, None)?;
    check(change.time.is_some(), "it has no time of a commit before it")?;
    let older = scene.source.schema_changes(&instance(), range(low, before)?).await?;
    same("schema changes before it", older, Vec::new())?;
    let behind = range(change.at.increment(), high.max(change.at.increment()))?;
    let later = scene.source.schema_changes(&instance(), behind).await?;
    same("schema changes after it", later, Vec::new())?;
    let at = scene.source.schema_changes(&instance(), range(change.at, change.at)?).await?;
    same("schema changes of a range of one", at.len(), 1)?;
    Ok(Outcome::Passed)
}

pub(super) async fn an_altered_column_says_so(harness: &dyn SourceHarness) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().changes_columns, "change columns") {
        return skipped;
    }
    let scene = Scene::open(harness).await?;
    let before = scene.high().await?;
    let wider = SqlType::NVarChar(Length::Limited(80));
    harness.alter_column(&orders(), "Name", wider.clone()).await?;
    let high = scene.commit(&[insert(1, "n")]).await?;
    let news = range(before.increment(), high)?;
    let found = scene.source.schema_changes(&instance(), news).await?;
    let told: Vec<_> = found.iter().map(|one| one.captured_column_changed).collect();
    same("captured columns that changed", told, vec![true])?;
    let instance = scene.find(&instance()).await?;
    let now = instance.column("Name").map(|column| column.sql_type.clone());
    same("the captured column's type", now, Some(wider))?;
    Ok(Outcome::Passed)
}

pub(super) async fn an_added_column_is_not_captured(harness: &dyn SourceHarness) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().changes_columns, "change columns") {
        return skipped;
    }
    let scene = Scene::open(harness).await?;
    let note = cdc_core::Column::new("note", 4, SqlType::Int, true);
    harness.add_column(&orders(), &note).await?;
    scene.commit(&[rename(1000, "n")]).await?;
    same("the instance's columns", scene.find(&instance()).await?.columns, columns())?;
    // An instance that is made now has it.
    let second = InstanceName::new("dbo_orders_2");
    harness.enable(&orders(), &second, None).await?;
    scene.commit(&[rename(1000, "m")]).await?;
    let newer = scene.find(&second).await?;
    let added = newer.column("note").map(|column| (column.id, column.sql_type.clone()));
    same("the newer instance's column", added, Some((4, SqlType::Int)))?;
    Ok(Outcome::Passed)
}

pub(super) async fn a_dropped_column_reads_null(harness: &dyn SourceHarness) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().changes_columns, "change columns") {
        return skipped;
    }
    let scene = Scene::open(harness).await?;
    harness.drop_column(&orders(), "amount").await?;
    let before = scene.high().await?;
    scene.commit(&[rename(1000, "n")]).await?;
    let still = scene.find(&instance()).await?;
    check(still.column("amount").is_some(), "the captured column is gone")?;
    let news = range(before.increment(), scene.high().await?)?;
    let read = scene.request(request(&instance(), columns(), news)).await?;
    same("changes", read.len(), 2)?;
    for change in &read {
        same("a dropped column", change.cell("amount"), Cell::Null)?;
    }
    let rows = RowRequest {
        table: orders(),
        columns: columns(),
        key: Vec::new(),
        range: cdc_core::port::KeyRange::default(),
        batch_rows: 10,
    };
    for batch in whole(scene.source.rows(rows).await?).await? {
        for cells in super::scene::cells(&batch, 0)? {
            same("a dropped column of a row", cells.get("amount"), Some(&Cell::Null))?;
        }
    }
    Ok(Outcome::Passed)
}

pub(super) async fn a_missing_right_names_its_grant(harness: &dyn SourceHarness) -> CaseResult {
    if let Some(skipped) = needs(harness.abilities().revokes, "revoke rights") {
        return skipped;
    }
    let scene = Scene::open(harness).await?;
    let all = range(scene.low(&instance()).await?, scene.high().await?)?;
    let poor = harness.revoke(&instance()).await?;
    let asked = request(&instance(), columns(), all);
    let error =
        refused("changes without the right", failed(&poor, asked).await, ErrorKind::Unauthorized)?;
    let text = format!("{} {}", error.report(), error.advice());
    check(text.to_uppercase().contains("GRANT"), format!("{text} names no grant"))?;
    names(&error, "dbo_orders")?;
    let result = poor.has_changes(&[(instance(), all)]).await;
    refused("has_changes without the right", result, ErrorKind::Unauthorized)?;
    let findings = poor.preflight(&[TableRef::Instance(instance())]).await?;
    let told = findings.iter().any(|finding| {
        finding.level == FindingLevel::Failure && finding.remedy.to_uppercase().contains("GRANT")
    });
    check(told, format!("no finding names the grant: {findings:?}"))?;
    same("changes for others", scene.all().await?.len(), 1)?;
    Ok(Outcome::Passed)
}

pub(super) async fn a_preflight_finds_nothing_wrong_with_a_captured_table(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let findings = scene.source.preflight(&[TableRef::Table(orders())]).await?;
    let failures: Vec<_> =
        findings.into_iter().filter(|finding| finding.level == FindingLevel::Failure).collect();
    same("failures of a captured table", failures, Vec::new())?;
    Ok(Outcome::Passed)
}

pub(super) async fn a_preflight_makes_a_finding_of_an_unknown_table(
    harness: &dyn SourceHarness,
) -> CaseResult {
    let scene = Scene::open(harness).await?;
    let unknown = TableRef::Table(TableName::new("dbo", "no_such_table"));
    let findings = scene.source.preflight(&[TableRef::Table(orders()), unknown]).await?;
    let failures: Vec<_> =
        findings.iter().filter(|finding| finding.level == FindingLevel::Failure).collect();
    let told = failures.iter().any(|finding| {
        let text = format!("{:?} {}", finding.table, finding.message);
        text.contains("no_such_table") && !finding.remedy.is_empty()
    });
    check(told, format!("no failure names the table and a remedy: {findings:?}"))?;
    Ok(Outcome::Passed)
}
