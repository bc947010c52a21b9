//! A write of part of a block, with fields that only some writes have.
//!
//! A byte of flags says which optional fields follow:
//!
//! ```text
//! file  stripe  offset  flags  [fetch]  [lease]  [attach]
//! ```
//!
//! So optional fields do not lengthen the usual write. The simulated machine counts each byte of it.

use std::fmt;

use bitflags::bitflags;
use layout::Striping;
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ids::{FileId, MemoryId};

/// Part of one block to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockWrite {
    /// The file.
    pub file: FileId,
    /// The stripe.
    pub stripe: u32,
    /// Offset in bytes within the stripe; the data do not cross the end of a block.
    pub offset: u64,
    /// Source from which to fetch the data with Memget, if they are not the payload.
    pub fetch: Option<Fetch>,
    /// State of the data at which the write is answered.
    pub until: WrittenUntil,
    /// Lease of the locks under which the data were written. The write is refused if that lease is
    /// [fenced](super::Request::Fence).
    pub lease: Option<u64>,
    /// Stripe to be opened, or created, before the write if it is not known to be open. Only for an I/O node
    /// with [`ATTACHING_WRITES`](crate::Features::ATTACHING_WRITES).
    pub attach: Option<StripeHome>,
}

impl BlockWrite {
    /// Returns a write to an open stripe whose data come with the request; answered when they are accepted.
    pub fn new(file: FileId, stripe: u32, offset: u64) -> Self {
        let (fetch, until, lease, attach) = (None, WrittenUntil::Accepted, None, None);
        BlockWrite { file, stripe, offset, fetch, until, lease, attach }
    }
}

/// State of the data when a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenUntil {
    /// The I/O node has accepted the data.
    Accepted,
    /// The disk has reported that it has the data; see `File::write_through` in the client.
    AtDisk,
}

/// Disk of a stripe, and striping of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StripeHome {
    /// Striping of the file.
    pub striping: Striping,
    /// Identity of the stripe's disk.
    pub disk: u64,
}

/// Data in a compute node's memory that an I/O node must fetch with Memget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetch {
    /// The memory.
    pub memory: MemoryId,
    /// Offset in bytes within the memory.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u32,
}

bitflags! {
    /// Optional fields and properties of a write.
    #[derive(Clone, Copy)]
    struct Flags: u8 {
        const FETCH = 1 << 0;
        const AT_DISK = 1 << 1;
        const LEASE = 1 << 2;
        const ATTACH = 1 << 3;
    }
}

/// Limit of elements of an encoding: the fixed fields with the flags, and the optional fields.
const ELEMENTS_MAX: usize = 4;

impl Serialize for BlockWrite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let BlockWrite { file, stripe, offset, fetch, until, lease, attach } = self;
        let mut flags = Flags::empty();
        flags.set(Flags::FETCH, fetch.is_some());
        flags.set(Flags::AT_DISK, *until == WrittenUntil::AtDisk);
        flags.set(Flags::LEASE, lease.is_some());
        flags.set(Flags::ATTACH, attach.is_some());
        let mut elements = serializer.serialize_tuple(ELEMENTS_MAX)?;
        elements.serialize_element(&(file, stripe, offset, flags.bits()))?;
        fetch.iter().try_for_each(|fetch| elements.serialize_element(fetch))?;
        lease.iter().try_for_each(|lease| elements.serialize_element(lease))?;
        attach.iter().try_for_each(|home| elements.serialize_element(home))?;
        elements.end()
    }
}

impl<'de> Deserialize<'de> for BlockWrite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple(ELEMENTS_MAX, Elements)
    }
}

/// Reads the fixed fields, then the optional ones that the flags announce.
struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = BlockWrite;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a write of part of a block")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<BlockWrite, A::Error> {
        let (file, stripe, offset, flags) = next(&mut elements)?;
        let flags = Flags::from_bits(flags).ok_or_else(|| A::Error::custom("an unknown flag"))?;
        let until =
            if flags.contains(Flags::AT_DISK) { WrittenUntil::AtDisk } else { WrittenUntil::Accepted };
        let fetch = flags.contains(Flags::FETCH).then(|| next(&mut elements)).transpose()?;
        let lease = flags.contains(Flags::LEASE).then(|| next(&mut elements)).transpose()?;
        let attach = flags.contains(Flags::ATTACH).then(|| next(&mut elements)).transpose()?;
        Ok(BlockWrite { file, stripe, offset, fetch, until, lease, attach })
    }
}

fn next<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(elements: &mut A) -> Result<T, A::Error> {
    elements.next_element()?.ok_or_else(|| A::Error::custom("it ends too early"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(write: &BlockWrite) -> Vec<u8> {
        postcard::to_extend(write, Vec::new()).expect("a vector takes any encoding")
    }

    #[test]
    fn an_ordinary_write_encodes_no_optional_fields() {
        assert_eq!(encoded(&BlockWrite::new(FileId(1), 2, 3)), [1, 2, 3, 0]);
        let unknown = postcard::from_bytes::<BlockWrite>(&[1, 2, 3, 16]);
        assert!(unknown.is_err() && postcard::from_bytes::<BlockWrite>(&[1, 2, 3, 4]).is_err());
    }

    proptest! {
        #[test]
        fn every_encoded_write_is_decoded(
            (file, stripe, offset) in any::<(u64, u32, u64)>(),
            bytes: Option<u32>,
            lease: Option<u64>,
            disk: Option<u64>,
            at_disk: bool,
        ) {
            let memory = MemoryId::Request(offset);
            let striping = Striping::new(4096, 3).expect("a striping");
            let write = BlockWrite {
                fetch: bytes.map(|bytes| Fetch { memory, offset, bytes }),
                until: if at_disk { WrittenUntil::AtDisk } else { WrittenUntil::Accepted },
                lease,
                attach: disk.map(|disk| StripeHome { striping, disk }),
                ..BlockWrite::new(FileId(file), stripe, offset)
            };
            prop_assert_eq!(postcard::from_bytes::<BlockWrite>(&encoded(&write)), Ok(write));
        }
    }
}
