//! Random valid requests, in any order, from clients that interfere with each other.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use fs::protocol::{
    BlockWrite, Collective, CollectiveId, Direction, Fetch, Flushing, Frame, Listed, LockChange, LockStep,
    MemoryId, RecordingStep, Reply, Request, StripeHome, StripePlaces, TeamStep, WrittenUntil,
};
use fs::{Entry, EntryRun, FailureKind, FileId, IoNodeSettings, ListedStretch, LockMode, LockRange, Threads};
use layout::{Pattern, Problem, Striping};
use machine::conformance::Testbed;
use machine::{Class, Condition, Delivery, Disk, Duration, Error, Machine, Message, Net, NodeId, Payload};
use namespace::FileNumber;

use super::tasks::Tasks;
use super::{BLOCK, Base, Draw, contents, created, read, run, small, start, write};

/// Number of clients with random requests.
const ASKERS: usize = 3;

/// Maximum number of requests in flight of each client.
const UNDER_WAY: usize = 24;

/// Number of names and identities that the clients share. Each client also has this number of private ones.
const SHARED: u64 = 5;

/// Client that sends random requests and answers those it receives.
struct RandomAsker<M: Machine> {
    node: M,
    io_node: NodeId,
    /// Identity of the I/O node's disk.
    disk: u64,
    /// All clients with random requests, which can be members of its groups.
    askers: Vec<u64>,
    draw: RefCell<Draw>,
    /// Number of bytes expected with each outstanding answer, by tag.
    under_way: RefCell<BTreeMap<u64, u64>>,
    answered: Condition,
    /// Number of successful requests.
    done: Cell<u64>,
}

/// Parameters of random requests.
#[derive(Clone, Copy)]
pub(super) struct Asking {
    /// Number of requests of all clients together.
    pub(super) requests: u64,
    /// Seed.
    pub(super) seed: u64,
    /// Time limit: a longer run counts as an endless wait.
    pub(super) limit: Duration,
    /// Minimum percentage of requests that must succeed.
    pub(super) least_done: u64,
    /// Pause of the well-behaved client between two rounds, which leaves the I/O node to others.
    pub(super) pause: Duration,
}

/// Sends `requests` random requests of all kinds, with private and shared identities and names. Each request is
/// answered; none triggers a panic, or is answered with damage that does not exist. A well-behaved client reads back
/// its concurrent writes.
///
/// A run longer than `limit` counts as an endless wait.
pub fn random_requests_are_all_answered(
    testbed: &impl Testbed,
    base: Base,
    requests: u64,
    seed: u64,
    limit: Duration,
) {
    let settings = IoNodeSettings {
        cache_blocks: 16,
        wait_timeout: Some(limit),
        incarnation: 1,
        ..small(base, Threads::Pool(8))
    };
    // About four of ten requests succeed, depending on the effects of other clients on the same files.
    let pause = Duration::from_millis(50);
    ask_at_random(testbed, base, settings, Asking { requests, seed, limit, least_done: 20, pause });
}

/// Runs one I/O node with these settings, a well-behaved client, and clients with random requests.
pub(super) fn ask_at_random(testbed: &impl Testbed, base: Base, settings: IoNodeSettings, asking: Asking) {
    run(testbed, 2 + ASKERS, move |nodes| async move {
        let client = start(base, &nodes[..2], 1, settings).await.remove(0);
        let file = created(&client, 999).await;
        // Write before other clients can fill the disk.
        write(&file, 0, &contents(42 * BLOCK)).await;
        file.flush().await.expect("flushed");
        let disk = nodes[0].disks()[0].identity().await.expect("it has one");
        let askers: Vec<u64> = nodes[2..].iter().map(|node| node.node().0).collect();
        let tasks = Tasks::default();
        let left = Rc::new(Cell::new(ASKERS));
        for (number, node) in (1..).zip(&nodes[2..]) {
            let asker = Rc::new(RandomAsker {
                node: node.clone(),
                io_node: nodes[0].node(),
                disk,
                askers: askers.clone(),
                draw: RefCell::new(Draw(asking.seed * 100 + number)),
                under_way: RefCell::default(),
                answered: Condition::new(),
                done: Cell::new(0),
            });
            let listening = asker.clone();
            node.spawn("answers", async move { listening.listen().await });
            let left = left.clone();
            tasks.begin(node, async move {
                asker.ask(asking.requests / ASKERS as u64, asking.least_done).await;
                left.set(left.get() - 1);
            });
        }
        watch_over(&nodes[1], left.clone(), asking.limit);
        for round in 0.. {
            let data = contents(40 * BLOCK + round % 100);
            write(&file, round % 7, &data).await;
            assert!(read(&file, round % 7, data.len() as u64).await == data, "round {round}");
            if left.get() == 0 {
                break;
            }
            // Pause, because the I/O node serves no background requests of other clients while demand requests wait.
            nodes[1].sleep_until(nodes[1].now() + asking.pause).await;
        }
        tasks.wait().await;
        file.flush().await.expect("flushed");
        client.list_numbered().await.expect("served");
    });
}

/// Fails the test if it takes too long.
fn watch_over(node: &impl Machine, left: Rc<Cell<usize>>, limit: Duration) {
    let watcher = node.clone();
    node.spawn("watching over the test", async move {
        let mut passed = Duration::ZERO;
        while left.get() > 0 {
            watcher.sleep_until(watcher.now() + Duration::from_secs(1)).await;
            passed += Duration::from_secs(1);
            if passed > limit {
                let (task, why) = ("random requests".into(), "some are never answered".into());
                return Err(Error::Failed { task, why }.into());
            }
        }
        Ok(())
    });
}

impl<M: Machine> RandomAsker<M> {
    fn below(&self, limit: u64) -> u64 {
        self.draw.borrow_mut().below(limit)
    }

    /// Sends `requests` requests and waits for all answers; at least `least_done` percent of them must succeed.
    async fn ask(&self, requests: u64, least_done: u64) {
        for tag in 1..=requests {
            while self.under_way.borrow().len() >= UNDER_WAY {
                self.answered.wait().await;
            }
            let (request, payload) = self.request();
            let bytes = match request {
                Request::Read { bytes, .. } => u64::from(bytes),
                _ => 0,
            };
            self.under_way.borrow_mut().insert(tag, bytes);
            let class = match request {
                Request::Read { .. } | Request::Write(_) if self.below(3) == 0 => Class::Background,
                Request::Read { .. } | Request::Write(_) => Class::Demand,
                _ => Class::Control,
            };
            let message = Message { class, header: Frame::Request(tag, request).encode(), payload };
            self.node.net().send(self.io_node, message).await.expect("the I/O node is there");
        }
        while !self.under_way.borrow().is_empty() {
            self.answered.wait().await;
        }
        let done = self.done.get();
        assert!(done * 100 >= requests * least_done, "only {done} of {requests} requests succeeded");
    }

    async fn listen(&self) -> machine::Result<()> {
        while let Ok((from, Delivery::Message(message))) = self.node.net().receive().await {
            match Frame::decode(&message.header).expect("an I/O node sends valid frames") {
                Frame::Reply(tag, reply) => {
                    let asked = self.under_way.borrow_mut().remove(&tag).expect("answered once");
                    self.check(reply, asked, message.payload.len());
                    self.answered.wake_all();
                }
                Frame::Request(tag, request) => {
                    let (reply, payload) = self.serve(request);
                    let header = Frame::Reply(tag, reply).encode();
                    self.node.net().send(from, Message { header, payload, ..message }).await?;
                }
            }
        }
        Ok(())
    }

    fn check(&self, reply: Reply, asked: u64, arrived: u64) {
        match reply {
            Reply::Failed(failure) => {
                // These reports of damage are true: a write at an offset too large for the disk is lost, and another
                // request may have described the stripe differently.
                let reasons = ["did not reach", "in the place of"];
                let is_true = failure.kind != FailureKind::Damaged
                    || reasons.iter().any(|reason| failure.text.contains(reason));
                assert!(is_true && !failure.text.contains("defect"), "{failure}");
            }
            _ => {
                assert_eq!(arrived, asked);
                self.done.set(self.done.get() + 1);
            }
        }
    }

    /// Answers as a member of a group, sometimes wrongly.
    fn serve(&self, request: Request) -> (Reply, Payload) {
        let bytes = match request {
            Request::Memget { bytes, .. } => u64::from(bytes),
            Request::MemgetPieces { pieces, .. } => pieces.iter().map(|&(_, bytes)| u64::from(bytes)).sum(),
            _ => 0,
        };
        match self.below(50) {
            0 => (Reply::Failed(fs::Failure::new(FailureKind::Io, "no")), Payload::empty()),
            1 => (Reply::Done, Payload::from(vec![1; 10])),
            _ => (Reply::Done, Payload::from(vec![2; bytes as usize])),
        }
    }

    /// Returns a private name or identity, or a shared one.
    fn number(&self) -> u64 {
        let own = if self.below(2) == 0 { self.node.node().0 } else { 0 };
        own * SHARED + 1 + self.below(SHARED)
    }

    fn name(&self) -> String {
        format!("name {}", self.number())
    }

    /// Returns an offset, usually within the lengths of files here, rarely anywhere.
    fn offset(&self) -> u64 {
        match self.below(40) {
            0 => self.below(u64::MAX >> 32) << self.below(33),
            _ => self.below(60 * BLOCK),
        }
    }

    fn request(&self) -> (Request, Payload) {
        let (file, stripe) = (FileId(self.number()), u32::from(self.below(20) == 0));
        let (offset, bytes) =
            (self.offset(), self.below(if self.below(2) == 0 { 64 } else { BLOCK + 2 }) as u32);
        let request = match self.below(50) {
            0..=6 | 8 | 40..=43 => self.of_numbered(file, stripe),
            44..=45 => Request::Directory { memory: self.collective_memory(), entries: self.entries() },
            46 => Request::Stretches { memory: self.collective_memory(), stretches: self.stretches() },
            47 => {
                let (queued, presort) = (self.below(2) == 0, self.below(2) == 0);
                let (direction, members) = (self.direction(), self.members());
                let memory = self.collective_memory();
                Request::MoveListed(Box::new(Listed { direction, presort, queued, memory, members }))
            }
            48 => Request::Join { job: self.name(), member: self.name(), io_nodes: self.below(2) },
            49 => self.of_group(self.below(3)),
            7 => {
                let bytes = self.below(60 * BLOCK);
                Request::Resize { file, stripes: vec![(stripe, bytes)] }
            }
            9 if bytes.is_multiple_of(2) => Request::FindData { file, stripes: vec![(stripe, offset)] },
            9 => Request::Promote { file, stripe, offset },
            10 => self.of_numbered(file, stripe),
            11 => self.collective(file),
            12 => Request::Scrub { file, disk: stripe, offset, bytes },
            13 => Request::Describe,
            14..=29 => return self.write(BlockWrite::new(file, stripe, offset), bytes),
            39 => self.of_recording(),
            _ => Request::Read { file, stripe, offset, bytes, is_alone: bytes.is_multiple_of(2) },
        };
        (request, Payload::empty())
    }

    /// Returns a request about numbered files, or about the I/O node.
    fn of_numbered(&self, file: FileId, stripe: u32) -> Request {
        let striping = Striping::new(BLOCK, 1 + self.below(2) as u32).expect("a striping");
        let identity = self.disk ^ u64::from(self.below(9) == 0);
        let stripes = StripePlaces { file, striping, places: vec![(stripe, identity)] };
        match self.below(10) {
            8 => Request::Lock { lease: self.below(2), change: Some(self.lock(file)) },
            9 if self.below(2) == 0 => Request::Fence { leases: vec![self.below(4)] },
            9 => Request::Lock { lease: self.below(3), change: None },
            0 => Request::Examine,
            1 if self.below(2) == 0 => Request::MarkDisks { origin: self.below(2), anew: self.below(2) == 0 },
            1 => Request::DescribeDisks,
            2..=4 => Request::Attach { stripes, create: self.below(3) > 0 },
            5 if self.below(4) == 0 => Request::Flush(Flushing::Own),
            5 => Request::Flush(Flushing::Stripes(stripes)),
            6 => Request::Remove { files: vec![file] },
            _ => Request::ListStripes { after: self.other_file() },
        }
    }

    /// Returns a write of `bytes` bytes with random fields, and its data, unless the I/O node fetches them.
    fn write(&self, write: BlockWrite, bytes: u32) -> (Request, Payload) {
        let is_fetched = self.below(5) == 0;
        let fetch = is_fetched.then_some(Fetch { memory: MemoryId::Request(1), offset: 0, bytes });
        let until = if self.below(8) == 0 { WrittenUntil::AtDisk } else { WrittenUntil::Accepted };
        let lease = (self.below(8) == 0).then(|| self.below(3));
        let attach = (self.below(4) == 0).then(|| {
            let striping = Striping::new(BLOCK, 1 + self.below(2) as u32).expect("a striping");
            StripeHome { striping, disk: self.disk ^ u64::from(self.below(9) == 0) }
        });
        let payload = if is_fetched { Payload::empty() } else { Payload::from(vec![3; bytes as usize]) };
        (Request::Write(BlockWrite { fetch, until, lease, attach, ..write }), payload)
    }

    /// Returns a request for a lock by one of a few owners.
    fn lock(&self, file: FileId) -> LockChange {
        let mode = if self.below(2) == 0 { LockMode::Shared } else { LockMode::Exclusive };
        let step = match self.below(3) {
            0 => LockStep::Test(mode),
            1 => LockStep::Set(mode),
            _ => LockStep::Release,
        };
        let range = LockRange { first: self.below(20), last: self.below(40) };
        let (number, owner) = (FileNumber(file.0), self.below(3));
        LockChange { number, owner, range, step, claims: self.below(9) == 0 }
    }

    /// Returns a request of a group that this node is not a member of.
    fn of_group(&self, which: u64) -> Request {
        let (group, number) = (self.number(), self.below(4) as u32);
        match which {
            0 => Request::Gather { group, flush: number, file: self.other_file(), for_room: number > 1 },
            1 => {
                let failure = (number > 2).then(|| fs::Failure::invalid("none"));
                let step = (self.below(2) == 0).then_some(TeamStep::Barrier);
                Request::EnterBarrier {
                    barrier: CollectiveId { group, operation: number },
                    step,
                    contribution: Vec::new(),
                    failure,
                }
            }
            _ => Request::Leave { group },
        }
    }

    fn of_recording(&self) -> Request {
        Request::Record(match self.below(4) {
            0 => RecordingStep::Start,
            1 => RecordingStep::ReadClock,
            2 => RecordingStep::Stop,
            _ => RecordingStep::Fetch,
        })
    }

    fn other_file(&self) -> Option<FileId> {
        (self.below(2) == 0).then(|| FileId(self.number()))
    }

    fn members(&self) -> Vec<u64> {
        let mut members = vec![self.node.node().0];
        if self.below(2) == 0 {
            members.push(self.askers[self.below(ASKERS as u64) as usize]);
        }
        members
    }

    fn direction(&self) -> Direction {
        if self.below(2) == 0 { Direction::Read } else { Direction::Write }
    }

    /// Returns the memory of a private or shared group, or sometimes of none.
    fn collective_memory(&self) -> MemoryId {
        match self.below(20) {
            0 => MemoryId::Request(self.number()),
            _ => MemoryId::Collective(CollectiveId { group: self.number(), operation: self.below(3) as u32 }),
        }
    }

    fn entries(&self) -> Vec<(FileId, Vec<Entry>)> {
        let entry = |_| {
            let bytes = self.below([64, 3 * BLOCK][self.below(2) as usize]);
            Entry { offset: self.offset(), bytes, at: self.offset(), time: self.below(5) }
        };
        let of_file = |_| (FileId(self.number()), (0..self.below(9)).map(entry).collect());
        (0..self.below(3)).map(of_file).collect()
    }

    fn stretches(&self) -> Vec<(FileId, Vec<ListedStretch>)> {
        let stretch = |first: Entry| match self.below(4) {
            0 => ListedStretch::One(first),
            _ => {
                let later = (0..self.below(40)).map(|_| self.below(5) as u32).collect();
                ListedStretch::Run(EntryRun { first, stride: self.below(3 * BLOCK), later })
            }
        };
        let of_file = |(file, entries): (_, Vec<Entry>)| (file, entries.into_iter().map(stretch).collect());
        self.entries().into_iter().map(of_file).collect()
    }

    fn collective(&self, file: FileId) -> Request {
        let members = self.members();
        let record = [16, 64, BLOCK][self.below(3) as usize];
        let problem = Problem::new(BLOCK * (1 + self.below(20)), record, members.len() as u32);
        let pattern = ["rb", "rc", "ra"][self.below(3) as usize].parse::<Pattern>();
        Request::Collective(Box::new(Collective {
            file,
            direction: self.direction(),
            presort: self.below(2) == 0,
            queued: self.below(2) == 0,
            view: pattern.and_then(|pattern| pattern.view(&problem)).expect("a view"),
            memory: MemoryId::Request(1),
            members,
        }))
    }
}
