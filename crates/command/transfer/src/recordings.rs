//! What agents do, recorded on demand.

use std::io::{self, Write};

use command_line::failure::{Failure, Result};
use fs::NodeRecording;
use node::ErrorKind;
use trace::{FileWriter, ProcessId, ProcessInfo, ProcessNumber};

use crate::cluster::Cluster;

const REMEDY: &str = "An agent that was started with --trace FILE or STARFISH_TRACE adds to that file when it ends; \
                      start it without to record on demand.";

/// What to do if somebody else wants what agents record.
const ALREADY: &str = "`starfish trace stop -o FILE` ends what `starfish trace start` has begun, and keeps it; \
                       `starfish trace explain FILE` says what limited what was done meanwhile.";

/// An agent's recording, and what the user calls it.
pub type Recorded = (String, NodeRecording);

/// Has those of the agents that answer record from now on; says which do. If `all` is set, all have to.
pub fn start(cluster: &Cluster, all: bool) -> Result<Vec<String>> {
    cluster.run_with_present(move |connection| async move {
        if all {
            connection.absence()?;
        }
        let started = connection.explained("recording", connection.client.start_recording().await);
        started.map_err(|error| match error.kind() {
            ErrorKind::Invalid => Failure::from(error).remedy(REMEDY),
            _ => error.into(),
        })?;
        Ok(connection.present().map(str::to_owned).collect())
    })
}

/// Fails if agents record what they do already, because somebody has asked them to.
pub fn check_that_none_goes_on(cluster: &Cluster) -> Result<()> {
    cluster.run_with_present(|connection| async move {
        if connection.client.is_recording().await {
            let failure = Failure::new("recording this run", "agents record already, for somebody else");
            return Err(failure.remedy(ALREADY));
        }
        Ok(())
    })
}

/// Ends the recordings. What can be had of them, and why that is not all, if it is not.
pub fn stop(cluster: &Cluster) -> Result<(Vec<Recorded>, Option<node::Error>)> {
    cluster.run_with_present(|connection| async move {
        let (mut recorded, mut failure) = (Vec::new(), connection.absence().err());
        for (node, outcome) in connection.client.stop_recording().await {
            match connection.explained("ending the recording", outcome) {
                Ok(recording) => recorded.push((connection.name(node).to_owned(), recording)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Ok((recorded, failure))
    })
}

/// Writes one section after the other.
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
