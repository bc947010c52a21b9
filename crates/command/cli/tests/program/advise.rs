//! `starfish advise placement` and `starfish advise io`: recommendations, and their confirmation by simulation.

use crate::common::{fail, starfish, succeed};
use serde_json::Value;

/// Options for small simulations, so that the tests are short.
const SHORT: [&str; 4] = ["--run-size", "800KiB", "--trials", "1"];

fn advise(arguments: &[&str]) -> String {
    let short: &[&str] = if arguments.contains(&"--run-size") { &[] } else { &SHORT };
    let all = [&["advise", "placement"], arguments, short].concat();
    String::from_utf8(succeed(starfish(all))).expect("UTF-8")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&advise(&[arguments, &["--format", "json"]].concat())).expect("JSON")
}

#[test]
fn a_race_is_predicted_simulated_and_avoided_by_the_advice() {
    // The runs have their full size, because a race takes time to develop.
    let advice = json(&["--disks", "5", "--jobs", "5", "--run-size", "4000KiB", "--trials", "1"]);
    let race = &advice["race"];
    assert_eq!((&race["is_possible"], &race["critical_ratio"]), (&true.into(), &0.25.into()));
    // (5 - 1)^2 * 12 blocks, by section 6 of the analysis.
    assert_eq!(race["threshold_blocks"], 192);
    assert!(race["margin"].as_f64().is_some_and(|margin| (2.5..3.5).contains(&margin)), "{race}");
    assert_eq!(
        (&advice["advised"]["policy"], &advice["is_confirmed"]),
        (&3.into(), &true.into()),
        "{advice}"
    );
    let of = |policy: u64, scheduling: &str| {
        let all = advice["alternatives"].as_array().expect("a list");
        let one = all.iter().find(|one| one["policy"] == policy && one["scheduling"] == scheduling);
        one.expect("it is simulated")["seconds"].as_f64().expect("a number")
    };
    assert_eq!(
        advice["alternatives"].as_array().map(Vec::len),
        Some(12),
        "policy 1 leaves nothing to read from"
    );
    let raced = of(2, "fcfs");
    for cured in [of(3, "fair-scan"), of(3, "fcfs"), of(2, "round-robin"), of(2, "bounded-read-priority")] {
        assert!(cured < 0.8 * raced, "{cured} s, and {raced} s with a race");
    }
}

#[test]
fn a_policy_that_simulation_does_not_confirm_is_not_advised() {
    let few = ["--disks", "5", "--jobs", "2", "--trials", "2", "--run-size", "800KiB"];
    let advice = json(&few);
    assert_eq!(
        (&advice["is_confirmed"], &advice["analysed"]["policy"]),
        (&false.into(), &3.into()),
        "{advice}"
    );
    assert_eq!((&advice["advised"], &advice["advised"]["policy"]), (&advice["best"], &1.into()), "{advice}");
    assert!(advice["best"]["seconds_half_width"].as_f64().is_some_and(|half| half > 0.0), "{advice}");
    let stdout = advise(&few);
    assert!(stdout.contains("Place runs by policy 1") && stdout.contains(" s +- "), "{stdout}");
    assert!(stdout.contains("The analysis alone recommends policy 3"), "{stdout}");
}

#[test]
fn a_single_job_or_long_writes_cause_no_race() {
    assert!(json(&["--disks", "5", "--jobs", "1"])["race"].is_null());
    let slow_reads = ["--disks", "5", "--jobs", "5", "--read-block", "4KiB", "--write-block", "400KiB"];
    let advice = json(&slow_reads);
    assert_eq!(advice["race"]["is_possible"], false, "{advice}");
    assert!(advise(&slow_reads).contains("No race: f is"));
}

#[test]
fn the_table_and_csv_have_every_alternative() {
    let table = advise(&["--disks", "3", "--jobs", "2"]);
    assert!(table.contains("A race is possible") && table.contains("Place runs by policy 3"), "{table}");
    assert!(table.contains("(policy 2), use `--scheduling"), "{table}");
    assert!(table.contains("(policy 2), and disks serve requests in order of arrival"), "{table}");
    assert!(table.contains("(the analysis assumes as many jobs as disks)"), "there are fewer: {table}");
    assert!(table.contains("`fair-scan`, the default of agents"), "{table}");
    let help = String::from_utf8(succeed(starfish(["agent", "--help"]))).expect("text");
    assert!(help.contains("[default: fair-scan]"), "the same default: {help}");
    let csv = advise(&["--disks", "2", "--jobs", "2", "--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines.iter().all(|line| line.split(',').count() == 9), "{csv}");
    assert!(lines.len() == 13 && lines.iter().filter(|line| line.ends_with(",true")).count() == 1, "{csv}");
    let alone = advise(&["--disks", "1", "--jobs", "1", "--format", "csv"]);
    assert_eq!(alone.lines().count(), 5, "a single disk leaves policy 4: {alone}");
}

/// The program does not know the number of jobs when the first one starts.
#[test]
fn the_analysis_has_staggered_jobs_read_from_all_disks() {
    let few = ["--disks", "3", "--jobs", "2", "--trials", "1", "--run-size", "800KiB", "--stagger", "200ms"];
    assert_eq!(json(&few)["analysed"]["policy"], 4);
}

#[test]
fn invalid_options_are_rejected() {
    for (arguments, why) in [
        ("--disks 3 --jobs 4", "each job writes to a separate disk"),
        ("--disks 3 --jobs 2 --read-block 0", "--read-block"),
        ("--disks 3 --jobs 2 --block 0", "at least one byte"),
        ("--disks 3 --jobs 2 --read-block 6KiB", "see --block"),
        ("--disks 3 --jobs 2 --write-block 8MiB", "at most 4 MiB"),
        ("--disks 3 --jobs 2 --run-size 1TiB", "the limit is 10000000"),
        ("--disks 0 --jobs 1", "--disks"),
        ("--disks 3 --jobs 2 --machine nowhere", "nowhere"),
        ("--disks 3 --jobs 2 --machine golden", "its disks take no time, so no race is possible"),
    ] {
        let words = ["advise", "placement"].into_iter().chain(arguments.split(' '));
        let stderr = fail(starfish(words), 2);
        assert!(stderr.contains(why), "{arguments}: {stderr}");
    }
}

/// Returns a directory with the request logs of two processes, which write small records of a distributed array
/// independently and read them collectively.
fn recorded() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for process in 0..2 {
        let text = format!(
            "# starfish requests 2\n0 {process} - begin 2\n0 {process} out open a {process} 2 65536 4\n\
             1 {process} out write-all a 0 {at}:(512+512)1048576 0.5 independent\n\
             2 {process} out sync-all a 1 0.25\n3 {process} out read-all a 2 {at}:(512+512)262144 0.1 disk-directed\n\
             4 {process} out write {at} 300\n5 {process} out wri",
            at = process * 512
        );
        std::fs::write(directory.path().join(format!("run.{process}")), text).expect("a file");
    }
    directory
}

fn in_directory(directory: &tempfile::TempDir, arguments: &str) -> String {
    let mut command = starfish(arguments.split_whitespace());
    command.current_dir(directory.path());
    String::from_utf8(succeed(command)).expect("UTF-8")
}

const SMALL_MACHINE: &str = "--machine starfish-1996 --set nodes.io=4 --trials 2 --progress never";

#[test]
fn the_gain_of_a_recorded_program_is_reported_with_its_hint() {
    let directory = recorded();
    let advice = in_directory(&directory, &format!("advise io run.0 run.1 {SMALL_MACHINE} --format json"));
    let advice: Value = serde_json::from_str(&advice).expect("JSON");
    assert_eq!((&advice["nodes"], &advice["recorded_s"]), (&2.into(), &0.85.into()));
    let all = advice["alternatives"].as_array().expect("a list");
    let first = &all[0];
    assert_eq!(
        (&first["is_recorded"], &first["method"], &first["io_nodes"]),
        (&true.into(), &"traditional".into(), &4.into())
    );
    assert_eq!(first["stripe_unit_bytes"], 65536);
    assert_eq!(all.iter().filter(|one| one["is_recorded"] == true).count(), 1);
    for change in ["method", "stripe unit", "I/O nodes", "order at disks"] {
        assert!(all.iter().any(|one| one["change"] == change), "{change}: {advice}");
    }
    let of = |by: &str| all.iter().find(|one| one["by"] == by).unwrap_or_else(|| panic!("{by}: {advice}"));
    for by in [
        "starfish_method=disk-directed",
        "starfish_method=write-cached",
        "striping_unit=1048576",
        "striping_factor=2",
        "8 agents",
    ] {
        assert!(of(by)["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{by}");
    }
    assert_eq!(of("starfish_method=write-cached")["is_there"], true, "{advice}");
    // In the first alternative, half as many disks take longer.
    assert!(of("striping_factor=2")["gain"].as_f64().is_some_and(|gain| gain < -0.2), "{advice}");
    assert_eq!(
        (&of("8 agents")["is_there"], &of("striping_factor=2")["is_there"]),
        (&false.into(), &true.into())
    );
    let gain = |one: &Value, key: &str| one[key].as_f64().expect("a number");
    let advised = advice["advised"].as_u64().map(|index| &all[index as usize]).expect("something is better");
    assert!(gain(advised, "gain") > gain(advised, "gain_half_width").max(0.01), "{advised}");
    let mut there = all.iter().filter(|one| one["is_there"] == true);
    assert!(there.all(|one| gain(one, "gain") <= gain(advised, "gain")), "{advice}");
    assert!(advised["by"].as_str().is_some_and(|by| by.starts_with("starfish_method=")), "{advised}");
}

#[test]
fn the_table_and_csv_of_a_program_have_the_same_alternatives() {
    let directory = recorded();
    let table = in_directory(&directory, &format!("advise io run.0 run.1 {SMALL_MACHINE}"));
    for part in [
        "run.0 and 1 more, on STARFISH 3.0 (1996): 2 nodes, 6 requests",
        "As recorded its calls took 850 ms; simulated",
        "So STARFISH 3.0 (1996) is not the machine of the recording",
        "as recorded",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = in_directory(&directory, &format!("advise io run.0 run.1 {SMALL_MACHINE} --format csv"));
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines.iter().all(|line| line.split(',').count() == 13), "{csv}");
    assert_eq!(
        lines.iter().filter(|line| line.ends_with(",true")).count(),
        1,
        "the advised alternative: {csv}"
    );
    // The table has a header, and one row for each row of the CSV.
    assert_eq!(table.lines().skip_while(|line| !line.starts_with("change")).count(), lines.len());
    // A request log that no program has recorded. The machine is as large as each alternative needs.
    let drawn = in_directory(&directory, "request-log generate --nodes 4 --jobs 1 --files 1 --records 200");
    std::fs::write(directory.path().join("drawn.log"), drawn).expect("a file");
    let whole = "advise io drawn.log --machine starfish-1996 --trials 2 --format csv --progress never";
    let csv = in_directory(&directory, whole);
    assert!(csv.contains("MPI-IO with starfish_method=disk-directed"), "{csv}");
    let show = in_directory(&directory, "request-log show run.0 run.1");
    assert!(show.contains("collective calls") && show.contains("pieces of calls"), "{show}");
}

#[test]
fn a_program_that_cannot_be_simulated_is_rejected() {
    let directory = recorded();
    let refused = |arguments: &str, code: i32| {
        let mut command = starfish(arguments.split_whitespace());
        command.current_dir(directory.path());
        fail(command, code)
    };
    for (arguments, code, why) in [
        ("advise io nothing --machine loopback", 1, "nothing"),
        ("advise io run.0", 2, "--machine"),
        ("advise io run.0 run.1 --machine nowhere", 2, "nowhere"),
        ("advise io run.0 run.1 --machine loopback --trials 1", 2, "--trials"),
        ("advise io run.0 run.0 --machine loopback", 1, "rank 0 of opening a already belongs to node 0"),
    ] {
        let stderr = refused(arguments, code);
        assert!(stderr.contains(why), "{arguments}: {stderr}");
    }
    let mut alone = starfish("replay run.0 --method traditional --progress never".split_whitespace());
    alone.current_dir(directory.path());
    let done = alone.output().expect("the program");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && stderr.contains("3 calls are omitted"), "{stderr}");
}

/// With `--think`, the pauses between calls count in both of the compared times.
#[test]
fn think_time_counts_in_the_recorded_and_the_simulated_time() {
    let directory = recorded();
    let command = format!("advise io run.0 run.1 {SMALL_MACHINE} --think");
    let advice = in_directory(&directory, &format!("{command} --format json"));
    let advice: Value = serde_json::from_str(&advice).expect("JSON");
    let seconds = |key: &str| advice[key].as_f64().expect("a number");
    // From the start of the first call in the log, at 1 s, to the end of the last call.
    assert_eq!(seconds("recorded_s"), 3.0, "{advice}");
    assert!((2.2..4.0).contains(&seconds("simulated_s")), "{advice}");
    let table = in_directory(&directory, &command);
    assert!(table.contains("As recorded its calls and the time between them took "), "{table}");
}

#[test]
fn alternatives_that_do_not_fit_the_machine_are_not_tried() {
    let directory = tempfile::tempdir().expect("a directory");
    // Four disks of 1.3 GB have room for the file, two have not.
    let log = "# starfish requests 1\n0 0 out write 0 65536\n1 0 out write 4000000000 65536\n";
    std::fs::write(directory.path().join("large.log"), log).expect("a file");
    let csv = in_directory(&directory, &format!("advise io large.log {SMALL_MACHINE} --format csv"));
    let tried = |nodes: &str| csv.lines().any(|line| line.starts_with("I/O nodes,") && line.contains(nodes));
    assert!(tried(",8,") && !tried(",2,"), "{csv}");
    let small = SMALL_MACHINE.replace("nodes.io=4", "nodes.io=2");
    let mut command = starfish(format!("advise io large.log {small}").split_whitespace());
    command.current_dir(directory.path());
    let stderr = fail(command, 1);
    assert!(stderr.contains("the recorded run") && stderr.contains("make the file smaller"), "{stderr}");
}
