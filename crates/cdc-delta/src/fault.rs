//! Faults of the store, the kernel and the file writer as the library's errors.

use std::error::Error as StdError;

use cdc_core::{Error, ErrorKind};
use delta_kernel::Error as KernelError;

/// The kind of a store's fault, and whether the store was reached at all.
fn store_kind(error: &object_store::Error) -> ErrorKind {
    use object_store::Error as E;
    match error {
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => ErrorKind::Unauthorized,
        E::InvalidPath { .. }
        | E::NotSupported { .. }
        | E::NotImplemented { .. }
        | E::UnknownConfigurationKey { .. } => ErrorKind::Config,
        E::NotFound { .. } => ErrorKind::InvalidData,
        other => io_kind(other).unwrap_or(ErrorKind::Unavailable),
    }
}

/// The kind of a file system's refusal below an error: a wrong path, not a passing fault.
fn io_kind(error: &(dyn StdError + 'static)) -> Option<ErrorKind> {
    use std::io::ErrorKind as Io;
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            match io.kind() {
                Io::PermissionDenied
                | Io::ReadOnlyFilesystem
                | Io::NotADirectory
                | Io::IsADirectory
                | Io::InvalidFilename => return Some(ErrorKind::Config),
                _ => {}
            }
        }
        next = error.source();
    }
    None
}

/// A store's fault at `path`.
pub(crate) fn store(error: object_store::Error, path: impl std::fmt::Display) -> Error {
    let kind = store_kind(&error);
    let made =
        Error::new(kind, "the object store refused a request").with("path", path).caused_by(error);
    match kind {
        ErrorKind::Config | ErrorKind::Unauthorized => {
            made.remedy("let the run write to the named path, or correct the setting that names it")
        }
        ErrorKind::InvalidData => {
            made.remedy("restore the named file; the table's log or another file names it")
        }
        _ => made,
    }
}

/// A kernel's fault at the table under `path`.
pub(crate) fn kernel(error: KernelError, path: impl std::fmt::Display) -> Error {
    let mut next: Option<&(dyn StdError + 'static)> = Some(&error);
    let mut kind = None;
    while let (Some(error), None) = (next, kind) {
        kind = match error.downcast_ref::<KernelError>() {
            Some(KernelError::ObjectStore(inner)) => Some(store_kind(inner)),
            Some(KernelError::IOError(inner)) => {
                Some(io_kind(inner).unwrap_or(ErrorKind::Unavailable))
            }
            Some(KernelError::Reqwest(_)) => Some(ErrorKind::Unavailable),
            Some(KernelError::Unsupported(_)) => Some(ErrorKind::Unsupported),
            _ => error.downcast_ref::<object_store::Error>().map(store_kind),
        };
        next = error.source();
    }
    Error::new(
        kind.unwrap_or(ErrorKind::InvalidData),
        "the table's log could not be read or written",
    )
    .with("path", path)
    .caused_by(plain(&error))
}

/// A kernel's fault without the backtrace that it prints below its text.
fn plain(error: &KernelError) -> String {
    error.to_string().lines().next().unwrap_or_default().trim().to_owned()
}

/// A fault of the file writer: its input was checked before, so its text is kept out.
pub(crate) fn writer(error: &parquet::errors::ParquetError, path: impl std::fmt::Display) -> Error {
    let _ = error;
    Error::bug("a data file could not be encoded").with("path", path)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn generic(kind: io::ErrorKind) -> object_store::Error {
        let source = Box::new(io::Error::new(kind, "refused"));
        object_store::Error::Generic { store: "LocalFileSystem", source }
    }

    fn named() -> (String, Box<dyn StdError + Send + Sync>) {
        ("lake/bronze".into(), "refused".into())
    }

    #[test]
    fn a_file_systems_refusal_is_a_wrong_path_and_names_it() {
        use io::ErrorKind as Io;
        for kind in [
            Io::PermissionDenied,
            Io::ReadOnlyFilesystem,
            Io::NotADirectory,
            Io::IsADirectory,
            Io::InvalidFilename,
        ] {
            for error in [
                store(generic(kind), "/lake"),
                kernel(KernelError::ObjectStore(generic(kind)), "/lake"),
                kernel(KernelError::IOError(kind.into()), "/lake"),
            ] {
                assert_eq!(error.kind(), ErrorKind::Config, "{kind}: {}", error.report());
                assert_eq!(error.context("path"), Some("/lake"));
            }
            let advice = store(generic(kind), "/lake").advice().to_owned();
            assert!(advice.contains("let the run write"), "{advice}");
        }
        for passing in [Io::StorageFull, Io::TimedOut, Io::ConnectionReset, Io::Interrupted] {
            assert_eq!(store(generic(passing), "/lake").kind(), ErrorKind::Unavailable);
            let kernel = kernel(KernelError::IOError(passing.into()), "/lake");
            assert_eq!(kernel.kind(), ErrorKind::Unavailable);
        }
    }

    #[test]
    fn every_answer_of_a_store_has_the_kind_that_is_acted_on() {
        use object_store::Error as E;
        let unknown = || ("lake".to_owned(), "S3");
        let ((path, source), (key, name)) = (named(), unknown());
        let cases = [
            (E::PermissionDenied { path, source }, ErrorKind::Unauthorized),
            (E::UnknownConfigurationKey { key, store: name }, ErrorKind::Config),
        ];
        let more = [
            (|path, source| E::Unauthenticated { path, source }, ErrorKind::Unauthorized),
            (|path, source| E::NotFound { path, source }, ErrorKind::InvalidData),
        ] as [(fn(String, Box<dyn StdError + Send + Sync>) -> E, ErrorKind); 2];
        let more = more.map(|(make, kind)| {
            let (path, source) = named();
            (make(path, source), kind)
        });
        for (error, kind) in cases.into_iter().chain(more) {
            let error = store(error, "/lake");
            assert_eq!(error.kind(), kind, "{}", error.report());
            assert!(!error.advice().is_empty());
        }
    }

    #[test]
    fn an_encoders_text_may_hold_values_and_is_left_out() {
        let error = parquet::errors::ParquetError::General("cell 4711".into());
        let report = writer(&error, "/lake").report();
        assert!(!report.contains("4711"), "{report}");
        assert!(report.contains("/lake"), "{report}");
    }
}
