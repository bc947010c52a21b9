//! Requests for locks on ranges of files, and their answers.

use namespace::FileNumber;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::*;
use crate::range_locks::{LockMode, LockRange};

/// A change, or test, of a client's lock on a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockChange {
    /// The file.
    pub number: FileNumber,
    /// Owner of the lock, among the lock owners that the client distinguishes.
    pub owner: u64,
    /// The range of the file.
    pub range: LockRange,
    /// The operation on the lock.
    pub step: LockStep,
    /// True to reclaim a lock that an earlier incarnation of the I/O node granted.
    pub claims: bool,
}

/// Operation on a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockStep {
    /// Tests if the lock is available.
    Test(LockMode),
    /// Acquires the lock. The lock replaces the owner's locks on this range.
    Set(LockMode),
    /// Releases the owner's locks on this range.
    Release,
}

/// An answer about locks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockAnswer {
    /// The operation was performed.
    Done {
        /// The client's lease.
        lease: u64,
    },
    /// The operation was refused because of another owner's lock.
    Held {
        /// The client's lease.
        lease: u64,
        /// The conflicting lock.
        lock: HeldLock,
    },
    /// The lease has ended, and all locks under it are lost.
    Lost,
    /// The client has the maximum number of locks.
    TooMany,
    /// The node was started a moment ago, and clients may hold locks from its earlier incarnation: retry later.
    NotYet,
    /// The operation was performed, but the client must [fence](Request::Fence) the leases `ended` before it uses the
    /// lock.
    DoneAfter {
        /// The client's lease.
        lease: u64,
        /// Ended leases that had exclusive locks on the file.
        ended: Vec<u64>,
    },
}

/// A lock that conflicts with a requested lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLock {
    /// Owner of the lock, if the owner belongs to the same client.
    pub owner: Option<u64>,
    /// Locked range of the file.
    pub range: LockRange,
    /// Mode of the lock.
    pub mode: LockMode,
}
