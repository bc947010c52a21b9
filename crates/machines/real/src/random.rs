//! Numbers drawn at random by the system.

use machine::{Error, Result};

/// A number that no other draw has given, with near certainty. `what` is told if the system has no random numbers.
pub(crate) fn draw(what: &str) -> Result<u64> {
    let failed =
        |error: getrandom::Error| Error::Io { what: format!("drawing {what}"), why: error.to_string() };
    Ok(getrandom::u64().map_err(failed)?)
}
