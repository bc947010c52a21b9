//! Removal of contents that no client removes: those of files that a killed client had open without names.
//!
//! The agent that keeps the names knows of these files, but only a client reaches the disks of all agents. So it is
//! a client while there are any.

use std::time::Duration;

use command_line::counted;
use command_line::failure::Result;
use flume::Receiver;
use machine::{Machine, NodeId};
use node::{Agent, AgentService, BlockingWork, agents};
use real::RealMachine;

use crate::store::namespace::Namespace;
use crate::this_node;

/// How often an agent looks, in its silences: each minute by default.
const SILENCES: u32 = 6;

/// The longest time between two looks that come to nothing, in the shortest one. Disks may be away for days.
const PAUSE_MAX: u32 = 64;

/// Looks for such files from now on. The addresses of all agents come through `set`, if this agent is told of them.
pub(crate) fn begin(
    machine: &RealMachine,
    service: AgentService,
    set: Receiver<Vec<String>>,
    silence: Duration,
) {
    let (keeper, own) = (machine.node(), machine.address().expect("an agent listens").to_string());
    let clock = machine.clone();
    machine.spawn("removing contents of removed files", async move {
        let (shortest, mut pause, mut names) = (silence * SILENCES, silence * SILENCES, None);
        loop {
            clock.sleep_until(clock.now() + pause.into()).await;
            names = set.try_recv().ok().or(names);
            if !service.has_removed_files().await {
                pause = shortest;
                continue;
            }
            let agents = names.clone().or_else(named).unwrap_or_else(|| vec![own.clone()]);
            pause = match BlockingWork::begin(move || remove(agents, keeper)).outcome().await {
                Ok(0) => (pause * 2).min(shortest * PAUSE_MAX),
                Ok(removed) => {
                    log::info!("removed the contents of {} that no client removed", counted(removed, "file"));
                    shortest
                }
                Err(failure) => {
                    log::warn!("removing contents of removed files: {failure}");
                    (pause * 2).min(shortest * PAUSE_MAX)
                }
            };
        }
    });
}

/// The agents that programs on this computer use.
fn named() -> Option<Vec<String>> {
    agents::names_among(&[], None).ok()
}

/// Removes the contents from the disks of these agents, if `keeper` keeps their names. Returns the number of files of
/// which nothing is left.
fn remove(names: Vec<String>, keeper: NodeId) -> Result<u64> {
    let agents: Vec<Agent> = agents::named(names)?;
    this_node::run_with_present(agents, move |connection| async move {
        match Namespace::find(&connection).await? {
            Some(namespace) if namespace.tree.keeper() == keeper => {
                Ok(connection.explained("removed files", namespace.tree.remove_doomed().await)?)
            }
            // Programs on this computer use other agents.
            _ => Ok(0),
        }
    })
}
