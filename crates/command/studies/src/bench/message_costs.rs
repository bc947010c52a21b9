//! Cost of a message on this computer, fitted so that a simulated machine takes the times of two measurements.

use std::time::Duration;

use command_line::failure::Result;
use description::MachineDescription;

/// Maximum number of search steps, and relative error at which the search stops.
const STEPS: usize = 8;
const NEAR: f64 = 0.02;

/// Initial costs of the search: 7 us of processor time at each end of a message, 40 us in transit.
const BEGINNING: Costs = [7e-6, 40e-6];

/// Factor by which a cost is changed to measure its effect, and maximum factor by which one step changes a cost.
const MORE: f64 = 1.2;
const FACTOR_MAX: f64 = 3.0;

/// Durations of two workloads that send messages. One keeps the processors busy all the time, the other waits for
/// messages.
#[derive(Clone, Copy, Debug)]
pub struct Probes {
    /// Duration of the workload that keeps processors busy.
    pub busy: Duration,
    /// Duration of the workload that waits for messages.
    pub waiting: Duration,
}

/// Costs of a message in seconds: processor time at each end, and time in transit.
type Costs = [f64; 2];

/// Logarithms of the ratios of predicted to measured times, for both probes.
type Errors = [f64; 2];

/// Returns the settings, in addition to `set`, with which a machine takes the `measured` times. `predict` returns the
/// times for given settings. `machine` provides the clock rate.
pub fn fitted(
    machine: &MachineDescription,
    set: &[String],
    measured: Probes,
    predict: impl Fn(&[String]) -> Result<Probes>,
) -> Result<Vec<String>> {
    let with = |costs| [set, &settings(machine, costs)].concat();
    let error = |predicted: Duration, measured: Duration| predicted.div_duration_f64(measured).ln();
    let costs = found(|costs| {
        let predicted = predict(&with(costs))?;
        Ok([error(predicted.busy, measured.busy), error(predicted.waiting, measured.waiting)])
    })?;
    Ok(with(costs))
}

/// Returns the settings that give messages these costs.
fn settings(machine: &MachineDescription, [end, way]: Costs) -> [String; 3] {
    let cycles = (end * machine.processor.clock.value.0 as f64).round();
    [
        format!("processor.system.send_message={cycles}"),
        format!("processor.system.receive_message={cycles}"),
        format!("network.latency={} ns", (way * 1e9).round()),
    ]
}

/// Returns the costs whose errors are the smallest that the search has found.
///
/// The search is Levenberg's damped Gauss-Newton method on the logarithms of the costs, because costs are positive and
/// may be wrong by large factors at first.
fn found(errors: impl Fn(Costs) -> Result<Errors>) -> Result<Costs> {
    let (mut costs, mut best) = (BEGINNING, (f64::INFINITY, BEGINNING));
    for _ in 0..STEPS {
        let error = errors(costs)?;
        let size = error[0].hypot(error[1]);
        if size < best.0 {
            best = (size, costs);
        }
        if size < NEAR {
            break;
        }
        let mut slopes = [[0.0; 2]; 2];
        for cost in 0..2 {
            let mut more = costs;
            more[cost] *= MORE;
            let shown = errors(more)?;
            for probe in 0..2 {
                slopes[probe][cost] = (shown[probe] - error[probe]) / MORE.ln();
            }
        }
        let change = step(error, slopes);
        costs = [0, 1].map(|cost| costs[cost] * change[cost].exp().clamp(FACTOR_MAX.recip(), FACTOR_MAX));
    }
    Ok(best.1)
}

/// Returns the change of the logarithms of the costs that minimises the errors, given the slopes of the errors.
fn step([busy, waiting]: Errors, [of_busy, of_waiting]: [[f64; 2]; 2]) -> [f64; 2] {
    /// Damping, with which a cost that has no effect hardly changes.
    const DAMPING: f64 = 1e-4;
    let product =
        |one: usize, other: usize| of_busy[one] * of_busy[other] + of_waiting[one] * of_waiting[other];
    let (ends, both, ways) = (product(0, 0) + DAMPING, product(0, 1), product(1, 1) + DAMPING);
    let [end, way] = [0, 1].map(|cost| of_busy[cost] * busy + of_waiting[cost] * waiting);
    let determinant = ends * ways - both * both;
    [(both * way - ways * end) / determinant, (both * end - ends * way) / determinant]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(times: impl Fn(Costs) -> [f64; 2], measured: [f64; 2]) -> Costs {
        let errors = |costs| Ok([0, 1].map(|probe: usize| (times(costs)[probe] / measured[probe]).ln()));
        found(errors).expect("nothing fails")
    }

    /// Returns times for these costs. In the busy probe, a part of the transit overlaps with work.
    fn times([end, way]: Costs) -> [f64; 2] {
        [(8.0 * end + 10e-6).max(2.0 * end + way), 4.0 * end + 10e-6 + 2.0 * way]
    }

    #[test]
    fn the_fitted_costs_reproduce_the_measured_times() {
        for right in [[9e-6, 40e-6], [2e-6, 5e-6], [40e-6, 20e-6], [12e-6, 60e-6]] {
            let found = times(fit(times, times(right)));
            for (found, right) in found.into_iter().zip(times(right)) {
                assert!((found / right - 1.0).abs() < 0.02, "{found} where {right} is right");
            }
        }
    }

    #[test]
    fn fitted_costs_are_not_negative() {
        // The waiting probe takes less time than its messages alone would take.
        let [end, way] = fit(times, [100e-6, 20e-6]);
        assert!((2e-6..13e-6).contains(&end) && (0.0..5e-6).contains(&way), "{end} {way}");
    }
}
