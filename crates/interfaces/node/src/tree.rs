//! The namespace of a set, from any thread: paths, attributes, and files opened by an operation.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use namespace::{Inode, Location, RenameMode, TreeAnswer, TreeOperation};

use crate::error::Result;
use crate::handle::Handle;
use crate::pending::Pending;
use crate::settings::OpenOptions;
use crate::thread::NodeThread;
use crate::tree_node::TreeNode;

/// Namespace of a set, usable from any thread. Clones share it.
#[derive(Clone)]
pub struct Tree {
    node: Arc<NodeThread>,
}

impl Tree {
    pub(crate) fn new(node: Arc<NodeThread>) -> Self {
        Tree { node }
    }

    /// Performs an operation. Errors name the given subject.
    pub fn perform(&self, what: &str, operation: TreeOperation) -> Pending<TreeAnswer> {
        self.run(what, move |node, what| async move {
            node.explained(&what, node.tree().perform(operation).await)
        })
    }

    /// Performs an operation whose answer is an inode.
    pub fn inode(&self, what: &str, operation: TreeOperation) -> Pending<Inode> {
        self.run(
            what,
            move |node, what| async move { node.explained(&what, node.tree().inode(operation).await) },
        )
    }

    /// Performs an operation that removes or moves a name. Contents without a remaining name are removed.
    pub fn unname(&self, what: &str, operation: TreeOperation) -> Pending<()> {
        self.run(
            what,
            move |node, what| async move { node.explained(&what, node.tree().unname(operation).await) },
        )
    }

    /// Renames a file. `mode` decides if an existing file at that path is replaced, atomically.
    ///
    /// # Errors
    /// If the file does not exist, the new path is a directory, or `mode` forbids to replace the existing file.
    pub fn rename(&self, from: &str, to: &str, mode: RenameMode) -> Result<()> {
        let [source, target] = [from, to].map(|path| Location::of_path(path.as_bytes()));
        let rename = TreeOperation::Rename { from: source, to: target, mode };
        self.unname(&format!("{from} to {to}"), rename).wait()
    }

    /// Opens the file that an operation returns: by a lookup of a path, or by a creation.
    ///
    /// # Errors
    /// If the operation is refused, or its result is not a regular file.
    pub fn open(&self, what: &str, operation: TreeOperation, options: OpenOptions) -> Result<Handle> {
        options.check(what)?;
        let opened = self.run(what, move |node, what| async move {
            let file = node.explained(&what, node.tree().open_for(operation, options.used_for()).await)?;
            if options.truncate && file.known().size > 0 {
                node.explained(&what, file.set_len(0).await)?;
            }
            let page_bytes = file.paged().page_bytes();
            Ok((node.enter(&what, file), page_bytes))
        });
        let (number, page_bytes) = opened.wait()?;
        Ok(Handle::new(self.node.clone(), what, options, number, page_bytes))
    }

    /// Flushes the namespace to stable storage.
    pub fn flush(&self) -> Pending<()> {
        self.run("cannot flush the namespace", |node, what| async move {
            node.explained(&what, node.tree().flush().await)
        })
    }

    /// Runs `job` on the node thread, with the namespace and the subject of errors. For interfaces that answer requests
    /// on the node thread.
    pub fn run<T, F>(
        &self,
        what: &str,
        job: impl FnOnce(TreeNode, Arc<str>) -> F + Send + 'static,
    ) -> Pending<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        let what: Arc<str> = what.into();
        let named = what.clone();
        self.node.begin(&what, move |node| async move { job(TreeNode::of(&node), named).await })
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tree")
    }
}
