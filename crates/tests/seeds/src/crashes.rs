//! Files that are told to be whole are whole, at whatever point a client or an I/O node is stopped.
//!
//! A program makes, replaces, extends, cuts and removes files, one after the other. At some point of its run, drawn by
//! the seed, one of the nodes crashes and is started anew; often another one does soon after. Then the files that are
//! left are checked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use fs::{Client, Configuration, Error, File, FileId, IoNodeSettings, Threads};
use layout::Striping;
use machine::{Duration, Machine, Memory, NodeId};
use sim::conformance::end_after;
use sim::{SimMachine, Simulation};

use crate::crashing_nodes::CrashingNodes;
use crate::draw::Draw;
use crate::testbed::{BLOCK, LIMIT, drawn_machine, drawn_settings};

const PIECE: u64 = 700;
const NAMES: [&str; 2] = ["one", "two"];

/// What the program does at most. On machines without costs it would otherwise do very much before it is stopped.
const STEPS: u64 = 40;

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

/// Goes on making and changing files until something fails, or for long enough.
async fn program(client: Client<SimMachine>, expected: Rc<Expected>, mut draw: Draw) -> fs::Result<()> {
    for step in 1..=STEPS {
        let name = NAMES[draw.below(2) as usize];
        let file = FileId(step);
        let version = Version { fill: step as u8 | 1, bytes: 1 + draw.below(12 * BLOCK) };
        let striping =
            Striping::new(BLOCK, 1 + draw.below(u64::from(client.disks())) as u32).expect("a striping");
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

/// The version of a file found under a name, read by a client that has seen nothing of what went before.
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

/// The run of a seed: an error says what is there that cannot be, or that something went wrong where nothing may.
pub(crate) fn run(seed: u64) -> Result<(), String> {
    let mut draw = Draw::of(seed);
    let base = Configuration::ALL[seed as usize % 2];
    let io_nodes = 1 + draw.below(4) as u32;
    let mut description = drawn_machine(&mut draw);
    description.nodes.io.value = io_nodes;
    description.nodes.compute.value = 3;
    description.disks.per_io_node.value = 1;
    let simulation = Simulation::new(&description, drawn_settings(&mut draw, seed));
    simulation.expect_crashes();
    let settings = IoNodeSettings {
        cache_blocks: 4 + draw.below(8) as usize,
        block_bytes_max: BLOCK,
        threads: draw.one_of(&[Threads::Pool(2), Threads::Pool(4), Threads::PerRequest]),
        ..base.io_node()
    };
    let (writer, looker) = (simulation.compute_nodes()[0].clone(), simulation.compute_nodes()[1].clone());
    let meddler = simulation.compute_nodes()[2].clone();
    end_after(&looker, LIMIT);
    let io_nodes = simulation.io_nodes().to_vec();
    let test = async move {
        let crashing = Rc::new(CrashingNodes::start(io_nodes, settings));
        let names = crashing.names();
        let expected = Rc::new(Expected::default());
        let client = connect(base, &writer, &names).await.map_err(|error| error.to_string())?;
        let (started, told, excuse) = (draw.clone(), expected.clone(), crashing.clone());
        writer.spawn("program", async move {
            // When an I/O node crashes, what it was doing stays undone.
            excuse.excused(program(client, told, started).await)
        });
        // A client that looks at the files meanwhile publishes what others have committed.
        let other = connect(base, &meddler, &names).await.map_err(|error| error.to_string())?;
        let (looking, mut pauses) = (meddler.clone(), Draw::of(!seed));
        meddler.spawn("looker", async move {
            while other.stat(NAMES[0]).await.is_ok() || other.list().await.is_ok() {
                // From next to none to some milliseconds, of all orders alike often.
                let most = 1 << pauses.below(23);
                let pause = Duration::from_nanos(1 + pauses.below(most));
                looking.sleep_until(looking.now() + pause).await;
            }
            Ok(())
        });
        let pause = Duration::from_nanos(1 + draw.below(400_000_000));
        writer.sleep_until(writer.now() + pause).await;
        let mut victims = 1 + draw.below(3);
        let mut stopped = false;
        while victims > 0 {
            victims -= 1;
            match draw.below(4) {
                0 => {
                    writer.crash(draw.below(u64::MAX >> 34));
                    stopped = true;
                }
                _ => {
                    let io_node = draw.below(crashing.count()) as usize;
                    crashing.crash(io_node, draw.below(u64::MAX >> 34));
                }
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
