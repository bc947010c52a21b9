//! Contents of files: opening, reading, writing, flushing.
//!
//! On open the kernel keeps its cached pages of a file if they are of the file's current version. These reads and
//! writes bypass the kernel's page cache:
//!
//! - Appends, since only the metadata server knows the end of the file.
//! - A file opened for writing that another client has open for writing.
//! - Writes through a write-only handle, unless the file is also open through the kernel's pages: such writes would
//!   fill memory with a copy that may never be read. A handle opened while such a write-only handle exists bypasses the
//!   pages, too, so that no page is filled while its data change.
//! - All accesses through a handle for which the caller or the settings request this.
//!
//! Shared mappings through a handle that bypasses the pages fail with ENODEV: pages changed on several hosts would be
//! written back as a whole.

use fs::{Advice, OpenFor, OpenTreeFile};
use fuser::{Errno, FileAttr, FopenFlags, WriteFlags};
use layout::Extent;
use machine::Payload;
use namespace::{AttributeChanges, FileNumber, Location, TreeOperation, TreeRefusal};
use nix::libc;
use real::RealMachine;

use crate::attributes::without_rights;
use crate::counters::add;
use crate::file_attributes::attributes_of;
use crate::mounted_tree::{HandleUse, MountedFile, MountedTree, Outcome, about};
use crate::names::{InodeOwner, named};
use crate::settings::LockScope;

/// Zeros per write, in bytes.
const ZEROS_AT_ONCE: u64 = 1 << 20;

/// Makes the kernel look up a path again and open the existing file. The kernel then checks the caller's permissions,
/// and follows links only if the caller permits this. For the answer to a create request it would not make these
/// checks.
const LOOK_AGAIN: Errno = Errno::ESTALE;

/// The operation of `fallocate` on a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allocation {
    /// Extends the file to the end of the range.
    Extend,
    /// Makes the range read as zeros.
    Zero {
        /// True if the length of the file does not change.
        keeps_length: bool,
    },
}

/// The target of a search in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeekTarget {
    /// Written bytes.
    Data,
    /// A hole.
    Hole,
}

impl MountedTree {
    pub(crate) async fn open(&self, number: FileNumber, flags: i32) -> Outcome<(u64, FopenFlags)> {
        let opened = self.tree().open_for(TreeOperation::Get { number }, used_for(flags)).await;
        let file = self.settle(about(number), opened)?;
        Ok(self.opened(file, flags))
    }

    pub(crate) async fn create(
        &self,
        at: Location,
        maker: InodeOwner,
        flags: i32,
    ) -> Outcome<(FileAttr, u64, FopenFlags)> {
        let what = named(&at);
        let InodeOwner { mode, uid, gid } = maker;
        let new = self.new_file().await?;
        let operation = TreeOperation::Make { at, new, mode, uid, gid, exclusive: true };
        let made = self.tree().open_for(operation, used_for(flags)).await;
        if flags & libc::O_EXCL == 0 && made.as_ref().is_err_and(|error| may_be_there(error)) {
            return Err(LOOK_AGAIN);
        }
        let file = self.settle(&what, made)?;
        let attributes = attributes_of(&file.known());
        let (handle, open_flags) = self.opened(file, flags);
        Ok((attributes, handle, open_flags))
    }

    fn opened(&self, file: OpenTreeFile<RealMachine>, flags: i32) -> (u64, FopenFlags) {
        let writes = used_for(flags) == OpenFor::Writing;
        let appends = writes && flags & libc::O_APPEND != 0;
        let is_direct = appends || self.goes_past_pages(&file, flags);
        let keeps = self.may_keep_pages(&file);
        let mut open_flags = FopenFlags::empty();
        if is_direct {
            open_flags |= FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        }
        if keeps {
            open_flags |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        if !writes && self.settings.locks != LockScope::Everywhere {
            // With locks between mounts the flush request is needed: it names the process that closed the file, whose
            // locks must be released.
            open_flags |= FopenFlags::FOPEN_NOFLUSH;
        }
        (self.enter(file, HandleUse { writes, is_direct }), open_flags)
    }

    /// True if a handle opened now bypasses the kernel's pages for all its reads and writes.
    fn goes_past_pages(&self, file: &OpenTreeFile<RealMachine>, flags: i32) -> bool {
        let is_shared = used_for(flags) == OpenFor::Writing && file.had_other_writers();
        if is_shared || self.settings.direct || flags & libc::O_DIRECT != 0 {
            return true;
        }
        let others = self.uses_of(file.number());
        let only_writes = flags & libc::O_ACCMODE == libc::O_WRONLY;
        (only_writes && others.iter().all(|other| other.is_direct))
            || others.iter().any(|other| other.writes && other.is_direct)
    }

    pub(crate) async fn read(&self, handle: u64, offset: u64, bytes: u64) -> Outcome<Payload> {
        let open = self.file(handle)?;
        self.check_locks(&open).await?;
        let read = open.file.paged().read(offset, bytes).await;
        let read = self.settle(about(open.file.number()), read)?;
        add(&self.tally.read_bytes, read.len());
        Ok(read)
    }

    pub(crate) async fn write(
        &self,
        handle: u64,
        offset: u64,
        data: Vec<u8>,
        flags: i32,
        how: WriteFlags,
    ) -> Outcome<u32> {
        let open = self.file(handle)?;
        self.check_locks(&open).await?;
        let cache = self.tree().cache();
        let (bytes, data) = (data.len() as u32, cache.take_in(data));
        // Data from the kernel's pages (also of mappings) have a fixed offset, whichever handle the kernel uses to
        // write them. For other writes, use the current flags: the program may have changed them since the open
        // (F_SETFL).
        let has_place = !open.used.is_direct || how.contains(WriteFlags::FUSE_WRITE_CACHE);
        let appends = flags & libc::O_APPEND != 0 && !has_place;
        let wrote = if appends {
            let appended = open.file.append(data).await;
            self.heed_version(&open.file).await;
            appended.map(drop)
        } else {
            open.file.write(offset, data).await
        };
        self.spare.give(bytes as usize, |bytes| cache.spare_memory(bytes));
        self.settle(about(open.file.number()), wrote)?;
        if !appends {
            open.evict_passed(offset, bytes.into());
        }
        if open.used.is_direct {
            self.note_written_past_pages(open.file.number());
        }
        add(&self.tally.written_bytes, bytes.into());
        if how.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
            self.take_rights(&open).await?;
        }
        if flags & (libc::O_SYNC | libc::O_DSYNC) != 0 {
            self.sync_file(&open).await?;
        }
        Ok(bytes)
    }

    /// Clears the set-user-ID and set-group-ID bits of a file.
    async fn take_rights(&self, open: &MountedFile) -> Outcome<()> {
        let Some(mode) = without_rights(&open.file.known()) else { return Ok(()) };
        let changes = AttributeChanges { mode: Some(mode), ..AttributeChanges::default() };
        let changed = open.file.change(changes).await;
        self.settle(about(open.file.number()), changed).map(drop)
    }

    /// Sends written data to the agents, for clients that open the file later. A failure is reported by this call and
    /// again at sync or close, because a process that inherited the file ignores the result of this call when it starts
    /// a program.
    pub(crate) async fn flush(&self, handle: u64) -> Outcome<()> {
        let open = self.file(handle)?;
        let flushed = open.file.flush_shared().await;
        self.heed_version(&open.file).await;
        self.settle(about(open.file.number()), flushed)?;
        self.check_locks(&open).await
    }

    /// Fails if lost locks on the file may have been granted to other processes.
    async fn check_locks(&self, open: &MountedFile) -> Outcome<()> {
        let number = open.file.number();
        self.settle(about(number), self.tree().check_locks(number).await)
    }

    pub(crate) async fn sync(&self, handle: u64) -> Outcome<()> {
        let open = self.file(handle)?;
        self.sync_file(&open).await
    }

    async fn sync_file(&self, open: &MountedFile) -> Outcome<()> {
        let synced = open.file.sync().await;
        self.heed_version(&open.file).await;
        self.settle(about(open.file.number()), synced)?;
        self.check_locks(open).await
    }

    /// Returns the offset at which data or a hole begin next. The last hole begins at the end of the file. Fails with
    /// `ENXIO` past the end.
    pub(crate) async fn find(&self, handle: u64, offset: u64, what: SeekTarget) -> Outcome<u64> {
        let open = self.file(handle)?;
        if offset >= open.file.known().size {
            return Err(Errno::ENXIO);
        }
        let paged = open.file.paged();
        let found = match what {
            SeekTarget::Data => paged.next_data(offset).await,
            SeekTarget::Hole => paged.next_hole(offset).await.map(Some),
        };
        self.settle(about(open.file.number()), found)?.ok_or(Errno::ENXIO)
    }

    /// Applies an operation to a part of a file. `may_keep_rights` as with [`change`](Self::change).
    pub(crate) async fn allocate(
        &self,
        handle: u64,
        offset: u64,
        bytes: u64,
        what: Allocation,
        may_keep_rights: bool,
    ) -> Outcome<()> {
        let open = self.file(handle)?;
        self.check_locks(&open).await?;
        let end = offset.checked_add(bytes).ok_or(Errno::EFBIG)?;
        if !may_keep_rights {
            self.take_rights(&open).await?;
        }
        let done = match what {
            Allocation::Extend => open.file.extend(end).await,
            Allocation::Zero { keeps_length: true } => zero(&open, offset, end).await,
            Allocation::Zero { keeps_length: false } => match zero(&open, offset, end).await {
                Ok(()) => open.file.extend(end).await,
                failed => failed,
            },
        };
        self.settle(about(open.file.number()), done)
    }
}

/// Returns the use (reading or writing) for which a handle with these flags is opened.
fn used_for(flags: i32) -> OpenFor {
    if flags & libc::O_ACCMODE == libc::O_RDONLY { OpenFor::Reading } else { OpenFor::Writing }
}

/// True if the file may exist after a failed creation: another client created it, or the outcome is unknown.
fn may_be_there(error: &fs::Error) -> bool {
    error.is_refused(TreeRefusal::Exists) || error.is_restart()
}

impl MountedFile {
    /// Records a write, and drops pages well behind a sequential writer from the page cache.
    fn evict_passed(&self, offset: u64, bytes: u64) {
        let mut passing = self.passing.get();
        let passed = passing.note(offset, bytes);
        self.passing.set(passing);
        if let Some(Extent { offset, bytes }) = passed {
            self.file.paged().advise(Advice::DontNeed { offset, bytes });
        }
    }
}

/// Makes a range read as zeros, up to the end of the file. Writes zeros only over data, so holes stay holes.
async fn zero(open: &MountedFile, mut from: u64, end: u64) -> fs::Result<()> {
    let end = end.min(open.file.attributes().await?.size);
    let paged = open.file.paged();
    while let Some(data) = paged.next_data(from).await?.filter(|&data| data < end) {
        from = paged.next_hole(data).await?.min(end);
        write_zeros(open, data, from).await?;
    }
    Ok(())
}

async fn write_zeros(open: &MountedFile, mut from: u64, end: u64) -> fs::Result<()> {
    while from < end {
        let bytes = ZEROS_AT_ONCE.min(end - from);
        open.file.write(from, Payload::zeros(bytes)).await?;
        from += bytes;
    }
    Ok(())
}
