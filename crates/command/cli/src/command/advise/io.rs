//! `starfish advise io`: predicts the gain of a recorded program from other methods and settings.

use clap::Args;
use command_line::failure::{Failure, Result};
use command_line::{TextTable, counted};
use experiment::{DiskLayout, Think};
use node::Size;

use crate::options::experiment::{ProgressArgs, SeedArgs, SetArgs};
use crate::options::request_log::InputArgs;
use crate::output::row_format::RowFormat;
use command_line::durations::shown;
use studies::advice::io::{IoAdvice, IoAlternative, LEAST_GAIN, RecordedProgram};
use studies::described::load_machine;

/// Predict the gain of a recorded program from other methods, stripe units, numbers of I/O nodes and disk schedules,
/// and show the hint or setting for each.
///
/// The log was recorded by STARFISH_MPI_RECORD (FILE.0, FILE.1 and so on), with collective calls and the striping of
/// files. In any other request log, all requests count as independent. The command simulates the given machine in the
/// configuration of agents: first the recorded run, then each change alone, then a combination of the changes with the
/// largest gains. Gains are relative to the time until all data are on the disks, with 95 % confidence intervals. A
/// change is not advised if its gain is less than 1 %, or not certain.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct IoArguments {
    #[command(flatten)]
    input: InputArgs,

    /// Machine to simulate: a name that `starfish machines` lists, or a TOML file. It needs a compute node for each
    /// node of the log.
    #[arg(long, value_name = "NAME")]
    machine: String,

    #[command(flatten)]
    set: SetArgs,

    /// Layout of the files on each simulated disk: contiguous or random [default: contiguous].
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<DiskLayout>,

    /// Keep the pauses between the requests of a node as in the log.
    #[arg(long)]
    think: bool,

    /// Number of trials of each alternative, which differ in their random numbers.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=1000))]
    trials: u64,

    #[command(flatten)]
    seed: SeedArgs,

    /// Output format: a row for each alternative. With CSV, the reasons are printed on standard error. JSON is one
    /// object.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    #[command(flatten)]
    progress: ProgressArgs,
}

const EXAMPLES: &str = "\
Examples:
  STARFISH_MPI_RECORD=run starfish mpi-run -n 4 ./simulation starfish:out && starfish advise io run.? --machine cluster-switch
  starfish advise io job.log --machine loopback --set nodes.io=8 --format csv";

/// Runs the command.
pub(super) fn run(arguments: &IoArguments) -> Result<()> {
    load_machine(&arguments.machine, &arguments.set.set)?;
    let log = arguments.input.read()?;
    if log.totals().requests() == 0 {
        return Err(Failure::new(arguments.input.name(), "it contains no read or write requests"));
    }
    let mut program = RecordedProgram::new(log, &arguments.machine, &arguments.set.set)?;
    program.think = if arguments.think { Think::Gaps } else { Think::None };
    program.layout = arguments.layout.unwrap_or(DiskLayout::Contiguous);
    (program.seed, program.trials) = (arguments.seed.seed, arguments.trials);
    let advice = IoAdvice::about(&program, arguments.progress.show)?;
    let report_text = |advice: &IoAdvice| report_lines(&arguments.input.name(), advice);
    arguments.format.print_report(&advice, report_text, csv, reasons)
}

fn report_lines(name: &str, advice: &IoAdvice) -> Vec<String> {
    let IoAdvice { machine, nodes, requests, bytes, trials, .. } = advice;
    let of = format!(
        "{name}, on {machine}: {}, {}, {}",
        counted(*nodes, "node"),
        counted(*requests, "request"),
        Size(*bytes).rounded()
    );
    let mut lines = vec![format!("{of}; {} of each alternative", counted(*trials, "trial"))];
    lines.extend(reasons(advice));
    let mut table = TextTable::new(3);
    table.row(["change", "to", "by", "time", "+-", "gain", "+-"]);
    for one in &advice.alternatives {
        let percent = |part: f64| format!("{} %", in_percent(part));
        let gains = match one.is_recorded {
            true => ["-".to_owned(), "-".to_owned()],
            false => [percent(one.gain), percent(one.gain_half_width)],
        };
        let times = [one.seconds, one.seconds_half_width].map(shown);
        let words = [one.change.to_owned(), to(one), one.by.clone()];
        table.row(words.into_iter().chain(times).chain(gains));
    }
    lines.extend([String::new()].into_iter().chain(table.lines()));
    lines
}

/// Formats the setting to which an alternative changes.
fn to(one: &IoAlternative) -> String {
    let unit = Size(one.stripe_unit_bytes).rounded();
    match one.change {
        "method" => one.method.clone(),
        "stripe unit" => unit,
        "I/O nodes" => one.io_nodes.to_string(),
        "order at disks" => one.scheduling.clone(),
        _ => {
            format!("{}, {unit}, {}, {}", one.method, counted(one.io_nodes, "I/O node"), one.scheduling)
        }
    }
}

/// Returns lines with the recommendation, and with the accuracy of the simulation of the recorded run.
fn reasons(advice: &IoAdvice) -> Vec<String> {
    let calls = if advice.with_think_time { "its calls and the time between them" } else { "its calls" };
    let simulated = shown(advice.simulated_s);
    let mut lines = vec![match advice.recorded_s.zip(advice.longer_than_recorded()) {
        Some((recorded, longer)) => format!(
            "As recorded {calls} took {}; simulated they take {simulated}, {:+.1} %.",
            shown(recorded),
            100.0 * longer
        ),
        None => format!("Simulated, {calls} take {simulated} as recorded."),
    }];
    if advice.is_of_other_machine() {
        let machine = &advice.machine;
        lines.push(format!(
            "So {machine} is not the machine of the recording, and gains on one say little about gains on \
             the other. Describe yours with --machine FILE and --set."
        ));
    }
    lines.push(match advice.advised.map(|index| &advice.alternatives[index]) {
        Some(one) => {
            format!(
                "The largest gain is {} % of the time, by {}.",
                between(one.gain, one.gain_half_width),
                one.by
            )
        }
        None => format!(
            "Without more I/O nodes, no change is certain to gain {:.0} % of the time or more.",
            100.0 * LEAST_GAIN
        ),
    });
    if let Some(one) = advice.best_of_more_nodes() {
        let gain = between(one.gain, one.gain_half_width);
        lines.push(format!("{} would gain {gain} % of the time.", counted(one.io_nodes, "I/O node")));
    }
    if advice.is_written_behind() {
        let seen = "other processes see written data only after MPI_File_sync or MPI_File_close";
        lines.push(format!("With that method {seen}."));
    }
    lines
}

/// Formats a share in percent, without a negative zero.
fn in_percent(part: f64) -> String {
    format!("{:.1}", (1000.0 * part).round() / 10.0 + 0.0)
}

/// Formats an interval of shares in percent.
fn between(part: f64, half_width: f64) -> String {
    let (least, most) = (in_percent(part - half_width), in_percent(part + half_width));
    if least == most { least } else { format!("{least} to {most}") }
}

fn csv(advice: &IoAdvice) -> Vec<String> {
    let head = "change,method,stripe_unit_bytes,io_nodes,scheduling,by,seconds,seconds_half_width,gain,\
                gain_half_width,is_recorded,is_there,is_advised";
    let rows = advice.alternatives.iter().enumerate().map(|(index, one)| {
        let IoAlternative { change, method, stripe_unit_bytes, io_nodes, scheduling, by, .. } = one;
        let IoAlternative { seconds, seconds_half_width, gain, gain_half_width, is_recorded, is_there, .. } = one;
        let (by, is_advised) = (by.replace(", ", "; "), advice.advised == Some(index));
        format!(
            "{change},{method},{stripe_unit_bytes},{io_nodes},{scheduling},{by},{seconds:.6},{seconds_half_width:.6},\
             {gain:.6},{gain_half_width:.6},{is_recorded},{is_there},{is_advised}"
        )
    });
    std::iter::once(head.to_owned()).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_single_number_if_its_rounded_ends_are_equal() {
        assert_eq!([0.844, -0.000_1, -0.0, -1.5].map(in_percent), ["84.4", "0.0", "0.0", "-150.0"]);
        assert_eq!((between(0.844, 0.000_1), between(0.5, 0.01)), ("84.4".into(), "49.0 to 51.0".into()));
    }
}
