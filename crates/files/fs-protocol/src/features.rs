//! What I/O nodes of some releases can do and others cannot, so that nodes of neighbouring releases work together.
//!
//! A client asks each I/O node what it can do ([`Request::Describe`](crate::protocol::Request::Describe)), and asks for
//! nothing else; what is missing it does in another way. So a new request needs a feature here, and not another
//! [version](crate::protocol::VERSION) of the protocol. A feature that all releases in use have is removed.

use bitflags::bitflags;

bitflags! {
    /// What an I/O node can do. Bits that this release does not know are of later ones, and are kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Features: u64 {
        /// A write opens or makes its stripe ([`BlockWrite::attach`](crate::protocol::BlockWrite::attach)). Without
        /// this a client attaches the stripe first: one round trip more for a small file.
        const ATTACHING_WRITES = 1 << 0;
        /// Holes are found ([`Request::FindData`](crate::protocol::Request::FindData)). Without this a file is taken to
        /// have data up to its end.
        const FINDING_DATA = 1 << 1;
    }
}
