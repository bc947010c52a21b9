//! What has been started, written down in a state directory: `agents.toml`.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use command_line::failure::{Failure, Result};
use node::agents;
use serde::{Deserialize, Serialize};

use crate::hosts::Wanted;
use crate::process::Process;

const HEAD: &str =
    "# Written by `starfish agents up`, read by `status`, `down` and commands that look for agents.\n";

/// A set of agents that is started together and stopped together. When it is stopped it is kept, to be started again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// More options of every agent.
    #[serde(default)]
    pub options: Vec<String>,
    /// The program on other hosts.
    #[serde(default)]
    pub program: Option<String>,
    /// The file of the cluster key that was named for it; nothing if it was the usual one.
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// The agents; files are dealt to their disks in this order.
    #[serde(default)]
    pub agents: Vec<Started>,
}

/// An agent of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// What tells it from others of the set.
    pub name: String,
    /// The host that ssh is to call; none for this computer.
    pub host: Option<String>,
    /// Where clients reach it: HOST:PORT.
    pub address: String,
    /// Directories of its disks; none for one of its own.
    #[serde(default)]
    pub roots: Vec<String>,
    /// What it said of its disks.
    pub disks: String,
    /// Its log, on its host.
    #[serde(default)]
    pub log: String,
    /// The process; none if it has been stopped.
    pub process: Option<Process>,
}

impl Started {
    /// Its port.
    pub fn port(&self) -> Option<u16> {
        self.address.rsplit_once(':')?.1.parse().ok()
    }

    /// What would start it again.
    pub fn wanted(&self) -> Wanted {
        let host = self.address.rsplit_once(':').map_or(&*self.address, |(host, _)| host);
        Wanted {
            name: self.name.clone(),
            host: self.host.clone(),
            address: host.to_owned(),
            // Of an agent of this computer it is only preferred.
            port: self.host.as_ref().and_then(|_| self.port()),
            roots: self.roots.clone(),
        }
    }
}

/// A state directory that no other command uses meanwhile.
pub struct State {
    directory: PathBuf,
    _lock: File,
}

/// The state directory: this one, or the usual one.
pub fn directory(given: Option<&Path>) -> Result<PathBuf> {
    let directory = given.map(Path::to_owned).or_else(agents::state_directory);
    let directory = directory.ok_or_else(|| {
        Failure::usage("the state directory", "there is no home directory").remedy("Give one with --dir DIR.")
    })?;
    std::path::absolute(&directory).map_err(|error| Failure::new(directory.display().to_string(), error))
}

/// What is recorded in a state directory; nothing if there is none.
pub fn read(directory: &Path) -> Result<Record> {
    let path = path(directory);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Record::default()),
        other => other.map_err(|error| Failure::new(path.display().to_string(), error))?,
    };
    toml::from_str(&text).map_err(|error| {
        Failure::new(path.display().to_string(), error.message())
            .remedy("Remove it if it is of no use any more. The agents it was about, if any, have to be stopped by hand.")
    })
}

fn path(directory: &Path) -> PathBuf {
    directory.join(agents::RECORD)
}

/// The name of an agent's directory in the state directory of its set.
pub(crate) fn directory_name(agent: &str) -> String {
    agent.replace([' ', ':', '[', ']'], "-")
}

/// Fails if the directory belongs to an agent of another set.
fn refuse_within_agent(directory: &Path) -> Result<()> {
    let owns = |set: &&Path| {
        let agents = read(set).map(|record| record.agents).unwrap_or_default();
        agents.iter().any(|agent| directory.starts_with(set.join(directory_name(&agent.name))))
    };
    match directory.ancestors().skip(1).find(owns) {
        Some(set) => {
            let failure = Failure::usage(directory.display().to_string(), "an agent keeps its files there");
            Err(failure.remedy(format!("Its set is that of --dir {}.", set.display())))
        }
        None => Ok(()),
    }
}

impl State {
    /// Takes the directory for this process. Makes it if need be.
    pub fn take(directory: PathBuf) -> Result<State> {
        refuse_within_agent(&directory)?;
        let failed = |error| Failure::new(directory.display().to_string(), error);
        fs::create_dir_all(&directory).map_err(failed)?;
        // A file that is there keeps its contents: a link may have the name.
        let lock =
            File::options().write(true).create(true).truncate(false).open(directory.join("agents.lock"));
        let lock = lock.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(State { directory, _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                let why = "another `starfish agents` is at work there";
                let failure = Failure::new(directory.display().to_string(), why);
                Err(failure.remedy("Wait until it has ended, or give another directory with --dir DIR."))
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What is recorded.
    pub fn read(&self) -> Result<Record> {
        read(&self.directory)
    }

    /// Records this instead, on the medium; all of it or nothing.
    pub fn write(&self, record: &Record) -> Result<()> {
        let path = path(&self.directory);
        let failed = |error: std::io::Error| Failure::new(path.display().to_string(), error);
        if record.agents.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        let text = toml::to_string(record).expect("a record can be written as TOML");
        let mut file = tempfile::NamedTempFile::new_in(&self.directory).map_err(failed)?;
        file.write_all(HEAD.as_bytes()).and_then(|()| file.write_all(text.as_bytes())).map_err(failed)?;
        // Or a power cut could leave an empty file, which is a record of no agents.
        file.as_file().sync_data().map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        File::open(&self.directory).and_then(|directory| directory.sync_all()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_taken_without_a_byte_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let other = directory.path().join("other");
        fs::write(&other, "precious").expect("room");
        std::os::unix::fs::symlink(&other, directory.path().join("agents.lock")).expect("room");
        State::take(directory.path().to_owned()).expect("ours");
        assert_eq!(fs::read(&other).expect("it is there"), b"precious");
    }

    #[test]
    fn what_is_written_is_read_and_one_process_at_a_time_may() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = State::take(directory.path().join("state")).expect("ours");
        assert_eq!(state.read().expect("nothing yet"), Record::default());
        let process = Process { number: 7, started: 9 };
        let agent = |host: Option<&str>, name: &str| Started {
            name: name.into(),
            host: host.map(str::to_owned),
            address: "127.0.0.1:7117".into(),
            roots: vec!["/a \"b\"".into()],
            disks: "1 disk: /a \"b\"".into(),
            log: "/a/log".into(),
            process: host.is_none().then_some(process),
        };
        let record = Record {
            options: vec!["--cache".into(), "1GiB".into()],
            key: None,
            program: Some("starfish".into()),
            agents: vec![agent(None, "local 0"), agent(Some("node1"), "node1:7117")],
        };
        assert_eq!(record.agents[0].wanted().port, None, "any other one will do");
        assert_eq!(record.agents[1].wanted().port, Some(7117));
        state.write(&record).expect("it can be written");
        assert_eq!(state.read().expect("it is there"), record);
        let within = State::take(state.directory().join("local-0/disk")).err().expect("an agent's");
        assert!(within.to_string().contains("an agent keeps its files there"), "{within}");
        let second = State::take(state.directory().to_owned());
        assert!(second.err().expect("taken").to_string().contains("another `starfish agents`"));
        state.write(&Record::default()).expect("it can be removed");
        assert!(!path(state.directory()).exists());
        fs::write(path(state.directory()), "agents = 3").expect("a file");
        assert!(state.read().expect_err("no record").to_string().contains("Remove it"));
    }
}
