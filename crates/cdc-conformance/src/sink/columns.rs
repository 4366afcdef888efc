//! Columns: how rows meet the target's columns, and how those change.

use cdc_core::{Column, ErrorKind, Length, SqlType};

use super::{
    Session, SinkHarness,
    session::{WIDTH, order, orders, table},
};
use crate::{
    cell::Cell,
    feed::{self, Feed},
    outcome::{Failure, names, refused, same},
};

type Checked = Result<(), Failure>;

pub(super) async fn columns_are_matched_ignoring_case_and_order(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::filled(harness).await?;
    let [id, name, amount] = three(&session.spec.columns)?;
    let turned = [renamed(&amount, "Amount"), renamed(&name, "NAME"), renamed(&id, "ID")];
    let cells = |id, name: &str, amount| {
        let mut cells = order(id, name, amount);
        cells.reverse();
        cells
    };
    let stamp = feed::stamp(WIDTH, 11)?;
    let snapshot = Feed::new(&turned).insert(11, cells(3, "pad", 120));
    session.stage(snapshot.snapshot(stamp)?).await?;
    let changes = Feed::new(&turned).insert(11, cells(2, "pen", 90));
    session.stage(changes.changes()?).await?;
    session.commit(11).await?;
    session.check("after the commit").await
}

pub(super) async fn a_column_that_a_batch_lacks_becomes_null(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let [id, _, amount] = three(&session.spec.columns)?;
    let narrow = Feed::new(&[id, amount]).insert(11, [Cell::Int(2), Cell::Decimal(90, 2)]);
    session.stage(narrow.changes()?).await?;
    let whole = session.feed().starting_at(2).insert(11, order(3, "pad", 120));
    session.stage(whole.changes()?).await?;
    session.commit(11).await?;
    session.check("after the commit").await
}

pub(super) async fn an_unknown_column_is_refused_by_name(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let mut columns = session.spec.columns.clone();
    columns.push(Column::new("surprise", 9, SqlType::Int, true));
    let mut cells = order(2, "pen", 90);
    cells.push(Cell::Int(1));
    let rows = Feed::new(&columns).insert(11, cells);
    let result = session.table.stage(rows.changes()?).await;
    let error = refused("a column that the table lacks", result, ErrorKind::SchemaChanged)?;
    names(&error, "surprise")?;
    names(&error, "orders")?;
    session.reattach().await?;
    session.commit(11).await?;
    session.check("after the refusal").await
}

pub(super) async fn odd_column_names_are_kept(harness: &dyn SinkHarness) -> Checked {
    let odd = [
        "two words",
        "a,b;{c}(d)=e",
        "with]bracket",
        "with\"quote",
        "with'tick",
        "with`back",
        "dot.ted",
        "Größe",
        "数量",
        "select",
        "with%percent/slash",
    ];
    let mut columns = vec![Column::new("id", 1, SqlType::Int, false)];
    let more = odd.iter().zip(2..);
    columns.extend(more.map(|(name, id)| Column::new(*name, id, SqlType::Int, true)));
    let cells: Vec<_> = (1..=12).map(Cell::Int).collect();
    let mut session = Session::open(harness, table("odd", columns)).await?;
    session.stage(session.feed().insert(10, cells).changes()?).await?;
    session.commit(10).await?;
    session.check("after the commit").await?;
    session.reattach().await
}

pub(super) async fn a_table_without_a_key_is_a_history(harness: &dyn SinkHarness) -> Checked {
    let mut spec = orders();
    spec.key.clear();
    let sink = harness.sink().await;
    if !sink.capabilities().keeps_history {
        let result = sink.attach(&spec).await;
        refused("a table without a key", result, ErrorKind::Unsupported)?;
        return same("the state behind the refusal", sink.inspect(&spec).await?, None);
    }
    let mut session = Session::open(harness, spec).await?;
    let twice = session.feed().insert(10, order(1, "ink", 250)).insert(10, order(1, "ink", 250));
    session.stage(twice.changes()?).await?;
    session.commit(10).await?;
    session.check("after two equal rows").await
}

pub(super) async fn evolve_adds_columns_and_older_rows_read_null(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::filled(harness).await?;
    let added = [
        Column::new("note", 4, SqlType::NVarChar(Length::Max), true),
        Column::new("count", 5, SqlType::BigInt, true),
    ];
    if !evolved(&mut session, &added).await? {
        return Ok(());
    }
    session.check("after the evolve").await?;
    let mut cells = order(2, "pen", 90);
    cells.extend([Cell::text("new"), Cell::Int(i64::MAX)]);
    session.spec.columns.extend(added);
    session.stage(session.feed().insert(11, cells).changes()?).await?;
    session.commit(11).await?;
    session.check("after rows with the new columns").await?;
    session.reattach().await?;
    let old = Feed::new(&orders().columns).insert(12, order(3, "pad", 120));
    session.stage(old.changes()?).await?;
    session.commit(12).await?;
    session.check("after rows without the new columns").await
}

pub(super) async fn evolve_is_idempotent_in_any_case(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let note = Column::new("Note", 4, SqlType::NText, true);
    if !evolved(&mut session, std::slice::from_ref(&note)).await? {
        return Ok(());
    }
    let known = session.spec.columns.clone();
    let again = [renamed(&note, "NOTE"), renamed(&note, "note")];
    for columns in [&known[..], &again[..1], &again[1..], &[]] {
        session.table.evolve(columns).await?;
    }
    session.reattach().await?;
    session.table.evolve(&again[..1]).await?;
    let batches = harness.rows(&session.spec).await?;
    for batch in &batches {
        let schema = batch.schema();
        let alike = schema.fields().iter();
        let count = alike.filter(|field| field.name().to_lowercase() == "note").count();
        same("columns of that name", count, 1)?;
    }
    session.check("after every evolve").await
}

pub(super) async fn evolve_leaves_rows_and_mark_alone(harness: &dyn SinkHarness) -> Checked {
    let mut session = Session::filled(harness).await?;
    let note = [Column::new("note", 4, SqlType::NText, true)];
    if !evolved(&mut session, &note).await? {
        return Ok(());
    }
    session.check("after the evolve").await?;
    session.reattach().await?;
    session.commit(11).await?;
    session.check("after the mark behind it").await
}

pub(super) async fn evolve_to_a_type_that_does_not_fit_is_refused(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::filled(harness).await?;
    if !session.sink.capabilities().add_columns {
        return evolved(&mut session, &[]).await.map(drop);
    }
    let [_, name, _] = three(&session.spec.columns)?;
    let number = Column { sql_type: SqlType::Int, ..renamed(&name, "NAME") };
    let new = Column::new("other", 9, SqlType::Int, true);
    let result = session.table.evolve(&[new, number]).await;
    let error = refused("a type that does not fit", result, ErrorKind::SchemaChanged)?;
    names(&error, "name")?;
    session.reattach().await?;
    session.check("after the refusal").await
}

pub(super) async fn attach_with_a_type_that_does_not_fit_is_refused(
    harness: &dyn SinkHarness,
) -> Checked {
    let mut session = Session::filled(harness).await?;
    let mut changed = session.spec.clone();
    for column in &mut changed.columns {
        if column.name == "amount" {
            column.sql_type = SqlType::NVarChar(Length::Limited(20));
        }
    }
    let result = harness.sink().await.attach(&changed).await;
    let error = refused("a type that does not fit", result, ErrorKind::SchemaChanged)?;
    names(&error, "amount")?;
    names(&error, "orders")?;
    session.check("after the refusal").await?;
    session.reattach().await?;
    session.commit(11).await?;
    session.check("after the right attach").await
}

pub(super) async fn a_narrower_type_goes_into_the_wider_column(
    harness: &dyn SinkHarness,
) -> Checked {
    let pairs = [
        ("tiny", SqlType::TinyInt, SqlType::SmallInt),
        ("small", SqlType::SmallInt, SqlType::Int),
        ("whole", SqlType::Int, SqlType::BigInt),
    ];
    let columns = |pick: fn(&(&str, SqlType, SqlType)) -> SqlType| {
        let mut columns = vec![Column::new("id", 1, SqlType::Int, false)];
        let more = pairs.iter().zip(2..);
        columns.extend(more.map(|(pair, id)| Column::new(pair.0, id, pick(pair), true)));
        columns
    };
    let wide = columns(|pair| pair.2.clone());
    let mut session = Session::open(harness, table("widths", wide)).await?;
    let top = [Cell::Int(1), Cell::Int(32_767), Cell::Int(2_147_483_647), Cell::Int(i64::MAX)];
    session.stage(session.feed().insert(10, top).changes()?).await?;
    session.commit(10).await?;

    session.spec.columns = columns(|pair| pair.1.clone());
    session.reattach().await?;
    let low = [Cell::Int(2), Cell::Int(255), Cell::Int(-32_768), Cell::Int(-2_147_483_648)];
    session.stage(session.feed().insert(11, low).changes()?).await?;
    session.commit(11).await?;
    session.check("after the narrower rows").await
}

/// Adds columns, or checks that a sink without the capability refuses to.
async fn evolved(session: &mut Session<'_>, columns: &[Column]) -> Result<bool, Failure> {
    let result = session.table.evolve(columns).await;
    if session.sink.capabilities().add_columns {
        result?;
        session.model.evolve(columns);
        return Ok(true);
    }
    refused("evolve without the capability", result, ErrorKind::Unsupported)?;
    session.reattach().await?;
    session.check("after the refusal").await?;
    Ok(false)
}

fn three(columns: &[Column]) -> Result<[Column; 3], Failure> {
    columns.to_vec().try_into().map_err(|_| Failure::new("orders have three columns"))
}

fn renamed(column: &Column, name: &str) -> Column {
    Column { name: name.to_owned(), ..column.clone() }
}
