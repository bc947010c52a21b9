//! Temporary names of files that are being written. The temporary name is in the same directory as the final name,
//! which the file gets when it is complete.
//!
//! The namespace marks such a file as unfinished until it is renamed. `starfish rm --unfinished` removes files that
//! were left unfinished.

use crate::error::Result;
use crate::random::random;

/// Beginning of a temporary name.
const BEGINNING: &[u8] = b".starfish-";

/// Number of hexadecimal digits after the beginning.
const DIGITS: usize = 16;

/// Returns a temporary name in the directory of this path.
///
/// # Errors
/// If the system has no random numbers.
pub fn hidden_name(path: &[u8]) -> Result<Vec<u8>> {
    let name = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    Ok([&path[..name], BEGINNING, format!("{:016x}", random()?).as_bytes()].concat())
}

/// True if a name has this form. Users' files may have such names, too.
pub fn is_hidden(name: &[u8]) -> bool {
    name.strip_prefix(BEGINNING)
        .is_some_and(|rest| rest.len() == DIGITS && rest.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_recognized() {
        assert!(is_hidden(b".starfish-0123456789abcdef"));
        for other in
            [&b".starfish-"[..], b".starfish-0123456789abcde", b".starfish-0123456789abcdeg", b"starfish"]
        {
            assert!(!is_hidden(other));
        }
        for (path, directory) in [("name", ""), ("a/b/name", "a/b/"), ("/name", "/")] {
            let hidden = hidden_name(path.as_bytes()).expect("random numbers");
            let name = hidden.strip_prefix(directory.as_bytes()).expect("it is in the same directory");
            assert!(is_hidden(name), "{path}");
        }
    }
}
