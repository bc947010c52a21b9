//! What can go wrong.

/// Why a job failed, or what it came to cannot be believed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It makes no sense as it is.
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
    /// A byte is not what it should be.
    #[error("wrong data: {0}")]
    WrongData(String),
}
