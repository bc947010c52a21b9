//! Promises about write caches.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::rc::Rc;

use fs::protocol::{Frame, Reply, Request};
use fs::{Client, Division, Error, Features, Group, Threads, WriteCache, WriteCacheSettings, Written};
use machine::conformance::Testbed;
use machine::{Class, Condition, Delivery, Duration, Machine, Memory, Message, Net, NodeId, Payload};

use super::faulty::Faulty;
use super::tasks::{Tasks, rest, until};
use super::{BLOCK, Base, Draw, bytes_of, created, opened, read, run, small, start, write};

const MEMBERS: usize = 4;

/// Length in bytes of the file.
const BYTES: u64 = 20 * BLOCK;

/// A write: its start and end by the writer's clock, its position, and the value of all its bytes.
#[derive(Clone, Copy)]
struct Write {
    began: Duration,
    ended: Duration,
    offset: u64,
    bytes: u64,
    value: u8,
}

fn settings(seed: u64) -> WriteCacheSettings {
    let division =
        if seed.is_multiple_of(2) { Division::Shared } else { Division::Fixed { directory: 0.25 } };
    let background = (seed % 4 > 1).then_some(0.7);
    let (bytes, queued) = (4096, seed.is_multiple_of(3));
    WriteCacheSettings { bytes, division, queued, background, flush_after: None }
}

async fn cache_of<M: Machine>(
    client: &Client<M>,
    rank: usize,
    settings: WriteCacheSettings,
) -> WriteCache<M> {
    let (member, kind) = (format!("member {rank}"), Memory::real(Vec::new()));
    WriteCache::join(client.clone(), "a job", &member, settings, &kind).await.expect("it joins")
}

/// Runs one task on each of the nodes, and returns their results.
async fn on_each<M: Machine, T: 'static, F>(nodes: &[M], task: impl Fn(usize) -> F) -> Vec<T>
where
    F: Future<Output = T> + 'static,
{
    let (done, changed) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Condition::new()));
    for (rank, node) in nodes.iter().enumerate() {
        let (done, changed, task) = (done.clone(), changed.clone(), task(rank));
        node.spawn("member", async move {
            let outcome = task.await;
            done.borrow_mut().push((rank, outcome));
            changed.wake_all();
            Ok(())
        });
    }
    while done.borrow().len() < nodes.len() {
        changed.wait().await;
    }
    let mut all = done.take();
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, outcome)| outcome).collect()
}

/// After the last flush each byte has the value of a latest write, that is, one that ended after all others had begun.
/// This holds for any writes of a group's members: many or few, overlapping or not, evenly distributed or not.
pub fn each_byte_has_the_value_of_a_latest_write(testbed: &impl Testbed, base: Base) {
    for seed in 1..5 {
        run(testbed, 2 + MEMBERS, move |nodes| async move {
            let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
            let file = created(&clients[0], 1).await;
            write(&file, 0, &vec![255; BYTES as usize / 2]).await;
            file.flush().await.expect("flushed");
            let members = nodes[2..].to_vec();
            let longest = [16, 3 * BLOCK][seed as usize % 2];
            let writes = on_each(&nodes[2..], |rank| {
                let (client, members) = (clients[rank].clone(), members.clone());
                async move {
                    let cache = cache_of(&client, rank, settings(seed)).await;
                    let file = opened(&client, 1).await;
                    let mut draw = Draw(100 * seed + rank as u64);
                    let mut writes = Vec::new();
                    // One member writes nothing, another most.
                    for number in 0..(rank as u64 * 50) {
                        let bytes = 1 + draw.below(longest);
                        let offset = draw.below(BYTES - bytes);
                        let value = (number * MEMBERS as u64 + rank as u64) as u8;
                        let began = members[rank].date();
                        let data = Payload::from(vec![value; bytes as usize]);
                        cache.write(&file, offset, &data).await.expect("written");
                        writes.push(Write { began, ended: members[rank].date(), offset, bytes, value });
                    }
                    cache.leave().await.expect("flushed");
                    file.flush().await.expect("flushed");
                    (writes, cache.flushes())
                }
            })
            .await;
            assert!(writes[MEMBERS - 1].1 > 1, "{} flushes", writes[MEMBERS - 1].1);
            let writes: Vec<Write> = writes.into_iter().flat_map(|(writes, _)| writes).collect();
            let now = read(&opened(&clients[0], 1).await, 0, BYTES).await;
            for (at, &value) in (0..).zip(&now) {
                let here: Vec<&Write> = writes
                    .iter()
                    .filter(|write| (write.offset..write.offset + write.bytes).contains(&at))
                    .collect();
                let last = |write: &&Write| !here.iter().any(|other| other.began > write.ended);
                let mut possible: Vec<u8> =
                    here.iter().copied().filter(last).map(|write| write.value).collect();
                if here.is_empty() {
                    possible.push(if at < BYTES / 2 { 255 } else { 0 });
                }
                assert!(possible.contains(&value), "byte {at} is {value}, of {possible:?}, seed {seed}");
            }
        });
    }
}

/// Even if the clocks of members diverge or run backwards, the later of two writes of the same member wins, and bytes
/// that another member's writes overwrite are counted.
pub fn members_with_diverging_clocks_keep_their_own_order(testbed: &impl Testbed, base: Base) {
    const ALL: u64 = 40;
    for queued in [false, true] {
        run(testbed, 2 + 3, move |nodes| async move {
            let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
            let file = created(&clients[0], 1).await;
            file.flush().await.expect("flushed");
            let members: Vec<_> = nodes[2..].iter().map(|node| node.node()).collect();
            let hidden = on_each(&nodes[2..], |rank| {
                let (client, members) = (clients[rank].clone(), members.clone());
                async move {
                    let settings = WriteCacheSettings { queued, ..settings(1) };
                    let cache = cache_of(&client, rank, settings).await;
                    let file = opened(&client, 1).await;
                    // The clocks: constant, an hour ahead, and two hours ahead but set back by a minute with each
                    // write.
                    let clock =
                        |round: u64| [0, 3_600_000_000_000, 7_200_000_000_000 - round * 60_000_000_000][rank];
                    for round in 1..4 {
                        let value = 10 * (1 + rank as u8) + round as u8;
                        // Write bytes of this member, and bytes that all members write.
                        for offset in [ALL * (1 + rank as u64), 0] {
                            let write = Written { offset, bytes: ALL, time: clock(round) };
                            let data = Payload::from(vec![value; ALL as usize]);
                            cache.write_all(&file, &[write], &data).await.1.expect("written");
                        }
                    }
                    let together = Group::new(78, members, rank);
                    client.barrier(&together).await.expect("all have written");
                    if rank == 0 {
                        cache.flush().await.expect("flushed");
                    }
                    client.barrier(&together).await.expect("all is flushed");
                    let hidden = cache.moved().iter().map(|moved| moved.hidden).sum::<u64>();
                    cache.leave().await.expect("nothing is left");
                    file.flush().await.expect("flushed");
                    hidden
                }
            })
            .await;
            let now = read(&opened(&clients[0], 1).await, 0, 1000).await;
            let own = [vec![13; ALL as usize], vec![23; ALL as usize], vec![33; ALL as usize]].concat();
            assert!(now[ALL as usize..] == own, "own writes: {now:?}");
            // The shared bytes have the value of the member with the latest clock, whose writes overwrite those of the
            // others.
            assert!(now[..ALL as usize] == vec![33; ALL as usize], "{now:?}");
            assert_eq!(hidden.iter().sum::<u64>(), 2 * 3 * ALL);
        });
    }
}

/// A member reads its unflushed writes, over the contents of the file and beyond its end.
pub fn a_member_reads_its_unflushed_writes(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 1).await;
        write(&file, 0, &[1; 100]).await;
        let cache = cache_of(&clients[0], 0, settings(1)).await;
        for (offset, value) in [(10, 2), (15, 3), (150, 4)] {
            cache.write(&file, offset, &Payload::from(vec![value; 10])).await.expect("written");
        }
        let expected = [vec![1; 10], vec![2; 5], vec![3; 10], vec![1; 75], vec![0; 50], vec![4; 10]].concat();
        for flushed in [false, true] {
            let memory = Memory::real(vec![9; 200]);
            let bytes = cache.read(&file, 0, 200, &memory, 0).await.expect("read");
            let mut found = bytes_of(memory);
            found.truncate(bytes as usize);
            assert!(found == expected, "flushed: {flushed}");
            assert_eq!(cache.flushes(), u32::from(flushed));
            if !flushed {
                cache.flush().await.expect("flushed");
            }
        }
        assert!(read(&file, 0, 200).await == expected);
    });
}

/// Unwritten bytes before an unflushed write are read as zeros, even if the read ends before that write.
pub fn a_hole_before_an_unflushed_write_reads_as_zeros(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 1).await;
        let cache = cache_of(&clients[0], 0, settings(1)).await;
        cache.write(&file, 0, &hundred(1)).await.expect("room");
        cache.write(&file, 1000, &hundred(2)).await.expect("room");
        let expected = [vec![1; 100], vec![0; 900], vec![2; 100]].concat();
        for flushed in [false, true] {
            for (offset, bytes) in [(50, 100), (300, 10), (990, 20), (1090, 20), (1100, 10)] {
                let memory = Memory::real(vec![9; bytes]);
                let found = cache.read(&file, offset, bytes as u64, &memory, 0).await.expect("read");
                let (from, to) = (offset as usize, (offset as usize + bytes).min(expected.len()));
                let found = bytes_of(memory)[..found as usize].to_vec();
                assert!(
                    found == expected[from..to],
                    "{bytes} bytes at {offset}, flushed: {flushed}: {found:?}"
                );
            }
            cache.flush().await.expect("flushed");
        }
    });
}

/// A file that is reopened while the write cache has data of it: the new handle knows the end of the data, flushed or
/// not, and reads them.
pub fn a_reopened_file_grows_through_its_write_cache(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        drop(created(&clients[0], 1).await);
        let cache = cache_of(&clients[0], 0, settings(1)).await;
        for turn in 0..3 {
            let end = 100 * u64::from(turn);
            let file = opened(&clients[0], 1).await;
            assert_eq!(file.bytes(), end);
            cache.write(&file, end, &hundred(turn)).await.expect("room");
            cache.flush().await.expect("flushed");
            assert_eq!(file.bytes(), end + 100);
            assert_eq!(read(&file, end, 200).await, [turn; 100]);
        }
    });
}

/// After a flush by one member, all writes of the group are on stable storage, whatever the other members do. A flush
/// of one file persists only the writes to that file.
pub fn a_flush_persists_the_writes_of_all_members(testbed: &impl Testbed, base: Base) {
    for seed in 0..4 {
        run(testbed, 2 + 3, move |nodes| async move {
            let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
            let members: Vec<_> = nodes[2..].iter().map(|node| node.node()).collect();
            on_each(&nodes[2..], |rank| {
                let (client, members) = (clients[rank].clone(), members.clone());
                async move {
                    let cache = cache_of(&client, rank, settings(seed)).await;
                    let together = Group::new(78, members, rank);
                    let files = [opened(&client, 1).await, opened(&client, 2).await];
                    for file in &files {
                        let data = Payload::from(vec![1 + rank as u8; 100]);
                        cache.write(file, 100 * rank as u64, &data).await.expect("written");
                    }
                    client.barrier(&together).await.expect("all have written");
                    if rank == 1 {
                        cache.flush_file(&files[0]).await.expect("flushed");
                        assert_eq!((cache.end_of(&files[0]), cache.end_of(&files[1])), (0, 200));
                        let all = [vec![1; 100], vec![2; 100], vec![3; 100]].concat();
                        assert_eq!((seen(&client, 1).await, seen(&client, 2).await), (all.clone(), vec![]));
                        cache.flush().await.expect("flushed");
                        assert!(seen(&client, 2).await == all);
                    }
                    client.barrier(&together).await.expect("all have looked");
                    cache.leave().await.expect("nothing is left");
                }
            })
            .await;
        });
    }
}

/// Written data are flushed in time without a flush by any member.
pub fn writes_are_flushed_in_time_without_a_request(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 1).await;
        let settings = WriteCacheSettings { flush_after: Some(Duration::from_millis(20)), ..settings(2) };
        let cache = cache_of(&clients[0], 0, settings).await;
        for round in 1..3 {
            cache.write(&file, 10 * round, &Payload::from(vec![7; 10])).await.expect("written");
            until(&nodes[2], || cache.end_of(&file) == 0).await;
            assert_eq!(read(&file, 10 * round, 10).await, [7; 10]);
        }
    });
}

/// If a member disconnects, only its unflushed data are lost. If this happens during a flush, the other members get an
/// error with its name, and then flush without it.
pub fn a_disconnected_member_loses_only_its_unflushed_data(testbed: &impl Testbed, base: Base) {
    for seed in 1..4 {
        run(testbed, 2 + 3, move |nodes| async move {
            let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
            let file = created(&clients[0], 1).await;
            file.flush().await.expect("flushed");
            let members = nodes[2..].to_vec();
            on_each(&nodes[2..], |rank| {
                let (client, members) = (clients[rank].clone(), members.clone());
                async move {
                    let cache = cache_of(&client, rank, settings(seed)).await;
                    let file = opened(&client, 1).await;
                    let (offset, value) = (100 * rank as u64, 1 + rank as u8);
                    let one = || Payload::from(vec![value; 100]);
                    cache.write(&file, offset, &one()).await.expect("written");
                    let together = Group::new(78, members.iter().map(|node| node.node()).collect(), rank);
                    client.barrier(&together).await.expect("all have written");
                    // All writes so far are flushed to stable storage.
                    if rank == 1 {
                        cache.flush().await.expect("flushed");
                    }
                    client.barrier(&together).await.expect("all is flushed");
                    cache.write(&file, 1000 + offset, &one()).await.expect("written");
                    if rank == 2 {
                        members[rank].net().close();
                        return;
                    }
                    // The member may have disconnected during a flush, or before.
                    if let Err(error) = cache.flush().await {
                        assert!(error.to_string().contains("member 2 of the job a job"), "{error}");
                        cache.flush().await.expect("flushed without it");
                    }
                    cache.leave().await.expect("nothing is left");
                    file.flush().await.expect("flushed");
                }
            })
            .await;
            let other = opened(&clients[0], 1).await;
            let flushed =
                [vec![1; 100], vec![2; 100], vec![3; 100], vec![0; 700], vec![1; 100], vec![2; 100]];
            assert!(read(&other, 0, 2000).await == flushed.concat());
        });
    }
}

/// Returns write caches of two clients that flush only on request.
async fn two_caches<M: Machine>(clients: &[Client<M>]) -> [WriteCache<M>; 2] {
    [cache_of(&clients[0], 0, settings(1)).await, cache_of(&clients[1], 1, settings(1)).await]
}

/// Returns a hundred bytes of a value.
fn hundred(value: u8) -> Payload {
    Payload::from(vec![value; 100])
}

/// Returns the contents of a file as seen by a new open.
async fn seen<M: Machine>(client: &Client<M>, number: u64) -> Vec<u8> {
    read(&opened(client, number).await, 0, BYTES).await
}

/// A failed flush is reported to all members that wait for it. Each other member gets the error once, at its next call,
/// unless a later flush has persisted all data that the failed flush left, of all files.
pub fn a_failed_group_flush_is_reported_until_its_data_are_flushed(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let clients = start(base, &nodes, 1, small(base, Threads::Pool(4))).await;
        let one = created(&clients[0], 1).await;
        let other = created(&clients[0], 2).await;
        let (caches, tasks) = (two_caches(&clients).await, Tasks::default());
        caches[0].write(&one, 0, &hundred(1)).await.expect("room");
        caches[0].write(&other, 0, &hundred(2)).await.expect("room");
        let failing = &nodes[0].faults().failing_writes;
        failing.set(1000);
        for _ in 0..2 {
            let cache = caches[0].clone();
            tasks.begin(&nodes[1], async move {
                cache.flush().await.expect_err("its disk fails");
            });
        }
        tasks.wait().await;
        assert_eq!(caches[0].flushes(), 1);
        let own = opened(&clients[1], 1).await;
        caches[1].write(&own, 100, &hundred(3)).await.expect_err("the last flush of all has failed");
        caches[1].write(&own, 100, &hundred(3)).await.expect("reported once");
        caches[0].write(&one, 200, &hundred(4)).await.expect("reported already");

        caches[1].flush().await.expect_err("its disk fails");
        failing.set(0);
        caches[1].flush_file(&own).await.expect("the disk is well");
        assert_eq!(seen(&clients[1], 1).await.len(), 300);
        caches[0].write(&other, 100, &hundred(5)).await.expect_err("the other file is not flushed yet");
        failing.set(1000);
        caches[0].flush().await.expect_err("its disk fails");
        failing.set(0);
        caches[0].flush().await.expect("the disk is well");
        // The other member is notified a little later.
        rest(&nodes[1]).await;
        caches[1].write(&own, 300, &hundred(6)).await.expect("all is flushed");
        assert!(seen(&clients[1], 2).await == [2; 100]);
        for cache in &caches {
            cache.leave().await.expect("the disk is well");
        }
        let expected = [1, 3, 4, 6].map(|value| [value; 100]).concat();
        assert!(seen(&clients[1], 1).await == expected);
    });
}

/// If the connection of a member to an I/O node ends (as on a restart) and the member has no writes at that node, it
/// blocks no flush. A member can leave a job even if the coordinator no longer knows it.
pub fn members_with_ended_connections_block_no_flush(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 1).await;
        let caches = two_caches(&clients).await;
        let (mut at, mut io_nodes) = (0, [&nodes[0], &nodes[1]]);
        // The coordinator of the membership, which no longer knows the member after that, comes last.
        io_nodes.sort_by_key(|io_node| Reverse(io_node.node()));
        for io_node in io_nodes {
            io_node.net().give_up(nodes[3].node(), "the network is broken");
            rest(&nodes[3]).await;
            caches[0].write(&file, at, &hundred(1)).await.expect("room");
            caches[0].flush().await.expect("the idle member takes part, or is no member any more");
            at += 100;
        }
        assert!(seen(&clients[1], 1).await == [1; 200]);
        caches[1].leave().await.expect("there is nothing to be flushed");
        caches[0].leave().await.expect("there is nothing to be flushed");
    });
}

/// Data written to a removed file do not block the flush of other data. The writer gets the error once.
pub fn cached_data_of_a_removed_file_block_no_flush(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 1, small(base, Threads::Pool(4))).await;
        let caches = two_caches(&clients).await;
        let kept = created(&clients[0], 1).await;
        for round in 0..2 {
            let removed = created(&clients[0], 2 + round).await;
            for file in [&removed, &kept] {
                caches[0].write(file, 100 * round, &hundred(7)).await.expect("room");
            }
            clients[1].remove_numbered(&[removed.id()]).await.expect("removed");
            caches[1].flush().await.expect("all data are flushed");
            let error = caches[0].write(&kept, 100 * round, &hundred(8)).await.expect_err("told");
            assert!(error.to_string().contains("has been removed"), "{error}");
            caches[0].flush().await.expect("reported once");
            assert!(seen(&clients[1], 1).await == vec![7; 100 * (1 + round as usize)]);
        }
    });
}

/// Members that know different I/O nodes each flush to all nodes they know.
pub fn members_with_different_io_nodes_lose_nothing(testbed: &impl Testbed, base: Base) {
    for rank_of_fewer in [0, 1] {
        run(testbed, 2 + 2, move |nodes| async move {
            let clients = start(base, &nodes[..3], 2, small(base, Threads::Pool(4))).await;
            let fewer = Client::connect(nodes[3].clone(), vec![nodes[0].node()], base.client()).await;
            let mut clients = [clients[0].clone(), fewer.expect("it answers")];
            let large = created(&clients[0], 1).await;
            let small = created(&clients[1], 2).await;
            let mut files = [large, small];
            if rank_of_fewer == 0 {
                clients.reverse();
                files.reverse();
            }
            let caches = two_caches(&clients).await;
            for (cache, file) in caches.iter().zip(&files) {
                for block in 0..4 {
                    cache.write(file, block * BLOCK, &hundred(7)).await.expect("room");
                }
            }
            for cache in &caches {
                cache.flush().await.expect("flushed");
            }
            for ((file, client), cache) in files.iter().zip(&clients).zip(&caches) {
                let (number, found) = (file.id().0, seen(client, file.id().0).await);
                assert!(found.chunks(BLOCK as usize).all(|block| block[..100] == [7; 100]), "{number}");
                assert_eq!((found.len() as u64, cache.leave().await), (3 * BLOCK + 100, Ok(())));
            }
        });
    }
}

/// Answers the requests of one client like a coordinator, up to the answer with the number of a flush; then
/// disconnects.
async fn name_a_flush_and_disconnect(node: &impl Machine, client: NodeId) {
    loop {
        let (from, Delivery::Message(message)) = node.net().receive().await.expect("there") else { continue };
        let Ok(Frame::Request(tag, request)) = Frame::decode(&message.header) else { panic!("a request") };
        assert_eq!(from, client);
        let reply = match request {
            Request::Describe => {
                Reply::Described { disks: 1, block_bytes_max: BLOCK, features: Features::all().bits() }
            }
            Request::Join { .. } => Reply::Joined { group: 1, flushes: 0 },
            Request::Gather { .. } => Reply::Flushing { flush: 1 },
            other => panic!("{other:?}"),
        };
        let is_last = matches!(reply, Reply::Flushing { .. });
        let header = Frame::Reply(tag, reply).encode();
        let message = Message { class: Class::Control, header, payload: Payload::empty() };
        node.net().send(client, message).await.expect("sent");
        if is_last {
            rest(node).await;
            return node.net().close();
        }
    }
}

/// A flush fails, and does not block, if the coordinator disconnects before it has notified the members.
pub fn a_flush_fails_if_its_coordinator_disconnects(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let (coordinator, tasks) = (nodes[0].clone(), Tasks::default());
        let member = nodes[1].node();
        tasks.begin(&nodes[0], async move { name_a_flush_and_disconnect(&coordinator, member).await });
        let client = Client::connect(nodes[1].clone(), vec![nodes[0].node()], base.client()).await;
        let cache = cache_of(&client.expect("it answers"), 0, settings(1)).await;
        let error = cache.flush().await.expect_err("its coordinator is disconnected");
        assert!(matches!(*error, Error::Machine(machine::Error::PeerGone { .. })), "{error}");
        tasks.wait().await;
    });
}
