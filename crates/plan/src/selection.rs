//! Some trials of plans, by name.

use std::collections::BTreeSet;
use std::str::FromStr;

use description::{Bytes, WrittenAsText};

use crate::plan::{Plan, PlannedCell};
use crate::planned_trial::PlannedTrial;

/// Which trials: `VARIANT/PATTERN/RECORD/TRIAL`, as in `fcfs/rb/8192/0` or `fcfs/rb/8KiB/0`.
///
/// The variant may be followed by what is varied, as in `fcfs,outstanding=4`; without that, all of it is meant. `*`
/// stands for all, and so do parts left out at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialSelection {
    variant: Option<String>,
    pattern: Option<String>,
    record_bytes: Option<u64>,
    trial: Option<u64>,
}

impl TrialSelection {
    /// The trials of `plans` that are meant, each once, in the order of the plans.
    pub fn trials<'a>(&self, plans: &'a [Plan]) -> Vec<PlannedTrial<'a>> {
        let mut seen = BTreeSet::new();
        let cells = plans.iter().flat_map(|plan| plan.cells.iter().map(move |cell| (plan, cell)));
        let meant = cells.filter(|(_, cell)| self.selects(cell));
        let planned = meant.flat_map(|(plan, cell)| PlannedTrial::of(&cell.case, plan.trials));
        let meant = |one: &PlannedTrial<'_>| self.trial.is_none_or(|trial| trial == one.number);
        planned.filter(meant).filter(|one| seen.insert(one.key)).collect()
    }

    fn selects(&self, cell: &PlannedCell) -> bool {
        let pattern = cell.case.pattern.to_string();
        self.variant.as_ref().is_none_or(|name| *name == cell.variant || *name == cell.series())
            && self.pattern.as_ref().is_none_or(|name| *name == pattern)
            && self.record_bytes.is_none_or(|bytes| bytes == cell.case.problem.record_bytes)
    }
}

impl FromStr for TrialSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        if parts.len() > 4 || parts.contains(&"") {
            return Err(
                "expected VARIANT/PATTERN/RECORD/TRIAL such as fcfs/rb/8192/0, or a beginning of that".into(),
            );
        }
        let part = |index: usize| parts.get(index).copied().filter(|part| *part != "*");
        let number = |index: usize, what: &str, parse: fn(&str) -> Option<u64>| {
            let number = part(index).map(|part| parse(part).ok_or((what, part)));
            number.transpose().map_err(|(what, part)| format!("expected {what}, not {part:?}"))
        };
        let plain = |text: &str| text.parse().ok();
        let bytes = |text: &str| text.parse().ok().or_else(|| Some(Bytes::parse(text)?.0));
        Ok(TrialSelection {
            variant: part(0).map(str::to_owned),
            pattern: part(1).map(str::to_owned),
            record_bytes: number(2, "the bytes of a record such as 8192 or 8KiB", bytes)?,
            trial: number(3, "the number of a trial", plain)?,
        })
    }
}
