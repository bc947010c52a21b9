//! Errors of recording.

use std::io;
use std::path::PathBuf;

/// Reason why a record was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No recording is active.
    #[error(
        "no recording is in progress: start one with TLV_Initialize (C), tlv::start (Rust) or \
         starfish.tlv.start (Python)"
    )]
    NotStarted,
    /// The active recording belongs to the process that this one was forked from.
    #[error(
        "the recording belongs to the parent process, which forked this one: start a separate recording, \
         with another file"
    )]
    Forked,
    /// The thread is not recorded.
    #[error("this thread is not recorded: call TLV_AddThread in it first")]
    NotAdded,
    /// The thread is ending and can no longer be added.
    #[error("this thread is ending, and can no longer be added")]
    Ending,
    /// The memory limit leaves no buffer for another thread. Records of threads without a buffer are counted, and the
    /// trace contains the count.
    #[error("not enough memory for another thread: use smaller buffers (TLV_BUFFER)")]
    TooManyThreads,
    /// The thread's buffer is full. The record is counted as dropped, and the trace contains the count.
    #[error("the thread's buffer is full: use a larger one (TLV_BUFFER)")]
    NoRoom,
}

/// Reason why a recording failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Recording is not possible now.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A recording is already active.
    #[error(
        "a recording is already in progress: end it first, with TLV_Finalize (C) or finish (Rust, Python)"
    )]
    AlreadyStarted,
    /// A name, colour or number is invalid.
    #[error("{what}: {why}")]
    Invalid {
        /// The argument.
        what: String,
        /// The defect of the argument.
        why: String,
    },
    /// The file cannot be created or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the error of an invalid argument.
pub(crate) fn invalid(what: impl ToString, why: impl ToString) -> Error {
    Error::Invalid { what: what.to_string(), why: why.to_string() }
}
