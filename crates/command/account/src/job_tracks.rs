//! What jobs that share disks did, as tracks of a trace, one for each. They come from what the jobs told when the run
//! was over.

use experiment::{PlacementCase, Trial, WaitCause};
use machine::{Duration, Instant, NodeId, NotedEvent, Recorder};

/// The tracks of one trial.
pub struct JobTracks {
    /// The nodes of the machine, after which they come.
    pub nodes: usize,
    /// What each job did, one after the other.
    pub jobs: Vec<Vec<JobSlice>>,
}

/// A stretch of time in which a job did one thing.
pub struct JobSlice {
    /// What it did.
    pub name: &'static str,
    /// From when until when.
    pub begin: Instant,
    /// When it ended.
    pub end: Instant,
    /// The run that it waited for, if it did.
    pub run: Option<u64>,
}

impl JobTracks {
    /// Tells a recorder of them, as of a node that comes after the others.
    pub fn tell(&self, recorder: &mut dyn Recorder) {
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

    /// Those of a trial of a case.
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

/// What a job that began then did: it waited, or worked.
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
