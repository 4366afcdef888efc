//! TLS: required unless it is off, and only with a certificate that is believed.

use cdc_core::{ErrorKind, port::Sink};
use cdc_postgres::{Tls, Trust};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::{
    history::orders,
    support::{block_on, config, own_server, sink},
};

/// An authority, in PEM, with a certificate for `localhost` and its key.
fn signed() -> (String, String, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["localhost".into()]).unwrap();
    let certificate = own.signed_by(&key, &issuer).unwrap();
    (issuer.pem(), certificate.pem(), key.serialize_pem())
}

#[test]
fn only_a_believed_certificate_of_the_right_name_is_talked_to() {
    let Some(mut server) = own_server(&[]) else { return };
    let (authority, certificate, key) = signed();
    let (other, ..) = signed();
    let mut config = config(&server, "encrypted");
    config.host = "localhost".into();
    let believed = || Tls::Required(Trust::Authority(authority.clone().into_bytes()));
    let attach = |config: &cdc_postgres::PostgresConfig| {
        let config = config.clone();
        block_on(async move { sink(&config).attach(&orders()).await.map(drop) })
    };
    config.tls = believed();
    let plain = attach(&config).expect_err("the server has no TLS");
    assert_eq!(plain.kind(), ErrorKind::Unavailable);
    assert!(plain.report().contains("TLS"), "{}", plain.report());

    server.place("server.crt", &certificate).unwrap();
    server.place("server.key", &key).unwrap();
    server.restart(&["ssl=on"]).unwrap();
    attach(&config).expect("encrypted");

    config.host = "127.0.0.1".into();
    assert_eq!(attach(&config).expect_err("another name").kind(), ErrorKind::Config);
    config.host = "localhost".into();
    for trust in [Trust::Authority(other.into_bytes()), Trust::System] {
        config.tls = Tls::Required(trust);
        assert_eq!(attach(&config).expect_err("unknown authority").kind(), ErrorKind::Config);
    }
    config.tls = Tls::Off;
    attach(&config).expect("not encrypted, as asked");
}
