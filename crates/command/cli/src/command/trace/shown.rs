//! Formats texts and times of a trace.

use command_line::visible;

use command_line::durations;

/// Escapes control characters in a text. Traces may be from any source, and such characters could move the cursor of a
/// terminal or change its colours.
pub(in crate::command) fn text(text: &str) -> String {
    visible(text).into_owned()
}

/// Formats nanoseconds with a suitable unit.
pub(super) fn time(nanoseconds: u64) -> String {
    durations::shown(nanoseconds as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_a_trace_are_escaped() {
        assert_eq!(text("a\u{1b}[2Jb\nc\u{7f}\u{9b}чтение <b>"), "a\\u{1b}[2Jb\\nc\\u{7f}\\u{9b}чтение <b>");
    }
}
