//! Plans of one kind that run together. Equal trials run once, and the longest trials run first.

use std::collections::BTreeSet;

use description::Error;
use experiment::{Case, Field, PlacementCase, PlacementField};
use toml::de::DeTable;

use crate::kind::PlanKind;
use crate::plan::Plan;
use crate::planned_trial::PlannedTrial;
use crate::value::entries;

/// Plans that run together. All are of one kind, because results of different kinds have different columns.
#[derive(Clone, Debug)]
pub enum PlanSet {
    /// Plans of access methods.
    Patterns(Vec<Plan<Case>>),
    /// Plans of jobs that share disks.
    Placements(Vec<Plan<PlacementCase>>),
}

/// Reason why plans cannot run together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanSetError {
    /// A plan has mistakes.
    #[error(transparent)]
    Plan(#[from] Error),
    /// The plans are of both kinds.
    #[error(
        "{patterns} is a plan of access methods, and {placements} is a plan of jobs that share disks. Their \
         results have different columns: run them separately"
    )]
    Mixed {
        /// File of the first plan of access methods.
        patterns: String,
        /// File of the first plan of jobs that share disks.
        placements: String,
    },
}

impl PlanSet {
    /// Reads and checks plans. Each plan is a text and the name of its file, as for [`Plan::parse`].
    pub fn parse(plans: &[(String, String)]) -> Result<PlanSet, PlanSetError> {
        let first = |of_placements| plans.iter().find(|(text, _)| is_of_placements(text) == of_placements);
        match (first(false), first(true)) {
            (Some((_, patterns)), Some((_, placements))) => {
                Err(PlanSetError::Mixed { patterns: patterns.clone(), placements: placements.clone() })
            }
            (_, None) => Ok(PlanSet::Patterns(parse(plans)?)),
            (None, _) => Ok(PlanSet::Placements(parse(plans)?)),
        }
    }

    /// Returns the trials of all cells of all plans, each once, the longest first.
    pub fn trials(&self) -> Vec<PlannedTrial<'_>> {
        match self {
            PlanSet::Patterns(plans) => trials(plans),
            PlanSet::Placements(plans) => trials(plans),
        }
    }
}

/// Returns the trials of all cells of all plans, each once, the longest first.
pub fn trials<K: PlanKind>(plans: &[Plan<K>]) -> Vec<PlannedTrial<'_>> {
    let mut seen = BTreeSet::new();
    let cells = plans.iter().flat_map(|plan| plan.cells.iter().map(move |cell| (plan, cell)));
    let all = cells.flat_map(|(plan, cell)| PlannedTrial::of(&cell.case, plan.trials));
    let mut trials: Vec<PlannedTrial<'_>> = all.filter(|trial| seen.insert(trial.key)).collect();
    // A stable sort keeps trials of equal cost in the order of the plans.
    trials.sort_by_key(|trial| std::cmp::Reverse(trial.cost));
    trials
}

fn parse<K: PlanKind>(plans: &[(String, String)]) -> Result<Vec<Plan<K>>, Error> {
    plans.iter().map(|(text, file)| Plan::parse(text, file)).collect()
}

/// True if the keys of this text show a plan of jobs that share disks: there is no `patterns`, and some key is a field
/// that only such plans have.
pub fn is_of_placements(text: &str) -> bool {
    let Ok(table) = DeTable::parse(text) else { return false };
    let table = table.get_ref();
    let variants = table.get("variant").and_then(|variants| variants.get_ref().as_array());
    let variants = variants.into_iter().flatten().filter_map(|variant| variant.get_ref().as_table());
    let vary = table.get("vary").and_then(|vary| vary.get_ref().as_table());
    let keys = std::iter::once(table).chain(variants).chain(vary).flat_map(entries);
    let is_own = |key: &str| PlacementField::named(key).is_some() && Field::named(key).is_none();
    table.get("patterns").is_none() && keys.map(|(key, ..)| key).any(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_plan_determine_its_kind() {
        for text in ["name = \"x\"\npolicy = 4", "name = \"x\"\n[vary]\nbuffer-blocks = [4000]"] {
            assert!(is_of_placements(text), "{text}");
        }
        for text in ["name = \"x\"\nmethod = \"traditional\"\npatterns = [\"rb\"]", "name = \"x\"", "name ="]
        {
            assert!(!is_of_placements(text), "{text}");
        }
    }

    #[test]
    fn plans_of_both_kinds_together_are_rejected() {
        let patterns = "name = \"x\"\nmethod = \"traditional\"\npatterns = [\"rb\"]";
        let both = [(patterns, "x.toml"), ("name = \"y\"\npolicy = 4", "y.toml")];
        let both = both.map(|(text, file)| (text.to_owned(), file.to_owned()));
        let why = PlanSet::parse(&both).expect_err("refused").to_string();
        assert!(why.starts_with("x.toml is a plan of access methods, and y.toml is a plan of jobs"), "{why}");
        assert!(matches!(PlanSet::parse(&both[1..]), Ok(PlanSet::Placements(plans)) if plans.len() == 1));
    }
}
