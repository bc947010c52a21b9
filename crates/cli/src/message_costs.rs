//! What a message costs on this computer, of its processors and in time: fitted to what was measured, so that a
//! simulated machine takes as long.

use std::time::Duration;

use command_line::failure::Result;
use description::{MachineDescription, Processor};
use experiment::Trial;

/// In how many steps the latency of messages is found at most, and how near the time that was measured, as a fraction.
const STEPS: usize = 12;
const NEAR: f64 = 0.01;

/// What a run took: until its end, and of all processors together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) elapsed: Duration,
    pub(crate) processor: Duration,
}

impl Spent {
    /// What a simulated run took.
    pub(crate) fn of(trial: &Trial) -> Spent {
        let nodes = trial.statistics.nodes.iter();
        let worked = nodes.map(|node| node.processor_threads + node.processor_interrupts);
        let worked = worked.fold(machine::Duration::ZERO, |sum, of_node| sum + of_node);
        let [elapsed, processor] = [trial.elapsed, worked].map(|time| Duration::from_nanos(time.as_nanos()));
        Spent { elapsed, processor }
    }
}

/// Requests that members made, each after the answer to the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    pub(crate) members: u32,
    /// How many each member made.
    pub(crate) of_each: u64,
    /// What they took.
    pub(crate) measured: Spent,
}

impl Messages {
    /// What is to be set, besides `set`, for a machine to take as long; `predict` says what one takes of which this is
    /// set, and which one that is.
    ///
    /// What processors work for a request beyond the simulated steps is spread over its two messages, at sender and
    /// receiver; what time it takes beyond that is their latency. If members share processors, part of the latency of
    /// one passes while others work, so that it is found step by step.
    pub(crate) fn fitted(
        &self,
        set: &[String],
        predict: impl Fn(&[String]) -> Result<(MachineDescription, Spent)>,
    ) -> Result<Vec<String>> {
        let Messages { members, of_each, measured } = *self;
        let each = |of_measured: Duration, of_predicted: Duration| {
            (of_measured.as_secs_f64() - of_predicted.as_secs_f64()) / of_each as f64
        };
        let (machine, assumed) = predict(&[set, &[latency(0.0)]].concat())?;
        let work = each(measured.processor, assumed.processor) / f64::from(4 * members);
        let set = [set, &messages_with(&machine, work)].concat();
        let with_latency = |waiting: f64| [&set[..], &[latency(waiting)]].concat();
        let mut waiting = 0.0_f64;
        for _ in 0..STEPS {
            let (_, found) = predict(&with_latency(waiting))?;
            let missing = each(measured.elapsed, found.elapsed);
            let is_near = missing.abs() * of_each as f64 <= NEAR * measured.elapsed.as_secs_f64();
            let next = (waiting + missing / 2.0).max(0.0);
            if is_near || next == waiting {
                break;
            }
            waiting = next;
        }
        Ok(with_latency(waiting))
    }
}

/// What is to be set for a message to be so many seconds on its way.
pub(crate) fn latency(seconds: f64) -> String {
    format!("network.latency={} ns", (seconds.max(0.0) * 1e9).round())
}

/// What is to be set for sending and receiving a message to take so many seconds of a processor more, or less.
fn messages_with(machine: &MachineDescription, more_s: f64) -> [String; 2] {
    let Processor { clock, system, .. } = &machine.processor;
    let cycles = |cycles: u64| (cycles as f64 + more_s * clock.value.0 as f64).max(0.0).round();
    [("send_message", &system.send_message), ("receive_message", &system.receive_message)]
        .map(|(name, cost)| format!("processor.system.{name}={}", cycles(cost.value.0)))
}
