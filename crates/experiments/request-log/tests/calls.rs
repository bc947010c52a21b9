//! Tests of logs of calls: for any program, the recording of each process is read back unchanged, even if a process is
//! killed in the middle of a line.

use layout::{Extent, Operation, Selection};
use machine::Duration;
use proptest::collection::vec;
use proptest::prelude::*;
use request_log::{
    Action, CallMethod, CallToWrite, Error, LogCollector, LogWriter, LoggedCall, OpeningToWrite, Reading,
    Request, RequestLog, Stretch,
};

const FILES: [&str; 2] = ["results/step 1", "-"];

/// A step of a program, made by all processes or by one.
#[derive(Clone, Debug)]
enum Step {
    /// A collective call, in which each process accesses the records of its rank.
    All(Option<Operation>, usize, u64),
    /// A call of one process with a selection.
    Pieces(Operation, usize, u32, u64),
    /// A call of one process with a range of bytes.
    Stretch(Operation, usize, u32, u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![Just(Operation::Read), Just(Operation::Write)]
}

fn step() -> impl Strategy<Value = Step> {
    let number = || 0..1_u64 << 40;
    prop_oneof![
        (proptest::option::of(operation()), 0..2_usize, number())
            .prop_map(|(kind, file, at)| Step::All(kind, file, at)),
        (operation(), 0..2_usize, 0..4_u32, number())
            .prop_map(|(kind, file, by, at)| Step::Pieces(kind, file, by, at)),
        (operation(), 0..2_usize, 0..4_u32, number())
            .prop_map(|(kind, file, by, at)| Step::Stretch(kind, file, by, at)),
    ]
}

/// Returns the selection of a process, which is sometimes empty.
fn selected(process: u32, at: u64) -> Selection {
    if (at + u64::from(process)).is_multiple_of(5) {
        return Selection::empty();
    }
    let first = Extent::new(at + u64::from(process) * 8, 8);
    Selection::vector(first, 1 + at % 1_000_000, 64).expect("within a file")
}

/// Returns the log that a process records for a program.
fn recorded(process: u32, processes: u32, steps: &[Step]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut writer = LogWriter::begin_calls(&mut text).expect("memory");
    writer.write_process((Duration::ZERO, process), processes).expect("memory");
    for (file, name) in FILES.iter().zip(["a", "b"]) {
        let written = OpeningToWrite { name, rank: process, size: processes, block_bytes: 4096, stripes: 3 };
        writer.write_opening((Duration::ZERO, process), file, written).expect("memory");
    }
    let mut numbers = [0; 2];
    for (step, second) in steps.iter().zip(1..) {
        let (time, took) = (Duration::from_secs(second), Duration::from_millis(second));
        let request = |action| Request { time, took, action };
        let ours = |by: u32| by % processes == process;
        match *step {
            Step::All(kind, file, at) => {
                let selection = selected(process, at);
                let together = Some((["a", "b"][file], numbers[file]));
                numbers[file] += 1;
                let method = kind.map(|_| CallMethod::ALL[at as usize % 4]);
                let moves = kind.map(|kind| (kind, &selection));
                let written = CallToWrite { file: FILES[file], moves, together, method };
                writer.write_call(process, &request(Action::Sync), &written).expect("memory");
            }
            Step::Pieces(kind, file, by, at) if ours(by) => {
                let (selection, file) = (selected(0, at), FILES[file]);
                let written =
                    CallToWrite { file, moves: Some((kind, &selection)), together: None, method: None };
                writer.write_call(process, &request(Action::Sync), &written).expect("memory");
            }
            Step::Stretch(kind, file, by, offset) if ours(by) => {
                let stretch = Stretch { file: file as u32, bytes: 8, offset };
                writer.write(process, &request(Action::Move(kind, stretch)), &FILES).expect("memory");
            }
            _ => {}
        }
    }
    writer.finish().expect("memory");
    text
}

fn read(inputs: &[Vec<u8>]) -> Result<RequestLog, Error> {
    let reading = Reading::default();
    let mut collector = LogCollector::new(&reading);
    inputs.iter().try_for_each(|input| collector.take(&input[..]).map(drop))?;
    collector.finish()
}

/// Returns the calls of a process in a log, in a short form.
fn found(log: &RequestLog, node: usize) -> Vec<(String, Option<Operation>, String, Option<u64>)> {
    let name = |file: u32| log.files()[file as usize].name.clone();
    let short = |request: &Request| match request.action {
        Action::Sync => unreachable!("no log contains it"),
        Action::Move(kind, Stretch { file, bytes, offset }) => {
            (name(file), Some(kind), format!("{offset}:{bytes}"), None)
        }
        Action::Call(index) => {
            let LoggedCall { file, moves, together, .. } = log.call(index);
            let selection = moves.as_ref().map_or(String::new(), |(_, selection)| selection.to_string());
            (name(*file), moves.as_ref().map(|(kind, _)| *kind), selection, together.map(|turn| turn.number))
        }
    };
    log.nodes()[node].requests.iter().map(short).collect()
}

/// Returns the requests that the log of a process must contain.
fn expected(
    process: u32,
    processes: u32,
    steps: &[Step],
) -> Vec<(String, Option<Operation>, String, Option<u64>)> {
    let mut numbers = [0; 2];
    let mut all = Vec::new();
    for step in steps {
        match *step {
            Step::All(kind, file, at) => {
                let selection = kind.map_or(String::new(), |_| selected(process, at).to_string());
                all.push((FILES[file].to_owned(), kind, selection, Some(numbers[file])));
                numbers[file] += 1;
            }
            Step::Pieces(kind, file, by, at) if by % processes == process => {
                all.push((FILES[file].to_owned(), Some(kind), selected(0, at).to_string(), None));
            }
            Step::Stretch(kind, file, by, at) if by % processes == process => {
                all.push((FILES[file].to_owned(), Some(kind), format!("{at}:8"), None));
            }
            _ => {}
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn recordings_are_read_and_written_unchanged(processes in 1..4_u32, steps in vec(step(), 1..12)) {
        let inputs: Vec<Vec<u8>> = (0..processes).map(|process| recorded(process, processes, &steps)).collect();
        prop_assert!(inputs.iter().all(|input| input.len() < 2000), "in closed form");
        let Ok(log) = read(&inputs) else {
            // Reading fails only if no process has recorded a request.
            prop_assert!((0..processes).all(|process| expected(process, processes, &steps).is_empty()));
            return Ok(());
        };
        for (index, node) in log.nodes().iter().enumerate() {
            prop_assert_eq!(found(&log, index), expected(node.number, processes, &steps));
        }
        let calls = log.calls().expect("it is of calls");
        prop_assert_eq!((calls.processes, calls.left_out, calls.torn), (Some(processes), 0, 0));
        let mut text = Vec::new();
        log.write_to(&mut text).expect("memory");
        let back = read(&[text]).expect("a log that the program has written");
        for index in 0..log.nodes().len() {
            prop_assert_eq!(found(&back, index), found(&log, index));
        }
        prop_assert_eq!(back.totals(), log.totals());
    }

    #[test]
    fn recordings_of_a_killed_process_are_read_up_to_the_torn_line(steps in vec(step(), 1..12), part in 0.0..1.0) {
        let mut inputs: Vec<Vec<u8>> = (0..2).map(|process| recorded(process, 2, &steps)).collect();
        let first_line = inputs[1].iter().position(|&byte| byte == b'\n').expect("a line") + 1;
        let kept = first_line + (part * (inputs[1].len() - first_line) as f64) as usize;
        inputs[1].truncate(kept);
        let torn = u64::from(!inputs[1].ends_with(b"\n"));
        match read(&inputs) {
            Ok(log) => {
                prop_assert_eq!(log.calls().map(|calls| calls.torn), Some(torn));
                for (index, node) in log.nodes().iter().enumerate() {
                    let (found, all) = (found(&log, index), expected(node.number, 2, &steps));
                    match node.number {
                        1 => prop_assert!(all.starts_with(&found)),
                        // All independent calls of this process are kept, and its collective calls that the other
                        // process has recorded, too.
                        _ => prop_assert!(
                            all.iter().filter(|call| call.3.is_none()).eq(found.iter().filter(|call| call.3.is_none()))
                        ),
                    }
                }
            }
            Err(error) => prop_assert!(
                ["it contains no requests", "all of its calls are collective calls"].iter().any(|why| error.why.starts_with(why)),
                "{}", error
            ),
        }
    }
}

const HEAD: &str =
    "# starfish requests 2\n0 0 - begin 2\n0 1 - begin 2\n0 0 x open a 0 2 512 1\n0 1 x open a 1 2 512 1\n";

fn refused(lines: &str) -> String {
    let error = read(&[format!("{HEAD}{lines}\n").into_bytes()]).expect_err(lines);
    error.to_string()
}

#[test]
fn mistakes_are_reported_with_line_and_column() {
    for (lines, why) in [
        ("1 0 x write-all b 0 0:8", "line 6, column 17: no earlier line defines the opening b"),
        ("1 2 x write-all a 0 0:8", "line 6, column 17: node 2 has no opening a of this file"),
        ("1 0 y write-all a 0 0:8", "line 6, column 17: node 0 has no opening a of this file"),
        ("1 0 x write-all a x 0:8", "line 6, column 19: expected the number of a call"),
        ("1 0 x write-all a 0 0:(8+)8", "line 6, column 21: expected a number of bytes at byte 5"),
        ("1 0 x write-all a 0 281474976710656:8", "line 6, column 21: it ends at byte 281474976710664"),
        ("1 0 x write-all a 0 0:8 1 magic", "line 6, column 27: expected a method, not \"magic\""),
        ("1 0 - write-all a 0 0:8", "line 6, column 5: a write-all needs a file"),
        ("1 0 x sync-all a 0 1 2", "line 6, column 22: expected the end of the line"),
        ("1 0 x swap 0 8", "line 6, column 7: expected read, write or sync"),
        (
            "1 0 - begin 3",
            "line 6, column 7: this log is of a run with 3 processes, and the logs before it are of one with \
             2",
        ),
        ("1 0 x open b 2 2 512 1", "line 6, column 7: rank 2 of 2 processes"),
        ("1 1 x open a 0 2 512 1", "line 6, column 7: rank 0 of opening a already belongs to node 0"),
        (
            "1 0 y open a 0 2 512 1",
            "line 6, column 7: opening a is recorded elsewhere as one of \"x\" by 2 processes",
        ),
        ("1 0 x write-all a 0 0:8\n2 0 x write-all a 0 0:8", "line 7: a continued call: part 1"),
        ("1 0 x write-all a 0 0:8\n1 1 x read-all a 0 0:8", "call 0 of an opening differs between node 1"),
        (
            "1 0 x sync-all a 0\n1 1 x sync-all a 1\n2 0 x sync-all a 1\n2 1 x sync-all a 0",
            "nodes would wait for each other forever: some wait for others to make call 0 of opening a",
        ),
        ("1 0 - sync\n1 0 x sync-all a 0\n1 1 x sync-all a 0\n2 1 - sync", "nodes would wait for each other"),
        (
            "1 0 x write-all a 0 0:8",
            "all of its calls are collective calls of processes that are missing in it",
        ),
    ] {
        let error = refused(lines);
        assert!(error.starts_with(why), "{lines}: {error}");
    }
    let mixed = read(&[format!("{HEAD}1 0 - begin 3\n").into_bytes()]).expect_err("of two runs");
    assert!(mixed.remedy.contains("0 to 1 belong to the later run"), "{}", mixed.remedy);
    let old = b"# starfish requests 1\n0 0 x write-all a 0 0:8\n".to_vec();
    assert!(
        read(&[old]).expect_err("no such operation").to_string().contains("expected read, write or sync")
    );
    let other = b"# starfish requests 1\n0 0 x write 0 8\n".to_vec();
    let mixed = read(&[format!("{HEAD}1 0 x write 0 8\n").into_bytes(), other]).expect_err("two formats");
    assert!(mixed.to_string().starts_with("line 1: its format differs"), "{mixed}");
}

#[test]
fn a_long_selection_continues_in_the_next_line() {
    let extents: Vec<Extent> = (0..400_000_u64).map(|at| Extent::new(at * 100 + at % 7, 8)).collect();
    let selection = Selection::list(&extents).expect("in order");
    let mut text = HEAD.as_bytes().to_vec();
    let mut writer = LogWriter::begin_calls(&mut text).expect("memory");
    let request = Request { time: Duration::from_secs(1), took: Duration::ZERO, action: Action::Sync };
    let (file, together) = ("x", Some(("a", 0)));
    for node in [0, 1] {
        let moves = Some((Operation::Write, &selection));
        writer
            .write_call(node, &request, &CallToWrite { file, moves, together, method: None })
            .expect("memory");
    }
    writer.finish().expect("memory");
    let log = read(&[text]).expect("a log");
    assert_eq!(log.totals().writes, 2);
    let moves = log.call(0).moves.as_ref().expect("a write");
    assert!(moves.1.chunks().eq(selection.chunks()));
}

#[test]
fn the_size_of_selections_is_limited() {
    let lines: String = (0..100).map(|number| format!("1 0 x write-pieces {number}:[1,1,1,1,1]\n")).collect();
    let mut reading = Reading::default();
    reading.limits.selection_nodes = 200;
    let error = RequestLog::read(format!("{HEAD}{lines}").as_bytes(), &reading).expect_err("too much");
    assert_eq!(
        error.to_string(),
        "line 56, column 20: selections have more than 200 runs, repetitions and lists"
    );
}
