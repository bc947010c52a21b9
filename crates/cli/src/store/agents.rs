//! Which agents make up the file system: the first of these that says so.
//!
//! 1. `--agents HOST:PORT,HOST:PORT`
//! 2. the environment variable `STARFISH_AGENTS`, written the same way
//! 3. a configuration file: `--config FILE`, or `starfish/config.toml` in the user's configuration directory
//! 4. the agents that `starfish agents up` has started

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;

use crate::agent_set::record;
use crate::failure::{Failure, Result};

/// The options that say where the agents are.
#[derive(Args, Clone, Debug)]
pub(crate) struct AgentsArgs {
    /// The agents, as HOST:PORT, separated by commas.
    #[arg(long, value_name = "HOST:PORT,...", env = "STARFISH_AGENTS", value_delimiter = ',')]
    pub(crate) agents: Vec<String>,

    /// File that names the agents: `agents = ["HOST:PORT", ...]`.
    ///
    /// Without this option, ~/.config/starfish/config.toml is looked at, and then what `starfish agents up` has
    /// started.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// An agent as the user calls it, and where that is.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    /// As the user wrote it.
    pub(crate) name: String,
    /// What that stands for.
    pub(crate) address: SocketAddr,
}

/// What a configuration file says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    agents: Vec<String>,
}

const WHAT: &str = "finding the agents";

const REMEDY: &str = "Name them with --agents HOST:PORT,... or in STARFISH_AGENTS, or write \
                      agents = [\"HOST:PORT\"] into ~/.config/starfish/config.toml. \
                      `starfish agents up --local 4` starts some on this computer.";

impl AgentsArgs {
    /// These very agents, as if the user had named them.
    pub(crate) fn of(agents: Vec<String>) -> Self {
        AgentsArgs { agents, config: None }
    }

    /// What the user calls the agents. There is at least one.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let named: Vec<&str> =
            self.agents.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
        let names =
            if named.is_empty() { self.configured()? } else { named.into_iter().map(Into::into).collect() };
        if names.is_empty() {
            return Err(Failure::usage(WHAT, "none is named anywhere").remedy(REMEDY));
        }
        Ok(names)
    }

    /// The agents, each with its address. There is at least one.
    pub(crate) fn find(&self) -> Result<Vec<Agent>> {
        let agents: Vec<Agent> =
            self.names()?.iter().map(|name| Agent::named(name)).collect::<Result<_>>()?;
        for (index, agent) in agents.iter().enumerate() {
            if let Some(same) = agents[..index].iter().find(|other| other.address == agent.address) {
                let why = format!("{} and {} are the same", same.name, agent.name);
                return Err(Failure::usage(WHAT, why).remedy("Name every agent once."));
            }
        }
        Ok(agents)
    }

    /// What the configuration file says; nothing if there is none and none was asked for.
    fn configured(&self) -> Result<Vec<String>> {
        if let Some(path) = &self.config {
            return read(path)?.ok_or_else(|| Failure::usage(path.display().to_string(), "no such file"));
        }
        let found = usual_path().map(|path| read(&path)).transpose()?;
        found.flatten().map_or_else(started, Ok)
    }
}

/// What `starfish agents up` has started; nothing if it was not used.
fn started() -> Result<Vec<String>> {
    let record = record::usual_directory().map(|directory| record::read(&directory)).transpose()?;
    Ok(record.unwrap_or_default().agents.into_iter().map(|agent| agent.address).collect())
}

/// Where the configuration file is if nobody says otherwise (XDG Base Directory Specification).
fn usual_path() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let home = || env::home_dir().map(|home| home.join(".config"));
    let directory = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).and_then(absolute).or_else(home)?;
    Some(directory.join("starfish/config.toml"))
}

fn read(path: &Path) -> Result<Option<Vec<String>>> {
    let file = path.display().to_string();
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| Failure::usage(&file, error))?,
    };
    let configuration: Configuration = toml::from_str(&text).map_err(|error| {
        Failure::usage(&file, error.message()).remedy("Expected: agents = [\"HOST:PORT\", ...]")
    })?;
    Ok(Some(configuration.agents))
}

impl Agent {
    /// The agent that is called HOST:PORT.
    pub(crate) fn named(name: &str) -> Result<Agent> {
        let mut addresses = name.to_socket_addrs().map_err(|error| {
            Failure::usage(format!("agent {name}"), error)
                .remedy("An agent is written HOST:PORT, as in 127.0.0.1:7117.")
        })?;
        let address =
            addresses.next().ok_or_else(|| Failure::usage(format!("agent {name}"), "it has no address"))?;
        Ok(Agent { name: name.to_owned(), address })
    }
}
