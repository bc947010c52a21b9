//! Lock-free ring of slots between the recording thread and the writer: neither waits for the other.
//!
//! Positions increase for ever; a slot's index is its position modulo the capacity, which is a power of two.
//!
//! ```text
//!            tail                  head       limit
//!   ..........|#####################|..........|....
//!             written by the        both written by the producer: slots before the head are
//!             consumer: slots       recorded; the producer must read the tail only when it
//!             before it are free    would pass the limit
//! ```
//!
//! The producer stores slots and then publishes them by storing the head (release), so that the consumer, which loads
//! the head (acquire), sees the slots. Conversely, the consumer reads slots and then frees them by storing the tail.
//! Below the limit, the producer reads no variable that the consumer writes.
//!
//! If the ring is full, records are counted as dropped: the producer never waits, and never overwrites a record.

use crate::primitives::{AtomicU64, Ordering, Slot, slots};

/// Result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// Recorded.
    Recorded,
    /// Recorded, and half of the ring is full: the caller should wake the consumer.
    HalfFull,
    /// Dropped and counted, because the ring is full.
    Dropped,
}

/// Ring with one producer and one consumer.
pub(crate) struct Ring {
    slots: Box<[Slot]>,
    producer: Producer,
    consumer: Consumer,
}

/// Fields that only the producer writes. They have their own pair of cache lines, because processors fetch cache lines
/// in pairs.
#[repr(align(128))]
struct Producer {
    head: AtomicU64,
    limit: AtomicU64,
    dropped: AtomicU64,
}

/// Fields that only the consumer writes.
#[repr(align(128))]
struct Consumer {
    tail: AtomicU64,
}

impl Ring {
    /// Returns an empty ring of `capacity` slots, a power of two.
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(capacity.is_power_of_two() && capacity >= 2, "a ring of {capacity} slots");
        let half = capacity as u64 / 2;
        let producer =
            Producer { head: AtomicU64::new(0), limit: AtomicU64::new(half), dropped: AtomicU64::new(0) };
        Ring { slots: slots(capacity), producer, consumer: Consumer { tail: AtomicU64::new(0) } }
    }

    fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    fn slot(&self, position: u64) -> &Slot {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// Records an entry: either all of these slots or none. For the producer only.
    #[inline]
    pub(crate) fn push(&self, content: &[[u64; 2]]) -> Pushed {
        let head = self.producer.head.load(Ordering::Relaxed);
        if head + content.len() as u64 > self.producer.limit.load(Ordering::Relaxed) {
            return self.push_at_limit(content);
        }
        self.publish(head, content);
        Pushed::Recorded
    }

    #[inline]
    fn publish(&self, head: u64, content: &[[u64; 2]]) {
        for (position, words) in (head..).zip(content) {
            let slot = self.slot(position);
            slot[0].store(words[0], Ordering::Relaxed);
            slot[1].store(words[1], Ordering::Relaxed);
        }
        self.producer.head.store(head + content.len() as u64, Ordering::Release);
    }

    #[cold]
    fn push_at_limit(&self, content: &[[u64; 2]]) -> Pushed {
        let Producer { head, limit, dropped } = &self.producer;
        let begin = head.load(Ordering::Relaxed);
        let end = begin + content.len() as u64;
        let tail = self.consumer.tail.load(Ordering::Acquire);
        if end - tail > self.capacity() {
            dropped.store(dropped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            // Make the next push read the tail again.
            limit.store(begin, Ordering::Relaxed);
            return Pushed::Dropped;
        }
        self.publish(begin, content);
        let is_half_full = end - tail >= self.capacity() / 2;
        let room = if is_half_full { self.capacity() } else { self.capacity() / 2 };
        limit.store(tail + room, Ordering::Relaxed);
        if is_half_full { Pushed::HalfFull } else { Pushed::Recorded }
    }

    /// Returns the end of the recorded slots. After this load, the caller sees all slots before the head.
    pub(crate) fn head(&self) -> u64 {
        self.producer.head.load(Ordering::Acquire)
    }

    /// Takes the recorded slots up to a head returned by [`head`](Self::head). For the consumer only.
    pub(crate) fn take(&self, head: u64, into: &mut Vec<[u64; 2]>) {
        let tail = self.consumer.tail.load(Ordering::Relaxed);
        into.extend((tail..head).map(|position| self.slot(position).each_ref().map(read)));
        self.consumer.tail.store(head, Ordering::Release);
    }

    /// Discards the recorded slots. For the consumer only.
    pub(crate) fn discard(&self) {
        self.consumer.tail.store(self.head(), Ordering::Release);
    }

    /// Returns the number of dropped entries since the ring was created.
    pub(crate) fn dropped(&self) -> u64 {
        self.producer.dropped.load(Ordering::Relaxed)
    }
}

fn read(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}
