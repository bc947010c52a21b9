//! Promises about collective syncs of a team's writes.

use fs::{CollectiveMethod, OpenTreeFile, SelectedSettings, TeamMembership, TeamStep};
use layout::{Extent, Selection};
use machine::conformance::Testbed;
use machine::{Machine, Memory};

use super::faulty::Faulty;
use super::tasks::Tasks;
use super::trees::{make, open, read, trees, write};
use super::{BLOCK, Base, run};

/// Number of members.
const MEMBERS: u32 = 3;

/// Writes a record of each stripe collectively with the others, and one byte independently.
async fn write_some<M: Machine>(team: &TeamMembership<M>, file: &OpenTreeFile<M>, value: u8) {
    let rank = u64::from(team.rank());
    write(file, 100 + rank, &[value]).await;
    let own = Selection::vector(Extent::new(10 * rank, 10), 3, BLOCK).expect("a vector");
    let memory = Memory::real(vec![value; own.bytes() as usize]);
    let method = CollectiveMethod::DiskDirected { presort: true };
    let settings = SelectedSettings { method, queued: true, to_media: false };
    let turn = team.turn(team.next_turn(), TeamStep::write(method)).await;
    file.write_selected(Some(&turn), &own, &memory, settings).await.expect("written");
}

/// After a collective sync all writes of the team's members are on stable storage: each stripe was flushed once, and no
/// member has to flush it again. If the flush fails, all members get the error, and the data remain unflushed.
pub fn a_collective_sync_persists_the_writes_of_all_members(testbed: &impl Testbed, base: Base) {
    run(testbed, 3 + MEMBERS as usize, move |nodes| async move {
        let nodes = Faulty::all(nodes);
        let (trees, tasks) = (trees(base, &nodes).await, Tasks::default());
        make(&trees[0], "shared", true).await.expect("made").close().await.expect("closed");
        for (rank, tree) in (0..MEMBERS).zip(trees.iter().cloned()) {
            let io_nodes = nodes[..3].to_vec();
            tasks.begin(&nodes[3 + rank as usize], async move {
                let flushes = || io_nodes.iter().map(|node| node.faults().flushes.get()).sum::<u32>();
                let file = open(&tree, "shared").await.expect("opened");
                let client = tree.cache().client();
                let team = TeamMembership::form(client, "writers", rank, MEMBERS).await.expect("formed");
                let barrier = async || {
                    let turn = team.turn(team.next_turn(), TeamStep::Barrier).await;
                    turn.gather(Ok(0)).await.expect("all are there");
                };
                let sync = async || {
                    let turn = team.turn(team.next_turn(), TeamStep::Sync).await;
                    file.sync_together(&turn).await
                };
                for round in 1..4 {
                    let before = flushes();
                    barrier().await;
                    write_some(&team, &file, round).await;
                    assert_eq!(sync().await, Ok(()));
                    barrier().await;
                    assert_eq!(flushes() - before, 3, "one of each stripe");
                    barrier().await;
                    assert_eq!((file.sync().await, sync().await), (Ok(()), Ok(())));
                    barrier().await;
                    assert_eq!(flushes() - before, 3, "all data are persistent");
                    let there = read(&file).await;
                    assert!(there[..30] == [round; 30] && there[100..103] == [round; 3], "at rank {rank}");
                    barrier().await;
                    if rank == 0 {
                        io_nodes.iter().for_each(|node| node.faults().failing_flushes.set(1));
                    }
                    write_some(&team, &file, round + 10).await;
                    let error = sync().await.expect_err("the flush fails").to_string();
                    assert!(error.contains("flushing"), "{error}");
                    assert_eq!(sync().await, Ok(()));
                }
                file.close().await.expect("closed");
            });
        }
        tasks.wait().await;
    });
}

/// In collective transfers and syncs only the first member of a team reports to the metadata server and queries it, and
/// forwards the answer to the other members.
pub fn one_member_queries_the_metadata_server_for_all(testbed: &impl Testbed, base: Base) {
    run(testbed, 3 + MEMBERS as usize, move |nodes| async move {
        let (trees, tasks) = (trees(base, &nodes).await, Tasks::default());
        make(&trees[0], "shared", true).await.expect("made").close().await.expect("closed");
        for (rank, tree) in (0..MEMBERS).zip(trees.iter().cloned()) {
            tasks.begin(&nodes[3 + rank as usize], async move {
                let file = open(&tree, "shared").await.expect("opened");
                let client = tree.cache().client();
                let team = TeamMembership::form(client, "writers", rank, MEMBERS).await.expect("formed");
                let asked = || {
                    let asked = client.counts().asked;
                    asked
                        .iter()
                        .filter(|asked| asked.operation == "names")
                        .map(|asked| asked.times.count())
                        .sum::<u64>()
                };
                for (round, method) in
                    (1..).zip([CollectiveMethod::DiskDirected { presort: true }, CollectiveMethod::TwoPhase])
                {
                    let own = Extent::new(u64::from(rank) * BLOCK, BLOCK);
                    let own = Selection::contiguous(own).expect("within a file");
                    let memory = Memory::real(vec![round; BLOCK as usize]);
                    let settings = SelectedSettings { method, queued: true, to_media: false };
                    let before = asked();
                    let turn = team.turn(team.next_turn(), TeamStep::write(method)).await;
                    file.write_selected(Some(&turn), &own, &memory, settings).await.expect("written");
                    drop(turn);
                    let known = (file.known().size, file.paged().bytes());
                    assert_eq!(
                        known,
                        (u64::from(MEMBERS) * BLOCK, u64::from(MEMBERS) * BLOCK),
                        "at rank {rank}"
                    );
                    let turn = team.turn(team.next_turn(), TeamStep::Sync).await;
                    file.sync_together(&turn).await.expect("synced");
                    drop(turn);
                    let turn = team.turn(team.next_turn(), TeamStep::read(method)).await;
                    let found = file.read_selected(Some(&turn), &own, &memory, settings).await;
                    assert_eq!(found, Ok(BLOCK), "at rank {rank}");
                    assert_eq!(
                        asked() - before,
                        if rank == 0 { 3 } else { 0 },
                        "at rank {rank} by {method:?}"
                    );
                }
                file.close().await.expect("closed");
            });
        }
        tasks.wait().await;
    });
}
