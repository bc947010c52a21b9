//! First come, first served.

use std::collections::VecDeque;

use super::classes::Line;
use super::{DiskRequest, Number, Position};

/// Requests in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Fifo(VecDeque<(DiskRequest, Number)>);

impl Line for Fifo {
    fn push(&mut self, request: DiskRequest, number: Number) {
        self.0.push_back((request, number));
    }

    fn pop(&mut self, _arm: Position) -> Option<(DiskRequest, Number)> {
        self.0.pop_front()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take_at(&mut self, position: Position) -> Vec<(DiskRequest, Number)> {
        let is_here = |(request, _): &(DiskRequest, Number)| request.position == position;
        let (here, rest) = std::mem::take(&mut self.0).into_iter().partition(is_here);
        self.0 = rest;
        here.into()
    }

    fn remove(&mut self, number: Number) {
        self.0.retain(|&(_, waiting)| waiting != number);
    }
}
