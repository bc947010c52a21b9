//! Files: the places of their stripes, and how stripes are opened when needed.
//!
//! The caller that opens a file supplies its metadata; opening sends no request. A stripe is *attached*, that is,
//! opened at its I/O node, at the first read or write of its data, and created only by a write. So a file of a few
//! bytes touches one I/O node. Missing stripes read as zeros, and are looked up again when the file is refreshed.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use layout::{Extent, Striping, stripe_disks};
use machine::{Duration, Machine, NO_DISK, NodeId};
use serde::{Deserialize, Serialize};

use super::attached_stripes::{Attachment, Attachments};
use super::file::{FlushScope, joint_outcome, run_of};
use super::{Client, DamagedFileReader, File, Partial, unexpected};
use crate::Features;
use crate::endpoint::Answer;
use crate::error::{Error, FailureKind, Result};
use crate::number;
use crate::protocol::{FileId, Flushing, ListedStripe, REMOVED_MAX, Reply, Request, StripePlaces};
use crate::scrub_unit::UNIT_BYTES;

/// The name of the file in an error that a flush of all files reports for the losses on an I/O node.
const SOME_FILE: &str = "a file written earlier";

/// Minimum time between two queries for missing disks.
const ASKED_AGAIN: Duration = Duration::from_millis(500);

/// Metadata of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedFile {
    /// The file's number. Numbers are never reused.
    pub number: FileId,
    /// The file's striping.
    pub striping: Striping,
    /// Identity of the disk of each stripe; [`NO_DISK`] for a stripe lost with an unknown disk.
    pub disks: Vec<u64>,
    /// The file's size in bytes.
    pub bytes: u64,
    /// Length of the prefix of stripes known to have been created. A missing disk is an error for a stripe of this
    /// prefix; a later stripe on a missing disk reads as zeros.
    pub stored_stripes: u32,
}

/// The I/O node and disk index of each disk, by the disk's identity.
pub type DisksByIdentity = BTreeMap<u64, (NodeId, u32)>;

impl<M: Machine> Client<M> {
    /// Returns the places of the disks of all I/O nodes. The client asks once, and again if a disk is missing. A failed
    /// disk keeps its place; a disk that failed before this client knew it is left out.
    ///
    /// # Errors
    /// Fails if two disks have the same identity.
    pub async fn disks_by_identity(&self) -> Result<Rc<DisksByIdentity>> {
        let known = self.inner.disks_by_identity.borrow().clone();
        match known {
            Some(known) => Ok(known),
            None => self.ask_for_identities().await,
        }
    }

    /// Asks for the identities of the disks, unless the last answers are recent: operations on a file with a missing
    /// disk would ask each time.
    async fn ask_again_for_identities(&self) -> Result<Rc<DisksByIdentity>> {
        let (asked, now) = (self.inner.asked_for_disks.get(), self.inner.endpoint.machine().now());
        match asked.is_some_and(|asked| now.since(asked) < ASKED_AGAIN) {
            true => self.disks_by_identity().await,
            false => self.ask_for_identities().await,
        }
    }

    async fn ask_for_identities(&self) -> Result<Rc<DisksByIdentity>> {
        self.inner.asked_for_disks.set(Some(self.inner.endpoint.machine().now()));
        let before = self.inner.disks_by_identity.borrow().clone().unwrap_or_default();
        let (mut disks, mut seen) = (DisksByIdentity::new(), BTreeSet::new());
        for (node, identities) in self.described_disks().await {
            let identities = (0..).zip(identities.unwrap_or_default());
            for (disk, identity) in identities.filter_map(|(disk, identity)| Some((disk, identity?))) {
                seen.insert((node, disk));
                if let Some((other, other_disk)) = disks.insert(identity, (node, disk)) {
                    let why = format!(
                        "disk {other_disk} of {other} and disk {disk} of {node} have the same identity, \
                         {identity:016x}: one directory is a copy of the other. Start agents with only one \
                         of them. To make the copy a separate disk, empty it and remove .starfish.disk from \
                         it"
                    );
                    return Err(Error::Invalid(why).into());
                }
            }
        }
        for (&identity, place) in before.iter().filter(|(_, place)| !seen.contains(place)) {
            machine::sometimes!("a disk keeps its place because its I/O node is silent", if !disks.contains_key(&identity));
            disks.entry(identity).or_insert(*place);
        }
        let disks = Rc::new(disks);
        self.inner.disks_by_identity.replace(Some(disks.clone()));
        Ok(disks)
    }

    /// Returns the identities of the disks of all I/O nodes, as each node reports them; `None` for a disk whose
    /// identity cannot be read.
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
    /// # Errors
    /// Fails if there are fewer disks than stripes, or if the identity of a disk is unknown.
    pub async fn new_numbered(&self, number: FileId, striping: Striping) -> Result<NumberedFile> {
        let disks: Vec<u32> = (0..striping.stripe_count()).collect();
        self.new_numbered_on(number, striping.block_bytes(), &disks).await
    }

    /// Describes a new, empty file as [`new_numbered`](Self::new_numbered) does, with a stripe on each of `disks`, in
    /// blocks of `block_bytes` bytes. Disk *i* is the disk of stripe *i* of a file over all disks.
    ///
    /// # Errors
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

    /// Returns the striping of a file over these disks. Fails if a disk does not exist or appears twice.
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

    /// Fails if there are more stripes than disks, or if the blocks are too large for some I/O node.
    pub(super) fn check_stripes(&self, name: &str, striping: Striping) -> Result<()> {
        let (stripes, disks) = (striping.stripe_count(), self.disks());
        if stripes > disks {
            let there = if disks == 1 { "is 1 disk".to_owned() } else { format!("are {disks} disks") };
            let why = format!("{name} cannot have {stripes} stripes: there {there}");
            return Err(Error::Invalid(why).into());
        }
        self.check_blocks(name, striping)
    }

    /// Fails if the blocks are too large for some I/O node.
    pub(super) fn check_blocks(&self, name: &str, striping: Striping) -> Result<()> {
        let (block, most) = (striping.block_bytes(), self.block_bytes_max());
        if block > most {
            return Err(Error::BlockTooLarge { name: name.into(), bytes: block, most }.into());
        }
        Ok(())
    }

    /// Returns the size in bytes that follows from the stripes of a file, whichever clients have written them.
    pub async fn stored_bytes(&self, file: &NumberedFile) -> Result<u64> {
        let stripes = self.numbered_stripes(file).await?;
        let bytes = |stripe| stripes.get(&stripe).copied().unwrap_or(0);
        let lengths: Vec<u64> = (0..file.striping.stripe_count()).map(bytes).collect();
        Ok(file.striping.file_bytes(&lengths)?)
    }

    /// Opens a file by its number. The client contacts the I/O nodes of the file only at the first read or write; the
    /// first open asks all I/O nodes for the identities of their disks. If none has the disk of a stripe, the rest of
    /// the file is usable.
    ///
    /// All handles should be clones of one: a separate handle sees stripes that this one created only after
    /// [`refresh`](File::refresh).
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
        // Any node will do: the client sends no requests for a stripe whose disk is missing.
        let home = |identity: &u64| places.get(identity).map_or(self.io_nodes()[0], |(node, _)| *node);
        let homes = disks.iter().map(home).collect();
        let nowhere = (0..).zip(&disks).filter(|(_, identity)| !places.contains_key(identity));
        let nowhere = nowhere.map(|(stripe, _)| stripe).collect();
        let attachments = Attachments::new(disks, stored_stripes, nowhere, self.disconnects());
        Ok(File::new(self.clone(), number, striping, homes, bytes, attachments))
    }

    /// Flushes all writes of this client to stable storage, for open and closed files alike, except pages that a page
    /// cache has not sent yet. A later restart of an I/O node loses none of these writes for clients that have the
    /// files open. Reports each loss once; a flush of its file still reports it.
    ///
    /// # Errors
    /// Fails after all I/O nodes are done: with the first failure of a node that answers, or else with the first
    /// failure of an unreachable node.
    pub async fn flush_own(&self) -> Result<()> {
        let (unflushed, mut failures) = (&self.inner.unflushed, Vec::new());
        // Take the stamp before the request: it may miss writes accepted later.
        let written = unflushed.durability.last();
        // Record each answer as it arrives: during the wait for other nodes, a later incarnation may answer another
        // request.
        let on_answer = |node, disconnects, answer: &Answer| {
            // A reply without an incarnation is from a node that has closed unflushed files, or that never restarts.
            if let Ok((Reply::Accepted { run }, _)) = answer {
                unflushed.durability.note_incarnation(node, *run, disconnects);
                unflushed.durability.flushed(node, *run, written);
            }
        };
        for (node, answer) in self.ask_each(|_| Some(Request::Flush(Flushing::Own)), on_answer).await {
            let flushed = answer.and_then(|(reply, _)| run_of(node, &reply));
            failures.extend(flushed.err());
        }
        let lost = unflushed.settle().into_iter();
        machine::sometimes!("a sync of all files reports lost writes", if lost.len() > 0);
        failures.extend(lost.map(|node| Box::new(Error::WriteLost { name: SOME_FILE.into(), node })));
        // Report data loss in preference to an unreachable node: loss is worse.
        failures.into_iter().min_by_key(|error| error.is_disconnect()).map_or(Ok(()), Err)
    }

    /// Removes all stripes of these files from all I/O nodes; files without stripes are allowed. Clients with such a
    /// file open can no longer write to it. Returns the identities of the disks from which the stripes were removed;
    /// the contents of other disks are unknown.
    ///
    /// # Errors
    /// Fails with the first failure after all I/O nodes are done.
    pub async fn remove_numbered(&self, files: &[FileId]) -> Result<BTreeSet<u64>> {
        self.remove_numbered_partly(files).await.whole()
    }

    /// Removes files as [`remove_numbered`](Self::remove_numbered) does, from the disks that do not fail.
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
            // Keep only disks that every request reached: an I/O node may have been given another disk between two
            // requests.
            reached = Some(reached.map_or_else(|| here.clone(), |before| &before & &here));
        }
        Partial { found: reached.unwrap_or_default(), failures }
    }

    /// Returns true if an I/O node remembers the removal of a file with this number.
    ///
    /// # Errors
    /// Fails if an I/O node does not answer.
    pub async fn is_remembered_as_removed(&self, file: FileId) -> Result<bool> {
        // Any striping will do, because the request names no stripes.
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

    /// Returns all stripes of files with their I/O nodes, sorted by file within each node.
    ///
    /// # Errors
    /// Fails if an I/O node or one of its disks fails.
    pub async fn list_numbered(&self) -> Result<Vec<(NodeId, ListedStripe)>> {
        self.list_numbered_partly().await.whole()
    }

    /// Lists stripes as [`list_numbered`](Self::list_numbered) does, without those on failed I/O nodes and disks.
    pub async fn list_numbered_partly(&self) -> Partial<Vec<(NodeId, ListedStripe)>> {
        let mut stripes = self.list_numbered_and_marks().await;
        stripes.found.retain(|(_, stripe)| stripe.file != number::MARK);
        stripes
    }

    /// Lists stripes as [`list_numbered`](Self::list_numbered) does, including the marks of disks that belong to a
    /// namespace.
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
                // A correct node sends no empty page with `more`: if all stripes of a page have been removed, it reads
                // on.
                (None, _) if more => return Err(unexpected(node)),
                (None, Some(failure)) => return Err(Error::Remote { node, failure }.into()),
                (None, None) => return Ok(()),
            }
        }
    }

    /// Returns the existing stripes of a file on the disks of the I/O nodes, with the length of each in bytes.
    pub async fn numbered_stripes(&self, file: &NumberedFile) -> Result<BTreeMap<u32, u64>> {
        let opened = self.numbered(file.clone()).await?;
        let all = (0..file.striping.stripe_count()).filter(|&stripe| !opened.has_no_disk(stripe)).collect();
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

    /// Returns the label of a file's stripe on a disk of an I/O node: the file's striping and the stripe's index.
    pub async fn numbered_label(&self, node: NodeId, disk: u32, file: FileId) -> Result<(Striping, u32)> {
        let label = self.scrub(node, disk, file, 0, 0).await?.label;
        Ok((label.striping, label.stripe))
    }
}

impl<M: Machine> File<M> {
    /// Opens the stripes that an extent touches; creates missing ones with `create`.
    pub(super) async fn attach_extent(&self, extent: Extent, create: bool) -> Result<()> {
        self.attach(self.stripes_of(extent), create).await
    }

    /// Returns the stripes that an extent touches, each once.
    pub(super) fn stripes_of(&self, extent: Extent) -> impl Iterator<Item = u32> + Clone + use<M> {
        // Consecutive blocks lie on consecutive stripes.
        let striping = self.striping();
        striping.requests(extent).take(striping.stripe_count() as usize).map(|block| block.stripe)
    }

    /// Opens all stripes of a file at their I/O nodes, and creates the missing ones. Later reads and writes through
    /// this handle and its clones then need no extra requests.
    pub async fn make_stripes(&self) -> Result<()> {
        self.attach_all(true).await
    }

    /// Opens all stripes of a file at their I/O nodes, as [`make_stripes`](Self::make_stripes) does, but creates none:
    /// missing ones read as zeros.
    pub async fn open_stripes(&self) -> Result<()> {
        self.attach_all(false).await
    }

    /// Opens all stripes; creates missing ones with `create`.
    pub(super) async fn attach_all(&self, create: bool) -> Result<()> {
        self.attach(0..self.striping().stripe_count(), create).await
    }

    /// Opens stripes, unless they are known to be open or absent; creates missing ones with `create`. Fails if a stripe
    /// that had been created is missing.
    pub(super) async fn attach(
        &self,
        stripes: impl Iterator<Item = u32> + Clone,
        create: bool,
    ) -> Result<()> {
        let attachments = self.attachments();
        // Check again after the queries: another task may have reset stripes to unknown during the wait.
        loop {
            let mut wanted =
                stripes.clone().filter(|&stripe| attachments.is_wanted(stripe, create)).peekable();
            if wanted.peek().is_none() {
                return Ok(());
            }
            let (stored, new): (BTreeSet<u32>, BTreeSet<u32>) =
                wanted.partition(|&stripe| attachments.is_stored(stripe));
            // Never create a stripe again that was created once: it would be empty.
            let missing = self.attach_unknown(stored, false).await?;
            self.attach_unknown(new, create).await?;
            if let Some(index) = missing.into_iter().next() {
                let (name, count) = (self.name().to_owned(), self.striping().stripe_count());
                return Err(Error::MissingStripe { name, index, count }.into());
            }
        }
    }

    /// Opens stripes, unless they are known to be open or absent; creates missing ones with `create`. Returns the lost
    /// ones: they had been created and are missing.
    async fn attach_unknown(&self, mut wanted: BTreeSet<u32>, create: bool) -> Result<BTreeSet<u32>> {
        let (attachments, mut missing) = (self.attachments(), BTreeSet::new());
        let is_wanted = |stripe: &u32| attachments.is_wanted(*stripe, create);
        wanted.retain(is_wanted);
        if wanted.is_empty() {
            return Ok(missing);
        }
        self.find_disks(&wanted).await?;
        let _turn = attachments.asking.take().await;
        // Another task may have opened them during the wait.
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
                            // A concurrent write has created it after the I/O node answered this query.
                            false if attachments.is_attached(stripe) => {
                                machine::sometimes!("a stripe is created while an answer reports it missing");
                            }
                            // The next access looks for it again.
                            false if attachments.is_stored(stripe) => {
                                machine::sometimes!("a stored stripe is missing");
                                attachments.set(stripe, Attachment::Unknown);
                                missing.insert(stripe);
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
        outcome.map(|()| missing)
    }

    /// Fails if none of the I/O nodes has the disk of one of these stripes. Asks for disks that no node had: their node
    /// may not have answered when the file was opened.
    async fn find_disks(&self, stripes: &BTreeSet<u32>) -> Result<()> {
        let attachments = self.attachments();
        let missing = || stripes.iter().copied().filter(|&stripe| attachments.has_no_disk(stripe));
        if missing().any(|stripe| attachments.disks[stripe as usize] != NO_DISK) {
            let places = self.client.ask_again_for_identities().await?;
            for stripe in missing().collect::<Vec<_>>() {
                if let Some(&(node, _)) = places.get(&attachments.disks[stripe as usize]) {
                    self.set_home(stripe, node);
                }
            }
        }
        match stripes.iter().find(|&&stripe| attachments.has_no_disk(stripe)) {
            None => Ok(()),
            Some(&index) if attachments.disks[index as usize] == NO_DISK => {
                let (name, count) = (self.name().to_owned(), self.striping().stripe_count());
                Err(Error::MissingStripe { name, index, count }.into())
            }
            Some(&stripe) => {
                machine::sometimes!("an access needs a disk that was unknown at the open");
                let (name, identity) = (self.name().to_owned(), attachments.disks[stripe as usize]);
                Err(Error::UnknownDisk { name, identity }.into())
            }
        }
    }

    /// Sends requests to the I/O nodes of stripes of a file, each with its own stripes.
    async fn ask_numbered(
        &self,
        stripes: &BTreeSet<u32>,
        request: impl Fn(StripePlaces) -> Request,
    ) -> Vec<(NodeId, Answer)> {
        self.client.ask_all(|index| self.of_node(self.client.io_nodes()[index], stripes).map(&request)).await
    }

    /// Returns the stripes at one node, or `None` if it has none of them.
    fn of_node(&self, node: NodeId, stripes: &BTreeSet<u32>) -> Option<StripePlaces> {
        let attachments = self.attachments();
        let here = stripes.iter().filter(|&&stripe| self.home_of(stripe) == node);
        let places: Vec<(u32, u64)> =
            here.map(|&stripe| (stripe, attachments.disks[stripe as usize])).collect();
        let (file, striping) = (self.id(), self.striping());
        (!places.is_empty()).then_some(StripePlaces { file, striping, places })
    }

    /// Flushes writes to a file to stable storage; the first time, and after changes by others, also the older
    /// contents.
    pub(super) async fn flush_of(&self, scope: FlushScope<'_>) -> Result<()> {
        let _span = self.notes().span("flush", || [("file", self.id().0)]);
        let attachments = self.attachments();
        let (written, changes) = (self.writes().stripes(), attachments.changes());
        // Another handle's striping may have more stripes.
        let mut stripes = written.clone();
        stripes.retain(|&stripe| stripe < self.striping().stripe_count());
        if !matches!(scope, FlushScope::Own) {
            // Skip stripes on missing disks: other clients that wrote to them reach these disks and flush them.
            let count = self.striping().stripe_count();
            stripes.extend((0..count).filter(|&stripe| !attachments.has_no_disk(stripe)));
        } else if !attachments.is_old_flushed() {
            stripes.extend(self.stripes_of(Extent::new(0, self.bytes())));
        }
        let for_team = match scope {
            FlushScope::Team(_) => self.nodes_that_can(Features::TEAM_FLUSHES, &stripes).await,
            FlushScope::Own | FlushScope::All => BTreeSet::new(),
        };
        let flushing = |node, stripes| match scope {
            FlushScope::Team(members) if for_team.contains(&node) => {
                Flushing::Team { stripes, members: members.iter().map(|member| member.0).collect() }
            }
            _ => Flushing::Stripes(stripes),
        };
        let request = |node| self.of_node(node, &stripes).map(|here| Request::Flush(flushing(node, here)));
        let flushed = match self.find_disks(&stripes).await {
            Ok(()) => self.flush_to_media(&stripes, request).await,
            unknown => unknown,
        };
        if flushed.is_ok() {
            attachments.note_flushed(changes);
            attachments.note_written_flushed(&written);
        }
        flushed
    }

    /// Returns the I/O nodes of these stripes that have a feature, with those that do not answer: their requests will
    /// fail.
    pub(super) async fn nodes_that_can(
        &self,
        feature: Features,
        stripes: impl IntoIterator<Item = &u32>,
    ) -> BTreeSet<NodeId> {
        let mut capable = BTreeSet::new();
        for node in stripes.into_iter().map(|&stripe| self.home_of(stripe)).collect::<BTreeSet<_>>() {
            if self.client.can(node, feature).await.unwrap_or(true) {
                capable.insert(node);
            }
        }
        capable
    }

    /// Truncates or extends the existing stripes of a file.
    pub(super) async fn resize_stripes(&self, bytes: u64) -> Result<()> {
        let attachments = self.attachments();
        // Others may have created stripes since this client found none there: all existing ones change their length.
        attachments.forget_absent();
        self.retry_once(async || {
            // Repeat after the queries: another task may have reset stripes to unknown during the wait. A lost stripe
            // needs no truncation.
            let mut lost = BTreeSet::new();
            loop {
                let unknown = |stripe: &u32| attachments.is_wanted(*stripe, false) && !lost.contains(stripe);
                let wanted: BTreeSet<u32> = (0..self.striping().stripe_count()).filter(unknown).collect();
                if wanted.is_empty() {
                    break;
                }
                lost.extend(self.attach_unknown(wanted, false).await?);
            }
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
            let runs = self.runs_of_homes(request).await;
            for (node, run) in &runs {
                if let Ok((run, disconnects)) = run {
                    // Stripes beyond the new end need a flush, too: otherwise their truncated data would reappear after
                    // a crash.
                    self.note_accepted(*node, *run, *disconnects, &attached);
                }
            }
            joint_outcome(runs.into_iter().map(|(_, run)| run))
        })
        .await?;
        if bytes == 0 {
            attachments.note_stored(0, true);
        }
        Ok(())
    }

    /// Fails if `other`, or an I/O node that may have stripes of the file, does not answer.
    pub(super) async fn check_answers(&self, other: NodeId) -> Result<()> {
        let stripes = (0..self.striping().stripe_count()).filter(|&stripe| !self.has_no_disk(stripe));
        let mut asked: BTreeSet<NodeId> = stripes.map(|stripe| self.home_of(stripe)).collect();
        asked.insert(other);
        self.retry_once(async || {
            let request = |index| asked.contains(&self.client.io_nodes()[index]).then_some(Request::Describe);
            let answers = self.client.ask_all(request).await;
            answers.into_iter().try_for_each(|(_, answer)| answer.map(drop))
        })
        .await
    }

    /// Returns the length of the prefix of stripes known to have been created. If an I/O node disconnected since the
    /// last query, stripes that others do not know of are looked up again.
    pub(super) async fn stored_stripes(&self) -> u32 {
        let attachments = self.attachments();
        if attachments.forget_doubtful(self.client.disconnects()) {
            machine::sometimes!("stored stripes are counted again after a disconnect");
            // Ignore errors: stripes of an unreachable I/O node do not count yet.
            let _ = self.look_for_stored(self.bytes()).await;
        }
        attachments.stored()
    }

    /// Records the length of the created prefix of stripes that others report. If the file is empty, that length
    /// replaces the known one, and only a stripe of this prefix is lost if its disk is missing.
    pub(super) fn note_stored_stripes(&self, stored: u32, is_empty: bool) {
        self.attachments().note_stored(stored, is_empty);
    }

    /// Looks up the stripes of the extent up to `end` that other clients may have created.
    pub(super) async fn look_for_stored(&self, end: u64) -> Result<()> {
        self.attach_unknown(self.stripes_of(Extent::new(0, end)).collect(), false).await.map(drop)
    }

    /// Returns the readable contents of a file with damaged stripes. Missing stripes read as zeros.
    pub fn remains(&self) -> DamagedFileReader<M> {
        DamagedFileReader::of(self.clone())
    }

    /// Sets the file's size to the one that others report, but not below the end of this client's uncommitted writes.
    pub fn set_bytes(&self, bytes: u64) {
        self.note_reported_bytes(bytes);
    }

    /// Records that others have changed the file, and may not have flushed their changes.
    pub(super) fn note_changed_by_others(&self) {
        self.attachments().note_changed();
    }

    /// Records that this client's writes to the file are committed, if they end at `end` at most.
    pub fn note_counted(&self, end: u64) {
        self.note_committed(end);
    }

    /// Returns the end of this client's writes that others do not [count](Self::note_counted) yet; 0 if it has none.
    pub fn uncounted_end(&self) -> u64 {
        self.own_end()
    }
}
