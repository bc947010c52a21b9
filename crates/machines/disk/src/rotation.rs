//! Sector under the head at any nanosecond, without drift.
//!
//! Time is divided into *slots*: in slot `s` the sector at angle `s mod sectors_per_track` passes. Slot `s` begins `s *
//! period / sectors_per_track` after the spindle passed angle 0, rounded up. Every slot is computed from the first slot
//! and not from the previous one, so rounding errors never accumulate.

use machine::Instant;

#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    period: u128,
    sectors: u128,
    /// Time in nanoseconds from the passage of angle 0 to the start of the machine.
    phase: u64,
}

/// Passage of one sector, counted from angle 0 of the rotation in which the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SectorSlot(u64);

impl SectorSlot {
    pub(crate) fn after(self, sectors: u64) -> SectorSlot {
        SectorSlot(self.0 + sectors)
    }
}

impl Rotation {
    /// Creates a spindle that has turned by the fraction `phase` of a revolution when the machine starts.
    pub(crate) fn new(period: machine::Duration, sectors: u64, phase: f64) -> Self {
        let period = period.as_nanos();
        assert!((0.0..1.0).contains(&phase), "rotation phase {phase} is not in 0..1");
        Rotation { period: period.into(), sectors: sectors.into(), phase: (phase * period as f64) as u64 }
    }

    /// Returns the beginning of `slot`, which is the end of the previous slot.
    ///
    /// For a slot that began before the machine started, returns the start of the machine.
    pub(crate) fn begins(&self, slot: SectorSlot) -> Instant {
        let nanoseconds = (u128::from(slot.0) * self.period).div_ceil(self.sectors);
        let nanoseconds = u64::try_from(nanoseconds).expect("the time is less than 584 years");
        Instant::from_nanos(nanoseconds.saturating_sub(self.phase))
    }

    /// Returns the first slot at or after `now` in which the sector at `angle` passes.
    pub(crate) fn next(&self, now: Instant, angle: u64) -> SectorSlot {
        let sectors = self.sectors as u64;
        let first = self.first_at(now);
        SectorSlot(first + (angle + sectors - first % sectors) % sectors)
    }

    /// Returns the number of whole slots, counted from `slot`, that have passed by `now`.
    pub(crate) fn passed(&self, slot: SectorSlot, now: Instant) -> u64 {
        if self.begins(slot) > now { 0 } else { self.last_begun(now).saturating_sub(slot.0) }
    }

    /// Returns the first slot that begins at `now` or later.
    fn first_at(&self, now: Instant) -> u64 {
        let elapsed = u128::from(now.as_nanos()) + u128::from(self.phase);
        // ceil(s * period / sectors) >= elapsed  <=>  s * period > (elapsed - 1) * sectors
        let slot = elapsed.checked_sub(1).map_or(0, |before| before * self.sectors / self.period + 1);
        u64::try_from(slot).expect("the slot begins within 584 years")
    }

    /// Returns the last slot that begins at `now` or earlier.
    fn last_begun(&self, now: Instant) -> u64 {
        let elapsed = u128::from(now.as_nanos()) + u128::from(self.phase);
        u64::try_from(elapsed * self.sectors / self.period).expect("the slot begins within 584 years")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Duration;

    fn rotation(phase: f64) -> Rotation {
        Rotation::new(Duration::from_nanos(14_992_504), 72, phase)
    }

    #[test]
    fn a_slot_that_begins_now_is_the_next_slot() {
        let rotation = rotation(0.3);
        for slot in (30..100_000).map(SectorSlot) {
            let begins = rotation.begins(slot);
            let late = begins + Duration::from_nanos(1);
            assert_eq!(rotation.next(begins, slot.0 % 72), slot);
            assert_eq!(rotation.next(late, slot.0 % 72), slot.after(72));
            assert_eq!(rotation.passed(slot, begins), 0);
            assert_eq!(rotation.passed(SectorSlot(25), begins), slot.0 - 25);
            assert_eq!(rotation.passed(SectorSlot(25), late), slot.0 - 25);
        }
    }

    #[test]
    fn a_thousand_million_rotations_do_not_drift() {
        let rotation = rotation(0.0);
        let rotations = 1_000_000_000;
        assert_eq!(rotation.begins(SectorSlot(72 * rotations)), Instant::from_nanos(14_992_504 * rotations));
    }

    #[test]
    fn the_phase_is_the_rotation_before_the_start() {
        let rotation = rotation(0.5);
        assert_eq!(rotation.begins(rotation.next(Instant::START, 36)), Instant::START);
        assert_eq!(rotation.begins(rotation.next(Instant::START, 0)), Instant::from_nanos(7_496_252));
    }
}
