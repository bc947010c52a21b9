//! What is advised to several jobs on shared disks: from the analysis of the race between them, and held against all
//! alternatives on a simulated machine.

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
    /// With a compute node for each job, and an I/O node with a disk for each disk.
    pub machine: MachineDescription,
    /// Number of jobs.
    pub jobs: u32,
    /// Number of disks.
    pub disks: u32,
    /// The runs of each job, and the blocks of a run.
    pub runs: u32,
    /// Blocks of a run.
    pub run_blocks: u64,
    /// Size of a block.
    pub block_bytes: u64,
    /// The blocks that are read and written at once.
    pub read_blocks: u64,
    /// Blocks of a write.
    pub write_blocks: u64,
    /// The time by which each job arrives later than the one before.
    pub stagger: Duration,
}

/// What is advised, and why.
#[derive(Debug, Serialize)]
pub struct PlacementAdvice {
    /// The machine.
    pub machine: String,
    /// Number of jobs.
    pub jobs: u32,
    /// Number of disks.
    pub disks: u32,
    /// Size of a block.
    pub block_bytes: u64,
    /// Blocks of a read.
    pub read_blocks: u64,
    /// Blocks of a write.
    pub write_blocks: u64,
    /// r and w, in milliseconds, as one job alone has them on that machine.
    pub read_ms: f64,
    /// Time of a write in milliseconds.
    pub write_ms: f64,
    /// f = w / r, without unit.
    pub ratio: f64,
    /// None if there is one job only.
    pub race: Option<RaceOutlook>,
    /// What the analysis says, if simulation confirms that, or else the best of all alternatives.
    pub advised: Alternative,
    /// What the analysis says.
    pub analysed: Alternative,
    /// The best of the alternatives.
    pub best: Alternative,
    /// The part of the best time by which that of the analysis is longer.
    pub longer_than_best: f64,
    /// True if simulation confirms the advice.
    pub is_confirmed: bool,
    /// All of them.
    pub alternatives: Vec<Alternative>,
}

/// Whether jobs that read from all disks but the one they write to can race.
#[derive(Debug, Serialize)]
pub struct RaceOutlook {
    /// True if the jobs can race.
    pub is_possible: bool,
    /// The f above which a race is possible, without unit.
    pub critical_ratio: f64,
    /// f over that.
    pub margin: f64,
    /// With more pending writes at a disk than this a race begins, if there are as many jobs as disks.
    pub threshold_blocks: u64,
}

/// What an alternative came to on the simulated machine: means over the trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// By its number.
    pub policy: u8,
    /// The order in which a disk serves requests.
    pub scheduling: String,
    /// Until all jobs, and the first of them, were done.
    pub seconds: f64,
    /// Half the 95 % confidence interval of the former; none of a single trial.
    pub seconds_half_width: Option<f64>,
    /// Time until the first job is done, in seconds.
    pub first_seconds: f64,
    /// The most blocks of writes that were pending at a disk in any trial.
    pub pending_blocks_most: u64,
}

/// Orders at the disks that are tried.
const SCHEDULES: [Scheduling; 4] =
    [Scheduling::Fcfs, Scheduling::RoundRobin, Scheduling::BoundedReadPriority, Scheduling::FairScan];

/// The order that is advised with a placement by which nobody can race: no job waits for more than a sweep.
const ADVISED: Scheduling = Scheduling::FairScan;

/// What the analysis says is confirmed if it takes no longer than the best alternative by more than this part: trials
/// of one and the same differ by a few per cent.
const LONGER_MAX: f64 = 0.05;

impl PlacementAdvice {
    /// What is advised about these jobs, held against `trials` trials of each alternative.
    pub fn about(merges: &Merges, trials: u64) -> Result<PlacementAdvice> {
        let Merges { jobs, disks, read_blocks, .. } = *merges;
        let alone = Merges { jobs: 1, ..merges.clone() };
        let policy = Policy::advised(disks as usize, !merges.stagger.is_zero());
        let alone = alone.case(policy, Scheduling::Fcfs);
        let outcome = alone.outcome(&alone.trial(0).map_err(failed)?);
        let times = BlockTimes { read: outcome.read_ms, write: outcome.write_ms };
        if times.read <= 0.0 || times.write <= 0.0 {
            let machine = &merges.machine.name;
            let failure =
                Failure::usage(format!("--machine {machine}"), "its disks take no time, so nothing races");
            return Err(failure.remedy("Choose one whose disks do, such as shared-disks-1996."));
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
    /// Whether the advised order is the default of agents.
    pub fn is_usual_order(&self) -> bool {
        self.advised.scheduling == IoNodeSettings::agent().scheduling.name()
    }

    /// Whether jobs can race by any policy.
    pub fn can_race(&self) -> bool {
        self.race.as_ref().is_some_and(|race| race.is_possible)
    }

    /// The fastest alternative in which no job reads from the disk that it writes to, and others do.
    pub fn if_jobs_read_elsewhere(&self) -> Option<&Alternative> {
        let can_race = |one: &&Alternative| Policy::numbered(one.policy).is_some_and(Policy::can_race);
        fastest(self.alternatives.iter().filter(can_race))
    }
}

/// The one that takes the least time, the first of several.
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

/// What each case comes to, on as many threads as there are processors.
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
    Failure::new("simulating", error)
}
