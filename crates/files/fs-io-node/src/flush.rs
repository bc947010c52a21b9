//! Flushes accepted data to stable storage, and sets the lengths of stripes.

use std::cell::RefCell;
use std::rc::Rc;

use machine::{Disk, Machine, NodeId, TaskGroup};

use super::IoNode;
use super::client_account::Account;
use super::disks::check_length;
use super::open_stripe::OpenStripe;
use super::unflushed_writers::FlushStart;
use crate::error::Failure;
use crate::protocol::{FileId, Reply};

/// Number of stripes that are written concurrently when the node shuts down, possibly with ten thousands of stripes.
/// Each stripe that was never flushed needs several syncs, and a file system combines concurrent syncs.
const WRITTEN_OUT_AT_ONCE: usize = 64;

impl<M: Machine> IoNode<M> {
    /// Truncates or extends stripes, as long as the client's connection lasts. After the end of the connection the
    /// client may have repeated the request over another connection, followed by other requests.
    pub(super) async fn resize(
        self: &Rc<Self>,
        account: &Rc<Account>,
        file: FileId,
        stripes: &[(u32, u64)],
    ) -> Result<Reply, Box<Failure>> {
        self.check_stripe_count(stripes.len())?;
        // Check all stripes before the first is changed.
        for &(index, bytes) in stripes {
            self.stripes.get(file, index)?;
            check_length(bytes)?;
        }
        for &(index, bytes) in stripes {
            // Writes that begin from now on wait until the change is complete.
            let stripe = self.stripes.get(file, index)?.bar_writes();
            machine::sometimes!("a truncation and another bypass of a stripe overlap", if stripe.bars.count() > 1);
            self.blocks.write_out(&stripe).await;
            self.blocks.forget(&stripe, bytes / stripe.block_bytes()).await;
            stripe.writers.answer(account.client)?;
            account.check()?;
            self.disks.set_end(&stripe, bytes).await?;
            // The change is not on stable storage yet, and a crash would restore truncated bytes. So the client counts
            // as a writer that needs a flush.
            stripe.writers.note(account.client);
            // A prefetch in the meantime may have cached bytes that are now truncated.
            self.blocks.forget(&stripe, bytes / stripe.block_bytes()).await;
        }
        Ok(self.accepted())
    }

    /// Flushes all accepted data to stable storage, for all files. Continues after a failure, and returns the first
    /// failure at the end.
    pub(super) async fn write_out_all(self: &Rc<Self>) -> machine::Result<()> {
        let stripes = self.stripes.all();
        let (lanes, group) = (stripes.len().min(WRITTEN_OUT_AT_ONCE), TaskGroup::new());
        let left = Rc::new(RefCell::new(stripes.into_iter()));
        for _ in 0..lanes {
            let (node, left, outcomes) = (self.clone(), left.clone(), group.clone());
            group.spawn(&self.machine, "writing out", async move {
                loop {
                    let Some(stripe) = left.borrow_mut().next() else { return Ok(()) };
                    outcomes.note(node.write_out(&stripe).await);
                }
            });
        }
        group.join().await
    }

    async fn write_out(self: &Rc<Self>, stripe: &Rc<OpenStripe>) -> Result<(), Box<machine::Error>> {
        self.blocks.write_out(stripe).await;
        let flushed = self.flush_disk(stripe).await;
        stripe.writers.report_unclaimed().and(flushed).map_err(|failure| {
            let (task, why) = (format!("writing out {}", stripe.label), failure.text);
            machine::Error::Failed { task, why }.into()
        })
    }

    /// Flushes all writes of a client to stable storage, for all files. Continues after a failure, and returns the
    /// first failure at the end. The failure is kept, so that a later flush of the file also reports it.
    ///
    /// Does not flush stripes that were closed since, since there can be very many: their data were passed to the
    /// disks, but may not be on stable storage. In this case the answer is [`Reply::Done`].
    pub(super) async fn flush_own(self: &Rc<Self>, client: NodeId) -> Result<Reply, Box<Failure>> {
        let mut stripes = self.stripes.all();
        stripes.retain(|stripe| stripe.writers.has(client));
        let starts = self.start_writing_out(&stripes).await;
        let mut outcome = Ok(());
        for (stripe, start) in stripes.iter().zip(starts) {
            stripe.writes.none().await;
            let flushed = self.flush_disk(stripe).await;
            let flushed = stripe.writers.failure_of(client).map_or(flushed, Err);
            if flushed.is_ok() {
                stripe.writers.forget(start);
            }
            outcome = outcome.and(flushed);
        }
        outcome?;
        Ok(if self.stored.has_closed_unflushed(client) { Reply::Done } else { self.accepted() })
    }

    /// Flushes accepted data of stripes to stable storage. Also reports the failures of `members`, which the client
    /// flushes for.
    pub(super) async fn flush_to_media(
        self: &Rc<Self>,
        account: &Rc<Account>,
        stripes: &[Rc<OpenStripe>],
        members: &[NodeId],
    ) -> Result<Reply, Box<Failure>> {
        let starts = self.start_writing_out(stripes).await;
        for (stripe, start) in stripes.iter().zip(starts) {
            stripe.writes.none().await;
            stripe.writers.report(account)?;
            let flushed = self.flush_disk(stripe).await;
            stripe.writers.report(account).and(flushed)?;
            stripe.writers.check_all(members)?;
            stripe.writers.forget(start);
            stripe.writers.confirm(account.client);
        }
        Ok(self.accepted())
    }

    /// Starts writing the dirty blocks of stripes. Returns the state of each stripe's writers before that.
    async fn start_writing_out(self: &Rc<Self>, stripes: &[Rc<OpenStripe>]) -> Vec<FlushStart> {
        let starts = stripes.iter().map(|stripe| stripe.writers.flush_start()).collect();
        for stripe in stripes {
            self.blocks.start_writing_out(stripe).await;
        }
        starts
    }

    /// Flushes the data that were written to a stripe's disk to stable storage. A disk reports a failed flush only
    /// once, so the failure is kept for all clients that have written to the stripe.
    pub(super) async fn flush_disk(&self, stripe: &OpenStripe) -> Result<(), Box<Failure>> {
        let _span = self.machine.notes().span("disk flush", || [("disk", stripe.home.disk as u64)]);
        let since = self.machine.now();
        let flushed = self.disks.of(stripe.home).flush(stripe.home.object).await;
        self.disks.count_flush(stripe.home, since, &flushed);
        flushed.map_err(Box::<Failure>::from).inspect_err(|failure| stripe.writers.fail(failure))
    }
}
