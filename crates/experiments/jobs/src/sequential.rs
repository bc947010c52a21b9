//! A sequential program with a page cache, as in the measurements of the PDIOL thesis.
//!
//! ```text
//!  open; page by page: read or write it, copy it to or from the program, work on it; close
//! ```

use std::fmt;

use fs::{PageCache, PageCacheSettings, PagedFile};
use layout::Operation;
use machine::{Duration, Machine, Payload, Work};

use crate::{Contents, Error, Member, Outcome};

/// A program that accesses a file sequentially. If there are several members, all read the same file.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequential {
    /// Name of the file.
    pub file: String,
    /// Operation: the program reads the file or creates it.
    pub operation: Operation,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Size in bytes of a page, and of a read or write call of the program.
    pub page_bytes: u64,
    /// Settings of the page cache.
    pub cache: PageCacheSettings,
    /// Computation time of the program for each page. Pages continue to arrive during it, as on a node with a second
    /// processor.
    pub work: Duration,
}

/// Part of the member in the job.
pub struct SequentialPart<M: Machine> {
    job: Sequential,
    cache: PageCache<M>,
    member: Member<M>,
}

impl Sequential {
    pub(crate) fn check(&self, members: u32) -> Result<(), Error> {
        let invalid = |why: &str| Err(Error::Invalid(why.to_owned()));
        if self.file_bytes == 0 || self.page_bytes == 0 {
            return invalid("a file and its pages need at least one byte");
        }
        if members == 0 || self.operation == Operation::Write && members > 1 {
            return invalid(
                "a sequential program needs a compute node, and exactly one if it creates its file",
            );
        }
        Ok(())
    }
}

impl fmt::Display for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.operation == Operation::Read { "reading" } else { "making" };
        write!(f, "{verb} {} from front to back", self.file)
    }
}

impl<M: Machine> SequentialPart<M> {
    pub(crate) async fn prepare(job: &Sequential, member: Member<M>) -> Result<Self, Error> {
        let client = member.client()?;
        // Get the disk identities now; otherwise the open in the timed part would get them.
        client.disks_by_identity().await?;
        let cache = PageCache::new(client.clone(), job.cache);
        Ok(SequentialPart { job: job.clone(), cache, member })
    }

    pub(crate) async fn run(&self) -> Result<Outcome, Error> {
        let Sequential { file, operation, file_bytes, .. } = &self.job;
        let begin = self.member.machine.now();
        let opened = self.member.open_in(&self.cache, file).await?;
        let mut outcome = Outcome::default();
        match operation {
            Operation::Read => {
                self.read(opened).await?;
                outcome.reads.bytes = *file_bytes;
            }
            Operation::Write => {
                self.write(opened).await?;
                outcome.writes.bytes = *file_bytes;
            }
        }
        outcome.elapsed = self.member.machine.now().since(begin);
        Ok(outcome)
    }

    async fn read(&self, file: PagedFile<M>) -> Result<(), Error> {
        let mut program = Program::new(&self.member, self.job.work);
        loop {
            let page = file.read(program.offset, self.job.page_bytes).await?;
            if page.is_empty() {
                break;
            }
            program.use_page(page).await?;
        }
        program.check_end(self.job.file_bytes)?;
        Ok(file.close().await?)
    }

    async fn write(&self, file: PagedFile<M>) -> Result<(), Error> {
        let Sequential { file_bytes, page_bytes, .. } = self.job;
        let mut program = Program::new(&self.member, self.job.work);
        while program.offset < file_bytes {
            let offset = program.offset;
            let page = self.member.contents.payload(offset, page_bytes.min(file_bytes - offset));
            program.use_page(page.clone()).await?;
            file.write(offset, page).await?;
        }
        file.flush().await?;
        Ok(file.close().await?)
    }
}

/// Use of pages by a program, from any source.
pub(crate) struct Program<'a, M: Machine> {
    machine: &'a M,
    contents: Contents,
    work: Duration,
    /// Offset of the next page, in bytes.
    pub(crate) offset: u64,
}

impl<'a, M: Machine> Program<'a, M> {
    /// Creates a program that computes for `work` on each page.
    pub(crate) fn new(member: &'a Member<M>, work: Duration) -> Self {
        Program { machine: &member.machine, contents: member.contents, work, offset: 0 }
    }

    /// Checks the next page, copies it to or from the program's memory, and computes on it.
    pub(crate) async fn use_page(&mut self, page: Payload) -> Result<(), Error> {
        if page != self.contents.payload(self.offset, page.len()) {
            return Err(Error::WrongData(format!("the page at offset {}", self.offset)));
        }
        self.machine.compute(Work::Copy { bytes: page.len() }).await;
        if !self.work.is_zero() {
            self.machine.sleep_until(self.machine.now() + self.work).await;
        }
        self.offset += page.len();
        Ok(())
    }

    /// Fails unless the file has ended after `bytes` bytes.
    pub(crate) fn check_end(&self, bytes: u64) -> Result<(), Error> {
        if self.offset == bytes {
            return Ok(());
        }
        Err(Error::WrongData(format!("the file ends after {} bytes, not {bytes}", self.offset)))
    }
}
