//! Disk as in the usual analyses: every access consists of a seek, a random rotational latency and a transfer.
//!
//! ```text
//! time of an access = seek_per_cylinder * |distance| + latency + bytes / rate
//! latency           = uniformly distributed from 0 to 2 * mean_latency, drawn for each access
//! ```
//!
//! The distance in cylinders is measured from the last sector of the previous access to the first sector of this
//! access. Continuing on the next cylinder within an access takes no time. An access that continues the previous one
//! waits for the rotation like any other access, since there is no read-ahead. Writes are not buffered: they complete
//! when they are on the medium. These are the disks of Sinclair, Tang & Varman, "Placement-related problems in shared
//! disk I/O" (Kluwer 1996), section 2.1, which states the mean of the latency. If the speed of rotation is constant and
//! accesses are independent of the angle, the latency is uniformly distributed over one rotation.

use description::DrawnDisk;
use machine::{Duration, Instant};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::Statistics;
use crate::phases::{Activity, Phases};

#[derive(Clone, Debug)]
pub(crate) struct DrawnModel {
    sector_bytes: u64,
    sectors_per_cylinder: u64,
    cylinders: u64,
    seek_per_cylinder: Duration,
    mean_latency: Duration,
    bytes_per_second: u64,
    /// Cylinder of the arm when the disk is free.
    cylinder: u64,
    draws: ChaCha8Rng,
    /// Instant at which all accepted commands are complete.
    free: Instant,
    /// Instant at which all writes are on the medium.
    written: Instant,
    statistics: Statistics,
    phases: Phases,
}

impl DrawnModel {
    pub(crate) fn new(disk: &DrawnDisk) -> Self {
        DrawnModel {
            sector_bytes: disk.sector_bytes.value.0,
            sectors_per_cylinder: disk.cylinder_bytes.value.0 / disk.sector_bytes.value.0,
            cylinders: disk.cylinders.value.into(),
            seek_per_cylinder: disk.seek_per_cylinder.value.0,
            mean_latency: disk.mean_latency.value.0,
            bytes_per_second: disk.rate.value.0,
            cylinder: disk.initial_cylinder.value.into(),
            draws: ChaCha8Rng::seed_from_u64(0),
            free: Instant::START,
            written: Instant::START,
            statistics: Statistics::default(),
            phases: Phases::default(),
        }
    }

    pub(crate) fn draw_from(&mut self, seed: u64) {
        self.draws = ChaCha8Rng::seed_from_u64(seed);
    }

    pub(crate) fn sector_bytes(&self) -> u64 {
        self.sector_bytes
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.cylinders * self.sectors_per_cylinder
    }

    pub(crate) fn read(&mut self, now: Instant, first: u64, sectors: u64) -> Instant {
        self.access(now, first, sectors)
    }

    pub(crate) fn write_ready(&mut self, now: Instant) -> Instant {
        now.max(self.free)
    }

    pub(crate) fn write(&mut self, now: Instant, first: u64, sectors: u64) -> Instant {
        self.written = self.access(now, first, sectors);
        self.written
    }

    pub(crate) fn settled(&self) -> Instant {
        self.written
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.statistics
    }

    pub(crate) fn phases(&mut self) -> &mut Phases {
        &mut self.phases
    }

    fn access(&mut self, now: Instant, first: u64, sectors: u64) -> Instant {
        let begin = now.max(self.free);
        let seek = self.seek_per_cylinder * self.cylinder.abs_diff(first / self.sectors_per_cylinder);
        let latency = self.latency();
        let transfer = Duration::of_transfer(sectors * self.sector_bytes, self.bytes_per_second);
        let (arrived, there) = (begin + seek, begin + seek + latency);
        self.free = there + transfer;
        self.cylinder = (first + sectors - 1) / self.sectors_per_cylinder;
        self.phases.add(Activity::Seek, begin, arrived);
        self.phases.add(Activity::Rotation, arrived, there);
        self.phases.add(Activity::Transfer, there, self.free);
        self.statistics.movements += 1;
        self.statistics.seek += seek;
        self.statistics.rotation += latency;
        self.statistics.transfer += transfer;
        self.free
    }

    /// Draws a latency from 0 to twice the mean, in whole nanoseconds. Some values are more probable
    /// than others, by at most one part in 2^64 / `values`.
    fn latency(&mut self) -> Duration {
        let values = 2 * self.mean_latency.as_nanos() + 1;
        Duration::from_nanos(((u128::from(self.draws.next_u64()) * u128::from(values)) >> 64) as u64)
    }
}
