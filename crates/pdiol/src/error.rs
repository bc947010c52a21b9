//! What went wrong: with which file, at which agent, and what can be done about it.

use std::fmt;
use std::io;

use machine::NodeId;

/// Why an operation did not do what it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    why: String,
    remedy: Option<String>,
}

/// What a caller can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such file.
    NotFound,
    /// There is such a file already.
    Exists,
    /// The name cannot name a file.
    BadName,
    /// The name is too long.
    NameTooLong,
    /// The call or a setting makes no sense.
    Invalid,
    /// The file is open, but not for that.
    BadMode,
    /// The file would be longer than any can be.
    TooLarge,
    /// A disk is full.
    NoSpace,
    /// No agent answers at an address.
    Unreachable,
    /// An agent is gone, with what had not reached its disks yet.
    Gone,
    /// Stripes of the file are missing or not its own, or what a disk holds cannot be trusted.
    Damaged,
    /// The session has ended.
    Closed,
    /// Anything else.
    Io,
}

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this kind: `what` was the matter, and `why` it went wrong.
    pub fn new(kind: ErrorKind, what: impl Into<String>, why: impl fmt::Display) -> Self {
        Error { kind, what: what.into(), why: why.to_string(), remedy: None }
    }

    /// The same error with advice.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Error { remedy: Some(remedy.into()), ..self }
    }

    /// What a caller can act on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The file or agent that is concerned.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Why it went wrong.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// What can be done about it, if anything is known to help.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    pub(crate) fn closed(what: &str) -> Self {
        Error::new(ErrorKind::Closed, what, "the session has ended")
    }
}

/// On one line: the file or agent, the reason, the remedy.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, ". {remedy}"))
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    /// The error itself is inside: `io::Error::downcast` gets it out.
    fn from(error: Error) -> io::Error {
        let kind = match error.kind {
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::Exists => io::ErrorKind::AlreadyExists,
            ErrorKind::BadName | ErrorKind::NameTooLong => io::ErrorKind::InvalidFilename,
            ErrorKind::Invalid => io::ErrorKind::InvalidInput,
            ErrorKind::BadMode => io::ErrorKind::PermissionDenied,
            ErrorKind::TooLarge => io::ErrorKind::FileTooLarge,
            ErrorKind::NoSpace => io::ErrorKind::StorageFull,
            ErrorKind::Unreachable => io::ErrorKind::ConnectionRefused,
            ErrorKind::Gone => io::ErrorKind::ConnectionReset,
            ErrorKind::Damaged => io::ErrorKind::InvalidData,
            ErrorKind::Closed => io::ErrorKind::NotConnected,
            ErrorKind::Io => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// What the user calls each agent.
#[derive(Default)]
pub(crate) struct Names(Vec<(NodeId, String)>);

impl Names {
    /// Notes what the agent is called; says so if it has a name already.
    pub(crate) fn enter(&mut self, node: NodeId, name: &str) -> std::result::Result<(), &str> {
        if let Some(known) = self.0.iter().position(|(other, _)| *other == node) {
            return Err(&self.0[known].1);
        }
        self.0.push((node, name.to_owned()));
        Ok(())
    }

    /// Puts an error of the file system into words the user knows; `what` is the file, or what was to be done.
    pub(crate) fn explain(&self, what: &str, error: &fs::Error) -> Error {
        let mut text = error.to_string();
        for (node, name) in &self.0 {
            text = text.replace(&node.to_string(), &format!("agent {name}"));
        }
        // What it is about stands before this already.
        let about = [format!("{what}: "), format!("{what:?} ")];
        let why = about.iter().find_map(|about| text.strip_prefix(about)).unwrap_or(&text);
        let kind = kind_of(error);
        let explained = Error::new(kind, what, why);
        match remedy_for(kind) {
            Some(remedy) => explained.with_remedy(remedy),
            None => explained,
        }
    }
}

fn kind_of(error: &fs::Error) -> ErrorKind {
    use fs::FailureKind;
    match error {
        fs::Error::NotFound { .. } => ErrorKind::NotFound,
        fs::Error::Exists { .. } => ErrorKind::Exists,
        fs::Error::BadName { why, .. } if why.contains("longer") => ErrorKind::NameTooLong,
        fs::Error::BadName { .. } => ErrorKind::BadName,
        fs::Error::MissingStripe { .. } | fs::Error::ForeignStripe { .. } => ErrorKind::Damaged,
        fs::Error::Remote { failure, .. } => match failure.kind {
            FailureKind::NotFound => ErrorKind::NotFound,
            FailureKind::Exists => ErrorKind::Exists,
            FailureKind::NoSpace => ErrorKind::NoSpace,
            FailureKind::Damaged => ErrorKind::Damaged,
            FailureKind::Invalid => ErrorKind::Invalid,
            _ => ErrorKind::Io,
        },
        fs::Error::Invalid(_) | fs::Error::Layout(_) => ErrorKind::Invalid,
        fs::Error::Machine(machine::Error::PeerGone { .. }) => ErrorKind::Gone,
        fs::Error::Machine(machine::Error::Closed) => ErrorKind::Closed,
        _ => ErrorKind::Io,
    }
}

fn remedy_for(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::NotFound => Some("`starfish ls` lists the files there are"),
        ErrorKind::NoSpace => Some("Remove files with `starfish rm`, or give the agent a larger disk"),
        ErrorKind::Damaged => Some(
            "If all agents that had the file when it was made are named, restore the stripe; \
             `starfish rm` removes what is left of the file",
        ),
        ErrorKind::Gone => Some("Is the agent still running? Its standard error tells what happened to it"),
        _ => None,
    }
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
}
