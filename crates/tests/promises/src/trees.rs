//! Promises about names, and about files that clients share by name.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use fs::{
    Client, CollectiveMethod, Error, FileId, NewTree, OpenFor, OpenTreeFile, PageCache, PageCacheSettings,
    Prefetch, Result, SelectedSettings, TeamMembership, TeamStep, Threads, Tree,
};
use layout::{Extent, Selection, Striping};
use machine::conformance::Testbed;
use machine::{
    Duration, METADATA_KEY_BYTES_MAX, Machine, Memory, MetadataEntry, MetadataStore, Net, NodeId, Payload,
    Transaction,
};
use namespace::{
    AttributeChanges, FileLayout, FileNumber, Location, NewInode, RemovalTarget, RenameMode, SetValue,
    TreeAnswer, TreeOperation, TreeRefusal, WrittenContents,
};

use super::faulty::Faulty;
use super::selected::{begun, noted_from_now};
use super::tasks::{Tasks, rest, until};
use super::{BLOCK, Base, contents, run, small, start};

const NEW: NewTree = NewTree { origin: 4711, mode: 0o755, uid: 0, gid: 0 };

/// Returns the namespaces of clients of three I/O nodes, each with a page cache of a few pages.
pub(super) async fn trees<M: Machine>(base: Base, nodes: &[M]) -> Vec<Tree<M>> {
    let mut trees = Vec::new();
    for client in start(base, nodes, 3, small(base, Threads::Pool(4))).await {
        trees.push(Tree::find_or_begin(&cache(client), NEW).await.expect("a namespace"));
    }
    trees
}

/// Like [`trees`], with clients that send unflushed data after 20 ms.
async fn timed_trees<M: Machine>(base: Base, nodes: &[M]) -> Vec<Tree<M>> {
    let send_parts_after = Some(Duration::from_millis(20));
    let mut trees = Vec::new();
    for client in start(base, nodes, 3, small(base, Threads::Pool(4))).await {
        let cache = PageCache::new(client, PageCacheSettings { send_parts_after, ..CACHE });
        trees.push(Tree::find_or_begin(&cache, NEW).await.expect("a namespace"));
    }
    trees
}

const CACHE: PageCacheSettings = PageCacheSettings {
    bytes: 8 * BLOCK,
    prefetch: Prefetch::Adaptive,
    write_behind: true,
    send_parts_after: None,
};

pub(super) fn cache<M: Machine>(client: Client<M>) -> PageCache<M> {
    PageCache::new(client, CACHE)
}

pub(super) async fn make<M: Machine>(tree: &Tree<M>, path: &str, exclusive: bool) -> Result<OpenTreeFile<M>> {
    let disks = tree.all_disks().await?;
    let new = NewInode::File { striping: Striping::new(BLOCK, 3)?, disks };
    let at = Location::of_path(path);
    tree.open(TreeOperation::Make { at, new, mode: 0o644, uid: 1, gid: 2, exclusive }).await
}

async fn make_on<M: Machine>(tree: &Tree<M>, path: &str, stripes: u32) -> Result<OpenTreeFile<M>> {
    let disks = tree.all_disks().await?;
    let new = NewInode::File { striping: Striping::new(BLOCK, stripes)?, disks };
    let at = Location::of_path(path);
    tree.open(TreeOperation::Make { at, new, mode: 0o644, uid: 1, gid: 2, exclusive: true }).await
}

async fn make_directory<M: Machine>(tree: &Tree<M>, path: &str) -> Result<()> {
    let (at, new) = (Location::of_path(path), NewInode::Directory);
    let make = TreeOperation::Make { at, new, mode: 0o755, uid: 1, gid: 2, exclusive: true };
    tree.perform(make).await.map(drop)
}

pub(super) async fn open<M: Machine>(tree: &Tree<M>, path: &str) -> Result<OpenTreeFile<M>> {
    tree.open(TreeOperation::Look { at: Location::of_path(path), follow: true }).await
}

pub(super) async fn remove<M: Machine>(tree: &Tree<M>, path: &str) -> Result<()> {
    let at = Location::of_path(path);
    tree.unname(TreeOperation::Remove { at, what: RemovalTarget::File }).await
}

pub(super) async fn rename<M: Machine>(tree: &Tree<M>, from: &str, to: &str) -> Result<()> {
    let (from, to) = (Location::of_path(from), Location::of_path(to));
    tree.unname(TreeOperation::Rename { from, to, mode: RenameMode::Replace }).await
}

pub(super) async fn write<M: Machine>(file: &OpenTreeFile<M>, offset: u64, data: &[u8]) {
    file.write(offset, Payload::from(data.to_vec())).await.expect("written");
}

pub(super) async fn read<M: Machine>(file: &OpenTreeFile<M>) -> Vec<u8> {
    let bytes = file.known().size;
    file.paged().read(0, bytes + 10).await.expect("read").to_vec().expect("real bytes")
}

fn is_refused<T>(outcome: Result<T>, refusal: TreeRefusal) -> bool {
    outcome.is_err_and(|error| error.is_refused(refusal))
}

/// A file that replaces another is flushed to stable storage before the replacement. If the flush fails, the old file
/// stays.
pub fn a_replacing_file_is_persisted_first(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        for (name, byte) in [("old", 1), ("new", 2)] {
            let file = make(&trees[0], name, true).await.expect("made");
            write(&file, 0, &[byte; 10]).await;
            file.close().await.expect("closed");
        }
        for node in &nodes[..3] {
            node.faults().failing_flushes.set(1);
        }
        rename(&trees[0], "new", "other").await.expect("nothing is replaced");
        rename(&trees[1], "other", "old").await.expect_err("it cannot be persisted");
        assert_eq!(read(&open(&trees[0], "old").await.expect("opened")).await, [1; 10]);
        for node in &nodes[..3] {
            node.faults().failing_flushes.set(0);
        }
        rename(&trees[1], "other", "old").await.expect("replaced");
        assert_eq!(read(&open(&trees[0], "old").await.expect("opened")).await, [2; 10]);
    });
}

/// A flush of a file, or its use as a replacement, also persists data that other clients have written before they
/// closed the file, even if the client's own data were already persistent.
pub fn a_flush_also_persists_closed_writes_of_others(testbed: &impl Testbed, base: Base) {
    run(testbed, 6, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        make(&trees[0], "old", true).await.expect("made").close().await.expect("closed");
        let kept = make(&trees[0], "new", true).await.expect("made");
        write(&kept, 0, &[1; 10]).await;
        assert_eq!(kept.sync().await, Ok(()));
        let overwrite = async |by: usize, name| {
            let file = open(&trees[by], name).await.expect("opened");
            write(&file, 0, &[by as u8 + 1; 10]).await;
            file.close().await.expect("closed");
        };
        let fail_flushes =
            |count| nodes[..3].iter().for_each(|node| node.faults().failing_flushes.set(count));
        overwrite(1, "new").await;
        fail_flushes(1);
        rename(&trees[0], "new", "old").await.expect_err("it cannot be persisted");
        fail_flushes(0);
        rename(&trees[0], "new", "old").await.expect("replaced");
        overwrite(2, "old").await;
        let again = open(&trees[0], "old").await.expect("opened");
        assert_eq!(read(&again).await, [3; 10]);
        fail_flushes(1);
        again.sync().await.expect_err("it cannot be persisted");
        fail_flushes(0);
        assert_eq!(again.sync().await, Ok(()));
        fail_flushes(1);
        assert_eq!(again.sync().await, Ok(()), "all data are persistent");
    });
}

/// A flush reports once if the metadata server may have lost changes of names by this client in a crash. It does not
/// report flushed changes, or changes of other clients.
pub fn lost_changes_of_names_are_reported(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let metadata_server =
            nodes.iter().find(|node| node.node() == trees[0].metadata_server()).expect("one of them");
        let crash = || metadata_server.faults().crash();
        let lost = Err(Error::NamesLost { metadata_server: metadata_server.node() }.into());
        for tree in &trees {
            tree.flush().await.expect("flushed");
        }
        let file = make(&trees[0], "file", true).await.expect("made");
        let other = make(&trees[0], "other", true).await.expect("made");
        crash();
        assert_eq!((file.sync().await, file.sync().await), (lost.clone(), Ok(())));
        assert_eq!((other.sync().await, other.sync().await), (lost.clone(), Ok(())));
        assert_eq!((trees[0].flush().await, trees[0].flush().await), (lost.clone(), Ok(())));
        crash();
        assert_eq!((file.sync().await, trees[0].flush().await), (Ok(()), Ok(())), "all was flushed");
        // One handle reports its write to the metadata server at its close; another handle reports that this may be
        // lost.
        let second = open(&trees[0], "file").await.expect("opened");
        write(&second, 0, &contents(BLOCK)).await;
        second.close().await.expect("closed");
        crash();
        assert_eq!((file.sync().await, file.sync().await), (lost.clone(), Ok(())));
        make_directory(&trees[0], "directory").await.expect("made");
        crash();
        let directory = TreeOperation::Look { at: Location::of_path("directory"), follow: false };
        let number = trees[0].inode(directory).await.expect("there").number;
        for number in [number, FileNumber::ROOT] {
            let outcomes = (trees[0].flush_of(number).await, trees[0].flush_of(number).await);
            assert_eq!(outcomes, (lost.clone(), Ok(())));
        }
        assert_eq!((file.sync().await, trees[1].flush().await), (Ok(()), Ok(())), "not theirs");
        assert_eq!((trees[0].flush().await, trees[0].flush().await), (lost, Ok(())));
    });
}

/// A stopping I/O node flushes accepted data of several files concurrently: its disks can combine the flushes, so that
/// the stop takes less time.
pub fn a_stopping_io_node_flushes_files_concurrently(testbed: &impl Testbed, base: Base) {
    const FILES: u32 = 6;
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let mut files = Vec::new();
        for number in 0..FILES {
            let file = make(&trees[0], &format!("file {number}"), true).await.expect("made");
            write(&file, 0, &contents(3 * BLOCK)).await;
            file.paged().send().await.expect("accepted");
            files.push(file);
        }
        let faults = nodes[0].faults();
        faults.flushes.set(0);
        faults.flushing_most.set(0);
        nodes[0].net().close();
        until(&nodes[0], || faults.flushes.get() >= FILES).await;
        assert!(faults.flushing_most.get() > 1, "files were flushed one after another");
    });
}

/// If an I/O node of a file or the metadata server is unreachable, a truncation fails and leaves the file unchanged.
pub fn a_truncation_has_no_effect_if_a_node_is_unreachable(testbed: &impl Testbed, base: Base) {
    for is_metadata_server in [false, true] {
        run(testbed, 5, move |nodes| async move {
            let (trees, data) = (trees(base, &nodes).await, contents(9 * BLOCK));
            let file = make(&trees[0], "file", true).await.expect("made");
            write(&file, 0, &data).await;
            file.flush().await.expect("flushed");
            let other = open(&trees[1], "file").await.expect("opened");
            let away = nodes[..3]
                .iter()
                .find(|node| (node.node() == trees[0].metadata_server()) == is_metadata_server);
            away.expect("one of them").net().close();
            file.set_len(BLOCK / 2).await.expect_err("one of them is away");
            assert_eq!(file.known().size, 9 * BLOCK);
            let mut left = 0;
            for (block, expected) in (0..).zip(data.chunks(BLOCK as usize)) {
                if let Ok(read) = other.paged().read(block * BLOCK, BLOCK).await {
                    assert_eq!(read.to_vec().as_deref(), Some(expected));
                    left += 1;
                }
            }
            assert_eq!(left, 6, "the blocks of the other nodes exist");
        });
    }
}

/// If a client could not report a write to the metadata server when it closed a handle, the next flush through another
/// handle of the client reports the write.
pub fn the_next_flush_reports_writes_that_a_close_could_not_report(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let writer = make(&trees[0], "file", true).await.expect("made");
        let reader = open(&trees[0], "file").await.expect("opened");
        write(&writer, 0, &contents(BLOCK)).await;
        let metadata_server =
            nodes.iter().find(|node| node.node() == trees[0].metadata_server()).expect("one of them");
        metadata_server.faults().failing_transactions.set(1);
        reader.close().await.expect_err("the metadata server cannot record it");
        assert_eq!(writer.sync().await, Ok(()));
        let other = open(&trees[1], "file").await.expect("opened");
        assert_eq!((other.known().stored_bytes(), read(&other).await), (BLOCK, contents(BLOCK)));
    });
}

/// A client that opened a file between a write and its flush reads the written data when it opens the file again, even
/// if the file was extended in between.
pub fn data_sent_after_an_open_are_read_at_the_next_open(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let writer = make(&trees[0], "file", true).await.expect("made");
        write(&writer, 0, &[0; 30]).await;
        writer.flush().await.expect("sent");
        for round in 1..3 {
            // A partly written page stays at its client until a flush.
            write(&writer, 0, &[round; 10]).await;
            match round {
                1 => writer.extend(30 + u64::from(round)).await.expect("longer"),
                _ => drop(writer.append(Payload::zeros(layout::FILE_BYTES_MAX)).await.expect_err("too long")),
            }
            let between = open(&trees[1], "file").await.expect("opened");
            read(&between).await;
            writer.flush().await.expect("sent");
            let after = open(&trees[1], "file").await.expect("opened");
            assert_eq!(read(&after).await[..10], [round; 10]);
            assert_eq!(between.known(), writer.attributes().await.expect("there"));
            between.close().await.expect("closed");
            after.close().await.expect("closed");
        }
        let version = writer.known().version;
        writer.flush().await.expect("sent");
        assert_eq!(writer.attributes().await.expect("there").version, version, "everything is reported");
    });
}

/// A concurrent write and truncation of one client are serialised: the written data are in the file, or permanently
/// truncated.
pub fn a_truncation_and_a_write_are_serialised(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let file = Rc::new(make(&trees[0], "file", true).await.expect("made"));
        for step in 0..40 {
            write(&file, 0, &contents(2 * BLOCK)).await;
            file.flush().await.expect("sent");
            let (tasks, cut, written) = (Tasks::default(), file.clone(), file.clone());
            tasks.begin(&nodes[3], async move { drop(cut.set_len(10).await.expect("cut")) });
            let (node, later) = (nodes[3].clone(), Duration::from_nanos(step * 25_000));
            tasks.begin(&nodes[3], async move {
                node.sleep_until(node.now() + later).await;
                write(&written, 3 * BLOCK, &[7; BLOCK as usize]).await;
                written.flush().await.expect("sent");
            });
            tasks.wait().await;
            let bytes = file.attributes().await.expect("there").size;
            file.set_len(4 * BLOCK).await.expect("longer, or as it was");
            let mut expected = contents(10);
            expected.resize(4 * BLOCK as usize, 0);
            match bytes {
                10 => {}
                bytes => {
                    assert_eq!(bytes, 4 * BLOCK, "step {step}");
                    expected[3 * BLOCK as usize..].fill(7);
                }
            }
            let other = open(&trees[1], "file").await.expect("opened");
            assert!(read(&file).await == expected && read(&other).await == expected, "step {step}: {bytes}");
            other.close().await.expect("closed");
        }
    });
}

/// A client's sync of all files reports data that cannot be persisted, also of closed files, unless the client has
/// removed the file. Other clients get no error. An open handle on the file gets the error as well.
pub fn a_sync_of_all_files_includes_closed_files(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let fail_flushes =
            |count| nodes[..3].iter().for_each(|node| node.faults().failing_flushes.set(count));
        for name in ["one", "other"] {
            let file = make(&trees[0], name, true).await.expect("made");
            write(&file, 0, &contents(3 * BLOCK)).await;
            file.close().await.expect("closed");
        }
        fail_flushes(1);
        assert_eq!(trees[1].sync().await, Ok(()), "it has written nothing");
        fail_flushes(0);
        assert_eq!(trees[0].sync().await, Ok(()));
        fail_flushes(1);
        assert_eq!(trees[0].sync().await, Ok(()), "all data are persistent");
        let file = open(&trees[0], "one").await.expect("opened");
        write(&file, 0, &contents(3 * BLOCK)).await;
        file.flush().await.expect("sent");
        for outcome in [trees[0].sync().await, file.sync().await] {
            let text = outcome.expect_err("it cannot be persisted").to_string();
            assert!(text.contains("flushing"), "{text}");
        }
        assert_eq!(file.sync().await, Ok(()), "it has got the error");
        assert_eq!((trees[0].sync().await, file.close().await), (Ok(()), Ok(())));
        let file = open(&trees[0], "one").await.expect("opened");
        write(&file, 0, &contents(3 * BLOCK)).await;
        file.close().await.expect("closed");
        fail_flushes(1);
        remove(&trees[0], "one").await.expect("removed");
        assert_eq!(trees[0].sync().await, Ok(()), "an unlinked file needs no flush");
    });
}

/// A truncation also affects stripes that other clients created after the client looked for stripes.
pub fn a_truncation_reaches_stripes_that_others_created(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let file = make(&trees[0], "file", true).await.expect("made");
        // At this time the client finds no stripe.
        file.set_len(BLOCK).await.expect("extended");
        let other = open(&trees[1], "file").await.expect("opened");
        write(&other, 0, &contents(BLOCK)).await;
        other.close().await.expect("closed");
        file.set_len(1).await.expect("truncated");
        file.set_len(BLOCK).await.expect("extended");
        let mut expected = contents(BLOCK);
        expected[1..].fill(0);
        assert_eq!(read(&file).await, expected);
        assert_eq!(read(&open(&trees[1], "file").await.expect("opened")).await, expected);
    });
}

/// A client that has truncated a file sees when another client truncates it further.
pub fn a_truncation_by_another_client_is_visible_after_an_own_one(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let file = make(&trees[0], "file", true).await.expect("made");
        file.set_len(BLOCK).await.expect("extended");
        open(&trees[1], "file").await.expect("opened").set_len(1).await.expect("truncated");
        assert_eq!(file.attributes().await.expect("answered").size, 1);
        assert_eq!(read(&file).await, [0]);
    });
}

/// A missing stripe that once existed is lost, and reading or changing it is an error; a stripe that never existed is a
/// hole. After a truncation to 0 the file can be written again.
pub fn a_lost_stripe_is_not_a_hole(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let file = make(&trees[0], "file", true).await.expect("made");
        write(&file, 0, &contents(BLOCK)).await;
        file.flush().await.expect("flushed");
        assert_eq!(file.known().stored_stripes, 1);
        // Pretend that the second stripe was on a disk that was replaced by an empty disk.
        let written = WrittenContents { end: 3 * BLOCK, stored_stripes: 2, bytes: 3 * BLOCK };
        let noted = trees[0].perform(TreeOperation::Wrote { number: file.number(), written }).await;
        noted.expect("noted");
        file.close().await.expect("closed");
        let is_lost = |error: Box<Error>| matches!(*error, Error::MissingStripe { index: 1, count: 3, .. });
        let file = open(&trees[1], "file").await.expect("opened");
        let block = |index: u64| file.paged().read(index * BLOCK, BLOCK);
        for _ in 0..2 {
            assert_eq!(block(0).await.expect("read").to_vec(), Some(contents(BLOCK)));
            assert!(is_lost(block(1).await.expect_err("it is lost")));
            assert_eq!(block(2).await.expect("read").to_vec(), Some(vec![0; BLOCK as usize]));
        }
        let all = Selection::contiguous(Extent::new(0, 3 * BLOCK)).expect("an extent");
        let settings = SelectedSettings {
            method: CollectiveMethod::DiskDirected { presort: true },
            queued: true,
            to_media: false,
        };
        let memory = Memory::real(vec![0; 3 * BLOCK as usize]);
        let selected = file.read_selected(None, &all, &memory, settings).await;
        assert!(is_lost(selected.expect_err("it is lost")));
        let written = file.write_selected(None, &all, &memory, settings).await;
        assert!(is_lost(written.expect_err("its unwritten bytes would be zeros")));
        write(&file, BLOCK, &[2; 10]).await;
        assert!(is_lost(file.flush().await.expect_err("the rest of the block would be zeros")));
        file.set_len(0).await.expect("nothing of it counts any more");
        assert_eq!(file.known().stored_stripes, 0);
        write(&file, 0, &contents(3 * BLOCK)).await;
        file.close().await.expect("closed");
        let file = open(&trees[0], "file").await.expect("opened");
        assert_eq!((file.known().stored_stripes, read(&file).await), (3, contents(3 * BLOCK)));
    });
}

/// All clients know from the writers an upper limit of a file's stored bytes, which does not depend on the length of
/// the file.
pub fn an_unwritten_range_is_not_counted(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let file = make(&trees[0], "file", true).await.expect("made");
        file.set_len(9 * BLOCK).await.expect("extended");
        write(&file, 4 * BLOCK, &contents(BLOCK)).await;
        let stored =
            |file: &OpenTreeFile<_>| (file.known().size / BLOCK, file.known().stored_bytes() / BLOCK);
        assert_eq!(stored(&file), (9, 1), "before the report to the metadata server");
        file.close().await.expect("closed");
        let file = open(&trees[1], "file").await.expect("opened");
        assert_eq!(stored(&file), (9, 1));
        file.append(Payload::from(contents(BLOCK))).await.expect("appended");
        assert_eq!(stored(&file), (10, 2));
        file.flush().await.expect("sent");
        assert_eq!(stored(&file), (10, 2), "it is reported once");
        file.set_len(5 * BLOCK).await.expect("cut");
        file.wrote_past_cache(7 * BLOCK, BLOCK).await.expect("told");
        assert_eq!(stored(&file), (7, 3));
        file.close().await.expect("closed");
        let seen = open(&trees[0], "file").await.expect("opened");
        assert_eq!(stored(&seen), (7, 3));
    });
}

/// All clients find one namespace, created by any of them, and see each other's names. If several create or move the
/// same name at the same time, one succeeds.
pub fn all_clients_share_one_namespace(testbed: &impl Testbed, base: Base) {
    run(testbed, 7, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        assert!(trees.iter().all(|tree| tree.metadata_server() == trees[0].metadata_server()));
        for (index, tree) in trees.iter().enumerate() {
            make_directory(tree, &format!("d{index}")).await.expect("made");
        }
        let (tasks, made) = (Tasks::default(), Rc::new(RefCell::new(Vec::new())));
        for (index, tree) in trees.iter().cloned().enumerate() {
            let made = made.clone();
            tasks.begin(&nodes[3 + index], async move {
                for round in 0..5 {
                    match make(&tree, &format!("d{}/name {round}", round % 4), true).await {
                        Ok(file) => {
                            file.close().await.expect("closed");
                            made.borrow_mut().push(round);
                        }
                        Err(error) => assert_eq!(*error, Error::Refused(TreeRefusal::Exists)),
                    }
                }
            });
        }
        tasks.wait().await;
        let mut made = made.take();
        made.sort_unstable();
        assert_eq!(made, [0, 1, 2, 3, 4], "each by one of them");
        for (index, tree) in trees.iter().cloned().enumerate() {
            tasks.begin(&nodes[3 + index], async move {
                for _ in 0..5 {
                    // Move directories into each other: at most one of two moves succeeds.
                    let (one, other) = (index % 4, (index + 1) % 4);
                    let _ = rename(&tree, &format!("d{one}"), &format!("d{other}/in")).await;
                    let _ = rename(&tree, &format!("d{other}/in"), &format!("d{one}")).await;
                }
            });
        }
        tasks.wait().await;
        // All inodes can be reached and are counted.
        let records = trees[0].survey().await.expect("records");
        assert_eq!(namespace::defects(&records), []);
    });
}

/// A client that reaches only a part of a set of agents does not create a second namespace, even if its part has no
/// files, or is only an added disk. If a second namespace is created anyway, a client that reaches both gets an error
/// with both metadata servers.
pub fn no_second_namespace_is_created(testbed: &impl Testbed, base: Base) {
    run(testbed, 7, move |nodes| async move {
        let client = start(base, &nodes[..4], 3, small(base, Threads::Pool(4))).await.remove(0);
        let all: Vec<_> = nodes[..3].iter().map(|node| node.node()).collect();
        let connect = async |node: usize, io_nodes: &[NodeId]| {
            let connected = Client::connect(nodes[node].clone(), io_nodes.to_vec(), base.client());
            cache(connected.await.expect("they answer"))
        };
        // Begin with two I/O nodes; the third is added when a file is created on all disks.
        Tree::find_or_begin(&connect(4, &all[..2]).await, NEW).await.expect("begun");
        let tree =
            Tree::find(&cache(client.clone())).await.expect("one metadata server").expect("a namespace");
        let rest: Vec<_> = all.iter().copied().filter(|node| *node != tree.metadata_server()).collect();
        let (partial, added) = (connect(5, &rest).await, connect(6, &all[2..]).await);
        let refused = async |partial: &PageCache<_>, expected: usize| {
            let refused = Tree::find_or_begin(partial, NEW).await.err().expect("refused");
            let Error::NoMetadataServer { node, files } = *refused else { panic!("{refused}") };
            assert_ne!(node, tree.metadata_server());
            assert_eq!(files, expected);
        };
        refused(&partial, 0).await;
        let new = NewInode::File {
            striping: Striping::new(BLOCK, client.disks()).expect("sound"),
            disks: tree.all_disks().await.expect("entered"),
        };
        refused(&added, 0).await;
        let at = Location::of_path("file");
        let file = TreeOperation::Make { at, new, mode: 0o644, uid: 1, gid: 2, exclusive: true };
        let file = tree.open(file).await.expect("made");
        write(&file, 0, &contents(u64::from(client.disks()) * BLOCK)).await;
        file.close().await.expect("closed");
        for _ in 0..2 {
            refused(&partial, 1).await;
        }
        assert!(Tree::find(tree.cache()).await.expect("one").is_some());
        remove(&tree, "file").await.expect("removed");
        tree.contents_removed().await;
        assert_eq!(client.list_numbered().await, Ok(Vec::new()), "a mark is no file");
        refused(&added, 0).await;
        let other = Tree::begin(&partial, NEW).await.expect("a second namespace can be forced");
        let many = Tree::find(tree.cache()).await.err().expect("two");
        let Error::ManyNamespaces(kept) = &*many else { panic!("{many}") };
        let kept: Vec<_> = kept.iter().map(|kept| (kept.node, kept.inodes)).collect();
        assert_eq!(kept, [(tree.metadata_server(), 1), (other.metadata_server(), 1)]);
    });
}

/// No name is created for a file that could not be opened. An existing file can be opened even if the layout of new
/// files is impossible.
pub fn a_file_with_too_large_blocks_leaves_no_name(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let disks = trees[0].all_disks().await.expect("entered");
        let striping = Striping::new(2 * trees[0].cache().client().block_bytes_max(), 1).expect("sound");
        let new = [
            NewInode::File { striping, disks },
            NewInode::UnfinishedFile { striping, disks },
            NewInode::PlacedFile(FileLayout { striping, disks, first: 0 }),
        ];
        let making = |path, new: &NewInode, exclusive| {
            let (at, new) = (Location::of_path(path), new.clone());
            TreeOperation::Make { at, new, mode: 0o644, uid: 1, gid: 2, exclusive }
        };
        let file = make(&trees[0], "there", true).await.expect("made");
        write(&file, 0, &contents(BLOCK)).await;
        file.close().await.expect("closed");
        for new in &new {
            for exclusive in [true, false] {
                let refused = trees[0].open(making("large", new, exclusive)).await.err().expect("refused");
                assert!(matches!(*refused, Error::BlockTooLarge { .. }), "{refused}");
                assert!(is_refused(open(&trees[1], "large").await, TreeRefusal::NotFound), "{new:?}");
            }
            let there = trees[1].open(making("there", new, false)).await.expect("opened");
            assert_eq!(read(&there).await, contents(BLOCK));
            there.close().await.expect("closed");
        }
    });
}

/// Data written and closed, or flushed, are read by every later open, for any size and any cached pages of the reader.
pub fn every_later_open_reads_closed_and_flushed_data(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let (one, other) = (&trees[0], &trees[1]);
        make_directory(one, "d").await.expect("made");
        for bytes in [0, 1, BLOCK + 1, 20 * BLOCK + 7, 3 * BLOCK] {
            let (path, data) = (format!("d/file of {bytes}"), contents(bytes));
            let file = make(one, &path, true).await.expect("made");
            write(&file, 0, &data).await;
            assert_eq!(file.known().size, bytes, "a client sees its own writes");
            assert!(read(&file).await == data);
            file.close().await.expect("closed");
            let theirs = open(other, &path).await.expect("opened");
            assert!(read(&theirs).await == data, "{bytes} bytes");
            // Change the file by one client while another client has it open.
            let file = open(one, &path).await.expect("opened");
            let changed: Vec<u8> = data.iter().map(|byte| byte ^ 0xFF).collect();
            write(&file, 0, &changed).await;
            write(&file, bytes + BLOCK, b"end").await;
            file.flush().await.expect("flushed");
            let again = open(other, &path).await.expect("opened");
            let expected = [&changed[..], &vec![0; BLOCK as usize], b"end"].concat();
            assert!(read(&again).await == expected);
            assert_eq!(again.attributes().await.expect("known").size, bytes + BLOCK + 3);
            let inode = again.set_len(bytes / 2).await.expect("cut");
            assert_eq!((inode.size, again.known().size), (bytes / 2, bytes / 2));
            let inode = again.set_len(bytes).await.expect("extended");
            assert_eq!(inode.size, bytes);
            again.close().await.expect("closed");
            theirs.close().await.expect("closed");
            let cut = file.attributes().await.expect("known");
            assert_eq!(cut.size, bytes);
            let half = (bytes / 2) as usize;
            assert!(read(&file).await == [&changed[..half], &vec![0; bytes as usize - half]].concat());
            file.close().await.expect("closed");
        }
    });
}

/// While a client appends to a file, or writes without a flush, a reader sees a prefix of the written data and no other
/// bytes. The reader sees all data after a short time, with a new or an old handle.
pub fn a_reader_sees_no_unwritten_bytes(testbed: &impl Testbed, base: Base) {
    const PIECE: u64 = BLOCK / 3;
    run(testbed, 5, move |nodes| async move {
        let trees = timed_trees(base, &nodes).await;
        for appends in [true, false] {
            let name = if appends { "appended" } else { "written" };
            let writer = make(&trees[0], name, true).await.expect("made");
            let reader = open(&trees[1], name).await.expect("opened");
            for piece in 0..12 {
                match appends {
                    true => {
                        writer.append(Payload::from(vec![7; PIECE as usize])).await.expect("appended");
                    }
                    false => write(&writer, piece * PIECE, &[7; PIECE as usize]).await,
                }
                let reopened = open(&trees[1], name).await.expect("opened");
                assert!(read(&reopened).await.iter().all(|byte| *byte == 7), "{name}: it was not sent yet");
                reopened.close().await.expect("closed");
                rest(&nodes[4]).await;
                reader.attributes().await.expect("there");
                assert_eq!(read(&reader).await, vec![7; ((piece + 1) * PIECE) as usize], "{name}");
            }
            let stored = reader.attributes().await.expect("there").stored_bytes();
            assert_eq!(stored, 12 * PIECE, "each byte counts once");
            writer.close().await.expect("closed");
            reader.close().await.expect("closed");
        }
    });
}

/// If disks are full, a new file is not longer than its stored data. Other clients read a prefix of the written bytes,
/// and no zeros, with one full disk or all disks full, and with or without a flush before the close.
pub fn a_new_file_on_a_full_disk_has_the_length_of_its_stored_data(testbed: &impl Testbed, base: Base) {
    const ROOM: u64 = 200 << 10;
    const FILES: u32 = 30;
    for (is_flushed, full) in [(true, 1), (false, 1), (true, 3), (false, 3)] {
        run(testbed, 5, move |nodes| async move {
            let nodes = Faulty::all(nodes);
            nodes[..full].iter().for_each(|node| node.faults().room.set(Some(ROOM)));
            let trees = trees(base, &nodes).await;
            let sizes = [BLOCK / 2, 5 * BLOCK, BLOCK + 3].into_iter().cycle();
            let mut refused = 0;
            for (number, bytes) in (0..FILES).zip(sizes.clone()) {
                let file = make(&trees[0], &number.to_string(), true).await.expect("a name needs no room");
                let written = file.write(0, Payload::from(vec![7; bytes as usize])).await;
                let sent = if is_flushed { file.flush().await } else { Ok(()) };
                refused += u32::from(written.and(sent).and(file.close().await).is_err());
            }
            assert!((1..FILES).contains(&refused), "{refused} of {FILES} are refused");
            for (number, bytes) in (0..FILES).zip(sizes) {
                let found = read(&open(&trees[1], &number.to_string()).await.expect("opened")).await;
                let zeros = found.iter().filter(|byte| **byte != 7).count();
                assert_eq!(
                    zeros,
                    0,
                    "of {} of {bytes} bytes of file {number}, {is_flushed} {full}",
                    found.len()
                );
            }
        });
    }
}

/// Unflushed overwrites become visible after a short time to clients that have the file open and request its
/// attributes.
pub fn an_unflushed_overwrite_is_visible_in_time(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = timed_trees(base, &nodes).await;
        let writer = make(&trees[0], "file", true).await.expect("made");
        write(&writer, 0, &[1; 2 * BLOCK as usize]).await;
        writer.flush().await.expect("sent");
        let reader = open(&trees[1], "file").await.expect("opened");
        for value in 2..5 {
            read(&reader).await;
            let (mut expected, at) = (read(&writer).await, usize::from(value) * 100);
            expected[at..at + 50].fill(value);
            write(&writer, at as u64, &[value; 50]).await;
            rest(&nodes[4]).await;
            let before = reader.changed_by_others();
            reader.attributes().await.expect("there");
            assert_eq!(reader.changed_by_others(), before + 1);
            assert!(read(&reader).await == expected, "after {value}");
        }
        assert_eq!(writer.changed_by_others(), 0);
    });
}

/// While many clients append, each of them, and any other reader, sees a prefix of the final file.
pub fn appends_of_many_clients_leave_no_gaps(testbed: &impl Testbed, base: Base) {
    const RECORDS: u8 = 8;
    run(testbed, 7, move |nodes| async move {
        let trees = timed_trees(base, &nodes).await;
        make(&trees[0], "log", true).await.expect("made").close().await.expect("closed");
        let (tasks, seen) = (Tasks::default(), Rc::new(RefCell::new(Vec::new())));
        for (client, tree) in (1..).zip(trees[1..].iter().cloned()) {
            let seen = seen.clone();
            tasks.begin(&nodes[3 + client as usize], async move {
                let file = open(&tree, "log").await.expect("opened");
                for record in 0..RECORDS {
                    let bytes = 10 + usize::from(record) * 37;
                    file.append(Payload::from(vec![client << 4 | record; bytes])).await.expect("appended");
                    file.attributes().await.expect("there");
                    let prefix = read(&file).await;
                    seen.borrow_mut().push(prefix);
                }
                file.close().await.expect("closed");
            });
        }
        for _ in 0..20 {
            let file = open(&trees[0], "log").await.expect("opened");
            let prefix = read(&file).await;
            seen.borrow_mut().push(prefix);
            file.close().await.expect("closed");
        }
        tasks.wait().await;
        let whole = read(&open(&trees[0], "log").await.expect("opened")).await;
        assert!(!whole.contains(&0), "there are no gaps");
        for prefix in seen.take() {
            assert!(whole.starts_with(&prefix), "{} bytes were seen", prefix.len());
        }
    });
}

/// An appender that reserves a range and disconnects delays other appenders once, and no data of the others are lost.
pub fn a_disconnected_appender_delays_others_once(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = timed_trees(base, &nodes).await;
        let file = make(&trees[0], "log", true).await.expect("made");
        let number = file.number();
        trees[1].perform(TreeOperation::Append { number, bytes: 3, after: 0 }).await.expect("a place");
        let mut took = Vec::new();
        for _ in 0..2 {
            let begun = nodes[3].now();
            file.append(Payload::from(vec![1; 5])).await.expect("appended");
            took.push(nodes[3].now().since(begun));
        }
        let second = Duration::from_secs(1);
        assert!(took[0] > second && took[0] < Duration::from_secs(20) && took[1] < second, "{took:?}");
        file.flush().await.expect("sent");
        let seen = open(&trees[1], "log").await.expect("opened");
        assert_eq!(read(&seen).await, [vec![0; 3], vec![1; 10]].concat());
    });
}

/// Each of many concurrent appends of many clients gets a separate range of bytes.
pub fn appends_of_many_clients_lose_nothing(testbed: &impl Testbed, base: Base) {
    run(testbed, 6, move |nodes| async move {
        const RECORDS: u8 = 12;
        let trees = trees(base, &nodes).await;
        make(&trees[0], "log", true).await.expect("made").close().await.expect("closed");
        let tasks = Tasks::default();
        for (client, tree) in (0..).zip(trees.iter().cloned()) {
            tasks.begin(&nodes[3 + client as usize], async move {
                let file = open(&tree, "log").await.expect("opened");
                for record in 0..RECORDS {
                    // Some records are longer than a block.
                    let bytes = 3 + (u64::from(record) * 131) % (2 * BLOCK);
                    let mut data = vec![client << 4 | record; bytes as usize];
                    data[..2].copy_from_slice(&(bytes as u16).to_be_bytes());
                    file.append(Payload::from(data)).await.expect("appended");
                    if record % 4 == 0 {
                        file.flush().await.expect("flushed");
                    }
                }
                file.close().await.expect("closed");
            });
        }
        tasks.wait().await;
        let file = open(&trees[1], "log").await.expect("opened");
        let data = read(&file).await;
        let (mut at, mut found) = (0, Vec::new());
        while at < data.len() {
            let bytes = usize::from(u16::from_be_bytes([data[at], data[at + 1]]));
            let record = data[at + 2];
            assert!(data[at + 2..at + bytes].iter().all(|byte| *byte == record), "a record is whole");
            found.push(record);
            at += bytes;
        }
        found.sort_unstable();
        let expected: Vec<u8> =
            (0..3).flat_map(|client| (0..RECORDS).map(move |record| client << 4 | record)).collect();
        assert_eq!(found, expected);
        file.close().await.expect("closed");
    });
}

/// A client that changes names knows the new attributes of the directory without a request, but not those of removed
/// directories.
pub fn a_client_knows_directories_after_its_own_changes(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let get = async |number| trees[1].inode(TreeOperation::Get { number }).await.expect("there");
        let known = |number| trees[0].changed_directory(number).map(|(directory, _)| directory);
        assert_eq!(known(FileNumber::ROOT), None, "nothing was changed");
        make_directory(&trees[0], "one").await.expect("made");
        make_directory(&trees[0], "two").await.expect("made");
        let look = |path| TreeOperation::Look { at: Location::of_path(path), follow: true };
        let [one, two] = ["one", "two"].map(|path| trees[0].inode(look(path)));
        let (one, two) = (one.await.expect("there").number, two.await.expect("there").number);
        make(&trees[0], "one/file", true).await.expect("made").close().await.expect("closed");
        rename(&trees[0], "one/file", "two/moved").await.expect("renamed");
        for number in [FileNumber::ROOT, one, two] {
            assert_eq!(known(number), Some(get(number).await));
        }
        assert_eq!(known(two).expect("known").size, 1);
        let private = AttributeChanges { mode: Some(0o700), ..AttributeChanges::default() };
        trees[0].perform(TreeOperation::Change { number: two, changes: private }).await.expect("changed");
        remove(&trees[0], "two/moved").await.expect("removed");
        assert_eq!(known(two).map(|two| (two.mode, two.size)), Some((0o700, 0)));
        let (at, what) = (Location::of_path("two"), RemovalTarget::Directory);
        trees[0].unname(TreeOperation::Remove { at, what }).await.expect("removed");
        assert_eq!(known(two), None);
        assert_eq!(known(FileNumber::ROOT), Some(get(FileNumber::ROOT).await));
        // The call also returns the age of the attributes, so that callers can limit it.
        let later = nodes[3].now() + Duration::from_millis(20);
        nodes[3].sleep_until(later).await;
        let (_, age) = trees[0].changed_directory(FileNumber::ROOT).expect("known");
        assert!(age >= Duration::from_millis(20), "{age}");
    });
}

/// Directory entries are prefetched when names are looked up in their order. Prefetched entries are used no longer than
/// the caller's limit, and a client sees its own changes at once.
pub fn lookups_in_order_prefetch_entries(testbed: &impl Testbed, base: Base) {
    const BELIEVED: Duration = Duration::from_millis(400);
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let name = |index: u32| format!("{index:02}");
        for index in 0..40 {
            make_directory(&trees[0], &name(index)).await.expect("made");
        }
        let at = |index| Location::of_path(name(index));
        let there = async |index| trees[0].inode(TreeOperation::Look { at: at(index), follow: false }).await;
        let look = async |index| trees[1].look(FileNumber::ROOT, name(index).into_bytes(), BELIEVED).await;
        let pause = async |time| nodes[4].sleep_until(nodes[4].now() + time).await;
        let private = AttributeChanges { mode: Some(0o700), ..AttributeChanges::default() };
        let change = async |tree: &Tree<_>, index| {
            let number = there(index).await.expect("there").number;
            tree.perform(TreeOperation::Change { number, changes: private }).await.expect("changed");
        };
        for index in 0..10 {
            assert_eq!(look(index).await.expect("there").0, there(index).await.expect("there"));
        }
        pause(Duration::from_millis(20)).await;
        let (inode, left) = look(10).await.expect("there");
        assert_eq!(inode, there(10).await.expect("there"));
        assert!(left < BELIEVED, "it was listed before: {left}");
        change(&trees[1], 11).await;
        let what = RemovalTarget::Directory;
        trees[1].unname(TreeOperation::Remove { at: at(12), what }).await.expect("removed");
        rename(&trees[1], "13", "14").await.expect("renamed");
        let at_inner = Location { base: there(15).await.expect("there").number, path: b"inner".to_vec() };
        let new = NewInode::Directory;
        let inner = TreeOperation::Make { at: at_inner, new, mode: 0o755, uid: 1, gid: 2, exclusive: true };
        trees[1].perform(inner).await.expect("made");
        change(&trees[0], 39).await;
        for index in 11..16 {
            match (look(index).await, there(index).await) {
                (Ok((inode, _)), Ok(there)) => assert_eq!(inode, there),
                (looked, there) => assert_eq!(looked.map(drop), there.map(drop)),
            }
        }
        pause(BELIEVED).await;
        assert_eq!(look(39).await.expect("there").0, there(39).await.expect("there"));
    });
}

/// An unlinked file stays available to all clients with the file open, and its contents are deleted at the last close.
/// The same holds for a replaced file.
pub fn an_unlinked_file_exists_until_its_last_close(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let data = contents(9 * BLOCK);
        for path in ["removed", "replaced"] {
            let file = make(&trees[0], path, true).await.expect("made");
            write(&file, 0, &data).await;
            file.close().await.expect("closed");
        }
        let removed = open(&trees[0], "removed").await.expect("opened");
        let replaced = open(&trees[1], "replaced").await.expect("opened");
        make(&trees[0], "new", true).await.expect("made").close().await.expect("closed");
        remove(&trees[1], "removed").await.expect("removed");
        rename(&trees[0], "new", "replaced").await.expect("renamed");
        assert!(is_refused(open(&trees[1], "removed").await, TreeRefusal::NotFound));
        assert_eq!(trees[0].remove_orphans().await, Ok(0), "both are open");
        write(&removed, BLOCK, b"still written to").await;
        removed.flush().await.expect("flushed");
        assert_eq!(read(&removed).await.len(), data.len());
        assert!(read(&replaced).await == data);
        assert_eq!(removed.attributes().await.expect("there").links, 0);
        let client = trees[0].cache().client().clone();
        assert_eq!(files(&client).await, 2);
        removed.close().await.expect("closed");
        trees[0].contents_removed().await;
        assert_eq!(files(&client).await, 1);
        replaced.close().await.expect("closed");
        trees[1].contents_removed().await;
        assert_eq!(files(&client).await, 0);
        assert_eq!(trees[0].remove_orphans().await, Ok(0), "nothing is left");
    });
}

/// A scan finds all deletable orphans, despite any number of open orphans. An orphan with contents on an unknown disk
/// is scanned once.
pub fn open_orphans_do_not_hide_deletable_ones(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let held = make(&trees[0], "held", true).await.expect("made");
        let other = make(&trees[0], "other", true).await.expect("made");
        let number = other.number();
        write(&other, 0, &contents(BLOCK)).await;
        other.close().await.expect("closed");
        for path in ["held", "other"] {
            let (at, what) = (Location::of_path(path), RemovalTarget::File);
            trees[0].perform(TreeOperation::Remove { at, what }).await.expect("removed");
        }
        let list = TreeOperation::ListOrphans { after: FileNumber(0), most: 1 };
        let TreeAnswer::Numbers(listed) = trees[0].perform(list).await.expect("listed") else { panic!() };
        assert_eq!(listed.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [number]);
        assert_eq!(trees[0].remove_orphans().await, Ok(1));
        held.close().await.expect("closed");
        trees[0].contents_removed().await;
        // List of disks with an unknown one.
        let disks = trees[0].cache().client().disks_by_identity().await.expect("known");
        let disks: Vec<u64> = disks.keys().copied().take(2).chain([4711]).collect();
        let list = TreeOperation::EnterDisks { disks };
        let TreeAnswer::Number(disks) = trees[0].perform(list).await.expect("entered") else { panic!() };
        let new = NewInode::File { striping: Striping::new(BLOCK, 3).expect("a striping"), disks };
        let at = Location::of_path("lost");
        let make = TreeOperation::Make { at, new, mode: 0o644, uid: 1, gid: 2, exclusive: true };
        trees[0].perform(make).await.expect("made");
        remove(&trees[0], "lost").await.expect("removed");
        trees[0].contents_removed().await;
        let metadata_server =
            nodes.iter().find(|node| node.node() == trees[0].metadata_server()).expect("one of them");
        let flushes = |tree: usize| {
            let (tree, before) = (trees[tree].clone(), metadata_server.faults().metadata_flushes.get());
            async move {
                assert_eq!(tree.remove_orphans().await, Ok(0), "it stays an orphan");
                metadata_server.faults().metadata_flushes.get() - before
            }
        };
        assert_eq!(flushes(0).await, 0, "this client has flushed already");
        assert_eq!((flushes(1).await, flushes(1).await), (1, 0), "then the other client has flushed, too");
    });
}

/// An open reports to the client if another client has the file open for writing.
pub fn an_open_reports_other_writers(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let open_for = async |client: usize, used| {
            let look = TreeOperation::Look { at: Location::of_path("file"), follow: true };
            trees[client].open_for(look, used).await.expect("opened")
        };
        let made = make(&trees[0], "file", true).await.expect("made");
        let own = open_for(0, OpenFor::Reading).await;
        assert!(!made.had_other_writers() && !own.had_other_writers());
        let other = open_for(1, OpenFor::Reading).await;
        assert!(other.had_other_writers() && !open_for(0, OpenFor::Writing).await.had_other_writers());
        nodes[3].net().give_up(trees[0].metadata_server(), "the network is broken");
        rest(&nodes[3]).await;
        assert!(
            open_for(1, OpenFor::Writing).await.had_other_writers(),
            "the first client has reported it again"
        );
        assert!(open_for(0, OpenFor::Reading).await.had_other_writers());
    });
}

/// Handles from concurrent opens of a file in one client see each other's writes.
pub fn concurrent_opens_return_the_same_file(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        make(&trees[0], "file", true).await.expect("made").close().await.expect("closed");
        // This client does not know the disks yet, so both opens wait for the list of disks.
        let (opening, opened) = (Tasks::default(), Rc::new(RefCell::new(Vec::new())));
        for _ in 0..2 {
            let (tree, opened) = (trees[1].clone(), opened.clone());
            opening.begin(&nodes[4], async move {
                let file = open(&tree, "file").await.expect("opened");
                opened.borrow_mut().push(file);
            });
        }
        opening.wait().await;
        let files = opened.take();
        write(&files[0], 0, &[1; 10]).await;
        assert_eq!(files[1].append(Payload::from(vec![2; 5])).await, Ok(10));
        assert_eq!(read(&files[0]).await, [[1; 5], [1; 5], [2; 5]].concat());
    });
}

/// A flush of a file waits for earlier writes, but not for an endless sequence of later writes.
pub fn a_flush_does_not_wait_for_later_writes(testbed: &impl Testbed, base: Base) {
    const ROUNDS: u64 = 2000;
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let file = make(&trees[0], "file", true).await.expect("made");
        let other = open(&trees[0], "file").await.expect("opened");
        write(&file, 7 * BLOCK, &[7; 10]).await;
        let (writing, ended) = (Tasks::default(), Rc::new(Cell::new(false)));
        let (has_begun, may_end) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        writing.begin(&nodes[3], {
            let (ended, has_begun, may_end) = (ended.clone(), has_begun.clone(), may_end.clone());
            async move {
                for round in 0..ROUNDS {
                    write(&other, round % 6 * BLOCK, &[1; BLOCK as usize]).await;
                    has_begun.set(round > 10);
                    if may_end.get() {
                        break;
                    }
                }
                ended.set(true);
            }
        });
        until(&nodes[3], || has_begun.get()).await;
        file.flush().await.expect("flushed");
        assert!(!ended.get(), "it is not waited for");
        let found = open(&trees[1], "file").await.expect("opened");
        let data = found.paged().read(7 * BLOCK, 10).await.expect("read");
        assert_eq!(data.to_vec(), Some(vec![7; 10]));
        may_end.set(true);
        writing.wait().await;
    });
}

/// If an older state of the metadata server's store is restored, names that reappear still have their contents. Neither
/// a client that had removed such a name nor the last close of the file deletes the contents. Later changes have other
/// version numbers than the lost changes.
pub fn restored_names_have_their_contents(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let metadata_server =
            nodes.iter().find(|node| node.node() == trees[0].metadata_server()).expect("one of them");
        let store = metadata_server.metadata().expect("it keeps names");
        for path in ["closed", "open"] {
            let file = make(&trees[0], path, true).await.expect("made");
            write(&file, 0, &contents(3 * BLOCK)).await;
            file.close().await.expect("closed");
        }
        let held = open(&trees[1], "open").await.expect("opened");
        let before = store.look(|t| Ok(Ok::<_, ()>(all_entries(t)?))).await.expect("read").expect("kept");
        let written = WrittenContents { end: 3 * BLOCK, stored_stripes: 3, bytes: 1 };
        let change = TreeOperation::Wrote { number: held.number(), written };
        let lost = trees[0].inode(change.clone()).await.expect("noted").version;
        for path in ["closed", "open"] {
            remove(&trees[0], path).await.expect("removed");
        }
        let put_back = move |t: &mut dyn Transaction| {
            all_entries(t)?.iter().try_for_each(|(key, _)| t.remove(key))?;
            before.iter().try_for_each(|(key, value)| t.put(key, value))?;
            Ok(Ok::<_, ()>(()))
        };
        store.transact(put_back).await.expect("room").expect("kept");
        metadata_server.faults().crash();
        // Test a client that knows of the restored state, and a client that does not.
        open(&trees[1], "closed").await.expect("it has its name again").close().await.expect("closed");
        held.close().await.expect("closed");
        for tree in &trees {
            tree.contents_removed().await;
        }
        for path in ["closed", "open"] {
            let file = open(&trees[1], path).await.expect("it has its name again");
            assert!(read(&file).await == contents(3 * BLOCK), "{path}");
        }
        assert_ne!(trees[0].inode(change).await.expect("noted").version, lost);
    });
}

fn all_entries(transaction: &mut dyn Transaction) -> machine::Result<Vec<MetadataEntry>> {
    transaction.range(b"", &[0xff; METADATA_KEY_BYTES_MAX], usize::MAX)
}

/// If files are removed while an I/O node is absent, their contents on that node are deleted when it returns; until
/// then the metadata server keeps a record. No contents without a name remain, and no other contents are lost.
pub fn contents_removed_while_an_io_node_is_away_are_deleted_later(testbed: &impl Testbed, base: Base) {
    run(testbed, 6, move |nodes| async move {
        let trees = trees(base, &nodes[..5]).await;
        for path in ["one", "other", "kept"] {
            let file = make(&trees[0], path, true).await.expect("made");
            write(&file, 0, &contents(9 * BLOCK)).await;
            file.close().await.expect("closed");
        }
        let client = trees[0].cache().client().clone();
        let away =
            client.io_nodes().iter().find(|node| **node != trees[0].metadata_server()).expect("another");
        // The client connects to all nodes except the absent one, like a command while one node does not answer.
        let there = client.io_nodes().iter().filter(|node| *node != away).copied().collect();
        let without = Client::connect(nodes[5].clone(), there, base.client()).await;
        let without = Tree::find(&cache(without.expect("connected"))).await.expect("asked").expect("found");
        for path in ["one", "other"] {
            remove(&without, path).await.expect("removed");
        }
        without.contents_removed().await;
        let listed = client.list_numbered().await.expect("listed");
        let on = |wanted| listed.iter().filter(|(node, _)| node == wanted).count();
        assert_eq!((on(away), listed.len()), (3, 3 + 2), "{listed:?}");
        assert_eq!(without.remove_orphans().await, Ok(0), "it is away still");
        assert_eq!(trees[0].remove_orphans().await, Ok(2), "it is back");
        assert_eq!(files(&client).await, 1);
        assert_eq!(trees[0].remove_orphans().await, Ok(0), "nothing is left");
        assert!(read(&open(&trees[0], "kept").await.expect("opened")).await == contents(9 * BLOCK));
    });
}

/// A missing disk does not hide the contents of others: a new client finds the namespace, reads and checks the other
/// files, and creates and removes files. Every failure names the I/O node of the missing disk.
pub fn a_missing_disk_does_not_hide_others(testbed: &impl Testbed, base: Base) {
    run(testbed, 6, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let tree = &trees(base, &nodes[..5]).await[0];
        let away = nodes[..3].iter().find(|node| node.node() != tree.metadata_server()).expect("another");
        let places = tree.cache().client().disks_by_identity().await.expect("they answer");
        let others = places.iter().filter(|(_, (node, _))| *node != away.node());
        let others = others.map(|(identity, _)| *identity).collect();
        let entered = tree.perform(TreeOperation::EnterDisks { disks: others }).await.expect("entered");
        let TreeAnswer::Number(others) = entered else { panic!("{entered:?}") };
        let mut objects = Vec::new();
        for (path, stripes, disks) in
            [("there", 3, tree.all_disks().await.expect("all")), ("beside", 2, others), ("kept", 2, others)]
        {
            let new = NewInode::File { striping: Striping::new(BLOCK, stripes).expect("a striping"), disks };
            let at = Location::of_path(path);
            let make = TreeOperation::Make { at, new, mode: 0o644, uid: 1, gid: 2, exclusive: true };
            let file = tree.open(make).await.expect("made");
            write(&file, 0, &contents(9 * BLOCK)).await;
            objects.push(FileId(file.known().number.0));
            file.close().await.expect("closed");
        }
        tree.sync().await.expect("on the media");
        away.faults().gone.set(true);

        let there = nodes[..3].iter().map(|node| node.node()).collect();
        let client = Client::connect(nodes[5].clone(), there, base.client()).await.expect("they answer");
        let place = (away.node(), 0);
        assert_eq!(client.failing_disks().await.into_keys().collect::<Vec<_>>(), [place]);
        let later = Tree::find(&cache(client.clone())).await.expect("asked").expect("found");
        let complete = open(&later, "beside").await.expect("opened");
        assert!(read(&complete).await == contents(9 * BLOCK));
        complete.close().await.expect("closed");
        let hurt = open(&later, "there").await.expect("names are elsewhere");
        hurt.paged().read(0, 9 * BLOCK).await.expect_err("a part of it is missing");
        let name_the_node =
            |failures: &[Error]| failures.iter().all(|error| error.node() == Some(away.node()));
        let listed = client.list_numbered_partly().await;
        assert!(listed.failures.len() == 1 && name_the_node(&listed.failures), "{:?}", listed.failures);
        assert_eq!(listed.found.len(), 3 * 2);
        let check = client.check(&objects, None, |_| ()).await.expect("checked");
        assert!(check.failures.len() == 1 && name_the_node(&check.failures), "{:?}", check.failures);
        assert_eq!((check.files.len(), check.bytes), (3, 6 * BLOCK + 2 * 9 * BLOCK));
        assert!(check.files.values().all(|file| file.findings.is_empty()), "{:?}", check.files);

        let new = make_on(&later, "new", 2).await.expect("made on the others");
        write(&new, 0, &contents(9 * BLOCK)).await;
        new.close().await.expect("closed");
        later.sync().await.expect("on the media");
        hurt.close().await.expect("closed");
        for path in ["there", "beside"] {
            remove(&later, path).await.expect("removed");
        }
        later.contents_removed().await;
        assert_eq!(client.list_numbered_partly().await.found.len(), 2 * 2);
        assert_eq!(later.remove_orphans().await, Ok(0), "it is still missing");
        away.faults().gone.set(false);
        assert_eq!(tree.remove_orphans().await, Ok(1), "it is back");
        for path in ["kept", "new"] {
            assert!(read(&open(tree, path).await.expect("opened")).await == contents(9 * BLOCK));
        }
        assert_eq!(files(&client).await, 2);
    });
}

/// An abandoned file is removed only if no client has it open.
pub fn an_open_file_is_not_removed_as_abandoned(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let file = make(&trees[0], "file", true).await.expect("made");
        let (at, what) = (Location::of_path("file"), RemovalTarget::AbandonedFile);
        let abandoned = TreeOperation::Remove { at, what };
        for tree in &trees {
            assert!(is_refused(tree.unname(abandoned.clone()).await, TreeRefusal::Busy));
        }
        write(&file, 0, b"something").await;
        file.close().await.expect("closed");
        assert_eq!(trees[1].unname(abandoned.clone()).await, Ok(()));
        assert!(is_refused(trees[1].unname(abandoned).await, TreeRefusal::NotFound));
        let at = Location::of_path("directory");
        make_directory(&trees[0], "directory").await.expect("made");
        let directory = TreeOperation::Remove { at, what };
        assert!(is_refused(trees[1].unname(directory).await, TreeRefusal::IsDirectory));
    });
}

/// Returns the number of numbered files with contents.
pub(super) async fn files<M: Machine>(client: &Client<M>) -> usize {
    let stripes = client.list_numbered().await.expect("listed");
    let mut files: Vec<_> = stripes.iter().map(|(_, stripe)| stripe.file).collect();
    files.sort_unstable();
    files.dedup();
    files.len()
}

/// Attributes have the values that were set last, and a later close of the file does not change times that were set.
pub fn attributes_have_the_last_set_values(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let file = make(&trees[0], "file", true).await.expect("made");
        let made = file.known();
        write(&file, 0, b"something").await;
        let modified = Some(namespace::SetTime::At(1_000_000_007));
        let changes = AttributeChanges { mode: Some(0o600), uid: Some(77), modified, ..Default::default() };
        let changed = file.change(changes).await.expect("changed");
        assert_eq!((changed.mode, changed.uid, changed.gid, changed.size), (0o600, 77, 2, 9));
        assert!(changed.version > made.version, "it has been written to");
        file.close().await.expect("closed");
        let other = open(&trees[1], "file").await.expect("opened");
        assert_eq!((other.known().modified, other.known().mode), (1_000_000_007, 0o600));
        let most = other.set_len(layout::FILE_BYTES_MAX + 1).await;
        assert!(is_refused(most, TreeRefusal::FileTooLarge));
        other.close().await.expect("closed");
        assert!(is_refused(open(&trees[1], "file/x").await, TreeRefusal::NotDirectory));
        assert!(is_refused(open(&trees[1], "/").await, TreeRefusal::IsDirectory));
    });
}

/// A too long name, path, target or attribute is rejected by the call, without other effects.
pub fn too_long_names_and_values_are_rejected(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let file = make(&trees[0], "file", true).await.expect("made");
        let number = file.number();
        // Lengths beyond the limit of the namespace: below, near, and beyond the limit of a message's header.
        for bytes in [40_000, 65_490, 65_530, 65_536, 1 << 20] {
            let (long, path) = (vec![b'x'; bytes], Location::of_path("x".repeat(bytes)));
            let (at, mode) = (path.clone(), SetValue::Any);
            let name = b"user.a".to_vec();
            let new = NewInode::Link { target: long.clone() };
            let link = TreeOperation::Make {
                at: Location::of_path("l"),
                new,
                mode: 0,
                uid: 0,
                gid: 0,
                exclusive: true,
            };
            let rename =
                TreeOperation::Rename { from: Location::of_path("file"), to: path, mode: RenameMode::Keep };
            let too_long = [
                TreeOperation::Look { at: at.clone(), follow: true },
                TreeOperation::Remove { at, what: RemovalTarget::File },
                TreeOperation::GetExtended { number, name: long.clone() },
                link,
                rename,
            ];
            for operation in too_long {
                let refused = trees[0].perform(operation.clone()).await;
                assert!(
                    is_refused(refused, TreeRefusal::NameTooLong),
                    "{} of {bytes} bytes",
                    operation.name()
                );
            }
            let value = TreeOperation::SetExtended { number, name, value: long, mode };
            assert!(is_refused(trees[0].perform(value).await, TreeRefusal::TooLarge), "{bytes}");
            // The namespace has no limit for this list, but the list does not fit into a message.
            let disks = TreeOperation::EnterDisks { disks: vec![u64::MAX; bytes] };
            trees[0].perform(disks).await.expect_err("it does not fit into a message");
        }
        write(&file, 0, &contents(BLOCK)).await;
        file.close().await.expect("closed");
        assert_eq!(read(&open(&trees[1], "file").await.expect("opened")).await, contents(BLOCK));
    });
}

/// A client that has opened the stripes of a file reads writes of other clients without opening the stripes again.
pub fn open_stripes_are_not_reopened_after_writes_of_others(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let writer = make(&trees[0], "shared", true).await.expect("made");
        let reader = open(&trees[1], "shared").await.expect("opened");
        let mut noted = Vec::new();
        for round in 0..4 {
            let data = vec![round; 3 * BLOCK as usize];
            write(&writer, 0, &data).await;
            writer.flush().await.expect("flushed");
            reader.attributes().await.expect("the metadata server answers");
            assert!(read(&reader).await == data);
            if round == 0 {
                noted = nodes[..3].iter().map(noted_from_now).collect();
            }
        }
        assert_eq!(reader.changed_by_others(), 4);
        let attached = noted.iter().map(|ring| begun(&ring.borrow(), "serve: attach")).sum::<usize>();
        assert_eq!(attached, 0);
    });
}

/// Collective writes of a team are visible to all its members, through any page cache, and to later opens; pages cached
/// by a member are sent first.
pub fn collective_writes_are_visible_to_all_members(testbed: &impl Testbed, base: Base) {
    run(testbed, 6, move |nodes| async move {
        let (trees, tasks) = (trees(base, &nodes).await, Tasks::default());
        make(&trees[0], "shared", true).await.expect("made").close().await.expect("closed");
        for (rank, tree) in (0..3).zip(trees.iter().cloned()) {
            tasks.begin(&nodes[3 + rank as usize], async move {
                let file = open(&tree, "shared").await.expect("opened");
                let team =
                    TeamMembership::form(tree.cache().client(), "writers", rank, 3).await.expect("formed");
                let settings = SelectedSettings {
                    method: CollectiveMethod::DiskDirected { presort: true },
                    queued: true,
                    to_media: false,
                };
                let (records, mut expected) = (20, Vec::new());
                for round in 1..4 {
                    // The page cache has unsent data of this member. One member writes a record less, so that the last
                    // record of the file is missing.
                    write(&file, 100 + u64::from(rank), &[round]).await;
                    let count = if rank == 2 { records - 1 } else { records };
                    let extent = Extent::new(300 + 50 * u64::from(rank), 50);
                    let own = Selection::vector(extent, count, 150).expect("a vector");
                    let memory = Memory::real(vec![round * 10 + rank as u8; own.bytes() as usize]);
                    let turn = team.turn(team.next_turn(), TeamStep::write(settings.method)).await;
                    file.write_selected(Some(&turn), &own, &memory, settings).await.expect("written");
                    drop(turn);
                    expected = vec![0; 300 + 150 * records as usize - 50];
                    expected[100..103].fill(round);
                    for (index, record) in expected[300..].chunks_mut(50).enumerate() {
                        record.fill(round * 10 + (index % 3) as u8);
                    }
                    assert_eq!(file.known().size, expected.len() as u64);
                    assert!(read(&file).await == expected, "round {round} at rank {rank}");
                    // Read beyond the end of the file.
                    let all = Selection::contiguous(Extent::new(50, 9 * BLOCK)).expect("an extent");
                    let memory = Memory::real(vec![0; 9 * BLOCK as usize]);
                    let turn = team.turn(team.next_turn(), TeamStep::read(settings.method)).await;
                    let found = file.read_selected(Some(&turn), &all, &memory, settings).await.expect("read");
                    let bytes = super::bytes_of(memory);
                    assert!(bytes[..found as usize] == expected[50..], "round {round} at rank {rank}");
                }
                file.close().await.expect("closed");
                let file = open(&tree, "shared").await.expect("opened");
                assert!(read(&file).await == expected);
                // Extend the file by an independent write.
                let own = Selection::contiguous(Extent::new(4000 + u64::from(rank), 1)).expect("a byte");
                let memory = Memory::real(vec![7]);
                file.write_selected(None, &own, &memory, settings).await.expect("written");
                assert_eq!(read(&file).await[4000 + rank as usize], 7);
                file.close().await.expect("closed");
            });
        }
        tasks.wait().await;
    });
}
