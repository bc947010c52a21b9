//! The future: what happens when, in a heap of small integers.
//!
//! One entry is 128 bits: the time, then the serial number of its making, then what happens. So entries
//! compare as plain numbers, those of one instant come out in the order in which they went in, and the four
//! children of a node of this 4-ary heap share a cache line.

/// What a timed event is for: one of eight kinds, and the index of whom it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target(u32);

/// The kinds of timed events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The task with this index is to be polled.
    Task,
    /// The foreign waker with this index is to be woken.
    Foreign,
    /// The processor with this index has done its thread's work, unless interrupts held it up.
    Processor,
    /// The message with this index is at its receiver.
    Arrival,
    /// The receiver's processor has taken in the message with this index.
    Delivery,
    /// The disk with this index is done with a step of its command.
    Disk,
    /// The transfer with this index is over and its node knows.
    Transfer,
}

const KINDS: [Kind; 7] =
    [Kind::Task, Kind::Foreign, Kind::Processor, Kind::Arrival, Kind::Delivery, Kind::Disk, Kind::Transfer];

const INDEX_BITS: u32 = 24;
const TARGET_BITS: u32 = INDEX_BITS + 3;
const SERIAL_MAX: u64 = 1 << (64 - TARGET_BITS);

/// No index in a [`Target`] reaches this: a bound on tasks, messages and transfers alive at once.
pub(crate) const INDEX_END: usize = 1 << INDEX_BITS;

impl Target {
    pub(crate) fn new(kind: Kind, index: usize) -> Self {
        debug_assert!(index < INDEX_END);
        Target((kind as u32) << INDEX_BITS | index as u32)
    }

    pub(crate) fn kind(self) -> Kind {
        KINDS[(self.0 >> INDEX_BITS) as usize]
    }

    pub(crate) fn index(self) -> usize {
        (self.0 & (INDEX_END as u32 - 1)) as usize
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

/// All timed events to come.
#[derive(Default)]
pub(crate) struct EventHeap {
    entries: Vec<u128>,
    next_serial: u64,
}

impl EventHeap {
    /// Adds an event; among those of the same time it is the last.
    pub(crate) fn push(&mut self, time: u64, target: Target) {
        if self.next_serial == SERIAL_MAX {
            self.renumber();
        }
        let entry =
            u128::from(time) << 64 | u128::from(self.next_serial << TARGET_BITS | u64::from(target.0));
        self.next_serial += 1;
        let mut hole = self.entries.len();
        self.entries.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if self.entries[parent] < entry {
                break;
            }
            self.entries[hole] = self.entries[parent];
            hole = parent;
        }
        self.entries[hole] = entry;
    }

    /// Takes out the first event.
    pub(crate) fn pop(&mut self) -> Option<(u64, Target)> {
        let last = self.entries.pop()?;
        let first = match self.entries.first() {
            Some(&first) => {
                self.sink(last);
                first
            }
            None => last,
        };
        Some(((first >> 64) as u64, Target(first as u32 & ((1 << TARGET_BITS) - 1))))
    }

    /// Lets `entry` sink from the root to its place.
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

    /// Gives all entries new serial numbers from 0 on; their order stays.
    fn renumber(&mut self) {
        self.entries.sort_unstable();
        for (serial, entry) in self.entries.iter_mut().enumerate() {
            let target = *entry as u32 & ((1 << TARGET_BITS) - 1);
            *entry = *entry >> 64 << 64 | (serial as u128) << TARGET_BITS | u128::from(target);
        }
        self.next_serial = self.entries.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_by_time_and_then_by_order_of_making() {
        let mut heap = EventHeap::default();
        let (mut state, mut expected) = (1_u64, Vec::new());
        for index in 0..1000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let time = state >> 60;
            heap.push(time, Target::new(Kind::Delivery, index));
            expected.push((time, index));
            if index == 500 {
                heap.renumber();
            }
        }
        expected.sort();
        for (time, index) in expected {
            assert_eq!(heap.pop(), Some((time, Target::new(Kind::Delivery, index))));
        }
        assert_eq!(heap.pop(), None);
    }

    #[test]
    fn a_target_gives_back_its_parts() {
        for kind in KINDS {
            let target = Target::new(kind, INDEX_END - 1);
            assert_eq!((target.kind(), target.index()), (kind, INDEX_END - 1));
        }
    }
}
