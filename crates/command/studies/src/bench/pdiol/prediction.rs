//! Prediction, by the simulated machine, of a program with the same file, disks and window.

use std::time::Duration;

use command_line::failure::{Failure, Result};
use description::{Description, MachineDescription};
use experiment::{Experiment, FilePlace, Job, Launch, LocalProgram, Sequential, StoredFile};
use fs::{PageCacheSettings, Prefetch};
use layout::Operation;

use crate::described::{LOOPBACK, overrides, this_computer};

use super::PAGE_BYTES;
use super::limits::Limits;
use super::testbed::{self, CACHE_FOR_READING};

/// Size of the page cache in bytes, as in the thesis and in a session.
const CACHE_BYTES: u64 = 256 << 20;

/// Number of pages of the file that was used to measure `Limits::page`.
const PAGES: u64 = 8;

/// Name of the simulated file.
const FILE: &str = "sequential";

/// Predictor of runs on one machine.
pub struct ProgramPredictor {
    machine: MachineDescription,
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new("cannot predict", error)
}

impl ProgramPredictor {
    /// Returns a predictor for a described machine.
    pub fn of(machine: &str) -> Result<ProgramPredictor> {
        Ok(ProgramPredictor { machine: MachineDescription::load(machine).map_err(failed)? })
    }

    /// Returns a predictor for this computer: the machine `loopback` with the measured limits of this computer, and
    /// with these disks.
    pub fn of_this_computer(limits: &Limits, disk_model: &str) -> Result<ProgramPredictor> {
        let machine = |model: &str, latency: Duration| -> Result<ProgramPredictor> {
            let bandwidth = (limits.one_sender * f64::from(1 << 20)).max(1.0) as u64;
            // A word has 8 bytes, and the clock runs at 3 GHz.
            let copy = (8.0 * 3e9 / (limits.copy * f64::from(1 << 20))).ceil();
            let measured = [
                format!("network.link_bandwidth={bandwidth} B/s"),
                format!("network.latency={} ns", latency.as_nanos()),
                format!("processor.cost.copy.cycles_per_word={copy}"),
            ];
            let set = [&this_computer(model)[..], &measured].concat();
            let machine = MachineDescription::load_with(LOOPBACK, &overrides(&set)?).map_err(failed)?;
            Ok(ProgramPredictor { machine })
        };
        // The latency in both directions together is the measured time of a page minus the time of the simulated steps.
        let steps = machine("memory", Duration::ZERO)?;
        let simulated = steps.read(1, PAGES * PAGE_BYTES, Prefetch::Window(1))? / PAGES as f64;
        let latency = Duration::from_secs_f64(((limits.page - simulated) / 2.0).max(0.0));
        machine(disk_model, latency)
    }

    /// Returns the time to read a striped file, in seconds.
    pub fn read(&self, disks: usize, bytes: u64, prefetch: Prefetch) -> Result<f64> {
        self.run(disks, Some(prefetch), bytes)
    }

    /// Returns the time to read a file from a disk used locally, in seconds.
    pub fn read_local(&self, bytes: u64) -> Result<f64> {
        self.run(1, None, bytes)
    }

    /// Returns the time to read a file, in seconds: on `disks` disks with a prefetch window, or on one disk used
    /// locally.
    fn run(&self, disks: usize, striped: Option<Prefetch>, bytes: u64) -> Result<f64> {
        let mut machine = self.machine.clone();
        machine.nodes.io.value = disks as u32;
        let file = StoredFile::on_disks(FILE, bytes, PAGE_BYTES);
        let work = machine::Duration::ZERO;
        let io_node = machine.nodes.compute.value;
        let (file, launch) = match striped {
            Some(prefetch) => {
                let cache = PageCacheSettings {
                    bytes: CACHE_BYTES,
                    prefetch,
                    write_behind: true,
                    ..PageCacheSettings::default()
                };
                let (name, operation) = (FILE.to_owned(), Operation::Read);
                let (file_bytes, page_bytes) = (bytes, PAGE_BYTES);
                let program = Sequential { file: name, operation, file_bytes, page_bytes, cache, work };
                (file, Launch::at_once(Job::Sequential(program), [0]))
            }
            None => {
                let program = LocalProgram { object: FILE.to_owned(), bytes, page_bytes: PAGE_BYTES, work };
                let file = StoredFile { place: FilePlace::Local(0), ..file };
                (file, Launch::at_once(Job::Local(program), [io_node]))
            }
        };
        let experiment = Experiment {
            io_nodes: testbed::serving(CACHE_FOR_READING),
            files: vec![file],
            jobs: vec![launch],
            ..Experiment::with_agents(machine)
        };
        Ok(experiment.trial(0).map_err(failed)?.elapsed.as_secs_f64())
    }
}
