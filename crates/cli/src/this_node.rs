//! What all nodes that this program starts have in common: the cluster key, and what the environment asks for.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use node::key;
use real::{Limits, Settings};

use crate::failure::{Failure, Result};

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
        node::Settings::of_environment(Vec::new()).map_err(|error| Failure::from(error).of_usage())?;
    let limits = Limits { silence: asked.silence, recall: asked.silence, ..Limits::default() };
    let key = key::find(key_file()).map_err(|error| Failure::from(error).of_usage())?;
    Ok(Settings { key, driver: asked.driver, limits, ..Settings::new(node::new_node_id()?) })
}
