//! Bringing what all members of a team have written onto the media.
//!
//! ```text
//!  all      send what is in the page cache | meet: which runs of the I/O nodes have what is unflushed
//!  first    ask the keeper; flush all stripes, and the namespace
//!  others   flush their own, if other runs have it than what the first flushes
//!  all      meet: what the keeper has said of the file
//! ```
//!
//! So with many members the I/O nodes are asked by one. Whose data other runs have accepted than the first's asks for
//! them: some of it may be lost, and it is who has written it that knows.

use machine::Machine;

use super::OpenTreeFile;
use crate::TeamTurn;
use crate::error::Result;
use crate::pages::PagesMark;

impl<M: Machine> OpenTreeFile<M> {
    /// Waits until everything that the members of a team have written is on the media, and the namespace with it. What
    /// the others have written is read by this member then.
    ///
    /// # Errors
    /// Those of [`sync`](Self::sync), of any member.
    pub async fn sync_together(&self, turn: &TeamTurn<'_, M>) -> Result<()> {
        let sent = self.flush().await;
        let mark = self.paged().unflushed();
        let met = turn.gather(sent.as_ref().map(|()| mark.runs()).map_err(|error| &**error)).await;
        let flushed = match (sent, met) {
            (Ok(()), Ok(runs)) if turn.is_first() => self.sync_for_all(&runs).await,
            (Ok(()), Ok(runs)) if mark.is_flushed_with(runs[0]) => Ok(Vec::new()),
            (Ok(()), Ok(_)) => self.bring_to_media().await.map(|()| Vec::new()),
            (sent, met) => sent.and(met.map(|_| Vec::new())),
        };
        let met = turn.gather_bytes(flushed.as_ref().cloned().map_err(|error| &**error)).await;
        match (flushed, met) {
            (Ok(_), Ok(told)) => self.synced_by_first(turn, mark, &told[0]).await,
            (Ok(_), Err(error)) => {
                // What is lost of its own is told to this member now, and what the first could not flush stays noted.
                self.bring_to_media().await.and(Err(error))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Flushes as the first member, if any of them has something unflushed. Returns what the keeper has said of the
    /// file that is flushed.
    async fn sync_for_all(&self, runs: &[u64]) -> Result<Vec<u8>> {
        // All of them have told the keeper.
        self.attributes().await?;
        let told = self.told_to_team();
        match runs.iter().any(|&runs| runs > 0) {
            true => self.paged().flush_all().await?,
            false => self.paged().flush().await?,
        }
        self.tree().flush_of(self.number()).await?;
        Ok(told)
    }

    async fn synced_by_first(&self, turn: &TeamTurn<'_, M>, mark: PagesMark, told: &[u8]) -> Result<()> {
        if turn.is_first() {
            return Ok(());
        }
        let version = self.hear_first(told).await?;
        if self.known().version == version {
            self.paged().note_flushed_by_other(mark);
        }
        Ok(())
    }
}
