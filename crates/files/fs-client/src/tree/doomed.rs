//! Contents of files without names: they go when nobody has the file open.
//!
//! Whoever takes the last name away, or closes the file last, removes them, a while later: many at a time, and not
//! before the loss of their names is on the medium, since after a crash of the keeper they would have them again. For
//! the same reason it leaves those alone of which the keeper has been gone since, or whose store is in another run.
//! What is left, since it failed or was stopped on the way, the keeper still knows as doomed, unless it has its name
//! again; any client can remove it, and the agent of the keeper becomes a client if there is none. So is a file of
//! which a disk was away: its contents there go when the disk is there again and somebody removes what is doomed.
//! Until then a client that has removed them elsewhere leaves it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use machine::{Duration, Machine, first_of};
use namespace::{FileNumber, Location, RenameMode, TreeAnswer, TreeOperation};

use super::Tree;
use super::unflushed_names::Flushed;
use crate::error::Result;
use crate::protocol::{FileId, OpenFor};
use crate::unexpected;

/// How many files are removed at a time.
const AT_ONCE: u32 = 512;

/// For how long names are gathered whose files are removed together. Each time takes a flush of the medium of the
/// names, for which whoever uses names waits, and a message to each I/O node: at one client's thousands of removals a
/// second this is a hundredth of that for each file, and nobody misses the room so soon.
const GATHERED_FOR: Duration = Duration::from_millis(50);

/// A file without a name whose contents are to be removed.
pub(super) struct DoomedFile {
    number: FileNumber,
    /// How often what the keeper had said had come undone, before it said so.
    crashes: u64,
}

/// Files without names that are known still when their contents are gone from these disks.
pub(super) type PartlyGone = BTreeMap<FileNumber, Rc<BTreeSet<u64>>>;

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
        let crashes = self.crashes();
        match self.perform(operation).await? {
            TreeAnswer::Removed { doomed } => {
                self.doom(doomed, crashes);
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
        let Ok(file) = self.open_for(look(from), OpenFor::Reading).await else { return Ok(()) };
        let brought = file.bring_to_media().await;
        let closed = file.close().await;
        brought.and(closed)
    }

    /// Has the contents of a file removed in the background, if there is one. There had been so many
    /// [crashes](Self::crashes) before the keeper was asked.
    pub(super) fn doom(&self, number: Option<FileNumber>, crashes: u64) {
        let Some(number) = number else { return };
        self.inner.doomed.borrow_mut().push(DoomedFile { number, crashes });
        if self.inner.removing.count() > 0 {
            return;
        }
        let (tree, operation) = (self.clone(), self.inner.removing.begin());
        self.machine().spawn("removing contents", async move {
            loop {
                tree.gather().await;
                let doomed = tree.inner.doomed.take();
                if doomed.is_empty() {
                    break;
                }
                for doomed in doomed.chunks(AT_ONCE as usize) {
                    // What could not be removed is doomed still.
                    let _ = tree.remove_contents(doomed).await;
                }
            }
            drop(operation);
            Ok(())
        });
    }

    /// Waits for others that go together with those there are, unless somebody waits for these to be gone.
    async fn gather(&self) {
        if self.inner.awaited.is_empty() {
            let end = self.machine().now() + GATHERED_FOR;
            first_of(self.inner.hurry.wait(), self.machine().sleep_until(end)).await;
        }
    }

    /// Waits until contents that nobody can reach any more because of what this client did are gone, or could not be
    /// removed.
    pub async fn contents_gone(&self) {
        let _awaited = self.inner.awaited.begin();
        self.inner.hurry.wake_all();
        self.inner.removing.none().await;
    }

    /// Removes the contents of files that have no names, and then what is known of them; of how many nothing is left.
    /// Of which contents may be on disks that are away, they stay doomed. Nothing is done with those that may have
    /// their names again, or are open here.
    async fn remove_contents(&self, doomed: &[DoomedFile]) -> Result<u64> {
        self.flush_names(Flushed::Nobody).await?;
        let crashes = self.crashes();
        let sure =
            doomed.iter().filter(|doomed| doomed.crashes == crashes && !self.inner.holds.has(doomed.number));
        let numbers: Vec<FileNumber> = sure.map(|doomed| doomed.number).collect();
        if numbers.is_empty() {
            return Ok(0);
        }
        let files: Vec<FileId> = numbers.iter().map(|number| FileId(number.0)).collect();
        for &file in &files {
            self.cache().give_up_numbered(file).await;
        }
        // On a disk that fails they stay, as on one that is away.
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
            _ => Err(unexpected(self.keeper())),
        }
    }

    /// The disks of all I/O nodes that say which they have.
    async fn disks_there(&self) -> BTreeSet<u64> {
        let described = self.cache().client().described_disks().await;
        described.into_iter().filter_map(|(_, identities)| identities.ok()).flatten().flatten().collect()
    }

    /// Removes the contents of all files that are doomed, as far as they may be on disks that are there; of how many
    /// nothing is left.
    ///
    /// # Errors
    /// If the keeper does not answer.
    pub async fn remove_doomed(&self) -> Result<u64> {
        let (mut after, mut removed) = (FileNumber(0), 0);
        // What is not listed any more is left out of what is kept.
        let partly_gone = self.inner.partly_gone.take();
        let there = if partly_gone.is_empty() { BTreeSet::new() } else { self.disks_there().await };
        loop {
            let crashes = self.crashes();
            let list = TreeOperation::ListDoomed { after, most: AT_ONCE };
            let TreeAnswer::Numbers(numbers) = self.perform(list).await? else {
                return Err(unexpected(self.keeper()));
            };
            let Some(&(last, _)) = numbers.last() else { return Ok(removed) };
            after = last;
            let mut doomed = Vec::new();
            for (number, _) in numbers {
                match partly_gone.get(&number).filter(|gone| there.is_subset(gone)) {
                    Some(gone) => drop(self.inner.partly_gone.borrow_mut().insert(number, gone.clone())),
                    None => doomed.push(DoomedFile { number, crashes }),
                }
            }
            if !doomed.is_empty() {
                removed += self.remove_contents(&doomed).await?;
            }
        }
    }
}
