//! Independent reads and writes, each as one job of the node thread. In atomic mode the job holds the lock of the file.
//! If the call must be visible at once, the job drops cached data before a read, and sends written data to the agents.

use layout::Selection;
use node::{Handle, Pending, Tree};

use crate::atomic::FileLock;

/// Bytes per read. While a read lends pages of the page cache, the rest of the cache must suffice for other calls.
const READ_BYTES: u64 = 1 << 20;

/// Settings of an independent call.
pub(crate) struct Independent {
    pub(crate) handle: Handle,
    /// True if the call must see writes of other processes, and they its writes.
    pub(crate) is_seen: bool,
    /// The lock to hold during the call.
    pub(crate) lock: Option<FileLock>,
}

impl Independent {
    /// Begins to read the selection. Returns fewer bytes if the file ends within it.
    pub(crate) fn begin_read(self, tree: &Tree, selection: Selection) -> Pending<Vec<u8>> {
        match self.is_plain() && selection.runs() > 1 {
            true => self.handle.begin_read_selected(selection),
            false => self.begin(tree, async move |alone: &Independent| alone.read(selection).await),
        }
    }

    /// Begins to write the selection.
    pub(crate) fn begin_write(self, tree: &Tree, selection: Selection, bytes: Vec<u8>) -> Pending<()> {
        match self.is_plain() {
            true => self.begin_plain_write(selection, bytes),
            false => self.begin(tree, async move |alone: &Independent| alone.write(selection, bytes).await),
        }
    }

    /// Returns true if the call only moves data: it takes no lock and need not be visible at once.
    fn is_plain(&self) -> bool {
        !self.is_seen && self.lock.is_none()
    }

    fn begin_plain_write(&self, selection: Selection, bytes: Vec<u8>) -> Pending<()> {
        match selection.runs() {
            // A full write cache blocks until the node thread makes room, and this may be the node thread.
            1 if !self.handle.caches_writes() => self.handle.begin_write(selection.span().offset, bytes),
            _ => self.handle.begin_write_selected(selection, bytes),
        }
    }

    fn begin<T: Send + 'static>(
        self,
        tree: &Tree,
        work: impl AsyncFnOnce(&Independent) -> node::Result<T> + Send + 'static,
    ) -> Pending<T> {
        let name = self.handle.name().to_owned();
        tree.run(&name, move |node, _| async move {
            match &self.lock {
                Some(lock) => lock.hold(&node, work(&self)).await,
                None => work(&self).await,
            }
        })
    }

    async fn read(&self, selection: Selection) -> node::Result<Vec<u8>> {
        if self.is_seen {
            self.handle.begin_stat().await?;
        }
        if selection.runs() > 1 {
            return self.handle.begin_read_selected(selection).await;
        }
        let (run, mut found) = (selection.span(), Vec::new());
        while let left @ 1.. = run.bytes - found.len() as u64 {
            let at = run.offset + found.len() as u64;
            let pages = self.handle.begin_read(at, left.min(READ_BYTES)).await?;
            if pages.is_empty() {
                break;
            }
            pages.iter().for_each(|page| found.extend_from_slice(page.as_slice()));
        }
        Ok(found)
    }

    async fn write(&self, selection: Selection, bytes: Vec<u8>) -> node::Result<()> {
        self.begin_plain_write(selection, bytes).await?;
        if self.is_seen {
            self.handle.begin_send().await?;
        }
        Ok(())
    }
}
