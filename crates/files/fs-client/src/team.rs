//! Teams: processes that know the I/O nodes and each other's ranks, and meet at one of the I/O nodes.
//!
//! ```text
//!  rank 0   form ... | turn 0: gather       | turn 1: tell, meet, ask, meet     |
//!  rank 1   form     | turn 0: gather ..... | turn 1: tell, meet, ........ meet |
//!           all know each other's nodes     the turns have the same numbers for all
//! ```
//!
//! The turns of a team have numbers, which each member gives in the order of its calls.

use std::cell::Cell;
use std::rc::Rc;

use machine::{Condition, Machine, NodeId, Payload, Work};

use super::together::{Exchanging, Gathering, Met, brought, decoded, encoded, taken_apart};
use super::{Client, unexpected};
use crate::error::{Error, Failure, FailureKind, Result};
use crate::protocol::{MeetingId, Reply, Request, TeamStep};

/// The number of names, of meetings and memory, for one turn; the last is never the name of a meeting.
const NAMES_IN_TURN: u32 = 8;

/// This node's membership of a team.
pub struct TeamMembership<M: Machine> {
    client: Client<M>,
    /// The I/O node that it meets at.
    coordinator: NodeId,
    group: u64,
    /// The members, by rank.
    members: Rc<[NodeId]>,
    rank: u32,
    /// How many turns have been given.
    given: Cell<u32>,
    /// The number of the turn that is on, or of the next.
    next: Cell<u32>,
    changed: Condition,
}

/// The turn at doing something with the other members, until this is dropped.
pub struct TeamTurn<'a, M: Machine> {
    team: &'a TeamMembership<M>,
    number: u32,
    step: TeamStep,
    /// How many meetings there have been in it.
    meetings: Cell<u32>,
}

impl<M: Machine> Drop for TeamTurn<'_, M> {
    fn drop(&mut self) {
        self.team.next.set(self.number + 1);
        self.team.changed.wake_all();
    }
}

impl<M: Machine> TeamMembership<M> {
    /// Makes this node member `rank` of a team of `size`; completes when all members have come. The team's name must be
    /// one that a file could have, and no other forming team may have it. A team of one sends no message.
    ///
    /// # Errors
    /// If there is no such rank, or another member has it or another idea of the size, or if a member that has come is
    /// gone before all have.
    pub async fn form(client: &Client<M>, name: &str, rank: u32, size: u32) -> Result<TeamMembership<M>> {
        let coordinator = client.meeting_place();
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

    /// The rank of this node, from 0.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How many members there are.
    pub fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// Gives the number of the next turn. The turn must be [taken](Self::turn), or no later turn ever comes.
    pub fn next_turn(&self) -> u32 {
        self.given.set(self.given.get() + 1);
        self.given.get() - 1
    }

    /// Waits until turn `number` comes, after all turns before it, to do this step. The numbers may also be given
    /// elsewhere, from 0 on. If other members have another step at this turn, all fail.
    pub async fn turn(&self, number: u32, step: TeamStep) -> TeamTurn<'_, M> {
        while self.next.get() != number {
            self.changed.wait().await;
        }
        TeamTurn { team: self, number, step, meetings: Cell::new(0) }
    }

    /// Leaves the team. All that the other members do together from now on fails.
    pub async fn leave(&self) -> Result<()> {
        if self.size() == 1 {
            return Ok(());
        }
        let request = Request::Leave { group: self.group };
        self.client.inner.endpoint.call(self.coordinator, request, Payload::empty()).await.map(drop)
    }
}

impl<M: Machine> TeamTurn<'_, M> {
    /// The members, by rank.
    pub fn members(&self) -> &[NodeId] {
        &self.team.members
    }

    /// The rank of this node, from 0.
    pub fn rank(&self) -> u32 {
        self.team.rank
    }

    /// The name number `which` of this turn.
    fn named(&self, which: u32) -> MeetingId {
        let operation = self.number.wrapping_mul(NAMES_IN_TURN).wrapping_add(which);
        MeetingId { group: self.team.group, operation }
    }

    /// Whether this node is the only member.
    pub(super) fn is_alone(&self) -> bool {
        self.team.size() == 1
    }

    /// Whether this node is the first of the members.
    pub(super) fn is_first(&self) -> bool {
        self.team.rank == 0
    }

    /// Waits until all members have come, and gives the numbers that they bring, by rank.
    ///
    /// # Errors
    /// As those of [`gather_bytes`](Self::gather_bytes).
    pub async fn gather(&self, brings: std::result::Result<u64, &Error>) -> Result<Vec<u64>> {
        let brought = self.gather_bytes(brings.map(encoded)).await?;
        brought.iter().map(|bytes| decoded(bytes, self.team.coordinator)).collect()
    }

    /// Waits until all members have come, and gives what they bring, by rank: of each
    /// [`BROUGHT_BYTES_MAX`](crate::protocol::BROUGHT_BYTES_MAX) bytes at most.
    ///
    /// # Errors
    /// If one of them brings a failure, or is gone: the same for all.
    pub async fn gather_bytes(&self, brings: std::result::Result<Vec<u8>, &Error>) -> Result<Vec<Vec<u8>>> {
        let (meeting, step) = (self.next(), self.step);
        self.meetings.set(self.meetings.get() + 1);
        if self.is_alone() {
            return brings.map(|bytes| vec![bytes]).map_err(|error| Box::new(error.clone()));
        }
        let TeamMembership { client, coordinator, .. } = self.team;
        client.inner.endpoint.machine().compute(Work::Barrier).await;
        let (brings, error) = taken_apart(brings);
        let failure = error.map(failure_of);
        let request = Request::Meet { meeting, step: Some(step), brings, failure };
        match client.inner.endpoint.call(*coordinator, request, Payload::empty()).await?.0 {
            Reply::Met { brought, .. } => {
                let brought: Vec<Vec<u8>> = decoded(&brought, *coordinator)?;
                if brought.len() == self.team.members.len() {
                    Ok(brought)
                } else {
                    Err(unexpected(*coordinator))
                }
            }
            _ => Err(unexpected(*coordinator)),
        }
    }

    /// Has all members fail at what they move together in this turn.
    pub async fn refuse(&self, why: &Error) {
        // Before the data are moved, and after. The outcome is the failure that was brought.
        for _ in 0..2 {
            let _ = self.gather_bytes(Err(why)).await;
        }
    }
}

/// The failure that the others are told for an error. If the error is of an I/O node that may have been started anew,
/// they all try once more.
fn failure_of(error: &Error) -> Failure {
    let failure = brought(error);
    match error.is_of_new_start() {
        true => Failure { kind: FailureKind::NotOpen, ..failure },
        false => failure,
    }
}

impl<M: Machine> Gathering<M> for TeamTurn<'_, M> {
    fn next(&self) -> MeetingId {
        self.named(self.meetings.get())
    }

    async fn meet(&self, _client: &Client<M>, brings: std::result::Result<Vec<u8>, &Error>) -> Result<Met> {
        let brought = self.gather_bytes(brings).await?;
        Ok(Met { members: self.team.members.clone(), brought })
    }
}

impl<M: Machine> Exchanging<M> for TeamTurn<'_, M> {
    fn members(&self) -> &Rc<[NodeId]> {
        &self.team.members
    }

    fn rank(&self) -> usize {
        self.team.rank as usize
    }

    fn next_two(&self) -> [MeetingId; 2] {
        [self.next(), self.named(NAMES_IN_TURN - 1)]
    }
}
