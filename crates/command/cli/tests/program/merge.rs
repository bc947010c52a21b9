//! `starfish merge`, and a study of jobs that share disks, on the command line.

use std::fs;

use crate::common::{fail, starfish, succeed};

fn merge(arguments: &[&str]) -> String {
    text(succeed(starfish([&["merge"], arguments].concat())))
}

fn text(printed: Vec<u8>) -> String {
    String::from_utf8(printed).expect("text")
}

/// The explanation of a race contains its leader, its start, the queue lengths in comparison with the threshold, and
/// the order in which the jobs ended.
#[test]
fn a_race_is_explained_and_its_remedies_prevent_it() {
    let raced = merge(&["--policy", "2", "--jobs", "5", "--disks", "5", "--explain"]);
    for part in
        ["above 1: a race is possible, from 192 pending blocks", "A race: job ", "times the threshold"]
    {
        assert!(raced.contains(part), "{part}: {raced}");
    }
    let done = raced.lines().filter(|line| line.contains(" was done after "));
    assert_eq!(done.count(), 5, "{raced}");
    for cure in [&["--policy", "3"][..], &["--policy", "2", "--scheduling", "round-robin"]] {
        let cured = merge(&[cure, &["--explain"]].concat());
        assert!(cured.contains("No race: "), "{cure:?}: {cured}");
    }
    assert!(merge(&["--policy", "3", "--explain"]).contains("no race is possible"));
    let fewer = ["--jobs", "2", "--disks", "4", "--run-blocks", "50", "--explain"];
    let of = |policy| merge(&[&["--policy", policy], &fewer[..]].concat());
    assert!(of("1").contains("no job reads from a disk that another writes to"));
    assert!(of("2").contains("(the analysis assumes as many jobs as disks)"));
}

/// The expected counts are in sections 3 and 4 of the report.
#[test]
fn exchanges_are_compared_with_parallel_ios() {
    let exchange = |arguments: &[&str]| merge(&[arguments, &["--run-blocks", "24"]].concat());
    let copy = exchange(&["--kind", "copy", "--jobs", "2", "--disks", "2"]);
    assert!(copy.contains("parallel I/Os of one block a disk: 48 at least, 48 in lock-step"), "{copy}");
    let interleave = exchange(&["--kind", "interleave", "--jobs", "3", "--disks", "3"]);
    assert!(interleave.contains("96 at least, 120 in lock-step"), "{interleave}");
    assert!(!exchange(&[]).contains("parallel I/Os"));
}

#[test]
fn disks_that_take_no_time_have_no_race_ratio() {
    let free = ["--machine", "golden", "--jobs", "2", "--disks", "2", "--run-blocks", "100"];
    let stdout = merge(&[&free[..], &["--explain"]].concat());
    assert!(
        !stdout.contains("NaN") && stdout.contains("no race is possible, because these disks take no time"),
        "{stdout}"
    );
    let csv = merge(&[&free[..], &["--format", "csv"]].concat());
    assert!(csv.lines().nth(1).is_some_and(|row| row.split(',').nth(5) == Some("")), "{csv}");
    // The maximum number of blocks is in the manual's page of keys.
    let most = starfish("merge --run-blocks 4294967296".split(' '));
    assert!(fail(most, 2).contains("expected a whole number from 1 to 4294967295"));
}

#[test]
fn trials_are_repeatable_and_differ_by_seed() {
    let rows = |arguments: &[&str]| -> Vec<String> {
        let small = ["--run-blocks", "100", "--jobs", "3"];
        merge(&[&small[..], arguments].concat()).lines().skip(3).map(str::to_owned).collect()
    };
    let trials = rows(&["--trials", "3"]);
    assert_eq!(trials.len(), 3);
    assert_eq!(trials, rows(&["--trials", "3"]));
    assert_ne!(trials[0], rows(&["--seed", "2"])[0]);
    let csv = merge(&["--run-blocks", "100", "--jobs", "3", "--trials", "2", "--format", "csv"]);
    assert!(csv.starts_with("trial,elapsed_s,first_s,") && csv.lines().count() == 3, "{csv}");
    let report: serde_json::Value =
        serde_json::from_str(&merge(&["--run-blocks", "100", "--jobs", "3", "--format", "json"]))
            .expect("JSON");
    let first = report[0]["elapsed_s"].as_f64().expect("a number");
    assert!(trials[0].split_whitespace().nth(1) == Some(&format!("{first:.2}")), "{report} {trials:?}");
}

/// The trace has a track for each job, and for each disk a counter of its pending writes.
#[test]
fn a_trace_has_tracks_of_jobs_and_queues_of_disks() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("race.pftrace").display().to_string();
    merge(&["--run-blocks", "50", "--jobs", "2", "--disks", "3", "--work", "0.1 ms", "--trace", &path]);
    let trace = fs::read(&path).expect("it is written");
    let has = |text: &str| trace.windows(text.len()).any(|window| window == text.as_bytes());
    for text in ["job 0", "job 1", "waiting for input", "working", "disk 0: bytes of pending writes"] {
        assert!(has(text), "{text}");
    }
    assert!(!has("job 2"));
}

/// Options accept the usual units of time; plans do not accept minutes.
#[test]
fn the_stagger_of_jobs_can_be_in_minutes() {
    let staggered = |time: &str| {
        merge(&["--run-blocks", "50", "--jobs", "2", "--disks", "3", "--format", "csv", "--stagger", time])
    };
    assert_eq!(staggered("2m"), staggered("120 s"));
    assert_ne!(staggered("2m"), staggered("0s"));
}

#[test]
fn invalid_options_are_rejected() {
    let cases: [(&[&str], &str); 16] = [
        (&["--jobs", "6"], "6 jobs need 6 disks to write to, but there are 5"),
        (&["--policy", "1"], "without a disk to read from"),
        (&["--policy", "5"], "from 1 to 4"),
        (&["--read-blocks", "0"], "from 1 to"),
        (&["--jobs", "3", "--buffer-blocks", "100"], "may wait forever; expected at least 532"),
        (&["--disks", "6", "--set", "nodes.io=5"], "6 disks need "),
        (&["--stagger", "soon"], "a time such as 500ms"),
        (&["--work", "2000000h"], "exceed the limit of a hundred simulated years"),
        (&["--stagger", "2000000h"], "exceed the limit of a hundred simulated years"),
        (&["--kind", "copy"], "two jobs on two disks"),
        (&["--set", "disks.model=nothing"], "no disk has the name"),
        (&["--machine", "nothing"], "nothing"),
        (&["--kind", "copy", "--jobs", "2", "--disks", "2", "--policy", "2"], "--policy: it has no effect"),
        (&["--kind", "interleave", "--runs", "4"], "--runs: it has no effect"),
        (&["--kind", "interleave", "--on-demand"], "--on-demand: it has no effect"),
        (&["--kind", "interleave", "--work", "1 ms"], "--work: it has no effect"),
    ];
    for (arguments, why) in cases {
        let error = fail(starfish([&["merge"], arguments].concat()), 2);
        assert!(error.contains(why), "{arguments:?}: {error}");
    }
}

/// A study of placements produces a row for each trial, and a page. If the command is repeated, it simulates no trial
/// again.
#[test]
fn a_study_of_placements_has_a_row_for_each_trial() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (study, out) = (folder.path().join("study"), folder.path().join("out"));
    fs::create_dir_all(&study).expect("a folder");
    let plan = "name = \"m\"\ntrials = 2\nfigure = { number = 2 }\nrun_blocks = 50\n[[variant]]\nname = \"two\"\n\
                policy = 2\n[[variant]]\nname = \"three\"\npolicy = 3\n[vary]\njobs = [2, 5]\n";
    fs::write(study.join("figure-02.toml"), plan).expect("a file");
    let (study, out_name) = (study.display().to_string(), out.display().to_string());
    let run = || text(succeed(starfish(["reproduce", &study, "--out", &out_name, "--progress", "never"])));
    assert!(run().contains("8 of 8 trials simulated now"));
    assert!(run().contains("0 of 8 trials simulated now"));
    let csv = fs::read_to_string(out.join("tables.csv")).expect("it is written");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "figure,kind,policy,scheduler,jobs,disks,run_blocks,read_blocks,write_blocks,buffer_blocks,trial,seconds,\
         first_seconds,f,pending_writes_most"
    );
    assert_eq!(lines.len(), 9, "{csv}");
    assert!(lines[1].starts_with("2,merge,2,fcfs,2,5,50,12,40,,0,"), "{csv}");
    let page = fs::read_to_string(out.join("report.html")).expect("it is written");
    assert!(page.contains("Figure 2") && page.contains("class=\"dot\""), "{page}");
    // The runs of this study are shorter than those of the report, so the page does not evaluate the report's
    // statements.
    for part in ["Figure 1: two merges on five disks", "Statements of the report"] {
        assert!(!page.contains(part), "{part}");
    }
    let error = fail(starfish(["reproduce", &study, "--figures", "9"]), 2);
    assert!(error.contains("has no figure 9\n  It has 1,2,5."), "{error}");
}
