//! `starfish replay`: replays a request log by any method, on a simulated machine or on agents.

use std::sync::Arc;
use std::thread;

use clap::{Args, ValueEnum};
use experiment::{Contents, DiskLayout, Method, Options, Replay, ReplayJob, Think};
use fs::Configuration;
use node::Size;
use request_log::RequestLog;

use super::simulate::chosen;
use crate::options::agents::AskedAgentsArgs;
use crate::options::experiment::ProgressArgs;
use crate::options::fields::ReplayOptions;
use crate::options::request_log::InputArgs;
use crate::output::row_format::RowFormat;
use account::explain::Account;
use command_line::counted;
use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use command_line::say;
use studies::described::load_machine;
use studies::replay::agents::ReplayTask;
use studies::replay::report::{ReplayRow, Report};
use transfer::interrupt::Interruption;
use transfer::memory;
use transfer::preflight;

/// Replay a request log by any method, on a simulated machine or on running agents.
///
/// A request log lists the requests of nodes: time, node, file, operation, offset and bytes, one request per line. It
/// is a text in the format of request logs, comma-separated values with the names of the columns in the first line, the
/// output of darshan-dxt-parser or blkparse, or a log of fio. Each node of the log is a compute node, and makes its
/// requests in order. A sync in the log waits for all nodes.
///
/// With the methods disk-directed and two-phase, each node collects consecutive requests, and all nodes transfer them
/// together. STARFISH_MPI_RECORD=FILE makes MPI programs write a log of format 2 (FILE.0, FILE.1 and so on; name all of
/// them). In such a log, recorded collective calls are replayed collectively, and all others independently; nodes then
/// have the configuration of agents and their clients. All written data are read back and compared.
///
/// On agents the files have no names, have blocks of 256 KiB unless --block is given, and are removed at the end. The
/// nodes of the log are threads of this process, each with separate connections.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    input: InputArgs,

    /// Access methods: traditional, two-phase, disk-directed, write-cached, or all.
    #[arg(long, value_name = "METHOD,...", default_value = "all", value_delimiter = ',')]
    method: Vec<String>,

    /// Number of bytes that each node collects for one disk-directed or two-phase operation.
    #[arg(long, value_name = "SIZE", default_value_t = Size(Replay::BATCH_BYTES), value_parser = batch)]
    batch: Size,

    /// Treatment of the time between the requests of a node.
    #[arg(long, value_enum, default_value_t = ThinkName::None, value_name = "HOW")]
    think: ThinkName,

    /// The simulated machine: a name that `starfish machines` lists, or a TOML file [default: starfish-1996].
    #[arg(long, value_name = "NAME", conflicts_with = "agents")]
    machine: Option<String>,

    /// Change a value in the machine's description.
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "agents")]
    set: Vec<String>,

    /// Layout of the files on each simulated disk: contiguous or random [default: contiguous].
    #[arg(long, value_name = "LAYOUT", conflicts_with = "agents")]
    layout: Option<DiskLayout>,

    /// Seed of all randomness of the simulated machine.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::options::numbers::seed)]
    seed: u64,

    #[command(flatten)]
    agents: AskedAgentsArgs,

    #[command(flatten)]
    fields: ReplayOptions,

    /// Output format. JSON is one object.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    /// Print a digest of all events, which is equal for equal runs.
    #[arg(long, conflicts_with = "agents")]
    digest: bool,

    /// Explain the time of each simulated row: busy parts, waits and the bottleneck. With CSV, this is printed on
    /// standard error.
    #[arg(long, conflicts_with = "agents")]
    explain: bool,

    #[command(flatten)]
    progress: ProgressArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish request-log generate > drawn.log
  starfish replay drawn.log --machine enwrich-1995 --set nodes.compute=32 --set network.columns=7 --set network.rows=7
  starfish replay job.csv --column time=start_us --column node=rank --think gaps
  starfish replay usr_0.csv --titles time:100ns,host,file,type,offset,size,took:100ns --method traditional
  darshan-dxt-parser job.darshan | starfish replay - --method traditional,write-cached
  starfish replay drawn.log --agents --write-cache 4MiB
  STARFISH_MPI_RECORD=run starfish mpi-run -n 4 ./simulation starfish:out && starfish replay run.? --machine cluster-switch";

/// Treatment of think time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ThinkName {
    /// Ignored: each request starts when the previous one has ended.
    None,
    /// Kept: the pauses between requests are as in the log.
    Gaps,
    /// No request is made before its time in the log.
    Times,
}

/// Parses the size of a batch, at least one byte.
fn batch(text: &str) -> std::result::Result<Size, String> {
    let size: Size = text.parse()?;
    if size.0 > 0 { Ok(size) } else { Err("expected at least one byte".to_owned()) }
}

/// Returns the default block size of files on agents.
fn usual_block() -> Size {
    node::BLOCK.parse().expect("a size")
}

/// Maximum number of nodes on agents. Each node is a thread, connected to all others.
const NODES_MAX: usize = 256;

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let methods: Vec<Method> = chosen("--method", &arguments.method, &Replay::METHODS)?;
    let choices = &arguments.fields.choices;
    choices.check_methods(&methods).map_err(super::simulate::refused)?;
    if choices.options.window.is_some() && choices.options.page_cache_bytes == 0 {
        return Err(Failure::usage("--window", "a window needs a page cache: add --page-cache"));
    }
    let log = Arc::new(arguments.input.read()?);
    let (options, contents) = (arguments.fields.options(&log), choices.contents);
    let rows = match arguments.agents.are_asked_for() {
        true => measured(&arguments, &log, &methods, options)?,
        false => simulated(&arguments, &log, &methods, options, contents)?,
    };
    let report = Report::new(&arguments.input.name(), arguments.machine(), &log, rows);
    let report_text = |report: &Report| [report.lines(), report.accounts()].concat();
    arguments.format.print_report(&report, report_text, Report::csv, Report::accounts)
}

impl Arguments {
    /// Returns the name of the simulated machine, or `None` on agents.
    fn machine(&self) -> Option<&str> {
        (!self.agents.are_asked_for()).then(|| self.machine.as_deref().unwrap_or("starfish-1996"))
    }

    fn think(&self) -> Think {
        match self.think {
            ThinkName::None => Think::None,
            ThinkName::Gaps => Think::Gaps,
            ThinkName::Times => Think::Times,
        }
    }
}

/// Returns the configuration of nodes for this log. If the log has calls, its nodes have the configuration of clients
/// of agents.
fn configuration(log: &RequestLog) -> Configuration {
    if log.calls().is_some() { Configuration::Agent } else { Configuration::Report }
}

/// Simulates all methods in parallel.
fn simulated(
    arguments: &Arguments,
    log: &Arc<RequestLog>,
    methods: &[Method],
    options: Options,
    contents: Contents,
) -> Result<Vec<ReplayRow>> {
    let machine = load_machine(arguments.machine().unwrap_or_default(), &arguments.set)?;
    let nodes = log.nodes().len() as u32;
    if nodes > machine.nodes.compute.value {
        let why = format!(
            "the log has {nodes} nodes, but the machine has {}",
            counted(machine.nodes.compute.value, "compute node")
        );
        let failure = Failure::usage(arguments.input.name(), why);
        return Err(failure.remedy(format!("Add --set nodes.compute={nodes}, or choose another --machine.")));
    }
    let replay = |&method: &Method| Replay {
        machine: machine.clone(),
        method,
        log: log.clone(),
        think: arguments.think(),
        layout: arguments.layout.unwrap_or(DiskLayout::Contiguous),
        options: options.of(method),
        configuration: configuration(log),
        contents,
        batch_bytes: arguments.batch.0,
        seed: arguments.seed,
    };
    let replays: Vec<Replay> = methods.iter().map(replay).collect();
    for replay in &replays {
        replay.check().map_err(|error| Failure::usage(format!("--method {}", replay.method), error))?;
    }
    check_memory(log, replays.len() as u64, contents)?;
    let progress = Progress::count(arguments.progress.show, "replaying", replays.len() as u64);
    let trials: Vec<_> = thread::scope(|scope| {
        let run = |replay| {
            let progress = progress.clone();
            scope.spawn(move || {
                let trial = Replay::trial(replay);
                progress.add(1);
                trial
            })
        };
        let running: Vec<_> = replays.iter().map(run).collect();
        running.into_iter().map(|thread| thread.join().expect("a simulation does not panic")).collect()
    });
    progress.finish();
    let mut rows = Vec::new();
    for (replay, trial) in replays.iter().zip(trials) {
        let trial = trial.map_err(|error| Failure::new(format!("cannot replay {}", replay.method), error))?;
        let digest = arguments.digest.then_some(trial.digest);
        let account = arguments.explain.then(|| Account::new(replay.machine.nodes.compute.value, &trial));
        rows.extend(ReplayRow::of(replay.method, log, &trial.jobs[0], digest, account));
    }
    Ok(rows)
}

/// Fails if the files that are read do not fit into memory, once for each method: simulated disks keep files in memory.
fn check_memory(log: &RequestLog, simulations: u64, contents: Contents) -> Result<()> {
    let read = log.files().iter().filter(|file| file.is_read && contents == Contents::Real);
    let files = read.map(|file| file.end).fold(0, u64::saturating_add);
    memory::check_stored("replaying", files.saturating_mul(simulations), memory::PHANTOM)
}

/// Runs all methods on the agents, one after the other.
fn measured(
    arguments: &Arguments,
    log: &Arc<RequestLog>,
    methods: &[Method],
    options: Options,
) -> Result<Vec<ReplayRow>> {
    let nodes = log.nodes().len();
    if nodes > NODES_MAX {
        let why = format!(
            "it has {nodes} nodes; on agents each is a thread of this process, and the limit is {NODES_MAX}"
        );
        return Err(
            Failure::usage(arguments.input.name(), why).remedy("Split the log by nodes, or simulate it.")
        );
    }
    let is_block_known = arguments.fields.is_block_given || log.calls().is_some();
    let block = if is_block_known { Size(options.block_bytes) } else { usual_block() };
    preflight::check_block(block)?;
    let mut jobs = Vec::new();
    for &method in methods {
        let access = options.of(method).access(method, log, configuration(log), arguments.batch.0);
        let names = (0..log.files().len()).map(|file| format!("file {file}")).collect();
        jobs.push((method, ReplayJob::new(log.clone(), names, access, arguments.think())));
    }
    let cluster = arguments.agents.cluster()?;
    if let Some(description) = laying_out(log) {
        say!("starfish: {description}");
    }
    let interruption = Interruption::prepare()?;
    let mut rows = Vec::new();
    for (method, job) in jobs {
        let task = ReplayTask {
            cluster: cluster.clone(),
            job,
            block_bytes: block.0,
            label: format!("replaying {method}"),
            show: arguments.progress.show,
        };
        let outcome = task.run(interruption.clone())?;
        rows.extend(ReplayRow::of(method, log, &outcome, None, None));
    }
    Ok(rows)
}

/// Returns a notice if the replay must write much more data in advance than it reads later. Files are written
/// completely in advance, because after each read agents also prefetch data, and this must take its usual time.
fn laying_out(log: &RequestLog) -> Option<String> {
    let read: Vec<u64> = log.files().iter().filter(|file| file.is_read).map(|file| file.end).collect();
    let bytes = read.iter().copied().fold(0, u64::saturating_add);
    let files = if read.len() == 1 { "file is" } else { "files are" };
    (bytes > log.totals().bytes_read.saturating_mul(2)).then(|| {
        format!(
            "{} {files} written before each replay, with {} of data, because files that are read must be \
             complete",
            read.len(),
            Size(bytes).rounded()
        )
    })
}
