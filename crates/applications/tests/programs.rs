//! The programs beside the system's: cat, grep, sort, bzip2; on ordinary and striped files.

mod common;

use std::process::{Command, Output};

use common::{FS2PFS, Home, MYCAT, PFS2FS, PFSBZIP2, PFSGREP, PFSSORT, finish_with_input, noise, text};

/// Contents that have been trouble somewhere: empty ones, a last line without an end, binary data, long lines, the
/// sizes around a page.
fn contents() -> Vec<(&'static str, Vec<u8>)> {
    let mut long = text(300);
    long.extend(b"sea".repeat(150_000));
    long.extend(b"\nstar\n");
    vec![
        ("empty", Vec::new()),
        ("newline", b"\n".to_vec()),
        ("byte", b"x".to_vec()),
        ("unfinished", b"sea\n-3\nstar".to_vec()),
        ("text", text(30_000)),
        ("long", long),
        ("binary", noise(300_000)),
        ("page", noise(65_536)),
        ("page-1", text(65_536).into_iter().take(65_535).collect()),
        ("page+1", text(65_536).into_iter().take(65_537).collect()),
    ]
}

/// Whether the system has a program.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdin(std::process::Stdio::null()).output().is_ok();
    if !found {
        eprintln!("no {program} here: nothing to compare with");
    }
    found
}

#[test]
fn files_come_back_from_stripes_as_they_were() {
    let home = Home::start(3);
    for (name, contents) in contents() {
        home.make(name, &contents);
        home.succeed(PFS2FS, &[name, "back", "--force"]);
        assert!(home.read("back") == contents, "{name}");
        assert!(home.succeed(PFS2FS, &[&format!("pfs:{name}")]) == contents, "{name}");
        for buffer in ["1", "1000", "1MiB"] {
            // One byte at a time takes its time.
            if buffer == "1" && contents.len() > 10_000 {
                continue;
            }
            let both = home.succeed(MYCAT, &["--buffer", buffer, &format!("pfs:{name}"), name]);
            assert!(both == [contents.clone(), contents.clone()].concat(), "{name}");
        }
        home.succeed(MYCAT, &[name, "-o", "pfs:copy", "--force", "--block", "8KiB", "--disks", "2"]);
        assert!(home.succeed(MYCAT, &["pfs:copy", "--window", "0"]) == contents, "{name}");
    }
    let output = finish_with_input(home.command(FS2PFS, ["-", "from-input"]), b"by a pipe".to_vec());
    assert!(output.status.success());
    assert_eq!(home.succeed(MYCAT, &["pfs:from-input"]), b"by a pipe");
    let output = finish_with_input(home.command(MYCAT, [""; 0]), b"through".to_vec());
    assert_eq!(output.stdout, b"through");
}

#[test]
fn what_cannot_be_copied_says_why_and_leaves_nothing() {
    let home = Home::start(2);
    home.make("file", b"contents");
    for (program, arguments, part) in [
        (PFS2FS, &["nothing"][..], "nothing: no such file"),
        (PFS2FS, &["file", "file"], "file: there is such a file already"),
        (FS2PFS, &["file"], "pfs:file: there is such a file already"),
        (FS2PFS, &["-"], "say what to call it"),
        (FS2PFS, &["nothing", "else"], "nothing: No such file"),
        (MYCAT, &["file", "nothing", "-o", "pfs:new"], "nothing: No such file"),
        (MYCAT, &["file", "nothing", "-o", "new"], "nothing: No such file"),
        (MYCAT, &["."], "it is a directory"),
        (MYCAT, &["pfs:file", "-o", "pfs:file", "-f"], "it is the input, too"),
        (MYCAT, &["pfs:file", "--agents", "127.0.0.1:1"], "127.0.0.1:1"),
    ] {
        let said = home.fail(program, arguments);
        assert!(said.contains(part), "{arguments:?}: {said}");
        assert_eq!(
            (home.striped(), home.local()),
            (vec!["file".into()], vec!["file".into()]),
            "{arguments:?}"
        );
    }
}

#[test]
fn grep_finds_what_grep_finds() {
    if !has("grep") {
        return;
    }
    let home = Home::start(3);
    let options: [&[&str]; 14] = [
        &["star"],
        &["-v", "star"],
        &["-c", "s"],
        &["-n", "fish$"],
        &["-i", "SEA+"],
        &["-F", "2.5"],
        &["-w", "sea"],
        &["-x", "star"],
        &["-l", "1"],
        &["-q", "1"],
        &["nothing at all"],
        &["-vc", "nothing at all"],
        &["^"],
        &["^-[0-9]+(sea|star)?"],
    ];
    for (name, contents) in contents() {
        home.make(name, &contents);
        for options in options {
            if name == "binary" || name == "page" {
                // What . and words are among bytes that are no text depends on the locale.
                if options.iter().any(|option| ["-i", "-w"].contains(option)) {
                    continue;
                }
            }
            let language = if options[0] == "-F" { "-a" } else { "-aE" };
            let grep = home.run("grep", &[&[language], options, &[name]].concat());
            for striped in [name.to_owned(), format!("pfs:{name}")] {
                let ours = home.run(PFSGREP, &[options, &[&striped]].concat());
                let expected = if options[0] == "-l" && !grep.stdout.is_empty() {
                    format!("{striped}\n").into_bytes()
                } else {
                    grep.stdout.clone()
                };
                assert!(ours.stdout == expected, "{options:?} {striped}");
                assert_eq!(ours.status.code(), grep.status.code(), "{options:?} {striped}");
            }
        }
    }
    let several = home.succeed(PFSGREP, &["-n", "star", "unfinished", "pfs:unfinished"]);
    assert_eq!(String::from_utf8_lossy(&several), "unfinished:3:star\npfs:unfinished:3:star\n");
    let Output { status, stdout, stderr } = home.run(PFSGREP, &["star", "nothing", "unfinished"]);
    assert_eq!((status.code(), &stdout[..]), (Some(2), &b"unfinished:star\n"[..]));
    assert!(String::from_utf8_lossy(&stderr).contains("pfsgrep: nothing: No such file"));
    assert!(home.fail(PFSGREP, &["(", "text"]).contains("the pattern"));
}

#[test]
fn sort_sorts_as_sort_does() {
    if !has("sort") {
        return;
    }
    let home = Home::start(3);
    let options: [&[&str]; 12] = [
        &[],
        &["-r"],
        &["-u"],
        &["-ru"],
        &["-n"],
        &["-nr"],
        &["-nu"],
        &["-nru"],
        &["-ns"],
        &["-nrs"],
        &["-s"],
        &["-nus"],
    ];
    for (name, contents) in contents() {
        home.make(name, &contents);
        for options in options {
            let expected = home.succeed("sort", &[options, &[name]].concat());
            // Memory for all of it, and for a small part: many runs, merged in several steps.
            for memory in ["256MiB", "256KiB"] {
                let memory = ["-S", memory];
                let local = home.succeed(PFSSORT, &[options, &memory, &[name]].concat());
                assert!(local == expected, "{options:?} {memory:?} {name}");
            }
            let striped = format!("pfs:{name}");
            let to = ["-S", "256KiB", "-o", "pfs:sorted", &striped];
            home.succeed(PFSSORT, &[options, &to[..]].concat());
            assert!(home.succeed(MYCAT, &["pfs:sorted"]) == expected, "{options:?} {name}");
        }
    }
    let several = home.succeed(PFSSORT, &["unfinished", "pfs:byte", "empty", "pfs:unfinished"]);
    assert_eq!(String::from_utf8_lossy(&several), "-3\n-3\nsea\nsea\nstar\nstar\nx\n");
    // In its own place.
    home.succeed(PFSSORT, &["unfinished", "-o", "unfinished"]);
    assert_eq!(home.read("unfinished"), b"-3\nsea\nstar\n");
    home.succeed(PFSSORT, &["pfs:unfinished", "-o", "pfs:unfinished", "-T", "tmp"]);
    assert_eq!(home.succeed(MYCAT, &["pfs:unfinished"]), b"-3\nsea\nstar\n");
    assert!(home.striped().iter().all(|name| !name.starts_with("temporary")), "{:?}", home.striped());
    assert!(home.local().iter().all(|name| !name.starts_with('.')), "{:?}", home.local());
}

#[test]
fn sort_merges_many_runs_in_several_steps() {
    let home = Home::start(2);
    // About sixty runs with memory for the buffers of two.
    let contents = text(400_000);
    home.make("large", &contents);
    let mut lines: Vec<&[u8]> = contents.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort();
    for name in ["large", "pfs:large"] {
        let sorted = home.succeed(PFSSORT, &["-S", "256KiB", name]);
        assert!(sorted == lines.concat(), "{name}");
    }
    assert_eq!(home.striped(), ["large"]);
}

#[test]
fn bzip2_packs_and_unpacks() {
    let home = Home::start(3);
    for (name, contents) in contents() {
        home.make(name, &contents);
        home.succeed(PFSBZIP2, &[name]);
        home.succeed(PFSBZIP2, &[&format!("pfs:{name}"), "-b", "1"]);
        let packed = format!("{name}.bz2");
        assert!(home.read(name) == contents, "the input stays");
        assert!(home.succeed(PFSBZIP2, &["-d", &packed, "-"]) == contents, "{name}");
        assert!(home.succeed(PFSBZIP2, &["-d", &format!("pfs:{packed}"), "-"]) == contents, "{name}");
        home.succeed(PFSBZIP2, &["-df", &format!("pfs:{packed}")]);
        assert!(home.succeed(MYCAT, &[&format!("pfs:{name}")]) == contents, "{name}");
        if has("bzip2") {
            assert!(home.succeed("bzip2", &["-dc", &packed]) == contents, "{name}");
            let striped = home.succeed(MYCAT, &[&format!("pfs:{packed}")]);
            assert!(finish_with_input(home.command("bzip2", ["-d"]), striped).stdout == contents, "{name}");
            let theirs = home.succeed("bzip2", &["-c", name]);
            let twice = [theirs.clone(), theirs].concat();
            let ours = finish_with_input(home.command(PFSBZIP2, ["-d"]), twice);
            assert!(ours.stdout == [contents.clone(), contents.clone()].concat(), "{name}");
        }
    }
}

#[test]
fn damaged_archives_are_refused_and_leave_nothing() {
    let home = Home::start(2);
    home.make("text", &text(10_000));
    home.succeed(PFSBZIP2, &["text"]);
    let whole = home.read("text.bz2");
    let mut wrong = whole.clone();
    wrong[whole.len() / 2] ^= 0x40;
    for (name, contents) in
        [("short", &whole[..whole.len() / 2]), ("wrong", &wrong), ("no archive", b"hello")]
    {
        std::fs::write(home.path(name), contents).expect("a file");
        for output in ["out", "pfs:out"] {
            let said = home.fail(PFSBZIP2, &["-d", name, output]);
            assert!(said.contains(&format!("pfsbzip2: {name}: ")), "{said}");
        }
    }
    assert_eq!(home.striped(), ["text"]);
    assert!(!home.path("out").exists());
    assert!(home.fail(PFSBZIP2, &["-d", "text"]).contains("does not end with .bz2"));
    assert!(home.fail(PFSBZIP2, &["text"]).contains("already"));
}

#[test]
fn the_time_is_a_row_of_a_table() {
    let home = Home::start(2);
    home.make("text", &text(1000));
    let bytes = text(1000).len();
    for (program, name, arguments, phases) in [
        (MYCAT, "mycat", &["pfs:text"][..], &["all"][..]),
        (PFSGREP, "pfsgrep", &["-q", "nothing at all", "text"], &["all"]),
        (PFSSORT, "pfssort", &["text"], &["block sort", "merge", "all"]),
        (PFSBZIP2, "pfsbzip2", &["text", "-"], &["all"]),
    ] {
        let output = home.run(program, &[&["--time"], arguments].concat());
        let said = String::from_utf8(output.stderr).expect("text");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "program,phase,bytes_read,bytes_written,elapsed_s,user_s,system_s,waiting_s");
        assert_eq!(lines.len(), phases.len() + 1, "{said}");
        for (line, phase) in lines[1..].iter().zip(phases) {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!((cells[0], cells[1]), (name, *phase));
            let seconds: Vec<f64> = cells[4..].iter().map(|cell| cell.parse().expect("seconds")).collect();
            let waiting = (seconds[0] - seconds[1] - seconds[2]).max(0.0);
            assert!((seconds[3] - waiting).abs() < 1e-5, "{line}");
        }
        let last: Vec<&str> = lines[lines.len() - 1].split(',').collect();
        assert_eq!(last[2], bytes.to_string(), "{said}");
    }
}
