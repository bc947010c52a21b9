//! Explains the duration of a simulated or real run: reports busy resources, waits, and the limiting factor.
//!
//! For each class of resource (disks, buses, links, processors) the account has the average utilisation of its members
//! and the busiest member; for each queue, it has the waiting times.
//!
//! These rules, in this order, determine the limiting factor. The account includes the evidence:
//!
//! 1. A class of resources, if its busiest member was busy for `LIMIT` of the time.
//! 2. Processors, if at least `PATH` of the compute nodes' time was work and waits at their own processors, or at the
//!    processors of I/O nodes whose replies they waited for. This happens if all nodes read a file block by block, so
//!    that each I/O node is busy only for a moment. (If a node has several requests in flight, their waits overlap, and
//!    each of them is counted.)
//! 3. Queues at disks, if on average at least `QUEUED` requests waited at each disk: disks have long queues at some
//!    times and are idle at others. This happens if jobs race.
//! 4. Otherwise latency: the nodes waited for each other.
//!
//! If the trace has no client, it does not show which node waited for which. Then only rules 1 and 3 apply.
//!
//! A disk is busy while its arm moves or its medium passes under the head for an access, including read-ahead. A bus is
//! busy while it carries bytes, a processor while it works, and a link while a message occupies it. A message that
//! waits for its next link still occupies the previous one, since no other message can use that link.

use std::fmt;

use command_line::counted;
use experiment::Trial;
use machine::Duration;
use serde::Serialize;
use sim::{DiskStatistics, LinkStatistics, NodeStatistics, Statistics, Waits};

use crate::recorded_run::{PartNames, RecordedRun};
use command_line::durations::shown;

/// Minimum utilisation of the busiest member at which a class of resources limits a run.
const LIMIT: f64 = 0.7;

/// Minimum share of the compute nodes' time at which processors limit a run without a busy class.
const PATH: f64 = 0.5;

/// Minimum average number of waiting requests at each disk at which queues limit a run without a busy disk. If one
/// request always waited for each disk, no disk would be idle if the requests were spread evenly.
const QUEUED: f64 = 1.0;

/// If the average utilisation of a class is below this share of the busiest member's utilisation, the account names
/// this member as the limit, not the class.
const ALONE: f64 = 0.6;

/// Account of one trial, or of a recorded run.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    /// Index of the trial in the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<u64>,
    /// Number of events of the run that did not fit into its trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_events: Option<u64>,
    /// Duration of the measured part.
    elapsed_s: f64,
    /// Sentence about the limiting factor.
    limit: String,
    /// Limiting factor: a class of resources, or `processors`, `queues at disks`, `latency` or `unknown`.
    limited_by: &'static str,
    /// Utilisation of each class of resources.
    resources: Vec<Class>,
    /// Waiting times in each queue.
    queues: Vec<Queue>,
    disks: Disks,
    messages: u64,
    message_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_cache: Option<Flushes>,
}

/// Flushes of the write cache, and their durations.
#[derive(Clone, Debug, Serialize)]
struct Flushes {
    flushes: u64,
    directory_flushes: u64,
    /// Durations at the member with the longest flushes: sending lists of cached writes, waiting for the other members,
    /// and waiting for the I/O nodes.
    telling_s: f64,
    meeting_s: f64,
    moving_s: f64,
    /// Remaining time of the run, in which the caches were filled.
    filling_s: f64,
    write_mean_s: f64,
    write_99_s: f64,
    write_longest_s: f64,
}

/// Utilisation of resources of one kind.
#[derive(Clone, Debug, Serialize)]
struct Class {
    name: &'static str,
    count: usize,
    /// Average utilisation of all members, as a share of the measured time.
    mean: f64,
    /// Name of the busiest member.
    busiest: String,
    /// Utilisation of the busiest member.
    busiest_utilisation: f64,
    /// Share of the mean that is interrupt work, for processors only.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_interrupts: Option<f64>,
    /// Share of the mean in which the link carried bytes, for links only.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_carried: Option<f64>,
}

/// Waits for resources of one kind.
#[derive(Clone, Debug, Serialize)]
struct Queue {
    name: &'static str,
    waits: u64,
    mean_s: f64,
    longest_s: f64,
    /// Name of the resource with the longest wait.
    longest_at: String,
}

/// Work of all disks together.
#[derive(Clone, Debug, Serialize)]
struct Disks {
    /// Number of movements; `None` if the disks do not report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    movements: Option<u64>,
    reads: u64,
    writes: u64,
    mean_read_s: f64,
    mean_write_s: f64,
    #[serde(flatten)]
    mechanics: Option<MechanicsTimes>,
}

/// Mechanical times of all disks together.
#[derive(Clone, Debug, Serialize)]
struct MechanicsTimes {
    seek_s: f64,
    rotation_s: f64,
    transfer_s: f64,
    /// Overhead; `None` if the disks do not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    overhead_s: Option<f64>,
}

impl Account {
    /// Returns the account of the first trial of an experiment, on a machine of `compute_nodes` compute nodes.
    pub fn new(compute_nodes: u32, trial: &Trial) -> Self {
        let (statistics, compute_nodes) = (&trial.statistics, compute_nodes as usize);
        let names = PartNames::numbered(compute_nodes, statistics);
        Account {
            trial: Some(0),
            disks: Disks::new(&statistics.disks, true, true),
            write_cache: Flushes::of(trial),
            ..Account::of(statistics, compute_nodes, &names)
        }
    }

    /// Returns the account of a recorded run.
    pub fn recorded(run: &RecordedRun) -> Self {
        let disks = Disks::new(&run.statistics.disks, false, run.knows_mechanics());
        let missing_events = Some(run.missing).filter(|missing| *missing > 0);
        let account = Account::of(&run.statistics, run.compute_nodes, &run.names);
        let mut account = Account { disks, missing_events, ..account };
        for class in &mut account.resources {
            // A trace has no times in which occupied links carried bytes, and real nodes record no interrupts.
            class.mean_carried = None;
            class.mean_interrupts = class.mean_interrupts.filter(|interrupts| *interrupts > 0.0);
        }
        account
    }

    fn of(statistics: &Statistics, compute_nodes: usize, names: &PartNames) -> Self {
        let (compute, io) = statistics.nodes.split_at(compute_nodes);
        let resources = resources(statistics, compute_nodes, names);
        let queues = queues(statistics, compute_nodes, names);
        let unused = UnusedTime {
            path: ProcessorPath::new(statistics, compute, io),
            queues: DiskQueues::new(statistics),
            has_clients: !compute.is_empty(),
        };
        let (limited_by, limit) = limit(&resources, &unused);
        Account {
            trial: None,
            missing_events: None,
            elapsed_s: statistics.elapsed.as_secs_f64(),
            limit,
            limited_by,
            resources,
            queues,
            disks: Disks::new(&statistics.disks, false, false),
            messages: statistics.messages,
            message_bytes: statistics.message_bytes,
            write_cache: None,
        }
    }

    /// Returns the account as text for people.
    pub fn lines(&self) -> Vec<String> {
        let missing = self.missing_events.map(|missing| {
            format!(
                "  The trace is incomplete: {} did not fit. The limits of the recorded {}:",
                counted(missing, "event"),
                shown(self.elapsed_s)
            )
        });
        let mut lines: Vec<String> = missing.into_iter().collect();
        lines.push(format!("  {}", self.limit));
        lines.extend(self.resources.iter().map(|class| format!("  {class}")));
        lines.extend(self.queues.iter().filter(|queue| queue.waits > 0).map(|queue| format!("  {queue}")));
        lines.extend(self.disks.lines().into_iter().map(|line| format!("  {line}")));
        lines.push(match self.message_bytes.checked_div(self.messages) {
            Some(mean) if mean > 0 => format!("  messages: {}, of {mean} bytes on average", self.messages),
            _ => format!("  messages: {}", self.messages),
        });
        lines.extend(self.write_cache.iter().flat_map(Flushes::lines).map(|line| format!("  {line}")));
        lines
    }
}

impl Flushes {
    fn of(trial: &Trial) -> Option<Self> {
        let job = trial.jobs.iter().find(|job| job.flushes.is_some())?;
        let tally = job.flushes.as_ref()?;
        let seconds = |latency: Option<Duration>| latency.map_or(0.0, Duration::as_secs_f64);
        let latencies = &job.writes.latencies;
        let flushing = tally.times.total().as_secs_f64();
        Some(Flushes {
            flushes: tally.flushes,
            directory_flushes: tally.directory_flushes(),
            telling_s: tally.times.sending.as_secs_f64(),
            meeting_s: tally.times.barrier.as_secs_f64(),
            moving_s: tally.times.moving.as_secs_f64(),
            filling_s: (trial.elapsed.as_secs_f64() - flushing).max(0.0),
            write_mean_s: seconds(latencies.mean()),
            write_99_s: seconds(latencies.percentile(99.0)),
            write_longest_s: seconds(latencies.longest()),
        })
    }

    fn lines(&self) -> [String; 2] {
        [
            format!(
                "write cache: flushed {}, {} of them since a directory was full; filling it {}, telling directories {}, \
                 waiting for the other members {}, I/O nodes at work {}",
                counted(self.flushes, "time"),
                self.directory_flushes,
                shown(self.filling_s),
                shown(self.telling_s),
                shown(self.meeting_s),
                shown(self.moving_s),
            ),
            format!(
                "latency of a write: {} on average, 99 % within {}, longest {}",
                shown(self.write_mean_s),
                shown(self.write_99_s),
                shown(self.write_longest_s)
            ),
        ]
    }
}

/// Member of a class: its name and its busy time.
type Member = (String, Duration);

fn resources(statistics: &Statistics, compute_nodes: usize, names: &PartNames) -> Vec<Class> {
    let (compute, io) = statistics.nodes.split_at(compute_nodes);
    let (compute_names, io_names) = names.nodes.split_at(compute_nodes);
    let class = |name, members: Vec<Member>| Class::new(name, &members, statistics);
    let disks = named(&names.disks, &statistics.disks, |disk| {
        // A disk writes its buffered data only after the end of the run. Do not count that time.
        disk.mechanics.busy().min(statistics.elapsed)
    });
    let buses = named(&names.buses, &statistics.buses, |bus| bus.busy);
    let mut classes = vec![class(DISKS, disks), class(BUSES, buses)];
    for (name, links) in [
        (NODE_LINKS, node_links(statistics, names).collect::<Vec<_>>()),
        (ROUTER_LINKS, router_links(statistics).collect()),
    ] {
        let carried = links.iter().map(|(_, link)| statistics.utilisation(link.carried)).sum::<f64>();
        let mean_carried = Some(carried / links.len().max(1) as f64);
        let held = links.into_iter().map(|(name, link)| (name, link.held)).collect();
        classes.push(Class { mean_carried, ..class(name, held) });
    }
    for (class_name, names, nodes) in
        [(COMPUTE_PROCESSORS, compute_names, compute), (IO_PROCESSORS, io_names, io)]
    {
        let busy = |node: &NodeStatistics| node.processor_threads + node.processor_interrupts;
        let interrupts = nodes.iter().map(|node| statistics.utilisation(node.processor_interrupts));
        let mean_interrupts = interrupts.sum::<f64>() / nodes.len().max(1) as f64;
        let class = class(class_name, named(names, nodes, busy));
        classes.push(Class { mean_interrupts: Some(mean_interrupts), ..class });
    }
    classes.retain(|class| class.count > 0);
    classes
}

const DISKS: &str = "disks";
const BUSES: &str = "buses";
const NODE_LINKS: &str = "links of nodes";
const ROUTER_LINKS: &str = "channels between routers";
const COMPUTE_PROCESSORS: &str = "processors of compute nodes";
const IO_PROCESSORS: &str = "processors of I/O nodes";

/// Pairs names with the busy times of members.
fn named<T>(names: &[String], all: &[T], busy: impl Fn(&T) -> Duration) -> Vec<Member> {
    names.iter().cloned().zip(all.iter().map(busy)).collect()
}

/// Returns the links of all nodes, by name.
fn node_links(statistics: &Statistics, names: &PartNames) -> impl Iterator<Item = (String, LinkStatistics)> {
    names.nodes.iter().zip(&statistics.nodes).flat_map(|(name, node)| {
        [(format!("the link out of {name}"), node.link_out), (format!("the link into {name}"), node.link_in)]
    })
}

/// Returns the virtual channels between routers, named by the columns and rows of the routers.
fn router_links(statistics: &Statistics) -> impl Iterator<Item = (String, LinkStatistics)> {
    statistics.router_links.iter().map(|link| {
        let ((column, row), (to_column, to_row)) = (link.from, link.to);
        let name = format!("channel {} from router ({column},{row}) to ({to_column},{to_row})", link.channel);
        (name, link.link)
    })
}

fn queues(statistics: &Statistics, compute_nodes: usize, names: &PartNames) -> Vec<Queue> {
    let disks = waits(&names.disks, &statistics.disks, |disk| disk.waits);
    let buses = waits(&names.buses, &statistics.buses, |bus| bus.waits);
    let (compute, io) = statistics.nodes.split_at(compute_nodes);
    let (compute_names, io_names) = names.nodes.split_at(compute_nodes);
    let threads = |names, nodes| waits(names, nodes, |node: &NodeStatistics| node.thread_waits);
    let interrupts = |names, nodes| waits(names, nodes, |node: &NodeStatistics| node.interrupt_waits);
    vec![
        Queue::new("requests for their turn at a disk", disks),
        Queue::new("transfers for a bus", buses),
        Queue::new(
            "messages for a link of a node",
            node_links(statistics, names).map(|(name, link)| (name, link.waits)),
        ),
        Queue::new(
            "messages for a channel between routers",
            router_links(statistics).map(|(name, link)| (name, link.waits)),
        ),
        Queue::new("threads for the processor of a compute node", threads(compute_names, compute)),
        Queue::new("threads for the processor of an I/O node", threads(io_names, io)),
        Queue::new("interrupts for the processor of a compute node", interrupts(compute_names, compute)),
        Queue::new("interrupts for the processor of an I/O node", interrupts(io_names, io)),
    ]
}

fn waits<'a, T>(
    names: &'a [String],
    all: &'a [T],
    waits: impl Fn(&T) -> Waits + 'a,
) -> impl Iterator<Item = (String, Waits)> + 'a {
    names.iter().cloned().zip(all.iter().map(waits))
}

/// Returns the name of the limiting factor (a class or another factor), and a sentence with the reason.
fn limit(resources: &[Class], unused: &UnusedTime) -> (&'static str, String) {
    let by_utilisation = |one: &&Class, other: &&Class| {
        one.busiest_utilisation.total_cmp(&other.busiest_utilisation).then(one.mean.total_cmp(&other.mean))
    };
    let Some(first) = resources.iter().max_by(by_utilisation) else {
        return unused.limit("the run used no resource that could be busy");
    };
    let busiest = percent(first.busiest_utilisation);
    if first.busiest_utilisation < LIMIT {
        let none = format!("nothing was busy all the time (at most {}, {busiest})", first.busiest);
        return unused.limit(&none);
    }
    let next = resources.iter().filter(|class| class.name != first.name).max_by(by_utilisation);
    let next = next.map_or(String::new(), |next| {
        format!("; of all else, {} was busiest, {}", next.busiest, percent(next.busiest_utilisation))
    });
    let subject = if first.mean < ALONE * first.busiest_utilisation {
        let (mean, name) = (percent(first.mean), first.name);
        format!(
            "One of the {name} limited this run: {} was busy {busiest} of the time, all {mean} on average",
            first.busiest
        )
    } else {
        let (mean, name) = (percent(first.mean), first.name);
        format!("The {name} limited this run: busy {mean} of the time, {} {busiest}", first.busiest)
    };
    (first.name, format!("{subject}{next}."))
}

const LATENCY: &str = "latency";
const PROCESSORS: &str = "processors";
const QUEUES: &str = "queues at disks";
const UNKNOWN: &str = "unknown";

/// Evidence for a run without a busy class.
struct UnusedTime {
    path: ProcessorPath,
    queues: DiskQueues,
    has_clients: bool,
}

impl UnusedTime {
    /// Returns the limiting factor of a run without a busy class, with the reason. `none` is the part of the sentence
    /// that says that no class was busy.
    fn limit(&self, none: &str) -> (&'static str, String) {
        let ProcessorPath { own, io } = self.path;
        let (own_part, io_part) = (percent(own), percent(io));
        let times = format!(
            "of the compute nodes' time, work and waits at their own processors make up {own_part}, and at the \
             processors of I/O nodes {io_part}"
        );
        if self.has_clients && own + io >= PATH {
            (PROCESSORS, format!("Processors limited this run, one after the other: {none}, but {times}."))
        } else if self.queues.waiting >= QUEUED {
            let DiskQueues { waiting, mean } = self.queues;
            let sentence = format!(
                "Queues at disks limited this run: {none}, but on average {waiting:.0} requests waited at each disk, {} \
                 each. Queues were long while other disks, or the same disk at other times, were idle, as when jobs \
                 race.",
                shown(mean.as_secs_f64())
            );
            (QUEUES, sentence)
        } else if !self.has_clients {
            (UNKNOWN, format!("The limit of this run is unknown, because the trace has no client: {none}."))
        } else {
            (LATENCY, format!("Latency limited this run, the nodes waited for replies: {none}; {times}."))
        }
    }
}

/// Requests that waited in queues of disks.
#[derive(Clone, Copy)]
struct DiskQueues {
    /// Number of requests that waited at each disk, on average over the run.
    waiting: f64,
    /// Average wait of a request.
    mean: Duration,
}

impl DiskQueues {
    fn new(statistics: &Statistics) -> Self {
        let disks = &statistics.disks;
        let waits = disks.iter().fold(Waits::default(), |all, disk| all.and(disk.waits));
        let waiting = statistics.utilisation(waits.total) / disks.len().max(1) as f64;
        DiskQueues { waiting, mean: waits.mean() }
    }
}

/// Shares of the compute nodes' time that were spent at processors.
struct ProcessorPath {
    /// Work and waits at their own processors.
    own: f64,
    /// Work and waits at processors of I/O nodes.
    io: f64,
}

impl ProcessorPath {
    fn new(statistics: &Statistics, compute: &[NodeStatistics], io: &[NodeStatistics]) -> Self {
        let part = |nodes: &[NodeStatistics]| {
            let time = |node: &NodeStatistics| {
                let work = node.processor_threads + node.processor_interrupts;
                work + node.thread_waits.total + node.interrupt_waits.total
            };
            let time = nodes.iter().map(|node| statistics.utilisation(time(node))).sum::<f64>();
            time / compute.len().max(1) as f64
        };
        ProcessorPath { own: part(compute), io: part(io) }
    }
}

impl Class {
    fn new(name: &'static str, members: &[Member], statistics: &Statistics) -> Self {
        let count = members.len();
        let total: f64 = members.iter().map(|(_, busy)| statistics.utilisation(*busy)).sum();
        // `max_by_key` returns the last of equal elements, which is the first one in reversed order.
        let busiest = members.iter().rev().max_by_key(|(_, busy)| *busy);
        let (busiest, busy) = busiest.cloned().unwrap_or_default();
        let busiest_utilisation = statistics.utilisation(busy);
        let mean = total / count.max(1) as f64;
        Class { name, count, mean, busiest, busiest_utilisation, mean_interrupts: None, mean_carried: None }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Class { name, count, mean, busiest, busiest_utilisation, .. } = self;
        write!(f, "{name} ({count}): busy {} on average", percent(*mean))?;
        if let Some(carried) = self.mean_carried {
            write!(f, " ({} carrying bytes)", percent(carried))?;
        }
        if let Some(interrupts) = self.mean_interrupts {
            write!(f, " ({} threads, {} interrupts)", percent(mean - interrupts), percent(interrupts))?;
        }
        write!(f, "; {busiest}: {}", percent(*busiest_utilisation))
    }
}

impl Queue {
    fn new(name: &'static str, members: impl Iterator<Item = (String, Waits)>) -> Self {
        let mut all = Waits::default();
        let mut longest_at = String::new();
        for (member, waits) in members {
            if waits.longest > all.longest {
                longest_at = member;
            }
            all = all.and(waits);
        }
        let (mean_s, longest_s) = (all.mean().as_secs_f64(), all.longest.as_secs_f64());
        Queue { name, waits: all.count, mean_s, longest_s, longest_at }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Queue { name, waits, mean_s, longest_s, longest_at } = self;
        let (mean, longest) = (shown(*mean_s), shown(*longest_s));
        write!(f, "waits of {name}: {waits}, {mean} on average, {longest} at most ({longest_at})")
    }
}

impl Disks {
    /// Sums the statistics of all disks. `is_whole` is true if all times of the disks are known, `has_mechanics` if at
    /// least their mechanical times are known.
    fn new(disks: &[DiskStatistics], is_whole: bool, has_mechanics: bool) -> Self {
        let count = |of: fn(&DiskStatistics) -> u64| disks.iter().map(of).sum::<u64>();
        let time = |of: fn(&DiskStatistics) -> Duration| {
            Duration::from_nanos(disks.iter().map(|disk| of(disk).as_nanos()).sum()).as_secs_f64()
        };
        let (reads, writes) = (count(|disk| disk.counts.reads), count(|disk| disk.counts.writes));
        let mean = |time: f64, count: u64| if count == 0 { 0.0 } else { time / count as f64 };
        Disks {
            movements: is_whole.then(|| count(|disk| disk.mechanics.movements)),
            reads,
            writes,
            mean_read_s: mean(time(|disk| disk.counts.read_time), reads),
            mean_write_s: mean(time(|disk| disk.counts.write_time), writes),
            mechanics: has_mechanics.then(|| MechanicsTimes {
                seek_s: time(|disk| disk.mechanics.seek),
                rotation_s: time(|disk| disk.mechanics.rotation),
                transfer_s: time(|disk| disk.mechanics.transfer),
                overhead_s: is_whole.then(|| time(|disk| disk.mechanics.overhead)),
            }),
        }
    }

    fn lines(&self) -> Vec<String> {
        let Disks { movements, reads, writes, .. } = self;
        let movements =
            movements.map_or(String::new(), |movements| format!("; {}", counted(movements, "movement")));
        let accesses = format!(
            "disk accesses: {}, {} each; {}, {} each{movements}",
            counted(*reads, "read"),
            shown(self.mean_read_s),
            counted(*writes, "write"),
            shown(self.mean_write_s)
        );
        std::iter::once(accesses).chain(self.mechanics.as_ref().map(MechanicsTimes::line)).collect()
    }
}

impl MechanicsTimes {
    fn line(&self) -> String {
        let busy = self.seek_s + self.rotation_s + self.transfer_s;
        let part = |time: f64| percent(if busy > 0.0 { time / busy } else { 0.0 });
        let overhead = match self.overhead_s {
            Some(overhead) => format!("; in addition {} of overhead", shown(overhead)),
            None => String::new(),
        };
        format!(
            "disk time: {} seeking, {} waiting for the rotation, {} transferring{overhead}",
            part(self.seek_s),
            part(self.rotation_s),
            part(self.transfer_s),
        )
    }
}

/// Formats a share (1 is the whole) in percent.
pub fn percent(part: f64) -> String {
    // The sum of no elements is -0.0; adding 0.0 makes it 0.0.
    format!("{:.0} %", 100.0 * part + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &'static str, mean: f64, busiest: f64) -> Class {
        Class {
            name,
            count: 2,
            mean,
            busiest: format!("{name} 1"),
            busiest_utilisation: busiest,
            mean_interrupts: None,
            mean_carried: None,
        }
    }

    #[test]
    fn a_run_is_limited_by_a_busy_resource_or_by_waits() {
        let unused = |own, io, waiting| UnusedTime {
            path: ProcessorPath { own, io },
            queues: DiskQueues { waiting, mean: Duration::from_secs(3) },
            has_clients: true,
        };
        let limit = |classes: &[Class]| limit(classes, &unused(0.1, 0.2, 0.9));
        let (by, sentence) = limit(&[class("disks", 0.9, 0.95), class("buses", 0.1, 0.2)]);
        assert_eq!(by, "disks");
        assert_eq!(
            sentence,
            "The disks limited this run: busy 90 % of the time, disks 1 95 %; of all else, buses 1 was busiest, 20 %."
        );
        let (by, sentence) = limit(&[class("disks", 0.1, 0.95), class("buses", 0.1, 0.2)]);
        assert!(by == "disks" && sentence.starts_with("One of the disks limited this run"), "{sentence}");
        let (by, sentence) = limit(&[class("disks", 0.1, 0.3), class("buses", 0.1, 0.2)]);
        assert!(by == LATENCY && sentence.contains("at most disks 1, 30 %"), "{sentence}");
        let (by, sentence) = super::limit(&[class("disks", 0.1, 0.3)], &unused(0.4, 0.2, 0.9));
        assert!(by == PROCESSORS && sentence.contains("40 %") && sentence.contains("20 %"), "{sentence}");
        let (by, sentence) = super::limit(&[class("disks", 0.6, 0.6)], &unused(0.0, 0.0, 17.0));
        assert!(by == QUEUES && sentence.contains("17 requests waited at each disk, 3"), "{sentence}");
    }

    #[test]
    fn the_limit_is_unknown_if_no_client_was_recorded() {
        let path = ProcessorPath { own: 0.0, io: 3.0 };
        let queues = DiskQueues { waiting: 0.0, mean: Duration::ZERO };
        let unused = UnusedTime { path, queues, has_clients: false };
        let (by, sentence) = limit(&[class("disks", 0.1, 0.3)], &unused);
        assert!(by == UNKNOWN && sentence.contains("the trace has no client"), "{sentence}");
    }
}
