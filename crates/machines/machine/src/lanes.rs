//! Which row the spans of a task are on.

use std::collections::{BTreeMap, BTreeSet};

use crate::recorder::{NotedEvent, Recorder, RowId};
use crate::{Instant, NodeId};

/// Where a span is, so that others can note something there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanPlace {
    pub(crate) lane: u32,
    /// Its number; none has zero.
    pub(crate) span: u32,
}

/// Lanes of a node: rows that tasks of one name have in turn.
pub(crate) struct Lanes {
    node: NodeId,
    lanes: Vec<Lane>,
    /// The lane of each task that is within a span.
    of_tasks: BTreeMap<u64, u32>,
    /// By name of tasks, the lanes that are free. The first is used first, so there are few lanes.
    free: BTreeMap<&'static str, BTreeSet<u32>>,
    counters: BTreeMap<CountedPart, RowId>,
    parts: BTreeMap<(&'static str, usize), RowId>,
}

/// A number: what it belongs to, which of them, and its name.
pub(crate) type CountedPart = (&'static str, usize, &'static str);

struct Lane {
    row: RowId,
    /// The name of the tasks.
    name: &'static str,
    /// The task that has it.
    task: u64,
    /// Spans that have begun and not ended, with their names, the innermost last.
    open: Vec<(u32, &'static str)>,
}

impl Lanes {
    pub(crate) fn new(node: NodeId) -> Self {
        let (of_tasks, free, counters) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Lanes { node, lanes: Vec::new(), of_tasks, free, counters, parts: BTreeMap::new() }
    }

    /// The lane and the row on which a span of a task begins.
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

    /// Ends a span, unless it is of another listener's time.
    ///
    /// A task may poll two things at once, and the outer span end first. Those within it end with it then, and begin
    /// again: what is told of a row nests, and their time is right.
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

    /// The innermost span of a task.
    pub(crate) fn innermost(&self, task: u64) -> Option<SpanPlace> {
        let lane = *self.of_tasks.get(&task)?;
        let (span, _) = *self.lanes[lane as usize].open.last()?;
        Some(SpanPlace { lane, span })
    }

    /// The row of a span that has not ended.
    pub(crate) fn row_of(&self, place: SpanPlace) -> Option<RowId> {
        let lane = self.lanes.get(place.lane as usize)?;
        lane.open.iter().any(|(span, _)| *span == place.span).then_some(lane.row)
    }

    /// The row of a part of the node.
    pub(crate) fn part(&mut self, part: (&'static str, usize), recorder: &mut dyn Recorder) -> RowId {
        let new = || recorder.row(self.node, &format!("{} {}", part.0, part.1), false);
        *self.parts.entry(part).or_insert_with(new)
    }

    /// The row of a number.
    pub(crate) fn counter(&mut self, counter: CountedPart, recorder: &mut dyn Recorder) -> RowId {
        let (part, which, name) = counter;
        let new = || recorder.row(self.node, &format!("{part} {which}: {name}"), true);
        *self.counters.entry(counter).or_insert_with(new)
    }
}
