//! SQLite's refusals as errors of operations on metadata.

use std::path::Path;

use machine::{Error, NodePart};
use rusqlite::{ErrorCode, ffi};

/// The store as error messages call it.
pub(super) fn describe(path: &Path) -> String {
    format!("metadata store {}", path.display())
}

/// Whether it is the medium that did not take what was written before.
pub(super) fn is_of_a_sync(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
}

/// A failure of the store at `path`, told apart as far as callers care.
pub(super) fn failure(path: &Path, error: &rusqlite::Error) -> Box<Error> {
    let (what, why) = (describe(path), error.to_string());
    let error = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::NoSpace { what },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Damaged { what, why },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let why = "another process has it open: stop that agent or tool".to_owned();
            Error::InUse { part: NodePart::Metadata, what, why }
        }
        Some(ErrorCode::ReadOnly) => Error::Io { what, why: "it cannot be written to".to_owned() },
        _ => Error::Io { what, why },
    };
    error.into()
}
