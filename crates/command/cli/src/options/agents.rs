//! Which agents make up the file system: the first of these that says so.
//!
//! 1. `--agents HOST:PORT,HOST:PORT`
//! 2. the environment variable `STARFISH_AGENTS`, written the same way
//! 3. a configuration file: `--config FILE`
//! 4. the files and records of [`agents::usual`]

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use command_line::failure::{Failure, Result};
use node::{TRACE_VARIABLE, agents, key};
use transfer::cluster::Cluster;

/// The options that say where the agents are.
#[derive(Args, Clone, Debug)]
pub(crate) struct AgentsArgs {
    /// The agents, as HOST:PORT, separated by commas.
    #[arg(long, value_name = "HOST:PORT,...", env = "STARFISH_AGENTS", value_delimiter = ',')]
    pub(crate) agents: Vec<String>,

    /// File that names the agents: `agents = ["HOST:PORT", ...]`.
    ///
    /// Without this option they are those of PDIOLCONF, ~/PDIOLconf or ~/.config/starfish/config.toml, or those that
    /// `starfish agents up` has started.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) key: KeyArgs,

    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

/// Those of the options below that do nothing without agents: `pointless.rs` refuses them.
pub(crate) const ASKED_AGENTS: [&str; 2] = ["config", "key"];

/// The options of a command that uses agents only if they are asked for.
#[derive(Args, Clone, Debug)]
pub(crate) struct AskedAgentsArgs {
    /// Use running agents, HOST:PORT separated by commas; without names, those that all commands use.
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
    /// Whether they are.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.agents.is_some()
    }

    /// The agents that are named here, or those that any other command would take.
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

/// The option that says which cluster key this computer has.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct KeyArgs {
    /// File of the cluster key [default: ~/.config/starfish/key].
    ///
    /// Agents and their clients have the same key. The first agent of a user makes it, and so does `starfish key new`.
    #[arg(id = "key", long, value_name = "FILE", env = key::VARIABLE, value_parser = path_or_nothing())]
    file: Option<PathBuf>,
}

/// The option that asks for a trace.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TraceArgs {
    /// Add what this program does to a trace file when it ends: requests, waits, messages, the last 262144 of them.
    #[arg(long, value_name = "FILE", env = TRACE_VARIABLE, value_parser = path_or_nothing())]
    trace: Option<PathBuf>,
}

/// A path, or nothing: a variable that is empty is as good as none. That an option is not, `pointless.rs` sees to.
fn path_or_nothing() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

impl TraceArgs {
    /// The file, if one is named.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.trace.as_deref().filter(|path| !path.as_os_str().is_empty())
    }
}

impl KeyArgs {
    /// The file, if one is named.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref().filter(|path| !path.as_os_str().is_empty())
    }
}

impl AgentsArgs {
    /// What the user calls the agents. There is at least one.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        agents::names_among(&self.agents, self.config.as_deref()).map_err(wrong)
    }

    /// The agents, each with its address. There is at least one.
    pub(crate) fn cluster(&self) -> Result<Cluster> {
        named(self.names()?, self.connecting())
    }

    /// What nodes need to connect to agents, without any agents.
    pub(crate) fn connecting(&self) -> Cluster {
        Cluster {
            agents: Vec::new(),
            key_file: self.key.file().map(Path::to_owned),
            trace: self.trace.file().map(Path::to_owned),
        }
    }
}

/// Returns the agents with these names, for nodes that connect to them as `connecting` says.
pub(crate) fn named(names: Vec<String>, connecting: Cluster) -> Result<Cluster> {
    Ok(Cluster { agents: agents::named(names).map_err(wrong)?, ..connecting })
}

/// Naming the agents is a matter of how the program is called.
fn wrong(error: node::Error) -> Failure {
    Failure::from(error).of_usage()
}
