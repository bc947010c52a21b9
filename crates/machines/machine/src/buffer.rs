//! Buffers: memory of a bounded pool, owned by one task or one transfer at a time.
//!
//! A transfer takes its buffer by value and returns it. So no device ever writes to memory that its owner has dropped,
//! and io_uring is as safe to use as a plain read. Dropping a buffer, or the last payload sliced from it, returns its
//! bytes to the pool. The limit of the pool controls the flow of data in a node: a task that finds no free buffer
//! waits. Waiting tasks get buffers in order of arrival.

use std::cell::{Ref, RefCell};
use std::ops::Range;
use std::rc::Rc;

use crate::checksums::{Checksums, MemoryChange};
use crate::payload::{Payload, PayloadPiece, SharedBytes};
use crate::permits::Permit;
use crate::slot::{Grant, MemorySlot, PoolState};

/// Maximum number of phantoms that a buffer collects before it merges them into its contents.
const PUTS_MAX: usize = 1 << 16;

/// Pool of buffers with a limit on their total bytes. Cloning returns another handle to the same pool.
#[derive(Clone)]
pub struct BufferPool {
    hoard: Rc<PoolState>,
}

impl BufferPool {
    /// Returns a pool whose lent buffers never have more than `capacity_bytes` in total.
    pub fn new(capacity_bytes: u64) -> Self {
        BufferPool { hoard: Rc::new(PoolState::new(capacity_bytes)) }
    }

    /// Takes a buffer of `bytes` bytes. Waits behind earlier takers until this number of bytes is free.
    ///
    /// # Panics
    /// If `bytes` is more than the capacity of the pool: the wait would never end.
    pub async fn take(&self, bytes: u64) -> Buf {
        let permit = self.permit(bytes).await;
        self.lend(bytes, permit, None)
    }

    /// Takes a buffer with the length of `share`, which is a buffer of another pool: one that limits one of several
    /// users of this pool. Both buffers return to their pools together.
    ///
    /// # Panics
    /// If `share` is longer than the capacity of the pool.
    pub async fn take_for(&self, share: Buf) -> Buf {
        let permit = self.permit(share.len()).await;
        self.lend(share.len(), permit, Some(share.grant))
    }

    async fn permit(&self, bytes: u64) -> Permit {
        let capacity = self.hoard.capacity_bytes;
        assert!(bytes <= capacity, "a buffer of {bytes} bytes is larger than its pool of {capacity} bytes");
        self.hoard.permits.take_many(bytes).await
    }

    /// Returns an empty vector with capacity for `bytes` bytes, for a device that fills the vector before it takes the
    /// buffer: see [`fill_memory`](Buf::fill_memory).
    pub fn spare_memory(&self, bytes: usize) -> Vec<u8> {
        let mut memory = self.hoard.take_spare();
        memory.clear();
        memory.reserve_exact(bytes);
        memory
    }

    /// Takes a buffer of `bytes` bytes if they are free and no task waits for a buffer.
    pub fn try_take(&self, bytes: u64) -> Option<Buf> {
        let permit = self.hoard.permits.try_take_many(bytes)?;
        Some(self.lend(bytes, permit, None))
    }

    /// Returns the number of free bytes.
    pub fn free_bytes(&self) -> u64 {
        self.hoard.permits.free()
    }

    /// Returns the capacity of the pool in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.hoard.capacity_bytes
    }

    fn lend(&self, bytes: u64, permit: Permit, share: Option<Rc<Grant>>) -> Buf {
        let grant = Grant::new(self.hoard.clone(), permit, share);
        Buf { grant, bytes, contents: Payload::zeros(bytes).into(), puts: RefCell::default() }
    }
}

/// Writable buffer. Its contents start as zeros.
///
/// Payloads sliced from the buffer share its memory, which returns to the pool only after they are dropped. A payload
/// without memory (zeros, phantoms) does not delay the return: hold the buffer itself until its transfer is over.
pub struct Buf {
    grant: Rc<Grant>,
    bytes: u64,
    contents: RefCell<Payload>,
    /// Phantoms that were put but are not yet merged into the contents, with their offsets. Merging thousands of single
    /// puts at once saves time.
    puts: RefCell<Vec<(u64, Payload)>>,
}

impl Buf {
    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Returns true if the buffer has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the bytes `range` of the contents. The payload shares the memory; later changes to the buffer do not
    /// alter it.
    pub fn slice(&self, range: Range<u64>) -> Payload {
        self.settled().slice(range)
    }

    /// Returns the contents after merging all puts.
    fn settled(&self) -> Ref<'_, Payload> {
        let puts = self.puts.take();
        if !puts.is_empty() {
            let contents = with_puts(&self.contents.borrow(), &puts);
            self.contents.replace(contents);
        }
        self.contents.borrow()
    }

    fn set_contents(&mut self, contents: Payload) {
        self.puts.get_mut().clear();
        *self.contents.get_mut() = contents;
    }

    /// Puts `payload` at offset `at` of the contents.
    ///
    /// # Panics
    /// If the payload does not fit.
    pub fn put(&mut self, at: u64, payload: &Payload) {
        let (end, bytes) = (at + payload.len(), self.len());
        assert!(end <= bytes, "{} bytes at {at} do not fit in a buffer of {bytes} bytes", payload.len());
        if payload.is_empty() {
            return;
        }
        if payload.pieces().iter().all(is_real) {
            let run = self.exclusive_run();
            let source = payload.as_source_at(run.distance_to_unit(at));
            let range = at as usize..end as usize;
            let change = MemoryChange { range: range.clone(), is_whole: true, source };
            run.change(change, |memory| assert!(payload.copy_to(&mut memory[range]), "all pieces are real"));
        } else {
            self.puts.get_mut().push((at, payload.clone()));
            if self.puts.get_mut().len() == PUTS_MAX {
                drop(self.settled());
            }
        }
    }

    /// Splits `payload` into parts of `part_bytes` bytes, and puts them at the offsets `at`, `at + stride`, `at + 2 *
    /// stride` and so on.
    ///
    /// # Panics
    /// If a part does not fit.
    pub fn put_strided(&mut self, at: u64, part_bytes: u64, stride: u64, payload: &Payload) {
        let places = (at..).step_by(stride.max(1) as usize);
        if let [PayloadPiece::Bytes(shared)] = payload.pieces() {
            let parts = shared.as_slice().chunks(part_bytes.max(1) as usize).zip(places);
            let end = parts.clone().last().map_or(at, |(part, at)| at + part.len() as u64);
            self.change_parts(at..end, payload, |memory| {
                for (part, at) in parts {
                    memory[at as usize..at as usize + part.len()].copy_from_slice(part);
                }
            });
        } else if payload.pieces().iter().all(is_real) || stride < part_bytes {
            let parts = (0..payload.len()).step_by(part_bytes.max(1) as usize);
            for (start, at) in parts.zip(places) {
                self.put(at, &payload.slice(start..payload.len().min(start + part_bytes)));
            }
        } else {
            let places = places.map(|place| (place, part_bytes));
            let contents = interleaved(&self.settled(), payload, places);
            self.set_contents(contents);
        }
    }

    /// Splits `payload` into consecutive parts and puts them at `places`: offsets and lengths in bytes, in ascending
    /// order and without overlap.
    ///
    /// # Panics
    /// If a part does not fit, or the sum of the lengths is not the length of the payload.
    pub fn scatter(&mut self, places: impl Iterator<Item = (u64, u64)>, payload: &Payload) {
        if let [PayloadPiece::Bytes(shared)] = payload.pieces() {
            let mut places = places.peekable();
            let all = places.peek().map_or(0, |(at, _)| *at)..self.len();
            self.change_parts(all, payload, |memory| {
                let mut rest = shared.as_slice();
                for (at, bytes) in places {
                    let (part, later) = rest.split_at(bytes as usize);
                    copy(part, &mut memory[at as usize..(at + bytes) as usize]);
                    rest = later;
                }
                assert!(rest.is_empty(), "the places have no room for {} bytes of the payload", rest.len());
            });
        } else if !payload.is_empty() && payload.pieces().iter().all(is_real) {
            self.scatter(places, &Payload::from(payload.to_vec().expect("it is real")));
        } else {
            let contents = interleaved(&self.settled(), payload, places);
            self.set_contents(contents);
        }
    }

    /// Lets `make` put parts of `payload` into the bytes `range`.
    fn change_parts(&mut self, range: Range<u64>, payload: &Payload, make: impl FnOnce(&mut [u8])) {
        let range = range.start as usize..range.end as usize;
        let change = MemoryChange { range, is_whole: false, source: payload.as_source() };
        self.exclusive_run().change(change, make);
    }

    /// Returns the bytes at `places` in sequence: offsets and lengths in bytes, `bytes` bytes in total. Real bytes are
    /// copied, so that the buffer is not shared.
    ///
    /// # Panics
    /// If a place is not within the buffer, or the sum of the lengths is not `bytes`.
    pub fn gather(&self, places: impl Iterator<Item = (u64, u64)>, bytes: u64) -> Payload {
        let (mut gathered, contents) = (Payload::empty(), self.settled());
        if let Some(memory) = contents.as_contiguous() {
            return gather_memory(memory, places, bytes, !contents.is_known_damaged());
        }
        let mut contents = contents.reader();
        let mut end = 0;
        for (at, bytes) in places {
            contents.take(at - end, drop);
            contents.take(bytes, |piece| gathered.push(&piece.into()));
            end = at + bytes;
        }
        assert_eq!(gathered.len(), bytes, "`bytes` is the sum of the lengths");
        gathered
    }

    /// Makes `payload` the whole contents, without a copy; used by devices that deliver a payload.
    ///
    /// # Panics
    /// If the payload is not exactly as long as the buffer.
    pub fn fill(&mut self, payload: Payload) {
        assert_eq!(payload.len(), self.len(), "the payload is as long as the buffer");
        self.set_contents(payload);
    }

    /// Makes `payload` the contents, and moves its memory to this pool: another pool that had lent this memory gets its
    /// bytes back at once. Zeros fill the rest of the buffer.
    ///
    /// Used by long-lived owners of data that arrived in a bounded pool for short use, such as the receive pool of a
    /// network. Unshared memory moves from pool to pool without a copy, and the other pool gets spare memory in
    /// exchange. Shared memory of another pool is copied.
    ///
    /// # Panics
    /// If the payload is longer than the buffer.
    pub fn adopt(&mut self, payload: Payload) {
        let bytes = self.len();
        assert!(payload.len() <= bytes, "the payload fits in the buffer");
        let mut contents = Payload::empty();
        for piece in payload.into_pieces() {
            contents.push(&Payload::from(take_over(&self.grant, piece)));
        }
        contents.push(&Payload::zeros(bytes - contents.len()));
        self.set_contents(contents);
    }

    /// Returns an empty vector with the capacity of the buffer's length, for a device that fills a vector.
    ///
    /// The contents are zeros until [`fill_memory`](Self::fill_memory) returns the memory.
    pub fn take_memory(&mut self) -> Vec<u8> {
        let bytes = self.len();
        let contents = self.contents.take();
        self.set_contents(Payload::zeros(bytes));
        let own = contents.into_single_piece().and_then(PayloadPiece::into_exclusive_memory);
        let mut memory = own.unwrap_or_else(|| self.grant.take_spare());
        memory.clear();
        memory.reserve_exact(bytes as usize);
        memory
    }

    /// Makes `memory` the contents; zeros fill the rest of the buffer.
    ///
    /// # Panics
    /// If `memory` is longer than the buffer.
    pub fn fill_memory(&mut self, mut memory: Vec<u8>) {
        let bytes = self.len() as usize;
        assert!(memory.len() <= bytes, "the memory fits in the buffer");
        memory.resize(bytes, 0);
        let slot = Rc::new(MemorySlot::pooled(memory, self.grant.clone()));
        self.set_contents(Payload::from(PayloadPiece::Bytes(SharedBytes::new(slot, 0..bytes))));
    }

    /// Computes checksums of the contents. Call it only if the contents are known to be correct.
    pub fn note_checksums(&mut self) {
        drop(self.settled());
        if let Some(run) = self.contents.get_mut().as_one_run() {
            run.renew_checksums();
        }
    }

    /// Sets the checksums received with the contents.
    pub fn set_checksums(&mut self, checksums: Checksums) {
        drop(self.settled());
        if let Some(run) = self.contents.get_mut().as_one_run() {
            run.set_checksums(checksums);
        }
    }

    /// Returns the contents as one run of unshared memory, copying the contents if they are shared.
    fn exclusive_run(&mut self) -> &mut SharedBytes {
        drop(self.settled());
        if self.contents.get_mut().as_one_run().is_none_or(|run| run.exclusive_slot().is_none()) {
            let old = self.contents.get_mut().clone();
            let mut memory = self.grant.take_initialized(old.len() as usize);
            assert!(old.copy_to(&mut memory), "a buffer holds real bytes or phantoms, not both");
            let checksums = old.checksums_of_copy(&memory);
            drop(old);
            self.fill_memory(memory);
            self.set_checksums(checksums);
        }
        self.contents.get_mut().as_one_run().expect("the contents were just made one run")
    }
}

/// Returns the bytes at `places` of `memory` in sequence.
fn gather_memory(
    memory: &[u8],
    places: impl Iterator<Item = (u64, u64)>,
    bytes: u64,
    is_right: bool,
) -> Payload {
    let mut gathered = Vec::with_capacity(bytes as usize);
    for (at, bytes) in places {
        append(&memory[at as usize..(at + bytes) as usize], &mut gathered);
    }
    assert_eq!(gathered.len() as u64, bytes, "`bytes` is the sum of the lengths");
    if is_right {
        return Payload::from(gathered);
    }
    let checksums = Checksums::damaged(gathered.len());
    Payload::with_checksums(gathered, checksums)
}

/// Copies a part of a payload. Copies 8 bytes inline, because for small records the call to `memcpy` would take most of
/// the time.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    match (<&[u8; 8]>::try_from(from), <&mut [u8; 8]>::try_from(&mut *to)) {
        (Ok(from), Ok(to)) => *to = *from,
        _ => to.copy_from_slice(from),
    }
}

/// Appends a part of a payload. Appends 8 bytes inline, because for small records the call to `memcpy` would take most
/// of the time.
#[inline]
fn append(from: &[u8], to: &mut Vec<u8>) {
    match <&[u8; 8]>::try_from(from) {
        Ok(from) => to.extend_from_slice(from),
        _ => to.extend_from_slice(from),
    }
}

/// Returns the contents after putting the parts of a payload at `places` (offsets and lengths). Takes one pass, because
/// there can be thousands of places. The last part may be shorter than its place.
fn interleaved(contents: &Payload, payload: &Payload, places: impl Iterator<Item = (u64, u64)>) -> Payload {
    let (mut rest, mut parts) = (contents.reader(), payload.reader());
    let (mut whole, mut left) = (Payload::empty(), payload.len());
    for (place, bytes) in places {
        let bytes = bytes.min(left);
        if bytes == 0 {
            break;
        }
        rest.take(place - whole.len(), |piece| whole.push(&piece.into()));
        rest.take(bytes, drop);
        parts.take(bytes, |piece| whole.push(&piece.into()));
        left -= bytes;
    }
    rest.take(contents.len() - whole.len(), |piece| whole.push(&piece.into()));
    whole
}

/// Returns the contents after applying `puts` (offsets and payloads) in order.
fn with_puts(contents: &Payload, puts: &[(u64, Payload)]) -> Payload {
    let mut ordered: Vec<&(u64, Payload)> = puts.iter().collect();
    ordered.sort_by_key(|(at, _)| *at);
    if ordered.windows(2).all(|pair| pair[0].0 + pair[0].1.len() <= pair[1].0) {
        let payload = Payload::concat(ordered.iter().map(|(_, payload)| payload));
        return interleaved(contents, &payload, ordered.iter().map(|(at, payload)| (*at, payload.len())));
    }
    puts.iter().fold(contents.clone(), |contents, (at, payload)| {
        let after = contents.slice(at + payload.len()..contents.len());
        Payload::concat([&contents.slice(0..*at), payload, &after])
    })
}

/// Returns the piece after moving its memory to the pool of `grant`, unless the memory belongs to no pool.
fn take_over(grant: &Rc<Grant>, piece: PayloadPiece) -> PayloadPiece {
    let PayloadPiece::Bytes(mut shared) = piece else { return piece };
    if !shared.slot().is_of_another(grant) {
        return PayloadPiece::Bytes(shared);
    }
    let spare = grant.take_spare();
    if let Some(slot) = shared.exclusive_slot() {
        slot.change_pools(grant.clone(), spare);
        return PayloadPiece::Bytes(shared);
    }
    let mut memory = spare;
    memory.clear();
    memory.extend_from_slice(shared.as_slice());
    let range = 0..memory.len();
    let mut slot = MemorySlot::pooled(memory, grant.clone());
    slot.set_checksums(shared.kept_checksums());
    PayloadPiece::Bytes(SharedBytes::new(Rc::new(slot), range))
}

fn is_real(piece: &PayloadPiece) -> bool {
    matches!(piece, PayloadPiece::Bytes(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Source;

    #[test]
    fn memory_returns_with_the_last_payload() {
        let pool = BufferPool::new(100);
        let mut buffer = pool.try_take(60).expect("60 of 100 bytes are free");
        buffer.put(10, &Payload::from(vec![1, 2, 3]));
        let payload = buffer.slice(10..13);
        drop(buffer);
        assert!(pool.try_take(60).is_none());
        assert_eq!(payload.to_vec(), Some(vec![1, 2, 3]));
        drop(payload);
        assert_eq!(pool.free_bytes(), 100);
    }

    #[test]
    fn a_share_returns_with_the_buffer_taken_for_it() {
        let (pool, part) = (BufferPool::new(100), BufferPool::new(30));
        let share = part.try_take(30).expect("30 bytes are free");
        let mut take = std::pin::pin!(pool.take_for(share));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let std::task::Poll::Ready(mut buffer) = take.as_mut().poll(&mut context) else {
            panic!("the bytes are free")
        };
        buffer.fill_memory(vec![1; 30]);
        let payload = buffer.slice(0..10);
        drop(buffer);
        assert_eq!((pool.free_bytes(), part.free_bytes()), (70, 0));
        drop(payload);
        assert_eq!((pool.free_bytes(), part.free_bytes()), (100, 30));
    }

    #[test]
    fn parts_are_put_at_equal_distances() {
        let pool = BufferPool::new(20);
        let pieces = [vec![1, 1, 2], vec![2, 3, 3]].map(Payload::from);
        for payload in [Payload::from(vec![1, 1, 2, 2, 3, 3]), Payload::concat(&pieces)] {
            let mut buffer = pool.try_take(10).expect("room");
            buffer.put_strided(1, 2, 3, &payload);
            assert_eq!(buffer.slice(0..10).to_vec(), Some(vec![0, 1, 1, 0, 2, 2, 0, 3, 3, 0]));
        }
    }

    #[test]
    fn phantom_parts_are_put_at_equal_distances() {
        let pool = BufferPool::new(30);
        let (file, other) = (Source(3), Source(4));
        for (at, part, stride, bytes) in
            [(0, 2, 4, 10), (1, 3, 3, 9), (3, 4, 7, 6), (20, 10, 10, 10), (5, 2, 9, 0)]
        {
            let (mut strided, mut single) =
                (pool.try_take(15).expect("room"), pool.try_take(15).expect("room"));
            let bytes = bytes.min(15u64.saturating_sub(at));
            let payload = Payload::concat([
                &Payload::phantom(file, 7, bytes / 2),
                &Payload::phantom(other, 0, bytes - bytes / 2),
            ]);
            for buffer in [&mut strided, &mut single] {
                buffer.put(2, &Payload::phantom(other, 100, 7));
            }
            if at + stride * (bytes.div_ceil(part).max(1) - 1) + part > 15 {
                continue;
            }
            strided.put_strided(at, part, stride, &payload);
            for (number, start) in (0..bytes).step_by(part as usize).enumerate() {
                single.put(at + stride * number as u64, &payload.slice(start..bytes.min(start + part)));
            }
            assert_eq!(strided.slice(0..15), single.slice(0..15), "{at} {part} {stride} {bytes}");
        }
    }

    #[test]
    fn gather_returns_scattered_parts() {
        let (pool, places) = (BufferPool::new(60), [(1, 3), (4, 1), (7, 8), (20, 5)]);
        let bytes = places.iter().map(|(_, bytes)| bytes).sum();
        let real = Payload::from((1..18).collect::<Vec<u8>>());
        let pieces = [real.slice(0..2), Payload::from(vec![9; 9]), real.slice(2..8)];
        for (before, payload) in [
            (Payload::zeros(30), real.clone()),
            (Payload::from(vec![7; 30]), Payload::concat(&pieces)),
            (Payload::phantom(Source(3), 5, 30), Payload::phantom(Source(4), 50, bytes)),
            (Payload::zeros(30), Payload::concat([&Payload::phantom(Source(4), 0, 9), &Payload::zeros(8)])),
        ] {
            let (mut scattered, mut single) =
                (pool.try_take(30).expect("room"), pool.try_take(30).expect("room"));
            scattered.fill(before.clone());
            single.fill(before);
            scattered.scatter(places.into_iter(), &payload);
            let mut start = 0;
            for (at, bytes) in places {
                single.put(at, &payload.slice(start..start + bytes));
                start += bytes;
            }
            assert_eq!(scattered.slice(0..30), single.slice(0..30));
            assert_eq!(scattered.gather(places.into_iter(), bytes), payload);
        }
    }

    #[test]
    fn of_overlapping_phantoms_the_last_one_put_remains() {
        const BYTES: u64 = 40;
        let pool = BufferPool::new(2 * BYTES);
        for (step, bytes) in [(7, 1), (7, 3), (11, 9)] {
            let (mut buffer, mut expected) =
                (pool.try_take(BYTES).expect("room"), vec![(Source::ZEROS, 0); BYTES as usize]);
            for number in 0..60 {
                let (at, source) = (number * step % (BYTES - bytes), Source(1 + number));
                buffer.put(at, &Payload::phantom(source, 100 + at, bytes));
                (at..at + bytes).for_each(|byte| expected[byte as usize] = (source, 100 + byte));
                if number % 17 == 0 {
                    assert_eq!(buffer.slice(at..at + bytes), Payload::phantom(source, 100 + at, bytes));
                }
            }
            let expected: Vec<_> =
                expected.into_iter().map(|(source, offset)| Payload::phantom(source, offset, 1)).collect();
            assert_eq!(buffer.slice(0..BYTES), Payload::concat(&expected));
            buffer.put(3, &Payload::phantom(Source(99), 0, 2));
            buffer.fill(Payload::zeros(BYTES));
            assert_eq!(buffer.slice(0..BYTES), Payload::zeros(BYTES), "earlier contents are replaced");
        }
    }

    #[test]
    fn a_slice_does_not_see_later_puts() {
        let mut buffer = BufferPool::new(8).try_take(4).expect("room");
        buffer.put(0, &Payload::from(vec![1, 1, 1, 1]));
        let before = buffer.slice(0..4);
        buffer.put(1, &Payload::from(vec![2, 2]));
        assert_eq!(before.to_vec(), Some(vec![1, 1, 1, 1]));
        assert_eq!(buffer.slice(0..4).to_vec(), Some(vec![1, 2, 2, 1]));
    }

    fn lent(pool: &BufferPool, bytes: &[u8]) -> Payload {
        let mut buffer = pool.try_take(bytes.len() as u64).expect("room");
        buffer.put(0, &Payload::from(bytes));
        buffer.slice(0..bytes.len() as u64)
    }

    #[test]
    fn adopted_memory_is_free_at_its_lender_at_once() {
        let (network, cache) = (BufferPool::new(8), BufferPool::new(100));
        let received = lent(&network, &[1; 8]);
        let place = received.as_contiguous().map(<[u8]>::as_ptr);
        assert_eq!(network.free_bytes(), 0);
        let mut page = cache.try_take(10).expect("room");
        page.adopt(received);
        assert_eq!((network.free_bytes(), cache.free_bytes()), (8, 90));
        assert_eq!(page.slice(0..10).to_vec(), Some(vec![1, 1, 1, 1, 1, 1, 1, 1, 0, 0]));
        assert_eq!(page.slice(0..8).as_contiguous().map(<[u8]>::as_ptr), place, "the memory was not copied");
        drop(page);
        assert_eq!(cache.free_bytes(), 100);
    }

    #[test]
    fn adopted_memory_that_others_share_is_copied() {
        let (network, cache) = (BufferPool::new(8), BufferPool::new(8));
        let received = lent(&network, &[1; 8]);
        let mut page = cache.try_take(8).expect("room");
        page.adopt(received.clone());
        drop(received);
        assert_eq!(network.free_bytes(), 8);
        assert_eq!(page.slice(0..8).to_vec(), Some(vec![1; 8]));
    }

    #[test]
    fn lenders_get_spare_memory_for_adopted_memory() {
        let (network, cache) = (BufferPool::new(8), BufferPool::new(8));
        let mut memory = Vec::new();
        for round in 0..3 {
            let received = lent(&network, &[round; 8]);
            memory.push(received.as_contiguous().map(<[u8]>::as_ptr));
            cache.try_take(8).expect("room").adopt(received);
        }
        assert_eq!(memory[2], memory[0], "memory released by the cache is reused");
    }

    #[test]
    fn phantoms_are_put_without_memory() {
        let mut buffer = BufferPool::new(1 << 40).try_take(1 << 40).expect("room");
        buffer.put(1 << 30, &Payload::phantom(crate::Source(3), 0, 1 << 20));
        assert_eq!(buffer.slice(1 << 30..(1 << 30) + 5), Payload::phantom(crate::Source(3), 0, 5));
        assert_eq!(buffer.slice(0..9), Payload::zeros(9));
    }

    fn checked(buffer: &Buf) -> bool {
        buffer.slice(0..buffer.len()).check().is_ok()
    }

    #[test]
    fn checksums_follow_puts_and_keep_damage_detectable() {
        let pool = BufferPool::new(1 << 20);
        let bytes: Vec<u8> = (0..20_000u32).map(|at| (at / 3) as u8).collect();
        let sent = |bytes: Vec<u8>| {
            let payload = Payload::from(bytes);
            let checksums = payload.checksums();
            Payload::with_checksums(payload.into_vec().expect("real"), checksums)
        };
        for at in [0, 1, 4096, 5000] {
            let good = sent(bytes.clone());
            let bad = good.with_flipped_bit(9000);
            for (payload, is_right) in [(good, true), (bad, false)] {
                let mut buffer = pool.try_take(30_000).expect("room");
                buffer.put(at, &payload);
                assert_eq!(checked(&buffer), is_right, "put at {at}");
                // The first put changes part of another unit, the second part of the same unit.
                buffer.put(at + 19_000, &Payload::from(vec![1; 10]));
                assert_eq!(checked(&buffer), is_right);
                buffer.put(at + 9_100, &Payload::from(vec![1; 10]));
                assert_eq!(checked(&buffer), is_right);
                let _shared = buffer.slice(0..10);
                buffer.put(at + 9_100, &Payload::from(vec![2; 10]));
                assert_eq!(checked(&buffer), is_right, "copied");
                let part = buffer.gather([(at + 9_050, 3), (at + 9_100, 9)].into_iter(), 12);
                assert_eq!(part.check().is_ok(), is_right);
                buffer.put(0, &sent(vec![7; 30_000]));
                assert!(checked(&buffer), "all bytes were replaced");
            }
            let good = sent(bytes.clone());
            let mut buffer = pool.try_take(30_000).expect("room");
            buffer.adopt(good.with_flipped_bit(9000));
            buffer.scatter([(50, 8), (9_500, 12)].into_iter(), &Payload::from(vec![1; 20]));
            assert!(!checked(&buffer));
        }
    }

    #[test]
    fn recorded_checksums_are_sent_unchanged() {
        let pool = BufferPool::new(1 << 20);
        let mut buffer = pool.try_take(10_000).expect("room");
        buffer.fill_memory(vec![3; 10_000]);
        buffer.note_checksums();
        let sent = buffer.slice(100..9_000).checksums();
        assert_eq!((sent.lead(), sent.sums().len()), (3996, 3));
        assert!(Payload::with_checksums(vec![3; 8_900], sent.clone()).arrived().is_ok());
        let mismatch = Payload::with_checksums([vec![3; 8_899], vec![2]].concat(), sent).arrived().err();
        assert_eq!(mismatch.map(|mismatch| (mismatch.offset, mismatch.bytes)), Some((8_092, 808)));
    }
}
