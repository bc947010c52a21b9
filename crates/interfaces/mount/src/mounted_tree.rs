//! State of a mount on the node thread: open files and directories, and versions of the kernel's cached pages.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};

use flume::Receiver;
use fs::OpenTreeFile;
use fuser::{Errno, Notifier};
use machine::{Condition, Duration, InFlight, Machine, OperationInFlight};
use namespace::{FileNumber, Inode};
use node::{Error, ErrorKind, TreeNode};
use real::RealMachine;

use crate::counters::MountCounters;
use crate::errno::{errno_of, is_ordinary};
use crate::open_directory::OpenDirectory;
use crate::request_memory::SpareGiver;
use crate::sequential_writes::SequentialWrites;
use crate::settings::MountSettings;

/// Result of a kernel request.
pub(crate) type Outcome<T> = Result<T, Errno>;

/// A task for the node thread.
pub(crate) type MountTask = Box<dyn FnOnce(Rc<MountedTree>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// Receives full errors; the kernel gets only an errno.
pub(crate) type ErrorSink = Box<dyn Fn(&Error) + Send>;

/// Interval between searches for orphans.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Limit of files whose cached version is remembered.
const CACHED_MAX: usize = 100_000;

/// The mount on the node thread.
pub(crate) struct MountedTree {
    pub(crate) node: TreeNode,
    pub(crate) settings: MountSettings,
    /// Open files, by handle.
    files: RefCell<BTreeMap<u64, Rc<MountedFile>>>,
    /// Handles, by file number.
    by_number: RefCell<BTreeMap<FileNumber, Vec<u64>>>,
    pub(crate) directories: RefCell<BTreeMap<u64, Rc<OpenDirectory>>>,
    last_handle: Cell<u64>,
    /// Versions of the pages cached by the kernel, by file.
    cached: RefCell<BTreeMap<FileNumber, CachedVersion>>,
    notifier: Notifier,
    on_error: ErrorSink,
    pub(crate) spare: SpareGiver,
    pub(crate) tally: MountCounters,
    /// Requests in flight.
    pub(crate) calls: InFlight,
    /// Signalled when a lock is released through this mount.
    pub(crate) unlocked: Condition,
    /// True if the kernel sends no more requests.
    pub(crate) has_ended: Cell<bool>,
}

/// An open file.
pub(crate) struct MountedFile {
    pub(crate) file: OpenTreeFile<RealMachine>,
    pub(crate) used: HandleUse,
    /// Progress of sequential writes through this handle.
    pub(crate) passing: Cell<SequentialWrites>,
    /// Owners that locked the file through this handle, by the kernel's owner id, with their processes.
    pub(crate) lockers: RefCell<BTreeMap<u64, u32>>,
    /// Requests in flight: the file is closed only after all have completed.
    calls: InFlight,
}

/// Use of a handle.
#[derive(Clone, Copy)]
pub(crate) struct HandleUse {
    pub(crate) writes: bool,
    /// True if accesses through the handle bypass the kernel's pages.
    pub(crate) is_direct: bool,
}

/// An open file that is not closed as long as this value exists.
pub(crate) struct UsedFile {
    open: Rc<MountedFile>,
    /// Declared after the file, so that it is dropped after the file.
    _call: OperationInFlight,
}

impl std::ops::Deref for UsedFile {
    type Target = MountedFile;

    fn deref(&self) -> &MountedFile {
        &self.open
    }
}

/// The version of a file whose pages the kernel caches.
#[derive(Clone, Copy)]
struct CachedVersion {
    /// `None` after a write that bypassed the pages.
    version: Option<u64>,
    /// Number of changes by other clients that this client knew when the pages were valid.
    by_others: u64,
}

impl CachedVersion {
    /// Returns the current version of a file.
    fn of(file: &OpenTreeFile<RealMachine>) -> Self {
        CachedVersion { version: Some(file.known().version), by_others: file.changed_by_others() }
    }
}

/// Kernel-side channels of a mount.
pub(crate) struct KernelSide {
    pub(crate) notifier: Notifier,
    pub(crate) on_error: ErrorSink,
    /// Requests of the kernel.
    pub(crate) tasks: Receiver<MountTask>,
    /// Returns memory of write requests to the kernel threads.
    pub(crate) spare: SpareGiver,
}

/// Serves requests until the channel closes, then closes all open files.
pub(crate) async fn serve(
    node: TreeNode,
    settings: MountSettings,
    KernelSide { notifier, on_error, tasks, spare }: KernelSide,
) -> node::Result<()> {
    let mounted = Rc::new(MountedTree {
        node: node.clone(),
        settings,
        files: RefCell::default(),
        by_number: RefCell::default(),
        directories: RefCell::default(),
        last_handle: Cell::new(0),
        cached: RefCell::default(),
        notifier,
        on_error,
        spare,
        tally: MountCounters::default(),
        calls: InFlight::new(),
        unlocked: Condition::new(),
        has_ended: Cell::new(false),
    });
    if !mounted.settings.read_only {
        node.spawn("removal of unlinked files", sweep(Rc::downgrade(&mounted)));
    }
    while let Ok(task) = tasks.recv_async().await {
        let (work, call) = (task(mounted.clone()), mounted.calls.begin());
        node.spawn("a call of the mount", async move {
            work.await;
            drop(call);
        });
    }
    mounted.has_ended.set(true);
    mounted.unlocked.wake_all();
    mounted.calls.none().await;
    mounted.close_all().await;
    mounted.tree().contents_removed().await;
    if mounted.settings.read_only {
        return Ok(());
    }
    node.explained("cannot flush written data to the disks", mounted.tree().sync().await)
}

impl MountedTree {
    /// Returns the namespace and its files.
    pub(crate) fn tree(&self) -> &fs::Tree<RealMachine> {
        self.node.tree()
    }

    /// Converts an outcome to one for the kernel. Reports unexpected errors, with their subject.
    pub(crate) fn settle<T>(&self, what: impl Display, outcome: fs::Result<T>) -> Outcome<T> {
        let error = match outcome {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        match *error {
            fs::Error::Refused(refusal) if is_ordinary(refusal) => Err(errno_of(ErrorKind::Refused(refusal))),
            _ => self.node.explained(&what.to_string(), Err(error)).map_err(|error| self.log_error(&error)),
        }
    }

    /// Reports an error and returns its number.
    pub(crate) fn log_error(&self, error: &Error) -> Errno {
        (self.on_error)(error);
        errno_of(error.kind())
    }

    /// Returns a new handle.
    pub(crate) fn new_handle(&self) -> u64 {
        self.last_handle.set(self.last_handle.get() + 1);
        self.last_handle.get()
    }

    /// Returns the number of open file handles.
    pub(crate) fn open_count(&self) -> usize {
        self.files.borrow().len()
    }

    /// Registers an open file and returns its handle.
    pub(crate) fn enter(&self, file: OpenTreeFile<RealMachine>, used: HandleUse) -> u64 {
        let (handle, number) = (self.new_handle(), file.number());
        let (passing, lockers, calls) = (Cell::default(), RefCell::default(), InFlight::new());
        let open = MountedFile { file, used, passing, lockers, calls };
        self.files.borrow_mut().insert(handle, Rc::new(open));
        self.by_number.borrow_mut().entry(number).or_default().push(handle);
        handle
    }

    /// Returns the uses of the handles that are open on a file here.
    pub(crate) fn uses_of(&self, number: FileNumber) -> Vec<HandleUse> {
        self.handles_on(number).iter().map(|open| open.used).collect()
    }

    /// Returns the process that locked a file here as this owner.
    pub(crate) fn locker(&self, number: FileNumber, owner: u64) -> Option<u32> {
        self.handles_on(number).iter().find_map(|open| open.lockers.borrow().get(&owner).copied())
    }

    fn handles_on(&self, number: FileNumber) -> Vec<Rc<MountedFile>> {
        let (by_number, files) = (self.by_number.borrow(), self.files.borrow());
        let handles = by_number.get(&number).into_iter().flatten();
        handles.filter_map(|handle| files.get(handle)).cloned().collect()
    }

    /// Returns the open file of a handle. Fails with `EBADF`.
    pub(crate) fn file(&self, handle: u64) -> Outcome<UsedFile> {
        let open = self.files.borrow().get(&handle).cloned().ok_or(Errno::EBADF)?;
        let call = open.calls.begin();
        Ok(UsedFile { open, _call: call })
    }

    /// Returns an open file with this number, if any handle is open on it.
    pub(crate) fn open_file(&self, number: FileNumber) -> Option<UsedFile> {
        let handle = self.by_number.borrow().get(&number).and_then(|handles| handles.last().copied())?;
        self.file(handle).ok()
    }

    /// Closes a file when its requests in flight have completed.
    pub(crate) async fn close(&self, handle: u64) -> Outcome<()> {
        let open = self.files.borrow_mut().remove(&handle).ok_or(Errno::EBADF)?;
        let number = open.file.number();
        {
            let mut by_number = self.by_number.borrow_mut();
            if let Some(handles) = by_number.get_mut(&number) {
                handles.retain(|&other| other != handle);
                if handles.is_empty() {
                    by_number.remove(&number);
                }
            }
        }
        open.calls.none().await;
        let open = Rc::into_inner(open).expect("every call drops the file before it ends");
        self.settle(about(number), open.file.close().await)
    }

    async fn close_all(&self) {
        let handles: Vec<u64> = self.files.borrow().keys().copied().collect();
        for handle in handles {
            // No caller is waiting, and `close` has reported the error.
            let _ = self.close(handle).await;
        }
    }

    /// Returns `inode` as reported by the metadata server, with unreported local writes added. If other clients have
    /// written, fetches the attributes again for a file that is open in this mount.
    pub(crate) async fn seen(&self, inode: Inode) -> Inode {
        if let Some(open) = self.open_file(inode.number)
            && open.file.known().version != inode.version
            && let Ok(seen) = self.ask_for_attributes(&open).await
        {
            return seen;
        }
        self.tree().seen(inode)
    }

    /// Fetches the attributes of an open file from the metadata server. If others have changed its contents, the kernel
    /// has dropped its pages when this completes.
    pub(crate) async fn ask_for_attributes(&self, open: &MountedFile) -> fs::Result<Inode> {
        let seen = open.file.attributes().await;
        self.heed_version(&open.file).await;
        seen
    }

    /// True if the kernel may keep its pages of a file that is being opened. If not, its cached length is dropped, too.
    pub(crate) fn may_keep_pages(&self, file: &OpenTreeFile<RealMachine>) -> bool {
        let known = CachedVersion::of(file);
        let before = {
            let mut cached = self.cached.borrow_mut();
            if cached.len() >= CACHED_MAX {
                // Forgetting all versions only costs that some pages are read again.
                cached.clear();
            }
            cached.insert(file.number(), known)
        };
        let keeps = before.is_some_and(|before| before.version == known.version);
        if !keeps {
            // A negative offset invalidates attributes only. So this thread does not wait for a page in flight, which
            // this thread might have to supply. An error means that the kernel has cached nothing.
            let _ = self.notifier.inval_inode(crate::file_attributes::kernel_number(file.number()), -1, 0);
        }
        keeps
    }

    /// Applies the known version of an open file after an answer of the metadata server about it. If others have
    /// changed the contents, the kernel drops its pages; otherwise its pages are of this version.
    pub(crate) async fn heed_version(&self, file: &OpenTreeFile<RealMachine>) {
        let cached = self.cached.borrow().get(&file.number()).copied();
        match cached {
            Some(cached) if cached.by_others == file.changed_by_others() => self.note_version(file),
            _ => self.drop_pages(file).await,
        }
    }

    /// Records that the kernel's pages are of the known version, unless writes bypassed them.
    fn note_version(&self, file: &OpenTreeFile<RealMachine>) {
        if let Some(cached) = self.cached.borrow_mut().get_mut(&file.number())
            && let Some(version) = &mut cached.version
        {
            *version = file.known().version;
        }
    }

    /// Like [`heed_version`](Self::heed_version), for a new lock holder: also drops pages that writes have bypassed.
    pub(crate) async fn heed_version_for_lock(&self, file: &OpenTreeFile<RealMachine>) {
        let cached = self.cached.borrow().get(&file.number()).copied();
        match cached {
            Some(CachedVersion { version: None, .. }) => self.drop_pages(file).await,
            _ => self.heed_version(file).await,
        }
    }

    /// Makes the kernel drop its pages of an open file. A separate thread waits until the pages are dropped, because
    /// this thread must supply pages in flight during that time.
    async fn drop_pages(&self, file: &OpenTreeFile<RealMachine>) {
        let known = CachedVersion::of(file);
        let (number, notifier) =
            (crate::file_attributes::kernel_number(file.number()), self.notifier.clone());
        let (done, waited) = flume::bounded(1);
        std::thread::spawn(move || {
            // An error means that the kernel has no pages.
            let _ = notifier.inval_inode(number, 0, 0);
            let _ = done.send(());
        });
        let _ = waited.recv_async().await;
        self.cached.borrow_mut().insert(file.number(), known);
    }

    /// Records that a write bypassed the kernel's pages: before Linux 6.6 the kernel may keep outdated pages after such
    /// a write.
    pub(crate) fn note_written_past_pages(&self, number: FileNumber) {
        if let Some(cached) = self.cached.borrow_mut().get_mut(&number) {
            cached.version = None;
        }
    }
}

/// Removes orphans left by other clients, now and every minute until the mount ends.
async fn sweep(mount: Weak<MountedTree>) {
    while let Some(mounted) = mount.upgrade() {
        let _ = mounted.settle("cannot remove unlinked files", mounted.tree().remove_orphans().await);
        let node = mounted.node.clone();
        drop(mounted);
        let deadline = node.machine().now() + SWEEP_EVERY;
        node.machine().sleep_until(deadline).await;
    }
}

/// Returns the subject of an error about this file.
pub(crate) fn about(number: FileNumber) -> impl Display {
    std::fmt::from_fn(move |f| write!(f, "file {number}"))
}
