//! Connecting a node to the agents: the client of the file system, and what the user calls each agent.

use fs::{Client, ClientSettings};
use machine::NodeId;
use real::RealMachine;

use crate::agents::Agent;
use crate::error::{Error, ErrorKind, Result, kind_of, remedy_for};

/// Block requests of one call under way to each disk. What is under way in all is bounded by who calls: the page cache,
/// or the windows in which whole files are moved.
const OUTSTANDING_PER_DISK: usize = 64;

/// Connects to all agents, and asks them for their disks.
pub async fn connect(machine: &RealMachine, agents: &[Agent]) -> Result<(Client<RealMachine>, Names)> {
    let (mut io_nodes, mut names) = (Vec::new(), Names::default());
    for agent in agents {
        let node = machine.connect_to(agent.address).await;
        let node = node.map_err(|error| unreachable_agent(agent, *error))?;
        if let Err(same) = names.enter(node, &agent.name) {
            return Err(agent.is_named_twice(same));
        }
        io_nodes.push(node);
    }
    let settings = ClientSettings { outstanding_per_disk: OUTSTANDING_PER_DISK, ..ClientSettings::default() };
    let client = Client::connect(machine.clone(), io_nodes, settings).await;
    let client = client.map_err(|error| names.explain("asking the agents for their disks", &error))?;
    Ok((client, names))
}

fn unreachable_agent(agent: &Agent, error: machine::Error) -> Error {
    let why = match error {
        // What was being done is said already.
        machine::Error::Io { why, .. } => why,
        other => other.to_string(),
    };
    // That somebody answers, but does not understand, is known from the words only.
    let (kind, remedy) = if why.contains("version") {
        (ErrorKind::Protocol, "Install the same version of Starfish here and there")
    } else {
        (ErrorKind::Unreachable, "Is it running? Start it with: starfish agent --root DIR --listen HOST:PORT")
    };
    Error::new(kind, format!("agent {}", agent.name), why).with_remedy(remedy)
}

/// What the user calls each agent.
#[derive(Default)]
pub struct Names(Vec<(NodeId, String)>);

impl Names {
    /// Notes what the agent is called; says so if it has a name already.
    fn enter(&mut self, node: NodeId, name: &str) -> std::result::Result<(), &str> {
        if let Some(known) = self.0.iter().position(|(other, _)| *other == node) {
            return Err(&self.0[known].1);
        }
        self.0.push((node, name.to_owned()));
        Ok(())
    }

    /// What the user calls an agent, if it is one of these.
    pub fn of(&self, node: NodeId) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == node).map(|(_, name)| name.as_str())
    }

    /// Puts an error of the file system into words the user knows; `what` is the file, or what was to be done.
    pub fn explain(&self, what: &str, error: &fs::Error) -> Error {
        let mut text = error.to_string();
        for (node, name) in &self.0 {
            text = text.replace(&node.to_string(), &format!("agent {name}"));
        }
        // What it is about stands before this already.
        let about = [format!("{what}: "), format!("{what:?} ")];
        let why = about.iter().find_map(|about| text.strip_prefix(about)).unwrap_or(&text);
        let explained = Error::new(kind_of(error), what, why);
        match remedy_for(error) {
            Some(remedy) => explained.with_remedy(remedy),
            None => explained,
        }
    }
}

#[cfg(test)]
mod tests {
    use fs::{Failure, FailureKind};

    use super::*;

    #[test]
    fn agents_are_called_what_the_user_calls_them() {
        let mut names = Names::default();
        names.enter(NodeId(0xab), "brule-m-a").expect("a new one");
        assert_eq!(names.enter(NodeId(0xab), "brule-m-b"), Err("brule-m-a"));
        let why = "it closed the connection".to_owned();
        let gone = fs::Error::Machine(machine::Error::PeerGone { node: NodeId(0xab), why });
        let error = names.explain("x", &gone);
        assert_eq!(error.kind(), ErrorKind::Gone);
        assert_eq!(error.why(), "agent brule-m-a is gone: it closed the connection");
    }

    #[test]
    fn the_name_of_the_file_stands_there_once() {
        let missing = fs::Error::NotFound { name: "a b".into() };
        assert!(Names::default().explain("a b", &missing).to_string().starts_with("a b: no such file. "));
        let bad = fs::Error::BadName { name: "..".into(), why: "it is longer than 200 bytes" };
        let error = Names::default().explain("..", &bad);
        assert_eq!(
            (error.kind(), error.why()),
            (ErrorKind::NameTooLong, "is no file name: it is longer than 200 bytes")
        );
    }

    /// Errors of the file system, what a caller can act on, and a word of the remedy.
    #[test]
    fn each_error_of_the_file_system_has_a_kind_and_a_remedy() {
        let (name, node) = (|| "x".to_owned(), NodeId(7));
        let text = |text: &str| text.to_owned();
        let remote = |kind| fs::Error::Remote { node, failure: Failure { kind, text: text("why") } };
        let machine = fs::Error::Machine;
        for (error, kind, remedy) in [
            (fs::Error::NotFound { name: name() }, ErrorKind::NotFound, "starfish ls"),
            (fs::Error::Exists { name: name() }, ErrorKind::Exists, "starfish rm"),
            (fs::Error::BadName { name: name(), why: "it is empty" }, ErrorKind::BadName, ""),
            (
                fs::Error::MissingStripe { name: name(), index: 1, count: 2 },
                ErrorKind::Damaged,
                "the stripe is lost",
            ),
            (
                fs::Error::ForeignStripe {
                    name: name(),
                    node,
                    disk: 0,
                    found: text("y"),
                    expected: text("x"),
                },
                ErrorKind::Damaged,
                "Put back",
            ),
            (fs::Error::WriteLost { name: name(), node }, ErrorKind::Lost, "Write it again"),
            (fs::Error::Protocol { node, why: text("noise") }, ErrorKind::Protocol, "same version"),
            (fs::Error::Invalid(text("no")), ErrorKind::Invalid, ""),
            (remote(FailureKind::NotFound), ErrorKind::NotFound, "starfish ls"),
            (remote(FailureKind::Exists), ErrorKind::Exists, "starfish rm"),
            (remote(FailureKind::NotOpen), ErrorKind::Gone, "still running"),
            (remote(FailureKind::NoSpace), ErrorKind::NoSpace, "larger disk"),
            (remote(FailureKind::Damaged), ErrorKind::Damaged, "Check that disk"),
            (remote(FailureKind::Invalid), ErrorKind::Invalid, ""),
            (remote(FailureKind::Io), ErrorKind::Io, ""),
            (
                machine(machine::Error::PeerGone { node, why: text("it hangs") }),
                ErrorKind::Gone,
                "still running",
            ),
            (machine(machine::Error::Closed), ErrorKind::Closed, ""),
            (machine(machine::Error::Io { what: text("a"), why: text("b") }), ErrorKind::Io, ""),
        ] {
            let explained = Names::default().explain("x", &error);
            assert_eq!(explained.kind(), kind, "{error}");
            assert_eq!(explained.remedy().is_some(), !remedy.is_empty(), "{error}");
            assert!(explained.to_string().contains(remedy), "{explained}");
        }
    }
}
