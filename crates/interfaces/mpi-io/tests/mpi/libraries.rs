//! The examples of `examples/mpi` with libraries on MPI-IO. Other processes, and the library's serial tools on a copy
//! of the file, must read the values that the writers wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prerequisites::has;

use crate::testbed::{MPICH, Mpi, OPEN_MPI, Testbed, succeed};

/// Number of values that the examples write. Each value equals its index in the array.
const VALUES: usize = 120 * 200;

/// Debian's Python, which has Debian's modules.
const PYTHON: &str = "/usr/bin/python3";

/// Returns the numbers in a text between the first `from` and the next `to`.
fn numbers<'a>(text: &'a str, from: &str, to: char) -> Vec<&'a str> {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no {from} in {text:.500}"));
    let (found, _) = rest.split_once(to).unwrap_or_else(|| panic!("no {to} after {from}"));
    found.split([',', ' ', '\n']).filter(|word| !word.is_empty()).collect()
}

/// Checks that there are `times` arrays in which each value equals its index.
fn check_places(found: &[&str], times: usize, what: &str) {
    let wrong = found.iter().zip(0..times * VALUES).find(|(value, place)| **value != place.to_string());
    assert_eq!((found.len(), wrong), (times * VALUES, None), "{what}");
}

/// Checks with HDF5's own tool that arrays of a file contain the values of the examples.
fn check_by_h5dump(file: &Path, arrays: &[&str]) {
    if !has("h5dump") {
        return;
    }
    for array in arrays {
        let dumped =
            succeed(Command::new("h5dump").args(["-y", "-m", "%.0f", "-d", &format!("/{array}")]).arg(file))
                .stdout;
        let dumped = String::from_utf8(dumped).expect("text");
        check_places(&numbers(&dumped, "DATA {", '}'), 1, array);
    }
}

impl Testbed {
    /// Lets 4 processes write and 3 others read.
    fn write_and_read(&self, words: &[&str], name: &str) {
        for (processes, what) in [(4, "write"), (3, "read")] {
            let mut launched = self.launch(processes, Path::new(words[0]));
            succeed(launched.args(&words[1..]).args([what, name]));
        }
    }

    /// Copies a file to the directory of the test, as `starfish get` does.
    fn get(&self, path: &str) -> PathBuf {
        let copy = self.agents.path("copy");
        fs::write(&copy, self.contents(&self.agents.session(), path)).expect("room for it");
        copy
    }

    /// Runs an example in Python with a file of this name; returns false if its modules are not installed.
    fn run_python(&self, example: &str, name: &str) -> bool {
        let example = crate::testbed::root().join("../../../examples/mpi").join(example);
        let needs = if example.ends_with("field.py") { "import mpi4py" } else { "import mpi4py, h5py" };
        let found = Command::new(PYTHON).args(["-c", needs]).output();
        if !found.is_ok_and(|output| output.status.success()) {
            prerequisites::skip(format_args!("{PYTHON} cannot {needs}"));
            return false;
        }
        self.write_and_read(&[PYTHON, "-B", example.to_str().expect("text")], name);
        true
    }
}

fn hdf5(mpi: &'static Mpi, compiler: &str) {
    if !has(compiler) {
        return;
    }
    let Some(testbed) = Testbed::new(mpi) else { return };
    let program = testbed.compile_by(compiler, "../../../examples/mpi/grid_hdf5.c", &["-shlib"]);
    testbed.write_and_read(&[program.to_str().expect("text")], "starfish:mpi/grid.h5");
    check_by_h5dump(&testbed.get("mpi/grid.h5"), &["rows", "columns", "tiles", "tiled rows"]);
}

#[test]
fn hdf5_writes_and_reads_with_mpich() {
    hdf5(&MPICH, "h5pcc.mpich");
}

#[test]
fn hdf5_writes_and_reads_with_open_mpi() {
    hdf5(&OPEN_MPI, "h5pcc.openmpi");
}

/// Debian provides PnetCDF for Open MPI only.
#[test]
fn pnetcdf_writes_and_reads_on_a_mount() {
    if !Path::new("/usr/include/pnetcdf.h").exists() {
        return prerequisites::skip("no PnetCDF");
    }
    let Some(testbed) = Testbed::new(&OPEN_MPI) else { return };
    let Some(mounted) = testbed.mount() else { return };
    let program = testbed.compile_source("../../../examples/mpi/grid_pnetcdf.c", &["-lpnetcdf"]);
    let name = mounted.path.join("mpi/grid.nc");
    testbed.write_and_read(&[program.to_str().expect("text")], name.to_str().expect("text"));
    let copy = testbed.get("mpi/grid.nc");
    assert_eq!(fs::read(&name).ok(), fs::read(&copy).ok(), "the mount shows something else");
    if has("ncdump") {
        let dumped = succeed(Command::new("ncdump").arg(&copy)).stdout;
        let dumped = String::from_utf8(dumped).expect("text");
        check_places(&numbers(&dumped, " rows =", ';'), 1, "rows");
        check_places(&numbers(&dumped, " field =", ';'), 3, "field");
    }
    mounted.end();
}

/// Debian provides mpi4py for Open MPI only.
#[test]
fn mpi4py_writes_and_reads() {
    let Some(testbed) = Testbed::new(&OPEN_MPI) else { return };
    if testbed.run_python("field.py", "starfish:mpi/field.py") {
        let values = fs::read(testbed.get("mpi/field.py")).expect("a copy");
        let values = values.chunks_exact(8).map(|bytes| f64::from_ne_bytes(bytes.try_into().expect("eight")));
        assert!(values.eq((0..300 * 200).map(f64::from)));
    }
}

/// Debian provides h5py with MPI for Open MPI only.
#[test]
fn h5py_writes_and_reads() {
    let Some(testbed) = Testbed::new(&OPEN_MPI) else { return };
    if testbed.run_python("grid_h5py.py", "starfish:mpi/h5py.h5") {
        check_by_h5dump(&testbed.get("mpi/h5py.h5"), &["rows", "tiles"]);
    }
}
