//! Membership in a job. One I/O node, the coordinator, keeps the list of members. The members meet there at barriers.

use std::cell::Cell;
use std::marker::PhantomData;

use machine::{Machine, NodeId, Payload, Permit, Permits, Work};

use crate::error::{Error, Result};
use crate::group_operation::{BarrierMembers, BarrierResult, failure_for_members, split_contribution};
use crate::protocol::{CollectiveId, FileId, Reply, Request};
use crate::{Client, unexpected};

/// Reason why a member requests a flush.
#[derive(Clone, Copy)]
pub(super) enum Reason {
    /// A caller or the timer requested a flush of one file, or of all files.
    Asked(Option<FileId>),
    /// The member's log is full. The coordinator delays this flush until the logs of the other members are full too (or
    /// a time limit ends), so that all of them flush the same range of a shared file.
    Room,
}

impl Reason {
    /// Returns the file to flush, or `None` for all.
    pub(super) fn file(self) -> Option<FileId> {
        match self {
            Reason::Asked(file) => file,
            Reason::Room => None,
        }
    }
}

/// A client's membership in a job.
pub(super) struct Membership<M: Machine> {
    /// The I/O node that keeps the list of members.
    coordinator: NodeId,
    job: String,
    member: String,
    group: Cell<u64>,
    /// Number of times that this member has joined.
    joins: Cell<u64>,
    /// Permit that a task holds while it rejoins or leaves.
    joining: Permits,
    machine: PhantomData<M>,
}

impl<M: Machine> Membership<M> {
    /// Joins a job. Returns the membership, and the number of flushes that the job has begun so far.
    pub(super) async fn begin(client: &Client<M>, job: &str, member: &str) -> Result<(Self, u32)> {
        let coordinator = client.coordinator();
        let (job, member) = (job.to_owned(), member.to_owned());
        let membership = Membership {
            coordinator,
            job,
            member,
            group: Cell::new(0),
            joins: Cell::new(0),
            joining: Permits::new(1),
            machine: PhantomData,
        };
        let flushes = membership.renew(client).await?;
        Ok((membership, flushes))
    }

    /// Rejoins the job. Returns the number of flushes that the job has begun so far.
    pub(super) async fn renew(&self, client: &Client<M>) -> Result<u32> {
        let (job, member) = (self.job.clone(), self.member.clone());
        let request = Request::Join { job, member, io_nodes: client.number_of_io_nodes() };
        match self.ask(client, request).await? {
            Reply::Joined { group, flushes } => {
                self.group.set(group);
                self.joins.set(self.joins.get() + 1);
                Ok(flushes)
            }
            _ => Err(unexpected(self.coordinator)),
        }
    }

    /// Returns the number of times that this member has joined.
    pub(super) fn joins(&self) -> u64 {
        self.joins.get()
    }

    /// Blocks until no other task rejoins or leaves the job.
    pub(super) async fn turn_to_join(&self) -> Permit {
        self.joining.take().await
    }

    /// Returns the I/O node that keeps the list of members.
    pub(super) fn coordinator(&self) -> NodeId {
        self.coordinator
    }

    /// Returns the number of the group that the members form.
    pub(super) fn group(&self) -> u64 {
        self.group.get()
    }

    /// Requests that all members flush. Returns the number of the flush that they take part in: `flush` or a later one.
    pub(super) async fn gather(&self, client: &Client<M>, flush: u32, reason: Reason) -> Result<u32> {
        let group = self.group();
        let request = match reason {
            Reason::Asked(file) => Request::Gather { group, flush, file, for_room: false },
            Reason::Room => Request::Gather { group, flush, file: None, for_room: true },
        };
        match self.ask(client, request).await? {
            Reply::Flushing { flush } => Ok(flush),
            _ => Err(unexpected(self.coordinator)),
        }
    }

    /// Leaves the job. If the coordinator has restarted or disconnected, it has forgotten this member. That is not an
    /// error.
    pub(super) async fn end(&self, client: &Client<M>) -> Result<()> {
        match self.ask(client, Request::Leave { group: self.group() }).await {
            Err(error) if !error.is_restart() => Err(error),
            _ => Ok(()),
        }
    }

    async fn ask(&self, client: &Client<M>, request: Request) -> Result<Reply> {
        let (reply, _) = client.inner.endpoint.call(self.coordinator, request, Payload::empty()).await?;
        Ok(reply)
    }
}

/// The barriers that the members of a job enter during one flush.
pub(super) struct FlushBarriers<'a, M: Machine> {
    membership: &'a Membership<M>,
    /// Sequence number of the next barrier. Each flush has two barriers.
    next: Cell<u32>,
    /// Called when all members have entered a barrier.
    on_barrier: &'a dyn Fn(),
}

impl<'a, M: Machine> FlushBarriers<'a, M> {
    pub(super) fn new(membership: &'a Membership<M>, flush: u32, on_barrier: &'a dyn Fn()) -> Self {
        FlushBarriers { membership, next: Cell::new(2 * flush - 1), on_barrier }
    }

    fn id(&self) -> CollectiveId {
        CollectiveId { group: self.membership.group(), operation: self.next.get() }
    }
}

impl<M: Machine> BarrierMembers<M> for FlushBarriers<'_, M> {
    fn next(&self) -> CollectiveId {
        self.id()
    }

    async fn enter_barrier(
        &self,
        client: &Client<M>,
        contribution: std::result::Result<Vec<u8>, &Error>,
    ) -> Result<BarrierResult> {
        let (own, error) = split_contribution(contribution);
        let failure = error.map(failure_for_members);
        client.inner.endpoint.machine().compute(Work::Barrier).await;
        let request =
            Request::EnterBarrier { barrier: self.id(), step: None, contribution: Vec::new(), failure };
        self.next.set(self.next.get() + 1);
        match self.membership.ask(client, request).await? {
            Reply::BarrierDone { members, .. } => {
                (self.on_barrier)();
                let members = members.into_iter().map(NodeId).collect();
                Ok(BarrierResult { members, contributions: vec![own] })
            }
            _ => Err(unexpected(self.membership.coordinator)),
        }
    }
}
