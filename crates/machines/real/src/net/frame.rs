//! Wire format of the messages between two nodes.
//!
//! ```text
//! connecting node                                           listening node
//!   first connection, for control:
//!   Greeting {magic, version, encrypts, 32 random bytes}  -->
//!                                                        <--  Greeting {...}
//!   Noise message: Introduction {whom, from, to}         -->
//!                                                        <--  Noise message: Answer {verdict, node, ticket}
//!   second connection, for data:
//!   Greeting                                             -->
//!                                                        <--  Greeting
//!   Noise message: Introduction {..., the ticket}        -->
//!                                                        <--  Noise message: Answer
//!   over both of them:
//!   frames, in records                                   <->  frames, in records
//!
//! frame:    | prelude | header ..., checksums of the payload 8 ... | payload ... |
//! prelude:  | magic 3 | class 1 | header length 4 | payload length 4 | length of the first unit of its checksums 4 |
//!           | magic 3 | ping, pong or bye 1 | zeros 12 |
//! ```
//!
//! A ping requests a pong; both only show that their sender is alive. A bye is the last frame of a connection that its
//! sender shuts down cleanly. Numbers are little-endian. Lengths are checked against their limits before memory is
//! allocated for them. The first twelve bytes of a greeting never change, so that nodes of different versions can
//! detect the difference. `noise.rs` defines the messages that prove the key and protect introduction and answer.
//! `records.rs` defines the form in which the parts of frames are sent; the parts are decoded after both have been
//! checked.

use machine::{CHECKSUM_UNIT_BYTES, Checksums, Class, Message, NodeId};

/// Version of everything below; incremented with every change.
pub(super) const VERSION: u32 = 5;

/// First bytes of both sides of a handshake.
const GREETING: [u8; 8] = *b"STARFISH";

/// First bytes of every frame, so that a reader that is out of step notices at once.
const FRAME_MAGIC: [u8; 3] = *b"SFf";

/// Codes of the kinds of frames.
const CODES: [(Kind, u8); 6] = [
    (Kind::Message(Class::Control), b'c'),
    (Kind::Message(Class::Demand), b'd'),
    (Kind::Message(Class::Background), b'b'),
    (Kind::Ping, b'?'),
    (Kind::Pong, b'!'),
    (Kind::Bye, b'.'),
];

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Message(Class),
    /// Requests a pong.
    Ping,
    /// Answers a ping.
    Pong,
    /// Announces that no frame follows.
    Bye,
}

/// Kind of a frame, and the lengths of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prelude {
    pub(crate) kind: Kind,
    pub(crate) header_bytes: usize,
    pub(crate) payload_bytes: u64,
    /// Length in bytes of the first unit of the payload's checksums if it is a short one, or 0.
    pub(crate) lead: usize,
}

impl Prelude {
    pub(crate) const BYTES: usize = 16;
    pub(crate) const PING: Prelude = Prelude { kind: Kind::Ping, header_bytes: 0, payload_bytes: 0, lead: 0 };
    pub(crate) const PONG: Prelude = Prelude { kind: Kind::Pong, ..Prelude::PING };
    pub(crate) const BYE: Prelude = Prelude { kind: Kind::Bye, ..Prelude::PING };

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let header_bytes = u32::try_from(self.header_bytes).expect("a header of bounded length");
        let mut bytes = [0; Self::BYTES];
        bytes[0..3].copy_from_slice(&FRAME_MAGIC);
        let code = CODES.iter().find(|(kind, _)| *kind == self.kind);
        bytes[3] = code.expect("every kind has a code").1;
        bytes[4..8].copy_from_slice(&header_bytes.to_le_bytes());
        let payload_bytes = u32::try_from(self.payload_bytes).expect("a payload of bounded length");
        bytes[8..12].copy_from_slice(&payload_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.lead as u32).to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, String> {
        let kind = CODES.iter().find(|(_, code)| *code == bytes[3]).map(|(kind, _)| *kind);
        let Some(kind) = kind.filter(|_| bytes[0..3] == FRAME_MAGIC) else {
            return Err(format!("it sent {:02x?} instead of the start of a frame", &bytes[0..4]));
        };
        let (header_bytes, payload_bytes) = (u32_at(bytes, 4) as usize, u32_at(bytes, 8).into());
        let lead = u32_at(bytes, 12) as usize;
        let prelude = Prelude { kind, header_bytes, payload_bytes, lead };
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
        if lead as u64 >= CHECKSUM_UNIT_BYTES.min(payload_bytes.max(1)) {
            return Err(format!(
                "it sent checksums of {payload_bytes} bytes whose first unit has {lead} bytes"
            ));
        }
        Ok(prelude)
    }

    /// Returns the length in bytes of the checksums of the payload.
    pub(crate) fn checksum_bytes(self) -> usize {
        8 * Checksums::count(self.lead, self.payload_bytes) as usize
    }

    /// Returns the limit in bytes of the header of a frame of this kind.
    pub(crate) fn header_bytes_max(self) -> usize {
        if matches!(self.kind, Kind::Message(_)) { Message::HEADER_BYTES_MAX } else { 0 }
    }

    /// Returns the limit in bytes of the payload of a frame of this kind.
    pub(crate) fn payload_bytes_max(self) -> u64 {
        match self.kind {
            Kind::Message(Class::Control) => Message::CONTROL_PAYLOAD_BYTES_MAX,
            Kind::Message(Class::Demand | Class::Background) => Message::PAYLOAD_BYTES_MAX,
            Kind::Ping | Kind::Pong | Kind::Bye => 0,
        }
    }
}

/// First message of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    /// True if this side encrypts its connections.
    pub(crate) encrypts: bool,
    /// Random bytes drawn for this handshake.
    pub(crate) random: [u8; Greeting::RANDOM_BYTES],
}

impl Greeting {
    pub(crate) const BYTES: usize = 48;

    /// Length of the part that is the same in every version.
    pub(crate) const FIRST_BYTES: usize = 12;

    pub(crate) const RANDOM_BYTES: usize = 32;

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..8].copy_from_slice(&GREETING);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&u32::from(self.encrypts).to_le_bytes());
        bytes[16..48].copy_from_slice(&self.random);
        bytes
    }

    /// Checks that the peer speaks this protocol in this version.
    pub(crate) fn check_first(first: &[u8; Self::FIRST_BYTES]) -> Result<(), NotUnderstood> {
        if first[0..8] != GREETING {
            return Err(NotUnderstood::NotStarfish);
        }
        match u32_at(first, 8) {
            VERSION => Ok(()),
            theirs => Err(NotUnderstood::Version(theirs)),
        }
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, NotUnderstood> {
        Self::check_first(bytes.first_chunk().expect("more than that"))?;
        let encrypts = match u32_at(bytes, 12) {
            0 => false,
            1 => true,
            code => return Err(NotUnderstood::Encryption(code)),
        };
        Ok(Greeting { encrypts, random: *bytes.last_chunk().expect("more than that") })
    }
}

/// Names of the calling node and of the node it wants to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Introduction {
    /// Calling node.
    pub(crate) from: NodeId,
    /// Node that the caller wants to reach.
    pub(crate) to: IntendedReceiver,
}

/// Intended receiver of an introduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntendedReceiver {
    /// Node of this name.
    Node(NodeId),
    /// Any node that listens at the address; the answer contains its name.
    Anyone,
    /// Node that issued this ticket: the connection is for data, and joins the connection for control.
    Ticket(Ticket),
}

/// Random secret shown by a connection for data, so that it joins the right connection for control. No other node knows
/// it.
pub(crate) type Ticket = [u8; 16];

/// Codes for the intended receiver of an introduction.
const TO_THE_NODE_NAMED: u32 = 0;
const TO_WHOEVER_LISTENS: u32 = 1;
const TO_WHO_GAVE_THE_TICKET: u32 = 2;

impl Introduction {
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let whom = match self.to {
            IntendedReceiver::Node(node) => {
                bytes[16..24].copy_from_slice(&node.0.to_le_bytes());
                TO_THE_NODE_NAMED
            }
            IntendedReceiver::Anyone => TO_WHOEVER_LISTENS,
            IntendedReceiver::Ticket(ticket) => {
                bytes[16..32].copy_from_slice(&ticket);
                TO_WHO_GAVE_THE_TICKET
            }
        };
        bytes[0..4].copy_from_slice(&whom.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.from.0.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, NotUnderstood> {
        let to = match u32_at(bytes, 0) {
            TO_THE_NODE_NAMED => IntendedReceiver::Node(NodeId(u64_at(bytes, 16))),
            TO_WHOEVER_LISTENS => IntendedReceiver::Anyone,
            TO_WHO_GAVE_THE_TICKET => IntendedReceiver::Ticket(*bytes.last_chunk().expect("more than that")),
            whom => return Err(NotUnderstood::IntendedReceiver(whom)),
        };
        Ok(Introduction { from: NodeId(u64_at(bytes, 8)), to })
    }
}

/// Answer of the listening node to an introduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandshakeAnswer {
    pub(crate) verdict: Verdict,
    /// Name of the answering node.
    pub(crate) node: NodeId,
    /// Ticket for the connection for data, if this connection is for control and was accepted.
    pub(crate) ticket: Ticket,
}

/// Decision of the listener about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Welcome,
    OtherNode,
    AlreadyConnected,
    Full,
    Closed,
    NoSuchTicket,
}

impl HandshakeAnswer {
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&(self.verdict as u32).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.node.0.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.ticket);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, NotUnderstood> {
        let code = u32_at(bytes, 0);
        let verdict = Verdict::ALL.into_iter().find(|&verdict| verdict as u32 == code);
        let verdict = verdict.ok_or(NotUnderstood::Answer(code))?;
        let ticket = *bytes.last_chunk().expect("more than that");
        Ok(HandshakeAnswer { verdict, node: NodeId(u64_at(bytes, 8)), ticket })
    }
}

impl Verdict {
    const ALL: [Verdict; 6] = [
        Verdict::Welcome,
        Verdict::OtherNode,
        Verdict::AlreadyConnected,
        Verdict::Full,
        Verdict::Closed,
        Verdict::NoSuchTicket,
    ];

    /// Returns the reason of a refusal, as a text for the caller.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Verdict::Welcome => "it accepted this node",
            Verdict::OtherNode => "another node listens there",
            Verdict::AlreadyConnected => "a node with this node's ID is already connected to it",
            Verdict::Full => "it has reached its limit of connections",
            Verdict::Closed => "it is shutting down",
            Verdict::NoSuchTicket => "it no longer expects the connection for data",
        }
    }
}

/// Reason for which a handshake message is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotUnderstood {
    #[error("it is not a Starfish node")]
    NotStarfish,
    #[error("it uses protocol version {0}, this node version {VERSION}")]
    Version(u32),
    #[error("it has the unknown kind {0} of encryption")]
    Encryption(u32),
    #[error("it requested a node in the unknown way {0}")]
    IntendedReceiver(u32),
    #[error("it sent the unknown answer {0}")]
    Answer(u32),
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn encoded_frames_are_decoded() {
        for (kind, _) in CODES {
            let lengths = if matches!(kind, Kind::Message(_)) { (77, 1 << 12) } else { (0, 0) };
            let prelude = Prelude { kind, header_bytes: lengths.0, payload_bytes: lengths.1, lead: 0 };
            assert_eq!(Prelude::decode(&prelude.encode()), Ok(prelude));
        }
        for encrypts in [false, true] {
            let greeting = Greeting { encrypts, random: [9; 32] };
            assert_eq!(Greeting::decode(&greeting.encode()), Ok(greeting));
        }
        for to in [
            IntendedReceiver::Node(NodeId(1)),
            IntendedReceiver::Node(NodeId(u64::MAX)),
            IntendedReceiver::Ticket([7; 16]),
            IntendedReceiver::Anyone,
        ] {
            let introduction = Introduction { from: NodeId(u64::MAX), to };
            assert_eq!(Introduction::decode(&introduction.encode()), Ok(introduction));
        }
        for verdict in Verdict::ALL {
            let answer = HandshakeAnswer { verdict, node: NodeId(3), ticket: [4; 16] };
            assert_eq!(HandshakeAnswer::decode(&answer.encode()), Ok(answer));
        }
    }

    #[test]
    fn frames_are_accepted_up_to_their_maximum_length() {
        let kind = Kind::Message(Class::Demand);
        let (header_bytes, payload_bytes) = (Message::HEADER_BYTES_MAX, Message::PAYLOAD_BYTES_MAX);
        let longest = Prelude { kind, header_bytes, payload_bytes, lead: 4095 };
        assert_eq!(Prelude::decode(&longest.encode()), Ok(longest));
        let command = Prelude { kind: Kind::Message(Class::Control), lead: 0, ..longest };
        assert!(Prelude::decode(&command.encode()).expect_err("too long").contains("4096 allowed"));
        let ping = Prelude { kind: Kind::Ping, lead: 0, ..longest };
        assert!(Prelude::decode(&ping.encode()).expect_err("too long").contains("0 allowed"));
        let header = Prelude { kind, header_bytes: header_bytes + 1, payload_bytes: 0, lead: 0 };
        assert!(Prelude::decode(&header.encode()).expect_err("too long").contains("header of 65537 bytes"));
        let lead = Prelude { lead: 4096, ..longest };
        assert!(Prelude::decode(&lead.encode()).expect_err("a whole unit").contains("4096 bytes"));
        let payload = Prelude { kind, header_bytes: 0, payload_bytes: u32::MAX.into(), lead: 0 };
        assert!(Prelude::decode(&payload.encode()).expect_err("too long").contains("payload"));
    }

    #[test]
    fn strangers_and_other_versions_are_distinguished() {
        assert_eq!(Greeting::check_first(b"GET / HTTP/1"), Err(NotUnderstood::NotStarfish));
        let greeting = Greeting { encrypts: true, random: [1; 32] }.encode();
        let mut odd = greeting;
        odd[12] = 7;
        assert_eq!(Greeting::decode(&odd), Err(NotUnderstood::Encryption(7)));
        let mut future = greeting;
        future[8] = 9;
        assert_eq!(Greeting::decode(&future), Err(NotUnderstood::Version(9)));
    }

    proptest! {
        #[test]
        fn decoded_frames_are_encoded_identically(
            greeting in any::<([u8; 4], [u8; 32])>(),
            body in any::<[u8; 32]>(),
            code in 0u32..9,
        ) {
            let mut bytes = Greeting { encrypts: false, random: greeting.1 }.encode();
            bytes[12..16].copy_from_slice(&greeting.0);
            if let Ok(greeting) = Greeting::decode(&bytes) {
                prop_assert_eq!(greeting.encode(), bytes);
            }
            let mut body = body;
            for code in [code.to_le_bytes(), *body.first_chunk().expect("32 bytes")] {
                body[..4].copy_from_slice(&code);
                if let Ok(introduction) = Introduction::decode(&body) {
                    prop_assert_eq!(Introduction::decode(&introduction.encode()), Ok(introduction));
                }
                if let Ok(answer) = HandshakeAnswer::decode(&body) {
                    prop_assert_eq!(HandshakeAnswer::decode(&answer.encode()), Ok(answer));
                }
            }
        }
    }
}
