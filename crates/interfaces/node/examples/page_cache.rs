//! Measures the throughput of a program that reads and writes a file through the page cache, and its processor time.
//!
//! Covers: starting agents on separate threads, a client, the page cache and its windows. Scenario: four agents; a
//! program writes a file and flushes it, then reads it page by page. For comparison, a bare stripe: four threads send
//! the same number of bytes to one receiver, without protocol and cache. Prints the throughput in MB/s (of 10^6 bytes),
//! and the seconds of processor time of the program's thread and of all threads.
//!
//! ```text
//! cargo run --release -p node --example page_cache -- [MiB] [adaptive | pages of the window] [driver]
//! ```

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Instant;

use ::fs::{
    Client, ClientSettings, FileId, IoNodeSettings, NumberedFile, PageCache, PageCacheSettings, Prefetch,
    serve,
};
use layout::Striping;
use machine::{Machine, NodeId, Payload};
use real::{DiskSettings, Driver, Keys, Peer, RealMachine, Settings};

const AGENTS: u64 = 4;
const PAGE: u64 = 64 * 1024;
const CLIENT: NodeId = NodeId(100);

fn main() {
    let mut words = std::env::args().skip(1);
    let mib: u64 = words.next().map_or(256, |word| word.parse().expect("a number of MiB"));
    let prefetch = match words.next().as_deref() {
        None | Some("adaptive") => Prefetch::Adaptive,
        Some(pages) => Prefetch::Window(pages.parse().expect("a number of pages")),
    };
    let driver = words.next().map_or(Driver::Automatic, |word| word.parse().expect("a driver"));

    bare_stripe(mib << 20);
    let keys = Keys::draw().expect("randomness");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (addresses, listening) = mpsc::channel();
    let agents: Vec<_> = (1..=AGENTS)
        .map(|node| {
            let (addresses, path) = (addresses.clone(), directory.path().join(node.to_string()));
            let keys = keys.clone();
            std::thread::spawn(move || {
                let listen = Some(([127, 0, 0, 1], 0).into());
                let disks = vec![DiskSettings::plain(path)];
                let settings = Settings { driver, listen, disks, ..Settings::new(NodeId(node), keys) };
                real::run(settings, move |machine: RealMachine| async move {
                    let address = machine.address().expect("it listens");
                    addresses.send(Peer { node: machine.node(), address }).expect("the client waits for it");
                    serve(machine, IoNodeSettings::report()).await
                })
            })
        })
        .collect();
    let peers: Vec<Peer> = listening.iter().take(AGENTS as usize).collect();
    let names = peers.iter().map(|peer| peer.node).collect();
    let settings = Settings { driver, peers, ..Settings::new(CLIENT, keys) };
    let outcome = real::run(settings, move |machine: RealMachine| async move {
        let client = Client::connect(machine, names, ClientSettings::report()).await?;
        program(client, mib << 20, prefetch).await
    });
    outcome.expect("the client starts").expect("all operations succeed");
    drop(agents);
}

async fn program(client: Client<RealMachine>, bytes: u64, prefetch: Prefetch) -> ::fs::Result<()> {
    let cache = PageCache::new(client, PageCacheSettings { prefetch, ..PageCacheSettings::default() });
    let striping = Striping::new(PAGE, cache.client().disks())?;
    let described = cache.client().new_numbered(FileId(1), striping).await?;
    let watch = Watch::start();
    let file = cache.open_numbered(described.clone()).await?;
    for page in 0..bytes / PAGE {
        file.write(page * PAGE, Payload::from(vec![page as u8; PAGE as usize])).await?;
    }
    watch.stop("written", bytes);
    file.close().await?;
    watch.stop("written and flushed", bytes);
    for _ in 0..2 {
        let watch = Watch::start();
        let file = cache.open_numbered(NumberedFile { bytes, ..described.clone() }).await?;
        for page in 0..bytes / PAGE {
            let data = file.read(page * PAGE, PAGE).await?;
            let data = data.as_contiguous().expect("one piece");
            assert_eq!((data.len() as u64, data[7]), (PAGE, page as u8));
        }
        watch.stop("read", bytes);
    }
    Ok(())
}

/// Measures this computer without a file system.
fn bare_stripe(bytes: u64) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it has one");
    let senders: Vec<_> = (0..AGENTS)
        .map(|_| {
            std::thread::spawn(move || {
                let mut stream = TcpStream::connect(address).expect("someone listens");
                let page = vec![1; PAGE as usize];
                (0..bytes / PAGE / AGENTS).for_each(|_| stream.write_all(&page).expect("sent"));
            })
        })
        .collect();
    let mut streams: Vec<_> = senders.iter().map(|_| listener.accept().expect("a sender").0).collect();
    let (mut page, watch) = (vec![0; PAGE as usize], Watch::start());
    for _ in 0..bytes / PAGE / AGENTS {
        streams.iter_mut().for_each(|stream| stream.read_exact(&mut page).expect("received"));
    }
    watch.stop("bare stripe", bytes);
    senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
}

/// Measures elapsed time, and processor time of this thread and of the process.
struct Watch {
    start: Instant,
    thread: f64,
    all: f64,
}

impl Watch {
    fn start() -> Self {
        Watch { start: Instant::now(), thread: thread_seconds(), all: all_seconds() }
    }

    fn stop(&self, what: &str, bytes: u64) {
        let seconds = self.start.elapsed().as_secs_f64();
        let (thread, all) = (thread_seconds() - self.thread, all_seconds() - self.all);
        let rate = bytes as f64 / 1e6 / seconds;
        println!(
            "{what}: {rate:.0} MB/s, {seconds:.3} s; processor: {thread:.3} s in this thread, {all:.2} s in all"
        );
    }
}

fn thread_seconds() -> f64 {
    let times = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or(0.0) / 1e9
}

/// Returns the time in user and system mode of this process, in seconds. The kernel counts hundredths of a second.
fn all_seconds() -> f64 {
    let times = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = times.rsplit(')').next().unwrap_or("").split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
