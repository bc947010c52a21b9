//! What this computer gives at most, measured in the same run.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use fs::Prefetch;
use serde::Serialize;

use super::PAGE_BYTES;
use super::application::Application;
use super::testbed::Testbed;
use super::times::measure;
use crate::command::bench::{bare, median, receive_in_turn, stripe_files, throughput};
use crate::failure::{Failure, Result};

/// Physical limits, and how near the file system comes to them when no disk is slow. Throughputs are in MB/s, MB = 2^20
/// bytes, processor time in seconds for each GiB.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Limits {
    /// Copying in memory.
    pub(crate) copy: f64,
    /// Reading a file that is in the system's page cache.
    pub(crate) local_read: f64,
    /// One plain sender, one receiver.
    pub(crate) one_sender: f64,
    /// Four of them.
    pub(crate) bare_stripe: f64,
    /// The processor's time for that, receiver and senders.
    pub(crate) bare_stripe_processor: f64,
    /// Reading a striped file from four agents that find it in the system's page cache.
    pub(crate) striped: f64,
    /// The processor's time for that, client and agents.
    pub(crate) striped_processor: f64,
    /// Seconds that a page takes from an agent that has it in its memory, asked for one by one.
    pub(crate) page: f64,
}

/// The agents of the bare stripe.
pub(crate) const AGENTS: usize = 4;

/// A file of so many bytes is in an agent's cache after it was read once.
const SMALL_BYTES: u64 = PAGE_BYTES * 8;

/// How often it is read, and how long before each page nothing is done.
const SMALL_ROUNDS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(3);

/// Measures all of them, with `bytes` bytes, before the disks are slowed down. What is compared is measured in turn.
pub(crate) fn measure_limits(testbed: &Testbed, bytes: u64, rounds: u32) -> Result<Limits> {
    testbed.write(AGENTS, bytes)?;
    testbed.write(1, SMALL_BYTES)?;
    let files = stripe_files(testbed.agents(), bytes)?;
    let mut columns: [Vec<f64>; 7] = Default::default();
    for _ in 0..rounds {
        let (all, all_times) = measure(None, || bare(&files, PAGE_BYTES as usize, receive_in_turn));
        let (striped, _) = testbed.run(Application::Cat, bytes, Some((AGENTS, Prefetch::Adaptive)))?;
        let gib = bytes as f64 / f64::from(1 << 30);
        let row = [
            all?,
            all_times.processor().as_secs_f64() / gib,
            throughput(bytes, striped.elapsed),
            striped.processor().as_secs_f64() / gib,
            bare(&files[..1], PAGE_BYTES as usize, receive_in_turn)?,
            copy(bytes),
            read_local(&files[0])?,
        ];
        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
    let [bare_stripe, bare_stripe_processor, striped, striped_processor, one_sender, copy, local_read] =
        columns.map(median);
    let page = page(testbed)?;
    Ok(Limits {
        copy,
        local_read,
        one_sender,
        bare_stripe,
        bare_stripe_processor,
        striped,
        striped_processor,
        page,
    })
}

/// Copies so many bytes from one page to another, both of which are far from the last ones.
fn copy(bytes: u64) -> f64 {
    let bytes = bytes as usize;
    let (from, mut to) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    let start = Instant::now();
    to.copy_from_slice(&from);
    let elapsed = start.elapsed();
    std::hint::black_box(&to);
    throughput(bytes as u64, elapsed)
}

fn read_local(path: &Path) -> Result<f64> {
    let read = || -> io::Result<(u64, Duration)> {
        let (mut file, mut buffer, mut total) = (File::open(path)?, vec![0; PAGE_BYTES as usize], 0);
        let start = Instant::now();
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok((total, start.elapsed())),
                read => total += read as u64,
            }
        }
    };
    let (bytes, elapsed) = read().map_err(|error| Failure::new(path.display().to_string(), error))?;
    Ok(throughput(bytes, elapsed))
}

/// What a page takes on the average that is asked for alone, after as long as a disk would take. Between such calls
/// processes sleep, and on a busy computer waking them up is most of it.
fn page(testbed: &Testbed) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..SMALL_ROUNDS {
        times.extend(testbed.page_times(SMALL_BYTES, PAUSE)?);
    }
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}
