//! Kills and restarts agents during merges. No merge may block forever or report work that it has not done, and
//! existing files must remain.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use crate::common::{Agent, Store, client};
use description::{Description, MachineDescription};
use experiment::{Beginning, Experiment, FilePlace, Launch, PlacementCase, PlacementOptions, StoredFile};
use fs::{File, Group, NumberedFile};
use jobs::{Contents, Error, Member, fill};
use machine::Machine;
use node::ConnectedNode;
use real::RealMachine;

/// Times of the kill after the start of the merges. The merges take almost a second.
const MOMENTS: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_millis(500)];

/// Maximum time for a merge to end or to fail.
const PATIENCE: Duration = Duration::from_secs(90);

const OPTIONS: [&str; 8] =
    ["--disk-model", "drawn-14400", "--scheduling", "fcfs", "--prefetch", "0", "--block-max", "64KiB"];

/// Returns an experiment with two merges on three disks.
fn experiment() -> Experiment {
    let machine = MachineDescription::load("shared-disks-1996").expect("it is built in");
    let options = PlacementOptions {
        jobs: 2,
        disks: 3,
        runs: 4,
        run_blocks: 300,
        block_bytes: 1024,
        ..PlacementOptions::default()
    };
    let small = PlacementCase { machine, options, seed: 1 };
    small.experiment_on_agents().expect("it makes sense")
}

/// Creates a file with all of its stripes.
async fn create(
    connection: &ConnectedNode,
    file: &StoredFile,
) -> Result<(NumberedFile, File<RealMachine>), Error> {
    let FilePlace::Disks(disks) = &file.place else { panic!("{} is on a separate disk", file.name) };
    let number = node::new_file_id().expect("randomness");
    let described = connection.client.new_numbered_on(number, file.block_bytes, disks).await?;
    let made = connection.client.numbered(described.clone()).await?;
    made.make_stripes().await?;
    Ok((NumberedFile { bytes: file.bytes, ..described }, made))
}

type Files = BTreeMap<String, NumberedFile>;

async fn make_runs(connection: ConnectedNode) -> Files {
    let mut files = Files::new();
    for file in experiment().files.iter().filter(|file| file.beginning == Beginning::OnDisks) {
        let (described, made) = create(&connection, file).await.expect("it is made");
        fill(&connection.machine, &made, file.bytes, Contents::Real, |_| {}).await.expect("it is written");
        made.flush().await.expect("it is on the disks");
        files.insert(file.name.clone(), described);
    }
    files
}

/// Merges to a new output file as a job does, and checks the output.
async fn merge(
    connection: ConnectedNode,
    number: usize,
    launch: Launch,
    mut files: Files,
    ready: flume::Sender<()>,
) -> Result<(), Error> {
    let experiment = experiment();
    let mut outputs = experiment.files.iter().filter(|file| file.beginning == Beginning::Allocated);
    let output = outputs.nth(number).expect("each merge has one");
    files.insert(output.name.clone(), create(&connection, output).await?.0);
    let machine = connection.machine.clone();
    let group = Group::new(number as u64 + 1, vec![machine.node()], 0);
    let client = Some(connection.client.clone());
    let files = Rc::new(files);
    let member = Member { machine, client, files, group, contents: Contents::Real, seed: 1 };
    let part = launch.job.prepare(member).await?;
    ready.send(()).expect("the test waits");
    part.run().await?;
    part.check().await
}

/// Starts all merges, each on its own node, and waits until all of them are working. Returns a channel that receives
/// their outcomes.
fn begin_merges(store: &Store, files: &Files) -> flume::Receiver<Result<(), String>> {
    let (sender, received) = flume::unbounded();
    let (ready, is_ready) = flume::unbounded();
    let addresses: Vec<&str> = store.agents.iter().map(|agent| agent.address.as_str()).collect();
    for (number, launch) in experiment().jobs.into_iter().enumerate() {
        let (sender, ready, files) = (sender.clone(), ready.clone(), files.clone());
        client(&addresses, move |connection| async move {
            let done =
                merge(connection, number, launch, files, ready).await.map_err(|error| error.to_string());
            sender.send(done).expect("the test waits");
        });
    }
    (0..2).for_each(|_| is_ready.recv_timeout(PATIENCE).expect("agents that run"));
    received
}

fn outcomes(received: &flume::Receiver<Result<(), String>>) -> [Result<(), String>; 2] {
    [(); 2].map(|()| received.recv_timeout(PATIENCE).expect("a merge that neither ends nor fails"))
}

#[test]
fn merges_with_a_killed_agent_end_without_wrong_data() {
    let mut store = Store::start_with(&[1, 1, 1], &OPTIONS);
    let addresses: Vec<&str> = store.agents.iter().map(|agent| agent.address.as_str()).collect();
    let (sender, received) = flume::bounded(1);
    let making = client(&addresses, move |connection| async move {
        sender.send(make_runs(connection).await).expect("the test waits");
    });
    making.join().expect("they are made");
    let files = received.recv().expect("they are made");
    for moment in MOMENTS {
        let received = begin_merges(&store, &files);
        thread::sleep(moment);
        let killed = &mut store.agents[1];
        let (address, roots) = (killed.address.clone(), killed.roots.clone());
        killed.child.kill().expect("a child process of the test");
        killed.child.wait().expect("it ends");
        store.agents[1] = Agent::start_at(&address, roots, &OPTIONS);
        let outcomes = outcomes(&received);
        // At the first of these times no merge can have ended.
        assert!(moment > MOMENTS[0] || outcomes.iter().any(Result::is_err));
        for outcome in outcomes {
            // A merge that succeeds has checked its output. A merge may fail, but it must not produce wrong data.
            assert!(!outcome.is_err_and(|why| why.contains("wrong data")), "after {moment:?}");
        }
    }
    // When all agents run again, the merges succeed.
    assert_eq!(outcomes(&begin_merges(&store, &files)), [Ok(()), Ok(())]);
}
