//! `starfish merge`: simulates jobs that share disks, and shows their run times and races.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use account::job_tracks::JobTracks;
use account::race::Race;
use account::trace_file::TraceFile;
use clap::Args;
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use command_line::say;
use experiment::{FieldSet, PlacedJob, PlacementCase, PlacementOptions, PlacementOutcome, Trial};
use placement::ParallelIos;
use plan::PlannedCase;
use recording::RecordedPart;
use serde::Serialize;
use studies::described::{not_loaded, overrides};
use transfer::local;
use transfer::memory;

use crate::options::experiment::{SeedArgs, SetArgs, TraceLimitArgs};
use crate::options::fields::MergeOptions;
use crate::options::numbers::positive;
use crate::output::row_format::RowFormat;

/// Simulate jobs that merge runs on shared disks, and show if one of them races ahead.
///
/// Each job reads its runs from some disks and writes its output to another one, which the placement policy chooses. A
/// job that gets ahead fills the queue of its output disk, and so delays the reads of other jobs from this disk. Then
/// the jobs take turns, and disks are idle. The experiments are those of Sinclair, Tang and Varman, "Placement-related
/// problems in shared disk I/O" (1996); `starfish reproduce placement` draws its figures.
///
/// There is a row for each trial. It shows the seconds until all jobs and until the first job are done. It also shows
/// the milliseconds to read (r) and to write (w) a block, f = w / r, and the longest queue of writes at a disk.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    fields: MergeOptions,

    /// Number of trials, which differ in their random numbers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive::<u32>)]
    trials: u32,

    #[command(flatten)]
    seed: SeedArgs,

    #[command(flatten)]
    set: SetArgs,

    /// Output format. CSV and JSON contain only the rows; explanations are printed on standard error.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    /// Explain the first trial: the leading job, the start of the race, and queue lengths compared with the threshold.
    #[arg(long)]
    explain: bool,

    /// Write a trace of the first trial to a file: a counter of pending writes for each disk, a track for each job, and
    /// the activities of nodes and disks. The format is for the Perfetto UI (ui.perfetto.dev), unless the name ends in
    /// `.tlv`.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    #[command(flatten)]
    trace_limit: TraceLimitArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish merge --policy 2 --jobs 5 --disks 5 --explain    a race
  starfish merge --policy 3 --jobs 5 --trials 5             remedy: placement
  starfish merge --policy 2 --scheduling round-robin        remedy: disk schedule
  starfish merge --policy 2 --jobs 3 --buffer-blocks 2000   remedy: small buffers
  starfish merge --kind copy --jobs 2 --disks 2 --run-blocks 10000 --read-blocks 8 --write-blocks 1
  starfish merge --policy 2 --trace race.pftrace
  starfish merge --policy 3 --trials 5 --format csv

JSON and CSV: trial, elapsed_s, first_s, read_ms, write_ms, ratio (f), queue_writes, queue_blocks.";

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let case = case(&arguments)?;
    let (mut rows, mut explained) = (Vec::new(), Vec::new());
    for number in 0..u64::from(arguments.trials) {
        let path = arguments.trace.as_deref().filter(|_| number == 0);
        let trial = simulate(&case, number, path, arguments.trace_limit.limit)?;
        let outcome = case.outcome(&trial);
        rows.push(Row::of(number, &outcome));
        if number == 0 && arguments.explain {
            explained = Race::of(&case, &trial, &outcome).lines();
        }
    }
    let head = [case.to_string()].into_iter().chain(parallel_ios(&case)).chain([String::new()]);
    let report_text = |rows: &[Row]| head.clone().chain(lines(rows)).collect();
    arguments.format.print(&rows, report_text)?;
    match arguments.format {
        RowFormat::Table => local::print(explained),
        RowFormat::Csv | RowFormat::Json => {
            explained.iter().for_each(|line| say!("{line}"));
            Ok(())
        }
    }
}

/// Returns a line with the numbers of parallel I/Os, for jobs that exchange runs. Returns `None` for merges, in which
/// the order of blocks depends on the data.
fn parallel_ios(case: &PlacementCase) -> Option<String> {
    let PlacementOptions { kind, disks, run_blocks, .. } = case.options;
    (kind != PlacedJob::Merge).then(|| {
        let ParallelIos { least, lock_step } = ParallelIos::of_exchange(disks.into(), run_blocks);
        format!("parallel I/Os of one block a disk: {least} at least, {lock_step} in lock-step")
    })
}

fn case(arguments: &Arguments) -> Result<PlacementCase> {
    let mut choices = arguments.fields.0.clone();
    let set = overrides(&arguments.set.set)?.into_iter();
    choices.set().extend(set.map(|(key, value)| (key.to_owned(), value.to_owned())));
    let machine = choices.load_machine().map_err(not_loaded)?;
    let case = choices.case(machine, arguments.seed.seed);
    case.check().map_err(|error| Failure::usage("merge", error))?;
    memory::check_stored(
        "merge",
        case.stored_bytes(),
        "Leave out --contents real: phantom data take no memory.",
    )?;
    Ok(case)
}

fn simulate(case: &PlacementCase, number: u64, trace: Option<&Path>, limit: u64) -> Result<Trial> {
    let failed = |error| Failure::new(format!("simulating trial {number}"), error);
    let Some(path) = trace else { return case.trial(number).map_err(failed) };
    let file = Rc::new(RefCell::new(TraceFile::create(path, &case.machine, limit)?));
    let trial = case.recorded_trial(number, file.clone()).map_err(failed)?;
    JobTracks::of(case, &trial).write_to(&mut *file.borrow_mut());
    let RecordedPart { events, cut_at } = file.borrow_mut().finish()?;
    if cut_at.is_some() {
        say!(
            "{}: the trace is incomplete: it reached its limit of {events} slices and counts; --trace-limit \
             N raises it",
            path.display()
        );
    }
    Ok(trial)
}

/// Results of a trial.
#[derive(Serialize)]
struct Row {
    trial: u64,
    /// Times in seconds until all jobs, and until the first job, are done.
    elapsed_s: f64,
    first_s: f64,
    /// Times in milliseconds to read and to write a block.
    read_ms: f64,
    write_ms: f64,
    /// Time to write divided by time to read; `None` if blocks take no time.
    ratio: Option<f64>,
    /// Longest queue of writes at a disk: the number of writes, and the number of their blocks.
    queue_writes: u64,
    queue_blocks: u64,
}

impl Row {
    fn of(trial: u64, outcome: &PlacementOutcome) -> Row {
        let most = outcome.pending_most();
        Row {
            trial,
            elapsed_s: outcome.elapsed.as_secs_f64(),
            first_s: outcome.first().as_secs_f64(),
            read_ms: outcome.read_ms,
            write_ms: outcome.write_ms,
            ratio: Some(outcome.ratio()).filter(|ratio| ratio.is_finite()),
            queue_writes: most.writes,
            queue_blocks: most.blocks,
        }
    }
}

/// Formats the rows as a table.
fn lines(rows: &[Row]) -> Vec<String> {
    let mut table = TextTable::new(1);
    table.row(["trial", "all, s", "first, s", "r, ms", "w, ms", "f", "queue, writes", "blocks"]);
    for row in rows {
        table.row([
            row.trial.to_string(),
            format!("{:.2}", row.elapsed_s),
            format!("{:.2}", row.first_s),
            format!("{:.3}", row.read_ms),
            format!("{:.3}", row.write_ms),
            row.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
            row.queue_writes.to_string(),
            row.queue_blocks.to_string(),
        ]);
    }
    table.lines().collect()
}
