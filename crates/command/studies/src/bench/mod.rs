//! Benchmarks: measurements, and their predictions by the simulated machine.
//!
//! - `agents/`: the user's own agents.
//! - `pdiol/`: the benchmark of the PDIOL thesis.
//! - `enwrich/`: small records; `names/`: small files; `placement/`: merges that share disks.
//! - `bare_stripe.rs`: a baseline for some benchmarks.
//! - `processes.rs`: agents that run only for a benchmark.
//! - `job_nodes.rs`: jobs, each as a separate node; `whole_file.rs`: put and get of a file.
//! - `rounds.rs`: repeated measurements; `times.rs`: elapsed time and processor time of a run.
//! - `message_costs.rs`: cost of a message on this computer, for predictions.

pub mod agents;
pub mod bare_stripe;
pub mod enwrich;
pub mod job_nodes;
pub mod message_costs;
pub mod names;
pub mod pdiol;
pub mod placement;
pub mod processes;
pub mod rounds;
pub mod times;
pub mod whole_file;
