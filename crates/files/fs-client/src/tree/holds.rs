//! Files that are open here: the keeper knows of them, so that their contents stay when their names go.
//!
//! It knows that in memory, as long as there is a connection to it. So whoever has lost that says anew what is held:
//! before anything else is asked, and as soon as it has turned out, whether anything is asked or not.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use machine::{Duration, InFlight, Machine, Payload, Permits};
use namespace::{FileNumber, Inode, TreeAnswer, TreeOperation, WrittenContents};

use super::{Tree, TreeInner};
use crate::error::{Error, Result};
use crate::protocol::{HELD_MAX, OpenCount, OpenFor, Reply, Request};
use crate::unexpected;

/// How long after a keeper could not be told it is tried again: several times before one that was started anew ceases
/// to wait.
const TELL_AGAIN: Duration = Duration::from_secs(10);

/// What is held of a namespace.
pub(super) struct TreeHolds {
    /// How often each file is held.
    files: RefCell<BTreeMap<FileNumber, OpenCount>>,
    /// How often the keeper had been gone when it was last told what is held.
    told: Cell<u64>,
    /// The turn at telling it.
    telling: Permits,
    /// Questions under way whose answers are held.
    pub(super) asked: InFlight,
    is_kept: Cell<bool>,
}

impl TreeHolds {
    /// Nothing is held yet; the keeper had been gone so often before.
    pub(super) fn new(disconnects: u64) -> Self {
        TreeHolds {
            files: RefCell::default(),
            told: Cell::new(disconnects),
            telling: Permits::new(1),
            asked: InFlight::new(),
            is_kept: Cell::new(false),
        }
    }

    /// Whether a file is open here.
    pub(super) fn has(&self, number: FileNumber) -> bool {
        self.files.borrow().contains_key(&number)
    }

    fn note(&self, number: FileNumber, used: OpenFor) {
        self.files.borrow_mut().entry(number).or_default().add(used);
    }

    /// Notes that a file is held once less; whether it was held.
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
    /// Has an operation performed, and holds the inode that it answers with until [`let_go`](Self::let_go). Returns
    /// the inode, and whether other clients have the file open for writing.
    pub(super) async fn hold(&self, operation: TreeOperation, used: OpenFor) -> Result<(Inode, bool)> {
        let (answer, has_other_writers) = self.ask(operation, Some(used)).await?;
        let inode = self.inode_of(answer)?;
        self.inner.holds.note(inode.number, used);
        self.keep_holding();
        Ok((inode, has_other_writers))
    }

    /// Lets go of a file that was held; its contents go if nobody can need them any more.
    pub(super) async fn let_go(&self, number: FileNumber, used: OpenFor) -> Result<()> {
        let outcome = match self.begin_to_let_go(number, used).await {
            Ok(true) => self.tell_let_go(Request::LetGo { number, used, written: None }).await.map(drop),
            begun => begun.map(drop),
        };
        match outcome {
            // A keeper that is gone is told what is held when it is there again.
            Err(error) if error.is_of_new_start() => Ok(()),
            outcome => outcome,
        }
    }

    /// As [`let_go`](Self::let_go), and tells the keeper that the file was written to. The file as it is then, unless
    /// it goes.
    pub(super) async fn let_go_written(
        &self,
        number: FileNumber,
        used: OpenFor,
        written: WrittenContents,
    ) -> Result<Option<Inode>> {
        self.begin_to_let_go(number, used).await?;
        match self.tell_let_go(Request::LetGo { number, used, written: Some(written) }).await {
            // Whether it was told nobody knows.
            Err(error) if error.is_of_new_start() => {
                self.inode(TreeOperation::Wrote { number, written }).await.map(Some)
            }
            answer => answer?.map(|answer| self.inode_of(answer)).transpose(),
        }
    }

    /// Notes that a file is held once less, whatever comes; whether it was held. Before that the keeper is told how
    /// often it was, if it may not know: it would take this handle for the last one.
    async fn begin_to_let_go(&self, number: FileNumber, used: OpenFor) -> Result<bool> {
        let told = self.hold_again().await;
        let was_held = self.inner.holds.note_let_go(number, used);
        told.map(|()| was_held)
    }

    /// Tells the keeper that a file was closed; its answer, unless that is that the file can go, which then begins.
    async fn tell_let_go(&self, request: Request) -> Result<Option<TreeAnswer>> {
        let crashes = self.crashes();
        match self.call(request).await?.0 {
            TreeAnswer::Removed { doomed } => {
                self.doom(doomed, crashes);
                Ok(None)
            }
            answer => Ok(Some(answer)),
        }
    }

    /// Tells a keeper that was gone what is held here, if it does not know: within a minute of its new start, or it
    /// takes files without names for such as nobody has open. It is done by itself, and by whoever asks the keeper for
    /// anything.
    ///
    /// # Errors
    /// If the keeper cannot be told.
    pub async fn hold_again(&self) -> Result<()> {
        let holds = &self.inner.holds;
        if holds.told.get() == self.disconnects() {
            return Ok(());
        }
        let _turn = holds.telling.take().await;
        while holds.told.get() != self.disconnects() {
            let disconnects = self.disconnects();
            // What the keeper holds by now is to be among what it is told.
            holds.asked.none().await;
            self.tell_holds(&holds.all()).await?;
            holds.told.set(disconnects);
        }
        Ok(())
    }

    async fn tell_holds(&self, files: &[(FileNumber, OpenCount)]) -> Result<()> {
        let (keeper, endpoint) = (self.keeper(), &self.cache().client().inner.endpoint);
        for some in files.chunks(HELD_MAX) {
            let request = Request::HoldAgain { files: some.to_vec() };
            let (Reply::Done, _) = endpoint.call(keeper, request, Payload::empty()).await? else {
                return Err(unexpected(keeper));
            };
        }
        Ok(())
    }

    /// Has the keeper told what is held whenever it was gone.
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
        let (client, told) = (tree.cache().client().clone(), tree.hold_again().await);
        drop(tree);
        match told {
            Ok(()) => client.inner.lost.wait().await,
            Err(error) if matches!(*error, Error::Machine(machine::Error::Closed)) => return,
            // Whoever asks for something is told.
            Err(_) => {
                let machine = client.inner.endpoint.machine();
                machine.sleep_until(machine.now() + TELL_AGAIN).await;
            }
        }
    }
}
