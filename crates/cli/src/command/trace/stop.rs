//! `starfish trace stop`: what agents have recorded, in one trace.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use command_line::failure::{Failure, Result};
use fs::NodeRecording;
use node::{ErrorKind, Size};
use trace::{FileWriter, ProcessId, ProcessInfo, ProcessNumber};

use super::shown;
use crate::local;
use crate::store::agents::AgentsArgs;
use crate::this_node;

/// End what `starfish trace start` has begun, and write what agents have recorded as one trace.
///
/// Each agent is a process of the trace, called by its address. Their clocks are compared with the one of this computer
/// when the recording ends, by messages; offset and uncertainty are shown, and those who read the trace heed them. What
/// can be had is written even if some agents do not answer or have recorded nothing, which is a failure.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    agents: AgentsArgs,

    /// The trace to write. A file that is there is replaced.
    #[arg(short, long, value_name = "FILE.tlv")]
    output: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  starfish trace stop -o agents.tlv
  starfish trace stop -o agents.tlv --agents node1:7117,node2:7117";

const WHAT: &str = "ending the recording";

/// An agent's recording, and what the user calls it.
type Recorded = (String, NodeRecording);

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    // Once it has ended, it would be lost.
    local::check_writable(&arguments.output)?;
    let agents = arguments.agents.find()?;
    let (recorded, failure) = this_node::run_with_present(agents, |connection| async move {
        let (mut recorded, mut failure) = (Vec::new(), connection.absence().err());
        for (node, outcome) in connection.client.stop_recording().await {
            match connection.told(WHAT, outcome) {
                Ok(recording) => recorded.push((connection.name(node).to_owned(), recording)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Ok((recorded, failure))
    })?;
    if !recorded.is_empty() {
        local::write(&arguments.output, |file| write(&recorded, file))?;
        local::print(recorded.iter().map(line))?;
    }
    failure.map_or(Ok(()), |error| match error.kind() {
        ErrorKind::Invalid => Err(Failure::from(error).remedy("`starfish trace start` begins it.")),
        _ => Err(error.into()),
    })
}

/// Writes one section after the other.
fn write(recorded: &[Recorded], file: &mut impl Write) -> io::Result<()> {
    for (number, (name, recording)) in (0..).zip(recorded) {
        file.write_all(&recording.section)?;
        let info = ProcessInfo {
            host: name.clone(),
            number: ProcessNumber::Node(number),
            program: "agent".to_owned(),
            command_line: String::new(),
            zero_unix_ns: Some(recording.zero_unix_ns),
        };
        let mut writer = FileWriter::resume(&mut *file);
        writer.process(ProcessId(0), &info)?;
        writer.clock_offset(ProcessId(0), recording.clock)?;
    }
    Ok(())
}

fn line((name, recording): &Recorded) -> String {
    let (bytes, clock) = (Size(recording.section.len() as u64).rounded(), recording.clock);
    let sign = if clock.offset_ns < 0 { "-" } else { "+" };
    let (offset, uncertainty) =
        (shown::time(clock.offset_ns.unsigned_abs()), shown::time(clock.uncertainty_ns));
    format!("{name}: {bytes}, clock {sign}{offset} within {uncertainty}")
}
