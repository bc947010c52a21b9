//! A file that is there, and one that is being put.

use std::cell::RefCell;
use std::pin::pin;

use fs::{File, OpenTreeFile};
use layout::Striping;
use machine::Machine;
use namespace::{
    AttributeChanges, FileNumber, Inode, Location, NewInode, RenameMode, SetTime, SetValue, TreeAnswer,
    TreeOperation, TreeRefusal, UNFINISHED, UnixTime, WhatToRemove,
};
use node::whole_file::Uploaded;
use node::{Error, ErrorKind, Result};
use real::RealMachine;

use crate::interrupt::unless;
use crate::namespace::{FoundPath, Namespace, shown, split};

/// How often it is looked whether the keeper was started anew: several times in the minute that it gives.
const HOLD_EVERY: machine::Duration = machine::Duration::from_secs(10);

/// Whether something is a file or a link that is being put, or was not put to its end.
pub async fn is_unfinished(namespace: &Namespace, found: &FoundPath) -> Result<bool> {
    let (_, name) = split(&found.path);
    if found.inode.is_directory() || !node::is_hidden(name) {
        return Ok(false);
    }
    let get = TreeOperation::GetExtended { number: found.inode.number, name: UNFINISHED.to_vec() };
    match namespace.perform(&found.path, get).await {
        Ok(TreeAnswer::Value(first_name)) => Ok(first_name == name),
        // It is gone, or has got its name.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == ErrorKind::Refused(TreeRefusal::NoAttribute) => Ok(false),
        answer => answer.map(|_| false),
    }
}

/// Marks a file that is to have this hidden name, too, until that is changed.
pub async fn mark_unfinished(namespace: &Namespace, number: FileNumber, hidden: &[u8]) -> Result<()> {
    let (name, value) = (UNFINISHED.to_vec(), split(hidden).1.to_vec());
    let mark = TreeOperation::SetExtended { number, name, value, mode: SetValue::Any };
    namespace.perform(hidden, mark).await.map(drop)
}

/// A file that is open for reading: its contents stay as long.
pub struct ReadableFile {
    namespace: Namespace,
    open: OpenTreeFile<RealMachine>,
    /// What was known of it when it was opened.
    known: Inode,
}

impl ReadableFile {
    /// Opens the file of this path.
    pub async fn open(namespace: &Namespace, path: &[u8]) -> Result<ReadableFile> {
        let open = namespace.open(path).await?;
        let known = open.known();
        Ok(ReadableFile { namespace: namespace.clone(), open, known })
    }

    /// Its contents, past the page cache.
    pub fn file(&self) -> &File<RealMachine> {
        self.open.paged().file()
    }

    /// What the namespace knew of it when it was opened.
    pub fn inode(&self) -> Inode {
        self.known.clone()
    }

    /// Closes it when all has been read.
    ///
    /// Fails if what was read may be of no one moment: somebody has changed the contents, or they may have gone, since
    /// the name was taken away while nobody knew that the file was open.
    pub async fn close(self, name: &str) -> Result<()> {
        let ReadableFile { namespace, open, known } = self;
        let now = namespace.connection.explained(name, open.attributes().await);
        let closed = namespace.connection.explained(name, open.close().await);
        // It may have been replaced meanwhile, and the command may end after this.
        namespace.tree.contents_gone().await;
        check_unchanged(name, &known, &now?)?;
        closed
    }
}

/// Fails if the contents of a file have been changed since it was known as this.
fn check_unchanged(name: &str, known: &Inode, now: &Inode) -> Result<()> {
    if (known.version, known.size) == (now.version, now.size) {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Io, name, "it was changed while it was read");
    Err(error.with_remedy("Read it again when nobody writes to it"))
}

/// What a new file is to be like.
#[derive(Clone, Copy, Debug)]
pub struct WantedFile {
    /// Its striping.
    pub striping: Striping,
    /// Its permissions.
    pub mode: u16,
    /// When its contents were changed, if that is not now.
    pub modified: Option<UnixTime>,
    /// Whether what has its name is replaced.
    pub replace: bool,
}

/// A file that is being put: under a hidden name beside its own, which it gets when it is whole.
pub struct HiddenFile {
    namespace: Namespace,
    file: File<RealMachine>,
    /// Until it is completed or discarded.
    open: RefCell<Option<OpenTreeFile<RealMachine>>>,
    hidden: Vec<u8>,
    path: Vec<u8>,
    wanted: WantedFile,
}

impl HiddenFile {
    /// Begins a file. What has the name already stays until [`complete`](Self::complete).
    pub async fn begin(namespace: &Namespace, path: &[u8], wanted: WantedFile) -> Result<HiddenFile> {
        HiddenFile::begin_as(namespace, node::hidden_name(path)?, path, wanted).await
    }

    /// Begins a file under this hidden name.
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
                    let why = "there is no such directory";
                    Error::new(ErrorKind::NotFound, shown(path), why)
                        .with_remedy("`starfish mkdir -p` makes it")
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

    /// Its contents, past the page cache.
    pub fn file(&self) -> &File<RealMachine> {
        &self.file
    }

    /// What it is called in failures.
    pub fn name(&self) -> String {
        shown(&self.path)
    }

    /// What is known of it.
    pub fn inode(&self) -> Option<Inode> {
        self.open.borrow().as_ref().map(OpenTreeFile::known)
    }

    /// Does what writes the file. Meanwhile its keeper is told again that it is open if that was started anew.
    pub async fn while_open<T>(&self, work: impl Future<Output = T>) -> T {
        let machine = &self.namespace.connection.machine;
        let mut work = pin!(work);
        loop {
            let pause = machine.sleep_until(machine.now() + HOLD_EVERY);
            if let Some(done) = unless(pause, work.as_mut()).await {
                return done;
            }
            // A keeper that does not answer is told next time; if it stays away, the work fails.
            let _ = self.namespace.tree.hold_again().await;
        }
    }

    /// Gives the file, which is on the disks, its name. If that fails, nothing of it is left.
    pub async fn complete(&self, uploaded: Uploaded) -> Result<()> {
        let taken = self.open.take();
        let Some(open) = taken else {
            return Err(Error::new(ErrorKind::Closed, shown(&self.path), "interrupted"));
        };
        let named = self.name_it(&open, uploaded).await;
        if named.is_err() {
            // The first failure is the one to be told.
            let _ = self.remove(open).await;
            return named;
        }
        self.namespace.connection.explained(&shown(&self.path), open.close().await)
    }

    async fn name_it(&self, open: &OpenTreeFile<RealMachine>, uploaded: Uploaded) -> Result<()> {
        let what = shown(&self.path);
        let told = |outcome: fs::Result<()>| self.namespace.connection.explained(&what, outcome);
        let Uploaded { bytes, written } = uploaded;
        if bytes > 0 {
            told(open.wrote_past_cache(bytes, written).await)?;
        }
        if let Some(modified) = self.wanted.modified {
            let modified = Some(SetTime::At(modified));
            let changes = AttributeChanges { modified, ..AttributeChanges::default() };
            told(open.change(changes).await.map(drop))?;
        }
        let mode = if self.wanted.replace { RenameMode::Replace } else { RenameMode::Keep };
        let renamed = self.namespace.rename(&self.hidden, &self.path, mode).await;
        renamed.map_err(|error| if error.kind() == ErrorKind::Exists { exists(&self.path) } else { error })
    }

    /// Removes what there is of it, unless it is complete.
    pub async fn discard(&self) -> Result<()> {
        let taken = self.open.take();
        match taken {
            Some(open) => self.remove(open).await,
            None => Ok(()),
        }
    }

    async fn remove(&self, open: OpenTreeFile<RealMachine>) -> Result<()> {
        let at = Location::of_path(self.hidden.as_slice());
        let remove = TreeOperation::Remove { at, what: WhatToRemove::File };
        let removed = self.namespace.tree.unname(remove).await;
        // With it its contents go.
        let closed = open.close().await;
        self.namespace.tree.contents_gone().await;
        self.namespace.connection.explained(&shown(&self.path), removed.and(closed))
    }
}

/// The remedy if something has the name of a file that is put.
const MAKE_ROOM: &str = "Remove it with `starfish rm`, or put with --replace";

/// That something has this name already.
pub fn exists(path: &[u8]) -> Error {
    Error::new(ErrorKind::Exists, shown(path), "file exists already").with_remedy(MAKE_ROOM)
}
