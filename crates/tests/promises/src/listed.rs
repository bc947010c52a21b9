//! Promises about collective operations on lists of file extents.

use std::rc::Rc;

use fs::{Client, Entry, FileEntries, Group, ListedSettings, Threads};
use machine::conformance::Testbed;
use machine::{Condition, Machine, Memory, Net};

use super::tasks::{Tasks, rest};
use super::{
    BLOCK, Base, Draw, bytes_of, contents, created, opened, read, refresh, run, small, start, write,
};

/// Number of members of the groups in these tests.
const MEMBERS: u64 = 3;

/// Maximum length in bytes of the files in these tests.
const BYTES: u64 = 24 * BLOCK;

/// Data and extents of a member in one operation.
#[derive(Clone)]
struct Part {
    /// Extents of the member in each file.
    entries: Vec<Vec<Entry>>,
    memory: Vec<u8>,
}

/// Draws a member's part of `files` files, each extent at most `longest` bytes long.
fn draw_part(draw: &mut Draw, files: u64, longest: u64) -> Part {
    let (mut entries, mut at) = (vec![Vec::new(); files as usize], 0);
    for _ in 0..draw.below(40) {
        let bytes = 1 + draw.below(longest);
        let offset = draw.below(BYTES - bytes);
        let entry = Entry { offset, bytes, at, time: draw.below(6) };
        entries[draw.below(files) as usize].push(entry);
        at += bytes;
    }
    let salt = draw.below(256) as u8;
    let memory = contents(at).into_iter().map(|byte| byte ^ salt).collect();
    Part { entries, memory }
}

/// Returns a file after all members' entries have been written in order of time.
fn overwrite(before: &[u8], parts: &[Part], file: usize) -> Vec<u8> {
    let mut all: Vec<(u64, usize, usize)> = Vec::new();
    for (member, part) in parts.iter().enumerate() {
        let of_member = part.entries[file].iter().enumerate();
        all.extend(of_member.map(|(order, entry)| (entry.time, member, order)));
    }
    all.sort_unstable();
    let mut bytes = before.to_vec();
    for (_, member, order) in all {
        let Entry { offset, bytes: count, at, .. } = parts[member].entries[file][order];
        let (from, to) = (at as usize..(at + count) as usize, offset as usize..(offset + count) as usize);
        bytes.resize(bytes.len().max(to.end), 0);
        bytes[to].copy_from_slice(&parts[member].memory[from]);
    }
    bytes
}

/// Writes or reads each member's part of the files of these numbers; returns the memories afterwards.
async fn move_together<M: Machine>(
    clients: &[Client<M>],
    nodes: &[M],
    group: u64,
    numbers: &[u64],
    parts: &[Part],
    is_write: bool,
    settings: ListedSettings,
) -> Vec<Vec<u8>> {
    let members: Vec<_> = nodes.iter().map(|node| node.node()).collect();
    let (done, changed) = (Rc::new(std::cell::RefCell::new(Vec::new())), Rc::new(Condition::new()));
    for (rank, (client, part)) in clients.iter().zip(parts).enumerate() {
        let group = Group::new(group, members.clone(), rank);
        let (client, part, numbers) = (client.clone(), part.clone(), numbers.to_vec());
        let (done, changed) = (done.clone(), changed.clone());
        nodes[rank].spawn("member", async move {
            let memory = Memory::real(part.memory.clone());
            let mut files = Vec::new();
            for (&number, entries) in numbers.iter().zip(&part.entries) {
                let file = opened(&client, number).await;
                files.push(FileEntries { file, entries: entries.clone() });
            }
            let moved = if is_write {
                client.write_listed(&group, &files, &memory, settings).await
            } else {
                client.read_listed(&group, &files, &memory, settings).await
            };
            moved.expect("all members are there");
            for FileEntries { file, .. } in files.iter().filter(|_| is_write) {
                file.flush().await.expect("flushed");
            }
            drop(files);
            done.borrow_mut().push((rank, bytes_of(memory)));
            changed.wake_all();
            Ok(())
        });
    }
    while done.borrow().len() < clients.len() {
        changed.wait().await;
    }
    let mut memories = done.take();
    memories.sort_by_key(|(rank, _)| *rank);
    memories.into_iter().map(|(_, memory)| memory).collect()
}

/// After the members of a group have written any extents of any files together, each byte has the value of its latest
/// writer, and bytes outside of all extents are unchanged. Reading extents together returns the contents of the files.
pub fn extent_lists_agree_with_files_in_memory(testbed: &impl Testbed, base: Base) {
    let numbers = [1, 2];
    for (seed, longest, queued, presort) in
        [(1, 8, false, true), (2, 3 * BLOCK, true, true), (3, BLOCK, false, false)]
    {
        run(testbed, 2 + MEMBERS as usize, move |nodes| async move {
            let threads = Threads::Pool(4);
            let clients = start(base, &nodes, 2, small(base, threads)).await;
            let (mut draw, mut files) = (Draw(seed), Vec::new());
            let mut expected = Vec::new();
            for number in numbers {
                let data = contents(draw.below(BYTES));
                let file = created(&clients[0], number).await;
                write(&file, 0, &data).await;
                file.flush().await.expect("flushed");
                files.push(file);
                expected.push(data);
            }
            for round in 1..3 {
                let of_round = |draw: &mut Draw| (0..MEMBERS).map(|_| draw_part(draw, 2, longest)).collect();
                let settings = ListedSettings { presort, queued };
                let parts: Vec<Part> = of_round(&mut draw);
                // Some of the earlier contents are still in caches.
                let (offset, fresh) = (draw.below(BYTES / 2), contents(1 + draw.below(2 * BLOCK)));
                write(&files[0], offset, &fresh).await;
                let end = expected[0].len().max(offset as usize + fresh.len());
                expected[0].resize(end, 0);
                expected[0][offset as usize..offset as usize + fresh.len()].copy_from_slice(&fresh);
                move_together(&clients, &nodes[2..], 2 * round, &numbers, &parts, true, settings).await;
                for (number, file) in files.iter().enumerate() {
                    expected[number] = overwrite(&expected[number], &parts, number);
                    refresh(&clients[0], file).await;
                    let now = read(file, 0, 2 * BYTES).await;
                    assert!(now == expected[number], "file {number} in round {round} of seed {seed}");
                }
                let parts: Vec<Part> = of_round(&mut draw);
                let read =
                    move_together(&clients, &nodes[2..], 2 * round + 1, &numbers, &parts, false, settings);
                for (part, memory) in parts.iter().zip(read.await) {
                    for (file, entries) in part.entries.iter().enumerate() {
                        for &Entry { offset, bytes, at, .. } in entries {
                            let there = (offset..offset + bytes)
                                .map(|at| expected[file].get(at as usize).copied().unwrap_or(0));
                            let got = &memory[at as usize..(at + bytes) as usize];
                            assert!(there.eq(got.iter().copied()), "{bytes} bytes at {offset} of {file}");
                        }
                    }
                }
            }
        });
    }
}

/// If the connection over which a member has sent its directory ends before the transfer, the member sends the
/// directory again. The I/O node has dropped the directory, and only notices that the member has reconnected.
pub fn a_lost_directory_of_extents_is_sent_again(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 1, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 1).await;
        let members: Vec<_> = nodes[1..].iter().map(|node| node.node()).collect();
        let settings = ListedSettings { presort: true, queued: true };
        let (tasks, client, group) =
            (Tasks::default(), clients[0].clone(), Group::new(78, members.clone(), 0));
        let writing = file.clone();
        tasks.begin(&nodes[1], async move {
            let part = FileEntries {
                file: writing,
                entries: vec![Entry { offset: 0, bytes: BYTES, at: 0, time: 0 }],
            };
            let memory = Memory::real(contents(BYTES));
            client.write_listed(&group, &[part], &memory, settings).await.expect("sent again");
        });
        // The first member has sent its directory, and waits for the other member.
        rest(&nodes[1]).await;
        nodes[0].net().give_up(nodes[1].node(), "the network is broken");
        rest(&nodes[1]).await;
        let (group, memory) = (Group::new(78, members, 1), Memory::real(Vec::new()));
        clients[1].write_listed(&group, &[], &memory, settings).await.expect("all is moved");
        tasks.wait().await;
        file.flush().await.expect("flushed");
        assert!(read(&opened(&clients[1], 1).await, 0, BYTES).await == contents(BYTES));
    });
}
