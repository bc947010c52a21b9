//! The namespace of a set, from any thread: paths, attributes, and files that are opened by the answer of an operation.

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

/// The namespace of a set, usable from any thread. Cloning gives another handle on the same.
#[derive(Clone)]
pub struct Tree {
    node: Arc<NodeThread>,
}

impl Tree {
    pub(crate) fn new(node: Arc<NodeThread>) -> Self {
        Tree { node }
    }

    /// Has an operation performed; `what` is what it is about, for errors.
    pub fn perform(&self, what: &str, operation: TreeOperation) -> Pending<TreeAnswer> {
        self.run(what, move |node, what| async move {
            node.explained(&what, node.tree().perform(operation).await)
        })
    }

    /// Has an operation performed that answers with an inode.
    pub fn inode(&self, what: &str, operation: TreeOperation) -> Pending<Inode> {
        self.run(
            what,
            move |node, what| async move { node.explained(&what, node.tree().inode(operation).await) },
        )
    }

    /// Has a name removed or moved; contents that no name reaches any more are removed.
    pub fn unname(&self, what: &str, operation: TreeOperation) -> Pending<()> {
        self.run(
            what,
            move |node, what| async move { node.explained(&what, node.tree().unname(operation).await) },
        )
    }

    /// Gives a file another path. What has that path is replaced in the same step, if `mode` says so.
    ///
    /// # Errors
    /// If there is no such file, a directory has that path, or what has it is to stay.
    pub fn rename(&self, from: &str, to: &str, mode: RenameMode) -> Result<()> {
        let [source, target] = [from, to].map(|path| Location::of_path(path.as_bytes()));
        let rename = TreeOperation::Rename { from: source, to: target, mode };
        self.unname(&format!("{from} to {to}"), rename).wait()
    }

    /// Opens the file that an operation answers with: a path that is looked up, a file that is made.
    ///
    /// # Errors
    /// If the operation is refused, or leads to no file.
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

    /// Brings all that was done with names onto the medium.
    pub fn flush(&self) -> Pending<()> {
        self.run("flushing the namespace", |node, what| async move {
            node.explained(&what, node.tree().flush().await)
        })
    }

    /// Runs `job` on the node thread, with the namespace there and `what` it is about: for doors that answer there.
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
