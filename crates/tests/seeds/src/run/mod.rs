//! Run of a schedule on a simulated machine, and the laws that it must keep.
//!
//! Each client executes its operations in sequence, while faults come at their times. All results are recorded in
//! histories, and checked against them. Laws, by the names under which failures are grouped:
//!
//! - *contents*: a read returns possible data, see `contents.rs`; also at the end, for a client without caches
//! - *names*: a directory has a possible state, see `names.rs`
//! - *failure*: no operation fails without a fault, and a persistent file can be read after all faults
//! - *recovery*: after the last fault each client can persist everything, and then no operation fails
//! - *wait*: each operation ends within a bound after the last fault
//! - *locks*: no two clients rely on conflicting locks
//! - *namespace*: the records of the metadata server are consistent, and no orphans and no contents without a file are
//!   left

mod check;
mod collectives;
mod covering;
mod faults;
mod job_writes;
mod locks;
mod name_changes;
mod process;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use fs::{
    Client, CollectiveMethod, Configuration, Error, IoNodeSettings, LockMode, LockRange, NewTree, PageCache,
    PageCacheSettings, Prefetch, SelectedSettings, Threads, Tree,
};
use machine::{Duration, InFlight, Instant, Machine, NodeId};
use namespace::{FileNumber, Location, NewInode, TreeOperation};
use sim::conformance::{end_after, metadata_costs};
use sim::{Layout, SimMachine, Simulation, TaskOrder};

use crate::contents::{EventTime, History, NEVER};
use crate::coverage::RunCoverage;
use crate::crashing_nodes::CrashingNodes;
use crate::draw::Draw;
use crate::names::PossibleNames;
use crate::schedule::{Fault, SHARED, Schedule};
use crate::testbed::{BLOCK, drawn_settings, machine_of, make_room};
use covering::Overlaps;
use process::Process;

/// Longest time that an operation may take after the last fault has ended: some leases.
const PATIENCE: Duration = Duration::from_secs(60);

/// Limit of a run in simulated time.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

/// Interval at which a client tries again to connect.
const AGAIN: Duration = Duration::from_millis(5);

/// Number of event times in a nanosecond.
const EVENTS_AT_ONCE: u64 = 1000;

/// Time after which no message of a killed process is in flight.
const QUIET: Duration = Duration::from_secs(2);

/// Broken law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenLaw {
    /// Name of the law: failures are grouped by it.
    pub law: String,
    /// Description of the violation.
    pub why: String,
}

/// State that all clients and the faults share.
struct World {
    schedule: Schedule,
    nodes: CrashingNodes,
    /// Present node of each client, and the number of its processes so far.
    clients: RefCell<Vec<(SimMachine, u64)>>,
    /// Nodes for further processes: each process has a separate node, because each has a separate address.
    spare: RefCell<Vec<SimMachine>>,
    /// Node that injects the faults and checks the result.
    checker: SimMachine,
    files: RefCell<Vec<History>>,
    names: RefCell<Vec<PossibleNames>>,
    /// True if a fault has begun: operations may fail from then on.
    has_faults: Cell<bool>,
    last_event: Cell<EventTime>,
    /// Times of faults that may take unflushed data.
    losses: RefCell<Vec<Range<EventTime>>>,
    /// True if the I/O nodes were restarted after the last fault.
    has_restarted: Cell<bool>,
    /// Number of power cuts.
    cuts: Cell<u64>,
    /// Time at which the last temporary fault ends, as far as known.
    healed: Cell<Instant>,
    stamps: Cell<u64>,
    processes: Cell<usize>,
    /// Next operation of each client.
    next: RefCell<Vec<usize>>,
    locks: RefCell<Vec<Held>>,
    broken: RefCell<Option<BrokenLaw>>,
    working: InFlight,
    overlaps: Overlaps,
    log: Option<fn(&str)>,
}

/// Lock of a client.
#[derive(Clone)]
struct Held {
    client: usize,
    process: usize,
    file: usize,
    range: LockRange,
    mode: LockMode,
    /// Time of the grant.
    since: EventTime,
    tree: Tree<SimMachine>,
}

pub(crate) async fn tree_of(
    base: Configuration,
    machine: &SimMachine,
    io_nodes: &[NodeId],
    origin: u64,
) -> Result<Tree<SimMachine>, String> {
    let settings = PageCacheSettings { bytes: 16 * BLOCK, ..PageCacheSettings::default() };
    connect(base, machine, io_nodes, origin, settings).await.map_err(|error| error.to_string())
}

async fn connect(
    base: Configuration,
    machine: &SimMachine,
    io_nodes: &[NodeId],
    origin: u64,
    settings: PageCacheSettings,
) -> fs::Result<Tree<SimMachine>> {
    let client = Client::connect(machine.clone(), io_nodes.to_vec(), base.client()).await?;
    let cache = PageCache::new(client, settings);
    Tree::find_or_begin(&cache, NewTree { origin, mode: 0o755, uid: 0, gid: 0 }).await
}

/// Runs a schedule.
///
/// # Errors
/// If a law is broken.
pub fn run(schedule: &Schedule) -> Result<(), BrokenLaw> {
    observe(schedule, None).outcome
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// Hash of all events: equal for equal runs.
    pub digest: u64,
    /// The broken law, if any.
    pub outcome: Result<(), BrokenLaw>,
    /// Injected faults, and the operations that they overlapped. Without marks.
    pub coverage: RunCoverage,
}

/// Runs a schedule, and calls `log` with a line for each operation and each fault.
pub fn observe(schedule: &Schedule, log: Option<fn(&str)>) -> RunResult {
    let mut description = machine_of(&schedule.machine, schedule.speed);
    description.nodes.io.value = schedule.io_nodes;
    // The last node checks the result. A fault can end two processes: a client, and an attempt to connect.
    let spare = 2 * schedule.faults.len();
    description.nodes.compute.value = (schedule.clients.len() + spare) as u32 + 1;
    make_room(&mut description);
    description.disks.per_io_node.value = 1;
    description.metadata = Some(metadata_costs());
    let mut settings = drawn_settings(&mut Draw::of(schedule.seed), schedule.seed);
    if let Layout::Contiguous { reserve_bytes } = &mut settings.layout {
        // There are many small files here, and space reserved for one is not available to others.
        *reserve_bytes = 16 * BLOCK;
    }
    settings.task_order = if schedule.drawn_order { TaskOrder::Drawn } else { TaskOrder::Woken };
    let simulation = Simulation::new(&description, settings);
    simulation.expect_crashes();
    let (checker, clients) = simulation.compute_nodes().split_last().expect("nodes");
    let (checker, clients) = (checker.clone(), clients.to_vec());
    let io_nodes = simulation.io_nodes().to_vec();
    let schedule = schedule.clone();
    let coverage = Rc::new(RefCell::new(RunCoverage::default()));
    let covered = coverage.clone();
    let test = async move {
        let nodes = CrashingNodes::start(io_nodes, io_node_settings(&schedule), schedule.formatted);
        let world = Rc::new(World::new(schedule, nodes, clients, checker, log));
        world.set_up().await?;
        (0..world.schedule.clients.len()).for_each(|client| world.start_process(client, 0));
        world.start_faults(None);
        world.working.none().await;
        covered.replace(world.overlaps.coverage());
        world.heal().await;
        if world.broken.borrow().is_none() {
            world.check_all().await?;
        }
        Ok(world.broken.take())
    };
    let stopped = |law: &str, why: String| BrokenLaw { law: law.into(), why };
    let outcome = match simulation.run(test) {
        Err(error) => Err(stopped("task", error.to_string())),
        Ok(Err(why)) => Err(stopped("end", why)),
        Ok(Ok(Some(broken))) => Err(broken),
        Ok(Ok(None)) => Ok(()),
    };
    RunResult { digest: simulation.digest(), outcome, coverage: coverage.take() }
}

fn base_of(schedule: &Schedule) -> Configuration {
    if schedule.agents { Configuration::Agent } else { Configuration::Report }
}

fn io_node_settings(schedule: &Schedule) -> IoNodeSettings {
    let threads = match schedule.threads {
        0 => Threads::PerRequest,
        threads => Threads::Pool(threads as usize),
    };
    IoNodeSettings {
        cache_blocks: schedule.cache_blocks as usize,
        block_bytes_max: BLOCK,
        threads,
        ..base_of(schedule).io_node()
    }
}

fn selected_settings(in_two_phases: bool) -> SelectedSettings {
    let method = match in_two_phases {
        true => CollectiveMethod::TwoPhase,
        false => CollectiveMethod::DiskDirected { presort: true },
    };
    SelectedSettings { method, queued: true, to_media: false }
}

fn page_cache_settings(schedule: &Schedule) -> PageCacheSettings {
    let send_after = Some(schedule.send_after).filter(|time| *time > 0);
    PageCacheSettings {
        bytes: schedule.pages * BLOCK,
        prefetch: Prefetch::Adaptive,
        write_behind: true,
        send_parts_after: send_after.map(Duration::from_micros),
    }
}

impl World {
    /// Returns a time for the histories: later than all earlier ones, also at the same simulated time.
    fn time(&self) -> EventTime {
        let now = self.checker.now().as_nanos() * EVENTS_AT_ONCE;
        self.last_event.set(now.max(self.last_event.get() + 1));
        self.last_event.get()
    }

    fn stamp(&self) -> u64 {
        self.stamps.set(self.stamps.get() + 1);
        self.stamps.get()
    }

    fn new_process(&self) -> usize {
        self.processes.set(self.processes.get() + 1);
        self.processes.get()
    }

    fn log(&self, line: impl FnOnce() -> String) {
        if let Some(log) = self.log {
            log(&format!("{} {}", self.checker.now().as_nanos(), line()));
        }
    }

    fn break_law(&self, law: &str, why: String) {
        self.broken.borrow_mut().get_or_insert_with(|| BrokenLaw { law: law.into(), why });
    }

    /// Breaks a law if `outcome` is an error.
    fn keep(&self, law: &str, what: &str, outcome: Result<(), String>) {
        if let Err(why) = outcome {
            self.break_law(law, format!("{what}: {why}"));
        }
    }

    fn file<T>(&self, file: usize, change: impl FnOnce(&mut History) -> T) -> T {
        change(&mut self.files.borrow_mut()[file])
    }

    fn new_file(&self) -> usize {
        let mut files = self.files.borrow_mut();
        files.push(History::new());
        files.len() - 1
    }

    /// Returns the file of this number. A new number belongs to the only candidate without one.
    fn file_of(&self, number: FileNumber, candidates: &[usize]) -> Option<usize> {
        let mut files = self.files.borrow_mut();
        let known = files.iter().position(|file| file.number == Some(number));
        known.or_else(|| {
            let unnumbered = candidates.iter().copied().find(|&file| files[file].number.is_none())?;
            files[unnumbered].number = Some(number);
            Some(unnumbered)
        })
    }

    /// Removes the locks of a process in a range.
    fn remove_locks(&self, process: usize, file: usize, removed: LockRange) {
        let mut locks = self.locks.borrow_mut();
        let (own, mut left): (Vec<Held>, Vec<Held>) =
            locks.drain(..).partition(|held| held.process == process && held.file == file);
        for held in own {
            let LockRange { first, last } = held.range;
            if first < removed.first {
                let range = LockRange { first, last: last.min(removed.first - 1) };
                left.push(Held { range, ..held.clone() });
            }
            if last > removed.last {
                left.push(Held { range: LockRange { first: first.max(removed.last + 1), last }, ..held });
            }
        }
        *locks = left;
    }

    fn disclaim(&self, process: usize) {
        self.files.borrow_mut().iter_mut().for_each(|file| file.disclaim(process));
    }

    /// Returns true if writes to a disk may fail.
    fn has_disk_faults(&self) -> bool {
        self.has_fault(|fault| {
            matches!(
                fault,
                Fault::FailWrites(..)
                    | Fault::FailFlushes(..)
                    | Fault::FailMedium(..)
                    | Fault::FillDisk(..)
                    | Fault::FlipWrite(_)
                    | Fault::HoldDisk(..)
            )
        })
    }

    /// Returns true if bits may flip after reads: they stay in the caches of an I/O node until its restart.
    fn has_flipped_reads(&self) -> bool {
        self.has_fault(|fault| matches!(fault, Fault::FlipRead(_)))
    }

    /// Returns true if stored data may be damaged or lost: they stay so until they are written again.
    fn has_damage(&self) -> bool {
        self.has_fault(|fault| {
            matches!(fault, Fault::Damage(..) | Fault::LoseWrite(_) | Fault::MisdirectWrite(_))
        })
    }

    /// Returns true if the schedule has such a fault.
    fn has_fault(&self, is_it: impl Fn(&Fault) -> bool) -> bool {
        self.schedule.faults.iter().any(|fault| is_it(&fault.fault))
    }

    /// Records a fault that lasts until `end`.
    fn note_fault(&self, end: Instant) {
        self.has_faults.set(true);
        self.wait_for_faults_until(end);
    }

    /// Records that faults last at least until `end`.
    fn wait_for_faults_until(&self, end: Instant) {
        self.healed.set(self.healed.get().max(end));
    }

    /// Records that unflushed data may be lost at present.
    fn note_loss(&self) {
        let now = self.time();
        self.losses.borrow_mut().push(now..now);
    }

    /// Records that unflushed data may be lost from now on.
    fn note_pending_loss(&self) {
        self.losses.borrow_mut().push(self.time()..NEVER);
    }

    fn new(
        schedule: Schedule,
        nodes: CrashingNodes,
        clients: Vec<SimMachine>,
        checker: SimMachine,
        log: Option<fn(&str)>,
    ) -> World {
        let count = schedule.clients.len();
        let mut clients = clients.into_iter();
        World {
            schedule,
            nodes,
            clients: RefCell::new(clients.by_ref().take(count).map(|node| (node, 0)).collect()),
            spare: RefCell::new(clients.collect()),
            checker,
            files: RefCell::default(),
            names: RefCell::new(vec![PossibleNames::default(); count]),
            has_faults: Cell::default(),
            last_event: Cell::default(),
            losses: RefCell::default(),
            has_restarted: Cell::default(),
            cuts: Cell::default(),
            healed: Cell::new(Instant::START),
            stamps: Cell::default(),
            processes: Cell::default(),
            next: RefCell::new(vec![0; count]),
            locks: RefCell::default(),
            broken: RefCell::default(),
            working: InFlight::new(),
            overlaps: Overlaps::default(),
            log,
        }
    }

    /// Connects the checker as a new client, and tries again as long as nodes may restart.
    async fn tree(&self) -> Result<Tree<SimMachine>, String> {
        let end = self.checker.now() + PATIENCE;
        loop {
            // Ends the client of an earlier attempt.
            self.checker.kill();
            end_after(&self.checker, LIMIT);
            let (base, io_nodes) = (base_of(&self.schedule), self.nodes.names());
            match tree_of(base, &self.checker, &io_nodes, self.schedule.seed).await {
                Err(_) if self.checker.now() < end => self.pause(QUIET).await,
                outcome => return outcome,
            }
        }
    }

    async fn pause(&self, time: Duration) {
        self.checker.sleep_until(self.checker.now() + time).await;
    }

    /// Creates the shared files and the directories of the clients, and persists them.
    async fn set_up(&self) -> Result<(), String> {
        let tree = self.tree().await?;
        self.overlaps.set_metadata_server(tree.metadata_server());
        for client in 0..self.schedule.clients.len() {
            let (at, new) = (at(&directory_of(client)), NewInode::Directory);
            let make = TreeOperation::Make { at, new, mode: 0o755, uid: 0, gid: 0, exclusive: true };
            tree.inode(make).await.map_err(text_of)?;
        }
        for file in 0..SHARED {
            let made = Process::made(&tree, &shared_path(file)).await.map_err(text_of)?;
            self.new_file();
            self.files.borrow_mut()[file as usize].number = Some(made.number());
            made.sync().await.map_err(text_of)?;
            made.close().await.map_err(text_of)?;
        }
        tree.flush().await.map_err(text_of)
    }

    /// Starts a process that executes the remaining operations of a client, unless another one was started after the
    /// first `count`. If it cannot connect, the next one tries.
    fn start_process(self: &Rc<Self>, client: usize, count: u64) {
        let (machine, started) = self.clients.borrow()[client].clone();
        if started != count {
            return;
        }
        let machine = if count == 0 { Some(machine) } else { self.spare.borrow_mut().pop() };
        let Some(machine) = machine else {
            // No process will execute the rest of the program.
            self.next.borrow_mut()[client] = self.schedule.clients[client].len();
            return;
        };
        self.clients.borrow_mut()[client] = (machine.clone(), count + 1);
        let (world, process, working) = (self.clone(), self.new_process(), self.working.begin());
        machine.clone().spawn("process", async move {
            let (base, io_nodes) = (base_of(&world.schedule), world.nodes.names());
            let settings = page_cache_settings(&world.schedule);
            let started = machine.now();
            match connect(base, &machine, &io_nodes, world.schedule.seed, settings).await {
                Ok(tree) => {
                    let cache = world.join_job(&machine, client, tree.cache().client()).await;
                    Rc::new(Process::new(world, machine, client, process, tree, cache)).work().await;
                }
                Err(error) if !world.has_faults.get() || machine.now() > world.patience_end(started) => {
                    world.break_law("failure", format!("client {client}: connecting: {error}"));
                }
                Err(_) => world.after(AGAIN, move |world| world.start_process(client, count + 1)),
            }
            drop(working);
            Ok(())
        });
    }

    /// Returns the time at which an operation must have ended.
    fn patience_end(&self, started: Instant) -> Instant {
        self.healed.get().max(started) + PATIENCE
    }

    /// Calls a function after a time, before the check.
    fn after(self: &Rc<Self>, time: Duration, what: impl FnOnce(Rc<World>) + 'static) {
        let (world, working) = (self.clone(), self.working.begin());
        self.checker.spawn("later", async move {
            world.pause(time).await;
            what(world);
            drop(working);
            Ok(())
        });
    }
}

pub(crate) fn at(path: &str) -> Location {
    Location::of_path(path)
}

pub(crate) fn look(path: &str) -> TreeOperation {
    TreeOperation::Look { at: at(path), follow: true }
}

fn shared_path(file: u64) -> String {
    format!("s{file}")
}

fn directory_of(client: usize) -> String {
    format!("d{client}")
}

pub(crate) fn text_of(error: Box<Error>) -> String {
    error.to_string()
}
