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
