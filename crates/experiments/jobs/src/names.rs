//! Many small files in a directory, which the job creates, looks up, lists or removes.
//!
//! ```text
//!  create the directory, and the files if they must exist        untimed
//!  file, file, ...  K in flight                                  the elapsed time
//!  list the directory, read the files, remove all                untimed
//! ```
//!
//! Other clients can see the names and contents when the timed part ends. The time includes no flush to stable storage,
//! as in `mdtest`, the usual metadata benchmark.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use fs::{NewTree, OpenFor, PageCache, PageCacheSettings, Tree};
use layout::Striping;
use machine::{Machine, TaskGroup, mix};
use namespace::{
    FileNumber, Inode, Location, NewInode, RemovalTarget, TreeAnswer, TreeOperation, TreeRefusal,
};

use crate::{Contents, Error, Latencies, Member, Outcome};

/// Operation on names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamesWork {
    /// Creates, writes and closes each file.
    Create,
    /// Requests the attributes of each file, by its path.
    Stat,
    /// Lists the directory with the attributes of all files.
    List,
    /// Removes each file and its contents.
    Remove,
}

/// A job with small files in a directory.
#[derive(Clone, Debug, PartialEq)]
pub struct NamesJob {
    /// Operation on the files.
    pub work: NamesWork,
    /// Path of the directory. The job creates missing parents. At the end it removes the directory and its parents,
    /// except those that are not empty.
    pub directory: String,
    /// Number of files.
    pub files: u32,
    /// Size of each file in bytes.
    pub bytes: u64,
    /// Block size of the files in bytes.
    pub block_bytes: u64,
    /// Number of operations in flight.
    pub outstanding: u32,
}

/// Permissions of created files and directories.
const FILE_MODE: u16 = 0o644;
const DIRECTORY_MODE: u16 = 0o755;

/// Owner of created files and directories: user and group 0.
const OWNER: u32 = 0;

impl NamesJob {
    pub(crate) fn check(&self, members: u32) -> Result<(), Error> {
        let invalid = |why: &str| Err(Error::Invalid(why.to_owned()));
        if members != 1 {
            return invalid("a directory belongs to one member: use a separate job for each");
        }
        if self.files == 0 || self.outstanding == 0 {
            return invalid("expected at least one file, and one operation in flight");
        }
        Striping::new(self.block_bytes, 1)?;
        Ok(())
    }

    /// Iterates over all parents of the directory and the directory itself, the topmost first.
    fn directories(&self) -> impl DoubleEndedIterator<Item = &str> {
        let ends = self.directory.match_indices('/').map(|(at, _)| at).chain([self.directory.len()]);
        ends.map(|end| &self.directory[..end]).filter(|path| !path.is_empty()).collect::<Vec<_>>().into_iter()
    }
}

impl fmt::Display for NamesWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            NamesWork::Create => "create",
            NamesWork::Stat => "stat",
            NamesWork::List => "list",
            NamesWork::Remove => "remove",
        })
    }
}

impl fmt::Display for NamesJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {} files of {} bytes", self.directory, self.work, self.files, self.bytes)
    }
}

/// Part of a member in the job.
pub struct NamesPart<M: Machine> {
    member: Rc<NamesMember<M>>,
}

/// State that all operations of a member share.
struct NamesMember<M: Machine> {
    job: NamesJob,
    machine: M,
    contents: Contents,
    tree: Tree<M>,
    /// Number of the directory. The next field is the number of the list of disks for its files.
    directory: FileNumber,
    disks: u32,
    striping: Striping,
    /// Offset of the files' contents in the contents of all members, so that files of two members differ.
    first_byte: u64,
}

impl<M: Machine> NamesPart<M> {
    pub(crate) async fn prepare(job: &NamesJob, member: Member<M>) -> Result<Self, Error> {
        let client = member.client()?.clone();
        let striping = Striping::new(job.block_bytes, client.disks())?;
        let cache = PageCache::new(client, PageCacheSettings::default());
        let new = NewTree { origin: mix(member.seed), mode: DIRECTORY_MODE, uid: OWNER, gid: OWNER };
        let tree = Tree::find_or_begin(&cache, new).await?;
        let mut directory = FileNumber::ROOT;
        for path in job.directories() {
            directory = make_directory(&tree, path).await?;
        }
        let disks = tree.all_disks().await?;
        let first_byte = member.draws() >> 16;
        let Member { machine, contents, .. } = member;
        let job = job.clone();
        let member = NamesMember { job, machine, contents, tree, directory, disks, striping, first_byte };
        let part = NamesPart { member: Rc::new(member) };
        if part.member.job.work != NamesWork::Create {
            part.each(NamesWork::Create).await?;
        }
        Ok(part)
    }

    pub(crate) async fn run(&self) -> Result<Outcome, Error> {
        let NamesMember { job, machine, .. } = &*self.member;
        let begin = machine.now();
        let names = match job.work {
            NamesWork::List => self.member.list().await?,
            work => self.each(work).await?,
        };
        Ok(Outcome { elapsed: machine.now().since(begin), names, ..Outcome::default() })
    }

    /// Checks the files, and removes the files that are left.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        let member = &self.member;
        if member.job.work == NamesWork::Remove {
            member.check_count(0).await?;
        } else {
            member.check_count(member.job.files).await?;
            self.all(|member, file| async move { member.check_contents(file).await }).await?;
            self.each(NamesWork::Remove).await?;
        }
        member.remove_directories().await
    }

    /// Performs an operation on each file, and returns the latencies.
    async fn each(&self, work: NamesWork) -> Result<Latencies, Error> {
        let taken = Rc::<RefCell<Latencies>>::default();
        let noted = taken.clone();
        self.all(move |member, file| {
            let noted = noted.clone();
            async move {
                let begin = member.machine.now();
                match work {
                    NamesWork::Create => member.create(file).await?,
                    NamesWork::Stat => member.stat(file).await?,
                    NamesWork::Remove => member.remove(file).await?,
                    NamesWork::List => {}
                }
                noted.borrow_mut().record(member.machine.now().since(begin));
                Ok(())
            }
        })
        .await?;
        // Wait until the contents of files that the last operations removed are removed in the background.
        self.member.tree.contents_removed().await;
        Ok(taken.take())
    }

    /// Performs an operation on each file, on `outstanding` files at the same time.
    async fn all<F>(&self, what: impl Fn(Rc<NamesMember<M>>, u32) -> F + Clone + 'static) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let (group, next) = (TaskGroup::<Error>::new(), Rc::new(Cell::new(0)));
        for _ in 0..self.member.job.outstanding {
            let (member, next, what) = (self.member.clone(), next.clone(), what.clone());
            group.spawn(&self.member.machine, "one file after the other", async move {
                while next.get() < member.job.files {
                    let file = next.replace(next.get() + 1);
                    what(member.clone(), file).await?;
                }
                Ok(())
            });
        }
        group.join_or_fail().await
    }
}

impl<M: Machine> NamesMember<M> {
    fn place(&self, file: u32) -> Location {
        Location::of_path(format!("{}/file{file:07}", self.job.directory))
    }

    async fn create(&self, file: u32) -> Result<(), Error> {
        let new = NewInode::File { striping: self.striping, disks: self.disks };
        let (at, mode, uid, gid) = (self.place(file), FILE_MODE, OWNER, OWNER);
        let make = TreeOperation::Make { at, new, mode, uid, gid, exclusive: true };
        let open = self.tree.open(make).await?;
        open.write(0, self.contents.payload(self.offset(file), self.job.bytes)).await?;
        Ok(open.close().await?)
    }

    fn offset(&self, file: u32) -> u64 {
        self.first_byte + u64::from(file) * self.job.bytes
    }

    async fn stat(&self, file: u32) -> Result<(), Error> {
        let look = TreeOperation::Look { at: self.place(file), follow: true };
        let inode = self.tree.inode(look).await?;
        self.check_size(&inode)
    }

    async fn list(&self) -> Result<Latencies, Error> {
        let (begin, mut taken) = (self.machine.now(), Latencies::default());
        let entries = self.tree.entries(self.directory).await?;
        taken.record(self.machine.now().since(begin));
        entries.iter().try_for_each(|entry| self.check_size(&entry.inode))?;
        Ok(taken)
    }

    async fn remove(&self, file: u32) -> Result<(), Error> {
        let remove = TreeOperation::Remove { at: self.place(file), what: RemovalTarget::File };
        Ok(self.tree.unname(remove).await?)
    }

    async fn check_count(&self, expected: u32) -> Result<(), Error> {
        let found = self.tree.entries(self.directory).await?.len();
        if found == expected as usize {
            return Ok(());
        }
        let directory = &self.job.directory;
        Err(Error::WrongData(format!("{directory} has {found} files, not {expected}")))
    }

    fn check_size(&self, inode: &Inode) -> Result<(), Error> {
        if inode.size == self.job.bytes {
            return Ok(());
        }
        Err(Error::WrongData(format!("a file of {} bytes has {}", self.job.bytes, inode.size)))
    }

    async fn check_contents(&self, file: u32) -> Result<(), Error> {
        let look = TreeOperation::Look { at: self.place(file), follow: true };
        let open = self.tree.open_for(look, OpenFor::Reading).await?;
        let found = open.paged().read(0, self.job.bytes + 1).await?;
        let is_right = found == self.contents.payload(self.offset(file), self.job.bytes);
        open.close().await?;
        if is_right {
            return Ok(());
        }
        Err(Error::WrongData(format!("file {file} of {}", self.job.directory)))
    }

    /// Removes the directory and its parents, unless they are not empty.
    async fn remove_directories(&self) -> Result<(), Error> {
        for path in self.job.directories().rev() {
            let at = Location::of_path(path);
            match self.tree.unname(TreeOperation::Remove { at, what: RemovalTarget::Directory }).await {
                // Another member still uses the directory, or has just removed it.
                Err(error) if error.is_refused(TreeRefusal::NotEmpty) => {}
                Err(error) if error.is_refused(TreeRefusal::NotFound) => {}
                removed => removed?,
            }
        }
        Ok(())
    }
}

/// Creates a directory unless it exists. Returns its number.
async fn make_directory<M: Machine>(tree: &Tree<M>, path: &str) -> Result<FileNumber, Error> {
    let (at, mode, uid, gid) = (Location::of_path(path), DIRECTORY_MODE, OWNER, OWNER);
    let make = TreeOperation::Make { at, new: NewInode::Directory, mode, uid, gid, exclusive: true };
    match tree.perform(make).await {
        Ok(TreeAnswer::Inode(inode)) => return Ok(inode.number),
        Err(error) if !error.is_refused(TreeRefusal::Exists) => return Err(error.into()),
        // Another member has already created the directory.
        _ => {}
    }
    let look = TreeOperation::Look { at: Location::of_path(path), follow: true };
    Ok(tree.inode(look).await?.number)
}
