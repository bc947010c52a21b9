//! What holds when disks fail, when agents are started anew, and when operations meet that are in each other's way.

use layout::{Pattern, Problem, View};
use machine::conformance::Testbed;
use machine::{Machine, Memory};

use super::{BLOCK, Restarting, run};
use crate::{Client, ClientSettings, CollectiveSettings, Group};

/// The view in which each of the nodes has so many blocks in a row.
fn rows_of(blocks: u64, nodes: u32) -> View {
    let problem = Problem::new(blocks * u64::from(nodes) * BLOCK, BLOCK, nodes);
    "rb".parse::<Pattern>().and_then(|rb| rb.view(&problem)).expect("a view")
}

/// A collective operation opens the file again at an I/O node that has been started anew, and asks once more.
pub fn a_collective_operation_opens_its_file_again(testbed: &impl Testbed) {
    run(testbed, 2, |nodes| async move {
        let io_node = Restarting::serve(&nodes[0]);
        let client =
            Client::connect(nodes[1].clone(), vec![nodes[0].node()], ClientSettings::default()).await;
        let file = client.expect("it answers").open("file").await.expect("opened");
        let group = Group::new(1, vec![nodes[1].node()], 0);
        for (restarts, collectives) in [(false, 1), (true, 2)] {
            if restarts {
                io_node.start_anew();
            }
            let memory = Memory::real(vec![1; BLOCK as usize]);
            let settings = CollectiveSettings::disk_directed();
            let written = file.write_collective(&group, &rows_of(1, 1), &memory, settings).await;
            assert_eq!((written, io_node.collectives.get()), (Ok(()), collectives));
        }
    });
}
