//! Checks that started processes still run, and stops them.
//!
//! A process is identified by its number and its start time, since the kernel reuses numbers. The shell commands here
//! need Linux: both values come from `/proc`.

use std::fs;

use command_line::failure::Result;
use serde::{Deserialize, Serialize};

use crate::host::Host;

/// Process on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process number.
    pub number: u32,
    /// Start time, in the kernel's clock ticks since the host booted.
    pub started: u64,
}

/// Defines the shell function `same`: true if the process still exists and is no zombie. In `/proc/PID/stat` the name
/// is in parentheses and may contain any character. After the name, the first word is the state and the twentieth word
/// is the start time.
const SAME: &str = r"same() {
    set -- $(sed 's/.*) //' /proc/$process/stat 2>/dev/null)
    [ $# -ge 20 ] && [ $1 != Z ] && [ ${20} = $started ]
}
";

/// Stops the process and waits up to 30 s, long enough for an agent to write its memory to disk. A suspended process
/// gets SIGCONT, because it ends only when it runs.
const STOP: &str = r"same || { echo gone; exit; }
kill -s TERM $process
kill -s CONT $process 2> /dev/null
n=0
while same && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done
if same; then echo running; else echo stopped; fi
";

/// Result of stopping a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The process has ended.
    Now,
    /// The process had ended before.
    Before,
    /// The process still runs after the timeout.
    NotYet,
}

impl Process {
    /// Returns process `number` of this computer, if it runs.
    pub fn of_this_computer(number: u32) -> Option<Process> {
        let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let started = text.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()?;
        Some(Process { number, started })
    }

    /// True if the process still runs on that host.
    pub fn runs(self, host: Host<'_>) -> Result<bool> {
        let output = host.run(&self.script("if same; then echo running; else echo gone; fi\n"))?;
        Ok(output.trim() == "running")
    }

    /// Sends the process SIGTERM and waits up to 30 s until it has ended.
    pub fn stop(self, host: Host<'_>) -> Result<Stopped> {
        let output = host.run(&self.script(STOP))?;
        Ok(match output.trim() {
            "gone" => Stopped::Before,
            "stopped" => Stopped::Now,
            _ => Stopped::NotYet,
        })
    }

    fn script(self, what: &str) -> String {
        let Process { number, started } = self;
        format!("process={number}\nstarted={started}\n{SAME}{what}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::SshArgs;

    #[test]
    fn a_reused_process_number_is_another_process() {
        let ssh = SshArgs { ssh: String::new() };
        let host = Host::new(None, &ssh);
        let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("a process");
        let process = Process::of_this_computer(child.id()).expect("it runs");
        assert!(process.runs(host).expect("a shell"));
        let other = Process { started: process.started + 1, ..process };
        assert!(!other.runs(host).expect("a shell"));
        assert_eq!(other.stop(host).expect("a shell"), Stopped::Before);
        assert_eq!(process.stop(host).expect("a shell"), Stopped::Now, "a zombie is no running process");
        child.wait().expect("a child process of the test");
        assert_eq!(process.stop(host).expect("a shell"), Stopped::Before);
    }

    #[test]
    fn a_suspended_process_can_be_stopped() {
        let ssh = SshArgs { ssh: String::new() };
        let host = Host::new(None, &ssh);
        let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("a process");
        let process = Process::of_this_computer(child.id()).expect("it runs");
        host.run(&format!("kill -s STOP {}\n", child.id())).expect("it belongs to the test");
        assert!(process.runs(host).expect("a shell"));
        assert_eq!(process.stop(host).expect("a shell"), Stopped::Now);
        child.wait().expect("a child process of the test");
    }
}
