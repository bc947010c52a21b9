//! Settings without effect on any cell of a plan. Plans reject them, as commands reject such options.

use std::collections::BTreeMap;

use description::Misfit;
use experiment::FieldSet;

use crate::plan_errors::PlanErrors;
use crate::settings::Series;

/// Settings by place and key. Each has the reason why it has had no effect on any cell so far; `None` if a cell has
/// used it.
#[derive(Debug, Default)]
pub(crate) struct IgnoredSettings(BTreeMap<(usize, usize, String), Option<String>>);

impl IgnoredSettings {
    /// Records the effect of each setting on a cell of a series.
    pub(crate) fn note<C: FieldSet>(&mut self, series: &Series<'_, C>, case: &C::Case) {
        for (key, span) in &*series.keys {
            let why = || C::without_effect(key, case);
            let setting = (span.start, span.end, key.clone());
            let known = self.0.entry(setting).or_insert_with(why);
            if known.is_some() && why().is_none() {
                *known = None;
            }
        }
    }

    /// Reports every setting that has no effect on any cell.
    pub(crate) fn report_to(self, misfits: &PlanErrors) {
        for ((start, end, key), why) in self.0 {
            if let Some(why) = why {
                misfits.add(Misfit { span: start..end, message: format!("{key}: it has no effect: {why}") });
            }
        }
    }
}
