//! Prediction of merges on agents by the simulated machine.

use command_line::failure::{Failure, Result};
use experiment::PlacementCase;

use super::MergeTimes;

/// Number of trials over which the prediction averages, because it is random which job gets ahead, and when.
const TRIALS: u64 = 5;

/// Returns the means over `TRIALS` trials on the case's machine.
pub fn predict(case: &PlacementCase) -> Result<MergeTimes> {
    let failed = |error| Failure::new("cannot predict", error);
    let experiment = case.experiment_on_agents().map_err(failed)?;
    let trials = (0..TRIALS).map(|number| {
        let trial = experiment.trial(number).map_err(failed)?;
        Ok(MergeTimes::of(case, &trial.jobs))
    });
    Ok(MergeTimes::mean(&trials.collect::<Result<Vec<_>>>()?))
}
