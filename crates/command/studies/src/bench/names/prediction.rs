//! Prediction, by the simulated machine, of clients that create, examine, list and remove small files.

use std::path::Path;
use std::time::Duration;

use account::trace_file::predicted_trial;
use command_line::failure::{Failure, Result};
use description::MachineDescription;
use experiment::{Experiment, Job, Launch, Outcome, RoundTripsJob};
use transfer::scratch::JobFiles;

use super::store_costs::StoreCosts;
use super::{NamesCell, NamesTimes};
use crate::bench::job_nodes::have_done;
use crate::bench::message_costs::{self, Probes};
use crate::bench::processes::Agents;
use crate::bench::rounds::middle_of;
use crate::described::{LOOPBACK, load_machine_of_agents};

/// Number of measured round trips of each client.
const ROUND_TRIPS: u32 = 3000;

/// Minimum number of clients in the measurement, so that the processors are busy.
const CLIENTS_AT_LEAST: u32 = 4;

/// Predictor for a machine with a compute node for each client and an I/O node with one disk for each agent.
#[derive(Clone)]
pub struct NamesPredictor {
    machine: String,
    set: Vec<String>,
    agents: usize,
}

impl NamesPredictor {
    /// Returns a predictor for a described machine.
    pub fn of(machine: &str, agents: usize) -> NamesPredictor {
        NamesPredictor { machine: machine.to_owned(), set: Vec::new(), agents }
    }

    /// Returns a predictor for this computer: the machine `loopback` with the values in `set` replaced.
    pub fn of_this_computer(agents: &Agents, set: &[String]) -> NamesPredictor {
        NamesPredictor {
            machine: LOOPBACK.to_owned(),
            set: set.to_vec(),
            agents: agents.cluster.agents.len(),
        }
    }

    /// Returns this predictor with these costs of the store, and with costs of messages that are measured between
    /// `clients` clients and these agents.
    pub fn with_costs(
        &self,
        agents: &Agents,
        clients: u32,
        rounds: u32,
        store: &StoreCosts,
    ) -> Result<NamesPredictor> {
        let busy = clients.max(CLIENTS_AT_LEAST);
        let machine = |set: &[String]| load_machine_of_agents(&self.machine, busy, self.agents, 1, set);
        let measured = probed(busy, |launches| {
            let measure = || {
                agents.explain(have_done(
                    &agents.cluster,
                    launches.clone(),
                    &JobFiles::new(),
                    node::random()?,
                ))
            };
            middle_of(rounds, |outcomes| NamesTimes::of(outcomes).elapsed, measure)
        })?;
        let set = message_costs::fitted(&machine(&self.set)?, &self.set, measured, |set| {
            probed(busy, |jobs| {
                let experiment = Experiment { jobs, ..Experiment::with_agents(machine(set)?) };
                Ok(experiment.trial(0).map_err(|error| Failure::new("cannot predict", error))?.jobs)
            })
        })?;
        let store = store.set(&machine(&set)?);
        Ok(NamesPredictor { set: [set, store].concat(), ..self.clone() })
    }

    /// Returns the predicted times. Traces the simulation if a file is named.
    pub fn predict(&self, cell: &NamesCell, trace: Option<&Path>) -> Result<NamesTimes> {
        let experiment = experiment(self.machine_for(cell)?, cell);
        Ok(NamesTimes::of(&predicted_trial(&experiment, trace)?.jobs))
    }

    fn machine_for(&self, cell: &NamesCell) -> Result<MachineDescription> {
        load_machine_of_agents(&self.machine, cell.clients, self.agents, 1, &self.set)
    }

    /// Fails if the machine cannot run the workload.
    pub fn check(&self, cell: &NamesCell) -> Result<()> {
        let checked = experiment(self.machine_for(cell)?, cell).check();
        checked.map_err(|error| Failure::usage(format!("--predict {}", self.machine), error))
    }
}

fn experiment(machine: MachineDescription, cell: &NamesCell) -> Experiment {
    Experiment { jobs: cell.launches(), ..Experiment::with_agents(machine) }
}

/// Returns jobs in which `clients` clients make round trips at the same time.
fn round_trips(clients: u32) -> Vec<Launch> {
    let job = Job::RoundTrips(RoundTripsJob { round_trips: ROUND_TRIPS });
    (0..clients).map(|client| Launch::at_once(job.clone(), [client])).collect()
}

/// Measures the round trips of `clients` clients, which keep the processors busy, and those of a single client.
fn probed(clients: u32, outcomes: impl Fn(Vec<Launch>) -> Result<Vec<Outcome>>) -> Result<Probes> {
    let of = |clients| -> Result<Duration> { Ok(NamesTimes::of(&outcomes(round_trips(clients))?).elapsed) };
    Ok(Probes { busy: of(clients)?, waiting: of(1)? })
}
