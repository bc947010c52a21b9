//! A workload: several clients read or write one file at the same time, each with several requests in flight.
//!
//! `starfish bench --agents` runs workloads against agents, and simulations predict them. `requests.rs` generates the
//! sequence of requests; `clients.rs` sends them.

use std::ops::Range;

use machine::Duration;

use crate::Error;

/// Concurrent access of several clients to a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Order in which a client accesses the records of its part.
    pub order: Order,
    /// Percentage of reads among the requests; all others are writes. The choice is random for each request.
    pub reads_percent: u8,
    /// Size of the file in bytes. Every client accesses a separate part; the parts are as equal as possible.
    pub file_bytes: u64,
    /// Size of a request in bytes. The last record of the file may be shorter.
    pub record_bytes: u64,
    /// Number of clients.
    pub clients: u32,
    /// Number of requests that each client keeps in flight.
    pub outstanding: u32,
    /// Number of requests of each client. If this and `time` are both `None`, a client makes one request for each
    /// record of its part.
    pub requests: Option<u64>,
    /// Time from which a client starts no more requests.
    pub time: Option<Duration>,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Order in which a client accesses the records of its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Record by record, repeatedly from the beginning.
    Sequential,
    /// In random order, with a new order for each pass.
    Random,
}

impl Default for Workload {
    /// Returns a workload of one client that reads a file of 256 MiB sequentially, in blocks of 256 KiB.
    fn default() -> Self {
        Workload {
            order: Order::Sequential,
            reads_percent: 100,
            file_bytes: 256 << 20,
            record_bytes: 256 << 10,
            clients: 1,
            outstanding: 1,
            requests: None,
            time: None,
            seed: 1,
        }
    }
}

impl Workload {
    /// Rejects inconsistent settings, with a message for the user.
    pub fn check(&self) -> Result<(), Error> {
        let (file, record) = (self.file_bytes, self.record_bytes);
        let invalid = |why: String| Err(Error::Invalid(why));
        if file == 0 || record == 0 {
            return invalid("a file and its records need at least one byte".into());
        }
        if record > file {
            return invalid(format!("a record of {record} bytes is larger than the file of {file}"));
        }
        if self.clients == 0 || self.outstanding == 0 {
            return invalid("expected at least one client with one outstanding request".into());
        }
        if u64::from(self.clients) > self.records() {
            let (clients, records) = (self.clients, self.records());
            return invalid(format!("{clients} clients cannot share a file of {records} records"));
        }
        if self.reads_percent > 100 {
            return invalid(format!("{} of 100 requests cannot be reads", self.reads_percent));
        }
        if self.requests == Some(0) || self.time == Some(Duration::ZERO) {
            return invalid("a client must make at least one request".into());
        }
        Ok(())
    }

    /// Rejects inconsistent settings, and a number of members that differs from the number of clients.
    pub(crate) fn check_members(&self, members: u32) -> Result<(), Error> {
        self.check()?;
        let clients = self.clients;
        if clients != members {
            return Err(Error::Invalid(format!("{clients} clients on {members} compute nodes")));
        }
        Ok(())
    }

    /// True if the clients may read. Then the file must have its contents before the start.
    pub fn is_read(&self) -> bool {
        self.reads_percent > 0
    }

    /// True if the clients may write. Then the file must be flushed at the end.
    pub fn is_written(&self) -> bool {
        self.reads_percent < 100
    }

    /// Returns the number of records of the file.
    pub fn records(&self) -> u64 {
        self.file_bytes.div_ceil(self.record_bytes)
    }

    /// Returns the range of records that the client of this number accesses.
    pub fn part(&self, client: u32) -> Range<u64> {
        let begin = |client: u64| {
            let all = u128::from(self.records()) * u128::from(client);
            (all / u128::from(self.clients)) as u64
        };
        begin(u64::from(client))..begin(u64::from(client) + 1)
    }

    /// Returns the number of requests of this client, if its time limit does not end it before.
    pub fn requests_of(&self, client: u32) -> u64 {
        let part = self.part(client);
        let pass = if self.time.is_some() { u64::MAX } else { part.end - part.start };
        self.requests.unwrap_or(pass)
    }

    /// Returns this workload, limited to at most `requests` requests of each client.
    pub fn with_at_most(&self, requests: u64) -> Workload {
        let is_more = (0..self.clients).any(|client| self.requests_of(client) > requests);
        Workload { requests: if is_more { Some(requests) } else { self.requests }, ..self.clone() }
    }
}
