//! What the simulated machine says of clients that make, look at, list and remove small files.

use std::path::Path;

use command_line::failure::{Failure, Result};
use description::MachineDescription;
use experiment::Experiment;

use super::store_costs::StoreCosts;
use super::{NamesCell, NamesTimes};
use crate::described::load_machine_of_agents;
use crate::enwrich_bench::prediction::{LOOPBACK, set_of_messages};
use crate::processes::Agents;
use crate::trace_file::predicted_trial;

/// Predicts for a machine with a compute node for each client and an I/O node for each agent, with a disk.
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

    /// Predicts for this computer: the machine `loopback` with these numbers in place, and with what a small request
    /// takes, which is measured with these agents.
    pub(crate) fn of_this_computer(agents: &Agents, set: &[String]) -> Result<NamesPredictor> {
        let count = agents.agents.len();
        let set = set_of_messages(agents, set, fs::Scheduling::CyclicScan)?;
        Ok(NamesPredictor { machine: LOOPBACK.to_owned(), set, agents: count })
    }

    /// What is to be expected, with these costs of the store if they are not the machine's own, and a trace of it if a
    /// file is named.
    pub(crate) fn predict(
        &self,
        cell: &NamesCell,
        store: Option<&StoreCosts>,
        trace: Option<&Path>,
    ) -> Result<NamesTimes> {
        let machine = self.machine_for(cell, &[])?;
        let machine = match store {
            Some(store) => self.machine_for(cell, &store.set(&machine))?,
            None => machine,
        };
        Ok(NamesTimes::of(&predicted_trial(&experiment(machine, cell), trace)?.jobs))
    }

    fn machine_for(&self, cell: &NamesCell, more: &[String]) -> Result<MachineDescription> {
        let set = [&self.set, more].concat();
        load_machine_of_agents(&self.machine, cell.clients, self.agents, 1, &set)
    }

    /// Refuses what the machine cannot have.
    pub(crate) fn check(&self, cell: &NamesCell) -> Result<()> {
        let checked = experiment(self.machine_for(cell, &[])?, cell).check();
        checked.map_err(|error| Failure::usage(format!("--predict {}", self.machine), error))
    }
}

fn experiment(machine: MachineDescription, cell: &NamesCell) -> Experiment {
    Experiment { jobs: cell.launches(), ..Experiment::with_agents(machine) }
}
