//! TLS around the protocol by the second driver. It believes the certificates that OpenSSL finds
//! for the whole process, so its tests run in a process of their own that is told where to look.

use std::{env, fs, path::Path, process::Command};

use cdc_conformance::{
    Outcome,
    source::{self, SourceHarness},
};
use cdc_core::{
    Column, ErrorKind, SqlType, TableName,
    port::{KeyRange, RowRequest, TableReader},
};
use cdc_mssql::{BulkReader, Encryption, MssqlSource, Trust};
use cdc_tds::Certificate;

use crate::{
    equality,
    relay::Relay,
    rig::{OverTds, block_on, serve},
};

/// In such a process, the directory with the certificates and their keys.
const TRUSTING: &str = "CDC_WIRE_TEST_TRUSTING";

/// A server that shows the certificate of the directory.
async fn trusted(directory: &Path) -> OverTds {
    let own = Some(certificate(directory, "own"));
    let rig = OverTds::certified(Encryption::Strict, own, Trust::System).await;
    rig.read_by(BulkReader::MssqlTds)
}

fn certificate(directory: &Path, name: &str) -> Certificate {
    let read = |end| fs::read_to_string(directory.join(name).with_extension(end)).unwrap();
    Certificate { chain: read("chain"), key: read("key") }
}

#[test]
fn the_suite_passes_where_the_system_trusts_the_certificate() {
    let Some(directory) = env::var_os(TRUSTING) else {
        return alone("strict::the_suite_passes_where_the_system_trusts_the_certificate");
    };
    let directory = Path::new(&directory);
    let mut passed = 0;
    for case in source::cases() {
        match block_on(async { case.run(&trusted(directory).await).await }) {
            Ok(Outcome::Skipped(why)) => panic!("{} was skipped: {why}", case.name()),
            Ok(_) => passed += 1,
            Err(failure) => panic!("{}: {failure:?}", case.name()),
        }
    }
    assert_eq!(passed, source::cases().len());
    block_on(async { equality::compare_types(trusted(directory).await).await });
}

/// The other driver asks first: it gets a server whose certificate is right, and the bulk reader one
/// whose certificate is not.
#[test]
fn the_bulk_reader_refuses_a_certificate_of_its_own_accord() {
    let Some(directory) = env::var_os(TRUSTING) else {
        return alone("strict::the_bulk_reader_refuses_a_certificate_of_its_own_accord");
    };
    let directory = Path::new(&directory);
    let unsigned = Certificate::self_made(&["127.0.0.1"]).unwrap();
    let misnamed = certificate(directory, "other");
    for encryption in [Encryption::Required, Encryption::Strict] {
        for wrong in [&unsigned, &misnamed] {
            block_on(async {
                let right = Some(certificate(directory, "own"));
                let rig = OverTds::certified(encryption, right, Trust::System).await;
                let other =
                    serve(rig.fake.server(), cdc_tds::Encryption::Required, Some(wrong.clone()));
                let relay = Relay::between(rig.address, other.await).await;
                let table = TableName::new("dbo", "t");
                let columns = vec![Column::new("id", 1, SqlType::Int, false)];
                rig.create_table(&table, &columns, &["id"]).await.unwrap();
                let mut config = rig.read_by(BulkReader::MssqlTds).config("sa");
                config.port = relay.address.port();
                let request = RowRequest {
                    table,
                    columns,
                    key: Vec::new(),
                    range: KeyRange::default(),
                    batch_rows: 10,
                };
                let error = MssqlSource::new(config).rows(request).await.err().unwrap();
                assert_eq!(error.kind(), ErrorKind::Config, "{}", error.report());
                assert!(error.advice().contains("source.tls_ca_file"), "{}", error.advice());
                assert_eq!(relay.connections(), 2);
            });
        }
    }
}

/// Runs a test again, alone in a process that trusts certificates made for it.
fn alone(test: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut trusted = String::new();
    for (name, host) in [("own", "127.0.0.1"), ("other", "other.example")] {
        let made = Certificate::self_made(&[host]).unwrap();
        trusted.push_str(&made.chain);
        fs::write(path.join(name).with_extension("chain"), made.chain).unwrap();
        fs::write(path.join(name).with_extension("key"), made.key).unwrap();
    }
    let store = path.join("store.pem");
    fs::write(&store, trusted).unwrap();
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]);
    child.env(TRUSTING, path).env("SSL_CERT_FILE", store);
    let ran = child.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    let complaint = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && told.contains("1 passed"), "{told}\n{complaint}");
}
