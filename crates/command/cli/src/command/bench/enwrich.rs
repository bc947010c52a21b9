//! `starfish bench enwrich`: measures and predicts processes that write one shared file in small records.

use std::iter;
use std::path::PathBuf;

use account::trace_file::measured_and_predicted;
use clap::{Args, ValueEnum};
use command_line::failure::{Failure, Result};
use command_line::mib;
use command_line::progress::Progress;
use description::DiskDescription;
use fs::{IoNodeSettings, Scheduling};
use jobs::ArrayPattern;
use node::Size;
use studies::bench::enwrich::measure::measure_in_rounds;
use studies::bench::enwrich::member::{be_member, check_problem};
use studies::bench::enwrich::prediction::WritePredictor;
use studies::bench::enwrich::results::{WriteRow, lines, page};
use studies::bench::enwrich::{WriteCell, WriteMethod};
use studies::bench::processes::Agents;
use studies::described::{load_model, this_computer};

use super::TracePageArgs;
use crate::options::experiment::RoundsArgs;
use crate::options::values;
use crate::output::row_format::RowOutput;

/// Measure processes that write one shared file in small records: traditional, two-phase, disk-directed, write-cached.
///
/// Starts agents on loopback, whose disks take the times of a model, and processes that write to them. The time ends
/// when all data are on the disks; the written data are checked. With a request for each record, only the first part of
/// the file is written. Next to each measurement is the prediction of the simulated machine `loopback` with the same
/// disks. The latency is that of one record; a process whose cache is full waits for the flush. The files are in
/// TMPDIR.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Patterns of the reports. Collective methods can write only one array.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "wcc,wbb,wss,wrnnbb")]
    patterns: Vec<ArrayPattern>,

    /// Sizes of records.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "8,64,512,8192")]
    records: Vec<Size>,

    /// Methods to measure [default: all].
    #[arg(long, value_enum, value_name = "METHOD,...", value_delimiter = ',')]
    methods: Vec<WriteMethod>,

    /// Total size of all files of a pattern.
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    file_size: Size,

    /// Number of processes.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    processes: u32,

    /// Number of agents, each with a disk.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=16))]
    agents: u8,

    /// Size of each process's write cache.
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    write_cache: Size,

    /// Disk model, or `host` for the disk under TMPDIR, which cannot be predicted.
    #[arg(long, value_name = "NAME", default_value = "streaming-20")]
    disk_model: String,

    /// Order in which the disks serve waiting requests.
    #[arg(long, value_parser = values::scheduling(), default_value_t = IoNodeSettings::agent().scheduling)]
    scheduling: Scheduling,

    #[command(flatten)]
    rounds: RoundsArgs,

    /// Predict for this machine, and measure nothing.
    #[arg(long, value_name = "NAME", conflicts_with = "rounds")]
    predict: Option<String>,

    /// Trace the measurement, which must be a single one. NAME.tlv has the processes and agents, NAME-predicted.tlv the
    /// prediction. Both begin with the first write and end when the last byte is on the disks.
    #[arg(long, value_name = "NAME.tlv", conflicts_with_all = ["predict", "rounds"])]
    trace: Option<PathBuf>,

    #[command(flatten)]
    trace_page: TracePageArgs,

    #[command(flatten)]
    output: RowOutput,

    /// Run as one of the writing processes.
    #[arg(long, hide = true)]
    member: bool,
}

const EXAMPLES: &str = "\
Examples:
  starfish bench enwrich --patterns wcc --file-size 64MiB
  starfish bench enwrich --records 8,512 --methods traditional,write-cached --html enwrich.html
  starfish bench enwrich --patterns wcc,wss --rounds 5
  starfish bench enwrich --predict cluster-switch --processes 16 --agents 8
  starfish bench enwrich --patterns wcc --records 512 --methods disk-directed \
    --trace write.tlv --trace-html write.html    measurement next to prediction
  TMPDIR=/mnt/disk starfish bench enwrich --disk-model host";

/// Remedy if there is more than one measurement.
const ONE: &str = "Name one of --patterns, --records and --methods.";

/// Name of the disk under TMPDIR.
const HOST: &str = "host";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.member {
        return be_member();
    }
    let cells = cells(arguments)?;
    let traces = arguments.trace.as_deref();
    let traces = traces.map(|path| measured_and_predicted(path, cells.len(), ONE)).transpose()?;
    arguments.output.check()?;
    arguments.trace_page.check()?;
    let is_host = arguments.disk_model == HOST;
    let model = if is_host { None } else { Some(load_model(&arguments.disk_model)?) };
    let agents = match &arguments.predict {
        None => Some(Agents::start(usize::from(arguments.agents), &agent_options(arguments, is_host))?),
        Some(_) => None,
    };
    let predictor = predictor(arguments, agents.as_ref(), is_host)?;
    let of_disk = model.and_then(|model| match model {
        DiskDescription::Streaming(disk) => Some(mib(disk.written_per_second())),
        _ => None,
    });
    let rate = of_disk.map(|rate| rate * f64::from(arguments.agents));
    let progress = Progress::count(arguments.output.progress.show, "writing", cells.len() as u64);
    let mut rows = Vec::new();
    for cell in &cells {
        let trace = traces.as_ref().map(|(measured, _)| measured.as_path());
        let measured = agents
            .as_ref()
            .map(|agents| measure_in_rounds(agents, cell, arguments.rounds.rounds, trace))
            .transpose()?;
        let predicted = predictor
            .as_ref()
            .map(|predictor| {
                predictor.predict(cell, traces.as_ref().map(|(_, predicted)| predicted.as_path()))
            })
            .transpose()?;
        rows.push(WriteRow::new(cell, measured, predicted, rate));
        progress.add(1);
    }
    progress.finish();
    arguments.output.print(&rows, lines, page)?;
    let Some((measured, predicted)) = traces else { return Ok(()) };
    arguments.trace_page.write(iter::once(measured).chain(predictor.map(|_| predicted)))
}

fn cells(arguments: &Arguments) -> Result<Vec<WriteCell>> {
    let asked = &arguments.methods;
    let methods = if asked.is_empty() { WriteMethod::value_variants() } else { asked };
    let mut cells = Vec::new();
    for &pattern in &arguments.patterns {
        for record in &arguments.records {
            for &method in methods {
                let cell = WriteCell {
                    method,
                    pattern,
                    record_bytes: record.0,
                    file_bytes: arguments.file_size.0,
                    processes: arguments.processes,
                    cache_bytes: arguments.write_cache.0,
                };
                if cell.makes_sense() {
                    check_problem(&cell)?;
                    cells.push(cell);
                }
            }
        }
    }
    if cells.is_empty() {
        let failure = Failure::usage("--methods", "none of these methods can write one of the patterns");
        return Err(
            failure.remedy("A collective method writes one array; choose traditional or write-cached.")
        );
    }
    Ok(cells)
}

fn predictor(
    arguments: &Arguments,
    agents: Option<&Agents>,
    is_host: bool,
) -> Result<Option<WritePredictor>> {
    let Arguments { processes, scheduling, rounds: RoundsArgs { rounds }, .. } = *arguments;
    let predictor = match (&arguments.predict, agents) {
        (Some(machine), _) => {
            WritePredictor::of(machine, &[], processes, usize::from(arguments.agents), scheduling)?
        }
        (None, Some(agents)) if !is_host => {
            let set = this_computer(&arguments.disk_model);
            WritePredictor::of_this_computer(agents, &set, processes, scheduling, rounds)?
        }
        (None, _) => return Ok(None),
    };
    Ok(Some(predictor))
}

fn agent_options(arguments: &Arguments, is_host: bool) -> Vec<String> {
    let mut options = vec!["--scheduling", arguments.scheduling.name()];
    if !is_host {
        options.extend(["--disk-model", &arguments.disk_model]);
    }
    options.into_iter().map(str::to_owned).collect()
}
