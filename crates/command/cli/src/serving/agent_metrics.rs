//! Metrics of an agent. An HTTP server on separate threads answers requests, so that the agent's thread never waits.
//!
//! ```text
//!   thread of the server  --- request with a channel for the answer>  task of the node
//!                         <--------------- IoNodeCounts ---------------
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use command_line::failure::Result;
use machine::Machine;
use metrics::process::ProcessStart;
use metrics::{METRICS_VARIABLE, MetricsServer, Samples, agent};
use node::AgentService;
use real::RealMachine;

use crate::serving::metrics_server;

/// Maximum time to wait for the agent's counts. The agent needs a second if a disk does not respond.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of waiting requests for counts: the number of the server's threads.
const WAITING_MAX: usize = 16;

/// Remedy for an invalid address of the metrics.
const WRITE: &str =
    "Write PORT, HOST:PORT or :PORT, as in 127.0.0.1:9117, or +N for the port of --listen plus N.";

/// Opens a metrics server at `address`, if there is one. `listen` is the address at which the agent listens.
pub(crate) fn open(address: Option<&str>, listen: Option<SocketAddr>) -> Result<Option<MetricsServer>> {
    let own_port = listen.map(|at| at.port());
    let give_another = format!(
        "Choose another port with --metrics or {METRICS_VARIABLE}. Each agent on a computer needs a separate \
         port: +2000 is its listening port plus 2000."
    );
    metrics_server::open(address, own_port, WRITE, &give_another)
}

/// Serves the metrics of an agent with disks in these directories, until the process ends.
pub(crate) fn serve(
    server: MetricsServer,
    machine: &RealMachine,
    service: AgentService,
    directories: Vec<String>,
) -> Result<()> {
    let (ask, asked) = flume::bounded::<flume::Sender<_>>(WAITING_MAX);
    machine.spawn("numbers for Prometheus", async move {
        while let Ok(answer) = asked.recv_async().await {
            // If the server's thread has stopped waiting, the answer is dropped.
            let _ = answer.try_send(service.counts().await);
        }
        Ok(())
    });
    let start = ProcessStart::now();
    let look = move || {
        let (answer, answered) = flume::bounded(1);
        ask.try_send(answer).ok()?;
        let counts = answered.recv_timeout(PATIENCE).ok()?;
        let mut samples = Samples::default();
        start.add_to(&mut samples);
        agent::add_to(&mut samples, &counts, &directories);
        Some(samples)
    };
    metrics_server::serve(server, look)
}
