//! Simulated experiments on the command line.

use crate::common::{fail, finish, starfish, succeed};

const HEADER: &str = "machine,method,layout,pattern,record_bytes,trials,throughput_mib_s,cv,disk_movements,events,virtual_s,wall_s";

fn simulate(arguments: &[&str]) -> String {
    let small = ["simulate", "--file-size", "1MiB", "--trials", "2"];
    String::from_utf8(succeed(starfish([&small, arguments].concat()))).expect("text")
}

#[test]
fn a_simulation_that_does_not_fit_into_memory_is_rejected() {
    let simulate = |options: &[&str]| {
        starfish(["simulate", "--machine", "golden", "--pattern", "rb"].iter().chain(options))
    };
    let cases = [
        (&["--file-size", "10TiB", "--block", "8KiB", "--phantom"][..], "--block 1MiB"),
        (&["--file-size", "1TiB", "--method", "disk-directed"], "--phantom"),
        (&["--trials", "4000000000"], "fewer --trials"),
    ];
    for (options, remedy) in cases {
        let stderr = fail(simulate(options), 1);
        assert!(stderr.contains("this needs about") && stderr.contains(remedy), "{options:?}: {stderr}");
    }
}

/// Runs more trials than a batch has.
#[test]
fn trials_beyond_one_batch_are_all_counted() {
    let rows = |trials: &str| {
        let options =
            ["simulate", "--pattern", "rb", "--file-size", "128KiB", "--format", "json", "--digest"];
        let output = succeed(starfish(options.iter().chain(&["--trials", trials, "--seed", "3"])));
        String::from_utf8(output).expect("text")
    };
    let trials =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON")[0]["trials"].clone();
    let many = rows("1100");
    assert_eq!(trials(&many), 1100);
    assert_eq!(trials(&rows("1024")), 1024);
}

#[test]
fn csv_has_fixed_columns_and_a_row_for_each_combination() {
    let csv = simulate(&["--pattern", "rb,wb,ra", "--method", "all", "--layout", "all", "--format", "csv"]);
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some(HEADER));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3 * 3 * 2);
    for row in &rows {
        assert_eq!((row.len(), row[0], row[4], row[5]), (12, "starfish-1996", "8192", "2"));
        assert!(
            row[6..].iter().all(|number| number.parse::<f64>().is_ok_and(|number| number >= 0.0)),
            "{row:?}"
        );
    }
    let throughput = |pattern, method| -> f64 {
        let row = rows.iter().find(|row| row[1] == method && row[2] == "contiguous" && row[3] == pattern);
        row.expect("a row")[6].parse().expect("a number")
    };
    // In this pattern each of the 16 compute nodes reads the whole file.
    assert!(throughput("ra", "disk-directed") > 8.0 * throughput("rb", "disk-directed"));
}

#[test]
fn equal_seeds_have_equal_digests_in_two_processes() {
    let run = |seed| {
        let args = ["--pattern", "rc", "--layout", "random", "--digest", "--format", "json", "--seed", seed];
        let json: Vec<serde_json::Value> = serde_json::from_str(&simulate(&args)).expect("JSON");
        let digests = json.iter().map(|row| row["digest"].as_str().expect("a digest").to_owned());
        digests.collect::<Vec<String>>()
    };
    let (first, second, other) = (run("7"), run("7"), run("8"));
    assert_eq!(first, second);
    assert_ne!(first, other);
}

#[test]
fn csv_keeps_its_columns_with_digests() {
    let args = ["simulate", "--file-size", "256KiB", "--trials", "1", "--format", "csv", "--digest"];
    let output = finish(starfish(args));
    assert!(output.stdout.starts_with(HEADER.as_bytes()));
    let digests = String::from_utf8(output.stderr).expect("text");
    assert_eq!(digests.lines().count(), 3);
    assert!(
        digests.lines().all(|line| line.len() == 16 && u64::from_str_radix(line, 16).is_ok()),
        "{digests}"
    );
}

#[test]
fn phantom_and_real_contents_take_the_same_time() {
    let time = |more: &[&str]| {
        let args = [&["--pattern", "rcb", "--record", "512", "--format", "csv"], more].concat();
        let csv = simulate(&args);
        // Removes the last column, the run time on this computer.
        csv.lines().map(|line| line.rsplit_once(',').expect("columns").0.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(time(&[]), time(&["--phantom"]));
}

#[test]
fn a_page_cache_and_its_window_can_be_chosen() {
    let time = |more: &[&str]| -> f64 {
        let args = [&["--pattern", "rn", "--method", "traditional", "--format", "csv"], more].concat();
        let csv = simulate(&args);
        csv.lines().nth(1).and_then(|row| row.split(',').nth(10)).expect("a row").parse().expect("a number")
    };
    let of_window = |pages| time(&["--page-cache", "2MiB", "--window", pages]);
    assert!(of_window("16") < 0.5 * of_window("none"));
    for (wrong, what, why) in [
        (&["--page-cache", "2 parsec"][..], "--page-cache", "expected a whole number of bytes such as"),
        (&["--window", "wide"], "--window", "expected a number of pages"),
        (&["--outstanding", "0"], "--outstanding", "expected a whole number from 1 to 65536, not 0"),
        (&["--method", "two-phase", "--page-cache", "1MiB"], "--page-cache", "leave --page-cache out"),
        (&["--method", "traditional", "--window", "4"], "traditional rb", "set page_cache, too"),
        (
            &["--method", "traditional", "--page-cache", "4KiB"],
            "traditional rb",
            "no room for a block of the file",
        ),
    ] {
        let stderr = fail(starfish([&["simulate"], wrong].concat()), 2);
        assert!(stderr.contains(what) && stderr.contains(why), "{stderr}");
    }
}

#[test]
fn the_machine_can_be_changed() {
    let throughput = |set: &[&str]| -> f64 {
        let csv = simulate(&[&["--method", "disk-directed", "--format", "csv"], set].concat());
        csv.lines().nth(1).and_then(|row| row.split(',').nth(6)).expect("a row").parse().expect("a number")
    };
    assert!(throughput(&["--set", "nodes.io=4"]) < 0.6 * throughput(&[]));
}

/// Returns the reported limit of each row of a run.
fn limited_by(arguments: &[&str]) -> Vec<String> {
    let all = ["simulate", "--trials", "1", "--explain", "--format", "json"];
    let output = succeed(starfish([&all, arguments].concat()));
    let json = String::from_utf8(output).expect("text");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
    rows.iter().map(|row| row["explain"]["limited_by"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn the_account_names_the_limit_of_the_run() {
    let by = |text: &str| limited_by(&text.split(' ').collect::<Vec<_>>());
    let slow = |what: &str| {
        let set = format!("{what}=200e3 B/s");
        let methods = ["--method", "traditional,disk-directed"];
        limited_by(&[&methods[..], &["--pattern", "rb", "--file-size", "1MiB", "--set", &set]].concat())
    };
    assert_eq!(by("--method traditional,disk-directed --pattern rb,wb --file-size 2MiB"), ["disks"; 4]);
    // Small records keep the processors busy, those of one I/O node after the other.
    assert_eq!(by("--method traditional --pattern rc --record 8 --file-size 2MiB"), ["processors"]);
    assert_eq!(slow("buses.bandwidth"), ["buses"; 2]);
    let links = slow("network.link_bandwidth");
    let are_links = |by: &String| by == "links of nodes" || by == "channels between routers";
    assert!(links.iter().all(are_links), "{links:?}");
    let far = "--machine cluster-switch --method traditional --pattern rc --record 64 --file-size 256KiB";
    let far: Vec<&str> = far.split(' ').chain(["--set", "network.latency=1 ms"]).collect();
    assert_eq!(limited_by(&far), ["latency"]);
}

#[test]
fn the_account_follows_the_table_and_is_not_in_csv() {
    let table = simulate(&["--pattern", "rb", "--method", "disk-directed", "--explain"]);
    let account = table.split_once("\n\n").expect("an account after the table").1;
    assert!(account.starts_with("disk-directed rb, contiguous, records of 8 KiB; trial 0:\n"), "{account}");
    for part in
        ["The disks limited this run: busy ", "waits of requests for their turn at a disk", "movements"]
    {
        assert!(account.contains(part), "{part}: {account}");
    }
    let csv = "simulate --method traditional --file-size 256KiB --trials 1 --format csv --explain";
    let output = finish(starfish(csv.split(' ')));
    assert_eq!(String::from_utf8(output.stdout).expect("text").lines().count(), 2);
    assert!(String::from_utf8(output.stderr).expect("text").contains("limited this run"));
}

#[test]
fn a_table_has_units() {
    let table = simulate(&["--pattern", "rb"]);
    assert!(table.contains(" MiB/s") && table.contains("8 KiB") && table.contains(" %"), "{table}");
}

#[test]
fn invalid_options_are_rejected() {
    let cases: [(&[&str], &str); 12] = [
        (&["--pattern", "rq"], "no pattern is called 'rq'"),
        (&["--pattern", "rb", "--record", "7"], "not a whole number of 7-byte records"),
        (&["--method", "psychic"], "traditional, two-phase, disk-directed or write-cached"),
        (&["--method", "traditional", "--presort"], "only the disk-directed method can presort"),
        (&["--machine", "cray"], "starfish-1996"),
        (&["--set", "nodes.io"], "KEY=VALUE"),
        (&["--set", "nodes.io="], "--set nodes.io=: expected a value such as 16, not nothing"),
        (&["--set", "nodes.io=0"], "--set nodes.io=0: expected from 1"),
        (
            &["--set", "network.columns=2"],
            "--set network.columns=2: expected network.columns times network.rows",
        ),
        (&["--set", "nodes.compte=8"], "did you mean compute?"),
        (&["--set", "nodes.oi=4"], "oi"),
        (&["--shape", "3x3", "--pattern", "rbb"], "make rows x columns"),
    ];
    for (arguments, expected) in cases {
        let error = fail(starfish([&["simulate"], arguments].concat()), 2);
        assert!(error.starts_with("starfish: ") && error.contains(expected), "{arguments:?}: {error}");
    }
    assert!(fail(starfish(["simulate", "--trials", "0"]), 2).contains("trials"));
    let stderr = fail(starfish(["simulate", "--seed", "-1"]), 2);
    assert!(stderr.contains("expected a whole number from 0 to 18446744073709551615"), "{stderr}");
}

/// Without `--phantom`, simulated disks hold the contents of files in memory.
#[test]
fn files_larger_than_free_memory_are_rejected() {
    let large = "simulate --machine golden --pattern rb --file-size 1PiB --trials 1";
    let stderr = fail(starfish(large.split(' ')), 1);
    assert!(stderr.contains("are free on this computer") && stderr.contains("Add --phantom"), "{stderr}");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let plan = "name = \"large\"\nmachine = \"golden\"\npatterns = [\"rb\"]\nfile_size = \"1024 TiB\"\n\
                method = \"disk-directed\"\ncontents = \"real\"\n";
    std::fs::write(folder.path().join("plan.toml"), plan).expect("a file");
    let mut command = starfish(["run", "plan.toml"]);
    command.current_dir(folder.path());
    let stderr = fail(command, 1);
    assert!(stderr.contains("are free on this computer") && stderr.contains("fewer --threads"), "{stderr}");
}

#[test]
fn a_transfer_that_takes_no_time_has_no_throughput() {
    let free = "simulate --machine golden --set network.delay=0ns --pattern rb --method disk-directed";
    let stderr = fail(starfish(free.split(' ')), 1);
    assert!(stderr.contains("takes no time to move 10485760 bytes"), "{stderr}");
}

/// The path of a disk in a machine's description is relative to that description, in a plan to the plan, and on the
/// command line to the current directory. In this test all three directories have a file of this name.
#[test]
fn a_disk_path_is_relative_to_the_file_that_names_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(path(name), text).expect("a file");
    let machine = String::from_utf8(succeed(starfish(["machines", "cluster-switch"]))).expect("text");
    let disk = |rate: &str| {
        let built_in = String::from_utf8(succeed(starfish(["machines", "streaming-20"]))).expect("text");
        built_in.replace("20 MiB/s", rate)
    };
    for name in ["m", "p", "here"] {
        std::fs::create_dir(path(name)).expect("a directory");
    }
    write("m/cluster.toml", &machine.replace("\"streaming-20\"", "\"disk.toml\""));
    for (name, rate) in [("m", "20 MiB/s"), ("p", "10 MiB/s"), ("here", "5 MiB/s")] {
        write(&format!("{name}/disk.toml"), &disk(rate));
    }
    let throughputs = |arguments: &[&str]| {
        let mut command = starfish(arguments);
        command.current_dir(path("here"));
        let csv = String::from_utf8(succeed(command)).expect("text");
        let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let header = lines.next().expect("a header");
        let column = header.iter().position(|name| name == "throughput_mib_s").expect("the column");
        lines.map(|row| row[column].parse::<f64>().expect("a number")).collect::<Vec<_>>()
    };
    let case =
        ["simulate", "--pattern", "rb", "--method", "disk-directed", "--trials", "1", "--format", "csv"];
    let simulated = |options: &[&str]| throughputs(&[&case[..], options].concat())[0];
    let expected = ["20 MiB/s", "10 MiB/s", "5 MiB/s"].map(|rate| {
        write("here/one.toml", &disk(rate));
        simulated(&["--machine", "cluster-switch", "--set", "disks.model=one.toml"])
    });
    assert!(expected[0] > 1.5 * expected[1] && expected[1] > 1.5 * expected[2], "{expected:?}");
    let machine = ["--machine", "../m/cluster.toml"];
    assert_eq!(simulated(&machine), expected[0]);
    assert_eq!(simulated(&[&machine[..], &["--set", "disks.model=disk.toml"]].concat()), expected[2]);
    let plan = "name = \"disks\"\nmachine = \"../m/cluster.toml\"\nmethod = \"disk-directed\"\npatterns = [\"rb\"]\n\
                trials = 1\n[[variant]]\nname = \"own\"\n[[variant]]\nname = \"of the plan\"\n\
                set = { \"disks.model\" = \"disk.toml\" }\n";
    write("p/plan.toml", plan);
    let of_plan = throughputs(&["run", "../p/plan.toml", "--format", "csv"]);
    assert_eq!(of_plan.len(), 2);
    let differences = of_plan.iter().zip(expected).map(|(planned, simulated)| (planned - simulated).abs());
    assert!(differences.into_iter().all(|difference| difference < 0.001), "{of_plan:?} {expected:?}");
}
