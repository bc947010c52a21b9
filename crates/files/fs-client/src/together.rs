//! Operations of the members of a group, a job or a team: the members tell the I/O nodes what each of them has and
//! meet, the first member asks all I/O nodes to move it, and they meet again.
//!
//! ```text
//!         who is in it                              where it meets               when one is lost
//! group   a fixed list of nodes, connected to       at its first member          the operation fails for all
//!         each other                                (Meet)
//! job     whoever has joined; changes between       at an I/O node, its          that flush fails; the job
//!         flushes                                   coordinator (Join, Gather,   goes on
//!                                                   Meet)
//! team    ranks 0..size, connected to the I/O       at an I/O node, its          the team is over
//!         nodes only                                coordinator (FormTeam,
//!                                                   Meet)
//! ```

use std::rc::Rc;

use machine::{Duration, Machine, Memory, NodeId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Client, unexpected};
use crate::endpoint::Answer;
use crate::error::{Error, Failure, FailureKind, Result};
use crate::protocol::{MeetingId, MemoryId, Reply};

/// What an operation on what members have told has moved, as far as this member knows: only the first knows all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// How many blocks of each disk had a part in it, in the order of the client's I/O nodes.
    pub blocks: Vec<u64>,
    /// How many bytes of members gave way to what another member had written later.
    pub hidden: u64,
    /// Where the time went, as this member saw it.
    pub times: MoveTimes,
    /// What the first member has told the others at the end, if they tell each other something; otherwise what this one
    /// would have. It may be nothing.
    pub(super) told: Vec<u8>,
}

/// Where the time of such an operation goes, as one member sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveTimes {
    /// Telling the I/O nodes what it has, until all of them have answered.
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

    /// Adds the times of another operation.
    pub fn add(&mut self, other: &MoveTimes) {
        self.telling += other.telling;
        self.meeting += other.meeting;
        self.moving += other.moving;
    }
}

/// Members that meet, before and after an operation.
pub(super) trait Gathering<M: Machine> {
    /// Begins the next operation, and gives its name, by which the memory of its members is known.
    fn next(&self) -> MeetingId;

    /// Waits for all members with what this one brings; if any of them brings a failure, all leave with the same one.
    async fn meet(&self, client: &Client<M>, brings: std::result::Result<Vec<u8>, &Error>) -> Result<Met>;

    /// As [`meet`](Self::meet), for members that bring nothing but the outcome of what they have done.
    async fn meet_after(&self, client: &Client<M>, outcome: Result<()>) -> Result<()> {
        let met = self.meet(client, outcome.as_ref().map(|()| Vec::new()).map_err(|error| &**error)).await;
        // A member's own error says more than what came back of it from the others.
        outcome.and(met.map(drop))
    }
}

/// Members that reach each other, so that they can exchange data.
pub(super) trait Exchanging<M: Machine>: Gathering<M> {
    /// Who they are, in order.
    fn members(&self) -> &Rc<[NodeId]>;

    /// The index of this node among them.
    fn rank(&self) -> usize;

    /// Begins the next operation, as [`next`](Gathering::next) does, with a second name for more memory of its members.
    fn next_two(&self) -> [MeetingId; 2];
}

/// The result of a meeting.
pub(super) struct Met {
    /// Who they are, in order.
    pub(super) members: Rc<[NodeId]>,
    /// What they have brought, in their order, if they tell each other; otherwise only what this one has.
    pub(super) brought: Vec<Vec<u8>>,
}

impl Met {
    /// The greatest of the numbers that they have brought.
    pub(super) fn greatest(&self) -> Result<u64> {
        let mut numbers = self.brought.iter().map(|bytes| decoded(bytes, self.members[0]));
        numbers.try_fold(0, |greatest, number| number.map(|number: u64| greatest.max(number)))
    }

    /// What the first of them has brought, or this one if they do not tell each other.
    pub(super) fn of_first(self) -> Vec<u8> {
        self.brought.into_iter().next().unwrap_or_default()
    }
}

/// What a member brings, and the error, if it brings that.
pub(super) fn taken_apart(brings: std::result::Result<Vec<u8>, &Error>) -> (Vec<u8>, Option<&Error>) {
    brings.map_or_else(|error| (Vec::new(), Some(error)), |bytes| (bytes, None))
}

/// What a member brings to tell the others.
pub(super) fn encoded(value: impl Serialize) -> Vec<u8> {
    postcard::to_extend(&value, Vec::new()).expect("a vector takes any encoding")
}

/// What a member has brought, as `teller` says.
pub(super) fn decoded<T: DeserializeOwned>(bytes: &[u8], teller: NodeId) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|_| unexpected(teller))
}

/// The failure that the others are told for an error. Its text names the node, since they hear it from the coordinator
/// of the meeting.
pub(super) fn brought(error: &Error) -> Failure {
    let text = error.to_string();
    Failure { text, ..Failure::from(error.clone()) }
}

/// An operation of all members: what each does before they meet, and what the first does after.
pub(super) struct CommonOperation<'a, Tell, Ask> {
    /// The memory of this member.
    pub(super) memory: &'a Memory,
    /// The name in notes of telling the I/O nodes.
    pub(super) telling: &'static str,
    /// Tells the I/O nodes what this member has, and gives what it brings to the meeting.
    pub(super) tell: Tell,
    /// As the first member, has all I/O nodes move what they have been told.
    pub(super) ask: Ask,
}

impl<M: Machine> Client<M> {
    /// One attempt at an operation of members. Gives the outcome of this member's part, and the one that all members
    /// share.
    pub(super) async fn attempt<Tell, Ask>(
        &self,
        gathering: &impl Gathering<M>,
        operation: CommonOperation<'_, Tell, Ask>,
    ) -> (Result<Moved>, Result<()>)
    where
        Tell: AsyncFnOnce(MemoryId) -> Result<u64>,
        Ask: AsyncFnOnce(MemoryId, Met) -> Result<Moved>,
    {
        let CommonOperation { memory, telling, tell, ask } = operation;
        let id = MemoryId::Collective(gathering.next());
        let _opened = self.inner.open_memory(id, memory);
        let machine = self.inner.endpoint.machine();
        let (begun, disconnects) = (machine.now(), self.disconnects_of_io_nodes());
        let telling = machine.notes().span(telling, || []);
        let told = tell(id).await;
        drop(telling);
        let all_told = machine.now();
        let meeting = machine.notes().span("wait for members", || []);
        let met = gathering.meet(self, told.as_ref().map(encoded).map_err(|error| &**error)).await;
        drop(meeting);
        let all_met = machine.now();
        let _moving = machine.notes().span("wait for I/O nodes", || []);
        let mut own = told.map(|_| Moved::default());
        let met = match met {
            Ok(met) => {
                if met.members[0] == machine.node() {
                    own = ask(id, met).await;
                }
                own = own.and_then(|moved| self.check_told(&disconnects).map(|()| moved));
                Ok(())
            }
            Err(error) => Err(error),
        };
        let telling = own.as_ref().map(|moved| moved.told.clone()).map_err(|error| &**error);
        let (told, done) = match gathering.meet(self, telling).await {
            Ok(met) => (met.of_first(), Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        if let Ok(moved) = &mut own {
            moved.times = MoveTimes {
                telling: all_told.since(begun),
                meeting: all_met.since(all_told),
                moving: machine.now().since(all_met),
            };
            moved.told = told;
        }
        (own, met.and(done))
    }
}

/// What I/O nodes have moved that were asked to, if none has failed.
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

/// Attempts at an operation of members: once more, after `reopen`, if an I/O node was started anew. `attempt` is told
/// what has failed before it.
pub(super) async fn attempts(
    attempt: impl AsyncFn(&Result<()>) -> (Result<Moved>, Result<()>),
    reopen: impl FnOnce(),
    fits: Result<()>,
) -> Result<Moved> {
    let (own, common) = attempt(&fits).await;
    let (own, common) = match common {
        // What is common to all members decides, so that all begin again or none.
        Err(error) if error.is_of_new_start() => {
            reopen();
            attempt(&fits).await
        }
        common => (own, common),
    };
    match (own, common) {
        (own, Ok(())) => own,
        // Members who cannot meet any more leave, and an I/O node is refused what it still wants of them.
        (Err(own), Err(common))
            if common.is_remote(FailureKind::NoTeam) && own.is_remote(FailureKind::Invalid) =>
        {
            Err(common)
        }
        (own, Err(common)) => own.and(Err(common)),
    }
}
