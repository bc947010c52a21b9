//! How a file comes to be finished: committed on all of its stripes, then published under its name.
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

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use machine::{Disk, Machine, NodeId, Object, Stage};

use super::IoNode;
use super::stripes::{OpenStripe, not_open, read_label};
use crate::error::{Failure, FailureKind};
use crate::name;
use crate::protocol::{Committed, FileId, Label, Reply};

/// Who is writing the unfinished files that were begun since this I/O node was started.
#[derive(Default)]
pub(super) struct Creators(RefCell<BTreeMap<FileId, NodeId>>);

impl Creators {
    pub(super) fn note(&self, file: FileId, creator: NodeId) {
        self.0.borrow_mut().insert(file, creator);
    }

    fn forget(&self, file: FileId) {
        self.0.borrow_mut().remove(&file);
    }

    /// Notes that a client is gone: it writes no file any more.
    pub(super) fn gone(&self, client: NodeId) {
        self.0.borrow_mut().retain(|_, creator| *creator != client);
    }

    /// Whether a client other than this one is writing the file.
    pub(super) fn has_other(&self, file: FileId, client: NodeId) -> bool {
        self.0.borrow().get(&file).is_some_and(|&creator| creator != client)
    }
}

pub(super) fn being_written(name: &str) -> Box<Failure> {
    let text = format!("{name}: another client is writing a file of that name");
    Failure::new(FailureKind::BeingWritten, text).into()
}

fn not_committed(label: Label) -> Box<Failure> {
    Failure::invalid(format!("{label} has not been committed, and cannot be published")).into()
}

impl<M: Machine> IoNode<M> {
    /// Brings what was written to a file onto the media, and notes that it is so for this size of it.
    pub(super) async fn commit(
        self: &Rc<Self>,
        asker: NodeId,
        file: FileId,
        bytes: u64,
        incarnation: Option<u64>,
    ) -> Result<Reply, Box<Failure>> {
        if incarnation.is_some_and(|incarnation| incarnation != self.settings.incarnation) {
            let text = format!("what was written to file {:016x} was lost with an earlier run", file.0);
            return Err(Failure::new(FailureKind::Lost, text).into());
        }
        let stripes = self.stripes.of_file(file);
        if stripes.is_empty() {
            return Err(not_open(file, 0));
        }
        self.bring_to_media(asker, &stripes, async |stripe| {
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
        let _turn = self.notes.take((stripe.file(), stripe.label.stripe)).await;
        let bytes = bytes(stripe.committed.get());
        stripe.check_not_removed()?;
        let note = Committed { bytes }.encode();
        let noted = self.machine.disks()[stripe.disk].commit(stripe.object, &note).await;
        noted.map_err(Box::<Failure>::from).inspect_err(|failure| stripe.fail(failure))?;
        stripe.committed.set(Some(bytes));
        Ok(())
    }

    /// The stripe that a disk has under this name, if it has one of this stage.
    pub(super) async fn find_stripe(
        &self,
        name: &str,
        disk: usize,
        stage: Stage,
    ) -> Result<Option<(Object, Label)>, Box<Failure>> {
        let Some(object) = found(self.machine.disks()[disk].open(name, stage).await)? else {
            return Ok(None);
        };
        let label = read_label(name, disk, &object.label)?;
        Ok(Some((object, label)))
    }

    /// Gives the committed stripes of a file its name, and removes those of the file that has it.
    pub(super) async fn publish(
        self: &Rc<Self>,
        name: &str,
        file: FileId,
        replaces: Option<FileId>,
    ) -> Result<Reply, Box<Failure>> {
        name::check(name)?;
        let _turn = self.names.take(name.to_owned()).await;
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
        self.creators.forget(file);
        Ok(Reply::Done)
    }

    /// Removes stripes of unfinished files.
    pub(super) async fn discard(
        self: &Rc<Self>,
        asker: NodeId,
        name: &str,
        file: Option<FileId>,
        uncommitted: bool,
    ) -> Result<Reply, Box<Failure>> {
        name::check(name)?;
        let _turn = self.names.take(name.to_owned()).await;
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
                if self.creators.has_other(label.file, asker) {
                    return Err(being_written(name));
                }
            }
            self.remove_stripe(disk, name, Stage::Pending, label, true).await?;
            label.into_iter().for_each(|label| self.creators.forget(label.file));
            removed = true;
        }
        if uncommitted && !removed {
            let text = format!("{name}: all stripes here have been committed");
            return Err(Failure::new(FailureKind::Exists, text).into());
        }
        Ok(Reply::Done)
    }
}

/// An object that was opened, or none if there is none.
pub(super) fn found(opened: machine::Result<Object>) -> Result<Option<Object>, Box<Failure>> {
    match opened {
        Err(error) if matches!(*error, machine::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
        Ok(object) => Ok(Some(object)),
    }
}

/// The note of a stripe from the last commit of its file.
pub(super) fn committed(name: &str, disk: usize, object: &Object) -> Result<Option<Committed>, Box<Failure>> {
    Committed::decode(&object.note).map_err(|why| {
        let text = format!("{name}: the note on its stripe on disk {disk} is none of ours: {why}");
        Failure::new(FailureKind::Damaged, text).into()
    })
}
