//! Description of a machine: its nodes, the cost of work on their processors, and the network.
//!
//! A cost is a number of cycles; some kinds of work also cost cycles for each word or block. A description must give
//! the cost of every kind of work, even if it is 0: a forgotten cost would look like zero.
//!
//! Any value can be overridden by its dotted key before the description is checked ([`MachineDescription::load_with`]),
//! so that one file describes a whole series of machines.

use std::borrow::Cow;
use std::path::Path;

use machine::Work;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::load::{Description, Error, Misfit, from_elsewhere, in_folder, text_of};
use crate::quantity::{Bytes, Cycles, Frequency, Rate, Time};
use crate::suggestion::unknown;
use crate::{DiskDescription, Sourced};

/// Machine of compute nodes and I/O nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineDescription {
    /// Name of the machine.
    pub name: String,
    /// Number of nodes of each kind.
    pub nodes: Nodes,
    /// Processor of every node.
    pub processor: Processor,
    /// Network between the nodes.
    pub network: Network,
    /// Disks of the I/O nodes.
    pub disks: Disks,
    /// Buses between disks and memory of the I/O nodes. Without buses, transfers between disk and memory take no time.
    pub buses: Option<Buses>,
    /// Costs of metadata on I/O nodes. Without them, I/O nodes cannot store metadata.
    pub metadata: Option<MetadataCosts>,
    /// Disk named by `disks.model`, as it was when the description was read: a later change of the disk's file does not
    /// change the machine.
    #[serde(skip)]
    disk: Option<DiskDescription>,
}

/// Number of nodes of each kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// Nodes that run the application.
    pub compute: Sourced<u32>,
    /// Nodes with disks.
    pub io: Sourced<u32>,
}

/// Processor of a node, or the share of a process in the processors of a computer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Cycles per second.
    pub clock: Sourced<Frequency>,
    /// Size of the words counted by costs per word.
    pub word: Sourced<Bytes>,
    /// Number of processors shared by all nodes, if the nodes are processes of one computer: work of a node waits for a
    /// free processor. Default: each node has a separate processor.
    pub shared: Option<Sourced<u32>>,
    /// Costs of the machine's own activities.
    pub system: SystemCosts,
    /// Costs of the file system's work, by the name of the kind of work.
    pub cost: WorkCosts,
}

/// Costs of activities that the machine starts without a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemCosts {
    /// A thread passes a message to the network.
    pub send_message: Sourced<Cycles>,
    /// An interrupt receives a message.
    pub receive_message: Sourced<Cycles>,
    /// An interrupt reports the end of a disk transfer.
    pub disk_interrupt: Sourced<Cycles>,
    /// The processor switches to a thread other than the previous one.
    pub switch_thread: Sourced<Cycles>,
}

/// Cost of every kind of [`Work`].
#[derive(Clone, Debug)]
pub struct WorkCosts([WorkCost; Work::NAMES.len()]);

/// Cost of one kind of work.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkCost {
    /// Priority at which the processor does this work.
    #[serde(default)]
    pub level: Level,
    /// Fixed cost, independent of the size.
    pub cycles: Sourced<Cycles>,
    /// Cost of each word, for work on bytes.
    pub cycles_per_word: Option<Sourced<Cycles>>,
    /// Cost of each item, for work on blocks, pieces or other items.
    pub cycles_per_item: Option<Sourced<Cycles>>,
}

/// Priority at which a processor does work. It determines the order in which the processor serves the waiting threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// In order of arrival, one thread after the other.
    #[default]
    Thread,
    /// Like `Thread`, but after the threads that wait when the work begins, because the thread has yielded.
    Yielding,
    /// Like `Thread`, but before all other waiting threads: next after the running thread releases the processor.
    Urgent,
    /// Before all threads, one interrupt after the other.
    Interrupt,
}

/// Network between the nodes.
#[derive(Clone, Debug)]
pub struct Network {
    /// Bytes on the wire for each message, besides its header and payload.
    pub envelope: Sourced<Bytes>,
    /// Path of messages between nodes.
    pub topology: Topology,
}

/// Path of messages between nodes, selected by `kind`.
#[derive(Clone, Debug)]
pub enum Topology {
    /// `kind = "constant"`: every message has the same delay, independent of other messages.
    Constant {
        /// Delay of every message.
        delay: Sourced<Time>,
    },
    /// `kind = "switch"`: through the link of the sender, a fabric without contention, and the link of the receiver.
    Switch {
        /// Rate of the link of every node, in each direction.
        link_bandwidth: Sourced<Rate>,
        /// Delay of a message in the fabric.
        latency: Sourced<Time>,
    },
    /// `kind = "torus"`: from router to router of a two-dimensional torus.
    Torus(Box<Torus>),
}

/// Two-dimensional torus with a router, and at most one node, at every crossing.
#[derive(Clone, Debug)]
pub struct Torus {
    /// Routers in each row.
    pub columns: Sourced<u32>,
    /// Routers in each column.
    pub rows: Sourced<u32>,
    /// Rate of every link in each direction, including links between a node and its router.
    pub link_bandwidth: Sourced<Rate>,
    /// Time for the head of a message to pass a router.
    pub router_latency: Sourced<Time>,
    /// Router of the first node, counted row by row; the other nodes follow.
    pub first_router: Sourced<u32>,
    /// Order of the nodes on the routers.
    pub placement: Sourced<Placement>,
}

/// Order in which nodes are assigned to the routers of a torus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// All compute nodes, then all I/O nodes.
    ComputeThenIo,
    /// Compute nodes and I/O nodes alternately, then the rest of the larger group.
    Interleaved,
}

/// Disks of the I/O nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disks {
    /// Name or path of a disk description, or `"memory"` for disks that take no time. A path is relative to the
    /// machine's file.
    pub model: Sourced<String>,
    /// Number of disks of each I/O node.
    pub per_io_node: Sourced<u32>,
    /// True if a flush waits until the contents of the disk's own buffer are on the medium.
    pub wait_for_disk_buffer: Sourced<bool>,
    /// Time to pass a disk access, or an operation on an object's name, to another thread of the node and to return its
    /// result. The processor is free during this time. Default: the node's own thread does the work.
    pub hand_over: Option<Sourced<Time>>,
}

/// Buses of the I/O nodes. A node's disks are assigned to its buses in turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buses {
    /// Number of buses of each I/O node.
    pub per_io_node: Sourced<u32>,
    /// Rate of each bus.
    pub bandwidth: Sourced<Rate>,
}

/// Costs of metadata on I/O nodes: transactions, and the names of objects on their disks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetadataCosts {
    /// Time to pass a transaction to another thread of the node and to return its result. The processor is free during
    /// this time. While the other thread is idle, read-only transactions are executed without it.
    pub hand_over: Sourced<Time>,
    /// Processor time of each commit. One commit serves all transactions that wait when it begins.
    pub commit: Sourced<Time>,
    /// Additional processor time of each transaction.
    pub transaction: Sourced<Time>,
    /// Processor time of each entry that a transaction reads.
    pub entry: Sourced<Time>,
    /// Processor time of each entry that a transaction changes.
    pub change: Sourced<Time>,
    /// Processor time to create an object on a disk.
    pub make_object: Sourced<Time>,
    /// Processor time to look up an object on a disk, to open or remove it, including lookups of missing objects.
    pub find_object: Sourced<Time>,
    /// Processor time to remove an existing object, in addition to the lookup.
    pub remove_object: Sourced<Time>,
    /// Device time to flush transactions to stable storage, independent of their number.
    pub flush: Sourced<Time>,
}

impl WorkCosts {
    /// Returns `cost` for every kind of work, for descriptions made by programs.
    pub fn uniform(cost: &WorkCost) -> Self {
        WorkCosts(std::array::from_fn(|_| cost.clone()))
    }

    /// Returns the cost of `work`.
    pub fn of(&self, work: Work) -> &WorkCost {
        &self.0[work.index()]
    }

    /// Returns the cost of the work named `Work::NAMES[index]`.
    pub fn at(&self, index: usize) -> &WorkCost {
        &self.0[index]
    }

    /// Like [`at`](Self::at), but mutable.
    pub fn at_mut(&mut self, index: usize) -> &mut WorkCost {
        &mut self.0[index]
    }
}

/// Model name of disks that take no time.
const MEMORY: &str = "memory";

/// Dotted key of the disks' model.
const DISK_MODEL: &str = "disks.model";

impl Description for MachineDescription {
    const KIND: &'static str = "machine";

    const BUILT_IN: &'static [(&'static str, &'static str)] = &[
        ("starfish-1996", include_str!("../../../../machines/starfish-1996.toml")),
        ("enwrich-1995", include_str!("../../../../machines/enwrich-1995.toml")),
        ("cluster-switch", include_str!("../../../../machines/cluster-switch.toml")),
        ("loopback", include_str!("../../../../machines/loopback.toml")),
        ("pdiol-2003", include_str!("../../../../machines/pdiol-2003.toml")),
        ("shared-disks-1996", include_str!("../../../../machines/shared-disks-1996.toml")),
        ("golden", include_str!("../../../../machines/golden.toml")),
    ];

    fn decode(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    fn checked(mut self, folder: &Path) -> Result<Self, Misfit> {
        for count in [&self.nodes.compute, &self.nodes.io] {
            check_count(count, NODES_MAX, "nodes")?;
        }
        check_count(&self.disks.per_io_node, DISKS_PER_NODE_MAX, "disks")?;
        if let Some(buses) = &self.buses {
            check_count(&buses.per_io_node, DISKS_PER_NODE_MAX, "buses")?;
            buses.per_io_node.ensure(buses.per_io_node.value <= self.disks.per_io_node.value, || {
                format!("expected no more buses than the {} disks", self.disks.per_io_node.value)
            })?;
        }
        if let Some(costs) = &self.metadata {
            let MetadataCosts {
                hand_over,
                commit,
                transaction,
                entry,
                change,
                make_object,
                find_object,
                remove_object,
                flush,
            } = costs;
            let objects = [make_object, find_object, remove_object];
            [hand_over, commit, transaction, entry, change, flush]
                .into_iter()
                .chain(objects)
                .try_for_each(check_time)?;
        }
        self.disks.hand_over.iter().try_for_each(check_time)?;
        self.processor.check()?;
        self.network.check(self.node_count())?;
        let model = &self.disks.model;
        if model.value != MEMORY {
            let disk = DiskDescription::load(&in_folder(&model.value, folder));
            self.disk = Some(disk.map_err(|error| model.misfit(error.to_string()))?);
        }
        Ok(self)
    }
}

impl MachineDescription {
    /// Like [`load`](Description::load), but replaces values first: pairs of a dotted key, such as
    /// `network.link_bandwidth`, and the new value, such as `400e6 B/s`.
    pub fn load_with(name_or_path: &str, overrides: &[(&str, &str)]) -> Result<Self, Error> {
        let (text, file) = text_of::<Self>(name_or_path)?;
        Self::parse_with(&text, &file, overrides)
    }

    /// Like [`parse`](Description::parse), but replaces values first. If the new number of nodes does not fit the
    /// torus, the torus is enlarged, unless its size is replaced too.
    ///
    /// # Errors
    /// Fails with [`Error::Override`], which names the replaced values, if `text` is valid without them.
    pub fn parse_with(text: &str, file: &str, overrides: &[(&str, &str)]) -> Result<Self, Error> {
        let replaced = Self::replace_values(text, file, overrides);
        let parsed = replaced.and_then(|replaced| Self::parse(&replaced, file));
        parsed.map_err(|error| match (error, Self::parse(text, file)) {
            (Error::Refused { message, .. }, Ok(_)) => {
                Error::Override { overrides: to_blame(text, file, overrides), message }
            }
            // Mistakes in the text itself take precedence.
            (Error::Override { .. }, Err(own)) => own,
            (error, _) => error,
        })
    }

    /// Returns the text that [`parse_with`](Self::parse_with) parses: `text` with values replaced and line numbers
    /// unchanged. If the path of a disk is replaced, the new path is relative to the current directory, not to `file`.
    pub fn replace_values(text: &str, file: &str, overrides: &[(&str, &str)]) -> Result<String, Error> {
        let mut replaced = text.to_owned();
        for (key, value) in overrides {
            let value = match *key {
                DISK_MODEL => Cow::Owned(from_elsewhere(value.trim_matches('"'), file)),
                _ => Cow::Borrowed(*value),
            };
            replaced = replace(&replaced, file, key, &value)?;
        }
        let gives = |key: &str| overrides.iter().any(|(given, _)| given.starts_with(key));
        if !gives("nodes.") || gives("network.columns") || gives("network.rows") {
            return Ok(replaced);
        }
        // A text that cannot be decoded is refused when it is parsed later.
        let Ok(machine) = Self::decode(&replaced) else { return Ok(replaced) };
        let Topology::Torus(torus) = &machine.network.topology else { return Ok(replaced) };
        let nodes = u64::from(machine.nodes.compute.value) + u64::from(machine.nodes.io.value);
        if let Some((columns, rows)) = torus.size_for(nodes).filter(|&size| size != torus.size()) {
            replaced = replace(&replaced, file, "network.columns", &columns.to_string())?;
            replaced = replace(&replaced, file, "network.rows", &rows.to_string())?;
        }
        Ok(replaced)
    }

    /// Returns the number of nodes of both kinds together.
    pub fn node_count(&self) -> u32 {
        self.nodes.compute.value + self.nodes.io.value
    }

    /// Returns the description of the disks, or `None` for disks that take no time.
    pub fn disk(&self) -> Option<&DiskDescription> {
        self.disk.as_ref()
    }
}

impl Processor {
    fn check(&self) -> Result<(), Misfit> {
        let frequency = &self.clock;
        frequency.ensure(frequency.value.0 <= HERTZ_MAX, || format!("expected at most {HERTZ_MAX} Hz"))?;
        let word = &self.word;
        word.ensure((1..=64).contains(&word.value.0), || "expected a word of 1 to 64 bytes".to_owned())?;
        if let Some(shared) = &self.shared {
            check_count(shared, SHARED_PROCESSORS_MAX, "processors")?;
        }
        let SystemCosts { send_message, receive_message, disk_interrupt, switch_thread } = &self.system;
        for cycles in [send_message, receive_message, disk_interrupt, switch_thread] {
            check_cycles(cycles)?;
        }
        for ((cost, name), unit) in self.cost.0.iter().zip(Work::NAMES).zip(Work::UNITS) {
            check_cycles(&cost.cycles)?;
            let (on_bytes, on_items) = (unit == Some("bytes"), unit.is_some_and(|unit| unit != "bytes"));
            for (cycles, units, is_right) in
                [(&cost.cycles_per_word, "words", on_bytes), (&cost.cycles_per_item, "items", on_items)]
            {
                let Some(cycles) = cycles else { continue };
                check_cycles(cycles)?;
                cycles.ensure(is_right, || {
                    format!("expected no such cost, because {name} does not work on {units}")
                })?;
            }
        }
        Ok(())
    }
}

impl Network {
    fn check(&self, node_count: u32) -> Result<(), Misfit> {
        let envelope = &self.envelope;
        envelope.ensure(envelope.value.0 <= 1 << 20, || "expected at most 1048576 bytes".to_owned())?;
        match &self.topology {
            Topology::Constant { delay } => check_time(delay),
            Topology::Switch { latency, .. } => check_time(latency),
            Topology::Torus(torus) => torus.check(node_count),
        }
    }
}

impl Torus {
    /// Returns the number of columns and rows.
    fn size(&self) -> (u32, u32) {
        (self.columns.value, self.rows.value)
    }

    /// Returns columns and rows with routers for `nodes` nodes: the shorter side grows until the routers suffice.
    /// Returns `None` if this would exceed `NODES_MAX`.
    fn size_for(&self, nodes: u64) -> Option<(u32, u32)> {
        let (mut columns, mut rows) = self.size();
        let needed = u64::from(self.first_router.value) + nodes;
        if needed > u64::from(NODES_MAX) {
            return None;
        }
        while u64::from(columns) * u64::from(rows) < needed {
            if columns <= rows { columns += 1 } else { rows += 1 }
        }
        Some((columns, rows))
    }

    fn check(&self, node_count: u32) -> Result<(), Misfit> {
        check_time(&self.router_latency)?;
        check_count(&self.columns, NODES_MAX, "columns")?;
        check_count(&self.rows, NODES_MAX, "rows")?;
        let routers = u64::from(self.columns.value) * u64::from(self.rows.value);
        let (first, nodes) = (u64::from(self.first_router.value), u64::from(node_count));
        self.columns.ensure(routers <= u64::from(NODES_MAX), || {
            format!("expected at most {NODES_MAX} routers, not {routers}")
        })?;
        self.columns.ensure(first + nodes <= routers, || {
            let fitting = self.size_for(nodes).map_or_else(String::new, |(columns, rows)| {
                format!(": for example network.columns = {columns} and network.rows = {rows}")
            });
            format!(
                "expected network.columns times network.rows to be {} or more, for {nodes} nodes from router {first} \
                 on, not {routers}{fitting}",
                first + nodes
            )
        })
    }
}

/// Limit of nodes in a machine. Also the limit of disks in a node, because simulation events store the index of a disk
/// in 24 bits.
const NODES_MAX: u32 = 1 << 16;
const DISKS_PER_NODE_MAX: u32 = 1 << 8;
const _: () = assert!((NODES_MAX as u64) * (DISKS_PER_NODE_MAX as u64) <= 1 << 24);

/// Limit above the processor count of any one computer. A simulation iterates over all processors for each piece of
/// work.
const SHARED_PROCESSORS_MAX: u32 = 1 << 12;

/// Limit of a single cost: the cost of the largest transfer must stay well within 64 bits of nanoseconds.
const CYCLES_MAX: u64 = 1_000_000_000;
const HERTZ_MAX: u64 = 1_000_000_000_000;

fn check_count(count: &Sourced<u32>, max: u32, of: &str) -> Result<(), Misfit> {
    count.ensure((1..=max).contains(&count.value), || format!("expected from 1 to {max} {of}"))
}

fn check_cycles(cycles: &Sourced<Cycles>) -> Result<(), Misfit> {
    cycles.ensure(cycles.value.0 <= CYCLES_MAX, || format!("expected at most {CYCLES_MAX} cycles"))
}

fn check_time(time: &Sourced<Time>) -> Result<(), Misfit> {
    let max = machine::Duration::from_secs(100);
    time.ensure(time.value.0 <= max, || format!("expected a time of at most {max}"))
}

impl<'de> Deserialize<'de> for WorkCosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(WorkCostsVisitor)
    }
}

struct WorkCostsVisitor;

impl<'de> Visitor<'de> for WorkCostsVisitor {
    type Value = WorkCosts;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a table of the costs of all kinds of work")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WorkCosts, A::Error> {
        let mut costs: [Option<WorkCost>; Work::NAMES.len()] = Default::default();
        while let Some(WorkIndex(index)) = map.next_key()? {
            costs[index] = Some(map.next_value()?);
        }
        let missing = costs.iter().zip(Work::NAMES).find(|(cost, _)| cost.is_none());
        if let Some((_, name)) = missing {
            return Err(A::Error::custom(format!(
                "the cost of {name} is missing: expected a value, even if it is 0"
            )));
        }
        Ok(WorkCosts(costs.map(|cost| cost.expect("no cost is missing"))))
    }
}

/// A kind of work: deserialised from its name, stored as its index.
struct WorkIndex(usize);

impl<'de> Deserialize<'de> for WorkIndex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Work::NAMES
            .iter()
            .position(|known| *known == name)
            .map(WorkIndex)
            .ok_or_else(|| D::Error::custom(unknown("work", &name, &Work::NAMES)))
    }
}

/// Keys of all kinds of network. `kind` determines which keys are required or forbidden.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNetwork {
    kind: NetworkKind,
    envelope: Sourced<Bytes>,
    delay: Option<Sourced<Time>>,
    latency: Option<Sourced<Time>>,
    link_bandwidth: Option<Sourced<Rate>>,
    columns: Option<Sourced<u32>>,
    rows: Option<Sourced<u32>>,
    router_latency: Option<Sourced<Time>>,
    first_router: Option<Sourced<u32>>,
    placement: Option<Sourced<Placement>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NetworkKind {
    Constant,
    Switch,
    Torus,
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut written = WrittenNetwork::deserialize(deserializer)?;
        let topology = written.topology().map_err(D::Error::custom)?;
        written.expect_nothing_left().map_err(D::Error::custom)?;
        Ok(Network { envelope: written.envelope, topology })
    }
}

impl WrittenNetwork {
    fn topology(&mut self) -> Result<Topology, String> {
        Ok(match self.kind {
            NetworkKind::Constant => Topology::Constant { delay: needed(&mut self.delay, "delay")? },
            NetworkKind::Switch => Topology::Switch {
                link_bandwidth: needed(&mut self.link_bandwidth, "link_bandwidth")?,
                latency: needed(&mut self.latency, "latency")?,
            },
            NetworkKind::Torus => Topology::Torus(Box::new(Torus {
                columns: needed(&mut self.columns, "columns")?,
                rows: needed(&mut self.rows, "rows")?,
                link_bandwidth: needed(&mut self.link_bandwidth, "link_bandwidth")?,
                router_latency: needed(&mut self.router_latency, "router_latency")?,
                first_router: needed(&mut self.first_router, "first_router")?,
                placement: needed(&mut self.placement, "placement")?,
            })),
        })
    }

    fn expect_nothing_left(&self) -> Result<(), String> {
        let left = [
            ("delay", self.delay.is_some()),
            ("latency", self.latency.is_some()),
            ("link_bandwidth", self.link_bandwidth.is_some()),
            ("columns", self.columns.is_some()),
            ("rows", self.rows.is_some()),
            ("router_latency", self.router_latency.is_some()),
            ("first_router", self.first_router.is_some()),
            ("placement", self.placement.is_some()),
        ];
        match left.iter().find(|(_, is_left)| *is_left) {
            Some((key, _)) => Err(format!("expected no {key} in a network of this kind")),
            None => Ok(()),
        }
    }
}

fn needed<T>(value: &mut Option<T>, key: &str) -> Result<T, String> {
    value.take().ok_or_else(|| format!("{key} is missing: a network of this kind needs it"))
}

/// Returns the cause of the error among `overrides`: the last override whose removal makes `text` valid, or all
/// overrides if there is no such one.
fn to_blame(text: &str, file: &str, overrides: &[(&str, &str)]) -> String {
    let is_fine_without = |index: usize| {
        let others = [&overrides[..index], &overrides[index + 1..]].concat();
        let replaced = MachineDescription::replace_values(text, file, &others);
        replaced.is_ok_and(|text| MachineDescription::parse(&text, file).is_ok())
    };
    let blamed = match (0..overrides.len()).rev().find(|&index| is_fine_without(index)) {
        Some(index) => &overrides[index..=index],
        None => overrides,
    };
    blamed.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

/// Returns `text` with the value at the dotted `key` replaced by `value`. Line numbers do not change.
fn replace(text: &str, file: &str, key: &str, value: &str) -> Result<String, Error> {
    let refuse = |message| Error::Override { overrides: format!("{key}={value}"), message };
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        // Parsing fails with the mistake in the text itself.
        Err(_) => return MachineDescription::parse(text, file).map(|_| text.to_owned()),
    };
    let mut here = table.get_ref();
    let mut steps = key.split('.').peekable();
    while let Some(step) = steps.next() {
        let Some(found) = here.get(step) else {
            let known: Vec<&str> = here.keys().map(|key| key.get_ref().as_ref()).collect();
            return Err(refuse(unknown("key", step, &known)));
        };
        match (found.get_ref(), steps.peek()) {
            (DeValue::Table(inner), None) => {
                let Some(old) = inner.get("value") else {
                    let known: Vec<&str> = inner.keys().map(|key| key.get_ref().as_ref()).collect();
                    return Err(refuse(format!(
                        "expected a longer key, with one of {} after {step}",
                        known.join(", ")
                    )));
                };
                let literal = literal_like(text, old, value).map_err(refuse)?;
                let written = format!("{{ value = {literal}, source = \"override\" }}");
                return Ok(splice(text, found.span(), &written));
            }
            (DeValue::Table(inner), Some(_)) => here = inner,
            (_, None) => {
                let literal = literal_like(text, found, value).map_err(refuse)?;
                return Ok(splice(text, found.span(), &literal));
            }
            (_, Some(next)) => return Err(refuse(format!("{step} is a value and has no key {next:?}"))),
        }
    }
    Err(refuse("expected a key".to_owned()))
}

/// Returns `value` as a TOML literal of the type of `old` in `text`; quotes around strings are optional. Fails with a
/// message that describes the expected value.
fn literal_like(text: &str, old: &Spanned<DeValue<'_>>, value: &str) -> Result<String, String> {
    let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let literal = match old.get_ref() {
        DeValue::String(_) => toml::Value::from(bare).to_string(),
        _ => bare.to_owned(),
    };
    let is_number = |value: &DeValue<'_>| value.is_integer() || value.is_float();
    let is_like = |new: &DeValue<'_>| match old.get_ref() {
        DeValue::Boolean(_) => new.is_bool(),
        old if is_number(old) => is_number(new),
        _ => true,
    };
    let is_one = !bare.is_empty() && DeValue::parse(&literal).is_ok_and(|new| is_like(new.get_ref()));
    let not = if value.is_empty() { "nothing".to_owned() } else { value.to_owned() };
    is_one
        .then_some(literal)
        .ok_or_else(|| format!("expected a value such as {}, not {not}", &text[old.span()]))
}

fn splice(text: &str, span: std::ops::Range<usize>, new: &str) -> String {
    let lines_gone = text[span.clone()].matches('\n').count();
    format!("{}{new}{}{}", &text[..span.start], "\n".repeat(lines_gone), &text[span.end..])
}
