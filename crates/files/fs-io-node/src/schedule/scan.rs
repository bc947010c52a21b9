//! Cyclic scan (Seltzer, Chen and Ousterhout 1990): the requests ahead of the arm in increasing order of
//! position, then again from the lowest. The position of a request is by default its logical block number,
//! the order that a file system can know.
//!
//! *Open*, as in the reports, a sweep includes every request that arrives ahead of the arm; so a sequential
//! reader of one object keeps the arm, and all others wait. A *closed* sweep serves the requests present at
//! its beginning:
//!
//! ```text
//! waiting   a1 a2 b1 b2   the sweep: a1 a2 b1 b2
//! arriving  a3 a4 b3      during the sweep; they are the next one: b3 a3 a4
//! ```
//!
//! So no request waits for more than the rest of one sweep, and then its own sweep. Write-behind data have
//! been accepted already, and may fill a whole cache: a sweep includes only the oldest few of their requests.

use std::collections::{BTreeMap, VecDeque};

use super::classes::Line;
use super::{DiskRequest, Number, Position, Sweeps, Urgency};

/// Limit of write-behind requests admitted to one closed sweep: enough that the arm turns rarely, few enough
/// not to delay a reader.
const BEHIND_MAX: usize = 32;

/// The requests of cyclic scan.
#[derive(Debug)]
pub(super) struct Scan {
    /// The requests of the current sweep.
    sweep: Sweep,
    /// The requests that have arrived since it began, if sweeps are closed.
    next: Option<Sweep>,
    /// Waiting write-behind requests, in order of arrival, if sweeps are closed.
    behind: VecDeque<(DiskRequest, Number)>,
    arrivals: u64,
}

/// Requests by position, then by order of arrival.
type Sweep = BTreeMap<(Position, u64), (DiskRequest, Number)>;

impl Scan {
    pub(super) fn new(sweeps: Sweeps) -> Self {
        let next = match sweeps {
            Sweeps::Open => None,
            Sweeps::Closed => Some(Sweep::new()),
        };
        Scan { sweep: Sweep::new(), next, behind: VecDeque::new(), arrivals: 0 }
    }

    fn sweeps(&self) -> impl Iterator<Item = &Sweep> {
        std::iter::once(&self.sweep).chain(&self.next)
    }

    fn sweeps_mut(&mut self) -> impl Iterator<Item = &mut Sweep> {
        std::iter::once(&mut self.sweep).chain(&mut self.next)
    }
}

impl Line for Scan {
    fn push(&mut self, request: DiskRequest, number: Number) {
        if self.next.is_some() && request.user.urgency == Urgency::Behind {
            self.behind.push_back((request, number));
            return;
        }
        self.arrivals += 1;
        let sweep = self.next.as_mut().unwrap_or(&mut self.sweep);
        sweep.insert((request.position, self.arrivals), (request, number));
    }

    fn pop(&mut self, arm: Position) -> Option<(DiskRequest, Number)> {
        if let Some(next) = self.next.as_mut().filter(|_| self.sweep.is_empty()) {
            std::mem::swap(&mut self.sweep, next);
            for waiting in self.behind.drain(..BEHIND_MAX.min(self.behind.len())) {
                self.arrivals += 1;
                self.sweep.insert((waiting.0.position, self.arrivals), waiting);
            }
        }
        let ahead = self.sweep.range((arm, 0)..).next().map(|(&key, _)| key);
        let key = ahead.or_else(|| self.sweep.keys().next().copied())?;
        self.sweep.remove(&key)
    }

    fn is_empty(&self) -> bool {
        self.behind.is_empty() && self.sweeps().all(BTreeMap::is_empty)
    }

    fn take_at(&mut self, position: Position) -> Vec<(DiskRequest, Number)> {
        let here = (position, 0)..=(position, u64::MAX);
        let taken = self.sweeps_mut().flat_map(|sweep| sweep.extract_if(here.clone(), |_, _| true));
        taken.map(|(_, waiting)| waiting).collect()
    }

    fn remove(&mut self, number: Number) {
        self.sweeps_mut().for_each(|sweep| sweep.retain(|_, waiting| waiting.1 != number));
        self.behind.retain(|&(_, waiting)| waiting != number);
    }
}

#[cfg(test)]
mod tests {
    use super::super::laws::{read, written_behind};
    use super::*;

    /// Returns the blocks of the requests in order of service.
    fn order(scan: &mut Scan, arm: u64) -> Vec<u64> {
        let mut arm = (0, arm);
        std::iter::from_fn(|| {
            arm = scan.pop(arm)?.0.position;
            Some(arm.1)
        })
        .collect()
    }

    fn scan_of(sweeps: Sweeps, blocks: &[u64]) -> Scan {
        let mut scan = Scan::new(sweeps);
        for (number, &block) in blocks.iter().enumerate() {
            scan.push(read(1, block), number);
        }
        scan
    }

    #[test]
    fn a_sweep_ascends_and_restarts_at_the_lowest_position() {
        for sweeps in [Sweeps::Open, Sweeps::Closed] {
            assert_eq!(order(&mut scan_of(sweeps, &[5, 1, 9, 3]), 4), [5, 9, 1, 3]);
            assert_eq!(order(&mut scan_of(sweeps, &[2, 2, 1]), 2), [2, 2, 1]);
        }
    }

    #[test]
    fn a_request_during_a_sweep_joins_it_or_the_next_one() {
        for (sweeps, expected) in
            [(Sweeps::Open, [11, 12, 15, 20, 13]), (Sweeps::Closed, [11, 20, 12, 13, 15])]
        {
            let mut scan = scan_of(sweeps, &[11, 20]);
            let mut served = vec![scan.pop((0, 0)).expect("two wait").0.position];
            scan.push(read(1, 12), 12);
            scan.push(read(1, 15), 15);
            while let Some((request, _)) = scan.pop(*served.last().expect("one")) {
                served.push(request.position);
                if request.position == (0, 20) {
                    scan.push(read(1, 13), 13);
                }
            }
            assert_eq!(served, expected.map(|block| (0, block)), "{sweeps:?}");
        }
    }

    #[test]
    fn a_read_waits_for_few_write_behind_requests() {
        let mut scan = Scan::new(Sweeps::Closed);
        (0..1000).for_each(|block| scan.push(written_behind(1, block), block as usize));
        assert_eq!(scan.pop((0, 0)).map(|(_, number)| number), Some(0));
        scan.push(read(2, 5000), 5000);
        scan.remove(999);
        let served = order(&mut scan, 0);
        assert!(served.iter().position(|&block| block == 5000).is_some_and(|at| at < 2 * BEHIND_MAX));
        assert_eq!(served.len(), 999);
        assert!(served.iter().filter(|&&block| block < 1000).is_sorted() && scan.is_empty());
    }

    #[test]
    fn endless_reads_leave_a_share_to_write_behind() {
        let mut scan = Scan::new(Sweeps::Closed);
        (0..100).for_each(|block| scan.push(written_behind(1, block), 0));
        (200..204).for_each(|block| scan.push(read(2, block), 0));
        let (mut arm, mut reads, mut writes) = ((0, 0), 0, 0);
        while writes < 100 {
            arm = scan.pop(arm).expect("some wait").0.position;
            if arm.1 >= 200 {
                reads += 1;
                scan.push(read(2, 204 + reads), 0);
            } else {
                writes += 1;
            }
        }
        assert!(reads <= 4 * 4, "{reads} reads during 100 writes");
    }
}
