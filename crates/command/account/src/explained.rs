//! Records a command on agents while it runs, and explains its limiting factor.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use command_line::failure::{Failure, Result};
use command_line::say;
use interruption::UndoGuard;
use tempfile::NamedTempFile;
use trace::{Alignment, Limits, TraceReader};
use transfer::cluster::Cluster;
use transfer::local;
use transfer::recordings;

use crate::explain::Account;
use crate::recorded_run::RecordedRun;

/// Runs `work` on these agents. If `is_wanted`, all nodes record their work during it, and an account of the limiting
/// factor is printed on standard error. The records are also appended to the trace of `cluster`, if it has one.
///
/// `work` receives the agents, with the trace file for the nodes that it starts.
pub fn explained<T>(
    is_wanted: bool,
    cluster: &Cluster,
    work: impl FnOnce(&Cluster) -> Result<T>,
) -> Result<T> {
    if !is_wanted {
        return work(cluster);
    }
    let kept = cluster.trace.as_deref().map(Kept::AddedTo);
    recorded_with(cluster, kept, |file| work(&cluster.with_trace(Some(file))))
}

/// Destination of the records of a run.
#[derive(Clone, Copy)]
pub enum Kept<'a> {
    /// Appended to this trace file, as with option `--trace` of all commands on agents.
    AddedTo(&'a Path),
    /// Replaces this file, as with option `--output` of all commands.
    As(&'a Path),
}

impl Kept<'_> {
    fn keep(self, recorded: &[u8]) -> Result<()> {
        match self {
            Kept::AddedTo(trace) => recording::append(trace, recorded)
                .map_err(|error| Failure::new(trace.display().to_string(), error)),
            Kept::As(file) => local::write(file, |output| output.write_all(recorded)),
        }
    }
}

/// Records the agents during `work`. The nodes of `work` append to the trace file whose path `work` receives. Prints
/// the limiting factor on standard error, and saves the records to `kept`.
pub fn recorded_with<T>(
    cluster: &Cluster,
    kept: Option<Kept<'_>>,
    work: impl FnOnce(&Path) -> Result<T>,
) -> Result<T> {
    let file = tempfile::Builder::new().prefix("starfish-").suffix(".tlv").tempfile().map_err(failed)?;
    // The nodes that control the recording must not be part of the trace.
    let untraced = cluster.with_trace(None);
    let recording = begin(&untraced)?;
    let done = work(file.path());
    recording.keep();
    let stopped = recordings::stop(&untraced);
    let (done, (recorded, _)) = (done?, stopped?);
    recordings::write(&recorded, &mut File::options().append(true).open(file.path()).map_err(failed)?)
        .map_err(failed)?;
    for line in account(&file)? {
        say!("{line}");
    }
    if let Some(kept) = kept {
        kept.keep(&std::fs::read(file.path()).map_err(failed)?)?;
    }
    Ok(done)
}

/// Starts recording on the agents. An interruption of this program ends the recording.
fn begin(cluster: &Cluster) -> Result<UndoGuard> {
    recordings::check_that_none_goes_on(cluster)?;
    let again = cluster.clone();
    // Discard the records and any error, because the program is ending.
    let end = move || drop(recordings::stop(&again));
    let left = Failure::new("cannot record this run", "there was no time to end it on the agents");
    let recording = UndoGuard::begin(left.to_string(), end);
    match recordings::start(cluster, false) {
        Ok(_) => Ok(recording),
        Err(failure) => {
            recording.keep();
            Err(failure)
        }
    }
}

fn failed(error: io::Error) -> Failure {
    Failure::new("cannot record this run", error)
}

fn account(file: &NamedTempFile) -> Result<Vec<String>> {
    let mut reader = TraceReader::new(Limits::default());
    let opened = File::open(file.path()).map_err(failed)?;
    reader
        .read("this run", BufReader::new(opened))
        .map_err(|error| Failure::new("this run's trace", error))?;
    let run = RecordedRun::of(&reader.finish(Alignment::WallClock));
    let run = run.ok_or_else(|| Failure::new("cannot explain this run", "no events were recorded"))?;
    if run.compute_nodes > 0 {
        return Ok(Account::recorded(&run).lines());
    }
    let mut lines = NO_CLIENT.map(str::to_owned).to_vec();
    // If the disks were idle, no client waited for the agents, so their account would be empty.
    if run.used_disks() {
        lines.push("  Activity of the agents during the run:".to_owned());
        lines.extend(Account::recorded(&run).lines());
    }
    Ok(lines)
}

/// Explanation for a run in which no client was recorded.
const NO_CLIENT: [&str; 2] = [
    "  The program was not recorded: it used no agents.",
    "  Programs use agents if they access striped files (pfs:NAME), with libpdiol, in Python or by MPI. They \
     find the agents by STARFISH_AGENTS or ~/.config/starfish/config.toml. For a program on a mount, only \
     the agents' work is recorded.",
];
