//! Recording of events on a node.
//!
//! A *listener* is an attached recorder. Without a listener an event costs the test of a flag. A listener never changes
//! the behaviour of a node. Spans belong to tasks. Because many tasks share a node's thread, each task within a span
//! has a *lane*: a row without spans of other tasks at the same time. When the task's last span ends, the lane is free
//! for the next task of the same name.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use crate::lanes::{CountedPart, Lanes, SpanPlace};
use crate::recorder::{NotedEvent, Recorder, RowId};
use crate::{Duration, Instant, NodeId};

/// Present time and running task of a machine, used to record events. Queried only if there is a listener.
pub trait Present {
    /// Returns the time.
    fn now(&self) -> Instant;

    /// Returns the running task's number, which is unique at this time, and its name.
    fn task(&self) -> (u64, &'static str);

    /// Returns the processor time that the node's thread has used so far; `None` if the machine records the processor
    /// load itself.
    fn processor_time(&self) -> Option<Duration> {
        None
    }
}

/// Interval between two records of the processor load of the node's thread.
const SAMPLE: Duration = Duration::from_millis(1);

/// Name of the counter of the processor load.
const PROCESSOR_WORK: CountedPart = ("processor", 0, "busy, per mille");

/// Recorder of events on a node for a listener, if there is one.
pub struct NodeNotes {
    is_on: Cell<bool>,
    node: NodeId,
    present: Rc<dyn Present>,
    listener: RefCell<Option<Listener>>,
    /// Number of spans begun while there was a listener. The count continues when a new listener is attached, so that
    /// spans of an earlier listener are not confused with later spans.
    spans: Cell<u32>,
    /// Time of the last sample of the processor time, and the processor time in this sample.
    worked: Cell<(Instant, Duration)>,
}

struct Listener {
    recorder: Rc<RefCell<dyn Recorder>>,
    lanes: Lanes,
}

/// Activity since an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedStretch {
    /// Name of the activity.
    pub name: &'static str,
    /// Start of the activity.
    pub since: Instant,
    /// Details: numbers by name, as in [`NotedEvent::Begin`].
    pub arguments: Vec<(&'static str, u64)>,
}

/// Span of a task, until dropped.
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
    /// Returns the recorder of a node, without a listener.
    pub fn new(node: NodeId, present: Rc<dyn Present>) -> Self {
        let (is_on, listener, spans) = (Cell::new(false), RefCell::new(None), Cell::new(0));
        NodeNotes { is_on, node, present, listener, spans, worked: Cell::default() }
    }

    /// Returns true if there is a listener.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Sends all further events to `recorder`, until [`stop`](Self::stop). Replaces an earlier listener. Spans that
    /// have already begun are not recorded.
    pub fn record(&self, recorder: Rc<RefCell<dyn Recorder>>) {
        let lanes = Lanes::new(self.node);
        let before = self.listener.borrow_mut().replace(Listener { recorder, lanes });
        drop(before);
        self.worked.set((self.present.now(), self.present.processor_time().unwrap_or_default()));
        self.is_on.set(true);
    }

    /// Detaches the listener.
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

    /// Records a span of the running task until the returned value is dropped. `arguments` returns its details and is
    /// called only if there is a listener.
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

    /// Returns the innermost span of the running task, if it has one and there is a listener.
    #[inline(always)]
    pub fn here(&self) -> SpanPlace {
        if self.is_on() { self.running() } else { SpanPlace::default() }
    }

    /// Records that the running task sends a message with the number returned by `number`. Each message needs a unique
    /// number.
    #[inline(always)]
    pub fn sent(&self, number: impl FnOnce() -> u64) {
        if self.is_on() {
            self.note_at(self.running(), NotedEvent::Sent(number()));
        }
    }

    /// Records, on the span `at`, the arrival of the message with the number returned by `number`.
    #[inline(always)]
    pub fn received(&self, at: SpanPlace, number: impl FnOnce() -> u64) {
        if self.is_on() {
            self.note_at(at, NotedEvent::Received(number()));
        }
    }

    /// Records the value that a counter has from now on. `part` is the kind and index of the part of the node that the
    /// counter belongs to.
    #[inline(always)]
    pub fn count(&self, part: (&'static str, usize), name: &'static str, value: u64) {
        if self.is_on() {
            self.note_count((part.0, part.1, name), value);
        }
    }

    /// Returns the present time if there is a listener. A later call of [`did`](Self::did) uses it as the start of an
    /// activity.
    #[inline(always)]
    pub fn moment(&self) -> Option<Instant> {
        self.is_on().then(|| self.present.now())
    }

    /// Records an activity of a part of the node since a moment. `part` is the kind and index of the part. Activities
    /// of one part must not overlap.
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

    /// Records nested activities, ending at `until`, of a part of the node or of another thread of the program. Each
    /// activity lies within the previous one, and all end together. Otherwise, activities of one part must not overlap.
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

    /// Records the processor load, if the interval has passed.
    fn sample(&self, now: Instant) {
        if now.since(self.worked.get().0) >= SAMPLE {
            self.note_work(now);
        }
    }

    /// Records the processor load of the node's thread since the last sample, at the time of that sample.
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
        self.record_event(|lanes, _| lanes.row_of(place), note);
    }

    #[cold]
    #[inline(never)]
    fn note_count(&self, counter: CountedPart, value: u64) {
        self.record_event(|lanes, recorder| Some(lanes.counter(counter, recorder)), NotedEvent::Count(value));
    }

    fn record_event(
        &self,
        row: impl FnOnce(&mut Lanes, &mut dyn Recorder) -> Option<RowId>,
        note: NotedEvent<'_>,
    ) {
        if let Some(Listener { recorder, lanes }) = &mut *self.listener.borrow_mut() {
            let mut recorder = recorder.borrow_mut();
            if let Some(row) = row(lanes, &mut *recorder) {
                recorder.note(row, self.present.now(), note);
            }
        }
    }
}

impl NotedSpan<'_> {
    /// Returns the place of the span.
    pub fn place(&self) -> SpanPlace {
        self.place
    }
}
