//! Removes the contents of orphans: files without names that no client has open.
//!
//! The client that removes the last name, or closes the file last, removes the contents a little later, many at a time.
//! Before that it flushes the removal of the names to stable storage, because after a crash of the metadata server the
//! files would have their names again. For the same reason it skips files if the metadata server has disconnected
//! since, or if its store is in another incarnation.
//!
//! Files left over by a failure or an interruption remain orphans at the metadata server, unless they have their names
//! again. Any client can remove them; if there is no client, the agent of the metadata server becomes one. If a disk of
//! an orphan was missing, its contents there are removed when the disk is back and a client removes orphans. Until then
//! a client that has removed the rest skips the file.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use machine::{Duration, Machine, first_of};
use namespace::{FileNumber, Location, RenameMode, TreeAnswer, TreeOperation};

use super::Tree;
use super::unflushed_names::ReportedLosses;
use crate::error::Result;
use crate::protocol::{FileId, OpenFor};
use crate::unexpected;

/// Number of files removed at a time.
const AT_ONCE: u32 = 512;

/// Time for which removals are gathered into one batch. Each batch takes a flush of the names' medium, which delays all
/// requests for names, and a message to each I/O node. At one client's thousands of removals a second, batches reduce
/// that to a hundredth for each file, and the space is rarely needed so soon.
const GATHERED_FOR: Duration = Duration::from_millis(50);

/// An orphan whose contents are to be removed.
pub(super) struct OrphanFile {
    number: FileNumber,
    /// Value of [`Tree::crashes`] before the metadata server reported the orphan.
    crashes: u64,
}

/// Orphans whose contents on these disks have been removed, but that the metadata server still records.
pub(super) type PartlyRemovedOrphans = BTreeMap<FileNumber, Rc<BTreeSet<u64>>>;

impl<M: Machine> Tree<M> {
    /// Removes or renames a name, and removes the contents of the file that loses its last name. A file that replaces
    /// another is flushed first, so that a crash leaves the contents of one of them.
    ///
    /// # Errors
    /// Fails if the operation is refused, or if the replacing file cannot be flushed. A failure to remove contents is
    /// no error: they are orphans, and are removed later.
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

    /// Flushes the file at `from` to stable storage, if `to` exists.
    async fn flush_to_media_before(&self, from: &Location, to: &Location) -> Result<()> {
        let look = |at: &Location| TreeOperation::Look { at: at.clone(), follow: false };
        // Ignore errors of the names: the rename reports them.
        let replaced = self.inode(look(to)).await;
        if !replaced.is_ok_and(|inode| inode.layout().is_some()) {
            return Ok(());
        }
        let Ok(file) = self.open_for(look(from), OpenFor::Reading).await else { return Ok(()) };
        let flushed = file.flush_to_media().await;
        let closed = file.close().await;
        flushed.and(closed)
    }

    /// Removes the contents of a file, if given, in the background. `crashes` is the value of
    /// [`crashes`](Self::crashes) before the request to the metadata server.
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

    /// Waits for more removals to join the batch, unless a caller waits for these.
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

    /// Removes the contents of orphans, and then their records. Returns the number of orphans removed completely. An
    /// orphan with contents on missing disks remains. Files that may have their names again, or are open here, are
    /// skipped.
    async fn remove_contents(&self, orphans: &[OrphanFile]) -> Result<u64> {
        self.flush_names(ReportedLosses::Nobody).await?;
        let crashes = self.crashes();
        let sure =
            orphans.iter().filter(|orphan| orphan.crashes == crashes && !self.inner.holds.has(orphan.number));
        let numbers: Vec<FileNumber> = sure.map(|orphan| orphan.number).collect();
        if numbers.is_empty() {
            return Ok(0);
        }
        let files: Vec<FileId> = numbers.iter().map(|number| FileId(number.0)).collect();
        for &file in &files {
            self.cache().give_up_numbered(file).await;
        }
        // Contents on a failed disk remain, as on a missing one.
        let reached = self.cache().client().remove_numbered_partly(&files).await.found;
        let disks = reached.iter().copied().collect();
        match self.perform(TreeOperation::Forget { numbers: numbers.clone(), disks }).await? {
            TreeAnswer::Forgotten(forgotten) => {
                let forgotten: BTreeSet<_> = forgotten.into_iter().collect();
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

    /// Removes the contents of all orphans, as far as they may be on available disks. Returns the number of orphans
    /// removed completely.
    ///
    /// # Errors
    /// Fails if the metadata server does not answer.
    pub async fn remove_orphans(&self) -> Result<u64> {
        let (mut after, mut removed) = (FileNumber(0), 0);
        // Start an empty map, so that files no longer listed are dropped from it.
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
