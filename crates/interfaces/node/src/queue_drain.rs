//! Moves writes from the queue into the write cache, on the node thread.

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;

use fs::WriteCache;
use machine::{Payload, Permits};
use real::RealMachine;

use crate::error::Result;
use crate::open_file::OpenFiles;
use crate::write_queue::{QueuedWrites, WriteQueue};

/// Node thread's end of the queue.
pub(crate) struct QueueDrain {
    queue: Arc<WriteQueue>,
    /// Permit that one task at a time holds, so that writes stay in order.
    turn: Permits,
    /// Writes taken out of the queue that are not in the cache yet.
    left: RefCell<QueuedWrites>,
}

impl QueueDrain {
    pub(crate) fn new(queue: Arc<WriteQueue>) -> Self {
        QueueDrain { queue, turn: Permits::new(1), left: RefCell::default() }
    }

    /// Moves all queued writes into the write cache. Fails if the cache is full and cannot be flushed.
    pub(crate) async fn take_in(&self, files: &OpenFiles, cache: &WriteCache<RealMachine>) -> Result<()> {
        let _turn = self.turn.take().await;
        let left = self.left.take();
        let mut outcome = self.write(files, cache, left).await;
        if outcome.is_ok() {
            outcome = self.write(files, cache, self.queue.take()).await;
        }
        self.queue.note_failed(outcome.is_err() || cache.has_unreported());
        outcome
    }

    /// Writes into the cache. Keeps the rest for the next call.
    async fn write(
        &self,
        files: &OpenFiles,
        cache: &WriteCache<RealMachine>,
        mut batch: QueuedWrites,
    ) -> Result<()> {
        let data = Payload::from(mem::take(&mut batch.data));
        let (mut runs_done, mut writes_done, mut at, mut outcome) = (0, 0, 0, Ok(()));
        while outcome.is_ok() && runs_done < batch.runs.len() {
            let (number, count) = batch.runs[runs_done];
            let writes = &batch.writes[writes_done..writes_done + count];
            let made = match files.begin_call(number, "a file") {
                Ok((file, call)) => {
                    let bytes: u64 = writes.iter().map(|write| write.bytes).sum();
                    let data = data.slice(at..at + bytes);
                    let (made, written) = cache.write_all(file.file(), writes, &data).await;
                    outcome = file.explained(written);
                    drop(file);
                    drop(call);
                    made
                }
                // The handle was closed while another thread wrote: drop these writes, which belong to no open file any
                // more.
                Err(_) => count,
            };
            at += writes[..made].iter().map(|write| write.bytes).sum::<u64>();
            writes_done += made;
            batch.runs[runs_done].1 -= made;
            runs_done += usize::from(made == count);
        }
        if outcome.is_err() {
            batch.runs.drain(..runs_done);
            batch.writes.drain(..writes_done);
            batch.data = data.slice(at..data.len()).into_vec().expect("they are real");
            self.left.replace(batch);
        }
        outcome
    }
}
