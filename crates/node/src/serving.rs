//! An I/O node of the real machine: what every agent runs, the program's and those of tests.

use fs::IoNodeSettings;
use real::RealMachine;

/// Serves until the node's network is closed; all that was accepted is on its disks then.
///
/// It is [`fs::serve`] for this machine, of which much code is made: here once, not in each program and test.
///
/// # Errors
/// If the node cannot go on.
pub async fn serve(machine: RealMachine, settings: IoNodeSettings) -> machine::Result<()> {
    fs::serve(machine, settings).await
}
