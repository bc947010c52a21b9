//! `starfish run`, end to end: the files with results, resuming after an interruption, and rejection before any trial
//! runs.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{fail, finish, starfish, succeed, wait};
use tempfile::TempDir;

const PLAN: &str = "name = \"two methods\"\npatterns = [\"rb\", \"wcc\"]\nfile_size = \"1 MiB\"\ntrials = 3\nseed = 5\n\
    layout = \"random\"\n[[variant]]\nname = \"tpfs\"\nmethod = \"traditional\"\n\
    [[variant]]\nname = \"ddio\"\nmethod = \"disk-directed\"\n";

/// Creates a folder with the file `plan.toml`.
fn folder(plan: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory");
    fs::write(folder.path().join("plan.toml"), plan).expect("a file");
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = starfish(["run"].iter().chain(arguments));
    command.current_dir(folder);
    command
}

/// Runs a command, which must succeed, and returns its standard output and standard error.
fn printed(command: Command) -> (String, String) {
    let output = finish(command);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{stderr}");
    (stdout, stderr)
}

#[test]
fn foreign_files_are_not_replaced_by_results() {
    let folder = folder(PLAN);
    for (name, command) in [
        ("results.csv", run(folder.path(), &["plan.toml", "--trials", "1", "--out", "mine"])),
        ("trials.parquet", run(folder.path(), &["plan.toml", "--trials", "1", "--out", "mine"])),
        ("report.html", {
            let mut command = starfish(["reproduce", "starfish-3.0", "--tables", "3", "--out", "mine"]);
            command.current_dir(folder.path());
            command
        }),
    ] {
        let mine = folder.path().join("mine");
        fs::create_dir(&mine).expect("room");
        fs::write(mine.join(name), "of others").expect("room");
        let stderr = fail(command, 2);
        assert!(
            stderr.contains(&format!("mine/{name}: it would be overwritten")) && stderr.contains("--out"),
            "{stderr}"
        );
        assert_eq!(fs::read_to_string(mine.join(name)).expect("text"), "of others");
        assert_eq!(fs::read_dir(&mine).expect("it exists").count(), 1, "nothing is made");
        fs::remove_dir_all(&mine).expect("it belongs to the test");
    }
}

#[test]
fn a_plan_becomes_tables_and_a_second_run_simulates_nothing() {
    let folder = folder(PLAN);
    let (table, stderr) = printed(run(folder.path(), &["plan.toml"]));
    assert_eq!(table.lines().count(), 1 + 4, "{table}");
    assert!(table.lines().nth(1).expect("a row").starts_with("two methods  tpfs     rb"), "{table}");
    assert!(stderr.contains("12 trials in results/plan: 12 run now, 0 in the journal"), "{stderr}");
    let results = folder.path().join("results/plan");
    let read = |name: &str| fs::read_to_string(results.join(name)).expect("a file");
    assert_eq!((read("results.csv").lines().count(), read("trials.csv").lines().count()), (5, 13));
    assert_eq!(read("journal.jsonl").lines().count(), 12);
    for name in ["results.parquet", "trials.parquet"] {
        assert!(fs::read(results.join(name)).expect("a file").starts_with(b"PAR1"));
    }
    let (csv, stderr) = printed(run(folder.path(), &["plan.toml", "--format", "csv"]));
    assert!(stderr.contains("0 run now, 12 in the journal"), "{stderr}");
    assert_eq!(csv, read("results.csv"));
    let (json, stderr) =
        printed(run(folder.path(), &["plan.toml", "--format", "json", "--fresh", "--threads", "1"]));
    assert!(stderr.contains("12 run now, 0 in the journal"), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let row = &json[3];
    assert_eq!(
        (&row["variant"], &row["pattern"], &row["trials"]),
        (&"ddio".into(), &"wcc".into(), &3.into())
    );
    for column in ["throughput_mib_s", "ci95_mib_s", "disk_utilisation", "io_processor_utilisation_max"] {
        assert!(row[column].as_f64() > Some(0.0), "{column}: {row}");
    }
    assert_eq!(csv, read("results.csv"));
    let (_, stderr) = printed(run(folder.path(), &["plan.toml", "--trials", "4"]));
    assert!(stderr.contains("16 trials in results/plan: 4 run now, 12 in the journal"), "{stderr}");
}

#[test]
fn a_killed_run_is_resumed_with_equal_results() {
    let folder = folder(&PLAN.replace("1 MiB", "10 MiB").replace("trials = 3", "trials = 6"));
    let journal = folder.path().join("killed/journal.jsonl");
    let lines = || fs::read(&journal).map_or(0, |text| text.iter().filter(|&&byte| byte == b'\n').count());
    let mut child =
        run(folder.path(), &["plan.toml", "--out", "killed", "--threads", "1"]).spawn().expect("it starts");
    let start = Instant::now();
    while lines() < 3 {
        assert!(start.elapsed() < Duration::from_secs(60), "no trial is done");
        thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("a child process of the test");
    wait(&mut child);
    let done = lines();
    assert!((3..24).contains(&done), "{done} trials were done");
    assert!(!folder.path().join("killed/results.csv").exists());
    let (resumed, stderr) = printed(run(folder.path(), &["plan.toml", "--out", "killed", "--format", "csv"]));
    assert!(stderr.contains(&format!("{} run now, {done} in the journal", 24 - done)), "{stderr}");
    let (whole, _) = printed(run(folder.path(), &["plan.toml", "--out", "whole", "--format", "csv"]));
    assert_eq!(resumed, whole);
}

#[test]
fn an_interrupted_run_reports_how_to_resume() {
    let folder = folder(&PLAN.replace("1 MiB", "10 MiB").replace("trials = 3", "trials = 40"));
    let mut command = run(folder.path(), &["plan.toml"]);
    let journal = folder.path().join("results/plan/journal.jsonl");
    let interrupt = thread::spawn(move || {
        let start = Instant::now();
        while fs::metadata(&journal).map_or(0, |file| file.len()) == 0 {
            assert!(start.elapsed() < Duration::from_secs(60), "no trial is done");
            thread::sleep(Duration::from_millis(2));
        }
    });
    let child = command.spawn().expect("it starts");
    interrupt.join().expect("a trial is done");
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(sent.expect("a kill command").success());
    let output = child.wait_with_output().expect("a child process of the test");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("the same command continues from there"), "{stderr}");
}

#[test]
fn one_trial_run_alone_has_the_same_result() {
    let folder = folder(PLAN);
    printed(run(folder.path(), &["plan.toml"]));
    let trials = fs::read_to_string(folder.path().join("results/plan/trials.csv")).expect("a file");
    let (alone, _) =
        printed(run(folder.path(), &["plan.toml", "--only", "ddio/wcc/8192/2", "--format", "csv"]));
    let alone: Vec<&str> = alone.lines().collect();
    assert_eq!(alone.len(), 2);
    assert!(trials.lines().any(|line| line == alone[1]), "{alone:?}");
    for record in ["8KiB", "8 KiB", "8k"] {
        let only = format!("ddio/wcc/{record}/2");
        let (same, _) = printed(run(folder.path(), &["plan.toml", "--only", &only, "--format", "csv"]));
        assert_eq!(same.lines().collect::<Vec<_>>(), alone);
    }
    let (table, _) = printed(run(folder.path(), &["plan.toml", "--only", "*/rb"]));
    assert_eq!(table.lines().count(), 1 + 2 * 3, "{table}");
    for (only, expected) in [
        ("x/rb", "--only tpfs/rb/8192/0"),
        ("tpfs/rb/8 bit", "such as 8192 or 8KiB"),
        ("a/b/c/d/e", "such as"),
    ] {
        let stderr = fail(run(folder.path(), &["plan.toml", "--only", only]), 2);
        assert!(stderr.contains(expected), "{stderr}");
    }
}

/// A varied machine may be given as a path, which is then part of a cell's name.
#[test]
fn a_cell_with_a_path_in_its_name_can_be_run_alone() {
    let folder = folder(&format!("{PLAN}[vary]\nmachine = [\"m/a.toml\", \"golden\"]\n"));
    fs::create_dir(folder.path().join("m")).expect("a folder");
    let machine = include_str!("../../../../../machines/golden.toml");
    fs::write(folder.path().join("m/a.toml"), machine.replace("2 ms", "3 ms")).expect("a file");
    for (only, trials) in
        [("ddio,machine=m/a.toml/wcc/8192/2", 1), ("ddio,machine=m/a.toml", 6), ("ddio", 12)]
    {
        let (table, _) = printed(run(folder.path(), &["plan.toml", "--only", only, "--format", "csv"]));
        assert_eq!(table.lines().count(), 1 + trials, "{only}: {table}");
    }
    let stderr = fail(run(folder.path(), &["plan.toml", "--only", "x"]), 2);
    assert!(stderr.contains("--only tpfs,machine=m/a.toml/rb/8192/0"), "{stderr}");
}

#[test]
fn plans_run_together_share_their_trials() {
    let folder = folder(PLAN);
    let twin = PLAN.replace("two methods", "again").replace("[\"rb\", \"wcc\"]", "[\"rb\", \"rc\"]");
    fs::write(folder.path().join("twin.toml"), twin).expect("a file");
    let (csv, stderr) =
        printed(run(folder.path(), &["plan.toml", "twin.toml", "--out", "both", "--format", "csv"]));
    assert_eq!(csv.lines().count(), 1 + 8);
    assert!(stderr.contains("18 trials in both"), "{stderr}");
    let name = folder.path().file_name().expect("a name").to_string_lossy().into_owned();
    let (_, stderr) = printed(run(folder.path(), &["plan.toml", "twin.toml", "--trials", "1"]));
    assert!(stderr.contains(&format!("6 trials in results/{name}")), "{stderr}");
    let stderr = fail(run(folder.path(), &["plan.toml", "plan.toml"]), 2);
    assert!(stderr.contains("both have the name"), "{stderr}");
}

#[test]
fn a_page_has_charts_and_explains_its_names() {
    let swept = PLAN.replace("trials = 3", "trials = 2\ntitle = \"I/O nodes\"")
        + "[vary]\nset = { \"nodes.io\" = [4, 8] }\n";
    let folder = folder(&swept);
    printed(run(folder.path(), &["plan.toml", "--html", "page.html"]));
    let page = fs::read_to_string(folder.path().join("page.html")).expect("a page");
    for part in [
        "Figure 1: two methods: I/O nodes",
        "<polyline",
        ">rb tpfs</text>",
        ">wcc ddio</text>",
        "read: records are distributed over compute nodes in blocks",
        "disk-directed</td>",
        "starfish run plan.toml",
        ">ddio,nodes.io=8</td>",
        "paired t-test, 95 %",
        "<td>yes</td>",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    // If there are too many lines for one chart, there is one chart for each pattern, even if no report uses the
    // pattern.
    let many = swept.replace("\"wcc\"]", "\"wnc\"]\nrecords = [64, 1024, 8192]");
    fs::write(folder.path().join("plan.toml"), many).expect("a file");
    printed(run(folder.path(), &["plan.toml", "--trials", "1", "--html", "page.html"]));
    let page = fs::read_to_string(folder.path().join("page.html")).expect("a page");
    for part in [
        "Figure 1: two methods: I/O nodes: rb",
        "Figure 2: two methods: I/O nodes: wnc",
        ">wnc</td><td class=\"text\">write: ",
        "Means of up to 1 trial; seed ",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    // Bars are drawn if no varied parameter is a number.
    fs::write(folder.path().join("plan.toml"), PLAN).expect("a file");
    printed(run(folder.path(), &["plan.toml", "--trials", "1", "--html", "page.html"]));
    let page = fs::read_to_string(folder.path().join("page.html")).expect("a page");
    assert_eq!(page.matches("<rect").count(), 4, "{page}");
    assert!(page.contains("<th class=\"text\" scope=\"row\">wcc ddio</th>"), "{page}");
}

#[test]
fn an_invalid_plan_is_rejected_before_any_trial() {
    let folder = folder(&PLAN.replace("trials = 3", "trials = 0"));
    let stderr = fail(run(folder.path(), &["plan.toml"]), 2);
    assert!(stderr.contains("plan.toml:4: expected a whole number from 1 to 1000, not 0"), "{stderr}");
    assert!(stderr.contains("Nothing was run."), "{stderr}");
    assert!(!folder.path().join("results").exists());
    let stderr = fail(run(folder.path(), &["absent.toml"]), 2);
    assert!(stderr.contains("absent.toml"), "{stderr}");
    let help = String::from_utf8(succeed(starfish(["run", "--help"]))).expect("text");
    assert!(help.contains("[[variant]]") && help.contains("starfish run methods.toml"), "{help}");
}

const RACES: &str = "name = \"races\"\ntitle = \"Merges\"\ntrials = 3\nrun_blocks = 50\nruns = 8\n\
    [[variant]]\nname = \"a race\"\npolicy = 2\n[[variant]]\nname = \"a cure\"\npolicy = 3\n[vary]\njobs = [2, 5]\n";

#[test]
fn a_plan_can_be_of_jobs_that_share_disks() {
    let folder = folder(RACES);
    let (table, stderr) = printed(run(folder.path(), &["plan.toml", "--html", "page.html"]));
    assert_eq!(table.lines().count(), 1 + 4, "{table}");
    assert!(table.lines().nth(1).expect("a row").starts_with("races  a race,jobs=2 "), "{table}");
    assert!(stderr.contains("12 trials in results/plan: 12 run now, 0 in the journal"), "{stderr}");
    let results = folder.path().join("results/plan");
    let read = |name: &str| fs::read_to_string(results.join(name)).expect("a file");
    assert_eq!((read("results.csv").lines().count(), read("trials.csv").lines().count()), (5, 13));
    let columns = "plan,variant,varied,machine,set,kind,policy,jobs,disks,runs,run_blocks,block_bytes,read_blocks,\
                   write_blocks,scheduling,buffer_blocks,on_demand,work,stagger,contents,compute_nodes,io_nodes,trials,\
                   seed,elapsed_s,cv,ci95_s,first_s,read_ms,write_ms,ratio,pending_writes_most,pending_blocks_most,\
                   disk_movements,disk_utilisation,";
    assert!(read("results.csv").starts_with(columns), "{}", read("results.csv"));
    let (json, stderr) = printed(run(folder.path(), &["plan.toml", "--format", "json", "--threads", "1"]));
    assert!(stderr.contains("0 run now, 12 in the journal"), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json[3]["policy"], &json[3]["jobs"]), (&3.into(), &5.into()));
    let (fresh, _) = printed(run(folder.path(), &["plan.toml", "--fresh", "--format", "csv"]));
    assert_eq!(fresh, read("results.csv"));
    let page = fs::read_to_string(folder.path().join("page.html")).expect("a page");
    for part in [
        "Figure 1: races: Merges",
        "Time until all jobs are done in s against jobs",
        "<polyline",
        ">a cure</text>",
        "policy 3</td>",
        "First come, first served</td>",
        "starfish run plan.toml",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn trials_of_jobs_that_share_disks_can_be_run_alone() {
    let folder = folder(RACES);
    printed(run(folder.path(), &["plan.toml"]));
    let trials = fs::read_to_string(folder.path().join("results/plan/trials.csv")).expect("a file");
    let (alone, _) =
        printed(run(folder.path(), &["plan.toml", "--only", "a cure,jobs=5/2", "--format", "csv"]));
    let alone: Vec<&str> = alone.lines().collect();
    assert_eq!(alone.len(), 2);
    assert!(trials.lines().any(|line| line == alone[1]), "{alone:?}");
    let stderr = fail(run(folder.path(), &["plan.toml", "--only", "a cure/rb/8192/2"]), 2);
    assert!(stderr.contains("expected VARIANT/TRIAL"), "{stderr}");
    let stderr = fail(run(folder.path(), &["plan.toml", "--only", "x"]), 2);
    assert!(stderr.contains("--only a race,jobs=2/0"), "{stderr}");
}

#[test]
fn plans_of_different_kinds_are_not_run_together() {
    let folder = folder(RACES);
    fs::write(folder.path().join("methods.toml"), PLAN).expect("a file");
    let stderr = fail(run(folder.path(), &["plan.toml", "methods.toml", "--out", "both"]), 2);
    assert!(
        stderr.contains("methods.toml is a plan of access methods, and plan.toml is a plan of jobs"),
        "{stderr}"
    );
    assert!(stderr.contains("run them separately") && stderr.contains("Nothing was run."), "{stderr}");
    assert!(!folder.path().join("both").exists());
    let twin = RACES.replace("\"races\"", "\"copies\"").replace("policy = 2", "kind = \"interleave\"");
    fs::write(folder.path().join("twin.toml"), twin.replace("jobs = [2, 5]", "disks = [5]")).expect("a file");
    let (csv, stderr) =
        printed(run(folder.path(), &["plan.toml", "twin.toml", "--out", "both", "--format", "csv"]));
    assert_eq!(csv.lines().count(), 1 + 4 + 2, "{csv}");
    // Both plans contain the variant `a cure` with five jobs.
    assert!(stderr.contains("15 trials in both"), "{stderr}");
}
