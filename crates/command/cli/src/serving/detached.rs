//! Starts an agent in the background. This process starts the agent, waits until the agent listens, and leaves it
//! running.
//!
//! `agent-set/src/start.rs` describes the messages between this process and the requesting process.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use command_line::failure::{Failure, Result};

use agent_set::process::Process;
use agent_set::start::{LOG, PROCESS, agents_to_detach};
use transfer::local;

const WHAT: &str = "cannot start an agent in the background";

/// Starts an agent with this process's options. Returns when the agent may run on. Fails if the agent ends, or if the
/// requesting process rejects it.
pub(crate) fn start(path: &Path) -> Result<()> {
    let failed = |error: io::Error| Failure::new(WHAT, error);
    // In a new session, Ctrl-C does not reach the agent. This call fails only for a process group leader; ignore that.
    let _ = nix::unistd::setsid();
    let path = std::path::absolute(path).map_err(failed)?;
    let mut log = local::open_log(&path)?;
    let begin = log.seek(SeekFrom::End(0)).map_err(failed)?;
    let mut child = Command::new(env::current_exe().map_err(failed)?)
        .args(own_arguments())
        .arg("--until-input-ends")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log.try_clone().map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("it was piped"));
    output.read_line(&mut line).map_err(failed)?;
    let process = Process::of_this_computer(child.id()).filter(|_| !line.is_empty());
    let Some(Process { number, started }) = process else {
        return Err(ended(&mut child, log, begin));
    };
    let log = format!("{LOG}{}", path.display());
    local::print([line.trim_end().to_owned(), format!("{PROCESS}{number} {started}"), log])?;
    let mut word = String::new();
    io::stdin().read_line(&mut word).map_err(failed)?;
    let mut input = child.stdin.take().expect("it was piped");
    if agents_to_detach(&word).is_some() {
        return input.write_all(word.as_bytes()).map_err(failed);
    }
    drop(input);
    child.wait().map_err(failed)?;
    Err(Failure::new(WHAT, "the command that started it ended"))
}

/// Returns the arguments of this process without `--detach` and its value.
fn own_arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if let Some(index) = arguments.iter().position(|argument| argument == "--detach") {
        arguments.drain(index..(index + 2).min(arguments.len()));
    }
    arguments
}

/// Returns the failure of an agent that has ended, with the text of its log from byte `begin` on.
fn ended(child: &mut Child, mut log: File, begin: u64) -> Failure {
    // An agent that printed no line is ending.
    let _ = child.wait();
    let mut text = String::new();
    let read = log.seek(SeekFrom::Start(begin)).and_then(|_| log.read_to_string(&mut text));
    let text = text.trim().trim_start_matches("starfish: ");
    match read {
        Ok(_) if !text.is_empty() => Failure::new(WHAT, text),
        _ => Failure::new(WHAT, "it ended without a message"),
    }
}
