//! Handmade peers of plain sockets, which follow the protocol as far as a test requires.
//!
//! The protocol is implemented a second time here, so that tests detect every change of it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use real::{Key, Keys, RealMachine};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use snow::{Builder, HandshakeState};

use super::until;

/// Version of the protocol.
pub(crate) const VERSION: u32 = 5;

/// Key of all nodes, unless a test uses another.
const KEY: [u8; Key::BYTES] = [1; Key::BYTES];

/// Returns the keys of all nodes, unless a test uses others.
pub(crate) fn keys() -> Keys {
    Keys::new(Key::new(KEY))
}

/// Ticket of a connection for data.
pub(crate) type Ticket = [u8; 16];

/// Returns the first bytes of a node.
pub(crate) fn greeting(version: u32, encrypts: bool) -> [u8; 48] {
    let mut bytes = [7; 48];
    bytes[..8].copy_from_slice(b"STARFISH");
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    bytes[12..16].copy_from_slice(&u32::from(encrypts).to_le_bytes());
    bytes
}

/// Returns an introduction or an answer.
pub(crate) fn contents(code: u32, node: u64, rest: Ticket) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&code.to_le_bytes());
    bytes[8..16].copy_from_slice(&node.to_le_bytes());
    bytes[16..].copy_from_slice(&rest);
    bytes
}

/// Returns an introduction to the node `to`.
pub(crate) fn to_node(from: u64, to: u64) -> [u8; 32] {
    let mut name = Ticket::default();
    name[..8].copy_from_slice(&to.to_le_bytes());
    contents(0, from, name)
}

/// Returns an introduction to a node of any name.
pub(crate) fn to_anyone(from: u64) -> [u8; 32] {
    contents(1, from, Ticket::default())
}

/// Returns an introduction of the connection for data.
pub(crate) fn with_ticket(from: u64, ticket: Ticket) -> [u8; 32] {
    contents(2, from, ticket)
}

/// Starts Noise between nodes with the same key, after their greetings, the caller's first.
fn noise(greetings: [[u8; 48]; 2], is_caller: bool) -> HandshakeState {
    let shared = blake3::derive_key("starfish 2026-11 handshake", &KEY);
    let prologue = greetings.concat();
    let builder = Builder::new("Noise_NNpsk0_25519_ChaChaPoly_SHA256".parse().expect("a protocol"));
    let builder = builder.psk(0, &shared).and_then(|builder| builder.prologue(&prologue)).expect("a key");
    if is_caller { builder.build_initiator() } else { builder.build_responder() }.expect("all it needs")
}

/// Class and header of a message without a payload.
pub(crate) type Headed = (u8, Vec<u8>);

/// Class of demand messages.
pub(crate) const DEMAND: u8 = b'd';

/// Lane to a node.
pub(crate) struct Stranger {
    pub(crate) stream: TcpStream,
    out: LessSafeKey,
    back: LessSafeKey,
    sent: u64,
    received: u64,
}

impl Stranger {
    /// Calls a node; returns the lane and the answer. Fails if the node disconnects.
    pub(crate) fn call(address: SocketAddr, introduction: &[u8; 32]) -> io::Result<(Stranger, [u8; 32])> {
        let mut stream = TcpStream::connect(address)?;
        let mine = greeting(VERSION, true);
        stream.write_all(&mine)?;
        let mut theirs = [0; 48];
        stream.read_exact(&mut theirs)?;
        let mut noise = noise([mine, theirs], true);
        let mut message = [0; 80];
        noise.write_message(introduction, &mut message).expect("its turn");
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        let mut answer = [0; 32];
        noise.read_message(&message, &mut answer).expect("the same key");
        Ok((Stranger::new(stream, noise, true), answer))
    }

    /// Answers a calling node; returns the lane and the introduction.
    pub(crate) fn answer(mut stream: TcpStream, answer: &[u8; 32]) -> (Stranger, [u8; 32]) {
        let mine = greeting(VERSION, true);
        stream.write_all(&mine).expect("room for a greeting");
        let mut theirs = [0; 48];
        stream.read_exact(&mut theirs).expect("a greeting");
        let mut noise = noise([theirs, mine], false);
        let mut message = [0; 80];
        stream.read_exact(&mut message).expect("an introduction");
        let mut introduction = [0; 32];
        noise.read_message(&message, &mut introduction).expect("the same key");
        noise.write_message(answer, &mut message).expect("its turn");
        stream.write_all(&message).expect("room for an answer");
        (Stranger::new(stream, noise, false), introduction)
    }

    fn new(stream: TcpStream, mut noise: HandshakeState, is_caller: bool) -> Stranger {
        let (of_caller, of_listener) = noise.dangerously_get_raw_split();
        let [out, back] = if is_caller { [of_caller, of_listener] } else { [of_listener, of_caller] }
            .map(|key| LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).expect("a key")));
        Stranger { stream, out, back, sent: 0, received: 0 }
    }

    /// Returns the next record to send.
    pub(crate) fn record(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut record = bytes.to_vec();
        self.out.seal_in_place_append_tag(nonce(self.sent), Aad::empty(), &mut record).expect("a short one");
        self.sent += 1;
        record
    }

    /// Returns the beginning of a demand frame.
    pub(crate) fn prelude(&mut self, header_bytes: u32, payload_bytes: u32) -> Vec<u8> {
        self.prelude_of(DEMAND, header_bytes, payload_bytes)
    }

    fn prelude_of(&mut self, class: u8, header_bytes: u32, payload_bytes: u32) -> Vec<u8> {
        let lengths = [header_bytes, payload_bytes, 0].map(u32::to_le_bytes).concat();
        self.record(&[b"SFf", &[class][..], &lengths].concat())
    }

    /// Returns the header of a frame, with zeros (unknown) for the checksums of its payload.
    pub(crate) fn head(&mut self, header: &[u8], payload_bytes: usize) -> Vec<u8> {
        self.record(&[header, &vec![0; 8 * payload_bytes.div_ceil(4096)]].concat())
    }

    /// Returns frames without payloads.
    pub(crate) fn frames(&mut self, messages: &[Headed]) -> Vec<u8> {
        let frame = |(class, header): &Headed| {
            [self.prelude_of(*class, header.len() as u32, 0), self.record(header)].concat()
        };
        messages.iter().flat_map(frame).collect()
    }

    /// Returns the last frame of a lane.
    pub(crate) fn bye(&mut self) -> Vec<u8> {
        self.record(&[b"SFf.".as_slice(), &[0; 12]].concat())
    }

    /// Sends a demand frame without a payload.
    pub(crate) fn send_frame(&mut self, header: u8) {
        let frame = self.frames(&[(DEMAND, vec![header])]);
        self.stream.write_all(&frame).expect("room for a message");
    }

    /// Receives a record of this length.
    pub(crate) fn receive(&mut self, bytes: usize) -> Vec<u8> {
        let mut record = vec![0; bytes + 16];
        self.stream.read_exact(&mut record).expect("a record");
        self.back.open_in_place(nonce(self.received), Aad::empty(), &mut record).expect("the next one");
        self.received += 1;
        record.truncate(bytes);
        record
    }
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Runs blocking `work` on another thread while the node continues.
pub(crate) async fn on_another_thread<T: Send + 'static>(
    node: &RealMachine,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let worker = std::thread::spawn(work);
    until(node, || worker.is_finished()).await;
    worker.join().expect("no panic")
}

/// Returns the answer of a node to an introduction.
pub(crate) async fn answer_of(at: &RealMachine, introduction: [u8; 32]) -> [u8; 32] {
    let address = at.address().expect("it listens");
    on_another_thread(at, move || Stranger::call(address, &introduction).expect("an answer").1).await
}

/// Connects by hand to the node as node `from`: for control, and for data.
pub(crate) async fn join(at: &RealMachine, from: u64) -> [Stranger; 2] {
    let address = at.address().expect("it listens");
    on_another_thread(at, move || join_address(address, from).expect("an answer")).await
}

/// Connects to node 1 like [`join`], but blocks.
pub(crate) fn join_address(address: SocketAddr, from: u64) -> io::Result<[Stranger; 2]> {
    let welcome = |introduction| -> io::Result<(Stranger, Ticket)> {
        let (stranger, answer) = Stranger::call(address, &introduction)?;
        if answer[0] != 0 {
            return Err(io::Error::other("it is not welcome"));
        }
        Ok((stranger, answer[16..].try_into().expect("16 bytes")))
    };
    let (control, ticket) = welcome(to_node(from, 1))?;
    Ok([control, welcome(with_ticket(from, ticket))?.0])
}
