//! Merges the logs of several jobs into one log, as the ENWRICH report does with its traces (section 5.3).

use machine::Duration;

use crate::log::{LoggedNode, RequestLog};
use crate::reader::Limits;
use crate::request::{Action, Request};

/// A reason why the logs of several jobs cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Nodes of the job with this index wait for each other. In a merged log they would wait for other jobs, too.
    #[error("it has syncs or collective calls, whose nodes would wait for other jobs in a merged log")]
    Waits(usize),
    /// All jobs together exceed the limits of a log.
    #[error("the jobs have {nodes} nodes and {files} files in total; the limit is {} nodes and {} files", Limits::default().nodes, Limits::default().files)]
    TooLarge {
        /// Number of nodes of all jobs.
        nodes: usize,
        /// Number of files of all jobs.
        files: usize,
    },
}

impl RequestLog {
    /// Merges the logs of concurrent jobs. The time of each job is shifted to start at 0. The nodes of a job are
    /// numbered after the nodes of earlier jobs. Each job has separate files, named `job0/...`, `job1/...`.
    ///
    /// # Errors
    /// If nodes of a job wait for each other, or if all jobs together exceed the limits of a log.
    pub fn merged(jobs: &[RequestLog]) -> Result<RequestLog, MergeError> {
        let waits = |job: &RequestLog| job.calls().is_some() || job.syncs() > 0;
        if let Some(index) = jobs.iter().position(waits) {
            return Err(MergeError::Waits(index));
        }
        let count = |of: fn(&RequestLog) -> usize| jobs.iter().map(of).sum();
        let (nodes, files): (usize, usize) = (count(|job| job.nodes().len()), count(|job| job.files().len()));
        let limits = Limits::default();
        if nodes > limits.nodes as usize || files > limits.files as usize {
            return Err(MergeError::TooLarge { nodes, files });
        }
        let (mut all_names, mut all_nodes) = (Vec::with_capacity(files), Vec::with_capacity(nodes));
        for (index, job) in jobs.iter().enumerate() {
            let first_file = all_names.len() as u32;
            all_names.extend(job.files().iter().map(|file| format!("job{index}/{}", file.name)));
            for node in job.nodes() {
                let moved = |request: &Request| beside(request, job.start(), first_file);
                let requests = node.requests.iter().map(moved).collect();
                all_nodes.push(LoggedNode { number: all_nodes.len() as u32, requests });
            }
        }
        Ok(RequestLog::of(all_names, all_nodes))
    }
}

/// Converts a request of a job for the merged log. `start` is the start time of the job in its log; `first_file` is the
/// number of files of earlier jobs.
fn beside(request: &Request, start: Duration, first_file: u32) -> Request {
    let action = match request.action {
        Action::Move(operation, mut stretch) => {
            stretch.file += first_file;
            Action::Move(operation, stretch)
        }
        action => action,
    };
    Request { time: request.time - start, action, ..*request }
}
