//! stub
use crate::failure::Result;
use clap::Args;
/// Stub.
#[derive(Args)]
pub(crate) struct Arguments {}
/// Stub.
pub(crate) fn run(_: Arguments) -> Result<()> {
    Ok(())
}
