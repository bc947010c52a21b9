//! What the page cache promises.

use std::cell::Cell;
use std::rc::Rc;

use fs::{
    Advice, Client, Error, FileId, IoNodeSettings, PageCache, PageCacheSettings, PagedFile, Prefetch, Result,
    Threads,
};
use layout::Striping;
use machine::conformance::Testbed;
use machine::{Condition, Disk, Duration, Machine, Net, Payload, Stage};

use super::faulty::Faulty;
use super::tasks::{Tasks, rest, until};
use super::{BLOCK, Base, Draw, Restarting, contents, put, run, small, start};

fn cache_of<M: Machine>(client: &Client<M>, pages: u64, prefetch: Prefetch) -> PageCache<M> {
    PageCache::new(
        client.clone(),
        PageCacheSettings {
            bytes: pages * BLOCK,
            prefetch,
            write_behind: true,
            ..PageCacheSettings::default()
        },
    )
}

fn settings(base: Base) -> IoNodeSettings {
    IoNodeSettings { requests_at_disk: 2, ..small(base, Threads::Pool(4)) }
}

async fn read<M: Machine>(file: &PagedFile<M>, offset: u64, bytes: u64) -> Vec<u8> {
    let data = file.read(offset, bytes).await.expect("the read succeeds");
    data.to_vec().expect("real bytes")
}

/// Reads as [`read`] does, each page alone.
async fn read_alone<M: Machine>(file: &PagedFile<M>, offset: u64, bytes: u64) -> Vec<u8> {
    let mut found = Vec::new();
    while (found.len() as u64) < bytes {
        let done = found.len() as u64;
        let part = file.read_alone(offset + done, bytes - done).await.expect("the read succeeds");
        if part.is_empty() {
            break;
        }
        found.extend(part.to_vec().expect("real bytes"));
    }
    found
}

async fn write<M: Machine>(file: &PagedFile<M>, offset: u64, data: &[u8]) {
    file.write(offset, Payload::from(data)).await.expect("the write succeeds");
}

/// A file of any size goes through a cache of any size: read back at once, and by a client that opens it anew.
pub fn cached_files_of_any_size_are_read_back(testbed: &impl Testbed, base: Base) {
    for (pages, prefetch) in
        [(1, Prefetch::None), (3, Prefetch::Window(4)), (8, Prefetch::Adaptive), (100, Prefetch::Window(16))]
    {
        run(testbed, 5, move |nodes| async move {
            let clients = start(base, &nodes, 3, settings(base)).await;
            let caches: Vec<_> = clients.iter().map(|client| cache_of(client, pages, prefetch)).collect();
            for bytes in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 20 * BLOCK + 7] {
                let (name, data) = (format!("file of {bytes}"), contents(bytes));
                let file = caches[0].create(&name, FileId(bytes + 1), BLOCK).await.expect("created");
                for (number, part) in (0..).zip(data.chunks(200)) {
                    write(&file, number * 200, part).await;
                    assert!(caches[0].bytes() <= pages * BLOCK);
                }
                assert!(read(&file, 0, bytes + 10).await == data);
                assert!(read(&file, bytes, 10).await.is_empty());
                file.close().await.expect("closed");
                let other = caches[1].open(&name).await.expect("opened");
                assert_eq!(other.bytes(), bytes);
                for (number, part) in (0..).zip(data.chunks(100)) {
                    assert!(read(&other, number * 100, 100).await == part);
                    assert!(caches[1].bytes() <= pages * BLOCK);
                }
                assert!(read(&other, 0, bytes).await == data);
                other.close().await.expect("closed");
                assert_eq!(caches[1].bytes(), 0, "nothing is kept of a file nobody has open");
            }
        });
    }
}

/// Files with pages of the usual 64 KiB, at the sizes where mistakes show.
pub fn cached_files_with_large_pages_are_read_back(testbed: &impl Testbed, base: Base) {
    const PAGE: u64 = 64 * 1024;
    run(testbed, 3, move |nodes| async move {
        let settings = IoNodeSettings { block_bytes_max: PAGE, ..settings(base) };
        let client = &start(base, &nodes, 2, settings).await[0];
        for bytes in [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 1] {
            let (name, data) = (format!("large {bytes}"), contents(bytes));
            let cache = cache_of(client, 2 * PAGE / BLOCK, Prefetch::Adaptive);
            let file = cache.create(&name, FileId(bytes + 1), PAGE).await.expect("created");
            write(&file, 0, &data).await;
            file.close().await.expect("closed");
            let file = cache.open(&name).await.expect("opened");
            let mut found = Vec::new();
            while found.len() < data.len() {
                found.extend(read(&file, found.len() as u64, 40_000).await);
            }
            assert!(found == data);
        }
    });
}

/// What is written through one handle is read at once through every other of the same cache, in pages that are clean,
/// dirty, on their way or gone.
pub fn a_client_reads_what_it_has_written(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, settings(base)).await[0];
        let cache = cache_of(client, 3, Prefetch::Window(2));
        let writer = cache.create("own", FileId(1), BLOCK).await.expect("created");
        let reader = cache.open("own").await.expect("opened");
        let mut model = contents(8 * BLOCK);
        write(&writer, 0, &model).await;
        let mut draw = Draw(5);
        for round in 0..200_u64 {
            let (offset, bytes) = (draw.below(8 * BLOCK - 90), 1 + draw.below(90));
            let data = vec![round as u8; bytes as usize];
            write(&writer, offset, &data).await;
            model[offset as usize..(offset + bytes) as usize].copy_from_slice(&data);
            let at = if round % 2 == 0 { offset } else { draw.below(7 * BLOCK) };
            let expected = &model[at as usize..at as usize + 90];
            if round % 3 == 0 {
                assert!(read_alone(&reader, at, 90).await == expected, "round {round}");
            }
            assert!(read(&reader, at, 90).await == expected, "round {round}");
        }
    });
}

/// What is read alone is what is in the file, with what was written here; nothing of it is kept, and nothing else is
/// brought in.
pub fn what_is_read_alone_is_not_kept(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let data = contents(40 * BLOCK + 5);
        let file = cache_of(&clients[0], 60, Prefetch::None).create("here and there", FileId(1), BLOCK).await;
        let file = file.expect("created");
        write(&file, 0, &data).await;
        file.close().await.expect("closed");
        let cache = cache_of(&clients[1], 60, Prefetch::Adaptive);
        let file = cache.open("here and there").await.expect("opened");
        for (offset, bytes) in [
            (0, 1),
            (3 * BLOCK + 7, 30),
            (9 * BLOCK - 20, 50),
            (20 * BLOCK, 3 * BLOCK),
            (40 * BLOCK - 2, 100),
        ] {
            let end = data.len().min((offset + bytes) as usize);
            assert!(read_alone(&file, offset, bytes).await == data[offset as usize..end], "{offset}");
            rest(&nodes[3]).await;
            assert_eq!(cache.bytes(), 0, "{offset}");
        }
        assert!(read_alone(&file, 40 * BLOCK + 5, 1).await.is_empty());
        write(&file, 5 * BLOCK + 3, &[9; 4]).await;
        let beside = |at: u64| data[(5 * BLOCK + at) as usize];
        assert!(read_alone(&file, 5 * BLOCK + 2, 6).await == [beside(2), 9, 9, 9, 9, beside(7)]);
        file.close().await.expect("closed");
    });
}

/// A window of W pages brings in the W - 1 pages after the one that is used, the right ones, and no more.
pub fn a_window_brings_in_the_pages_after_the_one_in_use(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let data = contents(12 * BLOCK + 5);
        let file = cache_of(&clients[0], 20, Prefetch::None).create("ahead", FileId(1), BLOCK).await;
        let file = file.expect("created");
        write(&file, 0, &data).await;
        file.close().await.expect("closed");
        for window in [1, 2, 5] {
            let cache = cache_of(&clients[1], 20, Prefetch::Window(window));
            let file = cache.open("ahead").await.expect("opened");
            for page in [0, 1, 6, 11] {
                read(&file, page * BLOCK + 3, 1).await;
                rest(&nodes[3]).await;
            }
            let used: Vec<u64> = [0, 1, 6, 11].iter().flat_map(|&page| page..page + window).collect();
            let expected = (0..13).filter(|page| used.contains(page)).count() as u64;
            assert_eq!(cache.bytes(), expected * BLOCK, "window {window}");
            assert!(read(&file, 0, 13 * BLOCK).await == data);
        }
    });
}

/// The pages of a request begin to be read with the first of them, whatever the window.
pub fn the_pages_of_a_request_are_read_together(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let data = contents(12 * BLOCK);
        let file = cache_of(&clients[0], 20, Prefetch::None).create("long", FileId(1), BLOCK).await;
        let file = file.expect("created");
        write(&file, 0, &data).await;
        file.close().await.expect("closed");
        let file = cache_of(&clients[1], 20, Prefetch::None).open("long").await.expect("opened");
        let some = file.read_some(BLOCK + 5, 6 * BLOCK).await.expect("it is there");
        assert_eq!(some.to_vec().expect("real bytes"), data[BLOCK as usize + 5..2 * BLOCK as usize]);
        rest(&nodes[3]).await;
        let ready = (0..12).filter(|page| file.is_ready(page * BLOCK));
        assert_eq!(ready.collect::<Vec<_>>(), (1..8).collect::<Vec<_>>());
        assert!(file.read_some(12 * BLOCK, 9).await.expect("the end").is_empty());
    });
}

/// A file that the cache cannot hold passes through it when it is read from front to back: what else is there stays.
pub fn a_file_too_large_for_the_cache_passes_through(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let data = contents(100 * BLOCK + 5);
        let writer = cache_of(&clients[0], 20, Prefetch::None);
        for (name, id, bytes) in [("small", 1, 4 * BLOCK), ("large", 2, data.len() as u64)] {
            let file = writer.create(name, FileId(id), BLOCK).await.expect("created");
            write(&file, 0, &data[..bytes as usize]).await;
            file.close().await.expect("closed");
        }
        for prefetch in [Prefetch::None, Prefetch::Window(4), Prefetch::Adaptive] {
            let cache = cache_of(&clients[1], 40, prefetch);
            let small = cache.open("small").await.expect("opened");
            assert!(read(&small, 0, 4 * BLOCK).await == data[..4 * BLOCK as usize]);
            let large = cache.open("large").await.expect("opened");
            for (page, part) in (0..).zip(data.chunks(BLOCK as usize)) {
                assert!(read(&large, page * BLOCK, BLOCK).await == part);
            }
            assert!((0..4).all(|page| small.is_ready(page * BLOCK)), "{prefetch:?}");
            assert!(cache.bytes() < 40 * BLOCK, "{prefetch:?}: {} bytes", cache.bytes());
        }
    });
}

/// The data of a temporary file stay with the client: created, written, flushed, closed, read again and unlinked, it
/// has been on no disk; only what has to give way to other pages is sent.
pub fn temporary_files_reach_no_disk(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, settings(base)).await[0];
        let cache = cache_of(client, 8, Prefetch::Adaptive);
        let data = contents(5 * BLOCK + 9);
        let file = cache.create("run 1", FileId(1), BLOCK).await.expect("created");
        file.advise(Advice::Temporary);
        write(&file, 0, &data).await;
        file.flush().await.expect("nothing to flush");
        file.close().await.expect("closed");
        rest(&nodes[2]).await;
        let again = cache.open("run 1").await.expect("opened");
        assert!(read(&again, 0, 10 * BLOCK).await == data);
        again.truncate(2 * BLOCK).await.expect("cut");
        assert!(read(&again, 0, 10 * BLOCK).await == data[..2 * BLOCK as usize]);
        assert_eq!(
            client.stat_unfinished("run 1").await.expect("there").bytes,
            0,
            "no I/O node has any of it"
        );
        for node in &nodes[..2] {
            assert_eq!(
                node.disks()[0].open("run 1", Stage::Pending).await.expect("there").bytes,
                0,
                "no disk has any of it"
            );
        }
        again.close().await.expect("closed");
        cache.unlink("run 1").await.expect("removed");
        assert_eq!(cache.bytes(), 0);

        let large = cache.create("run 2", FileId(2), BLOCK).await.expect("created");
        large.advise(Advice::Temporary);
        let data = contents(30 * BLOCK);
        write(&large, 0, &data).await;
        assert!(read(&large, 0, 30 * BLOCK).await == data, "larger than the cache");
        assert!(
            client.stat_unfinished("run 2").await.expect("there").bytes > 0,
            "some of it had to give way"
        );
        drop(large);
        cache.finish().await.expect("finished");
        assert!(
            client.list().await.expect("listed").is_empty(),
            "who leaves takes his temporary files along"
        );
    });
}

/// A file that is begun in place of another one can be given up with all that was written to it: the other one stays,
/// with what the same cache has written to that.
pub fn a_cached_file_that_is_given_up_leaves_the_one_it_was_to_replace(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let cache = cache_of(&clients[0], 4, Prefetch::Adaptive);
        let (old, new) = (contents(3 * BLOCK), contents(9 * BLOCK)[BLOCK as usize..].to_vec());
        let replaced = cache.create("name", FileId(1), BLOCK).await.expect("created");
        replaced.close().await.expect("closed");
        let replaced = cache.open("name").await.expect("opened");
        write(&replaced, 0, &old).await;
        // The second time some of it has left the cache.
        for (round, bytes) in [(1, 2 * BLOCK), (2, 8 * BLOCK)] {
            let striping = Striping::new(BLOCK, 1).expect("a striping");
            let given_up = cache.create_replacing("name", FileId(10 + round), striping).await.expect("begun");
            write(&given_up, 0, &new[..bytes as usize]).await;
            cache.unlink_unfinished("name").await.expect("given up");
            drop(given_up);
            let stat = clients[1].find_all("name").await.expect("found");
            assert_eq!(stat.iter().map(|file| file.file).collect::<Vec<_>>(), [FileId(1)]);
        }
        assert!(read(&replaced, 0, 10 * BLOCK).await == old);
        replaced.close().await.expect("closed");
        let found = cache_of(&clients[1], 4, Prefetch::Adaptive).open("name").await.expect("opened");
        assert!(read(&found, 0, 10 * BLOCK).await == old);
        let error = cache.unlink_unfinished("name").await.expect_err("there is none");
        assert!(matches!(*error, Error::NotFound { .. }), "{error}");
        assert_eq!(cache.bytes(), 0);
    });
}

/// A write that fails behind the application's back is reported, by flushing, closing, and the next write; it is
/// tried again when the file is flushed again.
pub fn a_write_that_fails_behind_is_reported(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let cache = cache_of(&clients[0], 4, Prefetch::Adaptive);
        let file = cache.create("lost", FileId(1), BLOCK).await.expect("created");
        write(&file, 0, &contents(2 * BLOCK)).await;
        file.flush().await.expect("flushed");
        file.flush().await.expect("nothing left to flush");
        nodes[1].net().close();
        rest(&nodes[2]).await;
        write(&file, 2 * BLOCK, &contents(2 * BLOCK)).await;
        rest(&nodes[2]).await;
        let names_it = |outcome: Result<()>| {
            let error = outcome.expect_err("an I/O node is gone");
            let lost = nodes[1].node();
            let named =
                matches!(*error, Error::Machine(machine::Error::PeerGone { node, .. }) if node == lost);
            assert!(named, "{error}");
        };
        names_it(file.write(4 * BLOCK, Payload::from(vec![1])).await);
        names_it(file.flush().await);
        assert!(read(&file, 3 * BLOCK, 4).await == contents(2 * BLOCK)[BLOCK as usize..][..4], "still there");
        names_it(file.flush().await);
        assert_eq!(file.next_data(3 * BLOCK).await, Ok(Some(3 * BLOCK)), "it is no hole");
        // More than fits: what cannot be written is no way to room, and that is said instead of waited for.
        let mut outcome = Ok(());
        for page in 4..20 {
            outcome = outcome.and(file.write(page * BLOCK, Payload::from(contents(BLOCK))).await);
        }
        names_it(outcome);
        names_it(file.close().await);
        assert_eq!(cache.bytes(), 0, "what could not be written is given up by closing");
    });
}

/// Several who flush a file at the same time are told success only if it is on the media, all of them.
pub fn a_flush_that_fails_is_success_for_nobody(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, settings(base)).await[0];
        let cache = cache_of(client, 4, Prefetch::Adaptive);
        let file = Rc::new(cache.create("shared", FileId(1), BLOCK).await.expect("created"));
        write(&file, 0, &contents(2 * BLOCK)).await;
        rest(&nodes[2]).await;
        nodes[1].net().close();
        rest(&nodes[2]).await;
        let (left, done) = (Rc::new(Cell::new(2)), Rc::new(Condition::new()));
        for _ in 0..2 {
            let (file, left, done) = (file.clone(), left.clone(), done.clone());
            nodes[2].spawn("application", async move {
                let error = file.flush().await.expect_err("an I/O node is gone");
                assert!(matches!(*error, Error::Machine(machine::Error::PeerGone { .. })), "{error}");
                left.set(left.get() - 1);
                done.wake_all();
                Ok(())
            });
        }
        while left.get() > 0 {
            done.wait().await;
        }
    });
}

/// What an I/O node has lost is told through all handles, also if several flush at once and one is answered sooner.
pub fn a_loss_is_told_to_all_who_flush_at_once(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let (name, io_node) = (nodes[0].node(), Restarting::serve(&nodes[0]));
        let client = Client::connect(nodes[1].clone(), vec![name], base.client()).await.expect("it answers");
        let cache = cache_of(&client, 4, Prefetch::Adaptive);
        let (tasks, lost) = (Tasks::default(), Rc::new(Cell::new(0)));
        let mut handles = Vec::new();
        for at in [0, 10] {
            let file = cache.open("file").await.expect("opened");
            write(&file, at, b"lost").await;
            file.send().await.expect("accepted");
            handles.push(file);
        }
        io_node.start_anew();
        io_node.flushes_slowly.set(true);
        for file in handles {
            let lost = lost.clone();
            tasks.begin(&nodes[1], async move {
                let error = file.flush().await.expect_err("it is lost");
                assert!(matches!(*error, Error::WriteLost { .. }), "{error}");
                lost.set(lost.get() + 1);
                // The file is not committed.
                drop(file);
            });
            rest(&nodes[1]).await;
        }
        tasks.wait().await;
        assert_eq!(lost.get(), 2);
    });
}

/// What an I/O node has lost of a temporary file, which is never flushed, is reported to who asks before what was read
/// of the file counts.
pub fn what_is_lost_of_a_temporary_file_is_told(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let (name, io_node) = (nodes[0].node(), Restarting::serve(&nodes[0]));
        let client = Client::connect(nodes[1].clone(), vec![name], base.client()).await.expect("it answers");
        let cache = cache_of(&client, 4, Prefetch::Adaptive);
        let file = cache.open("file").await.expect("opened");
        file.advise(Advice::Temporary);
        // More than there is room for here, of which some is sent to each run.
        write(&file, 0, &contents(8 * BLOCK)).await;
        assert_eq!(file.check_losses().await, Ok(()));
        io_node.start_anew();
        write(&file, 8 * BLOCK, &contents(8 * BLOCK)).await;
        assert_eq!(file.flush().await, Ok(()), "nothing of it is flushed");
        let error = file.check_losses().await.expect_err("it is lost");
        assert!(matches!(*error, Error::WriteLost { .. }), "{error}");
        assert_eq!(file.check_losses().await, Ok(()), "it is told once");
    });
}

/// Hints move pages when they are given: random brings in nothing, will-need what it names, don't-need drops that, and
/// a final write leaves nothing, not even of a temporary file.
pub fn hints_move_pages(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, settings(base)).await[0];
        let data = contents(20 * BLOCK);
        let cache = cache_of(client, 12, Prefetch::Window(4));
        let file = cache.create("hinted", FileId(1), BLOCK).await.expect("created");
        write(&file, 0, &data).await;
        file.close().await.expect("closed");
        let file = cache.open("hinted").await.expect("opened");
        let pages = || cache.bytes() / BLOCK;
        file.advise(Advice::Random);
        read(&file, 0, 1).await;
        assert_eq!(pages(), 1);
        file.advise(Advice::Normal);
        read(&file, 10 * BLOCK, 1).await;
        rest(&nodes[2]).await;
        assert_eq!(pages(), 5);
        file.advise(Advice::DontNeed { offset: BLOCK, bytes: 11 * BLOCK });
        assert_eq!(pages(), 3, "pages 10 and 11 are gone, 0, 12 and 13 are not");
        file.advise(Advice::WillNeed { offset: 17 * BLOCK + 5, bytes: 100 * BLOCK });
        rest(&nodes[2]).await;
        assert_eq!(pages(), 6, "17 to 19 have come");
        file.advise(Advice::WillNeed { offset: 0, bytes: 100 * BLOCK });
        rest(&nodes[2]).await;
        assert!(pages() <= 12 && read(&file, 0, 20 * BLOCK).await == data);
        write(&file, BLOCK, &[7; 10]).await;
        file.advise(Advice::DontNeed { offset: 0, bytes: u64::MAX });
        rest(&nodes[2]).await;
        assert!(read(&file, BLOCK, 10).await == [7; 10], "what was dirty has been written");
        file.advise(Advice::Temporary);
        write(&file, BLOCK, &[8; 10]).await;
        file.advise(Advice::FinalWrite);
        file.close().await.expect("closed");
        rest(&nodes[2]).await;
        assert_eq!(pages(), 0);
        let again = cache.open("hinted").await.expect("opened");
        assert!(read(&again, BLOCK, 10).await == [8; 10]);
    });
}

/// Many who read and write at once through a cache of two pages wait for each other, and none for ever.
pub fn many_share_a_small_cache(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, settings(base)).await[0];
        let cache = cache_of(client, 2, Prefetch::Adaptive);
        let (left, done) = (Rc::new(Cell::new(8)), Rc::new(Condition::new()));
        for number in 0..8_u64 {
            let (cache, left, done) = (cache.clone(), left.clone(), done.clone());
            nodes[2].spawn("application", async move {
                // Half of the files are read by the client that writes them and by another.
                let name = format!("small {}", number % 4);
                let file = match cache.create(&name, FileId(1 + number % 4), BLOCK).await {
                    Err(error) if matches!(*error, Error::Exists { .. } | Error::BeingWritten { .. }) => {
                        cache.open(&name).await
                    }
                    other => other,
                };
                let file = file.expect("there");
                let (offset, data) = ((number / 4) * 9 * BLOCK, contents(9 * BLOCK));
                for (at, part) in (offset..).step_by(100).zip(data.chunks(100)) {
                    write(&file, at, part).await;
                    assert!(read(&file, at, part.len() as u64).await == part);
                }
                file.flush().await.expect("flushed");
                assert!(read(&file, offset, 9 * BLOCK).await == data);
                file.close().await.expect("closed");
                left.set(left.get() - 1);
                done.wake_all();
                Ok(())
            });
        }
        while left.get() > 0 {
            done.wait().await;
        }
        rest(&nodes[2]).await;
        assert_eq!(cache.bytes(), 0);
    });
}

/// What is cut off does not come back when the file is made longer, though it is read by others of the same client
/// while an I/O node has not cut it yet; what they write meanwhile comes after.
pub fn what_is_cut_off_does_not_come_back(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let client = &start(base, &nodes, 1, settings(base)).await[0];
        let cache = cache_of(client, 40, Prefetch::None);
        let file = Rc::new(cache.create("cut", FileId(1), BLOCK).await.expect("created"));
        write(&file, 0, &contents(8 * BLOCK)).await;
        file.commit().await.expect("committed");
        let (tasks, cutting) = (Tasks::default(), file.clone());
        nodes[0].faults().hold_resize();
        tasks.begin(&nodes[1], async move { cutting.truncate(BLOCK / 2).await.expect("cut") });
        until(&nodes[0], || nodes[0].faults().has_held_resize()).await;
        file.advise(Advice::WillNeed { offset: 0, bytes: 8 * BLOCK });
        let (reading, alone, writing) = (file.clone(), file.clone(), file.clone());
        tasks.begin(&nodes[1], async move { drop(read(&reading, 0, 8 * BLOCK).await) });
        tasks.begin(&nodes[1], async move { drop(read_alone(&alone, 10, 8 * BLOCK).await) });
        tasks.begin(&nodes[1], async move { write(&writing, 3 * BLOCK, &[7; BLOCK as usize]).await });
        rest(&nodes[1]).await;
        nodes[0].faults().release();
        tasks.wait().await;
        let bytes = file.bytes();
        file.truncate(8 * BLOCK).await.expect("extended");
        let mut expected = contents(BLOCK / 2);
        expected.resize(8 * BLOCK as usize, 0);
        assert!(read(&file, 0, 3 * BLOCK).await == expected[..3 * BLOCK as usize], "it is back");
        assert_eq!(bytes, 4 * BLOCK, "the end of what was written");
        expected[3 * BLOCK as usize..4 * BLOCK as usize].fill(7);
        assert!(read(&file, 0, 9 * BLOCK).await == expected);
        file.flush().await.expect("flushed");
        file.refresh().await.expect("refreshed");
        assert!(read(&file, 0, 9 * BLOCK).await == expected);
    });
}

/// A file that cannot be removed stays as it is, with what was written to it and not sent, and is one file still for
/// all who open it. When it is removed, nobody misses what was not sent.
pub fn a_file_that_cannot_be_removed_stays_as_it_is(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let clients = start(base, &nodes, 2, settings(base)).await;
        let caches: Vec<_> = clients.iter().map(|client| cache_of(client, 8, Prefetch::None)).collect();
        let file = caches[0].create("kept", FileId(1), BLOCK).await.expect("created");
        file.commit().await.expect("committed");
        write(&file, 0, b"before").await;
        nodes[..2].iter().for_each(|node| node.faults().failing_removals.set(1));
        caches[0].unlink("kept").await.expect_err("it cannot be removed");
        write(&file, 6, b" and after").await;
        let again = caches[0].open("kept").await.expect("it is there");
        assert_eq!(read(&again, 0, 20).await, b"before and after");
        file.flush().await.expect("flushed");
        let other = caches[1].open("kept").await.expect("it is there");
        assert_eq!(read(&other, 0, 20).await, b"before and after");
        write(&file, 0, &contents(4 * BLOCK)).await;
        caches[0].unlink("kept").await.expect("removed");
        assert_eq!((file.close().await, again.close().await), (Ok(()), Ok(())));
        assert_eq!(caches[0].bytes(), 0);
    });
}

/// A client sees what another has written once the writer has flushed or closed the file and the reader has opened it
/// anew or refreshed it; of a page that both write, each sends only the bytes that it wrote.
pub fn clients_see_what_others_have_flushed(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let caches: Vec<_> = clients.iter().map(|client| cache_of(client, 8, Prefetch::Window(3))).collect();
        let one = caches[0].create("shared", FileId(1), BLOCK).await.expect("created");
        one.commit().await.expect("committed");
        write(&one, 0, &[1; 3 * BLOCK as usize]).await;
        one.flush().await.expect("flushed");
        let two = caches[1].open("shared").await.expect("opened");
        assert!(read(&two, 0, 4 * BLOCK).await == [1; 3 * BLOCK as usize]);
        write(&one, BLOCK, &[2; 100]).await;
        write(&two, BLOCK + 200, &[3; 100]).await;
        write(&one, 4 * BLOCK, &[4]).await;
        one.flush().await.expect("flushed");
        assert_eq!(two.refresh().await.expect("refreshed"), 4 * BLOCK + 1);
        two.flush().await.expect("flushed");
        let mut expected = [vec![1; 3 * BLOCK as usize], vec![0; BLOCK as usize], vec![4]].concat();
        expected[BLOCK as usize..][..100].fill(2);
        expected[BLOCK as usize + 200..][..100].fill(3);
        assert!(read(&two, 0, 5 * BLOCK).await == expected);
        let anew = caches[0].open("shared").await.expect("opened");
        assert!(read(&anew, 0, 5 * BLOCK).await == expected);
        assert!(read(&one, 0, 5 * BLOCK).await == expected, "through the older handle too");
    });
}

/// A part of a page that was written is sent though nobody flushes it: the other clients read it then. What is written
/// later is sent later, and so on.
pub fn a_part_of_a_page_is_sent_in_time(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let send_parts_after = Some(Duration::from_millis(20));
        let settings = PageCacheSettings { send_parts_after, ..PageCacheSettings::default() };
        let cache = PageCache::new(clients[0].clone(), settings);
        let file = cache.create("log", FileId(1), BLOCK).await.expect("created");
        write(&file, 0, &[0; 2 * BLOCK as usize]).await;
        file.commit().await.expect("committed");
        let mut expected = vec![0; 2 * BLOCK as usize];
        for (value, at) in (1..).zip([10, 60, BLOCK as usize + 5]) {
            expected[at..at + 50].fill(value);
            write(&file, at as u64, &[value; 50]).await;
            rest(&nodes[3]).await;
            let other = clients[1].open("log").await.expect("opened");
            assert!(super::read(&other, 0, 2 * BLOCK).await == expected, "after write {value}");
        }
        file.close().await.expect("closed");
    });
}

/// Clients that work at the same time, each on files of its own and all on a shared one, get what files in memory
/// would give: random operations, with caches so small that pages give way all the time.
pub fn random_cached_operations_agree_with_files_in_memory(testbed: &impl Testbed, base: Base) {
    for (seed, pages, prefetch) in [
        (1, 1, Prefetch::None),
        (2, 3, Prefetch::Window(8)),
        (3, 5, Prefetch::Adaptive),
        (4, 40, Prefetch::Window(4)),
    ] {
        cached_operations(testbed, base, settings(base), seed, pages, prefetch);
    }
}

/// Two clients with caches of `pages` pages, each on files of its own, and then in turn on one file: see
/// [`random_cached_operations_agree_with_files_in_memory`].
pub(super) fn cached_operations(
    testbed: &impl Testbed,
    base: Base,
    io_node: IoNodeSettings,
    seed: u64,
    pages: u64,
    prefetch: Prefetch,
) {
    run(testbed, 5, move |nodes| async move {
        let clients = start(base, &nodes, 3, io_node).await;
        let (left, done) = (Rc::new(Cell::new(clients.len())), Rc::new(Condition::new()));
        for (number, client) in (0..).zip(&clients) {
            let cache = cache_of(client, pages, prefetch);
            let (left, done) = (left.clone(), done.clone());
            let seed = seed * 10 + number;
            nodes[3 + number as usize].spawn("application", async move {
                Application::new(cache, seed).work().await;
                left.set(left.get() - 1);
                done.wake_all();
                Ok(())
            });
        }
        while left.get() > 0 {
            done.wait().await;
        }
        take_turns(&clients, seed, pages, prefetch).await;
    });
}

/// An application with two files of its own, and what they should contain.
struct Application<M: Machine> {
    cache: PageCache<M>,
    draw: Draw,
    files: Vec<(PagedFile<M>, Vec<u8>)>,
    names: [String; 2],
}

impl<M: Machine> Application<M> {
    fn new(cache: PageCache<M>, seed: u64) -> Self {
        let names = [format!("first of {seed}"), format!("second of {seed}")];
        Application { cache, draw: Draw(seed), files: Vec::new(), names }
    }

    async fn work(mut self) {
        for (number, name) in (0..).zip(&self.names) {
            let file =
                self.cache.create(name, FileId(2 * self.draw.0 + number), BLOCK).await.expect("created");
            self.files.push((file, Vec::new()));
        }
        for step in 0..150 {
            let number = self.draw.below(2) as usize;
            self.step(number).await;
            let (file, model) = &self.files[number];
            assert_eq!(file.bytes(), model.len() as u64, "{} step {step}", file.name());
            assert!(self.cache.bytes() <= self.cache.settings().bytes);
        }
        for (file, model) in self.files {
            assert!(read(&file, 0, 40 * BLOCK).await == model, "{}", file.name());
            file.close().await.expect("closed");
        }
        for (name, _) in self.names.iter().zip(0..) {
            self.cache.unlink(name).await.expect("removed");
        }
        self.cache.finish().await.expect("finished");
    }

    async fn step(&mut self, number: usize) {
        let draw = &mut self.draw;
        let ends = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1];
        let offset = draw.below(20) * BLOCK + ends[draw.below(5) as usize];
        let bytes = if draw.below(2) == 0 { draw.below(4 * BLOCK) } else { ends[draw.below(5) as usize] };
        let (file, model) = &mut self.files[number];
        match draw.below(16) {
            0..=4 => {
                let data: Vec<u8> = (0..bytes).map(|_| draw.below(256) as u8).collect();
                write(file, offset, &data).await;
                put(model, offset, &data);
            }
            5..=9 => {
                let start = (offset as usize).min(model.len());
                let end = ((offset + bytes) as usize).min(model.len());
                assert!(read(file, offset, bytes).await == model[start..end.max(start)]);
            }
            10 => {
                file.truncate(offset).await.expect("truncated");
                model.resize(offset as usize, 0);
            }
            11 => file.flush().await.expect("flushed"),
            12 => assert_eq!(file.refresh().await.expect("refreshed"), model.len() as u64),
            13 => {
                let reopened = self.cache.open(file.name()).await.expect("opened");
                std::mem::replace(file, reopened).close().await.expect("closed");
            }
            14 => file.advise(Advice::WillNeed { offset, bytes }),
            _ => {
                let advices = [
                    Advice::DontNeed { offset, bytes },
                    Advice::Sequential,
                    Advice::Random,
                    Advice::Normal,
                    Advice::Temporary,
                    Advice::FinalWrite,
                ];
                file.advise(advices[draw.below(6) as usize]);
            }
        }
    }
}

/// Two clients in turn on one file, each flushing what it did before the other looks.
async fn take_turns<M: Machine>(clients: &[Client<M>], seed: u64, pages: u64, prefetch: Prefetch) {
    let caches: Vec<_> = clients.iter().map(|client| cache_of(client, pages, prefetch)).collect();
    let (mut draw, mut model) = (Draw(seed), Vec::<u8>::new());
    let mut files = vec![caches[0].create("in turn", FileId(seed), BLOCK).await.expect("created")];
    files[0].commit().await.expect("committed");
    files.push(caches[1].open("in turn").await.expect("opened"));
    for step in 0..60 {
        let file = &files[draw.below(2) as usize];
        file.refresh().await.expect("refreshed");
        for _ in 0..1 + draw.below(4) {
            let (offset, bytes) = (draw.below(12 * BLOCK), draw.below(2 * BLOCK));
            match draw.below(5) {
                0..=1 => {
                    let data: Vec<u8> = (0..bytes).map(|_| draw.below(256) as u8).collect();
                    write(file, offset, &data).await;
                    put(&mut model, offset, &data);
                }
                2..=3 => {
                    let start = (offset as usize).min(model.len());
                    let end = ((offset + bytes) as usize).min(model.len());
                    assert!(read(file, offset, bytes).await == model[start..end.max(start)], "step {step}");
                }
                _ => {
                    file.truncate(offset).await.expect("truncated");
                    model.resize(offset as usize, 0);
                }
            }
        }
        file.flush().await.expect("flushed");
    }
}
