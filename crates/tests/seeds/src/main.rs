//! Program `seeds`: runs of the file system drawn from seeds, endless or a given number.
//!
//!     cargo run --release -p seeds                                  # all kinds, until Ctrl-C
//!     cargo run --release -p seeds -- crashes --from 1000000 --count 50000
//!
//! It exits with code 1 if a run fails, after printing the seed and the command that repeats it.

#![expect(clippy::print_stderr, reason = "nobody who searches for failures closes standard error")]

use std::io::{IsTerminal, Write, stderr};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use seeds::{Kind, Sweep};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Run the file system on simulated machines, everything drawn from seeds, until a run fails.
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
}

/// Interval between two progress reports on a terminal.
const BEAT: Duration = Duration::from_millis(200);

/// Number of intervals between two lines elsewhere, so that a log of a night stays readable.
const BEATS_OF_A_LOG: u32 = 300;

fn main() -> ExitCode {
    let Arguments { kinds, from, count, threads } = Arguments::parse();
    let kinds = if kinds.is_empty() { Kind::ALL.to_vec() } else { kinds };
    let threads = threads.or_else(|| thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let sweep = Arc::new(Sweep::new(&kinds, from, count));
    stop_on_interruption(&sweep);
    let begun = Instant::now();
    thread::scope(|scope| {
        let running = scope.spawn(|| sweep.run(threads.max(1), Kind::run));
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
    for failed in sweep.failed() {
        println!("{} failed with seed {}: {}", failed.kind, failed.seed, failed.why);
        println!("repeat it: {}", failed.command());
    }
    println!("{}", summary(&sweep, begun));
    if sweep.counts().failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
