//! `starfish trace`: records traces of agents, analyses traces, and exchanges them with other tools.
//!
//! - `trace/input.rs`: reads traces and reports gaps and irregularities in them
//! - `trace/shown.rs`: formats texts and times of a trace
//! - traces of agents, one file for each action: `trace/start.rs`, `trace/stop.rs`, `trace/record.rs`
//! - analyses: `trace/summary.rs`, `trace/overlap.rs`, `trace/diff.rs`, `trace/explain.rs`
//! - other tools: `trace/export.rs`, `trace/import.rs`

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

/// Record traces of agents, analyse traces (totals, overlaps, differences), and export or import traces.
///
/// A trace, NAME.tlv, records the states of threads over time. The threads are those of programs, agents or simulated
/// nodes. All commands that read traces also accept Perfetto's traces and traces in Chrome's JSON format.
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
