//! Traces of a program: its calls, as spans of the threads that make them.

use std::collections::BTreeSet;
use std::fs;

use trace::{Amount, Argument, ArgumentValue, Timeline};

use crate::testbed::{MPICH, Mpi, OPEN_MPI, Testbed, succeed};

/// Returns the states of the threads that have made calls.
fn states(timeline: &Timeline) -> BTreeSet<&str> {
    let is_of_program = |&thread: &u32| timeline.threads[thread as usize].name.starts_with("calls of thread");
    let spans = timeline.spans.thread.iter().zip(&timeline.spans.state);
    let of_calls = spans.filter(|(thread, _)| is_of_program(thread));
    of_calls.map(|(_, state)| timeline.states[*state as usize].name.as_str()).collect()
}

/// Returns the values of an argument of the spans of a state.
fn arguments(timeline: &Timeline, state: &str, name: &str) -> Vec<u64> {
    let is_meant = |argument: &&Argument| {
        let of = timeline.spans.state[argument.span as usize];
        timeline.states[of as usize].name == state && timeline.names[argument.name as usize] == name
    };
    let number = |argument: &Argument| match argument.value {
        ArgumentValue::Number(Amount::Integer(number)) => number as u64,
        value => panic!("{state}: {name} is {value:?}"),
    };
    timeline.arguments.iter().filter(is_meant).map(number).collect()
}

/// Returns, for each span of state `outer`, the number of spans of state `inner` within it.
fn counts_within(timeline: &Timeline, outer: &str, inner: &str) -> Vec<usize> {
    let spans = &timeline.spans;
    let of = |state: &str| -> Vec<usize> {
        let is_it = |span: &usize| timeline.states[spans.state[*span] as usize].name == state;
        (0..spans.state.len()).filter(is_it).collect()
    };
    let process = |span: usize| timeline.threads[spans.thread[span] as usize].process;
    let within = |span: usize, outer: usize| {
        let times = spans.begin_ns[outer]..spans.end_ns[outer];
        process(span) == process(outer) && times.contains(&spans.begin_ns[span])
    };
    let inner = of(inner);
    let count = |outer| inner.iter().filter(|&&span| within(span, outer)).count();
    of(outer).into_iter().map(count).collect()
}

/// An example collectively writes, syncs and reads its field of doubles.
fn traced(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let field = testbed.compile_source("../../../examples/mpi/field.c", &[]);
    let file = testbed.agents.path("run.tlv");
    let mut command = testbed.launch(3, &field);
    succeed(command.env("STARFISH_TRACE", &file).arg("starfish:mpi/field"));
    let timeline = trace::read("run.tlv", &*fs::read(&file).expect("a trace")).expect("a trace");
    assert_eq!(timeline.processes.len(), 3);
    let states = states(&timeline);
    for state in [
        "MPI_File_open",
        "MPI_File_set_view",
        "MPI_File_write_all",
        "MPI_File_sync",
        "MPI_File_read_at_all",
        "MPI_File_close",
        "disk-directed",
    ] {
        assert!(states.contains(state), "{state}: {states:?}");
    }
    // The members form a team when the first has opened the file, and enter one barrier when all have opened it.
    for (asked, rounds) in [("ask: form team", 1), ("ask: meet", 1), ("ask: describe disks", 0)] {
        let counts = counts_within(&timeline, "MPI_File_open", asked);
        assert!(!counts.is_empty() && counts.iter().all(|&count| count == rounds), "{asked}: {counts:?}");
    }
    for state in ["MPI_File_write_all", "MPI_File_read_at_all"] {
        assert_eq!(arguments(&timeline, state, "bytes").iter().sum::<u64>(), 600 * 400 * 8);
        let files: BTreeSet<u64> = arguments(&timeline, state, "file").into_iter().collect();
        assert_eq!(files.len(), 1, "they have one file");
    }
}

#[test]
fn calls_are_traced_with_mpich() {
    traced(&MPICH);
}

#[test]
fn calls_are_traced_with_open_mpi() {
    traced(&OPEN_MPI);
}
