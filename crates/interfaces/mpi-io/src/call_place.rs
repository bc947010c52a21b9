//! The starting position of a call that reads or writes, and the MPI name of the call.

use layout::Operation;

/// The starting position of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPlace {
    /// At an offset, in elementary types of the view.
    At(i64),
    /// The individual file pointer of this process.
    Own,
    /// The shared file pointer.
    Shared,
    /// The shared file pointer; the members move their data in the order of their ranks.
    Ordered,
}

impl CallPlace {
    /// Returns the name of such a call in traces. Nonblocking and split calls have the name of the blocking call that
    /// does the same.
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
