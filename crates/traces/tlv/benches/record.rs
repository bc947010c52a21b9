//! Cost of a record: in one thread, in several concurrent threads, and with recording off.
//!
//!     cargo bench -p tlv --bench record
//!
//! Each thread records in bursts that fit its buffer, and pauses between bursts until the writer has run, like a
//! program that works between its records. Each printed time is the median over all bursts, per record or per scope,
//! and includes the cost of the loop.

use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tlv::{Recording, Settings, State, StateInfo};

/// Number of records in a burst: a quarter of the buffer for records, half of it for scopes, so that no record is
/// dropped.
const BURST: usize = 16_000;
const BURSTS: usize = 15;

static WORK: State = State::new("work");

fn main() {
    let directory = tempfile::tempdir().expect("a directory");
    let info = StateInfo { name: "event".into(), category: String::new(), colour: None };
    tlv::declare_events(0, 1, &info).expect("free");
    for is_on in [true, false] {
        let file = Some(directory.path().join("bench.tlv"));
        let recording = Recording::start_with("bench", &Settings { is_on, file, ..Settings::default() });
        let recording = recording.expect("a file");
        println!("{}", if is_on { "switched on" } else { "switched off" });
        let most = thread::available_parallelism().map_or(1, usize::from);
        for threads in if is_on { vec![1, most, 2 * most] } else { vec![1] } {
            measure("a record (TLV_Record)", threads, |number| {
                let _ = black_box(tlv::event((number % 2) as i32));
            });
            measure("a scope (begin and end)", threads, |_| drop(black_box(WORK.enter())));
        }
        let file = recording.file().map(Path::to_owned);
        recording.finish().expect("room on the disk");
        if let Some(file) = file {
            let trace = trace::read("bench", File::open(&file).expect("the file")).expect("a trace");
            let dropped: u64 = trace.threads.iter().map(|thread| thread.dropped).sum();
            println!("  {} spans recorded, {dropped} records dropped", trace.spans.state.len());
        }
    }
}

/// Prints the median time of `work` in bursts, in `threads` concurrent threads.
fn measure(name: &str, threads: usize, work: impl Fn(usize) + Sync) {
    let burst = || {
        let begun = Instant::now();
        (0..BURST).for_each(&work);
        let taken = begun.elapsed().as_nanos() as f64 / BURST as f64;
        thread::sleep(Duration::from_millis(120));
        taken
    };
    let record = || {
        let _ = tlv::add_thread();
        // The first pass through the buffer touches its memory for the first time.
        (0..5).for_each(|_| _ = burst());
        (0..BURSTS).map(|_| burst()).collect::<Vec<_>>()
    };
    let mut bursts: Vec<f64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(record)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    bursts.sort_by(f64::total_cmp);
    let (median, least) = (bursts[bursts.len() / 2], bursts[0]);
    println!("  {name:26} {threads} at once  median {median:6.2} ns  least {least:6.2} ns");
}
