//! Program `seeds`: runs of the file system drawn from seeds, endless or a given number.
//!
//!     cargo run --release -p seeds                                  # all kinds, until Ctrl-C
//!     cargo run --release -p seeds -- schedules --from 1000000 --count 50000
//!
//! It exits with code 1 if a run fails, after printing the failures in groups with their first seeds.

#![expect(clippy::print_stderr, reason = "a search for failures keeps standard error open")]

use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use seeds::{BrokenLaw, FailureGroup, Kind, Schedule, Sweep, observe, shrink};

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

    /// Repeat the schedule in a file, and print its operations with their times in nanoseconds.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kinds", "from", "count", "threads", "first"])]
    repeat: Option<PathBuf>,
}

/// Interval between two progress reports on a terminal.
const BEAT: Duration = Duration::from_millis(200);

/// Number of intervals between two lines elsewhere, so that a log of a night stays readable.
const BEATS_OF_A_LOG: u32 = 300;

fn main() -> ExitCode {
    let Arguments { kinds, from, count, threads, first, repeat: repeated } = Arguments::parse();
    if let Some(file) = repeated {
        return repeat(&file);
    }
    let kinds = if kinds.is_empty() { Kind::ALL.to_vec() } else { kinds };
    let threads = threads.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let sweep = Arc::new(Sweep::new(&kinds, from, count));
    stop_on_interruption(&sweep);
    let begun = Instant::now();
    let run = |kind: Kind, seed| {
        let outcome = kind.run(seed);
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
    println!("{}", summary(&sweep, begun));
    if sweep.counts().failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
