//! What is advised to a program whose requests were logged: what other methods, stripe units, numbers of I/O nodes and
//! orders at the disks would gain, each by itself and the best of each together, on a simulated machine.
//!
//! Every alternative has the same trials as what was recorded, trial by trial with the same seed, and the gain is that
//! of the trials one by one: what chance does to both is not a difference between them. Its interval is the 95 %
//! confidence interval of the mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::described::load_machine;
use command_line::failure::{Failure, Result};
use command_line::progress::{Progress, Show};
use description::MachineDescription;
use experiment::{Contents, DiskLayout, Method, Options, Replay, Think};
use fs::{Configuration, Scheduling};
use machine::Duration;
use request_log::{CallMethod, RequestLog};
use serde::Serialize;
use statistics::Sample;

/// A program that was recorded, and where it is simulated.
#[derive(Clone, Debug)]
pub(crate) struct RecordedProgram {
    machine: MachineDescription,
    /// The same with other numbers of I/O nodes, as far as there can be such a machine.
    others: BTreeMap<u32, MachineDescription>,
    pub(crate) log: Arc<RequestLog>,
    pub(crate) think: Think,
    pub(crate) layout: DiskLayout,
    pub(crate) seed: u64,
    pub(crate) trials: u64,
}

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
struct IoSetting {
    method: Method,
    block_bytes: u64,
    io_nodes: u32,
    scheduling: Scheduling,
}

/// What is advised.
#[derive(Debug, Serialize)]
pub(crate) struct IoAdvice {
    pub(crate) machine: String,
    pub(crate) nodes: usize,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) trials: u64,
    /// How long its calls took when they were recorded, of the node for which they took longest; none if the log does
    /// not say it.
    pub(crate) recorded_s: Option<f64>,
    /// How long they take simulated, without the flush at the end.
    pub(crate) simulated_s: f64,
    /// Of all alternatives that can be had and gain enough for certain, the one that gains most.
    pub(crate) advised: Option<usize>,
    /// The first is what was recorded.
    pub(crate) alternatives: Vec<IoAlternative>,
}

/// What an alternative came to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct IoAlternative {
    pub(crate) is_recorded: bool,
    /// Whether it can be had on the machine as it is: without more I/O nodes.
    pub(crate) is_there: bool,
    /// What differs from what was recorded.
    pub(crate) change: &'static str,
    pub(crate) method: String,
    pub(crate) stripe_unit_bytes: u64,
    pub(crate) io_nodes: u32,
    pub(crate) scheduling: String,
    /// The hints and settings by which it is had.
    pub(crate) by: String,
    /// Until all is done and on the disks: the mean, and half its 95 % confidence interval.
    pub(crate) seconds: f64,
    pub(crate) seconds_half_width: f64,
    /// The part of the time that is gained; negative if it takes longer.
    pub(crate) gain: f64,
    pub(crate) gain_half_width: f64,
}

/// The part of the time that a change gains at least, or it is not advised: less is not worth a change, and predictions
/// are no better than that.
pub(crate) const LEAST_GAIN: f64 = 0.01;

/// Stripe units that are tried.
const STRIPE_UNITS: [u64; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// Orders at the disks that are tried.
const SCHEDULES: [Scheduling; 4] =
    [Scheduling::FairScan, Scheduling::Fcfs, Scheduling::RoundRobin, Scheduling::BoundedReadPriority];

/// What the trials of a setting took: until all was on the disks, and until the last call returned.
struct TrialTimes {
    elapsed: Vec<f64>,
    calls: Vec<f64>,
}

impl IoAlternative {
    /// Whether it gains enough on the machine that there is, and something for certain.
    fn is_better(&self) -> bool {
        self.is_there && is_worth_it(self.gain, self.gain_half_width)
    }
}

impl IoAdvice {
    /// Simulates what was recorded, everything else that is tried, and the best of each together.
    pub(crate) fn about(program: &RecordedProgram, show: Show) -> Result<IoAdvice> {
        let base = program.recorded();
        let tried = program.alternatives(base);
        let progress = Progress::count(show, "simulating", (1 + tried.len() as u64) * program.trials);
        let settings: Vec<IoSetting> =
            std::iter::once(base).chain(tried.iter().map(|(_, setting)| *setting)).collect();
        let mut done = program.simulated(&settings, &progress).into_iter();
        let of_base = done.next().expect("the first is what was recorded")?;
        let simulated_s = sample(&of_base.calls).mean();
        let mut alternatives = vec![program.told("as recorded", base, base, &of_base, &of_base)];
        for (&(change, setting), times) in tried.iter().zip(done) {
            alternatives.push(program.told(change, base, setting, &of_base, &times?));
        }
        if let Some(best) = best_together(base, &tried, &alternatives[1..]) {
            progress.expect_more(program.trials);
            let times = program.simulated(&[best], &progress).remove(0)?;
            alternatives.push(program.told("together", base, best, &of_base, &times));
        }
        progress.finish();
        let better = alternatives.iter().enumerate().filter(|(_, one)| one.is_better());
        let advised = better.max_by(|(_, one), (_, other)| one.gain.total_cmp(&other.gain));
        let totals = program.log.totals();
        Ok(IoAdvice {
            machine: program.machine.name.clone(),
            nodes: program.log.nodes().len(),
            requests: totals.requests(),
            bytes: totals.bytes_read + totals.bytes_written,
            trials: program.trials,
            recorded_s: program.recorded_seconds(),
            simulated_s,
            advised: advised.map(|(index, _)| index),
            alternatives,
        })
    }
}

impl IoAdvice {
    /// Whether a write cache is advised that was not recorded.
    pub(crate) fn is_written_behind(&self) -> bool {
        let has_cache = |index: usize| self.alternatives[index].method == Method::WriteCached.to_string();
        self.advised.is_some_and(has_cache) && !has_cache(0)
    }
}

const NODES: &str = "I/O nodes";

impl RecordedProgram {
    /// The program of a log on a machine of this name with numbers of its description replaced, which gets a compute
    /// node for each node of the log.
    pub(crate) fn new(log: RequestLog, machine: &str, set: &[String]) -> Result<RecordedProgram> {
        let described = load_machine(machine, set)?;
        let nodes = log.nodes().len() as u32;
        let mut set = set.to_vec();
        if nodes > described.nodes.compute.value {
            set.retain(|change| !change.trim_start().starts_with("nodes.compute"));
            set.push(format!("nodes.compute={nodes}"));
        }
        let mut program = RecordedProgram {
            machine: load_machine(machine, &set)?,
            others: BTreeMap::new(),
            log: Arc::new(log),
            think: Think::None,
            layout: DiskLayout::Contiguous,
            seed: 1,
            trials: 1,
        };
        set.retain(|change| !change.trim_start().starts_with("nodes.io"));
        let base = program.recorded().io_nodes;
        for io_nodes in [base, base / 2, base.saturating_mul(2)] {
            let set = [&set[..], &[format!("nodes.io={io_nodes}")]].concat();
            program.others.extend(load_machine(machine, &set).ok().map(|machine| (io_nodes, machine)));
        }
        program.others.insert(program.machine.nodes.io.value, program.machine.clone());
        Ok(program)
    }

    /// What was recorded, as far as the machine has it: of the methods that which moved most bytes together.
    fn recorded(&self) -> IoSetting {
        let usual = Options::of_agents();
        let (mut moved, mut block_bytes, mut stripes) = (BTreeMap::new(), None, None);
        if let Some(calls) = self.log.calls() {
            for call in calls.calls.iter().filter(|call| call.together.is_some()) {
                let bytes = call.moves.as_ref().map_or(0, |(_, selection)| selection.bytes());
                *moved.entry(call.method).or_insert(0) += bytes;
            }
            block_bytes = calls.openings.iter().map(|opening| opening.block_bytes).max();
            stripes = calls.openings.iter().map(|opening| opening.stripes).max();
        }
        let method = moved.into_iter().max_by_key(|(_, bytes)| *bytes).and_then(|(method, _)| method);
        let per_node = self.machine.disks.per_io_node.value.max(1);
        let io_nodes = self.machine.nodes.io.value;
        IoSetting {
            method: match method {
                Some(CallMethod::DiskDirected) => Method::DiskDirected,
                Some(CallMethod::TwoPhase) => Method::TwoPhase,
                Some(CallMethod::WriteCached) => Method::WriteCached,
                Some(CallMethod::Independent) | None => Method::Traditional,
            },
            block_bytes: block_bytes.unwrap_or(usual.block_bytes),
            io_nodes: stripes.map_or(io_nodes, |stripes: u32| stripes.div_ceil(per_node).min(io_nodes)),
            scheduling: Scheduling::FairScan,
        }
    }

    /// How long its calls took, of the node for which they took longest.
    fn recorded_seconds(&self) -> Option<f64> {
        let of_node = |node: &request_log::LoggedNode| {
            node.requests.iter().map(|request| request.took.as_secs_f64()).sum::<f64>()
        };
        let longest = self.log.nodes().iter().map(of_node).fold(0.0, f64::max);
        (longest > 0.0).then_some(longest)
    }

    /// What is tried beside it, one thing at a time.
    fn alternatives(&self, base: IoSetting) -> Vec<(&'static str, IoSetting)> {
        let writes = self.log.totals().writes > 0;
        let methods = Replay::METHODS.into_iter().filter(|method| writes || *method != Method::WriteCached);
        let methods = methods.map(|method| ("method", IoSetting { method, ..base }));
        let units =
            STRIPE_UNITS.into_iter().map(|block_bytes| ("stripe unit", IoSetting { block_bytes, ..base }));
        let nodes = self.others.keys().map(|&io_nodes| (NODES, IoSetting { io_nodes, ..base }));
        let schedules = SCHEDULES.map(|scheduling| ("order at disks", IoSetting { scheduling, ..base }));
        let all = methods.chain(units).chain(nodes).chain(schedules);
        all.filter(|(_, setting)| *setting != base).collect()
    }

    fn replay(&self, setting: IoSetting) -> Replay {
        let machine = self.others.get(&setting.io_nodes).unwrap_or(&self.machine).clone();
        let options = Options {
            block_bytes: setting.block_bytes,
            scheduling: setting.scheduling,
            ..Options::of_agents()
        };
        Replay {
            machine,
            method: setting.method,
            log: self.log.clone(),
            think: self.think,
            layout: self.layout,
            options: options.of(setting.method),
            configuration: Configuration::Agent,
            batch_bytes: Replay::BATCH_BYTES,
            contents: Contents::Phantom,
            seed: self.seed,
        }
    }

    /// What the trials of each of these settings took, on as many threads as there are processors.
    fn simulated(&self, settings: &[IoSetting], progress: &Progress) -> Vec<Result<TrialTimes>> {
        let replays: Vec<Replay> = settings.iter().map(|&setting| self.replay(setting)).collect();
        let all = plan::on_all_threads(replays.len() * self.trials as usize, |index| {
            let (replay, number) = (&replays[index / self.trials as usize], index as u64 % self.trials);
            let times = trial(replay, number);
            progress.add(1);
            times
        });
        let mut times = all.into_iter();
        let of_setting = |_| {
            let of_trials: Vec<Result<(f64, f64)>> = times.by_ref().take(self.trials as usize).collect();
            let (elapsed, calls) = of_trials.into_iter().collect::<Result<Vec<_>>>()?.into_iter().unzip();
            Ok(TrialTimes { elapsed, calls })
        };
        replays.iter().map(of_setting).collect()
    }

    /// An alternative, beside what was recorded.
    fn told(
        &self,
        change: &'static str,
        base: IoSetting,
        setting: IoSetting,
        of_base: &TrialTimes,
        times: &TrialTimes,
    ) -> IoAlternative {
        let gains: Vec<f64> = times
            .elapsed
            .iter()
            .zip(&of_base.elapsed)
            .map(|(one, before)| 1.0 - one / before.max(1e-9))
            .collect();
        let (gain, seconds) = (sample(&gains), sample(&times.elapsed));
        IoAlternative {
            is_recorded: setting == base,
            is_there: setting.io_nodes <= self.machine.nodes.io.value,
            change,
            method: setting.method.to_string(),
            stripe_unit_bytes: setting.block_bytes,
            io_nodes: setting.io_nodes,
            scheduling: setting.scheduling.to_string(),
            by: self.by(base, setting),
            seconds: seconds.mean(),
            seconds_half_width: seconds.half_width().unwrap_or(0.0),
            gain: gain.mean(),
            gain_half_width: gain.half_width().unwrap_or(0.0),
        }
    }

    /// The hints and settings by which a program has this.
    fn by(&self, base: IoSetting, setting: IoSetting) -> String {
        let mut by = Vec::new();
        if setting.method != base.method {
            let hint = hint_of(setting.method);
            by.push(match self.log.calls() {
                Some(_) => format!("starfish_method={hint}"),
                None => format!("MPI-IO with starfish_method={hint}"),
            });
        }
        if setting.block_bytes != base.block_bytes {
            by.push(format!("striping_unit={}", setting.block_bytes));
        }
        if setting.io_nodes != base.io_nodes {
            let disks = setting.io_nodes * self.machine.disks.per_io_node.value;
            match setting.io_nodes > self.machine.nodes.io.value {
                true => by.push(format!("{} agents", setting.io_nodes)),
                false => by.push(format!("striping_factor={disks}")),
            }
        }
        if setting.scheduling != base.scheduling {
            by.push(format!("agent --scheduling {}", setting.scheduling));
        }
        by.join(", ")
    }
}

/// What the hint `starfish_method` of MPI programs calls a method.
fn hint_of(method: Method) -> &'static str {
    match method {
        Method::Traditional => CallMethod::Independent.name(),
        Method::DiskDirected => CallMethod::DiskDirected.name(),
        Method::TwoPhase => CallMethod::TwoPhase.name(),
        Method::WriteCached => CallMethod::WriteCached.name(),
    }
}

/// The best of each thing that was changed, if more than one of them gains enough.
fn best_together(
    base: IoSetting,
    tried: &[(&'static str, IoSetting)],
    told: &[IoAlternative],
) -> Option<IoSetting> {
    let mut best: BTreeMap<&str, (f64, IoSetting)> = BTreeMap::new();
    for ((change, setting), one) in tried.iter().zip(told).filter(|(_, one)| one.is_better()) {
        let best = best.entry(change).or_insert((one.gain, *setting));
        if one.gain > best.0 {
            *best = (one.gain, *setting);
        }
    }
    let of = |change: &str| best.get(change).map_or(base, |(_, setting)| *setting);
    (best.len() > 1).then(|| IoSetting {
        method: of("method").method,
        block_bytes: of("stripe unit").block_bytes,
        io_nodes: of(NODES).io_nodes,
        scheduling: of("order at disks").scheduling,
    })
}

/// What a trial took, in seconds: all of it, and without the flush at the end.
fn trial(replay: &Replay, number: u64) -> Result<(f64, f64)> {
    let failed = |error| Failure::new(format!("simulating {}", replay.method), error);
    let trial = replay.numbered_trial(number).map_err(failed)?;
    let outcome = &trial.jobs[0];
    let calls = Duration::from_nanos(outcome.elapsed.as_nanos().saturating_sub(outcome.flush.as_nanos()));
    Ok((outcome.elapsed.as_secs_f64(), calls.as_secs_f64()))
}

/// Whether a gain, with half its confidence interval, is large enough, and something for certain.
fn is_worth_it(gain: f64, half_width: f64) -> bool {
    gain >= LEAST_GAIN && gain > half_width
}

fn sample(values: &[f64]) -> Sample {
    Sample::of(values).expect("there are trials, and times are numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_that_are_small_or_may_be_nothing_are_not_worth_it() {
        for (gain, half_width) in
            [(0.0, 0.0), (0.000_1, 0.0), (0.009, 0.001), (0.02, 0.02), (0.3, 0.31), (-0.1, 0.01)]
        {
            assert!(!is_worth_it(gain, half_width), "{gain} +- {half_width}");
        }
        for (gain, half_width) in [(0.01, 0.0), (0.02, 0.019), (0.3, 0.01)] {
            assert!(is_worth_it(gain, half_width), "{gain} +- {half_width}");
        }
    }
}
