//! The core of MPI-IO on Starfish behind a plain C interface. It does not use MPI.
//!
//! ```text
//!   a program: MPI_File_write_all(...)
//!        |
//!   shim/*.c          compiled against the mpi.h of one MPI: types, memory, status, requests, error handlers
//!        |
//!   c.rs              the functions of include/starfish_mpi_io.h: bytes, integers, pointers
//!        |
//!   collective_file.rs   an open file: its view, its pointers, its members
//!        |
//!   members.rs        what the members of a file do together
//!        |
//!   crate node        files of the namespace, on a separate thread (the node thread), which never calls MPI
//! ```
//!
//! Map of the code, in reading order:
//!
//! - `c.rs`: the functions of the header; start here
//! - `collective_file.rs`: an open file; `mode.rs`: its access mode; `members.rs`: the processes that have it open
//! - `waiting.rs`: waiting for other processes
//! - `data_transfer.rs`: reading and writing; `independent.rs`: independent calls
//! - `file_type.rs`, `file_array.rs`: types as selections; `type_data.rs`: their data, which may overlap;
//!   `file_view.rs`: the view of a process on a file
//! - `shared_pointer.rs`, `atomic.rs`: state shared by processes on any hosts
//! - `hints.rs`: the hints of an `MPI_Info` in force; `hint_file.rs`: ROMIO's hint file
//! - `call_place.rs`: the starting position of a call; `access_path.rs`: its access path and the reason;
//!   `data_call.rs`: a call in flight; `account.rs`: totals of all calls
//! - `recording.rs`: the log of this process's calls, for replay
//! - `process.rs`: the session of this process; `open_files.rs`: files open when it ends
//! - `names.rs`: names of files on Starfish
//! - `failure.rs`: error classes

mod access_path;
mod account;
mod atomic;
mod c;
mod call_place;
mod collective_file;
mod data_call;
mod data_transfer;
mod failure;
mod file_array;
mod file_type;
mod file_view;
mod hint_file;
mod hints;
mod independent;
mod members;
mod mode;
mod names;
mod open_files;
mod process;
mod recording;
mod shared_pointer;
mod type_data;
mod waiting;
