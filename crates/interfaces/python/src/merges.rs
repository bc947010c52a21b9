//! Jobs that share disks: requests from Python as a plan, and the table of its results.

use std::collections::BTreeMap;

use experiment::{FieldSet, MachineChoice, PlacementCase, PlacementChoices, PlacementField};
use plan::{CELLS_MAX, Journal, Plan, PlannedCell, ResultTable, TRIALS_MAX};
use pyo3::prelude::*;

use crate::error::{Failure, Result};
use crate::interruptible_wait::Watch;
use crate::plans::failure_text;
use crate::simulate_arguments::OptionValue;

/// The arguments of `starfish.simulate_merges`, with the same names.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct MergeArguments {
    machine_name: String,
    machine_text: String,
    /// Replacements of values of the machine, by dotted key.
    overrides: BTreeMap<String, String>,
    trials: u64,
    seed: u64,
    /// True for a row per trial instead of a row per combination.
    of_trials: bool,
    /// Fields, each with its values.
    options: Vec<(String, Vec<OptionValue>)>,
}

/// Columns that only plans need. They are omitted, because users of `simulate_merges` have no plan.
const OF_PLANS: [&str; 4] = ["plan", "variant", "varied", "set"];

impl MergeArguments {
    /// Returns a plan with every combination of the values; the last option varies fastest. Fails if any combination is
    /// invalid.
    pub(crate) fn plan(&self) -> Result<Plan<PlacementCase>> {
        if self.trials > TRIALS_MAX {
            return Err(Failure::Invalid(format!("trials: expected at most {TRIALS_MAX}")));
        }
        let counts = self.options.iter().map(|(_, values)| values.len());
        let count = counts.clone().try_fold(1usize, usize::checked_mul);
        let count = count.filter(|count| *count <= CELLS_MAX);
        let count =
            count.ok_or_else(|| Failure::Invalid(format!("expected at most {CELLS_MAX} combinations")))?;
        let cells = (0..count).map(|number| self.cell(number)).collect::<Result<Vec<_>>>()?;
        Ok(Plan {
            name: String::new(),
            title: String::new(),
            file: String::new(),
            trials: self.trials,
            seed: self.seed,
            published: None,
            cells,
        })
    }

    /// Returns combination number `number`.
    fn cell(&self, mut number: usize) -> Result<PlannedCell<PlacementCase>> {
        let mut choices = PlacementChoices::default();
        for (name, values) in self.options.iter().rev() {
            let field = PlacementField::expect(name).map_err(Failure::Invalid)?;
            let chosen = field.choose(&mut choices, values[number % values.len()].given());
            chosen.map_err(|why| Failure::Invalid(format!("{name}: {why}")))?;
            number /= values.len();
        }
        choices.machine.clone_from(&self.machine_name);
        choices.set.clone_from(&self.overrides);
        let MachineChoice { name, set, .. } = choices.machine_choice();
        let machine = choices.machine_choice().parse(&self.machine_text)?;
        let case = choices.case(machine, self.seed);
        case.check().map_err(|error| Failure::Invalid(format!("{case}: {error}")))?;
        let set = set.into_iter().collect();
        Ok(PlannedCell { variant: String::new(), varied: Vec::new(), machine: name, set, case })
    }

    /// Runs all trials of this plan on `threads` threads, and returns their table.
    pub(crate) fn table(
        &self,
        plan: Plan<PlacementCase>,
        threads: usize,
        watch: &Watch,
    ) -> Result<ResultTable> {
        let plans = [plan];
        let mut journal = Journal::in_memory();
        let planned = plan::trials(&plans);
        let stop = || watch.is_cancelled();
        let failures = plan::execute(&planned, &mut journal, threads, &stop, &|progress| {
            watch.set(progress.trials_done as u64);
        })?;
        if !failures.is_empty() {
            return Err(Failure::Simulation(failure_text(&failures)));
        }
        let results = plan::results(&plans, &journal);
        let table = if self.of_trials { plan::trial_table(&results) } else { plan::cell_table(&results) };
        Ok(table.without(&OF_PLANS))
    }
}
