//! Times the golden workload: `cargo run --release -p sim --example golden [requests] [runs]`.

use std::time::Instant;

#[path = "../tests/golden_workload/mod.rs"]
mod golden_workload;

/// The allocator that the program `starfish` uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let requests = arguments.next().unwrap_or(20_000);
    let runs = arguments.next().unwrap_or(10);
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        let outcome = golden_workload::run(requests, true);
        let per_event = start.elapsed().as_secs_f64() * 1e9 / outcome.events as f64;
        println!(
            "last reply {} ns, responses {} ns, digest {:016x}, {} events, {per_event:.1} ns each",
            outcome.end, outcome.response_sum, outcome.digest, outcome.events
        );
        best = best.min(per_event);
    }
    println!("best: {best:.1} ns per event");
}
