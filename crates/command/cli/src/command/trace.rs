//! `starfish trace`: traces of agents on demand, what traces say, and traces of other tools.
//!
//! - `trace/input.rs`: reading traces, and saying what is to be known of them
//! - `trace/shown.rs`: texts and times of a trace for people
//! - of traces that agents make, one file for each action: `trace/start.rs`, `trace/stop.rs`, `trace/record.rs`
//! - of what traces say: `trace/summary.rs`, `trace/overlap.rs`, `trace/diff.rs`, `trace/explain.rs`
//! - of other tools: `trace/export.rs`, `trace/import.rs`

mod diff;
mod explain;
mod export;
mod import;
mod input;
mod overlap;
mod record;
pub(super) mod shown;
mod start;
mod stop;
mod summary;

use clap::{Args, Subcommand};
use command_line::failure::Result;

/// Record what agents do; analyse traces: totals, overlaps, differences; export and import them.
///
/// A trace, NAME.tlv, tells what threads of programs, agents or simulated nodes did, and when. Wherever one is read, a
/// trace of Perfetto or in Chrome's JSON will do as well.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  starfish trace start
  starfish trace stop -o agents.tlv
  starfish trace record pfsgrep -c day pfs:log.txt
  starfish trace summary psrs.tlv
  starfish trace summary node1.tlv node2.tlv --by state --format csv
  starfish trace overlap psrs.tlv read compute
  starfish trace diff before.tlv after.tlv
  starfish trace explain client.tlv agents.tlv
  starfish trace export psrs.tlv --to perfetto -o psrs.pftrace
  starfish trace import profile.json -o profile.tlv";

#[derive(Subcommand)]
enum Action {
    Start(start::Arguments),
    Stop(stop::Arguments),
    Record(record::Arguments),
    Summary(summary::Arguments),
    Overlap(overlap::Arguments),
    Diff(diff::Arguments),
    Explain(explain::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    match arguments.action {
        Action::Start(arguments) => start::run(&arguments),
        Action::Stop(arguments) => stop::run(&arguments),
        Action::Record(arguments) => record::run(&arguments),
        Action::Summary(arguments) => summary::run(&arguments),
        Action::Overlap(arguments) => overlap::run(&arguments),
        Action::Diff(arguments) => diff::run(&arguments),
        Action::Explain(arguments) => explain::run(&arguments),
        Action::Export(arguments) => export::run(&arguments),
        Action::Import(arguments) => import::run(&arguments),
    }
}
