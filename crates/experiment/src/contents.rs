//! What the file of an experiment contains, and whether it arrived.
//!
//! Real contents are bytes that depend on their offset, so that a misplaced block, or a byte, shows.
//! Phantom contents say of themselves where they come from, and take no memory.

use std::ops::Range;

use layout::Chunk;
use machine::{Memory, Payload, Source};

/// What the file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Real bytes, moved and compared.
    Real,
    /// Statements about bytes, moved and compared all the same.
    Phantom,
}

/// The source of all phantom contents.
const FILE: Source = Source(1);

impl Contents {
    /// The bytes `offset..offset + bytes` of the file.
    pub fn payload(self, offset: u64, bytes: u64) -> Payload {
        match self {
            Contents::Real => {
                let mut data = vec![0; bytes as usize];
                fill(&mut data, offset);
                Payload::from(data)
            }
            Contents::Phantom => Payload::phantom(FILE, offset, bytes),
        }
    }

    /// Memory of so many bytes, of the kind that takes such contents.
    pub fn memory(self, bytes: u64) -> Memory {
        match self {
            Contents::Real => Memory::real(vec![0; bytes as usize]),
            Contents::Phantom => Memory::phantom(bytes),
        }
    }

    /// The first of these parts of `memory` that does not hold the bytes of the file that belong there.
    pub fn first_wrong(self, memory: &Memory, mut parts: impl Iterator<Item = Chunk>) -> Option<Chunk> {
        match self {
            // In place: there are as many parts as records.
            Contents::Real => {
                let held = memory.get(0, memory.len());
                let held = held.as_contiguous().expect("real memory is one piece");
                parts.find(|part| {
                    let (begin, end) = (part.memory_offset, part.memory_offset + part.bytes);
                    !is_filled(&held[begin as usize..end as usize], part.file_offset)
                })
            }
            Contents::Phantom => parts.find(|part| {
                memory.get(part.memory_offset, part.bytes) != self.payload(part.file_offset, part.bytes)
            }),
        }
    }
}

/// Fills `data` with the file's bytes from `offset` on: each word a mix of its own offset.
fn fill(data: &mut [u8], offset: u64) {
    words(offset, data.len()).for_each(|(part, word, within)| data[part].copy_from_slice(&word[within]));
}

/// Whether `data` are the file's bytes from `offset` on.
fn is_filled(data: &[u8], offset: u64) -> bool {
    words(offset, data.len()).all(|(part, word, within)| data[part] == word[within])
}

/// The words of the file in which `bytes` from `offset` on lie: which of those bytes, the word, and where they are in it.
fn words(offset: u64, bytes: usize) -> impl Iterator<Item = (Range<usize>, [u8; 8], Range<usize>)> {
    let mut begin = 0;
    std::iter::from_fn(move || {
        let at = offset + begin as u64;
        let within = (at % 8) as usize;
        let end = bytes.min(begin + 8 - within);
        let part = begin..end;
        begin = end;
        let within = within..within + part.len();
        (!part.is_empty()).then(|| (part, mix(at / 8).to_le_bytes(), within))
    })
}

/// The finishing steps of SplitMix64 (Steele, Lea and Flood 2014): every bit depends on every bit.
pub(crate) fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_do_not_depend_on_how_they_are_cut() {
        for contents in [Contents::Real, Contents::Phantom] {
            let whole = contents.payload(3, 5000);
            assert!(whole.slice(100..120) == contents.payload(103, 20));
            let memory = contents.memory(6000);
            memory.place(10, &whole);
            let part = |memory_offset, file_offset, bytes| Chunk { file_offset, memory_offset, bytes };
            let first_wrong = |parts: &[Chunk]| contents.first_wrong(&memory, parts.iter().copied());
            let (whole, inside) = (part(10, 3, 5000), part(17, 10, 4000));
            let (late, early) = (part(17, 11, 4000), part(9, 3, 10));
            assert_eq!(first_wrong(&[whole, inside]), None);
            assert_eq!(first_wrong(&[whole, late, early]), Some(late));
            assert_eq!(first_wrong(&[early]), Some(early));
        }
    }
}
