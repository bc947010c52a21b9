//! Prediction of writing processes by the simulated machine.

use std::path::Path;
use std::time::Duration;

use account::trace_file::predicted_trial;
use command_line::failure::Result;
use description::MachineDescription;
use experiment::{Beginning, Experiment, Launch, StoredFile};
use fs::{IoNodeSettings, Scheduling};

use super::cache_costs::CacheCosts;
use super::measure::{Measured, measure_in_rounds};
use super::member::MemberOutcome;
use super::{BLOCK_BYTES, WriteCell, WriteMethod};
use crate::bench::message_costs::{self, Probes};
use crate::bench::processes::Agents;
use crate::bench::rounds::middle_of;
use crate::described::{LOOPBACK, load_machine_of_agents};

/// Numbers of records with which each process measures the cost of messages on this computer, and their size in bytes.
/// It writes `REQUESTS` records with a request for each, and `ROUNDS` records into a write cache, in rounds that all
/// processes start together.
const REQUESTS: u64 = 8192;
const ROUNDS: u64 = 2048;
const RECORD_BYTES: u64 = 8;

/// Size of a probe's cache in bytes, larger than its data.
const PROBE_CACHE_BYTES: u64 = 1 << 20;

/// Returns a probe: a workload of `processes` processes whose time shows the cost of messages.
fn probe(processes: u32, pattern: &str, method: WriteMethod, records: u64) -> WriteCell {
    WriteCell {
        method,
        pattern: pattern.parse().expect("a pattern of the reports"),
        record_bytes: RECORD_BYTES,
        file_bytes: u64::from(processes) * records * RECORD_BYTES,
        processes,
        cache_bytes: PROBE_CACHE_BYTES,
    }
}

/// Runs both probes: processes that make requests one after the other, and processes that wait for each other.
fn probed(processes: u32, measured: impl Fn(&WriteCell) -> Result<Measured>) -> Result<Probes> {
    let busy = probe(processes, "wc", WriteMethod::Traditional, REQUESTS);
    let waiting = probe(processes, "wss", WriteMethod::WriteCached, ROUNDS);
    Ok(Probes { busy: measured(&busy)?.elapsed, waiting: measured(&waiting)?.elapsed })
}

/// Returns the settings with which the machine returned by `of` takes the measured times.
fn fitted(
    of: impl Fn(&[String]) -> Result<WritePredictor>,
    set: &[String],
    processes: u32,
    measured: Probes,
) -> Result<Vec<String>> {
    message_costs::fitted(&of(set)?.machine, set, measured, |set| {
        let predictor = of(set)?;
        probed(processes, |probe| predictor.predict(probe, None))
    })
}

/// Predictor for a machine with a compute node for each process and an I/O node with one disk for each agent.
pub struct WritePredictor {
    machine: MachineDescription,
    scheduling: Scheduling,
}

impl WritePredictor {
    /// Returns a predictor for this computer: the machine `loopback` with these values, and with message costs that are
    /// measured with these agents in `rounds` rounds.
    pub fn of_this_computer(
        agents: &Agents,
        set: &[String],
        processes: u32,
        scheduling: Scheduling,
        rounds: u32,
    ) -> Result<Self> {
        let count = agents.cluster.agents.len();
        // Probe with the real number of processes, because the processes share the processors. Use at least two
        // processes, because the pattern of a single process is one large request.
        let probing = processes.max(2);
        let measured = probed(probing, |probe| measure_in_rounds(agents, probe, rounds, None))?;
        let of = |set: &[String]| Self::of(LOOPBACK, set, probing, count, scheduling);
        let set = fitted(of, set, probing, measured)?;
        let machine = load_machine_of_agents(LOOPBACK, processes, count, 1, &set)?;
        let of_records = middle_of(rounds, CacheCosts::all, || CacheCosts::measure(agents, processes))?;
        let set = [set, of_records.set(&machine)].concat();
        Self::of(LOOPBACK, &set, processes, count, scheduling)
    }

    /// Returns a predictor for a described machine, with the values in `set` replaced.
    pub fn of(
        machine: &str,
        set: &[String],
        processes: u32,
        agents: usize,
        scheduling: Scheduling,
    ) -> Result<Self> {
        let machine = load_machine_of_agents(machine, processes, agents, 1, set)?;
        Ok(WritePredictor { machine, scheduling })
    }

    /// Returns the predicted result of a measurement. Traces the simulation if a file is named.
    pub fn predict(&self, cell: &WriteCell, trace: Option<&Path>) -> Result<Measured> {
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
        let MemberOutcome { latency_s, flushes } = MemberOutcome::of(&outcome.writes.latencies, flushes);
        Ok(Measured { elapsed: Duration::from_nanos(trial.elapsed.as_nanos()), latency_s, flushes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESSES: u32 = 4;

    fn predictor_of(set: &[String]) -> Result<WritePredictor> {
        WritePredictor::of(LOOPBACK, set, PROCESSES, 4, Scheduling::CyclicScan)
    }

    /// If the measured computer is itself a simulated machine, the fit finds its cost of small requests.
    #[test]
    fn the_fit_finds_the_cost_of_small_requests() {
        let disks = ["disks.model=streaming-20".to_owned(), "processor.shared=2".to_owned()];
        let costs = [
            "processor.system.send_message=27000",
            "processor.system.receive_message=30000",
            "network.latency=30 us",
        ];
        let computer = [&disks[..], &costs.map(str::to_owned)].concat();
        let predicted = |set: &[String]| {
            let predictor = predictor_of(set).expect("a machine");
            probed(PROCESSES, |probe| predictor.predict(probe, None)).expect("it writes")
        };
        let measured = predicted(&computer);
        let again = predicted(&fitted(predictor_of, &disks, PROCESSES, measured).expect("it writes"));
        for (found, right) in [(again.busy, measured.busy), (again.waiting, measured.waiting)] {
            let ratio = found.div_duration_f64(right);
            assert!((0.98..1.02).contains(&ratio), "{ratio}");
        }
    }
}
