//! Logins, users, and what they may do.

use super::rig::{Recording, Rig};
use crate::talk::{Conversation, LoginRequest, Service};

fn told(session: &mut Box<dyn Conversation>, text: &str) -> Recording {
    let mut recording = Recording::default();
    session.batch(text, &mut recording);
    recording
}

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.run(
        "CREATE TABLE t (a int) INSERT t VALUES (1)
         CREATE LOGIN reader WITH PASSWORD = 'secret'
         CREATE USER reader FOR LOGIN reader",
    );
    rig
}

#[test]
fn a_login_needs_its_password_and_a_user_in_the_database() {
    let mut rig = rig();
    let refused = |rig: &Rig, user: &str, password: &str| {
        let request = LoginRequest {
            user: user.into(),
            password: password.into(),
            database: "shop".into(),
            ..LoginRequest::default()
        };
        rig.server.log_in(&request).err().map(|message| (message.number, message.text))
    };
    let wrong = refused(&rig, "reader", "wrong").expect("refused");
    assert_eq!(wrong.0, 18_456);
    assert_eq!(refused(&rig, "nobody", "x").expect("refused").0, 18_456);
    assert_eq!(refused(&rig, "reader", "secret"), None);
    rig.run("CREATE LOGIN guest1 WITH PASSWORD = 'x'");
    assert_eq!(refused(&rig, "guest1", "x").expect("no user").0, 4060);
    rig.run("ALTER LOGIN reader DISABLE");
    assert_eq!(refused(&rig, "reader", "secret").expect("disabled").0, 18_456);
}

#[test]
fn rights_are_granted_denied_and_taken_away() {
    let mut rig = rig();
    let mut reader = rig.log_in("reader", "secret");
    assert!(matches!(told(&mut reader, "SELECT a FROM t").errors()[..], [208 | 229]));
    rig.run("GRANT SELECT ON t TO reader");
    assert_eq!(told(&mut reader, "SELECT a FROM t").errors(), []);
    assert_eq!(told(&mut reader, "INSERT t VALUES (2)").errors(), [229]);
    assert_eq!(told(&mut reader, "DELETE t").errors(), [229]);
    rig.run("GRANT INSERT ON SCHEMA::dbo TO reader");
    assert_eq!(told(&mut reader, "INSERT t VALUES (2)").errors(), []);
    rig.run("DENY INSERT ON t TO reader");
    assert_eq!(told(&mut reader, "INSERT t VALUES (2)").errors(), [229]);
    rig.run("REVOKE SELECT ON t FROM reader DENY SELECT ON t TO reader");
    assert_eq!(told(&mut reader, "SELECT a FROM t").errors(), [229]);
    assert_eq!(told(&mut reader, "CREATE TABLE u (a int)").errors(), [262]);
    assert_eq!(told(&mut reader, "DROP TABLE t").errors(), [3701]);
    assert_eq!(told(&mut reader, "CREATE LOGIN x WITH PASSWORD = 'y'").errors(), [15_247]);
    rig.run("ALTER ROLE db_owner ADD MEMBER reader REVOKE SELECT ON t FROM reader");
    assert_eq!(told(&mut reader, "SELECT a FROM t CREATE TABLE u (a int)").errors(), []);
}

#[test]
fn what_is_granted_to_nobody_or_on_nothing_is_refused() {
    let mut rig = rig();
    assert_eq!(rig.error("GRANT SELECT ON t TO nobody"), 15_151);
    assert_eq!(rig.error("GRANT SELECT ON nothing TO reader"), 15_151);
    assert_eq!(rig.error("GRANT FLYING TO reader"), 50_000);
    assert_eq!(rig.error("CREATE USER x FOR LOGIN nobody"), 15_007);
    assert_eq!(rig.error("ALTER ROLE nothing ADD MEMBER reader"), 15_151);
}
