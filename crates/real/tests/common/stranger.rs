//! Peers made by hand, of plain sockets, that keep to the protocol as far as a test wants.

use std::io::{Read, Write};
use std::net::TcpStream;

use real::RealMachine;

use super::until;

/// The version of what lies on the wire.
pub(crate) const VERSION: u32 = 3;

/// A greeting as nodes send it; written out here so that a change of it does not go unnoticed.
pub(crate) fn hello(version: u32, from: u64, to: u64) -> Vec<u8> {
    let mut bytes = b"STARFISH".to_vec();
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&from.to_le_bytes());
    bytes.extend_from_slice(&to.to_le_bytes());
    bytes
}

/// The greeting of a connection for data.
pub(crate) fn hello_again(from: u64, ticket: u64) -> Vec<u8> {
    let mut bytes = hello(VERSION, from, ticket);
    bytes[12] = 2;
    bytes
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
        let greet = |greeting: Vec<u8>| {
            let mut stream = TcpStream::connect(address).expect("someone listens");
            stream.write_all(&greeting).expect("room for a greeting");
            let mut answer = [0; 32];
            stream.read_exact(&mut answer).expect("an answer");
            assert_eq!(answer[12], 0, "it is welcome");
            (stream, u64::from_le_bytes(answer[24..].try_into().expect("eight bytes")))
        };
        let (control, ticket) = greet(hello(VERSION, from, 1));
        [control, greet(hello_again(from, ticket)).0]
    })
    .await
}
