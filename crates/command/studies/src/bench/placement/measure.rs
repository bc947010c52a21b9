//! Measures merges on agents started for the benchmark.
//!
//! ```text
//!  agents   fast, no model  | restarted: slowed, cold                       | ...
//!  parent   input runs      | outputs       wait                    discard | remove
//!  job 0                    | prepare  |  [ merge ]  wait  | check          |
//!  job 1                    | prepare  |  [ merge ]  wait  | check          |
//! ```
//!
//! The parent node creates and removes the files. Each job is a separate node (`job_nodes.rs`), so the disk queues
//! treat it as a separate job.

use std::mem;
use std::thread;

use command_line::failure::{Failure, Result};
use experiment::{Beginning, Contents, Experiment, FilePlace, PlacementCase, StoredFile};
use fs::{File, NumberedFile};
use jobs::fill;
use node::ConnectedNode;
use real::RealMachine;
use transfer::cluster::explained_job;
use transfer::scratch::{self, JobFiles};

use super::MergeTimes;
use crate::bench::job_nodes::have_done;
use crate::bench::processes::Agents;

/// Agents, each with a disk that holds input runs of some merges.
pub struct MergeTestbed {
    agents: Agents,
    disk_model: String,
    /// Existing input runs.
    runs: JobFiles,
}

impl MergeTestbed {
    /// Starts `disks` agents.
    pub fn start(disks: u32, disk_model: &str) -> Result<Self> {
        let agents = Agents::start(disks as usize, &[])?;
        Ok(MergeTestbed { agents, disk_model: disk_model.to_owned(), runs: JobFiles::new() })
    }

    /// Creates the input runs of a case, while the disks are fast.
    pub fn make_runs(&mut self, case: &PlacementCase) -> Result<()> {
        let experiment = experiment(case)?;
        self.agents.restart(&options(&experiment, None))?;
        let made = self.agents.cluster.run(move |connection| async move {
            let mut runs = JobFiles::new();
            for file in of_beginning(&experiment, Beginning::OnDisks) {
                let (described, made) = create(&connection, file).await?;
                let filled = fill(&connection.machine, &made, file.bytes, Contents::Real, |_| {}).await;
                explained_job(&connection, &file.name, filled)?;
                connection.explained(&file.name, made.flush().await)?;
                runs.insert(file.name.clone(), NumberedFile { bytes: file.bytes, ..described });
            }
            Ok(runs)
        });
        self.runs = self.agents.explain(made)?;
        Ok(())
    }

    /// Removes the input runs.
    pub fn remove_runs(&mut self) -> Result<()> {
        let runs = mem::take(&mut self.runs);
        let removed = self
            .agents
            .cluster
            .run(move |connection| async move { Ok(scratch::remove(&connection, runs.values()).await?) });
        self.agents.explain(removed)
    }

    /// Merges the runs once, on restarted agents with slowed-down disks. Checks and removes the outputs.
    pub fn measure(&mut self, case: &PlacementCase, number: u64) -> Result<MergeTimes> {
        let experiment = experiment(case)?;
        self.agents.restart(&options(&experiment, Some(&self.disk_model)))?;
        let (cluster, mut files) = (self.agents.cluster.clone(), self.runs.clone());
        let outcome = self.agents.cluster.run(move |connection| async move {
            let mut outputs = Vec::new();
            for file in of_beginning(&experiment, Beginning::Allocated) {
                let (described, made) = create(&connection, file).await?;
                connection.explained(&file.name, made.truncate(file.bytes).await)?;
                outputs.push(described.clone());
                files.insert(file.name.clone(), NumberedFile { bytes: file.bytes, ..described });
            }
            let (sender, result) = flume::bounded(1);
            let launches = experiment.jobs.clone();
            thread::spawn(move || sender.send(have_done(&cluster, launches, &files, number)));
            let done = result.recv_async().await.expect("the thread sends its result before it ends");
            scratch::remove(&connection, &outputs).await?;
            done
        });
        Ok(MergeTimes::of(case, &self.agents.explain(outcome)?))
    }
}

fn experiment(case: &PlacementCase) -> Result<Experiment> {
    case.experiment_on_agents().map_err(|error| Failure::new("merging", error))
}

/// Returns the options that make agents behave like the I/O nodes of the experiment.
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

/// Creates a file, with all its stripes, on the disks that the experiment chose for it.
async fn create(connection: &ConnectedNode, file: &StoredFile) -> Result<(NumberedFile, File<RealMachine>)> {
    let FilePlace::Disks(disks) = &file.place else {
        return Err(Failure::new(&file.name, "a run must be striped over chosen disks"));
    };
    let described = scratch::describe_on(connection, &file.name, file.block_bytes, disks).await?;
    let made = connection.explained(&file.name, connection.client.numbered(described.clone()).await)?;
    connection.explained(&file.name, made.make_stripes().await)?;
    Ok((described, made))
}
