//! Splits a JSON file into events: the elements of an array, or of the array `traceEvents` of an object.
//!
//! The end of each event is found by counting brackets and quotes, and each event is parsed separately, so that a
//! malformed event does not affect others. Any number of commas may separate events, and the closing bracket of the
//! array may be missing, because many programs write such files.

use std::io::{self, BufRead, Bytes};

/// Maximum length of an event in bytes.
const EVENT_BYTES_MAX: usize = 1 << 26;

/// Maximum depth of nested brackets.
const DEPTH_MAX: usize = 128;

/// Next element found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextEvent {
    /// Complete text of an event.
    Event,
    /// An element that is not an object.
    Other,
    /// End of the events.
    End,
    /// End of the file within the events.
    Cut,
}

/// Reader of the events of a file.
pub(crate) struct JsonEvents<R> {
    bytes: Bytes<R>,
    /// First byte of the next element, if already read.
    ahead: Option<u8>,
    text: Vec<u8>,
    /// True if the array of events is a member of an object.
    is_within: bool,
}

impl<R: BufRead> JsonEvents<R> {
    /// Skips the bytes before the first event; returns `None` if the file has no array of events.
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

    /// Returns the text of the last event found.
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

    /// Skips members of the object up to the next array of events. Returns false if no array follows.
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

    /// Reads a value that begins with `first`. Returns false if the file ends within the value, or the value exceeds
    /// the limits of an event.
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

    /// Returns the next non-blank byte.
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

/// State of a scan for the end of a JSON value, by brackets and quotes.
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

    /// Returns true if the value ends with the last byte taken.
    fn is_behind(&self, last: u8) -> bool {
        self.depth == 0 && !self.in_text && matches!(last, b'"' | b'}' | b']')
    }

    /// Returns true if the value is a number or a word and ends before this byte.
    fn is_before(&self, next: u8) -> bool {
        let is_end = next.is_ascii_whitespace() || matches!(next, b',' | b':' | b'}' | b']');
        self.depth == 0 && !self.in_text && is_end
    }
}

/// Returns the source text of a member of a valid JSON object, so that a number keeps all its digits. Returns `None` if
/// the object has no such member.
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
        // If several members have the same name, the last is valid, as in the parser.
        let Some(value) = behind.trim_ascii_start().strip_prefix(b":") else { break };
        let (value, behind) = split_value(value.trim_ascii_start());
        let is_named =
            key.strip_prefix(b"\"").and_then(|key| key.strip_suffix(b"\"")) == Some(name.as_bytes());
        found = if is_named { Some(value) } else { found };
        rest = behind;
    }
    std::str::from_utf8(found?).ok()
}

/// Returns the first value of a text, and the rest of the text.
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
    fn events_are_found_in_arrays_and_objects() {
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
    fn members_are_returned_with_all_digits() {
        let object = br#" {"a":{"ts":1}, "ts" : 1700000000000000.123 ,"b":"\"ts\":5","dur":"1e3"}"#;
        assert_eq!(member(object, "ts"), Some("1700000000000000.123"));
        assert_eq!(member(object, "dur"), Some("\"1e3\""));
        assert_eq!(member(object, "c"), None);
        assert_eq!(member(br#"{"ts":1,"ts":2}"#, "ts"), Some("2"));
    }
}
