//! Failures as shown to the user: the failed action, the reason and a remedy, after the name of the program.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::process::ExitCode;

use node::ErrorKind;

use crate::say;
use crate::visible;
use crate::words::visible_lines;

/// Failure of a command.
#[derive(Debug)]
pub struct Failure {
    what: String,
    why: String,
    remedy: Option<String>,
    /// Kind of a file system error, to which a caller can react; `None` for other failures.
    kind: Option<ErrorKind>,
    code: u8,
    broken_pipe: bool,
    is_logged: bool,
}

/// The result of a step of a command.
pub type Result<T> = std::result::Result<T, Failure>;

/// Exit code of a failed command.
const FAILED: u8 = 1;

/// Exit code for wrong usage, the same as clap's.
pub const USAGE: u8 = 2;

impl Failure {
    /// Stores this failure in the outcome of several steps, which all run even if one fails. If the outcome holds a
    /// failure already, prints this one instead.
    pub fn join(self, outcome: &mut Result<()>) {
        match outcome {
            Ok(()) => *outcome = Err(self),
            Err(_) => say!("starfish: {self}"),
        }
    }

    /// Returns the failure of an action, with its reason.
    pub fn new(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Failure {
            what: what.into(),
            why: without_numbers(&why.to_string()),
            remedy: None,
            kind: None,
            code: FAILED,
            broken_pipe: false,
            is_logged: false,
        }
    }

    /// Returns the failure of writing to a file or stream.
    pub fn writing(what: impl fmt::Display, error: &io::Error) -> Self {
        let broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Failure { broken_pipe, ..Failure::new(format!("cannot write {what}"), error) }
    }

    /// Returns a failure because of wrong usage. The command must not have changed anything yet.
    pub fn usage(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Failure { code: USAGE, ..Failure::new(what, why) }
    }

    /// Returns this failure with a remedy, which replaces any earlier one.
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Failure { remedy: Some(remedy.into()), ..self }
    }

    /// Returns this failure with the exit code for wrong usage.
    pub fn of_usage(self) -> Self {
        Failure { code: USAGE, ..self }
    }

    /// Returns this failure with a sentence appended to its remedy.
    pub fn also(self, sentence: &str) -> Self {
        let remedy = self.remedy.as_ref().map_or_else(String::new, |remedy| format!("{remedy} "));
        self.remedy(remedy + sentence)
    }

    /// Returns the reason.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Returns the kind of a file system error, or `None` for other failures.
    pub fn kind(&self) -> Option<ErrorKind> {
        self.kind
    }

    /// Returns true if the reader of the output has closed it: the reader has read enough, and needs no message.
    pub fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }

    /// Returns this failure, marked as logged.
    pub fn logged(self) -> Self {
        Failure { is_logged: true, ..self }
    }

    /// Returns true if the failure has been logged and need not be printed.
    pub fn is_logged(&self) -> bool {
        self.is_logged
    }

    /// Returns the exit code of the process.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<node::Error> for Failure {
    fn from(error: node::Error) -> Self {
        let remedy = error.remedy().map(|remedy| format!("{remedy}."));
        Failure { remedy, kind: Some(error.kind()), ..Failure::new(error.what(), error.why()) }
    }
}

/// Converts a panic in a task, which is a defect of this program.
impl From<Box<machine::Error>> for Failure {
    fn from(defect: Box<machine::Error>) -> Self {
        Failure::new("working", *defect)
    }
}

/// Removes the error numbers that the standard library appends to messages of the operating system.
fn without_numbers(why: &str) -> String {
    let mut parts = why.split(" (os error ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => plain += rest,
            _ => plain = format!("{plain} (os error {part}"),
        }
    }
    plain
}

/// Maximum length of the shown action in characters. File names are shorter.
const WHAT_MAX: usize = 300;

/// Returns the text, or its beginning and end if it is too long.
fn shortened(text: &str) -> Cow<'_, str> {
    let (count, side) = (text.chars().count(), WHAT_MAX / 3);
    if count <= WHAT_MAX {
        return text.into();
    }
    let (head, tail): (String, String) =
        (text.chars().take(side).collect(), text.chars().skip(count - side).collect());
    format!("{head}[{} more]{tail}", count - 2 * side).into()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", visible(&shortened(&self.what)), visible_lines(&self.why))?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "\n  {}", visible_lines(remedy)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_error_numbers_are_removed_from_messages() {
        let why = io::Error::from_raw_os_error(20);
        assert_eq!(Failure::new("d", why).to_string(), "d: Not a directory");
        let two = "a (os error 2), then b (os error 3)\nand (os error ?)";
        assert_eq!(Failure::new("d", two).to_string(), "d: a, then b\nand (os error ?)");
    }

    #[test]
    fn a_very_long_name_is_shortened() {
        let text = Failure::new(format!("{}end", "a".repeat(5000)), "why").to_string();
        assert!(
            text.len() < 300 && text.contains("aaa[4803 more]aaa") && text.contains("aend: why"),
            "{text}"
        );
        let path = "/a".repeat(100);
        assert_eq!(Failure::new(&*path, "why").to_string(), format!("{path}: why"));
    }

    #[test]
    fn control_characters_in_a_failure_are_escaped() {
        let failure = Failure::new("a\x1bc\nd", "no\x1bne\n  of two lines").remedy("Look at a\x1bc.");
        let expected = "a\\u{1b}c\\nd: no\\u{1b}ne\n  of two lines\n  Look at a\\u{1b}c.";
        assert_eq!(failure.to_string(), expected);
    }

    #[test]
    fn the_remedy_is_on_a_separate_line() {
        let failure = Failure::new("get x", "no such file").remedy("Try ls.");
        assert_eq!(failure.to_string(), "get x: no such file\n  Try ls.");
        assert_eq!(failure.also("It stays.").to_string(), "get x: no such file\n  Try ls. It stays.");
        assert_eq!(Failure::new("x", "y").also("It stays.").to_string(), "x: y\n  It stays.");
    }
}
