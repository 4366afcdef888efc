//! Order inside transactions and across tables, whatever page, batch or crash cuts in between.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cdc_conformance::{Cell, image};
use cdc_core::{InstanceName, Lsn, RunReport, SqlType, TableConfig, TableName, port::Shutdown};
use cdc_fake::{
    Call, EnableOptions, Side, TableDefinition, Value,
    faults::{Fault, FaultPlan, FaultySink, FaultySource, Operation},
};
use cdc_tests::world::{World, table};

use crate::lake::{Lake, runtime};

const TABLES: [&str; 2] = ["h", "l"];

fn name(table: &str) -> TableName {
    TableName::new("dbo", table)
}

/// Two captured tables without rows.
fn empty() -> World {
    let world = World::new().by_hand();
    for table in TABLES {
        let definition = TableDefinition::new(table)
            .column("id", SqlType::Int)
            .nullable("v", SqlType::Int)
            .primary_key(&["id"]);
        world.database.create_table(definition).expect("new");
        world.database.enable_table(&name(table), EnableOptions::default()).expect("new");
    }
    world
}

/// What tempts a copy to lose or turn around a change: pairs of images, key updates in a chain,
/// one key deleted and inserted by one statement, a row that changes often, a transaction over two
/// tables.
fn played() -> World {
    let world = empty();
    let (h, l) = (name("h"), name("l"));
    let row = |id: i64| vec![Value::Int(id), Value::Int(0)];
    let add = |value: i64| Value::Int(value);
    let played = world
        .database
        .transact(|open| open.insert_many(&h, [1, 2, 3, 4, 10].map(row).into()).map(|_| ()));
    played
        .and_then(|_| {
            world.database.transact(|open| {
                open.update_where(&h, |row| row.int("id") < 4, |edit| edit.set("v", add(1)))
                    .map(|_| ())
            })?;
            world.database.transact(|open| {
                open.update(&h, &[Value::Int(10)], &[("id", Value::Int(20))])?;
                open.update(&h, &[Value::Int(20)], &[("id", Value::Int(30))])?;
                // Moves every key onto its neighbour: the log holds inserts before deletes.
                open.update_where(
                    &h,
                    |row| row.int("id") < 5,
                    |edit| {
                        let next = edit.view().int("id") + 1;
                        edit.set("id", Value::Int(next))
                    },
                )
                .map(|_| ())
            })?;
            world.database.transact(|open| {
                open.merge_where(&h, |row| row.int("id") < 4, |edit| edit.set("v", add(7)))?;
                for value in 0..20 {
                    open.update(&h, &[Value::Int(30)], &[("v", Value::Int(value))])?;
                }
                Ok(())
            })?;
            world.database.transact(|open| {
                for id in 100..106 {
                    open.insert(&h, row(id))?;
                    open.insert(&l, row(id))?;
                }
                Ok(())
            })
        })
        .expect("the server takes it");
    world.clock.advance(Duration::from_secs(10));
    world.database.capture();
    world
}

/// The changes of a table by identity, as the server's change table has them.
fn at_the_server(world: &World, table: &str) -> Vec<(Cell, Cell, Cell, Cell)> {
    let instance = InstanceName::new(&format!("dbo_{table}"));
    let rows = world.database.change_rows(&instance).expect("an instance");
    let text = |lsn: Lsn| Cell::text(lsn.to_string());
    let mut rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let operation = Cell::Int(row.operation.code().into());
            (text(row.commit), Cell::Int(row.command.into()), text(row.seqval), operation)
        })
        .collect();
    rows.sort();
    rows
}

/// The same as bronze has them.
fn in_the_lake(lake: &Lake, table: &str) -> Vec<(Cell, Cell, Cell, Cell)> {
    let cells = ["_start_lsn", "_command_id", "_seqval", "_operation"];
    let mut rows: Vec<_> = lake
        .rows(&format!("bronze/{table}"))
        .iter()
        .map(|row| cells.map(|cell| row[cell].clone()).into())
        .collect();
    rows.sort();
    rows
}

#[track_caller]
fn equals(world: &World, lake: &Lake, context: &str) {
    for table in TABLES {
        assert_eq!(in_the_lake(lake, table), at_the_server(world, table), "{table} {context}");
        let batches = lake.batches(&format!("bronze/{table}"));
        let newest = image::newest(&batches, &["id", "v"], &["id"]).expect("a history");
        let (rows, _) = world.source_rows(&name(table)).expect("readable");
        let present = image::present(&rows, &["id", "v"]).expect("rows");
        assert!(newest == present, "{table} differs from its source: {context}");
    }
}

fn configs() -> Vec<TableConfig> {
    TABLES.map(table).into()
}

/// A copy by a process that meets the faults of a plan.
fn copy_with(world: &World, lake: &Lake, plan: &FaultPlan) -> RunReport {
    let source = FaultySource::new(Arc::new(world.source()), plan);
    let sink = FaultySink::new(Arc::new(lake.sink(world)), plan);
    let engine = world.engine_on(Arc::new(source), Arc::new(sink));
    runtime().block_on(engine.run_once(configs(), &Shutdown::never()))
}

#[test]
fn a_process_that_dies_at_any_page_goes_on_with_every_change_once() {
    use Operation as O;
    // Dying after a page or a stage is dying before the next one.
    let ways = [
        (O::ChangeBatch, Fault::Crash, 1, 7),
        (O::ChangeBatch, Fault::Crash, 4, 2),
        (O::Stage, Fault::Crash, 4, 2),
        (O::Commit, Fault::Crash, 5, 1),
        (O::Commit, Fault::CrashAfter, 5, 1),
        (O::Publish, Fault::CrashAfter, 5, 1),
    ];
    let mut deaths: BTreeMap<Operation, usize> = BTreeMap::new();
    for (operation, fault, batch_rows, stride) in ways {
        for at in (0..).step_by(stride) {
            let mut world = played().rows_max(12);
            world.settings.batch_rows = batch_rows.try_into().expect("positive");
            let lake = Lake::new();
            let plan = FaultPlan::new(Arc::new(world.clock.clone()));
            (0..at).for_each(|_| plan.script(operation, Fault::Pass));
            plan.script(operation, fault);
            let met = copy_with(&world, &lake, &plan).errors().count() > 0;
            let context = format!("{fault:?} at {operation:?} {at}, pages of {batch_rows}");
            if met {
                *deaths.entry(operation).or_default() += 1;
                assert_eq!(lake.copy(&world, &configs()).errors().count(), 0, "{context}");
            }
            equals(&world, &lake, &context);
            if !met {
                break;
            }
        }
    }
    for operation in [O::ChangeBatch, O::Stage, O::Commit, O::Publish] {
        assert!(deaths.get(&operation).is_some_and(|count| *count > 1), "{deaths:?}");
    }
}

#[test]
fn a_commit_that_lands_between_two_tables_is_shown_by_neither_before_the_next_cycle() {
    let world = empty();
    let row = |id: i64| vec![Value::Int(id), Value::Null];
    let both = move |database: &cdc_fake::FakeDatabase, id: i64| {
        let lines = [id * 10, id * 10 + 1, id * 10 + 2].map(row);
        let committed = database.transact(|open| {
            open.insert(&name("h"), row(id))?;
            open.insert_many(&name("l"), lines.into()).map(|_| ())
        });
        committed.expect("new rows");
        database.capture();
    };
    both(&world.database, 1);
    // One table after the other, and a commit after the first was read.
    let mut world = world;
    world.settings.tables_at_once = 1.try_into().expect("positive");
    world.database.on_next(Call::Changes, Side::After, move |database| both(database, 2));
    let lake = Lake::new();
    assert_eq!(lake.copy(&world, &configs()).errors().count(), 0);
    let count = |table: &str| lake.rows(&format!("bronze/{table}")).len();
    assert_eq!((count("h"), count("l")), (1, 3), "the second commit is in neither");
    assert_eq!(lake.copy(&world, &configs()).errors().count(), 0);
    assert_eq!((count("h"), count("l")), (2, 6));
    // The marks of both cycles are the same for both tables.
    let ends = |table: &str| {
        let rows = lake.rows("facts");
        let rows = rows.iter().filter(|row| row["target"] == Cell::text(table));
        let mut ends: Vec<_> = rows.map(|row| row["end_lsn"].clone()).collect();
        ends.sort();
        ends.split_off(1)
    };
    assert_eq!(ends("h"), ends("l"));
}
