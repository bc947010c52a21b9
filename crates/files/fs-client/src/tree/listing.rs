//! What does not fit in one answer of the keeper: the entries of a directory, and all records.

use machine::Machine;
use namespace::{DirectoryEntry, FileNumber, Inode, SurveyedRecord, TreeAnswer, TreeOperation, TreeRefusal};

use super::Tree;
use crate::error::Result;
use crate::unexpected;

/// The most bytes of entries or records in one answer, which is the header of a message.
pub(super) const ANSWER_BYTES: u32 = 32 << 10;

/// Entries of a directory that follow each other in the order of their names.
#[derive(Debug)]
pub struct SomeEntries {
    /// The directory.
    pub directory: Inode,
    /// At least one, unless there are none.
    pub entries: Vec<DirectoryEntry>,
    /// Whether there are others after them.
    pub more: bool,
}

impl<M: Machine> Tree<M> {
    /// The entries of a directory after the name `after`, as the keeper has them, until they have so many bytes or are
    /// as many as one answer has; nothing if the directory has been removed.
    ///
    /// # Errors
    /// If it is no directory, or the keeper does not answer.
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
            Ok(_) => Err(unexpected(self.keeper())),
            Err(error) if error.is_refused(TreeRefusal::Removed) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All entries of a directory in the order of their names, with what this client has written. If it is removed
    /// meanwhile, there are no others.
    ///
    /// # Errors
    /// As those of [`some_entries`](Self::some_entries).
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

    /// All records of the namespace, to be checked.
    ///
    /// # Errors
    /// If the keeper does not answer.
    pub async fn survey(&self) -> Result<Vec<SurveyedRecord>> {
        let (mut all, mut after) = (Vec::new(), Vec::new());
        loop {
            match self.perform(TreeOperation::Survey { after, bytes_max: ANSWER_BYTES }).await? {
                TreeAnswer::Records { records, more_after } => {
                    all.extend(records);
                    let Some(last) = more_after else { return Ok(all) };
                    after = last;
                }
                _ => return Err(unexpected(self.keeper())),
            }
        }
    }
}
