//! Names of the kinds of faults and operations, and the roles of the nodes that a fault hits.

use crate::schedule::{ClientOperation, Fault};

/// Names of all kinds of faults.
pub const FAULTS: [&str; 21] = [
    "power cut",
    "kill",
    "kill of a client",
    "reset",
    "delay to an I/O node",
    "delay to a client",
    "delay between I/O nodes",
    "suspended client",
    "hanging disk",
    "failed writes",
    "failed flushes",
    "failed medium",
    "failed transactions",
    "failed removals",
    "full disk",
    "bit flip after a read",
    "bit flip before a write",
    "damaged data",
    "clock jump",
    "lost write",
    "misdirected write",
];

/// Names of all kinds of operations except a pause.
pub const OPERATIONS: [&str; 23] = [
    "open",
    "close",
    "read",
    "write",
    "append",
    "truncate",
    "send",
    "sync",
    "read records",
    "write records",
    "collective",
    "lock",
    "unlock",
    "create",
    "replace",
    "rename",
    "link",
    "remove",
    "list",
    "flush names",
    "sync all",
    "flush a job",
    "leave a job",
];

/// Role of the node that a fault hits, for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The I/O node is also the metadata server.
    MetadataServer,
    /// Another I/O node, or a connection between two I/O nodes.
    IoNode,
    /// The client of the operation, or its connection.
    OwnClient,
    /// Another client, or its connection.
    OtherClient,
}

impl Role {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Role::MetadataServer => "metadata server",
            Role::IoNode => "other I/O node",
            Role::OwnClient => "own client",
            Role::OtherClient => "other client",
        }
    }

    /// Returns the roles that faults of this name can hit.
    pub fn of(fault: &str) -> &'static [Role] {
        match fault {
            "kill of a client"
            | "reset"
            | "delay to an I/O node"
            | "delay to a client"
            | "suspended client" => &[Role::OwnClient, Role::OtherClient],
            "delay between I/O nodes" => &[Role::IoNode],
            _ => &[Role::MetadataServer, Role::IoNode],
        }
    }
}

impl Fault {
    /// Returns the name of the kind, one of [`FAULTS`].
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Fault::PowerCut(_) => "power cut",
            Fault::Kill(_) => "kill",
            Fault::KillClient(..) => "kill of a client",
            Fault::Reset(..) => "reset",
            Fault::BlockToIoNode(..) => "delay to an I/O node",
            Fault::BlockToClient(..) => "delay to a client",
            Fault::BlockBetween(..) => "delay between I/O nodes",
            Fault::Isolate(..) => "suspended client",
            Fault::HoldDisk(..) => "hanging disk",
            Fault::FailWrites(..) => "failed writes",
            Fault::FailFlushes(..) => "failed flushes",
            Fault::FailMedium(..) => "failed medium",
            Fault::FailTransactions(..) => "failed transactions",
            Fault::FailRemovals(..) => "failed removals",
            Fault::FillDisk(..) => "full disk",
            Fault::FlipRead(_) => "bit flip after a read",
            Fault::FlipWrite(_) => "bit flip before a write",
            Fault::Damage(..) => "damaged data",
            Fault::LoseWrite(_) => "lost write",
            Fault::MisdirectWrite(_) => "misdirected write",
            Fault::JumpClock(..) => "clock jump",
        }
    }
}

impl ClientOperation {
    /// Returns the name of the kind, one of [`OPERATIONS`]; `None` for a pause.
    pub(crate) fn name(&self) -> Option<&'static str> {
        Some(match self {
            ClientOperation::Write(..) => "write",
            ClientOperation::Append(..) => "append",
            ClientOperation::Cut(..) => "truncate",
            ClientOperation::Read(..) => "read",
            ClientOperation::Send(_) => "send",
            ClientOperation::Sync(_) => "sync",
            ClientOperation::Open(_) => "open",
            ClientOperation::Close(_) => "close",
            ClientOperation::WriteRecords(..) => "write records",
            ClientOperation::ReadRecords(..) => "read records",
            ClientOperation::Make(_) => "create",
            ClientOperation::Replace(..) => "replace",
            ClientOperation::Rename(..) => "rename",
            ClientOperation::Link(..) => "link",
            ClientOperation::Remove(_) => "remove",
            ClientOperation::List => "list",
            ClientOperation::FlushNames => "flush names",
            ClientOperation::SyncAll => "sync all",
            ClientOperation::Lock(..) => "lock",
            ClientOperation::Unlock(_) => "unlock",
            ClientOperation::Pause(_) => return None,
            ClientOperation::Together(_) => "collective",
            ClientOperation::FlushJob(_) => "flush a job",
            ClientOperation::LeaveJob => "leave a job",
        })
    }
}
