//! Agents with metrics and a log file.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::Agent;

/// Starts an agent with metrics at any free port. The agent logs to the file `log` of the directory. Returns the agent
/// and the address of its metrics.
pub(crate) fn watched(directory: &Path, roots: &[&str], options: &[&str]) -> (Agent, String) {
    let log = directory.join("log");
    // An earlier agent may have written to the file.
    let before = std::fs::metadata(&log).map_or(0, |found| found.len()) as usize;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec 2>> \"$1\"; shift; exec \"$@\"", "sh"])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_starfish"));
    shell.env_remove("JOURNAL_STREAM").env("STARFISH_LOG", "info");
    shell.env("STARFISH_METRICS", "0");
    let roots = roots.iter().map(|root| directory.join(root)).collect();
    let agent = Agent::start_by(shell, "127.0.0.1:0", roots, options);
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(&log).expect("a log");
        if let Some((_, rest)) = text[before..].split_once("metrics: http://")
            && let Some((address, _)) = rest.split_once("/metrics\n")
        {
            return (agent, address.to_owned());
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{text}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a request. Returns the head and the body of the answer.
pub(crate) fn ask(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
    stream.write_all(request.as_bytes()).expect("taken");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("text");
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{reply}"));
    (head.to_owned(), body.to_owned())
}
