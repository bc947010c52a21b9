//! The namespace of the agents, if they have one.

use std::collections::BTreeSet;

use command_line::counted;
use command_line::failure::{Failure, Result};
use machine::NO_DISK;
use namespace::{SurveyedRecord, TreeAnswer, TreeOperation};
use serde::Serialize;
use transfer::cluster::Cluster;
use transfer::namespace::Namespace;

/// Findings about the namespace.
#[derive(Clone, Debug, Serialize)]
pub struct NamespaceFinding {
    /// Name of the agent that is the metadata server, as the user gave it.
    pub agent: String,
    /// Number of inodes.
    pub inodes: u64,
    /// Identities of the missing disks: files have bytes on them, and no agent has them although all agents have
    /// answered.
    pub missing_disks: Vec<String>,
}

/// Finds the namespace, if the agents have one.
///
/// # Errors
/// If there are two namespaces, if the answering agents have only stripes of a namespace, if two disks have the same
/// identity, or if a request to an agent fails.
pub(crate) fn find(cluster: &Cluster) -> Result<Option<NamespaceFinding>> {
    cluster.run_with_present(|connection| async move {
        let Some(namespace) = Namespace::find_surely(&connection).await? else { return Ok(None) };
        let inodes = namespace.used().await?.inodes;
        let missing_disks = missing_disks(&namespace).await?;
        Ok(Some(NamespaceFinding { agent: namespace.metadata_server().to_owned(), inodes, missing_disks }))
    })
}

/// Returns the disks that have bytes of files and belong to no agent. Returns an empty list if an agent does not
/// answer, because its disks are unknown.
async fn missing_disks(namespace: &Namespace) -> Result<Vec<String>> {
    let connection = &namespace.connection;
    let there =
        connection.explained("cannot get the list of disks", connection.client.disks_by_identity().await)?;
    if connection.incompleteness().is_err() {
        return Ok(Vec::new());
    }
    let mut missing = BTreeSet::new();
    for list in 0.. {
        // Reading fails beyond the last list of disks.
        let Ok(TreeAnswer::Disks(disks)) = namespace.tree.perform(TreeOperation::ReadDisks { list }).await
        else {
            break;
        };
        missing.extend(disks.into_iter().filter(|identity| !there.contains_key(identity)));
    }
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    // Read all records only if a disk is missing, because the files on a missing disk may have been removed.
    let records = namespace.survey().await?;
    let inodes = records.iter().filter_map(|record| match record {
        SurveyedRecord::Inode(inode) => Some(inode),
        _ => None,
    });
    let lost = namespace.stripes_on_disks_that_are_nowhere(&there, inodes).await?;
    let lost: BTreeSet<u64> = lost.into_iter().map(|stripe| stripe.disk).collect();
    let named = lost.into_iter().map(|identity| match identity {
        NO_DISK => "one that was lost with the namespace".to_owned(),
        identity => format!("{identity:016x}"),
    });
    Ok(named.collect())
}

/// Returns a remark about the namespace.
pub(crate) fn note(found: Option<&NamespaceFinding>) -> String {
    let Some(NamespaceFinding { agent, inodes, .. }) = found else {
        return "These agents have no files yet.".into();
    };
    format!("The namespace has {}; agent {agent} is its metadata server.", counted(*inodes, "inode"))
}

/// Returns the problem of the namespace, if any.
pub(crate) fn problem(found: &NamespaceFinding) -> Option<Failure> {
    let disks = found.missing_disks.join(", ");
    let why = format!("files have stripes on disks that no agent has: {disks}");
    let failure = Failure::new("the namespace", why);
    let remedy =
        "Start the agents with these disks, and name them, too. `starfish fsck` lists the missing stripes.";
    (!disks.is_empty()).then(|| failure.remedy(remedy))
}
