//! Measures the number of small files without names that a client creates per second.
//!
//! Covers: agents on separate threads, files by number, the page cache. Scenario: four agents, each with a disk. A
//! client creates files of one block, several at a time: it opens each by its number, writes to it and closes it, which
//! sends the data and flushes nothing. Then it reads all of them back and removes them. Prints the number of files per
//! second.
//!
//!
//! ```text
//! cargo run --release -p node --example small_files -- [files] [at a time] [bytes] [directory] [driver]
//! cargo run --release -p node --example small_files -- 20000 8 4096 /dev/shm polling
//! ```

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Instant;

use fs::{Client, ClientSettings, FileId, IoNodeSettings, NumberedFile, PageCache, PageCacheSettings, serve};
use layout::Striping;
use machine::{InFlight, Machine, NodeId, Payload, Result};
use real::{DiskSettings, Driver, Keys, Peer, RealMachine, Settings};

const AGENTS: u64 = 4;
const CLIENT: NodeId = NodeId(100);
const BLOCK: u64 = 64 * 1024;

#[derive(Clone, Copy)]
struct Plan {
    files: u64,
    at_a_time: u64,
    bytes: u64,
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let mut number = |default| words.next().map_or(default, |word| word.parse().expect("a number"));
    let plan = Plan { files: number(5000), at_a_time: number(8), bytes: number(4096) };
    let place = words.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let driver = words.next().map_or(Driver::Automatic, |word| word.parse().expect("a driver"));

    let keys = Keys::draw()?;
    let directory = tempfile::tempdir_in(place).expect("a temporary directory");
    let (addresses, listening) = mpsc::channel();
    let agents: Vec<_> = (1..=AGENTS)
        .map(|node| {
            let (addresses, path) = (addresses.clone(), directory.path().join(node.to_string()));
            let keys = keys.clone();
            std::thread::spawn(move || {
                let (listen, disks) = (Some(([127, 0, 0, 1], 0).into()), vec![DiskSettings::plain(path)]);
                let settings = Settings { driver, listen, disks, ..Settings::new(NodeId(node), keys) };
                real::run(settings, |machine| async move {
                    let address = machine.address().expect("it listens");
                    addresses.send(Peer { node: machine.node(), address }).expect("the client waits for it");
                    serve(machine, IoNodeSettings::agent()).await
                })?
            })
        })
        .collect();
    let peers: Vec<Peer> = listening.iter().take(AGENTS as usize).collect();
    let settings = Settings { driver, peers, ..Settings::new(CLIENT, keys) };
    real::run(settings, |machine| async move { client(machine, plan).await.expect("all goes well") })?;
    // The agents serve until the process ends.
    drop(agents);
    std::process::exit(0);
}

async fn client(machine: RealMachine, plan: Plan) -> fs::Result<()> {
    let io_nodes = (1..=AGENTS).map(NodeId).collect();
    let client = Client::connect(machine.clone(), io_nodes, ClientSettings::agent()).await?;
    let disks: Vec<u64> = client.disks_by_identity().await?.keys().copied().collect();
    let cache = PageCache::new(client.clone(), PageCacheSettings::default());
    let striping = Striping::new(BLOCK, disks.len() as u32)?;
    let file_of = move |number: u64, bytes| {
        let mut disks = disks.clone();
        let first = number as usize % disks.len();
        disks.rotate_left(first);
        NumberedFile { number: FileId(number), striping, disks, bytes, stored_stripes: 0 }
    };

    let make = {
        let (cache, file_of) = (cache.clone(), file_of.clone());
        async move |number| {
            let file = cache.open_numbered(file_of(number, 0)).await.expect("its disks are there");
            file.write(0, Payload::from(vec![number as u8; plan.bytes as usize])).await.expect("room");
            file.close().await.expect("sent");
        }
    };
    time(&machine, plan, "made", make).await;
    let read = async move |number| {
        let file = cache.open_numbered(file_of(number, plan.bytes)).await.expect("its disks are there");
        let data = file.read(0, plan.bytes).await.expect("readable").to_vec().expect("real bytes");
        assert!(data.len() as u64 == plan.bytes && data.iter().all(|byte| *byte == number as u8));
    };
    time(&machine, plan, "read", read).await;
    let start = Instant::now();
    let files: Vec<FileId> = (1..=plan.files).map(FileId).collect();
    client.remove_numbered(&files).await?;
    say("removed", plan, start);
    assert_eq!(client.list_numbered().await?, []);
    Ok(())
}

/// Runs `work` for all files, `plan.at_a_time` of them at once, and prints the throughput.
async fn time(machine: &RealMachine, plan: Plan, what: &str, work: impl AsyncFn(u64) + 'static) {
    let (start, next, work) = (Instant::now(), Rc::new(Cell::new(1)), Rc::new(work));
    let workers = InFlight::new();
    for _ in 0..plan.at_a_time {
        let (next, work, operation) = (next.clone(), work.clone(), workers.begin());
        machine.spawn("worker", async move {
            let _operation = operation;
            while next.get() <= plan.files {
                next.set(next.get() + 1);
                work(next.get() - 1).await;
            }
            Ok(())
        });
    }
    workers.none().await;
    say(what, plan, start);
}

fn say(what: &str, plan: Plan, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!("{what}: {:.0} files/s ({} files in {seconds:.3} s)", plan.files as f64 / seconds, plan.files);
}
