//! Golden workload: 16 clients and 16 servers, with an exact result computed independently.
//!
//! Each client computes, sends a request to the servers in turn, and waits for the reply. A server serves requests in
//! order of arrival, 3 ms each; every message takes 2 ms. One unit of the original is 1 ms here, so that its six
//! decimals are whole nanoseconds. Each request takes four timed events: end of the computing, arrival of the request,
//! end of the service, arrival of the reply.

use std::cell::Cell;
use std::rc::Rc;

use description::{Description, MachineDescription};
use machine::{Delivery, Duration, Machine, Message, Net, NodeId, Result};
use sim::{Settings, Simulation};

const PARTNERS: u64 = 16;
const SERVICE: Duration = Duration::from_millis(3);

/// Result of the workload.
pub(crate) struct Outcome {
    /// Arrival time of the last reply, in nanoseconds.
    pub(crate) end: u64,
    /// Sum of all times from sending a request to its reply, in nanoseconds.
    pub(crate) response_sum: u64,
    /// Number of timed events.
    pub(crate) events: u64,
    /// Digest of the run.
    pub(crate) digest: u64,
}

/// Computing times of client `client`, in nanoseconds: always 1 ms if they are not `varied`.
struct ComputeTimes {
    state: u64,
    varied: bool,
}

impl ComputeTimes {
    fn new(client: u64, varied: bool) -> Self {
        ComputeTimes { state: client * 2_654_435_761 + 1, varied }
    }

    fn next(&mut self) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1_000_000 + if self.varied { (self.state >> 33) % 1_000_000 } else { 0 }
    }
}

async fn client<M: Machine>(
    machine: M,
    requests: u64,
    varied: bool,
    response_sum: Rc<Cell<u64>>,
) -> Result<()> {
    let mut times = ComputeTimes::new(machine.node().0, varied);
    for request in 0..requests {
        machine.sleep_until(machine.now() + Duration::from_nanos(times.next())).await;
        let server = NodeId(PARTNERS + (machine.node().0 + request) % PARTNERS);
        let sent = machine.now();
        machine.net().send(server, Message::default()).await?;
        machine.net().receive().await?;
        response_sum.set(response_sum.get() + machine.now().since(sent).as_nanos());
    }
    Ok(())
}

async fn server<M: Machine>(machine: M) -> Result<()> {
    loop {
        let (client, Delivery::Message(_)) = machine.net().receive().await? else { continue };
        machine.sleep_until(machine.now() + SERVICE).await;
        machine.net().send(client, Message::default()).await?;
    }
}

/// Runs the workload with `requests` requests of each client.
pub(crate) fn run(requests: u64, varied: bool) -> Outcome {
    let description = MachineDescription::load("golden").expect("built in");
    let simulation = Simulation::new(&description, Settings::default());
    let response_sum = Rc::new(Cell::new(0));
    for node in simulation.io_nodes() {
        node.spawn("server", server(node.clone()));
    }
    for node in simulation.compute_nodes() {
        node.spawn("client", client(node.clone(), requests, varied, response_sum.clone()));
    }
    simulation.run_until_idle().expect("nothing fails");
    Outcome {
        end: simulation.now().as_nanos(),
        response_sum: response_sum.get(),
        events: simulation.events(),
        digest: simulation.digest(),
    }
}
