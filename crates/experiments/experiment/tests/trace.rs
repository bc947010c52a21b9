//! Tests of the events that a trial reports to its recorder: the slices of a track do not overlap, and add up to the
//! statistics of the trial. Recording does not change the result of the trial.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use description::{Description, MachineDescription};
use experiment::{Case, Contents, DiskLayout, Method, Options};
use layout::Problem;
use machine::{Duration, Instant, NodeId, NotedEvent, Recorder, RowId};
use sim::Statistics;

/// A slice, and its argument `interrupted_ns`: the time for which it was interrupted.
struct Slice {
    name: &'static str,
    begin: u64,
    end: u64,
    interrupted: u64,
}

/// A track: its node and name.
type Track = (usize, String);

#[derive(Default)]
struct Tracks {
    rows: Vec<Track>,
    /// Slices on each row that have begun and not ended.
    open: BTreeMap<RowId, Vec<Slice>>,
    slices: BTreeMap<Track, Vec<Slice>>,
    /// Highest count of each track.
    highest: BTreeMap<Track, u64>,
    /// Identifiers of the sent messages, and those of the received messages.
    messages: [BTreeSet<u64>; 2],
}

impl Recorder for Tracks {
    fn row(&mut self, node: NodeId, name: &str, _: bool) -> RowId {
        self.rows.push((node.0 as usize, name.to_owned()));
        RowId(self.rows.len() as u32 - 1)
    }

    fn note(&mut self, row: RowId, time: Instant, event: NotedEvent<'_>) {
        let track = self.rows[row.0 as usize].clone();
        let open = self.open.entry(row).or_default();
        match event {
            NotedEvent::Begin { name, arguments } => {
                let interrupted = arguments.iter().find(|(name, _)| *name == "interrupted_ns");
                let interrupted = interrupted.map_or(0, |(_, time)| *time);
                open.push(Slice { name, begin: time.as_nanos(), end: 0, interrupted });
            }
            NotedEvent::End => {
                let slice = Slice { end: time.as_nanos(), ..open.pop().expect("it has begun") };
                // A slice inside another slice is part of it.
                if open.is_empty() {
                    self.slices.entry(track).or_default().push(slice);
                }
            }
            NotedEvent::Count(value) => {
                let highest = self.highest.entry(track).or_default();
                *highest = value.max(*highest);
            }
            NotedEvent::Sent(number) => assert!(self.messages[0].insert(number), "sent once"),
            NotedEvent::Received(number) => assert!(self.messages[1].insert(number), "received once"),
        }
    }
}

impl Tracks {
    fn sum(&self, track: &Track, of: impl Fn(&Slice) -> bool) -> u64 {
        let slices = self.slices.get(track).into_iter().flatten().filter(|slice| of(slice));
        slices.map(|slice| slice.end - slice.begin - slice.interrupted).sum()
    }

    fn total(&self, node: usize, name: &str) -> u64 {
        self.sum(&(node, name.to_owned()), |_| true)
    }

    fn named(&self, (node, row): (usize, &str), name: &str) -> u64 {
        self.sum(&(node, row.to_owned()), |slice| slice.name == name)
    }
}

fn experiment(machine: &str, pattern: &str, method: Method, record_bytes: u64) -> Case {
    let machine = MachineDescription::load(machine).expect("built in");
    let nodes = machine.nodes.compute.value;
    Case {
        machine,
        method,
        pattern: pattern.parse().expect("a pattern"),
        problem: Problem::new(1 << 20, record_bytes, nodes),
        layout: DiskLayout::Contiguous,
        options: Options::default(),
        contents: Contents::Phantom,
        seed: 1,
    }
}

fn experiments() -> Vec<Case> {
    vec![
        experiment("starfish-1996", "rb", Method::Traditional, 8192),
        experiment("starfish-1996", "rc", Method::Traditional, 64),
        experiment("starfish-1996", "wcc", Method::Traditional, 8192),
        experiment("starfish-1996", "rcb", Method::DiskDirected, 512),
        experiment("starfish-1996", "wb", Method::DiskDirected, 8192),
        Case { layout: DiskLayout::Random, ..experiment("starfish-1996", "rb", Method::Traditional, 8192) },
        experiment("cluster-switch", "rcb", Method::DiskDirected, 512),
    ]
}

fn recorded(experiment: &Case) -> (experiment::Trial, Tracks) {
    let tracks: Rc<RefCell<Tracks>> = Rc::default();
    let trial = experiment.recorded_trial(0, tracks.clone()).expect("it runs");
    (trial, Rc::into_inner(tracks).expect("the recorder is dropped").into_inner())
}

#[test]
fn recording_does_not_change_the_trial() {
    for experiment in experiments() {
        let trial = experiment.trial(0).expect("it runs");
        let (recorded, _) = recorded(&experiment);
        assert_eq!((recorded.digest, &recorded.statistics), (trial.digest, &trial.statistics));
    }
}

#[test]
fn slices_of_a_track_are_in_order_and_do_not_overlap() {
    for experiment in experiments() {
        let (_, tracks) = recorded(&experiment);
        assert!(tracks.slices.len() > 32, "only {} tracks", tracks.slices.len());
        for (track, slices) in &tracks.slices {
            assert!(slices.iter().all(|slice| slice.begin <= slice.end && !slice.name.is_empty()));
            for pair in slices.windows(2) {
                let (first, second) = (pair[0].end, pair[1].begin);
                assert!(
                    first <= second,
                    "{track:?}: {} until {first}, {} from {second}",
                    pair[0].name,
                    pair[1].name
                );
            }
        }
    }
}

#[test]
fn slices_add_up_to_the_statistics() {
    for experiment in experiments() {
        let (trial, tracks) = recorded(&experiment);
        let Statistics { nodes, disks, buses, .. } = &trial.statistics;
        for (index, node) in nodes.iter().enumerate() {
            let interrupts = tracks.total(index, "processor: interrupts");
            assert_eq!(interrupts, node.processor_interrupts.as_nanos(), "interrupts of node {index}");
            // Work that is in progress when recording stops is already in the statistics.
            let under_way = node.processor_threads.as_nanos() - tracks.total(index, "processor: threads");
            assert!(under_way < Duration::from_micros(100).as_nanos(), "{under_way} ns at node {index}");
            let links = ["link out", "link in"].map(|name| tracks.total(index, name));
            assert_eq!(links, [node.link_out.held.as_nanos(), node.link_in.held.as_nanos()]);
        }
        let (compute, per_node) = (
            experiment.machine.nodes.compute.value as usize,
            experiment.machine.disks.per_io_node.value as usize,
        );
        for (index, disk) in disks.iter().enumerate() {
            let node = compute + index / per_node;
            let row = format!("disk {index}");
            let commands = ["read", "write"].map(|name| tracks.named((node, &row), name));
            assert_eq!(commands, [disk.counts.read_time.as_nanos(), disk.counts.write_time.as_nanos()]);
            let phases = ["seek", "rotation", "transfer"]
                .map(|name| tracks.named((node, &format!("{row}: mechanics")), name));
            let mechanics = &disk.mechanics;
            let expected = [mechanics.seek, mechanics.rotation, mechanics.transfer].map(Duration::as_nanos);
            assert_eq!(phases, expected, "disk {index}");
        }
        for (index, bus) in buses.iter().enumerate() {
            let node = compute + index * nodes[compute..].len() / buses.len();
            assert_eq!(tracks.total(node, &format!("bus {index}")), bus.busy.as_nanos());
        }
    }
}

#[test]
fn each_kind_of_work_is_recorded_under_its_own_name() {
    let (_, tracks) = recorded(&experiment("starfish-1996", "rb", Method::Traditional, 8192));
    for (track, names) in [
        ((0, "processor: threads"), &["build_request", "handle_reply"][..]),
        ((16, "processor: interrupts"), &["receive_message", "disk_interrupt"]),
        ((16, "processor: threads"), &["handle_request", "look_up_cache"]),
        ((16, "link out"), &["message"]),
        ((16, "bus 0"), &["read"]),
    ] {
        names.iter().for_each(|name| assert!(tracks.named(track, name) > 0, "{name} on {track:?}"));
    }
    assert!(tracks.highest[&(16, "threads waiting for the processor".to_owned())] > 1);
}

/// The file system records the work of clients and I/O nodes, and each message from sender to receiver.
#[test]
fn nodes_record_their_work_and_messages() {
    for experiment in experiments() {
        let (trial, tracks) = recorded(&experiment);
        let all = |node: usize, row: &str| {
            let of_row = move |((at, name), _): &(&Track, &Vec<Slice>)| *at == node && name.starts_with(row);
            tracks.slices.iter().filter(of_row).flat_map(|(_, slice)| slice).collect::<Vec<_>>()
        };
        let io_node = experiment.machine.nodes.compute.value as usize;
        let (row, names) = match experiment.method {
            Method::Traditional => ("request thread", ["serve: read", "serve: write"]),
            _ => ("collective buffer", ["move block"; 2]),
        };
        let served = all(io_node, row);
        let done: BTreeSet<&str> = served.iter().map(|slice| slice.name).collect();
        assert!(!done.is_empty() && done.iter().all(|name| names.contains(name)), "{done:?}");
        let busy = |node| all(node, "application").iter().map(|slice| slice.end - slice.begin).sum::<u64>();
        let (busiest, elapsed) = ((0..io_node).map(busy).max().unwrap_or(0), trial.elapsed.as_nanos());
        assert!((elapsed / 50..=elapsed).contains(&busiest), "{busiest} ns of {elapsed} ns");
        let [sent, received] = &tracks.messages;
        // Messages in flight when recording ends are not received.
        let (came, left) = (received.len(), sent.len());
        assert!(
            received.is_subset(sent) && left < came + 40 && left > 32,
            "{came} of {left} sent messages were received"
        );
    }
}
