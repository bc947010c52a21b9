//! Diagnosis of agents and mounts: their answers, and the problems that the answers show.
//!
//! - `agent.rs`: one agent's report of its disks and its computer.
//! - `agent_throughput.rs`: write and read throughput of each agent in several rounds, and the work of other programs
//!   on its computer in the same time.
//! - `mounts.rs`: mounts of this user on this computer.
//! - `names.rs`: the namespace.
//! - `judge.rs`: problems and notes; computed from these findings alone.

mod agent;
mod agent_throughput;
mod judge;
pub mod mounts;
mod names;

use agent_set::at_once;
use command_line::failure::{Failure, Result};
use node::{ErrorKind, agents};
use serde::{Serialize, Serializer};
use transfer::cluster::Cluster;

use crate::agent::{Examined, examine};
use crate::mounts::MountFinding;

pub use crate::agent::{AgentFinding, HeldUpFinding};
pub use crate::judge::KEEPS_APART;
pub use crate::names::NamespaceFinding;

/// Findings about some agents, and their problems.
#[derive(Debug, Default, Serialize)]
pub struct Diagnosis {
    /// The agents, in the order of their names.
    pub agents: Vec<AgentFinding>,
    /// The namespace of these agents, if they have one.
    pub namespace: Option<NamespaceFinding>,
    /// This user's mounts of these agents on this computer.
    pub mounts: Vec<MountFinding>,
    /// Remarks that are not problems.
    pub notes: Vec<String>,
    /// Problems, each with a remedy.
    #[serde(serialize_with = "as_texts")]
    pub problems: Vec<Failure>,
}

/// Examines the agents of these names, their namespace and their mounts. Nodes connect with the settings of
/// `connecting`.
///
/// With `measured_bytes`, also measures the write and read throughput of agents, with files of at most this number of
/// bytes. Fails if the handler of interruptions cannot be installed. Problems of agents are part of the diagnosis, not
/// failures.
pub fn diagnose(names: &[String], connecting: &Cluster, measured_bytes: Option<u64>) -> Result<Diagnosis> {
    let mut diagnosis = Diagnosis::default();
    let examined = diagnosis.examine_agents(names, connecting);
    let Diagnosis { agents, problems, .. } = &mut diagnosis;
    if let Some(bytes_max) = measured_bytes {
        agent_throughput::all(connecting, agents, &examined, bytes_max, problems)?;
    }
    problems.extend(judge::problems(agents));
    diagnosis.notes = judge::notes(agents);
    let answering = examined.iter().flatten().count();
    if answering > 0 {
        diagnosis.examine_namespace(names, connecting, answering == names.len());
    }
    diagnosis.examine_mounts(names);
    Ok(diagnosis)
}

impl Diagnosis {
    /// Examines all agents in parallel. Returns the answers.
    fn examine_agents(&mut self, names: &[String], connecting: &Cluster) -> Vec<Option<Examined>> {
        let answers = at_once(names, |name| examine(connecting, name)).into_iter();
        let answers = answers.map(|answer| answer.map_err(|failure| self.problems.push(failure)).ok());
        let answers: Vec<Option<Examined>> = answers.collect();
        let finding = |(name, answer): (&String, &Option<Examined>)| match answer {
            Some(examined) => AgentFinding::of(name, examined),
            None => AgentFinding { agent: name.clone(), ..AgentFinding::default() },
        };
        self.agents = names.iter().zip(&answers).map(finding).collect();
        answers
    }

    /// Finds the namespace of these agents. `is_whole` is true if all of the agents answer.
    fn examine_namespace(&mut self, names: &[String], connecting: &Cluster, is_whole: bool) {
        // Names that do not resolve to agents have been reported as a problem already.
        let Ok(agents) = agents::named(names) else { return };
        match names::find(&connecting.with_agents(agents)) {
            Ok(found) => {
                // Without a namespace, an agent that does not answer could be the metadata server.
                if found.is_some() || is_whole {
                    self.notes.push(names::note(found.as_ref()));
                }
                self.problems.extend(found.as_ref().and_then(names::problem));
                self.namespace = found;
            }
            // Report two namespaces in any case. All other failures are consequences of reported problems, if there are
            // any.
            Err(failure) if self.problems.is_empty() || failure.kind() == Some(ErrorKind::Invalid) => {
                self.problems.push(failure);
            }
            Err(_) => {}
        }
    }

    fn examine_mounts(&mut self, names: &[String]) {
        self.mounts = mounts::find(names);
        self.notes.extend(mounts::notes(&self.mounts));
        self.problems.extend(mounts::problems(&self.mounts));
    }
}

fn as_texts<S: Serializer>(problems: &[Failure], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(problems.iter().map(Failure::to_string))
}
