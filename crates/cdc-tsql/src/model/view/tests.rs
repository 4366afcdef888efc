//! Tests of the views.

use super::*;
use crate::{
    model::tests::{Rig, object},
    relation::{Catalogue as _, Scan},
};

#[test]
fn every_view_gives_a_cell_for_each_of_its_columns() {
    let rig = Rig::new();
    for view in all() {
        let declared = view.columns.split(';').count();
        let columns = columns(view.columns);
        assert_eq!(columns.len(), declared, "{}: a column does not read", view.name);
        let rows = (view.rows)(&rig.names()).expect(view.name);
        for row in rows {
            assert_eq!(row.len(), columns.len(), "{}", view.name);
            for (column, cell) in columns.iter().zip(row.iter()) {
                let named = format!("{}.{}", view.name, column.name);
                assert!(column.kind.nullable || !cell.is_null(), "{named} is NULL");
                assert!(cell.clone().stored(&column.kind.sql_type).is_ok(), "{named} has no type");
            }
        }
    }
}

#[test]
fn views_are_found_where_a_server_has_them() {
    let rig = Rig::new();
    for name in [
        "sys.databases",
        "sys.tables",
        "INFORMATION_SCHEMA.COLUMNS",
        "information_schema.tables",
        "cdc.change_tables",
        "cdc.captured_columns",
        "msdb.dbo.cdc_jobs",
        "shop.cdc.ddl_history",
    ] {
        let relation = rig.names().relation(&object(name)).expect(name);
        assert!(relation.scan(&Scan::default()).is_ok());
    }
    assert!(rig.names().relation(&object("dbo.cdc_jobs")).is_err(), "msdb's alone");
}

#[test]
fn the_views_that_clients_read_by_ordinal_have_their_columns_in_place() {
    let rig = Rig::new();
    let relation = rig.names().relation(&object("cdc.change_tables")).expect("there");
    let names: Vec<_> = relation.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!((names[0], names[3], names[4]), ("object_id", "capture_instance", "start_lsn"));
    assert_eq!(names.len(), 13);
    let relation = rig.names().relation(&object("cdc.captured_columns")).expect("there");
    let rows: Vec<_> = relation.scan(&Scan::default()).expect("readable").flatten().collect();
    let shown: Vec<_> = rows.iter().map(|row| (row[1].clone(), row[3].clone())).collect();
    let expected = [("id", "int"), ("amount", "decimal"), ("state", "varchar")];
    let expected = expected.map(|(name, kind)| (name.into(), kind.into()));
    assert_eq!(shown, expected);
}

/// The error of a read; none when it is allowed.
fn refused(rig: &Rig, view: &str) -> Option<i32> {
    rig.read(view, &Scan::default()).err().map(|error| error.number)
}

#[test]
fn the_state_of_server_database_and_agent_is_for_those_who_were_granted_it() {
    let rig = Rig::as_reader();
    let of_server = ["sys.dm_server_services", "sys.dm_hadr_database_replica_states"];
    let of_database = ["sys.dm_cdc_log_scan_sessions", "sys.dm_cdc_errors"];
    let of_agent = ["msdb.dbo.sysjobs", "msdb.dbo.sysjobactivity", "msdb.dbo.sysjobservers"];
    for (views, number) in [(&of_server[..], 300), (&of_database, 262), (&of_agent, 229)] {
        for view in views {
            assert_eq!(refused(&rig, view), Some(number), "{view}");
        }
    }
    let state = cdc_fake::Permission::ViewDatabaseState;
    let on = cdc_fake::Securable::Database;
    rig.database.set_permission(cdc_fake::GrantAction::Grant, state, &on, "reader").expect("known");
    for view in of_database {
        assert_eq!(refused(&rig, view), None, "{view}");
    }
    // Who may look at the server may look at its databases.
    rig.database
        .set_permission(cdc_fake::GrantAction::Revoke, state, &on, "reader")
        .expect("known");
    rig.server.show_state_to("reader", true).expect("known");
    for view in of_server.iter().chain(&of_database) {
        assert_eq!(refused(&rig, view), None, "{view}");
    }
}

#[test]
fn a_group_shows_its_replica_where_the_database_is_one() {
    let rig = Rig::new();
    let shown = |rig: &Rig| rig.read("sys.dm_hadr_database_replica_states", &Scan::default());
    assert_eq!(shown(&rig).expect("allowed").len(), 0);
    rig.database.set_options(|options| options.replica = Some(cdc_fake::ReplicaRole::Secondary));
    let rows = shown(&rig).expect("allowed");
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0][4], &rows[0][5]), (&true.into(), &false.into()));
}

#[test]
fn the_log_waits_for_what_capture_has_not_read() {
    let rig = Rig::new();
    let wait = |rig: &Rig| {
        let rows = rig.read("sys.databases", &Scan::default()).expect("allowed");
        let columns = rig.names().relation(&object("sys.databases")).expect("there");
        let at = columns.columns().iter().position(|column| column.name == "log_reuse_wait_desc");
        let shop = rows.into_iter().find(|row| row[0] == "shop".into()).expect("there");
        shop[at.expect("there")].clone()
    };
    assert_eq!(wait(&rig), "NOTHING".into());
    rig.database.stop_capture();
    rig.database
        .transact(|tx| {
            let request = cdc_fake::InsertRequest {
                columns: Some(vec!["state".into()]),
                rows: vec![vec![Some("x".into())]],
                identity_insert: false,
            };
            tx.insert_rows(&cdc_core::TableName::new("dbo", "orders"), &request).map(|_| ())
        })
        .expect("fits");
    assert_eq!(wait(&rig), "REPLICATION".into());
}
