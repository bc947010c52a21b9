//! `starfish bench --agents`: measures the user's own agents with several clients.

use std::time::Duration;

use clap::{Args, ValueEnum};
use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use command_line::say;
use jobs::{Order, Workload};
use layout::Operation;
use node::Size;

use crate::options::agents::AskedAgentsArgs;
use crate::options::experiment::{ProgressArgs, SeedArgs};
use crate::options::numbers::positive;
use crate::output::row_format::RowFormat;
use account::explained::explained;
use command_line::durations;
use studies::bench::agents::prediction::Predictor;
use studies::bench::agents::report::{Report, Row};
use studies::bench::agents::task::Task;
use transfer::cluster::Cluster;
use transfer::interrupt::Interruption;
use transfer::memory;
use transfer::preflight;

/// Default percentage of reads in a mixed workload. This value is common.
const MIX: u8 = 70;

/// Options below that have no effect without agents, in addition to those that select agents.
pub(crate) const OF_AGENTS: [&str; 11] = [
    "operation",
    "order",
    "mix",
    "record",
    "clients",
    "outstanding",
    "requests",
    "duration",
    "seed",
    "machine",
    "progress",
];

/// Options for measuring the user's own agents.
#[derive(Args)]
#[command(next_help_heading = "Your own agents")]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) asked: AskedAgentsArgs,

    /// Work of the clients: read, write, or mixed (both).
    #[arg(long, value_enum, value_name = "WHAT,...", value_delimiter = ',', default_value = "read,write")]
    operation: Vec<Work>,

    /// Order in which each client accesses the records of its part of the file.
    #[arg(
        long,
        value_enum,
        value_name = "ORDER,...",
        value_delimiter = ',',
        default_value = "sequential,random"
    )]
    order: Vec<OrderName>,

    /// Percentage of reads in a mixed workload [default: 70].
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=99))]
    mix: Option<u8>,

    /// Size of a request; requests begin at multiples of it [default: a block].
    #[arg(long, value_name = "SIZE")]
    record: Option<Size>,

    /// Number of clients: nodes with separate connections, each a thread of this process.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=256))]
    clients: u32,

    /// Number of requests that each client keeps in flight.
    #[arg(long, value_name = "K", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    outstanding: u32,

    /// Number of requests of each client [default without --duration: one for each record of its part of the file].
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    requests: Option<u64>,

    /// Duration of each workload, for example 30s. Clients access the file repeatedly in this time.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    #[command(flatten)]
    seed: SeedArgs,

    /// Predict the same workload for this machine: a name that `starfish machines` lists, or a TOML file.
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,

    /// Change a value in the machine's description.
    #[arg(long, value_name = "KEY=VALUE", requires = "machine")]
    set: Vec<String>,

    /// Report the bottleneck of each workload on standard error: disks, links, processors or waiting. For this, all
    /// nodes record their work. Without --agents, each method is recorded in an additional, unmeasured round.
    #[arg(long)]
    pub(crate) explain: bool,

    /// Output format. With --agents: a row for the reads and a row for the writes of each workload; JSON is one object.
    /// Without --agents: a row for each method.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    pub(crate) format: RowFormat,

    #[command(flatten)]
    progress: ProgressArgs,
}

/// Operations of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Work {
    /// Read a file that was written before.
    Read,
    /// Write a new file.
    Write,
    /// Read a file that was written before, and write the same data again.
    Mixed,
}

/// Order of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderName {
    /// In ascending order.
    Sequential,
    /// In random order. Each pass accesses each record once, in a new order.
    Random,
}

/// Parses a duration greater than zero.
fn duration(text: &str) -> std::result::Result<Duration, String> {
    let time = durations::parse(text)?;
    if time.is_zero() { Err("expected a positive time, such as 30s".to_owned()) } else { Ok(time) }
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::Read => "read",
            Work::Write => "write",
            Work::Mixed => "mixed",
        }
    }

    fn operations(self) -> &'static [Operation] {
        match self {
            Work::Read => &[Operation::Read],
            Work::Write => &[Operation::Write],
            Work::Mixed => &[Operation::Read, Operation::Write],
        }
    }
}

impl OrderName {
    fn name(self) -> &'static str {
        match self {
            OrderName::Sequential => "sequential",
            OrderName::Random => "random",
        }
    }
}

/// A workload, with its names.
struct Cell {
    order: OrderName,
    work: Work,
    workload: Workload,
}

/// File of the benchmark.
#[derive(Clone, Copy)]
pub(crate) struct File {
    pub(crate) bytes: Size,
    pub(crate) block: Size,
}

impl Options {
    /// Returns true if the user has requested a measurement of running agents.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.asked.are_asked_for()
    }

    /// Measures, predicts and prints the results.
    pub(crate) fn run(self, file: File) -> Result<()> {
        let cells = self.cells(file)?;
        self.check(file)?;
        let cluster = self.asked.cluster()?;
        let disks = disks(&cluster, &file)?;
        let predictor = self
            .machine
            .as_ref()
            .map(|machine| Predictor::of(machine, &self.set, self.clients, &disks, file.block.0));
        let predictor = predictor.transpose()?;
        for Cell { workload, .. } in &cells {
            predictor.iter().try_for_each(|predictor| predictor.check(workload))?;
        }
        let interruption = Interruption::prepare()?;
        let mut rows = Vec::new();
        for cell in &cells {
            if self.explain {
                say!("{} {}:", cell.order.name(), cell.work.name());
            }
            let interruption = interruption.clone();
            let measure = |cluster: &Cluster| self.task(cell, cluster, file).run(interruption);
            let measured = explained(self.explain, &cluster, measure)?;
            let predicted = self.predicted(predictor.as_ref(), cell)?;
            let names = (cell.order.name(), cell.work.name());
            let operations = cell.work.operations();
            rows.extend(Row::of(names, operations, self.clients, &measured, predicted.as_ref()));
        }
        let report = Report {
            agents: cluster.agents.into_iter().map(|agent| agent.name).collect(),
            disks: disks.iter().sum(),
            clients: self.clients,
            outstanding: self.outstanding,
            file_bytes: file.bytes.0,
            block_bytes: file.block.0,
            record_bytes: self.record(file).0,
            mix: self.mix(),
            seed: self.seed.seed,
            machine: predictor.map(|predictor| predictor.machine().to_owned()),
            rows,
        };
        self.format.print_report(&report, Report::lines, Report::csv, Report::notes)
    }

    fn record(&self, file: File) -> Size {
        self.record.unwrap_or(file.block)
    }

    fn mix(&self) -> u8 {
        self.mix.unwrap_or(MIX)
    }

    /// Returns each combination of operations and order. Checks the options before any request to the agents.
    fn cells(&self, file: File) -> Result<Vec<Cell>> {
        let record = self.record(file);
        if record > file.bytes {
            let why = format!("it is larger than --file-size {}", file.bytes);
            return Err(Failure::usage(format!("--record {record}"), why));
        }
        if self.mix.is_some() && !self.operation.contains(&Work::Mixed) {
            let failure = Failure::usage("--mix", "it has no effect: no workload is mixed");
            return Err(failure.remedy("Add --operation mixed, or leave --mix out."));
        }
        let mut cells = Vec::new();
        for &order in &self.order {
            for &work in &self.operation {
                let workload = Workload {
                    order: match order {
                        OrderName::Sequential => Order::Sequential,
                        OrderName::Random => Order::Random,
                    },
                    reads_percent: match work {
                        Work::Read => 100,
                        Work::Write => 0,
                        Work::Mixed => self.mix(),
                    },
                    file_bytes: file.bytes.0,
                    record_bytes: record.0,
                    clients: self.clients,
                    outstanding: self.outstanding,
                    requests: self.requests,
                    time: self.duration.map(Into::into),
                    seed: self.seed.seed,
                };
                workload.check().map_err(|error| Failure::usage("the workload", error))?;
                cells.push(Cell { order, work, workload });
            }
        }
        if !file.bytes.0.is_multiple_of(record.0) {
            let failure = Failure::usage(
                format!("--file-size {}", file.bytes),
                format!("it is not a multiple of --record {record}"),
            );
            let remedy = format!(
                "The next larger multiple is --file-size {}.",
                Size(file.bytes.0.next_multiple_of(record.0))
            );
            return Err(failure.remedy(remedy));
        }
        Ok(cells)
    }

    /// Checks all other options before any request to the agents.
    fn check(&self, file: File) -> Result<()> {
        preflight::check_block(file.block)?;
        let needed = u64::from(self.clients) * u64::from(self.outstanding) * self.record(file).0;
        memory::check(needed, |needed, free| {
            let why =
                format!("requests in flight need {needed} of memory, and {free} are free on this computer");
            Failure::usage("--clients, --outstanding and --record", why)
        })
    }

    fn task(&self, cell: &Cell, cluster: &Cluster, file: File) -> Task {
        Task {
            cluster: cluster.clone(),
            block_bytes: file.block.0,
            workload: cell.workload.clone(),
            label: format!("{} {}", cell.order.name(), cell.work.name()),
            show: self.progress.show,
        }
    }

    fn predicted(&self, predictor: Option<&Predictor>, cell: &Cell) -> Result<Option<jobs::Outcome>> {
        let Some(predictor) = predictor else { return Ok(None) };
        let label = format!("predicting {} {}", cell.order.name(), cell.work.name());
        let progress = Progress::count(self.progress.show, &label, 1);
        let predicted = predictor.predict(&cell.workload);
        progress.finish();
        predicted.map(Some)
    }
}

/// Returns the number of disks of each agent. Fails unless all agents answer, accept blocks of this size, and have
/// space for the file.
fn disks(cluster: &Cluster, &File { bytes, block }: &File) -> Result<Vec<u32>> {
    cluster.run(move |connection| async move {
        let client = &connection.client;
        if block.0 > client.block_bytes_max() {
            let most = Size(client.block_bytes_max());
            return Err(Failure::usage(
                format!("--block {block}"),
                format!("the agents accept at most {most}"),
            ));
        }
        let mut disks = Vec::new();
        for &node in client.io_nodes() {
            let examined =
                connection.explained("cannot get the list of disks", client.examine(node).await)?;
            disks.push(examined.disks.len() as u32);
        }
        preflight::check_space(&connection, "the file of the benchmark", bytes.0).await?;
        Ok(disks)
    })
}
