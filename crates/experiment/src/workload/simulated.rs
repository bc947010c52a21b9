//! A workload on a simulated machine: what the same clients would see of the agents of another one.

use std::cell::RefCell;
use std::rc::Rc;

use description::MachineDescription;
use fs::{Client, ClientSettings, FileId, IoNodeSettings};
use machine::{Machine, NodeId, TaskGroup};
use sim::{Settings, Simulation};

use super::{Outcome, Workload};
use crate::{Contents, Error, check_disks};

/// A workload, and the machine that is to do it.
#[derive(Clone, Debug)]
pub struct SimulatedWorkload {
    /// The machine, with a compute node for each client.
    pub machine: MachineDescription,
    /// How its I/O nodes serve.
    pub io_node: IoNodeSettings,
    /// How its clients work.
    pub client: ClientSettings,
    /// Bytes of a block of the file.
    pub block_bytes: u64,
    /// What the clients do.
    pub workload: Workload,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedOutcome {
    /// The same that is measured on a real machine.
    pub outcome: Outcome,
    /// A mix of all events: equal for equal runs.
    pub digest: u64,
}

const NAME: &str = "workload";
const FILE: FileId = FileId(1);

impl SimulatedWorkload {
    /// Refuses what makes no sense before anything runs.
    pub fn check(&self) -> Result<(), Error> {
        self.workload.check()?;
        let (clients, nodes) = (self.workload.clients, self.machine.nodes.compute.value);
        if clients != nodes {
            return Err(Error::Invalid(format!("{clients} clients on a machine with {nodes} compute nodes")));
        }
        check_disks(&self.machine, self.block_bytes, self.workload.file_bytes)
    }

    /// Runs it. The file is laid out as on a real machine, so that the same of it is in the caches of the I/O nodes.
    pub fn run(&self) -> Result<SimulatedOutcome, Error> {
        self.check()?;
        let settings =
            Settings { seed: self.workload.seed, block_bytes: self.block_bytes, ..Settings::default() };
        let simulation = Simulation::new(&self.machine, settings)?;
        let outcome = simulation.run(self.make_and_use(&simulation))??;
        Ok(SimulatedOutcome { outcome, digest: simulation.digest() })
    }

    async fn make_and_use(&self, simulation: &Simulation) -> Result<Outcome, Error> {
        let io_nodes: Vec<NodeId> = simulation.io_nodes().iter().map(|node| node.node()).collect();
        for node in simulation.io_nodes() {
            node.spawn("I/O node", fs::serve(node.clone(), self.io_node.clone()));
        }
        let nodes = simulation.compute_nodes();
        let mut clients = Vec::new();
        for node in nodes {
            clients.push(Client::connect(node.clone(), io_nodes.clone(), self.client).await?);
        }
        let file = clients[0].create(NAME, FILE, self.block_bytes).await?;
        self.workload.lay_out(&nodes[0], &file, Contents::Phantom, |_| {}).await?;
        let mut files = Vec::new();
        for client in &clients {
            files.push(client.open_unfinished(NAME).await?);
        }
        let (all, sum) = (TaskGroup::<Error>::new(), Rc::<RefCell<Outcome>>::default());
        for ((number, node), file) in (0..).zip(nodes).zip(files) {
            let (workload, machine, sum) = (self.workload.clone(), node.clone(), sum.clone());
            all.spawn(node, "client of the workload", async move {
                let outcome = workload.run(&machine, &file, Contents::Phantom, number, |_| {}).await?;
                sum.borrow_mut().add(&outcome);
                Ok(())
            });
        }
        all.join_or_fail().await?;
        Ok(sum.take())
    }
}
