//! Timing models of disks, without tasks, queues or data.
//!
//! A [`Model`] computes the instant at which a command completes, and never waits itself. So the simulator can share
//! this code with real machines that slow their disks down to the times of the model. The model does not include the
//! bus: the caller adds the transfer time on the bus.
//! ```text
//! A random read, and the write that follows it, on a mechanical disk (H: host, D: drive, M: medium):
//!
//! H  |read                                          |==bus==|write  |==bus==| next command
//!    v                                              ^       v       ^       v
//! D  [overhead]                                     |       |.......|  in buffer: reported
//!              v                                    |       : room          [overhead]
//! M            [--seek--][~~rotation~~][##transfer##|##read-ahead##>|                 [--seek--][~~][####]
//!              now+2.2 ms                           answer          stopped                        settled
//!                                                   of `read`       by the write
//!
//! Sequential reads: the medium continues to stream during command processing and bus transfer,
//!
//! H  |read 0        |==bus==|read 1 |==bus==|read 2
//! D  [overhead]     ^       [overhead]      ^       [overhead]
//! M  ...[##block 0##|####block 1####|####block 2####|..
//!
//! and sequential writes: they fill the buffer while the mechanics are still positioning.
//!
//! H  |write 0|==bus==|write 1..|==bus==|write 2..|==bus==|write 3 ..
//! D                  [overhead]^       [overhead]^       [overhead]^  while there is room
//! M                            [--seek--][~~rotation~~][##block 0##|##block 1##|##block 2##
//! ```
//!
//! # Behaviour of a mechanical disk
//!
//! The terms, and the numbers of the HP 97560, are from Ruemmler & Wilkes, "An introduction to disk drive modeling"
//! (IEEE Computer, March 1994). Kotz, Toh & Radhakrishnan (Dartmouth PCS-TR94-220) followed them for the disks of
//! STARFISH. This model is a new implementation from both descriptions.
//!
//! * *Read*: overhead, then seek or head switch (a seek hides the switch), then rotation until the first sector passes,
//!   then transfer. None of these phases overlap, and the bus does not overlap the transfer.
//! * *Transfer*: a sector takes `period / sectors per track`. Continuing on the next track takes the track skew, which
//!   hides the head switch. Continuing on the next cylinder takes the cylinder skew, which hides the seek. On the HP
//!   97560 that is 36,864 B in 80 sector times, 2.1104 MiB/s, less a little at every cylinder.
//! * *Read-ahead*: after a read the disk continues to read sectors from the medium, across tracks and cylinders, until
//!   the cache is full or a command arrives. A read of sectors that have passed completes after its overhead. A read of
//!   the next sector continues the stream. Any other read, even one that skips only a few sectors, stops the stream and
//!   starts a new one. (If the drive waited for skipped sectors, sixteen readers of neighbouring parts of a file would
//!   look sequential to the drive. The movements published for STARFISH show that such reads were not treated as
//!   sequential.)
//! * *Write*: the drive reports completion when the data are in the buffer. The controller's overhead follows, and the
//!   controller handles one command at a time. Writes that continue each other collect in the buffer as long as they
//!   fit. Any other write waits until the mechanics start on the last buffered write, so one write can be in the buffer
//!   while another is written to the medium. Thus overhead and bus transfer overlap with the mechanics. A write that
//!   arrives in time to continue the previous one loses no rotation. (If the overhead preceded the data, a host with a
//!   sorted queue would choose its second write so late that most requests would already be in the queue. The movements
//!   published for writes of many nodes show that this was not the case.)
//!
//! # Assumptions and their limits
//!
//! * The rotation is exact and the seek curve has no spread; real arms and spindles vary.
//! * The arm settles for a write as fast as for a read, though real arms need longer. A description can include time
//!   for this as "exposed per repositioned write"; the default is zero.
//! * The read and write fences of the real drive, which divide its cache, are not modelled.
//! * A read never hits the write buffer: it waits until all accepted writes are on the medium.
//! * A read starts at its first sector; a drive that accepted the sectors in any order would wait less.
//! * Spare tracks lie in fixed regions; no sector has been moved there for a defect.
//! * One command at a time: there is no queue in the drive, as on disks of that age.
//! * Published evaluations of such models differ from measured times by about four per cent at best.
//!
//! A streaming disk has the same write buffer but no mechanics; see `streaming.rs`. A drawn disk has the mechanics but
//! no buffer or cache, and draws the rotational latency at random; see `drawn.rs`.

mod drawn;
mod geometry;
mod mechanical;
mod mechanism;
mod phases;
mod rotation;
mod seek;
mod streaming;

use description::DiskDescription;
use machine::{Duration, Instant};

pub use phases::{Activity, Phase};

use drawn::DrawnModel;
use mechanical::Mechanical;
use phases::Phases;
use streaming::Streaming;

/// State of one disk that determines the time of the next command.
///
/// Commands are issued one at a time and in order of time: the next one starts no earlier than the previous one
/// completed. Sectors are counted from zero. The caller must not pass an empty command or one beyond the last sector.
#[derive(Clone, Debug)]
pub struct Model {
    kind: Kind,
    latest: Instant,
}

#[derive(Clone, Debug)]
enum Kind {
    Mechanical(Box<Mechanical>),
    Streaming(Streaming),
    Drawn(Box<DrawnModel>),
}

/// Counters of a disk since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of commands for which the arm moved, the head was switched, or the disk waited for the rotation.
    pub movements: u64,
    /// Time spent by the controller on commands.
    pub overhead: Duration,
    /// Time spent on arm movements and head switches.
    pub seek: Duration,
    /// Time for which the head waited until a sector passed.
    pub rotation: Duration,
    /// Time in which requested sectors were read, sectors were read ahead, or sectors were written.
    pub transfer: Duration,
}

impl Statistics {
    /// Returns the statistics of the time since `earlier` statistics of the same disk.
    #[must_use]
    pub fn since(self, earlier: Statistics) -> Statistics {
        Statistics {
            movements: self.movements - earlier.movements,
            overhead: self.overhead - earlier.overhead,
            seek: self.seek - earlier.seek,
            rotation: self.rotation - earlier.rotation,
            transfer: self.transfer - earlier.transfer,
        }
    }

    /// Returns the time in which the mechanics were busy.
    pub fn busy(&self) -> Duration {
        self.seek + self.rotation + self.transfer
    }
}

impl Model {
    /// Creates the disk of `description`. At the start its spindle has turned by the fraction `rotation_phase` of a
    /// revolution.
    ///
    /// # Panics
    /// Panics if `rotation_phase` is not in 0..1.
    pub fn new(description: &DiskDescription, rotation_phase: f64) -> Self {
        let kind = match description {
            DiskDescription::Mechanical(disk) => {
                Kind::Mechanical(Box::new(Mechanical::new(disk, rotation_phase)))
            }
            DiskDescription::Streaming(disk) => Kind::Streaming(Streaming::new(disk)),
            DiskDescription::Drawn(disk) => Kind::Drawn(Box::new(DrawnModel::new(disk))),
        };
        Model { kind, latest: Instant::START }
    }

    /// Seeds the random draws of a drawn disk; other disks ignore `seed`. The same seed and the same commands yield the
    /// same times. The default seed is 0.
    #[must_use]
    pub fn drawing_from(mut self, seed: u64) -> Self {
        if let Kind::Drawn(disk) = &mut self.kind {
            disk.draw_from(seed);
        }
        self
    }

    /// Returns the number of bytes in a sector.
    pub fn sector_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Mechanical(disk) => disk.sector_bytes(),
            Kind::Streaming(disk) => disk.sector_bytes(),
            Kind::Drawn(disk) => disk.sector_bytes(),
        }
    }

    /// Returns the number of sectors on the disk.
    pub fn capacity_sectors(&self) -> u64 {
        match &self.kind {
            Kind::Mechanical(disk) => disk.capacity_sectors(),
            Kind::Streaming(disk) => disk.capacity_sectors(),
            Kind::Drawn(disk) => disk.capacity_sectors(),
        }
    }

    /// Starts a read command at `now`. Returns the instant at which all its data are ready to cross the bus.
    pub fn read(&mut self, now: Instant, first_sector: u64, sectors: u64) -> Instant {
        self.check_command(now, first_sector, sectors);
        match &mut self.kind {
            Kind::Mechanical(disk) => disk.read(now, first_sector, sectors),
            Kind::Streaming(disk) => disk.read(now, first_sector, sectors),
            Kind::Drawn(disk) => disk.read(now, first_sector, sectors),
        }
    }

    /// Starts a write command at `now`. Returns the instant from which its data may cross the bus.
    ///
    /// Call [`write`](Self::write) after the data have crossed.
    pub fn write_ready(&mut self, now: Instant, first_sector: u64, sectors: u64) -> Instant {
        self.check_command(now, first_sector, sectors);
        match &mut self.kind {
            Kind::Mechanical(disk) => disk.write_ready(now, first_sector, sectors),
            Kind::Streaming(disk) => disk.write_ready(now),
            Kind::Drawn(disk) => disk.write_ready(now),
        }
    }

    /// Completes a write whose data have crossed the bus by `now`. Returns the instant at which the disk reports
    /// completion.
    ///
    /// At that instant the data are in the disk's buffer; [`settled`](Self::settled) returns the instant at which they
    /// are on the medium. A drawn disk has no buffer and reports completion when the data are on the medium.
    pub fn write(&mut self, now: Instant, first_sector: u64, sectors: u64) -> Instant {
        self.check_command(now, first_sector, sectors);
        match &mut self.kind {
            Kind::Mechanical(disk) => disk.write(now, first_sector, sectors),
            Kind::Streaming(disk) => disk.write(now, first_sector, sectors),
            Kind::Drawn(disk) => disk.write(now, first_sector, sectors),
        }
    }

    /// Returns the instant at which all data written so far are on the medium.
    pub fn settled(&self) -> Instant {
        match &self.kind {
            Kind::Mechanical(disk) => disk.settled(),
            Kind::Streaming(disk) => disk.settled(),
            Kind::Drawn(disk) => disk.settled(),
        }
    }

    /// Returns the number of movements so far, counted as in [`Statistics::movements`].
    pub fn movements(&self) -> u64 {
        match &self.kind {
            Kind::Mechanical(disk) => disk.movements(),
            Kind::Streaming(disk) => disk.statistics().movements,
            Kind::Drawn(disk) => disk.statistics().movements,
        }
    }

    /// Returns the statistics at `now`: all commands so far, counted completely, and read-ahead until `now`.
    pub fn statistics(&self, now: Instant) -> Statistics {
        match &self.kind {
            Kind::Mechanical(disk) => disk.statistics(now),
            Kind::Streaming(disk) => disk.statistics(),
            Kind::Drawn(disk) => disk.statistics(),
        }
    }

    /// Starts recording the phases of the mechanics, for [`take_phases`](Self::take_phases).
    pub fn record_phases(&mut self) {
        self.phases().record();
    }

    /// Returns the phases recorded since the last call, in order of time, up to the end of the commands so far. A phase
    /// that another command can still shorten is returned by a later call.
    pub fn take_phases(&mut self) -> Vec<Phase> {
        self.phases().take()
    }

    /// Stops recording phases and returns the remaining ones, with read-ahead until `now`.
    pub fn stop_recording_phases(&mut self, now: Instant) -> Vec<Phase> {
        match &mut self.kind {
            Kind::Mechanical(disk) => disk.stop_recording_phases(now),
            Kind::Streaming(disk) => disk.phases().stop(),
            Kind::Drawn(disk) => disk.phases().stop(),
        }
    }

    fn phases(&mut self) -> &mut Phases {
        match &mut self.kind {
            Kind::Mechanical(disk) => disk.phases(),
            Kind::Streaming(disk) => disk.phases(),
            Kind::Drawn(disk) => disk.phases(),
        }
    }

    fn check_command(&mut self, now: Instant, first_sector: u64, sectors: u64) {
        self.check_time(now);
        let capacity = self.capacity_sectors();
        assert!(
            sectors > 0 && first_sector < capacity && sectors <= capacity - first_sector,
            "{sectors} sectors from {first_sector} on exceed the disk of {capacity} sectors"
        );
    }

    fn check_time(&mut self, now: Instant) {
        assert!(self.latest <= now, "a command at {now} after a command at {}", self.latest);
        self.latest = now;
    }
}
