//! Shell commands on a host: this computer, or another one, over ssh.
//!
//! A command is sent to the standard input of `sh`. So the user's login shell need not parse it, and commands run the
//! same way on this computer and over ssh.

use std::io::{self, ErrorKind, Read, Write};
use std::process::{Child, Command, Output, Stdio};

use clap::Args;

use command_line::failure::{Failure, Result};

/// Exit code of ssh if ssh itself failed.
const SSH_FAILED: i32 = 255;

/// Exit code of a shell if the program does not exist.
pub const NO_PROGRAM: i32 = 127;

/// Options for reaching hosts.
#[derive(Args, Clone, Debug)]
pub struct SshArgs {
    /// Command that runs another command on a host; its last arguments are the host and that command.
    #[arg(long, value_name = "COMMAND", env = "STARFISH_SSH", default_value = SSH)]
    pub ssh: String,
}

/// ssh must ask no questions, because there may be many hosts and no user to answer. It abandons a host that does not
/// respond for three intervals during a command.
const SSH: &str = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5";

impl SshArgs {
    /// Returns the command if it differs from the default command.
    pub fn given(&self) -> Option<&str> {
        let usual = std::env::var("STARFISH_SSH").unwrap_or_else(|_| SSH.to_owned());
        Some(&*self.ssh).filter(|ssh| *ssh != usual)
    }
}

/// Host that runs shell commands.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// Name of the host for ssh; `None` for this computer.
    name: Option<&'a str>,
    /// Command that reaches the host.
    ssh: &'a str,
}

impl<'a> Host<'a> {
    /// Returns the named host; without a name, this computer.
    pub fn new(name: Option<&'a str>, ssh: &'a SshArgs) -> Self {
        Host { name, ssh: &ssh.ssh }
    }

    /// True if this is another computer.
    pub fn is_remote(self) -> bool {
        self.name.is_some()
    }

    /// Returns the name for messages to the user.
    pub fn name(self) -> &'a str {
        self.name.unwrap_or("this computer")
    }

    /// Returns the address of this host in ssh's configuration, or `None` if it has no address.
    pub fn configured_address(self) -> Option<String> {
        let mut words = self.ssh.split_whitespace();
        let mut command = Command::new(words.next()?);
        command.args(words).args(["-G", self.name?]).stdin(Stdio::null());
        let output = command.output().ok().filter(|output| output.status.success())?;
        let text = String::from_utf8(output.stdout).ok()?;
        let address = text.lines().find_map(|line| line.strip_prefix("hostname "))?;
        Some(if address.contains(':') { format!("[{address}]") } else { address.to_owned() })
    }

    /// Runs a shell command on the host and returns its standard output. If the command fails, its standard error
    /// becomes part of the failure.
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

    /// Starts a shell command on the host. Its standard input stays open after the script.
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
            // The command ended early, and reports the reason on its standard error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(child),
            other => other.map(|()| child).map_err(|error| self.failed(error)),
        }
    }

    /// Returns the failure for a command that ended without success, with a remedy.
    pub fn explain(self, code: Option<i32>, complaints: &str) -> Failure {
        let complaints = complaints.trim();
        // Remove the prefix of our own programs, because this program adds the same prefix to its message.
        let complaints = complaints.strip_prefix("starfish: ").unwrap_or(complaints);
        let why = if complaints.is_empty() { "the command ended without a message" } else { complaints };
        match (code, self.name) {
            (Some(SSH_FAILED), Some(host)) => {
                let failure = Failure::new(host, format!("ssh cannot connect: {why}"));
                failure.remedy(format!(
                    "starfish enters no passwords: `{} {host} true` must work without one. `ssh-copy-id \
                     {host}` installs your public key there.",
                    self.ssh
                ))
            }
            (Some(NO_PROGRAM), _) => {
                let failure = Failure::new(self.name(), why);
                failure.remedy(
                    "Install starfish on that host (make install), or give its path there with --program \
                     PATH.",
                )
            }
            _ => Failure::new(self.name(), why),
        }
    }

    fn failed(self, error: io::Error) -> Failure {
        let program = self.name.and_then(|_| self.ssh.split_whitespace().next()).unwrap_or("sh");
        let failure = Failure::new(self.name(), format!("cannot run {program}: {error}"));
        match error.kind() {
            ErrorKind::NotFound => failure.remedy(
                "Install an ssh client (Debian: openssh-client), or name another command with --ssh COMMAND.",
            ),
            _ => failure,
        }
    }
}

/// Returns the standard error of a process, at most 16 KiB. Blocks until the process closes the stream or the
/// limit is reached.
pub fn complaints(errors: &mut impl Read) -> String {
    const BYTES_MAX: u64 = 16 << 10;
    let mut kept = Vec::new();
    // A read error ends the text like the end of the stream.
    let _ = errors.take(BYTES_MAX).read_to_end(&mut kept);
    String::from_utf8_lossy(&kept).into_owned()
}

/// Quotes a text as one word of a shell command.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Quotes a text for people: like [`quoted`], but without quotes if the shell needs none.
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
    fn a_shell_reads_quoted_text_unchanged() {
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
            failure.contains("node1: cannot run /nonexistent/ssh") && failure.contains("openssh-client"),
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
