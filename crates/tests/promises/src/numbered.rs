//! Promises about numbered files.

use fs::protocol::{BlockWrite, LISTED_STRIPES, Label, Reply, Request, StripeHome};
use fs::{
    Client, Configuration, Entry, Error, FailureKind, Features, File, FileEntries, FileId, Group,
    IoNodeSettings, ListedSettings, ListedStripe, NumberedFile, PageCache, PageCacheSettings, PagedFile,
    Prefetch, Threads, object_name, serve,
};
use layout::Striping;
use machine::conformance::Testbed;
use machine::{Disk, Machine, Memory, Net, NodeId, Payload};

use super::attackers::answer;
use super::faulty::Faulty;
use super::tasks::{Tasks, rest};
use super::{BLOCK, Base, Restarting, bytes_of, contents, put, read, run, small, start, write};

/// Returns a file over all disks of some nodes, the first stripe on the disk of the node with that index.
pub(super) async fn numbered<M: Machine>(nodes: &[M], number: u64, first: usize, bytes: u64) -> NumberedFile {
    let mut disks = Vec::new();
    for node in nodes {
        disks.push(node.disks()[0].identity().await.expect("it has one"));
    }
    disks.rotate_left(first);
    let striping = Striping::new(BLOCK, disks.len() as u32).expect("a striping");
    NumberedFile { number: FileId(number), striping, disks, bytes, stored_stripes: 0 }
}

pub(super) async fn open<M: Machine>(client: &Client<M>, file: &NumberedFile, bytes: u64) -> File<M> {
    client.numbered(NumberedFile { bytes, ..file.clone() }).await.expect("its disks are there")
}

/// Returns the indices of the nodes that have a stripe of a file.
async fn holders<M: Machine>(nodes: &[M], file: FileId) -> Vec<usize> {
    let mut holders = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        if node.disks()[0].open(&object_name(file)).await.is_ok() {
            holders.push(index);
        }
    }
    holders
}

/// Data written to a file can be read by any client that knows its number, layout and size; unwritten bytes read as
/// zeros.
pub fn any_client_can_read_a_numbered_file(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let clients = start(base, &nodes, 3, small(base, Threads::Pool(4))).await;
        for (number, bytes) in (1 << 50..).zip([0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 20 * BLOCK + 7])
        {
            let (file, data) = (numbered(&nodes[..3], number, number as usize % 3, 0).await, contents(bytes));
            let own = open(&clients[0], &file, 0).await;
            write(&own, 0, &data).await;
            assert_eq!((own.bytes(), own.uncounted_end()), (bytes, bytes));
            assert!(read(&own, 0, bytes + 10).await == data);
            own.flush().await.expect("flushed");
            let other = open(&clients[1], &file, bytes + 5 * BLOCK).await;
            let mut expected = data.clone();
            expected.resize((bytes + 5 * BLOCK) as usize, 0);
            assert!(read(&other, 0, bytes + 99 * BLOCK).await == expected);
            // Stripes created by others are found once the client is notified.
            write(&own, bytes + 4 * BLOCK, b"far behind").await;
            put(&mut expected, bytes + 4 * BLOCK, b"far behind");
            other.refresh();
            assert!(read(&other, 0, bytes + 99 * BLOCK).await == expected);
            own.note_counted(bytes + 4 * BLOCK + 10);
            own.set_bytes(3);
            assert_eq!((own.bytes(), own.uncounted_end()), (3, 0), "another client has truncated it");
        }
    });
}

/// Data are found from any offset, in the caches of clients and I/O nodes or on disks; the rest is zeros. The last hole
/// begins at the end of the file.
pub fn data_and_holes_of_a_file_are_found(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let client = &start(base, &nodes, 3, small(base, Threads::Pool(4))).await[0];
        let cache = PageCache::new(client.clone(), PageCacheSettings::default());
        let file = numbered(&nodes[..3], 1, 0, 0).await;
        let file = cache.open_numbered(file).await.expect("opened");
        assert_eq!((file.next_data(0).await, file.next_hole(0).await), (Ok(None), Ok(0)));
        file.truncate(40 * BLOCK).await.expect("longer");
        assert_eq!((file.next_data(0).await, file.next_hole(BLOCK + 1).await), (Ok(None), Ok(BLOCK + 1)));
        let written = [(7 * BLOCK + 5, 10), (12 * BLOCK, 4 * BLOCK), (30 * BLOCK - 3, 6)];
        for (offset, bytes) in written {
            file.write(offset, Payload::from(contents(bytes))).await.expect("taken");
        }
        for (offset, bytes) in written {
            for within in [0, bytes / 2, bytes - 1] {
                assert_eq!(file.next_data(offset + within).await, Ok(Some(offset + within)), "it is data");
                let hole = file.next_hole(offset + within).await.expect("found");
                assert!(hole >= offset + bytes, "{hole} for {bytes} bytes at {offset}");
            }
            let before = file.next_data(offset - 5).await.expect("found").expect("there are data");
            assert!((offset - 5..=offset).contains(&before), "{before} for {offset}");
        }
        let mut at = 0;
        let all = file.read(0, 40 * BLOCK).await.expect("read").to_vec().expect("real bytes");
        while let Some(data) = file.next_data(at).await.expect("found") {
            assert!(all[at as usize..data as usize].iter().all(|byte| *byte == 0), "{at} to {data}");
            at = file.next_hole(data).await.expect("found");
            assert!(at > data && at <= 40 * BLOCK);
        }
        assert_eq!((file.next_data(40 * BLOCK - 1).await, file.next_hole(at).await), (Ok(None), Ok(at)));
    });
}

/// A file of a few bytes creates one object, and reading, truncating and flushing it none.
pub fn a_numbered_file_has_stripes_only_where_it_has_bytes(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let client = &start(base, &nodes, 3, small(base, Threads::Pool(4))).await[0];
        for first in 0..3 {
            let number = FileId(first as u64 + 1);
            let file = numbered(&nodes[..3], number.0, first, 0).await;
            let own = open(client, &file, 0).await;
            assert!(read(&own, 0, 10).await.is_empty());
            own.flush().await.expect("there is nothing");
            assert_eq!(holders(&nodes[..3], number).await, [0; 0]);
            write(&own, 5, &contents(100)).await;
            own.truncate(20 * BLOCK).await.expect("extended");
            let zeros = vec![0; 18 * BLOCK as usize];
            assert!(read(&own, BLOCK, 18 * BLOCK).await == zeros);
            own.truncate(50).await.expect("cut");
            own.flush().await.expect("flushed");
            assert_eq!(holders(&nodes[..3], number).await, [first]);
            assert_eq!(read(&own, 5, 100).await, contents(45));
            let other = open(client, &file, 300).await;
            assert_eq!(read(&other, 50, 250).await, [0; 250], "it was cut on its disk");
        }
    });
}

/// Operations on lists of extents create missing stripes for writes, and read them as zeros.
pub fn extent_lists_create_missing_stripes(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, small(base, Threads::Pool(4))).await[0];
        let group = Group::new(1, vec![nodes[2].node()], 0);
        let file = open(client, &numbered(&nodes[..2], 1, 1, 0).await, 0).await;
        let settings = ListedSettings { presort: true, queued: true };
        let entries = vec![Entry { offset: 3 * BLOCK + 5, bytes: 2 * BLOCK, at: 0, time: 1 }];
        let part = FileEntries { file: file.clone(), entries };
        let data = contents(2 * BLOCK);
        let memory = Memory::real(data.clone());
        client.write_listed(&group, &[part], &memory, settings).await.expect("written");
        let mut expected = vec![0; 3 * BLOCK as usize + 5];
        expected.extend(data);
        assert_eq!(file.bytes(), expected.len() as u64);
        assert!(read(&file, 0, 9 * BLOCK).await == expected);
        // By a client without notice of the file's changes; the extent includes a never written part.
        let other = open(client, &numbered(&nodes[..2], 2, 1, 9 * BLOCK).await, 9 * BLOCK).await;
        let memory = Memory::real(vec![7; 2 * BLOCK as usize]);
        let entries = vec![Entry { offset: BLOCK - 5, bytes: 2 * BLOCK, at: 0, time: 1 }];
        let part = FileEntries { file: other, entries };
        client.read_listed(&group, &[part], &memory, settings).await.expect("read");
        assert_eq!(bytes_of(memory), vec![0; 2 * BLOCK as usize]);
    });
}

async fn write_cached<M: Machine>(file: &PagedFile<M>, offset: u64, data: &[u8]) {
    file.write(offset, Payload::from(data)).await.expect("room");
}

/// Handles of one cache share their view; another client sees sent data once it is notified of a change. A closed file
/// has been sent, and any client can flush it.
pub fn cached_numbered_files_are_close_to_open_consistent(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let settings = PageCacheSettings {
            bytes: 8 * BLOCK,
            prefetch: Prefetch::Adaptive,
            write_behind: true,
            ..PageCacheSettings::default()
        };
        let caches: Vec<_> = clients.iter().map(|client| PageCache::new(client.clone(), settings)).collect();
        let file = numbered(&nodes[..2], 1, 1, 0).await;
        let data = contents(20 * BLOCK + 7);
        let end = data.len() as u64;
        let first = caches[0].open_numbered(file.clone()).await.expect("opened");
        let second = caches[0].open_numbered(file.clone()).await.expect("opened");
        write_cached(&first, 0, &data).await;
        assert_eq!((second.bytes(), second.uncounted_end()), (end, end));
        assert_eq!(second.read(0, end).await.expect("read").to_vec(), Some(data.clone()));
        first.close().await.expect("sent");
        let other =
            caches[1].open_numbered(NumberedFile { bytes: end, ..file.clone() }).await.expect("opened");
        assert_eq!(other.read(0, end).await.expect("read").to_vec(), Some(data.clone()));
        second.file().note_counted(end);
        assert_eq!(second.uncounted_end(), 0);
        write_cached(&other, BLOCK, b"changed").await;
        other.send().await.expect("sent");
        other.flush().await.expect("flushed");
        second.note_changed(end);
        assert_eq!(second.read(BLOCK, 7).await.expect("read").to_vec(), Some(b"changed".to_vec()));
        second.note_changed(5);
        assert_eq!((second.bytes(), second.read(3, 100).await.expect("read").len()), (5, 2));
        second.flush().await.expect("flushed");
        second.truncate(3).await.expect("cut");
        other.note_changed(10);
        let mut expected = data[..3].to_vec();
        expected.resize(10, 0);
        assert_eq!(other.read(0, 10).await.expect("read").to_vec(), Some(expected));
        second.close().await.expect("sent");
        other.close().await.expect("sent");
        assert_eq!((caches[0].bytes(), caches[1].bytes()), (0, 0), "pages of closed files are not kept");
        caches[0].finish().await.expect("nothing is left");
        // Dirty pages of a discarded file are dropped, not sent.
        let gone = caches[0].open_numbered(numbered(&nodes[..2], 2, 1, 0).await).await.expect("opened");
        write_cached(&gone, 0, b"of no use").await;
        caches[0].give_up_numbered(FileId(2)).await;
        drop(gone);
        caches[0].finish().await.expect("nothing is left");
        assert_eq!(holders(&nodes[..2], FileId(2)).await, [0; 0]);
    });
}

/// A removed file leaves nothing behind, regardless of actions of a client with the file open.
pub fn a_removed_numbered_file_stays_removed(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let mut files = Vec::new();
        for number in 1..=3 {
            let file = open(&clients[0], &numbered(&nodes[..2], number, 0, 0).await, 0).await;
            write(&file, 0, &contents(5 * BLOCK)).await;
            files.push(file);
        }
        files[1].flush().await.expect("flushed");
        let numbers = [FileId(1), FileId(2), FileId(77)];
        clients[1].remove_numbered(&numbers).await.expect("removed");
        clients[1].remove_numbered(&numbers).await.expect("as before");
        let error = files[0].flush().await.expect_err("there was something to flush");
        assert!(error.is_remote(FailureKind::Removed), "{error}");
        for file in &files[..2] {
            let memory = Memory::real(vec![1; 2 * BLOCK as usize]);
            for outcome in [
                file.write(0, 2 * BLOCK, &memory, 0).await,
                file.read(0, 2 * BLOCK, &memory, 0).await.map(drop),
                file.truncate(3).await,
            ] {
                let error = outcome.expect_err("it is removed");
                assert!(error.is_remote(FailureKind::Removed), "{error}");
                assert!(error.to_string().contains("removed"), "{error}");
            }
            assert_eq!(holders(&nodes[..2], file.id()).await, [0; 0]);
        }
        assert_eq!(read(&files[2], 0, 5 * BLOCK).await, contents(5 * BLOCK), "it is another");
        let listed = clients[0].list_numbered().await.expect("listed");
        assert!(listed.iter().all(|(_, stripe)| stripe.file == FileId(3)) && listed.len() == 2, "{listed:?}");
    });
}

/// If a stripe cannot be removed, the other stripes are removed. An I/O node that has dropped cached data of such a
/// stripe reports this when it stops: otherwise a later incarnation would consider the stripe complete.
pub fn lost_data_of_an_unremovable_stripe_are_reported(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let stopped = Tasks::default();
        for (node, fails) in nodes[..2].iter().zip([true, false]) {
            let (io_node, settings) = (node.clone(), small(base, Threads::Pool(4)));
            stopped.begin(node, async move {
                let ended = fs::serve(io_node, settings).await;
                assert_eq!(ended.is_err_and(|error| error.to_string().contains("removing")), fails);
            });
        }
        let names = nodes[..2].iter().map(|node| node.node()).collect();
        let client = Client::connect(nodes[2].clone(), names, base.client()).await.expect("they answer");
        let file = open(&client, &numbered(&nodes[..2], 1, 0, 0).await, 0).await;
        write(&file, 0, &contents(BLOCK + BLOCK / 2)).await;
        file.flush().await.expect("flushed");
        write(&file, 5, &[1; 5]).await;
        nodes[0].faults().failing_removals.set(1);
        let error = client.remove_numbered(&[FileId(1)]).await.expect_err("a fault on purpose");
        assert!(error.to_string().contains("removing"), "{error}");
        assert_eq!(holders(&nodes[..2], FileId(1)).await, [0]);
        nodes[..2].iter().for_each(|node| node.net().close());
        stopped.wait().await;
    });
}

/// All files are listed, for any number, with the stripes of each.
pub fn all_numbered_files_are_listed(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, small(base, Threads::Pool(4))).await[0];
        let (disk, striping) = (&nodes[0].disks()[0], Striping::new(BLOCK, 2).expect("a striping"));
        const MANY: u64 = 1010;
        for number in 1..=MANY {
            let label = Label { file: FileId(number << 40), striping, stripe: 1, begun: 0, replaces: None };
            let name = object_name(label.file);
            disk.create(&name, &label.encode()).await.expect("room");
        }
        disk.create(&object_name(FileId(5)), b"no label").await.expect("room");
        let file = open(client, &numbered(&nodes[..2], u64::MAX, 1, 0).await, 0).await;
        write(&file, 0, &contents(BLOCK + 3)).await;
        let listed = client.list_numbered().await.expect("listed");
        let of = |number, stripe| ListedStripe { file: FileId(number), disk: 0, stripe };
        let mut expected = vec![of(5, None)];
        expected.extend((1..=MANY).map(|number| of(number << 40, Some((1, 0)))));
        expected.push(of(u64::MAX, Some((1, 3))));
        let mut expected: Vec<_> = expected.into_iter().map(|stripe| (nodes[0].node(), stripe)).collect();
        expected.push((nodes[1].node(), of(u64::MAX, Some((0, BLOCK)))));
        assert!(listed == expected, "{} listed", listed.len());
        // They can be read back.
        let called = [FileId(u64::MAX), FileId(5)];
        file.flush().await.expect("flushed");
        let check = client.check(&called, None, |_| {}).await.expect("checked");
        assert_eq!((check.bytes, check.failures.len()), (BLOCK + 3, 0));
        assert_eq!(check.files[&called[0]].findings, [], "never written stripes are not missing");
        assert_eq!(check.files[&called[1]].findings.len(), 1);
    });
}

/// Errors identify a file that does not match its number, an unknown disk, and a client's mistake.
pub fn errors_distinguish_foreign_stripes_and_unknown_disks(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, small(base, Threads::Pool(4))).await[0];
        let file = numbered(&nodes[..2], 1, 0, 10).await;
        write(&open(client, &file, 0).await, 0, &contents(2 * BLOCK)).await;
        // The same number with other disks or another layout.
        let turned = NumberedFile { disks: file.disks.iter().rev().copied().collect(), ..file.clone() };
        let memory = Memory::real(vec![1; 10]);
        let error = open(client, &turned, 10).await.read(0, 10, &memory, 0).await.expect_err("foreign");
        assert!(error.is_remote(FailureKind::Damaged), "{error}");
        let striping = Striping::new(2 * BLOCK, 2).expect("a striping");
        let other = NumberedFile { striping, ..file.clone() };
        let error = open(client, &other, 10).await.write(0, 10, &memory, 0).await.expect_err("foreign");
        assert!(error.is_remote(FailureKind::Invalid) && error.to_string().contains("512"), "{error}");
        let refused = async |file: NumberedFile| *client.numbered(file).await.err().expect("refused");
        let short = NumberedFile { disks: vec![file.disks[0]], ..file.clone() };
        assert!(matches!(refused(short).await, Error::Invalid(_)));
        let large = NumberedFile { striping: Striping::new(8192, 2).expect("a striping"), ..file.clone() };
        assert!(matches!(refused(large).await, Error::BlockTooLarge { .. }));
        assert_eq!(read(&open(client, &file, 2 * BLOCK).await, 0, 2 * BLOCK).await, contents(2 * BLOCK));
    });
    // Stripes on other disks than the unknown one can be read and written.
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, small(base, Threads::Pool(4))).await[0];
        let mut file = numbered(&nodes[..2], 1, 0, 10).await;
        let whole = open(client, &file, 0).await;
        write(&whole, 0, &contents(4 * BLOCK)).await;
        assert_eq!(whole.flush().await, Ok(()));
        file.disks[1] = 12345;
        let opened = open(client, &file, 4 * BLOCK).await;
        let is_nowhere = |error: &Error| matches!(error, Error::UnknownDisk { identity: 12345, .. });
        for block in 0..4 {
            let memory = Memory::real(vec![0; BLOCK as usize]);
            let read = opened.read(block * BLOCK, BLOCK, &memory, 0).await;
            let written = opened.write(block * BLOCK, BLOCK, &memory, 0).await;
            match block % 2 {
                0 => assert_eq!((read, written), (Ok(BLOCK), Ok(()))),
                _ => assert!(
                    read.is_err_and(|error| is_nowhere(&error))
                        && written.is_err_and(|error| is_nowhere(&error))
                ),
            }
        }
        assert!(opened.truncate(0).await.is_err_and(|error| is_nowhere(&error)));
        assert_eq!(opened.next_data(BLOCK).await, Ok(Some(BLOCK)), "there may be some");
        let there = client.numbered_stripes(&file).await.expect("asked");
        assert_eq!(there.into_iter().collect::<Vec<_>>(), [(0, 2 * BLOCK)]);
        // A file that is completely on the other disk is whole.
        let short = open(client, &file, BLOCK).await;
        write(&short, 0, &contents(BLOCK)).await;
        assert_eq!(short.flush().await, Ok(()));
        assert_eq!(
            (short.next_hole(0).await, read(&short, 0, BLOCK).await),
            (Ok(Some(BLOCK)), contents(BLOCK))
        );
        assert!(opened.flush().await.is_err_and(|error| is_nowhere(&error)), "writes of others may be lost");
    });
    // One agent's disk directory is a copy of another's.
    run(testbed, 3, move |nodes| async move {
        let twice = Faulty::with_disks_of(nodes[1].clone(), &nodes[..1]);
        let settings = small(base, Threads::Pool(4));
        nodes[1].spawn("I/O node", fs::serve(twice, settings.clone()));
        nodes[0].spawn("I/O node", fs::serve(nodes[0].clone(), settings));
        let names = vec![nodes[0].node(), nodes[1].node()];
        let client = Client::connect(nodes[2].clone(), names, base.client()).await.expect("they answer");
        let error = client.disks_by_identity().await.expect_err("two disks have one identity");
        assert!(error.to_string().contains("same identity"), "{error}");
    });
}

/// Data that an I/O node accepted, did not flush, and lost in a restart, are reported by the next flush, once.
pub fn a_lost_numbered_write_is_reported_once(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let (node, io_node, client) = Restarting::with_client(&nodes, base).await;
        let file = client.numbered(Restarting::file(FileId(1), 0)).await.expect("opened");
        let lost = Err(Error::WriteLost { name: object_name(FileId(1)), node }.into());
        write(&file, 0, b"flushed").await;
        assert_eq!(file.flush().await, Ok(()));
        io_node.restart();
        assert_eq!(file.flush().await, Ok(()), "nothing had been left to flush");
        for _ in 0..2 {
            write(&file, 0, b"lost").await;
            io_node.restart();
            if file.bytes() > 4 {
                write(&file, 0, b"written to the next run").await;
            }
            assert_eq!(file.flush().await, lost);
            assert_eq!(file.flush().await, Ok(()), "it was reported");
        }
        // The same holds for a flush of all the client's writes, through any handle.
        for (has_closed, writes_again, outcome) in
            [(false, false, &Ok(())), (false, true, &lost), (true, false, &lost)]
        {
            io_node.has_closed_stripes.set(has_closed);
            for writes_to_next_run in [false, true] {
                write(&file, 0, b"flushed").await;
                client.flush_own().await.expect("flushed");
                if writes_again {
                    write(&file, 0, b"lost").await;
                }
                io_node.restart();
                if writes_to_next_run {
                    write(&file, 0, b"written to the next run").await;
                }
                assert_eq!(&file.flush().await, outcome, "{has_closed} {writes_again} {writes_to_next_run}");
            }
        }
    });
}

/// Losses of accepted data of very many closed files are reported for each of them. This includes data accepted after
/// the first close, and files that seem to be empty.
pub fn losses_of_many_closed_files_are_all_reported(testbed: &impl Testbed, base: Base) {
    // The large number takes seconds.
    let files = if base.configuration == Configuration::Report { 100 } else { 20_000 };
    run(testbed, 2, move |nodes| async move {
        let (node, io_node, client) = Restarting::with_client(&nodes, base).await;
        let open = async |number| client.numbered(Restarting::file(number, 0)).await.expect("opened");
        for number in (1..=files).chain([1]).map(FileId) {
            write(&open(number).await, 0, b"lost").await;
        }
        io_node.restart();
        for number in (1..=files).step_by(10).map(FileId) {
            let lost = Err(Error::WriteLost { name: object_name(number), node }.into());
            assert_eq!(open(number).await.flush().await, lost);
        }
        assert_eq!(open(FileId(1)).await.flush().await, Ok(()), "it was reported");
        // A flush of all files reports the losses of the other files once; a flush of one of these files reports its
        // loss as well.
        let lost = Err(Error::WriteLost { name: "a file written earlier".into(), node }.into());
        assert_eq!((client.flush_own().await, client.flush_own().await), (lost, Ok(())));
        assert!(open(FileId(2)).await.flush().await.is_err());
    });
}

/// After a flush of all files, no data are reported as lost, after any number of restarts and flushes of the I/O node.
pub fn data_flushed_by_an_earlier_incarnation_are_not_lost(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let (_, io_node, client) = Restarting::with_client(&nodes, base).await;
        let file = client.numbered(Restarting::file(FileId(1), 0)).await.expect("opened");
        write(&file, 0, b"flushed").await;
        for _ in 0..3 {
            assert_eq!(client.flush_own().await, Ok(()));
            io_node.restart();
        }
        assert_eq!(file.flush().await, Ok(()));
    });
}

/// Losses of a file that was open through two handles are reported to the next opener, whichever of the handles wrote
/// the data.
pub fn losses_through_two_handles_are_reported_to_the_next_opener(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let (node, io_node, client) = Restarting::with_client(&nodes, base).await;
        let open = async || client.numbered(Restarting::file(FileId(1), 0)).await.expect("opened");
        let lost = Err(Error::WriteLost { name: object_name(FileId(1)), node }.into());
        for closed_first in 0..2 {
            let mut handles = vec![open().await, open().await];
            write(&handles[0], 0, b"lost").await;
            io_node.restart();
            write(&handles[1], 0, b"written to the next run").await;
            drop(handles.remove(closed_first));
            drop(handles);
            let again = open().await;
            assert_eq!((again.flush().await, again.flush().await), (lost.clone(), Ok(())), "{closed_first}");
        }
    });
}

/// Lost data of a file in a page cache are reported by its close, if the loss is known by then; a later loss is
/// reported to the next opener that flushes the file.
pub fn a_loss_is_reported_at_close_or_to_the_next_opener(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let (node, io_node, client) = Restarting::with_client(&nodes, base).await;
        let cache = PageCache::new(client.clone(), PageCacheSettings::default());
        let open = async || cache.open_numbered(Restarting::file(FileId(1), BLOCK)).await.expect("opened");
        let lost = Err(Error::WriteLost { name: object_name(FileId(1)), node }.into());
        let send = async |file: &PagedFile<_>, offset| {
            file.write(offset, Payload::from(b"something".to_vec())).await.expect("taken");
            file.send().await
        };
        for is_closed_before in [false, true] {
            let file = open().await;
            assert_eq!(send(&file, 0).await, Ok(()));
            if is_closed_before {
                assert_eq!(file.close().await, Ok(()));
                io_node.restart();
                let again = open().await;
                assert_eq!((again.flush().await, again.flush().await), (lost.clone(), Ok(())));
                assert_eq!(again.close().await, Ok(()), "it was reported");
            } else {
                io_node.restart();
                assert_eq!((send(&file, BLOCK).await, file.close().await), (lost.clone(), Ok(())));
            }
            let file = open().await;
            assert_eq!((file.flush().await, file.close().await), (Ok(()), Ok(())), "nothing is left of it");
        }
    });
}

/// Clients use other means for features that an I/O node of another release lacks.
pub fn nodes_of_neighbouring_releases_work_together(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let io_node = |features| IoNodeSettings { features, ..small(base, Threads::Pool(4)) };
        let unknown = Features::from_bits_retain(1 << 63);
        for (node, features) in [(0, Features::empty()), (1, Features::all() | unknown)] {
            nodes[node].spawn("I/O node", serve(nodes[node].clone(), io_node(features)));
        }
        let names = vec![nodes[0].node(), nodes[1].node()];
        let client = Client::connect(nodes[2].clone(), names, base.client()).await.expect("they answer");
        let cache = PageCache::new(client.clone(), PageCacheSettings::default());
        let file = cache.open_numbered(numbered(&nodes[..2], 1, 0, 0).await).await.expect("opened");
        let data = contents(2 * BLOCK);
        // The page cache sends each block separately, and the first block of a stripe creates the stripe.
        file.write(0, Payload::from(data.clone())).await.expect("taken");
        file.write(64 * BLOCK, Payload::from(data.clone())).await.expect("taken");
        assert_eq!(file.flush().await, Ok(()));
        let file = file.file().clone();
        file.set_bytes(66 * BLOCK);
        for offset in [0, 64 * BLOCK] {
            assert_eq!(read(&file, offset, 2 * BLOCK).await, data);
        }
        // The first node has the blocks of even numbers and does not report its holes; the second one does.
        assert_eq!(file.next_data(2 * BLOCK).await, Ok(Some(2 * BLOCK)));
        let hole = file.next_hole(BLOCK).await.expect("told").expect("there is one");
        assert!((3 * BLOCK..64 * BLOCK).contains(&hole), "{hole}");
        // Direct requests for the missing features fail, too.
        let [attach, find] = [
            Request::Write(BlockWrite {
                attach: Some(StripeHome { striping: file.striping(), disk: 7 }),
                ..BlockWrite::new(FileId(2), 0, 0)
            }),
            Request::FindData { file: FileId(1), stripes: vec![(0, 0)] },
        ];
        for (request, why) in [(attach, "attaches no stripe"), (find, "does not serve")] {
            let reply = answer(&nodes[3], nodes[0].node(), 1, request).await;
            assert!(matches!(&reply, Reply::Failed(failure) if failure.text.contains(why)), "{reply:?}");
        }
    });
}

/// A write of no bytes leaves the length unchanged.
pub fn a_write_of_no_bytes_does_not_extend_a_file(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, small(base, Threads::Pool(4))).await[0];
        let file = open(client, &numbered(&nodes[..2], 1, 0, 0).await, 0).await;
        write(&file, 0, b"short").await;
        write(&file, 10 * BLOCK, b"").await;
        assert_eq!(file.bytes(), 5);
        file.flush().await.expect("flushed");
        assert_eq!(client.stored_bytes(&numbered(&nodes[..2], 1, 0, 0).await).await, Ok(5));
    });
}

/// A list of stripes that exceeds one answer is returned in parts, and is complete.
pub fn a_long_list_of_stripes_is_complete(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let client = &start(base, &nodes, 2, small(base, Threads::Pool(4))).await[0];
        let count = 3 * LISTED_STRIPES as u64;
        for number in 2..count {
            // In addition to common files, each node has some that the other lacks.
            for node in (0..2).filter(|&node| number % 3 != node as u64) {
                let disk = &nodes[node].disks()[0];
                disk.create(&object_name(FileId(number)), b"").await.expect("created behind its back");
            }
        }
        let listed = client.list_numbered().await.expect("listed");
        let mut files: Vec<u64> = listed.iter().map(|(_, stripe)| stripe.file.0).collect();
        files.sort_unstable();
        files.dedup();
        assert!(files == (2..count).collect::<Vec<_>>(), "{} of {count}", files.len());
    });
}

/// One scan of the directories serves all waiting requests, and a later request scans them again.
pub fn one_scan_serves_all_waiting_list_requests(testbed: &impl Testbed, base: Base) {
    run(testbed, 6, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let clients = start(base, &nodes, 1, small(base, Threads::Pool(4))).await;
        let make = async |number| {
            let file = open(&clients[0], &numbered(&nodes[..1], number, 0, 0).await, 0).await;
            file.make_stripes().await.expect("made");
        };
        make(2).await;
        let listed = |stripes: Vec<(NodeId, ListedStripe)>| -> Vec<u64> {
            stripes.into_iter().map(|(_, stripe)| stripe.file.0).collect()
        };
        let (tasks, faults) = (Tasks::default(), nodes[0].faults());
        faults.hold();
        for (number, client) in clients.iter().enumerate() {
            let client = client.clone();
            tasks.begin(&nodes[1 + number], async move {
                let files = listed(client.list_numbered().await.expect("listed"));
                assert!(number == 0 || files == [2, 3], "client {number}: {files:?}");
            });
            rest(&nodes[0]).await;
            if number == 0 {
                make(3).await;
            }
        }
        faults.release();
        tasks.wait().await;
        assert_eq!(faults.lists.get(), 2);
        assert_eq!(listed(clients[0].list_numbered().await.expect("listed")), [2, 3]);
        assert_eq!(faults.lists.get(), 3);
    });
}

/// Data written to a file that could not be removed are lost, and its writer gets an error.
pub fn lost_data_of_an_unremovable_file_are_reported(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let clients = start(base, &nodes, 1, small(base, Threads::Pool(4))).await;
        let file = open(&clients[0], &numbered(&nodes[..1], 1, 0, 0).await, 0).await;
        write(&file, 0, &contents(BLOCK)).await;
        file.flush().await.expect("flushed");
        write(&file, 5, &[1; 5]).await;
        nodes[0].faults().failing_removals.set(1);
        clients[1].remove_numbered(&[FileId(1)]).await.expect_err("a fault on purpose");
        file.flush().await.expect_err("the written data are lost");
    });
}
