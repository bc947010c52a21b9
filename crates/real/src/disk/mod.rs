//! A disk: a directory with one file for each object, perhaps slowed down to a model.
//!
//! Reading order: `directory.rs` (the files, by name), `header.rs` and `name.rs` (what is in them and how
//! they are called), `objects.rs` (which are open), `pace.rs` (modelled time). Here these become the
//! operations of a [`machine::Disk`].
//!
//! Data go through the system's page cache. Every operation runs as a transfer: it is completed even if
//! nobody waits for it any more.

mod directory;
mod header;
mod name;
mod objects;
mod pace;

use std::cell::{Cell, RefCell};
use std::os::fd::{FromRawFd, IntoRawFd};
use std::rc::Rc;

use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::fs::File;
use compio::io::{AsyncReadAt, AsyncWriteAtExt};
use compio::runtime::ResumeUnwind;
use machine::{Buf, Error, NodeId, Object, ObjectId, Payload, Result, Space};

use crate::bytes::{next_batch, push_runs};
use crate::clock::Clock;
use crate::settings::DiskSettings;
use crate::task::{Tasks, Turns};
use directory::{Directory, Found, io_error};
use objects::{Access, Objects};
use pace::{Extent, Kind, Pace};

/// A disk of a real node. Cloning gives another handle.
#[derive(Clone)]
pub struct Disk {
    tasks: Tasks,
    inner: Rc<Inner>,
}

struct Inner {
    directory: std::sync::Arc<Directory>,
    /// The directory and the table of objects change together, by one task at a time.
    catalogue: Turns,
    objects: RefCell<Objects<File>>,
    /// Whether objects were made or removed since the directory was last flushed.
    directory_changed: Cell<bool>,
    pace: Option<Pace>,
}

impl Disk {
    /// Takes the directory and prepares it. Fails if another agent has it.
    pub(crate) async fn start(
        settings: &DiskSettings,
        node: NodeId,
        clock: Clock,
        tasks: Tasks,
    ) -> Result<Self> {
        let path = settings.directory.clone();
        let directory = blocking(move || Directory::take(&path, node)).await?;
        let inner = Inner {
            directory: directory.into(),
            catalogue: Turns::new(),
            objects: RefCell::new(Objects::new()),
            directory_changed: Cell::new(false),
            pace: settings.model.as_ref().map(|model| Pace::new(model, clock)),
        };
        Ok(Disk { tasks, inner: Rc::new(inner) })
    }
}

impl machine::Disk for Disk {
    async fn create(&self, name: &str, label: &[u8]) -> Result<Object> {
        let (inner, name, label) = (self.inner.clone(), name.to_owned(), label.to_vec());
        let create = async move {
            let _turn = inner.catalogue.take().await;
            let directory = inner.directory.clone();
            let found = blocking(move || directory.create(&name, &label)).await?;
            inner.directory_changed.set(true);
            Ok(inner.enter(found))
        };
        self.tasks.complete("creating an object", create).await
    }

    async fn open(&self, name: &str) -> Result<Object> {
        let (inner, name) = (self.inner.clone(), name.to_owned());
        let open = async move {
            let _turn = inner.catalogue.take().await;
            inner.open(name).await
        };
        self.tasks.complete("opening an object", open).await
    }

    async fn list(&self) -> Result<Vec<String>> {
        let directory = self.inner.directory.clone();
        blocking(move || directory.list()).await
    }

    async fn space(&self) -> Result<Option<Space>> {
        let directory = self.inner.directory.clone();
        blocking(move || directory.space()).await.map(Some)
    }

    async fn remove(&self, name: &str) -> Result<()> {
        let (inner, name) = (self.inner.clone(), name.to_owned());
        let remove = async move {
            let _turn = inner.catalogue.take().await;
            let is_closed = inner.objects.borrow().is_closed(&name);
            if is_closed {
                // Who has the object open goes on using its file, so there must be one. A damaged object,
                // or one whose file is gone, nobody can use any more.
                let _ = inner.open(name.clone()).await;
            }
            let (directory, removed) = (inner.directory.clone(), name.clone());
            blocking(move || directory.remove(&removed)).await?;
            inner.objects.borrow_mut().forget(&name);
            inner.directory_changed.set(true);
            Ok(())
        };
        self.tasks.complete("removing an object", remove).await
    }

    async fn resize(&self, object: ObjectId, bytes: u64) -> Result<()> {
        let inner = self.inner.clone();
        let resize = async move {
            let file = inner.file(object).await?;
            let resized = file.set_len(in_file(bytes)).await;
            resized.map_err(|error| inner.failure(object, error))
        };
        self.tasks.complete("resizing an object", resize).await
    }

    async fn read(&self, object: ObjectId, offset: u64, into: Buf) -> Result<Buf> {
        let (inner, extent) = (self.inner.clone(), Extent { object, offset, bytes: into.len() });
        let read = async move {
            let transfer = inner.read(extent, into);
            match &inner.pace {
                Some(pace) => pace.keep(Kind::Read, extent, transfer).await,
                None => transfer.await,
            }
        };
        self.tasks.complete("reading an object", read).await
    }

    async fn write(&self, object: ObjectId, offset: u64, from: Payload) -> Result<()> {
        let (inner, extent) = (self.inner.clone(), Extent { object, offset, bytes: from.len() });
        let write = async move {
            let transfer = inner.write(extent, from);
            match &inner.pace {
                Some(pace) => pace.keep(Kind::Write, extent, transfer).await,
                None => transfer.await,
            }
        };
        self.tasks.complete("writing an object", write).await
    }

    async fn flush(&self, object: ObjectId) -> Result<()> {
        let inner = self.inner.clone();
        self.tasks.complete("flushing an object", async move { inner.flush(object).await }).await
    }

    fn position(&self, object: ObjectId, offset: u64) -> u64 {
        match &self.inner.pace {
            Some(pace) => pace.position(object, offset),
            // Which of two files lies first on the medium is known to nobody who would tell.
            None => offset,
        }
    }
}

impl Inner {
    /// Opens an object by name. Whoever calls has the turn at the catalogue.
    async fn open(&self, name: String) -> Result<Object> {
        let directory = self.directory.clone();
        let found = blocking(move || directory.open(&name)).await?;
        Ok(self.enter(found))
    }

    fn enter(&self, found: Found) -> Object {
        let Found { file, identity, header, bytes } = found;
        let id = self.objects.borrow_mut().enter(&header.name, identity, for_runtime(file));
        Object { id, label: header.label, bytes }
    }

    /// The file of an object, opened again if it was closed to make room.
    async fn file(&self, object: ObjectId) -> Result<File> {
        if let Access::Open(file) = self.objects.borrow_mut().access(object) {
            return Ok(file);
        }
        let _turn = self.catalogue.take().await;
        let access = self.objects.borrow_mut().access(object);
        let reopened = match access {
            Access::Open(file) => return Ok(file),
            Access::Closed(name) => self.open(name).await?.id == object,
            Access::Missing => false,
        };
        let access = self.objects.borrow_mut().access(object);
        match access {
            Access::Open(file) if reopened => Ok(file),
            _ => Err(Error::NotFound { what: format!("object {} on this disk", object.0) }),
        }
    }

    async fn read(&self, extent: Extent, mut into: Buf) -> Result<Buf> {
        let file = self.file(extent.object).await?;
        let (start, wanted) = (in_file(extent.offset), extent.bytes as usize);
        let mut memory = into.take_memory();
        while memory.len() < wanted {
            let read = memory.len();
            let result = file.read_at(memory.slice(read..wanted), start + read as u64).await;
            let BufResult(result, slice) = result;
            memory = slice.into_inner();
            match result {
                // The end of the object; what lies past it is zeros, which `fill_memory` adds.
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(self.failure(extent.object, error)),
            }
        }
        into.fill_memory(memory);
        Ok(into)
    }

    async fn write(&self, extent: Extent, from: Payload) -> Result<()> {
        let mut file = self.file(extent.object).await?;
        let mut at = in_file(extent.offset);
        let mut runs = Vec::new();
        push_runs(&from, &mut runs)?;
        while let Some(batch) = next_batch(&mut runs) {
            let bytes: usize = batch.iter().map(IoBuf::buf_len).sum();
            let BufResult(result, _batch) = file.write_vectored_all_at(batch, at).await;
            result.map_err(|error| self.failure(extent.object, error))?;
            at += bytes as u64;
        }
        Ok(())
    }

    async fn flush(&self, object: ObjectId) -> Result<()> {
        let file = self.file(object).await?;
        file.sync_data().await.map_err(|error| self.failure(object, error))?;
        if self.directory_changed.replace(false) {
            let directory = self.directory.clone();
            let synced = blocking(move || directory.sync()).await;
            // Whoever flushes next tries again.
            self.directory_changed.set(self.directory_changed.get() || synced.is_err());
            synced?;
        }
        if let Some(pace) = &self.pace {
            pace.settle().await;
        }
        Ok(())
    }

    fn failure(&self, object: ObjectId, error: std::io::Error) -> Error {
        let objects = self.objects.borrow();
        let name = objects.name(object).unwrap_or("(removed)");
        io_error(&self.directory.describe(name), error)
    }
}

/// Where the byte of an object at `offset` lies in its file. Offsets no file can have stay such.
fn in_file(offset: u64) -> u64 {
    offset.saturating_add(header::BYTES as u64)
}

/// The same open file as one of the runtime's.
///
/// The runtime opens files by path only, and what has been checked and locked here is this very file: the
/// path might lead to another by now.
#[expect(unsafe_code, reason = "the runtime offers no safe way to hand it an open file")]
fn for_runtime(file: std::fs::File) -> File {
    // SAFETY: `into_raw_fd` gives up the ownership of an open descriptor, and nobody else takes it over.
    unsafe { File::from_raw_fd(file.into_raw_fd()) }
}

/// Runs `work`, which blocks, on a thread where that does not hold up the node.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let outcome = compio::runtime::spawn_blocking(work).await;
    outcome.resume_unwind().expect("a task is cancelled only when its handle is dropped")
}
