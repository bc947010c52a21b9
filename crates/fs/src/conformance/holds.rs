//! What holds of files without names that somebody has open when connections to the keeper break.

use machine::conformance::Testbed;
use machine::{Machine, Net};

use super::faulty::Faulty;
use super::tasks::{Tasks, rest};
use super::trees::{files, make, open, read, remove, trees, write};
use super::{BLOCK, Base, contents, run};

/// A file without a name that a client has open stays when the client's connection to the keeper breaks: while it does
/// nothing, when another client removes what nobody has open, and when it closes one of several handles. It goes with
/// the last.
pub fn an_open_file_outlives_a_broken_connection(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let keeper = nodes.iter().find(|node| node.node() == trees[0].keeper()).expect("one of them");
        let break_connection = || nodes[3].net().give_up(keeper.node(), "the network is broken");
        let data = contents(9 * BLOCK);
        let kept = make(&trees[0], "file", true).await.expect("made");
        write(&kept, 0, &data).await;
        kept.flush().await.expect("flushed");
        let other = open(&trees[0], "file").await.expect("opened");
        let third = open(&trees[0], "file").await.expect("opened");
        remove(&trees[1], "file").await.expect("removed");
        let client = trees[1].cache().client().clone();
        let is_whole = async || {
            kept.paged().refresh().await.expect("it is there");
            files(&client).await == 1 && read(&kept).await == data
        };
        break_connection();
        rest(&nodes[3]).await;
        assert_eq!(trees[1].remove_doomed().await, Ok(0), "it is open still");
        assert!(is_whole().await);
        // The keeper hears that the client is gone, and then that it closes the file.
        break_connection();
        other.close().await.expect("closed");
        trees[0].contents_gone().await;
        assert!(is_whole().await);
        break_connection();
        write(&third, 0, &data[..10]).await;
        third.close().await.expect("closed");
        trees[0].contents_gone().await;
        assert!(is_whole().await);
        kept.close().await.expect("closed");
        trees[0].contents_gone().await;
        assert_eq!(files(&client).await, 0);
    });
}

/// An open over a connection that breaks meanwhile holds nothing: when the file has been closed by who has opened it
/// over the next connection, and is removed, its contents go.
pub fn an_open_over_a_broken_connection_holds_nothing(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let keeper = nodes.iter().find(|node| node.node() == trees[0].keeper()).expect("one of them");
        let made = make(&trees[1], "file", true).await.expect("made");
        write(&made, 0, &contents(BLOCK)).await;
        made.close().await.expect("closed");
        keeper.faults().hold();
        let (opening, tree) = (Tasks::default(), trees[0].clone());
        opening.begin(&nodes[3], async move {
            let opened = open(&tree, "file").await.expect("opened over the next connection");
            opened.close().await.expect("closed");
        });
        rest(&nodes[3]).await;
        nodes[3].net().give_up(keeper.node(), "the network is broken");
        rest(&nodes[3]).await;
        keeper.faults().release();
        opening.wait().await;
        remove(&trees[1], "file").await.expect("removed");
        trees[1].contents_gone().await;
        assert_eq!(files(trees[1].cache().client()).await, 0);
    });
}
