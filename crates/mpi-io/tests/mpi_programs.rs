//! Programs of MPI, compiled by the compilers of MPICH and of Open MPI, with the shim in front of each, and real agents
//! on loopback. They check themselves (`tests/c`); what they leave is compared here.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use namespace::{Location, NewInode, TreeOperation};
use node::{OpenOptions, Session};
use test_agents::Agents;

/// An MPI, as Debian calls its programs.
struct Mpi {
    compiler: &'static str,
    fortran: &'static str,
    launcher: &'static str,
    options: &'static [&'static str],
}

const MPICH: Mpi =
    Mpi { compiler: "mpicc.mpich", fortran: "mpifort.mpich", launcher: "mpirun.mpich", options: &[] };

const OPEN_MPI: Mpi = Mpi {
    compiler: "mpicc.openmpi",
    fortran: "mpifort.openmpi",
    launcher: "mpirun.openmpi",
    options: &[
        "--allow-run-as-root",
        "--oversubscribe",
        "--mca",
        "btl",
        "self,vader",
        "--mca",
        "mpi_yield_when_idle",
        "1",
    ],
};

/// How long a program may take, in seconds.
const PATIENCE: &str = "50";

/// The directory of the crate.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    output
}

/// A directory with the core, called as it is when it is installed.
fn core() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let test = std::env::current_exe().expect("this test");
        let built = test.ancestors().find(|directory| directory.join("libstarfish_mpi_io.so").exists());
        let built = built.expect("Cargo builds all kinds of a library for its tests");
        let directory = built.join("libstarfish_mpi_io");
        fs::create_dir_all(&directory).expect("a directory");
        // It may be there from the last time.
        let _ = symlink(built.join("libstarfish_mpi_io.so"), directory.join("libstarfish_mpi_io.so.0"));
        directory
    })
}

/// Agents with a namespace and a directory in it, and where to compile; nothing if there is no such MPI.
struct Testbed {
    mpi: &'static Mpi,
    agents: Agents,
    shim: PathBuf,
}

impl Testbed {
    fn new(mpi: &'static Mpi) -> Option<Testbed> {
        if Command::new(mpi.compiler).arg("--version").output().is_err() {
            println!("SKIPPED: there is no {}", mpi.compiler);
            return None;
        }
        let agents = Agents::start(3);
        let tree = agents.session().begin_tree().expect("a namespace");
        let at = Location::of_path("mpi");
        let make = TreeOperation::Make {
            at,
            new: NewInode::Directory,
            mode: 0o755,
            uid: 0,
            gid: 0,
            exclusive: true,
        };
        tree.inode("mpi", make).wait().expect("a directory");
        let mut build = Command::new(root().join("shim/build.sh"));
        let built = succeed(build.arg(mpi.compiler).arg(core()).arg(agents.path("shim"))).stdout;
        let shim = PathBuf::from(String::from_utf8(built).expect("a path").trim_end());
        Some(Testbed { mpi, agents, shim })
    }

    fn compile(&self, name: &str, more: &[&str]) -> PathBuf {
        let include = format!("-I{}", root().join("include").display());
        self.compile_source(&format!("tests/c/{name}.c"), &[&[&*include], more].concat())
    }

    /// Compiles a source, by its path from the crate.
    fn compile_source(&self, source: &str, more: &[&str]) -> PathBuf {
        let source = root().join(source);
        let program = self.agents.path(source.file_stem().and_then(|name| name.to_str()).expect("text"));
        let mut compile = Command::new(self.mpi.compiler);
        compile.args(["-std=c11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror"]);
        succeed(compile.arg(source).args(more).arg("-o").arg(&program));
        program
    }

    /// A command that starts so many processes of a program, in front of which the shim is.
    fn launch(&self, processes: u32, program: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.args([PATIENCE, self.mpi.launcher]).args(self.mpi.options);
        command.args(["-n", &processes.to_string(), "env"]);
        let libraries = format!("LD_LIBRARY_PATH={}", core().display());
        command.arg(format!("LD_PRELOAD={}", self.shim.display())).arg(libraries).arg(program);
        command.env("STARFISH_AGENTS", self.agents.names()).env("STARFISH_KEY_FILE", self.agents.key_file());
        command
    }

    /// Runs 4 processes of a program of `tests/c`.
    fn run(&self, name: &str, arguments: &[&str]) {
        let program = self.compile(name, &[]);
        succeed(self.launch(4, &program).args(arguments));
    }

    fn contents(&self, session: &Session, path: &str) -> Vec<u8> {
        let file = session.open(path, OpenOptions::new().read(true)).expect(path);
        let mut found = vec![0; file.stat().expect("its size").bytes as usize];
        assert_eq!(file.read_at(0, &mut found).expect("its contents"), found.len());
        found
    }
}

/// The byte that belongs at an offset of a file, as `tests/c/check.h` has it.
fn at(offset: u64) -> u8 {
    (offset * 31 + (offset >> 8) * 7 + (offset >> 16) + 1) as u8
}

fn arrays(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    testbed.run("arrays", &[]);
    let session = testbed.agents.session();
    const RECORDS: u64 = 96 * 130;
    for (path, from, end) in [
        ("mpi/dealt-8", 0, 8 * RECORDS),
        ("mpi/dealt-100", 0, 100 * RECORDS),
        ("mpi/blocks-24", 0, 24 * RECORDS),
        ("mpi/boxed", 77, 77 + 8 * RECORDS),
        ("mpi/columns", 100, 100 + 32 * 3000),
        ("mpi/uneven", 5000, 6000),
    ] {
        let found = testbed.contents(&session, path);
        assert_eq!(found.len() as u64, end, "{path}");
        let wrong =
            (0..end).find(|&offset| found[offset as usize] != if offset < from { 0 } else { at(offset) });
        assert_eq!(wrong, None, "{path}");
    }
}

fn files(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let directory = testbed.agents.path("local files");
    fs::create_dir(&directory).expect("a directory");
    testbed.run("files", &[directory.to_str().expect("text")]);
    assert_eq!(fs::metadata(directory.join("local")).expect("handed on").len(), 16);
    let session = testbed.agents.session();
    let names = session.list().expect("the namespace");
    let hidden: Vec<&String> = names.iter().filter(|name| name.contains(".starfish-")).collect();
    assert!(hidden.is_empty(), "shared pointers are left: {hidden:?}");
    assert!(testbed.contents(&session, "mpi/sizes").ends_with(b"\0xxxx"));
}

fn types(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let flattening = root().join("shim/types.c");
    let core = core().to_str().expect("text");
    let program = testbed.compile(
        "types",
        &[
            flattening.to_str().expect("text"),
            "-L",
            core,
            "-l:libstarfish_mpi_io.so.0",
            "-Wl,-rpath",
            &format!("-Wl,{core}"),
        ],
    );
    let mut command = testbed.launch(1, &program);
    succeed(command.env("STARFISH_MPI_REPORT", ""));
}

/// What we show and measure: the examples in C and in Fortran, and the benchmark.
fn examples(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let field = testbed.compile_source("../../examples/mpi/field.c", &[]);
    succeed(testbed.launch(3, &field).arg("starfish:mpi/field"));
    let session = testbed.agents.session();
    let values = testbed.contents(&session, "mpi/field");
    let wrong = values
        .chunks_exact(8)
        .zip(0..)
        .find(|(bytes, place)| f64::from_ne_bytes((*bytes).try_into().expect("eight")) != f64::from(*place));
    assert_eq!((values.len(), wrong), (600 * 400 * 8, None));
    let dealt = testbed.compile_source("../../benches/mpi/dealt.c", &["-lm"]);
    let rates = succeed(testbed.launch(4, &dealt).args(["starfish:mpi/dealt", "8", "1", "2"])).stdout;
    assert_eq!(String::from_utf8_lossy(&rates).split_whitespace().count(), 3, "three rates");
    if Command::new(mpi.fortran).arg("--version").output().is_err() {
        println!("SKIPPED: there is no {}", mpi.fortran);
        return;
    }
    let program = testbed.agents.path("field90");
    let mut compile = Command::new(mpi.fortran);
    // Modules of Fortran are where nobody else has any.
    compile
        .arg("-Wall")
        .arg("-J")
        .arg(testbed.agents.path(""))
        .arg(root().join("../../examples/mpi/field.f90"));
    succeed(compile.arg("-o").arg(&program));
    succeed(testbed.launch(3, &program).arg("starfish:mpi/columns90"));
    let values = testbed.contents(&session, "mpi/columns90");
    let wrong = values
        .chunks_exact(8)
        .zip(1..)
        .find(|(bytes, place)| f64::from_ne_bytes((*bytes).try_into().expect("eight")) != f64::from(*place));
    assert_eq!((values.len(), wrong), (300 * 200 * 8, None));
}

#[test]
fn examples_with_mpich() {
    examples(&MPICH);
}

#[test]
fn examples_with_open_mpi() {
    examples(&OPEN_MPI);
}

#[test]
fn arrays_with_mpich() {
    arrays(&MPICH);
}

#[test]
fn arrays_with_open_mpi() {
    arrays(&OPEN_MPI);
}

#[test]
fn files_with_mpich() {
    files(&MPICH);
}

#[test]
fn files_with_open_mpi() {
    files(&OPEN_MPI);
}

#[test]
fn types_with_mpich() {
    types(&MPICH);
}

#[test]
fn types_with_open_mpi() {
    types(&OPEN_MPI);
}

/// The functions that the header declares, and those that the library has.
#[test]
fn the_core_has_what_its_header_declares_and_no_more() {
    let header = fs::read_to_string(root().join("include/starfish_mpi_io.h")).expect("the header");
    let mut declared: Vec<&str> = header
        .match_indices("starfish_mpi_")
        .filter_map(|(start, _)| {
            let rest = &header[start..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
            (rest[end..].starts_with('(')).then_some(&rest[..end])
        })
        .collect();
    // A remark may name a function again.
    declared.sort_unstable();
    declared.dedup();
    let symbols = succeed(
        Command::new("nm").args(["-D", "--defined-only"]).arg(core().join("libstarfish_mpi_io.so.0")),
    );
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let mut defined: Vec<&str> = symbols.lines().filter_map(|line| line.rsplit(' ').next()).collect();
    defined.retain(|name| !name.starts_with("rust_eh_personality"));
    defined.sort_unstable();
    assert_eq!(defined, declared);
}

/// Whatever functions of files an MPI has, the shim has too, with both names.
#[test]
fn the_shim_has_every_function_of_files() {
    for mpi in [&MPICH, &OPEN_MPI] {
        let Some(testbed) = Testbed::new(mpi) else { continue };
        let needed = succeed(Command::new("ldd").arg(&testbed.shim).env("LD_LIBRARY_PATH", core())).stdout;
        let needed = String::from_utf8(needed).expect("text");
        let library = needed
            .lines()
            .filter(|line| line.trim().starts_with("libmpi"))
            .find_map(|line| line.split(" => ").nth(1));
        let library = library.and_then(|line| line.split(' ').next()).expect("a library of the MPI");
        let of = |library: &str| {
            let symbols = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library)).stdout;
            let symbols = String::from_utf8(symbols).expect("text");
            let names = symbols.lines().filter_map(|line| line.rsplit(' ').next().map(str::to_owned));
            let mut names: Vec<String> = names
                .filter(|name| name.starts_with("MPI_File_") || name.starts_with("PMPI_File_"))
                // Open MPI's own, which are no functions of MPI.
                .filter(|name| !name.ends_with("_fromint") && !name.ends_with("_toint"))
                .collect();
            names.sort();
            names
        };
        let (missing, shim) = (of(library), of(testbed.shim.to_str().expect("text")));
        let missing: Vec<&String> = missing.iter().filter(|name| !shim.contains(name)).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", mpi.compiler);
    }
}
