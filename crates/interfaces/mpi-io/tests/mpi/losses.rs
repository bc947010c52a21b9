//! A process or an agent fails in the middle of a collective call.

use std::fs;
use std::io::{Write, read_to_string};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use node::OpenOptions;

use crate::testbed::{MPICH, Mpi, OPEN_MPI, Testbed};

/// Contents of another file, which must not change.
const OTHER: &[u8] = b"a file that no program touches";

/// Limit of the time until all processes have ended.
const BOUND: Duration = Duration::from_secs(40);

impl Testbed {
    fn make_other(&self) {
        let session = self.agents.session();
        let mut file =
            session.open("mpi/other", OpenOptions::new().write(true).create(true)).expect("a new file");
        file.write_all(OTHER).expect("room for it");
        file.close().expect("all is well");
    }

    /// Waits until all processes have ended, and returns the report of each of these ranks.
    fn survivors(&self, mut child: Child, ranks: Range<u32>) -> Vec<String> {
        let begun = Instant::now();
        child.wait().expect("it has been started");
        assert!(begun.elapsed() < BOUND, "they end {:?} later", begun.elapsed());
        ranks
            .map(|rank| fs::read_to_string(self.agents.path(&rank.to_string())).unwrap_or_default())
            .collect()
    }

    fn check_lost(&self, lines: &[String]) {
        println!("{lines:?}");
        assert!(lines.iter().all(|line| line.starts_with("MPI_ERR_IO after")), "{lines:?}");
        assert_eq!(self.contents(&self.agents.session(), "mpi/other"), OTHER);
    }
}

/// Shell script that runs a program with its arguments, the last of which is the directory of the reports. The script
/// ends when both survivors have reported: the launcher ends all processes when one has failed.
const UNTIL_REPORTED: &str = "
    for directory; do :; done
    \"$@\"
    for pause in $(seq 300); do
        if [ -s \"$directory/0\" ] && [ -s \"$directory/1\" ]; then break; fi
        sleep 0.1
    done
";

#[test]
fn a_killed_member_fails_the_collective_call_of_the_others() {
    let Some(testbed) = Testbed::new(&MPICH) else { return };
    testbed.make_other();
    let program = testbed.compile("lost", &[]);
    let mut launched = testbed.launch(3, Path::new("sh"));
    launched.args(["-c", UNTIL_REPORTED, "sh"]).arg(program).arg("member").arg(testbed.agents.path(""));
    let child = launched.spawn().expect("an MPI");
    let lines = testbed.survivors(child, 0..2);
    testbed.check_lost(&lines);
}

fn agent_ends(mpi: &'static Mpi) {
    let Some(mut testbed) = Testbed::new(mpi) else { return };
    testbed.make_other();
    let (program, begun) = (testbed.compile("lost", &[]), testbed.agents.path("begun"));
    let mut launched = testbed.launch(3, &program);
    // Seconds until an unreachable agent is an error.
    launched.env("STARFISH_SILENCE", "2");
    launched.arg("agent").arg(testbed.agents.path("")).stderr(Stdio::piped());
    let mut child = launched.spawn().expect("an MPI");
    let errors = child.stderr.take().expect("a pipe");
    let waiting = Instant::now();
    while !begun.exists() {
        assert!(waiting.elapsed() < BOUND, "the processes do not write");
        thread::sleep(Duration::from_millis(5));
    }
    testbed.agents.agents[2].end();
    let lines = testbed.survivors(child, 0..3);
    testbed.agents.restart();
    testbed.check_lost(&lines);
    // One process reports the failed call, and one the failed close.
    let errors = read_to_string(errors).expect("text");
    let errors: Vec<&str> = errors.lines().filter(|line| line.starts_with("starfish: ")).collect();
    assert!((1..=2).contains(&errors.len()), "{errors:?}");
    assert!(errors.iter().all(|line| line.starts_with("starfish: mpi/lost: ")), "{errors:?}");
}

#[test]
fn a_stopped_agent_fails_a_collective_call_of_mpich() {
    agent_ends(&MPICH);
}

#[test]
fn a_stopped_agent_fails_a_collective_call_of_open_mpi() {
    agent_ends(&OPEN_MPI);
}
