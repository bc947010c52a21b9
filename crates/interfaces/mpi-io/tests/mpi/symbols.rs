//! Symbols that the core and the shims define.

use std::fs;
use std::process::Command;

use crate::testbed::{MPICH, Mpi, OPEN_MPI, Testbed, core, root, succeed};

/// Compares the functions that the header declares with those that the library exports.
#[test]
fn the_core_exports_exactly_the_functions_of_its_header() {
    let header = fs::read_to_string(root().join("include/starfish_mpi_io.h")).expect("the header");
    let mut declared: Vec<&str> = header
        .match_indices("starfish_mpi_")
        .filter_map(|(start, _)| {
            let rest = &header[start..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
            (rest[end..].starts_with('(')).then_some(&rest[..end])
        })
        .collect();
    // A comment may mention a function again.
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

/// Checks that the shim has every file function of the MPI, with both names.
pub(crate) fn check_functions(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let needed = succeed(Command::new("ldd").arg(&testbed.shim).env("LD_LIBRARY_PATH", core())).stdout;
    let needed = String::from_utf8(needed).expect("text");
    let library = needed
        .lines()
        .filter(|line| line.trim().starts_with("libmpi"))
        .find_map(|line| line.split(" => ").nth(1));
    let library = library.and_then(|line| line.split(' ').next()).expect("a library of the MPI");
    let is_open_mpi = library.contains("libmpi.so.40");
    let of = |library: &str| {
        let symbols = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library)).stdout;
        let symbols = String::from_utf8(symbols).expect("text");
        let names = symbols.lines().filter_map(|line| line.rsplit(' ').next().map(str::to_owned));
        let mut names: Vec<String> = names
            .filter(|name| name.starts_with("MPI_File_") || name.starts_with("PMPI_File_"))
            // Open MPI has these before they became functions of MPI, and does not declare them.
            .filter(|name| !is_open_mpi || !(name.ends_with("_fromint") || name.ends_with("_toint")))
            .collect();
        names.sort();
        names
    };
    let (missing, shim) = (of(library), of(testbed.shim.to_str().expect("text")));
    let missing: Vec<&String> = missing.iter().filter(|name| !shim.contains(name)).collect();
    assert!(missing.is_empty(), "{}: {missing:?}", mpi.compiler);
}

#[test]
fn the_shim_has_every_file_function_of_mpi() {
    check_functions(&MPICH);
    check_functions(&OPEN_MPI);
}
