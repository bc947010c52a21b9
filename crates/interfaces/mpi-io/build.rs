//! Names the shared library as the shims will look for it.

fn main() {
    // The number changes when the shims have to be compiled anew.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libstarfish_mpi_io.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
