//! One trial of an experiment.
//!
//! ```text
//!  set up: serve, connect, create the files, prepare the jobs   untimed
//!          until a whole second
//!  start:  all jobs, each at its time; in each job the        ---.
//!          members, one just after another                       | the elapsed time
//!  end:    the last job has ended, all data persisted         ---'
//!  check:  every byte, in its place                             untimed
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use fs::{Client, FileId, NumberedFile, object_name};
use futures_util::future::try_join_all;
use jobs::{FlushTally, Member, Outcome, Part};
use layout::Striping;
use machine::{Disk, Duration, Instant, Machine, NodeId, Recorder, TaskGroup};
use sim::{Layout, Settings, SimMachine, Simulation, Statistics};

use crate::{Beginning, DiskLayout, Error, Experiment, FilePlace, StoredFile};

/// Result of one trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Virtual time from the common start until all data are in place.
    pub elapsed: Duration,
    /// Number of bytes that all jobs and nodes transferred. In pattern `ra`, for example, each node receives the whole
    /// file.
    pub bytes_moved: u64,
    /// Number of movements of all disks.
    pub disk_movements: u64,
    /// Start of the timed part, by the machine's clock.
    pub start: Instant,
    /// Number of timed events.
    pub events: u64,
    /// Hash of all events of the trial, including set-up and check. Equal trials have equal hashes.
    pub digest: u64,
    /// Outcome of each job.
    pub jobs: Vec<Outcome>,
    /// Statistics of each part of the machine for the elapsed time.
    pub statistics: Statistics,
}

impl Trial {
    /// Returns the statistics of the write cache, if a job used one.
    pub fn flushes(&self) -> Option<&FlushTally> {
        self.jobs.iter().find_map(|job| job.flushes.as_ref())
    }

    /// Returns the throughput in MiB/s.
    pub fn throughput_mib_s(&self) -> f64 {
        self.bytes_moved as f64 / f64::from(1 << 20) / self.elapsed.as_secs_f64()
    }
}

/// Unit of the jobs' start time, in nanoseconds. A start at a multiple of this unit makes the rotational position of
/// the disks independent of the duration of the set-up.
const START_NANOS: u64 = 1_000_000_000;

/// Number of the first file. The number before is that of the root directory, which marks disks.
const FIRST_NUMBER: u64 = 2;

type Clients = BTreeMap<u32, Client<SimMachine>>;

/// A job that is ready to start.
struct Ready {
    nodes: Vec<SimMachine>,
    parts: Rc<[Part<SimMachine>]>,
    start: Duration,
    stagger: Duration,
}

impl Experiment {
    /// Runs the trial of this number. Each trial has different random numbers.
    pub fn trial(&self, number: u64) -> Result<Trial, Error> {
        self.run_trial(number, None)
    }

    /// Runs the trial of this number and reports the events of the elapsed time to `recorder`. Recording does not
    /// change any event of the trial.
    pub fn recorded_trial(&self, number: u64, recorder: Rc<RefCell<dyn Recorder>>) -> Result<Trial, Error> {
        self.run_trial(number, Some(recorder))
    }

    fn run_trial(&self, number: u64, recorder: Option<Rc<RefCell<dyn Recorder>>>) -> Result<Trial, Error> {
        self.check()?;
        let simulation = Simulation::new(&self.machine, self.settings(number));
        let ready = simulation.run(self.set_up(&simulation, number))??;
        let (before, start) = (simulation.statistics(), simulation.now());
        if let Some(recorder) = recorder {
            simulation.record(recorder);
        }
        let jobs = simulation.run(run_all(&ready, start))??;
        simulation.stop_recording();
        let (statistics, elapsed) = (simulation.statistics().since(&before), simulation.now().since(start));
        simulation.run(check_all(&ready))??;
        let bytes_moved: u64 = jobs.iter().map(Outcome::bytes).sum();
        if elapsed.is_zero() && bytes_moved > 0 {
            let machine = &self.machine.name;
            let why = format!("{machine} takes no time to move {bytes_moved} bytes: there is no throughput");
            return Err(Error::invalid(why));
        }
        Ok(Trial {
            elapsed,
            bytes_moved,
            disk_movements: statistics.movements(),
            start,
            events: statistics.events,
            digest: simulation.digest(),
            jobs,
            statistics,
        })
    }

    fn settings(&self, number: u64) -> Settings {
        let usual = Settings::default();
        Settings {
            // An odd multiplier makes the seeds of all trials of adjacent seeds different.
            seed: self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number),
            layout: match self.layout {
                DiskLayout::Contiguous => self.contiguous(),
                DiskLayout::Packed => Layout::Contiguous { reserve_bytes: 0 },
                DiskLayout::Random => Layout::Random,
            },
            block_bytes: self.allocation_bytes().unwrap_or(usual.block_bytes),
            ..usual
        }
    }

    /// Returns a contiguous layout. Each file gets the default amount of reserved space, or less if the files would
    /// reserve more than half of a disk.
    fn contiguous(&self) -> Layout {
        match (Layout::default(), self.machine.disk()) {
            (Layout::Contiguous { reserve_bytes }, Some(disk)) => {
                let model = disk::Model::new(disk, 0.0);
                let half = model.capacity_sectors() * model.sector_bytes() / 2;
                let of_each = half / (self.files.len() as u64).max(1);
                Layout::Contiguous { reserve_bytes: reserve_bytes.min(of_each) }
            }
            (usual, _) => usual,
        }
    }

    /// Starts the file system if a job needs it, creates the files, and prepares the jobs.
    async fn set_up(&self, simulation: &Simulation, number: u64) -> Result<Vec<Ready>, Error> {
        let clients = self.connect(simulation).await?;
        let mut files = BTreeMap::new();
        for (number, file) in (FIRST_NUMBER..).zip(&self.files) {
            let made = self.make(simulation, &clients, FileId(number), file).await?;
            files.extend(made.map(|made| (file.name.clone(), made)));
        }
        let files = Rc::new(files);
        let mut ready = Vec::new();
        for (id, launch) in (1..).zip(&self.jobs) {
            let nodes: Vec<SimMachine> =
                launch.nodes.iter().map(|&node| simulation.node(node as usize).clone()).collect();
            let members: Rc<[NodeId]> = nodes.iter().map(|node| node.node()).collect();
            let mut parts = Vec::new();
            for (rank, (index, node)) in launch.nodes.iter().zip(&nodes).enumerate() {
                let client = clients.get(index).cloned();
                let group = fs::Group::new(id, members.to_vec(), rank);
                let (machine, contents, seed) = (node.clone(), self.contents, self.settings(number).seed);
                let member = Member { machine, client, files: files.clone(), group, contents, seed };
                parts.push(launch.job.prepare(member).await?);
            }
            ready.push(Ready { nodes, parts: parts.into(), start: launch.start, stagger: launch.stagger });
        }
        let node = simulation.node(0);
        node.sleep_until(Instant::from_nanos(node.now().as_nanos().next_multiple_of(START_NANOS))).await;
        Ok(ready)
    }

    /// Starts the I/O nodes, and connects every compute node that takes part in a job.
    async fn connect(&self, simulation: &Simulation) -> Result<Clients, Error> {
        let mut clients = Clients::new();
        let with_clients = self.jobs.iter().filter(|launch| launch.job.has_clients());
        let mut nodes: Vec<u32> = with_clients.flat_map(|launch| launch.nodes.clone()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.is_empty() {
            return Ok(clients);
        }
        for node in simulation.io_nodes() {
            node.spawn("I/O node", fs::serve(node.clone(), self.io_nodes.clone()));
        }
        let io_nodes: Vec<NodeId> = simulation.io_nodes().iter().map(|node| node.node()).collect();
        for index in nodes {
            let node = simulation.node(index as usize).clone();
            clients.insert(index, Client::connect(node, io_nodes.clone(), self.clients).await?);
        }
        Ok(clients)
    }

    /// Creates a file in the state that it has before the jobs start. Returns the numbered file if the file is striped.
    async fn make(
        &self,
        simulation: &Simulation,
        clients: &Clients,
        number: FileId,
        file: &StoredFile,
    ) -> Result<Option<NumberedFile>, Error> {
        let StoredFile { bytes, block_bytes, .. } = *file;
        if let FilePlace::Local(io_node) = file.place {
            self.install_whole(&simulation.io_nodes()[io_node as usize], file)?;
            return Ok(None);
        }
        let Some((&index, client)) = clients.iter().next() else {
            return Err(Error::invalid(format!("no job can use {}, which is striped", file.name)));
        };
        let new = match &file.place {
            FilePlace::Disks(disks) => client.new_numbered_on(number, block_bytes, disks).await?,
            _ => client.new_numbered(number, Striping::new(block_bytes, client.disks())?).await?,
        };
        if file.beginning == Beginning::Absent {
            return Ok(Some(new));
        }
        let made = client.numbered(new.clone()).await?;
        made.make_stripes().await?;
        match file.beginning {
            Beginning::OnDisks => {
                // Set the length through the client, because I/O nodes track the length of open files, and `install`
                // bypasses the I/O nodes.
                made.truncate(bytes).await?;
                self.install(simulation.io_nodes(), client, &new, bytes).await?;
            }
            Beginning::Written => {
                let machine = simulation.node(index as usize);
                jobs::fill(machine, &made, bytes, self.contents, |_| {}).await?;
            }
            Beginning::Allocated => made.truncate(bytes).await?,
            Beginning::Absent | Beginning::Empty => return Ok(Some(new)),
        }
        Ok(Some(NumberedFile { bytes, ..new }))
    }

    /// Stores the contents of a striped file of `bytes` bytes on its disks, in no virtual time.
    async fn install(
        &self,
        io_nodes: &[SimMachine],
        client: &Client<SimMachine>,
        file: &NumberedFile,
        bytes: u64,
    ) -> Result<(), Error> {
        let places = client.disks_by_identity().await?;
        for (stripe, identity) in (0..).zip(&file.disks) {
            let (node, disk) = places[identity];
            let node = io_nodes.iter().find(|other| other.node() == node).expect("it is one of them");
            let disk = &node.disks()[disk as usize];
            let object = disk.open(&object_name(file.number)).await?.id;
            for block in file.striping.blocks_of_stripe(stripe, bytes) {
                let payload = self.contents.payload(block.file_offset, block.bytes);
                disk.put(object, block.stripe_offset, &payload)?;
            }
        }
        Ok(())
    }

    /// Stores a whole file on the first disk of a node, as a separate object.
    fn install_whole(&self, node: &SimMachine, file: &StoredFile) -> Result<(), Error> {
        let (disk, block) = (&node.disks()[0], file.block_bytes);
        let object = disk.install(&file.name, 0, &self.contents.payload(0, block.min(file.bytes)))?;
        for block in Striping::new(block, 1)?.blocks_of_stripe(0, file.bytes).skip(1) {
            let payload = self.contents.payload(block.file_offset, block.bytes);
            disk.put(object, block.stripe_offset, &payload)?;
        }
        Ok(())
    }
}

/// Runs the timed part until the last job has ended, and returns the outcomes.
async fn run_all(ready: &[Ready], begin: Instant) -> Result<Vec<Outcome>, Error> {
    // Run all jobs in one task, because jobs are not tasks of the machine.
    Ok(try_join_all(ready.iter().map(|job| job.run(begin))).await?)
}

async fn check_all(ready: &[Ready]) -> Result<(), Error> {
    for part in ready.iter().flat_map(|job| &*job.parts) {
        part.check().await?;
    }
    Ok(())
}

impl Ready {
    /// Runs the job until its last member has ended.
    async fn run(&self, begin: Instant) -> Result<Outcome, jobs::Error> {
        let begin = begin + self.start;
        let (members, sum) = (TaskGroup::<jobs::Error>::new(), Rc::<RefCell<Outcome>>::default());
        for (rank, node) in self.nodes.iter().enumerate() {
            let (machine, parts, sum) = (node.clone(), self.parts.clone(), sum.clone());
            let start = begin + self.stagger * rank as u64;
            members.spawn(node, "application", async move {
                machine.sleep_until(start).await;
                let outcome = parts[rank].run().await?;
                sum.borrow_mut().add(&outcome);
                Ok(())
            });
        }
        members.join_or_fail().await?;
        self.parts[0].finish().await?;
        let mut outcome = sum.take();
        outcome.elapsed = self.nodes[0].now().since(begin);
        Ok(outcome)
    }
}
