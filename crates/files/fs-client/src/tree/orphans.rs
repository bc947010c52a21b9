//! Removes the contents of orphans: files without names that no client has open.
//!
//! The client that removes the last name of a file, or is the last to close it, removes the contents a little later,
//! together with those of other files. Before that it flushes the removal of the names to stable storage: otherwise the
//! files could have their names again after a crash of the metadata server. For the same reason it skips a file if the
//! metadata server has disconnected since, or if the server's store has a new incarnation.
//!
//! If the removal fails or is interrupted, the metadata server still records the files as orphans, unless they have
//! their names again. Any client can remove them; if there is no client, the agent of the metadata server acts as one.
//! If a disk of an orphan was missing, the contents on that disk are removed when the disk is available again and a
//! client removes orphans. Until then a client that has removed the other contents skips the file.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use machine::{Duration, Machine, first_of};
use namespace::{FileNumber, Location, RenameMode, TreeAnswer, TreeOperation};

use super::Tree;
use super::unflushed_names::ReportedLosses;
use crate::error::Result;
use crate::protocol::{FileId, OpenFor};
use crate::unexpected;

/// Maximum number of files that are removed with one request.
const AT_ONCE: u32 = 512;

/// Time for which removals are gathered into one batch. Each batch needs a flush of the medium of the names, which
/// delays all requests for names, and a message to each I/O node. One client can remove thousands of files per second;
/// batches then reduce these costs to a hundredth per file. The delay does little harm, because the space is rarely
/// needed immediately.
const GATHERED_FOR: Duration = Duration::from_millis(50);

/// An orphan whose contents are to be removed.
pub(super) struct OrphanFile {
    number: FileNumber,
    /// Value of [`Tree::crashes`] when the metadata server had not yet reported the orphan.
    crashes: u64,
}

/// Orphans that the metadata server still records, each with the disks from which its contents have been removed.
pub(super) type PartlyRemovedOrphans = BTreeMap<FileNumber, Rc<BTreeSet<u64>>>;

impl<M: Machine> Tree<M> {
    /// Removes or renames a name, and removes the contents of the file that loses its last name. If a file replaces
    /// another one, it is flushed first, so that after a crash the contents of one of the two are complete.
    ///
    /// # Errors
    /// Fails if the operation is refused, or if the replacing file cannot be flushed. A failure to remove contents is
    /// not an error: the files remain orphans, and their contents are removed later.
    pub async fn unname(&self, operation: TreeOperation) -> Result<()> {
        if let TreeOperation::Rename { from, to, mode: RenameMode::Replace } = &operation {
            self.flush_to_media_before(from, to).await?;
        }
        let crashes = self.crashes();
        match self.perform(operation).await? {
            TreeAnswer::Removed { orphan } => {
                self.remove_orphan(orphan, crashes);
                Ok(())
            }
            _ => Err(unexpected(self.metadata_server())),
        }
    }

    /// If `to` exists, flushes the file at `from` to stable storage.
    async fn flush_to_media_before(&self, from: &Location, to: &Location) -> Result<()> {
        let look = |at: &Location| TreeOperation::Look { at: at.clone(), follow: false };
        // Ignore errors of the lookups: the rename reports them.
        let replaced = self.inode(look(to)).await;
        if !replaced.is_ok_and(|inode| inode.layout().is_some()) {
            return Ok(());
        }
        let Ok(file) = self.open_for(look(from), OpenFor::Reading).await else { return Ok(()) };
        let flushed = file.flush_to_media().await;
        let closed = file.close().await;
        flushed.and(closed)
    }

    /// If a file is given, removes its contents in the background. `crashes` is the value of [`crashes`](Self::crashes)
    /// before the request to the metadata server.
    pub(super) fn remove_orphan(&self, number: Option<FileNumber>, crashes: u64) {
        let Some(number) = number else { return };
        self.inner.orphans.borrow_mut().push(OrphanFile { number, crashes });
        if self.inner.removing.count() > 0 {
            return;
        }
        let (tree, operation) = (self.clone(), self.inner.removing.begin());
        self.machine().spawn("removing contents", async move {
            loop {
                tree.gather().await;
                let orphans = tree.inner.orphans.take();
                if orphans.is_empty() {
                    break;
                }
                for orphans in orphans.chunks(AT_ONCE as usize) {
                    // Ignore errors: files that could not be removed remain orphans.
                    let _ = tree.remove_contents(orphans).await;
                }
            }
            drop(operation);
            Ok(())
        });
    }

    /// Waits so that more removals can join the batch, unless a caller waits for the removals in it.
    async fn gather(&self) {
        if self.inner.awaited.is_empty() {
            let end = self.machine().now() + GATHERED_FOR;
            first_of(self.inner.hurry.wait(), self.machine().sleep_until(end)).await;
        }
    }

    /// Blocks until all contents orphaned by this client have been removed, or their removal has failed.
    pub async fn contents_removed(&self) {
        let _awaited = self.inner.awaited.begin();
        self.inner.hurry.wake_all();
        self.inner.removing.none().await;
    }

    /// Removes the contents of orphans, and then their records. Returns the number of orphans whose contents were
    /// removed completely. An orphan with contents on missing disks remains. Files that may have their names again are
    /// skipped, and so are files that this client has open.
    async fn remove_contents(&self, orphans: &[OrphanFile]) -> Result<u64> {
        self.flush_names(ReportedLosses::Nobody).await?;
        let crashes = self.crashes();
        let sure =
            orphans.iter().filter(|orphan| orphan.crashes == crashes && !self.inner.holds.has(orphan.number));
        let numbers: Vec<FileNumber> = sure.map(|orphan| orphan.number).collect();
        machine::sometimes!("an orphan stays because the metadata server may have restarted", if orphans.iter().any(|orphan| orphan.crashes != crashes));
        machine::sometimes!("an orphan stays because this client opened it again", if orphans.iter().any(|orphan| self.inner.holds.has(orphan.number)));
        if numbers.is_empty() {
            return Ok(0);
        }
        let files: Vec<FileId> = numbers.iter().map(|number| FileId(number.0)).collect();
        for &file in &files {
            self.cache().give_up_numbered(file).await;
        }
        // Contents on a failed disk remain, as they do on a missing disk.
        let reached = self.cache().client().remove_numbered_partly(&files).await.found;
        let disks = reached.iter().copied().collect();
        match self.perform(TreeOperation::Forget { numbers: numbers.clone(), disks }).await? {
            TreeAnswer::Forgotten(forgotten) => {
                let forgotten: BTreeSet<_> = forgotten.into_iter().collect();
                machine::sometimes!("an orphan stays because a disk did not remove its contents", if forgotten.len() < numbers.len());
                let (reached, left) =
                    (Rc::new(reached), numbers.iter().filter(|number| !forgotten.contains(number)));
                self.inner.partly_gone.borrow_mut().extend(left.map(|&number| (number, reached.clone())));
                Ok(forgotten.len() as u64)
            }
            _ => Err(unexpected(self.metadata_server())),
        }
    }

    /// Returns the disks of all I/O nodes that report them.
    async fn disks_there(&self) -> BTreeSet<u64> {
        let described = self.cache().client().described_disks().await;
        described.into_iter().filter_map(|(_, identities)| identities.ok()).flatten().flatten().collect()
    }

    /// Removes the contents of all orphans from all available disks. Returns the number of orphans whose contents were
    /// removed completely.
    ///
    /// # Errors
    /// Fails if the metadata server does not answer.
    pub async fn remove_orphans(&self) -> Result<u64> {
        let (mut after, mut removed) = (FileNumber(0), 0);
        // Begin with an empty map, so that files that are no longer listed are dropped from it.
        let partly_gone = self.inner.partly_gone.take();
        let there = if partly_gone.is_empty() { BTreeSet::new() } else { self.disks_there().await };
        loop {
            let crashes = self.crashes();
            let list = TreeOperation::ListOrphans { after, most: AT_ONCE };
            let TreeAnswer::Numbers(numbers) = self.perform(list).await? else {
                return Err(unexpected(self.metadata_server()));
            };
            let Some(&(last, _)) = numbers.last() else { return Ok(removed) };
            after = last;
            let mut orphans = Vec::new();
            for (number, _) in numbers {
                match partly_gone.get(&number).filter(|gone| there.is_subset(gone)) {
                    Some(gone) => drop(self.inner.partly_gone.borrow_mut().insert(number, gone.clone())),
                    None => orphans.push(OrphanFile { number, crashes }),
                }
            }
            if !orphans.is_empty() {
                removed += self.remove_contents(&orphans).await?;
            }
        }
    }
}
