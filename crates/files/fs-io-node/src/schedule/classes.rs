//! Serves demand requests before all background requests.

use super::{DiskRequest, DiskSchedule, Number, Position, Urgency};

/// Waiting requests of one class.
pub(super) trait Line {
    fn push(&mut self, request: DiskRequest, number: Number);

    /// Removes the request to serve next, with the arm at `arm`, and returns it.
    fn pop(&mut self, arm: Position) -> Option<(DiskRequest, Number)>;

    fn is_empty(&self) -> bool;

    /// Removes the requests at `position`, except write-behind requests that are not yet admitted to a sweep, and
    /// returns them.
    fn take_at(&mut self, position: Position) -> Vec<(DiskRequest, Number)>;

    fn remove(&mut self, number: Number);
}

/// A queue for each class.
#[derive(Debug, Default)]
pub(super) struct Classes<L> {
    demand: L,
    background: L,
}

impl<L: Line> Classes<L> {
    /// Creates two empty queues of this kind.
    pub(super) fn of(line: impl Fn() -> L) -> Self {
        Classes { demand: line(), background: line() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.demand.is_empty() && self.background.is_empty()
    }
}

impl<L: Line> DiskSchedule for Classes<L> {
    fn push(&mut self, request: DiskRequest, number: Number) {
        match request.user.urgency {
            Urgency::Demand | Urgency::Behind => self.demand.push(request, number),
            Urgency::Background => self.background.push(request, number),
        }
    }

    fn pop(&mut self, arm: Position) -> Option<(DiskRequest, Number)> {
        self.demand.pop(arm).or_else(|| self.background.pop(arm))
    }

    fn has_background(&self) -> bool {
        !self.background.is_empty()
    }

    fn promote(&mut self, position: Position) {
        for (mut request, number) in self.background.take_at(position) {
            request.user.urgency = Urgency::Demand;
            self.demand.push(request, number);
        }
    }

    fn remove(&mut self, number: Number) {
        // Look in both queues, since the request may have been promoted.
        self.demand.remove(number);
        self.background.remove(number);
    }
}
