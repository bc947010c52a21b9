//! Words and numbers within messages: names that others have given, how many things there are, and how large.

use std::borrow::Cow;
use std::fmt;

/// Text as it can be shown to people, whatever it does to terminals: with its control characters escaped.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return text.into();
    }
    let mut shown = String::new();
    for letter in text.chars() {
        if letter.is_control() { shown.extend(letter.escape_default()) } else { shown.push(letter) }
    }
    shown.into()
}

/// A count with its noun, of which `one` is the singular: `1 trial`, `2 trials`.
pub fn counted<N: fmt::Display + From<u8> + PartialEq>(count: N, one: &str) -> String {
    format!("{count} {one}{}", if count == N::from(1) { "" } else { "s" })
}

/// These bytes in MiB; over seconds it is a throughput.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_seen_and_do_nothing() {
        assert_eq!(visible("a \u{e4}"), "a \u{e4}");
        assert_eq!(visible("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0_u64, 1, 2].map(|count| counted(count, "trial")), ["0 trials", "1 trial", "2 trials"]);
    }
}
