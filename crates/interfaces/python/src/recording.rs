//! Recording what Python's threads do: the crate `tlv`, call by call. What users see is `python/starfish/tlv.py`.

use std::path::PathBuf;

use pyo3::prelude::*;
use tlv::{Amount, Colour, CounterId, CounterInfo, NameId, Settings, StateId, StateInfo};

use crate::error::Result;

/// A number or a text.
#[derive(FromPyObject)]
pub(crate) enum Told {
    Integer(i64),
    Real(f64),
    Text(String),
}

impl Told {
    fn amount(&self) -> Option<Amount> {
        match self {
            Told::Integer(integer) => Some(Amount::Integer(*integer)),
            Told::Real(real) => Some(Amount::Real(*real)),
            Told::Text(_) => None,
        }
    }
}

/// Begins a recording, as the environment says but for the file, and returns its file; none if nothing is recorded.
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

/// Whether this thread is to be named before it records: something is recorded, and it is not yet.
#[pyfunction]
pub(crate) fn tlv_is_nameless() -> bool {
    tlv::is_recording() && !tlv::is_added()
}

/// Records this thread from now on, by this name.
#[pyfunction]
pub(crate) fn tlv_thread(name: &str) {
    let _ = tlv::name_thread(name);
}

/// Begins a state. What is refused, here and below, is not recorded, or counted if there was no room.
#[pyfunction]
pub(crate) fn tlv_begin(state: u32) {
    let _ = tlv::begin(StateId(state));
}

/// Ends a state.
#[pyfunction]
pub(crate) fn tlv_end(state: u32) {
    let _ = tlv::end(StateId(state));
}

/// Tells a number or a text of the state that this thread is in.
#[pyfunction]
pub(crate) fn tlv_tell(argument: u32, value: Told) {
    let name = NameId(argument);
    let _ = match (value.amount(), &value) {
        (None, Told::Text(text)) => tlv::argue_text(name, text.as_bytes()),
        (amount, _) => tlv::argue(name, amount.expect("it is no text")),
    };
}

/// Sets a counter.
#[pyfunction]
pub(crate) fn tlv_count(counter: u32, value: Told) {
    if let Some(amount) = value.amount() {
        let _ = tlv::count(CounterId(counter), amount);
    }
}

/// The number of a new flow.
#[pyfunction]
pub(crate) fn tlv_flow() -> u64 {
    tlv::new_flow()
}

/// A flow leaves.
#[pyfunction]
pub(crate) fn tlv_flow_out(flow: u64) {
    let _ = tlv::flow_out(flow);
}

/// A flow arrives.
#[pyfunction]
pub(crate) fn tlv_flow_in(flow: u64) {
    let _ = tlv::flow_in(flow);
}
