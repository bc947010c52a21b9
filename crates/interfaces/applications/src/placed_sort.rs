//! Placement of the runs and output of a sort, so that several concurrent sorts use different disks.

use std::fmt;
use std::str::FromStr;

use placement::{JobPlacement, Policy, PolicyError};

use crate::failure::{Failure, Result};

/// Placement of a sort's runs and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SortPlacement {
    /// Runs and output are each striped over all disks: every sort reads from every disk that it writes to, so no sort
    /// can race ahead of others.
    Striped,
    /// Each run and the output are on one disk, selected by a policy.
    Policy(Policy),
}

impl FromStr for SortPlacement {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let numbered = || text.parse().ok().and_then(Policy::numbered).map(SortPlacement::Policy);
        let placement = if text == "striped" { Some(SortPlacement::Striped) } else { numbered() };
        placement.ok_or_else(|| "expected striped, or a policy from 1 to 4".to_owned())
    }
}

/// The number of a sort among concurrent sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortNumber {
    /// Counted from 1.
    number: u32,
    of: u32,
}

impl SortNumber {
    /// The number of a sort without concurrent sorts.
    pub(crate) const ONLY: SortNumber = SortNumber { number: 1, of: 1 };
}

impl FromStr for SortNumber {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(SortNumber { number, of }),
            _ => Err("expected K/J, this sort's number among the concurrent ones, such as 1/2".to_owned()),
        }
    }
}

impl fmt::Display for SortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// A sort whose runs and output are placed by a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedSort {
    pub(crate) policy: Policy,
    pub(crate) sort: SortNumber,
}

impl PlacedSort {
    /// Fails if the policy cannot place the sort on this number of disks.
    pub(crate) fn check(self, disks: u32) -> Result<()> {
        let placed = self.placed(disks, 1).map(drop);
        placed.map_err(|error| Failure::new(format!("--placement {}", self.policy.number()), error))
    }

    /// Returns the disk of run number `run`.
    ///
    /// # Panics
    /// Panics if the policy cannot place anything on `disks` disks.
    pub(crate) fn disk_of_run(self, run: usize, disks: u32) -> u32 {
        let dealt = self.placed(disks, run + 1).expect("it was checked");
        dealt.input[run] as u32
    }

    /// Returns the disk of the output.
    pub(crate) fn disk_of_output(self) -> u32 {
        self.sort.number - 1
    }

    fn placed(self, disks: u32, runs: usize) -> std::result::Result<JobPlacement, PolicyError> {
        let SortNumber { number, of } = self.sort;
        let mut all = self.policy.place(of as usize, disks as usize, runs)?;
        Ok(all.swap_remove(number as usize - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_placed_like_the_runs_of_a_merge() {
        let sort = PlacedSort { policy: Policy::SharedWithinJob, sort: "2/2".parse().expect("a number") };
        let runs: Vec<u32> = (0..6).map(|run| sort.disk_of_run(run, 4)).collect();
        // Job 1 (from 0) of 2 on four disks reads from disks 0, 2 and 3, but its runs on disk 0 are moved to disk 1.
        assert_eq!((runs, sort.disk_of_output()), (vec![1, 2, 3, 1, 2, 3], 1));
        assert!(sort.check(2).is_ok() && sort.check(1).is_err());
    }

    #[test]
    fn invalid_placements_and_job_numbers_are_rejected() {
        assert_eq!("striped".parse(), Ok(SortPlacement::Striped));
        assert_eq!("2".parse(), Ok(SortPlacement::Policy(Policy::SeparateWithinJob)));
        assert!(["0", "5", "all", ""].iter().all(|text| text.parse::<SortPlacement>().is_err()));
        assert!(
            ["0/1", "2/1", "1", "/", "1/0", "a/b"].iter().all(|text| text.parse::<SortNumber>().is_err())
        );
    }
}
