//! A session with buffered files.

use std::ops::Deref;

use node::{OpenOptions, Result, Settings};

use crate::file::File;

/// Connection to the file system, usable from any thread. Clones share it. Dropping the last clone and the last file
/// opened with it ends the node thread.
///
/// Dereferences to [`node::Session`], which has the operations on names.
#[derive(Clone, Debug)]
pub struct Session(node::Session);

impl Session {
    /// Starts a node thread and connects it to the agents.
    ///
    /// # Errors
    /// If there are no agents, or one of them does not answer.
    pub fn start(settings: Settings) -> Result<Session> {
        node::Session::start(settings).map(Session)
    }

    /// Opens a file, or creates one.
    ///
    /// # Errors
    /// If the options are inconsistent, or the file does not exist and cannot be created.
    pub fn open(&self, name: &str, options: OpenOptions) -> Result<File> {
        self.0.open(name, options).map(File::from)
    }

    /// Opens a file by a path that need not be UTF-8, or creates one.
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
