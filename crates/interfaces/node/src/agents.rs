//! Finds the agents of the file system and their addresses.

use std::env;
use std::fs;
use std::io::ErrorKind as IoErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, ErrorKind, Result};

/// Environment variable that names the agents, separated by commas.
pub const VARIABLE: &str = "STARFISH_AGENTS";

/// Environment variable with the path of a node file: names of agents between spaces or line ends; `#` begins a remark.
pub const NODE_FILE_VARIABLE: &str = "PDIOLCONF";

/// Name of the node file in the user's home directory.
const NODE_FILE: &str = "PDIOLconf";

/// Path of the node file of PDIOL's appendix, in the home directory. Because its name is so common, this file is read
/// only if no other source names agents.
const LAST_NODE_FILE: &str = "bin/conf";

/// Default port of an agent.
pub const PORT: u16 = 7117;

/// Name of the file in the [`state_directory`] that lists the agents started by `starfish agents up`.
pub const RECORD: &str = "agents.toml";

/// Agent: the user's name for it, and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Name as the user wrote it.
    pub name: String,
    /// Address of that name.
    pub address: SocketAddr,
    /// Path of the agent's log, if `starfish agents up` has started the agent.
    pub log: Option<String>,
}

/// Contents of a configuration file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    agents: Vec<String>,
}

impl Agent {
    /// Returns the agent called HOST:PORT or HOST. Fails if the name is malformed or the host unknown.
    pub fn named(name: &str) -> Result<Agent> {
        let address = address(name).map_err(|(kind, why, remedy)| {
            Error::new(kind, format!("agent {name}"), why).with_remedy(remedy)
        })?;
        Ok(Agent { name: name.to_owned(), address, log: None })
    }

    pub(crate) fn is_named_twice(&self, other: &str) -> Error {
        let why = format!("it is the same as agent {other}");
        Error::new(ErrorKind::Invalid, format!("agent {}", self.name), why)
            .with_remedy("Name every agent once")
    }
}

/// Returns the address of the agent of this name, or the kind of failure, the reason and a remedy.
fn address(name: &str) -> std::result::Result<SocketAddr, (ErrorKind, String, &'static str)> {
    const FORM: &str = "Write an agent as HOST:PORT or HOST, for example 127.0.0.1:7117 or [::1]:7117";
    if let Some(address) = name.parse::<SocketAddr>().ok().filter(|address| address.port() > 0) {
        return Ok(address);
    }
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok((address, PORT).into());
    }
    let (host, port) = match name.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok().filter(|&port| port > 0)),
        None => (name, Some(PORT)),
    };
    let port = port
        .ok_or_else(|| (ErrorKind::Invalid, "the port is not a number from 1 to 65535".to_owned(), FORM))?;
    if host.is_empty() || host.contains([':', '/', '@']) || host.contains(char::is_whitespace) {
        return Err((ErrorKind::Invalid, format!("{host:?} is not a host"), FORM));
    }
    let unknown = |why: String| {
        let why = format!("the host {host:?} cannot be resolved: {why}");
        let remedy = "Check the spelling, and whether this computer can resolve it (`getent hosts HOST`)";
        (ErrorKind::UnknownHost, why, remedy)
    };
    let mut found = (host, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    found.next().ok_or_else(|| unknown("it has no address".to_owned()))
}

/// Returns the agents of these names, each HOST:PORT or HOST. Fails if two have the same address.
pub fn named<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Result<Vec<Agent>> {
    // Ignore an unreadable record: agents that are named explicitly do not need it.
    let started = started().unwrap_or_default();
    let mut agents: Vec<Agent> = Vec::new();
    for name in names {
        let mut agent = Agent::named(name.as_ref())?;
        if let Some(same) = agents.iter().find(|other| other.address == agent.address) {
            return Err(agent.is_named_twice(&same.name));
        }
        agent.log = started.iter().find(|started| started.is(&agent)).map(Started::log);
        agents.push(agent);
    }
    Ok(agents)
}

/// Finds the agents in the first of these sources that names any:
///
/// 1. The variable STARFISH_AGENTS.
/// 2. The file of the variable PDIOLCONF.
/// 3. The file `PDIOLconf` in the home directory.
/// 4. The file `starfish/config.toml` in the configuration directory.
/// 5. The agents that `starfish agents up` has started.
/// 6. The file `bin/conf` in the home directory.
///
/// Fails if no source names an agent.
pub fn find() -> Result<Vec<Agent>> {
    find_among(&[], None)
}

/// Returns the agents in `listed`. If the list is empty, returns those in the configuration file, and without such a
/// file those that [`find`] returns. Fails if no source names an agent.
pub fn find_among(listed: &[String], configuration: Option<&Path>) -> Result<Vec<Agent>> {
    named(names_among(listed, configuration)?)
}

/// Returns the names of the agents of [`find_among`]. Fails if no source names an agent.
pub fn names_among(listed: &[String], configuration: Option<&Path>) -> Result<Vec<String>> {
    let of_variable = env::var(VARIABLE).unwrap_or_default();
    if let Some(names) = given(listed.iter().map(String::as_str))? {
        return Ok(names);
    }
    match (configuration, given(of_variable.split(','))?) {
        (Some(path), _) => configured(path)?
            .ok_or_else(|| Error::new(ErrorKind::Invalid, path.display().to_string(), "no such file")),
        (None, Some(names)) => Ok(names),
        (None, None) => usual().and_then(|names| if names.is_empty() { Err(none()) } else { Ok(names) }),
    }
}

/// Returns the names in a list, or `None` if it is empty. An empty name among others is an error: in `A:1, B:2` on a
/// command line, the shell makes `B:2` a separate argument, which would be the name of a file.
fn given<'a>(names: impl Iterator<Item = &'a str>) -> Result<Option<Vec<String>>> {
    let names: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
    match names.iter().filter(|name| !name.is_empty()).count() {
        0 => Ok(None),
        some if some == names.len() => Ok(Some(names)),
        _ => {
            let what = format!("the agents {:?}", names.join(","));
            let error = Error::new(ErrorKind::Invalid, what, "a name is missing before or after a comma");
            Err(error.with_remedy("Write HOST:PORT,HOST:PORT without blanks"))
        }
    }
}

/// Returns the error for missing agents.
fn none() -> Error {
    let files = [configuration_file(), in_home(NODE_FILE), in_home(LAST_NODE_FILE)];
    let files: Vec<String> = files.into_iter().flatten().map(|path| path.display().to_string()).collect();
    let why = format!(
        "neither {VARIABLE}, {NODE_FILE_VARIABLE} nor one of these files names any agent: {}",
        files.join(", ")
    );
    let remedy = format!(
        "Set {VARIABLE}=HOST:PORT,... or write agents = [\"HOST:PORT\"] into {}. `starfish agents up --local \
         4` starts four on this computer",
        files.first().map_or("a file named with --config", String::as_str)
    );
    Error::new(ErrorKind::Invalid, "cannot find the agents", why).with_remedy(remedy)
}

/// Returns the names of the agents of [`find`], without the source STARFISH_AGENTS. The list may be empty.
pub fn usual() -> Result<Vec<String>> {
    let variable = env::var_os(NODE_FILE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let existing = |name| in_home(name).filter(|path| path.is_file());
    if let Some(path) = variable.or_else(|| existing(NODE_FILE)) {
        return node_file(&path);
    }
    if let Some(names) = configuration_file().map(|path| configured(&path)).transpose()?.flatten() {
        return Ok(names);
    }
    let started: Vec<String> = started()?.into_iter().map(|agent| agent.address).collect();
    match existing(LAST_NODE_FILE).filter(|_| started.is_empty()) {
        Some(path) => node_file(&path),
        None => Ok(started),
    }
}

fn configuration_file() -> Option<PathBuf> {
    base_directory("XDG_CONFIG_HOME", ".config").map(|directory| directory.join("starfish/config.toml"))
}

fn in_home(name: &str) -> Option<PathBuf> {
    env::home_dir().map(|home| home.join(name))
}

/// Returns the names in a node file: its words, without text after a `#` on a line.
fn node_file(path: &Path) -> Result<Vec<String>> {
    let wrong = |why: &dyn std::fmt::Display| {
        let error = Error::new(ErrorKind::Invalid, format!("the node file {}", path.display()), why);
        error.with_remedy("Write the names of the agents, as HOST:PORT or HOST, one on each line")
    };
    let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let without_remarks = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let names: Vec<String> = without_remarks.flat_map(str::split_whitespace).map(str::to_owned).collect();
    if names.is_empty() { Err(wrong(&"the file names no agent")) } else { Ok(names) }
}

/// Record of an agent that `starfish agents up` has started: only the fields that this module uses.
#[derive(Deserialize)]
struct Started {
    address: String,
    host: Option<String>,
    #[serde(default)]
    log: String,
}

impl Started {
    /// Returns the location of the agent's log in the syntax of scp.
    fn log(&self) -> String {
        self.host.as_ref().map_or_else(|| self.log.clone(), |host| format!("{host}:{}", self.log))
    }

    fn is(&self, agent: &Agent) -> bool {
        self.address == agent.name || self.address.parse() == Ok(agent.address)
    }
}

/// Reads the record of the agents that `starfish agents up` has started; empty if it was not used.
fn started() -> Result<Vec<Started>> {
    #[derive(Deserialize)]
    struct Record {
        agents: Vec<Started>,
    }
    let Some(path) = state_directory().map(|state| state.join(RECORD)) else { return Ok(Vec::new()) };
    // An unreadable or missing record means that no agents were started.
    let Ok(text) = fs::read_to_string(&path) else { return Ok(Vec::new()) };
    let record: Record = toml::from_str(&text).map_err(|error| {
        let error = Error::new(ErrorKind::Invalid, path.display().to_string(), error.message());
        error.with_remedy("`starfish agents status` shows details")
    })?;
    Ok(record.agents)
}

/// Returns the default directory in which `starfish agents` records its agents.
pub fn state_directory() -> Option<PathBuf> {
    base_directory("XDG_STATE_HOME", ".local/state").map(|state| state.join("starfish"))
}

/// Returns the directory named by the environment variable, or else the usual directory under the home directory (XDG
/// Base Directory Specification).
pub(crate) fn base_directory(variable: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let home = || env::home_dir().map(|home| home.join(usual));
    env::var_os(variable).map(PathBuf::from).and_then(absolute).or_else(home)
}

/// Returns the names of the agents in a configuration file: `agents = ["HOST:PORT", ...]`; `None` if the file is
/// missing.
pub fn configured(path: &Path) -> Result<Option<Vec<String>>> {
    let wrong = |why: &dyn std::fmt::Display| Error::new(ErrorKind::Invalid, path.display().to_string(), why);
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| wrong(&error))?,
    };
    let configuration: Configuration = toml::from_str(&text)
        .map_err(|error| wrong(&error.message()).with_remedy("Expected: agents = [\"HOST:PORT\", ...]"))?;
    Ok(Some(configuration.agents))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_may_be_left_out() {
        assert_eq!(Agent::named("127.0.0.1").expect("an address").address, ([127, 0, 0, 1], PORT).into());
        assert_eq!(Agent::named("127.0.0.1:9").expect("an address").address, ([127, 0, 0, 1], 9).into());
    }

    #[test]
    fn an_empty_name_in_a_list_of_agents_is_rejected() {
        let of = |list: &str| given(list.split(','));
        assert_eq!(of("").expect("none"), None);
        assert_eq!(of("a:1, b:2").expect("two"), Some(vec!["a:1".to_owned(), "b:2".to_owned()]));
        for list in ["a:1,", ",a:1", "a:1,,b:2"] {
            let error = of(list).expect_err(list);
            assert!(error.remedy().is_some_and(|remedy| remedy.contains("without blanks")), "{error}");
        }
    }

    #[test]
    fn a_node_file_has_names_and_comments() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("nodes");
        let missing = node_file(&path).expect_err("missing").to_string();
        assert!(missing.contains(&path.display().to_string()), "{missing}");
        let text = "# the cluster\nbrule-m-a brule-m-b:7118\n\n brule-m-c # the slow one\r\n#brule-m-d";
        fs::write(&path, text).expect("room");
        assert_eq!(node_file(&path).expect("three"), ["brule-m-a", "brule-m-b:7118", "brule-m-c"]);
        fs::write(&path, "# none\n").expect("room");
        let empty = node_file(&path).expect_err("empty").to_string();
        assert!(empty.contains("the file names no agent"), "{empty}");
    }

    #[test]
    fn an_agent_named_twice_is_rejected() {
        let twice = named(["127.0.0.1", "127.0.0.1:7117"]).expect_err("the same");
        assert_eq!((twice.kind(), twice.remedy()), (ErrorKind::Invalid, Some("Name every agent once")));
        assert_eq!(named([""; 0]).expect("none"), []);
    }

    #[test]
    fn an_ipv6_address_needs_no_port() {
        let localhost = ([0, 0, 0, 0, 0, 0, 0, 1], PORT).into();
        for name in ["::1", "[::1]", "[::1]:7117"] {
            assert_eq!(Agent::named(name).expect(name).address, localhost);
        }
    }

    #[test]
    fn malformed_names_and_unknown_hosts_are_different_errors() {
        use ErrorKind::{Invalid, UnknownHost};
        for (name, kind, why, remedy) in [
            ("127.0.0.1:port", Invalid, "not a number from 1 to 65535", "HOST:PORT"),
            ("127.0.0.1:0", Invalid, "not a number from 1 to 65535", "HOST:PORT"),
            ("a:b:7", Invalid, "\"a:b\" is not a host", "HOST:PORT"),
            (":7117", Invalid, "\"\" is not a host", "HOST:PORT"),
            (
                "nobody.invalid:7117",
                UnknownHost,
                "the host \"nobody.invalid\" cannot be resolved",
                "getent hosts",
            ),
        ] {
            let error = Agent::named(name).expect_err(name);
            assert!(error.kind() == kind && error.why().contains(why), "{error}");
            assert!(error.remedy().is_some_and(|given| given.contains(remedy)), "{error}");
        }
    }
}
