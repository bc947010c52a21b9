//! Promises about write caches.

use std::cell::RefCell;
use std::rc::Rc;

use machine::conformance::Testbed;
use machine::{Condition, Duration, Machine, Memory, Net, Payload};

use super::{BLOCK, Draw, bytes_of, read, run, small, start, write};
use crate::{
    Client, Configuration, Division, FileId, Group, Scheduling, Threads, WriteCache, WriteCacheSettings,
};

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
    WriteCacheSettings { bytes: 4096, division, queued: seed.is_multiple_of(3) }
}

async fn cache_of<M: Machine>(
    client: &Client<M>,
    nodes: &[M],
    rank: usize,
    settings: WriteCacheSettings,
) -> WriteCache<M> {
    let members = nodes.iter().map(|node| node.node()).collect();
    let group = Group::new(77, members, rank);
    let cache = WriteCache::new(client.clone(), group, settings, &Memory::real(Vec::new()));
    let cache = cache.expect("a sound cache");
    cache.ready().await.expect("all make it");
    cache
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

/// Whatever the members of a group write, large or small, over each other or not, some of them more than others: after
/// the last flush each byte has the value of a write that no other followed.
pub fn what_a_group_writes_is_its_latest_writers(testbed: &impl Testbed, base: Configuration) {
    for seed in 1..4 {
        run(testbed, 2 + MEMBERS, move |nodes| async move {
            let clients = start(base, &nodes, 2, small(base, Scheduling::CyclicScan, Threads::Pool(4))).await;
            let file = clients[0].create("shared", FileId(1), BLOCK).await.expect("created");
            write(&file, 0, &vec![255; BYTES as usize / 2]).await;
            file.commit().await.expect("committed");
            let members = nodes[2..].to_vec();
            let longest = [16, 3 * BLOCK][seed as usize % 2];
            let writes = on_each(&nodes[2..], |rank| {
                let (client, members) = (clients[rank].clone(), members.clone());
                async move {
                    let cache = cache_of(&client, &members, rank, settings(seed)).await;
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
                    cache.finish().await.expect("flushed");
                    file.commit().await.expect("committed");
                    (writes, cache.flushes())
                }
            })
            .await;
            let flushes = writes[0].1;
            assert!(flushes > 1 && writes.iter().all(|(_, of_member)| *of_member == flushes), "{flushes}");
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

/// A member reads what it has written and not flushed, over what the file has, and beyond its end.
pub fn writes_that_are_not_flushed_are_read_by_their_writer(testbed: &impl Testbed, base: Configuration) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Scheduling::CyclicScan, Threads::Pool(4))).await;
        let file = clients[0].create("own", FileId(1), BLOCK).await.expect("created");
        write(&file, 0, &[1; 100]).await;
        let cache = cache_of(&clients[0], &nodes[2..], 0, settings(1)).await;
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

/// A member that goes away ends the flushes of its group with an error; what the others have written they can flush
/// without it.
pub fn a_member_that_is_gone_costs_only_what_it_had_not_flushed(testbed: &impl Testbed, base: Configuration) {
    run(testbed, 2 + 3, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Scheduling::CyclicScan, Threads::Pool(4))).await;
        let file = clients[0].create("shared", FileId(1), BLOCK).await.expect("created");
        file.commit().await.expect("committed");
        let members = nodes[2..].to_vec();
        on_each(&nodes[2..], |rank| {
            let (client, members) = (clients[rank].clone(), members.clone());
            async move {
                let cache = cache_of(&client, &members, rank, settings(1)).await;
                let file = client.open("shared").await.expect("it is there");
                let (offset, value) = (100 * rank as u64, 1 + rank as u8);
                let one = || Payload::from(vec![value; 100]);
                cache.write(&file, offset, &one()).await.expect("written");
                let written = Group::new(78, members.iter().map(|node| node.node()).collect(), rank);
                client.barrier(&written).await.expect("all have written");
                // All of it so far gets to the media.
                if rank == 1 {
                    cache.flush().await.expect("flushed");
                } else {
                    while cache.flushes() < 1 {
                        let pause = members[rank].now() + Duration::from_millis(1);
                        members[rank].sleep_until(pause).await;
                    }
                }
                file.commit().await.expect("committed");
                cache.write(&file, 1000 + offset, &one()).await.expect("written");
                if rank == 2 {
                    members[rank].net().close();
                    return;
                }
                let told = cache.finish().await.expect_err("a member is gone");
                assert!(told.to_string().contains("gone"), "{told}");
                // What this member had not flushed is here, and can be written without the group.
                let memory = Memory::real(vec![0; 100]);
                let bytes = cache.read(&file, 1000 + offset, 100, &memory, 0).await.expect("read");
                assert_eq!((bytes, bytes_of(memory)), (100, vec![value; 100]));
                cache.flush_alone().await.expect("flushed");
                file.commit().await.expect("committed");
            }
        })
        .await;
        let other = clients[0].open("shared").await.expect("there");
        let flushed = [vec![1; 100], vec![2; 100], vec![3; 100], vec![0; 700], vec![1; 100], vec![2; 100]];
        assert!(read(&other, 0, 2000).await == flushed.concat());
    });
}
