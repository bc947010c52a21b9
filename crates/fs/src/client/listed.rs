//! Collective operations on listed stretches of files, by directories: see [`crate::directory`].
//!
//! ```text
//!  member 0   entries to the I/O nodes they concern --- barrier --- one request to each I/O node --- barrier
//!  member 1   entries to the I/O nodes they concern --- barrier ........ memory open ............... barrier
//! ```
//!
//! The members may have entries of different files, or none.

use std::rc::Rc;

use machine::{Duration, Machine, Memory, NodeId, Payload, Work};

use super::file::{check_memory, check_no_file_ends_before};
use super::telling::{FileEntries, Told, ToldInRuns, ToldSingly, told_to_each};
use super::{Client, ClientInner, Group, unexpected};
use crate::endpoint::Mailbox;
use crate::error::{Error, Failure, Result};
use crate::protocol::{Direction, Listed, MeetingId, MemoryId, Reply, Request};

/// How a group moves listed stretches of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedSettings {
    /// Whether each disk takes its blocks in the order of their physical position.
    pub presort: bool,
    /// Whether pieces of the same node travel together (gather/scatter), and stretches that go on regularly are told
    /// and fetched as one.
    pub queued: bool,
}

/// What an operation on listed stretches has moved, as far as this member knows: only the first knows all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// How many blocks of each disk had a part in it, in the order of the client's I/O nodes.
    pub blocks: Vec<u64>,
    /// How many bytes of members gave way to what another member had written later.
    pub hidden: u64,
    /// Where the time went, as this member saw it.
    pub times: MoveTimes,
}

/// Where the time of an operation on listed stretches goes, as one member sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveTimes {
    /// Telling the I/O nodes its stretches, until all of them have answered.
    pub telling: Duration,
    /// Waiting until all members have told theirs.
    pub meeting: Duration,
    /// The I/O nodes at work: sorting, moving data, disks; until all members know that it is done.
    pub moving: Duration,
}

impl MoveTimes {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.telling + self.meeting + self.moving
    }

    /// Takes in those of another operation.
    pub fn add(&mut self, other: &MoveTimes) {
        self.telling += other.telling;
        self.meeting += other.meeting;
        self.moving += other.moving;
    }
}

/// What is common to all attempts at an operation.
pub(super) struct ListedOperation<'a> {
    pub(super) direction: Direction,
    pub(super) memory: &'a Memory,
    pub(super) settings: ListedSettings,
}

/// Members who meet, before and after an operation.
pub(super) trait Gathering<M: Machine> {
    /// Begins the next operation: its name, by which the memory of its members is known.
    fn next(&self) -> MeetingId;

    /// Waits for all members, and tells who they are; if any of them brings a failure, all leave with the same one.
    async fn meet(&self, client: &Client<M>, failure: Option<&Error>) -> Result<Rc<[NodeId]>>;
}

impl<M: Machine> Gathering<M> for Group {
    fn next(&self) -> MeetingId {
        Group::next(self)
    }

    async fn meet(&self, client: &Client<M>, failure: Option<&Error>) -> Result<Rc<[NodeId]>> {
        client.meet_with(self, failure.map(|error| Failure::from(error.clone()))).await?;
        Ok(self.members.clone())
    }
}

impl<M: Machine> Client<M> {
    /// Reads stretches of files into `memory`, together with the other members of a group and theirs.
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

    /// Writes stretches of files from `memory`, together with the other members of a group and theirs.
    ///
    /// When this completes, all members' data are on the media. Where stretches overlap, the latest is written; of
    /// bytes that are in none, none is changed.
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

    /// Moves all members' stretches; once more, the files being open again, if an I/O node was started anew.
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
        let mut fits = check_parts(parts, memory);
        let mut again = true;
        loop {
            let (own, common) = self.move_once(&operation, group, parts, &fits).await;
            match common {
                // What is common to all members decides, so that all begin again or none.
                Err(error) if again && error.is_of_new_start() => {
                    again = false;
                    // A failure is told to the others when they meet again.
                    for part in parts {
                        fits = fits.and(part.file.refresh().await.map(drop));
                    }
                }
                Err(error) => return own.and(Err(error)),
                Ok(()) => return own,
            }
        }
    }

    /// One attempt: what came of this member's part, and what is common to all.
    pub(super) async fn move_once(
        &self,
        operation: &ListedOperation<'_>,
        gathering: &impl Gathering<M>,
        parts: &[FileEntries<M>],
        fits: &Result<()>,
    ) -> (Result<Moved>, Result<()>) {
        let ListedOperation { direction, memory, settings: ListedSettings { presort, queued } } = *operation;
        let id = MemoryId::Collective(gathering.next());
        let _opened = self.inner.open_memory(id, memory);
        let machine = self.inner.endpoint.machine();
        let begun = machine.now();
        let telling = machine.notes().span("tell directories", || []);
        let told = match fits {
            Ok(()) => self.tell_directories(id, parts, operation.settings).await,
            Err(error) => Err(error.clone()),
        };
        drop(telling);
        let all_told = machine.now();
        let meeting = machine.notes().span("wait for members", || []);
        let met = gathering.meet(self, told.as_ref().err().map(|error| &**error)).await;
        drop(meeting);
        let all_met = machine.now();
        let _moving = machine.notes().span("wait for I/O nodes", || []);
        let mut own = told.map(|()| Moved::default());
        if let Ok(members) = &met
            && members[0] == machine.node()
        {
            let members = members.iter().map(|member| member.0).collect();
            let request = Listed { direction, presort, queued, memory: id, members };
            own = self.ask_to_move(request).await;
        }
        let done = gathering.meet(self, own.as_ref().err().map(|error| &**error)).await;
        if let Ok(moved) = &mut own {
            moved.times = MoveTimes {
                telling: all_told.since(begun),
                meeting: all_met.since(all_told),
                moving: machine.now().since(all_met),
            };
        }
        (own, met.and(done).map(drop))
    }

    /// Tells each I/O node the entries that concern it.
    async fn tell_directories(
        &self,
        memory: MemoryId,
        parts: &[FileEntries<M>],
        settings: ListedSettings,
    ) -> Result<()> {
        for FileEntries { file, entries } in parts {
            for entry in entries.iter().filter(|_| file.is_numbered()) {
                // Also to be read: of a stripe that is not there an I/O node says nothing.
                file.attach_extent(entry.extent(), true).await?;
            }
        }
        let entries = parts.iter().map(|part| part.entries.len() as u64).sum();
        self.inner.endpoint.machine().compute(Work::DealEntries { entries }).await;
        let (mailbox, mut asked) = (Mailbox::new(), 0);
        let requests = if settings.queued {
            self.requests_of::<ToldInRuns>(parts, memory)
        } else {
            self.requests_of::<ToldSingly>(parts, memory)
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

    /// The requests that tell these entries, each with the I/O node it is for.
    fn requests_of<T: Told>(&self, parts: &[FileEntries<M>], memory: MemoryId) -> Vec<(NodeId, Request)> {
        let told = told_to_each::<T, M>(parts, self.io_nodes().len());
        let of_each = self.io_nodes().iter().zip(told);
        of_each
            .flat_map(|(&node, told)| told.requests(memory).into_iter().map(move |one| (node, one)))
            .collect()
    }

    /// As the first member: asks all I/O nodes, and waits until all have done it.
    async fn ask_to_move(&self, request: Listed) -> Result<Moved> {
        let answers = self.ask_all(|_| Some(Request::MoveListed(Box::new(request.clone())))).await;
        let (mut moved, mut outcome) = (Moved::default(), Ok(()));
        for (node, answer) in answers {
            match answer {
                Ok((Reply::Moved { blocks, hidden }, _)) => {
                    moved.blocks.extend(blocks);
                    moved.hidden += hidden;
                }
                Ok(_) => outcome = outcome.and(Err(unexpected(node))),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome.map(|()| moved)
    }
}

/// Refuses entries that reach beyond the memory or beyond any file.
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
    /// The index of an I/O node among those this client knows.
    pub(super) fn index_of(&self, node: NodeId) -> usize {
        self.io_nodes.iter().position(|&other| other == node).expect("a home is an I/O node of the client")
    }
}
