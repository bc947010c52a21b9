//! Disks with their buses, driven by the timing models of the crate `disk`.
//!
//! ```text
//!  read:   [ drive: overhead, seek, rotation, medium ][ bus ][ disk_interrupt ] done
//!  write:  [ drive: overhead, room in its buffer ][ bus ][ drive: report ][ disk_interrupt ] done
//!  flush:  [ drive: until its buffer is on the medium ] done
//! ```
//!
//! A drive executes one command at a time, in order of arrival; others wait in its queue here. A bus carries one
//! transfer at a time, in order of request, and may be shared by several drives. An access to scattered blocks is one
//! command per run of adjacent blocks. Commands are whole sectors; a write of part of a sector does not model the read
//! of that sector. A disk that is only memory answers at once.
//!
//! A table holds the transfers, not the futures of waiting tasks. So a transfer whose task stops waiting still takes
//! its time and returns its buffer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::disk::{Activity, Model, Phase};
use description::MachineDescription;
use machine::{Buf, Duration, Error, Instant, ObjectId, Payload, Result};

use crate::agenda::{EventTarget, Kind};
use crate::executor::{Executor, Waiter};
use crate::processor::{Costs, Processors};
use crate::random::RandomStream;
use crate::settings::Settings;
use crate::statistics::{BusStatistics, DiskCounts, DiskStatistics, HighWater, Waits};
use crate::store::{BlockRun, ObjectStore, Space};
use crate::table::IndexTable;
use crate::trace::{self, Trace, Track};

pub(crate) struct Disks {
    drives: Vec<RefCell<Drive>>,
    buses: Vec<RefCell<Bus>>,
    transfers: RefCell<IndexTable<Transfer>>,
    wait_for_disk_buffer: bool,
}

pub(crate) struct Drive {
    pub(crate) node: usize,
    bus: Option<usize>,
    model: Option<Model>,
    sectors_per_block: u64,
    pub(crate) store: ObjectStore,
    queue: VecDeque<u32>,
    command: Option<Command>,
    /// Remaining runs of the command, last first.
    runs: Vec<BlockRun>,
    counts: DiskCounts,
    pub(crate) waits: Waits,
    pub(crate) writes_pending: HighWater,
    /// Unreadable ranges of objects.
    pub(crate) damaged: Vec<(u64, Range<u64>)>,
}

/// Command of a drive for the transfer with this index.
#[derive(Clone, Copy)]
struct Command {
    transfer: usize,
    begun: Instant,
    step: Step,
}

#[derive(Clone, Copy)]
enum Step {
    ReadMedium,
    ReadBus,
    WriteRoom,
    WriteBus,
    WriteReport,
}

/// Bus: one transfer at a time, first come, first served.
#[derive(Default)]
struct Bus {
    bytes_per_second: u64,
    free: u64,
    statistics: BusStatistics,
}

/// Request to a disk, and its progress.
pub(crate) struct Transfer {
    disk: u32,
    object: u64,
    offset: u64,
    access: DiskAccess,
    state: State,
    /// True if its process has ended: the transfer takes its time without any effect.
    lost: bool,
}

pub(crate) enum DiskAccess {
    Read(Buf),
    Write(Payload),
    Flush,
}

enum State {
    /// In flight, with the waiting task.
    Begun(Option<Waiter>),
    /// In flight, without a waiting task.
    Abandoned,
    /// Complete; the access holds the buffer of a read again.
    Over(Result<()>),
}

impl Transfer {
    pub(crate) fn new(disk: usize, object: ObjectId, offset: u64, access: DiskAccess) -> Self {
        let (disk, state) = (disk as u32, State::Begun(None));
        Transfer { disk, object: object.0, offset, access, state, lost: false }
    }
}

impl Disks {
    pub(crate) fn new(description: &MachineDescription, settings: &Settings) -> Self {
        let disk = description.disk();
        if let Some(disk) = disk {
            let (block, sector) = (settings.block_bytes, Model::new(disk, 0.0).sector_bytes());
            assert!(block > 0 && block % sector == 0, "blocks of {block} bytes on sectors of {sector} bytes");
        }
        let per_node = description.disks.per_io_node.value as usize;
        let (io_nodes, first_io_node) =
            (description.nodes.io.value as usize, description.nodes.compute.value as usize);
        let buses_per_node = description.buses.as_ref().map(|buses| buses.per_io_node.value as usize);
        let drive = |index: usize| {
            let stream = |what| RandomStream::new(settings.seed, &format!("disk {index} {what}"));
            let seed = stream("latency").below(u64::MAX);
            let model = disk.map(|disk| Model::new(disk, stream("phase").fraction()).drawing_from(seed));
            let space = model.as_ref().map(|model| {
                let blocks = model.capacity_sectors() * model.sector_bytes() / settings.block_bytes;
                Space::new(settings.block_bytes, blocks, settings.layout, stream("layout"))
            });
            let (node, on_node) = (index / per_node, index % per_node);
            RefCell::new(Drive {
                node: first_io_node + node,
                bus: buses_per_node.map(|buses| node * buses + on_node % buses),
                sectors_per_block: model
                    .as_ref()
                    .map_or(1, |model| settings.block_bytes / model.sector_bytes()),
                model,
                store: ObjectStore::new(space),
                queue: VecDeque::new(),
                command: None,
                runs: Vec::new(),
                counts: DiskCounts::default(),
                waits: Waits::default(),
                writes_pending: HighWater::default(),
                damaged: Vec::new(),
            })
        };
        let bus = |_| {
            let rate = description.buses.as_ref().map_or(1, |buses| buses.bandwidth.value.0);
            RefCell::new(Bus { bytes_per_second: rate, ..Bus::default() })
        };
        Disks {
            drives: (0..io_nodes * per_node).map(drive).collect(),
            buses: (0..io_nodes * buses_per_node.unwrap_or(0)).map(bus).collect(),
            transfers: RefCell::default(),
            wait_for_disk_buffer: description.disks.wait_for_disk_buffer.value,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.drives.len()
    }

    pub(crate) fn bus_count(&self) -> usize {
        self.buses.len()
    }

    pub(crate) fn statistics(&self, disk: usize, now: Instant) -> DiskStatistics {
        let mut drive = self.drives[disk].borrow_mut();
        DiskStatistics {
            mechanics: drive.model.as_ref().map(|model| model.statistics(now)).unwrap_or_default(),
            counts: drive.counts,
            waits: drive.waits.take(),
            writes_pending_most: drive.writes_pending.take_most(),
        }
    }

    pub(crate) fn bus_statistics(&self, bus: usize) -> BusStatistics {
        let statistics = &mut self.buses[bus].borrow_mut().statistics;
        BusStatistics { waits: statistics.waits.take(), ..*statistics }
    }

    /// Records from now on the changes that a crash may undo.
    pub(crate) fn expect_crashes(&self) {
        self.drives.iter().for_each(|drive| drive.borrow_mut().store.expect_crashes());
    }

    /// Ends the effect of all transfers in flight, because the process that requested them has ended.
    pub(crate) fn end_process(&self, disk: usize) {
        for transfer in self.transfers.borrow_mut().iter_mut() {
            transfer.lost |= transfer.disk == disk as u32;
        }
    }

    /// Crashes the node of a disk, after the end of its process.
    pub(crate) fn crash(&self, disk: usize, stream: &mut RandomStream) {
        self.drives[disk].borrow_mut().store.crash(stream);
    }

    pub(crate) fn drive(&self, disk: usize) -> &RefCell<Drive> {
        &self.drives[disk]
    }

    /// Begins a transfer.
    pub(crate) fn begin(
        &self,
        executor: &Executor,
        processors: &Processors,
        costs: &Costs,
        transfer: Transfer,
    ) -> Ongoing<'_> {
        let disk = transfer.disk as usize;
        let index = self.transfers.borrow_mut().insert(transfer);
        self.drives[disk].borrow_mut().queue.push_back(index as u32);
        self.advance(executor, processors, costs, disk);
        Ongoing { disks: self, index: Some(index) }
    }

    /// Lets an idle drive take transfers from its queue: all that end at once, and the first that does not.
    fn advance(&self, executor: &Executor, processors: &Processors, costs: &Costs, disk: usize) {
        loop {
            let mut drive = self.drives[disk].borrow_mut();
            if drive.command.is_some() {
                return;
            }
            let Some(index) = drive.queue.pop_front() else { return };
            let index = index as usize;
            match self.prepare(&mut drive, index) {
                Err(error) => {
                    drop(drive);
                    self.end(executor, index, Err(error));
                }
                Ok(Begin::Flush) => {
                    let settled = drive.model.as_ref().map_or(0, |model| model.settled().as_nanos());
                    drop(drive);
                    if self.wait_for_disk_buffer && settled > executor.now() {
                        executor.schedule(settled, EventTarget::new(Kind::Transfer, index));
                    } else {
                        self.end(executor, index, Ok(()));
                    }
                }
                // No block of it is on the medium: no command, no bus, no interrupt.
                Ok(_) if drive.runs.is_empty() => {
                    self.apply(&mut drive, index);
                    drop(drive);
                    self.end(executor, index, Ok(()));
                }
                Ok(Begin::Read) => {
                    let now = Instant::from_nanos(executor.now());
                    drive.begin_command(index, now, Step::ReadMedium);
                    let ready = drive.read_medium(now);
                    drop(drive);
                    return self.step_at(executor, processors, costs, disk, ready);
                }
                Ok(Begin::Write) => {
                    let now = Instant::from_nanos(executor.now());
                    drive.begin_command(index, now, Step::WriteRoom);
                    let ready = drive.write_ready(now);
                    drop(drive);
                    return self.step_at(executor, processors, costs, disk, ready);
                }
            }
        }
    }

    fn step_at(
        &self,
        executor: &Executor,
        processors: &Processors,
        costs: &Costs,
        disk: usize,
        time: Instant,
    ) {
        if time.as_nanos() > executor.now() {
            executor.schedule(time.as_nanos(), EventTarget::new(Kind::Disk, disk));
        } else {
            self.fire(executor, processors, costs, disk);
        }
    }

    /// Reserves blocks and finds the runs of the transfer.
    fn prepare(&self, drive: &mut Drive, index: usize) -> Result<Begin> {
        let transfers = self.transfers.borrow();
        let Transfer { object, offset, access, .. } = transfers.get(index);
        let (begin, bytes) = match access {
            DiskAccess::Flush => return Ok(Begin::Flush),
            DiskAccess::Read(buffer) => (Begin::Read, buffer.len()),
            DiskAccess::Write(payload) => (Begin::Write, payload.len()),
        };
        let Some(end) = offset.checked_add(bytes) else { return Err(no_space(drive.node)) };
        if matches!(begin, Begin::Write) && bytes > 0 && !drive.store.reserve(*object, *offset, end) {
            return Err(no_space(drive.node));
        }
        drive.find_runs(*object, *offset, end);
        Ok(begin)
    }

    /// Handles the end of a step of this drive.
    pub(crate) fn fire(&self, executor: &Executor, processors: &Processors, costs: &Costs, disk: usize) {
        let mut drive = self.drives[disk].borrow_mut();
        let drive_state = &mut *drive;
        let now = Instant::from_nanos(executor.now());
        let command = drive_state.command.as_mut().expect("a command whose step ends");
        let (step, next) = match command.step {
            Step::ReadMedium => (Step::ReadBus, self.bus_transfer(executor, disk, drive_state, now)),
            Step::WriteRoom => (Step::WriteBus, self.bus_transfer(executor, disk, drive_state, now)),
            Step::WriteBus => (Step::WriteReport, drive_state.write_medium(now)),
            Step::ReadBus | Step::WriteReport => {
                let (was_read, transfer) = (matches!(command.step, Step::ReadBus), command.transfer);
                drive_state.runs.pop();
                if drive_state.runs.is_empty() {
                    let ended = drive_state.end_command(now);
                    if let Some(trace) = executor.trace() {
                        self.record(trace, disk, drive_state, ended, now);
                    }
                    self.apply(drive_state, transfer);
                    let node = drive_state.node;
                    drop(drive);
                    self.interrupt(executor, processors, costs, node, transfer);
                    return self.advance(executor, processors, costs, disk);
                }
                if was_read {
                    (Step::ReadMedium, drive_state.read_medium(now))
                } else {
                    (Step::WriteRoom, drive_state.write_ready(now))
                }
            }
        };
        drive_state.command.as_mut().expect("as before").step = step;
        drop(drive);
        self.step_at(executor, processors, costs, disk, next);
    }

    /// Records a completed command, and the activity of the mechanics during it, or later for it.
    #[cold]
    fn record(&self, trace: &Trace, disk: usize, drive: &mut Drive, command: Command, end: Instant) {
        let transfers = self.transfers.borrow();
        let Transfer { object, offset, access, .. } = transfers.get(command.transfer);
        let bytes = match access {
            DiskAccess::Read(buffer) => buffer.len(),
            DiskAccess::Write(payload) => payload.len(),
            DiskAccess::Flush => 0,
        };
        let position = drive.store.position(*object, *offset);
        let arguments = [("bytes", bytes), ("object", *object), ("offset", *offset), ("position", position)];
        let times = (command.begun.as_nanos(), end.as_nanos());
        trace.slice(Track::Disk(disk), command.step.name(), times, &arguments);
        record_phases(trace, disk, &drive.model_mut().take_phases());
    }

    /// Makes drives record the activity of their mechanics from now on.
    pub(crate) fn start_recording(&self) {
        for drive in &self.drives {
            drive.borrow_mut().model.iter_mut().for_each(Model::record_phases);
        }
    }

    /// Records the remaining activity of the mechanics.
    pub(crate) fn stop_recording(&self, trace: &Trace, now: Instant) {
        for (disk, drive) in self.drives.iter().enumerate() {
            if let Some(model) = &mut drive.borrow_mut().model {
                record_phases(trace, disk, &model.stop_recording_phases(now));
            }
        }
    }

    /// Moves the current run over the drive's bus, if it has one; returns the end of this transfer.
    fn bus_transfer(&self, executor: &Executor, disk: usize, drive: &Drive, now: Instant) -> Instant {
        let Some(bus) = drive.bus else { return now };
        let (_, sectors) = drive.sectors();
        let bytes = sectors * drive.model.as_ref().map_or(0, Model::sector_bytes);
        let (begin, end) = self.buses[bus].borrow_mut().transfer(now, bytes);
        if let Some(trace) = executor.trace() {
            let name = drive.command.map_or("", |command| command.step.name());
            let arguments = [("disk", disk as u64), ("bytes", bytes)];
            trace.slice(Track::Bus(bus), name, (begin.as_nanos(), end.as_nanos()), &arguments);
        }
        end
    }

    /// Moves the data of a transfer between its payload and the store, at the transfer's time.
    fn apply(&self, drive: &mut Drive, index: usize) {
        let mut transfers = self.transfers.borrow_mut();
        let Transfer { object, offset, access, lost, .. } = transfers.get_mut(index);
        if *lost {
            return;
        }
        let stored = drive.store.object_mut(*object).expect("checked when it began");
        match access {
            DiskAccess::Read(buffer) => {
                drive.counts.reads += 1;
                drive.counts.bytes_read += buffer.len();
                buffer.fill(stored.get(*offset, buffer.len()));
            }
            DiskAccess::Write(payload) => {
                drive.counts.writes += 1;
                drive.counts.bytes_written += payload.len();
                stored.put(*offset, payload);
            }
            DiskAccess::Flush => {}
        }
    }

    fn interrupt(
        &self,
        executor: &Executor,
        processors: &Processors,
        costs: &Costs,
        node: usize,
        transfer: usize,
    ) {
        if costs.disk_interrupt == 0 {
            return self.end(executor, transfer, Ok(()));
        }
        let end = processors.interrupt(executor, node, costs.disk_interrupt);
        if let Some(trace) = executor.trace() {
            let (activity, times) = (trace::ProcessorActivity::DiskInterrupt, (executor.now(), end));
            trace.interrupt(node, activity, costs.disk_interrupt, times);
        }
        executor.schedule(end, EventTarget::new(Kind::Transfer, transfer));
    }

    /// Ends the transfer without error.
    pub(crate) fn complete(&self, executor: &Executor, index: usize) {
        self.end(executor, index, Ok(()));
    }

    fn end(&self, executor: &Executor, index: usize, result: Result<()>) {
        let mut transfers = self.transfers.borrow_mut();
        let transfer = transfers.get_mut(index);
        match std::mem::replace(&mut transfer.state, State::Over(result)) {
            State::Begun(waiter) => {
                drop(transfers);
                if let Some(waiter) = waiter {
                    executor.wake_waiter(waiter);
                }
            }
            State::Abandoned => {
                let abandoned = transfers.remove(index);
                drop(transfers);
                drop(abandoned);
            }
            State::Over(_) => unreachable!("a transfer ends once"),
        }
    }
}

enum Begin {
    Read,
    Write,
    Flush,
}

impl Step {
    /// Returns the name of the command that the step belongs to.
    fn name(self) -> &'static str {
        match self {
            Step::ReadMedium | Step::ReadBus => "read",
            Step::WriteRoom | Step::WriteBus | Step::WriteReport => "write",
        }
    }
}

fn record_phases(trace: &Trace, disk: usize, phases: &[Phase]) {
    for Phase { activity, begin, end } in phases {
        let name = match activity {
            Activity::Seek => "seek",
            Activity::Rotation => "rotation",
            Activity::Transfer => "transfer",
        };
        trace.slice(Track::Mechanics(disk), name, (begin.as_nanos(), end.as_nanos()), &[]);
    }
}

impl Bus {
    /// Carries bytes as soon as the bus is free; returns beginning and end.
    fn transfer(&mut self, now: Instant, bytes: u64) -> (Instant, Instant) {
        let time = Duration::of_transfer(bytes, self.bytes_per_second);
        let begin = self.free.max(now.as_nanos());
        self.free = begin + time.as_nanos();
        self.statistics.busy += time;
        self.statistics.bytes += bytes;
        self.statistics.waits.add(begin - now.as_nanos());
        (Instant::from_nanos(begin), Instant::from_nanos(self.free))
    }
}

impl Drive {
    fn model_mut(&mut self) -> &mut Model {
        self.model.as_mut().expect("only a disk with a model has commands")
    }

    fn begin_command(&mut self, transfer: usize, now: Instant, step: Step) {
        self.command = Some(Command { transfer, begun: now, step });
    }

    /// Ends the command and frees the drive for the next.
    fn end_command(&mut self, now: Instant) -> Command {
        let command = self.command.take().expect("a command that ends");
        let time = now.since(command.begun);
        match command.step {
            Step::ReadMedium | Step::ReadBus => self.counts.read_time += time,
            Step::WriteRoom | Step::WriteBus | Step::WriteReport => self.counts.write_time += time,
        }
        command
    }

    /// Finds the runs of the object's bytes `first..end`, in sectors, last first.
    fn find_runs(&mut self, object: u64, first: u64, end: u64) {
        self.runs.clear();
        let (Some(model), Some(stored)) = (&self.model, self.store.object(object)) else { return };
        if first == end {
            return;
        }
        let sector_bytes = model.sector_bytes();
        let block_bytes = self.sectors_per_block * sector_bytes;
        stored.runs(first / block_bytes, end.div_ceil(block_bytes), &mut self.runs);
        // Convert blocks to sectors, and drop the sectors at both ends that are not accessed.
        let skipped = first % block_bytes / sector_bytes;
        let spared = (block_bytes - 1 - (end - 1) % block_bytes) / sector_bytes;
        let (has_first, has_last) =
            (stored.place(first / block_bytes).is_some(), stored.place((end - 1) / block_bytes).is_some());
        for run in &mut self.runs {
            run.place *= self.sectors_per_block;
            run.blocks *= self.sectors_per_block;
        }
        if let Some(run) = self.runs.first_mut().filter(|_| has_first) {
            run.place += skipped;
            run.blocks -= skipped;
        }
        if let Some(run) = self.runs.last_mut().filter(|_| has_last) {
            run.blocks -= spared;
        }
        self.runs.reverse();
    }

    /// Returns the first sector and the number of sectors of the current run.
    fn sectors(&self) -> (u64, u64) {
        let run = self.runs.last().expect("a run to access");
        (run.place, run.blocks)
    }

    fn write_ready(&mut self, now: Instant) -> Instant {
        let (first, count) = self.sectors();
        self.model_mut().write_ready(now, first, count)
    }

    fn read_medium(&mut self, now: Instant) -> Instant {
        let (first, count) = self.sectors();
        self.model_mut().read(now, first, count)
    }

    fn write_medium(&mut self, now: Instant) -> Instant {
        let (first, count) = self.sectors();
        self.model_mut().write(now, first, count)
    }
}

pub(crate) fn no_space(node: usize) -> Box<Error> {
    Error::NoSpace { what: format!("a disk of {}", machine::NodeId(node as u64)) }.into()
}

/// Wait for the end of a transfer; returns its access.
pub(crate) struct Ongoing<'a> {
    disks: &'a Disks,
    index: Option<usize>,
}

impl Future for Ongoing<'_> {
    type Output = Result<DiskAccess>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let index = self.index.expect("a transfer that is not over");
        let mut transfers = self.disks.transfers.borrow_mut();
        match &mut transfers.get_mut(index).state {
            State::Begun(Some(waiter)) if waiter.is(context) => Poll::Pending,
            State::Begun(waiter) => {
                *waiter = Some(Waiter::of(context));
                Poll::Pending
            }
            State::Over(_) => {
                self.index = None;
                let Transfer { access, state: State::Over(result), .. } = transfers.remove(index) else {
                    unreachable!("it is over")
                };
                Poll::Ready(result.map(|()| access))
            }
            State::Abandoned => unreachable!("somebody waits"),
        }
    }
}

impl Drop for Ongoing<'_> {
    fn drop(&mut self) {
        let Some(index) = self.index else { return };
        let mut transfers = self.disks.transfers.borrow_mut();
        if matches!(transfers.get(index).state, State::Over(_)) {
            let transfer = transfers.remove(index);
            drop(transfers);
            drop(transfer);
        } else {
            transfers.get_mut(index).state = State::Abandoned;
        }
    }
}
