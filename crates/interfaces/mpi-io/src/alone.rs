//! What a process reads and writes for itself, as one job of the node thread for each call: under the lock of the file
//! in atomic mode, and seen by others at once if it is to be.

use layout::Selection;
use node::{Handle, Pending, Tree};

use crate::atomic::FileLock;

/// Bytes that are read in one piece: as few as do not keep the page cache from its pages.
const READ_BYTES: u64 = 1 << 20;

/// How a call is made alone.
pub(crate) struct Alone {
    pub(crate) handle: Handle,
    /// Whether it sees what others have written, and they what it writes.
    pub(crate) is_seen: bool,
    /// What it holds meanwhile.
    pub(crate) lock: Option<FileLock>,
}

impl Alone {
    /// Begins to read what is selected: fewer bytes where the file ends.
    pub(crate) fn begin_read(self, tree: &Tree, selection: Selection) -> Pending<Vec<u8>> {
        match self.is_plain() && selection.runs() > 1 {
            true => self.handle.begin_read_selected(selection),
            false => self.begin(tree, async move |alone: &Alone| alone.read(selection).await),
        }
    }

    /// Begins to write what is selected.
    pub(crate) fn begin_write(self, tree: &Tree, selection: Selection, bytes: Vec<u8>) -> Pending<()> {
        match self.is_plain() {
            true => self.begin_plain_write(selection, bytes),
            false => self.begin(tree, async move |alone: &Alone| alone.write(selection, bytes).await),
        }
    }

    /// Whether nothing comes before what is moved, and nothing after it.
    fn is_plain(&self) -> bool {
        !self.is_seen && self.lock.is_none()
    }

    fn begin_plain_write(&self, selection: Selection, bytes: Vec<u8>) -> Pending<()> {
        match selection.runs() {
            // A write cache that has no room waits for the node thread, which this may be.
            1 if !self.handle.caches_writes() => self.handle.begin_write(selection.span().offset, bytes),
            _ => self.handle.begin_write_selected(selection, bytes),
        }
    }

    fn begin<T: Send + 'static>(
        self,
        tree: &Tree,
        work: impl AsyncFnOnce(&Alone) -> node::Result<T> + Send + 'static,
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
