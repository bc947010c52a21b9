//! `starfish advise`: recommends settings before a run, and checks them on a simulated machine.

mod io;

use clap::{Args, Subcommand};
use command_line::failure::{Failure, Result};
use command_line::{TextTable, counted};
use machine::Message;
use node::Size;
use placement::Policy;

use crate::options::numbers::positive;
use crate::output::row_format::RowFormat;
use account::race::proviso;
use command_line::durations;
use studies::advice::placement::{Alternative, Merges, PlacementAdvice};
use studies::described::load_machine_of_agents;

/// Advise on placement and I/O settings before jobs are run.
#[derive(Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    about: AdviceSubject,
}

#[derive(Subcommand)]
enum AdviceSubject {
    Placement(PlacementArguments),
    Io(io::IoArguments),
}

/// Recommend disks for the files of several concurrent jobs, and the order in which disks should serve them.
///
/// Each job merges runs into one: an external sort, a join, a compaction. In a race, one job gets ahead because its
/// writes delay the reads of the others. Then the jobs take turns, and disks are idle. The command reports how likely a
/// race is, the placement and order that avoid it, and the time of each alternative on a simulated machine.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
struct PlacementArguments {
    /// Number of disks that the jobs share.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_DISKS))]
    disks: u32,

    /// Number of concurrent jobs. Each writes to a separate disk.
    #[arg(long, value_name = "N", value_parser = positive::<u32>)]
    jobs: u32,

    /// Size of a job's read from a run.
    #[arg(long, value_name = "SIZE", default_value = "48KiB")]
    read_block: Size,

    /// Size of a job's write.
    #[arg(long, value_name = "SIZE", default_value = "160KiB")]
    write_block: Size,

    /// Size of a block: the number of bytes that a job consumes from a run before it chooses the next run.
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    block: Size,

    /// Number of runs that each job merges.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = positive::<u32>)]
    runs: u32,

    /// Size of a run.
    #[arg(long, value_name = "SIZE", default_value = "4000KiB")]
    run_size: Size,

    /// Delay of each job after the previous one. With a delay, policy 4 is advised, because policy 3 requires that the
    /// number of jobs is known when the first is placed.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = durations::parse)]
    stagger: std::time::Duration,

    /// Machine to simulate: a name that `starfish machines` lists, or a TOML file.
    #[arg(long, value_name = "NAME", default_value = "shared-disks-1996")]
    machine: String,

    /// Number of trials of each alternative, which differ in their random numbers.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = positive::<u32>)]
    trials: u32,

    /// Output format: a row for each alternative. With CSV, the reasons are printed on standard error. JSON is one
    /// object.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,
}

const EXAMPLES: &str = "\
Examples:
  starfish advise placement --disks 5 --jobs 3
  starfish advise placement --disks 8 --jobs 8 --read-block 1MiB --write-block 256KiB --machine cluster-switch
  starfish advise placement --disks 5 --jobs 5 --format csv";

/// Maximum of --disks, because simulating more takes too long.
const MOST_DISKS: i64 = 64;

/// Maximum number of blocks of all jobs together: some minutes of simulation for each alternative.
const MOST_BLOCKS: u64 = 10_000_000;

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    match arguments.about {
        AdviceSubject::Placement(arguments) => of_placement(&arguments),
        AdviceSubject::Io(arguments) => io::run(&arguments),
    }
}

fn of_placement(arguments: &PlacementArguments) -> Result<()> {
    let advice = PlacementAdvice::about(&merges(arguments)?, u64::from(arguments.trials))?;
    arguments.format.print_report(&advice, report_lines, csv, reasons)
}

/// Returns the jobs that the options describe.
fn merges(arguments: &PlacementArguments) -> Result<Merges> {
    let &PlacementArguments { disks, jobs, read_block, write_block, block, runs, run_size, .. } = arguments;
    if jobs > disks {
        let why = format!(
            "each job writes to a separate disk, and there {} {}",
            if disks == 1 { "is" } else { "are" },
            counted(disks, "disk")
        );
        let failure = Failure::usage(format!("--jobs {jobs}"), why);
        return Err(failure.remedy("Run fewer jobs at once, or give more --disks."));
    }
    let blocks_of = |option: &str, size: Size, most: u64| {
        let failed = |why: String| Err(Failure::usage(format!("--{option} {size}"), why));
        match size.0.checked_div(block.0) {
            None => Err(Failure::usage(format!("--block {block}"), "a block has at least one byte")),
            Some(blocks) if blocks > 0 && size.0 == blocks * block.0 && size.0 <= most => Ok(blocks),
            Some(_) if size.0 > most => failed(format!("expected at most {}", Size(most))),
            Some(_) => failed(format!("expected a multiple of the block size, {block} (see --block)")),
        }
    };
    let (read_blocks, write_blocks) = (
        blocks_of("read-block", read_block, Message::PAYLOAD_BYTES_MAX)?,
        blocks_of("write-block", write_block, Message::PAYLOAD_BYTES_MAX)?,
    );
    let run_blocks = blocks_of("run-size", run_size, u64::MAX)?;
    let all = run_blocks.saturating_mul(u64::from(runs)).saturating_mul(u64::from(jobs));
    if all > MOST_BLOCKS {
        let failure = Failure::usage(
            format!("--run-size {run_size}"),
            format!("the jobs have {all} blocks in total; the limit is {MOST_BLOCKS}"),
        );
        return Err(
            failure.remedy("Choose a smaller run size: the advice hardly depends on the length of the jobs.")
        );
    }
    let machine = load_machine_of_agents(&arguments.machine, jobs, disks as usize, 1, &[])?;
    let stagger = arguments.stagger.into();
    Ok(Merges {
        machine,
        jobs,
        disks,
        runs,
        run_blocks,
        block_bytes: block.0,
        read_blocks,
        write_blocks,
        stagger,
    })
}

fn report_lines(advice: &PlacementAdvice) -> Vec<String> {
    let mut lines = reasons(advice);
    let mut table = TextTable::new(2);
    table.row(["policy", "order at disks", "all done", "+-", "first done", "blocks pending"]);
    for one in &advice.alternatives {
        let Alternative { scheduling, seconds, first_seconds, pending_blocks_most, .. } = one;
        table.row([
            policy_name(one),
            scheduling.clone(),
            format!("{seconds:.2} s"),
            one.seconds_half_width.map_or_else(|| "-".to_owned(), |half| format!("{half:.2} s")),
            format!("{first_seconds:.2} s"),
            pending_blocks_most.to_string(),
        ]);
    }
    lines.extend([String::new()].into_iter().chain(table.lines()));
    lines
}

fn policy_name(one: &Alternative) -> String {
    Policy::numbered(one.policy).map_or_else(String::new, |policy| policy.to_string())
}

/// Formats the simulated time of an alternative with its confidence interval.
fn simulated(one: &Alternative) -> String {
    match one.seconds_half_width {
        Some(half) => format!("{:.2} s +- {half:.2} s", one.seconds),
        None => format!("{:.2} s", one.seconds),
    }
}

/// Returns lines with the recommendation and its reasons.
fn reasons(advice: &PlacementAdvice) -> Vec<String> {
    let PlacementAdvice { jobs, disks, machine, read_ms, write_ms, ratio, .. } = advice;
    let mut lines = vec![format!(
        "{} on {} of {machine}: a block takes {read_ms:.2} ms to read and {write_ms:.2} ms to write, \
         f = {ratio:.2}.",
        counted(*jobs, "job"),
        counted(*disks, "disk"),
    )];
    lines.push(match &advice.race {
        None => "No race: there is only one job, so no other reads can wait.".to_owned(),
        Some(race) if race.is_possible => format!(
            "A race is possible if jobs read only from disks that other jobs write to (policy 2), and disks \
             serve requests in order of arrival: f is {:.2} times the critical {:.2}. It begins when more \
             than {} blocks are pending at a disk{}.",
            race.margin,
            race.critical_ratio,
            race.threshold_blocks,
            proviso(*jobs, *disks)
        ),
        Some(race) => format!(
            "No race: f is {:.2} times the critical {:.2}, and a race needs a larger f.",
            race.margin, race.critical_ratio
        ),
    });
    let PlacementAdvice { advised, analysed, best, .. } = advice;
    let by_themselves = match advice.is_usual_order() {
        true => ", the default of agents",
        false => "",
    };
    lines.push(format!(
        "Place runs by {}; set the order at the disks to `{}`{by_themselves}.",
        policy_name(advised),
        advised.scheduling
    ));
    let longer = 100.0 * advice.longer_than_best;
    lines.push(if advice.is_confirmed {
        let takes = simulated(advised);
        format!("In simulation this takes {takes}, {longer:.1} % more than the best alternative.")
    } else {
        format!(
            "In simulation this takes {}, the shortest time of all alternatives. The analysis alone \
             recommends policy {} with `{}`, which takes {}, {longer:.1} % more.",
            simulated(best),
            analysed.policy,
            analysed.scheduling,
            simulated(analysed)
        )
    });
    if let Some(one) = advice.if_jobs_read_elsewhere().filter(|_| advice.can_race()) {
        lines.push(format!(
            "If no job can read from the disk it writes to (policy 2), use `--scheduling {}`; in simulation, \
             {}.",
            one.scheduling,
            simulated(one)
        ));
    }
    lines
}

fn csv(advice: &PlacementAdvice) -> Vec<String> {
    let head = "policy,scheduling,jobs,disks,seconds,seconds_half_width,first_seconds,pending_blocks_most,is_advised";
    let rows = advice.alternatives.iter().map(|one| {
        let Alternative { policy, scheduling, seconds, first_seconds, pending_blocks_most, .. } = one;
        let half_width = one.seconds_half_width.map_or_else(String::new, |half| format!("{half:.6}"));
        let (jobs, disks, is_advised) = (advice.jobs, advice.disks, *one == advice.advised);
        format!(
            "{policy},{scheduling},{jobs},{disks},{seconds:.6},{half_width},{first_seconds:.6},{pending_blocks_most},\
             {is_advised}"
        )
    });
    std::iter::once(head.to_owned()).chain(rows).collect()
}
