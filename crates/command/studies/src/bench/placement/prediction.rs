//! Prediction by the simulated machine of merges on agents.

use command_line::failure::{Failure, Result};
use experiment::PlacementCase;

use super::MergeTimes;

/// Number of trials whose mean is predicted: which job gets ahead, and when, is random.
const TRIALS: u64 = 5;

/// Returns the means over some trials on the case's machine.
pub fn predict(case: &PlacementCase) -> Result<MergeTimes> {
    let failed = |error| Failure::new("cannot predict", error);
    let experiment = case.experiment_on_agents().map_err(failed)?;
    let trials = (0..TRIALS).map(|number| {
        let trial = experiment.trial(number).map_err(failed)?;
        Ok(MergeTimes::of(case, &trial.jobs))
    });
    Ok(MergeTimes::mean(&trials.collect::<Result<Vec<_>>>()?))
}
