//! The events of a file in JSON, one after the other: the elements of an array, or of the array that an object has as
//! `traceEvents`.
//!
//! Each event is cut out of the text by its brackets and quotes alone and parsed by itself, so that one that is
//! malformed spoils no other. Between events there may be commas in any number, and the array may end without its
//! bracket, as many programs write it.

use std::io::{self, BufRead, Bytes};

/// The most bytes of an event.
const EVENT_BYTES_MAX: usize = 1 << 26;

/// The most brackets within each other.
const DEPTH_MAX: usize = 128;

/// What is found in place of the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextEvent {
    /// The text of an event, which is complete.
    Event,
    /// Something else than an object.
    Other,
    /// The end of the events.
    End,
    /// The end of the file, where the events go on.
    Cut,
}

/// Reads the events of a file.
pub(crate) struct JsonEvents<R> {
    bytes: Bytes<R>,
    /// A byte that was read and belongs to what comes next.
    ahead: Option<u8>,
    text: Vec<u8>,
    /// Whether the events are those of an object.
    is_within: bool,
}

impl<R: BufRead> JsonEvents<R> {
    /// Goes to the first event; `None` if the file has no array of events.
    pub(crate) fn begin(from: R) -> io::Result<Option<Self>> {
        let mut events = JsonEvents { bytes: from.bytes(), ahead: None, text: Vec::new(), is_within: false };
        let found = match events.next_letter()? {
            Some(b'[') => true,
            Some(b'{') => {
                events.is_within = true;
                events.find_array()?
            }
            _ => false,
        };
        Ok(found.then_some(events))
    }

    /// The text of the event that was found last.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Finds the next event.
    pub(crate) fn next(&mut self) -> io::Result<NextEvent> {
        loop {
            match self.next_letter()? {
                None => return Ok(NextEvent::Cut),
                Some(b',') => {}
                Some(b']') if self.is_within && self.find_array()? => {}
                Some(b']') => return Ok(NextEvent::End),
                Some(first) => {
                    let is_whole = self.take_value(first)?;
                    return Ok(match (is_whole, first) {
                        (false, _) => NextEvent::Cut,
                        (true, b'{') => NextEvent::Event,
                        (true, _) => NextEvent::Other,
                    });
                }
            }
        }
    }

    /// Goes through members of the object to the next array of events; false if there is none.
    fn find_array(&mut self) -> io::Result<bool> {
        loop {
            match self.next_letter()? {
                Some(b',') => {}
                Some(b'"') => {
                    let is_whole = self.take_value(b'"')?;
                    let is_named = self.text == b"\"traceEvents\"";
                    if !is_whole || self.next_letter()? != Some(b':') {
                        return Ok(false);
                    }
                    match self.next_letter()? {
                        Some(b'[') if is_named => return Ok(true),
                        Some(first) if self.take_value(first)? => {}
                        _ => return Ok(false),
                    }
                }
                _ => return Ok(false),
            }
        }
    }

    /// Takes in the rest of a value that begins with `first`; false if the file ends before it, or it is larger or
    /// deeper than any event.
    fn take_value(&mut self, first: u8) -> io::Result<bool> {
        self.text.clear();
        let (mut scan, mut byte) = (Scan::default(), first);
        loop {
            self.text.push(byte);
            scan.take(byte);
            if self.text.len() == EVENT_BYTES_MAX || scan.depth > DEPTH_MAX {
                return Ok(false);
            }
            if scan.is_behind(byte) {
                return Ok(true);
            }
            let Some(next) = self.bytes.next().transpose()? else { return Ok(false) };
            if scan.is_before(next) {
                self.ahead = Some(next);
                return Ok(true);
            }
            byte = next;
        }
    }

    /// The next byte that is not blank.
    fn next_letter(&mut self) -> io::Result<Option<u8>> {
        if let Some(ahead) = self.ahead.take().filter(|ahead| !ahead.is_ascii_whitespace()) {
            return Ok(Some(ahead));
        }
        for byte in self.bytes.by_ref() {
            let byte = byte?;
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
        }
        Ok(None)
    }
}

/// Where in a value of JSON a byte is, by brackets and quotes.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
}

impl Scan {
    fn take(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.in_text => self.is_escaped = true,
            b'"' => self.in_text = !self.in_text,
            b'{' | b'[' if !self.in_text => self.depth += 1,
            b'}' | b']' if !self.in_text => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    /// Whether the value ends with the byte that was taken last.
    fn is_behind(&self, last: u8) -> bool {
        self.depth == 0 && !self.in_text && matches!(last, b'"' | b'}' | b']')
    }

    /// Whether the value, a number or a word, ends before this byte.
    fn is_before(&self, next: u8) -> bool {
        let is_end = next.is_ascii_whitespace() || matches!(next, b',' | b':' | b'}' | b']');
        self.depth == 0 && !self.in_text && is_end
    }
}

/// The text of a member of an object of valid JSON, as it is written: a number has all of its digits. `None` if the
/// object has no such member.
pub(crate) fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a str> {
    let mut rest = object.trim_ascii_start().strip_prefix(b"{")?;
    let mut found = None;
    loop {
        rest = rest.trim_ascii_start();
        if let Some(next) = rest.strip_prefix(b",") {
            rest = next;
            continue;
        }
        let (key, behind) = split_value(rest);
        // Of several members of one name the last counts, as for the parser.
        let Some(value) = behind.trim_ascii_start().strip_prefix(b":") else { break };
        let (value, behind) = split_value(value.trim_ascii_start());
        let is_named =
            key.strip_prefix(b"\"").and_then(|key| key.strip_suffix(b"\"")) == Some(name.as_bytes());
        found = if is_named { Some(value) } else { found };
        rest = behind;
    }
    std::str::from_utf8(found?).ok()
}

/// The value that a text begins with, and the rest of the text.
fn split_value(text: &[u8]) -> (&[u8], &[u8]) {
    let mut scan = Scan::default();
    for (index, &byte) in text.iter().enumerate() {
        if scan.is_before(byte) {
            return text.split_at(index);
        }
        scan.take(byte);
        if scan.is_behind(byte) {
            return text.split_at(index + 1);
        }
    }
    (text, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<Vec<(NextEvent, String)>> {
        let mut events = JsonEvents::begin(text.as_bytes()).expect("memory")?;
        let mut all = Vec::new();
        loop {
            let found = events.next().expect("memory");
            let text = if found == NextEvent::Event {
                String::from_utf8_lossy(events.text()).into_owned()
            } else {
                String::new()
            };
            all.push((found, text));
            if matches!(found, NextEvent::End | NextEvent::Cut) {
                return Some(all);
            }
        }
    }

    #[test]
    fn events_are_found_whatever_is_between_them() {
        use NextEvent::{Cut, End, Event, Other};
        let kinds = |text| found(text).map(|all| all.into_iter().map(|(found, _)| found).collect::<Vec<_>>());
        for (text, expected) in [
            ("[]", vec![End]),
            ("[ , {\"a\": \"]}\\\"\"},,{} , 5 \"x\" null]", vec![Event, Event, Other, Other, Other, End]),
            ("[{},{\"a\":[", vec![Event, Cut]),
            ("[{}", vec![Event, Cut]),
            ("{\"b\": {\"traceEvents\": [1]}, \"traceEvents\": [{}], \"c\": [7, \"]\"]}", vec![Event, End]),
            ("{\"traceEvents\": [{}], \"x\": 1.5, \"traceEvents\": [{}]}", vec![Event, Event, End]),
            ("{\"traceEvents\":[{\"nonsense\": nonsense},{}]", vec![Event, Event, End]),
        ] {
            assert_eq!(kinds(text), Some(expected), "{text}");
        }
        for text in ["", "{}", "{\"a\": nonsense}", "{\"traceEvents\": 5}", "5", "{\"traceEvents\"", "{[}"] {
            assert_eq!(kinds(text), None, "{text}");
        }
        let deep = format!("[{}", "[".repeat(1000));
        assert_eq!(kinds(&deep), Some(vec![Cut]));
    }

    #[test]
    fn members_are_found_as_they_are_written() {
        let object = br#" {"a":{"ts":1}, "ts" : 1700000000000000.123 ,"b":"\"ts\":5","dur":"1e3"}"#;
        assert_eq!(member(object, "ts"), Some("1700000000000000.123"));
        assert_eq!(member(object, "dur"), Some("\"1e3\""));
        assert_eq!(member(object, "c"), None);
        assert_eq!(member(br#"{"ts":1,"ts":2}"#, "ts"), Some("2"));
    }
}
