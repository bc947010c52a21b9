//! Operations of the members of a group, a job or a team. The members send their requests to the I/O nodes, and enter a
//! barrier. Then the first member requests that all I/O nodes transfer the data, and all members enter a second
//! barrier.
//!
//! ```text
//!         members                                   barriers at                  if a member is lost
//! group   a fixed list of nodes, connected to       its first member             the operation fails for all
//!         each other                                (EnterBarrier)
//! job     all nodes that have joined; changes       an I/O node, its             that flush fails; the job
//!         between flushes                           coordinator (Join, Gather,   continues
//!                                                   EnterBarrier)
//! team    ranks 0..size, connected to the I/O       an I/O node, its             the team is over
//!         nodes only                                coordinator (FormTeam,
//!                                                   EnterBarrier)
//! ```

use std::rc::Rc;

use machine::{Duration, Machine, Memory, NodeId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Client, unexpected};
use crate::endpoint::Answer;
use crate::error::{Error, Failure, FailureKind, Result};
use crate::protocol::{CollectiveId, MemoryId, Reply};

/// Result of an operation, as far as this member knows it. Only the first member knows the complete result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Number of transferred blocks of each disk, in the order of the client's I/O nodes.
    pub blocks: Vec<u64>,
    /// Number of bytes that were discarded because another member overwrote them later.
    pub hidden: u64,
    /// Durations of the phases, as this member measured them.
    pub times: MoveTimes,
    /// The first member's final message to the others, if the members share messages; otherwise this member's own
    /// message. May be empty.
    pub(super) message: Vec<u8>,
}

/// Durations of the phases of an operation, as one member measures them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveTimes {
    /// Time to send this member's part to the I/O nodes, until all have answered.
    pub sending: Duration,
    /// Time in the first barrier.
    pub barrier: Duration,
    /// Time of the data transfer, including sorting and disk accesses at the I/O nodes, until all members have been
    /// notified of its completion.
    pub moving: Duration,
}

impl MoveTimes {
    /// Returns the sum of all phases.
    pub fn total(&self) -> Duration {
        self.sending + self.barrier + self.moving
    }

    /// Adds the times of another operation.
    pub fn add(&mut self, other: &MoveTimes) {
        self.sending += other.sending;
        self.barrier += other.barrier;
        self.moving += other.moving;
    }
}

/// Members with barriers before and after an operation.
pub(super) trait BarrierMembers<M: Machine> {
    /// Begins the next operation and returns its name, which also identifies the memory of its members.
    fn next(&self) -> CollectiveId;

    /// Enters the barrier with this member's contribution, and blocks until all members have entered. If a member
    /// contributes a failure, all members fail with this failure.
    async fn enter_barrier(
        &self,
        client: &Client<M>,
        contribution: std::result::Result<Vec<u8>, &Error>,
    ) -> Result<BarrierResult>;

    /// Enters the barrier as [`enter_barrier`](Self::enter_barrier) does, for members that contribute only the outcome
    /// of their work.
    async fn enter_barrier_after(&self, client: &Client<M>, outcome: Result<()>) -> Result<()> {
        let entered =
            self.enter_barrier(client, outcome.as_ref().map(|()| Vec::new()).map_err(|error| &**error)).await;
        // Prefer the local error, which has more details than the failure that the barrier returns.
        outcome.and(entered.map(drop))
    }
}

/// Members that are connected to each other, so that they can exchange data.
pub(super) trait ExchangeMembers<M: Machine>: BarrierMembers<M> {
    /// Returns the members, in order.
    fn members(&self) -> &Rc<[NodeId]>;

    /// Returns the index of this node among the members.
    fn rank(&self) -> usize;

    /// Begins the next operation as [`next`](BarrierMembers::next) does, with a second name for more memory of its
    /// members.
    fn next_two(&self) -> [CollectiveId; 2];
}

/// Result of a barrier.
pub(super) struct BarrierResult {
    /// The members, in order.
    pub(super) members: Rc<[NodeId]>,
    /// All contributions in the order of the members, if the members share them; otherwise only this member's
    /// contribution.
    pub(super) contributions: Vec<Vec<u8>>,
}

impl BarrierResult {
    /// Returns the largest contributed number.
    pub(super) fn greatest(&self) -> Result<u64> {
        let mut numbers = self.contributions.iter().map(|bytes| decoded(bytes, self.members[0]));
        numbers.try_fold(0, |greatest, number| number.map(|number: u64| greatest.max(number)))
    }

    /// Returns the first member's contribution, or this member's own one if the members do not share contributions.
    pub(super) fn first_contribution(self) -> Vec<u8> {
        self.contributions.into_iter().next().unwrap_or_default()
    }
}

/// Splits a contribution into its bytes and its error, if any.
pub(super) fn split_contribution(
    contribution: std::result::Result<Vec<u8>, &Error>,
) -> (Vec<u8>, Option<&Error>) {
    contribution.map_or_else(|error| (Vec::new(), Some(error)), |bytes| (bytes, None))
}

/// Encodes a contribution.
pub(super) fn encoded(value: impl Serialize) -> Vec<u8> {
    postcard::to_extend(&value, Vec::new()).expect("a vector takes any encoding")
}

/// Decodes a contribution. If it is malformed, the error names `sender`.
pub(super) fn decoded<T: DeserializeOwned>(bytes: &[u8], sender: NodeId) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|_| unexpected(sender))
}

/// Returns the failure by which an error is reported to the other members. Its text names the failed node, since the
/// others receive it from the coordinator of the barrier.
pub(super) fn failure_for_members(error: &Error) -> Failure {
    let text = error.to_string();
    Failure { text, ..Failure::from(error.clone()) }
}

/// An operation of all members: each member's work before the first barrier, and the first member's work after it.
pub(super) struct CommonOperation<'a, Send, Ask> {
    /// Memory of this member.
    pub(super) memory: &'a Memory,
    /// Name of the recorded span in which this member sends its part.
    pub(super) span_name: &'static str,
    /// Sends this member's part to the I/O nodes, and returns this member's contribution to the barrier.
    pub(super) send: Send,
    /// As the first member, requests that all I/O nodes transfer the data of all parts.
    pub(super) ask: Ask,
}

impl<M: Machine> Client<M> {
    /// Makes one attempt at an operation. Returns the outcome of this member's part, and the outcome that all members
    /// share.
    pub(super) async fn attempt<Send, Ask>(
        &self,
        gathering: &impl BarrierMembers<M>,
        operation: CommonOperation<'_, Send, Ask>,
    ) -> (Result<Moved>, Result<()>)
    where
        Send: AsyncFnOnce(MemoryId) -> Result<u64>,
        Ask: AsyncFnOnce(MemoryId, BarrierResult) -> Result<Moved>,
    {
        let CommonOperation { memory, span_name, send, ask } = operation;
        let id = MemoryId::Collective(gathering.next());
        let _opened = self.inner.open_memory(id, memory);
        let machine = self.inner.endpoint.machine();
        let (begun, disconnects) = (machine.now(), self.disconnects_of_io_nodes());
        let send_span = machine.notes().span(span_name, || []);
        let sent = send(id).await;
        drop(send_span);
        let all_sent = machine.now();
        let span = machine.notes().span("wait for members", || []);
        let entered =
            gathering.enter_barrier(self, sent.as_ref().map(encoded).map_err(|error| &**error)).await;
        drop(span);
        let all_entered = machine.now();
        let _moving = machine.notes().span("wait for I/O nodes", || []);
        let mut own = sent.map(|_| Moved::default());
        let entered = match entered {
            Ok(entered) => {
                if entered.members[0] == machine.node() {
                    own = ask(id, entered).await;
                }
                own = own.and_then(|moved| self.check_still_connected(&disconnects).map(|()| moved));
                Ok(())
            }
            Err(error) => Err(error),
        };
        let message = own.as_ref().map(|moved| moved.message.clone()).map_err(|error| &**error);
        let (message, done) = match gathering.enter_barrier(self, message).await {
            Ok(entered) => (entered.first_contribution(), Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        if let Ok(moved) = &mut own {
            moved.times = MoveTimes {
                sending: all_sent.since(begun),
                barrier: all_entered.since(all_sent),
                moving: machine.now().since(all_entered),
            };
            moved.message = message;
        }
        (own, entered.and(done))
    }
}

/// Returns the sum of the I/O nodes' results, or the first failure.
pub(super) fn moved_by(answers: Vec<(NodeId, Answer)>) -> Result<Moved> {
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

/// Attempts an operation. If an I/O node restarted, calls `reopen` and retries the operation once. `attempt` receives
/// `fits`, the result of this member's checks.
pub(super) async fn attempts(
    attempt: impl AsyncFn(&Result<()>) -> (Result<Moved>, Result<()>),
    reopen: impl FnOnce(),
    fits: Result<()>,
) -> Result<Moved> {
    let (own, common) = attempt(&fits).await;
    let (own, common) = match common {
        // Decide by the shared outcome, so that either all members retry or no member does.
        Err(error) if error.is_restart() => {
            machine::sometimes!("a team retries a collective operation");
            reopen();
            attempt(&fits).await
        }
        common => (own, common),
    };
    match (own, common) {
        (own, Ok(())) => own,
        // A member that cannot enter the barrier closes its memory, so that an I/O node's access to this memory is
        // refused. In this case this member's own error is only a consequence. Report the cause, the failed barrier.
        (Err(own), Err(common))
            if common.is_remote(FailureKind::NoTeam) && own.is_remote(FailureKind::Invalid) =>
        {
            Err(common)
        }
        (own, Err(common)) => own.and(Err(common)),
    }
}
