//! The cluster key: a secret that all nodes of a file system share, and how each proves to the other that it has it.
//!
//! A proof is a hash under the key of all that was said before in the handshake: two numbers drawn at random, one by
//! each side, so that no proof is good twice; which node calls which and for which lane; and which of the two says it,
//! so that no proof can be sent back. A proof does not reveal the key, and proves nothing of what comes after the
//! handshake.

use crate::settings::Key;

/// The side that says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Caller,
    Listener,
}

/// All that both sides of a handshake have said so far.
#[derive(Clone)]
pub(crate) struct Transcript {
    /// None without a key: then there is nothing to prove.
    said: Option<blake3::Hasher>,
}

/// A proof, as it lies on the wire. Without a key it is zeros.
pub(crate) type Proof = [u8; Key::BYTES];

impl Transcript {
    /// Nothing has been said.
    pub(crate) fn new(key: Option<&Key>) -> Self {
        Transcript { said: key.map(|key| blake3::Hasher::new_keyed(key.hash().as_bytes())) }
    }

    /// This has been said. What is said has a fixed length at each place.
    pub(crate) fn add(&mut self, said: &[u8]) {
        if let Some(hasher) = &mut self.said {
            hasher.update(said);
        }
    }

    /// The proof that the sender of the last part of it has the key.
    pub(crate) fn proof(&self, role: Role) -> Proof {
        self.hash(role).map_or([0; Key::BYTES], Into::into)
    }

    /// Whether this is the right proof by `role`.
    pub(crate) fn is_proved(&self, role: Role, proof: Proof) -> bool {
        // In constant time.
        self.hash(role).is_none_or(|hash| hash == blake3::Hash::from_bytes(proof))
    }

    fn hash(&self, role: Role) -> Option<blake3::Hash> {
        let label: &[u8] = match role {
            Role::Caller => b"starfish caller",
            Role::Listener => b"starfish listener",
        };
        self.said.as_ref().map(|said| said.clone().update(label).finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(key: u8, said: &[u8]) -> Transcript {
        let mut transcript = Transcript::new(Some(&Key::new([key; Key::BYTES])));
        transcript.add(said);
        transcript
    }

    #[test]
    fn a_proof_is_of_one_key_one_conversation_and_one_side() {
        let ours = transcript(1, b"said");
        let proof = ours.proof(Role::Caller);
        assert!(transcript(1, b"said").is_proved(Role::Caller, proof));
        assert!(!transcript(2, b"said").is_proved(Role::Caller, proof), "another key");
        assert!(!transcript(1, b"sald").is_proved(Role::Caller, proof), "another conversation");
        assert!(!ours.is_proved(Role::Listener, proof), "sent back");
        assert!(!ours.is_proved(Role::Caller, [0; Key::BYTES]), "none");
    }

    #[test]
    fn a_proof_is_the_keyed_hash_of_what_was_said_and_who_says_it() {
        let expected = blake3::keyed_hash(&[1; 32], b"saidstarfish listener");
        assert_eq!(transcript(1, b"said").proof(Role::Listener), *expected.as_bytes());
    }

    #[test]
    fn a_key_is_not_printed() {
        assert_eq!(format!("{:?}", Key::new([7; Key::BYTES])), "Key(..)");
    }
}
