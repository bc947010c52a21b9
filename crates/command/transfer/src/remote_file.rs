//! Existing files that are read, and new files that are uploaded.

use std::cell::RefCell;
use std::pin::pin;

use fs::{File, OpenTreeFile};
use layout::Striping;
use machine::Machine;
use namespace::{
    AttributeChanges, FileNumber, Inode, Location, NewInode, RemovalTarget, RenameMode, SetTime, SetValue,
    TreeAnswer, TreeOperation, TreeRefusal, UNFINISHED, UnixTime,
};
use node::whole_file::Uploaded;
use node::{Error, ErrorKind, Result};
use real::RealMachine;

use crate::interrupt::unless;
use crate::namespace::{FoundPath, Namespace, shown, split};

/// Interval of the checks for a restart of the metadata server. The server grants a minute for reclaiming open files,
/// so several checks happen in this minute.
const HOLD_EVERY: machine::Duration = machine::Duration::from_secs(10);

/// True if the upload of this file or link is in progress, or was not completed.
pub async fn is_unfinished(namespace: &Namespace, found: &FoundPath) -> Result<bool> {
    let (_, name) = split(&found.path);
    if found.inode.is_directory() || !node::is_hidden(name) {
        return Ok(false);
    }
    let get = TreeOperation::GetExtended { number: found.inode.number, name: UNFINISHED.to_vec() };
    match namespace.perform(&found.path, get).await {
        Ok(TreeAnswer::Value(first_name)) => Ok(first_name == name),
        // The file was removed, or renamed to its final name.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == ErrorKind::Refused(TreeRefusal::NoAttribute) => Ok(false),
        answer => answer.map(|_| false),
    }
}

/// Marks a file as unfinished while it has this hidden name. The rename to another name ends the mark.
pub async fn mark_unfinished(namespace: &Namespace, number: FileNumber, hidden: &[u8]) -> Result<()> {
    let (name, value) = (UNFINISHED.to_vec(), split(hidden).1.to_vec());
    let mark = TreeOperation::SetExtended { number, name, value, mode: SetValue::Any };
    namespace.perform(hidden, mark).await.map(drop)
}

/// File open for reading. Its contents persist while it is open.
pub struct ReadableFile {
    namespace: Namespace,
    open: OpenTreeFile<RealMachine>,
    /// Inode when the file was opened.
    known: Inode,
}

impl ReadableFile {
    /// Opens the file of this path.
    pub async fn open(namespace: &Namespace, path: &[u8]) -> Result<ReadableFile> {
        let open = namespace.open(path).await?;
        let known = open.known();
        Ok(ReadableFile { namespace: namespace.clone(), open, known })
    }

    /// Returns the file for reads that bypass the page cache.
    pub fn file(&self) -> &File<RealMachine> {
        self.open.paged().file()
    }

    /// Returns the inode as it was when the file was opened.
    pub fn inode(&self) -> Inode {
        self.known.clone()
    }

    /// Closes the file after it was read.
    ///
    /// Fails if the data read may be a mixture of old and new contents: the contents were changed. Also fails if the
    /// file lost its name while the metadata server did not know that it was open, so that its contents may have been
    /// removed.
    pub async fn close(self, name: &str) -> Result<()> {
        let ReadableFile { namespace, open, known } = self;
        let now = namespace.connection.explained(name, open.attributes().await);
        let closed = namespace.connection.explained(name, open.close().await);
        // The file may have been replaced since, so wait until its contents are removed: the command may end after this
        // call.
        namespace.tree.contents_removed().await;
        check_unchanged(name, &known, &now?)?;
        closed
    }
}

/// Fails if the contents of a file have changed since `known`.
fn check_unchanged(name: &str, known: &Inode, now: &Inode) -> Result<()> {
    if (known.version, known.size) == (now.version, now.size) {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Io, name, "it changed while it was read");
    Err(error.with_remedy("Read it again when no program writes to it"))
}

/// Properties of a new file.
#[derive(Clone, Copy, Debug)]
pub struct WantedFile {
    /// Striping of the file.
    pub striping: Striping,
    /// Permissions of the file.
    pub mode: u16,
    /// Modification time; `None` for the current time.
    pub modified: Option<UnixTime>,
    /// True if an existing file of this name is replaced.
    pub replace: bool,
}

/// File that is being uploaded. The file has a hidden name in the target directory until it is whole; then it is
/// renamed to its final name.
pub struct HiddenFile {
    namespace: Namespace,
    file: File<RealMachine>,
    /// Open file, until it is completed or discarded.
    open: RefCell<Option<OpenTreeFile<RealMachine>>>,
    hidden: Vec<u8>,
    path: Vec<u8>,
    wanted: WantedFile,
}

impl HiddenFile {
    /// Creates the hidden file. An existing file at `path` is kept until [`complete`](Self::complete).
    pub async fn begin(namespace: &Namespace, path: &[u8], wanted: WantedFile) -> Result<HiddenFile> {
        HiddenFile::begin_as(namespace, node::hidden_name(path)?, path, wanted).await
    }

    /// Creates the hidden file under the name `hidden`.
    pub async fn begin_as(
        namespace: &Namespace,
        hidden: Vec<u8>,
        path: &[u8],
        wanted: WantedFile,
    ) -> Result<HiddenFile> {
        match namespace.look_if_there(path).await? {
            Some(inode) if inode.is_directory() => {
                return Err(Error::new(ErrorKind::Invalid, shown(path), "it is a directory"));
            }
            Some(_) if !wanted.replace => return Err(exists(path)),
            _ => {}
        }
        let disks = namespace.connection.explained(&shown(path), namespace.tree.all_disks().await)?;
        let new = NewInode::UnfinishedFile { striping: wanted.striping, disks };
        let made = namespace.tree.open(namespace.making(&hidden, new, wanted.mode)).await;
        let open =
            namespace.connection.explained(&shown(path), made).map_err(|error| match error.kind() {
                ErrorKind::NotFound => {
                    let why = "no such directory";
                    Error::new(ErrorKind::NotFound, shown(path), why)
                        .with_remedy("`starfish mkdir -p` creates it")
                }
                _ => error,
            })?;
        Ok(HiddenFile {
            namespace: namespace.clone(),
            file: open.paged().file().clone(),
            open: RefCell::new(Some(open)),
            hidden,
            path: path.to_vec(),
            wanted,
        })
    }

    /// Returns the file for writes that bypass the page cache.
    pub fn file(&self) -> &File<RealMachine> {
        &self.file
    }

    /// Returns the name for error messages.
    pub fn name(&self) -> String {
        shown(&self.path)
    }

    /// Returns the inode, or `None` if the file is completed or discarded.
    pub fn inode(&self) -> Option<Inode> {
        self.open.borrow().as_ref().map(OpenTreeFile::known)
    }

    /// Runs `work`, which writes the file. Reclaims the open file if the metadata server restarts during the work.
    pub async fn while_open<T>(&self, work: impl Future<Output = T>) -> T {
        let machine = &self.namespace.connection.machine;
        let mut work = pin!(work);
        loop {
            let pause = machine.sleep_until(machine.now() + HOLD_EVERY);
            if let Some(done) = unless(pause, work.as_mut()).await {
                return done;
            }
            // If the metadata server does not answer, reclaim at the next interval. If it stays silent, `work` fails.
            let _ = self.namespace.tree.reclaim_open_files().await;
        }
    }

    /// Renames the flushed file to its final name. Removes the file if the rename fails.
    pub async fn complete(&self, uploaded: Uploaded) -> Result<()> {
        let taken = self.open.take();
        let Some(open) = taken else {
            return Err(Error::new(ErrorKind::Closed, shown(&self.path), "interrupted"));
        };
        let named = self.name_it(&open, uploaded).await;
        if named.is_err() {
            // Report the first failure.
            let _ = self.remove(open).await;
            return named;
        }
        self.namespace.connection.explained(&shown(&self.path), open.close().await)
    }

    async fn name_it(&self, open: &OpenTreeFile<RealMachine>, uploaded: Uploaded) -> Result<()> {
        let what = shown(&self.path);
        let explained = |outcome: fs::Result<()>| self.namespace.connection.explained(&what, outcome);
        let Uploaded { bytes, written } = uploaded;
        if bytes > 0 {
            explained(open.wrote_past_cache(bytes, written).await)?;
        }
        if let Some(modified) = self.wanted.modified {
            let modified = Some(SetTime::At(modified));
            let changes = AttributeChanges { modified, ..AttributeChanges::default() };
            explained(open.change(changes).await.map(drop))?;
        }
        let mode = if self.wanted.replace { RenameMode::Replace } else { RenameMode::Keep };
        let renamed = self.namespace.rename(&self.hidden, &self.path, mode).await;
        renamed.map_err(|error| if error.kind() == ErrorKind::Exists { exists(&self.path) } else { error })
    }

    /// Removes the file, unless it is complete.
    pub async fn discard(&self) -> Result<()> {
        let taken = self.open.take();
        match taken {
            Some(open) => self.remove(open).await,
            None => Ok(()),
        }
    }

    async fn remove(&self, open: OpenTreeFile<RealMachine>) -> Result<()> {
        let at = Location::of_path(self.hidden.as_slice());
        let remove = TreeOperation::Remove { at, what: RemovalTarget::File };
        let removed = self.namespace.tree.unname(remove).await;
        // Closing the unlinked file removes its contents.
        let closed = open.close().await;
        self.namespace.tree.contents_removed().await;
        self.namespace.connection.explained(&shown(&self.path), removed.and(closed))
    }
}

/// Remedy for a put to an existing name.
const MAKE_ROOM: &str = "Remove it with `starfish rm`, or replace it with `put --replace`";

/// Returns the error for a name that exists already.
pub fn exists(path: &[u8]) -> Error {
    Error::new(ErrorKind::Exists, shown(path), "already exists").with_remedy(MAKE_ROOM)
}
