//! The supported part of HTTP: requests of limited size without a body, and one answer each.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Maximum size of a request in bytes. Browsers send less than one thousand bytes, most of them about themselves.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Maximum number of header fields in a request.
const FIELDS_MAX: usize = 64;

/// Time limit for receiving a whole request.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Time limit for sending an answer, and the number of body bytes for which the limit is extended by one second.
const PATIENCE_WRITING: Duration = Duration::from_secs(30);
const BYTES_A_SECOND: usize = 64 << 10;

/// HTTP request.
#[derive(Debug, PartialEq, Eq)]
pub struct WebRequest {
    /// Method, such as `GET`.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Text after the question mark; empty if missing.
    pub query: String,
    /// Value of the `Host` field; `None` if it is missing or repeated.
    pub host: Option<String>,
}

/// HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebReply<'a> {
    /// Status code and its phrase, such as `200 OK`.
    pub status: &'static str,
    /// Media type of the body.
    pub kind: &'static str,
    /// Additional header fields, each terminated by a line break.
    pub fields: String,
    /// Body. For `HEAD` requests only its length is sent.
    pub body: &'a [u8],
}

impl<'a> WebReply<'a> {
    /// Returns a plain-text answer for a rejected request.
    pub fn plain(status: &'static str, body: &'a str) -> Self {
        WebReply { status, kind: "text/plain; charset=utf-8", fields: String::new(), body: body.as_bytes() }
    }
}

/// Reads a request. Returns `None` if the request is invalid or too large. Fails, or returns `None`, if the request is
/// not complete within `patience`.
pub(crate) fn read(stream: &mut TcpStream, patience: Duration) -> io::Result<Option<WebRequest>> {
    let end = Instant::now() + patience;
    let mut bytes = Vec::new();
    let mut piece = [0; 2048];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || bytes.len() > REQUEST_BYTES_MAX {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..count]);
        match understand(&bytes) {
            ParsedRequest::Whole(request) => return Ok(Some(request)),
            ParsedRequest::No => return Ok(None),
            ParsedRequest::Part if count == 0 => return Ok(None),
            ParsedRequest::Part => {}
        }
    }
}

enum ParsedRequest {
    Whole(WebRequest),
    Part,
    No,
}

fn understand(bytes: &[u8]) -> ParsedRequest {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return ParsedRequest::Part,
        Ok(httparse::Status::Complete(_)) => {}
        Err(_) => return ParsedRequest::No,
    }
    let mut hosts = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    let host = hosts.next().and_then(|field| str::from_utf8(field.value).ok()).map(str::to_owned);
    let host = host.filter(|_| hosts.next().is_none());
    let (Some(method), Some(target)) = (request.method, request.path) else { return ParsedRequest::No };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    ParsedRequest::Whole(WebRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        host,
    })
}

/// Writes an answer.
pub(crate) fn write(stream: &mut TcpStream, answer: &WebReply, with_body: bool) -> io::Result<()> {
    let WebReply { status, kind, fields, body } = answer;
    let head = format!(
        "HTTP/1.1 {status}\r\n\
         Content-Type: {kind}\r\n\
         Content-Length: {}\r\n\
         Connection: close\r\n\
         Cache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\n\
         Content-Security-Policy: frame-ancestors 'none'\r\n\
         {fields}\r\n",
        body.len()
    );
    let end = Instant::now() + PATIENCE_WRITING + Duration::from_secs((body.len() / BYTES_A_SECOND) as u64);
    write_until(stream, head.as_bytes(), end)?;
    if with_body {
        write_until(stream, body, end)?;
    }
    Ok(())
}

/// Writes all bytes; fails with `TimedOut` if the client has not received them by `end`.
fn write_until(stream: &mut TcpStream, mut bytes: &[u8], end: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(text: &str) -> Option<WebRequest> {
        match understand(text.as_bytes()) {
            ParsedRequest::Whole(request) => Some(request),
            ParsedRequest::Part | ParsedRequest::No => None,
        }
    }

    #[test]
    fn a_request_has_a_path_a_query_and_a_host() {
        let request = whole("GET /a/b?c=d HTTP/1.1\r\nhost: here:1\r\nother: x\r\n\r\n").unwrap();
        assert_eq!((&*request.method, &*request.path, &*request.query), ("GET", "/a/b", "c=d"));
        assert_eq!(request.host.as_deref(), Some("here:1"));
    }

    #[test]
    fn a_request_with_two_hosts_has_no_host() {
        assert_eq!(whole("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").unwrap().host, None);
        assert_eq!(whole("GET / HTTP/1.1\r\n\r\n").unwrap().host, None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            understand(&bytes);
        }
    }
}
