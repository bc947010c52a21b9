//! Resolves paths.

use crate::file_name::LINK_DEPTH_MAX;
use crate::inode::{FileNumber, Inode, InodeKind};
use crate::operation::Location;
use crate::refusal::TreeRefusal;
use crate::store::{Records, Step};

/// Result of resolving a path: a directory, and an entry in it, which need not exist.
pub(crate) struct ResolvedPath {
    pub(crate) directory: Inode,
    /// Last name of the path; empty if the path is that of the directory itself.
    pub(crate) name: Vec<u8>,
    pub(crate) found: Option<Inode>,
    /// True if the path ends with `/`, so that its target must be a directory.
    pub(crate) as_directory: bool,
}

impl ResolvedPath {
    /// Returns the inode of the path. Fails if it does not exist, or is not a directory as required.
    pub(crate) fn there(self) -> Step<Inode> {
        let ResolvedPath { found, as_directory, .. } = self;
        let found = found.ok_or(TreeRefusal::NotFound)?;
        if as_directory && !found.is_directory() { Err(TreeRefusal::NotDirectory.into()) } else { Ok(found) }
    }
}

impl Records<'_> {
    /// Resolves a path. Follows a symbolic link at the end of the path if `follow` is true or the path requires a
    /// directory.
    pub(crate) fn walk(&mut self, at: &Location, follow: bool) -> Step<ResolvedPath> {
        let mut left = rest_of(&at.path);
        let mut directory = self.directory(start(at.base, &at.path))?;
        let (mut links, mut as_directory) = (0, at.path.ends_with(b"/"));
        loop {
            let Some(name) = left.pop() else {
                // The path is that of the current directory.
                let found = Some(directory.clone());
                return Ok(ResolvedPath { directory, name: Vec::new(), found, as_directory });
            };
            let is_last = left.is_empty();
            match name.as_slice() {
                b"." => continue,
                b".." => {
                    let InodeKind::Directory { parent } = directory.kind else {
                        return Err(TreeRefusal::Damaged.into());
                    };
                    directory = self.known(parent)?;
                    continue;
                }
                _ => crate::file_name::check_name(&name)?,
            }
            let found = match self.entry(directory.number, &name)? {
                Some(number) => Some(self.known(number)?),
                None if is_last => None,
                None => return Err(TreeRefusal::NotFound.into()),
            };
            let link = found.as_ref().and_then(|inode| match &inode.kind {
                InodeKind::Link { target } if !is_last || follow || as_directory => Some(target.clone()),
                _ => None,
            });
            if let Some(target) = link {
                links += 1;
                if links > LINK_DEPTH_MAX {
                    return Err(TreeRefusal::Loop.into());
                }
                as_directory |= is_last && target.ends_with(b"/");
                directory = self.directory(start(directory.number, &target))?;
                left.extend(rest_of(&target));
                continue;
            }
            match found {
                Some(inode) if !is_last => {
                    if !inode.is_directory() {
                        return Err(TreeRefusal::NotDirectory.into());
                    }
                    directory = inode;
                }
                found => return Ok(ResolvedPath { directory, name, found, as_directory }),
            }
        }
    }
}

/// Returns the directory in which a path starts.
fn start(base: FileNumber, path: &[u8]) -> FileNumber {
    if path.starts_with(b"/") { FileNumber::ROOT } else { base }
}

/// Returns the names of a path in reverse order.
fn rest_of(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|&byte| byte == b'/').rev().filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}
