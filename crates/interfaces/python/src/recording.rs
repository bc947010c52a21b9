//! Records Python's threads through the crate `tlv`, call by call. The public interface is `python/starfish/tlv.py`.

use std::path::PathBuf;

use pyo3::prelude::*;
use tlv::{Amount, Colour, CounterId, CounterInfo, NameId, Settings, StateId, StateInfo};

use crate::error::Result;

/// A number or a text.
#[derive(FromPyObject)]
pub(crate) enum PyArgument {
    Integer(i64),
    Real(f64),
    Text(String),
}

impl PyArgument {
    fn amount(&self) -> Option<Amount> {
        match self {
            PyArgument::Integer(integer) => Some(Amount::Integer(*integer)),
            PyArgument::Real(real) => Some(Amount::Real(*real)),
            PyArgument::Text(_) => None,
        }
    }
}

/// Starts a recording with the settings of the environment; `file` overrides its file. Returns the file, or `None` if
/// recording is off.
#[pyfunction]
pub(crate) fn tlv_start(name: &str, file: Option<PathBuf>) -> Result<Option<PathBuf>> {
    let mut settings = Settings::of_environment()?;
    settings.file = file.or(settings.file);
    Ok(tlv::start(name, &settings)?)
}

/// Ends the recording.
#[pyfunction]
pub(crate) fn tlv_finish(py: Python<'_>) -> Result<()> {
    Ok(py.detach(tlv::finish)?)
}

/// Declares a state.
#[pyfunction]
pub(crate) fn tlv_state(name: String, category: String, colour: Option<(u8, u8, u8)>) -> Result<u32> {
    let colour = colour.map(|(red, green, blue)| Colour(red, green, blue));
    Ok(tlv::declare_state(&StateInfo { name, category, colour })?.0)
}

/// Declares a counter.
#[pyfunction]
pub(crate) fn tlv_counter(name: String, unit: String) -> Result<u32> {
    Ok(tlv::declare_counter(&CounterInfo { name, unit })?.0)
}

/// Declares the name of an argument.
#[pyfunction]
pub(crate) fn tlv_argument(name: &str) -> Result<u32> {
    Ok(tlv::declare_name(name)?.0)
}

/// True if this thread needs a name before its first record: a recording is active, and the thread has not been added
/// to it.
#[pyfunction]
pub(crate) fn tlv_is_nameless() -> bool {
    tlv::is_recording() && !tlv::is_added()
}

/// Records this thread from now on, under this name.
#[pyfunction]
pub(crate) fn tlv_thread(name: &str) {
    let _ = tlv::name_thread(name);
}

/// Begins a state. This function and those below ignore rejected records; records that are dropped because the buffer
/// is full are counted.
#[pyfunction]
pub(crate) fn tlv_begin(state: u32) {
    let _ = tlv::begin(StateId(state));
}

/// Ends a state.
#[pyfunction]
pub(crate) fn tlv_end(state: u32) {
    let _ = tlv::end(StateId(state));
}

/// Adds a number or text to the current state of this thread.
#[pyfunction]
pub(crate) fn tlv_tell(argument: u32, value: PyArgument) {
    let name = NameId(argument);
    let _ = match (value.amount(), &value) {
        (None, PyArgument::Text(text)) => tlv::argue_text(name, text.as_bytes()),
        (amount, _) => tlv::argue(name, amount.expect("a number")),
    };
}

/// Sets a counter.
#[pyfunction]
pub(crate) fn tlv_count(counter: u32, value: PyArgument) {
    if let Some(amount) = value.amount() {
        let _ = tlv::count(CounterId(counter), amount);
    }
}

/// Returns the number of a new flow.
#[pyfunction]
pub(crate) fn tlv_flow() -> u64 {
    tlv::new_flow()
}

/// Records the departure of a flow.
#[pyfunction]
pub(crate) fn tlv_flow_out(flow: u64) {
    let _ = tlv::flow_out(flow);
}

/// Records the arrival of a flow.
#[pyfunction]
pub(crate) fn tlv_flow_in(flow: u64) {
    let _ = tlv::flow_in(flow);
}
