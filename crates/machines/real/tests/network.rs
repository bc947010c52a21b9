//! Network of a node beyond the conformance tests: refused callers, the effect of broken or hostile connections, and
//! full queues without a receiver.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::stranger::{
    Stranger, VERSION, answer_of, contents, greeting, join, keys, on_another_thread, to_anyone, to_node,
    with_ticket,
};
use common::{Reports, begun, drivers, peer, run_nodes, until};
use machine::{Class, Delivery, Error, KeyMismatch, Machine, Message, Net, NodeId, Payload};
use proptest::prelude::*;
use real::{Driver, Key, Keys, Limits, Peer, RealMachine, Settings};

fn message(number: u8, bytes: usize) -> Message {
    Message { header: vec![number], payload: Payload::from(vec![number; bytes]), ..Message::default() }
}

async fn receive(machine: &RealMachine) -> (NodeId, Delivery) {
    machine.net().receive().await.expect("an open network")
}

async fn expect_message(machine: &RealMachine, number: u8, bytes: usize) {
    let (_, delivery) = receive(machine).await;
    assert!(delivery == Delivery::Message(message(number, bytes)), "{delivery:?} for message {number}");
}

/// Sends `bytes` to `address` from another thread, shuts down the sending side, and returns the answer.
async fn throw(at: &RealMachine, bytes: Vec<u8>) -> Vec<u8> {
    let address = at.address().expect("it listens");
    let thrower = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("someone listens");
        let mut answer = Vec::new();
        // Ignore errors: the node may disconnect at any time.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut answer);
        answer
    });
    until(at, || thrower.is_finished()).await;
    thrower.join().expect("no panic")
}

/// Joins as node `from`, sends the bytes that `made` creates over the connection for data, and disconnects.
async fn join_and_throw(
    at: &RealMachine,
    from: u64,
    made: impl FnOnce(&mut Stranger) -> Vec<u8> + Send + 'static,
) {
    let mut lanes = join(at, from).await;
    on_another_thread(at, move || {
        let bytes = made(&mut lanes[1]);
        // Ignore errors: the node may disconnect at any time.
        let _ = lanes[1].stream.write_all(&bytes);
        let _ = lanes[1].stream.shutdown(std::net::Shutdown::Write);
        for lane in &mut lanes {
            let _ = lane.stream.read_to_end(&mut Vec::new());
        }
    })
    .await;
}

#[test]
fn strangers_are_refused_with_the_reason_if_they_know_the_protocol() {
    for driver in drivers() {
        let reports = Reports::default();
        let limits = Limits { connections: 1, ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 2, &reports, adapt, async |nodes: Vec<RealMachine>| {
            let node = &nodes[0];
            // A stranger can read the answer before the node reports the refusal.
            let reported = async |count| until(node, || reports.refusals().len() == count).await;
            assert_eq!(throw(node, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n".to_vec()).await, b"");
            reported(1).await;
            assert_eq!(throw(node, b"STAR".to_vec()).await, b"");
            reported(2).await;
            let answer = throw(node, greeting(VERSION - 1, true).to_vec()).await;
            reported(3).await;
            assert_eq!((&answer[..8], answer.len()), (&b"STARFISH"[..], 48), "only a greeting");
            let introductions = [
                (to_node(7, 9), 1),
                (to_node(2, 1), 2),
                (to_node(7, 1), 3),
                (to_anyone(7), 3),
                (with_ticket(7, [99; 16]), 5),
            ];
            for (count, (introduction, verdict)) in (4..).zip(introductions) {
                let answer = answer_of(node, introduction).await;
                assert_eq!((answer[0], answer[8]), (verdict, 1));
                reported(count).await;
            }
        })
        .expect("no task fails");
        let refusals = reports.refusals();
        let expected = [
            "not a Starfish node",
            "",
            "version 4",
            "wants to talk to node 9",
            "connected already",
            "exceeds the limit of connections",
            "exceeds the limit of connections",
            "too late, or by mistake",
        ];
        assert_eq!(refusals.len(), expected.len(), "{refusals:?}");
        for (refusal, expected) in refusals.iter().zip(expected) {
            assert!(refusal.contains(expected), "{refusal} for {expected}");
        }
    }
}

#[test]
fn a_silent_caller_is_refused() {
    for driver in drivers() {
        let reports = Reports::default();
        let limits = Limits { handshake: Duration::from_millis(30), ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 1, &reports, adapt, async |nodes: Vec<RealMachine>| {
            let _silent = TcpStream::connect(nodes[0].address().expect("it listens")).expect("it does");
            until(&nodes[0], || reports.refusals().iter().any(|why| why.contains("sent no handshake"))).await;
        })
        .expect("no task fails");
    }
}

async fn connect_error(machine: &RealMachine, node: u64, address: SocketAddr) -> String {
    let peer = Peer { node: NodeId(node), address };
    machine.connect(&[peer]).await.expect_err("no suitable node listens").to_string()
}

#[test]
fn an_unreachable_peer_is_reported_with_the_reason() {
    for driver in drivers() {
        let adapt = |settings| settings;
        run_nodes(driver, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let free = TcpListener::bind(common::any_port()).and_then(|listener| listener.local_addr());
            let free = free.expect("a free port");
            let error = connect_error(&nodes[0], 5, free).await;
            for part in ["node 5", &free.to_string(), "refused"] {
                assert!(error.contains(part), "{error}");
            }
            let error = nodes[0].connect_to(free).await.expect_err("no node listens").to_string();
            assert!(error.starts_with(&format!("cannot connect to {free}: ")), "{error}");
            let error = connect_error(&nodes[0], 5, nodes[1].address().expect("it listens")).await;
            assert!(error.contains("node 2 listens there"), "{error}");

            let other = TcpListener::bind(common::any_port()).expect("a free port");
            let address = other.local_addr().expect("bound");
            std::thread::spawn(move || {
                let (mut stream, _) = other.accept().expect("a connection");
                let _ = stream.write_all(b"SSH-2.0-OpenSSH_10.0 and more that fills a whole answer\r\n");
                let _ = stream.read_to_end(&mut Vec::new());
            });
            let error = connect_error(&nodes[0], 5, address).await;
            assert!(error.contains("not a Starfish node"), "{error}");
        })
        .expect("no task fails");
    }
}

#[test]
fn the_node_at_an_address_is_connected_and_identifies_itself() {
    for driver in drivers() {
        let reports = Reports::default();
        let adapt = |settings| Settings { listen: Some(([0, 0, 0, 0], 0).into()), ..settings };
        let nodes = run_nodes(driver, 1, &reports, adapt, async |nodes: Vec<RealMachine>| {
            let listener = &nodes[0];
            let port = listener.address().expect("it listens").port();
            let caller = Settings { listen: Some(common::any_port()), ..Settings::new(NodeId(7), keys()) };
            let caller = RealMachine::start(caller).await.expect("it has no disks");
            // Two calls to the same address, and one to another address of the node: they share one connection.
            for host in [[127, 0, 0, 1], [127, 0, 0, 1], [127, 0, 0, 2]] {
                assert_eq!(caller.connect_to((host, port).into()).await, Ok(NodeId(1)));
            }
            assert_eq!(caller.connect(&[peer(listener)]).await, Ok(()));
            for number in 0..2 {
                caller.net().send(NodeId(1), message(number, 10_000)).await.expect("a connection");
                expect_message(listener, number, 10_000).await;
                listener.net().send(NodeId(7), message(number, 10_000)).await.expect("a connection");
                expect_message(&caller, number, 10_000).await;
            }

            let itself = caller.address().expect("it listens");
            let error = caller.connect_to(itself).await.expect_err("only this node listens").to_string();
            assert!(error.contains("this node listens there"), "{error}");
            let namesake =
                RealMachine::start(Settings::new(NodeId(7), keys())).await.expect("it has no disks");
            let error = namesake.connect_to(([127, 0, 0, 1], port).into()).await.expect_err("a namesake");
            assert!(error.to_string().contains("with this node's ID is already connected"), "{error}");
            caller.net().close();
            caller.finish().await;
        });
        nodes.expect("no task fails");
    }
}

#[test]
fn an_invalid_frame_ends_only_its_connection() {
    for driver in drivers() {
        let adapt = |settings| settings;
        run_nodes(driver, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            type Made = fn(&mut Stranger) -> Vec<u8>;
            let cases: [(Made, &str); 9] = [
                (|lane| lane.prelude(65_537, 0), "header of 65537 bytes"),
                (|lane| lane.prelude(0, (4 << 20) + 1), "payload of 4194305 bytes"),
                (|lane| lane.prelude(u32::MAX, u32::MAX), "header of 4294967295 bytes"),
                (|lane| lane.record(b"what is this her"), "instead of the start of a frame"),
                (|_| vec![1; 40], "received data differ from the sent data"),
                (|lane| lane.prelude(10, 100_000), "in the middle of a message"),
                (|lane| [lane.prelude(4, 100_000), vec![1; 15]].concat(), "in the middle of a message"),
                (|_| b"SFfd".to_vec(), "in the middle of a message"),
                (|_| Vec::new(), "ended without a shutdown message"),
            ];
            for (made, expected) in cases {
                join_and_throw(&nodes[0], 7, made).await;
                let (from, delivery) = receive(&nodes[0]).await;
                let Delivery::Gone(why) = delivery else { panic!("{delivery:?}") };
                assert!(from == NodeId(7) && why.contains(expected), "{why} for {expected}");
                nodes[1].net().send(NodeId(1), message(1, 10_000)).await.expect("a connection");
                expect_message(&nodes[0], 1, 10_000).await;
            }
        })
        .expect("no task fails");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_disturb_no_other_connection(
        throws in proptest::collection::vec((any::<bool>(), any::<bool>(), proptest::collection::vec(any::<u8>(), 0..3000)), 1..6),
    ) {
        let adapt = |settings| settings;
        run_nodes(Driver::Polling, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            for (number, (is_greeted, is_framed, bytes)) in throws.into_iter().enumerate() {
                if is_greeted {
                    let made = move |lane: &mut Stranger| match is_framed {
                        true => [lane.prelude(3, 10), lane.record(&bytes)].concat(),
                        false => bytes,
                    };
                    join_and_throw(&nodes[0], 1000 + number as u64, made).await;
                } else {
                    let first = if is_framed { greeting(VERSION, true).to_vec() } else { Vec::new() };
                    throw(&nodes[0], [first, bytes].concat()).await;
                }
                nodes[1].net().send(NodeId(1), message(1, 5000)).await.expect("a connection");
                // Messages of the stranger come first or last, but never within the other message.
                loop {
                    let (from, delivery) = receive(&nodes[0]).await;
                    if from == NodeId(2) {
                        assert!(delivery == Delivery::Message(message(1, 5000)));
                        break;
                    }
                }
            }
        })
        .expect("no task fails");
    }
}

#[test]
fn a_node_that_does_not_receive_blocks_its_senders() {
    const MESSAGES: u8 = 64;
    for driver in drivers() {
        let limits = Limits { receive_bytes: 2 << 20, ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let left = Rc::new(std::cell::Cell::new(0));
            let (sender, count) = (nodes[0].clone(), left.clone());
            nodes[0].spawn("sender", async move {
                for number in 0..MESSAGES {
                    sender.net().send(NodeId(2), message(number, 1 << 20)).await?;
                    count.set(count.get() + 1);
                }
                Ok(())
            });
            nodes[0].sleep_until(nodes[0].now() + machine::Duration::from_millis(200)).await;
            assert!(left.get() < MESSAGES, "64 MiB were accepted for a node with space for 2 MiB");
            for number in 0..MESSAGES {
                expect_message(&nodes[1], number, 1 << 20).await;
            }
        })
        .expect("no task fails");
    }
}

#[test]
fn a_cancelled_send_leaves_complete_frames() {
    for driver in drivers() {
        let limits = Limits { receive_bytes: 4 << 20, ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            for number in 0..20 {
                let send = nodes[0].net().send(NodeId(2), message(number, 3 << 20));
                let send = begun(Box::pin(send)).await;
                let pause = machine::Duration::from_micros(u64::from(number) * 100);
                nodes[0].sleep_until(nodes[0].now() + pause).await;
                drop(send);
            }
            nodes[0].spawn("last sender", {
                let node = nodes[0].clone();
                async move { node.net().send(NodeId(2), message(255, 10)).await }
            });
            // Senders that found the outbox full have sent nothing. The arrived messages are in order and complete.
            let mut latest = -1;
            loop {
                let (_, delivery) = receive(&nodes[1]).await;
                let Delivery::Message(received) = delivery else { panic!("{delivery:?}") };
                let number = received.header[0];
                assert!(i32::from(number) > latest);
                latest = number.into();
                if number == 255 {
                    break;
                }
                assert!(received == message(number, 3 << 20));
            }
        })
        .expect("no task fails");
    }
}

#[test]
fn messages_in_flight_arrive_after_a_node_closes() {
    for driver in drivers() {
        let adapt = |settings| settings;
        run_nodes(driver, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let mut sends = Vec::new();
            for number in 0..5 {
                let send = nodes[0].net().send(NodeId(2), message(number, 3 << 20));
                sends.push(begun(Box::pin(send)).await);
            }
            nodes[0].net().close();
            for number in 0..5 {
                expect_message(&nodes[1], number, 3 << 20).await;
            }
            let (from, delivery) = receive(&nodes[1]).await;
            assert!(from == NodeId(1) && matches!(delivery, Delivery::Gone(_)), "{delivery:?}");
            for send in sends {
                assert_eq!(send.await, Ok(()));
            }
        })
        .expect("no task fails");
    }
}

#[test]
fn senders_do_not_wait_for_a_disconnected_peer() {
    for driver in drivers() {
        let adapt = |settings| settings;
        run_nodes(driver, 1, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let [control, mut data] = join(&nodes[0], 7).await;
            data.send_frame(9);
            expect_message(&nodes[0], 9, 0).await;
            // The other end does not read: some of these messages are in flight and the others wait.
            let mut sends = Vec::new();
            for number in 0..12 {
                let send = nodes[0].net().send(NodeId(7), message(number, 4 << 20));
                sends.push(begun(Box::pin(send)).await);
            }
            drop((control, data));
            let last = sends.pop().expect("twelve").await.map_err(|error| *error);
            assert!(matches!(last, Err(Error::PeerGone { node: NodeId(7), .. })), "{last:?}");
            for send in sends {
                // The first messages may have left before.
                let _ = send.await;
            }
            let (from, delivery) = receive(&nodes[0]).await;
            assert!(from == NodeId(7) && matches!(delivery, Delivery::Gone(_)), "{delivery:?}");
        })
        .expect("no task fails");
    }
}

#[test]
fn nodes_on_separate_threads_communicate_and_shut_down_cleanly() {
    for driver in drivers() {
        let (addresses, listening) = std::sync::mpsc::channel();
        let listener = std::thread::spawn(move || {
            let settings =
                Settings { driver, listen: Some(common::any_port()), ..Settings::new(NodeId(1), keys()) };
            real::run(settings, |machine| async move {
                addresses.send(peer(&machine)).expect("the other waits for it");
                expect_message(&machine, 3, 1 << 20).await;
                machine.net().send(NodeId(2), message(4, 1 << 20)).await
            })
        });
        let peers = vec![listening.recv().expect("the listener starts")];
        let settings = Settings { driver, peers, ..Settings::new(NodeId(2), keys()) };
        let called = real::run(settings, |machine| async move {
            machine.net().send(NodeId(1), message(3, 1 << 20)).await.expect("a connection");
            expect_message(&machine, 4, 1 << 20).await;
        });
        assert_eq!(called, Ok(()));
        assert_eq!(listener.join().expect("no panic"), Ok(Ok(())));
    }
}

#[test]
fn a_panicking_task_is_reported_and_the_node_continues() {
    for driver in drivers() {
        let reports = Reports::default();
        let settings = Settings { driver, reporter: reports.reporter(), ..Settings::new(NodeId(1), keys()) };
        let outcome = real::run(settings, |machine| async move {
            machine.spawn("unlucky", async { panic!("out of {}", "luck") });
            machine.sleep_until(machine.now() + machine::Duration::from_millis(5)).await;
            "continued"
        });
        assert_eq!(outcome, Ok("continued"));
        let expected = Error::Failed { task: "unlucky".to_owned(), why: "panicked: out of luck".to_owned() };
        assert_eq!(reports.failure(), Some(expected));
    }
}

fn command(number: u8) -> Message {
    Message { class: Class::Control, ..message(number, 4) }
}

#[test]
fn a_peer_that_receives_no_data_can_exchange_commands() {
    for driver in drivers() {
        let adapt = |settings| settings;
        run_nodes(driver, 1, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let [mut control, data] = join(&nodes[0], 7).await;
            let mut sends = Vec::new();
            for number in 0..20 {
                sends.push(begun(Box::pin(nodes[0].net().send(NodeId(7), message(number, 4 << 20)))).await);
            }
            nodes[0].net().send(NodeId(7), command(100)).await.expect("a connection");
            let prelude = b"SFfc\x01\0\0\0\x04\0\0\0\0\0\0\0";
            let (received, mut control) = on_another_thread(&nodes[0], move || {
                let head_bytes = 1 + size_of::<u64>();
                let received = [prelude.len(), head_bytes, 4].map(|bytes| control.receive(bytes));
                (received, control)
            })
            .await;
            assert_eq!(
                (&received[0][..], received[1][0], &received[2][..]),
                (&prelude[..], 100, &[100; 4][..])
            );
            let frame = received.map(|part| control.record(&part)).concat();
            control.stream.write_all(&frame).expect("room for a command");
            let (_, delivery) = receive(&nodes[0]).await;
            assert!(delivery == Delivery::Message(command(100)), "{delivery:?}");
            drop((control, data, sends));
        })
        .expect("no task fails");
    }
}

#[test]
fn commands_overtake_data_queued_for_the_same_node() {
    for driver in drivers() {
        let limits = Limits { receive_bytes: 2 << 20, ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let mut sends = Vec::new();
            for number in 0..12 {
                sends.push(begun(Box::pin(nodes[0].net().send(NodeId(2), message(number, 1 << 20)))).await);
            }
            nodes[0].net().send(NodeId(2), command(100)).await.expect("a connection");
            nodes[0].sleep_until(nodes[0].now() + machine::Duration::from_millis(200)).await;
            let (_, first) = receive(&nodes[1]).await;
            assert!(first == Delivery::Message(command(100)), "{first:?}");
            for number in 0..12 {
                expect_message(&nodes[1], number, 1 << 20).await;
            }
        })
        .expect("no task fails");
    }
}

#[test]
fn a_silent_called_node_is_disconnected() {
    for driver in drivers() {
        let silence = Duration::from_millis(200);
        let limits = Limits { silence, recall: Duration::ZERO, ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 1, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let listener = TcpListener::bind(common::any_port()).expect("a free port");
            let address = listener.local_addr().expect("bound");
            let silent = std::thread::spawn(move || {
                [0, 1].map(|_| {
                    let (stream, _) = listener.accept().expect("a connection");
                    Stranger::answer(stream, &contents(0, 5, [1; 16])).0
                })
            });
            nodes[0].connect_to(address).await.expect("it answers");
            let streams = silent.join().expect("no panic");
            let (from, delivery) = receive(&nodes[0]).await;
            let Delivery::Gone(why) = delivery else { panic!("{delivery:?}") };
            assert!(from == NodeId(5) && why.contains("has not answered for 200 ms"), "{why}");
            drop(streams);
        })
        .expect("no task fails");
    }
}

#[test]
fn an_idle_node_that_answers_pings_stays_connected() {
    for driver in drivers() {
        let limits = Limits { silence: Duration::from_millis(100), ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            nodes[0].sleep_until(nodes[0].now() + machine::Duration::from_millis(500)).await;
            nodes[1].net().send(NodeId(1), message(1, 10)).await.expect("a connection");
            expect_message(&nodes[0], 1, 10).await;
        })
        .expect("no task fails");
    }
}

#[test]
fn a_reconnecting_node_replaces_its_silent_connection() {
    for driver in drivers() {
        let adapt = |settings| settings;
        run_nodes(driver, 1, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let node = &nodes[0];
            // Like a network failure: the other end neither reads nor writes, and the system reports no disconnection.
            let old = join(node, 7).await;
            let mut sends = Vec::new();
            for number in 0..12 {
                sends.push(begun(Box::pin(node.net().send(NodeId(7), message(number, 4 << 20)))).await);
            }
            let (caller, joined) = (node.clone(), Rc::new(std::cell::RefCell::new(None)));
            let streams = joined.clone();
            node.spawn("caller", async move {
                *streams.borrow_mut() = Some(join(&caller, 7).await);
                Ok(())
            });
            // The file system is notified of the loss before anything of the new connection.
            let (from, delivery) = receive(node).await;
            let Delivery::Gone(why) = delivery else { panic!("{delivery:?}") };
            assert!(from == NodeId(7) && why.contains("it reconnected"), "{why}");
            let lost = sends.pop().expect("twelve").await.map_err(|error| *error);
            assert!(matches!(lost, Err(Error::PeerGone { node: NodeId(7), .. })), "{lost:?}");
            until(node, || joined.borrow().is_some()).await;
            let [_control, mut data] = joined.take().expect("it has joined");
            data.send_frame(9);
            expect_message(node, 9, 0).await;
            drop(old);
        })
        .expect("no task fails");
    }
}

#[test]
fn a_node_restarted_at_its_address_is_reconnected() {
    for driver in drivers() {
        let limits = Limits { recall: Duration::from_secs(2), ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 1, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let (caller, mut address) = (&nodes[0], common::any_port());
            for run in 0..3 {
                // A new name each time, as for agents.
                let settings = Settings { listen: Some(address), ..Settings::new(NodeId(100 + run), keys()) };
                let agent = RealMachine::start(settings).await.expect("the port is free again");
                address = agent.address().expect("it listens");
                if run == 0 {
                    assert_eq!(caller.connect_to(address).await, Ok(NodeId(100)));
                }
                caller.net().send(NodeId(100), message(1, 10_000)).await.expect("it has restarted");
                let (from, _) = receive(&agent).await;
                assert_eq!(from, NodeId(1));
                agent.net().send(NodeId(1), message(2, 10_000)).await.expect("a connection");
                let (from, delivery) = receive(caller).await;
                assert!(from == NodeId(100) && delivery == Delivery::Message(message(2, 10_000)));
                agent.finish().await;
                let (from, delivery) = receive(caller).await;
                assert!(from == NodeId(100) && matches!(delivery, Delivery::Gone(_)), "{delivery:?}");
            }
            let asked = std::time::Instant::now();
            let lost = caller.net().send(NodeId(100), message(3, 10)).await.map_err(|error| *error);
            // At least half of the time limit, even on an idle computer.
            assert!(asked.elapsed() > Duration::from_secs(1), "{:?}", asked.elapsed());
            let Err(Error::PeerGone { node: NodeId(100), why }) = lost else { panic!("{lost:?}") };
            assert!(
                why.starts_with("it closed the connection; the reconnection failed:")
                    && why.contains("refused"),
                "{why}"
            );
            // Another program at this address closes each connection.
            let listener = TcpListener::bind(address).expect("the port is free again");
            let attempts = Arc::<AtomicUsize>::default();
            let counted = attempts.clone();
            std::thread::spawn(move || {
                listener.incoming().for_each(|_| _ = counted.fetch_add(1, Ordering::SeqCst));
            });
            let fail = async || {
                caller.net().send(NodeId(100), message(3, 10)).await.expect_err("it is disconnected");
                attempts.swap(0, Ordering::SeqCst)
            };
            // Each further message makes one attempt if it is sent soon after the failure. On a busy computer a few may
            // be sent too late.
            let mut made = Vec::new();
            for _ in 0..30 {
                made.push(fail().await);
            }
            assert!(made.iter().filter(|attempts| **attempts == 1).count() > 20, "{made:?}");
            // A later call, which might succeed, is made again, for half of the limit, because the node was lost long
            // ago. The pauses between the attempts are 50 ms.
            compio::time::sleep(Duration::from_millis(400)).await;
            let made = fail().await;
            assert!((2..=20).contains(&made), "{made}");
        })
        .expect("no task fails");
    }
}

/// Checks that messages of the honest node 2 reach node 1. Returns the number of other nodes that disconnected before
/// the last message.
async fn expect_service(nodes: &[RealMachine], messages: u8) -> usize {
    let mut disconnected = 0;
    for number in 0..messages {
        let sender = nodes[1].clone();
        nodes[1].spawn("honest sender", async move {
            sender.net().send(NodeId(1), message(number, 1 << 20)).await
        });
        loop {
            // The limit only bounds the time of a hanging test.
            let received = compio::time::timeout(Duration::from_secs(60), receive(&nodes[0])).await;
            let (from, delivery) = received.expect("no other node blocks the messages");
            if from == NodeId(2) {
                assert!(delivery == Delivery::Message(message(number, 1 << 20)), "{delivery:?}");
                break;
            }
            disconnected += usize::from(matches!(delivery, Delivery::Gone(_)));
        }
    }
    disconnected
}

#[test]
fn a_disconnect_is_reported_while_data_wait_for_memory() {
    for driver in drivers() {
        let limits = Limits { receive_bytes: 16 << 20, ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let [control, mut data] = join(&nodes[0], 7).await;
            let writer = std::thread::spawn(move || {
                let message = |lane: &mut Stranger| {
                    let mut frame = [lane.prelude(1, 1 << 20), lane.head(&[9], 1 << 20)].concat();
                    (0..4).for_each(|_| frame.extend(lane.record(&vec![9; 256 << 10])));
                    frame
                };
                // The last of these messages find no more room.
                while let frame = message(&mut data)
                    && data.stream.write_all(&frame).is_ok()
                {}
            });
            // The deliveries that the test keeps fill the limit of one connection.
            let mut kept = Vec::new();
            while kept.len() < 4 {
                let (from, delivery) = receive(&nodes[0]).await;
                assert_eq!(from, NodeId(7));
                kept.push(delivery);
            }
            expect_service(&nodes, 4).await;
            // The process ends without a bye, and the end of its data is queued behind data that the node does not
            // read.
            drop(control);
            let (from, delivery) = receive(&nodes[0]).await;
            let Delivery::Gone(why) = delivery else { panic!("{delivery:?}") };
            assert!(from == NodeId(7) && why.contains("ended without a shutdown message"), "{why}");
            until(&nodes[0], || writer.is_finished()).await;
            drop(kept);
            expect_service(&nodes, 4).await;
        })
        .expect("no task fails");
    }
}

#[test]
fn a_cleanly_closed_lane_closes_the_other() {
    for driver in drivers() {
        let limits = Limits { drain: Duration::from_millis(200), ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 1, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let [mut control, mut data] = join(&nodes[0], 7).await;
            data.send_frame(9);
            let bye = control.bye();
            control.stream.write_all(&bye).expect("room for a word");
            expect_message(&nodes[0], 9, 0).await;
            let (from, delivery) = receive(&nodes[0]).await;
            assert!(from == NodeId(7) && matches!(delivery, Delivery::Gone(_)), "{delivery:?}");
            // The stranger must see the end on the other connection too.
            on_another_thread(&nodes[0], move || control.stream.read_to_end(&mut Vec::new()))
                .await
                .expect("an end");
        })
        .expect("no task fails");
    }
}

#[test]
fn stalled_messages_do_not_block_other_nodes() {
    const STALLED: u64 = 40;
    for driver in drivers() {
        let limits = Limits { receive_bytes: 16 << 20, ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 2, &Reports::default(), adapt, async |nodes: Vec<RealMachine>| {
            let mut stalled = Vec::new();
            for from in 100..100 + STALLED {
                let mut lanes = join(&nodes[0], from).await;
                let data = &mut lanes[1];
                let begun = [data.prelude(1, 4 << 20), data.head(&[9], 4 << 20), vec![9; 99]].concat();
                lanes[1].stream.write_all(&begun).expect("room for that");
                stalled.push(lanes);
            }
            // The first message waits until it is certain that the others have stalled, and gets their room.
            assert_ne!(expect_service(&nodes, 20).await, 0, "the room suffices for all messages");
            drop(stalled);
        })
        .expect("no task fails");
    }
}

#[test]
fn hundreds_of_silent_callers_do_not_keep_others_out() {
    for driver in drivers() {
        let reports = Reports::default();
        // The silent callers never exceed this limit: others enter because there are too many callers.
        let limits = Limits { handshake: Duration::from_secs(3600), ..Limits::default() };
        let adapt = |settings| Settings { limits: limits.clone(), ..settings };
        run_nodes(driver, 1, &reports, adapt, async |nodes: Vec<RealMachine>| {
            let address = nodes[0].address().expect("it listens");
            let silent: Vec<_> =
                (0..300).map(|_| TcpStream::connect(address).expect("a place in the queue")).collect();
            for from in 100..110 {
                join(&nodes[0], from).await;
            }
            drop(silent);
            // Otherwise each refusal could become a log line.
            assert!(reports.refusals().len() <= 10, "{:?}", reports.refusals());
        })
        .expect("no task fails");
    }
}

fn key(byte: u8) -> Key {
    Key::new([byte; Key::BYTES])
}

/// Returns the result of a call to node 1 by a node with these keys.
async fn call(listener: &RealMachine, keys: Keys) -> Result<NodeId, Error> {
    let caller = RealMachine::start(Settings::new(NodeId(7), keys)).await.expect("it has no disks");
    let called = caller.connect_to(listener.address().expect("it listens")).await;
    if called.is_ok() {
        caller.net().send(NodeId(1), message(1, 10_000)).await.expect("a connection");
        expect_message(listener, 1, 10_000).await;
    }
    caller.net().close();
    caller.finish().await;
    if called.is_ok() {
        let (from, delivery) = receive(listener).await;
        assert!(from == NodeId(7) && matches!(delivery, Delivery::Gone(_)), "{delivery:?}");
    }
    called.map_err(|error| *error)
}

#[test]
fn nodes_connect_only_with_a_common_key_and_equal_encryption() {
    use KeyMismatch::{ClearHere, ClearThere, Differ};
    let clear = |key| Keys { encrypts: false, ..Keys::new(key) };
    let replacing = |current, previous| Keys { previous: Some(previous), ..Keys::new(current) };
    for driver in drivers() {
        for (listening, calling, expected) in [
            (Keys::new(key(1)), Keys::new(key(1)), None),
            (clear(key(1)), clear(key(1)), None),
            (Keys::new(key(1)), Keys::new(key(2)), Some((Differ, Differ))),
            (clear(key(1)), clear(key(2)), Some((Differ, Differ))),
            (Keys::new(key(1)), clear(key(1)), Some((ClearHere, ClearThere))),
            (clear(key(1)), Keys::new(key(1)), Some((ClearThere, ClearHere))),
            // A key that is being replaced, at one side or both.
            (replacing(key(2), key(1)), Keys::new(key(1)), None),
            (replacing(key(2), key(1)), Keys::new(key(2)), None),
            (Keys::new(key(2)), replacing(key(2), key(1)), None),
            (replacing(key(2), key(1)), Keys::new(key(3)), Some((Differ, Differ))),
        ] {
            let reports = Reports::default();
            let adapt = |settings| Settings { keys: listening.clone(), ..settings };
            run_nodes(driver, 1, &reports, adapt, async |nodes: Vec<RealMachine>| {
                let called = call(&nodes[0], calling.clone()).await;
                let Some((here, there)) = expected else {
                    assert_eq!(called, Ok(NodeId(1)));
                    return;
                };
                let what = format!("cannot connect to {}", nodes[0].address().expect("it listens"));
                assert_eq!(called, Err(Error::OtherKey { what, mismatch: here }));
                until(&nodes[0], || reports.mismatches() == [there]).await;
            })
            .expect("no task fails");
        }
        // A caller tries the previous key if the listener knows only that one.
        let reports = Reports::default();
        let adapt = |settings| Settings { keys: Keys::new(key(1)), ..settings };
        run_nodes(driver, 1, &reports, adapt, async |nodes: Vec<RealMachine>| {
            assert_eq!(call(&nodes[0], replacing(key(2), key(1))).await, Ok(NodeId(1)));
        })
        .expect("no task fails");
    }
}

#[test]
fn a_replayed_handshake_is_rejected() {
    for driver in drivers() {
        let reports = Reports::default();
        run_nodes(
            driver,
            2,
            &reports,
            |settings| settings,
            async |nodes: Vec<RealMachine>| {
                // A stranger in the middle forwards the messages of an honest caller and the node, and records them.
                let between = TcpListener::bind(common::any_port()).expect("a free port");
                let (address, node) =
                    (between.local_addr().expect("bound"), nodes[0].address().expect("it listens"));
                let eavesdropper = std::thread::spawn(move || {
                    let (mut caller, _) = between.accept().expect("a connection");
                    let mut listener = TcpStream::connect(node).expect("it listens");
                    let (mut request, mut answer) = ([0; 48 + 80], [0; 48 + 80]);
                    for part in [0..48, 48..128] {
                        caller.read_exact(&mut request[part.clone()]).expect("its part");
                        listener.write_all(&request[part.clone()]).expect("room");
                        listener.read_exact(&mut answer[part.clone()]).expect("its part");
                        if part.start == 0 {
                            caller.write_all(&answer[part]).expect("room");
                        }
                    }
                    (request, answer)
                });
                let caller =
                    RealMachine::start(Settings::new(NodeId(7), keys())).await.expect("it has no disks");
                caller.connect_to(address).await.expect_err("nothing was answered");
                let (request, answer) = eavesdropper.join().expect("no panic");
                let again = throw(&nodes[0], request.to_vec()).await;
                assert_eq!((again.len(), &again[48..]), (48 + 80, &[0; 80][..]), "unreadable");
                assert_eq!(reports.mismatches(), [KeyMismatch::Differ]);

                // The same towards a caller: a listener that replaces the node cannot answer for it.
                let instead = TcpListener::bind(common::any_port()).expect("a free port");
                let address = instead.local_addr().expect("bound");
                let listening = std::thread::spawn(move || {
                    let (mut stream, _) = instead.accept().expect("a connection");
                    stream.write_all(&answer).expect("room");
                    stream.read_to_end(&mut Vec::new())
                });
                let fooled = caller.connect_to(address).await.map_err(|error| *error);
                assert!(
                    matches!(fooled, Err(Error::OtherKey { mismatch: KeyMismatch::Differ, .. })),
                    "{fooled:?}"
                );
                listening.join().expect("no panic").expect("it hangs up");
                caller.finish().await;
                expect_service(&nodes, 1).await;
            },
        )
        .expect("no task fails");
    }
}
