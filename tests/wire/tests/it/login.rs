//! Logins by access tokens, static and from a command.

use std::time::Duration;

use cdc_core::{Error, ErrorKind, port::PositionLog};
use cdc_fake::Zone;
use cdc_mssql::{Login, MssqlConfig, MssqlSource, Secret};

use crate::rig::{OverTds, block_on};

const FIRST: &str = "eyJ0eXAi.planted-first";
const SECOND: &str = "eyJ0eXAi.planted-second";

async fn served() -> OverTds {
    let rig = OverTds::plain(Zone::UTC).await;
    rig.fake.server().create_login("entra", "unused").unwrap();
    rig.fake.server().accept_token(FIRST, "entra");
    rig.fake.database().create_user("entra", Some("entra"), None).unwrap();
    rig
}

fn with(rig: &OverTds, login: Login) -> MssqlConfig {
    let mut config = rig.config("nobody");
    config.login = login;
    config
}

/// Whatever can be printed of an error and of the settings behind it.
fn told(config: &MssqlConfig, error: &Error) -> String {
    format!("{config:?} {error:?} {} {}", error.report(), error.advice())
}

#[test]
fn a_token_lets_its_login_in_until_it_expires() {
    block_on(async {
        let rig = served().await;
        let config = with(&rig, Login::Token(Secret::new(FIRST)));
        let source = MssqlSource::new(config.clone());
        source.high().await.unwrap();
        let session = rig.fake.server().session_list().pop().expect("one");
        assert_eq!(session.login, "entra");
        rig.fake.server().expire_tokens();
        // A connection that is there lives on; the next one is refused.
        source.high().await.unwrap();
        let error = MssqlSource::new(config.clone()).high().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthorized, "{}", error.report());
        assert_eq!(error.context("error"), Some("18456"));
        assert!(error.advice().contains("source.login_command"), "{}", error.advice());
        assert!(!told(&config, &error).contains("planted"));
    });
}

#[test]
fn a_command_is_asked_for_each_connection_so_a_token_that_expired_is_replaced() {
    block_on(async {
        let rig = served().await;
        let directory = std::env::temp_dir().join(format!("cdc-login-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (file, count) = (directory.join("token"), directory.join("count"));
        std::fs::write(&file, FIRST).unwrap();
        let script = format!("echo x >> '{}'; cat '{}'", count.display(), file.display());
        let words = ["sh", "-c", &script].map(str::to_owned).to_vec();
        let config = with(&rig, Login::TokenCommand(words));
        let source = MssqlSource::new(config.clone());
        source.high().await.unwrap();
        source.high().await.unwrap();
        let runs = || std::fs::read_to_string(&count).unwrap().lines().count();
        assert_eq!(runs(), 1, "once for the one connection");
        // The token expires, and so do the connections.
        rig.fake.server().expire_tokens();
        rig.fake.server().accept_token(SECOND, "entra");
        for session in rig.fake.server().session_list() {
            rig.fake.server().kill(session.id).unwrap();
        }
        std::fs::write(&file, SECOND).unwrap();
        source.high().await.unwrap();
        assert_eq!(runs(), 2);
        // A command that goes on printing the old one is told so.
        rig.fake.server().expire_tokens();
        let error = MssqlSource::new(config.clone()).high().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthorized);
        assert!(error.advice().contains("https://database.windows.net/"), "{}", error.advice());
        assert!(!told(&config, &error).contains("planted"));
        std::fs::remove_dir_all(&directory).unwrap();
    });
}

#[test]
fn a_command_that_takes_too_long_is_given_up() {
    block_on(async {
        let rig = served().await;
        let words = ["sh", "-c", "sleep 600; echo planted"].map(str::to_owned).to_vec();
        let mut config = with(&rig, Login::TokenCommand(words));
        config.token_timeout = Duration::from_millis(100);
        let error = MssqlSource::new(config.clone()).high().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthorized);
        assert_eq!(error.context("reason"), Some("it does not end in time"));
        assert_eq!(error.context("setting"), Some("source.login_command"));
        assert!(error.advice().contains("source.login_command_timeout"), "{}", error.advice());
        assert!(!error.report().contains("planted"));
    });
}
