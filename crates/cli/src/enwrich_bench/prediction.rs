//! What the simulated machine says of processes that write.

use std::path::Path;

use command_line::failure::Result;
use description::MachineDescription;
use experiment::{Beginning, Experiment, Launch, StoredFile};
use fs::{IoNodeSettings, Scheduling};

use super::cache_costs::CacheCosts;
use super::measure::{Measured, measure_in_rounds};
use super::member::MemberOutcome;
use super::{BLOCK_BYTES, WriteCell, WriteMethod};
use crate::described::{LOOPBACK, load_machine_of_agents};
use crate::message_costs::{Messages, Spent};
use crate::processes::Agents;
use crate::trace_file::predicted_trial;

/// How many requests each process makes to measure what one takes on this computer, and of how many bytes.
const PROBES: u64 = 8192;
const RECORD_BYTES: u64 = 8;

/// Requests of processes that wait for each, into the cache of an agent: of as many as will write, since it matters how
/// many share the processors. Of one process alone a pattern is one large request, so there are two at least.
fn probe(processes: u32) -> WriteCell {
    let processes = processes.max(2);
    WriteCell {
        method: WriteMethod::Traditional,
        pattern: "wc".parse().expect("a pattern of the reports"),
        record_bytes: RECORD_BYTES,
        file_bytes: u64::from(processes) * PROBES * RECORD_BYTES,
        processes,
        cache_bytes: 0,
    }
}

/// What is to be set for the machine that `of` makes to take what was measured of a [`probe`].
fn fitted(
    of: impl Fn(&[String]) -> Result<WritePredictor>,
    set: &[String],
    (probe, measured): (&WriteCell, &Measured),
) -> Result<Vec<String>> {
    let spent = |run: &Measured| Spent { elapsed: run.elapsed, processor: run.processor };
    let messages = Messages { members: probe.processes, of_each: PROBES, measured: spent(measured) };
    messages.fitted(set, |set| {
        let predictor = of(set)?;
        let predicted = predictor.predict(probe, None)?;
        Ok((predictor.machine, spent(&predicted)))
    })
}

/// Predicts for a machine with a compute node for each process and an I/O node for each agent, with a disk.
pub(crate) struct WritePredictor {
    machine: MachineDescription,
    scheduling: Scheduling,
}

impl WritePredictor {
    /// Predicts for this computer: the machine `loopback` with these numbers in place, and with what a small request
    /// takes, which is measured with these agents in so many
    /// rounds.
    pub(crate) fn of_this_computer(
        agents: &Agents,
        set: &[String],
        processes: u32,
        scheduling: Scheduling,
        rounds: u32,
    ) -> Result<Self> {
        let (count, probe) = (agents.agents.len(), probe(processes));
        let measured = measure_in_rounds(agents, &probe, rounds, None)?;
        let of = |set: &[String]| Self::of(LOOPBACK, set, probe.processes, count, scheduling);
        let set = fitted(of, set, (&probe, &measured))?;
        let machine = load_machine_of_agents(LOOPBACK, processes, count, 1, &set)?;
        let set = [set, CacheCosts::measure(agents)?.set(&machine)].concat();
        Self::of(LOOPBACK, &set, processes, count, scheduling)
    }

    /// Predicts for a machine as it is described, with these numbers in place.
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
        let trial = predicted_trial(&experiment, trace)?;
        let outcome = &trial.jobs[0];
        let flushes = outcome.flushes.as_ref().map(|flushes| flushes.flushes);
        let Spent { elapsed, processor } = Spent::of(&trial);
        let MemberOutcome { latency_s, flushes, .. } =
            MemberOutcome::of(&outcome.writes.latencies, flushes, processor.as_secs_f64());
        Ok(Measured { elapsed, latency_s, flushes, processor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_costs::latency;

    const PROCESSES: u32 = 4;

    fn of(set: &[String]) -> Result<WritePredictor> {
        WritePredictor::of(LOOPBACK, set, PROCESSES, 4, Scheduling::CyclicScan)
    }

    /// Of a computer that is a simulated machine the fit finds what small requests take.
    #[test]
    fn what_small_requests_take_is_found() {
        let disks = ["disks.model=streaming-20".to_owned(), "processor.shared=2".to_owned()];
        let messages = ["processor.system.send_message=40000", "processor.system.receive_message=43000"];
        let computer = [&disks[..], &messages.map(str::to_owned), &[latency(60e-6)]].concat();
        let probe = probe(PROCESSES);
        let measured = of(&computer).expect("a machine").predict(&probe, None).expect("it writes");
        let found = fitted(of, &disks, (&probe, &measured)).expect("it writes");
        let again = of(&found).expect("a machine").predict(&probe, None).expect("it writes");
        for (found, right) in [(again.elapsed, measured.elapsed), (again.processor, measured.processor)] {
            let ratio = found.as_secs_f64() / right.as_secs_f64();
            assert!((0.98..1.02).contains(&ratio), "{ratio}");
        }
    }
}
