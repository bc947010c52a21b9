//! What the file of an experiment contains, and whether it arrived.
//!
//! Real contents are bytes that depend on their offset, so that a misplaced block, or a byte, shows.
//! Phantom contents say of themselves where they come from, and take no memory.

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

    /// Whether `memory` holds, at `at`, the bytes `offset..offset + bytes` of the file.
    pub fn matches(self, memory: &Memory, at: u64, offset: u64, bytes: u64) -> bool {
        let found = memory.get(at, bytes);
        match (self, found.as_contiguous()) {
            (Contents::Real, Some(found)) => {
                // Short, because most parts compared are.
                let mut words = [0; 64];
                found.chunks(words.len()).zip((offset..).step_by(words.len())).all(|(part, offset)| {
                    let expected = &mut words[..part.len()];
                    fill(expected, offset);
                    expected == part
                })
            }
            _ => found == self.payload(offset, bytes),
        }
    }
}

/// Fills `data` with the file's bytes from `offset` on: each word a mix of its own offset.
fn fill(data: &mut [u8], offset: u64) {
    let (mut at, mut rest) = (offset, data);
    while !rest.is_empty() {
        let word = mix(at / 8).to_le_bytes();
        let within = (at % 8) as usize;
        let bytes = rest.len().min(8 - within);
        rest[..bytes].copy_from_slice(&word[within..within + bytes]);
        at += bytes as u64;
        rest = &mut rest[bytes..];
    }
}

/// The finishing steps of SplitMix64 (Steele, Lea and Flood 2014): every bit depends on every bit.
fn mix(value: u64) -> u64 {
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
            assert!(contents.matches(&memory, 10, 3, 5000));
            assert!(contents.matches(&memory, 17, 10, 4000));
            assert!(!contents.matches(&memory, 17, 11, 4000));
            assert!(!contents.matches(&memory, 9, 3, 10));
        }
    }
}
