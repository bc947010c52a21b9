//! Advice for several jobs on shared disks: the advice of the analysis of races, compared with all alternatives on a
//! simulated machine.

use command_line::failure::{Failure, Result};
use description::MachineDescription;
use experiment::{PlacementCase, PlacementOptions, PlacementOutcome};
use fs::{IoNodeSettings, Scheduling};
use machine::Duration;
use placement::{BlockTimes, ManyDisks, Policy};
use serde::Serialize;
use statistics::Sample;

/// Several merges that run at once.
#[derive(Clone, Debug)]
pub struct Merges {
    /// Machine with a compute node for each job, and with an I/O node for each disk.
    pub machine: MachineDescription,
    /// Number of jobs.
    pub jobs: u32,
    /// Number of disks.
    pub disks: u32,
    /// Number of runs of each job.
    pub runs: u32,
    /// Number of blocks of a run.
    pub run_blocks: u64,
    /// Size of a block in bytes.
    pub block_bytes: u64,
    /// Number of blocks of a read.
    pub read_blocks: u64,
    /// Number of blocks of a write.
    pub write_blocks: u64,
    /// Time between the starts of successive jobs.
    pub stagger: Duration,
}

/// Advice and its reasons.
#[derive(Debug, Serialize)]
pub struct PlacementAdvice {
    /// Name of the machine.
    pub machine: String,
    /// Number of jobs.
    pub jobs: u32,
    /// Number of disks.
    pub disks: u32,
    /// Size of a block in bytes.
    pub block_bytes: u64,
    /// Number of blocks of a read.
    pub read_blocks: u64,
    /// Number of blocks of a write.
    pub write_blocks: u64,
    /// Time r to read a block in milliseconds, for a job that runs alone on this machine.
    pub read_ms: f64,
    /// Time w to write a block in milliseconds.
    pub write_ms: f64,
    /// f = w / r, without unit.
    pub ratio: f64,
    /// Possibility of races; `None` if there is only one job.
    pub race: Option<RaceOutlook>,
    /// Advised alternative: the one of the analysis if the simulation confirms it, or else the fastest one.
    pub advised: Alternative,
    /// Alternative that the analysis recommends.
    pub analysed: Alternative,
    /// Fastest alternative.
    pub best: Alternative,
    /// Relative difference of the time of the analysed alternative from the fastest time.
    pub longer_than_best: f64,
    /// True if the simulation confirms the analysis.
    pub is_confirmed: bool,
    /// All alternatives.
    pub alternatives: Vec<Alternative>,
}

/// Possibility of races between jobs that read from all disks except their output disk.
#[derive(Debug, Serialize)]
pub struct RaceOutlook {
    /// True if the jobs can race.
    pub is_possible: bool,
    /// Value of f above which a race is possible, without unit.
    pub critical_ratio: f64,
    /// f divided by the critical ratio.
    pub margin: f64,
    /// Number of pending blocks at a disk above which a race begins, for equal numbers of jobs and disks.
    pub threshold_blocks: u64,
}

/// Result of an alternative on the simulated machine, as means over the trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// Number of the placement policy.
    pub policy: u8,
    /// Order in which a disk serves requests.
    pub scheduling: String,
    /// Time until all jobs were done, in seconds.
    pub seconds: f64,
    /// Half the width of the 95 % confidence interval of `seconds`; `None` for a single trial.
    pub seconds_half_width: Option<f64>,
    /// Time until the first job was done, in seconds.
    pub first_seconds: f64,
    /// Maximum number of blocks of pending writes at any disk in any trial.
    pub pending_blocks_most: u64,
}

/// Disk scheduling orders to try.
const SCHEDULES: [Scheduling; 4] =
    [Scheduling::Fcfs, Scheduling::RoundRobin, Scheduling::BoundedReadPriority, Scheduling::FairScan];

/// Order that is advised with a placement that prevents races. With this order no job waits for more than a sweep.
const ADVISED: Scheduling = Scheduling::FairScan;

/// Tolerance for confirming the analysis: its alternative may take longer than the fastest one by this share. Trials of
/// the same alternative differ by a few per cent.
const LONGER_MAX: f64 = 0.05;

impl PlacementAdvice {
    /// Returns the advice for these jobs, after simulating `trials` trials of each alternative.
    pub fn about(merges: &Merges, trials: u64) -> Result<PlacementAdvice> {
        let Merges { jobs, disks, read_blocks, .. } = *merges;
        let alone = Merges { jobs: 1, ..merges.clone() };
        let policy = Policy::advised(disks as usize, !merges.stagger.is_zero());
        let alone = alone.case(policy, Scheduling::Fcfs);
        let outcome = alone.outcome(&alone.trial(0).map_err(failed)?);
        let times = BlockTimes { read: outcome.read_ms, write: outcome.write_ms };
        if times.read <= 0.0 || times.write <= 0.0 {
            let machine = &merges.machine.name;
            let failure = Failure::usage(
                format!("--machine {machine}"),
                "its disks take no time, so no race is possible",
            );
            return Err(failure.remedy("Choose a machine with disk times, such as shared-disks-1996."));
        }
        let race = (jobs > 1).then(|| RaceOutlook::of(&ManyDisks::new(times, read_blocks as u32, disks)));
        let is_possible = |one: &Policy| merges.stagger.is_zero() || *one != Policy::SharedWithinJob;
        let cases: Vec<PlacementCase> = Policy::ALL
            .into_iter()
            .filter(is_possible)
            .filter(|policy| policy.place(jobs as usize, disks as usize, merges.runs as usize).is_ok())
            .flat_map(|policy| SCHEDULES.map(|scheduling| merges.case(policy, scheduling)))
            .collect();
        let alternatives = simulated(&cases, trials)?;
        let is_advised =
            |one: &&Alternative| one.policy == policy.number() && one.scheduling == ADVISED.name();
        let analysed = alternatives.iter().find(is_advised).expect("it is one of them").clone();
        let best = fastest(alternatives.iter()).expect("there are some").clone();
        let longer_than_best = analysed.seconds / best.seconds - 1.0;
        let is_confirmed = longer_than_best <= LONGER_MAX;
        Ok(PlacementAdvice {
            machine: merges.machine.name.clone(),
            jobs,
            disks,
            block_bytes: merges.block_bytes,
            read_blocks,
            write_blocks: merges.write_blocks,
            read_ms: times.read,
            write_ms: times.write,
            ratio: times.ratio(),
            race,
            is_confirmed,
            longer_than_best,
            advised: if is_confirmed { analysed.clone() } else { best.clone() },
            analysed,
            best,
            alternatives,
        })
    }
}

impl PlacementAdvice {
    /// True if the advised order is the default order of agents.
    pub fn is_usual_order(&self) -> bool {
        self.advised.scheduling == IoNodeSettings::agent().scheduling.name()
    }

    /// True if jobs can race with some policy.
    pub fn can_race(&self) -> bool {
        self.race.as_ref().is_some_and(|race| race.is_possible)
    }

    /// Returns the fastest alternative in which jobs read from the output disks of other jobs, but not from their own.
    pub fn if_jobs_read_elsewhere(&self) -> Option<&Alternative> {
        let can_race = |one: &&Alternative| Policy::numbered(one.policy).is_some_and(Policy::can_race);
        fastest(self.alternatives.iter().filter(can_race))
    }
}

/// Returns the fastest alternative; of several, the first.
fn fastest<'a>(all: impl Iterator<Item = &'a Alternative>) -> Option<&'a Alternative> {
    all.min_by(|one, other| one.seconds.total_cmp(&other.seconds))
}

impl RaceOutlook {
    fn of(system: &ManyDisks) -> RaceOutlook {
        RaceOutlook {
            is_possible: system.can_race(),
            critical_ratio: system.critical_ratio(),
            margin: system.ratio(),
            threshold_blocks: system.threshold_blocks(),
        }
    }
}

impl Merges {
    fn case(&self, policy: Policy, scheduling: Scheduling) -> PlacementCase {
        let options = PlacementOptions {
            policy,
            jobs: self.jobs,
            disks: self.disks,
            runs: self.runs,
            run_blocks: self.run_blocks,
            block_bytes: self.block_bytes,
            read_blocks: self.read_blocks,
            write_blocks: self.write_blocks,
            scheduling,
            stagger: self.stagger,
            ..PlacementOptions::default()
        };
        PlacementCase { machine: self.machine.clone(), options, seed: 1 }
    }
}

/// Returns the result of each case. Uses one thread for each processor.
fn simulated(cases: &[PlacementCase], trials: u64) -> Result<Vec<Alternative>> {
    plan::on_all_threads(cases.len(), |index| mean(&cases[index], trials)).into_iter().collect()
}

fn mean(case: &PlacementCase, trials: u64) -> Result<Alternative> {
    let mut all = Vec::new();
    for number in 0..trials {
        all.push(case.outcome(&case.trial(number).map_err(failed)?));
    }
    let sample = |time: fn(&PlacementOutcome) -> Duration| {
        let seconds: Vec<f64> = all.iter().map(|outcome| time(outcome).as_secs_f64()).collect();
        Sample::of(&seconds).expect("there are trials, and times are numbers")
    };
    let elapsed = sample(|outcome| outcome.elapsed);
    Ok(Alternative {
        policy: case.options.policy.number(),
        scheduling: case.options.scheduling.to_string(),
        seconds: elapsed.mean(),
        seconds_half_width: elapsed.half_width(),
        first_seconds: sample(|outcome| outcome.first()).mean(),
        pending_blocks_most: all.iter().map(|outcome| outcome.pending_most().blocks).max().unwrap_or(0),
    })
}

fn failed(error: experiment::Error) -> Failure {
    Failure::new("cannot simulate", error)
}
