//! How long a disk takes: timing models without tasks, queues or data.
//!
//! A [`Model`] is asked when a command will be done and answers with an instant. It never waits itself,
//! so the simulator and a real machine whose disks are slowed down to the model use the same code. The
//! bus is not part of it: the caller adds the time the data spend there.
//!
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
//! Sequential reads: the medium streams on while command and bus go by,
//!
//! H  |read 0        |==bus==|read 1 |==bus==|read 2
//! D  [overhead]     ^       [overhead]      ^       [overhead]
//! M  ...[##block 0##|####block 1####|####block 2####|..
//!
//! and sequential writes: they fill the buffer while the mechanics are on their way.
//!
//! H  |write 0|==bus==|write 1..|==bus==|write 2..|==bus==|write 3 ..
//! D                  [overhead]^       [overhead]^       [overhead]^  while there is room
//! M                            [--seek--][~~rotation~~][##block 0##|##block 1##|##block 2##
//! ```
//!
//! # What a mechanical disk does
//!
//! The terms and the numbers of the HP 97560 are those of Ruemmler & Wilkes, "An introduction to disk
//! drive modeling" (IEEE Computer, March 1994), whom Kotz, Toh & Radhakrishnan (Dartmouth PCS-TR94-220)
//! followed for the disks of STARFISH. This model is written anew from those descriptions.
//!
//! * *Read*: overhead, then seek or head switch (a seek hides the switch), then rotation until the first
//!   sector comes round, then transfer. Nothing of it overlaps, nor does the bus overlap the transfer.
//! * *Transfer*: a sector takes `period / sectors per track`. Going on to the next track takes the track
//!   skew, which hides the head switch; to the next cylinder the cylinder skew, which hides the seek. On
//!   the HP 97560 that is 36,864 B in 80 sector times, 2.1104 MiB/s, less a little at every cylinder.
//! * *Read-ahead*: after a read the medium streams on, over tracks and cylinders, until the cache is full
//!   or a command arrives. A read of what has passed is answered after its overhead; a read of the next
//!   sector goes on with the stream; any other, even one that only skips a little, stops it and starts
//!   anew. (Were skips waited for, sixteen readers of neighbouring parts of a file would look sequential to
//!   the drive; the movements published for STARFISH show that they did not.)
//! * *Write*: completion is reported when the data are in the buffer, and the controller's overhead comes
//!   after that; the controller works on one command at a time. Writes that continue each other gather in the
//!   buffer, as long as there is room. Any other waits until the mechanics have turned to the last one in the
//!   buffer, so one may wait there while another goes onto the medium. Thus overhead and bus hide behind the
//!   mechanics. A write that is there in time to continue the one before it loses no rotation. (With the overhead
//!   before the data, a host would choose its second write so late that most of its requests had come; the movements
//!   published for writes of many nodes show that they had not.)
//!
//! # Assumptions, and where they are wrong
//!
//! * The rotation is exact and the seek curve has no spread; real arms and spindles have some.
//! * The arm settles for a write as fast as for a read, though real arms need longer. The allowance for
//!   it, "exposed per repositioned write", is zero unless a description gives one.
//! * The read and write fences of the real drive, which divide its cache, are not modelled, nor are hits
//!   of a read in the write buffer: a read waits until all accepted writes are on the medium.
//! * A read starts at its first sector; a drive that took the sectors as they come would wait less.
//! * Spare tracks lie in fixed regions; no sector has been moved there for a defect.
//! * One command at a time: there is no queue in the drive, as on disks of that age.
//! * Published evaluations of such models stop at about four per cent of the measured times.
//!
//! A streaming disk keeps the buffer of this and drops the mechanics; `streaming.rs` says how. A drawn disk keeps the
//! mechanics and drops the rest, and what it does not know of the rotation it draws; `drawn.rs` says how.

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

/// The state of one disk, as far as it decides how long the next command takes.
///
/// Commands come one at a time and in order of time: none before the last one has been answered. Sectors
/// are counted from zero; a command that is empty or goes beyond the last sector is a bug of the caller.
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

/// What a disk has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Commands for which the disk had to move: arm, head or waiting for the rotation.
    pub movements: u64,
    /// Time the controller took for commands.
    pub overhead: Duration,
    /// Time the arm moved or heads were switched.
    pub seek: Duration,
    /// Time the head waited for a sector to come round.
    pub rotation: Duration,
    /// Time sectors passed that were read, wanted or ahead, or written.
    pub transfer: Duration,
}

impl Statistics {
    /// What the disk has done since `earlier` statistics of it.
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

    /// Time the mechanics were at work.
    pub fn busy(&self) -> Duration {
        self.seek + self.rotation + self.transfer
    }
}

impl Model {
    /// The disk of `description`, whose spindle has turned by `rotation_phase` of a revolution at the start.
    ///
    /// # Panics
    /// If `rotation_phase` is not in 0..1.
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

    /// The same disk, which draws from `seed` what is drawn: same seed and same commands, same times. Without this the
    /// seed is 0. Only a drawn disk draws anything.
    #[must_use]
    pub fn drawing_from(mut self, seed: u64) -> Self {
        if let Kind::Drawn(disk) = &mut self.kind {
            disk.draw_from(seed);
        }
        self
    }

    /// Bytes in a sector.
    pub fn sector_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Mechanical(disk) => disk.sector_bytes(),
            Kind::Streaming(disk) => disk.sector_bytes(),
            Kind::Drawn(disk) => disk.sector_bytes(),
        }
    }

    /// Sectors on the disk.
    pub fn capacity_sectors(&self) -> u64 {
        match &self.kind {
            Kind::Mechanical(disk) => disk.capacity_sectors(),
            Kind::Streaming(disk) => disk.capacity_sectors(),
            Kind::Drawn(disk) => disk.capacity_sectors(),
        }
    }

    /// A read command reaches the drive at `now`; returns when all its data are ready to cross the bus.
    pub fn read(&mut self, now: Instant, first_sector: u64, sectors: u64) -> Instant {
        self.check_command(now, first_sector, sectors);
        match &mut self.kind {
            Kind::Mechanical(disk) => disk.read(now, first_sector, sectors),
            Kind::Streaming(disk) => disk.read(now, first_sector, sectors),
            Kind::Drawn(disk) => disk.read(now, first_sector, sectors),
        }
    }

    /// A write command reaches the drive at `now`; returns when its data may cross the bus.
    ///
    /// Call [`write`](Self::write) when they have.
    pub fn write_ready(&mut self, now: Instant, first_sector: u64, sectors: u64) -> Instant {
        self.check_command(now, first_sector, sectors);
        match &mut self.kind {
            Kind::Mechanical(disk) => disk.write_ready(now, first_sector, sectors),
            Kind::Streaming(disk) => disk.write_ready(now),
            Kind::Drawn(disk) => disk.write_ready(now),
        }
    }

    /// The data of the write have crossed the bus by `now`; returns when the drive reports completion.
    ///
    /// They are then in its buffer; [`settled`](Self::settled) says when they will be on the medium. A drawn disk has
    /// no buffer and reports when they are there.
    pub fn write(&mut self, now: Instant, first_sector: u64, sectors: u64) -> Instant {
        self.check_command(now, first_sector, sectors);
        match &mut self.kind {
            Kind::Mechanical(disk) => disk.write(now, first_sector, sectors),
            Kind::Streaming(disk) => disk.write(now, first_sector, sectors),
            Kind::Drawn(disk) => disk.write(now, first_sector, sectors),
        }
    }

    /// When everything written so far is on the medium.
    pub fn settled(&self) -> Instant {
        match &self.kind {
            Kind::Mechanical(disk) => disk.settled(),
            Kind::Streaming(disk) => disk.settled(),
            Kind::Drawn(disk) => disk.settled(),
        }
    }

    /// Movements so far, as [`Statistics::movements`] counts them.
    pub fn movements(&self) -> u64 {
        match &self.kind {
            Kind::Mechanical(disk) => disk.movements(),
            Kind::Streaming(disk) => disk.statistics().movements,
            Kind::Drawn(disk) => disk.statistics().movements,
        }
    }

    /// What the disk has done by `now`: all commands given so far, to their end, and read-ahead until `now`.
    pub fn statistics(&self, now: Instant) -> Statistics {
        match &self.kind {
            Kind::Mechanical(disk) => disk.statistics(now),
            Kind::Streaming(disk) => disk.statistics(),
            Kind::Drawn(disk) => disk.statistics(),
        }
    }

    /// Keeps the phases of the mechanics from now on, for [`take_phases`](Self::take_phases).
    pub fn record_phases(&mut self) {
        self.phases().record();
    }

    /// What the mechanics did, or will have done when the commands given so far end, since this was called last;
    /// in order of time. What may be cut short by another command comes later.
    pub fn take_phases(&mut self) -> Vec<Phase> {
        self.phases().take()
    }

    /// Keeps phases no longer; gives those that are left, with read-ahead until `now`.
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
            "{sectors} sectors from {first_sector} on a disk of {capacity}"
        );
    }

    fn check_time(&mut self, now: Instant) {
        assert!(self.latest <= now, "a command at {now} after one at {}", self.latest);
        self.latest = now;
    }
}
