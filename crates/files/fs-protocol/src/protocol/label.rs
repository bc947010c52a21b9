//! What a stripe says of itself on its disk: which stripe of which file it is, and the size at which the file was
//! committed.

use std::fmt;

use layout::Striping;
use serde::{Deserialize, Serialize};

use super::encoding::{decode, encode};
use super::ids::FileId;

/// The version of the labels on stripes, which outlives that of the protocol: files stay readable.
pub const LABEL_VERSION: u8 = 2;

/// The version of labels that did not tell when a file was begun. They are read still.
const LABEL_WITHOUT_BEGINNING: u8 = 1;

/// The version of what is noted on stripes when their file is committed.
const COMMITTED_VERSION: u8 = 1;

const LABEL_MAGIC: [u8; 2] = *b"SL";
const COMMITTED_MAGIC: [u8; 2] = *b"SC";

/// The note on each stripe of a file when it is committed: all that was written to the stripe before is on the
/// medium.
///
/// A file is committed when all of its stripes have one, and as long as the least of them says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The size of the file in bytes.
    pub bytes: u64,
}

impl Committed {
    /// The note's bytes, as they lie on the disk.
    pub fn encode(&self) -> Vec<u8> {
        encode(COMMITTED_MAGIC, COMMITTED_VERSION, self)
    }

    /// Reads a note from a disk. An object that was never committed has an empty one.
    pub fn decode(bytes: &[u8]) -> Result<Option<Committed>, String> {
        if bytes.is_empty() { Ok(None) } else { decode(COMMITTED_MAGIC, COMMITTED_VERSION, bytes).map(Some) }
    }
}

/// The label of a stripe on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The file it belongs to.
    pub file: FileId,
    /// How that file is striped.
    pub striping: Striping,
    /// Which of the stripes this is.
    pub stripe: u32,
    /// When the file was begun, in nanoseconds since 1970; zero if that is not known. On what marks a disk as one of a
    /// namespace, where the numbers of that begin.
    pub begun: u64,
    /// The file of that name that it was to replace.
    pub replaces: Option<FileId>,
}

/// A label of version 1. Files that have one were never unfinished.
#[derive(Deserialize)]
struct LabelWithoutBeginning {
    file: FileId,
    striping: Striping,
    stripe: u32,
}

impl From<LabelWithoutBeginning> for Label {
    fn from(label: LabelWithoutBeginning) -> Self {
        let LabelWithoutBeginning { file, striping, stripe } = label;
        Label { file, striping, stripe, begun: 0, replaces: None }
    }
}

impl Label {
    /// Whether a stripe with this label is of the same file as one with the other.
    pub fn is_of(&self, other: Label) -> bool {
        *self == Label { stripe: self.stripe, ..other }
    }

    /// The label's bytes, as they lie on the disk.
    pub fn encode(&self) -> Vec<u8> {
        encode(LABEL_MAGIC, LABEL_VERSION, self)
    }

    /// Reads a label from a disk.
    pub fn decode(bytes: &[u8]) -> Result<Label, String> {
        let label = if bytes.get(2) == Some(&LABEL_WITHOUT_BEGINNING) {
            decode::<LabelWithoutBeginning>(LABEL_MAGIC, LABEL_WITHOUT_BEGINNING, bytes)?.into()
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
    fn a_label_that_contradicts_itself_is_refused() {
        let striping = Striping::new(8192, 4).unwrap();
        let label = Label { file: FileId(7), striping, stripe: 4, begun: 1, replaces: None };
        assert!(Label::decode(&label.encode()).unwrap_err().contains("stripe 4 of 4"));
    }

    #[test]
    fn labels_of_earlier_releases_are_read() {
        let earlier = b"SL\x01\x07\x80\x40\x04\x03";
        let striping = Striping::new(8192, 4).unwrap();
        let label = Label { file: FileId(7), striping, stripe: 3, begun: 0, replaces: None };
        assert_eq!(Label::decode(earlier), Ok(label));
        assert_eq!(Label::decode(&label.encode()), Ok(label));
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_and_nothing_worse(bytes: Vec<u8>) {
            let dressed = |magic: [u8; 2], version| [&magic[..], &[version], &bytes].concat();
            for version in [LABEL_WITHOUT_BEGINNING, LABEL_VERSION] {
                let _ = Label::decode(&dressed(LABEL_MAGIC, version));
            }
            let _ = Committed::decode(&dressed(COMMITTED_MAGIC, COMMITTED_VERSION));
        }
    }
}
