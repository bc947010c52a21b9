//! Which waiting request a disk serves next: a pure decision, without futures.
//!
//! *First come, first served* keeps the order of arrival. *Cyclic scan* (Seltzer, Chen and Ousterhout 1990)
//! serves what lies ahead of the arm in increasing order, then starts again from the lowest. What lies
//! where is told by the requests' keys: here the logical block number, as the order a file system can know.

use std::collections::{BTreeMap, VecDeque};

/// The order in which a disk's waiting requests are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scheduling {
    /// First come, first served.
    Fcfs,
    /// Cyclic scan, by logical block.
    #[default]
    CyclicScan,
    /// Cyclic scan, by physical position where the disk tells it.
    PhysicalCyclicScan,
}

/// Where a request lies, as far as the schedule cares: which object, then which byte of it; or the physical position.
pub(crate) type Position = (u64, u64);

/// The requests waiting for a disk, each known by a number.
#[derive(Debug)]
pub(crate) enum Waiting {
    Fcfs(VecDeque<(Position, usize)>),
    CyclicScan {
        /// By position, then by order of arrival.
        requests: BTreeMap<(Position, u64), usize>,
        arrivals: u64,
    },
}

impl Waiting {
    pub(crate) fn new(scheduling: Scheduling) -> Self {
        match scheduling {
            Scheduling::Fcfs => Waiting::Fcfs(VecDeque::new()),
            Scheduling::CyclicScan | Scheduling::PhysicalCyclicScan => {
                Waiting::CyclicScan { requests: BTreeMap::new(), arrivals: 0 }
            }
        }
    }

    pub(crate) fn add(&mut self, position: Position, request: usize) {
        match self {
            Waiting::Fcfs(queue) => queue.push_back((position, request)),
            Waiting::CyclicScan { requests, arrivals } => {
                *arrivals += 1;
                requests.insert((position, *arrivals), request);
            }
        }
    }

    /// Takes out the request to serve next, with the arm at `arm`.
    pub(crate) fn next(&mut self, arm: Position) -> Option<(Position, usize)> {
        match self {
            Waiting::Fcfs(queue) => queue.pop_front(),
            Waiting::CyclicScan { requests, .. } => {
                let ahead = requests.range((arm, 0)..).next().map(|(&key, _)| key);
                let key = ahead.or_else(|| requests.keys().next().copied())?;
                requests.remove(&key).map(|request| (key.0, request))
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Waiting::Fcfs(queue) => queue.is_empty(),
            Waiting::CyclicScan { requests, .. } => requests.is_empty(),
        }
    }

    /// Takes out the requests that lie at `position`.
    pub(crate) fn take_at(&mut self, position: Position) -> Vec<usize> {
        match self {
            Waiting::Fcfs(queue) => {
                let (here, rest) = std::mem::take(queue).into_iter().partition(|&(at, _)| at == position);
                *queue = rest;
                VecDeque::into_iter(here).map(|(_, request)| request).collect()
            }
            Waiting::CyclicScan { requests, .. } => {
                let here = (position, 0)..=(position, u64::MAX);
                requests.extract_if(here, |_, _| true).map(|(_, request)| request).collect()
            }
        }
    }

    /// Forgets a request that is not wanted any more.
    pub(crate) fn remove(&mut self, request: usize) {
        match self {
            Waiting::Fcfs(queue) => queue.retain(|&(_, waiting)| waiting != request),
            Waiting::CyclicScan { requests, .. } => requests.retain(|_, waiting| *waiting != request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(scheduling: Scheduling, blocks: &[u64], arm: u64) -> Vec<u64> {
        let mut waiting = Waiting::new(scheduling);
        for (request, &block) in blocks.iter().enumerate() {
            waiting.add((0, block), request);
        }
        let mut arm = (0, arm);
        std::iter::from_fn(|| {
            let (position, _) = waiting.next(arm)?;
            arm = position;
            Some(position.1)
        })
        .collect()
    }

    #[test]
    fn fcfs_keeps_the_order_of_arrival() {
        assert_eq!(order(Scheduling::Fcfs, &[5, 1, 9, 3], 4), [5, 1, 9, 3]);
    }

    #[test]
    fn cyclic_scan_goes_up_and_starts_again_from_the_lowest() {
        assert_eq!(order(Scheduling::CyclicScan, &[5, 1, 9, 3], 4), [5, 9, 1, 3]);
        assert_eq!(order(Scheduling::CyclicScan, &[2, 2, 1], 2), [2, 2, 1]);
    }

    #[test]
    fn what_is_taken_out_is_all_at_that_position() {
        for scheduling in [Scheduling::Fcfs, Scheduling::CyclicScan] {
            let mut waiting = Waiting::new(scheduling);
            for (block, request) in [(1, 10), (2, 11), (1, 12)] {
                waiting.add((0, block), request);
            }
            assert_eq!(waiting.take_at((0, 1)), [10, 12]);
            assert_eq!(waiting.next((0, 0)), Some(((0, 2), 11)));
            assert_eq!(waiting.next((0, 0)), None);
        }
    }

    #[test]
    fn a_removed_request_is_not_served() {
        for scheduling in [Scheduling::Fcfs, Scheduling::CyclicScan] {
            let mut waiting = Waiting::new(scheduling);
            waiting.add((0, 1), 10);
            waiting.add((0, 2), 11);
            waiting.remove(10);
            assert_eq!(waiting.next((0, 0)), Some(((0, 2), 11)));
            assert_eq!(waiting.next((0, 0)), None);
        }
    }
}
