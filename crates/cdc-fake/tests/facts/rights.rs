//! Rights: what a login sees without them, and the grant that helps.

use cdc_core::{
    ErrorKind, Position, TableRef,
    port::{Bound, Catalog, ChangeReader, FindingLevel, PositionLog, TableReader},
};
use cdc_fake::EnableOptions;

use crate::rig::{Rig, row};

#[tokio::test]
async fn without_select_on_the_table_the_listing_shows_nothing() {
    let (rig, instance) = Rig::captured();
    let reader = rig.source_of("reader");
    rig.database.grant_changes("reader", &instance);
    let reference = TableRef::Table(rig.table.clone());
    let error = reader.instances(&reference).await.expect_err("invisible");
    assert_eq!(error.kind(), ErrorKind::Config);
    rig.database.grant_select("reader", &rig.table);
    rig.enable("second");
    let listed = reader.instances(&reference).await.expect("visible");
    assert_eq!(listed.len(), 2, "both, for a login with the least rights");
}

#[tokio::test]
async fn without_select_on_the_change_table_reading_names_the_grant() {
    let (rig, instance) = Rig::captured();
    let commit = rig.insert(1, 1);
    rig.database.grant_select("reader", &rig.table);
    let reader = rig.source_of("reader");
    let request = rig.request(&instance, commit.lsn, commit.lsn, 10).await;
    let Err(error) = reader.changes(request.clone()).await else {
        panic!("read without a right");
    };
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(error.advice().contains("GRANT SELECT ON cdc.[dbo_t_CT] TO [reader]"));
    rig.database.grant_changes("reader", &instance);
    assert!(reader.changes(request).await.is_ok());
}

#[tokio::test]
async fn a_gating_role_hides_the_instance_and_its_low_position_from_others() {
    let rig = Rig::new();
    let options = EnableOptions::named("gated").role("cdc_reader");
    let instance = rig.database.enable_table(&rig.table, options);
    let instance = instance.expect("allowed");
    rig.database.grant_select("reader", &rig.table);
    rig.database.grant_changes("reader", &instance);
    let reader = rig.source_of("reader");
    let low = || async { reader.low(std::slice::from_ref(&instance)).await.expect("answers") };
    assert_eq!(low().await, [Bound::Zero]);
    rig.database.add_role_member("reader", "cdc_reader");
    let start = rig.database.instance(&instance).expect("known").start;
    assert_eq!(low().await, [Bound::At(Position::from(start))]);
}

#[tokio::test]
async fn rows_of_the_table_need_select_on_it() {
    let rig = Rig::new();
    rig.transact(|tx| tx.insert(&rig.table, row(1, 1)));
    let reader = rig.source_of("reader");
    let key = ["id".to_owned()];
    let error = reader.key_extent(&rig.table, &key).await.expect_err("no right");
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(error.advice().contains("GRANT SELECT ON [dbo].[t] TO [reader]"));
    rig.database.grant_select("reader", &rig.table);
    assert!(reader.key_extent(&rig.table, &key).await.is_ok());
    rig.database.revoke_select("reader", &rig.table);
    assert!(reader.key_extent(&rig.table, &key).await.is_err());
}

#[tokio::test]
async fn a_preflight_finds_what_is_missing() {
    let (rig, _) = Rig::captured();
    rig.database.grant_select("reader", &rig.table);
    let reader = rig.source_of("reader");
    let tables =
        [TableRef::Table(rig.table.clone()), TableRef::Table(crate::rig::table("missing"))];
    let findings = reader.preflight(&tables).await.expect("answers");
    let failures: Vec<_> =
        findings.iter().filter(|finding| finding.level == FindingLevel::Failure).collect();
    assert_eq!(failures.len(), 2, "{findings:?}");
    assert!(failures[0].remedy.contains("GRANT SELECT ON cdc.[dbo_t_CT]"));
    let fine = rig.source.preflight(&tables[..1]).await.expect("answers");
    assert_eq!(fine, []);
}

#[tokio::test]
async fn a_renamed_table_keeps_its_rights() {
    let (rig, instance) = Rig::captured();
    rig.database.grant_select("reader", &rig.table);
    rig.database.rename_table(&rig.table, "renamed").expect("allowed");
    let reader = rig.source_of("reader");
    let listed = reader.instances(&TableRef::Instance(instance)).await;
    assert_eq!(listed.expect("visible").len(), 1);
}
