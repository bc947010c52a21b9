//! What lies on the wire between two nodes.
//!
//! ```text
//! connecting node                                listening node
//!   Hello  {magic, version, whom, from, to}  -->
//!                                            <--  Answer {magic, version, verdict, node}
//!   frames                                   <->  frames
//!
//! frame:  | magic 3 | class 1 | header length 4 | payload length 8 | header ... | payload ... |
//! ```
//!
//! Numbers are little-endian. Lengths are checked against their bounds before anything is allocated for
//! them. The first twelve bytes of a hello never change, so that nodes of any two versions can tell each
//! other that they differ.

use machine::{Class, Message, NodeId};

/// The version of everything below; raised with every change of it.
const VERSION: u32 = 2;

/// How both sides of a handshake begin.
const GREETING: [u8; 8] = *b"STARFISH";

/// How every frame begins, so that a reader who has lost his place notices at once.
const FRAME_MAGIC: [u8; 3] = *b"SFf";

/// What a frame says of its class.
const CLASS_CODES: [(Class, u8); 3] =
    [(Class::Control, b'c'), (Class::Demand, b'd'), (Class::Background, b'b')];

/// The class of a frame's message, and the lengths of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prelude {
    pub(crate) class: Class,
    pub(crate) header_bytes: usize,
    pub(crate) payload_bytes: u64,
}

impl Prelude {
    pub(crate) const BYTES: usize = 16;

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let header_bytes = u32::try_from(self.header_bytes).expect("a header of bounded length");
        let mut bytes = [0; Self::BYTES];
        bytes[0..3].copy_from_slice(&FRAME_MAGIC);
        let code = CLASS_CODES.iter().find(|(class, _)| *class == self.class);
        bytes[3] = code.expect("every class has a code").1;
        bytes[4..8].copy_from_slice(&header_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, String> {
        let class = CLASS_CODES.iter().find(|(_, code)| *code == bytes[3]).map(|(class, _)| *class);
        let Some(class) = class.filter(|_| bytes[0..3] == FRAME_MAGIC) else {
            return Err(format!("it sent {:02x?} where a frame should begin", &bytes[0..4]));
        };
        let (header_bytes, payload_bytes) = (u32_at(bytes, 4) as usize, u64_at(bytes, 8));
        let prelude = Prelude { class, header_bytes, payload_bytes };
        let (header_max, payload_max) = (Message::HEADER_BYTES_MAX, prelude.payload_bytes_max());
        if header_bytes > header_max {
            return Err(format!(
                "it sent a header of {header_bytes} bytes, more than the {header_max} allowed"
            ));
        }
        if payload_bytes > payload_max {
            return Err(format!(
                "it sent a payload of {payload_bytes} bytes, more than the {payload_max} allowed"
            ));
        }
        Ok(prelude)
    }

    /// The longest payload of a message of this class.
    pub(crate) fn payload_bytes_max(self) -> u64 {
        match self.class {
            Class::Control => Message::CONTROL_PAYLOAD_BYTES_MAX,
            Class::Demand | Class::Background => Message::PAYLOAD_BYTES_MAX,
        }
    }
}

/// What a connecting node says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Who is calling.
    pub(crate) from: NodeId,
    /// Whom it expects to have reached; `None` is whoever listens there, and the answer tells who that is.
    pub(crate) to: Option<NodeId>,
}

/// What a hello says of the node it is meant for.
const TO_THE_NODE_NAMED: u32 = 0;
const TO_WHOEVER_LISTENS: u32 = 1;

impl Hello {
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        encode_greeting(&mut bytes);
        let (whom, to) = match self.to {
            Some(node) => (TO_THE_NODE_NAMED, node.0),
            None => (TO_WHOEVER_LISTENS, 0),
        };
        bytes[12..16].copy_from_slice(&whom.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.from.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&to.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, NotUnderstood> {
        decode_greeting(bytes)?;
        let to = match u32_at(bytes, 12) {
            TO_THE_NODE_NAMED => Some(NodeId(u64_at(bytes, 24))),
            TO_WHOEVER_LISTENS => None,
            whom => return Err(NotUnderstood::Whom(whom)),
        };
        Ok(Hello { from: NodeId(u64_at(bytes, 16)), to })
    }
}

/// What a listening node answers to a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    /// Who answers.
    pub(crate) node: NodeId,
}

/// Whether a connection is welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Welcome,
    OtherVersion,
    OtherNode,
    AlreadyConnected,
    Full,
    Closed,
}

impl Answer {
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        encode_greeting(&mut bytes);
        bytes[12..16].copy_from_slice(&(self.verdict as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.node.0.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, NotUnderstood> {
        decode_greeting(bytes)?;
        let code = u32_at(bytes, 12);
        let verdict = Verdict::ALL.into_iter().find(|&verdict| verdict as u32 == code);
        let verdict = verdict.ok_or(NotUnderstood::Answer(code))?;
        Ok(Answer { verdict, node: NodeId(u64_at(bytes, 16)) })
    }
}

impl Verdict {
    const ALL: [Verdict; 6] = [
        Verdict::Welcome,
        Verdict::OtherVersion,
        Verdict::OtherNode,
        Verdict::AlreadyConnected,
        Verdict::Full,
        Verdict::Closed,
    ];

    /// Why a connection is not welcome, in words for whoever made it.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Verdict::Welcome => "it welcomed this node",
            Verdict::OtherVersion => "it speaks another version of the protocol",
            Verdict::OtherNode => "another node listens there",
            Verdict::AlreadyConnected => "a node of this node's name is already connected to it",
            Verdict::Full => "it has as many connections as its limit allows",
            Verdict::Closed => "it is about to stop",
        }
    }
}

/// Why a greeting makes no sense here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotUnderstood {
    NotStarfish,
    Version(u32),
    Whom(u32),
    Answer(u32),
}

impl std::fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotUnderstood::NotStarfish => write!(f, "that is not a Starfish node"),
            NotUnderstood::Version(theirs) => {
                write!(f, "it speaks version {theirs} of the protocol, this node version {VERSION}")
            }
            NotUnderstood::Whom(code) => write!(f, "it asked in the unknown way {code} for a node"),
            NotUnderstood::Answer(code) => write!(f, "it gave the unknown answer {code}"),
        }
    }
}

fn encode_greeting(bytes: &mut [u8; 32]) {
    bytes[0..8].copy_from_slice(&GREETING);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
}

fn decode_greeting(bytes: &[u8; 32]) -> Result<(), NotUnderstood> {
    if bytes[0..8] != GREETING {
        return Err(NotUnderstood::NotStarfish);
    }
    match u32_at(bytes, 8) {
        VERSION => Ok(()),
        theirs => Err(NotUnderstood::Version(theirs)),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        for class in Class::ALL {
            let prelude = Prelude { class, header_bytes: 77, payload_bytes: 1 << 16 };
            assert_eq!(Prelude::decode(&prelude.encode()), Ok(prelude));
        }
        for to in [Some(NodeId(1)), Some(NodeId(0)), Some(NodeId(u64::MAX)), None] {
            let hello = Hello { from: NodeId(u64::MAX), to };
            assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }
        for verdict in Verdict::ALL {
            let answer = Answer { verdict, node: NodeId(3) };
            assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
        }
    }

    #[test]
    fn too_long_is_refused_and_just_long_enough_is_not() {
        let class = Class::Demand;
        let (header_bytes, payload_bytes) = (Message::HEADER_BYTES_MAX, Message::PAYLOAD_BYTES_MAX);
        let longest = Prelude { class, header_bytes, payload_bytes };
        assert_eq!(Prelude::decode(&longest.encode()), Ok(longest));
        let command = Prelude { class: Class::Control, ..longest };
        assert!(Prelude::decode(&command.encode()).expect_err("too long").contains("65536 allowed"));
        let header = Prelude { class, header_bytes: header_bytes + 1, payload_bytes: 0 };
        assert!(Prelude::decode(&header.encode()).expect_err("too long").contains("header of 65537 bytes"));
        let payload = Prelude { class, header_bytes: 0, payload_bytes: u64::MAX };
        assert!(Prelude::decode(&payload.encode()).expect_err("too long").contains("payload"));
    }

    #[test]
    fn strangers_and_other_versions_are_told_apart() {
        assert_eq!(Hello::decode(b"GET / HTTP/1.1\r\nHost: example.or"), Err(NotUnderstood::NotStarfish));
        let hello = Hello { from: NodeId(1), to: Some(NodeId(2)) }.encode();
        let mut odd = hello;
        odd[12] = 7;
        assert_eq!(Hello::decode(&odd), Err(NotUnderstood::Whom(7)));
        let mut future = hello;
        future[8] = 9;
        assert_eq!(Hello::decode(&future), Err(NotUnderstood::Version(9)));
    }
}
