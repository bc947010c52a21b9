//! Jobs on agents. Each job is a separate node, with its own thread, runtime and connections.
//!
//! ```text
//!  job 0    prepare   |   [ run ]   wait  |  check
//!  job 1    prepare   |   [ run ]         |  check
//! ```

use std::rc::Rc;
use std::thread;

use command_line::failure::Result;
use experiment::{Contents, Launch, Outcome};
use flume::{Receiver, Sender};
use fs::Group;
use jobs::Member;
use machine::Machine;
use node::ConnectedNode;
use transfer::cluster::{Cluster, explained_job};
use transfer::scratch::JobFiles;

/// Runs all jobs with these files at the same time, after all are ready. Each job is a node. Returns their outcomes.
/// The outputs are checked after all jobs are done, so that no check disturbs a job.
pub fn have_done(
    cluster: &Cluster,
    launches: Vec<Launch>,
    files: &JobFiles,
    seed: u64,
) -> Result<Vec<Outcome>> {
    let (ready, all_ready) = flume::unbounded();
    let (done, all_done) = flume::unbounded();
    let (mut begin, mut threads) = (Vec::new(), Vec::new());
    for (number, launch) in launches.into_iter().enumerate() {
        let (go, wait) = flume::bounded::<()>(1);
        begin.push(go);
        let (files, ready, done) = (files.clone(), ready.clone(), done.clone());
        let node = JobNode { number, launch, files, seed, ready, done, go: wait };
        let cluster = cluster.clone();
        threads.push(thread::spawn(move || node.live(&cluster)));
    }
    drop((ready, done));
    // A job that fails before it is ready drops its sender. So the count ends even then.
    if all_ready.iter().count() == begin.len() {
        for go in &begin {
            // If a node has failed, its failure is reported when its thread is joined.
            let _ = go.send(());
        }
    } else {
        begin.clear();
    }
    let mut outcomes: Vec<(usize, Outcome)> = all_done.iter().collect();
    begin.clear();
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    }
    outcomes.sort_by_key(|(number, _)| *number);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Node that does one job.
struct JobNode {
    number: usize,
    launch: Launch,
    files: JobFiles,
    seed: u64,
    ready: Sender<()>,
    done: Sender<(usize, Outcome)>,
    /// Receives the start command. When the sender is dropped, all jobs are done.
    go: Receiver<()>,
}

impl JobNode {
    fn live(self, cluster: &Cluster) -> Result<()> {
        cluster.run(move |connection| async move {
            let JobNode { number, launch, files, seed, ready, done, go } = self;
            let what = launch.job.to_string();
            let ConnectedNode { machine, client, .. } = connection.clone();
            let group = Group::new(number as u64 + 1, vec![machine.node()], 0);
            let (contents, client) = (Contents::Real, Some(client));
            let files = Rc::new(files);
            let member = Member { machine: machine.clone(), client, files, group, contents, seed };
            let part = explained_job(&connection, &what, launch.job.prepare(member).await)?;
            // After an interruption the receiver is dropped.
            let _ = ready.send(());
            drop(ready);
            if go.recv_async().await.is_err() {
                return Ok(());
            }
            machine.sleep_until(machine.now() + launch.start).await;
            let outcome = explained_job(&connection, &what, part.run().await)?;
            let _ = done.send((number, outcome));
            drop(done);
            let _ = go.recv_async().await;
            explained_job(&connection, &what, part.check().await)
        })
    }
}
