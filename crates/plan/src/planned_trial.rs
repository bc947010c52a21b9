//! The trials to run: each once, the long ones first.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use description::MachineDescription;
use experiment::{AccessPattern, ArrayPattern, Case, Method, PlacementCase, Trial};
use layout::Problem;
use serde::{Deserialize, Serialize};

use crate::placement_plan::PlacementPlan;
use crate::plan::Plan;

/// One trial of one case, to be run.
#[derive(Clone, Debug)]
pub struct PlannedTrial<'a> {
    /// What is run.
    pub case: PlannedCase<'a>,
    /// Which trial of it.
    pub number: u64,
    /// What tells it from all other trials of all other experiments.
    pub key: TrialKey,
    /// About how long it takes, compared with others: the pieces that are moved.
    pub cost: u64,
}

/// A case of any kind.
#[derive(Clone, Copy, Debug)]
pub enum PlannedCase<'a> {
    /// One of the reports on access methods.
    Pattern(&'a Case),
    /// Jobs that share disks.
    Placement(&'a PlacementCase),
}

/// What tells a trial from all others: a hash of the whole experiment as far as it has an effect, its machine and disks
/// included, and of the trial's number. Written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrialKey([u8; 16]);

impl<'a> PlannedTrial<'a> {
    /// The first `count` trials of `case`.
    pub fn of(case: impl Into<PlannedCase<'a>>, count: u64) -> impl Iterator<Item = PlannedTrial<'a>> {
        let case = case.into();
        let (hasher, cost) = (hasher(case), case.cost());
        (0..count).map(move |number| PlannedTrial { case, number, key: TrialKey::of(&hasher, number), cost })
    }

    /// What it is, for people.
    pub fn describe(&self) -> String {
        format!("{}, trial {}", self.case, self.number)
    }

    /// Runs it.
    pub(crate) fn run(&self) -> Result<Trial, experiment::Error> {
        match self.case {
            PlannedCase::Pattern(case) => case.trial(self.number),
            PlannedCase::Placement(case) => case.trial(self.number),
        }
    }
}

impl PlannedCase<'_> {
    /// The machine.
    pub(crate) fn machine(&self) -> &MachineDescription {
        match self {
            PlannedCase::Pattern(case) => &case.machine,
            PlannedCase::Placement(case) => &case.machine,
        }
    }

    /// The experiment and its disks, as `Debug` prints them.
    fn printed(&self) -> String {
        let disk = self.machine().disk();
        match self {
            PlannedCase::Pattern(case) => format!("{:?} {disk:?}", case.experiment()),
            PlannedCase::Placement(case) => format!("{:?} {disk:?}", case.experiment()),
        }
    }

    fn cost(self) -> u64 {
        match self {
            PlannedCase::Pattern(case) => cost(case),
            // Each batch is read once, each write written once and read back.
            PlannedCase::Placement(case) => {
                let blocks = u64::from(case.jobs) * case.job_blocks();
                blocks / case.read_blocks.max(1) + 2 * blocks / case.write_blocks.max(1)
            }
        }
    }
}

impl<'a> From<&'a Case> for PlannedCase<'a> {
    fn from(case: &'a Case) -> Self {
        PlannedCase::Pattern(case)
    }
}

impl<'a> From<&'a PlacementCase> for PlannedCase<'a> {
    fn from(case: &'a PlacementCase) -> Self {
        PlannedCase::Placement(case)
    }
}

impl fmt::Display for PlannedCase<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlannedCase::Pattern(case) => case.fmt(f),
            PlannedCase::Placement(case) => case.fmt(f),
        }
    }
}

/// The trials of all cells of all plans, each once, the long ones first.
pub fn trials(plans: &[Plan]) -> Vec<PlannedTrial<'_>> {
    let cells = plans.iter().flat_map(|plan| plan.cells.iter().map(move |cell| (plan, cell)));
    long_ones_first(cells.flat_map(|(plan, cell)| PlannedTrial::of(&cell.case, plan.trials)))
}

/// The trials of all cells of all plans of jobs that share disks, each once, the long ones first.
pub fn placement_trials(plans: &[PlacementPlan]) -> Vec<PlannedTrial<'_>> {
    let cells = plans.iter().flat_map(|plan| plan.cells.iter().map(move |cell| (plan, cell)));
    long_ones_first(cells.flat_map(|(plan, cell)| PlannedTrial::of(&cell.case, plan.trials)))
}

fn long_ones_first<'a>(all: impl Iterator<Item = PlannedTrial<'a>>) -> Vec<PlannedTrial<'a>> {
    let mut seen = BTreeSet::new();
    let mut trials: Vec<PlannedTrial<'_>> = all.filter(|trial| seen.insert(trial.key)).collect();
    // Stable: equal ones stay in the order of the plans.
    trials.sort_by_key(|trial| std::cmp::Reverse(trial.cost));
    trials
}

/// Part `index` of `count` parts that together are all trials, none in two of them, of about equal length.
///
/// # Panics
/// If `index` is not below `count`.
pub fn shard(trials: Vec<PlannedTrial<'_>>, index: usize, count: usize) -> Vec<PlannedTrial<'_>> {
    assert!(index < count, "part {index} of {count}");
    trials.into_iter().skip(index).step_by(count).collect()
}

impl TrialKey {
    fn of(hasher: &blake3::Hasher, trial: u64) -> TrialKey {
        let hash = hasher.clone().update(&trial.to_le_bytes()).finalize();
        TrialKey(hash.as_bytes()[..16].try_into().expect("a hash has 32 bytes"))
    }
}

/// The hash of the experiment that a case is, in which is what has an effect and nothing else: whatever is added to it,
/// is in what `Debug` prints of it. The disks are named in it, and described elsewhere.
fn hasher(case: PlannedCase<'_>) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hasher.update(case.printed().as_bytes());
    hasher
}

/// About how many pieces are moved: the chunks of the view, and at least the blocks.
fn cost(case: &Case) -> u64 {
    let Case { problem, options, .. } = case;
    let blocks = problem.file_bytes / options.block_bytes.max(1);
    // Of the traditional method each piece is a request and a reply: about eight times as many events.
    let weight = if case.method == Method::Traditional { 8 } else { 1 };
    let pieces = match case.pattern {
        AccessPattern::Arrays(pattern) => pieces(pattern, problem, options.block_bytes),
        AccessPattern::Log(_) => Some(problem.file_bytes / problem.record_bytes.max(1)),
    };
    pieces.map_or(0, |pieces| 1 + blocks + weight * pieces)
}

/// The chunks of the views of a pattern, at most a block each; none if the problem is not one of it.
fn pieces(pattern: ArrayPattern, problem: &Problem, block_bytes: u64) -> Option<u64> {
    let mut pieces = 0;
    for array in 0..pattern.arrays() {
        let view = pattern.of_array(array).view(problem).ok()?;
        let bytes: u64 = (0..view.nodes()).map(|node| view.node_bytes(node)).sum();
        let chunk =
            (0..view.nodes()).find_map(|node| view.chunks(node).next()).map_or(1, |chunk| chunk.bytes);
        pieces += bytes / pattern.arrays() as u64 / chunk.clamp(1, block_bytes.max(1));
    }
    Some(pieces)
}

impl fmt::Display for TrialKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for TrialKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = (text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then(|| u128::from_str_radix(text, 16).ok())
            .flatten();
        number
            .map(|number| TrialKey(number.to_be_bytes()))
            .ok_or_else(|| format!("expected 32 hexadecimal digits, not {text:?}"))
    }
}

impl TryFrom<String> for TrialKey {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TrialKey> for String {
    fn from(key: TrialKey) -> String {
        key.to_string()
    }
}
