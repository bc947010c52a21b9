//! What all nodes that this program starts have in common: names at random, and the driver.

use std::env;

use machine::NodeId;
use real::{Driver, Settings};

use crate::failure::{Failure, Result};

/// The environment variable that chooses how nodes talk to the operating system.
const DRIVER: &str = "STARFISH_DRIVER";

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
    Ok(Settings { driver, ..Settings::new(name()?) })
}
