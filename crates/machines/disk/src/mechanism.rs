//! Moving parts of a disk: the arm, the heads and the rotation, and the time they take.
//!
//! The mechanism executes one order at a time: turn to a sector, or let sectors pass. Sectors that pass without a gap
//! form a [`SectorRun`]. At the end of a track the run continues on the next track after a head switch or arm movement
//! and the skew.

use description::MechanicalDisk;
use machine::{Duration, Instant};

use crate::Statistics;
use crate::geometry::{Geometry, HeadTrack};
use crate::phases::{Activity, Phases};
use crate::rotation::{Rotation, SectorSlot};
use crate::seek::SeekCurve;

#[derive(Clone, Debug)]
pub(crate) struct Mechanism {
    pub(crate) geometry: Geometry,
    seek: SeekCurve,
    head_switch: Duration,
    rotation: Rotation,
    /// Track under the head, or the target of the current movement.
    track: HeadTrack,
    /// Instant at which the head began to move to this track.
    departed: Instant,
    /// Instant, past or future, at which the head is at rest on this track.
    arrived: Instant,
    pub(crate) statistics: Statistics,
    pub(crate) phases: Phases,
}

/// Sectors passing one after the other: the next sector, and the slot in which it passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectorRun {
    pub(crate) sector: u64,
    slot: SectorSlot,
    /// Number of sectors from `sector` to the end of the track; 0 if the head must still move to the next track.
    left: u64,
    /// True if no sector has passed since the mechanism turned to `sector`.
    fresh: bool,
}

impl SectorRun {
    fn advance(&mut self, sectors: u64) {
        self.fresh = false;
        self.sector += sectors;
        self.slot = self.slot.after(sectors);
        self.left -= sectors;
    }
}

impl Mechanism {
    pub(crate) fn new(disk: &MechanicalDisk, phase: f64) -> Self {
        let geometry = Geometry::new(disk);
        let period = disk.rotation.value.period();
        Mechanism {
            rotation: Rotation::new(period, geometry.sectors_per_track, phase),
            geometry,
            seek: SeekCurve::new(&disk.seek),
            head_switch: disk.head_switch.value.0,
            track: HeadTrack { cylinder: disk.initial_cylinder.value.into(), head: 0 },
            departed: Instant::START,
            arrived: Instant::START,
            statistics: Statistics::default(),
            phases: Phases::default(),
        }
    }

    /// Moves to the track of `sector`, starting at `start`, and waits until the sector passes under the head.
    pub(crate) fn turn_to(&mut self, sector: u64, start: Instant) -> SectorRun {
        let place = self.geometry.place(sector);
        let movement = self.movement(place.track);
        self.track = place.track;
        self.departed = start;
        self.arrived = start + movement;
        let slot = self.rotation.next(self.arrived, place.angle);
        self.statistics.seek += movement;
        let begin = self.rotation.begins(slot);
        self.statistics.rotation += begin.since(self.arrived);
        self.phases.add(Activity::Seek, start, self.arrived);
        self.phases.add(Activity::Rotation, self.arrived, begin);
        SectorRun { sector, slot, left: place.left, fresh: true }
    }

    /// Returns the time to move to `target`: the longer of seek and head switch, since they overlap.
    fn movement(&self, target: HeadTrack) -> Duration {
        let seek = self.seek.time(self.track.cylinder.abs_diff(target.cylinder));
        let switch = if self.track.head == target.head { Duration::ZERO } else { self.head_switch };
        seek.max(switch)
    }

    /// Lets `sectors` of the run pass, across track ends if necessary, and returns the instant at which the last sector
    /// has passed.
    pub(crate) fn pass(&mut self, run: &mut SectorRun, mut sectors: u64) -> Instant {
        while sectors > 0 {
            if run.left == 0 {
                *run = self.turn_to(run.sector, self.rotation.begins(run.slot));
            }
            let passing = sectors.min(run.left);
            self.transfer(run, passing);
            sectors -= passing;
        }
        self.rotation.begins(run.slot)
    }

    /// Advances the run to `now` without a command, but not beyond the sector `limit`.
    pub(crate) fn pass_until(&mut self, run: &mut SectorRun, limit: u64, now: Instant) {
        while run.sector < limit {
            let end = self.rotation.begins(run.slot);
            if end > now {
                return;
            }
            if run.left == 0 {
                *run = self.turn_to(run.sector, end);
            }
            let passed = self.rotation.passed(run.slot, now).min(run.left).min(limit - run.sector);
            if passed == 0 {
                return;
            }
            self.transfer(run, passed);
        }
    }

    fn transfer(&mut self, run: &mut SectorRun, sectors: u64) {
        let begin = self.rotation.begins(run.slot);
        run.advance(sectors);
        let end = self.rotation.begins(run.slot);
        self.statistics.transfer += end.since(begin);
        self.phases.add(Activity::Transfer, begin, end);
    }

    /// Returns true if at `now` the head has not yet reached the start of the track on which the run continues.
    pub(crate) fn awaits_track(&self, run: &SectorRun, now: Instant) -> bool {
        run.left == 0 || (run.fresh && self.rotation.begins(run.slot) > now)
    }

    /// Ends the run at `now`, after completing a movement in progress. Returns the instant at which the mechanism is at
    /// rest.
    pub(crate) fn abandon(&mut self, run: &SectorRun, now: Instant) -> Instant {
        let at_rest = now.max(self.arrived);
        if run.fresh {
            let not_waited = self.rotation.begins(run.slot).since(at_rest);
            self.statistics.rotation = self.statistics.rotation - not_waited;
            self.phases.cut(at_rest);
        }
        at_rest
    }

    /// Returns the mechanism in its state at `now` if the run continues until then. Its statistics exclude everything
    /// after `now`.
    pub(crate) fn during(mut self, mut run: SectorRun, limit: u64, now: Instant) -> Self {
        self.pass_until(&mut run, limit, now);
        self.abandon(&run, now);
        if run.fresh {
            let not_moved = self.arrived.since(now.max(self.departed));
            self.statistics.seek = self.statistics.seek - not_moved;
            self.phases.cut(now);
        }
        self
    }
}
