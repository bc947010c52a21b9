//! Measures a write of 8 bytes that stays in the write cache, on agents of this process.
//!
//!     cargo bench -p node --bench cached_write
//!
//! The mean is taken over many consecutive writes, and includes the concurrent work of the node thread. For the 99th
//! percentile each write is timed. This includes the time to read the clock, which is printed, too.

use std::hint::black_box;
use std::time::{Duration, Instant};

use node::{CacheWrites, Handle, OpenOptions, Session};
use test_agents::Agents;

const RECORD: usize = 8;
const WRITES: u64 = 400_000;
const ROUNDS: usize = 10;

fn main() {
    let agents = Agents::start(2);
    let mut settings = agents.settings();
    settings.write_cache = Some(CacheWrites { flush_after: None, ..CacheWrites::of(64 << 20) });
    let session = Session::start(settings).expect("the agents are there");
    let file = session.open("records", OpenOptions::new().write(true).create(true)).expect("made");
    measure("consecutive records", &file, RECORD as u64);
    measure("every fourth record", &file, 4 * RECORD as u64);
    file.close().expect("closed");
    session.finish().expect("flushed");
}

/// Prints the best of several rounds, because other programs may disturb the others.
fn measure(name: &str, file: &Handle, stride: u64) {
    let (mut mean, mut slowest) = (f64::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        (0..WRITES).for_each(|number| write(file, number * stride));
        mean = mean.min(begun.elapsed().as_nanos() as f64 / WRITES as f64);
        file.flush().expect("flushed");
        slowest = slowest.min(most_take((0..WRITES).map(|number| took(|| write(file, number * stride)))));
        file.flush().expect("flushed");
    }
    let clock = most_take((0..WRITES).map(|_| took(|| ())));
    println!("{name:22} mean {mean:6.1} ns, 99 % within {slowest:?}, including {clock:?} to read the clock");
}

fn write(file: &Handle, offset: u64) {
    file.write_from(offset, black_box(&[7; RECORD])).expect("cached");
}

fn took(what: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    what();
    begun.elapsed()
}

/// Returns the 99th percentile.
fn most_take(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times[times.len() * 99 / 100]
}
