//! Inodes and times as the kernel has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use namespace::{DeviceKind, FileNumber, Inode, InodeKind, SetTime, UnixTime};

/// What programs should read and write at a time, as far as they ask.
const BLOCK_BYTES: u32 = 128 << 10;

/// The bytes of the blocks in which the space of a file is counted.
const SPACE_UNIT: u64 = 512;

/// The number as the kernel has it.
pub(crate) fn kernel_number(number: FileNumber) -> INodeNo {
    INodeNo(number.0)
}

/// The number as the namespace has it.
pub(crate) fn file_number(number: INodeNo) -> FileNumber {
    FileNumber(number.0)
}

/// What kind of file it is.
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

/// The space of a file, in blocks of [`SPACE_UNIT`].
fn space_of(inode: &Inode) -> u64 {
    inode.stored_bytes().div_ceil(SPACE_UNIT).max(u64::from(inode.size > 0))
}

/// The attributes of an inode.
///
/// The space of a file is what its writers have told of it ([`Inode::stored_bytes`]): its agents would have to be asked
/// for each `stat`. Where it is less than the length, programs ask for the holes (`SEEK_HOLE`); where it is nothing,
/// some do not ask, and take a file for nothing but a hole (GNU tar), so it never is. That they are told too little of
/// what is being written just then does no harm, therefore.
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

/// A time to be set.
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

/// Returns the nearest time that a namespace can keep, 1677 to 2262, of a time that the kernel has asked for.
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
    fn times_before_and_after_1970_come_back() {
        // As fuser hands them over.
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
