//! What all nodes that this program starts have in common: names at random, and what the environment asks for.

use machine::NodeId;
use real::{Limits, Settings};

use crate::failure::{Failure, Result};

/// A number nobody else has drawn.
pub(crate) fn random() -> Result<u64> {
    getrandom::u64().map_err(|error| Failure::new("drawing a random number", error))
}

/// A node's name at random. All names have the same length, so that none is the beginning of another.
pub(crate) fn name() -> Result<NodeId> {
    Ok(NodeId(random()? | 1 << 63))
}

/// The settings of a new node, with a name of its own and what the environment asks for.
pub(crate) fn settings() -> Result<Settings> {
    let asked =
        pdiol::Settings::of_environment(Vec::new()).map_err(|error| Failure::from(error).of_usage())?;
    let limits = Limits { silence: asked.silence, ..Limits::default() };
    Ok(Settings { driver: asked.driver, limits, ..Settings::new(name()?) })
}
