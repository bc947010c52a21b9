//! Promises about locks.

use fs::{FailureKind, LockMode, LockRange, SelectedSettings, Tree};
use layout::{Extent, Selection};
use machine::conformance::Testbed;
use machine::{Duration, Machine, Memory, Net};

use super::faulty::Faulty;
use super::tasks::Tasks;
use super::trees::{make, open, read, trees, write};
use super::{Base, run};

/// Time, with a margin, after which the locks of a killed client no longer block others.
const LONG: Duration = Duration::from_secs(6);

async fn wait<M: Machine>(node: &M, time: Duration) {
    node.sleep_until(node.now() + time).await;
}

/// Increments of a shared number by several clients under a lock are never lost. Parts of a file can be locked
/// separately, shared locks are compatible, and owners within one client exclude each other.
pub fn locks_exclude_others(testbed: &impl Testbed, base: Base) {
    run(testbed, 6, move |nodes| async move {
        const TIMES: u8 = 8;
        let trees = trees(base, &nodes).await;
        let file = make(&trees[0], "number", true).await.expect("made");
        write(&file, 0, &[0]).await;
        file.close().await.expect("closed");
        let tasks = Tasks::default();
        for (client, tree) in trees.iter().cloned().enumerate() {
            let node = nodes[3 + client].clone();
            tasks.begin(&node.clone(), async move {
                let file = open(&tree, "number").await.expect("opened");
                for _ in 0..TIMES {
                    while let Some(held) = tree
                        .lock(file.number(), 1, LockRange::WHOLE, LockMode::Exclusive)
                        .await
                        .expect("answered")
                    {
                        assert_eq!((held.mode, held.owner), (LockMode::Exclusive, None));
                        wait(&node, Duration::from_millis(1)).await;
                    }
                    tree.check_locks(file.number()).await.expect("it has it");
                    file.attributes().await.expect("known");
                    let number = read(&file).await[0];
                    write(&file, 0, &[number + 1]).await;
                    file.flush().await.expect("flushed");
                    tree.unlock(file.number(), 1, LockRange::WHOLE).await.expect("unlocked");
                }
                file.close().await.expect("closed");
            });
        }
        tasks.wait().await;
        let file = open(&trees[0], "number").await.expect("opened");
        assert_eq!(read(&file).await, [3 * TIMES]);
        let (one, other, number) = (&trees[0], &trees[1], file.number());
        let others = open(other, "number").await.expect("opened");
        let part = |first, last| LockRange { first, last };
        let (shared, exclusive) = (LockMode::Shared, LockMode::Exclusive);
        assert_eq!(one.lock(number, 1, part(0, 9), exclusive).await, Ok(None));
        assert_eq!(other.lock(number, 1, part(10, 19), exclusive).await, Ok(None));
        let held = other.lock(number, 1, part(9, 19), shared).await.expect("answered").expect("it is held");
        assert_eq!((held.range, held.mode), (part(0, 9), exclusive));
        let own = one.who_locks(number, 2, part(0, 0), shared).await.expect("answered").expect("it is held");
        assert_eq!(own.owner, Some(1));
        assert_eq!(one.lock(number, 1, part(0, 9), shared).await, Ok(None), "weaker now");
        assert_eq!(other.lock(number, 2, part(5, 9), shared).await, Ok(None));
        assert!(one.lock(number, 1, part(0, 9), exclusive).await.expect("answered").is_some());
        other.unlock(number, 2, LockRange::WHOLE).await.expect("unlocked");
        assert_eq!(one.lock(number, 1, part(0, 9), exclusive).await, Ok(None));
        // A lock lasts as long as its client is connected.
        wait(&nodes[3], LONG).await;
        assert!(other.lock(number, 1, part(0, 0), shared).await.expect("answered").is_some());
        assert_eq!(one.check_locks(number).await, Ok(()));
        one.unlock(number, 1, LockRange::WHOLE).await.expect("unlocked");
        other.unlock(number, 1, LockRange::WHOLE).await.expect("unlocked");
        assert_eq!(one.lock(number, 7, LockRange::WHOLE, exclusive).await, Ok(None), "all is free");
        one.unlock(number, 7, LockRange::WHOLE).await.expect("unlocked");
        others.close().await.expect("closed");
    });
}

/// Locks of a disconnected client become available to others a little later.
pub fn locks_expire_after_their_client_disconnects(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let trees = trees(base, &nodes).await;
        let file = make(&trees[0], "file", true).await.expect("made");
        let (number, exclusive) = (file.number(), LockMode::Exclusive);
        assert_eq!(trees[0].lock(number, 1, LockRange::WHOLE, exclusive).await, Ok(None));
        let others = open(&trees[1], "file").await.expect("opened");
        nodes[3].net().close();
        let taken = trees[1].lock(number, 1, LockRange::WHOLE, exclusive).await;
        assert!(taken.expect("answered").is_some(), "the other may still be writing");
        wait(&nodes[4], LONG).await;
        assert_eq!(trees[1].lock(number, 1, LockRange::WHOLE, exclusive).await, Ok(None));
        trees[1].unlock(number, 1, LockRange::WHOLE).await.expect("unlocked");
        others.close().await.expect("closed");
    });
}

/// Ends the lease of a client that still relies on it: the clock of the metadata server jumps.
async fn end_lease_unnoticed<M: Machine>(client: &Tree<Faulty<M>>, nodes: &[Faulty<M>]) {
    // The client has renewed its lease, and renews it again in a second.
    wait(&nodes[3], Duration::from_millis(100)).await;
    let metadata_server = nodes.iter().find(|node| node.node() == client.metadata_server());
    metadata_server.expect("one of them").faults().jumped.set(LONG);
}

/// Data written under a lock that has ended are rejected when they arrive late: their client was delayed or
/// disconnected, and another one has the lock.
pub fn writes_under_a_lost_lock_are_rejected(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let (one, other) = (&trees[0], &trees[1]);
        let file = make(one, "file", true).await.expect("made");
        write(&file, 0, &[1; 10]).await;
        file.flush().await.expect("flushed");
        let (number, exclusive) = (file.number(), LockMode::Exclusive);
        assert_eq!(one.lock(number, 1, LockRange::WHOLE, exclusive).await, Ok(None));
        write(&file, 0, &[2; 30]).await;
        end_lease_unnoticed(one, &nodes).await;
        let others = open(other, "file").await.expect("opened");
        assert_eq!(other.lock(number, 1, LockRange::WHOLE, exclusive).await, Ok(None));
        assert_eq!(read(&others).await, [1; 10]);
        file.flush().await.expect_err("another client has the lock");
        write(&others, 0, &[3; 10]).await;
        others.flush().await.expect("flushed");
        other.unlock(number, 1, LockRange::WHOLE).await.expect("unlocked");
        one.unlock(number, 1, LockRange::WHOLE).await.expect("it has no lock left");
        file.flush().await.expect("it has got the error, and nothing is left to flush");
        // The client may continue like any other.
        assert_eq!(one.lock(number, 1, LockRange::WHOLE, exclusive).await, Ok(None));
        file.attributes().await.expect("known");
        assert_eq!(read(&file).await, [3; 10]);
        write(&file, 0, &[4; 10]).await;
        file.flush().await.expect("flushed");
        one.unlock(number, 1, LockRange::WHOLE).await.expect("unlocked");
        others.attributes().await.expect("known");
        assert_eq!(read(&others).await, [4; 10]);
    });
}

/// A strided write under a lock that has ended changes nothing.
pub fn a_strided_write_under_a_lost_lock_is_rejected(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let trees = trees(base, &nodes).await;
        let (one, other) = (&trees[0], &trees[1]);
        let file = make(one, "file", true).await.expect("made");
        write(&file, 0, &[1; 10]).await;
        file.flush().await.expect("flushed");
        let (number, exclusive) = (file.number(), LockMode::Exclusive);
        let selection = Selection::vector(Extent::new(1, 1), 3, 20).expect("within a file");
        let strided = async |value| {
            let (memory, settings) = (Memory::real(vec![value; 3]), SelectedSettings::default());
            file.write_selected(None, &selection, &memory, settings).await
        };
        assert_eq!(one.lock(number, 1, LockRange::WHOLE, exclusive).await, Ok(None));
        end_lease_unnoticed(one, &nodes).await;
        let others = open(other, "file").await.expect("opened");
        assert_eq!(other.lock(number, 1, LockRange::WHOLE, exclusive).await, Ok(None));
        let rejected = strided(2).await.expect_err("another client has the lock");
        assert!(rejected.is_remote(FailureKind::Fenced), "{rejected}");
        others.attributes().await.expect("known");
        assert_eq!(read(&others).await, [1; 10]);
        other.unlock(number, 1, LockRange::WHOLE).await.expect("unlocked");
        one.unlock(number, 1, LockRange::WHOLE).await.expect("it has no lock left");
        assert_eq!(one.lock(number, 1, LockRange::WHOLE, exclusive).await, Ok(None));
        strided(3).await.expect("a new lock");
        one.unlock(number, 1, LockRange::WHOLE).await.expect("unlocked");
        others.attributes().await.expect("known");
        assert_eq!(read(&others).await[..3], [1, 3, 1]);
    });
}
