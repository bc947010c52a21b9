//! Features that I/O nodes of some releases lack. Clients query them, so that nodes of neighbouring releases work
//! together.
//!
//! A client asks each I/O node for its features ([`Request::Describe`](crate::protocol::Request::Describe)), uses only
//! these, and works around missing features. So a new request needs only a new feature, not a new
//! [version](crate::protocol::VERSION) of the protocol. A feature is removed from the list when all releases in use
//! have it.

use bitflags::bitflags;

bitflags! {
    /// Features of an I/O node. Bits that this release does not know belong to later releases, and are kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Features: u64 {
        /// A write opens or creates its stripe ([`BlockWrite::attach`](crate::protocol::BlockWrite::attach)). Without
        /// this feature a client attaches the stripe before the write, with one more round trip for a small file.
        const ATTACHING_WRITES = 1 << 0;
        /// The I/O node finds holes ([`Request::FindData`](crate::protocol::Request::FindData)). Without this
        /// feature the whole file counts as data.
        const FINDING_DATA = 1 << 1;
        /// A flush for a team reports the failures of all members
        /// ([`Flushing::Team`](crate::protocol::Flushing::Team)). Without this feature such a flush can succeed
        /// although another member's write has failed; that member's next flush fails.
        const TEAM_FLUSHES = 1 << 2;
        /// The I/O node rejects a client's write of a selection under an expired lock
        /// ([`Selectors::Locked`](crate::protocol::Selectors::Locked)). Without this feature such a write can still
        /// change the file after another client has the lock.
        const LOCKED_SELECTIONS = 1 << 3;
    }
}
