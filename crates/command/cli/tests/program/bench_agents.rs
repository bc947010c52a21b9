//! Benchmark of the user's own agents with small files, end to end.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Store, fail, starfish, succeed, wait};
use serde_json::Value;

/// Splits the options of the command into words.
fn bench(options: &str) -> Vec<&str> {
    ["bench", "--agents"].into_iter().chain(options.split_whitespace()).collect()
}

const FIGURES: [&str; 12] = [
    "requests",
    "bytes",
    "elapsed_s",
    "flush_s",
    "throughput_mib_s",
    "requests_s",
    "latency_mean_s",
    "latency_p50_s",
    "latency_p99_s",
    "latency_p999_s",
    "latency_max_s",
    "own_work_share",
];

#[test]
fn all_workloads_are_measured_and_predicted() {
    let store = Store::start(&[1, 1]);
    let options = "--file-size 2MiB --block 64KiB --record 16KiB --operation read,write,mixed --mix 40 --clients 2 \
                   --outstanding 3 --machine loopback --format json";
    let json: Value = serde_json::from_str(&store.run(&bench(options))).expect("JSON");
    for (key, value) in [
        ("disks", 2),
        ("clients", 2),
        ("outstanding", 3),
        ("file_bytes", 2 << 20),
        ("block_bytes", 64 << 10),
        ("record_bytes", 16 << 10),
        ("mix", 40),
        ("seed", 1),
    ] {
        assert_eq!(json[key], value, "{key}");
    }
    assert_eq!(json["agents"].as_array().map(Vec::len), Some(2));
    let help = store.run(&["bench", "--help"]);
    for key in
        [&json, &json["rows"][0]].into_iter().flat_map(|value| value.as_object().expect("an object").keys())
    {
        assert!(help.contains(key), "{key} is in the help");
    }
    let rows = json["rows"].as_array().expect("rows");
    let names = |row: &Value| {
        ["order", "workload", "operation"].map(|key| row[key].as_str().expect("text").to_owned())
    };
    let expected = ["sequential", "random"].into_iter().flat_map(|order| {
        [("read", "read"), ("write", "write"), ("mixed", "read"), ("mixed", "write")]
            .map(|(workload, operation)| [order, workload, operation].map(str::to_owned))
    });
    assert_eq!(rows.iter().map(names).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    for row in rows {
        for figures in [row, &row["predicted"]] {
            let number = |key: &str| figures[key].as_f64().unwrap_or_else(|| panic!("{key} of {figures}"));
            for key in FIGURES {
                assert!(number(key) >= 0.0, "{key} of {figures}");
            }
            let latencies = ["latency_p50_s", "latency_p99_s", "latency_p999_s", "latency_max_s"].map(number);
            assert!(latencies.is_sorted() && latencies[0] > 0.0, "{figures}");
            assert_eq!(number("bytes"), 16384.0 * number("requests"));
            let throughput = number("bytes") / f64::from(1 << 20) / number("elapsed_s");
            assert!((number("throughput_mib_s") / throughput - 1.0).abs() < 1e-6, "{figures}");
            assert!(number("elapsed_s") >= number("flush_s"));
        }
        // The measurement and the prediction make the same requests.
        assert_eq!(row["requests"], row["predicted"]["requests"]);
        if row["workload"] != "mixed" {
            assert_eq!(row["requests"], 128);
        }
    }
    assert_eq!(store.stripe_files().len(), 0, "no stripe is left");
}

#[test]
fn the_table_and_csv_have_the_same_rows() {
    let store = Store::start(&[1]);
    let options = "--file-size 1MiB --operation mixed --order random --duration 100ms --machine loopback";
    let table = store.run(&bench(options));
    for part in [
        "1 agent with 1 disk",
        "1 client, 4 outstanding",
        "random mix: reads",
        "  predicted",
        "99.9 %",
        "flush",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let csv = store.run(&[bench(options), vec!["--format", "csv"]].concat());
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3, "{csv}");
    assert!(
        lines[0].starts_with("order,workload,operation,requests,")
            && lines[2].starts_with("random,mixed,write,")
    );
    assert_eq!(store.stripe_files().len(), 0);
}

#[test]
fn the_benchmark_of_this_computer_has_csv_and_json() {
    let small = ["bench", "--file-size", "4MiB", "--rounds", "1"];
    let printed =
        |more: &[&str]| String::from_utf8(succeed(starfish([&small[..], more].concat()))).expect("text");
    let csv = printed(&["--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    let head = "method,receiving_threads,median_mib_s,lowest_mib_s,highest_mib_s,of_target,of_four_threads";
    assert_eq!((lines.len(), lines[0]), (5, head), "{csv}");
    assert!(lines[1].starts_with("bare stripe,1,") && lines[4].starts_with("disk-directed,1,"), "{csv}");
    let rows: Value = serde_json::from_str(&printed(&["--modelled", "--format", "json"])).expect("JSON");
    let of =
        |key: &str| rows.as_array().expect("rows").iter().map(|row| row[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("disks"), [4, 4, 1, 1]);
    assert_eq!(of("method"), ["traditional", "disk-directed", "traditional", "disk-directed"]);
    assert!(of("of_disks").iter().all(|part| part.as_f64() > Some(0.0)), "{rows}");
    assert!(printed(&[]).starts_with("the target, 100 %, is a bare stripe"));
    // Without `--agents`, these options have no effect, alone or with others.
    for option in [
        "--config=x",
        "--key=x",
        "--operation=read",
        "--order=random",
        "--mix=50",
        "--record=64KiB",
        "--clients=2",
        "--outstanding=2",
        "--requests=2",
        "--duration=1s",
        "--seed=2",
        "--machine=loopback",
        "--progress=never",
    ] {
        let stderr = fail(starfish([&small[..], &[option]].concat()), 2);
        let name = option.split('=').next().expect("a name");
        assert!(
            stderr.contains(&format!("{name}: it has no effect")) && stderr.contains("--agents"),
            "{stderr}"
        );
    }
}

#[test]
fn an_interrupted_benchmark_leaves_no_files() {
    // Slow disks give the test time to interrupt the benchmark, both while it writes the file and while it reads the
    // file.
    let store = Store::start_with(&[1, 1], &["--disk-model", "streaming-20"]);
    for (options, pause) in [("--file-size 64MiB", 0), ("--file-size 1MiB --duration 60s --clients 3", 700)] {
        let mut bench = store.command(&bench(options)).spawn().expect("the program");
        let start = Instant::now();
        while store.stripe_files().is_empty() {
            assert!(start.elapsed() < Duration::from_secs(60), "the benchmark creates no file");
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(pause));
        let sent = Command::new("kill").args(["-s", "INT", &bench.id().to_string()]).status();
        assert!(sent.expect("a kill command").success());
        assert_eq!(wait(&mut bench).code(), Some(130), "{options}");
        assert_eq!(store.stripe_files().len(), 0, "{options}");
    }
}

#[test]
fn invalid_options_are_rejected() {
    let store = Store::start(&[1, 2]);
    for (options, why) in [
        ("--clients 0", "from 1 to 256"),
        ("--outstanding 0", "from 1 to 4096"),
        ("--requests 0", "1 or more"),
        ("--duration 0s", "30s"),
        ("--mix 101 --operation mixed", "from 1 to 99"),
        ("--mix 50", "it has no effect"),
        ("--record 2MiB --file-size 1MiB", "it is larger than --file-size 1 MiB"),
        ("--record 1000 --file-size 1MiB", "The next larger multiple is --file-size 1049000 B"),
        ("--clients 5 --file-size 1MiB", "5 clients cannot share a file of 4 records"),
        ("--block 2MiB --file-size 4MiB", "the agents accept at most 1 MiB"),
        ("--machine nowhere", "no machine has the name"),
        ("--machine loopback", "different numbers of disks"),
        ("--set nodes.io=2", "--machine"),
        ("--modelled", "cannot be used with"),
        ("--rounds 2", "cannot be used with"),
    ] {
        let stderr = fail(store.command(&bench(options)), 2);
        assert!(stderr.contains(why), "{options}: {stderr}");
    }
    assert_eq!(store.stripe_files().len(), 0);
    for (arguments, why) in [
        (bench(""), "neither STARFISH_AGENTS, PDIOLCONF nor"),
        (vec!["bench", "--clients", "2"], "--agents"),
        (vec!["bench", "--file-size", "3MiB"], "a multiple of 4 MiB"),
    ] {
        let stderr = fail(starfish(arguments), 2);
        assert!(stderr.contains(why), "{stderr}");
    }
    let stderr = fail(starfish(["bench", "--agents", "127.0.0.1:1"]), 1);
    assert!(stderr.contains("127.0.0.1:1"), "{stderr}");
}
