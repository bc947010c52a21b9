//! Peers made by hand, of plain sockets, that keep to the protocol as far as a test wants.

use std::io::{Read, Write};
use std::net::TcpStream;

use real::RealMachine;

use super::until;

/// The version of what lies on the wire.
pub(crate) const VERSION: u32 = 4;

/// A ticket as it lies on the wire.
pub(crate) type Ticket = [u8; 16];

/// A greeting as nodes send it; written out here so that a change of it does not go unnoticed.
pub(crate) fn greeting(version: u32, is_keyed: bool) -> Vec<u8> {
    let mut bytes = b"STARFISH".to_vec();
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&u32::from(is_keyed).to_le_bytes());
    bytes.extend_from_slice(&[7; 32]);
    bytes
}

/// An introduction or an answer, with the proof of a node that has no key.
pub(crate) fn proved(code: u32, node: u64, rest: Ticket) -> Vec<u8> {
    let mut bytes = code.to_le_bytes().to_vec();
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&node.to_le_bytes());
    bytes.extend_from_slice(&rest);
    bytes.extend_from_slice(&[0; 32]);
    bytes
}

/// An introduction to the node `to`.
fn introduction(from: u64, to: u64) -> Vec<u8> {
    let mut name = Ticket::default();
    name[..8].copy_from_slice(&to.to_le_bytes());
    proved(0, from, name)
}

/// All that a caller says to the node `to`.
pub(crate) fn hello(version: u32, from: u64, to: u64) -> Vec<u8> {
    [greeting(version, false), introduction(from, to)].concat()
}

/// All that a caller says to a node whose name it does not know.
pub(crate) fn hello_whoever(from: u64) -> Vec<u8> {
    [greeting(VERSION, false), proved(1, from, Ticket::default())].concat()
}

/// All that a caller says to open the connection for data.
pub(crate) fn hello_again(from: u64, ticket: Ticket) -> Vec<u8> {
    [greeting(VERSION, false), proved(2, from, ticket)].concat()
}

/// What comes before a frame on demand.
pub(crate) fn prelude(header_bytes: u32, payload_bytes: u64) -> Vec<u8> {
    let mut bytes = b"SFfd".to_vec();
    bytes.extend_from_slice(&header_bytes.to_le_bytes());
    bytes.extend_from_slice(&payload_bytes.to_le_bytes());
    bytes
}

/// What a node says last over each lane.
pub(crate) fn bye() -> Vec<u8> {
    [b"SFf.".as_slice(), &[0; 12]].concat()
}

/// Runs `work`, which blocks, on another thread while the node goes on.
pub(crate) async fn beside<T: Send + 'static>(
    node: &RealMachine,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let worker = std::thread::spawn(work);
    until(node, || worker.is_finished()).await;
    worker.join().expect("no panic")
}

/// Connects to the node as node `from` by hand: for control, and for data.
pub(crate) async fn join(at: &RealMachine, from: u64) -> [TcpStream; 2] {
    let address = at.address().expect("it listens");
    beside(at, move || {
        let greet = |hello: Vec<u8>| {
            let mut stream = TcpStream::connect(address).expect("someone listens");
            stream.write_all(&hello).expect("room for a greeting");
            let mut answer = [0; 48 + 64];
            stream.read_exact(&mut answer).expect("an answer");
            assert_eq!(answer[48], 0, "it is welcome");
            (stream, answer[64..80].try_into().expect("16 bytes"))
        };
        let (control, ticket) = greet(hello(VERSION, from, 1));
        [control, greet(hello_again(from, ticket)).0]
    })
    .await
}
