//! How often something is measured.

use clap::Args;

/// The option that says how often.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct RoundsArgs {
    /// Rounds of each measurement, and of what predictions are made from; the median counts.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
}
