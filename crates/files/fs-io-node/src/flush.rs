//! Bringing what was accepted onto the media, and setting where stripes end.

use std::cell::RefCell;
use std::rc::Rc;

use machine::{Disk, Machine, NodeId, TaskGroup};

use super::IoNode;
use super::account::Account;
use super::disks::check_length;
use super::open_stripe::OpenStripe;
use crate::error::Failure;
use crate::protocol::{FileId, Reply};

/// How many stripes are written out at once when the node ends, of some ten thousand. Each that was never flushed takes
/// several waits for the medium, and a file system brings what waits at the same time onto it as one.
const WRITTEN_OUT_AT_ONCE: usize = 64;

impl<M: Machine> IoNode<M> {
    /// Cuts or extends stripes, as long as the client's connection lasts: after that, it may have asked for this once
    /// more over another one, and for something else since.
    pub(super) async fn resize(
        self: &Rc<Self>,
        client: NodeId,
        account: &Account,
        file: FileId,
        stripes: &[(u32, u64)],
    ) -> Result<Reply, Box<Failure>> {
        self.check_stripe_count(stripes.len())?;
        // All of them before the first is changed.
        for &(index, bytes) in stripes {
            self.stripes.get(file, index)?;
            check_length(bytes)?;
        }
        for &(index, bytes) in stripes {
            // Who writes from now on comes after.
            let stripe = self.stripes.get(file, index)?.bar_writes();
            self.blocks.write_out(&stripe).await;
            self.blocks.forget(&stripe, bytes / stripe.block_bytes()).await;
            stripe.writers.tell(client)?;
            account.check()?;
            self.disks.set_end(&stripe, bytes).await?;
            // Until that is on the medium, what is cut off would come back with a crash.
            stripe.writers.note(client);
            // Who read ahead meanwhile has found what is cut off now.
            self.blocks.forget(&stripe, bytes / stripe.block_bytes()).await;
        }
        Ok(self.accepted())
    }

    /// Brings everything accepted so far onto the media, whatever file it belongs to: as much of it as can be. Fails
    /// with the first failure in the end.
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
        stripe.writers.tell_anybody().and(flushed).map_err(|failure| {
            let (task, why) = (format!("writing out {}", stripe.label), failure.text);
            machine::Error::Failed { task, why }.into()
        })
    }

    /// Brings all that a client has written onto the media, whatever files it is of: as much of it as can be. Fails
    /// with the first failure in the end. Whoever has such a file open is told of it as well.
    ///
    /// Not what was written to stripes that have been closed since, there being very many: the disks have that, and the
    /// answer tells.
    pub(super) async fn flush_own(self: &Rc<Self>, client: NodeId) -> Result<Reply, Box<Failure>> {
        let mut stripes = self.stripes.all();
        stripes.retain(|stripe| stripe.writers.has(client));
        let accepted = self.start_writing_out(&stripes).await;
        let mut outcome = Ok(());
        for (stripe, accepted) in stripes.iter().zip(accepted) {
            stripe.writes.none().await;
            let flushed = self.flush_disk(stripe).await;
            let flushed = stripe.writers.failure(client).map_or(flushed, Err);
            if flushed.is_ok() {
                stripe.writers.forget(accepted);
            }
            outcome = outcome.and(flushed);
        }
        outcome?;
        Ok(if self.stored.has_closed_unflushed(client) { Reply::Done } else { self.accepted() })
    }

    /// Brings what was accepted of stripes onto the media: `settle` does the last step of it for each of them, when all
    /// has been given to its disk.
    pub(super) async fn bring_to_media(
        self: &Rc<Self>,
        client: NodeId,
        stripes: &[Rc<OpenStripe>],
        settle: impl AsyncFn(&OpenStripe) -> Result<(), Box<Failure>>,
    ) -> Result<Reply, Box<Failure>> {
        let accepted = self.start_writing_out(stripes).await;
        for (stripe, accepted) in stripes.iter().zip(accepted) {
            stripe.writes.none().await;
            stripe.writers.tell(client)?;
            let settled = settle(stripe).await;
            stripe.writers.tell(client).and(settled)?;
            stripe.writers.forget(accepted);
        }
        Ok(self.accepted())
    }

    /// Starts to give the disks what waits of stripes; how many writes of each had been accepted before.
    async fn start_writing_out(self: &Rc<Self>, stripes: &[Rc<OpenStripe>]) -> Vec<u64> {
        let accepted = stripes.iter().map(|stripe| stripe.writers.accepted()).collect();
        for stripe in stripes {
            self.blocks.start_writing_out(stripe).await;
        }
        accepted
    }

    /// Brings what the disk of a stripe has been given of it onto the medium. A disk says only once that it could not,
    /// so the failure is kept for all who have written.
    pub(super) async fn flush_disk(&self, stripe: &OpenStripe) -> Result<(), Box<Failure>> {
        let _span = self.machine.notes().span("disk flush", || [("disk", stripe.home.disk as u64)]);
        let since = self.machine.now();
        let flushed = self.disks.of(stripe.home).flush(stripe.home.object).await;
        self.disks.count_flush(stripe.home, since, &flushed);
        flushed.map_err(Box::<Failure>::from).inspect_err(|failure| stripe.writers.fail(failure))
    }
}
