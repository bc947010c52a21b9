//! Laws of the traits: one function for each law, generic over the machine. Both machines must keep all laws.
//!
//! A crate that implements [`Machine`] implements [`Testbed`] and makes a test from each law with
//! [`for_all_laws`](crate::for_all_laws).

mod metadata;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

use crate::{
    Buf, Class, Condition, Delivery, Disk, Duration, Error, InFlight, Instant, KeptEvent, Machine, Message,
    Net, NoteRing, NoteRow, NotedStretch, Payload, Result, TaskGroup, Work,
};

pub use metadata::{
    a_cancelled_transaction_is_done_completely_or_not_at_all, a_read_only_transaction_sees_committed_changes,
    a_rejected_transaction_changes_nothing, counted_transactions_left, entries_are_sorted_by_their_keys,
    make_counted_transactions, transactions_of_many_tasks_are_serial,
};

/// Source of nodes to check laws on.
pub trait Testbed {
    /// Kind of machine under test.
    type Machine: Machine;

    /// Runs `test` until it completes. Gives it `nodes` fresh nodes that can all communicate; each has one empty disk,
    /// an empty metadata store and [`POOL_BYTES`] bytes of buffers.
    ///
    /// Returns the result of the test, or the error of the first detached task that failed during the run. All nodes
    /// share the calling thread.
    fn run<T, F>(&self, nodes: usize, test: impl FnOnce(Vec<Self::Machine>) -> F) -> Result<T>
    where
        F: Future<Output = T> + 'static,
        T: 'static;
}

/// Size in bytes of each node's buffer pool in a [`Testbed`].
pub const POOL_BYTES: u64 = 1 << 20;

/// Calls the macro `$run` with the names of all laws, separated by commas. Each machine makes its tests from this list,
/// so that a new law is tested on all machines.
#[macro_export]
macro_rules! for_all_laws {
    ($run:ident) => {
        $run! {
            time_never_goes_backwards,
            sleepers_wake_in_order_of_their_deadlines,
            messages_of_a_pair_arrive_in_order,
            messages_of_each_class_arrive_in_order,
            urgent_messages_do_not_wait_for_all_less_urgent_ones,
            a_completed_send_no_longer_reads_its_payload,
            a_send_completes_before_the_receiver_receives,
            large_messages_arrive_whole,
            peers_see_a_closed_node_disconnect,
            a_send_to_a_disconnected_node_fails,
            disconnecting_a_peer_ends_the_connection_for_both,
            buffers_return_to_the_pool_and_waiters_get_them_in_order,
            a_cancelled_read_returns_its_buffer,
            reads_return_written_data_and_zeros_elsewhere,
            data_ranges_include_all_written_data,
            concurrent_accesses_to_separate_ranges_do_not_interfere,
            objects_keep_their_names_and_labels,
            missing_and_existing_objects_are_reported_as_errors,
            resizing_truncates_or_extends_an_object,
            transactions_of_many_tasks_are_serial,
            a_rejected_transaction_changes_nothing,
            entries_are_sorted_by_their_keys,
            a_cancelled_transaction_is_done_completely_or_not_at_all,
            a_read_only_transaction_sees_committed_changes,
            an_unflushed_object_behaves_like_any_other,
            each_disk_has_a_unique_stable_identity,
            errors_of_detached_tasks_are_reported,
            waiting_tasks_of_a_node_are_woken_in_order,
            a_joined_task_group_reports_its_first_failure,
            tasks_are_dropped_with_their_group,
            spans_of_concurrent_tasks_are_on_separate_rows,
            activities_of_parts_are_recorded,
            no_event_is_recorded_without_a_listener,
        }
    };
}

fn ok<T>(result: Result<T>) -> T {
    result.expect("no task of this test fails")
}

fn error<T: std::fmt::Debug>(result: Result<T>) -> Error {
    *result.expect_err("the tested operation fails")
}

fn message(number: u8, payload: impl Into<Payload>) -> Message {
    Message { header: vec![number], payload: payload.into(), ..Message::default() }
}

async fn expect_message<M: Machine>(machine: &M, from: &M) -> Message {
    match machine.net().receive().await {
        Ok((node, Delivery::Message(message))) if node == from.node() => message,
        other => panic!("expected a message from {}, got {other:?}", from.node()),
    }
}

async fn buffer<M: Machine>(machine: &M, bytes: u64) -> Buf {
    machine.buffers().take(bytes).await
}

/// The clock never runs backwards over sleeping, computing, sending and disk accesses, and a sleeper never wakes before
/// its deadline.
pub fn time_never_goes_backwards(testbed: &impl Testbed) {
    ok(testbed.run(2, |nodes| async move {
        let machine = &nodes[0];
        let mut latest = machine.now();
        let check = |latest: &mut Instant| {
            assert!(machine.now() >= *latest);
            *latest = machine.now();
        };
        machine.sleep_until(Instant::START).await;
        check(&mut latest);
        let deadline = latest + Duration::from_micros(300);
        machine.sleep_until(deadline).await;
        assert!(machine.now() >= deadline);
        check(&mut latest);
        machine.compute(Work::Copy { bytes: 100_000 }).await;
        check(&mut latest);
        ok(machine.net().send(nodes[1].node(), message(1, Payload::empty())).await);
        check(&mut latest);
        let object = ok(machine.disks()[0].create("clock", b"").await);
        ok(machine.disks()[0].write(object.id, 0, Payload::from(vec![1; 512])).await);
        check(&mut latest);
    }));
}

/// Sleepers wake in the order of their deadlines, not of their starting.
pub fn sleepers_wake_in_order_of_their_deadlines(testbed: &impl Testbed) {
    let order = ok(testbed.run(1, |nodes| async move {
        let (machine, order) = (nodes[0].clone(), Rc::new(RefCell::new(Vec::new())));
        let start = machine.now();
        for delay in [30, 10, 20] {
            let (sleeper, order) = (machine.clone(), order.clone());
            machine.spawn("sleeper", async move {
                sleeper.sleep_until(start + Duration::from_millis(delay)).await;
                order.borrow_mut().push(delay);
                Ok(())
            });
        }
        // On a busy computer all three sleepers can be late.
        for pause in 6..600 {
            machine.sleep_until(start + Duration::from_millis(10 * pause)).await;
            if order.borrow().len() == 3 {
                break;
            }
        }
        order.take()
    }));
    assert_eq!(order, [10, 20, 30]);
}

/// Messages from one node to another arrive unchanged, in the order of sending.
pub fn messages_of_a_pair_arrive_in_order(testbed: &impl Testbed) {
    ok(testbed.run(2, |nodes| async move {
        let (source, target) = (nodes[0].clone(), nodes[1].clone());
        let to = target.node();
        let sender = source.clone();
        source.spawn("sender", async move {
            for number in 0..100 {
                // Sizes vary, so that a defective machine could let a short message overtake a long one.
                let payload = vec![number; if number % 3 == 0 { 5_000 } else { 3 }];
                sender.net().send(to, message(number, payload)).await?;
            }
            Ok(())
        });
        for number in 0..100 {
            let received = expect_message(&target, &source).await;
            assert_eq!(received.header, [number]);
            let bytes = if number % 3 == 0 { 5_000 } else { 3 };
            assert_eq!(received.payload.to_vec(), Some(vec![number; bytes]));
        }
    }));
}

/// Messages of several classes, sent in turn, arrive unchanged, and in order within each class.
pub fn messages_of_each_class_arrive_in_order(testbed: &impl Testbed) {
    ok(testbed.run(2, |nodes| async move {
        let (source, target) = (nodes[0].clone(), nodes[1].clone());
        let to = target.node();
        for class in Class::ALL {
            let sender = source.clone();
            source.spawn("sender", async move {
                for number in 0..40 {
                    let message = Message { class, ..message(number, vec![number; 3_000]) };
                    sender.net().send(to, message).await?;
                }
                Ok(())
            });
        }
        let mut next = [0; Class::ALL.len()];
        for _ in 0..40 * Class::ALL.len() {
            let received = expect_message(&target, &source).await;
            let number = &mut next[received.class as usize];
            assert_eq!(received.header, [*number], "{:?}", received.class);
            assert_eq!(received.payload.to_vec(), Some(vec![*number; 3_000]));
            *number += 1;
        }
    }));
}

/// A message does not wait for all less urgent messages queued for the same node.
pub fn urgent_messages_do_not_wait_for_all_less_urgent_ones(testbed: &impl Testbed) {
    const BACKGROUND: u8 = 40;
    ok(testbed.run(2, |nodes| async move {
        let (source, target) = (nodes[0].clone(), nodes[1].clone());
        let send = |class, number, bytes| {
            let (sender, to) = (source.clone(), target.node());
            let message = Message { class, ..message(number, vec![number; bytes]) };
            source.spawn("sender", async move { sender.net().send(to, message).await });
        };
        (0..BACKGROUND).for_each(|number| send(Class::Background, number, 1 << 20));
        send(Class::Demand, BACKGROUND, 1 << 16);
        send(Class::Control, BACKGROUND + 1, 16);
        let (mut times, mut order) = (vec![Instant::START; usize::from(BACKGROUND) + 2], Vec::new());
        for _ in 0..times.len() {
            let received = expect_message(&target, &source).await;
            times[usize::from(received.header[0])] = target.now();
            order.push((received.header[0], received.class));
        }
        // On a machine without queues all messages arrive in the same instant.
        for urgent in [BACKGROUND, BACKGROUND + 1] {
            assert!(times[usize::from(urgent)] <= times[usize::from(BACKGROUND / 2)], "{urgent}: {order:?}");
        }
    }));
}

/// A change of the buffer after a completed send does not affect the sent message.
pub fn a_completed_send_no_longer_reads_its_payload(testbed: &impl Testbed) {
    ok(testbed.run(2, |nodes| async move {
        let mut memory = buffer(&nodes[0], 4096).await;
        memory.put(0, &Payload::from(vec![7; 4096]));
        ok(nodes[0].net().send(nodes[1].node(), message(1, memory.slice(0..4096))).await);
        memory.put(0, &Payload::from(vec![8; 4096]));
        drop(memory);
        assert_eq!(nodes[0].buffers().free_bytes(), POOL_BYTES);
        let received = expect_message(&nodes[1], &nodes[0]).await;
        assert_eq!(received.payload.to_vec(), Some(vec![7; 4096]));
    }));
}

/// A few small sends complete before the receiver calls `receive`: completion does not imply arrival.
pub fn a_send_completes_before_the_receiver_receives(testbed: &impl Testbed) {
    ok(testbed.run(2, |nodes| async move {
        for number in 0..4 {
            ok(nodes[0].net().send(nodes[1].node(), message(number, vec![number; 100])).await);
        }
        for number in 0..4 {
            assert_eq!(expect_message(&nodes[1], &nodes[0]).await.header, [number]);
        }
    }));
}

/// A message with header and payload of maximum length arrives unchanged.
pub fn large_messages_arrive_whole(testbed: &impl Testbed) {
    ok(testbed.run(2, |nodes| async move {
        let header = vec![3; Message::HEADER_BYTES_MAX];
        let bytes: Vec<u8> = (0..POOL_BYTES / 2).map(|at| (at % 251) as u8).collect();
        let sent = Message { header, payload: Payload::from(bytes), ..Message::default() };
        let (sender, to, copy) = (nodes[0].clone(), nodes[1].node(), sent.clone());
        nodes[0].spawn("sender", async move { sender.net().send(to, copy).await });
        assert!(expect_message(&nodes[1], &nodes[0]).await == sent);
    }));
}

/// Peers see a node disconnect after all its messages; the node itself receives nothing more.
pub fn peers_see_a_closed_node_disconnect(testbed: &impl Testbed) {
    ok(testbed.run(2, |nodes| async move {
        ok(nodes[0].net().send(nodes[1].node(), message(1, Payload::empty())).await);
        nodes[0].net().close();
        assert_eq!(expect_message(&nodes[1], &nodes[0]).await.header, [1]);
        let (node, delivery) = ok(nodes[1].net().receive().await);
        assert_eq!(node, nodes[0].node());
        assert!(matches!(delivery, Delivery::Gone(_)), "{delivery:?}");
        assert_eq!(nodes[0].net().receive().await, Err(Error::Closed.into()));
        let send = nodes[0].net().send(nodes[1].node(), message(2, Payload::empty()));
        assert_eq!(send.await, Err(Error::Closed.into()));
    }));
}

/// Sending to a disconnected node fails, at the latest after the disconnect was reported.
pub fn a_send_to_a_disconnected_node_fails(testbed: &impl Testbed) {
    ok(testbed.run(2, |nodes| async move {
        ok(nodes[0].net().send(nodes[1].node(), message(1, Payload::empty())).await);
        expect_message(&nodes[1], &nodes[0]).await;
        nodes[1].net().close();
        let (node, delivery) = ok(nodes[0].net().receive().await);
        assert!(node == nodes[1].node() && matches!(delivery, Delivery::Gone(_)), "{delivery:?}");
        let refused = nodes[0].net().send(node, message(2, Payload::empty())).await;
        let refused = error(refused);
        assert!(matches!(refused, Error::PeerGone { node: peer, .. } if peer == node), "{refused:?}");
    }));
}

/// If a node disconnects a peer, both sides see a disconnect, and the node sees the reason that it gave.
pub fn disconnecting_a_peer_ends_the_connection_for_both(testbed: &impl Testbed) {
    ok(testbed.run(2, |nodes| async move {
        ok(nodes[0].net().send(nodes[1].node(), message(1, Payload::empty())).await);
        expect_message(&nodes[1], &nodes[0]).await;
        nodes[1].net().give_up(nodes[0].node(), "it is slow");
        let (node, delivery) = ok(nodes[1].net().receive().await);
        assert_eq!((node, delivery), (nodes[0].node(), Delivery::Gone("it is slow".into())));
        let (node, delivery) = ok(nodes[0].net().receive().await);
        assert!(node == nodes[1].node() && matches!(delivery, Delivery::Gone(_)), "{delivery:?}");
        nodes[1].net().give_up(nodes[0].node(), "there is no connection any more");
    }));
}

/// Tasks waiting for a buffer get it in order of arrival, and the whole pool is free at the end.
pub fn buffers_return_to_the_pool_and_waiters_get_them_in_order(testbed: &impl Testbed) {
    let order = ok(testbed.run(1, |nodes| async move {
        let (machine, order) = (nodes[0].clone(), Rc::new(RefCell::new(Vec::new())));
        let held = buffer(&machine, POOL_BYTES * 3 / 4).await;
        // The first request is for more than is free. The second is small enough to be granted, but is still granted
        // after the first.
        for (name, bytes) in [(1, POOL_BYTES / 2), (2, 16), (3, POOL_BYTES)] {
            let (taker, order) = (machine.clone(), order.clone());
            machine.spawn("taker", async move {
                let taken = buffer(&taker, bytes).await;
                order.borrow_mut().push(name);
                taker.sleep_until(taker.now() + Duration::from_millis(1)).await;
                drop(taken);
                Ok(())
            });
        }
        machine.sleep_until(machine.now() + Duration::from_millis(5)).await;
        assert!(order.borrow().is_empty());
        drop(held);
        machine.sleep_until(machine.now() + Duration::from_millis(30)).await;
        assert_eq!(machine.buffers().free_bytes(), POOL_BYTES);
        order.take()
    }));
    assert_eq!(order, [1, 2, 3]);
}

/// A read whose caller stops waiting still returns its buffer, and the disk continues to work.
pub fn a_cancelled_read_returns_its_buffer(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let (machine, disk) = (&nodes[0], &nodes[0].disks()[0]);
        let object = ok(disk.create("dropped", b"").await);
        ok(disk.write(object.id, 0, Payload::from(vec![5; 8192])).await);
        let into = buffer(machine, 8192).await;
        let mut read = Box::pin(disk.read(object.id, 0, into));
        // Poll the read once, so that it begins.
        std::future::poll_fn(|context| {
            let _ = read.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
        drop(read);
        let all = buffer(machine, POOL_BYTES).await;
        drop(all);
        let again = ok(disk.read(object.id, 0, buffer(machine, 8192).await).await);
        assert_eq!(again.slice(0..8192).to_vec(), Some(vec![5; 8192]));
    }));
}

/// A read returns the last written data, and zeros for unwritten bytes or past the end.
pub fn reads_return_written_data_and_zeros_elsewhere(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let (machine, disk) = (&nodes[0], &nodes[0].disks()[0]);
        let object = ok(disk.create("written", b"").await);
        ok(disk.write(object.id, 10_000, Payload::from(vec![1; 100])).await);
        ok(disk.write(object.id, 10_050, Payload::from(vec![2; 100])).await);
        ok(disk.flush(object.id).await);
        let read = ok(disk.read(object.id, 9_990, buffer(machine, 200).await).await);
        let mut expected = vec![0; 200];
        expected[10..60].fill(1);
        expected[60..160].fill(2);
        assert_eq!(read.slice(0..200).to_vec(), Some(expected));
        assert_eq!(ok(disk.open("written").await).bytes, 10_150);
    }));
}

/// Concurrent accesses of many tasks to separate ranges do not disturb each other.
pub fn concurrent_accesses_to_separate_ranges_do_not_interfere(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let machine = nodes[0].clone();
        let object = ok(machine.disks()[0].create("shared", b"").await);
        let (left, done) = (Rc::new(Cell::new(16)), Rc::new(Condition::new()));
        for number in 0..16_u8 {
            let (task, left, done) = (machine.clone(), left.clone(), done.clone());
            machine.spawn("reader and writer", async move {
                let (disk, at) = (&task.disks()[0], u64::from(number) * 4096);
                disk.write(object.id, at, Payload::from(vec![number; 4096])).await?;
                let read = disk.read(object.id, at, buffer(&task, 4096).await).await?;
                assert_eq!(read.slice(0..4096).to_vec(), Some(vec![number; 4096]));
                left.set(left.get() - 1);
                done.wake_all();
                Ok(())
            });
        }
        while left.get() > 0 {
            done.wait().await;
        }
    }));
}

/// An object is found under its name with its label and length; names are listed in order.
pub fn objects_keep_their_names_and_labels(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let disk = &nodes[0].disks()[0];
        for name in ["zebra", "a name with spaces", "größe", "deep/er", "..", "100%"] {
            let made = ok(disk.create(name, name.as_bytes()).await);
            assert_eq!((made.bytes, made.label), (0, name.as_bytes().to_vec()));
            let opened = ok(disk.open(name).await);
            assert_eq!((opened.bytes, opened.label), (0, name.as_bytes().to_vec()));
        }
        assert_eq!(ok(disk.list().await), ["..", "100%", "a name with spaces", "deep/er", "größe", "zebra"]);
    }));
}

/// Opening or removing a missing object fails with `NotFound`, and creating an existing one with `Exists`.
pub fn missing_and_existing_objects_are_reported_as_errors(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let disk = &nodes[0].disks()[0];
        assert!(matches!(error(disk.open("nothing").await), Error::NotFound { .. }));
        assert!(matches!(error(disk.remove("nothing").await), Error::NotFound { .. }));
        ok(disk.create("thing", b"1").await);
        assert!(matches!(error(disk.create("thing", b"2").await), Error::Exists { .. }));
        assert_eq!(ok(disk.open("thing").await).label, b"1");
        ok(disk.remove("thing").await);
        assert!(matches!(error(disk.open("thing").await), Error::NotFound { .. }));
        ok(disk.create("thing", b"3").await);
        ok(disk.create("other", b"4").await);
        let names = ["nothing", "thing", "other"].map(str::to_owned);
        ok(disk.remove_all(&names).await);
        assert_eq!(ok(disk.list().await), [""; 0], "all existing objects are removed");
    }));
}

/// Iterating over data ranges finds all written data, and bytes between them read as zeros.
pub fn data_ranges_include_all_written_data(testbed: &impl Testbed) {
    const BYTES: u64 = 5 << 20;
    const WRITTEN: [(u64, u64); 4] = [(70_000, 3), (1 << 20, 4096), (3 << 20, 100_000), (BYTES - 7, 2)];
    ok(testbed.run(1, |nodes| async move {
        let (machine, disk) = (&nodes[0], &nodes[0].disks()[0]);
        let object = ok(disk.create("sparse", b"").await).id;
        assert_eq!(ok(disk.data_after(object, 0).await), None, "the object is empty");
        ok(disk.resize(object, BYTES).await);
        for (offset, bytes) in WRITTEN {
            ok(disk.write(object, offset, Payload::from(vec![1; bytes as usize])).await);
        }
        let (mut at, mut found) = (0, Vec::new());
        while let Some(stretch) = ok(disk.data_after(object, at).await) {
            assert!(
                at <= stretch.start && stretch.start < stretch.end && stretch.end <= BYTES,
                "{stretch:?}"
            );
            let bytes = (stretch.start - at).min(POOL_BYTES);
            let hole = ok(disk.read(object, at, buffer(machine, bytes).await).await).slice(0..bytes).to_vec();
            assert!(hole.expect("bytes").iter().all(|byte| *byte == 0), "from {at} on");
            at = stretch.end;
            found.push(stretch);
        }
        for (offset, bytes) in WRITTEN {
            let has_all = |data: &Range<u64>| data.start <= offset && offset + bytes <= data.end;
            assert!(found.iter().any(has_all), "{bytes} bytes at {offset}: {found:?}");
        }
        let within = ok(disk.data_after(object, (1 << 20) + 10).await);
        assert_eq!(within.map(|data| data.start), Some((1 << 20) + 10));
        assert_eq!(ok(disk.data_after(object, BYTES).await), None);
    }));
}

/// Truncating an object loses its end permanently; extending it appends zeros.
pub fn resizing_truncates_or_extends_an_object(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let (machine, disk) = (&nodes[0], &nodes[0].disks()[0]);
        let object = ok(disk.create("resized", b"").await);
        ok(disk.write(object.id, 0, Payload::from(vec![1; 1000])).await);
        ok(disk.resize(object.id, 400).await);
        ok(disk.resize(object.id, 800).await);
        assert_eq!(ok(disk.open("resized").await).bytes, 800);
        let read = ok(disk.read(object.id, 0, buffer(machine, 800).await).await);
        let mut expected = vec![1; 400];
        expected.resize(800, 0);
        assert_eq!(read.slice(0..800).to_vec(), Some(expected));
    }));
}

/// An object that was never flushed behaves like any other: unique by name, readable, writable, flushable and
/// removable.
pub fn an_unflushed_object_behaves_like_any_other(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let (machine, disk) = (&nodes[0], &nodes[0].disks()[0]);
        let object = ok(disk.create("new", b"label").await);
        assert_eq!((object.bytes, &*object.label), (0, &b"label"[..]));
        assert!(matches!(error(disk.create("new", b"2").await), Error::Exists { .. }));
        assert_eq!(ok(disk.list().await), ["new"]);
        for step in 0..3 {
            ok(disk.write(object.id, step * 100, Payload::from(vec![step as u8 + 1; 100])).await);
            let opened = ok(disk.open("new").await);
            assert_eq!(
                (opened.id, opened.bytes, &*opened.label),
                (object.id, step * 100 + 100, &b"label"[..])
            );
            let read = ok(disk.read(object.id, step * 100, buffer(machine, 100).await).await);
            assert_eq!(read.slice(0..100).to_vec(), Some(vec![step as u8 + 1; 100]));
            if step > 0 {
                ok(disk.flush(object.id).await);
            }
        }
        assert!(matches!(error(disk.create("new", b"2").await), Error::Exists { .. }));
        ok(disk.remove("new").await);
        // An object that was never flushed can be removed, too.
        ok(disk.create("new", b"second").await);
        ok(disk.remove("new").await);
        assert!(matches!(error(disk.open("new").await), Error::NotFound { .. }));
        ok(disk.create("new", b"third").await);
        assert!(matches!(error(disk.create("new", b"fourth").await), Error::Exists { .. }));
    }));
}

/// A disk has a stable identity, different from that of any other disk.
pub fn each_disk_has_a_unique_stable_identity(testbed: &impl Testbed) {
    ok(testbed.run(2, |nodes| async move {
        let identity = async |node: usize| ok(nodes[node].disks()[0].identity().await);
        let first = identity(0).await;
        ok(nodes[0].disks()[0].create("thing", b"").await);
        assert_eq!(identity(0).await, first);
        assert_ne!(identity(1).await, first);
        assert_eq!(ok(nodes[0].disks()[0].list().await), ["thing"]);
    }));
}

/// The failure of a detached task is reported.
pub fn errors_of_detached_tasks_are_reported(testbed: &impl Testbed) {
    let result = testbed.run(1, |nodes| async move {
        let failure = Error::Io { what: "canary".into(), why: "on purpose".into() };
        nodes[0].spawn("canary task", async move { Err(failure.into()) });
        nodes[0].sleep_until(nodes[0].now() + Duration::from_millis(50)).await;
    });
    let text = result.expect_err("the run fails").to_string();
    assert!(text.contains("canary"), "{text}");
}

/// Tasks that wait on a condition are woken first come, first served.
pub fn waiting_tasks_of_a_node_are_woken_in_order(testbed: &impl Testbed) {
    let order = ok(testbed.run(1, |nodes| async move {
        let machine = nodes[0].clone();
        let (condition, order) = (Rc::new(Condition::new()), Rc::new(RefCell::new(Vec::new())));
        for number in 0..5 {
            let (condition, order) = (condition.clone(), order.clone());
            machine.spawn("waiter", async move {
                condition.wait().await;
                order.borrow_mut().push(number);
                Ok(())
            });
        }
        machine.sleep_until(machine.now() + Duration::from_millis(1)).await;
        condition.wake_one();
        condition.wake_one();
        condition.wake_all();
        machine.sleep_until(machine.now() + Duration::from_millis(1)).await;
        order.take()
    }));
    assert_eq!(order, [0, 1, 2, 3, 4]);
}

/// All tasks of a group have ended when it is joined, and the first failure is reported, once.
pub fn a_joined_task_group_reports_its_first_failure(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let (machine, group) = (nodes[0].clone(), TaskGroup::<Box<Error>>::new());
        let (start, ended) = (machine.now(), Rc::new(Cell::new(0)));
        for number in 0..4 {
            let (sleeper, ended) = (machine.clone(), ended.clone());
            group.spawn(&machine, "task", async move {
                sleeper.sleep_until(start + Duration::from_millis(10 * number)).await;
                ended.set(ended.get() + 1);
                let fails = number == 1 || number == 2;
                if fails {
                    Err(Error::Io { what: "task".into(), why: number.to_string() }.into())
                } else {
                    Ok(())
                }
            });
        }
        assert!(!group.has_failed());
        let early = error(group.join_or_fail().await);
        assert!(ended.get() < 4 && early.to_string() == "task: 1", "{early}");
        let late = error(group.join().await);
        assert!(ended.get() == 4 && late.to_string() == "task: 2", "{late}");
        assert_eq!(group.join().await, Ok(()), "reported once");
    }));
}

/// A task whose group is dropped is dropped with all its state, at any wait.
pub fn tasks_are_dropped_with_their_group(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let (machine, begun, ended) = (nodes[0].clone(), Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let all = InFlight::new();
        {
            let group = TaskGroup::<Box<Error>>::new();
            let deadline = machine.now() + Duration::from_millis(50);
            for condition in [None, Some(Condition::new())] {
                let (machine, begun, ended) = (machine.clone(), begun.clone(), ended.clone());
                let operation = all.begin();
                group.spawn(&machine.clone(), "task", async move {
                    let _operation = operation;
                    begun.set(begun.get() + 1);
                    match condition {
                        Some(condition) => condition.wait().await,
                        None => machine.sleep_until(deadline).await,
                    }
                    ended.set(true);
                    Ok(())
                });
            }
            machine.sleep_until(machine.now() + Duration::from_millis(5)).await;
            assert!((begun.get(), all.count()) == (2, 2));
        }
        all.none().await;
        machine.sleep_until(machine.now() + Duration::from_millis(60)).await;
        assert!(!ended.get(), "a task continued without its group");
    }));
}

/// Spans of interleaved tasks are on separate rows. The spans of each row nest and are in order of time. A row is
/// reused when its task is within no span.
pub fn spans_of_concurrent_tasks_are_on_separate_rows(testbed: &impl Testbed) {
    const TASKS: u64 = 3;
    let ring = Rc::new(RefCell::new(NoteRing::new(1000)));
    let recorded = ring.clone();
    ok(testbed.run(1, |nodes| async move {
        let machine = nodes[0].clone();
        machine.notes().record(recorded);
        // The second group of tasks reuses the rows of the first.
        for _ in 0..2 {
            let group = TaskGroup::<Box<Error>>::new();
            let start = machine.now();
            for number in 0..TASKS {
                let noting = machine.clone();
                group.spawn(&machine, "noting", async move {
                    let outer = noting.notes().span("outer", || [("number", number)]);
                    noting.sleep_until(start + Duration::from_millis(2 + number)).await;
                    assert_eq!(noting.notes().here(), outer.place());
                    {
                        let _inner = noting.notes().span("inner", || []);
                        noting.notes().sent(|| number);
                        noting.sleep_until(start + Duration::from_millis(20 - number)).await;
                    }
                    noting.notes().received(outer.place(), || number);
                    Ok(())
                });
            }
            ok(group.join().await);
        }
        machine.notes().count(("part", 7), "number", 9);
        machine.notes().stop();
    }));
    let ring = ring.borrow();
    let rows: Vec<(u32, &NoteRow)> =
        (0..).zip(ring.rows()).filter(|(_, row)| !is_of_processor(row)).collect();
    let shown: Vec<(&str, bool)> = rows.iter().map(|(_, row)| (row.name.as_str(), row.counts)).collect();
    let lanes = [("noting", false), ("noting 2", false), ("noting 3", false)];
    assert_eq!(shown, [&lanes[..], &[("part 7: number", true)]].concat());
    let mut numbers = [0; TASKS as usize];
    for &(row, _) in &rows[..TASKS as usize] {
        let notes: Vec<_> = ring.notes().filter(|note| note.row.0 == row).collect();
        assert!(notes.is_sorted_by_key(|note| note.time), "row {row}");
        let mut notes = notes.into_iter().map(|note| &note.what);
        for _ in 0..2 {
            let Some(KeptEvent::Begin { name: "outer", arguments }) = notes.next() else {
                panic!("row {row}")
            };
            let [("number", number)] = arguments[..] else { panic!("{arguments:?}") };
            numbers[number as usize] += 1;
            let inner = KeptEvent::Begin { name: "inner", arguments: [].into() };
            let (sent, received) = (KeptEvent::Sent(number), KeptEvent::Received(number));
            let expected = [inner, sent, KeptEvent::End, received, KeptEvent::End];
            expected.iter().for_each(|what| assert_eq!(notes.next(), Some(what), "row {row}"));
        }
        assert_eq!(notes.next(), None);
    }
    assert_eq!(numbers, [2; TASKS as usize]);
    let counted = ring.notes().find(|note| note.row.0 == rows[TASKS as usize].0);
    assert_eq!(counted.map(|note| &note.what), Some(&KeptEvent::Count(9)));
}

/// Activities of a part of a node are recorded when they end: on a separate row, as nested spans.
pub fn activities_of_parts_are_recorded(testbed: &impl Testbed) {
    let ring = Rc::new(RefCell::new(NoteRing::new(100)));
    let recorded = ring.clone();
    ok(testbed.run(1, |nodes| async move {
        let (machine, notes) = (&nodes[0], nodes[0].notes());
        let stretch = |name, arguments| NotedStretch { name, since: machine.now(), arguments };
        let stretches = [stretch("outer", vec![("number", 1)]), stretch("inner", vec![])];
        notes.did_until(("part", 2), &stretches, machine.now());
        notes.record(recorded);
        notes.did_until(("part", 2), &stretches, machine.now());
        notes.stop();
    }));
    let ring = ring.borrow();
    let row = ring.rows().iter().position(|row| row.name == "part 2").expect("a row for part 2");
    let notes: Vec<_> =
        ring.notes().filter(|note| note.row.0 as usize == row).map(|note| &note.what).collect();
    let begin = |name, arguments: &[_]| KeptEvent::Begin { name, arguments: arguments.into() };
    let (outer, inner) = (begin("outer", &[("number", 1)]), begin("inner", &[]));
    assert_eq!(notes, [&outer, &inner, &KeptEvent::End, &KeptEvent::End]);
}

/// Returns true for a row that counts the processor load. Only some machines record it.
fn is_of_processor(row: &NoteRow) -> bool {
    row.counts && row.name.starts_with("processor ")
}

/// Spans that began without a listener, or with an earlier listener, are not recorded, and the closures for their
/// arguments are not called.
pub fn no_event_is_recorded_without_a_listener(testbed: &impl Testbed) {
    ok(testbed.run(1, |nodes| async move {
        let notes = nodes[0].notes();
        let early = notes.span("early", || -> [(&'static str, u64); 0] { panic!("nobody listens") });
        notes.sent(|| panic!("nobody listens"));
        let rings = [(); 2].map(|()| Rc::new(RefCell::new(NoteRing::new(10))));
        notes.record(rings[0].clone());
        drop(early);
        let first = notes.span("first", || []);
        notes.record(rings[1].clone());
        let second = notes.span("second", || []);
        drop(first);
        notes.received(second.place(), || 1);
        notes.stop();
        drop(second);
        let lengths = rings.map(|ring| {
            let ring = ring.borrow();
            ring.notes().filter(|note| !is_of_processor(&ring.rows()[note.row.0 as usize])).count()
        });
        assert_eq!(lengths, [1, 2]);
    }));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    macro_rules! names {
        ($($law:ident,)*) => { [$(stringify!($law)),*] };
    }

    #[test]
    fn every_law_is_in_the_list() {
        let sources = [include_str!("conformance.rs"), include_str!("conformance/metadata.rs")];
        let defined = sources
            .into_iter()
            .flat_map(str::lines)
            .filter_map(|line| line.strip_prefix("pub fn ")?.strip_suffix("(testbed: &impl Testbed) {"));
        assert_eq!(defined.collect::<BTreeSet<_>>(), BTreeSet::from(for_all_laws!(names)));
    }
}
