//! One request of a log, and the text form of its parts.

use layout::Operation;
use machine::{Decimal, Duration};

use crate::error::{Error, Place};

/// Maximum size of a request in bytes: 2 GiB, more than a Linux system call transfers.
pub const REQUEST_BYTES_MAX: u64 = 1 << 31;

/// Maximum end offset of a request in bytes: it needs 48 bits, so that the file's index fits into the same 64-bit word.
pub const OFFSET_MAX: u64 = 1 << 48;

/// A request of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Time of the request. Time 0 of a log is arbitrary.
    pub time: Duration,
    /// Duration of the request; 0 if unknown.
    pub took: Duration,
    /// Action of the request.
    pub action: Action,
}

/// Action of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Transfers bytes.
    Move(Operation, Stretch),
    /// Waits for all nodes, and makes their earlier writes visible to each other.
    Sync,
    /// Makes the call with this index in the log.
    Call(u32),
}

/// Range of bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Index of the file among those of the log.
    pub file: u32,
    /// Number of bytes, at most [`REQUEST_BYTES_MAX`].
    pub bytes: u32,
    /// Offset in the file in bytes. The range must end at or before [`OFFSET_MAX`].
    pub offset: u64,
}

impl Stretch {
    /// Returns the end offset in the file, in bytes.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }
}

/// Returns the action of a transfer. Fails if the range exceeds the limits of a request or of a file.
pub(crate) fn checked_move(
    operation: Operation,
    file: u32,
    (offset, offset_place): (u64, impl FnOnce() -> Place),
    (bytes, bytes_place): (u64, impl FnOnce() -> Place),
) -> Result<Action, Error> {
    if bytes > REQUEST_BYTES_MAX {
        let why = format!("a request of {bytes} bytes: the limit is {REQUEST_BYTES_MAX} (2 GiB)");
        return Err(Error::new(bytes_place(), why).remedy("Write it as several requests."));
    }
    if offset.checked_add(bytes).is_none_or(|end| end > OFFSET_MAX) {
        let why = format!(
            "{bytes} bytes from offset {offset} end beyond the limit of a file, {OFFSET_MAX} (256 TiB)"
        );
        return Err(Error::new(offset_place(), why));
    }
    Ok(Action::Move(operation, Stretch { file, bytes: bytes as u32, offset }))
}

/// Words for operations in a log.
pub(crate) const READ: &str = "read";
pub(crate) const WRITE: &str = "write";
pub(crate) const SYNC: &str = "sync";

/// Maximum time in seconds: over 400 years, so that the times of a log may count from 1601 or 1970.
const SECONDS_MAX: u64 = 14_000_000_000;

/// Maximum duration of a request in seconds, so that time plus duration in nanoseconds fits into 64 bits.
const TOOK_SECONDS_MAX: u64 = 4_000_000_000;

/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// A parsed time of a log, or the reason why it is invalid.
pub(crate) type LogTime = Result<Duration, TimeError>;

/// Reason why a text is not a time of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeError {
    /// The text is not a number, or negative.
    NoNumber,
    /// The time is longer than about four hundred years.
    TooLarge,
}

/// Parses a time in units of `unit` nanoseconds, exactly to the nanosecond: `12`, `0.000012`, `1.5e-5`.
pub(crate) fn parse_time(text: &str, unit: u64) -> LogTime {
    bounded(text, unit, SECONDS_MAX)
}

/// Parses the duration of a request, in the same form as [`parse_time`].
pub(crate) fn parse_took(text: &str, unit: u64) -> LogTime {
    bounded(text, unit, TOOK_SECONDS_MAX)
}

fn bounded(text: &str, unit: u64, seconds_max: u64) -> LogTime {
    // Some programs omit the zero before or after the decimal point.
    let whole = match (text.strip_prefix('.'), text.strip_suffix('.')) {
        (Some(_), None) => Decimal::parse(&format!("0{text}")),
        (None, Some(text)) => Decimal::parse(text),
        _ => Decimal::parse(text),
    };
    let nanoseconds = whole.ok_or(TimeError::NoNumber)?.round(unit);
    let is_time = |nanoseconds: &u64| *nanoseconds <= seconds_max * SECOND;
    nanoseconds.filter(is_time).map(Duration::from_nanos).ok_or(TimeError::TooLarge)
}

/// Parses a time in seconds, to the nanosecond.
pub(crate) fn parse_seconds(text: &str) -> Option<Duration> {
    parse_time(text, SECOND).ok()
}

/// Parses the duration of a request in seconds, to the nanosecond.
pub(crate) fn parse_seconds_taken(text: &str) -> Option<Duration> {
    parse_took(text, SECOND).ok()
}

/// Formats a time in seconds: exactly, and with as few digits as possible.
pub(crate) fn seconds(time: Duration) -> String {
    let (whole, parts) = (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
    let text = format!("{whole}.{parts:09}");
    let short = text.trim_end_matches('0');
    short.trim_end_matches('.').to_owned()
}

/// Word in place of a file name, for no file. For a file whose name is `-`, the name is written with an escape.
pub(crate) const NO_FILE: &str = "-";

/// Returns the name of a file as one word of a line. Each byte of a blank, control character or percent sign becomes
/// `%` and two digits, as in URLs.
pub(crate) fn escaped(name: &str) -> String {
    let mut word = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_whitespace() || letter.is_control() || letter == '%' || name == NO_FILE {
            let mut bytes = [0; 4];
            letter.encode_utf8(&mut bytes).bytes().for_each(|byte| word.push_str(&format!("%{byte:02X}")));
        } else {
            word.push(letter);
        }
    }
    word
}

/// Returns the name for an escaped word, or `None` if an escape is malformed.
pub(crate) fn unescaped(word: &str) -> Option<String> {
    if !word.contains('%') {
        return Some(word.to_owned());
    }
    let mut name = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            name.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
        name.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_nanosecond() {
        for (text, nanos) in [
            ("0", 0),
            ("12", 12_000_000_000),
            ("0.000000001", 1),
            ("1732323232.123456789", 1_732_323_232_123_456_789),
            ("1e-6", 1000),
            ("0.30000000000000004", 300_000_000),
            (".5", 500_000_000),
            ("7.", 7_000_000_000),
            ("1732323232.1234567891234567891234567891234567", 1_732_323_232_123_456_789),
        ] {
            assert_eq!(parse_seconds(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
        for text in ["", "-1", "x", "1:30", "nan", "inf", "1e11", "99999999999", "."] {
            assert_eq!(parse_seconds(text), None, "{text}");
        }
        // Times of Windows count from 1601, in units of 100 ns.
        let since_1601 = Duration::from_nanos(12_816_637_200_306_162_900);
        assert_eq!(parse_time("128166372003061629", 100), Ok(since_1601));
        assert_eq!(parse_time("128166372003061629", SECOND), Err(TimeError::TooLarge));
        assert_eq!(parse_time("noon", SECOND), Err(TimeError::NoNumber));
        assert!(Duration::from_secs(SECONDS_MAX) + Duration::from_secs(TOOK_SECONDS_MAX) > since_1601);
    }

    #[test]
    fn times_are_written_in_the_shortest_form() {
        for (nanos, text) in [(0, "0"), (1, "0.000000001"), (1_500_000_000, "1.5"), (10_000_000_000, "10")] {
            assert_eq!(seconds(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn any_name_is_escaped_as_one_word_and_restored() {
        for name in ["a", "/a/b c", "100%", "-", "--", "\u{a0}\u{e4}\n\t", "%20"] {
            let word = escaped(name);
            assert!(word != "-" && !word.contains(char::is_whitespace), "{word}");
            assert_eq!(unescaped(&word).as_deref(), Some(name));
        }
        for word in ["%", "%4", "%zz", "%+1", "%FF"] {
            assert_eq!(unescaped(word), None, "{word}");
        }
    }
}
