//! The agents of the file system, from the first of these sources that names any agents:
//!
//! 1. `--agents HOST:PORT,HOST:PORT`
//! 2. the environment variable `STARFISH_AGENTS`, in the same form
//! 3. a configuration file: `--config FILE`
//! 4. the files and records of [`agents::usual`]

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use command_line::failure::{Failure, Result};
use node::{TRACE_VARIABLE, agents, key};
use transfer::cluster::Cluster;

/// Options that name the agents.
#[derive(Args, Clone, Debug)]
pub(crate) struct AgentsArgs {
    /// The agents, as HOST:PORT, separated by commas.
    #[arg(long, value_name = "HOST:PORT,...", env = "STARFISH_AGENTS", value_delimiter = ',')]
    pub(crate) agents: Vec<String>,

    /// File that names the agents: `agents = ["HOST:PORT", ...]`.
    ///
    /// Default: the agents in PDIOLCONF, ~/PDIOLconf or ~/.config/starfish/config.toml, or those started by `starfish
    /// agents up`.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) key: KeyArgs,

    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

/// Options that have no effect without agents; `option_checks.rs` rejects them then.
pub(crate) const ASKED_AGENTS: [&str; 2] = ["config", "key"];

/// Options of a command that uses agents only on request.
#[derive(Args, Clone, Debug)]
pub(crate) struct AskedAgentsArgs {
    /// Use running agents: HOST:PORT, separated by commas. Without a value, use the agents that all commands use.
    #[arg(long, value_name = "HOST:PORT,...", num_args = 0..=1, value_delimiter = ',')]
    agents: Option<Vec<String>>,

    /// File that names the agents.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// File of the cluster key [default: STARFISH_KEY_FILE or ~/.config/starfish/key].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

impl AskedAgentsArgs {
    /// Returns true if the user has requested agents.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.agents.is_some()
    }

    /// Returns the named agents, or else the agents that all other commands would use.
    pub(crate) fn cluster(&self) -> Result<Cluster> {
        let mut names = self.agents.clone().unwrap_or_default();
        if names.is_empty() {
            let listed = std::env::var(agents::VARIABLE).unwrap_or_default();
            names.extend(listed.split(',').map(str::to_owned));
        }
        let key = KeyArgs { file: self.key.clone() };
        AgentsArgs { agents: names, config: self.config.clone(), key, trace: self.trace.clone() }.cluster()
    }
}

/// Option for the file of the cluster key.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct KeyArgs {
    /// File of the cluster key [default: ~/.config/starfish/key].
    ///
    /// Agents and their clients need the same key. The first agent of a user creates it; `starfish key new` creates it,
    /// too.
    #[arg(id = "key", long, value_name = "FILE", env = key::VARIABLE, value_parser = path_or_nothing())]
    file: Option<PathBuf>,
}

/// Option for a trace.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TraceArgs {
    /// Append a trace of this program's last 262144 events to this file at its end: requests, waits and messages.
    #[arg(long, value_name = "FILE", env = TRACE_VARIABLE, value_parser = path_or_nothing())]
    trace: Option<PathBuf>,
}

/// Parses a path, which may be empty, because an empty environment variable counts as unset. `option_checks.rs` rejects
/// an empty option.
fn path_or_nothing() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

impl TraceArgs {
    /// Returns the named file, or `None`.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.trace.as_deref().filter(|path| !path.as_os_str().is_empty())
    }
}

impl KeyArgs {
    /// Returns the named file, or `None`.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref().filter(|path| !path.as_os_str().is_empty())
    }
}

impl AgentsArgs {
    /// Returns the names of the agents in the form of the command line. There is at least one.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        agents::names_among(&self.agents, self.config.as_deref()).map_err(wrong)
    }

    /// Returns the agents with their addresses. There is at least one.
    pub(crate) fn cluster(&self) -> Result<Cluster> {
        named(self.names()?, self.connecting())
    }

    /// Returns the settings for connections to agents. The list of agents in it is empty.
    pub(crate) fn connecting(&self) -> Cluster {
        Cluster {
            agents: Vec::new(),
            key_file: self.key.file().map(Path::to_owned),
            trace: self.trace.file().map(Path::to_owned),
        }
    }
}

/// Returns the agents with these names, with the connection settings of `connecting`.
pub(crate) fn named(names: Vec<String>, connecting: Cluster) -> Result<Cluster> {
    Ok(Cluster { agents: agents::named(names).map_err(wrong)?, ..connecting })
}

/// Converts an error in the names of agents to a failure because of wrong usage.
fn wrong(error: node::Error) -> Failure {
    Failure::from(error).of_usage()
}
