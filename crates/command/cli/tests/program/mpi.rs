//! `starfish mpi-run` and `starfish mpi-preload` with fake launchers that print their arguments. The tests of the crate
//! `mpi-io` run MPI programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Directory with fake launchers, and with libraries for two implementations of MPI.
struct Installed(TempDir);

impl Installed {
    fn new() -> Installed {
        let installed = Installed(tempfile::tempdir().expect("a temporary directory"));
        for library in ["starfish-libmpi.so.40", "starfish-libmpich.so.12", "libstarfish_mpi_io.so.0"] {
            fs::write(installed.path(library), "").expect("room");
        }
        installed.launcher("mpich", "HYDRA build details:");
        installed.launcher("openmpi", "mpirun (Open MPI) 5.0.3");
        installed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Creates a launcher that prints its version on request, and otherwise prints its arguments.
    fn launcher(&self, name: &str, version: &str) {
        let path = self.path(name);
        let text =
            format!("#!/bin/sh\n[ \"$1\" = --version ] && {{ echo '{version}'; exit; }}\necho told \"$@\"\n");
        fs::write(&path, text).expect("room");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it belongs to the test");
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_starfish"));
        command.args(arguments).current_dir(self.0.path()).env_remove("LD_PRELOAD");
        command.env("STARFISH_MPI_LIBRARIES", self.0.path()).env("STARFISH_AGENTS", "a:1");
        command.output().expect("the program")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_launcher_gets_the_library_to_preload() {
    let installed = Installed::new();
    for (launcher, library, way) in
        [("mpich", "libmpich.so.12", "-genv LD_PRELOAD "), ("openmpi", "libmpi.so.40", "-x LD_PRELOAD=")]
    {
        let run =
            installed.run(&["mpi-run", "--launcher", &format!("./{launcher}"), "-n", "4", "echo", "-x"]);
        let stdout = text(&run.stdout);
        let library = installed.path(&format!("starfish-{library}"));
        assert!(stdout.starts_with(&format!("told {way}{}", library.display())), "{stdout} {run:?}");
        assert!(stdout.ends_with("-n 4 echo -x\n"), "{stdout}");
        assert_eq!(stdout.contains("-x STARFISH_AGENTS"), launcher == "openmpi", "{stdout}");
    }
}

#[test]
fn missing_launchers_and_libraries_are_named() {
    let installed = Installed::new();
    let failed = |arguments: &[&str]| {
        let run = installed.run(arguments);
        assert_eq!(run.status.code(), Some(1), "{run:?}");
        text(&run.stderr)
    };
    assert!(failed(&["mpi-run", "--launcher", "./nothing", "x"]).contains("--launcher"));
    installed.launcher("other", "something else 1.0");
    assert!(failed(&["mpi-run", "--launcher", "./other", "x"]).contains("neither HYDRA nor Open MPI"));
    fs::remove_file(installed.path("starfish-libmpi.so.40")).expect("it exists");
    let none = failed(&["mpi-run", "--launcher", "./openmpi", "x"]);
    assert!(none.contains("starfish-libmpich.so.12") && none.contains("make install-mpi"), "{none}");
    assert!(failed(&["mpi-preload", "/bin/true"]).contains("it is not linked with an MPI"));
    installed.launcher("job", "");
    let script = failed(&["mpi-preload", "./job"]);
    assert!(script.contains("it is a script") && script.contains("mpi4py"), "{script}");
    let in_path = failed(&["mpi-preload", "env"]);
    assert!(in_path.contains("/env: it is not linked with an MPI"), "{in_path}");
    let missing = failed(&["mpi-preload", "./nope"]);
    assert!(missing.contains("./nope: No such file") && !missing.contains("linked"), "{missing}");
}
