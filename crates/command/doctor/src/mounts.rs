//! Mounts of this user on this computer.
//!
//! A separate process queries each mount, because a process that queries an unresponsive mount cannot even be killed.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use command_line::failure::{Failure, Result};
use mount::ListedMount;
use serde::Serialize;
use transfer::local;

/// Timeout for a mount to report its agents. The mount contacts no other node for this answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Polling interval for the answer.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Option with which this program queries a mount, in a separate process.
const ASK: &str = "--ask-mount";

/// Extended attribute that has the names of the agents.
const AGENTS: &str = "user.starfish.agents";

/// Text that the querying process prints if the program of the mount has ended.
const ENDED: &str = "ended";

/// Mount of this user.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MountFinding {
    /// Mount point.
    pub directory: String,
    /// Agents of the mount; empty if the mount has not reported them.
    pub agents: Vec<String>,
    /// State of the mount.
    pub state: MountState,
    /// Time until the mount answered, in milliseconds.
    pub round_trip_ms: Option<f64>,
}

/// State of a mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MountState {
    /// The mount answers.
    Answers,
    /// The program of the mount has ended.
    Ended,
    /// The mount has not answered within the timeout.
    Silent,
    /// The query failed, for this reason.
    Unknown(String),
}

/// Returns the mounts of this user whose first agent is one of these.
pub fn find(agents: &[String]) -> Vec<MountFinding> {
    let user = nix::unistd::getuid().as_raw();
    let mounts = mount::mounts_of(user).into_iter().filter(|listed| is_of(listed, agents));
    let asked: Vec<_> = mounts.map(|listed| thread::spawn(move || look_at(&listed))).collect();
    asked.into_iter().filter_map(|asked| asked.join().ok()).collect()
}

/// Returns the problem of the mount at `directory` if the mount does not answer.
pub fn silence(directory: &Path) -> Option<Failure> {
    let finding = look_at(&ListedMount { source: String::new(), directory: directory.to_owned() });
    problem(&finding).filter(|_| finding.state == MountState::Silent)
}

/// True if the mount belongs to one of these agents. The name of a mount consists of the name of its first agent and
/// the number of its other agents.
fn is_of(listed: &ListedMount, agents: &[String]) -> bool {
    let first = listed.source.rsplit_once('+').map_or(&*listed.source, |(first, _)| first);
    agents.iter().any(|agent| agent == first)
}

fn look_at(listed: &ListedMount) -> MountFinding {
    let start = Instant::now();
    let (state, agents) = match ask(&listed.directory) {
        Ok(Some(output)) if output == ENDED => (MountState::Ended, Vec::new()),
        Ok(Some(output)) => (MountState::Answers, output.split(',').map(str::to_owned).collect()),
        Ok(None) => (MountState::Silent, Vec::new()),
        Err(why) => (MountState::Unknown(why), Vec::new()),
    };
    let answers = state == MountState::Answers;
    let round_trip_ms = answers.then(|| start.elapsed().as_secs_f64() * 1e3);
    MountFinding { directory: listed.directory.display().to_string(), agents, state, round_trip_ms }
}

/// Queries a mount in a separate process. Returns `None` after the timeout.
fn ask(directory: &Path) -> std::result::Result<Option<String>, String> {
    let words = [OsStr::new("doctor"), OsStr::new(ASK), directory.as_os_str()];
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let start = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if start.elapsed() > PATIENCE {
            // Do not wait for the process: if it hangs in the mount, it ends only when the mount answers or ends.
            let _ = child.kill();
            return Ok(None);
        }
        thread::sleep(LOOK_EVERY);
    }
    output_of(&mut child)
}

fn output_of(child: &mut Child) -> std::result::Result<Option<String>, String> {
    let (mut text, mut why) = (String::new(), String::new());
    if let (Some(output), Some(errors)) = (&mut child.stdout, &mut child.stderr) {
        let read = output.read_to_string(&mut text).and_then(|_| errors.read_to_string(&mut why));
        read.map_err(|error| error.to_string())?;
    }
    if text.is_empty() { Err(why.trim().to_owned()) } else { Ok(Some(text.trim().to_owned())) }
}

/// Requests the names of the agents from a mount, and prints them.
pub fn ask_here(directory: &Path) -> Result<()> {
    let mut room = [0; 64 << 10];
    let output = match rustix::fs::getxattr(directory, AGENTS, &mut room[..]) {
        Ok(bytes) => String::from_utf8_lossy(&room[..bytes]).into_owned(),
        Err(rustix::io::Errno::NOTCONN | rustix::io::Errno::CONNABORTED) => ENDED.to_owned(),
        Err(error) => {
            let kind: ErrorKind = error.kind();
            return Err(Failure::new(format!("asking {}", directory.display()), kind));
        }
    };
    local::print([output])
}

/// Returns remarks about mounts.
pub(crate) fn notes(mounts: &[MountFinding]) -> Vec<String> {
    let answering = mounts.iter().filter(|mount| mount.state == MountState::Answers);
    answering.map(|mount| format!("{} is a mount of {}.", mount.directory, mount.agents.join(", "))).collect()
}

/// Returns the problems of mounts.
pub(crate) fn problems(mounts: &[MountFinding]) -> Vec<Failure> {
    mounts.iter().filter_map(problem).collect()
}

fn problem(mount: &MountFinding) -> Option<Failure> {
    let what = format!("mount {}", mount.directory);
    let directory = &mount.directory;
    match &mount.state {
        MountState::Answers => None,
        MountState::Ended => {
            let remedy =
                format!("`starfish umount {directory}` removes the dead mount; then mount it again.");
            Some(Failure::new(what, "its process has ended").remedy(remedy))
        }
        MountState::Silent => {
            let why = format!("it has not answered for {} seconds", PATIENCE.as_secs());
            let remedy = format!(
                "Its log may show the reason. If its process is stopped, resume it (kill -CONT). Otherwise \
                 kill it, run `starfish umount --lazy {directory}`, and mount it again."
            );
            Some(Failure::new(what, why).remedy(remedy))
        }
        MountState::Unknown(why) => Some(Failure::new(what, why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_identified_by_its_first_agent() {
        let listed = |source: &str| ListedMount { source: source.into(), directory: "/mnt/x".into() };
        let agents = ["a:7117".to_owned(), "b:7117".to_owned()];
        assert!(is_of(&listed("a:7117+3"), &agents) && is_of(&listed("b:7117"), &agents));
        assert!(!is_of(&listed("c:7117+1"), &agents) && !is_of(&listed("starfish"), &agents));
    }

    #[test]
    fn a_broken_mount_is_reported_with_a_remedy() {
        let found = |state| MountFinding {
            directory: "/mnt/x".into(),
            agents: vec!["a:1".into(), "b:1".into()],
            state,
            round_trip_ms: None,
        };
        let all = [MountState::Answers, MountState::Ended, MountState::Silent].map(found);
        assert_eq!(notes(&all), ["/mnt/x is a mount of a:1, b:1."]);
        let texts: Vec<String> = problems(&all).iter().map(Failure::to_string).collect();
        assert_eq!(texts.len(), 2);
        assert!(
            texts[0].contains("has ended") && texts[0].contains("starfish umount /mnt/x"),
            "{}",
            texts[0]
        );
        assert!(texts[1].contains("for 5 seconds") && texts[1].contains("--lazy"), "{}", texts[1]);
    }
}
