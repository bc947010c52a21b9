//! One request of a log, and how its parts are written.

use layout::Operation;
use machine::Duration;

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

/// The most seconds that a time can have: some hundred years, so that times since 1970 can be used.
const SECONDS_MAX: u64 = 10_000_000_000;

/// Decimals of a second that count.
const DECIMALS: usize = 9;

/// A time in seconds, to the nanosecond: `12`, `0.000012`, `1.5e-5`. What has more digits is rounded.
pub(crate) fn parse_seconds(text: &str) -> Option<Duration> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if is_number(whole) && is_number(decimals) && !whole.is_empty() && decimals.len() <= DECIMALS {
        let seconds: u64 = whole.parse().ok().filter(|&seconds| seconds <= SECONDS_MAX)?;
        let parts: u64 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
        return Some(Duration::from_nanos(seconds * 1_000_000_000 + parts));
    }
    let seconds: f64 = text.parse().ok()?;
    let is_time = (0.0..=SECONDS_MAX as f64).contains(&seconds);
    is_time.then(|| Duration::from_nanos((seconds * 1e9).round() as u64))
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
        ] {
            assert_eq!(parse_seconds(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
        for text in ["", "-1", "x", "1:30", "nan", "inf", "1e11", "99999999999", "."] {
            assert_eq!(parse_seconds(text), None, "{text}");
        }
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
