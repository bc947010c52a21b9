//! Why a run, simulated or real, took as long as it did: an account of what was busy, what waited, and what limited it.
//!
//! Of each class of resource (disks, buses, links, processors) it tells how busy its members were on average and
//! which was busiest; of each queue, how long anything waited in it.
//!
//! What limited the run is decided by four rules, in this order, and said with the evidence for it:
//!
//! 1. The class with the busiest member, if that was busy for `LIMIT` of the time.
//! 2. Processors, if half of the compute nodes' time is their processors' work, or work and waits at processors of
//!    I/O nodes, whose replies they waited for: so it is when all nodes go through a file block by block, and
//!    each I/O node is busy for a moment only. (Where a node has many requests under way at a time, this counts waits
//!    that others hide.)
//! 3. Queues at disks, if on average `QUEUED` requests or more waited at each: disks have long queues at some times
//!    and nothing to do at others. So it is where jobs race.
//! 4. Otherwise latency: everybody waited for somebody else.
//!
//! Where no client was recorded, nobody knows who waited for whom: only the first rule and the third are of use.
//!
//! Busy is: a disk whose arm moves or whose medium passes for a purpose, read-ahead included; a bus that carries
//! bytes; a link that a message holds, be it that it waits further on, since nobody else can use the link then, and
//! what it waits for is another link; a processor at work.

use std::fmt;

use command_line::counted;
use experiment::Trial;
use machine::Duration;
use serde::Serialize;
use sim::{DiskStatistics, LinkStatistics, NodeStatistics, Statistics, Waits};

use crate::recorded_run::{PartNames, RecordedRun};
use command_line::durations::shown;

/// From this utilisation of its busiest member on, a class of resources is said to limit a run.
const LIMIT: f64 = 0.7;

/// From this part of the compute nodes' time on, processors are said to limit a run in which none was busy enough.
const PATH: f64 = 0.5;

/// From this number of requests on that on average wait at each disk, queues are said to limit a run in which no disk
/// was busy enough: with one that waits at all times a disk would never be idle if they were spread evenly.
const QUEUED: f64 = 1.0;

/// Among members of a class, one is singled out if all are on average less than this part as busy.
const ALONE: f64 = 0.6;

/// The account of one trial, or of a recorded run.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    /// Which trial of the experiment this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<u64>,
    /// How many events of the run had no room in its trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_events: Option<u64>,
    /// The length of the measured part.
    elapsed_s: f64,
    /// What limited it, in a sentence.
    limit: String,
    /// The class of resources that did, or `processors`, `queues at disks`, `latency` or `unknown`.
    limited_by: &'static str,
    /// How busy everything was.
    resources: Vec<Class>,
    /// How long anything waited.
    queues: Vec<Queue>,
    disks: Disks,
    messages: u64,
    message_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_cache: Option<Flushes>,
}

/// What the write cache did, and where its time went.
#[derive(Clone, Debug, Serialize)]
struct Flushes {
    flushes: u64,
    directory_flushes: u64,
    /// As the member saw it for which flushes took longest: telling what there is, waiting for the other members, and
    /// the I/O nodes at work.
    telling_s: f64,
    meeting_s: f64,
    moving_s: f64,
    /// What is left of the run: filling the caches.
    filling_s: f64,
    write_mean_s: f64,
    write_99_s: f64,
    write_longest_s: f64,
}

/// Resources of one kind.
#[derive(Clone, Debug, Serialize)]
struct Class {
    name: &'static str,
    count: usize,
    /// Utilisation of all on average, as a part of the measured time.
    mean: f64,
    /// The busiest of them.
    busiest: String,
    /// Its utilisation.
    busiest_utilisation: f64,
    /// The part of the mean that is work of interrupts: of processors only.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_interrupts: Option<f64>,
    /// The part of the mean in which bytes are carried: of links only.
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
    /// At which of them the longest was.
    longest_at: String,
}

/// What all disks together did.
#[derive(Clone, Debug, Serialize)]
struct Disks {
    /// Of disks that tell of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    movements: Option<u64>,
    reads: u64,
    writes: u64,
    mean_read_s: f64,
    mean_write_s: f64,
    #[serde(flatten)]
    mechanics: Option<MechanicsTimes>,
}

/// What the mechanics of all disks together did.
#[derive(Clone, Debug, Serialize)]
struct MechanicsTimes {
    seek_s: f64,
    rotation_s: f64,
    transfer_s: f64,
    /// Of disks that tell of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    overhead_s: Option<f64>,
}

impl Account {
    /// The account of the first trial of an experiment, on a machine of so many compute nodes.
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

    /// The account of a run that was recorded.
    pub fn recorded(run: &RecordedRun) -> Self {
        let disks = Disks::new(&run.statistics.disks, false, run.knows_mechanics());
        let missing_events = Some(run.missing).filter(|missing| *missing > 0);
        let account = Account::of(&run.statistics, run.compute_nodes, &run.names);
        let mut account = Account { disks, missing_events, ..account };
        for class in &mut account.resources {
            // How long links carried bytes while they were held is told nowhere, and real nodes tell of no interrupts.
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

    /// The account in plain words, for people.
    pub fn lines(&self) -> Vec<String> {
        let missing = self.missing_events.map(|missing| {
            format!(
                "  The trace is not whole: {} had no room in it. This is what limited the {} that are there:",
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
            telling_s: tally.times.telling.as_secs_f64(),
            meeting_s: tally.times.meeting.as_secs_f64(),
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

/// A member of a class: its name and how long it was busy.
type Member = (String, Duration);

fn resources(statistics: &Statistics, compute_nodes: usize, names: &PartNames) -> Vec<Class> {
    let (compute, io) = statistics.nodes.split_at(compute_nodes);
    let (compute_names, io_names) = names.nodes.split_at(compute_nodes);
    let class = |name, members: Vec<Member>| Class::new(name, &members, statistics);
    let disks = named(&names.disks, &statistics.disks, |disk| {
        // What a disk has buffered at the end it does later.
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

/// Members with their names.
fn named<T>(names: &[String], all: &[T], busy: impl Fn(&T) -> Duration) -> Vec<Member> {
    names.iter().cloned().zip(all.iter().map(busy)).collect()
}

/// The links of all nodes, by name.
fn node_links(statistics: &Statistics, names: &PartNames) -> impl Iterator<Item = (String, LinkStatistics)> {
    names.nodes.iter().zip(&statistics.nodes).flat_map(|(name, node)| {
        [(format!("the link out of {name}"), node.link_out), (format!("the link into {name}"), node.link_in)]
    })
}

/// The virtual channels between routers, by the columns and rows of these.
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

/// What limited the run: the name of a class, or of something else; and a sentence that says why.
fn limit(resources: &[Class], unused: &UnusedTime) -> (&'static str, String) {
    let by_utilisation = |one: &&Class, other: &&Class| {
        one.busiest_utilisation.total_cmp(&other.busiest_utilisation).then(one.mean.total_cmp(&other.mean))
    };
    let Some(first) = resources.iter().max_by(by_utilisation) else {
        return unused.limit("nothing was there that could be busy");
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

/// What is known of a run in which nothing was busy enough.
struct UnusedTime {
    path: ProcessorPath,
    queues: DiskQueues,
    has_clients: bool,
}

impl UnusedTime {
    /// What limited the run, in which nothing was busy enough, as `none` says.
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
                 each. Queues were long while other disks, or the same at other times, had nothing to do, as where \
                 jobs race.",
                shown(mean.as_secs_f64())
            );
            (QUEUES, sentence)
        } else if !self.has_clients {
            (UNKNOWN, format!("What limited this run is not known, since no client is in the trace: {none}."))
        } else {
            (LATENCY, format!("Latency limited this run, the nodes waited for replies: {none}; {times}."))
        }
    }
}

/// Requests that waited for their turn at disks.
#[derive(Clone, Copy)]
struct DiskQueues {
    /// How many waited at each disk, on average over the run.
    waiting: f64,
    /// How long each waited on average.
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

/// What part of the compute nodes' time went by at processors.
struct ProcessorPath {
    /// At work of their own, and waiting for it.
    own: f64,
    /// At work of I/O nodes, and waiting for it.
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
        // The first of those that are equally busy.
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
    /// `is_whole`: all is known of them; `has_mechanics`: at least what their mechanics did.
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
            Some(overhead) => format!("; beside it {} of overhead", shown(overhead)),
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

/// A part of one, in percent.
pub fn percent(part: f64) -> String {
    // The sum of nothing is a negative zero.
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
    fn the_busiest_resource_limits_or_none() {
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
    fn nobody_knows_who_waited_if_no_client_was_recorded() {
        let path = ProcessorPath { own: 0.0, io: 3.0 };
        let queues = DiskQueues { waiting: 0.0, mean: Duration::ZERO };
        let unused = UnusedTime { path, queues, has_clients: false };
        let (by, sentence) = limit(&[class("disks", 0.1, 0.3)], &unused);
        assert!(by == UNKNOWN && sentence.contains("no client is in the trace"), "{sentence}");
    }
}
