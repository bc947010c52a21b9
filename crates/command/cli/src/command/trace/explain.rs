//! `starfish trace explain`: the bottleneck of a recorded run.

use account::explain::Account;
use account::recorded_run::RecordedRun;
use clap::{Args, ValueEnum};
use command_line::failure::{Failure, Result};
use transfer::local;

use super::input::TracesArgs;
use super::shown;
use crate::output::row_format::print_json;

/// Print the bottleneck of a recorded run: disks, links, processors, or waiting.
///
/// The trace must be one of Starfish nodes, simulated or real: of agents and clients, or of `starfish simulate
/// --trace`. The time is from the first to the last event of the clients. For a simulated run, `starfish simulate
/// --explain` prints the same, with more information about queues. In a real run, a disk is busy while the file system
/// uses it, a link while it sends or receives a message with data, and a processor while it works for the node's
/// thread.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    traces: TracesArgs,

    /// Output format.
    #[arg(long, value_enum, default_value_t = AccountFormat::Text)]
    format: AccountFormat,
}

/// Format of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AccountFormat {
    /// Lines of text.
    Text,
    /// A JSON object. Times are in seconds.
    Json,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let timeline = arguments.traces.read()?;
    let run = RecordedRun::of(&timeline).ok_or_else(|| {
        let failure = Failure::new("the trace", "it contains no Starfish nodes");
        failure.remedy("`starfish trace summary` shows the contents of any trace.")
    })?;
    let account = Account::recorded(&run);
    match arguments.format {
        AccountFormat::Text => {
            local::print(account.lines().iter().map(|line| shown::text(line.trim_start())))
        }
        AccountFormat::Json => print_json(&account),
    }
}
