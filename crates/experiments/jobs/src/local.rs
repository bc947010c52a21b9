//! A disk used locally: what a plain program gets of it when it reads a file from front to back.
//!
//! The operating system reads ahead for the program, so a read is always in line at the disk. There is no file system
//! of ours, no network and no agent: it is the yardstick for their cost. Generic over the machine, to be the same on
//! both.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use machine::{Buf, Condition, Disk, Duration, Machine, ObjectId, Payload, Result};

use crate::sequential::Program;
use crate::{Error, Member, Outcome};

/// Reads in line at the disk, at most, if they are of a page each. Two keep it busy; more help a program that is kept
/// from running for a while.
pub(crate) const PAGES_AHEAD: usize = 8;

/// A program that reads an object of its own node's first disk from front to back.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalProgram {
    /// The object.
    pub object: String,
    /// Bytes of it.
    pub bytes: u64,
    /// Bytes of a page, and of a call of the program.
    pub page_bytes: u64,
    /// What the program itself works on each page.
    pub work: Duration,
}

/// One program's part in a job.
pub struct LocalPart<M: Machine> {
    job: LocalProgram,
    member: Member<M>,
}

impl LocalProgram {
    pub(crate) fn check(&self) -> std::result::Result<(), Error> {
        if self.bytes == 0 || self.page_bytes == 0 {
            return Err(Error::Invalid("a file and its pages must have at least one byte".into()));
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

/// Reads an object of the first disk of a machine, page by page, ahead of its caller. A page is what one access reads.
pub struct LocalReader<M: Machine> {
    machine: M,
    object: ObjectId,
    /// Bytes that have not been asked for yet, and where they begin.
    offset: u64,
    bytes: u64,
    page_bytes: u64,
    /// How many pages are asked for ahead.
    pages_ahead: usize,
    ahead: VecDeque<Rc<Page>>,
}

/// A page that has been asked for.
#[derive(Default)]
struct Page {
    outcome: RefCell<Option<Result<Buf>>>,
    came: Condition,
}

impl<M: Machine> LocalReader<M> {
    /// Opens the object `name` of the machine's first disk, to be read `pages_ahead` pages ahead. Fails if there is
    /// none.
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

    /// The next page, or `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Payload>> {
        while self.ahead.len() < self.pages_ahead && self.bytes > 0 {
            self.read_ahead().await;
        }
        let Some(page) = self.ahead.pop_front() else { return Ok(None) };
        while page.outcome.borrow().is_none() {
            page.came.wait().await;
        }
        let outcome = page.outcome.borrow_mut().take().expect("it has come");
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
