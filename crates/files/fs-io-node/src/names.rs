//! Operations on names: making files, opening what lies under a name, removing it.
//!
//! A stripe is an object on a disk under the file's name, pending as long as the file is unfinished; its label says
//! which file it belongs to and which stripe it is. An object is judged by its label alone, so a stripe that was
//! swapped, copied from elsewhere or left over is noticed and named. An operation on a name holds the turn at that
//! name.

use std::rc::Rc;

use layout::Striping;
use machine::{Disk, Machine, NodeId, Object, Stage};

use super::IoNode;
use super::account::Account;
use super::creators::{Creators, being_written};
use super::home::Home;
use super::listing::Listings;
use super::objects::{committed, found};
use super::open_stripe::{Barred, OpenStripe};
use crate::byte_set::ByteSet;
use crate::error::{Failure, FailureKind};
use crate::name;
use crate::protocol::{Committed, FileId, FoundStripe, Label, Reply, StripeHome};
use crate::turns::Turns;

/// What goes on with names.
#[derive(Default)]
pub(super) struct Names {
    /// Names under which objects are made, opened, renamed and removed.
    pub(super) turns: Turns<String>,
    pub(super) creators: Creators,
    pub(super) listings: Listings,
}

/// Stripes of a file that are to be made.
pub(super) struct NewStripes<'a> {
    pub(super) name: &'a str,
    /// The label of the first stripe; those of others differ in their index.
    pub(super) label: Label,
    pub(super) stripes: &'a [StripeHome],
}

impl<M: Machine> IoNode<M> {
    pub(super) async fn create(
        &self,
        client: NodeId,
        account: &Account,
        new: NewStripes<'_>,
    ) -> Result<Reply, Box<Failure>> {
        let NewStripes { name, label, stripes } = new;
        name::check(name)?;
        self.check_stripe_count(stripes.len())?;
        let (asked, most) = (label.striping.block_bytes(), self.settings.block_bytes_max);
        if asked > most {
            return Err(Failure::invalid(format!("blocks of {asked} bytes; at most {most} here")).into());
        }
        self.check_identity(name, label.file).await?;
        let _turn = self.names.turns.take(name.to_owned()).await;
        for index in 0..self.machine.disks().len() {
            let Some((_, other)) = self.find_stripe(name, index, Stage::Published).await? else { continue };
            if Some(other.file) != label.replaces || other.file == label.file {
                let text = format!("{name}: disk {index} has a file of that name");
                return Err(Failure::new(FailureKind::Exists, text).into());
            }
        }
        let mut made = Vec::new();
        for place in stripes {
            let outcome =
                self.create_stripe(client, name, Label { stripe: place.stripe, ..label }, place.disk);
            if let Err(failure) = outcome.await {
                for disk in made {
                    self.machine.disks()[disk as usize].remove(name, Stage::Pending).await?;
                }
                return Err(failure);
            }
            made.push(place.disk);
        }
        // A client that has gone meanwhile writes nothing, and its loss is not told again.
        if !stripes.is_empty() && account.check().is_ok() {
            self.names.creators.note(label.file, client);
        }
        Ok(Reply::Done)
    }

    async fn create_stripe(
        &self,
        client: NodeId,
        name: &str,
        label: Label,
        index: u32,
    ) -> Result<(), Box<Failure>> {
        if label.stripe >= label.striping.stripe_count() {
            return Err(Failure::invalid(format!("there is no {label}")).into());
        }
        let disks = self.machine.disks();
        let disk = disks
            .get(index as usize)
            .ok_or_else(|| Failure::invalid(format!("disk {index} of an I/O node with {}", disks.len())))?;
        match disk.create(name, &label.encode()).await {
            Ok(object) => {
                self.stripes.insert(name, label, index as usize, &object, None);
                Ok(())
            }
            Err(error) if matches!(*error, machine::Error::Exists { .. }) => {
                let pending = found(disk.open(name, Stage::Pending).await).ok().flatten();
                let other = pending.and_then(|object| Label::decode(&object.label).ok());
                if other.is_some_and(|other| self.names.creators.has_other(other.file, client)) {
                    return Err(being_written(name));
                }
                let text = format!("{name}: disk {index} has a stripe of an unfinished file of that name");
                Err(Failure::new(FailureKind::Unfinished, text).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens what the disks hold under the name. Judging whether it is a file is the client's part.
    pub(super) async fn open(&self, name: &str) -> Result<Reply, Box<Failure>> {
        name::check(name)?;
        let _turn = self.names.turns.take(name.to_owned()).await;
        let (mut stripes, mut opened) = (Vec::new(), Vec::new());
        for index in 0..self.machine.disks().len() {
            for stage in Stage::ALL {
                let Some((object, label)) = self.find_stripe(name, index, stage).await? else { continue };
                self.check_block_bytes(name, label.striping)?;
                let committed = committed(name, index, &object)?;
                let stripe = self.make_known(name, label, index, &object, committed).await?;
                let bytes = stripe.as_ref().map_or(object.bytes, |stripe| stripe.length.bytes());
                let published = stage == Stage::Published;
                stripes.push(FoundStripe { disk: index as u32, label, bytes, published, committed });
                // In use until all are open, so that none is pushed out before.
                opened.push(stripe);
            }
        }
        Ok(Reply::Opened { stripes })
    }

    /// Fails if the identity is that of another file that is open, so that requests for one would go to the other.
    /// Identities are drawn at random, so two are equal only if a file was copied, or a client means harm.
    pub(super) async fn check_identity(&self, name: &str, file: FileId) -> Result<(), Box<Failure>> {
        for stripe in self.stripes.of_file(file) {
            if stripe.name != name && self.is_there(&stripe).await? {
                let other = &stripe.name;
                let text =
                    format!("{name}: has the identity of {other}, which is open: one of them is a copy");
                return Err(Failure::invalid(text).into());
            }
        }
        Ok(())
    }

    /// Makes a stripe known that was found under a name, so that requests can name it; not if another disk has it, too.
    async fn make_known(
        &self,
        name: &str,
        label: Label,
        disk: usize,
        object: &Object,
        committed: Option<Committed>,
    ) -> Result<Option<Rc<OpenStripe>>, Box<Failure>> {
        self.check_identity(name, label.file).await?;
        let known = self.stripes.get(label.file, label.stripe).ok();
        if let Some(other) = known.filter(|known| known.home != Home { disk, object: object.id }) {
            if self.is_there(&other).await? {
                return Ok(None);
            }
            // It was moved while it was open. What was not on the disk yet has nowhere to go.
            self.blocks.give_up(other.key());
            self.stripes.remove(&other);
        }
        let stripe = self.stripes.insert(name, label, disk, object, committed);
        stripe.length.reach(object.bytes);
        Ok(Some(stripe))
    }

    /// Whether an open stripe is still what its disk has under its name.
    async fn is_there(&self, stripe: &OpenStripe) -> Result<bool, Box<Failure>> {
        for stage in Stage::ALL {
            let there = found(self.disks.of(stripe.home).open(&stripe.name, stage).await)?;
            if there.is_some_and(|object| object.id == stripe.home.object) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Fails if a request names more stripes of a file than there are disks: no disk has two.
    pub(super) fn check_stripe_count(&self, stripes: usize) -> Result<(), Box<Failure>> {
        let disks = self.machine.disks().len();
        if stripes > disks {
            return Err(Failure::invalid(format!("{stripes} stripes of a file on {disks} disks")).into());
        }
        Ok(())
    }

    /// Fails for a file whose blocks the cache was not made for: an I/O node can be started with other settings.
    pub(super) fn check_block_bytes(&self, name: &str, striping: Striping) -> Result<(), Box<Failure>> {
        let (bytes, most) = (striping.block_bytes(), self.settings.block_bytes_max);
        if bytes <= most {
            return Ok(());
        }
        let text =
            format!("{name} is in blocks of {bytes} bytes, and this I/O node was started for at most {most}");
        Err(Failure::new(FailureKind::BlockTooLarge, text).into())
    }

    pub(super) async fn unlink(self: &Rc<Self>, name: &str) -> Result<Reply, Box<Failure>> {
        name::check(name)?;
        let _turn = self.names.turns.take(name.to_owned()).await;
        let mut is_found = false;
        for disk in self.machine.disks() {
            let label = match found(disk.open(name, Stage::Published).await) {
                Ok(None) => continue,
                Ok(Some(object)) => Label::decode(&object.label).ok(),
                // What cannot be read can still be removed.
                Err(failure) if failure.kind == FailureKind::Damaged => None,
                Err(failure) => return Err(failure),
            };
            self.remove_stripe(disk, name, Stage::Published, label, true).await?;
            is_found = true;
        }
        if is_found {
            Ok(Reply::Done)
        } else {
            Err(Failure::new(FailureKind::NotFound, format!("{name}: no stripe of it here")).into())
        }
    }

    /// Removes a stripe, if it is open after the writes under way: what is not on the disk yet never gets there. The
    /// object is left on its disk if another is about to take its place.
    pub(super) async fn remove_stripe(
        &self,
        disk: &M::Disk,
        name: &str,
        stage: Stage,
        label: Option<Label>,
        object_too: bool,
    ) -> Result<(), Box<Failure>> {
        let stripe = label.and_then(|label| self.stripes.get(label.file, label.stripe).ok());
        let barred = stripe.map(|stripe| stripe.bar_writes());
        let given_up = match &barred {
            Some(stripe) => self.blocks.give_up_all(stripe).await,
            None => ByteSet::default(),
        };
        if object_too {
            let removed = disk.remove(name, stage).await.map_err(Box::<Failure>::from);
            removed.inspect_err(|failure| {
                barred.iter().for_each(|stripe| self.blocks.lose_given_up(stripe, &given_up, failure));
            })?;
        }
        if let Some(stripe) = &barred {
            self.forget_removed(stripe).await;
        }
        Ok(())
    }

    /// Forgets a stripe whose object has been removed, with what has been written to it while that went on: writes that
    /// had begun before they were barred.
    pub(super) async fn forget_removed(&self, stripe: &Barred) {
        self.stripes.remove(stripe);
        self.blocks.give_up_all(stripe).await;
    }
}
