//! Request logs on the command line: generated, shown, converted, and replayed on a simulated machine and on agents.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::common::{Store, fail, finish, starfish, succeed};
use serde_json::Value;

/// Log of three files, which are read, written, or both, by nodes that wait for each other.
const LOG: &str = "# starfish requests 1\n\
    0 1 out write 0 600\n\
    0.001 2 out write 600 70000\n\
    0.002 1 in read 100 5000 0.001\n\
    0.003 2 both write 10 20\n\
    0.004 2 both read 0 40\n\
    0.005 1 - sync\n\
    0.006 2 - sync\n\
    0.007 1 both read 0 400000\n\
    0.008 1 out write 300 10\n";

const CSV: &str = "rank,start_us,path,op,offset,length,note\n\
    1,0,out,write,0,600,\n2,1000,out,write,600,70000,x\n1,2000,in,read,100,5000,\n2,3000,both,write,10,20,\n\
    2,4000,both,read,0,40,\n1,5000,,sync,,,\n2,6000,,sync,,,\n1,7000,both,read,0,400000,\n1,8000,out,write,300,10,\n";

/// Creates a directory that contains files with these names and contents.
fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    files.iter().for_each(|(name, text)| std::fs::write(directory.path().join(name), text).expect("a file"));
    directory
}

fn run(directory: &tempfile::TempDir, arguments: &str) -> String {
    let mut command = starfish(arguments.split_whitespace());
    command.current_dir(directory.path());
    String::from_utf8(succeed(command)).expect("text")
}

fn refused(directory: &tempfile::TempDir, arguments: &str, code: i32) -> String {
    let mut command = starfish(arguments.split_whitespace());
    command.current_dir(directory.path());
    fail(command, code)
}

#[test]
fn a_log_replays_equally_in_any_format() {
    let directory = files(&[("a.log", LOG), ("a.csv", CSV)]);
    let replay = |log: &str| run(&directory, &format!("replay {log} --format csv --digest --progress never"));
    let (one, other) = (replay("a.log"), replay("a.csv"));
    assert_eq!(one, other);
    let converted = run(&directory, "request-log convert a.csv");
    std::fs::write(directory.path().join("b.log"), converted).expect("a file");
    assert_eq!(replay("b.log"), one);
    let rows: Vec<Vec<&str>> = one.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..5], ["method", "operation", "requests", "bytes", "elapsed_s"]);
    let names: Vec<[&str; 4]> = rows[1..].iter().map(|row| [row[0], row[1], row[2], row[3]]).collect();
    let of = |method| [[method, "read", "3", "405040"], [method, "write", "4", "70630"]];
    assert_eq!(names, [of("traditional"), of("two-phase"), of("disk-directed"), of("write-cached")].concat());
    assert!(rows.iter().all(|row| row.len() == 14), "{rows:?}");
}

#[test]
fn a_replay_is_reported_as_a_table_and_as_json() {
    let directory = files(&[("a.log", LOG)]);
    let table = run(&directory, "replay a.log --think times --explain --method traditional,write-cached");
    for part in [
        "a.log, on starfish-1996: 2 nodes, 3 files,",
        "7 requests of 67953 bytes",
        "traditional",
        "by directory",
        "disks",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let json = run(&directory, "replay a.log --method write-cached --format json --phantom");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json["nodes"], &json["requests"], &json["rows"][1]["flushes"]),
        (&2.into(), &7.into(), &2.into())
    );
    assert_eq!(json["rows"][0]["flushes"], Value::Null);
    let shown = run(&directory, "request-log show a.log");
    for part in ["nodes", "3, 395.5 KiB", "4, 69.0 KiB", "consecutive", "0.008000 s"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// The jobs of the merged logs run at the same time.
#[test]
fn logs_of_several_jobs_are_merged() {
    let directory = files(&[("b.log", "# starfish requests 1\n7 0 x write 0 100\n")]);
    let convert = run(&directory, "request-log convert b.log");
    std::fs::write(directory.path().join("c.log"), convert).expect("a file");
    let merged = run(&directory, "request-log merge b.log c.log");
    assert!(merged.contains("0 0 job0/x write 0 100\n0 1 job1/x write 0 100\n"), "{merged}");
    let mut waits = starfish(["request-log", "merge", "b.log", "waits.log"]);
    std::fs::write(directory.path().join("waits.log"), "# starfish requests 1\n0 0 - sync\n")
        .expect("a file");
    waits.current_dir(directory.path());
    let stderr = fail(waits, 1);
    assert!(stderr.contains("waits.log: it has syncs or collective calls"), "{stderr}");
}

/// A recorded process may have been killed while it wrote a line.
#[test]
fn every_reader_of_a_log_reports_an_unfinished_line() {
    let torn = "# starfish requests 2\n0 0 x write 0 100\n1 0 x write 100 1";
    let whole = format!("{torn}\n");
    let directory = files(&[("torn.log", torn), ("whole.log", &whole)]);
    for (log, is_reported) in [("torn.log", true), ("whole.log", false)] {
        for command in [
            "request-log show",
            "request-log convert",
            "replay --progress never",
            "advise io --machine starfish-1996",
        ] {
            let mut command = starfish(command.split_whitespace().chain([log]));
            command.current_dir(directory.path());
            let output = finish(command);
            let stderr = String::from_utf8(output.stderr).expect("text");
            assert!(output.status.success(), "{stderr}");
            let reports_line = stderr.contains(&format!("starfish: {log}: 1 unfinished line is omitted"));
            assert_eq!(reports_line, is_reported, "{stderr}");
        }
    }
}

/// Darshan may have recorded only a part for lack of memory, or a log may have been truncated later.
#[test]
fn every_reader_of_a_log_reports_an_incomplete_recording() {
    let marked =
        "# starfish requests 1\n# incomplete: 1 of 1000000 requests are recorded\n0 0 x write 0 100\n";
    let cut = "# darshan log version: 3.41\n# DXT, file_id: 1, file_name: /x\n# DXT, write_count: 3, read_count: 0\n \
               X_POSIX 0 write 0 0 100 0.0029 0.0032\n";
    let directory = files(&[("marked.log", marked), ("cut.txt", cut)]);
    for (log, part) in [
        ("marked.log", "1 of 1000000 requests are recorded"),
        ("cut.txt", "it has 1 of the 3 requests that it announces"),
    ] {
        for command in
            ["request-log show", "replay --progress never", "advise io --machine loopback --trials 2"]
        {
            let mut command = starfish(command.split_whitespace().chain([log]));
            command.current_dir(directory.path());
            let output = finish(command);
            let stderr = String::from_utf8(output.stderr).expect("text");
            assert!(output.status.success(), "{stderr}");
            assert!(stderr.contains(&format!("starfish: {log}: incomplete: {part}")), "{stderr}");
        }
    }
}

#[test]
fn tables_without_titles_and_other_units_are_read() {
    let table =
        "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,0,Write,0,4096,1500\n";
    let directory = files(&[("usr_0.csv", table)]);
    let titles = "--titles time:100ns,host,file,type,offset,size,took:100ns";
    let shown = run(&directory, &format!("request-log show usr_0.csv {titles}"));
    assert!(shown.contains("1.332203 s"), "{shown}");
    let named =
        "--titles Timestamp,host,disk,type,offset,size --column time=Timestamp:100ns --column file=disk";
    let converted = run(&directory, &format!("request-log convert usr_0.csv {named}"));
    assert!(converted.contains("12816637201.6382155 0 0 write 0 4096"), "{converted}");
    for (arguments, why) in [
        ("", "line 1: there is no column for time"),
        ("", "give all titles. Use the options --column and --titles."),
        (
            "--titles time,host,file,type,offset,size",
            "usr_0.csv: line 1, time: \"128166372003061629\" is longer than centuries",
        ),
        ("--titles time:1601", "line 1: time has no unit \"1601\": expected s, ms, us, 100ns, ns"),
    ] {
        let stderr = refused(&directory, &format!("request-log show usr_0.csv {arguments}"), 1);
        assert!(stderr.contains(why), "{arguments}: {stderr}");
    }
}

#[test]
fn a_replay_on_agents_leaves_no_files() {
    let store = Store::start(&[1, 2]);
    std::fs::write(store.path("a.log"), LOG).expect("a file");
    let replay = ["replay", "a.log", "--agents", "--format", "json", "--progress", "never"];
    for further in [&[][..], &["--page-cache", "1MiB", "--method", "traditional", "--block", "4KiB"]] {
        let json: Value = serde_json::from_str(&store.run(&[&replay, further].concat())).expect("JSON");
        let rows = json["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), if further.is_empty() { 8 } else { 2 });
        for row in rows {
            let requests = if row["operation"] == "read" { 3 } else { 4 };
            assert_eq!(row["requests"], requests, "{row}");
            assert!(row["elapsed_s"].as_f64().expect("a number") > 0.0);
        }
        assert!(json["machine"].is_null());
    }
    assert_eq!((store.run(&["ls"]), store.stripe_files().len()), (String::new(), 0));
    // If the file must be laid out before the replay, and is much larger than the part that is read, this is reported.
    std::fs::write(store.path("far.log"), "# starfish requests 1\n0 1 far read 8000000 4096\n")
        .expect("a file");
    for (log, is_reported) in [("far.log", true), ("a.log", false)] {
        let replay = ["replay", log, "--agents", "--method", "traditional", "--progress", "never"];
        let stderr = String::from_utf8(finish(store.command(&replay)).stderr).expect("text");
        assert_eq!(
            stderr.contains("1 file is written before each replay, with 7.6 MiB of data"),
            is_reported,
            "{stderr}"
        );
    }
    // There are more nodes than disks, and each node connects to all others.
    let drawn = store.run(&["request-log", "generate", "--nodes", "9", "--records", "50", "--reads", "30"]);
    std::fs::write(store.path("drawn.log"), drawn).expect("a file");
    let table = store.run(&["replay", "drawn.log", "--agents", "--think", "gaps"]);
    assert!(table.contains("on agents: 9 nodes, 8 files"), "{table}");
    assert_eq!((store.run(&["ls"]), store.stripe_files().len()), (String::new(), 0));
}

/// Returns the exit code, standard output and standard error of a command with little output.
fn ended(mut command: Command) -> (Option<i32>, String, String) {
    let mut child = command.spawn().expect("the program");
    let code = crate::common::wait(&mut child).code();
    let (mut printed, mut stderr) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut printed).expect("text");
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
    (code, printed, stderr)
}

#[test]
fn a_log_of_a_billion_requests_is_rejected_or_cut() {
    let billion = || {
        let mut generate = starfish(["request-log", "generate", "--files", "1", "--records", "250000000"]);
        generate.stderr(Stdio::null());
        generate.spawn().expect("the program")
    };
    let mut generate = billion();
    let mut replay = starfish(["replay", "-", "--limit", "20000"]);
    replay.stdin(generate.stdout.take().expect("piped"));
    let (code, _, stderr) = ended(replay);
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("starfish: -: line 20003: it has more than 20000 requests\n"), "{stderr}");
    assert!(stderr.contains("--first N reads the first ones, --limit N raises the limit"), "{stderr}");
    // The generating program ends when the reader closes the pipe.
    assert!(crate::common::wait(&mut generate).success());
    let mut generate = billion();
    let mut show = starfish(["request-log", "show", "-", "--first", "20000"]);
    show.stdin(generate.stdout.take().expect("piped"));
    let (code, shown, stderr) = ended(show);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(shown.contains("  20000, ") && shown.contains(" 32\n"), "{shown}");
    assert!(crate::common::wait(&mut generate).success());
}

#[test]
fn invalid_options_and_logs_are_rejected() {
    let backwards = "# starfish requests 1\n2 1 x write 0 8\n1 1 x write 8 8\n";
    let many: String = (0..17).map(|node| format!("0,{node},x,w,0,8\n")).collect();
    let many = format!("time,node,file,operation,offset,bytes\n{many}");
    let directory = files(&[("a.log", LOG), ("backwards.log", backwards), ("many.csv", &many)]);
    for (arguments, code, why) in [
        (
            "replay backwards.log",
            1,
            "backwards.log: line 3: the time of node 1 decreases from 2 to 1 s\n  Sort the log by time. \
             --sort sorts it.",
        ),
        ("replay none.log", 1, "none.log: No such file"),
        (
            "replay many.csv",
            2,
            "many.csv: the log has 17 nodes, but the machine has 16 compute nodes\n  Add --set nodes.compute=17",
        ),
        ("replay a.log --method psychic", 2, "no method \"psychic\""),
        ("replay a.log --input-format csv", 1, "a.log: line 1: there is no column for time"),
        ("replay many.csv --column what=x", 1, "there is no column kind \"what\""),
        ("replay many.csv --column what", 2, "expected COLUMN=TITLE"),
        (
            "replay a.log --method traditional --write-cache 2MiB",
            2,
            "only the write-cached method has a write cache",
        ),
        ("replay a.log --method disk-directed --outstanding 2", 2, "it has no effect"),
        ("replay a.log --window 4", 2, "a window needs a page cache"),
        ("replay a.log --batch 0", 2, "at least one byte"),
        ("replay a.log --agents x:1 --phantom", 2, "cannot be used with"),
        ("replay a.log --agents x:1 --machine loopback", 2, "cannot be used with"),
        ("replay a.log --key x", 2, "--key: it has no effect: it is only for your own agents"),
        ("replay a.log --agents 127.0.0.1:1", 1, "127.0.0.1:1"),
        ("request-log generate --nodes 2 --jobs 3", 2, "3 jobs cannot share 2 nodes"),
    ] {
        let stderr = refused(&directory, arguments, code);
        assert!(stderr.contains(why), "{arguments}: {stderr}");
    }
    let sorted = run(&directory, "replay backwards.log --sort --method traditional");
    assert!(sorted.contains("2 requests"), "{sorted}");
    let output = finish(starfish(["replay"]));
    assert_eq!(output.status.code(), Some(2));
}
