//! Teams: processes that know the I/O nodes and each other's ranks, and enter barriers at one I/O node.
//!
//! ```text
//!  rank 0   form ... | turn 0: gather       | turn 1: send, barrier, ask, barrier     |
//!  rank 1   form     | turn 0: gather ..... | turn 1: send, barrier, ........ barrier |
//!           all know each other's nodes     the turns have the same numbers for all
//! ```
//!
//! A *turn* is one collective operation of a team. Each member numbers the turns in the order of its calls.

use std::cell::Cell;
use std::rc::Rc;

use machine::{Condition, Machine, NodeId, Payload, Work};

use super::group_operation::{
    BarrierMembers, BarrierResult, ExchangeMembers, decoded, encoded, failure_for_members, split_contribution,
};
use super::{Client, unexpected};
use crate::error::{Error, Failure, FailureKind, Result};
use crate::protocol::{CollectiveId, Reply, Request, TeamStep};

/// Number of [`CollectiveId`]s that are reserved for one turn. They identify barriers and memory; the last one never
/// identifies a barrier.
const NAMES_IN_TURN: u32 = 8;

/// This node's membership in a team.
pub struct TeamMembership<M: Machine> {
    client: Client<M>,
    /// The I/O node that coordinates the team's barriers.
    coordinator: NodeId,
    group: u64,
    /// The members, by rank.
    members: Rc<[NodeId]>,
    rank: u32,
    /// Number of turns that were numbered until now.
    given: Cell<u32>,
    /// Number of the current turn, or of the next one if no turn is active.
    next: Cell<u32>,
    changed: Condition,
}

/// A turn: one collective operation with the other members. Dropping the value ends the turn.
pub struct TeamTurn<'a, M: Machine> {
    team: &'a TeamMembership<M>,
    number: u32,
    step: TeamStep,
    /// Number of barriers entered in this turn.
    barriers: Cell<u32>,
}

impl<M: Machine> Drop for TeamTurn<'_, M> {
    fn drop(&mut self) {
        self.team.next.set(self.number + 1);
        self.team.changed.wake_all();
    }
}

impl<M: Machine> TeamMembership<M> {
    /// Makes this node member `rank` of a team of `size` members, and blocks until all members have joined. The team's
    /// name must be a valid file name that no other forming team uses. A team of one member sends no message.
    ///
    /// # Errors
    /// Fails if `rank` is out of range or in use, if members disagree on the size, or if a member that has joined
    /// disconnects before all have joined.
    pub async fn form(client: &Client<M>, name: &str, rank: u32, size: u32) -> Result<TeamMembership<M>> {
        let coordinator = client.coordinator();
        let (group, members) = if (rank, size) == (0, 1) {
            (0, vec![client.inner.endpoint.machine().node().0])
        } else {
            let request = Request::FormTeam { name: name.to_owned(), rank, size };
            match client.inner.endpoint.call(coordinator, request, Payload::empty()).await?.0 {
                Reply::TeamFormed { group, members } if members.len() as u64 == u64::from(size) => {
                    (group, members)
                }
                _ => return Err(unexpected(coordinator)),
            }
        };
        Ok(TeamMembership {
            client: client.clone(),
            coordinator,
            group,
            members: members.into_iter().map(NodeId).collect(),
            rank,
            given: Cell::new(0),
            next: Cell::new(0),
            changed: Condition::new(),
        })
    }

    /// Returns the rank of this node, from 0.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the number of members.
    pub fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// Returns the number of the next turn. The caller must [take the turn](Self::turn); otherwise all later turns
    /// block for ever.
    pub fn next_turn(&self) -> u32 {
        self.given.set(self.given.get() + 1);
        self.given.get() - 1
    }

    /// Blocks until all turns before turn `number` have ended, and begins this turn with step `step`. The caller can
    /// also number the turns itself, from 0 on. If members disagree on the step of a turn, all members fail.
    pub async fn turn(&self, number: u32, step: TeamStep) -> TeamTurn<'_, M> {
        while self.next.get() != number {
            self.changed.wait().await;
        }
        TeamTurn { team: self, number, step, barriers: Cell::new(0) }
    }

    /// Leaves the team. All later collective operations of the other members fail.
    pub async fn leave(&self) -> Result<()> {
        if self.size() == 1 {
            return Ok(());
        }
        let request = Request::Leave { group: self.group };
        self.client.inner.endpoint.call(self.coordinator, request, Payload::empty()).await.map(drop)
    }
}

impl<M: Machine> TeamTurn<'_, M> {
    /// Returns the members, by rank.
    pub fn members(&self) -> &[NodeId] {
        &self.team.members
    }

    /// Returns the rank of this node, from 0.
    pub fn rank(&self) -> u32 {
        self.team.rank
    }

    /// Returns identifier number `which` of this turn.
    fn named(&self, which: u32) -> CollectiveId {
        let operation = self.number.wrapping_mul(NAMES_IN_TURN).wrapping_add(which);
        CollectiveId { group: self.team.group, operation }
    }

    /// Returns true if this node is the only member.
    pub(super) fn is_alone(&self) -> bool {
        self.team.size() == 1
    }

    /// Returns true if this node has rank 0.
    pub(super) fn is_first(&self) -> bool {
        self.team.rank == 0
    }

    /// Blocks until all members have entered the barrier. Returns the numbers that they contribute, by rank.
    ///
    /// # Errors
    /// Fails as [`gather_bytes`](Self::gather_bytes) does.
    pub async fn gather(&self, contribution: std::result::Result<u64, &Error>) -> Result<Vec<u64>> {
        let contributions = self.gather_bytes(contribution.map(encoded)).await?;
        contributions.iter().map(|bytes| decoded(bytes, self.team.coordinator)).collect()
    }

    /// Blocks until all members have entered the barrier. Returns their contributions, by rank. A contribution has at
    /// most [`CONTRIBUTION_BYTES_MAX`](crate::protocol::CONTRIBUTION_BYTES_MAX) bytes.
    ///
    /// # Errors
    /// Fails for all members if a member contributes a failure or disconnects.
    pub async fn gather_bytes(
        &self,
        contribution: std::result::Result<Vec<u8>, &Error>,
    ) -> Result<Vec<Vec<u8>>> {
        let (barrier, step) = (self.next(), self.step);
        self.barriers.set(self.barriers.get() + 1);
        if self.is_alone() {
            return contribution.map(|bytes| vec![bytes]).map_err(|error| Box::new(error.clone()));
        }
        let TeamMembership { client, coordinator, .. } = self.team;
        client.inner.endpoint.machine().compute(Work::Barrier).await;
        let (contribution, error) = split_contribution(contribution);
        let failure = error.map(failure_of);
        let request = Request::EnterBarrier { barrier, step: Some(step), contribution, failure };
        match client.inner.endpoint.call(*coordinator, request, Payload::empty()).await?.0 {
            Reply::BarrierDone { contributions, .. } => {
                let contributions: Vec<Vec<u8>> = decoded(&contributions, *coordinator)?;
                if contributions.len() == self.team.members.len() {
                    Ok(contributions)
                } else {
                    Err(unexpected(*coordinator))
                }
            }
            _ => Err(unexpected(*coordinator)),
        }
    }

    /// Makes this turn's collective operation fail for all members.
    pub async fn refuse(&self, why: &Error) {
        // The operation has two barriers, one before and one after the data transfer. Their result is the failure
        // `why`, so ignore it.
        for _ in 0..2 {
            let _ = self.gather_bytes(Err(why)).await;
        }
    }
}

/// Returns the failure by which an error is reported to the other members. If an I/O node may have restarted, the kind
/// is [`FailureKind::NotOpen`], so that all members retry.
fn failure_of(error: &Error) -> Failure {
    let failure = failure_for_members(error);
    match error.is_restart() {
        true => Failure { kind: FailureKind::NotOpen, ..failure },
        false => failure,
    }
}

impl<M: Machine> BarrierMembers<M> for TeamTurn<'_, M> {
    fn next(&self) -> CollectiveId {
        self.named(self.barriers.get())
    }

    async fn enter_barrier(
        &self,
        _client: &Client<M>,
        contribution: std::result::Result<Vec<u8>, &Error>,
    ) -> Result<BarrierResult> {
        let contributions = self.gather_bytes(contribution).await?;
        Ok(BarrierResult { members: self.team.members.clone(), contributions })
    }
}

impl<M: Machine> ExchangeMembers<M> for TeamTurn<'_, M> {
    fn members(&self) -> &Rc<[NodeId]> {
        &self.team.members
    }

    fn rank(&self) -> usize {
        self.team.rank as usize
    }

    fn next_two(&self) -> [CollectiveId; 2] {
        [self.next(), self.named(NAMES_IN_TURN - 1)]
    }
}
