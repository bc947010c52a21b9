//! Mounts of this user on this computer.
//!
//! A mount is asked by a process of its own: whoever asks one that does not answer cannot even be killed.

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

/// How long a mount may take to say which agents it is of. It asks nobody for that.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The option by which this program is the one that asks.
const ASK: &str = "--ask-mount";

/// The attribute that tells the agents.
const AGENTS: &str = "user.starfish.agents";

/// What the process that has asked says of a mount whose program has ended.
const ENDED: &str = "ended";

/// A mount.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MountFinding {
    /// Where it is mounted.
    pub directory: String,
    /// Its agents, if it says so.
    pub agents: Vec<String>,
    /// How it is.
    pub state: MountState,
    /// Time until it answered, in milliseconds.
    pub round_trip_ms: Option<f64>,
}

/// How a mount is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MountState {
    /// It answers.
    Answers,
    /// Its program has ended.
    Ended,
    /// It has not answered in time.
    Silent,
    /// It cannot be asked.
    Unknown(String),
}

/// The mounts of this user whose first agent is one of these.
pub fn find(agents: &[String]) -> Vec<MountFinding> {
    let user = nix::unistd::getuid().as_raw();
    let mounts = mount::mounts_of(user).into_iter().filter(|listed| is_of(listed, agents));
    let asked: Vec<_> = mounts.map(|listed| thread::spawn(move || look_at(&listed))).collect();
    asked.into_iter().filter_map(|asked| asked.join().ok()).collect()
}

/// What is wrong with the mount of a directory if it does not answer.
pub fn silence(directory: &Path) -> Option<Failure> {
    let finding = look_at(&ListedMount { source: String::new(), directory: directory.to_owned() });
    problem(&finding).filter(|_| finding.state == MountState::Silent)
}

/// A mount is called after the first of its agents, and how many more there are.
fn is_of(listed: &ListedMount, agents: &[String]) -> bool {
    let first = listed.source.rsplit_once('+').map_or(&*listed.source, |(first, _)| first);
    agents.iter().any(|agent| agent == first)
}

fn look_at(listed: &ListedMount) -> MountFinding {
    let start = Instant::now();
    let (state, agents) = match ask(&listed.directory) {
        Ok(Some(said)) if said == ENDED => (MountState::Ended, Vec::new()),
        Ok(Some(said)) => (MountState::Answers, said.split(',').map(str::to_owned).collect()),
        Ok(None) => (MountState::Silent, Vec::new()),
        Err(why) => (MountState::Unknown(why), Vec::new()),
    };
    let answers = state == MountState::Answers;
    let round_trip_ms = answers.then(|| start.elapsed().as_secs_f64() * 1e3);
    MountFinding { directory: listed.directory.display().to_string(), agents, state, round_trip_ms }
}

/// What a mount says, by way of a process of its own; nothing if that takes too long.
fn ask(directory: &Path) -> std::result::Result<Option<String>, String> {
    let words = [OsStr::new("doctor"), OsStr::new(ASK), directory.as_os_str()];
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let start = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if start.elapsed() > PATIENCE {
            // It ends when the mount answers or ends, and not before that; nobody waits for it.
            let _ = child.kill();
            return Ok(None);
        }
        thread::sleep(LOOK_EVERY);
    }
    said_by(&mut child)
}

fn said_by(child: &mut Child) -> std::result::Result<Option<String>, String> {
    let (mut said, mut why) = (String::new(), String::new());
    if let (Some(output), Some(errors)) = (&mut child.stdout, &mut child.stderr) {
        let read = output.read_to_string(&mut said).and_then(|_| errors.read_to_string(&mut why));
        read.map_err(|error| error.to_string())?;
    }
    if said.is_empty() { Err(why.trim().to_owned()) } else { Ok(Some(said.trim().to_owned())) }
}

/// Asks a mount for its agents, and says what it says.
pub fn ask_here(directory: &Path) -> Result<()> {
    let mut room = [0; 64 << 10];
    let said = match rustix::fs::getxattr(directory, AGENTS, &mut room[..]) {
        Ok(bytes) => String::from_utf8_lossy(&room[..bytes]).into_owned(),
        Err(rustix::io::Errno::NOTCONN | rustix::io::Errno::CONNABORTED) => ENDED.to_owned(),
        Err(error) => {
            let kind: ErrorKind = error.kind();
            return Err(Failure::new(format!("asking {}", directory.display()), kind));
        }
    };
    local::print([said])
}

/// What is to be known of mounts.
pub(crate) fn notes(mounts: &[MountFinding]) -> Vec<String> {
    let answering = mounts.iter().filter(|mount| mount.state == MountState::Answers);
    answering
        .map(|mount| format!("Mounted in {}: the files of {}.", mount.directory, mount.agents.join(", ")))
        .collect()
}

/// What is wrong with mounts.
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
                format!("`starfish umount {directory}` removes what is left of it; then mount it again.");
            Some(Failure::new(what, "its program has ended").remedy(remedy))
        }
        MountState::Silent => {
            let why = format!("it has not answered for {} seconds", PATIENCE.as_secs());
            let remedy = format!(
                "Its log may tell why. If its process is stopped, let it go on (kill -CONT); otherwise kill it, \
                 `starfish umount --lazy {directory}`, and mount it again."
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
    fn a_mount_is_known_by_its_first_agent() {
        let listed = |source: &str| ListedMount { source: source.into(), directory: "/mnt/x".into() };
        let agents = ["a:7117".to_owned(), "b:7117".to_owned()];
        assert!(is_of(&listed("a:7117+3"), &agents) && is_of(&listed("b:7117"), &agents));
        assert!(!is_of(&listed("c:7117+1"), &agents) && !is_of(&listed("starfish"), &agents));
    }

    #[test]
    fn what_is_wrong_has_a_remedy() {
        let found = |state| MountFinding {
            directory: "/mnt/x".into(),
            agents: vec!["a:1".into(), "b:1".into()],
            state,
            round_trip_ms: None,
        };
        let all = [MountState::Answers, MountState::Ended, MountState::Silent].map(found);
        assert_eq!(notes(&all), ["Mounted in /mnt/x: the files of a:1, b:1."]);
        let told: Vec<String> = problems(&all).iter().map(Failure::to_string).collect();
        assert_eq!(told.len(), 2);
        assert!(told[0].contains("has ended") && told[0].contains("starfish umount /mnt/x"), "{}", told[0]);
        assert!(told[1].contains("for 5 seconds") && told[1].contains("--lazy"), "{}", told[1]);
    }
}
