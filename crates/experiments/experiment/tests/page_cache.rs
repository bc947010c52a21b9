//! Tests of the reports' experiments through a page cache at each compute node.

use description::{Description, MachineDescription};
use experiment::{Case, Contents, DiskLayout, Method, Options, Trial};
use fs::Prefetch;
use layout::{Operation, Pattern, Problem};

fn case(pattern: Pattern, record_bytes: u64, page_cache_bytes: u64, window: Option<Prefetch>) -> Case {
    let machine = MachineDescription::load("starfish-1996").expect("built in");
    Case {
        method: Method::Traditional,
        pattern: pattern.into(),
        problem: Problem::new(256 << 10, record_bytes, machine.nodes.compute.value),
        machine,
        layout: DiskLayout::Contiguous,
        options: Options { page_cache_bytes, window, ..Options::default() },
        contents: Contents::Real,
        seed: 1,
    }
}

fn run(case: &Case) -> Trial {
    case.trial(0).unwrap_or_else(|error| panic!("{case}: {error}"))
}

/// Each trial checks every byte, even if nodes share pages or the cache is smaller than a node's part.
#[test]
fn every_pattern_works_through_any_page_cache() {
    for pattern in Pattern::all() {
        for record_bytes in [1024, 8192] {
            for page_cache_bytes in [16 << 10, 1 << 20] {
                let trial = run(&case(pattern, record_bytes, page_cache_bytes, None));
                assert!(trial.bytes_moved >= 256 << 10, "{pattern}");
            }
        }
    }
}

/// Small records in a cached page need no separate requests, and prefetching saves waits.
#[test]
fn caching_saves_events_and_prefetching_saves_time() {
    let pattern = "rn".parse().expect("a pattern");
    let seconds = |cache, window| run(&case(pattern, 8192, cache, window)).elapsed.as_secs_f64();
    let (one, wide) = (seconds(1 << 20, Some(Prefetch::None)), seconds(1 << 20, Some(Prefetch::Window(16))));
    assert!(wide < 0.5 * one, "{wide} s with a window, {one} s without");
    let events = |cache| run(&case("rc".parse().expect("a pattern"), 64, cache, None)).events;
    assert!(events(1 << 20) < events(0), "{} and {}", events(1 << 20), events(0));
}

#[test]
fn a_page_cache_of_no_bytes_changes_nothing() {
    for pattern in ["rb", "wcc"] {
        let mut with = case(pattern.parse().expect("a pattern"), 8192, 0, None);
        let without = with.clone();
        with.options = Options::default();
        assert_eq!(run(&with).digest, run(&without).digest);
        assert_eq!(format!("{:?}", with.experiment()), format!("{:?}", without.experiment()));
    }
}

#[test]
fn invalid_page_cache_options_are_rejected() {
    let good = case("rb".parse().expect("a pattern"), 8192, 1 << 20, None);
    assert_eq!(good.operation(), Operation::Read);
    let mut directed = good.clone();
    directed.method = Method::DiskDirected;
    let window = case("rb".parse().expect("a pattern"), 8192, 0, Some(Prefetch::Adaptive));
    for (wrong, why) in [(directed, "only the traditional method"), (window, "set page_cache, too")] {
        let error = wrong.check().expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
    }
}
