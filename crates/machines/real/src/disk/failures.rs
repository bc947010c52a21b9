//! The system's refusals as errors of operations on objects.

use std::io::{self, ErrorKind};
use std::path::Path;

use machine::Error;

/// A directory as error messages call it.
pub(super) fn describe(path: &Path) -> String {
    format!("disk directory {}", path.display())
}

/// Whether the system refused only writing: an open for reading might succeed.
pub(super) fn refuses_writing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
}

/// Whether there is no room for what was to be written.
pub(super) fn has_no_room(error: &io::Error) -> bool {
    // The last one: a limit on the length of files, of the system or of the process.
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// The failure of an operation on `what`, told apart as far as callers care.
pub(crate) fn io_error(what: &str, error: io::Error) -> Box<Error> {
    let what = what.to_owned();
    let error = match error.kind() {
        ErrorKind::NotFound => Error::NotFound { what },
        ErrorKind::AlreadyExists => Error::Exists { what },
        _ if has_no_room(&error) => Error::NoSpace { what },
        _ => Error::Io { what, why: error.to_string() },
    };
    error.into()
}
