//! The stripes an I/O node has open, and the operations on names and sizes.
//!
//! A stripe is an object on a disk under the file's name, pending as long as the file is unfinished; its label says
//! which file it belongs to and which stripe it is. Whatever is opened is judged by its label alone, so a stripe that
//! was swapped, copied from elsewhere or left over is noticed and named.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::rc::Rc;

use layout::Striping;
use machine::{Disk, InFlight, Machine, NodeId, Object, ObjectId, Operation, Stage};

use super::IoNode;
use super::account::Account;
use super::commit::{being_written, committed, found};
use super::losses::Losses;
use crate::cache::StripeKey;
use crate::error::{Failure, FailureKind};
use crate::name;
use crate::protocol::{Committed, FileId, FoundStripe, Label, Reply, StripePlace};

/// A stripe that requests can name.
pub(super) struct OpenStripe {
    pub(super) label: Label,
    /// The name under which it was made or opened.
    name: String,
    /// Which opening of a stripe it is.
    opening: u64,
    /// Index of the disk it lies on.
    pub(super) disk: usize,
    pub(super) object: ObjectId,
    /// Its length in bytes, with what is still in the cache.
    pub(super) bytes: Cell<u64>,
    /// Its length on the disk, as far as is known here.
    on_disk: Cell<u64>,
    /// Where the writes to the disk end that are under way.
    going: RefCell<Vec<u64>>,
    pub(super) losses: Losses,
    /// The size of the file that was noted when it was committed last.
    pub(super) committed: Cell<Option<u64>>,
    /// Writes to the disk that are queued or under way.
    pub(super) writes: InFlight,
    /// How many writes have been accepted.
    accepted: Cell<u64>,
    /// Who has written what is not known to be on the medium: the number of the last such write of each client.
    writers: RefCell<BTreeMap<NodeId, u64>>,
    /// For each of them, the first write-behind that failed since it was told.
    failures: RefCell<BTreeMap<NodeId, Box<Failure>>>,
    /// Operations in flight that let no new write begin.
    pub(super) bars: InFlight,
    /// Whether the file has been removed: what is written now, nobody would take to the disk.
    removed: Cell<bool>,
    /// When it was used last, as a number that grows.
    last_use: Cell<u64>,
}

/// A stripe on which no write begins until this is dropped. Those that have begun go on.
pub(super) struct Barred {
    stripe: Rc<OpenStripe>,
    _bar: Operation,
}

impl Deref for Barred {
    type Target = Rc<OpenStripe>;

    fn deref(&self) -> &Rc<OpenStripe> {
        &self.stripe
    }
}

impl OpenStripe {
    pub(super) fn file(&self) -> FileId {
        self.label.file
    }

    /// The name of the stripe in the cache.
    pub(super) fn key(&self) -> StripeKey {
        StripeKey { file: self.label.file, stripe: self.label.stripe, opening: self.opening }
    }

    pub(super) fn block_bytes(&self) -> u64 {
        self.label.striping.block_bytes()
    }

    /// Notes that the stripe reaches at least to `end`.
    pub(super) fn reach(&self, end: u64) {
        self.bytes.set(self.bytes.get().max(end));
    }

    /// Notes that the disk has been told that the stripe ends at `end`.
    pub(super) fn set_end(&self, end: u64) {
        // What was lost beyond the disk's end is zeros from now on, if it is there: somebody wants it so.
        self.losses.cut(end.min(self.on_disk.get()));
        self.on_disk.set(end);
        self.bytes.set(end);
    }

    /// Notes that a write to the disk begins that ends at `end`.
    pub(super) fn begin_write(&self, end: u64) {
        self.going.borrow_mut().push(end);
    }

    /// Notes that such a write is over, and whether the disk has taken it.
    pub(super) fn end_write(&self, end: u64, is_taken: bool) {
        let mut going = self.going.borrow_mut();
        let at = going.iter().position(|&other| other == end).expect("it has begun");
        going.swap_remove(at);
        if is_taken {
            self.on_disk.set(self.on_disk.get().max(end));
        }
    }

    /// Notes that writes that extended the stripe may be lost. The rest reaches to `dirty_end` in the cache.
    pub(super) fn fall_back(&self, dirty_end: u64) {
        let going = self.going.borrow().iter().copied().max().unwrap_or(0);
        self.bytes.set(self.on_disk.get().max(going).max(dirty_end));
    }

    /// Notes that a client has written.
    pub(super) fn note_writer(&self, client: NodeId) {
        self.accepted.set(self.accepted.get() + 1);
        self.writers.borrow_mut().insert(client, self.accepted.get());
    }

    /// Notes that a write-behind or a flush has failed. Whose data they were is not known: all who have written are
    /// told.
    pub(super) fn fail(&self, failure: &Failure) {
        let mut failures = self.failures.borrow_mut();
        for &client in self.writers.borrow().keys() {
            failures.entry(client).or_insert_with(|| failure.clone().into());
        }
    }

    /// Fails if a write-behind failed of which the client has not been told.
    pub(super) fn check(&self, client: NodeId) -> Result<(), Box<Failure>> {
        self.failures.borrow_mut().remove(&client).map_or(Ok(()), Err)
    }

    /// Fails if a write-behind failed of which anybody has not been told.
    fn check_all(&self) -> Result<(), Box<Failure>> {
        self.failures.borrow_mut().pop_first().map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// The writes up to this number are on the medium, or their clients have been told why not.
    fn forget_writers(&self, accepted: u64) {
        self.writers.borrow_mut().retain(|_, last| *last > accepted);
    }

    /// Lets no new write begin.
    pub(super) fn bar_writes(self: &Rc<Self>) -> Barred {
        Barred { stripe: self.clone(), _bar: self.bars.begin() }
    }

    /// Fails if the file has been removed.
    pub(super) fn check_not_removed(&self) -> Result<(), Box<Failure>> {
        if self.removed.get() { Err(not_open(self.file(), self.label.stripe)) } else { Ok(()) }
    }

    /// Whether nobody uses the stripe, and nothing would be forgotten with it.
    fn is_idle(self: &Rc<Self>) -> bool {
        Rc::strong_count(self) == 1
            && self.writes.is_empty()
            && self.writers.borrow().is_empty()
            && self.failures.borrow().is_empty()
            && self.losses.is_empty()
    }
}

pub(super) fn not_open(file: FileId, stripe: u32) -> Box<Failure> {
    Failure::new(FailureKind::NotOpen, format!("stripe {stripe} of file {:016x} is not open", file.0)).into()
}

/// Stripes by file and index.
#[derive(Default)]
pub(super) struct Stripes {
    open: RefCell<BTreeMap<(FileId, u32), Rc<OpenStripe>>>,
    /// How many there have been.
    openings: Cell<u64>,
    /// How often stripes have been used.
    uses: Cell<u64>,
}

/// Number of open stripes at which opening another evicts idle ones.
const OPEN_MAX: usize = 65_536;

/// Number of idle files evicted at a time, so that the search for them is rare.
const PUSHED_OUT: usize = OPEN_MAX / 8;

impl Stripes {
    pub(super) fn get(&self, file: FileId, stripe: u32) -> Result<Rc<OpenStripe>, Box<Failure>> {
        let open = self.open.borrow();
        let found = open.get(&(file, stripe)).ok_or_else(|| not_open(file, stripe))?;
        self.note_use(found);
        Ok(found.clone())
    }

    /// The stripe that the cache knows under this name, if it is still open.
    pub(super) fn find(&self, key: StripeKey) -> Option<Rc<OpenStripe>> {
        self.get(key.file, key.stripe).ok().filter(|stripe| stripe.key() == key)
    }

    /// The stripes of a file, in order: all that are here, or none if it is not open.
    pub(super) fn of_file(&self, file: FileId) -> Vec<Rc<OpenStripe>> {
        let range = (file, 0)..=(file, u32::MAX);
        let stripes: Vec<_> = self.open.borrow().range(range).map(|(_, stripe)| stripe.clone()).collect();
        for stripe in &stripes {
            self.note_use(stripe);
        }
        stripes
    }

    fn all(&self) -> Vec<Rc<OpenStripe>> {
        self.open.borrow().values().cloned().collect()
    }

    fn note_use(&self, stripe: &OpenStripe) {
        self.uses.set(self.uses.get() + 1);
        stripe.last_use.set(self.uses.get());
    }

    /// Makes the stripe known, unless it is already: what is in the cache belongs to that one.
    fn insert(
        &self,
        name: &str,
        label: Label,
        disk: usize,
        object: &Object,
        committed: Option<Committed>,
    ) -> Rc<OpenStripe> {
        let known = self.get(label.file, label.stripe).ok();
        if let Some(known) = known.filter(|known| known.disk == disk && known.object == object.id) {
            return known;
        }
        let mut open = self.open.borrow_mut();
        if open.len() >= OPEN_MAX {
            push_out(&mut open, PUSHED_OUT);
        }
        self.openings.set(self.openings.get() + 1);
        let stripe = Rc::new(OpenStripe {
            label,
            name: name.to_owned(),
            opening: self.openings.get(),
            disk,
            object: object.id,
            bytes: Cell::new(object.bytes),
            on_disk: Cell::new(object.bytes),
            going: RefCell::default(),
            losses: Losses::default(),
            committed: Cell::new(committed.map(|committed| committed.bytes)),
            writes: InFlight::new(),
            accepted: Cell::new(0),
            writers: RefCell::default(),
            failures: RefCell::default(),
            bars: InFlight::new(),
            removed: Cell::new(false),
            last_use: Cell::new(0),
        });
        self.note_use(&stripe);
        open.insert((label.file, label.stripe), stripe.clone());
        stripe
    }

    /// Forgets the stripe of a file that is no more.
    fn remove(&self, stripe: &OpenStripe) {
        stripe.removed.set(true);
        self.open.borrow_mut().remove(&(stripe.file(), stripe.label.stripe));
    }
}

/// Closes this number of idle files, least recently used first, with all of their stripes: if one stripe of a file
/// is open, all must be.
fn push_out(open: &mut BTreeMap<(FileId, u32), Rc<OpenStripe>>, files: usize) {
    let mut last_uses: BTreeMap<FileId, Option<u64>> = BTreeMap::new();
    for (&(file, _), stripe) in &*open {
        let last_use = stripe.is_idle().then(|| stripe.last_use.get());
        let of_file = last_uses.entry(file).or_insert(last_use);
        *of_file = of_file.zip(last_use).map(|(first, second)| first.max(second));
    }
    let mut idle: Vec<(u64, FileId)> =
        last_uses.into_iter().filter_map(|(file, last_use)| Some((last_use?, file))).collect();
    idle.sort_unstable();
    let leaving: BTreeSet<FileId> = idle.into_iter().take(files).map(|(_, file)| file).collect();
    open.retain(|(file, _), _| !leaving.contains(file));
}

/// Stripes to be made of a file.
pub(super) struct NewStripes<'a> {
    pub(super) name: &'a str,
    /// That of the first stripe; others differ in their index.
    pub(super) label: Label,
    pub(super) stripes: &'a [StripePlace],
}

impl<M: Machine> IoNode<M> {
    pub(super) async fn create(
        &self,
        asker: NodeId,
        account: &Account,
        new: NewStripes<'_>,
    ) -> Result<Reply, Box<Failure>> {
        let NewStripes { name, label, stripes } = new;
        name::check(name)?;
        let (asked, most) = (label.striping.block_bytes(), self.settings.block_bytes_max);
        if asked > most {
            return Err(Failure::invalid(format!("blocks of {asked} bytes; at most {most} here")).into());
        }
        self.check_identity(name, label.file).await?;
        let _turn = self.names.take(name.to_owned()).await;
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
                self.create_stripe(asker, name, Label { stripe: place.stripe, ..label }, place.disk);
            if let Err(failure) = outcome.await {
                for disk in made {
                    self.machine.disks()[disk as usize].remove(name, Stage::Pending).await?;
                }
                return Err(failure);
            }
            made.push(place.disk);
        }
        // Who has gone meanwhile writes nothing, and there is nobody to say so again.
        if !stripes.is_empty() && account.check().is_ok() {
            self.creators.note(label.file, asker);
        }
        Ok(Reply::Done)
    }

    async fn create_stripe(
        &self,
        asker: NodeId,
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
                if other.is_some_and(|other| self.creators.has_other(other.file, asker)) {
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
        let _turn = self.names.take(name.to_owned()).await;
        let (mut stripes, mut opened) = (Vec::new(), Vec::new());
        for index in 0..self.machine.disks().len() {
            for stage in Stage::ALL {
                let Some((object, label)) = self.find_stripe(name, index, stage).await? else { continue };
                self.check_block_bytes(name, label.striping)?;
                let committed = committed(name, index, &object)?;
                let stripe = self.make_known(name, label, index, &object, committed).await?;
                let bytes = stripe.as_ref().map_or(object.bytes, |stripe| stripe.bytes.get());
                let published = stage == Stage::Published;
                stripes.push(FoundStripe { disk: index as u32, label, bytes, published, committed });
                // In use until all are open, so that none is pushed out before.
                opened.push(stripe);
            }
        }
        Ok(Reply::Opened { stripes })
    }

    /// Fails if the identity is that of another file that is open, so that requests for one would go to the other.
    /// Identities are drawn at random: somebody has copied a file, or means harm.
    async fn check_identity(&self, name: &str, file: FileId) -> Result<(), Box<Failure>> {
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
        if let Some(other) = known.filter(|known| (known.disk, known.object) != (disk, object.id)) {
            if self.is_there(&other).await? {
                return Ok(None);
            }
            // Somebody has moved it while it was open. What was not on the disk yet has nowhere to go.
            self.cache.borrow_mut().give_up(other.key());
            self.stripes.remove(&other);
        }
        let stripe = self.stripes.insert(name, label, disk, object, committed);
        stripe.reach(object.bytes);
        Ok(Some(stripe))
    }

    /// Whether an open stripe is still what its disk has under its name.
    async fn is_there(&self, stripe: &OpenStripe) -> Result<bool, Box<Failure>> {
        for stage in Stage::ALL {
            let there = found(self.machine.disks()[stripe.disk].open(&stripe.name, stage).await)?;
            if there.is_some_and(|object| object.id == stripe.object) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Fails for a file whose blocks the cache was not made for: an I/O node can be started with other settings.
    fn check_block_bytes(&self, name: &str, striping: Striping) -> Result<(), Box<Failure>> {
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
        let _turn = self.names.take(name.to_owned()).await;
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
        if let Some(stripe) = &barred {
            self.give_up_blocks(stripe).await;
        }
        if object_too {
            disk.remove(name, stage).await?;
        }
        if let Some(stripe) = &barred {
            self.stripes.remove(stripe);
        }
        Ok(())
    }

    pub(super) async fn resize(
        self: &Rc<Self>,
        asker: NodeId,
        file: FileId,
        file_bytes: u64,
        stripes: &[(u32, u64)],
    ) -> Result<Reply, Box<Failure>> {
        // All of them before the first is changed.
        for &(index, bytes) in stripes {
            self.check_space(&*self.stripes.get(file, index)?, bytes).await?;
        }
        for &(index, bytes) in stripes {
            // Who writes from now on comes after.
            let stripe = self.stripes.get(file, index)?.bar_writes();
            self.write_out(&stripe).await;
            self.forget_blocks(&stripe, bytes / stripe.block_bytes()).await;
            stripe.check(asker)?;
            // First, so that the file is never shorter than is said.
            if stripe.committed.get().is_some_and(|committed| committed > file_bytes) {
                self.note_committed(&stripe, |before| before.map_or(0, |before| before.min(file_bytes)))
                    .await?;
            }
            self.machine.disks()[stripe.disk].resize(stripe.object, bytes).await?;
            stripe.set_end(bytes);
            // Who read ahead meanwhile has found what is cut off now.
            self.forget_blocks(&stripe, bytes / stripe.block_bytes()).await;
        }
        Ok(Reply::Done)
    }

    /// Brings everything accepted so far onto the media, whatever file it belongs to: as much of it as can be. Fails
    /// with the first failure in the end.
    pub(super) async fn write_out_all(self: &Rc<Self>) -> machine::Result<()> {
        let mut outcome = Ok(());
        for stripe in self.stripes.all() {
            self.write_out(&stripe).await;
            let flushed = self.flush_disk(&stripe).await;
            let written = stripe.check_all().and(flushed).map_err(|failure| {
                let (task, why) = (format!("writing out {}", stripe.label), failure.text);
                machine::Error::Failed { task, why }.into()
            });
            outcome = outcome.and(written);
        }
        outcome
    }

    pub(super) async fn flush(self: &Rc<Self>, asker: NodeId, file: FileId) -> Result<Reply, Box<Failure>> {
        let stripes = self.stripes.of_file(file);
        self.bring_to_media(asker, &stripes, async |stripe| self.flush_disk(stripe).await).await
    }

    /// Brings what was accepted of stripes onto the media: `settle` does the last step of it for each of them, when all
    /// has been given to its disk.
    pub(super) async fn bring_to_media(
        self: &Rc<Self>,
        asker: NodeId,
        stripes: &[Rc<OpenStripe>],
        settle: impl AsyncFn(&OpenStripe) -> Result<(), Box<Failure>>,
    ) -> Result<Reply, Box<Failure>> {
        let accepted: Vec<u64> = stripes.iter().map(|stripe| stripe.accepted.get()).collect();
        for stripe in stripes {
            self.start_writing_out(stripe).await;
        }
        for (stripe, accepted) in stripes.iter().zip(accepted) {
            stripe.writes.none().await;
            stripe.check(asker)?;
            let settled = settle(stripe).await;
            stripe.check(asker).and(settled)?;
            stripe.forget_writers(accepted);
        }
        Ok(self.accepted())
    }

    /// Brings what the disk of a stripe has been given of it onto the medium. A disk says only once that it could not,
    /// so the failure is kept for all who have written.
    pub(super) async fn flush_disk(&self, stripe: &OpenStripe) -> Result<(), Box<Failure>> {
        let flushed = self.machine.disks()[stripe.disk].flush(stripe.object).await;
        flushed.map_err(Box::<Failure>::from).inspect_err(|failure| stripe.fail(failure))
    }
}

pub(super) fn read_label(name: &str, disk: usize, label: &[u8]) -> Result<Label, Box<Failure>> {
    Label::decode(label).map_err(|why| {
        let text = format!("{name}: what lies on disk {disk} is no stripe of ours: {why}");
        Failure::new(FailureKind::Damaged, text).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(stripes: &Stripes, file: u64, stripe: u32) -> Rc<OpenStripe> {
        let striping = Striping::new(512, 2).expect("a striping");
        let label = Label { file: FileId(file), striping, stripe, begun: 0, replaces: None };
        let object = Object { id: ObjectId(file), label: Vec::new(), bytes: 0, note: Vec::new() };
        stripes.insert(&format!("file {file}"), label, stripe as usize, &object, None)
    }

    fn files_left(stripes: &Stripes, pushed_out: usize) -> Vec<u64> {
        push_out(&mut stripes.open.borrow_mut(), pushed_out);
        stripes.open.borrow().keys().map(|(file, _)| file.0).collect()
    }

    #[test]
    fn what_has_not_been_used_for_longest_is_pushed_out_with_all_its_stripes() {
        let stripes = Stripes::default();
        for file in [3, 1, 2] {
            open(&stripes, file, 0);
            open(&stripes, file, 1);
        }
        stripes.get(FileId(3), 1).expect("open");
        assert_eq!(files_left(&stripes, 1), [2, 2, 3, 3]);
        assert_eq!(files_left(&stripes, 1), [3, 3]);
    }

    #[test]
    fn a_file_with_a_stripe_in_use_or_with_something_to_flush_or_to_tell_stays() {
        let stripes = Stripes::default();
        for file in 1..=4 {
            open(&stripes, file, 0);
        }
        let (in_use, written) = (open(&stripes, 1, 1), open(&stripes, 2, 1));
        written.note_writer(NodeId(7));
        let failed = open(&stripes, 3, 1);
        failed.note_writer(NodeId(7));
        failed.fail(&Failure::invalid("a write that failed"));
        failed.forget_writers(1);
        drop((written, failed));
        assert_eq!(files_left(&stripes, 9), [1, 1, 2, 2, 3, 3]);
        drop(in_use);
        stripes.get(FileId(2), 1).expect("open").forget_writers(1);
        assert!(stripes.get(FileId(3), 1).expect("open").check(NodeId(7)).is_err());
        assert_eq!(files_left(&stripes, 9), [0; 0], "it has been flushed, told, and is not in use");
    }

    #[test]
    fn pushing_out_is_seldom() {
        let stripes = Stripes::default();
        for file in 0..OPEN_MAX as u64 {
            open(&stripes, file, 0);
        }
        open(&stripes, 0, 0);
        assert_eq!(stripes.open.borrow().len(), OPEN_MAX, "known already");
        open(&stripes, u64::MAX, 0);
        assert_eq!(stripes.open.borrow().len(), OPEN_MAX - PUSHED_OUT + 1);
    }
}
