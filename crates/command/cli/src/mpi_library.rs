//! Libraries that are preloaded before an MPI library, and the choice of the library for a program.
//!
//! Each is named after the MPI library before which it is loaded: `starfish-libmpi.so.40` belongs to `libmpi.so.40`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use command_line::failure::{Failure, Result};

/// Environment variable with the directory of the libraries.
const VARIABLE: &str = "STARFISH_MPI_LIBRARIES";

/// Prefix of the names of these libraries.
const PREFIX: &str = "starfish-";

/// MPI implementation, as reported by its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MpiKind {
    /// MPICH or a derivative, launched by hydra.
    Mpich,
    /// Open MPI.
    OpenMpi,
}

impl MpiKind {
    /// Returns the official name of the implementation.
    fn name(self) -> &'static str {
        match self {
            MpiKind::Mpich => "MPICH",
            MpiKind::OpenMpi => "Open MPI",
        }
    }

    /// Runs a launcher to get its version, and returns its MPI implementation.
    pub(crate) fn of_launcher(launcher: &str) -> Result<MpiKind> {
        let missing = |error: std::io::Error| {
            Failure::new(launcher, error)
                .remedy("Install an MPI, or name its launcher with --launcher PROGRAM")
        };
        let output = Command::new(launcher).arg("--version").output().map_err(missing)?;
        let version_text = [output.stdout, output.stderr].concat();
        Self::of_version(&String::from_utf8_lossy(&version_text))
            .ok_or_else(|| Failure::new(launcher, "its --version names neither HYDRA nor Open MPI"))
    }

    fn of_version(version_text: &str) -> Option<MpiKind> {
        if ["Open MPI", "OpenRTE", "PRRTE", "prterun"].iter().any(|name| version_text.contains(name)) {
            return Some(MpiKind::OpenMpi);
        }
        ["HYDRA", "Hydra", "Intel(R) MPI", "MPICH"]
            .iter()
            .any(|name| version_text.contains(name))
            .then_some(MpiKind::Mpich)
    }

    /// Returns the names of the implementation's libraries, without the version number.
    fn libraries(self) -> &'static [&'static str] {
        match self {
            MpiKind::Mpich => &["libmpich.so.", "libmpi.so.12", "libmpi_abi.so."],
            MpiKind::OpenMpi => &["libmpi.so."],
        }
    }

    /// Returns the library to preload for any program of this MPI implementation.
    pub(crate) fn library(self) -> Result<PathBuf> {
        let directory = directory()?;
        let of_kind = |name: &str| {
            let other = self == MpiKind::OpenMpi && name.ends_with("libmpi.so.12");
            !other && self.libraries().iter().any(|library| name.starts_with(&format!("{PREFIX}{library}")))
        };
        let mut found = names(&directory);
        found.retain(|name| of_kind(name));
        match found.first() {
            Some(name) => Ok(directory.join(name)),
            None => Err(none_for(self.name(), &directory)),
        }
    }
}

/// Returns the library to preload for a program, according to the MPI library with which it is linked. Returns `None`
/// if it is not linked with an MPI library.
pub(crate) fn of_program(program: &Path) -> Result<Option<PathBuf>> {
    // ldd reports a missing file only on standard error, so check this first.
    fs::metadata(program).map_err(|error| Failure::new(program.display().to_string(), error))?;
    let output = Command::new("ldd").arg(program).output();
    let output = output.map_err(|error| Failure::new("ldd", error))?;
    let Some(library) = needed(&String::from_utf8_lossy(&output.stdout)) else { return Ok(None) };
    let directory = directory()?;
    let path = directory.join(format!("{PREFIX}{library}"));
    if path.exists() { Ok(Some(path)) } else { Err(none_for(&library, &directory)) }
}

/// Returns the first MPI library in the output of ldd.
fn needed(listed: &str) -> Option<String> {
    let is_mpi = |name: &&str| {
        ["libmpi.so.", "libmpich.so.", "libmpi_abi.so."].iter().any(|library| name.starts_with(library))
    };
    listed.lines().filter_map(|line| line.split_whitespace().next()).find(is_mpi).map(str::to_owned)
}

fn none_for(wanted: &str, directory: &Path) -> Failure {
    let there = names(directory).join(", ");
    let there = if there.is_empty() { "none".to_owned() } else { there };
    let why = format!("no library for {wanted} is installed (installed: {there})");
    Failure::new(directory.display().to_string(), why)
        .remedy("Build one: `make install-mpi MPICC=mpicc`, with the mpicc of that MPI")
}

/// Returns the names of the installed libraries, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(PREFIX)).collect();
    names.sort();
    names
}

/// Returns the directory of the libraries: from the environment, or the place of an installation, relative to this
/// program.
fn directory() -> Result<PathBuf> {
    if let Some(directory) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        return Ok(directory.into());
    }
    let program = env::current_exe().and_then(fs::canonicalize);
    let program = program.map_err(|error| Failure::new("this program", error))?;
    let prefix = program.ancestors().nth(2).unwrap_or(Path::new("/"));
    Ok(prefix.join("lib/starfish"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mpi_is_identified_by_the_version_of_its_launcher() {
        for (version_text, kind) in [
            ("HYDRA build details:\n    Version: 4.0.2", Some(MpiKind::Mpich)),
            ("Intel(R) MPI Library for Linux* OS, Version 2021.19", Some(MpiKind::Mpich)),
            ("mpirun.openmpi (OpenRTE) 4.1.4", Some(MpiKind::OpenMpi)),
            ("mpirun (Open MPI) 5.0.3", Some(MpiKind::OpenMpi)),
            ("srun 23", None),
        ] {
            assert_eq!(MpiKind::of_version(version_text), kind, "{version_text}");
        }
    }

    #[test]
    fn the_mpi_library_of_a_program_is_found_in_the_output_of_ldd() {
        let listed = "\tlinux-vdso.so.1 (0x1)\n\tlibmpich.so.12 => /usr/lib/libmpich.so.12 (0x2)\n\tlibc.so.6 => /c (0x3)";
        assert_eq!(needed(listed).as_deref(), Some("libmpich.so.12"));
        assert_eq!(needed("\tnot a dynamic executable"), None);
        assert_eq!(needed("\tlibmpi_cxx.so.40 => x\n\tlibmpi.so.40 => y").as_deref(), Some("libmpi.so.40"));
    }
}
