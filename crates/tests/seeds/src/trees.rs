//! After crashes of clients or I/O nodes at any point, names are those before or after an operation, and flushed data
//! remain.
//!
//! Clients of one namespace, up to 64, each work in a private directory, whose possible contents each knows, and all in
//! one shared directory. I/O nodes crash and restart, including the metadata server. Then the namespace is checked.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use description::{MachineDescription, Topology};
use fs::{
    Client, Configuration, Error, FileId, IoNodeSettings, NewTree, OpenTreeFile, PageCache,
    PageCacheSettings, Prefetch, Threads, Tree,
};
use layout::Striping;
use machine::{Duration, InFlight, Machine, NodeId, Payload};
use namespace::{
    FileNumber, Location, NewInode, RenameMode, SurveyedRecord, TreeOperation, TreeRefusal, WhatToRemove,
    complaints,
};
use sim::conformance::{end_after, metadata_costs};
use sim::{Layout, SimMachine, Simulation};

use crate::crashing_nodes::CrashingNodes;
use crate::draw::Draw;
use crate::testbed::{BLOCK, LIMIT, drawn_machine, drawn_settings};

/// Maximum number of a client's steps.
const STEPS: u64 = 25;

/// Maximum number of clients.
const CLIENTS_MAX: u64 = 64;

/// Names in the directory of a client, in the order of its lookups: enough that the last ones are prefetched.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Time for which a client believes prefetched entries.
const BELIEVED: Duration = Duration::from_millis(1_000);

/// Contents of a file: value and number of its bytes, or no file.
type Contents = Option<(u8, u64)>;

/// Possible contents of each name of a client: one, unless an operation was in flight when it stopped.
#[derive(Default)]
struct Expected {
    contents: RefCell<BTreeMap<&'static str, Vec<Contents>>>,
    /// Impossible state found by the client.
    wrong: RefCell<Option<String>>,
}

impl Expected {
    fn of(&self, name: &str) -> Vec<Contents> {
        self.contents.borrow().get(name).cloned().unwrap_or_else(|| vec![None])
    }

    fn may_become(&self, name: &'static str, contents: Contents) {
        let mut possible = self.of(name);
        possible.push(contents);
        self.contents.borrow_mut().insert(name, possible);
    }

    fn is(&self, name: &'static str, contents: Contents) {
        self.contents.borrow_mut().insert(name, vec![contents]);
    }
}

/// Client, and the possible contents of its directory.
struct Worker {
    tree: Tree<SimMachine>,
    directory: String,
    number: FileNumber,
    expected: Rc<Expected>,
    draw: Draw,
}

fn at(path: &str) -> Location {
    Location::of_path(path)
}

impl Worker {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    async fn make(&self, path: &str, exclusive: bool) -> fs::Result<OpenTreeFile<SimMachine>> {
        let stripes = self.tree.cache().client().disks();
        let new =
            NewInode::File { striping: Striping::new(BLOCK, stripes)?, disks: self.tree.all_disks().await? };
        self.tree
            .open(TreeOperation::Make { at: at(path), new, mode: 0o644, uid: 0, gid: 0, exclusive })
            .await
    }

    async fn rename(&self, from: &str, to: &str, mode: RenameMode) -> fs::Result<()> {
        self.tree.unname(TreeOperation::Rename { from: at(from), to: at(to), mode }).await
    }

    async fn remove(&self, path: &str) -> fs::Result<()> {
        self.tree.unname(TreeOperation::Remove { at: at(path), what: WhatToRemove::File }).await
    }

    /// Works until an operation fails, or up to the limit of steps.
    async fn work(mut self) -> fs::Result<()> {
        for step in 1..=STEPS {
            match self.draw.below(9) {
                0..5 => self.change(step as u8 | 1).await?,
                5 => self.look(step as u8 | 1).await?,
                _ => self.meddle(step).await?,
            }
        }
        Ok(())
    }

    /// Looks its names up and checks each, while changing some.
    async fn look(&mut self, fill: u8) -> fs::Result<()> {
        for name in NAMES {
            if self.draw.below(4) == 0 {
                self.change(fill).await?;
            }
            let looked = self.tree.look(self.number, name.into(), BELIEVED).await;
            let bytes = match looked {
                Ok((inode, _)) => Some(inode.size),
                Err(error) if error.is_refused(TreeRefusal::NotFound) => None,
                Err(error) => return Err(error),
            };
            let [contents] = self.expected.of(name)[..] else { unreachable!("nothing has failed yet") };
            if bytes != contents.map(|(_, bytes)| bytes) {
                let wrong = format!("{}: looked up {bytes:?}, not {contents:?}", self.path(name));
                self.expected.wrong.borrow_mut().get_or_insert(wrong);
            }
        }
        Ok(())
    }

    /// Replaces, extends or removes a private file, and flushes that to stable storage.
    async fn change(&mut self, fill: u8) -> fs::Result<()> {
        let name = NAMES[self.draw.below(NAMES.len() as u64) as usize];
        let [before] = self.expected.of(name)[..] else { unreachable!("nothing has failed yet") };
        let bytes = 1 + self.draw.below(9 * BLOCK);
        match (before, self.draw.below(3)) {
            (Some((fill, old)), 0) => {
                let file =
                    self.tree.open(TreeOperation::Look { at: at(&self.path(name)), follow: true }).await?;
                self.expected.may_become(name, Some((fill, old + bytes)));
                file.write(old, Payload::from(vec![fill; bytes as usize])).await?;
                file.sync().await?;
                self.expected.is(name, Some((fill, old + bytes)));
                file.close().await
            }
            (Some(_), 1) => {
                self.expected.may_become(name, None);
                self.remove(&self.path(name)).await?;
                self.tree.flush().await?;
                self.expected.is(name, None);
                Ok(())
            }
            _ => {
                let hidden = self.path(".new");
                let file = self.make(&hidden, true).await?;
                file.write(0, Payload::from(vec![fill; bytes as usize])).await?;
                file.sync().await?;
                self.expected.may_become(name, Some((fill, bytes)));
                self.rename(&hidden, &self.path(name), RenameMode::Replace).await?;
                self.tree.flush().await?;
                self.expected.is(name, Some((fill, bytes)));
                file.close().await
            }
        }
    }

    /// Does something in the shared directory. A rejection is fine.
    async fn meddle(&mut self, step: u64) -> fs::Result<()> {
        let [one, other] = [0; 2].map(|_| format!("all/{}", self.draw.below(5)));
        let outcome = match self.draw.below(6) {
            0 => {
                let (at, new) = (at(&one), NewInode::Directory);
                let make = TreeOperation::Make { at, new, mode: 0o755, uid: 0, gid: 0, exclusive: true };
                self.tree.perform(make).await.map(drop)
            }
            1 => match self.make(&one, false).await {
                Ok(file) => {
                    file.append(Payload::from(vec![step as u8; 100])).await?;
                    file.close().await
                }
                Err(error) => Err(error),
            },
            2 => self.rename(&one, &format!("{other}/{step}"), RenameMode::Keep).await,
            3 => self.rename(&one, &other, RenameMode::Exchange).await,
            4 => self.rename(&one, &other, RenameMode::Replace).await,
            _ => self.remove(&one).await,
        };
        match outcome {
            Err(error) if matches!(*error, Error::Refused(refusal) if refusal != TreeRefusal::Damaged) => {
                Ok(())
            }
            outcome => outcome,
        }
    }
}

pub(crate) async fn tree_of(
    base: Configuration,
    machine: &SimMachine,
    io_nodes: &[NodeId],
    origin: u64,
) -> Result<Tree<SimMachine>, String> {
    let client = Client::connect(machine.clone(), io_nodes.to_vec(), base.client()).await;
    let settings = PageCacheSettings {
        bytes: 16 * BLOCK,
        prefetch: Prefetch::Adaptive,
        write_behind: true,
        ..PageCacheSettings::default()
    };
    let cache = PageCache::new(client.map_err(|error| error.to_string())?, settings);
    let new = NewTree { origin, mode: 0o755, uid: 0, gid: 0 };
    Tree::find_or_begin(&cache, new).await.map_err(|error| error.to_string())
}

async fn make_directory(tree: &Tree<SimMachine>, path: &str) -> Result<FileNumber, String> {
    let (at, new) = (at(path), NewInode::Directory);
    let make = TreeOperation::Make { at, new, mode: 0o755, uid: 0, gid: 0, exclusive: true };
    tree.inode(make).await.map(|inode| inode.number).map_err(|error| error.to_string())
}

/// Returns the contents at a path, and the number of leading bytes equal to the first.
async fn found(tree: &Tree<SimMachine>, path: &str) -> Result<(Contents, u64), String> {
    let file = match tree.open(TreeOperation::Look { at: at(path), follow: true }).await {
        Err(error) if error.is_refused(TreeRefusal::NotFound) => return Ok((None, 0)),
        opened => opened.map_err(|error| format!("{path}: {error}"))?,
    };
    let bytes = file.known().size;
    let data = file.paged().read(0, bytes).await.map_err(|error| format!("{path}: {error}"))?;
    let data = data.to_vec().expect("real bytes");
    file.close().await.map_err(|error| format!("{path}: {error}"))?;
    let fill = data.first().copied().unwrap_or(0);
    let alike = data.iter().take_while(|byte| **byte == fill).count() as u64;
    Ok((Some((fill, bytes)), alike))
}

/// Returns true if `found` is a possible state of a file. A client reports the new end of an extended file only up to
/// the bytes already sent. So a crash in an extension may leave any length between the old and the new one. The bytes
/// before the old end are whole; some of the others may be lost, and their writer got an error.
fn may_be_found(possible: &[Contents], found: Contents, alike: u64) -> bool {
    let Some((fill, bytes)) = found else { return possible.contains(&found) };
    if alike == bytes && possible.contains(&found) {
        return true;
    }
    let same = |contents: &Contents| contents.filter(|&(before, _)| before == fill).map(|(_, bytes)| bytes);
    let (old, longest) = (possible.first().and_then(same), possible.iter().filter_map(same).max());
    old.is_some_and(|old| old <= alike && old <= bytes) && longest.is_some_and(|longest| bytes <= longest)
}

/// Checks that all records are consistent; returns the files they contain.
async fn files_of(tree: &Tree<SimMachine>) -> Result<BTreeSet<FileId>, String> {
    let records = tree.survey().await.map_err(|error| error.to_string())?;
    if let Some(complaint) = complaints(&records).first() {
        return Err(format!("the namespace: {}", complaint.text));
    }
    let numbers = records.iter().filter_map(|record| match record {
        SurveyedRecord::Inode(inode) => Some(FileId(inode.number.0)),
        _ => None,
    });
    Ok(numbers.collect())
}

/// Extends a torus to a router for each node.
fn make_room(description: &mut MachineDescription) {
    let nodes = description.node_count();
    if let Topology::Torus(torus) = &mut description.network.topology {
        let rows = (torus.first_router.value + nodes).div_ceil(torus.columns.value);
        torus.rows.value = torus.rows.value.max(rows);
    }
}

/// Runs a seed. Fails if the namespace has an impossible state, or an operation fails that must not.
pub(crate) fn run(seed: u64) -> Result<(), String> {
    let mut draw = Draw::of(seed);
    let base = Configuration::ALL[seed as usize % 2];
    let io_nodes = 1 + draw.below(4) as u32;
    let most = draw.one_of(&[1, 2, 3, 5, CLIENTS_MAX]);
    let clients = 1 + draw.below(most) as usize;
    let mut description = drawn_machine(&mut draw);
    description.nodes.io.value = io_nodes;
    description.nodes.compute.value = clients as u32 + 1;
    make_room(&mut description);
    description.disks.per_io_node.value = 1;
    description.metadata = Some(metadata_costs());
    let mut settings = drawn_settings(&mut draw, seed);
    if let Layout::Contiguous { reserve_bytes } = &mut settings.layout {
        // There are many small files here, and space reserved for one is not available to others.
        *reserve_bytes = 16 * BLOCK;
    }
    let simulation = Simulation::new(&description, settings);
    simulation.expect_crashes();
    let settings = IoNodeSettings {
        cache_blocks: 16,
        block_bytes_max: BLOCK,
        threads: Threads::Pool(4),
        ..base.io_node()
    };
    let (looker, workers) = simulation.compute_nodes().split_first().expect("nodes");
    let (looker, workers) = (looker.clone(), workers.to_vec());
    end_after(&looker, LIMIT);
    let io_nodes = simulation.io_nodes().to_vec();
    let test = async move {
        let crashing = Rc::new(CrashingNodes::start(io_nodes, settings));
        let names = crashing.names();
        let (mut expected, working) = (Vec::new(), InFlight::new());
        for (index, node) in workers.iter().enumerate() {
            let tree = tree_of(base, node, &names, seed).await?;
            if index == 0 {
                make_directory(&tree, "all").await?;
            }
            let directory = format!("d{index}");
            let number = make_directory(&tree, &directory).await?;
            tree.flush().await.map_err(|error| error.to_string())?;
            let knows = Rc::new(Expected::default());
            expected.push((directory.clone(), knows.clone()));
            let draw = Draw::of(seed ^ (index as u64 + 1) << 40);
            let worker = Worker { tree, directory, number, expected: knows, draw };
            let (operation, excuse) = (working.begin(), crashing.clone());
            node.spawn("worker", async move {
                // When an I/O node crashes, its operations in flight are left incomplete.
                let outcome = excuse.excused(worker.work().await);
                drop(operation);
                outcome
            });
        }
        for _ in 0..draw.below(4) {
            let most = 1 << draw.below(29);
            let pause = Duration::from_nanos(1 + draw.below(most));
            looker.sleep_until(looker.now() + pause).await;
            let victim = draw.below(crashing.count()) as usize;
            crashing.crash(victim, draw.below(u64::MAX >> 34));
        }
        working.none().await;
        let tree = tree_of(base, &looker, &names, seed).await?;
        for (directory, expected) in expected {
            if let Some(wrong) = expected.wrong.take() {
                return Err(wrong);
            }
            for name in NAMES {
                let (path, possible) = (format!("{directory}/{name}"), expected.of(name));
                let (found, alike) = found(&tree, &path).await?;
                if !may_be_found(&possible, found, alike) {
                    let found = format!("{found:?}, the first {alike} bytes of it alike");
                    return Err(format!("{path}: found {found}; possible {possible:?}"));
                }
            }
        }
        let files = files_of(&tree).await?;
        // Contents without a name are found and removed.
        let client = tree.cache().client();
        let left = client.list_numbered().await.map_err(|error| error.to_string())?;
        let unnamed: BTreeSet<FileId> =
            left.iter().map(|(_, stripe)| stripe.file).filter(|file| !files.contains(file)).collect();
        let unnamed: Vec<FileId> = unnamed.into_iter().collect();
        client.remove_numbered(&unnamed).await.map_err(|error| error.to_string())?;
        let left = client.list_numbered().await.map_err(|error| error.to_string())?;
        match left.iter().find(|(_, stripe)| !files.contains(&stripe.file)) {
            Some((_, stripe)) => Err(format!("{stripe:?} is left")),
            None => Ok(()),
        }
    };
    simulation.run(test).map_err(|error| error.to_string())?
}
