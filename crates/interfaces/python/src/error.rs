//! Errors, and their conversion to the exceptions of `python/starfish/errors.py`.

use std::any::Any;

use experiment::JobError;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The result of a function that Python calls.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// An error to be raised in Python.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An invalid request.
    Invalid(String),
    /// A file that cannot be read or written.
    File(String),
    /// An unexpected failure of a simulation.
    Simulation(String),
    /// An exception of Python: an interrupt, or an error of a function that Python passed.
    Python(PyErr),
}

impl Failure {
    /// Returns the failure for a panic, which is a defect of Starfish.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Failure::Simulation(format!("a defect of Starfish: {}", text.unwrap_or("it panicked")))
    }
}

impl From<description::Error> for Failure {
    fn from(error: description::Error) -> Self {
        match error {
            description::Error::Unreadable { .. } => Failure::File(error.to_string()),
            _ => Failure::Invalid(error.to_string()),
        }
    }
}

impl From<experiment::Error> for Failure {
    fn from(error: experiment::Error) -> Self {
        match error {
            experiment::Error::Job(JobError::Invalid(_) | JobError::Layout(_)) => {
                Failure::Invalid(error.to_string())
            }
            _ => Failure::Simulation(error.to_string()),
        }
    }
}

impl From<plan::PlanSetError> for Failure {
    fn from(error: plan::PlanSetError) -> Self {
        match error {
            plan::PlanSetError::Plan(error) => error.into(),
            _ => Failure::Invalid(error.to_string()),
        }
    }
}

impl From<plan::TrialError> for Failure {
    fn from(error: plan::TrialError) -> Self {
        match error {
            plan::TrialError::Experiment(error) => error.into(),
            _ => Failure::Simulation(error.to_string()),
        }
    }
}

impl From<plan::JournalError> for Failure {
    fn from(error: plan::JournalError) -> Self {
        match error {
            plan::JournalError::Contradiction { .. } => Failure::Simulation(error.to_string()),
            plan::JournalError::NotAJournal(_) => Failure::Invalid(error.to_string()),
            _ => Failure::File(error.to_string()),
        }
    }
}

impl From<tlv::Error> for Failure {
    fn from(error: tlv::Error) -> Self {
        match error {
            tlv::Error::File { .. } => Failure::File(error.to_string()),
            _ => Failure::Invalid(error.to_string()),
        }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let (class, message) = match failure {
            Failure::Invalid(message) => ("InvalidError", message),
            Failure::File(message) => ("FileError", message),
            Failure::Simulation(message) => ("SimulationError", message),
            Failure::Python(error) => return error,
        };
        Python::attach(|py| exception(py, class, message).unwrap_or_else(|error| error))
    }
}

/// An error of a file, to be raised in Python.
pub(crate) enum FileFailure {
    /// An error of a node: an OSError, or its subclass for the error number.
    Node(node::Error),
    /// An exception of Python: an interrupt.
    Python(PyErr),
}

impl From<node::Error> for FileFailure {
    fn from(error: node::Error) -> Self {
        FileFailure::Node(error)
    }
}

impl From<PyErr> for FileFailure {
    fn from(error: PyErr) -> Self {
        FileFailure::Python(error)
    }
}

impl From<FileFailure> for PyErr {
    fn from(failure: FileFailure) -> Self {
        match failure {
            FileFailure::Python(error) => error,
            FileFailure::Node(error) => {
                let remedy = error.remedy().map(|remedy| format!(". {remedy}")).unwrap_or_default();
                let text = format!("{}{remedy}", error.why());
                PyOSError::new_err((error.kind().errno(), text, error.what().to_owned()))
            }
        }
    }
}

/// The result of a call on files.
pub(crate) type FileResult<T> = std::result::Result<T, FileFailure>;

/// Returns an exception of the class with this name.
fn exception(py: Python<'_>, class: &str, message: String) -> PyResult<PyErr> {
    let class = py.import("starfish.errors")?.getattr(class)?.cast_into::<PyType>()?;
    Ok(PyErr::from_type(class, message))
}
