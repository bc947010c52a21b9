//! A file that is there, and one that is being put: with a namespace, or under a flat name.

use std::cell::RefCell;
use std::pin::pin;

use fs::{File, NumberedFile, OpenTreeFile};
use layout::Striping;
use machine::Machine;
use namespace::{
    AttributeChanges, FileNumber, Inode, Location, NewInode, RenameMode, SetTime, SetValue, TreeAnswer,
    TreeOperation, TreeRefusal, UNFINISHED, UnixTime, WhatToRemove,
};
use node::whole_file::Uploaded;
use node::{ConnectedNode, Error, ErrorKind, Result};
use real::RealMachine;

use super::group::What;
use super::namespace::{FoundPath, Namespace, joined, shown, split};
use crate::interrupt::unless;

/// Names of files that are being put begin like this; `starfish rm --unfinished` removes what is left of them, which
/// the namespace knows to be unfinished.
const HIDDEN: &[u8] = b".starfish-";

/// How often it is looked whether the keeper was started anew: several times in the minute that it gives.
const HOLD_EVERY: machine::Duration = machine::Duration::from_secs(10);

/// How many digits follow.
const HIDDEN_DIGITS: usize = 16;

/// Whether a name is as those that files have while they are being put. Users may give such names, too.
fn is_hidden(name: &[u8]) -> bool {
    name.strip_prefix(HIDDEN)
        .is_some_and(|rest| rest.len() == HIDDEN_DIGITS && rest.iter().all(u8::is_ascii_hexdigit))
}

/// Whether something is a file or a link that is being put, or was not put to its end.
pub(crate) async fn is_unfinished(namespace: &Namespace, found: &FoundPath) -> Result<bool> {
    let (_, name) = split(&found.path);
    if found.inode.is_directory() || !is_hidden(name) {
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
pub(crate) async fn mark_unfinished(namespace: &Namespace, number: FileNumber, hidden: &[u8]) -> Result<()> {
    let (name, value) = (UNFINISHED.to_vec(), split(hidden).1.to_vec());
    let mark = TreeOperation::SetExtended { number, name, value, mode: SetValue::Any };
    namespace.perform(hidden, mark).await.map(drop)
}

/// A file that is there, open for reading.
pub(crate) enum ReadableFile {
    /// Of a flat name.
    Flat(File<RealMachine>),
    /// Of a namespace, which keeps its contents as long as this is open. With it comes what was known of it when it was
    /// opened.
    OfTree(Namespace, OpenTreeFile<RealMachine>, Box<Inode>),
}

impl ReadableFile {
    /// Opens what `name` means where it says.
    pub(crate) async fn open(
        connection: &ConnectedNode,
        namespace: Option<&Namespace>,
        name: &str,
        unfinished: bool,
    ) -> Result<ReadableFile> {
        match namespace {
            None => Ok(ReadableFile::Flat(connection.open(name, unfinished).await?)),
            Some(_) if unfinished => Err(no_unfinished(name)),
            Some(namespace) => ReadableFile::of_path(namespace, name.as_bytes()).await,
        }
    }

    /// Opens a file of a namespace.
    pub(crate) async fn of_path(namespace: &Namespace, path: &[u8]) -> Result<ReadableFile> {
        let open = namespace.open(path).await?;
        let known = open.known().into();
        Ok(ReadableFile::OfTree(namespace.clone(), open, known))
    }

    /// Its contents, past the page cache.
    pub(crate) fn file(&self) -> &File<RealMachine> {
        match self {
            ReadableFile::Flat(file) => file,
            ReadableFile::OfTree(_, open, _) => open.paged().file(),
        }
    }

    /// What the namespace knew of it when it was opened.
    pub(crate) fn inode(&self) -> Option<Inode> {
        match self {
            ReadableFile::Flat(_) => None,
            ReadableFile::OfTree(_, _, known) => Some(Inode::clone(known)),
        }
    }

    /// What a group that reads it has to know.
    pub(crate) async fn for_group(&self, name: &str, unfinished: bool) -> Result<What> {
        match self {
            ReadableFile::Flat(_) => Ok(What::Named { name: name.to_owned(), unfinished }),
            ReadableFile::OfTree(namespace, _, known) => {
                let numbered = namespace.tree.numbered(known).await;
                Ok(What::Numbered(namespace.connection.explained(name, numbered)?))
            }
        }
    }

    /// Closes it when all has been read.
    ///
    /// Fails if what was read may be of no one moment: somebody has changed the contents, or they may have gone, since
    /// the name was taken away while nobody knew that the file was open.
    pub(crate) async fn close(self, name: &str) -> Result<()> {
        let ReadableFile::OfTree(namespace, open, known) = self else { return Ok(()) };
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

fn no_unfinished(name: &str) -> Error {
    let why = "files of a namespace are never unfinished: a name appears when its file is whole";
    Error::new(ErrorKind::Invalid, name, why).with_remedy("Leave out --unfinished")
}

/// What a new file is to be like. A flat name has neither permissions nor a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedFile {
    pub(crate) striping: Striping,
    /// Its permissions.
    pub(crate) mode: u16,
    /// When its contents were changed, if that is not now.
    pub(crate) modified: Option<UnixTime>,
    /// Whether what has its name is replaced.
    pub(crate) replace: bool,
}

/// A file that is being put.
pub(crate) enum PutFile {
    /// Under its flat name, unfinished.
    Flat { connection: ConnectedNode, name: String, file: File<RealMachine> },
    /// In a namespace.
    Hidden(Box<HiddenFile>),
}

impl PutFile {
    /// Begins a file, in the namespace if there is one.
    pub(crate) async fn begin(
        connection: &ConnectedNode,
        namespace: Option<&Namespace>,
        name: &str,
        wanted: WantedFile,
    ) -> Result<PutFile> {
        if let Some(namespace) = namespace {
            let hidden = HiddenFile::begin(namespace, name.as_bytes(), wanted).await?;
            return Ok(PutFile::Hidden(Box::new(hidden)));
        }
        let created = connection.create(name, wanted.striping, wanted.replace).await;
        let file = created.map_err(|error| match error.kind() {
            ErrorKind::Exists => error.with_remedy(MAKE_ROOM),
            _ => error,
        })?;
        Ok(PutFile::Flat { connection: connection.clone(), name: name.to_owned(), file })
    }

    /// Its contents, past the page cache.
    pub(crate) fn file(&self) -> &File<RealMachine> {
        match self {
            PutFile::Flat { file, .. } => file,
            PutFile::Hidden(hidden) => &hidden.file,
        }
    }

    /// What it is called in failures.
    pub(crate) fn name(&self) -> String {
        match self {
            PutFile::Flat { name, .. } => name.clone(),
            PutFile::Hidden(hidden) => shown(&hidden.path),
        }
    }

    /// What a group that writes a file of this length has to know.
    pub(crate) async fn for_group(&self, bytes: u64) -> Result<What> {
        match self {
            PutFile::Flat { name, .. } => Ok(What::Named { name: name.clone(), unfinished: true }),
            PutFile::Hidden(hidden) => hidden.for_group(bytes).await,
        }
    }

    /// Runs the work that writes the file. Meanwhile the file is kept open, which takes nothing for a flat name.
    pub(crate) async fn while_open<T>(&self, work: impl Future<Output = T>) -> T {
        match self {
            PutFile::Flat { .. } => work.await,
            PutFile::Hidden(hidden) => hidden.while_open(work).await,
        }
    }

    /// Flushes what a group has written to a file of this length.
    pub(crate) async fn to_disks(&self, bytes: u64) -> Result<()> {
        match self {
            PutFile::Flat { connection, name, file } => connection.explained(name, file.commit().await),
            PutFile::Hidden(hidden) => hidden.to_disks(bytes).await,
        }
    }

    /// Gives the file, which is on the disks, its name. A flat one has it already.
    pub(crate) async fn complete(&self, uploaded: Uploaded) -> Result<()> {
        match self {
            PutFile::Flat { .. } => Ok(()),
            PutFile::Hidden(hidden) => {
                hidden.complete(uploaded).await?;
                hidden.namespace.flush().await
            }
        }
    }

    /// Removes what there is of it, unless it is complete.
    pub(crate) async fn discard(&self) -> Result<()> {
        match self {
            PutFile::Flat { connection, name, .. } => connection.discard(name).await,
            PutFile::Hidden(hidden) => hidden.discard().await,
        }
    }
}

/// A file of a namespace that is being put: under a hidden name beside its own, which it gets when it is whole.
pub(crate) struct HiddenFile {
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
    pub(crate) async fn begin(namespace: &Namespace, path: &[u8], wanted: WantedFile) -> Result<HiddenFile> {
        HiddenFile::begin_as(namespace, hidden_name(path)?, path, wanted).await
    }

    /// Begins a file under this hidden name.
    pub(crate) async fn begin_as(
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
    pub(crate) fn file(&self) -> &File<RealMachine> {
        &self.file
    }

    async fn for_group(&self, bytes: u64) -> Result<What> {
        let inode = self.inode().expect("it is neither complete nor discarded");
        let numbered = self.namespace.tree.numbered(&inode).await;
        let numbered = self.namespace.connection.explained(&shown(&self.path), numbered)?;
        Ok(What::Numbered(NumberedFile { bytes, ..numbered }))
    }

    async fn to_disks(&self, bytes: u64) -> Result<()> {
        self.file.set_bytes(bytes);
        self.namespace.connection.explained(&shown(&self.path), self.file.flush().await)
    }

    /// What is known of it.
    pub(crate) fn inode(&self) -> Option<Inode> {
        self.open.borrow().as_ref().map(OpenTreeFile::known)
    }

    /// Does what writes the file. Meanwhile its keeper is told again that it is open if that was started anew.
    pub(crate) async fn while_open<T>(&self, work: impl Future<Output = T>) -> T {
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
    pub(crate) async fn complete(&self, uploaded: Uploaded) -> Result<()> {
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
    pub(crate) async fn discard(&self) -> Result<()> {
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

/// A hidden name beside this one.
pub(crate) fn hidden_name(path: &[u8]) -> Result<Vec<u8>> {
    let (directory, _) = split(path);
    let name = [HIDDEN, format!("{:016x}", node::random()?).as_bytes()].concat();
    Ok(joined(directory, &name))
}

/// The remedy if something has the name of a file that is put.
const MAKE_ROOM: &str = "Remove it with `starfish rm`, or put with --replace";

/// That something has this name already.
pub(crate) fn exists(path: &[u8]) -> Error {
    Error::new(ErrorKind::Exists, shown(path), "file exists already").with_remedy(MAKE_ROOM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_as_those_of_what_is_being_put_are_hidden() {
        assert!(is_hidden(b".starfish-0123456789abcdef"));
        for other in
            [&b".starfish-"[..], b".starfish-0123456789abcde", b".starfish-0123456789abcdeg", b"starfish"]
        {
            assert!(!is_hidden(other));
        }
    }
}
