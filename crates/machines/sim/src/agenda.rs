//! Agenda: priority queue of timed events, stored as integers.
//!
//! An entry has 128 bits: the time, then the serial number of its creation, then the event. So entries compare as plain
//! numbers, and events of the same instant keep their order of insertion.
//!
//! ```text
//!   soon: sorted, short, in a ring             later: a 4-ary heap
//!   | e1 | e2 | e3 | ............. | e60 |     none of it before e60
//!     ^ first       ^ a new entry comes in here: the shorter half makes room
//! ```
//!
//! Machines with few nodes have few pending events. For such machines, inserting a new event into a short sorted list,
//! from the nearer end, takes a third of the instructions of a heap. Later events wait in the heap, where the four
//! children of a node share a cache line.

/// Target of a timed event: one of eight kinds, and the index of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventTarget(u32);

/// Kinds of timed events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Poll the task with this index.
    Task,
    /// Wake the waker with this index, which a combinator created.
    Foreign,
    /// The processor with this index completes its thread's work, unless interrupts delayed the work.
    Processor,
    /// The message with this index arrives at its receiver.
    Arrival,
    /// The receiver's processor has handled the message with this index.
    Delivery,
    /// The disk with this index completes a step of its command.
    Disk,
    /// The transfer with this index is complete, and its node has handled the interrupt.
    Transfer,
    /// The head of the worm with this index is at its next link, or this link is free.
    Head,
}

const INDEX_BITS: u32 = 24;
const TARGET_BITS: u32 = INDEX_BITS + 3;
const SERIAL_MAX: u64 = 1 << (64 - TARGET_BITS);

/// Exclusive limit of indices in an [`EventTarget`]. It limits the number of tasks, messages and transfers that exist
/// at the same time.
pub(crate) const INDEX_END: usize = 1 << INDEX_BITS;

impl EventTarget {
    pub(crate) fn new(kind: Kind, index: usize) -> Self {
        debug_assert!(index < INDEX_END);
        EventTarget((kind as u32) << INDEX_BITS | index as u32)
    }

    pub(crate) fn kind(self) -> Kind {
        match self.0 >> INDEX_BITS {
            0 => Kind::Task,
            1 => Kind::Foreign,
            2 => Kind::Processor,
            3 => Kind::Arrival,
            4 => Kind::Delivery,
            5 => Kind::Disk,
            6 => Kind::Transfer,
            _ => Kind::Head,
        }
    }

    pub(crate) fn index(self) -> usize {
        (self.0 & (INDEX_END as u32 - 1)) as usize
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

/// Queue of all future timed events.
pub(crate) struct Agenda {
    /// The first entries in order, in a ring: from `first` to before `end`.
    soon: [u128; RING],
    // Indices of the ring are bytes, so they wrap around and need no bounds check.
    first: u8,
    end: u8,
    /// Time of the last entry of the ring, if the heap has entries. Earlier entries are inserted into the ring.
    later_from: u64,
    /// Remaining entries; empty if `soon` is.
    later: Heap,
    next_serial: u64,
}

const RING: usize = 1 << u8::BITS;

/// Maximum number of sorted entries. If there are more, half of them are moved to the heap.
const SOON_MAX: u8 = 64;

impl Default for Agenda {
    fn default() -> Self {
        let later = Heap::default();
        Agenda { soon: [0; RING], first: 0, end: 0, later_from: u64::MAX, later, next_serial: 0 }
    }
}

impl Agenda {
    /// Adds an event after all other events of the same time.
    #[inline]
    pub(crate) fn push(&mut self, time: u64, target: EventTarget) {
        // The rare path is a separate function, so that this function need not save registers for it.
        if time >= self.later_from || self.soon_count() >= SOON_MAX || self.next_serial == SERIAL_MAX {
            self.make_room_and_push(time, target);
        } else {
            let entry = self.entry(time, target);
            self.insert_soon(entry);
        }
    }

    #[cold]
    #[inline(never)]
    fn make_room_and_push(&mut self, time: u64, target: EventTarget) {
        if self.next_serial == SERIAL_MAX {
            self.renumber();
        }
        if self.soon_count() >= SOON_MAX {
            self.put_off();
        }
        let entry = self.entry(time, target);
        if time < self.later_from {
            return self.insert_soon(entry);
        }
        self.later.push(entry);
        // If `later_from` is the maximum time, the list can be empty.
        if self.first == self.end {
            self.refill();
        }
    }

    #[inline(always)]
    fn soon_count(&self) -> u8 {
        self.end.wrapping_sub(self.first)
    }

    #[inline(always)]
    fn entry(&mut self, time: u64, target: EventTarget) -> u128 {
        let serial = self.next_serial << TARGET_BITS | u64::from(target.0);
        self.next_serial += 1;
        u128::from(time) << 64 | u128::from(serial)
    }

    /// Inserts an entry into the list. Its serial number is the highest, so the entry precedes exactly the entries of
    /// later times.
    #[inline(always)]
    fn insert_soon(&mut self, entry: u128) {
        let time = time_of(entry);
        let count = self.soon_count();
        let soon = &mut self.soon;
        if count > 0 && time_of(soon[usize::from(self.first.wrapping_add(count / 2))]) > time {
            let mut hole = self.first.wrapping_sub(1);
            self.first = hole;
            loop {
                let next = soon[usize::from(hole.wrapping_add(1))];
                if time_of(next) > time {
                    break;
                }
                soon[usize::from(hole)] = next;
                hole = hole.wrapping_add(1);
            }
            soon[usize::from(hole)] = entry;
        } else {
            let mut hole = self.end;
            self.end = hole.wrapping_add(1);
            while hole != self.first {
                let before = soon[usize::from(hole.wrapping_sub(1))];
                if time_of(before) <= time {
                    break;
                }
                soon[usize::from(hole)] = before;
                hole = hole.wrapping_sub(1);
            }
            soon[usize::from(hole)] = entry;
        }
    }

    /// Removes and returns the first event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, EventTarget)> {
        if self.first == self.end {
            return None;
        }
        let first = self.soon[usize::from(self.first)];
        self.first = self.first.wrapping_add(1);
        if self.first == self.end && !self.later.entries.is_empty() {
            self.refill();
        }
        Some((time_of(first), EventTarget(first as u32 & ((1 << TARGET_BITS) - 1))))
    }

    /// Returns the time of the first event.
    #[inline]
    pub(crate) fn first_time(&self) -> Option<u64> {
        (self.first != self.end).then(|| time_of(self.soon[usize::from(self.first)]))
    }

    /// Moves the second half of the list into the heap.
    #[cold]
    #[inline(never)]
    fn put_off(&mut self) {
        while self.soon_count() > SOON_MAX / 2 {
            self.end = self.end.wrapping_sub(1);
            self.later.push(self.soon[usize::from(self.end)]);
        }
        self.later_from = time_of(self.soon[usize::from(self.end.wrapping_sub(1))]);
    }

    /// Fills an empty list from the heap.
    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        self.later_from = u64::MAX;
        (self.first, self.end) = (0, 0);
        while self.end < SOON_MAX / 2 {
            let Some(entry) = self.later.pop() else { return };
            self.soon[usize::from(self.end)] = entry;
            self.end += 1;
        }
        if !self.later.entries.is_empty() {
            self.later_from = time_of(self.soon[usize::from(self.end) - 1]);
        }
    }

    /// Renumbers all entries in their order, from 0 on.
    #[cold]
    #[inline(never)]
    fn renumber(&mut self) {
        let mut entries = Vec::new();
        while self.first != self.end {
            entries.push(self.soon[usize::from(self.first)]);
            self.first = self.first.wrapping_add(1);
        }
        entries.extend(std::iter::from_fn(|| self.later.pop()));
        for (serial, entry) in entries.iter_mut().enumerate() {
            let target = *entry as u32 & ((1 << TARGET_BITS) - 1);
            *entry = *entry >> 64 << 64 | (serial as u128) << TARGET_BITS | u128::from(target);
        }
        self.next_serial = entries.len() as u64;
        // Ascending order is a valid heap.
        self.later.entries = entries;
        self.refill();
    }
}

#[inline]
fn time_of(entry: u128) -> u64 {
    (entry >> 64) as u64
}

/// 4-ary heap of entries, with the smallest entry at the root.
#[derive(Default)]
struct Heap {
    entries: Vec<u128>,
}

impl Heap {
    fn push(&mut self, entry: u128) {
        let mut hole = self.entries.len();
        self.entries.push(entry);
        let entries = &mut self.entries[..];
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if entries[parent] < entry {
                break;
            }
            entries[hole] = entries[parent];
            hole = parent;
        }
        entries[hole] = entry;
    }

    fn pop(&mut self) -> Option<u128> {
        let last = self.entries.pop()?;
        let Some(&first) = self.entries.first() else { return Some(last) };
        self.sink(last);
        Some(first)
    }

    /// Moves `entry` from the root down to its place.
    fn sink(&mut self, entry: u128) {
        let entries = &mut self.entries[..];
        let mut hole = 0;
        loop {
            let first_child = 4 * hole + 1;
            let (least, child) = if let Some(&[a, b, c, d]) = entries.get(first_child..first_child + 4) {
                let (left, left_at) = if b < a { (b, first_child + 1) } else { (a, first_child) };
                let (right, right_at) = if d < c { (d, first_child + 3) } else { (c, first_child + 2) };
                if right < left { (right, right_at) } else { (left, left_at) }
            } else {
                let Some(rest) = entries.get(first_child..).filter(|rest| !rest.is_empty()) else { break };
                let (at, &least) =
                    rest.iter().enumerate().min_by_key(|&(_, entry)| entry).expect("not empty");
                (least, first_child + at)
            };
            if entry < least {
                break;
            }
            entries[hole] = least;
            hole = child;
        }
        entries[hole] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_and_then_by_creation() {
        let mut agenda = Agenda::default();
        let (mut state, mut expected) = (1_u64, Vec::new());
        for index in 0..1000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let time = state >> 60;
            agenda.push(time, EventTarget::new(Kind::Delivery, index));
            expected.push((time, index));
            if index == 500 {
                agenda.renumber();
            }
        }
        expected.sort();
        for (time, index) in expected {
            assert_eq!(agenda.pop(), Some((time, EventTarget::new(Kind::Delivery, index))));
        }
        assert_eq!(agenda.pop(), None);
    }

    #[test]
    fn events_can_be_added_at_any_time() {
        let (mut agenda, mut reference) = (Agenda::default(), std::collections::BTreeSet::new());
        let (mut state, mut now) = (1_u64, 0);
        for index in 0..10_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if state >> 62 == 0 || index > 9_000 {
                let expected = reference.pop_first();
                assert_eq!(
                    agenda.pop(),
                    expected.map(|(time, index)| (time, EventTarget::new(Kind::Disk, index)))
                );
                now = expected.map_or(now, |(time, _)| time);
            } else {
                let time = now + (state >> 40) % 64;
                agenda.push(time, EventTarget::new(Kind::Disk, index));
                reference.insert((time, index));
            }
        }
    }

    #[test]
    fn events_at_the_last_instant_come_last_and_in_order() {
        let mut agenda = Agenda::default();
        let target = |index| EventTarget::new(Kind::Task, index);
        [u64::MAX, 5, u64::MAX].into_iter().enumerate().for_each(|(at, time)| agenda.push(time, target(at)));
        assert_eq!(agenda.first_time(), Some(5));
        let order = [(5, target(1)), (u64::MAX, target(0)), (u64::MAX, target(2))];
        assert_eq!(
            [agenda.pop(), agenda.pop(), agenda.pop(), agenda.pop()],
            [Some(order[0]), Some(order[1]), Some(order[2]), None]
        );
    }

    #[test]
    fn an_event_target_returns_its_kind_and_index() {
        let kinds = [
            Kind::Task,
            Kind::Foreign,
            Kind::Processor,
            Kind::Arrival,
            Kind::Delivery,
            Kind::Disk,
            Kind::Transfer,
        ];
        for kind in kinds {
            let target = EventTarget::new(kind, INDEX_END - 1);
            assert_eq!((target.kind(), target.index()), (kind, INDEX_END - 1));
        }
    }
}
