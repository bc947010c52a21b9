//! `starfish bench`: compares the file system with the limits of this computer, or measures the user's own agents.
//!
//! There are two baselines: a *bare stripe* (`bench/bare_stripe.rs`), and modelled disks, whose speed is known.

pub(crate) mod agents;
mod enwrich;
mod names;
mod pdiol;
mod placement;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use command_line::failure::{Failure, Result};
use command_line::progress::Show;
use command_line::say;
use command_line::{TextTable, counted, mib};
use serde::Serialize;

use crate::command::view::write_page;
use crate::options::values;
use account::explained::explained;
use fs::{IoNodeSettings, Scheduling};
use node::Size;
use node::whole_file::Method;
use studies::bench::bare_stripe::{self, bare, mib_s, receive_in_threads, receive_in_turn, stripe_files};
use studies::bench::processes::{self, Agents};
use studies::bench::rounds::median;
use studies::bench::whole_file;
use studies::described::load_streaming_model;
use transfer::cluster::Cluster;
use transfer::local;
use transfer::one_file::Put;
use viewer::{FirstLook, TraceFiles};

/// Measure your own agents (--agents), or compare the file system on this computer with a bare stripe or modelled
/// disks.
///
/// With --agents, clients read and write a file on the agents, in order and at random, each with several requests in
/// flight. The results are the throughput, the requests per second, and the latency: mean, and 50th, 99th and 99.9th
/// percentile. The file is written completely before it is read, and removed at the end. Data read are verified. The
/// latency of a write ends when the agents have the data; the final flush to the disks is included in the throughput.
/// All clients are threads of this process, so this computer and its network limit all of them together. With
/// --machine, the simulated machine runs the same workload with an equal number of clients, agents and disks, and its
/// figures are shown next to the measured ones.
///
/// Without --agents it starts agents on loopback, and reads a file from them in several rounds. By default the data are
/// in the page cache. The baseline is then four senders and one receiver without any protocol, measured in alternation
/// with the file system. With --modelled the disks take the times of a model, whose rate is the baseline.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    which: Option<Benchmark>,

    /// Measure with modelled disks: first four agents, then one.
    #[arg(long, conflicts_with = "agents")]
    modelled: bool,

    /// Disk model. It must be a streaming one, which has a known rate.
    #[arg(long, value_name = "NAME", default_value = "streaming-20", requires = "modelled")]
    disk_model: String,

    /// Size of the file.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    file_size: Size,

    /// Size of a block.
    #[arg(long, value_name = "SIZE", default_value = node::BLOCK)]
    block: Size,

    /// Number of rounds of each measurement; the result is their median.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with = "agents")]
    rounds: u32,

    /// Order in which the disks of the agents that it starts serve waiting requests.
    #[arg(long, value_parser = values::scheduling(), default_value_t = IoNodeSettings::agent().scheduling,
          conflicts_with = "agents")]
    scheduling: Scheduling,

    /// Run as a sender of the bare stripe: send this file ...
    #[arg(long, hide = true, requires = "to")]
    send: Option<PathBuf>,

    /// ... to this address, in blocks.
    #[arg(long, hide = true)]
    to: Option<SocketAddr>,

    #[command(flatten)]
    agents: agents::Options,
}

/// A benchmark with separate options.
#[derive(Subcommand)]
enum Benchmark {
    Pdiol(pdiol::Arguments),
    Enwrich(enwrich::Arguments),
    Names(names::Arguments),
    Placement(placement::Arguments),
}

/// Option for a page with the measured and the predicted trace.
#[derive(Args)]
struct TracePageArgs {
    /// Also write a page to this file that shows both traces side by side.
    #[arg(long, value_name = "FILE", requires = "trace")]
    trace_html: Option<PathBuf>,
}

impl TracePageArgs {
    /// Fails if the page cannot be written. Call this before measuring.
    fn check(&self) -> Result<()> {
        self.trace_html.as_deref().map_or(Ok(()), local::check_writable)
    }

    /// Writes the page with these traces, if requested.
    fn write(&self, traces: impl IntoIterator<Item = PathBuf>) -> Result<()> {
        let Some(path) = &self.trace_html else { return Ok(()) };
        write_page(path, &TraceFiles::new(traces.into_iter().collect()), FirstLook::Beside)
    }
}

/// Rejects a size that cannot be divided among four senders.
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
  starfish bench --modelled --rounds 1 --explain
  starfish bench --format json                     this computer, as JSON
  starfish bench --agents                          the configured agents
  starfish bench --agents node1:7117,node2:7117 --clients 4 --file-size 4GiB
  starfish bench --agents --operation mixed --record 64KiB --duration 30s
  starfish bench --agents --operation write --order random --explain
  starfish bench --agents --machine loopback --set disks.model=streaming-20
  starfish bench pdiol --html pdiol.html
  starfish bench enwrich --patterns wcc --html enwrich.html
  starfish bench names --clients 1,4 --html names.html
  starfish bench placement --jobs 5 --html placement.html

JSON with --agents: agents, disks, clients, outstanding, file_bytes, block_bytes, record_bytes, mix, seed, machine, \
and rows, one for the reads and one for the writes of each workload: order, workload (read, write, mixed), operation \
(read, write), requests, bytes, elapsed_s, flush_s, throughput_mib_s, requests_s, latency_mean_s, latency_p50_s, \
latency_p99_s, latency_p999_s, latency_max_s, own_work_share (of the clients' time, for making and checking data), and \
predicted: null, or the figures again. CSV has the same rows, and the prefix predicted_ for predicted \
figures. Percentiles are at most 0.1 % too large.

JSON and CSV without --agents: method, receiving_threads, median_mib_s, lowest_mib_s, highest_mib_s, of_target, \
of_four_threads; with --modelled disk_model, disks, file_bytes, disks_mib_s, method, median_mib_s, of_disks. Values \
whose names begin with of_ are ratios.

A predicted machine has a compute node for each client and an I/O node for each agent, with its number of disks and \
the default options of agents. All other values are those of the description: --set disks.model=NAME selects the \
disks, and --set can change any key. At most 20,000 requests of each workload are simulated.";

/// Number of agents: one for each sender of the bare stripe.
const AGENTS: usize = bare_stripe::SENDERS;

/// Cache size of each agent. It is small, so that data are read from the page cache or the modelled disk.
const CACHE: &str = "16MiB";

const NAME: &str = "bench";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    match arguments.which {
        Some(Benchmark::Pdiol(arguments)) => return pdiol::run(arguments),
        Some(Benchmark::Enwrich(arguments)) => return enwrich::run(&arguments),
        Some(Benchmark::Names(arguments)) => return names::run(&arguments),
        Some(Benchmark::Placement(arguments)) => return placement::run(&arguments),
        None => {}
    }
    if arguments.agents.is_asked_for() {
        let file = agents::File { bytes: arguments.file_size, block: arguments.block };
        return arguments.agents.run(file);
    }
    check_shared(arguments.file_size)?;
    match (&arguments.send, arguments.to) {
        (Some(file), Some(to)) => bare_stripe::send(file, to, arguments.block.0 as usize),
        _ if arguments.modelled => modelled(&arguments),
        _ => against_bare_stripe(&arguments),
    }
}

fn options(arguments: &Arguments, more: &[&str]) -> Vec<String> {
    let usual = ["--cache", CACHE, "--scheduling", arguments.scheduling.name()];
    usual.iter().chain(more).map(|&option| option.to_owned()).collect()
}

/// Starts agents, and uploads the file of the benchmark.
fn agents_with_file(count: usize, options: &[String], block: Size, bytes: u64) -> Result<Agents> {
    let agents = Agents::start(count, options)?;
    let local = agents.path("local");
    processes::make_file(&local, bytes)?;
    let put = Put::new(block.0, Method::Traditional);
    agents.explain(whole_file::put(&agents.cluster, &local, NAME, put, Show::Never))?;
    Ok(agents)
}

/// Reads the file once. Returns the throughput in MiB/s.
fn read(agents: &Agents, cluster: &Cluster, method: Method) -> Result<f64> {
    let done = agents.explain(whole_file::get(cluster, NAME, method, false, Show::Never))?;
    Ok(done.throughput())
}

/// If requested, explains the limit of each method, in an additional recorded round.
fn explain(arguments: &Arguments, agents: &Agents) -> Result<()> {
    if arguments.agents.explain {
        for method in [Method::Traditional, Method::DiskDirected] {
            say!("{}, {}:", method.name(), counted(agents.cluster.agents.len(), "agent"));
            let cluster = agents.cluster.with_trace(arguments.agents.asked.trace.file());
            explained(true, &cluster, |cluster| read(agents, cluster, method))?;
        }
    }
    Ok(())
}

fn modelled(arguments: &Arguments) -> Result<()> {
    let (_, rate) = load_streaming_model(&arguments.disk_model)?;
    let rate = mib(rate);
    let mut rows = Vec::new();
    for count in [AGENTS, 1] {
        let bytes = arguments.file_size.0 * count as u64 / AGENTS as u64;
        let agents = agents_with_file(
            count,
            &options(arguments, &["--disk-model", &arguments.disk_model]),
            arguments.block,
            bytes,
        )?;
        let disks_mib_s = rate * count as f64;
        for method in [Method::Traditional, Method::DiskDirected] {
            let measured = (0..arguments.rounds)
                .map(|_| read(&agents, &agents.cluster, method))
                .collect::<Result<Vec<f64>>>()?;
            let median_mib_s = median(&measured);
            rows.push(ModelledRow {
                disk_model: arguments.disk_model.clone(),
                disks: count,
                file_bytes: bytes,
                disks_mib_s,
                method: method.name(),
                median_mib_s,
                of_disks: median_mib_s / disks_mib_s,
            });
        }
        explain(arguments, &agents)?;
    }
    arguments.agents.format.print(&rows, modelled_lines)
}

/// Results of a method on modelled disks.
#[derive(Serialize)]
struct ModelledRow {
    disk_model: String,
    disks: usize,
    file_bytes: u64,
    /// Rate of all disks together, according to their model.
    disks_mib_s: f64,
    method: &'static str,
    median_mib_s: f64,
    /// Median throughput divided by the rate of the disks.
    of_disks: f64,
}

/// Formats the rows as a table, with both methods in one line.
fn modelled_lines(rows: &[ModelledRow]) -> Vec<String> {
    let mut table = TextTable::new(1);
    table.row(["modelled disks", "disks' rate", "traditional", "of it", "disk-directed", "of it"]);
    for same in rows.chunk_by(|one, other| one.disks == other.disks) {
        let ModelledRow { disk_model, disks, file_bytes, disks_mib_s, .. } = &same[0];
        let which = [format!("{disks} x {disk_model}, {}", Size(*file_bytes)), mib_s(*disks_mib_s)];
        let found = |row: &ModelledRow| [mib_s(row.median_mib_s), format!("{:.1} %", 100.0 * row.of_disks)];
        table.row(which.into_iter().chain(same.iter().flat_map(found)));
    }
    table.lines().collect()
}

fn against_bare_stripe(arguments: &Arguments) -> Result<()> {
    let bytes = arguments.file_size.0;
    let agents = agents_with_file(AGENTS, &options(arguments, &[]), arguments.block, bytes)?;
    let files = stripe_files(&agents, bytes)?;
    let block = arguments.block.0 as usize;
    let mut measured: [Vec<f64>; 4] = Default::default();
    for _ in 0..arguments.rounds {
        measured[0].push(bare(&files, block, receive_in_turn)?);
        measured[2].push(read(&agents, &agents.cluster, Method::Traditional)?);
        measured[1].push(bare(&files, block, receive_in_threads)?);
        measured[3].push(read(&agents, &agents.cluster, Method::DiskDirected)?);
    }
    explain(arguments, &agents)?;
    let medians = measured.each_ref().map(|values| median(values));
    let row = |((method, receiving_threads), (values, median_mib_s)): (_, (&Vec<f64>, f64))| ReadingRow {
        method,
        receiving_threads,
        median_mib_s,
        lowest_mib_s: values.iter().copied().fold(f64::INFINITY, f64::min),
        highest_mib_s: values.iter().copied().fold(0.0, f64::max),
        of_target: median_mib_s / medians[0],
        of_four_threads: median_mib_s / medians[1],
    };
    let rows: Vec<ReadingRow> = READINGS.into_iter().zip(measured.iter().zip(medians)).map(row).collect();
    arguments.agents.format.print(&rows, reading_lines)
}

/// Methods to measure in turn, each with its number of receiving threads.
const READINGS: [(&str, u32); 4] =
    [("bare stripe", 1), ("bare stripe", 4), ("traditional", 1), ("disk-directed", 1)];

/// Results of reading from the page cache.
#[derive(Serialize)]
struct ReadingRow {
    method: &'static str,
    receiving_threads: u32,
    median_mib_s: f64,
    lowest_mib_s: f64,
    highest_mib_s: f64,
    /// Median divided by the median of a bare stripe with one receiving thread, and divided by that with four.
    of_target: f64,
    of_four_threads: f64,
}

/// Formats the rows as a table, below an explanation of the baseline.
fn reading_lines(rows: &[ReadingRow]) -> Vec<String> {
    let yardstick = [
        "the target, 100 %, is a bare stripe: four senders and one receiver (one thread) without a protocol",
        "senders and agents are processes, four of each; this process receives",
    ];
    let mut table = TextTable::new(1);
    table.row([
        "reading from the page cache",
        "median",
        "lowest",
        "highest",
        "of the target",
        "of four threads'",
    ]);
    for row in rows {
        let threads =
            if row.receiving_threads == 1 { "one receiving thread" } else { "four receiving threads" };
        let rates = [row.median_mib_s, row.lowest_mib_s, row.highest_mib_s].map(mib_s);
        let parts = [row.of_target, row.of_four_threads].map(|part| format!("{:.0} %", 100.0 * part));
        table.row([format!("{}, {threads}", row.method)].into_iter().chain(rates).chain(parts));
    }
    yardstick.map(str::to_owned).into_iter().chain(table.lines()).collect()
}
