//! The namespace of the agents, if they have one.

use command_line::failure::Result;
use node::Agent;
use serde::Serialize;

use crate::store::namespace::Namespace;
use crate::this_node;

/// What is known of the namespace.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NamespaceFinding {
    /// What the user calls the agent that keeps it.
    pub(crate) agent: String,
    /// How many inodes it has.
    pub(crate) inodes: u64,
    /// How many files keep flat names beside it.
    pub(crate) flat: usize,
}

/// The namespace, if there is one.
///
/// # Errors
/// If there are two, if those who answer only have stripes of one, or if it cannot be asked for.
pub(crate) fn find(agents: Vec<Agent>) -> Result<Option<NamespaceFinding>> {
    this_node::run_with_present(agents, |connection| async move {
        let Some(namespace) = Namespace::find_surely(&connection).await? else { return Ok(None) };
        let inodes = namespace.used().await?.inodes;
        // Disks that cannot be listed are told of elsewhere.
        let flat = connection.client.list().await.map_or(0, |names| names.len());
        Ok(Some(NamespaceFinding { agent: namespace.keeper().to_owned(), inodes, flat }))
    })
}

/// What is to be known of it.
pub(crate) fn note(found: Option<&NamespaceFinding>) -> String {
    let Some(NamespaceFinding { agent, inodes, flat }) = found else {
        return "The agents have no namespace: names are flat.\n  `starfish mkdir` begins one.".into();
    };
    let beside = match flat {
        0 => String::new(),
        flat => format!("\n  Files of flat names beside it: {flat}; `starfish ls --flat` lists them."),
    };
    format!("The namespace has {inodes} inodes; agent {agent} keeps it.{beside}")
}
