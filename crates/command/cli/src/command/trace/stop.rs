//! `starfish trace stop`: ends the recordings of agents, and writes them as one trace.

use std::path::PathBuf;

use clap::Args;
use command_line::failure::{Failure, Result};
use node::{ErrorKind, Size};
use transfer::local;
use transfer::recordings::{self, Recorded};

use super::shown;
use crate::options::agents::AgentsArgs;

/// Stop the recording of `starfish trace start`, and write the recordings of all agents as one trace.
///
/// Each agent is a process of the trace, named by its address. When the recording ends, messages compare the agents'
/// clocks with the clock of this computer. The command prints the offset and the uncertainty; programs that read the
/// trace correct for them. If an agent does not answer or has recorded nothing, the command writes all other
/// recordings, and fails.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    agents: AgentsArgs,

    /// Output trace. An existing file is replaced.
    #[arg(short, long, value_name = "FILE.tlv")]
    output: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  starfish trace stop -o agents.tlv
  starfish trace stop -o agents.tlv --agents node1:7117,node2:7117";

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    // Check this first. A recording that was ended and cannot be written would be lost.
    local::check_writable(&arguments.output)?;
    let cluster = arguments.agents.cluster()?;
    let (recorded, failure) = recordings::stop(&cluster)?;
    if !recorded.is_empty() {
        local::write(&arguments.output, |file| recordings::write(&recorded, file))?;
        local::print(recorded.iter().map(line))?;
    }
    failure.map_or(Ok(()), |error| match error.kind() {
        ErrorKind::Invalid => Err(Failure::from(error).remedy("`starfish trace start` begins it.")),
        _ => Err(error.into()),
    })
}

fn line((name, recording): &Recorded) -> String {
    let (bytes, clock) = (Size(recording.section.len() as u64).rounded(), recording.clock);
    let sign = if clock.offset_ns < 0 { "-" } else { "+" };
    let (offset, uncertainty) =
        (shown::time(clock.offset_ns.unsigned_abs()), shown::time(clock.uncertainty_ns));
    format!("{name}: {bytes}, clock {sign}{offset} within {uncertainty}")
}
