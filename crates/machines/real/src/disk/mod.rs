//! Disk: a directory with one file for each object, optionally slowed down to a model.
//!
//! Reading order:
//!
//! - `directory.rs`: files by name.
//! - `lock.rs`: lock of the node that uses them.
//! - `identity.rs`: identity of a file in the system.
//! - `disk_identity.rs`: identity of a disk.
//! - `failures.rs`: errors of the system.
//! - `header.rs` and `name.rs`: object of a file, and its name.
//! - `layout.rs`: positions of the parts of a file.
//! - `units.rs`: checksums, and the reasons why they survive power cuts.
//! - `record.rs`: flushed state.
//! - `contents.rs`: state of a file when it is opened.
//! - `open_object.rs`: an open object.
//! - `file.rs`: its file.
//! - `at_once.rs`: accesses that need no waiting.
//! - `write_back.rs`: early write-back to the medium.
//! - `objects.rs`: table of objects with open files.
//! - `older.rs`: objects of older versions.
//! - `sync_failure.rs`: failed flushes.
//! - `pace.rs`: modelled time.
//! - `object_on_medium.rs`: an object on another medium, for tests.
//!
//! This file implements the operations of a [`machine::Disk`] with them.
//!
//! Data go through the system's page cache. Every operation runs as a transfer: it completes even if its caller no
//! longer waits.

mod at_once;
mod contents;
mod directory;
mod disk_identity;
mod failures;
mod file;
#[cfg(test)]
mod fuzz;
mod header;
mod identity;
mod layout;
mod lock;
mod name;
mod object_on_medium;
mod objects;
mod older;
mod open_object;
mod pace;
#[cfg(test)]
mod power_cuts;
mod record;
mod sync_failure;
mod units;
mod write_back;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use compio::fs::File;
use compio::runtime::ResumeUnwind;
use machine::{Buf, Error, NodeId, NodeNotes, Object, ObjectId, Payload, Permits, Result, Space};

use crate::clock::Clock;
use crate::hang_watch::HangWatch;
use crate::report::Report;
use crate::settings::DiskSettings;
use crate::task::{Boxed, Tasks};
use at_once::AtOnce;
use directory::{Directory, Found};
pub(crate) use failures::io_error;
pub use file::ObjectFile;
use file::SystemFile;
pub(crate) use identity::Identity;
pub use name::Stage;
pub use object_on_medium::ObjectOnMedium;
use objects::{Access, Objects};
pub use older::OldObject;
use open_object::{Fault, OpenObject};
use pace::{Kind, ObjectExtent, Pace};
pub(crate) use sync_failure::SyncFailure;

/// Multiple of the silence limit after which a flush fails: with 10 s, the time after which Linux reports a hung task.
/// A slow medium needs a minute for the unflushed bytes of a large memory.
const FLUSH_SILENCES: u32 = 12;

/// Disk of a real node. A clone is another handle.
#[derive(Clone)]
pub struct Disk {
    tasks: Tasks,
    /// Recorder of its events, and its index among the node's disks.
    noted: (Rc<NodeNotes>, usize),
    inner: Rc<Inner>,
}

struct Inner {
    tasks: Tasks,
    /// Watch of all operations except flushes.
    others: Rc<HangWatch>,
    /// Watch of flushes, which complete much later than other work if many bytes are unflushed.
    flushes: Rc<HangWatch>,
    directory: std::sync::Arc<Directory>,
    /// Identity of the disk, once requested.
    identity: OnceCell<u64>,
    /// Permit to change the directory and the table of objects together: one task at a time.
    catalogue: Permits,
    objects: RefCell<Objects<OpenObject>>,
    /// Objects reported as damaged: each is reported once, not for each part of it.
    known_damaged: RefCell<BTreeSet<ObjectId>>,
    /// True if objects were created or removed since the directory was last flushed.
    directory_changed: Cell<bool>,
    directory_flush: Permits,
    at_once: Rc<AtOnce>,
    pace: Option<Pace>,
}

impl Disk {
    /// Takes the directory and prepares it; keeps about `open_max` files open. `noted` is the recorder of events, and
    /// the index among the node's disks. Operations fail if the medium completes none of them for `silence`. Fails if
    /// another agent has the directory.
    pub(crate) async fn start(
        settings: &DiskSettings,
        node: NodeId,
        clock: Clock,
        tasks: Tasks,
        noted: (Rc<NodeNotes>, usize),
        open_max: usize,
        silence: Duration,
    ) -> Result<Self> {
        let path = settings.directory.clone();
        let directory = blocking(move || Directory::take(&path, node)).await?;
        if let Some(text) = directory.read_only() {
            tasks.report(&Report::ReadOnly { node, text });
        }
        let pace = settings.model.as_ref().map(|model| Pace::new(model, clock)).transpose()?;
        let inner = Inner {
            tasks: tasks.clone(),
            others: HangWatch::watch(directory.described(), silence),
            flushes: HangWatch::watch(directory.described(), silence * FLUSH_SILENCES),
            directory: directory.into(),
            identity: OnceCell::new(),
            catalogue: Permits::new(1),
            objects: RefCell::new(Objects::new(open_max)),
            known_damaged: RefCell::default(),
            // An earlier incarnation may have been killed before it flushed the directory.
            directory_changed: Cell::new(true),
            directory_flush: Permits::new(1),
            at_once: AtOnce::of(&settings.directory).into(),
            pace,
        };
        Ok(Disk { tasks, noted, inner: Rc::new(inner) })
    }
}

impl Disk {
    /// Returns true if a directory has been a disk before: it contains files of a disk.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    pub fn has_been(directory: &Path) -> std::io::Result<bool> {
        for entry in directory.read_dir()? {
            if name::is_of_a_disk(&entry?.file_name()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Fails if this disk is a copy of one of these others.
    pub(crate) fn refuse_copy(&self, others: &[Disk]) -> Result<()> {
        let directory = &self.inner.directory;
        others.iter().try_for_each(|other| other.inner.directory.refuse_copy(directory))
    }

    /// Returns the number of the last incarnation with the directory, if it recorded a clean shutdown and the computer
    /// has not rebooted since: all its writes exist.
    pub fn last_run(&self) -> Option<u64> {
        self.inner.directory.last_run()
    }

    /// Records a clean shutdown of the incarnation with this number, for the next one.
    ///
    /// # Errors
    /// Fails if the directory is not writable, or if a flush has failed, because writes may be lost.
    pub fn note_end(&self, run: u64) -> Result<()> {
        self.inner.directory.check_syncs()?;
        if self.inner.objects.borrow().has_failed_sync() {
            let (what, why) =
                (self.inner.directory.described(), "a flush of an object has failed".to_owned());
            return Err(Error::Io { what, why }.into());
        }
        self.inner.directory.note_end(run)
    }

    /// Runs an operation to completion, even if its caller stops waiting or the disk hangs. Fails if the disk hangs.
    fn complete<T: 'static>(
        &self,
        name: &'static str,
        operation: impl Future<Output = Result<T>> + 'static,
    ) -> impl Future<Output = Result<T>> {
        let operation = self.inner.others.record(operation);
        self.unless_stuck(&self.inner.others, name, operation)
    }

    /// Runs an operation that flushes, like `complete`.
    fn complete_flush(
        &self,
        name: &'static str,
        operation: impl Future<Output = Result<()>> + 'static,
    ) -> impl Future<Output = Result<()>> {
        let operation = self.inner.flushes.record(operation);
        self.unless_stuck(&self.inner.flushes, name, operation)
    }

    async fn unless_stuck<T: 'static>(
        &self,
        watch: &HangWatch,
        name: &'static str,
        operation: Result<Boxed<Result<T>>>,
    ) -> Result<T> {
        let completed = watch.unless_stuck(self.tasks.complete(name, operation?)).await;
        completed.unwrap_or_else(|| {
            let error = watch.error();
            self.tasks.report_disk(&error);
            Err(error)
        })
    }

    /// Removes objects, in one call on a thread that may block; returns the outcome for each.
    async fn remove_named(&self, names: Vec<String>, stage: Stage) -> Result<Vec<Result<()>>> {
        let inner = self.inner.clone();
        let remove = async move {
            let _turn = inner.catalogue.take().await;
            let directory = inner.directory.clone();
            let remove = move |name: String| (directory.remove(&name, stage), name);
            let removed: Vec<_> = blocking(move || names.into_iter().map(remove).collect()).await;
            let settled =
                removed.into_iter().map(|(outcome, name)| inner.note_removed(&name, stage, outcome));
            Ok(settled.collect())
        };
        self.complete("removing objects", remove).await
    }
}

impl machine::Disk for Disk {
    async fn create(&self, name: &str, label: &[u8]) -> Result<Object> {
        let (inner, name, label) = (self.inner.clone(), name.to_owned(), label.to_vec());
        let create = async move {
            let _turn = inner.catalogue.take().await;
            let directory = inner.directory.clone();
            let found = blocking(move || directory.create(&name, &label)).await;
            let found = found.inspect_err(|error| inner.tasks.report_disk(error))?;
            inner.directory_changed.set(true);
            Ok(inner.enter(found))
        };
        self.complete("creating an object", create).await
    }

    async fn open(&self, name: &str) -> Result<Object> {
        let (inner, name) = (self.inner.clone(), name.to_owned());
        let open = async move {
            let _turn = inner.catalogue.take().await;
            inner.open(name, Stage::Pending).await
        };
        self.complete("opening an object", open).await
    }

    async fn list(&self) -> Result<Vec<String>> {
        self.list_staged(Stage::Pending).await
    }

    async fn space(&self) -> Result<Option<Space>> {
        let directory = self.inner.directory.clone();
        self.complete("asking for space", blocking(move || directory.space())).await.map(Some)
    }

    async fn identity(&self) -> Result<u64> {
        if let Some(identity) = self.inner.identity.get() {
            return Ok(*identity);
        }
        let directory = self.inner.directory.clone();
        let identity = blocking(move || directory.disk_identity());
        let identity = self.complete("asking for an identity", identity).await?;
        Ok(*self.inner.identity.get_or_init(|| identity))
    }

    fn device(&self) -> Option<u64> {
        Some(self.inner.directory.device())
    }

    fn has_own_pace(&self) -> bool {
        self.inner.pace.is_some()
    }

    async fn remove(&self, name: &str) -> Result<()> {
        let removed = self.remove_named(vec![name.to_owned()], Stage::Pending).await?;
        removed.into_iter().next().expect("as many as names")
    }

    async fn remove_all(&self, names: &[String]) -> Result<()> {
        let is_failure = |error: &Error| !matches!(error, Error::NotFound { .. });
        let removed = self.remove_named(names.to_vec(), Stage::Pending).await?;
        removed.into_iter().filter_map(Result::err).find(|error| is_failure(error)).map_or(Ok(()), Err)
    }

    async fn resize(&self, object: ObjectId, bytes: u64) -> Result<()> {
        let inner = self.inner.clone();
        let resize = async move {
            let resized = inner.stored(object).await?.resize(bytes).await;
            resized.map_err(|fault| inner.failure(object, fault))
        };
        self.complete("resizing an object", resize).await
    }

    async fn read(&self, object: ObjectId, offset: u64, into: Buf) -> Result<Buf> {
        let (inner, extent) = (self.inner.clone(), ObjectExtent { object, offset, bytes: into.len() });
        let read = async move {
            let transfer = inner.read(extent, into);
            match &inner.pace {
                Some(pace) => pace.keep(Kind::Read, extent, transfer).await,
                None => transfer.await,
            }
        };
        self.complete("reading an object", read).await
    }

    async fn write(&self, object: ObjectId, offset: u64, from: Payload) -> Result<()> {
        let (inner, extent) = (self.inner.clone(), ObjectExtent { object, offset, bytes: from.len() });
        let write = async move {
            let transfer = inner.write(extent, from);
            match &inner.pace {
                Some(pace) => pace.keep(Kind::Write, extent, transfer).await,
                None => transfer.await,
            }
        };
        self.complete("writing an object", write).await
    }

    async fn data_after(&self, object: ObjectId, offset: u64) -> Result<Option<Range<u64>>> {
        let inner = self.inner.clone();
        let find = async move {
            let found = inner.stored(object).await?.data_after(offset).await;
            found.map_err(|fault| inner.failure(object, fault))
        };
        self.complete("finding data", find).await
    }

    async fn flush(&self, object: ObjectId) -> Result<()> {
        let inner = self.inner.clone();
        self.complete_flush("flushing an object", async move { inner.flush(object).await }).await
    }

    fn position(&self, object: ObjectId, offset: u64) -> u64 {
        match &self.inner.pace {
            Some(pace) => pace.position(object, offset),
            // The system does not report the order of two files on the medium.
            None => offset,
        }
    }

    fn writes_pending(&self, bytes: u64) {
        let (notes, index) = &self.noted;
        notes.count(("disk", *index), "bytes of pending writes", bytes);
    }

    fn reads_held_up(&self, by: NodeId, writes: u64) {
        self.tasks.report_held_up(self.inner.directory.described(), by, writes);
    }
}

impl Inner {
    /// Records the outcome of the removal of an object. If it failed, the object stays known.
    fn note_removed(&self, name: &str, stage: Stage, outcome: Result<()>) -> Result<()> {
        if outcome.is_ok() {
            self.objects.borrow_mut().forget(name, stage);
            self.directory_changed.set(true);
        }
        outcome
    }

    /// Opens an object by name. The caller must hold the permit of the catalogue.
    async fn open(&self, name: String, stage: Stage) -> Result<Object> {
        let directory = self.directory.clone();
        let found = blocking(move || directory.open(&name, stage)).await;
        let found = found.inspect_err(|error| self.tasks.report_disk(error))?;
        if found.contents.is_cut {
            // The rest can be read; reads beyond it fail.
            let (what, why) =
                (self.directory.describe(&found.header.name, stage), "its file was truncated".to_owned());
            self.tasks.report_disk(&Error::Damaged { what, why });
        }
        Ok(self.enter(found))
    }

    fn enter(&self, found: Found) -> Object {
        let Found { file, stage, is_new, identity, header, contents } = found;
        let file = SystemFile::new(for_runtime(file), self.at_once.clone());
        let open = |sync_failure| OpenObject::new(file, contents, sync_failure);
        let mut objects = self.objects.borrow_mut();
        let (id, stored) = objects.enter(&header.name, stage, identity, open);
        objects.set_new(id, is_new);
        Object { id, label: header.label, bytes: stored.bytes() }
    }

    /// Returns an object, reopened if it was closed to limit the number of open files.
    async fn stored(&self, object: ObjectId) -> Result<Rc<OpenObject>> {
        if let Access::Open(file) = self.objects.borrow_mut().access(object) {
            return Ok(file);
        }
        let _turn = self.catalogue.take().await;
        let access = self.objects.borrow_mut().access(object);
        let reopened = match access {
            Access::Open(file) => return Ok(file),
            Access::Closed(name, stage) => self.open(name, stage).await?.id == object,
            Access::Missing => false,
        };
        let access = self.objects.borrow_mut().access(object);
        match access {
            Access::Open(file) if reopened => Ok(file),
            _ => Err(Error::NotFound { what: format!("object {} on this disk", object.0) }.into()),
        }
    }

    async fn read(&self, extent: ObjectExtent, into: Buf) -> Result<Buf> {
        let read = self.stored(extent.object).await?.read(extent.offset, into).await;
        read.map_err(|fault| self.failure(extent.object, fault))
    }

    async fn write(&self, extent: ObjectExtent, from: Payload) -> Result<()> {
        let written = self.stored(extent.object).await?.write(extent.offset, &from).await;
        written.map_err(|fault| self.failure(extent.object, fault))?;
        if !self.known_damaged.borrow().is_empty() {
            // Damage found after this write must be reported again.
            self.known_damaged.borrow_mut().remove(&extent.object);
        }
        Ok(())
    }

    async fn flush(&self, object: ObjectId) -> Result<()> {
        self.flush_contents(object).await?;
        self.settle().await
    }

    /// Flushes an object except its name. A new object loses this mark.
    async fn flush_contents(&self, object: ObjectId) -> Result<()> {
        let flushed = self.stored(object).await?.flush().await;
        flushed.map_err(|fault| self.failure(object, fault))?;
        if self.is_new(object) {
            let _turn = self.catalogue.take().await;
            // Another task may have flushed or removed the object since.
            let Some(name) = self.objects.borrow().new_name(object).map(str::to_owned) else { return Ok(()) };
            let directory = self.directory.clone();
            blocking(move || directory.settle(&name)).await?;
            self.objects.borrow_mut().set_new(object, false);
            self.directory_changed.set(true);
        }
        Ok(())
    }

    fn is_new(&self, object: ObjectId) -> bool {
        self.objects.borrow().new_name(object).is_some()
    }

    async fn settle(&self) -> Result<()> {
        self.flush_directory().await?;
        if let Some(pace) = &self.pace {
            pace.settle().await;
        }
        Ok(())
    }

    async fn flush_directory(&self) -> Result<()> {
        // A flush in flight is not complete, and may fail.
        let _turn = self.directory_flush.take().await;
        if self.directory_changed.replace(false) {
            let directory = self.directory.clone();
            let synced = blocking(move || directory.sync()).await;
            // The next flush must fail, too.
            self.directory_changed.set(self.directory_changed.get() || synced.is_err());
            synced?;
        }
        Ok(())
    }

    fn failure(&self, object: ObjectId, fault: Fault) -> Box<Error> {
        let objects = self.objects.borrow();
        let (name, stage) = objects.name(object).unwrap_or(("(removed)", Stage::Pending));
        let error = fault.of(self.directory.describe(name, stage));
        let is_damage = matches!(*error, Error::Damaged { .. });
        if !is_damage || self.known_damaged.borrow_mut().insert(object) {
            self.tasks.report_disk(&error);
        }
        error
    }
}

/// Converts an open file to one of the runtime.
///
/// The runtime opens files only by path, and the path might now lead to another file than the checked and locked one.
#[expect(unsafe_code, reason = "the runtime offers no safe way to hand it an open file")]
fn for_runtime(file: std::fs::File) -> File {
    // SAFETY: `into_raw_fd` releases the ownership of an open descriptor, which only this call takes over.
    unsafe { File::from_raw_fd(file.into_raw_fd()) }
}

/// Runs blocking `work` on another thread, where it does not delay the node.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let outcome = compio::runtime::spawn_blocking(work).await;
    outcome.resume_unwind().expect("a task is cancelled only when its handle is dropped")
}

#[cfg(test)]
mod tests {
    use machine::{Disk as _, Machine};

    use super::*;

    /// Runs `test` on a node with one disk.
    fn with_a_disk<F: Future<Output = ()> + 'static>(test: impl FnOnce(crate::RealMachine) -> F) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let disks = vec![DiskSettings::plain(directory.path().to_owned())];
        let settings = crate::Settings {
            disks,
            ..crate::Settings::new(NodeId(1), crate::Keys::draw().expect("randomness"))
        };
        crate::run(settings, test).expect("a node");
    }

    /// The test holds the permit that operations need, in place of a medium that hangs.
    #[test]
    fn operations_on_a_hanging_disk_fail_until_it_answers_again() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let disks = vec![DiskSettings::plain(directory.path().to_owned())];
        // Longer than a medium takes on a busy computer: the operations before and after the hang must complete.
        let limits = crate::Limits { silence: Duration::from_millis(500), ..crate::Limits::default() };
        let settings = crate::Settings {
            disks,
            limits,
            ..crate::Settings::new(NodeId(1), crate::Keys::draw().expect("randomness"))
        };
        let test = |machine: crate::RealMachine| async move {
            let disk = &machine.disks()[0];
            let object = disk.create("name", b"").await.expect("room").id;
            let hung = disk.inner.catalogue.take().await;
            for _ in 0..2 {
                let error = disk.open("name").await.expect_err("it hangs").to_string();
                assert!(error.contains("disk directory") && error.contains("has not answered"), "{error}");
            }
            disk.write(object, 0, Payload::from(vec![1])).await.expect_err("it hangs");
            drop(hung);
            while disk.open("name").await.is_err() {
                compio::time::sleep(Duration::from_millis(1)).await;
            }
            disk.write(object, 0, Payload::from(vec![1])).await.expect("it answers again");
        };
        crate::run(settings, test).expect("a node");
    }

    #[test]
    fn after_a_failed_sync_of_the_directory_every_flush_fails() {
        with_a_disk(|machine| async move {
            let disk = &machine.disks()[0];
            let object = disk.create("name", b"").await.expect("room").id;
            disk.inner.directory.fail_syncs(true);
            disk.flush(object).await.expect_err("the sync of the directory fails");
            disk.inner.directory.fail_syncs(false);
            for _ in 0..2 {
                let error = disk.flush(object).await.expect_err("the system has reported it before");
                assert!(error.to_string().contains("restart the agent"), "{error}");
            }
            disk.note_end(7).expect_err("something may not be there");
        });
    }

    #[test]
    fn an_object_that_could_not_be_removed_stays_usable() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let (path, aside) = (place.path().join("name.new"), place.path().join("aside"));
        let disks = vec![DiskSettings::plain(place.path().to_owned())];
        let settings = crate::Settings {
            disks,
            ..crate::Settings::new(NodeId(1), crate::Keys::draw().expect("randomness"))
        };
        let test = |machine: crate::RealMachine| async move {
            let disk = &machine.disks()[0];
            let object = disk.create("name", b"").await.expect("room").id;
            disk.write(object, 0, Payload::from(b"written".to_vec())).await.expect("room");
            std::fs::rename(&path, &aside).expect("it exists");
            std::fs::create_dir_all(path.join("not empty")).expect("room");
            disk.remove_all(&["name".to_owned()]).await.expect_err("a directory is in its place");
            std::fs::remove_dir_all(&path).expect("ours");
            std::fs::rename(&aside, &path).expect("it exists");
            disk.flush(object).await.expect("it is the same object");
            let found = disk.open("name").await.expect("it exists");
            assert_eq!((found.id, found.bytes), (object, 7));
        };
        crate::run(settings, test).expect("a node");
    }

    #[test]
    fn a_failing_flush_of_the_directory_fails_for_all_callers() {
        with_a_disk(|machine| async move {
            let inner = machine.disks()[0].inner.clone();
            inner.directory.fail_syncs(true);
            inner.directory_changed.set(true);
            let (sender, answers) = flume::unbounded();
            for _ in 0..2 {
                let (inner, sender) = (inner.clone(), sender.clone());
                machine.spawn("a flush", async move {
                    let flushed = inner.flush_directory().await;
                    sender.send(flushed.is_ok()).expect("it is waited for");
                    Ok(())
                });
            }
            for _ in 0..2 {
                assert_eq!(answers.recv_async().await, Ok(false));
            }
        });
    }
}
