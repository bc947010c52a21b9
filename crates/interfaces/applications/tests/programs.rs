//! Compares the programs with cat, grep, sort and bzip2 of the system, on ordinary and striped files.

mod common;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use common::{
    FS2PFS, Home, MYCAT, PFS2FS, PFSBZIP2, PFSGREP, PFSSORT, finish, finish_with_input, noise, text,
};
use prerequisites::has;

/// Returns contents that often cause trouble: empty, without a final newline, binary, long lines, about the size of a
/// page.
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

#[test]
fn files_are_copied_to_stripes_and_back_unchanged() {
    let home = Home::start(3);
    for (name, contents) in contents() {
        home.make(name, &contents);
        home.succeed(PFS2FS, &[name, "back", "--force"]);
        assert!(home.read("back") == contents, "{name}");
        assert!(home.succeed(PFS2FS, &[&format!("pfs:{name}")]) == contents, "{name}");
        for buffer in ["1", "1000", "1MiB"] {
            // Copying byte by byte is slow.
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

/// A program's trace contains its operations on striped files; an option or a variable requests the trace.
#[test]
fn programs_write_traces() {
    let home = Home::start(2);
    home.make("file", &text(30_000));
    let is_trace = |name: &str, state: &[u8]| {
        let trace = home.read(name);
        let has_state = trace.windows(state.len()).any(|bytes| bytes == state);
        assert!(trace.starts_with(b"\x89TLV") && has_state, "{name}: {} bytes", trace.len());
    };
    home.succeed(MYCAT, &["pfs:file", "--trace", "cat.tlv"]);
    is_trace("cat.tlv", b"page-cache read");
    let mut sort = home.command(PFSSORT, ["pfs:file", "-o", "pfs:sorted"]);
    sort.env("STARFISH_TRACE", "sort.tlv");
    assert!(finish(sort).status.success());
    is_trace("sort.tlv", b"page-cache write");
}

/// The command line in the appendix of the thesis, and its variables.
#[test]
fn options_of_pdiol_precede_a_dash() {
    let home = Home::start(3);
    home.make("a", &text(30_000));
    let line =
        ["-disk_number", "2", "-prefetch", "1", "-w", "0", "-LOG", "1", "-log", "log", "-", "pfs:a", "b"];
    home.succeed(PFS2FS, &line);
    assert!(home.read("b") == text(30_000));
    let log = String::from_utf8(home.read("log")).expect("text");
    assert!(log.contains("pfs2fs begins: adaptive window, write-behind off, new files on 2 disks"), "{log}");
    let mut put = home.command(FS2PFS, ["b", "on-one"]);
    put.env("DISKNUMBER", "1").env("WINDOW_SIZE", "80x24");
    assert!(finish(put).status.success());
    assert_eq!(home.disks("on-one"), 1);
    for (line, part) in [
        (["-disk_number", "x", "-", "pfs:a"], "the option -disk_number: \"x\" is not a valid value"),
        (["-unknown", "1", "-", "pfs:a"], "unexpected argument '-u'"),
    ] {
        let stderr = home.fail(PFS2FS, &line);
        assert!(stderr.contains(part), "{stderr}");
    }
    let mut help = home.command(PFS2FS, ["--help"]);
    help.env("PDIOL_WINDOW_SIZE", "many");
    assert!(finish(help).status.success(), "--help prints the help despite wrong options");
    // Options of the program itself take precedence: here the pattern 0 as a word, in standard input.
    let input = b"1\n0\n".to_vec();
    let output = finish_with_input(home.command(PFSGREP, ["-w", "0", "-"]), input);
    assert_eq!(output.stdout, b"0\n");
}

/// `fs2pfs` and `starfish put` have the same default, so both create the same file.
#[test]
fn fs2pfs_creates_files_with_blocks_of_256_kib() {
    let home = Home::start(1);
    std::fs::write(home.path("file"), noise(600_000)).expect("room");
    home.succeed(FS2PFS, &["file"]);
    assert_eq!(home.block_bytes("file"), 256 << 10);
}

#[test]
fn a_failed_copy_reports_its_cause_and_leaves_no_file() {
    let home = Home::start(2);
    home.make("file", b"contents");
    for (program, arguments, part) in [
        (PFS2FS, &["nothing"][..], "nothing: no such file"),
        (PFS2FS, &["file", "file"], "file: already exists"),
        (FS2PFS, &["file"], "pfs:file: already exists"),
        (FS2PFS, &["-"], "Give one: fs2pfs FILE NAME"),
        (FS2PFS, &["nothing", "else"], "nothing: No such file"),
        (MYCAT, &["file", "nothing", "-o", "pfs:new"], "nothing: No such file"),
        (MYCAT, &["file", "nothing", "-o", "new"], "nothing: No such file"),
        (MYCAT, &["."], "it is a directory"),
        (MYCAT, &["pfs:file", "-o", "pfs:file", "-f"], "the file is both input and output"),
        (MYCAT, &["file", "-o", "./file", "-f"], "file: the file is both input and output"),
        (PFS2FS, &["file", "new/"], "new/: no such directory"),
        (MYCAT, &["pfs:file", "--agents", "127.0.0.1:1"], "127.0.0.1:1"),
    ] {
        let stderr = home.fail(program, arguments);
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
        assert_eq!(
            (home.striped(), home.local()),
            (vec!["file".into()], vec!["file".into()]),
            "{arguments:?}"
        );
    }
}

/// Runs a line with `sh -c`, with `"$0"` as the program and a file size limit of 512 KB.
fn by_shell(home: &Home, program: &str, line: &str) -> Output {
    common::finish(home.command("sh", ["-c", &format!("trap '' XFSZ; ulimit -f 1000; {line}"), program]))
}

#[test]
fn a_failed_replacement_leaves_the_striped_file() {
    let home = Home::start(2);
    home.make("file", b"contents");
    home.succeed(FS2PFS, &["file", "small", "--block", "8KiB"]);
    for (program, arguments, name, part) in [
        (FS2PFS, &["file", "--block", "2MiB"][..], "file", "at most 1048576"),
        (FS2PFS, &["file", "--block", "0"], "file", "use 1 to"),
        (FS2PFS, &["pfs:small", "file"], "file", "mycat pfs:ONE -o pfs:OTHER"),
        (MYCAT, &["file", "-o", "pfs:small", "--cache", "32KiB"], "small", "does not fit into a cache"),
    ] {
        let stderr = home.fail(program, &[&["-f"], arguments].concat());
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
        assert_eq!(home.succeed(MYCAT, &[&format!("pfs:{name}")]), b"contents", "{arguments:?}");
    }
}

#[test]
fn an_output_that_is_also_an_input_is_rejected() {
    let home = Home::start(2);
    home.make("file", &text(1000));
    std::os::unix::fs::symlink("file", home.path("link")).expect("a link");
    std::fs::hard_link(home.path("file"), home.path("twin")).expect("a link");
    let before = (home.succeed(MYCAT, &["pfs:file"]), home.read("file"));
    for (program, arguments) in [
        (PFSBZIP2, &["-f", "pfs:file", "pfs:file"][..]),
        (PFSBZIP2, &["-f", "file", "link"]),
        (MYCAT, &["-f", "twin", "-o", "file"]),
    ] {
        let stderr = home.fail(program, arguments);
        assert!(stderr.contains("the file is both input and output"), "{arguments:?}: {stderr}");
    }
    for (program, line) in [
        (MYCAT, "\"$0\" twin link >> file"),
        (MYCAT, "\"$0\" < file >> file"),
        (PFSGREP, "\"$0\" '' file >> file"),
        (PFSGREP, "\"$0\" '' < file >> file"),
        (PFSBZIP2, "\"$0\" file - >> file"),
    ] {
        let Output { status, stderr, .. } = by_shell(&home, program, line);
        let stderr = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(2), "{line}: {stderr}");
        assert!(stderr.contains("the file is both input and output"), "{line}: {stderr}");
    }
    assert!((home.succeed(MYCAT, &["pfs:file"]), home.read("file")) == before);
    // Programs that write only after all input has been read are safe, as are the system's programs.
    for (program, line) in [(PFSGREP, "\"$0\" -c '' file >> file"), (PFSSORT, "\"$0\" file >> file")] {
        let Output { status, stderr, .. } = by_shell(&home, program, line);
        assert!(status.success(), "{line}: {}", String::from_utf8_lossy(&stderr));
    }
    assert_eq!(home.read("file").iter().filter(|&&byte| byte == b'\n').count(), 2 * 1001);
}

fn mode(home: &Home, name: &str) -> u32 {
    home.path(name).metadata().expect("a file").permissions().mode() & 0o777
}

#[test]
fn copies_of_private_files_stay_private() {
    let home = Home::start(1);
    for name in ["salaries", "new"] {
        std::fs::write(home.path(name), "b\na\n").expect("a file");
        std::fs::set_permissions(home.path(name), Permissions::from_mode(0o600)).expect("it is ours");
    }
    home.succeed(PFSSORT, &["salaries", "-o", "salaries"]);
    assert_eq!((home.read("salaries"), mode(&home, "salaries")), (b"a\nb\n".into(), 0o600));
    home.succeed(PFSBZIP2, &["salaries"]);
    assert_eq!(mode(&home, "salaries.bz2"), 0o600);
    home.succeed(PFSBZIP2, &["-d", "salaries.bz2", "unpacked"]);
    assert_eq!(mode(&home, "unpacked"), 0o600);
    home.succeed(FS2PFS, &["salaries"]);
    home.succeed(PFS2FS, &["salaries", "new", "--force"]);
    assert_eq!((home.read("new"), mode(&home, "new")), (b"a\nb\n".into(), 0o600));
}

#[test]
fn output_to_a_symbolic_link_replaces_its_target() {
    let home = Home::start(1);
    std::fs::write(home.path("data-17"), "b\na\n").expect("a file");
    std::os::unix::fs::symlink("data-17", home.path("latest")).expect("a link");
    home.succeed(PFSSORT, &["latest", "-o", "latest"]);
    assert_eq!(home.read("data-17"), b"a\nb\n");
    assert_eq!(std::fs::read_link(home.path("latest")).expect("a link"), Path::new("data-17"));
}

#[test]
fn pfsgrep_prints_the_same_as_grep() {
    if !has("grep") {
        return;
    }
    let home = Home::start(3);
    let options: [&[&str]; 18] = [
        &["star"],
        &["-E", "sea|fish$"],
        &["-e", "star", "-e", "-9"],
        &["-F", "-ve", "-9"],
        &["--", "-9"],
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
                // In binary data, the meaning of `.` and of words depends on the locale.
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
    // An unknown option is an error, not a pattern.
    for option in ["-o", "-9", "--color"] {
        let stderr = home.fail(PFSGREP, &[option, "star", "text"]);
        assert!(stderr.contains(&format!("unexpected argument '{option}'")), "{stderr}");
        assert!(stderr.contains("use '-- "), "{stderr}");
    }
    assert!(home.fail(PFSGREP, &[]).contains("PATTERN"));
    let output = finish_with_input(home.command(PFSGREP, ["-e", "a"]), b"a\nb\n".to_vec());
    assert_eq!(output.stdout, b"a\n");
}

#[test]
fn pfssort_prints_the_same_as_sort() {
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
            // Memory for the whole file, and for a small part: many runs, merged in several steps.
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
    // Input and output are the same file.
    home.succeed(PFSSORT, &["unfinished", "-o", "unfinished"]);
    assert_eq!(home.read("unfinished"), b"-3\nsea\nstar\n");
    home.succeed(PFSSORT, &["pfs:unfinished", "-o", "pfs:unfinished", "-T", "tmp"]);
    assert_eq!(home.succeed(MYCAT, &["pfs:unfinished"]), b"-3\nsea\nstar\n");
    let more = |name: &&String| !contents().iter().any(|(made, _)| *made == name.as_str());
    assert_eq!(home.striped().iter().filter(more).collect::<Vec<_>>(), ["sorted"]);
    assert!(home.local().iter().all(|name| !name.starts_with('.')), "{:?}", home.local());
}

#[test]
fn pfssort_merges_many_runs_in_several_steps() {
    let home = Home::start(2);
    // About sixty runs, with memory for the buffers of two.
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
fn pfssort_places_its_output_by_a_policy() {
    let home = Home::start(3);
    let contents = text(60_000);
    home.make("large", &contents);
    let mut lines: Vec<&[u8]> = contents.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort();
    let sort = ["-S", "256KiB", "pfs:large", "-o", "pfs:sorted"];
    let ways: [(&[&str], &[usize]); 6] = [
        (&[], &[0, 1, 2]),
        (&["--placement", "2"], &[0]),
        (&["--placement", "3", "--job", "3/3"], &[2]),
        (&["--placement", "1", "--job", "2/2"], &[1]),
        (&["--placement", "4", "--job", "2/3"], &[1]),
        (&["--placement", "striped"], &[0, 1, 2]),
    ];
    // Each output replaces the previous output, which is on other disks.
    for (way, expected) in ways {
        home.succeed(PFSSORT, &[&sort[..], way].concat());
        assert!(home.succeed(MYCAT, &["pfs:sorted"]) == lines.concat(), "{way:?}");
        assert_eq!(home.disks_of("sorted"), expected, "{way:?}");
    }
    assert_eq!(home.striped(), ["large", "sorted"]);
    let refused: [(&[&str], &str); 6] = [
        (&["--placement", "2", "--job", "4/4"], "no more jobs than disks"),
        (&["--placement", "1", "--job", "3/3"], "one more disk"),
        (&["--placement", "3", "-T", "tmp"], "--temporary pfs:"),
        (&["--job", "1/2"], "--placement 3"),
        (&["--placement", "5"], "policy from 1 to 4"),
        (&["--placement", "2", "--job", "2/1"], "expected K/J"),
    ];
    for (way, part) in refused {
        let stderr = home.fail(PFSSORT, &[&sort[..], way].concat());
        assert!(stderr.contains(part), "{way:?}: {stderr}");
    }
}

#[test]
fn pfssort_needs_few_open_files() {
    let home = Home::start(1);
    let contents = text(400_000);
    std::fs::write(home.path("large"), &contents).expect("a file");
    let mut lines: Vec<&[u8]> = contents.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort();
    // About sixty runs.
    let line = "ulimit -n 32; exec \"$0\" -S 256KiB large";
    let Output { stdout, stderr, .. } = common::finish(home.command("sh", ["-c", line, PFSSORT]));
    assert!(stdout == lines.concat(), "{}", String::from_utf8_lossy(&stderr));
}

#[test]
fn pfsbzip2_packs_and_unpacks() {
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

/// A bzip2 stream marks its own end; tapes and block devices fill their last block with zeros.
#[test]
fn bytes_after_an_archive_are_reported_and_ignored() {
    let home = Home::start(2);
    let contents = text(200_000);
    home.make("text", &contents);
    home.succeed(PFSBZIP2, &["text"]);
    let packed = home.read("text.bz2");
    for (name, streams, behind) in [
        ("words", 1, &b"tail\n"[..]),
        ("zeros", 2, &[0; 10_240]),
        ("short", 1, b"BZ"),
        ("mark", 2, b"BZh0 is no stream"),
        ("nothing", 2, b""),
    ] {
        let archive = [packed.repeat(streams), behind.to_vec()].concat();
        std::fs::write(home.path(&format!("{name}.bz2")), archive).expect("a file");
        for output in ["out", "pfs:out"] {
            let Output { status, stderr, .. } =
                common::finish(home.command(PFSBZIP2, ["-df", &format!("{name}.bz2"), output]));
            let stderr = String::from_utf8_lossy(&stderr);
            assert!(status.success(), "{stderr}");
            let is_reported = stderr.contains(&format!("pfsbzip2: {name}.bz2: ignored trailing bytes"));
            assert_eq!(is_reported, !behind.is_empty(), "{stderr}");
            assert!(home.succeed(MYCAT, &[output]) == contents.repeat(streams), "{name}");
        }
    }
    // Bytes that begin like a stream must be a valid one.
    std::fs::write(home.path("half.bz2"), [packed.clone(), packed[..100].to_vec()].concat()).expect("a file");
    assert!(home.fail(PFSBZIP2, &["-df", "half.bz2", "out"]).contains("half.bz2"));
}

#[test]
fn damaged_archives_are_rejected_and_leave_no_file() {
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
            let stderr = home.fail(PFSBZIP2, &["-d", name, output]);
            assert!(stderr.contains(&format!("pfsbzip2: {name}: ")), "{stderr}");
        }
    }
    assert_eq!(home.striped(), ["text"]);
    assert!(!home.path("out").exists());
    assert!(home.fail(PFSBZIP2, &["-d", "text"]).contains("does not end with .bz2"));
    assert!(home.fail(PFSBZIP2, &["text"]).contains("already"));
}

#[test]
fn the_time_option_prints_one_row_for_each_phase() {
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
        let stderr = String::from_utf8(output.stderr).expect("text");
        let lines: Vec<&str> = stderr.lines().collect();
        assert_eq!(lines[0], "program,phase,bytes_read,bytes_written,elapsed_s,user_s,system_s,waiting_s");
        assert_eq!(lines.len(), phases.len() + 1, "{stderr}");
        for (line, phase) in lines[1..].iter().zip(phases) {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!((cells[0], cells[1]), (name, *phase));
            let seconds: Vec<f64> = cells[4..].iter().map(|cell| cell.parse().expect("seconds")).collect();
            let waiting = (seconds[0] - seconds[1] - seconds[2]).max(0.0);
            assert!((seconds[3] - waiting).abs() < 1e-5, "{line}");
        }
        let last: Vec<&str> = lines[lines.len() - 1].split(',').collect();
        assert_eq!(last[2], bytes.to_string(), "{stderr}");
    }
}

#[test]
fn shell_completion_offers_local_and_striped_names() {
    let home = Home::start(1);
    home.make("notes.txt", b"sea\n");
    let offered = |program: &str, words: &[&str]| {
        let mut command = home.command(program, ["--"]);
        command.arg("program").args(words).env("STARFISH_COMPLETE", "bash");
        String::from_utf8(finish(command).stdout).expect("text")
    };
    assert_eq!(offered(MYCAT, &["not"]), "notes.txt\n");
    assert_eq!(offered(MYCAT, &["pf"]), "pfs:\n");
    assert_eq!(offered(MYCAT, &["pfs:"]), "pfs:notes.txt\n");
    assert_eq!(offered(PFS2FS, &["not"]), "notes.txt\n");
    assert_eq!(offered(PFSGREP, &["sea", "pfs:notes.txt", "pfs:n"]), "pfs:notes.txt\n");
    assert_eq!(offered(MYCAT, &["pfs:x"]), "");
}
