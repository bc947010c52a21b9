//! File names: what is one, and what is not.

use crate::protocol::NAME_BYTES_MAX;

/// Checks that `name` can name a file: relative, without `.` or `..` or empty parts, of bounded length.
///
/// The error says what is wrong.
pub fn check(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        Err("it is empty")
    } else if name.len() > NAME_BYTES_MAX {
        Err("it is longer than 200 bytes")
    } else if name.chars().any(char::is_control) {
        Err("it contains a control character")
    } else if name.starts_with('/') {
        Err("it begins with /: names are relative to the file system")
    } else if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        Err("it has an empty part, or . or .. as a part")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", "/etc/passwd", "..", "../x", "a/../b", "a//b", "a/", "./a", "a\0b", "a\nb"] {
            assert!(check(name).is_err(), "{name:?}");
        }
        assert!(check(&"x".repeat(NAME_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn ordinary_names_are_fine() {
        for name in
            ["a", "with space", "größe.dat", "deep/er/name", "...", "a..b", &"x".repeat(NAME_BYTES_MAX)]
        {
            assert_eq!(check(name), Ok(()), "{name:?}");
        }
    }
}
