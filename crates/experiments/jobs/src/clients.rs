//! Clients of a workload.
//!
//! ```text
//!  create the file; fill it and flush it, if it is read                 untimed
//!  client 0:  request, request, ...  K in flight           flush  --.
//!  client 1:  the same with its part of the file           flush    | the elapsed time
//!  ...        a read is checked after its latency was taken       --'
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use fs::File;
use layout::{Chunk, Extent, Operation};
use machine::{Instant, Machine, Memory, TaskGroup};

use crate::requests::{Request, Requests};
use crate::{Contents, Error, Member, Order, Outcome, Workload};

impl Workload {
    /// Fills the file with its contents and flushes it, unless the job only writes. Calls the callback with the size in
    /// bytes of each write.
    pub async fn lay_out<M: Machine>(
        &self,
        machine: &M,
        file: &File<M>,
        contents: Contents,
        on_bytes: impl Fn(u64) + 'static,
    ) -> Result<(), Error> {
        if !self.is_read() {
            return Ok(());
        }
        fill(machine, file, self.file_bytes, contents, on_bytes).await?;
        Ok(file.flush().await?)
    }

    /// Runs the client of this number, with the file open on its node. Calls the callback with the size in bytes of
    /// each transfer.
    pub async fn run<M: Machine>(
        &self,
        machine: &M,
        file: &File<M>,
        contents: Contents,
        client: u32,
        on_bytes: impl Fn(u64) + 'static,
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
            on_bytes: Box::new(on_bytes),
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

/// Writes the contents of a file sequentially, with several blocks in flight to each disk. Calls the callback with the
/// size in bytes of each write.
pub async fn fill<M: Machine>(
    machine: &M,
    file: &File<M>,
    file_bytes: u64,
    contents: Contents,
    on_bytes: impl Fn(u64) + 'static,
) -> Result<(), Error> {
    if file_bytes == 0 {
        return Ok(());
    }
    let striping = file.striping();
    let record_bytes = striping.block_bytes() * u64::from(striping.stripe_count());
    let outstanding = (LAYING_OUT_BYTES / record_bytes).clamp(LAYING_OUT_MIN, LAYING_OUT_MAX) as u32;
    let (order, reads_percent) = (Order::Sequential, 0);
    let laying_out =
        Workload { order, reads_percent, file_bytes, record_bytes, outstanding, ..Workload::default() };
    laying_out.run(machine, file, contents, 0, on_bytes).await.map(drop)
}

/// Target for the number of bytes in flight while a file is filled. Large blocks or many disks can exceed it.
const LAYING_OUT_BYTES: u64 = 8 << 20;

/// Limits for the number of requests in flight while a file is filled.
const LAYING_OUT_MIN: u64 = 2;
const LAYING_OUT_MAX: u64 = 32;

/// A running client.
struct Running<M: Machine> {
    machine: M,
    file: File<M>,
    contents: Contents,
    begin: Instant,
    /// Time from which the client starts no more requests.
    deadline: Option<Instant>,
    record_bytes: u64,
    requests: RefCell<Requests>,
    /// Number of requests that the client still has to make.
    left: Cell<u64>,
    outcome: RefCell<Outcome>,
    on_bytes: Box<dyn Fn(u64)>,
}

impl<M: Machine> Running<M> {
    /// Makes requests one after the other until no requests are left.
    async fn work(&self) -> Result<(), Error> {
        let memory = self.contents.memory(self.record_bytes);
        while let Some(request) = self.next() {
            match request.operation {
                Operation::Read => self.read(request.extent, &memory).await?,
                Operation::Write => self.write(request.extent, &memory).await?,
            }
            (self.on_bytes)(request.extent.bytes);
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

/// Part of a client in the job.
pub struct WorkloadPart<M: Machine> {
    workload: Workload,
    file: File<M>,
    member: Member<M>,
}

impl<M: Machine> WorkloadPart<M> {
    pub(crate) async fn prepare(name: &str, workload: &Workload, member: Member<M>) -> Result<Self, Error> {
        let file = member.open(name).await?;
        Ok(WorkloadPart { workload: workload.clone(), file, member })
    }

    pub(crate) async fn run(&self) -> Result<Outcome, Error> {
        let Member { machine, contents, .. } = &self.member;
        self.workload.run(machine, &self.file, *contents, self.member.rank(), |_| {}).await
    }
}
