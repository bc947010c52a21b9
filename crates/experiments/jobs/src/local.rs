//! Local disk: a plain program that reads a file sequentially, as a reference for speed.
//!
//! The operating system reads ahead for the program, so the disk always has a read in its queue. The program does not
//! use our file system, network or agents; its time is the baseline for their cost. The code is generic over the
//! machine, so that simulation and measurement run the same code.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use machine::{Buf, Condition, Disk, Duration, Machine, ObjectId, Payload, Result};

use crate::sequential::Program;
use crate::{Error, Member, Outcome};

/// Maximum number of reads in the disk's queue if each read is one page. Two reads keep the disk busy; more help if the
/// program is not scheduled for a while.
pub(crate) const PAGES_AHEAD: usize = 8;

/// A program that reads an object of its node's first disk sequentially.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalProgram {
    /// Name of the object.
    pub object: String,
    /// Number of bytes to read.
    pub bytes: u64,
    /// Size in bytes of a page, and of a read call of the program.
    pub page_bytes: u64,
    /// Computation time of the program for each page.
    pub work: Duration,
}

/// Part of the member in the job.
pub struct LocalPart<M: Machine> {
    job: LocalProgram,
    member: Member<M>,
}

impl LocalProgram {
    pub(crate) fn check(&self) -> std::result::Result<(), Error> {
        if self.bytes == 0 || self.page_bytes == 0 {
            return Err(Error::Invalid("a file and its pages need at least one byte".into()));
        }
        Ok(())
    }
}

impl<M: Machine> LocalPart<M> {
    pub(crate) fn prepare(job: &LocalProgram, member: Member<M>) -> Self {
        LocalPart { job: job.clone(), member }
    }

    pub(crate) async fn run(&self) -> std::result::Result<Outcome, Error> {
        let LocalProgram { object, bytes, page_bytes, work } = &self.job;
        let begin = self.member.machine.now();
        let mut program = Program::new(&self.member, *work);
        let mut reader =
            LocalReader::open(self.member.machine.clone(), object, *page_bytes, PAGES_AHEAD).await?;
        while let Some(page) = reader.next().await? {
            program.use_page(page).await?;
        }
        program.check_end(*bytes)?;
        let mut outcome = Outcome { elapsed: self.member.machine.now().since(begin), ..Outcome::default() };
        outcome.reads.bytes = *bytes;
        Ok(outcome)
    }
}

/// Sequential reader of an object of a machine's first disk, page by page with read-ahead. Each disk access reads one
/// page.
pub struct LocalReader<M: Machine> {
    machine: M,
    object: ObjectId,
    /// Offset in bytes of the data not requested yet. The next field is the number of bytes not requested yet.
    offset: u64,
    bytes: u64,
    page_bytes: u64,
    /// Number of pages to request ahead.
    pages_ahead: usize,
    ahead: VecDeque<Rc<Page>>,
}

/// A requested page.
#[derive(Default)]
struct Page {
    outcome: RefCell<Option<Result<Buf>>>,
    came: Condition,
}

impl<M: Machine> LocalReader<M> {
    /// Opens the object `name` of the machine's first disk, with read-ahead of `pages_ahead` pages. Fails if the object
    /// is missing.
    pub async fn open(machine: M, name: &str, page_bytes: u64, pages_ahead: usize) -> Result<Self> {
        let object = machine.disks()[0].open(name).await?;
        Ok(LocalReader {
            machine,
            object: object.id,
            offset: 0,
            bytes: object.bytes,
            page_bytes,
            pages_ahead,
            ahead: VecDeque::new(),
        })
    }

    /// Returns the next page, or `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Payload>> {
        while self.ahead.len() < self.pages_ahead && self.bytes > 0 {
            self.read_ahead().await;
        }
        let Some(page) = self.ahead.pop_front() else { return Ok(None) };
        while page.outcome.borrow().is_none() {
            page.came.wait().await;
        }
        let outcome = page.outcome.borrow_mut().take().expect("the page was read");
        outcome.map(|buffer| Some(buffer.slice(0..buffer.len())))
    }

    async fn read_ahead(&mut self) {
        let bytes = self.page_bytes.min(self.bytes);
        let buffer = self.machine.buffers().take(bytes).await;
        let (machine, object, offset) = (self.machine.clone(), self.object, self.offset);
        let page = Rc::<Page>::default();
        self.ahead.push_back(page.clone());
        (self.offset, self.bytes) = (offset + bytes, self.bytes - bytes);
        self.machine.spawn("reading ahead", async move {
            let outcome = machine.disks()[0].read(object, offset, buffer).await;
            *page.outcome.borrow_mut() = Some(outcome);
            page.came.wake_all();
            Ok(())
        });
    }
}
