//! Assembling the stripes found under a name into files.
//!
//! Under a name there is at most one finished file, and there may be unfinished ones: one that is being written, and
//! those that were left before they were written to their end. Which stripe belongs to which file follows from labels
//! and notes alone, so that all clients find the same.

use std::collections::BTreeMap;

use layout::Striping;
use machine::{Duration, NodeId};

use crate::error::{Error, Result};
use crate::protocol::{Committed, FileId, FoundStripe, Label};

/// The metadata of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Its identity.
    pub file: FileId,
    /// Its size in bytes: as it was committed, or of an unfinished file as much as there is.
    pub bytes: u64,
    /// How it is striped.
    pub striping: Striping,
    /// Where each stripe lies: I/O node and disk, with the stripe's length in bytes.
    pub stripes: Vec<(NodeId, u32, u64)>,
    /// When it was begun, since 1970, if it is unfinished.
    pub unfinished_since: Option<Duration>,
}

/// The stripes of a file on the I/O nodes of a client. Some are missing if their I/O nodes are not among these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileParts {
    /// The file's identity.
    pub file: FileId,
    /// How it is striped.
    pub striping: Striping,
    /// Where each stripe that was found lies, by its index: I/O node and disk, with the stripe's length in bytes.
    pub stripes: BTreeMap<u32, (NodeId, u32, u64)>,
    /// When it was begun, since 1970, if it is unfinished.
    pub unfinished_since: Option<Duration>,
    /// The size as it was committed, as far as the stripes that were found tell.
    committed: Option<u64>,
}

impl FileParts {
    /// Returns whether all stripes of the file were found.
    pub(super) fn is_complete(&self) -> bool {
        self.stripes.len() == self.striping.stripe_count() as usize
    }

    /// The file, or which of its stripes is missing.
    pub fn complete(self, name: &str) -> Result<FileStat> {
        let FileParts { file, striping, stripes, unfinished_since, committed } = self;
        let count = striping.stripe_count();
        if let Some(index) = (0..count).find(|index| !stripes.contains_key(index)) {
            return Err(Error::MissingStripe { name: name.into(), index, count }.into());
        }
        let stripes: Vec<_> = stripes.into_values().collect();
        let bytes = match committed.filter(|_| unfinished_since.is_none()) {
            Some(bytes) => bytes,
            None => {
                let lengths: Vec<u64> = stripes.iter().map(|&(_, _, bytes)| bytes).collect();
                striping.file_bytes(&lengths)?
            }
        };
        Ok(FileStat { file, bytes, striping, stripes, unfinished_since })
    }
}

/// Stripes of one file.
pub(super) struct FileStripes {
    /// The label of the stripe that was found first.
    label: Label,
    found: Vec<(NodeId, FoundStripe)>,
}

/// The next step for a name.
pub(super) enum Found {
    /// A file is committed and does not have its name everywhere: it is to be published.
    Committed { file: FileId, replaces: Option<FileId> },
    /// These files are there.
    Settled {
        /// The finished one, if there is one; its stripes may not belong together.
        finished: Vec<(NodeId, FoundStripe)>,
        unfinished: Vec<FileStripes>,
    },
}

/// Tells finished and unfinished files under a name apart.
pub(super) fn tell_apart(found: Vec<(NodeId, FoundStripe)>) -> Found {
    let mut by_file: BTreeMap<FileId, FileStripes> = BTreeMap::new();
    for (node, stripe) in &found {
        let label = stripe.label;
        let stripes = by_file.entry(label.file).or_insert_with(|| FileStripes { label, found: Vec::new() });
        stripes.found.push((*node, stripe.clone()));
    }
    let is_published = |file: Option<FileId>| {
        let stripes = file.and_then(|file| by_file.get(&file));
        stripes.is_some_and(|stripes| stripes.found.iter().any(|(_, stripe)| stripe.published))
    };
    for stripes in by_file.values() {
        let Label { file, replaces, .. } = stripes.label;
        let any_published = is_published(Some(file));
        let any_pending = stripes.found.iter().any(|(_, stripe)| !stripe.published);
        // A stripe is published when all have been committed.
        let is_finished = any_published || stripes.are_all_committed();
        // What it has replaced goes when it is all there: it may be all that is left.
        let is_beside_another = is_published(replaces) && stripes.are_all_there();
        if is_finished && (any_pending || is_beside_another) {
            return Found::Committed { file, replaces };
        }
    }
    let finished = found.into_iter().filter(|(_, stripe)| stripe.published).collect();
    let is_unfinished = |stripes: &FileStripes| !stripes.found[0].1.published;
    Found::Settled { finished, unfinished: by_file.into_values().filter(is_unfinished).collect() }
}

impl FileStripes {
    pub(super) fn file(&self) -> FileId {
        self.label.file
    }

    /// When the file was begun, since 1970.
    pub(super) fn begun(&self) -> Duration {
        Duration::from_nanos(self.label.begun)
    }

    /// How many there are, and when their file was begun: what was left last has most.
    pub(super) fn rank(&self) -> (u64, usize) {
        (self.label.begun, self.found.len())
    }

    fn are_all_there(&self) -> bool {
        let is_there = |index| self.found.iter().any(|(_, stripe)| stripe.label.stripe == index);
        (0..self.label.striping.stripe_count()).all(is_there)
    }

    fn are_all_committed(&self) -> bool {
        self.are_all_there() && self.found.iter().all(|(_, stripe)| stripe.committed.is_some())
    }

    /// An I/O node that has a stripe without which the file cannot be committed; none if one is missing already.
    pub(super) fn uncommitted(&self) -> Option<NodeId> {
        let uncommitted = self.found.iter().find(|(_, stripe)| stripe.committed.is_none());
        uncommitted.filter(|_| self.are_all_there()).map(|(node, _)| *node)
    }

    /// The unfinished file of which these are stripes.
    pub(super) fn parts(self, name: &str) -> Result<FileParts> {
        Ok(FileParts { unfinished_since: Some(self.begun()), ..assemble(name, self.found)? })
    }
}

/// Puts together the stripes of a file that is finished, or says why they are not of one file.
pub(super) fn assemble(name: &str, found: Vec<(NodeId, FoundStripe)>) -> Result<FileParts> {
    let Some(first) = found.first().map(|(_, stripe)| stripe.label) else {
        return Err(Error::NotFound { name: name.into() }.into());
    };
    // Files of earlier releases have no notes until they are committed anew.
    let committed: Option<Vec<Committed>> = found.iter().map(|(_, stripe)| stripe.committed).collect();
    let committed = committed.and_then(|all| all.iter().map(|committed| committed.bytes).min());
    let mut stripes: BTreeMap<u32, (NodeId, u32, u64)> = BTreeMap::new();
    for (node, stripe) in found {
        let FoundStripe { disk, label, bytes, .. } = stripe;
        let foreign = |expected: String| {
            let (name, found) = (name.into(), label.to_string());
            Box::new(Error::ForeignStripe { name, node, disk, found, expected })
        };
        if (label.file, label.striping) != (first.file, first.striping) {
            return Err(foreign(format!("a stripe of what others hold: {first}")));
        }
        if let Some((other, other_disk, _)) = stripes.insert(label.stripe, (node, disk, bytes)) {
            return Err(foreign(format!("another stripe: {other} disk {other_disk} holds this one too")));
        }
    }
    let Label { file, striping, .. } = first;
    Ok(FileParts { file, striping, stripes, unfinished_since: None, committed })
}
