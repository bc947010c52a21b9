//! First block of an object's file: its format version, name and label.
//!
//! The version applies to the whole file; `layout.rs` defines the positions of the other parts.
//!
//! ```text
//! | "STARFISH" | version 4 | name length 4 | label length 4 | name | label | zeros ... | hash 32 |
//! 0            8           12              16               20                        4064     4096
//! ```
//!
//! The hash (BLAKE3) covers all bytes before it, and its first 8 bytes are the identity of the object.

use machine::{Error, Result};

use super::layout::{HEADER_BYTES, Layout};

const MAGIC: [u8; 8] = *b"STARFISH";
/// Version of files without checksums.
const WITHOUT_SUMS: u32 = 1;
const FIXED_BYTES: usize = 20;
const HASHED_BYTES: usize = HEADER_BYTES - 32;

/// Reason for which a header is unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The version is unknown to this program.
    Newer(String),
    /// The contents differ from the written ones.
    Damaged(String),
}

impl Refusal {
    /// Converts this refusal to an error of a named subject.
    pub(crate) fn of(self, what: String) -> Box<Error> {
        match self {
            Refusal::Newer(why) => Error::Io { what, why },
            Refusal::Damaged(why) => Error::Damaged { what, why },
        }
        .into()
    }
}

/// Contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Layout of the file.
    pub(crate) layout: Layout,
    pub(crate) name: String,
    pub(crate) label: Vec<u8>,
    /// Number that distinguishes the object's data from those of other objects.
    pub(crate) identity: u64,
}

impl Header {
    pub(crate) fn encode(name: &str, label: &[u8]) -> Result<Vec<u8>> {
        let room = HASHED_BYTES - FIXED_BYTES;
        if name.len() + label.len() > room {
            let why = format!("name and label together have more than {room} bytes");
            return Err(Error::Io { what: format!("creating object `{name}`"), why }.into());
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&MAGIC);
        for number in [Layout::V3.version, name.len() as u32, label.len() as u32] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(label);
        bytes.resize(HASHED_BYTES, 0);
        let hash = blake3::hash(&bytes);
        bytes.extend_from_slice(hash.as_bytes());
        Ok(bytes)
    }

    /// Decodes a header, or returns the reason why it is unusable.
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> std::result::Result<Self, Refusal> {
        let damaged = |why: &str| Refusal::Damaged(why.to_owned());
        let number = |at| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if bytes[..8] != MAGIC {
            return Err(damaged("it does not begin with the magic number of a Starfish object"));
        }
        let is_whole = blake3::hash(&bytes[..HASHED_BYTES]).as_bytes() == &bytes[HASHED_BYTES..];
        let version = number(8);
        let Some(layout) = [Layout::V2, Layout::V3].into_iter().find(|layout| layout.version == version)
        else {
            return Err(not_known(version, is_whole));
        };
        if !is_whole {
            return Err(damaged("the checksum of its header is wrong"));
        }
        let identity = identity_of(bytes);
        let (name_bytes, label_bytes) = (number(12) as usize, number(16) as usize);
        let name = bytes[FIXED_BYTES..HASHED_BYTES].get(..name_bytes);
        let label = bytes[FIXED_BYTES..HASHED_BYTES].get(name_bytes..name_bytes.saturating_add(label_bytes));
        match (name.map(|name| String::from_utf8(name.to_vec())), label) {
            (Some(Ok(name)), Some(label)) => Ok(Header { layout, name, label: label.to_vec(), identity }),
            _ => Err(damaged("its header is invalid")),
        }
    }
}

fn not_known(version: u32, is_whole: bool) -> Refusal {
    if version <= WITHOUT_SUMS {
        let remedy = "read the file with the program that wrote it, remove it, and write it again";
        return Refusal::Damaged(format!("it has version {version}, without checksums: {remedy}"));
    }
    let damaged = if is_whole { "" } else { "; if no newer version exists, its header is damaged" };
    Refusal::Newer(format!(
        "it has version {version}, and this program supports versions up to {}. Use the newer Starfish that \
         wrote it{damaged}",
        Layout::V3.version
    ))
}

/// Returns the identity of the object with this header.
pub(crate) fn identity_of(header: &[u8]) -> u64 {
    u64::from_le_bytes(header[HASHED_BYTES..HASHED_BYTES + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded() -> [u8; HEADER_BYTES] {
        Header::encode("name", b"label").expect("short").try_into().expect("one block")
    }

    #[test]
    fn an_encoded_header_is_decoded() {
        let identity = identity_of(&encoded());
        let header =
            Header { layout: Layout::V3, name: "name".to_owned(), label: b"label".to_vec(), identity };
        assert_eq!(Header::decode(&encoded()), Ok(header));
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        for at in (0..HEADER_BYTES).step_by(7) {
            let mut bytes = encoded();
            bytes[at] ^= 1 << (at % 8);
            assert!(Header::decode(&bytes).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_too_long_label_is_rejected() {
        assert!(Header::encode("", &[0; HASHED_BYTES - FIXED_BYTES]).is_ok());
        assert!(Header::encode("x", &[0; HASHED_BYTES - FIXED_BYTES]).is_err());
    }
}
