//! The native half of the Python package `starfish`: conversions, and nothing else.
//!
//! What users see is Python, with its types and documentation, in `python/starfish`; the module here is private
//! to it. It keeps no state: values go in, columns come out.
//!
//! - `lib.rs`: the functions Python calls
//! - `ask.rs`: what Python asks for, as experiments
//! - `columns.rs`: results, as columns of a table
//! - `attend.rs`: waiting for threads while attending to Python: progress, interrupts
//! - `error.rs`: what went wrong, as Python's exceptions

mod ask;
mod attend;
mod columns;
mod error;

/// What `python/starfish` imports; its types are in `python/starfish/_native.pyi`.
#[pyo3::pymodule]
mod _native {
    use description::{Bytes, Description, MachineDescription, Quantity, Topology, text_of};
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    use crate::ask::Ask;
    use crate::error::{Failure, Result};
    use crate::{attend, columns};

    /// The number of bytes that a text such as `64 KiB` says.
    #[pyfunction]
    fn bytes_of(text: &str) -> Result<u64> {
        Bytes::parse(text)
            .map(|bytes| bytes.0)
            .ok_or_else(|| Failure::Invalid(format!("{text:?}: expected {}", Bytes::EXPECTED)))
    }

    /// The names of the machines that are built in.
    #[pyfunction]
    fn machine_names() -> Vec<&'static str> {
        MachineDescription::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// The text of a machine's description, by name or path.
    #[pyfunction]
    fn machine_text(name_or_path: &str) -> Result<String> {
        Ok(text_of::<MachineDescription>(name_or_path)?.0)
    }

    /// The text of a description with values replaced.
    #[pyfunction]
    fn replace_values(text: &str, file: &str, overrides: Vec<(String, String)>) -> Result<String> {
        let overrides: Vec<_> = overrides.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        Ok(MachineDescription::replace_values(text, file, &overrides)?)
    }

    /// What is known of the machine in this text, by the names that `Machine` has for it.
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

    /// Simulates what is asked for, and returns the columns of the result.
    #[pyfunction]
    fn simulate<'py>(
        py: Python<'py>,
        ask: &Bound<'py, PyAny>,
        threads: usize,
        report: Option<Py<PyAny>>,
    ) -> Result<Bound<'py, PyDict>> {
        let ask: Ask = ask.extract()?;
        let experiments = ask.experiments()?;
        let trials = ask.trials()?;
        let simulated = experiments.clone();
        let total = (experiments.len() * trials) as u64;
        let outcomes = attend::run(py, total, report, move |watch| {
            crate::ask::simulate(&simulated, trials, threads, watch)
        })?;
        Ok(columns::of_simulation(py, ask.machine_name(), &experiments, &outcomes?)?)
    }
}
