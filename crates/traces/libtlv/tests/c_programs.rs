//! Compiles C and C++ programs with the header, runs them, and checks their traces.
//!
//! Programs in `tests/c` check the results of their calls, and run with the sanitizers of the compiler.

#[path = "../../../interfaces/libpdiol/tests/common/c_library.rs"]
mod c_library;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use c_library::{SANITIZERS, installed, root, sanitizers, succeed};
use tempfile::TempDir;
use trace::{Amount, ArgumentValue, Mark, NoteKind, ProcessNumber, Timeline};

/// Users may compile with warnings as errors, so the header must not cause any.
const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"];

fn header() -> PathBuf {
    root().join("crates/traces/libtlv/include")
}

/// Returns a directory with the libraries under their installed names.
fn libraries() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| installed("tlv"))
}

/// Compiled program, with a directory for its traces.
struct Program {
    directory: TempDir,
    path: PathBuf,
}

impl Program {
    /// Compiles the program with the shared library.
    fn compile(compiler: &str, source: &str, options: &[&[&str]]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(Path::new(source).file_stem().expect("a name"));
        let rpath = format!("-Wl,-rpath,{}", libraries().display());
        let mut command = Command::new(compiler);
        command.args(options.concat()).arg("-I").arg(header()).arg(root().join(source));
        command.arg("-o").arg(&path).arg("-L").arg(libraries()).args(["-ltlv", "-pthread", &rpath]);
        succeed(&mut command);
        Program { directory, path }
    }

    /// Compiles a self-checking program of `tests/c`.
    fn checked(name: &str) -> Self {
        let source = format!("crates/traces/libtlv/tests/c/{name}");
        match name.ends_with(".cpp") {
            true => Self::compile("c++", &source, &[&SANITIZERS, &WARNINGS, &["-std=c++11", "-O1"]]),
            false => {
                let standard = ["-std=c99", "-D_GNU_SOURCE", "-O1"];
                Self::compile("cc", &source, &[sanitizers(name), &WARNINGS, &standard])
            }
        }
    }

    /// Returns a command that runs in the program's directory, with an environment of `PATH` only.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(self.directory.path()).env_clear().env("PATH", "/usr/bin:/bin");
        command
    }

    fn read(&self, name: &str) -> Timeline {
        let file =
            File::open(self.directory.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        trace::read(name, file).expect("a trace")
    }

    /// Returns the file names of the traces in its directory.
    fn traces(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".tlv")).collect();
        names.sort();
        names
    }
}

/// Returns the spans of a thread as the names of their states, with the marks of incomplete ones.
fn spans(timeline: &Timeline, thread: &str) -> Vec<String> {
    let found: Vec<_> = timeline.threads.iter().filter(|other| other.name == thread).collect();
    assert_eq!(found.len(), 1, "{thread} among {:?}", timeline.threads);
    let text = |index: usize| {
        let name = &timeline.states[timeline.spans.state[index] as usize].name;
        match timeline.spans.mark[index] {
            Mark::Whole => name.clone(),
            mark => format!("{name}: {mark:?}"),
        }
    };
    found[0].spans.clone().map(text).collect()
}

fn notes(timeline: &Timeline) -> Vec<(NoteKind, u64)> {
    timeline.notes.iter().map(|note| (note.kind, note.count)).collect()
}

#[test]
fn the_sample_of_the_thesis_records_its_five_states() {
    for (compiler, standard) in [("cc", "-std=c99"), ("c++", "-std=c++11")] {
        let language: &[&str] =
            if compiler == "c++" { &["-x", "c++"] } else { &["-D_POSIX_C_SOURCE=200809L"] };
        let program =
            Program::compile(compiler, "examples/c/psrs.c", &[&SANITIZERS, &WARNINGS, &[standard], language]);
        for threads in [1, 4] {
            let output = succeed(program.command().args(["20000", &threads.to_string(), "8"]));
            assert_eq!(String::from_utf8_lossy(&output.stdout), "20000 numbers are in order\n");
            let timeline = program.read("psrs.tlv");
            assert_eq!(notes(&timeline), []);
            let states: Vec<&str> = timeline.states.iter().map(|state| &*state.name).collect();
            assert_eq!(states, ["INIT", "PHASE1", "PHASE2", "PHASE3", "PHASE4"]);
            let phases = ["PHASE1", "PHASE3", "PHASE4"];
            assert_eq!(spans(&timeline, "main"), ["INIT", "PHASE1", "PHASE2", "PHASE3", "PHASE4"]);
            assert_eq!(timeline.threads.len(), threads);
            for thread in 2..=threads {
                assert_eq!(spans(&timeline, &format!("thread {thread}")), phases);
            }
            let process = &timeline.processes[0].info;
            assert_eq!((process.program.as_str(), process.command_line.contains("20000")), ("psrs", true));
            assert!(matches!(process.number, ProcessNumber::Pid(_)) && process.zero_unix_ns.is_some());
        }
    }
}

#[test]
fn every_function_behaves_as_documented() {
    let program = Program::checked("functions.c");
    succeed(&mut program.command());
    let timeline = program.read("functions.tlv");
    let main =
        ["outer", "inner ä", "minus", "event 77", "outer", "inner ä: Unfinished"].map(str::to_owned).to_vec();
    assert_eq!(spans(&timeline, "main"), main);
    assert_eq!(spans(&timeline, "added"), ["open"]);
    assert_eq!(spans(&timeline, "itself"), ["outer"]);
    assert_eq!(notes(&timeline), [(NoteKind::Unfinished, 1)]);
    let state = |name: &str| timeline.states.iter().find(|state| state.name == name).expect(name);
    assert_eq!(state("event 77").category, "undeclared");
    assert_eq!(
        (&*state("inner ä").category, state("inner ä").colour),
        ("kind", Some(trace::Colour(0x12, 0x34, 0x56)))
    );
    assert_eq!(state("minus").colour, None);
    let arguments: Vec<(&str, &ArgumentValue)> = timeline
        .arguments
        .iter()
        .map(|argument| (&*timeline.names[argument.name as usize], &argument.value))
        .collect();
    assert_eq!(arguments[0], ("items", &ArgumentValue::Number(Amount::Integer(i64::MIN))));
    assert_eq!(arguments[1].0, "file");
    assert!(timeline.texts.iter().any(|text| &**text == "a\u{fffd}/b"), "{:?}", timeline.texts);
    assert_eq!(arguments[2], ("ratio", &ArgumentValue::Number(Amount::Real(0.25))));
    let counts: Vec<(&str, Amount)> = timeline
        .counts
        .iter()
        .map(|count| (&*timeline.counters[count.counter as usize].name, count.value))
        .collect();
    let queue = [3, -1].map(|value| ("queue", Amount::Integer(value)));
    assert_eq!(counts, [queue[0], queue[1], ("load", Amount::Real(1.5))]);
    assert_eq!(timeline.counters[0].unit, "requests");
    assert_eq!(timeline.flows.len(), 1);
    assert!(!timeline.processors.is_empty());
    assert_eq!(spans(&program.read("again.tlv"), "main"), ["open"]);
}

#[test]
fn context_switches_are_recorded_on_request() {
    let program = Program::checked("functions.c");
    succeed(program.command().env("TLV_SWITCHES", "on"));
    let timeline = program.read("functions.tlv");
    assert_eq!(timeline.switches.len(), 10 + 2 + 2, "{:?}", timeline.switches);
}

#[test]
fn with_tlv_off_calls_succeed_and_nothing_is_written() {
    let program = Program::checked("off.c");
    succeed(program.command().env("TLV", "off"));
    assert!(program.traces().is_empty(), "{:?}", program.traces());
}

#[test]
fn tlv_off_works_in_programs_with_and_without_pie() {
    for options in [["-no-pie", "-fno-pie"], ["-pie", "-fPIE"]] {
        let program = Program::compile("cc", "crates/traces/libtlv/tests/c/off.c", &[&options]);
        succeed(program.command().env("TLV", "off"));
        let output = program.command().output().expect("the program");
        assert!(!output.status.success(), "the program must fail without TLV=off");
    }
}

#[test]
fn threads_and_processes_may_end_without_a_call() {
    let program = Program::checked("ends.c");
    for how in ["exit", "return", "_exit", "wait to be killed"] {
        let mut child = program.command().arg(how).stdout(Stdio::piped()).spawn().expect("the program");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        if how == "wait to be killed" {
            assert_eq!((&mut lines).take(20).filter_map(Result::ok).count(), 20);
            child.kill().expect("the program runs");
        }
        child.wait().expect("it ends");
        let timeline = program.read("ends.tlv");
        for thread in 2..=21 {
            assert_eq!(spans(&timeline, &format!("thread {thread}")), ["work", "work: Unfinished"], "{how}");
        }
    }
}

#[test]
fn a_forked_process_has_no_recording_or_a_separate_one() {
    let program = Program::checked("fork.c");
    succeed(&mut program.command());
    let traces = program.traces();
    assert_eq!((traces.len(), &*traces[0], &*traces[2]), (3, "after.tlv", "fork.tlv"));
    for child in [&traces[0], &traces[1]] {
        let timeline = program.read(child);
        assert_eq!(spans(&timeline, "child"), ["in child"], "{child}");
        assert_eq!(timeline.threads.len(), 1);
        assert!(timeline.states.iter().any(|state| state.name == "declared in the child"));
    }
    let timeline = program.read("fork.tlv");
    assert_eq!(spans(&timeline, "main"), ["in parent"]);
    assert_eq!(timeline.threads.len(), 2);
}

#[test]
fn scopes_end_on_every_exit() {
    let program = Program::checked("scope.cpp");
    succeed(&mut program.command());
    let timeline = program.read("scope.tlv");
    assert_eq!(spans(&timeline, "thread 2"), ["outer", "inner", "inner"]);
    assert_eq!(notes(&timeline), []);
    let depths: Vec<u8> = timeline.spans.depth.clone();
    assert_eq!(depths, [0, 1, 1]);
}

#[test]
fn the_environment_names_the_file() {
    let program = Program::compile("cc", "examples/c/psrs.c", &[]);
    let mut run = program.command();
    let child = run.args(["100", "1", "1"]).env("TLV_FILE", "x.%p.tlv").spawn().expect("the program");
    let number = child.id();
    assert!(child.wait_with_output().expect("it ends").status.success());
    assert_eq!(program.traces(), [format!("x.{number}.tlv")]);
    let output = succeed(program.command().args(["100", "1", "1"]).env("TLV", "perhaps"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("not recorded: TLV=perhaps: expected on or off"), "{text}");
}

#[test]
fn a_program_links_with_the_static_library() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("psrs");
    let mut command = Command::new("cc");
    command.arg("-I").arg(header()).arg(root().join("examples/c/psrs.c")).arg("-o").arg(&path);
    command.arg(libraries().join("libtlv.a")).args(["-pthread", "-ldl", "-lm"]);
    succeed(&mut command);
    let program = Program { directory, path };
    succeed(program.command().args(["1000", "2", "8"]));
    assert_eq!(program.read("psrs.tlv").spans.state.len(), 5 + 3);
}

/// Returns the names of the functions declared in the header.
fn declared() -> Vec<String> {
    let header = fs::read_to_string(header().join("tlv.h")).expect("the header");
    let declarations = header.lines().filter(|line| !line.starts_with(['#', ' ', '/', '}', 's']));
    let names = declarations.filter_map(|line| line.split_once('(')).map(|(before, _)| before);
    let mut names: Vec<String> =
        names.filter_map(|before| before.rsplit([' ', '*']).next()).map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn the_library_exports_exactly_the_functions_of_its_header() {
    let symbols =
        succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(libraries().join("libtlv.so")));
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let mut defined: Vec<&str> = symbols.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    defined.retain(|name| !name.starts_with("rust_eh_personality") && *name != "tlv_is_off_");
    defined.sort_unstable();
    assert_eq!(defined, declared());
    assert_eq!(documented(), declared());
}

/// Returns the functions named in the man pages.
fn documented() -> Vec<String> {
    let pages = fs::read_dir(root().join("crates/traces/libtlv/man")).expect("the man pages");
    let mut names = Vec::new();
    for page in pages.map(|page| page.expect("a page").path()) {
        let text = fs::read_to_string(&page).expect("text");
        let named = text.lines().filter_map(|line| line.strip_prefix(".Nm "));
        names.extend(named.map(|name| name.trim_end_matches(" ,").to_owned()));
    }
    names.retain(|name| name != "tlv");
    names.sort();
    names
}

#[test]
fn the_installed_library_has_a_pkg_config_file_and_man_pages() {
    let directory = tempfile::tempdir().expect("a directory");
    let staged = directory.path().join("staged");
    let built = libraries().parent().expect("a parent directory");
    let mut install = Command::new(root().join("packaging/install-library.sh"));
    succeed(install.arg("tlv").arg(built).arg("/opt/tlv").env("DESTDIR", &staged));
    let prefix = staged.join("opt/tlv");
    let pc = fs::read_to_string(prefix.join("lib/pkgconfig/tlv.pc")).expect("a pkg-config file");
    let version = concat!("Version: ", env!("CARGO_PKG_VERSION"), "\n");
    assert!(pc.contains("prefix=/opt/tlv\n") && pc.contains(version), "{pc}");
    for function in documented() {
        let page = fs::read_to_string(prefix.join(format!("share/man/man3/{function}.3"))).expect(&function);
        let target = page.strip_prefix(".so ").map_or("man3", str::trim);
        assert!(prefix.join("share/man").join(target).exists(), "{function}: {page}");
    }
    // Compile with the options that pkg-config reports.
    let path = directory.path().join("psrs");
    let mut compile = Command::new("cc");
    compile.arg("-I").arg(prefix.join("include")).arg(root().join("examples/c/psrs.c"));
    succeed(compile.arg("-L").arg(prefix.join("lib")).args(["-ltlv", "-pthread", "-o"]).arg(&path));
    let program = Program { directory, path };
    succeed(program.command().args(["100", "1", "1"]).env("LD_LIBRARY_PATH", prefix.join("lib")));
}

/// Compiles and runs the first example of the overview.
#[test]
fn the_first_example_of_the_manual_works() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = fs::read_to_string(root().join("crates/traces/libtlv/man/tlv.7")).expect("the page");
    let after = page.split_once(".Bd -literal\n").expect("an example").1;
    let source = directory.path().join("example.c");
    fs::write(&source, after.split_once(".Ed").expect("its end").0.replace("\\e", "\\")).expect("room");
    let program =
        Program::compile("cc", source.to_str().expect("text"), &[&SANITIZERS, &WARNINGS, &["-std=c99"]]);
    succeed(&mut program.command());
    assert_eq!(spans(&program.read("example.tlv"), "main"), ["read", "count", "count"]);
}
