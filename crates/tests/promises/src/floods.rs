//! Promises about clients with excessive requests: others are served, and the memory and table entries that a client
//! can take are bounded.

use fs::protocol::{BlockWrite, CollectiveId, LockAnswer, MemoryId, OpenCount, Reply, Request, TeamStep};
use fs::{Failure, FailureKind, FileId, IoNodeSettings, LockRange, TeamMembership};
use layout::Selection;
use machine::conformance::Testbed;
use machine::{Class, Machine, NodeId, Payload};
use namespace::{FileNumber, TreeOperation};

use super::attackers::{alternate_bytes, answer, lock, lock_of, next_reply, selected_write, send};
use super::attacks::settings;
use super::faulty::Faulty;
use super::tasks::{Tasks, rest};
use super::trees::{make, read as read_tree, trees, write as write_tree};
use super::{BLOCK, Base, contents, created, created_with, read, run, start, write};

/// Counts of a file that is open once, for reading.
const ONCE: OpenCount = OpenCount { reading: 1, writing: 0 };

/// Limit in bytes of an I/O node's tasks while a thousand commands wait. If each command had a task, it would take
/// about ten thousand bytes.
const TASKS_BYTES_MAX: usize = 1 << 20;

/// Commands that wait for a disk or for other clients take little more memory of their I/O node than their requests.
pub fn waiting_commands_take_little_memory(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let clients = start(base, &nodes[..2], 1, settings(base)).await;
        let file = created(&clients[0], 1).await;
        write(&file, 0, &contents(4 * BLOCK)).await;
        file.flush().await.expect("flushed");
        nodes[0].faults().hold();
        for tag in 1..=600 {
            let list = || Request::ListStripes { after: None };
            let form = || Request::FormTeam { name: format!("team {}", tag % 50), rank: 0, size: 3 };
            for (attacker, request) in nodes[2..].iter().zip([list(), form()]) {
                send(attacker, nodes[0].node(), Class::Control, tag, request, Payload::empty()).await;
            }
        }
        rest(&nodes[0]).await;
        let bytes = nodes[0].faults().task_bytes.get();
        assert!(bytes < TASKS_BYTES_MAX, "{bytes} bytes of tasks");
        assert!(read(&file, 0, 4 * BLOCK).await == contents(4 * BLOCK));
        nodes[0].faults().release();
        clients[0].list_numbered().await.expect("served");
    });
}

/// Sends an I/O node a member's selection of file 1 in these parts, and writes it.
async fn write_selected(from: &impl Machine, to: NodeId, parts: Vec<Selection>) -> Reply {
    let mut last = Reply::Done;
    for (tag, request) in (1..).zip(selected_write(from.node(), FileId(1), parts)) {
        last = answer(from, to, tag, request).await;
        if matches!(last, Reply::Failed(_)) {
            break;
        }
    }
    last
}

/// Returns the failure that an I/O node answered with.
fn failure(reply: Reply) -> Failure {
    match reply {
        Reply::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

/// A member that selects the same bytes in many parts, which would make each block expensive, is rejected.
pub fn selecting_the_same_bytes_repeatedly_is_rejected(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let settings = IoNodeSettings { block_bytes_max: 1 << 20, ..settings(base) };
        let clients = start(base, &nodes[..2], 1, settings).await;
        let file = created_with(&clients[0], 1, 1 << 20).await;
        write(&file, 0, &contents(BLOCK)).await;
        for (parts, why) in [(4, "selects bytes twice"), (4000, "select fewer ranges")] {
            let parts = vec![alternate_bytes(); parts];
            let refused = failure(write_selected(&nodes[2], nodes[0].node(), parts).await);
            assert!(refused.text.contains(why), "{refused}");
        }
        assert!(read(&file, 0, BLOCK).await == contents(BLOCK));
    });
}

/// Clients can form teams and jobs even if a few other clients form the maximum number.
pub fn no_client_can_take_all_teams_and_jobs(testbed: &impl Testbed, base: Base) {
    run(testbed, 8, move |nodes| async move {
        let clients = start(base, &nodes[..3], 1, settings(base)).await;
        let target = nodes[0].node();
        for attacker in &nodes[4..] {
            for tag in 1..=2200 {
                let name = format!("{} {tag}", attacker.node().0);
                let request = match tag % 2 {
                    0 => Request::FormTeam { name, rank: 0, size: 2 },
                    _ => Request::Join { job: name, member: "one".into(), io_nodes: 1 },
                };
                send(attacker, target, Class::Control, tag, request, Payload::empty()).await;
            }
        }
        rest(&nodes[1]).await;
        let tasks = Tasks::default();
        for (rank, client) in (0..).zip(clients) {
            tasks.begin(&nodes[1 + rank as usize], async move {
                TeamMembership::form(&client, "honest", rank, 2).await.expect("there is room");
            });
        }
        tasks.wait().await;
        let join = Request::Join { job: "honest".into(), member: "one".into(), io_nodes: 1 };
        let joined = answer(&nodes[3], target, 1, join).await;
        assert!(matches!(joined, Reply::Joined { .. }), "{joined:?}");
    });
}

/// File number that no namespace has assigned.
const NO_FILE: FileNumber = FileNumber(1 << 50);

/// Repair requests have no effect on objects in use: disks of a namespace cannot be claimed by another, a file with a
/// name keeps its contents, and a valid lease is not fenced.
pub fn repairs_do_not_change_objects_in_use(testbed: &impl Testbed, base: Base) {
    run(testbed, 6, move |nodes| async move {
        let trees = trees(base, &nodes[..4]).await;
        let tree = &trees[0];
        let file = make(tree, "live", true).await.expect("made");
        write_tree(&file, 0, &[5; 10]).await;
        file.flush().await.expect("flushed");
        let (metadata_server, number) = (tree.metadata_server(), file.number());
        let ask = async |from: usize, request| answer(&nodes[from], metadata_server, 1, request).await;
        let marked = failure(ask(4, Request::MarkDisks { origin: 99, anew: true }).await);
        assert!(marked.text.contains("this I/O node keeps"), "{marked}");
        tree.check_disks().await.expect("they are its own");
        let removed = failure(ask(4, Request::Remove { files: vec![FileId(number.0)] }).await);
        assert!(removed.text.contains("has a name"), "{removed}");
        let unknown = ask(4, Request::Remove { files: vec![FileId(NO_FILE.0)] }).await;
        assert!(matches!(unknown, Reply::Removed { .. }), "{unknown:?}");
        let lease = lock_of(&nodes[5], metadata_server, "live", number).await;
        let fenced = failure(ask(4, Request::Fence { leases: vec![lease] }).await);
        assert!(fenced.text.contains("has not ended"), "{fenced}");
        write_tree(&file, 0, &[6; 10]).await;
        file.flush().await.expect("flushed");
        assert!(read_tree(&file).await == [6; 10]);
    });
}

/// Returns a request for a lock on all of a file under a lease; 0 stands for no lease.
fn lock_whole(lease: u64, number: FileNumber) -> Request {
    lock(lease, number, 1, LockRange::WHOLE)
}

/// A lease is valid for its client only. A client can lock only files that it has open, and can only open existing
/// files.
pub fn a_client_can_lock_only_its_open_files(testbed: &impl Testbed, base: Base) {
    run(testbed, 6, move |nodes| async move {
        let trees = trees(base, &nodes[..4]).await;
        let file = make(&trees[0], "file", true).await.expect("made");
        let (metadata_server, number) = (trees[0].metadata_server(), file.number());
        let elsewhere =
            nodes[..3].iter().map(|node| node.node()).find(|&node| node != metadata_server).expect("one");
        let lease = lock_of(&nodes[4], metadata_server, "file", number).await;
        let ask = async |to, request| answer(&nodes[5], to, 1, request).await;
        let not_open = failure(ask(metadata_server, lock_whole(0, number)).await);
        assert!(not_open.text.contains("is not open"), "{not_open}");
        failure(ask(elsewhere, lock_whole(0, number)).await);
        assert_eq!(
            ask(metadata_server, Request::ReclaimOpenFiles { files: vec![(number, ONCE), (NO_FILE, ONCE)] })
                .await,
            Reply::Done
        );
        failure(ask(metadata_server, lock_whole(0, NO_FILE)).await);
        assert_eq!(
            ask(metadata_server, lock_whole(lease, number)).await,
            Reply::Lock(LockAnswer::Lost),
            "the lease belongs to another client"
        );
        let renewed = ask(metadata_server, Request::Lock { lease, change: None }).await;
        assert_eq!(renewed, Reply::Lock(LockAnswer::Lost), "the lease belongs to another client");
        let own = ask(metadata_server, lock_whole(0, number)).await;
        assert!(matches!(own, Reply::Lock(LockAnswer::Done { .. })), "{own:?}");
    });
}

/// Fences of other clients stay, however many leases a client fences.
pub fn fences_stay_despite_many_fences_of_another_client(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes[..2], 1, settings(base)).await;
        created(&clients[0], 1).await;
        let to = nodes[0].node();
        assert_eq!(answer(&nodes[2], to, 1, Request::Fence { leases: vec![7] }).await, Reply::Done);
        for message in 1..=70 {
            let leases = (0..1000).map(|lease| 1000 * message + lease).collect();
            assert_eq!(answer(&nodes[3], to, message, Request::Fence { leases }).await, Reply::Done);
        }
        let write = Request::Write(BlockWrite { lease: Some(7), ..BlockWrite::new(FileId(1), 0, 0) });
        let data = Payload::from(contents(BLOCK));
        send(&nodes[3], to, Class::Demand, 100, write, data).await;
        let refused = failure(next_reply(&nodes[3], 100).await);
        assert!(refused.kind == FailureKind::Fenced, "{refused}");
    });
}

/// Every answer fits in a message: requests with longer answers are rejected, or return a part.
pub fn no_reply_exceeds_a_message(testbed: &impl Testbed, base: Base) {
    run(testbed, 6, move |nodes| async move {
        let trees = trees(base, &nodes[..4]).await;
        let metadata_server = trees[0].metadata_server();
        let ask = async |from: usize, request| answer(&nodes[from], metadata_server, 1, request).await;
        let pieces = vec![(1, 1); 20_000];
        let refused = failure(ask(4, Request::MemputPieces { memory: MemoryId::Request(1), pieces }).await);
        assert!(refused.text.contains("does not serve") && refused.text.len() < 200, "{refused}");
        for number in 0..300 {
            let name = format!("{number}{}", "x".repeat(240));
            make(&trees[0], &name, true).await.expect("made").close().await.expect("closed");
        }
        let (directory, after) = (FileNumber::ROOT, Vec::new());
        let all = u32::MAX;
        for operation in [
            TreeOperation::List { directory, after: after.clone(), bytes_max: all },
            TreeOperation::Survey { after, bytes_max: all },
            TreeOperation::ListOrphans { after: FileNumber(0), most: all },
        ] {
            let reply = ask(4, Request::Tree { operation: Box::new(operation), hold: None }).await;
            assert!(matches!(reply, Reply::Tree { .. }), "{reply:?}");
        }
    });
}

/// The text of a member's failure that names other members does not grow with each of them.
pub fn the_failure_text_of_a_member_has_a_limited_length(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes[..2], 1, settings(base)).await;
        let to = nodes[0].node();
        clients[0].list_numbered().await.expect("served");
        let form = |rank| Request::FormTeam { name: "team".into(), rank, size: 2 };
        send(&nodes[2], to, Class::Control, 1, form(0), Payload::empty()).await;
        let Reply::TeamFormed { group, .. } = answer(&nodes[3], to, 1, form(1)).await else {
            panic!("formed")
        };
        next_reply(&nodes[2], 1).await;
        let text = nodes[2].node().to_string().repeat(60_000 / 8);
        let text = &text[..text.len().min(60_000)];
        let enter = |text: &str| Request::EnterBarrier {
            barrier: CollectiveId { group, operation: 0 },
            step: Some(TeamStep::Barrier),
            contribution: Vec::new(),
            failure: Some(Failure::invalid(text)),
        };
        send(&nodes[2], to, Class::Control, 2, enter(text), Payload::empty()).await;
        let refused = failure(answer(&nodes[3], to, 2, enter("another")).await);
        assert!(
            refused.text.starts_with("rank 0") && refused.text.len() <= 2048,
            "{} bytes",
            refused.text.len()
        );
    });
}
