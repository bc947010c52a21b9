//! MPI programs, compiled by the compilers of MPICH and Open MPI, with the shim preloaded, and real agents on loopback.
//!
//! - `testbed.rs`: an MPI, agents and the shim; start here
//! - `programs.rs`: functions of the shim, by programs that check themselves (`tests/c`), and our examples
//! - `libraries.rs`: the examples with HDF5, PnetCDF, mpi4py and h5py
//! - `recordings.rs`: recordings of programs, and their replay
//! - `traces.rs`: traces of programs
//! - `hints.rs`: sources of hints, and messages about them
//! - `syncs.rs`: visibility of synced data while the file is open
//! - `locks.rs`: file locks
//! - `failures.rs`: reports of failures
//! - `losses.rs`: a process or an agent fails in the middle of a call
//! - `symbols.rs`: symbols of the core and the shims

mod failures;
mod hints;
mod libraries;
mod locks;
mod losses;
mod programs;
mod recordings;
mod symbols;
mod syncs;
mod testbed;
mod traces;
