//! Runs programs to completion and captures their output. Tests of other crates use this file, too.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time limit of a program that a test runs, sufficient on a busy computer.
const LIMIT: Duration = Duration::from_secs(120);

/// Returns a command whose program receives all signals, even if the test runner ignores some of them.
pub(crate) fn heeding(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(program);
    command
}

/// Runs a program to completion, and returns its output.
pub(crate) fn finish(command: Command) -> Output {
    finish_with_input(command, Vec::new())
}

/// Runs a program with this standard input to completion, and returns its output.
pub(crate) fn finish_with_input(mut command: Command, input: Vec<u8>) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    let mut stdin = child.stdin.take().expect("piped");
    let outputs =
        [read_all(child.stdout.take().expect("piped")), read_all(child.stderr.take().expect("piped"))];
    thread::spawn(move || drop(stdin.write_all(&input)));
    let status = wait(&mut child);
    let [stdout, stderr] = outputs.map(|output| output.join().expect("it ends with the process"));
    Output { status, stdout, stderr }
}

/// Waits for a process that should end soon. Kills the process at the time limit.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child process of the test") {
            return status;
        }
        if start.elapsed() > LIMIT {
            child.kill().expect("a child process of the test");
            panic!("a program took longer than {LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn read_all(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("a pipe");
        bytes
    })
}
