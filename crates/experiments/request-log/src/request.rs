//! One request of a log, and how its parts are written.

use layout::Operation;
use machine::{Decimal, Duration};

use crate::error::{Error, Place};

/// The most bytes of a request: two gibibytes, which is more than a call of Linux moves.
pub const REQUEST_BYTES_MAX: u64 = 1 << 31;

/// Where the last request of a file may end: a number of 48 bits leaves room for that of a file beside it.
pub const OFFSET_MAX: u64 = 1 << 48;

/// A request as a log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was made, since the time 0 of the log, whenever that was.
    pub time: Duration,
    /// How long it took; 0 if that is not known.
    pub took: Duration,
    /// What was asked for.
    pub action: Action,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To move bytes.
    Move(Operation, Stretch),
    /// To wait for all nodes, and to see what they have written until then.
    Sync,
    /// What the call of this index among those of the log says.
    Call(u32),
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Index of the file among those of the log.
    pub file: u32,
    /// How many bytes, [`REQUEST_BYTES_MAX`] at most.
    pub bytes: u32,
    /// Where in the file, in bytes. It ends at [`OFFSET_MAX`] at most.
    pub offset: u64,
}

impl Stretch {
    /// Where it ends, as an offset in the file.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }
}

/// The action of a move, if its bytes are some that a file can have.
pub(crate) fn checked_move(
    operation: Operation,
    file: u32,
    (offset, offset_place): (u64, impl FnOnce() -> Place),
    (bytes, bytes_place): (u64, impl FnOnce() -> Place),
) -> Result<Action, Error> {
    if bytes > REQUEST_BYTES_MAX {
        let why = format!("a request of {bytes} bytes: {REQUEST_BYTES_MAX} (2 GiB) is the most");
        return Err(Error::new(bytes_place(), why).remedy("Write it as several requests."));
    }
    if offset.checked_add(bytes).is_none_or(|end| end > OFFSET_MAX) {
        let why =
            format!("{bytes} bytes from {offset} on end behind {OFFSET_MAX} (256 TiB), the most for a file");
        return Err(Error::new(offset_place(), why));
    }
    Ok(Action::Move(operation, Stretch { file, bytes: bytes as u32, offset }))
}

/// The words for operations, besides `sync`.
pub(crate) const READ: &str = "read";
pub(crate) const WRITE: &str = "write";
pub(crate) const SYNC: &str = "sync";

/// The most seconds that a time can have: some hundred years, so that times since 1601 or 1970 can be used.
const SECONDS_MAX: u64 = 14_000_000_000;

/// The most seconds that a request can take, so that the sum of both fits 64 bits of nanoseconds.
const TOOK_SECONDS_MAX: u64 = 4_000_000_000;

/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// A time as a log has it.
pub(crate) type LogTime = Result<Duration, TimeError>;

/// Why a text is no time of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeError {
    /// It is no number that is not negative.
    NoNumber,
    /// It is a number of more than four hundred years.
    TooLarge,
}

/// Reads a number of units of `unit` nanoseconds, exactly, rounded to the nanosecond: `12`, `0.000012`, `1.5e-5`.
pub(crate) fn parse_time(text: &str, unit: u64) -> LogTime {
    bounded(text, unit, SECONDS_MAX)
}

/// Reads the time that a request took, as [`parse_time`] does.
pub(crate) fn parse_took(text: &str, unit: u64) -> LogTime {
    bounded(text, unit, TOOK_SECONDS_MAX)
}

fn bounded(text: &str, unit: u64, seconds_max: u64) -> LogTime {
    // Some programs leave out the zero before or behind the point.
    let whole = match (text.strip_prefix('.'), text.strip_suffix('.')) {
        (Some(_), None) => Decimal::parse(&format!("0{text}")),
        (None, Some(text)) => Decimal::parse(text),
        _ => Decimal::parse(text),
    };
    let nanoseconds = whole.ok_or(TimeError::NoNumber)?.round(unit);
    let is_time = |nanoseconds: &u64| *nanoseconds <= seconds_max * SECOND;
    nanoseconds.filter(is_time).map(Duration::from_nanos).ok_or(TimeError::TooLarge)
}

/// The time in seconds, to the nanosecond.
pub(crate) fn parse_seconds(text: &str) -> Option<Duration> {
    parse_time(text, SECOND).ok()
}

/// The seconds that a request took, to the nanosecond.
pub(crate) fn parse_seconds_taken(text: &str) -> Option<Duration> {
    parse_took(text, SECOND).ok()
}

/// The time in seconds, as short as it can be.
pub(crate) fn seconds(time: Duration) -> String {
    let (whole, parts) = (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
    let text = format!("{whole}.{parts:09}");
    let short = text.trim_end_matches('0');
    short.trim_end_matches('.').to_owned()
}

/// The word for no file. A file of that very name is written with an escape.
pub(crate) const NO_FILE: &str = "-";

/// The name of a file as one word of a line: what is no visible character, and the percent sign, is written as `%` and
/// two digits for each byte, as in addresses of the web.
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

/// The name that is written so, if it is written as it should be.
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
        // Windows counts from 1601 on, in units of 100 ns.
        let since_1601 = Duration::from_nanos(12_816_637_200_306_162_900);
        assert_eq!(parse_time("128166372003061629", 100), Ok(since_1601));
        assert_eq!(parse_time("128166372003061629", SECOND), Err(TimeError::TooLarge));
        assert_eq!(parse_time("noon", SECOND), Err(TimeError::NoNumber));
        assert!(Duration::from_secs(SECONDS_MAX) + Duration::from_secs(TOOK_SECONDS_MAX) > since_1601);
    }

    #[test]
    fn times_are_written_as_short_as_they_can_be() {
        for (nanos, text) in [(0, "0"), (1, "0.000000001"), (1_500_000_000, "1.5"), (10_000_000_000, "10")] {
            assert_eq!(seconds(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn any_name_is_one_word() {
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
