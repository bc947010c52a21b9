//! The core of MPI-IO on Starfish, behind a plain C interface. There is no MPI in it.
//!
//! ```text
//!   a program: MPI_File_write_all(...)
//!        |
//!   shim/*.c          compiled against the mpi.h of one MPI: types, memory, status, requests, error handlers
//!        |
//!   c.rs              the functions of include/starfish_mpi_io.h: bytes, integers, pointers
//!        |
//!   collective_file.rs   an open file: its view, its pointers, who has it open
//!        |
//!   members.rs        what the members of a file do together
//!        |
//!   crate node        files of the namespace, on a thread of its own that never calls MPI
//! ```
//!
//! Map of the code, in reading order:
//!
//! - `c.rs`: the functions of the header; start here
//! - `collective_file.rs`: an open file; `mode.rs`: how it was opened; `members.rs`: those who have it open
//! - `waiting.rs`: for other processes
//! - `moving.rs`: reading and writing it; `alone.rs`: by this process for itself
//! - `file_type.rs`, `file_array.rs`: types as selections; `type_data.rs`: their data, which may overlap;
//!   `file_view.rs`: what a process sees of a file
//! - `shared_pointer.rs`, `atomic.rs`: what processes on any hosts share
//! - `hints.rs`: what is in force of an `MPI_Info`; `hint_file.rs`: ROMIO's file of them
//! - `call_place.rs`: where a call begins; `way.rs`: which way its data go, and why; `data_call.rs`: a call that is
//!   under way; `account.rs`: what all of them took
//! - `recording.rs`: what this process reads and writes, as a log to be replayed
//! - `process.rs`: the session of this process; `open_files.rs`: what is open when it ends
//! - `names.rs`: which names mean files on Starfish
//! - `failure.rs`: classes of errors

mod account;
mod alone;
mod atomic;
mod c;
mod call_place;
mod collective_file;
mod data_call;
mod failure;
mod file_array;
mod file_type;
mod file_view;
mod hint_file;
mod hints;
mod members;
mod mode;
mod moving;
mod names;
mod open_files;
mod process;
mod recording;
mod shared_pointer;
mod type_data;
mod waiting;
mod way;
