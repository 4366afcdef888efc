//! Encryption over the wire: whose certificates are believed, and what is said of the others.

use std::{net::SocketAddr, sync::Arc};

use cdc_core::{Error, ErrorKind, port::PositionLog};
use cdc_fake::Zone;
use cdc_mssql::{Encryption, MssqlConfig, MssqlSource, Trust};
use cdc_tds::{Certificate, Settings};
use cdc_tsql::{Server, ServerSettings};
use rcgen::{
    BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tokio::net::TcpListener;

use crate::{
    fake_harness::Fake,
    rig::{self, PASSWORD, block_on},
};

/// An authority, and what it signs.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn signs(&self, name: &str, years: (i32, i32)) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        Certificate { chain: signed.pem(), key: key.serialize_pem() }
    }
}

const ALWAYS: (i32, i32) = (2_000, 2_500);

async fn served(certificate: Option<Certificate>, encryption: cdc_tds::Encryption) -> SocketAddr {
    let fake = Fake::new(Zone::UTC);
    fake.server().set_sa_password(PASSWORD);
    let service = Arc::new(Server::new(fake.server().clone(), ServerSettings::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = Settings { encryption, certificate, ..Settings::default() };
    tokio::spawn(cdc_tds::serve(listener, service, settings, std::future::pending()));
    address
}

async fn refused(config: MssqlConfig) -> Error {
    let error = MssqlSource::new(config).high().await.unwrap_err();
    assert!(!error.report().contains("trust_cert"), "advice for programmers: {}", error.report());
    error
}

/// A server whose certificate an authority signed, and the settings that reach it.
async fn signed(authority: &Authority, name: &str, years: (i32, i32)) -> MssqlConfig {
    let certificate = authority.signs(name, years);
    let address = served(Some(certificate), cdc_tds::Encryption::Required).await;
    let mut config = rig::config(address, "suite", "sa");
    config.host = "localhost".into();
    config.encryption = Encryption::Required;
    config.trust = Trust::Authority(authority.pem.clone().into_bytes());
    config
}

#[test]
fn a_given_authority_is_believed_in_both_kinds_of_encryption() {
    block_on(async {
        let mut config = signed(&Authority::new(), "localhost", ALWAYS).await;
        for encryption in [Encryption::Required, Encryption::Strict] {
            config.encryption = encryption;
            MssqlSource::new(config.clone()).high().await.unwrap();
        }
    });
}

#[test]
fn an_authority_that_nobody_gave_is_named_with_its_setting() {
    block_on(async {
        let mut config = signed(&Authority::new(), "localhost", ALWAYS).await;
        let other = Authority::new();
        for trust in [Trust::System, Trust::Authority(other.pem.into_bytes())] {
            for encryption in [Encryption::Required, Encryption::Strict] {
                config.trust = trust.clone();
                config.encryption = encryption;
                let error = refused(config.clone()).await;
                assert_eq!(error.kind(), ErrorKind::Config, "{}", error.report());
                assert!(error.advice().contains("source.tls_ca_file"), "{}", error.report());
                assert!(error.context("server").is_some(), "{}", error.report());
            }
        }
        // Whoever asks for it believes anybody.
        config.trust = Trust::Any;
        MssqlSource::new(config).high().await.unwrap();
    });
}

#[test]
fn a_certificate_of_another_name_is_refused_until_the_name_is_given() {
    block_on(async {
        let mut config = signed(&Authority::new(), "sql.example.com", ALWAYS).await;
        let error = refused(config.clone()).await;
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().contains("does not bear the name"), "{}", error.report());
        assert!(error.advice().contains("source.tls_name"), "{}", error.advice());
        config.certificate_name = Some("sql.example.com".into());
        MssqlSource::new(config).high().await.unwrap();
    });
}

#[test]
fn a_certificate_outside_of_its_time_is_refused_with_the_reason() {
    block_on(async {
        let authority = Authority::new();
        let error = refused(signed(&authority, "localhost", (2_000, 2_001)).await).await;
        assert!(error.message().contains("has expired"), "{}", error.report());
        assert!(error.advice().contains("clock"), "{}", error.advice());
        let error = refused(signed(&authority, "localhost", (2_400, 2_401)).await).await;
        assert!(error.message().contains("not valid yet"), "{}", error.report());
        assert_eq!(error.kind(), ErrorKind::Config);
    });
}

#[test]
fn a_server_without_encryption_is_refused_unless_none_is_wanted() {
    block_on(async {
        let address = served(None, cdc_tds::Encryption::Off).await;
        let mut config = rig::config(address, "suite", "sa");
        config.encryption = Encryption::Required;
        let error = refused(config.clone()).await;
        assert_eq!(error.kind(), ErrorKind::Config, "{}", error.report());
        assert!(error.message().contains("does not encrypt"), "{}", error.report());
        assert!(error.advice().contains("source.encryption"), "{}", error.advice());
        config.encryption = Encryption::Strict;
        config.retry.attempts_max = 1;
        let error = refused(config.clone()).await;
        assert!(error.advice().contains("\"required\""), "{}: {}", error.report(), error.advice());
        config.encryption = Encryption::Off;
        MssqlSource::new(config).high().await.unwrap();
    });
}

#[test]
fn authorities_that_are_none_are_a_setting() {
    block_on(async {
        let mut config = signed(&Authority::new(), "localhost", ALWAYS).await;
        let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        config.trust = Trust::Authority(damaged.into());
        let error = refused(config).await;
        assert_eq!(error.kind(), ErrorKind::Config, "{}", error.report());
        assert!(error.advice().contains("source.tls_ca_file"), "{}", error.advice());
    });
}
