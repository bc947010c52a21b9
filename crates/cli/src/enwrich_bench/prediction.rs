//! What the simulated machine says of processes that write.

use command_line::failure::{Failure, Result};
use description::MachineDescription;
use experiment::{Beginning, Experiment, Launch, StoredFile};
use fs::{IoNodeSettings, Scheduling};

use super::measure::Measured;
use super::member::MemberOutcome;
use super::{BLOCK_BYTES, WriteCell};
use crate::described::load_machine_of_agents;

/// Predicts for a machine with a compute node for each process and an I/O node for each agent, with a disk.
pub(crate) struct WritePredictor {
    machine: MachineDescription,
    scheduling: Scheduling,
}

impl WritePredictor {
    pub(crate) fn of(
        machine: &str,
        set: &[String],
        processes: u32,
        agents: usize,
        scheduling: Scheduling,
    ) -> Result<Self> {
        let machine = load_machine_of_agents(machine, processes, agents, 1, set)?;
        Ok(WritePredictor { machine, scheduling })
    }

    pub(crate) fn predict(&self, cell: &WriteCell) -> Result<Measured> {
        let names: Vec<String> = (0..cell.pattern.arrays()).map(|array| format!("array {array}")).collect();
        let file = |name: &String| StoredFile {
            beginning: Beginning::Empty,
            ..StoredFile::on_disks(name, cell.bytes_of_each(), BLOCK_BYTES)
        };
        let io_nodes = IoNodeSettings { scheduling: self.scheduling, ..IoNodeSettings::agent() };
        let experiment = Experiment {
            io_nodes,
            files: names.iter().map(file).collect(),
            jobs: vec![Launch::at_once(cell.job(names.clone()), 0..cell.processes)],
            ..Experiment::with_agents(self.machine.clone())
        };
        let trial = experiment.trial(0).map_err(|error| Failure::new("predicting", error))?;
        let outcome = &trial.jobs[0];
        let flushes = outcome.flushes.as_ref().map(|flushes| flushes.flushes);
        let MemberOutcome { latency_s, flushes } = MemberOutcome::of(&outcome.writes.latencies, flushes);
        let elapsed = std::time::Duration::from_nanos(trial.elapsed.as_nanos());
        Ok(Measured { elapsed, latency_s, flushes })
    }
}
