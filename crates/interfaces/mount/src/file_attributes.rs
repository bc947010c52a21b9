//! Conversion of inodes and times to and from the kernel's types.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use namespace::{DeviceKind, FileNumber, Inode, InodeKind, SetTime, UnixTime};

/// Recommended size in bytes of reads and writes of programs.
const BLOCK_BYTES: u32 = 128 << 10;

/// Unit of the disk space of a file, in bytes.
const SPACE_UNIT: u64 = 512;

/// Returns the kernel's inode number of a file.
pub(crate) fn kernel_number(number: FileNumber) -> INodeNo {
    INodeNo(number.0)
}

/// Returns the file number of a kernel's inode number.
pub(crate) fn file_number(number: INodeNo) -> FileNumber {
    FileNumber(number.0)
}

/// Returns the file type for the kernel.
pub(crate) fn kernel_kind(kind: &InodeKind) -> FileType {
    match kind {
        InodeKind::File(_) => FileType::RegularFile,
        InodeKind::Directory { .. } => FileType::Directory,
        InodeKind::Link { .. } => FileType::Symlink,
        InodeKind::Special { kind: DeviceKind::Pipe, .. } => FileType::NamedPipe,
        InodeKind::Special { kind: DeviceKind::Socket, .. } => FileType::Socket,
        InodeKind::Special { kind: DeviceKind::Character, .. } => FileType::CharDevice,
        InodeKind::Special { kind: DeviceKind::Block, .. } => FileType::BlockDevice,
    }
}

/// Returns the space of a file, in units of [`SPACE_UNIT`].
fn space_of(inode: &Inode) -> u64 {
    inode.stored_bytes().div_ceil(SPACE_UNIT).max(u64::from(inode.size > 0))
}

/// Returns the attributes of an inode.
///
/// The disk space of a file is the number of bytes that its writers have reported ([`Inode::stored_bytes`]); otherwise
/// each `stat` would need a request to every agent. If the space is less than the length, programs search for holes
/// (`SEEK_HOLE`). If the space is 0, some programs treat the whole file as a hole without a search (GNU tar), so it is
/// never 0 for a non-empty file. Therefore a value that is too low during writing does no harm.
pub(crate) fn attributes_of(inode: &Inode) -> FileAttr {
    FileAttr {
        ino: kernel_number(inode.number),
        size: inode.size,
        blocks: if inode.layout().is_some() { space_of(inode) } else { 0 },
        atime: system_time(inode.accessed),
        mtime: system_time(inode.modified),
        ctime: system_time(inode.changed),
        crtime: system_time(inode.made),
        kind: kernel_kind(&inode.kind),
        perm: inode.mode,
        nlink: inode.links,
        uid: inode.uid,
        gid: inode.gid,
        rdev: match inode.kind {
            InodeKind::Special { device, .. } => device,
            _ => 0,
        },
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

/// Returns the time to set.
pub(crate) fn time_to_set(time: TimeOrNow) -> SetTime {
    match time {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(time) => SetTime::At(asked_time(time)),
    }
}

fn system_time(time: UnixTime) -> SystemTime {
    let distance = Duration::from_nanos(time.unsigned_abs());
    if time < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

/// Converts a time that the kernel requests to the nearest time that a namespace can store (1677 to 2262).
///
/// The kernel counts nanoseconds forward from the second, also before 1970: -1.5 s are -2 s and 500,000,000 ns. fuser
/// 0.18 subtracts both (`system_time_from_time`), so the nanoseconds are added back here.
fn asked_time(time: SystemTime) -> UnixTime {
    let nanos = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_nanos() as i128,
        Err(before) => {
            let before = before.duration();
            -i128::from(before.as_secs()) * 1_000_000_000 + i128::from(before.subsec_nanos())
        }
    };
    nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as UnixTime
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_after_1970_survive_conversion() {
        // Times as fuser passes them.
        let asked = |time: UnixTime| {
            let (seconds, nanos) = (time.div_euclid(1_000_000_000), time.rem_euclid(1_000_000_000) as u32);
            match u64::try_from(seconds) {
                Ok(seconds) => UNIX_EPOCH + Duration::new(seconds, nanos),
                Err(_) => UNIX_EPOCH - Duration::new(seconds.unsigned_abs(), nanos),
            }
        };
        for time in [0, 1, -1, 1_700_000_000_123_456_789, -1_500_000_000, -999_999_999, i64::MAX, i64::MIN] {
            assert_eq!(asked_time(asked(time)), time);
        }
        assert_eq!(system_time(-1_500_000_000), UNIX_EPOCH - Duration::from_millis(1500));
        assert_eq!(asked_time(UNIX_EPOCH + Duration::from_secs(1 << 40)), i64::MAX, "the nearest there is");
    }
}
