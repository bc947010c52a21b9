//! Errors of the file system, as shown to users and as encoded in messages.

use machine::NodeId;
use serde::{Deserialize, Serialize};

use crate::name::NameError;

/// A failure of a file-system operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such file.
    #[error("{name}: no such file")]
    NotFound {
        /// The file's name.
        name: String,
    },
    /// A stripe of the file is missing.
    #[error("{name}: stripe {index} of {count} is missing on all I/O nodes")]
    MissingStripe {
        /// The file's name.
        name: String,
        /// Index of the first missing stripe.
        index: u32,
        /// Number of stripes of the file.
        count: u32,
    },
    /// An I/O node was restarted after it accepted unflushed data of the file: these data are lost.
    #[error("{name}: {node} was restarted and has lost writes since the last flush")]
    WriteLost {
        /// The file's name.
        name: String,
        /// The I/O node.
        node: NodeId,
    },
    /// An I/O node reported a failure.
    #[error("{node}: {failure}")]
    Remote {
        /// The I/O node.
        node: NodeId,
        /// The failure it reported.
        failure: Failure,
    },
    /// A peer does not speak the protocol, or speaks another version of it.
    #[error("{node}: {why}")]
    Protocol {
        /// The peer.
        node: NodeId,
        /// Defect of its message.
        why: String,
    },
    /// No I/O node has the disk that holds stripes of the file.
    #[error("{name}: no I/O node has disk {identity:016x}: is its agent named?")]
    UnknownDisk {
        /// The file's name.
        name: String,
        /// Identity of the disk.
        identity: u64,
    },
    /// Some I/O node cannot handle blocks of that size.
    #[error("{name}: blocks of {bytes} bytes are too large; the limit is {most}")]
    BlockTooLarge {
        /// The file's name.
        name: String,
        /// Size of the file's blocks in bytes.
        bytes: u64,
        /// Largest block size in bytes that all I/O nodes can handle.
        most: u64,
    },
    /// The metadata server refused an operation on names.
    #[error("{0}")]
    Refused(#[from] namespace::TreeRefusal),
    /// Several I/O nodes keep a namespace. They are in order of the creation of their namespaces.
    #[error("{}", in_words(.0))]
    ManyNamespaces(Vec<KeptNamespace>),
    /// Disks belong to a namespace that none of the I/O nodes keeps.
    #[error("{node} has disks of a namespace that no I/O node keeps, with stripes of {files} of its files")]
    NoMetadataServer {
        /// An I/O node that has such disks.
        node: NodeId,
        /// Number of the namespace's files with stripes on the disks of all I/O nodes.
        files: usize,
    },
    /// The I/O node that keeps the file's locks did not receive a message from this client in time. It may
    /// have granted the locks to other clients.
    #[error(
        "the locks on file {number} are lost: {metadata_server} received no message from this client for too long"
    )]
    LocksLost {
        /// The file.
        number: namespace::FileNumber,
        /// The I/O node.
        metadata_server: NodeId,
    },
    /// The metadata server was restarted after it performed unflushed operations for this client: they may be
    /// lost.
    #[error(
        "{metadata_server} was restarted and may have lost changes of the namespace since the last flush"
    )]
    NamesLost {
        /// The I/O node.
        metadata_server: NodeId,
    },
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The machine failed.
    #[error(transparent)]
    Machine(#[from] machine::Error),
    /// The layout cannot be computed.
    #[error(transparent)]
    Layout(#[from] layout::LayoutError),
}

/// One of several namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptNamespace {
    /// The I/O node that keeps it.
    pub node: NodeId,
    /// Number of its inodes.
    pub inodes: u64,
    /// Creation time.
    pub begun: namespace::UnixTime,
}

/// Returns a text that lists the I/O nodes with a namespace, with size and age of each namespace to
/// distinguish them.
fn in_words(kept: &[KeptNamespace]) -> String {
    let all = |word: &dyn Fn(&KeptNamespace) -> String, between| {
        kept.iter().map(word).collect::<Vec<_>>().join(between)
    };
    let begun = |begun| match kept.first() {
        Some(first) if first.begun < begun => format!(", created {} later", rounded(begun - first.begun)),
        _ => String::new(),
    };
    let nodes = all(&|kept| kept.node.to_string(), " and ");
    let what = all(
        &|kept| format!("{} keeps one with {} inodes{}", kept.node, kept.inodes, begun(kept.begun)),
        "; ",
    );
    format!("{nodes} each keep a namespace: {what}")
}

/// Formats a time in nanoseconds for people, in the largest unit of which it has at least two.
fn rounded(nanoseconds: i64) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    let units = [("days", 86_400), ("hours", 3600), ("minutes", 60)];
    let unit = units.into_iter().find(|(_, unit)| seconds >= 2 * unit);
    unit.map_or_else(|| format!("{seconds} s"), |(name, unit)| format!("{} {name}", seconds / unit))
}

/// Result of a file-system operation. The error is boxed to keep results small: every answer to a poll
/// carries a result, and errors are rare.
pub type Result<T> = std::result::Result<T, Box<Error>>;

/// A failure of an I/O node as sent to the client: a kind for programs, and a text for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// Kind of failure, for a caller to act on.
    pub kind: FailureKind,
    /// Text for people: names the disk and the operation.
    pub text: String,
    /// Rank of the team member whose loss caused the failure, if that is the cause.
    pub lost_rank: Option<u32>,
}

/// Kinds of failure that some caller acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// The I/O node has no such file.
    NotFound,
    /// The I/O node has a file of that name.
    Exists,
    /// The file is not open at the I/O node, for example because the I/O node was restarted. Opening it again
    /// helps.
    NotOpen,
    /// A disk is full.
    NoSpace,
    /// The data on the disk cannot be trusted.
    Damaged,
    /// The request is invalid.
    Invalid,
    /// Any other failure.
    Io,
    /// The file has larger blocks than the I/O node was started for.
    BlockTooLarge,
    /// The I/O node has no disk of that identity.
    NoDisk,
    /// A member of the team is disconnected, or the team no longer exists.
    NoTeam,
    /// Members of the team perform different steps, so one of them would wait forever.
    OutOfStep,
    /// The lease of the locks under which the data were written has ended.
    Fenced,
    /// A disk belongs to another namespace.
    OtherNamespace,
    /// The file was removed; the I/O node remembers that.
    Removed,
    /// The I/O node's namespace data cannot be trusted.
    NamesDamaged,
    /// The length exceeds that of the longest possible stripe.
    TooLarge,
}

impl FailureKind {
    /// All kinds.
    pub const ALL: [FailureKind; 16] = [
        FailureKind::NotFound,
        FailureKind::Exists,
        FailureKind::NotOpen,
        FailureKind::NoSpace,
        FailureKind::Damaged,
        FailureKind::Invalid,
        FailureKind::Io,
        FailureKind::BlockTooLarge,
        FailureKind::NoDisk,
        FailureKind::NoTeam,
        FailureKind::OutOfStep,
        FailureKind::Fenced,
        FailureKind::OtherNamespace,
        FailureKind::Removed,
        FailureKind::NamesDamaged,
        FailureKind::TooLarge,
    ];

    /// Returns the name under which failures of this kind are counted.
    pub const fn name(self) -> &'static str {
        match self {
            FailureKind::NotFound => "not found",
            FailureKind::Exists => "exists",
            FailureKind::NotOpen => "not open",
            FailureKind::NoSpace => "no space",
            FailureKind::Damaged => "damaged",
            FailureKind::Invalid => "invalid",
            FailureKind::Io => "io",
            FailureKind::BlockTooLarge => "block too large",
            FailureKind::NoDisk => "no disk",
            FailureKind::NoTeam => "no team",
            FailureKind::OutOfStep => "out of step",
            FailureKind::Fenced => "fenced",
            FailureKind::OtherNamespace => "other namespace",
            FailureKind::Removed => "removed",
            FailureKind::NamesDamaged => "names damaged",
            FailureKind::TooLarge => "too large",
        }
    }
}

impl Error {
    /// Returns the node that reported the error or that it is about, if any.
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Error::WriteLost { node, .. }
            | Error::Remote { node, .. }
            | Error::Protocol { node, .. }
            | Error::LocksLost { metadata_server: node, .. }
            | Error::NamesLost { metadata_server: node }
            | Error::Machine(machine::Error::PeerGone { node, .. }) => Some(*node),
            _ => None,
        }
    }

    /// True if this is `other`, as reported by a node that only passes it on.
    pub fn passes_on(&self, other: &Error) -> bool {
        matches!(self, Error::Remote { failure, .. } if failure.text == other.to_string())
    }

    /// Returns the name under which the error is counted if it replaces an answer.
    pub fn counted_as(&self) -> &'static str {
        match self {
            Error::Remote { failure, .. } => failure.kind.name(),
            Error::Machine(machine::Error::PeerGone { .. }) => "gone",
            _ => "other",
        }
    }

    /// True if an I/O node reported a failure of this kind.
    pub fn is_remote(&self, kind: FailureKind) -> bool {
        matches!(self, Error::Remote { failure, .. } if failure.kind == kind)
    }

    /// True if the metadata server refused the operation for this reason.
    pub fn is_refused(&self, why: namespace::TreeRefusal) -> bool {
        matches!(self, Error::Refused(refusal) if *refusal == why)
    }

    /// True if the I/O node may have been restarted: reopening the file and retrying may help.
    pub fn is_restart(&self) -> bool {
        self.is_remote(FailureKind::NotOpen) || self.is_disconnect()
    }

    /// True if the I/O node did not answer.
    pub fn is_disconnect(&self) -> bool {
        matches!(self, Error::Machine(machine::Error::PeerGone { .. }))
    }
}

impl From<namespace::TreeRefusal> for Box<Error> {
    fn from(refusal: namespace::TreeRefusal) -> Self {
        Box::new(Error::Refused(refusal))
    }
}

impl From<Box<machine::Error>> for Box<Error> {
    fn from(error: Box<machine::Error>) -> Self {
        Box::new(Error::Machine(*error))
    }
}

impl From<layout::LayoutError> for Box<Error> {
    fn from(error: layout::LayoutError) -> Self {
        Box::new(Error::Layout(error))
    }
}

impl Failure {
    /// Returns a failure of this kind, with a text for people.
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Failure { kind, text: text.into(), lost_rank: None }
    }

    /// Returns the failure of an invalid request.
    pub fn invalid(text: impl Into<String>) -> Self {
        Failure::new(FailureKind::Invalid, text)
    }
}

impl From<machine::Error> for Failure {
    fn from(error: machine::Error) -> Self {
        let kind = match &error {
            machine::Error::NotFound { .. } => FailureKind::NotFound,
            machine::Error::Exists { .. } => FailureKind::Exists,
            machine::Error::NoSpace { .. } => FailureKind::NoSpace,
            machine::Error::TooLarge { .. } => FailureKind::TooLarge,
            machine::Error::Damaged { .. } => FailureKind::Damaged,
            _ => FailureKind::Io,
        };
        Failure::new(kind, error.to_string())
    }
}

impl From<Box<machine::Error>> for Box<Failure> {
    fn from(error: Box<machine::Error>) -> Self {
        Box::new((*error).into())
    }
}

impl From<NameError> for Box<Failure> {
    fn from(error: NameError) -> Self {
        Failure::invalid(error.to_string()).into()
    }
}

impl From<layout::LayoutError> for Box<Failure> {
    fn from(error: layout::LayoutError) -> Self {
        Failure::invalid(error.to_string()).into()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Remote { failure, .. } => failure,
            Error::Machine(error) => error.into(),
            Error::Invalid(text) => Failure::invalid(text),
            other => Failure::new(FailureKind::Io, other.to_string()),
        }
    }
}

impl From<Box<Error>> for Box<Failure> {
    fn from(error: Box<Error>) -> Self {
        Box::new((*error).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_lists_servers_sizes_and_ages_of_several_namespaces() {
        let kept = |node, inodes, seconds: i64| KeptNamespace {
            node: NodeId(node),
            inodes,
            begun: seconds * 1_000_000_000,
        };
        let (one, other) = (NodeId(1), NodeId(2));
        let text = Error::ManyNamespaces(vec![kept(1, 70, 5), kept(2, 3, 7205)]).to_string();
        let expected = format!(
            "{one} and {other} each keep a namespace: {one} keeps one with 70 inodes; \
             {other} keeps one with 3 inodes, created 2 hours later"
        );
        assert_eq!(text, expected);
        for (seconds, text) in [(0, "0 s"), (119, "119 s"), (120, "2 minutes"), (200_000, "2 days")] {
            assert_eq!(rounded(seconds * 1_000_000_000), text);
        }
    }

    /// Every answer carries a result through several nested futures, each of which copies it.
    #[test]
    fn a_result_is_as_small_as_a_pointer() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
        assert_eq!(size_of::<std::result::Result<(), Box<Failure>>>(), size_of::<usize>());
    }
}
