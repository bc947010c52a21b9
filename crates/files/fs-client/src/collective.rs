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
use std::collections::BTreeSet;
use std::rc::Rc;

use layout::View;
use machine::{Machine, Memory, NodeId, Payload, Work};

use super::together::{Exchanging, Gathering, Met, taken_apart};
use super::{Client, ClientInner, File};
use crate::endpoint::Caller;
use crate::error::{Error, Failure, Result};
use crate::protocol::{Collective, Direction, MeetingId, MemoryId, Reply, Request};
use crate::settings::CollectiveMethod;

/// How a group reads or writes a file together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveSettings {
    /// Who moves the data.
    pub method: CollectiveMethod,
    /// Whether Memputs and Memgets wait for others to the same node and go together (gather/scatter): good for
    /// pieces much smaller than a block.
    pub queued: bool,
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
    /// Identifies the group; drawn at random by the node that forms it.
    pub id: u64,
    /// The nodes; the first keeps the barriers.
    pub members: Rc<[NodeId]>,
    /// The index of this node among the members.
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

/// The nodes that have come to a barrier that this node keeps.
#[derive(Default)]
pub(super) struct Barrier {
    /// The nodes that have come, members or not, in order of arrival, each with the failure that it brings.
    entered: Vec<(Caller, Option<Failure>)>,
}

impl Barrier {
    fn has(&self, node: NodeId) -> bool {
        self.entered.iter().any(|(entered, _)| entered.node == node)
    }

    /// Whether all of the members have come.
    fn is_complete(&self, members: &BTreeSet<NodeId>) -> bool {
        let is_member = |entered: &&(Caller, Option<Failure>)| members.contains(&entered.0.node);
        // Counted only when it may be so, for groups are large.
        self.entered.len() >= members.len() && self.entered.iter().filter(is_member).count() == members.len()
    }
}

/// Barriers at which one node can be before this node, which keeps them, has come to them. A member is at one for each
/// of its groups.
const EARLY_MAX: usize = 64;

impl<M: Machine> File<M> {
    /// Reads the file together with the group: this member's part of `view` into `memory`.
    pub async fn read_collective(
        &self,
        group: &Group,
        view: &View,
        memory: &Memory,
        settings: CollectiveSettings,
    ) -> Result<()> {
        if self.bytes() < view.file_bytes() {
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
        let name = match direction {
            Direction::Read => "collective read",
            Direction::Write => "collective write",
        };
        let about = || [("file", self.id().0), ("bytes", view.node_bytes(group.rank as u32))];
        let _span = self.notes().span(name, about);
        let id = MemoryId::Collective(group.next());
        let fits = check(group, view, memory);
        let _opened = self.client.inner.open_memory(id, memory);
        let mut outcome = group.meet_after(&self.client, fits).await;
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
        group.meet_after(&self.client, outcome).await
    }

    /// The first member asks all I/O nodes; the others have nothing to do.
    async fn ask_disk_directed(&self, group: &Group, request: Collective) -> Result<()> {
        if group.rank > 0 {
            return Ok(());
        }
        self.once_more(async || {
            // Of a file all stripes have to be there, so that something is said of each.
            self.attach_all(true).await?;
            self.ask_homes(|_| Some(Request::Collective(Box::new(request.clone())))).await
        })
        .await
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

impl<M: Machine> Gathering<M> for Group {
    fn next(&self) -> MeetingId {
        Group::next(self)
    }

    async fn meet(&self, client: &Client<M>, brings: std::result::Result<Vec<u8>, &Error>) -> Result<Met> {
        let (own, error) = taken_apart(brings);
        client.meet_with(self, error.map(|error| Failure::from(error.clone()))).await?;
        Ok(Met { members: self.members.clone(), brought: vec![own] })
    }
}

impl<M: Machine> Exchanging<M> for Group {
    fn members(&self) -> &Rc<[NodeId]> {
        &self.members
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn next_two(&self) -> [MeetingId; 2] {
        [Group::next(self), Group::next(self)]
    }
}

impl<M: Machine> Client<M> {
    /// Waits until all members of the group have come this far.
    pub async fn barrier(&self, group: &Group) -> Result<()> {
        group.meet_after(self, Ok(())).await
    }

    /// Waits for all members; if any of them brings a failure, all leave with the same one.
    pub(super) async fn meet_with(&self, group: &Group, failure: Option<Failure>) -> Result<()> {
        let inner = &self.inner;
        let _span = inner.endpoint.machine().notes().span("barrier", || []);
        let id = group.next();
        inner.endpoint.machine().compute(Work::Barrier).await;
        if group.rank == 0 {
            inner.keep_barrier(group, id, failure).await
        } else {
            let request = Request::Meet { meeting: id, step: None, brings: Vec::new(), failure };
            inner.endpoint.call(group.members[0], request, Payload::empty()).await.map(drop)
        }
    }
}

impl<M: Machine> ClientInner<M> {
    /// Notes that a node has come to a barrier. Whether it is a member this node knows when it comes there, too.
    pub(super) async fn enter(
        &self,
        id: MeetingId,
        node: Caller,
        failure: Option<Failure>,
    ) -> machine::Result<()> {
        // A node that was gone has come back.
        self.gone.borrow_mut().remove(&node.node);
        let is_early = |meeting: &&Barrier| meeting.has(node.node);
        if self.meetings.borrow().values().filter(is_early).count() >= EARLY_MAX {
            return self.refuse(node, "has come to too many meetings").await;
        }
        if self.meetings.borrow().get(&id).is_some_and(|meeting| meeting.has(node.node)) {
            return self.refuse(node, "has come to this meeting already").await;
        }
        self.meetings.borrow_mut().entry(id).or_default().entered.push((node, failure));
        self.meeting_changed.wake_all();
        Ok(())
    }

    async fn refuse(&self, node: Caller, why: &str) -> machine::Result<()> {
        let failure = Failure::invalid(format!("{} {why}", node.node));
        self.endpoint.reply(node, Err(failure.into())).await
    }

    /// Forgets that a node that is gone has come to barriers.
    pub(super) fn leave(&self, node: NodeId) {
        let mut meetings = self.meetings.borrow_mut();
        meetings.retain(|_, meeting| {
            meeting.entered.retain(|(entered, _)| entered.node != node);
            !meeting.entered.is_empty()
        });
    }

    /// As the first of the group: waits for the others, then lets all go.
    async fn keep_barrier(&self, group: &Group, id: MeetingId, own: Option<Failure>) -> Result<()> {
        let others: BTreeSet<NodeId> = group.members[1..].iter().copied().collect();
        while !self.is_complete(id, &others) && !self.any_gone(&others) {
            self.meeting_changed.wait().await;
        }
        let meeting = self.meetings.borrow_mut().remove(&id).unwrap_or_default();
        let lost = (!meeting.is_complete(&others))
            .then(|| Failure::new(crate::error::FailureKind::Io, "a member of the group is gone"));
        let (entered, strangers): (Vec<_>, Vec<_>) =
            meeting.entered.into_iter().partition(|(node, _)| others.contains(&node.node));
        let brought = entered.iter().find_map(|(_, failure)| failure.clone());
        let failure = own.or(brought).or(lost);
        for (member, _) in entered {
            let outcome =
                failure.clone().map_or(Ok((Reply::Done, Payload::empty())), |failure| Err(failure.into()));
            self.endpoint.reply(member, outcome).await?;
        }
        for (stranger, _) in strangers {
            self.refuse(stranger, "is not of the group").await?;
        }
        failure.map_or(Ok(()), |failure| Err(Error::Remote { node: group.members[0], failure }.into()))
    }

    fn is_complete(&self, id: MeetingId, members: &BTreeSet<NodeId>) -> bool {
        self.meetings.borrow().get(&id).map_or(members.is_empty(), |meeting| meeting.is_complete(members))
    }

    fn any_gone(&self, members: &BTreeSet<NodeId>) -> bool {
        !self.gone.borrow().is_disjoint(members)
    }
}
