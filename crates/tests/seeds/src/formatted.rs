//! I/O nodes whose disks store objects in the format of real disks, below the file system.
//!
//! Each object is a file on the simulated disk, with a header, records and checksums. So power cuts interrupt the
//! operations of the format as well, and faults of the medium hit any of its parts. In other runs a disk is passed
//! through unchanged.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use machine::{
    Buf, BufferPool, Computer, Condition, Disk, Duration, Error, Instant, Machine, NodeId, NodeNotes, Object,
    ObjectId, Payload, Permits, Result, Space, Work,
};
use real::{ByteRun, ObjectFile, ObjectOnMedium};
use sim::SimMachine;

use crate::draw::Draw;
use crate::testbed::BLOCK;

/// Capacity of the pool of buffers for reads of a disk. No limit is needed, since requests are bounded above it.
const BUFFER_BYTES: u64 = 1 << 40;

/// Distance of a misdirected write from its place.
const MISDIRECTED_BY: u64 = 4096;

/// I/O node, with or without the format on its disks.
#[derive(Clone)]
pub(crate) struct FormattedNode {
    machine: SimMachine,
    disks: Rc<[FormattedDisk]>,
}

impl FormattedNode {
    pub(crate) fn new(machine: SimMachine, is_formatted: bool) -> FormattedNode {
        let format = || is_formatted.then(|| Rc::new(Format::default()));
        let disk = |index| FormattedDisk {
            machine: machine.clone(),
            index,
            faults: Rc::default(),
            format: format(),
        };
        let disks = (0..machine.disks().len()).map(disk).collect();
        FormattedNode { machine, disks }
    }

    /// Returns the only disk.
    pub(crate) fn disk(&self) -> &FormattedDisk {
        &self.disks[0]
    }

    /// Closes all objects, as the end of the process does.
    pub(crate) fn restart(&self) {
        self.disks.iter().filter_map(|disk| disk.format.as_ref()).for_each(|format| {
            format.objects.borrow_mut().clear();
        });
    }
}

/// Faults of a medium.
#[derive(Default)]
pub(crate) struct MediumFaults {
    /// Number of the next writes that succeed without changing the medium.
    pub(crate) lost_writes: Cell<u32>,
    /// Number of the next writes that change another place of the medium.
    pub(crate) misdirected_writes: Cell<u32>,
}

impl MediumFaults {
    /// Returns the place that a write changes; `None` if it changes nothing.
    fn place_of(&self, position: u64) -> Option<u64> {
        if take_one(&self.lost_writes) {
            return None;
        }
        Some(if take_one(&self.misdirected_writes) { position ^ MISDIRECTED_BY } else { position })
    }
}

fn take_one(count: &Cell<u32>) -> bool {
    let left = count.get();
    count.set(left.saturating_sub(1));
    left > 0
}

/// Disk of such a node.
#[derive(Clone)]
pub(crate) struct FormattedDisk {
    machine: SimMachine,
    index: usize,
    faults: Rc<MediumFaults>,
    format: Option<Rc<Format>>,
}

/// Open objects in the format.
struct Format {
    objects: RefCell<BTreeMap<ObjectId, Rc<OpenedObject>>>,
    /// Permit to create, open or remove an object.
    catalogue: Permits,
    buffers: BufferPool,
}

impl Default for Format {
    fn default() -> Self {
        let (objects, catalogue) = (RefCell::default(), Permits::new(1));
        Format { objects, catalogue, buffers: BufferPool::new(BUFFER_BYTES) }
    }
}

struct OpenedObject {
    name: String,
    label: Vec<u8>,
    stored: ObjectOnMedium<SimFile>,
}

impl FormattedDisk {
    fn medium(&self) -> &sim::Disk {
        &self.machine.disks()[self.index]
    }

    /// Returns the faults of the medium.
    pub(crate) fn faults(&self) -> &MediumFaults {
        &self.faults
    }

    /// Damages stored data, drawn from a seed: flips a bit of any part of a file of the format.
    pub(crate) async fn damage(&self, seed: u64) -> Result<()> {
        let (medium, mut draw) = (self.medium(), Draw::of(seed));
        let names = medium.list().await?;
        if names.is_empty() {
            return Ok(());
        }
        let object = medium.open(&names[draw.below(names.len() as u64) as usize]).await?;
        let byte = match &self.format {
            Some(_) => draw.below(object.bytes.max(1)),
            None => draw.below(object.bytes.div_ceil(BLOCK).max(1)) * BLOCK + draw.below(BLOCK),
        };
        match &self.format {
            Some(_) => medium.put(object.id, byte, &medium.peek(object.id, byte, 1)?.with_flipped_bit(0)),
            None => {
                medium.damage(object.id, byte, 1);
                Ok(())
            }
        }
    }

    /// Completes an operation even if its caller stops waiting.
    async fn complete<T: 'static>(&self, operation: impl Future<Output = Result<T>> + 'static) -> Result<T> {
        let outcome = Rc::new((RefCell::new(None), Condition::default()));
        let set = outcome.clone();
        self.machine.spawn("disk operation", async move {
            let result = operation.await;
            set.0.replace(Some(result));
            set.1.wake_all();
            Ok(())
        });
        loop {
            if let Some(result) = outcome.0.take() {
                return result;
            }
            outcome.1.wait().await;
        }
    }

    fn file(&self, format: &Format, object: ObjectId) -> SimFile {
        let (medium, faults) = (self.medium().clone(), self.faults.clone());
        SimFile { medium, faults, object, buffers: format.buffers.clone() }
    }

    async fn create_formatted(self, format: Rc<Format>, name: String, label: Vec<u8>) -> Result<Object> {
        let _turn = format.catalogue.take().await;
        let exists = || Error::Exists { what: format!("object `{name}`") };
        match self.found(&format, &name).await.map_err(|error| *error) {
            Ok(_) | Err(Error::Damaged { .. }) => return Err(exists().into()),
            Err(_) => {}
        }
        // The remains of an incomplete file.
        let _ = self.medium().remove(&name).await;
        let bytes = ObjectOnMedium::<SimFile>::first_bytes(&name, &label)?;
        let id = self.medium().create(&name, b"").await?.id;
        let file = self.file(&format, id);
        if let Err(error) = file.write(vec![ByteRun::Owned(bytes)], 0).await {
            let _ = self.medium().remove(&name).await;
            return Err(Error::Io { what: format!("object `{name}`"), why: error.to_string() }.into());
        }
        let stored = ObjectOnMedium::of_empty(file, &name, &label)?;
        format.objects.borrow_mut().insert(id, OpenedObject { name, label: label.clone(), stored }.into());
        Ok(Object { id, label, bytes: 0 })
    }

    /// Opens an object. The caller must hold the permit.
    async fn found(&self, format: &Rc<Format>, name: &str) -> Result<Object> {
        let id = self.medium().open(name).await?.id;
        let opened = format.objects.borrow().get(&id).cloned();
        let opened = match opened {
            Some(opened) => opened,
            None => {
                let (bytes, was_flushed) = self.medium().state(id)?;
                let (stored, label) = match ObjectOnMedium::open(self.file(format, id), bytes, name) {
                    // A power cut interrupted its creation.
                    Err(error) if !was_flushed && matches!(*error, Error::Damaged { .. }) => {
                        return Err(Error::NotFound { what: format!("object `{name}`") }.into());
                    }
                    opened => opened?,
                };
                let opened = Rc::new(OpenedObject { name: name.to_owned(), label, stored });
                format.objects.borrow_mut().insert(id, opened.clone());
                opened
            }
        };
        Ok(Object { id, label: opened.label.clone(), bytes: opened.stored.bytes() })
    }

    async fn remove_formatted(self, format: Rc<Format>, name: String) -> Result<()> {
        let _turn = format.catalogue.take().await;
        self.medium().remove(&name).await?;
        format.objects.borrow_mut().retain(|_, object| object.name != name);
        Ok(())
    }
}

impl Format {
    fn object(&self, object: ObjectId) -> Result<Rc<OpenedObject>> {
        let opened = self.objects.borrow().get(&object).cloned();
        opened.ok_or_else(|| Error::NotFound { what: format!("object {} on this disk", object.0) }.into())
    }
}

impl Disk for FormattedDisk {
    async fn create(&self, name: &str, label: &[u8]) -> Result<Object> {
        let Some(format) = &self.format else { return self.medium().create(name, label).await };
        let create = self.clone().create_formatted(format.clone(), name.to_owned(), label.to_vec());
        self.complete(create).await
    }

    async fn open(&self, name: &str) -> Result<Object> {
        let Some(format) = self.format.clone() else { return self.medium().open(name).await };
        let (disk, name) = (self.clone(), name.to_owned());
        let open = async move {
            let _turn = format.catalogue.take().await;
            disk.found(&format, &name).await
        };
        self.complete(open).await
    }

    async fn list(&self) -> Result<Vec<String>> {
        self.medium().list().await
    }

    async fn remove(&self, name: &str) -> Result<()> {
        let Some(format) = &self.format else { return self.medium().remove(name).await };
        self.complete(self.clone().remove_formatted(format.clone(), name.to_owned())).await
    }

    async fn resize(&self, object: ObjectId, bytes: u64) -> Result<()> {
        let Some(format) = &self.format else { return self.medium().resize(object, bytes).await };
        let opened = format.object(object)?;
        self.complete(async move { opened.stored.resize(bytes).await }).await
    }

    async fn read(&self, object: ObjectId, offset: u64, into: Buf) -> Result<Buf> {
        let Some(format) = &self.format else { return self.medium().read(object, offset, into).await };
        let opened = format.object(object)?;
        self.complete(async move { opened.stored.read(offset, into).await }).await
    }

    async fn write(&self, object: ObjectId, offset: u64, from: Payload) -> Result<()> {
        let Some(format) = &self.format else {
            let bytes = from.len();
            self.medium().write(object, offset, from).await?;
            if self.faults.place_of(offset) != Some(offset) {
                // Checksums would detect the data that remain there.
                self.medium().damage(object, offset, bytes);
            }
            return Ok(());
        };
        let opened = format.object(object)?;
        self.complete(async move { opened.stored.write(offset, &from).await }).await
    }

    async fn data_after(&self, object: ObjectId, offset: u64) -> Result<Option<Range<u64>>> {
        let Some(format) = &self.format else { return self.medium().data_after(object, offset).await };
        format.object(object)?.stored.data_after(offset).await
    }

    async fn flush(&self, object: ObjectId) -> Result<()> {
        let Some(format) = &self.format else { return self.medium().flush(object).await };
        let opened = format.object(object)?;
        let medium = self.clone();
        let flush = async move {
            opened.stored.flush().await?;
            // The name of a new object, and earlier removals.
            medium.medium().flush(object).await
        };
        self.complete(flush).await
    }

    async fn space(&self) -> Result<Option<Space>> {
        self.medium().space().await
    }

    async fn identity(&self) -> Result<u64> {
        self.medium().identity().await
    }

    fn device(&self) -> Option<u64> {
        self.medium().device()
    }

    fn has_own_pace(&self) -> bool {
        self.medium().has_own_pace()
    }

    fn position(&self, object: ObjectId, offset: u64) -> u64 {
        self.medium().position(object, offset)
    }

    fn waited_since(&self, since: Instant) {
        self.medium().waited_since(since);
    }

    fn writes_pending(&self, bytes: u64) {
        self.medium().writes_pending(bytes);
    }
}

/// File of the format: an object of a simulated disk.
struct SimFile {
    medium: sim::Disk,
    faults: Rc<MediumFaults>,
    object: ObjectId,
    buffers: BufferPool,
}

impl SimFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.medium.state(self.object).map_err(|error| io_error(&error))?.0)
    }

    async fn write_payload(&self, position: u64, payload: Payload) -> io::Result<()> {
        let Some(position) = self.faults.place_of(position) else { return Ok(()) };
        self.medium.write(self.object, position, payload).await.map_err(|error| io_error(&error))
    }
}

impl FileExt for SimFile {
    fn read_at(&self, into: &mut [u8], position: u64) -> io::Result<usize> {
        let bytes = self.bytes()?.saturating_sub(position).min(into.len() as u64);
        let read = self.medium.peek(self.object, position, bytes).map_err(|error| io_error(&error))?;
        assert!(read.copy_to(&mut into[..bytes as usize]), "all bytes are real");
        Ok(bytes as usize)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl ObjectFile for SimFile {
    async fn fill(&self, mut memory: Vec<u8>, until: usize, position: u64) -> io::Result<Vec<u8>> {
        let missing = (until - memory.len()) as u64;
        let bytes = self.bytes()?.saturating_sub(position).min(missing);
        if bytes > 0 {
            let buffer = self.buffers.take(bytes).await;
            let read =
                self.medium.read(self.object, position, buffer).await.map_err(|error| io_error(&error))?;
            memory.extend(read.slice(0..bytes).to_vec().expect("all bytes are real"));
        }
        Ok(memory)
    }

    async fn write(&self, runs: Vec<ByteRun>, position: u64) -> io::Result<()> {
        let mut payload = Payload::empty();
        for run in runs {
            payload.push(&match run {
                ByteRun::Owned(bytes) => Payload::from(bytes),
                ByteRun::Shared(shared) => Payload::from(shared.as_slice()),
                ByteRun::Zeros(zeros) => Payload::from(zeros),
            });
        }
        self.write_payload(position, payload).await
    }

    async fn clear(&self, range: Range<u64>) -> io::Result<()> {
        self.write_payload(range.start, Payload::from(vec![0; (range.end - range.start) as usize])).await
    }

    async fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.medium.resize(self.object, bytes).await.map_err(|error| io_error(&error))
    }

    async fn data_after(&self, position: u64) -> io::Result<Option<Range<u64>>> {
        self.medium.data_after(self.object, position).await.map_err(|error| io_error(&error))
    }

    async fn sync(&self) -> io::Result<()> {
        self.medium.flush(self.object).await.map_err(|error| io_error(&error))
    }

    fn write_back(&self, _: Range<u64>) {}
}

fn io_error(error: &Error) -> io::Error {
    match error {
        Error::NoSpace { .. } => io::ErrorKind::StorageFull.into(),
        Error::NotFound { .. } => io::ErrorKind::NotFound.into(),
        other => io::Error::other(other.to_string()),
    }
}

impl Machine for FormattedNode {
    type Net = <SimMachine as Machine>::Net;
    type Disk = FormattedDisk;
    type Metadata = <SimMachine as Machine>::Metadata;

    fn node(&self) -> NodeId {
        self.machine.node()
    }

    fn now(&self) -> Instant {
        self.machine.now()
    }

    fn date(&self) -> Duration {
        self.machine.date()
    }

    fn computer(&self) -> Option<Computer> {
        self.machine.computer()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        self.machine.sleep_until(deadline)
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = Result<()>> + 'static) {
        self.machine.spawn(name, task);
    }

    fn contain<T>(
        &self,
        name: &'static str,
        work: impl Future<Output = T>,
    ) -> impl Future<Output = Result<T>> {
        self.machine.contain(name, work)
    }

    fn compute(&self, work: Work) -> impl Future<Output = ()> {
        self.machine.compute(work)
    }

    fn net(&self) -> &Self::Net {
        self.machine.net()
    }

    fn disks(&self) -> &[FormattedDisk] {
        &self.disks
    }

    fn metadata(&self) -> Option<&Self::Metadata> {
        self.machine.metadata()
    }

    fn buffers(&self) -> &BufferPool {
        self.machine.buffers()
    }

    fn notes(&self) -> &NodeNotes {
        self.machine.notes()
    }
}
