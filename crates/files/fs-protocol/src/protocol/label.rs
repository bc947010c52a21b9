//! Labels of stripes on their disks: which stripe of which file it is, and the size at which the file was
//! committed.

use std::fmt;

use layout::Striping;
use serde::{Deserialize, Serialize};

use super::encoding::{decode, encode};
use super::ids::FileId;

/// The version of stripe labels. It is separate from the version of the protocol, since files must stay
/// readable.
pub const LABEL_VERSION: u8 = 2;

/// The version of labels without the creation time of their file. They are still read.
const LABEL_WITHOUT_BEGINNING: u8 = 1;

/// The version of the commit record on stripes.
const COMMITTED_VERSION: u8 = 1;

const LABEL_MAGIC: [u8; 2] = *b"SL";
const COMMITTED_MAGIC: [u8; 2] = *b"SC";

/// The commit record on each stripe of a committed file: all earlier writes to the stripe are on stable
/// storage.
///
/// A file is committed when all of its stripes have a commit record. Its size is the smallest recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The size of the file in bytes.
    pub bytes: u64,
}

impl Committed {
    /// Returns the record's bytes, as stored on the disk.
    pub fn encode(&self) -> Vec<u8> {
        encode(COMMITTED_MAGIC, COMMITTED_VERSION, self)
    }

    /// Decodes a record from a disk. An object that was never committed has an empty record.
    pub fn decode(bytes: &[u8]) -> Result<Option<Committed>, String> {
        if bytes.is_empty() { Ok(None) } else { decode(COMMITTED_MAGIC, COMMITTED_VERSION, bytes).map(Some) }
    }
}

/// The label of a stripe on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// File of the stripe.
    pub file: FileId,
    /// Striping of that file.
    pub striping: Striping,
    /// Index of the stripe.
    pub stripe: u32,
    /// Creation time of the file in nanoseconds since 1970; 0 if unknown. In the label of the object that
    /// marks a disk as part of a namespace: the origin of that namespace's file numbers.
    pub begun: u64,
    /// The file that it replaces under its name when it is committed.
    pub replaces: Option<FileId>,
}

/// A label of version 1. Files with such labels were never unfinished.
#[derive(Deserialize)]
struct LabelV1 {
    file: FileId,
    striping: Striping,
    stripe: u32,
}

impl From<LabelV1> for Label {
    fn from(label: LabelV1) -> Self {
        let LabelV1 { file, striping, stripe } = label;
        Label { file, striping, stripe, begun: 0, replaces: None }
    }
}

impl Label {
    /// True if a stripe with this label belongs to the same file as a stripe with the other label.
    pub fn is_of(&self, other: Label) -> bool {
        *self == Label { stripe: self.stripe, ..other }
    }

    /// Returns the label's bytes, as stored on the disk.
    pub fn encode(&self) -> Vec<u8> {
        encode(LABEL_MAGIC, LABEL_VERSION, self)
    }

    /// Decodes a label from a disk.
    pub fn decode(bytes: &[u8]) -> Result<Label, String> {
        let label = if bytes.get(2) == Some(&LABEL_WITHOUT_BEGINNING) {
            decode::<LabelV1>(LABEL_MAGIC, LABEL_WITHOUT_BEGINNING, bytes)?.into()
        } else {
            decode::<Label>(LABEL_MAGIC, LABEL_VERSION, bytes)?
        };
        if label.stripe < label.striping.stripe_count() {
            Ok(label)
        } else {
            Err(format!("claims to be stripe {} of {}", label.stripe, label.striping.stripe_count()))
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Label { file, striping, stripe, .. } = self;
        let (count, block) = (striping.stripe_count(), striping.block_bytes());
        write!(f, "stripe {stripe} of {count} of file {:016x} in blocks of {block} bytes", file.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_inconsistent_label_is_rejected() {
        let striping = Striping::new(8192, 4).unwrap();
        let label = Label { file: FileId(7), striping, stripe: 4, begun: 1, replaces: None };
        assert!(Label::decode(&label.encode()).unwrap_err().contains("stripe 4 of 4"));
    }

    #[test]
    fn labels_of_earlier_releases_are_decoded() {
        let earlier = b"SL\x01\x07\x80\x40\x04\x03";
        let striping = Striping::new(8192, 4).unwrap();
        let label = Label { file: FileId(7), striping, stripe: 3, begun: 0, replaces: None };
        assert_eq!(Label::decode(earlier), Ok(label));
        assert_eq!(Label::decode(&label.encode()), Ok(label));
    }

    proptest! {
        #[test]
        fn garbage_is_decoded_without_a_panic(bytes: Vec<u8>) {
            let dressed = |magic: [u8; 2], version| [&magic[..], &[version], &bytes].concat();
            for version in [LABEL_WITHOUT_BEGINNING, LABEL_VERSION] {
                let _ = Label::decode(&dressed(LABEL_MAGIC, version));
            }
            let _ = Committed::decode(&dressed(COMMITTED_MAGIC, COMMITTED_VERSION));
        }
    }
}
