//! What can go wrong.

use std::io;
use std::path::PathBuf;

/// Why something was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no recording.
    #[error(
        "nothing is being recorded: begin with TLV_Initialize (C), tlv::start (Rust) or starfish.tlv.start (Python)"
    )]
    NotStarted,
    /// There is a recording, but it is that of the process this one was forked off.
    #[error(
        "this process has been forked, and the recording is its parent's: begin one of its own, which has its own file"
    )]
    Forked,
    /// The thread is not among those recorded.
    #[error("this thread is not recorded: call TLV_AddThread in it first")]
    NotAdded,
    /// The thread is about to end and can no more be added.
    #[error("this thread is about to end, and cannot be added any more")]
    Ending,
    /// There are as many threads as there is memory for. Records of others are counted, and the count is written.
    #[error("there is no memory for another thread: smaller buffers (TLV_BUFFER) leave room for more")]
    TooManyThreads,
    /// The thread's buffer is full. This is counted, and the count is written.
    #[error("the thread's buffer is full: a larger one (TLV_BUFFER) holds longer bursts")]
    NoRoom,
}

/// Why there is no recording, or not what was to be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing can be recorded now.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// There is a recording already.
    #[error("there is a recording already: end it first, with TLV_Finalize (C) or finish (Rust, Python)")]
    AlreadyStarted,
    /// A name, colour or number that was given.
    #[error("{what}: {why}")]
    Invalid {
        /// What was given.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The file cannot be made or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// What a call gives, or why not.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Something is wrong with what was given.
pub(crate) fn invalid(what: impl ToString, why: impl ToString) -> Error {
    Error::Invalid { what: what.to_string(), why: why.to_string() }
}
