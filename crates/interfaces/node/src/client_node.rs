//! What the node thread works with: the client of the file system and its page cache.

use std::cell::RefCell;
use std::process;

use fs::{PageCache, PageCacheSettings, Tree, WriteCache, WriteCacheSettings};
use machine::{Duration, Memory};
use real::RealMachine;

use crate::connected::ConnectedNode;
use crate::error::Result;
use crate::lease::Lending;
use crate::random::random;
use crate::settings::{CacheWrites, Settings};
use crate::temporary_paths::TemporaryPaths;

/// A client node that is connected to the agents.
pub(crate) struct ClientNode {
    pub(crate) cache: PageCache<RealMachine>,
    /// If files are written through one.
    pub(crate) write_cache: Option<WriteCache<RealMachine>>,
    pub(crate) settings: Settings,
    pub(crate) lending: RefCell<Lending>,
    pub(crate) connection: ConnectedNode,
    /// The namespace of the set.
    pub(crate) tree: Tree<RealMachine>,
    pub(crate) temporary_paths: TemporaryPaths,
}

/// How long a part of a page waits for the rest: so long that programs which write in small pieces fill pages
/// meanwhile, and short beside the seconds that agents take to write what they have.
const SEND_PARTS_AFTER: Duration = Duration::from_millis(2000);

impl ClientNode {
    pub(crate) async fn connect(machine: RealMachine, settings: Settings) -> Result<ClientNode> {
        let connection = ConnectedNode::to_all(&machine, &settings.agents, settings.key.as_deref()).await?;
        let cache_settings = PageCacheSettings {
            bytes: settings.cache_bytes,
            prefetch: settings.prefetch,
            write_behind: settings.write_behind,
            send_parts_after: Some(SEND_PARTS_AFTER),
        };
        let cache = PageCache::new(connection.client.clone(), cache_settings);
        let write_cache = match &settings.write_cache {
            Some(settings) => Some(join_job(&connection, settings).await?),
            None => None,
        };
        let tree = connection.tree(&cache).await?;
        let (lending, temporary_paths) = Default::default();
        Ok(ClientNode { cache, write_cache, settings, lending, connection, tree, temporary_paths })
    }

    /// Removes the temporary files of the namespace, and their contents.
    pub(crate) async fn remove_temporary_files(&self) -> Result<()> {
        let removed =
            self.temporary_paths.remove_all(&self.tree, |name, removed| self.explained(name, removed)).await;
        self.tree.contents_gone().await;
        removed
    }

    /// Puts an error of the file system into words the user knows; `what` is what was to be done.
    pub(crate) fn explained<T>(&self, what: &str, outcome: fs::Result<T>) -> Result<T> {
        self.connection.explained(what, outcome)
    }
}

/// Makes a client's part of the write cache of the job that the settings name, or of one of its own.
async fn join_job(connection: &ConnectedNode, settings: &CacheWrites) -> Result<WriteCache<RealMachine>> {
    let CacheWrites { bytes, flush_after, job } = settings;
    let flush_after = flush_after.map(|time| Duration::from_nanos(time.as_nanos() as u64));
    let settings = WriteCacheSettings { bytes: *bytes, flush_after, ..WriteCacheSettings::agent() };
    let job = match job {
        Some(job) => job.clone(),
        None => format!("{:016x}", random()?),
    };
    let member = format!("process {} on {}", process::id(), hostname());
    let kind = Memory::real(Vec::new());
    let cache = WriteCache::join(connection.client.clone(), &job, &member, settings, &kind).await;
    connection.explained(&format!("joining the job {job}"), cache)
}

/// What this computer calls itself.
pub(crate) fn hostname() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "an unnamed computer".into())
}
