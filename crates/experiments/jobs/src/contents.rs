//! Contents of the files of an experiment, and checks of these contents.
//!
//! Real contents are bytes that depend on their offset, so that the check detects a misplaced block or byte. Phantom
//! contents are a description of the bytes by source and offset, and take no memory.

use std::fmt;
use std::str::FromStr;

use layout::Chunk;
use machine::{Memory, Payload, Source, mix};

/// Kind of contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Real bytes, which are transferred and compared.
    Real,
    /// Descriptions of bytes, which are transferred and compared in the same way.
    Phantom,
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Contents::Real => "real",
            Contents::Phantom => "phantom",
        })
    }
}

impl FromStr for Contents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "real" => Ok(Contents::Real),
            "phantom" => Ok(Contents::Phantom),
            other => Err(format!("no contents {other:?}: expected real or phantom")),
        }
    }
}

/// Source of all phantom contents.
const FILE: Source = Source(1);

impl Contents {
    /// Returns bytes `offset..offset + bytes` of the file.
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

    /// Allocates memory of `bytes` bytes for this kind of contents.
    pub fn memory(self, bytes: u64) -> Memory {
        match self {
            Contents::Real => Memory::real(vec![0; bytes as usize]),
            Contents::Phantom => Memory::phantom(bytes),
        }
    }

    /// Returns the first of these parts of `memory` that differs from the file's contents, if any.
    pub fn first_wrong(self, memory: &Memory, mut parts: impl Iterator<Item = Chunk>) -> Option<Chunk> {
        match self {
            // Compare in place, without a copy: there may be as many parts as records.
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

/// Number of bytes of a word. Each word is a hash of its index in the file.
const WORD: usize = 8;

/// Fills `data` with the file's bytes from `offset` on.
fn fill(data: &mut [u8], offset: u64) {
    let begin = before_whole_words(offset, data.len());
    let (head, rest) = data.split_at_mut(begin);
    let number = (offset + begin as u64) / WORD as u64;
    head.copy_from_slice(&part_of_word(offset)[..begin]);
    let mut words = rest.chunks_exact_mut(WORD);
    let count = words.len() as u64;
    for (word, number) in words.by_ref().zip(number..) {
        word.copy_from_slice(&mix(number).to_le_bytes());
    }
    let tail = words.into_remainder();
    tail.copy_from_slice(&mix(number + count).to_le_bytes()[..tail.len()]);
}

/// True if `data` equals the file's bytes from `offset` on.
fn is_filled(data: &[u8], offset: u64) -> bool {
    let begin = before_whole_words(offset, data.len());
    let (head, rest) = data.split_at(begin);
    let number = (offset + begin as u64) / WORD as u64;
    let words = rest.chunks_exact(WORD);
    let (count, tail) = (words.len() as u64, words.remainder());
    head == &part_of_word(offset)[..begin]
        && words.zip(number..).all(|(word, number)| word == mix(number).to_le_bytes())
        && tail == &mix(number + count).to_le_bytes()[..tail.len()]
}

/// Returns the number of bytes, of `bytes` from `offset` on, that belong to a word that begins before `offset`.
fn before_whole_words(offset: u64, bytes: usize) -> usize {
    (offset.wrapping_neg() % WORD as u64).min(bytes as u64) as usize
}

/// Returns the bytes from `offset` to the end of its word, followed by zeros that are not part of the file.
fn part_of_word(offset: u64) -> [u8; WORD] {
    let word = mix(offset / WORD as u64) >> (offset % WORD as u64 * u64::from(u8::BITS));
    word.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_depends_only_on_its_offset() {
        let byte = |at: u64| mix(at / 8).to_le_bytes()[(at % 8) as usize];
        for offset in 0..10 {
            for bytes in 0..30 {
                let mut data = vec![0; bytes];
                fill(&mut data, offset);
                let expected: Vec<u8> = (offset..offset + bytes as u64).map(byte).collect();
                assert_eq!(data, expected, "{bytes} from {offset} on");
                assert!(is_filled(&data, offset));
                for at in 0..bytes {
                    data[at] ^= 1;
                    assert!(!is_filled(&data, offset), "{bytes} from {offset} on, wrong at {at}");
                    data[at] ^= 1;
                }
            }
        }
    }

    #[test]
    fn contents_do_not_depend_on_pieces_and_errors_are_found() {
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
