//! Benchmarks: what is measured, and what the simulated machine says of the same.
//!
//! - `agents/`: the user's own agents
//! - `pdiol/`: the benchmark of the thesis on PDIOL; `enwrich/`: small records; `names/`: small files; `placement/`:
//!   merges that share disks
//! - `bare_stripe.rs`: what some of them are compared with
//! - `processes.rs`: agents for as long as a benchmark needs them; `job_nodes.rs`: jobs, each done by a node of its own
//! - `rounds.rs`: measuring several times; `times.rs`: where the time of a run goes; `message_costs.rs`: what a message
//!   takes on this computer, for predictions

pub(crate) mod agents;
pub(crate) mod bare_stripe;
pub(crate) mod enwrich;
pub(crate) mod job_nodes;
pub(crate) mod message_costs;
pub(crate) mod names;
pub(crate) mod pdiol;
pub(crate) mod placement;
pub(crate) mod processes;
pub(crate) mod rounds;
pub(crate) mod times;
