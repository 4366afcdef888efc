//! What is found over TDS is what the fake's own source finds, trouble by trouble.

use std::time::Duration;

use cdc_conformance::{
    Cell,
    source::{SourceHarness, Statement},
};
use cdc_core::{
    Column, InstanceName, Length, SqlType, TableName, TableRef,
    diagnosis::{Check, Diagnosis, Outcome},
    port::Diagnose,
};
use cdc_fake::{FakeSource, JobChange, JobKind, Login, ReplicaRole, Zone};

use crate::rig::{OverTds, block_on};

fn tables() -> Vec<TableRef> {
    vec![
        TableRef::Table(TableName::new("dbo", "orders")),
        TableRef::Table(TableName::new("dbo", "none")),
        TableRef::Instance(InstanceName::new("dbo_orders")),
    ]
}

async fn served() -> OverTds {
    let rig = OverTds::plain(Zone::Named(chrono_tz::America::New_York)).await;
    let orders = TableName::new("dbo", "orders");
    let columns = [
        Column::new("id", 1, SqlType::Int, false),
        Column::new("note", 2, SqlType::NVarChar(Length::Max), true),
        Column::new("version", 3, SqlType::Xml, true),
    ];
    rig.create_table(&orders, &columns, &["id"]).await.unwrap();
    rig.enable(&orders, &InstanceName::new("dbo_orders"), Some(&["id", "note"])).await.unwrap();
    for id in 0..3 {
        let row = vec![Cell::Int(id), Cell::text("x"), Cell::Null];
        rig.transact(&[Statement::Insert(orders.clone(), row)]).await.unwrap();
        rig.pass(Duration::from_secs(100)).await.unwrap();
    }
    rig.capture().await.unwrap();
    rig
}

/// What both find, but for how the connection is encrypted.
async fn found(rig: &OverTds, user: &str) -> (Vec<Diagnosis>, Vec<Diagnosis>) {
    let now = rig.fake.server().clock().time();
    let login = if user == "sa" { Login::Owner } else { Login::named(user) };
    let own = FakeSource::new(rig.fake.database(), login).unwrap();
    let own = own.diagnose(&tables(), now).await.unwrap();
    let wired = rig.source_of(user).diagnose(&tables(), now).await.unwrap();
    let without = |mut found: Vec<Diagnosis>| {
        found.retain(|one| one.check != Check::Encryption);
        found
    };
    (without(wired), without(own))
}

#[test]
fn the_owner_finds_the_same_over_tds_and_in_the_process() {
    block_on(async {
        let rig = served().await;
        let database = rig.fake.database().clone();
        let server = rig.fake.server().clone();
        let plants: Vec<Box<dyn Fn()>> = vec![
            Box::new(|| {}),
            Box::new(|| database.stop_capture()),
            Box::new(|| database.fail_scan(8_115, "a text with a value")),
            Box::new(|| database.edit_jobs(|jobs| jobs.cleanup_outcome = 0)),
            Box::new(|| {
                let change = JobChange { retention: Some(60), ..JobChange::default() };
                database.change_jobs(change).unwrap();
            }),
            Box::new(|| database.set_options(|o| o.replica = Some(ReplicaRole::Secondary))),
            Box::new(|| database.set_options(|o| o.allow_snapshot_isolation = true)),
            Box::new(|| server.set_text_limit(-1)),
            Box::new(|| server.reconfigure()),
            Box::new(|| {
                server.clock().advance(Duration::from_secs(2_000));
            }),
            Box::new(|| database.set_job(JobKind::Capture, false)),
            Box::new(|| database.set_job(JobKind::Cleanup, false)),
            Box::new(|| server.stop_agent()),
        ];
        let mut before = Vec::new();
        for (at, plant) in plants.iter().enumerate() {
            plant();
            let (wired, own) = found(&rig, "sa").await;
            for (wired, own) in wired.iter().zip(&own) {
                if [Check::LogReuse, Check::ClockZone].contains(&wired.check) {
                    // How full a log would be, and the Windows name of its zone, are told over the
                    // wire alone.
                    assert_eq!((wired.outcome, &wired.meaning), (own.outcome, &own.meaning));
                } else {
                    assert_eq!(wired, own, "after trouble {at}");
                }
            }
            assert_eq!(wired.len(), own.len());
            assert!(at == 8 || wired != before || at == 7, "trouble {at} changed nothing");
            before = wired;
            let told = format!("{before:?}");
            assert!(!told.contains("a text with a value"), "{told}");
        }
    });
}

#[test]
fn a_login_with_few_rights_finds_as_much_unknown_over_tds_as_in_the_process() {
    block_on(async {
        let rig = served().await;
        rig.fake.server().create_login("reader", crate::rig::PASSWORD).unwrap();
        rig.fake.database().create_user("reader", Some("reader"), None).unwrap();
        let outcomes = |found: &[Diagnosis]| {
            found.iter().map(|one| (one.check, one.outcome, one.table.clone())).collect::<Vec<_>>()
        };
        let (wired, own) = found(&rig, "reader").await;
        assert_eq!(outcomes(&wired), outcomes(&own));
        assert!(wired.iter().any(|one| one.check == Check::TableRight));
        rig.fake.database().grant_select("reader", &TableName::new("dbo", "orders"));
        let (wired, own) = found(&rig, "reader").await;
        assert_eq!(outcomes(&wired), outcomes(&own));
        let unknown: Vec<_> = wired.iter().filter(|one| one.outcome == Outcome::Unknown).collect();
        assert!(unknown.len() >= 7, "{unknown:?}");
        for one in unknown {
            assert!(one.statement.is_some(), "nothing gives what is needed: {one:?}");
        }
    });
}
