//! A client's unflushed writes to files.
//!
//! An open file has a list of stripes with unflushed writes ([`FileWrites`]), which all its handles share. Closing a
//! file does not flush it: the list remains. A loss is reported to a caller that opens the file again and flushes it,
//! or renames it over another file. A flush of all files reports it, too, once for all files. If there are too many
//! closed files, the ones closed first are dropped. Then only a flush of all files reports a loss of their data.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::rc::Rc;

use machine::NodeId;

use super::write_stamps::{Durability, Unflushed, first_kept};
use crate::name;
use crate::protocol::FileId;

/// Limit on the number of closed files plus their stripes with unflushed writes. Takes some MB, for 32,768 files with
/// one stripe each.
const CLOSED_MAX: usize = 64 * 1024;

/// A client's unflushed writes to files.
#[derive(Default)]
pub(super) struct UnflushedFiles {
    pub(super) durability: Durability,
    files: RefCell<BTreeMap<FileId, KnownFile>>,
    /// Space used by the closed files, in entries.
    closed: Cell<usize>,
    /// Number of closings so far.
    closings: Cell<u64>,
    /// Writes to dropped files, by I/O node.
    forgotten: RefCell<Unflushed<NodeId>>,
}

/// A file that is open, or was closed with unflushed writes.
struct KnownFile {
    stripes: Rc<RefCell<Unflushed<u32>>>,
    handles: usize,
    /// Number of its last closing.
    closing: u64,
    /// Its space while closed: one entry for the file and one for each stripe.
    room: usize,
    /// True if a flush of all files has reported its present losses.
    is_loss_reported: bool,
}

/// A handle's access to the unflushed writes of its file.
pub(super) struct FileWrites {
    files: Rc<UnflushedFiles>,
    file: FileId,
    stripes: Rc<RefCell<Unflushed<u32>>>,
}

impl Drop for FileWrites {
    fn drop(&mut self) {
        self.files.close(self.file);
    }
}

/// Snapshot of a file's unflushed writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct UnflushedMark {
    /// Hash of the incarnations of I/O nodes that had accepted unflushed data; 0 if nothing was unflushed.
    pub(super) runs: u64,
    /// True if some writes were lost.
    pub(super) has_lost: bool,
    /// Number of the last answer.
    number: u64,
}

impl UnflushedFiles {
    /// Opens a file and returns its unflushed writes.
    pub(super) fn open(self: &Rc<Self>, file: FileId) -> FileWrites {
        let mut files = self.files.borrow_mut();
        let new =
            || KnownFile { stripes: Rc::default(), handles: 0, closing: 0, room: 0, is_loss_reported: false };
        let known = files.entry(file).or_insert_with(new);
        self.closed.set(self.closed.get() - mem::take(&mut known.room));
        known.handles += 1;
        FileWrites { files: self.clone(), file, stripes: known.stripes.clone() }
    }

    fn close(&self, file: FileId) {
        let mut files = self.files.borrow_mut();
        let Some(known) = files.get_mut(&file) else { return };
        known.handles -= 1;
        if known.handles > 0 {
            return;
        }
        if known.stripes.borrow().is_nothing() {
            files.remove(&file);
            return;
        }
        self.closings.set(self.closings.get() + 1);
        known.closing = self.closings.get();
        known.room = 1 + known.stripes.borrow().len();
        self.closed.set(self.closed.get() + known.room);
        drop(files);
        while self.closed.get() > CLOSED_MAX {
            self.forget_first();
        }
    }

    /// Drops a quarter of the closed files at once: each drop scans all files, so it should be rare.
    fn forget_first(&self) {
        let (mut files, mut forgotten) = (self.files.borrow_mut(), self.forgotten.borrow_mut());
        let closings = files.values().filter(|known| known.handles == 0).map(|known| known.closing);
        let first_kept = first_kept(closings);
        let is_forgotten =
            |_: &FileId, known: &mut KnownFile| known.handles == 0 && known.closing < first_kept;
        for (_, known) in files.extract_if(.., is_forgotten) {
            forgotten.add(|node| node, &known.stripes.borrow(), &self.durability);
            self.closed.set(self.closed.get() - known.room);
        }
    }

    /// Records that a file is removed. Its writes are no loss any more, unless it is open.
    pub(super) fn remove(&self, file: FileId) {
        let mut files = self.files.borrow_mut();
        if let Some(known) = files.get(&file).filter(|known| known.handles == 0) {
            self.closed.set(self.closed.get() - known.room);
            files.remove(&file);
        }
    }

    /// Updates the state of all writes after a flush of all files. Returns the I/O nodes that have lost writes,
    /// unless an earlier call has reported these losses. A flush of one of the files still reports its loss.
    pub(super) fn settle(&self) -> BTreeSet<NodeId> {
        let (mut files, mut lost) = (self.files.borrow_mut(), BTreeSet::new());
        let settled = files.extract_if(.., |_, known| {
            let mut stripes = known.stripes.borrow_mut();
            stripes.settle(&self.durability);
            if !mem::replace(&mut known.is_loss_reported, stripes.has_lost()) {
                lost.extend(stripes.lost_nodes());
            }
            known.handles == 0 && stripes.is_nothing()
        });
        self.closed.set(self.closed.get() - settled.map(|(_, known)| known.room).sum::<usize>());
        let mut forgotten = self.forgotten.borrow_mut();
        forgotten.settle(&self.durability);
        lost.extend(forgotten.take_lost());
        lost
    }
}

impl FileWrites {
    /// Records that an incarnation of an I/O node accepted data of these stripes. `disconnects` is the disconnect
    /// count of that node when the request was sent.
    pub(super) fn note_accepted(
        &self,
        node: NodeId,
        run: u64,
        disconnects: u64,
        stripes: impl IntoIterator<Item = u32>,
    ) {
        let durability = &self.files.durability;
        let stamp = durability.accepted(node, run, disconnects);
        let mut unflushed = self.stripes.borrow_mut();
        stripes.into_iter().for_each(|stripe| unflushed.note(stripe, stamp, durability));
    }

    /// Returns the unflushed writes, as of now.
    fn settled(&self) -> RefMut<'_, Unflushed<u32>> {
        let mut unflushed = self.stripes.borrow_mut();
        unflushed.settle(&self.files.durability);
        unflushed
    }

    /// Returns the stripes with unflushed writes, as far as known.
    pub(super) fn stripes(&self) -> BTreeSet<u32> {
        self.settled().last().keys().copied().collect()
    }

    /// Returns true if a flush has writes to flush or losses to report.
    pub(super) fn has_unflushed(&self) -> bool {
        !self.settled().is_nothing()
    }

    /// Returns true if an accepted write may be lost. `disconnects_of` returns the present disconnect count of a node.
    pub(super) fn may_have_lost(&self, disconnects_of: impl Fn(NodeId) -> u64) -> bool {
        self.stripes.borrow().may_have_lost(&self.files.durability, disconnects_of)
    }

    /// Records that an incarnation of an I/O node has flushed stripes, with their accepted writes up to a number.
    /// `disconnects` is the disconnect count of that node when the request was sent.
    pub(super) fn note_flushed(
        &self,
        stripes: &BTreeSet<u32>,
        (node, run): (NodeId, u64),
        number: u64,
        disconnects: u64,
    ) {
        self.files.durability.note_incarnation(node, run, disconnects);
        self.stripes.borrow_mut().note_flushed(stripes, (node, run), number, &self.files.durability);
    }

    /// Returns the I/O nodes that have lost writes to the file. Reports each loss once.
    pub(super) fn take_lost(&self) -> BTreeSet<NodeId> {
        self.settled().take_lost()
    }

    /// Returns a snapshot of the unflushed writes.
    pub(super) fn mark(&self) -> UnflushedMark {
        let unflushed = self.settled();
        let runs: BTreeMap<NodeId, u64> =
            unflushed.last().values().map(|stamp| (stamp.node, stamp.run)).collect();
        let number = self.files.durability.last();
        UnflushedMark { runs: hash_of(&runs), has_lost: unflushed.has_lost(), number }
    }

    /// Records that another client has flushed all stripes with this client's writes before `mark`, in the same
    /// incarnations of the same I/O nodes.
    pub(super) fn note_flushed_by_other(&self, mark: UnflushedMark) {
        self.stripes.borrow_mut().note_all_flushed(mark.number);
    }
}

/// Returns a hash that is equal for the same incarnations of the same I/O nodes; 0 for an empty set.
fn hash_of(runs: &BTreeMap<NodeId, u64>) -> u64 {
    if runs.is_empty() {
        return 0;
    }
    let numbers: Vec<u64> = runs.iter().flat_map(|(node, run)| [node.0, *run]).collect();
    name::hash_of("", &numbers).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(1);

    fn unflushed() -> Rc<UnflushedFiles> {
        Rc::default()
    }

    /// Opens a file, records that incarnations of I/O nodes accepted writes to it, and closes it.
    fn write(files: &Rc<UnflushedFiles>, file: u64, accepted: &[(u64, u64)]) {
        let writes = files.open(FileId(file));
        accepted.iter().for_each(|&(node, run)| writes.note_accepted(NodeId(node), run, 0, [node as u32]));
    }

    /// Returns the unflushed stripes of a closed file.
    fn stripes(files: &Rc<UnflushedFiles>, file: u64) -> Vec<u32> {
        files.open(FileId(file)).stripes().into_iter().collect()
    }

    #[test]
    fn marks_are_equal_only_for_the_same_nodes_and_incarnations() {
        let runs = |accepted: &[(u64, u64)]| {
            hash_of(&accepted.iter().map(|&(node, run)| (NodeId(node), run)).collect())
        };
        assert_eq!(runs(&[]), 0);
        let one = runs(&[(1, 7), (2, 8)]);
        assert_eq!(one, runs(&[(2, 8), (1, 7), (1, 7)]));
        for other in [&[(1, 7)][..], &[(1, 7), (2, 9)], &[(1, 7), (3, 8)], &[(1, 8), (2, 7)]] {
            assert_ne!(one, runs(other));
        }
    }

    #[test]
    fn writes_after_a_mark_stay_unflushed() {
        let files = unflushed();
        let writes = files.open(FileId(1));
        writes.note_accepted(NODE, 7, 0, [0]);
        let mark = writes.mark();
        writes.note_accepted(NODE, 7, 0, [1]);
        writes.note_flushed_by_other(mark);
        assert_eq!(writes.stripes(), BTreeSet::from([1]));
        writes.note_flushed_by_other(writes.mark());
        assert!(!writes.has_unflushed());
    }

    #[test]
    fn closed_files_are_forgotten_in_order_of_closing() {
        let files = unflushed();
        write(&files, 0, &[]);
        assert!(files.files.borrow().is_empty(), "all of it is flushed");
        let most = CLOSED_MAX as u64 / 2;
        (1..=most).for_each(|file| write(&files, file, &[(1, 7)]));
        // File 1 has the lowest number, and is closed last.
        write(&files, 1, &[(1, 7)]);
        write(&files, most + 1, &[(1, 7)]);
        assert_eq!(stripes(&files, 1), [1]);
        assert_eq!(stripes(&files, 2), [], "it was the first to be closed");
        assert_eq!(stripes(&files, most + 1), [1]);
        let closed = files.files.borrow().values().filter(|known| known.handles == 0).count();
        assert_eq!((files.closed.get(), files.files.borrow().len()), (2 * closed, closed));
        // A few files with many stripes take the space of many files.
        for file in most + 2..most + 12 {
            files.open(FileId(file)).note_accepted(NODE, 7, 0, 0..10_000);
        }
        assert!(files.files.borrow().len() < 10 && files.closed.get() <= CLOSED_MAX);
    }

    #[test]
    fn a_flush_of_all_files_reports_losses_of_forgotten_files_once() {
        let files = unflushed();
        write(&files, 0, &[(1, 7), (2, 8)]);
        (1..=CLOSED_MAX as u64 / 2).for_each(|file| write(&files, file, &[(3, 9)]));
        let durability = &files.durability;
        durability.flushed(NODE, 7, durability.last());
        durability.note_incarnation(NODE, 8, 0);
        assert_eq!(files.settle(), BTreeSet::new(), "one node has flushed, and the other may have the data");
        durability.note_incarnation(NodeId(2), 9, 0);
        assert_eq!((files.settle(), files.settle()), (BTreeSet::from([NodeId(2)]), BTreeSet::new()));
    }

    #[test]
    fn closed_files_without_unflushed_writes_take_no_space() {
        let files = unflushed();
        write(&files, 1, &[(1, 7)]);
        write(&files, 2, &[(1, 7), (2, 7)]);
        let open = files.open(FileId(3));
        open.note_accepted(NODE, 7, 0, [0]);
        files.durability.flushed(NODE, 7, files.durability.last());
        assert_eq!(files.settle(), BTreeSet::new());
        assert!(!open.has_unflushed());
        assert_eq!((files.files.borrow().len(), files.closed.get()), (2, 3));
        assert_eq!(stripes(&files, 2), [2]);
        files.remove(FileId(2));
        assert_eq!((files.files.borrow().len(), files.closed.get()), (1, 0));
    }
}
