//! Programs in C and C++, compiled with the header and run with real agents on loopback.
//!
//! The programs in `tests/c` check themselves, with the compiler's sanitizers. The outputs of those in `examples/c` are
//! compared with the expected ones.

#[path = "common/c_library.rs"]
mod c_library;
#[path = "../../../command/cli/tests/common/killing.rs"]
mod killing;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use c_library::{SANITIZERS, installed, root, sanitizers, succeed};
use killing::{contents, draw, kill_after, rounds};
use pdiol::{ErrorKind, OpenOptions, Session};
use test_agents::Agents;

/// Warning options, as errors: users may compile with them, so the header must cause no warning.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wconversion", "-Werror"];

fn header() -> PathBuf {
    root().join("crates/interfaces/libpdiol/include")
}

/// Returns a directory with the libraries under their installed names.
fn libraries() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| installed("pdiol"))
}

/// Compiles a program and links it with the shared library.
fn compile(compiler: &str, source: &str, into: &Path, options: &[&str]) -> PathBuf {
    let program = into.join(Path::new(source).file_stem().expect("a name"));
    let rpath = format!("-Wl,-rpath,{}", libraries().display());
    let mut command = Command::new(compiler);
    command.args(options).arg("-I").arg(header()).arg(root().join(source));
    command.arg("-o").arg(&program).arg("-L").arg(libraries()).args(["-lpdiol", "-pthread", &rpath]);
    succeed(&mut command);
    program
}

/// Returns a command that uses these agents, in the directory of the test, without the user's environment.
fn run(program: &Path, agents: &Agents) -> Command {
    let mut command = Command::new(program);
    command.current_dir(agents.directory.path()).env_clear();
    command.env("STARFISH_AGENTS", agents.names()).env("STARFISH_KEY_FILE", agents.key_file());
    command.env("HOME", "/nonexistent");
    command
}

/// Runs a program of `tests/c` that checks itself.
fn check(name: &str) {
    let agents = Agents::start(3);
    let options = [sanitizers(name), &WARNINGS, &["-std=c11", "-D_GNU_SOURCE", "-O1"]].concat();
    let program = compile(
        "cc",
        &format!("crates/interfaces/libpdiol/tests/c/{name}.c"),
        agents.directory.path(),
        &options,
    );
    succeed(run(&program, &agents).args(["-c", "1M", "-", "argument"]));
}

#[test]
fn every_function_behaves_as_documented() {
    check("functions");
}

#[test]
fn modes_behave_as_in_libc() {
    check("modes");
}

#[test]
fn names_may_contain_any_bytes() {
    check("names");
}

#[test]
fn threads_share_files() {
    check("threads");
}

#[test]
fn signals_reach_the_program_and_no_library_thread() {
    check("signals");
}

#[test]
fn a_forked_child_never_hangs() {
    check("fork");
}

/// A trace requested by option or variable contains the states of the library. If both name the same file, it is one
/// trace.
#[test]
fn the_library_records_its_own_states() {
    let agents = Agents::start(2);
    let program =
        compile("cc", "crates/interfaces/libpdiol/tests/c/traced.c", agents.directory.path(), &["-O1"]);
    succeed(run(&program, &agents).args(["-c", "1M", "-trace", "own.tlv", "-"]));
    succeed(run(&program, &agents).args(["-c", "1M", "-"]).env("PDIOL_TRACE", "own.tlv"));
    let file = fs::read(agents.directory.path().join("own.tlv")).expect("a trace");
    let timeline = trace::read("own.tlv", file.as_slice()).expect("a trace");
    assert_eq!(timeline.processes.len(), 2);
    let states: Vec<&str> = timeline.states.iter().map(|state| state.name.as_str()).collect();
    let expected =
        ["page-cache read", "page-cache write", "wait for page", "prefetch", "write behind", "ask: read"];
    for state in expected {
        assert!(states.contains(&state), "{state}: {states:?}");
    }
}

/// Returns the contents of the file of this name, or the error of opening it.
fn read(session: &Session, name: &str) -> pdiol::Result<Vec<u8>> {
    let mut found = Vec::new();
    session.open(name, OpenOptions::new().read(true))?.read_to_end(&mut found).expect("its contents");
    Ok(found)
}

/// Removes all files. Agents remove contents that a killed writer had open as soon as they notice its disconnection.
fn collect(agents: &Agents, session: &Session) {
    for name in session.list().expect("the agents are there") {
        session.unlink(&name).expect("it is there");
    }
    let start = Instant::now();
    while !agents.stripes().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(10), "{:?} stay", agents.stripes());
        let removed = session.tree().run("removing contents without a name", |node, what| async move {
            node.explained(&what, node.tree().remove_orphans().await)
        });
        removed.wait().expect("the agents are there");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A writer that creates, overwrites or appends to a file is killed at a random time. The file then has a prefix of the
/// written data, or its previous contents. If the writer was killed while it truncated the file, a part may be zeros:
/// the agents truncate the stripes before the namespace records the new length. Each round uses another name, since an
/// agent may execute the last request after the writer's death.
#[test]
fn a_killed_writer_leaves_a_prefix_or_the_old_contents() {
    let agents = Agents::start(3);
    let session = agents.session();
    let options = [&WARNINGS[..], &["-O1", "-std=c11", "-D_GNU_SOURCE"]].concat();
    let writer =
        compile("cc", "crates/interfaces/libpdiol/tests/c/writer.c", agents.directory.path(), &options);
    let (mut whole, mut as_before, mut half_cut, mut partly, mut missing) = (0, 0, 0, 0, 0);
    for round in 0..rounds() {
        let draw = |what, below| draw(&[round, what], below);
        let name = format!("file {round}");
        let before = contents(1 + draw(1, 2 << 20) as usize, !round);
        let before = Some(before).filter(|_| draw(2, 3) > 0);
        if let Some(before) = &before {
            let options = OpenOptions::new().write(true).create_new(true);
            let mut file = session.open(&name, options).expect("made");
            file.write_all(before).and_then(|()| Ok(file.close()?)).expect("room");
        }
        let (mode, disks) = [("w", "3"), ("w", "2"), ("a", "3")][draw(3, 3) as usize];
        let how = ["plainly", "flushing", "backwards"][draw(4, if mode == "a" { 2 } else { 3 }) as usize];
        let data = contents(1 + draw(5, 6 << 20) as usize, round);
        let mut command = run(&writer, &agents);
        command.args(["-d", disks, "-c", "1M", "-", &name, mode, &round.to_string()]);
        command.args([&data.len().to_string(), how]).stderr(Stdio::piped());
        let writing = command.spawn().expect("the program");
        let is_done = kill_after(writing, Duration::from_micros(draw(6, 80_000)));

        let start = before.clone().filter(|_| mode == "a").unwrap_or_default();
        let expected = [&start[..], &data].concat();
        match read(&session, &name) {
            Ok(found) if found == expected => whole += 1,
            Ok(found) if !is_done && Some(&found) == before.as_ref() => as_before += 1,
            Ok(found)
                if !is_done && mode == "w" && before.as_ref().is_some_and(|old| is_half_cut(&found, old)) =>
            {
                half_cut += 1;
            }
            Ok(found) => {
                let is_beginning = found.len() >= start.len() && expected.starts_with(&found);
                assert!(!is_done && is_beginning, "round {round}, {how}: {} bytes", found.len());
                partly += 1;
            }
            Err(error) => {
                let is_missing = error.kind() == ErrorKind::NotFound;
                assert!(!is_done && before.is_none() && is_missing, "round {round}: {error}");
                missing += 1;
            }
        }
        if round % 8 == 7 {
            collect(&agents, &session);
        }
    }
    collect(&agents, &session);
    println!(
        "{whole} complete, {as_before} unchanged, {half_cut} partly truncated, {partly} with a prefix, {missing} not created"
    );
}

/// Returns true if a file has the length of the old one and differs from it only by zeros.
fn is_half_cut(found: &[u8], old: &[u8]) -> bool {
    found.len() == old.len() && found.iter().zip(old).all(|(found, old)| *found == 0 || found == old)
}

/// Members of a job write into one file, and continually flush their small caches. One member, the first or another, is
/// killed. Errors of the others name the killed member, and the others continue. The file has all data of the others,
/// and all data that the killed member had reported as flushed.
#[test]
fn a_killed_member_of_a_job_loses_only_its_unflushed_data() {
    const MEMBERS: usize = 3;
    const RECORDS: usize = 20_000;
    let agents = Agents::start(2);
    let session = agents.session();
    let options = [&WARNINGS[..], &["-O1", "-std=c11", "-D_GNU_SOURCE"]].concat();
    let program =
        compile("cc", "crates/interfaces/libpdiol/tests/c/member.c", agents.directory.path(), &options);
    let mut reported_failures = 0;
    for round in 0..6 {
        let (name, killed) = (format!("shared {round}"), round as usize % MEMBERS);
        let options = OpenOptions::new().write(true).create_new(true);
        session.open(&name, options).and_then(|file| file.close()).expect("made");
        let start = |rank: usize| {
            let mut command = run(&program, &agents);
            command.args(["-write_cache", "16K", "-job", &name, "-", &name, &rank.to_string()]);
            // The killed member would otherwise run for a long time.
            let records = if rank == killed { 100 * RECORDS } else { RECORDS };
            command.args([MEMBERS, records].map(|number| number.to_string()));
            command.stdin(Stdio::piped());
            let mut member =
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
            let mut counts = BufReader::new(member.stdout.take().expect("piped")).lines();
            assert_eq!(counts.next().expect("it says so").expect("text"), "0", "it has joined");
            (member, counts)
        };
        let mut members: Vec<_> = (0..MEMBERS).map(start).collect();
        for (member, _) in &mut members {
            member.stdin.take().expect("piped").write_all(b"\n").expect("it waits for that");
        }
        let (victim, counts) = members.remove(killed);
        let pid = victim.id();
        let is_done = kill_after(victim, Duration::from_micros(20_000 + draw(&[round, 1], 100_000)));
        let flushed = counts.map(|line| line.expect("text").parse().expect("a count")).last().unwrap_or(0);
        assert!(!is_done, "round {round}: killed too late");
        for (mut member, counts) in members {
            let last = counts.map(|line| line.expect("text")).last();
            let mut stderr = String::new();
            member.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
            assert!(member.wait().expect("a child of ours").success(), "round {round}: {stderr}");
            assert_eq!(last, Some(RECORDS.to_string()));
            let names_it = |line: &str| line.contains(&format!("process {pid} on "));
            assert!(stderr.lines().all(names_it), "round {round}, {pid} was killed: {stderr}");
            reported_failures += usize::from(!stderr.is_empty());
        }
        let found = read(&session, &name).expect("it is there");
        for (index, record) in found.chunks(8).enumerate() {
            let (number, rank) = (index / MEMBERS, index % MEMBERS);
            let value = u64::from_le_bytes(record.try_into().expect("all of them are whole"));
            let is_missing = value == 0 && number >= if rank == killed { flushed } else { RECORDS };
            assert!(
                value == number as u64 + 1 || is_missing,
                "round {round}: record {number} of {rank} is {value}"
            );
        }
        let whole = 8 * (RECORDS * MEMBERS - usize::from(killed == MEMBERS - 1));
        assert!(found.len() >= whole, "round {round}: {} bytes", found.len());
    }
    println!("{reported_failures} members got an error");
}

#[test]
fn the_header_compiles_as_c99_c11_and_cpp() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("header.c");
    fs::write(&source, "#include <pdiol.h>\n#include <pdiol.h>\nint main(void) { return AP_NORMAL; }\n")
        .expect("room");
    for (compiler, language, standard) in
        [("cc", "c", "c99"), ("cc", "c", "c11"), ("c++", "c++", "c++11"), ("c++", "c++", "c++20")]
    {
        let mut command = Command::new(compiler);
        command.args(["-x", language, &format!("-std={standard}"), "-pedantic", "-fsyntax-only"]);
        succeed(command.args(WARNINGS).arg("-I").arg(header()).arg(&source));
    }
}

#[test]
fn the_examples_copy_files_as_the_thesis_does() {
    let agents = Agents::start(4);
    let directory = agents.directory.path();
    let options = [&WARNINGS[..], &["-O1", "-std=c99", "-D_POSIX_C_SOURCE=200809L"]].concat();
    let fs2pfs = compile("cc", "examples/c/fs2pfs.c", directory, &options);
    let pfs2fs = compile("cc", "examples/c/pfs2fs.c", directory, &options);
    for bytes in [0_usize, 1, 65_535, 65_536, 65_537, 1_310_720, 3_000_000] {
        let contents: Vec<u8> = (0..bytes).map(|offset| (offset * 31 % 251) as u8).collect();
        fs::write(directory.join("in"), &contents).expect("room");
        succeed(run(&fs2pfs, &agents).args(["-disk_number", "3", "-", "in", "sort.txt"]));
        succeed(run(&pfs2fs, &agents).args([
            "-disk_number",
            "4",
            "-prefetch",
            "1",
            "-w",
            "0",
            "-",
            "sort.txt",
            "out",
        ]));
        assert!(fs::read(directory.join("out")).expect("it is there") == contents, "{bytes} bytes");
        let printed = succeed(run(&pfs2fs, &agents).arg("sort.txt")).stdout;
        assert!(printed == contents, "{bytes} bytes");
        // Rust programs see the same file.
        let session = agents.session();
        let mut read = Vec::new();
        let mut file = session.open("sort.txt", OpenOptions::new().read(true)).expect("it was made");
        file.read_to_end(&mut read).expect("its contents");
        assert!(read == contents, "{bytes} bytes");
        let options = OpenOptions::new().write(true).create(true).truncate(true);
        let mut file = session.open("from Rust", options).expect("made");
        file.write_all(&contents).expect("room");
        file.close().expect("written");
        let printed = succeed(run(&pfs2fs, &agents).arg("from Rust")).stdout;
        assert!(printed == contents, "{bytes} bytes");
    }
}

#[test]
fn the_examples_count_and_print_lines() {
    let agents = Agents::start(2);
    let directory = agents.directory.path();
    let lines = compile("c++", "examples/c/lines.cpp", directory, &[&WARNINGS[..], &["-std=c++11"]].concat());
    let count = compile("cc", "examples/c/count.c", directory, &[&WARNINGS[..], &["-std=c99"]].concat());
    let printed = succeed(run(&lines, &agents).args(["notes", "first line", "second"])).stdout;
    assert_eq!(String::from_utf8_lossy(&printed), "first line\nsecond\n");
    let counted = succeed(run(&count, &agents).args(["-W", "4", "-", "notes"])).stdout;
    assert_eq!(String::from_utf8_lossy(&counted), "2 3 18 notes\n");
}

#[test]
fn errors_of_options_files_and_agents_are_reported() {
    let agents = Agents::start(1);
    let count = compile("cc", "examples/c/count.c", agents.directory.path(), &["-std=c99"]);
    let says = |command: &mut Command, what: &str| {
        let output = command.output().expect("the program");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && text.contains(what), "{what}: {text}");
    };
    says(
        run(&count, &agents).arg("nothing"),
        "nothing: no such file or directory. `starfish ls` lists the existing files",
    );
    says(run(&count, &agents).args(["-W", "x", "-", "a"]), "the option -window: \"x\" is not a valid value");
    says(
        run(&count, &agents).env("PDIOL_WRITEBEHIND", "2").arg("a"),
        "the environment variable PDIOL_WRITEBEHIND",
    );
    says(
        run(&count, &agents).args(["-l", "1", "-L", "/nonexistent/log", "-", "a"]),
        "the log /nonexistent/log",
    );
    says(
        run(&count, &agents).env("STARFISH_AGENTS", "127.0.0.1:1").arg("a"),
        "agent 127.0.0.1:1: Connection refused",
    );
    says(run(&count, &agents).env("STARFISH_AGENTS", "").arg("a"), "neither STARFISH_AGENTS, PDIOLCONF nor");
    says(
        run(&count, &agents).env("STARFISH_AGENTS", "").env("PDIOLCONF", "/nonexistent/nodes").arg("a"),
        "the node file /nonexistent/nodes",
    );
    let help = succeed(run(&count, &agents).args(["-h", "-"])).stdout;
    assert!(
        String::from_utf8_lossy(&help).contains("Usage: count [OPTIONS OF PDIOL] - [ARGUMENTS OF count]")
    );
}

#[test]
fn a_node_file_names_the_agents() {
    let agents = Agents::start(2);
    let directory = agents.directory.path();
    let lines = compile("c++", "examples/c/lines.cpp", directory, &["-std=c++11"]);
    fs::create_dir(directory.join("bin")).expect("room");
    // The name in the text of the thesis, and the name in its appendix.
    for name in ["PDIOLconf", "bin/conf"] {
        let path = directory.join(name);
        fs::write(&path, agents.names().replace(',', "\n") + " # both\n").expect("room");
        let mut command = run(&lines, &agents);
        command.env_remove("STARFISH_AGENTS").env("HOME", directory).args(["x", "y"]);
        assert_eq!(String::from_utf8_lossy(&succeed(&mut command).stdout), "y\n");
        fs::remove_file(path).expect("it is there");
    }
}

#[test]
fn the_log_contains_settings_agents_and_outcome() {
    let agents = Agents::start(1);
    let directory = agents.directory.path();
    let lines = compile("c++", "examples/c/lines.cpp", directory, &["-std=c++11"]);
    succeed(run(&lines, &agents).args(["-LOG", "1", "-log", "my log", "-", "x", "y"]));
    let log = fs::read_to_string(directory.join("my log")).expect("it is there");
    assert!(
        log.contains("lines begins: ") && log.contains(&agents.names()) && log.contains("all is well"),
        "{log}"
    );
}

#[test]
fn variables_of_other_programs_cause_no_failure() {
    let agents = Agents::start(1);
    let directory = agents.directory.path();
    let lines = compile("c++", "examples/c/lines.cpp", directory, &["-std=c++11"]);
    let works = |variables: &[(&str, &str)]| {
        let printed = succeed(run(&lines, &agents).envs(variables.iter().copied()).args(["x", "y"])).stdout;
        assert_eq!(String::from_utf8_lossy(&printed), "y\n");
    };
    works(&[("LOG", "debug"), ("PREFETCH", "yes"), ("WINDOW_SIZE", "80x24"), ("DISKNUMBER", "")]);
    works(&[("LOG", "1"), ("LOG_FILE", "/nonexistent/log")]);
    let log = directory.join("log.txt");
    assert!(!log.exists(), "no log was requested");
    // The log is appended to an existing file, with the reason for an ignored value.
    fs::write(&log, "somebody's own\n").expect("room");
    works(&[("LOG", "1"), ("PREFETCH", "yes")]);
    let text = fs::read_to_string(&log).expect("it is there");
    assert!(text.starts_with("somebody's own\n") && text.ends_with("all is well\n"), "{text}");
    assert!(
        text.contains("ignored: the environment variable PREFETCH: \"yes\" is not a valid value"),
        "{text}"
    );
}

/// The first program of the overview works.
#[test]
fn the_first_example_of_the_manual_works() {
    let agents = Agents::start(2);
    let directory = agents.directory.path();
    let page = fs::read_to_string(root().join("crates/interfaces/libpdiol/man/pdiol.7")).expect("the page");
    let after = page.split_once(".Bd -literal\n").expect("an example").1;
    let source = directory.join("example.c");
    fs::write(&source, after.split_once(".Ed").expect("its end").0.replace("\\e", "\\")).expect("room");
    let options = [&SANITIZERS[..], &WARNINGS, &["-std=c99"]].concat();
    let example = compile("cc", source.to_str().expect("text"), directory, &options);
    let output = run(&example, &agents).output().expect("the program");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("notes.txt: no such file"));
    let session = agents.session();
    let mut file = session.open("notes.txt", OpenOptions::new().write(true).create(true)).expect("made");
    file.write_all(b"two\nlines\n").expect("room");
    file.close().expect("written");
    assert_eq!(succeed(&mut run(&example, &agents)).stdout, b"two\nlines\n");
}

#[test]
fn a_program_links_with_the_static_library() {
    let agents = Agents::start(1);
    let program = agents.directory.path().join("count");
    let mut command = Command::new("cc");
    command.arg("-I").arg(header()).arg(root().join("examples/c/count.c")).arg("-o").arg(&program);
    command.arg(libraries().join("libpdiol.a")).args(["-pthread", "-ldl", "-lm"]);
    succeed(&mut command);
    let output = run(&program, &agents).arg("nothing").output().expect("the program");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such file"));
}

/// The header declares exactly the functions that the library exports.
#[test]
fn the_library_exports_exactly_the_functions_of_its_header() {
    let header = fs::read_to_string(header().join("pdiol.h")).expect("the header");
    let declarations = header.lines().filter(|line| !line.starts_with(['#', ' ', '/', 's']));
    let before_parenthesis = declarations.filter_map(|line| line.split_once('(').map(|(before, _)| before));
    let name = |before: &str| before.rsplit([' ', '*']).next().unwrap_or_default().to_owned();
    let mut declared: Vec<String> =
        before_parenthesis.map(name).filter(|name| name.contains("pdiol")).collect();
    let reading = header.lines().filter(|line| line.starts_with("ssize_t"));
    declared.extend(reading.filter_map(|line| line.split_once('(')).map(|(before, _)| name(before)));
    declared.sort();
    let symbols =
        succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(libraries().join("libpdiol.so")));
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let mut defined: Vec<&str> = symbols.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    defined.retain(|name| !name.starts_with("rust_eh_personality"));
    defined.sort_unstable();
    assert_eq!(defined, declared);
    assert_eq!(documented(), declared);
}

/// Returns the functions named in the man pages.
fn documented() -> Vec<String> {
    let pages = fs::read_dir(root().join("crates/interfaces/libpdiol/man")).expect("the man pages");
    let mut names = Vec::new();
    for page in pages.map(|page| page.expect("a page").path()) {
        let text = fs::read_to_string(&page).expect("text");
        let named = text.lines().filter_map(|line| line.strip_prefix(".Nm "));
        names.extend(named.map(|name| name.trim_end_matches(" ,").to_owned()));
    }
    names.retain(|name| name != "pdiol");
    names.sort();
    names
}

#[test]
fn the_installed_library_has_a_pkg_config_file_and_man_pages() {
    let agents = Agents::start(1);
    let staged = agents.directory.path().join("staged");
    let built = libraries().parent().expect("a directory within that");
    let mut install = Command::new(root().join("packaging/install-library.sh"));
    succeed(install.arg("pdiol").arg(built).arg("/opt/pdiol").env("DESTDIR", &staged));
    let prefix = staged.join("opt/pdiol");
    let pc = fs::read_to_string(prefix.join("lib/pkgconfig/pdiol.pc")).expect("a pkg-config file");
    assert!(
        pc.contains("prefix=/opt/pdiol\n")
            && pc.contains(concat!("Version: ", env!("CARGO_PKG_VERSION"), "\n"))
    );
    for function in documented() {
        let page = fs::read_to_string(prefix.join(format!("share/man/man3/{function}.3"))).expect(&function);
        let target = page.strip_prefix(".so ").map_or("man3", str::trim);
        assert!(prefix.join("share/man").join(target).exists(), "{function}: {page}");
    }
    // Compile with the flags of pkg-config.
    let program = agents.directory.path().join("count");
    let mut compile = Command::new("cc");
    compile.arg("-I").arg(prefix.join("include")).arg(root().join("examples/c/count.c"));
    succeed(compile.arg("-L").arg(prefix.join("lib")).arg("-lpdiol").arg("-o").arg(&program));
    let output = run(&program, &agents).env("LD_LIBRARY_PATH", prefix.join("lib")).arg("nothing").output();
    assert!(String::from_utf8_lossy(&output.expect("the program").stderr).contains("no such file"));
}
