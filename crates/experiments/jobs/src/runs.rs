//! The runs of a job: reads of its input runs, and write-behind for its output run.
//!
//! A run is a file of blocks in order. A job requests several consecutive blocks from a disk at once: a *batch*. A
//! batch is one block of the file; the last batch of a run may be shorter. A run has at most one batch in flight, and
//! two in memory:
//!
//! ```text
//!   run    | used | in memory, to be used | in flight |          on its disk          |
//!                 ^ used                  ^ arrived   ^ asked                    blocks ^
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use fs::File;
use layout::Chunk;
use machine::{Condition, Duration, Instant, Machine, Memory, Payload, TaskGroup};

use crate::timeline::{JobTimeline, JobWait, WaitCause, WriteStep};
use crate::{Contents, Error, Member};

/// A run: a file of `blocks` blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Name of the file.
    pub file: String,
    /// Number of blocks.
    pub blocks: u64,
}

/// The runs of a job, and the numbers of blocks that the job reads and writes at once.
///
/// The input files should have a block size of `read_blocks` blocks, and the output file one of `write_blocks` blocks.
/// Otherwise each request becomes several disk requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSet {
    /// Input runs, by number.
    pub inputs: Vec<Run>,
    /// Name of the file of the output run, which must exist and be empty.
    pub output: String,
    /// Size of a block in bytes.
    pub block_bytes: u64,
    /// b_r: number of blocks read at once.
    pub read_blocks: u64,
    /// b_w: number of blocks written at once.
    pub write_blocks: u64,
}

impl RunSet {
    /// Rejects inconsistent settings, with a message for the user.
    pub(crate) fn check(&self, members: u32) -> Result<(), Error> {
        let invalid = |why: String| Err(Error::Invalid(why));
        let RunSet { inputs, block_bytes, read_blocks, write_blocks, .. } = self;
        if members != 1 {
            return invalid(format!("a job that merges runs needs one node, not {members}"));
        }
        if *block_bytes == 0 {
            return invalid("a block needs at least one byte".into());
        }
        for (what, blocks) in [("read", *read_blocks), ("written", *write_blocks)] {
            let most = u64::from(u32::MAX) / block_bytes;
            if blocks == 0 || blocks > most {
                return invalid(format!("{blocks} blocks are {what} at once; expected 1 to {most}"));
            }
        }
        if inputs.is_empty() || inputs.iter().any(|run| run.blocks == 0) {
            return invalid("expected at least one input run, with at least one block each".into());
        }
        if let Some(run) = inputs.iter().find(|run| run.blocks > u64::from(u32::MAX)) {
            return invalid(format!("{} has {} blocks; expected at most {}", run.file, run.blocks, u32::MAX));
        }
        Ok(())
    }

    /// Returns the number of blocks of all input runs, which equals the number of blocks of the output.
    pub fn blocks(&self) -> u64 {
        self.inputs.iter().map(|run| run.blocks).sum()
    }
}

/// An open input run.
struct Input<M: Machine> {
    file: File<M>,
    blocks: u64,
    /// Buffers for batches, which are used in turn.
    batches: [Memory; 2],
    asked: Cell<u64>,
    arrived: Cell<u64>,
    used: Cell<u64>,
}

/// The input runs of a running job.
pub(crate) struct InputRuns<M: Machine> {
    machine: M,
    contents: Contents,
    block_bytes: u64,
    read_blocks: u64,
    runs: Vec<Rc<Input<M>>>,
    /// Number of blocks that were requested and not yet used.
    held: Cell<u64>,
    reads: TaskGroup<Error>,
    /// Woken when a batch has arrived or its read has failed.
    arrival: Rc<Condition>,
}

impl<M: Machine> InputRuns<M> {
    pub(crate) async fn open(set: &RunSet, member: &Member<M>) -> Result<Self, Error> {
        let mut runs = Vec::new();
        for Run { file, blocks } in &set.inputs {
            let file = member.open(file).await?;
            let batch = || member.contents.memory(set.read_blocks * set.block_bytes);
            let (batches, count) = ([batch(), batch()], Cell::default);
            let input =
                Input { file, blocks: *blocks, batches, asked: count(), arrived: count(), used: count() };
            runs.push(Rc::new(input));
        }
        Ok(InputRuns {
            machine: member.machine.clone(),
            contents: member.contents,
            block_bytes: set.block_bytes,
            read_blocks: set.read_blocks,
            runs,
            held: Cell::new(0),
            reads: TaskGroup::new(),
            arrival: Rc::default(),
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.runs.len()
    }

    /// Returns the number of blocks that were requested and not yet used.
    pub(crate) fn held(&self) -> u64 {
        self.held.get()
    }

    /// Returns the number of blocks in the next batch of a run; 0 if the whole run has been requested.
    pub(crate) fn next_batch(&self, run: usize) -> u64 {
        let input = &self.runs[run];
        (input.blocks - input.asked.get()).min(self.read_blocks)
    }

    /// Requests the next batch of a run, if any, without waiting for it.
    pub(crate) fn ask(&self, run: usize) {
        let (input, blocks, first) =
            (self.runs[run].clone(), self.next_batch(run), self.runs[run].asked.get());
        if blocks == 0 {
            return;
        }
        debug_assert_eq!(first, input.arrived.get(), "a run has at most one batch in flight");
        input.asked.set(first + blocks);
        self.held.set(self.held.get() + blocks);
        let (arrival, contents, block_bytes) = (self.arrival.clone(), self.contents, self.block_bytes);
        let memory = input.batch_of(first, self.read_blocks).clone();
        self.reads.spawn(&self.machine, "batch of a run", async move {
            let (offset, bytes) = (first * block_bytes, blocks * block_bytes);
            let read = input.file.read(offset, bytes, &memory, 0).await;
            // Wake waiting tasks even after a failure, so that they fail instead of hanging.
            arrival.wake_all();
            let found = read?;
            let batch = Chunk { file_offset: offset, memory_offset: 0, bytes };
            if found < bytes || contents.first_wrong(&memory, std::iter::once(batch)).is_some() {
                let why = format!("the {bytes} bytes at offset {offset} of {}", input.file.name());
                return Err(Error::WrongData(why));
            }
            input.arrived.set(first + blocks);
            Ok(())
        });
    }

    /// Waits until all requested blocks of these runs have arrived.
    pub(crate) async fn wait_for_all(&self, runs: impl Iterator<Item = usize> + Clone) -> Result<(), Error> {
        self.wait_until(|| runs.clone().all(|run| self.runs[run].arrived == self.runs[run].asked)).await
    }

    /// Waits until the next block of a run has arrived.
    pub(crate) async fn wait_for(&self, run: usize) -> Result<(), Error> {
        self.wait_until(|| self.runs[run].arrived > self.runs[run].used).await
    }

    async fn wait_until(&self, is_there: impl Fn() -> bool) -> Result<(), Error> {
        while !is_there() {
            if self.reads.has_failed() {
                return self.reads.join_or_fail().await;
            }
            self.arrival.wait().await;
        }
        Ok(())
    }

    /// Uses the next block of a run, which must have arrived. Returns the number and the data of the block.
    pub(crate) fn take(&self, run: usize) -> (u64, Payload) {
        let input = &self.runs[run];
        let block = input.used.get();
        input.used.set(block + 1);
        self.held.set(self.held.get() - 1);
        let at = block % self.read_blocks * self.block_bytes;
        (block, input.batch_of(block, self.read_blocks).get(at, self.block_bytes))
    }

    /// True if all blocks of a run have been used.
    pub(crate) fn is_used_up(&self, run: usize) -> bool {
        self.runs[run].used.get() == self.runs[run].blocks
    }

    /// Returns the number of bytes in all used blocks.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.used.get() * self.block_bytes).sum()
    }

    /// True if the next block of a run has arrived.
    pub(crate) fn has_next(&self, run: usize) -> bool {
        self.runs[run].arrived > self.runs[run].used
    }
}

impl<M: Machine> Input<M> {
    fn batch_of(&self, block: u64, read_blocks: u64) -> &Memory {
        &self.batches[(block / read_blocks % 2) as usize]
    }
}

/// The output run of a running job. Blocks are collected, and written in the background when b_w are complete.
pub(crate) struct RunOutput<M: Machine> {
    machine: M,
    file: File<M>,
    contents: Contents,
    block_bytes: u64,
    write_blocks: u64,
    gathered: RefCell<Gathered>,
    /// For each block of the output, the index of the source block in its run.
    made: RefCell<Vec<u32>>,
    /// Number of output blocks that are not on the disk yet.
    unwritten: Rc<Cell<u64>>,
    writes: TaskGroup<Error>,
    /// Woken when a write has completed or failed.
    written: Rc<Condition>,
    begin: Instant,
    timeline: Rc<RefCell<JobTimeline>>,
}

/// Blocks collected for the next write.
struct Gathered {
    memory: Memory,
    blocks: u64,
}

impl<M: Machine> RunOutput<M> {
    /// Creates the output of a job that starts now.
    pub(crate) fn new(file: File<M>, set: &RunSet, member: &Member<M>) -> Self {
        let memory = member.contents.memory(set.write_blocks * set.block_bytes);
        RunOutput {
            machine: member.machine.clone(),
            file,
            contents: member.contents,
            block_bytes: set.block_bytes,
            write_blocks: set.write_blocks,
            gathered: RefCell::new(Gathered { memory, blocks: 0 }),
            made: RefCell::default(),
            unwritten: Rc::default(),
            writes: TaskGroup::new(),
            written: Rc::default(),
            begin: member.machine.now(),
            timeline: Rc::default(),
        }
    }

    /// Adds a block to the output, made from block `block` of a run.
    pub(crate) fn make(&self, block: u64, data: &Payload) {
        let mut gathered = self.gathered.borrow_mut();
        gathered.memory.place(gathered.blocks * self.block_bytes, data);
        gathered.blocks += 1;
        self.made.borrow_mut().push(block as u32);
        self.unwritten.set(self.unwritten.get() + 1);
    }

    /// Starts a write if b_w blocks have been collected.
    pub(crate) fn write_if_full(&self) {
        if self.gathered.borrow().blocks == self.write_blocks {
            self.start_write();
        }
    }

    fn start_write(&self) {
        let memory = self.contents.memory(self.write_blocks * self.block_bytes);
        let Gathered { memory, blocks } = self.gathered.replace(Gathered { memory, blocks: 0 });
        if blocks == 0 {
            return;
        }
        let first = self.made.borrow().len() as u64 - blocks;
        let (file, machine, block_bytes, begin) =
            (self.file.clone(), self.machine.clone(), self.block_bytes, self.begin);
        let (timeline, unwritten, written) =
            (self.timeline.clone(), self.unwritten.clone(), self.written.clone());
        let step = WriteStep { at: machine.now().since(begin), blocks, is_done: false };
        timeline.borrow_mut().writes.push(step);
        self.writes.spawn(&self.machine, "write behind", async move {
            let done = file.write_through(first * block_bytes, blocks * block_bytes, &memory, 0).await;
            unwritten.set(unwritten.get() - blocks);
            let step = WriteStep { at: machine.now().since(begin), blocks, is_done: true };
            timeline.borrow_mut().writes.push(step);
            written.wake_all();
            Ok(done?)
        });
    }

    /// Returns the number of output blocks that are not on the disk yet.
    pub(crate) fn unwritten(&self) -> u64 {
        self.unwritten.get()
    }

    /// Waits until a write completes.
    pub(crate) async fn wait_for_write(&self) -> Result<(), Error> {
        if self.writes.has_failed() {
            return self.writes.join_or_fail().await;
        }
        self.written.wait().await;
        Ok(())
    }

    /// Awaits `wait`. If it takes any time, records its cause, begin and end.
    pub(crate) async fn note_wait(
        &self,
        cause: WaitCause,
        wait: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        let begin = self.machine.now();
        wait.await?;
        let end = self.machine.now();
        if end > begin {
            let (begin, end) = (begin.since(self.begin), end.since(self.begin));
            self.timeline.borrow_mut().waits.push(JobWait { begin, end, cause });
        }
        Ok(())
    }

    /// Writes the remaining blocks, waits until all data are on stable storage, and returns the timeline.
    pub(crate) async fn finish(&self) -> Result<JobTimeline, Error> {
        self.start_write();
        self.note_wait(WaitCause::Writes, async {
            self.writes.join_or_fail().await?;
            Ok(self.file.flush().await?)
        })
        .await?;
        Ok(self.timeline.take())
    }

    /// Returns the time since the output began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.machine.now().since(self.begin)
    }

    /// Returns the number of output bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.made.borrow().len() as u64 * self.block_bytes
    }

    /// Reads the output back and compares each block with its source.
    pub(crate) async fn check(self) -> Result<(), Error> {
        let made = self.made.into_inner();
        let memory = self.contents.memory(CHECKED_BLOCKS as u64 * self.block_bytes);
        for (part, blocks) in made.chunks(CHECKED_BLOCKS).enumerate() {
            let offset = (part * CHECKED_BLOCKS) as u64 * self.block_bytes;
            let bytes = blocks.len() as u64 * self.block_bytes;
            let found = self.file.read(offset, bytes, &memory, 0).await?;
            let of = |(place, block): (usize, &u32)| Chunk {
                file_offset: u64::from(*block) * self.block_bytes,
                memory_offset: place as u64 * self.block_bytes,
                bytes: self.block_bytes,
            };
            let wrong = self.contents.first_wrong(&memory, blocks.iter().enumerate().map(of));
            if found < bytes || wrong.is_some() {
                let at = offset + wrong.map_or(found, |chunk| chunk.memory_offset);
                return Err(Error::WrongData(format!("the block at {at} of {}", self.file.name())));
            }
        }
        Ok(())
    }
}

/// Number of blocks read back at a time.
const CHECKED_BLOCKS: usize = 256;
