//! The agents to run: a number of agents on this computer, or the agents in a hosts file.
//!
//! ```text
//! # one agent a line: HOST[:PORT] [ROOT...]
//! node1                            # port 7117, one disk in a directory that the agent creates
//! node2:7118 /disk1 /disk2         # two disks
//! mary@node3 disk                  # as user mary; relative to her home directory
//! [fd00::4]:7117 /disk1
//! ```

use std::path::Path;

use command_line::failure::{Failure, Result};

/// Port of an agent if the hosts file names none.
pub const PORT: u16 = 7117;

/// Agent to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Unique name in the set: `HOST:PORT`, or `local N`.
    pub name: String,
    /// Name of the host for ssh; `None` for this computer.
    pub host: Option<String>,
    /// Host name or address that clients connect to.
    pub address: String,
    /// Port; `None` for any free one.
    pub port: Option<u16>,
    /// Directories of the disks; empty for one disk in the agent's state directory.
    pub roots: Vec<String>,
}

/// Returns `count` agents on this computer.
pub fn local(count: u32) -> Vec<Wanted> {
    let wanted = |index| Wanted {
        name: format!("local {index}"),
        host: None,
        address: "127.0.0.1".into(),
        port: None,
        roots: Vec::new(),
    };
    (0..count).map(wanted).collect()
}

/// Reads the agents of a hosts file. Fails if the file cannot be read or parsed.
pub fn read(path: &Path) -> Result<Vec<Wanted>> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Failure::usage(&file, error))?;
    parse(&text).map_err(|(line, why)| {
        Failure::usage(format!("{file}:{line}"), why)
            .remedy("A line is HOST[:PORT] [ROOT...], for example: node1:7117 /disk1 /disk2")
    })
}

/// Parses a hosts file. Fails with the number of an invalid line and the reason.
fn parse(text: &str) -> std::result::Result<Vec<Wanted>, (usize, String)> {
    let mut all: Vec<Wanted> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(place) = words.next() else { continue };
        let wanted = agent(place, words).map_err(|why| (number, why))?;
        if all.iter().any(|other| other.name == wanted.name) {
            return Err((number, format!("{} is named twice", wanted.name)));
        }
        all.push(wanted);
    }
    if all.is_empty() { Err((text.lines().count().max(1), "it contains no host".into())) } else { Ok(all) }
}

fn agent<'a>(place: &str, roots: impl Iterator<Item = &'a str>) -> std::result::Result<Wanted, String> {
    let (user, rest) = place.rsplit_once('@').map_or((None, place), |(user, rest)| (Some(user), rest));
    let (host, port) = split_port(rest)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    // ssh would read a leading dash as an option.
    let plain =
        |part: &str| !part.is_empty() && !part.starts_with('-') && !part.contains(['\'', '"', ',', '/']);
    if !plain(bare) || user.is_some_and(|user| !plain(user)) {
        return Err(format!("{place:?} is not a host"));
    }
    // ssh starts in the home directory, and no shell expands the path.
    let root = |root: &str| root.strip_prefix("~/").unwrap_or(root).to_owned();
    Ok(Wanted {
        name: format!("{host}:{port}"),
        host: Some(user.map_or(bare.to_owned(), |user| format!("{user}@{bare}"))),
        address: host.to_owned(),
        port: Some(port),
        roots: roots.map(root).collect(),
    })
}

fn split_port(place: &str) -> std::result::Result<(&str, u16), String> {
    let (host, port) = match place.rfind(':') {
        Some(colon) if !place.ends_with(']') => (&place[..colon], Some(&place[colon + 1..])),
        _ => (place, None),
    };
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err(format!("{place}: write an address with colons in brackets, as in [fd00::4]:7117"));
    }
    let number = port.map_or(Some(PORT), |port| port.parse().ok().filter(|&port| port > 0));
    number.map(|port| (host, port)).ok_or_else(|| format!("{place}: a port is a number from 1 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_host_an_optional_port_and_disks() {
        let text =
            "# ours\n\nnode1\nnode2:7118 /disk1 /disk2 # fast\nmary@node3 ~/disk\n[fd00::4]:9 /d\n[fd00::5]";
        let wanted = parse(text).expect("it is valid");
        let seen: Vec<_> = wanted
            .iter()
            .map(|agent| (&*agent.name, agent.host.as_deref().expect("a host"), agent.roots.join(" ")))
            .collect();
        let expected = [
            ("node1:7117", "node1", ""),
            ("node2:7118", "node2", "/disk1 /disk2"),
            ("node3:7117", "mary@node3", "disk"),
            ("[fd00::4]:9", "fd00::4", "/d"),
            ("[fd00::5]:7117", "fd00::5", ""),
        ];
        assert_eq!(seen, expected.map(|(name, host, roots)| (name, host, roots.to_owned())));
    }

    #[test]
    fn an_error_in_a_host_file_is_reported_with_its_line() {
        let wrong = [
            ("", 1, "no host"),
            ("# nobody\n#\n", 2, "no host"),
            ("a\na:7117", 2, "named twice"),
            ("a:0", 1, "from 1 to 65535"),
            ("a:70000", 1, "from 1 to 65535"),
            ("a:", 1, "from 1 to 65535"),
            ("\n-oProxyCommand=x", 2, "not a host"),
            ("u@-x", 1, "not a host"),
            ("fd00::4", 1, "in brackets"),
            (":7117", 1, "not a host"),
            ("a,b", 1, "not a host"),
        ];
        for (text, line, part) in wrong {
            let (at, why) = parse(text).expect_err(text);
            assert!(at == line && why.contains(part), "{text:?}: {at}: {why}");
        }
    }
}
