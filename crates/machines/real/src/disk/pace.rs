//! Slows a disk down to a model: real bytes, modelled time.
//!
//! Commands are served one at a time in order of arrival. The model computes the completion time of a command that
//! arrives now. The real transfer runs, and its result is delayed until that time.
//!
//! ```text
//! model   |---- A ----|---- B ----|---- C ----|
//! timer               |.late      |..late     |.late
//! caller  A waits .....A done, B was queued: begins at the instant A was due, not when the timer fired
//! ```
//!
//! So delays of timers do not accumulate, and a disk with a non-empty queue keeps exactly the model's rate. A caller
//! that issues its next command only after the last result pays its own delay once; the model decides if the disk
//! compensates for that, by reading ahead or buffering writes. A result may also be late because of timers and of other
//! users of this computer. This is not the caller's delay: the next command counts as having arrived earlier by the
//! same time, but never before the last one was due. So a process that is not scheduled for a while does not stop its
//! disks.
//!
//! Limits of the method: a real transfer that takes longer than the model's makes the disk slower than the model.
//! Creating, opening, listing and removing objects takes its real time.

use std::cell::{Cell, RefCell};
use std::future::Future;

use description::DiskDescription;
use disk::Model;
use machine::{Duration, Instant, ObjectId, Permits, Result};

use crate::clock::Clock;
use crate::random::draw;

/// Limit in bytes of the regions of a modelled disk; each object starts at the beginning of one.
///
/// No real file system has exactly this layout, but objects are contiguous and apart, as they would be.
const REGION_BYTES_MAX: u64 = 1 << 30;

/// Least number of regions of a disk, so that objects do not all share one position.
const REGIONS_MIN: u64 = 16;

/// Timing of a modelled disk.
pub(crate) struct Pace {
    model: RefCell<Model>,
    /// Single permit: commands run one after the other.
    turns: Permits,
    /// Completion time of the last command according to the model.
    answered: Cell<Instant>,
    /// Delay after which the caller learned of this completion.
    late: Cell<Duration>,
    place: Place,
    clock: Clock,
}

/// Positions of objects on the modelled disk.
#[derive(Clone, Copy)]
struct Place {
    sector_bytes: u64,
    capacity_sectors: u64,
    region_sectors: u64,
}

/// Kind of a command.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// Part of an object.
#[derive(Clone, Copy)]
pub(crate) struct ObjectExtent {
    pub(crate) object: ObjectId,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Pace {
    /// Creates the disk of the description. The seed is drawn at every start, so that no two disks behave the same.
    pub(crate) fn new(description: &DiskDescription, clock: Clock) -> Result<Self> {
        let seed = draw("the seed of a modelled disk")?;
        let model = Model::new(description, 0.0).drawing_from(seed);
        let place = Place::new(model.sector_bytes(), model.capacity_sectors());
        let answered = Cell::new(Instant::START);
        let late = Cell::new(Duration::ZERO);
        Ok(Pace { model: RefCell::new(model), turns: Permits::new(1), answered, late, place, clock })
    }

    /// Runs `transfer` in the time of a command of this kind.
    pub(crate) async fn keep<T>(
        &self,
        kind: Kind,
        extent: ObjectExtent,
        transfer: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        if extent.bytes == 0 {
            return transfer.await;
        }
        let arrived = self.clock.now();
        let _turn = self.turns.take().await;
        let (answered, late) = (self.answered.get(), self.late.get());
        let idle = arrived.since(answered);
        let begun = answered + (idle - late.min(idle));
        let due = self.command(kind, extent, begun);
        let start = self.clock.now();
        let outcome = transfer.await;
        // If the transfer itself took longer, the next command must not be faster for it.
        self.answered.set(due.max(begun + self.clock.now().since(start)));
        self.clock.sleep_until(due).await;
        self.late.set(self.clock.now().since(self.answered.get()));
        outcome
    }

    /// Waits until all written data are on the modelled medium.
    pub(crate) async fn settle(&self) {
        let settled = self.model.borrow().settled();
        self.clock.sleep_until(settled).await;
    }

    /// Returns the position on the modelled disk of the object's byte at `offset`.
    pub(crate) fn position(&self, object: ObjectId, offset: u64) -> u64 {
        (self.place.first_sector(object) * self.place.sector_bytes).saturating_add(offset)
    }

    fn command(&self, kind: Kind, extent: ObjectExtent, now: Instant) -> Instant {
        let (first, sectors) = self.place.sectors(extent);
        let mut model = self.model.borrow_mut();
        match kind {
            Kind::Read => model.read(now, first, sectors),
            Kind::Write => {
                let ready = model.write_ready(now, first, sectors);
                model.write(ready, first, sectors)
            }
        }
    }
}

impl Place {
    fn new(sector_bytes: u64, capacity_sectors: u64) -> Self {
        let region_sectors = (REGION_BYTES_MAX / sector_bytes).min(capacity_sectors / REGIONS_MIN).max(1);
        Place { sector_bytes, capacity_sectors, region_sectors }
    }

    fn first_sector(&self, object: ObjectId) -> u64 {
        let regions = self.capacity_sectors / self.region_sectors;
        object.0 % regions * self.region_sectors
    }

    /// Returns the first sector of an access and the number of its sectors. An object that extends beyond the end of
    /// the disk wraps around to its beginning; an access that would span the two is moved before the end.
    fn sectors(&self, extent: ObjectExtent) -> (u64, u64) {
        let first = extent.offset / self.sector_bytes;
        let last = extent.offset.saturating_add(extent.bytes - 1) / self.sector_bytes;
        let sectors = (last - first + 1).min(self.capacity_sectors);
        let first = (self.first_sector(extent.object) + first) % self.capacity_sectors;
        (first.min(self.capacity_sectors - sectors), sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_contiguous_and_do_not_overlap() {
        let place = Place::new(512, 1 << 25);
        let sectors =
            |object, offset, bytes| place.sectors(ObjectExtent { object: ObjectId(object), offset, bytes });
        assert_eq!(sectors(1, 0, 4096), (1 << 21, 8));
        assert_eq!(sectors(1, 4096, 4096), ((1 << 21) + 8, 8));
        assert_eq!(sectors(2, 0, 1), (2 << 21, 1));
        assert_eq!(sectors(2, 511, 2), (2 << 21, 2));
    }

    #[test]
    fn every_access_lies_on_the_disk() {
        let place = Place::new(512, 1000);
        for object in 0..40 {
            for offset in [0, 511, 100_000, 511_000, 10_000_000, u64::MAX - 9000] {
                for bytes in [1, 512, 9000, 600_000] {
                    let (first, sectors) =
                        place.sectors(ObjectExtent { object: ObjectId(object), offset, bytes });
                    assert!(sectors > 0 && first + sectors <= 1000, "{object} {offset} {bytes}");
                }
            }
        }
    }
}
