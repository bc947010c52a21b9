//! What the node thread keeps for a mount: what is open, and what the kernel may have of it.

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

use crate::errno::{errno_of, is_ordinary};
use crate::open_directory::OpenDirectory;
use crate::passing::Passing;
use crate::request_memory::SpareGiver;
use crate::settings::MountSettings;
use crate::tally::MountTally;

/// What a call comes to.
pub(crate) type Outcome<T> = Result<T, Errno>;

/// Something to be done on the node thread.
pub(crate) type MountTask = Box<dyn FnOnce(Rc<MountedTree>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// Who hears of errors of which the kernel takes a number only.
pub(crate) type Hearer = Box<dyn Fn(&Error) + Send>;

/// How often files without names are looked for that somebody has left behind.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// The most files of which it is remembered up to which version the kernel has their pages.
const CACHED_MAX: usize = 100_000;

/// The mount on the node thread.
pub(crate) struct MountedTree {
    pub(crate) node: TreeNode,
    pub(crate) settings: MountSettings,
    /// The open files, by the numbers that the kernel has for them.
    files: RefCell<BTreeMap<u64, Rc<MountedFile>>>,
    /// Their numbers, by that of the file.
    by_number: RefCell<BTreeMap<FileNumber, Vec<u64>>>,
    pub(crate) directories: RefCell<BTreeMap<u64, Rc<OpenDirectory>>>,
    last_handle: Cell<u64>,
    /// Which version of a file the kernel's pages are of.
    cached: RefCell<BTreeMap<FileNumber, CachedVersion>>,
    notifier: Notifier,
    hearer: Hearer,
    pub(crate) spare: SpareGiver,
    pub(crate) tally: MountTally,
    /// The calls under way.
    pub(crate) calls: InFlight,
    /// Some lock has been let go.
    pub(crate) unlocked: Condition,
    /// Whether the kernel asks for nothing more.
    pub(crate) has_ended: Cell<bool>,
}

/// An open file.
pub(crate) struct MountedFile {
    pub(crate) file: OpenTreeFile<RealMachine>,
    pub(crate) used: HandleUse,
    /// What was written through this handle from front to back.
    pub(crate) passing: Cell<Passing>,
    /// Those who have got locks through this handle, by what the kernel calls them as owners, and their processes.
    pub(crate) lockers: RefCell<BTreeMap<u64, u32>>,
    /// The calls under way: the file is closed after them.
    calls: InFlight,
}

/// What a handle is for.
#[derive(Clone, Copy)]
pub(crate) struct HandleUse {
    pub(crate) writes: bool,
    /// Whether it goes past the kernel's pages.
    pub(crate) is_direct: bool,
}

/// An open file that is not closed meanwhile.
pub(crate) struct UsedFile {
    open: Rc<MountedFile>,
    /// After the file.
    _call: OperationInFlight,
}

impl std::ops::Deref for UsedFile {
    type Target = MountedFile;

    fn deref(&self) -> &MountedFile {
        &self.open
    }
}

/// Which version of a file the kernel's pages are of.
#[derive(Clone, Copy)]
struct CachedVersion {
    /// None after a write past the pages.
    version: Option<u64>,
    /// The number of changes by others that were known when the pages were good.
    by_others: u64,
}

impl CachedVersion {
    /// The version that a file has now.
    fn of(file: &OpenTreeFile<RealMachine>) -> Self {
        CachedVersion { version: Some(file.known().version), by_others: file.changed_by_others() }
    }
}

/// What there is between a mount and the kernel.
pub(crate) struct KernelSide {
    pub(crate) notifier: Notifier,
    pub(crate) hearer: Hearer,
    /// What the kernel asks for.
    pub(crate) tasks: Receiver<MountTask>,
    /// The way back for the memory of what is written.
    pub(crate) spare: SpareGiver,
}

/// Does what comes until nobody can ask any more, and closes what is open then.
pub(crate) async fn serve(
    node: TreeNode,
    settings: MountSettings,
    KernelSide { notifier, hearer, tasks, spare }: KernelSide,
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
        hearer,
        spare,
        tally: MountTally::default(),
        calls: InFlight::new(),
        unlocked: Condition::new(),
        has_ended: Cell::new(false),
    });
    if !mounted.settings.read_only {
        node.spawn("removing what has no name", sweep(Rc::downgrade(&mounted)));
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
    mounted.tree().contents_gone().await;
    if mounted.settings.read_only {
        return Ok(());
    }
    node.explained("bringing what was written onto the disks", mounted.tree().sync().await)
}

impl MountedTree {
    /// The namespace and its files.
    pub(crate) fn tree(&self) -> &fs::Tree<RealMachine> {
        self.node.tree()
    }

    /// The outcome for the kernel. If something is wrong, somebody hears of it; `what` is what it is about.
    pub(crate) fn settle<T>(&self, what: impl Display, outcome: fs::Result<T>) -> Outcome<T> {
        let error = match outcome {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        match *error {
            fs::Error::Refused(refusal) if is_ordinary(refusal) => Err(errno_of(ErrorKind::Refused(refusal))),
            _ => self.node.explained(&what.to_string(), Err(error)).map_err(|error| self.tell(&error)),
        }
    }

    /// The number of an error that somebody hears of.
    pub(crate) fn tell(&self, error: &Error) -> Errno {
        (self.hearer)(error);
        errno_of(error.kind())
    }

    /// A number for something that is opened now.
    pub(crate) fn new_handle(&self) -> u64 {
        self.last_handle.set(self.last_handle.get() + 1);
        self.last_handle.get()
    }

    /// How many handles are open on files.
    pub(crate) fn open_count(&self) -> usize {
        self.files.borrow().len()
    }

    /// Enters an open file; its number for the kernel.
    pub(crate) fn enter(&self, file: OpenTreeFile<RealMachine>, used: HandleUse) -> u64 {
        let (handle, number) = (self.new_handle(), file.number());
        let (passing, lockers, calls) = (Cell::default(), RefCell::default(), InFlight::new());
        let open = MountedFile { file, used, passing, lockers, calls };
        self.files.borrow_mut().insert(handle, Rc::new(open));
        self.by_number.borrow_mut().entry(number).or_default().push(handle);
        handle
    }

    /// What the handles are for that are open on a file here.
    pub(crate) fn uses_of(&self, number: FileNumber) -> Vec<HandleUse> {
        self.handles_on(number).iter().map(|open| open.used).collect()
    }

    /// The process that has got locks on a file here as this owner.
    pub(crate) fn locker(&self, number: FileNumber, owner: u64) -> Option<u32> {
        self.handles_on(number).iter().find_map(|open| open.lockers.borrow().get(&owner).copied())
    }

    fn handles_on(&self, number: FileNumber) -> Vec<Rc<MountedFile>> {
        let (by_number, files) = (self.by_number.borrow(), self.files.borrow());
        let handles = by_number.get(&number).into_iter().flatten();
        handles.filter_map(|handle| files.get(handle)).cloned().collect()
    }

    /// The open file that the kernel has this number for.
    pub(crate) fn file(&self, handle: u64) -> Outcome<UsedFile> {
        let open = self.files.borrow().get(&handle).cloned().ok_or(Errno::EBADF)?;
        let call = open.calls.begin();
        Ok(UsedFile { open, _call: call })
    }

    /// A file that is open here, if this one is.
    pub(crate) fn open_file(&self, number: FileNumber) -> Option<UsedFile> {
        let handle = self.by_number.borrow().get(&number).and_then(|handles| handles.last().copied())?;
        self.file(handle).ok()
    }

    /// Closes a file when the calls under way have ended.
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
        let open = Rc::into_inner(open).expect("a call lets go of the file before it ends");
        self.settle(about(number), open.file.close().await)
    }

    async fn close_all(&self) {
        let handles: Vec<u64> = self.files.borrow().keys().copied().collect();
        for handle in handles {
            // Who had it open is gone, and the error has been told.
            let _ = self.close(handle).await;
        }
    }

    /// What the keeper has said of a file, with what is written here and not told; what others have written is looked
    /// at by those who have it open here.
    pub(crate) async fn seen(&self, inode: Inode) -> Inode {
        if let Some(open) = self.open_file(inode.number)
            && open.file.known().version != inode.version
            && let Ok(seen) = self.ask_for_attributes(&open).await
        {
            return seen;
        }
        self.tree().seen(inode)
    }

    /// The attributes of an open file after asking the keeper. If others have changed its contents, the kernel has
    /// forgotten its pages when this completes.
    pub(crate) async fn ask_for_attributes(&self, open: &MountedFile) -> fs::Result<Inode> {
        let seen = open.file.attributes().await;
        self.heed_version(&open.file).await;
        seen
    }

    /// Whether the kernel may keep its pages of a file that is opened. If not, what it knows of the file's length is
    /// forgotten, too.
    pub(crate) fn may_keep_pages(&self, file: &OpenTreeFile<RealMachine>) -> bool {
        let known = CachedVersion::of(file);
        let before = {
            let mut cached = self.cached.borrow_mut();
            if cached.len() >= CACHED_MAX {
                // Some pages are read once more then.
                cached.clear();
            }
            cached.insert(file.number(), known)
        };
        let keeps = before.is_some_and(|before| before.version == known.version);
        if !keeps {
            // Without an offset it concerns attributes only, so that this thread waits for no page, which it may have
            // to bring itself. That the kernel knows nothing of the file is no failure.
            let _ = self.notifier.inval_inode(crate::file_attributes::kernel_number(file.number()), -1, 0);
        }
        keeps
    }

    /// Takes in the version that an open file is known to have, after any answer of the keeper about it. If others have
    /// changed the contents, the kernel forgets its pages; otherwise they are of this version now.
    pub(crate) async fn heed_version(&self, file: &OpenTreeFile<RealMachine>) {
        let cached = self.cached.borrow().get(&file.number()).copied();
        match cached {
            Some(cached) if cached.by_others == file.changed_by_others() => self.note_version(file),
            _ => self.drop_pages(file).await,
        }
    }

    /// The pages that the kernel has are of the version known, unless they were written past.
    fn note_version(&self, file: &OpenTreeFile<RealMachine>) {
        if let Some(cached) = self.cached.borrow_mut().get_mut(&file.number())
            && let Some(version) = &mut cached.version
        {
            *version = file.known().version;
        }
    }

    /// As [`heed_version`](Self::heed_version), for who gets a lock: pages that were written past are forgotten, too.
    pub(crate) async fn heed_version_for_lock(&self, file: &OpenTreeFile<RealMachine>) {
        let cached = self.cached.borrow().get(&file.number()).copied();
        match cached {
            Some(CachedVersion { version: None, .. }) => self.drop_pages(file).await,
            _ => self.heed_version(file).await,
        }
    }

    /// Has the kernel forget its pages of a file that is open. A thread of its own waits for that: pages may be on
    /// their way, which this thread has to bring.
    async fn drop_pages(&self, file: &OpenTreeFile<RealMachine>) {
        let known = CachedVersion::of(file);
        let (number, notifier) =
            (crate::file_attributes::kernel_number(file.number()), self.notifier.clone());
        let (done, waited) = flume::bounded(1);
        std::thread::spawn(move || {
            // That the kernel has none is no failure.
            let _ = notifier.inval_inode(number, 0, 0);
            let _ = done.send(());
        });
        let _ = waited.recv_async().await;
        self.cached.borrow_mut().insert(file.number(), known);
    }

    /// Notes that a file was written to past the kernel's pages: before Linux 6.6 it may keep those that it has.
    pub(crate) fn note_written_past_pages(&self, number: FileNumber) {
        if let Some(cached) = self.cached.borrow_mut().get_mut(&number) {
            cached.version = None;
        }
    }
}

/// Removes contents that others have left behind, now and every minute until the mount ends.
async fn sweep(mount: Weak<MountedTree>) {
    while let Some(mounted) = mount.upgrade() {
        let _ = mounted.settle("removing what has no name", mounted.tree().remove_doomed().await);
        let node = mounted.node.clone();
        drop(mounted);
        let deadline = node.machine().now() + SWEEP_EVERY;
        node.machine().sleep_until(deadline).await;
    }
}

/// What an error of this file is about.
pub(crate) fn about(number: FileNumber) -> impl Display {
    std::fmt::from_fn(move |f| write!(f, "file {number}"))
}
