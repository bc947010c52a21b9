//! Words and numbers within messages: names that others have given, and how large things are.

use std::borrow::Cow;

/// Returns text as it can be shown to people: control characters, and those that change the direction of the text
/// around them, are escaped.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return text.into();
    }
    let mut shown = String::new();
    for letter in text.chars() {
        if is_hidden(letter) { shown.extend(letter.escape_default()) } else { shown.push(letter) }
    }
    shown.into()
}

/// Returns several lines, each of them [`visible`].
pub(crate) fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// Whether a character controls the terminal or the direction of text (Unicode's property `Bidi_Control`, Unicode 16).
fn is_hidden(letter: char) -> bool {
    let directs = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || directs
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
        assert_eq!(visible("photo_\u{202e}gpj.exe"), "photo_\\u{202e}gpj.exe");
        // Letters that are written from right to left are letters.
        assert_eq!(visible("\u{5d0}\u{5d1}"), "\u{5d0}\u{5d1}");
        assert_eq!(visible_lines("a\u{2066}\nb"), "a\\u{2066}\nb");
    }
}
