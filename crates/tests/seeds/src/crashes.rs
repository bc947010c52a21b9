//! Flushed data are on the disks after a crash of a client or an I/O node at any point.
//!
//! A program creates, overwrites, extends, truncates and removes files sequentially, and flushes each change. At a
//! point of its run drawn from the seed, one of the nodes crashes and is restarted; often another one soon after. Then
//! another client checks the remaining files.

use std::cell::RefCell;
use std::rc::Rc;

use fs::{Client, Configuration, File, FileId, IoNodeSettings, NumberedFile, Threads};
use layout::Striping;
use machine::{Duration, Machine, Memory, NodeId};
use sim::conformance::end_after;
use sim::{SimMachine, Simulation};

use crate::crashing_nodes::CrashingNodes;
use crate::draw::Draw;
use crate::testbed::{BLOCK, LIMIT, drawn_machine, drawn_settings};

const PIECE: u64 = 700;

/// Number of files at a time.
const FILES: usize = 2;

/// Maximum number of steps of the program. On machines without costs it would otherwise take very many before its
/// crash.
const STEPS: u64 = 40;

/// Contents of a file: `bytes` bytes, each of them `fill`.
#[derive(Clone, Debug, PartialEq)]
struct Version {
    fill: u8,
    bytes: u64,
}

/// File that the program has begun.
#[derive(Clone, Debug)]
struct Known {
    file: NumberedFile,
    /// Last flushed version.
    flushed: Version,
    /// Version being written.
    begun: Option<Version>,
    /// True if the program is removing the file.
    is_going: bool,
}

impl Known {
    /// Returns the bytes that may be at an offset.
    fn possible(&self, offset: u64) -> Vec<u8> {
        let versions = [Some(&self.flushed), self.begun.as_ref()];
        let all = versions.into_iter().flatten();
        all.map(|version| if offset < version.bytes { version.fill } else { 0 }).collect()
    }

    fn bytes_max(&self) -> u64 {
        self.begun.as_ref().map_or(0, |begun| begun.bytes).max(self.flushed.bytes)
    }
}

/// The program's files and their possible contents.
type Expected = Rc<RefCell<[Option<Known>; FILES]>>;

async fn connect(
    base: Configuration,
    machine: &SimMachine,
    io_nodes: &[NodeId],
) -> fs::Result<Client<SimMachine>> {
    Client::connect(machine.clone(), io_nodes.to_vec(), base.client()).await
}

/// Writes piece by piece: the I/O node's incarnation may change between pieces.
async fn write(file: &File<SimMachine>, from: u64, version: &Version) -> fs::Result<()> {
    for offset in (from..version.bytes).step_by(PIECE as usize) {
        let bytes = PIECE.min(version.bytes - offset);
        file.write(offset, bytes, &Memory::real(vec![version.fill; bytes as usize]), 0).await?;
    }
    Ok(())
}

/// Creates and changes files until an operation fails, or up to the limit of steps.
async fn program(client: Client<SimMachine>, expected: Expected, mut draw: Draw) -> fs::Result<()> {
    for step in 1..=STEPS {
        let index = draw.below(FILES as u64) as usize;
        let drawn = Version { fill: step as u8 | 1, bytes: 1 + draw.below(12 * BLOCK) };
        let known = expected.borrow()[index].clone();
        let Some(Known { file, flushed, .. }) = known else {
            let stripes = 1 + draw.below(u64::from(client.disks())) as u32;
            let striping = Striping::new(BLOCK, stripes).expect("a striping");
            let file = client.new_numbered(FileId(1 + step), striping).await?;
            let flushed = Version { fill: 0, bytes: 0 };
            change(&client, &expected, index, Known { file, flushed, begun: Some(drawn), is_going: false })
                .await?;
            continue;
        };
        let begun = match draw.below(6) {
            0 => {
                expected.borrow_mut()[index].as_mut().expect("it is known").is_going = true;
                client.remove_numbered(&[file.number]).await?;
                expected.borrow_mut()[index] = None;
                continue;
            }
            // Shorter, with the same remaining contents.
            1 => Version { bytes: draw.below(flushed.bytes + 1), ..flushed },
            2 | 3 => Version { bytes: flushed.bytes + drawn.bytes, ..flushed },
            _ => Version { bytes: flushed.bytes.max(drawn.bytes), ..drawn },
        };
        change(&client, &expected, index, Known { file, flushed, begun: Some(begun), is_going: false })
            .await?;
    }
    Ok(())
}

/// Writes the begun version of a file, and flushes it.
async fn change(
    client: &Client<SimMachine>,
    expected: &Expected,
    index: usize,
    known: Known,
) -> fs::Result<()> {
    let (flushed, begun) = (known.flushed.clone(), known.begun.clone().expect("it is begun"));
    expected.borrow_mut()[index] = Some(known.clone());
    let file = client.numbered(NumberedFile { bytes: flushed.bytes, ..known.file.clone() }).await?;
    match begun.bytes < flushed.bytes {
        true => file.truncate(begun.bytes).await?,
        false if begun.fill == flushed.fill => write(&file, flushed.bytes, &begun).await?,
        false => write(&file, 0, &begun).await?,
    }
    file.flush().await?;
    expected.borrow_mut()[index] = Some(Known { flushed: begun, begun: None, ..known });
    Ok(())
}

/// Checks a file as read by a client without knowledge of earlier operations.
async fn check(client: &Client<SimMachine>, known: &Known) -> Result<(), String> {
    let bytes = known.bytes_max();
    let file = client.numbered(NumberedFile { bytes, ..known.file.clone() }).await;
    let memory = Memory::real(vec![0; bytes as usize]);
    let read = async { file?.read(0, bytes, &memory, 0).await }.await.map_err(|error| error.to_string())?;
    let data = memory.into_vec().expect("real memory");
    let wrong = (0..).zip(&data).find(|(offset, byte)| !known.possible(*offset).contains(byte));
    match wrong {
        None if read == bytes => Ok(()),
        None => Err(format!("read {read} bytes of {known:?}")),
        Some((offset, byte)) => Err(format!("byte {offset} is {byte} of {known:?}")),
    }
}

/// Runs the program of this seed. Fails if the files have an impossible state, or an operation fails that must not.
pub(crate) fn run(seed: u64) -> Result<(), String> {
    let mut draw = Draw::of(seed);
    let base = Configuration::ALL[seed as usize % 2];
    let io_nodes = 1 + draw.below(4) as u32;
    let mut description = drawn_machine(&mut draw);
    description.nodes.io.value = io_nodes;
    description.nodes.compute.value = 2;
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
    end_after(&looker, LIMIT);
    let io_nodes = simulation.io_nodes().to_vec();
    let test = async move {
        let crashing = Rc::new(CrashingNodes::start(io_nodes, settings));
        let names = crashing.names();
        let expected = Expected::default();
        let client = connect(base, &writer, &names).await.map_err(|error| error.to_string())?;
        let (started, told, excuse) = (draw.clone(), expected.clone(), crashing.clone());
        writer.spawn("program", async move {
            // When an I/O node crashes, its operations in flight fail.
            excuse.excused(program(client, told, started).await)
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
        // A program that has not noticed a crash continues for a while, and is then stopped.
        if !stopped {
            looker.sleep_until(looker.now() + Duration::from_millis(50)).await;
            writer.crash(0);
        }
        let client = connect(base, &looker, &names).await.map_err(|error| error.to_string())?;
        let known: Vec<Known> = expected.borrow().iter().flatten().cloned().collect();
        // Remains of a file that was being removed are removed below.
        for known in known.iter().filter(|known| !known.is_going) {
            check(&client, known).await?;
        }
        let numbers: Vec<FileId> = known.iter().map(|known| known.file.number).collect();
        client.remove_numbered(&numbers).await.map_err(|error| error.to_string())?;
        match client.list_numbered().await.map_err(|error| error.to_string())? {
            left if left.is_empty() => Ok(()),
            left => Err(format!("{left:?} are left")),
        }
    };
    simulation.run(test).map_err(|error| error.to_string())?
}
