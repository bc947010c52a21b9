//! Collective operations: a group of compute nodes reads or writes a file together, disk-directed.
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
use crate::error::{Error, Failure, Result};
use crate::protocol::{Collective, Direction, MemoryId, Reply, Request};

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

    fn next(&self) -> MemoryId {
        self.count.set(self.count.get() + 1);
        MemoryId { group: self.id, operation: self.count.get() }
    }
}

/// Who has come to a barrier that this node keeps.
#[derive(Default)]
pub(super) struct Meeting {
    entered: Vec<(NodeId, u64)>,
    failure: Option<Failure>,
}

/// Barriers nobody has come to collect; more would be somebody's mischief.
const MEETINGS_MAX: usize = 1024;

impl<M: Machine> File<M> {
    /// Reads the file together with the group: this member's part of `view` into `memory`.
    ///
    /// With `presort`, each disk takes its blocks in the order of their physical position.
    pub async fn read_collective(
        &self,
        group: &Group,
        view: &View,
        memory: &Memory,
        presort: bool,
    ) -> Result<()> {
        if self.bytes() < view.file_bytes() && self.refresh().await? < view.file_bytes() {
            let (view, bytes) = (view.file_bytes(), self.bytes());
            return Err(Error::Invalid(format!("the view is of {view} bytes, {} has {bytes}", self.name())));
        }
        self.collective(Direction::Read, group, view, memory, presort).await
    }

    /// Writes the file together with the group: this member's part of `view` from `memory`.
    ///
    /// When this completes, all members' data are on the media.
    pub async fn write_collective(
        &self,
        group: &Group,
        view: &View,
        memory: &Memory,
        presort: bool,
    ) -> Result<()> {
        self.collective(Direction::Write, group, view, memory, presort).await?;
        self.note_end(view.file_bytes());
        Ok(())
    }

    async fn collective(
        &self,
        direction: Direction,
        group: &Group,
        view: &View,
        memory: &Memory,
        presort: bool,
    ) -> Result<()> {
        let inner = &self.client.inner;
        let id = group.next();
        let fits = check(group, view, memory);
        inner.memories.borrow_mut().insert(id, memory.clone());
        let mut outcome = self.client.barrier_with(group, fits).await;
        if outcome.is_ok() && group.rank == 0 {
            let members = group.members.iter().map(|member| member.0).collect();
            let request =
                Collective { file: self.id(), direction, presort, view: *view, memory: id, members };
            outcome = self.ask_homes(|_| Request::Collective(Box::new(request.clone()))).await;
        }
        let outcome = self.client.barrier_with(group, outcome).await;
        inner.memories.borrow_mut().remove(&id);
        outcome
    }
}

fn check(group: &Group, view: &View, memory: &Memory) -> Result<()> {
    let (members, nodes) = (group.members.len(), view.nodes());
    let needed = view.node_bytes(group.rank as u32);
    if members as u64 != u64::from(nodes) {
        Err(Error::Invalid(format!("a group of {members} nodes with a view for {nodes}")))
    } else if memory.len() < needed {
        Err(Error::Invalid(format!("a memory of {} bytes for a part of {needed}", memory.len())))
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
    async fn barrier_with(&self, group: &Group, outcome: Result<()>) -> Result<()> {
        let inner = &self.inner;
        let id = group.next();
        inner.endpoint.machine().compute(Work::Barrier).await;
        let failure = outcome.as_ref().err().cloned().map(Failure::from);
        let met = if group.rank == 0 {
            inner.keep_barrier(group, id, failure).await
        } else {
            let request = Request::Enter { memory: id, failure };
            inner.endpoint.call(group.members[0], request, Payload::empty()).await.map(drop)
        };
        // A member's own error says more than what came back of it from the others.
        outcome.and(met)
    }
}

impl<M: Machine> ClientInner<M> {
    /// Notes that a member has come to a barrier.
    pub(super) fn enter(&self, id: MemoryId, from: NodeId, tag: u64, failure: Option<Failure>) {
        let mut meetings = self.meetings.borrow_mut();
        if meetings.len() < MEETINGS_MAX || meetings.contains_key(&id) {
            let meeting = meetings.entry(id).or_default();
            meeting.entered.push((from, tag));
            meeting.failure = meeting.failure.take().or(failure);
        }
        drop(meetings);
        self.meeting_changed.wake_all();
    }

    /// As the first of the group: waits for the others, then lets all go.
    async fn keep_barrier(&self, group: &Group, id: MemoryId, own: Option<Failure>) -> Result<()> {
        let others = &group.members[1..];
        while self.entered(id) < others.len() && !self.any_gone(others) {
            self.meeting_changed.wait().await;
        }
        let Meeting { entered, failure } = self.meetings.borrow_mut().remove(&id).unwrap_or_default();
        let lost = (entered.len() < others.len())
            .then(|| Failure::new(crate::error::FailureKind::Io, "a member of the group is gone"));
        let failure = own.or(failure).or(lost);
        for (member, tag) in entered {
            let outcome = failure.clone().map_or(Ok((Reply::Done, Payload::empty())), Err);
            self.endpoint.reply(member, tag, outcome).await?;
        }
        failure.map_or(Ok(()), |failure| Err(Error::Remote { node: group.members[0], failure }))
    }

    fn entered(&self, id: MemoryId) -> usize {
        self.meetings.borrow().get(&id).map_or(0, |meeting| meeting.entered.len())
    }

    fn any_gone(&self, members: &[NodeId]) -> bool {
        let gone = self.gone.borrow();
        members.iter().any(|member| gone.contains(member))
    }
}
