//! Run of a schedule on a simulated machine, and the laws that it must keep.
//!
//! Each client executes its operations in sequence, while faults come at their times. All results are recorded in
//! histories, and checked against them. Laws, by the names under which failures are grouped:
//!
//! - *contents*: a read returns possible data, see `contents.rs`; also at the end, for a client without caches
//! - *names*: a directory has a possible state, see `names.rs`
//! - *failure*: no operation fails without a fault, and a persistent file can be read after all faults
//! - *wait*: each operation ends within a bound after the last fault
//! - *locks*: no two clients rely on conflicting locks
//! - *namespace*: the records of the metadata server are consistent, and no contents are left without a file

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use fs::{
    Client, CollectiveMethod, Configuration, Error, FileId, IoNodeSettings, LockMode, LockRange, NewTree,
    OpenTreeFile, PageCache, PageCacheSettings, Prefetch, SelectedSettings, TeamMembership, TeamStep,
    Threads, Tree,
};
use layout::{Extent, Selection, Striping};
use machine::{Duration, InFlight, Instant, Machine, Memory, NodeId, Payload, first_of};
use namespace::{
    FileNumber, Location, NewInode, RemovalTarget, RenameMode, SurveyedRecord, TreeOperation, TreeRefusal,
    defects,
};
use sim::conformance::{end_after, metadata_costs};
use sim::{Layout, SimMachine, Simulation, TaskOrder};

use crate::contents::{EventTime, History, NEVER, ReadCall, bytes_of};
use crate::crashing_nodes::CrashingNodes;
use crate::draw::Draw;
use crate::names::{Outcome, PossibleNames, State};
use crate::schedule::{ClientOperation, CollectiveAccess, Fault, FileTarget, SHARED, Schedule};
use crate::testbed::{BLOCK, drawn_settings, machine_of, make_room};

/// Longest time that an operation may take after the last fault has ended: some leases.
const PATIENCE: Duration = Duration::from_secs(60);

/// Limit of a run in simulated time.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

/// Interval at which a client tries again to connect.
const AGAIN: Duration = Duration::from_millis(5);

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
    /// Times of faults that may take unflushed data or make operations fail.
    faults: RefCell<Vec<Range<EventTime>>>,
    /// Number of power cuts.
    cuts: Cell<u64>,
    /// Time at which the last temporary fault ends.
    healed: Cell<EventTime>,
    stamps: Cell<u64>,
    processes: Cell<usize>,
    /// Next operation of each client.
    next: RefCell<Vec<usize>>,
    locks: RefCell<Vec<Held>>,
    broken: RefCell<Option<BrokenLaw>>,
    working: InFlight,
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
    tree: Tree<SimMachine>,
}

/// Process of a client.
struct Process {
    world: Rc<World>,
    machine: SimMachine,
    client: usize,
    process: usize,
    tree: Tree<SimMachine>,
    open: BTreeMap<usize, Open>,
}

/// Open file, and the time of the last query of its size.
struct Open {
    file: Rc<OpenTreeFile<SimMachine>>,
    asked: EventTime,
}

/// An operation ended without effect, or its failure is excused by a fault.
struct Excused;

type Done<T = ()> = Result<T, Excused>;

impl World {
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

    /// Records a lock, which replaces other locks of its process in its range.
    fn replace_lock(&self, new: Held) {
        let mut locks = self.locks.borrow_mut();
        let (own, mut left): (Vec<Held>, Vec<Held>) =
            locks.drain(..).partition(|held| held.process == new.process && held.file == new.file);
        for held in own {
            let LockRange { first, last } = held.range;
            if first < new.range.first {
                let range = LockRange { first, last: last.min(new.range.first - 1) };
                left.push(Held { range, ..held.clone() });
            }
            if last > new.range.last {
                left.push(Held { range: LockRange { first: first.max(new.range.last + 1), last }, ..held });
            }
        }
        left.push(new);
        *locks = left;
    }

    fn disclaim(&self, process: usize) {
        self.files.borrow_mut().iter_mut().for_each(|file| file.disclaim(process));
    }

    /// Returns true if writes to a disk may fail. Known defect: a collective sync succeeds although an I/O node could
    /// not write cached data of a member, if another member asks for the flush. The next flush of that member fails.
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

    /// Returns true if the schedule has such a fault.
    fn has_fault(&self, is_it: impl Fn(&Fault) -> bool) -> bool {
        self.schedule.faults.iter().any(|fault| is_it(&fault.fault))
    }

    /// Records a fault that lasts until `end`.
    fn note_fault(&self, end: Instant) {
        self.faults.borrow_mut().push(self.checker.now().as_nanos()..end.as_nanos());
        self.healed.set(self.healed.get().max(end.as_nanos()));
    }

    /// Records a fault that later operations meet.
    fn note_pending_fault(&self) {
        self.faults.borrow_mut().push(self.checker.now().as_nanos()..NEVER);
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

impl Process {
    fn now(&self) -> EventTime {
        self.machine.now().as_nanos()
    }

    fn path(&self, name: u64) -> String {
        format!("{}/n{name}", directory_of(self.client))
    }

    /// Returns the value of a result. Breaks a law if it is an error without an excuse.
    fn check<T>(&self, what: &str, result: fs::Result<T>) -> Done<T> {
        result.map_err(|error| {
            self.world.log(|| format!("client {}: {what}: {error}", self.client));
            let is_excused = !self.world.faults.borrow().is_empty();
            if matches!(*error, Error::Protocol { .. }) || !is_excused {
                self.world.break_law("failure", format!("client {}: {what}: {error}", self.client));
            }
            Excused
        })
    }

    /// Returns the value of a result of an operation on a file, as [`check`](Self::check) does. An error may report any
    /// failed write of this process to the file.
    fn check_file<T>(&self, file: usize, what: &str, result: fs::Result<T>) -> Done<T> {
        if result.is_err() {
            self.world.file(file, |file| file.disclaim(self.process));
        }
        self.check(what, result)
    }

    /// Records the success of a call in the history of a file, with this process and the present time.
    fn note(&self, file: usize, record: impl FnOnce(&mut History, usize, EventTime)) {
        let (process, now) = (self.process, self.now());
        self.world.file(file, |history| record(history, process, now));
    }

    /// Executes the remaining operations of the client.
    async fn work(mut self) {
        loop {
            let index = self.world.next.borrow()[self.client];
            let Some(&operation) = self.world.schedule.clients[self.client].get(index) else { break };
            self.world.next.borrow_mut()[self.client] += 1;
            let (world, machine, client) = (self.world.clone(), self.machine.clone(), self.client);
            let started = machine.now();
            let too_long = async {
                loop {
                    let end = world.patience_end(started);
                    if end <= machine.now() {
                        break;
                    }
                    machine.sleep_until(end).await;
                }
                if matches!(operation, ClientOperation::Together(_)) && !world.faults.borrow().is_empty() {
                    // A member may have missed it by a fault. The user ends such a program.
                    world.after(Duration::ZERO, move |world| world.kill_client(client, 0));
                    std::future::pending::<()>().await;
                }
                world.break_law("wait", format!("client {client}: {operation:?} does not end"));
                true
            };
            let work = async {
                self.world.log(|| format!("client {client} begins {operation:?}"));
                let is_done = self.perform(operation).await.is_ok();
                self.world.log(|| format!("client {client} ends {operation:?}: {is_done}"));
                false
            };
            if first_of(work, too_long).await || self.world.broken.borrow().is_some() {
                break;
            }
        }
    }

    async fn perform(&mut self, operation: ClientOperation) -> Done {
        match operation {
            ClientOperation::Write(target, offset, bytes) => self.write(target, offset, bytes).await,
            ClientOperation::Append(target, bytes) => self.append(target, bytes).await,
            ClientOperation::Cut(target, length) => self.cut(target, length).await,
            ClientOperation::Read(target, offset, bytes, asks) => {
                self.read(target, offset, bytes, asks).await
            }
            ClientOperation::Send(target) => self.send(target).await,
            ClientOperation::Sync(target) => self.sync(target).await,
            ClientOperation::Close(target) => self.close(target).await,
            ClientOperation::Make(name) => self.make(name).await,
            ClientOperation::Replace(name, bytes) => self.replace(name, bytes).await,
            ClientOperation::Rename(from, to) => self.rename(from, to).await,
            ClientOperation::Link(from, to) => self.link(from, to).await,
            ClientOperation::Remove(name) => self.remove(name).await,
            ClientOperation::FlushNames => self.flush_names().await,
            ClientOperation::SyncAll => self.sync_all().await,
            ClientOperation::Lock(file, offset, bytes, is_exclusive) => {
                self.lock(file, offset, bytes, is_exclusive).await
            }
            ClientOperation::Unlock(file) => self.unlock(file).await,
            ClientOperation::Together(index) => self.together(index).await,
            ClientOperation::Pause(time) => {
                self.machine.sleep_until(self.machine.now() + Duration::from_micros(time)).await;
                Ok(())
            }
        }
    }

    /// Returns an open file, which is opened first if necessary.
    async fn opened(&mut self, target: FileTarget) -> Done<usize> {
        match target {
            FileTarget::Shared(file) => {
                let index = file as usize;
                if !self.open.contains_key(&index) {
                    let asked = self.now();
                    let opened = self.tree.open(look(&shared_path(file))).await;
                    let opened = self.check("opening a shared file", opened)?;
                    self.open.insert(index, Open { file: Rc::new(opened), asked });
                }
                Ok(index)
            }
            FileTarget::Own(name) => self.opened_own(name).await,
        }
    }

    async fn opened_own(&mut self, name: u64) -> Done<usize> {
        let possible = self.possible_files(name);
        if let [Some(file)] = possible[..]
            && self.open.contains_key(&file)
        {
            return Ok(file);
        }
        let (asked, cuts) = (self.now(), self.world.cuts.get());
        let opened = self.tree.open(look(&self.path(name))).await;
        let is_disturbed = self.world.cuts.get() != cuts;
        let observe = |what: &str, is_so: &dyn Fn(&State) -> bool| {
            if !is_disturbed {
                let observed = self.world.names.borrow_mut()[self.client].observe(what, is_so);
                self.world.keep("names", &format!("client {}: name {name}", self.client), observed);
            }
        };
        match opened {
            Err(error) if error.is_refused(TreeRefusal::NotFound) => {
                observe("it is missing", &|state| !state.contains_key(&name));
                Err(Excused)
            }
            Err(error) => self.check("opening a private file", Err(error)),
            Ok(opened) => {
                let candidates: Vec<usize> = possible.into_iter().flatten().collect();
                let file = self.world.file_of(opened.number(), &candidates);
                observe(&format!("it is {file:?}"), &|state| state.get(&name) == file.as_ref());
                let Some(file) = file else { return Err(Excused) };
                let before = self.open.insert(file, Open { file: Rc::new(opened), asked });
                if let Some(before) = before {
                    self.close_file(file, before).await?;
                }
                Ok(file)
            }
        }
    }

    /// Returns the files that a private name may have.
    fn possible_files(&self, name: u64) -> Vec<Option<usize>> {
        let names = self.world.names.borrow();
        let mut files: Vec<_> =
            names[self.client].possible().iter().map(|state| state.get(&name).copied()).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    fn handle(&self, file: usize) -> Rc<OpenTreeFile<SimMachine>> {
        self.open[&file].file.clone()
    }

    async fn write(&mut self, target: FileTarget, offset: u64, bytes: u64) -> Done {
        let file = self.opened(target).await?;
        self.write_to(file, offset, bytes).await
    }

    async fn write_to(&mut self, file: usize, offset: u64, bytes: u64) -> Done {
        let (stamp, process, now) = (self.world.stamp(), self.process, self.now());
        let begun = self.world.file(file, |file| file.begin_write(stamp, process, offset, bytes, now));
        let written = self.handle(file).write(offset, Payload::from(bytes_of(stamp, bytes))).await;
        self.check_file(file, "a write", written)?;
        self.note(file, |history, _, now| history.accept(begun, now));
        Ok(())
    }

    async fn append(&mut self, target: FileTarget, bytes: u64) -> Done {
        let file = self.opened(target).await?;
        let (stamp, started) = (self.world.stamp(), self.now());
        // Until it succeeds, its offset is unknown.
        let appending = self.world.file(file, |file| file.begin_append(started));
        let appended = self.handle(file).append(Payload::from(bytes_of(stamp, bytes))).await;
        let offset = self.check_file(file, "an append", appended)?;
        self.note(file, |history, process, now| {
            let begun = history.end_append(appending, stamp, process, offset, bytes);
            history.accept(begun, now);
        });
        Ok(())
    }

    async fn cut(&mut self, target: FileTarget, length: u64) -> Done {
        let file = self.opened(target).await?;
        let (process, now) = (self.process, self.now());
        let begun = self.world.file(file, |file| file.begin_cut(process, length, now));
        let cut = self.handle(file).set_len(length).await;
        self.check_file(file, "setting a length", cut)?;
        self.note(file, |history, _, now| history.accept(begun, now));
        Ok(())
    }

    async fn read(&mut self, target: FileTarget, offset: u64, bytes: u64, asks: bool) -> Done {
        let file = self.opened(target).await?;
        let handle = self.handle(file);
        if asks {
            let asked = self.now();
            let attributes = handle.attributes().await;
            self.check_file(file, "a query of the size", attributes)?;
            self.open.get_mut(&file).expect("it is open").asked = asked;
        }
        let (started, length) = (self.now(), handle.known().size);
        let read = handle.paged().read(offset, bytes).await;
        let data = self.check_file(file, "a read", read)?.to_vec().expect("real bytes");
        let opened = self.open[&file].asked;
        let reading = ReadCall { reader: self.process, opened, started, ended: self.now() };
        let faults = self.world.faults.borrow().clone();
        let checked = self.world.file(file, |file| {
            file.check_length(length, &reading, &faults)?;
            file.check(offset, &data, &reading, &faults)
        });
        self.world.keep("contents", &format!("client {}: file {file}", self.client), checked);
        Ok(())
    }

    async fn send(&mut self, target: FileTarget) -> Done {
        let file = self.opened(target).await?;
        let started = self.now();
        let sent = self.handle(file).flush().await;
        self.check_file(file, "sending", sent)?;
        self.note(file, |history, process, now| history.settle(process, started, now));
        Ok(())
    }

    async fn sync(&mut self, target: FileTarget) -> Done {
        let file = self.opened(target).await?;
        self.sync_file(file).await
    }

    async fn sync_file(&mut self, file: usize) -> Done {
        let started = self.now();
        let synced = self.handle(file).sync().await;
        self.check_file(file, "a sync", synced)?;
        self.note(file, |history, process, now| history.persist(process, started, now));
        Ok(())
    }

    async fn close(&mut self, target: FileTarget) -> Done {
        let file = match target {
            FileTarget::Shared(file) => file as usize,
            FileTarget::Own(name) => match self.possible_files(name)[..] {
                [Some(file)] => file,
                _ => return Ok(()),
            },
        };
        match self.open.remove(&file) {
            Some(open) => self.close_file(file, open).await,
            None => Ok(()),
        }
    }

    async fn close_file(&mut self, file: usize, open: Open) -> Done {
        self.world.locks.borrow_mut().retain(|held| held.process != self.process || held.file != file);
        let started = self.now();
        let Ok(handle) = Rc::try_unwrap(open.file) else { return Ok(()) };
        let closed = handle.close().await;
        self.check_file(file, "a close", closed)?;
        self.note(file, |history, process, now| history.settle(process, started, now));
        Ok(())
    }

    /// Performs an operation on names and records its outcome.
    async fn change_names<T>(
        &mut self,
        what: &str,
        perform: impl Fn(&State) -> Option<State>,
        change: impl Future<Output = fs::Result<T>>,
    ) -> Done<T> {
        let (client, cuts) = (self.client, self.world.cuts.get());
        let before = self.world.names.borrow_mut()[client].begin(&perform);
        let result = change.await;
        let outcome = match &result {
            Ok(_) => Outcome::Done,
            Err(error)
                if error.is_refused(TreeRefusal::NotFound) || error.is_refused(TreeRefusal::Exists) =>
            {
                Outcome::Refused
            }
            Err(_) => Outcome::Unknown,
        };
        let is_disturbed = self.world.cuts.get() != cuts;
        let ended = self.world.names.borrow_mut()[client].end(before, outcome, is_disturbed, perform);
        let refusal = result.as_ref().err().map(|error| format!(" ({error})")).unwrap_or_default();
        self.world.keep("names", &format!("client {client}: {what}{refusal}"), ended);
        if outcome == Outcome::Unknown {
            // A rename flushes the file first, and reports its losses.
            self.world.disclaim(self.process);
        }
        match (outcome, result) {
            (Outcome::Refused, _) => Err(Excused),
            (_, result) => self.check(what, result),
        }
    }

    async fn made(tree: &Tree<SimMachine>, path: &str) -> fs::Result<OpenTreeFile<SimMachine>> {
        let stripes = tree.cache().client().disks();
        let new = NewInode::File { striping: Striping::new(BLOCK, stripes)?, disks: tree.all_disks().await? };
        let make = TreeOperation::Make { at: at(path), new, mode: 0o644, uid: 0, gid: 0, exclusive: true };
        tree.open(make).await
    }

    fn note_made(&mut self, file: usize, made: OpenTreeFile<SimMachine>, asked: EventTime) {
        self.world.file(file, |file| file.number = Some(made.number()));
        self.open.insert(file, Open { file: Rc::new(made), asked });
    }

    async fn make(&mut self, name: u64) -> Done {
        let (file, tree, path, asked) =
            (self.world.new_file(), self.tree.clone(), self.path(name), self.now());
        let perform = |state: &State| {
            let mut after = state.clone();
            after.insert(name, file).is_none().then_some(after)
        };
        let made = self.change_names("creating a file", perform, Self::made(&tree, &path)).await?;
        self.note_made(file, made, asked);
        Ok(())
    }

    async fn replace(&mut self, name: u64, bytes: u64) -> Done {
        let (file, tree, asked) = (self.world.new_file(), self.tree.clone(), self.now());
        let hidden = format!("{}/.new{}", directory_of(self.client), self.world.stamp());
        let made = Self::made(&tree, &hidden).await;
        let made = self.check("creating a hidden file", made)?;
        self.note_made(file, made, asked);
        self.write_to(file, 0, bytes).await?;
        self.sync_file(file).await?;
        let (from, to) = (at(&hidden), at(&self.path(name)));
        let rename = tree.unname(TreeOperation::Rename { from, to, mode: RenameMode::Replace });
        let perform = |state: &State| {
            let mut after = state.clone();
            after.insert(name, file);
            Some(after)
        };
        self.change_names("replacing a file", perform, rename).await
    }

    async fn rename(&mut self, from: u64, to: u64) -> Done {
        let tree = self.tree.clone();
        let (old, new) = (at(&self.path(from)), at(&self.path(to)));
        let rename = tree.unname(TreeOperation::Rename { from: old, to: new, mode: RenameMode::Replace });
        let perform = |state: &State| {
            let (file, mut after) = (*state.get(&from)?, state.clone());
            // Two names of one file both stay, as in POSIX.
            if after.insert(to, file) != Some(file) {
                after.remove(&from);
            }
            Some(after)
        };
        self.change_names("a rename", perform, rename).await
    }

    async fn link(&mut self, from: u64, to: u64) -> Done {
        let file = self.opened_own(from).await?;
        let (tree, number, at) = (self.tree.clone(), self.handle(file).number(), at(&self.path(to)));
        let link = async { tree.perform(TreeOperation::Link { number, at }).await.map(drop) };
        let perform = |state: &State| {
            let mut after = state.clone();
            after.insert(to, file).is_none().then_some(after)
        };
        self.change_names("a link", perform, link).await
    }

    async fn remove(&mut self, name: u64) -> Done {
        let (tree, at) = (self.tree.clone(), at(&self.path(name)));
        let remove = tree.unname(TreeOperation::Remove { at, what: RemovalTarget::File });
        let perform = |state: &State| {
            let mut after = state.clone();
            after.remove(&name).map(|_| after)
        };
        self.change_names("a removal", perform, remove).await
    }

    fn note_names_flushed(&self, is_done: bool) {
        let flushed = self.world.names.borrow_mut()[self.client].flush(is_done);
        self.world.keep("names", &format!("client {}", self.client), flushed);
    }

    async fn flush_names(&mut self) -> Done {
        let flushed = self.tree.flush().await;
        self.note_names_flushed(flushed.is_ok());
        self.check("a flush of names", flushed)
    }

    async fn sync_all(&mut self) -> Done {
        let started = self.now();
        let synced = self.tree.sync().await;
        self.note_names_flushed(synced.is_ok());
        if synced.is_err() {
            self.world.disclaim(self.process);
        }
        self.check("a sync of all files", synced)?;
        let (process, now) = (self.process, self.now());
        self.world.files.borrow_mut().iter_mut().for_each(|file| file.persist_settled(process, started, now));
        Ok(())
    }

    async fn lock(&mut self, file: u64, offset: u64, bytes: u64, is_exclusive: bool) -> Done {
        let file = self.opened(FileTarget::Shared(file)).await?;
        let number = self.handle(file).number();
        let range = LockRange { first: offset, last: offset + bytes - 1 };
        let mode = if is_exclusive { LockMode::Exclusive } else { LockMode::Shared };
        let locked = self.tree.lock(number, 1, range, mode).await;
        if self.check("a lock", locked)?.is_some() {
            return Ok(());
        }
        let conflicts = |held: &&Held| {
            held.file == file
                && held.process != self.process
                && (is_exclusive || held.mode == LockMode::Exclusive)
                && held.range.first <= range.last
                && range.first <= held.range.last
        };
        let others: Vec<Held> = self.world.locks.borrow().iter().filter(conflicts).cloned().collect();
        let (tree, client, process) = (self.tree.clone(), self.client, self.process);
        let held = Held { client, process, file, range, mode, tree };
        self.world.replace_lock(held);
        for other in others {
            let still_has = other.tree.has_locks(number, 1) && other.tree.check_locks(number).await.is_ok();
            let still_held = |process| {
                let locks = self.world.locks.borrow();
                locks.iter().any(|held| held.process == process && held.file == file)
            };
            let relies = self.tree.check_locks(number).await.is_ok();
            // A metadata server whose clock jumps takes leases for expired.
            let has_jumped = self.world.has_fault(|fault| matches!(fault, Fault::JumpClock(..)));
            if !has_jumped && still_has && relies && still_held(other.process) && still_held(process) {
                let why = format!("process {} has {:?} of file {file} too", other.process, other.range);
                self.world.break_law("locks", format!("process {process} has {range:?}, and {why}"));
            }
        }
        Ok(())
    }

    /// Takes part in a collective operation of all clients, with a separate team.
    async fn together(&mut self, index: usize) -> Done {
        let collective = self.world.schedule.collectives[index];
        let file = self.opened(FileTarget::Shared(collective.file)).await?;
        let (rank, size) = (self.client as u32, self.world.schedule.clients.len() as u32);
        let client = self.tree.cache().client().clone();
        let team = TeamMembership::form(&client, &format!("collective{index}"), rank, size).await;
        let team = self.check("forming a team", team)?;
        let moved = match collective.writes {
            true => self.write_together(&team, file, collective).await,
            false => self.read_together(&team, file, collective).await,
        };
        if collective.syncs && moved.is_ok() {
            let (started, turn) = (self.now(), team.turn(team.next_turn(), TeamStep::Sync).await);
            let synced = self.handle(file).sync_together(&turn).await;
            self.check_file(file, "a sync together", synced)?;
            if !self.world.has_disk_faults() {
                self.note(file, |history, process, now| history.persist_together(process, started, now));
            }
        }
        moved
    }

    async fn write_together(
        &mut self,
        team: &TeamMembership<SimMachine>,
        file: usize,
        collective: CollectiveAccess,
    ) -> Done {
        let (selection, offsets) = self.selected(collective);
        let (process, now, record) = (self.process, self.now(), collective.record);
        let (mut begun, mut data) = (Vec::new(), Vec::new());
        for offset in offsets {
            let stamp = self.world.stamp();
            begun.push(self.world.file(file, |file| file.begin_write(stamp, process, offset, record, now)));
            data.extend(bytes_of(stamp, record));
        }
        let settings = selected_settings(collective);
        let turn = team.turn(team.next_turn(), TeamStep::write(settings.method)).await;
        let handle = self.handle(file);
        let written = handle.write_selected(Some(&turn), &selection, &Memory::real(data), settings).await;
        self.check_file(file, "a collective write", written)?;
        for begun in begun {
            self.note(file, |history, _, now| {
                history.accept_collective(begun, collective.in_two_phases, now)
            });
        }
        Ok(())
    }

    async fn read_together(
        &mut self,
        team: &TeamMembership<SimMachine>,
        file: usize,
        collective: CollectiveAccess,
    ) -> Done {
        let (selection, offsets) = self.selected(collective);
        let memory = Memory::real(vec![0; selection.bytes() as usize]);
        let settings = selected_settings(collective);
        let started = self.now();
        let turn = team.turn(team.next_turn(), TeamStep::read(settings.method)).await;
        let handle = self.handle(file);
        let read = handle.read_selected(Some(&turn), &selection, &memory, settings).await;
        let bytes = self.check_file(file, "a collective read", read)?;
        let data = memory.into_vec().expect("real memory");
        let reading = ReadCall { reader: self.process, opened: started, started, ended: self.now() };
        if self.world.has_fault(|fault| matches!(fault, Fault::FlipRead(_) | Fault::FlipWrite(_))) {
            // Records have no checksums between their message and their place in a block.
            return Ok(());
        }
        let faults = self.world.faults.borrow().clone();
        for (record, offset) in data[..bytes as usize].chunks(collective.record as usize).zip(offsets) {
            let checked = self.world.file(file, |file| file.check(offset, record, &reading, &faults));
            self.world.keep("contents", &format!("client {}: file {file}, together", self.client), checked);
        }
        Ok(())
    }

    /// Returns this client's part of a collective operation, and the offsets of its records.
    fn selected(&self, collective: CollectiveAccess) -> (Selection, Vec<u64>) {
        let CollectiveAccess { offset, record, count, .. } = collective;
        let stride = record * self.world.schedule.clients.len() as u64;
        let first = offset + record * self.client as u64;
        let selection = Selection::vector(Extent::new(first, record), count, stride).expect("within a file");
        (selection, (0..count).map(|index| first + index * stride).collect())
    }

    async fn unlock(&mut self, file: u64) -> Done {
        let file = file as usize;
        self.world.locks.borrow_mut().retain(|held| held.process != self.process || held.file != file);
        let Some(open) = self.open.get(&file) else { return Ok(()) };
        let unlocked = self.tree.unlock(open.file.number(), 1, LockRange::WHOLE).await;
        self.check("an unlock", unlocked)
    }
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
    let test = async move {
        let nodes = CrashingNodes::start(io_nodes, io_node_settings(&schedule));
        let world = Rc::new(World::new(schedule, nodes, clients, checker, log));
        world.set_up().await?;
        (0..world.schedule.clients.len()).for_each(|client| world.start_process(client, 0));
        world.inject_faults().await;
        world.working.none().await;
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
    RunResult { digest: simulation.digest(), outcome }
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

fn selected_settings(collective: CollectiveAccess) -> SelectedSettings {
    let method = match collective.in_two_phases {
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
            faults: RefCell::default(),
            cuts: Cell::default(),
            healed: Cell::default(),
            stamps: Cell::default(),
            processes: Cell::default(),
            next: RefCell::new(vec![0; count]),
            locks: RefCell::default(),
            broken: RefCell::default(),
            working: InFlight::new(),
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
        for client in 0..self.schedule.clients.len() {
            let (at, new) = (at(&directory_of(client)), NewInode::Directory);
            let make = TreeOperation::Make { at, new, mode: 0o755, uid: 0, gid: 0, exclusive: true };
            tree.inode(make).await.map_err(told)?;
        }
        for file in 0..SHARED {
            let made = Process::made(&tree, &shared_path(file)).await.map_err(told)?;
            self.new_file();
            self.files.borrow_mut()[file as usize].number = Some(made.number());
            made.sync().await.map_err(told)?;
            made.close().await.map_err(told)?;
        }
        tree.flush().await.map_err(told)
    }

    /// Starts a process that executes the remaining operations of a client, unless another one was started after the
    /// first `count`. If it cannot connect, the next one tries.
    fn start_process(self: &Rc<Self>, client: usize, count: u64) {
        let (machine, started) = self.clients.borrow()[client].clone();
        if started != count {
            return;
        }
        let machine = if count == 0 { Some(machine) } else { self.spare.borrow_mut().pop() };
        let Some(machine) = machine else { return };
        self.clients.borrow_mut()[client] = (machine.clone(), count + 1);
        let (world, process, working) = (self.clone(), self.new_process(), self.working.begin());
        machine.clone().spawn("process", async move {
            let (base, io_nodes) = (base_of(&world.schedule), world.nodes.names());
            let settings = page_cache_settings(&world.schedule);
            let started = machine.now();
            match connect(base, &machine, &io_nodes, world.schedule.seed, settings).await {
                Ok(tree) => {
                    Process { world, machine, client, process, tree, open: BTreeMap::new() }.work().await
                }
                Err(error)
                    if world.faults.borrow().is_empty() || machine.now() > world.patience_end(started) =>
                {
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
        Instant::from_nanos(self.healed.get()).max(started) + PATIENCE
    }

    /// Injects the faults at their times.
    async fn inject_faults(self: &Rc<Self>) {
        let start = self.checker.now();
        let mut faults = self.schedule.faults.clone();
        faults.sort_by_key(|fault| fault.at);
        for (index, fault) in faults.into_iter().enumerate() {
            self.checker.sleep_until(start + Duration::from_micros(fault.at)).await;
            if self.broken.borrow().is_some() {
                return;
            }
            self.log(|| format!("{:?}", fault.fault));
            self.inject(index as u64, fault.fault);
        }
    }

    /// Injects a fault. A task of the checker ends it.
    fn inject(self: &Rc<Self>, index: u64, fault: Fault) {
        let seed = machine::mix(self.schedule.seed ^ index << 32) >> 30;
        let clients: Vec<SimMachine> =
            self.clients.borrow().iter().map(|(machine, _)| machine.clone()).collect();
        self.note_fault(self.checker.now());
        let io_node = |io_node: u64| (io_node % self.nodes.count()) as usize;
        let client = |client: u64| (client % clients.len() as u64) as usize;
        let set = |cell: &Cell<u32>, count: u64| {
            self.note_pending_fault();
            cell.set(cell.get() + count as u32);
        };
        match fault {
            Fault::PowerCut(victim) => {
                self.nodes.crash(io_node(victim), seed);
                self.cuts.set(self.cuts.get() + 1);
                self.names.borrow_mut().iter_mut().for_each(PossibleNames::power_cut);
            }
            Fault::Kill(victim) => self.nodes.kill(io_node(victim)),
            Fault::KillClient(victim, pause) => self.kill_client(client(victim), pause),
            Fault::Reset(victim, other) => clients[client(victim)].reset(self.nodes.names()[io_node(other)]),
            Fault::BlockToIoNode(from, to, time) => {
                self.block(&clients[client(from)], self.nodes.node(io_node(to)), time);
            }
            Fault::BlockToClient(from, to, time) => {
                self.block(self.nodes.node(io_node(from)), &clients[client(to)], time);
            }
            Fault::HoldDisk(victim, time) => {
                let victim = io_node(victim);
                self.nodes.faults(victim).hold();
                self.later(time, move |world| world.nodes.faults(victim).release());
            }
            Fault::FailWrites(victim, count) => {
                set(&self.nodes.faults(io_node(victim)).failing_writes, count);
            }
            Fault::FailFlushes(victim, count) => {
                set(&self.nodes.faults(io_node(victim)).failing_flushes, count);
            }
            Fault::FailMedium(victim, count) => set(&self.nodes.faults(io_node(victim)).failing_syncs, count),
            Fault::FailTransactions(victim, count) => {
                set(&self.nodes.faults(io_node(victim)).failing_transactions, count);
            }
            Fault::FailRemovals(victim, count) => {
                set(&self.nodes.faults(io_node(victim)).failing_removals, count);
            }
            Fault::FillDisk(victim, room, time) => {
                let victim = io_node(victim);
                self.nodes.faults(victim).room.set(Some(room));
                self.later(time, move |world| world.nodes.faults(victim).room.set(None));
            }
            Fault::FlipRead(victim) => set(&self.nodes.faults(io_node(victim)).flipped_reads, 1),
            Fault::FlipWrite(victim) => set(&self.nodes.faults(io_node(victim)).flipped_writes, 1),
            Fault::JumpClock(victim, time) => {
                // Later locks and leases are affected, too.
                self.note_pending_fault();
                let jumped = &self.nodes.faults(io_node(victim)).jumped;
                jumped.set(jumped.get() + Duration::from_millis(time));
            }
        }
    }

    fn kill_client(self: &Rc<Self>, client: usize, pause: u64) {
        let (machine, count) = {
            let (machine, count) = &mut self.clients.borrow_mut()[client];
            // No attempt to connect starts another process.
            *count += 1;
            (machine.clone(), *count)
        };
        machine.kill();
        self.names.borrow_mut()[client].end_process();
        self.locks.borrow_mut().retain(|held| held.client != client);
        self.later(pause, move |world| world.start_process(client, count));
    }

    fn block(self: &Rc<Self>, from: &SimMachine, to: &SimMachine, time: u64) {
        from.block(to.node());
        let (from, to) = (from.clone(), to.node());
        self.later(time, move |_| from.unblock(to));
    }

    /// Ends a fault after `time` microseconds.
    fn later(self: &Rc<Self>, time: u64, end: impl FnOnce(Rc<World>) + 'static) {
        let time = Duration::from_micros(time);
        self.note_fault(self.checker.now() + time);
        self.after(time, end);
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

    /// Ends all faults and all processes. In half of the runs the power of all I/O nodes fails.
    async fn heal(&self) {
        for io_node in 0..self.nodes.count() as usize {
            let faults = self.nodes.faults(io_node);
            let pending = [
                &faults.failing_writes,
                &faults.failing_flushes,
                &faults.failing_syncs,
                &faults.failing_transactions,
                &faults.failing_removals,
                &faults.flipped_reads,
                &faults.flipped_writes,
            ];
            pending.into_iter().for_each(|pending| pending.set(0));
        }
        self.clients.borrow().iter().for_each(|(machine, _)| machine.kill());
        self.names.borrow_mut().iter_mut().for_each(PossibleNames::end_process);
        // A bit that flipped in a cache stays until the restart.
        let has_flipped = self.has_fault(|fault| matches!(fault, Fault::FlipRead(_)));
        if self.schedule.seed.is_multiple_of(2) || has_flipped {
            self.note_fault(self.checker.now());
            for io_node in 0..self.nodes.count() {
                self.nodes.crash(io_node as usize, machine::mix(self.schedule.seed ^ io_node) >> 30);
            }
            self.names.borrow_mut().iter_mut().for_each(PossibleNames::power_cut);
        }
        self.pause(QUIET).await;
    }

    /// Checks all names and files, as a client sees them that has seen nothing before.
    async fn check_all(&self) -> Result<(), String> {
        let tree = self.tree().await?;
        let records = tree.survey().await.map_err(told)?;
        if let Some(complaint) = defects(&records).first() {
            self.break_law("namespace", complaint.text.clone());
        }
        for client in 0..self.schedule.clients.len() {
            self.check_directory(&tree, client).await?;
        }
        let inodes = records.iter().filter_map(|record| match record {
            SurveyedRecord::Inode(inode) => Some(inode),
            _ => None,
        });
        let named = inodes.clone().filter(|inode| inode.layout().is_some() && inode.links > 0);
        let numbers: BTreeSet<FileNumber> = named.map(|inode| inode.number).collect();
        let files = self.files.borrow().len();
        for file in 0..files {
            let number = self.files.borrow()[file].number;
            if let Some(number) = number.filter(|number| numbers.contains(number)) {
                self.check_file(&tree, file, number).await?;
            }
        }
        self.check_remains(&tree, &inodes.map(|inode| FileId(inode.number.0)).collect()).await
    }

    /// Compares a directory with its possible states.
    async fn check_directory(&self, tree: &Tree<SimMachine>, client: usize) -> Result<(), String> {
        let directory = tree.inode(look(&directory_of(client))).await.map_err(told)?;
        let entries = tree.entries(directory.number).await.map_err(told)?;
        let possible = self.names.borrow()[client].possible().to_vec();
        let candidates: Vec<usize> = possible.iter().flat_map(|state| state.values().copied()).collect();
        let mut found = State::new();
        for entry in entries {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            let Some(name) = name.strip_prefix('n').and_then(|name| name.parse().ok()) else { continue };
            let candidates: Vec<usize> = possible
                .iter()
                .filter_map(|state| state.get(&name).copied())
                .chain(candidates.clone())
                .collect();
            found.insert(name, self.file_of(entry.inode.number, &candidates).unwrap_or(usize::MAX));
        }
        let what = format!("client {client}: the directory is {found:?}");
        let observed = self.names.borrow_mut()[client].observe(&what, |state| *state == found);
        self.keep("names", "in the end", observed);
        Ok(())
    }

    /// Reads a file twice and compares it with its history.
    async fn check_file(
        &self,
        tree: &Tree<SimMachine>,
        file: usize,
        number: FileNumber,
    ) -> Result<(), String> {
        let opened = self.checker.now().as_nanos();
        let read = async {
            let open = tree.open(TreeOperation::Get { number }).await?;
            let length = open.known().size;
            let data = open.paged().read(0, length).await?.to_vec().expect("real bytes");
            open.paged().file().refresh();
            open.paged().note_written_past(length);
            let again = open.paged().read(0, length).await?.to_vec().expect("real bytes");
            open.close().await?;
            fs::Result::Ok((length, data, again))
        };
        let what = format!("in the end: file {file}");
        match read.await {
            Ok((length, data, again)) => {
                if data != again {
                    self.break_law("contents", format!("{what}: a second read returns other bytes"));
                }
                let reading = ReadCall {
                    reader: usize::MAX - 1,
                    opened,
                    started: opened,
                    ended: self.checker.now().as_nanos(),
                };
                let faults = self.faults.borrow().clone();
                let checked = self.file(file, |file| {
                    file.check_length(length, &reading, &faults)?;
                    file.check(0, &data, &reading, &faults)
                });
                self.keep("contents", &what, checked);
            }
            Err(error) => {
                if self.faults.borrow().is_empty() || self.files.borrow()[file].is_persistent() {
                    self.break_law("failure", format!("{what}: {error}"));
                }
            }
        }
        Ok(())
    }

    /// Removes contents without one of these files: none may be left after that.
    async fn check_remains(&self, tree: &Tree<SimMachine>, files: &BTreeSet<FileId>) -> Result<(), String> {
        let client = tree.cache().client();
        let left = async || {
            let left = client.list_numbered().await.map_err(told)?;
            let unnamed = left.iter().map(|(_, stripe)| stripe.file).filter(|file| !files.contains(file));
            Ok::<_, String>(unnamed.collect::<BTreeSet<FileId>>())
        };
        let unnamed: Vec<FileId> = left().await?.into_iter().collect();
        client.remove_numbered(&unnamed).await.map_err(told)?;
        let left = left().await?;
        if !left.is_empty() {
            self.break_law("namespace", format!("contents of {left:?} are left without a file"));
        }
        Ok(())
    }
}

pub(crate) fn told(error: Box<Error>) -> String {
    error.to_string()
}
