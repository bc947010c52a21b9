//! What a recorder of a trial is told: slices that do not overlap and that add up to the statistics, and a trial that
//! is the same as without it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use description::{Description, MachineDescription};
use experiment::{Case, Contents, DiskLayout, Method, Options};
use layout::Problem;
use machine::{Duration, Instant};
use sim::{Recorder, Slice, Statistics, Track};

/// A slice without its arguments but for one.
struct Told {
    name: &'static str,
    begin: u64,
    end: u64,
    interrupted: u64,
}

#[derive(Default)]
struct Tracks {
    slices: BTreeMap<Track, Vec<Told>>,
    /// The highest count of each track.
    highest: BTreeMap<Track, u64>,
}

#[derive(Clone, Default)]
struct Notes(Rc<RefCell<Tracks>>);

impl Recorder for Notes {
    fn slice(&mut self, slice: Slice<'_>) {
        let (begin, end) = (slice.begin.as_nanos(), slice.end.as_nanos());
        let interrupted = slice.arguments.iter().find(|(name, _)| *name == "interrupted_ns");
        let interrupted = interrupted.map_or(0, |(_, time)| *time);
        let told = Told { name: slice.name, begin, end, interrupted };
        self.0.borrow_mut().slices.entry(slice.track).or_default().push(told);
    }

    fn count(&mut self, track: Track, _time: Instant, value: u64) {
        let mut tracks = self.0.borrow_mut();
        let highest = tracks.highest.entry(track).or_default();
        *highest = value.max(*highest);
    }
}

impl Tracks {
    fn sum(&self, track: Track, of: impl Fn(&Told) -> bool) -> u64 {
        let slices = self.slices.get(&track).into_iter().flatten().filter(|told| of(told));
        slices.map(|told| told.end - told.begin - told.interrupted).sum()
    }

    fn total(&self, track: Track) -> u64 {
        self.sum(track, |_| true)
    }

    fn named(&self, track: Track, name: &str) -> u64 {
        self.sum(track, |told| told.name == name)
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
    let notes = Notes::default();
    let trial = experiment.recorded_trial(0, Box::new(notes.clone())).expect("it runs");
    (trial, Rc::into_inner(notes.0).expect("the recorder is gone").into_inner())
}

#[test]
fn recording_changes_nothing() {
    for experiment in experiments() {
        let trial = experiment.trial(0).expect("it runs");
        let (recorded, _) = recorded(&experiment);
        assert_eq!((recorded.digest, &recorded.statistics), (trial.digest, &trial.statistics));
    }
}

#[test]
fn slices_of_a_track_come_in_order_and_do_not_overlap() {
    for experiment in experiments() {
        let (_, tracks) = recorded(&experiment);
        assert!(tracks.slices.len() > 32, "only {} tracks", tracks.slices.len());
        for (track, slices) in &tracks.slices {
            assert!(slices.iter().all(|told| told.begin <= told.end && !told.name.is_empty()));
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
            let interrupts = tracks.total(Track::Interrupts(index));
            assert_eq!(interrupts, node.processor_interrupts.as_nanos(), "interrupts of node {index}");
            // Work that is under way when recording stops is in the statistics already.
            let under_way = node.processor_threads.as_nanos() - tracks.total(Track::Threads(index));
            assert!(under_way < Duration::from_micros(100).as_nanos(), "{under_way} ns at node {index}");
            let links = [Track::LinkOut(index), Track::LinkIn(index)].map(|track| tracks.total(track));
            assert_eq!(links, [node.link_out.held.as_nanos(), node.link_in.held.as_nanos()]);
        }
        for (index, disk) in disks.iter().enumerate() {
            let commands = ["read", "write"].map(|name| tracks.named(Track::Disk(index), name));
            assert_eq!(commands, [disk.counts.read_time.as_nanos(), disk.counts.write_time.as_nanos()]);
            let phases =
                ["seek", "rotation", "transfer"].map(|name| tracks.named(Track::Mechanics(index), name));
            let mechanics = &disk.mechanics;
            let expected = [mechanics.seek, mechanics.rotation, mechanics.transfer].map(Duration::as_nanos);
            assert_eq!(phases, expected, "disk {index}");
        }
        for (index, bus) in buses.iter().enumerate() {
            assert_eq!(tracks.total(Track::Bus(index)), bus.busy.as_nanos());
        }
    }
}

#[test]
fn work_has_its_names() {
    let (_, tracks) = recorded(&experiment("starfish-1996", "rb", Method::Traditional, 8192));
    for (track, names) in [
        (Track::Threads(0), &["build_request", "handle_reply"][..]),
        (Track::Interrupts(16), &["receive_message", "disk_interrupt"]),
        (Track::Threads(16), &["handle_request", "look_up_cache"]),
        (Track::LinkOut(16), &["message"]),
        (Track::Bus(0), &["read"]),
    ] {
        names.iter().for_each(|name| assert!(tracks.named(track, name) > 0, "{name} on {track:?}"));
    }
    assert!(tracks.highest[&Track::ThreadsWaiting(16)] > 1);
}
