//! An experiment as a value: a machine, settings of its nodes, files, and jobs.

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
    /// Machine.
    pub machine: MachineDescription,
    /// Settings of its I/O nodes.
    pub io_nodes: IoNodeSettings,
    /// Settings of its clients.
    pub clients: ClientSettings,
    /// Layout of the files on each disk.
    pub layout: DiskLayout,
    /// Kind of contents of the files.
    pub contents: Contents,
    /// Files.
    pub files: Vec<StoredFile>,
    /// Jobs. Their start times count from a common start.
    pub jobs: Vec<Launch>,
    /// Seed of all random numbers.
    pub seed: u64,
}

const NO_METADATA: &str =
    "it has no metadata server; describe its costs in a section [metadata], as `loopback` does";

/// Layout of a file on each disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskLayout {
    /// Contiguous, beginning with the first block of the disk.
    Contiguous,
    /// Contiguous, directly after the file that was created before, without reserved space for growth.
    Packed,
    /// Each block at a random place.
    Random,
}

/// A file of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Name by which jobs refer to the file.
    pub name: String,
    /// Size in bytes. If a job creates the file, this is the final size.
    pub bytes: u64,
    /// Size in bytes of a block, and of a stripe unit.
    pub block_bytes: u64,
    /// Place of the file.
    pub place: FilePlace,
    /// State of the file when the jobs start.
    pub beginning: Beginning,
}

/// Place of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePlace {
    /// Striped over all disks.
    AllDisks,
    /// Striped over these disks, in this order: stripe *i* is on disk *i* of the list.
    Disks(Vec<u32>),
    /// Whole on the first disk of the I/O node with this index, without a file system.
    Local(u32),
}

/// State of a file when the jobs start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// No stripes exist; a job creates them.
    Absent,
    /// The stripes exist and are empty.
    Empty,
    /// The stripes have allocated space for the final size. They read as zeros until a job writes.
    Allocated,
    /// The contents are on the disks, and caches are empty.
    OnDisks,
    /// A client has written the file, as programs do, so the caches of I/O nodes may have contents.
    Written,
}

/// A job with its nodes and start times.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Job to run.
    pub job: Job,
    /// Nodes of the members in the order of their ranks, as indexes in the machine: compute nodes first, then I/O
    /// nodes.
    pub nodes: Vec<u32>,
    /// Start time of the first member.
    pub start: Duration,
    /// Delay between the starts of consecutive members.
    pub stagger: Duration,
}

impl StoredFile {
    /// Creates a file that is striped over all disks, with empty caches, as in the reports.
    pub fn on_disks(name: &str, bytes: u64, block_bytes: u64) -> Self {
        let (place, beginning) = (FilePlace::AllDisks, Beginning::OnDisks);
        StoredFile { name: name.to_owned(), bytes, block_bytes, place, beginning }
    }
}

impl Launch {
    /// Creates a launch in which all members start at the same time.
    pub fn at_once(job: Job, nodes: impl IntoIterator<Item = u32>) -> Self {
        let nodes = nodes.into_iter().collect();
        Launch { job, nodes, start: Duration::ZERO, stagger: Duration::ZERO }
    }
}

impl Experiment {
    /// Creates an experiment without jobs, with the settings of agents for I/O nodes and of agents' clients for
    /// clients.
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

    /// Checks the experiment as far as possible without running it.
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
            return Err(Error::invalid(format!("two files have the name {}", file.name)));
        }
        self.check_disks()
    }

    /// Checks that the members of a job are on distinct nodes of the kind that the job needs.
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

    /// Checks that the blocks of the files fit on their disks.
    fn check_disks(&self) -> Result<(), Error> {
        let machine = &self.machine;
        let model = machine.disk().map(|disk| disk::Model::new(disk, 0.0));
        let mut used = vec![0; (machine.nodes.io.value * machine.disks.per_io_node.value) as usize];
        for file in &self.files {
            let (block, bytes) = (file.block_bytes, file.bytes);
            if block == 0 {
                return Err(Error::invalid("a block needs at least one byte"));
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
                // Each block begins at a multiple of its size.
                let there = (sectors - used[disk]) / (block / sector);
                if needed > there {
                    let count = disks.len();
                    let text = format!(
                        "a file of {bytes} bytes needs {needed} blocks of {block} bytes on each of {count} \
                         disks, which have room for {there}: make the file smaller, or use more disks"
                    );
                    return Err(Error::invalid(text));
                }
                used[disk] += needed * (block / sector);
            }
        }
        Ok(())
    }

    /// Returns the disks of a file, by index.
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
                    _ => Err(Error::invalid(format!("{name} must be on distinct disks of 0 to {}", all - 1))),
                }
            }
            // Disk indexes run over the nodes first: disks 0 to n - 1 are the first disks of the n nodes.
            FilePlace::Local(node) if *node < nodes => Ok(vec![*node as usize]),
            FilePlace::Local(node) => {
                Err(Error::invalid(format!("{name} is on I/O node {node}, but there are {nodes}")))
            }
        }
    }

    /// Returns the allocation unit of files on disks: a common divisor of all block sizes.
    pub(crate) fn allocation_bytes(&self) -> Option<u64> {
        self.files.iter().map(|file| file.block_bytes).reduce(greatest_common_divisor)
    }
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

impl fmt::Display for Experiment {
    /// Writes a description for people, one line.
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
