//! Trials to run, and their keys.

use std::fmt;
use std::str::FromStr;

use description::MachineDescription;
use experiment::Trial;
use serde::{Deserialize, Serialize};

use crate::measurement::Measurement;

/// One trial of one case, to be run.
#[derive(Clone, Debug)]
pub struct PlannedTrial<'a> {
    /// Case to run.
    pub case: &'a dyn PlannedCase,
    /// Number of the trial of this case.
    pub number: u64,
    /// Key that differs from the keys of all other trials of all experiments.
    pub key: TrialKey,
    /// Approximate duration relative to other trials: the number of transferred pieces.
    pub cost: u64,
}

/// A case of any kind, as seen by the code that runs its trials.
pub trait PlannedCase: fmt::Display + fmt::Debug + Sync {
    /// Returns the machine.
    fn machine(&self) -> &MachineDescription;

    /// Returns the experiment as `Debug` prints it. The text contains everything that has an effect, and nothing else;
    /// fields that are added later are included automatically.
    fn printed(&self) -> String;

    /// Returns the approximate duration of a trial relative to other trials: the number of transferred pieces.
    fn cost(&self) -> u64;

    /// Returns the memory in bytes for the contents and the blocks of the case's files during a trial.
    fn stored_bytes(&self) -> u64;

    /// Checks the case as far as possible without running it.
    fn check(&self) -> Result<(), experiment::Error>;

    /// Runs the trial of this number.
    fn trial(&self, number: u64) -> Result<Trial, experiment::Error>;

    /// Returns the measurement of a trial of this case.
    fn measurement(&self, trial: &Trial) -> Measurement;
}

/// Key of a trial: a hash of everything in the experiment that has an effect, including the machine and its disks, and
/// of the number of the trial. Written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrialKey([u8; 16]);

impl<'a> PlannedTrial<'a> {
    /// Returns the first `count` trials of `case`.
    pub fn of(case: &'a dyn PlannedCase, count: u64) -> impl Iterator<Item = PlannedTrial<'a>> {
        let (hasher, cost) = (hasher(case), case.cost());
        (0..count).map(move |number| PlannedTrial { case, number, key: TrialKey::of(&hasher, number), cost })
    }

    /// Returns a description for people.
    pub fn describe(&self) -> String {
        format!("{}, trial {}", self.case, self.number)
    }
}

/// Returns the maximum memory in bytes for the files of `at_once` concurrent trials. `cases` contains the case of each
/// trial.
pub fn stored_bytes<'a>(cases: impl Iterator<Item = &'a dyn PlannedCase>, at_once: usize) -> u64 {
    let mut bytes: Vec<u64> = cases.map(PlannedCase::stored_bytes).collect();
    bytes.sort_unstable_by(|one, other| other.cmp(one));
    bytes.into_iter().take(at_once).fold(0, u64::saturating_add)
}

/// Returns part `index` of `count` disjoint parts of all trials. The parts have about the same duration.
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

/// Returns a hasher of the experiment of a case, including the description of its machine and disks.
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
