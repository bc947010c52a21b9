//! One workload on agents: the file is made, clients use it, and it goes.
//!
//! ```text
//!  keeper     make, lay out, commit   wait    ready, go    wait      remove
//!  client 0                   connect, open     |   [ the workload ]
//!  client 1                   connect, open     |   [ the workload ]
//! ```
//!
//! The keeper and each client are nodes of their own, each with a thread, a runtime and connections.

use std::cell::Cell;
use std::thread;

use command_line::failure::{Failure, Result};
use command_line::progress::{Progress, Show};
use flume::{Receiver, Sender};
use jobs::{Contents, Outcome, Workload};
use layout::Striping;
use node::{Agent, ConnectedNode};

use crate::interrupt::{Interruption, unless};
use crate::this_node;

/// A workload, and where it is to be done.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) agents: Vec<Agent>,
    /// What the file is called meanwhile.
    pub(crate) name: String,
    pub(crate) block_bytes: u64,
    pub(crate) workload: Workload,
    /// What the workload is called on the way.
    pub(crate) label: String,
    pub(crate) show: Show,
}

/// What came of a client; nothing if it was stopped because of another one.
type Done = Result<Option<Outcome>>;

impl Task {
    /// Does it. Nothing is left of the file, also if it fails or is interrupted.
    pub(crate) fn run(self, interruption: Interruption) -> Result<Outcome> {
        this_node::run(self.agents.clone(), move |connection| async move {
            self.refuse_existing(&connection).await?;
            let half_done = interruption.begin(self.left_behind());
            let is_made = Cell::new(false);
            match interruption.unless(self.make_and_use(&connection, &is_made)).await {
                None => Err(half_done.undone(
                    Failure::new("bench", "interrupted"),
                    self.remove(&connection, is_made.get()).await,
                )),
                Some(outcome) if is_made.get() => match (outcome, self.remove(&connection, true).await) {
                    (Err(failure), Err(_)) => Err(failure.also(&self.remedy())),
                    (outcome, removed) => outcome.and_then(|outcome| Ok(removed.map(|()| outcome)?)),
                },
                // Somebody else may have a file of this name.
                Some(outcome) => outcome,
            }
        })
    }

    fn left_behind(&self) -> Failure {
        Failure::new(&self.name, "it may be left, there was no time to remove it").remedy(self.remedy())
    }

    fn remedy(&self) -> String {
        format!("If {0} is left, `starfish rm {0}` or `starfish rm --unfinished {0}` removes it.", self.name)
    }

    /// Nobody's file is to give way, not even an unfinished one.
    async fn refuse_existing(&self, connection: &ConnectedNode) -> Result<()> {
        let found = connection.explained(&self.name, connection.client.find_all(&self.name).await)?;
        if found.is_empty() {
            return Ok(());
        }
        let failure = Failure::new(&self.name, "there is a file of that name, finished or not");
        Err(failure.remedy("Give another --name, or none: then a new one is found."))
    }

    /// Removes the file; before it is known to be made, what there may be of it already.
    async fn remove(&self, connection: &ConnectedNode, is_made: bool) -> node::Result<()> {
        match is_made {
            true => connection.unlink_if_there(&self.name).await,
            false => connection.discard(&self.name).await,
        }
    }

    async fn make_and_use(&self, connection: &ConnectedNode, is_made: &Cell<bool>) -> Result<Outcome> {
        let striping =
            Striping::new(self.block_bytes, connection.client.disks()).map_err(Box::<fs::Error>::from);
        let striping = connection.explained(&self.name, striping)?;
        let created = connection.client.create_striped(&self.name, node::new_file_id()?, striping).await;
        // Open until all is done: an unfinished file belongs to who has begun it for as long as that is there.
        let file = connection.explained(&self.name, created)?;
        is_made.set(true);
        let progress = Progress::bytes(self.show, &format!("laying out for {}", self.label));
        progress.expect(self.workload.file_bytes);
        let told = adding_to(&progress);
        let laid_out = self.workload.lay_out(&connection.machine, &file, Contents::Real, told).await;
        progress.finish();
        this_node::explained_job(connection, &self.name, laid_out)?;
        self.have_clients_use_it().await
    }

    /// Has all clients begin together, once all are ready. If one fails, all end.
    async fn have_clients_use_it(&self) -> Result<Outcome> {
        let progress = Progress::bytes(self.show, &self.label);
        self.expected_bytes().into_iter().for_each(|bytes| progress.expect(bytes));
        let (ready, all_ready) = flume::unbounded();
        let (done, outcomes) = flume::unbounded();
        let mut begin = Vec::new();
        for number in 0..self.workload.clients {
            let (go, wait) = flume::bounded::<()>(1);
            begin.push(go);
            let (task, ready, done, progress) = (self.clone(), ready.clone(), done.clone(), progress.clone());
            thread::spawn(move || {
                // After an interruption nobody wants to know.
                let _ = done.send(task.be_client(number, ready, wait, progress));
            });
        }
        drop((ready, done));
        let mut ready = 0;
        // A client that fails before it is ready drops its sender; with the last sender this ends, too early.
        while ready < begin.len() && all_ready.recv_async().await.is_ok() {
            ready += 1;
        }
        if ready == begin.len() {
            // A client that is gone meanwhile tells so itself.
            for go in &begin {
                let _ = go.send(());
            }
        } else {
            begin.clear();
        }
        let mut sum = Ok(Outcome::default());
        while let Ok(outcome) = outcomes.recv_async().await {
            match (&mut sum, outcome) {
                (Ok(sum), Ok(Some(outcome))) => sum.add(&outcome),
                (Ok(_), Err(failure)) => {
                    sum = Err(failure);
                    // That stops the others.
                    begin.clear();
                }
                _ => {}
            }
        }
        progress.finish();
        sum
    }

    /// How many bytes will be moved, if that is known beforehand.
    fn expected_bytes(&self) -> Option<u64> {
        let workload = &self.workload;
        let is_counted = workload.time.is_none();
        let requests: u64 =
            (0..workload.clients).map(|client| workload.requests_of(client)).fold(0, u64::saturating_add);
        is_counted.then(|| requests.saturating_mul(workload.record_bytes))
    }

    /// The life of a client: it says that it is ready, is told to begin, and stops when nobody can tell it anything any
    /// more.
    fn be_client(self, number: u32, ready: Sender<()>, go: Receiver<()>, progress: Progress) -> Done {
        this_node::run(self.agents.clone(), move |connection| async move {
            let file = connection.open(&self.name, true).await?;
            // The keeper may have been interrupted.
            let _ = ready.send(());
            drop(ready);
            if go.recv_async().await.is_err() {
                return Ok(None);
            }
            let stop = async {
                let _ = go.recv_async().await;
            };
            let told = adding_to(&progress);
            let work = self.workload.run(&connection.machine, &file, Contents::Real, number, told);
            let outcome = unless(stop, work).await;
            outcome.map(|outcome| this_node::explained_job(&connection, &self.name, outcome)).transpose()
        })
    }
}

fn adding_to(progress: &Progress) -> impl Fn(u64) + 'static {
    let progress = progress.clone();
    move |bytes| progress.add(bytes)
}
