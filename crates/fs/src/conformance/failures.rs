//! What holds when disks fail, when agents are started anew, and when operations meet that are in each other's way.

use layout::{Pattern, Problem, Striping, View};
use machine::conformance::Testbed;
use machine::{Disk, Machine, Memory};

use super::{BLOCK, Restarting, run, small, start};
use crate::protocol::Label;
use crate::{
    Client, ClientSettings, CollectiveSettings, FailureKind, FileId, Group, IoNodeSettings, Scheduling,
    Threads,
};

fn settings() -> IoNodeSettings {
    small(Scheduling::CyclicScan, Threads::Pool(4))
}

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

/// A file whose blocks are larger than an I/O node takes, which was set up otherwise when it was made, is refused
/// there, with what to do. It can be removed.
pub fn a_file_with_larger_blocks_than_an_io_node_takes_is_refused(testbed: &impl Testbed) {
    run(testbed, 2, |nodes| async move {
        let client = &start(&nodes, 1, settings()).await[0];
        let striping = Striping::new(8192, 1).expect("a striping");
        let label = Label { file: FileId(1), striping, stripe: 0 };
        let disk = &nodes[0].disks()[0];
        disk.create("large", &label.encode()).await.expect("created behind its back");
        let error = client.open("large").await.err().expect("not opened");
        let text = error.to_string();
        for part in ["large", "8192 bytes", "4096", "--block-max 8192"] {
            assert!(error.is_remote(FailureKind::Invalid) && text.contains(part), "{text} for {part}");
        }
        client.unlink("large").await.expect("removed");
    });
}
