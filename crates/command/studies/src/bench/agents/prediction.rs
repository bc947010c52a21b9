//! Prediction of a workload on agents by the simulated machine.

use command_line::failure::{Failure, Result};
use description::MachineDescription;
use experiment::{Beginning, Experiment, Job, Launch, Outcome, StoredFile, Workload};

use crate::described::load_machine_of_agents;

/// Maximum number of simulated requests of a workload, for all clients together: simulated in some seconds, and
/// sufficient for a 99.9th percentile.
pub const REQUESTS_MAX: u64 = 20_000;

/// Name of the simulated file.
const FILE: &str = "workload";

/// Predictor for one machine that has as many nodes and disks as the agents.
pub struct Predictor {
    machine: MachineDescription,
    block_bytes: u64,
}

impl Predictor {
    /// Returns a predictor for a described machine, with a compute node for each client and an I/O node for each agent.
    /// `disks` has the number of disks of each agent. `set` replaces any values of the machine, including these
    /// numbers.
    pub fn of(
        machine: &str,
        set: &[String],
        clients: u32,
        disks: &[u32],
        block_bytes: u64,
    ) -> Result<Predictor> {
        let (Some(&first), count) = (disks.first(), disks.len()) else {
            return Err(Failure::new("cannot predict", "no agents are named"));
        };
        // Check the machine before connecting to the agents, so that its error does not depend on them.
        let machine = load_machine_of_agents(machine, clients, count, first, set)?;
        if disks.iter().any(|&disks| disks != first) {
            let failure = Failure::usage("--machine", "the agents have different numbers of disks");
            return Err(failure.remedy(
                "All I/O nodes of a simulated machine are equal. Name agents with equal numbers of disks.",
            ));
        }
        Ok(Predictor { machine, block_bytes })
    }

    /// Returns the name of the machine.
    pub fn machine(&self) -> &str {
        &self.machine.name
    }

    /// Fails if the machine cannot run the workload.
    pub fn check(&self, workload: &Workload) -> Result<()> {
        self.experiment(workload)
            .check()
            .map_err(|error| Failure::usage(format!("--machine: {}", self.machine.name), error))
    }

    /// Returns the predicted outcome for the clients.
    pub fn predict(&self, workload: &Workload) -> Result<Outcome> {
        let done = self.experiment(workload).trial(0);
        let mut trial = done.map_err(|error| Failure::new("cannot predict", error))?;
        Ok(trial.jobs.remove(0))
    }

    /// Returns the experiment. The file has the same layout as on the agents, so that the same part of it is in the
    /// caches.
    fn experiment(&self, workload: &Workload) -> Experiment {
        let most = (REQUESTS_MAX / u64::from(workload.clients.max(1))).max(1);
        let file = StoredFile {
            beginning: if workload.is_read() { Beginning::Written } else { Beginning::Empty },
            ..StoredFile::on_disks(FILE, workload.file_bytes, self.block_bytes)
        };
        let job = Job::Requests(FILE.to_owned(), workload.with_at_most(most));
        let clients = 0..self.machine.nodes.compute.value;
        Experiment {
            files: vec![file],
            jobs: vec![Launch::at_once(job, clients)],
            seed: workload.seed,
            ..Experiment::with_agents(self.machine.clone())
        }
    }
}
