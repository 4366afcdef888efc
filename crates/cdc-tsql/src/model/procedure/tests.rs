//! Tests of procedures.

use cdc_core::SqlType;
use cdc_fake::{Securable, Value};

use super::*;
use crate::model::tests::{Rig, word};

fn some(text: &str) -> Option<Typed> {
    Some(word(text))
}

fn cell(heard: &crate::model::tests::Heard, row: usize, column: &str) -> Value {
    let at = heard.columns.iter().position(|other| other.name == column).expect(column);
    heard.rows[row][at].clone()
}

#[test]
fn a_procedure_is_found_in_the_schema_that_has_it() {
    let found = |text: &str| procedure(&crate::model::tests::object(text)).is_some();
    assert!(found("sp_tables") && found("sys.sp_tables") && found("shop..SP_TABLES"));
    assert!(found("fake.advance_clock") && !found("advance_clock") && !found("fake.sp_tables"));
    assert!(!found("sp_nothing"));
}

#[test]
fn columns_come_in_the_29_places_that_drivers_read() {
    let rig = Rig::new();
    let arguments = [some("orders"), some("dbo"), some("shop"), None, None, Some(int(3)), None];
    let heard = rig.call("sp_columns_100", &arguments).expect("there");
    assert_eq!(heard.columns.len(), 29);
    assert_eq!(heard.columns[28].name, "SS_DATA_TYPE");
    assert_eq!(heard.rows.len(), 3);
    assert_eq!(cell(&heard, 0, "TYPE_NAME"), Value::text("int identity"));
    assert_eq!(cell(&heard, 0, "SS_IS_IDENTITY"), Value::Int(1));
    assert_eq!(cell(&heard, 1, "DATA_TYPE"), Value::Int(3));
    assert_eq!(cell(&heard, 2, "COLUMN_DEF"), Value::text("('new')"));
    assert_eq!(cell(&heard, 2, "CHAR_OCTET_LENGTH"), Value::Int(20));
    let heard = rig.call("sp_columns", &[some("order_")]).expect("a pattern");
    assert_eq!((heard.columns.len(), heard.rows.len()), (19, 3));
}

fn int(number: i64) -> Typed {
    Typed::new(SqlType::Int, Value::Int(number))
}

#[test]
fn tables_are_listed_by_the_types_asked_for() {
    let rig = Rig::new();
    let list = |types: &str| {
        let arguments = [some("%"), None, some("shop"), some(types)];
        rig.call("sp_tables", &arguments).expect("there")
    };
    let tables = list("'TABLE'");
    let names: Vec<_> = tables.rows.iter().map(|row| row[2].clone()).collect();
    assert!(names.contains(&"orders".into()) && names.contains(&"dbo_orders_CT".into()));
    assert!(tables.rows.iter().all(|row| row[3] == Value::text("TABLE")));
    assert!(list("'VIEW','MATERIALIZED VIEW','TABLE'").rows.len() > tables.rows.len());
    let error = rig.call("sp_tables", &[None, None, some("other")]).err().expect("refused");
    assert_eq!(error.number, 15_250);
}

#[test]
fn keys_and_indexes_are_told() {
    let rig = Rig::new();
    let heard = rig.call("sp_pkeys", &[some("orders"), some("dbo"), some("shop")]).expect("there");
    assert_eq!(heard.rows.len(), 1);
    assert_eq!(cell(&heard, 0, "COLUMN_NAME"), Value::text("id"));
    let heard = rig.call("sp_statistics_100", &[some("orders")]).expect("there");
    let names: Vec<_> = heard.rows.iter().map(|row| row[8].clone()).collect();
    assert_eq!(names, [Value::Null, "id".into(), "state".into()]);
    let heard = rig.call("sp_special_columns_100", &[some("orders")]).expect("there");
    assert_eq!(heard.rows.len(), 1);
    assert_eq!(cell(&heard, 0, "COLUMN_NAME"), Value::text("id"));
}

#[test]
fn enabling_a_table_lists_it_and_disabling_takes_it_away() {
    let rig = Rig::new();
    let enable = |role: Option<Typed>, name: &str| {
        let arguments = [some("dbo"), some("orders"), role, some(name)];
        rig.call("sys.sp_cdc_enable_table", &arguments)
    };
    let null = Typed::new(SqlType::NVarChar(cdc_core::Length::Limited(128)), Value::Null);
    assert_eq!(enable(None, "second").err().expect("no role given").number, 201);
    enable(Some(word("gate")), "second").expect("allowed");
    assert_eq!(enable(Some(null), "third").err().expect("two at most").number, 22_962);
    let heard = rig.call("sys.sp_cdc_help_change_data_capture", &[]).expect("there");
    assert_eq!(heard.rows.len(), 2);
    assert_eq!(cell(&heard, 1, "role_name"), Value::text("gate"));
    assert_eq!(cell(&heard, 1, "index_column_list"), Value::text("[id]"));
    assert_eq!(cell(&heard, 1, "captured_column_list"), Value::text("[id], [amount], [state]"));
    let captured = rig.call("sys.sp_cdc_get_captured_columns", &[some("second")]).expect("there");
    assert_eq!(cell(&captured, 1, "numeric_precision"), Value::Int(10));
    assert_eq!(cell(&captured, 2, "character_maximum_length"), Value::Int(20));
    let disable = [some("dbo"), some("orders"), some("all")];
    rig.call("sys.sp_cdc_disable_table", &disable).expect("there");
    let gone = rig.call("sys.sp_cdc_get_captured_columns", &[some("second")]);
    assert_eq!(gone.err().expect("gone").number, 22_981);
}

#[test]
fn jobs_are_changed_and_listed() {
    let rig = Rig::new();
    let number = |number: i64| Some(Typed::new(SqlType::BigInt, Value::Int(number)));
    let change = [some("cleanup"), None, None, None, None, number(60), None];
    rig.call("sys.sp_cdc_change_job", &change).expect("there");
    let heard = rig.call("sys.sp_cdc_help_jobs", &[]).expect("there");
    assert_eq!(heard.rows.len(), 2);
    assert_eq!(cell(&heard, 0, "job_type"), Value::text("capture"));
    assert_eq!(cell(&heard, 0, "pollinginterval"), Value::Int(5));
    assert_eq!(cell(&heard, 1, "retention"), Value::Int(60));
    let wrong = [some("cleanup"), None, None, None, number(9), None, None];
    assert!(rig.call("sys.sp_cdc_change_job", &wrong).is_err());
    rig.call("sys.sp_cdc_drop_job", &[some("capture")]).expect("there");
    assert!(!rig.database.capture_runs());
    assert_eq!(rig.call("sys.sp_cdc_help_jobs", &[]).expect("there").rows.len(), 1);
}

#[test]
fn control_procedures_move_the_clock_and_plant_trouble_for_owners_alone() {
    let rig = Rig::new();
    let before = rig.server.clock().time();
    rig.call("fake.advance_clock", &[Some(int(90))]).expect("allowed");
    assert_eq!(rig.server.clock().time(), before.plus_micros(90_000_000));
    rig.call("fake.inject_error", &[Some(int(1205)), None, some("SELECT")]).expect("allowed");
    let met = rig.server.faults().meet("SELECT", true);
    assert_eq!(met.error.map(|error| error.number), Some(1205));
    let reader = Rig::as_reader();
    let error = reader.call("fake.advance_clock", &[Some(int(1))]).err().expect("refused");
    assert_eq!(error.number, 229);
}

#[test]
fn spaceused_counts_rows_of_tables_and_of_change_tables() {
    let rig = Rig::new();
    for name in ["dbo.orders", "[cdc].[dbo_orders_CT]"] {
        let heard = rig.call("sp_spaceused", &[some(name)]).expect("there");
        assert_eq!(cell(&heard, 0, "rows"), Value::text("0                   "));
    }
    assert_eq!(rig.call("sp_spaceused", &[some("x")]).err().expect("none").number, 15_009);
    let on = Securable::Database;
    assert!(rig.database.permits(&rig.access.rights, cdc_fake::Permission::Control, &on));
}
