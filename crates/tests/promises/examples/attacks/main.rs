//! Measures service to a client during attacks on its agent, and the memory of the agent.
//!
//! Covers: limits of one client, on real machines. Scenario: for each attack, an agent with one disk in a process. The
//! attackers run in another process, with a lower priority, because in reality they would have other computers. A
//! client connects during the attack and makes 48 reads of 64 KiB a second at random places. A read does not wait for
//! earlier reads, and its latency counts from the time at which it is due. Then the attackers are killed. Each agent is
//! attacked twice, to distinguish memory that is kept for reuse (which does not grow in the second attack) from a leak.
//!
//! Prints for each attack:
//!
//! - reads a second, and the 99th percentile of their latencies
//! - peak memory of the agent, and its memory before, after the first and after the second attack
//! - seconds from the end of the second attack to the last measurement of the memory
//!
//! ```text
//! cargo run --release -p promises --example attacks -- [part of an attack's name]
//! ```

mod attackers;
#[path = "../../../../machines/real/tests/common/mod.rs"]
mod common;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::future::Future;
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration as Time, Instant as Moment};
use std::{env, fs as files, thread};

use attackers::ATTACKS;
use common::stranger::keys;
use fs::{
    Client, ClientSettings, File, FileId, IoNodeSettings, NewTree, NumberedFile, PageCache,
    PageCacheSettings, Tree,
};
use futures_util::future::try_join_all;
use layout::Striping;
use machine::{Duration, InFlight, Machine, Memory, NodeId, first_of, mix};
use namespace::{FileNumber, Location, NewInode, TreeOperation};
use real::{DiskSettings, MetadataPlace, Peer, RealMachine, Settings};

/// Allocator of the agents.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AGENT: NodeId = NodeId(1);
const CLIENT: NodeId = NodeId(2);

const READS_A_SECOND: u64 = 48;
const SECONDS: u64 = 8;
const BLOCK: u64 = 64 << 10;
const LARGE_BLOCK: u64 = 1 << 20;

/// Blocks in the agent's cache: fewer than each file has, so that the cache is full from the beginning.
const CACHE_BLOCKS: usize = 128;

/// File of the client.
const SERVED: FileId = FileId(2);
const SERVED_BYTES: u64 = 64 << 20;
/// File with large blocks.
const LARGE: FileId = FileId(3);
const LARGE_BYTES: u64 = 80 << 20;

/// Time limit of a client for all its requests together.
const PATIENCE: Duration = Duration::from_secs(25);

/// Time limit for the release of the agent's memory, and the tolerated growth in MB.
const BACK: (Time, f64) = (Time::from_secs(10), 16.0);

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["--agent", directory] => serve(Path::new(directory)),
        ["--attack", name, address, number] => {
            let number = FileNumber(number.parse().expect("a number"));
            attackers::attack(name, address.parse().expect("an address"), number);
        }
        _ => measure_all(words.first().copied().unwrap_or_default()),
    }
}

fn measure_all(part: &str) {
    println!(
        "| attack | reads/s | p99, ms | peak, MB | before, MB | after one, MB | after two, MB | in s | reached |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    measure("none", false);
    for (name, _) in ATTACKS.iter().filter(|(name, _)| name.contains(part)) {
        measure(name, true);
    }
}

/// Measures one attack, or the service without one, and prints a line.
fn measure(name: &str, attacked: bool) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut agent = Running::start(&["--agent".as_ref(), directory.path().as_ref()]);
    let address: SocketAddr = agent.line().parse().expect("an address");
    let number = as_client(address, prepare).expect("in time");
    agent.forget_peak();
    let before = agent.megabytes("VmRSS");
    let attackers = || attacked.then(|| Running::attackers(name, address, number));
    let rounds = [(); 2].map(|()| Round::of(&agent, address, attackers, before));
    let peak = agent.megabytes("VmHWM");
    let serves = as_client(address, |machine| read_paced(machine, READS_A_SECOND / 4))
        .is_some_and(|load| load.latency(50) < 100.0);
    let p99 = rounds.iter().map(|round| round.load.latency(99)).fold(0.0, f64::max);
    let rate = rounds.iter().map(|round| round.load.rate()).fold(f64::INFINITY, f64::min);
    let [one, two] = rounds.map(|round| round.left);
    let reached = [
        (rate >= 40.0, "reads/s"),
        (p99 < 100.0, "p99"),
        (peak < 300.0, "peak"),
        (two.1 < before + BACK.1, "back"),
        (serves, "serves afterwards"),
    ];
    let missed: Vec<&str> = reached.iter().filter(|(is, _)| !is).map(|(_, what)| *what).collect();
    let verdict = if missed.is_empty() { "yes".to_owned() } else { format!("not {}", missed.join(", ")) };
    println!(
        "| {name} | {rate:.1} | {p99:.1} | {peak:.0} | {before:.0} | {:.0} | {:.0} | {:.1} | {verdict} |",
        one.1, two.1, two.0
    );
}

/// Results of one attack.
struct Round {
    load: Load,
    /// Seconds from the end of the attack to the measurement of the agent's memory, and that memory in MB.
    left: (f64, f64),
}

impl Round {
    fn of(
        agent: &Running,
        address: SocketAddr,
        attackers: impl Fn() -> Option<Running>,
        before: f64,
    ) -> Self {
        let attackers = attackers();
        let load =
            as_client(address, |machine| read_paced(machine, READS_A_SECOND * SECONDS)).unwrap_or_default();
        drop(attackers);
        let gone = Moment::now();
        let is_back = || agent.megabytes("VmRSS") < before + BACK.1;
        while !is_back() && gone.elapsed() < BACK.0 {
            thread::sleep(Time::from_millis(50));
        }
        Self { load, left: (gone.elapsed().as_secs_f64(), agent.megabytes("VmRSS")) }
    }
}

/// Child process that runs this program and ends with this process.
struct Running {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(words: &[&OsStr]) -> Self {
        let program = env::current_exe().expect("this program");
        let mut command = Command::new("nice");
        command.args(["-n", if words[0] == "--attack" { "10" } else { "0" }]).arg(program).args(words);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Running { process, output }
    }

    /// Starts attackers, and returns when they have begun.
    fn attackers(name: &str, address: SocketAddr, number: FileNumber) -> Self {
        let (address, number) = (address.to_string(), number.0.to_string());
        let mut attackers =
            Self::start(&["--attack".as_ref(), name.as_ref(), address.as_ref(), number.as_ref()]);
        attackers.line();
        thread::sleep(Time::from_millis(500));
        attackers
    }

    /// Returns the next line that the child process prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn megabytes(&self, field: &str) -> f64 {
        let status = files::read_to_string(format!("/proc/{}/status", self.process.id())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
        kibibytes.map_or(f64::NAN, |kibibytes| kibibytes * 1024.0 / 1e6)
    }

    /// Resets VmHWM to the current memory.
    fn forget_peak(&self) {
        files::write(format!("/proc/{}/clear_refs", self.process.id()), "5").expect("its own process");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Makes this process end with its parent.
fn end_with_parent() {
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
}

fn serve(directory: &Path) {
    end_with_parent();
    let settings = Settings {
        listen: Some(common::any_port()),
        disks: vec![DiskSettings::plain(directory.join("disk"))],
        metadata: Some(MetadataPlace::Directory(directory.join("namespace"))),
        ..Settings::new(AGENT, keys())
    };
    let served = real::run(settings, |machine| async move {
        println!("{}", machine.address().expect("it listens"));
        node::serve(machine, IoNodeSettings { cache_blocks: CACHE_BLOCKS, ..IoNodeSettings::agent() }).await
    });
    served.and_then(|served| served).expect("it serves until it is killed");
}

/// Returns the settings of a node that is connected to the agent.
fn settings(node: NodeId, address: SocketAddr) -> Settings {
    Settings { peers: vec![Peer { node: AGENT, address }], ..Settings::new(node, keys()) }
}

/// Runs `work` as a client of the agent; returns `None` if that takes too long or the agent is unreachable.
fn as_client<T: 'static, F: Future<Output = T>>(
    address: SocketAddr,
    work: impl FnOnce(RealMachine) -> F + 'static,
) -> Option<T> {
    let done = real::run(settings(CLIENT, address), |machine| async move {
        let end = machine.now() + PATIENCE;
        let late = async || {
            machine.sleep_until(end).await;
            None
        };
        first_of(async { Some(work(machine.clone()).await) }, late()).await
    });
    done.ok().flatten()
}

/// Creates the files of the client and of the attackers, and fills the cache of the agent. Makes all requests for a
/// file at the same time, so that the agent allocates the memory that it keeps for bursts.
async fn prepare(machine: RealMachine) -> FileNumber {
    let client = Client::connect(machine, vec![AGENT], ClientSettings::agent()).await.expect("it serves");
    let memory = Memory::real(vec![7; LARGE_BLOCK as usize]);
    for (number, block, bytes) in [(SERVED, BLOCK, SERVED_BYTES), (LARGE, LARGE_BLOCK, LARGE_BYTES)] {
        let file = open(&client, number, block, 0).await.expect("opened");
        let parts = || (0..bytes).step_by(LARGE_BLOCK as usize);
        let writes = parts().map(|offset| file.write(offset, LARGE_BLOCK, &memory, 0));
        try_join_all(writes).await.expect("written");
        file.flush().await.expect("flushed");
        let reads = parts().map(|offset| file.read(offset, LARGE_BLOCK, &memory, 0));
        try_join_all(reads).await.expect("read");
    }
    // Enough files to fill the answer to a list request.
    for number in 100..1100 {
        let file = open(&client, FileId(number), BLOCK, 0).await.expect("opened");
        file.make_stripes().await.expect("room");
    }
    let cache = PageCache::new(client, PageCacheSettings::default());
    let new = NewTree { origin: 4711, mode: 0o755, uid: 0, gid: 0 };
    let tree = Tree::find_or_begin(&cache, new).await.expect("a namespace");
    let disks = tree.all_disks().await.expect("its disks");
    let new = NewInode::File { striping: Striping::new(BLOCK, 1).expect("one"), disks };
    let at = Location::of_path("locked");
    let make = TreeOperation::Make { at, new, mode: 0o644, uid: 0, gid: 0, exclusive: true };
    let file = tree.open(make).await.expect("made");
    let number = file.number();
    file.close().await.expect("closed");
    number
}

/// Opens the file of a number over the disks of the agent, of `bytes` bytes.
async fn open(
    client: &Client<RealMachine>,
    number: FileId,
    block_bytes: u64,
    bytes: u64,
) -> fs::Result<File<RealMachine>> {
    let striping = Striping::new(block_bytes, client.disks()).expect("a striping");
    let new = client.new_numbered(number, striping).await?;
    client.numbered(NumberedFile { bytes, ..new }).await
}

/// Reads of the client.
#[derive(Default)]
struct Load {
    /// Number of reads due.
    due: u64,
    /// Latencies in ms of the successful reads.
    latencies: Vec<f64>,
    /// Number of reads that had succeeded when the last one was due.
    in_time: u64,
}

impl Load {
    /// Returns a percentile of the latencies in ms; a failed read counts as infinite.
    fn latency(&self, percent: u64) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_by(f64::total_cmp);
        let index = (self.due * percent).div_ceil(100).checked_sub(1);
        index.and_then(|index| sorted.get(index as usize).copied()).unwrap_or(f64::INFINITY)
    }

    fn rate(&self) -> f64 {
        self.in_time as f64 * READS_A_SECOND as f64 / self.due.max(1) as f64
    }
}

/// Makes `due` reads at their due times. If the file cannot be opened, counts all as failed.
async fn read_paced(machine: RealMachine, due: u64) -> Load {
    try_read_paced(machine, due).await.unwrap_or_default()
}

async fn try_read_paced(machine: RealMachine, due: u64) -> fs::Result<Load> {
    let client = Client::connect(machine.clone(), vec![AGENT], ClientSettings::agent()).await?;
    let file = open(&client, SERVED, BLOCK, SERVED_BYTES).await?;
    let (latencies, tasks) = (Rc::new(RefCell::new(Vec::new())), InFlight::new());
    let first = machine.now();
    let due_at = |read: u64| first + Duration::from_nanos(read * 1_000_000_000 / READS_A_SECOND);
    for read in 0..due {
        let due = due_at(read);
        machine.sleep_until(due).await;
        let (machine, file, latencies, task) =
            (machine.clone(), file.clone(), latencies.clone(), tasks.begin());
        machine.clone().spawn("a read", async move {
            let _task = task;
            let memory = Memory::real(vec![0; BLOCK as usize]);
            let offset = mix(read) % (SERVED_BYTES / BLOCK) * BLOCK;
            if file.read(offset, BLOCK, &memory, 0).await.is_ok() {
                latencies.borrow_mut().push(machine.now().since(due).as_secs_f64() * 1e3);
            }
            Ok(())
        });
    }
    machine.sleep_until(due_at(due)).await;
    let in_time = latencies.borrow().len() as u64;
    let late = machine.sleep_until(machine.now() + Duration::from_secs(2));
    first_of(tasks.none(), late).await;
    let latencies = latencies.take();
    Ok(Load { due, latencies, in_time })
}
