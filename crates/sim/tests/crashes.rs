//! What is called whole is whole, wherever a client or an I/O node is stopped.
//!
//! A program makes, replaces, extends, cuts and removes files, one after the other. At some point of its run, drawn by
//! the seed, one of the nodes crashes and is started anew; often another one does soon after. Then it is seen what there is.
//! `STARFISH_SEEDS` says how many seeds; each is a run of its own.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use description::{Description, MachineDescription};
use fs::{Client, Configuration, Error, File, FileId, IoNodeSettings, Threads, serve};
use layout::Striping;
use machine::{Condition, Duration, Machine, Memory, NodeId};
use sim::{Settings, SimMachine, Simulation};

const BLOCK: u64 = 512;
const PIECE: u64 = 700;
const NAMES: [&str; 2] = ["one", "two"];

/// A small stream of numbers that is the same everywhere.
#[derive(Clone)]
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// What a file may hold: each of the bytes is `fill`, and it is as long as one of these.
#[derive(Clone, Debug, PartialEq)]
struct Version {
    fill: u8,
    bytes: u64,
}

/// What may be found under a name: a version of the file, or no finished file.
type Possible = Vec<Option<Version>>;

/// What the program knows of each name. While something is under way, several things are possible.
#[derive(Default)]
struct Expected(RefCell<BTreeMap<&'static str, Possible>>);

impl Expected {
    fn of(&self, name: &str) -> Possible {
        self.0.borrow().get(name).cloned().unwrap_or_else(|| vec![None])
    }

    /// This may come to be from now on.
    fn may_become(&self, name: &'static str, version: Option<Version>) {
        let mut possible = self.of(name);
        possible.push(version);
        self.0.borrow_mut().insert(name, possible);
    }

    /// This is so.
    fn is(&self, name: &'static str, version: Option<Version>) {
        self.0.borrow_mut().insert(name, vec![version]);
    }

    /// The finished file of that name, as far as that is certain.
    fn certain(&self, name: &str) -> Option<Option<Version>> {
        let possible = self.of(name);
        (possible.len() == 1).then(|| possible[0].clone())
    }
}

fn settings(base: Configuration, incarnation: u64) -> IoNodeSettings {
    IoNodeSettings {
        cache_blocks: 6,
        block_bytes_max: BLOCK,
        threads: Threads::Pool(4),
        incarnation,
        ..base.io_node()
    }
}

async fn connect(
    base: Configuration,
    machine: &SimMachine,
    io_nodes: &[NodeId],
) -> fs::Result<Client<SimMachine>> {
    Client::connect(machine.clone(), io_nodes.to_vec(), base.client()).await
}

/// Writes piece by piece: an I/O node may be another run from one to the next.
async fn write(file: &File<SimMachine>, from: u64, version: &Version) -> fs::Result<()> {
    for offset in (from..version.bytes).step_by(PIECE as usize) {
        let bytes = PIECE.min(version.bytes - offset);
        file.write(offset, bytes, &Memory::real(vec![version.fill; bytes as usize]), 0).await?;
    }
    Ok(())
}

/// Goes on making and changing files until something fails.
async fn program(client: Client<SimMachine>, expected: Rc<Expected>, mut draw: Draw) -> fs::Result<()> {
    for step in 1.. {
        let name = NAMES[draw.below(2) as usize];
        let file = FileId(step);
        let version = Version { fill: step as u8 | 1, bytes: 1 + draw.below(12 * BLOCK) };
        let striping = Striping::new(BLOCK, 1 + draw.below(3) as u32).expect("a striping");
        let Some(before) = expected.certain(name) else { unreachable!("nothing has failed yet") };
        match (before, draw.below(6)) {
            (None, _) => {
                let file = client.create_striped(name, file, striping).await?;
                write(&file, 0, &version).await?;
                expected.may_become(name, Some(version.clone()));
                file.commit().await?;
                expected.is(name, Some(version));
            }
            (Some(_), 0) => {
                expected.may_become(name, None);
                client.unlink(name).await?;
                expected.is(name, None);
            }
            (Some(before), 1) => {
                // Shorter, and what is left is the same.
                let version = Version { bytes: draw.below(before.bytes + 1), ..before };
                let file = client.open(name).await?;
                expected.may_become(name, Some(version.clone()));
                file.truncate(version.bytes).await?;
                file.flush().await?;
                expected.is(name, Some(version));
            }
            (Some(before), 2 | 3) => {
                let version = Version { bytes: before.bytes + version.bytes, ..before };
                let file = client.open(name).await?;
                write(&file, before.bytes, &version).await?;
                expected.may_become(name, Some(version.clone()));
                file.flush().await?;
                expected.is(name, Some(version));
            }
            (Some(_), _) => {
                let file = client.create_replacing(name, file, striping).await?;
                write(&file, 0, &version).await?;
                expected.may_become(name, Some(version.clone()));
                file.commit().await?;
                expected.is(name, Some(version));
            }
        }
    }
    Ok(())
}

/// What there is under a name, read by a client that has seen nothing of what went before.
async fn found(client: &Client<SimMachine>, name: &str) -> Result<Option<Version>, String> {
    let file = match client.open(name).await {
        Err(error) if matches!(*error, Error::NotFound { .. } | Error::Unfinished { .. }) => return Ok(None),
        opened => opened.map_err(|error| error.to_string())?,
    };
    let memory = Memory::real(vec![0; file.bytes() as usize]);
    let read = file.read(0, file.bytes(), &memory, 0).await.map_err(|error| error.to_string())?;
    let data = memory.into_vec().expect("real memory");
    let fill = data.first().copied().unwrap_or(0);
    if read != file.bytes() || data.iter().any(|byte| *byte != fill) {
        let wrong = data.iter().position(|byte| *byte != fill);
        return Err(format!("{name} of {} bytes is not all {fill}: see byte {wrong:?}", file.bytes()));
    }
    Ok(Some(Version { fill, bytes: file.bytes() }))
}

/// Whether this is one of the versions; that of an empty file has no bytes to tell its fill.
fn is_among(possible: &Possible, found: &Option<Version>) -> bool {
    possible.iter().any(|one| match (one, found) {
        (Some(one), Some(found)) => one.bytes == found.bytes && (one.fill == found.fill || one.bytes == 0),
        (one, found) => one == found,
    })
}

/// A file may be torn by a crash in the middle of its removal: what is left is told as damaged, and can be removed.
fn may_be_torn(possible: &Possible) -> bool {
    possible.len() > 1 && possible.last() == Some(&None)
}

struct Crashing {
    base: Configuration,
    io_nodes: Vec<SimMachine>,
    incarnation: Cell<u64>,
}

impl Crashing {
    fn serve(&self, node: &SimMachine) {
        let incarnation = self.incarnation.replace(self.incarnation.get() + 1);
        node.spawn("I/O node", serve(node.clone(), settings(self.base, incarnation)));
    }

    fn crash(&self, io_node: usize, seed: u64) {
        self.io_nodes[io_node].crash(seed);
        self.serve(&self.io_nodes[io_node]);
    }
}

fn run(seed: u64) -> Result<(), String> {
    let base = Configuration::ALL[seed as usize % 2];
    let mut description = MachineDescription::load("cluster-switch").expect("built in");
    description.nodes.io.value = 3;
    description.nodes.compute.value = 3;
    description.disks.per_io_node.value = 1;
    let settings = Settings { block_bytes: BLOCK, seed, ..Settings::default() };
    let simulation = Simulation::new(&description, settings).expect("a sound description");
    simulation.expect_crashes();
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (writer, looker) = (simulation.compute_nodes()[0].clone(), simulation.compute_nodes()[1].clone());
    let meddler = simulation.compute_nodes()[2].clone();
    let crashing = Crashing { base, io_nodes: simulation.io_nodes().to_vec(), incarnation: Cell::new(0) };
    let test = async move {
        let names: Vec<NodeId> = crashing.io_nodes.iter().map(|node| node.node()).collect();
        crashing.io_nodes.iter().for_each(|node| crashing.serve(node));
        let expected = Rc::new(Expected::default());
        let over = Rc::new((Cell::new(false), Condition::new()));
        let client = connect(base, &writer, &names).await.map_err(|error| error.to_string())?;
        let (started, told, done) = (draw.clone(), expected.clone(), over.clone());
        writer.spawn("program", async move {
            // It fails when an I/O node crashes, and whatever it was doing stays as it is.
            let _ = program(client, told, started).await;
            done.0.set(true);
            done.1.wake_all();
            Ok(())
        });
        // Somebody who looks at the files meanwhile finishes what others have committed.
        let other = connect(base, &meddler, &names).await.map_err(|error| error.to_string())?;
        meddler.spawn("looker", async move {
            while other.stat(NAMES[0]).await.is_ok_and(|_| true) || other.list().await.is_ok() {}
            Ok(())
        });
        let pause = Duration::from_nanos(1 + draw.below(400_000_000));
        writer.sleep_until(writer.now() + pause).await;
        let mut victims = 1 + draw.below(3);
        let mut stopped = false;
        while victims > 0 {
            victims -= 1;
            match draw.below(4) {
                3 => {
                    writer.crash(draw.below(u64::MAX >> 34));
                    stopped = true;
                }
                io_node => crashing.crash(io_node as usize, draw.below(u64::MAX >> 34)),
            }
            let pause = Duration::from_nanos(draw.below(20_000_000));
            looker.sleep_until(looker.now() + pause).await;
        }
        // A program that has not noticed goes on for a while, and then is stopped.
        if !stopped {
            looker.sleep_until(looker.now() + Duration::from_millis(50)).await;
            writer.crash(0);
        }
        meddler.crash(0);
        let client = connect(base, &looker, &names).await.map_err(|error| error.to_string())?;
        for name in NAMES {
            let possible = expected.of(name);
            match found(&client, name).await {
                Ok(version) if is_among(&possible, &version) => {}
                Err(why) if may_be_torn(&possible) && why.contains("missing") => {}
                found => return Err(format!("{name}: found {found:?}, possible {possible:?}")),
            }
            // What is left is collected, and the name is free for others.
            for removed in [client.unlink_unfinished(name).await, client.unlink(name).await] {
                match removed {
                    Err(error) if !matches!(*error, Error::NotFound { .. }) => {
                        return Err(format!("{name}: removing it: {error}"));
                    }
                    _ => {}
                }
            }
            let again =
                client.create(name, FileId(u64::MAX), BLOCK).await.map_err(|error| error.to_string())?;
            again.commit().await.map_err(|error| error.to_string())?;
            client.unlink(name).await.map_err(|error| error.to_string())?;
        }
        match client.list().await.map_err(|error| error.to_string())? {
            left if left.is_empty() => Ok(()),
            left => Err(format!("{left:?} are left")),
        }
    };
    simulation.run(test).map_err(|error| error.to_string())?
}

#[test]
fn no_file_that_is_called_whole_lacks_what_was_written() {
    let seeds = std::env::var("STARFISH_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60);
    let failed: Vec<String> =
        (0..seeds).filter_map(|seed| run(seed).err().map(|why| format!("seed {seed}: {why}"))).collect();
    assert!(failed.is_empty(), "{} of {seeds}:\n{}", failed.len(), failed[..failed.len().min(10)].join("\n"));
}
