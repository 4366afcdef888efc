//! Why an encrypted connection cannot be made, and the setting that remedies it.

use cdc_core::{Error, ErrorKind};

/// A cause: a part of what the TLS library says, our words, and what to do.
type Cause = (&'static str, &'static str, &'static str);

/// What the TLS library says of certificates that it refuses. The first that fits is the cause.
const CAUSES: &[Cause] = &[
    (
        "UnknownIssuer",
        "the authority that signed the server's certificate is not trusted",
        "give the authority's certificate in source.tls_ca_file, or let the system trust it; a \
         certificate that the server made for itself is its own authority",
    ),
    (
        "not valid for name",
        "the server's certificate does not bear the name that it was reached by",
        "reach the server by the name in its certificate (source.host), or give that name in \
         source.tls_name",
    ),
    (
        "NotValidForName",
        "the server's certificate does not bear the name that it was reached by",
        "reach the server by the name in its certificate (source.host), or give that name in \
         source.tls_name",
    ),
    (
        "not valid yet",
        "the server's certificate is not valid yet",
        "compare the clocks of this machine and of the server, or install another certificate at \
         the server",
    ),
    (
        "expired",
        "the server's certificate has expired",
        "install a new certificate at the server; compare this machine's clock",
    ),
    (
        "Expired",
        "the server's certificate has expired",
        "install a new certificate at the server; compare this machine's clock",
    ),
    ("Revoked", "the server's certificate was revoked", "install a new certificate at the server"),
    (
        "CaUsedAsEndEntity",
        "the server shows the certificate of an authority as its own",
        "install a certificate at the server that the authority signed",
    ),
    (
        "UnsupportedCertVersion",
        "the server's certificate is of an outdated form, as those that it makes for itself",
        "install a certificate at the server, of X.509 version 3 and with the server's name",
    ),
    (
        "invalid dns name",
        "the name that the certificate has to bear is no name",
        "correct source.tls_name or source.host",
    ),
    (
        "no usable CA certificates",
        "the system trusts no authority",
        "install the system's authorities (the package ca-certificates), or give the server's in \
         source.tls_ca_file",
    ),
    (
        "could not load platform certificates",
        "the authorities that the system trusts cannot be read",
        "repair the system's authorities (the package ca-certificates), or give the server's in \
         source.tls_ca_file",
    ),
    (
        "no usable certificates",
        "the file of authorities holds no certificate",
        "give certificates in PEM in source.tls_ca_file",
    ),
    (
        "invalid certificate",
        "the file of authorities holds something that is no certificate",
        "give certificates in PEM in source.tls_ca_file",
    ),
    (
        "Server does not allow the requested encryption",
        "the server does not encrypt",
        "let the server encrypt (it needs a certificate); on the same machine source.encryption = \
         \"off\" would do without",
    ),
    (
        "corrupt message",
        "the server does not answer with TLS",
        "source.encryption = \"strict\" needs SQL Server 2022 or later; \"required\" works with \
         every version. Check source.port too",
    ),
];

/// The cause behind what the driver says, where it is one of TLS.
pub(super) fn cause(said: &str) -> Option<Error> {
    let (_, words, remedy) = CAUSES.iter().find(|(part, ..)| said.contains(part))?;
    Some(Error::new(ErrorKind::Config, *words).remedy(*remedy))
}

/// The error of a connection that TLS failed for: with its cause, or in the library's words,
/// without the advice that the driver adds for programmers.
pub(super) fn error(said: &str) -> Error {
    cause(said).unwrap_or_else(|| {
        let short = said.split(" To connect anyway").next().unwrap_or(said);
        Error::new(ErrorKind::Config, "the encrypted connection cannot be made")
            .with("tls", short)
            .remedy(
                "give the authority that signed the server's certificate (source.tls_ca_file), the \
                 name in it (source.tls_name), or for a test source.tls_trust_any = true",
            )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_names_a_setting_or_what_to_install() {
        for (part, words, remedy) in CAUSES {
            let found = error(&format!("invalid peer certificate: {part} and more"));
            assert_eq!((found.message(), found.advice()), (*words, *remedy));
            assert!(remedy.contains("source.") || remedy.contains("install"), "{remedy}");
        }
    }

    #[test]
    fn what_is_not_known_is_told_in_the_librarys_words_without_the_drivers_advice() {
        let found = error("certificate: BadSignature. To connect anyway you can: trust_cert()");
        assert_eq!(found.context("tls"), Some("certificate: BadSignature."));
        assert!(found.advice().contains("source.tls_ca_file"));
    }
}
