//! Recordings of threads: every record is in the file or counted as dropped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tlv::{Amount, Argument, Counter, Error, Recording, Refused, Settings, State, StateInfo};
use trace::{Mark, NoteKind, Timeline};

/// Serialises the tests, because a process has one recording at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Place {
    directory: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    fn new() -> Self {
        Place { _alone: alone(), directory: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("x.tlv")
    }

    fn settings(&self) -> Settings {
        Settings { file: Some(self.path()), ..Settings::default() }
    }

    fn start(&self) -> Recording {
        Recording::start_with("test", &self.settings()).expect("a recording")
    }

    fn read(&self) -> Timeline {
        read(&self.path())
    }
}

fn read(path: &Path) -> Timeline {
    trace::read("x.tlv", File::open(path).expect("a file")).expect("a trace")
}

fn notes(timeline: &Timeline) -> Vec<(NoteKind, u64)> {
    timeline.notes.iter().map(|note| (note.kind, note.count)).collect()
}

fn state(name: &str) -> StateInfo {
    StateInfo { name: name.into(), category: String::new(), colour: None }
}

static OUTER: State = State::new("outer").in_category("kind");
static INNER: State = State::new("inner");
static STEP: Argument = Argument::new("step");
static QUEUE: Counter = Counter::new("queue").in_unit("items");

#[test]
fn concurrent_threads_are_recorded_completely() {
    const ROUNDS: usize = 2000;
    let place = Place::new();
    let recording = place.start();
    assert_eq!(recording.file(), Some(&*place.path()));
    let work = |thread: usize| {
        tlv::name_thread(&format!("worker {thread}")).expect("room");
        for round in 0..ROUNDS {
            let _outer = OUTER.enter();
            STEP.number(round);
            for _ in 0..thread {
                let _inner = INNER.enter();
            }
            QUEUE.set(round);
            if round % 100 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
    };
    thread::scope(|scope| (0..4).for_each(|thread| _ = scope.spawn(move || work(thread))));
    recording.finish().expect("room");
    let timeline = place.read();
    assert_eq!(notes(&timeline), []);
    // The trace may also contain threads of other tests that are ending.
    assert_eq!(timeline.threads.iter().filter(|thread| thread.name.starts_with("worker")).count(), 4);
    for (index, thread) in timeline.threads.iter().enumerate() {
        let Some(number) = thread.name.strip_prefix("worker ") else { continue };
        let number: usize = number.parse().expect("a number");
        let mut counts = BTreeMap::new();
        for span in thread.spans.clone() {
            let name = &*timeline.states[timeline.spans.state[span] as usize].name;
            *counts.entry((name, timeline.spans.depth[span])).or_insert(0) += 1;
        }
        let mut expected = BTreeMap::from([(("outer", 0), ROUNDS)]);
        if number > 0 {
            expected.insert(("inner", 1), ROUNDS * number);
        }
        assert_eq!(counts, expected);
        let values = timeline.counts.iter().filter(|count| count.thread as usize == index);
        assert!(values.map(|count| count.value).eq((0..ROUNDS).map(Amount::from)), "{number}");
    }
    assert_eq!(timeline.arguments.len(), 4 * ROUNDS);
    // An argument belongs to the state in which it was recorded.
    for argument in &timeline.arguments {
        let state = timeline.spans.state[argument.span as usize];
        assert_eq!(timeline.states[state as usize].name, "outer");
    }
}

#[test]
fn a_span_has_the_duration_of_its_state() {
    let place = Place::new();
    let begun = Instant::now();
    let recording = place.start();
    thread::sleep(Duration::from_millis(3));
    let outer = OUTER.enter();
    let before = Instant::now();
    // This sleep is longer than several rounds of the writer.
    thread::sleep(Duration::from_millis(250));
    let slept = before.elapsed();
    drop(outer);
    let all = begun.elapsed();
    recording.finish().expect("room");
    let spans = place.read().spans;
    let lasted = Duration::from_nanos(spans.end_ns[0] - spans.begin_ns[0]);
    assert!(slept <= lasted && lasted <= all, "{slept:?} {lasted:?} {all:?}");
    assert!(spans.begin_ns[0] >= 3_000_000);
}

#[test]
fn records_without_space_are_counted_as_dropped() {
    const EVENTS: u64 = 300_000;
    let place = Place::new();
    tlv::declare_events(1, 2, &state("burst")).expect("free");
    let settings = Settings { buffer_bytes: 1 << 14, ..place.settings() };
    let recording = Recording::start_with("test", &settings).expect("a recording");
    let recorded = thread::spawn(|| {
        tlv::add_thread().expect("room");
        let outcomes = (0..EVENTS).map(|number| tlv::event(1 + (number % 2) as i32));
        outcomes
            .filter(|outcome| *outcome != Err(Refused::NoRoom))
            .map(|outcome| outcome.expect("recorded"))
            .count()
    });
    let recorded = recorded.join().expect("no panic") as u64;
    recording.finish().expect("room");
    let timeline = place.read();
    let thread = timeline.threads.iter().find(|thread| thread.name != "main" && !thread.spans.is_empty());
    let thread = thread.expect("its row");
    assert!(thread.dropped > 0, "the writer kept up with all records: {recorded}");
    assert_eq!(thread.dropped + recorded, EVENTS);
    let whole = thread.spans.clone().filter(|&span| timeline.spans.mark[span] == Mark::Whole).count() as u64;
    let torn = thread.spans.len() as u64 - whole;
    assert_eq!(2 * whole + torn, recorded);
}

#[test]
fn rows_are_reused_by_later_threads() {
    let place = Place::new();
    let recording = place.start();
    for number in 0..300 {
        let thread = thread::spawn(move || {
            tlv::name_thread(&format!("short {number}")).expect("a row");
            let _outer = OUTER.enter();
        });
        thread.join().expect("no panic");
    }
    recording.finish().expect("room");
    let timeline = place.read();
    assert_eq!((notes(&timeline), timeline.spans.state.len()), (Vec::new(), 300));
    let names = timeline.threads.iter().map(|thread| &*thread.name);
    let mut names: Vec<&str> = names.filter(|name| name.starts_with("short")).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 300);
}

#[test]
fn a_process_has_one_recording_at_a_time() {
    let place = Place::new();
    assert!(matches!(tlv::finish(), Err(Error::Refused(Refused::NotStarted))));
    assert_eq!(tlv::event(1), Err(Refused::NotStarted));
    for is_on in [true, false] {
        let settings = Settings { is_on, ..place.settings() };
        let recording = Recording::start_with("test", &settings).expect("a recording");
        assert_eq!(tlv::is_recording(), is_on);
        assert!(matches!(tlv::start("other", &settings), Err(Error::AlreadyStarted)));
        assert_eq!(tlv::begin(tlv::declare_state(&state("any")).expect("a name")), Ok(()));
        drop(recording);
        assert_eq!(tlv::event(1), Err(Refused::NotStarted));
    }
}

#[test]
fn states_between_two_recordings_are_not_recorded() {
    let place = Place::new();
    let first = place.start();
    drop(OUTER.enter());
    first.finish().expect("room");
    drop(INNER.enter());
    let second = place.start();
    drop(OUTER.enter());
    second.finish().expect("room");
    let timeline = place.read();
    let names: Vec<&str> =
        timeline.spans.state.iter().map(|&state| &*timeline.states[state as usize].name).collect();
    assert_eq!(names, ["outer"]);
}

#[test]
fn a_file_that_another_process_is_writing_stays_unchanged() {
    let place = Place::new();
    let others = File::create(place.path()).expect("a file");
    others.lock().expect("the file is unlocked");
    let recording = place.start();
    let ours = place.directory.path().join(format!("x.{}.tlv", std::process::id()));
    assert_eq!(recording.file(), Some(&*ours));
    drop(OUTER.enter());
    recording.finish().expect("room");
    assert_eq!(read(&ours).spans.state.len(), 1);
    assert_eq!(others.metadata().expect("the file").len(), 0);
}

#[test]
fn a_file_that_is_no_trace_stays_unchanged() {
    let place = Place::new();
    fs::write(place.path(), "somebody's notes\n").expect("room");
    let error = Recording::start_with("test", &place.settings()).expect_err("not ours").to_string();
    assert!(error.contains("x.tlv") && error.contains("not a trace"), "{error}");
    assert_eq!(fs::read(place.path()).expect("the file"), b"somebody's notes\n");
    assert!(!tlv::is_recording());
    fs::write(place.path(), "").expect("room");
    place.start().finish().expect("an empty file may be overwritten");
}

#[test]
fn a_recording_does_not_start_on_a_full_disk() {
    let place = Place::new();
    // Writes to this file fail: no space left on device.
    let settings = Settings { file: Some("/dev/full".into()), ..Settings::default() };
    let error = Recording::start_with("test", &settings).expect_err("no room").to_string();
    assert!(error.contains("/dev/full: No space left on device"), "{error}");
    assert!(!tlv::is_recording());
    drop(place);
}
