//! The user's names of agents, and errors of the file system in the user's terms.

use std::iter;
use std::path::Path;

use fs::FailureKind;
use machine::NodeId;

use crate::agents::Agent;
use crate::error::{Error, ErrorKind, kind_of, remedy_for, remedy_for_silence};
use crate::key;

fn unreachable_agent(agent: &Agent, error: machine::Error, key_file: Option<&Path>) -> Error {
    let named = |kind, why: String| Error::new(kind, format!("agent {}", agent.name), why);
    match error {
        machine::Error::OtherKey { mismatch, .. } => {
            let file = key::path(key_file).ok();
            named(ErrorKind::NotTrusted, mismatch.to_string()).with_remedy(key::remedy(
                mismatch,
                file.as_deref(),
                "the agent",
            ))
        }
        machine::Error::OtherVersion { theirs, ours, .. } => {
            let why =
                format!("the agent uses protocol version {theirs}, and this program uses version {ours}");
            named(ErrorKind::Protocol, why)
                .with_remedy("Install the same version of Starfish on both computers")
        }
        machine::Error::OtherProgram { .. } => {
            let why = "another program answers at this address".to_owned();
            named(ErrorKind::Unreachable, why)
                .with_remedy("Check the port: `starfish agents status` shows the ports of agents")
        }
        // Keep only the reason: the subject is named already.
        machine::Error::Io { why, .. } => {
            named(ErrorKind::Unreachable, why).with_remedy(remedy_for_silence(agent.log.as_deref()))
        }
        other => named(ErrorKind::Unreachable, other.to_string())
            .with_remedy(remedy_for_silence(agent.log.as_deref())),
    }
}

/// Names of agents, with those that do not answer and the disks that cannot be used.
#[derive(Default)]
pub(crate) struct Names {
    present: Vec<(NodeId, Agent)>,
    absent: Vec<Error>,
    failing: Vec<Error>,
}

/// Remedy for a disk that cannot be used.
const REMEDY_FOR_DISK: &str = "Is the disk mounted? Mount it and restart the agent. Files without stripes on \
                               it can still be used";

impl Names {
    /// Adds the name of an agent. If the node already has a name, fails and returns that name.
    pub(crate) fn enter(&mut self, node: NodeId, agent: &Agent) -> std::result::Result<(), &str> {
        if let Some(known) = self.present.iter().position(|(other, _)| *other == node) {
            return Err(&self.present[known].1.name);
        }
        self.present.push((node, agent.clone()));
        Ok(())
    }

    /// Adds an agent that does not answer, with the reason. `key_file` is the key file that the
    /// user named.
    pub(crate) fn enter_absent(&mut self, agent: &Agent, error: machine::Error, key_file: Option<&Path>) {
        self.absent.push(unreachable_agent(agent, error, key_file));
    }

    /// Adds a disk of an agent that cannot be used, with the reason.
    pub(crate) fn enter_failing(&mut self, node: NodeId, error: &fs::Error) {
        let what = format!("agent {}", self.of(node).unwrap_or("?"));
        let explained = self.explain(&what, error);
        let explained =
            if explained.remedy().is_some() { explained } else { explained.with_remedy(REMEDY_FOR_DISK) };
        self.failing.push(explained);
    }

    /// Returns an error for each agent that does not answer.
    pub(crate) fn absent(&self) -> &[Error] {
        &self.absent
    }

    /// Returns one error about all absent agents and unusable disks, or `None`.
    pub(crate) fn incompleteness(&self) -> Option<Error> {
        let all: Vec<Error> = self.absent.iter().chain(&self.failing).cloned().collect();
        in_one(&all)
    }

    /// Returns an error for each disk that cannot be used.
    pub(crate) fn failing(&self) -> &[Error] {
        &self.failing
    }

    fn agent(&self, node: NodeId) -> Option<&Agent> {
        self.present.iter().find(|(other, _)| *other == node).map(|(_, agent)| agent)
    }

    /// Returns the user's name of an agent that answers; `None` for other nodes.
    pub(crate) fn of(&self, node: NodeId) -> Option<&str> {
        self.agent(node).map(|agent| agent.name.as_str())
    }

    /// Returns the user's names of the agents that answer.
    pub(crate) fn present(&self) -> impl Iterator<Item = &str> {
        self.present.iter().map(|(_, agent)| agent.name.as_str())
    }

    /// Returns one error about all agents that do not answer; `None` if all answer.
    pub(crate) fn absence(&self) -> Option<Error> {
        in_one(&self.absent)
    }

    /// Translates an error of the file system into the user's terms, with the name of the file or of the failed
    /// operation.
    pub(crate) fn explain(&self, what: &str, error: &fs::Error) -> Error {
        if let Some(absence) = self.incompleteness().filter(|_| may_be_elsewhere(error)) {
            let place = if self.failing.is_empty() { "agents that answer" } else { "disks that can be used" };
            let (why, kind) = match error {
                fs::Error::MissingStripe { index, count, .. } => {
                    (format!("stripe {index} of {count}"), absence.kind())
                }
                // The kind is that of a missing part of the file, not of an unreachable agent.
                fs::Error::UnknownDisk { identity, .. } => {
                    (format!("disk {identity:016x}, which has a stripe of the file,"), kind_of(error))
                }
                _ => ("the file, if it exists,".to_owned(), absence.kind()),
            };
            let why = format!("{why} is not on the {place}. {}: {}", absence.what(), absence.why());
            let explained = Error::new(kind, what, why);
            return absence.remedy().into_iter().fold(explained, Error::with_remedy);
        }
        let mut text = match error {
            // Omit the team's coordinator, which did not cause the failure.
            fs::Error::Remote { failure, .. }
                if matches!(failure.kind, FailureKind::NoTeam | FailureKind::OutOfStep) =>
            {
                failure.text.clone()
            }
            // Omit the file's name, which may be its number, or the temporary name during a put.
            fs::Error::BlockTooLarge { bytes, most, .. } => {
                format!("blocks of {bytes} bytes are too large: the agents accept at most {most}")
            }
            _ => error.to_string(),
        };
        for (node, agent) in &self.present {
            text = text.replace(&node.to_string(), &format!("agent {}", agent.name));
        }
        // Strip the subject from the reason, because the error prints the subject already.
        let about = [format!("{what}: "), format!("{what:?} ")];
        let why = about.iter().find_map(|about| text.strip_prefix(about)).unwrap_or(&text);
        let log = error.node().and_then(|node| self.agent(node)).and_then(|agent| agent.log.as_deref());
        let explained = Error::new(kind_of(error), what, why);
        let lost = match error {
            fs::Error::Remote { failure, .. } => failure.lost_rank,
            _ => None,
        };
        let explained = lost.into_iter().fold(explained, Error::with_lost_rank);
        remedy_for(error, log).into_iter().fold(explained, Error::with_remedy)
    }
}

/// Combines several errors into one. The kind, subjects and remedy come from the errors with the first reason. The
/// other reasons follow, each with its agents.
fn in_one(errors: &[Error]) -> Option<Error> {
    let [first, others @ ..] = errors else { return None };
    if others.is_empty() {
        return Some(first.clone());
    }
    let with_reason = |why: &str| {
        let agents = errors.iter().filter(|error| error.why() == why).map(Error::what);
        agents.collect::<Vec<_>>().join(", ")
    };
    let mut reasons = vec![first.why()];
    for other in others.iter().map(Error::why) {
        if !reasons.contains(&other) {
            reasons.push(other);
        }
    }
    let further = reasons[1..].iter().map(|why| format!("; {}: {why}", with_reason(why)));
    let why = iter::once(first.why().to_owned()).chain(further).collect::<String>();
    let error = Error::new(first.kind(), with_reason(first.why()), why);
    Some(first.remedy().into_iter().fold(error, Error::with_remedy))
}

/// True if the error concerns a file, stripe or disk that an absent agent may have.
fn may_be_elsewhere(error: &fs::Error) -> bool {
    matches!(
        error,
        fs::Error::MissingStripe { .. } | fs::Error::NotFound { .. } | fs::Error::UnknownDisk { .. }
    )
}

#[cfg(test)]
mod tests {
    use fs::Failure;
    use machine::KeyMismatch;

    use super::*;

    fn agent(name: &str, log: Option<&str>) -> Agent {
        Agent { name: name.into(), address: ([127, 0, 0, 1], 7117).into(), log: log.map(str::to_owned) }
    }

    #[test]
    fn the_remedy_for_a_lost_agent_fits_how_it_was_started() {
        let mut names = Names::default();
        names.enter(NodeId(1), &agent("by-hand:1", None)).expect("a new one");
        names.enter(NodeId(2), &agent("of-a-set:2", Some("/state/log"))).expect("a new one");
        let gone = |node| {
            fs::Error::Machine(machine::Error::PeerGone { node: NodeId(node), why: "it hangs".to_owned() })
        };
        let by_hand = names.explain("x", &gone(1)).to_string();
        // Without a log path it is unknown how the agent was started, so the remedy suggests both ways.
        assert!(by_hand.contains("--root and --listen") && by_hand.contains("standard error"), "{by_hand}");
        let of_a_set = names.explain("x", &gone(2)).to_string();
        assert!(of_a_set.contains("/state/log") && of_a_set.contains("`starfish agents up`"), "{of_a_set}");
    }

    #[test]
    fn a_key_mismatch_is_reported_with_the_file_and_a_remedy() {
        for (mismatch, part) in [
            (KeyMismatch::ClearHere, "The key file here contains `clear`"),
            (KeyMismatch::ClearThere, "The key file there contains `clear`"),
            (KeyMismatch::Differ, "The file is /my/key here"),
        ] {
            let error = machine::Error::OtherKey { what: "connecting".into(), mismatch };
            let error = unreachable_agent(&agent("a:1", None), error, Some(Path::new("/my/key")));
            assert_eq!(error.kind(), ErrorKind::NotTrusted);
            assert!(error.remedy().is_some_and(|remedy| remedy.contains(part)), "{error}");
        }
    }

    #[test]
    fn another_version_and_a_silent_agent_are_different_errors() {
        let what = || "connecting".to_owned();
        let other = machine::Error::OtherVersion { what: what(), theirs: 4, ours: 5 };
        // The name of the host must not matter.
        let silent = machine::Error::Io { what: what(), why: "no address for version-5.example".into() };
        for (error, kind) in [(other, ErrorKind::Protocol), (silent, ErrorKind::Unreachable)] {
            assert_eq!(unreachable_agent(&agent("a:1", None), error, None).kind(), kind);
        }
        let error = machine::Error::OtherProgram { what: what() };
        let error = unreachable_agent(&agent("a:1", None), error, None);
        assert_eq!(
            error.remedy(),
            Some("Check the port: `starfish agents status` shows the ports of agents")
        );
    }

    #[test]
    fn a_missing_file_is_unreachable_while_an_agent_is_absent() {
        let missing = fs::Error::MissingStripe { name: "x".into(), index: 1, count: 3 };
        let mut names = Names::default();
        assert_eq!(names.absence(), None);
        assert_eq!(names.explain("x", &missing).kind(), ErrorKind::Damaged);
        for name in ["a:1", "b:1"] {
            let why = machine::Error::Io { what: "connecting".into(), why: "Connection refused".into() };
            names.absent.push(unreachable_agent(&agent(name, None), why, None));
        }
        let error = names.explain("x", &missing);
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        let expected =
            "stripe 1 of 3 is not on the agents that answer. agent a:1, agent b:1: Connection refused";
        assert_eq!(error.why(), expected);
        assert_eq!(
            names.explain("x", &fs::Error::NotFound { name: "x".into() }).kind(),
            ErrorKind::Unreachable
        );
    }

    #[test]
    fn each_absent_agent_is_reported_with_its_reason() {
        let mut names = Names::default();
        for (name, why) in [("a:1", "no key"), ("b:1", "refused"), ("c:1", "no key"), ("d:1", "refused")] {
            let error = machine::Error::Io { what: "connecting".into(), why: why.into() };
            names.enter_absent(&agent(name, None), error, None);
        }
        let absence = names.absence().expect("four do not answer");
        let texts = (absence.what(), absence.why());
        assert_eq!(texts, ("agent a:1, agent c:1", "no key; agent b:1, agent d:1: refused"));
    }

    #[test]
    fn errors_name_agents_as_the_user_does() {
        let mut names = Names::default();
        names.enter(NodeId(0xab), &agent("brule-m-a", None)).expect("a new one");
        assert_eq!(names.enter(NodeId(0xab), &agent("brule-m-b", None)), Err("brule-m-a"));
        let why = "it closed the connection".to_owned();
        let gone = fs::Error::Machine(machine::Error::PeerGone { node: NodeId(0xab), why });
        let error = names.explain("x", &gone);
        assert_eq!(error.kind(), ErrorKind::Gone);
        assert_eq!(error.why(), "agent brule-m-a disconnected: it closed the connection");
    }

    #[test]
    fn an_error_contains_the_file_name_once() {
        let missing = fs::Error::NotFound { name: "a b".into() };
        assert!(Names::default().explain("a b", &missing).to_string().starts_with("a b: no such file. "));
    }

    /// Lists errors of the file system with their kind and a part of their remedy.
    #[test]
    fn each_error_of_the_file_system_has_a_kind_and_a_remedy() {
        let (name, node) = (|| "x".to_owned(), NodeId(7));
        let text = |text: &str| text.to_owned();
        let remote = |kind| fs::Error::Remote { node, failure: Failure::new(kind, "why") };
        let machine = fs::Error::Machine;
        for (error, kind, remedy) in [
            (fs::Error::NotFound { name: name() }, ErrorKind::NotFound, "starfish ls"),
            (
                fs::Error::MissingStripe { name: name(), index: 1, count: 2 },
                ErrorKind::Damaged,
                "the stripe is lost",
            ),
            (fs::Error::WriteLost { name: name(), node }, ErrorKind::Lost, "Write it again"),
            (fs::Error::NamesLost { metadata_server: node }, ErrorKind::Lost, "Write it again"),
            (fs::Error::Protocol { node, why: text("noise") }, ErrorKind::Protocol, "same version"),
            (
                fs::Error::Machine(machine::Error::OtherVersion { what: name(), theirs: 9, ours: 10 }),
                ErrorKind::Protocol,
                "same version",
            ),
            (fs::Error::Invalid(text("no")), ErrorKind::Invalid, ""),
            (fs::Error::BlockTooLarge { name: name(), bytes: 2, most: 1 }, ErrorKind::Invalid, "--block-max"),
            (fs::Error::ManyNamespaces(Vec::new()), ErrorKind::Invalid, "rename `namespace`"),
            (fs::Error::NoMetadataServer { node, files: 1 }, ErrorKind::Invalid, "--new-namespace"),
            (remote(FailureKind::NotFound), ErrorKind::NotFound, "starfish ls"),
            (remote(FailureKind::Exists), ErrorKind::Exists, "starfish rm"),
            (remote(FailureKind::NotOpen), ErrorKind::Gone, "Is it running"),
            (remote(FailureKind::NoTeam), ErrorKind::Gone, "Restart the program"),
            (remote(FailureKind::OutOfStep), ErrorKind::Gone, "the same calls"),
            (remote(FailureKind::NoSpace), ErrorKind::NoSpace, "larger disk"),
            (remote(FailureKind::Damaged), ErrorKind::Damaged, "Check the disk"),
            (remote(FailureKind::Invalid), ErrorKind::Invalid, ""),
            (remote(FailureKind::Io), ErrorKind::Io, ""),
            (
                machine(machine::Error::PeerGone { node, why: text("it hangs") }),
                ErrorKind::Gone,
                "Is it running",
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
