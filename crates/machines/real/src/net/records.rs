//! Record stream: the wire format of everything after the handshake.
//!
//! A record is up to [`RECORD_BYTES_MAX`] bytes, followed by a tag. The tag depends on the number of the record among
//! all records of its sender on the TCP connection. A changed, repeated, missing or swapped record therefore fails, and
//! the connection ends. Each direction has a separate secret, so a record sent back fails, too.
//!
//! With encryption, a record is sealed by AES-256-GCM with the number as nonce. Each key seals at most
//! [`KEY_BYTES_MAX`]; then both sides derive the next key, which cannot decrypt records of an earlier key. Without
//! encryption, the tag is the XXH3 hash of the record, seeded by its number: it detects damage, but not attacks.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag as AeadTag, UnboundKey};
use twox_hash::XxHash3_128;

use super::noise::Secret;

/// Length in bytes of the longest record: small enough for a processor's cache while it is copied, sealed and sent.
pub(crate) const RECORD_BYTES_MAX: usize = 256 << 10;

pub(crate) const TAG_BYTES: usize = 16;

/// Tag that follows a record.
pub(crate) type Tag = [u8; TAG_BYTES];

/// Limit of bytes sealed by one key. With n blocks of 16 bytes under one key, an attacker distinguishes AES from a
/// random permutation with probability n^2 / 2^129: 2^-61 here (RFC 8446, section 5.5, asks for 2^-57).
const KEY_BYTES_MAX: u64 = 1 << 38;

/// Records of one direction of a TCP connection, as counted by their sender or their receiver.
pub(crate) struct RecordStream {
    form: Form,
    /// Number of the next record.
    next: u64,
}

enum Form {
    Encrypted(Box<Encryption>),
    Clear,
}

struct Encryption {
    key: LessSafeKey,
    secret: Secret,
    /// Number of bytes that `key` has sealed or opened.
    bytes: u64,
    bytes_max: u64,
}

/// Error: the record differs from the sent record.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "received data differ from the sent data: a network, a program in between or memory altered, lost or \
     repeated them"
)]
pub(crate) struct AlteredRecord;

impl RecordStream {
    pub(crate) fn encrypted(secret: Secret) -> RecordStream {
        RecordStream { form: Form::Encrypted(Box::new(Encryption::new(secret, KEY_BYTES_MAX))), next: 0 }
    }

    pub(crate) fn clear() -> RecordStream {
        RecordStream { form: Form::Clear, next: 0 }
    }

    /// Converts `record` in place to its wire format, and returns its tag.
    pub(crate) fn seal(&mut self, record: &mut [u8]) -> Tag {
        debug_assert!(record.len() <= RECORD_BYTES_MAX);
        let number = self.count();
        match &mut self.form {
            Form::Encrypted(encryption) => encryption.seal(number, record),
            Form::Clear => hash(number, record),
        }
    }

    /// Converts `record` in place from its wire format to the sent contents.
    pub(crate) fn open(&mut self, record: &mut [u8], tag: Tag) -> Result<(), AlteredRecord> {
        let number = self.count();
        match &mut self.form {
            Form::Encrypted(encryption) => encryption.open(number, record, tag),
            Form::Clear if hash(number, record) == tag => Ok(()),
            Form::Clear => Err(AlteredRecord),
        }
    }

    fn count(&mut self) -> u64 {
        // Cannot overflow: a computer does not live long enough to send 2^64 records.
        let number = self.next;
        self.next += 1;
        number
    }
}

fn hash(number: u64, record: &[u8]) -> Tag {
    XxHash3_128::oneshot_with_seed(number, record).to_le_bytes()
}

impl Encryption {
    fn new(secret: Secret, bytes_max: u64) -> Encryption {
        let key = UnboundKey::new(&AES_256_GCM, &secret).expect("a key of this length");
        Encryption { key: LessSafeKey::new(key), secret, bytes: 0, bytes_max }
    }

    fn seal(&mut self, number: u64, record: &mut [u8]) -> Tag {
        self.renew(record.len());
        let tag = self.key.seal_in_place_separate_tag(nonce(number), Aad::empty(), record);
        tag.expect("a short record").as_ref().try_into().expect("a tag of this length")
    }

    fn open(&mut self, number: u64, record: &mut [u8], tag: Tag) -> Result<(), AlteredRecord> {
        self.renew(record.len());
        let opened =
            self.key.open_in_place_separate_tag(nonce(number), Aad::empty(), AeadTag::from(tag), record, 0..);
        opened.map(drop).map_err(|_| AlteredRecord)
    }

    /// Switches to the next key if this one has reached its limit. Both sides count the same bytes, so they switch at
    /// the same record.
    fn renew(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if self.bytes > self.bytes_max {
            let next = blake3::derive_key("starfish 2026-11 next key of a connection", &self.secret);
            *self = Encryption::new(next, self.bytes_max);
        }
    }
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns both ends of a direction, in each form.
    fn ends() -> [[RecordStream; 2]; 2] {
        [[(); 2].map(|()| RecordStream::encrypted([5; 32])), [(); 2].map(|()| RecordStream::clear())]
    }

    #[test]
    fn records_arrive_unchanged_and_encrypted_ones_hide_their_contents() {
        for (form, [mut sender, mut receiver]) in ends().into_iter().enumerate() {
            for length in [0, 1, 16, 4096, RECORD_BYTES_MAX] {
                let sent: Vec<u8> = (0..length).map(|at| at as u8).collect();
                let mut record = sent.clone();
                let tag = sender.seal(&mut record);
                assert_eq!(record != sent, form == 0 && length > 0);
                assert_eq!(receiver.open(&mut record, tag), Ok(()));
                assert_eq!(record, sent);
            }
        }
    }

    #[test]
    fn a_record_is_valid_once_and_in_order() {
        for [mut sender, mut receiver] in ends() {
            let mut records = [[1; 40], [1; 40]];
            let tags = records.each_mut().map(|record| sender.seal(record));
            assert_eq!(receiver.open(&mut records[1].clone(), tags[1]), Err(AlteredRecord), "out of turn");
            let mut receiver = match receiver.form {
                Form::Encrypted(_) => RecordStream::encrypted([5; 32]),
                Form::Clear => RecordStream::clear(),
            };
            assert_eq!(receiver.open(&mut records[0].clone(), tags[0]), Ok(()));
            assert_eq!(receiver.open(&mut records[0].clone(), tags[0]), Err(AlteredRecord), "repeated");
        }
    }

    #[test]
    fn a_record_of_another_secret_is_rejected() {
        let mut record = [1; 40];
        let tag = RecordStream::encrypted([5; 32]).seal(&mut record);
        assert_eq!(RecordStream::encrypted([6; 32]).open(&mut record, tag), Err(AlteredRecord));
    }

    #[test]
    fn both_ends_change_keys_after_the_same_number_of_bytes() {
        let mut ends = [(); 2].map(|()| Encryption::new([5; 32], 100));
        for number in 0..20 {
            let mut record = [number as u8; 30];
            let [sender, receiver] = &mut ends;
            let tag = sender.seal(number, &mut record);
            assert_eq!(receiver.open(number, &mut record, tag), Ok(()));
            assert_eq!(record, [number as u8; 30]);
        }
        assert_ne!(ends[0].secret, [5; 32]);
        assert_eq!(ends[0].secret, ends[1].secret);
    }

    proptest! {
        #[test]
        fn any_changed_bit_is_detected(
            sent in proptest::collection::vec(any::<u8>(), 0..300),
            bit in any::<proptest::sample::Index>(),
        ) {
            for [mut sender, mut receiver] in ends() {
                let mut record = sent.clone();
                let mut wire = sender.seal(&mut record).to_vec();
                wire.extend_from_slice(&record);
                let bit = bit.index(8 * wire.len());
                wire[bit / 8] ^= 1 << (bit % 8);
                let (tag, record) = wire.split_at_mut(TAG_BYTES);
                prop_assert_eq!(receiver.open(record, (&*tag).try_into().expect("its length")), Err(AlteredRecord));
            }
        }
    }
}
