//! The blocks that an I/O node caches, and their order of eviction: pure state, without futures.
//!
//! ```text
//!            claim              load begins          load ends
//!  (absent) -------> empty ----------------> loading ---------> all valid
//!                      | write                                     | write
//!                      v                                           v
//!                  partly valid, dirty  --- write-behind --->  clean again
//! ```
//!
//! A block in use is pinned. Of the blocks that are neither pinned, loading nor dirty, the least recently
//! used is evicted first.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;

use machine::{Buf, Condition, NodeId, Payload, RangeSet};
use slab::Slab;

use crate::free_space::ReservedSpace;
use crate::protocol::FileId;

/// Identifies an open stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StripeKey {
    pub(crate) file: FileId,
    pub(crate) stripe: u32,
    /// Number of the opening: needed because `file` and `stripe` come from the label, which may be that of a
    /// copy.
    pub(crate) opening: u64,
}

/// Identifies a block: the stripe, and the index of the block within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlockKey {
    pub(crate) stripe: StripeKey,
    pub(crate) block: u64,
}

/// A block in the cache.
pub(crate) struct Block {
    pub(crate) key: BlockKey,
    /// Absent only while the block is loading.
    pub(crate) buffer: Option<Buf>,
    /// Bytes of the buffer with contents of the file.
    pub(crate) valid: RangeSet,
    /// Valid bytes that are not on the disk yet.
    pub(crate) dirty: RangeSet,
    /// Space reserved for them on the disk.
    pub(crate) room: ReservedSpace,
    pub(crate) loading: bool,
    /// The client that wrote to the block last, if any.
    pub(crate) writer: Option<NodeId>,
    /// True if a task is scheduled to write the dirty bytes to the disk.
    pub(crate) write_queued: bool,
    /// Number of tasks that are scheduled to write, or are writing, bytes of the block to the disk.
    pub(crate) writers: u32,
    /// True if one of them is at the disk. The next one waits, or the disk might end with the older bytes of
    /// the two.
    pub(crate) at_disk: bool,
    /// Woken when the task at the disk is done.
    pub(crate) written: Rc<Condition>,
    /// Number of tasks that use the block now.
    pins: u32,
    last_use: u64,
    /// Woken when loading ends.
    pub(crate) loaded: Rc<Condition>,
}

impl Block {
    fn is_idle(&self) -> bool {
        self.pins == 0 && !self.loading && self.dirty.is_empty() && self.writers == 0
    }

    /// Returns the bytes `range`, if the block has them and is not loading.
    pub(crate) fn read(&self, range: &Range<u64>) -> Option<Payload> {
        if self.loading || !self.valid.contains(range) {
            return None;
        }
        self.buffer.as_ref().map(|buffer| buffer.slice(range.clone()))
    }

    /// Invalidates `range` of the buffer, which could not be written to the disk, except for bytes written to
    /// the buffer again since. Returns the block's dirty bytes, which are still to be written.
    pub(crate) fn lose(&mut self, range: &Range<u64>) -> &RangeSet {
        self.valid.remove(range);
        self.valid.extend(self.dirty.ranges());
        &self.dirty
    }

    /// Ends a task that was to write.
    pub(crate) fn end_writing(&mut self) {
        self.writers -= 1;
        // If it ended before it took any bytes, another task has to be started.
        self.write_queued &= self.writers > 0;
    }

    /// Puts a client's data into the buffer, from `start` on. If the first data of a block start at its
    /// beginning, they stay in the memory in which they arrived: a small file then does not occupy a whole
    /// block.
    ///
    /// # Panics
    /// If the block is loading.
    pub(crate) fn write(&mut self, start: u64, data: Payload, writer: NodeId) {
        let (buffer, range) = (self.buffer.as_mut().expect("not loading"), start..start + data.len());
        let is_all = self.valid.is_empty() || range.end == buffer.len();
        match start == 0 && is_all {
            true => buffer.adopt(data),
            false => buffer.put(start, &data),
        }
        self.mark_written(range, writer);
    }

    /// Marks `range` of the buffer as data written by a client.
    pub(crate) fn mark_written(&mut self, range: Range<u64>, writer: NodeId) {
        self.writer = Some(writer);
        self.valid.insert(range.clone());
        self.dirty.insert(range);
    }
}

/// Index of a block's slot in the cache. Valid until the block is unpinned.
pub(crate) type CacheSlot = usize;

/// A limited set of blocks, evicted least recently used first.
pub(crate) struct Cache {
    blocks_max: usize,
    blocks: Slab<Block>,
    by_key: BTreeMap<BlockKey, CacheSlot>,
    /// Idle and busy blocks alike, by the time of their last use.
    by_use: BTreeMap<u64, CacheSlot>,
    uses: u64,
}

/// Occupancy of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheOccupancy {
    pub(crate) blocks_max: u64,
    pub(crate) blocks: u64,
    pub(crate) dirty_blocks: u64,
    pub(crate) dirty_bytes: u64,
}

impl Cache {
    pub(crate) fn new(blocks_max: usize) -> Self {
        assert!(blocks_max > 0, "a cache of no blocks cannot serve anything");
        Cache {
            blocks_max,
            blocks: Slab::with_capacity(blocks_max),
            by_key: BTreeMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
        }
    }

    /// Returns the current occupancy.
    pub(crate) fn occupancy(&self) -> CacheOccupancy {
        let dirty = self.blocks.iter().map(|(_, block)| &block.dirty).filter(|dirty| !dirty.is_empty());
        let (dirty_blocks, dirty_bytes) =
            dirty.fold((0, 0), |(blocks, bytes), dirty| (blocks + 1, bytes + dirty.count()));
        CacheOccupancy {
            blocks_max: self.blocks_max as u64,
            blocks: self.blocks.len() as u64,
            dirty_blocks,
            dirty_bytes,
        }
    }

    pub(crate) fn contains(&self, key: BlockKey) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Returns the bytes `range` of the block, if it is cached and readable.
    pub(crate) fn read(&mut self, key: BlockKey, range: &Range<u64>) -> Option<Payload> {
        let place = *self.by_key.get(&key)?;
        let data = self.blocks[place].read(range)?;
        self.touch(place);
        Some(data)
    }

    /// Finds and pins the block.
    pub(crate) fn pin(&mut self, key: BlockKey) -> Option<CacheSlot> {
        let place = *self.by_key.get(&key)?;
        self.touch(place);
        self.blocks[place].pins += 1;
        Some(place)
    }

    /// Makes room for another block, by evicting the least recently used idle block if necessary. Returns
    /// true on success.
    pub(crate) fn make_room(&mut self) -> bool {
        self.blocks.len() < self.blocks_max || self.push_out()
    }

    /// Evicts the least recently used idle block. Returns true if there was one.
    pub(crate) fn push_out(&mut self) -> bool {
        let idle = self.by_use.values().copied().find(|&place| self.blocks[place].is_idle());
        idle.map(|place| self.remove(place)).is_some()
    }

    /// Puts an empty block into the cache, pinned. Call [`make_room`](Self::make_room) first.
    pub(crate) fn insert(&mut self, key: BlockKey, buffer: Buf) -> CacheSlot {
        assert!(self.blocks.len() < self.blocks_max, "the caller has made room");
        self.uses += 1;
        let place = self.blocks.insert(Block {
            key,
            buffer: Some(buffer),
            valid: RangeSet::default(),
            dirty: RangeSet::default(),
            room: ReservedSpace::default(),
            loading: false,
            writer: None,
            write_queued: false,
            writers: 0,
            at_disk: false,
            written: Rc::default(),
            pins: 1,
            last_use: self.uses,
            loaded: Rc::default(),
        });
        self.by_use.insert(self.uses, place);
        self.by_key.insert(key, place);
        place
    }

    pub(crate) fn unpin(&mut self, place: CacheSlot) {
        self.blocks[place].pins -= 1;
    }

    pub(crate) fn block(&mut self, place: CacheSlot) -> &mut Block {
        &mut self.blocks[place]
    }

    /// Returns the dirty blocks that no task is writing yet, of one stripe or of all, in order.
    pub(crate) fn unwritten(&self, stripe: Option<StripeKey>) -> Vec<BlockKey> {
        let places = match stripe {
            Some(stripe) => self.by_key.range(key_range(stripe, 0)),
            None => self.by_key.range(..),
        };
        let blocks = places.map(|(_, &place)| &self.blocks[place]);
        blocks.filter(|block| block.needs_writing()).map(|block| block.key).collect()
    }

    /// Returns the stripes with bytes that are not at the disk yet, each once.
    pub(crate) fn unwritten_stripes(&self) -> BTreeSet<StripeKey> {
        let blocks = self.blocks.iter().filter(|(_, block)| block.writers > 0 || block.needs_writing());
        blocks.map(|(_, block)| block.key.stripe).collect()
    }

    /// Returns the slot of a block, if it is dirty and no task is writing it yet.
    pub(crate) fn find_unwritten(&self, key: BlockKey) -> Option<CacheSlot> {
        self.by_key.get(&key).copied().filter(|&place| self.blocks[place].needs_writing())
    }

    /// Returns the condition to wait for if any byte of `range` is not at the disk yet. It is woken when a
    /// task that writes this block to the disk is done.
    pub(crate) fn in_flight(&mut self, key: BlockKey, range: &Range<u64>) -> Option<Rc<Condition>> {
        let block = &self.blocks[*self.by_key.get(&key)?];
        (block.at_disk || block.dirty.overlaps(range)).then(|| block.written.clone())
    }

    /// Returns the end offset of the last dirty byte of a stripe with blocks of `block_bytes`; 0 if no byte
    /// is dirty.
    pub(crate) fn dirty_end(&self, stripe: StripeKey, block_bytes: u64) -> u64 {
        let mut blocks = self.by_key.range(key_range(stripe, 0)).rev();
        let last = blocks.find_map(|(key, &place)| {
            let dirty = self.blocks[place].dirty.span()?;
            Some(key.block * block_bytes + dirty.end)
        });
        last.unwrap_or(0)
    }

    /// Discards the dirty bytes of a stripe that is about to be removed. Returns them by block.
    pub(crate) fn give_up(&mut self, stripe: StripeKey) -> Vec<(u64, RangeSet)> {
        let places = self.by_key.range(key_range(stripe, 0));
        let given_up = places.map(|(key, &place)| {
            let block = &mut self.blocks[place];
            block.room = ReservedSpace::default();
            (key.block, std::mem::take(&mut block.dirty))
        });
        given_up.filter(|(_, bytes)| !bytes.is_empty()).collect()
    }

    /// Drops the blocks of a stripe from `first` on. Returns true if all were idle, so that none remain.
    pub(crate) fn forget(&mut self, stripe: StripeKey, first: u64) -> bool {
        let range = key_range(stripe, first);
        let places: Vec<CacheSlot> = self.by_key.range(range).map(|(_, &place)| place).collect();
        let mut all = true;
        for place in places {
            if self.blocks[place].is_idle() {
                self.remove(place);
            } else {
                all = false;
            }
        }
        all
    }

    /// Removes a block that could not be loaded, if no other task waits for it.
    pub(crate) fn discard(&mut self, place: CacheSlot) {
        if self.blocks[place].is_idle() && self.blocks[place].valid.is_empty() {
            self.remove(place);
        }
    }

    fn touch(&mut self, place: CacheSlot) {
        if self.blocks[place].last_use == self.uses {
            return;
        }
        self.uses += 1;
        let block = &mut self.blocks[place];
        self.by_use.remove(&block.last_use);
        block.last_use = self.uses;
        self.by_use.insert(self.uses, place);
    }

    fn remove(&mut self, place: CacheSlot) {
        let block = self.blocks.remove(place);
        self.by_use.remove(&block.last_use);
        self.by_key.remove(&block.key);
    }
}

impl Block {
    fn needs_writing(&self) -> bool {
        !self.dirty.is_empty() && !self.write_queued
    }
}

fn key_range(stripe: StripeKey, first: u64) -> RangeInclusive<BlockKey> {
    BlockKey { stripe, block: first }..=BlockKey { stripe, block: u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::BufferPool;

    fn key(block: u64) -> BlockKey {
        BlockKey { stripe: stripe(0), block }
    }

    fn stripe(stripe: u32) -> StripeKey {
        StripeKey { file: FileId(1), stripe, opening: 7 }
    }

    fn cache_of(blocks: &[u64]) -> (Cache, BufferPool) {
        let (mut cache, pool) = (Cache::new(blocks.len()), BufferPool::new(64));
        for &block in blocks {
            let place = cache.insert(key(block), pool.try_take(8).expect("room"));
            cache.unpin(place);
        }
        (cache, pool)
    }

    #[test]
    fn the_least_recently_used_block_is_evicted_first() {
        let (mut cache, _) = cache_of(&[1, 2, 3]);
        let place = cache.pin(key(1)).expect("present");
        cache.unpin(place);
        assert!(cache.make_room());
        assert_eq!([1, 2, 3].map(|block| cache.contains(key(block))), [true, false, true]);
    }

    #[test]
    fn pinned_loading_and_dirty_blocks_are_not_evicted() {
        let (mut cache, _) = cache_of(&[1, 2, 3]);
        cache.pin(key(1)).expect("present");
        for (block, loading) in [(2, true), (3, false)] {
            let place = cache.pin(key(block)).expect("present");
            cache.block(place).loading = loading;
            if !loading {
                cache.block(place).mark_written(0..1, NodeId(1));
            }
            cache.unpin(place);
        }
        assert!(!cache.make_room());
        assert_eq!(cache.unwritten(None).len(), 1);
    }

    #[test]
    fn dirty_blocks_and_their_bytes_are_counted() {
        let (mut cache, _) = cache_of(&[1, 2, 3]);
        for (block, written) in [(1, 0..2), (1, 4..7), (3, 1..2)] {
            let place = cache.pin(key(block)).expect("present");
            cache.block(place).mark_written(written, NodeId(1));
            cache.unpin(place);
        }
        let full = CacheOccupancy { blocks_max: 3, blocks: 3, dirty_blocks: 2, dirty_bytes: 6 };
        assert_eq!(cache.occupancy(), full);
        cache.give_up(stripe(0));
        assert_eq!(cache.occupancy(), CacheOccupancy { dirty_blocks: 0, dirty_bytes: 0, ..full });
    }

    #[test]
    fn abandoned_blocks_are_not_written() {
        let (mut cache, _) = cache_of(&[1, 2]);
        let place = cache.pin(key(2)).expect("present");
        cache.block(place).mark_written(0..4, NodeId(1));
        cache.unpin(place);
        assert_eq!(cache.unwritten(None), [key(2)]);
        assert_eq!(cache.unwritten_stripes(), BTreeSet::from([stripe(0)]));
        cache.give_up(stripe(1));
        cache.give_up(StripeKey { opening: 8, ..stripe(0) });
        assert_eq!(cache.find_unwritten(key(2)), Some(place), "another stripe");
        assert_eq!(cache.give_up(stripe(0)), [(2, RangeSet::from(0..4))]);
        assert!(cache.unwritten(None).is_empty() && cache.unwritten_stripes().is_empty());
        cache.block(place).writers = 1;
        assert_eq!(cache.unwritten_stripes(), BTreeSet::from([stripe(0)]), "a write is in flight");
    }

    #[test]
    fn the_first_write_to_a_block_takes_no_memory_for_the_rest() {
        let (mut cache, _) = cache_of(&[1]);
        let place = cache.pin(key(1)).expect("present");
        let block = cache.block(place);
        block.write(0, vec![1, 2].into(), NodeId(1));
        let contents =
            |block: &Block| block.buffer.as_ref().map(|buffer| buffer.slice(0..8)).expect("it exists");
        let real = |payload: &Payload| payload.slice(0..2).as_contiguous().is_some();
        assert!(real(&contents(block)) && contents(block).as_contiguous().is_none());
        block.write(1, vec![3, 4].into(), NodeId(1));
        assert_eq!(contents(block).to_vec(), Some(vec![1, 3, 4, 0, 0, 0, 0, 0]));
        block.write(0, vec![5].into(), NodeId(1));
        assert_eq!(contents(block).to_vec(), Some(vec![5, 3, 4, 0, 0, 0, 0, 0]));
        assert_eq!(block.dirty.ranges().next(), Some(0..3));
    }

    #[test]
    fn lost_bytes_are_invalid_unless_they_were_rewritten() {
        let (mut cache, _) = cache_of(&[1, 2]);
        let place = cache.pin(key(2)).expect("present");
        let block = cache.block(place);
        block.mark_written(0..6, NodeId(1));
        block.dirty = RangeSet::default();
        block.mark_written(2..3, NodeId(2));
        assert_eq!(block.lose(&(0..5)).ranges().next(), Some(2..3));
        assert_eq!(block.valid.ranges().collect::<Vec<_>>(), [2..3, 5..6]);
        assert_eq!(cache.dirty_end(stripe(0), 8), 19);
        assert_eq!(cache.dirty_end(stripe(1), 8), 0);
    }

    #[test]
    fn forget_keeps_other_stripes_and_earlier_blocks() {
        let (mut cache, _) = cache_of(&[1, 2, 3]);
        assert!(cache.forget(stripe(1), 0));
        assert!(cache.forget(stripe(0), 2));
        assert_eq!([1, 2, 3].map(|block| cache.contains(key(block))), [true, false, false]);
    }
}
