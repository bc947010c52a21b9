//! One trial of an experiment.
//!
//! ```text
//!  set up: serve, connect, make the file          untimed
//!  start:  the compute nodes, one just after another ---.
//!  ...     each moves its part                          | the elapsed time
//!  end:    the last is done, all data on the media  ----'
//!  check:  every byte, where it should be         untimed
//! ```

use fs::protocol::Label;
use fs::{Client, ClientSettings, CollectiveMethod, CollectiveSettings, File, FileId, Group};
use layout::{Chunk, Extent, Operation, View};
use machine::{Disk, Duration, Machine, Memory, NodeId, Stage, TaskGroup};
use sim::{Layout, Recorder, Settings, SimMachine, Simulation, Statistics};

use crate::{DiskLayout, Error, Experiment, Method};

/// What one trial took.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Virtual time from the common start until all data are where they belong.
    pub elapsed: Duration,
    /// The bytes moved in it, for all compute nodes together: in `ra` each of them gets the whole file.
    pub bytes_moved: u64,
    /// Disk movements of all disks in it.
    pub disk_movements: u64,
    /// Timed events in it.
    pub events: u64,
    /// A mix of all events of the trial, set-up and check included: equal for equal trials.
    pub digest: u64,
    /// What each part of the machine did in the elapsed time.
    pub statistics: Statistics,
}

impl Trial {
    /// Throughput in MiB/s.
    pub fn throughput_mib_s(&self) -> f64 {
        self.bytes_moved as f64 / f64::from(1 << 20) / self.elapsed.as_secs_f64()
    }
}

const NAME: &str = "experiment";
const FILE: FileId = FileId(1);

impl Experiment {
    /// Runs the trial of this number. Trials of different numbers differ in all that is random.
    pub fn trial(&self, number: u64) -> Result<Trial, Error> {
        self.run_trial(number, None)
    }

    /// Runs the trial of this number and tells `recorder` what happens in the elapsed time. The trial is the same as
    /// without it, event by event.
    pub fn recorded_trial(&self, number: u64, recorder: Box<dyn Recorder>) -> Result<Trial, Error> {
        self.run_trial(number, Some(recorder))
    }

    fn run_trial(&self, number: u64, recorder: Option<Box<dyn Recorder>>) -> Result<Trial, Error> {
        self.check()?;
        let settings = Settings {
            // An odd multiplier keeps trials of neighbouring seeds apart.
            seed: self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number),
            layout: match self.layout {
                DiskLayout::Contiguous => Layout::default(),
                DiskLayout::Random => Layout::Random,
            },
            block_bytes: self.options.block_bytes,
        };
        let simulation = Simulation::new(&self.machine, settings)?;
        let view = self.pattern.view(&self.problem)?;
        let files = simulation.run(self.set_up(&simulation))??;
        let memories = self.memories(&view);
        let (before, start) = (simulation.statistics(), simulation.now());
        if let Some(recorder) = recorder {
            simulation.record(recorder);
        }
        simulation.run(self.access(simulation.compute_nodes(), &files, &view, &memories))??;
        simulation.stop_recording();
        let (statistics, elapsed) = (simulation.statistics().since(&before), simulation.now().since(start));
        match self.operation() {
            Operation::Read => self.check_memories(&view, &memories)?,
            Operation::Write => simulation.run(self.check_file(&files[0]))??,
        }
        Ok(Trial {
            elapsed,
            bytes_moved: (0..view.nodes()).map(|node| view.node_bytes(node)).sum(),
            disk_movements: statistics.movements(),
            events: statistics.events,
            digest: simulation.digest(),
            statistics,
        })
    }

    /// Starts the file system, makes the file, and opens it on every compute node.
    async fn set_up(&self, simulation: &Simulation) -> Result<Vec<File<SimMachine>>, Error> {
        let io_nodes: Vec<NodeId> = simulation.io_nodes().iter().map(|node| node.node()).collect();
        for node in simulation.io_nodes() {
            node.spawn("I/O node", fs::serve(node.clone(), self.io_node_settings()));
        }
        let settings = ClientSettings {
            outstanding_per_disk: self.options.outstanding,
            memget_writes: self.options.memget_writes,
            ..ClientSettings::report()
        };
        let mut clients = Vec::new();
        for node in simulation.compute_nodes() {
            clients.push(Client::connect(node.clone(), io_nodes.clone(), settings).await?);
        }
        clients[0].create(NAME, FILE, self.options.block_bytes).await?;
        if self.operation() == Operation::Read {
            self.install(simulation.io_nodes()).await?;
        }
        let mut files = Vec::new();
        for client in &clients {
            files.push(client.open_unfinished(NAME).await?);
        }
        Ok(files)
    }

    /// Puts the contents onto the disks, without any time passing.
    async fn install(&self, io_nodes: &[SimMachine]) -> Result<(), Error> {
        for disk in io_nodes.iter().flat_map(|node| node.disks()) {
            let object = disk.open(NAME, Stage::Pending).await?;
            let label = Label::decode(&object.label).map_err(Error::Invalid)?;
            for block in label.striping.blocks_of_stripe(label.stripe, self.problem.file_bytes) {
                let payload = self.contents.payload(block.file_offset, block.bytes);
                disk.put(object.id, block.stripe_offset, &payload)?;
            }
        }
        Ok(())
    }

    /// The memory of each compute node: empty before a read, its part of the file before a write.
    fn memories(&self, view: &View) -> Vec<Memory> {
        let memory = |node| {
            let memory = self.contents.memory(view.node_bytes(node));
            if self.operation() == Operation::Write {
                for chunk in view.chunks(node) {
                    memory.place(chunk.memory_offset, &self.contents.payload(chunk.file_offset, chunk.bytes));
                }
            }
            memory
        };
        (0..view.nodes()).map(memory).collect()
    }

    /// The timed part; over when the last compute node is done.
    ///
    /// The nodes start in their order, each later than its predecessor by the work of a barrier, as if one that
    /// they have all come to let one after the other go.
    async fn access(
        &self,
        nodes: &[SimMachine],
        files: &[File<SimMachine>],
        view: &View,
        memories: &[Memory],
    ) -> Result<(), Error> {
        let members: Vec<NodeId> = nodes.iter().map(|node| node.node()).collect();
        let all = TaskGroup::<Box<fs::Error>>::new();
        for (rank, node) in nodes.iter().enumerate() {
            let part = Part {
                operation: self.operation(),
                settings: self.collective_settings(),
                file: files[rank].clone(),
                view: *view,
                memory: memories[rank].clone(),
                group: Group::new(1, members.clone(), rank),
            };
            let machine = node.clone();
            let start = node.now() + self.start_interval() * rank as u64;
            all.spawn(node, "application", async move {
                machine.sleep_until(start).await;
                part.access().await
            });
        }
        all.join_or_fail().await?;
        if self.operation() == Operation::Write {
            files[0].flush().await?;
        }
        Ok(())
    }

    fn collective_settings(&self) -> Option<CollectiveSettings> {
        let method = match self.method {
            Method::Traditional => return None,
            Method::TwoPhase => CollectiveMethod::TwoPhase,
            Method::DiskDirected => CollectiveMethod::DiskDirected { presort: self.options.presort },
        };
        Some(CollectiveSettings { method, queued: self.is_queued() })
    }

    fn start_interval(&self) -> Duration {
        let processor = &self.machine.processor;
        processor.cost.at(machine::Work::Barrier.index()).cycles.value.at(processor.clock.value)
    }

    fn check_memories(&self, view: &View, memories: &[Memory]) -> Result<(), Error> {
        for (node, memory) in (0..).zip(memories) {
            if let Some(chunk) = self.contents.first_wrong(memory, view.chunks(node)) {
                let (bytes, offset) = (chunk.bytes, chunk.file_offset);
                let text = format!("the {bytes} bytes of compute node {node} from file offset {offset}");
                return Err(Error::WrongData(text));
            }
        }
        Ok(())
    }

    async fn check_file(&self, file: &File<SimMachine>) -> Result<(), Error> {
        let bytes = self.problem.file_bytes;
        let memory = self.contents.memory(bytes);
        let found = file.read(0, bytes, &memory, 0).await?;
        let block_at = |offset| {
            let Extent { bytes, .. } = Extent::new(offset, self.options.block_bytes).clip(bytes);
            Chunk { file_offset: offset, memory_offset: offset, bytes }
        };
        let blocks = (0..bytes).step_by(self.options.block_bytes as usize).map(block_at);
        match self.contents.first_wrong(&memory, blocks) {
            None if found == bytes => Ok(()),
            None => Err(Error::WrongData(format!("the file has {found} bytes instead of {bytes}"))),
            Some(Chunk { file_offset, .. }) => {
                Err(Error::WrongData(format!("the file's block at offset {file_offset}")))
            }
        }
    }
}

/// One compute node's part of the access.
struct Part {
    operation: Operation,
    /// How it is done, if not by single requests.
    settings: Option<CollectiveSettings>,
    file: File<SimMachine>,
    view: View,
    memory: Memory,
    group: Group,
}

impl Part {
    async fn access(&self) -> fs::Result<()> {
        let Part { file, group, view, memory, .. } = self;
        match (self.settings, self.operation) {
            (Some(settings), Operation::Read) => file.read_collective(group, view, memory, settings).await,
            (Some(settings), Operation::Write) => file.write_collective(group, view, memory, settings).await,
            // One file request for each contiguous chunk, one after the other.
            (None, operation) => {
                for chunk in view.chunks(group.rank as u32) {
                    let (offset, bytes, at) = (chunk.file_offset, chunk.bytes, chunk.memory_offset);
                    match operation {
                        Operation::Read => drop(file.read(offset, bytes, memory, at).await?),
                        Operation::Write => file.write(offset, bytes, memory, at).await?,
                    }
                }
                Ok(())
            }
        }
    }
}
