//! Texts and times of a trace for people.

use command_line::visible;

use command_line::durations;

/// A text as it can be printed on a terminal: what would move its cursor or change its colours is written as Rust
/// writes it. Traces come from anybody.
pub(in crate::command) fn text(text: &str) -> String {
    visible(text).into_owned()
}

/// Nanoseconds with a unit that makes them readable.
pub(super) fn time(nanoseconds: u64) -> String {
    durations::shown(nanoseconds as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_trace_moves_the_cursor() {
        assert_eq!(text("a\u{1b}[2Jb\nc\u{7f}\u{9b}чтение <b>"), "a\\u{1b}[2Jb\\nc\\u{7f}\\u{9b}чтение <b>");
    }
}
