//! Sends the activities of the machine's parts to a recorder, in addition to the events of its nodes.
//!
//! A slice is an interval in which one part of the machine does one thing: a processor does a piece of work, a disk
//! executes a command. The slices of a part are recorded in order of time and never overlap. They are recorded when
//! their end is known, so slices of different parts are not in order.
//!
//! Without a recorder no state is kept and no work is done. With a recorder, the code that knows the end of a slice
//! records it. The name of a thread's work is known only when the work is requested, so the trace stores the name until
//! the work ends.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use machine::{Instant, NodeId, NotedEvent, Recorder, RowId, Work};

/// Part of the machine that does one thing at a time, or a value that changes with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Track {
    /// Work of threads on the processor of the node with this index. Interrupts lengthen a slice.
    Threads(usize),
    /// Interrupts on the processor of the node with this index.
    Interrupts(usize),
    /// Number of threads that wait for the processor of the node with this index.
    ThreadsWaiting(usize),
    /// Link out of this node, while a message holds it.
    LinkOut(usize),
    /// Link into this node, while a message holds it.
    LinkIn(usize),
    /// Commands of the disk with this index. A slice lasts from the start of the command until the data have crossed
    /// the bus (a read) or are in the drive's buffer (a write).
    Disk(usize),
    /// Mechanics of the disk with this index.
    Mechanics(usize),
    /// Bus with this index.
    Bus(usize),
}

impl Track {
    /// Returns the name of the track's row in its node.
    fn name(self) -> String {
        match self {
            Track::Threads(_) => "processor: threads".to_owned(),
            Track::Interrupts(_) => "processor: interrupts".to_owned(),
            Track::ThreadsWaiting(_) => "threads waiting for the processor".to_owned(),
            Track::LinkOut(_) => "link out".to_owned(),
            Track::LinkIn(_) => "link in".to_owned(),
            Track::Disk(disk) => format!("disk {disk}"),
            Track::Mechanics(disk) => format!("disk {disk}: mechanics"),
            Track::Bus(bus) => format!("bus {bus}"),
        }
    }

    fn counts(self) -> bool {
        matches!(self, Track::ThreadsWaiting(_))
    }

    /// Returns the track's kind, and its index among the tracks of this kind.
    fn place(self) -> (usize, usize) {
        match self {
            Track::Threads(node) => (0, node),
            Track::Interrupts(node) => (1, node),
            Track::ThreadsWaiting(node) => (2, node),
            Track::LinkOut(node) => (3, node),
            Track::LinkIn(node) => (4, node),
            Track::Disk(disk) => (5, disk),
            Track::Mechanics(disk) => (6, disk),
            Track::Bus(bus) => (7, bus),
        }
    }
}

/// Activity of a processor, by name and size.
#[derive(Clone, Copy)]
pub(crate) enum ProcessorActivity {
    Work(Work),
    /// Send of a message with this number of bytes of payload.
    SendMessage(u64),
    ReceiveMessage,
    DiskInterrupt,
    /// Metadata transaction that reads or changes this number of entries.
    Transaction(u64),
    /// Creation, opening or removal of an object.
    Object,
}

impl ProcessorActivity {
    fn name(self) -> &'static str {
        match self {
            ProcessorActivity::Work(work) => work.name(),
            ProcessorActivity::SendMessage(_) => "send_message",
            ProcessorActivity::ReceiveMessage => "receive_message",
            ProcessorActivity::DiskInterrupt => "disk_interrupt",
            ProcessorActivity::Transaction(_) => "transaction",
            ProcessorActivity::Object => "object",
        }
    }

    /// Returns the size of the activity, if it has one.
    fn argument(self) -> Option<(&'static str, u64)> {
        match self {
            ProcessorActivity::Work(work) => {
                work.unit().filter(|_| work.units() > 0).map(|unit| (unit, work.units()))
            }
            ProcessorActivity::SendMessage(bytes) => Some(("bytes", bytes)),
            ProcessorActivity::Transaction(entries) => Some(("entries", entries)),
            _ => None,
        }
    }
}

/// Name of the argument for the wait before a slice, in nanoseconds.
const WAITED: &str = "waited_ns";

/// Completed work of a thread.
pub(crate) struct CompletedWork {
    /// Number of its [request](Trace::ask).
    pub(crate) number: u64,
    /// Times of request, begin and end, in nanoseconds.
    pub(crate) asked: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Time in nanoseconds that the work would have taken without interrupts.
    pub(crate) nanoseconds: u64,
}

/// Recorder and requested work, while events are recorded.
#[derive(Default)]
pub(crate) struct Trace {
    recording: Cell<bool>,
    state: RefCell<Option<State>>,
}

struct State {
    recorder: Rc<RefCell<dyn Recorder>>,
    rows: TrackRows,
    /// Requested work of each node's threads, with the number of the work, in order of request. The work ends in nearly
    /// the same order.
    asked: Vec<VecDeque<(u64, ProcessorActivity)>>,
}

/// Row of each track.
#[derive(Default)]
struct TrackRows([Vec<RowId>; 8]);

impl TrackRows {
    /// Placeholder for a track without a row.
    const NONE: RowId = RowId(u32::MAX);

    fn set(&mut self, track: Track, row: RowId) {
        let (kind, index) = track.place();
        let rows = &mut self.0[kind];
        rows.resize(rows.len().max(index + 1), Self::NONE);
        rows[index] = row;
    }

    fn of(&self, track: Track) -> RowId {
        let (kind, index) = track.place();
        self.0[kind][index]
    }
}

impl Trace {
    /// Sends the activities of the parts of each node to `recorder`.
    pub(crate) fn start(&self, recorder: Rc<RefCell<dyn Recorder>>, parts: &[Vec<Track>]) {
        let mut rows = TrackRows::default();
        for (node, tracks) in (0..).map(NodeId).zip(parts) {
            for track in tracks {
                rows.set(*track, recorder.borrow_mut().row(node, &track.name(), track.counts()));
            }
        }
        *self.state.borrow_mut() = Some(State { recorder, rows, asked: vec![VecDeque::new(); parts.len()] });
        self.recording.set(true);
    }

    pub(crate) fn stop(&self) {
        self.recording.set(false);
        let state = self.state.borrow_mut().take();
        drop(state);
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.recording.get()
    }

    /// Records that work of a thread of `node` was requested, with this number.
    #[cold]
    #[inline(never)]
    pub(crate) fn ask(&self, node: usize, number: u64, activity: ProcessorActivity) {
        self.with(|state| state.asked[node].push_back((number, activity)));
    }

    /// Records the end of work of a thread of `node`.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_work(&self, node: usize, work: CompletedWork) {
        self.with(|state| {
            // Work that was requested before recording began has no name.
            let asked = &mut state.asked[node];
            let place = asked.iter().position(|(number, _)| *number == work.number);
            let Some((_, activity)) = place.and_then(|place| asked.remove(place)) else { return };
            let CompletedWork { begin, end, .. } = work;
            let interrupted = end - begin - work.nanoseconds;
            let times = [(WAITED, begin - work.asked), ("interrupted_ns", interrupted)];
            let times = times.into_iter().filter(|(_, time)| *time > 0);
            let mut arguments = [("", 0); 3];
            let mut count = 0;
            for argument in activity.argument().into_iter().chain(times) {
                arguments[count] = argument;
                count += 1;
            }
            state.slice(Track::Threads(node), activity.name(), (begin, end), &arguments[..count]);
        });
    }

    /// Records the number of threads of `node` that wait for its processor.
    #[cold]
    #[inline(never)]
    pub(crate) fn threads_waiting(&self, node: usize, now: u64, count: usize) {
        self.with(|state| state.note(Track::ThreadsWaiting(node), now, NotedEvent::Count(count as u64)));
    }

    /// Records an interrupt of `nanoseconds` that was requested at `asked` and ends at `end`.
    #[cold]
    #[inline(never)]
    pub(crate) fn interrupt(
        &self,
        node: usize,
        activity: ProcessorActivity,
        nanoseconds: u64,
        (asked, end): (u64, u64),
    ) {
        let begin = end - nanoseconds;
        let waited = Some((WAITED, begin - asked)).filter(|(_, time)| *time > 0);
        let arguments: Vec<_> = activity.argument().into_iter().chain(waited).collect();
        self.slice(Track::Interrupts(node), activity.name(), (begin, end), &arguments);
    }

    /// Records a slice with these times of begin and end.
    #[cold]
    #[inline(never)]
    pub(crate) fn slice(
        &self,
        track: Track,
        name: &'static str,
        times: (u64, u64),
        arguments: &[(&'static str, u64)],
    ) {
        self.with(|state| state.slice(track, name, times, arguments));
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.state.borrow_mut().as_mut().map(act)
    }
}

impl State {
    fn slice(
        &self,
        track: Track,
        name: &'static str,
        (begin, end): (u64, u64),
        arguments: &[(&'static str, u64)],
    ) {
        let row = self.rows.of(track);
        let mut recorder = self.recorder.borrow_mut();
        recorder.note(row, Instant::from_nanos(begin), NotedEvent::Begin { name, arguments });
        recorder.note(row, Instant::from_nanos(end), NotedEvent::End);
    }

    fn note(&self, track: Track, time: u64, note: NotedEvent<'_>) {
        self.recorder.borrow_mut().note(self.rows.of(track), Instant::from_nanos(time), note);
    }
}
