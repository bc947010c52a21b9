//! The encoding of messages and labels: two letters, a version, and the rest in postcard's encoding.

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

/// Initial capacity in bytes. Headers of block requests, their answers, and single Memputs and Memgets fit,
/// so they need one allocation.
const SHORT_BYTES: usize = 48;

pub(super) fn encode<T: Serialize>(magic: [u8; 2], version: u8, value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SHORT_BYTES);
    bytes.extend([magic[0], magic[1], version]);
    postcard::serialize_with_flavor(value, Bytes(bytes)).expect("a vector takes any encoding")
}

/// Collects an encoding byte by byte: numbers take a few bytes each, for which a call to copy them would be
/// slower.
struct Bytes(Vec<u8>);

impl Flavor for Bytes {
    type Output = Vec<u8>;

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

pub(super) fn decode<T: for<'a> Deserialize<'a>>(
    magic: [u8; 2],
    version: u8,
    bytes: &[u8],
) -> Result<T, String> {
    let Some(rest) = bytes.strip_prefix(&magic) else {
        return Err(format!("not a Starfish message: it does not begin with \"{}\"", magic.escape_ascii()));
    };
    let Some((&found, body)) = rest.split_first() else {
        return Err("truncated before its version".into());
    };
    if found != version {
        return Err(format!("version {found}, but this program supports version {version}"));
    }
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(format!("it is {} bytes too long", rest.len())),
        Err(error) => Err(format!("garbled: {error}")),
    }
}
