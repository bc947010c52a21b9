//! HTTP server of the metrics: `GET /metrics`.
//!
//! Access needs no key, and no metric is secret: any client that can connect can read the load of this node, but cannot
//! change anything. So the server listens on loopback unless another address is configured.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;

use web::{WebClient, WebListener, WebReply, WebRequest};

use crate::samples::Samples;

/// Environment variable with the address of a node's metrics server.
pub const METRICS_VARIABLE: &str = "STARFISH_METRICS";

/// Path of the metrics.
const PATH: &str = "/metrics";

const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const INDEX: &str = "<!doctype html><title>Starfish</title><a href=\"metrics\">Metrics for Prometheus</a>\n";

/// Metrics server with a listening socket.
pub struct MetricsServer(WebListener);

/// Parses an address. Returns it, and its host as written. The forms are `PORT` for loopback, `HOST:PORT`, and `:PORT`
/// for all networks of this computer. A port of the form `+N` is `own_port`, the listening port of the node, plus N.
///
/// # Errors
/// If the text has none of these forms, the host is unknown, or `own_port` is missing for `+N`.
pub fn parse_address(text: &str, own_port: Option<u16>) -> io::Result<(SocketAddr, String)> {
    let (host, port) = match text.rsplit_once(':') {
        None => ("127.0.0.1", text),
        Some(("", port)) => ("0.0.0.0", port),
        Some(parts) => parts,
    };
    let port = match port.strip_prefix('+') {
        None => number(port)?,
        Some(above) => {
            let own = own_port.ok_or_else(|| io::Error::other("the port of the node is unknown"))?;
            let sum = own.checked_add(number(above)?);
            sum.ok_or_else(|| io::Error::other(format!("the port {own} plus {above} is too large")))?
        }
    };
    let full = format!("{host}:{port}");
    let address =
        full.to_socket_addrs()?.next().ok_or_else(|| io::Error::other("the host has no address"))?;
    Ok((address, host.to_owned()))
}

fn number(text: &str) -> io::Result<u16> {
    // `parse` would accept a plus sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text);
    let port = digits.and_then(|digits| digits.parse().ok());
    port.ok_or_else(|| io::Error::other(format!("{text:?} is not a port")))
}

impl MetricsServer {
    /// Listens at `address`; port 0 means any free port. `name` is an additional host name for requests.
    ///
    /// # Errors
    /// If the address is in use, or does not belong to this computer.
    pub fn open(address: SocketAddr, name: String) -> io::Result<MetricsServer> {
        WebListener::open(address, Some(name)).map(MetricsServer)
    }

    /// Returns the URL of the metrics.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.0.address())
    }

    /// Answers requests on separate threads until the process ends. `look` returns the current values, or `None` if the
    /// node does not answer in time.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn serve(self, look: impl Fn() -> Option<Samples> + Send + Sync + 'static) -> io::Result<()> {
        let door = self.0;
        let serve = move || door.let_in(move |request, client| answer(request, client, &look));
        thread::Builder::new().name("metrics".into()).spawn(serve).map(drop)
    }
}

fn answer(request: &WebRequest, client: WebClient, look: &impl Fn() -> Option<Samples>) -> io::Result<()> {
    match &*request.path {
        PATH => match look().map(Samples::into_text) {
            Some(text) => client.reply(&reply(KIND, &text)),
            None => client.reply(&WebReply::plain("503 Service Unavailable", "the node does not answer\n")),
        },
        "/" => client.reply(&reply("text/html; charset=utf-8", INDEX)),
        _ => client.reply(&WebReply::plain("404 Not Found", "only /metrics exists here\n")),
    }
}

fn reply<'a>(kind: &'static str, body: &'a str) -> WebReply<'a> {
    WebReply { status: "200 OK", kind, fields: String::new(), body: body.as_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metrics_address_needs_a_port() {
        let parsed = |text| parse_address(text, Some(7117)).map(|(address, _)| address.to_string()).ok();
        assert_eq!(parsed("9100").as_deref(), Some("127.0.0.1:9100"));
        assert_eq!(parsed(":9100").as_deref(), Some("0.0.0.0:9100"));
        assert_eq!(parsed("[::1]:9100").as_deref(), Some("[::1]:9100"));
        assert_eq!(parsed("+2000").as_deref(), Some("127.0.0.1:9117"));
        assert_eq!(parsed(":+0").as_deref(), Some("0.0.0.0:7117"));
        assert_eq!(parse_address("localhost:1", None).expect("an address").1, "localhost");
        assert!(parse_address("+1", None).is_err());
        for wrong in ["", ":", "+", "++1", "+60000", "70000", "host", "127.0.0.1"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
