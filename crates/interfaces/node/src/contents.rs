//! What a file's name means: a path of the namespace if the set has one, otherwise a flat name; opening, asking for and
//! removing what it means.

use std::num::NonZeroU32;
use std::ops::Deref;

use fs::{OpenTreeFile, PagedFile, Tree};
use layout::Striping;
use machine::Payload;
use namespace::{
    DirectoryEntry, FileLayout, FileNumber, Inode, InodeKind, Location, NewInode, TreeOperation, WhatToRemove,
};
use real::RealMachine;

use crate::client_node::ClientNode;
use crate::connected::if_there;
use crate::error::{Error, ErrorKind, Result};
use crate::random::new_file_id;
use crate::settings::OpenOptions;
use crate::stat::Stat;

/// The mode of a file that a program makes through a session.
const MODE: u16 = 0o644;

/// What a file's name means: a file of that name, or what the namespace of the set has under it.
pub(crate) enum NamedContents {
    /// The first.
    Flat(PagedFile<RealMachine>),
    /// The second.
    OfTree(OpenTreeFile<RealMachine>),
}

impl NamedContents {
    /// The number that a namespace has given the file.
    pub(crate) fn number(&self) -> Option<FileNumber> {
        match self {
            NamedContents::Flat(_) => None,
            NamedContents::OfTree(file) => Some(file.number()),
        }
    }

    /// The file's inode as far as this client knows, if the file is in a namespace.
    pub(crate) fn known(&self) -> Option<Inode> {
        match self {
            NamedContents::Flat(_) => None,
            NamedContents::OfTree(file) => Some(file.known()),
        }
    }
}

impl Deref for NamedContents {
    type Target = PagedFile<RealMachine>;

    fn deref(&self) -> &PagedFile<RealMachine> {
        match self {
            NamedContents::Flat(file) => file,
            NamedContents::OfTree(file) => file.paged(),
        }
    }
}

impl NamedContents {
    pub(crate) async fn write(&self, offset: u64, data: Payload) -> fs::Result<()> {
        match self {
            NamedContents::Flat(file) => file.write(offset, data).await,
            NamedContents::OfTree(file) => file.write(offset, data).await,
        }
    }

    /// Asks for what others have changed.
    pub(crate) async fn refresh(&self) -> fs::Result<()> {
        match self {
            NamedContents::Flat(file) => file.refresh().await.map(drop),
            NamedContents::OfTree(file) => file.attributes().await.map(drop),
        }
    }

    pub(crate) async fn truncate(&self, bytes: u64) -> fs::Result<()> {
        match self {
            NamedContents::Flat(file) => file.truncate(bytes).await,
            NamedContents::OfTree(file) => file.set_len(bytes).await.map(drop),
        }
    }

    pub(crate) async fn flush(&self) -> fs::Result<()> {
        match self {
            NamedContents::Flat(file) => file.flush().await,
            NamedContents::OfTree(file) => file.sync().await,
        }
    }

    /// Waits until everything written is with the I/O nodes, and the keeper of the namespace knows of it.
    pub(crate) async fn send(&self) -> fs::Result<()> {
        match self {
            NamedContents::Flat(file) => file.send().await,
            NamedContents::OfTree(file) => file.flush().await,
        }
    }

    /// Takes in that the write cache has written, up to `end`, what the page cache has not seen.
    pub(crate) async fn wrote_past_cache(&self, end: u64) -> fs::Result<()> {
        match self {
            NamedContents::Flat(_) => Ok(()),
            // The members of a job are not told what others have written of it.
            NamedContents::OfTree(file) => file.wrote_past_cache(end, end).await,
        }
    }

    pub(crate) async fn close(self) -> fs::Result<()> {
        match self {
            NamedContents::Flat(file) => file.close().await,
            NamedContents::OfTree(file) => file.close().await,
        }
    }
}

/// Opens a file as `options` say; `name` is its path as errors have it.
pub(crate) async fn open(
    client: &ClientNode,
    name: &str,
    path: &[u8],
    options: OpenOptions,
) -> Result<NamedContents> {
    let tree = client.tree.borrow().clone();
    match tree {
        Some(tree) => open_path(client, &tree, (name, path), options).await.map(NamedContents::OfTree),
        None => {
            check_flat(name, path)?;
            open_flat(client, name, options).await.map(NamedContents::Flat)
        }
    }
}

/// Refuses a path that is no flat name because it is no text; `name` is the path as errors have it.
fn check_flat(name: &str, path: &[u8]) -> Result<()> {
    if name.as_bytes() == path {
        return Ok(());
    }
    Err(Error::new(ErrorKind::BadName, name, "flat names are texts in UTF-8, and it is none"))
}

/// Opens what a path leads to, or makes it.
async fn open_path(
    client: &ClientNode,
    tree: &Tree<RealMachine>,
    (name, path): (&str, &[u8]),
    options: OpenOptions,
) -> Result<OpenTreeFile<RealMachine>> {
    if options.replace {
        let error = Error::new(ErrorKind::Invalid, name, "in a namespace, files are replaced by renaming");
        return Err(error);
    }
    let at = location(path)?;
    let operation = match options.create || options.create_new {
        true => {
            let disks = client.explained(name, tree.all_disks().await)?;
            let Wanted { striping, disk } = wanted(client, options)?;
            let new = match disk {
                Some(first) => NewInode::PlacedFile(FileLayout { striping, disks, first }),
                None if options.unfinished => NewInode::UnfinishedFile { striping, disks },
                None => NewInode::File { striping, disks },
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

async fn open_flat(client: &ClientNode, name: &str, options: OpenOptions) -> Result<PagedFile<RealMachine>> {
    let wanted = wanted(client, options)?;
    if options.create_new || options.replace {
        return create(client, name, wanted, !options.create_new).await;
    }
    match client.explained(name, client.cache.open(name).await) {
        Ok(file) if options.truncate => emptied(client, name, file, wanted).await,
        // What others have left unfinished has nothing that could be kept.
        Err(error) if error.kind() == ErrorKind::Unfinished && options.create && options.truncate => {
            create(client, name, wanted, false).await
        }
        Err(error) if error.kind() == ErrorKind::NotFound && options.create => {
            match create(client, name, wanted, false).await {
                // Another client made it meanwhile.
                Err(error) if error.kind() == ErrorKind::Exists => {
                    client.explained(name, client.cache.open(name).await)
                }
                made => made,
            }
        }
        opened => opened,
    }
}

/// How a file lies that is made now.
#[derive(Clone, Copy)]
struct Wanted {
    striping: Striping,
    /// The disk of the only stripe, if it matters which.
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
        let why = format!("a file is to lie on disk {disk}, and there are {disks}, counted from 0");
        return Err(Error::new(ErrorKind::Invalid, "new file", why));
    }
    let striping = client.connection.striping(block_bytes, Some(NonZeroU32::MIN))?;
    Ok(Wanted { striping, disk: Some(disk) })
}

/// A new file. If it is to replace the one of its name, that one stays until this one is closed.
async fn create(
    client: &ClientNode,
    name: &str,
    wanted: Wanted,
    replaces: bool,
) -> Result<PagedFile<RealMachine>> {
    let (file, Wanted { striping, disk }) = (new_file_id()?, wanted);
    let made = match disk {
        Some(disk) => client.cache.create_on(name, file, striping.block_bytes(), &[disk], replaces).await,
        None if replaces => client.cache.create_replacing(name, file, striping).await,
        None => client.cache.create_striped(name, file, striping).await,
    };
    client.explained(name, made)
}

/// The file without contents. If it is to lie differently, it is another one, which replaces it when it is closed.
async fn emptied(
    client: &ClientNode,
    name: &str,
    file: PagedFile<RealMachine>,
    wanted: Wanted,
) -> Result<PagedFile<RealMachine>> {
    if wanted.disk.is_none() && file.striping() == wanted.striping {
        client.explained(name, file.truncate(0).await)?;
        return Ok(file);
    }
    drop(file);
    create(client, name, wanted, true).await
}

/// What is known of a file; `name` is its path as errors have it.
pub(crate) async fn stat(client: &ClientNode, name: &str, path: &[u8]) -> Result<Stat> {
    let tree = client.tree.borrow().clone();
    let Some(tree) = tree else {
        check_flat(name, path)?;
        let stat = client.explained(name, client.cache.stat(name).await)?;
        return Ok(Stat::of(stat.bytes, stat.striping, None));
    };
    let look = TreeOperation::Look { at: location(path)?, follow: true };
    let inode = client.explained(name, tree.inode(look).await)?;
    let inode = tree.seen(inode);
    let contents = client.explained(name, inode.contents().map_err(Into::into))?;
    Ok(Stat::of(inode.size, contents.striping, Some(&inode)))
}

/// Where a path of a program leads. An empty one leads nowhere, as for POSIX.
fn location(path: &[u8]) -> Result<Location> {
    match path.is_empty() {
        true => Err(Error::new(ErrorKind::NotFound, "a path", "it is empty, and leads nowhere")),
        false => Ok(Location::of_path(path)),
    }
}

/// Removes a file; `name` is its path as errors have it.
pub(crate) async fn unlink(client: &ClientNode, name: &str, path: &[u8]) -> Result<()> {
    let tree = client.tree.borrow().clone();
    let Some(tree) = tree else {
        check_flat(name, path)?;
        return client.explained(name, client.cache.unlink(name).await);
    };
    let at = location(path)?;
    client.explained(name, tree.unname(TreeOperation::Remove { at, what: WhatToRemove::File }).await)
}

/// Removes the unfinished file of a flat name, if there is one.
pub(crate) async fn discard(client: &ClientNode, name: &str) -> Result<()> {
    client.explained(name, if_there(client.cache.unlink_unfinished(name).await))
}

/// The names of all files, sorted.
pub(crate) async fn list(client: &ClientNode) -> Result<Vec<String>> {
    const WHAT: &str = "listing the files";
    let tree = client.tree.borrow().clone();
    let Some(tree) = tree else {
        return client.explained(WHAT, client.cache.client().list().await);
    };
    let (mut directories, mut files) = (vec![(FileNumber::ROOT, String::new())], Vec::new());
    while let Some((directory, path)) = directories.pop() {
        for DirectoryEntry { name, inode } in client.explained(WHAT, tree.entries(directory).await)? {
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
