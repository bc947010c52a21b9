//! Finishing files: committing what was written, publishing it, and removing what was never finished.
//!
//! What the I/O nodes do, and in which order, is drawn in `fs-io-node/src/commit.rs`.

use std::collections::BTreeMap;

use machine::{Machine, NodeId, Payload};

use super::assembly::{FileStripes, Found, assemble, tell_apart};
use super::{Client, File, FileParts, FileStat, Partial, check_name, unexpected};
use crate::error::{Error, FailureKind, Result};
use crate::protocol::{FileId, FoundStripe, Reply, Request};

/// Number of times a name is looked up again while other clients change the file it names.
const LOOKS_MAX: usize = 16;

/// What there is under a name: stripes of a finished file, and unfinished files.
type FoundFiles = (Vec<(NodeId, FoundStripe)>, Vec<FileStripes>);

impl<M: Machine> Client<M> {
    /// The stripes found of the finished file of this name, whether or not some are missing.
    ///
    /// # Errors
    /// The failure of an I/O node, if stripes are missing that it may have.
    pub async fn find(&self, name: &str) -> Result<FileParts> {
        let Partial { found: (finished, mut unfinished), failures } = self.look_partly(name).await?;
        if finished.is_empty()
            && let Some(stripes) = latest(&mut unfinished)
        {
            return Err(unfinished_error(name, &stripes));
        }
        let parts = assemble(name, finished);
        match failures.into_iter().next() {
            Some(error) if !parts.as_ref().is_ok_and(FileParts::is_complete) => Err(error.into()),
            _ => parts,
        }
    }

    /// All files found under a name: the finished one, if there is one, and all unfinished ones.
    pub async fn find_all(&self, name: &str) -> Result<Vec<FileParts>> {
        let (finished, unfinished) = self.look(name).await?;
        let finished = if finished.is_empty() { None } else { Some(assemble(name, finished)) };
        finished.into_iter().chain(unfinished.into_iter().map(|stripes| stripes.parts(name))).collect()
    }

    /// The stripes found of the unfinished file of this name, of the latest if there are several.
    pub async fn find_unfinished(&self, name: &str) -> Result<FileParts> {
        let (_, mut unfinished) = self.look(name).await?;
        match latest(&mut unfinished) {
            Some(stripes) => stripes.parts(name),
            None => Err(Error::NotFound { name: name.into() }.into()),
        }
    }

    /// The metadata of an unfinished file. Fails if a stripe of it is missing.
    pub async fn stat_unfinished(&self, name: &str) -> Result<FileStat> {
        self.find_unfinished(name).await?.complete(name)
    }

    /// Opens the unfinished file of this name, which must have all its stripes; if there is none, the finished one.
    pub async fn open_unfinished(&self, name: &str) -> Result<File<M>> {
        match self.stat_unfinished(name).await {
            Ok(stat) => Ok(File::new(self.clone(), name, stat)),
            Err(error) if matches!(*error, Error::NotFound { .. }) => self.open(name).await,
            Err(error) => Err(error),
        }
    }

    /// Removes a finished file, or what is left of one, and an unfinished one of that name that this client has begun.
    pub async fn unlink(&self, name: &str) -> Result<()> {
        // What is committed gets its name first, or it would come back. If that cannot be told, what is there goes.
        let unfinished = match self.look(name).await {
            Ok((_, mut unfinished)) => latest(&mut unfinished),
            Err(error) if matches!(*error, Error::BadName { .. }) => return Err(error),
            Err(_) => None,
        };
        let mut found = false;
        for (_, answer) in self.ask_all(|_| Some(Request::Unlink { name: name.into() })).await {
            match answer {
                Ok(_) => found = true,
                Err(error) if error.is_remote(FailureKind::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        match unfinished {
            Some(stripes) if self.inner.begun.borrow().contains(&stripes.file()) => {
                self.unlink_unfinished(name).await
            }
            _ if found => Ok(()),
            Some(stripes) => Err(unfinished_error(name, &stripes)),
            None => Err(Error::NotFound { name: name.into() }.into()),
        }
    }

    /// Removes all unfinished files of a name. Fails if another client is writing one of them.
    pub async fn unlink_unfinished(&self, name: &str) -> Result<()> {
        let mut removed = false;
        for _ in 0..LOOKS_MAX {
            let (_, mut unfinished) = self.look(name).await?;
            let Some(stripes) = latest(&mut unfinished) else {
                return if removed { Ok(()) } else { Err(Error::NotFound { name: name.into() }.into()) };
            };
            let file = stripes.file();
            // First a stripe without which it cannot be committed any more: no client may find the file finished while
            // the others go.
            if let Some(node) = stripes.uncommitted() {
                let request = Request::Discard { name: name.into(), file: Some(file), uncommitted: true };
                match self.inner.endpoint.call(node, request, Payload::empty()).await {
                    Err(error) if error.is_remote(FailureKind::Exists) => continue,
                    other => other.map_err(|error| about(error, name))?,
                };
            }
            let request = Request::Discard { name: name.into(), file: Some(file), uncommitted: false };
            for (_, answer) in self.ask_all(|_| Some(request.clone())).await {
                answer.map_err(|error| about(error, name))?;
            }
            self.inner.begun.borrow_mut().remove(&file);
            removed = true;
        }
        Err(changing(name))
    }

    /// Looks at a name: stripes of a finished file, and unfinished files. What is committed is published before.
    async fn look(&self, name: &str) -> Result<FoundFiles> {
        self.look_partly(name).await?.whole()
    }

    /// As [`look`](Self::look), at the I/O nodes that do not fail.
    async fn look_partly(&self, name: &str) -> Result<Partial<FoundFiles>> {
        check_name(name)?;
        for _ in 0..LOOKS_MAX {
            let (mut found, mut failures) = (Vec::new(), Vec::new());
            for (node, answer) in self.ask_all(|_| Some(Request::Open { name: name.into() })).await {
                match answer {
                    Ok((Reply::Opened { stripes }, _)) => {
                        found.extend(stripes.into_iter().map(|stripe| (node, stripe)));
                    }
                    Ok(_) => failures.push(*unexpected(node)),
                    Err(error) => failures.push(*about(error, name)),
                }
            }
            match tell_apart(found) {
                Found::Committed { file, replaces } => self.publish(name, file, replaces).await?,
                Found::Settled { finished, unfinished } => {
                    return Ok(Partial { found: (finished, unfinished), failures });
                }
            }
        }
        Err(changing(name))
    }

    /// Gives a committed file its name, on all I/O nodes.
    async fn publish(&self, name: &str, file: FileId, replaces: Option<FileId>) -> Result<()> {
        let request = Request::Publish { name: name.into(), file, replaces };
        let mut outcome = Ok(());
        for (_, answer) in self.ask_all(|_| Some(request.clone())).await {
            outcome = outcome.and(answer.map(drop).map_err(|error| about(error, name)));
        }
        outcome
    }
}

/// The unfinished file that was begun last.
fn latest(unfinished: &mut Vec<FileStripes>) -> Option<FileStripes> {
    unfinished.sort_by_key(FileStripes::rank);
    unfinished.pop()
}

fn unfinished_error(name: &str, stripes: &FileStripes) -> Box<Error> {
    Error::Unfinished { name: name.into(), begun: stripes.begun() }.into()
}

/// Gives an I/O node's failure the file's name, where that is what it is about.
pub(super) fn about(error: Box<Error>, name: &str) -> Box<Error> {
    let name = name.to_owned();
    if error.is_remote(FailureKind::Exists) {
        Error::Exists { name }.into()
    } else if error.is_remote(FailureKind::BeingWritten) {
        Error::BeingWritten { name }.into()
    } else {
        error
    }
}

fn changing(name: &str) -> Box<Error> {
    Error::Invalid(format!("{name}: others go on changing what has this name")).into()
}

impl<M: Machine> File<M> {
    /// Brings everything written to the file onto the media and makes it the file's lasting contents: an unfinished
    /// file is finished, in place of one that it was made to replace; a finished one is as long for all as it is here.
    ///
    /// An unfinished file is committed with all that any client has written to it. Fails as [`flush`](Self::flush)
    /// does; an unfinished file is unfinished then, or finished if the failure came after the last I/O node had done
    /// its part. If writes to an unfinished file were lost, it stays unfinished: every commit fails.
    pub async fn commit(&self) -> Result<()> {
        let _span = self.notes().span("commit", || [("file", self.id().0)]);
        if !self.is_unfinished() {
            return self.flush().await;
        }
        let bytes = self.refresh().await?;
        if self.is_unfinished() {
            self.check_lacks_nothing()?;
            self.commit_bytes(bytes).await?;
            // Publishes it.
            let stat = self.client.stat(self.name()).await?;
            if stat.file != self.id() {
                return Err(Error::Replaced { name: self.name().to_owned() }.into());
            }
            self.note_finished(stat.bytes);
        }
        Ok(())
    }

    /// Waits until everything written to the file is on the media. A finished file is as long for all then as it is
    /// here; an unfinished one stays unfinished.
    ///
    /// Of a file without a name, the I/O nodes are asked that were written to through this handle or a clone of it; the
    /// first time, also those that had something of it when it was opened.
    ///
    /// Reports, once, any write through this handle or a clone of it that failed since, or was lost with an I/O
    /// node that was started anew. If an I/O node cannot be reached, what it has accepted stays to be flushed.
    pub async fn flush(&self) -> Result<()> {
        self.flush_of(false).await
    }

    /// Flushes the file as [`flush`](Self::flush) does, with the writes of all clients.
    pub async fn flush_all(&self) -> Result<()> {
        self.flush_of(true).await
    }

    /// Flushes the file as [`flush`](Self::flush) does; what others have written included, if `all` says so.
    pub(super) async fn flush_of(&self, all: bool) -> Result<()> {
        let _span = self.notes().span("flush", || [("file", self.id().0)]);
        if let Some(attachments) = self.attachments() {
            return self.flush_numbered(attachments, all).await;
        }
        match self.uncommitted_end() {
            Some(end) => self.commit_bytes(end).await,
            None => self.bring_to_media(|_| Some(Request::Flush { file: self.id() })).await,
        }
    }

    /// Commits a finished file at the size that its stripes on the disks have, whichever client has written them.
    pub(super) async fn commit_all_there_is(&self) -> Result<()> {
        if self.is_unfinished() || self.is_numbered() {
            return Ok(());
        }
        let stat = self.client.stat(self.name()).await?;
        let lengths: Vec<u64> = stat.stripes.iter().map(|&(_, _, bytes)| bytes).collect();
        let bytes = stat.striping.file_bytes(&lengths)?;
        if stat.file == self.id() && bytes > stat.bytes { self.commit_bytes(bytes).await } else { Ok(()) }
    }

    /// Has all I/O nodes commit the file with a size of `bytes`.
    async fn commit_bytes(&self, bytes: u64) -> Result<()> {
        // Before anything is noted: what lacks a write is not to be called whole.
        self.check_lost()?;
        let accepted: BTreeMap<NodeId, u64> = self.accepted();
        let request = |node: NodeId| {
            let incarnation = accepted.get(&node).copied();
            Some(Request::Commit { file: self.id(), bytes, incarnation })
        };
        self.bring_to_media(request).await?;
        self.note_committed(bytes);
        Ok(())
    }
}
