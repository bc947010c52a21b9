//! Flushes the writes of all members of a team to stable storage.
//!
//! ```text
//!  all      send cached pages | barrier: incarnations of the I/O nodes that have unflushed writes
//!  first    ask the metadata server; flush all stripes, and the namespace
//!  others   flush their own writes, if other incarnations have them than those that the first flushes
//!  all      barrier: inode from the metadata server
//! ```
//!
//! So even if there are many members, only one of them sends requests to the I/O nodes. If a member's data were
//! accepted by other incarnations than those that the first member flushes, the member flushes its data itself: some of
//! them may be lost, and only the writer can detect that.

use machine::Machine;

use super::OpenTreeFile;
use super::open_file::message_to_team;
use super::unflushed_names::ReportedLosses;
use crate::error::Result;
use crate::pages::PagesMark;
use crate::{TeamTurn, unexpected};

impl<M: Machine> OpenTreeFile<M> {
    /// Blocks until all writes of the team's members and the namespace are on stable storage. Later reads by this
    /// member see the writes of the others.
    ///
    /// # Errors
    /// Fails as [`sync`](Self::sync) does, if any member fails.
    pub async fn sync_together(&self, turn: &TeamTurn<'_, M>) -> Result<()> {
        let before_call = self.paged().failures_before_call();
        let synced = self.sync_together_unreported(turn).await;
        // A flush by another thread may have got a failure of this member.
        self.paged().flushes_ended().await;
        self.paged().report_failures(before_call).and(synced)
    }

    async fn sync_together_unreported(&self, turn: &TeamTurn<'_, M>) -> Result<()> {
        let sent = self.flush_shared().await;
        let (mark, changes) = (self.paged().unflushed(), self.tree().last_change());
        let entered = turn.gather(sent.as_ref().map(|()| mark.runs()).map_err(|error| &**error)).await;
        let flushed = match (sent, entered) {
            (Ok(()), Ok(runs)) if turn.is_first() => self.sync_for_all(turn, &runs).await,
            (Ok(()), Ok(runs)) if mark.is_flushed_with(runs[0]) => Ok(Vec::new()),
            (Ok(()), Ok(_)) => {
                machine::sometimes!("a member flushes on its own in a collective sync");
                self.flush_to_media().await.map(|()| Vec::new())
            }
            (sent, entered) => sent.and(entered.map(|_| Vec::new())),
        };
        let entered = turn.gather_bytes(flushed.as_ref().cloned().map_err(|error| &**error)).await;
        match (flushed, entered) {
            (Ok(_), Ok(messages)) => self.synced_by_first(turn, mark, changes, &messages[0]).await,
            (Ok(_), Err(error)) => {
                machine::sometimes!("a collective sync fails at another member");
                // Report this member's losses now. Writes that the first member could not flush remain recorded as
                // unflushed.
                self.flush_to_media().await.and(Err(error))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Performs the first member's part: flushes all stripes if any member has unflushed writes. Returns the message to
    /// the other members.
    async fn sync_for_all(&self, turn: &TeamTurn<'_, M>, runs: &[u64]) -> Result<Vec<u8>> {
        // All members have reported their writes to the metadata server before the barrier.
        self.attributes().await?;
        // Changes by others from now on may not be flushed.
        let inode = self.inode();
        match runs.iter().any(|&runs| runs > 0) {
            true => self.paged().flush_for_team(turn.members()).await?,
            false => self.paged().flush_shared().await?,
        }
        let run = self.tree().flush_names(ReportedLosses::One(self.number())).await?;
        Ok(message_to_team(&inode, Some(run)))
    }

    async fn synced_by_first(
        &self,
        turn: &TeamTurn<'_, M>,
        mark: PagesMark,
        changes: u64,
        message: &[u8],
    ) -> Result<()> {
        if turn.is_first() {
            return Ok(());
        }
        let message = self.adopt_message_of_first(message).await?;
        machine::sometimes!("a file changes during a collective sync", if self.known().version != message.version);
        if self.known().version == message.version {
            self.paged().note_flushed_by_other(mark);
        }
        let run = message.run.ok_or_else(|| unexpected(self.tree().metadata_server()))?;
        self.tree().note_flushed_by_first(run, changes, self.number())
    }
}
