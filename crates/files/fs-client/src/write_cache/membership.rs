//! Membership of a job: the coordinator records the members, and they enter its barriers.

use std::cell::Cell;
use std::marker::PhantomData;

use machine::{Machine, NodeId, Payload, Work};

use crate::error::{Error, Result};
use crate::group_operation::{BarrierMembers, BarrierResult, failure_for_members, split_contribution};
use crate::protocol::{CollectiveId, FileId, Reply, Request};
use crate::{Client, unexpected};

/// Reason why a member requests a flush.
#[derive(Clone, Copy)]
pub(super) enum Reason {
    /// A caller or the timer requests it, of one file or of all.
    Asked(Option<FileId>),
    /// The member's log is full. The flush may wait for the other members, so that all flush the same extent of shared
    /// files.
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

/// A client's membership of a job.
pub(super) struct Membership<M: Machine> {
    /// The I/O node that keeps the membership.
    coordinator: NodeId,
    job: String,
    member: String,
    group: Cell<u64>,
    machine: PhantomData<M>,
}

impl<M: Machine> Membership<M> {
    /// Joins a job. Also returns the number of flushes that the job has begun.
    pub(super) async fn begin(client: &Client<M>, job: &str, member: &str) -> Result<(Self, u32)> {
        let coordinator = client.coordinator();
        let (job, member) = (job.to_owned(), member.to_owned());
        let membership = Membership { coordinator, job, member, group: Cell::new(0), machine: PhantomData };
        let flushes = membership.renew(client).await?;
        Ok((membership, flushes))
    }

    /// Rejoins the job. Returns the number of flushes that it has begun.
    pub(super) async fn renew(&self, client: &Client<M>) -> Result<u32> {
        let (job, member) = (self.job.clone(), self.member.clone());
        let request = Request::Join { job, member, io_nodes: client.number_of_io_nodes() };
        match self.ask(client, request).await? {
            Reply::Joined { group, flushes } => {
                self.group.set(group);
                Ok(flushes)
            }
            _ => Err(unexpected(self.coordinator)),
        }
    }

    /// Returns the I/O node that keeps the membership.
    pub(super) fn coordinator(&self) -> NodeId {
        self.coordinator
    }

    /// Returns the group of the members.
    pub(super) fn group(&self) -> u64 {
        self.group.get()
    }

    /// Requests a flush by all members. Returns its number, which is at least `flush`.
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

    /// Leaves the job. A coordinator that restarted or disconnected does not know this member any more.
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

/// The barriers of the members of a job at one flush.
pub(super) struct FlushBarriers<'a, M: Machine> {
    membership: &'a Membership<M>,
    /// Sequence number of the next barrier: each flush has two.
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
