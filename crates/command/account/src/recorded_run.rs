//! Utilisation of resources in a recorded run: the sums of a trace, simulated or real, in the form of the simulated
//! machine's own statistics.
//!
//! A simulated machine records the work of its processors, links, buses and disks, each in a separate row. A real
//! machine records only times that the program can measure: processor time of its thread, send and receive times of
//! messages with data, and times in which the file system used a disk.

use std::collections::BTreeMap;

use machine::{Duration, RangeSet};
use sim::{BusStatistics, DiskCounts, DiskStatistics, LinkStatistics, NodeStatistics, Statistics, Waits};
use trace::{ArgumentValue, Mark, Span, Timeline};

/// Sums of a run.
pub struct RecordedRun {
    /// Statistics of the run; the compute nodes come first.
    pub statistics: Statistics,
    /// Number of compute nodes.
    pub compute_nodes: usize,
    /// Names of the parts.
    pub names: PartNames,
    /// Number of events that did not fit into the recording. The sums then cover the time until the last recorded
    /// event.
    pub missing: u64,
}

/// Names of nodes, disks and buses, in the order of their statistics.
pub struct PartNames {
    /// Names of nodes.
    pub nodes: Vec<String>,
    /// Names of disks.
    pub disks: Vec<String>,
    /// Names of buses.
    pub buses: Vec<String>,
}

impl PartNames {
    /// Returns numbered names, for a machine whose parts have no names.
    pub fn numbered(compute_nodes: usize, statistics: &Statistics) -> Self {
        let numbered = |name: &str, count| (0..count).map(|index| format!("{name} {index}")).collect();
        let mut nodes: Vec<String> = numbered("compute node", compute_nodes);
        nodes.extend(numbered("I/O node", statistics.nodes.len() - compute_nodes));
        let (disks, buses) =
            (numbered("disk", statistics.disks.len()), numbered("bus", statistics.buses.len()));
        PartNames { nodes, disks, buses }
    }
}

/// Time range: start and end in nanoseconds.
type Stretch = (u64, u64);

/// Sums of a process, if it is a node.
#[derive(Default)]
struct RecordedNode {
    title: String,
    has_disks: bool,
    has_rows: bool,
    sums: NodeStatistics,
    links: BTreeMap<&'static str, Vec<Stretch>>,
    /// Disks by their number in the node.
    disks: BTreeMap<u64, RecordedDisk>,
    /// Numbers (within the whole machine) of those disks of the node that record their own work, in the order of their
    /// numbers in the node.
    disk_numbers: Vec<u64>,
    buses: BTreeMap<u64, BusStatistics>,
    /// Range from the start of the first span to the end of the last one.
    extent: Option<Stretch>,
}

#[derive(Default)]
struct RecordedDisk {
    sums: DiskStatistics,
    /// Times in which the file system used the disk.
    used: Vec<Stretch>,
    /// Durations of commands at the disk, as the disk recorded them.
    commands: DiskCounts,
    /// Mechanical work as the disk recorded it, including later work such as read-ahead.
    mechanics: BTreeMap<String, Vec<Stretch>>,
}

impl RecordedRun {
    /// Returns the sums of a trace, or `None` if it has no node of Starfish.
    pub fn of(timeline: &Timeline) -> Option<Self> {
        let processes = 0..timeline.processes.len();
        let nodes = processes.map(|process| RecordedNode::of(timeline, process)).filter(|node| node.has_rows);
        let (io, compute): (Vec<_>, Vec<_>) = nodes.partition(|node| node.has_disks);
        let those = if compute.is_empty() { &io } else { &compute };
        let extents = || those.iter().filter_map(|node| node.extent);
        let begin = extents().map(|(begin, _)| begin).min()?;
        let missing = timeline.threads.iter().map(|thread| thread.dropped).sum();
        let mut end = extents().map(|(_, end)| end).max()?;
        if missing > 0 {
            // A span that began before the recording was full can end after the last recorded event.
            let begins = (0..timeline.spans.len()).map(|index| timeline.spans.get(index).begin_ns);
            end = end.min(begins.max()?);
        }
        let mut run = RecordedRun {
            statistics: Statistics {
                elapsed: Duration::from_nanos(end - begin),
                events: 0,
                messages: timeline.flows.len() as u64,
                message_bytes: 0,
                nodes: Vec::new(),
                disks: Vec::new(),
                buses: Vec::new(),
                router_links: Vec::new(),
            },
            compute_nodes: compute.len(),
            names: PartNames { nodes: Vec::new(), disks: Vec::new(), buses: Vec::new() },
            missing,
        };
        compute.into_iter().chain(io).for_each(|node| run.add(node, (begin, end)));
        Some(run)
    }

    fn add(&mut self, mut node: RecordedNode, within: Stretch) {
        for (name, link) in [("link out", &mut node.sums.link_out), ("link in", &mut node.sums.link_in)] {
            let stretches = node.links.remove(name).unwrap_or_default();
            *link = LinkStatistics { held: together(stretches, within), ..LinkStatistics::default() };
        }
        for (number, disk) in node.disks {
            let RecordedDisk { mut sums, used, commands, mechanics } = disk;
            let number_on_machine = node.disk_numbers.get(number as usize);
            if commands != DiskCounts::default() {
                sums.counts = commands;
            }
            self.names.disks.push(match number_on_machine {
                Some(number_on_machine) => format!("disk {number_on_machine}"),
                None => format!("disk {number} of {}", node.title),
            });
            if number_on_machine.is_none() {
                sums.mechanics.transfer = together(used, within);
            }
            for (activity, stretches) in mechanics {
                let lasted = together(stretches, within);
                match activity.as_str() {
                    "seek" => sums.mechanics.seek = lasted,
                    "rotation" => sums.mechanics.rotation = lasted,
                    _ => sums.mechanics.transfer = lasted,
                }
            }
            self.statistics.disks.push(sums);
        }
        for (number, bus) in node.buses {
            self.statistics.buses.push(bus);
            self.names.buses.push(format!("bus {number}"));
        }
        self.statistics.nodes.push(node.sums);
        self.names.nodes.push(node.title);
    }

    /// True if the disks have read or written anything.
    pub fn used_disks(&self) -> bool {
        self.statistics.disks.iter().any(|disk| disk.counts.reads + disk.counts.writes > 0)
    }

    /// True if disks have recorded mechanical work.
    pub fn knows_mechanics(&self) -> bool {
        self.statistics.disks.iter().any(|disk| !(disk.mechanics.seek + disk.mechanics.rotation).is_zero())
    }
}

impl RecordedNode {
    fn of(timeline: &Timeline, process: usize) -> Self {
        let traced = &timeline.processes[process];
        let mut node = RecordedNode {
            title: traced.info.title(),
            has_disks: ["agent", "I/O node"].contains(&traced.info.program.as_str()),
            ..RecordedNode::default()
        };
        let rows = || traced.threads.clone().map(|thread| (thread, Row::of(timeline, thread)));
        node.disk_numbers = rows().filter_map(|(_, row)| row.disk_number()).collect();
        node.disk_numbers.sort_unstable();
        for (thread, row) in rows() {
            for index in timeline.threads[thread].spans.clone() {
                let span = timeline.spans.get(index);
                if span.mark != Mark::NoBegin {
                    node.take(&row, index, span);
                }
            }
        }
        node.take_work(timeline, traced.threads.clone());
        node
    }

    fn take(&mut self, row: &Row<'_>, index: usize, span: Span) {
        let lasts = Duration::from_nanos(span.duration_ns());
        let state = row.timeline.states[span.state as usize].name.as_str();
        match row.part() {
            ("processor: threads", _) => {
                let interrupted = Duration::from_nanos(row.argument(index, "interrupted_ns").unwrap_or(0));
                self.sums.processor_threads += lasts - interrupted;
                wait(&mut self.sums.thread_waits, row.argument(index, "waited_ns").unwrap_or(0));
            }
            ("processor: interrupts", _) => {
                self.sums.processor_interrupts += lasts;
                wait(&mut self.sums.interrupt_waits, row.argument(index, "waited_ns").unwrap_or(0));
            }
            ("link out", _) => self.link("link out", span),
            ("link in", _) => self.link("link in", span),
            ("bus", Some(number)) => {
                let bus = self.buses.entry(number).or_default();
                bus.busy += lasts;
                bus.bytes += row.argument(index, "bytes").unwrap_or(0);
            }
            ("mechanics", Some(number)) => {
                let stretches = self.recording_disk(number).mechanics.entry(state.to_owned()).or_default();
                stretches.push((span.begin_ns, span.end_ns));
            }
            ("disk", Some(number)) => {
                let bytes = row.argument(index, "bytes").unwrap_or(0);
                count(&mut self.recording_disk(number).commands, state, bytes, lasts);
            }
            _ => return self.take_task(row, state, index, span),
        }
        self.has_rows = true;
    }

    fn link(&mut self, name: &'static str, span: Span) {
        self.links.entry(name).or_default().push((span.begin_ns, span.end_ns));
    }

    /// Adds a span of a task of the file system.
    fn take_task(&mut self, row: &Row<'_>, state: &str, index: usize, span: Span) {
        let (begin, end) = self.extent.unwrap_or((span.begin_ns, span.end_ns));
        self.extent = Some((begin.min(span.begin_ns), end.max(span.end_ns)));
        self.has_rows |= state.starts_with("ask: ") || state.starts_with("serve: ");
        let direction = state.strip_prefix("disk ");
        if direction.is_none() && state != "wait for disk" {
            return;
        }
        let Some(number) = row.argument(index, "disk") else { return };
        (self.has_disks, self.has_rows) = (true, true);
        let disk = self.disks.entry(number).or_default();
        let Some(direction) = direction else { return wait(&mut disk.sums.waits, span.duration_ns()) };
        disk.used.push((span.begin_ns, span.end_ns));
        let (bytes, lasts) =
            (row.argument(index, "bytes").unwrap_or(0), Duration::from_nanos(span.duration_ns()));
        count(&mut disk.sums.counts, direction, bytes, lasts);
    }

    /// Returns the disk that has this number within the whole machine and records its own work.
    fn recording_disk(&mut self, number: u64) -> &mut RecordedDisk {
        let index = self.disk_numbers.iter().position(|candidate| *candidate == number).unwrap_or(0);
        self.disks.entry(index as u64).or_default()
    }

    /// Adds the processor time of the thread. A real node records it as a counter: the busy share, in per mille, of the
    /// time until the next sample.
    fn take_work(&mut self, timeline: &Timeline, threads: std::ops::Range<usize>) {
        let name = "processor 0: busy, per mille";
        let Some(counter) = timeline.counters.iter().position(|counter| counter.name == name) else { return };
        let Some((_, end)) = self.extent else { return };
        let is_of_node = |count: &&trace::Count| {
            count.counter as usize == counter && threads.contains(&(count.thread as usize))
        };
        let counts: Vec<&trace::Count> = timeline.counts.iter().filter(is_of_node).collect();
        let untils = counts.iter().skip(1).map(|count| count.time_ns).chain([end]);
        let worked: u64 = counts
            .iter()
            .zip(untils)
            .filter_map(|(count, until)| {
                let trace::Amount::Integer(busy) = count.value else { return None };
                let lasts = until.saturating_sub(count.time_ns);
                Some(lasts / 1000 * u64::try_from(busy).unwrap_or(0).min(1000))
            })
            .sum();
        self.sums.processor_threads += Duration::from_nanos(worked);
    }
}

/// Row of a trace.
struct Row<'a> {
    timeline: &'a Timeline,
    name: &'a str,
}

impl<'a> Row<'a> {
    fn of(timeline: &'a Timeline, thread: usize) -> Self {
        Row { timeline, name: &timeline.threads[thread].name }
    }

    /// Returns the number of the disk if this row records its mechanical work.
    fn disk_number(&self) -> Option<u64> {
        match self.part() {
            ("mechanics", number) => number,
            _ => None,
        }
    }

    /// Returns the kind of the part that the row describes, and its number.
    fn part(&self) -> (&'a str, Option<u64>) {
        let (name, is_mechanics) = match self.name.strip_suffix(": mechanics") {
            Some(name) => (name, true),
            None => (self.name, false),
        };
        let numbered = name.rsplit_once(' ').and_then(|(part, number)| Some((part, number.parse().ok()?)));
        match numbered {
            Some(("disk", number)) if is_mechanics => ("mechanics", Some(number)),
            Some((part, number)) => (part, Some(number)),
            None => (name, None),
        }
    }

    fn argument(&self, span: usize, name: &str) -> Option<u64> {
        let arguments = self.timeline.arguments_of(span);
        let argument =
            arguments.iter().find(|argument| self.timeline.names[argument.name as usize] == name)?;
        match argument.value {
            ArgumentValue::Number(trace::Amount::Integer(value)) => u64::try_from(value).ok(),
            _ => None,
        }
    }
}

/// Counts an access to a disk.
fn count(counts: &mut DiskCounts, direction: &str, bytes: u64, lasts: Duration) {
    match direction {
        "read" => {
            counts.reads += 1;
            counts.bytes_read += bytes;
            counts.read_time += lasts;
        }
        "write" => {
            counts.writes += 1;
            counts.bytes_written += bytes;
            counts.write_time += lasts;
        }
        _ => {}
    }
}

fn wait(waits: &mut Waits, nanoseconds: u64) {
    if nanoseconds > 0 {
        let one = Duration::from_nanos(nanoseconds);
        *waits = waits.and(Waits { count: 1, total: one, longest: one });
    }
}

/// Returns the length of the union of the ranges, within the given range.
fn together(stretches: Vec<Stretch>, (first, last): Stretch) -> Duration {
    let covered: RangeSet = stretches.into_iter().map(|(begin, end)| begin..end).collect();
    Duration::from_nanos(covered.within(&(first..last)).map(|part| part.end - part.start).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_intervals_count_once() {
        let of = |stretches: &[Stretch]| together(stretches.to_vec(), (10, 100)).as_nanos();
        assert_eq!(of(&[(20, 30), (25, 40), (22, 24), (50, 60)]), 30);
        assert_eq!(of(&[(0, 15), (95, 200), (5, 12)]), 10);
        assert_eq!(of(&[]), 0);
    }
}
