//! Random numbers from the operating system.

use machine::{Error, Result};

/// Draws a number that is unique with near certainty. The argument names its purpose in the error if the system has no
/// random numbers.
pub(crate) fn draw(what: &str) -> Result<u64> {
    let failed = |error: getrandom::Error| Error::Io {
        what: format!("cannot get a random number for {what}"),
        why: error.to_string(),
    };
    Ok(getrandom::u64().map_err(failed)?)
}
