//! Tests of names, relations and functions, and the server they are tested on.

use std::ops::ControlFlow;

use cdc_core::{SqlType, Timestamp};
use cdc_fake::{
    CaptureSchedule, ColumnDefinition, DefaultDefinition, EnableOptions, GrantAction,
    IndexDefinition, TableDefinition, VirtualClock, Zone,
};

use super::*;
use crate::{
    relation::{Bound, Comparison, Row, Scan},
    talk::{Message, ResultColumn},
};

/// A server with a captured table, a plain one, and a login `reader` that may read neither.
pub(super) struct Rig {
    pub(super) server: FakeServer,
    pub(super) database: FakeDatabase,
    pub(super) access: Access,
}

impl Rig {
    pub(super) fn new() -> Self {
        let clock = VirtualClock::manual(Timestamp::from_micros(1_760_000_000_000_000));
        let server = FakeServer::new(clock, Zone::UTC);
        server.create_system_databases();
        let database = server.database("shop");
        database.set_capture(CaptureSchedule::AtCommit);
        let orders = TableDefinition::new("orders")
            .with(ColumnDefinition::new("id", SqlType::Int).identity(1, 1))
            .nullable("amount", SqlType::Decimal { precision: 10, scale: 2 })
            .with(
                ColumnDefinition::nullable(
                    "state",
                    SqlType::VarChar(cdc_core::Length::Limited(20)),
                )
                .with_default(DefaultDefinition::constant("('new')", Value::text("new"))),
            )
            .primary_key(&["id"])
            .index(IndexDefinition::new(cdc_fake::IndexKind::Plain, &["state"]).named("ix_state"));
        database.create_table(orders).expect("new");
        let plain = TableDefinition::new("plain").column("k", SqlType::BigInt);
        database.create_table(plain).expect("new");
        let options = EnableOptions { net_changes: true, ..EnableOptions::default() };
        database.enable_table(&TableName::new("dbo", "orders"), options).expect("allowed");
        server.create_login("reader", "secret").expect("new");
        database.create_user("reader", Some("reader"), None).expect("new");
        let access = Access {
            rights: Login::Owner,
            login: "sa".into(),
            session: 51,
            host: "here".into(),
            application: "test".into(),
            isolation: Isolation::ReadCommitted,
            lock_timeout: Some(Duration::ZERO),
            transactions: Vec::new(),
            cancel: Cancel::default(),
            now: Moment { utc_ticks: 17_600_000_000_000_000, offset_minutes: 0 },
            settings: Settings::default(),
        };
        Self { server, database, access }
    }

    pub(super) fn as_reader() -> Self {
        let mut rig = Self::new();
        rig.access.rights = Login::named("reader");
        rig.access.login = "reader".into();
        rig
    }

    pub(super) fn names(&self) -> Names<'_> {
        Names::new(&self.server, &self.database, &self.access)
    }

    pub(super) fn grant(&self, on: &TableName) {
        let on = Securable::Object(on.clone());
        let grant = GrantAction::Grant;
        self.database.set_permission(grant, Permission::Select, &on, "reader").expect("known");
    }

    pub(super) fn read(&self, text: &str, scan: &Scan) -> SqlResult<Vec<Row>> {
        let relation = self.names().relation(&object(text))?;
        relation.scan(scan)?.collect()
    }

    fn insert(&self, amount: i128) -> cdc_fake::CommitInfo {
        let request = cdc_fake::InsertRequest {
            columns: Some(vec!["amount".into()]),
            rows: vec![vec![Some(Value::decimal(amount))]],
            identity_insert: false,
        };
        let orders = TableName::new("dbo", "orders");
        self.database.transact(|tx| tx.insert_rows(&orders, &request).map(|_| ())).expect("fits")
    }

    pub(super) fn call(&self, text: &str, arguments: &[Option<Typed>]) -> SqlResult<Heard> {
        let name = object(text);
        let found = procedure(&name).expect("a procedure");
        let mut heard = Heard::default();
        found.run(&self.names(), arguments, &mut heard)?;
        Ok(heard)
    }

    fn function(&self, text: &str, arguments: &[Typed]) -> Value {
        let name = object(text);
        let kinds: Vec<_> = arguments.iter().map(|argument| argument.kind.clone()).collect();
        let kind = self.names().function_kind(&name, &kinds).expect("a function");
        kind.expect("well called");
        self.names().function(&name, arguments).expect("answers")
    }
}

/// What a procedure gave.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) columns: Vec<ResultColumn>,
    pub(super) rows: Vec<Vec<Value>>,
    pub(super) messages: Vec<Message>,
}

impl ProcedureOutput for Heard {
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        self.columns = columns.to_vec();
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value]) -> ControlFlow<()> {
        assert_eq!(row.len(), self.columns.len());
        self.rows.push(row.to_vec());
        ControlFlow::Continue(())
    }

    fn message(&mut self, message: &Message) -> ControlFlow<()> {
        self.messages.push(message.clone());
        ControlFlow::Continue(())
    }
}

pub(super) fn object(text: &str) -> ObjectName {
    let mut parts = function::parts(text).into_iter().rev();
    let name = parts.next().expect("a name");
    ObjectName { schema: parts.next(), database: parts.next(), name }
}

pub(super) fn word(text: &str) -> Typed {
    Typed::new(SqlType::NVarChar(cdc_core::Length::Limited(128)), Value::text(text))
}

fn number(number: i64) -> Typed {
    Typed::new(SqlType::Int, Value::Int(number))
}

#[test]
fn a_table_reads_with_the_place_of_each_row_and_seeks_by_its_key() {
    let rig = Rig::new();
    for amount in [100, 200, 300] {
        rig.insert(amount);
    }
    let relation = rig.names().relation(&object("ORDERS")).expect("found without regard to case");
    let names: Vec<_> = relation.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "amount", "state", crate::relation::ROW_LOCATION]);
    assert!(relation.columns()[3].hidden && relation.columns()[0].identity);
    let bound = Bound { column: 0, comparison: Comparison::Greater, value: 1.into() };
    let scan = Scan { bounds: vec![bound], ..Scan::default() };
    let rows = rig.read("dbo.orders", &scan).expect("readable");
    let shown: Vec<_> = rows.iter().map(|row| (row[0].clone(), row[2].clone())).collect();
    assert_eq!(shown, [(2.into(), "new".into()), (3.into(), "new".into())]);
    let place = cdc_fake::RowId::from_value(&rows[0][3]).expect("a place");
    let orders = TableName::new("dbo", "orders");
    let deleted = rig.database.transact(|tx| tx.delete_rows(&orders, &[place], &[]).map(|_| ()));
    deleted.expect("there");
    assert_eq!(rig.read("orders", &Scan::default()).expect("readable").len(), 2);
}

#[test]
fn a_change_table_and_the_mapping_seek_by_lsn() {
    let rig = Rig::new();
    let commits: Vec<_> = (1..=3).map(|amount| rig.insert(amount)).collect();
    let bound = |comparison, lsn: cdc_core::Lsn| Bound {
        column: 0,
        comparison,
        value: Value::bytes(lsn.as_bytes()),
    };
    let scan = Scan {
        bounds: vec![
            bound(Comparison::Greater, commits[0].lsn),
            bound(Comparison::LessOrEqual, commits[1].lsn),
        ],
        ..Scan::default()
    };
    let rows = rig.read("cdc.dbo_orders_CT", &scan).expect("readable");
    assert_eq!(rows.len(), 1);
    // Head, three captured columns, command.
    assert_eq!(rows[0].len(), 9);
    assert_eq!(rows[0][3], Value::Int(2));
    assert_eq!(rows[0][4], Value::bytes(&[7]));
    assert_eq!(rows[0][8], Value::Int(1));
    let mapped = rig.read("cdc.lsn_time_mapping", &scan).expect("readable");
    assert_eq!(mapped.len(), 1);
    assert_eq!(mapped[0][0], Value::bytes(commits[1].lsn.as_bytes()));
}

#[test]
fn functions_over_changes_refuse_what_lies_outside_the_window_with_313() {
    let rig = Rig::new();
    let first = rig.insert(1).lsn;
    let last = rig.insert(2).lsn;
    let lsn = |lsn: cdc_core::Lsn| Typed::new(SqlType::Binary(10), Value::bytes(lsn.as_bytes()));
    let name = object("cdc.fn_cdc_get_all_changes_dbo_orders");
    let call = |from, to, filter| {
        let arguments = [lsn(from), lsn(to), word(filter)];
        let relation = rig.names().table_function(&name, &arguments)?;
        let rows: SqlResult<Vec<Row>> = relation.scan(&Scan::default())?.collect();
        rows
    };
    assert_eq!(call(first, last, "all").expect("inside").len(), 2);
    assert_eq!(call(first, last, "ALL UPDATE OLD").expect("inside").len(), 2);
    for (from, to, filter) in [
        (cdc_core::Lsn::ZERO, last, "all"),
        (first, last.increment(), "all"),
        (last, first, "all"),
        (first, last, "some"),
    ] {
        assert_eq!(call(from, to, filter).expect_err("outside").number, 313);
    }
    let columns = rig.names().table_function_columns(&name).expect("known");
    assert_eq!(columns[1].name, "__$seqval");
    assert!(columns.iter().all(|column| column.name != "__$command_id"));
}

#[test]
fn captured_texts_keep_the_collation_of_their_column() {
    let rig = Rig::new();
    let name = SqlType::VarChar(cdc_core::Length::Limited(20));
    let people = TableDefinition::new("people")
        .column("id", SqlType::Int)
        .with(ColumnDefinition::nullable("name", name.clone()).collated("Greek_CI_AS"))
        .with(ColumnDefinition::nullable("plain", name))
        .primary_key(&["id"]);
    rig.database.create_table(people).expect("new");
    let table = TableName::new("dbo", "people");
    rig.database.enable_table(&table, EnableOptions::default()).expect("allowed");
    let relation = rig.names().relation(&object("cdc.dbo_people_CT")).expect("there");
    let function = object("cdc.fn_cdc_get_all_changes_dbo_people");
    let returned = rig.names().table_function_columns(&function).expect("known");
    for columns in [relation.columns(), &returned] {
        let collation = |name: &str| {
            let column = columns.iter().find(|column| column.name == name).expect("captured");
            column.kind.collation.map(|collation| collation.name)
        };
        assert_eq!(collation("name"), Some("Greek_CI_AS"));
        assert_eq!(collation("plain"), Some("SQL_Latin1_General_CP1_CI_AS"));
    }
}

#[test]
fn net_changes_come_to_one_row_a_key() {
    let rig = Rig::new();
    let first = rig.insert(1).lsn;
    rig.insert(2);
    let orders = TableName::new("dbo", "orders");
    let amount = |id: i64, to: i128| {
        let set = [("amount", Value::decimal(to))];
        let change =
            |tx: &mut cdc_fake::Transaction| tx.update(&orders, &[id.into()], &set).map(|_| ());
        rig.database.transact(change).expect("free").lsn
    };
    amount(1, 5);
    let before = amount(1, 6);
    rig.database.transact(|tx| tx.delete(&orders, &[2.into()]).map(|_| ())).expect("free");
    let last = amount(1, 7);
    let net = |from: cdc_core::Lsn, filter: &str| {
        let lsn = |lsn: cdc_core::Lsn| Typed::new(SqlType::Binary(10), lsn_bytes(lsn));
        let arguments = [lsn(from), lsn(last), word(filter)];
        let name = object("cdc.fn_cdc_get_net_changes_dbo_orders");
        let relation = rig.names().table_function(&name, &arguments).expect("inside");
        let rows: SqlResult<Vec<Row>> = relation.scan(&Scan::default()).expect("inside").collect();
        rows.expect("readable")
    };
    // Inserted and updated is inserted; inserted and deleted is nothing.
    let rows = net(first, "all");
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0][1], &rows[0][4]), (&Value::Int(2), &Value::decimal(7)));
    let rows = net(before, "all with mask");
    let shown: Vec<_> = rows.iter().map(|row| (row[1].clone(), row[2].clone())).collect();
    assert_eq!(shown, [(1.into(), Value::Null), (4.into(), Value::bytes(&[2]))]);
    let rows = net(before, "all with merge");
    assert_eq!(rows[1][1], Value::Int(5));
}

fn lsn_bytes(lsn: cdc_core::Lsn) -> Value {
    Value::bytes(lsn.as_bytes())
}

#[test]
fn a_login_without_rights_is_refused_objects_and_shown_nothing() {
    let rig = Rig::as_reader();
    let orders = TableName::new("dbo", "orders");
    let refused = |text: &str| rig.read(text, &Scan::default()).expect_err("refused");
    assert_eq!(refused("orders").number, 229);
    assert!(refused("orders").message.contains("'orders', database 'shop', schema 'dbo'"));
    assert_eq!(refused("cdc.dbo_orders_CT").number, 229);
    assert_eq!(refused("cdc.change_tables").number, 229);
    assert_eq!(refused("nothing").number, 208);
    assert!(rig.read("cdc.lsn_time_mapping", &Scan::default()).is_ok(), "everybody's");
    let tables = rig.read("sys.tables", &Scan::default()).expect("readable");
    assert!(tables.iter().all(|row| row[0] != Value::text("orders")));
    let help = rig.call("sys.sp_cdc_help_change_data_capture", &[]).expect("an empty list");
    assert_eq!(help.rows.len(), 0);
    let low = || rig.function("sys.fn_cdc_get_min_lsn", &[word("dbo_orders")]);
    assert_eq!(low(), Value::bytes(&[0; 10]));
    rig.grant(&orders);
    assert!(rig.read("orders", &Scan::default()).is_ok());
    assert_eq!(rig.read("sys.tables", &Scan::default()).expect("readable").len(), 1 + shared());
    let help = rig.call("sys.sp_cdc_help_change_data_capture", &[]).expect("one");
    assert_eq!(help.rows.len(), 1);
    assert_ne!(low(), Value::bytes(&[0; 10]));
    let error = rig.call("sys.sp_cdc_help_jobs", &[]).err().expect("refused");
    assert_eq!(error.number, 22_904);
}

/// Tables that every login sees: the mapping.
const fn shared() -> usize {
    1
}

#[test]
fn another_database_opens_to_its_users_alone() {
    let rig = Rig::as_reader();
    let _ = rig.server.database("other");
    assert_eq!(rig.names().open("other").expect_err("no user").number, 916);
    assert_eq!(rig.names().open("missing").expect_err("none").number, 911);
    assert!(rig.names().open("MASTER").is_ok());
    let error = rig.read("missing.dbo.t", &Scan::default()).expect_err("none");
    assert_eq!(error.message, "Invalid object name 'missing.dbo.t'.");
    assert!(rig.read("shop.sys.objects", &Scan::default()).is_ok());
}

#[test]
fn names_and_ids_of_objects_are_each_others_inverse() {
    let rig = Rig::new();
    let id = rig.function("OBJECT_ID", &[word("[shop].dbo.[orders]")]);
    let Value::Int(id) = id else { panic!("no id") };
    assert_eq!(rig.function("OBJECT_ID", &[word("orders"), word("U")]), Value::Int(id));
    assert_eq!(rig.function("OBJECT_ID", &[word("orders"), word("V")]), Value::Null);
    assert_eq!(rig.function("OBJECT_NAME", &[number(id)]), Value::text("orders"));
    let database = rig.function("DB_ID", &[]);
    let Value::Int(database) = database else { panic!("no id") };
    let schema = rig.function("OBJECT_SCHEMA_NAME", &[number(id), number(database)]);
    assert_eq!(schema, Value::text("dbo"));
    assert_eq!(rig.function("COL_NAME", &[number(id), number(2)]), Value::text("amount"));
    let property = [number(id), word("id"), word("IsIdentity")];
    assert_eq!(rig.function("COLUMNPROPERTY", &property), Value::Int(1));
    assert_eq!(rig.function("SERVERPROPERTY", &[word("EngineEdition")]), Value::text("3"));
    assert_eq!(rig.function("CURRENT_TIMEZONE_ID", &[]), Value::text("UTC"));
}

#[test]
fn rights_by_name_are_those_that_a_read_needs() {
    let rig = Rig::as_reader();
    let may = |name: &str, class: &str, right: &str| {
        rig.function("HAS_PERMS_BY_NAME", &[word(name), word(class), word(right)])
    };
    assert_eq!(may("dbo.orders", "OBJECT", "SELECT"), Value::Int(0));
    assert_eq!(may("cdc.lsn_time_mapping", "OBJECT", "SELECT"), Value::Int(1));
    assert_eq!(may("dbo.missing", "OBJECT", "SELECT"), Value::Null);
    rig.grant(&TableName::new("dbo", "orders"));
    assert_eq!(may("dbo.orders", "OBJECT", "SELECT"), Value::Int(1));
    assert_eq!(may("dbo.orders", "OBJECT", "DELETE"), Value::Int(0));
    assert_eq!(rig.function("IS_MEMBER", &[word("db_owner")]), Value::Int(0));
    assert_eq!(rig.function("IS_MEMBER", &[word("nobody")]), Value::Null);
    assert_eq!(rig.function("HAS_DBACCESS", &[word("shop")]), Value::Int(1));
}

#[test]
fn masks_and_lsns_compute_as_the_servers_functions_do() {
    let rig = Rig::new();
    let commit = rig.insert(1);
    let lsn = Typed::new(SqlType::Binary(10), lsn_bytes(commit.lsn));
    let next = rig.function("sys.fn_cdc_increment_lsn", std::slice::from_ref(&lsn));
    assert_eq!(next, lsn_bytes(commit.lsn.increment()));
    assert_eq!(rig.function("shop.sys.fn_cdc_get_max_lsn", &[]), lsn.value);
    let time = rig.function("sys.fn_cdc_map_lsn_to_time", std::slice::from_ref(&lsn));
    let time = Typed::new(SqlType::DateTime, time);
    for (operator, found) in [
        ("largest less than or equal", true),
        ("smallest greater than or equal", true),
        ("smallest greater than", false),
    ] {
        let mapped = rig.function("sys.fn_cdc_map_time_to_lsn", &[word(operator), time.clone()]);
        assert_eq!(!mapped.is_null(), found, "{operator}");
    }
    let mask = Typed::new(SqlType::VarBinary(cdc_core::Length::Limited(128)), Value::bytes(&[2]));
    let changed = [word("dbo_orders"), word("amount"), mask.clone()];
    assert_eq!(rig.function("sys.fn_cdc_has_column_changed", &changed), Value::Bit(true));
    assert_eq!(rig.function("sys.fn_cdc_is_bit_set", &[number(1), mask]), Value::Bit(false));
    let ordinal = [word("dbo_orders"), word("state")];
    assert_eq!(rig.function("sys.fn_cdc_get_column_ordinal", &ordinal), Value::Int(3));
}

#[test]
fn a_change_of_the_server_shows_in_its_version() {
    let rig = Rig::new();
    let before = rig.server.data_version();
    rig.read("orders", &Scan::default()).expect("readable");
    rig.read("sys.objects", &Scan::default()).expect("readable");
    rig.call("sys.sp_cdc_help_jobs", &[]).expect("allowed");
    assert_eq!(rig.server.data_version(), before, "reads change nothing");
    rig.read("sys.dm_exec_sessions", &Scan::default()).expect("readable");
    assert_ne!(rig.server.data_version(), before, "who is connected is no data");
    let before = rig.server.data_version();
    rig.insert(1);
    assert_ne!(rig.server.data_version(), before);
}
