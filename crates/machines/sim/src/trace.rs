//! The activity of the machine's parts, beside the notes of its nodes, for a recorder.
//!
//! A slice is a stretch of time in which one part of the machine does one thing: a processor does a piece of work, a
//! disk executes a command. All slices of a part come in order of time and none overlaps another. They are told
//! when their end is known, so those of different parts are not in order.
//!
//! Nothing is kept and nothing is done unless a recorder is there; then each place that knows of a slice tells it.
//! The name of a thread's work is known when it is asked for, and noted here until it ends.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use machine::{Instant, NodeId, NotedEvent, Recorder, RowId, Work};

/// A part of the machine that does one thing at a time, or a number that changes with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Track {
    /// The processor of the node of this index, with work of threads. Interrupts lengthen it.
    Threads(usize),
    /// The same processor, with interrupts.
    Interrupts(usize),
    /// How many threads wait for that processor.
    ThreadsWaiting(usize),
    /// The link out of this node, while a message holds it.
    LinkOut(usize),
    /// The link into this node, while a message holds it.
    LinkIn(usize),
    /// The commands of the disk of this index, from the drive taking them until their data are over the bus (a read)
    /// or in the drive's buffer (a write).
    Disk(usize),
    /// The mechanics of that disk.
    Mechanics(usize),
    /// The bus of this index.
    Bus(usize),
}

impl Track {
    /// Its name among the rows of its node.
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

    /// Its kind, and which of that kind it is.
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

/// What a processor does, by name and size.
#[derive(Clone, Copy)]
pub(crate) enum ProcessorActivity {
    Work(Work),
    /// A message with this number of bytes of payload is sent.
    SendMessage(u64),
    ReceiveMessage,
    DiskInterrupt,
    /// A transaction on metadata that reads or changes this number of entries.
    Transaction(u64),
    /// An object is made, opened or removed.
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

    /// Its size, if it has one.
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

/// How long something was waited for, among what is said of it.
const WAITED: &str = "waited_ns";

/// Work of a thread that is through.
pub(crate) struct Ended {
    /// The number it was [asked](Trace::ask) for under.
    pub(crate) number: u64,
    /// When it was asked for, when it began, and when it ended, in nanoseconds.
    pub(crate) asked: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// How long it would have taken undisturbed.
    pub(crate) nanoseconds: u64,
}

/// The recorder, if there is one, and what was asked for.
#[derive(Default)]
pub(crate) struct Trace {
    recording: Cell<bool>,
    state: RefCell<Option<State>>,
}

struct State {
    recorder: Rc<RefCell<dyn Recorder>>,
    rows: TrackRows,
    /// What work of threads each node was asked for, with its number, in the order of asking. It ends in nearly that
    /// order.
    asked: Vec<VecDeque<(u64, ProcessorActivity)>>,
}

/// The row of each track.
#[derive(Default)]
struct TrackRows([Vec<RowId>; 8]);

impl TrackRows {
    /// The row of a track that has not been told of.
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
    /// Tells `recorder` what the parts of each node do.
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

    /// A thread of `node` has asked for work of this number.
    #[cold]
    #[inline(never)]
    pub(crate) fn ask(&self, node: usize, number: u64, activity: ProcessorActivity) {
        self.with(|state| state.asked[node].push_back((number, activity)));
    }

    /// Work of a thread of `node` ends.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_work(&self, node: usize, work: Ended) {
        self.with(|state| {
            // What was asked for before the recorder came has no name.
            let asked = &mut state.asked[node];
            let place = asked.iter().position(|(number, _)| *number == work.number);
            let Some((_, activity)) = place.and_then(|place| asked.remove(place)) else { return };
            let Ended { begin, end, .. } = work;
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

    /// Notes that `count` threads of `node` wait for its processor.
    #[cold]
    #[inline(never)]
    pub(crate) fn threads_waiting(&self, node: usize, now: u64, count: usize) {
        self.with(|state| state.note(Track::ThreadsWaiting(node), now, NotedEvent::Count(count as u64)));
    }

    /// An interrupt of `nanoseconds`, which comes at `asked`, ends at `end`.
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

    /// Something begins and ends at these times.
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
