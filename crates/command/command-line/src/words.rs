//! Words and numbers in messages: names from other sources, and sizes.

use std::borrow::Cow;

/// Returns text that is safe to show: control characters and characters that change the text direction are escaped.
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

/// Returns several lines, each made [`visible`].
pub(crate) fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// Returns true if a character controls the terminal or the text direction (Unicode property `Bidi_Control`, Unicode
/// 16).
fn is_hidden(letter: char) -> bool {
    let directs = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || directs
}

/// Converts bytes to MiB. (From bytes per second this yields a throughput.)
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(visible("a \u{e4}"), "a \u{e4}");
        assert_eq!(visible("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(visible("photo_\u{202e}gpj.exe"), "photo_\\u{202e}gpj.exe");
        // Right-to-left letters are not escaped.
        assert_eq!(visible("\u{5d0}\u{5d1}"), "\u{5d0}\u{5d1}");
        assert_eq!(visible_lines("a\u{2066}\nb"), "a\\u{2066}\nb");
    }
}
