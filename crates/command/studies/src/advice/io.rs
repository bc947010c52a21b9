//! Advice for a program whose requests were logged: the gains of other methods, stripe units, numbers of I/O nodes and
//! disk scheduling orders on a simulated machine. Each change is tried alone. Then the changes with the largest gains
//! are tried together.
//!
//! Every alternative is simulated in the same trials as the recorded setting, with the same seeds. Gains are computed
//! trial by trial, so random effects on both settings cancel out. The interval of a gain is the 95 % confidence
//! interval of its mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::described::load_machine;
use command_line::counted;
use command_line::failure::{Failure, Result};
use command_line::progress::{Progress, Show};
use description::MachineDescription;
use experiment::{Contents, DiskLayout, Method, Options, Replay, Think};
use fs::{Configuration, IoNodeSettings, Scheduling};
use machine::Duration;
use request_log::{CallMethod, LoggedNode, Request, RequestLog};
use serde::Serialize;
use statistics::Sample;

/// Recorded program, and its simulated machine.
#[derive(Clone, Debug)]
pub struct RecordedProgram {
    machine: MachineDescription,
    /// Machines with other numbers of I/O nodes, if they are valid.
    others: BTreeMap<u32, MachineDescription>,
    /// Requests of the program.
    pub log: Arc<RequestLog>,
    /// Computation time of the program between requests.
    pub think: Think,
    /// Layout of files on each disk.
    pub layout: DiskLayout,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of simulated trials of each alternative.
    pub trials: u64,
}

/// Settings that can be changed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct IoSetting {
    method: Method,
    block_bytes: u64,
    io_nodes: u32,
    scheduling: Scheduling,
}

impl IoSetting {
    /// Returns these settings, with the setting that `change` names taken from `other`.
    fn with(self, change: &str, other: IoSetting) -> IoSetting {
        match change {
            METHOD => IoSetting { method: other.method, ..self },
            STRIPE_UNIT => IoSetting { block_bytes: other.block_bytes, ..self },
            NODES => IoSetting { io_nodes: other.io_nodes, ..self },
            _ => IoSetting { scheduling: other.scheduling, ..self },
        }
    }
}

/// Advice for a recorded program.
#[derive(Debug, Serialize)]
pub struct IoAdvice {
    /// Name of the machine.
    pub machine: String,
    /// Number of nodes that made requests.
    pub nodes: usize,
    /// Number of requests.
    pub requests: u64,
    /// Number of bytes in these requests.
    pub bytes: u64,
    /// Number of simulated trials of each alternative.
    pub trials: u64,
    /// Recorded duration of the calls in seconds, for the slowest node. Includes the time between calls if
    /// `with_think_time` is set. `None` if the log has no durations.
    pub recorded_s: Option<f64>,
    /// Simulated duration of the same calls in seconds, without the final flush.
    pub simulated_s: f64,
    /// True if the replay keeps the time between calls.
    pub with_think_time: bool,
    /// Index of the best alternative that is available and has a sufficient, significant gain; `None` without one.
    pub advised: Option<usize>,
    /// The alternatives; the first is the recorded setting.
    pub alternatives: Vec<IoAlternative>,
}

/// Result of an alternative.
#[derive(Clone, Debug, Serialize)]
pub struct IoAlternative {
    /// True for the recorded setting.
    pub is_recorded: bool,
    /// True if the alternative needs no more I/O nodes than the machine has.
    pub is_there: bool,
    /// Change from the recorded setting.
    pub change: &'static str,
    /// Name of the method.
    pub method: String,
    /// Stripe unit in bytes.
    pub stripe_unit_bytes: u64,
    /// Number of I/O nodes.
    pub io_nodes: u32,
    /// Order in which a disk serves requests.
    pub scheduling: String,
    /// Hints and options that select the alternative.
    pub by: String,
    /// Mean duration in seconds until all data are on the disks.
    pub seconds: f64,
    /// Half the width of the confidence interval of `seconds`.
    pub seconds_half_width: f64,
    /// Gain as a share of the recorded setting's time; negative for a loss.
    pub gain: f64,
    /// Half the width of the confidence interval of `gain`.
    pub gain_half_width: f64,
}

/// Minimum gain of an advised change, as a share of the time. A smaller gain is not worth a change, and predictions are
/// not more accurate than this.
pub const LEAST_GAIN: f64 = 0.01;

/// Relative deviation of the simulated time from the recorded time above which the simulated machine must differ from
/// the recorded one. Predictions of agents' benchmarks deviate by a few per cent only.
const OFF_FROM: f64 = 0.25;

/// Stripe units to try, in bytes, as far as agents accept blocks of this size.
const STRIPE_UNITS: [u64; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// Disk scheduling orders to try.
const SCHEDULES: [Scheduling; 4] =
    [Scheduling::FairScan, Scheduling::Fcfs, Scheduling::RoundRobin, Scheduling::BoundedReadPriority];

/// Durations in seconds of the trials of a setting: until all data were on the disks, and until the last call returned.
struct TrialTimes {
    elapsed: Vec<f64>,
    calls: Vec<f64>,
}

impl TrialTimes {
    /// Returns the gain over `others`, trial by trial, as a share of their times.
    fn gain_over(&self, others: &TrialTimes) -> Sample {
        let both = self.elapsed.iter().zip(&others.elapsed);
        sample(&both.map(|(one, before)| 1.0 - one / before.max(1e-9)).collect::<Vec<f64>>())
    }
}

/// Setting that was tried, with one change from the recorded setting.
struct Tried {
    change: &'static str,
    setting: IoSetting,
    times: TrialTimes,
}

impl IoAlternative {
    /// True if the setting is available on the machine and has a sufficient, significant gain.
    fn is_better(&self) -> bool {
        self.is_there && is_worth_it(self.gain, self.gain_half_width)
    }
}

impl IoAdvice {
    /// Simulates the recorded setting, all possible alternatives, and a combination of the best alternatives.
    pub fn about(program: &RecordedProgram, show: Show) -> Result<IoAdvice> {
        let base = program.recorded();
        program
            .replay(base)
            .check()
            .map_err(|error| Failure::new("cannot simulate the recorded run", error))?;
        let singles = program.alternatives(base);
        let progress = Progress::count(show, "simulating", (1 + singles.len() as u64) * program.trials);
        let settings: Vec<IoSetting> =
            std::iter::once(base).chain(singles.iter().map(|(_, setting)| *setting)).collect();
        let mut done = program.simulated(&settings, &progress).into_iter();
        let of_base = done.next().expect("the first is what was recorded")?;
        let simulated_s = sample(&of_base.calls).mean();
        let mut alternatives = vec![program.alternative("as recorded", base, base, &of_base, &of_base)];
        let mut tried = Vec::new();
        for ((change, setting), times) in singles.into_iter().zip(done) {
            let one = Tried { change, setting, times: times? };
            alternatives.push(program.alternative(change, base, setting, &of_base, &one.times));
            tried.push(one);
        }
        let best = best_of_each(tried, &alternatives[1..]);
        let simulate = |setting: IoSetting| {
            if !program.is_possible(setting) {
                return Ok(None);
            }
            progress.expect_more(program.trials);
            program.simulated(&[setting], &progress).remove(0).map(Some)
        };
        if let Some((setting, times)) = in_company(best, simulate)? {
            alternatives.push(program.alternative("together", base, setting, &of_base, &times));
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
            with_think_time: program.think != Think::None,
            advised: advised.map(|(index, _)| index),
            alternatives,
        })
    }
}

impl IoAdvice {
    /// Returns the relative difference of the simulated time from the recorded time, or `None` if the log has no
    /// durations.
    pub fn longer_than_recorded(&self) -> Option<f64> {
        self.recorded_s.map(|recorded| self.simulated_s / recorded - 1.0)
    }

    /// True if the simulated machine obviously differs from the recorded one.
    pub fn is_of_other_machine(&self) -> bool {
        self.longer_than_recorded().is_some_and(|longer| longer.abs() >= OFF_FROM)
    }

    /// Returns the best alternative with more I/O nodes than the machine has, if its gain is significant and larger
    /// than that of the advised alternative.
    pub fn best_of_more_nodes(&self) -> Option<&IoAlternative> {
        let advised = self.advised.map_or(0.0, |index| self.alternatives[index].gain);
        let is_better = |one: &&IoAlternative| {
            !one.is_there && is_worth_it(one.gain, one.gain_half_width) && one.gain > advised
        };
        let more = self.alternatives.iter().filter(is_better);
        more.max_by(|one, other| one.gain.total_cmp(&other.gain))
    }

    /// True if a write cache is advised and the program had none.
    pub fn is_written_behind(&self) -> bool {
        let has_cache = |index: usize| self.alternatives[index].method == Method::WriteCached.to_string();
        self.advised.is_some_and(has_cache) && !has_cache(0)
    }
}

// Names of the changes in the output.
const METHOD: &str = "method";
const STRIPE_UNIT: &str = "stripe unit";
const NODES: &str = "I/O nodes";
const ORDER: &str = "order at disks";

impl RecordedProgram {
    /// Returns the program of a log on the machine of this name, with the values in `set` replaced. The machine gets a
    /// compute node for each node in the log.
    pub fn new(log: RequestLog, machine: &str, set: &[String]) -> Result<RecordedProgram> {
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

    /// Returns the recorded setting, as far as the machine supports it. If the log has several collective methods, uses
    /// the one that moved the most bytes.
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
            scheduling: IoNodeSettings::agent().scheduling,
        }
    }

    /// Returns the recorded duration of the calls in seconds, for the slowest node. Includes the time between calls if
    /// the replay keeps it.
    fn recorded_seconds(&self) -> Option<f64> {
        let is_known = |request: &Request| !request.took.is_zero();
        let nodes = self.log.nodes();
        if !nodes.iter().flat_map(|node| &node.requests).any(is_known) {
            return None;
        }
        let took = |requests: &[Request]| requests.iter().map(|request| request.took.as_secs_f64()).sum();
        let of_node = |node: &LoggedNode| -> f64 {
            match (self.think, node.requests.last()) {
                (Think::None, _) => took(&node.requests),
                (_, None) => 0.0,
                // The time of each node starts with the log, as in the replay.
                (_, Some(last)) => (last.time + last.took).as_secs_f64() - self.log.start().as_secs_f64(),
            }
        };
        Some(nodes.iter().map(of_node).fold(0.0, f64::max))
    }

    /// Returns the settings to try, each with one change, as far as the machine supports them. For example, its files
    /// may not fit onto fewer disks, or a stripe unit may not be a multiple of its sectors.
    fn alternatives(&self, base: IoSetting) -> Vec<(&'static str, IoSetting)> {
        let writes = self.log.totals().writes > 0;
        let methods = Replay::METHODS.into_iter().filter(|method| writes || *method != Method::WriteCached);
        let methods = methods.map(|method| (METHOD, IoSetting { method, ..base }));
        let taken = IoNodeSettings::agent().block_bytes_max;
        let units = STRIPE_UNITS.into_iter().filter(|unit| *unit <= taken);
        let units = units.map(|block_bytes| (STRIPE_UNIT, IoSetting { block_bytes, ..base }));
        let nodes = self.others.keys().map(|&io_nodes| (NODES, IoSetting { io_nodes, ..base }));
        let schedules = SCHEDULES.map(|scheduling| (ORDER, IoSetting { scheduling, ..base }));
        let all = methods.chain(units).chain(nodes).chain(schedules);
        all.filter(|(_, setting)| *setting != base && self.is_possible(*setting)).collect()
    }

    fn is_possible(&self, setting: IoSetting) -> bool {
        self.replay(setting).check().is_ok()
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

    /// Runs the trials of each of these settings, with one thread for each processor. Returns their durations.
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

    /// Returns an alternative with its gain over the recorded setting.
    fn alternative(
        &self,
        change: &'static str,
        base: IoSetting,
        setting: IoSetting,
        of_base: &TrialTimes,
        times: &TrialTimes,
    ) -> IoAlternative {
        let (gain, seconds) = (times.gain_over(of_base), sample(&times.elapsed));
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

    /// Returns the hints and options with which a program selects this setting.
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
                true => by.push(counted(setting.io_nodes, "agent")),
                false => by.push(format!("striping_factor={disks}")),
            }
        }
        if setting.scheduling != base.scheduling {
            by.push(format!("agent --scheduling {}", setting.scheduling));
        }
        by.join(", ")
    }
}

/// Returns the name of a method in the hint `starfish_method` of MPI programs.
fn hint_of(method: Method) -> &'static str {
    match method {
        Method::Traditional => CallMethod::Independent.name(),
        Method::DiskDirected => CallMethod::DiskDirected.name(),
        Method::TwoPhase => CallMethod::TwoPhase.name(),
        Method::WriteCached => CallMethod::WriteCached.name(),
    }
}

/// Returns the best setting for each kind of change, if its gain is sufficient, in descending order of the gains.
fn best_of_each(tried: Vec<Tried>, alternatives: &[IoAlternative]) -> Vec<Tried> {
    let mut better: Vec<(f64, Tried)> = tried
        .into_iter()
        .zip(alternatives)
        .filter(|(_, one)| one.is_better())
        .map(|(tried, one)| (one.gain, tried))
        .collect();
    better.sort_by(|(gain, _), (other, _)| other.total_cmp(gain));
    let mut best: Vec<Tried> = Vec::new();
    for (_, one) in better {
        if best.iter().all(|other| other.change != one.change) {
            best.push(one);
        }
    }
    best
}

/// Combines the first change with each later change that adds a sufficient gain to the combination so far. Returns
/// `None` if no later change does. `simulate` returns `None` for impossible combinations.
fn in_company(
    best: Vec<Tried>,
    simulate: impl Fn(IoSetting) -> Result<Option<TrialTimes>>,
) -> Result<Option<(IoSetting, TrialTimes)>> {
    let mut rest = best.into_iter();
    let Some(Tried { mut setting, mut times, .. }) = rest.next() else { return Ok(None) };
    let mut has_company = false;
    for one in rest {
        let with_it = setting.with(one.change, one.setting);
        let Some(times_with_it) = simulate(with_it)? else { continue };
        let gain = times_with_it.gain_over(&times);
        if is_worth_it(gain.mean(), gain.half_width().unwrap_or(0.0)) {
            (setting, times, has_company) = (with_it, times_with_it, true);
        }
    }
    Ok(has_company.then_some((setting, times)))
}

/// Returns the duration of a trial in seconds, including and excluding the final flush.
fn trial(replay: &Replay, number: u64) -> Result<(f64, f64)> {
    let failed = |error| Failure::new(format!("cannot simulate {}", replay.method), error);
    let trial = replay.numbered_trial(number).map_err(failed)?;
    let outcome = &trial.jobs[0];
    let calls = Duration::from_nanos(outcome.elapsed.as_nanos().saturating_sub(outcome.flush.as_nanos()));
    Ok((outcome.elapsed.as_secs_f64(), calls.as_secs_f64()))
}

/// True if a gain is large enough and significant. `half_width` is half its confidence interval.
fn is_worth_it(gain: f64, half_width: f64) -> bool {
    gain >= LEAST_GAIN && gain > half_width
}

fn sample(values: &[f64]) -> Sample {
    Sample::of(values).expect("there are trials, and times are numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: IoSetting = IoSetting {
        method: Method::Traditional,
        block_bytes: 1,
        io_nodes: 1,
        scheduling: Scheduling::FairScan,
    };
    const CACHED: IoSetting = IoSetting { method: Method::WriteCached, ..BASE };
    const LARGE: IoSetting = IoSetting { block_bytes: 2, ..BASE };
    const FIRST: IoSetting = IoSetting { scheduling: Scheduling::Fcfs, ..BASE };

    fn took(seconds: f64) -> TrialTimes {
        TrialTimes { elapsed: vec![seconds; 2], calls: vec![seconds; 2] }
    }

    #[test]
    fn changes_without_gain_in_combination_are_left_out() {
        let best = || {
            let one = |change, setting, seconds| Tried { change, setting, times: took(seconds) };
            vec![one(METHOD, CACHED, 5.0), one(ORDER, FIRST, 8.0), one(STRIPE_UNIT, LARGE, 9.0)]
        };
        let large_and_cached = IoSetting { block_bytes: 2, ..CACHED };
        let gains = |setting| Ok(Some(took(if setting == large_and_cached { 4.0 } else { 5.0 })));
        let (setting, times) = in_company(best(), gains).expect("simulated").expect("two of them");
        assert_eq!((setting, times.elapsed), (large_and_cached, vec![4.0; 2]));
        assert!(
            in_company(best(), |_| Ok(Some(took(4.99)))).expect("simulated").is_none(),
            "no combination gains more than the first change"
        );
        assert!(in_company(best(), |_| Ok(None)).expect("simulated").is_none(), "no combination is possible");
        assert!(in_company(Vec::new(), |_| panic!("nothing to simulate")).expect("nothing").is_none());
    }

    #[test]
    fn small_or_uncertain_gains_are_not_worth_it() {
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
