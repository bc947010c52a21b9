//! Selections of trials of plans by name.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use description::{Bytes, WrittenAsText};
use experiment::Case;

use crate::kind::{PlaceKey, PlanKind};
use crate::plan::{Plan, PlannedCell};
use crate::planned_trial::PlannedTrial;
use crate::table::{Type, Value};

/// A selection of trials by variant, the other parts of a cell's name, and the number of the trial. Its form is
/// `VARIANT/PATTERN/RECORD/TRIAL` for access methods, as in `fcfs/rb/8192/0` or `fcfs/rb/8KiB/0`, and `VARIANT/TRIAL`
/// for jobs that share disks.
///
/// Varied settings can follow the variant, as in `fcfs,outstanding=4`; a variant alone selects all its series. `*`
/// selects all values of a part. Parts omitted at the end select all values, too.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialSelection<K = Case> {
    variant: Option<String>,
    place: Vec<Option<Value>>,
    trial: Option<u64>,
    of: PhantomData<K>,
}

impl<K: PlanKind> TrialSelection<K> {
    /// Returns the form of a selection, for messages.
    pub fn form() -> String {
        let place = K::PLACE.iter().map(|key| key.name);
        std::iter::once("VARIANT").chain(place).chain(["TRIAL"]).collect::<Vec<_>>().join("/")
    }

    /// Returns the selected trials of `plans`, each once, in the order of the plans.
    pub fn trials<'a>(&self, plans: &'a [Plan<K>]) -> Vec<PlannedTrial<'a>> {
        let mut seen = BTreeSet::new();
        let cells = plans.iter().flat_map(|plan| plan.cells.iter().map(move |cell| (plan, cell)));
        let meant = cells.filter(|(_, cell)| self.selects(cell));
        let planned = meant.flat_map(|(plan, cell)| PlannedTrial::of(&cell.case, plan.trials));
        let meant = |one: &PlannedTrial<'_>| self.trial.is_none_or(|trial| trial == one.number);
        planned.filter(meant).filter(|one| seen.insert(one.key)).collect()
    }

    fn selects(&self, cell: &PlannedCell<K>) -> bool {
        let mut place = self.place.iter().zip(cell.case.place());
        self.variant.as_ref().is_none_or(|name| *name == cell.variant || *name == cell.series())
            && place.all(|(wanted, value)| wanted.as_ref().is_none_or(|wanted| *wanted == value))
    }

    /// Parses `text` as a selection from `plans`.
    ///
    /// # Errors
    /// A message with the expected form.
    pub fn parse(text: &str, plans: &[Plan<K>]) -> Result<Self, String> {
        let (variant, rest) = divided(text, plans);
        let parts: Vec<&str> =
            std::iter::once(variant).chain(rest.into_iter().flat_map(|rest| rest.split('/'))).collect();
        if parts.len() > K::PLACE.len() + 2 || parts.contains(&"") {
            return Err(format!("expected {}, or a prefix of it, such as a variant", Self::form()));
        }
        let part = |index: usize| parts.get(index).copied().filter(|part| *part != "*");
        let place =
            (1..).zip(K::PLACE).map(|(index, key)| part(index).map(|part| value(key, part)).transpose());
        let trial = part(K::PLACE.len() + 1)
            .map(|part| part.parse().map_err(|_| format!("expected the number of a trial, not {part:?}")));
        Ok(TrialSelection {
            variant: part(0).map(str::to_owned),
            place: place.collect::<Result<_, _>>()?,
            trial: trial.transpose()?,
            of: PhantomData,
        })
    }
}

/// Splits off the variant with its varied settings. If a series of the plans matches, the variant ends where the name
/// of the series ends. Such a name may contain `/`, because a varied value may be a path. Otherwise the variant ends at
/// the first `/`.
fn divided<'a, K: PlanKind>(text: &'a str, plans: &[Plan<K>]) -> (&'a str, Option<&'a str>) {
    let cells = plans.iter().flat_map(|plan| &plan.cells);
    let names = cells.flat_map(|cell| [cell.series(), cell.variant.clone()]);
    let behind = names.filter_map(|name| {
        let rest = text.strip_prefix(&*name)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(name.len())
    });
    let end = behind.max().unwrap_or_else(|| text.find('/').unwrap_or(text.len()));
    let (variant, rest) = text.split_at(end);
    (variant, rest.strip_prefix('/'))
}

/// Parses a value by which cells are selected. Whole numbers are sizes.
fn value(key: &PlaceKey, part: &str) -> Result<Value, String> {
    let value = match key.kind {
        Type::Integer => part.parse().ok().or_else(|| Some(Bytes::parse(part)?.0)).map(Value::Integer),
        _ => Some(Value::Text(part.to_owned())),
    };
    value.ok_or_else(|| format!("expected {}, not {part:?}", key.expected))
}

#[cfg(test)]
mod tests {
    use experiment::PlacementCase;

    use super::*;

    #[test]
    fn trials_of_placement_plans_are_selected_without_a_pattern() {
        let text = "name = \"x\"\ntrials = 3\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n\
                    [vary]\njobs = [2, 3]\n";
        let plans = [Plan::<PlacementCase>::parse(text, "x.toml").expect("it makes sense")];
        let count =
            |text: &str| TrialSelection::parse(text, &plans).map(|selection| selection.trials(&plans).len());
        // Variants with equal settings share their trials.
        assert_eq!(count("a"), Ok(6));
        assert_eq!(count("*"), Ok(6));
        assert_eq!((count("a,jobs=3/1"), count("*/2"), count("c")), (Ok(1), Ok(2), Ok(0)));
        assert!(count("a/x").is_err_and(|why| why.contains("number of a trial")));
        assert!(count("a/rb/1").is_err_and(|why| why.contains("VARIANT/TRIAL")));
    }
}
