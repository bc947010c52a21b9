//! Promises about selections of files, independent or collective, and about teams.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use fs::{
    Client, CollectiveMethod, Configuration, Error, FailureKind, File, FileId, Group, NumberedFile,
    Participants, SelectedSettings, TeamMembership, TeamStep, Threads,
};
use layout::{Extent, Selection, Striping};
use machine::conformance::Testbed;
use machine::{Duration, KeptEvent, KeptNote, Machine, Memory, Net, NoteRing};

use super::faulty::Faulty;
use super::tasks::{Tasks, until};
use super::{
    BLOCK, Base, Draw, Restarting, bytes_of, contents, created, opened, read, refresh, run, small, start,
    write,
};

/// Settings: disk-directed with sorted blocks; writes complete when the data are on the disks.
const TO_DISKS: SelectedSettings = SelectedSettings {
    method: CollectiveMethod::DiskDirected { presort: true },
    queued: true,
    to_media: false,
};

/// Number of members.
const MEMBERS: u32 = 3;

/// Maximum length in bytes of the files in these tests.
const BYTES: u64 = 24 * BLOCK;

/// The way in which members take part in an operation: alone, in a group, or in a team.
#[derive(Clone, Copy)]
enum With {
    Nobody,
    Group,
    Team,
}

/// Selection of a member, and its bytes.
#[derive(Clone)]
struct Part {
    selection: Selection,
    bytes: Vec<u8>,
}

impl Part {
    fn draw(draw: &mut Draw) -> Self {
        let within = Extent::new(draw.below(BYTES / 2), draw.below(BYTES));
        let selection = draw_selection(draw, 3).within(within).expect("a part of one");
        let salt = draw.below(256) as u8;
        let bytes = contents(selection.bytes()).into_iter().map(|byte| byte ^ salt).collect();
        Part { selection, bytes }
    }

    /// Returns the position of each selected byte in the file and in memory.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        self.selection.chunks().flat_map(|chunk| {
            (0..chunk.bytes as usize)
                .map(move |at| (chunk.file_offset as usize + at, chunk.memory_offset as usize + at))
        })
    }
}

/// Draws a selection of any shape: distant records, rows of records, lists, or a little more than a block.
fn draw_selection(draw: &mut Draw, depth: u32) -> Selection {
    if depth == 0 || draw.below(4) == 0 {
        let longest = [1, 8, 40, BLOCK, 3 * BLOCK][draw.below(5) as usize];
        let run = Extent::new(draw.below(40), draw.below(longest + 1));
        return Selection::contiguous(run).expect("a short one");
    }
    let of = draw_selection(draw, depth - 1);
    let stride = of.span().bytes + [0, 1, 24, BLOCK][draw.below(4) as usize];
    let made = match draw.below(3) {
        0 => of.repeated(1 + draw.below(200), stride),
        1 => {
            let other = draw_selection(draw, depth - 1);
            Selection::joined(&[(0, of.clone()), (of.end() + draw.below(300), other)])
        }
        _ => of.slice(draw.below(100), draw.below(4 * BLOCK)),
    };
    made.expect("they do not overlap")
}

/// Writes or reads each member's part, in the given way; returns the memories afterwards.
async fn move_parts<M: Machine>(
    files: &[File<M>],
    clients: &[Client<M>],
    nodes: &[M],
    with: (With, u64),
    parts: &[Part],
    is_write: bool,
    settings: SelectedSettings,
) -> Vec<Vec<u8>> {
    let members: Vec<_> = nodes.iter().map(|node| node.node()).collect();
    let (tasks, done) = (Tasks::default(), Rc::new(RefCell::new(vec![Vec::new(); nodes.len()])));
    for (rank, (client, part)) in clients.iter().zip(parts).enumerate() {
        let (file, client, part, members) =
            (files[rank].clone(), client.clone(), part.clone(), members.clone());
        let done = done.clone();
        tasks.begin(&nodes[rank], async move {
            let bytes = if is_write { part.bytes } else { vec![0; part.bytes.len()] };
            let memory = Memory::real(bytes);
            let step =
                if is_write { TeamStep::write(settings.method) } else { TeamStep::read(settings.method) };
            let moving = async |company: Participants<'_, M>| {
                let moved = match is_write {
                    true => file.write_selected(company, &part.selection, &memory, settings).await,
                    false => file.read_selected(company, &part.selection, &memory, settings).await,
                };
                moved.expect("all members are there");
            };
            match with.0 {
                With::Nobody => moving(Participants::Alone).await,
                With::Group => moving(Participants::Group(&Group::new(with.1, members, rank))).await,
                With::Team => {
                    let team =
                        TeamMembership::form(&client, "a team", rank as u32, MEMBERS).await.expect("formed");
                    let values = team
                        .turn(team.next_turn(), TeamStep::Barrier)
                        .await
                        .gather(Ok(with.1 + rank as u64))
                        .await;
                    assert_eq!(values, Ok((0..u64::from(MEMBERS)).map(|rank| with.1 + rank).collect()));
                    moving(Participants::Team(&team.turn(team.next_turn(), step).await)).await;
                    team.leave().await.expect("left");
                }
            }
            if is_write {
                file.flush().await.expect("flushed");
            }
            done.borrow_mut()[rank] = bytes_of(memory);
        });
    }
    tasks.wait().await;
    done.take()
}

/// After members have written their selections of a file, each selected byte has the value of one of the members that
/// selected it, and all other bytes are unchanged. The members write at the same time: independently, as a group, or as
/// a team. Reads return the contents of the file.
pub fn selections_agree_with_files_in_memory(testbed: &impl Testbed, base: Base) {
    let directed = |presort| CollectiveMethod::DiskDirected { presort };
    for (seed, with, queued, method, to_media) in [
        (1, With::Group, false, directed(true), true),
        (2, With::Team, true, directed(true), false),
        (3, With::Nobody, true, directed(false), false),
        (4, With::Team, false, directed(false), true),
        (5, With::Group, false, CollectiveMethod::TwoPhase, true),
        (6, With::Group, true, CollectiveMethod::TwoPhase, false),
        (7, With::Team, true, CollectiveMethod::TwoPhase, true),
        (8, With::Team, false, CollectiveMethod::TwoPhase, false),
    ] {
        let settings = SelectedSettings { method, queued, to_media };
        run(testbed, 2 + MEMBERS as usize, move |nodes| async move {
            selected_operations(&nodes, base, seed, with, settings).await;
        });
    }
}

/// Random selections with all settings drawn from a seed.
pub fn selections_of_a_seed(testbed: &impl Testbed, seed: u64) {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let configuration = Configuration::ALL[draw.below(Configuration::ALL.len() as u64) as usize];
    let with = [With::Nobody, With::Group, With::Team][draw.below(3) as usize];
    let mut is_so = || draw.below(2) == 0;
    let method = match with {
        With::Group | With::Team if is_so() => CollectiveMethod::TwoPhase,
        _ => CollectiveMethod::DiskDirected { presort: is_so() },
    };
    let settings = SelectedSettings { method, queued: is_so(), to_media: is_so() };
    run(testbed, 2 + MEMBERS as usize, move |nodes| async move {
        selected_operations(&nodes, configuration.into(), seed, with, settings).await;
    });
}

async fn selected_operations<M: Machine>(
    nodes: &[M],
    base: Base,
    seed: u64,
    with: With,
    settings: SelectedSettings,
) {
    let clients = start(base, nodes, 2, small(base, Threads::Pool(4))).await;
    let mut draw = Draw(seed);
    let mut expected = contents(draw.below(BYTES));
    let first = created(&clients[0], 1).await;
    write(&first, 0, &expected).await;
    first.flush().await.expect("flushed");
    let mut files = Vec::new();
    for client in &clients {
        files.push(opened(client, 1).await);
    }
    for round in 1..4 {
        let parts: Vec<Part> = (0..MEMBERS).map(|_| Part::draw(&mut draw)).collect();
        // Some of the earlier contents are still in caches.
        let (offset, fresh) = (draw.below(BYTES / 2), contents(1 + draw.below(2 * BLOCK)));
        write(&first, offset, &fresh).await;
        let ends = parts.iter().map(|part| part.selection.end()).chain([offset + fresh.len() as u64]);
        let end = ends.max().unwrap_or(0).max(expected.len() as u64) as usize;
        expected.resize(end, 0);
        expected[offset as usize..offset as usize + fresh.len()].copy_from_slice(&fresh);
        move_parts(&files, &clients, &nodes[2..], (with, 10 * round), &parts, true, settings).await;
        first.flush().await.expect("flushed");
        refresh(&clients[0], &first).await;
        let now = read(&first, 0, 4 * BYTES).await;
        assert_eq!(now.len(), end, "the length in round {round} of seed {seed}");
        let mut choices: Vec<Vec<u8>> = expected.iter().map(|_| Vec::new()).collect();
        for part in &parts {
            part.places().for_each(|(file, memory)| choices[file].push(part.bytes[memory]));
        }
        for (at, (choices, byte)) in choices.iter().zip(&now).enumerate() {
            let is_right = if choices.is_empty() { *byte == expected[at] } else { choices.contains(byte) };
            assert!(is_right, "byte {at} in round {round} of seed {seed}");
        }
        expected = now;
        let parts: Vec<Part> = (0..MEMBERS).map(|_| Part::draw(&mut draw)).collect();
        let memories =
            move_parts(&files, &clients, &nodes[2..], (with, 10 * round + 5), &parts, false, settings);
        for (part, memory) in parts.iter().zip(memories.await) {
            let there = |(file, at): (usize, usize)| expected.get(file).copied().unwrap_or(0) == memory[at];
            assert!(part.places().all(there), "round {round} of seed {seed}");
        }
    }
}

/// Small parts of blocks are sent together, in both directions. Reads take about one message per block, for any number
/// of members that share the block. Writes take at most half as many messages as parts; the last blocks are requested
/// one by one.
pub fn small_parts_of_blocks_are_sent_together(testbed: &impl Testbed, base: Base) {
    const BLOCKS: u64 = 96;
    for members in [2, 8] {
        run(testbed, 1 + members, move |nodes| async move {
            let clients = start(base, &nodes, 1, small(base, Threads::Pool(4))).await;
            created(&clients[0], 1).await;
            let mut files = Vec::new();
            for client in &clients {
                files.push(opened(client, 1).await);
            }
            let record = BLOCK / members as u64;
            let part = |rank: u64| {
                let first = Extent::new(rank * record, record);
                let selection = Selection::vector(first, BLOCKS, BLOCK).expect("a vector");
                let bytes = contents(selection.bytes()).into_iter().map(|byte| byte ^ rank as u8).collect();
                Part { selection, bytes }
            };
            let parts: Vec<Part> = (0..members as u64).map(part).collect();
            for (operation, is_write) in [("serve: memget", true), ("serve: memput", false)] {
                let noted: Vec<_> = nodes[1..].iter().map(noted_from_now).collect();
                let with = (With::Group, 10 + u64::from(is_write));
                let moved = move_parts(&files, &clients, &nodes[1..], with, &parts, is_write, TO_DISKS).await;
                nodes[1..].iter().for_each(|node| node.notes().stop());
                assert!(is_write || moved.iter().zip(&parts).all(|(bytes, part)| *bytes == part.bytes));
                let messages = noted.iter().map(|ring| begun(&ring.borrow(), operation)).sum::<usize>();
                let parts_of_blocks = BLOCKS * members as u64;
                let most = if is_write { parts_of_blocks / 2 } else { BLOCKS + BLOCKS / 4 };
                assert!(messages as u64 <= most, "{messages} times {operation}");
            }
        });
    }
}

/// Blocks of a collective write reach their disk in the order of their positions, even if the data of later blocks
/// arrive first. Every second block is whole, and the others have small parts of two members.
pub fn a_collective_write_reaches_the_disk_in_order(testbed: &impl Testbed, base: Base) {
    const PAIRS: u64 = 12;
    const RECORD: u64 = 8;
    let small_parts = |rank: u64| {
        let first = Extent::new(rank * RECORD, RECORD);
        Selection::vector(first, BLOCK / (2 * RECORD), 2 * RECORD).expect("half of a block")
    };
    let parts = move |rank: u64| {
        let whole = Selection::contiguous(Extent::new(0, BLOCK)).expect("a block");
        let pairs = (0..PAIRS).map(|pair| pair * 2 * BLOCK);
        let joined: Vec<_> = match rank {
            0 => pairs.map(|at| (at, small_parts(rank))).collect(),
            _ => pairs.flat_map(|at| [(at, small_parts(rank)), (at + BLOCK, whole.clone())]).collect(),
        };
        let selection = Selection::joined(&joined).expect("they do not overlap");
        Part { bytes: contents(selection.bytes()), selection }
    };
    run(testbed, 3, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let clients = start(base, &nodes, 1, small(base, Threads::Pool(4))).await;
        created(&clients[0], 1).await;
        let mut files = Vec::new();
        for client in &clients {
            files.push(opened(client, 1).await);
        }
        let parts = [parts(0), parts(1)];
        for (operation, queued) in [(10, false), (11, true)] {
            let settings = SelectedSettings { queued, ..TO_DISKS };
            nodes[0].faults().written_at.take();
            move_parts(&files, &clients, &nodes[1..], (With::Group, operation), &parts, true, settings).await;
            let written_at = nodes[0].faults().written_at.take();
            assert_eq!(written_at.len() as u64, 2 * PAIRS);
            assert!(written_at.is_sorted(), "{written_at:?}");
        }
    });
}

/// Records the activities of a node from now on.
pub(super) fn noted_from_now(node: &impl Machine) -> Rc<RefCell<NoteRing>> {
    let ring = Rc::new(RefCell::new(NoteRing::new(100_000)));
    node.notes().record(ring.clone());
    ring
}

/// Returns the number of begins of spans of this name.
pub(super) fn begun(ring: &NoteRing, name: &str) -> usize {
    let is_so = |note: &&KeptNote| matches!(note.what, KeptEvent::Begin { name: noted, .. } if noted == name);
    ring.notes().filter(is_so).count()
}

/// Concurrent independent writes of parts of new blocks never replace another's data by zeros.
pub fn concurrent_writes_of_parts_of_new_blocks_all_stay(testbed: &impl Testbed, base: Base) {
    run(testbed, 2 + MEMBERS as usize, move |nodes| async move {
        const RECORD: u64 = 40;
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let first = created(&clients[0], 1).await;
        let mut files = Vec::new();
        for client in &clients {
            files.push(opened(client, 1).await);
        }
        let (cycle, expected) = (RECORD * u64::from(MEMBERS), contents(BYTES / 120 * 120));
        let part = |rank: u64| {
            let record = Extent::new(rank * RECORD, RECORD);
            let selection = Selection::vector(record, BYTES / cycle, cycle).expect("a vector");
            let runs = selection.chunks().map(|chunk| chunk.file_offset as usize..);
            let bytes = runs.flat_map(|run| expected[run.start..][..RECORD as usize].to_vec()).collect();
            Part { selection, bytes }
        };
        let parts: Vec<Part> = (0..u64::from(MEMBERS)).map(part).collect();
        move_parts(&files, &clients, &nodes[2..], (With::Nobody, 0), &parts, true, TO_DISKS).await;
        refresh(&clients[0], &first).await;
        assert!(read(&first, 0, 2 * BYTES).await == expected, "written data are lost");
    });
}

/// A delayed write beyond the end of a file does not truncate data that another client has written at a higher offset.
pub fn concurrent_writes_beyond_the_end_all_stay(testbed: &impl Testbed, base: Base) {
    run(testbed, 3, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let clients = start(base, &nodes, 1, small(base, Threads::Pool(4))).await;
        let (first, tasks) = (created(&clients[0], 1).await, Tasks::default());
        let expected = contents(400);
        nodes[0].faults().hold_resize();
        for (node, extent) in [(1, Extent::new(0, 40)), (2, Extent::new(40, 360))] {
            let file = opened(&clients[node - 1], 1).await;
            let memory = Memory::real(expected[extent.offset as usize..extent.end() as usize].to_vec());
            let (selection, settings) = (Selection::contiguous(extent).expect("an extent"), TO_DISKS);
            tasks.begin(&nodes[node], async move {
                file.write_selected(Participants::Alone, &selection, &memory, settings)
                    .await
                    .expect("written");
                file.flush().await.expect("flushed");
            });
            // The second write begins while the first is blocked, and may progress or complete.
            until(&nodes[0], || nodes[0].faults().has_held_resize()).await;
            nodes[0].sleep_until(nodes[0].now() + Duration::from_millis(30)).await;
        }
        nodes[0].faults().release();
        tasks.wait().await;
        refresh(&clients[0], &first).await;
        assert!(read(&first, 0, BLOCK).await == expected, "written data are truncated");
    });
}

/// Writing a selection of a numbered file creates the stripes that it touches, and no others. Reading finds data in
/// stripes created later, and zeros in missing stripes.
pub fn a_selection_creates_only_the_stripes_it_touches(testbed: &impl Testbed, base: Base) {
    run(testbed, 5, move |nodes| async move {
        let clients = start(base, &nodes, 3, small(base, Threads::Pool(4))).await;
        let striping = Striping::new(BLOCK, 3).expect("a striping");
        let disks = clients[0].disks_by_identity().await.expect("told");
        let disks = disks.keys().copied().take(3).collect();
        let file = NumberedFile { number: FileId(1 << 50), striping, disks, bytes: 0, stored_stripes: 0 };
        let writer = clients[0].numbered(file.clone()).await.expect("opened");
        let reader = clients[1].numbered(file.clone()).await.expect("opened");
        let settings = TO_DISKS;
        let all = Selection::vector(Extent::new(3, 5), 40, BLOCK / 2).expect("a vector");
        let (mut expected, mut touched) = (vec![0; all.bytes() as usize], BTreeSet::new());
        for part in [all.slice(0, 10), all.slice(20, 7), all.slice(100, 100)] {
            let part = part.expect("a part");
            let bytes = contents(part.bytes());
            let memory = Memory::real(bytes.clone());
            writer.write_selected(Participants::Alone, &part, &memory, settings).await.expect("written");
            let at = all.bytes_before(part.span().offset) as usize;
            expected[at..at + bytes.len()].copy_from_slice(&bytes);
            let memory = Memory::real(vec![0; expected.len()]);
            reader.read_selected(Participants::Alone, &all, &memory, settings).await.expect("read");
            assert!(bytes_of(memory) == expected);
            touched.extend(part.chunks().map(|chunk| striping.place_of(chunk.file_offset).stripe));
            let stripes = clients[1].numbered_stripes(&file).await.expect("told");
            assert_eq!(stripes.keys().copied().collect::<BTreeSet<_>>(), touched);
        }
        assert_eq!(touched.len(), 3, "the last part touches the remaining stripe");
        writer.flush().await.expect("flushed");
    });
}

/// Members of a team are notified at once of the loss or failure of a member; no other node can act as a member.
pub fn a_failure_of_one_member_fails_the_team(testbed: &impl Testbed, base: Base) {
    run(testbed, 2 + MEMBERS as usize, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 1).await;
        write(&file, 0, &contents(9 * BLOCK)).await;
        file.flush().await.expect("flushed");
        let (tasks, failures) = (Tasks::default(), Rc::new(RefCell::new(Vec::new())));
        for (rank, client) in (0..MEMBERS).zip(&clients) {
            let (client, failures, node) =
                (client.clone(), failures.clone(), nodes[2 + rank as usize].clone());
            tasks.begin(&nodes[2 + rank as usize], async move {
                let file = opened(&client, 1).await;
                let team = TeamMembership::form(&client, "all", rank, MEMBERS).await.expect("formed");
                let all = Selection::contiguous(Extent::new(0, 9 * BLOCK)).expect("an extent");
                let settings = SelectedSettings {
                    method: CollectiveMethod::DiskDirected { presort: true },
                    queued: false,
                    to_media: true,
                };
                // One member has too little memory.
                for short in [u64::from(rank == 1), 0] {
                    let memory = Memory::real(vec![0; (9 * BLOCK - short) as usize]);
                    let turn = team.turn(team.next_turn(), TeamStep::read(settings.method)).await;
                    let read = file.read_selected(Participants::Team(&turn), &all, &memory, settings).await;
                    match (short, rank) {
                        (0, 1) => assert!(read.is_ok() && bytes_of(memory) == contents(9 * BLOCK)),
                        (1, 1) => assert!(read.is_err_and(|error| error.to_string().contains("a memory of"))),
                        _ => failures.borrow_mut().push(read.is_err()),
                    }
                }
                if rank == 2 {
                    node.net().close();
                    return;
                }
                for _ in 0..2 {
                    let memory = Memory::real(contents(9 * BLOCK));
                    let turn = team.turn(team.next_turn(), TeamStep::write(settings.method)).await;
                    let written =
                        file.write_selected(Participants::Team(&turn), &all, &memory, settings).await;
                    let error = written.expect_err("a member is disconnected");
                    assert!(error.is_remote(FailureKind::NoTeam), "{error}");
                    assert!(error.to_string().contains("rank 2 of the team all disconnected"), "{error}");
                }
            });
        }
        tasks.wait().await;
        let mut failures = failures.take();
        failures.sort_unstable();
        assert_eq!(failures, [false, false, true, true], "all members fail, and then none");
    });
}

/// The selections of a failed operation are dropped, even if its team makes no further calls: another team can use the
/// full limit of selections.
pub fn selections_of_a_failed_operation_are_forgotten(testbed: &impl Testbed, base: Base) {
    run(testbed, 4, move |nodes| async move {
        let clients = start(base, &nodes, 2, small(base, Threads::Pool(4))).await;
        let file = created(&clients[0], 1).await;
        file.flush().await.expect("flushed");
        let tasks = Tasks::default();
        for (rank, client) in (0..2).zip(&clients) {
            let client = client.clone();
            tasks.begin(&nodes[2 + rank as usize], async move {
                let file = opened(&client, 1).await;
                // More than half of the limit of one client's selections, behind the end of the file.
                let extents = (0..300_000 * u64::from(rank == 0))
                    .scan(0, |end, number| {
                        let extent = Extent::new(*end + 1 + number * 7919 % 97, 1 + number % 2);
                        *end = extent.end();
                        Some(extent)
                    })
                    .collect::<Vec<_>>();
                let selection = Selection::list(&extents).expect("in order");
                for (name, is_short) in [("one", true), ("other", false)] {
                    let team = TeamMembership::form(&client, name, rank, 2).await.expect("formed");
                    let turn = team.turn(team.next_turn(), TeamStep::read(TO_DISKS.method)).await;
                    let (own, short) = match (rank, is_short) {
                        (1, true) => (Selection::contiguous(Extent::new(0, 9)).expect("an extent"), 1),
                        _ => (selection.clone(), 0),
                    };
                    let memory = Memory::real(vec![0; (own.bytes() - short) as usize]);
                    let read = file.read_selected(Participants::Team(&turn), &own, &memory, TO_DISKS).await;
                    assert_eq!(read.is_err(), is_short, "{read:?}");
                }
            });
        }
        tasks.wait().await;
    });
}

/// If an I/O node has restarted, selections are sent again and the request is retried. The next flush reports data that
/// it accepted and lost.
pub fn selections_are_sent_again_to_a_new_incarnation(testbed: &impl Testbed, base: Base) {
    run(testbed, 2, move |nodes| async move {
        let io_node = Restarting::serve(&nodes[0]);
        let client = Client::connect(nodes[1].clone(), vec![nodes[0].node()], base.client()).await;
        let file = opened(&client.expect("it answers"), 1).await;
        let group = Group::new(1, vec![nodes[1].node()], 0);
        let selection = Selection::vector(Extent::new(5, 8), 9, 20).expect("a vector");
        let memory = Memory::real(vec![1; selection.bytes() as usize]);
        let settings = TO_DISKS;
        let (mut collectives, lost) = (0, nodes[0].node());
        for company in [Participants::Group(&group), Participants::Alone] {
            for (restarts, flushed) in [(0, Ok(())), (1, Ok(())), (2, Err(lost))] {
                if restarts > 0 {
                    io_node.restart();
                }
                let written = file.write_selected(company, &selection, &memory, settings).await;
                collectives += 1;
                assert_eq!((written.map(drop), io_node.collectives.get()), (Ok(()), collectives));
                if restarts > 1 {
                    io_node.restart();
                }
                let flush = file.flush().await.map_err(|error| match *error {
                    Error::WriteLost { node, .. } => node,
                    other => panic!("{other}"),
                });
                assert_eq!(flush, flushed);
            }
        }
    });
}
