//! A connection of `mssql-tds`: how it is made, with every default that would be wrong set on
//! purpose.

use mssql_tds::{
    connection::client_context::{ClientContext, TdsAuthenticationMethod},
    connection_provider::tds_connection_provider::TdsConnectionProvider,
    core::EncryptionSetting,
    message::login_options::ApplicationIntent,
};
use tokio::time::timeout;

use super::Connection;
use crate::{
    config::{Encryption, Login, MssqlConfig, Trust},
    driver::connection::{access_token, at},
    fault::Fault,
};

/// Connects and logs in, within the time that the settings allow.
pub(super) async fn connect(config: &MssqlConfig) -> Result<Connection, Fault> {
    let token = access_token(config).await?;
    let context = options(config, token);
    let source = context.data_source.clone();
    let provider = TdsConnectionProvider::new();
    let made = Box::pin(provider.create_client(context, &source, None));
    match timeout(config.connect_timeout, made).await {
        Ok(Ok(client)) => Ok(Connection(Box::new(client))),
        Ok(Err(error)) => Err(at(config, error.into())),
        Err(_) => Err(at(config, Fault::lost("the server does not answer in time"))),
    }
}

/// The driver's options. What is set here differs from its defaults for the reason beside it.
fn options(config: &MssqlConfig, token: Option<String>) -> ClientContext {
    let mut options = ClientContext::with_data_source(&address(&config.host, config.port));
    options.database.clone_from(&config.database);
    options.application_name.clone_from(&config.application);
    if config.read_only_intent {
        options.application_intent = ApplicationIntent::ReadOnly;
    }
    if let Login::Password { user, password } = &config.login {
        options.user_name.clone_from(user);
        options.password = password.reveal().to_owned();
    } else {
        options.tds_authentication_method = TdsAuthenticationMethod::AccessToken;
        options.access_token = token;
    }
    let encryption = &mut options.encryption_options;
    encryption.mode = match config.encryption {
        Encryption::Strict => EncryptionSetting::Strict,
        Encryption::Required => EncryptionSetting::Required,
        // The login is encrypted all the same where the server can.
        Encryption::Off => EncryptionSetting::PreferOff,
    };
    encryption.trust_server_certificate = config.trust == Trust::Any;
    encryption.host_name_in_cert.clone_from(&config.certificate_name);
    // By default the addresses of a host are raced, and a lost connection is made again in secret:
    // with a session that others have set up, and without a word to who counts tries.
    options.multi_subnet_failover = Some(config.multi_subnet_failover);
    options.connect_retry_count = 0;
    // Whole seconds are its unit; the limit itself is kept by who calls.
    let seconds = u32::try_from(config.connect_timeout.as_secs()).unwrap_or(u32::MAX);
    options.connect_timeout = seconds.saturating_add(1);
    options.packet_size = u16::try_from(config.packet_bytes).unwrap_or(u16::MAX);
    options
}

/// The server as the driver reads it. It takes the protocol in front for a part of an address with
/// colons.
fn address(host: &str, port: u16) -> String {
    let protocol = if host.contains(':') { "" } else { "tcp:" };
    format!("{protocol}{host},{port}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpListener;

    use cdc_core::Secret;

    use super::*;

    fn config(host: &str) -> MssqlConfig {
        let login = Login::Password { user: "u".into(), password: Secret::new("p") };
        MssqlConfig::new(host, "d", login)
    }

    #[tokio::test]
    async fn a_host_is_a_name_or_an_address_of_either_kind() {
        for (door, host) in [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "localhost"), ("::1", "::1")]
        {
            let Ok(listener) = TcpListener::bind((door, 0)).await else {
                println!("skipped {host}: this machine has no such address");
                continue;
            };
            let mut config = config(host);
            config.port = listener.local_addr().expect("is bound").port();
            config.connect_timeout = Duration::from_secs(10);
            let door = async { drop(listener.accept().await.expect("it comes here")) };
            let ((), fault) = tokio::join!(door, connect(&config));
            assert!(fault.expect_err("no server").transient, "{host}");
        }
    }

    #[test]
    fn nothing_is_tried_twice_and_nothing_is_trusted_by_default() {
        let options = options(&config("h"), None);
        assert_eq!((options.connect_retry_count, options.multi_subnet_failover), (0, Some(false)));
        assert_eq!(options.encryption_options.mode, EncryptionSetting::Required);
        assert!(!options.encryption_options.trust_server_certificate);
    }

    #[test]
    fn a_token_is_no_password() {
        let mut config = config("h");
        config.login = Login::TokenCommand(vec!["az".into()]);
        let options = options(&config, Some("t".into()));
        assert_eq!(options.tds_authentication_method, TdsAuthenticationMethod::AccessToken);
        assert_eq!((options.access_token.as_deref(), options.password.as_str()), (Some("t"), ""));
    }
}
