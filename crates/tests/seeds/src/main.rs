//! Program `seeds`: runs of the file system drawn from seeds, endless or a given number.
//!
//!     cargo run --release -p seeds                                  # all kinds, until Ctrl-C
//!     cargo run --release -p seeds -- schedules --from 1000000 --count 50000
//!     cargo run --release -p seeds --features marks -- schedules --coverage coverage.html --log log.csv
//!
//! It exits with code 1 if a run fails, after printing the failures in groups with their first seeds.

#![expect(clippy::print_stderr, reason = "a search for failures keeps standard error open")]

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use seeds::{
    BrokenLaw, CoverageCounts, FailureGroup, Kind, Schedule, Sweep, SweepLog, coverage_page, marks_line,
    observe, shrink,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Run the file system on simulated machines, everything drawn from seeds, until Ctrl-C.
#[derive(Parser)]
struct Arguments {
    /// Kinds of runs [default: all].
    #[arg(value_name = "KIND", value_enum)]
    kinds: Vec<Kind>,

    /// First seed.
    #[arg(long, default_value_t = 0)]
    from: u64,

    /// Number of seeds, each run in every kind [default: without end].
    #[arg(long)]
    count: Option<u64>,

    /// Number of threads [default: one for each processor].
    #[arg(long)]
    threads: Option<usize>,

    /// Stop at the first failure, and do not make its schedule smaller.
    #[arg(long)]
    first: bool,

    /// Write a page about the coverage of schedules: first everything that no run reached. Needs the feature `marks`.
    #[arg(long, value_name = "FILE")]
    coverage: Option<PathBuf>,

    /// Append the numbers of runs and faults of schedules to a file of comma-separated values.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Repeat the schedule in a file, and print its operations with their times in nanoseconds.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["kinds", "from", "count", "threads", "first", "coverage", "log"]
    )]
    repeat: Option<PathBuf>,
}

/// Interval between two progress reports on a terminal.
const BEAT: Duration = Duration::from_millis(200);

/// Number of intervals between two lines elsewhere, so that a log of a night stays readable.
const BEATS_OF_A_LOG: u32 = 300;

fn main() -> ExitCode {
    let Arguments { kinds, from, count, threads, first, coverage, log, repeat: repeated } =
        Arguments::parse();
    if let Some(file) = repeated {
        return repeat(&file);
    }
    let log = log.map(|file| SweepLog::new(file, from));
    let mut record = match Record::new(coverage, log) {
        Ok(record) => record,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    let kinds = if kinds.is_empty() { Kind::ALL.to_vec() } else { kinds };
    let threads = threads.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let sweep = Arc::new(Sweep::new(&kinds, from, count));
    stop_on_interruption(&sweep);
    let begun = Instant::now();
    let recent = Mutex::new(CoverageCounts::default());
    let run = |kind: Kind, seed| {
        let (outcome, coverage) = kind.run_covered(seed);
        if kind == Kind::Schedules {
            recent.lock().expect("no holder panics").add_run(coverage, outcome.is_err());
        }
        if first && outcome.is_err() {
            sweep.stop();
        }
        outcome
    };
    thread::scope(|scope| {
        let running = scope.spawn(|| sweep.run(threads.max(1), run));
        let mut beats: u32 = 0;
        while !running.is_finished() {
            thread::sleep(BEAT);
            beats += 1;
            show(&sweep, begun, beats);
            record.add_if_many(&recent);
        }
    });
    if stderr().is_terminal() {
        eprintln!();
    }
    for (group, failures) in sweep.failures() {
        println!("{}: {}: {} runs failed", group.kind, group.law, failures.count);
        let FailureGroup { kind, law } = group;
        for (index, (seed, why)) in failures.kept.into_iter().enumerate() {
            println!("  seed {seed}: {}", why.replace('\n', "\n  "));
            if kind == Kind::Schedules && index == 0 && !first {
                let broken = BrokenLaw { law: law.clone(), why };
                let (schedule, broken) = shrink(Schedule::drawn(seed), broken);
                println!(
                    "  the smallest schedule that breaks this law: {}\n{}",
                    broken.why,
                    schedule.to_text()
                );
            }
        }
    }
    record.add(&recent);
    if let Some(line) = record.marks_line() {
        println!("{line}");
    }
    println!("{}", summary(&sweep, begun));
    if sweep.counts().failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Coverage of a sweep, with its reports.
struct Record {
    counts: CoverageCounts,
    /// All marks, with their files. Empty in a build without marks.
    marks: BTreeMap<String, String>,
    page: Option<PathBuf>,
    log: Option<SweepLog>,
}

impl Record {
    fn new(page: Option<PathBuf>, log: Option<SweepLog>) -> Result<Record, String> {
        if page.is_some() && !machine::marks::ARE_RECORDED {
            return Err("this program records no marks: build it with --features marks".into());
        }
        let marks = if machine::marks::ARE_RECORDED { seeds::marks()? } else { BTreeMap::new() };
        Ok(Record { counts: CoverageCounts::default(), marks, page, log })
    }

    /// Adds recent runs and writes the reports if there are enough runs for a row of the log.
    fn add_if_many(&mut self, recent: &Mutex<CoverageCounts>) {
        let runs = recent.lock().expect("no holder panics").runs;
        if runs >= SweepLog::ROW_RUNS {
            self.add(recent);
        }
    }

    /// Adds recent runs and writes the reports. An error does not end the sweep.
    fn add(&mut self, recent: &Mutex<CoverageCounts>) {
        let recent = std::mem::take(&mut *recent.lock().expect("no holder panics"));
        if recent.runs == 0 {
            return;
        }
        self.counts.add(recent.clone());
        let reached = machine::marks::ARE_RECORDED
            .then(|| self.mark_counts().values().filter(|count| **count > 0).count());
        if let Some(log) = &mut self.log
            && let Err(why) = log.append(&recent, reached)
        {
            eprintln!("cannot write the log: {why}");
        }
        if let Some(page) = &self.page
            && let Err(why) = std::fs::write(page, coverage_page(&self.counts, &self.marks))
        {
            eprintln!("cannot write {}: {why}", page.display());
        }
    }

    fn mark_counts(&self) -> BTreeMap<&str, u64> {
        self.counts.of_marks(self.marks.keys().map(String::as_str))
    }

    /// Returns the line about marks at the end of a sweep, if it had schedules.
    fn marks_line(&self) -> Option<String> {
        (machine::marks::ARE_RECORDED && self.counts.runs > 0).then(|| marks_line(&self.mark_counts()))
    }
}

fn repeat(file: &Path) -> ExitCode {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
    match text.and_then(|text| Schedule::from_text(&text)) {
        Err(why) => eprintln!("cannot repeat {}: {why}", file.display()),
        Ok(schedule) => match observe(&schedule, Some(|line| println!("{line}"))).outcome {
            Err(BrokenLaw { law, why }) => println!("{law}: {why}"),
            Ok(()) => {
                println!("all laws hold");
                return ExitCode::SUCCESS;
            }
        },
    }
    ExitCode::FAILURE
}

/// Makes the first Ctrl-C finish the runs in flight, and the second exit the program.
fn stop_on_interruption(sweep: &Arc<Sweep>) {
    let (sweep, mut again) = (sweep.clone(), false);
    let react = move |_| {
        if std::mem::replace(&mut again, true) {
            std::process::exit(interruption::INTERRUPTED);
        }
        sweep.stop();
    };
    if let Err(error) = interruption::on_interruption(react) {
        eprintln!("Ctrl-C will end this without a summary: {error}");
    }
}

fn show(sweep: &Sweep, begun: Instant, beats: u32) {
    let text = summary(sweep, begun);
    if stderr().is_terminal() {
        // Clear to the end of the line, to erase the rest of a longer one.
        eprint!("\r{text}\x1b[K");
        let _ = stderr().flush();
    } else if beats.is_multiple_of(BEATS_OF_A_LOG) {
        eprintln!("{text}");
    }
}

fn summary(sweep: &Sweep, begun: Instant) -> String {
    let (counts, seconds) = (sweep.counts(), begun.elapsed().as_secs_f64());
    let runs = counts.passed + counts.failed;
    format!("{runs} runs in {seconds:.1} s, {:.0} a second, {} failed", runs as f64 / seconds, counts.failed)
}
