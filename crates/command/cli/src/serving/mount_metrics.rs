//! The numbers of a mount, for whoever watches it.

use std::time::Duration;

use ::mount::MountCounter;
use command_line::failure::Result;
use metrics::process::ProcessStart;
use metrics::{MetricsServer, Samples, mount};

use crate::serving::metrics_server;

/// How long a mount may take for its numbers: it looks nothing up.
const PATIENCE: Duration = Duration::from_secs(5);

/// What to do if the address is none.
const WRITE: &str = "Write PORT, HOST:PORT or :PORT, as in 127.0.0.1:9118.";

/// What to do if it cannot be had.
const GIVE_ANOTHER: &str = "Give another port. Each mount of a computer needs one of its own.";

/// A server at the address that was named, if one was.
pub(crate) fn open(address: Option<&str>) -> Result<Option<MetricsServer>> {
    metrics_server::open(address, None, WRITE, GIVE_ANOTHER)
}

/// Serves the numbers of a mount until the process ends.
pub(crate) fn serve(server: MetricsServer, counter: MountCounter) -> Result<()> {
    let start = ProcessStart::now();
    let look = move || {
        let counts = counter.counts(PATIENCE)?;
        let mut samples = Samples::default();
        start.add_to(&mut samples);
        mount::add_to(&mut samples, &counts);
        Some(samples)
    };
    metrics_server::serve(server, look)
}
