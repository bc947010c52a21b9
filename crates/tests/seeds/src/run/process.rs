//! Process of a client: its program, and its operations on contents.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use fs::{Error, FailureKind, OpenTreeFile, Tree, WriteCache};
use machine::{Duration, InFlight, Machine, Payload, Permits, first_of};
use namespace::{TreeOperation, TreeRefusal};
use sim::SimMachine;

use super::{World, directory_of, look, shared_path};
use crate::contents::{EventTime, History, ReadCall, bytes_of};
use crate::names::State;
use crate::schedule::{ClientOperation, FileTarget, SHARED};

/// Number of times that a client may report losses after the last fault: with a disconnect, for files, for names.
const REPORTS: u32 = 3;

/// Time after a failed call, within which a client connects again.
const RECOVERY: Duration = Duration::from_secs(1);

/// Process of a client.
pub(super) struct Process {
    pub(super) world: Rc<World>,
    machine: SimMachine,
    pub(super) client: usize,
    pub(super) process: usize,
    pub(super) tree: Tree<SimMachine>,
    /// Write cache, if the process is a member of a job.
    pub(super) write_cache: Option<WriteCache<SimMachine>>,
    open: RefCell<BTreeMap<usize, Open>>,
    /// True if no operation may fail, except on files that a power cut has taken.
    is_strict: Cell<bool>,
    /// Serialises operations on names, whose history is a sequence.
    naming: Permits,
    /// Serialises operations on locks.
    pub(super) locking: Permits,
    /// Serialises collective operations, which all clients enter in the same order.
    pub(super) joining: Permits,
}

/// Handles of an open file, of which operations use the last.
pub(super) struct Open {
    pub(super) handles: Vec<Rc<OpenTreeFile<SimMachine>>>,
    /// Time of the last query of the size.
    pub(super) asked: EventTime,
    /// Number of times that unsent writes were discarded, as far as the history has it.
    given_up: u64,
}

/// An operation ended without effect, or its failure is excused by a fault.
pub(super) struct Excused;

pub(super) type Done<T = ()> = Result<T, Excused>;

impl Process {
    pub(super) fn new(
        world: Rc<World>,
        machine: SimMachine,
        client: usize,
        process: usize,
        tree: Tree<SimMachine>,
        write_cache: Option<WriteCache<SimMachine>>,
    ) -> Process {
        Process {
            world,
            machine,
            client,
            process,
            tree,
            write_cache,
            open: RefCell::default(),
            is_strict: Cell::default(),
            naming: Permits::new(1),
            locking: Permits::new(1),
            joining: Permits::new(1),
        }
    }

    pub(super) fn now(&self) -> EventTime {
        self.world.time()
    }

    pub(super) fn path(&self, name: u64) -> String {
        format!("{}/n{name}", directory_of(self.client))
    }

    /// Returns the value of a result. Breaks a law if it is an error without an excuse.
    pub(super) fn check<T>(&self, what: &str, result: fs::Result<T>) -> Done<T> {
        result.map_err(|error| {
            self.world.log(|| format!("client {}: {what}: {error}", self.client));
            // A power cut may damage a unit of the format that was written since the last flush.
            let is_damage = self.world.schedule.formatted && error.is_remote(FailureKind::Damaged);
            // Another member of a job passes on only the text of a missing stripe.
            let is_missing = matches!(*error, Error::MissingStripe { .. })
                || error.to_string().contains("is missing on all");
            let is_loss = is_missing || error.is_refused(TreeRefusal::Removed) || is_damage;
            if self.is_strict.get() && !(is_loss && self.world.cuts.get() > 0) {
                self.world.break_law("recovery", format!("client {}: {what}: {error}", self.client));
            }
            let is_excused = self.world.has_faults.get();
            if matches!(*error, Error::Protocol { .. }) || !is_excused {
                self.world.break_law("failure", format!("client {}: {what}: {error}", self.client));
            }
            Excused
        })
    }

    /// Returns the value of a result of an operation on a file, as [`check`](Self::check) does. An error may report any
    /// failed write of this process to the file.
    pub(super) fn check_file<T>(&self, file: usize, what: &str, result: fs::Result<T>) -> Done<T> {
        if result.is_err() {
            self.world.file(file, |file| file.disclaim(self.process));
        }
        self.check(what, result)
    }

    /// Records the success of a call in the history of a file, with this process and the present time.
    pub(super) fn note(&self, file: usize, record: impl FnOnce(&mut History, usize, EventTime)) {
        let (process, now) = (self.process, self.now());
        self.world.file(file, |history| record(history, process, now));
    }

    /// Executes the remaining operations of the client, several at a time if the schedule says so.
    pub(super) async fn work(self: Rc<Self>) {
        let others = InFlight::new();
        for _ in 1..self.world.schedule.at_once {
            let (process, working) = (self.clone(), others.begin());
            self.machine.spawn("thread", async move {
                process.work_alone().await;
                drop(working);
                Ok(())
            });
        }
        self.work_alone().await;
        others.none().await;
        if self.world.schedule.recovers && self.world.broken.borrow().is_none() {
            // A failure is recorded.
            let _ = self.recover().await;
        }
        // A process without faults must leave the job, else the others' flushes fail.
        let _ = self.leave_job().await;
    }

    /// Executes operations of the client until all have begun.
    async fn work_alone(&self) {
        loop {
            let index = self.world.next.borrow()[self.client];
            let Some(&operation) = self.world.schedule.clients[self.client].get(index) else { break };
            self.world.next.borrow_mut()[self.client] += 1;
            self.world.start_faults(Some((self.client, index)));
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
                if matches!(operation, ClientOperation::Together(_)) && world.has_faults.get() {
                    // A member may have missed it by a fault. The user ends such a program.
                    world.after(Duration::ZERO, move |world| world.kill_client(client, 0));
                    std::future::pending::<()>().await;
                }
                world.break_law("wait", format!("client {client}: {operation:?} does not end"));
                true
            };
            let work = async {
                self.world.log(|| format!("client {client} begins {operation:?}"));
                let _running = self.world.note_operation(client, operation);
                let is_done = self.perform(operation).await.is_ok();
                self.world.log(|| format!("client {client} ends {operation:?}: {is_done}"));
                false
            };
            if first_of(work, too_long).await || self.world.broken.borrow().is_some() {
                return;
            }
        }
    }

    /// Persists everything after the last fault. The first attempts may report losses. After that nothing may fail.
    async fn recover(&self) -> Done {
        self.world.faults_ended().await;
        for _ in 0..REPORTS {
            self.sync_each().await;
            self.machine.sleep_until(self.machine.now() + RECOVERY).await;
        }
        self.is_strict.set(!self.world.has_damage());
        for file in self.open_files() {
            self.write_to(file, file as u64, 100).await?;
            self.sync_file(file).await?;
            self.read_from(file, 0, 1 << 20, true).await?;
        }
        for (file, open) in self.open.take() {
            self.close_file(file, open).await?;
        }
        self.list().await?;
        self.sync_all().await?;
        for file in 0..SHARED {
            self.read(FileTarget::Shared(file), 0, 1 << 20, false).await?;
        }
        Ok(())
    }

    /// Persists each file and all names, and releases all locks.
    async fn sync_each(&self) {
        for file in self.open_files() {
            let _ = self.unlock_file(file).await;
            if self.cache_for(file).is_some() {
                // The first flush of a file after a restart of an I/O node fails for the other members.
                let _ = self.write_to(file, file as u64, 1).await;
            }
            // Each handle reports failed writes.
            let handles = self.open.borrow().get(&file).map(|open| open.handles.clone());
            for handle in handles.into_iter().flatten() {
                let _ = self.sync_through(file, &handle).await;
            }
        }
        // Each member reports failed flushes.
        let _ = self.flush_job(None).await;
        // As long as contents of a removed file stay because their removal failed, a sync of all files fails.
        let _ = self.tree.remove_orphans().await;
        let _ = self.sync_all().await;
    }

    pub(super) async fn perform(&self, operation: ClientOperation) -> Done {
        let _turn = match operation.is_of_names() {
            true => Some(self.naming.take().await),
            false => None,
        };
        match operation {
            ClientOperation::Write(target, offset, bytes) => self.write(target, offset, bytes).await,
            ClientOperation::Append(target, bytes) => self.append(target, bytes).await,
            ClientOperation::Cut(target, length) => self.cut(target, length).await,
            ClientOperation::Read(target, offset, bytes, asks) => {
                self.read(target, offset, bytes, asks).await
            }
            ClientOperation::Send(target) => self.send(target).await,
            ClientOperation::Sync(target) => self.sync(target).await,
            ClientOperation::Open(target) => self.open_again(target).await,
            ClientOperation::Close(target) => self.close(target).await,
            ClientOperation::WriteRecords(target, records) => self.write_records(target, records).await,
            ClientOperation::ReadRecords(target, records) => self.read_records(target, records).await,
            ClientOperation::List => self.list().await,
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
            ClientOperation::Unlock(file) => self.unlock_file(file as usize).await,
            ClientOperation::Together(index) => self.together(index).await,
            ClientOperation::FlushJob(file) => self.flush_job(file).await,
            ClientOperation::LeaveJob => self.leave_job().await,
            ClientOperation::Pause(time) => {
                self.machine.sleep_until(self.machine.now() + Duration::from_micros(time)).await;
                Ok(())
            }
        }
    }

    /// Returns an open file, which is opened first if necessary.
    pub(super) async fn opened(&self, target: FileTarget) -> Done<usize> {
        match target {
            FileTarget::Shared(file) => {
                let index = file as usize;
                if !self.is_open(index) {
                    let asked = self.now();
                    let opened = self.tree.open(look(&shared_path(file))).await;
                    let opened = self.check("opening a shared file", opened)?;
                    self.add_handle(index, opened, asked);
                }
                Ok(index)
            }
            FileTarget::Own(name) => {
                let _turn = self.naming.take().await;
                self.opened_own(name).await
            }
            FileTarget::Unnamed => self.unnamed().ok_or(Excused),
        }
    }

    /// Returns an open file that surely has no name.
    fn unnamed(&self) -> Option<usize> {
        let names = self.world.names.borrow();
        let has_name = |file: &usize| {
            (*file as u64) < SHARED
                || names[self.client].possible().iter().any(|state| state.values().any(|named| named == file))
        };
        self.open.borrow().keys().copied().find(|file| !has_name(file))
    }

    /// Opens a file once more.
    async fn open_again(&self, target: FileTarget) -> Done {
        let file = self.opened(target).await?;
        let (number, asked) = (self.handle(file)?.number(), self.now());
        let opened = self.tree.open(TreeOperation::Get { number }).await;
        if !self.is_open(file) && opened.as_ref().is_err_and(|error| error.is_refused(TreeRefusal::Removed)) {
            // Another thread has closed the last handle of a file without a name.
            return Err(Excused);
        }
        let opened = self.check_file(file, "opening a file once more", opened)?;
        self.add_handle(file, opened, asked);
        Ok(())
    }

    fn open_files(&self) -> Vec<usize> {
        self.open.borrow().keys().copied().collect()
    }

    fn is_open(&self, file: usize) -> bool {
        self.open.borrow().contains_key(&file)
    }

    /// Adds a handle of a file, whose size was queried at `asked`.
    pub(super) fn add_handle(&self, file: usize, handle: OpenTreeFile<SimMachine>, asked: EventTime) {
        let mut open = self.open.borrow_mut();
        let given_up = handle.paged().given_up();
        let open = open.entry(file).or_insert(Open { handles: Vec::new(), asked, given_up });
        open.handles.push(Rc::new(handle));
        open.asked = open.asked.max(asked);
    }

    /// Records a query of the size at `asked`.
    pub(super) fn note_asked(&self, file: usize, asked: EventTime) {
        if let Some(open) = self.open.borrow_mut().get_mut(&file) {
            open.asked = open.asked.max(asked);
        }
    }

    /// Records in the history if unsent writes of this process were discarded.
    fn note_discarded(&self, file: usize, handle: &OpenTreeFile<SimMachine>) {
        let given_up = handle.paged().given_up();
        let mut open = self.open.borrow_mut();
        if let Some(open) = open.get_mut(&file).filter(|open| open.given_up != given_up) {
            open.given_up = given_up;
            self.world.file(file, |file| file.discard(self.process));
        }
    }

    /// Returns the time of the last query of the size of an open file.
    pub(super) fn asked(&self, file: usize) -> Done<EventTime> {
        self.open.borrow().get(&file).map(|open| open.asked).ok_or(Excused)
    }

    pub(super) async fn opened_own(&self, name: u64) -> Done<usize> {
        let possible = self.possible_files(name);
        if let [Some(file)] = possible[..]
            && self.is_open(file)
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
                self.add_handle(file, opened, asked);
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

    pub(super) fn handle(&self, file: usize) -> Done<Rc<OpenTreeFile<SimMachine>>> {
        let open = self.open.borrow();
        open.get(&file).and_then(|open| open.handles.last()).cloned().ok_or(Excused)
    }

    pub(super) async fn write(&self, target: FileTarget, offset: u64, bytes: u64) -> Done {
        let file = self.opened(target).await?;
        self.write_to(file, offset, bytes).await
    }

    pub(super) async fn write_to(&self, file: usize, offset: u64, bytes: u64) -> Done {
        if let Some(cache) = self.cache_for(file) {
            return self.write_cached(cache, file, offset, bytes).await;
        }
        let (stamp, process, now) = (self.world.stamp(), self.process, self.now());
        let begun = self.world.file(file, |file| file.begin_write(stamp, process, offset, bytes, now));
        let written = self.handle(file)?.write(offset, Payload::from(bytes_of(stamp, bytes))).await;
        self.check_file(file, "a write", written)?;
        self.note(file, |history, _, now| history.accept(begun, now));
        Ok(())
    }

    async fn append(&self, target: FileTarget, bytes: u64) -> Done {
        let file = self.opened(target).await?;
        if let Some(cache) = self.cache_for(file) {
            return self.append_cached(cache, file, bytes).await;
        }
        let (stamp, started) = (self.world.stamp(), self.now());
        // Until it succeeds, its offset is unknown.
        let appending = self.world.file(file, |file| file.begin_append(stamp, started));
        let handle = self.handle(file)?;
        let appended = handle.append(Payload::from(bytes_of(stamp, bytes))).await;
        let offset = self.check_file(file, "an append", appended)?;
        self.note_discarded(file, &handle);
        self.note(file, |history, process, now| {
            let begun = history.end_append(appending, process, offset, bytes);
            history.accept(begun, now);
            let checked = history.check_append(begun, now, &self.world.losses.borrow());
            self.world.keep("contents", &format!("client {}: file {file}", self.client), checked);
        });
        Ok(())
    }

    async fn cut(&self, target: FileTarget, length: u64) -> Done {
        let file = self.opened(target).await?;
        let (process, now) = (self.process, self.now());
        let begun = self.world.file(file, |file| file.begin_cut(process, length, now));
        let handle = self.handle(file)?;
        self.flush_cached(file, &handle).await?;
        let cut = handle.set_len(length).await;
        self.check_file(file, "setting a length", cut)?;
        self.note(file, |history, _, now| history.accept(begun, now));
        Ok(())
    }

    pub(super) async fn read(&self, target: FileTarget, offset: u64, bytes: u64, asks: bool) -> Done {
        let file = self.opened(target).await?;
        self.read_from(file, offset, bytes, asks).await
    }

    async fn read_from(&self, file: usize, offset: u64, bytes: u64, asks: bool) -> Done {
        let handle = self.handle(file)?;
        if asks {
            let asked = self.now();
            let attributes = handle.attributes().await;
            self.check_file(file, "a query of the size", attributes)?;
            self.note_asked(file, asked);
        }
        // A query by another thread raises it during the read.
        let opened = self.asked(file)?;
        let (started, length) = (self.now(), self.known_bytes(file, &handle).max(handle.known().size));
        let data = self.read_bytes(file, &handle, offset, bytes).await?;
        self.note_discarded(file, &handle);
        let reading = ReadCall { reader: self.process, opened, started, ended: self.now() };
        let losses = self.world.losses.borrow().clone();
        let checked = self.world.file(file, |file| {
            file.check_length(length, &reading, &losses)?;
            file.check_read(offset, bytes, &data, &reading, &losses)
        });
        self.world.keep("contents", &format!("client {}: file {file}", self.client), checked);
        Ok(())
    }

    async fn send(&self, target: FileTarget) -> Done {
        let file = self.opened(target).await?;
        self.send_file(file).await
    }

    pub(super) async fn send_file(&self, file: usize) -> Done {
        let (started, handle) = (self.now(), self.handle(file)?);
        self.flush_cached(file, &handle).await?;
        let sent = handle.flush().await;
        self.check_file(file, "sending", sent)?;
        self.note(file, |history, process, now| history.settle(process, started, now));
        Ok(())
    }

    pub(super) async fn sync(&self, target: FileTarget) -> Done {
        let file = self.opened(target).await?;
        self.sync_file(file).await
    }

    pub(super) async fn sync_file(&self, file: usize) -> Done {
        let handle = self.handle(file)?;
        self.sync_through(file, &handle).await
    }

    async fn sync_through(&self, file: usize, handle: &OpenTreeFile<SimMachine>) -> Done {
        let started = self.now();
        self.flush_cached(file, handle).await?;
        let synced = handle.sync().await;
        self.check_file(file, "a sync", synced)?;
        self.note(file, |history, process, now| history.persist(process, started, now));
        Ok(())
    }

    pub(super) async fn close(&self, target: FileTarget) -> Done {
        let file = match target {
            FileTarget::Shared(file) => file as usize,
            FileTarget::Own(name) => match self.possible_files(name)[..] {
                [Some(file)] => file,
                _ => return Ok(()),
            },
            FileTarget::Unnamed => self.unnamed().ok_or(Excused)?,
        };
        let closing = {
            let mut all = self.open.borrow_mut();
            let Some(open) = all.get_mut(&file) else { return Ok(()) };
            if open.handles.last().is_some_and(|handle| Rc::strong_count(handle) > 1) {
                // Another thread uses it.
                return Ok(());
            }
            let handles = open.handles.pop().into_iter().collect();
            let closing = Open { handles, ..*open };
            if open.handles.is_empty() {
                all.remove(&file);
            }
            closing
        };
        self.close_file(file, closing).await
    }

    async fn close_file(&self, file: usize, mut open: Open) -> Done {
        self.world.locks.borrow_mut().retain(|held| held.process != self.process || held.file != file);
        while let Some(handle) = open.handles.pop() {
            let started = self.now();
            if let Err(excused) = self.flush_cached(file, &handle).await {
                self.keep_open(file, handle, &open);
                return Err(excused);
            }
            let Ok(handle) = Rc::try_unwrap(handle) else { continue };
            let closed = handle.close().await;
            self.check_file(file, "a close", closed)?;
            self.note(file, |history, process, now| history.settle(process, started, now));
        }
        Ok(())
    }

    /// Keeps a handle open whose cached writes could not be flushed.
    fn keep_open(
        &self,
        file: usize,
        handle: Rc<OpenTreeFile<SimMachine>>,
        &Open { asked, given_up, .. }: &Open,
    ) {
        let mut open = self.open.borrow_mut();
        open.entry(file).or_insert(Open { handles: Vec::new(), asked, given_up }).handles.push(handle);
    }
}
