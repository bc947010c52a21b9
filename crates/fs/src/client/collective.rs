//! Collective operations: a group of compute nodes reads or writes a file together, disk-directed as here, or in
//! two phases as in `two_phase.rs`.
//!
//! ```text
//!  member 0   enter ---- one request to each I/O node --- all done --- enter
//!  member 1   enter .... memory open to the I/O nodes ................ enter
//!  ...        (all have opened their memory)             (all may use it again)
//! ```
//!
//! The first member keeps the barriers: each of the others asks to enter and is answered when all have.

use std::cell::Cell;
use std::rc::Rc;

use layout::View;
use machine::{Machine, Memory, NodeId, Payload, Work};

use super::{Client, ClientInner, File};
use crate::endpoint::Asker;
use crate::error::{Error, Failure, Result};
use crate::protocol::{Collective, Direction, MeetingId, MemoryId, Reply, Request};

/// How a group reads or writes a file together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveSettings {
    /// Who moves the data.
    pub method: CollectiveMethod,
    /// Whether Memputs and Memgets wait for others to the same node and go together (gather/scatter): good for
    /// pieces much smaller than a block.
    pub queued: bool,
}

/// Who moves the data of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveMethod {
    /// The I/O nodes, each in the order that suits its disks.
    DiskDirected {
        /// Whether each disk takes its blocks in the order of their physical position.
        presort: bool,
    },
    /// The compute nodes: each reads or writes one contiguous part of the file, and they exchange data after a read
    /// and before a write.
    TwoPhase,
}

impl CollectiveSettings {
    /// Disk-directed, in the order of the file, one message for each piece.
    pub const fn disk_directed() -> Self {
        CollectiveSettings { method: CollectiveMethod::DiskDirected { presort: false }, queued: false }
    }

    /// In two phases, one message for each piece.
    pub const fn two_phase() -> Self {
        CollectiveSettings { method: CollectiveMethod::TwoPhase, queued: false }
    }

    /// As `self`, but with each disk's blocks sorted by position, if the method is disk-directed.
    pub const fn presorted(mut self) -> Self {
        if let CollectiveMethod::DiskDirected { presort } = &mut self.method {
            *presort = true;
        }
        self
    }

    /// As `self`, but with queued Memputs and Memgets.
    pub const fn queued(mut self) -> Self {
        self.queued = true;
        self
    }
}

/// Compute nodes that call collective operations together, in the same order.
#[derive(Clone, Debug)]
pub struct Group {
    /// A number that tells the group from others, drawn by whoever forms it.
    pub id: u64,
    /// The nodes; the first keeps the barriers.
    pub members: Rc<[NodeId]>,
    /// Which of the members this node is.
    pub rank: usize,
    /// How many collective operations and barriers have begun.
    count: Rc<Cell<u32>>,
}

impl Group {
    /// The group of `members`, of which this node is number `rank`.
    ///
    /// # Panics
    /// If there is no such member.
    pub fn new(id: u64, members: Vec<NodeId>, rank: usize) -> Self {
        assert!(rank < members.len(), "member {rank} of a group of {}", members.len());
        Group { id, members: members.into(), rank, count: Rc::default() }
    }

    pub(super) fn next(&self) -> MeetingId {
        self.count.set(self.count.get() + 1);
        MeetingId { group: self.id, operation: self.count.get() }
    }
}

/// Who has come to a barrier that this node keeps.
#[derive(Default)]
pub(super) struct Meeting {
    entered: Vec<Asker>,
    failure: Option<Failure>,
}

/// Barriers nobody has come to collect; more would be somebody's mischief.
const MEETINGS_MAX: usize = 1024;

impl<M: Machine> File<M> {
    /// Reads the file together with the group: this member's part of `view` into `memory`.
    pub async fn read_collective(
        &self,
        group: &Group,
        view: &View,
        memory: &Memory,
        settings: CollectiveSettings,
    ) -> Result<()> {
        if self.bytes() < view.file_bytes() && self.refresh().await? < view.file_bytes() {
            let (view, bytes) = (view.file_bytes(), self.bytes());
            return Err(
                Error::Invalid(format!("the view is of {view} bytes, {} has {bytes}", self.name())).into()
            );
        }
        self.collective(Direction::Read, group, view, memory, settings).await
    }

    /// Writes the file together with the group: this member's part of `view` from `memory`.
    ///
    /// When this completes, all members' data are on the media.
    pub async fn write_collective(
        &self,
        group: &Group,
        view: &View,
        memory: &Memory,
        settings: CollectiveSettings,
    ) -> Result<()> {
        self.collective(Direction::Write, group, view, memory, settings).await?;
        self.note_end(view.file_bytes());
        Ok(())
    }

    /// Opens the memory to the others, lets the method do its work, and closes it when all are done.
    async fn collective(
        &self,
        direction: Direction,
        group: &Group,
        view: &View,
        memory: &Memory,
        settings: CollectiveSettings,
    ) -> Result<()> {
        let id = MemoryId::Collective(group.next());
        let fits = check(group, view, memory);
        let _opened = self.client.inner.open_memory(id, memory);
        let mut outcome = self.client.barrier_with(group, fits).await;
        if outcome.is_ok() {
            let CollectiveSettings { method, queued } = settings;
            outcome = match method {
                CollectiveMethod::DiskDirected { presort } => {
                    let members = group.members.iter().map(|member| member.0).collect();
                    let view = *view;
                    let request =
                        Collective { file: self.id(), direction, presort, queued, view, memory: id, members };
                    self.ask_disk_directed(group, request).await
                }
                CollectiveMethod::TwoPhase => {
                    self.two_phase(direction, group, view, memory, id, queued).await
                }
            };
        }
        self.client.barrier_with(group, outcome).await
    }

    /// The first member asks all I/O nodes; the others have nothing to do.
    async fn ask_disk_directed(&self, group: &Group, request: Collective) -> Result<()> {
        if group.rank > 0 {
            return Ok(());
        }
        self.ask_homes_again(|_| Request::Collective(Box::new(request.clone()))).await
    }
}

fn check(group: &Group, view: &View, memory: &Memory) -> Result<()> {
    let (members, nodes) = (group.members.len(), view.nodes());
    let needed = view.node_bytes(group.rank as u32);
    if members as u64 != u64::from(nodes) {
        Err(Error::Invalid(format!("a group of {members} nodes with a view for {nodes}")).into())
    } else if memory.len() < needed {
        Err(Error::Invalid(format!("a memory of {} bytes for a part of {needed}", memory.len())).into())
    } else {
        Ok(())
    }
}

impl<M: Machine> Client<M> {
    /// Waits until all members of the group have come this far.
    pub async fn barrier(&self, group: &Group) -> Result<()> {
        self.barrier_with(group, Ok(())).await
    }

    /// Waits for all members; if any of them brings a failure, all leave with it.
    pub(super) async fn barrier_with(&self, group: &Group, outcome: Result<()>) -> Result<()> {
        let inner = &self.inner;
        let id = group.next();
        inner.endpoint.machine().compute(Work::Barrier).await;
        let failure = outcome.as_ref().err().map(|error| Failure::from(Error::clone(error)));
        let met = if group.rank == 0 {
            inner.keep_barrier(group, id, failure).await
        } else {
            let request = Request::Enter { meeting: id, failure };
            inner.endpoint.call(group.members[0], request, Payload::empty()).await.map(drop)
        };
        // A member's own error says more than what came back of it from the others.
        outcome.and(met)
    }
}

impl<M: Machine> ClientInner<M> {
    /// Notes that a member has come to a barrier.
    pub(super) fn enter(&self, id: MeetingId, member: Asker, failure: Option<Failure>) {
        // Whoever was gone has come back.
        self.gone.borrow_mut().remove(&member.node);
        let mut meetings = self.meetings.borrow_mut();
        if meetings.len() < MEETINGS_MAX || meetings.contains_key(&id) {
            let meeting = meetings.entry(id).or_default();
            meeting.entered.push(member);
            meeting.failure = meeting.failure.take().or(failure);
        }
        drop(meetings);
        self.meeting_changed.wake_all();
    }

    /// As the first of the group: waits for the others, then lets all go.
    async fn keep_barrier(&self, group: &Group, id: MeetingId, own: Option<Failure>) -> Result<()> {
        let others = &group.members[1..];
        while self.entered(id) < others.len() && !self.any_gone(others) {
            self.meeting_changed.wait().await;
        }
        let Meeting { entered, failure } = self.meetings.borrow_mut().remove(&id).unwrap_or_default();
        let lost = (entered.len() < others.len())
            .then(|| Failure::new(crate::error::FailureKind::Io, "a member of the group is gone"));
        let failure = own.or(failure).or(lost);
        for member in entered {
            let outcome =
                failure.clone().map_or(Ok((Reply::Done, Payload::empty())), |failure| Err(failure.into()));
            self.endpoint.reply(member, outcome).await?;
        }
        failure.map_or(Ok(()), |failure| Err(Error::Remote { node: group.members[0], failure }.into()))
    }

    fn entered(&self, id: MeetingId) -> usize {
        self.meetings.borrow().get(&id).map_or(0, |meeting| meeting.entered.len())
    }

    fn any_gone(&self, members: &[NodeId]) -> bool {
        let gone = self.gone.borrow();
        members.iter().any(|member| gone.contains(member))
    }
}
