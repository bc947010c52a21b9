//! Entries in a thread's ring: events packed into slots of two words.
//!
//! ```text
//!   word 0   ticks; 0 if the entry has the time of the previous entry
//!   word 1   kind (8 bits) | slots that follow (8) | processor (16) | number (32)
//! ```
//!
//! The number identifies a state, event, counter or name. The following slots hold larger contents: a value, the number
//! of a flow, or a text (its length in the first word, then its bytes).

use trace::Amount;

/// Maximum length in bytes of an argument's text. Longer texts are truncated.
pub const TEXT_BYTES: usize = 500;

/// Maximum number of slots of an entry: those of a text of maximum length. The length of the text takes one word.
pub(crate) const SLOTS_MAX: usize = 1 + (8 + TEXT_BYTES).div_ceil(SLOT_BYTES);

const SLOT_BYTES: usize = 16;

/// Contents of a slot.
pub(crate) type Words = [u64; 2];

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EntryKind {
    Begin = 1,
    End,
    Event,
    Integer,
    Real,
    ArgumentInteger,
    ArgumentReal,
    ArgumentText,
    FlowOut,
    FlowIn,
    Switches,
}

impl EntryKind {
    const ALL: [EntryKind; 11] = [
        EntryKind::Begin,
        EntryKind::End,
        EntryKind::Event,
        EntryKind::Integer,
        EntryKind::Real,
        EntryKind::ArgumentInteger,
        EntryKind::ArgumentReal,
        EntryKind::ArgumentText,
        EntryKind::FlowOut,
        EntryKind::FlowIn,
        EntryKind::Switches,
    ];

    fn of(byte: u8) -> Self {
        Self::ALL[usize::from(byte) - 1]
    }
}

/// Returns the first slot of an entry.
#[inline]
pub(crate) fn first(ticks: u64, kind: EntryKind, following: u8, processor: u16, number: u32) -> Words {
    let head = u64::from(kind as u8) << 56
        | u64::from(following) << 48
        | u64::from(processor) << 32
        | u64::from(number);
    [ticks, head]
}

/// Returns the kind of the entry for a number, `integer` or `real`, and the word that holds the number.
#[inline]
pub(crate) fn number(number: Amount, integer: EntryKind, real: EntryKind) -> (EntryKind, u64) {
    match number {
        Amount::Integer(integer_value) => (integer, integer_value.cast_unsigned()),
        Amount::Real(real_value) => (real, real_value.to_bits()),
    }
}

/// Returns the slots of an entry with this text, and their number. The caller fills the first slot.
pub(crate) fn text(text: &[u8]) -> ([Words; SLOTS_MAX], usize) {
    let text = &text[..end_of_text(text)];
    let mut slots = [[0; 2]; SLOTS_MAX];
    slots[1][0] = text.len() as u64;
    for (index, bytes) in text.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let at = index + 1;
        slots[1 + at / 2][at % 2] = u64::from_le_bytes(word);
    }
    (slots, 1 + (8 + text.len()).div_ceil(SLOT_BYTES))
}

/// Returns the length to which a text is truncated: at most [`TEXT_BYTES`], and never within a UTF-8 character.
fn end_of_text(text: &[u8]) -> usize {
    let is_within = |byte: u8| byte & 0xc0 == 0x80;
    match text.get(TEXT_BYTES) {
        None => text.len(),
        Some(_) => {
            (TEXT_BYTES - 3..=TEXT_BYTES).rev().find(|&end| !is_within(text[end])).unwrap_or(TEXT_BYTES)
        }
    }
}

/// Entry, decoded for the writer.
#[derive(Debug, PartialEq)]
pub(crate) struct RingEntry<'a> {
    pub(crate) ticks: u64,
    pub(crate) kind: EntryKind,
    pub(crate) processor: u16,
    pub(crate) number: u32,
    following: &'a [Words],
}

impl RingEntry<'_> {
    /// Returns the first following word.
    pub(crate) fn word(&self) -> u64 {
        self.following[0][0]
    }

    /// Returns the first two following words.
    pub(crate) fn words(&self) -> Words {
        self.following[0]
    }

    /// Returns the following text, with invalid UTF-8 replaced.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> =
            self.following.iter().flatten().skip(1).flat_map(|word| word.to_le_bytes()).collect();
        String::from_utf8_lossy(&bytes[..self.word() as usize]).into_owned()
    }
}

/// Returns the entries in slots taken from a ring.
pub(crate) fn entries(mut slots: &[Words]) -> impl Iterator<Item = RingEntry<'_>> {
    std::iter::from_fn(move || {
        let (&[ticks, head], rest) = slots.split_first()?;
        let (following, rest) = rest.split_at((head >> 48) as u8 as usize);
        slots = rest;
        let kind = EntryKind::of((head >> 56) as u8);
        Some(RingEntry { ticks, kind, processor: (head >> 32) as u16, number: head as u32, following })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_decoded_unchanged() {
        let (mut words, used) = text("äbc defg hij".as_bytes());
        words[0] = first(0, EntryKind::ArgumentText, used as u8 - 1, 3, 9);
        let (kind, word) = number(Amount::Real(-1.5), EntryKind::Integer, EntryKind::Real);
        let mut slots = vec![first(7, EntryKind::Begin, 0, u16::MAX, u32::MAX)];
        slots.extend(&words[..used]);
        slots.extend([first(u64::MAX, kind, 1, 0, 5), [word, 0]]);
        let found: Vec<RingEntry<'_>> = entries(&slots).collect();
        assert_eq!(found.len(), 3);
        let RingEntry { ticks, kind, processor, number, .. } = found[0];
        assert_eq!((ticks, kind, processor, number), (7, EntryKind::Begin, u16::MAX, u32::MAX));
        assert_eq!((found[1].text(), found[1].processor, found[1].number), ("äbc defg hij".into(), 3, 9));
        assert_eq!((found[2].kind, f64::from_bits(found[2].word())), (EntryKind::Real, -1.5));
    }

    #[test]
    fn long_texts_are_cut_at_the_end_of_a_character() {
        let all = "ä".repeat(TEXT_BYTES);
        for length in 0..TEXT_BYTES + 20 {
            for begin in [0, 1] {
                let given = &all.as_bytes()[begin..begin + length];
                let (mut words, used) = text(given);
                words[0] = first(1, EntryKind::ArgumentText, used as u8 - 1, 0, 0);
                let slots = &words[..used];
                let found: Vec<String> = entries(slots).map(|entry| entry.text()).collect();
                let kept = &given[..end_of_text(given)];
                assert_eq!(found, [String::from_utf8_lossy(kept)]);
                assert!(kept.len() + 1 >= length.min(TEXT_BYTES), "{length}");
            }
        }
    }

    #[test]
    fn every_kind_is_found_by_its_number() {
        for kind in EntryKind::ALL {
            assert_eq!(EntryKind::of(kind as u8), kind);
        }
    }
}
