//! Answers of the metadata server that exceed one message: the entries of a directory, and all records.

use machine::Machine;
use namespace::{DirectoryEntry, FileNumber, Inode, SurveyedRecord, TreeAnswer, TreeOperation, TreeRefusal};

use super::Tree;
use crate::error::Result;
use crate::unexpected;

/// Limit in bytes of the entries or records in one answer, which must fit in the header of a message.
pub(super) const ANSWER_BYTES: u32 = 32 << 10;

/// Consecutive entries of a directory in the order of their names.
#[derive(Debug)]
pub struct SomeEntries {
    /// The directory.
    pub directory: Inode,
    /// At least one entry, unless no entries follow.
    pub entries: Vec<DirectoryEntry>,
    /// True if more entries follow.
    pub more: bool,
}

impl<M: Machine> Tree<M> {
    /// Returns the entries of a directory after the name `after`, as the metadata server has them, up to about
    /// `bytes_max` bytes or the limit of one answer; `None` if the directory has been removed.
    ///
    /// # Errors
    /// Fails if `directory` is not a directory, or if the metadata server does not answer.
    pub async fn some_entries(
        &self,
        directory: FileNumber,
        after: Vec<u8>,
        bytes_max: u32,
    ) -> Result<Option<SomeEntries>> {
        let bytes_max = bytes_max.min(ANSWER_BYTES);
        match self.perform(TreeOperation::List { directory, after, bytes_max }).await {
            Ok(TreeAnswer::Entries { directory, entries, more }) => {
                Ok(Some(SomeEntries { directory, entries, more }))
            }
            Ok(_) => Err(unexpected(self.metadata_server())),
            Err(error) if error.is_refused(TreeRefusal::Removed) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns all entries of a directory in the order of their names, including this client's unreported writes. If
    /// the directory is removed during the listing, the remaining entries are left out.
    ///
    /// # Errors
    /// Fails as [`some_entries`](Self::some_entries) does.
    pub async fn entries(&self, directory: FileNumber) -> Result<Vec<DirectoryEntry>> {
        let (mut found, mut after) = (Vec::new(), Vec::new());
        while let Some(some) = self.some_entries(directory, after, ANSWER_BYTES).await? {
            let seen = |DirectoryEntry { name, inode }| DirectoryEntry { name, inode: self.seen(inode) };
            found.extend(some.entries.into_iter().map(seen));
            if !some.more {
                break;
            }
            after = found.last().map(|entry| entry.name.clone()).unwrap_or_default();
        }
        Ok(found)
    }

    /// Returns all records of the namespace, so that they can be checked.
    ///
    /// # Errors
    /// Fails if the metadata server does not answer.
    pub async fn survey(&self) -> Result<Vec<SurveyedRecord>> {
        let (mut all, mut after) = (Vec::new(), Vec::new());
        loop {
            match self.perform(TreeOperation::Survey { after, bytes_max: ANSWER_BYTES }).await? {
                TreeAnswer::Records { records, more_after } => {
                    all.extend(records);
                    let Some(last) = more_after else { return Ok(all) };
                    after = last;
                }
                _ => return Err(unexpected(self.metadata_server())),
            }
        }
    }
}
