//! `starfish simulate`: experiments of the reports on a simulated machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use description::MachineDescription;
use experiment::{Case, Contents, DiskLayout, Method, Options, Queued};
use fs::Scheduling;
use layout::{Grid, Pattern, Problem, Shape};
use serde::Serialize;

use super::positive;
use crate::explain::Account;
use crate::failure::{Failure, Result};
use crate::local;
use crate::progress::{Progress, Show};
use crate::simulation::{self, Outcome};
use crate::table::Table;
use crate::trace_file::{TraceFile, Written};
use crate::values;
use node::Size;

/// Read or write a file on a simulated machine, and see how fast it would be.
///
/// The file system is the very code that agents and clients run; processors, network, buses and disks are
/// modelled, and time is virtual. Each row of the result is one access pattern by one method: r or w for
/// reading or writing, then how the file is dealt to the compute nodes: a (all of it to each), n (all of it to
/// one), b (blocks) or c (cyclic), with two letters for the rows and columns of a matrix.
///
/// Where several values can be given, separated by commas or as `all`, there is a row for each combination.
/// The same seed gives the same result, always and everywhere.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The machine: a name that `starfish machines` lists, or a TOML file.
    #[arg(long, value_name = "NAME", default_value = "starfish-1996")]
    machine: String,

    /// Access methods: traditional, two-phase, disk-directed, or all.
    #[arg(long, value_name = "METHOD,...", default_value = "all", value_delimiter = ',')]
    method: Vec<String>,

    /// Access patterns such as rb, rc, rcb, wb, or all nineteen of the reports.
    #[arg(long, value_name = "PATTERN,...", default_value = "rb", value_delimiter = ',')]
    pattern: Vec<String>,

    /// Bytes in a record of the file.
    #[arg(long, value_name = "SIZE,...", default_value = "8192", value_delimiter = ',')]
    record: Vec<Size>,

    /// Layout of the file on each disk: contiguous, random, or all.
    #[arg(long, value_name = "LAYOUT,...", default_value = "contiguous", value_delimiter = ',')]
    layout: Vec<String>,

    /// Sort each disk's blocks by position first; disk-directed only.
    #[arg(long)]
    presort: bool,

    /// Size of the file.
    #[arg(long, value_name = "SIZE", default_value = "10MiB")]
    file_size: Size,

    /// Size of a block: of a disk request, and of the stripe unit.
    #[arg(long, value_name = "SIZE", default_value = "8KiB")]
    block: Size,

    /// Number of trials of each row, which differ in their random numbers.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = positive::<u32>)]
    trials: u32,

    /// Seed of all randomness.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Change a number of the machine's description.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Order in which a disk serves waiting requests; traditional only.
    #[arg(long, default_value_t = Scheduling::CyclicScan, value_parser = values::scheduling())]
    scheduling: Scheduling,

    /// Number of requests that each compute node keeps in flight to each disk (the reports' K); traditional only.
    #[arg(long, value_name = "K", default_value_t = 4, value_parser = positive::<u32>)]
    outstanding: u32,

    /// Start a thread for each request instead of using a pool; traditional only.
    #[arg(long)]
    thread_per_request: bool,

    /// Number of blocks prefetched ahead of each read; traditional only.
    #[arg(long, value_name = "N", default_value_t = 1)]
    prefetch: u64,

    /// Let I/O nodes fetch the data of a write (Memget), instead of sending them with the request; not disk-directed.
    #[arg(long)]
    memget_writes: bool,

    /// Which Memputs and Memgets are queued, to go together with others to the same node: never, always, or
    /// small-records.
    #[arg(long, value_name = "WHICH", default_value_t = Queued::SmallRecords)]
    queued: Queued,

    /// Rows and columns of the matrix in the file, in records. Without this: as square as possible.
    #[arg(long, value_name = "RxC")]
    shape: Option<Shape>,

    /// Rows and columns of the grid of compute nodes. Without this: as square as possible.
    #[arg(long, value_name = "RxC")]
    grid: Option<Grid>,

    /// Move descriptions of data instead of bytes: for files larger than memory.
    #[arg(long)]
    phantom: bool,

    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Print a digest of all events: equal for equal runs. With csv it goes to standard error.
    #[arg(long)]
    digest: bool,

    /// Explain the time of the first trial of each row: what was busy, what waited, what limited it. With csv it
    /// goes to standard error.
    #[arg(long)]
    explain: bool,

    /// Write a trace of the first trial to a file for the Perfetto UI (ui.perfetto.dev): what each processor, link,
    /// bus and disk does when. For one row only.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Maximum number of slices and counts in the trace; about 40 bytes each.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = positive::<u64>, requires = "trace")]
    trace_limit: u64,

    /// Whether to show progress.
    #[arg(long, value_enum, default_value_t = Show::Auto, value_name = "WHEN")]
    progress: Show,
}

const EXAMPLES: &str = "\
Examples:
  starfish simulate --pattern rb
  starfish simulate --pattern all --method all --format csv > results.csv
  starfish simulate --pattern rb --method disk-directed --trace rb.pftrace
  starfish simulate --pattern rb,wb --method disk-directed --layout random --presort
  starfish simulate --pattern rc --record 8 --trials 1 --explain
  starfish simulate --pattern rb --set nodes.io=4 --set disks.model=streaming-20
  starfish simulate --machine cluster-switch --pattern rcb --grid 16x4 --file-size 1GiB --phantom";

/// Output format of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, with units.
    Table,
    /// For programs: comma-separated values with a header.
    Csv,
    /// For programs: an array of objects.
    Json,
}

/// The columns of CSV, in their order.
const HEADER: &str = "machine,method,layout,pattern,record_bytes,trials,throughput_mib_s,cv,disk_movements,events,virtual_s,wall_s";

/// A row of the result.
#[derive(Serialize)]
struct Row {
    machine: String,
    method: String,
    layout: String,
    pattern: String,
    record_bytes: u64,
    trials: usize,
    throughput_mib_s: f64,
    cv: f64,
    disk_movements: f64,
    events: u64,
    virtual_s: f64,
    wall_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Account>,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let experiments = experiments(&arguments)?;
    if let Some(path) = &arguments.trace {
        trace(path, arguments.trace_limit, &experiments)?;
    }
    let trials = arguments.trials as usize;
    let progress = Progress::count(arguments.progress, "simulating", (experiments.len() * trials) as u64);
    let outcomes = simulation::run(&experiments, trials, &progress)?;
    progress.finish();
    let row = |(experiment, outcome)| row(&arguments, experiment, outcome);
    let rows: Vec<Row> = experiments.iter().zip(&outcomes).map(row).collect();
    match arguments.format {
        Format::Table => local::print(table(&rows).into_iter().chain(accounts(&rows))),
        Format::Csv => {
            accounts(&rows).for_each(|line| eprintln!("{line}"));
            for digest in rows.iter().filter_map(|row| row.digest.as_deref()) {
                eprintln!("{digest}");
            }
            local::print(std::iter::once(HEADER.to_owned()).chain(rows.iter().map(csv)))
        }
        Format::Json => {
            let text =
                serde_json::to_string_pretty(&rows).map_err(|error| Failure::new("printing JSON", error))?;
            local::print([text])
        }
    }
}

/// Runs the first trial of the one experiment with a trace of it.
fn trace(path: &Path, limit: u64, experiments: &[Case]) -> Result<()> {
    let [experiment] = experiments else {
        let failure =
            Failure::usage("--trace", format!("a trace is of one row, and there are {}", experiments.len()));
        return Err(failure.remedy("Name one --method, one --pattern, one --record and one --layout."));
    };
    let file = TraceFile::create(path, &experiment.machine, limit)?;
    let recorder = Box::new(file.clone());
    experiment
        .recorded_trial(0, recorder)
        .map_err(|error| Failure::new("simulating, with a trace", error))?;
    let Written { events, cut_at } = file.finish()?;
    if let Some(time) = cut_at {
        eprintln!(
            "{}: the trace ends at {time} of the machine's time, at its limit of {events} slices and counts; \
             --trace-limit N takes more, a smaller --file-size needs fewer",
            path.display()
        );
    }
    Ok(())
}

/// All combinations, each checked before any of them runs.
fn experiments(arguments: &Arguments) -> Result<Vec<Case>> {
    let machine = load_machine(&arguments.machine, &arguments.set)?;
    let methods = chosen("--method", &arguments.method, &Method::ALL)?;
    let layouts = chosen("--layout", &arguments.layout, &[DiskLayout::Contiguous, DiskLayout::Random])?;
    let patterns = chosen("--pattern", &arguments.pattern, &Pattern::all().collect::<Vec<_>>())?;
    if arguments.presort && !methods.contains(&Method::DiskDirected) {
        let failure = Failure::usage("--presort", "only the disk-directed method can presort");
        return Err(failure.remedy("Add --method disk-directed, or leave --presort out."));
    }
    if !patterns.iter().any(Pattern::is_of_matrix) {
        for (option, given) in [("--shape", arguments.shape.is_some()), ("--grid", arguments.grid.is_some())]
        {
            if given {
                let failure = Failure::usage(option, "it would do nothing: no pattern chosen is of a matrix");
                return Err(failure.remedy(format!("Choose one such as rbb or rcb, or leave {option} out.")));
            }
        }
    }
    let mut experiments = Vec::new();
    for &layout in &layouts {
        for Size(record_bytes) in arguments.record.iter().copied() {
            for &pattern in &patterns {
                for &method in &methods {
                    let experiment = experiment(arguments, &machine, method, layout, pattern, record_bytes);
                    let what = format!("{method} {pattern} with records of {record_bytes} bytes");
                    experiment.check().map_err(|error| Failure::usage(what, error))?;
                    experiments.push(experiment);
                }
            }
        }
    }
    Ok(experiments)
}

fn experiment(
    arguments: &Arguments,
    machine: &MachineDescription,
    method: Method,
    layout: DiskLayout,
    pattern: Pattern,
    record_bytes: u64,
) -> Case {
    let Arguments { shape, grid, .. } = *arguments;
    let nodes = machine.nodes.compute.value;
    Case {
        machine: machine.clone(),
        method,
        pattern,
        problem: Problem { shape, grid, ..Problem::new(arguments.file_size.0, record_bytes, nodes) },
        layout,
        options: Options {
            block_bytes: arguments.block.0,
            outstanding: arguments.outstanding as usize,
            scheduling: arguments.scheduling,
            thread_per_request: arguments.thread_per_request,
            prefetch_blocks: arguments.prefetch,
            memget_writes: arguments.memget_writes && method != Method::DiskDirected,
            queued: arguments.queued,
            presort: arguments.presort && method == Method::DiskDirected,
            ..Options::default()
        },
        contents: if arguments.phantom { Contents::Phantom } else { Contents::Real },
        seed: arguments.seed,
    }
}

/// Reads a machine by name or path, with values replaced.
pub(crate) fn load_machine(name: &str, set: &[String]) -> Result<MachineDescription> {
    let overrides = set.iter().map(|text| {
        text.split_once('=').map(|(key, value)| (key.trim(), value.trim())).ok_or_else(|| {
            let failure = Failure::usage(format!("--set {text}"), "expected KEY=VALUE");
            failure.remedy("For example: --set nodes.io=8 or --set \"disks.model=streaming-20\".")
        })
    });
    let overrides = overrides.collect::<Result<Vec<_>>>()?;
    MachineDescription::load_with(name, &overrides).map_err(|error| {
        let failure = match error {
            description::Error::Override { overrides, message } => {
                Failure::usage(format!("--set {overrides}"), message)
            }
            error => Failure::usage("--machine", error),
        };
        failure.remedy(
            "`starfish machines` lists the machines; `starfish machines NAME` prints one with its keys.",
        )
    })
}

/// The values named, without repetition; `all` stands for `all`.
fn chosen<T>(option: &str, names: &[String], all: &[T]) -> Result<Vec<T>>
where
    T: std::str::FromStr + Copy,
    T::Err: std::fmt::Display,
{
    let mut seen = BTreeSet::new();
    let mut values = Vec::new();
    for name in names.iter().filter(|name| seen.insert(name.as_str())) {
        if name == "all" {
            return Ok(all.to_vec());
        }
        values.push(name.parse().map_err(|error| Failure::usage(format!("{option} {name}"), error))?);
    }
    Ok(values)
}

fn row(arguments: &Arguments, experiment: &Case, outcome: &Outcome) -> Row {
    let summary = &outcome.summary;
    Row {
        machine: arguments.machine.clone(),
        method: experiment.method.to_string(),
        layout: experiment.layout.to_string(),
        pattern: experiment.pattern.to_string(),
        record_bytes: experiment.problem.record_bytes,
        trials: summary.trials,
        throughput_mib_s: summary.throughput_mib_s,
        cv: summary.cv,
        disk_movements: summary.disk_movements,
        events: summary.events,
        virtual_s: summary.virtual_s,
        wall_s: outcome.wall.as_secs_f64(),
        digest: arguments.digest.then(|| format!("{:016x}", summary.digest)),
        explain: arguments.explain.then(|| Account::new(experiment, &outcome.first)),
    }
}

/// The accounts of all rows that have one, in plain words.
fn accounts(rows: &[Row]) -> impl Iterator<Item = String> {
    rows.iter().filter_map(|row| Some((row, row.explain.as_ref()?))).flat_map(|(row, account)| {
        let Row { pattern, method, layout, record_bytes, .. } = row;
        let record = Size(*record_bytes);
        let head = format!("{method} {pattern}, {layout}, records of {record}; trial 0:");
        [String::new(), head].into_iter().chain(account.lines())
    })
}

fn csv(row: &Row) -> String {
    let Row { method, layout, pattern, record_bytes, trials, throughput_mib_s, cv, .. } = row;
    let Row { disk_movements, events, virtual_s, wall_s, .. } = row;
    let machine = quoted(&row.machine);
    format!(
        "{machine},{method},{layout},{pattern},{record_bytes},{trials},{throughput_mib_s:.3},{cv:.5},\
         {disk_movements:.1},{events},{virtual_s:.6},{wall_s:.3}"
    )
}

/// A field of CSV (RFC 4180).
fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// MiB/s with its significant digits.
fn throughput(mib_s: f64) -> String {
    let digits = if mib_s < 1000.0 { 2 } else { 0 };
    format!("{mib_s:.digits$} MiB/s")
}

/// A time in seconds, or in milliseconds if it is short.
fn time(seconds: f64) -> String {
    if seconds < 0.1 { format!("{:.3} ms", 1000.0 * seconds) } else { format!("{seconds:.3} s") }
}

fn table(rows: &[Row]) -> Vec<String> {
    let mut table = Table::new(4);
    let head = [
        "machine",
        "layout",
        "pattern",
        "method",
        "record",
        "throughput",
        "cv",
        "movements",
        "time",
        "events",
    ];
    let digest = rows.iter().any(|row| row.digest.is_some()).then_some("digest");
    table.row(head.into_iter().chain(digest));
    for row in rows {
        let cells = [
            row.machine.clone(),
            row.layout.clone(),
            row.pattern.clone(),
            row.method.clone(),
            Size(row.record_bytes).to_string(),
            throughput(row.throughput_mib_s),
            format!("{:.1} %", 100.0 * row.cv),
            format!("{:.0}", row.disk_movements),
            time(row.virtual_s),
            row.events.to_string(),
        ];
        table.row(cells.into_iter().chain(row.digest.clone()));
    }
    table.lines().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_digits_that_mean_something() {
        assert_eq!(
            ["14.99 MiB/s", "999.99 MiB/s", "59437 MiB/s"],
            [14.99, 999.99, 59_436.85].map(throughput)
        );
        assert_eq!(["0.667 s", "0.100 s", "0.923 ms"], [0.667, 0.1, 0.000_923].map(time));
    }

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(quoted("starfish-1996"), "starfish-1996");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn all_stands_for_all_and_repetitions_count_once() {
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(chosen("--method", &names("all"), &Method::ALL).expect("known"), Method::ALL);
        let twice = chosen("--method", &names("traditional,traditional"), &Method::ALL);
        assert_eq!(twice.expect("known"), [Method::Traditional]);
        assert!(chosen("--method", &names("psychic"), &Method::ALL).is_err());
    }
}
