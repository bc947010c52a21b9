//! Memory of a compute node: the target of reads and the source of writes.
//!
//! Placing data in memory is the only copy that the file system makes. Real bytes are copied. Phantoms are recorded in
//! a list, so that a test can afterwards check the source of each byte.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::rc::Rc;

use crate::lent::{Borrowed, LentMemory};
use crate::payload::Payload;

/// Range of a node's memory, shared by the tasks of one operation. Cloning returns another handle.
#[derive(Clone)]
pub struct Memory {
    bytes: u64,
    contents: Rc<RefCell<Contents>>,
}

enum Contents {
    /// Real bytes. A write copies them all if a payload still shares them.
    Real(crate::buffer::Buf),
    /// Placed payloads, by offset; they do not overlap.
    Phantom(BTreeMap<u64, Payload>),
    /// Memory of another thread.
    Lent(Borrowed),
    /// Other memories in sequence.
    Joined(Vec<Memory>),
}

impl Memory {
    /// Returns memory of real bytes with these contents.
    pub fn real(bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        let mut buffer = crate::buffer::BufferPool::new(length).try_take(length).expect("an empty pool");
        buffer.fill_memory(bytes);
        Memory { bytes: length, contents: Rc::new(RefCell::new(Contents::Real(buffer))) }
    }

    /// Returns memory of `bytes` bytes that records placed payloads without storing bytes. Bytes that were never placed
    /// are zeros.
    pub fn phantom(bytes: u64) -> Self {
        Memory { bytes, contents: Rc::new(RefCell::new(Contents::Phantom(BTreeMap::new()))) }
    }

    /// Returns one memory that consists of `parts` in sequence; data placed in it are placed in the parts.
    ///
    /// A write to real memory copies all of it if a payload shares any part. So if some parts are written to while
    /// other parts are being sent, join separate memories.
    pub fn joined(parts: Vec<Memory>) -> Self {
        let bytes = parts.iter().map(Memory::len).sum();
        Memory { bytes, contents: Rc::new(RefCell::new(Contents::Joined(parts))) }
    }

    /// Returns memory of the same kind, of `bytes` bytes, all zeros.
    pub fn another(&self, bytes: u64) -> Self {
        match &*self.contents.borrow() {
            Contents::Real(_) | Contents::Lent(_) => Memory::real(vec![0; bytes as usize]),
            Contents::Phantom(_) => Memory::phantom(bytes),
            Contents::Joined(parts) => {
                parts.first().map_or_else(|| Memory::phantom(bytes), |part| part.another(bytes))
            }
        }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns true if `bytes` bytes from offset `at` lie within the memory.
    pub fn holds(&self, at: u64, bytes: u64) -> bool {
        at.checked_add(bytes).is_some_and(|end| end <= self.bytes)
    }

    /// Places `payload` at offset `at`.
    ///
    /// # Panics
    /// If the payload does not lie within the memory.
    pub fn place(&self, at: u64, payload: &Payload) {
        assert!(
            self.holds(at, payload.len()),
            "{} bytes at {at} exceed the memory of {} bytes",
            payload.len(),
            self.bytes
        );
        match &mut *self.contents.borrow_mut() {
            Contents::Real(buffer) => buffer.put(at, payload),
            Contents::Lent(borrowed) => borrowed.place(at, payload),
            Contents::Phantom(placed) => place_phantom(placed, at, payload),
            Contents::Joined(parts) => {
                for (part, range, done) in parts_of(parts, at..at + payload.len()) {
                    match range.end - range.start {
                        all if all == payload.len() => part.place(range.start, payload),
                        bytes => part.place(range.start, &payload.slice(done..done + bytes)),
                    }
                }
            }
        }
    }

    /// Returns the bytes `at..at + bytes`, as they are now.
    ///
    /// # Panics
    /// If the bytes do not lie within the memory.
    pub fn get(&self, at: u64, bytes: u64) -> Payload {
        assert!(self.holds(at, bytes), "{bytes} bytes at {at} exceed the memory of {} bytes", self.bytes);
        match &*self.contents.borrow() {
            Contents::Real(buffer) => buffer.slice(at..at + bytes),
            Contents::Lent(borrowed) => borrowed.get(at, bytes),
            Contents::Phantom(placed) => get_phantom(placed, at, bytes),
            Contents::Joined(parts) => {
                let mut found = Payload::empty();
                for (part, range, _) in parts_of(parts, at..at + bytes) {
                    found.push(&part.get(range.start, range.end - range.start));
                }
                found
            }
        }
    }

    /// Returns the first range at or after `at` that may hold placed data, if any. Only phantom memory records its
    /// placed ranges; in other memory all bytes count as placed.
    pub fn placed_after(&self, at: u64) -> Option<Range<u64>> {
        match &*self.contents.borrow() {
            Contents::Phantom(placed) => placed_phantom_after(placed, at),
            Contents::Real(_) | Contents::Lent(_) | Contents::Joined(_) => {
                (at < self.bytes).then_some(at..self.bytes)
            }
        }
    }

    /// Returns the bytes, if they are real and not lent by another thread.
    pub fn into_vec(self) -> Option<Vec<u8>> {
        match &mut *self.contents.borrow_mut() {
            Contents::Real(buffer) => {
                if buffer.is_empty() {
                    return Some(Vec::new());
                }
                let shared = buffer.slice(0..self.bytes);
                buffer.fill(Payload::zeros(self.bytes));
                shared.into_vec()
            }
            Contents::Phantom(_) | Contents::Lent(_) => None,
            Contents::Joined(parts) => {
                let parts: Option<Vec<Vec<u8>>> = parts.drain(..).map(Memory::into_vec).collect();
                parts.map(|parts| parts.concat())
            }
        }
    }
}

/// Lent memory in use. Dropping the loan returns the memory to its owner. Data placed later through other handles are
/// recorded as in phantom memory, not stored.
pub struct Loan(Memory);

impl Loan {
    /// Begins a loan of `memory`. The caller promises that a read into it returns at least `sure` bytes.
    pub fn of(memory: LentMemory, sure: u64) -> Self {
        let borrowed = Borrowed::new(memory, sure);
        let (bytes, contents) = (borrowed.bytes(), Contents::Lent(borrowed));
        Loan(Memory { bytes, contents: Rc::new(RefCell::new(contents)) })
    }

    /// Sets the final number of bytes. Then all received bytes below `bytes` are in place, and gaps between them are
    /// zeros. Memory from offset `bytes` on is unchanged.
    pub fn settle(&self, bytes: u64) {
        if let Contents::Lent(borrowed) = &mut *self.contents.borrow_mut() {
            borrowed.settle(bytes);
        }
    }
}

impl Deref for Loan {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        &self.0
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.contents.replace(Contents::Phantom(BTreeMap::new()));
    }
}

/// Returns the parts that overlap a range of the joined memory. Each is returned with its overlapping range and the
/// number of bytes in earlier parts.
fn parts_of(parts: &[Memory], range: Range<u64>) -> impl Iterator<Item = (&Memory, Range<u64>, u64)> {
    let mut end = 0;
    parts.iter().filter_map(move |part| {
        let start = end;
        end += part.len();
        let (first, last) = (range.start.max(start), range.end.min(end));
        (first < last).then(|| (part, first - start..last - start, first - range.start))
    })
}

fn place_phantom(placed: &mut BTreeMap<u64, Payload>, at: u64, payload: &Payload) {
    if payload.is_empty() {
        // An empty payload would replace the payload that begins at the same offset.
        return;
    }
    let end = at + payload.len();
    let overlapped: Vec<u64> = overlapping(placed, at, end).map(|(&start, _)| start).collect();
    for start in overlapped {
        let old = placed.remove(&start).expect("its key was just found");
        let old_end = start + old.len();
        if start < at {
            placed.insert(start, old.slice(0..at - start));
        }
        if old_end > end {
            placed.insert(end, old.slice(end - start..old.len()));
        }
    }
    placed.insert(at, payload.clone());
}

fn get_phantom(placed: &BTreeMap<u64, Payload>, at: u64, bytes: u64) -> Payload {
    let (mut found, end) = (Payload::empty(), at + bytes);
    for (&start, payload) in overlapping(placed, at, end) {
        let (first, last) = (start.max(at), (start + payload.len()).min(end));
        found.push(&Payload::zeros(first - at - found.len()));
        found.push(&payload.slice(first - start..last - start));
    }
    found.push(&Payload::zeros(bytes - found.len()));
    found
}

fn placed_phantom_after(placed: &BTreeMap<u64, Payload>, at: u64) -> Option<Range<u64>> {
    let mut parts = overlapping(placed, at, u64::MAX);
    let (&start, first) = parts.next()?;
    let mut end = start + first.len();
    for (&start, payload) in parts {
        if start != end {
            break;
        }
        end += payload.len();
    }
    Some(start.max(at)..end)
}

fn overlapping(placed: &BTreeMap<u64, Payload>, at: u64, end: u64) -> impl Iterator<Item = (&u64, &Payload)> {
    let before = placed.range(..at).next_back().filter(move |(start, payload)| *start + payload.len() > at);
    before.into_iter().chain(placed.range(at..end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Source;

    #[test]
    fn real_memory_returns_placed_bytes() {
        let memory = Memory::real(vec![9; 6]);
        memory.place(2, &Payload::from(vec![1, 2]));
        assert_eq!(memory.get(1, 4).to_vec(), Some(vec![9, 1, 2, 9]));
        assert_eq!(memory.into_vec(), Some(vec![9, 9, 1, 2, 9, 9]));
    }

    #[test]
    fn phantom_memory_returns_placed_phantoms() {
        let (memory, file) = (Memory::phantom(100), Source(5));
        memory.place(10, &Payload::phantom(file, 1000, 20));
        memory.place(15, &Payload::phantom(file, 0, 5));
        let expected = [
            Payload::zeros(10),
            Payload::phantom(file, 1000, 5),
            Payload::phantom(file, 0, 5),
            Payload::phantom(file, 1010, 10),
            Payload::zeros(70),
        ];
        assert_eq!(memory.get(0, 100), Payload::concat(&expected));
        for at in [0, 10, 15, 17, 40, 100] {
            memory.place(at, &Payload::empty());
        }
        assert_eq!(memory.get(0, 100), Payload::concat(&expected), "nothing was placed");
        assert_eq!(memory.placed_after(0), Some(10..30));
    }

    #[test]
    fn joined_memories_act_as_one_memory() {
        let memory = Memory::joined(vec![
            Memory::real(vec![1; 3]),
            Memory::real(vec![2; 2]),
            Memory::real(vec![3; 2]),
        ]);
        let before = memory.get(0, 7);
        memory.place(2, &Payload::from(vec![7, 8, 9, 10]));
        assert_eq!(before.to_vec(), Some(vec![1, 1, 1, 2, 2, 3, 3]));
        assert_eq!(memory.get(1, 6).to_vec(), Some(vec![1, 7, 8, 9, 10, 3]));
        assert_eq!((memory.len(), memory.another(4).len()), (7, 4));
        assert_eq!(memory.into_vec(), Some(vec![1, 1, 7, 8, 9, 10, 3]));
    }
}
