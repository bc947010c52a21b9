//! Plans that are run together, of whichever kind: their trials, each once, the long ones first.

use std::collections::BTreeSet;

use description::Error;
use experiment::{Case, Field, PlacementCase, PlacementField};
use toml::de::DeTable;

use crate::kind::PlanKind;
use crate::plan::Plan;
use crate::planned_trial::PlannedTrial;
use crate::value::entries;

/// Plans that are run together. All are of one kind: results of different kinds have different columns.
#[derive(Clone, Debug)]
pub enum PlanSet {
    /// Of access methods.
    Patterns(Vec<Plan<Case>>),
    /// Of jobs that share disks.
    Placements(Vec<Plan<PlacementCase>>),
}

/// Why plans cannot be run together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanSetError {
    /// One of them makes no sense.
    #[error(transparent)]
    Plan(#[from] Error),
    /// They are of both kinds.
    #[error(
        "{patterns} is a plan of access methods and {placements} one of jobs that share disks, whose results have \
         other columns: run them one after the other"
    )]
    Mixed {
        /// The file of the first of one kind.
        patterns: String,
        /// The file of the first of the other kind.
        placements: String,
    },
}

impl PlanSet {
    /// Reads and checks plans, each a text and its file as [`Plan::parse`] takes them.
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

    /// The trials of all cells of all plans, each once, the long ones first.
    pub fn trials(&self) -> Vec<PlannedTrial<'_>> {
        match self {
            PlanSet::Patterns(plans) => trials(plans),
            PlanSet::Placements(plans) => trials(plans),
        }
    }
}

/// The trials of all cells of all plans, each once, the long ones first.
pub fn trials<K: PlanKind>(plans: &[Plan<K>]) -> Vec<PlannedTrial<'_>> {
    let mut seen = BTreeSet::new();
    let cells = plans.iter().flat_map(|plan| plan.cells.iter().map(move |cell| (plan, cell)));
    let all = cells.flat_map(|(plan, cell)| PlannedTrial::of(&cell.case, plan.trials));
    let mut trials: Vec<PlannedTrial<'_>> = all.filter(|trial| seen.insert(trial.key)).collect();
    // Stable: equal ones stay in the order of the plans.
    trials.sort_by_key(|trial| std::cmp::Reverse(trial.cost));
    trials
}

fn parse<K: PlanKind>(plans: &[(String, String)]) -> Result<Vec<Plan<K>>, Error> {
    plans.iter().map(|(text, file)| Plan::parse(text, file)).collect()
}

/// Whether this is the text of a plan of jobs that share disks, by its keys, and not of one of access methods: it has
/// no patterns, and chooses something that only jobs have which share disks.
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
    fn the_kind_of_a_plan_is_told_by_its_keys() {
        for text in ["name = \"x\"\npolicy = 4", "name = \"x\"\n[vary]\nbuffer-blocks = [4000]"] {
            assert!(is_of_placements(text), "{text}");
        }
        for text in ["name = \"x\"\nmethod = \"traditional\"\npatterns = [\"rb\"]", "name = \"x\"", "name ="]
        {
            assert!(!is_of_placements(text), "{text}");
        }
    }

    #[test]
    fn plans_of_both_kinds_are_not_run_together() {
        let patterns = "name = \"x\"\nmethod = \"traditional\"\npatterns = [\"rb\"]";
        let both = [(patterns, "x.toml"), ("name = \"y\"\npolicy = 4", "y.toml")];
        let both = both.map(|(text, file)| (text.to_owned(), file.to_owned()));
        let why = PlanSet::parse(&both).expect_err("refused").to_string();
        assert!(why.starts_with("x.toml is a plan of access methods and y.toml one of jobs"), "{why}");
        assert!(matches!(PlanSet::parse(&both[1..]), Ok(PlanSet::Placements(plans)) if plans.len() == 1));
    }
}
