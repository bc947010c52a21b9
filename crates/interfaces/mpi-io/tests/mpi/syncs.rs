//! Data that one process has synced are visible to other clients and a mount while the file is open. The mount of the
//! same host shows a change as soon as the call that made it returns.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::testbed::{MPICH, Mpi, OPEN_MPI, Testbed, succeed};

/// Numbers per process, as in the program.
const COUNT: i32 = 5000;

const PROCESSES: i32 = 3;

/// Limit of the time until the program calls sync.
const BOUND: Duration = Duration::from_secs(40);

fn seen(mpi: &'static Mpi, hints: &str) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile("held", &[]);
    let directory = testbed.agents.path("local files");
    fs::create_dir(&directory).expect("a directory");
    let mut launched = testbed.launch(PROCESSES as u32, &program);
    let mut running = launched.env("STARFISH_MPI_HINTS", hints).arg(&directory).spawn().expect("it is there");
    let begun = Instant::now();
    while !directory.join("synced").exists() {
        assert!(begun.elapsed() < BOUND && running.try_wait().expect("ours").is_none(), "it does not sync");
        thread::sleep(Duration::from_millis(5));
    }
    let expected: Vec<u8> = (0..COUNT * PROCESSES).flat_map(i32::to_ne_bytes).collect();
    assert!(testbed.contents(&testbed.agents.session(), "mpi/held") == expected, "another client");
    if let Some(mounted) = testbed.mount() {
        assert!(fs::read(mounted.path.join("mpi/held")).expect("it is there") == expected, "the mount");
        mounted.end();
    }
    fs::write(directory.join("seen"), "").expect("room");
    assert!(running.wait().expect("ours").success());
}

#[test]
fn other_clients_see_synced_data_with_mpich() {
    seen(&MPICH, "");
}

#[test]
fn other_clients_see_data_synced_through_write_caches() {
    seen(&MPICH, "starfish_method=write-cached");
}

#[test]
fn other_clients_see_synced_data_with_open_mpi() {
    seen(&OPEN_MPI, "starfish_method=write-cached");
}

#[test]
fn a_mount_shows_changes_of_mpi_calls_at_once() {
    let Some(testbed) = Testbed::new(&MPICH) else { return };
    let Some(mounted) = testbed.mount() else { return };
    let program = testbed.compile("renewed", &[]);
    succeed(testbed.launch(1, &program).arg(mounted.path.join("mpi/renewed")));
    mounted.end();
}
