//! Errors of experiments.

/// Reason why an experiment could not be run, or why its result is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A job is invalid or has failed.
    #[error(transparent)]
    Job(#[from] jobs::Error),
}

impl Error {
    /// Creates the error of an invalid experiment.
    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        jobs::Error::Invalid(why.into()).into()
    }
}

impl From<layout::LayoutError> for Error {
    fn from(error: layout::LayoutError) -> Self {
        jobs::Error::from(error).into()
    }
}

impl From<Box<fs::Error>> for Error {
    fn from(error: Box<fs::Error>) -> Self {
        jobs::Error::from(error).into()
    }
}

impl From<Box<machine::Error>> for Error {
    fn from(error: Box<machine::Error>) -> Self {
        jobs::Error::from(error).into()
    }
}
