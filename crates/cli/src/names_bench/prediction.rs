//! What the simulated machine says of clients that make, look at, list and remove small files.

use std::path::Path;

use command_line::failure::{Failure, Result};
use description::MachineDescription;
use experiment::{Experiment, Job, Launch, RoundTripsJob};
use nix::sys::resource::UsageWho;

use super::store_costs::StoreCosts;
use super::{NamesCell, NamesTimes};
use crate::described::{LOOPBACK, load_machine_of_agents};
use crate::job_nodes::have_done;
use crate::message_costs::{Messages, Spent};
use crate::processes::Agents;
use crate::rounds::middle_of;
use crate::times::processor;
use crate::trace_file::predicted_trial;

/// Round trips of each client that are measured.
const ROUND_TRIPS: u32 = 3000;

/// Predicts for a machine with a compute node for each client and an I/O node for each agent, with a disk.
#[derive(Clone)]
pub(crate) struct NamesPredictor {
    machine: String,
    set: Vec<String>,
    agents: usize,
}

impl NamesPredictor {
    /// Predicts for a machine as it is described.
    pub(crate) fn of(machine: &str, agents: usize) -> NamesPredictor {
        NamesPredictor { machine: machine.to_owned(), set: Vec::new(), agents }
    }

    /// Predicts for this computer: the machine `loopback` with these numbers in place.
    pub(crate) fn of_this_computer(agents: &Agents, set: &[String]) -> NamesPredictor {
        NamesPredictor { machine: LOOPBACK.to_owned(), set: set.to_vec(), agents: agents.agents.len() }
    }

    /// The same with what messages between so many clients and these agents take, and with these costs of the store.
    pub(crate) fn with_costs(
        &self,
        agents: &Agents,
        clients: u32,
        rounds: u32,
        store: &StoreCosts,
    ) -> Result<NamesPredictor> {
        let measure = || measure_round_trips(agents, clients);
        let measured = middle_of(rounds, |spent: &Spent| spent.elapsed, measure)?;
        let messages = Messages { members: clients, of_each: ROUND_TRIPS.into(), measured };
        let set = messages.fitted(&self.set, |set| {
            let machine = load_machine_of_agents(&self.machine, clients, self.agents, 1, set)?;
            let trial = round_trips_experiment(machine.clone(), clients).trial(0);
            let trial = trial.map_err(|error| Failure::new("predicting", error))?;
            Ok((machine, Spent::of(&trial)))
        })?;
        let machine = load_machine_of_agents(&self.machine, clients, self.agents, 1, &set)?;
        Ok(NamesPredictor { set: [set, store.set(&machine)].concat(), ..self.clone() })
    }

    /// What is to be expected, and a trace of it if a file is named.
    pub(crate) fn predict(&self, cell: &NamesCell, trace: Option<&Path>) -> Result<NamesTimes> {
        let experiment = experiment(self.machine_for(cell)?, cell);
        Ok(NamesTimes::of(&predicted_trial(&experiment, trace)?.jobs))
    }

    fn machine_for(&self, cell: &NamesCell) -> Result<MachineDescription> {
        load_machine_of_agents(&self.machine, cell.clients, self.agents, 1, &self.set)
    }

    /// Refuses what the machine cannot have.
    pub(crate) fn check(&self, cell: &NamesCell) -> Result<()> {
        let checked = experiment(self.machine_for(cell)?, cell).check();
        checked.map_err(|error| Failure::usage(format!("--predict {}", self.machine), error))
    }
}

fn experiment(machine: MachineDescription, cell: &NamesCell) -> Experiment {
    Experiment { jobs: cell.launches(), ..Experiment::with_agents(machine) }
}

/// Round trips of each of these clients.
fn round_trips(clients: u32, round_trips: u32) -> Vec<Launch> {
    let launch = |client| Launch::at_once(Job::RoundTrips(RoundTripsJob { round_trips }), [client]);
    (0..clients).map(launch).collect()
}

fn round_trips_experiment(machine: MachineDescription, clients: u32) -> Experiment {
    Experiment { jobs: round_trips(clients, ROUND_TRIPS), ..Experiment::with_agents(machine) }
}

/// What round trips of these clients take, all of them at once.
fn measure_round_trips(agents: &Agents, clients: u32) -> Result<Spent> {
    let spend = |count| -> Result<Spent> {
        let worked = || processor(UsageWho::RUSAGE_SELF).sum() + agents.processor_time();
        let before = worked();
        let outcomes =
            agents.explain(have_done(&agents.agents, round_trips(clients, count), node::random()?))?;
        let elapsed = NamesTimes::of(&outcomes).elapsed;
        Ok(Spent { elapsed, processor: worked().saturating_sub(before) })
    };
    // Of one alone it is the nodes' beginning and end that takes time.
    let (few, many) = (spend(1)?, spend(ROUND_TRIPS)?);
    Ok(Spent { processor: many.processor.saturating_sub(few.processor), ..many })
}
