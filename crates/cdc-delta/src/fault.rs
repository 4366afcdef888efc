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
    .caused_by(error)
}

/// A fault of the file writer: its input was checked before, so its text is kept out.
pub(crate) fn writer(error: &parquet::errors::ParquetError, path: impl std::fmt::Display) -> Error {
    let _ = error;
    Error::bug("a data file could not be encoded").with("path", path)
}
