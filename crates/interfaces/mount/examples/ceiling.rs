//! Shows the limit of FUSE on this host: a mount with one file, `zeros`. Reads return bytes of a buffer in memory;
//! writes are accepted and discarded. Request size and number of requests in flight are those of a real mount. Runs
//! until it is unmounted.
//!
//! ```text
//! cargo run --release -p mount --example ceiling -- DIR BYTES
//! ```

#![expect(clippy::print_stderr, reason = "a measurement keeps standard error open")]

use std::ffi::OsStr;
use std::io;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};

const NAME: &str = "zeros";
const FILE: INodeNo = INodeNo(2);
const REQUEST_BYTES: u32 = 1 << 20;
const BACKGROUND: u16 = 64;
const TIMEOUT: Duration = Duration::from_secs(60);

struct Ceiling {
    bytes: u64,
    zeros: Vec<u8>,
}

impl Ceiling {
    fn attributes(&self, number: INodeNo) -> FileAttr {
        let is_file = number == FILE;
        let now = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino: number,
            size: if is_file { self.bytes } else { 0 },
            blocks: 0,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: now,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o666 } else { 0o777 },
            nlink: 1,
            uid: nix::unistd::getuid().as_raw(),
            gid: nix::unistd::getgid().as_raw(),
            rdev: 0,
            blksize: REQUEST_BYTES,
            flags: 0,
        }
    }
}

impl Filesystem for Ceiling {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.set_max_write(REQUEST_BYTES);
        let _ = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&TIMEOUT, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TIMEOUT, &self.attributes(number));
    }

    fn setattr(
        &self,
        _request: &Request,
        number: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        _modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _made: Option<SystemTime>,
        _macos_changed: Option<SystemTime>,
        _macos_backup: Option<SystemTime>,
        _macos_flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.attr(&TIMEOUT, &self.attributes(number));
    }

    fn open(&self, _request: &Request, _number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        bytes: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let there = self.bytes.saturating_sub(offset).min(bytes.into());
        reply.data(&self.zeros[..there as usize]);
    }

    fn write(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply.written(data.len() as u32);
    }

    fn flush(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fsync(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(Ok(bytes))) = (arguments.next(), arguments.next().map(|bytes| bytes.parse()))
    else {
        eprintln!("usage: ceiling DIR BYTES");
        std::process::exit(2);
    };
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("ceiling".into())];
    let ceiling = Ceiling { bytes, zeros: vec![0; REQUEST_BYTES as usize] };
    fuser::Session::new(ceiling, std::path::Path::new(&directory), &config)?.spawn()?.join()
}
