//! Promises about clients that misbehave, by mistake or on purpose: other clients are served, and the resources of the
//! client are released.

use std::cell::Cell;
use std::rc::Rc;

use fs::protocol::{
    BlockWrite, CollectiveId, Direction, Frame, Listed, MemoryId, Reply, Request, Selected, SelectedPart,
    Selecting, Selectors,
};
use fs::{
    Client, CollectiveSettings, Configuration, Entry, EntryRun, Error, FailureKind, FileId, Group,
    IoNodeSettings, ListedStretch, Threads,
};
use layout::{Extent, Pattern, Problem, Selection};
use machine::conformance::Testbed;
use machine::{Class, Delivery, Duration, Machine, Memory, Message, Net, NodeId, Payload};

use super::attackers::{answer, collective_read, fetched_write, send};
use super::faulty::Faulty;
use super::tasks::Tasks;
use super::tasks::rest;
use super::{
    BLOCK, Base, contents, created, created_with, opened, read, refresh, run, small, start, stored, write,
};

/// Time after which the I/O nodes in these tests disconnect a silent client.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn settings(base: Base) -> IoNodeSettings {
    IoNodeSettings { cache_blocks: 16, wait_timeout: Some(PATIENCE), ..small(base, Threads::Pool(16)) }
}

/// Returns the extent of a block.
fn block_extent(block: u64) -> Extent {
    Extent::new(block * BLOCK, BLOCK)
}

/// Receives without answering until the other side disconnects; returns the reason.
async fn stay_silent(node: &impl Machine) -> String {
    loop {
        match node.net().receive().await {
            Ok((_, Delivery::Message(_))) => {}
            Ok((_, Delivery::Gone(why))) => return why,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A client that does not deliver the data of its writes blocks no thread that others need, and is disconnected. Then
/// its blocks can be used again.
pub fn a_client_that_answers_nothing_blocks_no_others(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes[..2], 1, settings(base)).await;
        let file = created(&clients[0], 1).await;
        let begun = nodes[1].now();
        for block in 0..40 {
            let (target, request) = (nodes[0].node(), fetched_write(FileId(1), block_extent(100 + block)));
            send(&nodes[2], target, Class::Demand, 1 + block, request, Payload::empty()).await;
        }
        // Commands use no threads of the pool. So the answer to a later command shows that all requests above have
        // arrived.
        clients[0].list_numbered().await.expect("served");
        write(&file, 0, &contents(4 * BLOCK)).await;
        assert!(read(&file, 0, 4 * BLOCK).await == contents(4 * BLOCK));
        let served = nodes[1].now().since(begun);
        stay_silent(&nodes[2]).await;
        let given_up = nodes[1].now().since(begun);
        // In the report's configuration threads wait for the client, but only until the I/O node disconnects it.
        assert!(base.configuration == Configuration::Report || served < given_up, "{served} and {given_up}");
        let bytes = (140 * BLOCK) as usize;
        assert!(read(&file, 0, 140 * BLOCK).await.len() < bytes, "none of its data were written");
        write(&file, 0, &contents(140 * BLOCK)).await;
        assert!(read(&file, 0, 140 * BLOCK).await == contents(140 * BLOCK));
    });
}

/// If a client answers nine of ten requests of an I/O node, nine of ten of its writes complete. The other writes wait
/// until the client is silent and is disconnected.
pub fn unanswered_fetches_delay_only_their_own_writes(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes[..2], 1, settings(base)).await;
        let file = created(&clients[0], 1).await;
        let target = nodes[0].node();
        for tag in 1..=40 {
            let request = fetched_write(FileId(1), block_extent(tag));
            send(&nodes[2], target, Class::Demand, tag, request, Payload::empty()).await;
        }
        let (mut asked, mut done) = (0, 0);
        while let Ok((_, Delivery::Message(message))) = nodes[2].net().receive().await {
            match Frame::decode(&message.header) {
                Ok(Frame::Request(tag, Request::Memget { bytes, .. })) => {
                    asked += 1;
                    if asked % 10 != 0 {
                        let header = Frame::Reply(tag, Reply::Done).encode();
                        let payload = contents(u64::from(bytes)).into();
                        let message = Message { header, payload, ..message };
                        nodes[2].net().send(target, message).await.expect("there is a connection");
                    }
                }
                Ok(Frame::Reply(_, Reply::Failed(failure))) => panic!("{failure}"),
                Ok(Frame::Reply(..)) => done += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((asked, done), (40, 36));
        write(&file, 0, &contents(41 * BLOCK)).await;
        assert!(read(&file, 0, 41 * BLOCK).await == contents(41 * BLOCK));
    });
}

/// After a client has disconnected, fetches from it fail, its queued requests are dropped, and all memory is available
/// to other clients.
pub fn a_disconnected_client_leaves_nothing_behind(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        // The I/O node must not disconnect the client for silence during the test: the client itself closes the
        // connection.
        let wait_timeout = Some(Duration::from_secs(600));
        let settings = IoNodeSettings { wait_timeout, ..settings(base) };
        let clients = start(base, &nodes[..2], 1, settings).await;
        let file = created(&clients[0], 1).await;
        let target = nodes[0].node();
        for tag in 1..=300 {
            let request = match tag % 3 {
                0 => fetched_write(FileId(1), block_extent(tag)),
                1 => Request::Write(BlockWrite::new(FileId(1), 0, 1000 * BLOCK)),
                _ => Request::Read { file: FileId(1), stripe: 0, offset: 7, bytes: 30, is_alone: false },
            };
            let class = if tag % 5 == 0 { Class::Background } else { Class::Demand };
            send(&nodes[2], target, class, tag, request, contents(BLOCK).into()).await;
        }
        clients[0].list_numbered().await.expect("served");
        nodes[2].net().close();
        // A block pinned for a fetch could not be evicted.
        file.truncate(0).await.expect("cut");
        write(&file, 0, &contents(40 * BLOCK)).await;
        assert!(read(&file, 0, 40 * BLOCK).await == contents(40 * BLOCK));
        clients[0].remove_numbered(&[FileId(1)]).await.expect("removed");
    });
}

/// A directory of extents that names a file that is not open, or bytes beyond the limits of files and memories, is
/// rejected. The error names the file, and no data are written.
pub fn an_invalid_directory_of_extents_is_rejected(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes[..2], 1, settings(base)).await;
        let file = created(&clients[0], 1).await;
        write(&file, 0, &contents(4 * BLOCK)).await;
        let answer = async |tag, request| answer(&nodes[2], nodes[0].node(), tag, request).await;
        let entry = |offset, at| Entry { offset, bytes: 8, at, time: 0 };
        let run = |first, stride| ListedStretch::Run(EntryRun { first, stride, later: vec![0; 9] });
        let beyond = "no file and no memory has them";
        for (tag, id, stretch, why) in [
            (2, 7, ListedStretch::One(entry(0, 0)), "file 0000000000000007 is not open"),
            (4, 1, ListedStretch::One(entry(u64::MAX - 3, 0)), beyond),
            (6, 1, ListedStretch::One(entry(0, u64::MAX - 3)), beyond),
            (8, 1, run(entry(0, 0), u64::MAX / 8), beyond),
            (10, 1, run(Entry { bytes: 1 << 62, ..entry(0, 0) }, 0), beyond),
            (12, 1, run(Entry { bytes: 1 << 40, ..entry(0, 0) }, 0), "more than 4194304 pieces"),
        ] {
            let memory = MemoryId::Collective(CollectiveId { group: 5, operation: tag as u32 });
            let listed = Request::Stretches { memory, stretches: vec![(FileId(id), vec![stretch])] };
            assert_eq!(answer(tag, listed).await, Reply::Done);
            let members = vec![nodes[2].node().0];
            let (direction, presort, queued) = (Direction::Write, true, true);
            let request =
                Request::MoveListed(Box::new(Listed { direction, presort, queued, memory, members }));
            match answer(tag + 1, request).await {
                Reply::Failed(failure) => assert!(failure.text.contains(why), "{}: {why}", failure.text),
                other => panic!("{other:?}"),
            }
        }
        assert!(read(&file, 0, 5 * BLOCK).await == contents(4 * BLOCK));
    });
}

/// A selection of a file that is not open, for a missing memory, or sent in too few parts is rejected without effect.
pub fn an_invalid_selection_is_rejected(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes[..2], 1, settings(base)).await;
        let file = created(&clients[0], 1).await;
        write(&file, 0, &contents(4 * BLOCK)).await;
        let answer = async |tag, request| answer(&nodes[2], nodes[0].node(), tag, request).await;
        let selection = Selection::vector(Extent::new(0, 8), 10, BLOCK).expect("a vector");
        let part = SelectedPart { at: 0, selection: selection.clone(), stripes: vec![0] };
        let far = SelectedPart { at: u64::MAX - 8, ..part.clone() };
        let elsewhere = SelectedPart { stripes: vec![0, 1], ..part.clone() };
        let members = || Selectors::Members(vec![nodes[2].node().0]);
        for (tag, file, parts, selected, selectors, why) in [
            (2, 7, 1, Some(&part), members(), "stripe 0 of file 0000000000000007 is not open"),
            (4, 1, 2, Some(&part), members(), "1 of 2 parts"),
            (6, 1, 1, None, members(), "0 of 1 parts"),
            (8, 1, 1, Some(&far), members(), "beyond the end of memory"),
            (10, 1, 1, Some(&elsewhere), members(), "stripe 1 of file"),
            (12, 1, 1, None, Selectors::Asker(far.clone()), "beyond the end of memory"),
            (14, 1, 1, None, Selectors::Asker(elsewhere.clone()), "stripe 1 of file"),
            (16, 8, 1, Some(&part), members(), "bytes of another file"),
        ] {
            let memory = MemoryId::Collective(CollectiveId { group: 5, operation: tag as u32 });
            if let Some(part) = selected {
                let of = FileId(if file == 8 { 1 } else { file });
                let selecting = Selecting { memory, file: of, parts, part: part.clone() };
                let reply = answer(tag, Request::Select(Box::new(selecting))).await;
                assert!(matches!(reply, Reply::Done | Reply::Accepted { .. }), "{reply:?}");
            }
            let request = Selected {
                file: FileId(file),
                direction: Direction::Write,
                presort: true,
                queued: true,
                to_media: false,
                memory,
                selectors,
            };
            match answer(tag + 1, Request::MoveSelected(Box::new(request))).await {
                Reply::Failed(failure) => assert!(failure.text.contains(why), "{}: {why}", failure.text),
                other => panic!("{other:?}"),
            }
        }
        assert!(read(&file, 0, 5 * BLOCK).await == contents(4 * BLOCK));
    });
}

/// A client and an I/O node with different versions of the protocol each report it once, without waiting.
pub fn another_protocol_version_is_reported_once(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        // It answers every message with an error in its version of the protocol.
        let (stranger, received) = (nodes[0].clone(), Rc::new(Cell::new(0)));
        let count = received.clone();
        nodes[0].spawn("of another version", async move {
            while let Ok((from, delivery)) = stranger.net().receive().await {
                let Delivery::Message(message) = delivery else { continue };
                count.set(count.get() + 1);
                let mut header = Frame::Reply(0, Reply::Done).encode();
                header[2] += 1;
                stranger.net().send(from, Message { header, ..message }).await?;
            }
            Ok(())
        });
        let refused = Client::connect(nodes[1].clone(), vec![nodes[0].node()], base.client()).await;
        let error = refused.err().expect("it speaks another version");
        let is_reported = matches!(*error, Error::Machine(machine::Error::OtherVersion { .. }));
        assert!(is_reported, "{error}");
        rest(&nodes[1]).await;
        assert!(
            received.get() <= 2,
            "the question, and that the answer was not understood: {}",
            received.get()
        );
    });
}

/// A collective request that names missing nodes, or one node several times, is rejected at once.
pub fn a_group_with_missing_or_repeated_nodes_is_rejected(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes[..2], 1, settings(base)).await;
        let file = created(&clients[0], 1).await;
        write(&file, 0, &contents(4 * BLOCK)).await;
        let (client, there) = (&nodes[2], nodes[1].node().0);
        for (other, why) in [(1 << 40, "not connected"), (there, "twice")] {
            let request = collective_read(FileId(1), 4 * BLOCK, BLOCK, true, vec![there, other]);
            send(client, nodes[0].node(), Class::Control, 1, request, Payload::empty()).await;
            let Ok((_, Delivery::Message(answer))) = client.net().receive().await else {
                panic!("an answer")
            };
            match Frame::decode(&answer.header) {
                Ok(Frame::Reply(1, Reply::Failed(failure))) => {
                    assert!(failure.text.contains(why), "{failure}")
                }
                other => panic!("{other:?}"),
            }
        }
    });
}

/// Programs stopped in the middle of collective operations do not keep other programs from collective operations.
/// Neither does a program with many requests.
pub fn stopped_collective_operations_do_not_block_others(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let clients = start(base, &nodes[..2], 1, settings(base)).await;
        let file = created(&clients[0], 1).await;
        write(&file, 0, &contents(4 * BLOCK)).await;
        let begun = nodes[1].now();
        for stopped in &nodes[2..] {
            for tag in 0..16 {
                let members = vec![stopped.node().0];
                let request = collective_read(FileId(1), 4 * BLOCK, BLOCK, tag % 2 == 0, members);
                send(stopped, nodes[0].node(), Class::Control, 1 + tag, request, Payload::empty()).await;
            }
        }
        let group = Group::new(1, vec![nodes[1].node()], 0);
        let view = "rb".parse::<Pattern>().and_then(|rb| rb.view(&Problem::new(4 * BLOCK, BLOCK, 1)));
        let (view, memory) = (view.expect("a view"), Memory::real(vec![0; (4 * BLOCK) as usize]));
        for settings in [CollectiveSettings::disk_directed(), CollectiveSettings::disk_directed().queued()] {
            file.read_collective(&group, &view, &memory, settings).await.expect("read");
        }
        let served = nodes[1].now().since(begun);
        for stopped in &nodes[2..] {
            stay_silent(stopped).await;
        }
        let given_up = nodes[1].now().since(begun);
        assert!(served < given_up, "{served} and {given_up}");
        assert!(memory.get(0, 4 * BLOCK) == Payload::from(contents(4 * BLOCK)));
        file.read_collective(
            &group,
            &view,
            &Memory::real(vec![0; (4 * BLOCK) as usize]),
            CollectiveSettings::disk_directed(),
        )
        .await
        .expect("read");
    });
}

/// A collective request that is distributed byte by byte does not block other requests, and takes no more memory than
/// they do.
pub fn a_request_with_very_many_pieces_blocks_no_others(testbed: &impl Testbed, base: Base) {
    const LARGE: u64 = 1 << 20;
    for queued in [false, true] {
        run(testbed, 4, move |nodes| async move {
            let settings = IoNodeSettings { block_bytes_max: LARGE, ..settings(base) };
            let clients = start(base, &nodes[..2], 1, settings).await;
            let large = created_with(&clients[0], 1, LARGE).await;
            large.truncate(2 * LARGE).await.expect("extended");
            let file = created(&clients[0], 2).await;
            write(&file, 0, &contents(4 * BLOCK)).await;
            let target = nodes[0].node();
            send(&nodes[3], target, Class::Control, 1, Request::Describe, Payload::empty()).await;
            let members: Vec<u64> = nodes[2..].iter().map(|node| node.node().0).collect();
            for tag in 1..=16 {
                let request = collective_read(FileId(1), 2 * LARGE, 1, queued, members.clone());
                send(&nodes[2], target, Class::Control, tag, request, Payload::empty()).await;
            }
            for _ in 0..20 {
                clients[0].list_numbered().await.expect("served");
                assert!(read(&file, 0, 4 * BLOCK).await == contents(4 * BLOCK));
            }
            // Both receive requests, and neither answers.
            stay_silent(&nodes[2]).await;
            stay_silent(&nodes[3]).await;
            clients[0].remove_numbered(&[FileId(1)]).await.expect("removed");
        });
    }
}

/// A defect triggered by a request fails only that request: the client gets an error, and all resources of the request
/// are released.
///
/// For machines that contain panics of requests; on other machines a panic must fail the run.
pub fn a_defect_fails_only_one_request(testbed: &impl Testbed, base: Base) {
    for threads in [Threads::Pool(4), Threads::PerRequest] {
        run(testbed, 2, move |nodes| async move {
            let nodes = Faulty::all(nodes);
            let settings = IoNodeSettings { cache_blocks: 4, threads, ..settings(base) };
            let client = &start(base, &nodes, 1, settings).await[0];
            let file = created(client, 1).await;
            // More requests than there are threads, hands and blocks.
            nodes[0].faults().defective_copies.set(20);
            for block in 0..20 {
                let memory = Memory::real(contents(10));
                let error = file.write(block * BLOCK, 10, &memory, 0).await.expect_err("it meets a defect");
                assert!(error.to_string().contains("a defect of the I/O node"), "{error}");
            }
            write(&file, 0, &contents(20 * BLOCK)).await;
            assert!(read(&file, 0, 20 * BLOCK).await == contents(20 * BLOCK));
            file.flush().await.expect("flushed");
            client.remove_numbered(&[FileId(1)]).await.expect("removed: no block of it is in use");
        });
    }
}

/// A barrier ignores non-members, and counts a member once.
pub fn only_members_count_at_a_barrier(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes[..3], 1, settings(base)).await;
        let members: Vec<NodeId> = nodes[1..3].iter().map(|node| node.node()).collect();
        let (stranger, first) = (&nodes[3], nodes[1].node());
        let enter = |operation| Request::EnterBarrier {
            barrier: CollectiveId { group: 5, operation },
            step: None,
            contribution: Vec::new(),
            failure: None,
        };
        for tag in 1..=200 {
            let operation = 1 + tag as u32 / 2;
            send(stranger, first, Class::Control, tag, enter(operation), Payload::empty()).await;
        }
        rest(stranger).await;
        let (tasks, late) = (Tasks::default(), Rc::new(Cell::new(false)));
        let (client, group, other) = (clients[0].clone(), Group::new(5, members.clone(), 0), late.clone());
        tasks.begin(&nodes[1], async move {
            client.barrier(&group).await.expect("met");
            assert!(other.get(), "the other member has not entered yet");
        });
        rest(stranger).await;
        late.set(true);
        clients[1].barrier(&Group::new(5, members, 1)).await.expect("met");
        tasks.wait().await;
        let mut refused = 0;
        // Half of the requests enter a barrier twice or too often. At the first barrier the stranger is rejected as a
        // non-member.
        while refused < 100 {
            let Ok((_, Delivery::Message(answer))) = stranger.net().receive().await else {
                panic!("an answer")
            };
            match Frame::decode(&answer.header) {
                Ok(Frame::Reply(_, Reply::Failed(_))) => refused += 1,
                other => panic!("{other:?}"),
            }
        }
    });
}

/// Reading data that could not be written to a disk fails, also for other clients, until the data are written again.
/// Such data do not extend the file.
pub fn lost_data_are_not_read_as_zeros(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let settings = IoNodeSettings { cache_blocks: 4, ..settings(base) };
        let clients = start(base, &nodes[..3], 1, settings).await;
        let file = created(&clients[0], 1).await;
        write(&file, 0, &contents(4 * BLOCK)).await;
        file.flush().await.expect("flushed");
        let other = opened(&clients[1], 1).await;
        nodes[0].faults().failing_writes.set(3);
        // Write one existing block in the middle of the file, and two blocks behind the end.
        for block in [1, 4, 5] {
            write(&file, block * BLOCK + 5, &[7; 20]).await;
        }
        file.flush().await.expect_err("each writer gets the error once");
        let memory = Memory::real(vec![0; BLOCK as usize]);
        let error = other.read(BLOCK, BLOCK, &memory, 0).await.expect_err("the written data are lost");
        assert!(error.is_remote(FailureKind::Damaged), "{error}");
        assert!(error.to_string().contains("did not reach the disk"), "{error}");
        assert!(read(&other, 0, BLOCK).await == contents(BLOCK), "adjacent data are readable");
        assert!(read(&other, 2 * BLOCK, 2 * BLOCK).await == contents(4 * BLOCK)[2 * BLOCK as usize..]);
        assert_eq!(stored(&clients[1], 1, BLOCK).await.bytes, 4 * BLOCK);
        // Eviction from the cache does not repair the block; writing the block again does.
        write(&other, 10 * BLOCK, &contents(8 * BLOCK)).await;
        other.flush().await.expect("flushed");
        other.read(BLOCK, BLOCK, &memory, 0).await.expect_err("the written data are lost");
        write(&file, BLOCK, &contents(BLOCK)).await;
        file.flush().await.expect("flushed");
        assert!(read(&other, BLOCK, BLOCK).await == contents(BLOCK));
        // For an impossible offset the error must not blame the disk.
        let far =
            Request::Read { file: FileId(1), stripe: 0, offset: (1 << 63) - 1024, bytes: 1, is_alone: false };
        send(&nodes[3], nodes[0].node(), Class::Demand, 1, far, Payload::empty()).await;
        let Ok((_, Delivery::Message(answer))) = nodes[3].net().receive().await else { panic!("an answer") };
        match Frame::decode(&answer.header) {
            Ok(Frame::Reply(1, Reply::Failed(failure))) => {
                assert!(failure.text.contains("beyond the limit of a stripe"), "{failure}");
            }
            other => panic!("{other:?}"),
        }
    });
}

/// Ends the connection of a node to an I/O node that is serving its requests, and lets the I/O node continue.
async fn end_connection<M: Machine>(node: &Faulty<M>, io_node: &Faulty<M>) {
    rest(node).await;
    node.net().give_up(io_node.node(), "the network is broken");
    stay_silent(node).await;
    rest(node).await;
    io_node.faults().release();
    rest(node).await;
}

/// Requests over a connection that has ended have no further effect, even if an I/O node has begun to serve them. The
/// client may repeat them over a new connection, and then send other requests.
pub fn requests_of_an_ended_connection_have_no_effect(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let settings = IoNodeSettings { cache_blocks: 4, ..settings(base) };
        let clients = start(base, &nodes[..2], 1, settings).await;
        let file = created(&clients[0], 1).await;
        let faults = nodes[0].faults();
        // All blocks of the cache are being written to the disk, so the next one waits for a slot.
        faults.hold();
        write(&file, 0, &contents(4 * BLOCK)).await;
        let late = Request::Write(BlockWrite::new(FileId(1), 0, 9 * BLOCK));
        let data = Payload::from(vec![7; BLOCK as usize]);
        send(&nodes[2], nodes[0].node(), Class::Background, 1, late, data).await;
        end_connection(&nodes[2], &nodes[0]).await;
        assert_eq!(refresh(&clients[0], &file).await, 4 * BLOCK, "no data were written beyond it");
        // Writes in flight to the disk complete before a truncation.
        faults.hold();
        write(&file, 0, &contents(BLOCK)).await;
        let cut = Request::Resize { file: FileId(1), stripes: vec![(0, 0)] };
        send(&nodes[2], nodes[0].node(), Class::Control, 2, cut, Payload::empty()).await;
        end_connection(&nodes[2], &nodes[0]).await;
        assert!(read(&file, 0, 4 * BLOCK).await == contents(4 * BLOCK));
    });
}
