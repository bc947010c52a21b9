//! The trials to run: each once, the long ones first.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use experiment::{Case, Method};
use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// One trial of one case, to be run.
#[derive(Clone, Debug)]
pub struct PlannedTrial<'a> {
    /// What is run.
    pub case: &'a Case,
    /// Which trial of it.
    pub number: u64,
    /// What tells it from all other trials of all other experiments.
    pub key: TrialKey,
    /// About how long it takes, compared with others: the pieces that are moved.
    pub cost: u64,
}

/// What tells a trial from all others: a hash of the whole experiment as far as it has an effect, its machine and disks
/// included, and of the trial's number. Written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrialKey([u8; 16]);

impl<'a> PlannedTrial<'a> {
    /// The first `count` trials of `case`.
    pub fn of(case: &'a Case, count: u64) -> impl Iterator<Item = PlannedTrial<'a>> {
        let (hasher, cost) = (hasher(case), cost(case));
        (0..count).map(move |number| PlannedTrial { case, number, key: TrialKey::of(&hasher, number), cost })
    }

    /// What it is, for people.
    pub fn describe(&self) -> String {
        format!("{}, trial {}", self.case, self.number)
    }
}

/// The trials of all cells of all plans, each once, the long ones first.
pub fn trials(plans: &[Plan]) -> Vec<PlannedTrial<'_>> {
    let mut seen = BTreeSet::new();
    let cells = plans.iter().flat_map(|plan| plan.cells.iter().map(move |cell| (plan, cell)));
    let all = cells.flat_map(|(plan, cell)| PlannedTrial::of(&cell.case, plan.trials));
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
fn hasher(case: &Case) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    let disk = case.machine.disk();
    hasher.update(format!("{:?} {disk:?}", case.experiment()).as_bytes());
    hasher
}

/// About how many pieces are moved: the chunks of the view, and at least the blocks.
fn cost(case: &Case) -> u64 {
    let Case { problem, pattern, options, .. } = case;
    let blocks = problem.file_bytes / options.block_bytes.max(1);
    let mut pieces = 0;
    for array in 0..pattern.arrays() {
        let Ok(view) = pattern.of_array(array).view(problem) else { return 0 };
        let bytes: u64 = (0..view.nodes()).map(|node| view.node_bytes(node)).sum();
        let chunk =
            (0..view.nodes()).find_map(|node| view.chunks(node).next()).map_or(1, |chunk| chunk.bytes);
        pieces += bytes / pattern.arrays() as u64 / chunk.clamp(1, options.block_bytes.max(1));
    }
    // Of the traditional method each piece is a request and a reply: about eight times as many events.
    let weight = if case.method == Method::Traditional { 8 } else { 1 };
    1 + blocks + weight * pieces
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
