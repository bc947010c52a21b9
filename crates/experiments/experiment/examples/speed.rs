//! Measures the time of the simulator alone, without the rest of `starfish simulate`: `cargo run --release -p
//! experiment --example speed [method] [pattern] [record bytes] [file bytes] [layout] [rounds] [traced]`.
//!
//! Run the same experiment several times. The best time is that of the simulator; the other times include disturbances
//! by other programs. Methods, patterns, records and layouts may be lists with commas, or `all`. Equal digests mean
//! equal runs. Under `valgrind --tool=callgrind` a small file yields the number of instructions per event, which does
//! not depend on other programs. With `traced`, each round is followed by a round that writes a trace (with
//! `TMPDIR=/dev/shm`, to a file in memory). To find the slowdown by tracing, compare the best times of both kinds of
//! rounds.

#![expect(clippy::print_stderr, reason = "nobody who measures closes standard error")]

use std::cell::RefCell;
use std::fs::File;
use std::io::BufWriter;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Instant;

use description::{Description, MachineDescription};
use experiment::{Case, Contents, DiskLayout, Method, Options};
use layout::{Pattern, Problem};
use machine::NodeId;
use recording::FileRecorder;
use trace::{ProcessInfo, ProcessNumber};

/// The same allocator as in the program `starfish`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default: &'static str| arguments.get(index).map_or(default, String::as_str);
    let machine = MachineDescription::load("starfish-1996").expect("a machine that is built in");
    let layouts = [DiskLayout::Contiguous, DiskLayout::Random];
    let file_bytes = argument(3, "10485760").parse().expect("a number of bytes");
    let rounds = argument(5, "1").parse().expect("a number of rounds");
    let is_traced = argument(6, "") == "traced";
    for layout in chosen(argument(4, "contiguous"), &layouts) {
        for record_bytes in chosen(argument(2, "8"), &[8, 8192]) {
            for pattern in chosen(argument(1, "rc"), &Pattern::all().collect::<Vec<_>>()) {
                for method in chosen(argument(0, "traditional"), &Method::ALL) {
                    let experiment = Case {
                        problem: Problem::new(file_bytes, record_bytes, machine.nodes.compute.value),
                        machine: machine.clone(),
                        method,
                        pattern: pattern.into(),
                        layout,
                        options: Options::default(),
                        contents: Contents::Real,
                        seed: 1,
                    };
                    run(&experiment, rounds, is_traced);
                }
            }
        }
    }
}

fn run(experiment: &Case, rounds: u32, is_traced: bool) {
    let (mut best, mut best_traced) = (f64::INFINITY, f64::INFINITY);
    for round in 0..rounds {
        let start = Instant::now();
        let trial = experiment.trial(0).expect("an experiment that works");
        let nanoseconds = start.elapsed().as_secs_f64() * 1e9 / trial.events as f64;
        best = best.min(nanoseconds);
        if round == 0 {
            let Case { method, pattern, layout, problem, .. } = experiment;
            println!(
                "{method} {pattern} {} {layout}: digest {:016x}, {} events",
                problem.record_bytes, trial.digest, trial.events
            );
        }
        eprintln!("{nanoseconds:.1} ns per event");
        if is_traced {
            let (seconds, digest) = traced(experiment);
            assert_eq!(digest, trial.digest, "a trace changes nothing");
            best_traced = best_traced.min(seconds * 1e9 / trial.events as f64);
        }
    }
    if rounds > 1 {
        eprintln!("best: {best:.1} ns per event");
    }
    if is_traced {
        eprintln!("traced: {best_traced:.1} ns per event, {:.2} times as long", best_traced / best);
    }
}

/// Runs the experiment with a trace of all events, and returns the elapsed seconds and the digest.
fn traced(experiment: &Case) -> (f64, u64) {
    let start = Instant::now();
    let file: File = tempfile::tempfile().expect("a temporary file");
    let recorder = FileRecorder::new(BufWriter::new(file), NodeId(0), node, u64::MAX);
    let recorder = Rc::new(RefCell::new(recorder.expect("a file that can be written")));
    let trial = experiment.recorded_trial(0, recorder.clone()).expect("an experiment that works");
    recorder.borrow_mut().finish().expect("a file that can be written");
    (start.elapsed().as_secs_f64(), trial.digest)
}

fn node(node: NodeId) -> ProcessInfo {
    ProcessInfo {
        host: String::new(),
        number: ProcessNumber::Node(node.0 as u32),
        program: "node".to_owned(),
        command_line: String::new(),
        zero_unix_ns: None,
    }
}

/// Parses a list of names.
fn chosen<T: FromStr<Err: std::fmt::Debug> + Clone>(names: &str, all: &[T]) -> Vec<T> {
    if names == "all" {
        return all.to_vec();
    }
    names.split(',').map(|name| name.parse().expect("a known name")).collect()
}
