//! The lock of atomic mode excludes programs on mounts, and no call releases a lock that it does not hold.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use namespace::FileNumber;
use node::{LockMode, LockRange, OpenOptions, Session, Tree};

use crate::testbed::{MPICH, Mpi, OPEN_MPI, Testbed};

/// Limit of the time until the program makes its call.
const BOUND: Duration = Duration::from_secs(40);

/// Long enough for a call that does not block.
const MEANWHILE: Duration = Duration::from_millis(500);

/// Locks or unlocks a file, as a mount does.
fn lock(tree: &Tree, number: FileNumber, locks: bool) {
    let held = tree.run("mpi/locked", move |node, what| async move {
        let (tree, range) = (node.tree(), LockRange::WHOLE);
        match locks {
            true => node.explained(&what, tree.lock(number, 1, range, LockMode::Exclusive).await),
            false => node.explained(&what, tree.unlock(number, 1, range).await.map(|()| None)),
        }
    });
    assert_eq!(held.wait().expect("the agent answers"), None, "another owner holds it");
}

fn locked(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile("locked", &[]);
    let directory = testbed.agents.path("local files");
    fs::create_dir(&directory).expect("a directory");
    let session = Session::start(testbed.agents.settings()).expect("they are there");
    let file = session.open("mpi/locked", OpenOptions::new().write(true).create(true)).expect("a new file");
    file.write_at(0, *b"before").expect("room");
    file.send().expect("agents");
    let (number, tree) = (file.number().expect("it is open"), session.tree());
    lock(&tree, number, true);
    let mut running = testbed.launch(1, &program).arg(&directory).spawn().expect("an MPI");
    let begun = Instant::now();
    while !directory.join("begun").exists() {
        assert!(begun.elapsed() < BOUND && running.try_wait().expect("ours").is_none(), "it does not begin");
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(MEANWHILE);
    assert!(!directory.join("written").exists(), "it does not wait for the lock");
    lock(&tree, number, false);
    assert!(running.wait().expect("ours").success());
    assert_eq!(testbed.contents(&testbed.agents.session(), "mpi/locked"), b"atomic");
    lock(&tree, number, true);
    lock(&tree, number, false);
}

#[test]
fn atomic_calls_wait_for_locks_of_others_with_mpich() {
    locked(&MPICH);
}

#[test]
fn atomic_calls_wait_for_locks_of_others_with_open_mpi() {
    locked(&OPEN_MPI);
}
