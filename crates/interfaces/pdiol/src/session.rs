//! A session whose files are buffered.

use std::ops::Deref;

use node::{OpenOptions, Result, Settings};

use crate::file::File;

/// A connection to the file system, usable from any thread. Cloning gives another handle on the same; dropping the
/// last of them and of the files opened with it ends the node thread.
///
/// What it has to say of names is said by the [`node::Session`] that it is.
#[derive(Clone, Debug)]
pub struct Session(node::Session);

impl Session {
    /// Starts a node thread and connects it to the agents.
    ///
    /// # Errors
    /// If there are none, or one of them does not answer.
    pub fn start(settings: Settings) -> Result<Session> {
        node::Session::start(settings).map(Session)
    }

    /// Opens a file, or makes one.
    ///
    /// # Errors
    /// If the options make no sense, or there is no such file and none can be made.
    pub fn open(&self, name: &str, options: OpenOptions) -> Result<File> {
        self.0.open(name, options).map(File::from)
    }

    /// Opens a file by a path that need not be a text, or makes one.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub fn open_path(&self, path: &[u8], options: OpenOptions) -> Result<File> {
        self.0.open_path(path, options).map(File::from)
    }
}

impl Deref for Session {
    type Target = node::Session;

    fn deref(&self) -> &node::Session {
        &self.0
    }
}
