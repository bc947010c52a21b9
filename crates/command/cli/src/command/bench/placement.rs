//! `starfish bench placement`: measures and predicts merges on agents whose disks they share.

use clap::Args;
use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use description::MachineDescription;
use experiment::{PlacementCase, PlacementOptions};
use fs::Scheduling;
use node::Size;
use placement::Policy;
use studies::bench::placement::MergeTimes;
use studies::bench::placement::measure::MergeTestbed;
use studies::bench::placement::prediction::predict;
use studies::bench::placement::results::{MergeRow, compare, lines, page};
use studies::described::{LOOPBACK, load_machine_of_agents, load_model, this_computer};

use crate::options::numbers::positive;
use crate::options::values;
use crate::output::row_format::RowOutput;

/// Measure merges that share disks: races between them, and their remedies.
///
/// Starts agents on loopback, whose disks take the times of a model, and merges runs on them. Each job is a separate
/// node with its own connections; all requested policies and disk orders are run. The merged output is checked. Next to
/// each measurement is the prediction of the simulated machine `loopback` with the same disks, which runs the same
/// jobs: the mean of five trials. The time ends when the last write is on the disks. A slowdown is relative to the same
/// number of jobs with policy 3 and fcfs, with which races are impossible. With all defaults the command takes about
/// five minutes. The files are in TMPDIR.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Numbers of concurrent jobs.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,3,4,5",
          value_parser = positive::<u32>)]
    jobs: Vec<u32>,

    /// Number of agents, each with a disk.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=16))]
    disks: u8,

    /// Placement policies, 1 to 4; see `starfish merge --help`.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "3,2",
          value_parser = clap::value_parser!(u8).range(1..=4))]
    policies: Vec<u8>,

    /// Orders in which the disks serve waiting requests.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = values::scheduling(),
          default_value = "fcfs,round-robin,read-priority,fair-scan")]
    scheduling: Vec<Scheduling>,

    /// Number of input runs of each job.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = positive::<u32>)]
    runs: u32,

    /// Number of blocks of an input run.
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = positive::<u64>)]
    run_blocks: u64,

    /// Size of a block.
    #[arg(long, value_name = "SIZE", default_value = "1KiB")]
    block: Size,

    /// Number of blocks that are read at once.
    #[arg(long, value_name = "N", default_value_t = 12)]
    read_blocks: u64,

    /// Number of blocks that are written at once.
    #[arg(long, value_name = "N", default_value_t = 40)]
    write_blocks: u64,

    /// Number of measured trials; the result is their mean.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive::<u32>)]
    trials: u32,

    /// Disk model.
    #[arg(long, value_name = "NAME", default_value = "drawn-14400")]
    disk_model: String,

    /// Predict for this machine, and measure nothing.
    #[arg(long, value_name = "NAME", conflicts_with = "trials")]
    predict: Option<String>,

    #[command(flatten)]
    output: RowOutput,
}

const EXAMPLES: &str = "\
Examples:
  starfish bench placement --jobs 5 --html placement.html
  starfish bench placement --jobs 5 --run-blocks 1000 --scheduling fcfs,round-robin
  starfish bench placement --predict loopback --run-blocks 1000
  starfish bench placement --jobs 2 --disks 2 --disk-model flash-qlc --block 4KiB";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    load_model(&arguments.disk_model)?;
    let cases = cases(arguments)?;
    arguments.output.check()?;
    let mut testbed = match &arguments.predict {
        None => Some(MergeTestbed::start(u32::from(arguments.disks), &arguments.disk_model)?),
        Some(_) => None,
    };
    let progress = Progress::count(arguments.output.progress.show, "merging", cases.len() as u64);
    let mut rows = Vec::new();
    // Cases with the same placement share their runs.
    for same in cases.chunk_by(same_jobs) {
        testbed.as_mut().map_or(Ok(()), |testbed| testbed.make_runs(&same[0]))?;
        for case in same {
            let measured =
                testbed.as_mut().map(|testbed| measured(testbed, case, arguments.trials)).transpose()?;
            rows.push(MergeRow::new(case, arguments.trials, measured, predict(case)?));
            progress.add(1);
        }
        testbed.as_mut().map_or(Ok(()), MergeTestbed::remove_runs)?;
    }
    progress.finish();
    compare(&mut rows);
    arguments.output.print(&rows, lines, page)
}

fn measured(testbed: &mut MergeTestbed, case: &PlacementCase, trials: u32) -> Result<MergeTimes> {
    let trials = (0..u64::from(trials)).map(|number| testbed.measure(case, number));
    Ok(MergeTimes::mean(&trials.collect::<Result<Vec<_>>>()?))
}

/// Returns true if two cases differ only in the disk scheduling order.
fn same_jobs(one: &PlacementCase, other: &PlacementCase) -> bool {
    let of = |case: &PlacementCase| (case.options.jobs, case.options.policy);
    of(one) == of(other)
}

fn cases(arguments: &Arguments) -> Result<Vec<PlacementCase>> {
    let mut cases = Vec::new();
    for &jobs in &arguments.jobs {
        let machine = machine(arguments, jobs)?;
        for policy in arguments.policies.iter().filter_map(|&number| Policy::numbered(number)) {
            for &scheduling in &arguments.scheduling {
                let options = PlacementOptions {
                    policy,
                    jobs,
                    disks: arguments.disks.into(),
                    runs: arguments.runs,
                    run_blocks: arguments.run_blocks,
                    block_bytes: arguments.block.0,
                    read_blocks: arguments.read_blocks,
                    write_blocks: arguments.write_blocks,
                    scheduling,
                    ..PlacementOptions::default()
                };
                let case = PlacementCase { machine: machine.clone(), options, seed: 1 };
                case.check().map_err(|error| Failure::usage("bench placement", error))?;
                cases.push(case);
            }
        }
    }
    Ok(cases)
}

/// Returns the machine for the prediction: the named one, or else the machine of the measurement.
fn machine(arguments: &Arguments, jobs: u32) -> Result<MachineDescription> {
    let disks = usize::from(arguments.disks);
    match &arguments.predict {
        Some(name) => load_machine_of_agents(name, jobs, disks, 1, &[]),
        None => load_machine_of_agents(LOOPBACK, jobs, disks, 1, &this_computer(&arguments.disk_model)),
    }
}
