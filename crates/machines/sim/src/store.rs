//! Contents and layout of a disk: objects with contents, and the blocks they occupy.
//!
//! Contents and places are separate. Contents are payloads by offset, real or phantom, so a read returns written data
//! without a copy. Places are runs of blocks; they only determine the time of an access. Names, labels, lengths and the
//! map of blocks are metadata. A simulated machine keeps metadata in memory: accesses to them take no time and no disk
//! access.
//!
//! Two layouts, as in the studies of disk-directed I/O:
//!
//! * *contiguous*: an object is one run of blocks as far as possible. The first object written to starts at block 0.
//!   Space is reserved ahead of growth, so that objects growing side by side stay in large runs. A write beyond the end
//!   also reserves the gap before it, as long as the disk has room; a longer object has holes.
//! * *random*: every block has an independent place, drawn evenly from all free blocks of the disk. Skipped blocks have
//!   no place; reading them takes no time and returns zeros.
//!
//! Removing an object frees its places at once; tasks with the object open can read its contents until the end of the
//! simulation.

use std::collections::BTreeMap;
use std::ops::Range;

use machine::{Memory, Payload};

use crate::random::RandomStream;
use crate::settings::Layout;
use crate::unflushed::{Change, CrashOutcome, SurvivingChange, Unflushed};

/// Consecutive blocks of an object that are also consecutive on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRun {
    /// First block on the disk.
    pub(crate) place: u64,
    /// Number of blocks.
    pub(crate) blocks: u64,
}

pub(crate) struct StoredObject {
    pub(crate) label: Vec<u8>,
    pub(crate) bytes: u64,
    contents: Memory,
    /// Unflushed changes, if its node may crash.
    pub(crate) unflushed: Option<Unflushed>,
    /// True if it was flushed at least once: before that, even its existence may be lost.
    pub(crate) was_flushed: bool,
    /// True if it has survived a crash, which proves that it is on the medium.
    survived: bool,
    /// Runs of the object by their first block in the object.
    runs: BTreeMap<u64, BlockRun>,
    /// End of the blocks in use; runs beyond this block are reserved ahead.
    asked_blocks: u64,
}

impl StoredObject {
    pub(crate) fn get(&self, offset: u64, bytes: u64) -> Payload {
        // Contents beyond the end may remain from a truncation and must read as zeros.
        let kept = bytes.min(self.bytes.saturating_sub(offset));
        let mut payload = if kept > 0 { self.contents.get(offset, kept) } else { Payload::empty() };
        payload.push(&Payload::zeros(bytes - kept));
        payload
    }

    pub(crate) fn put(&mut self, offset: u64, payload: &Payload) {
        if payload.is_empty() {
            return;
        }
        if self.unflushed.is_some() {
            let (old, old_bytes) = (self.contents.get(offset, payload.len()), self.bytes);
            self.note(Change::Write { offset, old, new: payload.clone(), old_bytes });
        }
        self.contents.place(offset, payload);
        self.bytes = self.bytes.max(offset + payload.len());
    }

    #[cold]
    fn note(&mut self, change: Change) {
        if let Some(unflushed) = &mut self.unflushed {
            unflushed.note(change);
        }
    }

    /// Returns the first written range at or after `offset`.
    pub(crate) fn data_after(&self, offset: u64) -> Option<Range<u64>> {
        let found = self.contents.placed_after(offset)?;
        (found.start < self.bytes).then(|| found.start..found.end.min(self.bytes))
    }

    fn set_bytes(&mut self, bytes: u64) {
        if let Some(cut) = self.bytes.checked_sub(bytes).filter(|cut| *cut > 0) {
            self.contents.place(bytes, &Payload::zeros(cut));
        }
        self.bytes = bytes;
    }

    /// Applies a crash: reverts unflushed changes, except those that survive.
    fn crash(&mut self, stream: &mut RandomStream) {
        let Some(unflushed) = &mut self.unflushed else { return };
        let CrashOutcome { undone, redone } = unflushed.crash(stream);
        for change in undone {
            match change {
                Change::Write { offset, old, old_bytes, .. } => {
                    self.contents.place(offset, &old);
                    self.bytes = old_bytes;
                }
                Change::Resize { old_bytes, cut, bytes } => {
                    if old_bytes > bytes {
                        self.contents.place(bytes, &cut);
                    }
                    self.bytes = old_bytes;
                }
            }
        }
        for change in redone {
            match change {
                SurvivingChange::Write { offset, data } if !data.is_empty() => {
                    self.contents.place(offset, &data);
                    self.bytes = self.bytes.max(offset + data.len());
                }
                SurvivingChange::Write { .. } => {}
                SurvivingChange::Resize { bytes } => self.set_bytes(bytes),
            }
        }
    }

    /// Writes the runs that hold blocks `first..end`, clipped to them, to `into`; blocks without a place are left out.
    pub(crate) fn runs(&self, first: u64, end: u64, into: &mut Vec<BlockRun>) {
        into.clear();
        let before = self.runs.range(..=first).next_back();
        let after = self.runs.range(first + 1..end.max(first + 1));
        for (&start, run) in before.into_iter().chain(after) {
            let (from, until) = (start.max(first), (start + run.blocks).min(end));
            if from >= until {
                continue;
            }
            let clipped = BlockRun { place: run.place + (from - start), blocks: until - from };
            match into.last_mut() {
                Some(last) if last.place + last.blocks == clipped.place => last.blocks += clipped.blocks,
                _ => into.push(clipped),
            }
        }
    }

    /// Returns the place of one block.
    pub(crate) fn place(&self, block: u64) -> Option<u64> {
        let (&start, run) = self.runs.range(..=block).next_back()?;
        (block < start + run.blocks).then(|| run.place + (block - start))
    }
}

/// Objects and free space of one disk.
pub(crate) struct ObjectStore {
    names: BTreeMap<String, u64>,
    /// Removed objects that a crash may restore: the removal is flushed with the next object.
    removed: Vec<(String, u64)>,
    objects: Vec<StoredObject>,
    space: Option<Space>,
    expects_crashes: bool,
}

/// Limit of offsets in objects.
const OBJECT_BYTES_MAX: u64 = 1 << 60;

impl ObjectStore {
    /// Returns a store on a disk with this space, or in memory without one.
    pub(crate) fn new(space: Option<Space>) -> Self {
        ObjectStore {
            names: BTreeMap::new(),
            removed: Vec::new(),
            objects: Vec::new(),
            space,
            expects_crashes: false,
        }
    }

    /// Creates an object and returns its id; `None` if the name exists.
    pub(crate) fn create(&mut self, name: &str, label: &[u8]) -> Option<u64> {
        if self.names.contains_key(name) {
            return None;
        }
        let id = self.objects.len() as u64;
        self.objects.push(StoredObject {
            label: label.to_vec(),
            bytes: 0,
            contents: Memory::phantom(OBJECT_BYTES_MAX),
            unflushed: self.expects_crashes.then(Unflushed::default),
            was_flushed: false,
            survived: false,
            runs: BTreeMap::new(),
            asked_blocks: 0,
        });
        self.names.insert(name.to_owned(), id);
        Some(id)
    }

    /// Records from now on the changes that a crash may undo.
    pub(crate) fn expect_crashes(&mut self) {
        self.expects_crashes = true;
    }

    /// Returns the number of the last change of an object, and the number of unflushed removals. A flush that begins
    /// now includes all these changes.
    pub(crate) fn unflushed_changes(&self, id: u64) -> (u64, usize) {
        let changes = self.object(id).and_then(|object| object.unflushed.as_ref()).map_or(0, Unflushed::last);
        (changes, self.removed.len())
    }

    /// Marks an object's name, its changes up to this number, and this number of removals as flushed.
    pub(crate) fn flushed(&mut self, id: u64, (through, removals): (u64, usize)) {
        if !self.expects_crashes {
            return;
        }
        // A concurrent flush may have included some of the removals.
        self.removed.drain(..removals.min(self.removed.len()));
        let object = &mut self.objects[id as usize];
        object.was_flushed = true;
        object.unflushed.iter_mut().for_each(|unflushed| unflushed.flushed(through));
    }

    /// Applies a crash of the node: objects keep flushed data and some unflushed changes. Some never flushed objects
    /// disappear, and some removed objects return.
    pub(crate) fn crash(&mut self, stream: &mut RandomStream) {
        for (name, id) in std::mem::take(&mut self.removed) {
            if stream.below(2) == 0 && !self.names.contains_key(&name) {
                self.names.insert(name, id);
                // Without enough free space some of its blocks have no place, and reading them takes no time.
                self.reserve_all(id, 0, self.objects[id as usize].bytes);
            }
        }
        let names: Vec<(String, u64)> = self.names.iter().map(|(name, id)| (name.clone(), *id)).collect();
        for (name, id) in names {
            let object = &mut self.objects[id as usize];
            if !object.was_flushed && !object.survived && stream.below(2) == 0 {
                self.remove(&name);
            } else {
                object.crash(stream);
                object.survived = true;
            }
        }
        self.removed.clear();
    }

    /// Returns the object of this name.
    pub(crate) fn find(&self, name: &str) -> Option<u64> {
        self.names.get(name).copied()
    }

    /// Returns all names, sorted.
    pub(crate) fn list(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let Some(id) = self.names.remove(name) else { return false };
        let object = &mut self.objects[id as usize];
        if let Some(space) = &mut self.space {
            std::mem::take(&mut object.runs).values().for_each(|&run| space.free(run));
            object.asked_blocks = 0;
        }
        if self.expects_crashes {
            self.removed.push((name.to_owned(), id));
        }
        true
    }

    pub(crate) fn object(&self, id: u64) -> Option<&StoredObject> {
        self.objects.get(usize::try_from(id).ok()?)
    }

    pub(crate) fn object_mut(&mut self, id: u64) -> Option<&mut StoredObject> {
        self.objects.get_mut(usize::try_from(id).ok()?)
    }

    /// Truncates or extends the object; returns `false` if `bytes` exceeds the limit. Blocks without room on the disk
    /// become a hole.
    pub(crate) fn resize(&mut self, id: u64, bytes: u64) -> bool {
        let old = self.objects[id as usize].bytes;
        if bytes > OBJECT_BYTES_MAX {
            return false;
        }
        if bytes > old {
            self.reserve_all(id, old, bytes);
        }
        let object = &mut self.objects[id as usize];
        if object.unflushed.is_some() {
            let cut = object.contents.get(bytes, old.saturating_sub(bytes));
            object.note(Change::Resize { old_bytes: old, cut, bytes });
        }
        object.set_bytes(bytes);
        if let Some(space) = &mut self.space {
            let kept_blocks = bytes.div_ceil(space.block_bytes);
            object.asked_blocks = object.asked_blocks.min(kept_blocks);
            cut(&mut object.runs, kept_blocks, |run| space.free(run));
        }
        true
    }

    /// Returns a number that grows with the physical position of a byte: its offset on the disk if it has one.
    ///
    /// Bytes without a place are sorted after all others, in order of their offset. In memory, objects are in sequence.
    pub(crate) fn position(&self, id: u64, offset: u64) -> u64 {
        let Some(space) = &self.space else {
            return id.wrapping_mul(OBJECT_BYTES_MAX >> 20).wrapping_add(offset);
        };
        let place = self.object(id).and_then(|object| object.place(offset / space.block_bytes));
        match place {
            Some(place) => place * space.block_bytes + offset % space.block_bytes,
            None => space.bytes().saturating_add(offset),
        }
    }

    /// Returns capacity and free space of the disk; `None` in memory.
    pub(crate) fn space(&self) -> Option<machine::Space> {
        let space = self.space.as_ref()?;
        Some(machine::Space { bytes: space.bytes(), free: space.free_blocks() * space.block_bytes })
    }

    /// Assigns places to the bytes `first..end` of the object; returns `false` if the disk has too few.
    pub(crate) fn reserve(&mut self, id: u64, first: u64, end: u64) -> bool {
        if end > OBJECT_BYTES_MAX {
            return false;
        }
        if self.reserve_all(id, first, end) {
            return true;
        }
        // Reserve only these bytes, without the gap before them.
        let Some(space) = &mut self.space else { return true };
        let (first, end) = (first / space.block_bytes, end.div_ceil(space.block_bytes));
        let object = &mut self.objects[id as usize];
        let is_reserved = space.reserve_missing(&mut object.runs, first, end);
        if is_reserved {
            object.asked_blocks = object.asked_blocks.max(end);
        }
        is_reserved
    }

    /// Assigns places to the bytes `first..end` of the object, in the contiguous layout also to the gap between its
    /// last place and these; returns `false` if the disk has too few.
    fn reserve_all(&mut self, id: u64, first: u64, end: u64) -> bool {
        let Some(space) = &mut self.space else { return true };
        let (first, end) = (first / space.block_bytes, end.div_ceil(space.block_bytes));
        if !space.reserve(&mut self.objects[id as usize].runs, first, end) {
            // Release blocks reserved ahead of growth, because this object needs them now.
            for object in &mut self.objects {
                cut(&mut object.runs, object.asked_blocks, |run| space.free(run));
            }
            if !space.reserve(&mut self.objects[id as usize].runs, first, end) {
                return false;
            }
        }
        let object = &mut self.objects[id as usize];
        object.asked_blocks = object.asked_blocks.max(end);
        true
    }
}

/// Frees the blocks from `kept_blocks` on.
fn cut(runs: &mut BTreeMap<u64, BlockRun>, kept_blocks: u64, mut free: impl FnMut(BlockRun)) {
    for (_, run) in runs.split_off(&kept_blocks) {
        free(run);
    }
    if let Some((&start, last)) = runs.iter_mut().next_back() {
        let kept = (kept_blocks - start).min(last.blocks);
        if kept < last.blocks {
            free(BlockRun { place: last.place + kept, blocks: last.blocks - kept });
            last.blocks = kept;
        }
    }
}

/// Blocks of a disk.
pub(crate) struct Space {
    pub(crate) block_bytes: u64,
    blocks: u64,
    free: Free,
}

enum Free {
    /// Free runs by their first block, and the number of blocks reserved at a time.
    Runs { by_place: BTreeMap<u64, u64>, reserved_ahead: u64 },
    /// Use of each block, number of free blocks, and random stream of places.
    Blocks { used: Vec<bool>, count: u64, stream: RandomStream },
}

impl Space {
    pub(crate) fn new(block_bytes: u64, blocks: u64, layout: Layout, stream: RandomStream) -> Self {
        let free = match layout {
            Layout::Contiguous { reserve_bytes } => Free::Runs {
                by_place: BTreeMap::from([(0, blocks)]),
                reserved_ahead: reserve_bytes.div_ceil(block_bytes).max(1),
            },
            Layout::Random => Free::Blocks { used: vec![false; blocks as usize], count: blocks, stream },
        };
        Space { block_bytes, blocks, free }
    }

    /// Returns the size of the disk in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks * self.block_bytes
    }

    fn free_blocks(&self) -> u64 {
        match &self.free {
            Free::Runs { by_place, .. } => by_place.values().sum(),
            Free::Blocks { count, .. } => *count,
        }
    }

    /// Assigns places to all of these blocks, or to none.
    fn reserve(&mut self, runs: &mut BTreeMap<u64, BlockRun>, first: u64, end: u64) -> bool {
        let reserved = |runs: &BTreeMap<u64, BlockRun>| {
            runs.last_key_value().map_or(0, |(&start, run)| start + run.blocks)
        };
        let in_holes = |runs: &BTreeMap<u64, BlockRun>, end| (end - first) - placed(runs, first, end);
        let missing = match &self.free {
            Free::Runs { .. } => {
                let known = reserved(runs);
                end.saturating_sub(known) + in_holes(runs, known.clamp(first, end))
            }
            Free::Blocks { .. } => in_holes(runs, end),
        };
        // Check before reserving: a request may be 2^60 bytes, and must not use up the remaining blocks.
        if missing > 0 && missing > self.free_blocks() {
            return false;
        }
        match &mut self.free {
            Free::Runs { by_place, reserved_ahead } => {
                while reserved(runs) < end {
                    let wanted = (end - reserved(runs)).max(*reserved_ahead);
                    let after = runs.last_key_value().map(|(_, run)| run.place + run.blocks);
                    let run = take_run(by_place, after, wanted).expect("there are enough");
                    let start = reserved(runs);
                    append(runs, start, run);
                }
                fill(runs, first, end, by_place);
                true
            }
            Free::Blocks { used, count, stream } => {
                for block in first..end {
                    let known = runs.range(..=block).next_back();
                    if known.is_some_and(|(&start, run)| block < start + run.blocks) {
                        continue;
                    }
                    let place = draw(used, stream);
                    used[place as usize] = true;
                    *count -= 1;
                    runs.insert(block, BlockRun { place, blocks: 1 });
                }
                true
            }
        }
    }

    /// Assigns places to all of these blocks without one, or to none.
    fn reserve_missing(&mut self, runs: &mut BTreeMap<u64, BlockRun>, first: u64, end: u64) -> bool {
        let missing = (end - first) - placed(runs, first, end);
        match &mut self.free {
            Free::Runs { by_place, .. } if missing <= by_place.values().sum() => {
                fill(runs, first, end, by_place);
                true
            }
            // In the random layout the first attempt already reserved only these blocks.
            _ => false,
        }
    }

    fn free(&mut self, run: BlockRun) {
        match &mut self.free {
            Free::Runs { by_place, .. } => {
                let mut run = run;
                if let Some(next) = by_place.remove(&(run.place + run.blocks)) {
                    run.blocks += next;
                }
                match by_place.range_mut(..run.place).next_back() {
                    Some((&place, blocks)) if place + *blocks == run.place => *blocks += run.blocks,
                    _ => drop(by_place.insert(run.place, run.blocks)),
                }
            }
            Free::Blocks { used, count, .. } => {
                used[run.place as usize..(run.place + run.blocks) as usize].fill(false);
                *count += run.blocks;
            }
        }
    }
}

/// Returns the number of blocks of `first..end` that have a place.
fn placed(runs: &BTreeMap<u64, BlockRun>, first: u64, end: u64) -> u64 {
    let before = runs.range(..first).next_back();
    let all = before.into_iter().chain(runs.range(first..end));
    all.map(|(&start, run)| (start + run.blocks).min(end).saturating_sub(start.max(first))).sum()
}

/// Assigns places to all of these blocks without one; the free blocks suffice.
fn fill(runs: &mut BTreeMap<u64, BlockRun>, first: u64, end: u64, free: &mut BTreeMap<u64, u64>) {
    let mut at = first;
    while at < end {
        let before =
            runs.range(..=at).next_back().map(|(&start, run)| (start + run.blocks, run.place + run.blocks));
        if let Some((known, _)) = before.filter(|(known, _)| *known > at) {
            at = known;
            continue;
        }
        let gap = runs.range(at..end).next().map_or(end, |(&start, _)| start) - at;
        let run = take_run(free, before.map(|(_, place)| place), gap).expect("there are enough");
        at += run.blocks;
        runs.insert(at - run.blocks, run);
    }
}

/// Takes up to `wanted` blocks: the free run at `after`, or the first free run that is long enough, or the largest.
fn take_run(free: &mut BTreeMap<u64, u64>, after: Option<u64>, wanted: u64) -> Option<BlockRun> {
    let place = after
        .filter(|place| free.contains_key(place))
        .or_else(|| free.iter().find(|&(_, &blocks)| blocks >= wanted).map(|(&place, _)| place))
        .or_else(|| {
            free.iter().max_by_key(|&(&place, &blocks)| (blocks, u64::MAX - place)).map(|(&place, _)| place)
        })?;
    let blocks = free.remove(&place)?;
    let taken = blocks.min(wanted);
    if taken < blocks {
        free.insert(place + taken, blocks - taken);
    }
    Some(BlockRun { place, blocks: taken })
}

fn append(runs: &mut BTreeMap<u64, BlockRun>, start: u64, run: BlockRun) {
    if let Some((_, last)) = runs.iter_mut().next_back()
        && last.place + last.blocks == run.place
    {
        last.blocks += run.blocks;
    } else {
        runs.insert(start, run);
    }
}

/// Draws evenly among the free blocks; there is at least one.
fn draw(used: &[bool], stream: &mut RandomStream) -> u64 {
    for _ in 0..64 {
        let place = stream.below(used.len() as u64);
        if !used[place as usize] {
            return place;
        }
    }
    // On a nearly full disk, choose among the free blocks by number.
    let free = used.iter().filter(|used| !**used).count() as u64;
    let number = stream.below(free) as usize;
    let (place, _) = used.iter().enumerate().filter(|(_, used)| !**used).nth(number).expect("counted");
    place as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(layout: Layout, blocks: u64) -> ObjectStore {
        ObjectStore::new(Some(Space::new(8192, blocks, layout, RandomStream::new(7, "test"))))
    }

    fn runs(store: &ObjectStore, id: u64, end: u64) -> Vec<BlockRun> {
        let mut runs = Vec::new();
        store.object(id).expect("made").runs(0, end, &mut runs);
        runs
    }

    #[test]
    fn a_disk_has_room_for_many_small_objects() {
        let mut store = store(Layout::Contiguous { reserve_bytes: 200 * 8192 }, 1000);
        for object in 0..1000 {
            let id = store.create(&format!("small {object}"), b"").expect("new");
            assert!(store.reserve(id, 0, 1), "object {object}");
            assert_eq!(runs(&store, id, 1).len(), 1);
        }
        let id = store.create("one more", b"").expect("new");
        assert!(!store.reserve(id, 0, 1), "there is no more room");
    }

    #[test]
    fn contiguous_objects_are_consecutive_and_grow_in_place() {
        let mut store = store(Layout::Contiguous { reserve_bytes: 10 * 8192 }, 100);
        let (first, second) = (store.create("a", b"").expect("new"), store.create("b", b"").expect("new"));
        assert!(store.reserve(first, 0, 8192) && store.reserve(second, 5 * 8192, 6 * 8192));
        assert_eq!(runs(&store, first, 8), [BlockRun { place: 0, blocks: 8 }]);
        assert_eq!(runs(&store, second, 8), [BlockRun { place: 10, blocks: 8 }]);
        assert!(store.reserve(second, 0, 25 * 8192));
        assert_eq!(runs(&store, second, 25), [BlockRun { place: 10, blocks: 25 }]);
        assert!(store.reserve(first, 0, 15 * 8192));
        assert_eq!(
            runs(&store, first, 15),
            [BlockRun { place: 0, blocks: 10 }, BlockRun { place: 35, blocks: 5 }]
        );
        assert!(!store.reserve(first, 0, 100 * 8192));
    }

    #[test]
    fn removed_and_truncated_blocks_are_free_again() {
        for layout in [Layout::Contiguous { reserve_bytes: 8192 }, Layout::Random] {
            let mut store = store(layout, 100);
            for _ in 0..50 {
                let id = store.create("a", b"").expect("new");
                assert!(store.resize(id, 100 * 8192));
                let other = store.create("b", b"").expect("new");
                assert!(!store.reserve(other, 0, 8192));
                assert!(store.resize(id, 60 * 8192 + 1) && store.resize(other, 39 * 8192));
                assert!(!store.reserve(other, 39 * 8192, 40 * 8192));
                assert!(store.remove("a") && store.remove("b"));
            }
        }
    }

    #[test]
    fn a_reservation_that_does_not_fit_takes_no_space() {
        for layout in [Layout::Contiguous { reserve_bytes: 8192 }, Layout::Random] {
            let mut store = store(layout, 100);
            let id = store.create("a", b"").expect("new");
            assert!(store.reserve(id, 0, 50 * 8192));
            // Fails at once: a disk of a terabyte is not filled block by block first.
            assert!(!store.reserve(id, 0, 101 * 8192) && !store.resize(id, OBJECT_BYTES_MAX + 1));
            let space = store.space().expect("it is a disk");
            assert_eq!((space.bytes, space.free), (100 * 8192, 50 * 8192));
            let other = store.create("b", b"").expect("new");
            assert!(store.resize(other, 50 * 8192));
            assert!(store.reserve(id, 10 * 8192, 50 * 8192), "it has its places");
        }
    }

    #[test]
    fn an_object_longer_than_its_disk_has_holes() {
        for layout in [Layout::Contiguous { reserve_bytes: 8192 }, Layout::Random] {
            let mut store = store(layout, 100);
            let free = |store: &ObjectStore| store.space().expect("it is a disk").free / 8192;
            let id = store.create("a", b"").expect("new");
            assert!(store.resize(id, OBJECT_BYTES_MAX));
            assert_eq!(free(&store), 100);
            for (block, left) in [(1_000, 98), (1 << 40, 96), (1_001, 95), (500, 93), (1_000, 93)] {
                assert!(store.reserve(id, block * 8192, (block + 2) * 8192), "{block}");
                assert_eq!(free(&store), left, "{block}");
                let object = store.object(id).expect("it exists");
                let places: Vec<_> = (block - 1..block + 2).map(|block| object.place(block)).collect();
                assert!(places[1].is_some() && places[2].is_some() && places[1] != places[2], "{places:?}");
            }
            assert!(
                !store.reserve(id, 2_000 * 8192, 2_094 * 8192)
                    && store.reserve(id, 2_000 * 8192, 2_093 * 8192)
            );
            assert!(store.resize(id, 1_001 * 8192));
            assert_eq!(free(&store), 97);
            assert!(store.remove("a"));
            assert_eq!(free(&store), 100);
        }
    }

    #[test]
    fn random_blocks_are_spread_over_the_disk() {
        let mut store = store(Layout::Random, 10_000);
        let id = store.create("a", b"").expect("new");
        assert!(store.reserve(id, 0, 1000 * 8192));
        let places: Vec<u64> = (0..1000).filter_map(|block| store.object(id)?.place(block)).collect();
        assert_eq!(places.len(), 1000);
        let mean = places.iter().sum::<u64>() / 1000;
        assert!((4700..5300).contains(&mean), "{mean}");
        assert!(places.iter().any(|&place| place < 100) && places.iter().any(|&place| place >= 9900));
    }

    #[test]
    fn a_truncated_object_loses_its_end() {
        let mut store = store(Layout::Random, 10);
        let id = store.create("a", b"").expect("new");
        store.object_mut(id).expect("made").put(0, &Payload::from(vec![1; 100]));
        assert!(store.resize(id, 10) && store.resize(id, 50));
        let object = store.object(id).expect("made");
        assert_eq!(object.get(0, 10).to_vec(), Some(vec![1; 10]));
        assert_eq!(object.get(10, 90), Payload::zeros(90));
    }
}
