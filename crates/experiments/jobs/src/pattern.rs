//! A group of nodes accesses one file in one of the reports' patterns.

use std::fmt;

use fs::{CollectiveMethod, CollectiveSettings, File, PageCache, PageCacheSettings, PagedFile};
use layout::{Chunk, Extent, Operation, Pattern, Problem, View};
use machine::{Machine, Memory, Work};

use crate::{Contents, Error, Member, Outcome};

/// A job in which each member of a group reads or writes its part of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternJob {
    /// Name of the file.
    pub file: String,
    /// Access pattern: the data of each member.
    pub pattern: Pattern,
    /// Size of the file and its records, and shape of the array in it.
    pub problem: Problem,
    /// Access method.
    pub access: PatternAccess,
}

/// Method by which the members of a group access their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternAccess {
    /// Independent requests of each member: one file request for each contiguous chunk.
    Requests,
    /// Independent requests of each member, through its page cache.
    Cached(PageCacheSettings),
    /// One collective call of all members.
    Collective(CollectiveSettings),
}

/// Part of a member in the job.
pub struct PatternPart<M: Machine> {
    job: PatternJob,
    member: Member<M>,
    view: View,
    memory: Memory,
    file: Opened<M>,
}

enum Opened<M: Machine> {
    Plain(File<M>),
    Paged(PagedFile<M>),
}

impl PatternJob {
    pub(crate) fn check(&self, members: u32) -> Result<(), Error> {
        let nodes = self.problem.nodes;
        if nodes != members {
            return Err(Error::Invalid(format!("a pattern for {nodes} compute nodes on {members}")));
        }
        if let PatternAccess::Cached(PageCacheSettings { bytes: 0, .. }) = self.access {
            return Err(Error::Invalid("a page cache needs at least one byte".into()));
        }
        self.pattern.view(&self.problem)?;
        Ok(())
    }
}

impl<M: Machine> PatternPart<M> {
    pub(crate) async fn prepare(job: &PatternJob, member: Member<M>) -> Result<Self, Error> {
        let client = member.client()?;
        let file = match job.access {
            PatternAccess::Cached(settings) => {
                let pages = PageCache::new(client.clone(), settings);
                Opened::Paged(member.open_in(&pages, &job.file).await?)
            }
            _ => Opened::Plain(member.open(&job.file).await?),
        };
        let view = job.pattern.view(&job.problem)?;
        let memory = member.contents.memory(view.node_bytes(member.rank()));
        if job.pattern.operation() == Operation::Write {
            for chunk in view.chunks(member.rank()) {
                let payload = member.contents.payload(chunk.file_offset, chunk.bytes);
                memory.place(chunk.memory_offset, &payload);
            }
        }
        Ok(PatternPart { job: job.clone(), member, view, memory, file })
    }

    pub(crate) async fn run(&self) -> Result<Outcome, Error> {
        let begin = self.member.machine.now();
        let operation = self.job.pattern.operation();
        match &self.file {
            Opened::Plain(file) => self.access(file, operation).await?,
            Opened::Paged(file) => self.access_pages(file, operation).await?,
        }
        let mut outcome = Outcome { elapsed: self.member.machine.now().since(begin), ..Outcome::default() };
        let moved = match operation {
            Operation::Read => &mut outcome.reads,
            Operation::Write => &mut outcome.writes,
        };
        moved.bytes = self.view.node_bytes(self.member.rank());
        Ok(outcome)
    }

    async fn access(&self, file: &File<M>, operation: Operation) -> fs::Result<()> {
        let PatternPart { member: Member { group, .. }, view, memory, .. } = self;
        match (self.job.access, operation) {
            (PatternAccess::Collective(settings), Operation::Read) => {
                file.read_collective(group, view, memory, settings).await
            }
            (PatternAccess::Collective(settings), Operation::Write) => {
                file.write_collective(group, view, memory, settings).await
            }
            // One file request for each contiguous chunk, one after the other.
            (_, operation) => {
                for chunk in view.chunks(self.member.rank()) {
                    let (offset, bytes, at) = (chunk.file_offset, chunk.bytes, chunk.memory_offset);
                    match operation {
                        Operation::Read => drop(file.read(offset, bytes, memory, at).await?),
                        Operation::Write => file.write(offset, bytes, memory, at).await?,
                    }
                }
                Ok(())
            }
        }
    }

    /// Accesses chunk after chunk in pieces that end at page boundaries, and copies each piece to or from the program's
    /// memory.
    async fn access_pages(&self, file: &PagedFile<M>, operation: Operation) -> fs::Result<()> {
        for chunk in self.view.chunks(self.member.rank()) {
            let mut done = 0;
            while done < chunk.bytes {
                let (offset, at) = (chunk.file_offset + done, chunk.memory_offset + done);
                let left = file.page_bytes() - offset % file.page_bytes();
                let bytes = left.min(chunk.bytes - done);
                let moved = match operation {
                    Operation::Read => file.read_some(offset, bytes).await?,
                    Operation::Write => self.memory.get(at, bytes),
                };
                if moved.is_empty() {
                    // The file ends too early. The check of the memory will detect this.
                    break;
                }
                self.member.machine.compute(Work::Copy { bytes: moved.len() }).await;
                done += moved.len();
                match operation {
                    Operation::Read => self.memory.place(at, &moved),
                    Operation::Write => file.write(offset, moved).await?,
                }
            }
        }
        if operation == Operation::Write {
            // Members do not share pages, so each flushes its pages to stable storage.
            file.flush().await?;
        }
        Ok(())
    }

    pub(crate) async fn finish(&self) -> Result<(), Error> {
        match (&self.file, self.job.pattern.operation()) {
            (Opened::Plain(file), Operation::Write) => Ok(file.flush_all().await?),
            _ => Ok(()),
        }
    }

    pub(crate) async fn check(&self) -> Result<(), Error> {
        match self.job.pattern.operation() {
            Operation::Read => self.check_memory(),
            // All members share the file, so only one member checks it.
            Operation::Write if self.member.rank() == 0 => self.check_file().await,
            Operation::Write => Ok(()),
        }
    }

    fn check_memory(&self) -> Result<(), Error> {
        let node = self.member.rank();
        match self.member.contents.first_wrong(&self.memory, self.view.chunks(node)) {
            None => Ok(()),
            Some(chunk) => {
                let (bytes, offset) = (chunk.bytes, chunk.file_offset);
                let text = format!("the {bytes} bytes of compute node {node} from file offset {offset}");
                Err(Error::WrongData(text))
            }
        }
    }

    async fn check_file(&self) -> Result<(), Error> {
        // Open the file with its stored size. This member's page cache may have another size.
        let file = self.member.open_written(&self.job.file).await?;
        check_file(&file, self.job.problem.file_bytes, self.member.contents).await
    }
}

/// Fails if a file does not have the expected contents of `bytes` bytes.
pub(crate) async fn check_file<M: Machine>(
    file: &File<M>,
    bytes: u64,
    contents: Contents,
) -> Result<(), Error> {
    let block_bytes = file.striping().block_bytes();
    let memory = contents.memory(bytes);
    let found = file.read(0, bytes, &memory, 0).await?;
    let block_at = |offset| {
        let Extent { bytes, .. } = Extent::new(offset, block_bytes).clip(bytes);
        Chunk { file_offset: offset, memory_offset: offset, bytes }
    };
    let blocks = (0..bytes).step_by(block_bytes as usize).map(block_at);
    match contents.first_wrong(&memory, blocks) {
        None if found == bytes => Ok(()),
        None => Err(Error::WrongData(format!("the file has {found} bytes instead of {bytes}"))),
        Some(Chunk { file_offset, .. }) => {
            Err(Error::WrongData(format!("the file's block at offset {file_offset}")))
        }
    }
}

impl fmt::Display for PatternJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.problem.record_bytes;
        write!(f, "{} {} with records of {record} bytes", self.access, self.pattern)
    }
}

impl fmt::Display for PatternAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PatternAccess::Requests => "traditional",
            PatternAccess::Cached(_) => "cached traditional",
            PatternAccess::Collective(settings) => match settings.method {
                CollectiveMethod::TwoPhase => "two-phase",
                CollectiveMethod::DiskDirected { .. } => "disk-directed",
            },
        })
    }
}
