//! Files that this client has open. The metadata server records them, so that their contents remain if their names are
//! removed.
//!
//! The server keeps these records in memory until the connection ends. So a client that was disconnected reports its
//! open files again, before any other request. A task does so as soon as it detects the disconnect, even if there is no
//! request.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use machine::{Duration, InFlight, Machine, Payload, Permits};
use namespace::{FileNumber, Inode, TreeAnswer, TreeOperation, WrittenContents};

use super::{Tree, TreeInner};
use crate::error::{Error, Result};
use crate::protocol::{HELD_MAX, OpenCount, OpenFor, Reply, Request};
use crate::unexpected;

/// Interval between attempts to report open files to an unreachable metadata server: short enough for several attempts
/// within the server's grace period after a restart.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Open files of a namespace.
pub(super) struct ClientOpenRefs {
    /// Open count of each file.
    files: RefCell<BTreeMap<FileNumber, OpenCount>>,
    /// Number of disconnects of the metadata server at the time of the last report of open files.
    reported_at: Cell<u64>,
    /// Serialises the reports.
    reporting: Permits,
    /// Requests in flight whose answers will open a file.
    pub(super) asked: InFlight,
    is_kept: Cell<bool>,
}

impl ClientOpenRefs {
    /// Returns an empty set. `disconnects` is the number of disconnects of the metadata server so far.
    pub(super) fn new(disconnects: u64) -> Self {
        ClientOpenRefs {
            files: RefCell::default(),
            reported_at: Cell::new(disconnects),
            reporting: Permits::new(1),
            asked: InFlight::new(),
            is_kept: Cell::new(false),
        }
    }

    /// Returns true if this client has the file open.
    pub(super) fn has(&self, number: FileNumber) -> bool {
        self.files.borrow().contains_key(&number)
    }

    fn note(&self, number: FileNumber, used: OpenFor) {
        self.files.borrow_mut().entry(number).or_default().add(used);
    }

    /// Decrements the open count of a file. Returns true if the file was open.
    fn note_let_go(&self, number: FileNumber, used: OpenFor) -> bool {
        let mut files = self.files.borrow_mut();
        let Some(count) = files.get_mut(&number) else { return false };
        count.remove(used);
        if count.is_nothing() {
            files.remove(&number);
        }
        true
    }

    fn all(&self) -> Vec<(FileNumber, OpenCount)> {
        self.files.borrow().iter().map(|(number, count)| (*number, *count)).collect()
    }
}

impl<M: Machine> Tree<M> {
    /// Performs an operation and opens the file in its answer. The caller must close the file. Returns the inode, and
    /// true if other clients have the file open for writing.
    pub(super) async fn hold(&self, operation: TreeOperation, used: OpenFor) -> Result<(Inode, bool)> {
        let (answer, has_other_writers) = self.ask(operation, Some(used)).await?;
        let inode = self.inode_of(answer)?;
        self.inner.holds.note(inode.number, used);
        self.keep_holding();
        Ok((inode, has_other_writers))
    }

    /// Closes an open file. If it has no names and no client has it open, its contents are removed.
    pub(super) async fn release_file(&self, number: FileNumber, used: OpenFor) -> Result<()> {
        let outcome = match self.begin_release(number, used).await {
            Ok(true) => {
                self.request_close(Request::CloseFile { number, used, written: None }).await.map(drop)
            }
            begun => begun.map(drop),
        };
        match outcome {
            // Ignore the error: the client reports its open files again when the metadata server is back.
            Err(error) if error.is_restart() => {
                machine::sometimes!("a close is cut off by a disconnect");
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Closes a file and reports writes to it. Returns the resulting inode, or `None` if the file was removed.
    pub(super) async fn close_written(
        &self,
        number: FileNumber,
        used: OpenFor,
        written: WrittenContents,
    ) -> Result<Option<Inode>> {
        self.begin_release(number, used).await?;
        match self.request_close(Request::CloseFile { number, used, written: Some(written) }).await {
            // The report may not have arrived, so report the writes again.
            Err(error) if error.is_restart() => {
                machine::sometimes!("writes are reported again after a close without an answer");
                self.inode(TreeOperation::Wrote { number, written }).await.map(Some)
            }
            answer => answer?.map(|answer| self.inode_of(answer)).transpose(),
        }
    }

    /// Decrements the open count of a file, even after an error. Returns true if the file was open. First reports the
    /// old counts if the metadata server may not have them: otherwise the server would conclude that this handle is the
    /// last one.
    async fn begin_release(&self, number: FileNumber, used: OpenFor) -> Result<bool> {
        let reported = self.reclaim_open_files().await;
        let was_held = self.inner.holds.note_let_go(number, used);
        reported.map(|()| was_held)
    }

    /// Reports that a file was closed and returns the answer. If the file is an orphan, starts the removal of its
    /// contents and returns `None`.
    async fn request_close(&self, request: Request) -> Result<Option<TreeAnswer>> {
        let crashes = self.crashes();
        match self.call(request).await?.0 {
            TreeAnswer::Removed { orphan } => {
                self.remove_orphan(orphan, crashes);
                Ok(None)
            }
            answer => Ok(Some(answer)),
        }
    }

    /// Reports the open files to the metadata server again, if there has been a disconnect since the last report. A
    /// background task calls this function, and so does each request to the metadata server. The report must arrive
    /// within a minute after a restart of the server: after that the server treats files as orphans if they have no
    /// names and no client has reported them.
    ///
    /// # Errors
    /// Fails if the report cannot be delivered.
    pub async fn reclaim_open_files(&self) -> Result<()> {
        let holds = &self.inner.holds;
        if holds.reported_at.get() == self.disconnects() {
            return Ok(());
        }
        let _turn = holds.reporting.take().await;
        while holds.reported_at.get() != self.disconnects() {
            let disconnects = self.disconnects();
            machine::sometimes!("open files are reported again during an open", if !holds.asked.is_empty());
            // Wait for requests in flight: the files that they open must be in the report.
            holds.asked.none().await;
            self.report_holds(&holds.all()).await?;
            machine::sometimes!("a disconnect comes during a report of open files", if disconnects != self.disconnects());
            holds.reported_at.set(disconnects);
        }
        Ok(())
    }

    async fn report_holds(&self, files: &[(FileNumber, OpenCount)]) -> Result<()> {
        let (metadata_server, endpoint) = (self.metadata_server(), &self.cache().client().inner.endpoint);
        for some in files.chunks(HELD_MAX) {
            let request = Request::ReclaimOpenFiles { files: some.to_vec() };
            let (Reply::Done, _) = endpoint.call(metadata_server, request, Payload::empty()).await? else {
                return Err(unexpected(metadata_server));
            };
        }
        Ok(())
    }

    /// Starts a task that reports the open files after each disconnect of the metadata server.
    fn keep_holding(&self) {
        if !self.inner.holds.is_kept.replace(true) {
            let tree = Rc::downgrade(&self.inner);
            self.machine().spawn("holding files", async move {
                keep(tree).await;
                Ok(())
            });
        }
    }
}

async fn keep<M: Machine>(tree: Weak<TreeInner<M>>) {
    while let Some(inner) = tree.upgrade() {
        let tree = Tree { inner };
        let (client, reported) = (tree.cache().client().clone(), tree.reclaim_open_files().await);
        drop(tree);
        match reported {
            Ok(()) => client.inner.lost.wait().await,
            Err(error) if matches!(*error, Error::Machine(machine::Error::Closed)) => return,
            // Ignore the error: the next request reports it to its caller.
            Err(_) => {
                let machine = client.inner.endpoint.machine();
                machine.sleep_until(machine.now() + RETRY_INTERVAL).await;
            }
        }
    }
}
