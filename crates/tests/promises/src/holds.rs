//! Promises about unlinked open files when connections to the metadata server break.

use fs::{Client, IoNodeSettings, OpenTreeFile, Threads, Tree};
use machine::conformance::Testbed;
use machine::{Duration, Machine, Net};

use super::faulty::Faulty;
use super::tasks::{Tasks, rest};
use super::trees::{cache, files, make, open, read, remove, rename, trees, write};
use super::{BLOCK, Base, contents, run, small};

/// Drops the cached data of a file, and its open stripes.
fn forget<M: Machine>(file: &OpenTreeFile<M>) {
    file.paged().file().refresh();
    file.paged().note_written_past(file.paged().bytes());
}

/// An unlinked open file survives a broken connection of its client to the metadata server: while the client is idle,
/// when another client removes orphans, and when the client closes one of several handles. It is deleted with the last
/// close.
pub fn an_unlinked_open_file_outlives_a_broken_connection(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let metadata_server =
            nodes.iter().find(|node| node.node() == trees[0].metadata_server()).expect("one of them");
        let break_connection = || nodes[3].net().give_up(metadata_server.node(), "the network is broken");
        let data = contents(9 * BLOCK);
        let kept = make(&trees[0], "file", true).await.expect("made");
        write(&kept, 0, &data).await;
        kept.flush().await.expect("flushed");
        let other = open(&trees[0], "file").await.expect("opened");
        let third = open(&trees[0], "file").await.expect("opened");
        remove(&trees[1], "file").await.expect("removed");
        let client = trees[1].cache().client().clone();
        let is_whole = async || {
            forget(&kept);
            files(&client).await == 1 && read(&kept).await == data
        };
        break_connection();
        rest(&nodes[3]).await;
        assert_eq!(trees[1].remove_orphans().await, Ok(0), "it is open still");
        assert!(is_whole().await);
        // The metadata server notices the disconnection first, and then the close of the file.
        break_connection();
        other.close().await.expect("closed");
        trees[0].contents_removed().await;
        assert!(is_whole().await);
        break_connection();
        write(&third, 0, &data[..10]).await;
        third.close().await.expect("closed");
        trees[0].contents_removed().await;
        assert!(is_whole().await);
        kept.close().await.expect("closed");
        trees[0].contents_removed().await;
        assert_eq!(files(&client).await, 0);
    });
}

/// The metadata server has restarted, and a client with open files has not noticed this yet. Another client removes and
/// replaces these files: they survive for the first client. Files created after the restart are deleted at once, and
/// all others after the metadata server has waited for clients that may have the files open.
pub fn open_files_outlive_a_restart_of_the_metadata_server(testbed: &impl Testbed, base: Base) {
    run(testbed, 6, move |nodes| async move {
        let tree = trees(base, &nodes[..4]).await.remove(0);
        let mut kept = Vec::new();
        for name in ["removed", "replaced", "other"] {
            let file = make(&tree, name, true).await.expect("made");
            write(&file, 0, &contents(3 * BLOCK)).await;
            file.sync().await.expect("on the media");
            kept.push(file);
        }
        let (metadata_server, mut others) =
            nodes[..3].iter().partition::<Vec<_>, _>(|node| node.node() == tree.metadata_server());
        metadata_server[0].net().close();
        rest(&nodes[3]).await;
        let successor = Faulty::with_disks_of(nodes[4].clone(), &[metadata_server[0].clone()]);
        let settings = IoNodeSettings { incarnation: 1, ..small(base, Threads::Pool(4)) };
        nodes[4].spawn("I/O node", fs::serve(successor.clone(), settings));
        others.push(&nodes[4]);
        let names = others.iter().map(|node| node.node()).collect();
        let client = Client::connect(nodes[5].clone(), names, base.client()).await.expect("they answer");
        let tree = Tree::find(&cache(client.clone())).await.expect("they answer").expect("it exists");
        remove(&tree, "removed").await.expect("removed");
        rename(&tree, "other", "replaced").await.expect("replaced");
        let new = make(&tree, "new", true).await.expect("made");
        write(&new, 0, &contents(BLOCK)).await;
        new.close().await.expect("closed");
        tree.contents_removed().await;
        assert_eq!(files(&client).await, 4);
        remove(&tree, "new").await.expect("removed");
        tree.contents_removed().await;
        assert_eq!((tree.remove_orphans().await, files(&client).await), (Ok(0), 3));
        let is_read = async |file: &OpenTreeFile<_>| {
            let mut blocks = 0;
            for block in 0..3 {
                blocks += usize::from(file.paged().read(block * BLOCK, BLOCK).await.is_ok());
            }
            blocks
        };
        for file in &kept {
            forget(file);
            assert_eq!(is_read(file).await, 2, "the blocks of the other nodes exist");
        }
        successor.faults().jumped.set(Duration::from_secs(60));
        assert_eq!((tree.remove_orphans().await, files(&client).await), (Ok(2), 1));
    });
}

/// If the connection breaks during an open, the first request leaves no reference behind: when the client has closed
/// the file over the next connection, and the file is removed, its contents are deleted.
pub fn an_open_over_a_broken_connection_leaves_no_reference(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let metadata_server =
            nodes.iter().find(|node| node.node() == trees[0].metadata_server()).expect("one of them");
        let made = make(&trees[1], "file", true).await.expect("made");
        write(&made, 0, &contents(BLOCK)).await;
        made.close().await.expect("closed");
        metadata_server.faults().hold();
        let (opening, tree) = (Tasks::default(), trees[0].clone());
        opening.begin(&nodes[3], async move {
            let opened = open(&tree, "file").await.expect("opened over the next connection");
            opened.close().await.expect("closed");
        });
        rest(&nodes[3]).await;
        nodes[3].net().give_up(metadata_server.node(), "the network is broken");
        rest(&nodes[3]).await;
        metadata_server.faults().release();
        opening.wait().await;
        remove(&trees[1], "file").await.expect("removed");
        trees[1].contents_removed().await;
        assert_eq!(files(trees[1].cache().client()).await, 0);
    });
}
