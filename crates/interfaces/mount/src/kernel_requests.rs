//! Decodes requests of the kernel and runs them as tasks of the node thread.

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use flume::Sender;
use fs::LockRange;
use fuser::{
    BsdFileFlags, Errno, FileHandle, Filesystem, Generation, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLock, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use machine::Payload;
use namespace::{
    AttributeChanges, DeviceKind, FILE_NAME_BYTES_MAX, Location, NewInode, RemovalTarget, RenameMode,
    SetValue,
};
use nix::libc;

use crate::contents::{Allocation, SeekTarget};
use crate::directories::ListedEntry;
use crate::file_attributes::{attributes_of, file_number, kernel_kind, kernel_number, time_to_set};
use crate::locks::{KernelLock, WantedLock};
use crate::mounted_tree::{MountTask, MountedTree, Outcome};
use crate::names::InodeOwner;
use crate::request_memory::SpareTaker;
use crate::settings::{LockScope, MountSettings};
use crate::space::SPACE_BLOCK;

/// Size in bytes of the largest read or write request: the kernel's default limit.
const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// Limit of background requests in flight, such as read-ahead.
const BACKGROUND_MAX: u16 = 64;

/// The capabilities requested from the kernel. Without `FUSE_DIRECT_IO_ALLOW_MMAP` the kernel refuses shared mappings
/// through handles that bypass its pages.
const WANTED: [InitFlags; 5] = [
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_DO_READDIRPLUS,
    // Without this capability the kernel requests the extended attribute `security.capability` of a file before each
    // write.
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
    InitFlags::FUSE_ASYNC_DIO,
    InitFlags::FUSE_CACHE_SYMLINKS,
];

/// Capabilities for locks, unless the kernel keeps the locks.
const LOCKS: [InitFlags; 2] = [InitFlags::FUSE_POSIX_LOCKS, InitFlags::FUSE_FLOCK_LOCKS];

/// The answer that no process holds a lock.
const NO_LOCK: KernelLock =
    KernelLock { range: LockRange { first: 0, last: 0 }, kind: libc::F_UNLCK, process: 0 };

/// The generation of all inode numbers: numbers are never reused.
const GENERATION: Generation = Generation(0);

/// The kernel's side of the mount.
pub(crate) struct KernelRequests {
    tasks: Sender<MountTask>,
    settings: MountSettings,
    spare: SpareTaker,
}

/// A reply that can carry an error.
trait ErrorReply: Send + 'static {
    fn refuse(self, errno: Errno);
}

macro_rules! askers {
    ($($reply:ty),*) => {
        $(impl ErrorReply for $reply {
            fn refuse(self, errno: Errno) {
                self.error(errno);
            }
        })*
    };
}

askers!(
    ReplyAttr,
    ReplyCreate,
    ReplyData,
    ReplyDirectory,
    ReplyDirectoryPlus,
    ReplyEmpty,
    ReplyEntry,
    ReplyLock,
    ReplyLseek,
    ReplyOpen,
    ReplyStatfs,
    ReplyWrite,
    ReplyXattr
);

impl KernelRequests {
    pub(crate) fn new(tasks: Sender<MountTask>, settings: MountSettings, spare: SpareTaker) -> Self {
        KernelRequests { tasks, settings, spare }
    }

    /// Starts `work` on the node thread, which replies with the result. Counts the request as `operation`.
    fn begin<R: ErrorReply, T, F>(
        &self,
        operation: &'static str,
        asker: R,
        work: impl FnOnce(Rc<MountedTree>) -> F + Send + 'static,
        send_reply: impl FnOnce(R, T) + Send + 'static,
    ) where
        F: Future<Output = Outcome<T>> + 'static,
    {
        let came = Instant::now();
        let task: MountTask = Box::new(move |mounted| {
            let work = work(mounted.clone());
            Box::pin(async move {
                let outcome = work.await;
                mounted.tally.count(operation, came.elapsed(), outcome.as_ref().err().copied());
                match outcome {
                    Ok(done) => send_reply(asker, done),
                    Err(errno) => asker.refuse(errno),
                }
            })
        });
        // If the node thread has ended, the task is dropped, and fuser sends the answer.
        let _ = self.tasks.send(task);
    }

    /// Starts to answer with entries of a directory after a position. `add` puts an entry into the answer, or returns
    /// false if the answer is full.
    fn begin_list<R: ErrorReply>(
        &self,
        operation: &'static str,
        mut reply: R,
        handle: FileHandle,
        position: u64,
        mut add: impl FnMut(&mut R, &ListedEntry) -> bool + Send + 'static,
        send_reply: impl FnOnce(R) + Send + 'static,
    ) {
        let came = Instant::now();
        let task: MountTask = Box::new(move |mounted| {
            Box::pin(async move {
                let outcome = mounted.list(handle.0, position, |entry| add(&mut reply, entry)).await;
                mounted.tally.count(operation, came.elapsed(), outcome.as_ref().err().copied());
                match outcome {
                    Ok(()) => send_reply(reply),
                    Err(errno) => reply.refuse(errno),
                }
            })
        });
        let _ = self.tasks.send(task);
    }

    fn timeout(&self) -> Duration {
        self.settings.attribute_timeout
    }
}

fn location(parent: INodeNo, name: &OsStr) -> Location {
    Location { base: file_number(parent), path: name.as_bytes().to_vec() }
}

fn maker(request: &Request, mode: u32) -> InodeOwner {
    InodeOwner { mode: (mode & 0o7777) as u16, uid: request.uid(), gid: request.gid() }
}

/// Answers with an entry.
fn reply_entry(timeout: Duration) -> impl FnOnce(ReplyEntry, fuser::FileAttr) {
    move |reply, attributes| reply.entry(&timeout, &attributes, GENERATION)
}

fn reply_done(reply: ReplyEmpty, (): ()) {
    reply.ok();
}

/// Answers with a value, or with its length if the kernel requests that.
fn reply_value(room: u32) -> impl FnOnce(ReplyXattr, Vec<u8>) {
    move |reply, value| match value.len() {
        bytes if room == 0 => reply.size(bytes as u32),
        bytes if bytes > room as usize => reply.error(Errno::ERANGE),
        _ => reply.data(&value),
    }
}

fn reply_data(reply: ReplyData, data: Payload) {
    match data.as_contiguous() {
        Some(bytes) => reply.data(bytes),
        None => reply.data(&data.to_vec().expect("it is real")),
    }
}

impl Filesystem for KernelRequests {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let locks = LOCKS.into_iter().filter(|_| self.settings.locks != LockScope::Here);
        for flag in WANTED.into_iter().chain(locks) {
            // An unsupported capability is left out.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let at = location(parent, name);
        self.begin(
            "lookup",
            reply,
            |tree| async move { tree.look(at).await },
            |reply, (attributes, believed)| reply.entry(&believed, &attributes, GENERATION),
        );
    }

    fn getattr(&self, _request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        self.begin(
            "getattr",
            reply,
            move |tree| async move { tree.attributes(file_number(number)).await },
            move |reply, (attributes, believed)| reply.attr(&believed, &attributes),
        );
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        handle: Option<FileHandle>,
        _made: Option<SystemTime>,
        _macos_changed: Option<SystemTime>,
        _macos_backup: Option<SystemTime>,
        _macos_flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = AttributeChanges {
            mode: mode.map(|mode| (mode & 0o7777) as u16),
            uid,
            gid,
            size,
            accessed: accessed.map(time_to_set),
            modified: modified.map(time_to_set),
        };
        let (timeout, may_keep_rights) = (self.timeout(), request.uid() == 0);
        let handle = handle.map(|handle| handle.0);
        self.begin(
            "setattr",
            reply,
            move |tree| async move { tree.change(file_number(number), handle, changes, may_keep_rights).await },
            move |reply, attributes| reply.attr(&timeout, &attributes),
        );
    }

    fn readlink(&self, _request: &Request, number: INodeNo, reply: ReplyData) {
        self.begin(
            "readlink",
            reply,
            move |tree| async move { tree.target(file_number(number)).await },
            |reply, target: Vec<u8>| reply.data(&target),
        );
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let special = match mode & libc::S_IFMT {
            libc::S_IFIFO => Some((DeviceKind::Pipe, 0)),
            libc::S_IFSOCK => Some((DeviceKind::Socket, 0)),
            libc::S_IFCHR => Some((DeviceKind::Character, device)),
            libc::S_IFBLK => Some((DeviceKind::Block, device)),
            _ => None,
        };
        let (at, maker) = (location(parent, name), maker(request, mode));
        self.begin(
            "mknod",
            reply,
            move |tree| async move { tree.make_node(at, special, maker).await },
            reply_entry(self.timeout()),
        );
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let (at, maker) = (location(parent, name), maker(request, mode));
        self.begin(
            "mkdir",
            reply,
            move |tree| async move { tree.make(at, NewInode::Directory, maker).await },
            reply_entry(self.timeout()),
        );
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (at, maker) = (location(parent, name), maker(request, 0o777));
        let new = NewInode::Link { target: target.as_os_str().as_bytes().to_vec() };
        self.begin(
            "symlink",
            reply,
            move |tree| async move { tree.make(at, new, maker).await },
            reply_entry(self.timeout()),
        );
    }

    fn link(&self, _request: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let at = location(parent, name);
        self.begin(
            "link",
            reply,
            move |tree| async move { tree.link(file_number(number), at).await },
            reply_entry(self.timeout()),
        );
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let at = location(parent, name);
        self.begin(
            "unlink",
            reply,
            |tree| async move { tree.remove(at, RemovalTarget::File).await },
            reply_done,
        );
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let at = location(parent, name);
        self.begin(
            "rmdir",
            reply,
            |tree| async move { tree.remove(at, RemovalTarget::Directory).await },
            reply_done,
        );
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mode = if flags.is_empty() {
            RenameMode::Replace
        } else if flags == RenameFlags::RENAME_NOREPLACE {
            RenameMode::Keep
        } else if flags == RenameFlags::RENAME_EXCHANGE {
            RenameMode::Exchange
        } else {
            return reply.error(Errno::EINVAL);
        };
        let (from, to) = (location(parent, name), location(new_parent, new_name));
        self.begin("rename", reply, move |tree| async move { tree.rename(from, to, mode).await }, reply_done);
    }

    fn open(&self, _request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.begin(
            "open",
            reply,
            move |tree| async move { tree.open(file_number(number), flags.0).await },
            |reply, (handle, flags)| reply.opened(FileHandle(handle), flags),
        );
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (at, maker, timeout) = (location(parent, name), maker(request, mode), self.timeout());
        self.begin(
            "create",
            reply,
            move |tree| async move { tree.create(at, maker, flags).await },
            move |reply, (attributes, handle, flags)| {
                reply.created(&timeout, &attributes, GENERATION, FileHandle(handle), flags);
            },
        );
    }

    fn read(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let work =
            move |tree: Rc<MountedTree>| async move { tree.read(handle.0, offset, bytes.into()).await };
        self.begin("read", reply, work, reply_data);
    }

    fn write(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let data = self.spare.copy(data);
        self.begin(
            "write",
            reply,
            move |tree| async move { tree.write(handle.0, offset, data, flags.0, write_flags).await },
            |reply, bytes| reply.written(bytes),
        );
    }

    fn flush(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let work = move |tree: Rc<MountedTree>| async move {
            let flushed = tree.flush(handle.0).await;
            let unlocked = tree.unlock_all(handle.0, owner.0).await;
            flushed.and(unlocked)
        };
        self.begin("flush", reply, work, reply_done);
    }

    fn fsync(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        self.begin("fsync", reply, move |tree| async move { tree.sync(handle.0).await }, reply_done);
    }

    fn release(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let work = move |tree: Rc<MountedTree>| async move {
            let unlocked = tree.unlock_all_through(handle.0).await;
            tree.close(handle.0).await.and(unlocked)
        };
        self.begin("release", reply, work, reply_done);
    }

    fn fallocate(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let (keep, punch, zero) =
            (libc::FALLOC_FL_KEEP_SIZE, libc::FALLOC_FL_PUNCH_HOLE, libc::FALLOC_FL_ZERO_RANGE);
        let what = match mode {
            0 => Allocation::Extend,
            mode if mode == punch | keep || mode == zero | keep => Allocation::Zero { keeps_length: true },
            mode if mode == zero => Allocation::Zero { keeps_length: false },
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        let may_keep_rights = request.uid() == 0;
        let work = async move |tree: Rc<MountedTree>| {
            tree.allocate(handle.0, offset, bytes, what, may_keep_rights).await
        };
        self.begin("fallocate", reply, work, reply_done);
    }

    fn opendir(&self, _request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.begin(
            "opendir",
            reply,
            move |tree| async move { Ok(tree.open_directory(file_number(number))) },
            |reply, handle| reply.opened(FileHandle(handle), fuser::FopenFlags::empty()),
        );
    }

    fn readdir(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        let add = |reply: &mut ReplyDirectory, entry: &ListedEntry| {
            let kind = match &entry.inode {
                Some(inode) => kernel_kind(&inode.kind),
                None => fuser::FileType::Directory,
            };
            !reply.add(kernel_number(entry.number), entry.position, kind, OsStr::from_bytes(&entry.name))
        };
        self.begin_list("readdir", reply, handle, offset, add, ReplyDirectory::ok);
    }

    fn readdirplus(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let timeout = self.timeout();
        let add = move |reply: &mut ReplyDirectoryPlus, entry: &ListedEntry| {
            let (number, position) = (kernel_number(entry.number), entry.position);
            let attributes = match &entry.inode {
                Some(inode) => attributes_of(inode),
                None => directory_of_number(number),
            };
            let name = OsStr::from_bytes(&entry.name);
            !reply.add(number, position, name, &timeout, &attributes, GENERATION)
        };
        self.begin_list("readdirplus", reply, handle, offset, add, ReplyDirectoryPlus::ok);
    }

    fn releasedir(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.begin(
            "releasedir",
            reply,
            move |tree| async move { tree.close_directory(handle.0) },
            reply_done,
        );
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        let work = async move |tree: Rc<MountedTree>| match number {
            INodeNo::ROOT => tree.sync_all().await,
            _ => tree.flush_names(file_number(number)).await,
        };
        self.begin("fsyncdir", reply, work, reply_done);
    }

    fn statfs(&self, _request: &Request, _number: INodeNo, reply: ReplyStatfs) {
        self.begin(
            "statfs",
            reply,
            |tree| async move { tree.space().await },
            |reply, space| {
                // Each free block may become a file.
                let files = space.inodes + space.free;
                reply.statfs(
                    space.blocks,
                    space.free,
                    space.available,
                    files,
                    space.free,
                    SPACE_BLOCK,
                    FILE_NAME_BYTES_MAX as u32,
                    SPACE_BLOCK,
                );
            },
        );
    }

    fn setxattr(
        &self,
        _request: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let mode = match flags {
            libc::XATTR_CREATE => SetValue::New,
            libc::XATTR_REPLACE => SetValue::Replace,
            _ => SetValue::Any,
        };
        let (number, name, value) = (file_number(number), name.as_bytes().to_vec(), value.to_vec());
        let work =
            move |tree: Rc<MountedTree>| async move { tree.set_extended(number, name, value, mode).await };
        self.begin("setxattr", reply, work, reply_done);
    }

    fn getxattr(&self, _request: &Request, number: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        let (number, name) = (file_number(number), name.to_owned().into_vec());
        self.begin(
            "getxattr",
            reply,
            move |tree| async move { tree.extended(number, name).await },
            reply_value(room),
        );
    }

    fn listxattr(&self, _request: &Request, number: INodeNo, room: u32, reply: ReplyXattr) {
        let number = file_number(number);
        self.begin(
            "listxattr",
            reply,
            move |tree| async move { tree.extended_names(number).await },
            reply_value(room),
        );
    }

    fn removexattr(&self, _request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let (number, name) = (file_number(number), name.as_bytes().to_vec());
        self.begin(
            "removexattr",
            reply,
            move |tree| async move { tree.remove_extended(number, name).await },
            reply_done,
        );
    }

    /// The kernel sends this only if it does not keep locks itself.
    fn getlk(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        first: u64,
        last: u64,
        kind: i32,
        process: u32,
        reply: ReplyLock,
    ) {
        if self.settings.locks == LockScope::Nowhere {
            return reply.error(Errno::ENOLCK);
        }
        let range = LockRange { first, last };
        let wanted = WantedLock { handle: handle.0, owner: owner.0, range, kind, process };
        self.begin(
            "getlk",
            reply,
            move |tree| async move { tree.who_locks(wanted).await },
            |reply, held| {
                let KernelLock { range, kind, process } = held.unwrap_or(NO_LOCK);
                reply.locked(range.first, range.last, kind, process);
            },
        );
    }

    /// Like [`getlk`](Self::getlk).
    fn setlk(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        first: u64,
        last: u64,
        kind: i32,
        process: u32,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        if self.settings.locks == LockScope::Nowhere {
            return reply.error(Errno::ENOLCK);
        }
        let range = LockRange { first, last };
        let wanted = WantedLock { handle: handle.0, owner: owner.0, range, kind, process };
        let caller = waits.then(|| request.pid());
        self.begin("setlk", reply, move |tree| async move { tree.lock(wanted, caller).await }, reply_done);
    }

    /// The kernel sends only searches for data and holes.
    fn lseek(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let what = match whence {
            libc::SEEK_DATA => SeekTarget::Data,
            libc::SEEK_HOLE => SeekTarget::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(offset) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        self.begin(
            "lseek",
            reply,
            move |tree| async move { tree.find(handle.0, offset, what).await },
            |reply, found| reply.offset(found as i64),
        );
    }

    /// After this answer the kernel copies by reading and writing.
    fn copy_file_range(
        &self,
        _request: &Request,
        _from: INodeNo,
        _from_handle: FileHandle,
        _from_offset: u64,
        _to: INodeNo,
        _to_handle: FileHandle,
        _to_offset: u64,
        _bytes: u64,
        _flags: fuser::CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn ioctl(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _flags: fuser::IoctlFlags,
        _command: u32,
        _input: &[u8],
        _output_bytes: u32,
        reply: fuser::ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }
}

/// Returns attributes with only the number filled in, which suffices for the entries `.` and `..` of a directory.
fn directory_of_number(number: INodeNo) -> fuser::FileAttr {
    fuser::FileAttr {
        ino: number,
        size: 0,
        blocks: 0,
        atime: SystemTime::UNIX_EPOCH,
        mtime: SystemTime::UNIX_EPOCH,
        ctime: SystemTime::UNIX_EPOCH,
        crtime: SystemTime::UNIX_EPOCH,
        kind: fuser::FileType::Directory,
        perm: 0,
        nlink: 2,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}
