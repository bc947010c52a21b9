//! Words and numbers within messages: names that others have given, and how large things are.

use std::borrow::Cow;

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
}
