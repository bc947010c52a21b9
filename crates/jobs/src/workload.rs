//! A workload: several clients that read or write one file at once, each with several requests under way.
//!
//! This is what `starfish bench --agents` does to agents, and what is predicted of them on a simulated machine.
//!
//! ```text
//!  make the file; lay it out, and commit it, if it is read              untimed
//!  client 0:  request, request, ...  K under way at once   flush  --.
//!  client 1:  the same with its own part of the file       flush    | the elapsed time
//!  ...        reads are checked after their latency was taken     --'
//! ```

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use fs::File;
use layout::{Chunk, Extent, Operation};
use machine::{Duration, Instant, Machine, Memory, TaskGroup};

use crate::requests::{Request, Requests};
use crate::{Contents, Error, Member, Outcome};

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
    /// Refuses what makes no sense, in words for whoever has chosen it.
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

    /// The same with so many requests of each client at most.
    pub fn with_at_most(&self, requests: u64) -> Workload {
        let is_more = (0..self.clients).any(|client| self.requests_of(client) > requests);
        Workload { requests: if is_more { Some(requests) } else { self.requests }, ..self.clone() }
    }

    /// Fills the file with its contents and finishes it, unless nothing is read of it. `told` hears of bytes written.
    pub async fn lay_out<M: Machine>(
        &self,
        machine: &M,
        file: &File<M>,
        contents: Contents,
        told: impl Fn(u64) + 'static,
    ) -> Result<(), Error> {
        if !self.is_read() {
            return Ok(());
        }
        fill(machine, file, self.file_bytes, contents, told).await?;
        Ok(file.commit().await?)
    }

    /// Does what the client of this number does, with the file open on its node. `told` hears of bytes moved.
    pub async fn run<M: Machine>(
        &self,
        machine: &M,
        file: &File<M>,
        contents: Contents,
        client: u32,
        told: impl Fn(u64) + 'static,
    ) -> Result<Outcome, Error> {
        let running = Rc::new(Running {
            machine: machine.clone(),
            file: file.clone(),
            contents,
            begin: machine.now(),
            deadline: self.time.map(|time| machine.now() + time),
            record_bytes: self.record_bytes,
            requests: RefCell::new(Requests::new(self, client)),
            left: Cell::new(self.requests_of(client)),
            outcome: RefCell::default(),
            told: Box::new(told),
        });
        let all = TaskGroup::<Error>::new();
        for _ in 0..self.outstanding {
            let running = running.clone();
            all.spawn(machine, "request after request", async move { running.work().await });
        }
        all.join_or_fail().await?;
        let mut outcome = running.outcome.take();
        if self.is_written() {
            let begin = machine.now();
            file.flush().await?;
            outcome.flush = machine.now().since(begin);
        }
        outcome.elapsed = machine.now().since(running.begin);
        Ok(outcome)
    }
}

/// Fills a file with its contents, from front to back, with some blocks under way to every disk. `told` hears of bytes
/// written.
pub async fn fill<M: Machine>(
    machine: &M,
    file: &File<M>,
    file_bytes: u64,
    contents: Contents,
    told: impl Fn(u64) + 'static,
) -> Result<(), Error> {
    let striping = file.striping();
    let record_bytes = striping.block_bytes() * u64::from(striping.stripe_count());
    let outstanding = (LAYING_OUT_BYTES / record_bytes).clamp(LAYING_OUT_MIN, LAYING_OUT_MAX) as u32;
    let (order, reads_percent) = (Order::Sequential, 0);
    let laying_out =
        Workload { order, reads_percent, file_bytes, record_bytes, outstanding, ..Workload::default() };
    laying_out.run(machine, file, contents, 0, told).await.map(drop)
}

/// Bytes under way while a file is laid out, if its blocks and disks allow that few.
const LAYING_OUT_BYTES: u64 = 8 << 20;

/// Requests under way while a file is laid out.
const LAYING_OUT_MIN: u64 = 2;
const LAYING_OUT_MAX: u64 = 32;

/// A client at work.
struct Running<M: Machine> {
    machine: M,
    file: File<M>,
    contents: Contents,
    begin: Instant,
    /// When it begins no more requests.
    deadline: Option<Instant>,
    record_bytes: u64,
    requests: RefCell<Requests>,
    /// How many requests it has still to make.
    left: Cell<u64>,
    outcome: RefCell<Outcome>,
    told: Box<dyn Fn(u64)>,
}

impl<M: Machine> Running<M> {
    /// Makes one request after the other, as long as there are any.
    async fn work(&self) -> Result<(), Error> {
        let memory = self.contents.memory(self.record_bytes);
        while let Some(request) = self.next() {
            match request.operation {
                Operation::Read => self.read(request.extent, &memory).await?,
                Operation::Write => self.write(request.extent, &memory).await?,
            }
            (self.told)(request.extent.bytes);
        }
        Ok(())
    }

    fn next(&self) -> Option<Request> {
        let is_late = self.deadline.is_some_and(|deadline| self.machine.now() >= deadline);
        if self.left.get() == 0 || is_late {
            return None;
        }
        self.left.set(self.left.get() - 1);
        self.requests.borrow_mut().next()
    }

    async fn read(&self, extent: Extent, memory: &Memory) -> Result<(), Error> {
        let begin = self.machine.now();
        let found = self.file.read(extent.offset, extent.bytes, memory, 0).await?;
        let end = self.machine.now();
        let record = Chunk { file_offset: extent.offset, memory_offset: 0, bytes: extent.bytes };
        let wrong = self.contents.first_wrong(memory, std::iter::once(record));
        let mut outcome = self.outcome.borrow_mut();
        outcome.reads.take_in(extent.bytes, end.since(begin));
        outcome.own_work += self.machine.now().since(end);
        if found < extent.bytes {
            return Err(Error::WrongData(format!("the file ends after {} bytes", extent.offset + found)));
        }
        let why = |_| Error::WrongData(format!("the {} bytes at offset {}", extent.bytes, extent.offset));
        wrong.map_or(Ok(()), |record| Err(why(record)))
    }

    async fn write(&self, extent: Extent, memory: &Memory) -> Result<(), Error> {
        let making = self.machine.now();
        memory.place(0, &self.contents.payload(extent.offset, extent.bytes));
        let begin = self.machine.now();
        self.file.write(extent.offset, extent.bytes, memory, 0).await?;
        let latency = self.machine.now().since(begin);
        let mut outcome = self.outcome.borrow_mut();
        outcome.writes.take_in(extent.bytes, latency);
        outcome.own_work += begin.since(making);
        Ok(())
    }
}

/// One client's part in a job.
pub struct WorkloadPart<M: Machine> {
    workload: Workload,
    file: File<M>,
    member: Member<M>,
}

impl<M: Machine> WorkloadPart<M> {
    pub(crate) async fn prepare(name: &str, workload: &Workload, member: Member<M>) -> Result<Self, Error> {
        let file = member.client()?.open_unfinished(name).await?;
        Ok(WorkloadPart { workload: workload.clone(), file, member })
    }

    pub(crate) async fn run(&self) -> Result<Outcome, Error> {
        let Member { machine, contents, .. } = &self.member;
        self.workload.run(machine, &self.file, *contents, self.member.rank(), |_| {}).await
    }
}
