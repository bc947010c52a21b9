//! Sorts the input into runs. While one block is sorted, the next is read and the previous one is written.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use super::block::Block;
use super::merge::Runs;
use super::resources::Sorting;
use crate::failure::{Failure, Result};
use crate::name::FileName;
use crate::store::{Storage, Temporary};

/// Blocks in memory: one is read, one sorted, one written.
const BLOCKS: u64 = 3;

/// Bytes of a run per write.
const PIECE_BYTES: usize = 256 << 10;

/// The sorted input.
pub(super) enum Sorted {
    /// The input had no line.
    Nothing,
    /// The whole input, in memory.
    Block(Block),
    /// Runs, in the order of the input.
    Runs(Vec<Box<dyn Temporary>>),
}

impl Sorting<'_> {
    /// Reads all files in sequence into sorted blocks. If there is more than one block, writes them as runs.
    pub(super) fn sort(&self, names: &[FileName]) -> Result<Sorted> {
        let inputs = Inputs::open(self.store, names)?;
        let memory = (self.memory / BLOCKS) as usize;
        thread::scope(|scope| {
            let (full, blocks) = sync_channel(0);
            let (sorted, to_write) = sync_channel(0);
            let (emptied, empty) = channel();
            for _ in 0..BLOCKS {
                emptied.send(Block::default()).expect("the receiver is here");
            }
            let reader = scope.spawn(move || read_blocks(inputs, memory, &empty, &full));
            let writer = scope.spawn(move || self.write_runs(&to_write, &emptied));
            let single = self.sort_blocks(&blocks, &sorted);
            drop((blocks, sorted));
            let runs = joined(writer);
            joined(reader)?;
            let runs = runs?;
            Ok(match single {
                Some(block) => Sorted::Block(block),
                None if runs.is_empty() => Sorted::Nothing,
                None => Sorted::Runs(runs),
            })
        })
    }

    /// Sorts blocks. Returns the first block if it is the only one.
    fn sort_blocks(&self, blocks: &Receiver<(Block, bool)>, sorted: &SyncSender<Block>) -> Option<Block> {
        for (index, (mut block, goes_on)) in blocks.iter().enumerate() {
            block.sort(self.order);
            if index == 0 && !goes_on {
                return Some(block);
            }
            // The writer has failed and reports the reason.
            if sorted.send(block).is_err() {
                break;
            }
        }
        None
    }

    fn write_runs(
        &self,
        blocks: &Receiver<Block>,
        emptied: &Sender<Block>,
    ) -> Result<Vec<Box<dyn Temporary>>> {
        let mut runs = Runs::new(self);
        for block in blocks {
            let mut output = io::BufWriter::with_capacity(PIECE_BYTES, self.store.temporary()?);
            let failed = |error| Failure::io("a temporary file", &error);
            block.write(self.order, &mut output).and_then(|()| output.flush()).map_err(failed)?;
            // An error means that the reader has nothing more to read.
            let _ = emptied.send(block);
            runs.push(output.into_inner().map_err(|error| failed(error.into_error()))?)?;
        }
        Ok(runs.finish())
    }
}

/// Reads blocks until the input ends or the receiver is dropped. Sends each block with true if the input may continue.
fn read_blocks(
    mut inputs: Inputs<'_>,
    memory: usize,
    empty: &Receiver<Block>,
    full: &SyncSender<(Block, bool)>,
) -> Result<()> {
    let mut rest = Vec::new();
    for mut block in empty {
        let filled = block.fill(&mut inputs, memory, &mut rest);
        let goes_on = filled.map_err(|error| inputs.explain(&error))?;
        if block.is_empty() || full.send((block, goes_on)).is_err() || !goes_on {
            break;
        }
    }
    Ok(())
}

/// Reads several files as one input, and adds missing final newlines.
struct Inputs<'a> {
    store: &'a dyn Storage,
    names: &'a [FileName],
    current: usize,
    /// The open input; `None` after the last.
    input: Option<Box<dyn Read + Send + 'a>>,
    ends_with_newline: bool,
    failure: Option<Failure>,
}

impl<'a> Inputs<'a> {
    /// Opens the first file, so that a wrong first name is reported at once.
    fn open(store: &'a dyn Storage, names: &'a [FileName]) -> Result<Self> {
        let input = Some(store.open(&names[0])?);
        Ok(Inputs { store, names, current: 0, input, ends_with_newline: true, failure: None })
    }

    fn next(&mut self) -> io::Result<()> {
        self.current += 1;
        let next = self.names.get(self.current).map(|name| self.store.open(name));
        self.input = next.transpose().map_err(|failure| {
            self.failure = Some(failure);
            io::Error::other("a file cannot be opened")
        })?;
        Ok(())
    }

    fn explain(&mut self, error: &io::Error) -> Failure {
        self.failure.take().unwrap_or_else(|| Failure::io(&self.names[self.current], error))
    }
}

impl Read for Inputs<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(input) = &mut self.input {
            let read = input.read(into)?;
            if read > 0 {
                self.ends_with_newline = into[read - 1] == b'\n';
                return Ok(read);
            }
            self.next()?;
            if !std::mem::replace(&mut self.ends_with_newline, true) && !into.is_empty() {
                into[0] = b'\n';
                return Ok(1);
            }
        }
        Ok(0)
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
