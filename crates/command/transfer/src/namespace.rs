//! The namespace of a set as commands use it: paths, and their inodes.

use command_line::visible;
use fs::{DisksByIdentity, OpenFor, OpenTreeFile, PageCache, PageCacheSettings, Prefetch};
use namespace::{
    AttributeChanges, DirectoryEntry, FileNumber, Inode, InodeKind, Location, NewInode, RemovalTarget,
    RenameMode, SetTime, TreeAnswer, TreeOperation, TreeRefusal, TreeUse, UnixTime,
};
use nix::unistd::{getgid, getuid};
use node::{ConnectedNode, Error, ErrorKind, Result};
use real::RealMachine;

/// Mode of a directory that a command creates.
const DIRECTORY_MODE: u16 = 0o755;

/// Size of the page cache in bytes. A file tree needs a page cache, although transfers of whole files bypass it.
const CACHE_BYTES: u64 = 64 << 20;

/// Namespace of a set, with the connection to its agents. Clones share both.
#[derive(Clone)]
pub struct Namespace {
    /// Connection to the agents.
    pub connection: ConnectedNode,
    /// File tree, as clients see it.
    pub tree: fs::Tree<RealMachine>,
}

/// Inode of the namespace, and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPath {
    /// Path of the inode.
    pub path: Vec<u8>,
    /// The inode.
    pub inode: Inode,
}

impl Namespace {
    /// Returns the namespace of the set. Creates one if the agents have none; then all agents must answer.
    pub async fn of(connection: &ConnectedNode) -> Result<Namespace> {
        let tree = connection.tree(&cache(connection)).await?;
        Ok(Namespace { connection: connection.clone(), tree })
    }

    /// Returns the namespace, if the agents have one. Fails if the agents that answer know of a metadata server, and it
    /// does not answer.
    pub async fn find(connection: &ConnectedNode) -> Result<Option<Namespace>> {
        let tree = connection.find_tree(&cache(connection)).await?;
        Ok(tree.map(|tree| Namespace { connection: connection.clone(), tree }))
    }

    /// Returns the namespace like [`find`](Self::find). If the agents have none, fails unless no disk has data of any
    /// namespace.
    pub async fn find_surely(connection: &ConnectedNode) -> Result<Option<Namespace>> {
        let found = Namespace::find(connection).await?;
        if found.is_none() {
            connection
                .explained("cannot open the namespace", fs::Tree::check_none(&connection.client).await)?;
        }
        Ok(found)
    }

    /// Creates a namespace in place of a lost one, although the disks still have stripes of the lost one's files.
    pub async fn begin_anew(connection: &ConnectedNode) -> Result<Namespace> {
        connection.incompleteness()?;
        let begun = fs::Tree::begin(&cache(connection), node::new_tree()?).await;
        let tree = connection.explained("cannot create a namespace", begun)?;
        Ok(Namespace { connection: connection.clone(), tree })
    }

    /// Returns the name of the agent that is the metadata server.
    pub fn metadata_server(&self) -> &str {
        self.connection.name(self.tree.metadata_server())
    }

    /// Performs an operation. Error messages name `path`.
    pub async fn perform(&self, path: &[u8], operation: TreeOperation) -> Result<TreeAnswer> {
        self.connection.explained(&shown(path), self.tree.perform(operation).await)
    }

    /// Returns the space that the namespace uses.
    pub async fn used(&self) -> Result<TreeUse> {
        match self.perform(b"/", TreeOperation::Describe).await? {
            TreeAnswer::Used(used) => Ok(used),
            _ => Err(wrong_answer(b"/")),
        }
    }

    /// Returns the inode of a path. Follows a link at its end.
    pub async fn look(&self, path: &[u8]) -> Result<FoundPath> {
        self.look_at(path, true).await
    }

    /// Returns the inode of a path. Does not follow a link at its end.
    pub async fn look_at_link(&self, path: &[u8]) -> Result<FoundPath> {
        self.look_at(path, false).await
    }

    async fn look_at(&self, path: &[u8], follow: bool) -> Result<FoundPath> {
        match self.look_without_advice(path, follow).await {
            Err(error) => Err(self.advised(path, error).await),
            found => found,
        }
    }

    async fn look_without_advice(&self, path: &[u8], follow: bool) -> Result<FoundPath> {
        let look = TreeOperation::Look { at: Location::of_path(path), follow };
        let inode = self.connection.explained(&shown(path), self.tree.inode(look).await)?;
        Ok(FoundPath { path: path.to_vec(), inode })
    }

    /// Adds a remedy to the error: a missing path may be a dangling link, and a directory may be used in place of a
    /// file.
    async fn advised(&self, path: &[u8], error: Error) -> Error {
        match error.kind() {
            ErrorKind::NotFound => {}
            ErrorKind::Refused(TreeRefusal::IsDirectory) => return error.with_remedy(IS_DIRECTORY),
            _ => return error,
        }
        if let Ok(Some(Inode { kind: InodeKind::Link { target }, .. })) = self.look_if_there(path).await {
            let why = format!("it is a link to {}, which does not exist", shown(&target));
            return Error::new(ErrorKind::NotFound, shown(path), why);
        }
        error
    }

    /// Returns the inode of a path, or `None` if the path does not exist. Does not follow a link at its end.
    pub async fn look_if_there(&self, path: &[u8]) -> Result<Option<Inode>> {
        if_there(self.look_without_advice(path, false).await).map(|found| found.map(|found| found.inode))
    }

    /// Returns the inode of a path, or `None` if the path does not resolve: a name is missing, a parent is no
    /// directory, or links form a loop. Follows a link at the end if `follow` is set.
    pub async fn find_at(&self, path: &[u8], follow: bool) -> Result<Option<FoundPath>> {
        match self.look_without_advice(path, follow).await {
            Err(error) if leads_nowhere(error.kind()) => Ok(None),
            found => if_there(found),
        }
    }

    /// True if all created stripes of a file exist, with readable labels.
    pub async fn is_whole(&self, path: &[u8], inode: &Inode) -> Result<bool> {
        if inode.stored_stripes == 0 {
            return Ok(true);
        }
        let what = shown(path);
        let file = self.connection.explained(&what, self.tree.numbered(inode).await)?;
        match self.connection.client.numbered_stripes(&file).await {
            Err(error) if is_damaged(&error) => Ok(false),
            found => {
                let found = self.connection.explained(&what, found)?;
                Ok((0..inode.stored_stripes).all(|stripe| found.contains_key(&stripe)))
            }
        }
    }

    /// True if a path is a directory, or a link to one.
    pub async fn is_directory(&self, path: &[u8]) -> Result<bool> {
        let found = if_there(self.look_without_advice(path, true).await)?;
        Ok(found.is_some_and(|found| found.inode.is_directory()))
    }

    /// Returns the entries of a directory, in the order of their names.
    pub async fn entries(&self, directory: &FoundPath) -> Result<Vec<FoundPath>> {
        let listed = self.tree.entries(directory.inode.number).await;
        let entries = self.connection.explained(&shown(&directory.path), listed)?;
        let found = entries.into_iter().map(|DirectoryEntry { name, inode }| {
            check_entry(&directory.path, &name)?;
            Ok(FoundPath { path: joined(&directory.path, &name), inode })
        });
        found.collect()
    }

    /// Returns everything below a directory, each directory before its contents.
    pub async fn walk(&self, top: &FoundPath) -> Result<Vec<FoundPath>> {
        let (mut all, mut directories) = (Vec::new(), vec![top.clone()]);
        while let Some(directory) = directories.pop() {
            let entries = self.entries(&directory).await?;
            directories.extend(entries.iter().rev().filter(|entry| entry.inode.is_directory()).cloned());
            all.extend(entries);
        }
        Ok(all)
    }

    /// Opens a file. Its contents persist while it is open, even if its name is removed.
    pub async fn open(&self, path: &[u8]) -> Result<OpenTreeFile<RealMachine>> {
        let look = TreeOperation::Look { at: Location::of_path(path), follow: true };
        match self.connection.explained(&shown(path), self.tree.open_for(look, OpenFor::Reading).await) {
            Err(error) => Err(self.advised(path, error).await),
            opened => opened,
        }
    }

    /// Creates an inode without contents.
    pub async fn make(&self, path: &[u8], new: NewInode, mode: u16) -> Result<Inode> {
        let make = self.making(path, new, mode);
        self.connection.explained(&shown(path), self.tree.inode(make).await)
    }

    /// Returns the operation that creates an inode of this user, which fails if the name exists.
    pub fn making(&self, path: &[u8], new: NewInode, mode: u16) -> TreeOperation {
        let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
        TreeOperation::Make { at: Location::of_path(path), new, mode, uid, gid, exclusive: true }
    }

    /// Creates a directory. Fails if the name exists.
    pub async fn make_directory(&self, path: &[u8]) -> Result<()> {
        self.make(path, NewInode::Directory, DIRECTORY_MODE).await.map(drop)
    }

    /// Creates a directory unless the name exists already. Returns the number of the directory.
    pub async fn make_directory_unless_there(&self, path: &[u8], mode: u16) -> Result<FileNumber> {
        match self.make(path, NewInode::Directory, mode).await {
            Err(error) if error.kind() == ErrorKind::Exists => match self.look_if_there(path).await? {
                Some(inode) if inode.is_directory() => Ok(inode.number),
                _ => Err(error),
            },
            made => Ok(made?.number),
        }
    }

    /// Sets a modification time.
    pub async fn set_modified(&self, path: &[u8], number: FileNumber, modified: UnixTime) -> Result<()> {
        let modified = Some(SetTime::At(modified));
        let changes = AttributeChanges { modified, ..AttributeChanges::default() };
        self.perform(path, TreeOperation::Change { number, changes }).await.map(drop)
    }

    /// Creates a further name of a file. Fails if the name exists.
    pub async fn link(&self, number: FileNumber, path: &[u8]) -> Result<()> {
        let link = TreeOperation::Link { number, at: Location::of_path(path) };
        self.perform(path, link).await.map(drop)
    }

    /// Creates a directory and its missing parents. Links to directories count as directories.
    pub async fn make_directories(&self, path: &[u8]) -> Result<()> {
        let mut so_far = if path.starts_with(b"/") { b"/".to_vec() } else { Vec::new() };
        for part in path.split(|&byte| byte == b'/').filter(|part| !part.is_empty()) {
            so_far = joined(&so_far, part);
            if matches!(part, b"." | b"..") {
                continue;
            }
            match self.make_directory(&so_far).await {
                Err(error) if error.kind() == ErrorKind::Exists && self.is_directory(&so_far).await? => {}
                made => made?,
            }
        }
        Ok(())
    }

    /// Renames a path.
    pub async fn rename(&self, from: &[u8], to: &[u8], mode: RenameMode) -> Result<()> {
        let rename = TreeOperation::Rename { from: Location::of_path(from), to: Location::of_path(to), mode };
        self.connection.explained(&shown(to), self.tree.unname(rename).await)
    }

    /// Removes a name. Removes the contents of a file, too, if this was its only name.
    pub async fn remove(&self, path: &[u8], what: RemovalTarget) -> Result<()> {
        let remove = TreeOperation::Remove { at: Location::of_path(path), what };
        let removed = self.connection.explained(&shown(path), self.tree.unname(remove).await);
        // Wait until the contents are removed: the command may end after this call.
        self.tree.contents_removed().await;
        removed
    }

    /// Flushes the namespace to stable storage, after the contents of all orphans were removed.
    pub async fn flush(&self) -> Result<()> {
        self.tree.contents_removed().await;
        self.connection.explained("cannot flush the namespace", self.tree.flush().await)
    }

    /// Returns all records of the namespace, for a check.
    pub async fn survey(&self) -> Result<Vec<namespace::SurveyedRecord>> {
        self.connection.explained("cannot read the namespace", self.tree.survey().await)
    }

    /// Returns those stripes of these files that have bytes and whose disk no agent has. Skips orphans, because no
    /// program can open them again.
    pub async fn stripes_on_disks_that_are_nowhere(
        &self,
        places: &DisksByIdentity,
        inodes: impl Iterator<Item = &Inode>,
    ) -> Result<Vec<StripeOfMissingDisk>> {
        let mut lost = Vec::new();
        for inode in inodes.filter(|inode| inode.layout().is_some() && inode.size > 0 && inode.links > 0) {
            let numbered =
                self.connection.explained("cannot get the list of disks", self.tree.numbered(inode).await)?;
            for (stripe, &disk) in (0..).zip(&numbered.disks) {
                let has_bytes = numbered.striping.stripe_bytes(inode.size, stripe) > 0;
                if has_bytes && !places.contains_key(&disk) {
                    lost.push(StripeOfMissingDisk { file: inode.number, stripe, disk });
                }
            }
        }
        Ok(lost)
    }
}

/// Stripe of a file on a disk that no agent has.
pub struct StripeOfMissingDisk {
    /// Number of the file.
    pub file: FileNumber,
    /// Index of the stripe.
    pub stripe: u32,
    /// Identity of the disk.
    pub disk: u64,
}

/// Remedy for a directory in place of a file.
const IS_DIRECTORY: &str = "`starfish ls` lists it; `starfish get -r` gets the whole directory";

fn cache(connection: &ConnectedNode) -> PageCache<RealMachine> {
    let settings = PageCacheSettings {
        bytes: CACHE_BYTES,
        prefetch: Prefetch::None,
        write_behind: false,
        ..PageCacheSettings::default()
    };
    PageCache::new(connection.client.clone(), settings)
}

/// Fails if an entry has a name that would lead out of the directory when used as the name of a local file. Names are
/// received from an agent and are not trusted.
fn check_entry(directory: &[u8], name: &[u8]) -> Result<()> {
    let is_one = !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0));
    if is_one {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Protocol, shown(directory), "it has an entry with an invalid name"))
    }
}

fn wrong_answer(path: &[u8]) -> Error {
    Error::new(ErrorKind::Protocol, shown(path), "the agent sent a wrong reply")
}

/// True if a stripe does not match its name, or its label is not readable.
pub fn is_damaged(error: &fs::Error) -> bool {
    let kinds = [fs::FailureKind::Damaged, fs::FailureKind::Invalid];
    matches!(error, fs::Error::Remote { failure, .. } if kinds.contains(&failure.kind))
}

/// True if an agent remembers that the file was removed.
pub fn is_removed(error: &fs::Error) -> bool {
    matches!(error, fs::Error::Remote { failure, .. } if failure.kind == fs::FailureKind::Removed)
}

/// True if the error means that a path does not resolve.
fn leads_nowhere(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Refused(TreeRefusal::NotDirectory | TreeRefusal::Loop))
}

/// Converts the error for a missing path into `None`.
pub fn if_there<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Joins a directory and a name to a path.
pub fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match directory {
        b"" => name.to_vec(),
        _ if directory.ends_with(b"/") => [directory, name].concat(),
        _ => [directory, b"/", name].concat(),
    }
}

/// Splits a path into its parent with the slash, and its last name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    path.split_at(at)
}

/// Removes slashes from the end of a path, except that of the root.
pub fn trimmed(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(path.len().min(1), |last| last + 1);
    &path[..end]
}

/// Formats a path for people: characters unsafe for terminals are escaped.
pub fn shown(path: &[u8]) -> String {
    match str::from_utf8(path) {
        Ok(text) => visible(text).into_owned(),
        Err(_) => path.escape_ascii().to_string(),
    }
}

/// Formats a path for programs: unchanged, unless it is not UTF-8.
pub fn for_programs(path: &[u8]) -> String {
    str::from_utf8(path).map_or_else(|_| shown(path), str::to_owned)
}

/// Returns the kind of an inode as a word.
pub fn kind_name(kind: &InodeKind) -> &'static str {
    name_and_letter(kind).0
}

/// Returns the kind of an inode as a letter, like `ls -l`.
pub fn letter(kind: &InodeKind) -> char {
    name_and_letter(kind).1
}

fn name_and_letter(kind: &InodeKind) -> (&'static str, char) {
    use namespace::DeviceKind;
    match kind {
        InodeKind::File(_) => ("file", '-'),
        InodeKind::Directory { .. } => ("directory", 'd'),
        InodeKind::Link { .. } => ("link", 'l'),
        InodeKind::Special { kind: DeviceKind::Pipe, .. } => ("pipe", 'p'),
        InodeKind::Special { kind: DeviceKind::Socket, .. } => ("socket", 's'),
        InodeKind::Special { kind: DeviceKind::Character, .. } => ("character", 'c'),
        InodeKind::Special { kind: DeviceKind::Block, .. } => ("block", 'b'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_joined_and_trimmed() {
        assert_eq!(joined(b"", b"x"), b"x");
        assert_eq!(joined(b"/", b"x"), b"/x");
        assert_eq!(joined(b"a/b", b"x"), b"a/b/x");
        assert_eq!(split(b"a/b/x"), (&b"a/b/"[..], &b"x"[..]));
        assert_eq!(split(b"x"), (&b""[..], &b"x"[..]));
        for (path, without) in [("a/", "a"), ("a/b//", "a/b"), ("///", "/"), ("", ""), ("a", "a")] {
            assert_eq!(trimmed(path.as_bytes()), without.as_bytes(), "{path}");
        }
    }

    #[test]
    fn control_characters_in_names_are_escaped_for_terminals() {
        assert_eq!(shown("größe 1".as_bytes()), "größe 1");
        assert_eq!(shown(b"a\x1b[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(shown(b"\xff\x00a"), "\\xff\\x00a");
        assert_eq!(for_programs(b"a\x1b[31m\n"), "a\x1b[31m\n");
        assert_eq!(for_programs(b"\xff\n"), shown(b"\xff\n"));
    }

    #[test]
    fn invalid_names_of_entries_are_rejected() {
        for name in [&b""[..], b".", b"..", b"a/b", b"a\0"] {
            assert!(check_entry(b"d", name).is_err());
        }
        assert!(check_entry(b"d", b"...").is_ok());
    }
}
