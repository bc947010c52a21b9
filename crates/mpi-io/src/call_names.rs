//! What calls are called in traces: as MPI calls them. A call that returns before it is over, or is split, does here what
//! the one without that does, and has its name.

use layout::Operation;

use crate::collective_file::CallPlace;

/// The call that opens a file.
pub(crate) const OPEN: &str = "MPI_File_open";

/// A call that reads or writes.
pub(crate) fn moving(operation: Operation, place: CallPlace, together: bool) -> &'static str {
    let (reads, writes) = match (place, together) {
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
