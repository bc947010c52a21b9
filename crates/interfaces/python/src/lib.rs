//! The native half of the Python package `starfish`: converts arguments and results, and calls other crates.
//!
//! The public interface is Python, with types and documentation, in `python/starfish`; the module here is private to
//! this package. It keeps no state except a recording and connections to file systems.
//!
//! - `lib.rs`: the functions Python calls
//! - `simulate_arguments.rs`: requests from Python, as cases; `merges.rs`: the same for jobs that share disks
//! - `plans.rs`: plans, run as a whole or in parts
//! - `columns.rs`: results, as columns of a table
//! - `recording.rs`: recordings of Python's threads
//! - `interruptible_wait.rs`: waits for threads while handling progress and interrupts; `signals.rs`: the same for
//!   calls on files
//! - `files.rs`: the file system; `reading.rs`: reading with several pieces in flight; `fresh_bytes.rs`: uninitialised
//!   memory as the target of reads; `of_process.rs`: objects that a forked process cannot use
//! - `error.rs`: errors, as Python's exceptions

mod columns;
mod error;
mod files;
mod fresh_bytes;
mod interruptible_wait;
mod merges;
mod of_process;
mod plans;
mod reading;
mod recording;
mod signals;
mod simulate_arguments;

/// The private module of `python/starfish`; its types are in `python/starfish/_native.pyi`.
#[pyo3::pymodule]
mod _native {
    use std::path::PathBuf;

    use description::{Bytes, Description, MachineDescription, Topology, WrittenAsText, text_of};
    use plan::PlanSet;
    use pyo3::prelude::*;
    use pyo3::types::{PyDict, PyList};

    #[pymodule_export]
    use crate::files::{FileHandle, FileSession};
    #[pymodule_export]
    use crate::recording::{
        tlv_argument, tlv_begin, tlv_count, tlv_counter, tlv_end, tlv_finish, tlv_flow, tlv_flow_in,
        tlv_flow_out, tlv_is_nameless, tlv_start, tlv_state, tlv_tell, tlv_thread,
    };

    use crate::error::{Failure, Result};
    use crate::merges::MergeArguments;
    use crate::plans::{PlanProperties, PlanTexts};
    use crate::simulate_arguments::SimulateArguments;
    use crate::{columns, interruptible_wait, plans};

    /// Returns the number of bytes in a text such as `64 KiB`.
    #[pyfunction]
    fn bytes_of(text: &str) -> Result<u64> {
        Bytes::parse(text)
            .map(|bytes| bytes.0)
            .ok_or_else(|| Failure::Invalid(format!("{text:?}: expected {}", Bytes::EXPECTED)))
    }

    /// Returns the names of the built-in machines.
    #[pyfunction]
    fn machine_names() -> Vec<&'static str> {
        MachineDescription::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// Returns the text of a machine description, by name or path.
    #[pyfunction]
    fn machine_text(name_or_path: &str) -> Result<String> {
        Ok(text_of::<MachineDescription>(name_or_path)?.0)
    }

    /// Returns the text of a description with some values replaced.
    #[pyfunction]
    fn replace_values(text: &str, file: &str, overrides: Vec<(String, String)>) -> Result<String> {
        let overrides: Vec<_> = overrides.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        if !overrides.is_empty() {
            // Parse with the overrides first, so that an error names the override that causes it.
            MachineDescription::parse_with(text, file, &overrides)?;
        }
        Ok(MachineDescription::replace_values(text, file, &overrides)?)
    }

    /// Returns the properties of the machine in this text, under the names of `Machine`.
    #[pyfunction]
    fn machine_facts<'py>(py: Python<'py>, text: &str, file: &str) -> Result<Bound<'py, PyDict>> {
        let machine = MachineDescription::parse(text, file)?;
        let (network, link) = match &machine.network.topology {
            Topology::Constant { .. } => ("constant", None),
            Topology::Switch { link_bandwidth, .. } => ("switch", Some(link_bandwidth.value.0)),
            Topology::Torus(torus) => ("torus", Some(torus.link_bandwidth.value.0)),
        };
        let facts = PyDict::new(py);
        facts.set_item("title", &machine.name)?;
        facts.set_item("compute_nodes", machine.nodes.compute.value)?;
        facts.set_item("io_nodes", machine.nodes.io.value)?;
        facts.set_item("disks_per_io_node", machine.disks.per_io_node.value)?;
        facts.set_item("disk_model", &machine.disks.model.value)?;
        facts.set_item("clock_hz", machine.processor.clock.value.0)?;
        facts.set_item("network", network)?;
        facts.set_item("link_bytes_per_s", link)?;
        facts.set_item("bus_bytes_per_s", machine.buses.as_ref().map(|buses| buses.bandwidth.value.0))?;
        Ok(facts)
    }

    /// Simulates the requested cases, and returns the columns of the result.
    #[pyfunction]
    fn simulate<'py>(
        py: Python<'py>,
        ask: &Bound<'py, PyAny>,
        threads: usize,
        report: Option<Py<PyAny>>,
    ) -> Result<Bound<'py, PyDict>> {
        let ask: SimulateArguments = ask.extract()?;
        let cases = ask.cases()?;
        let trials = ask.trials()?;
        let simulated = cases.clone();
        let total = (cases.len() * trials) as u64;
        let outcomes = interruptible_wait::run(py, total, report, move |watch| {
            crate::simulate_arguments::simulate(&simulated, trials, threads, watch)
        })?;
        Ok(columns::of_simulation(py, ask.machine_name(), &cases, &outcomes?)?)
    }

    /// Simulates jobs that share disks, and returns name, kind and values of each column of the result.
    #[pyfunction]
    fn simulate_merges<'py>(
        py: Python<'py>,
        ask: &Bound<'py, PyAny>,
        threads: usize,
        report: Option<Py<PyAny>>,
    ) -> Result<Bound<'py, PyList>> {
        let ask: MergeArguments = ask.extract()?;
        let plan = ask.plan()?;
        let total = plan::trials(std::slice::from_ref(&plan)).len() as u64;
        let table = interruptible_wait::run(py, total, report, move |watch| ask.table(plan, threads, watch))?;
        Ok(columns::of_table(py, &table?)?)
    }

    /// Returns the properties of a plan, under the names of `Plan`.
    #[pyfunction]
    fn plan_facts<'py>(py: Python<'py>, text: String, file: String) -> Result<Bound<'py, PyDict>> {
        let PlanProperties { name, title, trials, seed, cells } = plans::facts(text, file)?;
        let facts = PyDict::new(py);
        facts.set_item("name", name)?;
        facts.set_item("title", title)?;
        facts.set_item("trials", trials)?;
        facts.set_item("seed", seed)?;
        facts.set_item("cells", cells)?;
        Ok(facts)
    }

    /// Returns the keys of the trials of plans that are not in a journal, long trials first.
    #[pyfunction]
    fn missing_trials(texts: PlanTexts, journal: Option<PathBuf>) -> Result<Vec<String>> {
        let plans = PlanSet::parse(&texts)?;
        let missing = plans::missing(&plans, journal.as_deref())?;
        Ok(missing.iter().map(|job| job.key.to_string()).collect())
    }

    /// Runs the trials with these keys, or all. Returns the outcomes as the text of a journal, and a report of failed
    /// trials.
    #[pyfunction]
    fn run_trials(
        py: Python<'_>,
        texts: PlanTexts,
        keys: Option<Vec<String>>,
        journal: Option<PathBuf>,
        threads: usize,
        report: Option<Py<PyAny>>,
    ) -> Result<plans::Outcome> {
        let plans = PlanSet::parse(&texts)?;
        let total = keys.as_ref().map_or_else(|| plans.trials().len(), Vec::len) as u64;
        interruptible_wait::run(py, total, report, move |watch| {
            let planned = keys.map_or_else(|| Ok(plans.trials()), |keys| plans::chosen(&plans, &keys))?;
            plans::run(&planned, journal, threads, watch)
        })?
    }

    /// Writes outcomes of trials into a journal.
    #[pyfunction]
    fn append_to_journal(journal: PathBuf, part: &str) -> Result<()> {
        plans::append(&journal, part)
    }

    /// Returns name, kind and values of each column of the results of plans.
    #[pyfunction]
    fn table_columns<'py>(
        py: Python<'py>,
        texts: PlanTexts,
        parts: Vec<String>,
        of_trials: bool,
    ) -> Result<Bound<'py, PyList>> {
        let plans = PlanSet::parse(&texts)?;
        Ok(columns::of_table(py, &plans::table(&plans, &parts, of_trials)?)?)
    }
}
