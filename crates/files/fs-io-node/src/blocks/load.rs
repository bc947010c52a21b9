//! Reads blocks from their disks into the cache.

use std::ops::Range;

use machine::{Buf, Machine, RangeSet, Work};

use super::Blocks;
use crate::cache::CacheSlot;
use crate::error::Failure;
use crate::open_stripe::OpenStripe;
use crate::schedule::{DiskUser, Urgency};

impl<M: Machine> Blocks<M> {
    fn block_of(&self, place: CacheSlot) -> u64 {
        self.cache.borrow_mut().block(place).key.block
    }

    pub(super) async fn wait_until_loaded(&self, place: CacheSlot) {
        loop {
            let loaded = {
                let mut cache = self.cache.borrow_mut();
                let block = cache.block(place);
                if !block.loading {
                    return;
                }
                block.loaded.clone()
            };
            loaded.wait().await;
        }
    }

    /// Makes `range` of the pinned block valid in its buffer.
    pub(super) async fn make_valid(
        &self,
        stripe: &OpenStripe,
        place: CacheSlot,
        range: &Range<u64>,
        user: DiskUser,
    ) -> Result<(), Box<Failure>> {
        if user.urgency == Urgency::Demand {
            // Another task may be loading the block at background priority.
            self.promote(stripe, self.block_of(place));
        }
        self.wait_until_loaded(place).await;
        if self.cache.borrow_mut().block(place).valid.contains(range) {
            return Ok(());
        }
        self.load(stripe, place, user).await
    }

    /// Reads the block from its disk. Bytes that are valid in the cache, or that clients write during the read, take
    /// precedence.
    async fn load(&self, stripe: &OpenStripe, place: CacheSlot, user: DiskUser) -> Result<(), Box<Failure>> {
        let (key, own) = {
            let mut cache = self.cache.borrow_mut();
            let block = cache.block(place);
            block.loading = true;
            // A partly written block keeps its buffer; the disk's bytes are read into another buffer.
            let own = if block.valid.is_empty() { block.buffer.take() } else { None };
            (block.key, own)
        };
        let into = match own {
            Some(buffer) => buffer,
            None => self.buffers.take(stripe.block_bytes()).await,
        };
        let read = self
            .machine
            .contain("reading a block", self.read_disk(stripe, key.block * stripe.block_bytes(), into, user));
        let outcome = read.await.flatten();
        // A failed read has consumed its buffer, so the block gets a new one.
        let has_none = outcome.is_err() && self.cache.borrow_mut().block(place).buffer.is_none();
        let empty = if has_none { Some(self.buffers.take(stripe.block_bytes()).await) } else { None };
        let mut cache = self.cache.borrow_mut();
        let block = cache.block(place);
        block.loading = false;
        block.loaded.wake_all();
        match outcome {
            Ok(mut buffer) => {
                if let Some(written) = &block.buffer {
                    for run in block.valid.ranges() {
                        buffer.put(run.start, &written.slice(run));
                    }
                }
                block.buffer = Some(buffer);
                block.valid = RangeSet::from(0..stripe.block_bytes());
                Ok(())
            }
            Err(error) => {
                block.buffer = block.buffer.take().or(empty);
                Err(error.into())
            }
        }
    }

    /// Fills `into` with the stripe's bytes on disk from `offset` on.
    pub(super) async fn read_disk(
        &self,
        stripe: &OpenStripe,
        offset: u64,
        into: Buf,
        user: DiskUser,
    ) -> machine::Result<Buf> {
        self.machine.compute(Work::QueueDiskRequest).await;
        self.disks.read(stripe.home, offset, into, user).await
    }
}
