//! Collective operations: a group of compute nodes reads or writes a file together, disk-directed as here, or in two
//! phases as in `two_phase.rs`.
//!
//! ```text
//!  member 0   enter ---- one request to each I/O node --- all done --- enter
//!  member 1   enter .... memory open to the I/O nodes ................ enter
//!  ...        (all have opened their memory)             (all may use it again)
//! ```
//!
//! The first member coordinates the barriers: each of the others asks to enter and is answered when all have entered.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use layout::View;
use machine::{Machine, Memory, NodeId, Payload, Work};

use super::group_operation::{BarrierMembers, BarrierResult, ExchangeMembers, split_contribution};
use super::{Client, ClientInner, File};
use crate::endpoint::Caller;
use crate::error::{Error, Failure, Result};
use crate::protocol::{Collective, CollectiveId, Direction, MemoryId, Reply, Request};
use crate::settings::CollectiveMethod;

/// Settings of a group's read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveSettings {
    /// Method, which determines the nodes that move the data.
    pub method: CollectiveMethod,
    /// True if Memputs and Memgets wait for others to the same node and are sent together (gather/scatter): good for
    /// pieces much smaller than a block.
    pub queued: bool,
}

impl CollectiveSettings {
    /// Returns disk-directed settings, with blocks in file order and one message for each piece.
    pub const fn disk_directed() -> Self {
        CollectiveSettings { method: CollectiveMethod::DiskDirected { presort: false }, queued: false }
    }

    /// Returns two-phase settings with one message for each piece.
    pub const fn two_phase() -> Self {
        CollectiveSettings { method: CollectiveMethod::TwoPhase, queued: false }
    }

    /// Returns `self` with each disk's blocks sorted by position, if the method is disk-directed.
    pub const fn presorted(mut self) -> Self {
        if let CollectiveMethod::DiskDirected { presort } = &mut self.method {
            *presort = true;
        }
        self
    }

    /// Returns `self` with queued Memputs and Memgets.
    pub const fn queued(mut self) -> Self {
        self.queued = true;
        self
    }
}

/// Compute nodes that call collective operations together, in the same order.
#[derive(Clone, Debug)]
pub struct Group {
    /// Identity of the group; drawn at random by the node that forms it.
    pub id: u64,
    /// The nodes; the first one coordinates the barriers.
    pub members: Rc<[NodeId]>,
    /// Index of this node among the members.
    pub rank: usize,
    /// Number of collective operations and barriers begun.
    count: Rc<Cell<u32>>,
}

impl Group {
    /// Returns the group of `members`, in which this node has index `rank`.
    ///
    /// # Panics
    /// Panics if `rank` is out of range.
    pub fn new(id: u64, members: Vec<NodeId>, rank: usize) -> Self {
        assert!(rank < members.len(), "member {rank} of a group of {}", members.len());
        Group { id, members: members.into(), rank, count: Rc::default() }
    }

    pub(super) fn next(&self) -> CollectiveId {
        self.count.set(self.count.get() + 1);
        CollectiveId { group: self.id, operation: self.count.get() }
    }
}

/// A barrier that this node coordinates.
#[derive(Default)]
pub(super) struct Barrier {
    /// Nodes that have entered, members or not, in order of arrival, each with its failure if any.
    entered: Vec<(Caller, Option<Failure>)>,
}

impl Barrier {
    fn has(&self, node: NodeId) -> bool {
        self.entered.iter().any(|(entered, _)| entered.node == node)
    }

    /// Returns true if all of the members have entered.
    fn is_complete(&self, members: &BTreeSet<NodeId>) -> bool {
        let is_member = |entered: &&(Caller, Option<Failure>)| members.contains(&entered.0.node);
        // Compare the lengths first: counting is slow for large groups.
        self.entered.len() >= members.len() && self.entered.iter().filter(is_member).count() == members.len()
    }
}

/// Limit of barriers that one node may have entered before this node, their coordinator, enters them. A member waits in
/// one barrier for each of its groups.
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
    /// On completion all members' data are on stable storage.
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

    /// Opens the memory to the other nodes, moves the data by the chosen method, and closes the memory when all members
    /// are done.
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
        let mut outcome = group.enter_barrier_after(&self.client, fits).await;
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
        group.enter_barrier_after(&self.client, outcome).await
    }

    /// Asks all I/O nodes as the first member; does nothing as any other.
    async fn ask_disk_directed(&self, group: &Group, request: Collective) -> Result<()> {
        if group.rank > 0 {
            return Ok(());
        }
        self.retry_once(async || {
            // Even a read needs all stripes to exist, so that each I/O node can report on its stripes.
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

impl<M: Machine> BarrierMembers<M> for Group {
    fn next(&self) -> CollectiveId {
        Group::next(self)
    }

    async fn enter_barrier(
        &self,
        client: &Client<M>,
        contribution: std::result::Result<Vec<u8>, &Error>,
    ) -> Result<BarrierResult> {
        let (own, error) = split_contribution(contribution);
        client.enter_group_barrier(self, error.map(|error| Failure::from(error.clone()))).await?;
        Ok(BarrierResult { members: self.members.clone(), contributions: vec![own] })
    }
}

impl<M: Machine> ExchangeMembers<M> for Group {
    fn members(&self) -> &Rc<[NodeId]> {
        &self.members
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn next_two(&self) -> [CollectiveId; 2] {
        [Group::next(self), Group::next(self)]
    }
}

impl<M: Machine> Client<M> {
    /// Blocks until all members of the group have entered the barrier.
    pub async fn barrier(&self, group: &Group) -> Result<()> {
        group.enter_barrier_after(self, Ok(())).await
    }

    /// Blocks until all members have entered the barrier. If any member brings a failure, all members fail with the
    /// same failure.
    pub(super) async fn enter_group_barrier(&self, group: &Group, failure: Option<Failure>) -> Result<()> {
        let inner = &self.inner;
        let _span = inner.endpoint.machine().notes().span("barrier", || []);
        let id = group.next();
        inner.endpoint.machine().compute(Work::Barrier).await;
        if group.rank == 0 {
            inner.coordinate_barrier(group, id, failure).await
        } else {
            let request =
                Request::EnterBarrier { barrier: id, step: None, contribution: Vec::new(), failure };
            inner.endpoint.call(group.members[0], request, Payload::empty()).await.map(drop)
        }
    }
}

impl<M: Machine> ClientInner<M> {
    /// Records that a node has entered a barrier. This node checks its membership only when it enters the barrier
    /// itself.
    pub(super) async fn enter(
        &self,
        id: CollectiveId,
        node: Caller,
        failure: Option<Failure>,
    ) -> machine::Result<()> {
        // A disconnected node has reconnected.
        self.disconnected.borrow_mut().remove(&node.node);
        let is_early = |barrier: &&Barrier| barrier.has(node.node);
        if self.barriers.borrow().values().filter(is_early).count() >= EARLY_MAX {
            return self.refuse(node, "has entered too many barriers").await;
        }
        if self.barriers.borrow().get(&id).is_some_and(|barrier| barrier.has(node.node)) {
            return self.refuse(node, "has already entered this barrier").await;
        }
        self.barriers.borrow_mut().entry(id).or_default().entered.push((node, failure));
        self.barrier_changed.wake_all();
        Ok(())
    }

    async fn refuse(&self, node: Caller, why: &str) -> machine::Result<()> {
        let failure = Failure::invalid(format!("{} {why}", node.node));
        self.endpoint.reply(node, Err(failure.into())).await
    }

    /// Removes a disconnected node from all barriers.
    pub(super) fn leave(&self, node: NodeId) {
        let mut barriers = self.barriers.borrow_mut();
        barriers.retain(|_, barrier| {
            barrier.entered.retain(|(entered, _)| entered.node != node);
            !barrier.entered.is_empty()
        });
    }

    /// Coordinates a barrier as the first member of the group: waits for the others, then releases all of them.
    async fn coordinate_barrier(&self, group: &Group, id: CollectiveId, own: Option<Failure>) -> Result<()> {
        let others: BTreeSet<NodeId> = group.members[1..].iter().copied().collect();
        while !self.is_complete(id, &others) && !self.any_disconnected(&others) {
            self.barrier_changed.wait().await;
        }
        let barrier = self.barriers.borrow_mut().remove(&id).unwrap_or_default();
        let lost = (!barrier.is_complete(&others))
            .then(|| Failure::new(crate::error::FailureKind::Io, "a member of the group disconnected"));
        let (entered, strangers): (Vec<_>, Vec<_>) =
            barrier.entered.into_iter().partition(|(node, _)| others.contains(&node.node));
        let reported = entered.iter().find_map(|(_, failure)| failure.clone());
        let failure = own.or(reported).or(lost);
        for (member, _) in entered {
            let outcome =
                failure.clone().map_or(Ok((Reply::Done, Payload::empty())), |failure| Err(failure.into()));
            self.endpoint.reply(member, outcome).await?;
        }
        for (stranger, _) in strangers {
            self.refuse(stranger, "is not a member of the group").await?;
        }
        failure.map_or(Ok(()), |failure| Err(Error::Remote { node: group.members[0], failure }.into()))
    }

    fn is_complete(&self, id: CollectiveId, members: &BTreeSet<NodeId>) -> bool {
        self.barriers.borrow().get(&id).map_or(members.is_empty(), |barrier| barrier.is_complete(members))
    }

    fn any_disconnected(&self, members: &BTreeSet<NodeId>) -> bool {
        !self.disconnected.borrow().is_disjoint(members)
    }
}
