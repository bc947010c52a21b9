//! The server for numbers of agents and mounts, as their option `--metrics` asks for it.

use command_line::failure::{Failure, Result};
use metrics::{MetricsServer, Samples, parse_address};

/// A server at the address that was named, if one was. `own_port` is where the node listens; `write` and
/// `give_another` say what to do if the address is none, or cannot be had.
pub(crate) fn open(
    address: Option<&str>,
    own_port: Option<u16>,
    write: &str,
    give_another: &str,
) -> Result<Option<MetricsServer>> {
    let Some(address) = address.filter(|address| !address.is_empty()) else { return Ok(None) };
    let what = || format!("--metrics {address}");
    let (found, name) =
        parse_address(address, own_port).map_err(|error| Failure::usage(what(), error).remedy(write))?;
    let server = MetricsServer::open(found, name);
    server.map(Some).map_err(|error| Failure::new(what(), error).remedy(give_another))
}

/// Serves what `look` sees, until the process ends.
pub(crate) fn serve(
    server: MetricsServer,
    look: impl Fn() -> Option<Samples> + Send + Sync + 'static,
) -> Result<()> {
    let url = server.url();
    server.serve(look).map_err(|error| Failure::new("serving metrics", error))?;
    log::info!("metrics: {url}");
    Ok(())
}
