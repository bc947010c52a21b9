//! By which method a file is moved.

use clap::Args;
use transfer::one_file::{Method, Movers};

/// The options of the method.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct MethodArgs {
    /// How data get from disks to memory and back.
    #[arg(long, value_enum, default_value_t = Method::Traditional)]
    pub(crate) method: Method,

    /// Compute nodes in the group; only with `--method disk-directed`.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    compute_nodes: u32,
}

impl MethodArgs {
    pub(crate) fn movers(self) -> Movers {
        Movers { method: self.method, compute_nodes: self.compute_nodes }
    }
}
