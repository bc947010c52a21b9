//! How a file becomes finished: it is committed on all of its stripes, then published under its name.
//!
//! ```text
//!  Create ----> pending stripes: the file is unfinished
//!  Commit ----> what was written is on the medium, and a note says so: one step on each disk
//!                 \ on the last of the disks: from here on the file is finished
//!  Publish ---> the stripes take the file's name; the file that had it is removed
//! ```
//!
//! A client that finds a file committed but not published everywhere publishes it, so that it does not matter where
//! a client or an I/O node is stopped. The rules that make this safe are in record 19.

use std::rc::Rc;

use machine::{Disk, Machine, NodeId, Stage};

use super::IoNode;
use super::creators::being_written;
use super::objects::{committed, found};
use super::open_stripe::{OpenStripe, not_open};
use crate::error::{Failure, FailureKind};
use crate::name;
use crate::protocol::{Committed, FileId, Label, Reply};

fn not_committed(label: Label) -> Box<Failure> {
    Failure::invalid(format!("{label} has not been committed, and cannot be published")).into()
}

impl<M: Machine> IoNode<M> {
    /// Brings what was written to a file onto the media, and then notes the file's size on its stripes.
    pub(super) async fn commit(
        self: &Rc<Self>,
        client: NodeId,
        file: FileId,
        bytes: u64,
        incarnation: Option<u64>,
    ) -> Result<Reply, Box<Failure>> {
        if incarnation.is_some_and(|incarnation| incarnation != self.settings.lossless_since()) {
            let text = format!("what was written to file {:016x} was lost with an earlier run", file.0);
            return Err(Failure::new(FailureKind::Lost, text).into());
        }
        let stripes = self.stripes.of_file(file);
        if stripes.is_empty() {
            return Err(not_open(file, 0));
        }
        self.bring_to_media(client, &stripes, async |stripe| {
            match stripe.committed.get() {
                // What is noted holds for more already.
                Some(before) if before >= bytes => return self.flush_disk(stripe).await,
                Some(_) => {}
                // Its writer has been told, but a file that lacks the write must not be committed.
                None => stripe.losses.check(&(0..u64::MAX))?,
            }
            self.note_committed(stripe, |before| before.map_or(bytes, |before| before.max(bytes))).await
        })
        .await
    }

    /// Notes on a stripe which size of its file is committed, given that before.
    pub(super) async fn note_committed(
        &self,
        stripe: &OpenStripe,
        bytes: impl FnOnce(Option<u64>) -> u64,
    ) -> Result<(), Box<Failure>> {
        // One after the other, so that none goes by what another is about to replace.
        let _turn = self.stripes.notes.take((stripe.file(), stripe.label.stripe)).await;
        let bytes = bytes(stripe.committed.get());
        stripe.check_not_removed()?;
        let note = Committed { bytes }.encode();
        let _span = self.machine.notes().span("disk commit", || [("disk", stripe.home.disk as u64)]);
        let since = self.machine.now();
        let noted = self.disks.of(stripe.home).commit(stripe.home.object, &note).await;
        self.disks.count_flush(stripe.home, since, &noted);
        noted.map_err(Box::<Failure>::from).inspect_err(|failure| stripe.writers.fail(failure))?;
        stripe.committed.set(Some(bytes));
        Ok(())
    }

    /// Gives the committed stripes of a file its name, and removes those of the file that has it.
    pub(super) async fn publish(
        self: &Rc<Self>,
        name: &str,
        file: FileId,
        replaces: Option<FileId>,
    ) -> Result<Reply, Box<Failure>> {
        name::check(name)?;
        let _turn = self.names.turns.take(name.to_owned()).await;
        for (index, disk) in self.machine.disks().iter().enumerate() {
            let pending = self.find_stripe(name, index, Stage::Pending).await?;
            let ours = pending.filter(|(_, label)| label.file == file);
            if let Some((object, label)) = &ours
                && committed(name, index, object)?.is_none()
            {
                return Err(not_committed(*label));
            }
            match self.find_stripe(name, index, Stage::Published).await? {
                Some((_, label)) if label.file == file => continue,
                Some((_, label)) if Some(label.file) == replaces => {
                    self.remove_stripe(disk, name, Stage::Published, Some(label), ours.is_none()).await?;
                }
                Some((_, label)) if ours.is_some() => {
                    let text = format!("{name}: disk {index} has another file of that name: {label}");
                    return Err(Failure::new(FailureKind::Exists, text).into());
                }
                _ => {}
            }
            if ours.is_some() {
                disk.publish(name).await?;
            }
        }
        self.names.creators.forget(file);
        Ok(Reply::Done)
    }

    /// Removes stripes of unfinished files.
    pub(super) async fn discard(
        self: &Rc<Self>,
        client: NodeId,
        name: &str,
        file: Option<FileId>,
        uncommitted: bool,
    ) -> Result<Reply, Box<Failure>> {
        name::check(name)?;
        let _turn = self.names.turns.take(name.to_owned()).await;
        let mut removed = false;
        for (index, disk) in self.machine.disks().iter().enumerate() {
            let label = match found(disk.open(name, Stage::Pending).await) {
                Ok(None) => continue,
                Ok(Some(object)) => {
                    if uncommitted && committed(name, index, &object)?.is_some() {
                        continue;
                    }
                    Label::decode(&object.label).ok()
                }
                // What cannot be read can still be removed.
                Err(failure) if failure.kind == FailureKind::Damaged => None,
                Err(failure) => return Err(failure),
            };
            if let Some(label) = label {
                if file.is_some_and(|file| file != label.file) {
                    continue;
                }
                if self.names.creators.has_other(label.file, client) {
                    return Err(being_written(name));
                }
            }
            self.remove_stripe(disk, name, Stage::Pending, label, true).await?;
            label.into_iter().for_each(|label| self.names.creators.forget(label.file));
            removed = true;
        }
        if uncommitted && !removed {
            let text = format!("{name}: all stripes here have been committed");
            return Err(Failure::new(FailureKind::Exists, text).into());
        }
        Ok(Reply::Done)
    }
}
