//! Interface of a simulated node to one of its disks.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use description::{MachineDescription, MetadataCosts};
use machine::{Buf, Duration, Error, Instant, Object, ObjectId, Payload, Permits, Result, Space};

use super::other_thread::OtherThread;
use crate::disk::{DiskAccess, Drive, Transfer, no_space};
use crate::network::own;
use crate::random::RandomStream;
use crate::trace::ProcessorActivity;
use crate::world::World;

/// Disk of a simulated node.
#[derive(Clone)]
pub struct Disk {
    world: Rc<World>,
    index: usize,
    thread: OtherThread,
    names: Option<Rc<ObjectNames>>,
}

/// Costs of operations on object names, if the description has them. They are serialised.
struct ObjectNames {
    turns: Permits,
    make: Duration,
    find: Duration,
    remove: Duration,
}

impl Disk {
    /// Returns the interface to disk `index` of the machine, a disk of `node`.
    pub(super) fn new(world: Rc<World>, node: usize, index: usize, description: &MachineDescription) -> Self {
        let hand_over = description.disks.hand_over.as_ref().map_or(Duration::ZERO, |time| time.value.0);
        let thread = OtherThread::new(world.clone(), node, hand_over);
        let names = description.metadata.as_ref().map(|costs| {
            let MetadataCosts { make_object, find_object, remove_object, .. } = costs;
            let [make, find, remove] = [make_object, find_object, remove_object].map(|cost| cost.value.0);
            Rc::new(ObjectNames { turns: Permits::new(1), make, find, remove })
        });
        Disk { world, index, thread, names }
    }

    /// Waits for the time of an operation on the names of objects.
    async fn at_names(&self, what: impl FnOnce(&ObjectNames) -> Duration) {
        let Some(names) = self.names.as_deref() else { return };
        let _turn = names.turns.take().await;
        self.thread.work(what(names).as_nanos(), ProcessorActivity::Object).await;
    }

    /// Waits for the time to look up objects, all in one operation, and to remove the existing ones.
    async fn at_removed<'a>(&self, mut wanted: impl ExactSizeIterator<Item = &'a str>) {
        let all = wanted.len() as u64;
        self.at_names(|names| {
            let drive = self.drive().borrow();
            let there = wanted.by_ref().filter(|name| drive.store.find(name).is_some()).count() as u64;
            let nanoseconds = all
                .saturating_mul(names.find.as_nanos())
                .saturating_add(there.saturating_mul(names.remove.as_nanos()));
            Duration::from_nanos(nanoseconds)
        })
        .await;
    }

    /// Returns the index of the disk among all disks of the machine.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Puts `payload` at `offset` of the object `name` in no simulated time. Creates the object with an empty label if
    /// necessary. For files that exist at the start of an experiment.
    pub fn install(&self, name: &str, offset: u64, payload: &Payload) -> Result<ObjectId> {
        let mut drive = self.drive().borrow_mut();
        let id = match drive.store.find(name) {
            Some(id) => id,
            None => drive.store.create(name, b"").expect("there is none yet"),
        };
        drop(drive);
        self.put(ObjectId(id), offset, payload)?;
        Ok(ObjectId(id))
    }

    /// Puts `payload` at `offset` of an object in no simulated time.
    pub fn put(&self, object: ObjectId, offset: u64, payload: &Payload) -> Result<()> {
        self.check(object)?;
        let mut payload = payload.clone();
        own(&mut payload);
        let mut drive = self.drive().borrow_mut();
        let end = offset.checked_add(payload.len()).ok_or_else(|| no_space(drive.node))?;
        if !payload.is_empty() && !drive.store.reserve(object.0, offset, end) {
            return Err(no_space(drive.node));
        }
        drive.store.object_mut(object.0).expect("checked").put(offset, &payload);
        Ok(())
    }

    /// Returns `bytes` bytes at `offset` of an object in no simulated time. Bytes beyond its end are zeros.
    ///
    /// # Errors
    /// Fails if the object does not exist.
    pub fn peek(&self, object: ObjectId, offset: u64, bytes: u64) -> Result<Payload> {
        self.check(object)?;
        Ok(self.drive().borrow().store.object(object.0).expect("checked").get(offset, bytes))
    }

    /// Returns the length of an object in bytes, and true if it was flushed at least once.
    ///
    /// # Errors
    /// Fails if the object does not exist.
    pub fn state(&self, object: ObjectId) -> Result<(u64, bool)> {
        self.check(object)?;
        let drive = self.drive().borrow();
        let stored = drive.store.object(object.0).expect("checked");
        Ok((stored.bytes, stored.was_flushed))
    }

    /// Damages `bytes` bytes at `offset` of an object. Reads of any of them fail, after the usual time of a read, until
    /// a single write covers them all.
    pub fn damage(&self, object: ObjectId, offset: u64, bytes: u64) {
        self.drive().borrow_mut().damaged.push((object.0, offset..offset.saturating_add(bytes)));
    }

    /// Fails if part of the read bytes is damaged.
    fn check_damage(&self, object: ObjectId, offset: u64, bytes: u64) -> Result<()> {
        let read = offset..offset.saturating_add(bytes);
        let drive = self.drive().borrow();
        let is_hit = |(id, part): &&(u64, Range<u64>)| {
            *id == object.0 && part.start < read.end && read.start < part.end
        };
        let Some(place) = drive.damaged.iter().find(is_hit).map(|(_, part)| part.start) else {
            return Ok(());
        };
        drop(drive);
        let what = self.what(&format!("number {}", object.0));
        Err(Error::Damaged { what, why: format!("the bytes at offset {place} differ from the written data") }
            .into())
    }

    /// Repairs damage that a write covers.
    fn mend(&self, object: ObjectId, offset: u64, bytes: u64) {
        let covers = |part: &Range<u64>| offset <= part.start && part.end <= offset.saturating_add(bytes);
        self.drive().borrow_mut().damaged.retain(|(id, part)| *id != object.0 || !covers(part));
    }

    fn drive(&self) -> &RefCell<Drive> {
        self.world.disks.drive(self.index)
    }

    fn what(&self, name: &str) -> String {
        let node = machine::NodeId(self.drive().borrow().node as u64);
        format!("object {name:?} on disk {} ({node})", self.index)
    }

    fn not_found(&self, name: &str) -> Box<Error> {
        Error::NotFound { what: self.what(name) }.into()
    }

    fn check(&self, object: ObjectId) -> Result<()> {
        let known = self.drive().borrow().store.object(object.0).is_some();
        if known { Ok(()) } else { Err(self.not_found(&format!("number {}", object.0))) }
    }

    async fn transfer(&self, object: ObjectId, offset: u64, access: DiskAccess) -> Result<DiskAccess> {
        self.thread.take_over().await;
        let World { executor, processors, costs, disks, .. } = &*self.world;
        disks.begin(executor, processors, costs, Transfer::new(self.index, object, offset, access)).await
    }
}

impl machine::Disk for Disk {
    async fn create(&self, name: &str, label: &[u8]) -> Result<Object> {
        self.at_names(|names| names.make).await;
        let made = self.drive().borrow_mut().store.create(name, label);
        match made {
            Some(id) => Ok(Object { id: ObjectId(id), label: label.to_vec(), bytes: 0 }),
            None => Err(Error::Exists { what: self.what(name) }.into()),
        }
    }

    async fn open(&self, name: &str) -> Result<Object> {
        self.at_names(|names| names.find).await;
        let drive = self.drive().borrow();
        let id = drive.store.find(name);
        match id.and_then(|id| Some((id, drive.store.object(id)?))) {
            Some((id, stored)) => {
                Ok(Object { id: ObjectId(id), label: stored.label.clone(), bytes: stored.bytes })
            }
            None => {
                drop(drive);
                Err(self.not_found(name))
            }
        }
    }

    async fn list(&self) -> Result<Vec<String>> {
        Ok(self.drive().borrow().store.list())
    }

    async fn remove(&self, name: &str) -> Result<()> {
        self.at_removed([name].into_iter()).await;
        let removed = self.drive().borrow_mut().store.remove(name);
        if removed { Ok(()) } else { Err(self.not_found(name)) }
    }

    async fn remove_all(&self, names: &[String]) -> Result<()> {
        self.at_removed(names.iter().map(String::as_str)).await;
        let store = &mut self.drive().borrow_mut().store;
        for name in names {
            store.remove(name);
        }
        Ok(())
    }

    async fn resize(&self, object: ObjectId, bytes: u64) -> Result<()> {
        self.check(object)?;
        let mut drive = self.drive().borrow_mut();
        if drive.store.resize(object.0, bytes) { Ok(()) } else { Err(no_space(drive.node)) }
    }

    async fn space(&self) -> Result<Option<Space>> {
        Ok(self.drive().borrow().store.space())
    }

    async fn identity(&self) -> Result<u64> {
        let node = self.drive().borrow().node as u64;
        Ok(identity_of(node, self.index as u64))
    }

    fn device(&self) -> Option<u64> {
        Some(self.index as u64)
    }

    fn has_own_pace(&self) -> bool {
        true
    }

    async fn read(&self, object: ObjectId, offset: u64, into: Buf) -> Result<Buf> {
        self.check(object)?;
        match self.transfer(object, offset, DiskAccess::Read(into)).await? {
            DiskAccess::Read(buffer) => self.check_damage(object, offset, buffer.len()).map(|()| buffer),
            DiskAccess::Write(_) | DiskAccess::Flush => unreachable!("a read was begun"),
        }
    }

    async fn write(&self, object: ObjectId, offset: u64, mut from: Payload) -> Result<()> {
        self.check(object)?;
        from.check().map_err(Error::Altered)?;
        own(&mut from);
        let bytes = from.len();
        self.transfer(object, offset, DiskAccess::Write(from)).await?;
        self.mend(object, offset, bytes);
        Ok(())
    }

    async fn data_after(&self, object: ObjectId, offset: u64) -> Result<Option<Range<u64>>> {
        self.check(object)?;
        Ok(self.drive().borrow().store.object(object.0).and_then(|stored| stored.data_after(offset)))
    }

    async fn flush(&self, object: ObjectId) -> Result<()> {
        self.check(object)?;
        let included = self.drive().borrow().store.unflushed_changes(object.0);
        self.transfer(object, 0, DiskAccess::Flush).await?;
        self.drive().borrow_mut().store.flushed(object.0, included);
        Ok(())
    }

    fn position(&self, object: ObjectId, offset: u64) -> u64 {
        let drive = self.drive().borrow();
        drive.store.position(object.0, offset)
    }

    fn waited_since(&self, since: Instant) {
        let nanoseconds = self.world.executor.now() - since.as_nanos();
        self.drive().borrow_mut().waits.add(nanoseconds);
    }

    fn writes_pending(&self, bytes: u64) {
        let mut drive = self.drive().borrow_mut();
        drive.writes_pending.set(bytes);
        self.world.notes[drive.node].count(("disk", self.index), "bytes of pending writes", bytes);
    }
}

/// Returns the identity of a disk: the same in each run, and random-like between disks.
fn identity_of(node: u64, index: u64) -> u64 {
    RandomStream::new(node, &format!("identity of disk {index}")).below(u64::MAX)
}
