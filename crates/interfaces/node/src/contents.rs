//! Operations on files by their paths: open, stat, remove and list.

use std::num::NonZeroU32;

use fs::OpenTreeFile;
use layout::Striping;
use namespace::{
    DirectoryEntry, FileLayout, FileNumber, InodeKind, Location, NewInode, RemovalTarget, TreeOperation,
};
use real::RealMachine;

use crate::client_node::ClientNode;
use crate::error::{Error, ErrorKind, Result};
use crate::settings::OpenOptions;
use crate::stat::Stat;

/// Mode of a file that a program creates through a session.
const MODE: u16 = 0o644;

/// Opens a file with these options; `name` is its path for errors.
pub(crate) async fn open(
    client: &ClientNode,
    name: &str,
    path: &[u8],
    options: OpenOptions,
) -> Result<OpenTreeFile<RealMachine>> {
    let (at, tree) = (location(path)?, &client.tree);
    let operation = match options.create || options.create_new {
        true => {
            let disks = client.explained(name, tree.all_disks().await)?;
            let new = match wanted(client, options)? {
                Wanted { striping, disk: Some(first) } => {
                    NewInode::PlacedFile(FileLayout { striping, disks, first })
                }
                Wanted { striping, disk: None } if options.unfinished => {
                    NewInode::UnfinishedFile { striping, disks }
                }
                Wanted { striping, disk: None } => NewInode::File { striping, disks },
            };
            let (uid, gid) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
            TreeOperation::Make { at, new, mode: MODE, uid, gid, exclusive: options.create_new }
        }
        false => TreeOperation::Look { at, follow: true },
    };
    let file = client.explained(name, tree.open_for(operation, options.used_for()).await)?;
    if options.truncate && file.known().size > 0 {
        client.explained(name, file.set_len(0).await)?;
    }
    Ok(file)
}

/// Layout of a file that is created.
#[derive(Clone, Copy)]
struct Wanted {
    striping: Striping,
    /// Disk of the only stripe, if one is chosen.
    disk: Option<u32>,
}

fn wanted(client: &ClientNode, options: OpenOptions) -> Result<Wanted> {
    let block_bytes = options.block_bytes.unwrap_or(client.settings.block_bytes);
    let Some(disk) = options.disk else {
        let striping = client.connection.striping(block_bytes, options.disks.or(client.settings.disks))?;
        return Ok(Wanted { striping, disk: None });
    };
    let disks = client.connection.client.disks();
    if disk >= disks {
        let why = format!("there is no disk {disk}: the agents have {disks}, numbered from 0");
        return Err(Error::new(ErrorKind::Invalid, "new file", why));
    }
    let striping = client.connection.striping(block_bytes, Some(NonZeroU32::MIN))?;
    Ok(Wanted { striping, disk: Some(disk) })
}

/// Returns the metadata of a file; `name` is its path for errors.
pub(crate) async fn stat(client: &ClientNode, name: &str, path: &[u8]) -> Result<Stat> {
    let look = TreeOperation::Look { at: location(path)?, follow: true };
    let inode = client.explained(name, client.tree.inode(look).await)?;
    let inode = client.tree.seen(inode);
    let contents = client.explained(name, inode.contents().map_err(Into::into))?;
    Ok(Stat::of(inode.size, contents.striping, &inode))
}

/// Returns the location of a path. Fails for an empty path, like POSIX.
fn location(path: &[u8]) -> Result<Location> {
    match path.is_empty() {
        true => Err(Error::new(ErrorKind::NotFound, "a path", "the path is empty")),
        false => Ok(Location::of_path(path)),
    }
}

/// Removes a file; `name` is its path for errors.
pub(crate) async fn unlink(client: &ClientNode, name: &str, path: &[u8]) -> Result<()> {
    let remove = TreeOperation::Remove { at: location(path)?, what: RemovalTarget::File };
    client.explained(name, client.tree.unname(remove).await)
}

/// Returns the paths of all files, sorted.
pub(crate) async fn list(client: &ClientNode) -> Result<Vec<String>> {
    const WHAT: &str = "cannot list the files";
    let (mut directories, mut files) = (vec![(FileNumber::ROOT, String::new())], Vec::new());
    while let Some((directory, path)) = directories.pop() {
        for DirectoryEntry { name, inode } in client.explained(WHAT, client.tree.entries(directory).await)? {
            let path = format!("{path}{}", String::from_utf8_lossy(&name));
            match inode.kind {
                InodeKind::Directory { .. } => directories.push((inode.number, path + "/")),
                InodeKind::File(_) => files.push(path),
                _ => {}
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}
