//! Payloads: data of messages and disk transfers, which the file system moves but never reads.
//!
//! A payload is an ordered list of pieces. A piece is either real bytes, shared and immutable, or a *phantom*. A
//! phantom stores no bytes, but only the description "*n* bytes of source *s* from offset *o*". Slicing and joining
//! work alike on both kinds, and adjacent phantoms merge. So a test can prove that a scattered collective read
//! delivered exactly the right bytes of a file of any size, without storing any byte.
//!
//! `fs` may cut, join and place payloads. Only machines, interfaces to applications and tests read their bytes.

use std::ops::Range;
use std::rc::Rc;

use crate::checksums::{CHECKSUM_UNIT_BYTES, ChangeSource, ChecksumMismatch, Checksums, MemoryChange};
use crate::slot::MemorySlot;

/// Origin of the bytes of a phantom: a file's identity, or any number a test chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(pub u64);

impl Source {
    /// Source of zero bytes, as of unwritten data.
    pub const ZEROS: Source = Source(0);
}

/// Immutable data, cheap to clone, slice and join; real bytes or phantom.
#[derive(Clone, Default)]
pub struct Payload {
    bytes: u64,
    pieces: Pieces,
}

/// The pieces of a payload. Most payloads are one piece; only joined payloads need a list.
#[derive(Clone, Default)]
enum Pieces {
    #[default]
    None,
    One(PayloadPiece),
    Many(Vec<PayloadPiece>),
}

/// Part of a payload that is either one range of real memory or one phantom.
#[derive(Clone)]
pub enum PayloadPiece {
    /// Real bytes.
    Bytes(SharedBytes),
    /// The bytes `offset..offset + bytes` of `source`, which are not stored.
    Phantom {
        /// Source of the bytes.
        source: Source,
        /// Offset in bytes of the first byte in the source.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
    },
}

/// Range of immutable shared memory.
#[derive(Clone)]
pub struct SharedBytes {
    slot: Rc<MemorySlot>,
    start: usize,
    end: usize,
}

impl SharedBytes {
    pub(crate) fn new(slot: Rc<MemorySlot>, range: Range<usize>) -> Self {
        debug_assert!(range.start <= range.end && range.end <= slot.bytes().len());
        SharedBytes { slot, start: range.start, end: range.end }
    }

    fn unpooled(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        SharedBytes::new(Rc::new(MemorySlot::unpooled(bytes)), range)
    }

    /// Returns the bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.slot.bytes()[self.start..self.end]
    }

    fn is_whole(&self) -> bool {
        self.start == 0 && self.end == self.slot.bytes().len()
    }

    fn slice(&self, range: Range<u64>) -> Self {
        let start = self.start + range.start as usize;
        SharedBytes { slot: self.slot.clone(), start, end: start + (range.end - range.start) as usize }
    }

    pub(crate) fn slot(&self) -> &MemorySlot {
        &self.slot
    }

    /// Returns the memory with its grant, if the memory is not shared.
    pub(crate) fn exclusive_slot(&mut self) -> Option<&mut MemorySlot> {
        Rc::get_mut(&mut self.slot)
    }

    /// Checks all units that overlap these bytes. Fails with the first unit that does not match: its offset from the
    /// first of these bytes, and its length.
    fn check(&self) -> Result<(), (u64, u64)> {
        let failed = self.slot.checksums().check(self.slot.bytes(), &(self.start..self.end));
        failed.map_err(|unit| (unit.start.saturating_sub(self.start) as u64, unit.len() as u64))
    }

    /// Returns the checksums attached to these bytes; empty without checksums.
    pub(crate) fn kept_checksums(&self) -> Checksums {
        if self.slot.checksums().is_empty() { Checksums::default() } else { self.checksums() }
    }

    /// Sets the checksums of the memory, unless it is shared.
    pub(crate) fn set_checksums(&mut self, checksums: Checksums) {
        if let Some(slot) = self.exclusive_slot() {
            slot.set_checksums(checksums);
        }
    }

    /// Computes the checksums of the memory, unless it is shared.
    pub(crate) fn renew_checksums(&mut self) {
        if let Some(slot) = self.exclusive_slot() {
            slot.set_checksums(Checksums::of(slot.bytes()));
        }
    }

    /// Returns the checksums of these bytes: the attached checksums, and computed ones for the other bytes.
    pub fn checksums(&self) -> Checksums {
        self.slot.checksums().of_part(self.slot.bytes(), &(self.start..self.end))
    }

    /// Returns the distance in bytes from byte `at` to the next unit of the checksums.
    pub(crate) fn distance_to_unit(&self, at: u64) -> u64 {
        let unit = CHECKSUM_UNIT_BYTES;
        (unit + self.slot.checksums().lead() as u64 % unit - (self.start as u64 + at) % unit) % unit
    }

    /// Changes the bytes, and their checksums with them.
    ///
    /// # Panics
    /// If the memory is shared.
    pub(crate) fn change(&mut self, change: MemoryChange, make: impl FnOnce(&mut [u8])) {
        let (start, end) = (self.start, self.end);
        let slot = self.exclusive_slot().expect("memory that is not shared");
        let range = start + change.range.start..start + change.range.end;
        slot.change(&MemoryChange { range, ..change }, |memory| make(&mut memory[start..end]));
    }
}

impl PayloadPiece {
    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            PayloadPiece::Bytes(shared) => (shared.end - shared.start) as u64,
            PayloadPiece::Phantom { bytes, .. } => *bytes,
        }
    }

    /// Returns true if the piece has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory of the piece, if the piece is real and its memory is not shared.
    pub(crate) fn into_exclusive_memory(self) -> Option<Vec<u8>> {
        match self {
            PayloadPiece::Bytes(shared) => Rc::try_unwrap(shared.slot).ok().map(MemorySlot::into_bytes),
            PayloadPiece::Phantom { .. } => None,
        }
    }

    fn slice(&self, range: Range<u64>) -> PayloadPiece {
        match self {
            PayloadPiece::Bytes(shared) => PayloadPiece::Bytes(shared.slice(range)),
            PayloadPiece::Phantom { source, offset, .. } => PayloadPiece::Phantom {
                source: *source,
                offset: if *source == Source::ZEROS { 0 } else { offset + range.start },
                bytes: range.end - range.start,
            },
        }
    }

    /// Appends `next` and returns true if both are adjacent parts of the same source or memory.
    fn merge(&mut self, next: &PayloadPiece) -> bool {
        match (self, next) {
            (PayloadPiece::Bytes(mine), PayloadPiece::Bytes(theirs)) => {
                let adjacent = Rc::ptr_eq(&mine.slot, &theirs.slot) && mine.end == theirs.start;
                if adjacent {
                    mine.end = theirs.end;
                }
                adjacent
            }
            (
                PayloadPiece::Phantom { source, offset, bytes },
                PayloadPiece::Phantom { source: next_source, offset: next_offset, bytes: next_bytes },
            ) => {
                let adjacent =
                    source == next_source && (*source == Source::ZEROS || *offset + *bytes == *next_offset);
                if adjacent {
                    *bytes += next_bytes;
                }
                adjacent
            }
            _ => false,
        }
    }
}

impl Payload {
    /// Returns a payload without bytes.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns a phantom: the bytes `offset..offset + bytes` of `source`.
    pub fn phantom(source: Source, offset: u64, bytes: u64) -> Self {
        let offset = if source == Source::ZEROS { 0 } else { offset };
        Self::from(PayloadPiece::Phantom { source, offset, bytes })
    }

    /// Returns a payload of zeros, which are not stored.
    pub fn zeros(bytes: u64) -> Self {
        Self::phantom(Source::ZEROS, 0, bytes)
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the pieces in order.
    pub fn pieces(&self) -> &[PayloadPiece] {
        match &self.pieces {
            Pieces::None => &[],
            Pieces::One(piece) => std::slice::from_ref(piece),
            Pieces::Many(pieces) => pieces,
        }
    }

    /// Returns the bytes `range` of this payload, without a copy.
    ///
    /// # Panics
    /// If the range is not within the payload.
    pub fn slice(&self, range: Range<u64>) -> Payload {
        assert!(
            range.start <= range.end && range.end <= self.bytes,
            "slice {range:?} of a payload of {} bytes",
            self.bytes
        );
        if let (Pieces::One(piece), false) = (&self.pieces, range.is_empty()) {
            return Payload { bytes: range.end - range.start, pieces: Pieces::One(piece.slice(range)) };
        }
        let mut reader = self.reader();
        reader.take(range.start, drop);
        reader.part(range.end - range.start)
    }

    /// Returns a reader of this payload from front to back.
    pub fn reader(&self) -> PayloadReader<'_> {
        PayloadReader { pieces: self.pieces().iter(), rest: None }
    }

    /// Appends `next`.
    pub fn push(&mut self, next: &Payload) {
        for piece in next.pieces() {
            self.push_piece(piece.clone());
        }
    }

    /// Joins the parts in order.
    pub fn concat<'a>(parts: impl IntoIterator<Item = &'a Payload>) -> Payload {
        let mut whole = Payload::empty();
        for part in parts {
            whole.push(part);
        }
        whole
    }

    fn push_piece(&mut self, piece: PayloadPiece) {
        if piece.is_empty() {
            return;
        }
        self.bytes += piece.len();
        match &mut self.pieces {
            Pieces::None => self.pieces = Pieces::One(piece),
            Pieces::One(last) => {
                if !last.merge(&piece) {
                    let Pieces::One(first) = std::mem::take(&mut self.pieces) else { unreachable!() };
                    self.pieces = Pieces::Many(vec![first, piece]);
                }
            }
            Pieces::Many(pieces) => {
                let last = pieces.last_mut().expect("a list of at least two");
                if !last.merge(&piece) {
                    pieces.push(piece);
                }
            }
        }
    }

    /// Returns the payload as one run of real bytes in memory; `None` if it has several pieces or a phantom.
    pub fn as_contiguous(&self) -> Option<&[u8]> {
        match self.pieces() {
            [] => Some(&[]),
            [PayloadPiece::Bytes(shared)] => Some(shared.as_slice()),
            _ => None,
        }
    }

    /// Checks the bytes against their attached checksums.
    ///
    /// # Errors
    /// If some bytes were altered in the memory of a node while in transit. Bytes without checksums always match.
    pub fn check(&self) -> Result<(), ChecksumMismatch> {
        let mut begin = 0;
        for piece in self.pieces() {
            if let PayloadPiece::Bytes(shared) = piece {
                shared.check().map_err(|(at, bytes)| ChecksumMismatch { offset: begin + at, bytes })?;
            }
            begin += piece.len();
        }
        Ok(())
    }

    /// Checks the payload on arrival at its destination, and removes its checksums unless the bytes are shared.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn arrived(mut self) -> Result<Payload, ChecksumMismatch> {
        self.check()?;
        if let Some(run) = self.as_one_run() {
            run.set_checksums(Checksums::default());
        }
        Ok(self)
    }

    /// Returns the checksums to send with the payload: the attached checksums, and computed ones for the other bytes.
    /// Phantoms other than zeros have no checksums.
    pub fn checksums(&self) -> Checksums {
        match self.pieces() {
            [] => Checksums::default(),
            [PayloadPiece::Bytes(shared)] => shared.checksums(),
            _ if self.check().is_err() => Checksums::damaged(self.bytes as usize),
            _ => self.joined_checksums(),
        }
    }

    fn joined_checksums(&self) -> Checksums {
        let (mut reader, mut sums, mut left) = (self.reader(), Vec::new(), self.bytes);
        let mut memory = [0; CHECKSUM_UNIT_BYTES as usize];
        while left > 0 {
            let unit = left.min(CHECKSUM_UNIT_BYTES);
            let memory = &mut memory[..unit as usize];
            if !reader.part(unit).copy_to(memory) {
                return Checksums::default();
            }
            sums.extend_from_slice(Checksums::of(memory).sums());
            left -= unit;
        }
        Checksums::received(0, sums)
    }

    /// Returns a payload of real bytes with attached checksums.
    pub fn with_checksums(bytes: Vec<u8>, checksums: Checksums) -> Payload {
        let mut slot = MemorySlot::unpooled(bytes);
        slot.set_checksums(checksums);
        let range = 0..slot.bytes().len();
        Payload::from(PayloadPiece::Bytes(SharedBytes::new(Rc::new(slot), range)))
    }

    /// Returns a copy as faulty memory would leave it: one bit of byte `at` flipped, the checksums unchanged.
    ///
    /// # Panics
    /// If the payload has no byte `at`, or the bytes are not real.
    #[must_use]
    pub fn with_flipped_bit(&self, at: u64) -> Payload {
        let mut bytes = self.to_vec().expect("real bytes");
        bytes[at as usize] ^= 1;
        Payload::with_checksums(bytes, self.checksums())
    }

    /// Checks these bytes and returns the state of their checksums, for a change that copies them.
    pub(crate) fn as_source(&self) -> ChangeSource {
        let has_checksums = |piece: &PayloadPiece| match piece {
            PayloadPiece::Bytes(shared) => !shared.slot.checksums().is_empty(),
            PayloadPiece::Phantom { .. } => false,
        };
        match self.pieces().iter().any(has_checksums).then(|| self.check()) {
            None => ChangeSource::Unknown,
            Some(Ok(())) => ChangeSource::Right,
            Some(Err(_)) => ChangeSource::Damaged,
        }
    }

    /// Like [`as_source`](Self::as_source), but returns the checksums themselves if a unit begins `phase` bytes after
    /// the first byte.
    pub(crate) fn as_source_at(&self, phase: u64) -> ChangeSource {
        let kept = self.kept_checksums();
        let is_alike = !kept.is_empty() && kept.lead() as u64 % CHECKSUM_UNIT_BYTES == phase;
        if is_alike { ChangeSource::Units(kept.sums().to_vec()) } else { self.as_source() }
    }

    /// Returns the checksums of `memory`, a copy of the payload.
    pub(crate) fn checksums_of_copy(&self, memory: &[u8]) -> Checksums {
        let kept = self.kept_checksums();
        if !kept.is_empty() {
            return kept;
        }
        match self.as_source() {
            ChangeSource::Damaged => Checksums::damaged(memory.len()),
            ChangeSource::Right => Checksums::of(memory),
            _ => kept,
        }
    }

    /// Returns the attached checksums if the payload is one run.
    fn kept_checksums(&self) -> Checksums {
        match self.pieces() {
            [PayloadPiece::Bytes(shared)] => shared.kept_checksums(),
            _ => Checksums::default(),
        }
    }

    /// Returns true if some bytes were found damaged when they were copied.
    pub(crate) fn is_known_damaged(&self) -> bool {
        self.kept_checksums().is_damaged()
    }

    /// Copies the payload into `target`, zeros included.
    ///
    /// Returns `false`, and leaves `target` unspecified, if a piece is a phantom other than zeros.
    ///
    /// # Panics
    /// If `target` is not exactly as long as the payload.
    #[must_use]
    pub fn copy_to(&self, target: &mut [u8]) -> bool {
        assert_eq!(target.len() as u64, self.bytes, "the target is as long as the payload");
        let mut rest = target;
        for piece in self.pieces() {
            let (here, later) = rest.split_at_mut(piece.len() as usize);
            match piece {
                PayloadPiece::Bytes(shared) => here.copy_from_slice(shared.as_slice()),
                PayloadPiece::Phantom { source: Source::ZEROS, .. } => here.fill(0),
                PayloadPiece::Phantom { .. } => return false,
            }
            rest = later;
        }
        true
    }

    /// Returns a copy of the bytes, or `None` if some are phantoms other than zeros.
    pub fn to_vec(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.bytes as usize);
        for piece in self.pieces() {
            match piece {
                PayloadPiece::Bytes(shared) => bytes.extend_from_slice(shared.as_slice()),
                PayloadPiece::Phantom { source: Source::ZEROS, .. } => {
                    bytes.resize(bytes.len() + piece.len() as usize, 0);
                }
                PayloadPiece::Phantom { .. } => return None,
            }
        }
        Some(bytes)
    }

    /// Returns the same bytes in memory of no pool, so that a pool that lent memory gets it back: real bytes lent by a
    /// pool are copied.
    #[must_use]
    pub fn out_of_pools(&self) -> Payload {
        let mut out = Payload::empty();
        for piece in self.pieces() {
            out.push_piece(match piece {
                PayloadPiece::Bytes(shared) if shared.slot.is_pooled() => {
                    PayloadPiece::Bytes(SharedBytes::unpooled(shared.as_slice().to_vec()))
                }
                piece => piece.clone(),
            });
        }
        out
    }

    /// Returns the bytes as a vector, without a copy if they are one unshared piece; `None` if some bytes are phantoms
    /// other than zeros.
    pub fn into_vec(self) -> Option<Vec<u8>> {
        match self.pieces() {
            [PayloadPiece::Bytes(shared)] if shared.is_whole() => {
                let Pieces::One(PayloadPiece::Bytes(shared)) = self.pieces else { unreachable!() };
                Some(
                    Rc::try_unwrap(shared.slot)
                        .map_or_else(|slot| slot.bytes().to_vec(), MemorySlot::into_bytes),
                )
            }
            _ => self.to_vec(),
        }
    }

    pub(crate) fn into_pieces(mut self) -> Vec<PayloadPiece> {
        match std::mem::take(&mut self.pieces) {
            Pieces::None => Vec::new(),
            Pieces::One(piece) => vec![piece],
            Pieces::Many(pieces) => pieces,
        }
    }

    pub(crate) fn into_single_piece(mut self) -> Option<PayloadPiece> {
        match std::mem::take(&mut self.pieces) {
            Pieces::One(piece) => Some(piece),
            _ => None,
        }
    }

    /// Returns the only piece if the payload is one range of real bytes.
    pub(crate) fn as_one_run(&mut self) -> Option<&mut SharedBytes> {
        match &mut self.pieces {
            Pieces::One(PayloadPiece::Bytes(shared)) => Some(shared),
            _ => None,
        }
    }
}

/// Reader of a payload from front to back. Visits each piece once, so that reading all of it takes linear time.
pub struct PayloadReader<'a> {
    pieces: std::slice::Iter<'a, PayloadPiece>,
    /// Unread rest of the current piece.
    rest: Option<PayloadPiece>,
}

impl PayloadReader<'_> {
    /// Returns the next `bytes` bytes, shared with the payload; fewer at the end.
    pub fn part(&mut self, bytes: u64) -> Payload {
        let mut part = Payload::empty();
        self.take(bytes, |piece| part.push_piece(piece));
        part
    }

    /// Passes the next `bytes` bytes to `to`, piece by piece, or fewer at the end.
    pub(crate) fn take(&mut self, bytes: u64, mut to: impl FnMut(PayloadPiece)) {
        let mut left = bytes;
        while left > 0 {
            let Some(piece) = self.rest.take().or_else(|| self.pieces.next().cloned()) else { return };
            let (taken, length) = (left.min(piece.len()), piece.len());
            if taken < length {
                self.rest = Some(piece.slice(taken..length));
                to(piece.slice(0..taken));
            } else {
                to(piece);
            }
            left -= taken;
        }
    }
}

impl From<PayloadPiece> for Payload {
    fn from(piece: PayloadPiece) -> Self {
        let bytes = piece.len();
        Payload { bytes, pieces: if bytes == 0 { Pieces::None } else { Pieces::One(piece) } }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Payload::from(PayloadPiece::Bytes(SharedBytes::unpooled(bytes)))
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Payload::from(bytes.to_vec())
    }
}

/// Payloads are equal if they have the same bytes, even if these are divided into different pieces.
///
/// A phantom equals only a phantom of the same source and offset (zeros also equal real zero bytes).
impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        if self.bytes != other.bytes {
            return false;
        }
        let (mut equal, mut theirs) = (true, other.reader());
        self.reader().take(self.bytes, |mine| {
            let mut at = 0;
            theirs.take(mine.len(), |theirs| {
                equal = equal && same_bytes(&mine.slice(at..at + theirs.len()), &theirs);
                at += theirs.len();
            });
        });
        equal
    }
}

fn same_bytes(left: &PayloadPiece, right: &PayloadPiece) -> bool {
    match (left, right) {
        (PayloadPiece::Bytes(left), PayloadPiece::Bytes(right)) => left.as_slice() == right.as_slice(),
        (PayloadPiece::Bytes(real), PayloadPiece::Phantom { source, .. })
        | (PayloadPiece::Phantom { source, .. }, PayloadPiece::Bytes(real)) => {
            *source == Source::ZEROS && real.as_slice().iter().all(|&byte| byte == 0)
        }
        (
            PayloadPiece::Phantom { source, offset, .. },
            PayloadPiece::Phantom { source: other_source, offset: other_offset, .. },
        ) => source == other_source && offset == other_offset,
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes in {} pieces)", self.bytes, self.pieces().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_adjacent_phantoms_are_merged() {
        let file = Source(7);
        let mut payload = Payload::phantom(file, 0, 8);
        payload.push(&Payload::phantom(file, 8, 8));
        assert_eq!(payload.pieces().len(), 1);
        payload.push(&Payload::phantom(file, 32, 8));
        assert_eq!(payload.pieces().len(), 2);
        assert_eq!(
            payload.slice(4..20),
            Payload::concat([&Payload::phantom(file, 4, 12), &Payload::phantom(file, 32, 4)])
        );
    }

    #[test]
    fn a_payload_moved_out_of_pools_occupies_no_pool() {
        let pool = crate::BufferPool::new(4);
        let mut lent = pool.try_take(4).expect("room");
        lent.fill_memory(vec![1, 2, 3, 4]);
        let mut payload = lent.slice(1..3);
        payload.push(&Payload::from(vec![5]));
        let out = payload.out_of_pools();
        drop((lent, payload));
        assert_eq!((pool.free_bytes(), out.to_vec()), (4, Some(vec![2, 3, 5])));
    }

    #[test]
    fn zeros_equal_zero_bytes_and_nothing_else() {
        assert_eq!(Payload::zeros(3), Payload::from(vec![0, 0, 0]));
        assert_ne!(Payload::zeros(3), Payload::from(vec![0, 1, 0]));
        assert_ne!(Payload::phantom(Source(7), 0, 3), Payload::from(vec![0, 0, 0]));
    }
}
