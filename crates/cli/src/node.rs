//! What all nodes that this program starts have in common: names at random, and the driver.

use std::env;
use std::time::Duration;

use machine::NodeId;
use real::{Driver, Limits, Settings};

use crate::failure::{Failure, Result};

/// The environment variable that chooses how nodes talk to the operating system.
const DRIVER: &str = "STARFISH_DRIVER";

/// The environment variable that says for how many seconds an agent may be silent before it is given up.
const SILENCE: &str = "STARFISH_SILENCE";

/// A number nobody else has drawn.
pub(crate) fn random() -> Result<u64> {
    getrandom::u64().map_err(|error| Failure::new("drawing a random number", error))
}

/// A node's name at random. All names have the same length, so that none is the beginning of another.
pub(crate) fn name() -> Result<NodeId> {
    Ok(NodeId(random()? | 1 << 63))
}

/// The settings of a new node, with a name of its own and the driver the environment asks for.
pub(crate) fn settings() -> Result<Settings> {
    let driver = match env::var(DRIVER) {
        Ok(name) => name.parse().map_err(|why: String| Failure::usage(format!("{DRIVER}={name}"), why))?,
        Err(_) => Driver::default(),
    };
    let mut limits = Limits::default();
    if let Ok(text) = env::var(SILENCE) {
        limits.silence = seconds(&text)
            .ok_or_else(|| Failure::usage(format!("{SILENCE}={text}"), "expected seconds, from 0.1 on"))?;
    }
    Ok(Settings { driver, limits, ..Settings::new(name()?) })
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| *duration >= Duration::from_millis(100))
}
