//! The node thread's half of the namespace.

use std::rc::Rc;

use fs::{Client, OpenTreeFile};
use layout::Striping;
use machine::Machine;
use real::RealMachine;

use crate::error::Result;
use crate::thread::Node;

/// Namespace on the node thread. Clones share it.
#[derive(Clone)]
pub struct TreeNode {
    node: Rc<Node>,
}

impl TreeNode {
    pub(crate) fn of(node: &Rc<Node>) -> TreeNode {
        TreeNode { node: node.clone() }
    }

    /// Returns the namespace and its files.
    pub fn tree(&self) -> &fs::Tree<RealMachine> {
        &self.node.client.tree
    }

    /// Returns the client of the file system, which the namespace uses.
    pub fn client(&self) -> &Client<RealMachine> {
        self.tree().cache().client()
    }

    /// Returns the machine.
    pub fn machine(&self) -> &impl Machine {
        &self.node.client.connection.machine
    }

    /// Starts a task of the node thread that no caller waits for.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + 'static) {
        self.machine().spawn(name, async move {
            task.await;
            Ok(())
        });
    }

    /// Returns the striping of a created file.
    ///
    /// # Errors
    /// If there are fewer disks than the settings request, or the block size is invalid.
    pub fn striping(&self) -> Result<Striping> {
        let settings = &self.node.client.settings;
        self.node.client.connection.striping(settings.block_bytes, settings.disks)
    }

    /// Fails if a file created with the settings of the session could not be written.
    ///
    /// # Errors
    /// If there are fewer disks than the settings request, if agents do not accept the block size, or if a page of the
    /// file is larger than the cache.
    pub fn check_new_files(&self) -> Result<()> {
        let striping = self.striping()?;
        self.explained("new files", self.tree().cache().check_striping("new files", striping))
    }

    /// Returns the user's name of an agent.
    pub fn agent(&self, node: machine::NodeId) -> &str {
        self.node.client.connection.name(node)
    }

    /// Translates an error of the file system into the user's terms, with the name of the file or of the failed
    /// operation.
    ///
    /// # Errors
    /// If `outcome` is an error.
    pub fn explained<T>(&self, what: &str, outcome: fs::Result<T>) -> Result<T> {
        self.node.client.explained(what, outcome)
    }

    /// Adds an open file to the table of open files. Returns its number for handles.
    pub(crate) fn enter(&self, name: &str, file: OpenTreeFile<RealMachine>) -> u64 {
        self.node.files.enter(&self.node.client, name, None, file)
    }
}
