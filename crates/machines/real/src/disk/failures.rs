//! Converts the system's errors to errors of operations on objects.

use std::io::{self, ErrorKind};
use std::path::Path;

use machine::Error;

/// Returns the name of a directory for error messages.
pub(super) fn describe(path: &Path) -> String {
    format!("disk directory {}", path.display())
}

/// Returns true if the system refused only writing: an open for reading might succeed.
pub(super) fn refuses_writing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
}

/// Returns true if the write failed for lack of space.
pub(super) fn has_no_room(error: &io::Error) -> bool {
    // `FileTooLarge`: a limit on the length of files, of the system or of the process.
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// Converts the failure of an operation on a named subject, with the distinctions that callers need.
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
