//! Crashes of the metadata server of a namespace, or of all I/O nodes, while clients have files open, or have just
//! removed one. A seed determines the surviving unflushed data.

use description::{Description, MachineDescription};
use fs::{Configuration, Error, FileId, IoNodeSettings, ListedStripe, OpenTreeFile, Tree};
use layout::Striping;
use machine::{Duration, Machine, NodeId, Payload};
use namespace::{NewInode, RemovalTarget, TreeOperation, TreeRefusal};
use sim::conformance::metadata_costs;
use sim::{SimMachine, Simulation};

use crate::crashing_nodes::CrashingNodes;
use crate::draw::Draw;
use crate::run::{at, look, text_of, tree_of};
use crate::testbed::{BLOCK, drawn_settings};

/// Length in bytes of the file of ones when it is flushed.
const BYTES: u64 = 2 * BLOCK;

/// Time after which clients have noticed a crash.
const UNTIL_NOTICED: Duration = Duration::from_millis(5);

/// A client, and a node for another one; two I/O nodes, one of which is the metadata server.
struct Crashing {
    tree: Tree<SimMachine>,
    looker: SimMachine,
    nodes: CrashingNodes,
    seed: u64,
}

impl Crashing {
    fn crash_metadata_server(&self) {
        let metadata_server = self.nodes.names().iter().position(|node| *node == self.tree.metadata_server());
        self.nodes.crash(metadata_server.expect("one of them"), self.seed);
    }

    fn crash_all(&self) {
        (0..self.nodes.count()).for_each(|node| self.nodes.crash(node as usize, self.seed));
    }

    /// Returns the I/O node that has a stripe of a file, if there is one.
    async fn home(&self, file: &OpenTreeFile<SimMachine>, stripe: u32) -> Result<Option<NodeId>, String> {
        let (number, client) = (FileId(file.number().0), self.tree.cache().client());
        let stripes = client.list_numbered().await.map_err(text_of)?;
        let is_it = |listed: &ListedStripe| {
            listed.file == number && listed.stripe.is_some_and(|(index, _)| index == stripe)
        };
        Ok(stripes.iter().find(|(_, listed)| is_it(listed)).map(|(node, _)| *node))
    }

    /// Crashes the I/O node that has a stripe of a file, and waits until the clients have noticed it.
    async fn crash_home(&self, file: &OpenTreeFile<SimMachine>, stripe: u32) -> Result<(), String> {
        let home = self.home(file, stripe).await?;
        let index = self.nodes.names().iter().position(|node| Some(*node) == home);
        self.nodes.crash(index.expect("a stripe that there is"), self.seed);
        self.wait(UNTIL_NOTICED).await;
        Ok(())
    }

    async fn wait(&self, time: Duration) {
        self.looker.sleep_until(self.looker.now() + time).await;
    }

    async fn other_tree(&self) -> Result<Tree<SimMachine>, String> {
        tree_of(Configuration::Agent, &self.looker, &self.nodes.names(), self.seed).await
    }
}

fn remove() -> TreeOperation {
    TreeOperation::Remove { at: at("file"), what: RemovalTarget::File }
}

/// Creates a file of two stripes.
async fn make(tree: &Tree<SimMachine>, path: &str) -> Result<OpenTreeFile<SimMachine>, String> {
    let disks = tree.all_disks().await.map_err(text_of)?;
    let new = NewInode::File { striping: Striping::new(BLOCK, 2).expect("a striping"), disks };
    let make = TreeOperation::Make { at: at(path), new, mode: 0o644, uid: 0, gid: 0, exclusive: true };
    tree.open(make).await.map_err(text_of)
}

async fn fill(file: &OpenTreeFile<SimMachine>, byte: u8, bytes: u64) -> Result<(), String> {
    file.write(0, Payload::from(vec![byte; bytes as usize])).await.map_err(text_of)?;
    file.flush().await.map_err(text_of)
}

/// Creates a file of ones, and flushes it to stable storage.
async fn make_synced(
    tree: &Tree<SimMachine>,
    path: &str,
    bytes: u64,
) -> Result<OpenTreeFile<SimMachine>, String> {
    let file = make(tree, path).await?;
    fill(&file, 1, bytes).await?;
    file.sync().await.map_err(text_of)?;
    Ok(file)
}

async fn has(file: &OpenTreeFile<SimMachine>, byte: u8, bytes: u64) -> Result<bool, String> {
    let data = file.paged().read(0, bytes).await.map_err(text_of)?;
    Ok(data.to_vec() == Some(vec![byte; bytes as usize]))
}

/// Runs `test` with a file that the client has created, flushed and has open.
fn run<T: 'static>(
    seed: u64,
    test: impl AsyncFnOnce(Crashing, OpenTreeFile<SimMachine>) -> Result<T, String> + 'static,
) -> T {
    let base = Configuration::Agent;
    let mut description = MachineDescription::load("cluster-switch").expect("built in");
    description.nodes.io.value = 2;
    description.nodes.compute.value = 2;
    description.metadata = Some(metadata_costs());
    let settings = drawn_settings(&mut Draw::of(seed), seed);
    let simulation = Simulation::new(&description, settings);
    simulation.expect_crashes();
    let settings = IoNodeSettings { cache_blocks: 16, block_bytes_max: BLOCK, ..base.io_node() };
    let [client, looker] = [0, 1].map(|index| simulation.compute_nodes()[index].clone());
    let io_nodes = simulation.io_nodes().to_vec();
    let test = async move {
        let nodes = CrashingNodes::start(io_nodes, settings, false);
        let tree = tree_of(base, &client, &nodes.names(), seed).await?;
        let file = make_synced(&tree, "file", BYTES).await?;
        test(Crashing { tree, looker, nodes, seed }, file).await
    };
    simulation.run(test).expect("no task fails").expect("nothing fails")
}

/// A client writes to a file without flushing it, the metadata server crashes, and another client writes to the file.
/// Returns true if the crash has lost the first client's data.
///
/// # Panics
/// If the first client takes the other's data for its data.
pub fn a_crash_takes_what_was_written(seed: u64) -> bool {
    run(seed, async |test, file| {
        fill(&file, 2, 2 * BYTES).await?;
        test.crash_metadata_server();
        let other = test.other_tree().await?.open(look("file")).await.map_err(text_of)?;
        let is_taken = other.known().size == BYTES;
        fill(&other, 3, 2 * BYTES).await?;
        file.attributes().await.map_err(text_of)?;
        assert!(has(&file, 3, 2 * BYTES).await?, "seed {}", test.seed);
        Ok(is_taken)
    })
}

/// Crashes the metadata server while an idle client has an unlinked file open, and lets another client remove orphans a
/// while later. Returns true if the file still exists.
pub fn an_idle_clients_file_is_left_alone(seed: u64) -> bool {
    run(seed, async |test, file| {
        test.tree.unname(remove()).await.map_err(text_of)?;
        test.tree.flush().await.map_err(text_of)?;
        test.crash_metadata_server();
        // Longer than a metadata server waits for clients that held files in an earlier incarnation.
        test.wait(Duration::from_secs(70)).await;
        let removed = test.other_tree().await?.remove_orphans().await.map_err(text_of)?;
        file.paged().file().refresh();
        file.paged().note_written_past(file.paged().bytes());
        Ok(removed == 0 && has(&file, 1, BYTES).await?)
    })
}

/// Removes a file and crashes the metadata server before the removal is flushed together with others. Returns true if
/// the name exists again.
///
/// # Panics
/// If the name exists again without its contents.
pub fn a_removed_file_comes_back(seed: u64) -> bool {
    run(seed, async |test, file| {
        file.close().await.map_err(text_of)?;
        test.tree.unname(remove()).await.map_err(text_of)?;
        test.crash_metadata_server();
        // The client has noticed the crash before it deletes the contents.
        test.wait(UNTIL_NOTICED).await;
        test.tree.contents_removed().await;
        let other = match test.other_tree().await?.open(look("file")).await {
            Err(error) if error.is_refused(TreeRefusal::NotFound) => return Ok(false),
            opened => opened.map_err(text_of)?,
        };
        assert_eq!(other.known().size, BYTES, "seed {}", test.seed);
        assert!(has(&other, 1, BYTES).await?, "seed {}", test.seed);
        Ok(true)
    })
}

/// Returns true if a crash loses a stripe that a client has created and not flushed. The client gets an error and
/// writes it again; before that the file can be read, with zeros in its place.
///
/// # Panics
/// If the client gets no error, or the file cannot be read or written.
pub fn a_crash_takes_a_new_stripe(seed: u64) -> bool {
    run(seed, async |test, _| {
        let file = make_synced(&test.tree, "longer", BLOCK).await?;
        file.write(BLOCK, Payload::from(vec![1; BLOCK as usize])).await.map_err(text_of)?;
        file.paged().send().await.map_err(text_of)?;
        test.crash_all();
        // The client has noticed the crash before it flushes.
        test.wait(UNTIL_NOTICED).await;
        let lost = file.sync().await.expect_err("what was not flushed may be lost");
        assert!(matches!(*lost, Error::WriteLost { .. }), "seed {}: {lost}", test.seed);
        let tree = test.other_tree().await?;
        let other = tree.open(look("longer")).await.map_err(text_of)?;
        assert!(has(&other, 1, BLOCK).await?, "seed {}", test.seed);
        other.paged().read(BLOCK, BLOCK).await.map_err(text_of)?;
        other.close().await.map_err(text_of)?;
        let is_taken = test.home(&file, 1).await?.is_none();
        file.write(BLOCK, Payload::from(vec![1; BLOCK as usize])).await.map_err(text_of)?;
        file.sync().await.map_err(text_of)?;
        let other = tree.open(look("longer")).await.map_err(text_of)?;
        assert!(has(&other, 1, 2 * BLOCK).await?, "seed {}", test.seed);
        Ok(is_taken)
    })
}

/// Returns true if a crash loses a stripe that a client has created and not flushed, but has reported to the metadata
/// server. The client gets an error, and can read and write the file as before.
///
/// # Panics
/// If the client gets no error, or the file cannot be read or written.
pub fn a_crash_loses_a_stripe_known_to_the_metadata_server(seed: u64) -> bool {
    run(seed, async |test, _| {
        let file = make_synced(&test.tree, "longer", BLOCK).await?;
        fill(&file, 1, 2 * BLOCK).await?;
        test.tree.flush().await.map_err(text_of)?;
        test.crash_home(&file, 1).await?;
        let lost = file.sync().await.expect_err("what was not flushed may be lost");
        assert!(matches!(*lost, Error::WriteLost { .. }), "seed {}: {lost}", test.seed);
        let is_taken = test.home(&file, 1).await?.is_none();
        file.paged().read(BLOCK, BLOCK).await.map_err(text_of)?;
        file.write(BLOCK, Payload::from(vec![1; BLOCK as usize])).await.map_err(text_of)?;
        file.sync().await.map_err(text_of)?;
        let other = test.other_tree().await?.open(look("longer")).await.map_err(text_of)?;
        assert!(has(&other, 1, 2 * BLOCK).await?, "seed {}", test.seed);
        Ok(is_taken)
    })
}

/// Returns true if a crash loses an unflushed new stripe of one client that another client has open. The other client
/// continues to write elsewhere in the file.
///
/// # Panics
/// If the other client reports the lost stripe to the metadata server, or the file cannot be read or written.
pub fn a_crash_takes_a_stripe_that_another_client_has_open(seed: u64) -> bool {
    run(seed, async |test, _| {
        let file = make(&test.tree, "longer").await?;
        fill(&file, 1, BLOCK).await?;
        file.set_len(2 * BLOCK).await.map_err(text_of)?;
        file.sync().await.map_err(text_of)?;
        file.write(BLOCK, Payload::from(vec![1; BLOCK as usize])).await.map_err(text_of)?;
        file.paged().send().await.map_err(text_of)?;
        let tree = test.other_tree().await?;
        let other = tree.open(look("longer")).await.map_err(text_of)?;
        assert!(has(&other, 1, 2 * BLOCK).await?, "seed {}", test.seed);
        test.crash_home(&file, 1).await?;
        fill(&other, 1, BLOCK).await?;
        let is_taken = test.home(&file, 1).await?.is_none();
        let stored = tree.inode(look("longer")).await.map_err(text_of)?.stored_stripes;
        assert_eq!(stored, if is_taken { 1 } else { 2 }, "seed {}", test.seed);
        file.sync().await.expect_err("what was not flushed may be lost");
        file.paged().read(BLOCK, BLOCK).await.map_err(text_of)?;
        file.write(BLOCK, Payload::from(vec![2; BLOCK as usize])).await.map_err(text_of)?;
        file.sync().await.map_err(text_of)?;
        other.attributes().await.map_err(text_of)?;
        let read = other.paged().read(BLOCK, BLOCK).await.map_err(text_of)?;
        assert_eq!(read.to_vec(), Some(vec![2; BLOCK as usize]), "seed {}", test.seed);
        Ok(is_taken)
    })
}
