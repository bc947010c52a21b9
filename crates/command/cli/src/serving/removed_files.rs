//! Removal of the contents of orphans: files that have no names any more and that no client has open.
//!
//! If a client is killed, its open files without names become orphans. The metadata server lists the orphans, but only
//! a client connects to all agents. So the metadata agent connects to them as a client while the list is not empty.
//! Mounts remove orphans, too: a mount knows all agents, but a manually started agent may not know them.

use std::path::PathBuf;
use std::time::Duration;

use command_line::counted;
use command_line::failure::Result;
use flume::Receiver;
use machine::{Machine, NodeId};
use node::{AgentService, BlockingWork, agents};
use real::RealMachine;
use transfer::cluster::Cluster;
use transfer::namespace::Namespace;

/// Shortest time between two checks, as a number of silence timeouts. It is one minute by default.
const SILENCES: u32 = 6;

/// Longest time between two checks, as a multiple of the shortest one. An agent or a disk can be missing for days.
const PAUSE_MAX: u32 = 64;

/// Starts a task that checks for orphans and removes their contents. `set` returns the addresses of all agents if
/// `starfish agents up` started this agent. `key_file` is the file of the cluster key, if this agent has been given
/// one.
pub(crate) fn begin(
    machine: &RealMachine,
    service: AgentService,
    set: Receiver<Vec<String>>,
    key_file: Option<PathBuf>,
    silence: Duration,
) {
    let (this_agent, clock) = (machine.node(), machine.clone());
    let own_address = machine.address().expect("an agent listens").to_string();
    machine.spawn("removing contents of removed files", async move {
        let shortest = silence * SILENCES;
        let (mut pause, mut names) = (shortest, None);
        loop {
            clock.sleep_until(clock.now() + pause.into()).await;
            names = set.try_recv().ok().or(names);
            let has_succeeded = !service.has_removed_files().await || {
                let agents = names.clone().or_else(agents_of_programs);
                let agents = agents.unwrap_or_else(|| vec![own_address.clone()]);
                remove_and_log(agents, key_file.clone(), this_agent).await
            };
            pause = if has_succeeded { shortest } else { (pause * 2).min(shortest * PAUSE_MAX) };
        }
    });
}

/// Returns the agents that programs on this computer use.
fn agents_of_programs() -> Option<Vec<String>> {
    agents::names_among(&[], None).ok()
}

/// Removes contents by [`remove`], and logs the result. Returns true if the contents of at least one file were removed.
async fn remove_and_log(names: Vec<String>, key_file: Option<PathBuf>, metadata_agent: NodeId) -> bool {
    let remove = move || {
        let cluster = Cluster { key_file, ..Cluster::new(agents::named(names)?) };
        remove(&cluster, metadata_agent)
    };
    let removed = BlockingWork::begin(remove).outcome().await;
    match &removed {
        Ok(0) => {}
        Ok(files) => log::info!("removed the contents of {} left by clients", counted(*files, "file")),
        Err(failure) => log::warn!("cannot remove the contents of removed files: {failure}"),
    }
    removed.is_ok_and(|files| files > 0)
}

/// Removes the contents of orphans from the disks of these agents. Does nothing if the metadata agent of these agents
/// is not `metadata_agent`. Returns the number of files that were removed completely.
fn remove(cluster: &Cluster, metadata_agent: NodeId) -> Result<u64> {
    cluster.run_with_present(move |connection| async move {
        match Namespace::find(&connection).await? {
            Some(namespace) if namespace.tree.metadata_server() == metadata_agent => {
                Ok(connection.explained("cannot remove contents", namespace.tree.remove_orphans().await)?)
            }
            _ => Ok(0),
        }
    })
}
