//! A workload: what several clients do that read or write one file at once, each with several requests under way.
//!
//! This is what `starfish bench --agents` does to agents, and what is predicted of them on a simulated machine. Which
//! requests it comes to is in `requests.rs`, how clients make them in `clients.rs`.

use std::ops::Range;

use machine::Duration;

use crate::Error;

/// What clients do with a file, all of them at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// In which order a client comes to the records of its part.
    pub order: Order,
    /// How many of a hundred requests read; the others write. Which, is drawn.
    pub reads_percent: u8,
    /// Bytes of the file. Every client has a part of its own, as nearly as can be of the same size.
    pub file_bytes: u64,
    /// Bytes of a request. The last record of the file may be shorter.
    pub record_bytes: u64,
    /// How many clients.
    pub clients: u32,
    /// How many requests each client has under way at once.
    pub outstanding: u32,
    /// How many requests each client makes. If neither this nor a time is given, one for each record of its part.
    pub requests: Option<u64>,
    /// The time after which a client begins no more requests.
    pub time: Option<Duration>,
    /// Where all randomness comes from.
    pub seed: u64,
}

/// In which order a client comes to the records of its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other, and from the beginning again.
    Sequential,
    /// In an order that is drawn, and drawn anew after each pass.
    Random,
}

impl Default for Workload {
    /// One client reads a file of 256 MiB from front to back, one block of 256 KiB after the other.
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
    /// Refuses settings that make no sense, in words for the user who has chosen them.
    pub fn check(&self) -> Result<(), Error> {
        let (file, record) = (self.file_bytes, self.record_bytes);
        let invalid = |why: String| Err(Error::Invalid(why));
        if file == 0 || record == 0 {
            return invalid("a file and its records must have at least one byte".into());
        }
        if record > file {
            return invalid(format!("a record of {record} bytes is larger than the file of {file}"));
        }
        if self.clients == 0 || self.outstanding == 0 {
            return invalid("there must be at least one client with one outstanding request".into());
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

    /// Refuses, besides, another number of members than clients.
    pub(crate) fn check_members(&self, members: u32) -> Result<(), Error> {
        self.check()?;
        let clients = self.clients;
        if clients != members {
            return Err(Error::Invalid(format!("{clients} clients on {members} compute nodes")));
        }
        Ok(())
    }

    /// Whether something may be read, so that it has to be there before.
    pub fn is_read(&self) -> bool {
        self.reads_percent > 0
    }

    /// Whether something may be written, so that it has to be flushed.
    pub fn is_written(&self) -> bool {
        self.reads_percent < 100
    }

    /// How many records the file has.
    pub fn records(&self) -> u64 {
        self.file_bytes.div_ceil(self.record_bytes)
    }

    /// The records that the client of this number comes to.
    pub fn part(&self, client: u32) -> Range<u64> {
        let begin = |client: u64| {
            let all = u128::from(self.records()) * u128::from(client);
            (all / u128::from(self.clients)) as u64
        };
        begin(u64::from(client))..begin(u64::from(client) + 1)
    }

    /// How many requests the client of this number makes, if it has the time.
    pub fn requests_of(&self, client: u32) -> u64 {
        let part = self.part(client);
        let pass = if self.time.is_some() { u64::MAX } else { part.end - part.start };
        self.requests.unwrap_or(pass)
    }

    /// This workload with at most `requests` requests of each client.
    pub fn with_at_most(&self, requests: u64) -> Workload {
        let is_more = (0..self.clients).any(|client| self.requests_of(client) > requests);
        Workload { requests: if is_more { Some(requests) } else { self.requests }, ..self.clone() }
    }
}
