//! Changes the attributes of inodes, and the recorded length and version of contents.

use layout::FILE_BYTES_MAX;

use crate::inode::{FileNumber, Inode, InodeKind};
use crate::operation::{AttributeChanges, SetTime, WrittenContents};
use crate::refusal::TreeRefusal;
use crate::store::{Records, Step, format_of};

impl Records<'_> {
    pub(crate) fn change(&mut self, number: FileNumber, changes: AttributeChanges) -> Step<Inode> {
        let mut inode = self.inode(number)?;
        let format = format_of(&inode);
        let AttributeChanges { mode, uid, gid, size, accessed, modified } = changes;
        let now = self.now;
        let time = |set: SetTime| match set {
            SetTime::Now => now,
            SetTime::At(time) => time,
        };
        if let Some(size) = size {
            self.check_contents(&inode, size)?;
            inode.resize(size);
            inode.raise_version(self.run);
            inode.modified = now;
            if size == 0 {
                // An empty file has no data to lose, so a client that lost data can write the file again.
                inode.stored_stripes = 0;
            }
        }
        inode.mode = mode.map_or(inode.mode, |mode| mode & 0o7777);
        inode.uid = uid.unwrap_or(inode.uid);
        inode.gid = gid.unwrap_or(inode.gid);
        inode.accessed = accessed.map_or(inode.accessed, time);
        inode.modified = modified.map_or(inode.modified, time);
        inode.changed = now;
        self.raise_format(format, &inode)?;
        self.put_inode(&inode)?;
        Ok(inode)
    }

    /// Records a change of the contents of a file.
    pub(crate) fn wrote(&mut self, number: FileNumber, written: WrittenContents) -> Step<Inode> {
        let mut inode = self.inode(number)?;
        self.check_contents(&inode, written.end)?;
        let format = format_of(&inode);
        let stripes = inode.layout().map_or(0, |layout| layout.striping.stripe_count());
        let stored_stripes = written.stored_stripes.min(stripes);
        inode.stored_stripes = inode.stored_stripes.max(stored_stripes);
        self.note_contents(&mut inode, written.end, written.bytes)?;
        self.raise_format(format, &inode)?;
        Ok(inode)
    }

    /// Reserves bytes for an append, without changing the contents. Returns the offset of the first byte.
    pub(crate) fn append(&mut self, number: FileNumber, bytes: u64, after: u64) -> Step<(u64, Inode)> {
        let mut inode = self.inode(number)?;
        self.check_contents(&inode, after)?;
        let format = format_of(&inode);
        machine::sometimes!("two appends are in flight", if inode.reserved > 0);
        let offset = inode.reserve(bytes, after).ok_or(TreeRefusal::FileTooLarge)?;
        self.raise_format(format, &inode)?;
        self.put_inode(&inode)?;
        Ok((offset, inode))
    }

    fn note_contents(&mut self, inode: &mut Inode, end: u64, bytes: u64) -> Step<()> {
        inode.note_written(end, bytes);
        inode.raise_version(self.run);
        inode.modified = self.now;
        inode.changed = self.now;
        self.put_inode(inode)
    }

    /// Fails if the inode is not a file, or if `bytes` exceeds the largest file.
    fn check_contents(&self, inode: &Inode, bytes: u64) -> Step<()> {
        match inode.kind {
            InodeKind::File(_) if bytes > FILE_BYTES_MAX => Err(TreeRefusal::FileTooLarge.into()),
            InodeKind::File(_) => Ok(()),
            InodeKind::Directory { .. } => Err(TreeRefusal::IsDirectory.into()),
            InodeKind::Link { .. } | InodeKind::Special { .. } => Err(TreeRefusal::Invalid.into()),
        }
    }
}
