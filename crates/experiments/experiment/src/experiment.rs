//! An experiment as a value: a machine, how its nodes work, files, and jobs.

use std::collections::BTreeSet;
use std::fmt;

use description::MachineDescription;
use fs::{ClientSettings, IoNodeSettings};
use jobs::{Contents, Job};
use machine::Duration;

use crate::Error;

/// Jobs on files of a machine. Equal experiments have equal trials.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The machine.
    pub machine: MachineDescription,
    /// How its I/O nodes serve.
    pub io_nodes: IoNodeSettings,
    /// How its clients work.
    pub clients: ClientSettings,
    /// How files lie on each disk.
    pub layout: DiskLayout,
    /// What files contain.
    pub contents: Contents,
    /// The files.
    pub files: Vec<StoredFile>,
    /// The jobs. Time begins for all of them together.
    pub jobs: Vec<Launch>,
    /// Where all randomness comes from.
    pub seed: u64,
}

const NO_METADATA: &str =
    "it has no place for names; describe in [metadata] what they take, as `loopback` does";

/// How a file lies on each disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskLayout {
    /// From the first block of the disk on.
    Contiguous,
    /// As contiguous, but each file right behind the one that was made before it, without space ahead for growing.
    Packed,
    /// Each block at a random place of its own.
    Random,
}

/// A file of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// What jobs call it.
    pub name: String,
    /// Its size in bytes; of a file that a job makes, what it will be.
    pub bytes: u64,
    /// Bytes of a block, and of a stripe unit.
    pub block_bytes: u64,
    /// Where it lies.
    pub place: FilePlace,
    /// How it comes to be what jobs find.
    pub beginning: Beginning,
}

/// Where a file lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePlace {
    /// Striped over all disks.
    AllDisks,
    /// Striped over these disks, in this order: disk *i* is that of stripe *i* of a file over all disks.
    Disks(Vec<u32>),
    /// In one piece on the first disk of the I/O node of this index, without a file system.
    Local(u32),
}

/// How a file comes to be what jobs find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// It has no stripes: a job makes them.
    Absent,
    /// Its stripes are made, with nothing in them.
    Empty,
    /// Its stripes are made, with space on the disks for what it will be: zeros until a job writes it.
    Allocated,
    /// Its contents are on the disks, and in no cache.
    OnDisks,
    /// A client has written its contents, as users do: what I/O nodes keep in their caches is there.
    Written,
}

/// A job, and who does it when.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// What is done.
    pub job: Job,
    /// Its members in the order of their ranks, by the index of their nodes in the machine: compute nodes first, then
    /// I/O nodes.
    pub nodes: Vec<u32>,
    /// When its first member begins.
    pub start: Duration,
    /// How much later than its predecessor each other member begins.
    pub stagger: Duration,
}

impl StoredFile {
    /// A file over all disks, in no cache, as those of the reports are.
    pub fn on_disks(name: &str, bytes: u64, block_bytes: u64) -> Self {
        let (place, beginning) = (FilePlace::AllDisks, Beginning::OnDisks);
        StoredFile { name: name.to_owned(), bytes, block_bytes, place, beginning }
    }
}

impl Launch {
    /// The job, begun by these nodes at once.
    pub fn at_once(job: Job, nodes: impl IntoIterator<Item = u32>) -> Self {
        let nodes = nodes.into_iter().collect();
        Launch { job, nodes, start: Duration::ZERO, stagger: Duration::ZERO }
    }
}

impl Experiment {
    /// A machine whose I/O nodes and clients work as agents and their clients do, with nothing to do yet.
    pub fn with_agents(machine: MachineDescription) -> Self {
        Experiment {
            machine,
            io_nodes: IoNodeSettings::agent(),
            clients: ClientSettings::agent(),
            layout: DiskLayout::Contiguous,
            contents: Contents::Phantom,
            files: Vec::new(),
            jobs: Vec::new(),
            seed: 1,
        }
    }

    /// Checks what can be checked before anything runs.
    pub fn check(&self) -> Result<(), Error> {
        for launch in &self.jobs {
            launch.job.check(launch.nodes.len() as u32)?;
            if launch.job.has_names() && self.machine.metadata.is_none() {
                return Err(Error::invalid(format!("{}: {NO_METADATA}", self.machine.name)));
            }
            self.check_nodes(launch)?;
        }
        let mut names = BTreeSet::new();
        if let Some(file) = self.files.iter().find(|file| !names.insert(&file.name)) {
            return Err(Error::invalid(format!("there are two files {}", file.name)));
        }
        self.check_disks()
    }

    /// Members of a job are on nodes of the kind that it needs, each on another.
    fn check_nodes(&self, launch: &Launch) -> Result<(), Error> {
        let (compute, all) = (self.machine.nodes.compute.value, self.machine.node_count());
        let (kind, allowed) = match launch.job.has_clients() {
            true => ("compute nodes", 0..compute),
            false => ("I/O nodes", compute..all),
        };
        let mut seen = BTreeSet::new();
        let wrong = launch.nodes.iter().find(|node| !allowed.contains(node) || !seen.insert(**node));
        if launch.nodes.is_empty() || wrong.is_some() {
            let what = wrong.map_or("none".to_owned(), |node| format!("node {node}"));
            let (first, end, job) = (allowed.start, allowed.end, &launch.job);
            let text =
                format!("{job}: expected {kind}, of {first} to {} and each once, not {what}", end.max(1) - 1);
            return Err(Error::invalid(text));
        }
        Ok(())
    }

    /// Files fit onto their disks, block by block.
    fn check_disks(&self) -> Result<(), Error> {
        let machine = &self.machine;
        let model = machine.disk().map(|disk| disk::Model::new(disk, 0.0));
        let mut used = vec![0; (machine.nodes.io.value * machine.disks.per_io_node.value) as usize];
        for file in &self.files {
            let (block, bytes) = (file.block_bytes, file.bytes);
            if block == 0 {
                return Err(Error::invalid("a block must have at least one byte"));
            }
            let disks = self.disks_of(file)?;
            let Some(model) = &model else { continue };
            let sector = model.sector_bytes();
            if !block.is_multiple_of(sector) {
                let text = format!(
                    "blocks of {block} bytes on disks whose sectors have {sector}: make it a multiple"
                );
                return Err(Error::invalid(text));
            }
            let needed = bytes.div_ceil(block).div_ceil(disks.len() as u64);
            let sectors = model.capacity_sectors();
            for &disk in &disks {
                // Each block begins where one can.
                let there = (sectors - used[disk]) / (block / sector);
                if needed > there {
                    let count = disks.len();
                    let text = format!(
                        "a file of {bytes} bytes is {needed} blocks of {block} bytes on each of {count} disks, which has \
                         room for {there}: make the file smaller, or the disks more"
                    );
                    return Err(Error::invalid(text));
                }
                used[disk] += needed * (block / sector);
            }
        }
        Ok(())
    }

    /// The disks of a file, by index.
    fn disks_of(&self, file: &StoredFile) -> Result<Vec<usize>, Error> {
        let (nodes, per_node) = (self.machine.nodes.io.value, self.machine.disks.per_io_node.value);
        let all = nodes * per_node;
        let name = &file.name;
        match &file.place {
            FilePlace::AllDisks => Ok((0..all as usize).collect()),
            FilePlace::Disks(disks) => {
                let mut seen = BTreeSet::new();
                match disks.iter().find(|disk| **disk >= all || !seen.insert(**disk)) {
                    None if !disks.is_empty() => Ok(disks.iter().map(|&disk| disk as usize).collect()),
                    _ => Err(Error::invalid(format!("{name} lies on disks of 0 to {}, each once", all - 1))),
                }
            }
            // The first disks of all nodes come first, each on the next node.
            FilePlace::Local(node) if *node < nodes => Ok(vec![*node as usize]),
            FilePlace::Local(node) => {
                Err(Error::invalid(format!("{name} lies on I/O node {node}, of {nodes}")))
            }
        }
    }

    /// The unit in which files get space on disks: one that all their blocks are multiples of.
    pub(crate) fn allocation_bytes(&self) -> Option<u64> {
        self.files.iter().map(|file| file.block_bytes).reduce(greatest_common_divisor)
    }
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

impl fmt::Display for Experiment {
    /// What it is, for people, in a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, launch) in self.jobs.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { "; " }, launch.job)?;
        }
        write!(f, ", {}", self.layout)
    }
}

impl fmt::Display for DiskLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DiskLayout::Contiguous => "contiguous",
            DiskLayout::Packed => "packed",
            DiskLayout::Random => "random",
        })
    }
}

impl std::str::FromStr for DiskLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "contiguous" => Ok(DiskLayout::Contiguous),
            "packed" => Ok(DiskLayout::Packed),
            "random" => Ok(DiskLayout::Random),
            _ => Err(format!("no layout {text:?}: contiguous, packed or random")),
        }
    }
}
