//! What lies on the wire between two nodes.
//!
//! ```text
//! connecting node                                listening node
//!   first connection, for control:
//!   Hello  {magic, version, whom, from, to}  -->
//!                                            <--  Answer {magic, version, verdict, node, ticket}
//!   second connection, for data:
//!   Hello  {..., the ticket}                 -->
//!                                            <--  Answer {...}
//!   over both of them:
//!   frames                                   <->  frames
//!
//! frame:  | magic 3 | class 1 | header length 4 | payload length 8 | header ... | payload ... |
//! ping, pong, bye:  | magic 3 | kind 1 | zeros 12 |
//! ```
//!
//! A ping asks for a pong, and both say nothing but that somebody is there. A bye is the last frame of a connection
//! that its sender ends in order. Numbers are little-endian. Lengths are checked against their bounds before anything is
//! allocated for them. The first twelve bytes of a hello never change, so that nodes of any two versions can tell each
//! other that they differ.

use machine::{Class, Message, NodeId};

/// The version of everything below; raised with every change of it.
const VERSION: u32 = 3;

/// How both sides of a handshake begin.
const GREETING: [u8; 8] = *b"STARFISH";

/// How every frame begins, so that a reader who has lost his place notices at once.
const FRAME_MAGIC: [u8; 3] = *b"SFf";

/// What a frame says it is.
const CODES: [(Kind, u8); 6] = [
    (Kind::Message(Class::Control), b'c'),
    (Kind::Message(Class::Demand), b'd'),
    (Kind::Message(Class::Background), b'b'),
    (Kind::Ping, b'?'),
    (Kind::Pong, b'!'),
    (Kind::Bye, b'.'),
];

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Message(Class),
    /// Are you there?
    Ping,
    /// I am here.
    Pong,
    /// Nothing more comes.
    Bye,
}

/// What a frame is, and the lengths of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prelude {
    pub(crate) kind: Kind,
    pub(crate) header_bytes: usize,
    pub(crate) payload_bytes: u64,
}

impl Prelude {
    pub(crate) const BYTES: usize = 16;
    pub(crate) const PING: Prelude = Prelude { kind: Kind::Ping, header_bytes: 0, payload_bytes: 0 };
    pub(crate) const PONG: Prelude = Prelude { kind: Kind::Pong, ..Prelude::PING };
    pub(crate) const BYE: Prelude = Prelude { kind: Kind::Bye, ..Prelude::PING };

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let header_bytes = u32::try_from(self.header_bytes).expect("a header of bounded length");
        let mut bytes = [0; Self::BYTES];
        bytes[0..3].copy_from_slice(&FRAME_MAGIC);
        let code = CODES.iter().find(|(kind, _)| *kind == self.kind);
        bytes[3] = code.expect("every kind has a code").1;
        bytes[4..8].copy_from_slice(&header_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, String> {
        let kind = CODES.iter().find(|(_, code)| *code == bytes[3]).map(|(kind, _)| *kind);
        let Some(kind) = kind.filter(|_| bytes[0..3] == FRAME_MAGIC) else {
            return Err(format!("it sent {:02x?} where a frame should begin", &bytes[0..4]));
        };
        let (header_bytes, payload_bytes) = (u32_at(bytes, 4) as usize, u64_at(bytes, 8));
        let prelude = Prelude { kind, header_bytes, payload_bytes };
        let (header_max, payload_max) = (prelude.header_bytes_max(), prelude.payload_bytes_max());
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

    /// The longest header of a frame of this kind.
    pub(crate) fn header_bytes_max(self) -> usize {
        if matches!(self.kind, Kind::Message(_)) { Message::HEADER_BYTES_MAX } else { 0 }
    }

    /// The longest payload of a frame of this kind.
    pub(crate) fn payload_bytes_max(self) -> u64 {
        match self.kind {
            Kind::Message(Class::Control) => Message::CONTROL_PAYLOAD_BYTES_MAX,
            Kind::Message(Class::Demand | Class::Background) => Message::PAYLOAD_BYTES_MAX,
            Kind::Ping | Kind::Pong | Kind::Bye => 0,
        }
    }
}

/// What a connecting node says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Who is calling.
    pub(crate) from: NodeId,
    /// Whom it expects to have reached.
    pub(crate) to: Whom,
}

/// The node that a hello is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// The one of this name.
    Node(NodeId),
    /// Whoever listens there; the answer tells who that is.
    Anyone,
    /// The one that gave out this ticket: the connection is to join the one for control, and is for data.
    Ticket(u64),
}

/// What a hello says of the node it is meant for.
const TO_THE_NODE_NAMED: u32 = 0;
const TO_WHOEVER_LISTENS: u32 = 1;
const TO_WHO_GAVE_THE_TICKET: u32 = 2;

impl Hello {
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        encode_greeting(&mut bytes);
        let (whom, to) = match self.to {
            Whom::Node(node) => (TO_THE_NODE_NAMED, node.0),
            Whom::Anyone => (TO_WHOEVER_LISTENS, 0),
            Whom::Ticket(ticket) => (TO_WHO_GAVE_THE_TICKET, ticket),
        };
        bytes[12..16].copy_from_slice(&whom.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.from.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&to.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, NotUnderstood> {
        decode_greeting(bytes)?;
        let to = match u32_at(bytes, 12) {
            TO_THE_NODE_NAMED => Whom::Node(NodeId(u64_at(bytes, 24))),
            TO_WHOEVER_LISTENS => Whom::Anyone,
            TO_WHO_GAVE_THE_TICKET => Whom::Ticket(u64_at(bytes, 24)),
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
    /// To be shown by the connection for data, if this is the one for control and it is welcome.
    pub(crate) ticket: u64,
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
    NoSuchTicket,
}

impl Answer {
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        encode_greeting(&mut bytes);
        bytes[12..16].copy_from_slice(&(self.verdict as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.node.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.ticket.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, NotUnderstood> {
        decode_greeting(bytes)?;
        let code = u32_at(bytes, 12);
        let verdict = Verdict::ALL.into_iter().find(|&verdict| verdict as u32 == code);
        let verdict = verdict.ok_or(NotUnderstood::Answer(code))?;
        Ok(Answer { verdict, node: NodeId(u64_at(bytes, 16)), ticket: u64_at(bytes, 24) })
    }
}

impl Verdict {
    const ALL: [Verdict; 7] = [
        Verdict::Welcome,
        Verdict::OtherVersion,
        Verdict::OtherNode,
        Verdict::AlreadyConnected,
        Verdict::Full,
        Verdict::Closed,
        Verdict::NoSuchTicket,
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
            Verdict::NoSuchTicket => "it had given up waiting for the connection for data",
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
        for (kind, _) in CODES {
            let lengths = if matches!(kind, Kind::Message(_)) { (77, 1 << 12) } else { (0, 0) };
            let prelude = Prelude { kind, header_bytes: lengths.0, payload_bytes: lengths.1 };
            assert_eq!(Prelude::decode(&prelude.encode()), Ok(prelude));
        }
        for to in [Whom::Node(NodeId(1)), Whom::Node(NodeId(u64::MAX)), Whom::Ticket(7), Whom::Anyone] {
            let hello = Hello { from: NodeId(u64::MAX), to };
            assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }
        for verdict in Verdict::ALL {
            let answer = Answer { verdict, node: NodeId(3), ticket: 4 };
            assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
        }
    }

    #[test]
    fn too_long_is_refused_and_just_long_enough_is_not() {
        let kind = Kind::Message(Class::Demand);
        let (header_bytes, payload_bytes) = (Message::HEADER_BYTES_MAX, Message::PAYLOAD_BYTES_MAX);
        let longest = Prelude { kind, header_bytes, payload_bytes };
        assert_eq!(Prelude::decode(&longest.encode()), Ok(longest));
        let command = Prelude { kind: Kind::Message(Class::Control), ..longest };
        assert!(Prelude::decode(&command.encode()).expect_err("too long").contains("4096 allowed"));
        let ping = Prelude { kind: Kind::Ping, ..longest };
        assert!(Prelude::decode(&ping.encode()).expect_err("too long").contains("0 allowed"));
        let header = Prelude { kind, header_bytes: header_bytes + 1, payload_bytes: 0 };
        assert!(Prelude::decode(&header.encode()).expect_err("too long").contains("header of 65537 bytes"));
        let payload = Prelude { kind, header_bytes: 0, payload_bytes: u64::MAX };
        assert!(Prelude::decode(&payload.encode()).expect_err("too long").contains("payload"));
    }

    #[test]
    fn strangers_and_other_versions_are_told_apart() {
        assert_eq!(Hello::decode(b"GET / HTTP/1.1\r\nHost: example.or"), Err(NotUnderstood::NotStarfish));
        let hello = Hello { from: NodeId(1), to: Whom::Node(NodeId(2)) }.encode();
        let mut odd = hello;
        odd[12] = 7;
        assert_eq!(Hello::decode(&odd), Err(NotUnderstood::Whom(7)));
        let mut future = hello;
        future[8] = 9;
        assert_eq!(Hello::decode(&future), Err(NotUnderstood::Version(9)));
    }
}
