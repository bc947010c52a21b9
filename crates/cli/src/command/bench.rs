//! `starfish bench`: how near the file system comes to what this computer can do at most; or what agents give that the
//! user has started.
//!
//! Two yardsticks of the former. A *bare stripe*: four processes that read a file each and write it to a socket, one that
//! receives, no protocol. And disks whose speed is known because they are modelled.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};

use crate::command::agent::load_model;
use crate::command::{bench_agents, bench_pdiol};
use crate::failure::{Failure, Result};
use crate::interrupt::Interruption;
use crate::local::{self, Hashing};
use crate::processes::{self, Agents};
use crate::progress::{Progress, Show};
use crate::store::transfer::{self, Get, Method, MethodArgs, Put};
use crate::table::Table;
use node::Size;

/// Measure your own agents (--agents), or the file system on this computer against a bare stripe or modelled disks.
///
/// With --agents, clients read and write a file there, in order and at random, each with several requests in
/// flight. The results are the throughput, the requests per second, and the latency: mean, and 50th, 99th and
/// 99.9th percentile. The file is laid out before it is read, and removed at the end. Data read are verified. The
/// latency of a write ends when the agents have the data; the final flush to the disks counts in the throughput.
/// All clients are threads of this process, so this computer and its network limit them together. With --machine,
/// the simulated machine does the same with as many clients, agents and disks, and its figures stand beside the
/// measured ones.
///
/// Without --agents it starts agents of its own, on loopback, and reads a file from them in several rounds. By
/// default the data are in the page cache and the baseline is four plain senders and one receiver without any
/// protocol, measured in alternation with the file system. With --modelled the disks take the times of a model,
/// whose rate is the baseline.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    which: Option<Which>,

    /// Measure with modelled disks: four agents, then one.
    #[arg(long, conflicts_with = "agents")]
    modelled: bool,

    /// The disk model; a streaming one, so that its rate is known.
    #[arg(long, value_name = "NAME", default_value = "streaming-20", requires = "modelled")]
    disk_model: String,

    /// Size of the file.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    file_size: Size,

    /// Size of a block.
    #[arg(long, value_name = "SIZE", default_value = node::BLOCK)]
    block: Size,

    /// Rounds of each measurement; the median counts.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with = "agents")]
    rounds: u32,

    /// Be a sender of the bare stripe: send this file ...
    #[arg(long, hide = true, requires = "to")]
    send: Option<PathBuf>,

    /// ... to this address, in blocks.
    #[arg(long, hide = true)]
    to: Option<SocketAddr>,

    #[command(flatten)]
    agents: bench_agents::Options,
}

/// Another benchmark.
#[derive(Subcommand)]
enum Which {
    Pdiol(bench_pdiol::Arguments),
}

/// Refuses a size that four senders cannot share.
fn check_shared(size: Size) -> Result<()> {
    let fits = size.0 > 0 && size.0.is_multiple_of(4 << 20);
    if fits {
        Ok(())
    } else {
        Err(Failure::usage(format!("--file-size {size}"), "expected a multiple of 4 MiB"))
    }
}

const EXAMPLES: &str = "\
Examples:
  starfish bench
  starfish bench --block 64KiB --rounds 9
  starfish bench --modelled --rounds 1
  starfish bench --agents                          those that all commands use
  starfish bench --agents node1:7117,node2:7117 --clients 4 --file-size 4GiB
  starfish bench --agents --operation mixed --record 64KiB --duration 30s
  starfish bench --agents --machine loopback --set disks.model=streaming-20
  starfish bench pdiol --html pdiol.html

JSON with --agents: agents, disks, clients, outstanding, file_bytes, block_bytes, record_bytes, mix, seed, machine, \
and rows, one for the reads and one for the writes of each workload: order, workload (read, write, mixed), operation \
(read, write), requests, bytes, elapsed_s, flush_s, throughput_mib_s, requests_s, latency_mean_s, latency_p50_s, \
latency_p99_s, latency_p999_s, latency_max_s, own_work_share (of the clients' time, for making and checking data), and \
predicted: null, or the figures again. CSV has a row for each row, and predicted_ before the names of predicted \
figures. Percentiles are at most a thousandth too large.

A predicted machine has a compute node for each client and an I/O node for each agent, with as many disks, served as \
by an agent without options. What agents do not tell is the description's: --set disks.model=NAME names the disks, \
and --set changes any other key, too. At most 20,000 requests of each workload are simulated.";

/// Agents, and senders.
const AGENTS: usize = 4;

/// The agents' own cache is small, so that data come from the page cache or the modelled disk.
const CACHE: &str = "16MiB";

const NAME: &str = "bench";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    if let Some(Which::Pdiol(arguments)) = arguments.which {
        return bench_pdiol::run(arguments);
    }
    if arguments.agents.is_asked_for() {
        let file = bench_agents::File { bytes: arguments.file_size, block: arguments.block };
        return arguments.agents.run(file);
    }
    check_shared(arguments.file_size)?;
    match (&arguments.send, arguments.to) {
        (Some(file), Some(to)) => send(file, to, arguments.block.0 as usize).map_err(bare_failure),
        _ if arguments.modelled => modelled(&arguments),
        _ => bare_stripe(&arguments),
    }
}

fn options(more: &[&str]) -> Vec<String> {
    ["--cache", CACHE].iter().chain(more).map(|&option| option.to_owned()).collect()
}

/// Agents that have the file of the benchmark.
fn agents_with_file(count: usize, options: &[String], block: Size, bytes: u64) -> Result<Agents> {
    let agents = Agents::start(count, options)?;
    let local = agents.path("local");
    processes::make_file(&local, bytes)?;
    let (input, size) = local::open(&local)?;
    let method = MethodArgs { method: Method::Traditional, compute_nodes: 1 };
    let put = Put { block_bytes: block.0, method, replace: false };
    let progress = Progress::bytes(Show::Never, NAME);
    agents.explain(transfer::put(
        &agents.agents,
        NAME,
        put,
        Hashing::new(input, false),
        size,
        &progress,
        Interruption::never(),
    ))?;
    Ok(agents)
}

/// Reads the file once and returns MiB/s.
fn read(agents: &Agents, method: Method) -> Result<f64> {
    let method = MethodArgs { method, compute_nodes: 4 };
    let progress = Progress::bytes(Show::Never, NAME);
    let output = Hashing::new(io::sink(), false);
    let done =
        agents.explain(transfer::get(&agents.agents, NAME, Get::finished(method), output, &progress))?;
    Ok(done.throughput())
}

fn modelled(arguments: &Arguments) -> Result<()> {
    let rate = match load_model(&arguments.disk_model)? {
        description::DiskDescription::Streaming(disk) => disk.rate.value.0 as f64 / f64::from(1 << 20),
        description::DiskDescription::Mechanical(_) => {
            let failure = Failure::usage("--disk-model", "the rate of a mechanical disk is not one number");
            return Err(failure.remedy("Choose a streaming disk."));
        }
    };
    let mut table = Table::new(1);
    table.row(["modelled disks", "disks' rate", "traditional", "of it", "disk-directed", "of it"]);
    for count in [AGENTS, 1] {
        let bytes = arguments.file_size.0 * count as u64 / AGENTS as u64;
        let agents = agents_with_file(
            count,
            &options(&["--disk-model", &arguments.disk_model]),
            arguments.block,
            bytes,
        )?;
        let ideal = rate * count as f64;
        let mut row = vec![format!("{count} x {}, {}", arguments.disk_model, Size(bytes)), mib_s(ideal)];
        for method in [Method::Traditional, Method::DiskDirected] {
            let measured =
                (0..arguments.rounds).map(|_| read(&agents, method)).collect::<Result<Vec<f64>>>()?;
            let median = median(measured);
            row.extend([mib_s(median), format!("{:.1} %", 100.0 * median / ideal)]);
        }
        table.row(row);
    }
    local::print(table.lines())
}

fn bare_stripe(arguments: &Arguments) -> Result<()> {
    let bytes = arguments.file_size.0;
    let agents = agents_with_file(AGENTS, &options(&[]), arguments.block, bytes)?;
    let files = stripe_files(&agents, bytes)?;
    let block = arguments.block.0 as usize;
    let mut measured: [(&str, Vec<f64>); 4] = [
        ("bare stripe, one receiving thread", Vec::new()),
        ("bare stripe, four receiving threads", Vec::new()),
        ("traditional, one receiving thread", Vec::new()),
        ("disk-directed, four receiving threads", Vec::new()),
    ];
    for _ in 0..arguments.rounds {
        measured[0].1.push(bare(&files, block, receive_in_turn)?);
        measured[2].1.push(read(&agents, Method::Traditional)?);
        measured[1].1.push(bare(&files, block, receive_in_threads)?);
        measured[3].1.push(read(&agents, Method::DiskDirected)?);
    }
    let medians = measured.map(|(what, values)| (what, median(values.clone()), values));
    let (one, four) = (medians[0].1, medians[1].1);
    let mut table = Table::new(1);
    let yardstick = [
        "the target, 100 %, is a bare stripe: four plain senders, one receiver (one thread)",
        "senders and agents are processes, four of each; what receives is this process",
    ];
    table.row([
        "reading from the page cache",
        "median",
        "lowest",
        "highest",
        "of the target",
        "of four threads'",
    ]);
    for (what, median, values) in medians {
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(0.0, f64::max);
        let part = |yardstick: f64| format!("{:.0} %", 100.0 * median / yardstick);
        table.row([what.to_owned(), mib_s(median), mib_s(lowest), mib_s(highest), part(one), part(four)]);
    }
    local::print(yardstick.map(str::to_owned).into_iter().chain(table.lines()))
}

/// A file for each sender, together as long as the file of the benchmark.
pub(crate) fn stripe_files(agents: &Agents, bytes: u64) -> Result<Vec<PathBuf>> {
    let files = (0..AGENTS).map(|index| agents.path(&format!("stripe{index}")));
    let files: Vec<PathBuf> = files.collect();
    for file in &files {
        processes::make_file(file, bytes / AGENTS as u64)?;
    }
    Ok(files)
}

/// Has a process for each file send it, without any protocol, and returns the MiB/s of `receive`.
pub(crate) fn bare(
    files: &[PathBuf],
    block: usize,
    receive: fn(Vec<TcpStream>, usize) -> io::Result<u64>,
) -> Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(bare_failure)?;
    let address = listener.local_addr().map_err(bare_failure)?;
    let (mut senders, mut streams) = (Vec::new(), Vec::new());
    for file in files {
        senders.push(start_sender(file, address, block).map_err(bare_failure)?);
        streams.push(listener.accept().map_err(bare_failure)?.0);
    }
    // Each sender waits for this byte, so that all begin together.
    let start = Instant::now();
    for stream in &mut streams {
        stream.write_all(&[0]).map_err(bare_failure)?;
    }
    let bytes = receive(streams, block).map_err(bare_failure)?;
    let elapsed = start.elapsed();
    for mut sender in senders {
        let status = sender.wait().map_err(bare_failure)?;
        if !status.success() {
            return Err(Failure::new("a sender of the bare stripe", status));
        }
    }
    Ok(throughput(bytes, elapsed))
}

fn bare_failure(error: io::Error) -> Failure {
    Failure::new("the bare stripe", error)
}

fn start_sender(file: &Path, to: SocketAddr, block: usize) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["bench", "--block", &block.to_string(), "--to", &to.to_string(), "--send"])
        .arg(file)
        .spawn()
}

/// Runs a sender.
fn send(file: &Path, to: SocketAddr, block: usize) -> io::Result<()> {
    let mut stream = TcpStream::connect(to)?;
    let (mut file, mut buffer) = (File::open(file)?, vec![0; block]);
    stream.read_exact(&mut [0])?;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length])?,
        }
    }
}

/// One thread takes a block from each sender in turn, as the file has them.
pub(crate) fn receive_in_turn(mut streams: Vec<TcpStream>, block: usize) -> io::Result<u64> {
    let (mut buffer, mut total) = (vec![0; block], 0);
    while !streams.is_empty() {
        let mut open = Vec::new();
        for mut stream in streams {
            let length = read_full(&mut stream, &mut buffer)?;
            total += length as u64;
            if length == block {
                open.push(stream);
            }
        }
        streams = open;
    }
    Ok(total)
}

/// A thread for each sender.
fn receive_in_threads(streams: Vec<TcpStream>, block: usize) -> io::Result<u64> {
    let threads =
        streams.into_iter().map(|stream| thread::spawn(move || receive_in_turn(vec![stream], block)));
    let threads: Vec<_> = threads.collect();
    threads.into_iter().map(|thread| thread.join().expect("a receiver does not panic")).sum()
}

fn read_full(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match stream.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Throughput in MiB/s.
pub(crate) fn throughput(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 / f64::from(1 << 20) / elapsed.as_secs_f64()
}

/// A throughput with its unit.
pub(crate) fn mib_s(throughput: f64) -> String {
    format!("{throughput:.1} MiB/s")
}

/// The median: the middle value, or the mean of the two middle ones.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
