//! Fuzz test: any bytes that arrive over a connection are decoded or rejected.

use machine::{Class, Message, NodeId};

use super::frame::{Greeting, HandshakeAnswer, IntendedReceiver, Introduction, Kind, Prelude, Verdict};

/// Checks that a decoded value is within its limits, and encodes to the same bytes.
fn look_at(bytes: &[u8]) {
    if let Some(prelude) = bytes.first_chunk()
        && let Ok(understood) = Prelude::decode(prelude)
    {
        assert_eq!(understood.encode(), *prelude);
        assert!(understood.header_bytes <= Message::HEADER_BYTES_MAX);
        assert!(understood.payload_bytes <= Message::PAYLOAD_BYTES_MAX);
    }
    if let Some(Ok(greeting)) = bytes.first_chunk().map(Greeting::decode) {
        assert_eq!(Some(&greeting.encode()), bytes.first_chunk());
    }
    if let Some(Ok(introduction)) = bytes.first_chunk().map(Introduction::decode) {
        assert_eq!(Introduction::decode(&introduction.encode()), Ok(introduction));
    }
    if let Some(Ok(answer)) = bytes.first_chunk().map(HandshakeAnswer::decode) {
        assert_eq!(HandshakeAnswer::decode(&answer.encode()), Ok(answer));
    }
}

fn examples() -> Vec<Vec<u8>> {
    let kind = Kind::Message(Class::Demand);
    let greeting = Greeting { encrypts: true, random: [9; Greeting::RANDOM_BYTES] };
    let introduction = |to| Introduction { from: NodeId(77), to }.encode().to_vec();
    vec![
        Prelude { kind, header_bytes: 100, payload_bytes: 1 << 20, lead: 0 }.encode().to_vec(),
        Prelude::PING.encode().to_vec(),
        Prelude::BYE.encode().to_vec(),
        greeting.encode().to_vec(),
        introduction(IntendedReceiver::Node(NodeId(1))),
        introduction(IntendedReceiver::Anyone),
        introduction(IntendedReceiver::Ticket([7; 16])),
        HandshakeAnswer { verdict: Verdict::Full, node: NodeId(3), ticket: [4; 16] }.encode().to_vec(),
    ]
}

#[test]
fn frames() {
    fuzz::target!("frames", |input| {
        look_at(input);
        look_at(&fuzz::changed(&examples(), input));
    });
}
