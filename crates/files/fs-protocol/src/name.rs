//! Checks the names of jobs, their members and teams.

/// Maximum length of a name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 200;

/// Reason why a text is not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("it is empty")]
    Empty,
    /// The name has more than [`NAME_BYTES_MAX`] bytes.
    #[error("it is longer than {NAME_BYTES_MAX} bytes")]
    TooLong,
    /// The name contains a control character.
    #[error("it contains a control character")]
    Control,
    /// The name is absolute.
    #[error("it begins with /")]
    Absolute,
    /// A component is empty, `.` or `..`.
    #[error("it has an empty component, or . or .. as a component")]
    Part,
}

/// Fails unless `name` is valid: relative, without `.`, `..` or empty components, and at most [`NAME_BYTES_MAX`] bytes
/// long.
pub fn check(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        Err(NameError::Empty)
    } else if name.len() > NAME_BYTES_MAX {
        Err(NameError::TooLong)
    } else if name.chars().any(char::is_control) {
        Err(NameError::Control)
    } else if name.starts_with('/') {
        Err(NameError::Absolute)
    } else if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        Err(NameError::Part)
    } else {
        Ok(())
    }
}

/// Returns a hash of a name and `numbers`: FNV-1a with 64 bits, see <https://www.rfc-editor.org/rfc/rfc9923>.
pub fn hash_of(name: &str, numbers: &[u64]) -> u64 {
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().chain(numbers).fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_file_names_are_rejected() {
        for name in ["", "/etc/passwd", "..", "../x", "a/../b", "a//b", "a/", "./a", "a\0b", "a\nb"] {
            assert!(check(name).is_err(), "{name:?}");
        }
        assert!(check(&"x".repeat(NAME_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn ordinary_file_names_are_accepted() {
        for name in
            ["a", "with space", "größe.dat", "deep/er/name", "...", "a..b", &"x".repeat(NAME_BYTES_MAX)]
        {
            assert_eq!(check(name), Ok(()), "{name:?}");
        }
    }
}
