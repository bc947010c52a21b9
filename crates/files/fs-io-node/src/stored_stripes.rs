//! Stripes of files on the disks: opened, created by writes, flushed, listed and removed.
//!
//! A stripe is an object that is never published: the namespace records the existence and length of the file.
//! Creating a stripe does not wait for stable storage; only flushing does.
//!
//! - A stripe is on the disk with the identity that the client names, whatever index that disk has now.
//! - A client that does not know yet that a file was removed cannot create it again by a write: the node
//!   remembers the numbers of the last removed files. A check of the namespace finds files that clients
//!   create after a longer absence.
//! - Idle stripes are closed when many are open, after their data have been written to the disk. A flush
//!   names its stripes, so it opens them again.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::rc::Rc;

use layout::Striping;
use machine::{Disk, Machine, NodeId};

use super::IoNode;
use super::client_account::Account;
use super::open_stripe::{OpenStripe, WriteExclusion};
use super::stripe_label::found;
use crate::error::{Failure, FailureKind};
use crate::number;
use crate::protocol::{FileId, Label, ListedStripe, REMOVED_MAX, Reply, StripePlaces};

/// Number of removed files that are remembered.
const REMEMBERED: usize = 64 * 1024;

/// Number of open stripes at which the node begins to close idle ones.
const OPEN_MANY: u64 = 32 * 1024;

/// Number of files that one call removes from a disk. During the call nothing else is created or opened
/// there: a tenth of a second if the files are large.
pub const REMOVED_AT_ONCE: usize = 16;

/// Number of idle stripes that are written out at a time, and limit of idle files that are closed at a time.
const CLOSED: usize = 4 * 1024;

/// State of the stored stripes.
#[derive(Default)]
pub(super) struct StoredStripes {
    removed: RefCell<Removed>,
    closing: Closing,
    /// Clients that have written to stripes which were closed before they were flushed.
    closed_unflushed: RefCell<BTreeSet<NodeId>>,
}

impl StoredStripes {
    /// True if a client has written to a stripe that was closed before it was flushed.
    pub(super) fn has_closed_unflushed(&self, client: NodeId) -> bool {
        self.closed_unflushed.borrow().contains(&client)
    }

    /// Forgets a disconnected client.
    pub(super) fn client_disconnected(&self, client: NodeId) {
        self.closed_unflushed.borrow_mut().remove(&client);
    }
}

/// Number of open stripes at which stripes are closed next; the maximum while they are being closed.
struct Closing(Cell<u64>);

impl Default for Closing {
    fn default() -> Self {
        Closing(Cell::new(OPEN_MANY))
    }
}

#[derive(Default)]
struct Removed {
    files: BTreeSet<FileId>,
    in_order: VecDeque<FileId>,
}

impl Removed {
    fn note(&mut self, file: FileId) {
        if !self.files.insert(file) {
            return;
        }
        self.in_order.push_back(file);
        if self.in_order.len() > REMEMBERED
            && let Some(first) = self.in_order.pop_front()
        {
            self.files.remove(&first);
        }
    }
}

impl StoredStripes {
    pub(super) fn check_not_removed(&self, file: FileId) -> Result<(), Box<Failure>> {
        if self.removed.borrow().files.contains(&file) {
            machine::sometimes!("a request comes after the removal of its file");
            let text = format!("file {:016x} has been removed", file.0);
            return Err(Failure::new(FailureKind::Removed, text).into());
        }
        Ok(())
    }
}

impl<M: Machine> IoNode<M> {
    pub(super) async fn describe_disks(&self) -> Reply {
        Reply::DisksDescribed { identities: self.identities().await }
    }

    /// Returns the identity of each disk, if it can be read and the disk can be used.
    async fn identities(&self) -> Vec<Option<u64>> {
        let mut identities = Vec::new();
        for disk in self.machine.disks() {
            let identity = disk.identity().await.ok();
            // The identity may be cached for a disk that has failed.
            identities.push(if disk.space().await.is_ok() { identity } else { None });
        }
        identities
    }

    /// Marks all disks as part of the namespace with the origin `origin`. Fails if another namespace has
    /// marked a disk, unless the caller lets this namespace replace that one. A replacement fails if this
    /// node keeps the names of another namespace.
    pub(super) async fn mark_disks(&self, origin: u64, anew: bool) -> Result<Reply, Box<Failure>> {
        let name = number::object_name(number::MARK);
        let striping = Striping::new(self.settings.block_bytes_max, 1)
            .map_err(|error| Failure::invalid(error.to_string()))?;
        let label = Label { file: number::MARK, striping, stripe: 0, begun: origin, replaces: None };
        if let Some(kept) = self.metadata_server.origin().await?.filter(|&kept| anew && kept != origin) {
            let text = format!(
                "cannot mark disks for namespace {origin:x}: this I/O node keeps namespace {kept:x}; remove \
                 that first"
            );
            return Err(Failure::new(FailureKind::OtherNamespace, text).into());
        }
        let _turn = self.turns.take(name.clone()).await;
        for (index, disk) in self.machine.disks().iter().enumerate() {
            match disk.create(&name, &label.encode()).await {
                Err(error) if matches!(*error, machine::Error::Exists { .. }) => {}
                made => {
                    disk.flush(made?.id).await?;
                    continue;
                }
            }
            let there = disk.open(&name).await?;
            match Label::decode(&there.label).map_or(0, |there| there.begun) {
                before if before == origin => {}
                // The mark does not name its namespace.
                0 if !anew => {}
                _ if anew => {
                    disk.remove(&name).await?;
                    let mark = disk.create(&name, &label.encode()).await?;
                    disk.flush(mark.id).await?;
                }
                _ => {
                    let text = format!("disk {index} belongs to another namespace");
                    return Err(Failure::new(FailureKind::OtherNamespace, text).into());
                }
            }
        }
        Ok(Reply::Done)
    }

    /// Returns the index of the disk of this identity.
    async fn disk_of_identity(&self, identity: u64) -> Result<usize, Box<Failure>> {
        let mut failure = None;
        for (index, disk) in self.machine.disks().iter().enumerate() {
            match disk.identity().await {
                Ok(found) if found == identity => return Ok(index),
                Ok(_) => {}
                // A disk that fails must not hide the others, but may be the wanted one.
                Err(error) => failure = Some(error.into()),
            }
        }
        let text = || format!("this I/O node does not have disk {identity:016x}");
        Err(failure.unwrap_or_else(|| Failure::new(FailureKind::NoDisk, text()).into()))
    }

    /// Opens stripes, and creates missing ones if `create` is set.
    pub(super) async fn attach(
        self: &Rc<Self>,
        stripes: &StripePlaces,
        create: bool,
    ) -> Result<Reply, Box<Failure>> {
        let attached = self.attach_all(stripes, create).await?;
        let stripes = attached.iter().map(|stripe| (stripe.label.stripe, stripe.length.bytes())).collect();
        drop(attached);
        self.close_some();
        Ok(Reply::Attached { stripes })
    }

    /// Opens or creates stripes; they stay in use as long as the caller keeps them.
    async fn attach_all(
        &self,
        stripes: &StripePlaces,
        create: bool,
    ) -> Result<Vec<Rc<OpenStripe>>, Box<Failure>> {
        let StripePlaces { file, striping, places } = stripes;
        let name = number::object_name(*file);
        self.check_block_bytes(&name, *striping)?;
        let _turn = self.turns.take(name.clone()).await;
        self.stored.check_not_removed(*file)?;
        let mut attached = Vec::new();
        for &(stripe, identity) in places {
            let label = Label { file: *file, striping: *striping, stripe, begun: 0, replaces: None };
            if stripe >= striping.stripe_count() {
                return Err(Failure::invalid(format!("{label} does not exist")).into());
            }
            let disk = self.disk_of_identity(identity).await?;
            attached.extend(self.attach_stripe(&name, label, disk, create).await?);
        }
        Ok(attached)
    }

    async fn attach_stripe(
        &self,
        name: &str,
        label: Label,
        disk: usize,
        create: bool,
    ) -> Result<Option<Rc<OpenStripe>>, Box<Failure>> {
        if let Ok(known) = self.stripes.get(label.file, label.stripe) {
            check_label(&known, label)?;
            if known.home.disk == disk {
                return Ok(Some(known));
            }
            let text = format!("{label} is on disk {}, and not on disk {disk}", known.home.disk);
            return Err(Failure::invalid(text).into());
        }
        if create {
            match self.machine.disks()[disk].create(name, &label.encode()).await {
                Ok(object) => return Ok(Some(self.stripes.insert(name, label, disk, &object))),
                Err(error) if matches!(*error, machine::Error::Exists { .. }) => {
                    machine::sometimes!("a new stripe exists on the disk");
                }
                Err(error) => return Err(error.into()),
            }
        }
        let Some((object, on_disk)) = self.find_stripe(name, disk).await? else {
            return Ok(None);
        };
        if on_disk != label {
            let text = format!("{name}: disk {disk} has {on_disk} in the place of {label}");
            return Err(Failure::new(FailureKind::Damaged, text).into());
        }
        Ok(Some(self.stripes.insert(name, label, disk, &object)))
    }

    /// Flushes the existing stripes among those named. Also reports the failures of `members`, which the client
    /// flushes for.
    pub(super) async fn flush_stripes(
        self: &Rc<Self>,
        account: &Rc<Account>,
        stripes: &StripePlaces,
        members: &[NodeId],
    ) -> Result<Reply, Box<Failure>> {
        let attached = self.attach_all(stripes, false).await?;
        self.flush_to_media(account, &attached, members).await
    }

    /// Removes all stripes of files. The failure of a stripe or a disk does not prevent the removal of
    /// others. A stripe that cannot be removed loses its unwritten data.
    pub(super) async fn remove_files(self: &Rc<Self>, files: &[FileId]) -> Result<Reply, Box<Failure>> {
        if files.len() > REMOVED_MAX {
            let text = format!("{} files in one removal; the limit is {REMOVED_MAX}", files.len());
            return Err(Failure::invalid(text).into());
        }
        let mut outcomes = vec![Ok(()); self.machine.disks().len()];
        for files in files.chunks(REMOVED_AT_ONCE) {
            self.metadata_server.check_unused(files).await?;
            for (outcome, removed) in outcomes.iter_mut().zip(self.remove_some(files).await) {
                *outcome = mem::replace(outcome, Ok(())).and(removed);
            }
        }
        let identities = self.identities().await.into_iter().zip(&outcomes);
        let disks =
            identities.filter_map(|(identity, outcome)| identity.filter(|_| outcome.is_ok())).collect();
        let failure = outcomes.into_iter().find_map(Result::err).map(|failure| *failure);
        Ok(Reply::Removed { disks, failure })
    }

    /// Removes all stripes of files, and returns the outcome at each disk.
    async fn remove_some(&self, files: &[FileId]) -> Vec<Result<(), Box<Failure>>> {
        // Each name once, and in the order of the names, so that concurrent removals of several files cannot
        // deadlock.
        let names: BTreeMap<String, FileId> =
            files.iter().map(|&file| (number::object_name(file), file)).collect();
        let mut turns = Vec::new();
        for name in names.keys() {
            turns.push(self.turns.take(name.clone()).await);
        }
        let mut barred = Vec::new();
        for &file in names.values() {
            self.stored.removed.borrow_mut().note(file);
            barred.extend(self.stripes.of_file(file).into_iter().map(|stripe| stripe.bar_writes()));
        }
        let mut given_up = Vec::new();
        for stripe in &barred {
            given_up.push(self.blocks.give_up_all(stripe).await);
        }
        let names: Vec<String> = names.into_keys().collect();
        let mut outcomes = Vec::new();
        for disk in self.machine.disks() {
            outcomes.push(disk.remove_all(&names).await.map_err(Box::<Failure>::from));
        }
        for (stripe, given_up) in barred.iter().zip(&given_up) {
            match &outcomes[stripe.home.disk] {
                Err(failure) if self.may_be_there(stripe).await => {
                    self.blocks.lose_given_up(stripe, given_up, failure);
                }
                _ => self.forget_removed(stripe).await,
            }
        }
        outcomes
    }

    /// True if the object of a stripe may still exist after a removal that failed.
    async fn may_be_there(&self, stripe: &OpenStripe) -> bool {
        let opened = self.disks.of(stripe.home).open(&stripe.name).await;
        !matches!(found(opened), Ok(None))
    }

    /// Adds the stripes of a file on all disks to a list. A stripe that cannot be read is listed without
    /// index and length; a failed disk is skipped.
    pub(super) async fn add_stripes(&self, stripes: &mut Vec<ListedStripe>, name: &str, file: FileId) {
        for (index, disk) in self.machine.disks().iter().enumerate() {
            let stripe = match found(disk.open(name).await) {
                Ok(None) => continue,
                Ok(Some(object)) => {
                    let label = Label::decode(&object.label).ok().filter(|label| label.file == file);
                    let bytes = |label: Label| match self.stripes.get(file, label.stripe) {
                        Ok(open) if open.home.object == object.id => open.length.bytes(),
                        _ => object.bytes,
                    };
                    label.map(|label| (label.stripe, bytes(label)))
                }
                Err(_) if disk.space().await.is_err() => continue,
                Err(_) => None,
            };
            stripes.push(ListedStripe { file, disk: index as u32, stripe });
        }
    }

    /// Fails if a request names more stripes of a file than there are disks: no disk has two.
    pub(super) fn check_stripe_count(&self, stripes: usize) -> Result<(), Box<Failure>> {
        let disks = self.machine.disks().len();
        if stripes > disks {
            return Err(Failure::invalid(format!("{stripes} stripes of a file on {disks} disks")).into());
        }
        Ok(())
    }

    /// Fails for a file with blocks too large for the cache, since an I/O node can be restarted with other
    /// settings.
    pub(super) fn check_block_bytes(&self, name: &str, striping: Striping) -> Result<(), Box<Failure>> {
        let (bytes, most) = (striping.block_bytes(), self.settings.block_bytes_max);
        if bytes <= most {
            return Ok(());
        }
        let text = format!("{name} has blocks of {bytes} bytes, and the limit of this I/O node is {most}");
        Err(Failure::new(FailureKind::BlockTooLarge, text).into())
    }

    /// Closes a stripe whose object has been removed. Discards its data, including those of writes that had
    /// begun before they were barred.
    pub(super) async fn forget_removed(&self, stripe: &WriteExclusion) {
        self.stripes.remove(stripe);
        self.blocks.give_up_all(stripe).await;
    }

    /// Starts to close idle stripes, if many stripes are open.
    fn close_some(self: &Rc<Self>) {
        if self.stripes.count() < self.stored.closing.0.get() {
            return;
        }
        self.stored.closing.0.set(u64::MAX);
        let node = self.clone();
        self.machine.spawn("close stripes", async move {
            for stripe in node.stripes.least_recently_used(CLOSED) {
                let start = stripe.writers.flush_start();
                node.blocks.write_out(&stripe).await;
                // If a write failed, the writers are still to be notified. Otherwise the disk has all data,
                // and a flush opens the stripe again.
                if stripe.losses.is_empty() {
                    let unflushed = stripe.writers.forget(start);
                    node.stored.closed_unflushed.borrow_mut().extend(unflushed);
                }
            }
            node.stripes.close_idle(CLOSED);
            // Do not check the stripes in use again before the same number of others has been opened.
            node.stored.closing.0.set(OPEN_MANY.max(node.stripes.count() + CLOSED as u64));
            Ok(())
        });
    }
}

/// Fails if an open stripe has another label.
fn check_label(stripe: &OpenStripe, label: Label) -> Result<(), Box<Failure>> {
    if stripe.label == label {
        return Ok(());
    }
    Err(Failure::invalid(format!("{} is open, and not {label}", stripe.label)).into())
}
