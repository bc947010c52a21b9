//! Converts SQLite errors to errors of metadata operations.

use std::path::Path;

use machine::{Error, NodePart};
use rusqlite::{ErrorCode, ffi};

/// Returns the name of the store for error messages.
pub(super) fn describe(path: &Path) -> String {
    format!("metadata store {}", path.display())
}

/// Returns true if a sync of earlier writes to the medium failed.
pub(super) fn is_of_a_sync(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
}

/// Converts a failure of the store at `path`, with the distinctions that callers need.
pub(super) fn failure(path: &Path, error: &rusqlite::Error) -> Box<Error> {
    let (what, why) = (describe(path), error.to_string());
    let error = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::NoSpace { what },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Damaged { what, why },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let why = "another process has it open: stop that agent or tool".to_owned();
            Error::InUse { part: NodePart::Metadata, what, why }
        }
        Some(ErrorCode::ReadOnly) => Error::Io { what, why: "it is read-only".to_owned() },
        _ => Error::Io { what, why },
    };
    error.into()
}
