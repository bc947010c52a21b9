//! Where a call that reads or writes begins, and what MPI calls it.

use layout::Operation;

/// Where a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPlace {
    /// At an offset, in elementary types of the view.
    At(i64),
    /// Where this process is.
    Own,
    /// Where the shared pointer is.
    Shared,
    /// The same, the members in the order of their ranks.
    Ordered,
}

impl CallPlace {
    /// The name of such a call in traces. One that returns before it is over, or is split, does here what the one
    /// without that does, and has its name.
    pub(crate) fn call_name(self, operation: Operation, together: bool) -> &'static str {
        let (reads, writes) = match (self, together) {
            (CallPlace::At(_), false) => ("MPI_File_read_at", "MPI_File_write_at"),
            (CallPlace::At(_), true) => ("MPI_File_read_at_all", "MPI_File_write_at_all"),
            (CallPlace::Own, false) => ("MPI_File_read", "MPI_File_write"),
            (CallPlace::Own, true) => ("MPI_File_read_all", "MPI_File_write_all"),
            (CallPlace::Shared, _) => ("MPI_File_read_shared", "MPI_File_write_shared"),
            (CallPlace::Ordered, _) => ("MPI_File_read_ordered", "MPI_File_write_ordered"),
        };
        match operation {
            Operation::Read => reads,
            Operation::Write => writes,
        }
    }
}
