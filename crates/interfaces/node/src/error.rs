//! Errors: which file, which agent, the reason, and the remedy.

use std::fmt;
use std::io;

use fs::FailureKind;
use namespace::TreeRefusal;

/// Reason for which an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    why: String,
    remedy: Option<String>,
    lost_rank: Option<u32>,
}

/// Kind of an error, on which a caller can act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file does not exist.
    NotFound,
    /// The file exists already.
    Exists,
    /// The name is too long.
    NameTooLong,
    /// The call or a setting is invalid.
    Invalid,
    /// The file is not open for this operation.
    BadMode,
    /// The file would exceed the maximum size.
    TooLarge,
    /// A disk is full.
    NoSpace,
    /// No agent answers at an address.
    Unreachable,
    /// The address of an agent's host cannot be resolved.
    UnknownHost,
    /// An agent is disconnected, or does not answer any more.
    Gone,
    /// Data that an agent had accepted are lost: it was restarted before they were flushed.
    Lost,
    /// An agent uses another version of the protocol, or another protocol.
    Protocol,
    /// An agent and this program have different cluster keys.
    NotTrusted,
    /// Stripes of the file are missing or belong to another file, or data of a disk cannot be trusted.
    Damaged,
    /// The session has ended, or the file has been closed.
    Closed,
    /// The metadata server refused an operation on names for a reason without a separate kind in this list.
    Refused(TreeRefusal),
    /// Any other error.
    Io,
}

/// Result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns an error of this kind, with its subject and reason.
    pub fn new(kind: ErrorKind, what: impl Into<String>, why: impl fmt::Display) -> Self {
        Error { kind, what: what.into(), why: why.to_string(), remedy: None, lost_rank: None }
    }

    /// Returns the error with advice.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Error { remedy: Some(remedy.into()), ..self }
    }

    /// Returns the error with another subject, the caller's name for it.
    #[must_use]
    pub fn about(self, what: impl Into<String>) -> Self {
        Error { what: what.into(), ..self }
    }

    /// Returns the error with the rank of the team member whose loss caused it.
    #[must_use]
    pub fn with_lost_rank(self, rank: u32) -> Self {
        Error { lost_rank: Some(rank), ..self }
    }

    /// Returns the kind, on which a caller can act.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the file or agent that the error is about.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the reason.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Returns the remedy, if one is known.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// Returns the rank of the lost team member, if its loss caused the error.
    pub fn lost_rank(&self) -> Option<u32> {
        self.lost_rank
    }

    pub(crate) fn closed(what: &str) -> Self {
        Error::new(ErrorKind::Closed, what, "the session has ended")
    }

    pub(crate) fn file_closed(name: &str) -> Self {
        Error::new(ErrorKind::Closed, name, "the file has been closed")
    }
}

/// Formats the error on one line: the file or agent, the reason, the remedy.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, ". {remedy}"))
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    /// Wraps the error: `io::Error::downcast` returns it.
    fn from(error: Error) -> io::Error {
        let kind = match error.kind {
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::Exists => io::ErrorKind::AlreadyExists,
            ErrorKind::NameTooLong => io::ErrorKind::InvalidFilename,
            ErrorKind::Invalid => io::ErrorKind::InvalidInput,
            ErrorKind::BadMode | ErrorKind::NotTrusted => io::ErrorKind::PermissionDenied,
            ErrorKind::TooLarge => io::ErrorKind::FileTooLarge,
            ErrorKind::NoSpace => io::ErrorKind::StorageFull,
            ErrorKind::Unreachable => io::ErrorKind::ConnectionRefused,
            ErrorKind::UnknownHost => io::ErrorKind::HostUnreachable,
            ErrorKind::Gone => io::ErrorKind::ConnectionReset,
            ErrorKind::Damaged => io::ErrorKind::InvalidData,
            ErrorKind::Protocol => io::ErrorKind::Unsupported,
            ErrorKind::Closed => io::ErrorKind::NotConnected,
            ErrorKind::Refused(TreeRefusal::NotDirectory) => io::ErrorKind::NotADirectory,
            ErrorKind::Refused(TreeRefusal::IsDirectory) => io::ErrorKind::IsADirectory,
            ErrorKind::Refused(TreeRefusal::NotEmpty) => io::ErrorKind::DirectoryNotEmpty,
            ErrorKind::Refused(TreeRefusal::NotPermitted) => io::ErrorKind::PermissionDenied,
            ErrorKind::Lost | ErrorKind::Io | ErrorKind::Refused(_) => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// Returns the kind of an error of the file system.
pub(crate) fn kind_of(error: &fs::Error) -> ErrorKind {
    match error {
        fs::Error::NotFound { .. } => ErrorKind::NotFound,
        fs::Error::MissingStripe { .. } | fs::Error::UnknownDisk { .. } => ErrorKind::Damaged,
        fs::Error::WriteLost { .. } | fs::Error::LocksLost { .. } | fs::Error::NamesLost { .. } => {
            ErrorKind::Lost
        }
        fs::Error::ManyNamespaces(_) | fs::Error::NoMetadataServer { .. } => ErrorKind::Invalid,
        fs::Error::Refused(refusal) => kind_of_refusal(*refusal),
        fs::Error::Remote { failure, .. } => kind_of_remote(failure.kind),
        fs::Error::Protocol { .. } => ErrorKind::Protocol,
        fs::Error::Invalid(_) | fs::Error::BlockTooLarge { .. } | fs::Error::Layout(_) => ErrorKind::Invalid,
        fs::Error::Machine(machine::Error::PeerGone { .. }) => ErrorKind::Gone,
        fs::Error::Machine(machine::Error::Closed) => ErrorKind::Closed,
        fs::Error::Machine(machine::Error::OtherKey { .. }) => ErrorKind::NotTrusted,
        fs::Error::Machine(machine::Error::OtherVersion { .. }) => ErrorKind::Protocol,
        _ => ErrorKind::Io,
    }
}

fn kind_of_refusal(refusal: TreeRefusal) -> ErrorKind {
    match refusal {
        TreeRefusal::NotFound | TreeRefusal::Removed => ErrorKind::NotFound,
        TreeRefusal::Exists => ErrorKind::Exists,
        TreeRefusal::NameTooLong => ErrorKind::NameTooLong,
        TreeRefusal::Invalid => ErrorKind::Invalid,
        TreeRefusal::FileTooLarge => ErrorKind::TooLarge,
        TreeRefusal::Damaged => ErrorKind::Damaged,
        TreeRefusal::Newer { .. } => ErrorKind::Protocol,
        refusal => ErrorKind::Refused(refusal),
    }
}

fn kind_of_remote(kind: FailureKind) -> ErrorKind {
    match kind {
        FailureKind::NotFound | FailureKind::Removed => ErrorKind::NotFound,
        FailureKind::Exists => ErrorKind::Exists,
        FailureKind::Fenced => ErrorKind::Lost,
        // The client has already tried to reopen the file, without success.
        FailureKind::NotOpen | FailureKind::NoTeam | FailureKind::OutOfStep => ErrorKind::Gone,
        FailureKind::NoDisk => ErrorKind::Unreachable,
        FailureKind::NoSpace => ErrorKind::NoSpace,
        FailureKind::TooLarge => ErrorKind::TooLarge,
        FailureKind::Damaged | FailureKind::NamesDamaged => ErrorKind::Damaged,
        FailureKind::Invalid | FailureKind::BlockTooLarge | FailureKind::OtherNamespace => ErrorKind::Invalid,
        FailureKind::Io => ErrorKind::Io,
    }
}

/// Returns the remedy for an error of the file system. `log` is the log of the agent that returned it, if any, and if
/// `starfish agents up` has started that agent.
pub(crate) fn remedy_for(error: &fs::Error, log: Option<&str>) -> Option<String> {
    let remedy = match error {
        fs::Error::MissingStripe { .. } => {
            "Name all agents of the set. If all are named, the stripe is lost: `starfish get --skip-damaged` \
             saves the rest, and `starfish rm` removes the file"
        }
        fs::Error::UnknownDisk { .. } => {
            "Start the agent with this disk, and name it here: the file `.starfish.disk` in the disk's \
             directory has the identity. If the disk is lost, `starfish get --skip-damaged` saves the \
             stripes on other disks, and `starfish rm` removes the file"
        }
        fs::Error::Remote { failure: fs::Failure { kind: FailureKind::OtherNamespace, .. }, .. } => {
            "Name the agents of a single set, with --agents or STARFISH_AGENTS. If the other namespace is \
             lost or was set aside, `starfish fsck --repair --take-disks` assigns its disks to this one"
        }
        fs::Error::ManyNamespaces(_) => {
            "Set aside the namespace that was created by mistake: stop its agent, rename `namespace` in the \
             directory of its disk, and restart the agent. Then `starfish fsck --repair` names the files of \
             that namespace"
        }
        fs::Error::NoMetadataServer { .. } => {
            "Name all agents of the set. If the metadata server does not run, start it with all its disks. \
             If its disk is lost, restore a copy of the namespace. Only if there is no copy: `starfish fsck \
             --repair --new-namespace`"
        }
        fs::Error::BlockTooLarge { .. } => {
            "Choose smaller blocks (`--block SIZE`, `block_bytes` in Python), or restart the agents with a \
             larger `--block-max`"
        }
        fs::Error::LocksLost { .. }
        | fs::Error::Remote { failure: fs::Failure { kind: FailureKind::Fenced, .. }, .. } => {
            "Another program may have changed the file. Close it, open it again, and check its contents"
        }
        fs::Error::Refused(TreeRefusal::Damaged) => {
            "File contents are not affected. `starfish fsck --repair` repairs records of the namespace. If \
             it fails, restore a copy made by `starfish agent --copy-namespace`"
        }
        fs::Error::Remote { failure, .. } if failure.kind == FailureKind::NamesDamaged => {
            "File contents are not affected. Stop that agent and restore the copy made by its \
             `--copy-namespace`. Without a copy, rename `namespace` in its directory, start the agent, and \
             run `starfish fsck --repair --new-namespace`, which names all files by number. See the manual: \
             Operation, The names are lost or damaged"
        }
        fs::Error::Remote { failure, .. } if failure.kind == FailureKind::BlockTooLarge => {
            "Restart the agents with a `--block-max` of at least the file's block size"
        }
        fs::Error::Remote { failure, .. } if failure.kind == FailureKind::NoTeam => {
            "Restart the program. If one of its processes ended, see its last messages"
        }
        fs::Error::Remote { failure, .. } if failure.kind == FailureKind::OutOfStep => {
            "All members must make the same calls, in the same order and with the same settings"
        }
        _ => match kind_of(error) {
            ErrorKind::NotFound => "`starfish ls` lists the existing files",
            ErrorKind::Exists => "Use another name, or remove the existing file with `starfish rm`",
            ErrorKind::NoSpace => "Remove files with `starfish rm`, or give the agent a larger disk",
            ErrorKind::Damaged => {
                "Check the disk. Other files on it can be read; `starfish rm` removes the damaged file"
            }
            ErrorKind::Gone => return Some(remedy_for_silence(log)),
            ErrorKind::Lost => {
                return Some(format!("Write it again. {} shows why the agent ended", log_of(log)));
            }
            ErrorKind::Protocol => "Install the same version of Starfish on this computer and on the agent's",
            _ => return None,
        },
    };
    Some(remedy.to_owned())
}

/// Returns the remedy for an agent that does not answer.
pub(crate) fn remedy_for_silence(log: Option<&str>) -> String {
    let start = match log {
        Some(_) => "`starfish agents up` starts it again; if it hangs, run `starfish agents down` first",
        None => {
            "Is it running? Start it as before: by `starfish agents up` with the --dir of its set, or by \
             `starfish agent` with its --root and --listen"
        }
    };
    format!("{start}. {} shows why the agent does not answer", log_of(log))
}

fn log_of(log: Option<&str>) -> String {
    log.map_or_else(|| "Its log or standard error".to_owned(), |log| format!("Its log ({log})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_a_remedy() {
        let error = Error::new(ErrorKind::NotFound, "x", "no such file").with_remedy("Make it");
        assert_eq!(error.to_string(), "x: no such file. Make it");
        let inside = io::Error::from(error.clone());
        assert_eq!(inside.kind(), io::ErrorKind::NotFound);
        assert_eq!(inside.downcast::<Error>().expect("it is inside"), error);
    }

    #[test]
    fn error_kinds_map_to_those_of_std() {
        for (kind, of_std) in [
            (ErrorKind::NoSpace, io::ErrorKind::StorageFull),
            (ErrorKind::Damaged, io::ErrorKind::InvalidData),
            (ErrorKind::Gone, io::ErrorKind::ConnectionReset),
            (ErrorKind::Unreachable, io::ErrorKind::ConnectionRefused),
            (ErrorKind::UnknownHost, io::ErrorKind::HostUnreachable),
            (ErrorKind::Protocol, io::ErrorKind::Unsupported),
            (ErrorKind::NotTrusted, io::ErrorKind::PermissionDenied),
            (ErrorKind::Lost, io::ErrorKind::Other),
        ] {
            assert_eq!(io::Error::from(Error::new(kind, "x", "why")).kind(), of_std, "{kind:?}");
        }
    }
}
