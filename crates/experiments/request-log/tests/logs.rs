//! Tests of request logs in every format: accepted and rejected logs, places of errors, and limits on reading.

use std::io::{self, BufReader, Cursor, Read};

use layout::Operation;
use machine::Duration;
use proptest::prelude::*;
use request_log::{
    Action, Columns, Format, Generator, Kind, Limits, LogCollector, LoggedMove, LoggedNode, MergeError,
    Reading, Request, RequestLog, Stretch,
};

fn read(text: &str) -> Result<RequestLog, request_log::Error> {
    RequestLog::read(text.as_bytes(), &Reading::default())
}

/// Each job has separate nodes and files, and a separate start time.
#[test]
fn logs_of_jobs_are_merged_by_time() {
    let job = |text: &str| read(&format!("# starfish requests 1\n{text}")).expect("a log");
    let first = job("5 3 a write 0 8\n5.2 3 a write 8 8\n5.1 7 b read 0 4\n");
    let second = job("0 0 a write 0 16 0.5\n0.15 0 a write 16 16\n");
    let merged = RequestLog::merged(&[first, second]).expect("they have no waits");
    let expected = "# starfish requests 1\n# time node file operation offset bytes took\n\
                    0 0 job0/a write 0 8\n0 2 job1/a write 0 16 0.5\n0.1 1 job0/b read 0 4\n\
                    0.15 2 job1/a write 16 16\n0.2 0 job0/a write 8 8\n";
    assert_eq!(written(&merged), expected);
    let waits = job("0 0 a write 0 8\n1 0 - sync\n");
    assert_eq!(RequestLog::merged(&[merged.clone(), waits]), Err(MergeError::Waits(1)));
    let large = RequestLog::merged(&vec![merged; 400]);
    assert_eq!(large, Err(MergeError::TooLarge { nodes: 1200, files: 1200 }));
}

/// Returns the error message and the remedy for a rejected log.
fn refused(text: &str) -> String {
    let error = read(text).expect_err(text);
    format!("{error}. {}", error.remedy)
}

fn written(log: &RequestLog) -> String {
    let mut text = Vec::new();
    log.write_to(&mut text).expect("memory");
    String::from_utf8(text).expect("text")
}

/// Returns the requests of a node in a short form: `w` or `r`, file, offset and bytes.
fn shown(log: &RequestLog, node: usize) -> Vec<String> {
    let short = |request: &Request| match request.action {
        Action::Sync => "sync".to_owned(),
        Action::Call(_) => unreachable!("these are logs without calls"),
        Action::Move(operation, Stretch { file, bytes, offset }) => {
            let letter = if operation == Operation::Read { 'r' } else { 'w' };
            format!("{letter} {} {offset} {bytes}", log.files()[file as usize].name)
        }
    };
    log.nodes()[node].requests.iter().map(short).collect()
}

const SMALL: &str = "# starfish requests 1\n\
    # a comment\n\
    \n\
    0.5 7 /out/a%20b write 0 512\n\
    \t0.5  3\tx read 1000 24 0.25  \n\
    0.75 7 - sync 0.001\r\n\
    1 7 x write 0 8\n\
    # no request";

#[test]
fn a_log_is_read_as_requests_of_each_node() {
    let log = read(SMALL).expect("a log");
    assert_eq!(log.nodes().iter().map(|node| node.number).collect::<Vec<_>>(), [3, 7]);
    assert_eq!(shown(&log, 0), ["r x 1000 24"]);
    assert_eq!(shown(&log, 1), ["w /out/a b 0 512", "sync", "w x 0 8"]);
    assert_eq!(log.nodes()[0].requests[0].took, Duration::from_millis(250));
    let files = log.files();
    assert_eq!((files[1].end, files[1].is_read, files[1].is_written), (1024, true, true));
    let totals = log.totals();
    assert_eq!((totals.reads, totals.writes, totals.syncs, totals.largest), (1, 2, 1, 512));
    assert_eq!((totals.duration, log.start()), (Duration::from_millis(500), Duration::from_millis(500)));
    assert_eq!(written(&read(&written(&log)).expect("a log that the program has written")), written(&log));
}

#[test]
fn a_log_truncated_within_a_request_is_rejected() {
    let whole = "# starfish requests 1\n0 0 x write 0 512\n1 0 x write 512 512\n";
    assert!(read(whole).is_ok());
    let error = refused(&whole[..whole.len() - 2]);
    assert!(error.starts_with("line 3: it has no newline") && error.contains("newline"), "{error}");
}

#[test]
fn mistakes_are_reported_with_line_and_column() {
    let head = "# starfish requests 1\n";
    for (lines, why) in [
        ("0 0 x write 0", "line 2, column 14: expected a number of bytes, not the end of the line"),
        ("-1 0 x write 0 8", "line 2, column 1: expected a time in seconds, not \"-1\""),
        ("0 x x write 0 8", "line 2, column 3: expected the number of a node, not \"x\""),
        ("0 0 %4 write 0 8", "line 2, column 5: expected the name of a file"),
        ("0 0 x append 0 8", "line 2, column 7: expected read, write or sync, not \"append\""),
        ("0 0 - write 0 8", "line 2, column 5: a write needs a file"),
        ("0 0 x sync", "line 2, column 5: a sync covers all files"),
        ("0 0 x write -8 8", "line 2, column 13: expected an offset in bytes, not \"-8\""),
        ("0 0 x write 0 8 0.1 9", "line 2, column 21: expected the end of the line, not \"9\""),
        (
            "0 0 x write 281474976710656 1",
            "line 2, column 13: 1 bytes from offset 281474976710656 end beyond",
        ),
        ("0 0 x write 18446744073709551615 8", "line 2, column 13: 8 bytes from"),
        ("0 0 x write 0 3000000000", "line 2, column 15: a request of 3000000000 bytes"),
        (
            "2 5 x write 0 8\n1 6 x write 0 8\n1.5 5 x write 0 8",
            "line 4: the time of node 5 decreases from 2 to 1.5 s. Sort the log by time",
        ),
    ] {
        let error = refused(&format!("{head}{lines}\n"));
        assert!(error.contains(why), "{lines}: {error}");
    }
    for (text, why) in [
        ("", "it is empty"),
        ("# starfish requests 1\n# none\n", "it contains no requests"),
        ("# starfish requests 3\n", "line 1: expected \"# starfish requests 1\""),
        ("hello\n", "line 1: \"hello\" is not the first line of a request log"),
        ("3.41\0\0\u{1}", "line 1: it is not text. A request log begins with"),
        (
            concat!("3.41\0\0\0\0", "75d\0\0\0\0\0\0"),
            "it is a binary log of Darshan. Convert it to text with",
        ),
    ] {
        assert!(refused(text).starts_with(why), "{text:?}: {}", refused(text));
    }
    let error = RequestLog::read(&b"# starfish requests 1\n0 0 \xff write 0 8\n"[..], &Reading::default());
    assert_eq!(error.expect_err("no text").to_string(), "line 2, column 5: it is not UTF-8 text");
}

#[test]
fn nodes_may_be_interleaved_and_unsorted_logs_can_be_sorted() {
    let text =
        "# starfish requests 1\n2 5 x write 0 8\n1 6 x write 8 8\n1 5 x write 16 8\n1 5 x write 24 8\n";
    let sorted = RequestLog::read(text.as_bytes(), &Reading { sort: true, ..Reading::default() });
    let sorted = sorted.expect("sorted");
    assert_eq!(shown(&sorted, 0), ["w x 16 8", "w x 24 8", "w x 0 8"]);
    assert_eq!(sorted.start(), Duration::from_secs(1));
    let concatenated = "# starfish requests 1\n2 5 x write 0 8\n1 6 x write 8 8\n";
    assert_eq!(read(concatenated).expect("each node in its order").nodes().len(), 2);
}

#[test]
fn columns_are_found_by_their_names() {
    let usual = "Rank,start_us,END_US,file name,Path,op,offset,Length\n\
                 0,1000000,1500000,-,\"a,b\",Write,0,8\n0,2e6,,-,x,r,8,16\n1,2000000,,,,sync,,\n";
    let log = read(usual).expect("comma-separated values");
    assert_eq!(shown(&log, 0), ["w a,b 0 8", "r x 8 16"]);
    assert_eq!(shown(&log, 1), ["sync"]);
    let times = |request: &Request| (request.time.as_nanos(), request.took.as_nanos());
    assert_eq!(times(&log.nodes()[0].requests[0]), (1_000_000_000, 500_000_000));
    assert_eq!(times(&log.nodes()[0].requests[1]), (2_000_000_000, 0));
    let named = "when_ms,who,file,operation,offset,bytes\n1,2,x,w,0,8\n";
    let names = [("time", "when_ms"), ("node", "WHO")];
    let reading = named_columns(None, &names);
    let log = RequestLog::read(named.as_bytes(), &reading).expect("named columns");
    assert_eq!((log.start(), log.nodes()[0].number), (Duration::from_millis(1), 2));
    let error = RequestLog::read(usual.as_bytes(), &reading).expect_err("no such column").to_string();
    assert!(error.starts_with("line 1: there is no column \"when_ms\""), "{error}");
    let head = "time,node,file,operation,offset,bytes\n";
    for (text, why) in [
        ("time,node,file,operation,offset\n", "line 1: there is no column for bytes"),
        (&*format!("{head}0,0,x,write,0,8\n0,0,x,write,zero,8\n"), "line 3, offset: expected an offset"),
        (
            &*format!("{head}0,0,x,write,0\n"),
            "line 2, bytes: expected a number of bytes, not the end of the row",
        ),
        (&*format!("{head}0,0,,write,0,8\n"), "line 2, file: expected the name of a file"),
        (&*format!("{head}0,0,x,trim,0,8\n"), "line 2, operation: expected read, write or sync"),
        (&*format!("{head}1,0,x,w,0,8\n0,0,x,w,0,8\n"), "line 3: the time of node 0 decreases from 1 to 0 s"),
    ] {
        assert!(refused(text).starts_with(why), "{text}: {}", refused(text));
    }
}

/// Returns settings for tables with these titles (`None` if the first line has them) and with these names of columns.
fn named_columns(titles: Option<&str>, names: &[(&str, &str)]) -> Reading {
    let named = names.iter().map(|(of, name)| ((*of).to_owned(), (*name).to_owned())).collect();
    Reading { columns: Columns { titles: titles.map(str::to_owned), named }, ..Reading::default() }
}

/// Reads a log. Returns it with its notes.
fn read_with_notes(text: &str, reading: &Reading) -> (RequestLog, Vec<String>) {
    let mut collector = LogCollector::new(reading);
    let notes = collector.take(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
    (collector.finish().expect("requests"), notes)
}

/// First requests of a trace of MSR Cambridge. Times count from 1601, in units of 100 ns.
const MSR: &str = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
    128166372016382155,usr,0,Write,2517696512,0x1000,1500\n";

#[test]
fn columns_have_units() {
    let titles = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
    let names = [("time", "Timestamp:100ns"), ("file", "DiskNumber"), ("took", "ResponseTime:100ns")];
    let (log, notes) = read_with_notes(MSR, &named_columns(Some(titles), &names));
    assert_eq!(shown(&log, 0), ["r 0 7014609920 24576", "w 0 2517696512 4096"]);
    let [first, second] = &log.nodes()[0].requests[..] else { panic!("two requests") };
    assert_eq!(first.time.as_nanos(), 12_816_637_200_306_162_900);
    assert_eq!((second.time - first.time).as_nanos(), 1_332_052_600, "not one of the digits is lost");
    assert_eq!(first.took.as_nanos(), 4_128_600);
    assert_eq!(notes, ["it has no column for node: all requests are of node 0"]);
    let (same, _) = read_with_notes(&format!("{titles}\n{MSR}"), &named_columns(None, &names));
    assert!(same == log);

    let spc = named_columns(Some("file,offset:sectors,bytes:512,op,time"), &[]);
    let (log, _) = read_with_notes("0,20941264,16,W,0.551706\n1,0x10,8,r,0.554041\n", &spc);
    assert_eq!(shown(&log, 0), ["w 0 10721927168 8192", "r 1 8192 4096"]);
    assert_eq!(log.start().as_nanos(), 551_706_000);

    let head = "time,node,file,op,offset,bytes";
    let fine = "time_us,file,op,offset,size\n1732323232123456.789,x,r,1.5,1\n";
    let (log, _) = read_with_notes(fine, &named_columns(None, &[("offset", "offset:KiB")]));
    assert_eq!(
        (shown(&log, 0), log.start().as_nanos()),
        (vec!["r x 1536 1".into()], 1_732_323_232_123_456_789)
    );
    for (reading, text, why) in [
        (
            Reading::default(),
            format!("Timestamp,{titles},file\n{MSR}"),
            "line 2, Timestamp: \"128166372003061629\" is longer than centuries",
        ),
        (
            named_columns(None, &[("time", "time:weeks")]),
            format!("{head}\n"),
            "line 1: time has no unit \"weeks\": expected s, ms",
        ),
        (
            named_columns(None, &[("bytes", "bytes:ns")]),
            format!("{head}\n"),
            "line 1: bytes has no unit \"ns\": expected sectors",
        ),
        (
            named_columns(None, &[("offset", "offset:sectors")]),
            format!("{head}\n0,0,x,r,0.3,1\n"),
            "line 2, offset: expected an offset",
        ),
        (
            Reading::default(),
            format!("{head}\n0,0,x,r,0x,1\n"),
            "line 2, offset: expected an offset in bytes, not \"0x\"",
        ),
        (
            Reading::default(),
            format!("{head},end\n5,0,x,r,0,1,4\n"),
            "line 2, end: the request ends before it begins",
        ),
        (
            Reading::default(),
            format!("{head},took\n5,0,x,r,0,1,-4\n"),
            "line 2, took: expected a time, not \"-4\"",
        ),
        (
            Reading::default(),
            MSR.to_owned(),
            "line 1: there is no column for time; the columns are \"1281663",
        ),
    ] {
        let error = RequestLog::read(text.as_bytes(), &reading).expect_err(why).to_string();
        assert!(error.starts_with(why), "{text}: {error}");
    }
    let error = read(&format!("Timestamp,{titles},file\n{MSR}")).expect_err("too large");
    assert_eq!(error.remedy, "Append the unit to the title, such as Timestamp:100ns.");
}

#[test]
fn an_incomplete_recording_is_reported_with_both_counts() {
    let whole = read_with_notes(DXT, &Reading::default()).1;
    assert!(whole.is_empty(), "{whole:?}");
    let usual = Reading::default();
    let cut = DXT.replace("write_count: 2", "write_count: 999998");
    assert_eq!(
        read_with_notes(&cut, &usual).1,
        ["incomplete: it has 4 of the 1000000 requests that it announces"]
    );
    let until_first = DXT.lines().take(7).map(|line| format!("{line}\n")).collect::<String>();
    assert_eq!(
        read_with_notes(&until_first, &usual).1,
        ["incomplete: it has 1 of the 3 requests that it announces"]
    );
    let partial = |module: &str| {
        let warning = format!("# *WARNING*: The {module} module contains incomplete data!\n");
        read_with_notes(&DXT.replacen("# DXT, file_id", &format!("{warning}# DXT, file_id"), 1), &usual).1
    };
    let ran_out = "incomplete: it has 4 requests, and Darshan ran out of memory for more; increase it with \
                   DARSHAN_MODMEM=MIB";
    assert_eq!(partial("DXT_POSIX"), [ran_out]);
    assert!(partial("DXT_MPIIO").is_empty(), "its requests are not read");
    let error = refused(DXT.replace("X_MPIIO", "X_POSIX").trim_end());
    assert!(error.starts_with("line 12: it has no newline"), "{error}");
    let text = "# starfish requests 1\n# incomplete: 1 of 1000 requests are recorded\n0 0 x write 0 8\n";
    assert_eq!(read_with_notes(text, &usual).1, ["incomplete: 1 of 1000 requests are recorded"]);
}

#[test]
fn requests_that_end_before_they_begin_are_counted() {
    let backwards = DXT.replace("0.0029      0.0032", "0.0029      0.0028");
    let (log, notes) = read_with_notes(&backwards, &Reading::default());
    assert_eq!(log.nodes()[0].requests[0].took, Duration::ZERO);
    assert_eq!(notes, ["1 of its requests end before they begin: their durations are unknown"]);
}

#[test]
fn logs_of_fio_are_read() {
    let third = "fio version 3 iolog\n18 /d/f add\n189 /d/f open\n194 /d/f read 0 4096\n3470 /d/f write 45056 4096\n\
                 3480 /d/f trim 0 512\n15221 /d/f sync 32768 0\n35442 /d/f close\n";
    let (log, notes) = read_with_notes(third, &Reading::default());
    assert_eq!(shown(&log, 0), ["r /d/f 0 4096", "w /d/f 45056 4096", "sync"]);
    assert_eq!(
        (log.start(), log.totals().duration),
        (Duration::from_micros(194), Duration::from_micros(15_027))
    );
    assert_eq!(notes, ["1 trims are omitted"]);
    let second = "fio version 2 iolog\na add\na open\na read 0 8\na wait 1500 0\na write 8 8\na datasync 0 0\na close\n";
    let log = read(second).expect("version 2");
    assert_eq!(shown(&log, 0), ["r a 0 8", "w a 8 8", "sync"]);
    assert_eq!((log.start(), log.totals().duration), (Duration::ZERO, Duration::from_micros(1500)));
    let reading = Reading::default();
    let mut jobs = LogCollector::new(&reading);
    [third, second].iter().for_each(|log| assert!(jobs.take(log.as_bytes()).is_ok()));
    assert_eq!(jobs.finish().expect("two jobs").nodes().len(), 2, "each log is one of a node");
    for (from, to, why) in [
        ("version 3", "version 1", "line 1: expected \"fio version 2 iolog\""),
        ("read 0", "peek 0", "line 4: expected read, write, sync"),
        ("read 0 4096", "read 0", "line 4: expected a length, not \"\""),
        ("194 ", "noon ", "line 4: expected a time in microseconds, not \"noon\""),
        ("18 /d/f add", "18", "line 2: expected a file and an action"),
        ("write 45056", "wait 1", "line 5: expected read, write, sync"),
    ] {
        assert!(refused(&third.replace(from, to)).starts_with(why), "{}", refused(&third.replace(from, to)));
    }
    assert!(refused(second.trim_end_matches(" 0 0\na close\n")).starts_with("line 7: it has no newline"));
}

#[test]
fn output_of_blkparse_is_read() {
    let text = "  8,0    3        1     0.000000000   697  Q  RA 223490 + 56 [kjournald]\n\
                \u{20} 8,0    3        2     0.000001829   697  G  RA 223490 + 56 [kjournald]\n\
                \u{20} 8,0    1        1     0.250000000   698  Q  WS 8 + 8 [fio]\n\
                \u{20} 8,0    1        2     0.250000100   698  Q  FN [fio]\n\
                \u{20} 8,0    1        3     0.260000000   698  Q   D 64 + 8 [fstrim]\n\
                \u{20} 8,0    1        4     0.270000000   698  C  WS 8 + 8 [0]\n\
                CPU0 (8,0):\n Reads Queued:           1,       28KiB\n\
                Throughput (R/W): 18KiB/s / 18KiB/s\nEvents (8,0): 6 entries\nSkips: 0 forward (0 -   0.0%)\n";
    let (log, notes) = read_with_notes(text, &Reading::default());
    assert_eq!(shown(&log, 0), ["r 8,0 114426880 28672", "w 8,0 4096 4096"]);
    assert_eq!(log.totals().duration, Duration::from_millis(250));
    assert_eq!(notes, ["1 discards are omitted"]);
    let lossy = text.replace("Skips: 0 forward (0 ", "Skips: 3 forward (129 ");
    let notes = read_with_notes(&lossy, &Reading::default()).1;
    assert!(
        notes[0].starts_with("incomplete: it has 2 requests, and the kernel lost 129 events"),
        "{notes:?}"
    );
    let error = refused(&text.replace("8 + 8 [fio]", "8 + 99999999999999999999 [fio]"));
    assert!(error.starts_with("line 3: expected a number of sectors"), "{error}");
}

#[test]
fn requests_of_no_bytes_do_not_extend_a_file() {
    let log = read("# starfish requests 1\n0 0 a write 0 454\n1 0 a write 1000 0\n2 0 b read 688 0\n")
        .expect("a log");
    assert_eq!(log.files().iter().map(|file| file.end).collect::<Vec<_>>(), [454, 0]);
    assert_eq!((log.totals().writes, log.totals().reads), (2, 1));
}

const DXT: &str = "# darshan log version: 3.41\n\
    # DXT, file_id: 16457598720760448348, file_name: /tmp/test/test File\n\
    # DXT, rank: 0, hostname: node1\n\
    # DXT, write_count: 2, read_count: 1\n\
    # DXT, mnt_pt: /, fs_type: ext4\n\
    # Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)\n \
    X_POSIX       0  write        0               0       262144      0.0029      0.0032\n \
    X_POSIX       0  write        1          262144       262144      0.0050      0.0055  [11] [12]\n \
    X_POSIX       0   read        0               0       262144      0.0048      0.0049\n\
    # DXT, file_id: 9, file_name: /tmp/test/other\n \
    X_POSIX       3   read        0              16           16      0.0010      0.0010\n \
    X_MPIIO       0  write        0               0       524288      0.0029      0.0055\n";

#[test]
fn output_of_darshan_is_read_in_order_of_time() {
    let log = read(DXT).expect("what the parser prints");
    let file = "/tmp/test/test File";
    let expected =
        [format!("w {file} 0 262144"), format!("r {file} 0 262144"), format!("w {file} 262144 262144")];
    assert_eq!(shown(&log, 0), expected);
    assert_eq!(shown(&log, 1), ["r /tmp/test/other 16 16"]);
    assert_eq!(log.nodes()[0].requests[0].took, Duration::from_micros(300));
    let of_mpi = DXT.lines().filter(|line| !line.contains("X_POSIX")).collect::<Vec<_>>().join("\n") + "\n";
    assert_eq!(shown(&read(&of_mpi).expect("requests of MPI-IO alone"), 0), ["w /tmp/test/other 0 524288"]);
    for (from, to, why) in [
        ("X_MPIIO", "X_OTHER", "line 12: expected X_POSIX or X_MPIIO"),
        ("16      0.0010", "16      -0.001", "line 11: expected a start in seconds"),
        ("16      0.0010      0.0010", "16", "line 11: expected module, rank"),
        (" 16           16", "-1           16", "line 11: expected an offset, not \"-1\""),
    ] {
        assert!(DXT.contains(from));
        assert!(refused(&DXT.replace(from, to)).starts_with(why), "{}", refused(&DXT.replace(from, to)));
    }
}

/// Reader that repeats the same line forever.
struct Endless(Cursor<Vec<u8>>);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.position() == self.0.get_ref().len() as u64 {
            self.0.set_position(0);
        }
        self.0.read(buffer)
    }
}

fn endless(head: &str, line: &str) -> impl io::BufRead {
    BufReader::new(Cursor::new(head.to_owned()).chain(Endless(Cursor::new(line.as_bytes().to_vec()))))
}

#[test]
fn endless_logs_are_rejected_or_limited() {
    let limits = Limits { requests: 50_000, files: 100, nodes: 10, ..Limits::default() };
    let reading = Reading { limits, ..Reading::default() };
    let error = |head: &str, line: &str, reading: &Reading| {
        let error = RequestLog::read(endless(head, line), reading).expect_err("too much");
        format!("{error}. {}", error.remedy)
    };
    let (head, line) = ("# starfish requests 1\n", "0 0 x write 0 8\n");
    let why = "line 50002: it has more than 50000 requests. Read the first requests only, split the log, or \
               raise the limit: each request needs 40 bytes of memory.";
    assert_eq!(error(head, line, &reading), why);
    let first = Reading { first: Some(20_000), ..reading.clone() };
    let log = RequestLog::read(endless(head, line), &first).expect("the first of them");
    assert_eq!(log.totals().writes, 20_000);
    // Lines and rows that never end.
    assert!(error(head, "x", &reading).starts_with("line 2: it is longer than 16384 bytes"));
    assert!(error("", "x", &reading).starts_with("line 1: \"xxxx"));
    assert!(error("time,", "x", &reading).contains("a row is longer than 65536 bytes"));
    let table = "time,node,file,operation,offset,bytes\n0,0,x,write,0,8\n";
    assert!(
        error(table, "\"", &reading).contains("line 3: it cannot be read: a row is longer than 65536 bytes")
    );
    assert!(error(table, "0,0,x,write,0,8\n", &reading).contains("it has more than 50000 requests"));
    assert!(error("# darshan log version: 3\n", "x", &reading).starts_with("line 2: it is longer"));
    // Too many files or nodes.
    let many = |line: fn(u32) -> String| format!("{head}{}", (0..200).map(line).collect::<String>());
    let error = RequestLog::read(many(|file| format!("0 0 x{file} write 0 8\n")).as_bytes(), &reading);
    assert_eq!(error.expect_err("files").to_string(), "line 102, column 5: it has more than 100 files");
    let error = RequestLog::read(many(|node| format!("0 {node} x write 0 8\n")).as_bytes(), &reading);
    assert_eq!(error.expect_err("nodes").to_string(), "line 12: node 10 exceeds the limit of 10 nodes");
}

#[test]
fn a_file_may_have_the_name_that_stands_for_no_file() {
    let write = Action::Move(Operation::Write, Stretch { file: 0, bytes: 1, offset: 0 });
    let requests = [write, Action::Sync]
        .map(|action| Request { time: Duration::ZERO, took: Duration::ZERO, action })
        .to_vec();
    let log = RequestLog::of(vec!["-".to_owned()], vec![LoggedNode { number: 0, requests }]);
    assert_eq!(read(&written(&log)).expect("a log that the program has written"), log);
}

#[test]
fn a_drawn_log_has_the_requested_statistics() {
    for (kind, seed) in [(Kind::Cmf, 1), (Kind::Cmmd, 2)] {
        let generator = Generator { jobs: 3, files: 40, records: 300, seed, ..kind.generator() };
        let log = generator.log();
        let totals = log.totals();
        assert_eq!((totals.writes, totals.reads, totals.consecutive), (generator.requests(), 0, 0));
        // The report's four traces average 500 to 1200 bytes.
        assert!((500.0..1200.0).contains(&totals.mean_bytes()), "{}", totals.mean_bytes());
        assert_eq!((log.nodes().len(), log.files().len()), (32, 120));
        // A node computes for a millisecond between two requests on average.
        let per_node = generator.requests() as f64 / 32.0;
        assert!((totals.duration.as_secs_f64() / per_node * 1e3 - 1.0).abs() < 0.2, "{:?}", totals.duration);
        // Each byte is written once, and each file is written from its first byte to its last.
        let mut extents: Vec<(u32, u64, u64)> = Vec::new();
        for LoggedMove { file, bytes, offset, .. } in log.nodes().iter().flat_map(|node| log.moves(node)) {
            extents.push((file, offset, bytes));
        }
        extents.sort_unstable();
        let mut ends = vec![0; log.files().len()];
        for (file, offset, bytes) in extents {
            assert_eq!(offset, ends[file as usize], "file {file}");
            ends[file as usize] += bytes;
        }
        assert_eq!(read(&written(&log)).expect("a log that the program has written").totals(), totals);
        let mut streamed = Vec::new();
        generator.write_to(&mut streamed).expect("memory");
        assert_eq!(String::from_utf8(streamed).expect("text"), written(&log));
        assert_ne!(Generator { seed: seed + 1, ..generator }.log(), log);
    }
    let large = Kind::Cmmd.generator().records / Kind::Cmf.generator().records;
    assert_eq!(large, 10, "an order of magnitude");
    let mixed = Generator { files: 200, records: 32, reads_percent: 30, ..Kind::Cmf.generator() };
    let share = mixed.log().totals().reads as f64 / mixed.requests() as f64;
    assert!((0.2..0.4).contains(&share), "{share}");
}

#[test]
fn invalid_generators_are_rejected() {
    let usual = Kind::Cmf.generator();
    for (generator, why) in [
        (Generator { jobs: 33, ..usual }, "33 jobs cannot share 32 nodes"),
        (Generator { files: 0, ..usual }, "at least one file"),
        (Generator { record_bytes: 1, ..usual }, "records of 1 bytes"),
        (Generator { record_bytes: 1 << 40, ..usual }, "on average: use 8 to"),
        (Generator { records: 1 << 60, ..usual }, "larger than 256 TiB"),
        (Generator { reads_percent: 101, ..usual }, "101 of 100 files"),
    ] {
        assert!(generator.check().expect_err(why).contains(why), "{why}");
    }
}

/// Generates the requests of a node in a log of three files.
fn node() -> impl Strategy<Value = Vec<Request>> {
    let action = prop_oneof![
        8 => (any::<bool>(), 0_u32..3, any::<u16>(), 0_u64..1 << 40).prop_map(|(reads, file, bytes, offset)| {
            let operation = if reads { Operation::Read } else { Operation::Write };
            Action::Move(operation, Stretch { file, bytes: bytes.into(), offset })
        }),
        1 => Just(Action::Sync),
    ];
    let request = (0..u64::MAX >> 2, 0..u64::MAX >> 20, action).prop_map(|(time, took, action)| Request {
        time: Duration::from_nanos(time),
        took: Duration::from_nanos(took),
        action,
    });
    proptest::collection::vec(request, 1..30).prop_map(|mut requests| {
        requests.sort_by_key(|request| request.time);
        requests
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_log_is_read_back_as_written(
        nodes in proptest::collection::btree_map(any::<u32>(), node(), 1..6),
        names in proptest::collection::btree_set(".{0,20}", 3),
    ) {
        let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        prop_assume!(names.len() == 3);
        let nodes = nodes.into_iter().map(|(number, requests)| LoggedNode { number, requests }).collect();
        let log = RequestLog::of(names, nodes);
        let back = read(&written(&log)).expect("a log that the program has written");
        // The reader numbers files in order of first use and drops unused files.
        prop_assert_eq!(written(&back), written(&log));
        prop_assert_eq!(back.totals(), log.totals());
        for node in 0..log.nodes().len() {
            prop_assert_eq!(shown(&back, node), shown(&log, node));
        }
    }

    #[test]
    fn requests_are_equal_in_both_formats(requests in node()) {
        let nodes = vec![LoggedNode { number: 4, requests: requests.clone() }];
        let log = RequestLog::of(["a", "b", "c"].map(str::to_owned).to_vec(), nodes);
        let mut table = "time,node,file,operation,offset,bytes,took_ms\n".to_owned();
        for line in written(&log).lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let at = |index: usize| words.get(index).copied().unwrap_or_default();
            let millis = |text: &str| if text.is_empty() { String::new() } else { format!("{text}e3") };
            let row = match at(3) {
                "sync" => format!("{},4,,sync,,,{}", at(0), millis(at(4))),
                operation => format!("{},4,{},{operation},{},{},{}", at(0), at(2), at(4), at(5), millis(at(6))),
            };
            table += &format!("{row}\n");
        }
        let back = RequestLog::read(table.as_bytes(), &Reading { format: Some(Format::Csv), ..Reading::default() });
        let back = back.expect("comma-separated values");
        prop_assert_eq!(shown(&back, 0), shown(&log, 0));
        for (one, other) in back.nodes()[0].requests.iter().zip(&requests) {
            prop_assert_eq!((one.time, one.took), (other.time, other.took));
        }
    }
}
