//! Makes a failing schedule small: fewer clients, operations and faults, then simpler values.

use crate::job_settings::JobSettings;
use crate::kind::errors_of_panics;
use crate::run::{BrokenLaw, run};
use crate::schedule::{ClientOperation, Schedule};

/// Maximum number of runs. A run takes some milliseconds.
const RUNS_MAX: u32 = 3_000;

/// Removes all that a failure does not need. The result breaks the same law.
///
/// Delta debugging: removes halves, quarters, ... of the operations and faults, until no single one can be removed.
pub fn shrink(schedule: Schedule, broken: BrokenLaw) -> (Schedule, BrokenLaw) {
    let mut search = Search { best: (schedule, broken), runs_left: RUNS_MAX };
    loop {
        let before = search.best.0.clone();
        search.shorten();
        search.simplify();
        if search.best.0 == before || search.runs_left == 0 {
            return search.best;
        }
    }
}

struct Search {
    best: (Schedule, BrokenLaw),
    runs_left: u32,
}

impl Search {
    /// Keeps a schedule if it breaks the same law.
    fn try_it(&mut self, schedule: Schedule) -> bool {
        if self.runs_left == 0 || schedule == self.best.0 {
            return false;
        }
        self.runs_left -= 1;
        match errors_of_panics(|| run(&schedule)) {
            Err(broken) if broken.law == self.best.1.law => {
                self.best = (schedule, broken);
                true
            }
            _ => false,
        }
    }

    fn shorten(&mut self) {
        let mut part = self.best.0.size().div_ceil(2).max(1);
        loop {
            let mut from = 0;
            while from < self.best.0.size() {
                if !self.try_it(self.best.0.without(from, part)) {
                    from += part;
                }
            }
            if part == 1 {
                break;
            }
            part = part.div_ceil(2);
        }
        // The last clients that do nothing.
        while self.best.0.clients.len() > 1 && self.best.0.clients.last().is_some_and(Vec::is_empty) {
            let mut fewer = self.best.0.clone();
            fewer.clients.pop();
            if !self.try_it(fewer) {
                break;
            }
        }
    }

    fn simplify(&mut self) {
        let settings: [fn(&mut Schedule); 11] = [
            |schedule| schedule.machine = "golden".into(),
            |schedule| schedule.drawn_order = false,
            |schedule| schedule.send_after = 0,
            |schedule| schedule.speed = 3,
            |schedule| schedule.io_nodes = 1,
            |schedule| schedule.threads = 2,
            |schedule| schedule.cache_blocks = 16,
            |schedule| schedule.pages = 16,
            |schedule| schedule.formatted = false,
            |schedule| schedule.job = None,
            |schedule| schedule.job.iter_mut().for_each(JobSettings::simplify),
        ];
        for simplify in settings {
            let mut simpler = self.best.0.clone();
            simplify(&mut simpler);
            self.try_it(simpler);
        }
        for client in 0..self.best.0.clients.len() {
            for index in 0..self.best.0.clients[client].len() {
                for simplify in [ClientOperation::aligned, ClientOperation::halved] {
                    let mut simpler = self.best.0.clone();
                    let operation = &mut simpler.clients[client][index];
                    *operation = simplify(*operation);
                    self.try_it(simpler);
                }
            }
        }
        for index in 0..self.best.0.faults.len() {
            let mut simpler = self.best.0.clone();
            simpler.faults[index].at /= 2;
            self.try_it(simpler);
        }
    }
}
