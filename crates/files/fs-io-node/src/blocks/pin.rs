//! Finds a block in the cache, or a slot for the block.

use std::rc::Rc;

use machine::Machine;

use super::Blocks;
use crate::cache::{BlockKey, CacheSlot};
use crate::open_stripe::OpenStripe;
use crate::schedule::Urgency;

/// Pin of a block: the block is in use until the pin is dropped.
pub(super) struct PinnedBlock<'a, M: Machine> {
    blocks: &'a Blocks<M>,
    pub(super) place: CacheSlot,
}

impl<M: Machine> Drop for PinnedBlock<'_, M> {
    fn drop(&mut self) {
        self.blocks.unpin(self.place);
    }
}

impl<M: Machine> Blocks<M> {
    /// Returns the pin of the block in this slot, which the caller has pinned in the cache.
    pub(super) fn pinned(&self, place: CacheSlot) -> PinnedBlock<'_, M> {
        PinnedBlock { blocks: self, place }
    }

    /// Finds the block, or a slot for the block, and pins the block. Demand tasks waiting for a slot are woken before
    /// background tasks.
    pub(super) async fn pin(
        self: &Rc<Self>,
        stripe: &Rc<OpenStripe>,
        key: BlockKey,
        urgency: Urgency,
    ) -> PinnedBlock<'_, M> {
        let room = if urgency == Urgency::Background { &self.room_in_background } else { &self.room };
        loop {
            let found = self.cache.borrow_mut().pin(key);
            if let Some(place) = found.or_else(|| self.try_insert(stripe, key)) {
                return PinnedBlock { blocks: self, place };
            }
            if self.cache.borrow_mut().make_room() {
                machine::sometimes!("a request waits for the memory of evicted blocks");
                // Replies in flight can still hold the memory of evicted blocks. Wait for memory in FIFO order and keep
                // it; otherwise later requests would overtake this one.
                let buffer = self.buffers.take(stripe.block_bytes()).await;
                let mut cache = self.cache.borrow_mut();
                if !cache.contains(key) && cache.make_room() {
                    return PinnedBlock { blocks: self, place: cache.insert(key, buffer) };
                }
                continue;
            }
            // All blocks are in use or dirty, so start to write the dirty blocks.
            if !self.start_writing_all().await {
                room.wait().await;
            }
            // Then check again: a slot that became free in the meantime has woken only tasks that were already waiting.
        }
    }

    /// Wakes the tasks that wait for a free slot.
    pub(super) fn wake_for_room(&self) {
        self.room.wake_all();
        self.room_in_background.wake_all();
    }

    /// Puts an empty block into the cache, if a slot and memory are free, or can be taken from idle blocks.
    pub(super) fn try_insert(&self, stripe: &OpenStripe, key: BlockKey) -> Option<CacheSlot> {
        let mut cache = self.cache.borrow_mut();
        if !cache.make_room() {
            return None;
        }
        // An evicted block releases no memory yet if an unsent answer still holds the memory.
        while self.buffers.free_bytes() < stripe.block_bytes() && cache.push_out() {}
        let buffer = self.buffers.try_take(stripe.block_bytes())?;
        Some(cache.insert(key, buffer))
    }

    fn unpin(&self, place: CacheSlot) {
        let mut cache = self.cache.borrow_mut();
        cache.unpin(place);
        cache.discard(place);
        drop(cache);
        self.wake_for_room();
    }
}
