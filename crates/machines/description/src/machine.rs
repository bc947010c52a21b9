//! What can be said about a machine: its nodes, what work costs their processors, and what joins them.
//!
//! A cost is a number of cycles, for some work with cycles for each word or block on top. Every kind of work
//! must be given, also what is free: a cost that was forgotten would look like one that is zero.
//!
//! Any value can be overridden by its dotted key before the description is checked
//! ([`MachineDescription::load_with`]), so that one file serves for a whole series of machines.

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

/// A machine of compute nodes and I/O nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineDescription {
    /// What the machine is called.
    pub name: String,
    /// How many nodes there are of each kind.
    pub nodes: Nodes,
    /// The processor that every node has.
    pub processor: Processor,
    /// What joins the nodes.
    pub network: Network,
    /// The disks of the I/O nodes.
    pub disks: Disks,
    /// The buses between disks and memory of the I/O nodes; without them that way takes no time.
    pub buses: Option<Buses>,
    /// What I/O nodes take for metadata; without it they have no place for them.
    pub metadata: Option<MetadataCosts>,
    /// What `disks.model` names, as it was when this was read: a file that changes later changes no machine.
    #[serde(skip)]
    disk: Option<DiskDescription>,
}

/// How many nodes there are.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// Nodes that run the application.
    pub compute: Sourced<u32>,
    /// Nodes with disks.
    pub io: Sourced<u32>,
}

/// A node's one processor, or a process's share of a computer's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Cycles per second.
    pub clock: Sourced<Frequency>,
    /// Size of the words that costs per word count.
    pub word: Sourced<Bytes>,
    /// Number of processors that all nodes share, where they are processes of one computer: work of a node waits for
    /// one that is free. Without it each node has a processor to itself.
    pub shared: Option<Sourced<u32>>,
    /// What the machine's own doings cost.
    pub system: SystemCosts,
    /// What the file system's work costs, by name.
    pub cost: WorkCosts,
}

/// Costs of what the machine does unasked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemCosts {
    /// A thread hands a message to the network.
    pub send_message: Sourced<Cycles>,
    /// An interrupt takes in a message.
    pub receive_message: Sourced<Cycles>,
    /// An interrupt takes in the end of a disk transfer.
    pub disk_interrupt: Sourced<Cycles>,
    /// The processor turns to another thread than the one it worked for last.
    pub switch_thread: Sourced<Cycles>,
}

/// The cost of every kind of [`Work`].
#[derive(Clone, Debug)]
pub struct WorkCosts([WorkCost; Work::NAMES.len()]);

/// The cost of one kind of work.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkCost {
    /// Whether it waits its turn.
    #[serde(default)]
    pub level: Level,
    /// The fixed cost, which does not depend on the size.
    pub cycles: Sourced<Cycles>,
    /// The cost of each word, for work on bytes.
    pub cycles_per_word: Option<Sourced<Cycles>>,
    /// The cost of each item, for work that counts blocks, pieces or dimensions.
    pub cycles_per_item: Option<Sourced<Cycles>>,
}

/// At which level a processor does work, and how the threads that wait for it are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// One thread after the other.
    #[default]
    Thread,
    /// Likewise, but behind the threads that wait at its beginning: the thread has given up its turn.
    Yielding,
    /// Likewise, but before all other threads that wait, as soon as the thread that has the processor lets go of it.
    Urgent,
    /// Before all threads, one interrupt after the other.
    Interrupt,
}

/// What joins the nodes.
#[derive(Clone, Debug)]
pub struct Network {
    /// Bytes on the wire for each message, besides its header and payload.
    pub envelope: Sourced<Bytes>,
    /// How messages travel.
    pub topology: Topology,
}

/// How messages travel, chosen by `kind`.
#[derive(Clone, Debug)]
pub enum Topology {
    /// `kind = "constant"`: after the same delay, whatever else travels.
    Constant {
        /// The delay.
        delay: Sourced<Time>,
    },
    /// `kind = "switch"`: through the sender's link and the receiver's, joined by a fabric without contention.
    Switch {
        /// Rate of every node's link, in each direction.
        link_bandwidth: Sourced<Rate>,
        /// Time through the fabric.
        latency: Sourced<Time>,
    },
    /// `kind = "torus"`: from router to router of a two-dimensional torus.
    Torus(Box<Torus>),
}

/// A two-dimensional torus with a router, and at most one node, at every crossing.
#[derive(Clone, Debug)]
pub struct Torus {
    /// Routers in each row.
    pub columns: Sourced<u32>,
    /// Routers in each column.
    pub rows: Sourced<u32>,
    /// Rate of every link in each direction, also of those between a node and its router.
    pub link_bandwidth: Sourced<Rate>,
    /// Time for the head of a message to pass a router.
    pub router_latency: Sourced<Time>,
    /// The router of the first node, counted row by row; the other nodes follow.
    pub first_router: Sourced<u32>,
    /// In what order.
    pub placement: Sourced<Placement>,
}

/// The order in which nodes are put to the routers of a torus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// All compute nodes, then all I/O nodes.
    ComputeThenIo,
    /// A compute node and an I/O node in turn, then what is left of either.
    Interleaved,
}

/// The disks of the I/O nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disks {
    /// A disk description, by name or path, relative to the machine's file, or `"memory"` for disks that take no time.
    pub model: Sourced<String>,
    /// How many each I/O node has.
    pub per_io_node: Sourced<u32>,
    /// Whether a flush waits until the disk's own buffer is on the medium.
    pub wait_for_disk_buffer: Sourced<bool>,
    /// Time until another thread of the node has begun an access of a disk, or work on an object's name, and until its
    /// end is known, together; the processor is free meanwhile. Without it the node's own thread does both.
    pub hand_over: Option<Sourced<Time>>,
}

/// The buses of the I/O nodes; a node's disks are dealt out to its buses in turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buses {
    /// How many each I/O node has.
    pub per_io_node: Sourced<u32>,
    /// Rate of each.
    pub bandwidth: Sourced<Rate>,
}

/// What I/O nodes take for metadata: transactions, and the names of objects on their disks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetadataCosts {
    /// Time until another thread of the node has taken over a transaction and until its end is known, together; the
    /// processor is free meanwhile. What only looks is not handed over while that thread has nothing to do.
    pub hand_over: Sourced<Time>,
    /// Time of the processor for each commit, of all transactions that wait when it begins.
    pub commit: Sourced<Time>,
    /// Time of the processor for each transaction besides.
    pub transaction: Sourced<Time>,
    /// Time of the processor for each entry that a transaction reads.
    pub entry: Sourced<Time>,
    /// Time of the processor for each entry that a transaction changes.
    pub change: Sourced<Time>,
    /// Time of the processor for making an object on a disk.
    pub make_object: Sourced<Time>,
    /// Time of the processor for looking for an object on a disk, to open or remove it, whether it is there or not.
    pub find_object: Sourced<Time>,
    /// Time of the processor for removing an object that is there, beside looking for it.
    pub remove_object: Sourced<Time>,
    /// Time of the device for bringing transactions onto it, however many.
    pub flush: Sourced<Time>,
}

impl WorkCosts {
    /// `cost` for every kind of work, for descriptions made by programs.
    pub fn uniform(cost: &WorkCost) -> Self {
        WorkCosts(std::array::from_fn(|_| cost.clone()))
    }

    /// What `work` costs.
    pub fn of(&self, work: Work) -> &WorkCost {
        &self.0[work.index()]
    }

    /// What work of the name `Work::NAMES[index]` costs.
    pub fn at(&self, index: usize) -> &WorkCost {
        &self.0[index]
    }

    /// As [`at`](Self::at), to be changed.
    pub fn at_mut(&mut self, index: usize) -> &mut WorkCost {
        &mut self.0[index]
    }
}

/// The model of disks that take no time.
const MEMORY: &str = "memory";

/// The dotted key of the disks' model.
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
    /// Like [`load`](Description::load), with values replaced first: pairs of a dotted key, such as
    /// `network.link_bandwidth`, and what its value is to be, such as `400e6 B/s`.
    pub fn load_with(name_or_path: &str, overrides: &[(&str, &str)]) -> Result<Self, Error> {
        let (text, file) = text_of::<Self>(name_or_path)?;
        Self::parse_with(&text, &file, overrides)
    }

    /// Like [`parse`](Description::parse), with values replaced first. A torus that is too small for the nodes it is
    /// given so becomes larger, unless its size is given too.
    ///
    /// # Errors
    /// [`Error::Override`] names what was to be replaced if that is to blame, and not the text itself.
    pub fn parse_with(text: &str, file: &str, overrides: &[(&str, &str)]) -> Result<Self, Error> {
        let replaced = Self::replace_values(text, file, overrides);
        let parsed = replaced.and_then(|replaced| Self::parse(&replaced, file));
        parsed.map_err(|error| match (error, Self::parse(text, file)) {
            (Error::Refused { message, .. }, Ok(_)) => {
                Error::Override { overrides: to_blame(text, file, overrides), message }
            }
            // What is wrong with the text itself comes first.
            (Error::Override { .. }, Err(own)) => own,
            (error, _) => error,
        })
    }

    /// The text that [`parse_with`](Self::parse_with) parses: `text` with values replaced, line by line the same. The
    /// path of a disk among them is relative to the current directory, wherever `file` is.
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
        // A text that cannot be read is refused when it is parsed later.
        let Ok(machine) = Self::decode(&replaced) else { return Ok(replaced) };
        let Topology::Torus(torus) = &machine.network.topology else { return Ok(replaced) };
        let nodes = u64::from(machine.nodes.compute.value) + u64::from(machine.nodes.io.value);
        if let Some((columns, rows)) = torus.size_for(nodes).filter(|&size| size != torus.size()) {
            replaced = replace(&replaced, file, "network.columns", &columns.to_string())?;
            replaced = replace(&replaced, file, "network.rows", &rows.to_string())?;
        }
        Ok(replaced)
    }

    /// How many nodes there are in all.
    pub fn node_count(&self) -> u32 {
        self.nodes.compute.value + self.nodes.io.value
    }

    /// The description of the disks; `None` if they are mere memory.
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
                cycles
                    .ensure(is_right, || format!("expected no such cost: {name} does not work on {units}"))?;
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
    /// Columns and rows.
    fn size(&self) -> (u32, u32) {
        (self.columns.value, self.rows.value)
    }

    /// Columns and rows that have routers for `nodes` nodes: the shorter side grows until there are enough. None if no
    /// torus may be that large.
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

/// The most nodes of a machine, and disks of a node: the events of a simulation have 24 bits for the index of a disk.
const NODES_MAX: u32 = 1 << 16;
const DISKS_PER_NODE_MAX: u32 = 1 << 8;
const _: () = assert!((NODES_MAX as u64) * (DISKS_PER_NODE_MAX as u64) <= 1 << 24);

/// More than there are in any one computer; a simulation looks at each of them for each piece of work.
const SHARED_PROCESSORS_MAX: u32 = 1 << 12;

/// No single cost, times the largest transfer, may come near the end of 64 bits of nanoseconds.
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
            return Err(A::Error::custom(format!("expected the cost of {name}, be it 0, which is missing")));
        }
        Ok(WorkCosts(costs.map(|cost| cost.expect("none is missing"))))
    }
}

/// The name of a kind of work, as its index.
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

/// The keys of all kinds of network; which of them must be there, and which must not, `kind` says.
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
    value.take().ok_or_else(|| format!("expected the {key} of a network of this kind, which is missing"))
}

/// Which of `overrides` makes a machine of `text` impossible: the last without which it is not, or else all.
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

/// `text` with the value at the dotted `key` replaced, on the same line, by `value`.
fn replace(text: &str, file: &str, key: &str, value: &str) -> Result<String, Error> {
    let refuse = |message| Error::Override { overrides: format!("{key}={value}"), message };
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        // The text is refused for what is wrong with itself.
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
            (_, Some(next)) => return Err(refuse(format!("{step} is a value, which has no {next:?}"))),
        }
    }
    Err(refuse("expected a key".to_owned()))
}

/// `value` as TOML writes it where `old` stands in `text`: strings in quotes, which may be given or not. Fails with
/// what was expected there.
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
