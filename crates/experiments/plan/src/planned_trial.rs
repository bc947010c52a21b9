//! Trials to run, and what they are known by.

use std::fmt;
use std::str::FromStr;

use description::MachineDescription;
use experiment::Trial;
use serde::{Deserialize, Serialize};

use crate::measurement::Measurement;

/// One trial of one case, to be run.
#[derive(Clone, Debug)]
pub struct PlannedTrial<'a> {
    /// What is run.
    pub case: &'a dyn PlannedCase,
    /// The number of the trial of this case.
    pub number: u64,
    /// What tells it from all other trials of all other experiments.
    pub key: TrialKey,
    /// About how long it takes, compared with others: the pieces that are moved.
    pub cost: u64,
}

/// A case of any kind, as far as the code that runs its trials has to know it.
pub trait PlannedCase: fmt::Display + fmt::Debug + Sync {
    /// The machine.
    fn machine(&self) -> &MachineDescription;

    /// The experiment as `Debug` prints it: all that has an effect and nothing else, so that fields added later are
    /// included.
    fn printed(&self) -> String;

    /// About how long a trial takes, compared with others: the pieces that are moved.
    fn cost(&self) -> u64;

    /// Bytes of memory for the contents and blocks of its files while a trial runs.
    fn stored_bytes(&self) -> u64;

    /// Checks what can be checked before anything runs.
    fn check(&self) -> Result<(), experiment::Error>;

    /// Runs the trial of this number.
    fn trial(&self, number: u64) -> Result<Trial, experiment::Error>;

    /// What is kept of a trial of it.
    fn measurement(&self, trial: &Trial) -> Measurement;
}

/// What tells a trial from all others: a hash of the whole experiment as far as it has an effect, its machine and disks
/// included, and of the trial's number. Written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrialKey([u8; 16]);

impl<'a> PlannedTrial<'a> {
    /// The first `count` trials of `case`.
    pub fn of(case: &'a dyn PlannedCase, count: u64) -> impl Iterator<Item = PlannedTrial<'a>> {
        let (hasher, cost) = (hasher(case), case.cost());
        (0..count).map(move |number| PlannedTrial { case, number, key: TrialKey::of(&hasher, number), cost })
    }

    /// What it is, for people.
    pub fn describe(&self) -> String {
        format!("{}, trial {}", self.case, self.number)
    }
}

/// Bytes of memory that the files of trials need at most, of which so many run at once. `cases` has the case of each
/// trial.
pub fn stored_bytes<'a>(cases: impl Iterator<Item = &'a dyn PlannedCase>, at_once: usize) -> u64 {
    let mut bytes: Vec<u64> = cases.map(PlannedCase::stored_bytes).collect();
    bytes.sort_unstable_by(|one, other| other.cmp(one));
    bytes.into_iter().take(at_once).fold(0, u64::saturating_add)
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

/// The hash of the experiment that a case is, with the description of its machine and disks.
fn hasher(case: &dyn PlannedCase) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hasher.update(case.printed().as_bytes());
    hasher
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
