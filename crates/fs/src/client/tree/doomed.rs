//! Contents of files without names: they go when nobody has the file open.
//!
//! Whoever takes the last name away, or closes the file last, removes them, a while later: many at a time, and not
//! before the loss of their names is on the medium, since after a crash of the keeper they would have them again.
//! If it is stopped on the way, the keeper still knows them as doomed, and any client can do it.

use machine::Machine;
use namespace::{FileNumber, Location, RenameMode, TreeAnswer, TreeOperation};

use super::Tree;
use crate::client::unexpected;
use crate::error::Result;
use crate::protocol::FileId;

/// How many files are removed at a time.
const AT_ONCE: u32 = 512;

impl<M: Machine> Tree<M> {
    /// Has a name removed or moved, and removes the contents of the file that has none then. A file that takes
    /// another's place is on the media before: of the two contents a crash leaves one.
    ///
    /// # Errors
    /// If it is refused, or what replaces a file cannot be brought to the media. That contents could not be removed
    /// is no failure: they are doomed, and go later.
    pub async fn unname(&self, operation: TreeOperation) -> Result<()> {
        if let TreeOperation::Rename { from, to, mode: RenameMode::Replace } = &operation {
            self.bring_to_media_before(from, to).await?;
        }
        match self.perform(operation).await? {
            TreeAnswer::Removed { doomed } => {
                self.doom(doomed);
                Ok(())
            }
            _ => Err(unexpected(self.keeper())),
        }
    }

    /// Brings the file at `from` to the media, if there is one at `to`.
    async fn bring_to_media_before(&self, from: &Location, to: &Location) -> Result<()> {
        let look = |at: &Location| TreeOperation::Look { at: at.clone(), follow: false };
        // What is wrong with a name the rename tells.
        let replaced = self.inode(look(to)).await;
        if !replaced.is_ok_and(|inode| inode.layout().is_some()) {
            return Ok(());
        }
        let Ok(file) = self.open(look(from)).await else { return Ok(()) };
        let brought = file.bring_to_media().await;
        let closed = file.close().await;
        brought.and(closed)
    }

    /// Has the contents of a file removed in the background, if there is one.
    pub(super) fn doom(&self, number: Option<FileNumber>) {
        self.inner.doomed.borrow_mut().extend(number);
        if number.is_none() || self.inner.removing.count() > 0 {
            return;
        }
        let (tree, operation) = (self.clone(), self.inner.removing.begin());
        self.machine().spawn("removing contents", async move {
            loop {
                let numbers = tree.inner.doomed.take();
                if numbers.is_empty() {
                    break;
                }
                for numbers in numbers.chunks(AT_ONCE as usize) {
                    // What could not be removed is doomed still.
                    let _ = tree.remove_contents(numbers).await;
                }
            }
            drop(operation);
            Ok(())
        });
    }

    /// Waits until contents that nobody can reach any more because of what this client did are gone, or could not be
    /// removed.
    pub async fn contents_gone(&self) {
        self.inner.removing.none().await;
    }

    /// Removes the contents of files that have no names, and then what is known of them.
    async fn remove_contents(&self, numbers: &[FileNumber]) -> Result<()> {
        self.flush().await?;
        let files: Vec<FileId> = numbers.iter().map(|number| FileId(number.0)).collect();
        for &file in &files {
            self.cache().give_up_numbered(file).await;
        }
        self.cache().client().remove_numbered(&files).await?;
        self.perform(TreeOperation::Forget { numbers: numbers.to_vec() }).await.map(drop)
    }

    /// Removes the contents of all files that are doomed; how many that were.
    ///
    /// # Errors
    /// If the keeper does not say, or an I/O node cannot remove them.
    pub async fn remove_doomed(&self) -> Result<u64> {
        let (mut after, mut removed) = (FileNumber(0), 0);
        loop {
            let list = TreeOperation::ListDoomed { after, most: AT_ONCE };
            let TreeAnswer::Numbers(numbers) = self.perform(list).await? else {
                return Err(unexpected(self.keeper()));
            };
            let numbers: Vec<FileNumber> = numbers.into_iter().map(|(number, _)| number).collect();
            let Some(last) = numbers.last() else { return Ok(removed) };
            after = *last;
            self.remove_contents(&numbers).await?;
            removed += numbers.len() as u64;
        }
    }
}
