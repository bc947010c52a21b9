//! Reports of failures: every process gets the error class, and one process prints, once, the details that the class
//! lacks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::testbed::{MPICH, Mpi, OPEN_MPI, Testbed, succeed};

/// The error classes that 3 processes got, and the printed lines.
struct ProgramResult {
    classes: Vec<String>,
    messages: Vec<String>,
}

impl Testbed {
    /// Opens a file for writing or reading, in an environment that `change` may break.
    fn open_with(
        &self,
        program: &Path,
        words: [&str; 2],
        change: impl FnOnce(&mut Command),
    ) -> ProgramResult {
        let mut command = self.launch(3, program);
        // Hide the user's own agents and key.
        command.env("HOME", self.agents.path("")).env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
        change(&mut command);
        let output = succeed(command.args(words));
        let lines = |bytes: &[u8], begin: &str| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.lines().filter(|line| line.starts_with(begin)).map(str::to_owned).collect()
        };
        ProgramResult { classes: lines(&output.stdout, ""), messages: lines(&output.stderr, "starfish: ") }
    }

    /// Writes a key file with this text and file mode.
    fn key_file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.agents.path(name);
        fs::write(&path, text).expect("room");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        path
    }
}

/// Checks that all processes got this class, and that one printed all these parts; with no parts, none may print.
fn check(result: &ProgramResult, class: &str, parts: &[&str]) {
    let ProgramResult { classes, messages } = result;
    assert_eq!(*classes, [class; 3], "{messages:?}");
    assert_eq!(messages.len(), usize::from(!parts.is_empty()), "{class}: {messages:?}");
    for part in parts {
        assert!(messages[0].contains(part), "{part}: {messages:?}");
    }
}

/// Members whose calls do not match get an error for the file they have open, and it blames no agent.
fn out_of_step(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile("apart", &[]);
    let output = succeed(&mut testbed.launch(2, &program));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    for (file, apart) in [
        ("mpi/closed-early", "a write of rank 0 and a barrier of rank 1"),
        ("mpi/other-direction", "a read of rank 0 and a write of rank 1"),
    ] {
        let begin = format!("starfish: {file}: the members are out of step: {apart}. ");
        let of_file: Vec<&str> = text.lines().filter(|line| line.contains(file)).collect();
        // One line for the call, one for the close.
        assert_eq!(of_file.len(), 2, "{text}");
        assert!(of_file.iter().all(|line| line.starts_with(&begin)), "{text}");
        assert!(of_file[0].ends_with("in the same order and with the same settings"), "{text}");
    }
}

#[test]
fn mismatched_collective_calls_are_reported_with_mpich() {
    out_of_step(&MPICH);
}

#[test]
fn mismatched_collective_calls_are_reported_with_open_mpi() {
    out_of_step(&OPEN_MPI);
}

/// Members that cannot connect to each other fail together, and connect once they can.
fn reached(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile("reached", &[]);
    let mut command = testbed.launch(3, &program);
    let output = succeed(command.env("STARFISH_MPI_HINTS", "starfish_method=two-phase"));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("starfish: mpi/reached: ")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines.iter().all(|line| line.contains("Too many open files")), "{text}");
}

#[test]
fn members_connect_after_a_failed_attempt_with_mpich() {
    reached(&MPICH);
}

#[test]
fn members_connect_after_a_failed_attempt_with_open_mpi() {
    reached(&OPEN_MPI);
}

/// A call that is too large fails with a readable message, printed by each process it affects or once for all.
fn limits(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile("limits", &[]);
    for (method, runs, expected) in [
        ("disk-directed", "300000", None),
        ("disk-directed", "600000", Some("select fewer ranges")),
        ("two-phase", "300000", Some("a message holds at most 262144")),
        ("independent", "300000", None),
    ] {
        let mut command = testbed.launch(2, &program);
        command.env("STARFISH_MPI_HINTS", format!("starfish_method={method}"));
        let outcome = if expected.is_some() { "refused" } else { "moved" };
        let output = succeed(command.args([runs, outcome]));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let of_file = |name: &str| -> Vec<String> {
            let begin = format!("starfish: {name}: ");
            text.lines().filter(|line| line.starts_with(&begin)).map(str::to_owned).collect()
        };
        let (of_runs, of_element) =
            (of_file("mpi/runs"), text.matches("a datatype in memory has gaps and exceeds 1 GiB").count());
        let calls = if expected.is_some() { 2 } else { 0 };
        assert_eq!((of_runs.len(), of_element), (calls, 2), "{method}, {runs} runs: {text}");
        assert!(of_runs.iter().all(|line| expected.is_none_or(|expected| line.contains(expected))), "{text}");
    }
}

#[test]
fn too_large_calls_are_rejected_with_mpich() {
    limits(&MPICH);
}

#[test]
fn too_large_calls_are_rejected_with_open_mpi() {
    limits(&OPEN_MPI);
}

/// The reason why a file cannot be opened is printed before any process can end the program because of it.
fn aborted(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile("aborted", &[]);
    let (nowhere, report) = (testbed.agents.path("nowhere"), testbed.agents.path("told"));
    for (name, key_file, why) in [
        ("starfish:no/such", None, "starfish: no/such: the directory no does not exist."),
        ("starfish:mpi/x", Some(&nowhere), "no such file"),
    ] {
        // A single run could pass by chance, if the right process is the first to end.
        for _ in 0..5 {
            let mut command = testbed.launch(4, &program);
            command.arg(name).arg(&report).envs(key_file.map(|file| ("STARFISH_KEY_FILE", file)));
            let output = command.output().expect("a launcher");
            let text = fs::read_to_string(&report).expect("what was told");
            fs::remove_file(&report).expect("it is there");
            assert!(!output.status.success() && text.matches(why).count() == 1, "{name}: {text}");
        }
    }
}

#[test]
fn the_cause_of_an_abort_is_printed_before_it_with_mpich() {
    aborted(&MPICH);
}

#[test]
fn the_cause_of_an_abort_is_printed_before_it_with_open_mpi() {
    aborted(&OPEN_MPI);
}

fn failures(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile("opened", &[]);
    let write = ["starfish:mpi/x", "write"];
    let result = testbed.open_with(&program, write, |command| {
        command.env_remove("STARFISH_AGENTS");
    });
    check(&result, "MPI_ERR_IO", &["starfish: mpi/x: ", "cannot find the agents", "STARFISH_AGENTS"]);
    let result = testbed.open_with(&program, write, |command| {
        command.env("STARFISH_AGENTS", "127.0.0.1:9");
    });
    check(&result, "MPI_ERR_IO", &["mpi/x: agent 127.0.0.1:9"]);
    let digits = "0123456789abcdef".repeat(4);
    for (file, class, parts) in [
        (testbed.key_file("open-to-all", &digits, 0o644), "MPI_ERR_IO", &["mpi/x: ", "0644"]),
        (testbed.key_file("malformed", "abc", 0o600), "MPI_ERR_IO", &["mpi/x: ", "64 hexadecimal digits"]),
        (testbed.agents.path("nowhere"), "MPI_ERR_IO", &["mpi/x: ", "no such file"]),
        (testbed.key_file("another", &digits, 0o600), "MPI_ERR_ACCESS", &["mpi/x: ", "key"]),
    ] {
        let result = testbed.open_with(&program, write, |command| {
            command.env("STARFISH_KEY_FILE", file);
        });
        check(&result, class, parts);
    }
    let result = testbed.open_with(&program, ["starfish:results/deep/x", "write"], |_| {});
    let parts = [
        "starfish: results/deep/x: ",
        "the directory results/deep does not exist",
        "`starfish mkdir -p results/deep`",
    ];
    check(&result, "MPI_ERR_NO_SUCH_FILE", &parts);
    // Programs expect this class, so no process prints it.
    check(&testbed.open_with(&program, ["starfish:mpi/x", "read"], |_| {}), "MPI_ERR_NO_SUCH_FILE", &[]);
    let result = testbed.open_with(&program, ["starfish:mpi/large", "write"], |command| {
        command.env("STARFISH_MPI_HINTS", "striping_unit=4194304");
    });
    // An impossible hint is ignored.
    check(&result, "MPI_SUCCESS", &[]);
    check(&testbed.open_with(&program, ["starfish:mpi/large", "read"], |_| {}), "MPI_SUCCESS", &[]);
    check(&testbed.open_with(&program, write, |_| {}), "MPI_SUCCESS", &[]);
    // An agent that is not the metadata server does not create another namespace.
    let alone = testbed.agents.agents.iter().map(|agent| {
        testbed.open_with(&program, ["starfish:x", "write"], |command| {
            command.env("STARFISH_AGENTS", &agent.address);
        })
    });
    let (made, refused): (Vec<ProgramResult>, Vec<ProgramResult>) =
        alone.partition(|result| result.classes[0] == "MPI_SUCCESS");
    assert_eq!((made.len(), refused.len()), (1, testbed.agents.agents.len() - 1));
    for result in refused {
        check(&result, "MPI_ERR_IO", &["starfish: x: ", "namespace", "Name all agents"]);
    }
}

#[test]
fn open_failures_are_printed_once_with_mpich() {
    failures(&MPICH);
}

#[test]
fn open_failures_are_printed_once_with_open_mpi() {
    failures(&OPEN_MPI);
}
