//! More threads than buffers: records of threads without a buffer are counted, and ended threads free their buffers for
//! others.
//!
//! This test runs in a separate process, because the buffer size of a row is fixed for the lifetime of the process.

use std::fs::File;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tlv::{Recording, Refused, Settings, State};
use trace::{NoteKind, Timeline};

static WORK: State = State::new("work");

/// Buffer size in bytes: memory suffices for sixteen buffers, one of them for the thread that starts the recording.
const BUFFER_BYTES: usize = 1 << 26;
const ROWS: usize = 15;

/// Returns the recording of `work`.
fn recorded(work: impl FnOnce()) -> Timeline {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x.tlv");
    let settings = Settings { file: Some(path.clone()), buffer_bytes: BUFFER_BYTES, ..Settings::default() };
    let recording = Recording::start_with("test", &settings).expect("a recording");
    work();
    recording.finish().expect("room");
    trace::read("x.tlv", File::open(path).expect("a file")).expect("a trace")
}

#[test]
fn records_of_threads_without_a_buffer_are_counted_until_other_threads_end() {
    const THREADS: usize = 40;
    let all = Barrier::new(THREADS);
    let timeline = recorded(|| {
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    all.wait();
                    drop(WORK.enter());
                    all.wait();
                });
            }
        });
    });
    let refused = (THREADS - ROWS) as u64;
    assert_eq!(timeline.spans.state.len(), ROWS);
    let notes: Vec<(NoteKind, u64)> = timeline.notes.iter().map(|note| (note.kind, note.count)).collect();
    assert_eq!(notes, [(NoteKind::Dropped, refused)]);
    let row = timeline.threads.iter().find(|thread| thread.dropped > 0).expect("a row for them");
    assert_eq!((&*row.name, row.dropped, row.spans.len()), ("threads without a buffer", refused, 0));

    // Each batch needs the rows of the previous batch, and gets them before the next regular round of the writer. Until
    // that round, which comes after 100 ms, each thread would try about 90 times.
    const BATCHES: usize = 20;
    let attempts = AtomicUsize::new(0);
    let work_once_there_is_room = || {
        while tlv::name_thread("worker") == Err(Refused::TooManyThreads) {
            attempts.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(1));
        }
        drop(WORK.enter());
    };
    let timeline = recorded(|| {
        for _ in 0..BATCHES {
            thread::scope(|scope| (0..ROWS).for_each(|_| _ = scope.spawn(work_once_there_is_room)));
        }
    });
    assert_eq!(timeline.spans.state.len(), BATCHES * ROWS);
    let attempts = attempts.into_inner() / (BATCHES * ROWS);
    assert!(attempts < 30, "{attempts} attempts of each thread");
}
