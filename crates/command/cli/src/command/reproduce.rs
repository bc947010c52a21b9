//! `starfish reproduce`: simulates the tables and figures of a report, and compares them with the published numbers.

mod placement;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::Args;
use command_line::failure::{Failure, Result};
use command_line::{TextTable, counted};
use page::{NumbersPart, NumbersTable};
use plan::{CellResult, Journal, Kind, Plan, PlanKind, PlannedCell, PlannedTrial, TrialKey};
use reproduce::{Form, Report, Study, cells_csv, compared, errors, statements_table, tables_csv};
use transfer::local;

use super::run;
use crate::options::experiment::ProgressArgs;
use crate::options::study::{self, AnyStudy};

/// Simulate all tables and figures of a report, and compare them with the published numbers.
///
/// The study starfish-3.0 is D. Kotz, "Tuning STARFISH" (1996): traditional, two-phase and disk-directed I/O on 16
/// compute nodes, 16 I/O nodes and 16 disks. Its tables are simulated on all processors of this computer, which takes
/// some minutes. The study enwrich is about write caches on compute nodes. The study placement is Sinclair, Tang and
/// Varman, "Placement-related problems in shared disk I/O" (1996): merges that race on shared disks, and remedies.
///
/// DIR/tables.csv has every cell of the tables, in the form of the published tables, followed by `cv` and `trials`. For
/// placement it has every trial. This file and the page below also include the results of earlier commands with the
/// same DIR.
///
/// DIR/report.html shows agreement and differences, in words, colours and charts. Open it with any browser.
///
/// Every finished trial is recorded in DIR/journal.jsonl, so the command can be interrupted; the same command then runs
/// only the missing trials. Equal cells of different tables are simulated once. `starfish run` uses the same journal,
/// so each command continues the work of the other in the same DIR.
///
/// The numbers depend neither on the number of threads nor on the computer.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The study: starfish-3.0, enwrich or placement, or a directory with plans, and with the published tables in its
    /// subdirectory `published`.
    #[arg(value_name = "STUDY")]
    study: String,

    /// Tables to simulate: all, none, or their numbers.
    #[arg(long, value_name = "N,...", default_value = "all")]
    tables: Numbers,

    /// Figures to simulate: all, none, or their numbers [default: all if all tables are selected, else none].
    #[arg(long, value_name = "N,...")]
    figures: Option<Numbers>,

    /// Number of trials of each cell, which differ in their random numbers [default: the number in the plans; 5 for
    /// starfish-3.0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=plan::TRIALS_MAX))]
    trials: Option<u64>,

    /// Output directory, created if missing [default: results/STUDY].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Number of trials to run in parallel [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = crate::options::numbers::positive::<u16>)]
    threads: Option<u16>,

    #[command(flatten)]
    progress: ProgressArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish reproduce starfish-3.0                             all; then open results/starfish-3.0/report.html
  starfish reproduce starfish-3.0 --tables 3,15 --trials 1    a first look
  starfish reproduce starfish-3.0 --tables none --figures 2   one figure
  starfish reproduce placement --figures 2,7 --trials 1       merges on shared disks
  starfish reproduce ./my-study --out mine                    your own plans and published tables";

/// Selected tables or figures.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Numbers {
    All,
    Some(BTreeSet<u32>),
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = |part: &str| {
            let number = part.trim().parse();
            number.map_err(|_| format!("expected all, none, or numbers such as 2,3,15, not {part:?}"))
        };
        match text {
            "all" => Ok(Numbers::All),
            "none" => Ok(Numbers::Some(BTreeSet::new())),
            numbers => {
                Ok(Numbers::Some(numbers.split(',').map(number).collect::<std::result::Result<_, _>>()?))
            }
        }
    }
}

/// Names of the output files.
const TABLES: &str = "tables.csv";
const REPORT: &str = "report.html";

/// Maximum number of failed trials that are listed.
const FAILURES_MAX: usize = 5;

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let whole = match study::load(&arguments.study)? {
        AnyStudy::Methods(study) => study,
        AnyStudy::Placement(study) => return placement::run(&arguments, &study),
    };
    let mut study = whole.clone();
    let figures = arguments.figures.clone().unwrap_or_else(|| match arguments.tables {
        Numbers::All => Numbers::All,
        Numbers::Some(_) => Numbers::Some(BTreeSet::new()),
    });
    choose(&mut study, Kind::Table, &arguments.tables)?;
    choose(&mut study, Kind::Figure, &figures)?;
    if study.plans.is_empty() {
        return Err(Failure::usage("--tables, --figures", "they select no table or figure"));
    }
    for plan in &mut study.plans {
        plan.trials = arguments.trials.unwrap_or(plan.trials);
    }
    let folder = arguments.out.clone().unwrap_or_else(|| Path::new("results").join(&study.name));
    let mut journal = run::open_journal(&folder, &[TABLES, REPORT], false)?;
    let start = Instant::now();
    let new = simulate(&study.plans, &mut journal, &folder, &arguments)?;
    let shown = shown(&whole, &study, &journal);
    let command = command(&arguments, &whole, &shown);
    let written = write(&shown, &journal, &folder, command)?;
    local::print(summary(&study, &journal))?;
    local::print(time(&study, &journal, new, start.elapsed()))?;
    local::print(written.into_iter().map(|name| folder.join(name).display().to_string()))
}

/// Keeps only the tables or figures with these numbers. Fails if the study does not have all of them.
fn choose(study: &mut Study, kind: Kind, numbers: &Numbers) -> Result<()> {
    let Numbers::Some(numbers) = numbers else { return Ok(()) };
    let known = study.numbers(kind);
    let (option, noun) = match kind {
        Kind::Table => ("--tables", "table"),
        Kind::Figure => ("--figures", "figure"),
    };
    if let Some(missing) = numbers.iter().find(|number| !known.contains(number)) {
        let failure = Failure::usage(option, format!("{} has no {noun} {missing}", study.name));
        let known: Vec<String> = known.iter().map(u32::to_string).collect();
        return Err(failure.remedy(if known.is_empty() {
            format!("It has no {noun}s at all.")
        } else {
            format!("It has {}.", known.join(","))
        }));
    }
    study.keep(kind, numbers);
    Ok(())
}

/// Runs all trials that the journal lacks, and returns their number.
fn simulate<K: PlanKind>(
    plans: &[Plan<K>],
    journal: &mut Journal,
    folder: &Path,
    arguments: &Arguments,
) -> Result<usize> {
    let planned = plan::trials(plans);
    let new = planned.iter().filter(|one| journal.get(one.key).is_none()).count();
    let threads = arguments.threads.map_or_else(plan::threads_here, usize::from);
    let failures = run::execute(arguments.progress.show, &planned, journal, threads, Some(folder))?;
    if failures.is_empty() { Ok(new) } else { Err(failed(&failures)) }
}

fn failed(failures: &[plan::Failure]) -> Failure {
    let named =
        failures.iter().take(FAILURES_MAX).map(|failure| format!("{}: {}", failure.what, failure.why));
    let mut why: Vec<String> = named.collect();
    if failures.len() > FAILURES_MAX {
        why.push(format!("and {} more", failures.len() - FAILURES_MAX));
    }
    let failure = Failure::new(format!("{} failed", counted(failures.len() as u64, "trial")), why.join("; "));
    failure.remedy("The other trials are kept; the same command runs only the missing ones.")
}

/// Returns a text with the number of trials simulated now, the total number and the time.
fn simulated_now(new: usize, all: usize, elapsed: Duration) -> String {
    let trials = counted(all as u64, "trial");
    format!("{new} of {trials} simulated now, in {:.1} s", elapsed.as_secs_f64())
}

/// Returns the part of the study to show: the selected part, and all other plans whose cells are all in the journal. So
/// the files keep the results of earlier selections.
fn shown(whole: &Study, asked: &Study, journal: &Journal) -> Study {
    let mut shown = whole.clone();
    for plan in &mut shown.plans {
        let asked = asked.plans.iter().find(|asked| asked.published == plan.published);
        plan.trials = asked.map_or_else(|| trials_there(plan, journal), |asked| asked.trials);
    }
    shown.plans.retain(|plan| plan.trials > 0);
    shown
}

/// Returns the number of trials that the journal has for every cell of a plan.
fn trials_there<K: PlanKind>(plan: &Plan<K>, journal: &Journal) -> u64 {
    let of_cell = |cell: &PlannedCell<K>| {
        let trials = PlannedTrial::of(&cell.case, plan::TRIALS_MAX);
        trials.take_while(|one| journal.get(one.key).is_some()).count() as u64
    };
    plan.cells.iter().map(of_cell).min().unwrap_or(0)
}

/// Returns a command that reproduces the shown results. It does not include the output directory.
fn command(arguments: &Arguments, whole: &Study, shown: &Study) -> String {
    let list = |kind| {
        let numbers = shown.numbers(kind);
        let list = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        if numbers.is_empty() { "none".to_owned() } else { list }
    };
    let is_whole = |kind| shown.numbers(kind) == whole.numbers(kind);
    let mut command = format!("starfish reproduce {}", shown.name);
    // The default selects all figures if all tables are selected, and otherwise none.
    let figures_differ = if is_whole(Kind::Table) {
        !is_whole(Kind::Figure)
    } else {
        command += &format!(" --tables {}", list(Kind::Table));
        !shown.numbers(Kind::Figure).is_empty()
    };
    if figures_differ {
        command += &format!(" --figures {}", list(Kind::Figure));
    }
    if let Some(trials) = arguments.trials {
        command += &format!(" --trials {trials}");
    }
    command
}

/// Writes the files and prints their names. Without tables, there is no file of tables.
fn write(
    study: &Study,
    journal: &Journal,
    folder: &Path,
    command: String,
) -> Result<impl IntoIterator<Item = &'static str>> {
    let results = plan::results(&study.plans, journal);
    let version = env!("CARGO_PKG_VERSION");
    let (csv, page) = match study.form {
        Form::Report => {
            let (tables, figures) = (Study::tables(&results), Study::figures(&results));
            let report = Report {
                study: &study.name,
                tables: &tables,
                figures: &figures,
                published: &study.published,
                provenance: study.provenance(command, version.to_owned()),
            };
            ((!tables.is_empty()).then(|| tables_csv(&tables)), report.html())
        }
        Form::Cells => {
            let mut page = reproduce::plan_page(&study.plans, &results, &command, version);
            page.title = format!("The figures of {}", study.name);
            let statements = statements_table(&study.statements, &results);
            if !statements.rows.is_empty() {
                page.parts.insert(0, NumbersPart::Table(statements));
            }
            (Some(cells_csv(&results)), page.html())
        }
    };
    let files: Vec<(&str, String)> =
        csv.map(|csv| (TABLES, csv)).into_iter().chain([(REPORT, page)]).collect();
    write_texts(folder, &files)?;
    Ok(files.into_iter().map(|(name, _)| name))
}

fn write_texts(folder: &Path, files: &[(&str, String)]) -> Result<()> {
    let write = |(name, text): &(&str, String)| {
        local::write(&folder.join(name), |file| file.write_all(text.as_bytes()))
    };
    files.iter().try_for_each(write)
}

/// Returns a line for each table, with its agreement with the published table, and a line for each figure.
fn summary(study: &Study, journal: &Journal) -> Vec<String> {
    let results = plan::results(&study.plans, journal);
    if study.form == Form::Cells {
        return summary_of_cells(study, &results);
    }
    let mut tables = TextTable::new(2);
    tables.row(["table", "what", "cells", "median error", "within 10 %"]);
    let all = Study::tables(&results);
    for table in &all {
        let errors = errors(&compared([table], &study.published));
        let (median, within) = errors.map_or(("none published".to_owned(), "-".to_owned()), |errors| {
            (format!("{:.1} %", 100.0 * errors.median), format!("{:.0} %", 100.0 * errors.within[2]))
        });
        let cells = table.cells.len().to_string();
        tables.row([table.number.to_string(), table.title.clone(), cells, median, within]);
    }
    let mut figures = TextTable::new(2);
    figures.row(["figure", "what", "cells"]);
    let drawn = Study::figures(&results);
    for figure in &drawn {
        let cells = figure.lines.iter().map(|line| line.points.len()).sum::<usize>().to_string();
        figures.row([figure.number.to_string(), figure.title.clone(), cells]);
    }
    let tables: Vec<String> = if all.is_empty() { Vec::new() } else { tables.lines().collect() };
    let figures: Vec<String> = if drawn.is_empty() { Vec::new() } else { figures.lines().collect() };
    let between = (!tables.is_empty() && !figures.is_empty()).then(String::new);
    tables.into_iter().chain(between).chain(figures).collect()
}

/// Returns a line for each plan, for a study that is shown cell by cell.
fn summary_of_cells(study: &Study, results: &[CellResult<'_>]) -> Vec<String> {
    let mut lines = TextTable::new(2);
    lines.row(["figure", "what", "cells"]);
    for plan in &study.plans {
        let number = plan.published.as_ref().map_or(String::new(), |published| published.number.to_string());
        lines.row([number, plan.title.clone(), plan.cells.len().to_string()]);
    }
    with_statements(&lines, &statements_table(&study.statements, results))
}

/// Returns these lines, followed by a line for each statement of the report.
fn with_statements(lines: &TextTable, statements: &NumbersTable) -> Vec<String> {
    let mut lines: Vec<String> = lines.lines().collect();
    if !statements.rows.is_empty() {
        let mut table = TextTable::new(3);
        table.row(statements.head.clone());
        statements.rows.iter().for_each(|row| table.row(row.clone()));
        lines.extend([String::new()].into_iter().chain(table.lines()));
    }
    lines
}

/// Returns a summary of the run times.
fn time(study: &Study, journal: &Journal, new: usize, elapsed: Duration) -> Vec<String> {
    let planned = plan::trials(&study.plans);
    let wall = |planned: &mut dyn Iterator<Item = &PlannedTrial<'_>>| -> f64 {
        planned.filter_map(|one| journal.wall(one.key)).map(|wall| wall.as_secs_f64()).sum()
    };
    let all = wall(&mut planned.iter());
    let small = small_records(&study.plans);
    let small = wall(&mut planned.iter().filter(|one| small.contains(&one.key)));
    // Adding 0 converts the negative zero of an empty sum to a positive zero.
    let share = if all > 0.0 { 100.0 * small / all + 0.0 } else { 0.0 };
    vec![
        String::new(),
        simulated_now(new, planned.len(), elapsed),
        format!(
            "all of them took {all:.1} s one after the other, {share:.0} % of it for records smaller than a block"
        ),
    ]
}

/// Returns the trials with records smaller than a block.
fn small_records(plans: &[Plan]) -> BTreeSet<TrialKey> {
    let cells = plans.iter().flat_map(|plan| plan.cells.iter().map(move |cell| (plan, cell)));
    let small = cells.filter(|(_, cell)| cell.case.problem.record_bytes < cell.case.options.block_bytes);
    small.flat_map(|(plan, cell)| PlannedTrial::of(&cell.case, plan.trials)).map(|one| one.key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_of_numbers_all_and_none_are_accepted() {
        let numbers = |text: &str| text.parse::<Numbers>();
        assert_eq!(numbers("all"), Ok(Numbers::All));
        assert_eq!(numbers("none"), Ok(Numbers::Some(BTreeSet::new())));
        assert_eq!(numbers("3, 2,3"), Ok(Numbers::Some(BTreeSet::from([2, 3]))));
        for wrong in ["", "2,", "2;3", "two", "-1", "1.5"] {
            assert!(
                numbers(wrong).is_err_and(|error| error.contains("expected all, none, or numbers")),
                "{wrong}"
            );
        }
    }
}
