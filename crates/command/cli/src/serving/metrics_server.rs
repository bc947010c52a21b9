//! Metrics server of agents and mounts, opened by the option `--metrics`.

use command_line::failure::{Failure, Result};
use metrics::{MetricsServer, Samples, parse_address};

/// Opens a metrics server at `address`, if there is one. `own_port` is the port at which the node listens. `write` is
/// the remedy for an invalid address, `give_another` that for an address in use.
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

/// Serves the values that `look` returns, until the process ends.
pub(crate) fn serve(
    server: MetricsServer,
    look: impl Fn() -> Option<Samples> + Send + Sync + 'static,
) -> Result<()> {
    let url = server.url();
    server.serve(look).map_err(|error| Failure::new("cannot serve metrics", error))?;
    log::info!("metrics: {url}");
    Ok(())
}
