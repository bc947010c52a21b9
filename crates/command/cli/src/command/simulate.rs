//! `starfish simulate`: runs experiments of the reports on a simulated machine.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Args;
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use command_line::say;
use experiment::AccessPattern;
use experiment::{Case, Comparison, ComparisonError, DiskLayout, Method, OF_NO_MATRIX, Trial};
use recording::RecordedPart;
use serde::Serialize;

use crate::options::experiment::{ProgressArgs, SeedArgs, SetArgs, TraceLimitArgs};
use crate::options::fields::{self, FieldOptions};
use crate::options::numbers::positive;
use crate::output::plan_lines::mib_s;
use crate::output::row_format::RowFormat;
use crate::simulation::{self, Outcome};
use account::explain::Account;
use account::trace_file::TraceFile;
use command_line::durations::shown;
use node::Size;
use studies::described::load_machine;

/// Read or write a file on a simulated machine, and see its throughput.
///
/// The file system is the code that agents and clients run; processors, network, buses and disks are modelled, and time
/// is virtual. Each row of the result is one access pattern with one method. A pattern begins with r or w, for reading
/// or writing. The next letter is the distribution of the file over the compute nodes: a (all of it to each), n (all of
/// it to one), b (blocks) or c (cyclic). A matrix has two letters, for its rows and its columns.
///
/// Some options accept several values, separated by commas, or `all`. There is a row for each combination. The same
/// seed produces the same result, at any time and on any computer.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The machine: a name that `starfish machines` lists, or a TOML file.
    #[arg(long, value_name = "NAME", default_value = "starfish-1996")]
    machine: String,

    /// Access methods: traditional, two-phase, disk-directed, or `all` of these; also write-cached.
    #[arg(long, value_name = "METHOD,...", default_value = "all", value_delimiter = ',')]
    method: Vec<String>,

    /// Access patterns such as rb, rc, rcb, wb, or `all` for the nineteen patterns of the reports.
    #[arg(long, value_name = "PATTERN,...", default_value = "rb", value_delimiter = ',')]
    pattern: Vec<String>,

    /// Size of a record of the file.
    #[arg(long, value_name = "SIZE,...", default_value = "8192", value_delimiter = ',')]
    record: Vec<Size>,

    /// Layout of the file on each disk: contiguous (with space to grow), packed (without), or random; `all` means
    /// contiguous and random.
    #[arg(long, value_name = "LAYOUT,...", default_value = "contiguous", value_delimiter = ',')]
    layout: Vec<String>,

    /// Number of trials of each row, which differ in their random numbers.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = positive::<u32>)]
    trials: u32,

    #[command(flatten)]
    seed: SeedArgs,

    #[command(flatten)]
    set: SetArgs,

    #[command(flatten)]
    fields: FieldOptions,

    /// Output format.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    /// Print a digest of all events, which is equal for equal runs. With CSV, it is printed on standard error.
    #[arg(long)]
    digest: bool,

    /// Explain the time of the first trial of each row: busy parts, waits and the bottleneck. With CSV, this is printed
    /// on standard error.
    #[arg(long)]
    explain: bool,

    /// Write a trace of the first trial to a file: the work of each processor, link, bus and disk, and of each node.
    /// The format is for the Perfetto UI (ui.perfetto.dev), unless the name ends in `.tlv`. Only for a single row.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    #[command(flatten)]
    trace_limit: TraceLimitArgs,

    #[command(flatten)]
    progress: ProgressArgs,
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

/// Header of CSV output.
const HEADER: &str = "machine,method,layout,pattern,record_bytes,trials,throughput_mib_s,cv,disk_movements,events,virtual_s,wall_s";

/// Additional columns, if a row uses a method with a write cache.
const FLUSHES: &str = ",flushes,directory_flushes";

/// Row of the result.
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
    flushes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory_flushes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Account>,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let cases = cases(&arguments)?;
    let trials = arguments.trials as usize;
    simulation::check_memory(&cases, trials)?;
    let progress = Progress::count(arguments.progress.show, "simulating", (cases.len() * trials) as u64);
    let traced =
        arguments.trace.as_ref().map(|path| trace(path, arguments.trace_limit.limit, &cases)).transpose()?;
    let outcomes = simulation::run(&cases, trials, traced.into_iter().collect(), &progress)?;
    progress.finish();
    let row = |(case, outcome)| row(&arguments, case, outcome);
    let rows: Vec<Row> = cases.iter().zip(&outcomes).map(row).collect();
    let report_text = |rows: &[Row]| table(rows).into_iter().chain(accounts(rows)).collect();
    let remarks = |rows: &[Row]| accounts(rows).chain(digests(rows)).collect();
    arguments.format.print_report(&rows[..], report_text, csv, remarks)
}

/// Runs the first trial of the only case with a trace. The trace affects only the run time.
fn trace(path: &Path, limit: u64, cases: &[Case]) -> Result<(Trial, Duration)> {
    let [case] = cases else {
        let failure =
            Failure::usage("--trace", format!("a trace needs a single row, and there are {}", cases.len()));
        return Err(failure.remedy("Name one --method, one --pattern, one --record and one --layout."));
    };
    let file = Rc::new(RefCell::new(TraceFile::create(path, &case.machine, limit)?));
    let start = Instant::now();
    let trial = case.recorded_trial(0, file.clone());
    let trial = trial.map_err(|error| Failure::new("cannot simulate with a trace", error))?;
    let RecordedPart { events, cut_at } = file.borrow_mut().finish()?;
    if let Some(time) = cut_at {
        say!(
            "{}: the trace ends at simulated time {time}: it reached its limit of {events} slices and \
             counts; raise it with --trace-limit N, or choose a smaller --file-size",
            path.display()
        );
    }
    Ok((trial, start.elapsed()))
}

/// Returns all combinations. Each has been checked.
fn cases(arguments: &Arguments) -> Result<Vec<Case>> {
    let compared = Comparison {
        machine: load_machine(&arguments.machine, &arguments.set.set)?,
        methods: chosen("--method", &arguments.method, &Method::ALL)?,
        layouts: chosen("--layout", &arguments.layout, &[DiskLayout::Contiguous, DiskLayout::Random])?,
        patterns: chosen("--pattern", &arguments.pattern, &AccessPattern::all().collect::<Vec<_>>())?,
        records: arguments.record.iter().map(|size| size.0).collect(),
        seed: arguments.seed.seed,
    };
    let choices = &arguments.fields.0;
    if !compared.patterns.iter().any(AccessPattern::is_of_matrix) {
        for (option, given) in [("--shape", choices.shape.is_some()), ("--grid", choices.grid.is_some())] {
            if given {
                let failure = Failure::usage(option, format!("it has no effect: {OF_NO_MATRIX}"));
                return Err(failure.remedy(format!("Choose one such as rbb or rcb, or leave {option} out.")));
            }
        }
    }
    choices.cases(&compared).map_err(refused)
}

/// Converts the error for choices that cannot be compared.
pub(crate) fn refused(error: ComparisonError) -> Failure {
    match error {
        ComparisonError::Case { what, error } => Failure::usage(what, error),
        ComparisonError::WithoutEffect { field, why, method } => {
            let option = fields::option(field);
            let instead = method.map_or_else(
                || "another --method or --pattern".to_owned(),
                |method| format!("--method {method}"),
            );
            let remedy = format!("Add {instead}, or leave {option} out.");
            Failure::usage(option, why).remedy(remedy)
        }
    }
}

/// Parses a list of values, and drops repetitions. The word `all` adds the values in `all`; other values can be listed,
/// too.
pub(crate) fn chosen<T>(option: &str, names: &[String], all: &[T]) -> Result<Vec<T>>
where
    T: std::str::FromStr + Copy + PartialEq,
    T::Err: std::fmt::Display,
{
    let mut values = Vec::new();
    for name in names {
        let named = match name.as_str() {
            "all" => all.to_vec(),
            _ => vec![name.parse().map_err(|error| Failure::usage(format!("{option} {name}"), error))?],
        };
        for value in named {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    Ok(values)
}

fn row(arguments: &Arguments, case: &Case, outcome: &Outcome) -> Row {
    let summary = &outcome.summary;
    Row {
        machine: arguments.machine.clone(),
        method: case.method.to_string(),
        layout: case.layout.to_string(),
        pattern: case.pattern.to_string(),
        record_bytes: case.problem.record_bytes,
        trials: summary.trials,
        throughput_mib_s: summary.throughput_mib_s,
        cv: summary.cv,
        disk_movements: summary.disk_movements,
        events: summary.events,
        virtual_s: summary.virtual_s,
        wall_s: outcome.wall.as_secs_f64(),
        flushes: summary.flushes.map(|(flushes, _)| flushes),
        directory_flushes: summary.flushes.map(|(_, by_directory)| by_directory),
        digest: arguments.digest.then(|| format!("{:016x}", summary.digest)),
        explain: arguments.explain.then(|| Account::new(case.machine.nodes.compute.value, &outcome.first)),
    }
}

/// Returns the accounts of all rows that have one, as text.
fn accounts(rows: &[Row]) -> impl Iterator<Item = String> {
    rows.iter().filter_map(|row| Some((row, row.explain.as_ref()?))).flat_map(|(row, account)| {
        let Row { pattern, method, layout, record_bytes, .. } = row;
        let record = Size(*record_bytes);
        let head = format!("{method} {pattern}, {layout}, records of {record}; trial 0:");
        [String::new(), head].into_iter().chain(account.lines())
    })
}

fn has_flushes(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.flushes.is_some())
}

fn digests(rows: &[Row]) -> impl Iterator<Item = String> {
    rows.iter().filter_map(|row| row.digest.clone())
}

fn csv(rows: &[Row]) -> Vec<String> {
    let with_flushes = has_flushes(rows);
    let header = format!("{HEADER}{}", if with_flushes { FLUSHES } else { "" });
    std::iter::once(header).chain(rows.iter().map(|row| csv_line(row, with_flushes))).collect()
}

fn csv_line(row: &Row, with_flushes: bool) -> String {
    let Row { method, layout, pattern, record_bytes, trials, throughput_mib_s, cv, .. } = row;
    let Row { disk_movements, events, virtual_s, wall_s, .. } = row;
    let machine = quoted(&row.machine);
    format!(
        "{machine},{method},{layout},{pattern},{record_bytes},{trials},{throughput_mib_s:.3},{cv:.5},\
         {disk_movements:.1},{events},{virtual_s:.6},{wall_s:.3}"
    ) + &[row.flushes, row.directory_flushes]
        .iter()
        .filter(|_| with_flushes)
        .map(|count| count.map_or(",".to_owned(), |count| format!(",{count:.1}")))
        .collect::<String>()
}

/// Quotes a field of CSV (RFC 4180).
fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn table(rows: &[Row]) -> Vec<String> {
    let mut table = TextTable::new(4);
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
    let flushes = if has_flushes(rows) { vec!["flushes", "by directory"] } else { Vec::new() };
    table.row(head.into_iter().chain(flushes.clone()).chain(digest));
    for row in rows {
        let cells = [
            row.machine.clone(),
            row.layout.clone(),
            row.pattern.clone(),
            row.method.clone(),
            Size(row.record_bytes).to_string(),
            mib_s(row.throughput_mib_s),
            format!("{:.1} %", 100.0 * row.cv),
            format!("{:.0}", row.disk_movements),
            shown(row.virtual_s),
            row.events.to_string(),
        ];
        let counts = [row.flushes, row.directory_flushes].into_iter().filter(|_| !flushes.is_empty());
        let counts = counts.map(|count| count.map_or("-".to_owned(), |count| format!("{count:.0}")));
        table.row(cells.into_iter().chain(counts).chain(row.digest.clone()));
    }
    table.lines().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(quoted("starfish-1996"), "starfish-1996");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn the_value_all_is_expanded_and_repetitions_count_once() {
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(chosen("--method", &names("all"), &Method::ALL).expect("known"), Method::ALL);
        let twice = chosen("--method", &names("traditional,traditional"), &Method::ALL);
        assert_eq!(twice.expect("known"), [Method::Traditional]);
        let more = chosen("--method", &names("all,write-cached,two-phase"), &Method::ALL);
        assert_eq!(more.expect("known"), [&Method::ALL[..], &[Method::WriteCached]].concat());
        let more = chosen("--method", &names("write-cached,all"), &Method::ALL);
        assert_eq!(more.expect("known"), [&[Method::WriteCached], &Method::ALL[..]].concat());
        assert!(chosen("--method", &names("all,psychic"), &Method::ALL).is_err());
        assert!(chosen("--method", &names("psychic"), &Method::ALL).is_err());
    }
}
