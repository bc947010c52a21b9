//! Where a path leads.

use crate::file_name::LINK_DEPTH_MAX;
use crate::inode::{FileNumber, Inode, InodeKind};
use crate::operation::Location;
use crate::refusal::TreeRefusal;
use crate::store::{Records, Step};

/// Where a path leads: an entry of a directory, which may not be there.
pub(crate) struct Walked {
    pub(crate) directory: Inode,
    /// The last name of the path; empty if the path leads to the directory itself, which has no entry in it.
    pub(crate) name: Vec<u8>,
    pub(crate) found: Option<Inode>,
    /// Whether the path says that it is a directory.
    pub(crate) as_directory: bool,
}

impl Walked {
    /// What is there.
    pub(crate) fn there(self) -> Step<Inode> {
        let Walked { found, as_directory, .. } = self;
        let found = found.ok_or(TreeRefusal::NotFound)?;
        if as_directory && !found.is_directory() { Err(TreeRefusal::NotDirectory.into()) } else { Ok(found) }
    }
}

impl Records<'_> {
    /// Goes along a path; a link at its end is followed if that is asked for, or if the path says it is a directory.
    pub(crate) fn walk(&mut self, at: &Location, follow: bool) -> Step<Walked> {
        let mut left = rest_of(&at.path);
        let mut directory = self.directory(start(at.base, &at.path))?;
        let (mut links, mut as_directory) = (0, at.path.ends_with(b"/"));
        loop {
            let Some(name) = left.pop() else {
                // It leads to the directory it has come to.
                let found = Some(directory.clone());
                return Ok(Walked { directory, name: Vec::new(), found, as_directory });
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
                found => return Ok(Walked { directory, name, found, as_directory }),
            }
        }
    }
}

/// Where a path begins.
fn start(base: FileNumber, path: &[u8]) -> FileNumber {
    if path.starts_with(b"/") { FileNumber::ROOT } else { base }
}

/// The names of a path, the first last.
fn rest_of(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|&byte| byte == b'/').rev().filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}
