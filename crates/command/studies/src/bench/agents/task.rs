//! One workload on agents: creates the file, runs the clients, removes the file.
//!
//! ```text
//!  parent     make, lay out, flush    wait    ready, go    wait      remove
//!  client 0                   connect, open     |   [ the workload ]
//!  client 1                   connect, open     |   [ the workload ]
//! ```
//!
//! The parent, which creates and removes the file, and all clients are separate nodes. Each has its own thread, runtime
//! and connections.

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

/// Workload, and the agents to run it on.
#[derive(Clone)]
pub struct Task {
    /// The agents.
    pub cluster: Cluster,
    /// Size of a block in bytes.
    pub block_bytes: u64,
    /// The workload.
    pub workload: Workload,
    /// Name of the workload in messages.
    pub label: String,
    /// Progress to show.
    pub show: Show,
}

/// Result of a client; `None` if the client was stopped because another client failed.
type Done = Result<Option<Outcome>>;

impl Task {
    /// Runs the workload. Removes the file even after a failure or an interruption.
    pub fn run(self, interruption: Interruption) -> Result<Outcome> {
        let cluster = self.cluster.clone();
        cluster.run(move |connection| async move {
            let failure = Failure::new("bench", "interrupted, and there was no time to remove the file");
            let undo_guard = interruption.begin(failure.remedy(scratch::LEFT));
            let file = scratch::describe(&connection, &self.label, self.block_bytes).await?;
            let outcome = interruption.unless(self.make_and_use(&connection, &file)).await;
            match (outcome, scratch::remove(&connection, [&file]).await) {
                (None, removed) => Err(undo_guard.undone(Failure::new("bench", "interrupted"), removed)),
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
        let on_bytes = adding_to(&progress);
        let laid_out = self.workload.lay_out(&connection.machine, &file, Contents::Real, on_bytes).await;
        progress.finish();
        explained_job(connection, &self.label, laid_out)?;
        connection.explained(&self.label, file.flush().await)?;
        self.have_clients_use_it(&NumberedFile { bytes: file.bytes(), ..described.clone() }).await
    }

    /// Starts all clients at the same time, after all are ready. If a client fails, stops all.
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
                // After an interruption the receiver is dropped.
                let _ = done.send(task.be_client(number, file, (ready, wait), progress));
            });
        }
        drop((ready, done));
        let mut ready = 0;
        // A client that fails before it is ready drops its sender. The loop ends when all senders are dropped, even if
        // not all clients are ready.
        while ready < begin.len() && all_ready.recv_async().await.is_ok() {
            ready += 1;
        }
        if ready == begin.len() {
            // If a client has ended, this send fails; the client has sent its own failure.
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
                    // Dropping the senders stops the other clients.
                    begin.clear();
                }
                _ => {}
            }
        }
        progress.finish();
        sum
    }

    /// Returns the number of bytes that the clients will read and write, if known.
    fn expected_bytes(&self) -> Option<u64> {
        let workload = &self.workload;
        let is_counted = workload.time.is_none();
        let requests: u64 =
            (0..workload.clients).map(|client| workload.requests_of(client)).fold(0, u64::saturating_add);
        is_counted.then(|| requests.saturating_mul(workload.record_bytes))
    }

    /// Runs a client. The client reports that it is ready, waits for the start, and stops when the parent drops its
    /// sender.
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
            // After an interruption the receiver is dropped.
            let _ = ready.send(());
            drop(ready);
            if go.recv_async().await.is_err() {
                return Ok(None);
            }
            let stop = async {
                let _ = go.recv_async().await;
            };
            let on_bytes = adding_to(&progress);
            let work = self.workload.run(&connection.machine, &file, Contents::Real, number, on_bytes);
            let outcome = unless(stop, work).await;
            outcome.map(|outcome| explained_job(&connection, &self.label, outcome)).transpose()
        })
    }
}

fn adding_to(progress: &Progress) -> impl Fn(u64) + 'static {
    let progress = progress.clone();
    move |bytes| progress.add(bytes)
}
