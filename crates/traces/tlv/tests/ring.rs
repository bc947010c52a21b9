//! Tests of the ring of a thread under every interleaving of the thread and the writer.
//!
//! `loom` runs a model many times, with every possible order of operations and every value that a load may return. The
//! ring is `src/ring.rs`, unchanged; the model replaces its building blocks.

use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

use ring::{Pushed, Ring};

#[path = "../src/ring.rs"]
mod ring;

/// Building blocks of the ring that loom can observe.
mod primitives {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

    pub(crate) type Slot = [AtomicU64; 2];

    pub(crate) fn slots(count: usize) -> Box<[Slot]> {
        (0..count).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect()
    }
}

/// Runs a producer that records numbered entries, which take `entries` slots each, against a consumer that empties the
/// ring `looks` times. Checks that every entry was taken in order, or counted as dropped.
fn check_interleavings(capacity: usize, entries: &'static [usize], looks: usize) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(move || {
        let ring = Arc::new(Ring::new(capacity));
        let producer = {
            let ring = ring.clone();
            thread::spawn(move || {
                let mut recorded = Vec::new();
                for (number, &slots) in (1..).zip(entries) {
                    let content: Vec<[u64; 2]> = (1..=slots as u64).map(|slot| [number, slot]).collect();
                    if ring.push(&content) != Pushed::Dropped {
                        recorded.extend(content);
                    }
                }
                let dropped = entries.iter().sum::<usize>() - recorded.len();
                (recorded, dropped)
            })
        };
        let mut taken = Vec::new();
        for _ in 0..looks {
            ring.take(ring.head(), &mut taken);
            thread::yield_now();
        }
        let (recorded, dropped) = producer.join().expect("no panic");
        ring.take(ring.head(), &mut taken);
        assert_eq!(taken, recorded);
        assert_eq!(ring.dropped() == 0, dropped == 0);
    });
}

#[test]
fn entries_are_taken_in_order_and_unchanged() {
    check_interleavings(4, &[1, 1, 1, 1, 1, 1], 2);
}

#[test]
fn entries_of_several_slots_are_taken_whole_or_dropped() {
    check_interleavings(4, &[3, 1, 2, 3], 2);
}

#[test]
fn a_ring_reports_when_half_full_and_counts_drops_when_full() {
    loom::model(|| {
        let ring = Ring::new(8);
        let push = |times| (0..times).map(|_| ring.push(&[[7, 7]])).collect::<Vec<_>>();
        assert_eq!(
            push(5),
            [Pushed::Recorded, Pushed::Recorded, Pushed::Recorded, Pushed::Recorded, Pushed::HalfFull]
        );
        assert_eq!(
            push(5),
            [Pushed::Recorded, Pushed::Recorded, Pushed::Recorded, Pushed::Dropped, Pushed::Dropped]
        );
        assert_eq!(ring.dropped(), 2);
        let mut taken = Vec::new();
        ring.take(ring.head(), &mut taken);
        assert_eq!(taken.len(), 8);
        assert_eq!(push(9)[8], Pushed::Dropped, "the ring was empty before these nine entries");
        assert_eq!(ring.dropped(), 3);
        ring.discard();
        assert_eq!(ring.push(&[[7, 7]; 8]), Pushed::HalfFull);
    });
}
