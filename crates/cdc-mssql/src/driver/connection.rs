//! A connection of tiberius: how it is made, with every default that would be wrong set on purpose.

use futures_util::future::select_ok;
use tiberius::{AuthMethod, Client, Config, EncryptionLevel};
use tokio::{net::TcpStream, time::timeout};
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

use super::token;
use crate::{
    config::{Encryption, Login, MssqlConfig, Trust},
    fault::{Fault, number},
};

/// How often a login follows the server to another address: a gateway, then the database's node.
const REDIRECTS_MAX: usize = 3;

/// A logged-in connection.
pub(crate) type Connection = Client<Compat<TcpStream>>;

/// Connects and logs in, within the time that the settings allow.
pub(crate) async fn connect(config: &MssqlConfig) -> Result<Connection, Fault> {
    let login = credentials(config).await?;
    match timeout(config.connect_timeout, log_in(config, login)).await {
        Ok(connected) => connected.map_err(|fault| at(config, fault)),
        Err(_) => {
            let fault = Fault::lost("the server does not answer in time");
            Err(at(config, fault))
        }
    }
}

/// The fault with the server and the database that it is about, and for a login that is refused
/// with what proves it.
pub(crate) fn at(config: &MssqlConfig, mut fault: Fault) -> Fault {
    let refused = fault.is(&[number::LOGIN_FAILED]);
    fault.error = match &config.login {
        Login::Token(_) if refused => fault.error.remedy(
            "the access token has expired, or is not for this server: give a new one, or \
             source.login_command, which prints one for every connection",
        ),
        Login::TokenCommand(_) if refused => fault.error.remedy(
            "the token that source.login_command prints is refused: it has to be one for the \
             resource https://database.windows.net/, of somebody with a user in the database",
        ),
        _ => fault.error,
    };
    fault.error = fault
        .error
        .with("server", format_args!("{}:{}", config.host, config.port))
        .with("database", &config.database);
    fault
}

async fn log_in(config: &MssqlConfig, login: AuthMethod) -> Result<Connection, Fault> {
    let (mut host, mut port) = (config.host.clone(), config.port);
    for _ in 0..=REDIRECTS_MAX {
        let socket = open(config, &host, port).await?;
        let options = options(config, &host, port, login.clone());
        match Box::pin(Client::connect(options, socket.compat_write())).await {
            Err(tiberius::error::Error::Routing { host: next, port: door }) => {
                (host, port) = (next, door);
            }
            Err(error) => return Err(unencrypted(config, error.into())),
            Ok(connection) => return Ok(connection),
        }
    }
    Err(Fault::lost("the server keeps sending the login elsewhere"))
}

/// Servers that know no strict encryption hang up on it.
fn unencrypted(config: &MssqlConfig, mut fault: Fault) -> Fault {
    if config.encryption == Encryption::Strict && fault.number.is_none() && fault.transient {
        fault.error = fault.error.remedy(
            "check that the server is there; source.encryption = \"strict\" needs SQL Server 2022 \
             or later, \"required\" works with every version",
        );
    }
    fault
}

async fn open(config: &MssqlConfig, host: &str, port: u16) -> Result<TcpStream, Fault> {
    let failed = |error: std::io::Error| {
        Fault::lost(format!("the server cannot be reached: {}", error.kind()))
    };
    let socket = if config.multi_subnet_failover {
        // One address is the listener's in the subnet that is alive; the others stay silent.
        let found = tokio::net::lookup_host((host, port)).await.map_err(failed)?;
        let tries: Vec<_> = found.map(|address| Box::pin(TcpStream::connect(address))).collect();
        if tries.is_empty() {
            return Err(Fault::lost("the server's name has no address"));
        }
        select_ok(tries).await.map_err(failed)?.0
    } else {
        TcpStream::connect((host, port)).await.map_err(failed)?
    };
    // Requests are small and answers are waited for: nothing is gained by collecting them.
    socket.set_nodelay(true).map_err(failed)?;
    Ok(socket)
}

/// The driver's options. What is set here differs from its defaults for the reason beside it.
fn options(config: &MssqlConfig, host: &str, port: u16, login: AuthMethod) -> Config {
    let mut options = Config::new();
    options.host(host);
    options.port(port);
    options.database(&config.database);
    options.authentication(login);
    options.application_name(&config.application);
    options.readonly(config.read_only_intent);
    options.packet_size(config.packet_bytes);
    // By default the driver takes whatever a server without TLS offers. Only `Off` may do that.
    options.encryption(match config.encryption {
        Encryption::Strict => EncryptionLevel::Strict,
        Encryption::Required => EncryptionLevel::Required,
        Encryption::Off => EncryptionLevel::NotSupported,
    });
    // The driver panics when both an authority and "any" are given: exactly one is.
    match &config.trust {
        Trust::System => {}
        Trust::Authority(pem) => options.trust_cert_ca_bundle(pem.clone()),
        Trust::Any => options.trust_cert(),
    }
    if let Some(name) = &config.certificate_name {
        options.hostname_in_certificate(name);
    }
    // By default an answer has 30 seconds to end, which a long read exceeds. Silence is watched
    // instead: rows may come for hours, but something has to come.
    options.command_timeout(None);
    options.handshake_timeout(Some(config.connect_timeout));
    // By default half a surrogate pair, which `nvarchar` may hold, is an error that stops the
    // table. It becomes U+FFFD.
    options.lossy_utf16_decoding(true);
    options
}

async fn credentials(config: &MssqlConfig) -> Result<AuthMethod, Fault> {
    if let Login::Password { user, password } = &config.login {
        return Ok(AuthMethod::sql_server(user, password.reveal()));
    }
    Ok(AuthMethod::aad_token(access_token(config).await?.unwrap_or_default()))
}

/// The access token of a login that has one.
pub(crate) async fn access_token(config: &MssqlConfig) -> Result<Option<String>, Fault> {
    Ok(match &config.login {
        Login::Password { .. } => None,
        Login::Token(token) => Some(token.reveal().to_owned()),
        // Each connection asks for its own: a token that was kept would expire.
        Login::TokenCommand(words) => Some(token::printed(words, config.token_timeout).await?),
    })
}
