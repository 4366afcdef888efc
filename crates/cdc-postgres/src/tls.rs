//! TLS on rustls: which certificates are believed.

use std::sync::Arc;

use cdc_core::{Error, ErrorKind, Result};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::Trust;

/// What makes encrypted connections. The certificate is checked against the host's name.
pub(crate) fn connector(trust: &Trust) -> Result<MakeRustlsConnect> {
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::System => {
            let found = rustls_native_certs::load_native_certs();
            let (added, _) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                return Err(Error::new(ErrorKind::Config, "the system trusts no certificates")
                    .remedy("install the system's certificates, or give tls_ca_file"));
            }
        }
        Trust::Authority(pem) => {
            let wrong = || {
                Error::new(ErrorKind::Config, "the authorities are no certificates in PEM")
                    .with("setting", "tls_ca_file")
            };
            let mut found = 0;
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|_| wrong())?;
                roots.add(certificate).map_err(|error| wrong().caused_by(error))?;
                found += 1;
            }
            if found == 0 {
                return Err(wrong());
            }
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::bug("no version of TLS can be spoken").caused_by(error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_refused_by_its_setting() {
        for pem in
            [&b""[..], b"no PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
        {
            let error = connector(&Trust::Authority(pem.to_vec())).err().expect("refused");
            assert_eq!(error.kind(), ErrorKind::Config);
            assert_eq!(error.context("setting"), Some("tls_ca_file"));
        }
    }
}
