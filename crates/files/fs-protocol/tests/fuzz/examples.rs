//! Example frames of all kinds.

use fs_protocol::protocol::{
    BlockWrite, Collective, CollectiveId, Direction, Fetch, Flushing, Frame, HeldLock, Label, ListedStripe,
    LockAnswer, LockChange, LockStep, MemoryId, OpenCount, OpenFor, RecordingStep, Reply, Request, Selected,
    SelectedPart, Selecting, Selectors, StripeHome, StripePlaces, TeamStep, WrittenUntil,
};
use fs_protocol::{Entry, EntryRun, FileId, ListedStretch, LockMode, LockRange};
use layout::{Extent, Pattern, Problem, Selection, Striping};
use namespace::{FileNumber, Location, TreeOperation, TreeRefusal, WrittenContents};

/// Returns encoded frames: most kinds of requests, and the replies with the most fields.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let (file, memory) = (FileId(7), MemoryId::Request(1));
    let barrier = CollectiveId { group: 5, operation: 6 };
    let entry = Entry { offset: 70_000, bytes: 8, at: 300, time: 1 << 60 };
    let run = EntryRun { first: entry, stride: 32, later: vec![50, 1 << 20, 0] };
    let requests = [
        Request::Describe,
        Request::Resize { file, stripes: vec![(0, 8192), (1, 300)] },
        Request::Read { file, stripe: 2, offset: 8192, bytes: 8192, is_alone: true },
        Request::Write(BlockWrite {
            fetch: Some(Fetch { memory, offset: 2, bytes: 3 }),
            until: WrittenUntil::AtDisk,
            lease: Some(1 << 60),
            attach: Some(StripeHome { striping: Striping::new(8192, 4).expect("a striping"), disk: 1 << 60 }),
            ..BlockWrite::new(file, 2, 1)
        }),
        collective("rbb"),
        collective("wc"),
        collective("ra"),
        Request::EnterBarrier { barrier, step: None, contribution: Vec::new(), failure: None },
        Request::MemputPieces { memory: MemoryId::Collective(barrier), pieces: vec![(0, 8), (96, 8)] },
        Request::Stretches {
            memory,
            stretches: vec![(file, vec![ListedStretch::One(entry), ListedStretch::Run(run)])],
        },
        Request::Scrub { file, disk: 1, offset: 4096, bytes: 1 << 20 },
        Request::Record(RecordingStep::Stop),
        Request::Flush(Flushing::Own),
        Request::Gather { group: 1 << 60, flush: 3, file: Some(file), for_room: true },
        Request::Attach { stripes: numbered_stripes(), create: true },
        Request::Remove { files: vec![file, FileId(8)] },
        Request::ListStripes { after: Some(file) },
        Request::Select(Box::new(Selecting { memory, file, parts: 2, part: selected_part() })),
        move_selected(Selectors::Members(vec![1, 2])),
        move_selected(Selectors::Asker(selected_part())),
        Request::FormTeam { name: "a name".to_owned(), rank: 1, size: 2 },
        Request::EnterBarrier {
            barrier,
            step: Some(TeamStep::Barrier),
            contribution: vec![7; 100],
            failure: None,
        },
        Request::Lock { lease: 1 << 60, change: Some(lock()) },
        Request::Fence { leases: vec![1 << 60, 3] },
        Request::CloseFile { number: FileNumber(3), used: OpenFor::Writing, written: None },
        Request::Memput { memory, offset: 300 },
        Request::Memget { memory, offset: 300, bytes: 8192 },
        Request::MemgetPieces { memory, pieces: vec![(0, 8), (96, 8)] },
        Request::Promote { file, stripe: 2, offset: 8192 },
        Request::Examine,
        Request::DescribeDisks,
        Request::MarkDisks { origin: 1 << 60, anew: true },
        Request::Join { job: "a job".to_owned(), member: "one".to_owned(), io_nodes: 1 << 60 },
        Request::FlushTogether { group: 1 << 60, flush: 3, file: None },
        Request::Leave { group: 1 << 60 },
        Request::Tree {
            operation: TreeOperation::Look { at: Location::of_path(b"a/b"), follow: true }.into(),
            hold: Some(OpenFor::Reading),
        },
        Request::FindData { file, stripes: vec![(2, 8192)] },
        Request::Flush(Flushing::Stripes(numbered_stripes())),
        Request::Flush(Flushing::Names),
        Request::Flush(Flushing::Team { stripes: numbered_stripes(), members: vec![3, 4] }),
        move_selected(Selectors::Locked { part: selected_part(), lease: 1 << 60 }),
        Request::Record(RecordingStep::Fetch),
        Request::Lock { lease: 1 << 60, change: None },
        Request::CloseFile {
            number: FileNumber(3),
            used: OpenFor::Writing,
            written: Some(WrittenContents { end: 70_000, stored_stripes: 3, bytes: 300 }),
        },
        Request::ReclaimOpenFiles {
            files: vec![
                (FileNumber(1 << 60), OpenCount { reading: 2, writing: 0 }),
                (FileNumber(3), OpenCount { reading: 0, writing: 1 }),
            ],
        },
    ];
    let label = label();
    let replies = [
        Reply::Done,
        Reply::Described { disks: 2, block_bytes_max: 1 << 20, features: 3 },
        Reply::Scrubbed { label, bytes: 77, damage: Vec::new(), why: Some("why".into()) },
        Reply::Recorded { zero_unix_ns: 1 << 60, bytes: 3 },
        Reply::RecordedPart { bytes: vec![1, 2, 3] },
        Reply::DisksDescribed { identities: vec![Some(1 << 60), None] },
        Reply::Attached { stripes: vec![(2, 70_000)] },
        Reply::Removed { disks: vec![7, 1 << 60], failure: None },
        Reply::StripesListed {
            stripes: vec![ListedStripe { file, disk: 1, stripe: Some((2, 70_000)) }],
            more: true,
            failure: Some(fs_protocol::Failure::new(fs_protocol::FailureKind::Io, "a disk is gone")),
        },
        Reply::TeamFormed { group: 1 << 60, members: vec![1, 1 << 60] },
        Reply::BarrierDone { members: vec![1, 1 << 60], contributions: vec![2, 1, 0, 2, 7, 7] },
        Reply::Failed(fs_protocol::Failure::new(fs_protocol::FailureKind::NoSpace, "the disk is full")),
        Reply::Accepted { run: 1 << 60 },
        Reply::Moved { blocks: vec![3, 300], hidden: 70_000 },
        Reply::Joined { group: 1 << 60, flushes: 3 },
        Reply::Flushing { flush: 3 },
        Reply::RecordingClock { unix_ns: 1 << 60 },
        Reply::Refused(TreeRefusal::NotFound),
        Reply::DataFound { data: vec![(2, 8192, 70_000)] },
        Reply::Lock(LockAnswer::DoneAfter { lease: 1 << 60, ended: vec![3, 1 << 50] }),
        Reply::Lock(LockAnswer::Held { lease: 1 << 60, lock: held_lock() }),
    ];
    let requests = requests.into_iter().map(|request| Frame::Request(300, request));
    requests
        .chain(replies.into_iter().map(|reply| Frame::Reply(300, reply)))
        .map(|frame| frame.encode())
        .collect()
}

fn lock() -> LockChange {
    LockChange {
        number: FileNumber(1 << 50),
        owner: 1 << 61,
        range: LockRange { first: 70_000, last: u64::MAX },
        step: LockStep::Set(LockMode::Exclusive),
        claims: true,
    }
}

fn held_lock() -> HeldLock {
    HeldLock { owner: Some(7), range: LockRange::WHOLE, mode: LockMode::Shared }
}

fn numbered_stripes() -> StripePlaces {
    let striping = Striping::new(8192, 4).expect("a striping");
    StripePlaces { file: FileId(1 << 50), striping, places: vec![(0, 1 << 60), (3, 7)] }
}

fn selected_part() -> SelectedPart {
    let selection = Selection::vector(Extent::new(70_000, 8), 1 << 30, 32).expect("a vector");
    SelectedPart { at: 300, selection, stripes: vec![0, 3] }
}

fn move_selected(selectors: Selectors) -> Request {
    Request::MoveSelected(Box::new(Selected {
        file: FileId(7),
        direction: Direction::Write,
        presort: true,
        queued: false,
        to_media: true,
        memory: MemoryId::Request(1),
        selectors,
    }))
}

/// Returns the label of a stripe.
pub(crate) fn label() -> Label {
    let striping = Striping::new(8192, 4).expect("a striping");
    Label {
        file: FileId(0x0123_4567_89ab_cdef),
        striping,
        stripe: 3,
        begun: 1 << 60,
        replaces: Some(FileId(9)),
    }
}

fn collective(pattern: &str) -> Request {
    let problem = Problem::new(64 * 1024, 64, 4);
    let view = pattern.parse::<Pattern>().and_then(|pattern| pattern.view(&problem)).expect("a view");
    Request::Collective(Box::new(Collective {
        file: FileId(7),
        direction: Direction::Read,
        presort: true,
        queued: false,
        view,
        memory: MemoryId::Request(1),
        members: vec![1, 2, 3, 4],
    }))
}
