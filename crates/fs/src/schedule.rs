//! Which waiting request a disk serves next: a pure decision, without futures.
//!
//! *First come, first served* keeps the order of arrival. *Cyclic scan* (Seltzer, Chen and Ousterhout 1990)
//! serves what lies ahead of the arm in increasing order, then starts again from the lowest. What lies
//! where is told by the requests' keys: here the logical block number, as the order a file system can know.
//!
//! *Open*, as in the reports, a sweep takes in every request that arrives ahead of the arm; so a reader of one
//! object from front to back keeps the arm, and all others wait. A *closed* sweep serves the requests that were
//! there when it began:
//!
//! ```text
//! waiting   a1 a2 b1 b2   the sweep: a1 a2 b1 b2
//! come      a3 a4 b3      meanwhile; they are the next sweep: b3 a3 a4
//! ```
//!
//! So nobody waits for more than what is left of one sweep, and then its own. What is written behind has been accepted
//! already, and may be a whole cache: of that, a sweep takes the oldest few.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;

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

/// Which requests a sweep of cyclic scan serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweeps {
    /// Every request ahead of the arm: a reader of one object from front to back keeps the disk.
    Open,
    /// The requests present at its beginning: none waits for more than the rest of one sweep and then its own.
    Closed,
}

impl Scheduling {
    /// All of them.
    pub const ALL: [Scheduling; 3] =
        [Scheduling::Fcfs, Scheduling::CyclicScan, Scheduling::PhysicalCyclicScan];

    /// The name by which options, plans and results call it.
    pub fn name(self) -> &'static str {
        match self {
            Scheduling::Fcfs => "fcfs",
            Scheduling::CyclicScan => "cyclic-scan",
            Scheduling::PhysicalCyclicScan => "physical-cyclic-scan",
        }
    }

    /// What it is, in a line for users.
    pub fn meaning(self) -> &'static str {
        match self {
            Scheduling::Fcfs => "First come, first served",
            Scheduling::CyclicScan => "By ascending position, then again from the lowest (C-SCAN)",
            Scheduling::PhysicalCyclicScan => "C-SCAN by physical position instead of the offset in the file",
        }
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scheduling {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Scheduling::ALL.into_iter().find(|scheduling| scheduling.name() == text);
        found.ok_or_else(|| {
            let names = Scheduling::ALL.map(Scheduling::name).join(", ");
            format!("no scheduling {text:?}: expected one of {names}")
        })
    }
}

/// Where a request lies, as far as the schedule cares: which object, then which byte of it; or the physical position.
pub(crate) type Position = (u64, u64);

/// The requests waiting for a disk, each known by a number.
#[derive(Debug)]
pub(crate) enum Waiting {
    Fcfs(VecDeque<(Position, usize)>),
    CyclicScan(Scan),
}

/// Write-behind requests admitted to one closed sweep: enough that the arm turns rarely, few enough not to delay a
/// reader.
const BEHIND_MAX: usize = 32;

/// The requests of cyclic scan.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Those that the sweep under way serves.
    sweep: Sweep,
    /// Those that have come since it began, if sweeps are closed.
    next: Option<Sweep>,
    /// Those of them that are written behind, in order of arrival.
    behind: VecDeque<(Position, usize)>,
    arrivals: u64,
}

/// By position, then by order of arrival.
type Sweep = BTreeMap<(Position, u64), usize>;

impl Waiting {
    pub(crate) fn new(scheduling: Scheduling, sweeps: Sweeps) -> Self {
        match scheduling {
            Scheduling::Fcfs => Waiting::Fcfs(VecDeque::new()),
            Scheduling::CyclicScan | Scheduling::PhysicalCyclicScan => Waiting::CyclicScan(Scan::new(sweeps)),
        }
    }

    pub(crate) fn add(&mut self, position: Position, request: usize) {
        match self {
            Waiting::Fcfs(queue) => queue.push_back((position, request)),
            Waiting::CyclicScan(scan) => scan.add(position, request),
        }
    }

    /// Adds one that writes what has been accepted already.
    pub(crate) fn add_behind(&mut self, position: Position, request: usize) {
        match self {
            Waiting::CyclicScan(Scan { next: Some(_), behind, .. }) => behind.push_back((position, request)),
            _ => self.add(position, request),
        }
    }

    /// Takes out the request to serve next, with the arm at `arm`.
    pub(crate) fn next(&mut self, arm: Position) -> Option<(Position, usize)> {
        match self {
            Waiting::Fcfs(queue) => queue.pop_front(),
            Waiting::CyclicScan(scan) => scan.next(arm),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Waiting::Fcfs(queue) => queue.is_empty(),
            Waiting::CyclicScan(scan) => scan.behind.is_empty() && scan.sweeps().all(BTreeMap::is_empty),
        }
    }

    /// Takes out the requests at `position`, except those of write-behind that are in no sweep yet.
    pub(crate) fn take_at(&mut self, position: Position) -> Vec<usize> {
        match self {
            Waiting::Fcfs(queue) => {
                let (here, rest) = std::mem::take(queue).into_iter().partition(|&(at, _)| at == position);
                *queue = rest;
                VecDeque::into_iter(here).map(|(_, request)| request).collect()
            }
            Waiting::CyclicScan(scan) => {
                let here = (position, 0)..=(position, u64::MAX);
                let taken = scan.sweeps_mut().flat_map(|sweep| sweep.extract_if(here.clone(), |_, _| true));
                taken.map(|(_, request)| request).collect()
            }
        }
    }

    /// Forgets a request that is not wanted any more.
    pub(crate) fn remove(&mut self, request: usize) {
        match self {
            Waiting::Fcfs(queue) => queue.retain(|&(_, waiting)| waiting != request),
            Waiting::CyclicScan(scan) => {
                scan.sweeps_mut().for_each(|sweep| sweep.retain(|_, waiting| *waiting != request));
                scan.behind.retain(|&(_, waiting)| waiting != request);
            }
        }
    }
}

impl Scan {
    fn new(sweeps: Sweeps) -> Self {
        let next = match sweeps {
            Sweeps::Open => None,
            Sweeps::Closed => Some(Sweep::new()),
        };
        Scan { sweep: Sweep::new(), next, behind: VecDeque::new(), arrivals: 0 }
    }

    fn add(&mut self, position: Position, request: usize) {
        self.arrivals += 1;
        self.next.as_mut().unwrap_or(&mut self.sweep).insert((position, self.arrivals), request);
    }

    fn next(&mut self, arm: Position) -> Option<(Position, usize)> {
        if let Some(next) = self.next.as_mut().filter(|_| self.sweep.is_empty()) {
            std::mem::swap(&mut self.sweep, next);
            for (position, request) in self.behind.drain(..BEHIND_MAX.min(self.behind.len())) {
                self.arrivals += 1;
                self.sweep.insert((position, self.arrivals), request);
            }
        }
        let ahead = self.sweep.range((arm, 0)..).next().map(|(&key, _)| key);
        let key = ahead.or_else(|| self.sweep.keys().next().copied())?;
        self.sweep.remove(&key).map(|request| (key.0, request))
    }

    fn sweeps(&self) -> impl Iterator<Item = &Sweep> {
        std::iter::once(&self.sweep).chain(&self.next)
    }

    fn sweeps_mut(&mut self) -> impl Iterator<Item = &mut Sweep> {
        std::iter::once(&mut self.sweep).chain(&mut self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(mut waiting: Waiting, blocks: &[u64], arm: u64) -> Vec<u64> {
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

    /// Each way to wait there is.
    fn all() -> [Waiting; 3] {
        [
            Waiting::new(Scheduling::Fcfs, Sweeps::Open),
            Waiting::new(Scheduling::CyclicScan, Sweeps::Open),
            Waiting::new(Scheduling::CyclicScan, Sweeps::Closed),
        ]
    }

    #[test]
    fn fcfs_keeps_the_order_of_arrival() {
        for sweeps in [Sweeps::Open, Sweeps::Closed] {
            let waiting = Waiting::new(Scheduling::Fcfs, sweeps);
            assert_eq!(order(waiting, &[5, 1, 9, 3], 4), [5, 1, 9, 3]);
        }
    }

    #[test]
    fn cyclic_scan_goes_up_and_starts_again_from_the_lowest() {
        for sweeps in [Sweeps::Open, Sweeps::Closed] {
            let scan = || Waiting::new(Scheduling::CyclicScan, sweeps);
            assert_eq!(order(scan(), &[5, 1, 9, 3], 4), [5, 9, 1, 3]);
            assert_eq!(order(scan(), &[2, 2, 1], 2), [2, 2, 1]);
        }
    }

    #[test]
    fn what_comes_during_a_sweep_joins_it_or_the_next_one() {
        for (sweeps, expected) in
            [(Sweeps::Open, [11, 12, 15, 20, 13]), (Sweeps::Closed, [11, 20, 12, 13, 15])]
        {
            let mut waiting = Waiting::new(Scheduling::CyclicScan, sweeps);
            waiting.add((0, 11), 11);
            waiting.add((0, 20), 20);
            let mut served = vec![waiting.next((0, 0)).expect("two wait").1];
            waiting.add((0, 12), 12);
            waiting.add((0, 15), 15);
            while let Some((arm, request)) = waiting.next((0, *served.last().expect("one") as u64)) {
                served.push(request);
                if arm == (0, 20) {
                    waiting.add((0, 13), 13);
                }
            }
            assert_eq!(served, expected, "{sweeps:?}");
        }
    }

    #[test]
    fn whoever_reads_waits_for_few_of_those_that_write_behind() {
        let mut waiting = Waiting::new(Scheduling::CyclicScan, Sweeps::Closed);
        (0..1000).for_each(|block| waiting.add_behind((0, block), block as usize));
        let mut arm = (0, 0);
        let mut serve = |waiting: &mut Waiting| {
            let (position, request) = waiting.next(arm)?;
            arm = position;
            Some(request)
        };
        assert_eq!(serve(&mut waiting), Some(0));
        waiting.add((0, 5000), 5000);
        waiting.remove(999);
        let served: Vec<usize> = std::iter::from_fn(|| serve(&mut waiting)).collect();
        assert!(served.iter().position(|&request| request == 5000).is_some_and(|at| at < 2 * BEHIND_MAX));
        assert_eq!(served.len(), 999);
        assert!(served.iter().filter(|&&request| request < 1000).is_sorted() && waiting.is_empty());
    }

    #[test]
    fn whoever_reads_without_end_leaves_those_that_write_behind_their_part() {
        let mut waiting = Waiting::new(Scheduling::CyclicScan, Sweeps::Closed);
        (0..100).for_each(|block| waiting.add_behind((0, block), block as usize));
        (200..204).for_each(|block| waiting.add((0, block), 200));
        let (mut arm, mut reads, mut writes) = ((0, 0), 0, 0);
        while writes < 100 {
            let (position, request) = waiting.next(arm).expect("some wait");
            arm = position;
            if request == 200 {
                reads += 1;
                waiting.add((0, 204 + reads), 200);
            } else {
                writes += 1;
            }
        }
        assert!(reads <= 4 * 4, "{reads} reads beside 100 writes");
    }

    #[test]
    fn what_is_taken_out_is_all_at_that_position() {
        for mut waiting in all() {
            for (block, request) in [(0, 9), (1, 10), (2, 11)] {
                waiting.add((0, block), request);
            }
            assert_eq!(waiting.next((0, 0)), Some(((0, 0), 9)));
            waiting.add((0, 1), 12);
            assert_eq!(waiting.take_at((0, 1)), [10, 12]);
            assert_eq!(waiting.next((0, 0)), Some(((0, 2), 11)));
            assert_eq!(waiting.next((0, 0)), None);
        }
    }

    #[test]
    fn a_removed_request_is_not_served() {
        for mut waiting in all() {
            waiting.add((0, 1), 10);
            waiting.add((0, 2), 11);
            waiting.remove(10);
            assert_eq!(waiting.next((0, 0)), Some(((0, 2), 11)));
            waiting.add((0, 3), 12);
            assert!(!waiting.is_empty());
            waiting.remove(12);
            assert!(waiting.is_empty());
            assert_eq!(waiting.next((0, 0)), None);
        }
    }

    /// Requests that wait at a time, at most.
    const WAITING_MAX: usize = 8;

    proptest! {
        #[test]
        fn nobody_waits_for_more_than_two_closed_sweeps(
            steps in proptest::collection::vec((0..40_u64, 1..4_usize), 1..300),
            stream in any::<bool>(),
        ) {
            for scheduling in [Scheduling::Fcfs, Scheduling::CyclicScan, Scheduling::PhysicalCyclicScan] {
                let mut waiting = Waiting::new(scheduling, Sweeps::Closed);
                let (mut arm, mut came, mut turn) = ((0, 0), Vec::new(), 0);
                let mut steps = steps.iter();
                let mut left = 0;
                loop {
                    let step = steps.next();
                    for number in 0..step.map_or(0, |&(_, count)| count).min(WAITING_MAX - left) {
                        // A stream goes just ahead of the arm: an open sweep would serve nothing else.
                        let anywhere = step.map_or(0, |&(block, _)| block);
                        let block = if stream && number == 0 { arm.1 + 1 } else { anywhere };
                        waiting.add((0, block), came.len());
                        came.push(turn);
                        left += 1;
                    }
                    let Some((position, request)) = waiting.next(arm) else {
                        prop_assert_eq!(left, 0);
                        if step.is_none() { break } else { continue }
                    };
                    (arm, left) = (position, left - 1);
                    prop_assert!(turn - came[request] < 2 * WAITING_MAX, "{} turns", turn - came[request]);
                    turn += 1;
                }
            }
        }
    }
}
