//! Checks files: the I/O nodes read back all stripes of the files, on all disks in parallel, and the client combines
//! the findings.
//!
//! ```text
//! every disk:  which stripes of the files does it store? -> foreign stripes
//!              then reads them back, part by part        -> damaged stripes and extents
//! ```
//!
//! The removal of a file during the check is not a finding. The check covers only data on the disks, not data that an
//! I/O node has accepted but not written yet.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use layout::{Extent, StripePlace, Striping};
use machine::{Duration, InFlight, Instant, Machine, NodeId, Payload};

use super::{Client, unexpected};
use crate::error::{Error, Failure, FailureKind, Result};
use crate::number;
use crate::protocol::{Damage, FileId, Label, Reply, Request, SCRUB_BYTES_MAX};

// Each disk reads back one part at a time: with two parts its arm would move back and forth between them.

/// Number of parts per second if the rate is limited: a part then has the data that may be read in this fraction of a
/// second.
const PARTS_PER_SECOND: u64 = 4;

/// Minimum size of a part, in bytes.
const PART_BYTES_MIN: u64 = 4096;

/// Findings about files.
#[derive(Debug, Default)]
pub struct Check {
    /// Result for each file, by its number.
    pub files: BTreeMap<FileId, CheckedFile>,
    /// Number of bytes read back, on all disks.
    pub bytes: u64,
    /// Failures of the check. The state of the files that were not checked is unknown.
    pub failures: Vec<Error>,
}

/// Findings about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedFile {
    /// Size of the file in bytes, according to its existing stripes.
    pub bytes: u64,
    /// The faults of the file.
    pub findings: Vec<Finding>,
}

/// A fault of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Kind of the fault.
    pub kind: FindingKind,
    /// The I/O node and disk with the fault.
    pub place: Option<(NodeId, u32)>,
    /// Index of the faulty stripe, if known.
    pub stripe: Option<u32>,
    /// The damaged extents of the file, if known; in order.
    pub damaged: Vec<Extent>,
    /// Description for users.
    pub text: String,
}

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// A stripe does not match its checksums.
    Damaged,
    /// A stripe of another file is in the place of a stripe of this file, or a stripe exists twice.
    Foreign,
    /// The I/O node remembers the removal of the file, and rejects requests for its remaining stripes.
    Removed,
    /// A stripe is unreadable for another reason: it is of a newer version, or its disk reports an error.
    Unreadable,
}

/// Progress of a check.
#[derive(Clone, Copy, Debug)]
pub enum Checking {
    /// Total number of bytes to read back.
    Expected(u64),
    /// Number of bytes read back since the last report.
    Done(u64),
}

/// A stripe found on a disk, or the object in its place.
struct FoundObject {
    node: NodeId,
    disk: u32,
    /// Label of the stripe and its length in bytes, or the reason why these are unknown.
    stripe: std::result::Result<(Label, u64), Failure>,
    damage: Vec<Damage>,
    why: Option<String>,
}

/// State shared by the tasks of a check.
struct Shared {
    found: RefCell<BTreeMap<FileId, Vec<FoundObject>>>,
    failures: RefCell<Vec<Error>>,
    /// The disks to check: the I/O node, and the index of the disk at this node.
    disks: Vec<(NodeId, u32)>,
    bytes: Cell<u64>,
    readers: InFlight,
}

/// Stripes to read back at one disk: for each, the file, the index of the stripe's place in `found`, the next offset
/// and the end.
struct Queue {
    stripes: VecDeque<(FileId, usize, u64, u64)>,
    /// Earliest start of the next part.
    due: Instant,
}

impl<M: Machine> Client<M> {
    /// Checks the existing stripes of files; the namespace records which stripes must exist. Reads back at most
    /// `bytes_per_second` bytes in each second, if given. A file without stripes is reported among the failures.
    pub async fn check(
        &self,
        files: &[FileId],
        bytes_per_second: Option<u64>,
        progress: impl Fn(Checking) + 'static,
    ) -> Result<Check> {
        let failing = self.failing_disks().await;
        let mut disks = self.disk_places();
        disks.retain(|place| !failing.contains_key(place));
        let shared = Rc::new(Shared {
            found: RefCell::default(),
            failures: RefCell::default(),
            disks,
            bytes: Cell::new(0),
            readers: InFlight::new(),
        });
        failing.into_values().for_each(|error| shared.note(error));
        self.find_places(files, &shared).await;
        self.read_back(bytes_per_second, progress, &shared).await;
        let found = shared.found.take();
        let absent = files.iter().filter(|file| !found.contains_key(file));
        let absent = absent.map(|&file| Error::NotFound { name: number::object_name(file) });
        shared.failures.borrow_mut().extend(absent);
        let files = found.into_iter().map(|(file, found)| (file, judged(found))).collect();
        Ok(Check { files, bytes: shared.bytes.get(), failures: shared.failures.take() })
    }

    /// Finds the places of the stripes of these files.
    async fn find_places(&self, files: &[FileId], shared: &Rc<Shared>) {
        let files: Rc<[FileId]> = files.into();
        for &(node, disk) in &shared.disks {
            let (client, files, own) = (self.clone(), files.clone(), shared.clone());
            self.begin(shared, async move { client.find_at(node, disk, &files, &own).await });
        }
        shared.readers.none().await;
    }

    /// Returns all disks: the I/O node, and the index of the disk at this node.
    pub(super) fn disk_places(&self) -> Vec<(NodeId, u32)> {
        let disks = self.inner.disks.borrow();
        let counts = self.inner.io_nodes.iter().zip(&*disks);
        counts.flat_map(|(&node, &count)| (0..count).map(move |disk| (node, disk))).collect()
    }

    /// Reads back all found stripes, on all disks in parallel.
    async fn read_back(
        &self,
        bytes_per_second: Option<u64>,
        progress: impl Fn(Checking) + 'static,
        shared: &Rc<Shared>,
    ) {
        let lengths = shared.found.borrow().values().flatten().map(FoundObject::bytes).sum();
        progress(Checking::Expected(lengths));
        let (now, progress) = (self.now(), Rc::new(progress));
        let queues = shared.disks.iter().map(|&(node, disk)| (node, disk, shared.queue(node, disk, now)));
        let queues: Vec<_> = queues.filter(|(_, _, queue)| !queue.stripes.is_empty()).collect();
        let rate = bytes_per_second.map(|rate| (rate / queues.len().max(1) as u64).max(1));
        for (node, disk, queue) in queues {
            let (client, own, progress) = (self.clone(), shared.clone(), progress.clone());
            self.begin(shared, async move {
                client.read_back_at(node, disk, rate, queue, &own, &*progress).await
            });
        }
        shared.readers.none().await;
    }

    fn now(&self) -> Instant {
        self.inner.endpoint.machine().now()
    }

    /// Starts a task, and records its failure.
    fn begin(&self, shared: &Rc<Shared>, task: impl Future<Output = Result<()>> + 'static) {
        let (shared, operation) = (shared.clone(), shared.readers.begin());
        self.inner.endpoint.machine().spawn("checking a disk", async move {
            if let Err(error) = task.await {
                shared.note(*error);
            }
            drop(operation);
            Ok(())
        });
    }

    /// Finds the stripes of these files on a disk.
    async fn find_at(&self, node: NodeId, disk: u32, files: &[FileId], shared: &Shared) -> Result<()> {
        for &file in files {
            let stripe = match self.scrub(node, disk, file, 0, 0).await {
                Ok(part) => Ok((part.label, part.bytes)),
                Err(error) if error.is_remote(FailureKind::NotFound) => continue,
                Err(error) => Err(self.failure_of_stripe(node, disk, *error).await?),
            };
            let place = FoundObject { node, disk, stripe, damage: Vec::new(), why: None };
            shared.found.borrow_mut().entry(file).or_default().push(place);
        }
        Ok(())
    }

    /// Reads back the stripes in the queue of a disk, one part after the other.
    async fn read_back_at(
        &self,
        node: NodeId,
        disk: u32,
        rate: Option<u64>,
        mut queue: Queue,
        shared: &Shared,
        progress: &impl Fn(Checking),
    ) -> Result<()> {
        loop {
            self.inner.endpoint.machine().sleep_until(queue.due).await;
            let Some((file, index, offset, bytes)) = queue.next(rate) else { return Ok(()) };
            if let Some(rate) = rate {
                queue.due = self.now() + Duration::from_secs_f64(bytes as f64 / rate as f64);
            }
            let part = match self.scrub(node, disk, file, offset, bytes as u32).await {
                Ok(part) => part,
                // The stripe has been removed in the meantime.
                Err(error) if error.is_remote(FailureKind::NotFound) => continue,
                Err(error) => {
                    let failure = self.failure_of_stripe(node, disk, *error).await?;
                    shared.with(file, index, |place| place.stripe = Err(failure));
                    continue;
                }
            };
            shared.bytes.set(shared.bytes.get() + bytes);
            progress(Checking::Done(bytes));
            shared.with(file, index, |place| {
                // Ignore the result if another file has replaced the stripe.
                if place.stripe.as_ref().is_ok_and(|(label, _)| *label == part.label) {
                    place.damage.extend(part.damage);
                    place.why = place.why.take().or(part.why);
                }
            });
        }
    }

    /// Returns the failure that a reader of a stripe gets. If the I/O node or the disk has failed, fails instead.
    async fn failure_of_stripe(&self, node: NodeId, disk: u32, error: Error) -> Result<Failure> {
        let Error::Remote { failure, .. } = error else { return Err(error.into()) };
        if matches!(failure.kind, FailureKind::Damaged | FailureKind::Removed) {
            return Ok(failure);
        }
        match self.failing_disks().await.remove(&(node, disk)) {
            Some(error) => Err(error.into()),
            None => Ok(failure),
        }
    }

    /// Requests that an I/O node reads back part of a file's stripe on one of its disks.
    pub(super) async fn scrub(
        &self,
        node: NodeId,
        disk: u32,
        file: FileId,
        offset: u64,
        bytes: u32,
    ) -> Result<Scrubbed> {
        let request = Request::Scrub { file, disk, offset, bytes };
        match self.inner.endpoint.call(node, request, Payload::empty()).await? {
            (Reply::Scrubbed { label, bytes, damage, why }, _) => Ok(Scrubbed { label, bytes, damage, why }),
            _ => Err(unexpected(node)),
        }
    }
}

/// The answer to [`Request::Scrub`].
pub(super) struct Scrubbed {
    pub(super) label: Label,
    pub(super) bytes: u64,
    damage: Vec<Damage>,
    why: Option<String>,
}

impl Shared {
    /// Records a failure, once.
    fn note(&self, error: Error) {
        let mut failures = self.failures.borrow_mut();
        if !failures.contains(&error) {
            failures.push(error);
        }
    }

    fn queue(&self, node: NodeId, disk: u32, due: Instant) -> Queue {
        let mut stripes = VecDeque::new();
        for (&file, places) in &*self.found.borrow() {
            let here =
                places.iter().enumerate().filter(|(_, place)| (place.node, place.disk) == (node, disk));
            stripes.extend(here.map(|(index, place)| (file, index, 0, place.bytes())));
        }
        Queue { stripes, due }
    }

    fn with(&self, file: FileId, index: usize, change: impl FnOnce(&mut FoundObject)) {
        let mut found = self.found.borrow_mut();
        if let Some(place) = found.get_mut(&file).and_then(|places| places.get_mut(index)) {
            change(place);
        }
    }
}

impl Queue {
    /// Returns the next part: the file, the index of the stripe's place, the offset and the number of bytes.
    fn next(&mut self, rate: Option<u64>) -> Option<(FileId, usize, u64, u64)> {
        let most = u64::from(SCRUB_BYTES_MAX);
        let most = rate.map_or(most, |rate| (rate / PARTS_PER_SECOND).clamp(PART_BYTES_MIN, most));
        loop {
            let (file, index, offset, end) = self.stripes.front_mut()?;
            let bytes = most.min(*end - *offset);
            if bytes > 0 {
                let part = (*file, *index, *offset, bytes);
                *offset += bytes;
                return Some(part);
            }
            self.stripes.pop_front();
        }
    }
}

impl FoundObject {
    fn bytes(&self) -> u64 {
        self.stripe.as_ref().map_or(0, |(_, bytes)| *bytes)
    }

    fn finding(&self, kind: FindingKind, text: String) -> Finding {
        let stripe = self.stripe.as_ref().ok().map(|(label, _)| label.stripe);
        Finding { kind, place: Some((self.node, self.disk)), stripe, damaged: Vec::new(), text }
    }
}

/// Combines the findings about a file.
fn judged(mut found: Vec<FoundObject>) -> CheckedFile {
    // Sort the places, since the disks answered in any order.
    found.sort_by_key(|place| (place.node, place.disk));
    found.iter_mut().for_each(|place| place.damage.sort_by_key(|part| part.offset));
    let Some((file, striping)) = file_of(&found) else {
        let findings = found.iter().filter_map(damage_finding).collect();
        return CheckedFile { bytes: 0, findings };
    };
    let (mut findings, mut lengths) = (Vec::new(), BTreeMap::new());
    for place in &found {
        match &place.stripe {
            Ok((label, _)) if (label.file, label.striping) != (file, striping) => {
                findings.push(place.finding(FindingKind::Foreign, format!("it is {label}")));
            }
            Ok((label, bytes)) => {
                if lengths.insert(label.stripe, *bytes).is_some() {
                    let text = "another disk has this stripe, too".to_owned();
                    findings.push(place.finding(FindingKind::Foreign, text));
                }
                findings.extend(damage_finding(place));
            }
            Err(_) => findings.extend(damage_finding(place)),
        }
    }
    let count = striping.stripe_count();
    let lengths: Vec<u64> =
        (0..count).map(|stripe| lengths.get(&stripe).copied().unwrap_or_default()).collect();
    let bytes = striping.file_bytes(&lengths).unwrap_or_else(|error| {
        findings.push(found[0].finding(FindingKind::Damaged, error.to_string()));
        0
    });
    CheckedFile { bytes, findings }
}

/// Returns the file to which most of the stripes belong.
fn file_of(found: &[FoundObject]) -> Option<(FileId, Striping)> {
    let mut files: Vec<((FileId, Striping), BTreeSet<u32>)> = Vec::new();
    for (label, _) in found.iter().filter_map(|place| place.stripe.as_ref().ok()) {
        let file = (label.file, label.striping);
        match files.iter_mut().find(|(other, _)| *other == file) {
            Some((_, stripes)) => _ = stripes.insert(label.stripe),
            None => files.push((file, BTreeSet::from([label.stripe]))),
        }
    }
    // Reverse the order, so that the first of several equal maxima is returned: `max_by_key` returns the last one.
    files.into_iter().rev().max_by_key(|(_, stripes)| stripes.len()).map(|(file, _)| file)
}

fn damage_finding(place: &FoundObject) -> Option<Finding> {
    let label = match &place.stripe {
        Ok(_) if place.damage.is_empty() => return None,
        Ok((label, _)) => label,
        Err(failure) => {
            let kind = match failure.kind {
                FailureKind::Removed => FindingKind::Removed,
                FailureKind::Damaged => FindingKind::Damaged,
                _ => FindingKind::Unreadable,
            };
            return Some(place.finding(kind, failure.text.clone()));
        }
    };
    let text = place.why.clone().unwrap_or_default();
    let damaged = in_file(*label, &place.damage);
    Some(Finding { damaged, ..place.finding(FindingKind::Damaged, text) })
}

/// Returns the extents of the file that correspond to parts of one of its stripes.
fn in_file(label: Label, damage: &[Damage]) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    let block_bytes = label.striping.block_bytes();
    for part in damage {
        let (mut offset, end) = (part.offset, part.offset + part.bytes);
        while offset < end {
            let bytes = (block_bytes - offset % block_bytes).min(end - offset);
            let place = StripePlace { stripe: label.stripe, offset };
            // No file has offsets this large, so no client has written such a stripe.
            let at = label.striping.file_offset_of(place).unwrap_or(layout::FILE_BYTES_MAX);
            match extents.last_mut() {
                Some(last) if last.end() == at => last.bytes += bytes,
                _ => extents.push(Extent::new(at, bytes)),
            }
            offset += bytes;
        }
    }
    extents
}
