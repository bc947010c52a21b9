//! Errors of jobs.

/// Reason why a job failed, or its result is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Inconsistent settings.
    #[error("{0}")]
    Invalid(String),
    /// The pattern does not fit the file.
    #[error(transparent)]
    Layout(#[from] layout::LayoutError),
    /// The file system failed.
    #[error(transparent)]
    FileSystem(#[from] Box<fs::Error>),
    /// The machine failed.
    #[error(transparent)]
    Machine(#[from] Box<machine::Error>),
    /// Data differ from the expected contents.
    #[error("wrong data: {0}")]
    WrongData(String),
}
