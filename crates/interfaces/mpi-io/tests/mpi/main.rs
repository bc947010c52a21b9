//! Programs of MPI, compiled by the compilers of MPICH and of Open MPI, with the shim in front of each, and real agents
//! on loopback.
//!
//! - `testbed.rs`: an MPI, agents and the shim; start here
//! - `programs.rs`: what the shim does, by programs that check themselves (`tests/c`), and our examples
//! - `libraries.rs`: the examples by HDF5, PnetCDF, mpi4py and h5py
//! - `recordings.rs`: what is recorded of programs, and replayed
//! - `traces.rs`: what is traced of programs
//! - `hints.rs`: where hints come from, and what is told of them
//! - `syncs.rs`: what others see of a file that is open
//! - `locks.rs`: who has a file locked
//! - `failures.rs`: what is told of what fails
//! - `losses.rs`: a process or an agent is lost in the middle of a call
//! - `symbols.rs`: what the core and the shims define

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
