//! Lanes: rows of a trace on which the spans of tasks are recorded.

use std::collections::{BTreeMap, BTreeSet};

use crate::recorder::{NotedEvent, Recorder, RowId};
use crate::{Instant, NodeId};

/// Place of a span in a trace. Other tasks use it to record events on the span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanPlace {
    pub(crate) lane: u32,
    /// Number of the span, never 0.
    pub(crate) span: u32,
}

/// Lanes of a node: rows that tasks of one name use in turn.
pub(crate) struct Lanes {
    node: NodeId,
    lanes: Vec<Lane>,
    /// Lane of each task that is within a span.
    of_tasks: BTreeMap<u64, u32>,
    /// Free lanes by task name. The lane with the lowest number is used first, so that there are few lanes.
    free: BTreeMap<&'static str, BTreeSet<u32>>,
    counters: BTreeMap<CountedPart, RowId>,
    parts: BTreeMap<(&'static str, usize), RowId>,
}

/// A counter of a part of the node: kind and index of the part, and name of the counter.
pub(crate) type CountedPart = (&'static str, usize, &'static str);

struct Lane {
    row: RowId,
    /// Name of the tasks that use the lane.
    name: &'static str,
    /// Task that occupies the lane.
    task: u64,
    /// Open spans with their names, the innermost last.
    open: Vec<(u32, &'static str)>,
}

impl Lanes {
    pub(crate) fn new(node: NodeId) -> Self {
        let (of_tasks, free, counters) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Lanes { node, lanes: Vec::new(), of_tasks, free, counters, parts: BTreeMap::new() }
    }

    /// Begins a span of a task and returns its lane and row.
    pub(crate) fn begin(
        &mut self,
        (task, task_name): (u64, &'static str),
        name: &'static str,
        span: u32,
        recorder: &mut dyn Recorder,
    ) -> (u32, RowId) {
        let lane = match self.of_tasks.get(&task) {
            Some(lane) => *lane,
            None => self.take(task, task_name, recorder),
        };
        let Lane { row, open, .. } = &mut self.lanes[lane as usize];
        open.push((span, name));
        (lane, *row)
    }

    fn take(&mut self, task: u64, name: &'static str, recorder: &mut dyn Recorder) -> u32 {
        let free = self.free.get_mut(name).and_then(BTreeSet::pop_first);
        let lane = free.unwrap_or_else(|| {
            let others = self.lanes.iter().filter(|lane| lane.name == name).count();
            let row_name = if others == 0 { name.to_owned() } else { format!("{name} {}", others + 1) };
            let row = recorder.row(self.node, &row_name, false);
            self.lanes.push(Lane { row, name, task, open: Vec::new() });
            self.lanes.len() as u32 - 1
        });
        self.lanes[lane as usize].task = task;
        self.of_tasks.insert(task, lane);
        lane
    }

    /// Ends a span, unless it belongs to another listener.
    ///
    /// A task can poll two futures at once, so that an outer span ends before the spans within it. Then the inner spans
    /// are recorded as ended too, and as begun again: so the spans of a row nest, and their total time is right.
    pub(crate) fn end(&mut self, place: SpanPlace, now: Instant, recorder: &mut dyn Recorder) {
        let Some(lane) = self.lanes.get_mut(place.lane as usize) else { return };
        let Some(at) = lane.open.iter().rposition(|(span, _)| *span == place.span) else { return };
        lane.open[at..].iter().for_each(|_| recorder.note(lane.row, now, NotedEvent::End));
        lane.open.remove(at);
        for (_, name) in &lane.open[at..] {
            recorder.note(lane.row, now, NotedEvent::Begin { name, arguments: &[] });
        }
        if lane.open.is_empty() {
            self.of_tasks.remove(&lane.task);
            self.free.entry(lane.name).or_default().insert(place.lane);
        }
    }

    /// Returns the innermost span of a task.
    pub(crate) fn innermost(&self, task: u64) -> Option<SpanPlace> {
        let lane = *self.of_tasks.get(&task)?;
        let (span, _) = *self.lanes[lane as usize].open.last()?;
        Some(SpanPlace { lane, span })
    }

    /// Returns the row of an open span.
    pub(crate) fn row_of(&self, place: SpanPlace) -> Option<RowId> {
        let lane = self.lanes.get(place.lane as usize)?;
        lane.open.iter().any(|(span, _)| *span == place.span).then_some(lane.row)
    }

    /// Returns the row of a part of the node.
    pub(crate) fn part(&mut self, part: (&'static str, usize), recorder: &mut dyn Recorder) -> RowId {
        let new = || recorder.row(self.node, &format!("{} {}", part.0, part.1), false);
        *self.parts.entry(part).or_insert_with(new)
    }

    /// Returns the row of a counter.
    pub(crate) fn counter(&mut self, counter: CountedPart, recorder: &mut dyn Recorder) -> RowId {
        let (part, which, name) = counter;
        let new = || recorder.row(self.node, &format!("{part} {which}: {name}"), true);
        *self.counters.entry(counter).or_insert_with(new)
    }
}
