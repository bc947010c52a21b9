//! Recordings of programs, and their replay on a simulated machine.

use std::fs::{self, File};
use std::io::BufReader;
use std::sync::Arc;

use description::MachineDescription;
use experiment::{Contents, DiskLayout, Options, Replay, Think};
use layout::Operation;
use request_log::{Action, CallMethod, LogCollector, Reading, Request, RequestLog};

use crate::testbed::{MPICH, Mpi, OPEN_MPI, Testbed, succeed};

/// The variable that requests a recording.
const VARIABLE: &str = "STARFISH_MPI_RECORD";

/// Reads the log of this number of processes.
fn read(testbed: &Testbed, name: &str, processes: u32) -> RequestLog {
    let reading = Reading::default();
    let mut collector = LogCollector::new(&reading);
    for process in 0..processes {
        let file =
            File::open(testbed.agents.path(&format!("{name}.{process}"))).expect("every process has one");
        collector.take(BufReader::new(file)).expect("it is as it should be");
    }
    collector.finish().expect("a log")
}

/// An example collectively writes, syncs and reads its field of doubles, and nothing else.
fn recorded(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let field = testbed.compile_source("../../../examples/mpi/field.c", &[]);
    let mut command = testbed.launch(3, &field);
    command.env(VARIABLE, testbed.agents.path("run")).arg("starfish:mpi/field");
    succeed(&mut command);
    let log = read(&testbed, "run", 3);
    let (calls, totals) = (log.calls().expect("format 2"), log.totals());
    assert_eq!(
        (calls.processes, calls.left_out, calls.calls.len(), calls.openings.len()),
        (Some(3), 0, 9, 1)
    );
    assert_eq!(calls.openings[0].stripes, 3);
    assert_eq!((totals.bytes_written, totals.bytes_read), (600 * 400 * 8, 600 * 400 * 8));
    for node in log.nodes() {
        let kinds: Vec<Option<Operation>> = node
            .requests
            .iter()
            .map(|request| call(&log, request).moves.as_ref().map(|moves| moves.0))
            .collect();
        assert_eq!(kinds, [Some(Operation::Write), None, Some(Operation::Read)]);
        assert!(node.requests.iter().all(|request| !request.took.is_zero()));
        assert_eq!(call(&log, &node.requests[0]).method, Some(CallMethod::DiskDirected));
    }
    let log = Arc::new(log);
    for method in Replay::METHODS {
        let set = [("nodes.compute", "3"), ("nodes.io", "3")];
        let replay = Replay {
            machine: MachineDescription::load_with("loopback", &set).expect("built in"),
            method,
            log: log.clone(),
            think: Think::Gaps,
            layout: DiskLayout::Contiguous,
            options: Options { block_bytes: calls_block(&log), ..Options::of_agents() }.of(method),
            configuration: ::fs::Configuration::Agent,
            batch_bytes: Replay::BATCH_BYTES,
            contents: Contents::Real,
            seed: 1,
        };
        let trial = replay.trial().unwrap_or_else(|error| panic!("{replay}: {error}"));
        assert_eq!(trial.jobs[0].writes.bytes, totals.bytes_written, "{replay}");
    }
}

fn calls_block(log: &RequestLog) -> u64 {
    log.calls().expect("format 2").openings[0].block_bytes
}

fn call<'a>(log: &'a RequestLog, request: &Request) -> &'a request_log::LoggedCall {
    let Action::Call(index) = request.action else { panic!("{request:?}") };
    log.call(index)
}

/// Calls of all kinds, by communicators of all processes and of some; the program checks the data it reads.
fn all_kinds(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let directory = testbed.agents.path("local files");
    fs::create_dir(&directory).expect("a directory");
    let program = testbed.compile("files", &[]);
    let mut command = testbed.launch(4, &program);
    command.env(VARIABLE, testbed.agents.path("run")).arg(&directory);
    succeed(&mut command);
    let log = read(&testbed, "run", 4);
    let calls = log.calls().expect("format 2");
    assert_eq!(calls.left_out, 0);
    assert!(calls.calls.iter().any(|call| call.together.is_some()));
    assert!(log.totals().requests() > calls.calls.len() as u64 / 2, "some are alone");
}

#[test]
fn a_program_is_recorded_with_mpich_and_replayed() {
    recorded(&MPICH);
}

#[test]
fn a_program_is_recorded_with_open_mpi_and_replayed() {
    recorded(&OPEN_MPI);
}

#[test]
fn calls_of_all_kinds_are_recorded() {
    all_kinds(&MPICH);
}

/// Calls in flight at the same time are recorded in the order in which they began.
fn begun(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile("begun", &[]);
    succeed(testbed.launch(4, &program).env(VARIABLE, testbed.agents.path("run")));
    let log = read(&testbed, "run", 4);
    let calls = log.calls().expect("format 2");
    assert_eq!((calls.left_out, calls.openings.len()), (0, 4));
    // All calls that each of the four processes began, except failed ones.
    let totals = log.totals();
    assert_eq!((totals.reads, totals.writes), (4 * 62, 4 * 387));
}

#[test]
fn calls_in_flight_are_recorded_with_mpich() {
    begun(&MPICH);
}

#[test]
fn calls_in_flight_are_recorded_with_open_mpi() {
    begun(&OPEN_MPI);
}

/// A program whose recording cannot be written runs as it would without recording.
#[test]
fn a_program_continues_if_its_recording_fails() {
    let Some(testbed) = Testbed::new(&MPICH) else { return };
    let field = testbed.compile_source("../../../examples/mpi/field.c", &[]);
    let mut command = testbed.launch(2, &field);
    command.env(VARIABLE, testbed.agents.path("nowhere").join("run")).arg("starfish:mpi/field");
    let stderr = String::from_utf8(succeed(&mut command).stderr).expect("text");
    assert!(stderr.contains("run.1: cannot record this process: "), "{stderr}");
}
