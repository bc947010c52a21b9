//! Metrics of a mount.

use std::time::Duration;

use ::mount::MountCounter;
use command_line::failure::Result;
use metrics::process::ProcessStart;
use metrics::{MetricsServer, Samples, mount};

use crate::serving::metrics_server;

/// Maximum time to wait for the counts of a mount. Counting needs no answer of an agent.
const PATIENCE: Duration = Duration::from_secs(5);

/// Remedy for an invalid address of the metrics.
const WRITE: &str = "Write PORT, HOST:PORT or :PORT, as in 127.0.0.1:9118.";

/// Remedy for an address of the metrics that cannot be used.
const GIVE_ANOTHER: &str = "Choose another port. Each mount on a computer needs a separate port.";

/// Opens a metrics server at `address`, if there is one.
pub(crate) fn open(address: Option<&str>) -> Result<Option<MetricsServer>> {
    metrics_server::open(address, None, WRITE, GIVE_ANOTHER)
}

/// Serves the metrics of a mount until the process ends.
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
