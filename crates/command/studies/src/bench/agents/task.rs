//! One workload on agents: the file is made, clients use it, and it goes.
//!
//! ```text
//!  keeper     make, lay out, flush    wait    ready, go    wait      remove
//!  client 0                   connect, open     |   [ the workload ]
//!  client 1                   connect, open     |   [ the workload ]
//! ```
//!
//! The keeper and each client are nodes of their own, each with a thread, a runtime and connections.

use std::thread;

use command_line::failure::{Failure, Result};
use command_line::progress::{Progress, Show};
use flume::{Receiver, Sender};
use fs::NumberedFile;
use jobs::{Contents, Outcome, Workload};
use node::ConnectedNode;
use transfer::cluster::{Cluster, explained_job};
use transfer::interrupt::{Interruption, unless};
use transfer::scratch;

/// A workload, and where it is to be done.
#[derive(Clone)]
pub struct Task {
    /// The agents.
    pub cluster: Cluster,
    /// Size of a block.
    pub block_bytes: u64,
    /// The workload.
    pub workload: Workload,
    /// What the workload is called on the way.
    pub label: String,
    /// Progress to show.
    pub show: Show,
}

/// What came of a client; nothing if it was stopped because of another one.
type Done = Result<Option<Outcome>>;

impl Task {
    /// Does it. Nothing is left of the file, also if it fails or is interrupted.
    pub fn run(self, interruption: Interruption) -> Result<Outcome> {
        let cluster = self.cluster.clone();
        cluster.run(move |connection| async move {
            let failure = Failure::new("bench", "interrupted, and there was no time to remove the file");
            let half_done = interruption.begin(failure.remedy(scratch::LEFT));
            let file = scratch::describe(&connection, &self.label, self.block_bytes).await?;
            let outcome = interruption.unless(self.make_and_use(&connection, &file)).await;
            match (outcome, scratch::remove(&connection, [&file]).await) {
                (None, removed) => Err(half_done.undone(Failure::new("bench", "interrupted"), removed)),
                (Some(Err(failure)), Err(_)) => Err(failure.also(scratch::LEFT)),
                (Some(outcome), removed) => outcome.and_then(|outcome| Ok(removed.map(|()| outcome)?)),
            }
        })
    }

    async fn make_and_use(&self, connection: &ConnectedNode, described: &NumberedFile) -> Result<Outcome> {
        let file = connection.explained(&self.label, connection.client.numbered(described.clone()).await)?;
        connection.explained(&self.label, file.make_stripes().await)?;
        let progress = Progress::bytes(self.show, &format!("laying out for {}", self.label));
        progress.expect(self.workload.file_bytes);
        let told = adding_to(&progress);
        let laid_out = self.workload.lay_out(&connection.machine, &file, Contents::Real, told).await;
        progress.finish();
        explained_job(connection, &self.label, laid_out)?;
        connection.explained(&self.label, file.flush().await)?;
        self.have_clients_use_it(&NumberedFile { bytes: file.bytes(), ..described.clone() }).await
    }

    /// Has all clients begin together, once all are ready. If one fails, all end.
    async fn have_clients_use_it(&self, file: &NumberedFile) -> Result<Outcome> {
        let progress = Progress::bytes(self.show, &self.label);
        self.expected_bytes().into_iter().for_each(|bytes| progress.expect(bytes));
        let (ready, all_ready) = flume::unbounded();
        let (done, outcomes) = flume::unbounded();
        let mut begin = Vec::new();
        for number in 0..self.workload.clients {
            let (go, wait) = flume::bounded::<()>(1);
            begin.push(go);
            let (task, ready, done, progress) = (self.clone(), ready.clone(), done.clone(), progress.clone());
            let file = file.clone();
            thread::spawn(move || {
                // After an interruption nobody wants to know.
                let _ = done.send(task.be_client(number, file, (ready, wait), progress));
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
    fn be_client(
        self,
        number: u32,
        file: NumberedFile,
        (ready, go): (Sender<()>, Receiver<()>),
        progress: Progress,
    ) -> Done {
        let cluster = self.cluster.clone();
        cluster.run(move |connection| async move {
            let file = connection.explained(&self.label, connection.client.numbered(file).await)?;
            connection.explained(&self.label, file.make_stripes().await)?;
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
            outcome.map(|outcome| explained_job(&connection, &self.label, outcome)).transpose()
        })
    }
}

fn adding_to(progress: &Progress) -> impl Fn(u64) + 'static {
    let progress = progress.clone();
    move |bytes| progress.add(bytes)
}
