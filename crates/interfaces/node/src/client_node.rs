//! State of the node thread: the client of the file system and its page cache.

use std::cell::RefCell;
use std::process;

use fs::{PageCache, PageCacheSettings, Tree, WriteCache, WriteCacheSettings};
use machine::{Duration, Memory};
use real::RealMachine;

use crate::connected::ConnectedNode;
use crate::error::Result;
use crate::lease::LentPages;
use crate::random::random;
use crate::settings::{CacheWrites, Settings};
use crate::temporary_paths::TemporaryPaths;

/// Client node that is connected to the agents.
pub(crate) struct ClientNode {
    pub(crate) cache: PageCache<RealMachine>,
    /// Write cache, if files are written through one.
    pub(crate) write_cache: Option<WriteCache<RealMachine>>,
    pub(crate) settings: Settings,
    pub(crate) lending: RefCell<LentPages>,
    pub(crate) connection: ConnectedNode,
    /// Namespace of the set.
    pub(crate) tree: Tree<RealMachine>,
    pub(crate) temporary_paths: TemporaryPaths,
}

/// Delay before a partly written page is sent: long enough for programs that write in small pieces to fill the page,
/// and short compared with the seconds after which agents write their data to disk.
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
        self.tree.contents_removed().await;
        removed
    }

    /// Translates an error of the file system into the user's terms, with the name of the file or of the failed
    /// operation.
    pub(crate) fn explained<T>(&self, what: &str, outcome: fs::Result<T>) -> Result<T> {
        self.connection.explained(what, outcome)
    }
}

/// Joins the write cache of the job that the settings name, or creates a separate one for this session.
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
    connection.explained(&format!("cannot join the job {job}"), cache)
}

/// Returns the name of this computer.
pub(crate) fn hostname() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "an unnamed computer".into())
}
