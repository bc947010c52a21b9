//! Shell commands on a host: this computer, or another one that ssh reaches.
//!
//! A command goes to a `sh` over its standard input. So it need not be quoted for the login shell of the user there,
//! and both kinds of host are the same.

use std::io::{self, ErrorKind, Read, Write};
use std::process::{Child, Command, Output, Stdio};

use clap::Args;

use command_line::failure::{Failure, Result};

/// ssh ends with this if it is itself what failed.
const SSH_FAILED: i32 = 255;

/// A shell ends with this if there is no such program.
pub const NO_PROGRAM: i32 = 127;

/// How to reach hosts.
#[derive(Args, Clone, Debug)]
pub struct SshArgs {
    /// The command that reaches a host: it is given the host's name and what to run there.
    #[arg(long, value_name = "COMMAND", env = "STARFISH_SSH", default_value = SSH)]
    pub ssh: String,
}

/// No questions: there may be many hosts, and no user to answer. A host that stops in the middle of a command is given
/// up after three intervals.
const SSH: &str = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5";

impl SshArgs {
    /// The command, if it is not the one that would be used anyway.
    pub fn given(&self) -> Option<&str> {
        let usual = std::env::var("STARFISH_SSH").unwrap_or_else(|_| SSH.to_owned());
        Some(&*self.ssh).filter(|ssh| *ssh != usual)
    }
}

/// Where a shell command runs.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// The host that ssh is to call; none for this computer.
    name: Option<&'a str>,
    /// The command that reaches it.
    ssh: &'a str,
}

impl<'a> Host<'a> {
    /// The host of that name, or this computer.
    pub fn new(name: Option<&'a str>, ssh: &'a SshArgs) -> Self {
        Host { name, ssh: &ssh.ssh }
    }

    /// Whether it is another computer.
    pub fn is_remote(self) -> bool {
        self.name.is_some()
    }

    /// What the user calls it.
    pub fn name(self) -> &'a str {
        self.name.unwrap_or("this computer")
    }

    /// The address that ssh's configuration gives this host, or None if it gives none.
    pub fn configured_address(self) -> Option<String> {
        let mut words = self.ssh.split_whitespace();
        let mut command = Command::new(words.next()?);
        command.args(words).args(["-G", self.name?]).stdin(Stdio::null());
        let output = command.output().ok().filter(|output| output.status.success())?;
        let text = String::from_utf8(output.stdout).ok()?;
        let address = text.lines().find_map(|line| line.strip_prefix("hostname "))?;
        Some(if address.contains(':') { format!("[{address}]") } else { address.to_owned() })
    }

    /// Runs a shell command there, with its output and complaints.
    pub fn run(self, script: &str) -> Result<String> {
        let mut child = self.begin(script)?;
        drop(child.stdin.take());
        let Output { status, stdout, stderr } =
            child.wait_with_output().map_err(|error| self.failed(error))?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).into_owned());
        }
        Err(self.explain(status.code(), &String::from_utf8_lossy(&stderr)))
    }

    /// Begins a shell command there; its standard input stays open, behind the script.
    pub fn begin(self, script: &str) -> Result<Child> {
        let mut words = self.name.map(|_| self.ssh.split_whitespace()).into_iter().flatten();
        let mut command = match words.next() {
            Some(program) => Command::new(program),
            None => Command::new("sh"),
        };
        command.args(words);
        if let Some(name) = self.name {
            command.args([name, "sh"]);
        }
        let command = command.arg("-s").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| self.failed(error))?;
        let stdin = child.stdin.as_mut().expect("it was piped");
        match stdin.write_all(script.as_bytes()).and_then(|()| stdin.flush()) {
            // It ended early, and says why on its own.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(child),
            other => other.map(|()| child).map_err(|error| self.failed(error)),
        }
    }

    /// What a command's end without success means, and what to do about it.
    pub fn explain(self, code: Option<i32>, complaints: &str) -> Failure {
        let complaints = complaints.trim();
        // What a program of ours says of itself is within what this one says.
        let complaints = complaints.strip_prefix("starfish: ").unwrap_or(complaints);
        let why = if complaints.is_empty() { "it said nothing about why" } else { complaints };
        match (code, self.name) {
            (Some(SSH_FAILED), Some(host)) => {
                let failure = Failure::new(host, format!("ssh cannot get there: {why}"));
                failure.remedy(format!(
                    "Nobody is asked for a password: `{} {host} true` has to work. `ssh-copy-id {host}` gives it \
                     your key.",
                    self.ssh
                ))
            }
            (Some(NO_PROGRAM), _) => {
                let failure = Failure::new(self.name(), why);
                failure
                    .remedy("Install starfish there (make install), or say where it is with --program PATH.")
            }
            _ => Failure::new(self.name(), why),
        }
    }

    fn failed(self, error: io::Error) -> Failure {
        let program = self.name.and_then(|_| self.ssh.split_whitespace().next()).unwrap_or("sh");
        let failure = Failure::new(self.name(), format!("running {program}: {error}"));
        match error.kind() {
            ErrorKind::NotFound => failure.remedy(
                "Install an ssh client (Debian: openssh-client), or name another command with --ssh COMMAND.",
            ),
            _ => failure,
        }
    }
}

/// All that a process complains of, at most some kilobytes. Returns when it has ended.
pub fn complaints(errors: &mut impl Read) -> String {
    const BYTES_MAX: u64 = 16 << 10;
    let mut kept = Vec::new();
    // An error is an end too.
    let _ = errors.take(BYTES_MAX).read_to_end(&mut kept);
    String::from_utf8_lossy(&kept).into_owned()
}

/// A word of a shell command that stands for exactly this text.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// As [`quoted`], for people to read: without quotes where none are needed.
pub fn quoted_if_need_be(text: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "/._-:@%+=~".contains(character);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { quoted(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(command: &str) -> SshArgs {
        SshArgs { ssh: command.into() }
    }

    #[test]
    fn a_shell_takes_any_text_for_what_it_is() {
        for text in ["", "a b", "it's", "$HOME `id` \\ \"x\" *", "two\nlines", "ünï"] {
            let ssh = ssh("unused");
            let script = format!("printf %s {}\n", quoted(text));
            assert_eq!(Host::new(None, &ssh).run(&script).expect("it runs"), text);
        }
    }

    #[test]
    fn failures_name_the_host_and_the_remedy() {
        let none = ssh("/nonexistent/ssh -x");
        let failure = Host::new(Some("node1"), &none).run("true\n").expect_err("no ssh").to_string();
        assert!(
            failure.contains("node1: running /nonexistent/ssh") && failure.contains("openssh-client"),
            "{failure}"
        );
        let some = ssh("ssh");
        let cannot = Host::new(Some("node1"), &some).explain(Some(255), "Permission denied (publickey).\n");
        let text = cannot.to_string();
        assert!(
            text.contains("Permission denied (publickey).\n") && text.contains("ssh-copy-id node1"),
            "{text}"
        );
        let missing = Host::new(Some("node1"), &some).explain(Some(127), "no starfish").to_string();
        assert!(missing.contains("--program PATH"), "{missing}");
    }
}
