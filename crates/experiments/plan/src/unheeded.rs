//! Settings that no cell of a plan heeds: they would do nothing, as options of commands would that are refused for it.

use std::collections::BTreeMap;

use description::Misfit;
use experiment::FieldSet;

use crate::misfits::Misfits;
use crate::settings::Series;

/// Why each setting does nothing, by its place and key, as far as no cell was found that heeds it.
#[derive(Debug, Default)]
pub(crate) struct Unheeded(BTreeMap<(usize, usize, String), Option<String>>);

impl Unheeded {
    /// Takes in a cell of a series.
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

    /// Refuses each that no cell heeds.
    pub(crate) fn tell(self, misfits: &Misfits) {
        for ((start, end, key), why) in self.0 {
            if let Some(why) = why {
                misfits
                    .add(Misfit { span: start..end, message: format!("{key}: it would do nothing: {why}") });
            }
        }
    }
}
