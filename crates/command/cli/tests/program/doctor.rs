//! `starfish doctor` reports all problems, and nothing that is not a problem.

use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::common::{Agent, Store, fail, finish, key_file, wait};
use serde_json::Value;

/// Writes the description of a disk with half the rate of streaming-20, and returns its path.
fn half(store: &Store) -> String {
    let text = include_str!("../../../../../machines/disks/streaming-20.toml")
        .replace("\"20 MiB/s\"", "\"10 MiB/s\"");
    assert!(text.contains("\"10 MiB/s\""));
    let path = store.path("half.toml");
    std::fs::write(&path, text).expect("room");
    path.to_str().expect("UTF-8").to_owned()
}

/// Returns the JSON report of the doctor.
fn report(store: &Store, options: &[&str]) -> Value {
    let output = finish(store.command(&[&["doctor", "--format", "json"], options].concat()));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn healthy_agents_on_one_disk_have_no_problems() {
    let store = Store::start(&[2, 1]);
    // Work of other programs is mentioned, but does not count as a problem of the agent.
    let stdout = store.run(&["doctor", "--file-size", "2MiB"]);
    let addresses: Vec<&str> = store.agents.iter().map(|agent| &*agent.address).collect();
    assert!(stdout.contains(&format!("Agents {} share one disk.", addresses.join(", "))), "{stdout}");
    assert!(stdout.contains("No problems found.") && stdout.contains(env!("CARGO_PKG_VERSION")), "{stdout}");
    assert_eq!(store.stripe_files().len(), 0);

    let report = report(&store, &["--file-size", "1MiB"]);
    let agent = &report["agents"][0];
    assert_eq!(
        (&agent["reachable"], &agent["disks"], &agent["is_here"]),
        (&true.into(), &2.into(), &true.into())
    );
    assert_eq!(agent["writes_mib_s"].as_array().map(|rounds| rounds.len() % 5), Some(0), "{agent}");
    for number in ["write_mib_s", "read_mib_s", "clock_ahead_s", "other_work"] {
        assert!(agent[number].is_number(), "{number}: {agent}");
    }
    assert!(agent["other_work"].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{agent}");
    assert_eq!(report["problems"], Value::Array(Vec::new()));
    let csv = store.run(&["doctor", "--quick", "--format", "csv"]);
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(columns, [9, 9, 9], "{csv}");
}

#[test]
fn the_doctor_uses_the_key_file_of_its_option() {
    let store = Store::start(&[1]);
    let mut command = store.command(&["doctor", "--quick", "--key"]);
    command.arg(key_file()).env_remove("STARFISH_KEY_FILE");
    let output = finish(command);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_disk_slowed_to_half_is_reported_with_its_throughput() {
    let mut store = Store::start_with(&[1, 1], &["--disk-model", "streaming-20"]);
    store.agents.push(Agent::start(vec![store.path("slow")], &["--disk-model", &half(&store)]));
    let slow = store.agents[2].address.clone();
    let report = report(&store, &["--file-size", "3MiB"]);
    let problems = report["problems"].as_array().expect("a list");
    assert_eq!(problems.len(), 1, "{report}");
    let problem = problems[0].as_str().expect("text");
    assert!(problem.starts_with(&format!("agent {slow}: its disk is slow: at most about ")), "{problem}");
    assert!(problem.contains("as fast as its slowest disk"), "{problem}");
    // Disks that share a device are reported, but a slowed disk counts as a separate device.
    assert_eq!(report["notes"].to_string().matches("share one disk").count(), 0, "{report}");
    let write = |agent: usize| report["agents"][agent]["write_mib_s"].as_f64().expect("a number");
    assert!((11.0..21.0).contains(&write(0)), "a disk of streaming-20 would reach nearly 20: {report}");
    assert!((5.0..11.0).contains(&write(2)), "{report}");
}

#[test]
fn the_doctor_names_each_problem_and_its_remedy() {
    let mut store = Store::start(&[1, 1]);
    store.agents[1].child.kill().expect("a child process of the test");
    wait(&mut store.agents[1].child);
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let stranger_address = stranger.local_addr().expect("an address").to_string();
    let greeter = thread::spawn(move || {
        let (mut stream, _) = stranger.accept().expect("a caller");
        drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    });
    let (well, gone) = (store.agents[0].address.clone(), store.agents[1].address.clone());
    let list = format!("{well},{gone},{stranger_address},no.such.host.invalid:7117");
    let output = finish(store.command(&["doctor", "--quick", "--agents", &list]));
    let report = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1), "{report}");
    for part in [
        format!("agent {gone}: "),
        format!("agent {stranger_address}: "),
        "agent no.such.host.invalid:7117: ".into(),
        "Is it running?".into(),
        "--root and --listen".into(),
    ] {
        assert!(report.contains(&part), "{part}: {report}");
    }
    assert_eq!(report.matches("no answer").count(), 3, "{report}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("3 problems found"));
    greeter.join().expect("a caller came");
}

#[test]
fn an_interrupted_doctor_leaves_no_files() {
    let store = Store::start_with(&[1], &["--disk-model", "streaming-20"]);
    let mut doctor = store.command(&["doctor"]).spawn().expect("the program");
    while store.stripe_files().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    let sent = std::process::Command::new("kill").args(["-s", "INT", &doctor.id().to_string()]).status();
    assert!(sent.expect("a kill command").success());
    assert_eq!(wait(&mut doctor).code(), Some(130));
    assert_eq!(store.stripe_files().len(), 0);
    let stderr = fail(store.command(&["doctor", "--file-size", "64KiB"]), 2);
    assert!(stderr.contains("from 1MiB"), "{stderr}");
}
