//! Times the simulator, as `starfish simulate` does, without the rest of the program: `cargo run --release -p
//! experiment --example speed [method] [pattern] [record bytes] [file bytes] [layout] [rounds]`.
//!
//! The same run several times says how much else the computer does: the best of them is the simulator's.
//! Methods, patterns, records and layouts may be several, with commas between them, or `all`. Equal digests
//! mean equal runs. Under `valgrind --tool=callgrind` a small file gives instructions per event that do not depend
//! on what else the computer does.

use std::str::FromStr;
use std::time::Instant;

use description::{Description, MachineDescription};
use experiment::{Case, Contents, DiskLayout, Method, Options};
use layout::{Pattern, Problem};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default: &'static str| arguments.get(index).map_or(default, String::as_str);
    let machine = MachineDescription::load("starfish-1996").expect("a machine that is built in");
    let layouts = [DiskLayout::Contiguous, DiskLayout::Random];
    let file_bytes = argument(3, "10485760").parse().expect("a number of bytes");
    let rounds = argument(5, "1").parse().expect("a number of rounds");
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
                    run(&experiment, rounds);
                }
            }
        }
    }
}

fn run(experiment: &Case, rounds: u32) {
    let mut best = f64::INFINITY;
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
    }
    if rounds > 1 {
        eprintln!("best: {best:.1} ns per event");
    }
}

/// The values of these names.
fn chosen<T: FromStr<Err: std::fmt::Debug> + Clone>(names: &str, all: &[T]) -> Vec<T> {
    if names == "all" {
        return all.to_vec();
    }
    names.split(',').map(|name| name.parse().expect("a known name")).collect()
}
