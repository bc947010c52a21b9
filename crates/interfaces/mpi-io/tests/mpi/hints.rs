//! Hints: their sources, and the messages about them.

use std::fs;

use crate::testbed::{MPICH, Mpi, OPEN_MPI, Testbed, succeed};

/// Returns the report of 3 processes of an example about their calls, with these environment variables.
fn report(testbed: &Testbed, variables: &[(&str, &str)]) -> String {
    let field = testbed.compile_source("../../../examples/mpi/field.c", &[]);
    let mut command = testbed.launch(3, &field);
    command.env("STARFISH_MPI_REPORT", "1").envs(variables.iter().copied()).arg("starfish:mpi/field");
    String::from_utf8(succeed(&mut command).stderr).expect("text")
}

/// True if a line of the report has this beginning and end.
fn has_line(report: &str, begin: &str, end: &str) -> bool {
    report.lines().any(|line| line.starts_with(&format!("starfish:   {begin}")) && line.ends_with(end))
}

/// Hints from ROMIO's file and from the environment take effect, and the report explains the ineffective ones.
fn files_and_environment(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let file = testbed.agents.path("hints");
    fs::write(&file, "# of the site\nromio_cb_write disable\ncb_nodes 2\nstarfish_queued false\n")
        .expect("room");
    let file = file.to_str().expect("text");
    let printed =
        report(&testbed, &[("ROMIO_HINTS", file), ("STARFISH_MPI_HINTS", "starfish_queued=true,x=1")]);
    for (begin, end) in [
        ("collective writes, through the page cache: 1 call,", "(romio_cb_write=disable)"),
        ("collective reads, disk-directed: 1 call,", "(auto)"),
        ("the hint cb_nodes=2 has no effect", "Starfish has no aggregators"),
        ("the hint x=1 has no effect", "unknown hint"),
    ] {
        assert!(has_line(&printed, begin, end), "{begin}: {printed}");
    }
    assert!(!printed.contains("starfish_queued"), "{printed}");
    let printed =
        report(&testbed, &[("ROMIO_HINTS", file), ("STARFISH_MPI_HINTS", "starfish_method=two-phase")]);
    assert!(has_line(&printed, "collective writes, two-phase: 1 call,", "(starfish_method)"), "{printed}");
}

/// Impossible striping hints have no effect, each with its own reason; the others take effect.
fn striping(mpi: &'static Mpi) {
    let Some(testbed) = Testbed::new(mpi) else { return };
    let given = "striping_factor=1,start_iodevice=77,striping_unit=0,rubbish";
    let printed = report(&testbed, &[("STARFISH_MPI_HINTS", given)]);
    for (begin, end) in [
        ("the hint start_iodevice=77 has no effect", "there are 3 disks, counted from 0"),
        ("the hint striping_unit=0 has no effect", "expected a whole number from 1"),
        ("the hint rubbish= has no effect", "expected key=value"),
    ] {
        assert!(has_line(&printed, begin, end), "{begin}: {printed}");
    }
    assert!(!printed.contains("striping_factor"), "{printed}");
}

#[test]
fn impossible_striping_hints_have_no_effect_with_mpich() {
    striping(&MPICH);
}

#[test]
fn impossible_striping_hints_have_no_effect_with_open_mpi() {
    striping(&OPEN_MPI);
}

#[test]
fn hints_of_file_and_environment_have_an_effect_with_mpich() {
    files_and_environment(&MPICH);
}

#[test]
fn hints_of_file_and_environment_have_an_effect_with_open_mpi() {
    files_and_environment(&OPEN_MPI);
}
