//! Promises about failing disks, restarted agents, and conflicting operations.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use fs::{
    Client, ClientSettings, CollectiveSettings, FailureKind, File, FileId, Group, IoNodeService,
    IoNodeSettings, PageCache, PageCacheSettings, Result, Threads, TwoPhaseFlush, object_name, serve,
};
use layout::{Pattern, Problem, View};
use machine::conformance::Testbed;
use machine::{Disk, Duration, Machine, Memory, Net, NodeId, Payload};
use namespace::TreeRefusal;

use super::faulty::Faulty;
use super::tasks::{Tasks, rest};
use super::{
    BLOCK, Base, Restarting, contents, created, opened, read, run, small, start, start_with, stored, write,
};

fn settings(base: Base) -> IoNodeSettings {
    small(base, Threads::Pool(4))
}

/// Returns the view in which each of `nodes` nodes has `blocks` consecutive blocks.
fn rows_of(blocks: u64, nodes: u32) -> View {
    let problem = Problem::new(blocks * u64::from(nodes) * BLOCK, BLOCK, nodes);
    "rb".parse::<Pattern>().and_then(|rb| rb.view(&problem)).expect("a view")
}

/// If a client writes to a block while earlier bytes of that block are being written to the disk, the new bytes reach
/// the disk later, for any number of concurrent disk requests.
pub fn later_writes_of_a_block_reach_the_disk_later(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let settings = IoNodeSettings { requests_at_disk: 3, ..settings(base) };
        let client = start(base, &nodes, 1, settings).await.remove(0);
        let file = created(&client, 1).await;
        write(&file, 0, &contents(BLOCK)).await;
        file.flush().await.expect("flushed");
        let (tasks, faults) = (Tasks::default(), nodes[0].faults());
        faults.hold();
        // Two runs of dirty bytes are written to disk one after the other; the next write of the client replaces bytes
        // of the second run before this is written.
        for (offset, byte) in [(0, 1), (100, 1), (100, 2)] {
            write(&file, offset, &[byte; 10]).await;
            if offset == 100 {
                let file = file.clone();
                tasks.begin(&nodes[1], async move { file.flush().await.expect("flushed") });
                rest(&nodes[1]).await;
            }
        }
        faults.release();
        tasks.wait().await;
        let object = nodes[0].disks()[0].open(&object_name(FileId(1))).await.expect("committed");
        let into = nodes[0].buffers().take(BLOCK).await;
        let found = nodes[0].disks()[0].read(object.id, 0, into).await.expect("read");
        assert_eq!(found.slice(100..110).to_vec(), Some(vec![2; 10]));
    });
}

/// Written data soon reach their disk, even if the rest of their block is never written and no client flushes.
pub fn partial_blocks_are_written_back_in_time(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let settings = IoNodeSettings { write_back_after: Some(Duration::from_millis(20)), ..settings(base) };
        let client = start(base, &nodes, 1, settings).await.remove(0);
        let file = created(&client, 1).await;
        let object = nodes[0].disks()[0].open(&object_name(FileId(1))).await.expect("committed").id;
        let deadline = nodes[1].now() + Duration::from_secs(20);
        for (offset, byte) in [(100, 1), (BLOCK + 7, 2), (100, 3)] {
            write(&file, offset, &[byte; 10]).await;
            loop {
                let into = nodes[0].buffers().take(10).await;
                let found = nodes[0].disks()[0].read(object, offset, into).await.expect("read");
                if found.slice(0..10).to_vec() == Some(vec![byte; 10]) {
                    break;
                }
                assert!(nodes[1].now() < deadline, "it is not written back");
                nodes[1].sleep_until(nodes[1].now() + Duration::from_millis(10)).await;
            }
        }
    });
}

/// Many pieces of a block are written to the disk in one request, with the bytes between them, even if the file is
/// truncated at the same time. If one request is impossible, the pieces are written one by one.
pub fn many_pieces_of_a_block_are_written_in_one_request(testbed: &impl Testbed, base: Base) {
    const PIECES: u64 = 20;
    let at = |piece: u64| BLOCK + 5 + piece * 20;
    run(testbed, 2, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let service = IoNodeService::new(nodes[0].clone(), settings(base));
        let (serving, name) = (service.clone(), nodes[0].node());
        nodes[0].spawn("I/O node", async move { serving.serve().await });
        let client = Client::connect(nodes[1].clone(), vec![name], base.client()).await.expect("it answers");
        let file = created(&client, 1).await;
        let mut data = contents(3 * BLOCK);
        write(&file, 0, &data).await;
        file.flush().await.expect("flushed");
        let written =
            async || service.counts().await.disks.iter().map(|disk| disk.bytes_written).sum::<u64>();
        let object = nodes[0].disks()[0].open(&object_name(FileId(1))).await.expect("committed").id;
        let together = at(PIECES - 1) + 3 - at(0);
        for (value, failing_writes, end, bytes) in
            [(1, 0, None, together), (2, 1, None, PIECES * 3), (3, 0, Some(2 * BLOCK), together)]
        {
            let before = written().await;
            for piece in 0..PIECES {
                write(&file, at(piece), &[value; 3]).await;
                data[at(piece) as usize..][..3].fill(value);
            }
            nodes[0].faults().failing_writes.set(failing_writes);
            match end {
                None => file.flush().await.expect("flushed"),
                Some(end) => file.truncate(end).await.expect("cut"),
            }
            assert_eq!(written().await - before, bytes);
            data.truncate(end.unwrap_or(3 * BLOCK) as usize);
            let into = nodes[0].buffers().take(data.len() as u64).await;
            let found = nodes[0].disks()[0].read(object, 0, into).await.expect("read");
            assert!(found.slice(0..data.len() as u64).to_vec().as_ref() == Some(&data));
        }
    });
}

/// A write is accepted only if its disk has space for it and for all accepted data that are not yet on the disk. So no
/// write of a closed file fails for lack of space. Data on a full disk can be overwritten.
pub fn accepted_writes_fit_on_the_disk(testbed: &impl Testbed, base: Base) {
    const ROOM: u64 = 200 << 10;
    run(testbed, 2, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let client = start(base, &nodes, 1, settings(base)).await.remove(0);
        nodes[0].faults().room.set(Some(ROOM));
        let file = created(&client, 1).await;
        write(&file, 0, &contents(BLOCK)).await;
        file.flush().await.expect("flushed");
        // Parts of blocks, which wait for more data.
        let (mut end, part) = (BLOCK, BLOCK / 2);
        let refused = loop {
            let memory = Memory::real(contents(part));
            match file.write(end, part, &memory, 0).await {
                Ok(()) => end += BLOCK,
                Err(refused) => break refused,
            }
            assert!(end < 2 * BLOCK + 2 * ROOM, "more was accepted than fits");
        };
        assert!(refused.is_remote(FailureKind::NoSpace), "{refused}");
        assert!(end > BLOCK, "writes that fit are accepted");
        write(&file, 0, &contents(BLOCK)).await;
        file.flush().await.expect("all that was accepted has room");
        nodes[0].faults().room.set(None);
        write(&file, end, &contents(part)).await;
        file.flush().await.expect("there is room again");
    });
}

/// Accepted writes also reach the disk if many small files are written concurrently, with blocks in any order and holes
/// between them: all data, and the metadata of each file.
pub fn accepted_writes_to_many_files_fit_on_the_disk(testbed: &impl Testbed, base: Base) {
    const ROOM: u64 = 3 << 20;
    const PARTS: [(u64, u64); 2] = [(17 * BLOCK, BLOCK), (BLOCK, 100)];
    run(testbed, 4, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        // Many blocks wait in memory.
        let settings = IoNodeSettings { cache_blocks: 100, ..settings(base) };
        let clients = start(base, &nodes, 1, settings).await;
        nodes[0].faults().room.set(Some(ROOM));
        let (tasks, accepted) = (Tasks::default(), Rc::<RefCell<Vec<_>>>::default());
        for (index, client) in clients.into_iter().enumerate() {
            let accepted = accepted.clone();
            tasks.begin(&nodes[1 + index], async move {
                for number in 0_u64.. {
                    let number = 3 * number + index as u64;
                    let file = created(&client, 1 + number).await;
                    for (offset, bytes) in PARTS {
                        let memory = Memory::real(contents(bytes));
                        if let Err(refused) = file.write(offset, bytes, &memory, 0).await {
                            assert!(refused.is_remote(FailureKind::NoSpace), "{refused}");
                            return;
                        }
                    }
                    accepted.borrow_mut().push(file);
                }
            });
        }
        tasks.wait().await;
        let accepted = accepted.take();
        assert!(accepted.len() as u64 > ROOM / (80 << 10), "{} files", accepted.len());
        for file in accepted {
            file.flush().await.expect("all that was accepted has room");
        }
    });
}

/// A range of accepted data that did not reach the disk is not read as a hole.
pub fn lost_data_are_not_a_hole(testbed: &impl Testbed, base: Base) {
    // The lost range is far from other data, because a disk reports holes in large units.
    const LOST: u64 = 1024 * BLOCK + 10;
    run(testbed, 2, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let client = start(base, &nodes, 1, settings(base)).await.remove(0);
        let file = created(&client, 1).await;
        write(&file, 4096 * BLOCK, &contents(BLOCK)).await;
        file.flush().await.expect("flushed");
        nodes[0].faults().failing_writes.set(1);
        write(&file, LOST, &[1; 100]).await;
        file.flush().await.expect_err("it is lost");
        assert_eq!(file.next_data(0).await, Ok(Some(LOST)));
        let memory = Memory::real(vec![0; BLOCK as usize]);
        file.read(1024 * BLOCK, BLOCK, &memory, 0).await.expect_err("it is not zeros");
    });
}

/// A write-through of a block, or of a part of a block, completes when its data are on the disk. If the disk has
/// failed, the write-through fails at once. This holds despite concurrent writes to the same block.
pub fn a_completed_write_through_is_at_the_disk(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let clients = start(base, &nodes, 1, settings(base)).await;
        let file = created(&clients[0], 1).await;
        let other = opened(&clients[1], 1).await;
        let object = nodes[0].disks()[0].open(&object_name(FileId(1))).await.expect("committed").id;
        for (offset, bytes) in [(0, BLOCK), (BLOCK + 100, 50), (0, 3), (2 * BLOCK - 10, 20)] {
            let data = contents(bytes);
            write(&other, offset, &vec![7; bytes as usize]).await;
            let memory = Memory::real(data.clone());
            file.write_through(offset, bytes, &memory, 0).await.expect("the disk has it");
            let into = nodes[0].buffers().take(bytes).await;
            let found = nodes[0].disks()[0].read(object, offset, into).await.expect("read");
            assert_eq!(found.slice(0..bytes).to_vec(), Some(data));
        }
        let tasks = Tasks::default();
        for (block, file) in [(0, &file), (0, &other), (1, &file), (0, &file)] {
            let (file, memory) = (file.clone(), Memory::real(contents(BLOCK)));
            tasks.begin(&nodes[1], async move {
                file.write_through(block * BLOCK, BLOCK, &memory, 0).await.expect("the disk has it");
            });
        }
        tasks.wait().await;
        nodes[0].faults().failing_writes.set(1);
        let memory = Memory::real(contents(BLOCK));
        let error = file.write_through(0, BLOCK, &memory, 0).await.expect_err("the disk has failed");
        assert!(error.to_string().contains("did not reach the disk"), "{error}");
        // The next flush reports the failure, too, as for any accepted write.
        assert!(file.flush().await.is_err());
        file.write_through(0, BLOCK, &memory, 0).await.expect("the disk has it");
    });
}

/// A collective operation opens the file again at a restarted I/O node, and retries the request.
pub fn a_collective_operation_reopens_its_file_after_a_restart(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let io_node = Restarting::serve(&nodes[0]);
        let client = Client::connect(nodes[1].clone(), vec![nodes[0].node()], base.client()).await;
        let file = opened(&client.expect("it answers"), 1).await;
        let group = Group::new(1, vec![nodes[1].node()], 0);
        for (restarts, collectives) in [(false, 1), (true, 2)] {
            if restarts {
                io_node.restart();
            }
            let memory = Memory::real(vec![1; BLOCK as usize]);
            let settings = CollectiveSettings::disk_directed();
            let written = file.write_collective(&group, &rows_of(1, 1), &memory, settings).await;
            assert_eq!((written, io_node.collectives.get()), (Ok(()), collectives));
        }
    });
}

/// After a failed flush of a disk, each client that has written to it since the last flush gets the error once.
pub fn a_failed_flush_is_reported_to_all_writers(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let clients = start(base, &nodes, 1, settings(base)).await;
        created(&clients[0], 1).await;
        let mut files = Vec::new();
        for client in &clients {
            files.push(opened(client, 1).await);
        }
        for (block, file) in (0..2).zip(&files) {
            write(file, block * BLOCK, &contents(BLOCK)).await;
        }
        nodes[0].faults().failing_flushes.set(1);
        for (writer, file) in files.iter().take(2).enumerate() {
            let text = file.flush().await.expect_err("its writes may be lost").to_string();
            assert!(text.contains("flushing"), "writer {writer}: {text}");
        }
        for file in &files {
            assert_eq!(file.flush().await, Ok(()), "it has got the error, or has written nothing");
        }
        nodes[0].faults().failing_flushes.set(1);
        let text = files[2].flush_all().await.expect_err("any caller gets the error").to_string();
        assert!(text.contains("flushing"), "{text}");
    });
}

/// After a failure of a disk's medium during a sync, no later flush of the file succeeds: the contents are unknown.
/// Another file can be written.
pub fn after_a_failed_sync_every_flush_of_the_file_fails(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let client = start(base, &nodes, 1, settings(base)).await.remove(0);
        let file = created(&client, 1).await;
        write(&file, 0, &contents(BLOCK)).await;
        nodes[0].faults().failing_syncs.set(1);
        for _ in 0..2 {
            file.flush_all().await.expect_err("the written data may be lost");
        }
        client.remove_numbered(&[FileId(1)]).await.expect("removed");
        let file = created(&client, 2).await;
        write(&file, 0, &contents(BLOCK)).await;
        file.flush().await.expect("it is another object");
    });
}

/// Returns the page cache of a client of two I/O nodes.
async fn cache_of_two<M: Machine>(base: Base, nodes: &[M]) -> PageCache<M> {
    let client = &start(base, nodes, 2, settings(base)).await[0];
    PageCache::new(client.clone(), PageCacheSettings::default())
}

/// After a failed flush of a disk, each handle of a page cache on the file reports the failure once.
pub fn a_failed_flush_is_reported_through_all_handles(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let cache = cache_of_two(base, &nodes).await;
        let shared = stored(cache.client(), 1, BLOCK).await;
        let open = async || cache.open_numbered(shared.clone()).await.expect("opened");
        let files = [open().await, open().await];
        files[0].write(0, Payload::from(contents(BLOCK))).await.expect("taken");
        nodes[0].faults().failing_flushes.set(1);
        for file in &files {
            let text = file.flush().await.expect_err("the written data may be lost").to_string();
            assert!(text.contains("flushing"), "{text}");
        }
        for file in files {
            assert_eq!(file.flush().await, Ok(()), "it has got the error");
            assert_eq!(file.close().await, Ok(()));
        }
    });
}

/// A failed write is reported to one of several users of a handle, and then to another.
pub fn all_users_of_a_shared_handle_get_its_failure(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let cache = cache_of_two(base, &nodes).await;
        let shared = stored(cache.client(), 1, BLOCK).await;
        let file = cache.open_numbered(shared).await.expect("opened");
        nodes[0].faults().failing_writes.set(1);
        // The first write is accepted and fails at the disk. This failure is the answer to the second write, which is
        // therefore sent again.
        for _ in 0..2 {
            file.write(0, Payload::from(contents(BLOCK))).await.expect("taken");
            rest(&nodes[2]).await;
        }
        for _ in 0..2 {
            let text = file.send_shared().await.expect_err("a block is lost").to_string();
            assert!(text.contains("writing"), "{text}");
        }
        let text = file.flush().await.expect_err("a block is lost").to_string();
        assert!(text.contains("writing"), "{text}");
        assert_eq!(file.close().await, Ok(()), "all users have got the error");
    });
}

/// If a block written by any member of a group did not reach its disk, the operation fails for all members; after
/// two-phase writes this requires that each member flushes. The next operation succeeds.
pub fn a_failed_write_behind_of_one_member_fails_the_group(testbed: &impl Testbed, base: Base) {
    for collective in [CollectiveSettings::two_phase(), CollectiveSettings::disk_directed()] {
        run(testbed, 4, move |nodes| async move {
            let nodes = Faulty::all(nodes);
            let each = ClientSettings { two_phase_flush: TwoPhaseFlush::Each, ..base.client() };
            let clients = start_with(&nodes, 2, settings(base), each).await;
            created(&clients[0], 1).await;
            // The second member's part of the file is on the second I/O node, to which no other member has written.
            nodes[1].faults().failing_writes.set(1);
            let members: Vec<NodeId> = nodes[2..].iter().map(|node| node.node()).collect();
            let tasks = Tasks::default();
            for (rank, client) in clients.iter().enumerate() {
                let (group, client) = (Group::new(3, members.clone(), rank), client.clone());
                tasks.begin(&nodes[2 + rank], async move {
                    let file = opened(&client, 1).await;
                    let memory = Memory::real(vec![rank as u8; BLOCK as usize]);
                    let view = rows_of(1, 2);
                    let write = || file.write_collective(&group, &view, &memory, collective);
                    let text = write().await.expect_err("a block is lost").to_string();
                    assert!(text.contains("writing"), "member {rank}: {text}");
                    assert_eq!(write().await, Ok(()), "member {rank}");
                    assert_eq!(file.flush().await, Ok(()), "member {rank} has got the error");
                });
            }
            tasks.wait().await;
        });
    }
}

/// If a collective operation cannot begin at one disk of an I/O node, it has ended at the other disks before the I/O
/// node answers. So no data are sent to memory that the client may release after the answer.
pub fn a_failed_collective_operation_has_ended_at_all_disks(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let io_node = Faulty::with_disks_of(nodes[0].clone(), &nodes[..2]);
        let nodes = [io_node, Faulty::with_disks_of(nodes[2].clone(), &[])];
        let clients = start(base, &nodes, 1, settings(base)).await;
        let file = created(&clients[0], 1).await;
        write(&file, 0, &contents(64 * BLOCK)).await;
        file.flush().await.expect("flushed");
        // A block of the second disk is lost.
        nodes[0].faults().failing_writes.set(1);
        write(&file, BLOCK, &contents(BLOCK)).await;
        file.flush().await.expect_err("a block is lost");
        let (group, memory) = (Group::new(1, vec![nodes[1].node()], 0), Memory::real(contents(64 * BLOCK)));
        let settings = CollectiveSettings::disk_directed();
        let read = file.read_collective(&group, &rows_of(64, 1), &memory, settings).await;
        read.expect_err("lost data are not read");
        let reads = nodes[0].faults().reads.get();
        rest(&nodes[1]).await;
        assert_eq!(nodes[0].faults().reads.get(), reads, "reads before the answer, and in all");
    });
}

/// A stopping I/O node writes all data that it can, even after a failure, and reports the failure.
pub fn a_stopping_io_node_writes_all_data_despite_a_failure(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let (io_node, stopped) = (nodes[0].clone(), Tasks::default());
        stopped.begin(&nodes[0], async move {
            let error = serve(io_node, settings(base)).await.expect_err("not all is written");
            assert!(error.to_string().contains("flushing"), "{error}");
        });
        let names = vec![nodes[0].node()];
        let client = Client::connect(nodes[1].clone(), names, base.client()).await;
        let client = client.expect("connected");
        for number in 1..=3 {
            write(&created(&client, number).await, 0, &contents(number)).await;
        }
        nodes[0].faults().failing_flushes.set(2);
        nodes[0].net().close();
        stopped.wait().await;
        for number in 1..=3 {
            let disk = &nodes[0].disks()[0];
            let object = disk.open(&object_name(FileId(number))).await.expect("still there");
            let into = nodes[0].buffers().take(number).await;
            let found = disk.read(object.id, 0, into).await.expect("read");
            assert_eq!(found.slice(0..found.len()).to_vec(), Some(contents(number)), "{number}");
        }
    });
}

/// Removal, truncation and collective write of a file complete while another client writes to it, and leaves a
/// partially written block.
pub fn changes_of_a_file_complete_during_writes_of_others(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| {
        change_while_others_write(base, nodes, async |client, _| {
            client.remove_numbered(&[FileId(1)]).await.map(drop)
        })
    });
    run(testbed, 3, move |nodes| {
        change_while_others_write(base, nodes, async |_, file| file.truncate(3).await)
    });
    run(testbed, 3, move |nodes| {
        let group = Group::new(1, vec![nodes[2].node()], 0);
        change_while_others_write(base, nodes, async move |_, file| {
            let memory = Memory::real(contents(4 * BLOCK));
            let settings = CollectiveSettings::disk_directed();
            file.write_collective(&group, &rows_of(4, 1), &memory, settings).await
        })
    });
}

async fn change_while_others_write<M: Machine>(
    base: Base,
    nodes: Vec<M>,
    change: impl AsyncFnOnce(Client<Faulty<M>>, File<Faulty<M>>) -> Result<()> + 'static,
) {
    let nodes = Faulty::all(nodes);
    let clients = start(base, &nodes, 1, settings(base)).await;
    let file = created(&clients[0], 1).await;
    let (client, other) = (clients[1].clone(), opened(&clients[1], 1).await);
    nodes[0].faults().hold();
    write(&file, 0, &contents(BLOCK)).await;
    let tasks = Tasks::default();
    tasks.begin(&nodes[2], async move { change(client, other).await.expect("done") });
    rest(&nodes[2]).await;
    tasks.begin(&nodes[1], async move {
        // This write may run before or after the change, or find no file.
        let _ = file.write(BLOCK, 5, &Memory::real(vec![1; 5]), 0).await;
    });
    rest(&nodes[1]).await;
    nodes[0].faults().release();
    tasks.wait().await;
    // All slots of the cache must be free: a dirty block that can no longer be written would keep its slot forever.
    let file = created(&clients[0], 2).await;
    write(&file, 0, &contents(20 * BLOCK)).await;
    assert!(read(&file, 0, 20 * BLOCK).await == contents(20 * BLOCK));
}

/// A file can be truncated and removed despite any number of concurrent appends.
pub fn a_file_is_truncated_and_removed_despite_endless_appends(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 1, settings(base)).await;
        let file = created(&clients[0], 1).await;
        let (tasks, over) = (Tasks::default(), Rc::new(Cell::new(false)));
        for (number, client) in clients.iter().enumerate().skip(1) {
            let (log, over) = (opened(client, 1).await, over.clone());
            tasks.begin(&nodes[1 + number], async move {
                // Small records leave a part of a block, large ones keep the disk busy.
                let record = Memory::real(vec![7; if number == 1 { 10 } else { 3 * BLOCK as usize }]);
                for offset in (0..).step_by(record.len() as usize) {
                    let appended = log.write(offset, record.len(), &record, 0).await;
                    if appended.is_err() {
                        assert!(over.get(), "{appended:?}");
                        break;
                    }
                }
            });
        }
        for round in 0..5 {
            rest(&nodes[1]).await;
            file.truncate(round).await.expect("cut");
        }
        over.set(true);
        clients[0].remove_numbered(&[FileId(1)]).await.expect("removed");
        tasks.wait().await;
    });
}

/// A file may be longer than its disk, because holes take no space. A write or extension beyond the maximum length of a
/// stripe is rejected without effect.
pub fn a_file_can_be_longer_than_its_disk(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let clients = start(base, &nodes, 1, settings(base)).await;
        let file = created(&clients[0], 1).await;
        let data = contents(2 * BLOCK);
        write(&file, 0, &data).await;
        file.flush().await.expect("flushed");
        let space = nodes[0].disks()[0].space().await.expect("a disk");
        let end = layout::FILE_BYTES_MAX - BLOCK;
        let error = file.write(end, 5, &Memory::real(vec![1; 5]), 0).await.expect_err("a refusal");
        assert!(error.is_remote(FailureKind::TooLarge), "{error}");
        let error = file.truncate(end).await.expect_err("a refusal");
        assert!(error.is_remote(FailureKind::TooLarge), "{error}");
        let error = file.truncate(layout::FILE_BYTES_MAX + 1).await.expect_err("a refusal");
        assert!(error.is_refused(TreeRefusal::FileTooLarge), "{error}");
        let found = opened(&clients[1], 1).await;
        assert!(found.bytes() == 2 * BLOCK && read(&found, 0, 10 * BLOCK).await == data);
        // Lengths a little beyond the size of this disk, and beyond any disk of today.
        for far in [space.map_or(1 << 42, |space| space.bytes + BLOCK), 1 << 43] {
            write(&file, far, &[7; 5]).await;
            file.flush().await.expect("there is room for five bytes");
            file.truncate(far + 2 * BLOCK).await.expect("a hole at the end");
            file.flush().await.expect("flushed");
            let found = opened(&clients[1], 1).await;
            let mut expected = vec![7; 5];
            expected.resize(2 * BLOCK as usize, 0);
            assert_eq!(found.bytes(), far + 2 * BLOCK);
            assert!(read(&found, far, 2 * BLOCK).await == expected);
            assert!(read(&found, far - BLOCK, BLOCK).await.iter().all(|byte| *byte == 0));
        }
        let file = opened(&clients[1], 1).await;
        file.truncate(3 * BLOCK).await.expect("room");
        file.flush().await.expect("flushed");
        assert_eq!(stored(&clients[0], 1, BLOCK).await.bytes, 3 * BLOCK);
    });
}
