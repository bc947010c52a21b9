//! `starfish mpi-run` with real launchers. A program writes and reads a file on agents, and the trace contains its
//! calls.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prerequisites::{has, skip};

use crate::common::{Store, give_environment_of, starfish, succeed};

/// An MPI implementation of Debian: its compiler, its launcher, and the launcher's options for a busy computer.
struct Mpi {
    compiler: &'static str,
    launcher: &'static str,
    options: &'static [&'static str],
}

const MPICH: Mpi = Mpi { compiler: "mpicc.mpich", launcher: "mpirun.mpich", options: &[] };

const OPEN_MPI: Mpi = Mpi {
    compiler: "mpicc.openmpi",
    launcher: "mpirun.openmpi",
    options: &["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
};

/// Maximum run time of a launched program in seconds.
const PATIENCE: &str = "50";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{stderr}", output.status);
}

/// Returns the newest library of the crate `mpi-io` that Cargo has built, or `None`. The library exists only if Cargo
/// tests the whole workspace or that crate, because no crate depends on it.
fn built() -> Option<PathBuf> {
    let test = env::current_exe().expect("this test");
    let target = test.ancestors().nth(2).expect("Cargo builds tests in deps");
    let made = |place: &PathBuf| fs::metadata(place.join("libstarfish_mpi_io.so"))?.modified();
    let places = [target.to_owned(), target.join("deps")].into_iter();
    places.filter_map(|place| Some((made(&place).ok()?, place))).max().map(|(_, place)| place)
}

/// Installs the library for an MPI, as `make install-mpi` does, and compiles the example `field`.
fn install(mpi: &Mpi, built: &Path, into: &Path) -> PathBuf {
    run(Command::new(root().join("packaging/install-mpi.sh")).arg(built).arg(into).arg(mpi.compiler));
    let program = into.join("field");
    let source = root().join("examples/mpi/field.c");
    run(Command::new(mpi.compiler).args(["-std=c11", "-O1"]).arg(source).arg("-o").arg(&program));
    program
}

fn launched(mpi: &Mpi) {
    if !has(mpi.compiler) {
        return;
    }
    let Some(built) = built() else {
        return skip("the crate mpi-io is not built");
    };
    let place = tempfile::tempdir().expect("a directory");
    let program = install(mpi, &built, place.path());
    let store = Store::start(&[1, 1]);
    let trace = place.path().join("run.tlv");
    let arguments = [&["mpi-run", "--launcher", mpi.launcher], mpi.options, &["-n", "3"]].concat();
    let mut command = store.command(&arguments);
    command.arg(&program).arg("starfish:field").env_remove("LD_PRELOAD");
    command.env("STARFISH_MPI_LIBRARIES", place.path().join("lib/starfish")).env("STARFISH_TRACE", &trace);
    // The launcher needs its own directory: if two launchers of Open MPI run at the same time, both create the common
    // directory and conflict.
    command.env("TMPDIR", place.path());
    let mut bounded = Command::new("timeout");
    bounded.arg(PATIENCE).arg(command.get_program()).args(command.get_args());
    give_environment_of(&command, &mut bounded);
    run(&mut bounded);

    let field = store.command(&["cat", "field"]).output().expect("it runs").stdout;
    let values = field.chunks_exact(8).map(|bytes| f64::from_ne_bytes(bytes.try_into().expect("eight")));
    assert!(field.len() == 600 * 400 * 8 && values.eq((0..600 * 400).map(f64::from)));

    let file = trace.to_str().expect("text");
    let summary = succeed(starfish(["trace", "summary", "--by", "state", "--format", "csv", file]));
    let summary = String::from_utf8(summary).expect("text");
    for (state, count) in [
        ("MPI_File_open", 3),
        ("MPI_File_set_view", 3),
        ("MPI_File_write_all", 3),
        ("MPI_File_sync", 3),
        ("MPI_File_read_at_all", 3),
        ("MPI_File_close", 3),
        ("disk-directed", 6),
    ] {
        assert!(summary.contains(&format!("\n,,{state},{count},")), "{state}: {summary}");
    }
}

#[test]
fn a_program_is_launched_and_traced_with_mpich() {
    launched(&MPICH);
}

#[test]
fn a_program_is_launched_and_traced_with_open_mpi() {
    launched(&OPEN_MPI);
}
