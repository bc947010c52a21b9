//! Encoding of sections and chunks, in the format that `lib.rs` describes.

use serde::Serialize;
use twox_hash::XxHash3_64;

/// Version of the format. No other version is written or read.
pub const VERSION: u16 = 1;

/// First bytes of a section.
pub(crate) const MAGIC: [u8; 8] = *b"\x89TLV\r\n\x1a\n";

/// Length in bytes of a section's header.
pub(crate) const HEAD_BYTES: usize = 16;

/// Length in bytes of the kind and length that precede the content of a chunk.
const FRONT_BYTES: usize = 5;

/// Length in bytes of a checksum.
const SUM_BYTES: usize = 4;

/// Maximum length in bytes of the content of a chunk. Writers write no longer chunk; readers treat a longer chunk as
/// damaged. The limit also bounds the bytes that a reader waits for before it detects a damaged length.
pub(crate) const CONTENT_BYTES_MAX: usize = 1 << 17;

/// Kind of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    Process = 1,
    Thread = 2,
    State = 3,
    Counter = 4,
    Name = 5,
    Records = 6,
    Dropped = 7,
    ClockOffset = 8,
}

impl ChunkKind {
    const ALL: [ChunkKind; 8] = [
        ChunkKind::Process,
        ChunkKind::Thread,
        ChunkKind::State,
        ChunkKind::Counter,
        ChunkKind::Name,
        ChunkKind::Records,
        ChunkKind::Dropped,
        ChunkKind::ClockOffset,
    ];

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Returns the header of a section.
pub(crate) fn head() -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&MAGIC);
    head[8..10].copy_from_slice(&VERSION.to_le_bytes());
    let sum = checksum(&head[..12]);
    head[12..].copy_from_slice(&sum);
    head
}

/// Returns the lower half of the hash of these bytes.
fn checksum(bytes: &[u8]) -> [u8; SUM_BYTES] {
    (XxHash3_64::oneshot(bytes) as u32).to_le_bytes()
}

/// Writes a chunk to an empty buffer.
pub(crate) fn make(buffer: &mut Vec<u8>, kind: ChunkKind, put_content: impl FnOnce(&mut Vec<u8>)) {
    buffer.push(kind as u8);
    buffer.extend([0; FRONT_BYTES - 1]);
    put_content(buffer);
    let length = buffer.len() - FRONT_BYTES;
    assert!(length <= CONTENT_BYTES_MAX, "a chunk of {length} bytes");
    buffer[1..FRONT_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    buffer.extend(checksum(buffer));
}

/// Appends a value to the content of a chunk.
pub(crate) fn put(buffer: &mut Vec<u8>, value: &impl Serialize) {
    *buffer = postcard::to_extend(value, std::mem::take(buffer)).expect("a vector has room");
}

/// Next element in the bytes of a file.
#[derive(Debug, PartialEq)]
pub(crate) enum Upcoming<'a> {
    /// Header of a section, and its version.
    Section(u16),
    /// Chunk with its kind, if known, and its content.
    Chunk(Option<ChunkKind>, &'a [u8]),
    /// More bytes are needed.
    Partial,
    /// Neither section nor chunk.
    Damaged,
}

impl Upcoming<'_> {
    /// Returns the number of bytes of the element.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Upcoming::Section(_) => HEAD_BYTES,
            Upcoming::Chunk(_, content) => FRONT_BYTES + content.len() + SUM_BYTES,
            Upcoming::Partial | Upcoming::Damaged => 0,
        }
    }
}

/// Decodes the next element.
pub(crate) fn next(bytes: &[u8]) -> Upcoming<'_> {
    if bytes.first() == Some(&MAGIC[0]) {
        return section(bytes);
    }
    let Some(front) = bytes.get(..FRONT_BYTES) else { return Upcoming::Partial };
    let length = u32::from_le_bytes(front[1..].try_into().expect("four bytes")) as usize;
    if length > CONTENT_BYTES_MAX {
        return Upcoming::Damaged;
    }
    let end = FRONT_BYTES + length;
    let Some(sum) = bytes.get(end..end + SUM_BYTES) else { return Upcoming::Partial };
    match checksum(&bytes[..end]) == sum {
        true => Upcoming::Chunk(ChunkKind::of(front[0]), &bytes[FRONT_BYTES..end]),
        false => Upcoming::Damaged,
    }
}

fn section(bytes: &[u8]) -> Upcoming<'_> {
    if !may_begin_section(bytes) {
        return Upcoming::Damaged;
    }
    let Some(head) = bytes.get(..HEAD_BYTES) else { return Upcoming::Partial };
    match checksum(&head[..12]) == head[12..] {
        true => Upcoming::Section(u16::from_le_bytes([head[8], head[9]])),
        false => Upcoming::Damaged,
    }
}

/// Returns true if these bytes are the beginning of a section, as far as they go.
pub(crate) fn may_begin_section(bytes: &[u8]) -> bool {
    let begun = bytes.len().min(MAGIC.len());
    bytes[..begun] == MAGIC[..begun]
}

/// Returns the first offset, at least 1, at which a section may begin. The reader can skip the bytes before this
/// offset.
pub(crate) fn bytes_before_section(bytes: &[u8]) -> usize {
    (1..bytes.len()).find(|at| may_begin_section(&bytes[*at..])).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(content: &[u8]) -> Vec<u8> {
        let mut buffer = Vec::new();
        make(&mut buffer, ChunkKind::Dropped, |buffer| buffer.extend(content));
        buffer
    }

    #[test]
    fn a_chunk_is_whole_partial_or_damaged() {
        let whole = chunk(b"abc");
        assert_eq!(next(&whole), Upcoming::Chunk(Some(ChunkKind::Dropped), b"abc"));
        (0..whole.len()).for_each(|length| assert_eq!(next(&whole[..length]), Upcoming::Partial));
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 4;
            // If the length became greater, the chunk appears incomplete.
            assert!(matches!(next(&changed), Upcoming::Damaged | Upcoming::Partial), "byte {at}");
        }
    }

    #[test]
    fn a_chunk_of_unknown_kind_is_valid() {
        let mut buffer = chunk(b"");
        buffer[0] = 99;
        let sum = checksum(&buffer[..5]);
        buffer[5..].copy_from_slice(&sum);
        assert_eq!(next(&buffer), Upcoming::Chunk(None, b""));
    }

    #[test]
    fn a_section_is_found_after_a_torn_chunk() {
        let head = head();
        assert_eq!(next(&head), Upcoming::Section(VERSION));
        let torn = [&chunk(b"abc")[..7], &MAGIC[..3], &head].concat();
        let first = bytes_before_section(&torn);
        assert_eq!(first, 7 + 3);
        assert_eq!(next(&torn[first..]), Upcoming::Section(VERSION));
        assert_eq!(bytes_before_section(&[1, 2, MAGIC[0], MAGIC[1]]), 2);
    }
}
