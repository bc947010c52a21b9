//! Work of jobs that share disks, as tracks of a trace, one for each job. The tracks are made from the jobs' reports
//! after the run.

use experiment::{PlacementCase, Trial, WaitCause};
use machine::{Duration, Instant, NodeId, NotedEvent, Recorder};

/// Tracks of one trial.
pub struct JobTracks {
    /// Number of nodes of the machine. The node of the tracks has the next number.
    pub nodes: usize,
    /// Slices of each job, in the order of time.
    pub jobs: Vec<Vec<JobSlice>>,
}

/// Time range in which a job had one activity.
pub struct JobSlice {
    /// Name of the activity.
    pub name: &'static str,
    /// Start of the slice.
    pub begin: Instant,
    /// End of the slice.
    pub end: Instant,
    /// If the job waited for input: index of the run of blocks that it waited for.
    pub run: Option<u64>,
}

impl JobTracks {
    /// Records the tracks as rows of an additional node, which is numbered after the machine's nodes.
    pub fn write_to(&self, recorder: &mut dyn Recorder) {
        let node = NodeId(self.nodes as u64);
        for (job, slices) in self.jobs.iter().enumerate() {
            let row = recorder.row(node, &format!("job {job}"), false);
            for JobSlice { name, begin, end, run } in slices {
                let run = run.map(|run| ("run", run));
                recorder.note(row, *begin, NotedEvent::Begin { name, arguments: run.as_slice() });
                recorder.note(row, *end, NotedEvent::End);
            }
        }
    }

    /// Returns the tracks of a trial of a case.
    pub fn of(case: &PlacementCase, trial: &Trial) -> Self {
        let jobs = 0..trial.jobs.len();
        JobTracks {
            nodes: case.machine.node_count() as usize,
            jobs: jobs
                .map(|job| slices(trial, job, trial.start + case.options.stagger * job as u64))
                .collect(),
        }
    }
}

/// Returns the slices of a job that began at `start`. In each slice the job either waited or worked.
fn slices(trial: &Trial, job: usize, start: Instant) -> Vec<JobSlice> {
    let mut slices = Vec::new();
    let mut free = Duration::ZERO;
    let work = |begin: Duration, end: Duration| JobSlice {
        name: "working",
        begin: start + begin,
        end: start + end,
        run: None,
    };
    for wait in trial.jobs[job].timeline.iter().flat_map(|timeline| &timeline.waits) {
        if wait.begin > free {
            slices.push(work(free, wait.begin));
        }
        let (name, run) = match wait.cause {
            WaitCause::Input(run) => ("waiting for input", Some(run as u64)),
            WaitCause::Room => ("waiting for room in its portion", None),
            WaitCause::Writes => ("waiting for its last writes", None),
        };
        slices.push(JobSlice { name, begin: start + wait.begin, end: start + wait.end, run });
        free = wait.end;
    }
    slices
}
