//! Jobs on agents, each done by a node of its own: with a thread, a runtime and connections.
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

/// Has all jobs done at once with these files, each by one node, once all are ready; what came of each. What they have
/// made is checked when all are done, so that nobody is disturbed.
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
    // A job that fails before it is ready drops its sender, and so this ends.
    if all_ready.iter().count() == begin.len() {
        for go in &begin {
            // Of one that is gone meanwhile its thread tells.
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

/// A node that does one job.
struct JobNode {
    number: usize,
    launch: Launch,
    files: JobFiles,
    seed: u64,
    ready: Sender<()>,
    done: Sender<(usize, Outcome)>,
    /// It is told to begin, and that all are done when nobody can tell it anything any more.
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
            // Who hears of it may have been interrupted.
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
