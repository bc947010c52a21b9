//! Joint flushes of write caches by the members of a job, which join and leave at any time.
//!
//! An I/O node is the *coordinator* of a job's membership, and of the barriers of its members:
//!
//! ```text
//!  member 0   Join     Gather -> FlushTogether   Meet -> Met   asks all I/O nodes to move   Meet -> Met
//!  member 1      Join            FlushTogether     Meet  Met   ..........................   Meet    Met
//!                                | members of the flush: those present when it begins
//! ```
//!
//! Each flush has two barriers: at the first all members have reported their data, at the second all data
//! have been moved. The coordinator stops waiting for a member that disconnects, and the flush fails with its
//! name.
//!
//! Members that share a file in small pieces fill its blocks together, and a block with a missing part costs
//! its disk several times as much. So a flush only for space begins when all members of the last such flush
//! are full. A member may have stopped writing, so the first full member waits no longer than the last flush
//! took. So waiting takes at most half of the time, whatever the other members do.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use machine::{Condition, Duration, Instant, Machine, NodeId, Payload, first_of};

use super::barrier::{BarrierState, Served, with_names};
use super::client_account::Account;
use super::client_quotas::{Share, Shares};
use crate::endpoint::{Endpoint, Mailbox};
use crate::error::{Failure, FailureKind};
use crate::name;
use crate::protocol::{CollectiveId, FileId, Reply, Request};

/// Limit of memberships in jobs: of each client in any case, and of all clients beyond that.
const MEMBERSHIPS: (u64, u64) = (16, 4096);

/// Limit of members of a job.
const MEMBERS_MAX: usize = 4096;

/// Time for which a full member waits for the others before the first flush. Processes that are started
/// together write their first records some tens of milliseconds apart.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The memberships of jobs at this I/O node.
pub(super) struct Memberships<M: Machine> {
    machine: M,
    endpoint: Rc<Endpoint<M>>,
    /// The incarnation of the node.
    incarnation: u64,
    by_group: RefCell<BTreeMap<u64, Rc<JobMembers>>>,
    memberships: Shares,
}

/// The members of a job that know the same I/O nodes: the member that begins a flush asks all its I/O nodes
/// to move the data that any member has reported there.
struct JobMembers {
    job: String,
    group: u64,
    /// The members, in the order in which they have joined.
    members: RefCell<Vec<Member>>,
    /// Number of flushes begun.
    flushes: Cell<u32>,
    /// Number of the last flush of all files.
    last_of_all: Cell<u32>,
    /// The flush in progress.
    flush: RefCell<Option<Rc<Flush>>>,
    room: FullMembers,
    changed: Condition,
}

/// The full members of a job, and the members that they wait for.
struct FullMembers {
    /// The full members that wait for a flush now.
    out: RefCell<BTreeSet<NodeId>>,
    /// The members that waited when the last flush for space began; `None` before the first one.
    out_before: RefCell<Option<BTreeSet<NodeId>>>,
    /// Time until which the first of them waits for others.
    until: Cell<Option<Instant>>,
    /// Time at which the last flush began, and duration of the last completed one.
    began: Cell<Instant>,
    took: Cell<Duration>,
}

/// A flush that a member requests.
pub(super) struct FlushRequest {
    /// Its number, or the number of an earlier flush that is sufficient.
    pub(super) flush: u32,
    /// The file to flush; `None` for all files.
    pub(super) file: Option<FileId>,
    /// True if it is only for space.
    pub(super) for_room: bool,
}

/// A member of a job.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) node: NodeId,
    /// Name of the member for people.
    pub(super) name: String,
    /// Number of flushes that had begun when it joined: they do not include its writes.
    flushes_before: u32,
    /// Part of its client's share, until the last flush with the member is complete.
    _membership: Rc<Share>,
}

/// A flush in progress.
struct Flush {
    number: u32,
    /// The file to flush; `None` for all files.
    file: Option<FileId>,
    members: RefCell<Vec<Member>>,
    /// Failure reported to the others for the first lost member.
    lost: RefCell<Option<Failure>>,
    barriers: [BarrierState<NodeId, (), Vec<u64>>; 2],
}

impl<M: Machine> Memberships<M> {
    pub(super) fn new(machine: M, endpoint: Rc<Endpoint<M>>, incarnation: u64) -> Self {
        let memberships = Shares::new(MEMBERSHIPS.0, MEMBERSHIPS.1);
        Memberships { machine, endpoint, incarnation, by_group: RefCell::default(), memberships }
    }

    /// Adds a client to the members of a job that know these I/O nodes, when no flush is in progress.
    pub(super) async fn join(
        &self,
        client: NodeId,
        account: &Account,
        name: String,
        job: String,
        io_nodes: u64,
    ) -> Served {
        let membership = self.memberships.try_take(client, 1).ok_or_else(|| {
            Failure::new(FailureKind::Io, format!("{client} is in too many jobs to join {job:?}: leave one"))
        })?;
        let member = Member { node: client, name, flushes_before: 0, _membership: Rc::new(membership) };
        loop {
            let job_members = self.of_job(&job, io_nodes)?;
            if job_members.flush.borrow().is_some() {
                // The job may have other members after that.
                job_members.changed.wait().await;
                continue;
            }
            account.check()?;
            job_members.add(member)?;
            let (group, flushes) = (job_members.group, job_members.flushes.get());
            self.by_group.borrow_mut().insert(group, job_members);
            return Ok(Reply::Joined { group, flushes });
        }
    }

    /// Begins a flush that a member requests, unless a sufficient one has begun.
    pub(super) async fn gather(&self, client: NodeId, group: u64, wanted: FlushRequest) -> Served {
        let FlushRequest { flush, file, for_room } = wanted;
        let job_members = loop {
            // The client may have left while it waited.
            let job_members = self.of_member(client, group)?;
            // The client may have sent the request before it joined again.
            let flush = flush.max(job_members.first_flush_of(client));
            let current = job_members.flush.borrow().clone();
            match current {
                Some(current) if current.number >= flush && current.covers(file) => {
                    return Ok(Reply::Flushing { flush: current.number });
                }
                Some(_) => job_members.changed.wait().await,
                None if job_members.last_of_all.get() >= flush => {
                    return Ok(Reply::Flushing { flush: job_members.last_of_all.get() });
                }
                None if for_room => {
                    let until = job_members.run_out(client, self.machine.now())?;
                    if job_members.all_are_out() || self.machine.now() >= until {
                        break job_members;
                    }
                    first_of(job_members.changed.wait(), self.machine.sleep_until(until)).await;
                }
                None => break job_members,
            }
        };
        let begun = job_members.begin(file, for_room, self.machine.now());
        if for_room {
            // Other members that wait for the flush find that it has begun.
            job_members.changed.wake_all();
        }
        self.notify_members(&job_members, &begun).await;
        Ok(Reply::Flushing { flush: begun.number })
    }

    /// Notifies all members that a flush has begun. Removes a member that cannot take part from the job.
    async fn notify_members(&self, job_members: &JobMembers, flush: &Flush) {
        let (members, mailbox) = (flush.members.borrow().clone(), Mailbox::new());
        for (index, member) in members.iter().enumerate() {
            let Flush { number, file, .. } = *flush;
            let request = Request::FlushTogether { group: job_members.group, flush: number, file };
            self.endpoint.begin(member.node, request, Payload::empty(), &mailbox, index).await;
        }
        for _ in &members {
            if let (index, Err(error)) = mailbox.next().await {
                let now = self.machine.now();
                job_members.lose(members[index].node, &format!("cannot take part: {error}"), now);
            }
        }
    }

    /// Returns the membership of a job for these I/O nodes; a new, unregistered one if it does not exist.
    fn of_job(&self, job: &str, io_nodes: u64) -> Result<Rc<JobMembers>, Box<Failure>> {
        name::check(job).map_err(|why| Failure::invalid(format!("job name {job:?}: {why}")))?;
        // The group differs for each incarnation of this node.
        let group = name::hash_of(job, &[self.incarnation, io_nodes]);
        let all = self.by_group.borrow();
        match all.get(&group) {
            Some(job_members) if job_members.job == job => Ok(job_members.clone()),
            Some(other) => {
                let why = format!("the names of jobs {job} and {} collide: rename one of them", other.job);
                Err(Failure::invalid(why).into())
            }
            None => Ok(Rc::new(JobMembers::new(job.to_owned(), group))),
        }
    }

    /// Returns the membership of a group, if a client is a member of it.
    fn of_member(&self, client: NodeId, group: u64) -> Result<Rc<JobMembers>, Box<Failure>> {
        let job_members = self.by_group.borrow().get(&group).cloned();
        job_members.filter(|job_members| job_members.has(client)).ok_or_else(|| {
            let why = format!("{client} is not a member of the group {group:016x}");
            Failure::new(FailureKind::NotOpen, why).into()
        })
    }

    /// Blocks until all members of a flush have entered one of its barriers.
    pub(super) async fn enter(&self, client: NodeId, id: CollectiveId, failure: Option<Failure>) -> Served {
        let job_members = self.of_member(client, id.group)?;
        let current = job_members.flush.borrow().clone();
        let flush = current.filter(|flush| flush.is_of(id, client)).ok_or_else(|| {
            Failure::invalid(format!(
                "{client} entered barrier {} of a flush that is not in progress",
                id.operation
            ))
        })?;
        let barrier = flush.barrier(id);
        barrier.enter(client, client, (), failure.map(|failure| flush.with_names(failure)))?;
        job_members.settle(self.machine.now());
        let members = barrier.outcome(&job_members.changed).await?;
        Ok(Reply::BarrierDone { members, contributions: Vec::new() })
    }

    /// Removes a client from the members of a group, after the flush in progress.
    pub(super) async fn leave(&self, client: NodeId, group: u64) -> Served {
        let job_members = self.of_member(client, group)?;
        job_members.between_flushes().await;
        job_members.members.borrow_mut().retain(|member| member.node != client);
        self.end_if_empty(group);
        Ok(Reply::Done)
    }

    /// Removes a disconnected client from all groups.
    pub(super) fn client_disconnected(&self, client: NodeId) {
        let with_client: Vec<_> =
            self.by_group.borrow().values().filter(|job_members| job_members.has(client)).cloned().collect();
        for job_members in with_client {
            job_members.lose(client, "disconnected", self.machine.now());
            self.end_if_empty(job_members.group);
        }
    }

    fn end_if_empty(&self, group: u64) {
        let mut all = self.by_group.borrow_mut();
        if all.get(&group).is_some_and(|job_members| job_members.members.borrow().is_empty()) {
            all.remove(&group);
        }
    }
}

impl JobMembers {
    fn new(job: String, group: u64) -> Self {
        JobMembers {
            job,
            group,
            members: RefCell::default(),
            flushes: Cell::new(0),
            last_of_all: Cell::new(0),
            flush: RefCell::default(),
            room: FullMembers {
                out: RefCell::default(),
                out_before: RefCell::default(),
                until: Cell::default(),
                began: Cell::new(Instant::START),
                took: Cell::new(FIRST_WAIT),
            },
            changed: Condition::new(),
        }
    }

    fn has(&self, client: NodeId) -> bool {
        self.members.borrow().iter().any(|member| member.node == client)
    }

    /// Adds a member. A member may join again, because the answer to its first request was lost.
    fn add(&self, member: Member) -> Result<(), Box<Failure>> {
        let mut members = self.members.borrow_mut();
        members.retain(|other| other.node != member.node);
        if members.len() >= MEMBERS_MAX {
            return Err(Failure::invalid(format!("{} already has {MEMBERS_MAX} members", self.job)).into());
        }
        name::check(&member.name)
            .map_err(|why| Failure::invalid(format!("member name {:?}: {why}", member.name)))?;
        members.push(Member { flushes_before: self.flushes.get(), ..member });
        Ok(())
    }

    /// Returns the number of the first flush that includes writes of a member.
    fn first_flush_of(&self, client: NodeId) -> u32 {
        let members = self.members.borrow();
        members.iter().find(|member| member.node == client).map_or(0, |member| member.flushes_before + 1)
    }

    async fn between_flushes(&self) {
        while self.flush.borrow().is_some() {
            self.changed.wait().await;
        }
    }

    /// Records that a member is full. Returns the time until which it waits for others.
    fn run_out(&self, client: NodeId, now: Instant) -> Result<Instant, Box<Failure>> {
        if !self.has(client) {
            let why = format!("{client} is no longer a member of the job {}", self.job);
            return Err(Failure::new(FailureKind::NotOpen, why).into());
        }
        if self.room.out.borrow_mut().insert(client) {
            self.changed.wake_all();
        }
        let until = self.room.until.get().unwrap_or(now + self.room.took.get());
        self.room.until.set(Some(until));
        Ok(until)
    }

    /// True if every awaited member is full.
    fn all_are_out(&self) -> bool {
        let (out, before) = (self.room.out.borrow(), self.room.out_before.borrow());
        let awaited = |member: &&Member| before.as_ref().is_none_or(|before| before.contains(&member.node));
        self.members.borrow().iter().filter(awaited).all(|member| out.contains(&member.node))
    }

    /// Begins a flush of all current members.
    fn begin(&self, file: Option<FileId>, for_room: bool, now: Instant) -> Rc<Flush> {
        self.flushes.set(self.flushes.get() + 1);
        self.room.began.set(now);
        self.room.until.set(None);
        let out = self.room.out.take();
        if for_room {
            self.room.out_before.replace(Some(out));
        }
        if file.is_none() {
            self.last_of_all.set(self.flushes.get());
        }
        let flush = Rc::new(Flush {
            number: self.flushes.get(),
            file,
            members: RefCell::new(self.members.borrow().clone()),
            lost: RefCell::default(),
            barriers: Default::default(),
        });
        self.flush.replace(Some(flush.clone()));
        flush
    }

    /// Removes a lost member. Its failure contains the description of the event.
    fn lose(&self, client: NodeId, what: &str, now: Instant) {
        self.members.borrow_mut().retain(|member| member.node != client);
        if let Some(flush) = &*self.flush.borrow() {
            let mut members = flush.members.borrow_mut();
            if let Some(index) = members.iter().position(|member| member.node == client) {
                let text = format!("{} of the job {} {what}", members.remove(index).name, self.job);
                flush.lost.borrow_mut().get_or_insert(Failure::new(FailureKind::Io, text));
            }
        }
        self.settle(now);
    }

    /// Completes the barriers that all members have entered, and with the second one the flush.
    fn settle(&self, now: Instant) {
        let current = self.flush.borrow().clone();
        if let Some(flush) = current {
            let is_over = flush.barriers.iter().all(|barrier| flush.end(barrier));
            if is_over {
                self.flush.replace(None);
                self.room.took.set(now.since(self.room.began.get()));
            }
        }
        self.changed.wake_all();
    }
}

impl Flush {
    /// True if this flush includes all writes to `file`; without a file, all writes to all files.
    fn covers(&self, file: Option<FileId>) -> bool {
        self.file.is_none() || self.file == file
    }

    /// True if the barrier belongs to this flush, and the client may enter it.
    fn is_of(&self, id: CollectiveId, client: NodeId) -> bool {
        id.operation.div_ceil(2) == self.number
            && self.members.borrow().iter().any(|member| member.node == client)
    }

    /// Replaces nodes by names of members in the text of a failure.
    fn with_names(&self, failure: Failure) -> Failure {
        let members = self.members.borrow();
        let names = members.iter().map(|member| (member.node, member.name.clone()));
        with_names(failure, &names.collect())
    }

    fn barrier(&self, id: CollectiveId) -> &BarrierState<NodeId, (), Vec<u64>> {
        &self.barriers[(id.operation as usize + 1) % 2]
    }

    /// Completes a barrier if all members have entered. Returns true if it is complete.
    fn end(&self, barrier: &BarrierState<NodeId, (), Vec<u64>>) -> bool {
        if barrier.is_over() {
            return true;
        }
        let members = self.members.borrow();
        if !members.iter().all(|member| barrier.present().contains_key(&member.node)) {
            return false;
        }
        barrier.end(self.lost.borrow().clone(), members.iter().map(|member| member.node.0).collect());
        true
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const GROUP: u64 = 7;

    /// Returns a job with three members, and a flush of them.
    fn flush_of_three() -> (JobMembers, Rc<Flush>) {
        let job_members = JobMembers::new("job".into(), GROUP);
        let shares = Shares::new(1, 0);
        for node in (0..3).map(NodeId) {
            let _membership = Rc::new(shares.try_take(node, 1).expect("its first"));
            let name = format!("member {}", node.0);
            job_members.add(Member { node, name, flushes_before: 0, _membership }).expect("added");
        }
        let flush = job_members.begin(None, false, Instant::START);
        (job_members, flush)
    }

    fn enter(
        job_members: &JobMembers,
        flush: &Flush,
        step: usize,
        members: &[u64],
        failure_text: Option<&str>,
    ) {
        let barrier =
            flush.barrier(CollectiveId { group: GROUP, operation: 2 * flush.number - 1 + step as u32 });
        for &node in members {
            let failure = failure_text.map(Failure::invalid);
            barrier.enter(NodeId(node), NodeId(node), (), failure).expect("it has not entered yet");
        }
        job_members.settle(Instant::START);
    }

    fn outcome(flush: &Flush, step: usize) -> Option<Result<Vec<u64>, String>> {
        let barrier = &flush.barriers[step];
        let outcome = pin!(barrier.outcome(&Condition::new())).poll(&mut Context::from_waker(Waker::noop()));
        match outcome {
            Poll::Ready(outcome) => Some(outcome.map_err(|failure| failure.text)),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_flush_ends_after_all_members_entered_both_barriers() {
        let (job_members, flush) = flush_of_three();
        enter(&job_members, &flush, 0, &[2, 0], None);
        assert_eq!(outcome(&flush, 0), None);
        enter(&job_members, &flush, 0, &[1], None);
        assert_eq!(outcome(&flush, 0), Some(Ok(vec![0, 1, 2])));
        enter(&job_members, &flush, 1, &[0, 1], None);
        assert!(job_members.flush.borrow().is_some());
        enter(&job_members, &flush, 1, &[2], None);
        assert!(
            job_members.flush.borrow().is_none()
                && job_members.begin(None, false, Instant::START).number == 2
        );
    }

    #[test]
    fn a_flush_fails_with_the_name_of_a_disconnected_member() {
        // Before the first barrier or after it, with or without another failure.
        for (at_second_barrier, lost, others, failure_text) in [
            (false, 2, [0, 1], None),
            (true, 2, [0, 1], None),
            (true, 2, [0, 1], Some("no answer")),
            (true, 0, [1, 2], None),
        ] {
            let (job_members, flush) = flush_of_three();
            if at_second_barrier {
                enter(&job_members, &flush, 0, &[0, 1, 2], None);
            }
            enter(&job_members, &flush, usize::from(at_second_barrier), &others, failure_text);
            job_members.lose(NodeId(lost), "disconnected", Instant::START);
            let expected = format!("member {lost} of the job job disconnected");
            assert_eq!(outcome(&flush, usize::from(at_second_barrier)), Some(Err(expected)));
            assert_eq!(job_members.flush.borrow().is_none(), at_second_barrier);
        }
    }

    #[test]
    fn a_flush_fails_with_the_name_of_the_first_disconnected_member() {
        let (job_members, flush) = flush_of_three();
        enter(&job_members, &flush, 0, &[0, 1, 2], None);
        job_members.lose(NodeId(2), "disconnected", Instant::START);
        enter(&job_members, &flush, 1, &[1], None);
        // This member may have asked no I/O node to move data.
        job_members.lose(NodeId(0), "disconnected", Instant::START);
        assert_eq!(outcome(&flush, 1), Some(Err("member 2 of the job job disconnected".into())));
    }

    #[test]
    fn a_failure_shows_the_name_of_a_member() {
        let (_, flush) = flush_of_three();
        let named = flush.with_names(Failure::invalid(format!("{} is gone", NodeId(2))));
        assert_eq!(named.text, "member 2 is gone");
    }

    #[test]
    fn a_flush_ends_if_all_members_disconnect() {
        let (job_members, _) = flush_of_three();
        (0..3).for_each(|node| job_members.lose(NodeId(node), "disconnected", Instant::START));
        assert!(job_members.flush.borrow().is_none());
    }

    #[test]
    fn a_full_member_waits_only_for_members_that_write() {
        let (job_members, flush) = flush_of_three();
        (0..2).for_each(|step| enter(&job_members, &flush, step, &[0, 1, 2], None));
        let out =
            |node, ms: u64| job_members.run_out(NodeId(node), Instant::START + Duration::from_millis(ms));
        // At first wait for all members, but only for a limited time after the first one was full.
        let until = out(0, 5).expect("a member");
        assert_eq!((out(1, 6).ok(), job_members.all_are_out()), (Some(until), false));
        out(2, 7).expect("a member");
        assert!(job_members.all_are_out());
        // Then wait for those that were full before, unless they disconnect.
        job_members.begin(None, true, Instant::START);
        out(0, 8).expect("a member");
        out(1, 9).expect("a member");
        assert!(!job_members.all_are_out());
        job_members.begin(None, true, Instant::START);
        out(0, 10).expect("a member");
        assert!(!job_members.all_are_out());
        job_members.lose(NodeId(1), "disconnected", Instant::START);
        assert!(job_members.all_are_out() && out(1, 11).is_err());
        // A flush for another reason does not show which members write.
        job_members.begin(None, false, Instant::START);
        assert!(!job_members.all_are_out());
        out(0, 12).expect("a member");
        assert!(job_members.all_are_out());
    }

    #[test]
    fn a_flush_of_one_file_does_not_cover_all_files() {
        let (job_members, whole) = flush_of_three();
        assert!(whole.covers(None) && whole.covers(Some(FileId(1))));
        let of_one = job_members.begin(Some(FileId(1)), false, Instant::START);
        assert!(of_one.covers(Some(FileId(1))) && !of_one.covers(Some(FileId(2))) && !of_one.covers(None));
        assert_eq!((job_members.flushes.get(), job_members.last_of_all.get()), (2, 1));
    }
}
