//! Option for the access method.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use node::whole_file::Method;

/// Option for the access method.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct MethodArgs {
    /// Method for transferring data between the disks and this computer.
    #[arg(long, value_name = "METHOD", default_value = Method::Traditional.name(), value_parser = methods())]
    pub(crate) method: Method,
}

/// Returns a parser for the names of the methods, with a description of each.
fn methods() -> impl TypedValueParser<Value = Method> {
    let traditional = "Request one block after the other";
    let disk_directed =
        "Make one request for many blocks; the agents transfer them in the order of their disks";
    let method = |method: Method, help| PossibleValue::new(method.name()).help(help);
    let values = [method(Method::Traditional, traditional), method(Method::DiskDirected, disk_directed)];
    PossibleValuesParser::new(values).map(|name| match name == Method::Traditional.name() {
        true => Method::Traditional,
        false => Method::DiskDirected,
    })
}
