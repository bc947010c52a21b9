//! Physical limits of this computer, measured in the same run as the benchmark.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use command_line::failure::{Failure, Result};
use command_line::mib;
use fs::Prefetch;
use serde::Serialize;

use super::PAGE_BYTES;
use super::application::Application;
use super::testbed::ProgramTestbed;
use crate::bench::bare_stripe::{bare, receive_in_turn, stripe_files};
use crate::bench::rounds::median;
use crate::bench::times::{Times, measure};

/// Limits of the hardware and, for comparison, throughputs of the file system with disks at full speed. Throughputs are
/// in MiB/s, processor times in seconds per GiB.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    /// Throughput of copying in memory.
    pub copy: f64,
    /// Throughput of reading a file from the system's page cache.
    pub local_read: f64,
    /// Throughput of one sender without a protocol and one receiver.
    pub one_sender: f64,
    /// Throughput of four senders without a protocol and one receiver.
    pub bare_stripe: f64,
    /// Processor time of the four senders and the receiver.
    pub bare_stripe_processor: f64,
    /// Throughput of reading a striped file from four agents when it is in the system's page cache.
    pub striped: f64,
    /// Processor time of the client and the agents in `striped`.
    pub striped_processor: f64,
    /// Throughput of reading the file from agents when it is in their own caches.
    pub cached: f64,
    /// Processor time of the client and the agents in `cached`.
    pub cached_processor: f64,
    /// Seconds to get a page that an agent has in memory, with one request at a time.
    pub page: f64,
}

/// Number of senders of the bare stripe.
pub const AGENTS: usize = 4;

/// Size in bytes of a file that is in an agent's cache after it was read once.
const SMALL_BYTES: u64 = PAGE_BYTES * 8;

/// Number of reads of the small file.
const SMALL_ROUNDS: u32 = 40;

/// Idle time before each page.
const PAUSE: Duration = Duration::from_millis(3);

/// Measures all limits with `bytes` bytes, before the disks are slowed down. Each round measures all related quantities
/// in turn, so that a drift affects all of them equally.
pub fn measure_limits(testbed: &mut ProgramTestbed, bytes: u64, rounds: u32) -> Result<Limits> {
    testbed.write(AGENTS, bytes)?;
    testbed.write(1, SMALL_BYTES)?;
    let files = stripe_files(testbed.agents(), bytes)?;
    let mut columns: [Vec<f64>; 7] = Default::default();
    for _ in 0..rounds {
        let (all, all_times) = measure(None, || bare(&files, PAGE_BYTES as usize, receive_in_turn));
        let [striped, striped_processor] = read_striped(testbed, bytes)?;
        let row = [
            all?,
            processor_for_gib(bytes, all_times),
            striped,
            striped_processor,
            bare(&files[..1], PAGE_BYTES as usize, receive_in_turn)?,
            copy(bytes),
            read_local(&files[0])?,
        ];
        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
    let [bare_stripe, bare_stripe_processor, striped, striped_processor, one_sender, copy, local_read] =
        columns.map(|values| median(&values));
    let page = page(testbed)?;
    testbed.keep(bytes)?;
    // The first read fills the agents' caches from the system's page cache. It is not measured.
    read_striped(testbed, bytes)?;
    let rows = (0..rounds).map(|_| read_striped(testbed, bytes)).collect::<Result<Vec<_>>>()?;
    let [cached, cached_processor] =
        [0, 1].map(|column| median(&rows.iter().map(|row| row[column]).collect::<Vec<_>>()));
    Ok(Limits {
        copy,
        local_read,
        one_sender,
        bare_stripe,
        bare_stripe_processor,
        striped,
        striped_processor,
        cached,
        cached_processor,
        page,
    })
}

/// Returns the throughput of reading the file of the given size from all agents, and the processor time per GiB.
fn read_striped(testbed: &ProgramTestbed, bytes: u64) -> Result<[f64; 2]> {
    let (times, _) = testbed.run(Application::Cat, bytes, Some((AGENTS, Prefetch::Adaptive)))?;
    Ok([mib(bytes) / times.elapsed.as_secs_f64(), processor_for_gib(bytes, times)])
}

fn processor_for_gib(bytes: u64, times: Times) -> f64 {
    times.processor().as_secs_f64() * f64::from(1 << 30) / bytes as f64
}

/// Copies `bytes` bytes to fresh memory. Returns the throughput.
fn copy(bytes: u64) -> f64 {
    let bytes = bytes as usize;
    let (from, mut to) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    let start = Instant::now();
    to.copy_from_slice(&from);
    let elapsed = start.elapsed();
    std::hint::black_box(&to);
    mib(bytes as u64) / elapsed.as_secs_f64()
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
    Ok(mib(bytes) / elapsed.as_secs_f64())
}

/// Returns the mean time of a page that is requested alone, after a pause as long as a disk access. Processes sleep
/// between such requests, and waking them up takes most of the time on a busy computer.
fn page(testbed: &ProgramTestbed) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..SMALL_ROUNDS {
        times.extend(testbed.page_times(SMALL_BYTES, PAUSE)?);
    }
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}
