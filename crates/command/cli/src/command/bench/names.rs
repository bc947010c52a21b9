//! `starfish bench names`: measures and predicts clients that create, stat, list and remove small files.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use account::explained::explained;
use account::trace_file::measured_and_predicted;
use clap::{Args, ValueEnum};
use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use command_line::say;
use node::Size;
use studies::bench::names::prediction::NamesPredictor;
use studies::bench::names::results::{NamesRow, lines, page};
use studies::bench::names::store_costs::StoreCosts;
use studies::bench::names::{NameWork, NamesCell, NamesTimes, measure};
use studies::bench::processes::Agents;
use studies::bench::rounds::middle_of;
use studies::described::{load_model, this_computer};

use super::TracePageArgs;
use crate::options::experiment::RoundsArgs;
use crate::output::row_format::RowOutput;

/// Measure small files: the number that clients create, stat, list and remove in a second.
///
/// Starts agents on loopback; one of them is the metadata server. Each client is a node of this process with a separate
/// directory. The time ends when the last client is done and all others can see its names and contents; no operation
/// waits for stable storage. Created files are checked and removed. Next to each measurement is the prediction of the
/// simulated machine `loopback`, for which the costs of messages, of the metadata store and of creating files are first
/// measured on this computer. The files are in TMPDIR.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Operations of the clients on their files [default: all].
    #[arg(long, value_enum, value_name = "WORK,...", value_delimiter = ',')]
    work: Vec<NameWork>,

    /// Numbers of clients.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,4",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    clients: Vec<u32>,

    /// Number of files of each client.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    files: u32,

    /// Size of each file.
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    file_size: Size,

    /// Number of operations that each client keeps in flight.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    outstanding: u32,

    /// Number of agents, each with a disk.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=16))]
    agents: u8,

    /// Model whose times the disks take, or `memory` for no model: files stay in the page cache, as small files do for
    /// a while.
    #[arg(long, value_name = "NAME", default_value = MEMORY, conflicts_with = "predict")]
    disk_model: String,

    #[command(flatten)]
    rounds: RoundsArgs,

    /// Predict for this machine, and measure nothing. Its description needs a section `metadata`.
    #[arg(long, value_name = "NAME", conflicts_with = "rounds")]
    predict: Option<String>,

    /// Report the bottleneck of each measurement on standard error: processors, links or waiting. For this, all nodes
    /// record their work, including the creation of files before the measurement.
    #[arg(long, conflicts_with_all = ["predict", "rounds"])]
    explain: bool,

    /// Trace and explain the measurement, which must be a single one. NAME.tlv has the clients and agents,
    /// NAME-predicted.tlv the prediction.
    #[arg(long, value_name = "NAME.tlv", conflicts_with_all = ["predict", "rounds"])]
    trace: Option<PathBuf>,

    #[command(flatten)]
    trace_page: TracePageArgs,

    #[command(flatten)]
    output: RowOutput,
}

const EXAMPLES: &str = "\
Examples:
  starfish bench names
  starfish bench names --work create,remove --clients 1,2,4,8 --html names.html
  starfish bench names --outstanding 16 --files 5000
  starfish bench names --work create --clients 4 --trace create.tlv --trace-html create.html
  starfish bench names --predict loopback --clients 64
  TMPDIR=/mnt/disk starfish bench names --disk-model st318416w";

/// Remedy if there is more than one measurement.
const ONE: &str = "Name one of --work and one of --clients.";

/// Word for no disk model, as in a machine's description.
const MEMORY: &str = "memory";

/// Maximum size of a file in bytes. Larger files would measure disks instead of operations on names.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.file_size.0 > FILE_BYTES_MAX {
        let why = format!("expected at most {}", Size(FILE_BYTES_MAX));
        let failure = Failure::usage(format!("--file-size {}", arguments.file_size), why);
        return Err(failure.remedy("`starfish bench --agents` measures large files."));
    }
    arguments.output.check()?;
    arguments.trace_page.check()?;
    let cells = cells(arguments);
    let traces = arguments.trace.as_deref();
    let traces = traces.map(|path| measured_and_predicted(path, cells.len(), ONE)).transpose()?;
    let (of_measured, of_predicted) = traces.clone().unzip();
    let options = match arguments.disk_model == MEMORY {
        true => Vec::new(),
        false => {
            load_model(&arguments.disk_model)?;
            vec!["--disk-model".to_owned(), arguments.disk_model.clone()]
        }
    };
    let count = usize::from(arguments.agents);
    let (agents, predictor) = match &arguments.predict {
        Some(machine) => {
            let predictor = NamesPredictor::of(machine, count);
            cells.iter().try_for_each(|cell| predictor.check(cell))?;
            (None, predictor)
        }
        None => {
            let agents = Agents::start(count, &options)?;
            let set = this_computer(&arguments.disk_model);
            let predictor = NamesPredictor::of_this_computer(&agents, &set);
            (Some(agents), predictor)
        }
    };
    let progress = Progress::count(arguments.output.progress.show, "names", cells.len() as u64);
    let mut rows = Vec::new();
    // The costs on this computer are measured once for each number of clients.
    let mut with_costs = BTreeMap::new();
    for cell in &cells {
        let measured = agents
            .as_ref()
            .map(|agents| {
                let measure = || measured(arguments.explain, of_measured.as_deref(), agents, cell);
                middle_of(arguments.rounds.rounds, |times: &NamesTimes| times.elapsed, measure)
            })
            .transpose()?;
        if let (Some(agents), Entry::Vacant(entry)) = (&agents, with_costs.entry(cell.clients)) {
            let store = StoreCosts::measure(&agents.path(&format!("store{}", cell.clients)))?;
            entry.insert(predictor.with_costs(agents, cell.clients, arguments.rounds.rounds, &store)?);
        }
        let of_cell = with_costs.get(&cell.clients).unwrap_or(&predictor);
        let predicted = of_cell.predict(cell, of_predicted.as_deref())?;
        rows.push(NamesRow::new(cell, measured, predicted));
        progress.add(1);
    }
    progress.finish();
    arguments.output.print(&rows, lines, page)?;
    let Some((measured, predicted)) = traces else { return Ok(()) };
    arguments.trace_page.write([measured, predicted])
}

/// Measures a cell. Explains or traces it if requested.
fn measured(explain: bool, trace: Option<&Path>, agents: &Agents, cell: &NamesCell) -> Result<NamesTimes> {
    let is_recorded = explain || trace.is_some();
    if is_recorded {
        say!("{} by {}:", cell.name(), cell.who());
    }
    let cluster = agents.cluster.with_trace(trace);
    agents.explain(explained(is_recorded, &cluster, |cluster| measure(cluster, cell)))
}

fn cells(arguments: &Arguments) -> Vec<NamesCell> {
    let works = if arguments.work.is_empty() { NameWork::value_variants() } else { &arguments.work };
    let &Arguments { files, file_size, outstanding, .. } = arguments;
    let of = |&clients: &u32| {
        works.iter().map(move |&work| NamesCell { work, clients, files, bytes: file_size.0, outstanding })
    };
    arguments.clients.iter().flat_map(of).collect()
}
