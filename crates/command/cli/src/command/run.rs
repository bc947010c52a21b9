//! `starfish run`: simulates plans and writes the results to files.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use command_line::counted;
use command_line::failure::{Failure, Result};
use command_line::progress::{Progress, Show};
use command_line::say;
use description::{Description, MachineDescription};
use plan::{CellResult, Journal, Plan, PlanSet, PlannedTrial, ResultTable, TRIALS_MAX, TrialSelection};
use reproduce::PageKind;
use transfer::interrupt;
use transfer::local;
use transfer::memory;

use crate::options::experiment::ProgressArgs;
use crate::output::plan_lines::{PlanLines, cell_lines, trial_lines};
use crate::output::row_format::{RowFormat, print_json};

/// Simulate all trials of a plan, on all processors, and write the results to files.
///
/// A plan is a TOML file. It names a machine, access patterns and record sizes (or jobs that share disks), variants to
/// compare, parameters to vary, and the number of trials. In the directory of the results, each combination becomes a
/// row of results.csv and results.parquet, and each trial a row of trials.csv and trials.parquet.
///
/// Each finished trial is recorded in journal.jsonl in that directory. So the same command continues after an
/// interruption, and after a change of the plan it runs only the new trials. Trials of another version of the simulator
/// are not used. Trials that several plans have in common are run once.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The plans: TOML files.
    #[arg(value_name = "PLAN", required = true)]
    plans: Vec<String>,

    /// Directory for the journal and the results [default: results/NAME, where NAME is that of the plan's file, or of
    /// the directory of several plans].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Number of trials of each cell, instead of the number in the plans.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=TRIALS_MAX))]
    trials: Option<u64>,

    /// Number of trials to run in parallel [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,

    /// Discard the journal, and run all trials again.
    #[arg(long, conflicts_with = "only")]
    fresh: bool,

    /// Run only these trials, again, and print each one; write no files. For jobs that share disks, the form is
    /// VARIANT/TRIAL. * matches everything, and parts at the end can be left out.
    #[arg(long, value_name = "VARIANT/PATTERN/RECORD/TRIAL", conflicts_with = "out")]
    only: Option<String>,

    /// Also write the results as a page with charts and explanations of the names. Open it with any browser.
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    html: Option<PathBuf>,

    /// Output format. CSV is in the form of results.csv.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    #[command(flatten)]
    progress: ProgressArgs,
}

const EXAMPLES: &str = "\
A plan:
  name = \"methods\"
  patterns = [\"rb\", \"rcc\"]          # or \"all\", \"reads\", \"writes\"
  records = [\"8 KiB\"]
  trials = 5

  [[variant]]
  name = \"tpfs\"
  method = \"traditional\"

  [[variant]]
  name = \"ddio\"
  method = \"disk-directed\"

  [vary]
  set = { \"nodes.io\" = [4, 8, 16] }   # every combination; or outstanding = [1, 2, 4]

Every option of `starfish simulate` can be set at the top, as the default, or in a variant.

A plan of jobs that share disks has no patterns, and the options of `starfish merge` instead:
  name = \"races\"
  trials = 5

  [[variant]]
  name = \"a race\"
  policy = 2

  [[variant]]
  name = \"a cure\"
  policy = 3

  [vary]
  jobs = [1, 2, 3, 4, 5]

Plans of one kind can be run together.

Examples:
  starfish run methods.toml
  starfish run methods.toml --html methods.html        charts, for any browser
  starfish run methods.toml --trials 1 --format csv > first.csv
  starfish run experiments/starfish-3.0/*.toml --out results/all
  starfish run methods.toml --only ddio/rb/8192/0      the first trial of one cell, with its digest
  starfish run races.toml --only 'a race,jobs=5/0'     the same for jobs that share disks";

/// Files of results: first those of cells, then those of trials.
const RESULTS: [&str; 4] = ["results.csv", "results.parquet", "trials.csv", "trials.parquet"];

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    match load(&arguments)? {
        PlanSet::Patterns(plans) => run_plans(&arguments, plans),
        PlanSet::Placements(plans) => run_plans(&arguments, plans),
    }
}

fn load(arguments: &Arguments) -> Result<PlanSet> {
    let refused = |error: &dyn std::fmt::Display| {
        let failure = Failure::usage("run", error);
        failure.remedy("Nothing was run. `starfish run --help` shows plans.")
    };
    let read = |path: &String| {
        let text = description::read_text(path).map_err(|error| refused(&error))?;
        Ok((text, path.clone()))
    };
    let texts = arguments.plans.iter().map(read).collect::<Result<Vec<_>>>()?;
    PlanSet::parse(&texts).map_err(|error| {
        let is_machine = |(text, file): &&(String, String)| MachineDescription::parse(text, file).is_ok();
        match texts.iter().find(is_machine) {
            Some((_, file)) => Failure::usage("run", format!("{file} describes a machine, not a plan"))
                .remedy(format!(
                    "Name it in a plan, machine = \"{file}\", or in `starfish simulate --machine`."
                )),
            None => refused(&error),
        }
    })
}

fn run_plans<K: PageKind + PlanLines>(arguments: &Arguments, mut plans: Vec<Plan<K>>) -> Result<()> {
    for plan in &mut plans {
        plan.trials = arguments.trials.unwrap_or(plan.trials);
    }
    for (index, plan) in plans.iter().enumerate() {
        if let Some(other) = plans[..index].iter().find(|other| other.name == plan.name) {
            let why = format!("{} and {} both have the name {:?}", other.file, plan.file, plan.name);
            return Err(Failure::usage("run", why).remedy("Give each plan another name."));
        }
    }
    let threads = arguments.threads.map_or_else(plan::threads_here, |threads| threads as usize);
    match &arguments.only {
        Some(only) => run_only(arguments, &plans, only, threads),
        None => run_all(arguments, &plans, threads),
    }
}

fn run_all<K: PageKind + PlanLines>(arguments: &Arguments, plans: &[Plan<K>], threads: usize) -> Result<()> {
    let folder = match &arguments.out {
        Some(folder) => folder.clone(),
        None => folder_for(plans)?,
    };
    let mut journal = open_journal(&folder, &RESULTS, arguments.fresh)?;
    let planned = plan::trials(plans);
    let there = journal.len();
    let failures = execute(arguments.progress.show, &planned, &mut journal, threads, Some(&folder))?;
    let results = plan::results(plans, &journal);
    let (cells, trials) = (plan::cell_table(&results), plan::trial_table(&results));
    write_files(&folder, &cells, &trials)?;
    if let Some(path) = &arguments.html {
        let page =
            reproduce::plan_page(plans, &results, &command(arguments), env!("CARGO_PKG_VERSION")).html();
        local::write(path, |file| file.write_all(page.as_bytes()))?;
    }
    print(arguments.format, &cells, &results)?;
    let new = journal.len() - there;
    let wall: Duration = planned.iter().filter_map(|one| journal.wall(one.key)).sum();
    let done = planned.len() - failures.len();
    say!(
        "{} in {}: {new} run now, {} in the journal; processor time of all trials: {:.0} s.",
        counted(done, "trial"),
        folder.display(),
        done - new,
        wall.as_secs_f64()
    );
    report(&failures, planned.len())
}

/// Returns a command that reproduces these results. It does not include the output directory.
fn command(arguments: &Arguments) -> String {
    let trials = arguments.trials.map_or_else(String::new, |trials| format!(" --trials {trials}"));
    format!("starfish run {}{trials}", arguments.plans.join(" "))
}

/// Runs only some trials, even if they have already run, and prints them.
fn run_only<K: PlanLines>(
    arguments: &Arguments,
    plans: &[Plan<K>],
    only: &str,
    threads: usize,
) -> Result<()> {
    let selection: TrialSelection<K> = TrialSelection::parse(only, plans)
        .map_err(|error| Failure::usage(format!("--only {only}"), error))?;
    let planned = selection.trials(plans);
    if planned.is_empty() {
        let failure = Failure::usage(format!("--only {only}"), "these plans have no such trial");
        let first = plans.iter().find_map(|plan| plan.cells.first());
        let example =
            first.map_or_else(String::new, |cell| format!(" For example: --only {}/0", cell.label()));
        return Err(failure.remedy(format!("A trial is {}.{example}", TrialSelection::<K>::form())));
    }
    let mut journal = Journal::in_memory();
    let failures = execute(arguments.progress.show, &planned, &mut journal, threads, None)?;
    let results = plan::results(plans, &journal);
    match arguments.format {
        RowFormat::Table => local::print(trial_lines(&results))?,
        format => print(format, &plan::trial_table(&results), &results)?,
    }
    report(&failures, planned.len())
}

/// Returns `results/NAME`, where NAME is that of the only plan's file, or of the folder of all plans.
fn folder_for<K>(plans: &[Plan<K>]) -> Result<PathBuf> {
    let name = match plans {
        [plan] => Path::new(&plan.file).file_stem().map(ToOwned::to_owned),
        _ => {
            let folder = |plan: &Plan<K>| {
                Path::new(&plan.file).canonicalize().ok()?.parent()?.file_name().map(ToOwned::to_owned)
            };
            let first = plans.first().and_then(folder);
            first.filter(|first| plans.iter().all(|plan| folder(plan).as_ref() == Some(first)))
        }
    };
    let name = name.ok_or_else(|| {
        let failure = Failure::usage("run", "these plans are in different folders");
        failure.remedy("Name the directory for the results with --out DIR.")
    })?;
    Ok(Path::new("results").join(name))
}

/// Opens the journal in `folder`, which is created if it is missing. Empties the journal if `fresh` is set. `results`
/// are the files that the command will write to the folder. If one of them exists without a journal, it is not the
/// result of a run, and the call fails.
pub(crate) fn open_journal(folder: &Path, results: &[&str], fresh: bool) -> Result<Journal> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(folder.display().to_string(), error);
    let path = folder.join("journal.jsonl");
    let is_new = !path.exists();
    let mut results = results.iter().map(|name| folder.join(name));
    if let Some(foreign) = results.find(|result| result.is_dir() || is_new && result.exists()) {
        let why = "it would be overwritten, but it is not the result of a run";
        let failure = Failure::usage(foreign.display().to_string(), why);
        return Err(failure.remedy("Choose another directory with --out, or remove the file."));
    }
    if folder.is_file() {
        return Err(failed(&"it is a file, not a directory")
            .remedy("Name a directory for the results with --out DIR."));
    }
    fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let mut journal = Journal::open(&path).map_err(|error| failed(&error))?;
    if fresh {
        journal.clear().map_err(|error| failed(&error))?;
    }
    if journal.foreign() > 0 {
        let count = journal.foreign();
        say!(
            "The journal has {} of another version of the simulator, not used (this one: {}).",
            counted(count, "trial"),
            plan::PROGRAM
        );
    }
    if journal.damaged() > 0 {
        say!("The journal has {}, not used.", counted(journal.damaged(), "damaged line"));
    }
    Ok(journal)
}

/// Runs the trials that the journal lacks, and shows the progress. Ctrl-C ends the process immediately; finished trials
/// are in the journal.
pub(crate) fn execute(
    show: Show,
    planned: &[PlannedTrial<'_>],
    journal: &mut Journal,
    threads: usize,
    folder: Option<&Path>,
) -> Result<Vec<plan::Failure>> {
    let missing: Vec<&PlannedTrial<'_>> =
        planned.iter().filter(|one| journal.get(one.key).is_none()).collect();
    let remedy =
        "Use contents = \"phantom\", which needs no memory for data, larger blocks, or fewer --threads.";
    memory::check_stored("run", plan::stored_bytes(missing.iter().map(|one| one.case), threads), remedy)?;
    let progress = Progress::weighted(show, missing.iter().map(|one| one.cost).sum());
    let bar = progress.clone();
    let farewell = folder.map(|folder| {
        format!(
            "Interrupted. Finished trials are in {}; the same command continues from there.",
            folder.display()
        )
    });
    interrupt::tidy_up_and_exit(move || {
        bar.finish();
        farewell.iter().for_each(|farewell| say!("{farewell}"));
    })?;
    let failures = plan::execute(planned, journal, threads, &|| false, &|so_far| {
        progress.reach(so_far.cost_done, format!("trial {} of {}", so_far.trials_done, so_far.trials));
    });
    progress.finish();
    failures.map_err(|error| Failure::new("cannot record a trial", error))
}

fn write_files(folder: &Path, cells: &ResultTable, trials: &ResultTable) -> Result<()> {
    let [cells_csv, cells_parquet, trials_csv, trials_parquet] = RESULTS.map(|name| folder.join(name));
    for (table, csv, parquet) in [(cells, cells_csv, cells_parquet), (trials, trials_csv, trials_parquet)] {
        local::write(&csv, |file| table.write_csv(file))?;
        local::write(&parquet, |file| table.write_parquet(file))?;
    }
    Ok(())
}

fn report(failures: &[plan::Failure], planned: usize) -> Result<()> {
    for plan::Failure { what, why, .. } in failures {
        say!("starfish: {what}: {why}");
    }
    match failures.len() {
        0 => Ok(()),
        count => {
            let failure = Failure::new("run", format!("{count} of {} failed", counted(planned, "trial")));
            Err(failure
                .remedy("The results contain the other trials. The same command runs the failed ones again."))
        }
    }
}

fn print<K: PlanLines>(format: RowFormat, table: &ResultTable, results: &[CellResult<'_, K>]) -> Result<()> {
    match format {
        RowFormat::Table => local::print(cell_lines(results)),
        RowFormat::Csv => {
            let mut text = Vec::new();
            table.write_csv(&mut text).map_err(|error| Failure::new("cannot format CSV", error))?;
            local::print(String::from_utf8_lossy(&text).lines().map(str::to_owned))
        }
        RowFormat::Json => print_json(&table.to_json()),
    }
}
