//! Starts and stops recording on agents, and writes their recordings.

use std::io::{self, Write};

use command_line::failure::{Failure, Result};
use fs::NodeRecording;
use node::ErrorKind;
use trace::{FileWriter, ProcessId, ProcessInfo, ProcessNumber};

use crate::cluster::Cluster;

const REMEDY: &str = "Agents that were started with --trace FILE or STARFISH_TRACE record into that file. \
                      Restart them without it to record on demand.";

/// Remedy if the agents are recording for another command.
const ALREADY: &str = "`starfish trace stop -o FILE` ends the recording of `starfish trace start` and writes \
                       it; `starfish trace explain FILE` shows what limited the recorded work.";

/// Name of an agent, and its recording.
pub type Recorded = (String, NodeRecording);

/// Starts recording on all agents that answer. Returns their names. If `all` is set, fails if an agent does not answer.
pub fn start(cluster: &Cluster, all: bool) -> Result<Vec<String>> {
    cluster.run_with_present(move |connection| async move {
        if all {
            connection.absence()?;
        }
        let started =
            connection.explained("cannot start recording", connection.client.start_recording().await);
        started.map_err(|error| match error.kind() {
            ErrorKind::Invalid => Failure::from(error).remedy(REMEDY),
            _ => error.into(),
        })?;
        Ok(connection.present().map(str::to_owned).collect())
    })
}

/// Fails if agents are already recording for another command.
pub fn check_that_none_goes_on(cluster: &Cluster) -> Result<()> {
    cluster.run_with_present(|connection| async move {
        if connection.client.is_recording().await {
            let failure = Failure::new(
                "cannot record this run",
                "the agents are already recording for another command",
            );
            return Err(failure.remedy(ALREADY));
        }
        Ok(())
    })
}

/// Stops the recordings. Returns the available recordings, and an error if some are missing.
pub fn stop(cluster: &Cluster) -> Result<(Vec<Recorded>, Option<node::Error>)> {
    cluster.run_with_present(|connection| async move {
        let (mut recorded, mut failure) = (Vec::new(), connection.absence().err());
        for (node, outcome) in connection.client.stop_recording().await {
            match connection.explained("cannot end the recording", outcome) {
                Ok(recording) => recorded.push((connection.name(node).to_owned(), recording)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Ok((recorded, failure))
    })
}

/// Writes the recordings as consecutive sections.
pub fn write(recorded: &[Recorded], file: &mut impl Write) -> io::Result<()> {
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
