//! Teams: clients that know each other by their ranks, and enter barriers here at any time.
//!
//! Members of a *job* (`joint_flushes.rs`) join and leave, and are notified of barriers. A team has a fixed size,
//! which each member states. The team is formed when all members have joined, and lost with the first of them
//! that disconnects.
//!
//! ```text
//!  rank 0   FormTeam ....... TeamFormed   Meet 1 ......... Met   Meet 2 ...
//!  rank 1      FormTeam .... TeamFormed      Meet 1 ...... Met       Meet 2
//!  rank 2          FormTeam  TeamFormed            Meet 1  Met   disconnects: Meet 2 fails for all
//! ```

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use machine::{Condition, NodeId};

use super::barrier::{BarrierState, Served, with_names};
use super::client_quotas::{Share, Shares};
use crate::error::{Failure, FailureKind};
use crate::name;
use crate::protocol::{CONTRIBUTION_BYTES_MAX, CONTRIBUTIONS_BYTES_MAX, CollectiveId, Reply, TeamStep};

/// Limit of memberships in teams, formed or forming: of each client in any case, and of all clients beyond
/// that.
const MEMBERSHIPS: (u64, u64) = (64, 4096);

/// Limit of members of a team: their names must fit in a header.
const SIZE_MAX: u32 = 4096;

/// The teams with barriers at this I/O node.
pub(super) struct Teams {
    /// Teams with missing members, by name.
    forming: RefCell<BTreeMap<String, Rc<Team>>>,
    /// Complete teams, by the number of their group.
    formed: RefCell<BTreeMap<u64, Rc<Team>>>,
    /// Number of teams so far.
    count: Cell<u64>,
    memberships: Shares,
}

impl Default for Teams {
    fn default() -> Self {
        let memberships = Shares::new(MEMBERSHIPS.0, MEMBERSHIPS.1);
        Teams { forming: RefCell::default(), formed: RefCell::default(), count: Cell::new(0), memberships }
    }
}

struct Team {
    name: String,
    group: u64,
    size: u32,
    /// The members that have joined, by rank.
    members: RefCell<BTreeMap<u32, TeamMember>>,
    /// Ranks of the members.
    ranks: RefCell<BTreeMap<NodeId, u32>>,
    /// Failure of the team, if it is lost.
    lost: RefCell<Option<Failure>>,
    /// Barriers that a member has entered and not all members have left.
    barriers: RefCell<BTreeMap<u32, Rc<TeamBarrier>>>,
    changed: Condition,
}

/// A member of a team, with its part of the client's share.
struct TeamMember {
    node: NodeId,
    _membership: Share,
}

/// A member's entry into a barrier.
#[derive(Clone)]
pub(super) struct BarrierEntry {
    /// Step for which the member enters.
    pub(super) step: TeamStep,
    /// Contribution, which all members receive.
    pub(super) contribution: Vec<u8>,
}

/// A barrier of members by their ranks. Its result is all contributions, encoded as in the answer.
type TeamBarrier = BarrierState<u32, BarrierEntry, Rc<[u8]>>;

impl Teams {
    /// Adds a client to the members of a team, and waits for the others.
    pub(super) async fn form(
        &self,
        client: NodeId,
        incarnation: u64,
        name: String,
        rank: u32,
        size: u32,
    ) -> Served {
        name::check(&name).map_err(|why| Failure::invalid(format!("team name {name:?}: {why}")))?;
        if !(1..=SIZE_MAX).contains(&size) || rank >= size {
            let text = format!(
                "rank {rank} of a team of {size}: a team has 1 to {SIZE_MAX} members, with ranks from 0"
            );
            return Err(Failure::invalid(text).into());
        }
        let membership = self.memberships.try_take(client, 1).ok_or_else(|| {
            let text = format!("{client} is in too many teams to join {name:?}: leave one");
            Failure::new(FailureKind::Io, text)
        })?;
        let team = self.forming(&name, size, incarnation)?;
        team.add(client, rank, membership)?;
        if team.is_complete() {
            self.forming.borrow_mut().remove(&name);
            self.formed.borrow_mut().insert(team.group, team.clone());
            team.changed.wake_all();
        }
        loop {
            team.check()?;
            if team.is_complete() {
                let members = team.members.borrow().values().map(|member| member.node.0).collect();
                return Ok(Reply::TeamFormed { group: team.group, members });
            }
            team.changed.wait().await;
        }
    }

    /// Returns the forming team of this name; a new one if there is no such team.
    fn forming(&self, name: &str, size: u32, incarnation: u64) -> Result<Rc<Team>, Box<Failure>> {
        let mut forming = self.forming.borrow_mut();
        if let Some(team) = forming.get(name) {
            if team.size != size {
                let text =
                    format!("the members disagree on the size of team {name}: {} and {size}", team.size);
                return Err(Failure::invalid(text).into());
            }
            return Ok(team.clone());
        }
        self.count.set(self.count.get() + 1);
        let group = name::hash_of(name, &[incarnation, self.count.get()]);
        let team = Rc::new(Team::new(name.to_owned(), group, size));
        forming.insert(name.to_owned(), team.clone());
        Ok(team)
    }

    /// Blocks until all members of a team have entered a barrier.
    pub(super) async fn enter_barrier(
        &self,
        client: NodeId,
        id: CollectiveId,
        mut entry: BarrierEntry,
        mut failure: Option<Failure>,
    ) -> Served {
        let bytes = entry.contribution.len();
        if bytes > CONTRIBUTION_BYTES_MAX {
            // The member enters all the same, so that the others need not wait.
            let text = format!(
                "{client} contributes {bytes} bytes to a barrier; the limit is {CONTRIBUTION_BYTES_MAX}"
            );
            failure.get_or_insert(Failure::invalid(text));
            entry.contribution.clear();
        }
        let team = self.formed.borrow().get(&id.group).cloned();
        let team = team.and_then(|team| Some((team.rank_of(client)?, team)));
        let (rank, team) = team.ok_or_else(|| {
            machine::sometimes!("a member enters a barrier of a lost team");
            let text = "the team no longer exists: its coordinator was restarted, or lost this member";
            Failure::new(FailureKind::NoTeam, text)
        })?;
        let barrier = team.barriers.borrow_mut().entry(id.operation).or_default().clone();
        barrier.enter(client, rank, entry, failure.map(|failure| team.with_ranks(failure)))?;
        team.end_if_out_of_step();
        team.settle(&barrier);
        let outcome = barrier.outcome(&team.changed).await;
        if barrier.all_have_result() {
            team.barriers.borrow_mut().remove(&id.operation);
        }
        Ok(Reply::BarrierDone { members: Vec::new(), contributions: outcome?.to_vec() })
    }

    /// True if a client is a member of a team of this group.
    pub(super) fn has(&self, client: NodeId, group: u64) -> bool {
        self.formed.borrow().get(&group).is_some_and(|team| team.rank_of(client).is_some())
    }

    /// Removes a member that leaves its team.
    pub(super) fn leave(&self, client: NodeId, group: u64) {
        let team = self.formed.borrow().get(&group).cloned();
        if let Some(team) = team {
            team.lose(client, FailureKind::OutOfStep, "has left");
            if team.members.borrow().is_empty() {
                self.formed.borrow_mut().remove(&group);
            }
        }
    }

    /// Removes a disconnected client from its teams.
    pub(super) fn client_disconnected(&self, client: NodeId) {
        let is_its = |team: &Rc<Team>| team.rank_of(client).is_some();
        self.forming.borrow_mut().retain(|_, team| {
            let keeps = !is_its(team);
            if !keeps {
                machine::sometimes!("a client disconnects from a team that forms");
                team.lose(client, FailureKind::NoTeam, "disconnected");
            }
            keeps
        });
        let its: Vec<Rc<Team>> = self.formed.borrow().values().filter(|team| is_its(team)).cloned().collect();
        for team in its {
            machine::sometimes!("a client disconnects during a barrier of its team", if team.barriers.borrow().values().any(|barrier| !barrier.is_over()));
            team.lose(client, FailureKind::NoTeam, "disconnected");
            if team.members.borrow().is_empty() {
                self.formed.borrow_mut().remove(&team.group);
            }
        }
    }
}

impl Team {
    fn new(name: String, group: u64, size: u32) -> Self {
        let (members, ranks) = (RefCell::default(), RefCell::default());
        let (lost, barriers) = (RefCell::default(), RefCell::default());
        Team { name, group, size, members, ranks, lost, barriers, changed: Condition::new() }
    }

    fn rank_of(&self, client: NodeId) -> Option<u32> {
        self.ranks.borrow().get(&client).copied()
    }

    fn add(&self, client: NodeId, rank: u32, membership: Share) -> Result<(), Box<Failure>> {
        if let Some(other) = self.rank_of(client) {
            let text =
                format!("{client} joins the team {} as rank {rank}, but is already rank {other}", self.name);
            return Err(Failure::invalid(text).into());
        }
        let mut members = self.members.borrow_mut();
        if let Some(other) = members.get(&rank) {
            let text = format!(
                "{client} joins the team {} as rank {rank}, but {} already has that rank",
                self.name, other.node
            );
            return Err(Failure::invalid(text).into());
        }
        members.insert(rank, TeamMember { node: client, _membership: membership });
        self.ranks.borrow_mut().insert(client, rank);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.members.borrow().len() as u64 == u64::from(self.size)
    }

    /// Fails if the team is lost.
    fn check(&self) -> Result<(), Box<Failure>> {
        self.lost.borrow().clone().map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// Removes a member and ends the team. Its failure contains the description of the event.
    fn lose(&self, client: NodeId, kind: FailureKind, what: &str) {
        let Some(rank) = self.ranks.borrow_mut().remove(&client) else { return };
        self.members.borrow_mut().remove(&rank);
        let failure = Failure::new(kind, format!("rank {rank} of the team {} {what}", self.name));
        self.end(Failure { lost_rank: Some(rank), ..failure });
    }

    /// Ends the team if all members wait, but not for the same step of the same barrier: then no barrier
    /// would ever be complete, or all members have entered one barrier for different steps. A member waits in
    /// one barrier at a time.
    fn end_if_out_of_step(&self) {
        let barriers = self.barriers.borrow();
        let incomplete = || barriers.values().filter(|barrier| !barrier.is_over());
        let waiting: usize = incomplete().map(|barrier| barrier.present().len()).sum();
        // Wait until all members are blocked: before that, a missing member may still enter the right
        // barrier.
        if (waiting as u64) < u64::from(self.size) {
            return;
        }
        let apart: Vec<_> = incomplete().flat_map(|barrier| steps_of(&barrier.present())).collect();
        if apart.len() < 2 {
            return;
        }
        drop(barriers);
        let each = apart.iter().map(|(step, ranks)| format!("{step} of {}", ranks_in_words(ranks)));
        let each = each.collect::<Vec<_>>().join(" and ");
        let text = format!("the members of the team {} are out of step: {each}", self.name);
        self.end(Failure::new(FailureKind::OutOfStep, text));
    }

    /// Ends the team: waiting members, and those that enter later, get the failure `why`.
    fn end(&self, why: Failure) {
        self.lost.borrow_mut().get_or_insert(why);
        let barriers: Vec<_> = self.barriers.borrow().values().cloned().collect();
        barriers.iter().for_each(|barrier| self.settle(barrier));
        self.changed.wake_all();
    }

    /// Completes a barrier if all members have entered, or one of them never will.
    fn settle(&self, barrier: &TeamBarrier) {
        let present = barrier.present();
        let all_have_come = present.len() as u64 == u64::from(self.size);
        let lost = self.lost.borrow().clone().filter(|_| !all_have_come || !is_of_one(&present));
        if barrier.is_over() || !all_have_come && lost.is_none() {
            return;
        }
        let contributions: Vec<&[u8]> = present.values().map(|entry| &*entry.contribution).collect();
        let contributions =
            postcard::to_extend(&contributions, Vec::new()).expect("a vector takes any encoding");
        let too_much = (contributions.len() > CONTRIBUTIONS_BYTES_MAX).then(|| {
            let text = format!("the members contribute {} bytes to a barrier", contributions.len());
            Failure::invalid(format!("{text}; the limit is {CONTRIBUTIONS_BYTES_MAX}"))
        });
        barrier.end(lost.or(too_much), contributions.into());
        self.changed.wake_all();
    }

    /// Replaces nodes by ranks of members in the text of a failure.
    fn with_ranks(&self, failure: Failure) -> Failure {
        let members = self.members.borrow();
        with_names(
            failure,
            &members.iter().map(|(rank, member)| (member.node, format!("rank {rank}"))).collect(),
        )
    }
}

/// Returns the steps of the members in a barrier, each with its ranks.
fn steps_of(present: &BTreeMap<u32, BarrierEntry>) -> Vec<(TeamStep, Vec<u32>)> {
    let mut steps: Vec<(TeamStep, Vec<u32>)> = Vec::new();
    for (&rank, BarrierEntry { step, .. }) in present {
        match steps.iter_mut().find(|(other, _)| other == step) {
            Some((_, ranks)) => ranks.push(rank),
            None => steps.push((*step, vec![rank])),
        }
    }
    steps
}

/// True if all present members have entered for the same step.
fn is_of_one(present: &BTreeMap<u32, BarrierEntry>) -> bool {
    let mut steps = present.values().map(|entry| entry.step);
    let first = steps.next();
    steps.all(|step| Some(step) == first)
}

/// Lists members by rank, at most a few of them.
fn ranks_in_words(ranks: &[u32]) -> String {
    const NAMED: usize = 4;
    let (named, more) = ranks.split_at(ranks.len().min(NAMED));
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    let named = named.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    if more.is_empty() {
        format!("{word} {named}")
    } else {
        format!("{word} {named} and {} more", more.len())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::protocol::Direction;

    type Serving<'a> = Pin<Box<dyn Future<Output = Served> + 'a>>;

    fn poll(entering: &mut Serving<'_>) -> Option<Served> {
        match pin!(entering).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(served) => Some(served),
            Poll::Pending => None,
        }
    }

    fn form<'a>(teams: &'a Teams, node: u64, rank: u32, size: u32) -> Serving<'a> {
        Box::pin(teams.form(NodeId(node), 1, "team".into(), rank, size))
    }

    fn formed(served: Option<Served>) -> u64 {
        match served {
            Some(Ok(Reply::TeamFormed { group, members })) => {
                assert_eq!(members, [10, 11]);
                group
            }
            other => panic!("{other:?}"),
        }
    }

    /// Forms a team of two, nodes 10 and 11, and returns its group.
    fn pair(teams: &Teams) -> u64 {
        let (mut one, mut other) = (form(teams, 11, 1, 2), form(teams, 10, 0, 2));
        assert!(poll(&mut one).is_none());
        let group = formed(poll(&mut other));
        assert_eq!(formed(poll(&mut one)), group);
        group
    }

    fn enter_barrier<'a>(
        teams: &'a Teams,
        group: u64,
        operation: u32,
        node: u64,
        failure: Option<&str>,
    ) -> Serving<'a> {
        let (entering, failure) = (
            BarrierEntry { step: TeamStep::Barrier, contribution: vec![node as u8] },
            failure.map(Failure::invalid),
        );
        Box::pin(teams.enter_barrier(NodeId(node), CollectiveId { group, operation }, entering, failure))
    }

    /// Returns the result of a barrier for the members of a pair.
    fn completed() -> Reply {
        let contributions = postcard::to_extend(&vec![vec![10_u8], vec![11]], Vec::new()).expect("encoded");
        Reply::BarrierDone { members: Vec::new(), contributions }
    }

    fn move_data(teams: &Teams, group: u64, node: u64, direction: Direction) -> Serving<'_> {
        let step = TeamStep::Move { direction, in_two_phases: false };
        let id = CollectiveId { group, operation: 0 };
        Box::pin(teams.enter_barrier(NodeId(node), id, BarrierEntry { step, contribution: Vec::new() }, None))
    }

    fn text(served: Option<Served>) -> String {
        served.expect("answered").expect_err("refused").text
    }

    #[test]
    fn members_at_different_barriers_get_an_error() {
        let teams = Teams::default();
        let group = pair(&teams);
        let mut one = enter_barrier(&teams, group, 3, 10, None);
        assert!(poll(&mut one).is_none());
        let error = text(poll(&mut enter_barrier(&teams, group, 4, 11, None)));
        assert!(error.contains("out of step: a barrier of rank 0 and a barrier of rank 1"), "{error}");
        assert_eq!(text(poll(&mut one)), error);
        assert_eq!(text(poll(&mut enter_barrier(&teams, group, 5, 10, None))), error);
    }

    #[test]
    fn different_operations_at_one_barrier_are_named_in_the_error() {
        let teams = Teams::default();
        let group = pair(&teams);
        let mut one = move_data(&teams, group, 11, Direction::Read);
        assert!(poll(&mut one).is_none());
        let error = text(poll(&mut move_data(&teams, group, 10, Direction::Write)));
        assert!(error.ends_with("out of step: a write of rank 0 and a read of rank 1"), "{error}");
        for mut entering in [one, enter_barrier(&teams, group, 5, 10, None)] {
            assert_eq!(text(poll(&mut entering)), error);
        }
    }

    #[test]
    fn a_few_members_are_named_and_others_counted() {
        for (ranks, words) in
            [(0..1, "rank 0"), (0..4, "ranks 0, 1, 2, 3"), (0..6, "ranks 0, 1, 2, 3 and 2 more")]
        {
            assert_eq!(ranks_in_words(&ranks.collect::<Vec<_>>()), words);
        }
    }

    #[test]
    fn each_member_gets_the_data_of_all_members() {
        let teams = Teams::default();
        let group = pair(&teams);
        for operation in [1, 2, 9] {
            let (mut one, mut other) = (
                enter_barrier(&teams, group, operation, 10, None),
                enter_barrier(&teams, group, operation, 11, None),
            );
            assert!(poll(&mut one).is_none());
            for entering in [&mut other, &mut one] {
                assert_eq!(poll(entering), Some(Ok(completed())));
            }
        }
        assert!(teams.formed.borrow()[&group].barriers.borrow().is_empty());
    }

    #[test]
    fn too_much_data_at_a_barrier_is_rejected() {
        let teams = Teams::default();
        let group = pair(&teams);
        let entering =
            BarrierEntry { step: TeamStep::Barrier, contribution: vec![0; CONTRIBUTION_BYTES_MAX + 1] };
        let barrier = CollectiveId { group, operation: 1 };
        let mut one: Serving = Box::pin(teams.enter_barrier(NodeId(10), barrier, entering, None));
        assert!(poll(&mut one).is_none());
        let mut other = enter_barrier(&teams, group, 1, 11, None);
        for error in [text(poll(&mut other)), text(poll(&mut one))] {
            assert!(error.contains("contributes 513 bytes"), "{error}");
        }
    }

    #[test]
    fn a_failure_of_one_member_fails_all() {
        let teams = Teams::default();
        let group = pair(&teams);
        let error = format!("{} has no memory", NodeId(11));
        let (mut one, mut other) =
            (enter_barrier(&teams, group, 1, 10, None), enter_barrier(&teams, group, 1, 11, Some(&error)));
        assert!(poll(&mut one).is_none());
        assert_eq!([text(poll(&mut other)), text(poll(&mut one))], ["rank 1 has no memory"; 2]);
    }

    #[test]
    fn a_barrier_does_not_wait_for_a_disconnected_member() {
        let teams = Teams::default();
        let group = pair(&teams);
        let mut waiting = enter_barrier(&teams, group, 1, 10, None);
        assert!(poll(&mut waiting).is_none());
        teams.client_disconnected(NodeId(11));
        for mut entering in [waiting, enter_barrier(&teams, group, 2, 10, None)] {
            let failure = poll(&mut entering).expect("answered").expect_err("refused");
            assert_eq!(
                (failure.lost_rank, &*failure.text),
                (Some(1), "rank 1 of the team team disconnected")
            );
        }
        assert!(text(poll(&mut enter_barrier(&teams, group, 2, 11, None))).contains("lost this member"));
        teams.leave(NodeId(10), group);
        assert!(teams.formed.borrow().is_empty());
        // A completed barrier is not affected by a member that leaves afterwards.
        let group = pair(&teams);
        let (mut one, mut other) =
            (enter_barrier(&teams, group, 1, 10, None), enter_barrier(&teams, group, 1, 11, None));
        assert!(poll(&mut one).is_none() && poll(&mut other).is_some());
        teams.leave(NodeId(11), group);
        assert_eq!(poll(&mut one), Some(Ok(completed())));
    }

    #[test]
    fn a_team_that_never_forms_does_not_block_the_next() {
        let teams = Teams::default();
        let mut waiting = form(&teams, 11, 1, 2);
        assert!(poll(&mut waiting).is_none());
        for (mut entering, why) in [
            (form(&teams, 10, 1, 2), "already has that rank"),
            (form(&teams, 11, 0, 2), "already rank 1"),
            (form(&teams, 10, 0, 3), "size of team team: 2 and 3"),
            (form(&teams, 10, 2, 2), "with ranks from 0"),
            (form(&teams, 10, 0, SIZE_MAX + 1), "has 1 to"),
        ] {
            assert!(text(poll(&mut entering)).contains(why), "{why}");
        }
        let mut third = form(&teams, 12, 0, 2);
        teams.client_disconnected(NodeId(11));
        assert!(text(poll(&mut waiting)).contains("rank 1 of the team team disconnected"));
        assert!(poll(&mut third).is_none(), "it waits for another one");
        teams.client_disconnected(NodeId(12));
        pair(&teams);
    }
}
