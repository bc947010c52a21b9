//! Requests for locks on parts of files, and their answers.

use namespace::FileNumber;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::*;
use crate::range_locks::{LockMode, LockRange};

/// What a client wants of the lock on a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockChange {
    /// The file.
    pub number: FileNumber,
    /// Whose lock it is, of those that the client tells apart.
    pub owner: u64,
    /// The part of the file.
    pub range: LockRange,
    /// What is to be done.
    pub step: LockStep,
    /// Whether an earlier run of the I/O node has given it.
    pub claims: bool,
}

/// What is to be done with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockStep {
    /// See whether one could have it.
    Test(LockMode),
    /// Have it, in place of what the owner has of that part.
    Set(LockMode),
    /// Have none.
    Release,
}

/// An answer about locks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockAnswer {
    /// It is done, and this is the client's lease.
    Done {
        /// The lease.
        lease: u64,
    },
    /// Another owner has a lock that does not allow it.
    Held {
        /// The client's lease.
        lease: u64,
        /// That lock.
        lock: HeldLock,
    },
    /// The lease has ended, and all locks of it are lost.
    Lost,
    /// The client has as many as it may have.
    TooMany,
    /// The node was started a moment ago, and clients may have locks of its earlier run: ask again.
    NotYet,
    /// It is done, and this is the client's lease; before the lock is relied on, these are to be
    /// [fenced](Request::Fence).
    DoneAfter {
        /// The lease.
        lease: u64,
        /// Leases that have ended with exclusive locks on the file.
        ended: Vec<u64>,
    },
}

/// A lock that keeps another out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLock {
    /// Whose it is, if he is of the same client.
    pub owner: Option<u64>,
    /// On which part of the file.
    pub range: LockRange,
    /// What it lets others have.
    pub mode: LockMode,
}
