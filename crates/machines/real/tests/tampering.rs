//! A program between two nodes changes, repeats, reorders, reflects or cuts their data. No message arrives that was not
//! sent, none twice and none out of order, and the connection ends with a reason.
//!
//! STARFISH_TAMPERINGS=10000 runs this number of tamperings.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::stranger::keys;
use common::{Reports, drivers, run_nodes, until};
use machine::{Class, Delivery, Machine, Message, Net, NodeId, Payload};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use real::{Keys, Limits, RealMachine, Settings};

/// One act of the program in the middle.
#[derive(Clone, Debug)]
struct Tampering {
    /// Index of the TCP connection in the order of creation: for control, for data.
    lane: usize,
    of_caller: bool,
    /// First affected byte of this direction.
    at: usize,
    act: Act,
}

#[derive(Clone, Debug)]
enum Act {
    /// Flips this bit.
    Flip(u8),
    /// Drops these bytes.
    Lose(usize),
    /// Sends these bytes twice.
    Repeat(usize),
    /// Swaps two pieces of this length.
    Exchange(usize),
    /// Replaces the following bytes by those of the other direction.
    Reflect,
    /// Ends the stream.
    Cut,
}

/// Number of bytes of each direction that the program may change: handshake, short messages, and more than one record.
const AT_MAX: usize = 300_000;

fn tamperings() -> impl Strategy<Value = Tampering> {
    // Lengths of a prelude with its tag, and of a header with its tag.
    let length = prop_oneof![Just(1_usize), Just(17), Just(32), Just(49), 1_usize..5000];
    let act = prop_oneof![
        4 => (0_u8..8).prop_map(Act::Flip),
        1 => length.clone().prop_map(Act::Lose),
        1 => length.clone().prop_map(Act::Repeat),
        1 => length.prop_map(Act::Exchange),
        1 => Just(Act::Reflect),
        1 => Just(Act::Cut),
    ];
    let at = prop_oneof![0..48_usize, 48..128_usize, 128..1000_usize, 1000..AT_MAX];
    (0..2_usize, any::<bool>(), at, act).prop_map(|(lane, of_caller, at, act)| Tampering {
        lane,
        of_caller,
        // Few bytes pass over the connection for control.
        at: if lane == 0 { at % 400 } else { at },
        act,
    })
}

/// Forwards one direction of a connection, with the change `tampering`.
fn pass_on(mut from: TcpStream, mut to: TcpStream, tampering: Option<Tampering>, done: &AtomicBool) {
    let mut pass = |from: &mut TcpStream, bytes: usize| -> std::io::Result<()> {
        std::io::copy(&mut Read::by_ref(from).take(bytes as u64), &mut to).and_then(|passed| {
            if passed < bytes as u64 { Err(std::io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
        })
    };
    let passed = match &tampering {
        None => Ok(()),
        Some(Tampering { at, .. }) => pass(&mut from, *at),
    };
    let mut act = |act: Act| -> std::io::Result<()> {
        // Set even if too few bytes follow: then the act withholds the bytes already read.
        done.store(true, Ordering::Relaxed);
        let mut take = |bytes: usize| {
            let mut taken = vec![0; bytes];
            from.read_exact(&mut taken).map(|()| taken)
        };
        match act {
            Act::Flip(bit) => to.write_all(&[take(1)?[0] ^ 1 << bit]),
            Act::Lose(bytes) => take(bytes).map(drop),
            Act::Repeat(bytes) => {
                let taken = take(bytes)?;
                to.write_all(&[&taken[..], &taken].concat())
            }
            Act::Exchange(bytes) => {
                let (one, two) = (take(bytes)?, take(bytes)?);
                // Swapping equal parts changes nothing.
                done.store(one != two, Ordering::Relaxed);
                to.write_all(&[two, one].concat())
            }
            Act::Reflect => {
                let mut back = from.try_clone()?;
                std::io::copy(&mut from, &mut back).map(drop)
            }
            Act::Cut => to.shutdown(Shutdown::Both),
        }
    };
    let acted = passed.and_then(|()| tampering.map_or(Ok(()), |tampering| act(tampering.act)));
    if acted.is_ok() {
        let _ = std::io::copy(&mut from, &mut to);
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Starts a program between the callers of its address and the node at `to`; returns the address.
fn between(to: SocketAddr, tampering: Tampering, done: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind(common::any_port()).expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for (lane, caller) in listener.incoming().take(2).enumerate() {
            let Ok(caller) = caller else { return };
            let Ok(listener) = TcpStream::connect(to) else { return };
            for (of_caller, from, to) in [
                (true, caller.try_clone(), listener.try_clone()),
                (false, listener.try_clone(), caller.try_clone()),
            ] {
                let is_meant = (lane, of_caller) == (tampering.lane, tampering.of_caller);
                let (tampering, done) = (is_meant.then(|| tampering.clone()), done.clone());
                let (from, to) = (from.expect("a descriptor"), to.expect("a descriptor"));
                std::thread::spawn(move || pass_on(from, to, tampering, &done));
            }
        }
    });
    address
}

/// Returns message `number` of a node: short and long ones, over both connections.
fn message(number: u32) -> Message {
    let bytes = [0, 10, 5000, 100_000, 300_000][number as usize % 5];
    let class = if bytes <= 10 { Class::Control } else { Class::Demand };
    let contents: Vec<u8> = (0..bytes).map(|at| (at as u32 ^ number) as u8).collect();
    Message { class, header: number.to_le_bytes().to_vec(), payload: Payload::from(contents) }
}

const MESSAGES: u32 = 10;

/// Sends all messages to `to`, until the connection is lost.
async fn send_all(machine: RealMachine, to: NodeId) {
    for number in 0..MESSAGES {
        if machine.net().send(to, message(number)).await.is_err() {
            return;
        }
    }
}

/// Receives the messages of `from` until all have arrived or the connection is lost; returns the reason of the loss.
async fn receive_all(machine: &RealMachine, from: NodeId) -> Option<String> {
    let mut next = [0, 2];
    while next != [MESSAGES, MESSAGES + 2] {
        let (sender, delivery) = machine.net().receive().await.expect("an open network");
        assert_eq!(sender, from);
        let received = match delivery {
            Delivery::Message(received) => received,
            Delivery::Gone(why) => return Some(why),
        };
        // The messages of each connection arrive in the order in which they were sent.
        let expected = &mut next[usize::from(received.class != Class::Control)];
        assert!(received == message(*expected), "{:?} for message {expected}", received.header);
        *expected += 1;
        *expected = match (*expected % 5, received.class) {
            (2, Class::Control) => *expected + 3,
            (0, Class::Demand | Class::Background) => *expected + 2,
            _ => *expected,
        };
    }
    // A later act shows in a missing or changed sign of life.
    let quiet = compio::time::timeout(Duration::from_millis(50), machine.net().receive()).await;
    match quiet {
        Err(_) => None,
        Ok(received) => match received.expect("an open network").1 {
            Delivery::Gone(why) => Some(why),
            Delivery::Message(message) => panic!("{:?} came after all messages", message.header),
        },
    }
}

/// Two nodes exchange messages through the program in the middle. Returns false if they completed before it acted.
async fn tamper(nodes: Vec<RealMachine>, keys: Keys, tampering: Tampering, reports: &Reports) -> bool {
    let (listener, done) = (nodes[0].clone(), Arc::<AtomicBool>::default());
    let address = between(listener.address().expect("it listens"), tampering.clone(), done.clone());
    let limits = Limits { silence: Duration::from_millis(100), recall: Duration::ZERO, ..Limits::default() };
    let settings = Settings { limits, reporter: reports.reporter(), ..Settings::new(NodeId(7), keys) };
    let caller = RealMachine::start(settings).await.expect("it has no disks");
    let was_refused = match caller.connect_to(address).await {
        Err(error) => Some(error.to_string()),
        Ok(node) => {
            assert_eq!(node, NodeId(1));
            None
        }
    };
    let ends = Rc::new(std::cell::RefCell::new(Vec::new()));
    if was_refused.is_none() {
        for (machine, to) in [(&caller, NodeId(1)), (&listener, NodeId(7))] {
            machine.spawn("sender", {
                let machine = machine.clone();
                async move {
                    send_all(machine, to).await;
                    Ok(())
                }
            });
            let (machine, ends) = (machine.clone(), ends.clone());
            machine.clone().spawn("receiver", async move {
                let end = receive_all(&machine, to).await;
                ends.borrow_mut().push(end);
                Ok(())
            });
        }
        until(&caller, || ends.borrow().len() == 2).await;
    }
    let was_noticed = was_refused.is_some() || ends.borrow().iter().any(Option::is_some);
    assert!(was_noticed || !done.load(Ordering::Relaxed), "{tampering:?} was not noticed");
    caller.net().close();
    caller.finish().await;
    was_noticed
}

#[test]
fn every_tampering_between_two_nodes_is_detected() {
    let rounds = std::env::var("STARFISH_TAMPERINGS").ok().and_then(|text| text.parse().ok()).unwrap_or(150);
    let mut runner = TestRunner::deterministic();
    let mut noticed = 0;
    for round in 0..rounds {
        let tampering = tamperings().new_tree(&mut runner).expect("no filters").current();
        // Checksums detect damage. They are not meant to detect an attacker, and none of these acts adapts the
        // checksums.
        let encrypts = round % 3 != 0;
        let keys = Keys { encrypts, ..keys() };
        let reports = Reports::default();
        let driver = drivers()[round % drivers().len()];
        let adapt = |settings| Settings { keys: keys.clone(), ..settings };
        let was_noticed = run_nodes(driver, 1, &reports, adapt, async |nodes: Vec<RealMachine>| {
            tamper(nodes, keys.clone(), tampering.clone(), &reports).await
        });
        noticed += usize::from(was_noticed.unwrap_or_else(|error| panic!("{tampering:?}: {error}")));
    }
    println!("{noticed} of {rounds} acts ended a connection; the others came after the last message");
    assert!(noticed > rounds / 2, "{noticed} of {rounds}");
}
