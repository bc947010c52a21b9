//! `starfish request-log`: generates, shows, converts and merges request logs.

use std::collections::BTreeSet;
use std::io::{self, BufWriter};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use node::Size;
use request_log::{Generator, Kind, MergeError, RequestLog};

use crate::options::experiment::SeedArgs;
use crate::options::numbers::positive;
use crate::options::request_log::InputArgs;
use command_line::TextTable;
use command_line::durations;
use command_line::failure::{Failure, Result};
use transfer::local;

/// Generate, show, convert or merge request logs.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  starfish request-log generate --nodes 16 --files 4 > drawn.log
  starfish request-log show drawn.log
  starfish request-log merge first.log second.log > both.log
  starfish request-log convert job.csv --column time=start_us --column node=rank > job.log";

#[derive(Subcommand)]
enum Action {
    Generate(Generated),
    Show(Shown),
    Convert(Converted),
    Merge(Merged),
}

/// Print a random request log like the traces of the ENWRICH report: small strided writes of many nodes.
///
/// Each job has some of the nodes, and writes one file after the other. In each file, the nodes of the job write
/// records in turn. All requests of a file have the same size. The sizes of different files are exponentially
/// distributed, and so are the pauses between requests. The same options produce the same log.
#[derive(Args)]
struct Generated {
    /// The programs to imitate. Files of cmmd are ten times as large as those of cmf.
    #[arg(long, value_enum, default_value_t = KindName::Cmf)]
    like: KindName,

    /// Number of nodes.
    #[arg(long, value_name = "N", default_value_t = Kind::Cmf.generator().nodes, value_parser = positive::<u32>)]
    nodes: u32,

    /// Number of jobs, which run at the same time.
    #[arg(long, value_name = "N", default_value_t = Kind::Cmf.generator().jobs, value_parser = positive::<u32>)]
    jobs: u32,

    /// Number of files of each job.
    #[arg(long, value_name = "N", default_value_t = Kind::Cmf.generator().files, value_parser = positive::<u32>)]
    files: u32,

    /// Number of requests of each file [default: 4096; 40960 for cmmd].
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    records: Option<u64>,

    /// Mean size of a request over all files.
    #[arg(long, value_name = "SIZE", default_value = "800")]
    record: Size,

    /// Percentage of files that are read instead of written.
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    reads: u8,

    /// Mean time between two requests of a node.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = durations::parse)]
    think: Duration,

    #[command(flatten)]
    seed: SeedArgs,
}

/// Show the contents of a request log: nodes, files, requests and their sizes.
#[derive(Args)]
struct Shown {
    #[command(flatten)]
    input: InputArgs,
}

/// Print a log of any format in the format of request logs, in the order of time.
#[derive(Args)]
struct Converted {
    #[command(flatten)]
    input: InputArgs,
}

/// Print the logs of several jobs as one log, as if the jobs ran at the same time.
///
/// The times of each job begin at 0, its nodes are numbered after the nodes of earlier jobs, and its files are
/// separate, named job0/..., job1/... A log with syncs or collective calls is rejected, because in a merged log its
/// nodes would wait for the nodes of other jobs.
#[derive(Args)]
struct Merged {
    #[command(flatten)]
    input: InputArgs,
}

/// Programs of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KindName {
    /// Message-passing programs.
    Cmmd,
    /// Data-parallel programs.
    Cmf,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    match arguments.action {
        Action::Generate(generated) => generated.run(),
        Action::Show(Shown { input }) => show(&input),
        Action::Convert(Converted { input }) => print(&input.read()?),
        Action::Merge(Merged { input }) => {
            let (names, jobs): (Vec<String>, Vec<RequestLog>) = input.read_each()?.into_iter().unzip();
            let merged = RequestLog::merged(&jobs).map_err(|error| match error {
                MergeError::Waits(job) => Failure::new(&names[job], error).remedy("Leave this log out."),
                MergeError::TooLarge { .. } => Failure::usage("merge", error).remedy("Merge fewer logs."),
            })?;
            print(&merged)
        }
    }
}

fn print(log: &RequestLog) -> Result<()> {
    let output = BufWriter::new(io::stdout().lock());
    log.write_to(output).map_err(|error| Failure::writing("standard output", &error))
}

impl Generated {
    fn run(self) -> Result<()> {
        let kind = match self.like {
            KindName::Cmmd => Kind::Cmmd,
            KindName::Cmf => Kind::Cmf,
        };
        let usual = kind.generator();
        let generator = Generator {
            nodes: self.nodes,
            jobs: self.jobs,
            files: self.files,
            records: self.records.unwrap_or(usual.records),
            record_bytes: self.record.0,
            reads_percent: self.reads,
            think: self.think.into(),
            seed: self.seed.seed,
        };
        generator.check().map_err(|why| Failure::usage("cannot generate a request log", why))?;
        let output = BufWriter::new(io::stdout().lock());
        generator.write_to(output).map_err(|error| Failure::writing("standard output", &error))
    }
}

fn show(input: &InputArgs) -> Result<()> {
    let log = input.read()?;
    let totals = log.totals();
    let percent = |part: u64| format!("{:.0} %", 100.0 * part as f64 / totals.requests().max(1) as f64);
    let files = |of: fn(&request_log::LoggedFile) -> bool| log.files().iter().filter(|file| of(file)).count();
    let mut table = TextTable::new(2);
    table.row(["nodes", &log.nodes().len().to_string()]);
    table.row(["files", &log.files().len().to_string()]);
    table.row(["  read only", &files(|file| file.is_read && !file.is_written).to_string()]);
    table.row(["  written only", &files(|file| !file.is_read && file.is_written).to_string()]);
    table.row(["requests", &totals.requests().to_string()]);
    table.row(["  reads", &format!("{}, {}", totals.reads, Size(totals.bytes_read).rounded())]);
    table.row(["  writes", &format!("{}, {}", totals.writes, Size(totals.bytes_written).rounded())]);
    table.row(["  consecutive", &percent(totals.consecutive)]);
    table.row(["  bytes on average", &format!("{:.0}", totals.mean_bytes())]);
    table.row(["  largest", &Size(totals.largest).to_string()]);
    table.row(["syncs", &log.syncs().to_string()]);
    if let Some(calls) = log.calls() {
        let common: BTreeSet<_> = calls.calls.iter().filter_map(|call| call.together).collect();
        table.row(["collective calls", &common.len().to_string()]);
        table.row(["  left out", &calls.left_out.to_string()]);
        table.row(["pieces of calls", &calls.pieces().to_string()]);
    }
    table.row(["duration", &format!("{:.6} s", totals.duration.as_secs_f64())]);
    local::print(table.lines())
}
