//! Performs operations on a namespace.

use machine::Transaction;

use crate::creating::NewEntry;
use crate::extended::{VALUE_BYTES_MAX, check_attribute};
use crate::file_name::{PATH_BYTES_MAX, check_path};
use crate::inode::{FileNumber, Inode, InodeKind, UnixTime, next_in_run};
use crate::keys;
use crate::operation::{NewInode, TreeAnswer, TreeOperation, TreeUse};
use crate::refusal::TreeRefusal;
use crate::store::{FORMAT, Records, Step, TransactionEnd, TreeHeader};

/// Result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Performed {
    /// Answer to the client.
    pub answer: TreeAnswer,
    /// The directories that the operation changed, in their new state; a removed directory has no links. So a client
    /// that changes names need not query their directories.
    pub directories: Vec<Inode>,
}

/// Performs an operation within a transaction. `now` is the time of the operation. `run` is the incarnation of the
/// store; changes by earlier incarnations may be lost. Returns the result of the operation, or the reason for a
/// refusal.
///
/// # Errors
/// Fails if the store fails.
pub fn perform(
    transaction: &mut dyn Transaction,
    operation: &TreeOperation,
    now: UnixTime,
    run: u64,
) -> machine::Result<Result<Performed, TreeRefusal>> {
    let mut records = Records { transaction, now, run, directories: Vec::new() };
    match records.perform(operation) {
        Ok(answer) => Ok(Ok(Performed { answer, directories: records.directories })),
        Err(TransactionEnd::Refused(refusal)) => Ok(Err(refusal)),
        Err(TransactionEnd::Failed(error)) => Err(error),
    }
}

impl TreeOperation {
    /// True if the operation changes nothing.
    pub fn only_reads(&self) -> bool {
        let reads_much = matches!(
            self,
            TreeOperation::List { .. }
                | TreeOperation::ListExtended { .. }
                | TreeOperation::ListOrphans { .. }
                | TreeOperation::Survey { .. }
        );
        reads_much || self.reads_little()
    }

    /// True if the operation changes nothing, and reads a small, limited number of records.
    pub fn reads_little(&self) -> bool {
        matches!(
            self,
            TreeOperation::Describe
                | TreeOperation::ReadDisks { .. }
                | TreeOperation::Look { .. }
                | TreeOperation::Get { .. }
                | TreeOperation::GetExtended { .. }
        )
    }

    /// True if repeating the operation has no further effect, and returns the same answer except for versions and
    /// times.
    pub fn may_be_repeated(&self) -> bool {
        let changes_once = matches!(
            self,
            TreeOperation::EnterDisks { .. }
                | TreeOperation::Change { .. }
                | TreeOperation::Wrote { .. }
                | TreeOperation::Make { exclusive: false, .. }
                | TreeOperation::Forget { .. }
        );
        changes_once || self.only_reads()
    }

    /// Returns the number of the inode that the operation changes, if the inode exists before the operation.
    pub fn number(&self) -> Option<FileNumber> {
        match self {
            TreeOperation::Link { number, .. }
            | TreeOperation::Change { number, .. }
            | TreeOperation::Wrote { number, .. }
            | TreeOperation::Append { number, .. }
            | TreeOperation::SetExtended { number, .. }
            | TreeOperation::RemoveExtended { number, .. } => Some(*number),
            _ => None,
        }
    }

    /// Checks the lengths of names, paths, targets and values. A client calls this before it sends the operation, since
    /// a longer operation may not fit into a message.
    ///
    /// # Errors
    /// Fails with `NameTooLong` or `TooLarge`.
    pub fn check_lengths(&self) -> Result<(), TreeRefusal> {
        match self {
            TreeOperation::Make { at, new, .. } => {
                check_path(&at.path)?;
                let target = if let NewInode::Link { target } = new { target.len() } else { 0 };
                if target > PATH_BYTES_MAX { Err(TreeRefusal::NameTooLong) } else { Ok(()) }
            }
            TreeOperation::Look { at, .. }
            | TreeOperation::Link { at, .. }
            | TreeOperation::Remove { at, .. } => check_path(&at.path),
            TreeOperation::Rename { from, to, .. } => {
                check_path(&from.path).and_then(|()| check_path(&to.path))
            }
            TreeOperation::SetExtended { name, value, .. } => {
                check_attribute(name)?;
                if value.len() > VALUE_BYTES_MAX { Err(TreeRefusal::TooLarge) } else { Ok(()) }
            }
            TreeOperation::GetExtended { name, .. } | TreeOperation::RemoveExtended { name, .. } => {
                check_attribute(name)
            }
            TreeOperation::List { after, .. } => check_attribute(after),
            _ => Ok(()),
        }
    }

    /// Returns the name of the operation in traces and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            TreeOperation::Describe => "describe",
            TreeOperation::Begin { .. } => "begin",
            TreeOperation::EnterDisks { .. } => "enter disks",
            TreeOperation::ReadDisks { .. } => "read disks",
            TreeOperation::Look { .. } => "look",
            TreeOperation::Get { .. } => "get",
            TreeOperation::List { .. } => "list",
            TreeOperation::Make { .. } => "make",
            TreeOperation::Link { .. } => "link",
            TreeOperation::Rename { .. } => "rename",
            TreeOperation::Remove { .. } => "remove",
            TreeOperation::Change { .. } => "change",
            TreeOperation::Wrote { .. } => "wrote",
            TreeOperation::Append { .. } => "append",
            TreeOperation::SetExtended { .. } => "set extended",
            TreeOperation::GetExtended { .. } => "get extended",
            TreeOperation::ListExtended { .. } => "list extended",
            TreeOperation::RemoveExtended { .. } => "remove extended",
            TreeOperation::ListOrphans { .. } => "list orphans",
            TreeOperation::Forget { .. } => "forget",
            TreeOperation::Survey { .. } => "survey",
            TreeOperation::Mend { .. } => "mend",
        }
    }
}

impl Records<'_> {
    fn perform(&mut self, operation: &TreeOperation) -> Step<TreeAnswer> {
        if !matches!(operation, TreeOperation::Begin { .. }) {
            // Check the format first: records of an unknown format must not be read or changed.
            self.header()?;
        }
        operation.check_lengths()?;
        let answer = match operation {
            TreeOperation::Describe => {
                let TreeHeader { origin, inodes, .. } = self.header()?;
                TreeAnswer::Used(TreeUse { origin, inodes })
            }
            TreeOperation::Begin { origin, mode, uid, gid } => self.begin(*origin, *mode, *uid, *gid)?,
            TreeOperation::EnterDisks { disks } => TreeAnswer::Number(self.enter_disks(disks)?),
            TreeOperation::ReadDisks { list } => TreeAnswer::Disks(self.disks(*list)?),
            TreeOperation::Look { at, follow } => TreeAnswer::Inode(self.walk(at, *follow)?.there()?),
            TreeOperation::Get { number } => TreeAnswer::Inode(self.inode(*number)?),
            TreeOperation::List { directory, after, bytes_max } => {
                let listed = self.list(*directory, after, *bytes_max as usize)?;
                let crate::listing::ListedEntries { directory, entries, more } = listed;
                TreeAnswer::Entries { directory, entries, more }
            }
            TreeOperation::Make { at, new, mode, uid, gid, exclusive } => {
                let (mode, uid, gid, exclusive) = (*mode, *uid, *gid, *exclusive);
                let file = NewEntry { new: new.clone(), mode, uid, gid, exclusive };
                TreeAnswer::Inode(self.make(at, file)?)
            }
            TreeOperation::Link { number, at } => TreeAnswer::Inode(self.link(*number, at)?),
            TreeOperation::Rename { from, to, mode } => {
                TreeAnswer::Removed { orphan: self.rename(from, to, *mode)? }
            }
            TreeOperation::Remove { at, what } => TreeAnswer::Removed { orphan: self.remove(at, *what)? },
            TreeOperation::Change { number, changes } => TreeAnswer::Inode(self.change(*number, *changes)?),
            TreeOperation::Wrote { number, written } => TreeAnswer::Inode(self.wrote(*number, *written)?),
            TreeOperation::Append { number, bytes, after } => {
                let (offset, inode) = self.append(*number, *bytes, *after)?;
                TreeAnswer::Appended { offset, inode }
            }
            TreeOperation::SetExtended { number, name, value, mode } => {
                self.set_extended(*number, name, value, *mode)?;
                TreeAnswer::Done
            }
            TreeOperation::GetExtended { number, name } => {
                TreeAnswer::Value(self.get_extended(*number, name)?)
            }
            TreeOperation::ListExtended { number } => TreeAnswer::Names(self.list_extended(*number)?),
            TreeOperation::RemoveExtended { number, name } => {
                self.remove_extended(*number, name)?;
                TreeAnswer::Done
            }
            TreeOperation::ListOrphans { after, most } => {
                TreeAnswer::Numbers(self.list_orphans(*after, *most)?)
            }
            TreeOperation::Forget { numbers, disks } => TreeAnswer::Forgotten(self.forget(numbers, disks)?),
            TreeOperation::Survey { after, bytes_max } => self.survey(after, *bytes_max as usize)?,
            TreeOperation::Mend { repair } => {
                self.repair(repair)?;
                TreeAnswer::Done
            }
        };
        Ok(answer)
    }

    /// Creates the header and the root.
    fn begin(&mut self, origin: u64, mode: u16, uid: u32, gid: u32) -> Step<TreeAnswer> {
        if self.transaction.get(keys::HEADER)?.is_some() {
            // Reading the header reports a newer format, instead of only that a namespace exists.
            self.header()?;
            return Err(TreeRefusal::HasNamespace.into());
        }
        // Keep the origin above the number of the root, and low enough that more numbers than can ever be used follow.
        let origin = origin % (u64::MAX / 2) + FileNumber::ROOT.0;
        self.put_header(TreeHeader { format: FORMAT, origin, last: 0, inodes: 1, disk_lists: 0 })?;
        let root = Inode {
            number: FileNumber::ROOT,
            kind: InodeKind::Directory { parent: FileNumber::ROOT },
            mode: mode & 0o7777,
            uid,
            gid,
            links: 2,
            size: 0,
            accessed: self.now,
            modified: self.now,
            changed: self.now,
            made: self.now,
            version: next_in_run(0, self.run),
            stored_stripes: 0,
            unwritten: 0,
            reserved: 0,
        };
        self.put_inode(&root)?;
        Ok(TreeAnswer::Inode(root))
    }
}
