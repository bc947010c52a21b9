//! Temporary files, whose names are removed when the session ends. The program may have closed such a file long before.

use std::cell::RefCell;
use std::collections::BTreeMap;

use fs::{Advice, Tree};
use namespace::{FileNumber, Location, RemovalTarget, TreeOperation, TreeRefusal};
use real::RealMachine;

use crate::error::Result;

/// Paths of temporary files, by their numbers.
#[derive(Default)]
pub(crate) struct TemporaryPaths(RefCell<BTreeMap<FileNumber, Vec<u8>>>);

impl TemporaryPaths {
    /// Records advice on a file that was opened by this path.
    pub(crate) fn note(&self, number: FileNumber, path: &[u8], advice: Advice) {
        let mut paths = self.0.borrow_mut();
        match advice {
            Advice::Temporary => {
                paths.insert(number, path.to_vec());
            }
            Advice::FinalWrite => {
                paths.remove(&number);
            }
            _ => {}
        }
    }

    /// Removes the names that still belong to these files. Tries all names, and then returns the first failure.
    /// `explained` translates the outcome of a path's removal into the user's terms.
    pub(crate) async fn remove_all(
        &self,
        tree: &Tree<RealMachine>,
        explained: impl Fn(&str, fs::Result<()>) -> Result<()>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        for (number, path) in self.0.take() {
            let removed = remove(tree, number, &path).await;
            outcome = outcome.and(explained(&String::from_utf8_lossy(&path), removed));
        }
        outcome
    }
}

/// Removes a file's name, unless it belongs to another file or is missing.
async fn remove(tree: &Tree<RealMachine>, number: FileNumber, path: &[u8]) -> fs::Result<()> {
    let at = Location::of_path(path);
    let found = tree.inode(TreeOperation::Look { at: at.clone(), follow: false }).await;
    match found {
        Ok(inode) if inode.number == number => {
            tree.unname(TreeOperation::Remove { at, what: RemovalTarget::File }).await
        }
        Ok(_) => Ok(()),
        Err(error) if error.is_refused(TreeRefusal::NotFound) => Ok(()),
        Err(error) => Err(error),
    }
}
