//! Tests of rights.

use cdc_core::TableName;

use super::*;
use crate::{FakeServer, VirtualClock, Zone};

fn database() -> FakeDatabase {
    let clock = VirtualClock::manual(cdc_core::Timestamp::from_micros(0));
    let database = FakeServer::new(clock, Zone::UTC).database("shop");
    database.create_user("ann", Some("ann"), None).expect("new");
    database.create_role("readers").expect("new");
    database
}

fn orders() -> Securable {
    Securable::Object(TableName::new("dbo", "orders"))
}

fn reads(database: &FakeDatabase) -> bool {
    database.permits(&Login::named("ann"), Permission::Select, &orders())
}

#[test]
fn a_right_comes_from_the_object_its_schema_the_database_or_a_role() {
    let schema = Securable::Schema("dbo".into());
    for on in [orders(), schema, Securable::Database] {
        for to in ["ann", "readers", "public"] {
            let database = database();
            database.alter_role("readers", "ann", true).expect("known");
            assert!(!reads(&database));
            let grant = |action| {
                database.set_permission(action, Permission::Select, &on, to).expect("known");
            };
            grant(GrantAction::Grant);
            assert!(reads(&database), "{on:?} to {to}");
            grant(GrantAction::Revoke);
            assert!(!reads(&database));
        }
    }
}

#[test]
fn a_denial_anywhere_is_stronger_than_every_grant() {
    let database = database();
    database.alter_role("readers", "ann", true).expect("known");
    database
        .set_permission(GrantAction::Grant, Permission::Control, &Securable::Database, "ann")
        .expect("known");
    assert!(reads(&database));
    database
        .set_permission(GrantAction::Deny, Permission::Select, &orders(), "readers")
        .expect("known");
    assert!(!reads(&database));
    assert!(database.permits(&Login::named("ann"), Permission::Insert, &orders()));
    assert!(database.permits(&Login::Owner, Permission::Select, &orders()));
}

#[test]
fn fixed_roles_have_their_rights() {
    let database = database();
    database.alter_role("db_datareader", "ann", true).expect("known");
    assert!(reads(&database));
    database.alter_role("db_denydatareader", "ann", true).expect("known");
    assert!(!reads(&database));
    database.alter_role("db_denydatareader", "ann", false).expect("known");
    database.alter_role("db_datareader", "ann", false).expect("known");
    assert!(!reads(&database));
    database.alter_role("db_owner", "ann", true).expect("known");
    assert!(reads(&database) && database.is_member(&Login::named("ann"), "anything"));
}

#[test]
fn principals_that_do_not_exist_are_refused_and_dropped_ones_lose_their_rights() {
    let database = database();
    let select = Permission::Select;
    let unknown = database.set_permission(GrantAction::Grant, select, &orders(), "bob");
    assert_eq!(unknown.expect_err("no such user").number, number::PRINCIPAL_UNKNOWN);
    assert_eq!(database.create_role("ANN").expect_err("taken").number, number::PRINCIPAL_EXISTS);
    database.set_permission(GrantAction::Grant, select, &orders(), "ann").expect("known");
    database.drop_principal("ann", PrincipalKind::User).expect("known");
    database.create_user("ann", Some("ann"), None).expect("new again");
    assert!(!reads(&database));
    let fixed = database.drop_principal("db_owner", PrincipalKind::Role);
    assert_eq!(fixed.expect_err("fixed").number, 15_150);
}

#[test]
fn a_login_is_the_user_that_is_mapped_to_it() {
    let database = database();
    database.create_user("reporting", Some("svc"), Some("sales")).expect("new");
    database.grant_select("reporting", &TableName::new("dbo", "orders"));
    let login = Login::named("svc");
    assert!(database.permits(&login, Permission::Select, &orders()));
    assert_eq!(database.user_name(&login).as_deref(), Some("reporting"));
    assert_eq!(database.default_schema(&login), "sales");
}

#[test]
fn a_right_holds_for_the_object_however_its_name_was_written() {
    let database = database();
    let definition = crate::TableDefinition::new("orders").column("id", cdc_core::SqlType::Int);
    database.create_table(definition).expect("new");
    let select = Permission::Select;
    let written = Securable::Object(TableName::new("DBO", "Orders"));
    database.set_permission(GrantAction::Grant, select, &written, "ANN").expect("known");
    assert!(reads(&database));
    let schema = Securable::Schema("DBO".into());
    database.set_permission(GrantAction::Deny, select, &schema, "public").expect("known");
    assert!(!reads(&database));
}
