//! Promises about the page cache.

use std::cell::Cell;
use std::rc::Rc;

use fs::{
    Advice, Client, Error, FileId, IoNodeSettings, PageCache, PageCacheSettings, PagedFile, Prefetch, Result,
    Threads, object_name,
};
use machine::conformance::Testbed;
use machine::{Condition, Disk, Machine, Net, Payload};

use super::faulty::Faulty;
use super::tasks::{Tasks, rest, until};
use super::{BLOCK, Base, Draw, Restarting, contents, described, put, run, small, start, stored};

pub(super) fn cache_of<M: Machine>(client: &Client<M>, pages: u64, prefetch: Prefetch) -> PageCache<M> {
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

/// Creates a file of this number with all its stripes, in pages of `page_bytes` bytes.
async fn created_with<M: Machine>(cache: &PageCache<M>, number: u64, page_bytes: u64) -> PagedFile<M> {
    let file = described(cache.client(), number, page_bytes).await;
    let file = cache.open_numbered(file).await.expect("opened");
    file.file().make_stripes().await.expect("room");
    file
}

async fn created<M: Machine>(cache: &PageCache<M>, number: u64) -> PagedFile<M> {
    created_with(cache, number, BLOCK).await
}

/// Opens the file of this number with its current stripes and this cache's writes.
async fn opened<M: Machine>(cache: &PageCache<M>, number: u64) -> PagedFile<M> {
    let file = stored(cache.client(), number, BLOCK).await;
    let bytes = file.bytes;
    let opened = cache.open_numbered(file).await.expect("opened");
    opened.note_changed(bytes);
    opened
}

/// Makes data flushed by other clients visible; returns the file's size in bytes.
async fn refresh<M: Machine>(cache: &PageCache<M>, file: &PagedFile<M>) -> u64 {
    let bytes = stored(cache.client(), file.id().0, BLOCK).await.bytes;
    file.file().note_counted(u64::MAX);
    file.note_changed(bytes);
    file.bytes()
}

/// Removes a file, and its pages in the cache.
async fn remove<M: Machine>(cache: &PageCache<M>, number: u64) {
    cache.give_up_numbered(FileId(number)).await;
    cache.client().remove_numbered(&[FileId(number)]).await.expect("removed");
}

pub(super) async fn read<M: Machine>(file: &PagedFile<M>, offset: u64, bytes: u64) -> Vec<u8> {
    let data = file.read(offset, bytes).await.expect("the read succeeds");
    data.to_vec().expect("real bytes")
}

/// Reads like [`read`], but keeps no pages in the cache.
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

pub(super) async fn write<M: Machine>(file: &PagedFile<M>, offset: u64, data: &[u8]) {
    file.write(offset, Payload::from(data)).await.expect("the write succeeds");
}

/// A file of any size is read back correctly through a cache of any size, by the same client at once and by another
/// client that opens the file.
pub fn cached_files_of_any_size_are_read_back(testbed: &impl Testbed, base: Base) {
    for (pages, prefetch) in
        [(1, Prefetch::None), (3, Prefetch::Window(4)), (8, Prefetch::Adaptive), (100, Prefetch::Window(16))]
    {
        run(testbed, 5, move |nodes| async move {
            let clients = start(base, &nodes, 3, settings(base)).await;
            let caches: Vec<_> = clients.iter().map(|client| cache_of(client, pages, prefetch)).collect();
            for bytes in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 20 * BLOCK + 7] {
                let data = contents(bytes);
                let file = created(&caches[0], bytes + 1).await;
                for (number, part) in (0..).zip(data.chunks(200)) {
                    write(&file, number * 200, part).await;
                    assert!(caches[0].bytes() <= pages * BLOCK);
                }
                assert!(read(&file, 0, bytes + 10).await == data);
                assert!(read(&file, bytes, 10).await.is_empty());
                file.close().await.expect("closed");
                let other = opened(&caches[1], bytes + 1).await;
                assert_eq!(other.bytes(), bytes);
                for (number, part) in (0..).zip(data.chunks(100)) {
                    assert!(read(&other, number * 100, 100).await == part);
                    assert!(caches[1].bytes() <= pages * BLOCK);
                }
                assert!(read(&other, 0, bytes).await == data);
                other.close().await.expect("closed");
                assert_eq!(caches[1].bytes(), 0, "no pages are kept of a file that is not open");
            }
        });
    }
}

/// Files with pages of the default 64 KiB are read back, for sizes near page boundaries.
pub fn cached_files_with_large_pages_are_read_back(testbed: &impl Testbed, base: Base) {
    const PAGE: u64 = 64 * 1024;
    run(testbed, 3, move |nodes| async move {
        let settings = IoNodeSettings { block_bytes_max: PAGE, ..settings(base) };
        let client = &start(base, &nodes, 2, settings).await[0];
        for bytes in [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 1] {
            let data = contents(bytes);
            let cache = cache_of(client, 2 * PAGE / BLOCK, Prefetch::Adaptive);
            let file = created_with(&cache, bytes + 1, PAGE).await;
            write(&file, 0, &data).await;
            file.close().await.expect("closed");
            let file = stored(client, bytes + 1, PAGE).await;
            let file = cache.open_numbered(file).await.expect("opened");
            let mut found = Vec::new();
            while found.len() < data.len() {
                found.extend(read(&file, found.len() as u64, 40_000).await);
            }
            assert!(found == data);
        }
    });
}

/// Writes through one handle are visible at once through every other of the same cache, in pages that are clean, dirty,
/// in flight or evicted.
pub fn a_client_reads_its_own_writes(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, settings(base)).await[0];
        let cache = cache_of(client, 3, Prefetch::Window(2));
        let writer = created(&cache, 1).await;
        let reader = opened(&cache, 1).await;
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

/// Uncached reads return the contents of the file with local writes; they keep and prefetch no pages.
pub fn an_uncached_read_keeps_no_pages(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let data = contents(40 * BLOCK + 5);
        let file = created(&cache_of(&clients[0], 60, Prefetch::None), 1).await;
        write(&file, 0, &data).await;
        file.close().await.expect("closed");
        let cache = cache_of(&clients[1], 60, Prefetch::Adaptive);
        let file = opened(&cache, 1).await;
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
        let before = |at: u64| data[(5 * BLOCK + at) as usize];
        assert!(read_alone(&file, 5 * BLOCK + 2, 6).await == [before(2), 9, 9, 9, 9, before(7)]);
        file.close().await.expect("closed");
    });
}

/// A window of W pages prefetches exactly the W - 1 pages after the current one.
pub fn a_window_prefetches_the_pages_after_the_current_one(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let data = contents(12 * BLOCK + 5);
        let file = created(&cache_of(&clients[0], 20, Prefetch::None), 1).await;
        write(&file, 0, &data).await;
        file.close().await.expect("closed");
        for window in [1, 2, 5] {
            let cache = cache_of(&clients[1], 20, Prefetch::Window(window));
            let file = opened(&cache, 1).await;
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

/// For any window, the reads of all pages of a request begin when its first page is read.
pub fn the_pages_of_a_request_are_read_together(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let data = contents(12 * BLOCK);
        let file = created(&cache_of(&clients[0], 20, Prefetch::None), 1).await;
        write(&file, 0, &data).await;
        file.close().await.expect("closed");
        let file = opened(&cache_of(&clients[1], 20, Prefetch::None), 1).await;
        let some = file.read_some(BLOCK + 5, 6 * BLOCK).await.expect("it is readable");
        assert_eq!(some.to_vec().expect("real bytes"), data[BLOCK as usize + 5..2 * BLOCK as usize]);
        rest(&nodes[3]).await;
        let ready = (0..12).filter(|page| file.is_ready(page * BLOCK));
        assert_eq!(ready.collect::<Vec<_>>(), (1..8).collect::<Vec<_>>());
        assert!(file.read_some(12 * BLOCK, 9).await.expect("the end").is_empty());
    });
}

/// A sequential read of a file larger than the cache does not evict pages of other files.
pub fn a_large_file_passes_through_the_cache_without_evicting_others(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let data = contents(100 * BLOCK + 5);
        let writer = cache_of(&clients[0], 20, Prefetch::None);
        for (number, bytes) in [(1, 4 * BLOCK), (2, data.len() as u64)] {
            let file = created(&writer, number).await;
            write(&file, 0, &data[..bytes as usize]).await;
            file.close().await.expect("closed");
        }
        for prefetch in [Prefetch::None, Prefetch::Window(4), Prefetch::Adaptive] {
            let cache = cache_of(&clients[1], 40, prefetch);
            let small = opened(&cache, 1).await;
            assert!(read(&small, 0, 4 * BLOCK).await == data[..4 * BLOCK as usize]);
            let large = opened(&cache, 2).await;
            for (page, part) in (0..).zip(data.chunks(BLOCK as usize)) {
                assert!(read(&large, page * BLOCK, BLOCK).await == part);
            }
            assert!((0..4).all(|page| small.is_ready(page * BLOCK)), "{prefetch:?}");
            assert!(cache.bytes() < 40 * BLOCK, "{prefetch:?}: {} bytes", cache.bytes());
        }
    });
}

/// The data of a temporary file stay with the client: a file that is created, written, flushed, closed, read again and
/// unlinked never reaches a disk. Only evicted pages are sent.
pub fn temporary_files_reach_no_disk(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, settings(base)).await[0];
        let cache = cache_of(client, 8, Prefetch::Adaptive);
        let data = contents(5 * BLOCK + 9);
        let file = created(&cache, 1).await;
        file.advise(Advice::Temporary);
        write(&file, 0, &data).await;
        file.flush().await.expect("nothing to flush");
        file.close().await.expect("closed");
        rest(&nodes[2]).await;
        let again = opened(&cache, 1).await;
        assert!(read(&again, 0, 10 * BLOCK).await == data);
        again.truncate(2 * BLOCK).await.expect("cut");
        assert!(read(&again, 0, 10 * BLOCK).await == data[..2 * BLOCK as usize]);
        assert_eq!(stored(client, 1, BLOCK).await.bytes, 0, "no I/O node has any of it");
        for node in &nodes[..2] {
            assert_eq!(
                node.disks()[0].open(&object_name(FileId(1))).await.expect("there").bytes,
                0,
                "no disk has any of it"
            );
        }
        again.close().await.expect("closed");
        remove(&cache, 1).await;
        assert_eq!(cache.bytes(), 0);

        let large = created(&cache, 2).await;
        large.advise(Advice::Temporary);
        let data = contents(30 * BLOCK);
        write(&large, 0, &data).await;
        assert!(read(&large, 0, 30 * BLOCK).await == data, "larger than the cache");
        assert!(stored(client, 2, BLOCK).await.bytes > 0, "some pages were evicted");
    });
}

/// A failed write-behind is reported by flush, close, and the next write; the next flush retries it.
pub fn a_failed_write_behind_is_reported(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let cache = cache_of(&clients[0], 4, Prefetch::Adaptive);
        let file = created(&cache, 1).await;
        write(&file, 0, &contents(2 * BLOCK)).await;
        file.flush().await.expect("flushed");
        file.flush().await.expect("nothing left to flush");
        nodes[1].net().close();
        rest(&nodes[2]).await;
        write(&file, 2 * BLOCK, &contents(2 * BLOCK)).await;
        rest(&nodes[2]).await;
        let names_it = |outcome: Result<()>| {
            let error = outcome.expect_err("an I/O node is disconnected");
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
        // More than fits: pages that cannot be written cannot be evicted, so the write fails instead of waiting.
        let mut outcome = Ok(());
        for page in 4..20 {
            outcome = outcome.and(file.write(page * BLOCK, Payload::from(contents(BLOCK))).await);
        }
        names_it(outcome);
        names_it(file.close().await);
        assert_eq!(cache.bytes(), 0, "closing drops pages that could not be written");
    });
}

/// If several callers flush a file at the same time and the flush fails, all get the error.
pub fn a_failing_flush_fails_for_all_concurrent_callers(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, settings(base)).await[0];
        let cache = cache_of(client, 4, Prefetch::Adaptive);
        let file = Rc::new(created(&cache, 1).await);
        write(&file, 0, &contents(2 * BLOCK)).await;
        rest(&nodes[2]).await;
        nodes[1].net().close();
        rest(&nodes[2]).await;
        let (left, done) = (Rc::new(Cell::new(2)), Rc::new(Condition::new()));
        for _ in 0..2 {
            let (file, left, done) = (file.clone(), left.clone(), done.clone());
            nodes[2].spawn("application", async move {
                let error = file.flush().await.expect_err("an I/O node is disconnected");
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

/// Data lost by an I/O node are reported through all handles, also if several flush at once and one is answered first.
pub fn a_loss_is_reported_to_all_concurrent_flushes(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let (_, io_node, client) = Restarting::with_client(&nodes, base).await;
        let cache = cache_of(&client, 4, Prefetch::Adaptive);
        let (tasks, lost) = (Tasks::default(), Rc::new(Cell::new(0)));
        let mut handles = Vec::new();
        for at in [0, 10] {
            let file = opened(&cache, 1).await;
            write(&file, at, b"lost").await;
            file.send().await.expect("accepted");
            handles.push(file);
        }
        io_node.restart();
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

/// A temporary file is never flushed. If an I/O node has lost data of it, a check for losses reports this.
pub fn lost_data_of_a_temporary_file_are_reported(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let (_, io_node, client) = Restarting::with_client(&nodes, base).await;
        let cache = cache_of(&client, 4, Prefetch::Adaptive);
        let file = opened(&cache, 1).await;
        file.advise(Advice::Temporary);
        // Write more than the cache holds, so that data are sent to each incarnation.
        write(&file, 0, &contents(8 * BLOCK)).await;
        assert_eq!(file.check_losses().await, Ok(()));
        io_node.restart();
        write(&file, 8 * BLOCK, &contents(8 * BLOCK)).await;
        assert_eq!(file.flush().await, Ok(()), "nothing of it is flushed");
        let error = file.check_losses().await.expect_err("it is lost");
        assert!(matches!(*error, Error::WriteLost { .. }), "{error}");
        assert_eq!(file.check_losses().await, Ok(()), "it is reported once");
    });
}

/// Hints act on pages at once: random prefetches nothing, will-need loads its range, don't-need drops it, and a final
/// write leaves no pages, not even of a temporary file.
pub fn hints_take_effect_on_pages_at_once(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, settings(base)).await[0];
        let data = contents(20 * BLOCK);
        let cache = cache_of(client, 12, Prefetch::Window(4));
        let file = created(&cache, 1).await;
        write(&file, 0, &data).await;
        file.close().await.expect("closed");
        let file = opened(&cache, 1).await;
        let pages = || cache.bytes() / BLOCK;
        file.advise(Advice::Random);
        read(&file, 0, 1).await;
        assert_eq!(pages(), 1);
        file.advise(Advice::Normal);
        read(&file, 10 * BLOCK, 1).await;
        rest(&nodes[2]).await;
        assert_eq!(pages(), 5);
        file.advise(Advice::DontNeed { offset: BLOCK, bytes: 11 * BLOCK });
        assert_eq!(pages(), 3, "pages 10 and 11 are dropped; 0, 12 and 13 are not");
        file.advise(Advice::WillNeed { offset: 17 * BLOCK + 5, bytes: 100 * BLOCK });
        rest(&nodes[2]).await;
        assert_eq!(pages(), 6, "pages 17 to 19 were loaded");
        file.advise(Advice::WillNeed { offset: 0, bytes: 100 * BLOCK });
        rest(&nodes[2]).await;
        assert!(pages() <= 12 && read(&file, 0, 20 * BLOCK).await == data);
        write(&file, BLOCK, &[7; 10]).await;
        file.advise(Advice::DontNeed { offset: 0, bytes: u64::MAX });
        rest(&nodes[2]).await;
        assert!(read(&file, BLOCK, 10).await == [7; 10], "dirty data were written");
        file.advise(Advice::Temporary);
        write(&file, BLOCK, &[8; 10]).await;
        file.advise(Advice::FinalWrite);
        file.close().await.expect("closed");
        rest(&nodes[2]).await;
        assert_eq!(pages(), 0);
        let again = opened(&cache, 1).await;
        assert!(read(&again, BLOCK, 10).await == [8; 10]);
    });
}

/// Many concurrent readers and writers of a cache of two pages all complete.
pub fn many_readers_and_writers_share_a_small_cache(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, settings(base)).await[0];
        let cache = cache_of(client, 2, Prefetch::Adaptive);
        let (left, done) = (Rc::new(Cell::new(8)), Rc::new(Condition::new()));
        for number in 0..8_u64 {
            let (cache, left, done) = (cache.clone(), left.clone(), done.clone());
            nodes[2].spawn("application", async move {
                // The tasks share four files, so that each file has readers and writers.
                let file = described(cache.client(), 1 + number % 4, BLOCK).await;
                let file = cache.open_numbered(file).await.expect("opened");
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

/// Truncated data do not reappear when the file is extended, even if other users of the same client read the data
/// before an I/O node has truncated the file. Writes during the truncation take effect after it.
pub fn truncated_data_do_not_return(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let client = &start(base, &nodes, 1, settings(base)).await[0];
        let cache = cache_of(client, 40, Prefetch::None);
        let file = Rc::new(created(&cache, 1).await);
        write(&file, 0, &contents(8 * BLOCK)).await;
        file.flush().await.expect("flushed");
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
        assert_eq!(bytes, 4 * BLOCK, "the end of the written data");
        expected[3 * BLOCK as usize..4 * BLOCK as usize].fill(7);
        assert!(read(&file, 0, 9 * BLOCK).await == expected);
        file.flush().await.expect("flushed");
        refresh(&cache, &file).await;
        assert!(read(&file, 0, 9 * BLOCK).await == expected);
    });
}

/// A client sees another's writes after the writer has flushed or closed the file and the reader has opened it again or
/// refreshed it. If two clients write to the same page, each sends only the bytes that it wrote.
pub fn clients_see_flushed_data_of_others(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, settings(base)).await;
        let caches: Vec<_> = clients.iter().map(|client| cache_of(client, 8, Prefetch::Window(3))).collect();
        let one = created(&caches[0], 1).await;
        one.flush().await.expect("flushed");
        write(&one, 0, &[1; 3 * BLOCK as usize]).await;
        one.flush().await.expect("flushed");
        let two = opened(&caches[1], 1).await;
        assert!(read(&two, 0, 4 * BLOCK).await == [1; 3 * BLOCK as usize]);
        write(&one, BLOCK, &[2; 100]).await;
        write(&two, BLOCK + 200, &[3; 100]).await;
        write(&one, 4 * BLOCK, &[4]).await;
        one.flush().await.expect("flushed");
        assert_eq!(refresh(&caches[1], &two).await, 4 * BLOCK + 1);
        two.flush().await.expect("flushed");
        let mut expected = [vec![1; 3 * BLOCK as usize], vec![0; BLOCK as usize], vec![4]].concat();
        expected[BLOCK as usize..][..100].fill(2);
        expected[BLOCK as usize + 200..][..100].fill(3);
        assert!(read(&two, 0, 5 * BLOCK).await == expected);
        let reopened = opened(&caches[0], 1).await;
        assert!(read(&reopened, 0, 5 * BLOCK).await == expected);
        assert!(read(&one, 0, 5 * BLOCK).await == expected, "through the older handle too");
    });
}

/// Concurrent clients, each on separate files and all on a shared one, get the same results as with files in memory:
/// random operations, with caches so small that pages are evicted constantly.
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

/// Two clients with caches of `pages` pages, each on separate files, and then in turn on one file: see
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

/// Application with two private files, and their expected contents.
struct Application<M: Machine> {
    cache: PageCache<M>,
    draw: Draw,
    files: Vec<(PagedFile<M>, Vec<u8>)>,
}

impl<M: Machine> Application<M> {
    fn new(cache: PageCache<M>, seed: u64) -> Self {
        Application { cache, draw: Draw(seed), files: Vec::new() }
    }

    async fn work(mut self) {
        let numbers = [0, 1].map(|file| 2 * self.draw.0 + file);
        for number in numbers {
            self.files.push((created(&self.cache, number).await, Vec::new()));
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
        for number in numbers {
            remove(&self.cache, number).await;
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
            12 => assert_eq!(refresh(&self.cache, file).await, model.len() as u64),
            13 => {
                let reopened = opened(&self.cache, file.id().0).await;
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

/// Runs two clients in turn on one file, each flushing its changes before the other reads.
async fn take_turns<M: Machine>(clients: &[Client<M>], seed: u64, pages: u64, prefetch: Prefetch) {
    let caches: Vec<_> = clients.iter().map(|client| cache_of(client, pages, prefetch)).collect();
    let (mut draw, mut model) = (Draw(seed), Vec::<u8>::new());
    // A number that no other test uses.
    let number = 1 << 40 | seed;
    let files = [created(&caches[0], number).await, opened(&caches[1], number).await];
    for step in 0..60 {
        let client = draw.below(2) as usize;
        let file = &files[client];
        refresh(&caches[client], file).await;
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
