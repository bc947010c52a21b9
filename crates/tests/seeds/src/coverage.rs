//! Coverage of runs: reached marks, faults during operations, and injected faults.

use std::collections::{BTreeMap, BTreeSet};

use crate::kind_names::{FAULTS, OPERATIONS, Role};

/// Something that few runs reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hit {
    /// Marked place in the sources, by its name.
    Mark(&'static str),
    /// Fault that lasted during an operation, by the names of the kinds.
    Overlap {
        /// Kind of the fault.
        fault: &'static str,
        /// Role of the node that the fault hit.
        role: Role,
        /// Kind of the operation.
        operation: &'static str,
    },
}

/// Coverage of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCoverage {
    /// Everything that the run has reached.
    pub hits: BTreeSet<Hit>,
    /// Numbers of injected faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
}

/// Sums over runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoverageCounts {
    /// Number of runs.
    pub runs: u64,
    /// Number of failed runs.
    pub failed: u64,
    /// Number of runs that reached each hit.
    pub hits: BTreeMap<Hit, u64>,
    /// Numbers of injected faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
}

impl CoverageCounts {
    /// Adds a run.
    pub fn add_run(&mut self, coverage: RunCoverage, has_failed: bool) {
        let RunCoverage { hits, faults } = coverage;
        let hits = hits.into_iter().map(|hit| (hit, 1)).collect();
        self.add(CoverageCounts { runs: 1, failed: has_failed.into(), hits, faults });
    }

    /// Adds the sums over other runs.
    pub fn add(&mut self, other: CoverageCounts) {
        self.runs += other.runs;
        self.failed += other.failed;
        other.hits.into_iter().for_each(|(hit, count)| *self.hits.entry(hit).or_default() += count);
        other.faults.into_iter().for_each(|(fault, count)| *self.faults.entry(fault).or_default() += count);
    }

    /// Returns the number of runs that reached a hit.
    pub fn of(&self, hit: Hit) -> u64 {
        self.hits.get(&hit).copied().unwrap_or_default()
    }

    /// Returns the number of runs that reached each of these marks.
    ///
    /// # Panics
    /// If a reached mark is not one of them.
    pub fn of_marks<'a>(&self, marks: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, u64> {
        let mut counts: BTreeMap<&str, u64> = marks.map(|mark| (mark, 0)).collect();
        for (hit, count) in &self.hits {
            if let Hit::Mark(name) = hit {
                *counts.get_mut(name).unwrap_or_else(|| panic!("the mark {name:?} is not in the sources")) =
                    *count;
            }
        }
        counts
    }

    /// Returns the pairs of faults and operations that no run reached.
    pub fn missing_overlaps(&self) -> Vec<(&'static str, Role, &'static str)> {
        let all = FAULTS.iter().flat_map(|&fault| Role::of(fault).iter().map(move |&role| (fault, role)));
        let all = all.flat_map(|(fault, role)| OPERATIONS.iter().map(move |&name| (fault, role, name)));
        all.filter(|&(fault, role, operation)| self.of(Hit::Overlap { fault, role, operation }) == 0)
            .collect()
    }
}

/// Returns a line with the number of reached marks, and the names of the others.
pub fn marks_line(counts: &BTreeMap<&str, u64>) -> String {
    let missing: Vec<&str> = counts.iter().filter(|(_, count)| **count == 0).map(|(mark, _)| *mark).collect();
    let reached = format!("{} of {} marks reached", counts.len() - missing.len(), counts.len());
    if missing.is_empty() { reached } else { format!("{reached}, never: {}", missing.join("; ")) }
}
