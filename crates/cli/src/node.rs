//! What all nodes that this program starts have in common: names at random, and what the environment asks for.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use machine::NodeId;
use pdiol::key;
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

/// The file of the cluster key that the command names, for all nodes of this process.
static KEY_FILE: OnceLock<PathBuf> = OnceLock::new();

/// The command names a file of the cluster key. It does so once.
pub(crate) fn name_key_file(path: &Path) {
    KEY_FILE.get_or_init(|| path.to_owned());
}

/// The file of the cluster key that the command names, if it does.
pub(crate) fn key_file() -> Option<&'static Path> {
    KEY_FILE.get().map(PathBuf::as_path)
}

/// The settings of a new node, with a name of its own and what the command and the environment ask for.
pub(crate) fn settings() -> Result<Settings> {
    let asked =
        pdiol::Settings::of_environment(Vec::new()).map_err(|error| Failure::from(error).of_usage())?;
    let limits = Limits { silence: asked.silence, recall: asked.silence, ..Limits::default() };
    let key = key::find(key_file()).map_err(|error| Failure::from(error).of_usage())?;
    Ok(Settings { key, driver: asked.driver, limits, ..Settings::new(name()?) })
}
