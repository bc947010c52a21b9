//! A sequential program behind the page cache, as the thesis on PDIOL measures it, on a simulated machine.
//!
//! ```text
//!  set up: serve, connect, put the file onto the disks       untimed
//!  start:  open; page by page: read or write it, copy it to
//!          or from the program, work on it; close            the elapsed time
//! ```
//!
//! The same file on the same disk used locally is the yardstick. Files are phantoms, and each page is checked. Nothing
//! in it is random, so there is one trial.

use description::MachineDescription;
use fs::protocol::Label;
use fs::{Client, ClientSettings, FileId, IoNodeSettings, PageCache, PageCacheSettings, PagedFile, Prefetch};
use layout::{Operation, Striping};
use machine::{Disk, Duration, Machine, Payload, Stage, Work};
use sim::{Settings, SimMachine, Simulation};

use crate::local::{LocalReader, PAGES_AHEAD};
use crate::{Contents, Error};

/// A program that uses one file from front to back.
#[derive(Clone, Debug)]
pub struct Sequential {
    /// The machine; its first compute node runs the program.
    pub machine: MachineDescription,
    /// Where the file is.
    pub place: FilePlace,
    /// Whether the program reads the file or makes it.
    pub operation: Operation,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of a page, and of a call of the program.
    pub page_bytes: u64,
    /// Bytes of pages that the page cache keeps.
    pub cache_bytes: u64,
    /// How the I/O nodes serve.
    pub io_node: IoNodeSettings,
    /// What the program itself works on each page. Meanwhile pages go on coming in, as on a node with a second
    /// processor.
    pub work: Duration,
}

/// Where the file of a sequential program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePlace {
    /// Striped over all disks of the machine, with this prefetching at the client.
    Striped(Prefetch),
    /// On the first disk of the first I/O node, where the program runs too; reading only.
    Local,
}

/// What one run of a sequential program took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequentialTrial {
    /// From opening to having closed the file; if it was written, all of it is on the media.
    pub elapsed: Duration,
    /// A mix of all events: equal for equal runs.
    pub digest: u64,
}

const NAME: &str = "sequential";
const FILE: FileId = FileId(1);

impl Sequential {
    /// Runs it. Fails if the file does not fit, or is not what it should be.
    pub fn run(&self) -> Result<SequentialTrial, Error> {
        self.check()?;
        let settings = Settings { block_bytes: self.page_bytes, ..Settings::default() };
        let simulation = Simulation::new(&self.machine, settings)?;
        let elapsed = match self.place {
            FilePlace::Striped(prefetch) => simulation.run(self.run_striped(&simulation, prefetch))??,
            FilePlace::Local => simulation.run(self.run_local(&simulation))??,
        };
        Ok(SequentialTrial { elapsed, digest: simulation.digest() })
    }

    fn check(&self) -> Result<(), Error> {
        let invalid = |why: &str| Err(Error::Invalid(why.to_owned()));
        if self.file_bytes == 0 || self.page_bytes == 0 {
            return invalid("a file and its pages must have at least one byte");
        }
        if self.machine.nodes.compute.value == 0 || self.machine.nodes.io.value == 0 {
            return invalid("a sequential program needs a compute node and an I/O node");
        }
        if self.place == FilePlace::Local && self.operation == Operation::Write {
            return invalid("a local disk is only read");
        }
        Ok(())
    }

    async fn run_striped(&self, simulation: &Simulation, prefetch: Prefetch) -> Result<Duration, Error> {
        let io_nodes: Vec<_> = simulation.io_nodes().iter().map(|node| node.node()).collect();
        for node in simulation.io_nodes() {
            node.spawn("I/O node", fs::serve(node.clone(), self.io_node.clone()));
        }
        let node = &simulation.compute_nodes()[0];
        let client = Client::connect(node.clone(), io_nodes, ClientSettings::agent()).await?;
        if self.operation == Operation::Read {
            let file = client.create(NAME, FILE, self.page_bytes).await?;
            self.install(simulation).await?;
            file.commit().await?;
        }
        let settings = PageCacheSettings { bytes: self.cache_bytes, prefetch, write_behind: true };
        let cache = PageCache::new(client, settings);
        let start = simulation.now();
        match self.operation {
            Operation::Read => self.read(node, cache.open(NAME).await?).await?,
            Operation::Write => self.write(node, cache.create(NAME, FILE, self.page_bytes).await?).await?,
        }
        Ok(simulation.now().since(start))
    }

    /// Puts the file onto the disks, without any time passing.
    async fn install(&self, simulation: &Simulation) -> Result<(), Error> {
        for disk in simulation.io_nodes().iter().flat_map(|node| node.disks()) {
            let object = disk.open(NAME, Stage::Pending).await?;
            let label = Label::decode(&object.label).map_err(Error::Invalid)?;
            for block in label.striping.blocks_of_stripe(label.stripe, self.file_bytes) {
                let payload = Contents::Phantom.payload(block.file_offset, block.bytes);
                disk.put(object.id, block.stripe_offset, &payload)?;
            }
        }
        Ok(())
    }

    async fn read(&self, node: &SimMachine, file: PagedFile<SimMachine>) -> Result<(), Error> {
        let mut offset = 0;
        loop {
            let page = file.read(offset, self.page_bytes).await?;
            if page.is_empty() {
                break;
            }
            offset = self.use_page(node, offset, page).await?;
        }
        self.check_end(offset)?;
        Ok(file.close().await?)
    }

    async fn write(&self, node: &SimMachine, file: PagedFile<SimMachine>) -> Result<(), Error> {
        let mut offset = 0;
        while offset < self.file_bytes {
            let page = Contents::Phantom.payload(offset, self.page_bytes.min(self.file_bytes - offset));
            offset = self.use_page(node, offset, page.clone()).await?;
            file.write(offset - page.len(), page).await?;
        }
        Ok(file.close().await?)
    }

    async fn run_local(&self, simulation: &Simulation) -> Result<Duration, Error> {
        let node = &simulation.io_nodes()[0];
        self.install_whole(node)?;
        let start = simulation.now();
        let mut reader = LocalReader::open(node.clone(), NAME, self.page_bytes, PAGES_AHEAD).await?;
        let mut offset = 0;
        while let Some(page) = reader.next().await? {
            offset = self.use_page(node, offset, page).await?;
        }
        self.check_end(offset)?;
        Ok(simulation.now().since(start))
    }

    /// Puts the whole file onto the first disk, as its only stripe.
    fn install_whole(&self, node: &SimMachine) -> Result<(), Error> {
        let disk = &node.disks()[0];
        let object =
            disk.install(NAME, 0, &Contents::Phantom.payload(0, self.page_bytes.min(self.file_bytes)))?;
        for block in Striping::new(self.page_bytes, 1)?.blocks_of_stripe(0, self.file_bytes).skip(1) {
            let payload = Contents::Phantom.payload(block.file_offset, block.bytes);
            disk.put(object, block.stripe_offset, &payload)?;
        }
        Ok(())
    }

    /// What the program does with a page. Returns the offset of the next one.
    async fn use_page(&self, node: &SimMachine, offset: u64, page: Payload) -> Result<u64, Error> {
        if page != Contents::Phantom.payload(offset, page.len()) {
            return Err(Error::WrongData(format!("the page at offset {offset}")));
        }
        node.compute(Work::Copy { bytes: page.len() }).await;
        if !self.work.is_zero() {
            node.sleep_until(node.now() + self.work).await;
        }
        Ok(offset + page.len())
    }

    fn check_end(&self, offset: u64) -> Result<(), Error> {
        if offset == self.file_bytes {
            return Ok(());
        }
        Err(Error::WrongData(format!("the file ends after {offset} bytes, not {}", self.file_bytes)))
    }
}
