//! The one way to note what happens on a node.
//!
//! Without a listener a note costs a look at a flag; with one it changes nothing of what happens. Spans belong to
//! tasks. Many tasks take turns on a node's thread, so each that is within a span has a *lane* of its own, a row that
//! spans of other tasks do not overlap; when its last span ends, the lane is free for the next task of the same name.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use crate::lanes::{CountedPart, Lanes, SpanPlace};
use crate::recorder::{NotedEvent, Recorder, RowId};
use crate::{Duration, Instant, NodeId};

/// What has to be known of a machine to note anything. It is asked only while there is a listener.
pub trait Present {
    /// The time.
    fn now(&self) -> Instant;

    /// The task that runs, by a number that no other has at the time, and its name.
    fn task(&self) -> (u64, &'static str);

    /// How long a processor has worked for the node's thread so far, if that is not told otherwise.
    fn processor_time(&self) -> Option<Duration> {
        None
    }
}

/// The interval at which the load of the node's thread on its processor is noted.
const SAMPLE: Duration = Duration::from_millis(1);

/// Which number that is.
const PROCESSOR_WORK: CountedPart = ("processor", 0, "busy, per mille");

/// What happens on a node, told to a listener, if there is one.
pub struct NodeNotes {
    is_on: Cell<bool>,
    node: NodeId,
    present: Rc<dyn Present>,
    listener: RefCell<Option<Listener>>,
    /// How many spans have begun while there was a listener. The count goes on from listener to listener, so that a
    /// span of an earlier one is not taken for one of a later one.
    spans: Cell<u32>,
    /// When the work of the processor was last looked at, and how much it had been.
    worked: Cell<(Instant, Duration)>,
}

struct Listener {
    recorder: Rc<RefCell<dyn Recorder>>,
    lanes: Lanes,
}

/// Something that was done from an instant on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedStretch {
    /// What was done.
    pub name: &'static str,
    /// From when on.
    pub since: Instant,
    /// More about it, as of a span.
    pub arguments: Vec<(&'static str, u64)>,
}

/// Something that a task does until this is dropped.
#[must_use = "dropped at once, the span ends at once"]
pub struct NotedSpan<'a> {
    notes: Option<&'a NodeNotes>,
    place: SpanPlace,
}

impl Drop for NotedSpan<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(notes) = self.notes {
            notes.end(self.place);
        }
    }
}

impl fmt::Debug for NodeNotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeNotes")
            .field("node", &self.node)
            .field("is_on", &self.is_on)
            .finish_non_exhaustive()
    }
}

impl NodeNotes {
    /// Notes of a node, without a listener.
    pub fn new(node: NodeId, present: Rc<dyn Present>) -> Self {
        let (is_on, listener, spans) = (Cell::new(false), RefCell::new(None), Cell::new(0));
        NodeNotes { is_on, node, present, listener, spans, worked: Cell::default() }
    }

    /// Whether there is a listener.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Tells `recorder` all that happens from now on, until [`stop`](Self::stop), instead of who was told before.
    /// Spans that have begun are not told.
    pub fn record(&self, recorder: Rc<RefCell<dyn Recorder>>) {
        let lanes = Lanes::new(self.node);
        let before = self.listener.borrow_mut().replace(Listener { recorder, lanes });
        drop(before);
        self.worked.set((self.present.now(), self.present.processor_time().unwrap_or_default()));
        self.is_on.set(true);
    }

    /// Ends the notes to the listener.
    pub fn stop(&self) {
        if self.is_on.replace(false) {
            let now = self.present.now();
            if self.present.processor_time().is_some() {
                self.note_work(now);
                self.note_busy(now, 0);
            }
        }
        let listener = self.listener.borrow_mut().take();
        drop(listener);
    }

    /// Notes that the running task does something until the returned span is dropped. `arguments` says more about it
    /// and is called only if there is a listener.
    #[inline(always)]
    pub fn span<const N: usize>(
        &self,
        name: &'static str,
        arguments: impl FnOnce() -> [(&'static str, u64); N],
    ) -> NotedSpan<'_> {
        if !self.is_on() {
            return NotedSpan { notes: None, place: SpanPlace::default() };
        }
        NotedSpan { notes: Some(self), place: self.begin(name, &arguments()) }
    }

    /// The innermost span of the running task, if it is within one and there is a listener.
    #[inline(always)]
    pub fn here(&self) -> SpanPlace {
        if self.is_on() { self.running() } else { SpanPlace::default() }
    }

    /// Notes that the running task sends the message that `number` gives a number of its own.
    #[inline(always)]
    pub fn sent(&self, number: impl FnOnce() -> u64) {
        if self.is_on() {
            self.note_at(self.running(), NotedEvent::Sent(number()));
        }
    }

    /// Notes that the message of the number that `number` gives arrives at a span.
    #[inline(always)]
    pub fn received(&self, at: SpanPlace, number: impl FnOnce() -> u64) {
        if self.is_on() {
            self.note_at(at, NotedEvent::Received(number()));
        }
    }

    /// Notes that a number of this name is so large from now on, which belongs to a part of the node: what it is, and
    /// which.
    #[inline(always)]
    pub fn count(&self, part: (&'static str, usize), name: &'static str, value: u64) {
        if self.is_on() {
            self.note_count((part.0, part.1, name), value);
        }
    }

    /// The time, if there is a listener: when a part of the node begins what it then [did](Self::did).
    #[inline(always)]
    pub fn moment(&self) -> Option<Instant> {
        self.is_on().then(|| self.present.now())
    }

    /// Notes that a part of the node has done something since a moment: what the part is, and which. One part does one
    /// thing at a time.
    #[inline(always)]
    pub fn did<const N: usize>(
        &self,
        part: (&'static str, usize),
        name: &'static str,
        since: Option<Instant>,
        arguments: impl FnOnce() -> [(&'static str, u64); N],
    ) {
        if let Some(since) = since.filter(|_| self.is_on()) {
            self.note_slice(part, name, since, &arguments());
        }
    }

    /// Notes what a part of the node, or a thread of the program beside it, has done until an instant: each stretch
    /// lies within the one before, and all end together. One part does one thing at a time.
    pub fn did_until(&self, part: (&'static str, usize), stretches: &[NotedStretch], until: Instant) {
        if let Some(Listener { recorder, lanes }) = &mut *self.listener.borrow_mut() {
            let mut recorder = recorder.borrow_mut();
            let row = lanes.part(part, &mut *recorder);
            for NotedStretch { name, since, arguments } in stretches {
                recorder.note(row, *since, NotedEvent::Begin { name, arguments });
            }
            stretches.iter().for_each(|_| recorder.note(row, until, NotedEvent::End));
        }
    }

    #[cold]
    #[inline(never)]
    fn note_slice(
        &self,
        part: (&'static str, usize),
        name: &'static str,
        since: Instant,
        arguments: &[(&'static str, u64)],
    ) {
        let stretch = NotedStretch { name, since, arguments: arguments.to_vec() };
        self.did_until(part, &[stretch], self.present.now());
    }

    /// Notes how busy the processor was, if it is time to.
    fn sample(&self, now: Instant) {
        if now.since(self.worked.get().0) >= SAMPLE {
            self.note_work(now);
        }
    }

    /// Notes how busy the node's thread has kept the processor since that was last noted: at the time from which on it
    /// was so.
    fn note_work(&self, now: Instant) {
        let Some(worked) = self.present.processor_time() else { return };
        let (since, before) = self.worked.replace((now, worked));
        let worked = worked.as_nanos().saturating_sub(before.as_nanos());
        self.note_busy(since, (worked * 1000 / now.since(since).as_nanos().max(1)).min(1000));
    }

    fn note_busy(&self, since: Instant, per_mille: u64) {
        if let Some(Listener { recorder, lanes }) = &mut *self.listener.borrow_mut() {
            let mut recorder = recorder.borrow_mut();
            let row = lanes.counter(PROCESSOR_WORK, &mut *recorder);
            recorder.note(row, since, NotedEvent::Count(per_mille));
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&self, name: &'static str, arguments: &[(&'static str, u64)]) -> SpanPlace {
        let now = self.present.now();
        self.sample(now);
        let mut listener = self.listener.borrow_mut();
        let Some(Listener { recorder, lanes }) = &mut *listener else { return SpanPlace::default() };
        let span = self.spans.get().wrapping_add(1).max(1);
        self.spans.set(span);
        let mut recorder = recorder.borrow_mut();
        let (lane, row) = lanes.begin(self.present.task(), name, span, &mut *recorder);
        recorder.note(row, now, NotedEvent::Begin { name, arguments });
        SpanPlace { lane, span }
    }

    #[cold]
    #[inline(never)]
    fn end(&self, place: SpanPlace) {
        let now = self.present.now();
        if let Some(Listener { recorder, lanes }) = &mut *self.listener.borrow_mut() {
            lanes.end(place, now, &mut *recorder.borrow_mut());
        }
        if self.is_on() {
            self.sample(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn running(&self) -> SpanPlace {
        let (task, _) = self.present.task();
        self.listener
            .borrow()
            .as_ref()
            .and_then(|listener| listener.lanes.innermost(task))
            .unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn note_at(&self, place: SpanPlace, note: NotedEvent<'_>) {
        self.tell(|lanes, _| lanes.row_of(place), note);
    }

    #[cold]
    #[inline(never)]
    fn note_count(&self, counter: CountedPart, value: u64) {
        self.tell(|lanes, recorder| Some(lanes.counter(counter, recorder)), NotedEvent::Count(value));
    }

    fn tell(&self, row: impl FnOnce(&mut Lanes, &mut dyn Recorder) -> Option<RowId>, note: NotedEvent<'_>) {
        if let Some(Listener { recorder, lanes }) = &mut *self.listener.borrow_mut() {
            let mut recorder = recorder.borrow_mut();
            if let Some(row) = row(lanes, &mut *recorder) {
                recorder.note(row, self.present.now(), note);
            }
        }
    }
}

impl NotedSpan<'_> {
    /// Where it is.
    pub fn place(&self) -> SpanPlace {
        self.place
    }
}
