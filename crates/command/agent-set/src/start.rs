//! Starts agents, which continue only if the start of the whole set succeeds.
//!
//! ```text
//!  starfish agents up          starfish agent --detach            starfish agent
//!       --- the command, by sh or ssh --->  starts ------------------> listens
//!       <------ listening on ADDRESS ---------------------------------
//!       <------ process NUMBER STARTED ---
//!       <------ log PATH -----------------
//!       ... until all agents run, and are recorded ...
//!       ------- stay ADDRESSES ---------->  ends  - stay ADDRESSES --> continues alone
//! ```
//!
//! Until it receives `stay`, an agent ends when its standard input is closed. So no unrecorded agent remains if the
//! command is interrupted or fails, or if the connection breaks.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin};
use std::thread;
use std::time::{Duration, Instant};

use command_line::failure::{self, Failure, Result};
use command_line::say;
use node::key;

use crate::host::{Host, NO_PROGRAM, complaints, quoted};
use crate::hosts::Wanted;
use crate::process::Process;
use crate::record::{self, Started};

/// Text that a ready agent prints before its address.
pub const READY: &str = "listening on ";

/// Text that the starter prints next, before the process number and the start time of the agent.
pub const PROCESS: &str = "process ";

/// Text that the starter prints last, before the path of the agent's log.
pub const LOG: &str = "log ";

/// First word of the line that detaches an agent from its standard input. The addresses of all agents of the set
/// follow, separated by commas.
const STAY: &str = "stay ";

/// Returns the addresses of all agents of the set if `line` detaches the agent, otherwise `None`.
pub fn agents_to_detach(line: &str) -> Option<Vec<String>> {
    let agents = line.strip_prefix(STAY)?.strip_suffix('\n')?;
    Some(agents.split(',').map(str::to_owned).collect())
}

/// Exit code of a program that rejects its arguments.
const REFUSES_ARGUMENTS: i32 = failure::USAGE as i32;

/// Time limit for an agent to become ready. It is ample, because an agent only has to create some directories.
const READY_MAX: Duration = Duration::from_secs(60);

/// Settings for starting agents.
#[derive(Debug)]
pub struct Start<'a> {
    /// Path of the program on this computer.
    pub program: &'a Path,
    /// Path of the program on other hosts.
    pub remote_program: &'a str,
    /// State directory for the agents of this computer.
    pub directory: &'a Path,
    /// Cluster key of the agents.
    pub key: KeyFile,
    /// Further options of every agent.
    pub options: &'a [String],
    /// True if agents that already ran before may create their disks, too.
    pub create: bool,
}

/// File of the cluster key on this computer.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    /// Contents of the file on one line: letters, digits and blanks.
    text: String,
}

impl KeyFile {
    /// Reads the key in this file. Creates the file if it is missing.
    pub fn take(path: PathBuf) -> Result<KeyFile> {
        if key::make(&path, true)? {
            say!("Created the cluster key {}. Agents accept only programs with this key.", path.display());
        }
        let text = key::text(&key::read(&path)?);
        let path =
            std::path::absolute(&path).map_err(|error| Failure::new(path.display().to_string(), error))?;
        Ok(KeyFile { path, text })
    }
}

/// Agent that listens. It ends when this process ends or this value is dropped, unless [`stay`](Self::stay) detaches
/// it.
pub struct Starting {
    /// Record of the agent, for the record of the set.
    pub started: Started,
    child: Child,
    word: Option<ChildStdin>,
}

impl Start<'_> {
    /// Starts an agent on its host. An agent that has run `before` gets the same port again, if `wanted` names no port
    /// and the port is free. Its disks must exist, unless `create` is set or its directories changed.
    pub fn start(&self, wanted: &Wanted, host: Host<'_>, before: Option<&Started>) -> Result<Starting> {
        let port = before.and_then(Started::port);
        let is_new = self.create || before.is_none_or(|before| before.roots != wanted.roots);
        let first = self.start_at(wanted, host, wanted.port.or(port), is_new);
        match first {
            // Another process has taken the port since.
            Err(_) if wanted.port.is_none() && port.is_some() => self.start_at(wanted, host, None, is_new),
            other => other,
        }
    }

    fn start_at(&self, wanted: &Wanted, host: Host<'_>, port: Option<u16>, is_new: bool) -> Result<Starting> {
        let mut child = host.begin(&self.script(wanted, host, port, is_new))?;
        let word = child.stdin.take();
        let (sender, lines) = flume::unbounded();
        let output = BufReader::new(child.stdout.take().expect("it was piped"));
        thread::spawn(move || {
            output.lines().map_while(std::result::Result::ok).try_for_each(|line| sender.send(line))
        });
        let ready_by = Instant::now() + READY_MAX;
        let line = || lines.recv_deadline(ready_by);
        let first_lines = (line(), line(), line());
        if let (Ok(ready), Ok(process), Ok(log)) = &first_lines
            && let Some(started) = started(wanted, ready, process, log)
        {
            return Ok(Starting { started, child, word });
        }
        drop(word);
        if first_lines.2 == Err(flume::RecvTimeoutError::Timeout) {
            // The network may be blocked. Then the agent ends when its connection breaks.
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::new(
                &wanted.name,
                format!("the agent did not start within {} s", READY_MAX.as_secs()),
            ));
        }
        let why = complaints(&mut child.stderr.take().expect("it was piped"));
        let status = child.wait().map_err(|error| Failure::new(&wanted.name, error))?;
        match first_lines.0 {
            Ok(line) if status.success() => {
                Err(Failure::new(&wanted.name, format!("its starfish printed an unexpected line: {line:?}")))
            }
            _ => Err(not_started(host, status.code(), &why)),
        }
    }

    /// Returns the shell script that ends by executing the starter of the agent.
    fn script(&self, wanted: &Wanted, host: Host<'_>, port: Option<u16>, is_new: bool) -> String {
        let own = record::directory_name(&wanted.name);
        let (program, base, at) = if host.is_remote() {
            // `make install` may install the program in a directory that is not in the `PATH` of shells that ssh
            // starts.
            let base = format!("\"${{XDG_STATE_HOME:-$HOME/.local/state}}/starfish\"/{}", quoted(&own));
            (quoted(self.remote_program), base, String::new())
        } else {
            let base = quoted(&self.directory.join(&own).to_string_lossy());
            (quoted(&self.program.to_string_lossy()), base, wanted.address.clone())
        };
        let listen = quoted(&format!("{at}:{}", port.unwrap_or(0)));
        let mut roots: Vec<String> = wanted.roots.iter().map(|root| quoted(root)).collect();
        // Disks that an agent has served before must exist: a missing disk is not mounted, or was moved.
        let create = if is_new { " --create" } else { "" };
        if roots.is_empty() {
            roots.push("\"$base/disk\"".into());
        }
        let options: Vec<String> = self.options.iter().map(|option| quoted(option)).collect();
        let (carry_key, key) = self.key_script(host);
        format!(
            "PATH=\"$PATH:$HOME/.local/bin\"\nprogram={program}\nbase={base}\nmkdir -p \"$base\" || exit 1\n{carry_key}\
             command -v \"$program\" > /dev/null || {{ echo \"there is no program $program\" >&2; exit {NO_PROGRAM}; }}\n\
             exec \"$program\" agent --detach \"$base/log\" --listen {listen} --key {key}{create} --root {} {}\n",
            roots.join(" "),
            options.join(" ")
        )
    }
}

impl Start<'_> {
    /// Returns shell commands that copy the key to the host, and the quoted path of the key file on the host.
    ///
    /// The key appears in no list of processes: the commands are sent over standard input, and `printf` is a shell
    /// builtin. The agent has a separate key file, so that a host can belong to several clusters. The commands also
    /// copy the key to the default place of the user's programs on the host, unless there is a key already.
    fn key_script(&self, host: Host<'_>) -> (String, String) {
        let KeyFile { path, text } = &self.key;
        if !host.is_remote() {
            return (String::new(), quoted(&path.to_string_lossy()));
        }
        let carry = format!(
            "(\numask 077\nprintf '%s\\n' '{text}' > \"$base/key.new\" && mv \"$base/key.new\" \"$base/key\" || exit 1\n\
             usual=\"${{XDG_CONFIG_HOME:-$HOME/.config}}/starfish\"\n\
             [ -e \"$usual/key\" ] || {{ mkdir -p \"$usual\" && cp \"$base/key\" \"$usual/key\"; }}\n) || exit 1\n"
        );
        (carry, "\"$base/key\"".to_owned())
    }
}

impl Starting {
    /// Detaches the agent. Sends it the addresses of all agents of its set.
    ///
    /// # Errors
    /// If the agent ends.
    pub fn stay(mut self, agents: &[String]) -> Result<()> {
        let failed =
            |error| Failure::new(&self.started.name, format!("cannot leave the agent running: {error}"));
        if let Some(mut word) = self.word.take() {
            writeln!(word, "{STAY}{}", agents.join(",")).map_err(failed)?;
        }
        let status = self.child.wait().map_err(failed)?;
        if status.success() {
            return Ok(());
        }
        let why = format!("the agent could not continue in the background ({status})");
        Err(Failure::new(&self.started.name, why).remedy("`starfish agents status` shows its state."))
    }
}

/// Returns the failure of an agent that did not start. The agent's own output contains a remedy, except when the agent
/// rejects the arguments of this program.
fn not_started(host: Host<'_>, code: Option<i32>, complaints: &str) -> Failure {
    let failure = host.explain(code, complaints);
    match code {
        Some(REFUSES_ARGUMENTS) => failure.remedy(format!(
            "`starfish agent --help` lists the options of agents. If the host has another version of \
             starfish, install version {} there.",
            env!("CARGO_PKG_VERSION")
        )),
        _ => failure,
    }
}

/// Parses the three lines that an agent and its starter print.
fn started(wanted: &Wanted, ready: &str, process: &str, log: &str) -> Option<Started> {
    let (address, disks) = ready.strip_prefix(READY)?.split_once(", ")?;
    let (_, port) = address.rsplit_once(':')?;
    let (number, started) = process.strip_prefix(PROCESS)?.split_once(' ')?;
    Some(Started {
        name: wanted.name.clone(),
        host: wanted.host.clone(),
        address: format!("{}:{port}", wanted.address),
        roots: wanted.roots.clone(),
        disks: disks.to_owned(),
        log: log.strip_prefix(LOG)?.to_owned(),
        process: Some(Process { number: number.parse().ok()?, started: started.parse().ok()? }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts;

    #[test]
    fn the_three_lines_of_an_agent_are_parsed() {
        let wanted = &hosts::local(1)[0];
        let ready = "listening on 127.0.0.1:4711, 1 disk: /a, b";
        let agent = started(wanted, ready, "process 17 99", "log /a log").expect("they are right");
        assert_eq!(
            (&*agent.address, &*agent.disks, &*agent.log),
            ("127.0.0.1:4711", "1 disk: /a, b", "/a log")
        );
        assert_eq!(agent.process, Some(Process { number: 17, started: 99 }));
        for (ready, process) in [("hello", "process 1 2"), ("listening on x, y", "process 1 2"), ("", "")] {
            assert_eq!(started(wanted, ready, process, "log /log"), None);
        }
        assert_eq!(started(wanted, "listening on a:1, 1 disk: x", "process 1", "log /log"), None);
        assert_eq!(started(wanted, ready, "process 17 99", "/log"), None);
        assert_eq!(agents_to_detach("stay a:1,b:2\n"), Some(vec!["a:1".to_owned(), "b:2".to_owned()]));
        assert_eq!(agents_to_detach("stay a:1"), None, "it was cut");
    }
}
