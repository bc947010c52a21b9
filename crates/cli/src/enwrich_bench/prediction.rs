//! What the simulated machine says of processes that write.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use command_line::failure::{Failure, Result};
use description::MachineDescription;
use experiment::{Beginning, Experiment, Launch, StoredFile};
use fs::{IoNodeSettings, Scheduling};

use super::measure::Measured;
use super::member::MemberOutcome;
use super::{BLOCK_BYTES, WriteCell};
use crate::described::load_machine_of_agents;
use crate::trace_file::TraceFile;

/// So many events of a prediction are in its trace at most.
const EVENTS_MAX: u64 = 10_000_000;

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

    /// What is to be expected of a measurement, with a trace of it if a file is named.
    pub(crate) fn predict(&self, cell: &WriteCell, trace: Option<&Path>) -> Result<Measured> {
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
        let file = trace.map(|path| TraceFile::create(path, &self.machine, EVENTS_MAX)).transpose()?;
        let trial = match file {
            None => experiment.trial(0),
            Some(file) => {
                let file = Rc::new(RefCell::new(file));
                let trial = experiment.recorded_trial(0, file.clone());
                file.borrow_mut().finish()?;
                trial
            }
        };
        let trial = trial.map_err(|error| Failure::new("predicting", error))?;
        let outcome = &trial.jobs[0];
        let flushes = outcome.flushes.as_ref().map(|flushes| flushes.flushes);
        let MemberOutcome { latency_s, flushes } = MemberOutcome::of(&outcome.writes.latencies, flushes);
        let elapsed = std::time::Duration::from_nanos(trial.elapsed.as_nanos());
        Ok(Measured { elapsed, latency_s, flushes })
    }
}
