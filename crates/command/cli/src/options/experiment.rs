//! What several commands that simulate or measure have in common.

use clap::Args;
use command_line::progress::Show;

use super::numbers::{positive, seed};

/// The option that says whether progress is shown.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ProgressArgs {
    /// Whether to show progress.
    #[arg(id = "progress", long, value_enum, default_value_t = Show::Auto, value_name = "WHEN")]
    pub(crate) show: Show,
}

/// The option that says how often something is measured.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct RoundsArgs {
    /// Rounds of each measurement, and of what predictions are made from; the median counts.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
}

/// The option that says where all randomness comes from.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SeedArgs {
    /// Seed of all randomness.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
}

/// The option that changes the simulated machine.
#[derive(Args, Clone, Debug)]
pub(crate) struct SetArgs {
    /// Change a number of the machine's description.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// The option that bounds a trace.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TraceLimitArgs {
    /// Maximum number of slices, counts and messages in the trace; about 40 bytes each.
    #[arg(id = "trace_limit", long = "trace-limit", value_name = "N", default_value_t = 1_000_000, value_parser = positive::<u64>,
          requires = "trace")]
    pub(crate) limit: u64,
}
