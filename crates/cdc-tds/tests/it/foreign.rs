//! A client that nobody here wrote.

use cdc_tds::{Encryption, Settings};
use tiberius::{AuthMethod, Client, Config, EncryptionLevel, numeric::Numeric};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

use crate::stub::{Server, every_type};

async fn connect(
    server: &Server,
    password: &str,
    encryption: EncryptionLevel,
) -> tiberius::Result<Client<Compat<TcpStream>>> {
    let mut config = Config::new();
    config.host("localhost");
    config.database("shop");
    config.authentication(AuthMethod::sql_server("sa", password));
    config.encryption(encryption);
    config.trust_cert();
    let socket = TcpStream::connect(server.address).await.unwrap();
    Box::pin(Client::connect(config, socket.compat_write())).await
}

#[tokio::test]
async fn it_logs_in_with_every_extent_of_tls() {
    for (offered, wanted) in [
        (Encryption::Off, EncryptionLevel::NotSupported),
        (Encryption::Offered, EncryptionLevel::NotSupported),
        (Encryption::Offered, EncryptionLevel::Off),
        (Encryption::Offered, EncryptionLevel::On),
        (Encryption::Offered, EncryptionLevel::Required),
        (Encryption::Required, EncryptionLevel::Off),
        (Encryption::Required, EncryptionLevel::Required),
    ] {
        let settings = Settings { encryption: offered, ..Settings::default() };
        let server = Server::start(settings).await;
        let mut client = connect(&server, "P\u{e4}ss1!", wanted).await.unwrap();
        let rows = client.simple_query("rows 2000").await.unwrap();
        assert_eq!(rows.into_first_result().await.unwrap().len(), 2000, "{offered:?} {wanted:?}");
    }
}

#[tokio::test]
async fn it_is_told_that_a_password_is_wrong_by_number() {
    let server = Server::start(Settings::default()).await;
    match connect(&server, "wrong", EncryptionLevel::On).await {
        Err(tiberius::error::Error::Server(error)) => {
            assert_eq!((error.code(), error.class()), (18_456, 14));
        }
        other => panic!("{:?}", other.map(|_| "logged in")),
    }
}

#[tokio::test]
async fn it_reads_a_value_of_every_type() {
    let server = Server::start(Settings::default()).await;
    let mut client = connect(&server, "P\u{e4}ss1!", EncryptionLevel::On).await.unwrap();
    let row = client.simple_query("types").await.unwrap().into_row().await.unwrap().unwrap();
    assert_eq!(row.len(), every_type().len());
    assert_eq!(row.get("bit"), Some(true));
    assert_eq!(row.get("tinyint"), Some(255_u8));
    assert_eq!(row.get("smallint"), Some(-32_768_i16));
    assert_eq!(row.get("int"), Some(i32::MIN));
    assert_eq!(row.get("bigint"), Some(i64::MIN));
    assert_eq!(row.get("real"), Some(1.5_f32));
    assert_eq!(row.get("float"), Some(-1.0e300_f64));
    assert_eq!(row.get("dec"), Some(Numeric::new_with_scale(-(10_i128.pow(38) - 1), 38)));
    for (name, text) in [
        ("char", "\u{e4}b  "),
        ("varchar", "\u{3b1}\u{3b2}"),
        ("utf8", "\u{1F600}\u{3b1}"),
        ("nchar", "\u{1F600} "),
        ("nvarchar", ""),
        ("varcharmax", "max"),
        ("text", "old"),
        ("ntext", "\u{3b1}"),
    ] {
        assert_eq!(row.get(name), Some(text), "{name}");
    }
    assert_eq!(row.get::<&str, _>("nvarcharmax").map(str::len), Some(35_000));
    assert_eq!(row.get("varbinarymax"), Some(&[7_u8; 70_000][..]));
    assert_eq!(row.get("image"), Some(&[1_u8, 2][..]));
    assert_eq!(row.get("binary"), Some(&[1_u8, 2, 3][..]));
    assert_eq!(row.get::<i32, _>("null"), None);
    let uuid = row.get::<tiberius::Uuid, _>("uuid").unwrap();
    assert_eq!(uuid.to_string(), "01020304-0506-0708-090a-0b0c0d0e0f10");
    assert_eq!(row.get::<&tiberius::xml::XmlData, _>("xml").unwrap().to_string(), "<a/>");
}

#[tokio::test]
async fn its_parameters_come_back_as_they_were() {
    let server = Server::start(Settings::default()).await;
    let mut client = connect(&server, "P\u{e4}ss1!", EncryptionLevel::On).await.unwrap();
    let long = "\u{3b1}".repeat(9_000);
    let number = Numeric::new_with_scale(-12_345, 3);
    let none: Option<i32> = None;
    let (text, bytes) = (long.as_str(), &[1_u8, 2][..]);
    let stream = client.query("echo", &[&1_i32, &text, &number, &none, &bytes, &1.5_f64]).await;
    let row = stream.unwrap().into_row().await.unwrap().unwrap();
    assert_eq!(row.get(0), Some(1_i32));
    assert_eq!(row.get(1), Some(long.as_str()));
    assert_eq!(row.get(2), Some(number));
    assert_eq!(row.get::<i32, _>(3), None);
    assert_eq!(row.get(4), Some(&[1_u8, 2][..]));
    assert_eq!(row.get(5), Some(1.5_f64));
}

#[tokio::test]
async fn it_sees_two_results_and_goes_on_after_an_error() {
    let server = Server::start(Settings::default()).await;
    let mut client = connect(&server, "P\u{e4}ss1!", EncryptionLevel::On).await.unwrap();
    let results = client.simple_query("two").await.unwrap().into_results().await.unwrap();
    assert_eq!(results.len(), 2);
    let failed = async {
        client.simple_query("fail").await?.into_results().await?;
        Ok::<_, tiberius::error::Error>(())
    };
    assert_eq!(failed.await.unwrap_err().code(), Some(208));
    let results = client.simple_query("version").await.unwrap().into_results().await.unwrap();
    assert_eq!(results.len(), 1);
}
