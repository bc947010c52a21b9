//! Promises about write caches.

use std::cell::RefCell;
use std::rc::Rc;

use machine::conformance::Testbed;
use machine::{Condition, Duration, Machine, Memory, Net, Payload};

use super::{BLOCK, Base, Draw, bytes_of, read, run, small, start, write};
use crate::{Client, Division, FileId, Group, Threads, WriteCache, WriteCacheSettings, Written};

const MEMBERS: usize = 4;

/// How many bytes the file has that is written to.
const BYTES: u64 = 20 * BLOCK;

/// A write: from when until when, by its writer's clock, where, and the value of all its bytes.
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

/// Runs one task on each of the nodes, and gives what they give.
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

/// After the last flush each byte has the value of a write that no other followed, however the members of a group have
/// written: much or little, over each other or not, some of them more than others.
pub fn what_a_group_writes_is_its_latest_writers(testbed: &impl Testbed, base: Base) {
    for seed in 1..5 {
        run(testbed, 2 + MEMBERS, move |nodes| async move {
            let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
            let file = clients[0].create("shared", FileId(1), BLOCK).await.expect("created");
            write(&file, 0, &vec![255; BYTES as usize / 2]).await;
            file.commit().await.expect("committed");
            let members = nodes[2..].to_vec();
            let longest = [16, 3 * BLOCK][seed as usize % 2];
            let writes = on_each(&nodes[2..], |rank| {
                let (client, members) = (clients[rank].clone(), members.clone());
                async move {
                    let cache = cache_of(&client, rank, settings(seed)).await;
                    let file = client.open("shared").await.expect("it is there");
                    let mut draw = Draw(100 * seed + rank as u64);
                    let mut writes = Vec::new();
                    // One writes nothing, another most.
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
                    file.commit().await.expect("committed");
                    (writes, cache.flushes())
                }
            })
            .await;
            assert!(writes[MEMBERS - 1].1 > 1, "{} flushes", writes[MEMBERS - 1].1);
            let writes: Vec<Write> = writes.into_iter().flat_map(|(writes, _)| writes).collect();
            let now = read(&clients[0].open("shared").await.expect("there"), 0, BYTES).await;
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

/// Even if the clocks of members run apart or back, the later of two writes of one member stays, and what gives way to
/// another member is counted.
pub fn members_with_clocks_that_disagree_keep_their_own_order(testbed: &impl Testbed, base: Base) {
    const ALL: u64 = 40;
    for queued in [false, true] {
        run(testbed, 2 + 3, move |nodes| async move {
            let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
            let file = clients[0].create("shared", FileId(1), BLOCK).await.expect("created");
            file.commit().await.expect("committed");
            let members: Vec<_> = nodes[2..].iter().map(|node| node.node()).collect();
            let hidden = on_each(&nodes[2..], |rank| {
                let (client, members) = (clients[rank].clone(), members.clone());
                async move {
                    let settings = WriteCacheSettings { queued, ..settings(1) };
                    let cache = cache_of(&client, rank, settings).await;
                    let file = client.open("shared").await.expect("it is there");
                    // An hour behind, right, and one that is set back by a minute with each write.
                    let clock =
                        |round: u64| [0, 3_600_000_000_000, 7_200_000_000_000 - round * 60_000_000_000][rank];
                    for round in 1..4 {
                        let value = 10 * (1 + rank as u8) + round as u8;
                        // Some of one's own, and what all write.
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
                    file.commit().await.expect("committed");
                    hidden
                }
            })
            .await;
            let now = read(&clients[0].open("shared").await.expect("there"), 0, 1000).await;
            let own = [vec![13; ALL as usize], vec![23; ALL as usize], vec![33; ALL as usize]].concat();
            assert!(now[ALL as usize..] == own, "own writes: {now:?}");
            // That of the clock which is ahead, the others' three writes hidden by it.
            assert!(now[..ALL as usize] == vec![33; ALL as usize], "{now:?}");
            assert_eq!(hidden.iter().sum::<u64>(), 2 * 3 * ALL);
        });
    }
}

/// A member reads what it has written and not flushed, over what the file has, and beyond its end.
pub fn writes_that_are_not_flushed_are_read_by_their_writer(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let file = clients[0].create("own", FileId(1), BLOCK).await.expect("created");
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

/// What a group has written is on the media when one of its members has flushed, whatever the others do; only what it
/// has written to one file, if the flush is of that file.
pub fn a_flush_has_what_all_members_have_written(testbed: &impl Testbed, base: Base) {
    for seed in 0..4 {
        run(testbed, 2 + 3, move |nodes| async move {
            let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
            for (name, id) in [("one", 1), ("other", 2)] {
                let file = clients[0].create(name, FileId(id), BLOCK).await.expect("created");
                file.commit().await.expect("committed");
            }
            let members: Vec<_> = nodes[2..].iter().map(|node| node.node()).collect();
            on_each(&nodes[2..], |rank| {
                let (client, members) = (clients[rank].clone(), members.clone());
                async move {
                    let cache = cache_of(&client, rank, settings(seed)).await;
                    let together = Group::new(78, members, rank);
                    for name in ["one", "other"] {
                        let file = client.open(name).await.expect("it is there");
                        let data = Payload::from(vec![1 + rank as u8; 100]);
                        cache.write(&file, 100 * rank as u64, &data).await.expect("written");
                    }
                    client.barrier(&together).await.expect("all have written");
                    if rank == 1 {
                        let files = (client.open("one").await.unwrap(), client.open("other").await.unwrap());
                        cache.flush_file(&files.0).await.expect("flushed");
                        assert_eq!((cache.end_of(&files.0), cache.end_of(&files.1)), (0, 200));
                        let found = async |name| read(&client.open(name).await.unwrap(), 0, 1000).await;
                        let all = [vec![1; 100], vec![2; 100], vec![3; 100]].concat();
                        assert_eq!((found("one").await, found("other").await), (all.clone(), vec![]));
                        cache.flush().await.expect("flushed");
                        assert!(found("other").await == all);
                    }
                    client.barrier(&together).await.expect("all have looked");
                    cache.leave().await.expect("nothing is left");
                }
            })
            .await;
        });
    }
}

/// What is written is flushed in time, though no member asks for a flush.
pub fn a_flush_comes_by_itself_in_time(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let file = clients[0].create("own", FileId(1), BLOCK).await.expect("created");
        let settings = WriteCacheSettings { flush_after: Some(Duration::from_millis(20)), ..settings(2) };
        let cache = cache_of(&clients[0], 0, settings).await;
        for round in 1..3 {
            cache.write(&file, 10 * round, &Payload::from(vec![7; 10])).await.expect("written");
            while cache.end_of(&file) > 0 {
                nodes[2].sleep_until(nodes[2].now() + Duration::from_millis(1)).await;
            }
            assert_eq!(read(&file, 10 * round, 10).await, [7; 10]);
        }
    });
}

/// A member that goes away costs what it had not flushed, and no more: the others are told who it was, if it was in the
/// middle of a flush, and flush without it.
pub fn a_member_that_is_gone_costs_only_what_it_had_not_flushed(testbed: &impl Testbed, base: Base) {
    for seed in 1..4 {
        run(testbed, 2 + 3, move |nodes| async move {
            let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
            let file = clients[0].create("shared", FileId(1), BLOCK).await.expect("created");
            file.commit().await.expect("committed");
            let members = nodes[2..].to_vec();
            on_each(&nodes[2..], |rank| {
                let (client, members) = (clients[rank].clone(), members.clone());
                async move {
                    let cache = cache_of(&client, rank, settings(seed)).await;
                    let file = client.open("shared").await.expect("it is there");
                    let (offset, value) = (100 * rank as u64, 1 + rank as u8);
                    let one = || Payload::from(vec![value; 100]);
                    cache.write(&file, offset, &one()).await.expect("written");
                    let together = Group::new(78, members.iter().map(|node| node.node()).collect(), rank);
                    client.barrier(&together).await.expect("all have written");
                    // All of it so far gets to the media.
                    if rank == 1 {
                        cache.flush().await.expect("flushed");
                    }
                    client.barrier(&together).await.expect("all is flushed");
                    cache.write(&file, 1000 + offset, &one()).await.expect("written");
                    if rank == 2 {
                        members[rank].net().close();
                        return;
                    }
                    // It may have been in the middle of a flush, or gone before.
                    if let Err(told) = cache.flush().await {
                        assert!(told.to_string().contains("member 2 of the job a job"), "{told}");
                        cache.flush().await.expect("flushed without it");
                    }
                    cache.leave().await.expect("nothing is left");
                    file.commit().await.expect("committed");
                }
            })
            .await;
            let other = clients[0].open("shared").await.expect("there");
            let flushed =
                [vec![1; 100], vec![2; 100], vec![3; 100], vec![0; 700], vec![1; 100], vec![2; 100]];
            assert!(read(&other, 0, 2000).await == flushed.concat());
        });
    }
}
