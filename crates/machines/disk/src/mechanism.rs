//! The moving parts of a disk: the arm, the heads and the rotation, and what they cost.
//!
//! The mechanism only does what it is told, one thing after another: turn to a sector, let sectors pass.
//! Sectors that pass without a gap form a [`SectorRun`]; at the end of a track the run goes on to the next one
//! as soon as the head has switched or the arm has moved, and the skew has come round.

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
    /// The track under the head, or the one it moves to.
    track: HeadTrack,
    /// When the head left for that track.
    departed: Instant,
    /// When the head was or will be at rest on that track.
    arrived: Instant,
    pub(crate) statistics: Statistics,
    pub(crate) phases: Phases,
}

/// Sectors passing one after the other: the next one, and the slot in which it passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectorRun {
    pub(crate) sector: u64,
    slot: SectorSlot,
    /// Sectors from `sector` to the end of the track; none if the head has yet to leave for the next track.
    left: u64,
    /// Whether none has passed since the mechanism turned to `sector`.
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

    /// Moves to the track of `sector`, starting at `start`, and waits for the sector to come round.
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

    /// A seek hides the head switch that goes with it.
    fn movement(&self, target: HeadTrack) -> Duration {
        let seek = self.seek.time(self.track.cylinder.abs_diff(target.cylinder));
        let switch = if self.track.head == target.head { Duration::ZERO } else { self.head_switch };
        seek.max(switch)
    }

    /// Lets `sectors` of the run pass, over as many tracks as it takes, and returns when the last has passed.
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

    /// Lets the run go on by itself until `now`, but not beyond the sector `limit`.
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

    /// Whether at `now` the head has yet to come to the beginning of the track on which the run goes on.
    pub(crate) fn awaits_track(&self, run: &SectorRun, now: Instant) -> bool {
        run.left == 0 || (run.fresh && self.rotation.begins(run.slot) > now)
    }

    /// Ends the run at `now` and returns when the head is at rest: a movement once begun is completed.
    pub(crate) fn abandon(&mut self, run: &SectorRun, now: Instant) -> Instant {
        let at_rest = now.max(self.arrived);
        if run.fresh {
            let not_waited = self.rotation.begins(run.slot).since(at_rest);
            self.statistics.rotation = self.statistics.rotation - not_waited;
            self.phases.cut(at_rest);
        }
        at_rest
    }

    /// The mechanism if the run goes on by itself until `now`, of which nothing later is counted.
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
