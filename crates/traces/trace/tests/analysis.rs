//! Tests of totals, overlaps and differences: compares results with values computed by hand and, for random traces,
//! with an exhaustive search of each nanosecond.

use std::collections::BTreeSet;

use proptest::prelude::*;
use trace::{
    FileWriter, Grouping, ProcessId, ProcessInfo, ProcessNumber, Record, RecordedEvent, SpanChoice, StateId,
    StateInfo, ThreadId, ThreadInfo, Timeline,
};

/// Span: thread, state, begin and duration.
type SpanTuple = (u32, u32, u64, u64);

/// Returns a timeline of two processes with two threads each; threads 0 and 1 belong to the first process.
fn timeline(spans: &[SpanTuple]) -> Timeline {
    let process = |pid| ProcessInfo {
        host: String::new(),
        number: ProcessNumber::Pid(pid),
        program: "p".to_owned(),
        command_line: String::new(),
        zero_unix_ns: None,
    };
    let mut writer = FileWriter::new(Vec::new(), &process(0)).unwrap();
    writer.process(ProcessId(1), &process(1)).unwrap();
    for id in 0..4 {
        let thread = ThreadInfo { process: ProcessId(id / 2), name: format!("t{id}") };
        writer.thread(ThreadId(id), &thread).unwrap();
        let state = StateInfo { name: format!("s{id}"), category: String::new(), colour: None };
        writer.state(StateId(id), &state).unwrap();
    }
    for (thread, state, begin, duration) in spans {
        let record = Record { time_ns: *begin, event: RecordedEvent::Span(StateId(*state), *duration) };
        writer.records(ThreadId(*thread), &[record]).unwrap();
    }
    trace::read("x", &writer.into_inner()[..]).unwrap()
}

fn state(state: u32) -> SpanChoice {
    SpanChoice { states: Some(BTreeSet::from([state])), threads: None }
}

fn thread(thread: u32) -> SpanChoice {
    SpanChoice { states: None, threads: Some(BTreeSet::from([thread])) }
}

#[test]
fn totals_are_grouped_by_thread_process_or_state() {
    let timeline = timeline(&[(0, 0, 0, 10), (0, 0, 20, 30), (0, 1, 22, 4), (1, 0, 50, 50), (2, 0, 10, 5)]);
    let rows = |grouping, within| {
        let totals = timeline.totals(grouping, within);
        let row = |row: &trace::StateTotals| (row.process, row.thread, row.state, row.count, row.total_ns);
        totals.iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(
        rows(Grouping::Thread, None),
        [
            (Some(0), Some(0), 0, 2, 40),
            (Some(0), Some(0), 1, 1, 4),
            (Some(0), Some(1), 0, 1, 50),
            (Some(1), Some(2), 0, 1, 5)
        ]
    );
    assert_eq!(
        rows(Grouping::Process, None),
        [(Some(0), None, 0, 3, 90), (Some(0), None, 1, 1, 4), (Some(1), None, 0, 1, 5)]
    );
    assert_eq!(rows(Grouping::State, None), [(None, None, 0, 4, 95), (None, None, 1, 1, 4)]);
    assert_eq!(rows(Grouping::State, Some(25..60)), [(None, None, 0, 2, 35), (None, None, 1, 1, 1)]);
    let shares = timeline.totals(Grouping::Thread, None).iter().map(|row| row.share).collect::<Vec<_>>();
    assert_eq!(shares, [0.4, 0.04, 0.5, 0.05]);
}

#[test]
fn an_overlap_needs_different_threads() {
    let nested = timeline(&[(0, 0, 0, 100), (0, 1, 10, 20)]);
    assert_eq!(nested.overlap(&[state(0), state(1)], None), 0);
    assert_eq!(nested.overlap(&[state(0)], None), 100);
    let beside = timeline(&[(0, 0, 0, 100), (0, 1, 10, 20), (1, 1, 25, 50), (2, 0, 90, 30)]);
    assert_eq!(beside.overlap(&[state(0), state(1)], None), 50);
    assert_eq!(beside.overlap(&[state(0), state(0)], None), 10);
    assert_eq!(beside.overlap(&[thread(0), thread(1)], None), 50);
    assert_eq!(beside.overlap(&[state(0), state(1)], Some(30..40)), 10);
    assert_eq!(beside.overlap(&[], None), 0);
    // Three threads are in three states; the first thread is in two of them.
    let three = timeline(&[(0, 0, 0, 10), (0, 1, 0, 10), (1, 1, 0, 10), (2, 2, 5, 10)]);
    assert_eq!(three.overlap(&[state(0), state(1), state(2)], None), 5);
}

#[test]
fn changes_are_sorted_by_size() {
    let before = timeline(&[(0, 0, 0, 10), (0, 1, 10, 30), (0, 2, 50, 7)]);
    let after = timeline(&[(0, 0, 0, 15), (1, 1, 10, 10), (0, 3, 50, 1)]);
    let changes = before.changes_to(&after);
    let shown = changes.iter().map(|change| (change.state.name.as_str(), change.growth_ns()));
    assert_eq!(shown.collect::<Vec<_>>(), [("s1", -20), ("s2", -7), ("s0", 5), ("s3", 1)]);
    assert_eq!((changes[1].after.is_none(), changes[3].before.is_none()), (true, true));
}

fn span_tuples() -> impl Strategy<Value = Vec<SpanTuple>> {
    prop::collection::vec((0..4u32, 0..4u32, 0..60u64, 0..20u64), 1..30)
}

/// Returns true if distinct threads are in all of these states, by exhaustive search.
fn can_be_given(states: &[u32], taken: &mut Vec<u32>, is_on: &dyn Fn(u32, u32) -> bool) -> bool {
    let Some((first, rest)) = states.split_first() else { return true };
    (0..4).any(|thread| {
        if taken.contains(&thread) || !is_on(thread, *first) {
            return false;
        }
        taken.push(thread);
        let rest_can = can_be_given(rest, taken, is_on);
        taken.pop();
        rest_can
    })
}

proptest! {
    #[test]
    fn overlaps_equal_those_of_an_exhaustive_search(
        spans in span_tuples(), states in prop::collection::vec(0..4u32, 1..4), from in 0..40u64, length in 0..60u64,
    ) {
        let timeline = timeline(&spans);
        let index = |state: u32| {
            let name = format!("s{state}");
            timeline.states.iter().position(|state| state.name == name).unwrap() as u32
        };
        let chosen: Vec<SpanChoice> = states.iter().map(|one| state(index(*one))).collect();
        let overlaps = |time: &u64| {
            let is_on = |thread, state| spans.iter().any(|(of, is, begin, duration)| {
                (*of, *is) == (thread, state) && *begin <= *time && *time < begin + duration
            });
            can_be_given(&states, &mut Vec::new(), &is_on)
        };
        prop_assert_eq!(timeline.overlap(&chosen, None), (0..100).filter(overlaps).count() as u64);
        let within = from..from + length;
        prop_assert_eq!(timeline.overlap(&chosen, Some(within.clone())), within.filter(overlaps).count() as u64);
    }

    #[test]
    fn totals_of_ranges_add_up_to_the_whole(spans in span_tuples(), cut in 0..80u64) {
        let timeline = timeline(&spans);
        let total = |within| -> u64 {
            timeline.totals(Grouping::Thread, within).iter().map(|row| row.total_ns).sum()
        };
        prop_assert_eq!(total(None), spans.iter().map(|(.., duration)| duration).sum::<u64>());
        prop_assert_eq!(total(Some(0..cut)) + total(Some(cut..100)), total(None));
        let by_state: u64 = timeline.totals(Grouping::State, None).iter().map(|row| row.total_ns).sum();
        prop_assert_eq!(by_state, total(None));
    }
}
