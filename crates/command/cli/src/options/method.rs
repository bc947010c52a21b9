//! By which method files are moved.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use node::whole_file::Method;

/// The option of the method.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct MethodArgs {
    /// How data get from the disks to this computer, or back.
    #[arg(long, value_name = "METHOD", default_value = Method::Traditional.name(), value_parser = methods())]
    pub(crate) method: Method,
}

/// The names of the methods, with what each does.
fn methods() -> impl TypedValueParser<Value = Method> {
    let traditional = "Request one block after the other";
    let disk_directed = "Make one request for many blocks; the agents move them in the order of their disks";
    let method = |method: Method, help| PossibleValue::new(method.name()).help(help);
    let values = [method(Method::Traditional, traditional), method(Method::DiskDirected, disk_directed)];
    PossibleValuesParser::new(values).map(|name| match name == Method::Traditional.name() {
        true => Method::Traditional,
        false => Method::DiskDirected,
    })
}
