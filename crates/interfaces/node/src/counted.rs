//! Counts within messages.

use std::fmt;

/// Formats a count with its noun, whose singular is `one`: `1 trial`, `2 trials`.
pub fn counted<N: fmt::Display + From<u8> + PartialEq>(count: N, one: &str) -> String {
    format!("{count} {one}{}", if count == N::from(1) { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_one_has_no_plural() {
        assert_eq!([0_u64, 1, 2].map(|count| counted(count, "trial")), ["0 trials", "1 trial", "2 trials"]);
    }
}
