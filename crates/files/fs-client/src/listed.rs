//! Collective operations on lists of extents, by directories: see [`crate::directory`].
//!
//! ```text
//!  member 0   entries to the I/O nodes they concern --- barrier --- one request to each I/O node --- barrier
//!  member 1   entries to the I/O nodes they concern --- barrier ........ memory open ............... barrier
//! ```
//!
//! The members may have entries of different files, or none.

use machine::{Machine, Memory, NodeId, Payload, Work};

use super::extent_lists::{
    Directory, DirectoryOfEntries, DirectoryOfRuns, FileEntries, directories_by_io_node,
};
use super::file::{check_memory, check_no_file_ends_before};
use super::group_operation::{BarrierMembers, BarrierResult, CommonOperation, Moved, attempts, moved_by};
use super::{Client, ClientInner, Group};
use crate::endpoint::Mailbox;
use crate::error::{Error, Result};
use crate::protocol::{Direction, Listed, MemoryId, Request};

/// Settings of a group's access to lists of extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedSettings {
    /// True if each disk processes its blocks in the order of their physical position.
    pub presort: bool,
    /// True if pieces of the same node are sent together (gather/scatter), and regular sequences of extents are encoded
    /// and fetched as one.
    pub queued: bool,
}

/// Parameters common to all attempts at an operation.
pub(super) struct ListedOperation<'a> {
    pub(super) direction: Direction,
    pub(super) memory: &'a Memory,
    pub(super) settings: ListedSettings,
}

impl<M: Machine> Client<M> {
    /// Reads extents of files into `memory`, together with the other members of a group and their extents.
    ///
    /// Bytes beyond the end of a file are zeros.
    pub async fn read_listed(
        &self,
        group: &Group,
        parts: &[FileEntries<M>],
        memory: &Memory,
        settings: ListedSettings,
    ) -> Result<Moved> {
        self.move_listed(Direction::Read, group, parts, memory, settings).await
    }

    /// Writes extents of files from `memory`, together with the other members of a group and their extents.
    ///
    /// On completion all members' data are on stable storage. Where extents overlap, the latest is written. Bytes
    /// outside all extents do not change.
    pub async fn write_listed(
        &self,
        group: &Group,
        parts: &[FileEntries<M>],
        memory: &Memory,
        settings: ListedSettings,
    ) -> Result<Moved> {
        let moved = self.move_listed(Direction::Write, group, parts, memory, settings).await?;
        for FileEntries { file, entries } in parts {
            file.note_end(entries.iter().map(|entry| entry.extent().end()).max().unwrap_or(0));
        }
        Ok(moved)
    }

    /// Moves all members' extents. If an I/O node restarted, opens the files again and retries once.
    async fn move_listed(
        &self,
        direction: Direction,
        group: &Group,
        parts: &[FileEntries<M>],
        memory: &Memory,
        settings: ListedSettings,
    ) -> Result<Moved> {
        let name = match direction {
            Direction::Read => "listed read",
            Direction::Write => "listed write",
        };
        let _span = self.inner.endpoint.machine().notes().span(name, || [("files", parts.len() as u64)]);
        let operation = ListedOperation { direction, memory, settings };
        let fits = check_parts(parts, memory);
        let attempt = async |fits: &Result<()>| self.move_once(&operation, group, parts, fits).await;
        let reopen = || parts.iter().for_each(|part| part.file.refresh());
        attempts(attempt, reopen, fits).await
    }

    /// Makes one attempt. Returns the outcome of this member's part, and the outcome that all members share.
    pub(super) async fn move_once(
        &self,
        operation: &ListedOperation<'_>,
        gathering: &impl BarrierMembers<M>,
        parts: &[FileEntries<M>],
        fits: &Result<()>,
    ) -> (Result<Moved>, Result<()>) {
        let ListedOperation { direction, memory, settings } = *operation;
        let send = async |id| match fits {
            Ok(()) => self.send_directories(id, parts, settings).await.map(|()| 0),
            Err(error) => Err(error.clone()),
        };
        let ask = async |memory, entered: BarrierResult| {
            let (members, ListedSettings { presort, queued }) = (entered.members, settings);
            let members = members.iter().map(|member| member.0).collect();
            let request = Listed { direction, presort, queued, memory, members };
            moved_by(self.ask_all(|_| Some(Request::MoveListed(Box::new(request.clone())))).await)
        };
        let (span_name, disconnects) = ("tell directories", self.disconnects_of_io_nodes());
        let (mut own, common) =
            self.attempt(gathering, CommonOperation { memory, span_name, send, ask }).await;
        // An I/O node moves nothing for a member without a directory. It may have dropped this member's directory after
        // this member entered the last barrier, so check once more.
        if common.is_ok() {
            own = own.and_then(|moved| self.check_still_connected(&disconnects).map(|()| moved));
        }
        (own, common)
    }

    /// Sends each I/O node its entries.
    async fn send_directories(
        &self,
        memory: MemoryId,
        parts: &[FileEntries<M>],
        settings: ListedSettings,
    ) -> Result<()> {
        for FileEntries { file, entries } in parts {
            for entry in entries {
                // Create stripes for reads, too: an I/O node returns no data of missing stripes.
                file.attach_extent(entry.extent(), true).await?;
            }
        }
        let entries = parts.iter().map(|part| part.entries.len() as u64).sum();
        self.inner.endpoint.machine().compute(Work::DealEntries { entries }).await;
        let (mailbox, mut asked) = (Mailbox::new(), 0);
        let requests = if settings.queued {
            self.requests_of::<DirectoryOfRuns>(parts, memory)
        } else {
            self.requests_of::<DirectoryOfEntries>(parts, memory)
        };
        for (node, request) in requests {
            self.inner.endpoint.begin(node, request, Payload::empty(), &mailbox, 0).await;
            asked += 1;
        }
        let mut outcome = Ok(());
        for _ in 0..asked {
            outcome = outcome.and(mailbox.next().await.1.map(drop));
        }
        outcome
    }

    /// Returns the requests that carry these entries, each with its I/O node.
    fn requests_of<T: Directory>(
        &self,
        parts: &[FileEntries<M>],
        memory: MemoryId,
    ) -> Vec<(NodeId, Request)> {
        let directories = directories_by_io_node::<T, M>(parts, self.io_nodes().len());
        let of_each = self.io_nodes().iter().zip(directories);
        of_each
            .flat_map(|(&node, directory)| directory.requests(memory).into_iter().map(move |one| (node, one)))
            .collect()
    }
}

/// Fails if an entry extends beyond the memory or the largest offset of a file.
pub(super) fn check_parts<M: Machine>(parts: &[FileEntries<M>], memory: &Memory) -> Result<()> {
    for FileEntries { file, entries } in parts {
        for entry in entries {
            let of_file = |error| Error::Invalid(format!("{}: {error}", file.name()));
            check_no_file_ends_before(entry.extent()).map_err(of_file)?;
            check_memory(memory, entry.at, entry.bytes)?;
        }
    }
    Ok(())
}

impl<M: Machine> ClientInner<M> {
    /// Returns the index of an I/O node among those this client knows.
    pub(super) fn index_of(&self, node: NodeId) -> usize {
        self.io_nodes.iter().position(|&other| other == node).expect("a home is an I/O node of the client")
    }
}
