//! What the node thread works with: the client of the file system and its page cache.

use std::cell::RefCell;

use fs::{PageCache, PageCacheSettings};
use real::RealMachine;

use crate::connect::{Names, connect};
use crate::error::Result;
use crate::lease::Lending;
use crate::settings::Settings;

/// A client node that is connected to the agents.
pub(crate) struct ClientNode {
    pub(crate) cache: PageCache<RealMachine>,
    pub(crate) settings: Settings,
    pub(crate) lending: RefCell<Lending>,
    names: Names,
}

impl ClientNode {
    pub(crate) async fn connect(machine: RealMachine, settings: Settings) -> Result<ClientNode> {
        let (client, names) = connect(&machine, &settings.agents, settings.key.as_deref()).await?;
        let cache_settings = PageCacheSettings {
            bytes: settings.cache_bytes,
            prefetch: settings.prefetch,
            write_behind: settings.write_behind,
        };
        let cache = PageCache::new(client, cache_settings);
        Ok(ClientNode { cache, settings, lending: RefCell::default(), names })
    }

    /// Puts an error of the file system into words the user knows; `what` is what was to be done.
    pub(crate) fn told<T>(&self, what: &str, outcome: fs::Result<T>) -> Result<T> {
        outcome.map_err(|error| self.names.explain(what, &error))
    }
}
