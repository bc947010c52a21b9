//! Options common to several commands that simulate or measure.

use clap::Args;
use command_line::progress::Show;

use super::numbers::{positive, seed};

/// Option for showing progress.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ProgressArgs {
    /// Show progress: on a terminal only, always, or never.
    #[arg(id = "progress", long, value_enum, default_value_t = Show::Auto, value_name = "WHEN")]
    pub(crate) show: Show,
}

/// Option for the number of rounds.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct RoundsArgs {
    /// Number of rounds of each measurement, including measurements for predictions. The result is the median of the
    /// rounds.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
}

/// Option for the seed of all randomness.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SeedArgs {
    /// Seed of all randomness.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
}

/// Option that changes values of the simulated machine.
#[derive(Args, Clone, Debug)]
pub(crate) struct SetArgs {
    /// Change a value in the machine's description.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// Option that limits the size of a trace.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TraceLimitArgs {
    /// Maximum number of slices, counts and messages in the trace; about 40 bytes each.
    #[arg(id = "trace_limit", long = "trace-limit", value_name = "N", default_value_t = 1_000_000, value_parser = positive::<u64>,
          requires = "trace")]
    pub(crate) limit: u64,
}
