//! The phases of the mechanics in order, for inspection. Kept only if asked for.

use std::mem;

use machine::Instant;

/// A stretch of time in which the mechanics do one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What they do.
    pub activity: Activity,
    /// From when.
    pub begin: Instant,
    /// Until when.
    pub end: Instant,
}

/// What mechanics do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The arm moves, or heads are switched.
    Seek,
    /// The head waits for a sector to come round.
    Rotation,
    /// Sectors pass that are read, wanted or ahead, or written.
    Transfer,
}

/// Phases in order of time, or none if they are not kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases(Option<Vec<Phase>>);

impl Phases {
    pub(crate) fn record(&mut self) {
        self.0 = Some(Vec::new());
    }

    /// Takes out all phases, and records no more.
    pub(crate) fn stop(&mut self) -> Vec<Phase> {
        self.0.take().unwrap_or_default()
    }

    /// Adds a phase; one that takes no time is none, and a transfer that goes on is one.
    #[inline]
    pub(crate) fn add(&mut self, activity: Activity, begin: Instant, end: Instant) {
        let Some(phases) = &mut self.0 else { return };
        match phases.last_mut() {
            _ if begin >= end => {}
            Some(last)
                if activity == Activity::Transfer && last.activity == activity && last.end == begin =>
            {
                last.end = end;
            }
            _ => phases.push(Phase { activity, begin, end }),
        }
    }

    /// Cuts off what was to be after `end`.
    pub(crate) fn cut(&mut self, end: Instant) {
        let Some(phases) = &mut self.0 else { return };
        while let Some(last) = phases.last_mut() {
            last.end = last.end.min(end);
            if last.begin < last.end {
                return;
            }
            phases.pop();
        }
    }

    /// Takes out all phases but a last wait for the rotation, which may be cut off yet.
    pub(crate) fn take(&mut self) -> Vec<Phase> {
        let Some(phases) = &mut self.0 else { return Vec::new() };
        let waits = phases.last().is_some_and(|last| last.activity == Activity::Rotation);
        let open = phases.split_off(phases.len() - usize::from(waits));
        mem::replace(phases, open)
    }
}
