//! Benchmarks: what is measured, and what the simulated machine says of the same.
//!
//! - `agents/`: the user's own agents
//! - `pdiol/`: the benchmark of the thesis on PDIOL; `enwrich/`: small records; `names/`: small files; `placement/`:
//!   merges that share disks
//! - `bare_stripe.rs`: what some of them are compared with
//! - `processes.rs`: agents for as long as a benchmark needs them
//! - `job_nodes.rs`: jobs, each done by a node of its own; `whole_file.rs`: a file put and got
//! - `rounds.rs`: measuring several times; `times.rs`: where the time of a run goes; `message_costs.rs`: what a message
//!   takes on this computer, for predictions

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
