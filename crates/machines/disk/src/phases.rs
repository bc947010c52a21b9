//! Phases of the mechanics in order of time. They are recorded only on request, for inspection.

use std::mem;

use machine::Instant;

/// Interval of time in which the mechanics do one activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Activity of the mechanics in this interval.
    pub activity: Activity,
    /// Begin of the interval.
    pub begin: Instant,
    /// End of the interval.
    pub end: Instant,
}

/// Activity of the mechanics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The arm moves, or heads are switched.
    Seek,
    /// The head waits until a sector passes.
    Rotation,
    /// The disk reads requested sectors, reads sectors ahead, or writes sectors.
    Transfer,
}

/// Phases in order of time; `None` if they are not recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases(Option<Vec<Phase>>);

impl Phases {
    pub(crate) fn record(&mut self) {
        self.0 = Some(Vec::new());
    }

    /// Removes and returns all phases, and stops recording.
    pub(crate) fn stop(&mut self) -> Vec<Phase> {
        self.0.take().unwrap_or_default()
    }

    /// Adds a phase. Ignores a phase of length 0, and merges a transfer with the transfer that it continues.
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

    /// Removes everything after `end`.
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

    /// Removes and returns all phases except a final wait for the rotation, which can still be shortened.
    pub(crate) fn take(&mut self) -> Vec<Phase> {
        let Some(phases) = &mut self.0 else { return Vec::new() };
        let waits = phases.last().is_some_and(|last| last.activity == Activity::Rotation);
        let open = phases.split_off(phases.len() - usize::from(waits));
        mem::replace(phases, open)
    }
}
