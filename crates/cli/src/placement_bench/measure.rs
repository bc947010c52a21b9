//! Merges on agents of one's own.
//!
//! ```text
//!  agents   fast, no model  | restarted: slowed, cold                       | ...
//!  keeper   input runs      | outputs       wait                    discard | remove
//!  job 0                    | prepare  |  [ merge ]  wait  | check          |
//!  job 1                    | prepare  |  [ merge ]  wait  | check          |
//! ```
//!
//! Each job is a node of its own, with a thread, a runtime and connections, and so a job to the disks' queues.

use std::thread;

use command_line::failure::{Failure, Result};
use experiment::{Beginning, Contents, Experiment, FilePlace, Launch, Outcome, PlacementCase, StoredFile};
use flume::{Receiver, Sender};
use fs::{File, Group};
use jobs::{Member, fill};
use machine::Machine;
use node::{Agent, ConnectedNode};
use real::RealMachine;

use super::MergeTimes;
use crate::processes::Agents;
use crate::this_node;

/// Agents with a disk each, and the input runs of some merges on them.
pub(crate) struct MergeTestbed {
    agents: Agents,
    disk_model: String,
}

impl MergeTestbed {
    /// Starts so many agents.
    pub(crate) fn start(disks: u32, disk_model: &str) -> Result<Self> {
        let agents = Agents::start(disks as usize, &[])?;
        Ok(MergeTestbed { agents, disk_model: disk_model.to_owned() })
    }

    /// Makes the input runs of a case, while disks are fast.
    pub(crate) fn make_runs(&mut self, case: &PlacementCase) -> Result<()> {
        let experiment = experiment(case)?;
        self.agents.restart(&options(&experiment, None))?;
        let made = this_node::run(self.agents.agents.clone(), move |connection| async move {
            for file in of_beginning(&experiment, Beginning::OnDisks) {
                let made = create(&connection, file).await?;
                let filled = fill(&connection.machine, &made, file.bytes, Contents::Real, |_| {}).await;
                this_node::told_of_job(&connection, &file.name, filled)?;
                connection.told(&file.name, made.commit().await)?;
            }
            Ok(())
        });
        self.agents.explain(made)
    }

    /// Removes them.
    pub(crate) fn remove_runs(&self, case: &PlacementCase) -> Result<()> {
        let experiment = experiment(case)?;
        let removed = this_node::run(self.agents.agents.clone(), move |connection| async move {
            for file in of_beginning(&experiment, Beginning::OnDisks) {
                connection.unlink(&file.name).await?;
            }
            Ok(())
        });
        self.agents.explain(removed)
    }

    /// Merges the runs once, on agents that are started anew with slowed disks. The outputs are checked and removed.
    pub(crate) fn measure(&mut self, case: &PlacementCase, number: u64) -> Result<MergeTimes> {
        let experiment = experiment(case)?;
        self.agents.restart(&options(&experiment, Some(&self.disk_model)))?;
        let addresses = self.agents.agents.clone();
        let outcome = this_node::run(addresses.clone(), move |connection| async move {
            let mut outputs = Vec::new();
            for file in of_beginning(&experiment, Beginning::Allocated) {
                let made = create(&connection, file).await?;
                connection.told(&file.name, made.truncate(file.bytes).await)?;
                outputs.push(made);
            }
            let (tell, told) = flume::bounded(1);
            let launches = experiment.jobs.clone();
            thread::spawn(move || tell.send(have_done(&addresses, launches, number)));
            let done = told.recv_async().await.expect("the thread tells before it ends");
            drop(outputs);
            for file in of_beginning(&experiment, Beginning::Allocated) {
                connection.discard(&file.name).await?;
            }
            done
        });
        Ok(MergeTimes::of(case, &self.agents.explain(outcome)?))
    }
}

fn experiment(case: &PlacementCase) -> Result<Experiment> {
    case.experiment_on_agents().map_err(|error| Failure::new("merging", error))
}

/// What agents are told so that they are the I/O nodes of the experiment.
fn options(experiment: &Experiment, disk_model: Option<&str>) -> Vec<String> {
    let io_node = &experiment.io_nodes;
    let cache = io_node.cache_blocks as u64 * io_node.block_bytes_max;
    let mut options = vec![
        "--scheduling".to_owned(),
        io_node.scheduling.to_string(),
        "--block-max".to_owned(),
        io_node.block_bytes_max.to_string(),
        "--cache".to_owned(),
        cache.to_string(),
        "--prefetch".to_owned(),
        io_node.prefetch_blocks.to_string(),
    ];
    options.extend(disk_model.into_iter().flat_map(|model| ["--disk-model".to_owned(), model.to_owned()]));
    options
}

fn of_beginning(experiment: &Experiment, beginning: Beginning) -> impl Iterator<Item = &StoredFile> {
    experiment.files.iter().filter(move |file| file.beginning == beginning)
}

/// Makes a file on the disks where the experiment has it.
async fn create(connection: &ConnectedNode, file: &StoredFile) -> Result<File<RealMachine>> {
    let FilePlace::Disks(disks) = &file.place else {
        return Err(Failure::new(&file.name, "a run lies on a disk of its own"));
    };
    let created =
        connection.client.create_on(&file.name, node::new_file_id()?, file.block_bytes, disks).await;
    Ok(connection.told(&file.name, created)?)
}

/// Has all jobs done at once, each by a node of its own, once all are ready. What they have made is checked when all
/// are done, so that nobody is disturbed.
fn have_done(agents: &[Agent], launches: Vec<Launch>, seed: u64) -> Result<Vec<Outcome>> {
    let (ready, all_ready) = flume::unbounded();
    let (done, all_done) = flume::unbounded();
    let (mut begin, mut threads) = (Vec::new(), Vec::new());
    for (number, launch) in launches.into_iter().enumerate() {
        let (go, wait) = flume::bounded::<()>(1);
        begin.push(go);
        let node = JobNode { number, launch, seed, ready: ready.clone(), done: done.clone(), go: wait };
        let agents = agents.to_vec();
        threads.push(thread::spawn(move || node.live(agents)));
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
    seed: u64,
    ready: Sender<()>,
    done: Sender<(usize, Outcome)>,
    /// It is told to begin, and that all are done when nobody can tell it anything any more.
    go: Receiver<()>,
}

impl JobNode {
    fn live(self, agents: Vec<Agent>) -> Result<()> {
        this_node::run(agents, move |connection| async move {
            let JobNode { number, launch, seed, ready, done, go } = self;
            let what = launch.job.to_string();
            let ConnectedNode { machine, client, .. } = connection.clone();
            let group = Group::new(number as u64 + 1, vec![machine.node()], 0);
            let (contents, client) = (Contents::Real, Some(client));
            let member = Member { machine: machine.clone(), client, group, contents, seed };
            let part = this_node::told_of_job(&connection, &what, launch.job.prepare(member).await)?;
            // Who hears of it may have been interrupted.
            let _ = ready.send(());
            drop(ready);
            if go.recv_async().await.is_err() {
                return Ok(());
            }
            machine.sleep_until(machine.now() + launch.start).await;
            let outcome = this_node::told_of_job(&connection, &what, part.run().await)?;
            let _ = done.send((number, outcome));
            drop(done);
            let _ = go.recv_async().await;
            this_node::told_of_job(&connection, &what, part.check().await)
        })
    }
}
