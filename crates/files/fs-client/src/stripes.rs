//! Files: where their stripes are, and how they are opened when they are needed.
//!
//! Whoever opens such a file says what is to be known of it; nobody is asked. A stripe is *attached*, that is, opened
//! at its I/O node, when something of it is read or written first, and made only by a write: a file of a few bytes
//! touches one I/O node. Stripes that there are not read as zeros, and are looked for again when the file is refreshed.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use layout::{Extent, Striping, stripe_disks};
use machine::{Machine, NO_DISK, NodeId};
use serde::{Deserialize, Serialize};

use super::attachments::{Attachment, Attachments};
use super::file::run_of;
use super::{Client, File, Partial, Remains, unexpected};
use crate::endpoint::Answer;
use crate::error::{Error, FailureKind, Result};
use crate::number;
use crate::protocol::{FileId, Flushing, ListedStripe, REMOVED_MAX, Reply, Request, StripePlaces};
use crate::scrub_unit::UNIT_BYTES;

/// The name in the error for lost data of files that were closed so long ago that the client has forgotten which.
const FORGOTTEN: &str = "a file closed earlier";

/// Everything that is to be known of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedFile {
    /// Its number. It is never given to another file.
    pub number: FileId,
    /// Its striping.
    pub striping: Striping,
    /// The identity of the disk of each stripe; [`NO_DISK`] of one that is lost with a disk of which nothing is known.
    pub disks: Vec<u64>,
    /// Its size in bytes.
    pub bytes: u64,
    /// How many of its first stripes are known to have been made: if one of these is nowhere, that is an error. A later
    /// one that is nowhere reads as zeros.
    pub stored_stripes: u32,
}

/// Where disks are: the I/O node of each and its index there, by its identity.
pub type DisksByIdentity = BTreeMap<u64, (NodeId, u32)>;

impl<M: Machine> Client<M> {
    /// Where the disks of all I/O nodes are. They are asked once, and again if a disk is missing. A disk that fails is
    /// where it was before it failed; one that has failed since before this client knew it is left out.
    ///
    /// Fails if two of them have the same identity.
    pub async fn disks_by_identity(&self) -> Result<Rc<DisksByIdentity>> {
        let known = self.inner.disks_by_identity.borrow().clone();
        match known {
            Some(known) => Ok(known),
            None => self.ask_for_identities().await,
        }
    }

    async fn ask_for_identities(&self) -> Result<Rc<DisksByIdentity>> {
        let before = self.inner.disks_by_identity.borrow().clone().unwrap_or_default();
        let (mut disks, mut told) = (DisksByIdentity::new(), BTreeSet::new());
        for (node, identities) in self.described_disks().await {
            let identities = (0..).zip(identities.unwrap_or_default());
            for (disk, identity) in identities.filter_map(|(disk, identity)| Some((disk, identity?))) {
                told.insert((node, disk));
                if let Some((other, other_disk)) = disks.insert(identity, (node, disk)) {
                    let why = format!(
                        "disk {other_disk} of {other} and disk {disk} of {node} have the same identity, \
                         {identity:016x}: one directory is a copy of the other. Start agents with one of them only; \
                         to make the copy a disk of its own, empty it and remove .starfish.disk from it"
                    );
                    return Err(Error::Invalid(why).into());
                }
            }
        }
        for (&identity, place) in before.iter().filter(|(_, place)| !told.contains(place)) {
            disks.entry(identity).or_insert(*place);
        }
        let disks = Rc::new(disks);
        self.inner.disks_by_identity.replace(Some(disks.clone()));
        Ok(disks)
    }

    /// The identities of the disks of all I/O nodes, as each has them: none of a disk of which it cannot be read.
    pub(super) async fn described_disks(&self) -> Vec<(NodeId, Result<Vec<Option<u64>>>)> {
        let answers = self.ask_all(|_| Some(Request::DescribeDisks)).await;
        let described = |(node, answer): (NodeId, Result<(Reply, _)>)| match answer {
            Ok((Reply::DisksDescribed { identities }, _)) => (node, Ok(identities)),
            Ok(_) => (node, Err(unexpected(node))),
            Err(error) => (node, Err(error)),
        };
        answers.into_iter().map(described).collect()
    }

    /// Describes a new, empty file whose stripes are on the first disks in the order of [`stripe_disks`]. `number` must
    /// be unused. No stripe exists until the first write, or [`make_stripes`](File::make_stripes).
    ///
    /// Fails if there are fewer disks, or if the identity of one is unknown.
    pub async fn new_numbered(&self, number: FileId, striping: Striping) -> Result<NumberedFile> {
        let disks: Vec<u32> = (0..striping.stripe_count()).collect();
        self.new_numbered_on(number, striping.block_bytes(), &disks).await
    }

    /// Describes a new, empty file as [`new_numbered`](Self::new_numbered) does, with a stripe on each of `disks`, in
    /// blocks of `block_bytes` bytes. Disk *i* is the disk of stripe *i* of a file over all disks.
    ///
    /// Fails if a disk does not exist or appears twice.
    pub async fn new_numbered_on(
        &self,
        number: FileId,
        block_bytes: u64,
        disks: &[u32],
    ) -> Result<NumberedFile> {
        let striping = self.check_disks(&number::object_name(number), block_bytes, disks)?;
        let by_identity = self.disks_by_identity().await?;
        let identities: BTreeMap<(NodeId, u32), u64> =
            by_identity.iter().map(|(&identity, &place)| (place, identity)).collect();
        let places = stripe_disks(&self.inner.disks.borrow())?;
        let identity_of = |&disk: &u32| {
            let place = places[disk as usize];
            let node = self.io_nodes()[place.node as usize];
            let identity = identities.get(&(node, place.disk)).copied();
            identity.ok_or_else(|| Error::Invalid(format!("disk {} of {node} has no identity", place.disk)))
        };
        let disks = disks.iter().map(identity_of).collect::<std::result::Result<_, _>>()?;
        Ok(NumberedFile { number, striping, disks, bytes: 0, stored_stripes: 0 })
    }

    /// How a file lies on these disks. Fails if there is no such disk, or one is named twice.
    fn check_disks(&self, name: &str, block_bytes: u64, disks: &[u32]) -> Result<Striping> {
        let striping = Striping::new(block_bytes, disks.len() as u32)?;
        self.check_stripes(name, striping)?;
        for (stripe, &disk) in disks.iter().enumerate() {
            if disk >= self.disks() || disks[..stripe].contains(&disk) {
                let (all, why) = (self.disks(), format!("{name} cannot have a stripe on disk {disk}"));
                let text = format!("{why}: name disks of 0 to {}, each once", all - 1);
                return Err(Error::Invalid(text).into());
            }
        }
        Ok(striping)
    }

    /// Refuses more stripes than disks, and blocks larger than all I/O nodes can handle.
    pub(super) fn check_stripes(&self, name: &str, striping: Striping) -> Result<()> {
        let (stripes, disks) = (striping.stripe_count(), self.disks());
        if stripes > disks {
            let there = if disks == 1 { "is 1 disk".to_owned() } else { format!("are {disks} disks") };
            let why = format!("{name} cannot have {stripes} stripes: there {there}");
            return Err(Error::Invalid(why).into());
        }
        self.check_blocks(name, striping)
    }

    /// Refuses blocks larger than all I/O nodes can handle.
    pub(super) fn check_blocks(&self, name: &str, striping: Striping) -> Result<()> {
        let (block, most) = (striping.block_bytes(), self.block_bytes_max());
        if block > most {
            return Err(Error::BlockTooLarge { name: name.into(), bytes: block, most }.into());
        }
        Ok(())
    }

    /// Returns the size in bytes that the stripes of a file add up to, whichever client has written them.
    pub async fn stored_bytes(&self, file: &NumberedFile) -> Result<u64> {
        let stripes = self.numbered_stripes(file).await?;
        let bytes = |stripe| stripes.get(&stripe).copied().unwrap_or(0);
        let lengths: Vec<u64> = (0..file.striping.stripe_count()).map(bytes).collect();
        Ok(file.striping.file_bytes(&lengths)?)
    }

    /// Opens a file by its number. The I/O nodes are not asked for it before something is read or written; the first
    /// time, all of them are asked which disks they have. If none has the disk of a stripe, all else of the file can be
    /// used.
    ///
    /// Its handles should be clones of one: each other one learns by [`refresh`](File::refresh) only of stripes that
    /// this one has made.
    pub async fn numbered(&self, file: NumberedFile) -> Result<File<M>> {
        let NumberedFile { number, striping, disks, bytes, stored_stripes } = file;
        let name = number::object_name(number);
        if disks.len() != striping.stripe_count() as usize {
            let (disks, stripes) = (disks.len(), striping.stripe_count());
            return Err(Error::Invalid(format!("{name}: {disks} disks for {stripes} stripes")).into());
        }
        let (block, most) = (striping.block_bytes(), self.block_bytes_max());
        if block > most {
            return Err(Error::BlockTooLarge { name, bytes: block, most }.into());
        }
        let mut places = self.disks_by_identity().await?;
        if disks.iter().any(|identity| !places.contains_key(identity)) {
            // An agent may have been given another disk since.
            places = self.ask_for_identities().await?;
        }
        // Nobody is asked for a stripe whose disk is nowhere.
        let home = |identity: &u64| places.get(identity).map_or(self.io_nodes()[0], |(node, _)| *node);
        let homes = disks.iter().map(home).collect();
        let nowhere = (0..).zip(&disks).filter(|(_, identity)| !places.contains_key(identity));
        let nowhere = nowhere.map(|(stripe, _)| stripe).collect();
        let attachments = Attachments::new(disks, stored_stripes, nowhere, self.disconnects());
        Ok(File::new(self.clone(), number, striping, homes, bytes, attachments))
    }

    /// Brings all that this client has written onto the media, whatever files it is of and whether they are open
    /// still; but not what a page cache has not sent yet. If an I/O node is started anew after that, nothing of it is
    /// lost to whoever has such a file open. Reports losses of files that the client has forgotten.
    ///
    /// # Errors
    /// The first failure of an I/O node that answers, or else of one that does not, after all have done what they can.
    pub async fn flush_own(&self) -> Result<()> {
        let (unflushed, mut failures) = (&self.inner.unflushed, Vec::new());
        // What is accepted from now on, the request may miss.
        let (written, disconnects) = (unflushed.durability.last(), self.disconnects());
        // Noted as it comes: while others are waited for, a later run may answer something else.
        let heard = |node, answer: &Answer| {
            // Without a run, it has closed files that it has not flushed, or is never started anew.
            if let Ok((Reply::Accepted { run }, _)) = answer {
                unflushed.durability.hear(node, *run, disconnects);
                unflushed.durability.flushed(node, *run, written);
            }
        };
        for (node, answer) in self.ask_each(|_| Some(Request::Flush(Flushing::Own)), heard).await {
            let flushed = answer.and_then(|(reply, _)| run_of(node, &reply));
            failures.extend(flushed.err());
        }
        let lost = unflushed.settle().into_iter();
        failures.extend(lost.map(|node| Box::new(Error::WriteLost { name: FORGOTTEN.into(), node })));
        // Data that an I/O node has lost are worse than data of one that does not answer.
        failures.into_iter().min_by_key(|error| error.is_of_peer_gone()).map_or(Ok(()), Err)
    }

    /// Removes all stripes of these files, wherever they are; of some there may be none. Whoever has one of them open
    /// can write to it no more. Returns the disks from which they are gone, by their identities: nobody knows what lies
    /// on others.
    ///
    /// # Errors
    /// The first failure, when all I/O nodes have done what they can.
    pub async fn remove_numbered(&self, files: &[FileId]) -> Result<BTreeSet<u64>> {
        self.remove_numbered_partly(files).await.whole()
    }

    /// As [`remove_numbered`](Self::remove_numbered), from the disks that do not fail.
    pub(super) async fn remove_numbered_partly(&self, files: &[FileId]) -> Partial<BTreeSet<u64>> {
        files.iter().for_each(|&file| self.inner.unflushed.remove(file));
        let (mut reached, mut failures) = (None::<BTreeSet<u64>>, Vec::new());
        for files in files.chunks(REMOVED_MAX) {
            let request = Request::Remove { files: files.to_vec() };
            let mut here = BTreeSet::new();
            for (node, answer) in self.ask_all(|_| Some(request.clone())).await {
                match answer {
                    Ok((Reply::Removed { disks, failure }, _)) => {
                        here.extend(disks);
                        failures.extend(failure.map(|failure| Error::Remote { node, failure }));
                    }
                    Ok(_) => failures.push(*unexpected(node)),
                    Err(error) => failures.push(*error),
                }
            }
            // An I/O node may have been given another disk between two.
            reached = Some(reached.map_or_else(|| here.clone(), |before| &before & &here));
        }
        Partial { found: reached.unwrap_or_default(), failures }
    }

    /// Whether an I/O node remembers that a file of this number has been removed.
    ///
    /// # Errors
    /// If one of them does not answer.
    pub async fn is_remembered_as_removed(&self, file: FileId) -> Result<bool> {
        // How it is striped is of no matter, as none of its stripes is asked for.
        let striping = Striping::new(UNIT_BYTES, 1)?;
        let stripes = || StripePlaces { file, striping, places: Vec::new() };
        let mut is_removed = false;
        for (_, answer) in self.ask_all(|_| Some(Request::Attach { stripes: stripes(), create: false })).await
        {
            match answer {
                Err(error) if error.is_remote(FailureKind::Removed) => is_removed = true,
                answer => drop(answer?),
            }
        }
        Ok(is_removed)
    }

    /// All stripes of files, with the I/O node that has each; of each node sorted by file.
    ///
    /// # Errors
    /// If an I/O node or one of its disks fails.
    pub async fn list_numbered(&self) -> Result<Vec<(NodeId, ListedStripe)>> {
        self.list_numbered_partly().await.whole()
    }

    /// As [`list_numbered`](Self::list_numbered), without the stripes on parts that fail.
    pub async fn list_numbered_partly(&self) -> Partial<Vec<(NodeId, ListedStripe)>> {
        let mut stripes = self.list_numbered_and_marks().await;
        stripes.found.retain(|(_, stripe)| stripe.file != number::MARK);
        stripes
    }

    /// As [`list_numbered`](Self::list_numbered), with what marks disks as those of a namespace.
    pub(super) async fn list_numbered_and_marks(&self) -> Partial<Vec<(NodeId, ListedStripe)>> {
        let mut all = Partial::default();
        for &node in self.io_nodes() {
            if let Err(error) = self.list_numbered_at(node, &mut all.found).await {
                all.failures.push(*error);
            }
        }
        all
    }

    async fn list_numbered_at(&self, node: NodeId, all: &mut Vec<(NodeId, ListedStripe)>) -> Result<()> {
        let mut after = None;
        loop {
            let request = Request::ListStripes { after };
            let answer = self.inner.endpoint.call(node, request, machine::Payload::empty()).await?;
            let (Reply::StripesListed { stripes, more, failure }, _) = answer else {
                return Err(unexpected(node));
            };
            let last = stripes.last().map(|stripe| stripe.file);
            all.extend(stripes.into_iter().map(|stripe| (node, stripe)));
            match (last.filter(|last| more && Some(*last) > after), failure) {
                (Some(last), _) => after = Some(last),
                // None whose stripes have all gone meanwhile ends the list too early: it is asked for again.
                (None, _) if more => return Err(unexpected(node)),
                (None, Some(failure)) => return Err(Error::Remote { node, failure }.into()),
                (None, None) => return Ok(()),
            }
        }
    }

    /// Which stripes of a file there are on the disks of the I/O nodes, and how long each is in bytes.
    pub async fn numbered_stripes(&self, file: &NumberedFile) -> Result<BTreeMap<u32, u64>> {
        let opened = self.numbered(file.clone()).await?;
        let all = (0..file.striping.stripe_count()).filter(|&stripe| !opened.is_nowhere(stripe)).collect();
        let answers = opened.ask_numbered(&all, |stripes| Request::Attach { stripes, create: false }).await;
        let mut found = BTreeMap::new();
        for (node, answer) in answers {
            match answer? {
                (Reply::Attached { stripes }, _) => found.extend(stripes),
                _ => return Err(unexpected(node)),
            }
        }
        Ok(found)
    }

    /// What the stripe of a file on a disk of an I/O node says of itself: how the file is striped, and which one it is.
    pub async fn numbered_label(&self, node: NodeId, disk: u32, file: FileId) -> Result<(Striping, u32)> {
        let label = self.scrub(node, disk, file, 0, 0).await?.label;
        Ok((label.striping, label.stripe))
    }
}

impl<M: Machine> File<M> {
    /// Opens the stripes that an extent touches; makes those that there are not if it is to be written.
    pub(super) async fn attach_extent(&self, extent: Extent, create: bool) -> Result<()> {
        self.attach(self.stripes_of(extent), create).await
    }

    /// The stripes that an extent touches, each once.
    pub(super) fn stripes_of(&self, extent: Extent) -> impl Iterator<Item = u32> + use<M> {
        // Consecutive blocks lie on consecutive stripes.
        let striping = self.striping();
        striping.requests(extent).take(striping.stripe_count() as usize).map(|block| block.stripe)
    }

    /// Opens all stripes of a file at their I/O nodes, and makes the missing ones: later reads and writes
    /// through this handle and its clones spend no request on that.
    pub async fn make_stripes(&self) -> Result<()> {
        self.attach_all(true).await
    }

    /// Opens all stripes of a file at their I/O nodes, as [`make_stripes`](Self::make_stripes) does, but makes
    /// none: missing ones read as zeros.
    pub async fn open_stripes(&self) -> Result<()> {
        self.attach_all(false).await
    }

    /// Opens all stripes, and makes those that there are not if `create` says so.
    pub(super) async fn attach_all(&self, create: bool) -> Result<()> {
        self.attach(0..self.striping().stripe_count(), create).await
    }

    /// Opens stripes, unless they are known to be open or absent; makes those that there are not if `create` says so.
    /// Fails if one is nowhere that had been made. Does nothing with a file that has a name.
    pub(super) async fn attach(&self, stripes: impl Iterator<Item = u32>, create: bool) -> Result<()> {
        let attachments = self.attachments();
        let mut wanted = stripes.filter(|&stripe| attachments.is_wanted(stripe, create)).peekable();
        if wanted.peek().is_none() {
            return Ok(());
        }
        let (stored, new): (BTreeSet<u32>, BTreeSet<u32>) =
            wanted.partition(|&stripe| attachments.is_stored(stripe));
        // What was made once is not made anew: it would be empty.
        self.attach_unknown(stored.clone(), false).await?;
        self.attach_unknown(new, create).await?;
        match stored.into_iter().find(|&stripe| !attachments.is_attached(stripe)) {
            None => Ok(()),
            Some(index) => {
                let (name, count) = (self.name().to_owned(), self.striping().stripe_count());
                Err(Error::MissingStripe { name, index, count }.into())
            }
        }
    }

    /// Opens stripes, unless they are known to be open or absent; makes those that there are not if `create` says so.
    async fn attach_unknown(&self, mut wanted: BTreeSet<u32>, create: bool) -> Result<()> {
        let attachments = self.attachments();
        let is_wanted = |stripe: &u32| attachments.is_wanted(*stripe, create);
        wanted.retain(is_wanted);
        if wanted.is_empty() {
            return Ok(());
        }
        self.check_places(&wanted)?;
        let _turn = attachments.asking.take().await;
        // Somebody may have asked for them meanwhile.
        wanted.retain(is_wanted);
        let answers = self.ask_numbered(&wanted, |stripes| Request::Attach { stripes, create }).await;
        let mut outcome = Ok(());
        for (node, answer) in answers {
            match answer {
                Ok((Reply::Attached { stripes }, _)) => {
                    let attached: BTreeSet<u32> = stripes.into_iter().map(|(stripe, _)| stripe).collect();
                    for &stripe in wanted.iter().filter(|&&stripe| self.home_of(stripe) == node) {
                        let is_there = attached.contains(&stripe);
                        match is_there {
                            true if create => attachments.set_made(stripe),
                            true => attachments.set(stripe, Attachment::Attached),
                            // It is asked for again, by whoever wants it.
                            false if attachments.is_stored(stripe) => {
                                attachments.set(stripe, Attachment::Unknown);
                            }
                            false => attachments.set(stripe, Attachment::Absent),
                        }
                        if create && !is_there {
                            outcome = Err(unexpected(node));
                        }
                    }
                }
                Ok(_) => outcome = Err(unexpected(node)),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    /// Fails if none of the I/O nodes has the disk of one of these stripes.
    fn check_places(&self, stripes: &BTreeSet<u32>) -> Result<()> {
        let attachments = self.attachments();
        match stripes.iter().find(|&&stripe| attachments.is_nowhere(stripe)) {
            None => Ok(()),
            Some(&index) if attachments.disks[index as usize] == NO_DISK => {
                let (name, count) = (self.name().to_owned(), self.striping().stripe_count());
                Err(Error::MissingStripe { name, index, count }.into())
            }
            Some(&stripe) => {
                let (name, identity) = (self.name().to_owned(), attachments.disks[stripe as usize]);
                Err(Error::UnknownDisk { name, identity }.into())
            }
        }
    }

    /// Asks the I/O nodes of stripes of a file, each about its own.
    async fn ask_numbered(
        &self,
        stripes: &BTreeSet<u32>,
        request: impl Fn(StripePlaces) -> Request,
    ) -> Vec<(NodeId, Answer)> {
        self.client.ask_all(|index| self.of_node(self.client.io_nodes()[index], stripes).map(&request)).await
    }

    /// Those of the stripes that a node has, if it has any.
    fn of_node(&self, node: NodeId, stripes: &BTreeSet<u32>) -> Option<StripePlaces> {
        let attachments = self.attachments();
        let here = stripes.iter().filter(|&&stripe| self.home_of(stripe) == node);
        let places: Vec<(u32, u64)> =
            here.map(|&stripe| (stripe, attachments.disks[stripe as usize])).collect();
        let (file, striping) = (self.id(), self.striping());
        (!places.is_empty()).then_some(StripePlaces { file, striping, places })
    }

    /// Brings what was written to a file onto the media; the first time, and after others have changed
    /// it, also what was there before. All stripes, whoever has written to them, if `all` says so.
    pub(super) async fn flush_of(&self, all: bool) -> Result<()> {
        let _span = self.notes().span("flush", || [("file", self.id().0)]);
        let attachments = self.attachments();
        let (written, changes) = (self.writes().stripes(), attachments.changes());
        // Another handle may know of more.
        let mut stripes = written.clone();
        stripes.retain(|&stripe| stripe < self.striping().stripe_count());
        if all {
            // What others have written to one that is nowhere is on a disk that they reach.
            let count = self.striping().stripe_count();
            stripes.extend((0..count).filter(|&stripe| !attachments.is_nowhere(stripe)));
        } else if !attachments.is_old_flushed() {
            stripes.extend(self.stripes_of(Extent::new(0, self.bytes())));
        }
        let request = |node| self.of_node(node, &stripes).map(|here| Request::Flush(Flushing::Stripes(here)));
        let flushed = match self.check_places(&stripes) {
            Ok(()) => self.bring_to_media(&stripes, request).await,
            unknown => unknown,
        };
        if flushed.is_ok() {
            attachments.note_flushed(changes);
            attachments.note_written_flushed(&written);
        }
        flushed
    }

    /// Cuts or extends the stripes that there are of a file.
    pub(super) async fn resize_stripes(&self, bytes: u64) -> Result<()> {
        let attachments = self.attachments();
        self.once_more(async || {
            // One that is lost has nothing to be cut.
            self.attach_unknown((0..self.striping().stripe_count()).collect(), false).await?;
            let attached: Vec<u32> = (0..self.striping().stripe_count())
                .filter(|&stripe| attachments.is_attached(stripe))
                .collect();
            let at =
                |node: NodeId| attached.iter().copied().filter(move |&stripe| self.home_of(stripe) == node);
            let length = |stripe| (stripe, self.striping().stripe_bytes(bytes, stripe));
            let request = |node: NodeId| {
                let stripes: Vec<(u32, u64)> = at(node).map(length).collect();
                (!stripes.is_empty()).then_some(Request::Resize { file: self.id(), stripes })
            };
            let (disconnects, mut outcome) = (self.client.disconnects(), Ok(()));
            for (node, run) in self.runs_of_homes(request).await {
                match run {
                    // A flush has to reach stripes behind the new end, too: what was cut off them would come back with
                    // a crash.
                    Ok(run) => self.note_accepted(node, run, disconnects, &attached),
                    Err(error) => outcome = outcome.and(Err(error)),
                }
            }
            outcome
        })
        .await?;
        if bytes == 0 {
            attachments.hear_stored(0, true);
        }
        Ok(())
    }

    /// Fails if an I/O node that may have stripes of the file does not answer, or this `other` one.
    pub(super) async fn check_answers(&self, other: NodeId) -> Result<()> {
        let stripes = (0..self.striping().stripe_count()).filter(|&stripe| !self.is_nowhere(stripe));
        let mut asked: BTreeSet<NodeId> = stripes.map(|stripe| self.home_of(stripe)).collect();
        asked.insert(other);
        self.once_more(async || {
            let request = |index| asked.contains(&self.client.io_nodes()[index]).then_some(Request::Describe);
            let answers = self.client.ask_all(request).await;
            answers.into_iter().try_for_each(|(_, answer)| answer.map(drop))
        })
        .await
    }

    /// How many of the first stripes of a file are known to have been made. If an I/O node was gone
    /// since that was last asked, those that others do not know of are looked for again.
    pub(super) async fn stored_stripes(&self) -> u32 {
        let attachments = self.attachments();
        if attachments.forget_doubtful(self.client.disconnects()) {
            // What an I/O node has that does not answer does not count yet.
            let _ = self.look_for_stored(self.bytes()).await;
        }
        attachments.stored()
    }

    /// Takes in how many of the first stripes of a file others know to have been made. If it is empty,
    /// none that is nowhere is lost but these.
    pub(super) fn hear_stored_stripes(&self, stored: u32, is_empty: bool) {
        self.attachments().hear_stored(stored, is_empty);
    }

    /// Asks for those stripes of what is written up to `end` of which it is not known whether others have made them.
    pub(super) async fn look_for_stored(&self, end: u64) -> Result<()> {
        self.attach_unknown(self.stripes_of(Extent::new(0, end)).collect(), false).await
    }

    /// What can be read of a file of which stripes are damaged. Those that there are not read as zeros.
    pub fn remains(&self) -> Remains<M> {
        Remains::of(self.clone())
    }

    /// Takes in the size that a file has by what others say. What was written here beyond it, and is not
    /// counted there yet, stays.
    pub fn set_bytes(&self, bytes: u64) {
        self.hear_bytes(bytes);
    }

    /// Notes that others have changed a file, and may not have brought that onto the media.
    pub(super) fn note_changed_by_others(&self) {
        self.attachments().note_changed();
    }

    /// Notes that others count what was written here to a file, if that ends at `end` at most.
    pub fn note_counted(&self, end: u64) {
        self.note_committed(end);
    }

    /// Where what was written here to a file ends that others do not [count](Self::note_counted) yet; 0
    /// if there is nothing of it.
    pub fn uncounted_end(&self) -> u64 {
        self.own_end()
    }
}
