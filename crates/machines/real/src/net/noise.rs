//! Cryptographic part of a handshake: Noise `NNpsk0` over the cluster key.
//!
//! Each side sends one message of a fixed length. Only a node with the same key that received the same two greetings
//! can read the message. Both greetings have random bytes, so each message is valid only once. The messages prove the
//! key in both directions and keep their contents secret. They leave each side with the same two secrets: one for the
//! later frames of the caller, and one for the frames of the listener. The secrets also depend on ephemeral keys: a key
//! that leaks later does not reveal recorded traffic.
//!
//! Source: The Noise Protocol Framework, revision 34, sections 7.4 and 9.

use snow::{Builder, HandshakeState};

use super::frame::{Greeting, HandshakeAnswer, Introduction};
use crate::settings::Key;

const PROTOCOL: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";

/// Length in bytes of the contents of a message.
pub(super) const CONTENTS_BYTES: usize = Introduction::BYTES;

const _: () = assert!(CONTENTS_BYTES == HandshakeAnswer::BYTES);

/// Length in bytes of a message: an ephemeral public key, the contents, a tag.
pub(super) const MESSAGE_BYTES: usize = 32 + CONTENTS_BYTES + 16;

/// Message on the wire.
pub(super) type Sealed = [u8; MESSAGE_BYTES];

/// Answer to a caller whose message this node cannot decrypt. No public key is zero, so it differs from any other
/// answer.
pub(super) const UNREADABLE: Sealed = [0; MESSAGE_BYTES];

/// Secrets shared by both sides after a handshake.
pub(super) struct Secrets {
    /// Secret for the frames of the caller.
    pub(super) of_caller: Secret,
    /// Secret for the frames of the listener.
    pub(super) of_listener: Secret,
}

/// Key known only to the two sides of one TCP connection.
pub(crate) type Secret = [u8; 32];

/// One side of a handshake.
pub(super) struct Handshake(HandshakeState);

impl Handshake {
    /// Creates the caller's side, after the greetings of the caller and the listener.
    pub(super) fn of_caller(key: &Key, greetings: [Greeting; 2]) -> Handshake {
        Self::begin(key, greetings, |builder| builder.build_initiator())
    }

    /// Creates the listener's side, after the greetings of the caller and the listener.
    pub(super) fn of_listener(key: &Key, greetings: [Greeting; 2]) -> Handshake {
        Self::begin(key, greetings, |builder| builder.build_responder())
    }

    fn begin(
        key: &Key,
        greetings: [Greeting; 2],
        build: impl FnOnce(Builder<'_>) -> Result<HandshakeState, snow::Error>,
    ) -> Handshake {
        // The key itself identifies the cluster elsewhere; each use has a derived key.
        let shared = key.derive("starfish 2026-11 handshake");
        let prologue = greetings.map(Greeting::encode).concat();
        let builder = Builder::new(PROTOCOL.parse().expect("a protocol that snow knows"));
        let builder = builder.psk(0, &shared).and_then(|builder| builder.prologue(&prologue));
        Handshake(builder.and_then(build).expect("all that the pattern needs"))
    }

    /// Encrypts the contents into a message.
    pub(super) fn seal(&mut self, contents: &[u8; CONTENTS_BYTES]) -> Sealed {
        let mut message = [0; MESSAGE_BYTES];
        let bytes = self.0.write_message(contents, &mut message).expect("room, and this side's turn");
        debug_assert_eq!(bytes, MESSAGE_BYTES);
        message
    }

    /// Decrypts a message. Returns `None` if the key, the greetings or the bytes differ.
    pub(super) fn open(&mut self, message: &Sealed) -> Option<[u8; CONTENTS_BYTES]> {
        let mut contents = [0; CONTENTS_BYTES];
        self.0.read_message(message, &mut contents).ok().map(|_| contents)
    }

    /// Returns the secrets, after both messages.
    pub(super) fn secrets(mut self) -> Secrets {
        let (of_caller, of_listener) = self.0.dangerously_get_raw_split();
        Secrets { of_caller, of_listener }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREETING: Greeting = Greeting { encrypts: true, random: [1; Greeting::RANDOM_BYTES] };
    const OTHER: Greeting = Greeting { encrypts: true, random: [2; Greeting::RANDOM_BYTES] };

    fn key(byte: u8) -> Key {
        Key::new([byte; Key::BYTES])
    }

    #[test]
    fn both_sides_decrypt_each_other_and_share_the_secrets() {
        let mut caller = Handshake::of_caller(&key(1), [GREETING, OTHER]);
        let mut listener = Handshake::of_listener(&key(1), [GREETING, OTHER]);
        assert_eq!(listener.open(&caller.seal(&[3; CONTENTS_BYTES])), Some([3; CONTENTS_BYTES]));
        assert_eq!(caller.open(&listener.seal(&[4; CONTENTS_BYTES])), Some([4; CONTENTS_BYTES]));
        let (ours, theirs) = (caller.secrets(), listener.secrets());
        assert_eq!((ours.of_caller, ours.of_listener), (theirs.of_caller, theirs.of_listener));
        assert_ne!(ours.of_caller, ours.of_listener);
    }

    #[test]
    fn a_message_is_bound_to_one_key_and_both_greetings() {
        let clear = Greeting { encrypts: false, ..GREETING };
        let message = Handshake::of_caller(&key(1), [GREETING, OTHER]).seal(&[3; CONTENTS_BYTES]);
        for (other_key, greetings) in [
            (key(2), [GREETING, OTHER]),
            (key(1), [GREETING, GREETING]),
            (key(1), [OTHER, OTHER]),
            (key(1), [clear, OTHER]),
        ] {
            assert_eq!(Handshake::of_listener(&other_key, greetings).open(&message), None);
        }
    }

    #[test]
    fn every_changed_bit_of_a_message_is_detected() {
        let message = Handshake::of_caller(&key(1), [GREETING, OTHER]).seal(&[3; CONTENTS_BYTES]);
        for bit in 0..8 * MESSAGE_BYTES {
            let mut changed = message;
            changed[bit / 8] ^= 1 << (bit % 8);
            let opened = Handshake::of_listener(&key(1), [GREETING, OTHER]).open(&changed);
            // The last bit of an ephemeral key is not part of the number (RFC 7748, section 5), but of the transcript.
            assert_eq!(opened, None, "bit {bit}");
        }
    }
}
