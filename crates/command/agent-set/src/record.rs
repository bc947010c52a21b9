//! Record of the started agents in a state directory: `agents.toml`.

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

/// Set of agents that are started and stopped together. A stopped set keeps its record, so that it can be restarted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Further options of every agent.
    #[serde(default)]
    pub options: Vec<String>,
    /// Path of the program on other hosts.
    #[serde(default)]
    pub program: Option<String>,
    /// File of the cluster key if the user named one; `None` for the default file.
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// The agents. Files are striped over their disks in this order.
    #[serde(default)]
    pub agents: Vec<Started>,
}

/// Agent of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// Unique name in the set.
    pub name: String,
    /// Name of the host for ssh; `None` for this computer.
    pub host: Option<String>,
    /// Address for clients: HOST:PORT.
    pub address: String,
    /// Directories of the disks; empty for one disk in the agent's state directory.
    #[serde(default)]
    pub roots: Vec<String>,
    /// Description of the disks, as the agent printed it.
    pub disks: String,
    /// Path of the log on the agent's host.
    #[serde(default)]
    pub log: String,
    /// Process of the agent; `None` if it was stopped.
    pub process: Option<Process>,
}

impl Started {
    /// Returns the port of the address.
    pub fn port(&self) -> Option<u16> {
        self.address.rsplit_once(':')?.1.parse().ok()
    }

    /// Returns the settings that start this agent again.
    pub fn wanted(&self) -> Wanted {
        let host = self.address.rsplit_once(':').map_or(&*self.address, |(host, _)| host);
        Wanted {
            name: self.name.clone(),
            host: self.host.clone(),
            address: host.to_owned(),
            // An agent on this computer may get another port; its old one is only preferred.
            port: self.host.as_ref().and_then(|_| self.port()),
            roots: self.roots.clone(),
        }
    }
}

/// State directory, locked against other commands.
pub struct State {
    directory: PathBuf,
    _lock: File,
}

/// Returns the absolute path of the `given` state directory, or of the default one.
pub fn directory(given: Option<&Path>) -> Result<PathBuf> {
    let directory = given.map(Path::to_owned).or_else(agents::state_directory);
    let directory = directory.ok_or_else(|| {
        Failure::usage("the state directory", "there is no home directory").remedy("Give one with --dir DIR.")
    })?;
    std::path::absolute(&directory).map_err(|error| Failure::new(directory.display().to_string(), error))
}

/// Reads the record of a state directory; an empty record if there is no file.
pub fn read(directory: &Path) -> Result<Record> {
    let path = path(directory);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Record::default()),
        other => other.map_err(|error| Failure::new(path.display().to_string(), error))?,
    };
    toml::from_str(&text).map_err(|error| {
        Failure::new(path.display().to_string(), error.message())
            .remedy("If the file cannot be restored, stop its agents by hand and remove it.")
    })
}

fn path(directory: &Path) -> PathBuf {
    directory.join(agents::RECORD)
}

/// Returns the name of an agent's directory in the state directory of its set.
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
            let failure =
                Failure::usage(directory.display().to_string(), "it is inside the directory of an agent");
            Err(failure.remedy(format!("The set of that agent is in --dir {}.", set.display())))
        }
        None => Ok(()),
    }
}

impl State {
    /// Locks the directory for this process. Creates it if it is missing.
    pub fn take(directory: PathBuf) -> Result<State> {
        refuse_within_agent(&directory)?;
        let failed = |error| Failure::new(directory.display().to_string(), error);
        fs::create_dir_all(&directory).map_err(failed)?;
        // Do not truncate an existing file, because the name may be a link to another file.
        let lock =
            File::options().write(true).create(true).truncate(false).open(directory.join("agents.lock"));
        let lock = lock.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(State { directory, _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                let why = "another `starfish agents` command uses this directory";
                let failure = Failure::new(directory.display().to_string(), why);
                Err(failure.remedy("Wait until it ends, or give another directory with --dir DIR."))
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Returns the path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads the record.
    pub fn read(&self) -> Result<Record> {
        read(&self.directory)
    }

    /// Replaces the record atomically and durably.
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
        // Without a sync, a power cut could leave an empty file, which would be a record without agents.
        file.as_file().sync_data().map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        File::open(&self.directory).and_then(|directory| directory.sync_all()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_the_lock_does_not_write_through_a_symbolic_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let other = directory.path().join("other");
        fs::write(&other, "precious").expect("room");
        std::os::unix::fs::symlink(&other, directory.path().join("agents.lock")).expect("room");
        State::take(directory.path().to_owned()).expect("it belongs to the test");
        assert_eq!(fs::read(&other).expect("it exists"), b"precious");
    }

    #[test]
    fn a_record_is_read_as_written_by_one_process_at_a_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = State::take(directory.path().join("state")).expect("it belongs to the test");
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
        assert_eq!(state.read().expect("it exists"), record);
        let within = State::take(state.directory().join("local-0/disk")).err().expect("an agent's");
        assert!(within.to_string().contains("it is inside the directory of an agent"), "{within}");
        let second = State::take(state.directory().to_owned());
        assert!(second.err().expect("taken").to_string().contains("another `starfish agents`"));
        state.write(&Record::default()).expect("it can be removed");
        assert!(!path(state.directory()).exists());
        fs::write(path(state.directory()), "agents = 3").expect("a file");
        assert!(state.read().expect_err("no record").to_string().contains("remove it"));
    }
}
